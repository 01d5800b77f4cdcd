"""Launch commands written from a layout, and read back."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_answers import check_law, codes, values
from seen import above_one

from formats.launch import TARGETS, emit, parse
from formats.launch.flags import MODEL
from formats.launch.starts import shared_layers
from formats.launch.training import options_of, training_of
from groups.errors import LayoutError
from groups.layout import Job
from groups.presets import PRESETS
from groups.stages.layout_strings import is_layout, parse_layout
from training.models import MODELS

pytestmark = pytest.mark.usefixtures("nothing_is_executed")


ALL_FIELDS = (
    "nodes",
    "gpus_per_node",
    "tp",
    "pp",
    "cp",
    "ep",
    "etp",
    "instances",
    "levels",
    "hybrid",
)
SAYS = {
    "megatron": (*ALL_FIELDS, *MODEL),
    "nemo": (*ALL_FIELDS, *MODEL),
    "megatron-deepspeed": (
        *("nodes", "gpus_per_node", "tp", "pp", "ep"),
        *("layers", "experts", "micro_batch", "global_batch", "seq"),
    ),
    "megatron-deepspeed-bloom": (
        *("nodes", "gpus_per_node", "tp", "pp"),
        *("layers", "micro_batch", "global_batch", "seq", "account"),
    ),
    "deepspeed": ("nodes", "gpus_per_node", "tp", "cp", "ep", "micro_batch", "global_batch"),
    "accelerate": ("nodes", "gpus_per_node", "tp", "cp"),
    "torchtitan": (
        *("nodes", "gpus_per_node", "tp", "pp", "cp", "ep"),
        *("micro_batch", "global_batch", "seq"),
    ),
}
SAYS["vllm"] = ("nodes", "gpus_per_node", "tp", "pp", "cp")
SAYS["sglang"] = SAYS["sglang-main"] = SAYS["tensorrt-llm"] = (*SAYS["vllm"], "ep")
SAYS["torchtitan-toml"] = SAYS["torchtitan-main"] = SAYS["torchtitan"]


def expected(job: Job, model: dict, target: str) -> dict[str, object]:
    """What a text of the target says of a job, without the framework."""
    known = {name: getattr(job, name) for name in ALL_FIELDS}
    silent = {"etp": None, "instances": 1, "levels": None, "hybrid": False}
    known = {name: value for name, value in known.items() if value != silent.get(name, ())}
    if known.get("levels"):
        known["levels"] = tuple(known["levels"])
    if target in ("megatron-deepspeed", "sglang", "sglang-main") and job.ep == 1:
        del known["ep"]
    if target == "deepspeed":
        known = {n: size for n, size in known.items() if n not in ("cp", "ep") or size != 1}
    if target == "accelerate" and (job.tp, job.cp, job.instances) == (1, 1, 1):
        del known["tp"], known["cp"]  # data alone has no mesh
    model = dict(model)
    if "megatron" in TARGETS[target].makes:  # an uneven number of layers is dealt out by hand
        shares = shared_layers_or_none(job, model)
        if "layout" in shares:
            model = {**model, **shares, "layers": shares["layout"]}
        model = {name: value for name, value in model.items() if value is not None}
        if job.layout().mesh.size("tp") > 1 and model.get("experts"):
            known["sequence_parallel"] = True
    if is_layout(model.get("layers", "")):
        chunks, left = divmod(len(parse_layout(model["layers"])), job.pp)
        known |= {"vpp": chunks} if chunks > 1 and not left else {}
    needs = map(TARGETS[target].field_of, TARGETS[target].needs)
    if "micro_batch" in needs or "global_batch" in model:
        model.setdefault("micro_batch", 1)
    says = [
        name
        for name in SAYS[target]
        if target != "torchtitan-main" or "seq" in model or name in known
    ]
    return {name: value for name, value in {**known, **model}.items() if name in says}


def shared_layers_or_none(job: Job, model: dict) -> dict:
    try:
        return shared_layers(job, model)
    except LayoutError:  # which the first line says
        return {}


def assert_round_trip(job: Job, model: dict, target: str) -> None:
    text = emit(job, model, target)
    parsed = parse(text)
    check_law(parsed)
    assert not parsed.problems
    assert not parsed.unresolved
    found = {name: value for name, value in parsed.values.items() if name != "framework"}
    wanted = expected(job, model, target)
    if TARGETS[target].serves:  # the longest request is the model's sequence
        assert parsed.serving.get("served_length") == model.get("seq")
    if target == "vllm":  # the training's replicas are one server's dp, which is written
        wanted["dp"] = job.layout().mesh.size("dp")
    if target.startswith("sglang"):  # whose tp holds the ranks of cp; its replicas are servers
        wanted["tp"] = job.tp * job.cp
    if job.framework not in ("megatron", "megatron-pp-dp"):
        found.pop("etp", None)  # none means another size there
        wanted.pop("etp", None)
    assert found == wanted
    assert parsed.framework.job in TARGETS[target].makes
    if job.framework in TARGETS[target].makes:
        assert (
            parsed.framework.job == job.framework or job.layout().mesh == parsed.job().layout().mesh
        )
    assert above_one(parsed.job().layout()) == above_one(job.layout())


def refused(job: Job, model: dict, target: str) -> LayoutError | None:
    try:
        emit(job, model, target)
    except LayoutError as error:
        return error
    return None


def job_of(key: str) -> tuple[Job, dict]:
    one = PRESETS[key]
    sizes = {name: getattr(one, name) for name in ("tp", "pp", "cp", "ep", "etp", "framework")}
    model = {name: one.model[name] for name in MODEL if name in one.model}
    if one.model.get("account_for_embedding"):
        model["account"] = True
    return Job(nodes=one.nodes, gpus_per_node=one.gpus_per_node, **sizes), model


@every("key", PRESETS)
@every("target", TARGETS)
def test_a_preset_is_written_and_read_back(key, target):
    job, model = job_of(key)
    refusal = refused(job, model, target)
    if refusal is None:
        assert_round_trip(job, model, target)
    else:
        assert refusal.code == "framework-cannot-express"
        assert job.framework not in TARGETS[target].makes or target == "deepspeed"


@every("key", PRESETS)
def test_megatron_can_say_every_preset_but_one(key):
    job, model = job_of(key)
    if key == "llama3-405b-3":  # tp-pp-dp with cp and without ep is refused by Megatron itself
        with pytest.raises(LayoutError, match="no option for the order tp-cp-pp-dp"):
            emit(job, model)
    else:
        emit(job, model)


POWERS = st.sampled_from((1, 2, 4))


@given(
    **dict.fromkeys(("tp", "pp", "cp", "ep"), POWERS),
    nodes=st.sampled_from((1, 2, 3, 16)),
    etp=st.sampled_from((None, 1, 2)),
    framework=st.sampled_from(("megatron", "megatron-pp-dp", "torchtitan", "deepspeed", "llama3")),
    instances=st.sampled_from((1, 2)),
    hybrid=st.booleans(),
    model=st.fixed_dictionaries(
        {},
        optional={
            "layers": st.integers(1, 500) | st.sampled_from(("Ett|ttL", "E|(t|)*3,L")),
            "experts": st.integers(1, 512),
            "micro_batch": st.integers(1, 64),
            "global_batch": st.integers(1, 10**6),
            "seq": st.integers(1, 10**7),
            "first": st.integers(1, 9),
            "last": st.integers(1, 9),
            "mtp": st.integers(0, 2),
            "account": st.just(True),
        },
    ),
    target=st.sampled_from(sorted(TARGETS)),
)
@settings(max_examples=80, deadline=None)
def test_what_is_written_is_read_back(
    tp, pp, cp, ep, nodes, etp, framework, instances, hybrid, model, target
):
    levels = (2, 2) if cp == 4 and framework.startswith("megatron") else None
    job = Job(nodes, 16, tp, pp, cp, ep, etp, framework, "", instances, levels, hybrid)
    if refused(job, model, target) is None:
        assert_round_trip(job, model, target)


def test_a_number_of_0_is_written_and_what_says_nothing_is_not():
    job = Job(2, pp=2)
    assert_round_trip(job, {"mtp": 0}, "megatron")
    assert emit(job, {"mtp": None, "account": False, "layers": ""}) == emit(job)


def test_what_a_framework_has_no_words_for_is_named():
    with pytest.raises(LayoutError) as refusal:
        emit(Job(2, framework="own", order="dp-tp-cp-ep-pp", tp=2), framework="megatron")
    assert refusal.value.code == "framework-cannot-express"
    assert refusal.value.facts == {"framework": "Megatron-LM", "what": "the order dp-tp-cp-ep-pp"}
    cases = [
        (Job(2, pp=2), "deepspeed", "pp"),
        (Job(2, cp=2), "megatron-deepspeed", "cp"),
        (Job(2, tp=2, ep=2), "torchtitan", "etp"),
        (Job(2, instances=2), "torchtitan", "instances"),
        (Job(2, cp=4, levels=(2, 2)), "torchtitan", "levels"),
        (Job(2, hybrid=True), "deepspeed", "hybrid"),
        (Job(2, tp=2, ep=2, etp=1), "megatron-deepspeed", "etp"),
        (Job(2, tp=2, ep=2, framework="torchtitan"), "megatron-deepspeed", "ep"),
    ]
    for job, target, control in cases:
        with pytest.raises(LayoutError) as refusal:
            emit(job, framework=target)
        assert (refusal.value.code, refusal.value.control) == ("framework-cannot-express", control)


OPTIONS_OF = json.loads((Path(__file__).parent / "data" / "launch_options.json").read_text("utf-8"))


@every("target", OPTIONS_OF["targets"])
def test_every_option_is_one_of_the_program_itself(target):
    known = OPTIONS_OF["targets"][target]["options"]
    model = {"layers": 32, "micro_batch": 2, "global_batch": 64, "seq": 128, "experts": 8, "vpp": 2}
    framework = TARGETS[target].makes[0]
    pp = 1 if target in ("deepspeed", "accelerate") else 2
    tp = 8 if target == "tensorrt-llm" else 2  # whose command starts one server
    text = emit(Job(2, tp=tp, pp=pp, framework=framework), {**model, "account": True}, target)
    given = re.findall(r'^ +(?:--)?"?([a-z][\w.-]*[\w])', text, re.MULTILINE)
    given += re.findall(r"--([a-z][\w.-]*)", text)
    for section, body in re.findall(r"^\[(\w+)\]\n((?:\w+ = .*\n)+)", text, re.MULTILINE):
        given += [f"{section}.{line.partition(' = ')[0]}" for line in body.splitlines()]
    own = [name for name in given if name not in LAUNCHERS_OWN]
    assert own
    assert [name for name in own if name not in known] == []


def test_attentions_dp_is_written_as_the_version_spells_it_and_read_back():
    """sgl-project/sglang #41818: --dp-size 4 --enable-dp-attention is --attn-dp-size 4."""
    job = Job(2, tp=16, dp=4, framework="sglang")
    old, new = emit(job, framework="sglang"), emit(job, framework="sglang-main")
    spelt = ("--dp-size 4", "--enable-dp-attention", "--attn-dp-size 4")
    assert [[word in text for word in spelt] for text in (old, new)] == [
        [True, True, False],
        [False, False, True],
    ]
    for text in (old, new):
        assert parse(text).job().layout().mesh == job.layout().mesh
    servers = emit(Job(2, tp=4, framework="vllm"), framework="sglang")
    assert [word in servers for word in spelt] == [True, False, False]


def test_a_server_on_several_nodes_says_the_node_and_the_head_and_its_model():
    model = options_of(MODELS["qwen3-8b"].model, {}, 1)
    text = emit(Job(2, tp=8, pp=2, framework="vllm"), model, "vllm")
    assert text.splitlines()[:2] == [
        "# on every node but the first add --headless",
        "vllm serve Qwen/Qwen3-8B \\",
    ]
    assert "--node-rank $NODE_RANK \\\n  --master-addr $MASTER_ADDR" in text
    alone = emit(Job(1, tp=8, framework="vllm"), {**model, "layers": 35}, "vllm")
    assert alone.startswith("vllm serve MODEL")
    assert "node-rank" not in alone
    sglang = emit(Job(2, tp=16, framework="sglang"), model, "sglang")
    assert "--model-path Qwen/Qwen3-8B" in sglang
    assert "--dist-init-addr $MASTER_ADDR:20000" in sglang


def test_copies_that_nodes_do_not_share_find_each_other_and_are_read_back():
    """vllm-project/vllm 01e4fce docs/serving/data_parallel_deployment.md."""
    job = Job(4, gpus_per_node=4, tp=2, dp=8, framework="vllm")
    text = emit(job, framework="vllm")
    for words in (
        "--data-parallel-size 8",
        "--data-parallel-size-local 2",
        "--data-parallel-start-rank $((NODE_RANK * 2))",
        "--data-parallel-address $MASTER_ADDR",
        "--data-parallel-rpc-port",
    ):
        assert words in text
    assert "nnodes" not in text
    assert parse(text).job().layout().mesh == job.layout().mesh
    shared = emit(Job(4, gpus_per_node=4, tp=8, dp=2, framework="vllm"), framework="vllm")
    assert "--nnodes 4" in shared
    assert "data-parallel-address" not in shared


def test_a_node_that_only_answers_requests_holds_no_copy():
    text = "vllm serve m -dp 4 -dpl 0\nvllm serve m --headless -dp 4 --data-parallel-size-local 4"
    job = parse(text).job()
    assert (job.nodes, job.gpus_per_node, job.dp) == (1, 4, 4)


def test_tensorrt_llm_on_several_nodes_has_a_process_of_mpi_for_each_gpu():
    job = Job(2, tp=16, dp=16, ep=4, framework="tensorrt-llm")
    text = emit(job, framework="tensorrt-llm")
    start = ["srun --mpi=pmix", "--nodes 2", "--ntasks-per-node 8", "trtllm-llmapi-launch"]
    lines = [line.strip(" \\") for line in text.splitlines()]
    at = lines.index(start[0])
    assert lines[at : at + 5] == [*start, "trtllm-serve MODEL"]
    assert parse(text).job().layout().mesh == job.layout().mesh
    alone = emit(Job(1, tp=8, framework="tensorrt-llm"), framework="tensorrt-llm")
    assert alone.startswith("trtllm-serve")


def test_every_target_has_its_recorded_options():
    assert set(OPTIONS_OF["targets"]) == set(TARGETS)
    for one in OPTIONS_OF["targets"].values():
        assert re.search(r"[0-9a-f]{7}", one["source"])


LAUNCHERS_OWN = (
    "nnodes",
    "nproc-per-node",
    "num_nodes",
    "num_gpus",
    "pretrain_gpt.py",
    "train.py",
    "m",
    "deepspeed",
    "mpi",
    "nodes",
    "ntasks-per-node",
    "trtllm-llmapi-launch",
    "trtllm-serve",
    "launch",
)


def test_what_a_target_does_not_say_of_the_model_is_named():
    text = emit(Job(2, pp=2), {"layers": 32, "vpp": 2, "seq": 64}, "torchtitan")
    assert text.startswith(
        "# torchtitan has no option for layers 32, vpp 2\n"
        "# to fill in: MODULE, CONFIG, of a model with layers 32\ntorchrun "
    )
    assert "--job.config_file" not in text
    hostile = emit(Job(2), {"layers": "t\nrm -rf /"}, "torchtitan")
    assert "\nrm" not in hostile  # a comment stays one line
    text = emit(Job(2, pp=2), {"micro_batch": 2, "global_batch": 64}, "torchtitan-main")
    assert "no option for micro_batch 2, global_batch 64" in text
    assert "num_pp_microbatches=4" in text


def test_a_layout_by_hand_is_not_dropped():
    with pytest.raises(LayoutError, match="no option for the layout"):
        emit(Job(2, pp=2), {"layers": "Ett|ttL"}, "megatron-deepspeed")


def test_how_deepspeed_cuts_the_layers():
    text = "x.py --deepspeed --pp-partition-method 'type:transformer|embedding'"
    assert values(text) == {"framework": "deepspeed", "account": True}
    assert codes(parse("x.py --pp-partition-method uniform").ignored) == ["not-drawn"]


def test_an_order_of_ones_own_that_megatron_reaches_is_written():
    job = Job(2, framework="own", order="tp-cp-ep-pp-dp", tp=2, pp=2)
    assert "--use-tp-pp-dp-mapping" in emit(job)
    assert "mapping" not in emit(Job(2, framework="own", order="dp-tp-cp-ep-pp"))


def test_a_size_that_another_framework_means_by_none_is_written():
    job = Job(2, tp=2, ep=2, framework="torchtitan")  # whose experts are cut over no tp
    assert "--expert-tensor-parallel-size 1" in emit(job)


def test_a_job_that_cannot_be_is_not_written():
    with pytest.raises(LayoutError, match="does not divide"):
        emit(Job(1, tp=3))
    with pytest.raises(LayoutError, match="not a choice of framework"):
        emit(Job(1), framework="horovod")


def test_what_is_written_is_quoted():
    text = emit(Job(2, pp=2), {"layers": "Ett|(tt|)*2,ttL", "seq": "1; rm -rf /"})
    assert "--pipeline-model-parallel-layout 'Ett|(tt|)*2,ttL'" in text
    assert "--seq-length '1; rm -rf /'" in text


def test_the_files_are_of_the_formats_they_claim():
    text = emit(Job(2, tp=4), {"micro_batch": 2, "global_batch": 64}, "deepspeed")
    body = text.split("<<'EOF'\n")[1].split("\nEOF")[0]
    assert json.loads(body) == {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": 2,
        "tensor_parallel": {"autotp_size": 4},
    }
    text = emit(Job(2, tp=4), {"seq": 8192}, "torchtitan-toml")
    body = text.split("<<'EOF'\n")[1].split("\nEOF")[0]
    tomllib = pytest.importorskip("tomllib")
    assert tomllib.loads(body)["parallelism"]["tensor_parallel_degree"] == 4


@pytest.mark.parametrize("target", ["torchtitan", "torchtitan-main"])
@pytest.mark.parametrize(
    ("name", "config", "unsaid"),
    [
        ("llama3-70b", "--module llama3 \\\n  --config llama3_70b \\", False),
        ("deepseek-v3", "--module deepseek_v3 \\\n  --config deepseek_v3_671b \\", False),
        ("qwen2.5-72b", "--module MODULE \\\n  --config CONFIG \\", True),  # it has none of it
    ],
)
def test_torchtitan_is_told_the_model_by_the_name_of_its_configuration(
    target, name, config, unsaid
):
    text = emit(Job(nodes=2, tp=2), options_of(MODELS[name].model, {}, 1), target)
    assert config in text
    assert ("has no option for layers" in text) == unsaid


def test_megatron_bridge_is_told_the_recipe_of_a_model_which_is_read_back():
    named = [*TARGETS["nemo"].models]
    for name in named:
        text = emit(Job(nodes=2, tp=2), options_of(MODELS[name].model, {}, 1), "nemo")
        assert training_of(parse(text))["model"] == name
    text = emit(Job(nodes=2, tp=2), options_of(MODELS["bloom-176b"].model, {}, 1), "nemo")
    assert len(named) > 8
    assert "--recipe RECIPE" in text


def test_torchtitan_is_told_no_name_of_a_model_that_differs():
    options = options_of(MODELS["llama3-70b"].model, {}, 1)
    text = emit(Job(nodes=2, tp=2), {**options, "layers": 79}, "torchtitan")
    assert "--config llama3_70b" not in text
    assert "# torchtitan has no option for layers 79" in text
