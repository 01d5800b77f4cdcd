"""The Memory view: what it answers, how it refuses, what its pictures say as data."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape

import numpy as np
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import assert_whole, select, values, written
from pages import preset_states

from descriptions import MEMORY
from groups import LayoutError, coordinates
from groups.frameworks import FRAMEWORKS
from render.draw.shards import draw_shards
from render.marks import Blocks, Words
from render.scenes.heat import Heat, levels
from render.scenes.over_step import COLOURS
from render.scenes.shards import LEFT, LOCAL, MOST, NONE, OWN, STALE, WHOLE, ShardGrid
from render.svg.heat import heat_svg
from request.context import Context
from request.fixes import fit_after, fixes_to_fit
from request.inputs import fields_of
from request.model import model_of
from request.resolve import resolve
from request.state import State
from request.trained import GIB, trained_of
from request.units import bracketed
from texts.shapes import catalogue
from training.clusters import CLUSTERS
from training.estimate.memory import fit_of
from training.memory.per_stage import PARTS, largest
from training.search import search
from views.base.html import unparted
from views.memory.stages import stage_of_ranks
from views.memory.view import memory_html
from views.memory.zero import MOMENTS, sharing_group
from views.page import answer

LANGUAGES = ("en", "zh")


def shown(state: State, language: str = "en") -> str:
    return memory_html(Context.of(replace(state, lang=language)))


JOBS = {
    "as it starts": State(),
    "dense": State(nodes=8, tp=8, pp=4, layers="80", global_batch="128"),
    "experts": State(
        nodes=256, tp=1, pp=16, ep=64, experts="256", schedule="dualpipe", spread="nearly"
    ),
    "interleaved": State(
        nodes=8, tp=8, pp=8, vpp="3", layers="96", zero="3", recompute="full", precision="fp16-fp16"
    ),
    "instances": State(nodes=8, tp=2, cp=2, pp=2, instances=2, zero="2"),
    "a world of one": State(nodes=1, gpus_per_node="1", tp=1, pp=1),
    "large": State(nodes=2048, tp=8, pp=16, layers="126", account=True),
}


@every("language", LANGUAGES)
@every("name", JOBS)
def test_a_job_is_answered_whole(name, language):
    state = JOBS[name]
    html = shown(state, language)
    assert_whole(html)
    assert 'class="refusal"' not in html
    assert 'class="verdict' in html
    assert html.count("memory-row") == len(select(html, "[role=listitem]"))


def test_the_verdict_says_what_the_model_says():
    state = JOBS["experts"]
    layout = resolve(state)
    problem = trained_of(layout, state)
    most = largest(problem.stages())
    html = unescape(shown(state)).replace("\xa0", " ")
    capacity = problem.capacity
    assert most.total > capacity == CLUSTERS["dgx-h100"].memory
    assert f"tage {most.stage} holds {most.total / GIB:,.1f} GiB" in html
    needed = problem.estimate(layout).fit.needed  # as every other view says it
    assert f"needs about {needed / GIB:,.1f} GiB" in html
    assert f"{(most.total - capacity) / GIB:,.1f} GiB more than the 79.6 GiB" in html


def cures_of(html: str) -> list[dict[str, str]]:
    """Every button with which a refusal or a verdict offers a way out."""
    blocks = select(html, ".refusal, .verdict.over")
    return values(blocks[0], "data-set") if blocks else []


TOO_FULL = {
    "experts": JOBS["experts"],
    "no sharding": State(nodes=4, tp=4, pp=1, layers="80", zero="0"),
    "large batches": State(nodes=8, tp=8, pp=4, layers="80", micro_batch="8", recompute="none"),
}


def test_the_mildest_way_to_fit_is_offered_first():
    state = State(tp=8, model="llama3-70b", micro_batch="4", capacity="200")
    ways = fixes_to_fit(Context.of(replace(state, sequence_parallel="off")))
    assert [changes for changes, _ in ways][:2] == [{"sequence_parallel": "on"}, {"micro_batch": 1}]


@every("name", TOO_FULL)
def test_every_way_to_fit_that_is_offered_fits(name):
    state = TOO_FULL[name]
    ways = cures_of(shown(state))
    assert ways
    for change in ways:
        html = shown(state.changed(change))
        assert "verdict fits" in html, change


ALONE = {
    "one replica": "korthikanti-1t",  # dp 1: ZeRO has nobody to share with
    "recommended": "mcore-guide-llama-3-8b",
    "experts": "mcore-guide-mixtral-8x7b",
}


@every("name", ALONE)
def test_every_part_of_a_way_to_fit_takes_bytes_from_the_fullest_rank(name):
    state = State(**preset_states()[ALONE[name]])
    ways = [changes for changes, _ in fixes_to_fit(Context.of(state))]
    assert ways
    wrong = []
    for changes in ways:
        for field in changes:
            less = {one: value for one, value in changes.items() if one != field}
            whole, without = (
                fit_after(some, Context.of(state)).allocated for some in (changes, less)
            )
            if whole >= without:
                wrong.append((changes, field))
    assert not wrong


@every("language", LANGUAGES)
def test_each_of_the_three_verdicts_has_its_colour_its_words_and_the_interval(language):
    """What is needed over what a GPU has; a close one is offered ways to fit for sure."""
    state = State(nodes=8, tp=8, pp=2, model="llama3-70b", global_batch="128")
    needed = fit_of(Context.of(state).trained.request(Context.of(state).layout)).needed
    for filled, verdict in ((0.85, "fits"), (0.95, "close"), (1.1, "over")):
        html = shown(replace(state, capacity=f"{needed / GIB / filled:.2f}"), language)
        assert f'class="verdict {verdict}"' in html
        assert MEMORY[f"verdict_{verdict}"][language].split("{")[0] in unescape(html)
        assert ('class="fixes"' in html) == (verdict != "fits")
        if verdict != "over":
            assert f"{needed / GIB:,.1f} GiB{bracketed('', language)[:-1]}" in html.replace(
                "\xa0", " "
            )


def test_a_stage_of_zero_without_replicas_needs_what_none_needs():
    states = State(**preset_states()["korthikanti-1t"])
    contexts = (Context.of(replace(states, zero=zero)) for zero in "0123")
    assert len({fit_of(one.trained.request(one.layout)).needed for one in contexts}) == 1


REFUSED = {
    "heads over tp": State(nodes=8, tp=64, pp=1, model="llama3-8b"),
    "layers over pp": State(nodes=8, tp=8, pp=4, layers="126", spread="equal"),
    "experts over ep": State(nodes=8, tp=1, pp=4, ep=16, model="mixtral-8x7b"),
    "sequence over cp": State(nodes=8, cp=4, sequence="4100"),
    "batch over dp": State(nodes=8, global_batch="7"),
    "too few micro-batches": State(nodes=8, tp=8, pp=8, vpp="2", layers="96", global_batch="4"),
    "chunks of 1F1B": State(nodes=8, pp=8, vpp="2", layers="96", schedule="1f1b"),
    "dense and top-k": State(top_k="2"),
    "capacity": State(capacity="none"),
    "numbers of the machines": State(cluster="dgx-a100", products="fp8"),
}


@every("language", LANGUAGES)
@every("name", REFUSED)
def test_what_cannot_be_is_refused_with_cures_that_work(name, language):
    state = REFUSED[name]
    html = shown(state, language)
    assert_whole(html)
    assert 'class="refusal"' in html
    cures = cures_of(html)
    assert cures
    for change in cures:
        assert 'class="refusal"' not in shown(state.changed(change)), change


@every("language", LANGUAGES)
def test_layers_that_do_not_divide_differ_by_one_and_the_page_says_so(language):
    sizes = {"nodes": 8, "tp": 8, "pp": 4}
    even, uneven = State(**sizes, layers="128"), State(**sizes, model="llama3-405b")
    said = MEMORY["note_nearly"][language].format(layers=126, stages=4)
    said = unparted(said)
    assert said in unescape(shown(uneven, language))
    assert said not in unescape(shown(replace(uneven, spread="nearly"), language))
    problem = trained_of(resolve(uneven), uneven)
    assert [stage.parameters.layers for stage in problem.stages()] == [32, 32, 31, 31]
    problem = trained_of(resolve(even), even)
    assert problem.split.spread == "equal"


def test_typed_layers_are_held_to_megatrons_rule_in_every_view_and_a_models_own_in_none():
    """One law (request.model): a view that dealt them otherwise would show another job."""
    typed, own = State(pp=4, nodes=2, layers="30"), State(pp=4, nodes=2, model="llama3-405b")
    asked = ((typed, True), (own, False), (replace(typed, spread="nearly"), False))
    for view in ("ranks", "pipeline", "memory", "traffic", "estimate", "search"):
        for state, is_refused in asked:
            shown_there = answer(replace(state, view=view)).picture
            assert ("layers over 4 stages is not" in shown_there) == is_refused, (view, state)


STRANGE = [
    "<b>",
    "nan",
    "-1",
    "0",
    "1e9",
    "9" * 40,
    None,
    8,
    2.5,
    True,
    ["8"],
    "\uff18",
    "\ud800",
    "'",
]


@every("value", STRANGE, ids=repr)
@every("name", fields_of("model", "training", "memory"))
def test_strange_input_is_answered_in_words(name, value):
    html = shown(State(**{name: value}))
    assert_whole(html)
    assert "<b>&" not in html
    assert "Traceback" not in html


@every("value", STRANGE, ids=repr)
@every("name", ["layers", "experts", "vpp", "micro_batch", "global_batch", "account"])
def test_strange_numbers_of_the_column_are_answered_in_words(name, value):
    assert_whole(shown(State(**{name: value})))


small = st.sampled_from(["", "1", "2", "3", "8", "96"])


@settings(deadline=None, max_examples=60)
@given(
    st.builds(
        State,
        nodes=st.sampled_from([1, 8]),
        tp=st.sampled_from([1, 2, 8]),
        pp=st.sampled_from([1, 2, 4]),
        cp=st.sampled_from([1, 2]),
        ep=st.sampled_from([1, 2, 8]),
        framework=st.sampled_from(sorted(FRAMEWORKS)),
        layers=small,
        experts=small,
        vpp=small,
        global_batch=small,
        schedule=st.sampled_from(["", "gpipe", "interleaved", "zb-v", "dualpipe"]),
        model=st.sampled_from(["", "gpt3-175b", "mixtral-8x7b", "deepseek-v3"]),
        heads=small,
        zero=st.sampled_from(["", "0", "1", "2", "3"]),
        recompute=st.sampled_from(["", "none", "full"]),
        of_rank=small,
    ),
)
def test_any_layout_of_any_framework_is_answered(state):
    try:
        layout = resolve(state)
    except LayoutError:
        return
    assert_whole(memory_html(Context(layout, replace(state, lang="zh"))))


# -- which model ---------------------------------------------------------------------------------


def test_what_is_typed_in_the_view_counts_before_the_column_and_that_before_the_preset():
    chosen = model_of(State(model="gpt3-175b", heads="48", layers="48"))
    assert (chosen.model.layers, chosen.model.heads, chosen.model.hidden) == (48, 48, 12288)
    assert set(chosen.changed) == {"layers", "heads"}
    html = unescape(shown(State(layers="48", model="gpt3-175b", heads="48")))
    assert "Changed from the published model: Transformer layers 48, Attention heads 48" in html


def test_without_a_model_the_layers_and_experts_of_the_column_choose_one():
    assert model_of(State(layers="126")).preset == "llama3-405b"
    assert model_of(State(experts="256")).preset == "deepseek-v3"
    assert model_of(State()).is_matched


@every(
    "layers, words",
    [
        ("", "No model is chosen"),
        ("126", "has these layers and experts"),
        ("13", "No published model"),
    ],
)
def test_the_view_says_where_the_model_comes_from(layers, words):
    html = shown(State(layers=layers, pp=1))
    assert words in html


def test_sizes_that_follow_from_hidden_follow_it():
    chosen = model_of(State(model="gpt3-175b", hidden="6144"))
    assert (chosen.model.head_dim, chosen.model.ffn) == (64, 24576)


# -- pictures as data ----------------------------------------------------------------------------


@every("framework", sorted(FRAMEWORKS))
def test_the_stage_of_each_rank_is_its_pp_coordinate(framework):
    try:
        layout = resolve(State(nodes=2, tp=1, pp=1, framework=framework))
    except LayoutError:
        layout = resolve(State(nodes=2, tp=1, pp=16, framework=framework))
    stage = stage_of_ranks(layout)
    stated = [coordinates(layout.mesh, rank).get("pp", 0) for rank in range(layout.world_size)]
    assert stage.tolist() == stated


def test_the_group_that_shares_is_that_of_data_and_context():
    layout = resolve(State(nodes=2, tp=2, cp=2, pp=2, instances=2))
    assert sharing_group(layout, 1).members(0).tolist() == [0, 2, 4, 6]
    assert sharing_group(layout, 2).members(0).tolist() == [0, 2]


def test_levels_are_eighths_and_one_above():
    share = np.array([0.0, 0.124, 0.125, 0.5, 1.0, 1.0001, 9.0])
    assert levels(share).tolist() == [0, 0, 1, 4, 7, 8, 8]


def test_a_cell_prints_its_rank_and_amount_and_leads_to_the_rank():
    svg = heat_svg(Heat(np.array([0, 8]), ["10", "99"], 2), "memory")
    assert values(svg, "data-set") == [{"view": "ranks", "rank": rank} for rank in ("0", "1")]
    assert [written(text) for text in select(svg, "text")] == ["N0", "0", "10", "1", "99"]


def test_each_part_has_a_fill_of_its_own_inks_for_what_stays_between_steps():
    assert list(COLOURS) == list(PARTS)
    assert len(set(COLOURS.values())) == len(PARTS)
    kept = [part for part, fill in COLOURS.items() if fill.startswith("kept")]
    assert kept == ["weights", "copies", "gradients", "optimizer", "gathered"]


#      W      G      O       of 3 ranks, shares that each holds: solid 1, faint -1
STATES = {
    WHOLE: [[1, 1, 1], [1, 1, 1], [1, 1, 1]],
    OWN: [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    LOCAL: [[-1, -1, -1], [-1, -1, -1], [-1, -1, -1]],
    STALE: [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]],
    NONE: [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
}


@every("state", STATES)
def test_a_rank_holds_the_shares_of_its_state(state):
    shards = ShardGrid((0, 4, 8), (("W", state),))
    boxes, *_ = [mark for mark in draw_shards(shards, "page") if isinstance(mark, Blocks)]
    held = [[0] * 3 for _ in shards.ranks]
    shares = () if boxes.fill == "none" else boxes.fill  # frames alone where nothing is held
    for (x, _), fill in zip(boxes.corners.tolist(), shares):
        rank, within = divmod(x - LEFT, shards.step)
        faint, slot = re.fullmatch(r"(color-mix.*)?var\(--g(\d)\).*", fill).groups()
        assert round(within / (shards.box / shards.slots)) == int(slot)
        held[int(rank)][int(slot)] = -1 if faint else 1
    assert held == STATES[state]


def test_of_many_ranks_the_first_and_the_last_are_drawn():
    marks = draw_shards(ShardGrid(tuple(range(0, 128, 2)), (("W", WHOLE),)), "page")
    words = [mark.text for mark in marks if isinstance(mark, Words)]
    assert words == ["W", "…", "0", "2", "4", "6", "8", "10", "12", "126"]
    assert len(ShardGrid(tuple(range(MOST)), ()).visible) == MOST


def test_moments_keep_no_more_than_the_stage_of_zero_shares():
    """Between steps, stage 1 shares the optimizer state, 3 the weights too; no gradient is kept."""
    at_rest = {zero: moments[0][1:] for zero, moments in MOMENTS.items()}
    assert at_rest == {
        0: (WHOLE, NONE, WHOLE),
        1: (WHOLE, NONE, OWN),
        2: (WHOLE, NONE, OWN),
        3: (OWN, NONE, OWN),
    }
    for zero, moments in MOMENTS.items():
        held = {state for moment in moments for state in moment[1:]}
        assert (OWN in held) == (zero > 0)


# -- words ---------------------------------------------------------------------------------------


@every("name", MEMORY)
def test_both_languages_say_the_same_facts(name):
    english, chinese = (re.findall(r"\{(\w+)\}", MEMORY[name][language]) for language in LANGUAGES)
    assert sorted(english) == sorted(chinese)
    assert all(MEMORY[name][language] for language in LANGUAGES)


def test_every_input_has_its_words():
    assert set(catalogue("memory")["CONTROLS"]) == set(fields_of("model", "training", "memory"))


def test_every_moment_and_part_has_its_words():
    for moment in (moment[0] for moments in MOMENTS.values() for moment in moments):
        assert f"moment_{moment}" in MEMORY
        assert f"moment_{moment}_body" in MEMORY
    assert all(f"part_{part}" in MEMORY for part in PARTS)


# -- what there was to recompute -----------------------------------------------------------------


@every("more", [{"framework": "megatron-deepspeed"}, {"preset": "bloom-176b"}])
def test_software_of_2021_is_offered_whole_layers_only(more):
    state = State(
        nodes="1", model="llama3-8b", tp="4", pp="1", recompute="none", capacity="28", **more
    )
    context = Context(resolve(state), state)
    offered = {changes.get("recompute", "none") for changes, _ in fixes_to_fit(context)}
    found = search(context.trained.job(context.layout))
    assert found.best
    assert offered | {one.request.training.recompute for one in found.best} == {"none", "full"}


def test_the_name_of_a_stage_leads_to_its_first_gpu():
    state = State(nodes=4, tp=4, pp=4)
    pipeline = resolve(state).every["pp"].members(0).tolist()
    page = shown(state)
    names = [written(button) for button in select(page, ".opener[data-set]")]
    leads = dict(zip(names, values(page, "data-set", ".opener")))
    assert {name: lead["rank"] for name, lead in leads.items() if name[:6] == "stage "} == {
        f"stage {stage}": str(rank) for stage, rank in enumerate(pipeline)
    }


def test_large_counts_in_formulas_have_their_commas():
    page = shown(State(nodes=1024, tp=1, pp=2, schedule="gpipe", micro_batches=2048))
    assert " / 4,096" in page
    assert "2,048 × " in page
