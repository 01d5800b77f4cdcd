"""One side of a move: what each rank of a layout holds of a model, as arrays over its ranks.

A rank of the dense grid has a tp part of the tensors of its stage, one of the expert grid an etp
part of a run of experts. A stage is a coordinate of pp; where a pipeline runs both ways, or a tied
embedding or one of prediction modules is at both ends, a place is on several of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from groups.layout import Layout
from groups.megatron.grids import GTP
from groups.mesh import MAX_RANKS, Mesh, group_index, whole_number

from ..errors import refusal
from ..model import Model
from ..split import Dealing, layers_of_stages, padded_vocabulary, stages_of_ranks
from .tensors import Place, Tensor, tensors_of

Home = tuple[int, ...]
"""The stages (pp coordinates) that hold a place."""


@dataclass(frozen=True, eq=False)
class ShardedModel:
    """A layout that holds a model, its ranks counted from first_rank.

    dealing: assignment of layers to stages. padded: whether the vocabulary has Megatron's padding,
    up to a multiple of 128 * tp; otherwise up to a multiple of tp. fsdp: whether data parallelism
    shards each tensor parallel part further (`fsdp`); in HSDP over the ranks of one of its copies.

    Errors: LayoutError for a model that these sizes do not cut evenly.
    """

    model: Model
    layout: Layout
    first_rank: int
    dealing: Dealing
    padded: bool
    fsdp: bool = False

    def __post_init__(self) -> None:
        if self.layout.mesh.size(GTP) > 1:
            raise refusal("moves-without-gtp", "gtp", {"gtp": 1})
        for tensor in self._cut_tensors():
            parts = self.parts(tensor)
            if self.length(tensor) % (tensor.blocks * parts):
                axis = "etp" if tensor.expert else "tp"
                facts = {"tensor": tensor.name, "length": self.length(tensor), "parts": parts}
                raise refusal("tensor-does-not-divide", axis, axis=axis, **facts)

    def _cut_tensors(self) -> Iterator[Tensor]:
        ends: list[Place] = [0, self.model.layers - 1, "embedding"]
        for place in (*ends, *(["mtp"] if self.model.mtp_layers else [])):
            yield from (t for t in tensors_of(self.model, place) if t.axis is not None)

    # -- sizes -----------------------------------------------------------------------------------

    @property
    def copies(self) -> int:
        """The whole copies that data parallelism cuts apart (HSDP's replicas)."""
        return self.layout.job.instances if self.fsdp else 1

    @property
    def ranks(self) -> int:
        return self.layout.world_size

    @property
    def after(self) -> int:
        """The first rank after the layout's ranks."""
        return self.first_rank + self.ranks

    @property
    def tp(self) -> int:
        return self.layout.mesh.size("tp")

    @property
    def pp(self) -> int:
        return self.layout.mesh.size("pp")

    @property
    def etp(self) -> int:
        return self.tp if self.layout.expert is None else self.layout.expert.size("etp")

    @property
    def ep(self) -> int:
        return 1 if self.layout.expert is None else self.layout.expert.size("ep")

    def parts(self, tensor: Tensor) -> int:
        """The number of parts that tensor parallelism cuts a tensor into."""
        return 1 if tensor.axis is None else self.etp if tensor.expert else self.tp

    def length(self, tensor: Tensor) -> int:
        """Elements of a tensor along the cut axis, with padding; along axis 0 if none is cut."""
        if not tensor.of_vocabulary:
            return tensor.shape[tensor.axis or 0]
        rows = self.model.vocabulary
        return padded_vocabulary(rows, self.tp) if self.padded else -(-rows // self.tp) * self.tp

    def rows(self, tensor: Tensor) -> int:
        """Elements along axis 0 of a rank's part of a tensor, before data parallelism shards it."""
        if tensor.axis == 0:
            return self.length(tensor) // self.parts(tensor)
        return tensor.shape[0]

    def run_length(self, tensor: Tensor) -> int:
        """Elements of `rows` that a rank holds; the last ranks may have fewer."""
        if not self.fsdp:
            return self.rows(tensor)
        return -(-self.rows(tensor) // self.shards(tensor))

    def shards(self, tensor: Tensor) -> int:
        """The ranks that cut one copy of a part of a tensor between them."""
        parts = self.pp * (self.ep * self.etp if tensor.expert else self.tp)
        return max(1, self.ranks // parts // self.copies)

    def place(self, tensor: Tensor) -> np.ndarray:
        """The place of each rank among those that cut a copy of its part: int64, shape (ranks,)."""
        index = self.expert_copy if tensor.expert else self.dense_copy
        return index % self.shards(tensor) if self.copies > 1 else index

    def run(self, tensor: Tensor, index: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """[start, end) of a rank's elements in `rows`, for each place among the ranks that share
        them."""
        rows, each = self.rows(tensor), self.run_length(tensor)
        begin = index * each if self.fsdp else np.zeros_like(index)
        return np.minimum(begin, rows), np.minimum(begin + each, rows)

    # -- coordinates, one for each rank, int64 of shape (ranks,) -----------------------------------

    def _along(self, mesh: Mesh, axis: str) -> np.ndarray:
        if axis not in mesh.names:
            return np.zeros(self.ranks, dtype=np.int64)
        stride = self.stride(mesh, axis)
        return np.arange(self.ranks) // stride % mesh.size(axis)

    @staticmethod
    def stride(mesh: Mesh, axis: str) -> int:
        """Ranks from one coordinate of an axis to the next; 0 for an axis that does not exist."""
        return mesh.strides[mesh.names.index(axis)] if axis in mesh.names else 0

    @cached_property
    def tp_at(self) -> np.ndarray:
        return self._along(self.layout.mesh, "tp")

    @cached_property
    def pp_at(self) -> np.ndarray:
        return self._along(self.layout.mesh, "pp")

    @cached_property
    def etp_at(self) -> np.ndarray:
        expert = self.layout.expert
        return self.tp_at if expert is None else self._along(expert, "etp")

    @cached_property
    def ep_at(self) -> np.ndarray:
        expert = self.layout.expert
        return np.zeros_like(self.tp_at) if expert is None else self._along(expert, "ep")

    @cached_property
    def dp_group(self) -> np.ndarray:
        """The data parallel group of each rank, numbered in the order of first members."""
        return group_index(self.layout.mesh, "dp")

    @property
    def tp_stride(self) -> int:
        return self.stride(self.layout.mesh, "tp")

    @property
    def etp_stride(self) -> int:
        expert = self.layout.expert
        return self.tp_stride if expert is None else self.stride(expert, "etp")

    @cached_property
    def dense_copy(self) -> np.ndarray:
        """The place of each rank among the ranks that hold the same dense parameters."""
        return ordinals(self.pp_at * self.tp + self.tp_at)

    @cached_property
    def stage_copy(self) -> np.ndarray:
        """The place of each rank in its stage; all ranks of a stage hold the same norms."""
        return ordinals(self.pp_at)

    @cached_property
    def expert_copy(self) -> np.ndarray:
        """The place of each rank among the ranks that hold the same experts."""
        return ordinals((self.pp_at * self.ep + self.ep_at) * self.etp + self.etp_at)

    # -- what is where ---------------------------------------------------------------------------

    @cached_property
    def places(self) -> tuple[tuple[Place, ...], ...]:
        """The places of each stage, in the order of the module's parameters."""
        dealing, model = self.dealing, self.model
        layers = layers_of_stages(model.layers, dealing)
        held = []
        for chunks in stages_of_ranks(*dealing[:3]):
            first, last = 0 in chunks, len(layers) - 1 in chunks
            places: list[Place] = ["embedding"] if first or (last and model.mtp_layers) else []
            places += [layer for chunk in chunks for layer in layers[chunk]]
            places += [
                *(["final"] if last else []),
                *(["mtp"] if last and model.mtp_layers else []),
            ]
            if last and not (model.tied and "embedding" in places):
                places.append("output")
            held.append(tuple(places))
        return tuple(held)

    @cached_property
    def homes(self) -> dict[Place, Home]:
        """The stages that hold each place."""
        homes: dict[Place, Home] = {}
        for stage, places in enumerate(self.places):
            for place in places:
                homes[place] = (*homes.get(place, ()), stage)
        return homes

    def home_as_source(self, place: Place) -> Home:
        """The stages that send a place; a tied table is sent by the output."""
        return self.homes["embedding" if place not in self.homes else place]

    def experts_of(self, ep_rank: int) -> range:
        """The experts of an expert parallel rank: a run; the first ranks have one more if ep does
        not divide them (vllm-project/vllm 0.32.0, determine_expert_map; in Megatron ep divides
        them).

        With more ranks than experts, the last ranks have none.
        """
        starts = self.expert_starts
        return range(int(starts[ep_rank]), int(starts[ep_rank + 1]))

    @cached_property
    def expert_starts(self) -> np.ndarray:
        """The first expert of each expert parallel rank, then the number of experts."""
        each, more = divmod(self.model.experts, self.ep)
        ranks = np.arange(self.ep + 1)
        return ranks * each + np.minimum(ranks, more)

    def ep_rank_of(self, expert: int) -> int:
        """The expert parallel rank that holds an expert."""
        return bisect_right(self.expert_starts.tolist(), expert) - 1


def ordinals(keys: np.ndarray) -> np.ndarray:
    """The index of each entry among the entries with the same key.

    >>> ordinals(np.array([3, 5, 3, 3])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(keys, kind="stable")
    in_order = keys[order]
    starts = np.flatnonzero(np.diff(in_order, prepend=in_order[0] - 1))
    places = np.empty(len(keys), dtype=np.int64)
    lengths = np.diff(np.append(starts, len(keys)))
    places[order] = np.arange(len(keys)) - np.repeat(starts, lengths)
    return places


def beginnings(
    source: Layout,
    target: Layout,
    source_rank: object,
    first_rank: object,
    *,
    one_size: bool = False,
) -> tuple[int, int]:
    """The first ranks of a source and a target on one cluster, both from 0. one_size: the nodes of
    that are known, whatever the sides have of each.

    Errors: LayoutError for a rank that is negative or not a number, for too many ranks from it on,
    and for nodes of two sizes, unless the target starts after the source.
    """
    first, begin = (
        whole_number(rank, name, minimum=0, maximum=MAX_RANKS - layout.world_size)
        for name, rank, layout in (
            ("first_rank", first_rank, target),
            ("source_rank", source_rank, source),
        )
    )
    sizes = {layout.gpus_per_node for layout in (source, target)}
    if not one_size and len(sizes) > 1 and first < begin + source.world_size:
        fix = {"first_rank": begin + source.world_size}
        raise refusal("nodes-of-two-sizes", "first_rank", fix, sizes=sorted(sizes))
    return begin, first


def usual_dealing(layers: int, layout: Layout) -> Dealing:
    """Layers assigned as Megatron does; nearly equally if pp does not divide them."""
    pp = layout.mesh.size("pp")
    return Dealing(pp, spread="nearly" if layers % pp else "equal")


@dataclass(frozen=True)
class Overlap:
    """The overlaps of the parts of an axis on one side with its parts on the other.

    Both sides cut one axis into equal lengths, in elements. first, after: the range of source parts
    that overlap each target part.

    >>> overlap = Overlap(12, 2, 12, 3)
    >>> overlap.meet(1), overlap.elements(0, 1), overlap.elements(1, 1)
    (range(0, 2), 2, 2)
    """

    source_length: int
    source_parts: int
    target_length: int
    target_parts: int

    @property
    def held(self) -> int:
        return self.source_length // self.source_parts

    @property
    def wanted(self) -> int:
        return self.target_length // self.target_parts

    def meet(self, part: int) -> range:
        """The parts of the source that overlap a part of the target; none in padding."""
        end = min((part + 1) * self.wanted, self.source_length)
        start = part * self.wanted
        return range(
            start // self.held, -(-end // self.held) if end > start else start // self.held
        )

    def elements(self, source: int, target: int) -> int:
        """The number of elements that two parts have in common."""
        ends = (source + 1) * self.held, (target + 1) * self.wanted
        return max(0, min(ends) - max(source * self.held, target * self.wanted))


def overlap_of(tensor: Tensor, source: ShardedModel, target: ShardedModel) -> Overlap:
    """The overlap of both sides' parts of one block of a tensor."""
    lengths = (side.length(tensor) // tensor.blocks for side in (source, target))
    pairs = zip(lengths, (source.parts(tensor), target.parts(tensor)))
    return Overlap(*(number for pair in pairs for number in pair))


def slots(ranges: Sequence[Sequence[int]]) -> np.ndarray:
    """Ranges as rows of the same length, padded with -1: shape (ranges, longest)."""
    longest = max((len(numbers) for numbers in ranges), default=0)
    rows = np.full((len(ranges), longest), -1, dtype=np.int64)
    for row, numbers in zip(rows, ranges):
        row[: len(numbers)] = numbers
    return rows
