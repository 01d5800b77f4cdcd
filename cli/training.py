"""The commands about a training step: memory, traffic, time, better layouts, and a comparison of
two.

They answer what the page's views and endpoints do, with the same functions, so that a number is the
same wherever it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from formats.documents.tables import Table
from formats.values import Facts
from groups.errors import quoted
from groups.layout import Layout

from .inputs import CommandLine, checked
from .messages import CommandError
from .report import Report
from .state import ranked_context, served_context, trained_context

if TYPE_CHECKING:
    from request.answers.compare.sides import Compared

GIB = 2**30

VERDICTS = {"fits": "fits", "close": "is close to the limit", "over": "does not fit"}


def _serves(inputs: CommandLine) -> bool:
    """Whether the layout that is asked for is a server's."""
    job, _ = inputs.wanted()
    return checked(job).is_server


def memory(inputs: CommandLine) -> Table:
    """The peak memory of a rank of each stage, in training or serving, a row for each stage; with
    "step" that of GPU --rank over a step, a row for each op."""
    from request.answers.memory import memory_facts

    if _serves(inputs):
        return _served(inputs)
    if inputs.words == ["step"]:
        return _over_step(inputs)
    if inputs.words:
        raise CommandError(f"memory takes {quoted(inputs.words[0])} of a server only")
    layout, facts = _facts(inputs, memory_facts)
    parts = list(dict.fromkeys(name for stage in facts["stages"] for name in stage["bytes"]))
    rows = [
        [
            *(stage[name] for name in ("stage", "layers", "parameters")),
            round(stage["micro_batches_in_flight"], 2),
            *(_gib(stage["bytes"].get(name, 0)) for name in parts),
            _gib(stage["total_bytes"]),
        ]
        for stage in facts["stages"]
    ]
    names = [f"{name}_gib" for name in (*parts, "total")]
    columns = ["stage", "layers", "parameters", "micro_batches", *names]
    return Report("memory", columns, rows, layout, before=_head(facts, _fit(facts)), facts=facts)


def _over_step(inputs: CommandLine) -> Table:
    """The memory of one GPU, op by op."""
    from request.answers.over_step import over_step_facts

    with ranked_context(inputs) as context:
        layout, facts = context.layout, over_step_facts(context)
    ops = facts["ops"]
    parts = list(dict.fromkeys(name for op in ops for name in op["bytes"]))
    rows = [
        [
            op["op"],
            *(round(op[name], 4) for name in ("start", "end")),
            *(_gib(op["bytes"].get(name, 0)) for name in parts),
            *(_gib(op[name]) for name in ("total_bytes", "bytes_behind")),
        ]
        for op in ops
    ]
    columns = ["op", "start", "end", *(f"{name}_gib" for name in (*parts, "total", "behind"))]
    most, size = ops[facts["fullest"]]["op"], _gib(facts["fullest_bytes"])
    line = f"GPU {facts['rank']} of stage {facts['stage']}: fullest in {most}, {size} GiB"
    if facts["micro_batches"] < facts["of"]:
        line += f"; played with {facts['micro_batches']} of {facts['of']:,} micro-batches"
    return Report("memory-step", columns, rows, layout, before=_head(facts, line), facts=facts)


def _served(inputs: CommandLine) -> Table:
    """Memory of a server, and the numbers of a log beside it."""
    from request.served import server_facts

    log = inputs.text(inputs.words[0]) if inputs.words else ""
    context = served_context(inputs, log)
    facts = server_facts(context)
    parts = list(dict.fromkeys(name for stage in facts["stages"] for name in stage["bytes"]))
    sizes = ("weights", "available", "cache", "free")
    rows = [
        [
            *(stage[name] for name in ("stage", "layers", "experts_per_rank")),
            *(_gib(stage["bytes"].get(name, 0)) for name in parts),
            *(_gib(stage[f"{name}_bytes"]) for name in sizes),
        ]
        for stage in facts["stages"]
    ]
    columns = ["stage", "layers", "experts", *(f"{name}_gib" for name in (*parts, *sizes))]
    fits = f"{facts['requests']:,.2f} requests of {facts['max_model_len']:,} tokens fit"
    heads = f"KV heads of a rank {facts['kv_heads_per_rank']}, each on {facts['kv_copies']}"
    before = [f"{facts['model']} on {facts['engine']}, weights {facts['weights_format']}"]
    before += [f"{fits}, {facts['tokens']:,} tokens; {heads}", facts["printed"]]
    before += _logged(facts.get("log"))
    return Report("memory", columns, rows, context.layout, before=before, facts=facts)


def _logged(log: Facts | None) -> Iterator[str]:
    """The numbers of a log beside the calculated ones, a line each."""
    for row in log["rows"] if log else ():
        is_size = row["what"] not in ("tokens_in", "requests", "share")
        printed, reckoned = (
            f"{row[name] / GIB:,.2f} GiB" if is_size else f"{row[name]:,g}"
            for name in ("printed", "reckoned")
        )
        verdict = {True: " agrees", False: " differs"}.get(row["agrees"], "")
        yield f"{row['what']}: printed {printed}, reckoned {reckoned}{verdict}"
    if log and log["deciding_rank"]:
        yield f"rank {log['deciding_rank']} decides"


def traffic(inputs: CommandLine) -> Table:
    """The bytes that each kind of group sends in a step, a row for each operation."""
    from request.answers.traffic import traffic_facts
    from request.units import bytes_text

    layout, facts = _facts(inputs, traffic_facts)
    columns = ["kind", "group_size", "operation", "count", "sent_bytes_per_rank", "total_bytes"]
    columns += ["across_bytes", "seconds", "reached_seconds", "hidden_by", "meaning"]
    rows = [[{**row, **_transfer_seconds(row)}[name] for name in columns] for row in facts["rows"]]
    total, across = (bytes_text(facts[f"{name}_bytes"]) for name in ("total", "across"))
    line = f"{total} in a step, {across} of it out of NVLink domains"
    before = [*_head(facts, line), *facts["links_unknown"]]
    return Report("traffic", columns, rows, layout, before=before, facts=facts)


def _transfer_seconds(row: Facts) -> dict[str, object]:
    """Seconds of a transfer, or why there are none; a message to one rank is no collective."""
    instead = {"seconds": "unknown", "reached_seconds": "not measured"}
    if row["operation"] == "send_recv":
        instead["reached_seconds"] = "-"
    return {
        name: why if row[name] is None else round(row[name], 6) for name, why in instead.items()
    }


def estimate(inputs: CommandLine) -> Table:
    """The time of a step, a row for each part."""
    from request.answers.estimate.api import step_facts
    from request.context import Context

    own = inputs.options.own_step

    def facts_of(context: Context) -> Facts:
        state = context.state.changed({"own_step": own or ""})
        return step_facts(Context(context.layout, state))

    layout, facts = _facts(inputs, facts_of)
    parts = sorted(facts["parts_seconds"].items(), key=lambda part: -part[1])
    rows = [
        [name, round(seconds, 6), round(seconds / facts["step_seconds"], 4)]
        for name, seconds in parts
        if seconds
    ]
    before = _head(facts, f"{_step(facts)}; {_fit(facts)}")
    before.append(_used("", facts["used"]))
    if mine := facts.get("own_step"):
        before.append(_used(f"your step: {mine['seconds']:.4g} s, ", mine))
        before.append(f"no part explains {mine['unexplained_seconds']:.3g} s of it")
        before += [mine["doubt"]] if mine["doubt"] else []
    if facts["no_runs_near"]:
        before.append(f"no measured run is like it in {', '.join(facts['no_runs_near'])}")
    return Report(
        "estimate", ["part", "seconds", "share"], rows, layout, before=before, facts=facts
    )


def _used(start: str, used: dict[str, Any]) -> str:
    """How well the GPUs are used, in one line; attention counts what a causal token sees."""
    full = used["attention_in_full"]
    return (
        f"{start}{used['tflop_per_second_per_gpu']:,.0f} TFLOP/s a GPU, MFU {used['mfu']:.1%} "
        f"({full['mfu']:.1%} with attention in full), HFU {used['hfu']:.1%}, "
        f"{used['tokens_per_second_per_gpu']:,.0f} tokens/s a GPU"
    )


def search(inputs: CommandLine) -> Table:
    """The fastest layouts for the same model, batch and GPUs, a row each."""
    if _serves(inputs):
        from .served import best

        return best(inputs)
    from request.answers.search import search_facts
    from training.split import SIZES

    layout, facts = _facts(inputs, search_facts)
    sizes = [*SIZES, "memory_schedule", "micro_batch", "recompute"]
    columns = ["place", *sizes, "step_seconds", "low_seconds", "high_seconds", "mfu"]
    columns += ["tflops_per_gpu", "tokens_per_s_per_gpu", "needed_gib", "fit", "quicker_than_given"]
    listed = [[place, row] for place, row in enumerate(facts["best"], 1)]
    if (current := facts["given"]) is not None:
        listed.append([facts["given_place"] or "-", current])
    rows = [
        [
            str(place),
            *(row[name] for name in sizes),
            *(round(row[name], 3) for name in columns if name.endswith("_seconds")),
            round(row["used"]["mfu"], 4),
            *(round(row["used"][f"{name}_per_second_per_gpu"], 1) for name in ("tflop", "tokens")),
            _gib(row["needed_bytes"]),
            row["fit"],
            _sure(row.get("than_given")),
        ]
        for place, row in listed
    ]
    count = f"{facts['ways']:,} ways to train on {layout.world_size:,} GPUs"
    before = _head(facts, f"{count}, {facts['too_large']:,} too large")
    if facts["given_is_refused"]:
        before.append(f"this layout: {facts['given_is_refused']}")
    after = [] if current is None else [f"the last row is this layout: {_step(current)}"]
    return Report("search", columns, rows, layout, before=before, after=after, facts=facts)


def _sure(order: Facts | None) -> float | None:
    return None if order is None else round(order["is_quicker"], 3)


def compare(inputs: CommandLine) -> Table:
    """The better of two layouts, a row for each cost; without a word of its own, the second is the
    first with the options."""
    from request.answers.compare.api import compare_facts
    from request.answers.compare.sides import compared_with
    from request.answers.compare.words import numbers_of_costs

    from .named import context_of_word, set_base

    set_base(inputs, inputs.words[-1])
    context_of = nullcontext(served_context(inputs)) if _serves(inputs) else trained_context(inputs)
    with context_of as context:
        found = compared_with(context, context_of_word(inputs, inputs.words[0], context))
        inputs.remarks += _other_model(inputs, found)
        facts: Facts = compare_facts(found)
    sides = [line for at in ("first", "second") for line in _named(at, facts[at])]
    settings = [_setting(row) for row in facts["settings"]]
    differ = {"settings": "; ".join(settings), "groups": " ".join(_kinds(facts))}
    columns = ["what" if found.serves else "cost", "first", "second", "why"]
    return Report(
        "compare",
        columns,
        numbers_of_costs(found),
        context.layout,
        before=[*_compared_head(facts), *sides],
        after=[f"{what} that differ: {names or 'none'}" for what, names in differ.items()],
        facts=facts,
    )


def _other_model(inputs: CommandLine, found: Compared) -> Iterator[str]:
    """A remark if a server is compared with another model than that of its own text."""
    from training.models import MODELS

    from .named import state_of_word

    word, model = inputs.words[0], found.second.context.state.model
    if not found.serves or len(inputs.words) < 2 or word.startswith("~"):
        return
    named = state_of_word(inputs, word).model
    if named != model and {named, model} <= MODELS.keys():
        yield f"{word} is of {named}: here both are of {model}"


def _compared_head(facts: Facts) -> list[str]:
    """The work of both, and which is better."""
    if "training" in facts:
        return _head(facts, facts["verdict"])
    if "max_model_len" not in facts:
        return [facts["verdict"]]
    requests = f"requests of up to {facts['max_model_len']:,} tokens"
    return [f"{facts['model']}{_changed(facts)}, {requests}", facts["verdict"]]


def _changed(facts: Facts) -> str:
    return f" with other {', '.join(facts['changed'])}" if facts["changed"] else ""


def _named(at: str, side: Facts) -> Iterator[str]:
    """The name of a side, why it is refused, and its measured step."""
    yield f"{at}: {side['name']}" + (f", refused: {side['refused']}" if side["refused"] else "")
    yield from (f"{at}, {line[0].lower()}{line[1:]}" for line in _measured(side.get("measured")))


def _setting(row: Mapping[str, str]) -> str:
    return f"{row['name']} {row['first']} / {row['second']}".replace("\N{EN DASH}", "-")


def _kinds(facts: Facts) -> Iterator[str]:
    return (row["kind"] for row in facts["groups"])


def _facts(inputs: CommandLine, facts_of: Callable[[Any], Facts]) -> tuple[Layout, Facts]:
    with trained_context(inputs) as context:
        return context.layout, facts_of(context)


def _head(facts: Facts, line: str) -> list[str]:
    """What is trained, and the answer in one line."""
    training = facts["training"]
    batch = f"global batch {training['global_batch']:,}"
    sentence = f"{facts['model']}{_changed(facts)}, {batch}, micro-batch {training['micro_batch']}"
    return [sentence, line, *_measured(facts.get("measured"))]


def _measured(step: Facts | None) -> list[str]:
    """The measured step of the published layout, if this is that layout."""
    if step is None:
        return []
    low, high = (f"{step[f'{name}_seconds']:g}" for name in ("low", "high"))
    seconds = low if low == high else f"{low} to {high}"
    least, most = (f"{share:.1%}" for share in step["mfu"])
    used = f"MFU {least if least == most else f'{least} to {most}'}"
    if own := step["source_says"]:
        used += f", its source says {_source_says(own)}"
    return [
        f"measured: {seconds} s a step, {used} ({step['source']} {step['place']}".rstrip() + ")"
    ]


def _source_says(own: Facts) -> str:
    """The source's own figure of use, and what is counted its way here."""
    is_share = own["figure"] == "mfu"
    texts = [
        f"{value:.1%}" if is_share else f"{value:,.0f}"
        for value in (own["value"], *own["counted_its_way"])
    ]
    stated, alike = texts[0], " to ".join(dict.fromkeys(texts[1:]))
    unit = "MFU {}" if is_share else "{} TFLOP/s a GPU"
    again = " with what is computed again" if own["figure"] == "hardware" else ""
    return f"{unit.format(stated)}{again}, counted its way here {alike}"


def _step(facts: Facts) -> str:
    """The step, and the interval of nine of ten real steps."""
    seconds, low, high = (facts[f"{name}_seconds"] for name in ("step", "low", "high"))
    return f"about {seconds:.2g} s a step ({low:.2g} to {high:.2g})"


def _fit(facts: Facts) -> str:
    """The verdict, and the memory that nine of ten real runs need."""
    names = (*(f"{name}_bytes" for name in ("needed", "memory_low", "memory_high", "capacity")),)
    needed, low, high, capacity = (f"{facts[name] / GIB:,.1f}" for name in names)
    needs = f"needs {needed} ({low} to {high}) of {capacity} GiB"
    return f"{VERDICTS[facts['fit']]}: stage {facts['fullest_stage']} {needs}"


def _gib(count: float) -> float:
    return round(count / GIB, 3)
