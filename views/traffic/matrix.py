"""The matrix of bytes between ranks: of all, or of a part in which something is visible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from descriptions import PAGE, SAVED, TRAFFIC, counted
from render.scenes.charts import MatrixChart
from render.scenes.matrix import MatrixPicture, matrix_picture
from render.svg.matrix import matrix_svg, scale_png
from request.context import Context
from request.units import bracketed, bytes_text
from request.words import saying
from training.traffic.matrix import CELLS, Matrix, matrix
from training.traffic.parts import ALL, NODE, clearest, parts_of, ranks_of_part
from training.traffic.per_step import Traffic

from ..base import form
from ..base.html import tag
from ..base.view import Pictures
from ..parts.scales import runs, scale_of


def matrix_html(context: Context, rows: Sequence[Traffic]) -> Markup:
    """The picture of the selected part, and buttons for others.

    Errors: LayoutError for an unknown part.
    """
    language, say = context.language, saying(TRAFFIC, context.language)
    part = part_of(context, rows)
    flows, total, picture = _flows(context, rows, part)
    low, high = bytes_text(picture.low), bytes_text(picture.high)
    body = say("matrix_ranks")
    if flows.ranks_per_cell > 1:
        body = say("matrix_nodes", ranks=counted(flows.ranks_per_cell, "rank", language))
    label = say("matrix_label", rows=len(total), low=low, high=high)
    title = (tag("h3", say("matrix_title")), tag("p", body, " ", _stays(flows, part, language)))
    images = (tag("img", src=scale_png(of), alt="", class_=f"in-{of}") for of in ("light", "dark"))
    scale = (tag("span", low), *images, tag("span", high))
    data = _data(flows, total, context, language)
    zoom = _closer(context, rows, part) if flows.ranks_per_cell > 1 else ""
    data["sets"] = {**({"traffic_part": zoom} if zoom else {"view": "groups"}), "rank": "{from}"}
    hints = (say(f"matrix_hint{'_zoom' if zoom else ''}{by}") for by in ("", "_touch"))
    hint_texts = dict(zip(("hint", "hint_touch"), hints))
    data["words"] = {name: say(f"matrix_{name}") for name in _WORDS} | hint_texts
    return tag(
        "figure",
        Markup(matrix_svg(picture, label)),
        tag("p", hint_texts["hint"], class_="traffic-told", aria_live="polite"),
        tag("p", *scale, class_="traffic-scale"),
        tag("figcaption", *title, tag("p", say("matrix_ways"))),
        class_="traffic-figure",
        data_traffic=data,
    )


def matrix_pictures(context: Context, rows: Sequence[Traffic]) -> Pictures:
    """The traffic matrix for picture files; empty if no bytes are sent."""
    if not rows:
        return []
    language, part = context.language, part_of(context, rows)
    flows, _, picture = _flows(context, rows, part)
    each = counted(flows.ranks_per_cell, "rank", language)
    facts = {"model": context.trained.name(language), "cluster": context.trained.cluster.name}
    title = SAVED["bytes_sent"][language].format(**facts)
    if part != ALL:
        title = SAVED["bytes_of_part"][language].format(title=title, part=name_of(context, part))
    axes = SAVED["axes"][language].format(each=each)
    return [(title, MatrixChart(picture, axes, scale_of(picture)))]


# -- parts ---------------------------------------------------------------------------------------


def part_of(context: Context, rows: Sequence[Traffic]) -> str:
    """The selected part; by default, or if the job lacks it, the one in which most is visible."""
    chosen, layout = context.state.traffic_part.strip(), context.layout
    ranks_of_part(chosen or ALL, layout.mesh, layout.gpus_per_node, 0)  # refuses what is none
    is_here = chosen in parts_of(layout.mesh, layout.gpus_per_node)
    return chosen if is_here else _clearest(context, rows)


def _clearest(context: Context, rows: Sequence[Traffic]) -> str:
    layout = context.layout
    job = (layout.roles, layout.mesh, layout.gpus_per_node, context.rank)
    return clearest(rows, *job, CELLS)


def _closer(context: Context, rows: Sequence[Traffic], part: str) -> str:
    """The link of a cell of several ranks; empty for the picture of the job."""
    found = _clearest(context, rows)
    if found not in (ALL, part):
        return found
    here = parts_of(context.layout.mesh, context.layout.gpus_per_node)
    return NODE if NODE in here and found != ALL else ""


def name_of(context: Context, part: str) -> str:
    """The name of a part, with its ranks."""
    return _name(context, part, len(_ranks(context, part)))


def _name(context: Context, part: str, ranks: int) -> str:
    gpus = counted(ranks, "gpu", context.language)
    return TRAFFIC[f"part_{part}"][context.language].format(rank=context.rank, gpus=gpus)


def choice_html(context: Context, rows: Sequence[Traffic]) -> Markup | str:
    """The box of the part; nothing where there is only one."""
    part = part_of(context, rows)
    parts = parts_of(context.layout.mesh, context.layout.gpus_per_node)
    if len(parts) == 1:
        return ""
    options = [(name_of(context, one), one) for one in parts]
    return form.line(form.choice("traffic_part", context.state, options, counts=part))


def _ranks(context: Context, part: str) -> np.ndarray:
    layout = context.layout
    return ranks_of_part(part, layout.mesh, layout.gpus_per_node, context.rank)


def _stays(flows: Matrix, part: str, language: str) -> str:
    """The share of its ranks' bytes that a part does not show."""
    if part == ALL:
        return ""
    inside = float(flows.sent.sum())
    sent = inside + flows.leaving
    facts = {"sent": bytes_text(sent), "inside": f"{100 * inside / (sent or 1):.0f}%"}
    return TRAFFIC["matrix_part"][language].format(**facts)


# -- the picture ---------------------------------------------------------------------------------


def _flows(
    context: Context, rows: Sequence[Traffic], part: str
) -> tuple[Matrix, np.ndarray, MatrixPicture]:
    """Bytes by kind, of all kinds, and their picture."""
    layout = context.layout
    ranks = _ranks(context, part)
    flows = matrix(rows, layout.roles, layout.mesh, layout.gpus_per_node, ranks)
    total = flows.total
    per, firsts = flows.ranks_per_cell, flows.firsts
    return flows, total, matrix_picture(total, per, layout.gpus_per_node, firsts)


_WORDS = ("cell", "rank", "cells", "among")
"""The script's texts about a cell."""


def _data(flows: Matrix, total: np.ndarray, context: Context, language: str) -> dict[str, object]:
    """The data with which the page's script describes any cell.

    Cells that have the same bytes of every kind are one *mix*, told by its words; ``cells`` is the
    number of each cell's mix, row after row, in runs: "3*0,2" is 0, 0, 0, 2. Mix 0 is nothing.
    ``firsts`` and ``lasts`` are the first and last rank of each cell.
    """
    say = saying(TRAFFIC, language)
    sending = np.flatnonzero(total)
    by_cell = flows.sent.reshape(len(flows.kinds), -1)[:, sending].T
    mixes, number = np.unique(np.round(by_cell, -1), axis=0, return_inverse=True)
    which = np.zeros(total.size, dtype=np.int64)
    which[sending] = 1 + number.reshape(-1)
    mix_texts = (_mix_text(flows.kinds, mix, language) for mix in mixes.tolist())
    per, ranks = flows.ranks_per_cell, flows.ranks
    ends = np.minimum(np.arange(per, len(ranks) + per, per), len(ranks)) - 1
    return {
        "mixes": [say("matrix_none"), *mix_texts],
        "cells": runs(which),
        "firsts": flows.firsts.tolist(),
        "lasts": ranks[ends].tolist(),
        "per": per,
        "node": context.layout.gpus_per_node,
    }


def _mix_text(kinds: Sequence[str], mix: Sequence[float], language: str = "en") -> str:
    """
    >>> _mix_text(["tp", "dp", "pp"], [2e9, 0.0, 5e8])
    '2.50 GB (tp 2.00 GB, pp 500 MB)'
    """
    parts = (f"{kind} {bytes_text(sent)}" for kind, sent in zip(kinds, mix) if sent)
    return bytes_text(sum(mix)) + bracketed(PAGE["and_list"][language].join(parts), language)
