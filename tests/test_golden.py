"""Golden answers: a changed answer is a decision in its commit, not an accident.

A failure says which answers differ, in words or in markup only, and how to see and to accept it.
"""

from __future__ import annotations

import pytest
from golden.ask import endpoint_names
from golden.cases import CHANGED, FAMILIES, OWN
from golden.make import file_of, part_of, stored

from descriptions import VIEWS

PARTS = (*(f"views/{view}" for view in CHANGED), *(one for one in FAMILIES if one != "views"))


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=pytest.mark.golden(part)) for part in PARTS]
)
def test_the_answers_are_what_they_were(part, background):
    golden = background["golden"]
    found = golden.wait_for(file_of(part, golden.folder))
    assert not found, found


def test_every_view_and_every_endpoint_is_asked():
    assert {part_of(name) for name in stored()} == set(PARTS)
    assert set(CHANGED) <= set(VIEWS)
    assert set(OWN) == endpoint_names()
