"""What is told of a GPU under the pointer: a sender's slices, or what it sends and receives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from descriptions import MOVES, counted
from training.moves import TensorMove

from ..base.context import Context
from ..base.html import saying
from ..base.units import bytes_text
from .asked import Asked, asked_of
from .tensor import Slab, cuts_of, kind_of, spans_of

MOST_KINDS = 12
"""Kinds of tensors that are told of one sender."""

MOST_SPANS = 4
"""Slices of one tensor that are told."""


def told_of(asked: Asked, ranks: Sequence[set[int]]) -> list[dict[str, str]]:
    """By side and rank, what is told of these ranks."""
    return [
        {str(rank): of(asked, rank) for rank in sorted(own)}
        for of, own in zip((sender_text, receiver_text), ranks)
    ]


def sender_text(asked: Asked, sender: int) -> str:
    """What a GPU of the source sends: its slices, where the chosen one is among its receivers."""
    say, slices = saying(MOVES, asked.language), slices_of(asked, sender)
    if not slices:
        near, far = (int(asked.moves.sent(far=far)[sender]) for far in (False, True))
        if not (near or far):
            return say("sends_nothing", sender=sender)
        facts = {"near": bytes_text(near), "far": bytes_text(far)}
        return say("sends_others", sender=sender, rank=asked.rank, **facts)
    size = bytes_text(sum(size for _, sizes in slices for size in sizes))
    word = "slices_own" if sender == asked.rank else "slices"
    count = counted(len(slices), "tensor", asked.language)
    layers = _layers(asked, [row for row, _ in slices])
    head = say(word, sender=sender, rank=asked.rank, size=size, count=count, layers=layers)
    return head + say("listing").join(_kinds(asked, slices, sender))


def slices_of(asked: Asked, sender: int) -> list[tuple[TensorMove, list[int]]]:
    """The tensors of which the chosen GPU has slices of a sender, and the bytes of those."""
    return asked.source.once(_by_sender).get(sender, [])


def _by_sender(context: Context) -> dict[int, list[tuple[TensorMove, list[int]]]]:
    found: dict[int, list[tuple[TensorMove, list[int]]]] = {}
    for row in context.once(asked_of).rows:
        sizes: dict[int, list[int]] = {}
        for part, size in zip(row.parts, row.sizes):
            sizes.setdefault(part[0], []).append(size)
        for sender, own in sizes.items():
            found.setdefault(sender, []).append((row, own))
    return found


def _layers(asked: Asked, rows: Iterable[TensorMove]) -> str:
    """The layers of some tensors; empty where they have none."""
    say = saying(MOVES, asked.language)
    numbers = [re.search(r"\.layers\.(\d+)\.", row.tensor) for row in rows]
    layers = [int(number[1]) for number in numbers if number]
    if not layers:
        return ""
    first, last = min(layers), max(layers)
    return say("of_layers" if last > first else "of_layer", first=first, last=last)


def _kinds(asked: Asked, slices: list[tuple[TensorMove, list[int]]], sender: int) -> list[str]:
    """Of each kind of tensor, by its first layer, which rows or columns."""
    kinds: dict[str, str] = {}
    for row, _ in slices:
        kind = kind_of(row.tensor)
        if kind not in kinds and len(kinds) < MOST_KINDS:
            kinds[kind] = f"{kind} {_ends(asked, row, sender)}".strip()
    return [*kinds.values()]


def _ends(asked: Asked, row: TensorMove, sender: int) -> str:
    say, cuts = saying(MOVES, asked.language), cuts_of(asked, row)
    if row.axis is None:
        return say("all_of_it")
    own = [span for span in spans_of(row, cuts) if span.sender == sender]
    runs = [_run(span, cuts.length) for span in own[:MOST_SPANS]]
    more = "…" if len(own) > MOST_SPANS else ""
    return say("rows_short" if cuts.axis == 0 else "columns_short", runs=", ".join(runs) + more)


def _run(span: Slab, length: int) -> str:
    first = span.block * length + span.start
    return f"{first:,}–{first + span.end - span.start - 1:,}"


def receiver_text(asked: Asked, receiver: int) -> str:
    """What a GPU of the target receives in all."""
    say, moves = saying(MOVES, asked.language), asked.moves
    near, far = (int(moves.received(far=far)[receiver]) for far in (False, True))
    if not (near or far):
        return say("receives_nothing", rank=receiver)
    return say("receives", rank=receiver, near=bytes_text(near), far=bytes_text(far))
