"""Which op of a pipeline each transfer of a step belongs to, and what one op sends.

    forward    what layers send as they compute; what goes on to the next stage; weights that are
               gathered for it
    backward   the same on the way back; what is computed again; weights gathered again, and
               gradients that are reduced every micro-batch
    weights    gathers of a saved input, while gradients of weights are computed: of W, where a
               backward is cut into I and W
    behind     once a step: gradients, parameters, what stages share

A rank's n ops of a kind share its transfers evenly, but for the ends of the model (embedding,
output layer, loss), which the first and the last stage alone run, and for stages that send nothing
on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..pipeline.plan import B, F, I, W
from .per_step import Traffic

ONCE_BESIDE = ("last_backward", "first_forward")
"""What hides the transfers that run once a step."""

FORWARD = frozenset(
    (("", "forward"), ("", "loss"), ("pp", "activations"), ("reduce_scatter", "embedding"),
     ("all_reduce", "embedding"), ("all_gather", "output"))
)  # fmt: skip
BACKWARD = frozenset(
    (("", "backward"), ("", "recompute"), ("", "regather"), ("", "output_regather"),
     ("", "parameters_again"), ("pp", "gradients"), ("all_gather", "embedding"),
     ("reduce_scatter", "output"), ("all_reduce", "output"))
)  # fmt: skip
"""What transfers are for, with their kind or operation where that alone does not tell."""

ENDS = {"embedding": 0, "output": -1, "output_regather": -1, "loss": -1}
"""The stage of the model that alone runs a transfer: the first, or the last."""


@dataclass(frozen=True)
class OpTransfer:
    """Operations of one kind in one op of a rank: how many, and their seconds at link speed.

    Attributes:
        row: the transfer of the whole step that they are a part of.
        count: operations in the op.
        seconds: that the links need for all of them.
        sent: bytes that the rank sends in them.
    """

    row: Traffic
    count: float
    seconds: float
    sent: float

    @property
    def each(self) -> float:
        """Seconds of one operation."""
        return self.seconds / self.count


def kinds_of(row: Traffic) -> tuple[int, ...]:
    """The kinds of op (training.pipeline.plan) that a transfer belongs to; none: it runs once."""
    if row.beside in ONCE_BESIDE:
        return ()
    names = {("", row.what), (row.kind, row.what), (row.operation, row.what)}
    if names & FORWARD or row.beside == "forward":
        return (F,)
    if names & BACKWARD or row.beside == "backward":
        return (B, W) if row.beside == "weights" else (B, I)
    return ()


Op = tuple[int, int]
"""An op of a rank: its kind, and the stage of the model that it runs."""


def in_op(
    rows: Iterable[Traffic], rank: int, op: Op, ops: Sequence[Op], last: int
) -> list[OpTransfer]:
    """What one op of a pipeline rank sends, the longest first.

    rank: its place in the pipeline; ops: all of the rank's; last: the last stage of the model.

    >>> from groups.megatron import groupings
    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> from training.recipe import Training
    >>> from training.split import Split
    >>> from .per_step import traffic
    >>> rows = traffic(MODELS["llama3-8b"].model, Split(tp=2, pp=2), Training(micro_batches=2),
    ...                groupings(4, tp=2, pp=2), CLUSTERS["dgx-h100"], gpus_per_node=4)
    >>> for one in in_op(rows, 0, (F, 0), [(F, 0), (F, 0), (B, 0), (B, 0)], last=1)[:3]:
    ...     print(one.row.kind, one.row.what, one.row.operation, one.count)
    tp forward all_gather 32.0
    tp forward reduce_scatter 32.0
    tp embedding reduce_scatter 1.0
    """
    found = []
    for row in rows:
        kinds = kinds_of(row)
        runs = [each for each in ops if each[0] in kinds and _sends(row, each, last)]
        if op in runs and row.counts[rank]:
            found.append(_part(row, rank, 1.0 / len(runs)))
    return sorted(found, key=lambda one: -one.seconds)


def behind(rows: Iterable[Traffic], rank: int) -> list[OpTransfer]:
    """What a pipeline rank sends once a step, the longest first."""
    once = (row for row in rows if not kinds_of(row) and row.counts[rank])
    return sorted((_part(row, rank, 1.0) for row in once), key=lambda one: -one.seconds)


def _part(row: Traffic, rank: int, part: float) -> OpTransfer:
    counts, times, sent = row.counts[rank], row.times[rank], row.by_stage[rank]
    return OpTransfer(row, part * counts, part * times, part * sent)


def _sends(row: Traffic, op: tuple[int, int], last: int) -> bool:
    """Whether ops of a stage have a part in a transfer."""
    _, stage = op
    if row.what in ENDS:
        return stage == (0 if ENDS[row.what] == 0 else last)
    if row.kind == "pp":
        return stage != (last if row.what == "activations" else 0)
    return True
