"""What two layouts cost beside each other, against the maths of each alone."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest

from descriptions import LANGUAGES, PAGE
from views.base.context import Context
from views.base.html import unparted
from views.base.link import from_query, to_query
from views.base.resolve import resolve
from views.base.state import State
from views.base.trained import trained_of
from views.compare.view import COSTS, PAIRS, Cost, compare_slide, cost_of
from views.page import answer

EIGHT = State(nodes=16, tp=4, pp=8, layers="80")
FOUR = State(nodes=16, tp=8, pp=4, layers="80")


def compared(now: State, kept: State, language: str = "en", **asked: str) -> str:
    query = f"?{to_query(kept)}"
    return answer(replace(now, lang=language, view="compare", kept=query, **asked)).picture


def costs(picture: str) -> list[list[str]]:
    """The cells of the table, row by row."""
    said = picture.replace("\xa0", " ")
    body = re.search(r'class="scroll costs".*?<tbody>(.*?)</tbody>', said, re.DOTALL)
    rows = re.findall(r"<tr>(.*?)</tr>", body[1], re.DOTALL)
    return [
        [
            html.unescape(cell).replace("\xa0", " ")
            for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)
        ]
        for row in rows
    ]


def alone(state: State) -> tuple[Cost, int]:
    """A layout worked out by itself, and the samples of its step."""
    trained = trained_of(resolve(state), state)
    return cost_of(resolve(state), trained), trained.batch.global_batch


def test_both_are_worked_out_for_the_batch_of_the_one_on_screen():
    now, batch = alone(FOUR)
    own, other_batch = alone(EIGHT)
    assert batch != other_batch  # alone, each would take samples by its stages
    kept, _ = alone(replace(EIGHT, global_batch=str(batch)))
    assert kept["cost_step"] < own["cost_step"]
    wanted = [[kept[name][1], now[name][1]] for name in COSTS]
    rows = costs(compared(FOUR, EIGHT))
    assert [row[1:3] for row in rows] == wanted
    for (_, _, _, said), name in zip(rows, COSTS):
        before, after = kept[name][0], now[name][0]
        share = f"{100 * abs(after / before - 1):,.0f}%" if before else "none"
        mark = "▼" if after < before else "▲"
        assert said.startswith(mark), said
        assert share in said


@pytest.mark.parametrize(
    "said",
    [{"layers": ""}, {"layers": "32"}, {"experts": "8"}, {"global_batch": "64"},
     {"micro_batches": "5"}],
)  # fmt: skip
def test_both_train_the_model_and_the_batch_of_the_one_on_screen(said):
    now, batch = alone(FOUR)
    kept, _ = alone(replace(EIGHT, global_batch=str(batch)))
    rows = costs(compared(FOUR, replace(EIGHT, **said)))
    assert [row[1:3] for row in rows] == [[kept[name][1], now[name][1]] for name in COSTS]


def test_a_difference_of_ten_times_is_no_percentage():
    """No "100% less" and no "83,562% more"."""
    larger = replace(FOUR, nodes=256, global_batch="2048")
    said = [row[3] for row in costs(compared(larger, FOUR))]
    assert any("as much" in one for one in said)
    shares = [
        int(found) for one in said for found in re.findall(r"([\d,]+)%", one.replace(",", ""))
    ]
    assert all(share <= 900 for share in shares)


def test_the_parts_are_all_of_the_step():
    now, _ = alone(FOUR)
    parts = ("cost_compute", "cost_bubble", "cost_exposed", "cost_rest")
    assert sum(now[name][0] for name in parts) == pytest.approx(now["cost_step"][0])


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_cost_has_its_words(language):
    picture = compared(FOUR, EIGHT, language)
    assert [row[0] for row in costs(picture)] == [PAGE[name][language] for name in COSTS]
    _, batch = alone(FOUR)
    facts = {"model": "Llama 3 70B", "cluster": "DGX H100", "batch": batch}
    assert unparted(PAGE["cost_of"][language].format(**facts)) in html.unescape(picture)


def test_the_same_layout_costs_the_same_and_another_model_something_else():
    rows = costs(compared(FOUR, FOUR))
    assert all(kept == now for _, kept, now, _ in rows)
    assert {said for *_, said in rows} == {PAGE["cost_same"]["en"]}
    assert costs(compared(FOUR, FOUR, recompute="full")) != rows


def test_a_layout_that_the_model_does_not_allow_says_why_in_place_of_its_costs():
    stages = State(nodes=16, tp=2, pp=64, vpp="2", layers="80")  # as many as 128 layers
    longer = replace(EIGHT, layers="Et*10|(t*10|)*6,t*11L")  # a layer more than is trained
    for other in (stages, longer):
        picture = compared(FOUR, other)
        assert all(kept == said == "–" != now for _, kept, now, said in costs(picture))
        assert picture.count('role="alert"') == 1


def test_a_layout_on_screen_that_is_refused_leaves_the_kept_one_its_costs():
    """Alone, for there is no batch to train both with."""
    kept, _ = alone(EIGHT)
    rows = costs(compared(replace(FOUR, global_batch="3"), EIGHT))
    assert [row[1:] for row in rows] == [[kept[name][1], "–", "–"] for name in COSTS]


def test_a_slide_of_layouts_that_the_model_does_not_allow_has_their_pictures():
    stages = State(nodes=16, tp=2, pp=64, vpp="2", layers="80")
    context = Context.of(replace(FOUR, view="compare", kept=f"?{to_query(stages)}"))
    titles = [title for title, _ in compare_slide(context)]
    kinds = [title.split(":")[0] for title in titles]
    assert kinds == sorted(kinds)
    assert set(map(kinds.count, kinds)) == {2}  # of each kind both layouts, side by side


def test_a_pipeline_layout_is_compared_on_either_side():
    """It is for as many stages as it says: the other layout deals the same layers by itself."""
    dealt = replace(EIGHT, layers="Et*10|(t*10|)*6,t*10L")
    assert costs(compared(FOUR, dealt)) == costs(compared(FOUR, EIGHT))
    assert costs(compared(dealt, FOUR)) == costs(compared(EIGHT, FOUR))
    assert costs(compared(FOUR, replace(dealt, layers="Et*12|(t*10|)*6,t*8L"))) != costs(
        compared(FOUR, EIGHT)
    )


def test_every_ready_pair_shows_what_its_name_says():
    """Something costs more and something less; and nothing that its name does not say differs."""
    differ = {"pair_nodes": {"tp"}, "pair_order": {"framework"}, "pair_zero": {"pp", "zero"}}
    for name, pair in PAIRS.items():
        state = from_query(pair)
        kept = from_query(state.kept)
        changed = {
            one
            for one in (*differ[name], "micro_batch", "global_batch", "model", "nodes", "tp", "pp")
            if str(getattr(state, one)) != str(getattr(kept, one))
        }
        assert changed == differ[name], name
        told = " ".join(row[-1] for row in costs(answer(state).picture))
        for word in ("cost_better", "cost_worse"):
            assert PAGE[word]["en"].split(": ")[1] in told, (name, word)
    step, *_ = costs(answer(from_query(PAIRS["pair_nodes"])).picture)
    assert "worse" in step[-1]
