"""Results that are kept for the next request that asks the same: one bound in bytes for all.

A cache that counts its results keeps 64 of them, whatever each holds. Those of functions under
`kept` are in one store: where all together are too many bytes, the one that was asked for longest
ago goes, whosever it is. What is left of `functools.lru_cache` takes numbers and names only and
gives numbers, names or a short row of them (tests/test_kept.py lists them and their bytes).

>>> @kept
... def row(length: int) -> str:
...     return "x" * length
>>> row(3), row(3), STORE.bytes_of(row) > size_of("xxx")
('xxx', 'xxx', True)
>>> row.cache_clear(); STORE.bytes_of(row)
0
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, update_wrapper
from typing import Generic, NamedTuple, ParamSpec, TypeVar, cast

import numpy as np

Asked = ParamSpec("Asked")
Result = TypeVar("Result")

MOST = 32_000_000
"""Bytes of all results that are kept, with their arguments."""

LARGEST = MOST // 6
"""Bytes of a result that is not kept among the others: it would put out many of them."""

LAST = 2
"""Larger results that stay until the next one: an answer that compares asks for each of two again
and again."""

NUMBERS, NUMBER = frozenset({int, float, bool, type(None)}), 32
"""Types without others inside, and about their bytes: a row that begins and ends with one has no
others."""

EMPTY = ""
"""One object for all, and what most fields of a state hold."""

SAMPLE = 6
"""Members of a row that are looked into: of more, each stands for those beside it."""

USED = 256
"""Results of one request that may hold more at its end and are weighed again then."""

ARGUMENTS = 4096
"""Arguments whose bytes are remembered while they live."""

LOOKED_INTO = 20_000
"""Objects of a result that are looked into for their bytes; one of more is a larger one."""


class KeptWeight(NamedTuple):
    """Bytes of a result, and whether it may hold more later: what is worked out when asked for."""

    size: int
    grows: bool


def size_of(value: object) -> int:
    """Bytes of a value and of what it holds, each object once; of long rows a sample is weighed.

    >>> size_of(np.zeros(1000)) >= 8000, size_of(["x" * 1000] * 6) < 2000
    (True, True)
    >>> 0.9 < size_of(["x" * 1000 + str(n) for n in range(5000)]) / (5000 * (1000 + 53 + 8)) < 1.1
    True
    """
    return weight_of(value).size


def weight_of(value: object) -> KeptWeight:
    if type(value) in NUMBERS:
        return KeptWeight(NUMBER, grows=False)
    size, grows, seen = 0.0, False, set[int]()
    left: list[tuple[object, float]] = [(value, 1.0)]
    while left:
        one, times = left.pop()
        anatomy = _ANATOMIES.get(type(one)) or _anatomy_of(type(one))
        if anatomy.is_code or id(one) in seen:
            continue
        seen.add(id(one))
        if len(seen) > LOOKED_INTO:
            return KeptWeight(sys.maxsize, grows)
        size += times * sys.getsizeof(one)
        if anatomy.rows is not None:
            for row in anatomy.rows(one):
                if row and type(row[0]) in NUMBERS and type(row[-1]) in NUMBERS:
                    size += times * NUMBER * len(row)
                elif row:
                    sample = row[:: -(-len(row) // SAMPLE)]
                    share = times * len(row) / len(sample)
                    for each in sample:
                        if type(each) in NUMBERS:
                            size += share * sys.getsizeof(each)
                        else:
                            left.append((each, share))
        elif anatomy.is_array:
            array = cast("np.ndarray", one)
            size += times * array.nbytes if array.base is not None else 0  # else it is in its size
        elif anatomy.has_fields:
            fields = vars(one)
            grows = grows or not fields.keys() >= anatomy.later
            size += times * sys.getsizeof(fields)
            for each in fields.values():
                if type(each) in NUMBERS:
                    size += times * sys.getsizeof(each)
                elif each is not EMPTY:
                    left.append((each, times))
        left += [(getattr(one, name, None), times) for name in anatomy.slots]
    return KeptWeight(round(size), grows)


Rows = Sequence[Sequence[object]]


class Anatomy(NamedTuple):
    """Where the objects of one type hold others."""

    is_code: bool  # a class or a function
    rows: Callable[[object], Rows] | None
    is_array: bool
    has_fields: bool
    slots: tuple[str, ...]  # fields that stand in no ``__dict__``
    later: frozenset[str]  # what is worked out when asked for


_ANATOMIES: dict[type, Anatomy] = {}


def _anatomy_of(kind: type) -> Anatomy:
    line = [vars(each) for each in kind.__mro__]
    slots = [name for each in line for name in _names(each.get("__slots__", ()))]
    every = [one for each in line for one in each.items()]
    later = (name for name, one in every if isinstance(one, cached_property))
    rows: Callable[[object], Rows] | None = None
    if issubclass(kind, (list, tuple)):
        rows = _itself
    elif issubclass(kind, Mapping):
        rows = _keys_and_values
    elif issubclass(kind, (set, frozenset)):
        rows = _members
    _ANATOMIES[kind] = found = Anatomy(
        issubclass(kind, type) or any("__call__" in each for each in line),
        rows,
        issubclass(kind, np.ndarray),
        any("__dict__" in each for each in line),
        tuple(name for name in slots if not name.startswith("__")),
        frozenset(later),
    )
    return found


def _itself(row: object) -> Rows:
    return (cast("Sequence[object]", row),)


def _keys_and_values(of: object) -> Rows:
    found = cast("Mapping[object, object]", of)
    return [*found.keys()], [*found.values()]


def _members(of: object) -> Rows:
    return ([*cast("Iterable[object]", of)],)


def _names(slots: str | Sequence[str]) -> Sequence[str]:
    return (slots,) if isinstance(slots, str) else tuple(slots)


class KeptKey(list[Hashable]):
    """A function and its arguments, hashed once: those of a state are three hundred texts."""

    __slots__ = ("_hash",)

    def __init__(self, *parts: Hashable) -> None:
        super().__init__(parts)
        self._hash = hash(parts)

    def __hash__(self) -> int:  # type: ignore[override]
        return self._hash


class Store:
    """All results that are kept, the one that was asked for last at the end."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.size = most, 0
        self._found: OrderedDict[KeptKey, tuple[object, KeptWeight]] = OrderedDict()
        self._larger: OrderedDict[KeptKey, object] = OrderedDict()
        self._lock = threading.Lock()
        self._used = threading.local()
        self._arguments: dict[int, tuple[weakref.ref[object], int]] = {}

    def get(self, key: KeptKey) -> tuple[object, ...] | None:
        """The result, first in a tuple; None where none is kept."""
        with self._lock:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                if found[1].grows:
                    self._grows(key)
                return found
            if key in self._larger:
                self._larger.move_to_end(key)
                return (self._larger[key],)
        return None

    def put(self, key: KeptKey, value: object) -> None:
        weight = self._weighed(key, value)
        with self._lock:
            self._place(key, value, weight)
            if weight.grows:
                self._grows(key)

    def weigh(self) -> None:
        """Weigh again what this thread has asked for since the last time and what may hold more
        now: at the end of a request."""
        keys, self._used.keys = getattr(self._used, "keys", {}), {}
        for key in keys:
            with self._lock:
                value, weight = self._found.get(key, (None, None))
            if weight is None:
                continue
            anew = self._weighed(key, value)
            with self._lock:
                if anew != weight and key in self._found:
                    self._place(key, value, anew)

    def _weighed(self, key: KeptKey, value: object) -> KeptWeight:
        size, grows = weight_of(value)
        return KeptWeight(size + sum(map(self._asked_with, key[1:])), grows)

    def _asked_with(self, value: object) -> int:
        """Bytes of an argument; a model is one of thousands of results, and is weighed once."""
        if type(value) in NUMBERS:
            return NUMBER
        if type(value) is str:
            return sys.getsizeof(value)
        if isinstance(value, tuple) and len(value) < SAMPLE:
            return sys.getsizeof(value) + sum(map(self._asked_with, value))
        if not (_ANATOMIES.get(type(value)) or _anatomy_of(type(value))).has_fields:
            return weight_of(value).size
        of, size = self._arguments.get(id(value), (None, 0))
        if of is None or of() is not value:
            size = weight_of(value).size
            if len(self._arguments) > ARGUMENTS:
                self._arguments.clear()
            self._arguments[id(value)] = weakref.ref(value), size
        return size

    def _place(self, key: KeptKey, value: object, weight: KeptWeight) -> None:
        before = self._found.pop(key, None)
        self.size -= before[1].size if before else 0
        if weight.size > LARGEST:
            self._larger[key] = value
            while len(self._larger) > LAST:
                self._larger.popitem(last=False)
            return
        self._found[key] = value, weight
        self.size += weight.size
        while self.size > self.most:
            self.size -= self._found.popitem(last=False)[1][1].size

    def _grows(self, key: KeptKey) -> None:
        keys = self._used.__dict__.setdefault("keys", {})
        keys[key] = None
        if len(keys) > USED:
            del keys[next(iter(keys))]

    def bytes_of(self, function: object) -> int:
        """Bytes of the results of one function."""
        with self._lock:
            return sum(
                weight.size for key, (_, weight) in self._found.items() if key[0] is function
            )

    def count_of(self, function: object) -> int:
        """How many results of one function are kept."""
        with self._lock:
            return sum(key[0] is function for key in (*self._found, *self._larger))

    def forget(self, function: object) -> None:
        with self._lock:
            for key in [key for key in self._found if key[0] is function]:
                self.size -= self._found.pop(key)[1].size
            for key in [key for key in self._larger if key[0] is function]:
                del self._larger[key]

    def clear(self) -> None:
        with self._lock:
            self._found.clear()
            self._larger.clear()
            self.size = 0


STORE = Store()


class kept(Generic[Asked, Result]):  # noqa: N801  a decorator
    """A function whose results are kept, by its arguments, which are hashable; no exception is."""

    def __init__(self, function: Callable[Asked, Result]) -> None:
        self.function = function
        update_wrapper(self, function)

    def __call__(self, *values: Asked.args, **named: Asked.kwargs) -> Result:
        key = KeptKey(self, values, *sorted(named.items()))
        found = STORE.get(key)
        if found is not None:
            return cast("Result", found[0])
        result = self.function(*values, **named)
        STORE.put(key, result)
        return result

    def cache_clear(self) -> None:
        STORE.forget(self)
