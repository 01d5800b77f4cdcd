"""Who sends: rules that choose, for ranks that receive, one of the ranks that hold what they lack.

    megatron   what a rank has itself first; else the data parallel groups that hold the tensor take
               turns by the receiver's number, then the members of one. Parts come from the tensor
               parallel group of that member.
    nearest    the holder that is closest to the receiver, part by part: itself, its node, its rack;
               those that are equally close take turns by the copy that receives
    first      itself, else the lowest rank that holds the part; copies pass it on
    verl       tensors are gathered whole on the way, and no sender is chosen (`gathered`)
    slime

Source of the first: NVIDIA/Megatron-LM d98e8a6, megatron/core/resharding/planner.py and utils.py,
select_src_metadata_balanced. Where it is not followed, because its plan would not arrive:

    experts, other ep, same dp groups   _finalize_dp_transfers copies from the rank itself wherever
        both sides have the same data parallel groups. With another ep that rank has other experts,
        and etp 1 on both sides is not tensor parallel. Here the member that was chosen sends.
    gated experts, other etp            the plan takes the stride that a parameter is stamped with.
        TEGroupedLinear stamps 1, which would lay gate 0, up 0, gate 1, up 1 where gate, up is
        wanted. Here gate and up are cut each by itself, as with stride 2.
    padded vocabularies of two sizes    are refused there; here rows that both sides have move.

As slime and checkpoint engines send: THUDM/slime 624b824
slime/backends/megatron_utils/update_weight/expert_routing.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np

from .sharded import Home, ShardedModel, slots

CHOOSING = ("nearest", "megatron", "first")
GATHERING = ("verl", "slime")
RULES = (*CHOOSING, *GATHERING)
"""All rules; page, command and endpoints begin with the first."""


@dataclass(frozen=True)
class Wish:
    """Requests of receivers for places of one home, as arrays with one entry per receiver.

    at: receivers, counted from the first rank of the target. part: the requested part of tensors
    that tensor parallelism cuts; None for whole tensors. ep_rank: the expert rank of the source;
    None: dense.
    """

    home: Home
    at: np.ndarray
    part: np.ndarray | None = None
    ep_rank: np.ndarray | None = None

    @property
    def is_expert(self) -> bool:
        return self.ep_rank is not None


@dataclass(frozen=True)
class Holders:
    """The ranks that hold each shard of a home, ascending: int64, shape (shards, copies)."""

    ranks: np.ndarray
    limit: int  # larger than any rank

    @cached_property
    def _keys(self) -> np.ndarray:
        return (self.ranks + np.arange(len(self.ranks))[:, None] * self.limit).reshape(-1)

    def between(self, shard: np.ndarray, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """The copies of a shard on ranks in [start, stop), as a pair of indices for each shard."""
        start, stop = (np.clip(ends, 0, self.limit - 1) for ends in (start, stop))
        ends = np.stack((start, stop)) + shard * self.limit
        return np.searchsorted(self._keys, ends) - shard * self.ranks.shape[1]


class Senders(ABC):
    """A rule that chooses senders on one side for receivers on another."""

    def __init__(self, source: ShardedModel, target: ShardedModel) -> None:
        self.source, self.target = source, target

    @abstractmethod
    def of(self, wish: Wish) -> np.ndarray:
        """The rank that sends to each receiver: int64, shape (receivers,)."""

    def has(self, wish: Wish) -> np.ndarray:
        """Whether each receiver already holds what it needs: bool, shape (receivers,)."""
        source = self.source
        ranks = wish.at + self.target.first_rank - source.first_rank
        inside = (ranks >= 0) & (ranks < source.ranks)
        ranks = np.where(inside, ranks, 0)
        inside &= np.isin(source.pp_at[ranks], wish.home)
        if wish.ep_rank is not None:
            inside &= source.ep_at[ranks] == wish.ep_rank
        if wish.part is not None:
            parts = source.etp_at if wish.is_expert else source.tp_at
            inside &= parts[ranks] == wish.part
        return inside

    def _itself_or(self, wish: Wish, other: np.ndarray) -> np.ndarray:
        return np.where(self.has(wish), wish.at + self.target.first_rank, other)


class _ByShard(Senders):
    """Rules that choose among the holders of one shard."""

    def __init__(self, source: ShardedModel, target: ShardedModel) -> None:
        super().__init__(source, target)
        self._held = lru_cache(maxsize=None)(self._held_by)

    def holders(self, wish: Wish) -> tuple[Holders, np.ndarray]:
        """The holders of all needed shards, and the shard that each receiver needs."""
        part = 0 if wish.part is None else wish.part
        is_cut = wish.part is not None
        holders = self._held(wish.home, wish.is_expert, is_cut)
        if wish.ep_rank is not None:
            part = wish.ep_rank * (self.source.etp if is_cut else 1) + part
        return holders, np.broadcast_to(part, wish.at.shape)

    def _held_by(self, home: Home, is_expert: bool, is_cut: bool) -> Holders:
        source = self.source
        ranks = np.flatnonzero(np.isin(source.pp_at, home))
        shard, shards = np.zeros_like(ranks), 1
        if is_expert:
            shard, shards = source.ep_at[ranks], source.ep
        if is_cut:
            parts = source.etp if is_expert else source.tp
            at = source.etp_at if is_expert else source.tp_at
            shard, shards = shard * parts + at[ranks], shards * parts
        in_order = ranks[np.argsort(shard, kind="stable")] + source.first_rank
        return Holders(in_order.reshape(shards, -1), max(source.after, self.target.after) + 1)


class First(_ByShard):
    def of(self, wish: Wish) -> np.ndarray:
        holders, shard = self.holders(wish)
        return self._itself_or(wish, holders.ranks[shard, 0])


class Nearest(_ByShard):
    """domains: sizes in GPUs of the nested domains, closest first: a node, a rack."""

    def __init__(
        self, source: ShardedModel, target: ShardedModel, domains: tuple[int, ...]
    ) -> None:
        super().__init__(source, target)
        self.domains = domains

    def of(self, wish: Wish) -> np.ndarray:
        holders, shard = self.holders(wish)
        ranks, turn = wish.at + self.target.first_rank, self._turn(wish)
        chosen = turn % holders.ranks.shape[1]
        for domain in reversed(self.domains):
            first = ranks // domain * domain
            start, stop = holders.between(shard, first, first + domain)
            count = stop - start
            chosen = np.where(count > 0, start + turn % np.maximum(count, 1), chosen)
        return self._itself_or(wish, holders.ranks[shard, chosen])

    def _turn(self, wish: Wish) -> np.ndarray:
        """The index of a receiver among all that need its shard: copy by copy, within a copy part
        by part."""
        source, target, at = self.source, self.target, wish.at
        if wish.part is None and not wish.is_expert:
            return np.asarray(target.stage_copy[at])
        if not wish.is_expert:
            wanting = -(-target.tp // source.tp)
            return np.asarray(target.dense_copy[at] * wanting + target.tp_at[at] % wanting)
        spread = -(-target.ep // source.ep)
        copy = target.expert_copy[at] * spread + target.ep_at[at] % spread
        wanting = target.etp if wish.part is None else -(-target.etp // source.etp)
        return np.asarray(copy * wanting + target.etp_at[at] % wanting)


@dataclass(frozen=True)
class _Candidates:
    """Holders of a tensor in the order of Megatron's turns: those of one shard by data parallel
    group, within a group by rank. groups: the first group of each shard, then the end."""

    ranks: np.ndarray
    starts: np.ndarray
    counts: np.ndarray
    groups: np.ndarray

    def turn(self, shard: np.ndarray, receiver: np.ndarray) -> np.ndarray:
        groups = self.groups[shard + 1] - self.groups[shard]
        group = self.groups[shard] + receiver % groups
        member = np.where(groups == 1, 0, receiver // groups % self.counts[group])
        return np.asarray(self.ranks[self.starts[group] + member])


class Megatron(Senders):
    def __init__(self, source: ShardedModel, target: ShardedModel) -> None:
        super().__init__(source, target)
        self._candidates = lru_cache(maxsize=None)(self._found)

    def of(self, wish: Wish) -> np.ndarray:
        source = self.source
        shard = np.zeros_like(wish.at) if wish.ep_rank is None else wish.ep_rank
        candidates = self._candidates(wish.home, wish.is_expert)
        other = candidates.turn(shard, wish.at + self.target.first_rank)
        owner = self._itself_or(Wish(wish.home, wish.at, None, wish.ep_rank), other)
        if wish.part is None:
            return owner
        at = source.etp_at if wish.is_expert else source.tp_at
        stride = source.etp_stride if wish.is_expert else source.tp_stride
        return np.asarray(owner + (wish.part - at[owner - source.first_rank]) * stride)

    def _found(self, home: Home, is_expert: bool) -> _Candidates:
        source = self.source
        ranks = np.flatnonzero(np.isin(source.pp_at, home))
        shard = source.ep_at[ranks] if is_expert else np.zeros_like(ranks)
        group = source.dp_group[ranks]
        order = np.lexsort((ranks, group, shard))
        ranks, shard, group = ranks[order], shard[order], group[order]
        is_start = np.diff(shard, prepend=-1) | np.diff(group, prepend=-1)
        starts = np.flatnonzero(is_start)
        counts = np.diff(np.append(starts, len(ranks)))
        shards = source.ep if is_expert else 1
        groups = np.searchsorted(shard[starts], np.arange(shards + 1))
        return _Candidates(ranks + source.first_rank, starts, counts, groups)


@dataclass(frozen=True)
class Meeting:
    """The runs of the source's experts that each expert parallel rank of the target needs.

    ep_ranks: int64, shape (target's ep, most source ranks per target rank), padded with -1. shared:
    the number of common experts, in the same shape.
    """

    ep_ranks: np.ndarray
    shared: np.ndarray = field(repr=False)

    @classmethod
    def of(cls, source: ShardedModel, target: ShardedModel) -> Meeting:
        starts, ends = source.expert_starts[:-1], source.expert_starts[1:]
        meets, counts = [], []
        for rank in range(target.ep):
            own = target.experts_of(rank)
            inside = np.minimum(ends, own.stop) - np.maximum(starts, own.start)
            found = np.flatnonzero(inside > 0)
            meets.append(found.tolist())
            counts.append(inside[found].tolist())
        return cls(slots(meets), slots(counts))
