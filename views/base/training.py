"""How a model is trained on a layout, as the page says it: one batch and one schedule for all.

>>> from .resolve import resolve
>>> batch_of(resolve(State()), State())
Batch(micro_batch=1, micro_batches=8, dp=4, is_given=False)
>>> state = State(global_batch="64", micro_batch="2")
>>> batch_of(resolve(state), state).micro_batches
8
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groups.alternatives import not_a_multiple
from groups.layout import Layout
from groups.mesh import whole_number
from groups.stages.holdings import MAX_BATCH
from training.memory.activations import RECOMPUTE
from training.models import OLDER, said_of_preset, training_of_preset
from training.pipeline import SCHEDULES
from training.pipeline.schedules import DEFAULT_VIRTUAL
from training.pipeline.spec import MAX_MICRO_BATCHES

from .model import UNKNOWN
from .problems import refusal
from .state import State, is_empty, parse_number, texts_of

ROUNDS = 4
"""Micro-batches taken for each pipeline stage where nobody says how many."""

MOST_UNASKED = 64 * 1024
"""Micro-batches times ranks of a pipeline that are taken at most where nobody says how many."""

WHOLE_LAYERS = ("megatron-deepspeed",)
"""Frameworks that compute whole layers again or none (bigscience-workshop/Megatron-DeepSpeed
b124614 megatron/arguments.py, --checkpoint-activations)."""


@dataclass(frozen=True)
class Batch:
    """The samples of a step: micro_batches on each of dp pipelines, of micro_batch samples each.

    is_given: whether somebody said how many, and not only how large a micro-batch is.
    """

    micro_batch: int
    micro_batches: int
    dp: int
    is_given: bool

    @property
    def global_batch(self) -> int:
        return self.micro_batch * self.micro_batches * self.dp


def batch_of(layout: Layout, state: State) -> Batch:
    """As the micro-batches say, the global batch, or both; else `micro_batches_unasked`.

    Errors: LayoutError about a number that cannot be, or two that contradict one another.
    """
    dp = layout.mesh.size("dp")
    micro_batch = count_of(state.micro_batch, "micro_batch", 1)
    is_given = not (is_empty(state.micro_batches) and is_empty(state.global_batch))
    if not is_empty(state.micro_batches):
        count = whole_number(
            parse_number(state.micro_batches), "micro_batches", maximum=MAX_MICRO_BATCHES
        )
        batch = Batch(micro_batch, count, dp, is_given)
        if not is_empty(state.global_batch):
            _require_same(batch, count_of(state.global_batch, "global_batch", 1))
        return batch
    if not is_given:
        return Batch(micro_batch, micro_batches_unasked(layout.mesh.size("pp")), dp, is_given)
    samples = count_of(state.global_batch, "global_batch", 1)
    if samples % (micro_batch * dp):
        by = {"micro_batch": micro_batch, "dp": dp}
        raise not_a_multiple("global_batch", samples, by, maximum=MAX_BATCH)
    return Batch(micro_batch, samples // (micro_batch * dp), dp, is_given)


def micro_batches_unasked(pp: int) -> int:
    """Micro-batches where nobody says how many: four a stage, of a very long pipeline fewer.

    >>> micro_batches_unasked(4), micro_batches_unasked(1024)
    (16, 64)
    """
    return min(ROUNDS * pp, max(1, MOST_UNASKED // pp))


def count_of(value: Any, name: str, empty: int) -> int:
    return empty if is_empty(value) else whole_number(parse_number(value), name, maximum=MAX_BATCH)


def _require_same(batch: Batch, samples: int) -> None:
    """Refuse a global batch that the micro-batches contradict."""
    if samples == batch.global_batch:
        return
    fixes: list[dict[str, Any]] = [{"global_batch": batch.global_batch}]
    share = batch.micro_batch * batch.dp
    if samples % share == 0:
        fixes.insert(0, {"micro_batches": samples // share})
    facts = {
        "micro_batches": batch.micro_batches,
        "micro_batch": batch.micro_batch,
        "dp": batch.dp,
        "product": batch.global_batch,
        "global_batch": samples,
    }
    raise refusal("batches-disagree", "micro_batches", *fixes, **facts)


def with_micro_batches(layout: Layout, state: State, count: int) -> dict[str, Any]:
    """What sets so many micro-batches: the global batch where that is said, else their number."""
    if is_empty(state.global_batch):
        return {"micro_batches": count}
    micro_batch = 1 if is_empty(state.micro_batch) else parse_number(state.micro_batch)
    samples = count * micro_batch * layout.mesh.size("dp")
    return {
        "global_batch": samples,
        **({} if is_empty(state.micro_batches) else {"micro_batches": ""}),
    }


# -- the schedule --------------------------------------------------------------------------------


def schedule_name(state: State) -> Any:
    """The schedule of the pipeline: as chosen, or what the virtual stages suggest."""
    if not is_empty(state.schedule):
        return state.schedule
    vpp = parse_number(state.vpp)
    return "interleaved" if isinstance(vpp, int) and vpp > 1 else "1f1b"


def virtual_stages(state: State) -> int:
    """Virtual stages of each rank: as typed, else two where the schedule needs some, else one.

    >>> virtual_stages(State(schedule="interleaved")), virtual_stages(State())
    (2, 1)

    Errors: LayoutError for what is no whole number.
    """
    name = schedule_name(state)
    rule = SCHEDULES.get(name) if isinstance(name, str) else None
    return count_of(state.vpp, "vpp", DEFAULT_VIRTUAL if rule and rule.v is None else 1)


def recomputations_of(state: State, now: str) -> tuple[str, ...]:
    """What the framework or the software of the published layout may compute again, and ``now``.

    >>> recomputations_of(State(preset="bloom-176b"), "full"), recomputations_of(State(), "full")
    (('none', 'full'), ('none', 'selective', 'partial', 'full'))
    """
    is_older = isinstance(state.preset, str) and state.preset.startswith(OLDER)
    if not is_older and state.framework not in WHOLE_LAYERS:
        return RECOMPUTE
    return tuple(name for name in RECOMPUTE if name in ("none", now, "full"))


def fields_of_preset(name: str) -> dict[str, str]:
    """The fields of the model and its training that choosing a published layout sets.

    >>> fields_of_preset("nemotron4-340b-1536")
    {'model': 'nemotron4-340b', 'cluster': 'dgx-h100', 'zero': '1', 'schedule': 'interleaved'}
    >>> fields_of_preset("mcore-guide-llama-3-8b"), fields_of_preset("playground-16")
    ({'model': 'llama3-8b'}, {})
    """
    said = said_of_preset(name)
    model = {} if name == "playground-16" else {"model": said.name or UNKNOWN}
    return texts_of({**model, **said.changes, **training_of_preset(name)})
