"""The Search view: the best layouts for this model on these GPUs, the one on screen among them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from descriptions import SEARCH_LEFT_OUT, TRAFFIC, counted, joined
from formats.documents.tables import Table
from formats.values import Document
from groups import LayoutError
from groups.presets import PRESETS
from render.files.tables import BarCell, TableChart
from request.answers.estimate.measured import measured_text
from request.answers.estimate.words import KINDS, about, share_text, use_of, use_short
from request.answers.search import better_layouts, reason_text
from request.context import Context, of_server
from request.fixes import fixes_of
from request.link import to_query
from request.model import model_name, typed_layout
from request.resolve import resolve
from request.state import State
from request.units import gib, seconds_text
from request.words import saying, value_text
from training.estimate import Estimate
from training.estimate.memory import FITS
from training.recompute import WORDS, modules_of
from training.search import (
    LEAST_TOKENS,
    MOST_SAMPLES,
    ROOM_OF_EXCHANGE,
    SearchJob,
    SearchResult,
    alone,
    compared,
    kept_orders,
    law_of,
    order_of,
    published_layouts,
    search,
)

from ..base import form
from ..base.html import (
    cell,
    dotted,
    explained,
    fine,
    heading,
    left_out_html,
    row,
    table,
    tag,
    together,
)
from ..base.problems import message_html, or_refused, problem_html
from ..base.view import Pictures, View
from ..parts.inputs import inputs_html
from ..parts.step import measured_html
from .served import served_html, served_pictures, served_summary

PARTS = {"compute": ("compute",), "idle": ("bubble",), "exposed": KINDS}
"""The parts of an estimate that a bar shows in one colour; the rest is the last."""

COLOURS = {"compute": "#475569", "idle": "#fde68a", "exposed": "#e0a100", "rest": "#94a3b8"}
"""Colours of the bar's parts, in files: ink for work, what is coloured is waiting."""

SURE = 0.8
"""How sure it must be that a layout is slower than the first, or its place is none."""

SLIDE_REASONS = 2
"""The most reasons of a layout on a slide."""


@of_server(served_html)
def search_html(context: Context) -> Markup:
    language, say = context.language, saying(TRAFFIC, context.language)
    world = counted(context.layout.world_size, "gpu", language)
    how = fine(explained(say("search_body", world=world), language))
    body = tag("div", or_refused(context, _answer), how, class_="search")
    return together(heading(say("search_title")), inputs_html(context.state), body)


def _answer(context: Context) -> Markup:
    language, say = context.language, saying(TRAFFIC, context.language)
    job = context.trained.job(context.layout)
    result = search(job)
    answer = tag("div", tag("p", _job_text(context, job, result)), class_="traffic-job")
    if not result.best:
        return together(answer, fine(say("search_none")))
    if not result.best[0].fits:
        none_fits = say("search_none_fits", capacity=gib(job.bytes_of_gpu))
        answer = together(answer, message_html(none_fits, [], language))
    current, why = on_screen(context)
    entries = ranked(job, result, current, language)
    longest = max(entry.estimate.seconds for entry in entries)
    rows = (_row(entry, longest, context) for entry in entries)
    names = ("place", "layout", "step", "memory", "reasons")
    shades = (
        tag("span", tag("i", class_=f"search-{part}"), say(f"part_{part}")) for part in COLOURS
    )
    facts = {"least": f"{LEAST_TOKENS:,}", "samples": str(MOST_SAMPLES)}
    facts |= {"usable": f"{job.usable / job.bytes_of_gpu:.1%}", "room": f"{ROOM_OF_EXCHANGE:.0%}"}
    facts |= _orders(result.best[0])
    alike = together(*(tag("p", line) for line in _alike(result, language)))
    fits = result.best[0].fits  # else much stands above the table
    return together(
        answer,
        alike if fits else "",
        why,
        measured_html(context),
        table((say(f"column_{name}") for name in names), rows, "search-table"),
        "" if fits else alike,
        tag("p", *shades, class_="search-key"),
        *(tag("p", line) for line in _published_lines(job, result, language)),
        left_out_html(SEARCH_LEFT_OUT.values(), language, **facts),
    )


def _orders(best: Estimate) -> dict[str, str]:
    """How orders like these hold: of those that are nearly sure, and of those that are hardly."""
    kept = kept_orders(law_of(best))
    facts = {"pairs": f"{sum(each.pairs for each in kept):,}"}
    for name, at in (("sure", kept[-2]), ("unsure", kept[0])):
        shares = {"low": at.low, "high": at.high, "held": at.right}
        facts |= {f"{name}_{which}": f"{share:.0%}" for which, share in shares.items()}
    return facts


def _alike(result: SearchResult, language: str) -> Iterator[str]:
    """How many of the first places are no order, for none is surely slower than the first."""
    best = result.best
    orders = (order_of(best[0], other).share < SURE for other in best[1:])
    count = 1 + sum(1 for _ in itertools.takewhile(bool, orders))
    if count > 1:
        facts = {"last": count, "share": f"{SURE:.0%}"}
        yield saying(TRAFFIC, language)("search_alike", **facts)


def _published_lines(job: SearchJob, result: SearchResult, language: str) -> Iterator[str]:
    """The ranks in the list of published layouts for the same model and machines that are not
    shown."""
    for placed in published_layouts(job, result):
        preset, say = PRESETS[placed.preset], saying(TRAFFIC, language)
        sizes = {"tp": preset.tp, "cp": preset.cp, "pp": preset.pp, "ep": preset.ep}
        names = " ".join(f"{name}{size}" for name, size in sizes.items() if size > 1)
        facts = {"name": preset.name, "sizes": names, "place": placed.place}
        facts |= {"slower": f"{placed.slower:.0%}", "count": f"{len(result.seconds):,}"}
        yield say("search_published" if placed.place else "search_unplaced", **facts)


def on_screen(context: Context) -> tuple[Estimate | None, Markup]:
    """The layout on screen; or why it has no estimate."""
    try:
        return context.trained.estimate(context.layout), Markup()
    except LayoutError as error:
        return None, problem_html(error, context.language, fixes_of(error, context))


def _job_text(context: Context, job: SearchJob, result: SearchResult) -> str:
    """What was searched, in a few sentences."""
    say, batch = saying(TRAFFIC, context.language), f"{job.global_batch:,}"
    counts = {"tried": result.tried, "ways": result.ways, "large": result.too_large}
    lines = [
        say(
            "search_job",
            model=model_name(context.trained.chosen, context.language),
            tokens=f"{job.model.sequence:,}",
            batch=batch,
            cluster=job.machine.name,
            capacity=gib(job.bytes_of_gpu),
        ),
        say(
            "search_tried" if result.too_large else "search_all",
            **{name: f"{count:,}" for name, count in counts.items()},
        ),
    ]
    if not context.trained.batch.is_explicit:
        lines.append(say("search_taken", batch=batch))
    if not result.complete:
        lines.append(say("search_incomplete"))
    return joined(lines, context.language)


# -- the table -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ranked:
    """A layout with its rank and its texts, on the page and in files.

    sizes: as the column has them, of experts only where there are any; rest: how it is trained;
    parts: seconds of a step by those of a bar; is_current: it is on screen; sure: how sure it is
    that it is quicker than the layout on screen, or that the first is quicker than that.
    """

    place: str
    estimate: Estimate
    is_current: bool
    sure: str
    sizes: str
    rest: list[str]
    parts: dict[str, float]
    reasons: list[str]

    def memory(self, language: str) -> str:
        held = gib(self.estimate.fit.needed)
        if self.estimate.verdict == FITS:
            return held
        return TRAFFIC[f"{self.estimate.verdict}_memory"][language].format(memory=held)


def ranked(
    job: SearchJob, result: SearchResult, current: Estimate | None, language: str
) -> list[Ranked]:
    """The best layouts with the one on screen in its place: last if it is not among them."""
    places = [(str(place), estimate) for place, estimate in enumerate(result.best, 1)]
    if current and all(not _is_same(estimate, current) for estimate in result.best):
        behind = sum(_is_before(estimate, current) for estimate in result.best)
        has_place = current.fits and result.best[0].fits
        place = f"{result.place(current.seconds):,}" if has_place else "–"
        places.insert(behind, (place, current))
    entries = []
    for place, estimate in places:
        is_current = current is not None and _is_same(estimate, current)
        reasons = alone(estimate) if is_current or current is None else compared(estimate, current)
        parts = {part: sum(estimate.parts[at] for at in names) for part, names in PARTS.items()}
        parts["rest"] = estimate.seconds - sum(parts.values())
        reason_texts = [reason_text(reason, language) for reason in reasons]
        names = _names(estimate, job, language)
        sure = _sure(estimate, current or result.best[0], result.best[0], language)
        entries.append(Ranked(place, estimate, is_current, sure, *names, parts, reason_texts))
    return entries


def _sure(estimate: Estimate, current: Estimate, first: Estimate, language: str) -> str:
    """How sure an order is: of a layout with the one on screen, of that with the first; empty of a
    layout with itself."""
    words = "sure_first" if _is_same(estimate, current) else "sure_yours"
    pair = (first, estimate) if words == "sure_first" else (estimate, current)
    if _is_same(*pair):
        return ""
    share = order_of(*pair).share
    if share < 0.5 and words == "sure_yours":
        words, share = "sure_slower", 1 - share
    return TRAFFIC[words][language].format(share=share_text(share))


def _is_same(estimate: Estimate, other: Estimate) -> bool:
    one, two = estimate.request, other.request
    return (one.split, one.training) == (two.split, two.training)


def _is_before(estimate: Estimate, other: Estimate) -> bool:
    """Whether the first ranks before the second: it fits and the other does not, or it is
    faster."""
    lacks = [0.0 if each.fits else each.fit.needed for each in (estimate, other)]
    return (lacks[0], estimate.seconds) <= (lacks[1], other.seconds)


def _names(estimate: Estimate, job: SearchJob, language: str) -> tuple[str, list[str]]:
    """The sizes, and the other options."""
    say, request = saying(TRAFFIC, language), estimate.request
    split, training = request.split, request.training
    names = ["tp", "cp", "pp", *(["vpp"] if split.vpp > 1 else []), "dp"]
    names += ["ep", "etp"] if job.model.experts and job.expert else []
    rest = [say("with_samples", count=training.micro_batch)]
    if training.group_size and training.rule.grouped:
        rest.append(say("with_groups", count=training.group_size))
    if training.recompute != "none":
        rest.append(_recomputed(training.recompute, language))
    if training.ep_overlap:
        rest.append(say("with_overlap"))
    if training.instances > 1:
        rest.append(say("with_copies", count=training.instances))
    if split.account:
        rest.append(say("with_account"))
    if split.spread != "equal":
        rest.append(say("with_nearly") if split.spread == "nearly" else split.spread)
    return " ".join(f"{name}{getattr(split, name)}" for name in names), rest


def _recomputed(recompute: str, language: str) -> str:
    """What is recomputed, as part of a sentence; modules by their number, as lines are short: a tip
    lists them."""
    if recompute in WORDS:
        return TRAFFIC[f"with_{recompute}"][language]
    return TRAFFIC["with_modules"][language].format(count=len(modules_of(recompute)))


def _row(entry: Ranked, longest: float, context: Context) -> Markup:
    say, estimate = saying(TRAFFIC, context.language), entry.estimate
    seconds = {part: seconds_text(each) for part, each in entry.parts.items()}
    title = ", ".join(f"{say(f'part_{part}')} {each}" for part, each in seconds.items())
    shares = (
        tag("span", class_=f"search-{part}", style=f"width:{100 * each / longest:.1f}%")
        for part, each in entry.parts.items()
    )
    measured = measured_text(context) if entry.is_current else ""
    bar = tag("span", *shares, class_="search-bar", role="img", aria_label=title, title=title)
    held: str = entry.memory(context.language)
    memory = held if estimate.verdict == FITS else tag("span", held, class_=estimate.verdict)
    stage = tag("small", say("stage", stage=estimate.fit.stage))
    name = entry.sizes if entry.is_current else _opener(estimate, entry.sizes, context)
    reasons = (tag("li", reason) for reason in entry.reasons)
    again = estimate.request.training.recompute
    modules = None if again in WORDS else value_text("recompute", again, context.language)
    return row(
        together(entry.place, tag("small", say("on_screen")) if entry.is_current else ""),
        cell(name, tag("small", dotted(*entry.rest), title=modules), class_="search-name"),
        # On a phone a cell says which column it is of.
        cell(
            about(estimate, context.language),
            bar,
            tag("small", use_short(use_of(estimate), context.language), class_="search-used"),
            tag("small", entry.sure, class_="search-sure"),
            tag("small", measured),
            data_label=say("column_step"),
        ),
        cell(memory, " ", stage, data_label=say("column_memory")),
        cell(tag("ul", *reasons), class_="search-why"),
        class_="current" if entry.is_current else None,
    )


def _opener(estimate: Estimate, name: str, context: Context) -> str | Markup:
    """A link to the layout; plain text if the page would refuse it."""
    try:
        resolve(state := context.state.changed(changes_to(estimate, context.state)))
    except LayoutError:
        return name
    return form.opener(to_query(state), name)


def changes_to(estimate: Estimate, state: State) -> Document:
    """The changes of the state that show a layout of the search."""
    request = estimate.request
    split, training = request.split, request.training
    changes = {
        "tp": split.tp,
        "cp": split.cp,
        "pp": split.pp,
        "ep": split.ep,
        "etp": "" if split.etp == split.tp else str(split.etp),
        "vpp": "" if split.vpp == 1 else str(split.vpp),
        "group_size": str(training.group_size or ""),
        "account": split.account,
        **dict.fromkeys(("first_layers", "last_layers", "pipe_layout"), ""),
        "spread": "" if split.spread == "equal" else split.spread,
        # The same samples in a step as on this page, however they are said here.
        "global_batch": str(request.global_batch),
        "micro_batches": "",
        "micro_batch": "" if training.micro_batch == 1 else str(training.micro_batch),
        "recompute": training.recompute,
        "ep_overlap": "on" if training.ep_overlap else "",
        "instances": str(training.instances),
    }
    if typed_layout(state):  # which is for as many stages as it says
        changes["layers"] = str(request.model.layers)
    if state.schedule != training.schedule:
        changes["schedule"] = ""
    return changes


# -- files ---------------------------------------------------------------------------------------


@of_server(served_pictures)
def search_pictures(context: Context) -> Pictures:
    """The ten best layouts and the one on screen; empty if none is valid."""
    language, say = context.language, saying(TRAFFIC, context.language)
    job = context.trained.job(context.layout)
    result = search(job)
    if not result.best:
        return []
    entries = ranked(job, result, on_screen(context)[0], language)
    longest = max(entry.estimate.seconds for entry in entries)
    rows = []
    for entry in entries:
        name = _in_two_lines((entry.sizes, *entry.rest))
        shares = ((COLOURS[part], each / longest) for part, each in entry.parts.items())
        place = entry.place + (f"\n{say('on_screen')}" if entry.is_current else "")
        step = f"{about(entry.estimate, language)}\nMFU {use_of(entry.estimate).mfu():.1%}"
        numbers = (step, BarCell(tuple(shares)), entry.memory(language))
        rows.append((place, name, *numbers, "\n".join(entry.reasons[:SLIDE_REASONS])))
    names = ("place", "layout", "step", "", "memory", "reasons")
    heads = tuple(say(f"column_{name}") if name else "" for name in names)
    current = next((at for at, entry in enumerate(entries) if entry.is_current), -1)
    legend = tuple((colour, say(f"part_{part}")) for part, colour in COLOURS.items())
    table = Table("search", heads, rows)
    return [("", TableChart(table, current, flexible=(1, 5), legend=legend))]


def _in_two_lines(parts: Sequence[str]) -> str:
    """Parts on two lines that are as short as can be, the samples beside the sizes.

    >>> _in_two_lines(("tp2 pp4", "micro-batch 1", "whole layers recomputed", "uneven stages"))
    'tp2 pp4 · micro-batch 1\\nwhole layers recomputed · uneven stages'
    """
    first, rest = parts[:2], parts[2:]
    ways = []
    for beside in itertools.product((False, True), repeat=len(rest)):
        up = (*first, *(part for part, is_up in zip(rest, beside) if is_up))
        down = [part for part, is_up in zip(rest, beside) if not is_up]
        ways.append((" · ".join(up), " · ".join(down)))
    return "\n".join(min(ways, key=lambda lines: max(map(len, lines)))).rstrip()


@of_server(served_summary)
def search_summary(context: Context) -> str:
    job = context.trained.job(context.layout)
    lines = _job_text(context, job, search(job)), measured_text(context)
    return joined([line for line in lines if line], context.language)


VIEW = View(
    "search",
    "better",
    search_html,
    search_pictures,
    TRAFFIC["search_title"],
    search_summary,
    place=1,
    endpoints=(better_layouts,),
    commands=("search",),
)
