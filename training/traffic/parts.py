"""Parts of a job to look at alone, such as one replica of the model.

all        every rank
stage      the ranks of one pipeline stage, of all replicas
replica    the ranks that hold one copy of the model, of all stages
block      the ranks of one stage of one replica: a tp-cp group
node       the GPUs of one machine
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from groups.grouping import Grouping
from groups.mesh import Mesh, coordinates

from ..errors import require_choice
from .per_step import Traffic, carrier

ALL, STAGE, REPLICA, BLOCK, NODE = "all", "stage", "replica", "block", "node"

SAME = {STAGE: ("pp",), REPLICA: ("dp",), BLOCK: ("pp", "dp")}
"""The axes along which the ranks of a part have a common coordinate."""

PARTS = (ALL, *SAME, NODE)


def parts_of(mesh: Mesh, gpus_per_node: int) -> tuple[str, ...]:
    """The parts of a job, each with several ranks but not all; blocks only if cp makes them larger
    than a tp group.

    >>> from groups import parse_mesh
    >>> parts_of(parse_mesh("tp8-cp2-dp4-pp2"), 8), parts_of(parse_mesh("dp8"), 8)
    (('all', 'stage', 'replica', 'block', 'node'), ('all',))
    """
    world = mesh.world_size
    sizes = {part: world // math.prod(map(mesh.size, axes)) for part, axes in SAME.items()}
    if mesh.size("cp") == 1:
        del sizes[BLOCK]
    sizes[NODE] = gpus_per_node
    return (ALL, *(part for part, size in sizes.items() if 1 < size < world))


def ranks_of_part(part: str, mesh: Mesh, gpus_per_node: int, rank: int) -> np.ndarray:
    """The ranks of the part with this rank, ascending: int64, shape (ranks,).

    >>> from groups import parse_mesh
    >>> mesh = parse_mesh("tp2-dp2-pp2")
    >>> [ranks_of_part(part, mesh, 4, rank=3).tolist() for part in ("replica", "node")]
    [[2, 3, 6, 7], [0, 1, 2, 3]]

    Errors: LayoutError for what is none of PARTS, and for a rank that the mesh has not.
    """
    require_choice("traffic_part", part, PARTS)
    ranks, place = np.arange(mesh.world_size), coordinates(mesh, rank)
    if part == NODE:
        return ranks[ranks // gpus_per_node == rank // gpus_per_node]
    for axis in SAME.get(part, ()):
        if axis in place:
            stride = mesh.strides[mesh.names.index(axis)]
            ranks = ranks[(ranks // stride) % mesh.size(axis) == place[axis]]
    return ranks


def clearest(
    rows: Iterable[Traffic],
    every: Mapping[str, Grouping],
    mesh: Mesh,
    gpus_per_node: int,
    rank: int,
    most: int,
) -> str:
    """The most informative part: among those of at most ``most`` ranks the one that holds the
    groups with most bytes per rank; all ranks if there are no more, or if no part holds any.

    >>> from groups.megatron import groupings
    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> from training.recipe import Training
    >>> from training.split import Split
    >>> from .per_step import traffic
    >>> every = groupings(512, tp=8, pp=2)
    >>> rows = traffic(MODELS["llama3-8b"].model, Split(tp=8, pp=2, dp=32), Training(), every,
    ...                CLUSTERS["dgx-h100"], gpus_per_node=8)
    >>> [clearest(rows, every, every["tp"].mesh, 8, 0, most) for most in (1024, 256, 8)]
    ['all', 'stage', 'node']
    """
    if mesh.world_size <= most:
        return ALL
    sent: dict[str, float] = {}
    for row in rows:
        sent[row.kind] = sent.get(row.kind, 0.0) + row.sent
    carriers = {kind: carrier(every, kind) for kind in sent}
    groups = {kind: set(by.members(rank).tolist()) for kind, by in carriers.items() if by}
    best = (0.0, 0, ALL)
    for part in parts_of(mesh, gpus_per_node)[1:]:
        ranks = set(ranks_of_part(part, mesh, gpus_per_node, rank).tolist())
        if len(ranks) <= most:
            inside = sum(sent[kind] for kind, members in groups.items() if members <= ranks)
            best = max(best, (inside, len(ranks), part))
    return best[2] if best[0] else ALL
