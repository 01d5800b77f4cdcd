"""The Orders view: what another order of axes moves, found a second time rank by rank."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from markup import known_of, only, select, table, text_of
from pages import MOE, groups_of, shown, spans
from seen import seen

from descriptions import PAGE, counted
from groups import coordinates
from groups.frameworks import FRAMEWORKS
from request.context import Context
from request.state import State
from views.orders.view import orders_summary
from views.page import answer
from views.parts.compared import other_layout

COMPARED = {
    "Megatron's two orders": (State(), "auto"),
    "pp before dp against the default": (State(nodes=4, framework="megatron-pp-dp"), "auto"),
    "Llama 3 against Megatron": (State(nodes=4, cp=2, framework="llama3"), "auto"),
    "against a framework": (State(nodes=4, cp=2, group_type="cp+dp+tp+pp"), "picotron"),
    "against a typed order": (MOE, "ep-cp-tp-dp-pp"),
    "both grids": (MOE, "cp-tp-ep-dp-pp"),
    "the same": (State(), "device-mesh"),
    "one axis, which no order moves": (State(tp=1, pp=1), "auto"),
    "some ranks only": (State(nodes=1, tp=1, pp=4, more=("embd",)), "pp-tp-cp-ep-dp"),
    "more than 256 GPUs": (State(nodes=48, tp=4, pp=4), "auto"),
}


@pytest.mark.parametrize("name", COMPARED)
def test_what_moved_is_what_differs_rank_by_rank(name):
    controls, versus = COMPARED[name]
    layout = seen(controls)
    other_controls = {
        "auto": {"framework": "megatron-pp-dp" if controls.framework == "megatron" else "megatron"}
    }.get(versus, {"framework": versus} if versus in FRAMEWORKS else {"order": versus})
    other = seen(controls.changed(other_controls))
    picture = shown(controls, "orders", versus=versus)
    rows = {row[0]: row for row in table(picture, "moves")}
    slow = [text_of(row) for row in select(picture, ".moves tr:has(.slow)")]
    before, after = groups_of(other), groups_of(layout)
    assert list(rows) == [kind for kind in layout.kinds if kind in after]
    for kind, (_, moved, leaving_before, leaving_after) in rows.items():
        ranks = moved_by_hand(before[kind], after[kind])
        count = counted(len(ranks), "rank", "en")
        assert moved.startswith(count)
        assert (moved == count) == (len(ranks) in (0, layout.world_size))
        for said, groups in ((leaving_before, before[kind]), (leaving_after, after[kind])):
            crossing = sum(nodes > 1 for nodes in spans(groups, layout.gpus_per_node))
            assert said == f"{crossing:,} / {len(groups):,}"
        worse = [cells for cells in slow if cells.startswith(f"{kind} ")]
        numbers = [
            int(said.split(" / ")[0].replace(",", "")) for said in (leaving_before, leaving_after)
        ]
        assert bool(worse) == (numbers[1] > numbers[0]), kind
        panels = select(picture, f'svg.panel[data-kind="{kind}"]')
        if layout.world_size <= 256:
            assert len(panels) == (2 if ranks else 0)
        every = ranks if len(ranks) == layout.world_size else set()
        for panel, groups in zip(panels, (before[kind], after[kind])):
            known = known_of(panel)
            # Where all moved, an outline of each would say nothing.
            assert set(known["moved"]) == ranks - every
            assert bool(select(panel, ".moved")) == bool(known["moved"])
            assert all(
                rank in groups[group] for rank, group in enumerate(known["groups"]) if group >= 0
            )


def moved_by_hand(before: list[list[int]], after: list[list[int]]) -> set[int]:
    """Ranks that are with others than before."""
    found = set()
    mates = [{rank: set(ranks) for ranks in groups for rank in ranks} for groups in (before, after)]
    for rank in mates[0].keys() | mates[1].keys():
        if mates[0].get(rank) != mates[1].get(rank):
            found.add(rank)
    return found


def test_experts_of_another_framework_keep_their_size_beside_megatrons_order():
    context = Context.of(State(nodes=2, tp=2, ep=4, framework="torchtitan"))
    assert (context.layout.mesh.size("tp"), context.layout.expert.size("etp")) == (2, 1)
    assert other_layout(context, "auto").expert.size("etp") == 1


def test_a_size_of_experts_that_a_framework_does_not_have_is_none_of_megatrons_either():
    """The field says 2, and nanotron has no grid of experts: Megatron's is then that of the tp."""
    state = State(nodes=3, gpus_per_node="6", tp=1, pp=2, etp="2", framework="nanotron")
    assert other_layout(Context.of(state), "auto").expert.size("etp") == 1
    assert 'class="refusal' not in shown(state, "orders")
    assert 'data-view="groups"' in shown(state, "groups")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", COMPARED)
def test_who_stands_elsewhere_is_framed_and_told_under_both_orders(name, language):
    controls, versus = COMPARED[name]
    context = Context.of(controls)
    layout, other = context.layout, other_layout(context, versus)
    has_both = layout.has_experts and other.has_experts
    ranks = range(layout.world_size)
    dense = [rank for rank in ranks if differ(layout.mesh, other.mesh, rank)]
    expert = [r for r in ranks if has_both and differ(layout.expert, other.expert, r)]
    moved = sorted({*dense, *expert})
    picture = shown(controls, "orders", language, versus=versus)
    told = [text_of(one) for one in select(picture, "p[data-shows]")]
    assert len(told) == 2
    for text, mesh in zip(told, (other.mesh, layout.mesh)):
        assert (f"{len(moved):,}" in text) == bool(moved)
        if moved:
            gpu = int(re.search(r"GPU (\d+) (?:has|在)", text)[1])
            assert gpu in moved
            for axis, place in coordinates(mesh, gpu).items():
                assert (f"{axis} {place}" in text) == (mesh.size(axis) > 1), (axis, text)
    framed = [select(svg, ".moved > path") for svg in select(picture, "svg.job.numbered")]
    count = [sum(path.attributes["d"].count("M") for path in paths) for paths in framed]
    grids = [len(dense), len(expert)] if has_both else [len(dense)]
    assert count == (grids * 2 if layout.world_size <= 256 else [])


@pytest.mark.parametrize("name", COMPARED)
def test_brackets_in_chinese_have_one_width(name):
    controls, versus = COMPARED[name]
    context = Context.of(replace(controls, versus=versus, lang="zh"))
    picture = text_of(shown(controls, "orders", "zh", versus=versus))
    for text in (orders_summary(context), picture):
        assert not re.search(r"\([a-z]+(-[a-z]+)+\)", text)
    assert "\uff09 " not in orders_summary(context)  # no space behind a closing one


def differ(one, other, rank):
    places = coordinates(one, rank), coordinates(other, rank)
    return any(
        places[0].get(axis, 0) != places[1].get(axis, 0) for axis in {*one.names, *other.names}
    )


def test_above_256_gpus_both_orders_are_on_the_nodes_with_one_ranks_groups_marked():
    controls = State(nodes=48, tp=4, pp=4)
    picture = answer(replace(controls, view="orders", rank="200")).picture
    assert picture.count('class="overview"') == 2
    assert 'data-rank="200"' in picture
    labels = [svg.attributes["aria-label"] for svg in select(picture, "svg.overview")]
    assert len(labels) == 2
    for label, framework in zip(labels, ("megatron-pp-dp", "megatron")):
        layout = seen(controls.changed({"framework": framework}))
        for kind in layout.kinds:
            ranks = layout.every[kind].members(200).tolist()
            assert f"{ranks[0]}, {ranks[1]}" in label


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("versus", "quote"),
    [
        ("tp dp pp", "KeyError"),
        ("tp-xx-pp-dp", "KeyError: 'xx'"),
        ("tp-pp", "but you haven'tspecified the order (tp-pp)"),
        ("tp-tp-dp-pp", ""),
        ("<img src=x onerror=alert(1)>", ""),
        ("horovod", ""),
        ("", ""),
        (None, ""),
        (["megatron"], ""),
        ({"a": 1}, ""),
        pytest.param(10**5000, "", id="huge"),
    ],
)
def test_an_order_that_cannot_be_compared_with_is_refused_in_its_place(versus, quote, language):
    picture = shown(State(), "orders", language, versus=versus)
    assert picture.count('role="alert"') == 1
    assert "<img" not in picture
    said = text_of(only(picture, "[role=alert]"))
    assert quote in said
    if quote:
        assert PAGE["megatron_says"][language] in said
    assert FRAMEWORKS["megatron"].name in picture


def test_a_strip_says_what_another_order_moves_and_is_silent_where_nothing_does():
    picture = answer(State(nodes=4, framework="megatron-pp-dp")).picture
    strip = text_of(only(picture, ".strip"))
    assert seen(State()).order in strip
    before, after = (
        groups_of(seen(State(nodes=4, framework=framework)))
        for framework in ("megatron", "megatron-pp-dp")
    )
    for kind in ("dp", "tp", "pp"):
        moved = moved_by_hand(before[kind], after[kind])
        assert bool(moved) == bool(re.search(rf"[:,] {kind}[,.]", strip))
        numbers = [f"{sum(nodes > 1 for nodes in spans(of[kind], 8))}" for of in (before, after)]
        told = PAGE["strip_leaving"]["en"].format(kind=kind, before=numbers[0], after=numbers[1])
        assert (told in strip) == (numbers[0] != numbers[1])
    assert 'class="strip"' not in answer(State()).picture
    assert 'class="strip"' not in answer(State(framework="device-mesh")).picture
    own = State(nodes=4, group_type="framework", framework="fairscale", pp=1)
    assert 'class="strip"' not in answer(own).picture  # its mp is Megatron's tp, and not mp


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_each_framework_is_described_with_its_own_names_and_its_source(framework):
    convention = FRAMEWORKS[framework]
    roles = {own.axis for own in (*convention.axes, *convention.expert_axes)}
    sizes = {name: 2 if name in roles else 1 for name in ("tp", "cp", "pp", "ep")}
    if "dp" not in roles:
        sizes["pp"] = 32
    if framework == "tensorrt-llm":
        sizes["cp"] = 1  # which it does not take beside ep
    controls = State(nodes=4, framework=framework, **sizes)
    layout = seen(controls)
    groups = {name: one.groups() for name, one in layout.every.items()}
    for language in ("en", "zh"):
        picture = shown(controls, "orders", language)
        assert f'href="{html.escape(convention.url)}"' in picture
        for own, same, _, first in table(picture, "own"):
            assert own in {a.name for a in (*convention.axes, *convention.expert_axes)} | {
                one.name for one in (*convention.groups, *own_kinds(layout))
            }
            if same in groups:  # it is said to be Megatron's: then it is, to the last rank
                ranks = sorted(groups[same][0])
                assert first.split(", ")[:4] == [str(rank) for rank in ranks[:4]], (own, same)


def own_kinds(layout):
    return layout.every.values()


def test_local_of_horovod_is_no_group_of_megatrons():
    controls = State(nodes=4, framework="horovod", tp=1, pp=1)
    rows = {row[0]: row[1] for row in table(shown(controls, "orders"), "own")}
    assert rows["global"] == "dp"
    assert "dp" not in (rows["local"], rows["cross"])
