"""Part "groups": all groups by numpy and by plain loops, in turns.

First tp, cp, dp and pp by rank_groups, then every name that Megatron has by process_groups. Both
twice: in a young process, whose C library gives memory back to the system after each large array
and pays a page fault for every 4 KB of the next; and once it has freed one of 32 MB, after which
glibc keeps what is freed (M_MMAP_THRESHOLD and M_TRIM_THRESHOLD follow the largest block freed), as
in a server that has drawn a large world.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from groups import fit, rank_groups
from groups.megatron.parallel_state import process_groups

from .page_client import Servers
from .plain import plain_groups, plain_process_groups
from .timing import ResultTable, interleaved, shown, times

KINDS = ("tp", "cp", "dp", "pp")
REPEATS = {1_024: 101, 16_384: 31, 131_072: 15, 1_048_576: 5}
QUICK = {1_024: 3, 16_384: 2, 131_072: 1}

JOB = {"tp": 8, "cp": 2, "pp": 16, "ep": 8, "etp": 1}
INSTANCES, LEVELS = 2, [2, 1]
"""Of the distributed optimizer and of hierarchical context parallelism: groups of every shape."""

JOBS = {16_384: 31, 131_072: 7}
QUICK_JOBS = {16_384: 2}


@dataclass(frozen=True)
class MadeTwice:
    """The same groups made twice: by numpy, and by lists of Python's alone."""

    world: int
    what: str
    repeats: int
    ours: Callable[[], Mapping[str, Any]]  # arrays, or lists where groups differ in size
    plain: Callable[[], dict[str, list[list[int]]]]

    def check(self) -> None:
        ours = {name: groups.tolist() for name, groups in self.ours().items()}
        if ours != self.plain():
            raise AssertionError(f"{self.what} of {self.world} ranks differ from those of lists")

    def medians(self) -> tuple[float, float]:
        """Of both, in milliseconds."""
        took = interleaved(self.repeats, ours=self.ours, plain=self.plain)
        return took["ours"].median, took["plain"].median


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    cases = [_of_mesh(*sizes) for sizes in (QUICK if quick else REPEATS).items()]
    cases += [_of_job(*sizes) for sizes in (QUICK_JOBS if quick else JOBS).items()]
    for case in cases:
        case.check()
    young = [case.medians() for case in cases]
    np.empty(31 << 20, dtype=np.uint8)  # large, and freed: memory is settled
    settled = [case.medians() for case in cases]
    yield ResultTable(
        "Groups of " + " ".join(f"{name} {size}" for name, size in JOB.items()),
        ("ranks", "groups", "loops ms", "young ms", "faster", "settled ms", "faster"),
        [
            (f"{case.world:,}", case.what, shown(then[1]), *_versus(*first), *_versus(*then))
            for case, first, then in zip(cases, young, settled)
        ],
        "A mesh: rank_groups of tp, cp, dp and pp against plain loops; aim: 150x at 131,072\n"
        f"ranks. Names: process_groups, checks included, with {INSTANCES} optimizer instances and\n"
        f"context parallel levels {LEVELS}, against lists.",
    )


def _of_mesh(world: int, repeats: int) -> MadeTwice:
    mesh = fit(world, tp=JOB["tp"], cp=JOB["cp"], pp=JOB["pp"])
    sizes = {axis.name: axis.size for axis in mesh.axes}
    return MadeTwice(
        *(world, str(mesh), repeats),
        ours=lambda: {kind: rank_groups(mesh, kind) for kind in KINDS},
        plain=lambda: plain_groups(**sizes),
    )


def _of_job(world: int, repeats: int) -> MadeTwice:
    options: dict[str, Any] = {
        "num_distributed_optimizer_instances": INSTANCES,
        "hierarchical_context_parallel_sizes": LEVELS,
        **JOB,
    }
    plain = partial(plain_process_groups, world, instances=INSTANCES, levels=LEVELS, **JOB)
    names = f"{len(plain())} names of Megatron's"
    return MadeTwice(world, names, repeats, lambda: process_groups(world, **options), plain)


def _versus(ours: float, plain: float) -> tuple[str, str]:
    return shown(ours), times(plain / ours)
