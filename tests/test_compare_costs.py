"""What two layouts cost beside each other, against the maths of each alone."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from markup import cells, only, written

from descriptions import LANGUAGES, PAGE, REASONS
from groups.presets import PRESETS
from request.answers.compare.sides import (
    COSTS,
    PARTS,
    Cost,
    cost_of,
    names_of_sides,
    settings_that_differ,
)
from request.context import Context
from request.link import from_query, published, to_query
from request.named.kept import kept_context, query_to_keep
from request.resolve import from_preset, resolve
from request.state import State
from request.trained import trained_of
from views.base.html import unparted
from views.compare.view import PAIRS, compare_slide, compare_summary
from views.page import answer

EIGHT = State(nodes=16, tp=4, pp=8, layers="80")
FOUR = State(nodes=16, tp=8, pp=4, layers="80")


def compared(now: State, kept: State, language: str = "en", **asked: str) -> str:
    query = f"?{to_query(kept)}"
    return answer(replace(now, lang=language, view="compare", kept=query, **asked)).picture


def costs(picture: str) -> list[list[str]]:
    """The cells of the table, row by row."""
    rows = cells(picture, "costs")
    assert rows
    return [[written(cell).replace("\xa0", " ") for cell in row] for row in rows]


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
    assert PAGE["verdict_same"]["en"] == verdict_of(FOUR, FOUR)
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
    assert [title for title, _ in compare_slide(context)] == ["tp 2 pp 64", "tp 8 pp 4 dp 4"]
    assert [picture.mesh.size("pp") for _, picture in compare_slide(context)] == [64, 4]


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
        assert "▲" in told, name
        assert "▼" in told, name


# -- the verdict ---------------------------------------------------------------------------------


def verdict_of(now: State, kept: State, language: str = "en") -> str:
    """The sentence at the top."""
    said = only(compared(now, kept, language), ".verdict[role=status] > p:first-child")
    return written(said).replace("\xa0", " ")


def decided(now: State, kept: State) -> dict[str, str]:
    """What each difference counts."""
    rows = costs(compared(now, kept))
    return {name: row[-1].partition(": ")[2] for name, row in zip(COSTS, rows)}


GPT = {"micro_batch": "4", "global_batch": "128", "model": "gpt-18.4b"}
IN_NODE, ACROSS = State(tp=8, pp=1, **GPT), State(tp=16, pp=1, **GPT)
LARGE = {"model": "llama3-70b", "global_batch": "32", "nodes": 4}
FULL, FITTING = State(tp=8, pp=1, **LARGE), State(tp=8, pp=4, **LARGE)


def test_the_quicker_of_two_that_fit_is_better_and_says_by_what():
    said = verdict_of(ACROSS, IN_NODE)
    first, second = alone(IN_NODE)[0], alone(ACROSS)[0]
    quick, slow = (cost["cost_step"][1].partition(" (")[0] for cost in (first, second))
    assert said.startswith(f"tp 8 dp 2 is better: {quick} a step against {slow} of tp 16. Mostly: ")
    assert "less for tp" in said
    assert verdict_of(ACROSS, IN_NODE) == verdict_of(IN_NODE, ACROSS)
    facts = {"better": "tp 8 dp 2", "worse": "tp 16", "quick": quick, "slow": slow}
    words = PAGE["verdict_time"]["zh"].format(**facts)
    assert verdict_of(ACROSS, IN_NODE, "zh").startswith(words)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_makes_a_step_quicker_is_not_its_memory(language):
    """Both are close to the limit, which is told, but is no reason for seconds."""
    one, two = (State(**published(f"llama3-405b-{row}")) for row in (1, 2))
    said = verdict_of(two, one, language)
    mostly = PAGE["verdict_mostly"][language].split("{reason}")[0]
    computes = REASONS["computes-less"][language].split("{seconds}")[-1].split("{")[0].strip()
    assert computes.split("(")[0].strip() in said.partition(mostly)[2]
    close = PAGE["verdict_close_both"][language].split("{first}")[0].strip()
    assert said.count(close) == 1


def test_a_layout_that_does_not_fit_is_not_better_by_being_quicker():
    cost, other = (alone(state)[0] for state in (FULL, FITTING))
    needed, memory = cost["cost_memory"][1], other["cost_memory"][1]
    needed, said = needed.removesuffix(" GiB"), verdict_of(FULL, FITTING)
    start = f"tp 8 dp 4 does not fit: {needed} of 79.6 GiB. tp 8 pp 4 needs {memory}"
    assert said.startswith(start)
    why = decided(FULL, FITTING)
    assert why["cost_memory"] == PAGE["why_over"]["en"]
    assert why["cost_step"] == PAGE["why_unfit"]["en"]
    assert not any(word in " ".join(why.values()) for word in ("better", "worse"))
    assert decided(FITTING, FULL)["cost_memory"] == PAGE["why_fits"]["en"]
    short = {"capacity": "20"}
    assert verdict_of(replace(FULL, **short), FITTING).startswith("Neither fits: ")


def test_steps_within_the_error_are_told_apart_by_their_bytes():
    state = from_query(PAIRS["pair_zero"])
    kept = from_query(state.kept)
    said, (many, few) = verdict_of(state, kept), (alone(one)[0] for one in (state, kept))
    assert said.startswith("About the same: ")
    times = many["cost_across"][0] / few["cost_across"][0]
    assert f"dp 32 sends {times:.0f} times as many bytes between nodes" in said
    assert decided(state, kept)["cost_across"] == PAGE["why_worse"]["en"]
    rack = {"cluster": "gb200-nvl72", "gpus_per_node": "4", "nodes": 32}
    one, other = (State(tp=4, pp=1, zero=zero, **rack) for zero in ("1", "0"))
    assert "between NVLink domains" in verdict_of(other, one)


def test_a_part_that_does_not_decide_says_so():
    """The parts differ in seconds that sum up to the difference of the steps."""
    sure = PAGE["sure_short"]["en"].format(share="99%")
    assert decided(ACROSS, IN_NODE)["cost_step"] == PAGE["why_worse"]["en"] + sure
    first, second = alone(IN_NODE)[0], alone(ACROSS)[0]
    for now, kept, costs_now, costs_kept in (
        (ACROSS, IN_NODE, second, first),
        (IN_NODE, ACROSS, first, second),
    ):
        why = decided(now, kept)
        step = costs_now["cost_step"][0] - costs_kept["cost_step"][0]
        apart = {name: costs_now[name][0] - costs_kept[name][0] for name in PARTS}
        assert sum(apart.values()) == pytest.approx(step)
        for name, seconds in apart.items():
            against = seconds * step < 0 and abs(seconds) > 1e-3 * costs_kept[name][0]
            assert why[name].endswith("outweighed") == against
        assert why["cost_across"] == PAGE["why_timed"]["en"]
    mixed = decided(from_query(PAIRS["pair_zero"]), from_query("nodes=4&tp=1&pp=4&zero=1"))
    assert "outweighed" in mixed["cost_compute"]


def test_more_gpus_are_told_with_what_they_take():
    small, large = State(tp=4), State(nodes=4, tp=4)
    said = verdict_of(replace(large, global_batch="64"), small)
    assert "tp 4 pp 2 dp 4 has 2 times as many GPUs: " in said
    assert "GPU-seconds a step" in said


def test_a_layout_that_cannot_be_trained_is_never_better():
    stages = State(nodes=16, tp=2, pp=64, vpp="2", layers="80")
    assert verdict_of(FOUR, stages).startswith("tp 2 pp 64 cannot be trained like this; tp 8 pp 4")
    assert 'class="verdict"' not in compared(replace(FOUR, global_batch="3"), EIGHT)


def test_the_slide_says_the_verdict_of_the_page():
    for now, kept in ((ACROSS, IN_NODE), (FULL, FITTING)):
        context = Context.of(replace(now, view="compare", kept=f"?{to_query(kept)}"))
        page, _, sure = verdict_of(now, kept).partition(" 99% sure that")
        assert compare_summary(context).startswith(page)
        assert bool(sure) == (now is ACROSS)  # on the slide it stands beside the steps
        _, ((_, chart),) = compare_slide(context)  # the table, where jobs are not readable
        assert chart.heads[1:3] == names_of_sides(Context.of(kept), Context.of(now))
        assert [row[-1] for row in chart.rows] == [row[-1] for row in costs(compared(now, kept))]


# -- how each is trained, and what it is called --------------------------------------------------


def test_each_side_is_trained_as_its_link_says():
    zero, full = replace(IN_NODE, zero="3"), replace(IN_NODE, recompute="full")
    for other in (zero, full):
        kept, now = alone(other)[0], alone(IN_NODE)[0]
        rows = costs(compared(IN_NODE, other))
        assert [row[1:3] for row in rows] == [[kept[name][1], now[name][1]] for name in COSTS]
    # A link that says nothing of training is about the layout alone.
    rows = costs(compared(zero, IN_NODE))
    assert {row[1] for row in rows if row[1] != row[2]} == set()


def test_what_is_kept_stays_as_it_is_whatever_is_changed_afterwards():
    for state in (IN_NODE, replace(IN_NODE, zero="2"), from_preset("llama3-405b-1")):
        kept = from_query(query_to_keep(state))
        for name, value in (("zero", "3"), ("recompute", "full")):
            now = replace(state, **{name: value}, view="compare", kept=f"?{query_to_keep(state)}")
            settings = settings_that_differ(kept_context(Context.of(now)), Context.of(now), "en")
            assert [row[0] for row in settings] == [name]
        assert kept_context(Context.of(replace(kept, kept=f"?{query_to_keep(state)}")))


def test_layouts_are_called_by_their_sizes_or_as_they_were_published():
    def names(now: State, kept: State) -> tuple[str, str]:
        return names_of_sides(Context.of(kept), Context.of(now))

    assert names(ACROSS, IN_NODE) == ("tp 8 dp 2", "tp 16")
    assert names(State(ep=2), State(tp=1, pp=1)) == ("dp 16", "tp 2 pp 2 dp 4 ep 2")
    published = from_query("preset=llama3-405b-1")
    other = from_query("preset=llama3-405b-2")
    assert names(other, published) == (
        PRESETS["llama3-405b-1"].name,
        PRESETS["llama3-405b-2"].name,
    )
    # Of another model its name would be taken for what is trained.
    assert names(State(), published)[0] == "tp 8 pp 16 dp 64"
    assert names(replace(published, zero="1"), published) == (
        f"{PRESETS['llama3-405b-1'].name}, ZeRO 2",
        f"{PRESETS['llama3-405b-1'].name}, ZeRO 1",
    )
    llama = State(framework="llama3")
    assert names(llama, State())[1] == "tp 2 pp 2 dp 4, Llama 3 trainer"
    own = State(framework="own", order="dp-tp-cp-ep-pp")
    assert names(own, llama)[1] == "tp 2 pp 2 dp 4, dp-tp-cp-ep-pp"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("kept", [State(), State(tp=4), State(zero="3"), State(nodes=4, ep=2)])
def test_two_layouts_that_differ_have_different_names(kept, language):
    now = State(lang=language, recompute="full", model="mixtral-8x7b")
    first, second = names_of_sides(Context.of(kept), Context.of(now))
    assert first != second
