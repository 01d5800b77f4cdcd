"""What runs, read back: device meshes and process groups, of eight real processes too."""

from __future__ import annotations

import gzip
import io
import json
import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from browser import show
from hypothesis import given
from hypothesis import strategies as st
from running_jobs import JOB, LAYOUTS

from cli.command import run
from groups.errors import LayoutError
from groups.layout import Job, Layout
from groups.running import Difference, RunningGroup, read_process_groups
from request.answers.launch import read_launch
from request.context import Context
from request.named.launch import pasted_changes, read_pasted
from request.state import State
from views.launch.view import launch_html

MESHES = {
    "megatron tp2 pp2": "tp2-cp1-dp2-pp2",
    "megatron tp2 cp2 pp2": "tp2-cp2-dp1-pp2",
    "megatron ep4 pp2": "tp1-cp1-dp4-pp2 etp1-ep4-edp1-pp2",
    "megatron tp2 ep2 etp1": "tp2-cp1-dp4-pp1 etp1-ep2-edp4-pp1",
    "megatron tp2 pp2, dp last": "tp2-cp1-pp2-dp2",
    "torchtitan pp2 dp_shard2 tp2": "tp2-cp1-dp2-pp2",
    "torchtitan dp_replicate2 dp_shard2 tp2": "tp2-cp1-dp4-pp1",
    "torchtitan dp_shard2 cp2 tp2": "tp2-cp2-dp2-pp1",
    "torchtitan pp2 ep4": "tp1-cp1-dp4-pp2 etp1-ep4-edp1-pp2",
    "torchtitan tp2 ep2": "tp2-cp1-dp4-pp1 etp1-ep2-edp4-pp1",
    "accelerate dp_replicate2 cp2 tp2": "tp2-cp2-dp2-pp1",
    "deepspeed pipe2 data2 model2": "tp2-dp2-pp2-cp1",
    "deepspeed pipe2 data4": "tp1-dp4-pp2-cp1",
    "deepspeed experts 4": "tp1-dp8-pp1-cp1 etp1-ep4-edp2-pp1",
    "deepspeed data4 tensor2": "tp2-cp1-dp4-pp1",
    "vllm tp2 pp2 dp2": "tp2-cp1-pp2-dp2",
    "vllm tp4 pp2": "tp4-cp1-pp2-dp1",
    "vllm tp4 dp2": "tp4-cp1-pp1-dp2",
    "vllm tp4 pp2, dense": "tp4-cp1-pp2-dp1",
    "vllm tp2 pp2, two engines": "tp2-cp1-pp2-dp2",
}
"""The grid of dense layers that each of the layouts has, and that of experts where it has one."""


def known(ran, name: str) -> list[dict]:
    """What each of the eight processes knew in one of the layouts."""
    assert ran.status == 0, ran.err[-2000:]
    number = [*LAYOUTS].index(name)
    files = [ran.folder / f"{number}.{rank}.json" for rank in range(8)]
    if not files[0].exists() and os.environ.get("REQUIRE_TORCH") != "1":
        pytest.skip("megatron-core is missing")
    return [json.loads(file.read_text()) for file in files]


@pytest.mark.torch_job(JOB)
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_layout_of_eight_processes_follows_from_what_any_of_them_knows(ran, name):
    dense, *expert = MESHES[name].split()
    framework = name.split()[0]
    for one in known(ran, name):
        layout = Layout.from_process_groups(one)
        assert str(layout.mesh) == dense
        assert not expert or str(layout.expert) == expert[0]
        assert layout.framework.startswith(framework) or "dp_" in name or "data4" in name
        bare = Layout.from_process_groups(one["pg_config"])  # without its own rank
        assert (str(bare.mesh), bare.job) == (str(layout.mesh), layout.job)


@pytest.mark.torch_job(JOB)
@pytest.mark.parametrize("name", [name for name, (way, _) in LAYOUTS.items() if way == "mesh"])
def test_a_device_mesh_prints_the_job_that_its_groups_make(ran, name):
    first, *_ = known(ran, name)
    assert Job.from_device_mesh(first["mesh"]).layout() == Layout.from_process_groups(first)


@pytest.mark.torch_job(JOB)
def test_a_profiler_trace_says_it_too_in_its_first_lines(ran):
    name = "vllm tp4 dp2"
    whole = (ran.folder / "trace.json").read_text()
    running = read_process_groups(whole)
    assert (running.rank, running.world) == (5, 8)
    assert str(running.layout().mesh) == MESHES[name]
    beginning = whole[: whole.index("traceEvents")]
    assert read_process_groups(beginning) == running


@pytest.mark.torch_job(JOB)
def test_where_eight_processes_differ_from_what_was_meant_is_told_rank_by_rank(ran):
    one = known(ran, "deepspeed pipe2 data2 model2")[5]
    running = read_process_groups(one)
    assert [*running.differences(Job(tp=2, pp=2).layout())] == []
    found = [*running.differences(Job(tp=2, pp=2, framework="megatron-pp-dp").layout())]
    assert [one for one in found if one.rank == 5] == [
        Difference(5, "dp", (5, 7), (1, 5)),
        Difference(5, "pp", (1, 5), (5, 7)),
        Difference(5, "mp", (0, 1, 4, 5), (4, 5, 6, 7)),
    ]
    assert {one.rank for one in found} == {*range(8)}
    with pytest.raises(LayoutError) as refused:
        next(running.differences(Job(nodes=2).layout()))
    assert refused.value.code == "other-world"


# -- without torch -------------------------------------------------------------------------------


def config_of(layout: Layout, rank: int, kinds: dict[str, str]) -> list[dict]:
    """What a rank would know of a layout's groups, under these names."""
    return [
        {"pg_name": str(at), "pg_desc": name, "ranks": layout.every[kind].members(rank).tolist()}
        for at, (kind, name) in enumerate(kinds.items(), start=1)
    ]


MEGATRON = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "cp": "CONTEXT_PARALLEL_GROUP",
    "dp": "DATA_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "ep": "EXPERT_MODEL_PARALLEL_GROUP",
    "etp": "EXPERT_TENSOR_PARALLEL_GROUP",
    "edp": "EXPERT_DATA_PARALLEL_GROUP",
}


@given(
    st.permutations(["tp", "cp", "ep", "dp", "pp"]),
    *(st.sampled_from([1, 2, 3]) for _ in range(3)),
    st.sampled_from([1, 2]),
    st.integers(0, 71),
)
def test_every_order_that_megatron_makes_is_read_back_from_one_rank(order, tp, cp, pp, ep, rank):
    job = Job(nodes=9, tp=tp, cp=cp, pp=pp, ep=ep, framework="own", order="-".join(order))
    try:
        layout = job.layout()
    except LayoutError:
        return
    config = {"rank": rank, "world_size": 72, "pg_config": config_of(layout, rank, MEGATRON)}
    found = Layout.from_process_groups(config)
    for kind in MEGATRON:
        assert found.every[kind].groups().tolist() == layout.every[kind].groups().tolist()


def test_a_rank_in_another_group_than_the_rest_of_the_job_is_told():
    layout = Job(tp=2, pp=2).layout()
    config = config_of(layout, 5, MEGATRON)
    config[0]["ranks"] = [5, 6]
    running = read_process_groups({"rank": 5, "world_size": 8, "pg_config": config})
    with pytest.raises(LayoutError) as refused:
        running.layout()
    assert refused.value.code == "groups-no-layout"
    assert [*running.differences(layout)] == [Difference(5, "tp", (5, 6), (4, 5))]


@pytest.mark.parametrize(
    ("ranks", "spread"),
    [
        ((3,), ()),
        ((0, 2, 4), ((2, 3),)),
        ((9, 1, 3, 11), ((2, 2), (8, 2))),
        ((0, 1, 3), None),
        ((0, 2, 4, 7), None),
        ((4, 4), None),
    ],
)
def test_a_group_is_runs_of_equal_steps(ranks, spread):
    assert RunningGroup("x", None, ranks).spread == spread


def test_groups_without_a_name_that_no_framework_makes_are_refused():
    config = [{"pg_name": str(at), "ranks": ranks} for at, ranks in enumerate([[0, 3], [0, 5]], 1)]
    with pytest.raises(LayoutError) as refused:
        Layout.from_process_groups({"rank": 0, "world_size": 8, "pg_config": config})
    assert refused.value.code == "groups-unnamed"


@pytest.mark.parametrize(
    "config",
    [
        *(None, 7, "", "{}", "[]", "[" * 10**5, '{"pg_config": 3}', [{}], [{"ranks": "0-7"}]),
        *([{"ranks": [0, 1]}, {"ranks": [2, 3]}], '[{"ranks": [true]}]', [{"ranks": [-1, 0]}]),
    ],
)
def test_what_is_no_list_of_groups_is_refused(config):
    with pytest.raises(LayoutError) as refused:
        Layout.from_process_groups(config)
    assert refused.value.code in ("no-process-groups", "not-a-whole-number")


def mesh(names: tuple[str, ...], shape: tuple[int, ...], order=None) -> SimpleNamespace:
    """A DeviceMesh, as far as it is read."""
    ranks = np.arange(np.prod(shape)).reshape(shape) if order is None else order
    return SimpleNamespace(mesh=ranks, mesh_dim_names=names)


def test_a_mesh_of_experts_takes_their_axis_out_of_the_data():
    layout = Job.from_device_mesh(mesh(("dp", "ep", "tp"), (2, 2, 2))).layout()
    assert (str(layout.mesh), str(layout.expert)) == ("tp2-cp1-dp4-pp1", "etp2-ep2-edp2-pp1")


def test_older_torch_prints_the_ranks_themselves():
    text = "DeviceMesh('cuda', [[0, 1], [2, 3], [4, 5], [6, 7]], mesh_dim_names=('dp', 'tp'))"
    assert Job.from_device_mesh(text) == Job.from_device_mesh(mesh(("dp", "tp"), (4, 2)))


def test_a_mesh_that_is_not_row_major_is_an_order_of_its_own():
    order = np.arange(8).reshape(2, 4).T  # its first axis is the fastest
    job = Job.from_device_mesh(mesh(("dp", "tp"), (4, 2), order))
    assert (job.framework, job.layout().every["tp"].groups().tolist()) == (
        "own",
        [[0, 4], [1, 5], [2, 6], [3, 7]],
    )


@pytest.mark.parametrize(
    ("given_mesh", "code"),
    [
        (7, "no-device-mesh"),
        ("dp=2", "no-device-mesh"),
        ("DeviceMesh((x=8), 'cpu', stride=(1,))", "mesh-axis-unknown"),
        ("DeviceMesh((tp=2), 'cpu', stride=(4,))", "mesh-not-regular"),
        (mesh(("dp", "tp"), (2, 2), np.array([[0, 1], [2, 4]])), "mesh-not-regular"),
        (mesh((), (2, 4)), "mesh-axis-unknown"),
        (mesh(("dp", "tp", "cp", "dp_shard"), (2, 2, 2, 2)), "mesh-no-layout"),
        ("DeviceMesh((dp=4096, tp=4096), 'cpu', stride=(4096, 1))", "too-many-ranks"),
    ],
)
def test_what_is_no_mesh_of_a_job_is_refused(given_mesh, code):
    with pytest.raises(LayoutError) as refused:
        Job.from_device_mesh(given_mesh)
    assert refused.value.code == code


# -- on the command line and on the page ---------------------------------------------------------


def answer(command: str, stdin: str = "") -> tuple[int, str]:
    out = io.StringIO()
    status = run(command.split(), io.StringIO(stdin), out, out)
    return status, out.getvalue()


CONFIG = {"rank": 5, "world_size": 8, "pg_config": config_of(Job(tp=2, pp=2).layout(), 5, MEGATRON)}
PASTED = json.dumps({"distributedInfo": CONFIG})


def test_the_command_line_reads_groups_and_tells_them_from_what_was_meant(tmp_path):
    packed = tmp_path / "trace.json.gz"
    packed.write_bytes(gzip.compress(f"{PASTED[:-1]}, 'traceEvents': [not read".encode()))
    status, out = answer(f"running {packed}")
    lines = out.splitlines()
    assert (status, lines[0]) == (0, "rank 5 of 8: tp2-cp1-dp2-pp2 (Megatron Core)")
    assert lines[2].split() == ["TENSOR_MODEL_PARALLEL_GROUP", "tp", "2", "1", "4", "5"]
    assert answer("running - --tp 2 --pp 2", PASTED)[1].endswith("that were meant\n")
    status, out = answer("running - --tp 4 --format json", PASTED)
    document = json.loads(out)
    assert (status, document["ranks"]) == (0, 8)
    assert {"rank": 5, "kind": "tp", "runs_with": [4, 5], "meant": [4, 5, 6, 7]} in document["rows"]
    assert answer("running - --nodes 2", PASTED)[0] == 2
    assert answer("running -", "tp=2")[0] == 2


def test_every_command_begins_with_a_layout_that_runs():
    status, out = answer("dp --args -", PASTED)
    assert (status, out.splitlines()[1]) == (0, "dp group 0: [0, 2]")
    assert answer("dp --args -", "DeviceMesh((dp=2, tp=4), 'cuda', stride=(4, 1))")[1].endswith(
        "dp group 3: [3, 7]\n"
    )
    values = json.loads(read_launch(PASTED))["values"]
    assert values == {"tp": 2, "pp": 2, "cp": 1, "ep": 1, "etp": 2, "framework": "megatron"}


@pytest.mark.parametrize(
    ("language", "same", "differs"),
    [
        ("en", "These are the groups on screen.", "8 GPUs have other groups than on screen."),
        ("zh", "这些组与当前布局相同。", "8 个 GPU 的组与当前布局不同。"),
    ],
)
def test_the_page_holds_what_runs_against_the_layout_on_screen(language, same, differs):
    state = State(view="launch", lang=language, nodes=1, tp=2, pp=2, paste=PASTED)
    html = launch_html(Context.of(state))
    assert same in html
    assert "TENSOR_MODEL_PARALLEL_GROUP" in html
    other = launch_html(Context.of(replace(state, tp=4, pp=1)))
    assert differs in other.replace("\xa0", " ")
    assert "4–5</td><td>4–7" in other
    changed = replace(state, tp=4, pp=1)
    assert pasted_changes(changed, read_pasted(changed))["tp"] == "2"


def test_groups_that_no_layout_makes_are_refused_on_the_page():
    config = {**CONFIG, "pg_config": [{**CONFIG["pg_config"][0], "ranks": [2, 5]}]}
    state = State(view="launch", nodes=1, paste=json.dumps({"distributedInfo": config}))
    assert "No layout makes the groups tp [2, 5]." in launch_html(Context.of(state))
    small = State(view="launch", nodes=2, paste=PASTED)
    assert "The layout on screen has 16 GPUs." in launch_html(Context.of(small))


@pytest.mark.browser
def test_a_trace_that_is_dropped_is_pasted_as_far_as_it_says_groups(open_page):
    page = open_page()
    show(page, "launch")
    whole = f'{{"schemaVersion": 1, {PASTED[1:-1]}, "traceEvents": [{"{}, " * 99}{{}}]}}'
    page.evaluate(DROP, ["trace.json.gz", whole])
    page.wait_for_selector(".verdict:has-text('Rank 5 of 8 runs')")
    assert json.loads(page.input_value("#field-paste")) == json.loads(PASTED)


DROP = """async ([name, text]) => {
  const body = new Blob([text]).stream().pipeThrough(new CompressionStream('gzip'));
  const transfer = new DataTransfer();
  transfer.items.add(new File([await new Response(body).blob()], name));
  const bubbles = { bubbles: true, cancelable: true, dataTransfer: transfer };
  document.dispatchEvent(new DragEvent('drop', bubbles));
}"""


def test_a_job_with_the_group_of_all_ranks_alone_is_data_parallel_whoever_is_asked():
    group = {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 8, "ranks": []}
    for ranks in ([], [*range(8)]):
        info = {"rank": 3, "world_size": 8, "pg_config": [{**group, "ranks": ranks}]}
        running = read_process_groups(info)
        layout = running.layout(4)
        assert (running.rank, layout.framework, layout.job.nodes) == (3, "pytorch-ddp", 2)
        assert [*running.differences(layout)] == []


def test_the_groups_of_a_long_trace_may_stand_behind_its_events(tmp_path):
    event = b'{"ph": "X", "cat": "cpu_op", "name": "' + b"x" * 200_000 + b'"},\n'
    config = [{"pg_name": str(at), "pg_desc": f"mesh_{name}", "pg_size": 2, "ranks": ranks}
              for at, (name, ranks) in enumerate({"tp": [2, 3], "dp": [0, 2]}.items())]  # fmt: skip
    info = json.dumps({"backend": "nccl", "rank": 2, "world_size": 4, "pg_config": config}).encode()
    path = tmp_path / "trace.json"
    with path.open("wb") as file:
        file.write(b'{"schemaVersion": 1, "traceEvents": [')
        for _ in range(350):  # 70 MB
            file.write(event)
        file.write(event[:-2] + b'], "distributedInfo": ' + info + b"}")
    out, err = io.StringIO(), io.StringIO()
    assert run(["running", str(path)], io.StringIO(), out, err) == 0, err.getvalue()
    assert out.getvalue().startswith("rank 2 of 4: tp2-")
