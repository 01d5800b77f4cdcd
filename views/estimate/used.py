"""The part of Step time about how well GPUs are used: from the peak to the step, and one's own."""

from __future__ import annotations

from itertools import accumulate

from markupsafe import Markup

from descriptions import MACHINE
from formats.documents.tables import Table
from request.answers.estimate.used import (
    OwnStep,
    doubt_text,
    own_step,
    step_doubt,
    use_text,
)
from request.answers.estimate.words import KINDS, part_name, use_of
from request.context import Context
from request.state import State, is_empty
from request.units import seconds_text
from request.words import saying
from training.estimate import Estimate, waterfall

from ..base import form
from ..base.html import fine, fold, heads_of, table_html, tag, together
from ..parts.machine import fp4_range

SUCH_AS = "12.3 s, 430 TFLOP/s"
"""Measured steps as they may be typed."""

LEAST = 0.0005
"""Share of the step from which on a cause is shown."""


def used_html(context: Context, estimate: Estimate) -> tuple[tuple[Markup, ...], Markup]:
    """The waterfall under its title; and how well it is used, with the box for one's own step.

    Errors: LayoutError for a measured step that is none.
    """
    language, say = context.language, saying(MACHINE, context.language)
    own = own_step(context, estimate)
    seconds = own.use.seconds if own else 0.0
    lines = [tag("p", use_text(use_of(estimate), language))]
    if own:
        lines.append(tag("p", tag("b", say("own_is", text=use_text(own.use, language)))))
        lines.append(_doubt(own, language))
    if four := fp4_range(estimate.request.machine, language):
        is_four = estimate.request.training.products == "nvfp4"
        lines += [fine(four)] if is_four else []
    falls = table_html(falls_table(estimate, seconds, language), "estimate-falls")
    return (
        (tag("h3", say("falls_title")), falls),
        together(*lines, fine(say("counted")), _boxes(context.state, own)),
    )


def _boxes(state: State, own: OwnStep | None) -> Markup:
    """What takes one's own step: typed, which links carry, or lines of a log, which they do not;
    then its number can be put into them."""
    language, log = state.language, form.area("step_log", state)
    if own and not is_empty(state.step_log):
        keep = MACHINE["keep_step"][language].format(step=own.read.text)
        log = together(log, form.setter({"own_step": own.read.text, "step_log": ""}, keep))
    typed = form.fields(form.text("own_step", state, hint=SUCH_AS))
    is_open = not is_empty(state.step_log)
    return together(typed, fold(MACHINE["step_of_log"][language], log, is_open=is_open))


def _doubt(own: OwnStep, language: str) -> Markup:
    """A question about a step that is quicker than the peak allows, with what would answer it."""
    doubt = step_doubt(own)
    if doubt is None:
        return Markup()
    take = MACHINE["doubt_take"][language].format(instead=doubt.instead)
    button = form.setter(doubt.changes, take) if doubt.changes else ""
    return tag("p", doubt_text(own, language), " ", button, class_="doubt")


def falls_table(estimate: Estimate, own: float, language: str) -> Table:
    """Seconds from the peak to the step and to one's own, with the MFU that is left after each."""
    say, use = saying(MACHINE, language), use_of(estimate)
    falls = waterfall(estimate)
    peak, rows = falls["peak"], []
    for (name, seconds), so_far in zip(falls.items(), accumulate(falls.values())):
        if abs(seconds) >= LEAST * estimate.seconds:
            rows.append((_name(name, language), seconds_text(seconds), f"{peak / so_far:.1%}"))
    rows.append((say("fall_step"), seconds_text(use.seconds), f"{peak / use.seconds:.1%}"))
    if own:
        gap = own - use.seconds
        text = seconds_text(gap) if gap >= 0 else f"-{seconds_text(-gap)}"
        rows.append((say("fall_gap"), text, ""))
        rows.append((say("fall_own"), seconds_text(own), f"{peak / own:.1%}"))
    return Table("from-peak", heads_of(MACHINE, "fall seconds reached", language), rows)


def _name(name: str, language: str) -> str:
    if name in ("peak", "recompute", "shapes"):
        return MACHINE[f"fall_{name}"][language]
    part = part_name(name, language)
    return f"{part} {name}" if name in KINDS else part
