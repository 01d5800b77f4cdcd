"""Every collective against real torch.distributed processes on gloo, forward and backward.

Needs torch (REQUIRE_TORCH=1 fails without it). Six processes are forked from one that has imported
torch; they run each case in their group, and send back what every rank holds. Backward is that of
torch's all_reduce: its others take places for global ranks, and fail in a group like these.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from torch_jobs import Ran, TorchJob

from training.collectives.operations import apply

WORLD = 6
GROUPS = [[0, 2, 4], [5, 1, 3]]  # of the second one the places are not the order of the ranks
SPLITS = [[1, 2, 0], [0, 1, 2], [3, 0, 0]]

FORK = """
import json, os, socket, sys
import torch, torch.distributed as dist, torch.distributed.nn.functional as autograd

world, groups, splits = json.loads(sys.argv[1])
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ.update(WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))

def of_rank(rank, *shape):
    return torch.arange(torch.tensor(shape).prod()).reshape(shape).double() + 100 * rank

def gradient_of(output, rank):
    return torch.arange(output.numel()).reshape(output.shape).double() ** 2 + 7 * rank

def cases(group, members, place, rank):
    n = len(members)
    def reduced(**options):
        x = of_rank(rank, 6, 2); dist.all_reduce(x, group=group, **options); return x
    yield "all_reduce", reduced()
    yield "all_reduce max", reduced(op=dist.ReduceOp.MAX)
    out = torch.empty(2, 2).double()
    dist.reduce_scatter(out, list(of_rank(rank, 6, 2).chunk(n)), group=group)
    yield "reduce_scatter", out
    parts = [torch.empty(6, 2).double() for _ in range(n)]
    dist.all_gather(parts, of_rank(rank, 6, 2), group=group)
    yield "all_gather", torch.cat(parts)
    x = of_rank(rank, 6, 2); dist.broadcast(x, src=members[1], group=group)
    yield "broadcast", x
    x = of_rank(rank, 6, 2); dist.reduce(x, dst=members[1], group=group)
    yield "reduce", x if place == 1 else of_rank(rank, 6, 2)
    parts = [torch.empty(6, 2).double() for _ in range(n)] if place == 1 else None
    dist.gather(of_rank(rank, 6, 2), parts, dst=members[1], group=group)
    yield "gather", torch.cat(parts) if parts else of_rank(rank, 6, 2)
    out = torch.empty(2, 2).double()
    whole = list(of_rank(rank, 6, 2).chunk(n)) if place == 1 else None
    dist.scatter(out, whole, src=members[1], group=group)
    yield "scatter", out
    out = torch.empty(6, 2).double()
    dist.all_to_all_single(out, of_rank(rank, 6, 2), group=group)
    yield "all_to_all", out
    sent, got = splits[place], [row[place] for row in splits]
    out = torch.empty(sum(got), 2).double()
    dist.all_to_all_single(out, of_rank(rank, sum(sent), 2), got, sent, group=group)
    yield "all_to_all uneven", out
    x, out = of_rank(rank, 6, 2), torch.empty(6, 2).double()
    ops = [dist.P2POp(dist.isend, x, members[(place + 1) % n], group=group),
           dist.P2POp(dist.irecv, out, members[place - 1], group=group)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    yield "send_recv", out

    def back(name, x, call):
        x.requires_grad_()
        output = call(x)
        output.backward(gradient_of(output, rank))
        return name + " backward", x.grad
    yield back("all_reduce", of_rank(rank, 6, 2), lambda x: autograd.all_reduce(x, group=group))

def work(rank):
    dist.init_process_group("gloo", rank=rank)
    made = [dist.new_group(members, sort_ranks=False) for members in groups]
    own = next(i for i, members in enumerate(groups) if rank in members)
    members = groups[own]
    found = {}
    for name, tensor in cases(made[own], members, members.index(rank), rank):
        found[name] = tensor.tolist()
    everyone = [None] * world if rank == 0 else None
    dist.gather_object(found, everyone, dst=0)
    if rank == 0:
        print(json.dumps(everyone))
    dist.barrier()
    dist.destroy_process_group()

children = [forked(work, rank) for rank in range(world)]
sys.exit(max(map(status_of, children)))
"""

pytestmark = pytest.mark.torch_job(TorchJob(FORK, (json.dumps([WORLD, GROUPS, SPLITS]),)))


@pytest.fixture
def measured(ran: Ran) -> list[dict[str, list]]:
    """What each rank holds after each case, from real processes."""
    assert ran.status == 0, ran.err
    return json.loads(ran.out.splitlines()[-1])


def tensors(*shape: int) -> list[np.ndarray]:
    return [np.arange(np.prod(shape)).reshape(shape) + 100.0 * rank for rank in range(WORLD)]


def gradients(outputs) -> list[np.ndarray]:
    return [
        np.arange(output.size).reshape(output.shape) ** 2.0 + 7 * rank
        for rank, output in enumerate(outputs)
    ]


def uneven() -> list[np.ndarray]:
    rows = {rank: sum(SPLITS[place]) for group in GROUPS for place, rank in enumerate(group)}
    return [np.arange(2 * rows[rank]).reshape(-1, 2) + 100.0 * rank for rank in range(WORLD)]


CASES = {
    "all_reduce": ("all_reduce", {}),
    "all_reduce max": ("all_reduce", {"reduction": "max"}),
    "reduce_scatter": ("reduce_scatter", {}),
    "all_gather": ("all_gather", {}),
    "broadcast": ("broadcast", {"root": 1}),
    "reduce": ("reduce", {"root": 1}),
    "gather": ("gather", {"root": 1}),
    "scatter": ("scatter", {"root": 1}),
    "all_to_all": ("all_to_all", {}),
    "all_to_all uneven": ("all_to_all", {"splits": SPLITS}),
    "send_recv": ("send_recv", {}),
    "all_reduce backward": ("all_reduce", {}),
}


@pytest.mark.parametrize("case", CASES)
def test_real_processes_hold_the_same_numbers(measured, case):
    op, options = CASES[case]
    x = uneven() if "splits" in options else tensors(6, 2)
    found = apply(op, x, GROUPS, **options)
    if case.endswith("backward"):
        found = apply(op, gradients(found), GROUPS, direction="backward", **options)
    assert [tensor.tolist() for tensor in found] == [rank[case] for rank in measured]


def test_every_case_was_run(measured):
    assert all(set(rank) == set(CASES) for rank in measured)
