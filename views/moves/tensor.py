"""One tensor of the selected GPU: how both sides cut it, and who sends each part."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from descriptions import MOVES
from render.scenes.tensor import Piece, TensorPicture
from request.answers.moves.transfer import WeightTransfer
from request.units import bytes_text
from request.words import saying
from training.moves import Moves, TensorMove
from training.moves.tensors import PLACES, Place, Tensor, tensors_of

MOST_PIECES = 8
"""The largest number of pieces drawn for one block."""


def tensor_names(transfer: WeightTransfer) -> list[str]:
    """One tensor of each kind that the selected GPU receives, cut ones first; the first expert
    only."""
    names: dict[str, str] = {}
    for row in sorted(transfer.rows, key=lambda row: row.axis is None):
        names.setdefault(kind_of(row.tensor), row.tensor)
    return [*names.values()]


def kind_of(name: str) -> str:
    """The name of a tensor without its layer and expert numbers.

    >>> kind_of("decoder.layers.3.mlp.experts.linear_fc1.weight5")
    'mlp.experts.linear_fc1.weight'
    """
    return _kind_of_first(name.rstrip("0123456789"))


@lru_cache(maxsize=4096)
def _kind_of_first(name: str) -> str:
    """The kind of a tensor; without the number of the expert, thousands of names are one."""
    parts = (part for part in name.split(".") if not part.isdigit())
    return ".".join(parts).removeprefix("decoder.layers.")


def chosen_row(transfer: WeightTransfer) -> TensorMove | None:
    """The tensor that the page's state selects; else the first MLP input projection, else any."""
    name = transfer.source.state.moves_tensor
    named = next((row for row in transfer.rows if row.tensor == name), None)
    cut = (row for row in transfer.rows if "linear_fc1.weight" in row.tensor)
    return named or next(cut, next(iter(transfer.rows), None))


class Slab(NamedTuple):
    """A contiguous part of one block of a tensor, [start, end), that one rank sends."""

    block: int
    start: int
    end: int
    sender: int
    size: int
    rows: tuple[int, int] | None = None  # along axis 0, where data parallelism cuts that too


class Cuts(NamedTuple):
    """How both sides cut a tensor: its blocks with their length in elements, and the parts of each
    side."""

    tensor: Tensor
    axis: int
    blocks: int
    length: int
    held: int
    source_end: int
    wanted: int
    target_end: int
    begin: int  # of the chosen GPU's run, in what tensor parallelism leaves it
    own: int


def cuts_of(transfer: WeightTransfer, row: TensorMove) -> Cuts:
    source, target = transfer.moves.source, transfer.moves.target
    tensor, at = tensor_named(transfer.moves, row.tensor), transfer.rank - target.first_rank
    parts = source.parts(tensor), target.parts(tensor)
    is_tp = row.axis is not None and row.axis == tensor.axis
    lengths = tuple(
        side.length(tensor) if is_tp else tensor.shape[row.axis or 0] for side in (source, target)
    )
    has_blocks = is_tp and not (transfer.moves.is_fsdp and max(parts) == 1)
    blocks = tensor.blocks if has_blocks else 1
    ends = tuple(length // blocks for length in lengths)
    each = (ends[0] // parts[0], ends[1] // parts[1]) if is_tp else ends
    places = target.etp_at if tensor.expert else target.tp_at
    begin = int(target.run(tensor, target.place(tensor)[[at]])[0][0]) if row.axis == 0 else 0
    own = int(places[at]) if is_tp and parts[1] > 1 else 0
    axis = row.axis or 0
    return Cuts(tensor, axis, blocks, max(ends), each[0], ends[0], each[1], ends[1], begin, own)


def spans_of(row: TensorMove, cuts: Cuts) -> list[Slab]:
    """The parts of a tensor that the selected GPU receives, in its order."""
    if row.axis is None:
        return [Slab(0, 0, cuts.length, row.parts[0][0], row.sizes[0])]
    spans = []
    for number, (part, size) in enumerate(zip(row.parts, row.sizes)):
        sender, _, to, length = part
        block, inside = divmod(to + cuts.begin, cuts.wanted)
        start = cuts.own * cuts.wanted + inside
        rows = None
        if row.bands:
            _, first, count = row.bands[number]
            rows = first, first + count
        spans.append(Slab(block, start, start + length, sender, size, rows))
    return sorted(spans, key=lambda span: (span.rows or (0, 0), span.block, span.start))


def tensor_picture(
    transfer: WeightTransfer, row: TensorMove, shades: dict[int, str]
) -> TensorPicture:
    """A tensor cut as both sides cut it; what the selected GPU receives of it, and from whom."""
    say, cuts = saying(MOVES, transfer.language), cuts_of(transfer, row)
    spans = spans_of(row, cuts)
    pieces: list[Piece] = []
    ends_in_gap = False
    for block in range(cuts.blocks):
        own = [span for span in spans if span.block == block]
        every = own if row.bands else [*_with_others(own, block, cuts)]
        kept = _few([span.sender >= 0 for span in every])
        before = -1
        for place in kept:
            piece = _piece(transfer, every[place], row, cuts, shades)
            pieces.append(replace(piece, after_gap=place > before + 1 or ends_in_gap))
            before, ends_in_gap = place, False
        ends_in_gap = before < len(every) - 1 or bool(row.bands)
    names = (say("gate"), say("up")) if cuts.blocks == 2 else ("",)
    is_across = cuts.axis == 1 and not row.bands and cuts.held + cuts.wanted < 2 * cuts.length
    sides = (say("from_side"), say("to_side"))
    return TensorPicture(tuple(pieces), names, sides, is_across, ends_in_gap)


def _with_others(spans: Sequence[Slab], block: int, cuts: Cuts) -> Iterable[Slab]:
    """The spans and the gaps between them, split where either side cuts; gaps have sender -1."""
    points = {0, cuts.length, cuts.source_end, cuts.target_end}
    points |= {*range(0, cuts.source_end, cuts.held), *range(0, cuts.target_end, cuts.wanted)}
    points |= {end for span in spans for end in (span.start, span.end)}
    edges = sorted(points)
    by_start = {span.start: span for span in spans}
    for start, end in pairwise(edges):
        yield by_start.get(start) or Slab(block, start, end, -1, 0)


def _few(wanted: Sequence[bool]) -> list[int]:
    """Indices of at most MOST_PIECES pieces to draw, in order; wanted ones take precedence."""
    return sorted(sorted(range(len(wanted)), key=lambda at: (not wanted[at], at))[:MOST_PIECES])


def _piece(
    transfer: WeightTransfer, span: Slab, row: TensorMove, cuts: Cuts, shades: dict[int, str]
) -> Piece:
    say, size = saying(MOVES, transfer.language), bytes_text(span.size)
    is_own, is_wanted = span.sender == transfer.rank, span.sender >= 0
    first = span.block * cuts.length + span.start
    last = first + span.end - span.start - 1
    ends = {"first": f"{first:,}", "last": f"{last:,}"}
    label = say("columns" if cuts.axis == 1 else "rows", **ends)
    if span.rows is not None:
        rows = say("rows", first=f"{span.rows[0]:,}", last=f"{span.rows[1] - 1:,}")
        label = f"{rows}{say('comma')}{label}"
    is_padding = span.start >= min(cuts.source_end, cuts.target_end)
    origin, short = say("padding" if is_padding else "not_wanted", rank=transfer.rank), "–"
    if is_own:
        origin, short = say("has", rank=transfer.rank), say("has_short")
    elif is_wanted:
        origin, short = say("sent", sender=span.sender, size=size), f"GPU {span.sender}\n{size}"
    return Piece(
        span.block,
        _part(cuts, span, of_target=False) if row.axis is not None else "",
        _part(cuts, span, of_target=True) if row.axis is not None else "",
        label,
        origin,
        f"{first:,} –\n{last:,}\n{short}",
        "" if is_own else shades.get(span.sender, ""),
        is_own,
        is_wanted,
    )


def _part(cuts: Cuts, span: Slab, *, of_target: bool) -> str:
    """The part of one side that a span lies in, such as "tp 3"; empty if the span is only the other
    side's padding, or if this side does not cut the axis."""
    each, end = (cuts.wanted, cuts.target_end) if of_target else (cuts.held, cuts.source_end)
    if span.start >= end or cuts.tensor.axis != cuts.axis:
        return ""
    return f"{'etp' if cuts.tensor.expert else 'tp'} {span.start // each}"


def tensor_named(moves: Moves, name: str) -> Tensor:
    """The tensor with a full name."""
    layer = re.match(r"decoder\.layers\.(\d+)\.", name)
    places: Iterable[Place] = [int(layer[1])] if layer else PLACES
    bare = name[layer.end() :] if layer else name
    tensors = (tensor for place in places for tensor in tensors_of(moves.model, place))
    known = {bare, bare.rstrip("0123456789")}
    return next(one for one in tensors if one.name in known)
