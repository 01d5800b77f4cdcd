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
numbers are left out. Context parallelism leaves s/cp of the tokens to a rank. With weights of 32
bits every number has 32, but for masks and what products keep in 8 (NVIDIA/Megatron-LM d98e8a6,
megatron/training/training.py: a model is a Float16Module with fp16 or bf16 alone).
"""

from __future__ import annotations

from ..model import Model
from ..recipe import WIDE, Training
from ..split import Split, padded_vocabulary

PARTS = ("norms", "attention", "core", "mlp", "experts", "input")
"""What of a layer is kept; ``input`` alone with full recomputation."""


def layer_activations(
    model: Model, split: Split, training: Training, *, moe: bool = False, recompute: str = ""
) -> dict[str, float]:
    """Bytes of one layer for one micro-batch on one rank, by part, recomputed as asked or as
    ``training`` says.

    The layer of GPT-3 on 8 tensor parallel ranks, with SP, dropout and selective recomputation,
    34sbh/t:

    >>> from training.memory import Training
    >>> from training.models import MODELS
    >>> parts = layer_activations(MODELS["gpt3-175b"].model, Split(tp=8), Training(dropout=True))
    >>> sum(parts.values()) == 34 * 2048 * 12288 / 8
    True
    """
    h, t, dropout = model.hidden, split.tp, training.dropout
    tokens, whole = training.tokens(model, split), _whole(split, training)
    recompute = recompute or training.recompute
    if recompute == "full":
        return {"input": tokens * training.element * h * whole}
    is_partial, is_wide = recompute == "partial", training.products in WIDE
    number, element = training.element, training.element if is_wide else 1  # of a product's input
    again = 0 if is_partial else element  # bytes of what partial recomputation drops
    kept = again + dropout  # of a block's input, and its mask
    wide = number * model.attention_width + (0 if is_wide else model.attention_width)
    if not (is_partial and model.is_mla):
        wide += number * (model.query_width + model.key_width + model.value_width)
    latent = model.q_lora_rank + model.kv_lora_rank + model.qk_rope_head_dim  # 0 without MLA
    reads = element if is_partial else number  # bytes of what the activation function reads

    def inside(ffn: int) -> int:
        """What the activation function reads and writes."""
        return (2 if model.gated else 1) * reads * ffn + again * ffn

    parts = {
        "norms": tokens * 2 * number * h * whole,
        "attention": tokens * ((kept * h + number * latent * model.is_mla) * whole + wide / t),
        "core": 0.0,
        "mlp": tokens
        * (kept * h * whole + inside(model.shared_expert_ffn if moe else model.ffn) / t),
    }
    if recompute == "none" and not training.flash:
        scores = tokens * model.heads * model.sequence / t
        parts["core"] = scores * (2 * number + 1 if dropout else number)
    if moe:
        copy = element * h * split.etp + inside(model.expert_ffn)
        parts["experts"] = tokens * whole * model.top_k * copy
    return {part: number for part, number in parts.items() if number}


def embedding_activations(model: Model, split: Split, training: Training) -> float:
    """Bytes of the embedding for one micro-batch: the mask of its dropout.

    Source: arXiv:2205.05198 section 4.3, sbh/t for each micro-batch in flight.
    """
    mask = training.tokens(model, split) * model.hidden * _whole(split, training)
    return mask if training.dropout else 0.0


def output_activations(model: Model, split: Split, training: Training) -> float:
    """Bytes of the output stage for one micro-batch: inputs of norm and output, 32-bit logits.

    Source: arXiv:2205.05198 section 4.3, 4sbh/t * (1 + V/h). MTP modules have logits each.
    """
    logits = 4 * padded_vocabulary(model.vocabulary, split.tp) / split.tp
    each = 2 * training.element * model.hidden * _whole(split, training) + logits
    return training.tokens(model, split) * each * (1 + model.mtp_layers)


def _whole(split: Split, training: Training) -> float:
    """The share of a rank in what tensor parallelism alone does not cut."""
    return 1 / split.tp if training.sequence_parallel else 1.0
