"""What one step asks of a GPU and of its links: operations, bytes and messages, by cause.

No constant of a machine is in here: `training.estimate.seconds` turns work into time. For one
layer and one micro-batch of T tokens on a rank:

    products    2 m n k operations forward and twice that backward; m: tokens, of an expert those
                that reach it; the narrower of n and k: width. Cut by tp, experts by etp
    attention   queries times keys and the result times values: 2 T s (q + o) / t, of which a
                causal kernel (flash) computes half; backward 2.5 times the forward with flash
                (five products for two, arXiv:2307.08691 section 3.1), else twice
    bytes       what is kept for the backward (training.activations): each tensor is written once
                and read again, several times in all

The output layer is on the last stage, with a head for each MTP module; the embedding only copies.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import log2

from ..memory.activations import layer_activations
from ..model import Model
from ..parameters import layer_parameters, on_one_rank
from ..split import Held, Split, held_by_ranks, padded_vocabulary
from .request import Request


@dataclass(frozen=True)
class Products:
    """Matrix products: operations, and the same over rows and over width of each of them."""

    operations: float = 0.0
    over_rows: float = 0.0
    over_width: float = 0.0

    def plus(self, rows: float, n: float, k: float, times: float = 1.0) -> Products:
        """With one product more, of ``rows`` x k and k x n."""
        if rows <= 0 or n <= 0 or k <= 0:
            return self
        more = 2.0 * rows * n * k * times
        return Products(
            self.operations + more,
            self.over_rows + more / rows,
            self.over_width + more / min(n, k),
        )


@dataclass(frozen=True)
class Messages:
    """Bytes that a rank sends inside and out of its NVLink domain, collectives, and their hops."""

    inside: float = 0.0
    outside: float = 0.0
    count: float = 0.0
    hops_inside: float = 0.0
    hops_outside: float = 0.0

    def times(self, factor: float) -> Messages:
        return Messages(
            self.inside * factor,
            self.outside * factor,
            self.count * factor,
            self.hops_inside * factor,
            self.hops_outside * factor,
        )


NONE = Messages()


@dataclass(frozen=True)
class LayerWork:
    """One layer and one micro-batch on one rank, forward where nothing else is said."""

    products: Products
    experts: Products
    attention: float  # operations in 16 bits
    kept: float  # bytes of activations kept for the backward
    core: float  # bytes of attention's scores, where no kernel fuses them
    tp: Messages
    cp: Messages
    ep: Messages


@dataclass(frozen=True)
class Work:
    """One step. Of layers and heads for one micro-batch; of dp and the optimizer for the step.

    Attributes:
        layers: layers of each pipeline rank: without experts, with them.
        gathered: of ZeRO-3, the weights of a rank's layers, once.
        states: parameters whose state a rank updates.
    """

    layers: tuple[tuple[float, float], ...]
    dense: LayerWork
    moe: LayerWork | None
    head: Products
    logits: float
    send: Messages
    gradients: Messages
    parameters: Messages
    gathered: Messages
    states: float
    held: float


@lru_cache(maxsize=512)
def _held(model: Model, split: Split) -> tuple[Held, ...]:
    return held_by_ranks(model, split)


@lru_cache(maxsize=256)
def _kinds(model: Model, split: Split, moe: bool) -> tuple[float, float]:
    """Parameters of a layer on one rank: of experts, and all others."""
    own = dict(on_one_rank(layer_parameters(model, moe=moe), split))
    experts = own.pop("experts", 0)
    return experts, sum(own.values())


def collective(n: int, stride: int, domain: int, size: float, shares: float) -> Messages:
    """``shares`` times (n-1)/n of a buffer round n ranks that stand ``stride`` apart.

    >>> collective(16, 1, 8, 16e9, 1).outside / 1e9  # each of 8 cards carries an eighth
    1.875
    """
    if n == 1 or not size:
        return NONE
    near = min(n, max(1, domain // stride))
    sent = shares * (n - 1) / n * size
    return Messages(
        inside=sent if near > 1 else 0.0,
        outside=sent / near if near < n else 0.0,
        count=shares,
        hops_inside=shares * log2(near),
        hops_outside=shares * log2(n / near),
    )


def exchange(n: int, stride: int, domain: int, size: float) -> Messages:
    """One all-to-all: (n-1)/n of the buffer, to each of the others its part."""
    if n == 1 or not size:
        return NONE
    near = min(n, max(1, domain // stride))
    return Messages(
        inside=size * (near - 1) / n,
        outside=size * (n - near) / n,
        count=1.0,
        hops_inside=log2(near),
        hops_outside=log2(n / near),
    )


def work_of(asked: Request) -> Work:
    """The work of a request's step."""
    model, split = asked.model, asked.split
    held = _held(model, split)
    has_moe = any(one.moe_layers for one in held)
    modules = model.mtp_layers
    layers = []
    for one in held:
        moe = one.moe_layers + (modules if one.is_last and model.experts else 0)
        plain = one.layers - one.moe_layers + (modules if one.is_last and not model.experts else 0)
        layers.append((float(plain), float(moe)))
    dense = _layer(asked, moe=False)
    moe_work = _layer(asked, moe=True) if has_moe else None
    t, h = split.tp, model.hidden
    vocabulary = padded_vocabulary(model.vocabulary, t) / t
    heads = 1 + modules
    head = Products().plus(asked.tokens, vocabulary, h, heads)
    replicas = _replicas(asked, _most_parameters(asked, layers, vocabulary))
    zero = asked.training.zero
    return Work(
        layers=tuple(layers),
        dense=dense,
        moe=moe_work,
        head=head,
        logits=4.0 * asked.tokens * vocabulary * heads,
        send=_sends(asked),
        gradients=replicas.gradients,
        parameters=replicas.weights if zero in (1, 2) else NONE,
        gathered=replicas.weights if zero == 3 else NONE,
        states=replicas.states,
        held=replicas.held,
    )


def _layer(asked: Request, *, moe: bool) -> LayerWork:
    model, split, training = asked.model, asked.split, asked.training
    t, tokens = split.tp, asked.tokens
    products = _attention_products(model, t, tokens)
    experts = Products()
    if moe:
        products = _mlp(products, model, tokens, model.shared_expert_ffn / t)
        products = products.plus(tokens / t, model.experts, model.hidden)
        local = model.experts / split.ep
        rows = tokens / t * model.top_k * split.etp / local
        experts = _mlp(experts, model, rows, model.expert_ffn / split.etp, local)
    else:
        products = _mlp(products, model, tokens, model.ffn / t)
    widths = model.query_width + model.attention_width
    attention = 2.0 * tokens * model.sequence * widths / t * (0.5 if asked.flash else 1.0)
    kept = _kept(model, split, training.micro_batch, training.sequence_parallel, moe)
    core = 0.0 if asked.flash else 5.0 * tokens * model.heads * model.sequence / t
    return LayerWork(
        products,
        experts,
        attention,
        kept,
        core,
        tp=_tensor(asked, moe),
        cp=_context(asked),
        ep=_expert(asked) if moe else NONE,
    )


def _attention_products(model: Model, t: int, tokens: float) -> Products:
    h, found = model.hidden, Products()
    if model.is_mla:
        down = model.kv_lora_rank + model.qk_rope_head_dim
        found = found.plus(tokens, down, h)
        keys = model.heads * (model.qk_nope_head_dim + model.v_head_dim) / t
        found = found.plus(tokens, keys, model.kv_lora_rank)
        if model.q_lora_rank:
            found = found.plus(tokens, model.q_lora_rank, h)
            found = found.plus(tokens, model.query_width / t, model.q_lora_rank)
        else:
            found = found.plus(tokens, model.query_width / t, h)
    else:
        into = model.query_width + model.key_width + model.value_width
        found = found.plus(tokens, into / t, h)
    return found.plus(tokens, h, model.attention_width / t)


def _mlp(found: Products, model: Model, rows: float, ffn: float, times: float = 1.0) -> Products:
    if not ffn:
        return found
    into = found.plus(rows, (2 if model.gated else 1) * ffn, model.hidden, times)
    return into.plus(rows, model.hidden, ffn, times)


@lru_cache(maxsize=1024)
def _kept(model: Model, split: Split, micro_batch: int, parallel: bool, moe: bool) -> float:
    return sum(
        layer_activations(
            model,
            split,
            moe=moe,
            micro_batch=micro_batch,
            recompute="selective",
            sequence_parallel=parallel,
        ).values()
    )


def _tensor(asked: Request, moe: bool) -> Messages:
    """Two blocks of a layer, each an all-gather and a reduce-scatter, or an all-reduce, forward.

    Backward is as much again; what is gathered once more there hides behind other products.
    """
    model, split = asked.model, asked.split
    blocks = 1.0 + (not moe or model.shared_expert_ffn > 0)
    whole = 2.0 * asked.tokens * model.hidden
    found = collective(split.tp, 1, asked.domain, whole, 2.0 * blocks)
    if moe and split.etp > 1:
        routed = whole / split.tp * model.top_k * split.etp
        more = collective(split.etp, 1, asked.domain, routed, 2.0)
        found = _sum((found, more))
    return found


def _context(asked: Request) -> Messages:
    model, split = asked.model, asked.split
    size = 2.0 * asked.tokens * (model.key_width + model.value_width) / split.tp * split.cp
    return collective(split.cp, split.tp, asked.domain, size, 1.0)


def _expert(asked: Request) -> Messages:
    """Tokens to their experts and back: two all-to-alls."""
    model, split = asked.model, asked.split
    routed = 2.0 * asked.tokens * model.hidden / split.tp * model.top_k
    return exchange(split.ep, split.etp, asked.domain, routed).times(2.0)


def _sends(asked: Request) -> Messages:
    """Activations to the next stage and gradients back, of one micro-batch through one chunk."""
    model, split = asked.model, asked.split
    if split.pp == 1:
        return NONE
    cut = split.tp if asked.training.sequence_parallel else 1
    size = 2.0 * 2.0 * asked.tokens * model.hidden / cut
    if split.tp * split.cp * split.dp >= asked.domain:
        return Messages(outside=size, count=2.0, hops_outside=2.0)
    return Messages(inside=size, count=2.0, hops_inside=2.0)


def _most_parameters(
    asked: Request, layers: list[tuple[float, float]], vocabulary: float
) -> tuple[float, float]:
    """Parameters of the rank that holds most: dense, and of experts."""
    model, split = asked.model, asked.split
    _, plain = _kinds(model, split, False)
    experts, around = _kinds(model, split, True) if model.experts else (0.0, 0.0)
    table = vocabulary * model.hidden
    found = []
    for stage, (dense, moe) in enumerate(layers):
        ends = table * (
            (stage == 0) + (stage == len(layers) - 1 and not (model.tied and stage == 0))
        )
        found.append((dense * plain + moe * around + ends, moe * experts))
    return max(found, key=sum)


@dataclass(frozen=True)
class _Replicas:
    """What the ranks that hold the same parameters send one another, and hold of each."""

    gradients: Messages
    weights: Messages
    states: float
    held: float


def _replicas(asked: Request, most: tuple[float, float]) -> _Replicas:
    """Gradients in 32 bits (ZeRO-3: 16) and weights in 16, dense and of experts."""
    split, zero = asked.split, asked.training.zero
    dense, experts = most
    ranks, edp = split.dp * split.cp, split.edp
    apart = split.etp * split.ep

    def both(bytes_each: float, shares: float) -> Messages:
        one = collective(ranks, split.tp, asked.domain, dense * bytes_each, shares)
        two = collective(edp, apart, asked.domain, experts * bytes_each, shares)
        return _sum((one, two))

    return _Replicas(
        gradients=both(4.0 if zero < 3 else 2.0, 2.0 if zero == 0 else 1.0),
        weights=both(2.0, 1.0) if zero else NONE,
        states=dense / ranks + experts / edp if zero else dense + experts,
        held=dense + experts,
    )


def _sum(several: Iterable[Messages]) -> Messages:
    found = list(several)
    return Messages(
        sum(one.inside for one in found),
        sum(one.outside for one in found),
        sum(one.count for one in found),
        sum(one.hops_inside for one in found),
        sum(one.hops_outside for one in found),
    )
