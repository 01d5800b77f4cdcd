#!/usr/bin/env python3
# Written for 16 GPUs, an example: 2 nodes of 8, tp2-cp1-dp4-pp2.
"""Are the process groups of a training job on its cluster what its layout says, and how fast?

Run it on the nodes of the job and as the job is run, with torchrun or with any launcher that sets
RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT:

    torchrun --nnodes 2 --nproc-per-node 8 \\
        --rdzv-backend c10d --rdzv-endpoint FIRST_NODE:29500 check_groups.py

It needs Python 3.8 or later and torch, nothing else. It uses NCCL where there are GPUs and gloo
where there are none, opens no file and changes nothing. ``--list`` prints the groups without torch
or a launcher. All of it is in this one file on purpose: whoever is to run it reads it first.

    placement   Every rank says its host name and its local rank. The layout fills one node after
                the other: rank r is GPU r % GPUS_PER_NODE of node r // GPUS_PER_NODE. Where HOSTS
                names them, each must be the one that it names.
    groups      Kind by kind, all ranks call new_group() for all its groups in one order, and
                destroy them before the next kind, so that there are never more than two
                communicators a GPU. Groups of one rank send nothing and are not made.
    sums        Each group all-reduces 1, the rank and its square. Every member must get the number
                of ranks, their sum and the sum of their squares that the layout says.
    bandwidth   Then all groups of the kind at once, as in training, all-reduce a buffer of
                ``--megabytes``; some kinds also do what training uses them for. Reported is the bus
                bandwidth of NVIDIA/nccl-tests, doc/PERFORMANCE.md, which is comparable with that of
                the hardware for any number of ranks.

Exit status of rank 0: 0 all is as the layout says; 1 something differs; 2 not started as the layout
needs; 3 no answer in time, with the kind and the group that hung. The other ranks end with 0 even
where something differs, so that no launcher stops rank 0 before it has said what it knows.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import statistics
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain, product
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from torch.distributed import ProcessGroup

    Place = tuple[str, int]  # host and local rank

Result = TypeVar("Result")


class Kind(NamedTuple):
    """All groups of one name: lines of ranks along axes of a grid, cut, thinned or joined."""

    name: str
    grid: str  # axes with their sizes, fastest-varying first: ranks are numbered through them
    sweeps: str  # axes along which the members of a group stand; one group for each place beside
    length: int = 0  # a line is cut into groups of so many members (0: not cut) ...
    stride: int = 1  # ... that stand so many places apart
    places: tuple[int, ...] = ()  # only these places of a line take part (none named: all)
    joined: int = 1  # so many lines in a row are one group
    also: str = ""  # what is measured besides all-reduce, as in SHARE, with spaces between them


# -- what this script was written for --
TITLE = "16 GPUs, an example: 2 nodes of 8, tp2-cp1-dp4-pp2"
WORLD_SIZE = 16
GPUS_PER_NODE = 8
MEGABYTES = 64  # of 10**6 bytes; 0: no measurements

HOSTS: list[
    tuple[str, int]
] = []  # (name, ranks) one after the other: where the ranks should stand; empty: not said

DENSE = "tp2-cp1-dp4-pp2"

KINDS = [
    Kind("tp", DENSE, "tp"),
    Kind("dp", DENSE, "dp"),
    Kind("pp", DENSE, "pp", also="send/recv"),
]
# -- the same for every job from here on --

MOST_LINES = 20  # differences told of one kind, or of the placement
WARM_UP = 2  # repetitions before those that count
TELLERS = 4  # members of a group that hangs that say so


def groups_of(kind: Kind) -> list[list[int]]:
    """The ranks of every group, in the order in which all ranks create them."""
    swept: list[range] = []
    fixed: list[range] = []  # of each axis: how far its places are from rank 0
    stride = 1
    for name, size in re.findall(r"([a-z_]+)([0-9]+)", kind.grid):
        axis = range(0, stride * int(size), stride)
        (swept if name in kind.sweeps.split("-") else fixed).append(axis)
        stride *= int(size)
    # The first axis varies fastest, and of a product the last one does.
    steps, firsts = (list(map(sum, product(*reversed(axes)))) for axes in (swept, fixed))
    size, block = len(steps), kind.length * kind.stride or len(steps)
    runs = [
        range(start + i, min(start + block, size), kind.stride)
        for start in range(0, size, block)
        for i in range(kind.stride)
    ]
    cuts = [[steps[place] for place in cut] for cut in ([kind.places] if kind.places else runs)]
    groups = [[first + step for step in cut] for first in firsts for cut in cuts]
    if kind.joined == 1:
        return groups
    starts = range(0, len(groups), kind.joined)
    return [list(chain(*groups[start : start + kind.joined])) for start in starts]


def sums(ranks: Sequence[int]) -> list[int]:
    """The expected sums of all-reducing 1, the rank and its square; exact in 64 bits."""
    return [len(ranks), sum(ranks), sum(rank * rank for rank in ranks)]


def host_differences(seen: Sequence[Place], hosts: Sequence[tuple[str, int]]) -> list[str]:
    """Sentences about ranks that are not on the named host; seen: (host, local rank) of each.

    Names count up to their first dot.
    """
    wanted = [name for name, count in hosts for _ in range(count)]
    elsewhere: dict[tuple[str, str], list[int]] = {}
    for rank, (name, (host, _)) in enumerate(zip(wanted, seen)):
        if name.split(".")[0] != host.split(".")[0]:
            elsewhere.setdefault((name, host), []).append(rank)
    return [f"{text(ranks)} of {name} found on {host}" for (name, host), ranks in elsewhere.items()]


def placement_differences(seen: Sequence[Place], gpus_per_node: int) -> list[str]:
    """Sentences about ranks that are not in their place; seen: (host, local rank) of each rank.

    A node is taken to be the host on which most of its ranks stand and that no node before it is.
    """
    host_of, node_of = {}, {}
    for node in range(len(seen) // gpus_per_node):
        here = Counter(host for host, _ in seen[node * gpus_per_node : (node + 1) * gpus_per_node])
        host = next((host for host, _ in here.most_common() if host not in node_of), None)
        if host is not None:
            host_of[node], node_of[host] = host, node
    elsewhere: dict[tuple[int, str], list[int]] = {}
    renumbered: dict[int, list[int]] = {}
    for rank, (host, local) in enumerate(seen):
        node, wanted = divmod(rank, gpus_per_node)
        if host_of.get(node) != host:
            elsewhere.setdefault((node, host), []).append(rank)
        if local != wanted:
            renumbered.setdefault(node, []).append(rank)
    lines = []
    for (node, host), ranks in elsewhere.items():
        home = f"node {node} ({host_of.get(node, 'a host of its own')})"
        stand = "stands" if len(ranks) == 1 else "stand"
        other = f"node {node_of[host]}" if host in node_of else "no node of the layout"
        belong = text(ranks, " belongs", " belong")
        lines.append(f"{belong} on {home} but {stand} on {host}, which is {other}")
    for ranks in renumbered.values():
        actual = few([seen[rank][1] for rank in ranks])
        due = few([rank % gpus_per_node for rank in ranks])
        lines.append(f"{text(ranks, ' has', ' have')} local rank {actual} instead of {due}")
    return lines


def sum_differences(name: str, groups: Sequence[list[int]], seen: Sequence[list[int]]) -> list[str]:
    """Sentences about groups with wrong sums; seen: the sums of each rank."""
    lines = []
    for number, ranks in enumerate(groups):
        wanted = sums(ranks)
        wrong = [rank for rank in ranks if seen[rank] != wanted]
        if wrong:
            got = ", ".join(f"rank {rank} got {seen[rank]}" for rank in wrong[:TELLERS])
            more = f" and {len(wrong) - TELLERS} more differ" if len(wrong) > TELLERS else ""
            must = f"{name} group {number} ({text(ranks)}) must come to {wanted}"
            lines.append(f"{must}, but {got}{more}")
    outside = sorted(set(range(len(seen))).difference(*groups))
    strangers = [rank for rank in outside if seen[rank] != sums([])]
    if strangers:
        lines.append(f"{text(strangers, ' is', ' are')} in a {name} group, and must be in none")
    return lines


def text(ranks: Sequence[int], one: str = "", many: str = "") -> str:
    """The ranks in words, with a verb: rank 3 is; ranks 0, 2, 4, 6, 8, 10 ... 16 (9 of them)."""
    return f"rank {few(ranks)}{one}" if len(ranks) == 1 else f"ranks {few(ranks)}{many}"


def few(numbers: Sequence[object], most: int = 8) -> str:
    """All of the numbers, or of many the first ones and the last."""
    if len(numbers) <= most:
        return ", ".join(map(str, numbers))
    first = ", ".join(map(str, numbers[: most - 2]))
    return f"{first} ... {numbers[-1]} ({len(numbers)} of them)"


def shortened(lines: list[str], most: int = MOST_LINES) -> list[str]:
    more = len(lines) - most
    return lines if more <= 0 else [*lines[:most], f"and {more} more like these"]


SHARE = {
    "all-reduce": lambda n: 2 * (n - 1) / n,
    "all-gather": lambda n: (n - 1) / n,
    "reduce-scatter": lambda n: (n - 1) / n,
    "all-to-all": lambda n: (n - 1) / n,
    "send/recv": lambda n: 1.0,
}
"""Bus bandwidth = bytes / seconds * share, of n ranks: NVIDIA/nccl-tests, doc/PERFORMANCE.md."""


def bus_bandwidths(
    operation: str, groups: Sequence[list[int]], seconds: Sequence[float], size: int
) -> list[float]:
    """The bus bandwidth of each group in GB/s (10**9 bytes), by the time of its slowest member.

    seconds: of each rank. size: bytes of a rank's buffer.
    """
    moved = (size * SHARE[operation](len(ranks)) for ranks in groups)
    return [m / max(seconds[rank] for rank in ranks) / 1e9 for m, ranks in zip(moved, groups)]


WIDTH = max([len("kind"), *(len(kind.name) for kind in KINDS)])
HEAD = f"{'kind':<{WIDTH}}  operation       ranks  groups  sums         min   median  slowest group"


def row(
    name: str,
    operation: str,
    groups: Sequence[list[int]],
    wrong: int,
    speeds: list[float],
    hosts: Sequence[str],
) -> str:
    """One line of the table: a kind and one of its operations."""
    sizes = sorted({len(ranks) for ranks in groups})
    line = f"{name:<{WIDTH}}  {operation:<14}  {'-'.join(map(str, sizes[:1] + sizes[1:][-1:])):>5}"
    line += f"  {len(groups):>6}  {f'{wrong} wrong' if wrong else 'ok':<9}"
    if not speeds:
        return line.rstrip()
    slowest = groups[speeds.index(min(speeds))]
    on = few(sorted({hosts[rank] for rank in slowest}), most=4)
    return f"{line} {min(speeds):>7.3g}  {statistics.median(speeds):>7.3g}  {text(slowest)} on {on}"


def complain(line: str) -> None:
    """One write, newline included: many processes share the stream, and lines must stay whole."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class Cluster:
    """All processes of the job: joins them, and runs what they do together."""

    def __init__(self, options: argparse.Namespace) -> None:
        import torch
        import torch.distributed as dist

        self.torch, self.dist, self.options = torch, dist, options
        self.rank, self.local = int(os.environ["RANK"]), int(os.environ["LOCAL_RANK"])
        self.host = socket.gethostname()
        self.hung = False
        self.backend, self.device, self.finish = "gloo", torch.device("cpu"), lambda: None
        if torch.cuda.is_available():
            # A launcher may show each process its own GPU only, which then is number 0.
            alone = torch.cuda.device_count() == 1
            self.backend, self.device = "nccl", torch.device("cuda", 0 if alone else self.local)
            torch.cuda.set_device(self.device)
            self.finish = torch.cuda.synchronize  # waits for the GPU, and lets the watch run
        # torch's own limit comes later, so that it is this script that names the kind.
        limit = timedelta(seconds=2 * options.timeout + 60)
        with self.step(f"joining all ranks with {self.backend}", self.local == 0):
            dist.init_process_group(self.backend, timeout=limit)
            self.reduced([0])

    @contextmanager
    def step(self, doing: str, tells: bool) -> Iterator[None]:
        """Ends the process if this takes too long: collectives only wait.

        tells: whether this process is one of those that say what hangs.
        """
        who, limit = f"rank {self.rank} on {self.host}", self.options.timeout

        def give_up() -> None:
            self.hung = True
            if tells:
                complain(f"{who}: no answer within {limit:g} s at {doing}")
            time.sleep(5)  # a launcher stops the others once one has ended: let them speak first
            os._exit(3)  # the main thread may be inside a library that never returns

        watch = threading.Timer(limit, give_up)
        watch.daemon = True
        watch.start()
        try:
            yield
        except Exception:
            if self.hung:  # and the others are ending by now
                watch.join()
            complain(f"{who}: failed at {doing}")
            raise
        finally:
            watch.cancel()

    def everyone(self, value: Result, doing: str) -> list[Result]:
        """The value of each rank, at every rank; also the line from which all start together."""
        values = [value] * WORLD_SIZE
        with self.step(doing, self.rank == 0):
            self.dist.all_gather_object(values, value)
        return values

    def reduced(self, numbers: list[int], group: ProcessGroup | None = None) -> list[int]:
        """The sums of whole numbers over all ranks, or over a group."""
        data = self.torch.tensor(numbers, dtype=self.torch.int64, device=self.device)
        self.dist.all_reduce(data, group=group)
        self.finish()
        return list(map(int, data.tolist()))

    def make(self, groups: Sequence[list[int]]) -> ProcessGroup | None:
        """Create all groups, which every rank must do; return this rank's own, or None."""
        made = [self.dist.new_group(ranks) for ranks in groups]
        # What torch says, not what the layout says, is what is checked.
        none = (None, self.dist.GroupMember.NON_GROUP_MEMBER)
        mine = [group for group in made if group not in none]
        return mine[-1] if mine else None

    def seconds(self, operation: str, ranks: list[int], group: ProcessGroup | None) -> float:
        """The median time of one operation on a buffer of ``buffer_size`` bytes."""
        count = buffer_size(operation, len(ranks), self.options.megabytes) // 4
        sent = self.torch.zeros(count, dtype=self.torch.float32, device=self.device)
        got = sent if operation == "all-reduce" else self.torch.empty_like(sent)
        part = got[: count // len(ranks)]  # of all-gather and reduce-scatter
        place = ranks.index(self.rank)
        after, before = ranks[(place + 1) % len(ranks)], ranks[place - 1]
        dist = self.dist

        def run() -> None:
            if operation == "all-reduce":
                dist.all_reduce(sent, group=group)
            elif operation == "all-gather":
                dist.all_gather_into_tensor(sent, part, group=group)
            elif operation == "reduce-scatter":
                dist.reduce_scatter_tensor(part, sent, group=group)
            elif operation == "all-to-all":
                dist.all_to_all_single(got, sent, group=group)
            else:  # to the next stage while the one before sends, round a ring
                both = [(dist.isend, sent, after), (dist.irecv, got, before)]
                for work in dist.batch_isend_irecv([dist.P2POp(*op, group) for op in both]):
                    work.wait()

        times = []
        for _ in range(WARM_UP + self.options.repeats):
            self.finish()
            start = time.perf_counter()
            run()
            self.finish()
            times.append(time.perf_counter() - start)
        return statistics.median(times[WARM_UP:])


def buffer_size(operation: str, ranks: int, megabytes: float) -> int:
    """Bytes of a rank's buffer: numbers of 4 bytes, in equal parts for all ranks where each has
    one of its own."""
    parts = ranks if operation in ("all-to-all", "all-gather", "reduce-scatter") else 1
    return max(int(megabytes * 10**6) // 4 // parts, 1) * parts * 4


def check(cluster: Cluster, kind: Kind, hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Makes, checks, measures and destroys the groups of a kind: rows, differences."""
    groups = [sorted(ranks) for ranks in groups_of(kind) if len(ranks) > 1]  # as torch sorts them
    if not groups:
        return [f"{kind.name:<{WIDTH}}  groups of one rank: nothing to send"], []
    mine = next((ranks for ranks in groups if cluster.rank in ranks), [])
    where = f"{kind.name} group {groups.index(mine)} ({text(mine)})" if mine else kind.name
    tells = cluster.rank in mine[:TELLERS]

    with cluster.step(f"{where}: making {len(groups)} groups", tells):
        group = cluster.make(groups)
    with cluster.step(f"{kind.name}: waiting until all groups are made", cluster.rank == 0):
        cluster.reduced([0])
    with cluster.step(f"{where}: all-reduce of the ranks", tells):
        got = cluster.reduced(sums([cluster.rank]), group=group) if group is not None else sums([])
    seen = cluster.everyone(got, f"{kind.name}: comparing all ranks")
    differences = sum_differences(kind.name, groups, seen)
    rows = []
    for operation in ("all-reduce", *kind.also.split()):
        speeds = []
        # To measure groups that are not those of the layout might wait for ever.
        if cluster.options.megabytes and not differences:
            with cluster.step(f"{where}: measuring {operation}", tells):
                taken = cluster.seconds(operation, mine, group) if mine else 0.0
            seconds = cluster.everyone(taken, f"{kind.name}: {operation} of all groups")
            size = buffer_size(operation, len(groups[0]), cluster.options.megabytes)
            speeds = bus_bandwidths(operation, groups, seconds, size)
        rows.append(row(kind.name, operation, groups, len(differences), speeds, hosts))
    if group is not None:
        with cluster.step(f"{where}: destroying the group", tells):
            cluster.dist.destroy_process_group(group)
    return rows, shortened(differences)


def refusal(environment: Mapping[str, str]) -> str:
    """Why this process cannot take part, in one sentence; empty if it can."""
    missing = [name for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK") if name not in environment]
    if missing:
        return f"{', '.join(missing)} not set: start this script with torchrun"
    world = environment["WORLD_SIZE"]
    if int(world) == WORLD_SIZE:
        return ""
    start = f"start it with --nnodes {WORLD_SIZE // GPUS_PER_NODE} --nproc-per-node {GPUS_PER_NODE}"
    return f"this script is for {WORLD_SIZE} ranks, and there are {world}: {start}"


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=TITLE)
    names = [kind.name for kind in KINDS]
    parser.add_argument("--kinds", nargs="+", choices=names, default=names, metavar="KIND")
    parser.add_argument("--megabytes", type=float, default=MEGABYTES, help="0: no measurements")
    parser.add_argument("--repeats", type=int, default=5, help="of each measurement")
    parser.add_argument("--timeout", type=float, default=300, help="seconds that a step may take")
    parser.add_argument("--list", action="store_true", help="print the groups and do nothing else")
    options = parser.parse_args(arguments)
    if options.megabytes < 0 or options.repeats < 1 or options.timeout <= 0:
        parser.error("--megabytes is from 0 up, --repeats from 1 up, --timeout above 0")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = read_options(arguments)
    kinds = [kind for kind in KINDS if kind.name in options.kinds]
    if options.list:
        for kind in kinds:
            for number, ranks in enumerate(groups_of(kind)):
                print(kind.name, number, *ranks)
        return 0
    reason = refusal(os.environ)
    if reason:
        if os.environ.get("RANK", "0") != "0":
            return 0  # rank 0 says it
        complain(reason)
        return 2

    cluster = Cluster(options)

    def say(*lines: str) -> None:
        if cluster.rank == 0:
            print(*lines, sep="\n", flush=True)

    seen = cluster.everyone((cluster.host, cluster.local), "placement: waiting for all ranks")
    hosts = [host for host, _ in seen]
    others = host_differences(seen, HOSTS) or placement_differences(seen, GPUS_PER_NODE)
    differences = shortened(others)
    where = few(sorted(set(hosts)), most=4)
    say(
        TITLE,
        f"{cluster.backend}, torch {cluster.torch.__version__}, on {where}",
        f"bus bandwidth in GB/s with {options.megabytes:g} MB, median of {options.repeats} runs",
        "",
        HEAD,
    )
    for kind in kinds:
        rows, others = check(cluster, kind, hosts)
        say(*rows)
        differences += others
    cluster.dist.destroy_process_group()
    if cluster.rank:
        return 0
    if differences:
        say("", "Differs from the layout:", *(f"  {line}" for line in differences))
        return 1
    some = "1 kind" if len(kinds) == 1 else f"{len(kinds)} kinds"
    say("", f"All as the layout says: {WORLD_SIZE} ranks, {some} of groups.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
