"""Where ranks stand: node = rank // GPUs per node, local rank = rank % GPUs per node.

Launchers (torchrun, srun) fill one node after the other, so rank r of a job with g GPUs a node is
GPU r % g of node r // g. A group leaves its node when its members stand on more than one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .mesh import MAX_RANKS, whole_number


def node_of(ranks: ArrayLike, gpus_per_node: int) -> np.ndarray:
    """The node of each rank, in the shape given.

    >>> node_of([0, 7, 8, 15], gpus_per_node=8).tolist()
    [0, 0, 1, 1]
    """
    return np.asarray(ranks) // _gpus_per_node(gpus_per_node)


def local_rank(ranks: ArrayLike, gpus_per_node: int) -> np.ndarray:
    """The GPU of each rank within its node, in the shape given.

    >>> local_rank([0, 7, 8, 15], gpus_per_node=8).tolist()
    [0, 7, 0, 7]
    """
    return np.asarray(ranks) % _gpus_per_node(gpus_per_node)


def nodes_spanned(groups: ArrayLike, gpus_per_node: int) -> np.ndarray:
    """On how many nodes each group stands: int64, shape (num_groups,).

    groups: ranks, shape (num_groups, group_size), members in any order.

    >>> nodes_spanned([[0, 1], [0, 8], [8, 15]], gpus_per_node=8).tolist()
    [1, 2, 1]
    """
    nodes = node_of(groups, gpus_per_node)
    steps = np.diff(nodes, axis=-1)
    if np.any(steps < 0):  # a group of a mesh ascends already
        steps = np.diff(np.sort(nodes, axis=-1), axis=-1)
    return 1 + np.count_nonzero(steps, axis=-1)


def groups_leaving_node(groups: ArrayLike, gpus_per_node: int) -> int:
    """How many groups have members on more than one node.

    >>> groups_leaving_node([[0, 1], [0, 8], [8, 15]], gpus_per_node=8)
    1
    """
    return int(np.count_nonzero(nodes_spanned(groups, gpus_per_node) > 1))


def _gpus_per_node(value: int) -> int:
    return whole_number(value, "gpus_per_node", maximum=MAX_RANKS)
