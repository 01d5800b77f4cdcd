#!/usr/bin/env python3
# Written for an example: 2 ranks of tp 2 to 1 rank of tp 1.
"""Do a model's weights arrive in another layout as the plan says, element by element?

Run it where both layouts run, with torchrun or with any launcher that sets RANK, WORLD_SIZE,
LOCAL_RANK, MASTER_ADDR and MASTER_PORT:

    torchrun --nnodes 1 --nproc-per-node 2 moves.py

It needs Python 3.8 or later and torch, nothing else; NCCL where there are GPUs and gloo where there
are none. It opens no file and changes nothing. All of it is in this one file on purpose: whoever is
to run it reads it first.

    shards      Every rank of the source makes what it holds: each element is its own number in the
                whole tensor. A tensor is a matrix here, its cut axis first; ``--columns`` of the
                other axes' elements keep it small (0: all).
    moves       Tensor by tensor the ranks that the plan names send their slices, all at once.
    elements    Every rank of the target compares each element of each tensor with what its place in
                the whole tensor says.

Exit status: 0 all arrived; 1 an element is missing or wrong; 2 not started as the plan needs.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from types import ModuleType

    from torch import Tensor, device


class Whole(NamedTuple):
    """A tensor: elements along the axis that is cut, of either side with its padding, and across
    it; parts laid one after the other, each cut by itself; the parts that either side has."""

    name: str
    lengths: tuple[int, int]
    across: int
    blocks: int = 1
    parts: tuple[int, int] = (1, 1)
    is_expert: bool = False


# -- what this script was written for --
TITLE = "an example: 2 ranks of tp 2 to 1 rank of tp 1"
WORLD_SIZE = 2
TENSORS = [Whole("mlp.linear_fc1.weight", (8, 8), 3, 2, (2, 1))]
PARTS = [{0: (0, 0), 1: (1, 1)}, {0: (0, 0)}]  # of ranks: which part of dense, of expert tensors
PLAN = [
    # tensor: receiver: (sender, its start, start, length) ...
    {0: [(0, 0, 0, 2), (1, 0, 2, 2), (0, 2, 4, 2), (1, 2, 6, 2)]},
]
# -- the same for every plan from here on --

MOST_LINES = 20
SPAN = 1 << 40  # numbers of a tensor: more than any has elements


def columns_of(tensor: Whole, most: int) -> int:
    return min(tensor.across, most) if most else tensor.across


def numbers(
    torch: ModuleType, index: int, side: int, rank: int, columns: int, device: device
) -> Tensor:
    """A rank's part of a tensor: each element is its own index in the whole tensor, -1 in
    padding."""
    tensor = TENSORS[index]
    parts = tensor.parts[side]
    part = PARTS[side][rank][tensor.is_expert] if parts > 1 else 0  # else whole on each rank
    block, common = tensor.lengths[side] // tensor.blocks, min(tensor.lengths) // tensor.blocks
    inside = torch.arange(part * (block // parts), (part + 1) * (block // parts), device=device)
    rows = torch.cat([inside + block * number for number in range(tensor.blocks)])
    made = rows[:, None] * columns + torch.arange(columns, device=device) + index * SPAN
    if side:  # nobody sends what only the target's padding has
        made[(inside >= common).repeat(tensor.blocks)] = -1
    return made


def moved(
    torch: ModuleType, dist: ModuleType, rank: int, columns: int, device: device
) -> tuple[list[str], int]:
    """Receives the tensors of the plan and compares them; returns lines about differences, and the
    number of elements compared."""
    lines, compared = [], 0
    for index, receivers in enumerate(PLAN):
        tensor, width = TENSORS[index], columns_of(TENSORS[index], columns)
        held: Tensor | None = None
        arrived = wanted = torch.empty((0, width), dtype=torch.int64, device=device)
        operations, landing = [], []
        if rank in receivers:
            wanted = numbers(torch, index, 1, rank, width, device)
            arrived = torch.full_like(wanted, -1)
        for receiver, slices in receivers.items():
            for sender, start, to, length in slices:
                if sender == rank:
                    if held is None:
                        held = numbers(torch, index, 0, rank, width, device)
                    piece = held[start : start + length].contiguous()
                    if receiver == rank:
                        arrived[to : to + length] = piece
                    else:
                        operations.append(dist.P2POp(dist.isend, piece, receiver))
                elif receiver == rank:
                    piece = torch.empty((length, width), dtype=torch.int64, device=device)
                    operations.append(dist.P2POp(dist.irecv, piece, sender))
                    landing.append((piece, to, length))
        for request in dist.batch_isend_irecv(operations) if operations else ():
            request.wait()
        for piece, to, length in landing:
            arrived[to : to + length] = piece
        if rank in receivers:
            compared += wanted.numel()
            wrong = (arrived != wanted).nonzero()
            if len(wrong):
                row, column = wrong[0].tolist()
                found = arrived[row, column].item()
                lines.append(
                    f"rank {rank}, {tensor.name}: {len(wrong)} of {wanted.numel()} elements "
                    f"differ, first [{row}, {column}]: {found}, not {wanted[row, column].item()}"
                )
    return lines, compared


def main() -> int:
    parser = argparse.ArgumentParser(description=TITLE)
    parser.add_argument("--columns", type=int, default=0, help="of each tensor; 0: all of them")
    parser.add_argument("--list", action="store_true", help="print the plan, without torch")
    options = parser.parse_args()
    if options.list:
        for index, receivers in enumerate(PLAN):
            for receiver, slices in receivers.items():
                print(
                    TENSORS[index].name,
                    receiver,
                    *map("{0[0]}:{0[1]}>{0[2]}+{0[3]}".format, slices),
                )
        return 0
    if os.environ.get("WORLD_SIZE") != str(WORLD_SIZE):
        print(f"start {WORLD_SIZE} processes with torchrun: {TITLE}", file=sys.stderr)
        return 2
    import torch
    import torch.distributed as dist

    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, device = dist.get_rank(), torch.device("cuda" if on_gpu else "cpu")
    lines, compared = moved(torch, dist, rank, options.columns, device)
    results = [(lines, compared)] * WORLD_SIZE
    dist.all_gather_object(results, (lines, compared))
    wrong = [line for differs, _ in results for line in differs]
    if rank == 0:
        print(*wrong[:MOST_LINES], sep="\n", end="\n" if wrong else "")
        total = sum(count for _, count in results)
        verdict = f"{len(wrong)} tensors of ranks differ" if wrong else "all as planned"
        print(f"{total:,} elements on {len(PARTS[1])} ranks: {verdict}", flush=True)
    dist.destroy_process_group()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
