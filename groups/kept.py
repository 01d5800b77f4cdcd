"""Results that are kept for the next request that asks the same: bounded by the bytes of all.

A cache that counts its results keeps 64 of them, whatever each holds. Those of functions under
`kept` are in one store: where all together are too many bytes, the one that was asked for longest
ago goes, whosever it is.

>>> @kept
... def row(length: int) -> str:
...     return "x" * length
>>> row(3), row(3), STORE.bytes_of(row) > 3, STORE.bytes_of(row) == size_of("xxx")
('xxx', 'xxx', True, True)
>>> row.cache_clear(); STORE.bytes_of(row)
0
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import update_wrapper
from typing import Generic, ParamSpec, TypeVar, cast

import numpy as np

Asked = ParamSpec("Asked")
Result = TypeVar("Result")

Key = tuple[Hashable, ...]
"""A function and its arguments."""

MOST = 64_000_000
"""Bytes of all results that are kept."""

LARGEST = MOST // 8
"""Bytes of a result that is not kept: it would put out many others."""

LOOKED_INTO = 20_000
"""Objects of a result that are looked into for their bytes; one of more is not kept."""


def size_of(value: object) -> int:
    """Bytes of a value and of what it holds, each object once.

    >>> size_of(np.zeros(1000)) >= 8000, size_of(["x" * 1000] * 9) < 2000
    (True, True)
    """
    size, left, seen = 0, [value], set[int]()
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, type) or callable(one):
            continue
        seen.add(id(one))
        if len(seen) > LOOKED_INTO:
            return sys.maxsize
        size += sys.getsizeof(one)
        if isinstance(one, np.ndarray):
            size += one.nbytes if one.base is not None else 0  # else its own size has them
        elif isinstance(one, Mapping):
            left += [*one.keys(), *one.values()]
        elif isinstance(one, (list, tuple, set, frozenset)):
            left += one
        elif hasattr(one, "__dict__"):
            left += vars(one).values()
    return size


class Store:
    """All results that are kept, the one that was asked for last at the end."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.size = most, 0
        self._found: OrderedDict[Key, tuple[object, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key) -> tuple[object, int] | None:
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
            return self._found.get(key)

    def put(self, key: Key, value: object) -> None:
        size = size_of(value)
        if size > LARGEST:
            return
        with self._lock:
            self.size += size - self._found.pop(key, (None, 0))[1]
            self._found[key] = value, size
            while self.size > self.most:
                self.size -= self._found.popitem(last=False)[1][1]

    def bytes_of(self, function: object) -> int:
        """Bytes of the results of one function."""
        with self._lock:
            return sum(size for key, (_, size) in self._found.items() if key[0] is function)

    def count_of(self, function: object) -> int:
        """How many results of one function are kept."""
        with self._lock:
            return sum(key[0] is function for key in self._found)

    def forget(self, function: object) -> None:
        with self._lock:
            for key in [key for key in self._found if key[0] is function]:
                self.size -= self._found.pop(key)[1]


STORE = Store()


class kept(Generic[Asked, Result]):  # noqa: N801  a decorator
    """A function whose results are kept, by its arguments, which are hashable; no exception is."""

    def __init__(self, function: Callable[Asked, Result]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *values: Asked.args, **named: Asked.kwargs) -> Result:
        key: Key = (self, values, *sorted(named.items()))
        found = STORE.get(key)
        if found is not None:
            return cast("Result", found[0])
        result = self.function(*values, **named)
        STORE.put(key, result)
        return result

    def cache_clear(self) -> None:
        STORE.forget(self)
