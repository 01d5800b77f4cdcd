"""Gradient buckets and what they do in time: recorded buckets, laws, small timelines as tables."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.collectives.buckets import (
    DDP_CAPS,
    MIB,
    SCHEMES,
    BucketModel,
    Task,
    all_reduce_tasks,
    buckets,
    exposed_seconds,
    gradient_buckets,
    layer_tensors,
    megatron_bucket_parameters,
    model_tensors,
    sharded_tasks,
    timed,
    zero3_tasks,
)
from training.collectives.cost import bytes_per_rank
from training.model import Model
from training.models import MODELS
from training.parameters import layer_parameters, on_one_rank
from training.recipe import Training
from training.sharding import ddp, zero_steps
from training.sharding.held import seat_of, sharding_of
from training.sharding.layers import as_sent, scheme_of, tensors_of_layer
from training.sharding.step import play
from training.sharding.units import parameters_of
from training.sharding.zero import ZeroConfig
from training.split import Split

RECORDED = json.loads(
    (Path(__file__).parent / "data" / "ddp_buckets.json").read_text(encoding="utf-8")
)
law = settings(max_examples=50, deadline=None)
models = st.builds(
    BucketModel,
    layers=st.integers(1, 6),
    tensors=st.sampled_from([64, 256, 1024]).map(layer_tensors),
    d=st.integers(1, 16),
    backward_seconds=st.floats(1e-4, 1e-1),
    bytes_per_second=st.floats(1e9, 1e12),
)


@pytest.mark.parametrize("row", RECORDED["rows"])
def test_buckets_are_those_of_pytorch(row):
    assert buckets([4 * elements for elements in row["elements"]], DDP_CAPS) == row["buckets"]


def test_the_caps_of_pytorch_and_of_megatron():
    assert DDP_CAPS == (1_048_576, 26_214_400)
    assert [megatron_bucket_parameters(d) for d in (1, 40, 41, 1024)] == [
        40_000_000, 40_000_000, 41_000_000, 1_024_000_000,
    ]  # fmt: skip


@law
@given(
    st.lists(st.integers(0, 100), max_size=30),
    st.lists(st.integers(1, 150), min_size=1, max_size=3),
)
def test_buckets_keep_the_order_and_close_when_they_reach_their_cap(sizes, caps):
    found = buckets(sizes, caps)
    assert [place for bucket in found for place in bucket] == list(range(len(sizes)))
    for number, bucket in enumerate(found):
        cap = caps[min(number, len(caps) - 1)]
        filled = sum(sizes[place] for place in bucket)
        assert filled - sizes[bucket[-1]] < cap
        assert filled >= cap or number == len(found) - 1


@pytest.mark.parametrize("hidden", [1, 64, 12288])
def test_the_tensors_of_a_layer_add_up(hidden):
    assert sum(layer_tensors(hidden)) == 12 * hidden**2 + 13 * hidden


@pytest.mark.parametrize("hidden", [64, 12288])
def test_the_tensors_of_a_gpt_are_those_of_any_model(hidden):
    gpt = Model(
        layers=2, hidden=hidden, heads=8, ffn=4 * hidden, vocabulary=1024, sequence=64, biases="all"
    )
    assert model_tensors(gpt, Split(), gpt.kinds[0]) == layer_tensors(hidden)


def test_the_tensors_of_a_layer_are_its_parameters_on_a_rank_but_experts():
    """Of every model that is known, with experts and without, whole and cut by tp."""
    wrong = []
    for name, known in MODELS.items():
        model = known.model
        for kind in model.kinds:
            for split in (Split(), Split(tp=2)):
                held = on_one_rank(layer_parameters(model, kind), split)
                held.pop("experts", 0)
                tensors = model_tensors(model, split, kind)
                if sum(tensors) != sum(held.values()) or min(tensors) < 1:
                    wrong.append((name, kind.name, split.tp, tensors, held))
    assert not wrong


# Timelines: what runs when, in whole seconds.


def table(events) -> list[tuple[str, int, float, float]]:
    return [(e.task.what, e.task.number, round(e.start, 9), round(e.end, 9)) for e in events]


def test_lanes_run_in_order_and_tasks_wait():
    """Two lanes:

    compute  |b0 |b1 |b2 |
    network      |---r0--|r2|
    """
    tasks = [
        Task("compute", "backward", 0, 1),
        Task("network", "all_reduce", 0, 2, (0,)),
        Task("compute", "backward", 1, 1),
        Task("compute", "backward", 2, 1),
        Task("network", "all_reduce", 1, 0.5, (3,)),
    ]
    events = timed(tasks)
    assert table(events) == [
        ("backward", 0, 0, 1),
        ("all_reduce", 0, 1, 3),
        ("backward", 1, 1, 2),
        ("backward", 2, 2, 3),
        ("all_reduce", 1, 3, 3.5),
    ]
    assert exposed_seconds(events) == 0.5


def small(**changes) -> BucketModel:
    """One tensor's worth of time is easy to see: 2 layers of 1 s, all-reduces of 1 s a layer."""
    parameters = sum(layer_tensors(1024))
    given = {
        "layers": 2,
        "tensors": layer_tensors(1024),
        "d": 2,
        "backward_seconds": 1.0,
        "bytes_per_second": float(4 * parameters),
    }
    return BucketModel(**{**given, **changes})


def test_one_bucket_waits_for_the_whole_backward():
    events = timed(all_reduce_tasks(small(), "one"))
    assert table(events)[-1] == ("all_reduce", 0, 2.0, 4.0)
    assert exposed_seconds(events) == pytest.approx(2.0)


def test_zero_3_gathers_a_layer_ahead():
    """G gathers, F and B compute, R scatters: here a gather takes 0.25 s, a scatter 0.5 s.

    compute    F0  F1  B1    B0
    network  G0 G1 G1 (wait) G0 R1 R0
    """
    events = timed(zero3_tasks(small()))
    assert table(e for e in events if e.task.lane == "compute") == [
        ("forward", 0, 0.25, 0.75),
        ("forward", 1, 0.75, 1.25),
        ("backward", 1, 1.25, 2.25),
        ("backward", 0, 2.25, 3.25),
    ]
    assert table(e for e in events if e.task.lane == "network") == [
        ("all_gather", 0, 0.0, 0.25),
        ("all_gather", 1, 0.25, 0.5),
        ("all_gather", 1, 0.75, 1.0),
        ("all_gather", 0, 1.25, 1.5),
        ("reduce_scatter", 1, 2.25, 2.75),
        ("reduce_scatter", 0, 3.25, 3.75),
    ]


@law
@given(models, st.sampled_from(["ddp", "megatron", "one"]))
def test_all_gradients_are_reduced_once_and_no_reduction_starts_before_its_gradients(model, scheme):
    tasks = all_reduce_tasks(model, scheme)
    events = timed(tasks)
    reduced = [task for task in tasks if task.lane == "network"]
    assert len(reduced) == len(gradient_buckets(model, scheme))
    assert sum(task.size for task in reduced) == 4 * model.layers * model.layer_parameters
    backward = sum(task.seconds for task in tasks if task.what == "backward")
    assert backward == pytest.approx(model.layers * model.backward_seconds)
    for event in events:
        assert all(events[at].end <= event.start for at in event.task.after)


@law
@given(models)
def test_one_rank_waits_for_nothing_to_the_last_digit(model):
    alone = replace(model, d=1)
    for scheme in ("one", "ddp", "megatron"):
        assert exposed_seconds(timed(all_reduce_tasks(alone, scheme))) == 0
    for tasks in (sharded_tasks(alone), zero3_tasks(alone)):
        assert exposed_seconds(timed(tasks)) == 0


@law
@given(models)
def test_buckets_never_make_a_step_longer_than_one_bucket_does(model):
    """Bandwidth alone: the price of many buckets, latency, is not in this model."""
    one = exposed_seconds(timed(all_reduce_tasks(model, "one")))
    for scheme in ("ddp", "megatron"):
        assert exposed_seconds(timed(all_reduce_tasks(model, scheme))) <= one * (1 + 1e-9) + 1e-15


@law
@given(models)
def test_a_sharded_optimizer_sends_both_halves_of_an_all_reduce(model):
    tasks = sharded_tasks(model)
    sent = {
        op: sum(bytes_per_rank(op, model.d, t.size) for t in tasks if t.what == op)
        for op in ("reduce_scatter", "all_gather")
    }
    parameters = model.layers * model.layer_parameters
    whole = bytes_per_rank("all_reduce", model.d, 1.0) / 2 * parameters
    assert sent["reduce_scatter"] == pytest.approx(4 * whole)
    assert sent["all_gather"] == pytest.approx(2 * whole)


@law
@given(models)
def test_a_forward_pass_waits_for_its_own_parameters_only(model):
    tasks = sharded_tasks(model)
    forwards = [task for task in tasks if task.what == "forward"]
    assert [task.number for task in forwards] == list(range(model.layers))
    assert all(tasks[at].what == "all_gather" for task in forwards for at in task.after)
    assert all(task.after for task in forwards)


@law
@given(models)
def test_zero_3_moves_three_passes(model):
    """ZeRO, section 7.2: 3 times the parameters, where an all-reduce is 2 (elements)."""
    tasks = zero3_tasks(model)
    counts = Counter(task.what for task in tasks)
    assert counts == {
        "all_gather": 2 * model.layers,
        "reduce_scatter": model.layers,
        "forward": model.layers,
        "backward": model.layers,
    }
    elements = sum(
        task.size / (2 if task.what == "all_gather" else 4)
        for task in tasks
        if task.lane == "network"
    )
    assert elements == pytest.approx(3 * model.layers * model.layer_parameters)
    for event in timed(tasks):
        assert event.end >= event.start


def test_first_bucket_is_small_so_that_communication_starts_early():
    model = small(layers=8)
    first, *others = gradient_buckets(model, "ddp")
    sizes = list(layer_tensors(1024)) * 8
    assert [4 * sum(sizes[place] for place in first)] == [4 * (4 * 1024**2 + 1024)]
    assert all(sum(4 * sizes[place] for place in bucket) >= 25 * MIB for bucket in others[:-1])


# The job's own data parallelism, beside what its law plays of layers alone.

GPT = Model(layers=5, hidden=1024, heads=8, ffn=2816, vocabulary=4096, sequence=64, gated=True)


def as_the_job(training: Training, split: Split, layers: int = 5) -> list[Task]:
    """The tasks of its layers, each of a millisecond."""
    tensors = tensors_of_layer(GPT, split, training, 0)
    d = training.ranks_sharing(split)[0]
    base = BucketModel(layers, tensors, d, 1e-3, 1e11)
    model = as_sent(base, training, split, 1e10)
    return SCHEMES[scheme_of(training)](model)


def carried(tasks: list[Task]) -> list[tuple[str, float]]:
    return [(task.what, task.size) for task in tasks if task.lane != "compute"]


@pytest.mark.parametrize("reshard", ["default", "never"])
@pytest.mark.parametrize("copies", [1, 2])
def test_fsdp_in_time_sends_what_its_hooks_do_of_layers(reshard, copies):
    split = Split(dp=8)
    training = Training(engine="fsdp2", zero=3, reshard=reshard, instances=copies)
    played = play(GPT, sharding_of(training, split), seat_of(split, training)).record.collectives
    wanted = [
        (call.op, float(max(call.bytes_in, call.bytes_out)))
        for call in played
        if call.unit and call.unit.startswith("layers.")
    ]
    found = carried(as_the_job(training, split))
    assert Counter(found) == Counter(wanted)
    # And in that order, but for the all-reduces, which run beside the other two.
    assert [one for one in found if one[0] != "all_reduce"] == [
        one for one in wanted if one[0] != "all_reduce"
    ]


def test_ddp_in_time_closes_its_buckets_where_torch_does():
    split, training = Split(dp=8), Training(engine="ddp", zero=0)
    layers = [each for layer in range(5) for each in parameters_of(GPT, layer)]
    found = ddp.buckets_of(ddp.readiness(layers), (ddp.FIRST, ddp.OTHERS), 4)
    wanted = [("all_reduce", 4.0 * sum(each.elements for each in bucket)) for bucket in found]
    assert carried(as_the_job(training, split)) == wanted
    assert len(wanted) > 3


@pytest.mark.parametrize("stage", [0, 1, 2])
def test_deepspeed_in_time_fills_its_buckets(stage, monkeypatch):
    """With buckets of 20 million elements, a tenth of which a layer has."""
    monkeypatch.setattr("training.collectives.buckets.BUCKET_OF_ZERO", 20_000_000)
    split = Split(dp=8)
    training = Training(engine="zero", zero=stage, precision="bf16-bf16")
    layers = [each for layer in range(5) for each in parameters_of(GPT, layer)]
    config = ZeroConfig(stage, reduce_bucket=20_000_000)
    wanted = [("all_reduce", 2.0 * size) for size in zero_steps.reductions(layers, config, 8)]
    if stage:
        wanted.append(("all_gather", 2.0 * sum(each.elements for each in layers)))
    tasks = as_the_job(training, split)
    if stage:
        assert carried(tasks) == wanted
    else:  # whose matrices stand in a layer in another order
        sizes = [size for _, size in carried(tasks)]
        assert sum(sizes) == sum(size for _, size in wanted)
        assert len(sizes) == len(wanted)
        assert min(sizes[:-1]) > 2.0 * 20_000_000
    first = next(event for event in timed(tasks) if event.task.what == "all_reduce")
    assert (first.start >= 5e-3 - 1e-12) is (stage == 0)


def test_the_scheme_is_the_jobs_own():
    wanted = {
        ("megatron", 0): "megatron",
        ("megatron", 1): "sharded",
        ("megatron", 3): "zero3",
        ("ddp", 0): "ddp",
        ("fsdp2", 0): "ddp",
        ("fsdp2", 3): "fsdp",
        ("zero", 2): "deepspeed",
        ("zero", 3): "zero3",
    }
    for (engine, zero), scheme in wanted.items():
        assert scheme_of(Training(engine=engine, zero=zero)) == scheme
