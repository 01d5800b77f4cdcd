"""A mesh from a world size and some sizes: dp is what remains, or a refusal with its fix."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
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
    given = {name: sizes.get(name, 1) for name in names if name != remains}
    rest = remains if remains in names else None
    request = _Request(_world(world, sizes), given, rest, sizes.get(rest or ""))
    size_of = request.checked()
    return {name: size_of[name] for name in names}


@dataclass(frozen=True)
class _Request:
    """What fit() was asked for: sizes, and the axis that remains, which may be given as well."""

    world: int
    sizes: Mapping[str, int]
    rest: str | None
    given: int | None

    def checked(self) -> dict[str, int]:
        """Every size with the one that remains, or the LayoutError that says why not."""
        self._refuse_bad_sizes()
        sizes = {name: operator.index(size) for name, size in self.sizes.items()}
        product = math.prod(sizes.values())
        if self.world % product:
            raise self._does_not_divide(sizes, product)
        remaining = self.world // product
        if self.rest is None:
            if remaining != 1:
                raise self._nothing_remains(sizes, product)
            return sizes
        self._refuse_other(self.rest, product, remaining)
        return {**sizes, self.rest: remaining}

    def alternatives(
        self, sizes: Mapping[str, float], change: Iterable[str] = ()
    ) -> list[dict[str, int]]:
        """The nearest sizes that fit; one that remains and was given changes with them."""
        fits = nearest_fits(self.world, sizes, change=change, exactly=self.rest is None)
        if self.rest is None or self.given is None:
            return fits
        for changes in fits:
            changes[self.rest] = int(self.world // math.prod({**sizes, **changes}.values()))
        return fits

    def _refuse_bad_sizes(self) -> None:
        """As whole_number of each size, but with the nearest sizes that would fit this world."""
        limits = dict.fromkeys(self.sizes, (1, self.world))
        refusals = {error.control or "": error for error in in_ranges(self.sizes, limits)[1]}
        if not refusals:
            return
        near = {
            n: _near(size, self.world) if n in refusals else size for n, size in self.sizes.items()
        }
        first = next(iter(refusals.values()))
        raise first.replace(alternatives=self.alternatives(near, change=refusals))

    def _does_not_divide(self, sizes: dict[str, int], product: int) -> LayoutError:
        spoken = {"tp": 0, "pp": 1, "cp": 2}  # as people say them; any other axis after, as given
        shown = {name: sizes[name] for name in sorted(sizes, key=lambda n: spoken.get(n, 3))}
        shown_product = " x ".join(f"{name} {size}" for name, size in shown.items())
        alternatives = self.alternatives(shown)
        control = next(iter(alternatives[0] if alternatives else shown))
        why = f"{self.rest} is what remains: {self.world} / {product} is not a whole number"
        facts = {"sizes": shown_product, "product": product, "world": self.world, "left": "DP"}
        return refusal("does-not-divide", control, *alternatives, why=why, **facts)

    def _nothing_remains(self, sizes: dict[str, int], product: int) -> LayoutError:
        return refusal(
            "no-dp-in-order", "order", *self.alternatives(sizes), world=self.world, product=product
        )

    def _refuse_other(self, rest: str, product: int, remaining: int) -> None:
        """A size of what remains that is not what remains."""
        if self.given is None:
            return
        fix = {rest: remaining}
        try:
            same = whole_number(self.given, rest) == remaining
        except LayoutError as error:
            raise error.replace(alternatives=[fix]) from None
        if not same:
            given = quoted(self.given)
            numbers = {"world": self.world, "product": product, "remaining": remaining}
            raise refusal("dp-does-not-fit", rest, fix, axis=rest, dp=given, **numbers)


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
