"""No view breaks on any value of any control."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from views.base.inputs import Asked, filled, flat
from views.base.state import Controls
from views.page import VIEWS, answer

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


OF_VIEWS = {name for name, _ in flat(Asked())}


def views_of(name: str) -> list[str]:
    """The views that an input may matter to: all, unless it is one of a single view's own."""
    for view, names in OWN.items():
        if name in names:
            return {
                "memory": ["memory", "search"],
                "traffic": ["traffic", "search", "compare"],
            }.get(view, [view])
    return [*VIEWS]


OWN = {
    view: {name for name, _ in flat(getattr(Asked(), view))}
    for view in ("collectives", "pipeline", "memory", "traffic")
}


@pytest.mark.parametrize("name", [name for name, _ in (*flat(Controls()), *flat(Asked()))])
def test_no_view_breaks_on_any_value_of_any_control(name):
    languages = itertools.cycle(("en", "zh"))
    for view, value in itertools.product(views_of(name), HOSTILE):
        asked = filled(Asked(view=view), {name: value} if name in OF_VIEWS else {})
        for start in (Controls(), Controls(cp=4, pp=1, framework="own")):
            controls = start if name in OF_VIEWS else replace(start, **{name: value})
            found = answer(controls, next(languages), asked=asked)
            for part in (found.status, found.picture, found.details):
                assert "<img src=x" not in (part or "")
            if found.picture is None:
                assert 'role="alert"' in found.status
                assert len(found.status) < 3000


def test_every_input_has_a_name_of_its_own():
    names = [name for name, _ in (*flat(Controls()), *flat(Asked()))]
    assert len(names) == len(set(names))
