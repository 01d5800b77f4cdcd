"""Both sides of a weight transfer: the layout on screen sends, another one receives."""

from __future__ import annotations

from contextlib import suppress

from groups import LayoutError
from groups.errors import not_a_choice
from groups.layout import Layout
from groups.plan import Role
from training.machine import Machine
from training.moves import Moves, weight_moves
from training.split import Dealing, layers_of_stages

from ...context import Context
from ...errors import refusal
from ...model import model_of
from ...roles.pages import RolePage
from ...trained import keeps_parts, machine_of_state

ROLE = "role:"
"""Prefix of the name of another role of the plan, as in role:rollout."""


def role_side(text: str, context: Context) -> tuple[Context, int, int]:
    """The context of another role of the plan (role:rollout), and the first ranks of this role and
    that.

    Errors: LayoutError for an unknown role, and for a role whose GPUs are not consecutive.

    Errors: LayoutError for an unknown role, and for GPUs that are not consecutive.
    """
    name = text.strip().removeprefix(ROLE).strip()
    cast = context.cast
    member = cast.named(name)
    if member is None:
        others = [f"{ROLE}{one.name}" for one in cast.members if one is not cast.shown]
        raise not_a_choice("moves_other", text, others)
    require_runs(cast.shown, member)
    page = member.page.changed({"roles": "", "role_edit": ""})
    return Context.of(page), cast.shown.first, member.first


def require_runs(*roles: Role | RolePage) -> None:
    """Errors: LayoutError for a role whose GPUs are not consecutive: moves count ranks from its
    first GPU."""
    for role in roles:
        if len(role.gpus):
            raise refusal("role-is-no-run", "moves_other", role=role.name)


def moves_between(
    source: Context,
    target: Context,
    rule: str = "nearest",
    first_rank: int = 0,
    source_rank: int = 0,
    node: int = 0,
) -> Moves:
    """The moves of the source model's weights. Each side keeps its own division of layers into
    stages; with ZeRO-3, data parallelism shards the tensors too. node: GPUs of a node of the plan
    that both are roles of; 0: as the source's page has it, else as the layouts have it.

    >>> from request.state import State
    >>> one, other = (Context.of(State(nodes=1, tp=tp)) for tp in (2, 4))
    >>> moves_between(one, other).bytes.between_nodes
    0

    Errors: LayoutError as of `weight_moves` and for an unknown model.
    """
    model = model_of(source.state).model
    cluster, sides = cluster_used(source), (source, target)
    return weight_moves(
        model,
        source.layout,
        target.layout,
        first_rank,
        rule,
        dealings=[_dealing(side, model.layers) for side in sides],
        padded=True,
        fsdp=[keeps_parts(side.layout, side.state) for side in sides],
        rack=cluster.domain_of(source.layout.gpus_per_node),
        source_rank=source_rank,
        node=node or _node_of_plan(source),
    )


def _node_of_plan(source: Context) -> int:
    """GPUs of a node of the plan, which are not the GPUs that a role has of it; 0 without roles."""
    return source.cast.each if source.state.roles else 0


def cluster_used(context: Context) -> Machine:
    """The cluster that both sides run on."""
    return machine_of_state(context.state)


def size_text(layout: Layout) -> str:
    """The sizes of a layout that exceed 1, such as tp 2 pp 2 dp 4.

    >>> from groups.layout import Job
    >>> size_text(Job(nodes=2, tp=4, ep=2).layout())
    'tp 4 dp 4 ep 2'
    """
    sizes = {name: layout.mesh.size(name) for name in ("tp", "pp", "cp", "dp")}
    if layout.expert is not None:
        sizes["ep"] = layout.expert.size("ep")
    return " ".join(f"{name} {size}" for name, size in sizes.items() if size > 1) or "dp 1"


def _dealing(context: Context, layers: int) -> Dealing | None:
    """How a training side divides its layers into stages; None for a side that serves."""
    with suppress(LayoutError):
        trained = context.trained
        dealing = trained.split.placed(trained.training.rule.placement).dealing
        layers_of_stages(layers, dealing)
        return dealing
    return None
