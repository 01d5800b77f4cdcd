"""States in host memory: what ZeRO-Offload, ZeRO-Infinity, PatrickStar and DeepSpeed state."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.launch import parse
from groups import LayoutError
from request.context import Context
from request.named.launch import training_fields
from request.resolve import resolve
from request.state import State
from training.clusters import CLUSTERS
from training.estimate import estimate_of
from training.estimate.memory import fit_of, room_of
from training.estimate.request import Request
from training.machine import GB, GIB
from training.memory.per_stage import largest, memory_per_stage
from training.model import Model
from training.models import MODELS
from training.parameters import total_parameters
from training.recipe import OFFLOAD, PRECISIONS, Training
from training.search import SearchJob
from training.search.space import recomputations
from training.search.timed import Timer
from training.split import Split
from views.memory.view import memory_html
from views.traffic.view import traffic_html


def gpt(layers: int, hidden: int, heads: int = 16) -> Model:
    """GPT-2's shape with 1,024 tokens, as these papers train it."""
    return Model(layers=layers, hidden=hidden, heads=heads, ffn=4 * hidden, vocabulary=50257,
                 sequence=1024, tied=True, learned_positions=True, biases="all")  # fmt: skip


def on(gpus: int, model: Model, capacity: float, **training) -> tuple[float, float]:
    """Bytes on a GPU of so many and in the memory of its host, which holds all of them."""
    old = {"flash": False, "dropout": True, "recompute": "full"}
    how = Training(precision="bf16-bf16", **old, **training)
    stages = memory_per_stage(model, Split(dp=gpus), how, room_of(capacity))
    return largest(stages).total, gpus * stages[0].on_host


V100, A100 = 32 * GIB, 40 * GIB


def test_zero_offload_trains_10_and_13_billion_on_one_v100_and_pytorch_1_4():
    """arXiv:2101.06840 abstract; DeepSpeed's tutorial: 50 layers of 4,096, batch 10."""
    ten = gpt(50, 4096, 32)
    assert total_parameters(ten) == pytest.approx(10e9, rel=0.03)
    assert on(1, ten, V100, zero=2, offload="optimizer", micro_batch=10)[0] < V100
    thirteen = gpt(65, 4096)
    assert total_parameters(thirteen) == pytest.approx(13e9, rel=0.03)
    assert on(1, thirteen, V100, zero=2, offload="optimizer")[0] < V100
    assert on(1, gpt(40, 1536), V100, zero=0)[0] < V100  # 1.2 billion
    assert on(1, gpt(40, 2048), V100, zero=0)[0] > V100  # 2.1 billion


def test_deepspeeds_own_reckoning():
    """docs/code-docs/source/memory.rst at edaa722: t5-3b on 8 GPUs, half as much again for
    buffers: 5.31 GB a GPU with ZeRO-2, 63.72 GB of host memory with ZeRO-3, 71.69 with weights."""
    parameters, dp = 2851e6, 8
    w, g, k = (getattr(PRECISIONS["bf16-fp32"], one) for one in ("weight", "gradient", "optimizer"))
    assert round(w * parameters / GIB, 2) == 5.31
    model = gpt(24, 3072)
    share = total_parameters(model) / dp
    for offload, each, printed in (("optimizer", g + k, 63.72), ("parameters", w + g + k, 71.69)):
        (stage,) = memory_per_stage(model, Split(dp=dp), Training(zero=3, offload=offload))
        assert stage.on_host == pytest.approx(each * share, rel=1e-3)
        assert 1.5 * each * parameters / GIB == pytest.approx(printed, abs=0.01)


def test_patrickstar_trains_18_billion_where_deepspeed_does_not():
    """README of Tencent/PatrickStar 2384535: 18B on 8 V100 and 240 GB, twice DeepSpeed; 68B on 8
    A100 of 40 GB and 1 TB; 14 bytes a parameter (arXiv:2108.05818)."""
    model = gpt(90, 4096)
    assert total_parameters(model) == pytest.approx(18e9, rel=0.02)
    gpu, host = on(8, model, V100, zero=3, offload="chunks", micro_batch=4)
    assert gpu < V100
    assert host < 240 * GB
    assert on(8, model, V100, zero=3, offload="parameters")[1] > 240 * GB
    gpu, host = on(8, gpt(80, 8192), A100, zero=3, offload="chunks")
    assert gpu < A100
    assert host < 1000 * GB
    (stage,) = memory_per_stage(model, Split(), Training(zero=3, offload="chunks"), 0.0)
    assert stage.on_host == pytest.approx(14 * total_parameters(model), rel=1e-3)


@pytest.mark.parametrize(
    ("offload", "zero", "recompute", "m", "bytes_each"),
    [
        ("optimizer", 2, "none", 1, 4),  # ZeRO-Offload: 2 down and 2 up
        ("optimizer", 1, "none", 8, 4),  # Megatron: once a step
        ("optimizer", 2, "none", 8, 32),  # DeepSpeed adds up on the GPU: 16 down, 14 + 2 up
        ("parameters", 3, "full", 1, 8),  # ZeRO-Infinity: 4 x 2 bytes
    ],
)
def test_what_crosses_in_a_step(offload, zero, recompute, m, bytes_each):
    model = gpt(24, 2048)
    how = Training(zero=zero, recompute=recompute, micro_batches=m, precision="bf16-bf16",
                   offload=offload)  # fmt: skip
    for dp in (1, 4):  # the whole is the same, whatever the number of GPUs
        (stage,) = memory_per_stage(model, Split(dp=dp), how)
        crossing = stage.crossing(how)
        whole = dp * (crossing.down + crossing.up)
        assert whole == pytest.approx(bytes_each * total_parameters(model), rel=1e-3)


def _bridge(offload: str) -> Request:
    """Qwen3 30B-A3B, TP 2, PP 2, EP 4 on two nodes of H100, 8 samples."""
    model = MODELS["qwen3-30b-a3b"].model
    training = Training(micro_batches=2, recompute="none", offload=offload)
    split = Split(tp=2, pp=2, dp=4, ep=4, etp=1)
    return Request(model, training, 8, 16, 8, "dgx-h100", split=split, precision_is_explicit=True)


def test_megatrons_cpu_offload_as_it_was_measured():
    """Megatron-Bridge 067f987 card.yaml: 15.3 GB less for two moments of 4 bytes, 3.19 s more."""
    found = estimate_of(_bridge("optimizer"), "megatron")
    moments = found.fit.host * 8 / 12
    assert moments / GB == pytest.approx(15.3, rel=0.03)
    assert found.parts["offload"] == pytest.approx(4.189 - 0.996, rel=0.15)
    plain = estimate_of(_bridge("none"), "megatron")
    assert plain.high / plain.low < found.high / found.low
    assert "offload" in found.lacks


@given(
    st.sampled_from(tuple(OFFLOAD)),
    st.sampled_from((1, 2, 4)),
    st.sampled_from((1, 2)),
    st.floats(0, 40 * GIB),
)
def test_gpu_and_host_hold_together_what_the_gpu_held(offload, dp, pp, room):
    model, split = gpt(8, 1024), Split(dp=dp, pp=pp)
    zero = OFFLOAD[offload]
    plain = memory_per_stage(model, split, Training(zero=zero))
    for one, other in zip(
        plain, memory_per_stage(model, split, Training(zero=zero, offload=offload), room)
    ):
        for name in ("weights", "optimizer"):
            both = other.parts.get(name, 0) + other.host.get(name, 0)
            assert both == pytest.approx(one.parts[name])
        if offload == "chunks" and other.host.get("weights"):
            assert "optimizer" not in other.parts
        assert other.crossing(Training(zero=zero, offload=offload)).down >= 0


def test_what_zero_does_not_cut_stays_and_the_refusal_says_from_which_stage():
    for offload, least in OFFLOAD.items():
        for zero in range(4):
            if zero >= least:
                Training(zero=zero, offload=offload)
                continue
            with pytest.raises(LayoutError) as refusal:
                Training(zero=zero, offload=offload)
            assert refusal.value.code == "offload-needs-zero"
            assert refusal.value.alternatives[0] == {"zero": least}


def test_a_host_that_is_too_small_is_said_not_to_fit():
    asked = replace(_bridge("optimizer"), cluster="gb200-nvl72", gpus_per_node=4)
    assert fit_of(asked).fits
    big = replace(
        asked, model=replace(asked.model, layers=48 * 40), split=replace(asked.split, pp=2)
    )
    huge = fit_of(replace(big, capacity=1e15))
    assert huge.host * 4 > CLUSTERS["gb200-nvl72"].host_of(4)
    assert not huge.fits


@pytest.mark.parametrize(
    ("offload", "zero"), [("optimizer", 1), ("optimizer", 2), ("parameters", 3)]
)
def test_the_search_times_states_in_host_memory_as_the_estimate_does(offload, zero):
    training = Training(zero=zero, offload=offload, recompute="none")
    job = SearchJob(MODELS["llama3-8b"].model, training, 64, 8, 8, "dgx-h100")
    split = Split(tp=2, dp=4)
    (timed,) = Timer(job).timed([split])
    for at, size in enumerate(timed.micro_batches):
        for again, name in enumerate(recomputations(job)):
            how = replace(training, micro_batch=size, micro_batches=16 // size, recompute=name)
            one = estimate_of(job.request(split, how), "fsdp" if zero >= 2 else "megatron")
            assert timed.seconds[0, at, again] == pytest.approx(one.seconds, rel=1e-9)


STAGE_3 = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}%s}}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (STAGE_3 % "", "optimizer"),
        (STAGE_3 % ', "offload_param": {"device": "cpu"}', "parameters"),
        (STAGE_3.replace("cpu", "none") % "", None),
        ('{"zero_optimization": {"stage": 2, "cpu_offload": true}}', "optimizer"),
        ("pretrain_gpt.py --tensor-model-parallel-size 2 --optimizer-cpu-offload", "optimizer"),
        ("--optimizer-cpu-offload --optimizer-offload-fraction 0.5", None),
        ("[training]\nenable_cpu_offload = true\n[parallelism]\ntensor_parallel_degree = 2\n",
         "parameters"),
        ("run_recipe.py optimizer.optimizer_cpu_offload=True model.tensor_model_parallel_size=2",
         "optimizer"),
    ],
)  # fmt: skip
def test_launch_files_say_what_is_in_host_memory(text, said):
    assert training_fields(parse(text)).get("offload") == said


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_says_what_the_host_holds_and_what_crosses(language):
    state = State(zero="3", offload="parameters", global_batch="16", lang=language)
    context = Context(resolve(state), state)
    memory, traffic = memory_html(context), traffic_html(context)
    assert "63\xa0GB/s" in memory
    assert "63\xa0GB/s" in traffic
    assert "2,000" in memory or "1,862" in memory  # GB or GiB of a node
    assert "63\xa0GB/s" not in memory_html(Context(resolve(State()), State(lang=language)))
