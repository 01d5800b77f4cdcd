"""Part "moves": what moves between two layouts, in all, by node and for one rank, nothing cached.

totals     layouts worked out before; bytes by where they come from
matrix     bytes from node to node
rank       the slices of one rank of the target
plain      a loop over every rank and tensor by Megatron's rule, as its planner goes through them;
           of 64 GPUs, where its totals are compared with ours
"""

from __future__ import annotations

from collections.abc import Iterator

from groups.layout import Job, Layout
from groups.mesh import rank_groups
from training.models import MODELS
from training.moves import Moves, weight_moves
from training.moves.senders import RULES
from training.moves.sharded import ShardedModel
from training.moves.tensors import Tensor, full_name, tensors_of

from .page_client import Servers
from .timing import ResultTable, interleaved, shown

CASES = {
    "Llama 3 8B, 64 GPUs": ("llama3-8b", Job(nodes=8, tp=4, pp=2), Job(nodes=8, tp=2), 0),
    "Qwen3 30B-A3B, 64 GPUs": (
        "qwen3-30b-a3b", Job(nodes=8, tp=2, ep=8, etp=1), Job(nodes=8, ep=64), 0,
    ),
    "Llama 3 405B, 16,384 GPUs": (
        "llama3-405b", Job(nodes=2048, tp=8, pp=16), Job(nodes=2048, tp=8), 0,
    ),
    "DeepSeek-V3, 2,048 to 320 GPUs": (
        "deepseek-v3", Job(nodes=256, pp=16, ep=64, etp=1), Job(nodes=40, ep=320, etp=1), 2048,
    ),
}  # fmt: skip


def run(quick: bool, servers: Servers) -> Iterator[ResultTable]:
    rows = [_row(name, 1 if quick else 5) for name in [*CASES][: 2 if quick else None]]
    yield ResultTable(
        "What moves from one layout to another",
        ("case", "rule", "totals ms", "matrix ms", "rank ms", "plain ms"),
        [row for of in rows for row in of],
        "Aim: totals, matrix and one rank together below 1,000 ms.",
    )


def _row(name: str, repeats: int) -> Iterator[tuple[str, ...]]:
    model, here, there, first = CASES[name]
    source, target = here.layout(), there.layout()
    is_small = target.world_size <= 64
    for rule in RULES:

        def made(rule: str = rule) -> Moves:
            return weight_moves(MODELS[model].model, source, target, first, rule)

        works = {
            "totals": lambda: made().bytes,
            "matrix": lambda: made().matrix(),
            "rank": lambda: [*made().rows(first + 5)],
        }
        if is_small and rule == "megatron":
            assert plain_bytes(made(), source) == tuple(made().bytes)
            works["plain"] = lambda: plain_bytes(made(), source)
        took = interleaved(repeats, **works)
        times = (shown(took[part].median) if part in took else "–" for part in _PARTS)
        yield name, rule, *times


_PARTS = ("totals", "matrix", "rank", "plain")


def plain_bytes(moves: Moves, layout: Layout) -> tuple[int, int, int]:
    """Bytes that stay, stay in the node and cross, by a loop over ranks, tensors and cuts."""
    source, target = moves.source, moves.target
    groups = {}  # of each rank, its data parallel group
    for group in rank_groups(layout.mesh, "dp").tolist():
        groups.update(dict.fromkeys(group, tuple(group)))
    holders: dict[str, list[int]] = {}
    for rank in range(source.ranks):
        for name in _held(source, rank):
            holders.setdefault(name, []).append(rank)
    counts = [0, 0, 0]
    for at in range(target.ranks):
        rank = target.first_rank + at
        for name, tensor in _held(target, at).items():
            found = holders[name]
            if rank in found:
                owner = rank
            else:
                by_group: dict[tuple[int, ...], list[int]] = {}
                for holder in found:
                    by_group.setdefault(groups[holder], []).append(holder)
                ordered = sorted(by_group)
                members = by_group[ordered[rank % len(ordered)]]
                turn = rank // len(ordered) % len(members) if len(ordered) > 1 else 0
                owner = members[turn]
            here, there = source.parts(tensor), target.parts(tensor)
            own = int((target.etp_at if tensor.expert else target.tp_at)[at]) if there > 1 else 0
            held = (source.etp_at if tensor.expert else source.tp_at)[owner]
            stride = source.etp_stride if tensor.expert else source.tp_stride
            for part in range(here):
                start, end = (
                    max(part * there, own * here),
                    min((part + 1) * there, (own + 1) * here),
                )
                if start < end:
                    sender = owner + (part - int(held)) * stride if here > 1 else owner
                    size = tensor.elements * moves.element_bytes * (end - start) // (here * there)
                    is_far = moves.nodes[sender] != moves.nodes[rank]
                    counts[0 if sender == rank else 2 if is_far else 1] += size
    return counts[0], counts[1], counts[2]


def _held(side: ShardedModel, at: int) -> dict[str, Tensor]:
    """The tensors of a rank by name."""
    experts = side.experts_of(int(side.ep_at[at])) if side.model.experts else ()
    return {
        full_name(place, tensor, expert): tensor
        for place in side.places[int(side.pp_at[at])]
        for tensor in tensors_of(side.model, place)
        for expert in (experts if tensor.expert else (None,))
    }
