"""A state checked: the layout that it means, and which of its groups are visible."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

from descriptions import DP_KINDS, TYPES
from groups import MAX_RANKS, LayoutError, Mesh
from groups.alternatives import MOST, works
from groups.conventions import CONVENTIONS, OWN
from groups.errors import quoted
from groups.grouping import Grouping
from groups.layout import Job, Layout, framework_name, own_groupings
from groups.mesh import whole_number
from groups.presets import PRESETS, Preset

from .problems import refusal
from .state import State, is_empty, parse_number, require_choice

AUTO = "auto"
"""The type of groups that follows the layout."""

MAIN, EXPERTS_MAIN = ("tp", "cp", "dp", "pp"), ("etp", "ep", "edp")
"""Kinds of the dense grid, and of the grid of experts."""


def _kinds(group_type: str, dp_kind: str) -> tuple[str, ...]:
    kinds = TYPES[group_type].kinds
    if has_two_dp_kinds(group_type):
        return tuple(dp_kind if kind == "dp" else kind for kind in kinds)
    return kinds


def visible_groups(layout: Layout, state: State) -> tuple[Grouping, ...]:
    """The groups of the type, then those that were chosen beside it, each once.

    Errors: LayoutError about a group that the layout does not have, or a name of two groups.
    """
    kinds, more = _kinds(state.group_type, state.dp_kind), _names("more", state.more)
    native = own_groupings(layout) if state.group_type == "framework" else []
    if state.group_type == AUTO:
        kinds = tuple(grouping.name for grouping in main_groupings(layout))
    names = list(dict.fromkeys((*kinds, *more)))
    for name in names:
        if name not in layout.every:
            raise _no_such_group(layout, name, name in more, more)
    visible = tuple(dict.fromkeys((*native, *(layout.every[name] for name in names))))
    taken = [
        name for name in more if layout.every[name] not in native and name in _names_of(native)
    ]
    if taken:
        fixes = (
            {"more": tuple(name for name in more if name not in taken)},
            {"group_type": "chosen"},
        )
        facts = {"name": taken[0], "framework": framework_name(layout.framework)}
        raise refusal("name-taken", "more", *fixes, **facts)
    if not visible:
        raise refusal("no-groups-chosen", "more", {"group_type": "dp+tp+pp"})
    return visible


def main_groupings(layout: Layout) -> list[Grouping]:
    """Every kind of the layout's grids that is larger than 1; dp where none is."""
    names = [*MAIN, *(EXPERTS_MAIN if layout.has_experts else ())]
    groupings = [layout.every[name] for name in names if name in layout.every]
    return [grouping for grouping in groupings if grouping.size > 1] or [layout.every["dp"]]


def _names_of(groupings: Sequence[Grouping]) -> set[str]:
    return {grouping.name for grouping in groupings}


def _no_such_group(layout: Layout, name: str, is_chosen: bool, more: Sequence[str]) -> LayoutError:
    without = {"more": tuple(name for name in more if name in layout.every)}
    fixes = [without] if is_chosen else [{"group_type": "dp+tp+pp"}]
    if layout.expert is None:
        fixes.append({"framework": "megatron"})
    facts = {"name": quoted(name).strip("'"), "framework": framework_name(layout.framework)}
    return refusal("no-such-group", "more" if is_chosen else "group_type", *fixes, **facts)


def has_two_dp_kinds(group_type: object) -> bool:
    """Whether "data parallel" could mean dp or dp-cp in this type, so that the user chooses."""
    return (
        isinstance(group_type, str)
        and group_type in TYPES
        and {"cp", "dp"} <= set(TYPES[group_type].kinds)
        and "ep" not in TYPES[group_type].kinds
    )


def _names(control: str, value: object) -> tuple[str, ...]:
    """A list of names, as a dropdown with several choices sends it."""
    if value is None or value == "":
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise refusal("not-names", control, {control: ()}, value=quoted(value))
    return tuple(dict.fromkeys(names[:64]))


def sizes_text(layout: Layout) -> str:
    """The sizes that are more than 1, in the order of the ranks.

    >>> sizes_text(resolve(State(tp=4)))
    'tp4 · dp2 · pp2'
    """
    ep = layout.expert.size("ep") if layout.expert is not None else 1
    return sizes_of(layout.mesh) + (f" · ep{ep}" if ep > 1 else "")


def sizes_of(mesh: Mesh) -> str:
    """The axes of a mesh that are larger than 1; dp1 for a single rank."""
    return " · ".join(f"{axis.name}{axis.size}" for axis in mesh.axes if axis.size > 1) or "dp1"


def from_preset(preset: str) -> State:
    """The state that shows a published layout."""
    chosen: Preset = PRESETS[preset]
    model: dict[str, Any] = {name: str(chosen.model.get(name, "")) for name in MODEL}
    model["account"] = bool(chosen.model.get("account_for_embedding"))
    return State(
        nodes=chosen.nodes,
        gpus_per_node=str(chosen.gpus_per_node),
        tp=chosen.tp,
        pp=chosen.pp,
        cp=chosen.cp,
        ep=chosen.ep,
        etp="" if chosen.etp is None else str(chosen.etp),
        framework=chosen.framework,
        **model,
    )


SIZES = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep")
"""The sizes of a job that always count."""

MODEL = ("layers", "vpp", "experts", "micro_batch", "global_batch")
"""State that change no group: what the groups work on."""


def resolve(state: State) -> Layout:
    """Check the state and work out the layout.

    >>> str(resolve(State(tp=4)).mesh)
    'tp4-cp1-dp2-pp2'

    Errors: LayoutError about the control that is wrong; merging any of its alternatives with
    ``state.changed`` gives one that resolves well.
    """
    try:
        return _resolve(state)
    except LayoutError as error:
        raise _with_working_fixes(error, state) from None


def _with_working_fixes(error: LayoutError, state: State) -> LayoutError:
    """Only fixes that really work, and more or fewer nodes among them: the sizes stay then."""
    machines = ("nodes", "gpus_per_node")
    if error.code == "too-many-ranks":
        tries = [fix for name in machines for fix in _machine_fixes(state, name)]
    elif error.code == "does-not-divide":
        tries = [*error.alternatives, *_machine_fixes(state, "nodes")]
    elif error.control in machines:
        tries = _machine_fixes(state, error.control)
    else:
        tries = [*error.alternatives]
    working = [fix for fix in tries if works(_resolve, state.changed(fix))]
    return error.replace(alternatives=working[:MOST])


def _resolve(state: State) -> Layout:
    require_choice("group_type", state.group_type, TYPES)
    require_choice("framework", state.framework, (*CONVENTIONS, OWN))
    require_choice("dp_kind", state.dp_kind, DP_KINDS)
    layout = _job(state).layout()
    visible_groups(layout, state)
    return layout


def _job(state: State) -> Job:
    return Job(
        **{name: parse_number(getattr(state, name)) for name in SIZES},
        etp=None if is_empty(state.etp) else parse_number(state.etp),
        framework=state.framework,
        order=state.order,
        instances=parse_number(state.instances),
        levels=None if is_empty(state.levels) else _levels(state.levels),
        hybrid=state.hybrid is True,
    )


def _levels(value: object) -> tuple[Any, ...]:
    """Sizes written with x, commas or spaces between them."""
    if not isinstance(value, str) or len(value) > 100:
        return (value,)
    return tuple(parse_number(part) for part in re.split(r"[\s,x×*]+", value.strip()))


def _machine_fixes(state: State, name: str) -> list[dict[str, Any]]:
    """The nearest numbers of nodes, or of GPUs in one, with which the other fields work.

    The sizes of both grids must divide the world, so these are multiples of what the other number
    leaves of them.
    """
    near = parse_number(getattr(state, name))
    other = parse_number(state.nodes if name == "gpus_per_node" else state.gpus_per_node)
    tp, pp, cp, ep = (parse_number(getattr(state, size)) for size in ("tp", "pp", "cp", "ep"))
    etp = tp if is_empty(state.etp) else parse_number(state.etp)
    try:
        other = whole_number(other, "other", maximum=MAX_RANKS)
        dense, expert = (
            math.prod(whole_number(size, "size", maximum=MAX_RANKS) for size in sizes)
            for sizes in ((tp, pp, cp), (etp, ep, pp))
        )
    except LayoutError:
        return []  # that one has to be mended first
    product = math.lcm(dense, expert)
    unit, most = product // math.gcd(product, other), MAX_RANKS // other
    is_number = isinstance(near, (int, float)) and not isinstance(near, bool) and near == near
    start = min(max(near, 1), most) if is_number else parse_number(getattr(State(), name))
    below = int(start // unit) * unit
    return [{name: n} for n in (below, below + unit) if n != near and 1 <= n <= most]
