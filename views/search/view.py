"""The Search view: the best layouts for this model on these GPUs, the one on screen among them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from descriptions import MEMORY, REASONS, SEARCH_LEFT_OUT, TRAFFIC, counted, joined
from groups import LayoutError
from render.files.tables import BarCell, TableChart
from training.estimate import Estimate
from training.search import (
    LEAST_TOKENS,
    MOST_SAMPLES,
    Reason,
    SearchJob,
    SearchResult,
    alone,
    compared,
    search,
)

from ..base import form
from ..base.context import Context, Pictures, View
from ..base.fixes import or_refused
from ..base.html import cell, fine, intro, row, saying, table, tag, together
from ..base.link import to_query
from ..base.problems import said_html, sentence, within_sentence
from ..base.resolve import resolve
from ..base.trained import Trained
from ..base.units import seconds_text
from ..estimate.words import KINDS, about
from ..memory.stages import gib
from ..traffic.view import inputs_html, left_out_html

PARTS = {"compute": ("compute",), "idle": ("bubble",), "exposed": KINDS}
"""The parts of an estimate that a bar shows in one colour; the rest is in the last."""


def search_html(context: Context) -> str:
    language, say = context.language, saying(TRAFFIC, context.language)
    world = counted(context.layout.world_size, "gpu", language)
    body = or_refused(context, _answer)
    head = intro(say("search_title"), say("search_body", world=world), language)
    inputs = inputs_html(context.state, language)
    return together(head, inputs, tag("div", body, class_="search"))


def _answer(context: Context) -> Markup:
    trained, language, say = context.trained, context.language, saying(TRAFFIC, context.language)
    job = trained.job(context.layout)
    result = search(job)
    current, why = on_screen(context)
    refusal = tag("p", why, class_="refusal line", role="alert") if why else ""
    said = _job(job, result, trained, language)
    if not result.best:
        return together(said, fine(say("search_none")))
    names = ("place", "layout", "step", "memory", "reasons")
    heads = (say(f"column_{name}") for name in names)
    facts = {"least": f"{LEAST_TOKENS:,}", "samples": str(MOST_SAMPLES)}
    return together(
        said,
        refusal,
        table(heads, _rows(job, result, current, context), "search-table"),
        _key(language),
        left_out_html(SEARCH_LEFT_OUT, language, **facts),
    )


def on_screen(context: Context) -> tuple[Estimate | None, str]:
    """The layout on screen; or why it cannot be told."""
    try:
        return context.trained.estimate(context.layout), ""
    except LayoutError as error:
        return None, sentence(error, context.language)


def job_text(job: SearchJob, result: SearchResult, trained: Trained, language: str) -> str:
    """What was searched, in a few sentences."""
    say, batch = saying(TRAFFIC, language), f"{job.global_batch:,}"
    capacity = gib(job.bytes_of_gpu)
    lines = [
        say(
            "search_job",
            model=trained.name,
            tokens=f"{job.model.sequence:,}",
            batch=batch,
            cluster=job.machine.name,
            capacity=capacity,
        ),
        say(
            "search_tried" if result.too_large else "search_all",
            tried=f"{result.tried:,}",
            ways=f"{result.ways:,}",
            large=f"{result.too_large:,}",
        ),
    ]
    if not trained.batch.is_given:
        lines.append(say("search_taken", batch=batch))
    if not result.complete:
        lines.append(say("search_incomplete"))
    return joined(lines, language)


def _job(job: SearchJob, result: SearchResult, trained: Trained, language: str) -> Markup:
    text, say = job_text(job, result, trained, language), saying(TRAFFIC, language)
    said = tag("div", tag("p", text), class_="traffic-job")
    capacity = gib(job.bytes_of_gpu)
    if result.best and not result.best[0].fits:
        return together(said, said_html(say("search_none_fits", capacity=capacity), [], language))
    return said


# -- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """A layout with its place and what speaks for it; ``is_current``: it is on screen."""

    place: str
    estimate: Estimate
    reasons: Sequence[Reason]
    is_current: bool


def ranked(result: SearchResult, current: Estimate | None) -> list[Ranked]:
    """The best layouts with the one on screen in its place: behind them all if it is not there."""
    places = [(str(place), estimate) for place, estimate in enumerate(result.best, 1)]
    if current and all(not _is_same(estimate, current) for estimate in result.best):
        behind = sum(_is_before(estimate, current) for estimate in result.best)
        place = (
            f"{result.place(current.seconds):,}" if current.fits and result.best[0].fits else "–"
        )
        places.insert(behind, (place, current))
    rows = []
    for place, estimate in places:
        is_current = current is not None and _is_same(estimate, current)
        reasons = alone(estimate) if is_current or current is None else compared(estimate, current)
        rows.append(Ranked(place, estimate, reasons, is_current))
    return rows


def _rows(
    job: SearchJob, result: SearchResult, current: Estimate | None, context: Context
) -> list[Markup]:
    language, entries = context.language, ranked(result, current)
    longest = max(entry.estimate.seconds for entry in entries)
    rows = []
    for entry in entries:
        sizes, rest = name_of(entry.estimate, job, language)
        label = sizes if entry.is_current else _opener(entry.estimate, sizes, context)
        rows.append(_row(entry, together(label, tag("small", rest)), longest, language))
    return rows


def bar_parts(estimate: Estimate) -> list[tuple[str, float]]:
    parts = [(part, sum(estimate.parts[name] for name in names)) for part, names in PARTS.items()]
    return [*parts, ("rest", estimate.seconds - sum(seconds for _, seconds in parts))]


def _is_same(estimate: Estimate, other: Estimate) -> bool:
    return (estimate.request.split, estimate.request.training) == (
        other.request.split,
        other.request.training,
    )


def _is_before(estimate: Estimate, other: Estimate) -> bool:
    """Whether the first is ranked before the second: it fits where that does not, or is quicker."""
    lacks = [0.0 if each.fits else each.fit.needed for each in (estimate, other)]
    return (lacks[0], estimate.seconds) <= (lacks[1], other.seconds)


def _row(entry: Ranked, name: Markup, longest: float, language: str) -> Markup:
    say, estimate = saying(TRAFFIC, language), entry.estimate
    parts = bar_parts(estimate)
    title = ", ".join(f"{say(f'part_{part}')} {seconds_text(seconds)}" for part, seconds in parts)
    shares = (
        tag("span", class_=f"search-{part}", style=f"width:{100 * seconds / longest:.1f}%")
        for part, seconds in parts
    )
    bar = tag("span", *shares, class_="search-bar", role="img", aria_label=title, title=title)
    held = gib(estimate.fit.needed)
    if not estimate.fits:
        held = tag("span", say("over_memory", memory=held), class_="over")
    stage = tag("small", say("stage", stage=estimate.fit.stage))
    items = (tag("li", reason_text(reason, language)) for reason in entry.reasons)
    return row(
        together(entry.place, tag("small", say("on_screen")) if entry.is_current else ""),
        cell(name, class_="search-name"),
        # On a phone a cell says which column it is of.
        cell(about(estimate), bar, data_label=say("column_step")),
        cell(held, " ", stage, data_label=say("column_memory")),
        cell(tag("ul", *items), class_="search-why"),
        class_="current" if entry.is_current else None,
    )


def name_of(estimate: Estimate, job: SearchJob, language: str) -> tuple[str, str]:
    """The sizes, as the column has them, experts' only where there are experts; and the rest."""
    split, training = estimate.request.split, estimate.request.training
    names = ["tp", "cp", "pp", "dp"]
    if split.vpp > 1:
        names.insert(3, "vpp")
    if job.model.experts and job.expert:
        names += ["ep", "etp"]
    sizes = " ".join(f"{name}{getattr(split, name)}" for name in names)
    rest = [TRAFFIC["with_samples"][language].format(count=training.micro_batch)]
    if training.recompute != "none":
        rest.append(TRAFFIC[f"with_{training.recompute}"][language])
    if split.account:
        rest.append(TRAFFIC["with_account"][language])
    if split.spread != "equal":
        rest.append(TRAFFIC["with_nearly"][language])
    return sizes, " · ".join(rest)


def _opener(estimate: Estimate, name: str, context: Context) -> str | Markup:
    """The layout, one click away; plain text if the page would refuse it."""
    request = estimate.request
    split, training = request.split, request.training
    changes = {
        "tp": split.tp,
        "cp": split.cp,
        "pp": split.pp,
        "ep": split.ep,
        "etp": "" if split.etp == split.tp else str(split.etp),
        "vpp": "" if split.vpp == 1 else str(split.vpp),
        "account": split.account,
        "spread": "" if split.spread == "equal" else split.spread,
        # The same samples in a step as on this page, however they are said here.
        "global_batch": str(request.global_batch),
        "micro_batches": "",
        "micro_batch": "" if training.micro_batch == 1 else str(training.micro_batch),
        "recompute": training.recompute,
    }
    if context.state.schedule != training.schedule:
        changes["schedule"] = ""
    try:
        resolve(state := context.state.changed(changes))
    except LayoutError:
        return name
    return form.opener(to_query(state), name)


def reason_text(reason: Reason, language: str) -> str:
    facts = dict(reason.facts)
    if "seconds" in facts:
        facts["seconds"] = seconds_text(facts["seconds"])
    facts |= {name: gib(facts[name]) for name in ("memory", "other", "left") if name in facts}
    if "recompute" in facts:
        facts["recompute"] = within_sentence(MEMORY[f"recompute_{facts['recompute']}"][language])
    return REASONS[reason.code][language].format(**facts)


def _key(language: str) -> Markup:
    parts = (
        tag("span", tag("i", class_=f"search-{part}"), TRAFFIC[f"part_{part}"][language])
        for part in (*PARTS, "rest")
    )
    return tag("p", *parts, class_="search-key")


COLOURS = {"compute": "#577de3", "idle": "#a1a1aa", "exposed": "#d97706", "rest": "#64748b"}
"""Of the parts of a bar."""

TOLD = 2
"""Reasons of a layout that a slide has room for."""


def search_pictures(context: Context) -> Pictures:
    """The ten best and the one on screen; nothing where none is valid."""
    language, job = context.language, context.trained.job(context.layout)
    result = search(job)
    if not result.best:
        return []
    entries = ranked(result, on_screen(context)[0])
    longest = max(entry.estimate.seconds for entry in entries)
    rows = []
    for entry in entries:
        estimate = entry.estimate
        sizes, more = name_of(estimate, job, language)
        samples, _, rest = more.partition(" · ")  # on the first line: all of it has two
        name = f"{sizes} · {samples}\n{rest}".rstrip()
        held = gib(estimate.fit.needed)
        if not estimate.fits:
            held = TRAFFIC["over_memory"][language].format(memory=held)
        parts = bar_parts(estimate)
        bar = BarCell(tuple((COLOURS[part], seconds / longest) for part, seconds in parts))
        said = [reason_text(reason, language) for reason in entry.reasons[:TOLD]]
        here = f"\n{TRAFFIC['on_screen'][language]}" if entry.is_current else ""
        rows.append((entry.place + here, name, about(estimate), bar, held,
                     "\n".join(said)))  # fmt: skip
    heads = [TRAFFIC[f"column_{name}"][language] for name in ("place", "layout", "step")]
    heads += ["", *(TRAFFIC[f"column_{name}"][language] for name in ("memory", "reasons"))]
    current = next((at for at, entry in enumerate(entries) if entry.is_current), -1)
    legend = tuple((COLOURS[part], TRAFFIC[f"part_{part}"][language]) for part in COLOURS)
    return [("", TableChart(tuple(heads), tuple(rows), current, flexible=(1, 5), legend=legend))]


def search_summary(context: Context) -> str:
    job = context.trained.job(context.layout)
    return job_text(job, search(job), context.trained, context.language)


VIEW = View(
    "search", "choose", search_html, search_pictures, TRAFFIC["search_title"], search_summary
)
