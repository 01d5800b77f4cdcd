"""Activations that a rank keeps between forward and backward, in bytes, for one micro-batch.

For each token a layer keeps (arXiv:2205.05198, section 4.1; 16-bit numbers, dropout masks of one
byte; q, k, v, o: width of queries, keys, values and attention's output; f: ffn):

    part        every tp rank, or 1/tp with SP      always 1/tp
    norms       4h
    attention   2h input, h mask                    2q + 2k + 2v + 2o
    core                                            5as softmax: its output, mask, and masked
    mlp         2h input, h mask                    2f + 2f, gated 4f + 2f

Partial recomputation is what DeepSeek-V3 did (arXiv:2412.19437 sections 3.2.3 and 3.3.2): norms,
what MLA projects up, and the activation function are computed again. Then both 2h inputs are gone,
of MLA 2q + 2k + 2v, and 2f of every MLP and expert; and the core, as with selective. Where products
have 8 bits, what the activation function reads is kept in 8 bits too, as there.

Products of 8 and 4 bits keep their inputs in 8 (Transformer Engine saves what the gradient of the
weights reads): one byte in place of two for the inputs of both blocks, what the activation function
writes, and an expert's 2h; attention's output is kept in both.

With MHA and f = 4h that is the paper's sbh(10 + 24/t + 5as/(ht)), and sbh(34/t + 5as/(ht)) with
sequence parallelism (SP). Masks are those of dropout, which models of today train without: then
both h and 3as of the core are gone. FlashAttention keeps no core whatever is recomputed, selective
recomputation none either; full recomputation keeps 2h, the input of the layer.

Not in the paper, by the same count: MLA keeps its compressed queries and keys; each of the top_k
copies of a token keeps 2h and the inside of its expert, even routing assumed; the router's few
numbers are left out. Context parallelism leaves s/cp of the tokens to a rank.
"""

from __future__ import annotations

from ..model import Model
from ..split import Split, padded_vocabulary

RECOMPUTE = ("none", "selective", "partial", "full")
"""What is computed again in the backward pass: nothing, the core of attention, also what is cheap
(norms, MLA's projections up, activation functions), whole layers."""

PRODUCTS = ("bf16", "fp16", "fp8", "mxfp8", "nvfp4")
"""Number formats of the layers' matrix products; all else stays in 16 bits."""

WIDE = ("bf16", "fp16")

PARTS = ("norms", "attention", "core", "mlp", "experts", "input")
"""What of a layer is kept; ``input`` alone with full recomputation."""


def layer_activations(
    model: Model,
    split: Split,
    *,
    moe: bool = False,
    micro_batch: int = 1,
    recompute: str = "none",
    sequence_parallel: bool = False,
    flash: bool = True,
    dropout: bool = False,
    products: str = "bf16",
) -> dict[str, float]:
    """Bytes of one layer for one micro-batch on one rank, by part.

    The layer of GPT-3 on 8 tensor parallel ranks, with SP, dropout and selective recomputation,
    34sbh/t:

    >>> from training.models import MODELS
    >>> found = layer_activations(MODELS["gpt3-175b"].model, Split(tp=8), recompute="selective",
    ...                           sequence_parallel=True, dropout=True)
    >>> sum(found.values()) == 34 * 2048 * 12288 / 8
    True
    """
    h, t = model.hidden, split.tp
    tokens = micro_batch * model.sequence / split.cp
    whole = _whole(split, sequence_parallel)
    if recompute == "full":
        return {"input": tokens * 2 * h * whole}
    is_partial = recompute == "partial"
    element = 2 if products in WIDE else 1
    again = 0 if is_partial else element  # bytes of what partial recomputation drops
    kept = again + dropout  # of a block's input, and its mask
    wide = 2 * model.attention_width + (0 if products in WIDE else model.attention_width)
    if not (is_partial and model.is_mla):
        wide += 2 * (model.query_width + model.key_width + model.value_width)
    reads = 1 if is_partial and element == 1 else 2  # bytes of what the activation function reads
    inside = _inside_bytes(model, _mlp_width(model, moe), reads, again)
    found = {
        "norms": tokens * 4 * h * whole,
        "attention": tokens * ((kept * h + _latent_bytes(model)) * whole + wide / t),
        "core": 0.0,
        "mlp": tokens * (kept * h * whole + inside / t),
    }
    if recompute == "none" and not flash:
        found["core"] = tokens * (5 if dropout else 2) * model.heads * model.sequence / t
    if moe:
        copy = element * h * split.etp + _inside_bytes(model, model.expert_ffn, reads, again)
        found["experts"] = tokens * whole * model.top_k * copy
    return {part: number for part, number in found.items() if number}


def embedding_activations(
    model: Model, split: Split, *, micro_batch: int, sequence_parallel: bool, dropout: bool = True
) -> float:
    """Bytes of the embedding for one micro-batch: the mask of its dropout.

    Source: arXiv:2205.05198 section 4.3, sbh/t for each micro-batch in flight.
    """
    if not dropout:
        return 0.0
    whole = _whole(split, sequence_parallel)
    return micro_batch * model.sequence / split.cp * model.hidden * whole


def output_activations(
    model: Model, split: Split, *, micro_batch: int, sequence_parallel: bool
) -> float:
    """Bytes of the output stage for one micro-batch: inputs of norm and output, 32-bit logits.

    Source: arXiv:2205.05198 section 4.3, 4sbh/t * (1 + V/h). MTP modules have logits each.
    """
    tokens = micro_batch * model.sequence / split.cp
    logits = 4 * padded_vocabulary(model.vocabulary, split.tp) / split.tp
    one = 4 * model.hidden * _whole(split, sequence_parallel) + logits
    return tokens * one * (1 + model.mtp_layers)


def _whole(split: Split, sequence_parallel: bool) -> float:
    """The share of a rank in what tensor parallelism alone does not cut."""
    return 1 / split.tp if sequence_parallel else 1.0


def _latent_bytes(model: Model) -> int:
    """MLA's compressed queries, and compressed keys and values, of one token."""
    if not model.is_mla:
        return 0
    return 2 * (model.q_lora_rank + model.kv_lora_rank + model.qk_rope_head_dim)


def _mlp_width(model: Model, moe: bool) -> int:
    return model.shared_expert_ffn if moe else model.ffn


def _inside_bytes(model: Model, ffn: int, read: int, written: int) -> int:
    """What the activation function reads and writes, in so many bytes each."""
    return (2 if model.gated else 1) * read * ffn + written * ffn
