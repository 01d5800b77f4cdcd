"""What is written for programs whose data parallelism is their own, and read back."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formats.launch import parse
from formats.launch.emit import emit
from formats.launch.targets import TARGETS
from formats.launch.training import options_of, training_of
from groups import LayoutError
from groups.layout import Job, own_groupings
from training.recipe import Training
from training.sharding.held import element_bytes, sharding_of
from training.sharding.words import UNSAID
from training.split import Split

TITAN = ("torchtitan", "torchtitan-main", "torchtitan-toml")
WRITES = {
    "fsdp": ("accelerate",),
    "device-mesh": ("accelerate",),
    "torchtitan": TITAN,
    **dict.fromkeys(
        (
            "deepspeed",
            "deepspeed-zeropp",
            "deepspeed-mics",
            "deepspeed-autoep",
            "deepspeed-ulysses",
        ),
        ("deepspeed",),
    ),
}
"""Targets that say all of a framework's data parallelism."""


def trained(job: Job, fields: dict[str, object]) -> Training:
    """A training with these fields, and else as its engine has it where nobody says it."""
    engine = str(fields.get("engine", job.layout().made_by.engine))
    zero, precision = UNSAID[engine]
    known = {"zero": zero, "precision": precision, **fields, "engine": engine}
    return Training(
        **{
            name: known[name]
            for name in ("engine", "zero", "precision", "reshard")
            if name in known
        },
        instances=job.instances,
    )


def law(job: Job, fields: dict[str, object]) -> tuple[object, ...]:
    """All that data parallelism does: which GPUs are together, which copies of what are held, what
    is gathered again and in which formats."""
    training, mesh = trained(job, fields), job.layout().mesh
    split = Split(dp=mesh.world_size // (job.tp * job.pp * job.cp), tp=job.tp, cp=job.cp, pp=job.pp)
    how = sharding_of(training, split)
    groups = {
        frozenset(g.members(rank).tolist())
        for g in own_groupings(job.layout())
        if g.size > 1
        for rank in range(mesh.world_size)
    }
    cut = (how.keeps_whole(job.pp), how.replicate, how.shard) if how.engine == "fsdp2" else ()
    return how.engine, how.cut, cut, groups, element_bytes(training)


@given(
    framework=st.sampled_from(sorted(WRITES)),
    nodes=st.sampled_from((1, 2, 4)),
    sizes=st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(("tp", "cp", "pp", "ep", "instances"), st.sampled_from((1, 2, 4))),
    ),
    hpz=st.sampled_from((None, 2, 4, 16)),
    zero=st.integers(0, 3),
    reshard=st.sampled_from((None, "always", "never")),
    precision=st.sampled_from((None, "bf16-fp32", "bf16-bf16")),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_what_data_parallelism_does_is_written_and_read_back(
    framework, nodes, sizes, hpz, zero, reshard, precision, data
):
    job = Job(nodes, framework=framework, hpz=hpz, **sizes)
    engine = job_engine(job)
    if framework == "device-mesh":  # whose names of more groups are the program's own
        assume(job.tp == job.cp == 1)
    fields: dict[str, object] = {"zero": zero if engine == "zero" else max(2, zero)}
    if engine == "zero" and precision:
        fields |= {"precision": precision}
    if engine == "fsdp2" and reshard:
        fields |= {"reshard": reshard}
    target = data.draw(st.sampled_from(WRITES[framework]))
    try:
        text = emit(job, options_of({}, fields, job.pp), target)
    except LayoutError as error:
        assume(error.code != "framework-cannot-express")
        assume(False)
    parsed = parse(text)
    assert not [*parsed.problems, *parsed.unresolved, *parsed.asks]
    known = {**parsed.assumed, **parsed.values}
    back = Job(**{name: value for name, value in known.items() if hasattr(Job, name)})
    assert law(back, training_of(parsed)) == law(job, fields)


def job_engine(job: Job) -> str:
    try:
        return job.layout().made_by.engine
    except LayoutError:
        assume(False)
        raise


@pytest.mark.parametrize("target", ["accelerate", *TITAN])
def test_a_job_of_ddp_is_written_and_read_back_as_one(target):
    framework = TARGETS[target].makes[0]
    text = emit(
        Job(2, framework=framework), options_of({}, {"engine": "ddp", "zero": 0}, 1), target
    )
    found = training_of(parse(text))
    assert (found["engine"], found["zero"]) == ("ddp", 0)
    assert "option for" not in text


def test_a_word_of_some_versions_is_said():
    """deepspeedai/DeepSpeed 0.19.8 refuses mics_shard_size; huggingface/accelerate 1.10.0 brought
    parallelism_config."""
    mics = emit(Job(2, framework="deepspeed-mics", instances=4), {"zero": 3}, "deepspeed")
    assert mics.startswith("# DeepSpeed 0.19.6's words; other versions may differ\n")
    hsdp = emit(Job(2, framework="fsdp", instances=2), {}, "accelerate")
    assert "# Accelerate 1.10's words" in hsdp
    assert not emit(Job(2, framework="deepspeed"), {"zero": 3}, "deepspeed").startswith("#")


def test_what_has_no_words_is_named_and_copies_of_other_states_are_refused():
    options = options_of({}, {"engine": "fsdp2", "zero": 3, "sync": "last"}, 1)
    text = emit(Job(1, framework="fsdp"), options | {"optimizer": "lion"}, "accelerate")
    assert "# Accelerate has no option for sync 'last', optimizer 'lion'" in text
    assert "no option for zero 1" in emit(Job(1, tp=2), {"zero": 1}, "accelerate")
    for job, target in (
        (Job(2, instances=2), "accelerate"),
        (Job(2, framework="torchtitan", instances=2), "megatron"),
        (Job(2, framework="deepspeed", ep=4), "deepspeed"),
    ):
        with pytest.raises(LayoutError, match="has no option for"):
            emit(job, framework=target)


def test_deepspeed_sums_gradients_in_the_format_that_it_is_told():
    for precision in ("bf16-bf16", "bf16-fp32"):
        options = options_of({}, {"precision": precision, "zero": 2}, 1)
        text = emit(Job(1, framework="deepspeed"), options, "deepspeed")
        assert training_of(parse(text))["precision"] == precision
        assert "no option" not in text
