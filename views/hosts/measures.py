"""Measurements of the GPUs: one number each, as colours, and the groups and stages that stand
out."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from descriptions import HOSTS_WORDS, RUN
from diagnosis.slow.outliers import Slow, slow
from formats.measurements import read_measurements
from groups import LayoutError
from render.scenes.heat import Heat
from request.context import Context
from request.hosts import placement_or_none
from request.state import is_empty
from request.words import saying

from ..base import form
from ..base.heat import painted
from ..base.html import fine, rest_text, tag, together
from ..base.problems import problem_html
from ..parts.values import heat_of

SHOWN = 16
"""The most groups in the list of those that stand out."""


def measures_html(context: Context) -> Markup:
    state, language, say = context.state, context.language, saying(RUN, context.language)
    choices = [(say(f"worse_{choice}"), choice) for choice in ("high", "low")]
    box = form.fields(form.area("measures", state, rows=4), form.choice("worse", state, choices))
    title = tag("h3", say("measures_title"))
    if is_empty(state.measures):
        return together(title, box)
    try:
        values, outliers = _measured(context)
    except LayoutError as error:
        return together(title, problem_html(error, language), box)
    known = values[~np.isnan(values)]
    numbers = {"least": known.min(), "most": known.max(), "median": np.median(known)}
    label = say("measures_label", **{name: f"{n:,.6g}" for name, n in numbers.items()})
    picture = painted(heat_of(values, context.layout.gpus_per_node, language), label)
    return together(title, _slow(outliers, language), fine(label), picture, box)


def _measured(context: Context) -> tuple[np.ndarray, list[Slow]]:
    """The number of each rank, and the findings.

    Errors: LayoutError for a text of no numbers.
    """
    layout, state = context.layout, context.state
    values = read_measurements(state.measures, layout.world_size, placement_or_none(context))
    return values, slow(values, layout.every, worse=state.value("worse"))


def _slow(outliers: list[Slow], language: str) -> Markup:
    if not outliers:
        return fine(HOSTS_WORDS["none-slow"][language])
    items = []
    for outlier in outliers[:SHOWN]:
        rank = outlier.ranks[0]
        words = RUN["gpu_button"][language].format(rank=rank)
        sentence = _slow_text(outlier, language)
        items.append(tag("li", sentence, " ", form.setter({"view": "ranks", "rank": rank}, words)))
    if more := rest_text(len(outliers) - SHOWN, language):
        items.append(tag("li", more))
    return tag("ul", *items, class_="warnings")


def _slow_text(outlier: Slow, language: str) -> str:
    say = saying(RUN, language)
    names = (say("stage") if name == "stage" else name for name in outlier.names)
    what = " = ".join(f"{name} {index}" for name, index in zip(names, outlier.indices))
    return say("slow_of", what=what, value=f"{outlier.value:,.6g}", times=f"{outlier.times:,.1f}")


def measures_summary(context: Context) -> str:
    language, (_, outliers) = context.language, _measured(context)
    return _slow_text(outliers[0], language) if outliers else HOSTS_WORDS["none-slow"][language]


def measures_pictures(context: Context) -> list[tuple[str, Heat]]:
    """The numbers on the GPUs, for files; empty without numbers."""
    if is_empty(context.state.measures):
        return []
    values, _ = _measured(context)
    title = RUN["measures_title"][context.language]
    return [(title, heat_of(values, context.layout.gpus_per_node, context.language))]
