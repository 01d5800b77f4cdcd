"""Data parallelism as torch, torchtitan and DeepSpeed were executed to do it (data/sharding)."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest
from reference.sharding import answer, equal

from groups import LayoutError
from training.models import MODELS
from training.sharding import ddp, zero, zero_steps
from training.sharding.record import GroupCall
from training.sharding.stages import actions_of
from training.sharding.step import Seat, play, play_stages
from training.sharding.units import ModuleParameter, chunk_length
from training.sharding.value import DataParallel

RECORDED = Path(__file__).parent / "data" / "sharding.jsonl.xz"
ROWS = [json.loads(line) for line in lzma.decompress(RECORDED.read_bytes()).splitlines()]
LLAMA = MODELS["llama3-8b"].model


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_a_recorded_row_is_what_the_product_says(row):
    assert equal(answer(row), row["expected"])


def test_a_wrong_number_is_seen():
    row = next(row for row in ROWS if row["framework"] == "pytorch FSDP2")
    wrong = {**row["expected"], "model_parameters": row["expected"]["model_parameters"] + 1}
    assert not equal(answer(row), wrong)


# -- laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("length", [1, 7, 64, 503])
@pytest.mark.parametrize("parts", [1, 3, 8, 24])
def test_chunks_hold_every_row_once(length, parts):
    assert sum(chunk_length(length, parts, index) for index in range(parts)) == length


@pytest.mark.parametrize("units", ["blocks", "blocks+embedding", "root", "torchtitan"])
def test_every_parameter_is_in_one_unit(units):
    how = DataParallel("fsdp2", "weights", shard=8, units=units)
    modules = play(LLAMA, how).parts[0].modules
    names = [each.name for m in modules for unit in m.units for each in unit.parameters]
    assert len(names) == len(set(names))
    elements = sum(unit.elements for m in modules for unit in m.units)
    assert elements == 8_030_261_248


@pytest.mark.parametrize("sync", ["every", "last", "kept"])
def test_every_step_ends_with_nothing_whole(sync):
    how = DataParallel("fsdp2", "weights", shard=4, sync=sync)
    step = play(LLAMA, how, micro_batches=3)
    assert step.after_step == (0, 0)
    assert step.record.now["all_gather_buffers"] == 0
    assert step.record.now["reduce_scatter_inputs"] == 0


@pytest.mark.parametrize(("sync", "times"), [("every", 3), ("last", 1)])
def test_gradients_are_reduced_as_often_as_they_are_synchronised(sync, times):
    how = DataParallel("fsdp2", "weights", shard=4, sync=sync)
    found = Counter(each.op for each in play(LLAMA, how, micro_batches=3).record.collectives)
    assert found["reduce_scatter"] == 33 * times


def test_a_pipeline_holds_what_megatrons_zero_1_does():
    """2 bytes of weights and 4 of gradients whole, 12 cut (FACTS, law 8)."""
    how = DataParallel("fsdp2", "weights", shard=8, units="torchtitan", reshard="default")
    stages = [range(16), range(16, 32)]
    step = play_stages(LLAMA, how, Seat(shard=(8, 0), pp=(2, 0)), "1F1B", 4, stages)
    (part,) = step.parts.values()
    elements = sum(unit.elements for m in part.modules for unit in m.units)
    assert max(whole for _, whole, _ in step.after_op) == 2 * elements
    assert max(gradients for _, _, gradients in step.after_op) == 4 * elements
    sent = Counter(each.op for each in step.record.collectives if each.group == "fsdp")
    assert sent == {"all_gather": 17, "reduce_scatter": 17}


SCHEDULES = ["1F1B", "GPipe", "Interleaved1F1B", "LoopedBFS", "InterleavedZeroBubble", "DualPipeV"]


@pytest.mark.parametrize("name", [*SCHEDULES, "ZBVZeroBubble"])
def test_what_is_sent_is_received(name):
    stages = 2 if name in ("1F1B", "GPipe") else 4
    for actions in actions_of(name, 2, 4, stages):
        kinds = Counter(action.kind for action in actions)
        of_stages = len({action.stage for action in actions})
        assert kinds["F"] == 4 * of_stages
        assert kinds["reduce"] == of_stages
    sent, got = (
        sum(action.kind == kind for row in actions_of(name, 2, 4, stages) for action in row)
        for kind in ("send", "recv")
    )
    assert sent == got


def test_an_unknown_schedule_is_refused():
    with pytest.raises(LayoutError, match="schedule"):
        actions_of("2F2B", 2, 4, 4)


def test_experts_that_do_not_divide_are_refused():
    mixtral = MODELS["mixtral-8x7b"].model
    how = DataParallel("fsdp2", "weights", shard=9, units="torchtitan", reshard="default")
    with pytest.raises(LayoutError, match=r"expert_ffn 14,?336"):
        play(mixtral, how, Seat(shard=(9, 0)))


def test_ddp_closes_a_bucket_at_its_size():
    parameters = [ModuleParameter(f"layers.{n}.attention.wq.weight", (2**18,)) for n in range(60)]
    made = ddp.steps_of(parameters, ddp.BucketSizes(world=8))
    sizes = [sum(each.elements for each in bucket) * 4 // ddp.MIB for bucket in made.buckets[2]]
    assert sizes == [1, 25, 25, 9]


def test_zero_pads_its_flat_state_and_cuts_parameters_one_by_one():
    assert zero.padded(79_936, 3) == 79_938
    assert zero.partition(ModuleParameter("a", (5, 2)), 4) == 3


def test_zero_3_gathers_again_what_is_not_used_soon():
    parameters = [ModuleParameter(f"layers.{n}.attention.wq.weight", (100,)) for n in range(3)]
    config = zero.ZeroConfig(3, persistence=0, prefetch_bucket=0, max_reuse=150)
    (_, step) = zero_steps.steps_of(parameters, config, 4, 1, 2)
    backward = [e for e in step if e.op == "all_gather" and e.phase == "backward:0"]
    assert [each.bytes_out for each in backward] == [200, 200]  # of layers 1 and 0


def test_a_piece_of_a_bucket_goes_to_its_owner():
    parameters = [
        ModuleParameter("layers.0.attention.wq.weight", (10,)),
        ModuleParameter("norm.weight", (6,)),
    ]
    config = zero.ZeroConfig(2, multi_rank=False)
    (step,) = zero_steps.steps_of(parameters, config, 2, 1, 1)
    reduces = [each for each in step if each.op == "reduce"]
    assert reduces == [
        GroupCall("backward:0", "reduce", "dp", None, 16, 16, "bf16"),
        GroupCall("backward:0", "reduce", "dp", None, 16, 16, "bf16"),
    ]
