"""What a rank of a pipeline holds while it runs its ops, by cause, op by op.

    states      weights, gradients, optimizer    always
    activations                                  of a chunk: grow layer by layer in its forward,
                                                 and go layer by layer in its backward; where that
                                                 is split, with the second half
    output                                       from a forward of the last stage to behind the
                                                 first layer of its backward
    recomputed, working                          during a backward
    gathered                                     what data parallelism has whole then: FSDP's by
                                                 module (training.sharding.ops), ZeRO's buckets
                                                 during backward, a layer of ZeRO-3 during all ops

Of a pair whose kernels overlap both count from its start. `over_step` makes the picture of a step
of it, and `per_stage` the fullest moment of FSDP's; for other programs its closed forms give the
same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from groups.kept import kept

from ..pipeline.figures import settled
from ..pipeline.plan import KINDS, PipelinePlan
from ..pipeline.spec import ScheduleSpec
from ..sharding.ops import CUT, GATHERED, StageOps, behind
from ..sharding.stages import Action, with_gathers

MOST_ALONE = 512
"""The most ops of a rank that are all counted one by one; of longer steps two short ones are."""

STATES = ("weights", "copies", "gradients", "optimizer")
"""What a rank holds from the first op to the last, and between two steps."""


def between_steps(parts: Mapping[str, float]) -> float:
    """Bytes that stay between two steps."""
    return sum(parts.get(name, 0.0) for name in STATES)


class Point(NamedTuple):
    """A rank at one time: bytes by part."""

    at: float
    parts: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.parts.values())


@dataclass(frozen=True)
class OpMemory:
    """A rank while it runs one op, or a pair of them, and behind all of them "optimizer"; "reduce"
    is what a pipeline's runtime does behind the last op of a stage. text: as in
    training.pipeline.plan. The last point is behind the op."""

    text: str
    start: float
    end: float
    points: tuple[Point, ...]

    @property
    def kinds(self) -> str:
        """The letters of its ops, one or two; empty of what is none of the plan."""
        return "".join(filter(KINDS.__contains__, self.text)) if self.text[0].isdigit() else ""

    @property
    def most(self) -> Point:
        """Its fullest time, the first of equals."""
        return max(self.points, key=lambda point: point.total)


@dataclass(frozen=True)
class Pieces:
    """What a rank holds, by when.

    states: always. kept: activations of one micro-batch, by the rank's stages; output, mask: its
    outputs, and the dropout mask of the embedding, of which most_masks count. forward, backward:
    besides, during such an op. layers: of one of its stages. fsdp: its stages, where states are
    gathered by module; partial: bytes of sums that wait for their replicas.
    """

    states: Mapping[str, float]
    kept: Mapping[int, float]
    output: float = 0.0
    mask: float = 0.0
    most_masks: int = 0
    forward: Mapping[str, float] = field(default_factory=dict)
    backward: Mapping[str, float] = field(default_factory=dict)
    layers: int = 1
    fsdp: Mapping[int, StageOps] = field(default_factory=dict)
    partial: float = 0.0


class Share(NamedTuple):
    """A time within an op: of its duration, of its chunk's activations that are there, whether its
    outputs are, and bytes besides by part."""

    at: float
    kept: float
    has_output: bool
    extra: Mapping[str, float]


class RankOp(NamedTuple):
    """Ops that run at once, one or two, as actions; start and end in any unit of time."""

    text: str
    ops: tuple[Action, ...]
    start: float = 0.0
    end: float = 0.0


def ops_of_rank(plan: PipelinePlan, row: int, times: np.ndarray | None = None) -> list[RankOp]:
    """The ops of one row of a plan; times: start and end of each place, shape (places, 2)."""
    found = []
    spans = times.tolist() if times is not None else [(0.0, 0.0)] * len(plan.places[row])
    for place, (start, end) in zip(plan.places[row].tolist(), spans):
        second, first = divmod(place, plan.num_ops)
        ops = [_action(plan, op) for op in ([first] if not second else [first, second - 1])]
        found.append(RankOp(plan.text(place), tuple(ops), start, end))
    return found


def _action(plan: PipelinePlan, op: int) -> Action:
    rest, kind = divmod(op, 4)
    stage, micro_batch = divmod(rest, plan.m)
    return Action(KINDS[kind], stage, micro_batch)


def plan_of_rank(spec: ScheduleSpec, rank: int) -> tuple[PipelinePlan, int]:
    """A plan with the ops of a rank, and its row in it: of that rank alone, where the schedule's
    order is a rule."""
    order, shape = spec.rule.order, spec.shape
    if order is None:
        return spec.plan(), rank
    return PipelinePlan(shape.stages, spec.m, (order(shape, rank),)), 0


class Player:
    """A rank that runs its ops: what it holds during and behind each of them.

    kept, outputs: micro-batches that are alive between ops, by stage and of the last; before: what
    FSDP's stages ran (training.sharding.ops).
    """

    def __init__(self, pieces: Pieces, ops: Sequence[RankOp], stages: int):
        self.pieces, self.ops, self.last_stage = pieces, ops, stages - 1
        self.kept: dict[int, int] = {}
        self.outputs = 0
        self.before: dict[int, str] = {}

    def play(self) -> Iterator[OpMemory]:
        """All ops with what the rank holds meanwhile."""
        runtime = self._runtime()
        for at, each in enumerate(self.ops):
            for op in each.ops:
                self._gather(runtime.get(op, ()))
            points = [
                Point(each.start + share.at * (each.end - each.start), self._parts(each, share))
                for share in self._shares(each, is_last=at == len(self.ops) - 1)
            ]
            for op in each.ops:
                self._ran(op)
            if at == len(self.ops) - 1 and not self._is_piped():
                self.before.clear()  # all is reduced
            points.append(Point(each.end, self._parts(each)))
            yield OpMemory(each.text, each.start, each.end, tuple(points))
            for op in each.ops:
                yield from self._reduced(op, each.end)

    def peak(self) -> dict[str, float]:
        """The parts at the fullest time of `play`, found op by op: what an op adds at its own
        fullest time is the same wherever it stands behind the same ops."""
        runtime, most = self._runtime(), Point(0.0, {})
        known: dict[object, tuple[float, Share]] = {}
        total, last = 0.0, len(self.ops) - 1
        for at, each in enumerate(self.ops):
            for op in each.ops:
                self._gather(runtime.get(op, ()))
            before = [self.before.get(op.stage, "") for op in each.ops]
            key = (*((op.kind, op.stage) for op in each.ops), *before, at == last)
            if key not in known:
                shares = self._shares(each, is_last=at == last)
                known[key] = max(((self._adds(each, s), s) for s in shares), key=lambda one: one[0])
            adds, share = known[key]
            size = adds + self._beside(each)
            if size > total:
                total, most = size, Point(0.0, self._parts(each, share))
            for op in each.ops:
                self._ran(op)
            for op in each.ops:
                for reduced in self._reduced(op, 0.0):
                    if reduced.most.total > total:
                        total, most = reduced.most.total, reduced.most
        return most.parts

    def _adds(self, each: RankOp, share: Share) -> float:
        """Bytes of an op itself at one of its times."""
        kept = sum(self.pieces.kept[op.stage] for op in each.ops) / len(each.ops)
        output = share.has_output * self.pieces.output
        return share.kept * kept + output + sum(share.extra.values())

    def _beside(self, each: RankOp) -> float:
        """Bytes besides an op that runs."""
        pieces, outputs, masks = self.pieces, self.outputs, self.kept.get(0, 0)
        size = sum(pieces.kept[stage] * number for stage, number in self.kept.items())
        for op in each.ops:
            came = op.kind != "F"
            size -= pieces.kept[op.stage] * came
            outputs -= op.kind in "BI" and self._is_end(op)
            masks += not came and not op.stage
        size += outputs * pieces.output + min(masks, pieces.most_masks) * pieces.mask
        return size + self._elsewhere({op.stage for op in each.ops})

    # -- one op ----------------------------------------------------------------------------------

    def _shares(self, each: RankOp, *, is_last: bool) -> Iterator[Share]:
        if len(each.ops) > 1:
            yield from self._of_pair(each)
        elif self.pieces.fsdp:
            yield from self._by_module(each.ops[0], is_last=is_last)
        else:
            yield from self._by_layer(each.ops[0])

    def _by_layer(self, op: Action) -> Iterator[Share]:
        has_output, kind = self._is_end(op), op.kind
        if kind == "F":
            yield Share(0.0, 0.0, False, self.pieces.forward)
            yield Share(1.0, 1.0, has_output, self.pieces.forward)
            return
        extra, step = self.pieces.backward, 1 / self.pieces.layers
        ends = {"B": step, "I": 1.0, "W": 0.0}[kind]
        yield Share(0.0, 1.0, has_output and kind != "W", extra)
        if has_output and kind != "W":
            kept = 1.0 if kind == "I" else 1 - step
            yield Share(step, kept, True, extra)
            yield Share(step, kept, False, extra)
        yield Share(1.0, ends, False, extra)

    def _by_module(self, op: Action, *, is_last: bool) -> Iterator[Share]:
        pieces, kind, is_end = self.pieces, op.kind, self._is_end(op)
        before = self.before.get(op.stage, "")
        for module in pieces.fsdp[op.stage].alive(kind, before, is_last=is_last):
            for at in (module.start, module.end):
                extra = {"gathered": float(module.bytes)}
                if kind == "F":
                    yield Share(at, at, is_end and at == 1.0, extra)
                    continue
                has_output = is_end and kind != "W" and not module.start
                kept = 1.0 if kind == "I" else 1.0 - at
                yield Share(at, kept, has_output, {**pieces.backward, **extra})

    def _of_pair(self, each: RankOp) -> Iterator[Share]:
        """Two ops at once: both count from start to end, at the fullest time of each."""
        extra = dict(self.pieces.backward)
        if self.pieces.fsdp:
            sizes = []
            for op in each.ops:
                stage, before = self.pieces.fsdp[op.stage], self.before.get(op.stage, "")
                sizes.append(max(m.bytes for m in stage.alive(op.kind, before, is_last=False)))
            extra["gathered"] = float(sum(sizes))
        number = len(each.ops)
        has_output = any(self._is_end(op) and op.kind != "W" for op in each.ops)
        yield Share(0.0, number, has_output, extra)
        yield Share(1.0, number, has_output, extra)

    def _parts(self, each: RankOp, share: Share | None = None) -> dict[str, float]:
        """Bytes by part during an op, or with no share behind it."""
        pieces, running = self.pieces, {op.stage for op in each.ops if share is not None}
        activations = sum(pieces.kept[stage] * number for stage, number in self.kept.items())
        outputs, masks = self.outputs, self.kept.get(0, 0)
        if share is not None:
            for op in each.ops:
                came = op.kind != "F"  # its activations are of a forward before
                activations += pieces.kept[op.stage] * (share.kept / len(each.ops) - came)
                outputs -= op.kind in "BI" and self._is_end(op)
                masks += not came and not op.stage
            outputs += share.has_output
        parts = {
            **pieces.states,
            **(share.extra if share else {}),
            "activations": activations,
            "output": outputs * pieces.output,
            "embedding": min(masks, pieces.most_masks) * pieces.mask,
        }
        parts["gathered"] = parts.get("gathered", 0.0) + self._elsewhere(running)
        return {name: size for name, size in parts.items() if size}

    def _is_piped(self) -> bool:
        return any(stage.pp > 1 for stage in self.pieces.fsdp.values())

    def _is_end(self, op: Action) -> bool:
        return op.stage == self.last_stage

    def _ran(self, op: Action) -> None:
        forward = op.kind == "F"
        if op.kind != "I":
            self.kept[op.stage] = self.kept.get(op.stage, 0) + (1 if forward else -1)
        if op.kind != "W" and self._is_end(op):
            self.outputs += 1 if forward else -1
        self.before[op.stage] = behind(self.before.get(op.stage, ""), op.kind)

    # -- what FSDP has whole besides -------------------------------------------------------------

    def _elsewhere(self, running: set[int]) -> float:
        """Bytes of stages that no op runs now: what is whole of them, and sums."""
        fsdp = self.pieces.fsdp
        if not fsdp:
            return 0.0
        size = (
            self.pieces.partial
            if any("B" in each or "W" in each for each in self.before.values())
            else 0.0
        )
        for stage in self.before.keys() - running:
            size += fsdp[stage].left(self.before[stage])
        return size

    def _gather(self, actions: Sequence[Action]) -> None:
        for action in actions:
            before = self.before.get(action.stage, "").rstrip(CUT + GATHERED)
            self.before[action.stage] = before + (GATHERED if action.kind == "unshard" else CUT)

    def _runtime(self) -> dict[Action, list[Action]]:
        """What a runtime that gathers stages ahead does before each op; and the last op of each
        stage."""
        ops = [op for each in self.ops for op in each.ops]
        self.ends = {op.stage: op for op in ops if op.kind in "BW"}
        found: dict[Action, list[Action]] = {}
        if not any(stage.is_ahead for stage in self.pieces.fsdp.values()):
            return found
        waiting: list[Action] = []
        for action in with_gathers(ops):
            if action.kind in ("unshard", "reshard"):
                waiting.append(action)
            elif action.kind != "reduce":
                found[action], waiting = waiting, []
        return found

    def _reduced(self, op: Action, at: float) -> Iterator[OpMemory]:
        """What a pipeline's runtime does behind the last op of a stage."""
        fsdp = self.pieces.fsdp.get(op.stage)
        if fsdp is None or fsdp.pp == 1 or self.ends[op.stage] != op:
            return
        running = {op.stage}
        here = RankOp("reduce", (), at, at)
        parts = self._parts(here)
        others = self._elsewhere(running) + fsdp.reduced(self.before[op.stage])
        parts = {**parts, "gathered": float(others)}
        self.before[op.stage] = ""
        behind = Point(at, self._parts(here))
        yield OpMemory("reduce", at, at, (Point(at, parts), behind))


def fullest(pieces: Pieces, spec: ScheduleSpec, rank: int) -> dict[str, float]:
    """The parts at the fullest moment of a rank that runs a schedule.

    Of a step with more than MOST_ALONE ops a short one is played, or two where more are kept: with
    each p more micro-batches each part stays, or grows by the same bytes
    (training.pipeline.figures.counted).
    """
    if spec.num_run <= MOST_ALONE * spec.p:
        return _fullest(pieces, spec, rank)
    fewer, form = settled(spec), spec.rule.closed
    if form is not None and not form.keeps_outputs:
        return _fullest(pieces, replace(spec, m=fewer), rank)
    one, two = (_fullest(pieces, replace(spec, m=m), rank) for m in (fewer, fewer + spec.p))
    more = (spec.m - fewer) / spec.p
    return {name: size + (two[name] - size) * more for name, size in one.items()}


def _fullest(pieces: Pieces, spec: ScheduleSpec, rank: int) -> dict[str, float]:
    return Player(pieces, _ops_alone(spec, rank), spec.shape.stages).peak()


@kept
def _ops_alone(spec: ScheduleSpec, rank: int) -> tuple[RankOp, ...]:
    """The ops of a rank, without times."""
    plan, row = plan_of_rank(spec, rank)
    return tuple(ops_of_rank(plan, row))
