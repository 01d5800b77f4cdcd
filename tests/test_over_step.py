"""Memory of a rank over a step: its fullest moment is the number of `memory_per_stage`, FSDP's as
torch's own order of gathers and reductions has it."""

from dataclasses import replace

import pytest

from groups import LayoutError
from training.memory import Training, memory_per_stage
from training.memory.moments import STATES, Player, ops_of_rank, plan_of_rank
from training.memory.over_step import over_step
from training.memory.pieces import pieces_of
from training.models import MODELS
from training.parameters import stage_parameters
from training.pipeline import SCHEDULES
from training.pipeline.spec import ScheduleSpec
from training.sharding.held import seat_of, sharding_of
from training.sharding.step import play, play_stages
from training.split import Split, layers_of_stages

LLAMA = replace(MODELS["llama3-8b"].model, layers=16)
TORCH = {
    "1f1b": "1F1B",
    "gpipe": "GPipe",
    "interleaved": "Interleaved1F1B",
    "bfs": "LoopedBFS",
    "zb-v": "ZBVZeroBubble",
    "interleaved-zb": "InterleavedZeroBubble",
}
"""Torch's names of schedules."""

PIPELINES = (
    *((2, 1, 4, "1f1b"), (4, 1, 8, "1f1b"), (4, 1, 4, "1f1b"), (2, 1, 4, "gpipe")),
    *(
        (2, 2, 4, "interleaved"),
        (2, 4, 8, "interleaved"),
        (2, 2, 4, "bfs"),
        (2, 2, 3, "interleaved"),
    ),
    *((2, 2, 6, "zb-v"), (2, 2, 4, "interleaved-zb")),
)


def whole_at_most(how: Training, split: Split, rank: int) -> float:
    """The most bytes of what FSDP has whole on the way, by the ops of a rank."""
    held = stage_parameters(LLAMA, split)[rank]
    pieces = pieces_of(LLAMA, split, how, held, [0.0] * len(LLAMA.kinds), {})
    plan, row = plan_of_rank(how.pipeline(split), rank)
    ops = Player(pieces, ops_of_rank(plan, row), plan.stages).play()
    return max(op.most.total for op in ops)


@pytest.mark.parametrize("reshard", ["default", "always", "never"])
@pytest.mark.parametrize(("pp", "v", "m", "schedule"), PIPELINES)
def test_what_is_whole_at_the_most_is_what_torchs_pipelines_have(reshard, pp, v, m, schedule):
    how = Training(
        engine="fsdp2",
        zero=3,
        units="torchtitan",
        micro_batches=m,
        reshard=reshard,
        schedule=schedule,
    )
    split = Split(dp=8, pp=pp, vpp=v).placed(how.rule.placement)
    layers = layers_of_stages(LLAMA.layers, split.dealing)
    for rank in range(pp):
        seat = replace(seat_of(split, how), pp=(pp, rank))
        sharding = sharding_of(how, split)
        played = play_stages(LLAMA, sharding, seat, TORCH[schedule], m, layers)
        assert whole_at_most(how, split, rank) == played.record.fullest.bytes


@pytest.mark.parametrize("sync", ["every", "last", "kept", "replicas"])
@pytest.mark.parametrize("reshard", ["default", "never"])
@pytest.mark.parametrize("units", ["torchtitan", "blocks", "root"])
def test_without_a_pipeline_too(sync, reshard, units):
    split = Split(dp=8)
    for m in (1, 2, 3, 5):
        how = Training(
            engine="fsdp2", zero=3, units=units, micro_batches=m, reshard=reshard, sync=sync
        )
        played = play(LLAMA, sharding_of(how, split), seat_of(split, how), m)
        assert whole_at_most(how, split, 0) == played.record.fullest.bytes


ENGINES = (
    {"zero": 1},
    {"zero": 3},
    {"zero": 1, "dropout": True, "recompute": "full"},
    {"zero": 1, "ep_overlap": True},
    {"engine": "ddp", "zero": 0},
    {"engine": "zero", "zero": 1},
    {"engine": "zero", "zero": 3},
    {"engine": "fsdp2", "zero": 3, "units": "torchtitan"},
    {"engine": "fsdp2", "zero": 3, "reshard": "always"},
    {"engine": "fsdp2", "zero": 2, "sync": "last"},
)


@pytest.mark.parametrize("how", ENGINES, ids=lambda how: " ".join(map(str, how.values())))
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_fullest_moment_is_the_number_of_the_verdict(schedule, how):
    counted = 0
    for pp, v, m in ((1, 1, 4), (4, 1, 3), (4, 2, 8), (4, 2, 300)):
        training = Training(schedule=schedule, micro_batches=m, **how)
        split = Split(dp=8, pp=pp, vpp=SCHEDULES[schedule].v or v)
        try:
            stages = memory_per_stage(LLAMA, split, training)
        except LayoutError:  # sizes that the schedule does not take
            continue
        for stage in (stages[0], stages[-1]):
            held = over_step(LLAMA, split, training, stage.stage)
            assert held.total == pytest.approx(stage.total, rel=1e-9)
            counted += 1
    assert counted


def test_activations_come_and_go_and_states_stay():
    held = over_step(LLAMA, Split(dp=8), Training(micro_batches=2), 0)
    assert [op.text for op in held.ops] == ["0F0", "0B0", "0F1", "0B1", "optimizer"]
    kept = [[point.parts.get("activations", 0) for point in op.points] for op in held.ops]
    (stage,) = memory_per_stage(LLAMA, Split(dp=8), Training(micro_batches=2))
    assert kept[0] == [0, stage.layer_bytes, stage.layer_bytes]
    assert kept[1] == sorted(kept[1], reverse=True)
    assert kept[1][-1] == 0
    for op in held.ops:
        for point in op.points:
            assert all(
                point.parts[name] == stage.parts[name] for name in STATES if name in stage.parts
            )
    assert held.ops[-1].most.total == sum(stage.parts.get(name, 0) for name in STATES)


def test_a_long_step_is_played_with_as_many_micro_batches_as_repeat():
    training = Training(micro_batches=100_000)
    held = over_step(LLAMA, Split(pp=4), training, 0)
    assert held.of == 100_000
    assert held.micro_batches < 100
    with pytest.raises(LayoutError) as refused:  # each adds to what GPipe holds
        over_step(LLAMA, Split(pp=4), replace(training, schedule="gpipe"), 0)
    (fix,) = refused.value.alternatives
    assert over_step(LLAMA, Split(pp=4), replace(training, schedule="gpipe", **fix), 0).ops


# -- schedules in pairs ----------------------------------------------------------------------------

WARMUP = {
    (2, 2, 4): [5, 3],
    (4, 2, 16): [11, 9, 7, 5],
    (4, 2, 4): [8, 8, 7, 5],
    (8, 2, 16): [23, 21, 19, 17, 15, 13, 11, 9],
    (4, 3, 8): [15, 13, 11, 9],
    (4, 4, 16): [19, 17, 15, 13],
    (8, 3, 24): [31, 29, 27, 25, 23, 21, 19, 17],
}
"""Forwards before the first backward by (p, v, m): NVIDIA/Megatron-LM d98e8a6
core/pipeline_parallel/schedules.py, get_pp_rank_microbatches with
overlap_moe_expert_parallel_comm, executed."""


@pytest.mark.parametrize("sizes", WARMUP)
def test_experts_exchange_that_hides_has_one_more_forward_and_then_pairs(sizes):
    p, v, m = sizes
    order = ScheduleSpec("interleaved", p, m, v, variant="pairs").plan().order()
    for ops, warmup in zip(order, WARMUP[sizes]):
        assert all("F" in op and "&" not in op for op in ops[:warmup])
        pairs = ops[warmup : v * m]
        assert len(pairs) == v * m - warmup
        assert all(op.count("&") == 1 for op in pairs)
        assert all("B" in op and "&" not in op for op in ops[v * m :])


@pytest.mark.parametrize(("p", "m", "v"), [(4, 2, 2), (4, 8, 1), (4, 3, 3), (2, 6, 2), (4, 10, 2)])
def test_torch_interleaves_few_micro_batches_and_one_chunk(p, m, v):
    """Torch 2.13.0 _get_warmup_ops: rounds of m // p, at least one, and 2(p - r - 1) + (v - 1)n."""
    with_torch = ScheduleSpec("interleaved", p, m, v, variant="torch")
    assert with_torch.is_taken
    n = m // max(1, m // p)
    for rank, ops in enumerate(with_torch.plan().order()):
        first = next(at for at, op in enumerate(ops) if "B" in op)
        assert first == min(2 * (p - rank - 1) + (v - 1) * n + 1, m * v)
    assert ScheduleSpec("interleaved", p, m, v).is_taken is ((p, m, v) in ((2, 6, 2),))
