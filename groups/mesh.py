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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from .errors import LayoutError, quoted, refusal

MAX_RANKS = 1_048_576
"""Ranks that one mesh may have: 2**20, eight times the largest clusters of today."""

DEFAULT_ORDER = "tp-cp-dp-pp"
"""Megatron's default order of its dense axes, fastest first (``tp-cp-ep-dp-pp`` with ep)."""

MAX_AXES = 32
"""Axes that one mesh may have: as many as a numpy array has dimensions, in every numpy."""

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
            raise refusal("bad-axis-name", "order", value=quoted(self.name))
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
        if len(axes) > MAX_AXES:
            raise refusal("too-many-axes", "order", axes=len(axes), limit=MAX_AXES)
        if self.world_size > MAX_RANKS:
            raise too_many_ranks(self.world_size, "world")

    # Worked out once: every request to a mesh asks for them.
    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(axis.name for axis in self.axes)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        return tuple(axis.size for axis in self.axes)

    @cached_property
    def world_size(self) -> int:
        return math.prod(self.sizes)

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in ranks between neighbours along each axis."""
        return tuple(accumulate(self.sizes[:-1], operator.mul, initial=1))

    @cached_property
    def _hash(self) -> int:
        return hash((self.axes, self.offset))

    def __hash__(self) -> int:
        return self._hash

    def size(self, name: str) -> int:
        """Size of the axis ``name``; 1 if the mesh has no such axis."""
        return self._size_of.get(name, 1)

    @cached_property
    def _size_of(self) -> dict[str, int]:
        return dict(zip(self.names, self.sizes))

    def axes_of(self, kind: str) -> tuple[str, ...]:
        """The axes that a kind such as ``"dp-cp"`` joins, in mesh order.

        >>> parse_mesh("tp2-cp2-dp2").axes_of("dp-cp")
        ('cp', 'dp')
        """
        wanted = _names_of(kind) if isinstance(kind, str) else split_names(kind, "kind")
        for name in wanted:
            if name not in self.names:
                why = "a kind of group joins axes of the mesh, such as dp or dp-cp"
                raise refusal("unknown-axis", "kind", why=why, value=quoted(name), mesh=str(self))
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
            raise refusal("bad-mesh-text", "mesh", value=quoted(part))
        axes.append(Axis(match[1], int(match[2])))
    if plus and not (offset.isascii() and offset.isdecimal() and len(offset) <= 12):
        raise refusal("bad-mesh-text", "mesh", value=quoted("+" + offset))
    return Mesh(tuple(axes), int(offset or 0))


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
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is not None and number >= minimum and (maximum is None or number <= maximum):
        return number
    facts = {"control": name, "value": quoted(value), "minimum": minimum, "maximum": maximum}
    span = f"from {minimum} up" if maximum is None else f"from {minimum:,} to {maximum:,}"
    if number is None:
        sentence = f"{name} must be a whole number {span}, not {quoted(value)}"
        raise refusal("not-a-whole-number", name, sentence=sentence, **facts)
    sentence = f"{name} must be a whole number {span}, not {quoted(number)}"
    nearest = {name: minimum if number < minimum else maximum}
    raise refusal("out-of-range", name, nearest, sentence=sentence, **facts)


def too_many_ranks(
    count: int, control: str, *fixes: Mapping[str, int], limit: int = MAX_RANKS
) -> LayoutError:
    """The refusal of more ranks than one mesh has, or than an answer of some kind takes.

    >>> too_many_ranks(2_000_000, "nodes", {"nodes": 131_072}).sentence
    '2,000,000 GPUs are more than the 1,048,576 that can be shown; try nodes 131072'
    """
    ranks = f"{count:,}" if count < 10**15 else quoted(count)
    return refusal("too-many-ranks", control, *fixes, ranks=ranks, limit=limit)


def split_names(text: str, control: str) -> list[str]:
    """The axis names of an order or a kind; refuses empty, malformed and repeated ones.

    >>> split_names("tp-dp-pp", "order")
    ['tp', 'dp', 'pp']
    """
    names = text.split("-") if isinstance(text, str) else []
    if not names or not all(_NAME.fullmatch(name) for name in names):
        raise refusal("bad-names", control, value=quoted(text))
    _refuse_repeats(names, control)
    return names


@lru_cache(maxsize=256)
def _names_of(kind: str) -> tuple[str, ...]:
    return tuple(split_names(kind, "kind"))


def _refuse_repeats(names: list[str], control: str = "order") -> None:
    if len(set(names)) < len(names):
        repeated = [name for i, name in enumerate(names) if name in names[:i]]
        raise refusal("repeated-axis", control, axis=repeated[0], value=quoted("-".join(names)))
