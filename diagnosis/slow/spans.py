"""Spans of time: the time that they cover, and the common time of two sets."""

from __future__ import annotations

from array import array

import numpy as np


def union(starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """The union of spans: an array (n, 2), ascending, disjoint.

    >>> union(np.array([4.0, 0.0, 1.0]), np.array([5.0, 2.0, 3.0])).tolist()
    [[0.0, 3.0], [4.0, 5.0]]
    """
    lasting = ends > starts
    starts, ends = starts[lasting], ends[lasting]
    order = np.argsort(starts, kind="stable")
    starts, ends = starts[order], np.maximum.accumulate(ends[order])
    if not len(starts):
        return np.empty((0, 2))
    apart = np.flatnonzero(starts[1:] > ends[:-1])
    firsts = np.concatenate(([0], apart + 1))
    lasts = np.concatenate((apart, [len(ends) - 1]))
    return np.stack((starts[firsts], ends[lasts]), axis=1)


def length(covered: np.ndarray) -> float:
    """The time that a union covers."""
    return float((covered[:, 1] - covered[:, 0]).sum())


def shared(one: np.ndarray, other: np.ndarray) -> float:
    """The common time of two unions.

    >>> shared(np.array([[0.0, 10.0]]), np.array([[2.0, 3.0], [8.0, 12.0]]))
    3.0
    """
    if not len(one) or not len(other):
        return 0.0
    origin = other[0, 0]  # of microseconds since 1970 the last digits would be lost
    lengths = np.stack((np.zeros(len(other)), other[:, 1] - other[:, 0]), axis=1)
    before = np.cumsum(lengths.ravel())  # covered by the other until each of its ends
    until = np.interp(one - origin, other.ravel() - origin, before)
    return float((until[:, 1] - until[:, 0]).sum())


def covered(spans: np.ndarray, start: float, end: float) -> float:
    """The time between two moments that a union covers.

    >>> covered(np.array([[0.0, 2.0], [5.0, 9.0]]), 1.0, 6.0)
    2.0
    """
    low = int(np.searchsorted(spans[:, 1], start, "right"))
    high = int(np.searchsorted(spans[:, 0], end, "left"))
    return length(np.clip(spans[low:high], start, end)) if high > low else 0.0


class Spans:
    """Spans as they come, merged when they are many."""

    MANY = 262_144

    def __init__(self) -> None:
        self._starts, self._ends = array("d"), array("d")
        self._many = self.MANY

    def add(self, start: float, duration: float) -> None:
        self._starts.append(start)
        self._ends.append(start + duration)
        if len(self._starts) > self._many:
            covered = self.union()
            self._starts, self._ends = (array("d", column) for column in covered.T.tolist())
            self._many = max(self.MANY, 2 * len(covered))

    def __len__(self) -> int:
        return len(self._starts)

    def union(self) -> np.ndarray:
        return union(np.array(self._starts), np.array(self._ends))
