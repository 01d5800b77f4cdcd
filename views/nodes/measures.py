"""Measurements of the GPUs: one number each, as colours, and the groups and stages that stand
out."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import HOSTS_WORDS, RUN
from diagnosis.slow.outliers import Slow
from groups import LayoutError
from render.scenes.heat import Heat
from request.context import Context
from request.state import is_empty
from request.words import saying

from ..base import form
from ..base.heat import painted
from ..base.html import fine, rest_text, tag, together
from ..base.problems import problem_html
from ..parts.measured import measured, outlier_text, range_of
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
        values, outliers = context.once(measured)
    except LayoutError as error:
        return together(title, problem_html(error, language), box)
    label = say("measures_label", **range_of(values))
    picture = painted(heat_of(values, context.layout.gpus_per_node, language), label)
    return together(title, _slow(outliers, language), fine(label), picture, box)


def _slow(outliers: list[Slow], language: str) -> Markup:
    if not outliers:
        return fine(HOSTS_WORDS["none-slow"][language])
    items = []
    for outlier in outliers[:SHOWN]:
        rank = outlier.ranks[0]
        words = RUN["gpu_button"][language].format(rank=rank)
        sentence = outlier_text(outlier, language)
        items.append(tag("li", sentence, " ", form.setter({"view": "ranks", "rank": rank}, words)))
    if more := rest_text(len(outliers) - SHOWN, language):
        items.append(tag("li", more))
    return tag("ul", *items, class_="warnings")


def measures_summary(context: Context) -> str:
    language, (_, outliers) = context.language, context.once(measured)
    return outlier_text(outliers[0], language) if outliers else HOSTS_WORDS["none-slow"][language]


def measures_pictures(context: Context) -> list[tuple[str, Heat]]:
    """The numbers on the GPUs, for files; empty without numbers."""
    if is_empty(context.state.measures):
        return []
    values, _ = context.once(measured)
    title = RUN["measures_title"][context.language]
    return [(title, heat_of(values, context.layout.gpus_per_node, context.language))]
