"""What of the Traffic view goes into files: who sends how much to whom."""

from __future__ import annotations

import numpy as np

from descriptions import SAVED, counted, joined
from render.scenes.charts import MatrixChart
from render.svg.matrix import MatrixPicture, matrix_picture
from training.traffic.matrix import matrix

from ..base.context import Context
from ..base.units import bytes_text
from ..base.view import Pictures
from .view import job_texts, rows_of

NEAR = 0.03
"""Parts of a scale that two of its words are apart at least."""


def traffic_pictures(context: Context) -> Pictures:
    """Who sends how much to whom; nothing where nothing is sent.

    Errors: LayoutError where the view refuses.
    """
    layout, trained = context.layout, context.trained
    rows = rows_of(layout, trained, [one.parameters for one in trained.stages()])
    if not rows:
        return []
    flows = matrix(rows, layout.every, layout.mesh, layout.gpus_per_node)
    picture = matrix_picture(flows.total, flows.ranks_per_cell, layout.gpus_per_node)
    language = context.language
    each = counted(flows.ranks_per_cell, "rank", language)
    title = SAVED["bytes_sent"][language].format(model=trained.name, cluster=trained.cluster.name)
    axes = SAVED["axes"][language].format(each=each)
    return [(title, MatrixChart(picture, axes, scale_of(picture)))]


def traffic_summary(context: Context) -> str:
    """What is trained, over which links.

    Errors: LayoutError where the view refuses.
    """
    return joined(job_texts(context.layout, context.trained, context.language), context.language)


def scale_of(picture: MatrixPicture) -> tuple[tuple[float, str], ...]:
    """Words beside a scale of colours: its ends, and powers of ten where there is room."""
    low, high = picture.low, picture.high
    if low == high:
        return ((1.0, bytes_text(high)),)
    span = np.log10(high / low)
    powers = 10.0 ** np.arange(np.ceil(np.log10(low)), np.ceil(np.log10(high)))
    within = [(float(np.log10(power / low) / span), power) for power in powers.tolist()]
    kept = [(0.0, low), *(one for one in within if NEAR < one[0] < 1 - NEAR), (1.0, high)]
    return tuple((at, bytes_text(number)) for at, number in kept)
