"""The time of a step, and the measured one, as lines of a view."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import ESTIMATE, joined
from groups import LayoutError
from groups.presets import url_of
from request.answers.estimate.measured import measured_of, measured_text, measured_use_text
from request.answers.estimate.words import about, lacks_text
from request.context import Context
from request.words import saying
from training.estimate import Estimate

from ..base import form
from ..base.html import outside, tag, together


def step_line(estimate: Estimate, language: str) -> Markup:
    """The seconds of a step in one sentence, and a button to the runs behind it."""
    say = saying(ESTIMATE, language)
    words = [say("step", about=about(estimate, language))]
    if estimate.lacks:
        words.append(say("far", lacks=lacks_text(estimate, language)))
    more = form.setter({"view": "estimate"}, say("more"))
    return tag("p", joined(words, language), " ", more, class_="step-line")


def step_of(context: Context) -> Markup:
    """`step_line` of the page's training, and its measured step; empty if it is refused, which the
    view shows."""
    try:
        line = step_line(context.trained.estimate(context.layout), context.language)
    except LayoutError:
        return Markup()
    return together(line, measured_html(context))


def measured_html(context: Context) -> Markup:
    """The measured step with its source and how its figure is converted to seconds."""
    sentence = measured_text(context)
    if not sentence:
        return Markup()
    return tag("p", tag("b", sentence), " ", _source(context), class_="measured")


def source_html(context: Context) -> Markup:
    """The source alone, below a headline with the rest; empty without a measurement."""
    return tag("p", _source(context), class_="measured") if measured_of(context) else Markup()


def _source(context: Context) -> Markup:
    step, language = measured_of(context), context.language
    assert step is not None
    address = url_of(step.source)
    source = outside(address, step.source) if address else step.source
    how = ESTIMATE[f"counted_{step.counted}"][language].format(value=step.value)
    return tag("small", source, joined((how, measured_use_text(step, language)), language))
