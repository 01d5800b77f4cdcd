"""The mesh: named axes that number the ranks of a job, fastest-varying axis first.

    rank = offset + sum(coordinate of an axis * stride of that axis)

where the stride of an axis is the product of the sizes before it. Four axes of 16 GPUs, written
``tp2-cp1-dp4-pp2``:

    axis     tp   cp   dp   pp
    size      2    1    4    2
    stride    1    2    2    8

so rank 13 = 1*1 + 2*2 + 1*8 is tp 1, dp 2, pp 1. This is Megatron's own numbering.

Which ranks are together is one request: a kind's groups sweep the kind's axes and fix the others.
Members stand in mesh order of the swept axes, groups in mesh order of the fixed ones; so every
group is ascending, and groups are ascending by their first member. This equals Megatron's
RankGenerator.get_ranks for every order and size (NVIDIA/Megatron-LM,
megatron/core/parallel_state.py, generate_masked_orthogonal_rank_groups).
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import accumulate

import numpy as np

from .bundles import bundle
from .errors import LayoutError, quoted, refusal
from .kept import kept

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
        size = whole_number(self.size, self.name)
        if size is not self.size:
            object.__setattr__(self, "size", size)


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
    # Every request to a mesh asks for them; not `cached_property`, whose lock takes longer.
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    sizes: tuple[int, ...] = field(init=False, repr=False, compare=False)
    world_size: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        axes, offset = tuple(self.axes), whole_number(self.offset, "offset", minimum=0)
        if not axes:
            raise LayoutError("no-axes", "a mesh needs at least one axis", control="order")
        names = tuple([axis.name for axis in axes])
        _refuse_repeats(names)
        if len(axes) > MAX_AXES:
            raise refusal("too-many-axes", "order", axes=len(axes), limit=MAX_AXES)
        sizes = tuple([axis.size for axis in axes])
        world = math.prod(sizes)
        if world > MAX_RANKS:
            raise too_many_ranks(world, "world")
        made = {"axes": axes, "offset": offset, "names": names, "sizes": sizes, "world_size": world}
        vars(self).update(made)

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

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The notebook representation: a picture with the groups of the first rank (`bundles`)."""
        return bundle(self, str(self))


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


# -- requests to a mesh ---------------------------------------------------------------------------


def rank_groups(mesh: Mesh, kind: str) -> np.ndarray:
    """All groups of a kind: int64, shape (num_groups, group_size).

    >>> rank_groups(parse_mesh("tp2-cp2-dp2"), "tp").tolist()
    [[0, 1], [2, 3], [4, 5], [6, 7]]
    >>> rank_groups(parse_mesh("tp2-cp2-dp2"), "dp-cp").tolist()
    [[0, 2, 4, 6], [1, 3, 5, 7]]

    Errors: LayoutError if the kind is not one or several axes of the mesh joined by dashes.
    """
    swept, size = _swept(mesh, kind)
    fixed = [at for at in range(len(mesh.axes)) if at not in swept]
    ranks = _ranks(mesh.world_size).reshape(mesh.sizes[::-1]).transpose(*fixed, *swept)
    groups = ranks.reshape(-1, size)
    if mesh.offset:
        return groups + mesh.offset
    return groups if groups.flags.writeable else groups.copy()


def group_index(mesh: Mesh, kind: str) -> np.ndarray:
    """The group of each rank: int64, shape (world_size,); entry i is about rank offset + i.

    >>> group_index(parse_mesh("tp2-cp2-dp2"), "tp").tolist()
    [0, 0, 1, 1, 2, 2, 3, 3]
    """
    (swept, size), shape = _swept(mesh, kind), mesh.sizes[::-1]
    numbers = np.arange(mesh.world_size // size, dtype=np.int64)
    kept = [1 if axis in swept else size for axis, size in enumerate(shape)]
    index = np.empty(shape, dtype=np.int64)
    index[...] = numbers.reshape(kept)
    return index.reshape(-1)


def index_of(mesh: Mesh, kind: str, rank: int) -> int:
    """The group of one rank, without numbering the others.

    Errors: LayoutError for a rank or kind that the mesh does not have.
    """
    at, swept = coordinates(mesh, rank), mesh.axes_of(kind)
    index, stride = 0, 1
    for axis in mesh.axes:
        if axis.name not in swept:
            index += at[axis.name] * stride
            stride *= axis.size
    return index


def group_of(mesh: Mesh, kind: str, rank: int) -> np.ndarray:
    """The members of one rank's group: int64, shape (group_size,), without making the others.

    >>> group_of(parse_mesh("tp2-cp2-dp2"), "dp-cp", 3).tolist()
    [1, 3, 5, 7]

    Errors: LayoutError for a rank or kind that the mesh does not have.
    """
    place = require_rank(mesh, rank) - mesh.offset
    first, swept, members = rank, mesh.axes_of(kind), None
    for name, size, stride in zip(mesh.names, mesh.sizes, mesh.strides):
        if name in swept and size > 1:
            first -= place // stride % size * stride
            line = np.arange(0, size * stride, stride, dtype=np.int64)
            members = line if members is None else np.add.outer(line, members).reshape(-1)
    return np.array([rank]) if members is None else members + first


def coordinates(mesh: Mesh, rank: int) -> dict[str, int]:
    """The coordinate of a rank along each axis, in mesh order.

    >>> coordinates(parse_mesh("tp2-cp1-dp4-pp2"), 5)
    {'tp': 1, 'cp': 0, 'dp': 2, 'pp': 0}

    Errors: LayoutError if the mesh has no such rank.
    """
    left = require_rank(mesh, rank) - mesh.offset
    positions = {}
    for axis in mesh.axes:
        left, positions[axis.name] = divmod(left, axis.size)
    return positions


def rank_of(mesh: Mesh, **coordinate: int) -> int:
    """The rank at these coordinates; axes left out are at 0. The inverse of coordinates().

    >>> rank_of(parse_mesh("tp2-cp1-dp4-pp2"), tp=1, dp=2)
    5

    Errors: LayoutError for an unknown axis or a coordinate outside it.
    """
    rank = mesh.offset
    for name, position in coordinate.items():
        if name not in mesh.names:
            raise refusal("unknown-axis", name, value=quoted(name), mesh=str(mesh))
        last = mesh.size(name) - 1
        stride = mesh.strides[mesh.names.index(name)]
        rank += stride * whole_number(position, name, minimum=0, maximum=last)
    return rank


def require_rank(mesh: Mesh, rank: object) -> int:
    """``rank`` as an int. Errors: LayoutError, with the valid ranks, if it is not in the mesh."""
    last = mesh.offset + mesh.world_size - 1
    number = whole_number(rank, "rank", minimum=0)
    if not mesh.offset <= number <= last:
        nearest = {"rank": min(max(number, mesh.offset), last)}
        facts = {"rank": quoted(number), "first": mesh.offset, "last": last}
        raise refusal("no-such-rank", "rank", nearest, **facts)
    return number


@kept
def _ranks(world_size: int) -> np.ndarray:
    """The ranks 0 to world_size - 1, cached: making the array takes half the time of a grouping."""
    ranks = np.arange(world_size, dtype=np.int64)
    ranks.flags.writeable = False
    return ranks


def _swept(mesh: Mesh, kind: str) -> tuple[list[int], int]:
    """The numpy axes that a kind sweeps, and the ranks of one of its groups.

    The array of ranks has the slowest axis first (its shape is the reversed sizes), so that
    reading it in C order goes through the mesh fastest axis first.
    """
    names, sizes = mesh.axes_of(kind), mesh.sizes[::-1]
    swept = [at for at, name in enumerate(mesh.names[::-1]) if name in names]
    return swept, math.prod(sizes[at] for at in swept)


# -- checks --------------------------------------------------------------------------------------


def whole_number(value: object, name: str, *, minimum: int = 1, maximum: int | None = None) -> int:
    """``value`` as an int, or a LayoutError about the control ``name``.

    Accepts integers (int, numpy integers). Refuses booleans, floats (even 16.0: a size that was
    computed by a division is likely a mistake), NaN, text and None.

    >>> whole_number(8, "tp")
    8
    >>> whole_number(2.5, "tp")
    Traceback (most recent call last):
    groups.errors.LayoutError: tp must be a whole number from 1 up, not 2.5
    """
    number: int | None = None
    if type(value) is int:  # nearly always
        number = value
    elif not isinstance(value, (bool, np.bool_)):
        with suppress(TypeError):
            number = operator.index(value)  # type: ignore[arg-type]
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
    """The refusal of more ranks than a mesh, or a certain kind of answer, may have.

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


def _refuse_repeats(names: Sequence[str], control: str = "order") -> None:
    if len(set(names)) < len(names):
        repeated = [name for i, name in enumerate(names) if name in names[:i]]
        raise refusal("repeated-axis", control, axis=repeated[0], value=quoted("-".join(names)))
