"""Part "served": a layout of servers beside a training layout of as many GPUs, in turns.

What the page draws in each view that shows groups, and what the endpoints answer, without a server:
the layouts differ from step to step, so that nothing is remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import cycle

from request.state import State
from views.all import ENDPOINTS
from views.page import answer

from .page_client import Servers
from .timing import ResultTable, interleaved, shown, times

WORLDS = {16: 2, 131_072: 16_384}  # GPUs: nodes of 8
REPEATS, QUICK = 15, 1
AIM = 1.2

TRAINED = {"framework": "megatron", "tp": 2, "pp": 2}
SERVED = {"framework": "vllm", "tp": 2, "pp": 2}
"""What both have, so that they have as many groups; vLLM's are one server each."""

VIEWS = ("groups", "nodes", "orders", "ranks", "launch", "memory")
ASKED = {"layout": "layout", "rank_card": "rank_card", "node_audit": "node_audit"}
ASKED["memory_per_rank"] = "server_memory"
"""An endpoint, and the one that is its like of servers."""


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    rows = []
    for world, nodes in WORLDS.items():
        works = {**_views(nodes), **_endpoints(nodes, world)}
        for name, (training, serving) in works.items():
            took = interleaved(QUICK if quick else REPEATS, training=training, serving=serving)
            ratio = took["serving"].median / took["training"].median
            medians = (shown(took[kind].median) for kind in ("training", "serving"))
            rows.append((name, f"{world:,}", *medians, times(ratio)))
    yield ResultTable(
        "Servers beside a training layout",
        ("what", "GPUs", "training ms", "serving ms", "x training"),
        rows,
        f"Aim: a slider step within {AIM}x.",
    )


Works = tuple[Callable[[], object], Callable[[], object]]


def _views(nodes: int) -> Mapping[str, Works]:
    """What the page draws of each view, of another chosen GPU each time."""
    ranks = cycle(range(1, 16))

    def draws(view: str, layout: Mapping[str, object]) -> Callable[[], object]:
        asked = {"view": view, "nodes": nodes, "gpus_per_node": 8, **layout}
        return lambda: answer(State(**asked, rank=str(next(ranks))))

    return {f"view {view}": (draws(view, TRAINED), draws(view, SERVED)) for view in VIEWS}


def _endpoints(nodes: int, world: int) -> Mapping[str, Works]:
    """The endpoints, but for lists of all groups of a large world, which are refused."""

    def asks(name: str, layout: Mapping[str, object]) -> Callable[[], object]:
        more = {"rank": 5} if name == "rank_card" else {}
        return lambda: ENDPOINTS[name](nodes=nodes, gpus_per_node=8, **layout, **more)

    names = {one: other for one, other in ASKED.items() if world < 4096 or one != "layout"}
    return {one: (asks(one, TRAINED), asks(other, SERVED)) for one, other in names.items()}
