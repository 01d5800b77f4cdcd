"""What one step of a server asks of each of its GPUs, by cause: bytes, operations, messages.

In a step every request that is being answered gets a token, and so that as many requests end as
begin, prompts are read beside them: of B requests with prompts of P and answers of A tokens a step
has B tokens that are answered and B P / A tokens of prompts.

    weights   of a rank, once a step; of E experts those that T tokens meet, E (1 - (1 - k / E)^T),
              T of the requests alone in most steps, and of a part of a prompt in B / A of them
    cache     what the layers keep of each request of the rank: all tokens, a window, the latent, a
              state (which is written too), or what an indexer chooses, with all of its keys
    products  2 operations for each weight of a rank that a token meets
    context   queries times keys and the result times values; MLA answers with the latent itself:
              2 n (2 c + r) operations for each token before, c + r its elements
    messages  an all-reduce behind each block of a layer, of the rank's tokens; between attention's
              data parallel parts all tokens are gathered and their sums scattered

No constant of a machine or an engine is in here: `training.serving.speed` makes time of it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from groups.kept import kept

from ..errors import is_amount, refusal
from ..kinds import MLA, Compressed, LayerKind, Mixer, StateMixer
from ..kinds.tokens import INDEX_BYTES
from ..model import Model
from .kept import kept_bytes
from .server import CACHES, ServerMemory
from .weights import MIXING, Cut, layer_bytes, table_bytes, table_rows

PART = 8192
"""Tokens of a prompt that one step reads, about (chunks of a prefill)."""

MOST_REQUESTS = 1_000_000
"""The most requests at once and the most tokens of one that are asked about."""


@dataclass(frozen=True)
class Load:
    """Requests that a server answers at once, and the tokens of a prompt and of an answer.

    >>> Load(64, prompt=1024, answer=512).tokens
    192.0

    Errors: LayoutError for what is no amount above 0; a prompt may be empty.
    """

    requests: float
    prompt: float
    answer: float

    def __post_init__(self) -> None:
        for name in ("requests", "prompt", "answer"):
            value = getattr(self, name)
            is_short = name != "prompt" and not value
            if not is_amount(value, MOST_REQUESTS * 1024) or is_short:
                raise refusal("not-an-amount", name, value=repr(value))

    @property
    def tokens(self) -> float:
        """Tokens of a step, with those of prompts."""
        return self.requests * (1.0 + self.prompt / self.answer)

    @property
    def context(self) -> float:
        """Tokens before the one that is answered, on average."""
        return self.prompt + self.answer / 2.0


@dataclass(frozen=True)
class StepWork:
    """The work of a step for the rank with most of it.

    Attributes:
        weights: bytes that are read, by kind: attention, mlp, experts, tables.
        cache: bytes of requests that are read and, of states, written.
        products: operations with weights in their format; with the tables, which have 16 bits.
        context: operations of attention with keys and values, in 16 bits.
        reduced: bytes of the tensor that is summed behind each block, and how many such sums.
        exchanged: the same of what parts that answer for themselves gather and scatter.
        layers, moe_layers, blocks: how many of each.
        mixing: kernels' worth of layers with a state or an indexer.
    """

    weights: dict[str, float]
    cache: float
    products: float
    table_products: float
    context: float
    reduced: tuple[float, int]
    exchanged: tuple[float, int]
    layers: int
    moe_layers: int
    requests: float
    tokens: float


def touched(experts: int, top_k: int, tokens: float) -> float:
    """The share of experts that this many tokens meet, each of them ``top_k`` by chance.

    >>> round(touched(256, 8, 1), 4), round(touched(256, 8, 64), 3), touched(8, 2, 1e6)
    (0.0312, 0.869, 1.0)
    """
    return 1.0 - (1.0 - top_k / experts) ** tokens if experts else 0.0


def met(experts: int, top_k: int, load: Load) -> float:
    """The share of experts that a step reads on average: few of them with few requests, but nearly
    all in steps that read a part of a prompt as well.

    >>> few, many = Load(4, 8192, 1024), Load(512, 8192, 1024)
    >>> round(met(128, 4, few), 3), round(met(128, 4, many), 3)
    (0.123, 1.0)
    """
    with_prompt = min(1.0, load.requests / load.answer * max(1.0, load.prompt / PART))
    alone = touched(experts, top_k, load.requests)
    beside = touched(experts, top_k, load.requests + min(load.prompt, PART))
    return (1.0 - with_prompt) * alone + with_prompt * beside


@kept
def step_work(
    model: Model,
    cut: Cut,
    load: Load,
    weights: str = "bf16",
    cache: str = "bf16",
    parts: int = 1,
) -> StepWork:
    """The work of a step of a server. parts: data parallel parts of attention, each of which
    answers its own requests.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> work = step_work(llama, Cut(), Load(16, prompt=1000, answer=200))
    >>> round(sum(work.weights.values()) / 1e9, 2), round(work.cache / 1e9, 2)
    (15.01, 2.31)

    Errors: LayoutError where the cache of a layer is not known.
    """
    own = Load(load.requests / parts, load.prompt, load.answer)
    shared = load if cut.dense > cut.attention else own
    read: dict[str, float] = defaultdict(float)
    held = products = context = 0.0
    reduced = exchanged = 0
    for place, number in Counter(model.numbers).items():
        kind = model.kinds[place]
        sizes = layer_bytes(model, cut, weights, kind)
        moe = kind.moe
        if moe:
            sizes["experts"] *= met(moe.experts, moe.top_k, load)
        for name, size in sizes.items():
            read[name] += number * size
        for mixer in kind.mixers:
            held += number * _read(mixer, own, cache, cut)
            context += number * _context(mixer, own, cut)
        products += number * _products(kind, model.hidden, cut, own, shared, load)
        blocks = kind.blocks + bool(moe and not moe.dense_width)
        spread = cut.dense > cut.attention or (bool(moe) and parts > 1)
        exchanged += number * 2 * spread
        reduced += number * (blocks - spread) * (cut.attention > 1)
    read["tables"] += table_bytes(model, cut)
    rows = table_rows(model, cut)
    bytes_ = 2.0 * model.hidden
    return StepWork(
        weights=dict(read),
        cache=held,
        products=products,
        table_products=2.0 * rows * model.hidden * own.requests,
        context=context,
        reduced=(bytes_ * own.tokens, reduced),
        exchanged=(bytes_ * load.tokens, exchanged),
        layers=model.layers,
        moe_layers=model.moe_layers,
        requests=load.requests,
        tokens=load.tokens,
    )


def _read(mixer: Mixer, load: Load, cache: str, cut: Cut) -> float:
    """Bytes of the requests of a rank that a mixer reads in a step, and of states writes."""
    if isinstance(mixer, Compressed):
        raise refusal("compressed-cache", "model")
    if isinstance(mixer, StateMixer):
        return 2.0 * load.requests * kept_bytes(mixer, 0, "vllm", cut.attention)
    size, indexer = float(CACHES[cache]), mixer.indexer
    seen = mixer.seen(load.context)
    if indexer is None:
        token = mixer.rank_token_bytes(cut.attention, size)
        return load.requests * seen * token / cut.dcp
    latent = size * mixer.token_elements if mixer.is_mla else mixer.rank_token_bytes(cut.attention)
    chosen = min(seen, indexer.top_k or seen)
    keys = 0.0 if indexer.shared else seen * INDEX_BYTES / 2 * size
    return load.requests * (chosen * latent + keys) / cut.dcp


def _context(mixer: Mixer, load: Load, cut: Cut) -> float:
    """Operations of attention beside its weights, of answered tokens and of prompts."""
    if isinstance(mixer, StateMixer):
        return load.tokens * mixer.constant_operations() / cut.attention
    each, indexer = mixer.context_operations(), mixer.indexer
    answered, index = each, 0.0
    seen, mean = mixer.seen(load.context), mixer.mean_seen(load.prompt)
    if isinstance(mixer, MLA):
        answered = 2.0 * mixer.heads * (mixer.token_elements + mixer.kv_lora_rank)
    if indexer:
        index = 0.0 if indexer.shared else 2.0 * indexer.heads * (indexer.dim + 1)
        each = 2.0 * mixer.heads * (mixer.head_dim + mixer.values)
        keys = (seen, mean)
        seen, mean = (min(at, indexer.top_k or at) for at in keys)
        index *= load.requests * keys[0] + (load.tokens - load.requests) * keys[1]
    prompts = (load.tokens - load.requests) * mean * each
    own = (load.requests * seen * answered / cut.dcp + prompts) / cut.attention
    return own + index


def _products(kind: LayerKind, hidden: int, cut: Cut, own: Load, shared: Load, load: Load) -> float:
    """Operations with the weights of a layer on one rank."""
    done = 0.0
    for weight in kind.weights(hidden):
        if not weight.product:
            continue
        if weight.kind == "experts" and weight.number > 1:
            done += load.tokens * weight.operations / (cut.ep * (cut.etp if weight.cut else 1))
            continue
        mixes = weight.kind in MIXING
        ranks, tokens = (cut.attention, own.tokens) if mixes else (cut.dense, shared.tokens)
        done += tokens * weight.operations / weight.share(ranks)
    return done


def requests_within(memory: ServerMemory, load: Load, parts: int = 1) -> float:
    """Requests of this length, prompt and answer, that the caches of a server's parts hold at once,
    as `server_memory` plans them.

    Errors: LayoutError if not one fits, with the longest that does.
    """
    length = max(1, int(load.prompt + load.answer))
    return parts * memory.cache_in(memory.deciding.available, length).requests


def sent_bytes(work: StepWork, attention: int, sharing: int, beyond: int = 1) -> float:
    """Bytes that a GPU sends in a step: sums over those that share attention, twice as a ring does,
    and exchanges of tokens; only of groups with more than `beyond` GPUs."""
    groups = ((2.0, work.reduced, attention), (1.0, work.exchanged, sharing))
    return sum(
        (times * (n - 1) / n * size * count for times, (size, count), n in groups if n > beyond),
        0.0,
    )
