"""What is kept for the next request is bounded by its bytes, and by those of all together."""

from __future__ import annotations

import gc
import sys
import threading
from functools import cached_property, lru_cache
from inspect import signature
from types import BuiltinFunctionType, FunctionType, ModuleType

import numpy as np
import pytest
from cases import every

from groups import LayoutError, kept
from groups.kept import LARGEST, LAST, SAMPLE, Store, size_of
from request.state import State
from views.page import answer

ROOMS = ("cli", "descriptions", "diagnosis", "formats", "groups", "render", "request", "texts")
ROOMS += ("training", "views")


@pytest.fixture
def store(monkeypatch):
    one = Store(most=1600)
    monkeypatch.setattr(kept, "STORE", one)
    return one


def test_what_was_asked_for_longest_ago_goes_first_whosever_it_is(store):
    asked = []

    @kept.kept
    def one(name: str) -> bytes:
        asked.append(name)
        return bytes(400)

    @kept.kept
    def other(name: str, *, more: int = 0) -> bytes:
        asked.append(name + str(more))
        return bytes(400)

    for call in (lambda: one("a"), lambda: other("b", more=1), lambda: one("a")):
        call()
    assert asked == ["a", "b1"]
    one("c")
    assert store.size <= store.most
    one("a"), other("b", more=1)
    assert asked == ["a", "b1", "c", "b1"]
    other.cache_clear()
    assert store.bytes_of(other) == 0
    assert store.size == store.bytes_of(one) > 0


def test_no_exception_is_kept_and_of_larger_results_the_last_two(store):
    calls = []

    @kept.kept
    def found(size: int) -> np.ndarray:
        calls.append(size)
        if not size:
            raise LayoutError("busy", "no")
        return np.zeros(size, dtype=np.uint8)

    for _ in range(2):
        with pytest.raises(LayoutError):
            found(0)
    larger = [LARGEST + number for number in range(LAST + 1)]
    for _ in range(2):
        for size in larger[:LAST]:
            found(size)
    assert calls == [0, 0, *larger[:LAST]]
    found(larger[-1]), found(larger[0])
    assert calls == [0, 0, *larger, larger[0]]
    assert store.size == 0
    found.cache_clear()
    assert store.count_of(found) == 0


def test_what_is_asked_counts_too(store):
    texts = kept.kept(lambda text: len(text))
    texts("x" * 500)
    assert store.size > 500
    for number in range(9):
        texts(str(number) * 500)
    assert store.size <= store.most


class Grows:
    def __init__(self, count: int) -> None:
        self.count = count

    @cached_property
    def row(self) -> bytes:
        return bytes(self.count)


def test_a_result_that_holds_more_once_it_is_used_is_weighed_again(store):
    found = kept.kept(Grows)
    first = found(400)
    before = store.size
    first.row  # noqa: B018
    assert store.size == before
    store.weigh()
    assert before + 400 < store.size < before + 600
    for count in (500, 550):
        found(count).row  # noqa: B018
        store.weigh()
        assert store.size <= store.most
    assert found(400) is not first


def test_what_one_thread_uses_another_ones_end_does_not_take_for_done(store):
    found = kept.kept(Grows)
    first = found(200)
    thread = threading.Thread(target=store.weigh)
    thread.start()
    thread.join()
    first.row  # noqa: B018
    before = store.size
    store.weigh()
    assert store.size > before


def test_a_part_of_an_array_counts_and_what_is_held_twice_counts_once():
    whole = np.zeros(10_000)
    assert size_of(whole[:5000]) >= 40_000
    assert size_of([whole, whole]) < 2 * size_of(whole)
    assert size_of({"a": ("x" * 500, {1})}) > 500


def test_fields_in_slots_count():
    class Slotted:
        __slots__ = ("row",)

    one = Slotted()
    assert size_of(one) < 200
    one.row = bytes(1000)
    assert size_of(one) > 1000


@every("count", [SAMPLE - 1, SAMPLE, SAMPLE + 1, 10 * SAMPLE, 20_000])
def test_of_a_long_row_a_sample_stands_for_all(count):
    row = tuple((bytes(100), number + 10**6) for number in range(count))
    each = sys.getsizeof(row[0]) + sys.getsizeof(row[0][0]) + sys.getsizeof(row[0][1])
    assert size_of(row) == pytest.approx(sys.getsizeof(row) + count * each, rel=0.001)


# -- what counts its results -----------------------------------------------------------------------

SMALL = ("str", "int", "float", "bool", "Path", "tuple[int, ...]", "tuple[str, ...]")
"""Arguments of functions that keep so many results: none of them holds others."""


def counting() -> dict[str, object]:
    """Every function of the project that keeps a number of results by its arguments."""
    modules = [one for name, one in sys.modules.items() if name.partition(".")[0] in ROOMS]
    found = (value for module in modules for value in vars(module).values())
    made = {f"{one.__module__}.{one.__name__}": one for one in found if _counts(one)}
    return {name: one for name, one in made.items() if signature(one).parameters}


def _counts(value: object) -> bool:
    return (
        type(value).__name__ == "_lru_cache_wrapper" and value.__module__.partition(".")[0] in ROOMS
    )


def test_only_names_and_numbers_are_counted():
    of_classes = {"groups.inputs.inputs_of", "groups.inputs._rows_of", "groups.tables._adapter"}
    found = counting()
    assert found.keys() > of_classes
    for name in found.keys() - of_classes:
        asked = [one.annotation for one in signature(found[name]).parameters.values()]
        assert {*asked} <= {*SMALL}, (name, asked)


def held_by(root: object) -> int:
    """Bytes of all that can be reached from an object, without classes and functions."""
    left, seen, size = gc.get_referents(root), set(), 0
    ends = (type, FunctionType, BuiltinFunctionType, ModuleType, type(lru_cache(len)))
    while left:
        one = left.pop()
        if id(one) not in seen and not isinstance(one, ends):
            seen.add(id(one))
            size += sys.getsizeof(one)
            left += gc.get_referents(one)
    return size


def test_what_is_counted_is_little_after_the_largest_pictures():
    for view in ("groups", "nodes", "memory", "estimate", "search", "roles"):
        answer(State(view=view, nodes="131072", tp="8", pp="4", roles="r@0-1048575:tp=8"))
    assert sum(map(held_by, counting().values())) < 8_000_000
