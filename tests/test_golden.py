"""Golden answers: a changed answer is a decision in its commit, not an accident.

A failure says which answers differ, in words or in markup only, and how to see and to accept it.
"""

from __future__ import annotations

import pytest
from golden.ask import endpoint_names
from golden.cases import CHANGED, FAMILIES, OWN
from golden.make import differences

from descriptions import VIEWS


@pytest.mark.parametrize("family", FAMILIES)
def test_the_answers_are_what_they_were(family):
    found = differences(family)
    assert not found, found


def test_every_view_and_every_endpoint_is_asked():
    assert set(CHANGED) == set(VIEWS)
    assert set(OWN) == endpoint_names()
