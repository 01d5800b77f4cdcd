"""Frameworks, orders of one's own and presets in the Groups view: their groups, or a refusal."""

from __future__ import annotations

import html
import itertools
from dataclasses import replace

import numpy as np
from cases import every
from markup import panels, select, text_of, written
from pages import refusal_of
from seen import seen

from descriptions import PAGE
from groups import rank_groups
from groups.frameworks import FRAMEWORKS, OWN
from groups.layout import Job, own_groupings
from groups.megatron.parallel_state import process_groups
from groups.presets import PRESETS
from request.context import Context
from request.resolve import from_preset
from request.state import State
from request.trained import fields_of_preset
from request.words import sentence
from views.base.html import unparted
from views.base.names import kind_text, megatrons_name
from views.groups import view as groups_view
from views.page import answer
from views.parts.framed import framed
from views.parts.job import hero_html, spec_of
from views.parts.shown import by_grid

VIEWS = ("groups", "nodes", "orders", "ranks")


# -- frameworks and orders -----------------------------------------------------------------------


def test_experts_are_split_over_tp_where_a_framework_has_an_axis_for_that():
    found = {
        name: seen(State(nodes=2, tp=2, ep=2, pp=1, framework=name)).expert
        for name, one in FRAMEWORKS.items()
        if one.expert_axes and one.has_grids  # those are in test_serving.py
    }
    alone = {name for name, mesh in found.items() if mesh.size("etp") == 1}
    assert alone == {"torchtitan", "deepspeed-autoep"}
    assert {found[name].size("etp") for name in found.keys() - alone} == {2}
    assert {mesh.size("ep") for mesh in found.values()} == {2}


@every("nodes", [2, 256])
@every("framework", FRAMEWORKS)
def test_a_framework_draws_its_own_groups_or_is_refused_with_fixes_that_work(framework, nodes):
    drawn = 0
    for tp, cp, pp, ep in (
        (2, 1, 2, 1),
        (2, 2, 2, 4),
        (2, 1, 1, 1),
        (1, 1, 1, 1),
        (1, 1, 8 * nodes, 1),
    ):
        controls = State(
            group_type="framework", framework=framework, nodes=nodes, tp=tp, cp=cp, pp=pp, ep=ep
        )
        shown = answer(controls)
        if shown.picture is None:
            error = refusal_of(controls)
            assert error.alternatives
            for alternative in error.alternatives:
                assert answer(controls.changed(alternative)).picture is not None
            continue
        drawn += 1
        layout = seen(controls)
        own = own_groups(framework, layout)
        assert set(layout.kinds) == set(own)
        for one in layout.shown:
            assert one.groups().tolist() == own[one.name].tolist()
        if nodes == 2:
            for kind, group in panels(shown.picture).items():
                for index, ranks in enumerate(own[kind].tolist()):
                    assert np.flatnonzero(group == index).tolist() == ranks
    assert drawn


def own_groups(framework, layout):
    """The groups of a framework's own axes, from its row of the table alone; a server's are told
    beside what its engine makes (test_serving.py)."""
    convention = FRAMEWORKS[framework]
    if not convention.has_grids:
        return {name: grouping.groups() for name, grouping in layout.every.items()}
    found = {}
    grids = [("dense", convention.axes, layout.mesh)]
    if convention.expert_axes:
        grids.append(("expert", convention.expert_axes, layout.expert))
    for grid, axes, ours in grids:
        plays = {"tp": "etp"} if grid == "expert" else {}
        sizes = {
            own.name: ours.size(plays.get(own.axis, own.axis)) for own in axes if own.axis != "dp"
        }
        if framework in ("horovod", "deepspeed-zeropp"):
            sizes = {convention.of_node: layout.gpus_per_node}
        if framework == "tf-replicator":
            sizes["in_graph"] = layout.gpus_per_node // sizes["device"]
        mesh = convention.mesh(layout.world_size, grid, **sizes)
        joined = [] if convention.speaks_megatron else convention.groups
        kinds = {name: name for name in mesh.names}
        kinds |= {one.name: one.kind for one in joined if one.grid == grid}
        for name, kind in kinds.items():
            found.setdefault(name, rank_groups(mesh, kind))
    return found


@every("tp", [1, 2, 8, 16])
def test_replicas_in_a_graph_are_of_one_node_and_those_between_graphs_of_all(tp):
    # arXiv:1902.00465: replication in a graph, and between the graphs of workers.
    layout = seen(State(group_type="framework", framework="tf-replicator", nodes=4, tp=tp, pp=1))
    own = {one.name: one.groups() for one in layout.shown}
    assert {len(set(ranks // 8)) for ranks in own["in_graph"]} == {1}
    assert own["in_graph"].shape[1] == max(1, 8 // tp)
    assert {len(set(ranks // 8)) for ranks in own["between_graph"]} == {4 // max(1, tp // 8)}
    assert own["replicas"].tolist() == layout.every["dp"].groups().tolist()
    assert own["device"].tolist() == layout.every["tp"].groups().tolist()


def test_a_name_that_megatron_has_for_another_group_is_not_taken_for_it():
    layout = seen(State(group_type="framework", framework="fairscale", tp=4))
    own = {one.name: one for one in layout.shown}
    assert own["mp"].groups().tolist() == layout.every["tp"].groups().tolist()
    assert megatrons_name(layout, own["mp"]) == "tp"


OWN_ORDERS = {
    "an unknown axis": ({"order": "tp-cp-ep-dp-xx"}, "unknown-axis", "KeyError: 'xx'"),
    "a left-out axis": (
        {"order": "tp-cp-ep-dp"},
        "axis-not-in-order",
        "The size of (pp) is (2), but you haven'tspecified the order (tp-cp-ep-dp).",
    ),
    "no dp": (
        {"order": "tp-cp-ep-pp"},
        "axis-not-in-order",
        "The size of (dp) is (4), but you haven'tspecified the order (tp-cp-ep-pp).",
    ),
    "a repeated axis": ({"order": "tp-tp-cp-ep-dp-pp"}, "repeated-axis", ""),
    "spaces": ({"order": "tp dp pp"}, "bad-names", "KeyError: 'tp dp pp'"),
    "dp and edp differ": (
        {"order": "tp-cp-ep-pp-dp", "ep": 4},
        "dp-and-edp-differ",
        "When not using pp-last rank ordering, the data parallel size of the attention and moe "
        "layers must be the same",
    ),
    "pipelines differ": (
        {"order": "cp-pp-tp-ep-dp", "tp": 2, "cp": 2, "ep": 4, "etp": 1},
        "pipelines-differ",
        "Pipeline parallel groups are expected to be the same for Non-Expert and Expert part",
    ),
    "ep that does not divide": (
        {"order": "tp-cp-ep-dp-pp", "ep": 3},
        "does-not-divide",
        "world_size (16) is not divisible by expert_tensor_model_pipeline_parallel size (12)",
    ),
    "instances that do not divide": (
        {"order": "tp-cp-ep-dp-pp", "instances": 3},
        "instances-do-not-divide",
        "Data parallel size should be divisible by partial DistOpt shard factor",
    ),
    "levels that are not cp": (
        {"order": "tp-cp-ep-dp-pp", "cp": 4, "levels": "2x4"},
        "levels-do-not-multiply",
        "",
    ),
    "hybrid cp with a pipeline": (
        {"order": "tp-cp-ep-dp-pp", "hybrid": True},
        "hybrid-with-pipeline",
        "",
    ),
    "hybrid cp of an odd number": (
        {"order": "tp-cp-ep-dp-pp", "hybrid": True, "nodes": 3, "gpus_per_node": 6, "pp": 1},
        "hybrid-needs-even",
        "Hybrid context parallel requires an even number of ranks",
    ),
}


@every("language", ["en", "zh"])
@every("name", OWN_ORDERS)
def test_an_order_of_ones_own_is_refused_with_megatrons_words_and_a_cure(name, language):
    changes, code, quote = OWN_ORDERS[name]
    controls = State(framework=OWN, **changes)
    error = refusal_of(controls)
    assert (error.code, error.quote) == (code, quote)
    status = html.unescape(answer(replace(controls, lang=language)).status)
    assert (PAGE["megatron_says"][language] in status) == bool(quote)
    assert f"<code>{quote}</code>" in status or not quote
    assert unparted(sentence(error, language)) in status
    assert error.alternatives
    assert status.count("data-set=") == len(error.alternatives)
    for alternative in error.alternatives:
        assert answer(controls.changed(alternative)).picture is not None


@every(
    "order", ["dp-tp-cp-ep-pp", "cp-tp-ep-dp-pp", "ep-dp-tp-cp-pp", "tp-pp-cp-dp-ep", "dp-pp-tp"]
)
def test_an_order_of_ones_own_makes_megatrons_groups(order):
    controls = State(group_type="moe", framework=OWN, order=order, nodes=4, tp=2, pp=2)
    if order.endswith("pp"):
        controls = controls.changed({"cp": 2, "ep": 4, "etp": 1})
    layout = seen(controls)
    etp = None if controls.etp == "" else int(controls.etp)
    sizes = {name: int(getattr(controls, name)) for name in ("tp", "cp", "pp", "ep")}
    wanted = process_groups(32, order=order, etp=etp, **sizes)
    for one in layout.shown:
        assert one.groups().tolist() == wanted[one.name].tolist()
    drawn = panels(answer(controls).picture)
    assert set(drawn) == {one.name for one in layout.shown if one.size > 1}
    for kind, group in drawn.items():
        for index, ranks in enumerate(wanted[kind].tolist()):
            assert np.flatnonzero(group == index).tolist() == ranks


@every("language", ["en", "zh"])
def test_a_framework_without_an_axis_says_so_and_offers_the_way_out(language):
    controls = State(framework="llama3", ep=4)
    error = refusal_of(controls)
    assert error.control == "ep"
    assert {"ep": 1} in error.alternatives
    assert {"framework": "megatron"} in error.alternatives
    assert not error.quote
    assert FRAMEWORKS["llama3"].name in answer(replace(controls, lang=language)).status
    for group_type in ("ep", "moe", "ep+edp"):
        missing = refusal_of(State(framework="llama3", group_type=group_type))
        assert missing.code == "no-such-group"
        assert {"framework": "megatron"} in missing.alternatives


# -- presets -------------------------------------------------------------------------------------


@every("name", PRESETS)
def test_a_preset_is_its_published_layout_in_every_view_and_language(name):
    preset = PRESETS[name]
    controls = replace(from_preset(name), **fields_of_preset(name))
    layout = seen(controls)
    sizes = {axis: layout.mesh.size(axis) for axis in ("tp", "cp", "dp", "pp")}
    assert sizes == {"tp": preset.tp, "cp": preset.cp, "dp": preset.dp, "pp": preset.pp}
    assert (layout.world_size, layout.gpus_per_node) == (preset.world_size, preset.gpus_per_node)
    if preset.ep > 1:
        assert (layout.expert.size("ep"), layout.expert.size("edp")) == (preset.ep, preset.edp)
    for language, view in itertools.product(("en", "zh"), VIEWS):
        shown = answer(replace(controls, lang=language, view=view, ranks="0, 3"))
        assert f'data-view="{view}"' in shown.picture
        assert not shown.status
        assert 'role="alert"' not in shown.picture


def test_an_order_that_megatron_refuses_for_a_job_is_not_what_it_is_compared_with_unasked():
    """DeepSeek-V3: dp 128 and edp 2 differ, so pp cannot stand before dp; data before ep can."""
    controls = from_preset("deepseek-v3")
    unasked = answer(replace(controls, view="orders")).picture
    assert "tp-cp-dp-ep-pp" in unasked
    asked = answer(replace(controls, view="orders", versus="megatron-pp-dp")).picture
    assert 'role="alert"' in asked
    assert "When not using pp-last rank ordering" in asked


@every("changes", [{"instances": 2}, {"levels": "2x2"}, {"hybrid": True}])
def test_an_option_of_megatrons_is_not_ignored_in_another_framework(changes):
    refusal = refusal_of(State(framework="llama3", **changes))
    assert refusal.code == "framework-has-no-option"
    assert refusal.control in changes
    for alternative in refusal.alternatives:
        assert answer(State(framework="llama3", **changes).changed(alternative)).picture


def test_a_name_stands_for_one_group():
    """Fairscale's mp is tp; Megatron's, of tp and pp, it does not make."""
    state = State(framework="fairscale", tp=2, pp=2, group_type="framework")
    for more in ("mp", "own.mp"):  # drawn already
        assert answer(replace(state, more=more)).picture == answer(state).picture
    assert seen(replace(state, group_type="chosen", more="mp")).shown[0].size == 2


@every(
    "name, world, mesh",
    [
        ("playground-16", 16, "tp2-cp1-dp4-pp2"),
        ("bloom-176b", 384, "tp4-dp8-pp12-cp1"),
        ("llama3-405b-3", 16_384, "tp8-cp16-pp16-dp8"),
        ("palm-540b", 6144, "tp12-dp512-cp1-pp1"),
    ],
)
def test_a_preset_keeps_the_order_of_its_framework(name, world, mesh):
    layout = seen(from_preset(name))
    assert (layout.world_size, str(layout.mesh)) == (world, mesh)


def test_deepseek_v3_has_32_expert_groups_that_reach_over_8_nodes():
    controls = from_preset("deepseek-v3")
    layout = seen(controls)
    assert layout.world_size == 2048
    assert (str(layout.mesh), str(layout.expert)) == (
        "tp1-cp1-dp128-pp16",
        "etp1-ep64-edp2-pp16",
    )
    shown = answer(controls)
    assert [str(mesh) for _, mesh, _ in by_grid(layout, layout.shown)] == [
        str(layout.mesh),
        str(layout.expert),
    ]
    for sizes in ("dp128 · pp16", "ep64 · edp2 · pp16"):
        assert sizes in written(shown.picture), sizes
    assert layout.kinds == ("dp", "pp", "ep", "edp")  # every kind larger than 1
    audit = answer(replace(controls, view="nodes")).picture
    warnings = [text_of(item) for item in select(audit, "li:not([class])")]
    assert len(warnings) == 1
    assert "ep" in warnings[0].split(":")[0].split(" = ")
    assert "32 of 32 groups leave their node, over up to 8 nodes" in warnings[0]


def test_llama_3_numbers_its_ranks_pipeline_before_data():
    mesh = seen(from_preset("llama3-405b-3")).mesh
    assert str(mesh) == "tp8-cp16-pp16-dp8"
    assert rank_groups(mesh, "dp")[0].tolist() == list(range(0, 16384, 2048))


def test_of_two_axes_of_one_rank_one_is_dp():
    layout = seen(State(nodes=1, tp=8, pp=1, framework="torchtitan"))
    own = {one.name: megatrons_name(layout, one) for one in own_groupings(layout)}
    assert (own["dp_shard"], own["dp_replicate"]) == ("dp", "")


# -- a framework's own groups, beside Megatron's names ---------------------------------------------

PREFIXED = [name for name, one in FRAMEWORKS.items() if one.has_prefix]


def own_names(framework):
    sizes = {"pp": 16} if framework == "gpipe" else {}
    state = State(nodes=2, framework=framework, **({"pp": 1, "tp": 1, "cp": 1} | sizes))
    return state, [*seen(state).own]


@every("language", ["en", "zh"])
@every("framework", PREFIXED)
def test_a_group_of_a_frameworks_own_is_drawn_and_described_by_its_name(framework, language):
    state, names = own_names(framework)
    assert names
    for name in names:
        shown = answer(replace(state, group_type="chosen", more=name, lang=language))
        assert not shown.status
        (panel,) = select(shown.picture, f'[data-kind="{name}"]')[:1] or [None]
        layout = seen(state)
        if layout.own[name].size > 1:
            assert panel is not None
        text = kind_text(layout, layout.own[name], language)
        assert text.title.startswith(name.removeprefix("own.")) or language == "zh"
        assert name.removeprefix("own.") in text.title
        assert "{" not in text.title + text.lead + text.body
        is_chinese = any("\u4e00" <= letter <= "\u9fff" for letter in text.body)
        assert is_chinese == (language == "zh")


def test_a_framework_lists_the_groups_that_it_makes_and_no_others():
    """The names of Megatron's in the order of its table: axes, then what the framework joins."""
    axes, experts = {"tp", "cp", "dp", "pp"}, {"etp", "ep", "edp"}
    joined = {
        "torchtitan": {"dp-cp"},  # loss
        "picotron": {"dp-cp"},  # cp_dp
        "llama3": set(),
        "deepspeed": {"mp"},  # ds_model
        "megatron-deepspeed": {"mp", "embd"},
        "nanotron": {"mp", "tp-cp"},
        "nanotron-moe": set(),
        "horovod": set(),
    }
    for framework, names in joined.items():
        layout = Job(nodes=2, framework=framework).layout()
        has = axes | names | (experts if layout.expert is not None else set())
        assert {*layout.every} == has, framework
        assert {*layout.roles} >= {"mp", "dp-cp", "embd"}  # what numbers are computed of


def test_a_group_that_a_framework_does_not_make_is_refused_by_name():
    error = refusal_of(State(framework="picotron", more="embd"))
    assert (error.code, error.facts["name"]) == ("no-such-group", "embd")
    picture = answer(State(framework="picotron", cp=2, more="cp_dp,own.pp_dp")).picture
    assert {"own.cp_dp", "own.pp_dp"} <= {*panels(picture)}


# -- painted once ----------------------------------------------------------------------------------


def test_the_picture_shows_nothing_but_what_it_is_remembered_by():
    """Every other field of a state, set to something else, leaves it as it was painted anew."""
    changes = {"model": "llama3-8b", "layers": "32", "global_batch": "512", "zero": "3"}
    states = [State(), State(**changes), State(nodes=16, tp=4, ep=2, more="embd", rank="9")]
    states += [State(framework="vllm", model="llama3-8b", tp=4), State(framework="llama3", cp=2)]
    states += [State(preset=name, **vars_of(name)) for name in ("bloom-176b", "deepseek-v3")]
    for state, language in itertools.product(states, ("en", "zh")):
        context = Context.of(replace(state, lang=language))
        spec = spec_of(context)
        hero = hero_html(spec, groups_view._on_nodes(spec))
        parts = (
            groups_view._strip(context),
            groups_view._kinds(spec),
            groups_view._about(context),
        )
        assert groups_view.groups_html(context) == framed(spec, "groups", hero, *parts)


def vars_of(preset):
    state = replace(from_preset(preset), **fields_of_preset(preset))
    return {name: value for name, value in vars(state).items() if name != "preset"}


def test_a_step_of_the_batch_paints_nothing_anew(monkeypatch):
    painted, paint = [], groups_view._painted.function
    monkeypatch.setattr(
        groups_view._painted, "function", lambda *asked: painted.append(asked) or paint(*asked)
    )
    answer(State(nodes=3, tp=2, pp=3, global_batch="768"))
    answer(State(nodes=3, tp=2, pp=3, global_batch="1536"))
    assert len(painted) == 1
