"""Timelines as data, and as SVG: boxes, ticks, memory curves, colours."""

from __future__ import annotations

import base64
import io
import re
import zlib
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from colours import lab, least_apart
from hypothesis import given, settings
from hypothesis import strategies as st
from markup import only, select, text_of
from PIL import Image

from render import palette
from render.scenes import timeline
from render.scenes.charts import HELD
from render.scenes.timeline import MOST_BOXES, MOST_SHADES, PHASES, round_step, shade, strips_of
from render.svg.timeline import memory_svg, strip_svg, style
from training.pipeline import Durations, figures_of, plan_of, simulate


def strip_of(name="1f1b", p=2, m=2, v=None, durations=None, ranks=None, most_ticks=8_192):
    timed = simulate(plan_of(name, p, m, v), durations)
    (found,) = strips_of([timed], ranks or range(p), most_ticks)
    return found


# --- Data ---


def test_boxes_are_the_ops_in_order_with_their_times():
    strip = strip_of(ranks=[3, 7])
    boxes = strip.boxes
    rows = zip(boxes.rank, boxes.kind, boxes.micro_batch, boxes.start, boxes.end)
    drawn = [f"{strip.ranks[r]}:{'FBIW'[k]}{m} {a}-{b}" for r, k, m, a, b in rows]
    assert drawn == [
        *("3:F0 0-1", "3:F1 1-2", "3:B0 4-6", "3:B1 7-9"),
        *("7:F0 1-2", "7:B0 2-4", "7:F1 4-5", "7:B1 5-7"),
    ]


def test_a_pair_is_two_half_boxes_of_the_same_time():
    boxes = strip_of("dualpipe", p=2, m=4).boxes
    upper, lower = (np.flatnonzero(boxes.half == half) for half in (1, 2))
    assert len(upper)
    assert (lower == upper + 1).all()
    assert (boxes.start[lower] == boxes.start[upper]).all()
    assert (boxes.end[lower] == boxes.end[upper]).all()
    assert set(boxes.kind[upper]) == {0}
    assert set(boxes.kind[lower]) == {1}


@pytest.mark.parametrize(
    ("name", "chunks"),
    [("1f1b", {0}), ("interleaved", {0, 1}), ("zb-v", {0, 1}), ("dualpipe", {0, 1})],
)
def test_chunks_of_a_rank_are_told_apart(name, chunks):
    assert set(strip_of(name, p=2, m=4).boxes.chunk.tolist()) == chunks


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe"]),
    st.lists(st.integers(0, 500), min_size=3, max_size=3).filter(any),
    st.integers(0, 50),
)
def test_ticks_are_exact_wherever_there_is_a_common_unit(name, hundredths, send):
    forward, for_input, for_weights = (n / 100 for n in hundredths)
    durations = Durations(forward, for_input + for_weights, for_input, for_weights, send=send / 100)
    timed = simulate(plan_of(name, 2, 4), durations)
    (strip,) = strips_of([timed], range(2), most_ticks=10**9)
    place = timed.plan.ops[1]
    for ticks, times in ((strip.boxes.start, timed.start), (strip.boxes.end, timed.end)):
        assert np.allclose(ticks * strip.tick, times[place], atol=1e-6)
    assert Fraction(strip.tick).limit_denominator(10**6) * strip.ticks == pytest.approx(
        timed.makespan
    )


def test_without_a_common_unit_times_are_rounded_to_so_many_ticks():
    strip = strip_of(durations=Durations(1.0, 2.0001), most_ticks=100)
    assert strip.ticks == 100
    assert strip.boxes.end.max() == 100


def test_compared_timelines_share_the_axis_of_the_longer_one():
    timed = [simulate(plan_of(name, 4, 8)) for name in ("zb-h1", "1f1b")]
    short, long = strips_of(timed, range(4))
    assert (short.ticks, short.tick) == (long.ticks, long.tick) == (33, 1.0)
    assert short.boxes.end.max() == 27


@pytest.mark.parametrize("name", ["gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipev"])
def test_memory_curves_peak_where_the_figures_say_and_end_empty(name):
    timed = simulate(plan_of(name, 4, 8))
    (strip,) = strips_of([timed], range(4))
    figures, share = figures_of(timed), timed.plan.share
    assert strip.held.max(axis=1).tolist() == (figures.peak * share).tolist()
    assert strip.held_input.max(axis=1).tolist() == (figures.peak_input * share).tolist()
    assert (strip.held >= strip.held_input).all()
    assert strip.held[:, -1].max() <= 1


def test_1f1b_holds_one_more_for_each_forward_and_one_less_after_each_backward():
    #     time  0  1  2  3  4  5  6  7  8
    #   rank 0  F0 F1       B0 B0    B1 B1
    #   rank 1     F0 B0 B0 F1 B1 B1
    assert strip_of().held.astype(int).tolist() == [
        [1, 2, 2, 2, 2, 2, 1, 1, 1],
        [0, 1, 1, 1, 1, 1, 1, 0, 0],
    ]


def test_without_a_common_unit_times_are_rounded_to_parts_of_the_axis():
    strip = strip_of(durations=Durations(1 / 3, 2 / 3))
    assert strip.ticks == 8_192
    assert strip.boxes.end.max() == strip.ticks


def test_a_strip_without_any_time_is_still_drawn():
    strip = strip_of(durations=Durations(0.0, 0.0))
    assert (strip.ticks, strip.boxes.end.max()) == (1, 0)
    assert "<path" in strip_svg(strip, "")


def test_rows_too_low_for_a_number_have_none():
    high, low = (strip_svg(strip_of(p=p, m=1), "") for p in (64, 65))
    assert "pipeline-numbers" in high
    assert "pipeline-numbers" not in low


# --- What the script gets ---


def test_packed_ops_are_read_back_as_the_script_does():
    strip = strip_of("dualpipev", p=2, m=4)
    raw = np.frombuffer(zlib.decompress(strip.packed()), dtype="<u2").astype(np.int64)
    ranks, boxes = len(strip.ranks), strip.boxes
    counts = raw[:ranks] + 65536 * raw[ranks : 2 * ranks]
    assert counts.tolist() == np.bincount(boxes.rank).tolist()
    columns = np.cumsum(raw[2 * ranks :].reshape(5, -1), axis=1) % 65536
    what = boxes.kind + 4 * boxes.half
    for column, own in zip(columns, (boxes.start, boxes.end, boxes.micro_batch, boxes.stage, what)):
        assert column.tolist() == own.tolist()


# --- SVG ---


def boxes_in(svg: str) -> set[tuple[str, int, int, int]]:
    """(kind and chunk, x, y, width) of every box that is drawn."""
    names = {shade(kind, at): f"{kind.lower()}{at}" for kind in PHASES for at in (0, 1)}
    found = set()
    for path in select(svg, 'path[fill^="#"][d]'):
        for x, y, width in re.findall(r"M(\d+) (\d+)h(\d+)v", path.attributes["d"]):
            found.add((names[path.attributes["fill"]], int(x), int(y), int(width)))
    return found


def test_boxes_of_one_width_have_their_numbers_all_or_none():
    """0 to 9 and then nothing would read as an error."""
    drawn = strip_svg(strip_of(p=4, m=16), "")
    groups = select(drawn, "g[data-need]")
    assert len(groups) == 2  # forward and backward
    for group in groups:
        assert {int(text_of(one)) for one in select(group, "text")} == {*range(16)}


def test_every_op_is_a_box_at_its_time_in_its_row():
    strip = strip_of()
    assert boxes_in(strip_svg(strip, "")) == {
        *(("f0", 0, 0, 1), ("f0", 1, 0, 1), ("b0", 4, 0, 2), ("b0", 7, 0, 2)),
        *(("f0", 1, strip.row, 1), ("b0", 2, strip.row, 2)),
        *(("f0", 4, strip.row, 1), ("b0", 5, strip.row, 2)),
    }


def test_boxes_have_their_micro_batch_where_it_fits_and_all_once_there_is_room():
    narrow, wide = (strip_svg(strip_of(m=m), "") for m in (2, 200))
    assert re.findall(r">(\d+)</text>", narrow.split("pipeline-axis")[0]) == [*"01010101"]
    assert 'class="off"' not in narrow
    numbers = wide.split("pipeline-axis")[0]
    assert len(re.findall(r">\d+</text>", numbers)) == 800
    assert 'class="off"' in numbers


def test_many_ops_become_one_picture_that_is_exact():
    strip = strip_of("interleaved", p=16, m=128)
    assert strip.is_picture
    assert len(strip.boxes.rank) > MOST_BOXES
    svg = strip_svg(strip, "")
    assert len(svg) < 10_000
    kind, _, data = only(svg, "image").attributes["href"].partition(",")
    assert kind == "data:image/png;base64"
    pixels = np.array(Image.open(io.BytesIO(base64.b64decode(data))))
    assert pixels.shape == (16, strip.ticks)
    boxes = strip.boxes
    for i in np.random.default_rng(0).integers(0, len(boxes.rank), 200).tolist():
        own = pixels[boxes.rank[i], boxes.start[i] : boxes.end[i]]
        value = 1 + 2 * strip.colour[i] + boxes.micro_batch[i] % 2
        assert (own == value).all()
    busy = (boxes.end - boxes.start).sum()
    assert np.count_nonzero(pixels) == busy


@pytest.mark.parametrize("weights", [0.0, 1e-4])
def test_ops_shorter_than_a_pixel_leave_the_others_their_colours(weights):
    timeline = simulate(plan_of("zb-h1", p=16, m=128), Durations(for_weights=weights))
    (strip,) = strips_of([timeline], range(16))
    boxes, pixels = strip.boxes, strip.pixels()
    assert strip.is_picture
    for i in np.flatnonzero(boxes.end > boxes.start).tolist():
        own = pixels[boxes.rank[i], boxes.start[i] : boxes.end[i]]
        assert (own == 1 + 2 * strip.colour[i] + boxes.micro_batch[i] % 2).all()
    assert np.count_nonzero(pixels) == (boxes.end - boxes.start).sum()


def test_pairs_share_their_rows_in_a_picture():
    strip = strip_of("dualpipe", p=2, m=4)
    pixels = strip.pixels()
    at = int(np.flatnonzero(strip.boxes.half == 1)[0])
    row, when = 2 * strip.boxes.rank[at], strip.boxes.start[at]
    colours = (pixels[row : row + 2, when] - 1) // 2  # kind * MOST_SHADES + shade
    assert ["FBIW"[kind] for kind in colours // MOST_SHADES] == ["F", "B"]


def test_memory_fills_its_row_at_the_most_that_is_held():
    strip = strip_of()
    svg = memory_svg(strip, 2.0, "memory & more")
    assert 'aria-label="memory &amp; more"' in svg
    line = only(svg, f'path[fill="{HELD["input"]}"]').attributes["d"]
    tall = strip.memory_row - 2
    assert line.startswith(f"M0 {tall}V{tall / 2:g}H1V0H6V{tall / 2:g}H9V{tall}z")


@pytest.mark.parametrize("name", ["1f1b", "dualpipe"])
def test_descriptions_are_escaped(name):
    assert "&lt;b&gt;" in strip_svg(strip_of(name, p=2, m=4), "<b>")


@given(st.floats(1e-6, 1e9))
def test_steps_of_the_axis_are_round_and_leave_room(least):
    step = round_step(least)
    assert least * (1 - 1e-6) <= step <= 2.5 * least * (1 + 1e-6)
    assert float(f"{step:e}".split("e")[0]) in (1.0, 2.0, 5.0)


# --- Colours ---


def distance(one: str, other: str, deficiency: str | None) -> float:
    return least_apart(*lab((one, other), deficiency))


@pytest.mark.parametrize(
    ("deficiency", "least"), [(None, 20), ("Deuteranomaly", 10), ("Protanomaly", 10)]
)
def test_kinds_of_op_are_told_apart_by_colour(deficiency, least):
    for one, other in combinations(PHASES.values(), 2):
        assert distance(one, other, deficiency) >= least


def test_numbers_read_on_every_shade_and_neighbouring_shades_differ():
    for kind, chunk in product(PHASES, range(MOST_SHADES)):
        fill = shade(kind, chunk)
        assert palette.contrast(fill, palette.ink(fill)) >= 4.5
        assert f".op-{kind.lower()}{chunk}{{fill:{fill}" in style()
    assert all(distance(shade(kind, 0), shade(kind, 1), None) >= 5 for kind in PHASES)


def test_rows_shrink_with_the_number_of_ranks():
    rows = [strip_of("1f1b", p=p, m=1).row for p in (2, 8, 16, 32, 64, 128, 256)]
    assert rows == sorted(rows, reverse=True)
    assert timeline.LEAST_ROW in rows
