"""No view breaks on any value of any control: any JSON may arrive where a browser sends its state.

Each control has every other value, its neighbour the others, in one view each, the views taken in
turn; text that would be HTML in every view.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pages import draw, from_sent, state, views_of

from views.all import VIEWS

INJECTION = "<img src=x onerror=alert(1)>"
HOSTILE = [
    *([1], [[]], {"a": 1}, {}, None, True, -1, 0, 2.5, 1e300, float("nan"), 10**4000),
    *("", " ", "9" * 5000, "a\x00b", "\ud800", "-1", "1e9", "x" * 200),
]
NAMES = [name for name in state() if name not in ("view", "lang")]
PARTS = 4
"""Tests that share the states: one alone would keep the last of several workers busy."""

STARTS: tuple[dict[str, object], ...] = ({}, {"cp": 4, "pp": 1, "framework": "own"})


def fault(changes: Mapping[str, object]) -> str:
    """What is wrong with the answer to a state; empty if nothing is."""
    try:
        found = draw(changes)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200]
    if any("<img src=x" in (part or "") for part in (found.status, found.picture, found.details)):
        return "text became HTML"
    if found.picture is None and 'role="alert"' not in found.status:
        return "refused in silence"
    return "refused at length" if found.picture is None and len(found.status) >= 3000 else ""


def states() -> Iterator[dict[str, object]]:
    languages, starts = itertools.cycle(("en", "zh")), itertools.cycle(STARTS)
    turns = {name: itertools.cycle(views_of(name)) for name in NAMES}
    for number, name in enumerate(NAMES):  # neighbours do not begin with the same view
        next(itertools.islice(turns[name], number % 11, None))
    for number, name in enumerate(NAMES):
        tried = [(next(turns[name]), value) for value in HOSTILE[number % 2 :: 2]]
        tried += [(view, INJECTION) for view in views_of(name)]
        for view, value in tried:
            yield {**next(starts), "lang": next(languages), "view": view, name: value}
    yield from ({one: value} for one in ("view", "lang") for value in (*HOSTILE, INJECTION))


@pytest.mark.parametrize("part", range(PARTS))
def test_no_view_breaks_on_any_value_of_any_control(part):
    tried = itertools.islice(states(), part, None, PARTS)
    found = {str(changes)[:300]: said for changes in tried if (said := fault(changes))}
    assert found == {}


PLAUSIBLE = ["2", "3", "4", "16", "4096", "on", "1", "zb-v", "interleaved", "dualpipe", "broadcast"]
PLAUSIBLE += ["tp", "dp", "deepseek-v3", "full", "dgx-h100", "?v=1&tp=4", "tp-cp-ep-dp-pp", "3-9"]


@given(
    st.dictionaries(
        st.sampled_from(NAMES), st.sampled_from([*PLAUSIBLE, INJECTION, *HOSTILE]), max_size=8
    ),
    st.sampled_from(list(VIEWS)),
    st.sampled_from(["en", "zh"]),
)
@example({"nodes": [1], "paste": INJECTION}, "launch", "zh")
@settings(max_examples=100)
def test_no_view_breaks_on_several_such_values_at_once(changes, view, lang):
    assert fault({**changes, "view": view, "lang": lang}) == ""


def test_what_is_no_state_at_all_is_the_page_as_it_starts():
    start = from_sent("{}")
    for sent in ("", "[]", "3", "{", '{"tp": ' + "1" * 5000 + "}", "[" * 100_000, None, 3, {}):
        assert from_sent(sent) == start, sent
