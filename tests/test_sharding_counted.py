"""Traffic's rows of data parallelism, beside what each framework's own law plays of a step."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest

from training.model import Model
from training.recipe import Training
from training.sharding import ddp, zero_steps
from training.sharding.held import LayersHeld, modules_held, seat_of, sharding_of
from training.sharding.record import GroupCall
from training.sharding.step import play, play_stages
from training.sharding.zero import ZeroConfig
from training.split import Split
from training.traffic.demands import demands

DENSE = Model(layers=6, hidden=512, heads=8, ffn=1536, vocabulary=4096, sequence=64, gated=True)
SPARSE = Model(
    layers=5, hidden=256, heads=8, ffn=512, vocabulary=1000, sequence=64, gated=True,
    experts=8, expert_ffn=192, top_k=2,
)  # fmt: skip

KIND = {
    ("fsdp", 1): "dp-cp",
    ("efsdp", 1): "edp",
    ("fsdp", 2): "intra-dp-cp",
    ("efsdp", 2): "intra-edp",
    ("dp_replicate", 2): "inter-edp",
    ("dp", 1): "dp-cp",
}
"""The kind of group in Traffic, by its name where it is played and the copies."""


def played(calls: list[GroupCall], copies: int = 1) -> dict[tuple[str, str], tuple[float, float]]:
    """Collectives and bytes of their whole buffers, by kind and operation; not the scalars that
    ZeRO sums around the optimizer."""
    found = Counter(), Counter()
    for call in calls:
        if call.group not in ("tp", "pp") and max(call.bytes_in, call.bytes_out) > 64:
            key = (KIND[call.group, copies], call.op)
            found[0][key] += 1
            found[1][key] += max(call.bytes_in, call.bytes_out)
    return {key: (number, found[1][key]) for key, number in found[0].items()}


def counted(
    model: Model, split: Split, training: Training, stage: int = 0
) -> dict[tuple[str, str], tuple[float, float]]:
    """The same of Traffic's rows, of one stage."""
    found = Counter(), Counter()
    for row in demands(model, split, training):
        if row.kind.endswith(("dp-cp", "edp")):
            found[0][row.kind, row.operation] += row.counts[stage]
            found[1][row.kind, row.operation] += row.volumes[stage]
    return {key: (number, found[1][key]) for key, number in found[0].items() if number}


FSDP = [
    (model, split, units, reshard, sync, copies)
    for (model, split), units, reshard, sync, copies in product(
        ((DENSE, Split(dp=8)), (DENSE, Split(dp=4, cp=2)), (SPARSE, Split(dp=8, ep=4))),
        ("torchtitan", "blocks", "root"),
        ("default", "always", "never"),
        ("every", "last", "kept", "replicas"),
        (1, 2),
    )
]


@pytest.mark.parametrize(("model", "split", "units", "reshard", "sync", "copies"), FSDP)
def test_fsdp_sends_what_its_hooks_do(model, split, units, reshard, sync, copies):
    training = Training(
        engine="fsdp2", zero=3, units=units, reshard=reshard, sync=sync,
        instances=copies, micro_batches=3,
    )  # fmt: skip
    how, seat = sharding_of(training, split), seat_of(split, training)
    wanted = played(play(model, how, seat, 3).record.collectives, copies)
    assert counted(model, split, training) == wanted


@pytest.mark.parametrize(("stage", "schedule"), [*product((0, 1), ("1F1B", "GPipe"))])
def test_fsdp_through_stages_gathers_once_and_reduces_once(stage, schedule):
    split = Split(dp=4, pp=2)
    training = Training(engine="fsdp2", zero=3, units="torchtitan", micro_batches=4)
    how, seat = sharding_of(training, split), seat_of(split, training)
    seat = type(seat)(seat.shard, seat.expert_shard, seat.tp, seat.ep, (2, stage))
    step = play_stages(DENSE, how, seat, schedule, 4, ((0, 1, 2), (3, 4, 5)))
    assert counted(DENSE, split, training, stage) == played(step.record.collectives)


def parameters_of(split: Split, training: Training):
    modules = modules_held(DENSE, split, training, LayersHeld((DENSE.layers,), True, True, 0))
    return [each for module in modules for unit in module.units for each in unit.parameters]


@pytest.mark.parametrize("sync", ["every", "last"])
def test_ddp_sends_its_rebuilt_buckets(sync):
    split, training = Split(dp=8), Training(engine="ddp", zero=0, sync=sync, micro_batches=3)
    how = ddp.BucketSizes(8, micro_batches=3, sync_last=sync == "last")
    steps = ddp.steps_of(parameters_of(split, training), how).steps
    assert counted(DENSE, split, training) == played(list(steps[2]))
    first = next(call.bytes_in for call in steps[2])
    assert 2**20 <= first < 25 * 2**20


@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_zero_sends_what_deepspeed_does(stage):
    split, how = Split(dp=8), {"engine": "zero", "precision": "bf16-bf16", "zero": stage}
    training = Training(**how, micro_batches=3)
    config = ZeroConfig(stage)
    parameters = parameters_of(split, training)
    wanted = zero_steps.steps_of(parameters, config, 8, 3, 2)[1]
    assert counted(DENSE, split, training) == played(
        [call for call in wanted if call.phase != "step:2" or stage < 3]
    )  # of stage 3 what it keeps whole is gathered behind the step
