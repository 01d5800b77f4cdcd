"""What two layouts cost, side by side: memory, bubble, traffic and the time of a step.

The model, how it is trained and the cluster are those that the Memory and Traffic views are asked.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from descriptions import PAGE
from groups import LayoutError
from training.search import Candidate, worked_out

from .asked import Asked
from .memory_bars import gib
from .messages import refusal_line
from .search import job_of
from .state import Controls, Layout
from .tables import table
from .traffic_asked import question_of
from .units import bytes_text, seconds_text

ROWS: dict[str, Callable[[Candidate], str]] = {
    "cost_memory": lambda one: gib(one.memory),
    "cost_bubble": lambda one: f"{100 * one.idle / one.compute:.1f} %",
    "cost_across": lambda one: bytes_text(one.across),
    "cost_exposed": lambda one: seconds_text(one.exposed),
    "cost_step": lambda one: seconds_text(one.seconds),
}
"""A word of PAGE, and what it says of a layout."""


def costs_html(
    before_controls: Controls,
    before: Layout,
    controls: Controls,
    layout: Layout,
    asked: Asked,
    language: str,
) -> str:
    """A row a cost; a layout that the model does not allow says why in place of its numbers."""
    problems: list[LayoutError] = []
    sides = [
        _cost(side, of_side, asked, problems)
        for side, of_side in ((before, before_controls), (layout, controls))
    ]
    rows = [
        (PAGE[name][language], *("–" if one is None else say(one) for one in sides))
        for name, say in ROWS.items()
    ]
    said = PAGE["cost_of"][language].format(model=_model(layout, controls, asked))
    refused = "".join(refusal_line(error, language) for error in problems)
    heads = ("column_cost", "column_kept", "column_now")
    return (
        f'<div class="intro"><h2>{escape(PAGE["cost_title"][language])}</h2>'
        f"<p>{escape(said)}</p></div>{table(heads, rows, language, 'costs')}{refused}"
    )


def _cost(
    layout: Layout, controls: Controls, asked: Asked, problems: list[LayoutError]
) -> Candidate | None:
    try:
        question = question_of(layout, controls, asked.memory, asked.traffic)
        return worked_out(job_of(layout, question), question.problem.split)
    except LayoutError as error:
        problems.append(error)
        return None


def _model(layout: Layout, controls: Controls, asked: Asked) -> str:
    try:
        question = question_of(layout, controls, asked.memory, asked.traffic)
    except LayoutError:
        return "–"
    return f"{question.name}, {question.cluster.name}"
