"""DeepSpeed's process topologies and expert groups, as requests to a mesh.

ProcessTopology(axes, dims) is row-major: its last axis is the fastest. The axes of
PipeModelDataParallelTopology are pipe, data, model: Megatron's order tp-dp-pp under other names.
Source: deepspeedai/DeepSpeed, deepspeed/runtime/pipe/topology.py and deepspeed/utils/groups.py;
checked against deepspeed 0.19.8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from groups.errors import LayoutError
from groups.frameworks import FRAMEWORKS
from groups.mesh import MAX_RANKS, Mesh, coordinates, rank_groups, rank_of, whole_number
from tests.reference.meshes import row_major


def topology(axes: Sequence[str], dims: Sequence[int]) -> Mesh:
    """ProcessTopology(axes, dims) as a mesh.

    >>> str(topology(["pipe", "data", "model"], [4, 2, 2]))
    'model2-data2-pipe4'
    """
    return row_major(axes, dims)


def default_topology(world: int) -> Mesh:
    """What PipelineParallelGrid takes if it is given none: pipe and data share the prime factors.

    The prime factors of the world, ascending, go to pipe and data in turn, pipe first.

    >>> str(default_topology(12))
    'data2-pipe6'
    """
    factors = _prime_factors(whole_number(world, "world", maximum=MAX_RANKS))
    return topology(["pipe", "data"], [math.prod(factors[::2]), math.prod(factors[1::2])])


def ranks_at(mesh: Mesh, **coordinate: int) -> list[int]:
    """The ranks at these coordinates, ascending; axes left out are free (filter_match).

    >>> ranks_at(topology(["pipe", "data", "model"], [2, 2, 2]), pipe=0, data=1)
    [2, 3]

    Errors: LayoutError for an unknown axis or a coordinate outside it, where DeepSpeed raises
    AttributeError or ValueError for the axis and answers an empty list for the coordinate.
    """
    rank_of(mesh, **coordinate)  # refuses what cannot be
    ranks = np.arange(mesh.world_size).reshape(mesh.sizes[::-1]) + mesh.offset
    at = tuple(coordinate.get(name, slice(None)) for name in mesh.names[::-1])
    return np.ravel(ranks[at]).tolist()


def rank_repr(mesh: Mesh, rank: int, omit: Sequence[str] = ("data", "pipe")) -> str:
    """The rank as checkpoints name it: axis_coordinate in the order of the topology.

    >>> rank_repr(topology(["pipe", "data", "model"], [4, 2, 2]), 5)
    'model_01'
    """
    at = coordinates(mesh, rank)
    return "-".join(f"{name}_{at[name]:02d}" for name in reversed(at) if name not in omit)


def p2p_groups(mesh: Mesh) -> np.ndarray:
    """[rank, rank of its next stage] for every rank, the last stage wrapping to the first.

    >>> p2p_groups(topology(["pipe", "data"], [2, 2])).tolist()
    [[0, 2], [1, 3], [2, 0], [3, 1]]
    """
    pipelines = rank_groups(mesh, "pipe")
    pairs = np.stack([pipelines, np.roll(pipelines, -1, axis=1)], axis=-1).reshape(-1, 2)
    return pairs[pairs[:, 0].argsort()]


def expert_mesh(
    world: int, *, tp: int = 1, ep: int = 1, pp: int = 1, data_first: bool = False
) -> Mesh:
    """The mesh of the experts: ep inside data, or outside of it with data_first.

    data_first is DeepSpeed's use_data_before_expert_parallel. DeepSpeed lists the groups of this
    mesh by tp lane first: the same groups in another order.

    >>> mesh = expert_mesh(16, tp=2, ep=2, pp=2)
    >>> str(mesh), rank_groups(mesh, "expert").tolist()[:3]
    ('model2-expert2-expert_data2-pipe2', [[0, 2], [1, 3], [4, 6]])

    Errors: LayoutError if tp x pp does not divide the world, or ep does not divide data.
    """
    convention = FRAMEWORKS["deepspeed-data-first" if data_first else "deepspeed"]
    data = convention.mesh(world, model=tp, pipe=pp).size("data")
    try:
        return convention.mesh(world, "expert", model=tp, expert=ep, pipe=pp)
    except LayoutError as error:
        if error.code == "not-a-whole-number" or ep < 1:
            raise
        raise error.replace(quote=f"{data} is not divisible by {ep}") from None


def _prime_factors(number: int) -> list[int]:
    """Ascending, each as often as it divides: 12 is 2, 2, 3."""
    factors, candidate = [], 2
    while candidate * candidate <= number:
        if number % candidate:
            candidate += 1
        else:
            factors.append(candidate)
            number //= candidate
    return factors + [number] * (number > 1)
