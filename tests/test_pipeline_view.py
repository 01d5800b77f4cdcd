"""The Pipeline view as HTML: what is asked, what is refused and cured, what stands there."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import select, text_of, values, written
from reference.plans import read_plan

from descriptions import CONTROLS, ESTIMATE
from groups import LayoutError
from request.answers.estimate.words import about
from request.answers.pipeline.inputs import Stage, stage_numbers, stages_of, weights_of
from request.context import Context
from request.inputs import fields_of
from request.state import State
from request.words import sentence
from training.pipeline import SCHEDULES, Durations, plan_of, schedule, simulate
from training.pipeline.spec import checked
from views.memory.view import memory_html
from views.pipeline.view import pipeline_html

DATA = Path(__file__).parent / "data"


def view(language="en", controls=None, **asked) -> str:
    """The view of some controls; ``asked`` are fields of the view or of the column."""
    state = State(**{"pp": 4, **(controls or {})}).changed(asked)
    return pipeline_html(Context.of(replace(state, lang=language)))


def row(page: str, title: str) -> list[str]:
    """The cells of the row of a table that begins with a title."""
    heads = [head for head in select(page, "th[scope=row]") if text_of(head) == title]
    assert heads, title
    return [text_of(cell) for cell in select(heads[0].parent, "td")]


def strips(page: str) -> list[dict]:
    return next(iter(values(page, "data-strips")), [])


def cures(page: str) -> list[dict]:
    """What the buttons of refusals set, of the view or of the column; not those that lead on."""
    return [one for one in values(page, "data-set") if "view" not in one]


def refusals(page: str) -> list[str]:
    return [text_of(said) for said in select(page, "[role=alert] > p:first-child")]


# --- What is shown ---

SPAN = "Bubble, as a share of the longest span of a rank (as zero-bubble papers count)"


def test_rows_are_the_real_ranks_of_the_chosen_pipeline_group():
    assert strips(view())[0]["ranks"] == [0, 4, 8, 12]
    assert strips(view(pipe_group="3"))[0]["ranks"] == [3, 7, 11, 15]
    other = view(controls={"framework": "llama3"})  # numbers dp last
    assert strips(other)[0]["ranks"] == [0, 2, 4, 6]


def test_defaults_are_1f1b_and_four_micro_batches_a_stage_or_what_the_model_says():
    assert (strips(view())[0]["m"], strips(view())[0]["stages"]) == (16, 4)
    page = view(controls={"vpp": "2", "global_batch": "64", "micro_batch": "2"})
    assert (strips(page)[0]["m"], strips(page)[0]["stages"]) == (16, 8)
    assert "m = 64 / (2 × dp 2) = 16." in text_of(page)
    said = text_of(view(nodes=1, pp=8, tp=1, global_batch="1024"))
    assert "m = 1,024 micro-batches. m = 1,024 / (1 × dp 1) = 1,024." in said


def test_figures_stand_beside_their_closed_forms_with_all_three_bubbles():
    page = view(schedule="zb-2p", against="zb-h2", micro_batches="8")
    assert row(page, "Bubble, as a share of total time") == ["11.11%", "11.11%"]
    assert row(page, SPAN) == ["0%", "0%"]
    assert "占 rank 最长跨度的 0%" in view("zh", schedule="zb-2p", micro_batches="8")
    page = view(schedule="1f1b", against="zb-h1", micro_batches="8")
    assert row(page, SPAN) == ["27.27%", "11.11%"]
    assert row(page, "The step, in units") == ["33", "27"]
    assert row(page, "Bubble, as a share of ideal time") == ["37.5%", "12.5%"]
    assert row(page, "Bubble, as a share of total time") == ["27.27%", "11.11%"]
    assert row(page, "Closed form") == [
        "idle of a rank: (p - 1)(F + B) = 9; as simulated",
        "idle of a rank: (p - 1)(F + I - W) = 3; as simulated",
    ]
    assert row(page, "Messages of a rank in the step") == ["8 to 16", "8 to 16"]


def test_a_closed_form_that_does_not_hold_says_what_it_needs():
    cell = row(view(schedule="1f1b", micro_batches="8", t_send="0.5"), "Closed form")[0]
    assert cell == (
        "idle of a rank: (p - 1)(F + B) = 9; simulated: 17. It holds for equal stages and free "
        "messages."
    )


def test_times_are_of_a_whole_rank_whatever_its_chunks():
    page = view(
        **{"schedule": "interleaved", "against": "gpipe", "micro_batches": "8"},
        **{"t_f": "2", "t_i": "3", "t_w": "3"},
    )
    busy = 8 * (2 + 6)
    assert row(page, "The step, in units") == [f"{busy + 3 * 8 / 2:g}", f"{busy + 3 * 8}"]


@every("show", [memory_html, pipeline_html])
def test_the_step_in_seconds_is_that_of_the_step_time_view(show):
    context = Context.of(State(nodes=2, tp=2, pp=4, micro_batches="8"))
    found = about(context.trained.estimate(context.layout))
    assert ESTIMATE["step"]["en"].format(about=found) in text_of(show(context))
    refused = Context.of(State(pp=4, schedule="dualpipe", micro_batches="3"))
    assert "A step takes" not in text_of(show(refused))
    said = "The picture counts time in units: one forward of a rank takes 2.5."
    assert said in text_of(view(t_f="2.5"))


def test_zb_2p_is_found_for_the_times_and_the_memory_on_the_page():
    # 2401.10241, Table 5, first row: 4.33 %; h = 2304, a = 24, s = 1024.
    times = {"t_f": "18.522", "t_i": "18.086", "t_w": "9.337", "t_send": "0.601"}
    known = {"schedule": "zb-2p", "micro_batches": "24", **times}
    page = view(controls={"nodes": "8", "pp": "8"}, w_share="0.366", **known)
    assert row(page, SPAN) == ["4.33%"]
    peak = "Peak activations, in micro-batches of a rank's layers"
    assert row(page, peak) == ["20 to 24"]  # W holds 0.366 of one: no more than 2p = 16 in all
    whole = view(controls={"nodes": "8", "pp": "8"}, **known)
    assert row(whole, peak) == ["16 (min(m, 2p))"]
    assert row(whole, SPAN) == ["10.15%"]
    refused = ["Share held for W must be a number from 0 to 1, not 2."]
    assert refusals(view(w_share="2")) == refused


def test_bytes_and_the_optimizer_are_told_where_they_are_given():
    page = view(schedule="1f1b", micro_batches="8", message="250", t_optimizer="2")
    assert row(page, "Messages of a rank in the step") == ["8 to 16; 2 to 4 GB"]
    assert row(page, "With the optimizer after the last op of all") == ["35"]
    plain = view(schedule="1f1b")
    assert "optimizer after" not in plain
    assert " GB" not in text_of(plain)


def test_without_a_pipeline_it_says_so_and_offers_sizes_that_work():
    page = view(controls={"pp": 1})
    assert "pp is 1: there is no pipeline." in text_of(page)
    assert not strips(page)
    labels = [written(button) for button in select(page, ".pipeline-fixes [data-set]")]
    assert labels == [f"Set PP to {pp}" for pp in (2, 4, 8)]
    assert values(page, "data-set", ".pipeline-fixes ") == [{"pp": "2"}, {"pp": "4"}, {"pp": "8"}]


def test_a_very_long_pipeline_is_shown_short_and_the_longest_are_not_drawn():
    page = view(controls={"pp": 512, "nodes": 512, "tp": 1})
    assert strips(page)[0]["m"] == 128
    page = view(controls={"pp": 4096, "nodes": 1024, "tp": 1})
    assert "A pipeline of 4,096 ranks is longer than the 1,024 that are drawn." in text_of(page)
    assert "Set PP to 2" in text_of(page)


@every("name", SCHEDULES)
@every("language", ["en", "zh"])
def test_every_schedule_is_drawn_with_all_its_ops(name, language):
    page = view(language, schedule=name, micro_batches="8")
    assert not refusals(page)
    (strip,) = strips(page)
    ops = sum(len(place.split("&")) for row in schedule(name, p=4, m=8) for place in row)
    drawn = re.search(r'class="pipeline-plot".*?</svg>', page)[0]
    assert len(re.findall(r"M\d+ \d+h\d+v\d+h-", drawn)) == 4 + ops  # the ground of 4 rows
    assert strip["stages"] == 4 * checked(name, 4, 8).chunks


def test_the_largest_pipeline_is_small_to_send():
    page = view(
        controls={"pp": 64, "nodes": 64},
        schedule="interleaved",
        against="zb-v",
        micro_batches="512",
    )
    assert len(strips(page)) == 2
    assert len(page) < 400_000


@every(
    "schedules, ends",
    [
        ({"schedule": "1f1b"}, "B"),
        ({"schedule": "zb-h1"}, "I"),
        ({"schedule": "dualpipe"}, "B or I"),
        ({"schedule": "1f1b", "against": "zb-h1"}, "B or I"),
    ],
)
def test_the_legend_says_what_frees_activations_in_the_schedules_that_are_drawn(schedules, ends):
    page = view(micro_batches="16", **schedules)
    said = [node.text(deep=False) for node in select(page, "*")]
    assert [held.partition("held until ")[2] for held in said if "held until " in held] == [ends]


def test_two_schedules_of_the_same_sizes_are_drawn_once():
    assert len(strips(view(schedule="1f1b", against="1f1b"))) == 1
    assert len(strips(view(schedule="1f1b", against="gpipe"))) == 2


# --- Layers ---

# Layers of stages as megatron-core 0.16.1 deals them; the page counts embedding and loss together.
CASES = {
    case["id"]: case
    for case in json.loads((DATA / "pipeline_layers.json").read_text(encoding="utf-8"))["cases"]
    if case["kind"] in ("layers", "error")
    and case["config"].get("emb") == case["config"].get("loss")
    and not isinstance(case["config"].get("layout"), list)
}


def stages_for(name="1f1b", p=4, v=None, controls=None, **asked) -> tuple[Stage, ...] | None:
    sizes = checked(name, p, 8 * p, v)
    return stages_of(sizes, State(pp=p, **(controls or {}), **asked))


@every("key", CASES)
def test_stages_hold_the_layers_that_megatron_gives_them(key):
    case, sizes = CASES[key], CASES[key]["config"]
    chunks = case.get("vpp") or sizes.get("vpp") or 1
    given = {
        "controls": {"layers": str(sizes["n"]), "account": sizes.get("emb", False)},
        "first_layers": sizes.get("first", ""),
        "last_layers": sizes.get("last", ""),
        "pipe_layout": sizes.get("layout", ""),
    }
    name, pp = "interleaved" if chunks > 1 else "1f1b", sizes["pp"]
    if case["kind"] == "error":
        with pytest.raises(LayoutError):
            stages_for(name, pp, chunks, **given)
        return
    found = stages_for(name, pp, chunks, **given)
    for rank, dealt in enumerate(case["decoder_layers_0based"]):
        assert [list(found[chunk * pp + rank].layers) for chunk in range(chunks)] == dealt


def test_a_stage_is_written_with_its_ends():
    stages = stages_for(controls={"layers": "16"})
    assert [stage.text for stage in stages] == ["E 0–3", "4–7", "8–11", "12–15 L"]


def test_in_a_v_layers_go_forth_and_back_over_the_ranks():
    stages = stages_for("zb-v", controls={"layers": "16"})
    assert [stage.text for stage in stages][:2] == ["E 0–1", "2–3"]
    held = [[stages[n].text for n in row] for row in stage_numbers(checked("zb-v", 4, 8))]
    assert held[0] == ["E 0–1", "14–15 L"]
    assert held[3] == ["6–7", "8–9"]


def test_first_and_last_counts_and_accounting_make_stages_uneven():
    uneven = stages_for(controls={"layers": "10"}, first_layers="1", last_layers="3")
    assert [len(stage.layers) for stage in uneven] == [1, 3, 3, 3]
    counted = {"layers": "14", "account": True}
    stages = stages_for(controls=counted)
    assert [len(stage.layers) for stage in stages] == [3, 4, 4, 3]
    assert weights_of(stages, State(**counted)) == (1, 1, 1, 1)


def test_a_layout_string_may_stand_in_either_box():
    layout = "Et*3|(tt|)*29,m|L"
    one = stages_for("interleaved", p=16, v=2, controls={"layers": layout})
    other = stages_for("interleaved", p=16, v=2, controls={"layers": "61"}, pipe_layout=layout)
    assert one == other
    assert (one[0].text, one[30].text, one[31].text) == ("E 0–2", "m", "L")


def test_stages_without_a_layer_are_flagged():
    page = view(controls={"layers": "2", "account": True})
    assert "Stages or virtual stages without a layer: 0, 3." in text_of(page)
    assert "stage 0 E no layers" in text_of(page)
    assert "pipeline-empty" in page


def test_slow_stages_show_in_the_timeline_if_asked_for():
    sizes = {
        "controls": {"layers": "10", "micro_batches": "8"},
        "first_layers": "1",
        "last_layers": "3",
    }
    even, weighed = (view(**sizes, by_layers=on) for on in ("", "1"))
    assert row(even, "The step, in units") == ["33"]
    assert row(weighed, "The step, in units") != ["33"]


# --- Refusals ---

REFUSED = {
    "m": {"schedule": "interleaved", "micro_batches": "6"},
    "few": {"schedule": "dualpipe", "micro_batches": "3"},
    "odd": {"schedule": "dualpipe", "controls": {"pp": 1 + 2, "nodes": 3}},
    "group": {"schedule": "interleaved", "group_size": "3"},
    "vpp": {"schedule": "interleaved", "vpp": "1"},
    "chunks": {"schedule": "1f1b", "vpp": "2"},
    "contradiction": {"micro_batches": "12", "controls": {"global_batch": "64"}},
    "against": {"schedule": "1f1b", "against": "dualpipev", "micro_batches": "7"},
    "layers": {"controls": {"layers": "30"}},
    "layers-v": {"schedule": "zb-v", "controls": {"layers": "20"}},
    "layout": {"pipe_layout": "Et|tt|tL", "controls": {"layers": "4", "nodes": 3}},
    "layout-v": {"pipe_layout": "Et|t|t|t|t|t|t|tL", "controls": {"layers": "8"}},
    "first": {"first_layers": "0", "controls": {"layers": "8"}},
    "batch": {"controls": {"global_batch": "9", "micro_batch": "2"}},
    "pipe_group": {"pipe_group": "4"},
}


@every("language", ["en", "zh"])
@every("key", REFUSED)
def test_what_cannot_be_is_refused_in_a_sentence_whose_buttons_work(key, language):
    given = REFUSED[key]
    page = view(language, **given)
    said = refusals(page)
    assert len(said) == 1
    sizes = {name: value for name, value in given.items() if name != "controls"}
    for cure in cures(page):
        mended = view(language, given.get("controls"), **{**sizes, **cure})
        assert said[0] not in refusals(mended)
        assert strips(mended)
    assert cures(page)


def test_a_refused_comparison_leaves_the_schedule_itself():
    page = view(schedule="1f1b", against="dualpipe", micro_batches="3")
    assert len(strips(page)) == 1
    assert {"against": ""} in cures(page)


def test_a_refused_split_of_layers_leaves_the_timeline():
    assert strips(view(controls={"layers": "30"}))


def test_another_pp_comes_with_the_micro_batches_that_it_was_tried_with():
    page = view(schedule="dualpipe", controls={"pp": 3, "nodes": 3}, t_f="2")
    assert {"pp": "2", "micro_batches": "12"} in cures(page)


UNCHECKED = {
    "pipeline-deadlock": lambda: simulate(read_plan(STUCK)),
    "bad-duration": lambda: simulate(plan_of("gpipe", 2, 2), Durations(forward=-1)),
    "not-one-per-stage": lambda: simulate(plan_of("gpipe", 2, 2), Durations(forward=[1.0])),
    "too-many-ops": lambda: plan_of("gpipe", 4096, 4096),
    "schedule-has-chunks": lambda: plan_of("gpipe", 2, 2, 2),
    "schedule-needs-stages": lambda: plan_of("interleaved", 1, 2, 2),
    "schedule-has-no-groups": lambda: plan_of("gpipe", 2, 2, group_size=2),
    "rounds-do-not-divide": lambda: plan_of("interleaved-zb", 4, 13),
    "group-too-large": lambda: plan_of("interleaved", 2, 4, 2, 8),
}
STUCK = [["0F0", "0B0", "0F1", "0B1"], ["1F1", "1F0", "1B0", "1B1"]]
SAID = {
    "bad-duration": "forward must be a number from 0 to 1,000,000,000, not -1",
    "not-one-per-stage": "forward has 1 numbers for 2 stages",
    "too-many-ops": "this schedule has 67,108,864 ops, more than the 2,000,000 that are simulated",
    "rounds-do-not-divide": "13 micro-batches do not make 3 equal rounds",
    "group-too-large": "a group of 8 micro-batches is larger than the 4 that there are",
}
"""Each number in its place."""


@every("language", ["en", "zh"])
@every("code", UNCHECKED)
def test_every_refusal_of_the_maths_has_its_sentence(code, language):
    with pytest.raises(LayoutError) as caught:
        UNCHECKED[code]()
    assert caught.value.code == code
    assert SAID.get(code, caught.value.what) == caught.value.what
    said = sentence(caught.value, language)
    assert "{" not in said
    assert said.endswith({"en": ".", "zh": "。"}[language])


STRANGE = st.one_of(
    st.none(),
    st.booleans(),
    st.floats(),
    st.integers(-(10**30), 10**30),
    st.text(max_size=8),
    st.lists(st.integers(), max_size=2),
    st.sampled_from(["<img>", "1e9", "NaN", "٣", "9" * 40, *SCHEDULES]),
)


@settings(deadline=None, max_examples=100)
@given(
    st.dictionaries(st.sampled_from(fields_of("pipeline")), STRANGE, max_size=4),
    st.sampled_from(["en", "zh"]),
)
def test_strange_input_is_refused_and_never_breaks_the_page(asked, language):
    page = view(language, **asked)
    assert "<img" not in page
    assert page.count("<div") == page.count("</div")


def test_every_input_has_its_words():
    assert set(fields_of("pipeline")) <= set(CONTROLS)
