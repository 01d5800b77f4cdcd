"""Recorded runs of real processes in which something was made slow, and how they are recorded.

    python tests/slow_runs.py first|second|held|calm OUT.json.xz 6    # eight to sixteen processes

Each rank sleeps in place of computing, and calls Gloo's collectives under torch.profiler. What the
profiler wrote is read by `formats.traces`; of Gloo's calls it says all but their group and peer,
which the program knows, in the order of its calls. `tests/data/slow/SOURCE.md` tells more.
"""

from __future__ import annotations

import json
import lzma
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from diagnosis.slow.trace import Collective, RankTrace, TraceGroup, TraceStep
from groups.layout import Job, Layout


class Sizes(TypedDict, total=False):
    nodes: int
    gpus_per_node: int
    tp: int
    pp: int


class Case(TypedDict):
    """What is made slow: kind and ranks as `diagnosis.slow.verdict` has them; by extra of work."""

    sizes: Sizes
    cause: str
    kind: str
    ranks: list[int]
    extra: float
    jitter: float
    seed: int


class RecordedRank(TypedDict):
    groups: dict[str, list[int]]
    steps: list[tuple[int, float, float]]
    calls: list[tuple[str, str, float, float, int]]
    data: list[list[float]]
    optimizer: list[list[float]]


class Run(Case):
    of_rank: list[RecordedRank]


DATA = Path(__file__).parent / "data" / "slow"

LAYOUTS: tuple[Sizes, ...] = (
    {"nodes": 2, "gpus_per_node": 4, "tp": 2},
    {"nodes": 4, "gpus_per_node": 2, "tp": 2, "pp": 2},
    {"nodes": 2, "gpus_per_node": 4, "tp": 4},
    {"nodes": 4, "gpus_per_node": 2, "tp": 1, "pp": 2},
    {"nodes": 4, "gpus_per_node": 2, "tp": 1, "pp": 1},
    {"nodes": 4, "gpus_per_node": 2, "tp": 2, "pp": 4},
    {"nodes": 3, "gpus_per_node": 4, "tp": 2, "pp": 2},
    {"nodes": 4, "gpus_per_node": 4, "tp": 2, "pp": 2},
)
CAUSES = ("none", "rank", "node", "stage", "data", "group", "none", "place", "data-node")
STEPS = 5


def cases(part: str, rounds: int) -> Iterator[Case]:
    """What is run: a layout, a cause, who is slow and by how much; calm: nobody in any."""
    chance = random.Random({"first": 11, "second": 12, "held": 13, "calm": 14}[part])
    for number in range(rounds):
        for at, sizes in enumerate(LAYOUTS[:-2] if number % 2 else LAYOUTS):
            cause = CAUSES[(number * len(LAYOUTS) + at + number // len(CAUSES)) % len(CAUSES)]
            cause = "none" if part == "calm" else cause
            layout = Job(**sizes).layout()
            jitters = (0.1, 0.2, 0.3) if part == "calm" else (0.02, 0.1, 0.2)
            extra, jitter = chance.uniform(0.3, 0.9), chance.choice(jitters)
            seed = chance.randrange(10**6)
            kind, ranks, cause = _slow_ones(cause, layout, chance)
            yield Case(
                sizes=sizes,
                cause=cause,
                kind=kind,
                ranks=ranks,
                extra=extra,
                jitter=jitter,
                seed=seed,
            )


def _slow_ones(cause: str, layout: Layout, chance: random.Random) -> tuple[str, list[int], str]:
    """What the slow ones are, their ranks, and the cause: another where there is none such."""
    world, each = layout.world_size, layout.gpus_per_node
    every = list(range(world))
    first = [rank for rank in every if _place(layout, "pp", rank) == 0]
    if cause == "none":
        return "nobody", [], cause
    if cause in ("rank", "data"):
        return "rank", [chance.choice(first if cause == "data" else every)], cause
    if cause in ("node", "data-node"):
        nodes = sorted({rank // each for rank in (first if cause == "data-node" else every)})
        node = chance.choice(nodes)
        some = [rank for rank in every if rank // each == node]
        if cause == "data-node" and not {*some} <= {*first}:
            return "rank", [chance.choice(first)], "data"
        return "node", some, cause
    if cause == "stage" and layout.job.pp > 1:
        stage = chance.randrange(layout.job.pp)
        return "stage", [r for r in every if _place(layout, "pp", r) == stage], cause
    if cause == "place" and layout.job.tp > 1:
        place = chance.randrange(layout.job.tp)
        return "place", [r for r in every if _place(layout, "tp", r) == place], cause
    groups = [sorted(map(int, one)) for one in layout.every["dp"].groups()]
    if cause == "group" and len(groups) > 1 and len(groups[0]) > 1:
        return "group", chance.choice(groups), cause
    return "rank", [chance.choice(every)], "rank"


def _place(layout: Layout, kind: str, rank: int) -> int:
    group = sorted(map(int, layout.every[kind].members(rank)))
    return group.index(rank)


# -- running ---------------------------------------------------------------------------------------


def _worker(folder: str, rank: int, world: int, some: list[Case]) -> None:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    for number, case in enumerate(some):
        dist.init_process_group(
            "gloo", init_method=f"file://{folder}/{number}.store", rank=rank, world_size=world
        )
        _run(f"{folder}/{number}.{rank}", rank, case)
        dist.barrier()
        dist.destroy_process_group()


def _run(path: str, rank: int, case: Case) -> None:
    import time

    import torch
    import torch.distributed as dist
    from torch.profiler import ProfilerActivity, profile, schedule

    layout = Job(**case["sizes"]).layout()
    chance = random.Random(case["seed"] * 100 + rank)
    mine, groups = {}, {}
    for kind in ("tp", "dp", "pp"):
        for members in layout.every[kind].groups():
            ranks = sorted(map(int, members))
            made = dist.new_group(ranks, group_desc=f"mesh_{kind}") if len(ranks) > 1 else None
            if rank in ranks and made is not None:
                groups[kind], mine[kind] = made, ranks
    is_slow = rank in case["ranks"]
    is_data = case["cause"].startswith("data") and is_slow
    work, micro = 0.02, 3
    extra = case["extra"] * is_slow
    pipe = mine.get("pp", [rank])
    stage = pipe.index(rank)
    log: list[tuple[str, int]] = []
    small = torch.ones(64)
    large = torch.ones(16_000_000 if case["kind"] == "group" and is_slow else 64)

    class Samples(torch.utils.data.Dataset):
        def __len__(self) -> int:
            return 1000

        def __getitem__(self, at: int) -> torch.Tensor:
            if is_data:
                time.sleep(2 * micro * work * extra)
            return torch.ones(4)

    def compute() -> None:
        slower = extra if not is_data and case["kind"] != "group" else 0.0
        time.sleep(work * (1 + slower) * chance.lognormvariate(0, case["jitter"]))

    def reduce(kind: str, what: torch.Tensor) -> None:
        if kind in groups:
            log.append((kind, -1))
            dist.all_reduce(what, group=groups[kind])

    def move(to: int, is_send: bool) -> None:
        if 0 <= to < len(pipe):
            log.append(("pp", pipe[to]))
            call = dist.send if is_send else dist.recv
            call(small, pipe[to], group=groups["pp"])

    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(4))], lr=0.1)
    loader = iter(torch.utils.data.DataLoader(Samples(), batch_size=1))
    recorded: list[int] = []
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=0, warmup=1, active=STEPS),
        on_trace_ready=lambda one: one.export_chrome_trace(f"{path}.json"),
    ) as profiler:
        for step in range(1 + STEPS):
            if step == 1:
                recorded.append(len(log))
            if stage == 0:
                next(loader)
            for way in (1, -1):
                for _ in range(micro):
                    move(stage - way, is_send=False)
                    compute()
                    reduce("tp", small)
                    move(stage + way, is_send=True)
            reduce("dp", large)
            optimizer.step()
            profiler.step()
    with open(f"{path}.log", "w", encoding="utf-8") as file:
        json.dump(log[recorded[0] :], file)


def recorded(folder: str, number: int, case: Case) -> Run:
    """What is kept of a run: steps, calls and annotations of each rank, relative to the first."""
    from formats.traces import read_file

    ranks: list[RecordedRank] = []
    world = Job(**case["sizes"]).layout().world_size
    for rank in range(world):
        trace = read_file(Path(folder, f"{number}.{rank}.json"))
        log = json.loads(Path(folder, f"{number}.{rank}.log").read_text())
        calls = [call for call in trace.collectives if call.kind != "barrier"]
        assert len(calls) == len(log), (case, rank, len(calls), len(log))
        ranks.append(
            RecordedRank(
                groups={g.kind: [*g.ranks] for g in trace.groups.values() if g.kind and g.ranks},
                steps=[*trace.steps],
                calls=[
                    (kind, call.kind, call.start, call.duration, peer)
                    for call, (kind, peer) in zip(calls, log)
                ],
                data=trace.data.tolist(),
                optimizer=trace.optimizer.tolist(),
            )
        )
    zero = min(one["steps"][0][1] for one in ranks)

    def since(time: float) -> float:
        return round(time - zero, 1)

    for one in ranks:
        one["steps"] = [(n, since(start), round(took, 1)) for n, start, took in one["steps"]]
        one["calls"] = [
            (group, kind, since(start), round(took, 1), peer)
            for group, kind, start, took, peer in one["calls"]
        ]
        one["data"] = [[since(at) for at in span] for span in one["data"]]
        one["optimizer"] = [[since(at) for at in span] for span in one["optimizer"]]
    return Run(**case, of_rank=ranks)


def main(part: str, out: str, rounds: int) -> None:

    by_world: dict[int, list[Case]] = {}
    for case in cases(part, rounds):
        by_world.setdefault(Job(**case["sizes"]).layout().world_size, []).append(case)
    runs = []
    for world, some in by_world.items():
        with tempfile.TemporaryDirectory() as folder:
            children = []
            for rank in range(world):
                child = os.fork()
                if not child:
                    try:
                        _worker(folder, rank, world, some)
                    finally:
                        os._exit(0)
                children.append(child)
            for child in children:
                os.waitpid(child, 0)
            runs += [recorded(folder, number, case) for number, case in enumerate(some)]
    with lzma.open(out, "wt", encoding="utf-8") as file:
        json.dump(runs, file)


# -- reading ---------------------------------------------------------------------------------------


def runs(part: str) -> list[Run]:
    with lzma.open(DATA / f"{part}.json.xz", "rt", encoding="utf-8") as file:
        found: list[Run] = json.load(file)
    return found


def traces(run: Run, named: bool = True) -> Iterator[RankTrace]:
    """The traces of a run as the reader has them; every second node's clock is ahead.

    named: whether the calls say their group.
    """
    each = run["sizes"]["gpus_per_node"]
    for rank, one in enumerate(run["of_rank"]):
        ahead = 77_777.0 * (rank // each % 2)
        groups = {k: TraceGroup(k, f"mesh_{k}", k, tuple(r)) for k, r in one["groups"].items()}
        yield RankTrace(
            file=f"{rank}.json",
            rank=rank,
            world=len(run["of_rank"]),
            backend="gloo",
            running=None,
            groups=groups,
            steps=tuple(TraceStep(n, start + ahead, long) for n, start, long in one["steps"]),
            collectives=tuple(
                Collective(
                    group if named else None,
                    kind,
                    start + ahead,
                    long,
                    peer=peer if named and peer >= 0 else None,
                )
                for group, kind, start, long, peer in one["calls"]
            ),
            computation=np.empty((0, 2)),
            kernels=0,
            events=1,
            data=np.array(one["data"]).reshape(-1, 2) + ahead,
            optimizer=np.array(one["optimizer"]).reshape(-1, 2) + ahead,
        )


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
