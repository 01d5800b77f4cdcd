"""Weights that data parallelism cuts too (FSDP, ZeRO-3): each rank holds a run of a tensor's rows.

Tensor parallelism gives each rank a part of a tensor. That part is cut further, along axis 0, over
the ranks that would otherwise hold copies of it: dp and cp for dense tensors, edp for experts. Each
of them holds rows / ranks rows, rounded up, so that the last ones may hold fewer or none, as
torch.chunk cuts (pytorch/pytorch, torch/distributed/fsdp/_fully_shard/_fsdp_common.py,
_chunk_with_empty). A tensor that tensor parallelism cuts along axis 1 is cut along both axes.

Every element is held by one rank of a copy only; a tensor that tp copies, by one rank for each tp
coordinate. So there is no sender to choose: a rank receives from the ranks with its own tp
coordinate. Of HSDP's copies, each cut over its own ranks, it receives from the one that it is in
itself, or the copies take turns.

Totals are worked out without listing pairs of ranks. If the target is not cut, every rank that
needs a part receives all of its runs: a `Fan`, whose sums are products of counts. If it is cut too,
each run is sent to the runs of the target that overlap it: one array for each overlap.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from groups.budget import spend

from .senders import First, Senders, Wish
from .sharded import Home, Overlap, ShardedModel, overlap_of
from .streams import Fan, Stream
from .tensors import Tensor, tensors_of


class Slices(NamedTuple):
    """Slices of one tensor, one entry per receiver, as int64 arrays; a length of 0 means none.

    start, to, length: start in the source, start in the target, and length, along the axis that
    tensor parallelism cuts, or along the rows if it cuts none. row_start, row_to, rows: the same
    along axis 0 if that axis is 1; otherwise rows is 0.
    """

    at: np.ndarray
    sources: np.ndarray
    start: np.ndarray
    to: np.ndarray
    length: np.ndarray
    row_start: np.ndarray
    row_to: np.ndarray
    rows: np.ndarray
    run: np.ndarray  # the run of the source that holds them


def cut_axis(tensor: Tensor, source: ShardedModel, target: ShardedModel) -> int:
    """The axis of the slices: 1 if tensor parallelism cuts axis 1, else 0 (rows)."""
    return 1 if tensor.axis == 1 and max(source.parts(tensor), target.parts(tensor)) > 1 else 0


class Sharded:
    """The moves between two sides, at least one of which data parallelism shards too."""

    def __init__(self, source: ShardedModel, target: ShardedModel, senders: Senders) -> None:
        self.source, self.target, self.senders = source, target, senders
        self._owners = First(source, target)
        self._lane = lru_cache(maxsize=None)(self._lane_of)

    def slices(
        self, home: Home, tensor: Tensor, at: np.ndarray, ep_rank: np.ndarray | None = None
    ) -> Iterator[Slices]:
        """The slices of a tensor that receivers need. ep_rank: expert rank of the source."""
        source, target = self.source, self.target
        overlap, axis = _overlap(tensor, source, target), cut_axis(tensor, source, target)
        blocks = tensor.blocks if max(overlap.source_parts, overlap.target_parts) > 1 else 1
        own = _parts(target, tensor)[at]
        begin, end = target.run(tensor, target.place(tensor)[at])
        each = source.run_length(tensor)
        meets = [overlap.meet(part) for part in range(target.parts(tensor))]
        firsts, stops = (np.array(ends)[own] for ends in zip(*((m.start, m.stop) for m in meets)))
        for block in range(blocks):
            for slot in range(int((stops - firsts).max(initial=0))):
                part = firsts + slot
                low = np.maximum(part * overlap.held, own * overlap.wanted)
                high = np.minimum((part + 1) * overlap.held, (own + 1) * overlap.wanted)
                start, to = ((block - part) * overlap.held, (block - own) * overlap.wanted)
                none = np.where(part < stops, np.maximum(high - low, 0), 0)
                if axis == 1:  # whole columns, of the rows that both sides have
                    cut = (low + start, low + to, none)
                    yield from self._by_run(
                        home, tensor, at, part, ep_rank, begin, end, 0, each, cut
                    )
                else:
                    rows = np.maximum(low + to, begin), np.minimum(low + to + none, end)
                    yield from self._by_run(
                        home, tensor, at, part, ep_rank, *rows, start - to, each, None
                    )

    def _by_run(
        self,
        home: Home,
        tensor: Tensor,
        at: np.ndarray,
        part: np.ndarray,
        ep_rank: np.ndarray | None,
        begin: np.ndarray,
        end: np.ndarray,
        shift: np.ndarray | int,
        each: int,
        columns: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    ) -> Iterator[Slices]:
        """Rows from begin to end of the target's part, by the runs of the source that hold them."""
        own_start, _ = self.target.run(tensor, self.target.place(tensor)[at])
        first, last = begin + shift, end + shift  # as counted in the source's part
        run = first // each
        count = np.where(last > first, (last - 1) // each - run + 1, 0)
        for step in range(int(count.max(initial=0))):
            spend(2 + len(at) // 4, "ranks", control="nodes")
            piece = run + step
            low = np.maximum(first, piece * each)
            rows = np.where(step < count, np.minimum(last, (piece + 1) * each) - low, 0)
            kept = np.flatnonzero(rows if columns is None else rows * columns[2])
            if not len(kept):
                continue
            of = [values[kept] for values in (low, piece, part, rows, at)]
            low, piece, wanted, rows, receivers = of
            experts = None if ep_rank is None else ep_rank[kept]
            sources = self._sources(home, tensor, receivers, wanted, piece, experts)
            moved = np.broadcast_to(shift, at.shape)[kept]
            row_start, row_to = low - piece * each, low - moved - own_start[kept]
            if columns is None:
                none = np.zeros_like(rows)
                whole = (row_start, row_to, rows, none, none, none)
                yield Slices(receivers, sources, *whole, piece)
            else:
                start, to, length = (values[kept] for values in columns)
                both = (start, to, length, row_start, row_to, rows)
                yield Slices(receivers, sources, *both, piece)

    def _sources(
        self,
        home: Home,
        tensor: Tensor,
        at: np.ndarray,
        part: np.ndarray,
        run: np.ndarray,
        ep_rank: np.ndarray | None,
    ) -> np.ndarray:
        """The source ranks that hold the given runs of the given parts."""
        source = self.source
        is_whole = source.parts(tensor) == 1
        if not source.fsdp:
            wish = Wish(home, at, None if tensor.axis is None else part, ep_rank)
            return self.senders.of(wish)
        stage, lane = (values[at] for values in self._lane(home, tensor.expert))
        part = lane if is_whole else part
        sources = np.empty_like(at)
        for each in np.unique(stage):
            here = stage == each
            wish = Wish(
                (int(each),), at[here], part[here], None if ep_rank is None else ep_rank[here]
            )
            holders, shard = self._owners.holders(wish)
            place = self._copy(tensor)[at[here]] * source.shards(tensor) + run[here]
            sources[here] = holders.ranks[shard, place]
        return sources

    def _copy(self, tensor: Tensor) -> np.ndarray:
        """The copy of the source that each receiver receives from: its own GPU's, or in turns."""
        source, target = self.source, self.target
        if source.copies == 1:
            return np.zeros(target.ranks, dtype=np.int64)
        ranks = np.arange(target.ranks) + target.first_rank - source.first_rank
        inside = (ranks >= 0) & (ranks < source.ranks)
        here, there = (
            side.expert_copy if tensor.expert else side.dense_copy for side in (source, target)
        )
        own = here[np.where(inside, ranks, 0)] // source.shards(tensor)
        return np.asarray(np.where(inside, own, there % source.copies))

    def _lane_of(self, home: Home, is_expert: bool) -> tuple[np.ndarray, np.ndarray]:
        """The stage and the lane of tp that each receiver receives from: those of its own GPU, if
        it has the part."""
        source, target = self.source, self.target
        ranks = np.arange(target.ranks) + target.first_rank - source.first_rank
        inside = (ranks >= 0) & (ranks < source.ranks)
        ranks = np.where(inside, ranks, 0)
        at_source, at_target = (
            side.etp_at if is_expert else side.tp_at for side in (source, target)
        )
        lanes = source.etp if is_expert else source.tp
        stage = source.pp_at[ranks]
        stage = np.where(inside & np.isin(stage, home), stage, home[0])
        return stage, np.where(inside, at_source[ranks], at_target % lanes)

    # -- all of it -------------------------------------------------------------------------------

    def streams(self, element_bytes: int) -> Iterator[Stream | Fan]:
        """All slices of all ranks, one kind of tensor after the other."""
        source, target = self.source, self.target
        wanted: Counter[tuple[Home, int, Tensor]] = Counter()
        for stage, places in enumerate(target.places):
            for place in places:
                for tensor in tensors_of(source.model, place):
                    home = source.home_as_source(place)
                    wanted[home, stage, replace(tensor, name="")] += 1
        for (home, stage, tensor), count in wanted.items():
            at = np.flatnonzero(target.pp_at == stage)
            for ranks, ep_rank, experts in self._experts(tensor, at):
                if not target.fsdp:
                    sizes = np.broadcast_to(count * experts * element_bytes, (target.ranks,))
                    yield from self._fans(home, tensor, ranks, ep_rank, sizes)
                    continue
                for found in self.slices(home, tensor, ranks, ep_rank):
                    yield self._stream(tensor, found, count * experts, element_bytes)

    def _fans(
        self,
        home: Home,
        tensor: Tensor,
        at: np.ndarray,
        ep_rank: np.ndarray | None,
        sizes: np.ndarray,
    ) -> Iterator[Fan]:
        """Broadcasts to receivers that need the same part of a tensor, from the holders of its
        runs."""
        target, is_whole = self.target, self.source.parts(tensor) == 1
        own = self._wanted(tensor)
        stages, lanes = self._lane(home, tensor.expert)
        copies, shards = self._copy(tensor), self.source.shards(tensor)
        lane_of = np.stack((stages, lanes if is_whole else np.zeros_like(lanes), copies))
        for same in np.unique(own[at]):
            ranks = at[own[at] == same]
            parts, runs, elements = self._runs(tensor, int(_parts(target, tensor)[ranks[0]]))
            spend(4 + len(runs) // 8 + len(ranks) // 8, "ranks", control="nodes")
            found, receivers = [], []
            for stage, lane, copy in np.unique(lane_of[:, ranks], axis=1).T.tolist():
                members = ranks[(lane_of[:, ranks] == [[stage], [lane], [copy]]).all(axis=0)]
                wish = Wish(
                    (stage,),
                    np.broadcast_to(members[0], parts.shape),
                    np.full_like(parts, lane) if is_whole else parts,
                    None if ep_rank is None else np.full_like(parts, ep_rank[0]),
                )
                holders, shard = self._owners.holders(wish)
                found.append(holders.ranks[shard, copy * shards + runs])
                receivers.append(members + target.first_rank)
            yield Fan(np.stack(found), elements * int(sizes[ranks[0]]), tuple(receivers))

    def _wanted(self, tensor: Tensor) -> np.ndarray:
        """Numbers by rank, equal for ranks that need the same experts and part of a tensor."""
        target, parts = self.target, _parts(self.target, tensor)
        return target.ep_at * target.parts(tensor) + parts if tensor.expert else parts

    def _runs(self, tensor: Tensor, own: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For a part of the target: the overlapping parts and runs of the source, and their common
        elements."""
        source, target = self.source, self.target
        overlap, each = _overlap(tensor, source, target), source.run_length(tensor)
        is_cut = max(overlap.source_parts, overlap.target_parts) > 1
        across = tensor.elements // tensor.shape[0]
        parts, runs, elements = [], [], []
        for block in range(tensor.blocks if is_cut else 1):
            for part in overlap.meet(own):
                start = (
                    max(part * overlap.held, own * overlap.wanted) + (block - part) * overlap.held
                )
                length, width = overlap.elements(part, own), across
                if cut_axis(tensor, source, target) == 1:  # columns of all rows
                    width = length * (across // tensor.shape[1])
                    start, length = 0, source.rows(tensor)
                numbers = np.arange(start // each, -(-(start + length) // each))
                low = np.maximum(start, numbers * each)
                rows = np.minimum(start + length, (numbers + 1) * each) - low
                parts.append(np.full_like(numbers, part))
                runs.append(numbers)
                elements.append(rows * width)
        if not parts:
            none = np.zeros(0, dtype=np.int64)
            return none, none, none
        return np.concatenate(parts), np.concatenate(runs), np.concatenate(elements)

    def _experts(
        self, tensor: Tensor, at: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray | None, np.ndarray | int]]:
        """The receivers, the expert ranks that they receive from, and the number of experts of
        each."""
        if not tensor.expert:
            yield at, None, np.ones(self.target.ranks, dtype=np.int64)
            return
        starts, own = self.source.expert_starts, self.target.expert_starts
        for rank in range(self.source.ep):
            low = np.maximum(own[:-1], starts[rank])
            shared = np.maximum(np.minimum(own[1:], starts[rank + 1]) - low, 0)
            counts = shared[self.target.ep_at]
            ranks = at[counts[at] > 0]
            if len(ranks):
                yield ranks, np.full(len(ranks), rank), counts

    def _stream(
        self, tensor: Tensor, found: Slices, count: np.ndarray | int, element_bytes: int
    ) -> Stream:
        """Slices as a stream of bytes; receivers of one part but of different runs need different
        bytes."""
        target = self.target
        elements = found.length * (tensor.elements // tensor.shape[0])
        if cut_axis(tensor, self.source, target) == 1:
            elements = found.length * found.rows
        sizes = elements * np.asarray(count)[found.at] * element_bytes
        same, index = self._wanted(tensor), target.place(tensor)[found.at]
        same = same[found.at] * target.ranks
        same = (same + (index if target.fsdp else 0)) * self.source.ranks + found.run
        return Stream(found.sources, found.at + target.first_rank, sizes, same)


def _overlap(tensor: Tensor, source: ShardedModel, target: ShardedModel) -> Overlap:
    """The overlap of both sides' parts of a tensor; along its rows, if tensor parallelism cuts
    none."""
    if max(source.parts(tensor), target.parts(tensor)) > 1:
        return overlap_of(tensor, source, target)
    return Overlap(source.rows(tensor), 1, target.rows(tensor), 1)


def _parts(side: ShardedModel, tensor: Tensor) -> np.ndarray:
    """The index of each rank's part of a tensor."""
    if side.parts(tensor) == 1:
        return np.zeros(side.ranks, dtype=np.int64)
    return side.etp_at if tensor.expert else side.tp_at
