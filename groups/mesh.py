"""The mesh: named axes that number the ranks of a job, fastest-varying axis first.

    rank = offset + sum(coordinate of an axis * stride of that axis)

where the stride of an axis is the product of the sizes before it. Four axes of 16 GPUs, written
``tp2-cp1-dp4-pp2``:

    axis     tp   cp   dp   pp
    size      2    1    4    2
    stride    1    2    2    8

so rank 13 = 1*1 + 2*2 + 1*8 is tp 1, dp 2, pp 1. This is Megatron's own numbering
(NVIDIA/Megatron-LM, megatron/core/parallel_state.py, RankGenerator).
"""

from __future__ import annotations

import math
import operator
import re
from dataclasses import dataclass
from itertools import accumulate

from .alternatives import nearest_fits
from .errors import LayoutError, quoted

MAX_RANKS = 1_048_576
"""Ranks that one mesh may have: 2**20, eight times the largest clusters of today."""

DEFAULT_ORDER = "tp-cp-dp-pp"
"""Megatron's default order of its dense axes, fastest first (``tp-cp-ep-dp-pp`` with ep)."""

_NAME = re.compile(r"[a-z][a-z_]*")
_AXIS_TEXT = re.compile(r"([a-z][a-z_]*)([0-9]{1,12})")


@dataclass(frozen=True)
class Axis:
    """One named axis of a mesh and how many coordinates it has.

    >>> Axis("tp", 8)
    Axis(name='tp', size=8)
    """

    name: str
    size: int

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise LayoutError(
                "bad-axis-name",
                f"{quoted(self.name)} is not an axis name",
                why="an axis is named in lower-case letters, such as tp or dp",
                control="order",
                facts={"value": quoted(self.name)},
            )
        object.__setattr__(self, "size", whole_number(self.size, self.name))


@dataclass(frozen=True)
class Mesh:
    """Named axes, fastest-varying first; ``str(mesh)`` and :func:`parse_mesh` are inverse.

    >>> mesh = Mesh((Axis("tp", 2), Axis("dp", 4), Axis("pp", 2)))
    >>> str(mesh), mesh.world_size, mesh.strides
    ('tp2-dp4-pp2', 16, (1, 2, 8))

    Errors: LayoutError for a repeated axis, no axis at all, a negative offset, or more than
    MAX_RANKS ranks.
    """

    axes: tuple[Axis, ...]
    offset: int = 0

    def __post_init__(self) -> None:
        axes = tuple(self.axes)
        object.__setattr__(self, "axes", axes)
        object.__setattr__(self, "offset", whole_number(self.offset, "offset", minimum=0))
        if not axes:
            raise LayoutError("no-axes", "a mesh needs at least one axis", control="order")
        _refuse_repeats([axis.name for axis in axes])
        if self.world_size > MAX_RANKS:
            raise LayoutError(
                "too-many-ranks",
                f"{self.world_size:,} ranks are more than {MAX_RANKS:,}",
                why=f"layouts are drawn and listed up to {MAX_RANKS:,} ranks",
                control="world",
                facts={"ranks": self.world_size, "limit": MAX_RANKS},
            )

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @property
    def world_size(self) -> int:
        return math.prod(self.sizes)

    @property
    def strides(self) -> tuple[int, ...]:
        """Distance in ranks between neighbours along each axis."""
        return tuple(accumulate(self.sizes[:-1], operator.mul, initial=1))

    def size(self, name: str) -> int:
        """Size of the axis ``name``; 1 if the mesh has no such axis."""
        return dict(zip(self.names, self.sizes)).get(name, 1)

    def axes_of(self, kind: str) -> tuple[str, ...]:
        """The axes that a kind such as ``"dp-cp"`` joins, in mesh order.

        >>> parse_mesh("tp2-cp2-dp2").axes_of("dp-cp")
        ('cp', 'dp')
        """
        wanted = split_names(kind, "kind")
        for name in wanted:
            if name not in self.names:
                raise LayoutError(
                    "unknown-axis",
                    f"there is no axis {quoted(name)} in {self}",
                    why="a kind of group joins axes of the mesh, such as dp or dp-cp",
                    control="kind",
                    facts={"value": quoted(name), "mesh": str(self)},
                )
        return tuple(name for name in self.names if name in wanted)

    def __str__(self) -> str:
        text = "-".join(f"{axis.name}{axis.size}" for axis in self.axes)
        return text + (f"+{self.offset}" if self.offset else "")


def parse_mesh(text: str) -> Mesh:
    """Read a mesh back from its text: ``parse_mesh(str(mesh)) == mesh``.

    >>> parse_mesh("tp2-cp1-dp4-pp2").world_size
    16
    >>> parse_mesh("tp2-dp4+8").offset
    8

    Errors: LayoutError naming the part that is not ``<axis><size>``.
    """
    body, plus, offset = text.partition("+") if isinstance(text, str) else (None, "", "")
    parts = body.split("-") if body is not None else [text]
    axes = []
    for part in parts:
        match = _AXIS_TEXT.fullmatch(part) if isinstance(part, str) else None
        if not match:
            raise _bad_mesh_text(part)
        axes.append(Axis(match[1], int(match[2])))
    if plus and not (offset.isascii() and offset.isdecimal() and len(offset) <= 12):
        raise _bad_mesh_text("+" + offset)
    return Mesh(tuple(axes), int(offset or 0))


def fit(world: int, *, order: str = DEFAULT_ORDER, **sizes: int) -> Mesh:
    """The mesh of ``world`` ranks with these sizes; the axis ``dp`` is what remains.

    dp = world / (product of the other sizes). An axis of ``order`` without a size has size 1.

    >>> str(fit(16, order="tp-cp-dp-pp", tp=2, pp=2))
    'tp2-cp1-dp4-pp2'
    >>> fit(16, tp=3)
    Traceback (most recent call last):
    groups.errors.LayoutError: tp 3 x pp 1 x cp 1 = 3 does not divide 16 GPUs; try tp 2 or tp 4

    Errors: LayoutError, with the nearest sizes that fit as its alternatives.
    Source of the law: megatron/core/parallel_state.py, initialize_model_parallel.
    """
    world = whole_number(world, "world", maximum=MAX_RANKS)
    names = split_names(order, "order")
    for name in sizes:
        if name not in names:
            raise LayoutError(
                "axis-not-in-order",
                f"{name} has a size, but the order {quoted(order)} does not name it",
                why="the order says how fast each axis varies, so it must name all of them",
                control="order",
                facts={"axis": name, "order": quoted(order)},
            )
    given = {name: sizes.get(name, 1) for name in names if name != "dp"}
    _refuse_bad_sizes(world, given)
    given = {name: operator.index(size) for name, size in given.items()}
    product = math.prod(given.values())
    if world % product:
        raise _does_not_divide(world, given, product)
    remaining = world // product
    _refuse_other_dp(world, given, product, sizes.get("dp"), names)
    return Mesh(tuple(Axis(name, given.get(name, remaining)) for name in names))


def whole_number(value: object, name: str, *, minimum: int = 1, maximum: int | None = None) -> int:
    """``value`` as an int, or a LayoutError about the control ``name``.

    Accepts what is an integer (int, numpy integers); refuses booleans, floats (16.0 too: a size
    that was computed as a fraction is a mistake worth seeing), NaN, text and None.

    >>> whole_number(8, "tp")
    8
    >>> whole_number(2.5, "tp")
    Traceback (most recent call last):
    groups.errors.LayoutError: tp must be a whole number from 1 up, not 2.5
    """
    facts = {"control": name, "value": quoted(value), "minimum": minimum, "maximum": maximum}
    span = f"from {minimum} up" if maximum is None else f"from {minimum:,} to {maximum:,}"
    try:
        number = None if _is_boolean(value) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise LayoutError(
            "not-a-whole-number",
            f"{name} must be a whole number {span}, not {quoted(value)}",
            control=name,
            facts=facts,
        )
    if number < minimum or (maximum is not None and number > maximum):
        nearest = minimum if number < minimum else maximum
        raise LayoutError(
            "out-of-range",
            f"{name} must be a whole number {span}, not {quoted(number)}",
            control=name,
            alternatives=[{name: nearest}],  # type: ignore[dict-item]
            facts=facts,
        )
    return number


def split_names(text: str, control: str) -> list[str]:
    """The axis names of an order or a kind; refuses empty, malformed and repeated ones.

    >>> split_names("tp-dp-pp", "order")
    ['tp', 'dp', 'pp']
    """
    names = text.split("-") if isinstance(text, str) else []
    if not names or not all(_NAME.fullmatch(name) for name in names):
        raise LayoutError(
            "bad-names",
            f"{quoted(text)} is not axis names joined by dashes",
            why=f"write the {control} as names joined by dashes, such as tp-cp-dp-pp or dp-cp",
            control=control,
            facts={"value": quoted(text), "control": control},
        )
    _refuse_repeats(names, control)
    return names


def _is_boolean(value: object) -> bool:
    # numpy's booleans answer operator.index with a TypeError already.
    return isinstance(value, bool)


def _refuse_repeats(names: list[str], control: str = "order") -> None:
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        raise LayoutError(
            "repeated-axis",
            f"the axis {repeated[0]} is named twice in {quoted('-'.join(names))}",
            why="an axis stands in one place of the order only",
            control=control,
            facts={"axis": repeated[0], "value": quoted("-".join(names))},
        )


def _bad_mesh_text(part: object) -> LayoutError:
    return LayoutError(
        "bad-mesh-text",
        f"{quoted(part)} is not an axis with its size",
        why="a mesh is written as axes with their sizes, fastest first, such as tp2-cp1-dp4-pp2",
        control="mesh",
        facts={"value": quoted(part)},
    )


def _refuse_bad_sizes(world: int, given: dict) -> None:
    """As whole_number of each size, but with the nearest sizes that would also fit this world."""
    refusals = {}
    for name, size in given.items():
        try:
            whole_number(size, name, maximum=world)
        except LayoutError as error:
            refusals[name] = error
    if not refusals:
        return
    near = {name: _near(size, world) if name in refusals else size for name, size in given.items()}
    first = next(iter(refusals.values()))
    raise LayoutError(
        first.code,
        first.what,
        control=first.control,
        alternatives=nearest_fits(world, near, change=refusals),
        facts=first.facts,
    )


def _near(size: object, world: int) -> float:
    """Where to look instead of a bad size: 2.5 and 99 have neighbours; "abc" and -3 have 1."""
    is_number = isinstance(size, (int, float)) and not _is_boolean(size)
    return min(max(size, 1), world) if is_number and size == size else 1  # type: ignore[operator]


def _does_not_divide(world: int, given: dict[str, int], product: int) -> LayoutError:
    shown = _spoken_order(given)
    alternatives = nearest_fits(world, {name: given[name] for name in shown})
    shown_product = " x ".join(f"{name} {given[name]}" for name in shown)
    return LayoutError(
        "does-not-divide",
        f"{shown_product} = {product} does not divide {world} GPUs",
        why=f"dp is what remains: {world} / {product} is not a whole number",
        control=next(iter(alternatives[0])) if alternatives else shown[0],
        alternatives=alternatives,
        facts={"sizes": shown_product, "product": product, "world": world},
    )


def _spoken_order(given: dict[str, int]) -> list[str]:
    """tp, pp, cp first, as people say them; any other axis after, as given."""
    return sorted(given, key=lambda name: {"tp": 0, "pp": 1, "cp": 2}.get(name, 3))


def _refuse_other_dp(world: int, given: dict, product: int, dp: object, names: list[str]) -> None:
    remaining = world // product
    if dp is not None and whole_number(dp, "dp") != remaining:
        raise LayoutError(
            "dp-does-not-fit",
            f"dp {dp} is not what remains: {world} / {product} = {remaining}",
            why="dp is always derived from the world size and the other sizes",
            control="dp",
            alternatives=[{"dp": remaining}],
            facts={"dp": dp, "world": world, "product": product, "remaining": remaining},
        )
    if "dp" not in names and remaining != 1:
        raise LayoutError(
            "no-dp-in-order",
            f"{product} ranks do not fill {world} GPUs, and the order names no dp",
            why="without dp in the order nothing can take what remains",
            control="order",
            facts={"world": world, "product": product},
        )
