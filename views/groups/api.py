"""The endpoints about a whole layout: its groups, its ranks."""

import json
from typing import Any

from formats.documents.exports import groups_json_parts, ranks_json_parts
from groups import LayoutError
from groups.audit import spans_of
from groups.budget import spend, within
from groups.layout import Layout
from groups.mesh import whole_number

from ..base.context import Context
from ..base.endpoint import endpoint, names_of, require_served
from ..base.state import State
from ..hosts.api import placement_from


@within()
def layout(
    group_type: str = "dp+tp+pp",
    nodes: int = 2,
    gpus_per_node: int = 8,
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    order: str = "",
    dp_kind: str = "dp",
    ep: int = 1,
    etp: int | None = None,
    framework: str = "megatron",
    more: str = "",
) -> str:
    """The process groups of a layout, as JSON.

    Args:
        group_type: which kinds to list, such as "dp", "dp+tp+pp" or "moe".
        nodes: machines in the job.
        gpus_per_node: GPUs of one machine.
        tp: tensor parallel size.
        pp: pipeline parallel size.
        cp: context parallel size.
        order: axes from fastest to slowest, such as "tp-cp-ep-pp-dp"; empty: the framework's.
        dp_kind: in a type with cp, which group "data parallel" means: "dp" or "dp-cp".
        ep: expert parallel size.
        etp: expert tensor parallel size; None: as tp.
        framework: whose order to use, such as "megatron", "deepspeed" or "llama3".
        more: further groups by Megatron's names, separated by spaces, such as "embd tp-ep-pp".

    Returns:
        {"mesh", "expert_mesh", "world_size", "dp", "edp", "groups": {name: [[rank, ...], ...]},
        "nodes_spanned": {name: [nodes, ...]}}; expert_mesh and edp are null without experts' grid
    """
    given = {"nodes": nodes, "gpus_per_node": gpus_per_node, "tp": tp, "pp": pp, "cp": cp, "ep": ep}
    if etp is not None:
        given["etp"] = etp
    # A page's boxes send text; a program that does has a mistake, and is told so.
    for name, value in given.items():
        whole_number(value, name)
    names = more.split() if isinstance(more, str) else more
    choices = {"group_type": group_type, "dp_kind": dp_kind, "framework": framework}
    state = State(**choices, **given, more=names)
    try:
        context = Context.of(state.changed({"order": order}) if order else state)
        require_served(context.layout.world_size)
        spend(context.layout.world_size, "ranks")
    except LayoutError as error:
        raise error.replace(quote="") from None
    found: dict[str, Any] = {one.name: one.groups() for one in context.visible}
    mesh, expert = context.layout.mesh, context.layout.expert
    return json.dumps(
        {
            "mesh": str(mesh),
            "expert_mesh": None if expert is None else str(expert),
            "world_size": mesh.world_size,
            "dp": mesh.size("dp"),
            "edp": None if expert is None else expert.size("edp"),
            "groups": {
                name: ranks if isinstance(ranks, list) else ranks.tolist()
                for name, ranks in found.items()
            },
            "nodes_spanned": {
                one.name: spans_of(one, gpus_per_node).tolist() for one in context.visible
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
def rank_table(layout: Layout, hosts: str = "", racks: str = "") -> str:
    """Node, GPU, coordinates and groups of every rank, as JSON (schema "parallel-ranks").

    Args:
        hosts: the job's machines, as /read_hosts takes them; then ranks stand on them by name.
        racks: another text that says where they stand; empty: hosts.
        (the layout)
    """
    return "".join(ranks_json_parts(layout, None, placement_from(layout, hosts, racks)))
