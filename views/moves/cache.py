"""The KV cache of one request on its way from the layout that prefills to the one that decodes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from descriptions import MOVES, counted, joined
from render.palette import shade_of
from render.scenes.kv import KVPart, KVPicture, KVSlice
from request.answers.moves.cache import KVTransfer, where_of
from request.answers.moves.sides import cluster_used
from request.units import bytes_text, seconds_text
from request.words import saying
from training.moves import KVMove
from training.moves.handover import CacheSide, handover_seconds

from ..base.html import table

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
    """The cache as a grid of layers by heads; what the selected GPU receives in shades by the bytes
    of its senders."""
    found, say = transfer.found, saying(MOVES, transfer.language)
    most = max(transfer.received.values(), default=1)
    slices = tuple(
        KVSlice(
            move[2:4],
            move[4:6],
            f"GPU {move.source}",
            shade_of(transfer.received[move.source] / most),
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
