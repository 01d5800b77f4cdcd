"""What of the Better layouts view goes into files: the best ones as a table, with reasons."""

from __future__ import annotations

from descriptions import TRAFFIC
from training.search import search

from ..base.context import Context
from ..base.view import Pictures
from ..estimate.words import about
from ..memory.bars import gib
from .view import bar_parts, job_text, name_of, on_screen, ranked, reason_text

COLOURS = {"compute": "#577de3", "idle": "#a1a1aa", "exposed": "#d97706", "rest": "#64748b"}
"""Of the parts of a bar."""

TOLD = 2
"""Reasons of a layout that a slide has room for."""


def search_pictures(context: Context) -> Pictures:
    """The ten best and the one on screen; nothing where none is valid.

    Errors: LayoutError where the view refuses.
    """
    from render.files.tables import BarCell, TableChart

    language, job = context.language, context.trained.job(context.layout)
    result = search(job)
    if not result.best:
        return []
    entries = ranked(result, on_screen(context)[0])
    longest = max(one.estimate.seconds for one in entries)
    rows = []
    for one in entries:
        estimate = one.estimate
        sizes, rest = name_of(estimate, job, language)
        held = gib(estimate.fit.needed)
        if not estimate.fits:
            held = TRAFFIC["over_memory"][language].format(memory=held)
        parts = bar_parts(estimate)
        bar = BarCell(tuple((COLOURS[part], seconds / longest) for part, seconds in parts))
        said = [reason_text(reason, language) for reason in one.reasons[:TOLD]]
        here = f"\n{TRAFFIC['on_screen'][language]}" if one.is_current else ""
        rows.append((one.place + here, f"{sizes}\n{rest}", about(estimate), bar, held,
                     "\n".join(said)))  # fmt: skip
    heads = [TRAFFIC[f"column_{name}"][language] for name in ("place", "layout", "step")]
    heads += ["", *(TRAFFIC[f"column_{name}"][language] for name in ("memory", "reasons"))]
    current = next((at for at, one in enumerate(entries) if one.is_current), -1)
    legend = tuple((COLOURS[part], TRAFFIC[f"part_{part}"][language]) for part in COLOURS)
    return [("", TableChart(tuple(heads), tuple(rows), current, flexible=(1, 5), legend=legend))]


def search_summary(context: Context) -> str:
    """What was searched.

    Errors: LayoutError where the view refuses.
    """
    job = context.trained.job(context.layout)
    return job_text(job, search(job), context.trained, context.language)
