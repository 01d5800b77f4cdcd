"""What one request may cost: work is counted where it is done, and past the limit it is refused.

A unit of work is about a microsecond of one core: a word read, an op placed, ten pixels painted.
Loops say what they are about to do, `spend`; whoever answers a request opens its budget, `within`.
Work that belongs to no request (a test, a script of one's own) is not limited.

>>> with within(limit=10):
...     spend(4, "words")
...     spend(7, "words")
Traceback (most recent call last):
groups.errors.LayoutError: this asks for more than 10 words, more work than one request may cost

A budget inside another is a part of it: what is spent within counts for both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .errors import LayoutError

LIMIT = 1_500_000
"""Units of work of one request: about a second and a half of one core."""


@dataclass
class Budget:
    """Units that a request may spend, and what it has spent."""

    limit: int
    spent: int = 0
    outer: Budget | None = None

    def spend(self, units: int, what: str, **refusal: Any) -> None:
        """Count work that is about to be done.

        Errors: LayoutError ``too-much-work`` where it is more than is left.
        """
        self.spent += units
        if self.spent > self.limit:
            raise too_much_work(what, self.limit, **refusal)
        if self.outer is not None:
            self.outer.spend(units, what, **refusal)


_CURRENT: ContextVar[Budget | None] = ContextVar("budget", default=None)


@contextmanager
def within(limit: int = LIMIT) -> Iterator[Budget]:
    """A budget for what is done inside; within another one it is a part of that."""
    budget = Budget(limit, outer=_CURRENT.get())
    token = _CURRENT.set(budget)
    try:
        yield budget
    finally:
        _CURRENT.reset(token)


def spend(units: int, what: str, **refusal: Any) -> None:
    """Count work of the current request; refused where its budget does not allow it.

    refusal: ``control`` and ``alternatives`` of the refusal, where the caller knows the input that
    is too large and the nearest that works.
    """
    budget = _CURRENT.get()
    if budget is not None:
        budget.spend(units, what, **refusal)


def too_much_work(
    what: str,
    limit: int,
    *,
    control: str | None = None,
    alternatives: Sequence[Mapping[str, Any]] = (),
) -> LayoutError:
    """The refusal of a request that costs more than one may."""
    return LayoutError(
        "too-much-work",
        f"this asks for more than {limit:,} {what}, more work than one request may cost",
        control=control,
        alternatives=alternatives,
        facts={"what": what, "limit": f"{limit:,}"},
    )
