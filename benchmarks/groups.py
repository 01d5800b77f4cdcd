"""Part "groups": all tp, cp, dp and pp groups by rank_groups and by plain loops, in turns.

Twice: in a young process, whose C library gives memory back to the system after each large array
and pays a page fault for every 4 KB of the next; and once it has freed one of 32 MB, after which
glibc keeps what is freed (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD follow the largest block freed), as
in a server that has drawn a large world.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groups import Mesh, fit, rank_groups

from .page_client import Servers
from .plain import plain_groups
from .timing import Table, interleaved, shown, times

KINDS = ("tp", "cp", "dp", "pp")
REPEATS = {1_024: 101, 16_384: 31, 131_072: 15, 1_048_576: 5}
QUICK = {1_024: 3, 16_384: 2, 131_072: 1}


def run(quick: bool, servers: Servers) -> Iterator[Table]:
    meshes = {
        fit(world, tp=8, cp=2, pp=16): n for world, n in (QUICK if quick else REPEATS).items()
    }
    for mesh in meshes:
        _check_same(mesh)
    young = [_measured(mesh, repeats) for mesh, repeats in meshes.items()]
    _settle()
    settled = [_measured(mesh, repeats) for mesh, repeats in meshes.items()]
    yield Table(
        "Groups: all of tp, cp, dp and pp",
        ("ranks", "mesh", "loops ms", "young ms", "faster", "settled ms", "faster"),
        [
            (f"{mesh.world_size:,}", str(mesh), shown(then[1]), *_versus(*first), *_versus(*then))
            for mesh, first, then in zip(meshes, young, settled)
        ],
        "rank_groups in a young process and in one with settled memory, against plain loops of\n"
        "Python that give the same groups. Aim: 150x at 131,072 ranks.",
    )


def _measured(mesh: Mesh, repeats: int) -> tuple[float, float]:
    """Medians of rank_groups and of plain loops, in milliseconds."""
    sizes = {axis.name: axis.size for axis in mesh.axes}
    took = interleaved(
        repeats,
        ours=lambda: [rank_groups(mesh, kind) for kind in KINDS],
        plain=lambda: plain_groups(**sizes),
    )
    return took["ours"].median, took["plain"].median


def _versus(ours: float, plain: float) -> tuple[str, str]:
    return shown(ours), times(plain / ours)


def _settle() -> None:
    np.empty(31 << 20, dtype=np.uint8)


def _check_same(mesh: Mesh) -> None:
    plain = plain_groups(**{axis.name: axis.size for axis in mesh.axes})
    for kind in KINDS:
        if rank_groups(mesh, kind).tolist() != plain[kind]:
            raise AssertionError(f"the {kind} groups of {mesh} differ from those of plain loops")
