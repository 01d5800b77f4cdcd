"""Texts for the GPU under the pointer: a sender's slices, or the bytes that it sends and
receives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from descriptions import MOVES, counted
from request.answers.moves.transfer import WeightTransfer, weight_transfer
from request.context import Context
from request.units import bytes_text
from request.words import saying
from training.moves import TensorMove

from .tensor import Slab, cuts_of, kind_of, spans_of

MOST_KINDS = 12
"""The largest number of tensor kinds named for one sender."""

MOST_SPANS = 4
"""The largest number of slices named for one tensor."""


def transfer_hover_texts(
    transfer: WeightTransfer, ranks: Sequence[set[int]]
) -> list[dict[str, str]]:
    """For each side, a text for each of its drawn ranks: what it sends, or what it receives."""
    return [
        {str(rank): of(transfer, rank) for rank in sorted(own)}
        for of, own in zip((sender_text, receiver_text), ranks)
    ]


def sender_text(transfer: WeightTransfer, sender: int) -> str:
    """What a GPU of the source sends: its slices if it sends to the selected GPU, else its
    bytes."""
    say, slices = saying(MOVES, transfer.language), slices_of(transfer, sender)
    if not slices:
        near, far = (int(transfer.moves.sent(far=far)[sender]) for far in (False, True))
        if not (near or far):
            return say("sends_nothing", sender=sender)
        facts = {"near": bytes_text(near), "far": bytes_text(far)}
        return say("sends_others", sender=sender, rank=transfer.rank, **facts)
    size = bytes_text(sum(size for _, sizes in slices for size in sizes))
    word = "slices_own" if sender == transfer.rank else "slices"
    count = counted(len(slices), "tensor", transfer.language)
    layers = _layers(transfer, [row for row, _ in slices])
    head = say(word, sender=sender, rank=transfer.rank, size=size, count=count, layers=layers)
    return head + say("listing").join(_kinds(transfer, slices, sender))


def slices_of(transfer: WeightTransfer, sender: int) -> list[tuple[TensorMove, list[int]]]:
    """The tensors that the selected GPU receives slices of from one sender, each with their
    bytes."""
    return transfer.source.once(_by_sender).get(sender, [])


def _by_sender(context: Context) -> dict[int, list[tuple[TensorMove, list[int]]]]:
    found: dict[int, list[tuple[TensorMove, list[int]]]] = {}
    for row in context.once(weight_transfer).rows:
        sizes: dict[int, list[int]] = {}
        for part, size in zip(row.parts, row.sizes):
            sizes.setdefault(part[0], []).append(size)
        for sender, own in sizes.items():
            found.setdefault(sender, []).append((row, own))
    return found


def _layers(transfer: WeightTransfer, rows: Iterable[TensorMove]) -> str:
    """The range of layers of some tensors; "" if none belongs to a layer."""
    say = saying(MOVES, transfer.language)
    places = {row.tensor.partition(".mlp.")[0] for row in rows}
    numbers = [re.search(r"\.layers\.(\d+)", place) for place in places]
    layers = [int(number[1]) for number in numbers if number]
    if not layers:
        return ""
    first, last = min(layers), max(layers)
    return say("of_layers" if last > first else "of_layer", first=first, last=last)


def _kinds(
    transfer: WeightTransfer, slices: list[tuple[TensorMove, list[int]]], sender: int
) -> list[str]:
    """For the first tensor of each kind, which rows or columns are sent."""
    kinds: dict[str, str] = {}
    for row, _ in slices:
        kind = kind_of(row.tensor)
        if kind not in kinds and len(kinds) < MOST_KINDS:
            kinds[kind] = f"{kind} {_ends(transfer, row, sender)}".strip()
    return [*kinds.values()]


def _ends(transfer: WeightTransfer, row: TensorMove, sender: int) -> str:
    say, cuts = saying(MOVES, transfer.language), cuts_of(transfer, row)
    if row.axis is None:
        return say("all_of_it")
    own = [span for span in spans_of(row, cuts) if span.sender == sender]
    runs = [_run(span, cuts.length) for span in own[:MOST_SPANS]]
    more = "…" if len(own) > MOST_SPANS else ""
    return say("rows_short" if cuts.axis == 0 else "columns_short", runs=", ".join(runs) + more)


def _run(span: Slab, length: int) -> str:
    first = span.block * length + span.start
    return f"{first:,}–{first + span.end - span.start - 1:,}"


def receiver_text(transfer: WeightTransfer, receiver: int) -> str:
    """The bytes that a GPU of the target receives."""
    say, moves = saying(MOVES, transfer.language), transfer.moves
    near, far = (int(moves.received(far=far)[receiver]) for far in (False, True))
    if not (near or far):
        return say("receives_nothing", rank=receiver)
    return say("receives", rank=receiver, near=bytes_text(near), far=bytes_text(far))
