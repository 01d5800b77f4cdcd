"""A budget of work for each request: work is counted where it is done and refused past the limit.

A unit of work is about a microsecond of one core: a word read, an op placed, ten pixels painted. A
loop calls `spend` before it works; the code that answers a request opens its budget with `within`.
Work outside of any request (a test, a script) is not limited. A budget inside another is a part of
it: what is spent counts for both.

The alternatives that a request tries for its refusals (groups.alternatives) are counted too, all
together and whoever tries them: one refusal may lead to another, each with alternatives of its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass

from .errors import LayoutError

LIMIT = 1_500_000
"""Units of work of one request: about 1.5 seconds of one core."""

TRIES = 1_000
"""Alternatives that one request may try: 32 roles that do not fit, with all that each of them tries
for itself."""

TRY = 300
"""Units of one try: a layout that is worked out. What costs more says so itself."""


@dataclass
class Budget:
    """The units that a request may spend, how many it has spent, and the alternatives that it has
    tried."""

    limit: int
    spent: int = 0
    outer: Budget | None = None
    tried: int = 0

    @property
    def left(self) -> int:
        """Units left in this budget and in all budgets that enclose it."""
        left = self.limit - self.spent
        return left if self.outer is None else min(left, self.outer.left)

    def spend(self, units: int) -> bool:
        """Subtracts units of work; returns whether that many were left."""
        self.spent += units
        enough = self.outer is None or self.outer.spend(units)
        return enough and self.spent <= self.limit

    def attempt(self) -> bool:
        """Counts an alternative; returns whether the whole request may try one more."""
        self.tried += 1
        return self.tried <= TRIES if self.outer is None else self.outer.attempt()


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(limit: int = LIMIT, kind: type[Budget] = Budget) -> Iterator[Budget]:
    """Opens a budget for a block, or for a function that it decorates.

    >>> @within(limit=3)
    ... def reader(text: str) -> int:
    ...     spend(len(text), "characters")
    ...     return len(text)
    >>> reader("abc"), reader("abc")
    (3, 3)
    >>> reader("four")
    Traceback (most recent call last):
    groups.errors.LayoutError: too many characters: this is more work than one request may cost
    """
    budget = kind(limit, outer=_CURRENT.get())
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)


def attempt() -> bool:
    """Whether the current request may try one more alternative, which is counted and charged.

    >>> with within() as budget:
    ...     attempt(), budget.tried, budget.spent == TRY
    (True, 1, True)
    """
    budget = _CURRENT.get()
    return budget is None or (budget.attempt() and budget.spend(TRY))


@contextmanager
def bounded() -> Iterator[None]:
    """A block whose tries are bounded, also outside of a request: in a script or a notebook."""
    with within(sys.maxsize) if _CURRENT.get() is None else nullcontext():
        yield


Alternatives = Iterable[Mapping[str, object]] | Callable[[int], Iterable[Mapping[str, object]]]


def spend(
    units: int, what: str, *, control: str | None = None, alternatives: Alternatives = ()
) -> None:
    """Charges the current request for work that it is about to do.

    what: the kind of units, a key of texts/refusals.toml. control: the input that is too large.
    alternatives: changes of inputs that cost less, or a function that finds them, given the units
    left.

    Errors: LayoutError ``too-much-work`` if fewer units are left.
    """
    budget = _CURRENT.get()
    if budget is None:
        return
    if not budget.spend(units):
        left = budget.left + units
        cheaper = alternatives(left) if callable(alternatives) else alternatives
        raise LayoutError(
            "too-much-work",
            f"too many {what.replace('-', ' ')}: this is more work than one request may cost",
            control=control,
            alternatives=[dict(change) for change in cheaper],
            facts={"what": what},
        )
