"""What a layout of servers serves, and how much of it fits: one value for the page, files, the
endpoint and the command line."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from formats.values import Document
from groups import LayoutError
from groups.inputs import number_in
from groups.layout import Layout
from groups.mesh import whole_number
from groups.stages.layers import MAX_LAYERS
from training.model import Model
from training.models import MODELS
from training.serving.placed import HeldByRanks, cut_of, engine_of, has_a2a, placed
from training.serving.server import GIB, ServerMemory, Serving, seen_memory, server_memory
from training.serving.weights import FORMATS

from .context import Context
from .errors import refusal
from .model import ChosenModel, model_of
from .state import State, is_empty
from .trained import cluster_of

if TYPE_CHECKING:
    from formats.logs.engine import EngineLog, EngineRank

FIELDS = {
    "weights": "served_weights",
    "cache": "served_cache",
    "share": "served_share",
    "length": "served_length",
    "max_model_len": "served_length",
    "requests": "served_requests",
    "batched": "served_batched",
    "a2a": "served_a2a",
    "partition": "served_partition",
}
"""The field of the state for each argument of the maths."""

NEAR = 0.005 * GIB
"""Bytes by which a printed number of GiB may be rounded."""


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model on servers: its format and cache, and the memory of each rank."""

    chosen: ChosenModel
    serving: Serving
    memory: ServerMemory
    layout: Layout
    gpus: int
    """GPUs of one server."""
    servers: int

    @property
    def model(self) -> Model:
        return self.chosen.model

    @property
    def tokens(self) -> int:
        """Tokens that the caches of all servers have room for, each by itself."""
        return self.memory.cache.tokens * self.held.answering * self.servers

    @property
    def requests(self) -> float:
        """Requests of the longest length that they hold at once."""
        return self.memory.cache.requests * self.held.answering * self.servers

    @cached_property
    def held(self) -> HeldByRanks:
        """The memory of each rank, which numbers about a whole server do not need."""
        return placed(self.layout, self.model, self.memory.cut)


def served_of(context: Context) -> ServedModel:
    """The served model of a context.

    Errors: LayoutError about the invalid field.
    """
    try:
        return context.once(_served)
    except LayoutError as error:
        raise error.renamed(FIELDS) from None


def _served(context: Context) -> ServedModel:
    layout, state = context.layout, context.state
    chosen = model_of(state)
    published = MODELS.get(chosen.preset)
    serving = Serving(
        engine_of(layout.framework),
        state.value("served_weights") or (published.weights if published else _weights(chosen)),
        state.value("served_cache"),
        share=state.values["served_share"] or 0,
        length=state.values["served_length"] or _logged_length(state) or chosen.model.sequence,
        requests=state.values["served_requests"] or 0,
        batched=state.values["served_batched"] or 0,
        a2a=state.served_a2a if has_a2a(layout) else "",
        partition=_partition(state.served_partition),
    )
    cut = cut_of(layout, chosen.model)
    cluster = cluster_of(state)
    capacity = state.values["capacity"] or 0
    if isinstance(capacity, str) or not 0 <= capacity <= 2**20:
        raise refusal("not-a-capacity", "capacity", value=repr(state.capacity))
    total = seen_memory(cluster, capacity * GIB)
    gpus = gpus_of_one(layout)
    memory = server_memory(
        chosen.model,
        cut,
        serving,
        total,
        ranks=gpus,
        attention_dp=layout.mesh.size("dp"),
        cp=layout.mesh.size("cp"),
        is_a100="a100" in cluster,
    )
    return ServedModel(chosen, serving, memory, layout, gpus, layout.world_size // gpus)


def _logged_length(state: State) -> int:
    """The longest request that a server printed; 0 where no log says it."""
    if is_empty(state.engine_log):
        return 0
    from formats.logs.engine import read_engine  # a large room that few questions enter

    try:
        log = read_engine(state.engine_log)
    except LayoutError:  # is said below the numbers
        return 0
    return log.length if log else 0


def _partition(text: str) -> tuple[int, ...]:
    """The layers of each stage. Errors: LayoutError for what is no list of numbers."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    return tuple(
        whole_number(number_in(word), "served_partition", maximum=MAX_LAYERS) for word in words
    )


def _weights(chosen: ChosenModel) -> str:
    """The format of a config.json's weights, where it is one that is known."""
    return chosen.weights if chosen.weights in FORMATS else "bf16"


def gpus_of_one(layout: Layout) -> int:
    """GPUs of one server; a layout may hold several, as a dp of Megatron's inference does."""
    mesh = layout.mesh
    return layout.world_size // (mesh.size("server") if "server" in mesh.names else 1)


# -- a log of the engine ---------------------------------------------------------------------------


@dataclass(frozen=True)
class LogRow:
    """A number of a log beside the calculated one; agrees: None if neither is exact."""

    what: str
    printed: float
    reckoned: float
    agrees: bool | None = None


@dataclass(frozen=True)
class LogCheck:
    """A log beside a layout: the rank with the least cache, and the rows of the comparison."""

    log: EngineLog
    deciding: EngineRank | None
    rows: tuple[LogRow, ...]


def log_check(context: Context) -> LogCheck | None:
    """A pasted log beside the calculated numbers; None without a log of a server.

    Tokens agree where the printed bytes of the rank that decides have just so many, to the token
    that two digits of a GiB allow.

    Errors: LayoutError about the invalid field.
    """
    from formats.logs.engine import read_engine  # a large room that few questions enter

    log = read_engine(context.state.engine_log)
    if log is None:
        return None
    served = served_of(context)
    memory, rank, rows = served.memory, log.deciding, []
    if log.tokens and rank:
        low, exact, high = (
            _tokens(memory, rank.cache + off, log.length) for off in (-NEAR, 0.0, NEAR)
        )
        slack = log.tokens_of_block or memory.serving.tokens_of_block
        agrees = low - slack <= log.tokens <= high + slack
        rows.append(LogRow("tokens_in", log.tokens, exact, agrees))
    if log.requests and log.length and log.tokens:
        requests = log.tokens / log.length
        rows.append(LogRow("requests", log.requests, requests, abs(requests - log.requests) < 0.01))
    stage = memory.deciding
    if rank:
        parts = (
            ("weights", rank.weights, stage.weights),
            *((name, getattr(rank, name), stage.parts[name]) for name in
              ("activations", "outside", "graphs")),
            ("cache", rank.cache, stage.available),
            ("total", rank.total, memory.total),
        )  # fmt: skip
        rows += [LogRow(name, printed, reckoned) for name, printed, reckoned in parts if printed]
    if log.share:
        rows.append(LogRow("share", log.share, memory.share, log.share == memory.share))
    return LogCheck(log, rank, tuple(rows))


def _tokens(memory: ServerMemory, available: float, length: int) -> int:
    """Tokens that fit in these bytes of the rank with the least cache; 0 if not one request
    fits."""
    for request_tokens in (length, memory.serving.tokens_of_block):
        try:
            return memory.cache_in(max(0.0, available), request_tokens).tokens
        except LayoutError:
            continue
    return 0


# -- for programs ----------------------------------------------------------------------------------


def server_facts(context: Context) -> Document:
    """The memory of each rank of a server and the tokens and requests that fit, as JSON values.

    Errors: LayoutError for what the model or the GPUs do not allow.
    """
    if not context.layout.is_server:
        raise refusal("not-a-server", "framework", {"framework": "vllm"})
    served = served_of(context)
    memory, serving, cache = served.memory, served.serving, served.memory.cache
    check = log_check(context)
    return {
        "model": served.chosen.preset,
        "changed": list(served.chosen.changed),
        "engine": serving.engine,
        "weights_format": serving.weights,
        "cache_format": serving.cache,
        "share": memory.share,
        "capacity_bytes": memory.total,
        "servers": served.servers,
        "gpus_per_server": served.gpus,
        "max_model_len": serving.length,
        "kv_heads_per_rank": memory.heads,
        "kv_copies": memory.copies,
        "tokens": cache.tokens,
        "requests": cache.requests,
        "blocks": cache.blocks,
        "block_tokens": serving.tokens_of_block,
        "token_bytes": memory.deciding.token,
        "deciding_stage": cache.stage,
        "printed": printed_line(served),
        "stages": [
            {
                "stage": stage.stage,
                "layers": len(stage.layers),
                "experts_per_rank": stage.experts,
                "bytes": stage.parts,
                "weights_bytes": stage.weights,
                "available_bytes": stage.available,
                "cache_bytes": memory.used(stage),
                "free_bytes": stage.free,
            }
            for stage in memory.stages
        ],
        **({} if check is None else {"log": log_facts(check)}),
    }


def log_facts(check: LogCheck) -> Document:
    return {
        "engine": check.log.engine,
        "deciding_rank": check.deciding.name if check.deciding else "",
        "rows": [vars(row) for row in check.rows],
    }


def printed_line(served: ServedModel) -> str:
    """The line that the engine prints about this cache; empty if it prints none."""
    memory, serving = served.memory, served.serving
    if serving.engine == "megatron":
        return ""
    cache, tokens = memory.cache, memory.cache.tokens
    if serving.engine == "sglang":
        gib = f"{memory.deciding.token * tokens / GIB / 2:.2f}"
        if served.model.is_mla:
            return f"KV Cache is allocated. #tokens: {tokens}, KV size: {2 * float(gib):.2f} GB"
        return f"KV Cache is allocated. #tokens: {tokens}, K size: {gib} GB, V size: {gib} GB"
    if serving.engine == "tensorrt-llm":
        gib = f"{memory.deciding.token * tokens / GIB:.2f}"
        return f"[MemUsageChange] Allocated {gib} GiB for max tokens in paged KV cache ({tokens})."
    return (
        f"GPU KV cache size: {tokens:,} tokens, Maximum concurrency for {serving.length:,} tokens "
        f"per request: {cache.requests:.2f}x"
    )
