"""The sizes of a job and of its model that follow from a text's options."""

from __future__ import annotations

import json
import math
from dataclasses import replace

from groups.frameworks import framework_of
from groups.layout import SERVED
from groups.notes import Note
from groups.stages.layout_strings import parse_layout, write_layout

from ...values import Document, Facts
from .. import flags
from .settled import Remarks, Settled, values_of

FIELDS = (
    *("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp", "framework"),
    *("instances", "hpz", "levels", "hybrid", "gtp", "egtp", "gathers", *SERVED, *flags.MODEL),
)
"""Fields of a Job and of MODEL, in the order of the report."""


Sizes = Document


def sizes_of(settled: Settled, engine: str, remarks: Remarks) -> Document:
    """The values of FIELDS: those that are set, and those that follow from others.

    engine: "vllm", "sglang" or another server that the text starts; empty where it starts none.
    """
    values = values_of(settled)
    sizes = {name: values[name] for name in values if name in FIELDS and values[name] != -1}
    sizes |= {name: 1 for name in ("tp", "pp") if sizes.get(name) == 0}  # off elsewhere
    if {"micro_batch", "accumulation", "shard"} <= {*values}:
        batch = values["micro_batch"] * values["accumulation"] * values["shard"]
        sizes.setdefault("global_batch", batch)
    ends = [settled[n] for n in ("embedding", "loss") if values.get(n)]
    if len(ends) == 2:  # counted as a layer each, both or none
        sizes["account"] = True
    elif ends:
        remarks.ignored.append(replace(ends[0].item, code="only-one-accounted", sets=""))
    _set_layers(settled, sizes, len(ends), remarks)
    sizes |= _OF_SERVERS.get(engine, lambda *_: {})(values, sizes, remarks)
    sizes |= _weight_shards(settled, sizes, remarks)
    _set_batches(values, sizes)
    if values.get("extends_ep") and sizes.get("tp", 1) > 1:  # experts are dealt, not cut, over tp
        sizes |= {"ep": sizes.get("ep", 1) * sizes["tp"], "etp": 1}
    return sizes


def set_copies(
    settled: Settled, job: str, sizes: Document, assumed: Facts, remarks: Remarks
) -> None:
    """Sets how many copies there are of what data parallel ranks cut, and the ranks of ZeRO++'s
    second one; remarks on those that the framework does not have.

    A size of a copy's group (MiCS, verl's fsdp_size) leaves the copies to the number of GPUs.
    """
    framework, values = framework_of(job), values_of(settled)
    if "hpz" in sizes and (not framework.has("hpz") or sizes["hpz"] <= 1):
        del sizes["hpz"]
    copies = values.get("replicate", 1)
    if ranks := ranks_of_copy(settled):
        copies = copies_of(job, {**assumed, **sizes}, ranks)
        if not copies:
            name = next(name for name in ("fsdp_size", "mics") if name in settled)
            remarks.problems.append(replace(settled[name].item, code="unread", sets="instances"))
    if framework.has("instances") and not framework.speaks_megatron:
        sizes |= {"instances": copies} if copies > 1 else {}
    elif values.get("replicate", 1) > 1:
        remarks.ignored.append(replace(settled["replicate"].item, code="not-drawn", sets=""))


def ranks_of_copy(settled: Settled) -> int:
    """The data parallel ranks that one copy is cut over, where the text says them; 0: it does
    not."""
    values = values_of(settled)
    return max(0, *(values.get(name, 0) for name in ("mics", "fsdp_size")))


def copies_of(job: str, sizes: Facts, ranks: int) -> int:
    """The copies that a job's GPUs make of groups of so many data parallel ranks; 0: none.

    >>> copies_of("deepspeed-mics", {"nodes": 2}, 4), copies_of("deepspeed-mics", {"tp": 2}, 8)
    (4, 0)
    """
    world = sizes.get("nodes", 1) * sizes.get("gpus_per_node", 8)
    own = framework_of(job).gpus_of_copy({name: sizes.get(name, 1) for name in ("tp", "pp")})
    return 0 if world % (own * ranks) else world // (own * ranks)


def width_of_gated(values: Facts, parts: int) -> Document:
    """The width of a gated MLP where a framework's number counts all of its matrices: rounded up
    to what each is a multiple of.

    >>> width_of_gated({"ffn": 86016, "activation": "swiglu", "ffn_multiple": 256}, 3)
    {'ffn': 28672}

    Source: EleutherAI/gpt-neox ea7aefd megatron/model/transformer.py (ParallelMLP).
    """
    gated = str(values.get("activation", "")).lower() in GATED or values.get("gated")
    if not gated or parts == 1 or "ffn" not in values:
        return {}
    width, each = int(values["ffn"] * 2 / parts) // 2, values.get("ffn_multiple", 1)
    return {"ffn": -(-width // each) * each}


GATED = ("swiglu", "geglu", "reglu", "bilinear", "glu")


def _set_batches(values: Facts, sizes: Document) -> None:
    """Batch sizes from those per device, or in tokens."""
    if "local_batch" in values and sizes.get("pp", 1) == 1:
        sizes.setdefault("micro_batch", values["local_batch"])
    for tokens, name in (("micro_tokens", "micro_batch"), ("step_tokens", "global_batch")):
        if "seq" in values and values.get(tokens, -1) > 0 and not values[tokens] % values["seq"]:
            sizes.setdefault(name, values[tokens] // values["seq"])


def _of_vllm(values: Facts, sizes: Facts, remarks: Remarks) -> Sizes:
    """VLLM's data parallel size is outside of its tp; a node's share of it says the machines."""
    return {**_data_parallel(values, sizes), **_engram(values, remarks)}


WITH_ENGRAM = {"deepseek-v4.1": "node", "deepseek-v41": "node", "qwen4": "none"}
"""What vLLM does with tables of n-gram embeddings that nothing is said of, by what the name of a
model that has them says (0.33.0 vllm/config/engram.py, _NGRAM_LAYER_FIELDS)."""


def _engram(values: Facts, remarks: Remarks) -> Sizes:
    """Where tables of n-gram embeddings lie: vLLM 0.33's --engram-config, and the model's own."""
    config = json.loads(values.get("engram_config", "{}"))
    name = str(values.get("named", "")).lower().replace("_", "-")
    usual = next((place for part, place in WITH_ENGRAM.items() if part in name), "")
    if not usual and "engram_config" not in values:
        return {}
    if not usual:
        usual = "node"
        remarks.missing.append(Note("engram-model", {"model": values.get("named", "?")}))
    if not config.get("embedding_across_dp", False):
        return {} if usual == "none" else {"engram": usual}
    if usual == "none":
        return {"engram": "across-plain"}
    return {"engram": "across" if config.get("cpu_offload", True) else "across-gpu"}


def _data_parallel(values: Facts, sizes: Facts) -> Document:
    if "dp_served" not in values:
        return {}
    found, local = {"dp": values["dp_served"]}, values.get("dp_local", 0)
    if local and found["dp"] % local == 0 and not {"nodes", "gpus_per_node"} & sizes.keys():
        of_copy = math.prod(sizes.get(name, 1) for name in ("tp", "pp", "cp"))
        found |= {"nodes": found["dp"] // local, "gpus_per_node": local * of_copy}
    return found


def _of_sglang(values: Facts, sizes: Facts, remarks: Remarks) -> Sizes:
    """SGLang's sizes of attention and of experts, which are parts of its tp; a dp that is not
    attention's adds servers."""
    dp = values.get("attn_dp") or (values.get("dp_served") if values.get("dp_attention") else None)
    found = {"dp": dp, "cp": values.get("served_cp"), "ep": values.get("served_ep")}
    backend = values.get("served_a2a")
    if backend in SPAN_TP:
        found["ep"] = sizes.get("tp", 1)
        facts = {"backend": backend, "ep": found["ep"]}
        remarks.missing.append(Note("experts-span-tp", facts))
    return {name: size for name, size in found.items() if size is not None}


def _of_trtllm(values: Facts, sizes: Facts, remarks: Remarks) -> Sizes:
    """TensorRT-LLM's attention dp is all of its tp; its ep is what the experts' own tp leaves."""
    tp, etp = sizes.get("tp", 1), sizes.get("etp")
    found = {"dp": tp} if values.get("dp_attention") else {}
    if etp and "ep" not in sizes and tp % etp == 0:
        found["ep"] = tp // etp
    return found


_OF_SERVERS = {"vllm": _of_vllm, "sglang": _of_sglang, "tensorrt-llm": _of_trtllm}

SPAN_TP = (
    *("megamoe", "deepep", "deepep_v2", "mooncake", "nixl", "ascend_fuseep", "flashinfer"),
    *("flashinfer_megamoe", "mori", "pplx"),
)
"""Backends of --moe-a2a-backend for which SGLang sets ep to tp, whatever --ep-size says (sglang
0.5.23 srt/arg_groups/overrides.py, _A2A_EP_SPANNING_BACKENDS)."""


def _weight_shards(settled: Settled, sizes: Facts, remarks: Remarks) -> dict[str, int]:
    """The sizes gtp and egtp: how often the slices of tp, and of etp, are cut again."""
    tp, found = sizes.get("tp", 1), {}
    axes = {"shards": ("gtp", tp), "expert_shards": ("egtp", sizes.get("etp") or tp)}
    for name, (axis, size) in axes.items():
        if name in settled and settled[name].value % size:
            remarks.add_difference(settled[name], "shards-do-not-fit", size)
        elif name in settled:
            found[axis] = settled[name].value // size
    return found


def _set_layers(settled: Settled, sizes: Document, accounted: int, remarks: Remarks) -> None:
    """Layers from their number or a layout; chunks from the layers of one chunk.

    accounted: ends of the model, embedding and loss, that count as a layer each.
    """
    if "layer_list" in settled or "noop_layers" in settled:
        _set_listed_layers(settled, sizes, remarks)
        return
    if "layout" in settled:
        _set_layers_of_layout(settled, sizes, remarks)
        return
    chunk, count = settled.get("chunk"), settled.get("layers")
    if not chunk:
        return
    layers = count.value if count else 0
    vpp, left = divmod(layers + accounted, sizes.get("pp", 1) * chunk.value)
    if count is None:
        remarks.add_difference(chunk, "needs-layers", 0)
    elif left or not vpp:
        remarks.add_difference(chunk, "chunks-do-not-fit", layers)
    elif "vpp" in sizes and sizes["vpp"] != vpp:
        remarks.add_difference(chunk, "chunks-differ", vpp)
    else:
        sizes["vpp"] = vpp


def _set_listed_layers(settled: Settled, sizes: Document, remarks: Remarks) -> None:
    """Layers of each stage from their list, or from equal shares of which some layers do nothing.

    Source: Ascend/MindSpeed-LLM c77308a mindspeed_llm/training/arguments.py (--num-layer-list,
    --noop-layers: the number of layers counts those that do nothing).
    """
    count, pp = settled.get("layers"), sizes.get("pp", 1)
    if listed := settled.get("layer_list"):
        stages = list(listed.value)
        if len(stages) != pp or (count and sum(stages) != count.value):
            remarks.add_difference(listed, "layers-do-not-fit", pp)
            return
    else:
        listed = settled["noop_layers"]
        if not count or count.value % pp:
            return
        each = count.value // pp
        stages = [each] * pp
        for layer in listed.value:
            if layer < count.value:
                stages[layer // each] -= 1
    if sizes.get("vpp", 1) > 1 or min(stages) < 1:
        remarks.ignored.append(replace(listed.item, code="not-drawn", sets=""))
    elif len({*stages}) > 1:
        sizes["layers"] = write_layout(stages, 0)
    else:
        sizes["layers"] = sum(stages)


def _set_layers_of_layout(settled: Settled, sizes: Document, remarks: Remarks) -> None:
    """Layers and chunks that Megatron derives from a layout."""
    layout, count = settled["layout"], settled.get("layers")
    stages = parse_layout(layout.value)
    inside = [layer for stage in stages for layer in stage]
    if count and count.value != inside.count("decoder"):
        remarks.add_difference(count, "layout-has", inside.count("decoder"))
    if inside[-1:] != ["loss"]:
        remarks.add_difference(layout, "layout-cut", len(inside))
        return
    sizes["layers"] = layout.value
    sizes.pop("vpp", None)
    chunks, rest = divmod(len(stages), sizes.get("pp", 1))
    if chunks > 1 and not rest:
        sizes["vpp"] = chunks
