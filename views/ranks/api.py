"""The endpoints about single ranks."""

from __future__ import annotations

import json

from formats.logs import named_ranks
from groups import coordinates
from groups.grouping import shared_groups
from groups.layout import Layout
from groups.mesh import require_rank
from groups.placement import local_rank, node_of

from ..base.endpoint import endpoint
from ..hosts.api import placement_from


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
def shared_by_ranks(layout: Layout, ranks: str = "") -> str:
    """The groups that some ranks share, smallest first, as JSON: where a hang may come from.

    Of a log, "missing" holds the ranks that did not arrive, where it shows them.

    Args:
        ranks: numbers and ranges such as "3, 11, 16-23", or lines of a log.
        (the layout)
    """
    numbers, log = named_ranks(ranks, layout.world_size)
    groups = [grouping for grouping in layout.every.values() if grouping.size > 1]
    together, apart = shared_groups(groups, numbers)
    return json.dumps(
        {
            "ranks": numbers,
            "together": [
                {"names": group.names, "indices": group.indices, "ranks": group.ranks}
                for group in together
            ],
            "apart": {kind.name: kind.groups for kind in apart},
            **({"missing": log.missing} if log else {}),
        }
    )
