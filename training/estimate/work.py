"""What one step asks of a GPU and of its links: operations, bytes and messages, by cause.

No constant of a machine is in here: `training.estimate.seconds` turns work into time. For one
layer and one micro-batch of T tokens on a rank:

    products    2 m n k operations forward and twice that backward; m: tokens, of an expert those
                that reach it; the narrower of n and k: width. Cut by tp, experts by etp. Of frozen
                weights (LoRA) once backward: there is no gradient of them; adapters as others
    attention   queries times keys and the result times values: 2 T s (q + o) / t, of which a
                causal kernel (flash) computes half; backward 2.5 times the forward with flash
                (five products for two, arXiv:2307.08691 section 3.1), else twice
    bytes       what is kept for the backward (training.memory.activations): each tensor is
                written once and read again, several times in all

The output layer is on the last stage, with a head for each MTP module; the embedding only copies.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from math import gcd, log2
from operator import add
from typing import NamedTuple

import numpy as np

from groups.kept import kept

from ..adapters import adapter_widths, layer_adapted
from ..kinds import MLP, Experts, LayerKind, Mixer, StateMixer
from ..machine import Links
from ..memory.host import Number
from ..memory.per_stage import layer_bytes
from ..model import Model
from ..parameters import layer_parameters, on_one_rank
from ..recipe import Training
from ..routing import copies
from ..sharding.held import element_bytes
from ..sharding.sent import exchanges
from ..split import Dealing, Split, held_by_ranks, padded_vocabulary
from .request import Request


class Products(NamedTuple):
    """Matrix products: operations, and the sums of operations / rows and operations / width."""

    operations: float = 0.0
    over_rows: float = 0.0
    over_width: float = 0.0

    def plus(self, rows: float, n: float, k: float, times: float = 1.0) -> Products:
        """These products and another one, of ``rows`` x k and k x n."""
        if rows <= 0 or n <= 0 or k <= 0:
            return self
        more = 2.0 * rows * n * k * times
        return Products(
            self.operations + more,
            self.over_rows + more / rows,
            self.over_width + more / min(n, k),
        )


class Messages(NamedTuple):
    """Bytes that a rank sends inside and out of its NVLink domain, collectives, and hops."""

    inside: Number = 0.0
    outside: Number = 0.0
    number: float = 0.0
    hops_inside: float = 0.0
    hops_outside: float = 0.0

    def times(self, factor: float) -> Messages:
        return Messages(*(value * factor for value in self))

    def plus(self, other: Messages) -> Messages:
        if other is NONE:
            return self
        return Messages(*map(add, self, other))


NONE = Messages()


class LayerWork(NamedTuple):
    """The work of one layer for one micro-batch on one rank; of the forward pass unless noted."""

    products: Products
    experts: Products
    attention: float  # operations, in 16 bits
    kept: float  # bytes of activations kept for the backward
    lifted: Products  # MLA's projections up, of products
    mlp: Products  # the MLP or the shared experts, of products
    core: float  # bytes of attention's scores, where no kernel fuses them
    tp: Messages
    cp: Messages
    ep: Messages
    block: Messages  # of tp: the messages of one of a layer's two blocks
    dropped: Callable[[str], float]  # the part of kept that is recomputed
    unaligned: float = 0.0  # of attention: products whose rows are no multiple of ALIGNED
    adapters: Products = Products()  # beside frozen weights


class Ends(NamedTuple):
    """Work of a micro-batch outside the layers: output layer, logits, sends between stages."""

    head: Products
    logits: float
    send: Messages


class Replicas(NamedTuple):
    """Data parallel messages of a step, between ranks with the same parameters, and what they hold.

    Attributes:
        gathered: for ZeRO-3, one gathering of the weights of a rank's layers.
        states: parameters whose state a rank updates.
    """

    gradients: Messages
    parameters: Messages
    gathered: Messages
    states: Number
    held: Number


class Work(NamedTuple):
    """The work of a step: of layers and ends for one micro-batch, of replicas for the whole step.

    Attributes:
        layers: layers that a micro-batch runs on each pipeline rank, of each of the model's kinds.
        kinds: one layer of each kind.
    """

    layers: tuple[tuple[float, ...], ...]
    kinds: tuple[LayerWork, ...]
    ends: Ends
    replicas: Replicas


@kept
def _held(model: Model, split: Split, kind: LayerKind) -> tuple[float, float]:
    """Parameters of a layer on one rank: those of experts, and all others."""
    parameters = dict(on_one_rank(layer_parameters(model, kind), split))
    experts = parameters.pop("experts", 0)
    return experts, sum(parameters.values())


def _near(n: int, stride: int, domain: int) -> int:
    """The number of a group's ranks in one domain, for the group that domains divide worst.

    >>> _near(8, 1, 8), _near(16, 1, 8), _near(6, 1, 8)  # of 6, ranks 6 to 11 stand as 2 and 4
    (8, 8, 2)
    """
    return max(1, gcd(n * stride, domain) // stride)


def collective(n: int, stride: int, links: Links, size: Number, shares: float) -> Messages:
    """``shares`` times (n-1)/n of a buffer round n ranks that stand ``stride`` apart.

    Bytes count as many times as their links are slower than the machine's fastest: those of a mesh
    with few members, and those between pods.

    >>> from training.clusters import CLUSTERS
    >>> sent = collective(16, 1, Links(CLUSTERS["dgx-h100"], 8), 16e9, 1)
    >>> sent.outside / 1e9  # each of 8 cards carries an eighth
    1.875
    >>> mesh = Links(CLUSTERS["mi300x"], 8)
    >>> [collective(n, 1, mesh, 1e9, 1).inside / 1e9 for n in (2, 8)]  # half, at a seventh of it
    [3.5, 0.875]
    """
    if n == 1 or not (size.any() if isinstance(size, np.ndarray) else size):
        return NONE
    near = _near(n, stride, links.domain)
    sent = shares * (n - 1) / n * size
    inside, outside = sent if near > 1 else 0.0, sent / near if near < n else 0.0
    if near > 1 and (slower := links.slower(near, stride)) > 1.0:
        inside = inside * slower
    if links.pod and (within := _near(n, stride, links.pod)) < n:
        outside = outside * max(1.0, links.machine.spine * near / within)
    return Messages(inside, outside, shares, shares * log2(near), shares * log2(n / near))


def exchange(n: int, stride: int, links: Links, size: float) -> Messages:
    """The messages of an all-to-all: (n-1)/n of the buffer, an equal part to every other rank."""
    if n == 1 or not size:
        return NONE
    near = _near(n, stride, links.domain)
    inside, outside = size * (near - 1) / n, size * (n - near) / n
    if near > 1 and (slower := links.slower(near, stride, pairwise=True)) > 1.0:
        inside *= slower
    if links.pod and (within := _near(n, stride, links.pod)) < n:
        outside = max(outside, links.machine.spine * size * (n - within) / n)
    return Messages(inside, outside, 1.0, log2(near), log2(n / near))


def work_of(request: Request) -> Work:
    """The work of a step of a request."""
    layers = layers_of(request.model, request.split.dealing)
    most = most_parameters(*rank_parameters(request, np.array(layers)))
    return Work(
        layers=layers,
        kinds=tuple(layer_work(request, kind) for kind in request.model.kinds),
        ends=ends_of(request),
        replicas=replicas_of(request, *map(float, most)),
    )


@kept
def layers_of(model: Model, dealing: Dealing) -> tuple[tuple[float, ...], ...]:
    """The layers that a micro-batch runs on each pipeline rank, of each of the model's kinds; MTP
    modules are layers like the last one."""
    # In DualPipe a micro-batch runs on one of a rank's two stages.
    both = 0.5 if dealing.placement == "both ways" else 1.0
    layers = []
    for held in held_by_ranks(model, dealing):
        numbers = [both * number for number in held.kinds]
        numbers[model.numbers[-1]] += both * held.mtp
        layers.append(tuple(numbers))
    return tuple(layers)


def ends_of(request: Request) -> Ends:
    """Output layer and sends of a micro-batch."""
    model, t = request.model, request.split.tp
    vocabulary = padded_vocabulary(model.vocabulary, t) / t
    heads = 1 + model.mtp_layers
    head = Products().plus(request.tokens, vocabulary, model.hidden, heads)
    return Ends(head, 4.0 * request.tokens * vocabulary * heads, _sends(request))


def layer_work(request: Request, kind: LayerKind) -> LayerWork:
    """One layer of a request, of one of its model's kinds."""
    model, split, training = request.model, request.split, request.training
    t, tokens = split.tp, request.tokens
    products, lifted = Products(), Products()
    for mixer in kind.mixers:
        for n, k, lifts in mixer.products(model.hidden, t):
            products = products.plus(tokens, n, k)
            lifted = lifted.plus(tokens, n, k) if lifts else lifted
    mlp, experts = Products(), Products()
    for part in kind.feed_forwards:
        mlp = _mlp(mlp, part, model.hidden, tokens, part.dense_width / t)
    products = Products(*map(add, products, mlp))
    if kind.moe is not None:
        moe = kind.moe
        products = products.plus(tokens / t, moe.experts + moe.zero, model.hidden)
        local = moe.experts / split.ep
        rows = tokens / t * moe.top_k * split.etp / local
        width = moe.latent or model.hidden
        experts = _mlp(experts, moe, width, rows, moe.width / split.etp, local)
    attention = tokens / t * sum(_mixed(request, mixer) for mixer in kind.mixers)
    how = _plain(training.micro_batch, training.sequence_parallel, training.kernels)
    kept = _kept(model, split, how, kind, "selective")
    unaligned = tokens / t * sum(_unaligned(request, mixer) for mixer in kind.mixers)
    heads = sum(mixer.heads for mixer in kind.mixers if not isinstance(mixer, StateMixer))
    core = 0.0 if training.flash else 5.0 * tokens * heads * model.sequence / t
    messages = (
        *(_tensor(request, kind), _context(request, kind)),
        _expert(request, kind.moe) if kind.moe else NONE,
    )

    def dropped(recompute: str) -> float:
        return kept - _kept(model, split, how, kind, recompute)

    return LayerWork(
        *(products, experts, attention, kept, lifted, mlp, core),
        *messages,
        block=_blocks(request, 1.0),
        dropped=dropped,
        adapters=_adapters(request, kind),
        unaligned=unaligned,
    )


def _adapters(request: Request, kind: LayerKind) -> Products:
    """The products of a layer's adapters: inputs to the rank, the rank to outputs."""
    products, training = Products(), request.training
    if not training.is_adapted:
        return products
    split, moe = request.split, kind.moe
    for out, columns, number, is_expert in adapter_widths(request.model, split, training, kind):
        rows, times = request.tokens, 1.0
        if is_expert and moe is not None:
            times = moe.experts / split.ep
            rows = request.tokens / split.tp * moe.top_k * split.etp / times
        inner = number * training.lora_rank
        products = products.plus(rows, inner, columns, times).plus(rows, out, inner, times)
    return products


def _mixed(request: Request, mixer: Mixer) -> float:
    """Operations of one token beside products with weights. A causal kernel skips what lies ahead,
    and what is outside of a window or a chunk."""
    sequence = float(request.model.sequence)
    context = mixer.mean_seen(sequence) if request.training.flash else sequence
    return mixer.context_operations() * context + mixer.constant_operations()


ALIGNED = 8
"""16-bit numbers of a row, 16 bytes, that tensor cores load at once: rows of another length go
through slower kernels (docs.nvidia.com/deeplearning/performance, matrix multiplication)."""


def _unaligned(request: Request, mixer: Mixer) -> float:
    """Operations of one token in attention's products of heads of such a width; where one kernel
    does all of attention, it fills them up."""
    if request.training.flash or isinstance(mixer, StateMixer) or mixer.head_dim % ALIGNED == 0:
        return 0.0
    return _mixed(request, mixer)


def _mlp(
    products: Products,
    part: MLP | Experts,
    hidden: int,
    rows: float,
    ffn: float,
    times: float = 1.0,
) -> Products:
    into = products.plus(rows, (2 if part.gated else 1) * ffn, hidden, times)
    return into.plus(rows, hidden, ffn, times)


@kept
def _kept(model: Model, split: Split, how: Training, kind: LayerKind, recompute: str) -> float:
    """Bytes of activations that one layer keeps for a micro-batch."""
    return layer_bytes(model, split, how, kind, recompute)


@lru_cache(maxsize=64)
def _plain(micro_batch: int, parallel: bool, kernels: str) -> Training:
    return Training(micro_batch=micro_batch, sequence_parallel=parallel, kernels=kernels)


def _tensor(request: Request, kind: LayerKind) -> Messages:
    """Two blocks of a layer, each an all-gather and a reduce-scatter, or an all-reduce, forward.

    The backward pass sends as much; its additional all-gather hides behind other products.
    """
    model, split = request.model, request.split
    messages = _blocks(request, float(kind.blocks))
    if kind.moe is not None and split.etp > 1:
        routed = 2.0 * request.tokens * model.hidden / split.tp * kind.moe.top_k * split.etp
        more = collective(split.etp, request.stride("etp"), request.links, routed, 2.0)
        messages = messages.plus(more)
    return messages


def _blocks(request: Request, number: float) -> Messages:
    """The messages of ``number`` blocks, forward."""
    whole, tp = 2.0 * request.tokens * request.model.hidden, request.split.tp
    return collective(tp, request.stride("tp"), request.links, whole, 2.0 * number)


def _context(request: Request, kind: LayerKind) -> Messages:
    split = request.split
    queries, keys_values = kind.exchanged(split.tp)
    if not keys_values:
        return NONE
    if request.cp_algorithm == "a2a":  # queries, keys and values in, the output back
        widths = keys_values + queries
        size = 2.0 * request.tokens * widths / split.tp
        return exchange(split.cp, request.stride("cp"), request.links, size)
    size = 2.0 * request.tokens * keys_values / split.tp * split.cp
    return collective(split.cp, request.stride("cp"), request.links, size, 1.0)


def _expert(request: Request, moe: Experts) -> Messages:
    """Tokens to their experts and back: two all-to-alls, or as many copies as domains need."""
    model, split, training = request.model, request.split, request.training
    each = 2.0 * request.tokens * model.hidden / split.tp
    both_ways = 1.0 + training.dispatched
    messages = exchange(split.ep, request.stride("ep"), request.links, each * moe.top_k)
    if training.sends_once and messages is not NONE:
        near = _near(split.ep, request.stride("ep"), request.domain)
        inside, outside = copies(model, split.ep, near)
        slower = request.links.slower(near, request.stride("ep"), pairwise=True)
        if request.links.pod and near < split.ep:  # as much slower as all copies would be
            plain = each * moe.top_k * (split.ep - near) / split.ep
            outside *= messages.outside / plain
        messages = messages._replace(inside=each * inside * slower, outside=each * outside)
    sent = messages._replace(
        inside=messages.inside * both_ways / 2.0, outside=messages.outside * both_ways / 2.0
    )
    return sent.times(2.0)


def _sends(request: Request) -> Messages:
    """Activations to the next stage and gradients back, of one micro-batch through one chunk."""
    model, split = request.model, request.split
    if split.pp == 1:
        return NONE
    cut = split.tp if request.training.sequence_parallel else 1
    size = 2.0 * 2.0 * request.tokens * model.hidden / cut
    machine, links = request.machine, request.links
    if request.stride("pp") >= request.domain:
        across = links.pod and request.stride("pp") >= links.pod
        return Messages(
            outside=size * (machine.spine if across else 1.0), number=2.0, hops_outside=2.0
        )
    slower = machine.nvlink / machine.one_pair if machine.nvlink else 1.0
    return Messages(inside=size * slower, number=2.0, hops_inside=2.0)


def rank_parameters(request: Request, layers: np.ndarray) -> tuple[np.ndarray, ...]:
    """Parameters of each pipeline rank, dense and of experts, and bytes of those that are frozen if
    there are any; layers: the last two axes are stages and the model's kinds of layers."""
    model, split, training = request.model, request.split, request.training
    table = padded_vocabulary(model.vocabulary, split.tp) / split.tp * model.hidden
    stages = 2 if split.placement == "both ways" else 1
    ends = np.zeros(split.pp)
    ends[0] += table
    ends[-1] += table * (split.pp > 1 or not model.tied)
    if training.is_adapted:
        how = (training.lora_rank, training.targets, training.frozen)
        of_kinds = [layer_adapted(model, split, *how, kind) for kind in model.kinds]
        each = np.array([(*kind.trained, *kind.frozen) for kind in of_kinds])
        found = np.moveaxis(stages * (layers @ each), -1, 0)
        found[2] += 2.0 * ends
        return tuple(found)
    held = np.array([_held(model, split, kind) for kind in model.kinds])
    experts, dense = np.moveaxis(stages * (layers @ held), -1, 0)
    return dense + ends, experts


def most_parameters(*held: np.ndarray) -> tuple[np.ndarray, ...]:
    """All kinds of parameters of the rank with most in total; ranks are the last axis."""
    first, second = held[2:] or held
    at = (first + second).argmax(axis=-1)
    rows = np.arange(at.size).reshape(at.shape)
    return tuple(each.reshape(-1, each.shape[-1])[rows, at] for each in held)


def replicas_of(request: Request, dense: Number, experts: Number, *frozen: Number) -> Replicas:
    """Gradients in 32 bits (ZeRO-3 and DeepSpeed: 16) and weights in 16, of a rank's parameters;
    other programs than Megatron as training.sharding.sent has them. frozen: bytes of the weights
    that are not trained, which are sent where ranks cut weights."""
    split, training = request.split, request.training
    ranks, edp = training.ranks_sharing(split)

    def both(bytes_each: float, shares: float) -> Messages:
        of_dense = collective(
            ranks, request.stride("cp", "dp"), request.links, dense * bytes_each, shares
        )
        if not request.model.experts:
            return of_dense
        two = collective(edp, request.stride("edp"), request.links, experts * bytes_each, shares)
        return of_dense.plus(two)

    def weights(shares: float) -> Messages:
        """Frozen weights, gathered."""
        ways = ((ranks, ("cp", "dp"), frozen[0]), (edp, ("edp",), frozen[1]))
        sent = (
            collective(n, request.stride(*axes), request.links, size, shares)
            for n, axes, size in ways
        )
        first, second = sent
        return first.plus(second)

    def between(bytes_each: float) -> Messages:
        """All-reduces over replicas, of what is left on a rank of each copy."""
        stride = request.stride("cp", "dp") * ranks
        size = bytes_each * (dense / ranks + experts / edp)
        return collective(training.instances, stride, request.links, size, 2.0)

    is_megatron = training.engine == "megatron"
    rows = exchanges(training, split, float(np.max(dense + experts) + np.max(sum(frozen)) / 2.0))
    gradients, parameters, gathered = NONE, NONE, NONE
    again = 1.0 if any(row.what == "parameters_again" for row in rows) else 0.5
    for row in rows:
        if row.what == "replicas":
            gradients = gradients.plus(between(row.element if row.is_part else row.element * ranks))
        elif row.what == "gradients":
            element = (2.0 if training.zero == 3 else 4.0) if is_megatron else row.element
            gradients = both(element, 2.0 if row.operation == "all_reduce" else 1.0)
        elif row.what == "parameters" and row.beside == "forward":
            gathered = both(2.0, again)
            if frozen:
                gathered = gathered.plus(weights(again))
        elif row.what == "parameters_again" and parameters is not NONE:
            gathered = both(2.0, 0.5)  # in backward alone
        elif row.what == "parameters":
            parameters = both(2.0, 1.0)
            if frozen and element_bytes(training)["weights"][1]:
                parameters = parameters.plus(weights(1.0))
    is_cut = training.zero or training.engine == "fsdp2"
    return Replicas(
        gradients=gradients,
        parameters=parameters,
        gathered=gathered,
        states=dense / ranks + experts / edp if is_cut else dense + experts,
        held=dense + experts,
    )
