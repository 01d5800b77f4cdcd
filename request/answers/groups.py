"""The endpoints for a whole layout: its groups and its ranks."""

import json
from base64 import b64encode

from formats.documents.exports import (
    groups_json_parts,
    ranks_json_parts,
)
from groups import LayoutError
from groups.audit import spans_of
from groups.budget import spend
from groups.bundles import drawn
from groups.frameworks import OWN
from groups.grouping import Grouping
from groups.layout import SERVED, Layout, world_of
from groups.megatron import ORDER
from groups.mesh import whole_number

from ..context import Context
from ..endpoint import MOST_SERVED, Parameters, endpoint, names_of, parameter, serving
from ..hosts import placement_from
from ..state import State

STARTS: dict[str, object] = {"group_type": "dp+tp+pp", "nodes": 2, "order": "", "etp": None}

GROUPS = Parameters(
    "(the groups)",
    {
        name: parameter(name, start=STARTS.get(name, ...))
        for name in (
            *("group_type", "nodes", "gpus_per_node", "tp", "pp", "cp", "order", "dp_kind", "ep"),
            *("etp", "framework", "more", *SERVED),
        )
    },
)


@serving(GROUPS.fields, GROUPS)
def layout(fields: dict[str, object]) -> str:
    """The process groups of a layout, as JSON.

    Args:
        (the groups)

    Returns:
        {"mesh", "expert_mesh", "world_size", "dp", "edp", "groups": {name: [[rank, ...], ...]},
        "nodes_spanned": {name: [nodes, ...]}}; expert_mesh and edp are null without experts' grid
    """
    fields |= {"framework": OWN} if fields["order"] else {"order": ORDER}
    try:
        world_of(fields["nodes"], fields["gpus_per_node"], MOST_SERVED)
        context = Context.of(State(**fields))
        spend(context.layout.world_size, "ranks")
    except LayoutError as error:
        raise error.replace(quote="") from None
    mesh, expert = context.layout.mesh, context.layout.expert
    return json.dumps(
        {
            "mesh": str(mesh),
            "expert_mesh": None if expert is None else str(expert),
            "world_size": mesh.world_size,
            "dp": mesh.size("dp"),
            "edp": None if expert is None else expert.size("edp"),
            "groups": {grouping.name: lists_of(grouping) for grouping in context.visible},
            "nodes_spanned": {
                grouping.name: spans_of(grouping, context.layout.gpus_per_node).tolist()
                for grouping in context.visible
            },
        }
    )


@endpoint
def process_groups(layout: Layout, names: str = "", hosts: str = "", racks: str = "") -> str:
    """Every process group of a training job, as a JSON document (schema "parallel-groups").

    Args:
        names: groups to list, separated by spaces, such as "dp tp ep embd"; empty: all.
        hosts: the job's machines, as /read_hosts takes them; then ranks stand on them by name.
        racks: another text that says where they stand; empty: hosts.
        (the layout)
    """
    placement = placement_from(layout, hosts, racks)
    return "".join(groups_json_parts(layout, names_of(names), placement))


@endpoint
def rank_table(layout: Layout, hosts: str = "", racks: str = "", *, first: int = 0) -> str:
    """Node, GPU, coordinates and groups of every rank, as JSON (schema "parallel-ranks").

    Args:
        hosts: the job's machines, as /read_hosts takes them; then ranks stand on them by name.
        racks: another text that says where they stand; empty: hosts.
        (the layout)
        first: list only so many ranks, from rank 0 on; 0: all.
    """
    count = whole_number(first, "first", minimum=0, maximum=layout.world_size)
    placement = placement_from(layout, hosts, racks)
    return "".join(ranks_json_parts(layout, None, placement, count or None))


BINARY = 50_000
"""Units of work that a picture needs that is no text."""


@endpoint
def picture(
    layout: Layout, names: str = "", rank: int = 0, form: str = "svg", theme: str = "light"
) -> str:
    """A picture of the job with the groups of one GPU, and up to 256 GPUs each kind with all its
    groups, as JSON.

    Args:
        names: kinds of groups, separated by spaces, such as "dp tp ep"; empty: all larger than 1.
        rank: the GPU whose groups are marked.
        form: svg, png or pdf.
        theme: light or dark.
        (the layout)

    Returns:
        {"name": of a file, "type": its MIME type, "data": the SVG, or base64 of PNG and PDF}
    """
    shown = layout.show(*(names_of(names) or ()), rank=rank)
    spend(layout.world_size // 8 + (BINARY if form in ("png", "pdf") else 0), "pixels")
    data = drawn(shown, form, theme)
    text = data.decode() if form == "svg" else b64encode(data).decode()
    return json.dumps({"name": f"groups-{layout.mesh}.{form}", "type": TYPES[form], "data": text})


TYPES = {"svg": "image/svg+xml", "png": "image/png", "pdf": "application/pdf"}


def lists_of(grouping: Grouping) -> list[list[int]]:
    groups = grouping.groups()
    return groups if isinstance(groups, list) else groups.tolist()
