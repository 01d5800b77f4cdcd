"""Which groups of a layout are visible: the state chooses them, the layout stays what it is."""

from __future__ import annotations

from collections.abc import Sequence

from descriptions import TYPES
from groups.errors import LayoutError, quoted
from groups.grouping import Grouping
from groups.layout import Layout, framework_name, own_groupings

from .errors import refusal
from .state import State

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
