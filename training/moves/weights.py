"""The moves that turn the weights of one layout into those of another: slice by slice, and in
total.

For each rank of the target and each tensor that it holds, the slices of it and who sends them; and
totals, which are not sums over ranks and tensors but over a few arrays (`streams`).

    from training.moves import weight_moves
    moves = weight_moves(model, source, target, first_rank=64, rule="nearest")

>>> from groups.layout import Job
>>> from training.models import MODELS
>>> llama = MODELS["llama3-8b"].model
>>> actor, rollout = Job(tp=4, pp=2).layout(), Job(tp=2).layout()
>>> moves = weight_moves(llama, actor, rollout, rule="nearest")
>>> next(row for row in moves.rows(rank=5) if "linear_fc1.weight" in row.tensor).parts
((2, 0, 0, 3584), (3, 0, 3584, 3584), (2, 3584, 7168, 3584), (3, 3584, 10752, 3584))
>>> moves.bytes.between_nodes, round(moves.bytes.same_gpu / sum(moves.bytes), 3)
(0, 0.125)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from groups.errors import not_a_choice
from groups.layout import Layout
from groups.mesh import whole_number

from ..errors import refusal
from ..model import Model
from ..split import Dealing
from .fsdp import Sharded
from .gathered import Gathers, InOwnCopy
from .rows import RankSlices, TensorMove
from .senders import GATHERING, RULES, First, Megatron, Nearest, Senders
from .sharded import ShardedModel, beginnings, usual_dealing
from .streams import Fan, Stream, Streams, Sums, add_fan_to

MOST_CELLS = 4096
"""The most rows of a matrix, whose square an answer may hold."""


class Bytes(NamedTuple):
    """Bytes that ranks have or receive, by where they come from: what those of the target need, or
    where tensors are gathered all that passes."""

    same_gpu: int
    in_node: int
    between_nodes: int


class Least(NamedTuple):
    """Bytes that must move under any rule: received by the rank that lacks most, and entering the
    node that lacks most, each counted once."""

    into_gpu: int
    into_node: int


@dataclass(frozen=True, eq=False)
class Moves:
    """The moves from one side to the other by one rule, made by `weight_moves`."""

    source: ShardedModel
    target: ShardedModel
    rule: str
    senders: Senders
    element_bytes: int
    node: int = 0
    """GPUs of a node that both sides stand on; 0: of the sides' own."""

    @property
    def is_fsdp(self) -> bool:
        """Whether data parallelism shards the tensors of a side."""
        return self.source.fsdp or self.target.fsdp

    @property
    def gathers(self) -> bool:
        """Whether GPUs receive whole tensors on the way, so that more moves than they keep."""
        return self.rule in GATHERING

    @cached_property
    def _slices(self) -> RankSlices:
        return RankSlices(self.source, self.target, self.senders, self.element_bytes)

    @property
    def streams(self) -> Iterable[Stream | Fan]:
        """The moves as arrays."""
        if self.gathers:
            by_stage = self.rule == "slime"
            return Gathers(self.source, self.target, by_stage, self.element_bytes)
        if self.is_fsdp:
            sides = self.source, self.target
            return Sharded(*sides, self.senders).streams(self.element_bytes)
        sides = self.source, self.target
        return Streams(*sides, self.senders, self.element_bytes, passes_on=self.rule == "first")

    @property
    def model(self) -> Model:
        return self.source.model

    @property
    def ranks(self) -> int:
        """The number of ranks of both sides, from 0 on."""
        return max(self.source.after, self.target.after)

    # -- slices ----------------------------------------------------------------------------------

    def rows(self, rank: int | None = None) -> Iterator[TensorMove]:
        """The tensors of one rank of the target, or of all its ranks in order.

        Errors: LayoutError for a rank that the target does not have.
        """
        first, after = self.target.first_rank, self.target.after
        if rank is None:
            for each in range(first, after):
                yield from self._slices.of(each - first)
            return
        number = whole_number(rank, "rank", minimum=0)
        if not first <= number < after:
            near = {"rank": min(max(number, first), after - 1)}
            raise refusal("no-such-rank", "rank", near, rank=number, first=first, last=after - 1)
        yield from self._slices.of(number - first)

    # -- sums ------------------------------------------------------------------------------------

    @cached_property
    def _sums(self) -> tuple[Bytes, np.ndarray, Least]:
        """Sums over the streams; the least bytes are those of the rule nearest."""
        sums, counts_into = Sums(self.nodes), self.rule == "nearest"
        for stream in self.streams:
            if isinstance(stream, Fan):
                sums.add_fan(stream, counts_into=counts_into)
            else:
                sums.add(stream, counts_into=counts_into)
        near, far = (int(sums.by_rank[row].sum()) for row in (1, 3))
        lacking = sums.by_rank[1] + sums.by_rank[3]
        least = Least(int(lacking.max()), int(sums.into.max()))
        return Bytes(sums.stays, near, far), sums.by_rank, least

    @property
    def bytes(self) -> Bytes:
        """Bytes that the target needs: on the same GPU already, from the node, between nodes."""
        return self._sums[0]

    def sent(self, *, far: bool) -> np.ndarray:
        """Bytes that each rank sends within its node, or to others: int64, shape (ranks,)."""
        return np.asarray(self._sums[1][2 if far else 0])

    def received(self, *, far: bool) -> np.ndarray:
        """Bytes that each rank receives from its node, or from others: int64, shape (ranks,)."""
        return np.asarray(self._sums[1][3 if far else 1])

    def matrix(self, by: str = "node", rows: np.ndarray | None = None) -> np.ndarray:
        """Bytes from row to column, int64, by "node" or by "rank"; bytes that stay are on the
        diagonal.

        rows: the row of each node or rank, -1 for none; by default each has a separate row.

        Errors: LayoutError for more rows than MOST_CELLS, and for any other ``by``.
        """
        if by not in ("node", "rank"):
            raise not_a_choice("by", by, ("node", "rank"))
        cells = self.nodes if by == "node" else np.arange(self.ranks)
        if rows is not None:
            cells = rows[cells]
        size = int(cells.max()) + 1
        if size > MOST_CELLS:
            fixes = [{"by": "node"}] if by == "rank" and self.nodes.max() < MOST_CELLS else []
            raise refusal("matrix-too-large", "by", *fixes, by=by, cells=size, limit=MOST_CELLS)
        sent = np.zeros((size, size), dtype=np.int64)
        for stream in self.streams:
            if isinstance(stream, Fan):
                add_fan_to(sent, stream, cells)
                continue
            ends = cells[stream.sources], cells[stream.targets]
            inside = (ends[0] >= 0) & (ends[1] >= 0)
            flat = (ends[0] * size + ends[1])[inside]
            np.add.at(sent.reshape(-1), flat, stream.bytes[inside])
        return sent

    @cached_property
    def nodes(self) -> np.ndarray:
        """The node of each rank: int64, shape (ranks,). If the target's nodes have another size,
        they are numbered after those of the source."""
        ranks = np.arange(self.ranks)
        here, there = (side.layout.gpus_per_node for side in (self.source, self.target))
        if self.node:
            return np.asarray(ranks // self.node)
        if here == there:
            return np.asarray(ranks // here)
        behind = -(-self.target.first_rank // here)
        later = behind + (ranks - self.target.first_rank) // there
        return np.where(ranks < self.target.first_rank, ranks // here, later)

    @cached_property
    def least(self) -> Least:
        """Bytes that must move under any rule.

        A rank receives the bytes that it lacks; a node receives once the bytes that all its ranks
        lack, and its ranks pass them on.
        """
        if self.rule == "nearest":
            return self._sums[2]
        return _moves(self.source, self.target, "nearest", self.element_bytes, 0, self.node).least


def weight_moves(
    model: Model,
    source: Layout,
    target: Layout,
    first_rank: int = 0,
    rule: str = "megatron",
    *,
    dealings: Sequence[Dealing | None] = (None, None),
    padded: bool = False,
    fsdp: Sequence[bool] = (False, False),
    element_bytes: int = 2,
    rack: int = 0,
    source_rank: int = 0,
    node: int = 0,
) -> Moves:
    """The moves of a model's weights from one layout to another.

    first_rank, source_rank: first GPU of the target and of the source; both 0: the same GPUs. rule:
    one of RULES. dealings: how each side assigns layers to stages; None: as Megatron, or nearly
    equally if pp does not divide them. padded: each side pads the vocabulary to a multiple of 128 *
    tp, as Megatron does; padding that only the target has is not sent. fsdp: for each side, whether
    dp cuts its tensors too. element_bytes: bytes of a number, 2 for bf16. rack: GPUs that NVLink
    joins, for rule nearest.

    >>> from groups.layout import Job
    >>> from training.models import MODELS
    >>> layout = Job(nodes=2, tp=4, pp=2).layout()
    >>> same = weight_moves(MODELS["llama3-8b"].model, layout, layout)
    >>> same.bytes.in_node, same.bytes.between_nodes
    (0, 0)

    Errors: LayoutError for an unknown rule, sizes that do not cut the model evenly, and
    nodes of two sizes on one cluster.
    """
    if rule not in RULES:
        raise not_a_choice("rule", rule, RULES)
    begin, first = beginnings(source, target, source_rank, first_rank, one_size=bool(node))
    here, there = (
        ShardedModel(
            model, layout, start, dealing or usual_dealing(model.layers, layout), padded, cut
        )
        for layout, start, dealing, cut in zip((source, target), (begin, first), dealings, fsdp)
    )
    return _moves(here, there, rule, element_bytes, rack, node)


def _moves(
    source: ShardedModel, target: ShardedModel, rule: str, element_bytes: int, rack: int, node: int
) -> Moves:
    senders: Senders
    if rule == "nearest":
        each = node or source.layout.gpus_per_node
        senders = Nearest(source, target, (each, *([rack] if rack > each else ())))
    else:
        senders = _SENDERS[rule](source, target)
    return Moves(source, target, rule, senders, element_bytes, node)


_SENDERS: dict[str, Callable[[ShardedModel, ShardedModel], Senders]] = {
    "megatron": Megatron,
    "first": First,
    "verl": InOwnCopy,
    "slime": InOwnCopy,
}
