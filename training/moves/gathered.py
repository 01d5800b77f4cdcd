"""Weights that are gathered whole on their way: what the collectives of verl and slime carry.

    verl    every rank that trains gathers every tensor: stages hand theirs on over pp, then come
            ep, tp and etp. A GPU that trains and serves takes its part of what it then has; a
            server on other GPUs receives all of it from the first rank
    slime   servers on the same GPUs: as verl. On others: the ranks of a stage gather its tensors
            over tp, ep and etp, and the first rank of each stage sends them whole to all servers

Each collective is a ring in the order of ranks: of what n ranks hold in equal parts a rank receives
(n - 1) / n from the rank before it, and a broadcast passes from one receiver to the next. So a rank
that trains ends up with the model less what it held, whatever the other layout needs of it.

`Moves.rows` has what the other layout keeps, and which rank of the receiver's own copy held it; the
totals are what the collectives carry, which is more.

Source: volcengine/verl 1dda039, verl/utils/megatron_utils.py, per_tensor_generator, and
verl/checkpoint_engine/nccl_checkpoint_engine.py; THUDM/slime abdc4353,
slime/backends/megatron_utils/update_weight/update_weight_from_distributed.py and
update_weight_from_tensor.py, which gathers on all ranks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from groups.budget import spend
from groups.mesh import Mesh

from .senders import Senders, Wish
from .sharded import ShardedModel
from .streams import Stream
from .tensors import Place, Tensor, tensors_of


class InOwnCopy(Senders):
    """The rank that holds a part in the copy of the model that the receiver itself belongs to; in
    the first copy for receivers that do not train."""

    def of(self, wish: Wish) -> np.ndarray:
        source = self.source
        own = wish.at + self.target.first_rank - source.first_rank
        own = np.where((own >= 0) & (own < source.ranks), own, 0)
        stage = np.where(np.isin(source.pp_at[own], wish.home), source.pp_at[own], wish.home[0])
        holder = own + (stage - source.pp_at[own]) * source.stride(source.layout.mesh, "pp")
        if wish.ep_rank is not None:
            holder = holder + (wish.ep_rank - source.ep_at[own]) * _ep_stride(source)
        if wish.part is not None:
            at = source.etp_at if wish.is_expert else source.tp_at
            stride = source.etp_stride if wish.is_expert else source.tp_stride
            holder = holder + (wish.part - at[own]) * stride
        return np.asarray(holder + source.first_rank)


def _ep_stride(source: ShardedModel) -> int:
    expert = source.layout.expert
    return 0 if expert is None else source.stride(expert, "ep")


class _Sizes(NamedTuple):
    """Elements of some places: dense, of one expert; each whole on every rank, and cut by tp."""

    whole: np.ndarray
    cut: np.ndarray
    expert_whole: np.ndarray
    expert_cut: np.ndarray


@dataclass(frozen=True, eq=False)
class Gathers:
    """The moves between two sides by collectives, in a few arrays."""

    source: ShardedModel
    target: ShardedModel
    by_stage: bool
    element_bytes: int

    def __iter__(self) -> Iterator[Stream]:
        source, target = self.source, self.target
        spend(2 + (source.ranks + target.ranks) // 4, "ranks", control="nodes")
        ranks = np.arange(target.ranks) + target.first_rank
        outside = ranks[(ranks < source.first_rank) | (ranks >= source.after)]
        stages = [self._sizes(set(places)) for places in source.places]
        in_stage = _Sizes(*(np.array(of)[source.pp_at] for of in zip(*stages)))
        if self.by_stage and len(outside):
            yield from self._gathered(in_stage, in_stage)
            yield from self._by_stage(outside)
            return
        whole = self._sizes({place for places in source.places for place in places})
        yield from self._gathered(in_stage, whole)
        if len(outside):
            yield self._chain(source.first_rank, outside, whole)

    # -- elements ----------------------------------------------------------------------------------

    def _sizes(self, places: set[Place]) -> _Sizes:
        """The elements of some places, with the padding of a vocabulary that is cut."""
        source, sums = self.source, [0, 0, 0, 0]
        for tensor, count in self._counted(places):
            length = source.length(tensor) * tensor.elements // tensor.shape[tensor.axis or 0]
            sums[2 * tensor.expert + (tensor.axis is not None)] += count * length
        return _Sizes(*map(np.asarray, sums))

    def _counted(self, places: set[Place]) -> Iterator[tuple[Tensor, int]]:
        """The tensors of places, each kind of layer once, with the number of such layers."""
        model = self.source.model
        kinds = Counter(model.numbers[one] if isinstance(one, int) else one for one in places)
        shown = {model.numbers[one] if isinstance(one, int) else one: one for one in places}
        for kind, count in kinds.items():
            for tensor in tensors_of(model, shown[kind]):
                yield tensor, count

    # -- gathering ---------------------------------------------------------------------------------

    def _gathered(self, held: _Sizes, wanted: _Sizes) -> Iterator[Stream]:
        """What each rank holds of its stage, and what reaches it of ``wanted``, group by group."""
        source = self.source
        mesh = source.layout.mesh
        expert = source.layout.expert or mesh
        experts = np.diff(source.expert_starts)[source.ep_at]
        others = source.model.experts - experts
        part = self._part(held, experts)
        yield from self._over_dp(part, experts) if source.fsdp else [self._stays(part)]
        yield self._ring(mesh, "pp", source.pp_at, self._part(wanted, experts) - part)
        yield self._ring(mesh, "tp", source.tp_at, wanted.cut - wanted.cut // source.tp)
        of_one = wanted.expert_cut // source.etp
        yield self._ring(expert, "ep", source.ep_at, others * (wanted.expert_whole + of_one))
        cut = source.model.experts * (wanted.expert_cut - of_one)
        axis = "tp" if source.layout.expert is None else "etp"
        yield self._ring(expert, axis, source.etp_at, cut)

    def _part(self, sizes: _Sizes, experts: np.ndarray) -> np.ndarray:
        """Elements of each rank's tp and ep part, before data parallelism cuts it."""
        of_one = sizes.expert_whole + sizes.expert_cut // self.source.etp
        return np.asarray(sizes.whole + sizes.cut // self.source.tp + experts * of_one)

    def _over_dp(self, part: np.ndarray, experts: np.ndarray) -> Iterator[Stream]:
        """What each rank holds of its part where data parallelism cuts it, and the rest of it."""
        source, ranks = self.source, np.arange(self.source.ranks)
        held, lacks = np.zeros_like(part), (np.zeros_like(part), np.zeros_like(part))
        for stage, places in enumerate(source.places):
            here = source.pp_at == stage
            for tensor, count in self._counted(set(places)):
                begin, end = source.run(tensor, source.place(tensor))
                length = source.length(tensor) * tensor.elements // tensor.shape[tensor.axis or 0]
                each = length // source.parts(tensor) // source.rows(tensor)
                times = count * each * (experts if tensor.expert else 1) * here
                held += times * (end - begin)
                lacks[tensor.expert][:] += times * (source.rows(tensor) - (end - begin))
        yield self._stays(held)
        dense = source.pp_at * source.tp + source.tp_at
        routed = (source.pp_at * source.ep + source.ep_at) * source.etp + source.etp_at
        for key, index, lacking in (
            (dense, source.dense_copy, lacks[0]),
            (routed, source.expert_copy, lacks[1]),
        ):
            copy = index // max(1, (int(index.max()) + 1) // source.copies)
            yield self._stream(_before(key * source.copies + copy), ranks, lacking)

    def _stays(self, held: np.ndarray) -> Stream:
        """What the ranks that also serve hold already."""
        ranks = np.arange(self.source.ranks)
        target = ranks + self.source.first_rank - self.target.first_rank
        ranks = ranks[(target >= 0) & (target < self.target.ranks)]
        return self._stream(ranks, ranks, held[ranks])

    def _ring(self, mesh: Mesh, axis: str, at: np.ndarray, elements: np.ndarray) -> Stream:
        """Elements that reach each rank from the one before it on an axis."""
        ranks, size = np.arange(self.source.ranks), int(at.max()) + 1
        before = ranks + ((at - 1) % size - at) * self.source.stride(mesh, axis)
        return self._stream(before, ranks, elements)

    def _stream(self, sources: np.ndarray, targets: np.ndarray, elements: np.ndarray) -> Stream:
        amount = np.broadcast_to(elements, targets.shape) * self.element_bytes
        first = self.source.first_rank
        return Stream(sources + first, targets + first, amount, np.zeros_like(targets))

    # -- to servers on other GPUs ------------------------------------------------------------------

    def _by_stage(self, targets: np.ndarray) -> Iterator[Stream]:
        """Whole tensors from the first rank of each stage, each from the first that has it."""
        sent: set[Place] = set()
        for stage, places in enumerate(self.source.places):
            sender = int(np.flatnonzero(self.source.pp_at == stage)[0]) + self.source.first_rank
            yield self._chain(sender, targets, self._sizes(set(places) - sent))
            sent |= set(places)

    def _chain(self, sender: int, targets: np.ndarray, sizes: _Sizes) -> Stream:
        """All of some places from a rank to the first target, and from each target to the next."""
        experts = self.source.model.experts
        elements = sizes.whole + sizes.cut + experts * (sizes.expert_whole + sizes.expert_cut)
        amount = np.full(len(targets), int(elements) * self.element_bytes)
        return Stream(np.append(sender, targets[:-1]), targets, amount, np.zeros_like(targets))


def _before(keys: np.ndarray) -> np.ndarray:
    """The index of the entry before each among those of the same key; before the first, the last.

    >>> _before(np.array([3, 5, 3, 3])).tolist()
    [3, 1, 0, 2]
    """
    order = np.argsort(keys, kind="stable")
    starts = np.flatnonzero(np.diff(keys[order], prepend=keys[order[0]] - 1))
    ends = np.append(starts[1:], len(keys)) - 1
    rolled = np.roll(order, 1)
    rolled[starts] = order[ends]
    before = np.empty_like(order)
    before[order] = rolled
    return before
