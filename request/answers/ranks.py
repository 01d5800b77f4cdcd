"""The endpoints for single ranks."""

from __future__ import annotations

import json

from diagnosis.hang.case import case_of
from formats.logs import log_in, ranks_of
from groups import coordinates
from groups.grouping import parse_ranks, shared_groups
from groups.layout import Layout
from groups.mesh import require_rank
from groups.placement import local_rank, node_of

from ..endpoint import endpoint
from ..hosts import placement_from
from .hang.verdict import verdict_of


@endpoint
def rank_card(layout: Layout, rank: int = 0, hosts: str = "", racks: str = "") -> str:
    """Everything about one rank, as JSON: its place, its coordinates, its groups and neighbours.

    Args:
        rank: the global rank, counted from 0.
        hosts: the job's machines, as /read_hosts takes them; then the rank stands on one by name.
        racks: another text that says where they stand; empty: hosts.
        (the layout)
    """
    rank = require_rank(layout.mesh, rank)
    placed = placement_from(layout, hosts, racks)
    stands = placed and {
        "host": placed.host(rank), "device": placed.device(rank), **placed.places(rank)
    }  # fmt: skip
    ring = layout.every["pp"].neighbours(rank)
    return json.dumps(
        {
            "rank": rank,
            "node": int(node_of(rank, layout.gpus_per_node)),
            "local_rank": int(local_rank(rank, layout.gpus_per_node)),
            **(stands or {}),
            "dense": coordinates(layout.mesh, rank),
            "expert": None if layout.expert is None else coordinates(layout.expert, rank),
            "pipeline_before": ring and ring[0],
            "pipeline_after": ring and ring[1],
            "groups": {
                name: {"index": grouping.index_of(rank), "ranks": grouping.members(rank).tolist()}
                for name, grouping in layout.every.items()
            },
        }
    )


@endpoint
def shared_by_ranks(layout: Layout, ranks: str = "", hosts: str = "", racks: str = "") -> str:
    """The groups that some ranks share, smallest first, as JSON; and of a log who is missing.

    Of a log it has the page's verdict as well, in the fields of docs/schema.md: "missing" and
    "suspects", "account" (sentences) and "facts" (codes and values), "chain" (who waits
    for whom), "contradicts" and "fits" (where the layout cannot be the job's), "next" (what to do,
    as commands). Ranks that the layout does not have are then no error, and share no groups.

    Args:
        ranks: numbers and ranges such as "3, 11, 16-23", or lines of a log.
        hosts: the job's machines, as /read_hosts takes them, for the verdict of a log; empty: none.
        racks: another text about the machines; empty: hosts.
        (the layout)
    """
    log = log_in(ranks, layout.every)
    verdict: dict[str, object] = {}
    if log is None:
        numbers = parse_ranks(ranks, layout.world_size)
    else:
        case = case_of(log, layout, placement_from(layout, hosts, racks))
        numbers, verdict = ranks_of(log, case.world), verdict_of(case)
    is_inside = max(numbers, default=0) < layout.world_size
    groups = [grouping for grouping in layout.every.values() if grouping.size > 1 and is_inside]
    together, apart = shared_groups(groups, numbers)
    return json.dumps(
        {
            "ranks": numbers,
            "together": [
                {"names": group.names, "indices": group.indices, "ranks": group.ranks}
                for group in together
            ],
            "apart": {kind.name: kind.groups for kind in apart},
            **verdict,
        }
    )
