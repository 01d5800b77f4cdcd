"""A mesh from a world size and some sizes: dp is what remains, or a refusal with its fix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from numbers import Real

import numpy as np

from .alternatives import in_ranges, nearest_fits
from .errors import LayoutError, quoted, refusal
from .mesh import DEFAULT_ORDER, MAX_RANKS, Axis, Mesh, split_names, whole_number


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
    return fitted(world, order, sizes)


def fitted(world: int, order: str, sizes: Mapping[str, int], remains: str | None = "dp") -> Mesh:
    """The same for any axis that remains, or none."""
    fits = fitted_sizes(world, order, sizes, remains)
    return Mesh(tuple(Axis(name, size) for name, size in fits.items()))


def fitted_sizes(
    world: int, order: str, sizes: Mapping[str, int], remains: str | None = "dp"
) -> dict[str, int]:
    """The size of each axis of the order."""
    names = split_names(order, "order")
    for name in sizes:
        if name not in names:
            raise refusal("axis-not-in-order", "order", axis=name, order=quoted(order))
    world, rest = _world(world, sizes), remains if remains in names else None
    stated = sizes.get(rest or "")  # what remains may be given as well

    def alternatives(near: Mapping[str, float], change: Iterable[str] = ()) -> list[dict[str, int]]:
        """The nearest sizes that fit; one that remains and was given changes with them."""
        fits = nearest_fits(world, near, change=change, exactly=rest is None)
        for changes in fits:
            if rest and stated is not None:
                changes[rest] = int(world // math.prod({**near, **changes}.values()))
        return fits

    given = {name: sizes.get(name, 1) for name in names if name != rest}
    whole = _whole(given, world, alternatives)
    product = math.prod(whole.values())
    remaining, left = divmod(world, product)
    numbers = {"world": world, "product": product}
    if left:
        raise _does_not_divide(whole, rest, alternatives, **numbers)
    if rest is None:
        if remaining != 1:
            raise refusal("no-dp-in-order", "order", *alternatives(whole), **numbers)
        return whole
    if stated is not None:
        _refuse_other(rest, stated, remaining, **numbers)
    return {name: remaining if name == rest else whole[name] for name in names}


Fixes = Callable[..., list[dict[str, int]]]


def _whole(sizes: Mapping[str, object], world: int, alternatives: Fixes) -> dict[str, int]:
    """As whole_number of each size, but with the nearest sizes that would fit this world."""
    whole, refused = in_ranges(sizes, dict.fromkeys(sizes, (1, world)))
    if refused:
        bad = {error.control for error in refused}
        near = {n: _near(size, world) if n in bad else size for n, size in sizes.items()}
        raise refused[0].replace(alternatives=alternatives(near, change=bad))
    return whole


def _does_not_divide(
    sizes: Mapping[str, int], rest: str | None, alternatives: Fixes, *, world: int, product: int
) -> LayoutError:
    spoken = {"tp": 0, "pp": 1, "cp": 2}  # as people say them; any other axis after, as given
    shown = {name: sizes[name] for name in sorted(sizes, key=lambda n: spoken.get(n, 3))}
    shown_product = " x ".join(f"{name} {size}" for name, size in shown.items())
    fixes = alternatives(shown)
    control = next(iter(fixes[0] if fixes else shown))
    why = f"{rest} is what remains: {world} / {product} is not a whole number"
    facts = {"sizes": shown_product, "product": product, "world": world, "left": "DP"}
    return refusal("does-not-divide", control, *fixes, why=why, **facts)


def _refuse_other(rest: str, stated: object, remaining: int, *, world: int, product: int) -> None:
    """A size of what remains that is not what remains."""
    fix = {rest: remaining}
    try:
        same = whole_number(stated, rest) == remaining
    except LayoutError as error:
        raise error.replace(alternatives=[fix]) from None
    if not same:
        sizes = {"world": world, "product": product, "remaining": remaining}
        raise refusal("dp-does-not-fit", rest, fix, axis=rest, dp=quoted(stated), **sizes)


def _world(world: object, sizes: Mapping[str, object]) -> int:
    """The world size; one out of range is answered with the nearest that these sizes fill."""
    try:
        return whole_number(world, "world", maximum=MAX_RANKS)
    except LayoutError as error:
        try:
            unit = math.prod(whole_number(size, name) for name, size in sizes.items())
        except LayoutError:
            unit = MAX_RANKS + 1
        nearest = unit if error.alternatives == ({"world": 1},) else MAX_RANKS // unit * unit
        works = error.alternatives and unit <= MAX_RANKS
        raise error.replace(alternatives=[{"world": nearest}] if works else ()) from None


def _near(size: object, world: int) -> float:
    """Where to look instead of a bad size: 2.5 and 99 have neighbours; "abc" and -3 have 1."""
    if not isinstance(size, Real) or isinstance(size, (bool, np.bool_)) or size != size:
        return 1
    if not size <= world:
        return world
    return 1 if size <= 1 else float(size)
