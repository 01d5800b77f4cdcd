"""Part "memory": what the server's process holds while 1,000 layouts pass through it.

RSS of a server of its own (with --quick: of the shared one), after a warm-up and then after every
quarter of the updates: layouts of 8 to 131,072 GPUs of several group types, with a new visitor
every 50 updates.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

from .page_client import PageClient, Served, Servers, serving
from .timing import ResultTable
from .walk import ANY, TYPES, walk

WARM_UP = 10
VISIT = 50


def run(quick: bool, servers: Servers) -> Iterator[ResultTable | str]:
    updates = 8 if quick else 1_000
    with nullcontext(servers.running("page")) if quick else serving("page") as served:
        if rss(served.pid) is None:
            yield "memory: skipped, this system has no /proc"
            return
        _visits(served, WARM_UP, seed=-1)
        held = [rss(served.pid) or 0.0]
        for quarter in range(4):
            _visits(served, updates // 4, seed=quarter)
            held.append(rss(served.pid) or 0.0)
    rows = [
        (f"{quarter * updates // 4:,}", f"{mb:.0f}", f"{mb - before:+.0f}" if quarter else "–")
        for quarter, (mb, before) in enumerate(zip(held, [0.0, *held]))
    ]
    yield ResultTable("Memory of the server", ("updates", "RSS MB", "change"), rows)


def _visits(served: Served, updates: int, seed: int) -> None:
    steps = walk(seed, ANY)
    client = PageClient(served)
    for number in range(updates):
        if number and number % VISIT == 0:
            client.close()
            client = PageClient(served)
        client.step(group_type=TYPES[number % len(TYPES)], **next(steps))
    client.close()


def rss(pid: int) -> float | None:
    """Resident memory of a process in MB (10**6 bytes), or None where /proc does not tell."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    found = [line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(found[0]) * 1024 / 1e6 if found else None
