"""The endpoint for pipelines: a schedule op by op, with its bubble and memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from formats.documents.trace import chrome_trace
from formats.values import Document, Facts
from groups import LayoutError
from groups.alternatives import MOST
from groups.budget import LIMIT
from groups.inputs import inputs_of
from training.pipeline import SCHEDULES, Timeline, figures_of, simulate
from training.pipeline.plan import MOST_OPS, too_many_ops
from training.pipeline.spec import OF_SCHEDULES, ScheduleSpec, checked

from ...endpoint import Parameter, Parameters, parameter, serving, too_large
from ...inputs import TimesInputs
from ...state import State, require_choice
from ...trained import micro_batches_unasked
from .inputs import MOST_RANKS, clock_of, spend_on, work_of

MOST_PLACES = 100_000
"""The most ops that one answer lists: some 4 MB."""

SCHEDULE = Parameters(
    "(the schedule)",
    {
        "schedule": parameter("schedule", start="1f1b"),
        "p": parameter("pp", start=4, means="pipeline ranks"),
        "m": parameter(
            "micro_batches",
            start=0,
            means="micro-batches of a step; 0: four a rank, as the page takes where none are said",
        ),
        "v": parameter("vpp"),
        "group_size": parameter("group_size"),
        **{name: parameter(name) for name in inputs_of(TimesInputs) if name != "t_optimizer"},
        "ops": Parameter(
            bool, True, "whether to list the ops; without them far longer schedules are answered"
        ),
        "trace": Parameter(
            bool,
            False,
            "whether to answer with a trace for Perfetto and Chrome instead, a unit as 1 ms",
        ),
    },
)


@serving(dict, SCHEDULE)
def pipeline_schedule(arguments: Document) -> str:
    """What every rank of a pipeline runs in a step, and when, as JSON; and its bubble.

    An op is [name, start, end]: "3F5" is the forward of micro-batch 5 through stage 3, B a whole
    backward, I and W its halves for inputs and weights, "3F6&0B0" two that overlap. Times are in
    the unit of t_f; activations are counted in micro-batches of a whole rank.

    Args:
        (the schedule)
    """
    fields = SCHEDULE.fields(arguments)
    clock = clock_of(State(**fields))
    with_ops = require_choice("ops", arguments["ops"], (False, True))
    is_trace = require_choice("trace", arguments["trace"], (False, True))
    without = {name: False for name in ("ops", "trace") if arguments[name]}
    spec = _answerable(fields, without)
    durations = clock.durations(1 / spec.chunks, None)
    plan = replace(spec, w_share=clock.w_share).plan(durations)
    if without and len(plan.flat) > MOST_PLACES:
        raise too_large(len(plan.flat), "ops", MOST_PLACES, "ops").replace(alternatives=[without])
    timeline = simulate(plan, durations)
    if is_trace:
        return chrome_trace({spec.rule.title: timeline.rows()})
    return json.dumps(_answer(spec, timeline, with_ops))


def _answerable(fields: Facts, without: dict[str, bool]) -> ScheduleSpec:
    """The schedule, if its answer is not too large; ``without``: the change that leaves out its
    ops, if they are listed.

    Errors: LayoutError with alternatives that all work.
    """
    sizes: Document = {name: fields[one] or None for name, one in OF_SCHEDULES.items()}
    sizes = {**sizes, "group_size": fields["group_size"] or None}
    sizes["m"] = sizes["m"] or micro_batches_unasked(fields["pp"])
    name = fields["schedule"]
    try:
        spec = checked(name, **sizes)
        if spec.p > MOST_RANKS:
            raise too_large(spec.p, "pipeline-ranks", MOST_RANKS, "p")
        if spec.num_ops > MOST_OPS:
            raise too_many_ops(spec.num_ops)
        spend_on([spec])
        return spec
    except LayoutError as error:
        fixes = _fixes(error, {"schedule": name, **sizes}, without)
        raise error.replace(alternatives=[*fixes][:MOST]) from None


def _fixes(error: LayoutError, sizes: Document, without: dict[str, bool]) -> Iterator[Facts]:
    """The alternatives of a refusal that work, else the most micro-batches that do."""
    is_listed = bool(without)
    own = [
        fix
        for fix in error.alternatives
        if _most({**sizes, **fix}, is_listed) == fix.get("m", sizes["m"])
    ]
    yield from own
    listed, timed = _most(sizes, is_listed), _most(sizes, False)
    if listed and not own:
        yield {"m": listed}
    if timed > listed:
        yield {"m": timed, **without}


def _most(sizes: Document, is_listed: bool) -> int:
    """The most micro-batches, up to the requested number, with which a schedule is answered; 0:
    none."""
    name, m, p = sizes["schedule"], sizes["m"], sizes["p"]
    if name not in tuple(SCHEDULES) or not 0 < p <= MOST_RANKS:
        return 0
    spec = ScheduleSpec(name, p, m, sizes["v"], sizes["group_size"])
    shares = [(spec.num_ops, MOST_OPS), (work_of(spec), LIMIT)]
    shares += [(spec.num_run, MOST_PLACES)] if is_listed else []
    most = min(m, *(limit * m // count for count, limit in shares))
    tried = range(most, max(0, most - 4 * p), -1)
    return next((m for m in tried if replace(spec, m=m).is_taken), 0)


def _answer(spec: ScheduleSpec, timeline: Timeline, with_ops: bool) -> Document:
    figures, share = figures_of(timeline), timeline.plan.share
    columns = {
        "busy": figures.busy,
        "idle": figures.idle,
        "peak_activations": figures.peak * share,
        "peak_activations_until_input_gradient": figures.peak_input * share,
        "activation_sends": figures.activation_sends,
        "gradient_sends": figures.gradient_sends,
    }
    rows = zip(*(column.tolist() for column in columns.values()))
    answer = {
        "schedule": spec.name,
        "p": spec.p,
        "m": spec.m,
        "v": spec.chunks,
        "stages": timeline.plan.stages,
        "units": {"times": "that of t_f", "activations": "micro-batches of a whole rank"},
        "makespan": figures.makespan,
        "bubble_of_ideal": figures.bubble_of_ideal,
        "bubble_of_total": figures.bubble_of_total,
        "bubble_of_span": figures.bubble_of_span,
        "ranks": [dict(zip(columns, row)) for row in rows],
    }
    if spec.rule.grouped:
        answer["group_size"] = spec.group
    return {**answer, "ops": timeline.rows()} if with_ops else answer
