"""Which ranks are together: one request to a mesh answers every kind of group.

A kind's groups sweep the kind's axes and fix the others. Members stand in mesh order of the swept
axes, groups in mesh order of the fixed ones; so every group is ascending, and groups are ascending
by their first member. This equals Megatron's RankGenerator.get_ranks for every order and size
(NVIDIA/Megatron-LM, megatron/core/parallel_state.py, generate_masked_orthogonal_rank_groups).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .errors import quoted, refusal
from .mesh import Mesh, whole_number


def rank_groups(mesh: Mesh, kind: str) -> np.ndarray:
    """All groups of a kind: int64, shape (num_groups, group_size).

    >>> from groups import parse_mesh
    >>> rank_groups(parse_mesh("tp2-cp2-dp2"), "tp").tolist()
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    >>> rank_groups(parse_mesh("tp2-cp2-dp2"), "dp-cp").tolist()
    [[0, 2, 4, 6], [1, 3, 5, 7]]

    Errors: LayoutError if the kind is not one or several axes of the mesh joined by dashes.
    """
    swept, fixed = _array_axes(mesh, kind)
    ranks = _ranks(mesh.world_size).reshape(mesh.sizes[::-1]).transpose(*fixed, *swept)
    groups = ranks.reshape(-1, _span(mesh, swept))
    if mesh.offset:
        return groups + mesh.offset
    return groups if groups.flags.writeable else groups.copy()


def group_index(mesh: Mesh, kind: str) -> np.ndarray:
    """The group of each rank: int64, shape (world_size,); entry i is about rank offset + i.

    >>> from groups import parse_mesh
    >>> group_index(parse_mesh("tp2-cp2-dp2"), "tp").tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    swept, _ = _array_axes(mesh, kind)
    shape = mesh.sizes[::-1]
    numbers = np.arange(mesh.world_size // _span(mesh, swept), dtype=np.int64)
    kept = [1 if axis in swept else size for axis, size in enumerate(shape)]
    return np.broadcast_to(numbers.reshape(kept), shape).reshape(-1)


def index_of(mesh: Mesh, kind: str, rank: int) -> int:
    """The group of one rank, without numbering the others.

    >>> from groups import parse_mesh
    >>> index_of(parse_mesh("tp2-cp2-dp2"), "tp", 5)
    2

    Errors: LayoutError for a rank or kind that the mesh does not have.
    """
    at, swept = coordinates(mesh, rank), mesh.axes_of(kind)
    index, stride = 0, 1
    for axis in mesh.axes:
        if axis.name not in swept:
            index += at[axis.name] * stride
            stride *= axis.size
    return index


def group_of(mesh: Mesh, kind: str, rank: int) -> np.ndarray:
    """The members of one rank's group: int64, shape (group_size,), without making the others.

    >>> from groups import parse_mesh
    >>> group_of(parse_mesh("tp2-cp2-dp2"), "dp-cp", 3).tolist()
    [1, 3, 5, 7]

    Errors: LayoutError for a rank or kind that the mesh does not have.
    """
    place = require_rank(mesh, rank) - mesh.offset
    members, swept = np.array([rank], dtype=np.int64), mesh.axes_of(kind)
    for name, size, stride in zip(mesh.names, mesh.sizes, mesh.strides):
        if name in swept and size > 1:
            first = -(place // stride % size) * stride
            line = np.arange(first, first + size * stride, stride, dtype=np.int64)
            members = np.add.outer(line, members).reshape(-1)
    return members


def coordinates(mesh: Mesh, rank: int) -> dict[str, int]:
    """Where a rank stands along each axis, in mesh order.

    >>> from groups import parse_mesh
    >>> coordinates(parse_mesh("tp2-cp1-dp4-pp2"), 5)
    {'tp': 1, 'cp': 0, 'dp': 2, 'pp': 0}

    Errors: LayoutError if the mesh has no such rank.
    """
    left = require_rank(mesh, rank) - mesh.offset
    positions = {}
    for axis in mesh.axes:
        left, positions[axis.name] = divmod(left, axis.size)
    return positions


def rank_of(mesh: Mesh, **coordinate: int) -> int:
    """The rank at these coordinates; axes left out are at 0. The inverse of coordinates().

    >>> from groups import parse_mesh
    >>> rank_of(parse_mesh("tp2-cp1-dp4-pp2"), tp=1, dp=2)
    5

    Errors: LayoutError for an unknown axis or a coordinate outside it.
    """
    rank = mesh.offset
    for name, position in coordinate.items():
        if name not in mesh.names:
            raise refusal("unknown-axis", name, value=quoted(name), mesh=str(mesh))
        at = mesh.names.index(name)
        rank += mesh.strides[at] * whole_number(
            position, name, minimum=0, maximum=mesh.sizes[at] - 1
        )
    return rank


def require_rank(mesh: Mesh, rank: object) -> int:
    """``rank`` as an int of this mesh, or a LayoutError that says which ranks there are."""
    last = mesh.offset + mesh.world_size - 1
    number = whole_number(rank, "rank", minimum=0)
    if not mesh.offset <= number <= last:
        nearest = {"rank": min(max(number, mesh.offset), last)}
        facts = {"rank": quoted(number), "first": mesh.offset, "last": last}
        raise refusal("no-such-rank", "rank", nearest, **facts)
    return number


@lru_cache(maxsize=2)
def _ranks(world_size: int) -> np.ndarray:
    """0 to world_size - 1, kept for the next request: making it is half the time of grouping it."""
    ranks = np.arange(world_size, dtype=np.int64)
    ranks.flags.writeable = False
    return ranks


def _array_axes(mesh: Mesh, kind: str) -> tuple[list[int], list[int]]:
    """The numpy axes that a kind sweeps and those it fixes.

    The array of ranks has the slowest axis first (its shape is the reversed sizes), so that
    reading it in C order goes through the mesh fastest axis first.
    """
    swept_names = mesh.axes_of(kind)
    names = mesh.names[::-1]
    swept = [i for i, name in enumerate(names) if name in swept_names]
    return swept, [i for i in range(len(names)) if i not in swept]


def _span(mesh: Mesh, swept: list[int]) -> int:
    """Ranks in one group of a kind that sweeps these numpy axes."""
    sizes = mesh.sizes[::-1]
    return math.prod(sizes[axis] for axis in swept)
