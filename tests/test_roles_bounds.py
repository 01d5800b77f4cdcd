"""A hundred characters in a link do not stop the server: what roles may cost, counted as work.

Calls of Python functions, bytes and alternatives are counted; time is not.
"""

from __future__ import annotations

import io
import json
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import pytest
from cases import every

from cli.command import run
from groups import LayoutError
from groups.budget import TRIES, within
from request.answers.moves.api import moves
from request.answers.roles.api import roles
from request.context import Context
from request.link import to_query
from request.state import State
from views.groups.film import film
from views.moves.reel import moves_reel
from views.page import answer, draw, save
from views.preview import head_html, preview
from views.server.lanes import LIGHT, Bite, TooHeavyError


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


def test_a_plan_whose_picture_is_too_much_refuses_that_view_alone():
    """The pixels of 31 roles on a million GPUs: tabs, sizes and column stand, the view says why."""
    told = draw(fields_of_plan(variations(2**20)["overlapping"], 2**20))
    assert "refused" not in told
    assert 'class="refusal"' in told["regions"]["picture"]
    assert "too many pixels" in told["regions"]["picture"].lower()
    assert "r30" in told["regions"]["roles"]
    assert told["regions"]["details"] == ""


def test_a_view_that_was_refused_for_want_of_units_is_not_kept():
    state = State(nodes="131072", view="roles", roles=variations(2**17)["overlapping"])
    with within(250_000):
        refused = answer(state)
    assert 'class="refusal"' in refused.picture
    assert 'class="refusal"' not in answer(state).picture


# -- ten variations, through every way in ----------------------------------------------------------

WORLDS = (1, 16_384, 131_072, 1_048_576)
MOST_ROLES_BESIDE = 31
BAD = ("tp=3,pp=5", "vllm,tp=7")


def roles_of(settings: Callable[[int], str]) -> str:
    return ";".join(f"r{number}@{settings(number)}" for number in range(MOST_ROLES_BESIDE))


def variations(world: int) -> dict[str, str]:
    """Texts of 31 roles on so many GPUs."""
    last, part, tp = world - 1, max(1, world // MOST_ROLES_BESIDE), min(8, world)
    steps = ",".join(str(2 * place) for place in range(8))
    return {
        "runs": roles_of(lambda n: f"{n * part}-{n * part + part - 1}:tp=1"),
        "overlapping": roles_of(lambda n: f"0-{last}:tp={tp}"),
        "lists": roles_of(lambda n: f"0-{world // 4},{world // 2}-{world // 2 + world // 4 - 2}"),
        "steps": roles_of(lambda n: f"{steps}:tp=1,gpus_per_node=8"),
        "a million": roles_of(lambda n: "0-999999,1-1000000"),
        "none fits": roles_of(lambda n: f"0-{last}:tp=7"),
        "servers and trainers": roles_of(lambda n: f"0-{last}:{'vllm,' * (n % 2)}tp=1"),
        "none of both fits": roles_of(
            lambda n: f"0-{last}:{'vllm,tp=7' if n % 2 else 'tp=3,pp=5'}"
        ),
        "stages inside": roles_of(lambda n: f"0-{last}:order=pp-tp-cp-ep-dp,pp={tp},tp=1"),
        "beyond": "1x8;" + roles_of(lambda n: str(1000 * n)),
    }


def fields_of_plan(text: str, world: int, **more: str) -> dict[str, str]:
    each = min(8, world)
    sizes = {"nodes": str(world // each), "gpus_per_node": str(each), "tp": "1", "pp": "1"}
    return {**sizes, "roles": text, "view": "roles", **more}


def link_of_plan(text: str, world: int) -> str:
    fields = fields_of_plan(text, world)
    return "?" + to_query(State(**fields))


WAYS = {
    "draw": lambda text, world: draw(json.dumps(fields_of_plan(text, world))),
    "drawn": lambda text, world: draw(json.dumps({"drawn": link_of_plan(text, world), "tp": "3"})),
    "link": lambda text, world: draw(json.dumps({"link": link_of_plan(text, world)})),
    "head": lambda text, world: head_html(link_of_plan(text, world), f"http://{world}/"),
    "preview": lambda text, world: preview(link_of_plan(text, world)),
    "add": lambda text, world: draw(json.dumps(fields_of_plan(text, world, role_edit="add"))),
    "first": lambda text, world: draw(
        json.dumps(fields_of_plan(text, world, role_edit="first " + ",".join(99 * ["0-999999"])))
    ),
    "save": lambda text, world: save(
        json.dumps({"state": fields_of_plan(text, world), "form": "png"})
    ),
    "table": lambda text, world: save(
        json.dumps({"state": fields_of_plan(text, world), "form": "roles"})
    ),
    "reel": lambda text, world: moves_reel(
        json.dumps(fields_of_plan(text, world, view="moves", moves_other="role:r1"))
    ),
    "film": lambda text, world: film(json.dumps(fields_of_plan(text, world, view="groups"))),
    "/roles": lambda text, world: roles(link_of_plan(text, world)),
    "/roles of one": lambda text, world: roles(link_of_plan(text, world), rank=0),
    "/moves": lambda text, world: moves(link_of_plan(text, world), link_of_plan(text, 8)),
    "embed": lambda text, world: draw(
        json.dumps({"link": link_of_plan(text, world) + "&embed=1", "shown": "groups"})
    ),
    "moves on the command line": lambda text, world: run(
        ["moves", "--from", link_of_plan(text, world), "--to", link_of_plan(text, 8)],
        *(io.StringIO() for _ in range(3)),
    ),
    "from on the command line": lambda text, world: run(
        ["moves", "--from", link_of_plan(text, 8), "--to", link_of_plan(text, world)],
        *(io.StringIO() for _ in range(3)),
    ),
    "view memory": lambda text, world: draw(json.dumps(fields_of_plan(text, world, view="memory"))),
}


@dataclass
class Cost:
    """Calls of Python functions, the largest number of bytes held at once, and alternatives."""

    calls: int = 0
    bytes: int = 0
    tried: int = 0


def cost_here(work: Callable[[], object]) -> Cost:
    """What the server's own process does for a request before it is done, refused or handed on."""
    found = Cost()

    def count(frame: object, event: str, argument: object) -> None:
        found.calls += event == "call"

    tracemalloc.start()
    try:
        with within(LIGHT, Bite) as budget, suppress(LayoutError, TooHeavyError):
            sys.setprofile(count)
            work()
    finally:
        sys.setprofile(None)
        found.bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    found.tried = budget.tried
    return found


@every("way", ["draw", "table"])
@every("name", [*variations(1)])
@every("world", [*WORLDS])
def test_no_text_of_roles_costs_the_servers_own_process_much(way, name, world):
    cost = cost_here(lambda: WAYS[way](variations(world)[name], world))
    assert cost.calls < 400_000, cost
    assert cost.bytes < 60e6, cost
    assert cost.tried < TRIES, cost


@every("name", ["overlapping", "a million", "none of both fits"])
@every("way", [*WAYS])
def test_no_way_in_costs_the_servers_own_process_much(way, name):
    text = variations(1_048_576)[name]
    cost = cost_here(lambda: WAYS[way](text, 1_048_576))
    assert cost.calls < 400_000, cost
    assert cost.bytes < 60e6, cost
    assert cost.tried < TRIES, cost
