"""Sizes that fit a world, where dp is what remains; for sizes that do not fit, the nearest that do.

The fixes of a refusal are computed, never canned.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import lru_cache
from itertools import combinations, islice
from numbers import Real
from typing import TypeVar

import numpy as np

from . import budget
from .errors import LayoutError, quoted, refusal
from .mesh import DEFAULT_ORDER, MAX_RANKS, Axis, Mesh, split_names, whole_number

Value = TypeVar("Value")
Fixes = Callable[..., list[dict[str, int]]]
Attempt = Callable[[Mapping[str, object]], object]

MOST = 3
"""The largest number of alternatives of one refusal: more would be a list, not advice."""

AT_ONCE = 5
"""The largest number of changes combined into one alternative."""

NEARBY = 8
"""The largest number of divisors tried per axis when several axes change, to bound the time."""


_TRYING: ContextVar[bool] = ContextVar("trying", default=False)


@lru_cache(maxsize=256)
def divisors(number: int) -> tuple[int, ...]:
    """All divisors, ascending.

    >>> divisors(12)
    (1, 2, 3, 4, 6, 12)
    """
    small = [d for d in range(1, math.isqrt(number) + 1) if number % d == 0]
    return tuple(sorted({*small, *(number // d for d in small)}))


def divisors_near(name: str, near: int, number: int) -> list[dict[str, int]]:
    """The largest divisor of ``number`` below ``near`` and the smallest above, as alternatives.

    >>> divisors_near("tp", 3, 32), divisors_near("tp", 64, 32)
    ([{'tp': 2}, {'tp': 4}], [{'tp': 32}])
    """
    below = [size for size in divisors(number) if size < near][-1:]
    above = [size for size in divisors(number) if size > near][:1]
    return [{name: size} for size in below + above]


def nearest_fits(
    world: int, sizes: Mapping[str, float], *, change: Iterable[str] = (), exactly: bool = False
) -> list[dict[str, int]]:
    """The nearest changes to ``sizes`` after which their product divides ``world``.

    As few axes as possible change; the axes in ``change`` always do. Distance is a ratio: from 6,
    size 4 (1.5 times) is nearer than 2 (3 times). Each axis offers its nearest size below and its
    nearest size above. With ``exactly``, the product must equal the world. Results are sorted by
    axis, in the order given, then by size.

    >>> nearest_fits(16, {"tp": 3, "pp": 1, "cp": 1})
    [{'tp': 2}, {'tp': 4}]
    >>> nearest_fits(16, {"tp": 3, "pp": 3, "cp": 1})
    [{'tp': 2, 'pp': 4}, {'tp': 4, 'pp': 2}, {'tp': 4, 'pp': 4}]
    """
    names = list(sizes)
    always = set(change)
    fits: list[dict[str, int]] = []
    for count in range(max(1, len(always)), len(names) + 1):
        fits = [
            changed
            for axes in combinations(names, count)
            if always.issubset(axes)
            for room, left in [divmod(world, math.prod(sizes[n] for n in names if n not in axes))]
            if not left
            for changed in _fill(int(room), sizes, axes, exactly)
        ]
        if fits:
            break

    def distance(change: Mapping[str, int]) -> float:
        return sum(abs(math.log(value / sizes[name])) for name, value in change.items())

    nearest = sorted(fits, key=distance)[:MOST]
    return sorted(nearest, key=lambda c: [(names.index(n), v) for n, v in c.items()])


def _fill(
    room: int, sizes: Mapping[str, float], axes: tuple[str, ...], exactly: bool
) -> Iterator[dict[str, int]]:
    """Candidate sizes: any divisors for all axes but the last (only near ones if there are many),
    and the nearest divisors for the last."""
    name, *rest = axes
    if not rest:
        near = divisors(room)  # the nearest at or below the size, and the nearest above it
        at = bisect_right(near, sizes[name])
        last = (room,) if exactly else near[max(at - 1, 0) : at + 1]
        yield from ({name: size} for size in last)
        return
    candidates: Iterable[int] = divisors(room)
    if len(rest) > 1:  # near ones, and 1, with which the others always find room
        closest = sorted(divisors(room), key=lambda size: abs(math.log(size / sizes[name])))
        candidates = {1, *closest[:NEARBY]}
    for size in candidates:
        for others in _fill(room // size, sizes, tuple(rest), exactly):
            yield {name: size, **others}


def nearest(value: int, works: Callable[[int], bool], *, maximum: int) -> list[int]:
    """The nearest number below ``value`` and the nearest above for which ``works`` is true, if any.

    >>> nearest(30, lambda layers: layers % 4 == 0, maximum=99)
    [28, 32]
    """
    below = filter(works, range(min(value - 1, maximum), 0, -1))
    above = filter(works, range(value + 1, maximum + 1))
    neighbours = (next(below, None), next(above, None))
    return [number for number in neighbours if number is not None]


def not_a_multiple(
    control: str, value: int, of: dict[str, int], *, maximum: int, quote: str = ""
) -> LayoutError:
    """The refusal of a value that must be a multiple of some sizes; fixes are the nearest
    multiples.

    >>> not_a_multiple("global_batch", 9, {"micro_batch": 2, "dp": 2}, maximum=99).what
    'global_batch 9 is not a multiple of micro_batch 2 x dp 2 = 4'
    """
    unit = math.prod(of.values())
    shown = " x ".join(f"{name} {size}" for name, size in of.items())
    shown += f" = {unit}" if len(of) > 1 else ""
    below = value // unit * unit
    fixes = [{control: near} for near in (below, below + unit) if 0 < near <= maximum]
    return refusal("not-a-multiple", control, *fixes, quote=quote, value=value, of=shown)


def works(attempt: Callable[..., object], *values: object, **named: object) -> bool:
    """Whether a call succeeds instead of raising a LayoutError: how alternatives are tried.

    What the request may not try any more (groups.budget) is not known to work.

    >>> works(Axis, "tp", 2), works(Axis, "tp", size=0)
    (True, False)
    """
    return budget.attempt() and _refused(attempt, *values, **named) is None


def is_trying() -> bool:
    """Whether this is within a try, whose refusal leads to what is tried next: it need not try its
    own alternatives."""
    return _TRYING.get()


def _refused(
    attempt: Callable[..., object], *values: object, **named: object
) -> LayoutError | None:
    """The refusal of a call; None if it succeeds."""
    token = _TRYING.set(True)
    try:
        attempt(*values, **named)
    except LayoutError as error:
        return error
    finally:
        _TRYING.reset(token)
    return None


def with_working(error: LayoutError, attempt: Attempt, at_once: int = AT_ONCE) -> LayoutError:
    """The refusal with only its working alternatives: an alternative works by itself, or combined
    with an alternative of the refusal that it leads to. One that contains another is left out.

    attempt: a function of changes that raises a LayoutError if they do not work. Within a try the
    refusal is returned as it is: who tries goes through its alternatives, each of them once.

    >>> def attempt(changes: dict[str, int]) -> None:
    ...     for name, size in {"tp": 3, "pp": 5, **changes}.items():
    ...         if fixes := 8 % size and divisors_near(name, size, 8):
    ...             raise LayoutError("not-a-divisor", f"{name} {size}", alternatives=fixes)
    >>> try: attempt({})
    ... except LayoutError as error: print(*with_working(error, attempt).alternatives)
    {'tp': 2, 'pp': 4} {'tp': 4, 'pp': 4}
    """
    if is_trying():
        return error
    fixes: list[dict[str, object]] = []
    with budget.bounded():
        for fix in sorted(_working(error, attempt, at_once, {}), key=len):
            if not any(less.items() <= fix.items() for less in fixes):
                fixes.append(fix)
    return error.replace(alternatives=fixes[:MOST])


def _working(
    error: LayoutError, attempt: Attempt, at_once: int, made: Mapping[str, object]
) -> Iterator[dict[str, object]]:
    for change in error.alternatives:
        if not budget.attempt():
            return
        changes = {**made, **change}
        following = _refused(attempt, changes)
        if following is None:
            yield changes
        elif at_once > 1:
            yield from islice(_working(following, attempt, at_once - 1, changes), 1)


def in_ranges(
    requested: Mapping[str, object], limits: Mapping[str, tuple[int, int | None]]
) -> tuple[dict[str, int], list[LayoutError]]:
    """Sizes as ints, each clamped to its range, and a refusal for each size outside its range.

    limits: least and largest size by name; the default is 1 and no upper limit.

    >>> in_ranges({"tp": 2, "pp": 9, "cp": 0.5}, {"pp": (1, 8)})[0]
    {'tp': 2, 'pp': 8}
    """
    sizes, refusals = {}, []
    for name, size in requested.items():
        minimum, maximum = limits.get(name, (1, None))
        try:
            sizes[name] = whole_number(size, name, minimum=minimum, maximum=maximum)
        except LayoutError as error:
            refusals.append(error)
            for nearest in error.alternatives:
                sizes |= {near: size for near, size in nearest.items() if isinstance(size, int)}
    return sizes, refusals


def with_changes(value: Value, changes: Mapping[str, object]) -> Value:
    """A dataclass instance with some fields changed.

    >>> with_changes(Axis("tp", 2), {"size": 4})
    Axis(name='tp', size=4)
    """
    changed: Callable[..., Value] = replace
    return changed(value, **changes)


# -- a mesh of a world ---------------------------------------------------------------------------


def fit(world: int, *, order: str = DEFAULT_ORDER, **sizes: int) -> Mesh:
    """The mesh of ``world`` ranks with these sizes; the axis ``dp`` takes the remaining factor.

    dp = world / (product of the other sizes). An axis of ``order`` without a size has size 1.

    >>> str(fit(16, order="tp-cp-dp-pp", tp=2, pp=2))
    'tp2-cp1-dp4-pp2'
    >>> fit(16, tp=3)
    Traceback (most recent call last):
    groups.errors.LayoutError: tp 3 x pp 1 x cp 1 = 3 does not divide 16 GPUs; try tp 2 or tp 4

    Errors: LayoutError, with the nearest sizes that fit as its alternatives.
    Source of the law: megatron/core/parallel_state.py, initialize_model_parallel.
    """
    return fitted(world, order, sizes)


def fitted(world: int, order: str, sizes: Mapping[str, int], remains: str | None = "dp") -> Mesh:
    """`fit` where the axis ``remains`` takes the place of dp; None: all sizes are given."""
    fits = fitted_sizes(world, order, sizes, remains)
    return Mesh(tuple(Axis(name, size) for name, size in fits.items()))


def fitted_sizes(
    world: int, order: str, sizes: Mapping[str, int], remains: str | None = "dp"
) -> dict[str, int]:
    """The size of each axis of the order; arguments and errors are those of `fitted`."""
    names = split_names(order, "order")
    for name in sizes:
        if name not in names:
            raise refusal("axis-not-in-order", "order", axis=name, order=quoted(order))
    world, rest = _world(world, sizes), remains if remains in names else None
    rest_size = sizes.get(rest or "")  # the remaining axis may have a size too

    def alternatives(near: Mapping[str, float], change: Iterable[str] = ()) -> list[dict[str, int]]:
        """The nearest sizes that fit; a size set for the remaining axis changes with them."""
        fits = nearest_fits(world, near, change=change, exactly=rest is None)
        for changes in fits:
            if rest and rest_size is not None:
                changes[rest] = int(world // math.prod({**near, **changes}.values()))
        return fits

    requested = {name: sizes.get(name, 1) for name in names if name != rest}
    whole, refused = in_ranges(requested, dict.fromkeys(requested, (1, world)))
    if refused:
        bad = {error.control or "" for error in refused}
        near = {n: _near(size, world) if n in bad else size for n, size in requested.items()}
        raise refused[0].replace(alternatives=alternatives(near, change=bad))
    product = math.prod(whole.values())
    remaining, left = divmod(world, product)
    numbers = {"world": world, "product": product}
    if left:
        raise _does_not_divide(whole, rest, alternatives, **numbers)
    if rest is None:
        if remaining != 1:
            raise refusal("no-dp-in-order", "order", *alternatives(whole), **numbers)
        return whole
    if rest_size is not None:
        _refuse_other(rest, rest_size, remaining, whole, **numbers)
    return {name: remaining if name == rest else whole[name] for name in names}


def _does_not_divide(
    sizes: Mapping[str, int], rest: str | None, alternatives: Fixes, *, world: int, product: int
) -> LayoutError:
    spoken = {"tp": 0, "pp": 1, "cp": 2}  # in the customary order; any other axis follows, as given
    shown = {name: sizes[name] for name in sorted(sizes, key=lambda n: spoken.get(n, 3))}
    shown_product = " x ".join(f"{name} {size}" for name, size in shown.items())
    fixes = alternatives(shown)
    control = next(iter(fixes[0] if fixes else shown))
    why = f"{rest} is what remains: {world} / {product} is not a whole number"
    facts = {"sizes": shown_product, "product": product, "world": world, "left": "DP"}
    return refusal("does-not-divide", control, *fixes, why=why, **facts)


def _refuse_other(
    rest: str,
    rest_size: object,
    remaining: int,
    sizes: Mapping[str, int],
    *,
    world: int,
    product: int,
) -> None:
    """Raises LayoutError if the remaining axis has another size than the other axes leave it; fixes
    are the size that they leave, and sizes of another axis that leave the requested one.

    >>> fit(16, dp=4)
    Traceback (most recent call last):
    groups.errors.LayoutError: dp 4 is not what remains: 16 / 1 = 16; try dp 16, tp 4 or pp 4
    """
    fix = {rest: remaining}
    try:
        count = whole_number(rest_size, rest)
    except LayoutError as error:
        raise error.replace(alternatives=[fix]) from None
    if count == remaining:
        return
    larger = {name: size * remaining for name, size in sizes.items()}
    named = [name for name in ("tp", "pp", "cp") if not larger.get(name, 1) % count]
    fixes = [{name: larger[name] // count} for name in named if name in larger]
    numbers = {"world": world, "product": product, "remaining": remaining}
    raise refusal(
        "dp-does-not-fit", rest, fix, *fixes[:2], axis=rest, dp=quoted(rest_size), **numbers
    )


def _world(world: object, sizes: Mapping[str, object]) -> int:
    """The world size as an int.

    Errors: LayoutError if out of range; its fix is the nearest world that the sizes fill.
    """
    try:
        return whole_number(world, "world", maximum=MAX_RANKS)
    except LayoutError as error:
        whole, refused = in_ranges(sizes, {})
        unit = math.prod(whole.values())
        nearest = unit if error.alternatives == ({"world": 1},) else MAX_RANKS // unit * unit
        works = error.alternatives and not refused and unit <= MAX_RANKS
        raise error.replace(alternatives=[{"world": nearest}] if works else ()) from None


def _near(size: object, world: int) -> float:
    """The number near which to look for sizes that fit: a bad size itself if positive, else 1."""
    if not isinstance(size, Real) or isinstance(size, (bool, np.bool_)) or size != size:
        return 1
    if not size <= world:
        return world
    return 1 if size <= 1 else float(size)
