"""The endpoint for one request's KV cache; the command line prints the same facts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from formats.values import Document
from groups.budget import spend
from training.moves import Handover, KVMove, hand_over
from training.moves.handover import handover_seconds
from training.serving.server import CACHES

from ...context import Context
from ...endpoint import LAYOUT, Parameters, layout_of, parameter, require_text, serving
from ...model import model_of
from ...named.text import context_named
from ...state import State
from ...trained_endpoint import CHANGES, changes_of
from .api import side_facts
from .sides import cluster_used
from .transfer import LayoutTransfer, other_side

CACHED = Parameters(
    "(the model)",
    {
        "model": parameter("model", means='a published model, such as "llama3-70b"'),
        "changes": CHANGES,
        "cache": parameter("served_cache", start=""),
        "cluster": parameter("cluster"),
    },
)
"""Parameters of the model whose KV cache moves."""


def _cached_context(arguments: Mapping[str, object]) -> Context:
    layout = layout_of(arguments)
    with CACHED.named():
        fields = {
            **LAYOUT.fields(arguments),
            **CACHED.fields(arguments),
            **changes_of(arguments["changes"]),
        }
    return Context(layout, State(**fields))


@serving(_cached_context, CACHED, LAYOUT)
def moves_cache(
    context: Context,
    to: str = "",
    rule: str = "",
    first_rank: int = 0,
    rank: int = -1,
    tokens: int = 0,
) -> str:
    """Who hands over one request's KV cache when this layout prefills and another decodes, as JSON.

    "moves" are [source, target, first layer, layer after the last, first KV head, head after the
    last, bytes]; each copy of the model that decodes is told as if the request were its own.

    Args:
        to: the layout that decodes, as for /moves.
        rule: by whose code: "vllm" (NIXL), "sglang" or "megatron"; empty: of the engine that decodes.
        first_rank: the first rank of the target; 0: on the GPUs of this layout.
        rank: whose moves to list; -1: all.
        tokens: of the request; 0: the model's sequence.
        (the model)
        (the layout)
    """  # noqa: E501  a tool shows only a parameter's first line
    require_text("to", to)
    with CACHED.named():
        target = context_named(to, context, "to")
        which = None if rank == -1 else rank
        return json.dumps(cache_facts(context, target, rule, first_rank, which, tokens))


def cache_facts(
    source: Context,
    target: Context,
    rule: str = "",
    first_rank: int = 0,
    rank: int | None = None,
    tokens: int = 0,
) -> Document:
    """Who sends which part of one request's KV cache to whom, as a JSON document.

    Errors: LayoutError as of `cache_between`, and for a rank that the target does not have.
    """
    found = cache_between(source, target, rule, first_rank, tokens=tokens)
    found.target.require(rank)
    one = found.of_copy(int(found.target.ranks[0]) if rank is None else rank)
    listed = found.moves if rank is None else found.received(rank)
    spend(len(listed) * 2, "table-cells", control="rank")
    sizes = {"own": 0, "near": 0, "far": 0}
    for move in one:
        sizes[where_of(move, found.gpus_per_node)] += move.bytes
    return {
        "model": model_of(source.state).preset,
        "rule": found.rule,
        "tokens": found.tokens,
        "cache_bytes": found.cache,
        "layers": found.layers,
        "kv_heads": found.heads,
        "source": side_facts(source, int(found.source.ranks.min())),
        "target": side_facts(target, first_rank),
        "copies": found.target.copies,
        "bytes": dict(zip(("same_gpu", "in_node", "between_nodes"), sizes.values())),
        "seconds": handover_seconds(one, found.gpus_per_node, cluster_used(source)),
        "rank": rank,
        "moves": [list(move) for move in listed],
    }


RULE_NAMES = {"megatron": "Megatron", "vllm": "vLLM", "sglang": "SGLang"}
"""The software whose code defines each rule of training.serving.cache.KV_RULES."""


@dataclass(frozen=True, eq=False)
class KVTransfer(LayoutTransfer):
    """One request's KV cache on its way between two layouts."""

    found: Handover

    @property
    def firsts(self) -> tuple[int, int]:
        return int(self.found.source.ranks.min()), int(self.found.target.ranks.min())

    @property
    def own(self) -> list[KVMove]:
        """What the selected GPU receives."""
        return self.found.received(self.rank)

    @property
    def received(self) -> Counter[int]:
        received: Counter[int] = Counter()
        for move in self.own:
            received[move.source] += move.bytes
        return received


def kv_transfer(context: Context) -> KVTransfer:
    """The KV transfer that the page's state selects.

    Errors: LayoutError for a layout that cannot be built, and as of `hand_over`.
    """
    other, state = context.once(other_side), context.state
    found = cache_between(
        context, other.context, state.moves_kv_rule, other.first_rank, other.source_rank
    )
    return KVTransfer(context, other.context, other.chosen_by(context), other.roles, found)


def cache_between(
    source: Context,
    target: Context,
    rule: str = "",
    first_rank: int = 0,
    source_rank: int = 0,
    tokens: int = 0,
) -> Handover:
    """The handover of one request of the source's model: of the longest request served unless
    `tokens` is nonzero, in the page's cache format.

    Errors: LayoutError as of `hand_over`.
    """
    chosen, state = model_of(source.state), source.state
    length = tokens or _length(state)
    return hand_over(
        chosen.model,
        source.layout,
        target.layout,
        first_rank,
        rule,
        source_rank=source_rank,
        tokens=length,
        element_bytes=CACHES[state.value("served_cache")],
    )


def _length(state: State) -> int:
    length = state.value("served_length")
    return int(length) if length else 0


def where_of(move: KVMove, gpus_per_node: int) -> str:
    if move.source == move.target:
        return "own"
    is_near = move.source // gpus_per_node == move.target // gpus_per_node
    return "near" if is_near else "far"
