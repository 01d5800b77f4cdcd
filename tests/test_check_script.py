"""The script that checks a job's groups on its nodes: the groups that it makes, and its text."""

from __future__ import annotations

import ast
import sys
from dataclasses import fields, replace

import pytest
from check_jobs import JOBS, PLAIN, lists, loaded
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.check.script import ALSO, MAX_MEGABYTES, check_script
from formats.documents.exports import groups_by_name
from groups import LayoutError, parse_mesh
from groups.grouping import Grouping
from groups.layout import Job, Layout
from groups.presets import PRESETS
from training.recipe import Training

# -- the groups that it makes --------------------------------------------------------------------


@pytest.mark.parametrize("layout", JOBS.values(), ids=JOBS)
def test_the_script_makes_the_groups_of_every_name(layout):
    script = loaded(check_script(layout, layout.every))
    assert [kind.name for kind in script.KINDS] == list(layout.every)
    for kind in script.KINDS:
        assert script.groups_of(kind) == lists(layout.every[kind.name].groups()), kind
    assert layout.world_size == script.WORLD_SIZE
    assert layout.gpus_per_node == script.GPUS_PER_NODE


def test_the_script_makes_the_groups_of_every_published_layout():
    checked = 0
    for preset in PRESETS.values():
        if preset.world_size > 2048:
            continue
        sizes = ("nodes", "gpus_per_node", "tp", "cp", "pp", "ep", "etp", "framework")
        job = Job(**{name: getattr(preset, name) for name in sizes})
        layout = job.layout()
        script = loaded(check_script(layout))
        checked += 1
        for kind in script.KINDS:
            made = layout.own.get(f"own.{kind.name}") or layout.every[kind.name]
            assert script.groups_of(kind) == lists(made.groups()), (preset, kind)
    assert checked > 20


def drawn(draw) -> Grouping:
    """Any grouping over a mesh of up to four axes."""
    names = draw(st.permutations(["tp", "cp", "dp", "gtp_remat"]))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    mesh = parse_mesh("-".join(f"{name}{size}" for name, size in zip(names, sizes)))
    swept = draw(st.lists(st.sampled_from(mesh.names), min_size=1, unique=True))
    one = Grouping("any", mesh, "-".join(swept))
    lines = mesh.world_size // one.whole
    how = draw(st.sampled_from(["plain", "cut", "strided", "thinned", "joined"]))
    if how == "cut":
        return replace(one, length=draw(st.integers(1, one.whole)))
    if how == "strided":
        length = draw(st.sampled_from([n for n in range(1, one.whole + 1) if one.whole % n == 0]))
        rest = one.whole // length
        strides = [n for n in range(1, rest + 1) if rest % n == 0]
        return replace(one, length=length, stride=draw(st.sampled_from(strides)))
    if how == "thinned":
        places = draw(st.sets(st.integers(0, one.whole - 1), min_size=1))
        return replace(one, places=tuple(sorted(places)))
    if how == "joined":
        dividing = [n for n in range(1, lines + 1) if lines % n == 0]
        return replace(one, joined=draw(st.sampled_from(dividing)))
    return one


@settings(deadline=None)
@given(st.composite(drawn)())
def test_the_script_makes_the_groups_of_any_request(grouping):
    layout = Layout(Job(gpus_per_node=1), grouping.mesh, None, {"any": grouping})
    script = loaded(check_script(layout, ["any"]))
    assert script.groups_of(script.KINDS[0]) == lists(grouping.groups())


def test_a_kind_says_all_that_a_grouping_says():
    """So that a field that is added to one is not forgotten in the other."""
    kind = loaded(check_script(JOBS["a plain one"])).Kind
    renamed = {"grid": "mesh", "sweeps": "kind"}
    own = [renamed.get(name, name) for name in kind._fields if name != "also"]
    assert own == [field.name for field in fields(Grouping)]


def test_left_out_names_are_all_that_have_something_to_send():
    layout = JOBS["a plain one"]
    script = loaded(check_script(layout))
    assert [kind.name for kind in script.KINDS] == [
        name for name, grouping in layout.every.items() if grouping.size > 1
    ]
    assert "cp" not in [kind.name for kind in script.KINDS]


def test_names_are_taken_in_the_order_given_and_once():
    script = loaded(check_script(JOBS["a plain one"], ["pp", "cp", "pp"]))
    assert [kind.name for kind in script.KINDS] == ["pp", "cp"]
    assert [kind.name for kind in loaded(check_script(JOBS["one GPU"], "tp")).KINDS] == ["tp"]
    assert loaded(check_script(JOBS["a plain one"], [])).KINDS == []
    assert loaded(check_script(JOBS["one GPU"])).KINDS == []


def test_a_framework_s_own_groups_are_checked_by_the_name_of_documents():
    layout = Job(nodes=2, tp=2, pp=2, framework="torchtitan").layout()
    script = loaded(check_script(layout, ["own.dp_shard_cp"]))
    (kind,) = script.KINDS
    own = groups_by_name(layout, ["own.dp_shard_cp"])["own.dp_shard_cp"]
    assert sorted(map(sorted, script.groups_of(kind))) == sorted(map(sorted, own.groups()))


def test_what_training_does_besides_all_reduce_is_measured_too():
    script = loaded(check_script(JOBS["cut: levels"]))
    assert {kind.name: kind.also for kind in script.KINDS if kind.also} == {
        "cp": "send/recv",
        "pp": "send/recv",
        "hcp-l0": "all-to-all",
    }
    assert set(ALSO.values()) < set(script.SHARE)


BOTH = "all-gather reduce-scatter"
CP, EP, PP = {"cp": "send/recv"}, {"ep": "all-to-all"}, {"pp": "send/recv"}

OF_FRAMEWORKS = {
    "torchtitan": (
        {"tp": 2, "cp": 2, "instances": 2},
        ["tp", "cp", "dp_shard", "dp_replicate", "efsdp", "dp", "loss", "dp_shard_cp"],
        {**CP, "dp_shard_cp": BOTH, "efsdp": BOTH},
    ),
    "fsdp": ({"instances": 2}, ["dp_replicate", "dp_cp", "dp_shard_cp"], {"dp_shard_cp": BOTH}),
    "pytorch-ddp": ({}, ["data"], {}),
    "deepspeed-zeropp": (
        {"hpz": 4},
        ["all_to_all_global", "zero_param_intra", "data"],
        {"data": BOTH, "zero_param_intra": "all-gather"},
    ),
    "deepspeed-mics": (
        {"instances": 2},
        ["param_shard", "param_repli", "data"],
        {"param_shard": BOTH},
    ),
    "deepspeed-autoep": ({"tp": 2, "ep": 4}, ["tp", "dp", "ep", "edp"], EP),
    "fairscale": ({"tp": 2, "pp": 2}, ["mp", "pp", "dp"], PP),
}
"""Sizes of 16 GPUs, the groups that are checked, and what else is measured of some."""


@pytest.mark.parametrize("framework", OF_FRAMEWORKS)
def test_each_frameworks_own_groups_are_checked_with_what_it_sends_in_them(framework):
    sizes, names, also = OF_FRAMEWORKS[framework]
    layout = Job(nodes=2, framework=framework, **sizes).layout()
    script = loaded(check_script(layout))
    assert [kind.name for kind in script.KINDS] == names
    assert {kind.name: kind.also for kind in script.KINDS if kind.also} == also
    for kind in script.KINDS:
        own = layout.own[f"own.{kind.name}"]
        assert sorted(map(sorted, script.groups_of(kind))) == sorted(map(sorted, own.groups()))


def test_what_is_measured_follows_the_jobs_own_data_parallelism():
    layout = Job(nodes=2, tp=2, framework="deepspeed").layout()
    wanted = {0: "", 1: "all-gather", 2: "all-gather", 3: BOTH}
    for zero, also in wanted.items():
        how = Training(engine="zero", zero=zero)
        kinds = {kind.name: kind.also for kind in loaded(check_script(layout, training=how)).KINDS}
        assert kinds["data"] == also
    plain = JOBS["a plain one"]
    for how, also in ((Training(zero=0), ""), (Training(), BOTH), (Training(engine="ddp"), "")):
        kinds = {kind.name: kind.also for kind in loaded(check_script(plain, training=how)).KINDS}
        assert (kinds["dp-cp"], kinds["pp"]) == (also, "send/recv")


# -- the text of it ------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", JOBS.values(), ids=JOBS)
def test_the_script_is_python_3_8_and_needs_torch_only(layout):
    tree = ast.parse(check_script(layout), feature_version=(3, 8))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module.split(".")[0])
    assert modules - set(sys.stdlib_module_names) == {"torch"}


def test_the_script_is_for_its_job_from_the_first_lines_on():
    text = check_script(
        Job(nodes=4, gpus_per_node=4, tp=2, pp=2, framework="own").layout(),
        megabytes=16,
        job_text="torchrun --nnodes 4 \\\n  pretrain_gpt.py  # 训练",
    )
    title = "16 GPUs: 4 nodes of 4, Megatron Core, tp2-cp1-dp4-pp2, experts etp2-ep1-edp4-pp2"
    lines = text.splitlines()
    assert lines[:2] == ["#!/usr/bin/env python3", f"# Written for {title}."]
    assert "    torchrun --nnodes 4 --nproc-per-node 4 \\\\" in lines
    start = lines.index("# -- what this script was written for --")
    assert lines[start + 1 : start + 10] == [
        "# torchrun --nnodes 4 \\",
        "#   pretrain_gpt.py  # 训练",
        f'TITLE = "{title}"',
        "WORLD_SIZE = 16",
        "GPUS_PER_NODE = 4",
        "MEGABYTES = 16  # of 10**6 bytes; 0: no measurements",
        "HOSTS = []  # the machines are not named",
        "",
        'DENSE = "tp2-cp1-dp4-pp2"',
    ]
    assert "example" not in text


def test_the_script_of_131072_ranks_is_as_short_as_any():
    large = Job(nodes=16384, tp=8, cp=4, pp=16, ep=64, etp=1, instances=2, levels=(2, 2)).layout()
    small = Job(nodes=16, tp=8, cp=4, pp=2, ep=8, etp=1, instances=2, levels=(2, 2)).layout()
    longer = len(check_script(large)) - len(check_script(small))
    assert -100 < longer < 100
    script = loaded(check_script(large, ["dp-cp"]))
    groups = script.groups_of(script.KINDS[0])
    assert groups == large.every["dp-cp"].groups().tolist()


UNADORNED = ast.dump(ast.parse(check_script(PLAIN)))

ODD_TEXTS = [
    'import os\nos.system("x")',
    "a\rimport os",
    "a\x0bimport os\x0cimport os\x85import os\u2028import os",
    '"""\nimport os\n"""',
    "\\",
    "# -*- coding: rot13 -*-",
    "# -- the same for every job from here on --\nimport os",
    "\x00 \ud800 \u202e txt.sh",
]


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_no_text_of_the_job_becomes_code(text):
    script = check_script(PLAIN, job_text=text).encode()
    assert ast.dump(ast.parse(script)) == UNADORNED


@settings(deadline=None, max_examples=50)
@given(st.text())
def test_any_text_of_the_job_is_a_comment(text):
    script = check_script(PLAIN, job_text=text).encode()
    ast.parse(script)  # no character ends what is read of it
    plain = check_script(PLAIN).encode().splitlines()
    assert _without_comments(script.splitlines()) == _without_comments(plain)


def _without_comments(lines: list[bytes]) -> list[bytes]:
    return [line for line in lines if not line.startswith(b"#")]


# -- refusals ------------------------------------------------------------------------------------


def test_names_are_known_in_any_case():
    assert check_script(PLAIN, ["TP", "Dp"]) == check_script(PLAIN, ["tp", "dp"])


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("dpcp", "dp-cp"), ("D P", None), ("tp-pp", "tp-cp"), ("", None), (3, None), (["tp"], None)],
)
def test_a_name_that_is_none_is_refused_with_the_nearest(name, nearest):
    with pytest.raises(LayoutError) as caught:
        check_script(PLAIN, ["tp", name])
    error = caught.value
    assert (error.code, error.control) == ("no-such-group", "group")
    assert error.why == f"its groups are {', '.join(PLAIN.every)}"
    offered = [cure["group"] for cure in error.alternatives]
    assert nearest is None or nearest in offered
    for other in offered:
        assert check_script(PLAIN, other)


@pytest.mark.parametrize(
    ("megabytes", "code"),
    [(-1, "out-of-range"), (MAX_MEGABYTES + 1, "out-of-range"), (0.5, "not-a-whole-number")],
)
def test_a_size_that_is_none_is_refused(megabytes, code):
    with pytest.raises(LayoutError) as caught:
        check_script(PLAIN, megabytes=megabytes)
    assert (caught.value.code, caught.value.control) == (code, "megabytes")


def test_the_script_says_where_reality_differs():
    script = loaded(check_script(Job(nodes=2, tp=2, pp=2).layout()))
    assert script.host_differences([("a.lan", 0), ("c", 0), ("c", 1)], [("a", 1), ("b", 2)]) == [
        "ranks 1, 2 of b found on c"
    ]
    assert script.host_differences([("a", 0)], []) == []
    swapped = [("a", 0), ("b", 0), ("a", 1), ("b", 1)]
    assert script.placement_differences(sorted(swapped), 2) == []
    assert script.placement_differences(swapped, 2) == [
        "rank 1 belongs on node 0 (a) but stands on b, which is node 1",
        "rank 2 belongs on node 1 (b) but stands on a, which is node 0",
        "rank 1 has local rank 0 instead of 1",
        "rank 2 has local rank 1 instead of 0",
    ]
    sums = [[2, 1, 1], [2, 1, 1], [2, 5, 13], [0, 0, 0]]
    assert script.sums([2, 3]) == sums[2]
    assert script.sum_differences("tp", [[0, 1], [2, 3]], sums) == [
        "tp group 1 (ranks 2, 3) must come to [2, 5, 13], but rank 3 got [0, 0, 0]"
    ]
    assert script.text(range(0, 18, 2)) == "ranks 0, 2, 4, 6, 8, 10 ... 16 (9 of them)"


def test_the_script_reckons_bandwidth_as_nccl_tests():
    script = loaded(check_script(Job(nodes=2, tp=2, pp=2).layout()))
    seconds = [1.0, 2.0, 4.0, 4.0]
    assert script.bus_bandwidths("all-reduce", [[0, 1], [2, 3]], seconds, 8 * 10**9) == [4.0, 2.0]
    assert script.buffer_size("all-reduce", 3, 1) == 1_000_000
    assert script.buffer_size("all-to-all", 3, 1) == 999_996
