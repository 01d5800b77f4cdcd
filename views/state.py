"""What the controls say, as it was given, and the layout it means, once it has been checked."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from descriptions import DP_KINDS, LANGUAGES, ORDERS, TYPES
from groups import DEFAULT_ORDER, MAX_RANKS, LayoutError, Mesh, fit
from groups.alternatives import MOST
from groups.errors import quoted
from groups.mesh import whole_number
from groups.presets import PRESETS, Preset

_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)


@dataclass(frozen=True)
class Controls:
    """The controls of the page, unchecked: any value that a person or a program may send."""

    group_type: Any = "dp+tp+pp"
    nodes: Any = 2
    gpus_per_node: Any = "8"
    tp: Any = 2
    pp: Any = 2
    cp: Any = 1
    order: Any = DEFAULT_ORDER
    dp_kind: Any = "dp"

    def changed(self, changes: Mapping[str, int]) -> Controls:
        """With one alternative of a refusal merged in."""
        return replace(self, **changes)


@dataclass(frozen=True)
class Layout:
    """Controls that make sense together: the mesh, where it stands, the kinds to show."""

    group_type: str
    nodes: int
    gpus_per_node: int
    mesh: Mesh
    kinds: tuple[str, ...]

    @property
    def world_size(self) -> int:
        return self.mesh.world_size


def from_preset(preset: str) -> Controls:
    """The controls that show a published layout."""
    chosen: Preset = PRESETS[_choice("preset", preset, PRESETS)]
    return Controls(
        group_type=chosen.group_type,
        nodes=chosen.nodes,
        gpus_per_node=str(chosen.gpus_per_node),
        tp=chosen.tp,
        pp=chosen.pp,
        cp=chosen.cp,
        order=chosen.order,
    )


def read(controls: Controls) -> Layout:
    """Check the controls and work out the layout.

    >>> str(read(Controls(tp=4)).mesh)
    'tp4-cp1-dp2-pp2'

    Errors: LayoutError about the control that is wrong; merging any of its alternatives with
    ``controls.changed`` gives controls that read well.
    """
    group_type = _choice("group_type", controls.group_type, TYPES)
    order = _choice("order", controls.order, ORDERS)
    dp_kind = _choice("dp_kind", controls.dp_kind, DP_KINDS)
    nodes, gpus_per_node = _machines(controls)
    try:
        mesh = fit(
            nodes * gpus_per_node,
            order=order,
            tp=typed(controls.tp),
            pp=typed(controls.pp),
            cp=typed(controls.cp),
        )
    except LayoutError as error:
        # More or fewer nodes are a way out too: the sizes stay as they were asked for.
        nodes_too = _machine_fixes(controls, "nodes", nodes)
        raise error.but(alternatives=[*error.alternatives, *nodes_too][:MOST]) from None
    kinds = TYPES[group_type].kinds
    if has_two_dp_kinds(group_type):
        kinds = tuple(dp_kind if kind == "dp" else kind for kind in kinds)
    return Layout(group_type, nodes, gpus_per_node, mesh, kinds)


def has_two_dp_kinds(group_type: object) -> bool:
    """Whether "data parallel" could mean dp or dp-cp in this type, so that the user chooses."""
    return (
        isinstance(group_type, str)
        and group_type in TYPES
        and {"cp", "dp"} <= set(TYPES[group_type].kinds)
    )


def typed(value: Any) -> Any:
    """A number as a text box sends it; anything else stays as it is, to be refused in words.

    >>> typed(" 16 "), typed("16.5"), typed("many"), typed(4)
    (16, 16.5, 'many', 4)
    """
    text = value.strip() if isinstance(value, str) else ""
    if not _NUMBER.fullmatch(text):
        return value
    return float(text) if "." in text else int(text)


def language_of(value: object) -> str:
    """The language to answer in; English for anything that is not one."""
    return value if isinstance(value, str) and value in LANGUAGES else "en"


def _machines(controls: Controls) -> tuple[int, int]:
    numbers = {"nodes": typed(controls.nodes), "gpus_per_node": typed(controls.gpus_per_node)}
    for name, number in numbers.items():
        try:
            numbers[name] = whole_number(number, name)
        except LayoutError as error:
            raise error.but(alternatives=_machine_fixes(controls, name, number)) from None
    nodes, gpus_per_node = numbers.values()
    ranks = nodes * gpus_per_node
    if ranks > MAX_RANKS:
        larger = max(numbers, key=lambda name: numbers[name])
        raise LayoutError(
            "too-many-ranks",
            f"{quoted(ranks)} GPUs are more than the {MAX_RANKS:,} that can be drawn",
            control=larger,
            alternatives=[
                *_machine_fixes(controls, "nodes", nodes),
                *_machine_fixes(controls, "gpus_per_node", gpus_per_node),
            ][:MOST],
            facts={"ranks": quoted(ranks), "limit": MAX_RANKS},
        )
    return nodes, gpus_per_node


def _machine_fixes(controls: Controls, name: str, near: object) -> list[dict[str, int]]:
    """The nearest numbers of nodes, or of GPUs in one, with which the other controls read well.

    The sizes' product must divide the world, so these are multiples of what the other number
    leaves of it.
    """
    other = typed(controls.nodes if name == "gpus_per_node" else controls.gpus_per_node)
    sizes = (typed(controls.tp), typed(controls.pp), typed(controls.cp))
    try:
        other = whole_number(other, "other", maximum=MAX_RANKS)
        product = math.prod(whole_number(size, "size", maximum=MAX_RANKS) for size in sizes)
    except LayoutError:
        return []  # that one has to be mended first
    unit, most = product // math.gcd(product, other), MAX_RANKS // other
    is_number = isinstance(near, (int, float)) and not isinstance(near, bool) and near == near
    start = min(max(near, 1), most) if is_number else typed(getattr(Controls(), name))
    below = int(start // unit) * unit
    return [{name: n} for n in (below, below + unit) if n != near and 1 <= n <= most]


def _choice(control: str, value: object, choices: Collection[str]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise LayoutError(
            "not-a-choice",
            f"{quoted(value)} is not a choice of {control}: choose {', '.join(choices)}",
            control=control,
            facts={"control": control, "value": quoted(value), "choices": ", ".join(choices)},
        )
    return value
