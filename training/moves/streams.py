"""The moves between two layouts, as arrays over the ranks of the target.

Tensors that the same stages hold and that are cut alike move alike: their elements are added up
first. What a pair of stages exchanges is then some elements of what is whole, and some of what is
cut, of which each part of the target meets few parts of the source: each meeting is one array.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import lcm
from typing import NamedTuple

import numpy as np

from groups.budget import spend

from ..model import Model
from .senders import Meeting, Senders, Wish
from .sharded import Home, Overlap, ShardedModel, overlap_of, slots
from .tensors import Tensor, tensors_of


class Stream(NamedTuple):
    """Slices that move alike: int64 arrays with one entry per receiver; bytes: of each slice.

    same: a number for each receiver, equal for receivers of the same data.
    """

    sources: np.ndarray
    targets: np.ndarray
    bytes: np.ndarray
    same: np.ndarray


class Fan(NamedTuple):
    """A broadcast: every source sends its run to every target, all of which then hold the same.

    sources: the rank that sends each run in each lane, int64, shape (lanes, runs). bytes: of each
    run, equal in every lane, int64. targets: the receivers of each lane.
    """

    sources: np.ndarray
    bytes: np.ndarray
    targets: tuple[np.ndarray, ...]


class Sums:
    """Bytes summed over streams and fans: bytes that stay on a GPU; by rank, in four rows, bytes
    sent and received within the node, and sent and received between nodes; and bytes that enter
    each node, each counted once."""

    def __init__(self, nodes: np.ndarray) -> None:
        self.nodes, self.stays = nodes, 0
        self.by_rank = np.zeros((4, len(nodes)), dtype=np.int64)
        self.into = np.zeros(int(nodes.max()) + 1, dtype=np.int64)

    def add(self, stream: Stream, *, counts_into: bool) -> None:
        nodes = self.nodes
        leaves = stream.sources != stream.targets
        is_far = nodes[stream.sources] != nodes[stream.targets]
        self.stays += int(stream.bytes[~leaves].sum())
        for place, crosses in ((0, leaves & ~is_far), (2, is_far)):
            sizes = np.where(crosses, stream.bytes, 0)
            np.add.at(self.by_rank[place], stream.sources, sizes)
            np.add.at(self.by_rank[place + 1], stream.targets, sizes)
        if not counts_into:
            return
        at, sizes = nodes[stream.targets[is_far]], stream.bytes[is_far]
        keys = at * (int(stream.same.max(initial=0)) + 1) + stream.same[is_far]
        _, once = np.unique(keys, return_index=True)
        np.add.at(self.into, at[once], sizes[once])

    def add_fan(self, fan: Fan, *, counts_into: bool) -> None:
        """Adds a fan in closed form: a rank sends to each target, a node receives all runs."""
        nodes, count = self.nodes, len(self.into)
        lacks = np.zeros((count, len(fan.bytes)), dtype=bool)
        for sources, targets in zip(fan.sources, fan.targets):
            held = np.zeros(len(nodes), dtype=np.int64)
            np.add.at(held, sources, fan.bytes)
            of_node = np.zeros(count, dtype=np.int64)
            np.add.at(of_node, nodes[sources], fan.bytes)
            receivers = np.bincount(nodes[targets], minlength=count)
            own, near = held[targets], of_node[nodes[targets]]
            self.stays += int(own.sum())
            is_target = np.isin(sources, targets)
            here = receivers[nodes[sources]]
            np.add.at(self.by_rank[0], sources, fan.bytes * (here - is_target))
            np.add.at(self.by_rank[2], sources, fan.bytes * (len(targets) - here))
            self.by_rank[1][targets] += near - own
            self.by_rank[3][targets] += int(fan.bytes.sum()) - near
            if counts_into:
                lacks[receivers > 0] |= nodes[sources] != np.flatnonzero(receivers)[:, None]
        if counts_into:
            self.into += lacks @ fan.bytes


def add_fan_to(sent: np.ndarray, fan: Fan, rows: np.ndarray) -> None:
    """Adds the bytes of a fan to a matrix. rows: the row of each rank, -1 for none."""
    for sources, targets in zip(fan.sources, fan.targets):
        sent_by_row = np.zeros(len(sent) + 1, dtype=np.int64)
        np.add.at(sent_by_row, rows[sources], fan.bytes)
        targets_by_row = np.bincount(rows[targets] + 1, minlength=len(sent) + 1)[1:]
        at, to = np.flatnonzero(sent_by_row[:-1]), np.flatnonzero(targets_by_row)
        sent[np.ix_(at, to)] += np.outer(sent_by_row[at], targets_by_row[to])


@dataclass(frozen=True, eq=False)
class Streams:
    """The moves between two sides by one rule, in a few arrays."""

    source: ShardedModel
    target: ShardedModel
    senders: Senders
    element_bytes: int
    passes_on: bool = False  # whether copies pass on what they received, each to the next

    @property
    def model(self) -> Model:
        return self.source.model

    def __iter__(self) -> Iterator[Stream]:
        """All streams; slices that stay on a GPU have the same source and target."""
        return map(_passed_on, self.shards()) if self.passes_on else self.shards()

    def shards(self) -> Iterator[Stream]:
        """All slices, each from the rank that the rule selects."""
        target = self.target
        meeting = Meeting.of(self.source, target) if self.model.experts else None
        for home, cargo in self._cargo().items():
            spend(2 + target.ranks // 4, "ranks", control="nodes")
            yield from self._dense(home, cargo)
            if meeting is not None and np.any(cargo.experts):
                yield from self._experts(home, cargo, meeting)

    def _dense(self, home: Home, cargo: _Cargo) -> Iterator[Stream]:
        target = self.target
        whole = cargo.whole[target.pp_at]
        at = np.flatnonzero(whole)
        if len(at):
            yield self._stream(Wish(home, at), whole[at], target.pp_at[at])
        shard = target.pp_at * target.tp + target.tp_at
        for overlap, amounts in cargo.cut.items():
            meets, shared = _shares(overlap)
            amount = amounts[target.pp_at]
            for slot in range(meets.shape[1]):
                part = meets[target.tp_at, slot]
                at = np.flatnonzero((part >= 0) & (amount > 0))
                elements = amount[at] * shared[target.tp_at[at], slot]
                if len(at):
                    yield self._stream(Wish(home, at, part[at]), elements, shard[at])

    def _experts(self, home: Home, cargo: _Cargo, meeting: Meeting) -> Iterator[Stream]:
        """The streams of each run of experts common to two ranks: cut and whole tensors."""
        target = self.target
        overlap = _in_units(self.source.etp, target.etp)
        meets, shared = _shares(overlap)
        cut, whole = (amounts[target.pp_at] for amounts in cargo.experts)
        stage_run = target.pp_at * target.ep + target.ep_at
        for run in range(meeting.ep_ranks.shape[1]):
            ep_rank, count = (of[target.ep_at, run] for of in (meeting.ep_ranks, meeting.shared))
            spend(target.ranks // 4, "ranks", control="nodes")
            at = np.flatnonzero((ep_rank >= 0) & (whole > 0))
            if len(at):
                wish = Wish(home, at, None, ep_rank[at])
                yield self._stream(wish, whole[at] * count[at], stage_run[at])
            for slot in range(meets.shape[1]):
                part = meets[target.etp_at, slot]
                at = np.flatnonzero((ep_rank >= 0) & (part >= 0) & (cut > 0))
                elements = cut[at] * count[at] * shared[target.etp_at[at], slot]
                same = stage_run[at] * target.etp + target.etp_at[at]
                if len(at):
                    yield self._stream(Wish(home, at, part[at], ep_rank[at]), elements, same)

    def _stream(self, wish: Wish, elements: np.ndarray, same: np.ndarray) -> Stream:
        ranks = wish.at + self.target.first_rank
        return Stream(self.senders.of(wish), ranks, elements * self.element_bytes, same)

    def _cargo(self) -> dict[Home, _Cargo]:
        """The elements that the target's stages need from each home of the source."""
        source, target = self.source, self.target
        by_home: dict[Home, _Cargo] = {}
        tensors: dict[object, tuple[Tensor, ...]] = {}
        for stage, places in enumerate(target.places):
            for place in places:
                home = source.home_as_source(place)
                cargo = by_home.setdefault(home, _Cargo.none(target.pp))
                kind = self.model.numbers[place] if isinstance(place, int) else place
                if kind not in tensors:
                    tensors[kind] = tensors_of(self.model, place)
                for tensor in tensors[kind]:
                    cargo.add(tensor, stage, source, target)
        return by_home


@dataclass
class _Cargo:
    """Elements that each stage of the target needs from one home: int64 arrays over its stages.

    cut: by the way in which the axis is cut; to be multiplied by the units that two parts have in
    common. experts: of one expert, cut and whole.
    """

    whole: np.ndarray
    cut: dict[Overlap, np.ndarray]
    experts: tuple[np.ndarray, np.ndarray]

    @classmethod
    def none(cls, stages: int) -> _Cargo:
        zeros = (np.zeros(stages, dtype=np.int64) for _ in range(3))
        whole, *experts = zeros
        empty = defaultdict[Overlap, np.ndarray](lambda: np.zeros(stages, dtype=np.int64))
        return cls(whole, empty, (experts[0], experts[1]))

    def add(self, tensor: Tensor, stage: int, source: ShardedModel, target: ShardedModel) -> None:
        if tensor.axis is None:
            (self.experts[1] if tensor.expert else self.whole)[stage] += tensor.elements
            return
        lengths = source.length(tensor), target.length(tensor)
        across = tensor.elements // tensor.shape[tensor.axis]
        units = _in_units(source.parts(tensor), target.parts(tensor))
        if tensor.expert:
            self.experts[0][stage] += lengths[0] * across // units.source_length
        elif lengths[0] == lengths[1]:
            self.cut[units][stage] += lengths[0] * across // units.source_length
        else:
            self.cut[overlap_of(tensor, source, target)][stage] += across


def _in_units(source_parts: int, target_parts: int) -> Overlap:
    """The cuts of an axis, in units of the largest pieces that no cut divides."""
    units = lcm(source_parts, target_parts)
    return Overlap(units, source_parts, units, target_parts)


def _shares(overlap: Overlap) -> tuple[np.ndarray, np.ndarray]:
    """The parts of the source that overlap each part of the target, padded with -1, and their
    common elements: int64, both of shape (target's parts, most that one overlaps)."""
    meets = [overlap.meet(part) for part in range(overlap.target_parts)]
    shared = [[overlap.elements(s, part) for s in parts] for part, parts in enumerate(meets)]
    return slots(meets), slots(shared)


def _passed_on(stream: Stream) -> Stream:
    """The stream as a chain: from the sender to the first receiver of the same data, and from each
    receiver to the next."""
    lacking = stream.sources != stream.targets
    key = np.where(lacking, stream.same, -1)
    order = np.lexsort((stream.targets, key))
    is_next = (np.diff(key[order], prepend=-2) == 0) & lacking[order]
    sources = stream.sources.copy()
    before = np.roll(stream.targets[order], 1)
    sources[order] = np.where(is_next, before, stream.sources[order])
    return stream._replace(sources=sources)
