"""The page as a pure function: what the Groups view shows, what is refused, and that fixes work."""

from __future__ import annotations

import html
import itertools
import json
import re
from functools import cache

import numpy as np
import pytest

from descriptions import CONTROLS, PAGE, REFUSALS, TYPES, kind_of
from groups import LayoutError, fit, rank_groups
from groups.conventions import CONVENTIONS
from groups.job import MEGATRONS, OWN
from groups.megatron import process_groups
from groups.presets import PRESETS
from views.details import MEMBERS, ROWS, details_html, groups_csv, groups_text
from views.messages import fix_label, sentence
from views.names import megatrons_name
from views.page import Asked, answer
from views.picture import by_grid
from views.state import Controls, from_preset, language_of, read

SETTINGS = list(itertools.product(range(1, 9), repeat=3))
VALID = [(tp, pp, cp) for tp, pp, cp in SETTINGS if 16 % (tp * pp * cp) == 0]
ORIGINAL_TYPES = list(TYPES)[:11]


VIEWS = ("groups", "nodes", "orders", "ranks")


def panels(picture: str) -> dict[str, np.ndarray]:
    """The group of each rank in every panel, read back from the page; -1 for a rank in none."""
    found = {}
    for kind, svg in re.findall(r'<svg class="panel" data-kind="([^"]+)"(.*?)</svg>', picture):
        cells = re.findall(r'data-r="(\d+)" data-g="(\d*)"', svg)
        assert [int(rank) for rank, _ in cells] == list(range(len(cells)))
        assert kind not in found
        found[kind] = np.array([int(group or -1) for _, group in cells])
    return found


def refusal_of(controls: Controls) -> LayoutError:
    with pytest.raises(LayoutError) as refusal:
        read(controls)
    return refusal.value


def test_the_original_has_512_settings_and_32_of_them_are_valid():
    assert (len(SETTINGS), len(VALID)) == (512, 32)


@pytest.mark.parametrize("group_type", ORIGINAL_TYPES)
def test_every_valid_setting_of_the_original_draws_the_right_groups(group_type):
    for tp, pp, cp in VALID:
        shown = answer(Controls(group_type=group_type, tp=tp, pp=pp, cp=cp))
        assert "refused" not in shown.status
        mesh = fit(16, tp=tp, pp=pp, cp=cp)
        drawn = panels(shown.picture)
        assert tuple(drawn) == TYPES[group_type].kinds
        assert [str(read(Controls(tp=tp, pp=pp, cp=cp)).mesh)] == [str(mesh)]
        for kind, group in drawn.items():
            assert len(group) == 16
            for index, ranks in enumerate(rank_groups(mesh, kind).tolist()):
                assert np.flatnonzero(group == index).tolist() == ranks


@cache
def cures(tp: int, pp: int, cp: int) -> tuple[dict, ...]:
    return refusal_of(Controls(tp=tp, pp=pp, cp=cp)).alternatives


@pytest.mark.parametrize("group_type", ORIGINAL_TYPES)
def test_every_other_setting_is_refused_with_fixes_that_work(group_type):
    mended = set()
    for tp, pp, cp in set(SETTINGS) - set(VALID):
        controls = Controls(group_type=group_type, tp=tp, pp=pp, cp=cp)
        shown = answer(controls)
        assert shown.picture is None
        assert shown.details is None
        buttons = re.findall(r'data-fix="\d">([^<]*)<', shown.status)
        alternatives = cures(tp, pp, cp)  # which groups are shown changes nothing in them
        assert 1 <= len(alternatives) <= 3
        assert buttons == [fix_label(alternative, "en") for alternative in alternatives]
        mended |= {controls.changed(alternative) for alternative in alternatives}
    for controls in mended:
        assert answer(controls).picture is not None


def test_a_fix_may_be_more_nodes_so_that_the_sizes_stay():
    with pytest.raises(LayoutError) as refusal:
        read(Controls(tp=3, pp=1))
    assert refusal.value.alternatives == ({"tp": 2}, {"tp": 4}, {"nodes": 3})
    assert read(Controls(tp=3, pp=1, nodes=3)).world_size == 24


@pytest.mark.parametrize(
    ("changes", "control"),
    [
        ({"nodes": 0}, "nodes"),
        ({"nodes": "many"}, "nodes"),
        ({"nodes": 2.5}, "nodes"),
        ({"nodes": True}, "nodes"),
        ({"nodes": None}, "nodes"),
        ({"nodes": float("nan")}, "nodes"),
        ({"nodes": 10**30}, "nodes"),
        ({"nodes": 10**5000}, "nodes"),
        ({"nodes": [2]}, "nodes"),
        ({"nodes": {"a": 1}}, "nodes"),
        ({"gpus_per_node": "8.5"}, "gpus_per_node"),
        ({"gpus_per_node": ["16"]}, "gpus_per_node"),
        ({"gpus_per_node": ""}, "gpus_per_node"),
        ({"gpus_per_node": "1" * 5000}, "gpus_per_node"),
        ({"tp": "abc"}, "tp"),
        ({"tp": "<img src=x onerror=alert(1)>"}, "tp"),
        ({"pp": -1}, "pp"),
        ({"cp": float("inf")}, "cp"),
        ({"group_type": "experts"}, "group_type"),
        ({"group_type": ["dp"]}, "group_type"),
        ({"order": "pp-dp-cp-tp-xx", "framework": "own"}, "order"),
        ({"order": "<img src=x onerror=alert(1)>", "framework": "own"}, "order"),
        ({"order": ["tp-cp-ep-dp-pp"], "framework": "own"}, "order"),
        ({"order": None, "framework": "own"}, "order"),
        ({"order": "tp-" * 9000, "framework": "own"}, "order"),
        ({"framework": "Megatron"}, "framework"),
        ({"framework": ["megatron"]}, "framework"),
        ({"framework": None}, "framework"),
        ({"ep": "abc"}, "ep"),
        ({"ep": 0}, "ep"),
        ({"ep": {"a": 1}}, "ep"),
        ({"ep": 10**5000}, "ep"),
        ({"etp": "<img src=x onerror=alert(1)>"}, "etp"),
        ({"etp": [1]}, "etp"),
        ({"etp": -2}, "etp"),
        ({"more": "nothing"}, "more"),
        ({"more": ["<img src=x onerror=alert(1)>"]}, "more"),
        ({"more": [["embd"]]}, "more"),
        ({"more": {"embd": 1}}, "more"),
        ({"more": 7}, "more"),
        ({"more": ["x" * 9000]}, "more"),
        ({"instances": "abc"}, "instances"),
        ({"instances": None}, "instances"),
        ({"instances": [2]}, "instances"),
        ({"instances": 10**5000}, "instances"),
        ({"levels": "2x2", "cp": 1}, "levels"),
        ({"levels": "<img src=x onerror=alert(1)>"}, "levels"),
        ({"levels": [2, 2], "cp": 4, "pp": 1}, "levels"),
        ({"levels": {"a": 1}}, "levels"),
        ({"levels": "2x" * 900}, "levels"),
        ({"dp_kind": None}, "dp_kind"),
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_bad_control_is_named_in_words_and_its_value_is_escaped(changes, control, language):
    shown = answer(Controls(**changes), language)
    assert shown.picture is None
    assert f'data-control="{control}"' in shown.status
    assert 'role="alert"' in shown.status
    assert "<img" not in shown.status
    assert len(shown.status) < 2500
    for alternative in refusal_of(Controls(**changes)).alternatives:
        assert answer(Controls(**changes).changed(alternative)).picture is not None


def test_too_many_gpus_are_refused_with_the_most_that_fit():
    with pytest.raises(LayoutError) as refusal:
        read(Controls(nodes=200_000, gpus_per_node=8))
    assert refusal.value.code == "too-many-ranks"
    assert {"nodes": 131_072} in refusal.value.alternatives
    assert answer(Controls(nodes=131_072)).picture is not None


def test_a_refusal_in_chinese_is_chinese_and_names_the_control_as_the_page_does():
    with pytest.raises(LayoutError) as refusal:
        read(Controls(gpus_per_node="x"))
    assert sentence(refusal.value, "zh").startswith(CONTROLS["gpus_per_node"].label["zh"])
    with pytest.raises(LayoutError) as refusal:
        read(Controls(tp=3))
    assert "不能整除 16" in sentence(refusal.value, "zh")


CP_TYPES = [name for name, text in TYPES.items() if {"cp"} <= set(text.kinds) and name != "moe"]


@pytest.mark.parametrize("group_type", CP_TYPES)
def test_in_a_cp_type_the_user_chooses_what_data_parallel_means(group_type):
    controls = Controls(group_type=group_type, cp=2)
    both = "dp" in TYPES[group_type].kinds
    assert ("data-choose-dp" in answer(controls).status) == both
    chosen = Controls(group_type=group_type, cp=2, dp_kind="dp-cp")
    assert ("dp-cp" in read(chosen).kinds) == both
    assert "dp-cp" not in read(controls).kinds
    if both:
        assert kind_of("dp-cp").title["en"] in answer(chosen).picture
        assert kind_of("dp").title["en"] not in answer(chosen).picture


@pytest.mark.parametrize("group_type", ["dp", "dp+tp", "dp+pp", "dp+tp+pp"])
def test_outside_the_cp_types_dp_is_dp_and_a_hidden_cp_is_said(group_type):
    shown = answer(Controls(group_type=group_type, cp=2, dp_kind="dp-cp"))
    assert "data-choose-dp" not in shown.status
    assert "dp-cp" not in panels(shown.picture)
    assert PAGE["cp_hidden"]["en"].format(cp=2) in shown.picture
    assert "dp-cp; a CP type" not in answer(Controls(group_type=group_type)).picture


# -- frameworks and orders -----------------------------------------------------------------------


@pytest.mark.parametrize("nodes", [2, 256])
@pytest.mark.parametrize("framework", CONVENTIONS)
def test_a_framework_draws_its_own_groups_or_is_refused_with_fixes_that_work(framework, nodes):
    drawn = 0
    for tp, cp, pp, ep in (
        (2, 1, 2, 1),
        (2, 2, 2, 4),
        (2, 1, 1, 1),
        (1, 1, 1, 1),
        (1, 1, 8 * nodes, 1),
    ):
        controls = Controls(
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
        layout = read(controls)
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
    """The groups of a framework's own axes, from its row of the table alone."""
    convention = CONVENTIONS[framework]
    found = {}
    grids = [("dense", convention.axes, convention.mesh, layout.mesh)]
    if convention.expert_axes:
        grids.append(("expert", convention.expert_axes, convention.expert_mesh, layout.expert))
    for grid, axes, make, ours in grids:
        plays = {"tp": "etp"} if grid == "expert" else {}
        sizes = {
            own.name: ours.size(plays.get(own.axis, own.axis)) for own in axes if own.axis != "dp"
        }
        if framework == "horovod":
            sizes = {"local": layout.gpus_per_node}
        mesh = make(layout.world_size, **sizes)
        joined = [] if framework in MEGATRONS else convention.groups
        kinds = {name: name for name in mesh.names}
        kinds |= {one.name: one.kind for one in joined if one.grid == grid}
        for name, kind in kinds.items():
            found.setdefault(name, rank_groups(mesh, kind))
    return found


def test_a_name_that_megatron_has_for_another_group_is_not_taken_for_it():
    layout = read(Controls(group_type="framework", framework="fairscale", tp=4))
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
        "Hybrid context parallelism requires an even number of ranks",
    ),
}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", OWN_ORDERS)
def test_an_order_of_ones_own_is_refused_with_megatrons_words_and_a_cure(name, language):
    changes, code, quote = OWN_ORDERS[name]
    controls = Controls(framework=OWN, **changes)
    error = refusal_of(controls)
    assert (error.code, error.quote) == (code, quote)
    status = html.unescape(answer(controls, language).status)
    assert (PAGE["megatron_says"][language] in status) == bool(quote)
    assert f"<code>{quote}</code>" in status or not quote
    assert sentence(error, language) in status
    assert error.alternatives
    assert status.count("data-fix=") == len(error.alternatives)
    for alternative in error.alternatives:
        assert answer(controls.changed(alternative)).picture is not None


@pytest.mark.parametrize(
    "order", ["dp-tp-cp-ep-pp", "cp-tp-ep-dp-pp", "ep-dp-tp-cp-pp", "tp-pp-cp-dp-ep", "dp-pp-tp"]
)
def test_an_order_of_ones_own_makes_megatrons_groups(order):
    controls = Controls(group_type="moe", framework=OWN, order=order, nodes=4, tp=2, pp=2)
    if order.endswith("pp"):
        controls = controls.changed({"cp": 2, "ep": 4, "etp": 1})
    layout = read(controls)
    etp = None if controls.etp == "" else int(controls.etp)
    sizes = {name: getattr(controls, name) for name in ("tp", "cp", "pp", "ep")}
    wanted = process_groups(32, order=order, etp=etp, **sizes)
    for one in layout.shown:
        assert one.groups().tolist() == wanted[one.name].tolist()
    drawn = panels(answer(controls).picture)
    assert set(drawn) == {one.name for one in layout.shown if one.size > 1}
    for kind, group in drawn.items():
        for index, ranks in enumerate(wanted[kind].tolist()):
            assert np.flatnonzero(group == index).tolist() == ranks


def test_groups_that_are_cut_or_thinned_leave_the_other_gpus_in_none():
    more = ("hcp-l0", "hcp-l1", "inter-edp", "intra-dist-opt", "embd", "pos-embd")
    controls = Controls(
        group_type="chosen", more=more, nodes=4, tp=1, cp=4, pp=4, levels="2x2", instances=2
    )
    wanted = process_groups(
        32,
        cp=4,
        pp=4,
        hierarchical_context_parallel_sizes=(2, 2),
        num_distributed_optimizer_instances=2,
    )
    drawn = panels(answer(controls).picture)
    assert set(drawn) == set(more) - {"pos-embd"}  # beside another grid, not for groups of one
    drawn |= panels(answer(controls.changed({"more": ("pos-embd",)})).picture)
    assert set(drawn) == set(more)
    for kind, group in drawn.items():
        groups = [sorted(int(rank) for rank in ranks) for ranks in wanted[kind]]
        for index, ranks in enumerate(groups):
            assert np.flatnonzero(group == index).tolist() == ranks
        in_none = sorted(set(range(32)) - {rank for ranks in groups for rank in ranks})
        assert np.flatnonzero(group == -1).tolist() == in_none
    assert "20 GPUs in no such group" not in answer(controls).picture
    assert "16 GPUs in no such group" in answer(controls).picture  # embd: two stages of four
    assert "24 GPUs in no such group" in answer(controls).picture  # pos-embd: one of four


def test_a_group_that_is_chosen_and_belongs_to_the_type_is_shown_once():
    assert read(Controls(more=("tp", "embd", "tp"))).kinds == ("dp", "tp", "pp", "embd")
    own = Controls(group_type="framework", more=("tp", "edp"))
    assert read(own).kinds == ("tp", "cp", "dp", "pp", "etp", "ep", "edp")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_framework_without_an_axis_says_so_and_offers_the_way_out(language):
    controls = Controls(framework="llama3", ep=4)
    error = refusal_of(controls)
    assert error.control == "ep"
    assert {"ep": 1} in error.alternatives
    assert {"framework": "megatron"} in error.alternatives
    assert not error.quote
    assert CONVENTIONS["llama3"].name in answer(controls, language).status
    for group_type in ("ep", "moe", "ep+edp"):
        missing = refusal_of(Controls(framework="llama3", group_type=group_type))
        assert missing.code == "no-such-group"
        assert {"framework": "megatron"} in missing.alternatives


# -- presets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_its_published_layout_in_every_view_and_language(name):
    preset, controls = PRESETS[name], from_preset(name)
    layout = read(controls)
    sizes = {axis: layout.mesh.size(axis) for axis in ("tp", "cp", "dp", "pp")}
    assert sizes == {"tp": preset.tp, "cp": preset.cp, "dp": preset.dp, "pp": preset.pp}
    assert (layout.world_size, layout.gpus_per_node) == (preset.world_size, preset.gpus_per_node)
    if preset.ep > 1:
        assert (layout.expert.size("ep"), layout.expert.size("edp")) == (preset.ep, preset.edp)
    for language, view in itertools.product(("en", "zh"), VIEWS):
        shown = answer(controls, language, asked=Asked(view=view, ranks="0, 3"))
        assert f'data-view="{view}"' in shown.picture
        assert "refused" not in shown.status
        assert 'role="alert"' not in shown.picture


def test_an_order_that_megatron_refuses_for_a_job_is_not_what_it_is_compared_with_unasked():
    """DeepSeek-V3: dp 128 and edp 2 differ, so pp cannot stand before dp; data before ep can."""
    controls = from_preset("deepseek-v3")
    unasked = answer(controls, asked=Asked(view="orders")).picture
    assert "tp-cp-dp-ep-pp" in unasked
    asked = answer(controls, asked=Asked(view="orders", versus="megatron-pp-dp")).picture
    assert 'role="alert"' in asked
    assert "When not using pp-last rank ordering" in asked


@pytest.mark.parametrize("changes", [{"instances": 2}, {"levels": "2x2"}, {"hybrid": True}])
def test_an_option_of_megatrons_is_not_ignored_in_another_framework(changes):
    refusal = refusal_of(Controls(framework="llama3", **changes))
    assert refusal.code == "framework-has-no-option"
    assert refusal.control in changes
    for alternative in refusal.alternatives:
        assert answer(Controls(framework="llama3", **changes).changed(alternative)).picture


def test_a_name_stands_for_one_group():
    """Fairscale's mp is tp, Megatron's is tp-pp."""
    refusal = refusal_of(Controls(framework="fairscale", group_type="framework", more=("mp",)))
    assert refusal.code == "name-taken"
    assert refusal.alternatives


@pytest.mark.parametrize(
    ("name", "world", "mesh"),
    [
        ("playground-16", 16, "tp2-cp1-dp4-pp2"),
        ("bloom-176b", 384, "tp4-dp8-pp12-cp1"),
        ("llama3-405b-3", 16_384, "tp8-cp16-pp16-dp8"),
        ("palm-540b", 6144, "tp12-dp512-cp1-pp1"),
    ],
)
def test_a_preset_keeps_the_order_of_its_framework(name, world, mesh):
    layout = read(from_preset(name))
    assert (layout.world_size, str(layout.mesh)) == (world, mesh)


def test_deepseek_v3_has_32_expert_groups_that_reach_over_8_nodes():
    controls = from_preset("deepseek-v3")
    layout = read(controls)
    assert layout.world_size == 2048
    assert (str(layout.mesh), str(layout.expert)) == (
        "tp1-cp1-dp128-pp16",
        "etp1-ep64-edp2-pp16",
    )
    shown = answer(controls)
    assert [str(mesh) for _, mesh, _ in by_grid(layout)] == [str(layout.mesh), str(layout.expert)]
    for mesh in (layout.mesh, layout.expert):
        assert f"<code>{mesh}</code>" in shown.picture
    assert layout.kinds == ("tp", "cp", "dp", "pp", "etp", "ep", "edp")
    audit = html.unescape(answer(controls, asked=Asked(view="nodes")).picture)
    warnings = re.findall(r"<li>(.*?)</li>", audit)
    assert len(warnings) == 1
    assert "ep" in warnings[0].split(":")[0].split(" = ")
    assert "32 of 32 groups leave their node, over up to 8 nodes" in warnings[0]


def test_llama_3_numbers_its_ranks_pipeline_before_data():
    mesh = read(from_preset("llama3-405b-3")).mesh
    assert str(mesh) == "tp8-cp16-pp16-dp8"
    assert rank_groups(mesh, "dp")[0].tolist() == list(range(0, 16384, 2048))


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("nodes", [2, 2048])
def test_texts_beside_the_picture_are_those_of_its_type_and_kinds(language, nodes):
    for name, group_type in TYPES.items():
        more = ("embd", "tp-ep-pp", "intra-dist-opt") if name == "chosen" else ()
        controls = Controls(group_type=name, nodes=nodes, ep=2, etp=1, more=more)
        picture = html.unescape(answer(controls, language).picture)
        assert group_type.title[language] in picture
        assert group_type.body[language] in picture
        kinds = read(controls).kinds
        assert kinds[: len(group_type.kinds)] == group_type.kinds
        assert len(kinds) >= 1
        for kind in kinds:
            assert kind_of(kind).title[language] in picture
            assert kind_of(kind).body[language] in picture
        for link in group_type.reading:
            assert f'href="{link.url}"' in picture


@pytest.mark.parametrize(("world", "nodes"), [(264, 33), (1024, 128), (131_072, 16_384)])
def test_above_256_gpus_the_pinned_rank_is_marked_and_told(world, nodes):
    shown = answer(Controls(nodes=nodes), pin=world - 1)
    assert f'data-rank="{world - 1}"' in shown.picture
    assert 'class="panel"' not in shown.picture
    assert shown.picture.count('class="overview"') == 2
    gone = answer(Controls(nodes=nodes), pin=world)
    assert 'data-rank="0"' in gone.picture


def test_the_pages_script_gets_the_mesh_that_python_used():
    controls = Controls(
        group_type="cp+dp",
        cp=2,
        pp=2,
        ep=4,
        etp=1,
        dp_kind="dp-cp",
        instances=2,
        more=("edp", "inter-edp", "embd", "intra-dist-opt"),
    )
    assert script_data(answer(controls).picture) == {
        "grids": [
            [["tp", 2], ["cp", 2], ["dp", 2], ["pp", 2]],
            [["etp", 1], ["ep", 4], ["edp", 2], ["pp", 2]],
        ],
        "coordinates": 2,
        "kinds": [
            ["cp", "cp", 0, ["cp"], 0, 1, [], 1],
            ["dp-cp", "dp", 0, ["cp", "dp"], 0, 1, [], 1],
            ["edp", "dp", 1, ["edp"], 0, 1, [], 1],
            ["inter-edp", "tp", 1, ["edp"], 2, 1, [], 1],
            ["embd", "pp", 0, ["pp"], 0, 1, [0, 1], 1],
            ["intra-dist-opt", "cp", 1, ["etp", "ep", "pp"], 0, 1, [], 1],
        ],
        "told": 6,
        "gpusPerNode": 8,
        "world": 16,
    }


def script_data(picture: str) -> dict:
    return json.loads(html.unescape(re.search(r'data-mesh="([^"]*)"', picture)[1]))


def test_the_same_request_is_answered_alike_and_another_users_differs():
    mine, theirs = Controls(tp=2), Controls(tp=4)
    first = answer(mine)
    assert answer(theirs) != first
    assert answer(mine) == first


def test_the_table_and_the_list_hold_the_groups():
    layout = read(Controls())
    shown = details_html(layout, "en")
    rows = re.findall(r"<tr><td>(\w+)</td><td>(\d+)</td><td[^>]*>([^<]*)</td><td>(\d+)</td>", shown)
    assert rows[0] == ("dp", "0", "0, 2, 4, 6", "1")
    assert rows[-1] == ("pp", "7", "7, 15", "2")
    assert len(rows) == 4 + 8 + 8
    assert "pp group 7: [7, 15]" in shown


def test_a_long_table_says_how_many_there_are_and_the_files_have_all():
    layout = read(from_preset("llama3-405b-3").changed({"group_type": "cp+dp+tp+pp"}))
    shown = details_html(layout, "en")
    assert shown.count("<tr><td>tp</td>") == ROWS
    assert "2,048" in re.search(r'class="more">([^<]*)', shown)[1]
    text = groups_text(layout)
    assert "tp group 2047: [16376, 16377" in text
    lines = groups_csv(layout).splitlines()
    assert lines[0] == "kind,group,nodes_spanned,ranks"
    assert len(lines) == 1 + 1024 + 2048 + 2048 + 1024
    assert f"dp,2047,8,{' '.join(map(str, range(2047, 16384, 2048)))}" in lines


def test_a_long_group_is_cut_in_the_list_and_whole_in_the_file():
    layout = read(Controls(group_type="dp", nodes=1024, tp=1, pp=1))
    assert "…" in re.search(r"dp group 0: \[([^\]]*)\]", details_html(layout, "en"))[1]
    whole = re.search(r"dp group 0: \[([^\]]*)\]", groups_text(layout))[1]
    assert len(whole.split(", ")) == 8192 > MEMBERS


def test_every_code_of_a_refusal_has_its_sentence_in_both_languages():
    import pathlib

    rooms = ("groups", "training", "views")
    source = "".join(path.read_text() for room in rooms for path in pathlib.Path(room).glob("*.py"))
    codes = set(re.findall(r'LayoutError\(\s*"([a-z-]+)"', source))
    assert codes <= set(REFUSALS)
    for left in set(REFUSALS) - codes:  # chosen by a condition, not next to the error
        assert f'"{left}"' in source


@pytest.mark.parametrize("value", ["fr", None, ["zh"], 3])
def test_an_unknown_language_is_answered_in_english(value):
    assert language_of(value) == "en"
