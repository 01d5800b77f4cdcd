"""What of the Step time view goes into files: the parts of a step, and the runs beside it."""

from __future__ import annotations

from descriptions import ESTIMATE
from render.palette import KIND_MARKS

from ..base.context import Context
from ..base.units import seconds_text
from ..base.view import Pictures
from .cloud import cloud_of
from .view import NEAREST, heads_of, job_text, part_name, visible_parts
from .words import KINDS, about

COLOURS = {"compute": "#577de3", "bubble": "#a1a1aa"} | {
    kind: KIND_MARKS["light"][kind] for kind in KINDS
}
"""Of a part of a step; of what has none, OTHERS."""

OTHERS = "#64748b"


def estimate_pictures(context: Context) -> Pictures:
    """The parts as bars, the longest first; the measured runs as a cloud.

    Errors: LayoutError where the view refuses.
    """
    from render.files.tables import BarCell, TableChart

    language = context.language
    estimate = context.trained.estimate(context.layout)
    parts = visible_parts(estimate)
    most = parts[0][1]
    rows = tuple(
        (
            part_name(name, language) + (f" {name}" if name in KINDS else ""),
            seconds_text(seconds),
            f"{100 * seconds / estimate.seconds:.1f}%",
            BarCell(((COLOURS.get(name, OTHERS), seconds / most),)),
        )
        for name, seconds in parts
    )
    heads = (*heads_of("part seconds share", language), "")
    cloud = cloud_of(estimate, estimate.nearest(NEAREST), language)
    return [("", TableChart(heads, rows)), (ESTIMATE["cloud_title"][language], cloud)]


def estimate_summary(context: Context) -> str:
    """How long a step takes, and of what.

    Errors: LayoutError where the view refuses.
    """
    language = context.language
    estimate = context.trained.estimate(context.layout)
    said = ESTIMATE["about"][language].format(about=about(estimate))
    return f"{said[:1].upper()}{said[1:]} {job_text(estimate, context.trained.name, language)}"
