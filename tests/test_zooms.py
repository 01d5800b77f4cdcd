"""The time axis that the views of a step share: what is on it, and what a choice on it means."""

from __future__ import annotations

import pytest
from markup import only, select, written

from descriptions import ZOOMS
from render.draw.zooms import draw_zooms
from render.marks import Blocks, flat
from request.answers.traffic import rows_of
from request.answers.zooms import fields_of, zooms_of
from request.context import Context
from request.link import from_query
from request.state import State
from training.traffic.ops import behind, in_op
from views.all import SECTIONS, VIEWS
from views.base.html import unparted
from views.parts.zooms import MOST_PARTS, zooms_html, zooms_picture

JOBS = {
    "default": "",
    "one stage": "pp=1",
    "chunks": "nodes=4&tp=2&pp=4&vpp=2&layers=32",
    "experts and context": "nodes=32&tp=2&pp=4&cp=2&ep=8&rank=5",
    "backward in halves": "nodes=2&pp=4&schedule=zb-h1",
    "two directions": "nodes=2&pp=4&tp=1&schedule=dualpipe&layers=32",
    "no sequence parallelism": "nodes=2&tp=4&pp=2&sequence_parallel=0",
    "weights in parts": "framework=fsdp&tp=1&pp=1",
    "many micro-batches": "nodes=64&tp=8&pp=64&layers=128&rank=30",
}


def context_of(query: str, **changes: object) -> Context:
    return Context.of(from_query(f"v=2&{query}".rstrip("&")).changed(changes))


@pytest.mark.parametrize("job", JOBS)
def test_what_all_ops_of_a_rank_send_and_what_is_sent_once_is_what_it_sends_in_a_step(job):
    context = context_of(JOBS[job])
    found, rows = zooms_of(context), rows_of(context.layout, context.trained)
    place = context.layout.every["pp"].members(context.rank).tolist().index(context.rank)
    runs = [(kind, stage) for op in found.ops for kind, _, stage in op.runs]
    last = max(stage for _, stage in runs_of_all(context))
    each = {key: in_op(rows, place, key, runs, last) for key in set(runs)}
    sent = [one for key in runs for one in each[key]] + behind(rows, place)
    assert {one.row.kind for one in sent} == {row.kind for row in rows if row.by_stage[place]}
    for row in rows:
        parts = [one for one in sent if one.row is row]
        assert sum(one.sent for one in parts) == pytest.approx(row.by_stage[place])
        assert sum(one.seconds for one in parts) == pytest.approx(row.times[place])
        assert sum(one.count for one in parts) == pytest.approx(row.counts[place] or 0)


def runs_of_all(context: Context) -> list[tuple[int, int]]:
    """Kind and stage of the ops of every rank of a pipeline."""
    members = context.layout.every["pp"].members(context.rank).tolist()
    contexts = (Context.of(context.state.changed({"rank": rank})) for rank in members)
    found = (zooms_of(one) for one in contexts)
    return [(kind, stage) for one in found for op in one.ops for kind, _, stage in op.runs]


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_parts_of_a_level_are_beside_each_other_and_fill_it(job, language):
    picture = zooms_picture(context_of(JOBS[job], lang=language))
    assert [level.view for level in picture.levels] == [*SECTIONS["step"]][: len(picture.levels)]
    for level in picture.levels:
        at = 0.0
        for part in level.parts:
            assert part.start == pytest.approx(at, abs=1e-5)
            assert part.end >= part.start
            at = part.end
        assert at == pytest.approx(1.0, abs=1e-3)


def test_the_seconds_are_those_of_step_time_and_the_ops_those_of_the_pipeline():
    context = context_of("")
    found = zooms_of(context)
    assert found.whole == pytest.approx(context.trained.estimate(context.layout).seconds)
    # 1F1B of two stages and eight micro-batches: the first rank has eight of each, a third as long.
    assert [op.letter for op in found.ops][:6] == ["F", "F", "B", "F", "B", "F"]
    forward, backward = found.ops[0].seconds, found.ops[2].seconds
    assert backward == pytest.approx(2 * forward)
    assert 8 * (forward + backward) < found.seconds["pipeline"] < 9.01 * (forward + backward)


@pytest.mark.parametrize("job", [job for job in JOBS if job != "many micro-batches"])
def test_the_moment_of_an_op_chooses_it(job):
    context = context_of(JOBS[job])
    ops = zooms_of(context).ops
    for number in {0, 1, len(ops) // 2, len(ops) - 1}:
        chosen = zooms_of(Context.of(context.state.changed({"moment": ops[number].moment})))
        assert (chosen.part, chosen.op) == ("pipeline", number)


def test_behind_the_pipeline_gradients_are_chosen_and_then_nothing_that_sends():
    found = zooms_of(context_of(""))
    later = (context_of("", moment=found.moments[name]) for name in ("dp", "optimizer"))
    data, last = map(zooms_of, later)
    assert (data.part, data.op, data.sent[0].row.kind) == ("dp", None, "dp-cp")
    assert (last.part, last.sent) == ("optimizer", ())
    assert len(zooms_picture(context_of("", moment=found.moments["optimizer"])).levels) == 2


def test_a_job_whose_ops_send_nothing_begins_at_its_gradients():
    assert zooms_of(context_of("tp=1&pp=1")).part == "dp"


def test_a_transfer_is_shown_by_collectives_with_its_own_bytes():
    context = context_of("nodes=2&tp=4&pp=2&rank=9")
    found = zooms_of(context)
    one = found.sent[1]
    changes = {"view": "collectives", **fields_of(context.layout, one)}
    shown = zooms_picture(Context.of(context.state.changed(changes)))
    assert shown.levels[2].chosen == 1
    watched = VIEWS["collectives"].html(Context.of(context.state.changed(changes)))
    assert f"{one.row.buffer / 1e6:.6g}" in watched
    seconds = shown.levels[3].name.split(" · ")[1]
    assert unparted(seconds) in written(only(watched, ".collectives-cost"))


def test_what_is_no_part_of_the_op_has_a_level_but_no_wedge():
    shown = zooms_picture(context_of("show=collectives&collective=broadcast"))
    assert shown.levels[2].chosen is None
    assert "broadcast" in shown.levels[3].name


@pytest.mark.parametrize("view", SECTIONS["step"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_view_of_a_step_has_the_axis_with_its_own_level_marked(view, language):
    context = Context.of(State(view=view, lang=language))
    page = VIEWS[view].html(context)
    names = select(page, ".zooms .zoom-name")
    marked = [number for number, name in enumerate(names) if name.tag == "b"]
    assert (len(names), marked) == (len(SECTIONS["step"]), [SECTIONS["step"].index(view)])


def test_a_level_of_many_parts_has_few_to_choose_and_all_to_see():
    context = context_of(JOBS["many micro-batches"])
    page = zooms_html(context)
    assert len(zooms_of(context).ops) == 512
    assert page.count("<button") < 2 * MOST_PARTS
    assert len(page) < 60_000


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_file_has_a_box_for_each_part(theme):
    picture = zooms_picture(context_of(""))
    boxes = [mark for mark in flat(draw_zooms(picture, theme)) if isinstance(mark, Blocks)]
    filled = [mark for mark in boxes if not isinstance(mark.fill, str)]
    assert [len(mark.corners) for mark in filled] == [len(one.parts) for one in picture.levels]
    assert max((mark.corners + mark.sizes)[:, 0].max() for mark in boxes) <= picture.width


def test_a_refused_step_has_no_axis():
    assert zooms_html(context_of("global_batch=7")) == ""


def test_every_word_of_the_axis_is_said_in_both_languages():
    assert all(text["en"] and text["zh"] for text in ZOOMS.values())
