"""The layout of a state, checked, and its visible groups."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from descriptions import TYPES
from groups import MAX_RANKS, LayoutError, Mesh
from groups.alternatives import with_working
from groups.errors import quoted
from groups.frameworks import framework_or_first
from groups.grouping import Grouping
from groups.layout import OWN_PREFIX, Job, Layout, framework_name, own_groupings
from groups.mesh import whole_number
from groups.presets import PUBLISHED

from .errors import refusal
from .inputs import FIRST_JOB, ShownInputs
from .model import is_dense
from .state import State, fixes_or_reset, is_empty, texts_of

SIZES = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep")
"""The sizes of a job that every framework has."""

MODEL = ("layers", "vpp", "group_size", "experts", "micro_batch", "global_batch")
"""Fields of the state that change no group, but what the groups work on."""

AUTO = "auto"
"""The type of groups that follows the layout."""


def sizes_text(layout: Layout) -> str:
    """The sizes larger than 1, in the order of the ranks: tp4 · dp2 · pp2."""
    experts = layout.kind("ep") if layout.has_experts else None
    ep = 1 if experts is None else experts.size
    return sizes_of(layout.mesh) + (f" · ep{ep}" if ep > 1 else "")


def sizes_of(mesh: Mesh) -> str:
    """The axes of a mesh that are larger than 1; dp1 for a single rank."""
    sizes = {axis.name.removesuffix("_remat"): axis.size for axis in mesh.axes if axis.size > 1}
    return " · ".join(f"{name}{size}" for name, size in sizes.items()) or "dp1"


def from_preset(preset: str) -> State:
    """The state of a published layout."""
    chosen = PUBLISHED[preset]
    sizes = {name: getattr(chosen, name) for name in (*SIZES, "etp", "framework")}
    of_model = {name: chosen.model.get(name) for name in MODEL}
    account = bool(chosen.model.get("account_for_embedding"))
    return State(
        **{**sizes, **of_model, **chosen.served, "account": account, "model": chosen.model_id}
    )


def fields_of_job(job: Job) -> dict[str, str]:
    """The fields of the state that set a job.

    >>> fields = fields_of_job(Job(nodes=4, tp=8, levels=(2, 2)))
    >>> fields["tp"], fields["gpus_per_node"], fields["etp"], fields["levels"]
    ('8', '8', '', '2x2')
    """
    return texts_of(vars(job))


# -- the layout ----------------------------------------------------------------------------------


def resolve(state: State) -> Layout:
    """The layout of a state.

    >>> str(resolve(State(tp=4)).mesh)
    'tp4-cp1-dp2-pp2'

    Errors: LayoutError about the control that is wrong; merging any of its alternatives with
    ``state.changed`` gives one that resolves well.
    """
    try:
        return _layout(state)
    except LayoutError as error:
        near = error.replace(alternatives=_fixes(error, state))
        raise with_working(near, lambda fix: _layout(state.changed(fix))) from None


def _layout(state: State) -> Layout:
    shown = state.parsed(ShownInputs)
    layout = layout_for(state.unchecked(Job).layout(), state)
    visible_groups(layout, shown)
    return layout


def layout_for(layout: Layout, state: State) -> Layout:
    """The layout with the groups that it has for the selected model."""
    is_known = layout.framework == "vllm" and not is_empty(state.model)
    return layout.without_experts() if is_known and is_dense(state) else layout


def _fixes(error: LayoutError, state: State) -> Sequence[Mapping[str, object]]:
    """Candidates for fixes, among them other numbers of nodes, with which the sizes stay."""
    machines = ("nodes", "gpus_per_node")
    if error.code == "too-many-ranks":
        return [fix for name in machines for fix in _machine_fixes(state, name)]
    if error.code == "does-not-divide":
        return [*error.alternatives, *_machine_fixes(state, "nodes")]
    if error.control in machines:
        return _machine_fixes(state, error.control)
    return fixes_or_reset(error)


def sizes_or_none(state: State, beside: str = "") -> dict[str, int] | None:
    """The sizes that are set, except ``beside``; None if one is invalid."""
    names = [*SIZES, "gtp", "egtp", "dcp", "moe_dp"]
    names += [name for name in ("etp", "dp") if state.values[name] is not None]
    sizes = {name: state.values[name] for name in names if name != beside}
    try:
        return {name: whole_number(sizes[name], name, maximum=MAX_RANKS) for name in sizes}
    except LayoutError:
        return None


def _machine_fixes(state: State, name: str) -> list[dict[str, object]]:
    """The nearest numbers of nodes, or of GPUs per node, with which the other fields are valid.

    The sizes of both grids must divide the world, so these are multiples of what the other number
    leaves of them.
    """
    near, known = state.values[name], sizes_or_none(state, name)
    if known is None:
        return []  # another one has to be mended first
    other = known["gpus_per_node" if name == "nodes" else "nodes"]
    product, most = framework_or_first(state.framework).unit(known), MAX_RANKS // other
    unit = product // math.gcd(product, other)
    is_number = isinstance(near, (int, float))
    start = min(max(near, 1), most) if is_number else getattr(FIRST_JOB, name)
    below = int(start // unit) * unit
    return [{name: n} for n in (below, below + unit) if n != near and 1 <= n <= most]


# -- its groups that are visible -----------------------------------------------------------------


def visible_groups(layout: Layout, shown: ShownInputs) -> tuple[Grouping, ...]:
    """The groups of the type, then those selected in addition, without duplicates."""
    more = shown.more[:64]
    kinds: Iterable[str] = TYPES[shown.group_type].kinds
    if has_two_dp_kinds(shown.group_type):
        kinds = (shown.dp_kind if kind == "dp" else kind for kind in kinds)
    main = main_groupings(layout) if shown.group_type == AUTO else []
    names = list(dict.fromkeys((*(kinds if not main else ()), *more)))
    for name in names:
        if layout.kind(name) is None:
            raise _no_such_group(layout, name, more)
    native = own_groupings(layout) if shown.group_type == "framework" else []
    drawn = {OWN_PREFIX + grouping.name for grouping in native}
    named = [grouping for grouping in map(layout.kind, names) if grouping is not None]
    others = (grouping for grouping in named if grouping.name not in drawn)
    visible = tuple(dict.fromkeys((*native, *main, *others)))
    if not visible:
        raise refusal("no-groups-chosen", "more", {"group_type": "dp+tp+pp"})
    return visible


def main_groupings(layout: Layout) -> list[Grouping]:
    """The kinds of the layout's grids that are larger than 1; dp if there are none."""
    return layout.main


def has_two_dp_kinds(group_type: str) -> bool:
    """Whether "data parallel" may mean dp or dp-cp in this type, so that the user chooses."""
    known = TYPES.get(group_type)
    return known is not None and {"cp", "dp"} <= {*known.kinds} and "ep" not in known.kinds


def _no_such_group(layout: Layout, name: str, more: Sequence[str]) -> LayoutError:
    without = {"more": tuple(name for name in more if layout.kind(name))}
    main = AUTO if layout.is_server else "dp+tp+pp"
    control, fix = ("more", without) if name in more else ("group_type", {"group_type": main})
    fixes = [fix, {"framework": "megatron"}] if layout.expert is None else [fix]
    facts = {"name": quoted(name).strip("'"), "framework": framework_name(layout.framework)}
    return refusal("no-such-group", control, *fixes, **facts)
