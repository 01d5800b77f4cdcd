"""Part "load": many visitors, light ones beside heavy ones, and the memory after the heaviest.

A light visitor moves a slider at 16 GPUs; a heavy one asks for the heaviest things in a loop, each
a little different from the last. Visitors are threads in a process of their own.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from views.server.worker import IDLE

from .clients import crowd, rates
from .memory import rss
from .page_client import PageClient, Served, Servers, serving
from .timing import ResultTable

VISITORS = (16, 64, 200)
HEAVY = (0, 1, 4, 8)
AFTER = 30
"""Heavy requests whose memory is measured."""

SIXTEEN = (2,)
"""Nodes of 16 GPUs."""


def run(quick: bool, servers: Servers) -> Iterator[ResultTable | str]:
    seconds = 0.5 if quick else 8.0
    fresh = partial(_shared, servers) if quick else partial(serving, "page")
    rows = []
    for visitors in VISITORS[:1] if quick else VISITORS:
        with fresh() as served:
            rows.append(_crowd(served, visitors, 0, seconds))
    for heavy in HEAVY[1:2] if quick else HEAVY:
        with fresh() as served:
            rows.append(_crowd(served, 1, heavy, seconds))
    heads = ("light visitors", "heavy ones", "updates/s", "median ms", "p95 ms", "heavy answers")
    note = f"Over {seconds:g} s. Aim: p95 under 300 ms beside 8 heavy ones."
    yield ResultTable("Slider steps at 16 GPUs under load", heads, rows, note)
    if rss(1) is None:
        yield "memory: skipped, this system has no /proc"
        return
    with fresh() as served:
        yield _memory(served, *((1, 0.0) if quick else (AFTER, IDLE + 2)))


def _shared(servers: Servers) -> AbstractContextManager[Served]:
    return nullcontext(servers.running("page"))


def _crowd(served: Served, light: int, heavy: int, seconds: float) -> tuple[str, ...]:
    updates, answers = crowd(served, seconds, light, SIXTEEN, heavy=(heavy, ask))
    return str(light), str(heavy), *rates(updates, seconds), str(answers)


def ask(client: PageClient, number: int) -> None:
    """One of the heaviest things, each time a little different."""
    view = {"nodes": "131072", "tp": "8", "pp": str(2 ** (number // 6 % 6))}
    pipeline = {"nodes": "64", "tp": "1", "pp": "512", "view": "pipeline", "layers": "1024"}
    pipeline |= {"schedule": "zb-v", "against": "zb-h2"}
    kinds: tuple[dict[str, Any] | str, ...] = (
        {**view, "view": "search"},
        {"nodes": "90090", "tp": "1", "pp": "1", "view": "search", "layers": 5040 - number},
        {**view, "view": "nodes"},
        {**pipeline, "micro_batches": 970 - number},
        {**view, "view": "orders", "framework": "deepspeed"},
        "rank_table",
    )
    kind = kinds[number % len(kinds)]
    if isinstance(kind, str):
        client.call(kind, nodes=16384, tp=8, pp=2 ** (number // 6 % 6))
    else:
        client.step(**kind)


def _memory(served: Served, requests: int, wait: float) -> ResultTable:
    """Memory of the server and of its processes before the heaviest requests, and some seconds
    after them."""
    client = PageClient(served)
    for tp in (1, 2, 4, 8):
        client.step(tp=tp)
    before, most = _whole(served.pid), 0.0
    for number in range(requests):
        ask(client, number)
        most = max(most, _whole(served.pid))
    time.sleep(wait)
    after = _whole(served.pid)
    client.close()
    row = (str(requests), *(f"{mb:.0f}" for mb in (before, most, after)))
    more = f"{100 * (after / before - 1):+.0f} %"
    heads = ("heavy requests", "MB before", "most", "MB after", "change")
    return ResultTable("Memory of the server", heads, [(*row, more)], "Aim: within 20 % of before.")


def _whole(pid: int) -> float:
    """Resident MB of a process and of those that it started."""
    children = Path(f"/proc/{pid}/task").glob("*/children")
    pids = [int(child) for path in children for child in path.read_text(encoding="ascii").split()]
    return sum(rss(process) or 0.0 for process in (pid, *pids))
