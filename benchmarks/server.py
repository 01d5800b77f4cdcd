"""Part "server": a slider step by raw HTTP, against an event of Gradio that does nothing.

Each server has a process of its own; the steps take turns, so all meet the same machine. "seen"
steps between four layouts that the server remembers; "new" makes it forget them before each step.
"served" is SGLang's layout of as many GPUs, with two meshes; it is never remembered.
"empty" is an event without Gradio's queue, as the page's is; "queued" is one with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from .page_client import PageClient, Reply, Servers
from .timing import ResultTable, Timings, shown, times

WORLDS = {16: 2, 256: 32, 16_384: 2_048, 131_072: 16_384}  # GPUs: nodes of 8
WARM_UP = 4
TRAINED = {"framework": "megatron", "dp": "", "ep": 1}
SIZES = [(tp, pp) for pp in (2, 4) for tp in (2, 4)]


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    warm_up, rounds = (0, 1) if quick else (WARM_UP, 60)
    with ExitStack() as stack:
        clients = {
            name: PageClient(servers.running(kind))
            for name, kind in (
                ("empty", "empty"),
                ("queued", "queued"),
                ("seen", "page"),
                ("new", "cold"),
            )
        }
        for client in clients.values():
            stack.callback(client.close)
        steps: dict[tuple[str, int], list[Reply]] = {}
        for turn in range(warm_up + rounds):
            tp, pp = SIZES[turn % len(SIZES)]
            taken = {(name, 0): clients[name].step(tp=turn % 64) for name in ("empty", "queued")}
            for world, nodes in WORLDS.items():
                for name in ("seen", "new"):
                    step = clients[name].step(nodes=nodes, tp=tp, pp=pp, **TRAINED)
                    taken[name, world] = step
                served = {"nodes": nodes, "tp": 2 * tp, "pp": pp, "dp": "2", "ep": 2 * tp}
                taken["new, served", world] = clients["new"].step(framework="sglang", **served)
            if turn >= warm_up:
                for key, step in taken.items():
                    steps.setdefault(key, []).append(step)
    yield ResultTable(
        "A slider step through the server, raw HTTP",
        ("event", "GPUs", "median ms", "p95 ms", "x empty", "CPU ms", "x empty", "bytes"),
        [_row(*key, taken, steps["empty", 0]) for key, taken in steps.items()],
        "CPU: of the server's process; on a busy machine it says the same as on a quiet one. "
        "Aim: at most 2x an empty event at 16 GPUs.",
    )


def _row(name: str, world: int, taken: list[Reply], empty: list[Reply]) -> tuple[str, ...]:
    took, floor = (
        Timings(tuple(step.ms for step in steps), tuple(step.cpu_ms for step in steps))
        for steps in (taken, empty)
    )
    return (
        name,
        f"{world:,}" if world else "–",
        shown(took.median),
        shown(took.p95),
        times(took.median / floor.median),
        shown(took.cpu),
        times(took.cpu / floor.cpu),
        f"{taken[-1].size:,}",
    )
