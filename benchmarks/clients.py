"""Part "clients": updates per second for 16 visitors who all keep moving sliders.

Visitors are threads in processes of their own, which leaves the server a core. Each has one of
seven group types and its own walk of layouts of 16 to 64 GPUs, and asks again as soon as it is
answered.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import chain, count

from .page_client import PageClient, Served, Servers
from .timing import ResultTable, Timings, shown
from .walk import SMALL, TYPES, walk

VISITORS = 16
LEAD = 2.0  # seconds before counting begins: for the load processes to start ...
GOING = 0.5  # ... and, the last of them, for the visitors to get going

Update = tuple[float, str]
"""One answered update: its milliseconds and the layout it was about."""

Ask = Callable[[PageClient, int], None]
"""A heavy request; the number makes each a little different."""


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    seconds = 0.5 if quick else 8.0
    processes = max(1, min(4, (os.cpu_count() or 2) - 1))
    rows = []
    for name, kind in (("as served", "page"), ("nothing cached", "cold")):
        updates, _ = crowd(servers.running(kind), seconds, VISITORS, SMALL, processes=processes)
        layouts = len({layout for _, layout in updates})
        rows.append((name, *rates(updates, seconds), f"{layouts} of {len(updates)}"))
    yield ResultTable(
        f"{VISITORS} visitors at once, 16 to 64 GPUs",
        ("server", "updates/s", "median ms", "p95 ms", "layouts that differ"),
        rows,
        f"Over {seconds:g} s. Aim: 100 updates/s.",
    )


def rates(updates: Sequence[Update], seconds: float) -> tuple[str, str, str]:
    """Updates a second, and how long the median and the slow ones took; a busy machine may end none
    in half a second."""
    if not updates:
        return "0", "none", "none"
    took = Timings(tuple(ms for ms, _ in updates))
    return f"{len(updates) / seconds:.0f}", shown(took.median), shown(took.p95)


def crowd(
    served: Served,
    seconds: float,
    visitors: int,
    nodes: Sequence[int],
    *,
    processes: int = 1,
    heavy: tuple[int, Ask | None] = (0, None),
) -> tuple[list[Update], int]:
    """What visitors on such nodes saw answered, and answers to so many heavy ones beside them."""
    begin = time.time() + LEAD
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
        seeds = [range(first, visitors, processes) for first in range(processes)]
        times = (begin, begin + seconds)
        loads = [pool.submit(_visitors, served, own, nodes, heavy, *times) for own in seeds]
        answered = [load.result() for load in loads]
    return list(chain.from_iterable(answer for answer, _ in answered)), sum(n for _, n in answered)


def _visitors(
    served: Served,
    seeds: range,
    nodes: Sequence[int],
    heavy: tuple[int, Ask | None],
    begin: float,
    end: float,
) -> tuple[list[Update], int]:
    number, ask = heavy
    with ThreadPoolExecutor(len(seeds) + number) as pool:
        loads = [pool.submit(_heavy, served, ask, seed, end) for seed in range(number) if ask]
        moves = [pool.submit(_visitor, served, seed, nodes, begin, end) for seed in seeds]
        updates = [update for future in moves for update in future.result()]
        return updates, sum(future.result() for future in loads)


def _visitor(
    served: Served, seed: int, nodes: Sequence[int], begin: float, end: float
) -> list[Update]:
    """What one visitor saw answered between two points in time, having warmed up before."""
    group_type = TYPES[seed % len(TYPES)]
    client, steps, seen = PageClient(served), walk(seed, nodes), []
    time.sleep(max(0.0, begin - GOING - time.time()))
    while time.time() < end:
        sizes = next(steps)
        step = client.step(group_type=group_type, **sizes)
        if begin <= time.time() < end:
            seen.append((step.ms, f"{group_type} {sizes}"))
    client.close()
    return seen


def _heavy(served: Served, ask: Ask, seed: int, end: float) -> int:
    """Ask until the end; how many answers there were, refusals among them."""
    client = PageClient(served)
    for number in count():
        if time.time() >= end:
            break
        ask(client, seed + number)
    client.close()
    return number
