"""One step on one time axis, at four scales: the step, what a GPU does in it, what one op of that
sends, and one collective of it. The Step views are these four.

The moment (the field of that name, which the film has too) chooses a part of the step and an op;
the operation and the kind of group of the Collectives view choose among what that sends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from groups.layout import Layout
from training.collectives.cost import steps
from training.pipeline.plan import KINDS
from training.traffic.ops import OpTransfer, behind, in_op
from training.traffic.per_step import Traffic, carrier

from ..context import Context
from ..inputs import STARTS
from .pipeline.step import MOMENTS, ends_of, seconds_of, timeline_of
from .traffic import rows_of, unknown_links

OWN = ("collective", "collective_group", "collective_mb")
"""The fields that choose a transfer, as it has them."""


@dataclass(frozen=True)
class GpuOp:
    """What a rank runs at a time; seconds from the start of the step.

    Attributes:
        runs: kind, micro-batch and stage of an op, or of two whose kernels overlap.
        moment: the middle of it in the film.
    """

    runs: tuple[tuple[int, int, int], ...]
    start: float
    end: float
    moment: int

    @property
    def seconds(self) -> float:
        return self.end - self.start

    @property
    def letter(self) -> str:
        return "P" if len(self.runs) > 1 else KINDS[self.runs[0][0]]


@dataclass(frozen=True)
class Zooms:
    """The four scales.

    Attributes:
        seconds: of the parts of the step, in their order.
        moments: the middle of each part in the film.
        ops: what the chosen GPU's pipeline rank does, in order.
        part: the chosen part of the step.
        op: the chosen op by its place in ``ops``; None behind the pipeline.
        sent: what the op sends, or the part of the step.
        chosen: the transfer that Collectives shows, by its place in ``sent``; None: another one.
        layout: whose groups carry them.
    """

    seconds: dict[str, float]
    moments: dict[str, int]
    ops: tuple[GpuOp, ...]
    part: str
    op: int | None
    sent: tuple[OpTransfer, ...]
    chosen: int | None
    layout: Layout

    @property
    def whole(self) -> float:
        return sum(self.seconds.values())

    @property
    def span(self) -> float:
        """Seconds of what sends, or of its links where those are busy for longer."""
        return max(self.own, self.busy)

    @property
    def own(self) -> float:
        """Seconds of what sends."""
        return self.seconds[self.part] if self.op is None else self.ops[self.op].seconds

    @property
    def busy(self) -> float:
        """Seconds that the links need for all that is sent, one after the other."""
        return sum(one.seconds for one in self.sent)

    def fields(self, one: OpTransfer) -> dict[str, str]:
        """The fields with which Collectives shows a transfer; empty where it cannot."""
        return fields_of(self.layout, one)

    def turns(self, one: OpTransfer) -> int:
        """Steps of one of its operations, one after the other."""
        return steps(one.row.operation, one.row.size)


def zooms_of(context: Context) -> Zooms:
    """The scales of the job's step. Before anybody chose a moment, the first op of the chosen GPU;
    the gradients, where ops send nothing.

    >>> from request.state import State
    >>> found = zooms_of(Context.of(State()))
    >>> found.part, found.ops[found.op].letter, found.sent[0].row.kind, found.sent[0].count
    ('pipeline', 'F', 'tp', 32.0)

    Errors: LayoutError for a model, batch or schedule that is none, and for a machine of which a
    number is missing.
    """
    layout, moment = context.layout, context.moment
    seconds, rows = seconds_of(context), rows_of(layout, context.trained)
    for error in unknown_links(rows, context.trained.cluster):
        raise error
    place, ends = _place(layout, context.rank), ends_of(context)
    ops = _ops(context, place, seconds["pipeline"], ends["pipeline"])
    part, at = _chosen(ops, ends, seconds, moment or 0)
    once = tuple(behind(rows, place))
    sent = () if part == "optimizer" else once
    if at is not None:
        sent = _sent(rows, place, ops, at, timeline_of(context).plan.stages - 1)
        if not sent and moment is None and once and seconds["dp"]:
            part, at, sent = "dp", None, once
    return Zooms(seconds, _moments(ops, ends), ops, part, at, sent, _picked(context, sent), layout)


def _moments(ops: tuple[GpuOp, ...], ends: dict[str, float]) -> dict[str, int]:
    """A moment of each part of the step; of the pipeline the first op."""
    begins = {"pipeline": 0.0, "dp": ends["pipeline"], "optimizer": ends["dp"]}
    middles = {name: int(MOMENTS * (begins[name] + end) / 2) for name, end in ends.items()}
    return middles | {"pipeline": ops[0].moment}


def _sent(
    rows: list[Traffic], place: int, ops: tuple[GpuOp, ...], at: int, last: int
) -> tuple[OpTransfer, ...]:
    keys = [(kind, stage) for one in ops for kind, _, stage in one.runs]
    found = (in_op(rows, place, (kind, stage), keys, last) for kind, _, stage in ops[at].runs)
    return tuple(one for each in found for one in each)


def fields_of(layout: Layout, one: OpTransfer) -> dict[str, str]:
    """The fields with which Collectives shows a transfer; empty where it cannot."""
    group = carrier(layout.roles, one.row.kind)
    if group is None or group.name not in layout.every:
        return {}
    return dict(zip(OWN, (one.row.operation, group.name, f"{one.row.buffer / 1e6:.6g}")))


def _picked(context: Context, sent: tuple[OpTransfer, ...]) -> int | None:
    """The transfer that Collectives shows; in other views the longest where nobody chose one."""
    state, every = context.state, context.layout.every
    said = {name: getattr(state, name) for name in OWN if getattr(state, name) != STARTS[name]}
    if not said and state.view != "collectives":
        return 0 if sent else None
    usual = next((name for name, group in every.items() if group.size > 1), "")
    asked = {OWN[0]: state.collective, OWN[1]: state.collective_group or usual, **said}
    named = (fields_of(context.layout, one) for one in sent)
    return next((at for at, one in enumerate(named) if one and asked.items() <= one.items()), None)


def _place(layout: Layout, rank: int) -> int:
    """The place of a rank in its pipeline."""
    return int(np.flatnonzero(layout.every["pp"].members(rank) == rank)[0])


def _ops(context: Context, place: int, seconds: float, end: float) -> tuple[GpuOp, ...]:
    """The ops of a pipeline rank; the pipeline takes so many seconds, and ``end`` of the film."""
    timeline = timeline_of(context)
    plan, scale = timeline.plan, 1.0 / (timeline.makespan or 1.0)
    own = slice(plan.starts[place], plan.starts[place + 1])
    first, second = plan.first[own], plan.second[own]
    runs, others = (np.stack(plan.split(ops), axis=1).tolist() for ops in (first, second))
    shares = np.stack([timeline.start[own], timeline.end[own]], axis=1) * scale
    moments = (MOMENTS * end * shares.mean(axis=1)).astype(int).tolist()
    found = zip(runs, others, (second >= 0).tolist(), (shares * seconds).tolist(), moments)
    return tuple(
        GpuOp((tuple(run), tuple(other)) if has_two else (tuple(run),), start, stop, moment)
        for run, other, has_two, (start, stop), moment in found
    )


def _chosen(
    ops: tuple[GpuOp, ...], ends: dict[str, float], seconds: dict[str, float], moment: int
) -> tuple[str, int | None]:
    """The part of the step at a moment, and in the pipeline the op that runs then or comes next."""
    at = moment / MOMENTS
    for name in ("dp", "optimizer"):
        if ends["pipeline"] <= at < ends[name]:
            return name, None
    time = at / ends["pipeline"] * seconds["pipeline"]
    running = (number for number, op in enumerate(ops) if op.end > time)
    return "pipeline", next(running, len(ops) - 1)
