"""The map of nodes: each line ends at nodes of its groups, thick by bytes, beside every label."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import pytest
from pages import shown

from groups import LayoutError
from render.scenes.nodes_plan import MOST_BOXES
from request.answers.traffic import rows_of
from request.context import Context
from request.link import published
from request.state import State
from views.nodes.map import NARROW, SLIDE, WIDE, Sent, kind_of, map_of

JOBS = {
    "16": State(),
    "a gpu in the middle": State(rank="12"),
    "256": State(nodes=32, tp=4, pp=4),
    "tp across nodes": State(nodes=8, tp=16, pp=2),
    "experts": State(nodes=16, tp=1, pp=2, ep=16, experts="64", layers="16"),
    "cp": State(nodes=16, cp=4, tp=4, pp=2, rank="70"),
    "one stage": State(nodes=40, tp=8, pp=1),
    "racks": State(nodes=64, gpus_per_node="4", tp=4, pp=2, cluster="gb200-nvl72"),
    "2,048": State(**published("deepseek-v3")),
    "16,384": State(**{**published("llama3-405b-1"), "nodes": "2048", "rank": "5000"}),
    "no model": State(nodes=4, tp=4, pp=2, layers="7"),
}
CASES = [
    (name, kind, across)
    for name in JOBS
    for kind, across in itertools.product(("", "dp", "pp", "tp", "ep"), (WIDE, NARROW, SLIDE))
]


def drawn(name: str, kind: str, across: tuple[float, int, int, int]):
    context = Context.of(replace(JOBS[name], lines=kind))
    return context, context.once(Sent.of), map_of(context, across)


@pytest.mark.parametrize(("name", "kind", "across"), CASES)
def test_every_line_ends_at_the_boxes_of_its_groups(name, kind, across):
    context, sent, picture = drawn(name, kind, across)
    groups = {}
    for one, grouping in sent.groupings.items():
        sets = [tuple(sorted({rank // sent.size for rank in ranks})) for ranks in grouping.groups()]
        groups[one] = {some: sets.count(some) for some in {*sets}} if len(sets) < 3000 else None
    for bus in picture.buses:
        thread = bus.thread
        if groups[thread.kind] is not None:
            assert groups[thread.kind][thread.boxes] == thread.groups
        assert {*bus.ends} == {*thread.boxes} & {*picture.box_of}
        assert len(bus.ends) > 1
        points = [point for part in bus.parts for point in part]
        touched = {
            box.number
            for box in picture.boxes
            for x, y in points
            if box.x <= x <= box.x + box.wide and box.y <= y <= box.y + box.tall
        }
        assert touched == {*bus.ends}
        if not kind_of(context, sent):
            assert context.rank // sent.size in thread.boxes


@pytest.mark.parametrize(("name", "kind", "across"), CASES)
def test_lines_are_as_thick_as_their_bytes_say(name, kind, across):
    _, _, picture = drawn(name, kind, across)
    by_bytes = sorted(picture.buses, key=lambda bus: bus.thread.bytes)
    widths = [bus.width for bus in by_bytes]
    assert widths == sorted(widths)
    for one, other in itertools.pairwise(by_bytes):
        if one.thread.bytes < other.thread.bytes and one.width > 1.5:
            assert one.width < other.width


@pytest.mark.parametrize(("name", "kind", "across"), CASES)
def test_nothing_runs_over_a_box_or_the_labels_beside(name, kind, across):
    context, _, picture = drawn(name, kind, across)
    assert 0 < len(picture.boxes) <= MOST_BOXES
    assert any(box.first <= context.rank <= box.last for box in picture.boxes)
    for one, other in itertools.combinations(picture.boxes, 2):
        apart = abs(one.x - other.x) >= one.wide or abs(one.y - other.y) >= one.tall
        assert apart
    for box in picture.boxes:
        assert box.x + box.wide <= picture.width + 0.01
        assert box.wide > 20
    for bus in picture.buses:
        for (x0, y0), (x1, y1) in bus.parts:
            half = bus.width / 2
            is_level = y0 == y1
            left, right = min(x0, x1), max(x0, x1)
            top, foot = min(y0, y1), max(y0, y1)
            if is_level:
                top, foot = top - half, foot + half
            else:
                left, right = left - half, right + half
            for box in picture.boxes:
                inside = (
                    min(right, box.x + box.wide) - max(left, box.x),
                    min(foot, box.y + box.tall) - max(top, box.y),
                )
                assert min(inside) < 0.01, (bus.thread.kind, box.number)
            if any(text for _, text in picture.labels):
                assert left >= 50


@pytest.mark.parametrize("name", [name for name in JOBS if name != "no model"])
def test_all_lines_of_a_kind_carry_what_traffic_says(name):
    context = Context.of(JOBS[name])
    sent = context.once(Sent.of)
    rows = rows_of(context.layout, context.trained)
    for kind in sent.groupings:
        across = sum(
            row.across for row in rows if row.kind == kind or (row.kind, kind) == ("dp-cp", "dp")
        )
        asked = Context.of(replace(JOBS[name], lines=kind))
        whole = re.search(r"leave, (\S+ \S+) a step", map_of(asked).kinds[0][2])
        assert bool(across) == bool(whole)
        picture = map_of(asked)
        if not picture.left and not picture.undrawn:
            assert sum(bus.thread.bytes for bus in picture.buses) == pytest.approx(across)


def test_boxes_left_out_are_counted():
    _, _, picture = drawn("16,384", "", WIDE)
    columns = len({box.x for box in picture.boxes})
    skipped = sum({left.x: left.count for left in picture.left if not left.is_rows}.values())
    hidden = sum(left.count for left in picture.left if left.is_rows)
    assert columns + skipped == 128
    assert len({box.y for box in picture.boxes}) + hidden == 16


def test_groups_that_stay_inside_are_drawn_in_their_box():
    picture = map_of(Context.of(State(lines="tp")))
    assert [(one.kind, one.ranks) for one in picture.inners] == [
        ("tp", (first, first + 1)) for first in range(0, 16, 2)
    ]
    assert not picture.buses
    for one in picture.inners:
        box = picture.box_of[one.box]
        assert box.y + 20 + picture.cell_tall < one.y < box.y + box.tall


def test_without_traffic_lines_are_as_thick_as_groups_are_many_and_that_is_told():
    _, sent, picture = drawn("no model", "pp", WIDE)
    assert sent.across is None
    assert {bus.thread.bytes for bus in picture.buses} == {8.0}
    assert "cannot be worked out" in shown(JOBS["no model"], "nodes")
    assert "cannot be worked out" not in shown(State(), "nodes")


def test_a_kind_that_the_layout_lacks_is_none_and_what_is_no_kind_is_refused():
    assert kind_of(*context_and_sent(lines="ep")) == ""
    assert kind_of(*context_and_sent(lines="dp-cp")) == "dp"
    with pytest.raises(LayoutError):
        kind_of(*context_and_sent(lines="zz"))


def context_and_sent(**asked: str):
    context = Context.of(State(**asked))
    return context, Sent.of(context)
