"""The Traffic and the Search view as HTML: order, words, escaping, links and buttons that work."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html import unescape
from itertools import product

import numpy as np
import pytest
from cases import every
from pages import preset_states

from descriptions import (
    BESIDE,
    CLUSTER_NOTES,
    CP_CHOICES,
    LANGUAGES,
    PURPOSES,
    REASONS,
    REFUSALS,
    SPEED,
    TRAFFIC,
)
from groups import LayoutError
from groups.frameworks import FRAMEWORKS
from render.draw.charts import draw_pairs
from render.marks import Words, flat
from render.scenes.matrix import DECADES, LEVELS, matrix_picture
from render.svg.matrix import matrix_svg
from request.context import Context
from request.link import from_query
from request.resolve import from_preset, resolve
from request.state import State
from request.trained import trained_of
from training.clusters import CLUSTERS
from training.models import MODELS
from training.pipeline import SCHEDULES
from training.recipe import Training
from training.search import alone, compared, search
from training.split import Split
from training.traffic.demands import CP_ALGORITHMS, demands
from views.search.view import search_html, search_pictures
from views.traffic.view import traffic_html

SMALL = State(tp=2, pp=2, layers="32", global_batch="64")
EXPERTS = State(
    **{"nodes": 4, "tp": 2, "pp": 2, "ep": 8, "etp": "1", "global_batch": "256"},
    **{"model": "mixtral-8x7b", "sequence": "4096"},
)
VIEWS = {"traffic": traffic_html, "search": search_html}


def html(view: str, state: State = SMALL, language: str = "en") -> str:
    return VIEWS[view](Context.of(replace(state, lang=language)))


def text_of(page: str) -> str:
    return unescape(re.sub(r"<[^>]*>", " ", page))


def found_in(page: str, pattern: str) -> list[str]:
    return [unescape(one) for one in re.findall(pattern, page)]


# -- words ---------------------------------------------------------------------------------------


@every("view, language", list(product(VIEWS, LANGUAGES)))
def test_every_place_of_a_sentence_is_filled(view, language):
    for state in (SMALL, EXPERTS):
        shown = text_of(html(view, state, language))
        assert not re.findall(r"\{\w*\}", shown)
        assert ("GPU" in shown, "rank" in shown.lower()) == (True, True)


def test_everything_that_is_sent_has_a_purpose_in_words():
    whats, besides = set(), set()
    splits = (
        Split(tp=2, pp=2, cp=2, dp=2, etp=2, ep=2, spread="nearly"),
        Split(tp=2, pp=2, cp=2, dp=2, etp=1, ep=2, vpp=2, spread="nearly"),
    )
    for name, split, zero, sp in product(
        ("deepseek-v3", "gpt3-175b"), splits, (0, 2, 3, 1), (True, False)
    ):
        model = MODELS[name].model
        if not model.experts:
            split = replace(split, ep=1)
        elif not sp:
            continue
        for algorithm, schedule in product(CP_ALGORITHMS, ("1f1b", "dualpipe")):
            training = Training(1, 8, schedule, zero=zero, recompute="full", sequence_parallel=sp)
            if schedule == "dualpipe":
                split = replace(split, vpp=1)
            rows = demands(model, split, training, algorithm)
            copies = replace(training, engine="fsdp2", instances=2)
            rows += demands(model, split, copies, algorithm)
            whats |= {row.what for row in rows}
            besides |= {row.beside for row in rows}
    assert whats == set(PURPOSES)
    assert besides == set(BESIDE)


def test_choices_fields_and_notes_have_words():
    assert set(CP_CHOICES) == set(CP_ALGORITHMS)
    assert set(CLUSTER_NOTES) <= set(CLUSTERS)
    assert {"ep-without-experts", "experts-need-sequence-parallel"} <= set(REFUSALS)


def found_of(state: State):  # type: ignore[no-untyped-def]
    """What the search finds for a state, and the layout on screen."""
    layout, trained = resolve(state), trained_of(resolve(state), state)
    return search(trained.job(layout)), trained.estimate(layout)


def test_every_reason_has_words():
    told = set()
    for state in (SMALL, EXPERTS, replace(SMALL, capacity="30"), replace(SMALL, capacity="2")):
        found, current = found_of(state)
        several = (*found.best, current)
        told |= {each.code for one in several for each in alone(one)}
        for one, other in product(several, several):
            told |= {each.code for each in compared(one, other)}
    assert told <= set(REASONS)
    assert {"fits", "lacks", "idle-less", "waits-more", "computes-more", "alike"} <= told


# -- what is shown -------------------------------------------------------------------------------


def test_kinds_are_ranked_by_time_at_link_speed():
    table = html("traffic", EXPERTS).partition("traffic-kinds")[2]
    table = table[table.index("<tbody>") : table.index("</tbody>")]
    kinds = found_in(table, r'<span class="chip[^>]*>([^<]+)<')
    assert sorted(kinds) == ["dp-cp", "edp", "ep", "pp", "tp"]


def test_a_bar_shows_the_share_of_bytes_that_leaves_nvlink():
    table = html("traffic", EXPERTS).partition("traffic-kinds")[2]
    table = table[table.index("<tbody>") : table.index("</tbody>")]
    told = found_in(table, r"<td>(none|[^<]*<small> \([0-9]+%)[^\n]*?--share:([0-9.]+)%")
    assert len(told) == table.count("<tr")
    assert {said == "none" for said, _ in told} == {True, False}
    for said, share in told:
        assert round(float(share)) == (0 if said == "none" else int(said[said.index("(") + 1 : -1]))


def test_how_keys_and_values_travel_is_asked_only_where_they_do():
    """Better layouts tries every cp, so it asks in any case."""
    asks = 'data-field="cp_algorithm"'
    assert asks not in html("traffic", replace(SMALL, cp=1))
    assert asks in html("traffic", replace(SMALL, cp=2))
    assert asks in html("search", replace(SMALL, cp=1))


def test_the_scripts_data_are_the_bytes_of_the_picture():
    page = html("traffic", EXPERTS)
    data = json.loads(found_in(page, r'data-traffic="([^"]*)"')[0])
    cells = []
    for run in data["cells"].split(","):
        times, _, mix = run.rpartition("*")
        cells += [int(mix)] * int(times or 1)
    units = {"GB": 1e9, "MB": 1e6, "kB": 1e3}
    told = [re.match(r"([\d.]+) (\wB) \(", mix) for mix in data["mixes"]]
    sums = np.array([float(one[1]) * units[one[2]] if one else 0.0 for one in told])[cells]
    grid = sums.reshape(32, 32)
    assert data["per"] == 1
    assert np.all(np.diagonal(grid) == 0)
    assert grid[0, 2] > 0  # ep joins every second rank: etp 1, tp 2
    total = float(re.search(r"All kinds.*?([\d.]+)\sTB", page)[1])
    assert grid.sum() / 1e12 == pytest.approx(total, rel=0.01)


def test_one_gpu_sends_nothing():
    page = html("traffic", State(nodes=1, gpus_per_node="1", tp=1, pp=1))
    assert "nothing is sent" in page


def test_the_layout_on_screen_stands_once_in_its_place():
    found, current = found_of(SMALL)
    page = html("search")
    assert page.count('<tr class="current">') == page.count(">your layout<") == 1
    place = found_in(page, r'<tr class="current"><th scope="row">([^<]+)<')
    assert place == [str(found.place(current.seconds))]
    steps = found_in(page, r'Step about">([\d.]+\sm?s) ')
    assert len(steps) == 11


def test_a_layout_that_is_among_the_best_keeps_its_number():
    best = from_query(found_in(html("search"), r'data-query="([^"]*)"')[0])
    page = html("search", best)
    assert page.count("<tr ") + page.count("<tr>") == 11  # heads and ten layouts
    current = page[page.index('<tr class="current">') :]
    assert re.match(r'<tr class="current"><th scope="row">1<small>your layout', current)


@every("state", [SMALL, EXPERTS], ids=["dense", "experts"])
def test_every_layout_is_one_click_away_and_then_has_the_same_cost(state):
    found, current = found_of(state)
    others = [one for one in found.best if one.request != current.request]
    links = found_in(html("search", state), r'data-query="([^"]*)"')
    assert len(links) == len(others) >= 9
    for link, one in zip(links, others):
        opened = from_query(link)
        layout = resolve(opened)
        assert trained_of(layout, opened).estimate(layout).request == one.request


def test_a_layout_whose_micro_batches_pp_does_not_divide_says_its_groups_and_opens_with_them():
    state = State(nodes=6, tp=2, pp=6, model="gpt3-175b", global_batch="112")
    found, _ = found_of(state)
    page = html("search", state)
    links = found_in(page, r'data-query="([^"]*)"')
    assert len(links) == len(found.best) > 1
    grouped = [one for one in found.best if one.request.training.group_size]
    assert len(grouped) > 1
    for link, one in zip(links, found.best):
        assert one not in grouped or f"groups of {one.request.training.group_size}" in page
        layout, opened = resolve(from_query(link)), from_query(link)
        assert trained_of(layout, opened).estimate(layout).request == one.request


def test_where_nothing_fits_it_says_so():
    state = State(nodes=16, tp=8, pp=4, model="llama3-70b", capacity="8")
    assert "None fits into 8.0\xa0GiB" in html("search", state)
    assert "None fits" not in html("search", replace(state, capacity="80"))


def test_every_option_of_the_layout_on_screen_is_carried_to_every_other():
    carried = {
        "zero": "2",
        "flash": "off",
        "offload": "optimizer",
        "products": "fp8",
        "precision": "bf16-bf16",
    }
    found, current = found_of(replace(SMALL, **carried))
    told = {
        (one.zero, one.flash, one.products, one.precision, one.sequence_parallel)
        for one in (each.request.training for each in (*found.best, current))
    }
    assert told == {(2, False, "fp8", "bf16-bf16", True)}


@every("framework", FRAMEWORKS)
@every("view", VIEWS)
def test_every_framework_is_answered(framework, view):
    sizes = {"gpipe": (1, 16)}.get(framework, (2, 2))
    controls = State(framework=framework, tp=sizes[0], pp=sizes[1], layers="32")
    try:
        resolve(controls)
    except LayoutError:  # it has no such axes
        controls = replace(controls, tp=1, pp=1)
    page = html(view, controls)
    if view == "search" and FRAMEWORKS[framework].serves:
        assert SPEED["search_title"]["en"] in page  # layouts of servers, for requests
        return
    assert ("A server has no training step" in page) == FRAMEWORKS[framework].serves
    assert ('class="refusal"' in page) == FRAMEWORKS[framework].serves


@every("schedule", SCHEDULES)
def test_every_schedule_is_answered(schedule):
    controls = replace(SMALL, vpp="2" if SCHEDULES[schedule].v is None else "")
    controls = replace(controls, schedule=schedule)
    for view in VIEWS:
        page = html(view, controls)
        assert "<tbody>" in page


# -- refusals ------------------------------------------------------------------------------------

STRANGE = [None, 3, float("nan"), ["p2p"], {"a": 1}, "<script>alert(1)</script>", "x" * 9000, True]


@every("view", VIEWS)
@every("strange", STRANGE, ids=repr)
def test_strange_input_is_refused_in_words_with_buttons_that_work(view, strange):
    page = html(view, replace(SMALL, cp_algorithm=strange))
    assert "<script>alert" not in page
    if strange is None:  # an empty field
        assert 'class="refusal"' not in page
        return
    assert 'class="refusal"' in page
    cures = [json.loads(one) for one in found_in(page, r'data-set="([^"]*)"')]
    assert cures
    for cure in cures:
        assert 'class="refusal"' not in html(view, SMALL.changed(cure))


CURED = {
    "layers that do not divide": State(nodes=3, tp=2, pp=3, layers="32", spread="equal"),
    "experts without sequence parallelism": replace(EXPERTS, etp="", sequence_parallel="off"),
    "ep without experts": State(tp=1, pp=1, ep=4, model="llama3-8b"),
    "a batch that does not divide": replace(SMALL, global_batch="63"),
}


@every("case", CURED)
@every("view", VIEWS)
def test_what_cannot_be_is_refused_with_ways_out_that_work(view, case):
    state = CURED[case]
    page = html(view, state)
    assert 'role="alert"' in page
    refusal = page.partition('<div class="refusal"')[2].partition("</div>")[0]
    for cure in found_in(refusal, r'data-set="([^"]*)"'):
        mended = html("traffic", state.changed(json.loads(cure)))
        assert 'class="refusal"' not in mended
    if view == "traffic":
        assert "data-set" in refusal


# -- the picture ---------------------------------------------------------------------------------


def test_levels_are_steps_of_a_logarithm():
    sent = np.array([[0, 1e9], [1e6, 1e3]])
    picture = matrix_picture(sent, 1, 8)
    middle = 1 + round((LEVELS - 1) / 2)
    assert picture.levels.tolist() == [[0, LEVELS], [middle, 1]]
    assert (picture.low, picture.high) == (1e3, 1e9)


def test_the_scale_has_an_end_and_what_is_less_is_not_nothing():
    picture = matrix_picture(np.array([[0, 1e12], [1.0, 0]]), 1, 8)
    assert picture.low == 1e12 / 10**DECADES
    assert picture.levels.tolist() == [[0, LEVELS], [1, 0]]


def test_alike_and_empty_pictures_are_drawn():
    assert matrix_picture(np.zeros((2, 2)), 1, 8).levels.max() == 0
    assert matrix_picture(np.array([[0, 5.0], [5.0, 0]]), 1, 8).levels.tolist() in (
        [[0, 1], [1, 0]],
        [[0, LEVELS], [LEVELS, 0]],
    )


@every(
    "n, per, labels, borders",
    [
        (16, 1, [str(n) for n in range(16)], (8,)),
        (64, 1, [str(n) for n in range(0, 64, 8)], tuple(range(8, 64, 8))),
        (256, 8, [f"N{n}" for n in range(0, 256, 16)], ()),
    ],
)
def test_labels_have_room_and_nodes_have_borders(n, per, labels, borders):
    picture = matrix_picture(np.ones((n, n)), per, 8)
    assert [text for _, text in picture.labels] == labels
    assert picture.borders == borders


def test_the_picture_is_one_image_a_theme_under_labels():
    svg = matrix_svg(matrix_picture(np.eye(256), 8, 8), 'who <sends> "what"')
    assert [svg.count(f'<image class="in-{theme}"') for theme in ("light", "dark")] == [1, 1]
    assert 'aria-label="who &lt;sends&gt; &quot;what&quot;"' in svg
    assert len(svg) < 20_000


def test_cells_with_room_are_apart():
    def svg(n: int) -> str:
        return matrix_svg(matrix_picture(np.ones((n, n)), 1, 8), "")

    assert '<g class="gaps">' in svg(16)
    assert '<g class="gaps">' not in svg(64)


NOTHING = {
    **{"layers": "1", "heads": "3", "kv_heads": "3", "hidden": "384", "ffn": "511"},
    **{"sequence": "4095", "global_batch": "1"},
}
"""A model and a batch that no sizes but 1 and 3 divide."""

MANY = {
    **{"model": "deepseek-v3", "layers": "60", "experts": "240", "sequence": "5040"},
    **{"heads": "120", "ffn": "18480", "expert_ffn": "1680", "shared_expert_ffn": "1680"},
}
"""What most sizes divide."""


def test_a_search_says_that_nothing_is_valid_and_that_not_all_was_tried():
    none = State(tp=16, pp=1, **NOTHING)
    assert TRAFFIC["search_none"]["en"] in html("search", none)
    assert search_pictures(Context.of(none)) == []
    many = State(nodes=1260, tp=1, pp=1, global_batch="40320", **MANY)
    assert TRAFFIC["search_incomplete"]["en"] in html("search", many)
    assert TRAFFIC["search_incomplete"]["en"] not in html("search")


def test_published_layouts_are_answered():
    for name in ("llama3-405b-3", "deepseek-v3"):
        model = "deepseek-v3" if name == "deepseek-v3" else ""
        state = replace(from_preset(name), model=model, spread="nearly")
        for view in VIEWS:
            assert 'class="refusal"' not in html(view, state)


@every("name", ("bloom-176b", "mtnlg-530b-420"))
def test_no_chunks_are_advised_where_a_framework_has_none(name):
    context = Context.of(State(**preset_states()[name]))
    best = search(context.trained.job(context.layout)).best
    assert best
    assert {one.request.split.vpp for one in best} == {1}


def test_names_of_small_cells_do_not_touch_in_the_corner():
    left, top = corner = 62.0, 24.0
    marks = flat(draw_pairs(matrix_picture(np.eye(256), 64, 8), corner, 640.0, "page"))
    row, column = (mark for mark in marks if isinstance(mark, Words) and mark.text == "N0")
    assert (row.anchor, column.anchor) == ("end", "start")
    assert row.x < left <= column.x
    assert column.y < top < row.y
