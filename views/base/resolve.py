"""A state checked: the layout it means, and which of its groups are visible."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from descriptions import DP_KINDS, TYPES
from groups import MAX_RANKS, LayoutError, Mesh
from groups.alternatives import MOST
from groups.conventions import CONVENTIONS
from groups.errors import not_a_choice, quoted
from groups.grouping import Grouping
from groups.job import OWN, Job, Made, framework_name, own_groupings
from groups.mesh import whole_number
from groups.presets import PRESETS, Preset

from .state import State, is_empty, parse_number

AUTO = "auto"
"""The type of groups that follows the layout."""

MAIN, EXPERTS_MAIN = ("tp", "cp", "dp", "pp"), ("etp", "ep", "edp")
"""Kinds of the dense grid, and of the grid of experts."""


@dataclass(frozen=True)
class Layout:
    """State that make sense together: the grids, where they stand, the groups to show."""

    group_type: str
    nodes: int
    gpus_per_node: int
    framework: str
    mesh: Mesh  # of dense layers
    expert: Mesh | None  # of experts; None if the framework has no such grid
    shown: tuple[Grouping, ...]
    makes: tuple[Grouping, ...] = ()  # the values of `every`, which two layouts may differ in
    every: Mapping[str, Grouping] = field(default_factory=dict, compare=False, repr=False)

    @property
    def world_size(self) -> int:
        return self.mesh.world_size

    @classmethod
    def of(cls, made: Made, group_type: str = "chosen") -> Layout:
        """What a job comes to, with no group to show yet."""
        return cls(
            group_type=group_type,
            nodes=made.world_size // made.gpus_per_node,
            gpus_per_node=made.gpus_per_node,
            framework=made.framework,
            mesh=made.mesh,
            expert=made.expert,
            shown=(),
            makes=tuple(made.every.values()),
            every=made.every,
        )

    @property
    def has_experts(self) -> bool:
        """Whether experts are spread in a way of their own: else their grid is the dense one."""
        mesh, expert = self.mesh, self.expert
        return expert is not None and (
            expert.size("ep") > 1 or expert.size("etp") != mesh.size("tp")
        )

    def made(self) -> Made:
        """The same as what a job comes to, for what is written of it."""
        return Made(self.framework, self.gpus_per_node, self.mesh, self.expert, self.every)

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(grouping.name for grouping in self.shown)

    @property
    def order(self) -> str:
        """The axes of both grids, fastest first, in Megatron's names."""
        names = list(self.mesh.names)
        if self.expert is not None:
            after = self.expert.names[self.expert.names.index("ep") + 1 :]
            behind = [{"etp": "tp", "edp": "dp"}.get(name, name) for name in after]
            at = min((names.index(name) for name in behind), default=len(names))
            names.insert(at, "ep")
        return "-".join(names)


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
    chosen: Preset = PRESETS[_choice("preset", preset, PRESETS)]
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
        raise _with_working_cures(error, state) from None


def _with_working_cures(error: LayoutError, state: State) -> LayoutError:
    """Only cures that really work, and more or fewer nodes among them: the sizes stay then."""
    nodes_too: Sequence[Mapping[str, Any]] = ()
    if error.code == "does-not-divide":
        nodes_too = _machine_fixes(state, "nodes", parse_number(state.nodes))
    cures = [cure for cure in (*error.alternatives, *nodes_too) if _resolves(state.changed(cure))]
    return error.but(alternatives=cures[:MOST])


def _resolves(state: State) -> bool:
    try:
        _resolve(state)
    except LayoutError:
        return False
    return True


def _resolve(state: State) -> Layout:
    group_type = _choice("group_type", state.group_type, TYPES)
    framework = _choice("framework", state.framework, (*CONVENTIONS, OWN))
    dp_kind = _choice("dp_kind", state.dp_kind, DP_KINDS)
    nodes, gpus_per_node = _machines(state)
    layout = Layout.of(_job(state, framework, nodes, gpus_per_node).made(), group_type)
    shown = _shown(layout, _kinds(group_type, dp_kind), _names("more", state.more))
    return replace(layout, shown=shown)


def job_of(state: State) -> Job:
    """The job that a state asks for, if it resolves well."""
    nodes, gpus_per_node = _machines(state)
    return _job(state, state.framework, nodes, gpus_per_node)


def _job(state: State, framework: str, nodes: int, gpus_per_node: int) -> Job:
    return Job(
        nodes=nodes,
        gpus_per_node=gpus_per_node,
        **{name: parse_number(getattr(state, name)) for name in ("tp", "pp", "cp", "ep")},
        etp=None if is_empty(state.etp) else parse_number(state.etp),
        framework=framework,
        order=state.order,
        instances=parse_number(state.instances),
        levels=None if is_empty(state.levels) else _levels(state.levels),
        hybrid=state.hybrid is True,
    )


# -- which groups to show ------------------------------------------------------------------------


def _kinds(group_type: str, dp_kind: str) -> tuple[str, ...]:
    kinds = TYPES[group_type].kinds
    if has_two_dp_kinds(group_type):
        return tuple(dp_kind if kind == "dp" else kind for kind in kinds)
    return kinds


def _shown(layout: Layout, kinds: Sequence[str], more: Sequence[str]) -> tuple[Grouping, ...]:
    """The groups of the type, then those that were chosen beside it, each once."""
    own = own_groupings(layout) if layout.group_type == "framework" else []
    if layout.group_type == AUTO:
        kinds = tuple(one.name for one in main_groupings(layout))
    names = list(dict.fromkeys((*kinds, *more)))
    for name in names:
        if name not in layout.every:
            raise _no_such_group(layout, name, name in more, more)
    shown = tuple(dict.fromkeys((*own, *(layout.every[name] for name in names))))
    taken = [name for name in more if layout.every[name] not in own and name in _names_of(own)]
    if taken:
        raise LayoutError(
            "name-taken",
            f"{taken[0]} is here a group of {framework_name(layout.framework)}'s own",
            control="more",
            alternatives=[
                {"more": tuple(name for name in more if name not in taken)},
                {"group_type": "chosen"},
            ],
            facts={"name": taken[0], "framework": framework_name(layout.framework)},
        )
    if not shown:
        raise LayoutError(
            "no-groups-chosen",
            "no group is chosen to be shown",
            control="more",
            alternatives=[{"group_type": "dp+tp+pp"}],
        )
    return shown


def main_groupings(layout: Layout) -> list[Grouping]:
    """Every kind of the layout's grids that is larger than 1; dp where none is."""
    names = [*MAIN, *(EXPERTS_MAIN if layout.has_experts else ())]
    found = [layout.every[name] for name in names if name in layout.every]
    return [one for one in found if one.size > 1] or [layout.every["dp"]]


def _names_of(groupings: Sequence[Grouping]) -> set[str]:
    return {grouping.name for grouping in groupings}


def _no_such_group(layout: Layout, name: str, is_chosen: bool, more: Sequence[str]) -> LayoutError:
    without = {"more": tuple(one for one in more if one in layout.every)}
    cures = [without] if is_chosen else [{"group_type": "dp+tp+pp"}]
    if layout.expert is None:
        cures.append({"framework": "megatron"})
    return LayoutError(
        "no-such-group",
        f"this layout makes no group {quoted(name)}",
        control="more" if is_chosen else "group_type",
        alternatives=cures,
        facts={"name": quoted(name).strip("'"), "framework": framework_name(layout.framework)},
    )


def has_two_dp_kinds(group_type: object) -> bool:
    """Whether "data parallel" could mean dp or dp-cp in this type, so that the user chooses."""
    return (
        isinstance(group_type, str)
        and group_type in TYPES
        and {"cp", "dp"} <= set(TYPES[group_type].kinds)
        and "ep" not in TYPES[group_type].kinds
    )


def _levels(value: object) -> tuple[Any, ...]:
    """Sizes written with x, commas or spaces between them."""
    if not isinstance(value, str) or len(value) > 100:
        return (value,)
    return tuple(parse_number(part) for part in re.split(r"[\s,x×*]+", value.strip()))


def _names(control: str, value: object) -> tuple[str, ...]:
    """A list of names, as a dropdown with several choices sends it."""
    if value is None or value == "":
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise LayoutError(
            "not-names",
            f"{quoted(value)} is not a list of group names",
            control=control,
            alternatives=[{control: ()}],
            facts={"value": quoted(value)},
        )
    return tuple(dict.fromkeys(names[:64]))


def _machines(state: State) -> tuple[int, int]:
    numbers = {
        "nodes": parse_number(state.nodes),
        "gpus_per_node": parse_number(state.gpus_per_node),
    }
    for name, number in numbers.items():
        try:
            numbers[name] = whole_number(number, name)
        except LayoutError as error:
            raise error.but(alternatives=_machine_fixes(state, name, number)) from None
    nodes, gpus_per_node = numbers.values()
    ranks = nodes * gpus_per_node
    if ranks > MAX_RANKS:
        larger = max(numbers, key=lambda name: numbers[name])
        raise LayoutError(
            "too-many-ranks",
            f"{quoted(ranks)} GPUs are more than the {MAX_RANKS:,} that can be drawn",
            control=larger,
            alternatives=[
                *_machine_fixes(state, "nodes", nodes),
                *_machine_fixes(state, "gpus_per_node", gpus_per_node),
            ],
            facts={"ranks": quoted(ranks), "limit": MAX_RANKS},
        )
    return nodes, gpus_per_node


def _machine_fixes(state: State, name: str, near: object) -> list[dict[str, int]]:
    """The nearest numbers of nodes, or of GPUs in one, with which the other fields
    work.

    The sizes of both grids must divide the world, so these are multiples of what the other number
    leaves of them.
    """
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


def _choice(control: str, value: object, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise not_a_choice(control, value, choices)
    return value
