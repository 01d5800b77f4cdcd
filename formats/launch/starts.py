"""What programs check before they start, and the layout with which Megatron divides layers.

Sources: NVIDIA/Megatron-LM d98e8a6, validate_args of megatron/training/arguments.py and
TransformerConfig of megatron/core/transformer/transformer_config.py; and what runs first: the
interleaved schedule (megatron/core/pipeline_parallel/schedules.py) and MoELayer (.../moe_layer.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from groups.alternatives import not_a_multiple, works
from groups.errors import LayoutError
from groups.layout import Job
from groups.stages.layers import stage_layers
from groups.stages.layout_strings import is_layout, parse_layout, write_layout
from training.errors import refusal as refused
from training.model import MAX_SIZE
from training.pipeline.spec import ScheduleSpec
from training.split import Dealing, layers_of_stages

from ..errors import refusal
from ..values import Document, Facts
from .counts import replicas

OTHER_SHARES = ("vpp", "account", "embedding", "loss", "first", "last")
"""Fields that divide layers, which Megatron refuses beside a layout."""

CUT = (
    *(("heads", "tp"), ("ffn", "tp"), ("shared_expert_ffn", "tp")),
    *(("expert_ffn", "etp"), ("experts", "ep")),
)
"""Sizes of a model, with the size of a job that must divide each."""


def shared_layers(job: Job, model: Facts) -> Document:
    """The fields of a model's layers with which Megatron starts: if the stages do not divide them,
    a layout that gives the first stages one more.

    >>> shared_layers(Job(nodes=4, pp=4), {"layers": 61})["layout"]
    'Et*16|(t*15|)*2t*15L'
    >>> shared_layers(Job(nodes=4, pp=4), {"layers": 60, "vpp": 3})
    {}

    Errors: LayoutError for layers that no layout of these stages can have.
    """
    layers, pp, vpp = model.get("layers"), job.pp, model.get("vpp") or 1
    account = bool(model.get("account"))
    if is_layout(layers):
        inside = [layer for stage in parse_layout(str(layers)) for layer in stage]
        unsaid = dict.fromkeys(OTHER_SHARES)
        return {**unsaid, "layout": layers, "layers": inside.count("decoder") or None}
    ends = {name: model.get(name) for name in ("first", "last")}
    if not layers or works(stage_layers, layers, pp, vpp, account=account, **ends):
        return {}
    stages = layers_of_stages(layers, _dealing(pp, model))
    layout = write_layout([len(stage) for stage in stages], model.get("mtp") or 0)
    return {**dict.fromkeys(OTHER_SHARES), "layout": layout, "layers": layers}


def _dealing(pp: int, model: Facts) -> Dealing:
    layers, vpp = model.get("layers"), model.get("vpp") or 1
    spread = "nearly"
    if is_layout(layers):
        spread, vpp = str(layers), max(1, len(parse_layout(str(layers))) // pp)
    ends = (model.get("first"), model.get("last"))
    return Dealing(pp, vpp, "loop", bool(model.get("account")), spread, *ends)


def what_stops(program: str, job: Job, model: Facts) -> str:
    """The first check that stops a program, in a sentence; empty if it starts.

    program: "megatron", "torchtitan" or another, of which nothing is known.

    >>> what_stops("megatron", Job(nodes=2, tp=4), {"heads": 30})
    'heads 30 is not a multiple of tp 4'
    >>> what_stops("megatron", Job(nodes=2, tp=4), {"heads": 32})
    ''
    >>> what_stops("torchtitan", Job(nodes=3, tp=12), {"seq": 2048})
    'sequence 2048 is not a multiple of tp 12'
    """
    try:
        return next((error.what for error in CHECKS[program](job, model)), "")
    except LayoutError as error:
        return error.what


def _of_megatron(job: Job, model: Facts) -> Iterator[LayoutError]:
    layers = model.get("layers")
    if layers:
        is_layout_text = is_layout(layers)
        stages = parse_layout(layers) if is_layout_text else []
        inside = [layer for stage in stages for layer in stage]
        count = inside.count("decoder") if is_layout_text else layers
        layers_of_stages(count, _dealing(job.pp, model))
        if is_layout_text and inside.count("mtp") != (model.get("mtp") or 0):
            facts = {"count": inside.count("mtp"), "mtp": model.get("mtp") or 0}
            yield refusal("layout-has-other-mtp", "layers", **facts)
    yield from _refused_sizes(job, model)
    yield from _refused_batch(job, model)
    yield from _refused_together(job, model)


def _refused_sizes(job: Job, model: Facts) -> Iterator[LayoutError]:
    """Widths that the sizes of a job do not divide."""
    sizes = {"tp": job.tp, "etp": job.etp or job.tp, "ep": job.ep}
    for name, axis in CUT:
        if model.get(name) and model[name] % sizes[axis]:
            yield not_a_multiple(name, model[name], {axis: sizes[axis]}, maximum=MAX_SIZE)
    heads = model.get("kv_heads")
    if heads and heads % job.tp and job.tp % heads:
        yield not_a_multiple("kv_heads", heads, {"tp": job.tp}, maximum=MAX_SIZE)
    sequence = model.get("seq")
    if type(sequence) is int:
        if job.cp > 1 and sequence % (2 * job.cp):
            yield not_a_multiple("sequence", sequence, {"2 x cp": 2 * job.cp}, maximum=MAX_SIZE)
        if model.get("sequence_parallel") and sequence % (job.cp * job.tp):
            by = {"cp": job.cp, "tp": job.tp}
            yield not_a_multiple("sequence", sequence, by, maximum=MAX_SIZE)


def _refused_batch(job: Job, model: Facts) -> Iterator[LayoutError]:
    """A batch that is no whole number of micro-batches, or too few for the chunks of a rank."""
    batch, each = model.get("global_batch"), model.get("micro_batch") or 1
    if not batch:
        return
    dp = replicas(job)
    count, left = divmod(batch, each * dp)
    if left:
        by = {"micro_batch": each, "dp": dp}
        yield not_a_multiple("global_batch", batch, by, maximum=MAX_SIZE)
    chunks = _dealing(job.pp, model).vpp
    if chunks > 1 and not left:
        group = model.get("group_size")
        ScheduleSpec("interleaved", job.pp, count, chunks, group).require(drawn=False)


def _refused_together(job: Job, model: Facts) -> Iterator[LayoutError]:
    """Options that exclude each other."""
    if job.ep > 1 and "hidden" in model and not model.get("experts"):
        yield refused("ep-without-experts", "ep", ep=job.ep)
    if model.get("experts") and job.tp > 1 and model.get("sequence_parallel") is False:
        yield refused("experts-need-sequence-parallel", "sequence_parallel", tp=job.tp)
    etp = job.tp if job.etp is None else job.etp
    if (
        {"hidden", "experts"} <= model.keys()
        and etp > 1
        and model.get("linear_biases") is not False
    ):
        yield refusal("biases-of-experts", "etp", etp=etp)
    if model.get("mtp") and "hidden" in model and model.get("positions") not in ("rope", "none"):
        yield refusal("mtp-without-rope", "mtp")


def _of_torchtitan(job: Job, model: Facts) -> Iterator[LayoutError]:
    """Tokens that tp and cp do not divide: of pytorch/torchtitan b5bcd76 torchtitan/trainer.py."""
    sequence, by = (
        model.get("seq"),
        {"tp": job.tp, **({"2 x cp": 2 * job.cp} if job.cp > 1 else {})},
    )
    if type(sequence) is int and sequence % math.prod(by.values()):
        yield not_a_multiple("sequence", sequence, by, maximum=MAX_SIZE)


def _of_server(job: Job, model: Facts) -> Iterator[LayoutError]:
    """Checks of vllm-project/vllm 00193b8 vllm/config/parallel.py and model.py."""
    dp = replicas(job)
    yield from _of_heads(job, model)
    if job.cp > 1 and dp > 1:
        yield refusal("prefill-with-replicas", "cp", cp=job.cp, dp=dp)


def _of_heads(job: Job, model: Facts) -> Iterator[LayoutError]:
    heads = model.get("heads")
    if heads and heads % job.tp:
        yield not_a_multiple("heads", heads, {"tp": job.tp}, maximum=MAX_SIZE)


def _of_sglang(job: Job, model: Facts) -> Iterator[LayoutError]:
    """Heads that attention's part of tp does not divide."""
    attention = job.tp // (job.cp * (job.dp or 1))
    yield from _of_heads(replace(job, tp=attention), model)


CHECKS = {
    **{"megatron": _of_megatron, "torchtitan": _of_torchtitan},
    **{"vllm": _of_server, "sglang": _of_sglang},
}
"""The checks of a program, by its target or by the first framework that it makes."""
