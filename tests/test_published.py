"""What sources of published layouts measured, beside what is estimated of them and on the page.

published_steps.json holds seconds of a step that were worked out of 25 sources apart from this
project, each with its convention.
"""

from __future__ import annotations

import csv
import json
from statistics import median

import pytest
from cases import every
from recorded import DATA

from descriptions import CONTROLS, DERIVED, ESTIMATE, PAGE
from formats.roles.presets import PLANS
from groups.presets import PRESETS
from request.answers.estimate.api import step_facts
from request.answers.estimate.measured import measured_of, measured_text
from request.answers.memory import memory_facts
from request.answers.search import search_facts
from request.answers.traffic import traffic_facts
from request.context import Context
from request.inputs import FIELDS
from request.link import published, to_query
from request.roles.opened import changed_plan, preset_state
from request.roles.pages import cast_of
from request.state import State
from request.words import change_label
from training.models import model_of_preset
from training.published import derived_options, published_steps
from views.compare.view import compare_html, compare_summary
from views.estimate.view import estimate_html, estimate_summary
from views.memory.view import memory_html, memory_summary
from views.published import TAKEN, source_html, taken_line
from views.search.view import search_html, search_summary

STEPS = {
    row["preset"]: (row["low"], row["high"])
    for row in json.loads((DATA / "published_steps.json").read_text())["rows"]
}


def shown(name: str, **changes: str) -> Context:
    return Context.of(State(**published(name)).changed({"preset": name, **changes}))


def plain(html: str) -> str:
    """With spaces where lines do not break."""
    return str(html).replace("\xa0", " ")


def estimated(name: str):
    context = shown(name)
    return context.trained.estimate(context.layout)


# -- the figures ---------------------------------------------------------------------------------


def test_nearly_every_measured_step_is_inside_the_interval_that_is_shown():
    assert len(STEPS) == 25
    wrong = []
    for name, (low, high) in STEPS.items():
        found = estimated(name)
        if not (found.low <= high and low <= found.high):
            wrong.append(name)
    assert len(wrong) <= 1, wrong


def test_estimates_of_published_layouts_are_as_near_as_the_page_says():
    off = [published_steps()[name].off(estimated(name).seconds) for name in STEPS]
    assert median(off) <= 0.10
    assert max(off) <= 0.30


@every("name", STEPS)
def test_the_data_says_what_the_sources_come_to(name):
    step, (low, high) = published_steps()[name], STEPS[name]
    assert low <= step.low <= step.high <= high


@every("name", [name for name, step in published_steps().items() if step.counted == "tokens"])
def test_tokens_a_second_and_gpu_make_the_step(name):
    """Tokens of whole sequences a second are known to half a sequence, which matters where these
    are few."""
    preset, step = PRESETS[name], published_steps()[name]
    batch, speed = preset.model["global_batch"], float(step.value.replace(",", ""))
    sequences = speed * preset.world_size / preset.model["seq"]
    half = 0.5 if step.low < step.high else 0.0
    assert step.low == pytest.approx(batch / (sequences + half), rel=1e-3)
    assert step.high == pytest.approx(batch / (sequences - half), rel=1e-3)
    assert not half or (sequences.is_integer() and sequences < 20)


# -- what is shown -------------------------------------------------------------------------------


@every("name", published_steps())
def test_a_layout_that_was_measured_says_so_and_another_does_not(name):
    assert measured_of(shown(name)) is published_steps()[name]
    batch = shown(name).trained.batch.global_batch
    for other in ({"global_batch": str(2 * batch)}, {"zero": "3"}, {"cluster": "dgx-b200"}):
        assert measured_of(shown(name, **other)) is None


def test_the_layout_counts_and_not_the_name_in_the_menu():
    state = State(**published("korthikanti-175b"))
    assert measured_of(Context.of(state)).low == 13.75
    named = state.changed({"preset": "llama3-405b-1"})
    assert measured_of(Context.of(named)).low == 13.75


LINES = {
    "en": "Measured: 11.6 to 12.6 s, Table 4.",
    "zh": "实测：11.6 到 12.6 s，表 4。",  # noqa: RUF001
}


@every("language", LINES)
@every("html", [estimate_html, memory_html, search_html])
def test_every_view_of_a_step_shows_what_was_measured(html, language):
    said = plain(html(shown("llama3-405b-1", lang=language)))
    assert LINES[language] in said
    assert "https://arxiv.org/abs/2407.21783" in said
    other = html(shown("llama3-405b-1", lang=language, global_batch="4096"))
    assert 'class="measured"' in said
    assert 'class="measured"' not in other


@every("language", LINES)
@every("summary", [estimate_summary, search_summary])
def test_slides_show_what_was_measured(summary, language):
    assert LINES[language] in summary(shown("llama3-405b-1", lang=language))


@every("language", LINES)
def test_a_slide_of_memory_does_not_end_in_seconds(language):
    assert LINES[language] not in memory_summary(shown("llama3-405b-1", lang=language))


@every("language", LINES)
def test_compare_shows_what_was_measured_of_either_side(language):
    kept = f"?{to_query(shown('llama3-405b-1').state)}"
    context = shown("llama3-405b-2", lang=language, kept=kept)
    second = measured_text(context)
    for said in map(plain, (compare_html(context), compare_summary(context))):
        assert second in said
        assert LINES[language] in said


@every("facts", [step_facts, memory_facts, traffic_facts, search_facts])
def test_programs_are_told_what_was_measured(facts):
    measured = facts(shown("llama3-405b-2"))["measured"]
    assert measured["preset"] == "llama3-405b-2"
    assert (measured["low_seconds"], measured["high_seconds"]) == (6.23, 6.75)
    assert (measured["source"], measured["place"]) == ("arXiv:2407.21783", "Table 4")
    assert facts(shown("llama3-405b-2", global_batch="4096"))["measured"] is None


def test_every_way_of_counting_has_its_words():
    counted = {step.counted for step in published_steps().values()}
    assert {name for name in ESTIMATE if name.startswith("counted_")} == {
        f"counted_{name}" for name in counted
    }


# -- what is derived -----------------------------------------------------------------------------


def _derived_rows() -> list[dict[str, str]]:
    import training.published

    path = training.published.__file__.replace("published.py", "derived.csv")
    with open(path, encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))


def test_every_derived_option_is_of_a_layout_has_a_field_and_a_reason():
    rows = _derived_rows()
    for row in rows:
        assert any(name.startswith(row["preset"]) for name in PRESETS), row
        assert FIELDS[row["field"]].of in ("job", "training"), row
        assert row["field"] in CONTROLS, row
    assert {row["reason"] for row in rows} == set(DERIVED)


@every("name", PRESETS)
def test_nothing_is_derived_that_the_source_states(name):
    stated = PRESETS[name].model
    derived = derived_options(name)
    assert not {option.field for option in derived} & set(stated)
    state = State(**published(name))
    for option in derived:
        assert str(getattr(state, option.field)) == option.value


def test_llama_3_has_chunks_of_one_layer_with_both_ends():
    """arXiv:2407.21783 section 3.3.2: one layer less on the first stage and on the last."""
    for row in (1, 2, 3):
        split = shown(f"llama3-405b-{row}").trained.split
        assert (split.pp * split.vpp, split.account) == (126 + 2, True)


@every("language", ["en", "zh"])
def test_a_derived_option_is_marked_with_its_reason_while_it_is_shown(language):
    state = shown("llama3-405b-1", lang=language).state
    why = DERIVED["llama3_chunks"][language]
    mark = PAGE["option_derived"][language].split("{")[0]
    said = plain(source_html(state, language))
    assert f"{mark}vpp 8" in said
    assert why in said
    assert why not in plain(source_html(state.changed({"vpp": "4"}), language))


def _says(field: str, name: str, state: State, context: Context) -> bool:
    """Whether a source states or implies a field, or it has no consequence."""
    also = {"schedule": "vpp", "global_batch": "micro_batches"}.get(field, field)
    if getattr(state, field) or getattr(state, also):
        return True
    mesh = context.layout.mesh
    return (field == "schedule" and mesh.size("pp") == 1) or (
        field == "zero" and mesh.size("dp") == 1
    )


@every("language", ["en", "zh"])
@every("name", PRESETS)
def test_what_a_source_leaves_open_is_stated_derived_or_named_as_taken(name, language):
    """No option that the time of a step depends on is read in silence, in any of the 62."""
    state = shown(name, lang=language).state
    if model_of_preset(name) is None:
        assert taken_line(state) == ""
        return
    context = Context.of(state)
    silent = [field for field in TAKEN if not _says(field, name, state, context)]
    line = taken_line(state)
    assert bool(line) == bool(silent)
    asked, batch = context.trained.request(context.layout).training, context.trained.batch
    counts = {**vars(asked), "cluster": context.trained.cluster_id, **batch._asdict()}
    counts["global_batch"] = batch.global_batch
    for field in silent:
        assert change_label(field, str(counts[field]), language) in line
    parts = line.split(PAGE["semicolon"][language]) if line else []
    assert len(parts) == len(silent)
    assert plain(line) in plain(source_html(state, language))


def test_what_is_chosen_on_the_page_is_no_longer_taken():
    state = shown("kimi-k2").state
    assert "Micro-batch size 1" in taken_line(state)
    assert "Micro-batch" not in taken_line(state.changed({"micro_batch": "2"}))
    assert taken_line(state.changed({"micro_batch": "2", "global_batch": "1024"})) == ""


# -- plans of several roles ------------------------------------------------------------------------


@every("name", PLANS)
def test_a_published_plan_is_itself_whichever_role_is_on_screen(name):
    state = preset_state(name)
    for role in cast_of(state).members:
        shown = cast_of(state).to(role.name).state()
        assert changed_plan(name, shown) == []
        assert PLANS[name].url in source_html(shown, "en")


@every("language", ["en", "zh"])
@every(
    "roles, fields, told",
    [
        (None, {"tp": "2"}, [("actor", "tp", "4", "2")]),
        ("rollout@0-7:sglang,tp=4,served_share=0.7;*actor@0", {}, [("rollout", "tp", "8", "4")]),
        ("*actor@0", {}, [("rollout", "", "rollout", "")]),
        (
            "rollout@0-15:sglang,tp=8,served_share=0.7;*actor@0;reward@0:tp=4",
            {},
            [("rollout", "gpus", "0–7", "0–15"), ("reward", "", "", "reward")],
        ),
    ],
)
def test_a_changed_plan_says_so_what_differs_and_a_way_back(language, roles, fields, told):
    name = "slime-qwen3-30b-a3b"
    state = preset_state(name).changed({**fields, "lang": language})
    state = state.changed({"roles": roles}) if roles else state
    assert changed_plan(name, state) == told
    box = source_html(state, language)
    menu = PAGE["preset_menu"][language].format(name=PLANS[name].name)
    assert f'data-changed="{menu}"' in box
    assert f'data-preset="{name}">{PAGE["preset_back"][language]}</button>' in box
    for role, what, before, now in told:
        assert role in box
        assert f"{before} → {now}" in box or not what
