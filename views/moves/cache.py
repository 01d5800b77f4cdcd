"""The KV cache of one request on its way from the layout that prefills to the one that decodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from markupsafe import Markup

from descriptions import MOVES, counted, joined
from render.palette import TONES
from render.scenes.kv import KVPart, KVPicture, KVSlice
from request.context import Context
from request.model import model_of
from request.state import State
from request.units import bytes_text, seconds_text
from training.models import MODELS
from training.moves import Handover, KVMove, hand_over
from training.moves.handover import CacheSide, handover_seconds
from training.serving.server import CACHES

from ..base.html import saying, table
from .sides import cluster_used
from .transfer import LayoutTransfer, other_side

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
    published = MODELS.get(chosen.preset)
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
        window=published.window if published else 0,
        full_every=published.full_every if published else 0,
    )


def _length(state: State) -> int:
    length = state.value("served_length")
    return int(length) if length else 0


# -- in words ------------------------------------------------------------------------------------


def cache_answer(transfer: KVTransfer) -> str:
    """One sentence: the bytes of one request that cross the network, and the seconds that takes."""
    say, found = saying(MOVES, transfer.language), transfer.found
    moves, each = found.of_copy(transfer.rank), found.gpus_per_node
    sizes = {"far": 0, "near": 0, "own": 0}
    for move in moves:
        sizes[where_of(move, each)] += move.bytes
    tokens, total = f"{found.tokens:,}", bytes_text(found.cache)
    lines = [say("kv_request", tokens=tokens, total=total)]
    seconds = handover_seconds(moves, each, cluster_used(transfer.source))
    if not seconds:
        return joined([*lines, say("kv_stays")], transfer.language)
    parts = [say(f"kv_{name}", size=bytes_text(size)) for name, size in sizes.items() if size]
    lines.append(say("kv_answer", parts=say("comma").join(parts), seconds=seconds_text(seconds)))
    return joined(lines, transfer.language)


def where_of(move: KVMove, gpus_per_node: int) -> str:
    if move.source == move.target:
        return "own"
    is_near = move.source // gpus_per_node == move.target // gpus_per_node
    return "near" if is_near else "far"


def cache_needs(transfer: KVTransfer) -> str:
    """One sentence: what the selected GPU holds of the request, and how many GPUs send it."""
    say, received = saying(MOVES, transfer.language), transfer.received
    (first, after), (head, last) = own_of(transfer)
    return say(
        "kv_needs",
        rank=transfer.rank,
        layers=_run(first, after),
        heads=_run(head, last),
        total=bytes_text(sum(received.values())),
        senders=counted(len(received.keys() - {transfer.rank}), "gpu", transfer.language),
    )


def _run(first: int, after: int) -> str:
    return str(first) if after == first + 1 else f"{first}–{after - 1}"


def cache_table(transfer: KVTransfer) -> Markup:
    """A table of what the selected GPU receives, one row per sender."""
    say = saying(MOVES, transfer.language)
    rows = [
        (
            f"{move.source:,}",
            _run(move.first_layer, move.after_layer),
            _run(move.first_head, move.after_head),
            bytes_text(move.bytes),
        )
        for move in transfer.own
    ]
    heads = [say(name) for name in ("kv_from", "kv_layers", "kv_heads", "kv_bytes")]
    return table(heads, rows, "moves-kv")


def kv_hover_texts(transfer: KVTransfer, ranks: Sequence[set[int]]) -> list[dict[str, str]]:
    """For each side, a text for each of its drawn ranks: what it sends, or what it receives."""
    say = saying(MOVES, transfer.language)

    def ends(moves: list[KVMove], word: str, rank: int) -> str:
        if not moves:
            return say(f"{word}_nothing", rank=rank)
        parts = (
            say(
                f"{word}_slice",
                other=move.target if word == "kv_sends" else move.source,
                layers=_run(*move[2:4]),
                heads=_run(*move[4:6]),
                size=bytes_text(move.bytes),
            )
            for move in moves[:4]
        )
        more = "…" if len(moves) > 4 else ""
        return say(word, rank=rank) + say("listing").join(parts) + more

    own = transfer.found.of_copy(transfer.rank)
    sent = {rank: [move for move in own if move.source == rank] for rank in ranks[0]}
    return [
        {str(rank): ends(moves, "kv_sends", rank) for rank, moves in sent.items()},
        {
            str(rank): ends(transfer.found.received(rank), "kv_receives", rank)
            for rank in sorted(ranks[1])
        },
    ]


# -- the picture ---------------------------------------------------------------------------------


def own_of(transfer: KVTransfer) -> tuple[tuple[int, int], tuple[int, int]]:
    """The layers and the KV heads that the selected GPU holds in the end, each as (first, after
    last)."""
    found, (stage, part) = transfer.found, transfer.found.target.place_of(transfer.rank)
    each = found.layers // found.target.shards.pp
    return (stage * each, (stage + 1) * each), found.target.shards.heads(part, found.heads)


def cache_picture(transfer: KVTransfer) -> KVPicture:
    """The cache as a grid of layers by heads; what the selected GPU receives in its senders'
    colours."""
    found, say = transfer.found, saying(MOVES, transfer.language)
    senders = [rank for rank, _ in transfer.received.most_common() if rank != transfer.rank]
    slices = tuple(
        KVSlice(
            move[2:4],
            move[4:6],
            f"GPU {move.source}",
            TONES[senders.index(move.source) % len(TONES)] if move.source in senders else "",
            move.source == transfer.rank,
        )
        for move in transfer.own
    )
    sides = found.source, found.target
    return KVPicture(
        found.layers,
        found.heads,
        (_stages(sides[0], found.layers), _stages(sides[1], found.layers)),
        (_parts(sides[0], found.heads), _parts(sides[1], found.heads)),
        slices,
        own_of(transfer),
        (say("kv_layers"), say("kv_heads")),
    )


def _stages(side: CacheSide, layers: int) -> tuple[KVPart, ...]:
    each = layers // side.shards.pp
    return tuple(
        KVPart(stage * each, (stage + 1) * each, f"pp {stage}") for stage in range(side.shards.pp)
    )


def _parts(side: CacheSide, heads: int) -> tuple[KVPart, ...]:
    """Runs of KV heads, each named by the tp ranks that hold it."""
    held = [(side.shards.heads(part, heads), part) for part in range(side.shards.tp)]
    runs = []
    for (first, after), same in groupby(held, lambda item: item[0]):
        parts = [part for _, part in same]
        runs.append(KVPart(first, after, f"tp {_run(parts[0], parts[-1] + 1)}"))
    return tuple(runs)
