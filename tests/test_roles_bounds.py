"""A hundred characters in a link do not stop the server: what roles may cost, counted as work.

Calls of Python functions, bytes and alternatives are counted; time is not.
"""

from __future__ import annotations

import json

import pytest
from cases import every

from groups import LayoutError
from groups.budget import TRIES, within
from request.context import Context
from request.state import State
from views.page import answer, draw


def none_fit(count: int, last: int = 131_071) -> str:
    """Roles whose tp divides nothing."""
    return ";".join(f"r{number}@0-{last}:tp=7" for number in range(count))


def tried(work, *values) -> int:
    """The alternatives that are tried."""
    with within(10**12) as budget:
        work(*values)
    return budget.tried


@every("draws", [answer, lambda state: draw(json.dumps(vars(state)))])
def test_each_role_more_that_does_not_fit_costs_as_much_as_the_last_one(draws):
    """Three times as much for each, they were: eight stopped the server for a minute."""
    counts = [tried(draws, State(roles=none_fit(count))) for count in (1, 2, 3, 30, 31)]
    assert counts[1] - counts[0] == counts[2] - counts[1] == counts[4] - counts[3]
    assert counts[4] < TRIES


def test_roles_that_do_not_fit_are_mended_together():
    for count in (1, 2, 7, 31):
        state = State(roles=none_fit(count), nodes="16384")
        with pytest.raises(LayoutError) as refused:
            Context.of(state)
        assert refused.value.facts["role"] == "r0"
        assert refused.value.alternatives
        for fix in refused.value.alternatives:
            assert len(Context.of(state.changed(fix)).plan.roles) == count + 1
