"""Cutting a tensor into equal pieces, joining pieces, and finding a place in a group; checked."""

from __future__ import annotations

import numpy as np

from groups.errors import LayoutError
from groups.mesh import whole_number


def pieces_of(tensor: np.ndarray, count: int, dim: int = 0) -> np.ndarray:
    """The tensor cut into ``count`` equal pieces along a dim, stacked.

    >>> pieces_of(np.array([1, 2, 3, 4]), 2).tolist()
    [[1, 2], [3, 4]]

    Errors: LayoutError if the dim is not there, or its size does not split.
    """
    at = dim_of(tensor, dim)
    size = tensor.shape[at]
    if size % count:
        below = size // count * count
        raise LayoutError(
            "does-not-split",
            f"dim {at} of the tensor has size {size}, which does not split over {count} ranks",
            why="every rank of the group gets an equal piece",
            control="tensor",
            alternatives=[{"size": near} for near in (below, below + count) if near],
            facts={"dim": at, "size": size, "ranks": count},
        )
    pieces = tensor.reshape(*tensor.shape[:at], count, size // count, *tensor.shape[at + 1 :])
    return np.moveaxis(pieces, at, 0)


def joined(stacked: np.ndarray, dim: int = 0) -> np.ndarray:
    """The stacked tensors joined along a dim: the inverse of pieces_of.

    >>> joined(np.array([[1, 2], [3, 4]])).tolist()
    [1, 2, 3, 4]
    """
    return np.concatenate(stacked, axis=dim_of(stacked[0], dim))


def dim_of(tensor: np.ndarray, dim: int) -> int:
    """The dim counted from 0.

    >>> dim_of(np.ones((2, 3)), -1)
    1

    Errors: LayoutError if the tensor has no such dim.
    """
    dims = tensor.ndim
    if not dims:
        raise LayoutError(
            "no-dims",
            "a tensor that is a single number has no dim to cut or join along",
            control="tensor",
        )
    return whole_number(dim, "dim", minimum=-dims, maximum=dims - 1) % dims


def place_of(root: int, members: int) -> int:
    """The place of the root in a group of so many members, or a LayoutError.

    >>> place_of(1, members=2)
    1
    """
    return whole_number(root, "root", minimum=0, maximum=members - 1)
