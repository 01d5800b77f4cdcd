"""Hangs injected into real torch processes, whose dumps `judge_hangs` has read.

    python -m benchmarks.hangs --processes 8 --hangs 100 --dumps DIRECTORY

Every process runs a small training program over gloo: per iteration all-reduces and all-gathers of
its tp group, an all-to-all of its ep group, a broadcast along pp, all-reduces of dp and of all.
One rank does something else at one place: it stops, is late, calls another collective, another
size, another group, or two calls in the other order. When nothing moves any more each process
dumps what PyTorch's Flight Recorder holds. Groups are new for every hang; one launch serves many.

gloo does not write the members of a group into its dumps as NCCL does, and its state stays
"scheduled"; a second dump of each process has ``pg_config`` filled in as NCCL writes it.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import itertools
import json
import os
import pickle
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

KINDS = ("stopped", "late", "other collective", "other size", "other group", "other order")
LAYOUTS = {
    4: [{"tp": 2, "pp": 1, "ep": 2}, {"tp": 1, "pp": 2, "ep": 1}],
    8: [{"tp": 2, "pp": 2, "ep": 2}, {"tp": 4, "pp": 1, "ep": 2}, {"tp": 1, "pp": 2, "ep": 4}],
    16: [{"tp": 2, "pp": 2, "ep": 4}, {"tp": 4, "pp": 2, "ep": 2}, {"tp": 2, "pp": 4, "ep": 2}],
}
DESCRIPTIONS = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "dp": "DATA_PARALLEL_GROUP_WITH_CP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "ep": "EXPERT_MODEL_PARALLEL_GROUP",
    "world": "ALL_RANKS",
}
PROGRAM = (
    ("tp", "all_reduce"),
    ("tp", "all_gather"),
    ("ep", "all_to_all"),
    ("tp", "all_reduce"),
    ("pp", "broadcast"),
    ("dp", "all_reduce"),
    ("dp", "all_gather"),
    ("world", "all_reduce"),
)
ITERATIONS = 2
STILL = 1.2
"""Seconds without progress after which a rank says that it is stuck."""


def hangs(processes: int, count: int, seed: int = 0) -> list[dict[str, Any]]:
    """What goes wrong in each hang: a list that every process works out alike."""
    rng = random.Random(seed * 1000 + processes)
    faults = []
    for number in range(count):
        sizes = LAYOUTS[processes][number % len(LAYOUTS[processes])]
        kind = KINDS[number % len(KINDS)]
        ranks = {name: len(groups[0]) for name, groups in groups_of(sizes, processes).items()}
        places = [
            place
            for place, (group, op) in enumerate(PROGRAM * ITERATIONS)
            if ranks[group] > 1
            # of another size a reduction of few ranks: 8 MB against 16 MB
            and (kind != "other size" or (op == "all_reduce" and ranks[group] <= 4))
        ]
        faults.append(
            {
                "number": number,
                "kind": kind,
                "sizes": sizes,
                "rank": rng.randrange(processes),
                "call": rng.choice(places[:-1] if kind == "other order" else places),
                "described": number % 4 != 3,
            }
        )
    return faults


def groups_of(sizes: dict[str, Any], processes: int) -> dict[str, list[list[int]]]:
    """The groups of a layout, in Megatron's order of ranks."""
    from groups.megatron import process_groups

    by_name: Mapping[str, Any] = process_groups(processes, etp=1, **sizes)
    names = (("tp", "tp"), ("dp", "dp-cp"), ("pp", "pp"), ("ep", "ep"))
    groups = {kind: by_name[name].tolist() for kind, name in names}
    return {**groups, "world": [list(range(processes))]}


class Process:
    """One rank: builds the groups of a hang, runs the program and dumps."""

    def __init__(self, rank: int, processes: int, out: Path) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist = torch, dist
        self.rank, self.processes, self.out = rank, processes, out
        dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=30))
        self.store = dist.distributed_c10d._get_default_store()
        torch.set_num_threads(1)

    def wait_for_all(self, name: str) -> None:
        """A barrier that is no collective: nothing of it is recorded."""
        if self.store.add(name, 1) == self.processes:
            self.store.set(name + "/open", "1")
        self.store.wait([name + "/open"], datetime.timedelta(minutes=10))

    def run(self, hang: dict[str, Any]) -> None:
        self.groups: dict[str, Any] = {}
        self.members: dict[str, tuple[str, list[int]]] = {}
        for kind, groups in groups_of(hang["sizes"], self.processes).items():
            for ranks in groups:
                description = DESCRIPTIONS[kind] if hang["described"] else None
                group = self.dist.new_group(
                    ranks, timeout=datetime.timedelta(seconds=300), group_desc=description
                )
                if self.rank in ranks:
                    self.groups[kind] = (group, ranks)
                    name = group.group_name
                    self.members[name] = (description or "undefined", ranks)
        self.done = 0
        self.release = threading.Event()
        name = f"hang{hang['number']}"
        self.wait_for_all(name + "/begin")
        thread = threading.Thread(target=self.program, args=(hang,), daemon=True)
        thread.start()
        self.until_still(thread, name)
        self.store.add(name + "/ended", int(not thread.is_alive()))
        self.wait_for_all(name + "/still")
        if self.store.add(name + "/ended", 0) < self.processes or hang["kind"] == "late":
            self.dump(hang)
        self.wait_for_all(name + "/dumped")
        self.release.set()

    def until_still(self, thread: threading.Thread, name: str) -> None:
        """Until no rank has moved for a while after all of them were seen to stand still."""
        for attempt in itertools.count():
            self.until_own_still(thread)
            done = self.done
            self.wait_for_all(f"{name}/seen{attempt}")
            time.sleep(STILL / 2)
            self.store.add(f"{name}/moved{attempt}", int(self.done != done))
            self.wait_for_all(f"{name}/looked{attempt}")
            if not self.store.add(f"{name}/moved{attempt}", 0):
                return

    def until_own_still(self, thread: threading.Thread) -> None:
        seen, since = -1, time.monotonic()
        while thread.is_alive() and time.monotonic() - since < STILL:
            time.sleep(0.05)
            if self.done != seen:
                seen, since = self.done, time.monotonic()

    def program(self, hang: dict[str, Any]) -> None:
        """The training program, with this rank's fault at its place."""
        calls = list(PROGRAM) * ITERATIONS
        place, fault = hang["call"], hang["kind"]
        mine = hang["rank"] == self.rank
        if mine and fault == "other order":
            following = [
                after
                for after in range(place + 1, len(calls))
                if len(self.groups[calls[after][0]][1]) > 1 and calls[after] != calls[place]
            ]
            if following:
                after = following[0]
                calls[place], calls[after] = calls[after], calls[place]
        for number, (kind, op) in enumerate(calls):
            size = 4
            if number == place and fault == "other size":
                # gloo sends segments of 1 MB: who has more of them waits for ever
                size = 2**22 if mine else 2**21
            elif number == place and mine:
                if fault in ("stopped", "late"):
                    self.release.wait()
                if fault == "stopped":
                    return
                if fault == "other collective":
                    op = "broadcast" if op == "all_gather" else "all_gather"
                elif fault == "other group":
                    others = [name for name, (_, ranks) in self.groups.items() if len(ranks) > 1]
                    kind = others[(others.index(kind) + 1) % len(others)]
            self.call(kind, op, size)
            self.done += 1

    def call(self, kind: str, op: str, size: int) -> None:
        group, ranks = self.groups[kind]
        if len(ranks) == 1:
            return
        x = self.torch.ones(size)
        if op == "all_reduce":
            self.dist.all_reduce(x, group=group)
        elif op == "all_gather":
            self.dist.all_gather([self.torch.empty(size) for _ in ranks], x, group=group)
        elif op == "broadcast":
            self.dist.broadcast(x, ranks[0], group=group)
        else:
            x = self.torch.ones(4 * len(ranks))
            self.dist.all_to_all_single(self.torch.empty_like(x), x, group=group)

    def dump(self, hang: dict[str, Any]) -> None:
        """What the recorder holds, without what earlier hangs left in it."""
        content = self.torch._C._distributed_c10d._dump_fr_trace(True, False)  # type: ignore[attr-defined]
        document = pickle.loads(content)
        document["entries"] = [
            {key: value for key, value in entry.items() if key != "frames"}
            for entry in document.get("entries", [])
            if entry["process_group"][0] in self.members
        ]
        for number, entry in enumerate(document["entries"]):
            entry["record_id"] = number
        folder = self.out / f"{self.processes}-{hang['number']:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"gloo_trace_rank_{self.rank}").write_bytes(pickle.dumps(document, protocol=2))
        document["pg_config"] = {
            name: {"name": name, "desc": description, "ranks": str(ranks)}
            for name, (description, ranks) in self.members.items()
        }
        for entry in document["entries"]:
            entry["process_group"] = (
                entry["process_group"][0],
                self.members[entry["process_group"][0]][0],
            )
        (folder / f"full_trace_rank_{self.rank}").write_bytes(pickle.dumps(document, protocol=2))
        if self.rank == 0:
            (folder / "truth.json").write_text(json.dumps(hang))


def work(rank: int, processes: int, out: str, numbers: list[int], count: int) -> None:
    os.environ["RANK"] = str(rank)
    process = Process(rank, processes, Path(out))
    listed = hangs(processes, count)
    for number in numbers:
        process.run(listed[number])
        Path(out, f"reached-{processes}-{rank}").write_text(str(number))
    os._exit(0)


def launch(processes: int, out: str, numbers: list[int], count: int) -> None:
    """All processes, forked from one that has imported torch; one that dies ends all."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        WORLD_SIZE=str(processes),
        OMP_NUM_THREADS="1",
        TORCH_FR_BUFFER_SIZE="4000",
        TORCH_CPP_LOG_LEVEL="ERROR",
    )
    import torch.distributed  # noqa: F401

    forked = []
    for rank in range(processes):
        forked.append(os.fork())
        if not forked[-1]:
            try:
                work(rank, processes, out, numbers, count)
            finally:
                os._exit(1)
    for _ in range(processes):
        if os.wait()[1]:
            for process in forked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            sys.exit(1)


def started(*words: str) -> int:
    """The exit status of this module, run with these options in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.hangs", *words]
    return subprocess.run(command, stderr=subprocess.DEVNULL).returncode


def inject(
    processes: int,
    count: int,
    out: Path,
    first: int = 0,
    batch: int = 34,
    start: Callable[..., int] = started,
) -> None:
    """Run all hangs; where a process dies of a mismatch the rest goes on in a new launch."""
    out.mkdir(parents=True, exist_ok=True)
    left = list(range(first, count))
    while left:
        status = start(
            *("--processes", str(processes), "--hangs", str(count)),
            *("--dumps", str(out), "--numbers", ",".join(map(str, left[:batch]))),
        )
        reached = [int(file.read_text()) for file in out.glob(f"reached-{processes}-*")]
        last = min(reached, default=left[0] - 1)
        if status:
            last = max(last, left[0] - 1) + 1  # the one that killed a process is left out
            print(f"hang {last} of {processes} processes killed a process", flush=True)
        left = [number for number in left if number > last]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--hangs", type=int, default=102)
    parser.add_argument("--first", type=int, default=0, help="go on with this hang")
    parser.add_argument("--dumps", type=Path, required=True)
    parser.add_argument("--numbers", help="of the hangs that this launch is to run")
    options = parser.parse_args()
    if options.numbers is None:
        inject(options.processes, options.hangs, options.dumps, options.first)
    else:
        numbers = [int(number) for number in options.numbers.split(",")]
        launch(options.processes, str(options.dumps), numbers, options.hangs)


if __name__ == "__main__":
    main()
