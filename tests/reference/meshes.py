"""Meshes as other programs write them: row-major, the last axis the fastest."""

from __future__ import annotations

from collections.abc import Sequence

from groups.errors import LayoutError
from groups.mesh import Axis, Mesh


def row_major(names: Sequence[str], shape: Sequence[int]) -> Mesh:
    """The mesh of a shape whose last axis is the fastest, as numpy, torch and TensorFlow write it.

    >>> str(row_major(["pipe", "data", "model"], [4, 2, 2]))
    'model2-data2-pipe4'

    Errors: LayoutError if there are not as many names as sizes, or the mesh cannot be.
    """
    if len(names) != len(shape):
        raise LayoutError(
            "names-and-sizes-differ",
            f"{len(names)} axis names do not go with {len(shape)} sizes",
            why="every axis has one name and one size",
            control="mesh",
            facts={"names": len(names), "sizes": len(shape)},
        )
    return Mesh(tuple(Axis(name, size) for name, size in zip(names, shape))[::-1])
