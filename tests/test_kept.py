"""What is kept for the next request is bounded by its bytes, and by those of all together."""

from __future__ import annotations

import numpy as np
import pytest

from groups import LayoutError, kept
from groups.kept import LARGEST, Store, size_of


@pytest.fixture
def store(monkeypatch):
    one = Store(most=900)
    monkeypatch.setattr(kept, "STORE", one)
    return one


def test_what_was_asked_for_longest_ago_goes_first_whosever_it_is(store):
    asked = []

    @kept.kept
    def one(name: str) -> bytes:
        asked.append(name)
        return bytes(300)

    @kept.kept
    def other(name: str, *, more: int = 0) -> bytes:
        asked.append(name + str(more))
        return bytes(300)

    for call in (lambda: one("a"), lambda: other("b", more=1), lambda: one("a")):
        call()
    assert asked == ["a", "b1"]
    one("c")
    assert store.size <= 900
    one("a"), other("b", more=1)
    assert asked == ["a", "b1", "c", "b1"]
    other.cache_clear()
    assert store.bytes_of(other) == 0
    assert store.size == store.bytes_of(one) > 0


def test_neither_an_exception_nor_what_is_too_large_is_kept(store, monkeypatch):
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
        found(LARGEST + 1)
    assert calls == [0, LARGEST + 1] * 2
    assert store.size == 0


def test_a_part_of_an_array_counts_and_what_is_held_twice_counts_once():
    whole = np.zeros(10_000)
    assert size_of(whole[:5000]) >= 40_000
    assert size_of([whole, whole]) < 2 * size_of(whole)
    assert size_of({"a": ("x" * 500, {1})}) > 500
