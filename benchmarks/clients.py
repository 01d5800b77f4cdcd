"""Part "clients": updates per second for 16 visitors who all keep moving sliders.

Visitors are threads in processes of their own, which leaves the server a core. Each has one of
seven group types and its own walk of layouts of 16 to 64 GPUs, and asks again as soon as it is
answered.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain

from .page_client import PageClient, Served, Servers
from .timing import Table, Times, shown
from .walk import SMALL, TYPES, walk

VISITORS = 16
LEAD = 2.0  # seconds before counting begins: for the load processes to start ...
GOING = 0.5  # ... and, the last of them, for the visitors to get going

Update = tuple[float, str]
"""One answered update: its milliseconds and the layout it was about."""


def run(quick: bool, servers: Servers) -> Iterator[Table]:
    seconds = 0.5 if quick else 8.0
    rows = []
    for name, kind in (("as served", "page"), ("nothing cached", "cold")):
        updates = _crowd(servers.running(kind), seconds)
        took = Times(tuple(ms for ms, _ in updates))
        rows.append(
            (
                name,
                f"{len(updates) / seconds:.0f}",
                shown(took.median),
                shown(took.p95),
                f"{len({layout for _, layout in updates})} of {len(updates)}",
            )
        )
    yield Table(
        f"{VISITORS} visitors at once, 16 to 64 GPUs",
        ("server", "updates/s", "median ms", "p95 ms", "layouts that differ"),
        rows,
        f"Over {seconds:g} s. Aim: 100 updates/s.",
    )


def _crowd(served: Served, seconds: float) -> list[Update]:
    processes = max(1, min(4, (os.cpu_count() or 2) - 1))
    begin = time.time() + LEAD
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        seeds = [range(first, VISITORS, processes) for first in range(processes)]
        loads = [pool.submit(_visitors, served, own, begin, begin + seconds) for own in seeds]
        return list(chain.from_iterable(load.result() for load in loads))


def _visitors(served: Served, seeds: range, begin: float, end: float) -> list[Update]:
    with ThreadPoolExecutor(len(seeds)) as pool:
        return list(
            chain.from_iterable(pool.map(lambda seed: _visitor(served, seed, begin, end), seeds))
        )


def _visitor(served: Served, seed: int, begin: float, end: float) -> list[Update]:
    """What one visitor saw answered between two points in time, having warmed up before."""
    group_type = TYPES[seed % len(TYPES)]
    client, steps, seen = PageClient(served), walk(seed, SMALL), []
    time.sleep(max(0.0, begin - GOING - time.time()))
    while time.time() < end:
        sizes = next(steps)
        step = client.step(group_type=group_type, **sizes)
        if begin <= time.time() < end:
            seen.append((step.ms, f"{group_type} {sizes}"))
    client.close()
    return seen
