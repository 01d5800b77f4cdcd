"""Launch files of data parallelism outside of Megatron: their groups, memory, traffic and moves."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from formats.launch import parse
from formats.launch.training import training_of
from groups.layout import Job, own_groupings
from request.context import Context
from request.state import State
from request.trained import keeps_parts, trained_of
from training.memory.per_stage import memory_per_stage, model_states
from training.models import MODELS, model_of_config
from training.recipe import Training
from training.sharding.held import LayersHeld, modules_held, seat_of, sharding_of, unlike
from training.sharding.muon import loads
from training.sharding.sent import exchanges
from training.sharding.step import play_modules, rules_of
from training.split import Split
from training.traffic.demands import demands
from views.page import answer

JOBS = Path(__file__).parent / "data" / "sharding_jobs"
LLAMA = MODELS["llama3-8b"].model


def groups_of(file: str) -> dict[str, list[int]]:
    """The groups of rank 0 of a launch file, by the framework's names."""
    text = parse((JOBS / file).read_text("utf-8"))
    sizes = {**text.assumed, **text.values}
    names = {name for name in sizes if hasattr(Job, name)}
    layout = Job(**{name: sizes[name] for name in names}).layout()
    return {g.name: g.members(0).tolist() for g in own_groupings(layout)}


RANK_0 = {
    "titan_fsdp.sh": {"dp_shard": [*range(8)], "dp_replicate": [0]},
    "titan_main.sh": {"dp_shard": [*range(8)], "dp_replicate": [0]},
    "titan_hsdp.sh": {"dp_shard": [*range(8)], "dp_replicate": [0, 8]},
    "titan_hsdp.toml": {"dp_shard": [0, 2, 4, 6], "dp_replicate": [0, 8], "tp": [0, 1]},
    "fsdp_accel.yaml": {"dp": [*range(8)]},
    "accel_hsdp.yaml": {"dp_shard": [0, 2], "dp_replicate": [0, 4], "tp": [0, 1]},
    "ds_hpz.json": {"zero_param_intra": [0, 1, 2, 3], "data": [*range(8)]},
    "ds_mics.json": {"param_shard": [0, 1, 2, 3], "param_repli": [0, 4]},
    "ds_autoep.json": {"ep": [0, 1, 2, 3], "edp": [0, 4], "tp": [0, 1]},
}


@pytest.mark.parametrize("file", RANK_0)
def test_a_launch_file_makes_its_frameworks_groups(file):
    found = groups_of(file)
    assert {name: found[name] for name in RANK_0[file]} == RANK_0[file]


SAID = {
    "fsdp_config:\n  fsdp_sharding_strategy: FULL_SHARD": (3, "fsdp2"),
    "fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP": (2, "fsdp2"),
    "fsdp_config:\n  fsdp_sharding_strategy: NO_SHARD": (0, "ddp"),
    "fsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD": (3, "fsdp2"),
    "fsdp_config:\n  fsdp_sharding_strategy: HYBRID_SHARD_ZERO2": (2, "fsdp2"),
}


@pytest.mark.parametrize("text", SAID)
def test_fsdp1s_strategies_are_read(text):
    found = training_of(parse(f"compute_environment: LOCAL_MACHINE\nnum_processes: 8\n{text}\n"))
    assert (found["zero"], found["engine"]) == SAID[text]


def test_what_torchtitan_does_after_forward_is_read():
    found = training_of(parse("[parallelism]\nfsdp_reshard_after_forward = 'never'\n"))
    assert found["reshard"] == "never"


def test_a_precision_aware_optimizer_has_12_bytes_a_parameter():
    found = training_of(parse((JOBS / "precaware.sh").read_text("utf-8")))
    training = Training(precision=found["precision"])
    (stage,) = memory_per_stage(LLAMA, Split(), replace(training, zero=0))
    states = sum(stage.parts[name] for name in ("weights", "gradients", "optimizer"))
    assert states == 12 * stage.parameters.total


def test_muons_matrices_have_owners():
    assert training_of(parse((JOBS / "muon.sh").read_text("utf-8")))["optimizer"] == "muon"
    assert loads([6, 3, 3, 2], ranks=2) == [8, 6]
    adam, muon = (
        memory_per_stage(LLAMA, Split(dp=4), Training(optimizer=name))[0].parts["optimizer"]
        for name in ("adam", "muon")
    )
    matrices = 6_979_321_856  # of the 32 layers
    rest = (adam / 3 - matrices) * 3
    assert muon == pytest.approx(8 * matrices / 4 + rest, rel=0.01)


# -- what follows --------------------------------------------------------------------------------


def test_torchtitans_own_job_fits_as_it_did():
    state = State(framework="torchtitan", nodes=1, tp=1, pp=1, micro_batch=2, model="llama3-8b")
    context = Context.of(state)
    training = trained_of(context.layout, state).training
    assert (training.engine, training.zero, training.units) == ("fsdp2", 3, "torchtitan")
    fit = context.trained.estimate(context.layout).fit
    assert fit.low < 77.0 * 2**30 < 82.4 * 2**30 < fit.high


NAMES = {"llama3.1-8b": "llama3-8b", "llama3.1-70b": "llama3-70b", "llama3.1-405b": "llama3-405b"}
PUBLISHED = [
    row
    for row in csv.DictReader(
        (Path(__file__).parent / "data" / "sharding_published.csv").read_text("utf-8").splitlines()
    )
    if row["memory_gib"] and row["model"] in NAMES
]


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: row["id"])
def test_published_memory_lies_in_the_interval(row):
    """Reserved memory of torchtitan's benchmarks; its pipelines had pp micro-batches a step, of
    twice as many where they interleave."""
    sizes = {name: int(n) for name, n in re.findall(r"(FSDP|TP|PP|CP) (\d+)", row["parallelism"])}
    pp, local = sizes.get("PP", 1), int(row["local_batch"])
    v = 2 if "Interleaved" in row["other"] else 1
    micro_batch = max(1, local // (pp * v)) if pp > 1 else local
    split = Split(
        **{"tp": sizes.get("TP", 1), "cp": sizes.get("CP", 1), "pp": pp, "dp": sizes["FSDP"]},
        vpp=v,
        spread="nearly",
    )
    training = Training(
        micro_batch,
        local // micro_batch,
        "interleaved" if v > 1 else "1f1b",
        engine="fsdp2",
        units="torchtitan",
        zero=3,
        recompute="full" if row["recompute"].startswith("full") else "selective",
        products="fp8" if "float8" in row["precision"] else "bf16",
    )
    model = replace(MODELS[NAMES[row["model"]]].model, sequence=int(row["sequence"]))
    total = max(stage.total for stage in memory_per_stage(model, split, training)) / 2**30
    low, high = interval(total)
    assert low < float(row["memory_gib"]) < high


def interval(total: float) -> tuple[float, float]:
    """Where reserved memory lies of so many GiB of tensors: published runs of all kinds."""
    return 0.76 * total, 1.31 * (1.03 * total + 1)


GPT_OSS_120B = {
    "model_type": "gpt_oss",
    "hidden_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 64,
    "attention_bias": True,
    "sliding_window": 128,
    "num_experts_per_tok": 4,
    "intermediate_size": 2880,
    "vocab_size": 201088,
    "max_position_embeddings": 4096,
}
"""config.json of openai/gpt-oss-120b without the sizes that the 20B has otherwise."""


def published_row(name: str) -> dict[str, str]:
    file = Path(__file__).parent / "data" / "sharding_published.csv"
    rows = csv.DictReader(file.read_text("utf-8").splitlines())
    return next(row for row in rows if row["id"] == name)


@pytest.mark.parametrize("name", ["axolotl-gptoss20b-8", "axolotl-gptoss20b-4"])
def test_axolotls_fsdp_with_8_bits_of_moments_lies_in_the_interval(name):
    """All in 16 bits, adamw_torch_8bit; GPT-OSS 20B is the 120B with 24 layers and 32 experts
    (its config.json). Its logits are counted whole, which cut cross entropy avoids."""
    row = published_row(name)
    model = model_of_config({**GPT_OSS_120B, "num_hidden_layers": 24, "num_local_experts": 32})
    gpus = int(row["gpus"])
    micro_batch = int(row["local_batch"])
    how = Training(
        micro_batch,
        int(row["global_batch"]) // gpus // micro_batch,
        engine="fsdp2",
        units="blocks",
        zero=3,
        recompute="full",
        precision="bf16",
        optimizer="adam8bit",
    )
    model = replace(model, sequence=int(row["sequence"]))
    (stage,) = memory_per_stage(model, Split(dp=gpus), how)
    low, high = interval(stage.total / 2**30)
    assert low < float(row["memory_gib"]) < high


@pytest.mark.parametrize("recompute", ["none", "full"])
def test_accelerates_mixtral_fits_where_every_micro_batch_reduces_and_not_where_sums_wait(
    recompute,
):
    """The batch and the sequence are not stated: 1 and 512 to 2,048 tokens."""
    row = published_row("accelerate-mixtral")
    for sequence in (512, 2048):
        model = replace(MODELS["mixtral-8x7b"].model, sequence=sequence)
        totals = []
        for sync, accumulation in (("every", 1), ("every", 16), ("last", 2)):
            how = Training(
                1,
                accumulation,
                engine="fsdp2",
                units="blocks",
                zero=3,
                recompute=recompute,
                precision="bf16",
                sync=sync,
            )
            (stage,) = memory_per_stage(model, Split(dp=int(row["gpus"])), how)
            totals.append(stage.total / 2**30)
        for total in totals[:2]:
            low, high = interval(total)
            assert low < float(row["memory_gib"]) < high
        assert interval(totals[2])[0] > float(row["gpu_memory_gib"])


@pytest.mark.parametrize("name", ["llama3-70b", "mixtral-8x7b", "deepseek-v3", "gpt3-175b"])
def test_layers_between_equal_ones_change_no_fullest_moment(name):
    model, split = MODELS[name].model, Split(dp=32, ep=8 if MODELS[name].model.experts else 1)
    for units in ("torchtitan", "blocks"):
        training = Training(engine="fsdp2", zero=3, units=units, micro_batches=2)
        how = sharding_of(training, split)
        held = LayersHeld(
            tuple(model.numbers.count(kind) for kind in range(len(model.kinds))), True, True, 0
        )
        modules = modules_held(model, split, training, held)
        whole, fewer = (
            play_modules(some, rules_of(how, some, seat_of(split, training), 0, 0), how, 2)
            for some in (modules, unlike(modules))
        )
        assert fewer.record.fullest.bytes == whole.record.fullest.bytes


def test_hsdp_sends_inside_a_copy_and_between_copies():
    training = Training(engine="fsdp2", zero=3, micro_batches=2, instances=2)
    rows = {(row.kind, row.operation): row for row in demands(LLAMA, Split(dp=16), training)}
    assert {kind for kind, _ in rows} == {"intra-dp-cp", "inter-edp"}
    between = rows["inter-edp", "all_reduce"]
    assert between.count == 2 * 33  # the shard of each layer and of the root, every micro-batch
    assert sum(between.volumes) == pytest.approx(2 * 4 * 8_030_261_248 / 8, rel=0.01)


def test_a_pipeline_gathers_and_reduces_once():
    training = Training(engine="fsdp2", zero=3, micro_batches=8)
    rows = [row for row in demands(LLAMA, Split(dp=8, pp=2), training) if row.kind == "dp-cp"]
    assert [(row.operation, row.count) for row in rows] == [
        ("all_gather", 17),
        ("reduce_scatter", 17),
    ]  # 16 layers and the root of a stage


def test_zero_2_reduces_all_of_the_gradients_behind_every_micro_batch():
    training = Training(engine="zero", zero=2, precision="bf16-bf16", micro_batches=3)
    rows = [row for row in demands(LLAMA, Split(dp=8), training) if row.kind == "dp-cp"]
    assert [(row.operation, row.count) for row in rows] == [
        ("all_reduce", 3 * 17),
        ("all_gather", 1),
    ]
    assert min(rows[0].buffer, rows[0].volumes[0] / 51) > 0.8 * 2 * 5e8  # of 5e8 elements each


@pytest.mark.parametrize(
    ("framework", "keeps"), [("torchtitan", True), ("megatron", False), ("pytorch-ddp", False)]
)
def test_who_keeps_parts_of_the_weights(framework, keeps):
    state = State(framework=framework, tp=1, pp=1)
    assert keeps_parts(Context.of(state).layout, state) is keeps


@pytest.mark.parametrize("framework", ["torchtitan", "pytorch-ddp", "deepspeed"])
def test_the_stages_of_zero_are_told_as_the_framework_holds_them(framework):
    state = State(framework=framework, nodes=1, tp=1, pp=1, model="llama3-8b")
    trained = Context.of(state).trained
    (stage,) = trained.stages()
    both = (stage.parameters.dense, stage.parameters.experts)
    for part, size in model_states(both, trained.split, trained.training).items():
        assert stage.parts[part] == pytest.approx(size, rel=1e-3)


@pytest.mark.parametrize("precision", ["bf16-bf16", "fp16-fp16"])
@pytest.mark.parametrize("pp", [1, 2])
def test_deepspeed_cuts_the_optimizer_of_16_bits_through_stages_without_zero(pp, precision):
    """DeepSpeed 0.19.8 runtime/engine.py:2316-2320: BF16_Optimizer for bf16 with a pipeline."""
    model, split = MODELS["llama3-8b"].model, Split(dp=4, pp=pp)
    how = Training(engine="zero", zero=0, precision=precision, micro_batches=4)
    stage = memory_per_stage(model, split, how)[0]
    elements = sum((stage.parameters.dense, stage.parameters.experts))
    is_cut = pp > 1 and precision == "bf16-bf16"
    state = 12 if precision == "bf16-bf16" else 16
    assert stage.parts["optimizer"] == pytest.approx(state * elements / (4 if is_cut else 1))
    assert stage.parts["gradients"] == pytest.approx((4 if is_cut else 2) * elements)
    rows = [row.operation for row in exchanges(how, split)]
    assert rows == ["all_reduce", *["all_gather"] * is_cut]


def test_the_page_of_zeropp_with_ranks_of_a_second_copy_opens():
    """Its order is compared with that of Megatron, which has no hpZ."""
    state = State(framework="deepspeed-zeropp", nodes=2, tp=1, pp=1, hpz=4, model="llama3-8b")
    assert 'role="alert"' not in str(answer(state))
