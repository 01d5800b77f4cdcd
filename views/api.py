"""What programs may ask of a running page: typed endpoints, checked like the page's own state.

Here are those about the layout; those about what its groups do are in the modules `api_*`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from descriptions import note_text
from formats.check.script import check_script
from formats.documents.exports import groups_json, ranks_json
from formats.launch.args import TARGETS, Item, Parsed, emit, parse
from formats.launch.serving import served_groups
from formats.logs.ranks import named_ranks
from groups import LayoutError, coordinates
from groups.audit import DOMAINS, audit
from groups.errors import quoted
from groups.layout import Layout
from groups.placement import local_rank, node_of
from groups.ranks import require_rank
from groups.sharing import shared_groups

from .api_training import better_layouts, memory_per_rank, traffic_per_step
from .base.endpoint import endpoint, require_choice, serving
from .collectives.api import collective
from .hosts.api import better_order, placement_from, read_hosts, slow_groups
from .pipeline.api import pipeline_schedule


def _names(names: Any) -> list[str] | None:
    """Names of groups as a list; None for all."""
    if not isinstance(names, str):
        raise LayoutError(
            "not-names",
            f"{quoted(names)} is not a list of group names",
            control="names",
            facts={"value": quoted(names)},
        )
    return names.split() or None


@endpoint
def process_groups(layout: Layout, names: str = "") -> str:
    """Every process group of a training job, as a JSON document (schema "parallel-groups").

    Args:
        names: groups to list, separated by spaces, such as "dp tp ep embd"; empty: all.
        (the layout)
    """
    return groups_json(layout, _names(names))


@endpoint
def rank_table(layout: Layout) -> str:
    """Node, GPU, coordinates and groups of every rank, as JSON (schema "parallel-ranks").

    Args:
        (the layout)
    """
    return ranks_json(layout)


@endpoint
def rank_card(layout: Layout, rank: int = 0) -> str:
    """Everything about one rank, as JSON: its place, its coordinates, its groups and neighbours.

    Args:
        rank: the global rank, counted from 0.
        (the layout)
    """
    rank = require_rank(layout.mesh, rank)
    ring = layout.every["pp"].neighbours(rank)
    return json.dumps(
        {
            "rank": rank,
            "node": int(node_of(rank, layout.gpus_per_node)),
            "local_rank": int(local_rank(rank, layout.gpus_per_node)),
            "dense": coordinates(layout.mesh, rank),
            "expert": None if layout.expert is None else coordinates(layout.expert, rank),
            "pipeline_before": ring and ring[0],
            "pipeline_after": ring and ring[1],
            "groups": {
                name: {"index": one.index_of(rank), "ranks": one.members(rank).tolist()}
                for name, one in layout.every.items()
            },
        }
    )


@endpoint
def node_audit(layout: Layout, hosts: str = "", racks: str = "") -> str:
    """Which groups stay inside a node or an NVLink domain and which cross, as JSON.

    With hosts their racks, switches and domains are keys beside the sizes, "node" the hosts.

    Args:
        hosts: the job's machines in their order, as /read_hosts takes them; empty: none are named.
        racks: another text that says where they stand; empty: hosts.
        (the layout)
    """
    domains = sorted({layout.gpus_per_node, *DOMAINS})
    placement = placement_from(layout, hosts, racks)
    kinds = ("node", *placement.levels) if placement else ()
    levels = {kind: placement.of_ranks(kind) for kind in kinds} if placement else None
    rows = audit(layout.every.values(), domains, levels)
    return json.dumps(
        {
            row[0].name: {
                one.level or str(one.domain): {
                    "groups": one.groups,
                    "crossing": one.crossing,
                    "most_domains": one.most,
                    "waits_for_links": one.is_slow,
                }
                for one in row
            }
            for row in rows
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
    asked, log = named_ranks(ranks, layout.world_size)
    groups = [one for one in layout.every.values() if one.size > 1]
    together, apart = shared_groups(groups, asked)
    return json.dumps(
        {
            "ranks": asked,
            "together": [
                {"names": one.names, "indices": one.indices, "ranks": one.ranks} for one in together
            ],
            "apart": {one.name: one.groups for one in apart},
            **({"missing": log.missing} if log else {}),
        }
    )


@endpoint
def launch_command(layout: Layout, target: str = "megatron") -> str:
    """The options that make a layout in one framework, as text to copy.

    Targets are "megatron", "nemo", "megatron-deepspeed", "megatron-deepspeed-bloom", "deepspeed",
    "torchtitan", "torchtitan-main" and "torchtitan-toml".

    Args:
        target: whose options, such as "megatron" or "torchtitan".
        (the layout)
    """
    require_choice("target", target, TARGETS)
    return emit(layout.stated_job, framework=target)


@endpoint
def cluster_check(
    layout: Layout, names: str = "", megabytes: int = 64, hosts: str = "", racks: str = ""
) -> str:
    """A script for torchrun that makes the same groups on the real nodes and checks them.

    Args:
        names: groups to check, separated by spaces; empty: all.
        megabytes: size of the buffer whose bandwidth is measured.
        hosts: the job's machines in their order, on which the ranks must stand; empty: any.
        racks: another text about the machines; empty: none.
        (the layout)
    """
    placement = placement_from(layout, hosts, racks)
    return check_script(layout, _names(names), megabytes=megabytes, placement=placement)


@serving()
def read_launch(text: str = "", run: str = "") -> str:
    """What a launch command or a configuration asks for, as JSON. It is read, never run.

    Beside the framework and the values stand four lists of what was understood, ignored, unresolved
    or a problem: {"line", "column", "text", "sentence"}, the text as it stands at that line and
    column, both counted from 1. What is assumed for what is missing is told in sentences; "asks"
    are the fields that nobody knows, "training" is what the text says besides of the training.
    For vLLM's and SGLang's servers "groups" are their own, in their own order (up to 4,096 ranks).

    Args:
        text: a launch script, a configuration in YAML, JSON or TOML, or a recipe in Python.
        run: one of the runs or roles that an earlier answer names in "runs"; empty: the usual one.
    """

    found = parse(text, run)
    groups = [
        (name, one) for name, one in served_groups(found).items() if one.world_size <= MOST_LISTED
    ]
    return json.dumps(
        {
            "framework": found.framework and found.framework.name,
            "values": found.values,
            "assumed": found.assumed,
            "understood": _placed(found, found.understood),
            "ignored": _placed(found, found.ignored),
            "unresolved": _placed(found, found.unresolved),
            "problems": _placed(found, found.problems),
            "missing": [note_text(one) for one in found.missing],
            "asks": found.asks,
            "training": found.training,
            "run": found.run,
            "runs": [{"name": one.name, "values": one.values} for one in found.runs],
            "serving": found.serving,
            "groups": {
                name: [list(map(int, ranks)) for ranks in one.groups()] for name, one in groups
            },
        }
    )


MOST_LISTED = 4096
"""Ranks of a server whose groups an answer lists."""


def _placed(found: Parsed, items: Iterable[Item]) -> list[dict[str, Any]]:
    """Each item with where it stands."""
    return [
        {
            "line": one.line,
            "column": one.column,
            "text": found.text[one.start : one.end],
            "sentence": note_text(one),
        }
        for one in items
    ]


ENDPOINTS: dict[str, Callable[..., str]] = {
    "process_groups": process_groups,
    "rank_table": rank_table,
    "rank_card": rank_card,
    "node_audit": node_audit,
    "shared_by_ranks": shared_by_ranks,
    "launch_command": launch_command,
    "cluster_check": cluster_check,
    "read_launch": read_launch,
    "read_hosts": read_hosts,
    "better_order": better_order,
    "slow_groups": slow_groups,
    "collective": collective,
    "pipeline_schedule": pipeline_schedule,
    "memory_per_rank": memory_per_rank,
    "traffic_per_step": traffic_per_step,
    "better_layouts": better_layouts,
}
"""By the name under which Gradio serves them; /layout, the oldest, is in `app`."""
