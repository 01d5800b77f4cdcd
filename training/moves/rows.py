"""The slices of one rank: for each tensor that it needs, who sends which part.

Tensors of the same stages that are cut alike come in the same slices: each is worked out once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from groups.budget import spend

from .fsdp import Sharded, cut_axis
from .senders import Senders, Wish
from .sharded import Home, ShardedModel, overlap_of
from .tensors import Tensor, full_name, tensors_of


class TensorMove(NamedTuple):
    """The parts of one tensor that one rank of the target receives.

    tensor: Megatron's name, with layer and expert numbered over the whole model. target: the
    receiving rank. axis: the axis that is cut; None for a whole tensor. parts: (source, source
    start, target start, length), in elements along the axis and within the ranks' parts, sorted by
    target start; (source,) for a whole tensor. sizes: bytes of each part. bands: (source start,
    target start, length) of each part along axis 0, if data parallelism cuts axis 0 in addition to
    axis 1; else empty.
    """

    tensor: str
    target: int
    axis: int | None
    parts: tuple[tuple[int, ...], ...]
    sizes: tuple[int, ...]
    bands: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class RankSlices:
    """The slices of a target's ranks under one rule."""

    source: ShardedModel
    target: ShardedModel
    senders: Senders
    element_bytes: int

    def of(self, at: int) -> Iterator[TensorMove]:
        """The slices that one rank of the target receives; at: its rank within the target."""
        target, model = self.target, self.source.model
        experts = target.experts_of(int(target.ep_at[at])) if model.experts else ()
        known: dict[tuple[Home, Tensor, int], TensorMove] = {}
        for place in target.places[int(target.pp_at[at])]:
            home = self.source.home_as_source(place)
            for is_expert, alike in groupby(tensors_of(model, place), attrgetter("expert")):
                tensors = tuple(alike)
                unnamed = [replace(tensor, name="") for tensor in tensors]
                count = len(tensors) * (len(experts) if is_expert else 1)
                spend(4 * count, "tensors", control="rank")
                for expert in experts if is_expert else (None,):
                    ep_rank = -1 if expert is None else self.source.ep_rank_of(expert)
                    for tensor, bare in zip(tensors, unnamed):
                        key = (home, bare, ep_rank)
                        if key not in known:
                            known[key] = self._row(at, home, bare, ep_rank)
                        yield known[key]._replace(tensor=full_name(place, tensor, expert))

    def _row(self, at: int, home: Home, tensor: Tensor, ep_rank: int) -> TensorMove:
        """The slices of one tensor. ep_rank: the expert rank of the source that has the expert."""
        if self.source.fsdp or self.target.fsdp:
            return self._cut_row(at, home, tensor, ep_rank)
        source, target = self.source, self.target
        rank, whole = target.first_rank + at, tensor.elements * self.element_bytes
        is_split = not tensor.expert or max(source.etp, target.etp) > 1
        if tensor.axis is None or not is_split:
            sender = self._sender(at, home, None if tensor.axis is None else 0, ep_rank)
            return TensorMove("", rank, None, ((sender,),), (whole,))
        overlap = overlap_of(tensor, source, target)
        own = int((target.etp_at if tensor.expert else target.tp_at)[at])
        across = tensor.elements // tensor.shape[tensor.axis] * self.element_bytes
        parts = []
        for block in range(tensor.blocks):
            for part in overlap.meet(own):
                start = max(part * overlap.held, own * overlap.wanted)
                held = (block - part) * overlap.held + start
                wanted = (block - own) * overlap.wanted + start
                sender = self._sender(at, home, part, ep_rank)
                parts.append((sender, held, wanted, overlap.elements(part, own)))
        sizes = tuple(part[3] * across for part in parts)
        return TensorMove("", rank, tensor.axis, tuple(parts), sizes)

    def _sender(self, at: int, home: Home, part: int | None, ep_rank: int) -> int:
        wish = Wish(
            home,
            np.array([at]),
            None if part is None else np.array([part]),
            None if ep_rank < 0 else np.array([ep_rank]),
        )
        return int(self.senders.of(wish)[0])

    def _cut_row(self, at: int, home: Home, tensor: Tensor, ep_rank: int) -> TensorMove:
        """The slices of one tensor if data parallelism shards it too."""
        experts = np.array([ep_rank]) if tensor.expert else None
        axis = cut_axis(tensor, self.source, self.target)
        across = tensor.elements // tensor.shape[0] // (tensor.shape[1] if axis else 1)
        found = []
        sharded = Sharded(self.source, self.target, self.senders)
        for slices in sharded.slices(home, tensor, np.array([at]), experts):
            sender, *numbers = (int(values[0]) for values in slices[1:8])
            found.append((sender, *numbers))
        found.sort(key=lambda part: (part[5], part[2]))
        sizes = (part[3] * (part[6] if axis else 1) * across for part in found)
        return TensorMove(
            "",
            self.target.first_rank + at,
            axis,
            tuple(part[:4] for part in found),
            tuple(size * self.element_bytes for size in sizes),
            tuple((part[4], part[5], part[6]) for part in found) if axis else (),
        )
