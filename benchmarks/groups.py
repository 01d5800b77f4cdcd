"""Part "groups": all tp, cp, dp and pp groups by rank_groups and by plain loops, in turns."""

from __future__ import annotations

from collections.abc import Iterator

from groups import Mesh, fit, rank_groups

from .plain import plain_groups
from .timing import Table, interleaved, shown, times

KINDS = ("tp", "cp", "dp", "pp")
REPEATS = {1_024: 101, 16_384: 31, 131_072: 15, 1_048_576: 5}
QUICK = {1_024: 3, 16_384: 2, 131_072: 1}


def run(quick: bool) -> Iterator[Table]:
    rows = [_row(world, repeats) for world, repeats in (QUICK if quick else REPEATS).items()]
    yield Table(
        "Groups: all of tp, cp, dp and pp",
        ("ranks", "mesh", "rank_groups ms", "plain loops ms", "faster"),
        rows,
        "Both give the same groups. Aim: 150x at 131,072 ranks.",
    )


def _row(world: int, repeats: int) -> tuple[str, ...]:
    mesh = fit(world, tp=8, cp=2, pp=16)
    sizes = {axis.name: axis.size for axis in mesh.axes}
    _check_same(mesh, plain_groups(**sizes))
    took = interleaved(
        repeats,
        ours=lambda: [rank_groups(mesh, kind) for kind in KINDS],
        plain=lambda: plain_groups(**sizes),
    )
    ours, plain = took["ours"].median, took["plain"].median
    return (f"{world:,}", str(mesh), shown(ours), shown(plain), times(plain / ours))


def _check_same(mesh: Mesh, plain: dict[str, list[list[int]]]) -> None:
    for kind in KINDS:
        if rank_groups(mesh, kind).tolist() != plain[kind]:
            raise AssertionError(f"the {kind} groups of {mesh} differ from those of plain loops")
