"""The state of a page for a plan that was read: every role, the one that trains on screen.

>>> from formats.roles.presets import preset_plan
>>> state_of_plan(preset_plan("slime-qwen3-30b-a3b")).roles
'rollout@0-7:sglang,tp=8,served_share=0.7;*actor@0'
"""

from __future__ import annotations

from formats.roles import PlanRead, RoleRead
from formats.roles.presets import PLANS, preset_plan
from groups.gpus import Gpus
from groups.kept import kept
from training.roles import PARTS

from ..inputs import UNKNOWN
from ..resolve import MODEL, fields_of_job
from ..state import State, texts_of
from .pages import Cast, RolePage, cast_of
from .text import OWN_FIELDS, ROLE_STARTS

OWN_PARTS = {"serve": ("weights", "cache"), "train": ("weights", "gradients", "optimizer")}
"""The parts of a role's memory that may stay on its GPUs, by what its framework does."""


OWN_RULES = ("verl", "slime")
"""Frameworks whose way of sending weights is a rule of Moves of that name."""


def rule_of(framework: str) -> str:
    """The rule with which the weights of a framework's plan move; empty: the first.

    >>> rule_of("slime"), rule_of("openrlhf")
    ('slime', '')
    """
    return framework if framework in OWN_RULES else ""


def state_of_plan(read: PlanRead, state: State | None = None) -> State:
    """The state with a plan in place of its job."""
    return cast_of_plan(read, State() if state is None else state).state()


def cast_of_plan(read: PlanRead, page: State) -> Cast:
    """The roles of a plan that was read, each as a state with that role on screen; weights move by
    the rule of its framework."""
    page = page.changed({"moves_rule": rule_of(read.framework)})
    members = tuple(_member(read.role(role.name), page) for role in read.plan.turns)
    trains = [at for at, role in enumerate(read.plan.turns) if not role.layout.is_server]
    named = [at for at in trains if members[at].name in ("actor", "policy")]
    machines = read.plan.nodes, read.plan.gpus_per_node
    return Cast(members, (*named, *trains, 0)[0], machines)


def _member(read: RoleRead, page: State) -> RolePage:
    role, training = read.role, dict(read.training)
    if "model" in training:
        training["model"] = training["model"] or UNKNOWN
    training |= {name: value for name, value in read.values.items() if name in MODEL}
    fields = {**ROLE_STARTS, **fields_of_job(role.layout.job), **texts_of(training)}
    own = {name: fields[name] for name in OWN_FIELDS}
    parts = OWN_PARTS[role.layout.made_by.does]
    kept = tuple(part for part in parts if part not in read.away)
    kept = PARTS if kept == parts else kept
    return RolePage(
        role.name, page.changed({**own, "rank": ""}), role.first_rank, Gpus.of(role.gpus), kept
    )


@kept
def preset_state(name: str) -> State:
    """The state of a published plan. Errors: LayoutError for an unknown name."""
    return state_of_plan(preset_plan(name)).changed({"preset": name, "view": "roles"})


WHOLE = ("preset", "nodes")
"""Fields that tell of no role: its nodes are told by its GPUs."""

Change = tuple[str, str, str, str]
"""A role, what of it ("gpus", or a field; "" for the role itself), as published and as it is."""


def changed_plan(name: str, state: State) -> list[Change]:
    """What of a published plan a state has not, role by role, whichever of them is on screen.

    >>> state = preset_state("slime-qwen3-30b-a3b")
    >>> changed_plan("slime-qwen3-30b-a3b", cast_of(state).to("rollout").state())
    []
    >>> changed_plan("slime-qwen3-30b-a3b", state.changed({"tp": "2"}))
    [('actor', 'tp', '4', '2')]

    Errors: LayoutError for a text of roles that cannot be read.
    """
    now, then = cast_of(state), cast_of(preset_state(name))
    changes: list[Change] = []
    for role in dict.fromkeys(one.name for one in (*then.members, *now.members)):
        before, after = then.named(role), now.named(role)
        if before is None or after is None:
            changes.append((role, "", role if before else "", role if after else ""))
            continue
        pairs = {"gpus": (_gpus(before), _gpus(after))}
        own, other = before.own(), after.own()
        pairs |= {field: (own[field], other[field]) for field in OWN_FIELDS if field not in WHOLE}
        changes += [(role, what, *pair) for what, pair in pairs.items() if pair[0] != pair[1]]
    return changes


def _gpus(role: RolePage) -> str:
    return ", ".join(f"{first}\u2013{last}" for first, last in role.spans)


def is_plan(name: str) -> bool:
    """Whether a preset is a plan of several roles."""
    return name in PLANS
