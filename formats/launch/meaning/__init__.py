"""Combines the words of a text: a layout, its defaults, and questions.

>>> meaning = meaning_of(read("torchrun --nnodes 2 pretrain_gpt.py --num-layers 24"))
>>> meaning.values, meaning.assumed
({'nodes': 2, 'framework': 'megatron', 'layers': 24}, {'tp': 1, 'pp': 1, 'cp': 1, 'ep': 1, \
'gpus_per_node': 8})
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.notes import Note

from ...values import Facts
from .. import flags
from ..flags import AXES
from ..items import Guess, Item, Parsed
from ..sayings import Reading, read
from .adapters import set_adapters
from .choice import Choice, choice_of, of_run
from .framework import deepspeeds_tp, framework_of
from .machines import defaulted_nodes, fewest_nodes, set_machines, set_nodes
from .segments import segment_notes
from .settled import Remarks, Settled, settle, values_of, variable_defaults
from .sizes import FIELDS, ranks_of_copy, set_copies, sizes_of, width_of_gated
from .unsaid import (
    assume_axes,
    assume_batch,
    assume_budget,
    assume_length,
    assume_training,
    assume_vocabulary,
    etp_of,
    may_be_any,
    note_experts,
    note_pattern,
    note_sharding,
    note_uneven,
    replicated_only,
)


def meaning_of(reading: Reading, run: str = "") -> Parsed:
    """The job of a text. run: the selected run, if any.

    Errors: LayoutError if the text has no such run.
    """
    reading = replace(reading, assignments=(*reading.assignments, *deepspeeds_tp(reading)))
    choice, remarks = choice_of(reading, run), Remarks()
    if choice.chosen and not choice.of_roles:
        reading = of_run(reading, choice.chosen)
    several = _several_runs(choice)
    settled, understood = settle(choice.counting(reading.assignments), remarks)
    role = choice.chosen if choice.of_roles else ""
    framework = framework_of(reading, values_of(settled), role, remarks)
    sizes = sizes_of(settled, reading.engine, remarks)
    may_be = may_be_any(reading, choice, remarks)
    commands = 1 if choice.chosen else len(reading.schema_of_run)
    is_open = not {*AXES} & {*sizes} and any(map(may_be, AXES))
    engine = "" if is_open else reading.engine
    assumed = set_machines(settled, sizes, engine, remarks, commands)
    if framework:
        sizes["framework"] = framework.job
    else:
        remarks.missing.append(Note("unknown-framework", {"form": reading.form}))
    assume_axes(sizes, assumed, framework, may_be, remarks)
    if sizes.get("ep", 1) > 1 and "etp" not in sizes and (etp := etp_of(reading)):
        remarks.assume(assumed, "etp", etp)
    if reading.engine == "vllm" and "dp" not in sizes and not may_be("dp"):
        remarks.assume(assumed, "dp", 1)  # whatever GPUs remain
    if reading.engine == "tensorrt-llm" and "dp" not in sizes and reading.configured:
        remarks.ask("dp")  # which only the file that is not here can say
    named = settled.get("named")
    if reading.engine and named and flags.keeps_states(str(named.value)):
        remarks.problems.append(replace(named.item, code="layers-with-states"))
    set_nodes({**sizes, "copy": ranks_of_copy(settled) or 1}, assumed, remarks)
    set_copies(settled, framework.job if framework else "megatron", sizes, assumed, remarks)
    defaulted = defaulted_nodes(settled, {*sizes, *assumed})
    remarks.missing[:0] = [*several, *_defaults(settled, defaulted)]
    known = values_of(settled) | sizes
    is_left = any(item.sets == "served_length" for item in reading.ignored)
    if reading.engine and named and "served_length" not in known and not is_left:
        known |= assume_length(str(named.value), remarks)
    known |= replicated_only(known, framework)
    if reading.schema:
        known |= width_of_gated(known, reading.schema.gated_width)
    assume_batch(known, assumed, remarks)
    assume_budget(known, assumed, remarks)
    note_sharding(settled, remarks)
    assume_training(reading, framework, known, assumed, may_be, remarks)
    untrained = set_adapters(settled, known, assumed, remarks)
    if framework and framework.job.startswith("megatron"):
        note_uneven(known, remarks)
        note_experts(settled, known, remarks)
    note_pattern(known, remarks)
    if framework:
        assume_vocabulary(known, assumed, framework, remarks)
    parsed = Parsed(
        text=reading.text,
        values={name: sizes[name] for name in FIELDS if name in sizes},
        assumed=assumed,
        understood=understood,
        framework=framework,
        training={name: known[name] for name in flags.TRAINING if name in known},
        runs=choice.runs if len(choice.runs) > 1 else (),
        run=choice.chosen,
        serving={name: known[name] for name in (*flags.SERVING, *flags.SERVED) if name in known},
        defaulted=defaulted,
        ranks_of_copy=ranks_of_copy(settled),
        **_remarked(reading, remarks, untrained),
    )
    return replace(parsed, missing=(*parsed.missing, *segment_notes(parsed, reading)))


def _several_runs(choice: Choice) -> list[Note]:
    """The question which of several runs to read."""
    names = ", ".join(run.name for run in choice.runs)
    facts = {"count": len(choice.runs), "names": names[:200]}
    return [Note("several-runs", facts)] if choice.is_open else []


def _defaults(settled: Settled, defaulted: Mapping[str, str]) -> list[Note]:
    """Variables that nothing sets, and their defaults, which apply."""
    return [
        Note(
            "nodes-default" if name in defaulted.values() else "variable-default",
            {"name": name, "value": value},
        )
        for name, value in variable_defaults(settled).items()
    ]


def _remarked(reading: Reading, remarks: Remarks, untrained: tuple[Item, ...]) -> Facts:
    """The remarks of reading single words and of combining them. A file that a command begins with
    is unresolved if it may answer a question."""
    configured, asks = reading.configured, bool(remarks.asks)
    plain = tuple(replace(item, code="no-group") for item in configured)
    problems = (*reading.problems, *remarks.problems)
    return {
        "ignored": (*reading.ignored, *remarks.ignored, *(() if asks else plain)),
        "unresolved": (*reading.unresolved, *untrained, *(configured if asks else ())),
        "problems": tuple(sorted(problems, key=lambda item: item.start)),
        "missing": tuple(remarks.missing),
        "asks": tuple(remarks.asks),
    }
