"""The matrix of bytes sent: between nodes, or between the GPUs of two nodes."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from descriptions import MOVES, TRAFFIC
from groups.errors import not_a_choice
from render.scenes.charts import MatrixChart
from render.scenes.matrix import MatrixPicture, matrix_picture
from render.svg.matrix import matrix_svg
from request.answers.moves.transfer import WeightTransfer
from request.state import is_empty
from request.units import bytes_text
from request.words import saying
from training.moves import Moves

from ..base import form
from ..base.html import fine, tag
from ..parts.scales import runs, scale_of

CELLS = 128
"""The largest number of rows of the matrix."""

_RANGE = r"(\d{1,7})(?::(\d{1,7}))?"


class Flows(NamedTuple):
    """A matrix, what each row stands for, and its picture.

    sent: bytes from row to column. firsts, lasts: the ranks of each row. names: of rows in
    `moves_cell`, or the rank that a row is chosen by. per: nodes of a row; 0: rows are ranks.
    above: the `moves_cell` that leads back; None where all are shown.
    """

    sent: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    names: tuple[str, ...]
    per: int
    above: str | None
    picture: MatrixPicture


def flows_of(transfer: WeightTransfer) -> Flows:
    """The matrix that the page's state selects: of all nodes, of the nodes of two cells, or of the
    GPUs of two nodes.

    Errors: LayoutError for a text that names no cell.

    Errors: LayoutError for an unknown cell.
    """
    moves = transfer.moves
    nodes = int(moves.nodes.max()) + 1
    per = -(-nodes // CELLS)
    ranges = _ranges(transfer.source.state.moves_cell)
    if not ranges or max(map(max, ranges)) >= nodes:
        return _of_nodes(moves, np.arange(nodes), per, None)
    kept = np.unique(np.concatenate([np.arange(first, last + 1) for first, last in ranges]))
    if all(first == last for first, last in ranges):
        above = "-".join(_name(first // per * per, per, nodes) for first, _ in ranges)
        return _of_ranks(moves, kept, above if per > 1 else "")
    return _of_nodes(moves, kept[: 2 * CELLS], 1, "")


def _ranges(text: str) -> list[tuple[int, int]]:
    """Parses the two runs of nodes in a text.

    >>> _ranges("0:15-32:47"), _ranges("3-4"), _ranges("")
    ([(0, 15), (32, 47)], [(3, 3), (4, 4)], [])
    """
    if is_empty(text):
        return []
    found = re.fullmatch(f"{_RANGE}-{_RANGE}", text.strip())
    if found is None:
        raise not_a_choice("moves_cell", text, ("0-1", "0:15-16:31"))
    ends = [None if end is None else int(end) for end in found.groups()]
    runs = [(ends[at] or 0, ends[at + 1] or ends[at] or 0) for at in (0, 2)]
    return [(min(run), max(run)) for run in runs]


def _name(first: int, per: int, nodes: int) -> str:
    last = min(first + per, nodes) - 1
    return f"{first}:{last}" if last > first else str(first)


def _of_nodes(moves: Moves, kept: np.ndarray, per: int, above: str | None) -> Flows:
    nodes, gpus = int(moves.nodes.max()) + 1, moves.source.layout.gpus_per_node
    rows = np.full(nodes, -1, dtype=np.int64)
    rows[kept] = np.arange(len(kept)) // per
    sent, firsts = moves.matrix("node", rows), kept[::per]
    ends = np.minimum(np.arange(per, len(kept) + per, per), len(kept))
    names = tuple(_name(first, per, nodes) for first in firsts.tolist())
    ranks = np.searchsorted(moves.nodes, firsts)
    lasts = np.searchsorted(moves.nodes, kept[ends - 1], side="right") - 1
    picture = matrix_picture(_rounded(sent), per * gpus, gpus, firsts * gpus)
    return Flows(sent, ranks, lasts, names, per, above, picture)


def _of_ranks(moves: Moves, nodes: np.ndarray, above: str) -> Flows:
    ranks = np.flatnonzero(np.isin(moves.nodes, nodes))
    rows = np.full(moves.ranks, -1, dtype=np.int64)
    rows[ranks] = np.arange(len(ranks))
    sent = moves.matrix("rank", rows)
    gpus, first = moves.source.layout.gpus_per_node, moves.target.first_rank
    picture = matrix_picture(_rounded(sent), 1, gpus, ranks)
    names = tuple(str(rank - first if rank >= first else rank) for rank in ranks.tolist())
    return Flows(sent, ranks, ranks, names, 0, above, picture)


def _rounded(sent: np.ndarray) -> np.ndarray:
    """Rounds the bytes so that nearly equal values have the same colour."""
    rounded = sent.astype(float)
    some = rounded > 0
    rounded[some] = 2.0 ** (np.round(8 * np.log2(rounded[some])) / 8)
    return rounded


# -- on the page, and in files -------------------------------------------------------------------


def flows_html(transfer: WeightTransfer) -> Markup:
    """The matrix; clicking a cell of nodes shows their GPUs, clicking a cell of GPUs selects the
    receiver."""
    flows, say = flows_of(transfer), saying(MOVES, transfer.language)
    picture = flows.picture
    sizes = {"low": bytes_text(picture.low), "high": bytes_text(picture.high)}
    word = "matrix_body" if picture.low < picture.high else "matrix_even"
    body = say(word, each=_each(flows, transfer.language), **sizes)
    title = say("matrix")
    back = ""
    if flows.above is not None:
        back = form.setter({"moves_cell": flows.above}, say("matrix_back"))
    hint = say("hint_node" if flows.per else "hint_gpu")
    return tag(
        "figure",
        tag("h3", title, " ", back),
        tag("div", Markup(matrix_svg(picture, f"{title}. {body}")), class_="moves-matrix"),
        tag("p", hint, class_="traffic-told", aria_live="polite"),
        fine(body),
        class_="traffic-figure",
        data_traffic=_data(flows, transfer),
    )


def _each(flows: Flows, language: str) -> str:
    say = saying(MOVES, language)
    if not flows.per:
        return say("gpu_each")
    return say("node_each") if flows.per == 1 else say("nodes_each", count=flows.per)


def _data(flows: Flows, transfer: WeightTransfer) -> dict[str, object]:
    """What the page's script says of each cell, in the form of the Traffic view's matrix."""
    say, words = saying(MOVES, transfer.language), saying(TRAFFIC, transfer.language)
    amounts, which = np.unique(flows.sent, return_inverse=True)
    texts = [bytes_text(amount) if amount else words("matrix_none") for amount in amounts.tolist()]
    names = {name: words(f"matrix_{name}") for name in ("cell", "rank", "cells", "among")}
    kind = "gpu" if not flows.per else "node"
    hints = {"hint": say(f"hint_{kind}"), "hint_touch": say(f"hint_{kind}_touch")}
    gpus = transfer.source.layout.gpus_per_node
    return {
        "mixes": texts,
        "cells": runs(which.reshape(-1)),
        "firsts": flows.firsts.tolist(),
        "lasts": flows.lasts.tolist(),
        "per": 1 if not flows.per else flows.per * gpus,
        "node": gpus,
        "names": flows.names,
        "sets": {"moves_cell": "{from}-{to}"} if flows.per else {"rank": "{to}"},
        "words": {**names, **hints},
    }


def flows_chart(transfer: WeightTransfer) -> tuple[str, MatrixChart]:
    flows, title = flows_of(transfer), MOVES["matrix"][transfer.language]
    each = _each(flows, transfer.language)
    return title, MatrixChart(flows.picture, each, scale_of(flows.picture))
