"""Part "groups": all groups by numpy and by plain loops, in turns.

First tp, cp, dp and pp by rank_groups, then every name that Megatron has by process_groups. Both
twice: in a young process, whose C library gives memory back to the system after each large array
and pays a page fault for every 4 KB of the next; and once it has freed one of 32 MB, after which
glibc keeps what is freed (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD follow the largest block freed), as
in a server that has drawn a large world.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from groups import Mesh, fit, rank_groups
from groups.megatron.parallel_state import process_groups

from .page_client import Servers
from .plain import plain_groups, plain_process_groups
from .timing import Table, interleaved, shown, times

KINDS = ("tp", "cp", "dp", "pp")
REPEATS = {1_024: 101, 16_384: 31, 131_072: 15, 1_048_576: 5}
QUICK = {1_024: 3, 16_384: 2, 131_072: 1}

JOB = {"tp": 8, "cp": 2, "pp": 16, "ep": 8, "etp": 1}
INSTANCES, LEVELS = 2, [2, 1]
"""Of the distributed optimizer and of hierarchical context parallelism: groups of every shape."""

JOBS = {16_384: 31, 131_072: 7}
QUICK_JOBS = {16_384: 2}


def run(quick: bool, servers: Servers) -> Iterator[Table]:
    meshes = {
        fit(world, tp=8, cp=2, pp=16): n for world, n in (QUICK if quick else REPEATS).items()
    }
    for mesh in meshes:
        _check_same(mesh)
    jobs = QUICK_JOBS if quick else JOBS
    names = {world: _check_same_job(world) for world in jobs}
    young = [_measured(mesh, repeats) for mesh, repeats in meshes.items()]
    young_jobs = [_measured_job(world, repeats) for world, repeats in jobs.items()]
    _settle()
    settled = [_measured(mesh, repeats) for mesh, repeats in meshes.items()]
    settled_jobs = [_measured_job(world, repeats) for world, repeats in jobs.items()]
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
    yield Table(
        "Groups: every name of Megatron's, " + " ".join(f"{n} {size}" for n, size in JOB.items()),
        ("ranks", "names", "loops ms", "young ms", "faster", "settled ms", "faster"),
        [
            (f"{world:,}", str(names[world]), shown(then[1]), *_versus(*first), *_versus(*then))
            for world, first, then in zip(jobs, young_jobs, settled_jobs)
        ],
        f"process_groups, checks included, with {INSTANCES} optimizer instances and context\n"
        f"parallel levels {LEVELS}, against lists of Python's that give the same groups.",
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


def _job(world: int) -> dict[str, object]:
    return process_groups(
        world,
        num_distributed_optimizer_instances=INSTANCES,
        hierarchical_context_parallel_sizes=LEVELS,
        **JOB,
    )


def _plain_job(world: int) -> dict[str, list[list[int]]]:
    return plain_process_groups(world, instances=INSTANCES, levels=LEVELS, **JOB)


def _measured_job(world: int, repeats: int) -> tuple[float, float]:
    """Medians of process_groups and of plain lists, in milliseconds."""
    took = interleaved(repeats, ours=lambda: _job(world), plain=lambda: _plain_job(world))
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


def _check_same_job(world: int) -> int:
    """How many names there are, the same ones with the same groups."""
    ours, plain = _job(world), _plain_job(world)
    if ours.keys() != plain.keys():
        raise AssertionError(f"only one of the two has {sorted(ours.keys() ^ plain.keys())}")
    for name, groups in ours.items():
        if groups.tolist() != plain[name]:
            raise AssertionError(f"the {name} groups of {world} ranks differ from plain lists")
    return len(ours)
