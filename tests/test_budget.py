"""One budget of work for a request, whichever way it comes in: work is counted, time is not."""

from __future__ import annotations

import ast
import io
import itertools
import json
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pages import to_sent

import app
from cli.command import run
from descriptions import WORK
from groups import LayoutError, budget
from groups.budget import LIMIT, spend, within
from package.build import ROOMS
from render.files.forms import to_bytes
from render.files.paint import MOST_PIXELS, PAINTED
from render.marks import Drawing
from request.answers.groups import layout, process_groups
from request.answers.pipeline.api import pipeline_schedule
from request.answers.pipeline.inputs import spend_on
from request.state import State
from request.words import sentence
from training.models import MODELS
from training.pipeline import plan_of, simulate
from training.pipeline.simulate import ABREAST, Durations, _run, _run_abreast
from training.pipeline.spec import ScheduleSpec as Schedule
from training.recipe import Training
from training.search import SearchJob
from training.search import quickest as rooms
from training.search.space import step_for, valid_splits
from views.all import VIEWS
from views.page import answer, save


def saved(form: str, sent: str) -> dict[str, str]:
    """What the page answers where a file is asked for."""
    return json.loads(save(json.dumps({"state": json.loads(sent), "form": form})))


def refused_for(what: str, units: int, limit: int = LIMIT) -> LayoutError:
    with pytest.raises(LayoutError) as caught, within(limit):
        spend(units, what)
    return caught.value


def test_work_is_refused_in_both_languages_and_says_of_what_there_is_too_much():
    for what, words in WORK.items():
        error = refused_for(what, LIMIT + 1)
        assert sentence(error, "en").startswith(f"Too many {what.replace('-', ' ')}: ")
        assert sentence(error, "zh").startswith(words["zh"])


def test_every_count_of_work_in_the_code_has_words():
    """Each name that `spend` is called with: the second argument of every call."""
    root = Path(app.__file__).parent
    rooms = {*ROOMS} - {"texts"}
    for path in (path for room in rooms for path in (root / room).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "spend":
                what = node.args[1]
                assert not isinstance(what, ast.Constant) or what.value in WORK, path


def test_what_is_spent_within_counts_for_both_budgets():
    with within(10) as outer:
        with within(8) as inner:
            spend(6, "words")
            assert (inner.left, outer.left) == (2, 4)
        with pytest.raises(LayoutError), within(8):
            spend(5, "words")


def test_work_of_no_request_is_not_limited():
    spend(10 * LIMIT, "words")


def test_alternatives_are_found_from_the_units_that_are_left():
    with within(10), pytest.raises(LayoutError) as caught:  # noqa: PT012
        spend(4, "ops")
        spend(7, "ops", control="m", alternatives=lambda left: [{"m": left}])
    assert (caught.value.control, caught.value.alternatives) == ("m", ({"m": 6},))


# -- pipelines -----------------------------------------------------------------------------------

HEAVY = (
    ("zb-v", "zb-h2", 512, 970),
    ("1f1b", "", 1024, 488),
    ("zb-2p", "", 64, 512),
    ("1f1b", "gpipe", 2, 125_000),
)
"""Schedules whose ops are within what one may have, and too many for one request."""


def state_of(schedule: str, against: str, p: int, m: int) -> State:
    sizes = {"nodes": p, "pp": p, "tp": 1, "micro_batches": m}
    return State(**sizes, schedule=schedule, view="pipeline", against=against)


@pytest.mark.parametrize(("schedule", "against", "p", "m"), HEAVY)
def test_a_pipeline_of_too_many_ops_is_refused_with_micro_batches_that_work(
    schedule, against, p, m, monkeypatch
):
    monkeypatch.setattr("request.answers.pipeline.timed.simulate", None)  # nothing is worked out
    state = state_of(schedule, against, p, m)
    shown = answer(state).picture
    assert "Too many ops" in shown
    assert 'class="pipeline-chart"' not in shown
    assert "流水线操作过多" in answer(replace(state, lang="zh")).picture
    assert "Too many ops" in saved("png", to_sent(state))["refused"]
    if not against:
        with pytest.raises(LayoutError, match=r"too many ops.*; try m "):
            pipeline_schedule(schedule=schedule, p=p, m=m, ops=False)


def test_the_micro_batches_that_a_refusal_offers_cost_less():
    for schedule, against, p, m in HEAVY:
        both = [Schedule(name, p, m) for name in (schedule, against) if name]
        with pytest.raises(LayoutError) as caught, within():
            spend_on(both)
        (cure,) = caught.value.alternatives
        assert 0 < cure["m"] < m
        with within():
            spend_on([replace(one, m=cure["m"]) for one in both])


@pytest.mark.parametrize("send", [0.0, 0.3])
@pytest.mark.parametrize("name", ["1f1b", "interleaved", "zb-h2", "zb-v", "dualpipe"])
def test_ranks_side_by_side_and_one_after_the_other_run_alike(name, send):
    plan = plan_of(name, p=ABREAST, m=4 * ABREAST)
    durations = Durations(forward=0.1, overlapped=0.7, send=send)
    found = simulate(plan, durations)
    inputs = [np.where(ops < 0, -1, plan.needed[ops]) for ops in (plan.first, plan.second)]
    rank = plan.rank_of_place
    waits = [(one, (rank[one] != rank) * send) for one in inputs]
    cost = found.end - found.start
    for run_ in (_run, _run_abreast):
        start, end = run_(plan.starts, cost, waits)
        assert abs(start - found.start).max() < 1e-9
        assert abs(end - found.end).max() < 1e-9


# -- searches ------------------------------------------------------------------------------------


def absurd(**changes) -> SearchJob:
    """Everything in it has more divisors than any other number of its length."""
    model = replace(
        MODELS["deepseek-v3"].model,
        **{"layers": 5_040, "heads": 5_040, "kv_heads": 5_040, "experts": 5_040},
    )
    return replace(SearchJob(model, Training(), 720_720, 720_720, 8, "dgx-h100"), **changes)


def test_a_search_without_end_answers_the_best_of_what_it_tried_and_says_so():
    rooms.search.cache_clear()
    with within(budget.LIMIT) as spent:
        found = rooms.search(absurd())
    assert found.best
    assert not found.complete
    assert found.tried <= rooms.MOST_TRIED
    assert spent.spent <= budget.LIMIT


def test_of_too_many_sizes_some_are_tried_that_lie_spread_over_all():
    asked = absurd(gpus=5_040)
    step = step_for(asked, 9_600)
    assert step > 1
    every = {(one.tp, one.cp, one.pp) for one in valid_splits(asked)}
    some = {(one.tp, one.cp, one.pp) for one in valid_splits(asked, step)}
    assert some < every
    for axis in range(3):
        assert len({one[axis] for one in some}) > len({one[axis] for one in every}) / 3


# -- views ---------------------------------------------------------------------------------------

PASTED = {
    "paste": "torchrun pretrain_gpt.py --tensor-model-parallel-size 4",
    "evidence": "[rank3]: Watchdog caught collective operation timeout",
    "hosts": "gpu-0\ngpu-1",
    "racks": "SwitchName=rack0 Nodes=gpu-0",
    "measures": "0 1.5\n1 2.5",
    "ranks": "3 5",
    "kept": "v=2&tp=4",
    "against": "interleaved",
}


def test_every_view_has_a_place_for_what_is_too_much_work():
    rooms.search.cache_clear()  # what another test has searched for costs nothing
    refusing = set()
    for view, limit in itertools.product(VIEWS, (0, 50, 500)):
        with within(limit):
            shown = answer(State(view=view, **PASTED)).picture
        assert f'data-view="{view}"' in shown
        refusing |= {view} if "Too many " in shown else set()
    assert refusing >= {"pipeline", "search", "launch", "hosts"}


# -- lists of ranks ------------------------------------------------------------------------------


def test_a_list_of_a_million_gpus_is_refused_by_every_way_in():
    controls = State(nodes=131072, gpus_per_node="8")
    for kind in ("json", "ranks", "csv", "txt"):  # the last two list a million groups of two
        assert "Too many" in saved(kind, to_sent(controls))["refused"]
    for ask in (layout, process_groups):
        with pytest.raises(LayoutError, match="can be shown"):
            ask(nodes=131_072)


def test_lists_of_131072_gpus_are_not_too_much_work():
    sent = to_sent(State(nodes=16384, gpus_per_node="8"))
    assert saved("ranks", sent)["name"].endswith(".csv")
    assert saved("json", sent)["name"].endswith(".json")


def test_a_command_has_a_budget_too(monkeypatch):
    monkeypatch.setattr("cli.command.LIMIT", 100)
    err = io.StringIO()
    assert run(["--nodes", "64"], io.StringIO(), io.StringIO(), err) == 2
    assert "too many listed ranks" in err.getvalue()


def test_a_picture_of_very_many_pixels_has_fewer_a_scene_pixel_and_counts_them():
    for height, pixels in ((600, 4 * 960 * 600), (9_600, MOST_PIXELS)):
        with within() as spent:
            data = to_bytes(Drawing(960, height, "#ffffff", []), "png")
        wide, tall = struct.unpack(">II", data[16:24])
        assert abs(wide * tall / pixels - 1) < 0.01
        assert abs(spent.spent - pixels // PAINTED) <= 1
