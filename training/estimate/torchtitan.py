"""What torchtitan keeps of a layer with selective recomputation, which goes operator by operator.

It saves what compute operators return, except every second matrix product, and computes the rest
again. In a layer's order of products (queries, keys, values, projection, gate, up, down) these are
queries, values, the gate and the last one, and attention's output with a 32-bit number a head:

    2h input, 2h last product, 2q + 2v + 2o + 4a of attention, 2f of the MLP     bytes a token

which is less than half of what Megatron keeps with FlashAttention, whose "selective" leaves out the
core of attention alone. With tensor parallelism the last product is saved before its sum is
scattered, and both scattered sums are saved too.

Source: pytorch/torchtitan b5bcd76, parallelize_llama.py, _save_list and its policy ("Saves output
of all compute ops, except every second mm").
"""

from __future__ import annotations

from dataclasses import replace

from ..memory.per_stage import StageMemory, layer_bytes
from .request import Request


def goes_by_operators(request: Request, software: str) -> bool:
    """Whether a request uses recomputation by operators: FSDP software with a dense model."""
    training = request.training
    is_plain = training.flash and not request.model.experts and not request.precision_is_explicit
    return software == "fsdp" and training.recompute == "selective" and is_plain


def kept_of_layer(request: Request) -> float:
    """Bytes of activations that one layer keeps for one micro-batch.

    >>> from training.models import MODELS
    >>> from .request import Arguments, request_of
    >>> model, sizes = MODELS["llama3-8b"].model, {"gpus": 8, "tp": 1, "zero": 3, "sequence": 8192}
    >>> asked = request_of(model, Arguments(**sizes, recompute="selective"))
    >>> round(kept_of_layer(asked) / 8192)  # of 147,456
    63616
    """
    model, t = request.model, request.split.tp
    attention = 2 * (model.query_width + model.value_width + model.attention_width)
    cut = attention + 4 * model.heads + 2 * model.ffn + 2 * model.hidden
    if t > 1:  # both sums, scattered
        cut += 2 * 2 * model.hidden
    return request.tokens * (2 * model.hidden + cut / t)


def parts_by_operators(request: Request, stage: StageMemory) -> dict[str, float]:
    """A stage's memory by training.memory's PARTS, including one layer's backward pass."""
    kept = kept_of_layer(request)
    how = replace(request.training, recompute="none")
    whole = layer_bytes(request.model, request.split, how, request.model.kinds[0])
    return {
        **stage.parts,
        "activations": stage.in_flight * stage.parameters.layers * kept,
        "recomputed": max(0.0, whole - kept),
    }
