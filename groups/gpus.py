"""GPUs in an order, kept as runs of consecutive ones: a million GPUs are two numbers.

Whatever is counted of them (how many, the highest, one that is there twice, whether two lists have
one in common, which are left) is counted on the runs. They become numbers, one for each GPU, only
where somebody asks for that (`Gpus.array`).

>>> gpus = Gpus.of_spans([(8, 11), (0, 3)])
>>> len(gpus), gpus[5], gpus.place(2), gpus.place(7), gpus.last, str(gpus)
(8, 1, 6, None, 11, '8-11,0-3')
>>> gpus.array().tolist()
[8, 9, 10, 11, 0, 1, 2, 3]
>>> gpus.meets(Gpus.run(4, 4)), gpus.meets(Gpus.run(3, 4)), gpus.repeated
(False, True, None)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class Gpus(Sequence[int]):
    """GPUs in an order, as (first, last) of each run, in that order; runs that continue each other
    are one. Equal lists are equal, however their runs were given."""

    spans: tuple[tuple[int, int], ...] = ()

    # -- made ----------------------------------------------------------------------------------

    @classmethod
    def run(cls, first: int, count: int) -> Gpus:
        """Consecutive ones."""
        return cls(((first, first + count - 1),)) if count > 0 else cls()

    @classmethod
    def of_spans(cls, spans: Iterable[tuple[int, int]]) -> Gpus:
        """Of the first and last GPU of each run; an empty run is none.

        >>> Gpus.of_spans([(0, 3), (4, 7), (9, 9)]).spans
        ((0, 7), (9, 9))
        """
        joined: list[tuple[int, int]] = []
        for first, last in spans:
            if last < first:
                continue
            if joined and joined[-1][1] == first - 1:
                first = joined.pop()[0]
            joined.append((first, last))
        return cls(tuple(joined))

    @classmethod
    def of(cls, gpus: Sequence[int] | np.ndarray) -> Gpus:
        """Of a list of single ones.

        >>> Gpus.of([4, 5, 6, 2]).spans
        ((4, 6), (2, 2))
        """
        if isinstance(gpus, Gpus):
            return gpus
        listed = np.asarray(gpus, dtype=np.int64)
        ends = np.flatnonzero(np.diff(listed) != 1)
        firsts = listed[np.append(0, ends + 1)] if len(listed) else listed
        lasts = listed[np.append(ends, len(listed) - 1)] if len(listed) else listed
        return cls(tuple(zip(firsts.tolist(), lasts.tolist())))

    # -- as a sequence -------------------------------------------------------------------------

    def __len__(self) -> int:
        return int(self._places[-1])

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __iter__(self) -> Iterator[int]:
        for first, last in self.spans:
            yield from range(first, last + 1)

    def __getitem__(self, place: int) -> int:  # type: ignore[override]
        at = place + len(self) if place < 0 else place
        if not 0 <= at < len(self):
            raise IndexError(place)
        return int(self.take(np.array([at]))[0])

    def __contains__(self, gpu: object) -> bool:
        return isinstance(gpu, int) and self.place(gpu) is not None

    def __str__(self) -> str:
        return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in self.spans)

    # -- counted on runs -----------------------------------------------------------------------

    @cached_property
    def _places(self) -> np.ndarray:
        """The place of the first GPU of each run, and the number of all."""
        return np.cumsum([0, *(last - first + 1 for first, last in self.spans)])

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The runs by their first GPU: first, last, and which run it is."""
        runs = np.array(self.spans, dtype=np.int64).reshape(-1, 2)
        by_first = np.argsort(runs[:, 0], kind="stable")
        return runs[by_first, 0], runs[by_first, 1], by_first

    @property
    def first(self) -> int:
        """The first one in the order."""
        return self.spans[0][0]

    @cached_property
    def last(self) -> int:
        """The highest."""
        return max(last for _, last in self.spans)

    @cached_property
    def lowest(self) -> int:
        return min(first for first, _ in self.spans)

    def place(self, gpu: int) -> int | None:
        """The place of a GPU in the order; None if it is not among them."""
        found = int(self.places(np.array([gpu]))[0])
        return found if found >= 0 else None

    def places(self, gpus: np.ndarray) -> np.ndarray:
        """The place of each of some GPUs: int64; -1 for one that is not among these.

        >>> Gpus.of_spans([(8, 11), (0, 3)]).places(np.array([2, 5, 8])).tolist()
        [6, -1, 0]
        """
        if not self.spans:
            return np.full(len(gpus), -1)
        firsts, lasts, runs = self._sorted
        at = np.maximum(np.searchsorted(firsts, gpus, side="right") - 1, 0)
        is_here = (firsts[at] <= gpus) & (gpus <= lasts[at])
        return np.where(is_here, self._places[runs[at]] + gpus - firsts[at], -1)

    def take(self, places: np.ndarray | Sequence[int]) -> np.ndarray:
        """The GPUs at some places: int64, of the same shape.

        >>> Gpus.of_spans([(8, 11), (0, 3)]).take([0, 4, 5]).tolist()
        [8, 0, 1]
        """
        at = np.asarray(places, dtype=np.int64)
        runs = np.searchsorted(self._places, at, side="right") - 1
        firsts = np.array([first for first, _ in self.spans], dtype=np.int64)
        return np.asarray(firsts[runs] + at - self._places[runs])

    @property
    def repeated(self) -> int | None:
        """The lowest GPU that is there twice; None if each is there once."""
        firsts, lasts, _ = self._sorted
        again = np.flatnonzero(firsts[1:] <= np.maximum.accumulate(lasts)[:-1])
        return int(firsts[1:][again[0]]) if len(again) else None

    def meets(self, other: Gpus) -> bool:
        """Whether both have a common GPU; each has any GPU once."""
        if not (self and other) or self.last < other.lowest or other.last < self.lowest:
            return False
        if len(self.spans) == len(other.spans) == 1:
            return True
        firsts, lasts, _ = self._sorted
        others, their_lasts, _ = other._sorted
        at = np.searchsorted(others, lasts, side="right") - 1  # the last that begins before its end
        return bool((their_lasts[np.maximum(at, 0)] >= firsts)[at >= 0].any())

    # -- one by one ----------------------------------------------------------------------------

    def array(self) -> np.ndarray:
        """Each GPU as a number: int64, shape (count,), read-only."""
        runs = [np.arange(first, last + 1, dtype=np.int64) for first, last in self.spans]
        gpus = np.concatenate(runs) if runs else np.empty(0, dtype=np.int64)
        gpus.flags.writeable = False
        return gpus


def union(lists: Iterable[Gpus]) -> tuple[tuple[int, int], ...]:
    """The first and last GPU of each run of those that are in one of several lists, ascending.

    >>> union([Gpus.run(4, 4), Gpus.of_spans([(6, 9), (20, 20)]), Gpus.run(0, 2)])
    ((0, 1), (4, 9), (20, 20))
    """
    found: list[tuple[int, int]] = []
    for first, last in sorted(span for gpus in lists for span in gpus.spans):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return tuple(found)


def gaps(taken: Iterable[tuple[int, int]], count: int) -> Gpus:
    """Those of ``count`` GPUs from 0 on that are in no run of a `union`.

    >>> gaps(((2, 3), (6, 6)), 8).spans
    ((0, 1), (4, 5), (7, 7))
    """
    at, free = 0, list[tuple[int, int]]()
    for first, last in taken:
        free.append((at, first - 1))
        at = last + 1
    return Gpus.of_spans([*free, (at, count - 1)])
