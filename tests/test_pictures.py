"""Picture files of every view that has pictures: their scenes as data, and files that open."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from descriptions import REFUSALS
from groups import LayoutError
from render.marks import LOOKS
from render.palette import rgb
from render.scenes import groups as scene
from render.scenes.charts import HeldChart, TimelineChart
from render.scenes.exchange import Cell
from render.scenes.heat import levels
from render.scenes.job import JobPicture
from render.scenes.shards import NONE, OWN
from render.scenes.zooms import ZoomsPicture
from request.answers.slow.files import example
from request.context import Context
from request.resolve import from_preset, resolve
from request.state import State
from request.trained import trained_of
from request.words import sentence
from views.all import VIEWS
from views.export import PICTURES, download, picture_file
from views.parts.examples import EVIDENCE

SMALL, LARGE = State(nodes=4, framework="llama3", cp=2, tp=4), from_preset("deepseek-v3")
NEARLY = "nearly"  # 61 layers over 16 stages
KEPT = "?v=1&nodes=4&tp=2&cp=2"


def groups_in(panels) -> list[tuple[str, list[int]]]:
    """Each panel's kind, and the group of every rank."""
    return [(panel.kind, panel.group.tolist()) for panel in panels]


def drawn(controls: State, **asked):
    state = replace(controls, **asked)
    return VIEWS[state.view].pictures(Context.of(state))


def test_the_groups_view_saves_the_job_and_a_panel_of_each_kind_that_it_shows():
    (question, job), *pictures = drawn(SMALL, view="groups")
    assert (question, job.rank) == ("Who is grouped with GPU 0?", 0)
    panels = [scene.panel(one, 8) for one in Context.of(SMALL).visible]
    assert groups_in(picture for _, picture in pictures) == groups_in(panels)
    assert [title.split(":")[0] for title, _ in pictures] == [
        one.name for one in Context.of(SMALL).visible
    ]


def test_a_large_world_is_saved_with_the_groups_of_the_pinned_rank():
    pictures = [one for _, one in drawn(LARGE, view="groups", rank="700")]
    assert len(pictures) == 4  # of two grids the job, then the nodes
    assert [one.rank for one in pictures[:2]] == [700, 700]
    assert [one.rank for one in pictures[2:]] == [700, 700]


def test_the_orders_view_saves_both_orders_of_each_kind_that_moves():
    layout, megatron = resolve(SMALL), resolve(State(nodes=4, cp=2, tp=4))
    pictures = drawn(SMALL, view="orders")
    names = [title.split(":")[0] for title, _ in pictures]
    assert names == ["dp", "dp", "pp", "pp"]
    sides = [side.every[name] for name in ("dp", "pp") for side in (megatron, layout)]
    panels = [scene.panel(side, 8) for side in sides]
    assert groups_in(picture for _, picture in pictures) == groups_in(panels)


def test_the_compare_view_saves_both_jobs_and_the_kinds_that_differ():
    before, after = resolve(State(nodes=4, tp=2, cp=2)), resolve(SMALL)
    pictures = drawn(SMALL, view="compare", kept=KEPT)
    jobs = [picture for _, picture in pictures if isinstance(picture, JobPicture)]
    assert [job.mesh for job in jobs][:1] == [before.mesh]
    assert after.mesh in [job.mesh for job in jobs]
    names = [
        one.name
        for one in Context.of(SMALL).visible
        if one.name in before.every
        and (before.every[one.name].index() != after.every[one.name].index()).any()
    ]
    assert names
    sides = [side.every[name] for side in (before, after) for name in names]
    panels = [scene.panel(side, 8) for side in sides]
    rest = [picture for _, picture in pictures if not isinstance(picture, JobPicture)]
    assert groups_in(rest) == groups_in(panels)


FOUR = State(nodes=4, tp=2, pp=4)  # dp 4


def before_axis(pictures):
    """A view's own pictures: the last of a view of the step is the time axis that they share."""
    *own, (title, axis) = pictures
    assert isinstance(axis, ZoomsPicture)
    assert title == "One step at four scales"
    assert [level.view for level in axis.levels][:2] == ["estimate", "pipeline"]
    return own


@pytest.mark.parametrize("view", ["estimate", "pipeline", "traffic", "collectives"])
def test_slides_of_a_step_show_the_time_axis_with_their_own_level(view):
    asked = Context.of(replace(FOUR, view=view))
    row = VIEWS[view]
    shown = [scene for _, scene in (row.slide or row.pictures)(asked)]
    (axis,) = [scene for scene in shown if isinstance(scene, ZoomsPicture)]
    assert axis.here == view
    assert len(shown) > 1


def test_the_collectives_view_saves_the_numbers_of_each_group_that_it_shows():
    asked = {"view": "collectives", "collective_group": "dp", "collective_all": "1"}
    pictures = before_axis(drawn(FOUR, **asked))
    titles = [title for title, _ in pictures]
    assert titles == [f"all-reduce: dp group {i}, 4 ranks on 1 node" for i in range(4)]
    groups = resolve(FOUR).every["dp"].groups()[:4]
    assert [[member.rank for member in one.members] for _, one in pictures] == groups.tolist()
    (summed, *_), *_ = pictures[0][1].members[0].after
    assert summed == Cell("60", (0, 1, 2, 3))  # 0 + 10 + 20 + 30


def test_the_first_ranks_stand_for_a_large_group_and_the_title_says_so():
    ((title, one),) = before_axis(drawn(LARGE, view="collectives", collective_group="dp"))
    assert "first 16 of 128 ranks" in title
    assert [member.rank for member in one.members] == list(range(16))


def test_the_pipeline_view_saves_both_schedules_on_one_axis_and_what_they_hold():
    state = replace(FOUR, schedule="1f1b", micro_batches="8", against="gpipe", pipe_group="3")
    pictures = before_axis(drawn(state, view="pipeline"))
    assert [type(one) for _, one in pictures] == [TimelineChart] * 2 + [HeldChart] * 2
    assert len({(one.left, one.plot, one.strip.ticks) for _, one in pictures}) == 1
    assert {one.strip.ranks for _, one in pictures} == {(3, 11, 19, 27)}
    idle = "on 4 ranks with 8 micro-batches: the step takes 33 units, of which ranks are idle 27%"
    assert [title for title, _ in pictures] == [
        f"1F1B {idle}",
        f"GPipe {idle}",
        "Activations held, 1F1B: at most 4 micro-batches of a rank's layers",
        "Activations held, GPipe: at most 8 micro-batches of a rank's layers",
    ]
    words = [text for _, text in pictures[0][1].legend]
    assert words == ["F: forward", "B: backward"]


def test_a_timeline_is_saved_whose_layers_are_refused_unless_they_count():
    odd = State(nodes=4, tp=2, pp=4, layers="61")
    assert drawn(odd, view="pipeline")
    with pytest.raises(LayoutError) as refused:
        drawn(odd, view="pipeline", by_layers="1")
    assert refused.value.control


def test_the_memory_view_saves_stages_gpus_and_every_moment_of_zero():
    state = replace(FOUR, view="memory", zero="3", capacity="20", of_rank="9", rank="9")
    pictures, layout = drawn(state), resolve(state)
    totals = [stage.total for stage in trained_of(layout, state).stages()]
    bars, over_step, heat, *moments = (one for _, one in pictures)
    assert [bar.total for bar in bars.bars] == totals
    assert [bar.is_over for bar in bars.bars] == [total > 20 * 2**30 for total in totals]
    assert bars.limit == 20 * 2**30
    stage = resolve(state).every["pp"].members(9).tolist().index(9)
    assert pictures[1][0] == f"GPU 9 over a step (stage {stage})"
    assert over_step.sums.max() == pytest.approx(totals[stage])
    share = np.array(totals) / bars.limit
    assert heat.level.reshape(4, 8).tolist() == [[one] * 8 for one in levels(share)]
    assert [one.ranks for one in moments] == [(9, 11, 13, 15)] * 5
    assert dict(moments[0].holds) == {"W": OWN, "G": NONE, "O": OWN}
    assert "of rank 9, 4 ranks: At rest" in pictures[3][0]


def test_the_traffic_view_saves_who_sends_to_whom():
    ((title, chart),) = before_axis(drawn(FOUR, view="traffic"))
    assert title.startswith("Bytes sent in a step: ")
    receivers = np.flatnonzero(chart.picture.levels[0]).tolist()
    assert receivers == [1, 2, 8]  # of tp, dp and pp
    assert chart.picture.borders == (8, 16, 24)
    assert chart.axes.endswith("each is 1 rank")


@pytest.mark.parametrize(
    ("controls", "view"),
    [
        (State(nodes=1, tp=8, pp=1), "pipeline"),  # no pipeline
        (State(nodes=256, tp=1, pp=2048), "pipeline"),  # too long to be drawn
        (State(nodes=1, gpus_per_node="1", tp=1, pp=1), "traffic"),  # nothing is sent
    ],
)
def test_a_view_without_a_picture_of_a_layout_says_so(controls, view):
    now = replace(controls, view=view)
    with pytest.raises(LayoutError) as refused:
        picture_file(Context.of(now), "png")
    assert refused.value.code == "no-picture"
    assert sentence(refused.value, "en") == "The view has no picture of this layout."
    assert sentence(refused.value, "zh") == REFUSALS["no-picture"]["zh"]


@pytest.mark.parametrize(
    ("view", "asked"),
    [
        ("collectives", {"collective_shape": "0x2"}),
        ("collectives", {"collective": ["all_reduce"]}),
        ("pipeline", {"pipe_group": "-1"}),
        ("pipeline", {"t_f": "nan"}),
        ("pipeline", {"pipe_group": "99"}),
        ("memory", {"capacity": "a lot"}),
        ("memory", {"of_rank": "32"}),
        ("traffic", {"cp_algorithm": {}}),
    ],
)
def test_what_a_view_of_a_step_refuses_is_no_file_and_names_its_input(view, asked):
    with pytest.raises(LayoutError) as refused:
        drawn(FOUR, view=view, **asked)
    assert refused.value.control in asked
    assert sentence(refused.value, "en")


def check_edge(data: bytes, theme: str, margin: int = 16) -> None:
    """So many pixels at the edge of a file are empty, and something stands inside it."""
    picture = np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    page = np.array(rgb(LOOKS[theme].page), dtype=np.uint8)
    edges = (picture[:margin], picture[-margin:], picture[:, :margin], picture[:, -margin:])
    assert all((edge == page).all() for edge in edges)
    some = picture[::4, ::4].reshape(-1, 3)
    assert (some != page).any(axis=1).mean() > 0.01
    assert len(np.unique(some @ (1 << np.array([16, 8, 0])))) > 5  # one number a colour


STEP = ("collectives", "pipeline", "memory", "traffic")


@pytest.mark.parametrize("view", STEP)
@pytest.mark.parametrize("controls", [FOUR, LARGE], ids=["small", "large"])
def test_nothing_is_cut_off_at_the_edge_of_a_dark_file(controls, view):
    now = replace(controls, view=view, spread=NEARLY)
    check_edge(picture_file(Context.of(now), "png", "dark"), "dark")


@pytest.mark.parametrize("view", ["orders", "compare"])
def test_what_the_view_refuses_is_refused_as_a_file_too(view):
    with pytest.raises(LayoutError):
        drawn(SMALL, view=view, versus="tp-tp", kept="no link")


@pytest.mark.parametrize("form", ["png", "slide-svg"])
def test_no_file_compares_with_a_layout_that_nobody_kept(form):
    with pytest.raises(LayoutError, match="nothing to compare with") as refused:
        download(Context.of(replace(SMALL, view="compare")), form)
    assert "没有可比较的布局" in sentence(refused.value, "zh")


@pytest.mark.parametrize("form", PICTURES)
@pytest.mark.parametrize("view", [name for name, view in VIEWS.items() if view.pictures])
@pytest.mark.parametrize("controls", [SMALL, LARGE], ids=["panels", "overviews"])
def test_every_file_opens_as_what_it_is(controls, view, form):
    asked = {"evidence": EVIDENCE, "measures": "0,1\n1,2", "traces_digest": example()}
    if view == "hang":
        controls = replace(controls, tp=4, cp=1, pp=1, ep=1)
    if view in STEP and controls is SMALL:
        controls = FOUR
    now = replace(controls, view=view, kept=KEPT, spread=NEARLY, **asked)
    data = picture_file(Context.of(now), form)
    if form == "png":
        check_edge(data, "light", 16 if view in STEP else 12)  # words reach below their line
    elif form == "svg":
        assert ElementTree.fromstring(data).tag.endswith("svg")
    else:
        assert data.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type /Page\b", data)) == 1
