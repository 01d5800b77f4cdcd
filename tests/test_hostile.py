"""No view breaks on any value of any control."""

from __future__ import annotations

import itertools
from dataclasses import fields, replace

import pytest

from views.asked import Asked
from views.page import answer
from views.state import Controls

HOSTILE = [
    [1],
    [[]],
    {"a": 1},
    None,
    True,
    -1,
    2.5,
    float("nan"),
    10**5000,
    "",
    "9" * 5000,
    "a\x00b",
    b"x",
    {1, 2},
    object(),
    "<img src=x onerror=alert(1)>",
]


@pytest.mark.parametrize("view", ["groups", "nodes", "orders", "ranks"])
@pytest.mark.parametrize("name", [one.name for one in [*fields(Controls), *fields(Asked)]])
def test_no_view_breaks_on_any_value_of_any_control(name, view):
    of_view = {one.name for one in fields(Asked)}
    for value, language in itertools.product(HOSTILE, ("en", "zh")):
        asked = Asked(**{"view": view, **({name: value} if name in of_view else {})})
        for start in (Controls(), Controls(cp=4, pp=1, framework="own")):
            controls = start if name in of_view else replace(start, **{name: value})
            found = answer(controls, language, asked=asked)
            for part in (found.status, found.picture, found.details):
                assert "<img" not in (part or "")
            if found.picture is None:
                assert 'role="alert"' in found.status
                assert len(found.status) < 3000
