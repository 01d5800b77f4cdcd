"""The chosen GPU over a step: the picture, the page, the endpoint and the command."""

import json
import re

import numpy as np
import pytest
from test_command import answered, ask

from render.draw.areas import draw_areas
from render.files.figure import DRAWINGS
from render.marks import LOOKS, Blocks, Words, advance
from render.palette import PALETTE
from render.scenes.areas import MOST, AreasChart
from render.scenes.over_step import over_step_chart
from request.answers.memory import memory_facts
from request.answers.over_step import held_over_step, over_step_facts, over_step_words
from request.context import Context
from request.state import State
from training.memory.per_stage import PARTS
from views.memory.over_step import over_step_html, over_step_pictures
from views.memory.view import memory_html

JOB = State(nodes=2, tp=2, pp=4, model="llama3-8b", rank=13)


def chart(times, *sizes, most=0):
    parts = tuple((PALETTE[at], np.array(each, dtype=float)) for at, each in enumerate(sizes))
    return AreasChart(np.array(times, dtype=float), parts, (), 10.0, "GPU", most, "most")


def test_areas_stand_on_each_other_and_a_jump_is_two_points():
    drawn = chart([0, 1, 1, 2], [2, 2, 2, 2], [0, 1, 3, 0], most=2)
    (upper, outline), (lower, ground) = drawn.outlines()
    assert (upper, lower) == (PALETTE[1], PALETTE[0])
    across = drawn.plot / 2
    assert outline[:, 0].tolist() == [0, across, across, 2 * across, 2 * across, 0]
    heights = (drawn.foot - outline[:4, 1]) * drawn.highest / drawn.tall
    assert heights == pytest.approx([2, 3, 5, 2], abs=0.01)
    assert len(ground) == 4  # what is level has two points, and two on the ground


def test_of_many_points_the_fullest_and_the_emptiest_are_drawn():
    sizes = np.random.default_rng(1).random(10_000)
    drawn = chart(np.arange(10_000), sizes, most=int(sizes.argmax()))
    (_, outline), *_ = drawn.outlines()
    assert len(outline) <= MOST + 5
    edges = (drawn.foot - outline[:-2, 1]) * drawn.highest / drawn.tall
    assert edges.max() == pytest.approx(sizes.max(), abs=0.01)
    assert edges.min() == pytest.approx(sizes.min(), abs=0.01)


@pytest.mark.parametrize("size", [1e-3, 0.5, 7.0, 79.6, 288.0])
def test_sizes_have_a_few_round_ticks(size):
    drawn = chart([0, 1], [size, size])
    ticks = AreasChart(**{**vars(drawn), "limit": size}).ticks()
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0


def test_its_fullest_moment_is_what_the_verdict_says():
    context = Context.of(JOB)
    facts, whole = over_step_facts(context), memory_facts(context)
    assert (facts["rank"], facts["stage"]) == (13, 3)
    ops = facts["ops"]
    most = ops[facts["fullest"]]
    assert most["total_bytes"] == max(op["total_bytes"] for op in ops) == facts["fullest_bytes"]
    assert most["total_bytes"] == pytest.approx(whole["stages"][3]["total_bytes"])
    assert most["bytes"] == pytest.approx(whole["stages"][3]["bytes"])
    starts = [op["start"] for op in ops]
    assert starts == sorted(starts)
    assert ops[-1]["op"] == "optimizer"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_says_when_and_the_script_has_every_op(language):
    context = Context.of(JOB.changed({"lang": language}))
    page = str(memory_html(context))
    facts = over_step_facts(context)
    held = json.loads(re.search(r'data-ops="([^"]*)"', page).group(1).replace("&#34;", '"'))
    assert [op for op, *_ in held] == [op["op"] for op in facts["ops"]]
    sums = [sum(sizes) for *_, sizes in held]
    assert sums == pytest.approx([op["total_bytes"] / 2**30 for op in facts["ops"]], abs=0.05)
    assert all(len(sizes) == len(PARTS) for *_, sizes in held)
    assert ("backward of micro-batch" if language == "en" else "的反向") in page
    assert f"{facts['fullest_bytes'] / 2**30:.1f} GiB" in page


def test_a_gpu_of_another_stage_leads_to_the_fullest():
    page = str(over_step_html(Context.of(JOB)))
    assert "Show GPU 0 of stage 0, the fullest" in page
    page = str(over_step_html(Context.of(JOB.changed({"rank": 0}))))
    assert "the fullest" not in page


def test_the_chart_is_drawn_for_files_too():
    context = Context.of(JOB)
    held = held_over_step(context)
    drawn = over_step_chart(held, context.trained.capacity, over_step_words(context, held))
    assert DRAWINGS[AreasChart] is draw_areas
    assert [*draw_areas(drawn, "dark")]
    assert drawn.sums.max() == pytest.approx(held.total)


def test_the_command_prints_a_row_for_each_op():
    options = "--nodes 2 --tp 2 --pp 4 --model llama3-8b --rank 13"
    printed = answered(f"memory step {options} --format json").out
    facts = over_step_facts(Context.of(JOB))
    assert json.loads(printed)["ops"] == facts["ops"]
    table = answered(f"memory step {options}").out
    assert "GPU 13 of stage 3: fullest in 3B0" in table
    assert len(re.findall(r"^ *3[FB]\d+", table, re.MULTILINE)) == len(facts["ops"]) - 1


def test_names_stand_on_a_ground_of_their_own_and_the_axis_inside_the_file():
    context = Context.of(JOB.changed({"capacity": 5}))
    ((_, drawn),) = over_step_pictures(context)
    assert drawn.sums.max() > drawn.limit
    marks = [*draw_areas(drawn, "light")]
    words = [mark for mark in marks if isinstance(mark, Words)]
    assert {drawn.limit_name, drawn.most_name} <= {word.text for word in words}
    for word in words:
        right = {"start": word.x + advance(word.text, bold=word.bold) * word.size, "end": word.x}
        assert right[word.anchor] - advance(word.text, bold=word.bold) * word.size >= 0
        assert right[word.anchor] <= drawn.width
        if word.bold:
            before = marks[marks.index(word) - 1]
            assert isinstance(before, Blocks)
            assert before.fill == LOOKS["light"].page


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_the_command_draws_it_into_a_file(form, tmp_path):
    options = "--nodes 2 --tp 2 --pp 4 --model llama3-8b --rank 13"
    file = tmp_path / f"memory.{form}"
    printed = answered(f"picture memory {options} --out {file}").out
    assert "GPU 13 over a step (stage 3)" in printed
    starts = {"svg": b"<svg", "png": b"\x89PNG", "pdf": b"%PDF"}
    assert starts[form] in file.read_bytes()[:300]
    if form == "svg":
        assert "backward of micro-batch 0" in file.read_text()


@pytest.mark.parametrize(
    ("asked", "refused"),
    [("memory tp", "takes no other name"), ("memory --rank 99", "0 to 7"), ("memory --pp 3", "pp")],
)
def test_a_picture_that_is_none_is_refused(asked, refused):
    found = ask(f"picture {asked} --nodes 1")
    assert refused in found.err
    assert not found.out


def test_a_rank_that_is_none_is_refused():
    found = ask("memory step --nodes 1 --rank 99")
    assert "0 to 7" in found.err
