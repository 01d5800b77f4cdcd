"""What two layouts cost, side by side: memory, bubble, traffic and the time of a step.

The model, how it is trained and the cluster are those of the layout on screen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape

from descriptions import PAGE
from groups import LayoutError
from groups.layout import Layout
from training.search import Candidate, evaluate

from ..base.context import Context
from ..base.messages import refusal_line
from ..base.state import is_empty
from ..base.tables import table
from ..base.trained import Trained
from ..base.units import bytes_text, seconds_text
from ..memory.bars import gib
from ..search.view import job_of

ROWS: dict[str, Callable[[Candidate], str]] = {
    "cost_memory": lambda one: gib(one.memory),
    "cost_bubble": lambda one: f"{100 * one.idle / one.compute:.1f} %",
    "cost_across": lambda one: bytes_text(one.across),
    "cost_exposed": lambda one: seconds_text(one.exposed),
    "cost_step": lambda one: seconds_text(one.seconds),
}
"""A word of PAGE, and what it says of a layout."""

MEASURES: dict[str, Callable[[Candidate], float]] = {
    "cost_memory": lambda one: one.memory,
    "cost_bubble": lambda one: one.idle / one.compute,
    "cost_across": lambda one: one.across,
    "cost_exposed": lambda one: one.exposed,
    "cost_step": lambda one: one.seconds,
}
"""The same as numbers: the less, the better."""


def costs_html(before: Context, now: Context) -> str:
    """A row a cost; a layout that the model does not allow says why in place of its numbers."""
    problems: list[LayoutError] = []
    language, trained = now.language, _trained(now, problems)
    if trained is not None and is_empty(before.state.global_batch):
        # Steps can be compared only where they do the same work.
        samples = str(trained.batch.global_batch)
        same = replace(before.state, global_batch=samples, micro_batches="")
        before = Context(before.layout, same)
    sides = [
        _cost(before.layout, _trained(before, problems), problems),
        _cost(now.layout, trained, problems),
    ]
    rows = [
        (
            PAGE[name][language],
            *("–" if one is None else say(one) for one in sides),
            _difference(name, *sides, language),
        )
        for name, say in ROWS.items()
    ]
    said = "" if trained is None else _what(trained, language)
    once = {error.what: error for error in problems}.values()
    refused = "".join(refusal_line(error, language) for error in once)
    heads = ("column_cost", "column_kept", "column_now", "column_difference")
    return (
        f'<div class="intro"><h2>{escape(PAGE["cost_title"][language])}</h2>'
        f"<p>{escape(said)}</p></div>{table(heads, rows, language, 'costs')}{refused}"
    )


def _difference(name: str, kept: Candidate | None, now: Candidate | None, language: str) -> str:
    """By how much the layout on screen is better or worse."""
    if kept is None or now is None:
        return "–"
    before, after = (MEASURES[name](one) for one in (kept, now))
    if abs(after - before) <= 0.0005 * max(before, after):
        return PAGE["cost_same"][language]
    words = "cost_better" if after < before else "cost_worse"
    if not before:
        return PAGE["cost_worse_than_none"][language]
    share = 100 * abs(after / before - 1)
    return PAGE[words][language].format(share=f"{share:,.0f}" if share >= 1 else f"{share:.1f}")


def _what(now: Trained, language: str) -> str:
    batch = now.batch.global_batch
    return PAGE["cost_of"][language].format(model=now.name, cluster=now.cluster.name, batch=batch)


def _trained(context: Context, problems: list[LayoutError]) -> Trained | None:
    try:
        return context.trained
    except LayoutError as error:
        problems.append(error)
        return None


def _cost(layout: Layout, trained: Trained | None, problems: list[LayoutError]) -> Candidate | None:
    if trained is None:
        return None
    try:
        return evaluate(job_of(layout, trained), trained.split)
    except LayoutError as error:
        problems.append(error)
        return None
