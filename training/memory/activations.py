"""Activations that a rank keeps between forward and backward, in bytes, for one micro-batch.

For each token a layer keeps (arXiv:2205.05198, section 4.1; 16-bit numbers, dropout masks of one
byte; q, k, v, o: width of queries, keys, values and attention's output; f: ffn):

    part        every tp rank, or 1/tp with SP      always 1/tp
    norms       4h
    attention   2h input, h mask                    2q + 2k + 2v + 2o
    core                                            5as softmax: its output, mask, and masked
    mlp         2h input, h mask                    2f + 2f, gated 4f + 2f

A module that is computed again (training.recompute) keeps its input only: of the norms both 2h
inputs of the products that read them are gone, of MLA's projections up 2q + 2k + 2v, of an
activation function what it writes (2f, an expert's too), of an MLP all that is inside. Modules that
Megatron checkpoints as a whole keep their input in 16 bits; the activation functions that
DeepSeek-V3 computed again (arXiv:2412.19437 section 3.3.2) keep what they read as products do.

Products of 8 and 4 bits keep their inputs in 8 (Transformer Engine saves what the gradient of the
weights reads): one byte in place of two for the inputs of both blocks, what the activation function
writes, and an expert's 2h; attention's output is kept in both.

With MHA and f = 4h that is the paper's sbh(10 + 24/t + 5as/(ht)), and sbh(34/t + 5as/(ht)) with
sequence parallelism (SP). Masks are those of dropout, which models of today train without: then
both h and 3as of the core are gone. FlashAttention keeps no core whatever is recomputed, selective
recomputation none either; full recomputation keeps 2h, the input of the layer.

A layer with fewer norms (Mamba's has one) or more of them (Gemma's has four) keeps 2h for each;
behind a single norm, attention and MLP in parallel have one input.

A mixer with a state keeps what its fused kernels keep (training.kinds.states).

Not in the paper, by the same count: MLA keeps its compressed queries and keys; each of the top_k
copies of a token keeps 2h and the inside of its expert, even routing assumed; the router's few
numbers are left out. Context parallelism leaves s/cp of the tokens to a rank. With weights of 32
bits every number has 32, but for masks and what products keep in 8 (NVIDIA/Megatron-LM d98e8a6,
megatron/training/training.py: a model is a Float16Module with fp16 or bf16 alone).
"""

from __future__ import annotations

from ..kinds import MLP, Attention, Experts, LayerKind, Mixer, StateMixer
from ..model import Model
from ..recipe import WIDE, Training
from ..recompute import modules_of
from ..split import Split, padded_vocabulary

LOGIT = (4, 12)
"""Bytes of a logit at the loss: with Megatron's fused cross entropy, and with torch's."""

PARTS = ("norms", "attention", "core", "mlp", "experts", "input")
"""The parts of a layer's activations; ``input`` alone with full recomputation."""


def layer_activations(
    model: Model,
    split: Split,
    training: Training,
    kind: LayerKind | None = None,
    *,
    recompute: str = "",
) -> dict[str, float]:
    """Bytes of one layer's activations for one micro-batch on one rank, by part. ``kind`` is one of
    the model's, by default the first; ``recompute`` names the recomputation, by default that of
    ``training``.

    The layer of GPT-3 on 8 tensor parallel ranks, with SP, dropout and selective recomputation,
    34sbh/t:

    >>> from training.memory import Training
    >>> from training.models import MODELS
    >>> parts = layer_activations(MODELS["gpt3-175b"].model, Split(tp=8), Training(dropout=True))
    >>> sum(parts.values()) == 34 * 2048 * 12288 / 8
    True
    """
    tokens, whole = training.tokens(model, split), _whole(split, training)
    recompute = recompute or training.recompute
    if recompute == "full":
        return {"input": tokens * training.element * model.hidden * whole}
    kind = kind or model.kinds[0]
    if recompute == "selective" and goes_by_operators(training, kind):
        return by_operators(model, split, training, kind)
    layer = _Layer(model, split, training, modules_of(recompute), kind)
    parts = {
        "norms": tokens * norms_of(model, kind) * training.element * model.hidden * whole,
        "attention": tokens * layer.attention(whole),
        "core": tokens * layer.core(),
        "mlp": tokens * layer.mlp(whole),
        "experts": tokens * whole * layer.experts(),
    }
    return {part: number for part, number in parts.items() if number}


def norms_of(model: Model, kind: LayerKind) -> int:
    """The norms of a layer; where they have no parameters, one in front of each block.

    >>> from training.models import MODELS
    >>> [norms_of(model, model.kinds[0])
    ...  for model in (MODELS[name].model for name in ("llama3-8b", "gpt3-175b", "mamba-2.8b"))]
    [2, 2, 1]
    """
    vectors = 1 if model.rms_norm else 2
    return kind.norms // vectors or bool(kind.mixers) + bool(kind.feed_forwards)


def computed_again(model: Model, split: Split, training: Training, kind: LayerKind) -> float:
    """Additional bytes of a layer's backward pass while it recomputes: the larger of the layer's
    two halves, which are not in memory at the same time."""
    is_by_operators = goes_by_operators(training, kind) and training.recompute == "selective"
    is_core = training.flash and training.recompute == "selective" and not is_by_operators
    if training.recompute == "none" or is_core:
        return 0.0
    kept = layer_activations(model, split, training, kind)
    all_of_it = layer_activations(model, split, training, kind, recompute="none")
    if training.recompute == "full" or is_by_operators:
        return sum(all_of_it.values()) - sum(kept.values())
    again = {part: size - kept.get(part, 0.0) for part, size in all_of_it.items()}
    halves = (("attention", "core"), ("mlp", "experts"))
    return max(0.0, *(sum(again.get(part, 0.0) for part in half) for half in halves))


def goes_by_operators(training: Training, kind: LayerKind) -> bool:
    """Whether selective recomputation saves what operators return: torchtitan's, of layers of one
    attention and one MLP."""
    return training.units == "torchtitan" and training.flash and _plain(kind) is not None


def _plain(kind: LayerKind) -> tuple[Attention, MLP] | None:
    """The attention and the MLP of a layer of these alone."""
    if len(kind.mixers) + len(kind.feed_forwards) != 2 or not (kind.mixers and kind.feed_forwards):
        return None
    mixer, feed_forward = kind.mixers[0], kind.feed_forwards[0]
    if isinstance(mixer, Attention) and isinstance(feed_forward, MLP):
        return mixer, feed_forward
    return None


def by_operators(
    model: Model, split: Split, training: Training, kind: LayerKind
) -> dict[str, float]:
    """What torchtitan keeps of a layer with selective recomputation: what compute operators return,
    except every second matrix product; the rest is computed again.

    In a layer's order of products (queries, keys, values, projection, gate, up, down) these are
    queries, values, the gate and the last one, and attention's output with a 32-bit number a head.
    With tensor parallelism the last product is saved before its sum is scattered, and both
    scattered sums are saved too.

        2h input, 2h last product, 2q + 2v + 2o + 4a of attention, 2f of the MLP     bytes a token

    >>> from training.models import MODELS
    >>> how = Training(engine="fsdp2", zero=3, units="torchtitan")
    >>> llama = MODELS["llama3-8b"].model
    >>> parts = by_operators(llama, Split(dp=8), how, llama.kinds[0])
    >>> sum(parts.values()) / 8192
    63616.0

    Source: pytorch/torchtitan b5bcd76, parallelize_llama.py, _save_list and its policy ("Saves
    output of all compute ops, except every second mm").
    """
    tokens, t, number = training.tokens(model, split), split.tp, training.element
    parts = _plain(kind)
    assert parts is not None, "goes_by_operators"
    mixer, feed_forward = parts
    attention = number * (mixer.query_width + mixer.value_width + mixer.output_width)
    mlp = number * (feed_forward.width + model.hidden)
    sums = 2 * number * model.hidden if t > 1 else 0
    return {
        "input": tokens * number * model.hidden,
        "attention": tokens * (attention + 4 * mixer.heads) / t,
        "mlp": tokens * (mlp + sums) / t,
    }


class _Layer:
    """Bytes of one layer's activations for one token, by part."""

    def __init__(
        self, model: Model, split: Split, training: Training, again: frozenset[str], kind: LayerKind
    ) -> None:
        self.model, self.split, self.training, self.again = model, split, training, again
        self.mixers, self.parts = kind.mixers, kind.feed_forwards
        self.is_parallel = bool(kind.mixers) and norms_of(model, kind) == 1
        self.moe = kind.has_experts
        self.is_wide = training.products in WIDE
        self.element = training.element if self.is_wide else 1  # bytes of a matrix product's input

    def _is_again(self, norm_is_apart: bool) -> bool:
        """Whether the output of a norm is recomputed."""
        is_apart = norm_is_apart or self.training.is_eager
        return "norms" in self.again or ("layernorm" in self.again and is_apart)

    def _input(self, norm_is_apart: bool, *whole_modules: str) -> float:
        """Bytes kept for a block's input and its dropout mask."""
        kept = 0.0 if self._is_again(norm_is_apart) else self.element
        if not self.again.isdisjoint(whole_modules):
            is_apart = norm_is_apart or self.training.is_eager
            kept = self.training.element if kept and is_apart else 0.0
        return (kept + self.training.dropout) * self.model.hidden

    def attention(self, whole: float) -> float:
        """Bytes of all mixers and of their input."""
        if not self.mixers:
            return 0.0
        own = self._input(any(mixer.is_mla for mixer in self.mixers)) * whole
        return own + sum(self._mixer(mixer, whole) for mixer in self.mixers)

    def _mixer(self, mixer: Mixer, whole: float) -> float:
        number, outputs = self.training.element, mixer.output_width
        wide = number * outputs + (0 if self.is_wide else outputs)
        if isinstance(mixer, StateMixer):
            return (wide + number / 2 * mixer.kept_bytes()) / self.split.tp
        if not (mixer.is_mla and "mla_up_proj" in self.again):
            wide += number * sum(mixer.widths(self.split.tp)[:3])
        return number * mixer.latent * whole + wide / self.split.tp

    def core(self) -> float:
        if self.training.flash or "core_attn" in self.again:
            return 0.0
        number = self.training.element
        heads = sum(mixer.heads for mixer in self.mixers if not isinstance(mixer, StateMixer))
        scores = heads * self.model.sequence / self.split.tp
        return scores * (2 * number + 1 if self.training.dropout else number)

    def mlp(self, whole: float) -> float:
        """Bytes of MLPs and shared experts, and of the feed-forwards' input."""
        if not self.parts:
            return 0.0
        names = ("moe", "shared_experts") if self.moe else ("mlp",)
        inside = 0.0
        if self.again.isdisjoint(names):
            inside = sum(self._inside(part, part.dense_width, "mlp_act") for part in self.parts)
        own = 0.0 if self.is_parallel else self._input(self.moe, *names) * whole
        return own + inside / self.split.tp

    def experts(self) -> float:
        kept = 0.0
        for part in self.parts:
            if isinstance(part, Experts) and "moe" not in self.again:
                inside = self._inside(part, part.width, "moe_act", "mlp_act")
                width = part.latent or self.model.hidden
                kept += part.top_k * (self.element * width * self.split.etp + inside)
        return kept

    def _inside(self, part: MLP | Experts, ffn: int, *functions: str) -> float:
        """Bytes that the activation function reads and writes."""
        reads = self.element if "mlp_act" in self.again else self.training.element
        writes = self.element if self.again.isdisjoint(functions) else 0
        return (2 if part.gated else 1) * reads * ffn + writes * ffn


def embedding_activations(model: Model, split: Split, training: Training) -> float:
    """Bytes of the embedding's activations for one micro-batch: its dropout mask.

    Source: arXiv:2205.05198 section 4.3, sbh/t for each micro-batch in flight.
    """
    mask = training.tokens(model, split) * model.hidden * _whole(split, training)
    return mask if training.dropout else 0.0


def output_activations(model: Model, split: Split, training: Training) -> float:
    """Bytes of the output's activations for one micro-batch: the inputs of its norm and projection,
    and 32-bit logits.

    torch's cross entropy, of programs other than Megatron, has three times as much at its backward:
    log_softmax's output, the gradient that reaches it, and the one that it returns.

    Source: arXiv:2205.05198 section 4.3, 4sbh/t * (1 + V/h). MTP modules have logits each.
    """
    rows = padded_vocabulary(model.vocabulary, split.tp) / split.tp
    logits = LOGIT[training.engine != "megatron"] * rows
    each = 2 * training.element * model.hidden * _whole(split, training) + logits
    return training.tokens(model, split) * each * (1 + model.mtp_layers)


def _whole(split: Split, training: Training) -> float:
    """A rank's share of the activations that tensor parallelism divides only with sequence
    parallelism."""
    return 1 / split.tp if training.sequence_parallel else 1.0
