"""Part "search": the best layouts for published models, nothing cached, and what a step sends.

search    all valid layouts put in order, the ten best worked out (training.search)
tried     valid layouts; ways: those with every micro-batch, dealing and recomputation
traffic   every transfer of the first layout found (training.traffic.per_step)
matrix    who sends how much to whom in it (training.traffic.matrix)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from groups.megatron.parallel_state import groupings
from training.clusters import CLUSTERS
from training.models import MODELS
from training.recipe import Training
from training.search import SearchJob, search
from training.traffic.matrix import matrix
from training.traffic.per_step import Traffic, traffic

from .caches import clear_caches
from .page_client import Servers
from .timing import ResultTable, interleaved, shown

# model, cluster, GPUs, GPUs of a node, global batch, tokens of a sequence
CASES = (
    ("llama3-8b", "dgx-h100", 16, 8, 64, 8_192),
    ("gpt3-175b", "dgx-a100", 1_024, 8, 1_536, 2_048),
    ("deepseek-v3", "hgx-h800", 2_048, 8, 15_360, 4_096),
    ("deepseek-v3", "gb200-nvl72", 256, 4, 4_096, 4_096),
    ("llama3-405b", "dgx-h100", 16_384, 8, 2_048, 8_192),
    ("llama3-405b", "dgx-h100", 16_384, 8, 128, 131_072),
    ("deepseek-v3", "hgx-h800", 16_384, 8, 15_360, 4_096),
)


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    yield ResultTable(
        "Better layouts, nothing cached",
        ("model", "GPUs", "tried", "ways", "search ms", "p95 ms", "traffic ms", "matrix ms"),
        [_row(*case, repeats=1 if quick else 10) for case in (CASES[:2] if quick else CASES)],
    )


def _row(
    name: str, cluster: str, world: int, per_node: int, batch: int, tokens: int, *, repeats: int
) -> tuple[str, ...]:
    machine = CLUSTERS[cluster]
    model = replace(MODELS[name].model, sequence=tokens)
    job = SearchJob(model, Training(), batch, world, per_node, cluster, machine.memory)
    found = search(job)
    best = found.best[0]
    sizes = {axis: getattr(best.request.split, axis) for axis in ("tp", "cp", "pp", "ep", "etp")}
    every = groupings(world, **sizes)

    def sent() -> list[Traffic]:
        return traffic(model, best.request.split, best.request.training, every, machine, per_node)

    def uncached(work):  # type: ignore[no-untyped-def]
        def run() -> object:
            clear_caches()
            return work()

        return run

    rows = sent()
    took = interleaved(
        repeats,
        search=uncached(lambda: search(job)),
        traffic=uncached(sent),
        matrix=uncached(lambda: matrix(rows, every, every["tp"].mesh, per_node)),
    )
    return (
        name,
        f"{world:,}",
        f"{found.tried:,}",
        f"{found.ways:,}",
        shown(took["search"].median),
        shown(took["search"].p95),
        shown(took["traffic"].median),
        shown(took["matrix"].median),
    )
