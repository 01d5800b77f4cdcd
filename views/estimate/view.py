"""The Step time view: the estimate, its parts, the nearest measured runs, the error by source."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np
from markupsafe import Markup

from descriptions import ESTIMATE, MACHINE, close_up, counted, joined
from formats.documents.tables import Table
from render.files.tables import BarCell, TableChart, draw_points
from render.palette import KIND_MARKS, WAITING
from render.scenes.charts import PointsChart
from render.svg.marks import scene_svg
from request.answers.estimate.api import NEAREST
from request.answers.estimate.api import estimate as estimate_endpoint
from request.answers.estimate.measured import measured_text
from request.answers.estimate.words import (
    KINDS,
    about,
    fit_text,
    lacks_text,
    part_name,
    use_of,
    use_short,
)
from request.answers.pipeline.step import step_of
from request.answers.served.api import server_speed
from request.context import Context, of_server
from request.units import seconds_text
from request.words import saying
from training.clusters import machine_of
from training.estimate import Estimate, MeasuredRun, error_table, runs, sources
from training.model import Model
from training.parameters import active_parameters

from ..base.html import (
    Told,
    chips,
    explained,
    fine,
    fold,
    heading,
    heads_of,
    left_out_html,
    scrolling,
    share_bar,
    table,
    table_html,
    tag,
    together,
)
from ..base.problems import or_refused
from ..base.view import Pictures, View
from ..parts.step import source_html
from ..parts.zooms import axis_pictures, zooms_html
from .served import served_html, served_pictures, served_summary
from .used import used_html


@of_server(served_html)
def estimate_html(context: Context) -> Markup:
    say, language = saying(ESTIMATE, context.language), context.language
    answer = list[Markup]()
    body = or_refused(context, partial(_answer, answer=answer))
    head = heading(say("title"), *answer)
    return together(
        zooms_html(context), head, tag("div", body, _errors(language), class_="estimate")
    )


def _answer(context: Context, answer: list[Markup]) -> Markup:
    """The parts and where they come from; ``answer`` takes the sentence that answers the view."""
    language, say = context.language, saying(ESTIMATE, context.language)
    estimate = context.once(step_of)
    near = estimate.nearest(NEAREST)
    cloud = cloud_of(estimate, near, language)
    label = say("cloud_label", about=about(estimate, language))
    drawn = Markup(scene_svg("cloud", cloud, draw_points(cloud, "page"), label))
    job = job_text(estimate, context.trained.name(language), language)
    steps = filter(None, (say("about", about=about(estimate, language)), measured_text(context)))
    answer.append(tag("p", tag("b", " · ".join(steps)), " ", job, class_="about"))
    fits = tag("p", fit_text(estimate, language))
    far = tag("p", say("far" if estimate.lacks else "close", lacks=lacks_text(estimate, language)))
    falls, used = used_html(context, estimate)
    here = (tag("h3", say("cloud_title")), fine(say("cloud_body")), scrolling("scroll", drawn))
    return together(
        _pair(parts_html(estimate, language), together(source_html(context), used, fits, far)),
        _pair(tag("div", *here), tag("div", *falls)),
        _nearest(near, language),
    )


def _pair(picture: Markup, beside: Markup) -> Markup:
    """A picture with what is said of it at its side."""
    return tag("div", picture, tag("div", beside), class_="estimate-pair")


def job_text(estimate: Estimate, model: str, language: str) -> str:
    """The model, GPUs and batch of the step."""
    request = estimate.request
    sentence = ESTIMATE["job"][language].format(
        model=model,
        gpus=counted(request.gpus, "gpu", language),
        cluster=request.machine.name,
        batch=counted(request.global_batch, "sample", language),
        tokens=f"{request.model.sequence:,}",
    )
    return close_up(sentence)


def visible_parts(estimate: Estimate) -> list[tuple[str, float]]:
    """The parts of a step that are shown, with their seconds, the longest first."""
    parts = sorted(estimate.parts.items(), key=lambda item: -item[1])
    return [(name, seconds) for name, seconds in parts if seconds >= 0.0005 * estimate.seconds]


def parts_table(estimate: Estimate, language: str) -> Table:
    """The parts of a step, for page and slide."""
    rows = []
    for name, seconds in visible_parts(estimate):
        part, share = part_name(name, language), seconds / estimate.seconds
        if name in KINDS:
            part = Told(f"{part} {name}", together(part, " ", chips([name])))
        text = f"{100 * share:.1f}%"
        rows.append((part, seconds_text(seconds), Told(text, together(text, share_bar(share)))))
    return Table("estimate", heads_of(ESTIMATE, "part seconds share", language), rows)


def parts_html(estimate: Estimate, language: str) -> Markup:
    return table_html(parts_table(estimate, language), "estimate-parts")


def _nearest(near: Sequence[MeasuredRun], language: str) -> Markup:
    known = sources()
    rows = (
        (
            each.model,
            _layout(each),
            f"{each.arguments.gpus:,} × {_gpu(each)}",
            each.arguments.precision.upper(),
            seconds_text(each.seconds or 0),
            known[each.source]["name"],
        )
        for each in near
    )
    heads = heads_of(ESTIMATE, "model layout gpus numbers measured source", language)
    title = tag("h3", ESTIMATE["nearest_title"][language])
    return together(title, table(heads, rows, "estimate-nearest"))


def _gpu(run: MeasuredRun) -> str:
    """The GPU of a run, from the name of its cluster: H100 of dgx-h100."""
    return re.sub(r"^[dh]gx-|-nvl\d+$", "", machine_of(run.arguments.cluster).id).upper()


def _layout(run: MeasuredRun) -> str:
    arguments = run.arguments
    sizes = {name: getattr(arguments, name) for name in ("tp", "cp", "pp", "vpp", "ep")}
    text = " ".join(f"{name}{size}" for name, size in sizes.items() if size > 1) or "dp"
    return f"{text} · {arguments.global_batch:,} × {arguments.sequence:,}"


def _errors(language: str) -> Markup:
    """The error by source: of the fit, of a fit without that kind of source, and of memory."""
    shares = ("step", "step90", "cover", "unseen_step", "unseen_step90")
    heads = heads_of(ESTIMATE, "group runs error error90 cover unseen unseen90", language)
    steps, memory = [], []
    for row in error_table():
        group = _group(row["group"], language)
        steps.append((group, f"{int(row['runs']):,}", *(_percent(row[name]) for name in shares)))
        if row["held"]:
            memory.append((group, *(_percent(row[name]) for name in ("held", "holds"))))
    return fold(
        ESTIMATE["errors_title"][language],
        tag("p", explained(ESTIMATE["body"][language], language)),
        tag("p", ESTIMATE["errors_body"][language]),
        table(heads, steps, "estimate-errors"),
        tag("p", ESTIMATE["errors_memory"][language]),
        table(heads_of(ESTIMATE, "group error cover", language), memory, "estimate-errors"),
        left_out_html((ESTIMATE[f"limit_{number}"] for number in range(1, 5)), language),
    )


def _percent(share: str) -> str:
    return f"{100 * float(share):.0f}%" if share else "–"


def _group(name: str, language: str) -> str:
    """The name of a source, the same in all languages, or of several sources."""
    several = {"all": "group_all", "all but Playbook": "group_all_but"}.get(name)
    if several:
        return ESTIMATE[several][language]
    return f"arXiv:{name}" if re.fullmatch(r"\d{4}\.\d{5}", name) else name


# -- "you are here" ------------------------------------------------------------------------------

ACROSS, UP = (8.3, 12.1), (0.6, 3.7)
"""The ranges of both axes, as powers of ten."""

BILLIONS = (0.3, 1, 3, 10, 30, 100, 300, 1000)
TERAFLOPS = (10, 30, 100, 300, 1000, 3000)
CLOUD = ("across", "up", "here", "peers", "others", "near")


def share(value: float, axis: tuple[float, float]) -> float:
    """The position of a value on an axis, from 0 to 1; values outside are at an end.

    >>> share(10.0, (0.0, 2.0)), share(1e9, (0.0, 2.0))
    (0.5, 1.0)
    """
    low, high = axis
    return min(1.0, max(0.0, (math.log10(value) - low) / (high - low)))


def spot(model: Model, tokens: int, gpus: int, *steps: float) -> tuple[float, ...]:
    """The position of a run: across, its active parameters; up, floating point operations per
    second and GPU (six per parameter and token, arXiv:2001.08361 section 2.1)."""
    active = active_parameters(model)
    speeds = (6.0 * active * tokens / (seconds * gpus) for seconds in steps)
    return share(active, ACROSS), *(share(speed / 1e12, UP) for speed in speeds)


def _of_run(run: MeasuredRun) -> tuple[float, float]:
    arguments = run.arguments
    tokens = arguments.global_batch * arguments.sequence
    x, y = spot(run.shape, tokens, arguments.gpus, run.seconds or math.inf)
    return x, y


@lru_cache(maxsize=8)
def _places(family: str) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the runs with a step time: those on other GPUs, and those on a family."""
    good = [run for run in runs() if run.seconds and run.counts and run.status == "ok"]
    is_peer = np.array([machine_of(run.arguments.cluster).family == family for run in good])
    places = np.array([_of_run(run) for run in good])
    return places[~is_peer], places[is_peer]


def cloud_of(estimate: Estimate, near: Sequence[MeasuredRun], language: str) -> PointsChart:
    """The runs and the layout on screen as a scatter chart."""
    request = estimate.request
    family, steps = request.machine.family, (estimate.seconds, estimate.low, estimate.high)
    tokens = request.global_batch * request.model.sequence
    return PointsChart(
        *_places(family),
        near=tuple(_of_run(each) for each in near if each.seconds),
        here=spot(request.model, tokens, request.gpus, *steps),  # type: ignore[arg-type]
        across=tuple((share(n * 1e9, ACROSS), f"{n:g}B" if n < 1000 else "1T") for n in BILLIONS),
        up=tuple((share(n, UP), f"{n:,}") for n in TERAFLOPS),
        words={name: ESTIMATE[f"cloud_{name}"][language] for name in CLOUD},
    )


# -- files ---------------------------------------------------------------------------------------

COLOURS = {"compute": "#475569", "bubble": WAITING["light"]} | {
    kind: KIND_MARKS["light"][kind] for kind in KINDS
}
"""The colour of each part of a step; OTHERS for the rest."""

OTHERS = "#94a3b8"


@of_server(served_pictures)
def estimate_pictures(context: Context) -> Pictures:
    """The parts as bars, the longest first; the measured runs as a scatter chart."""
    language = context.language
    estimate = context.once(step_of)
    parts = parts_table(estimate, language)
    longest = [(COLOURS.get(name, OTHERS), each) for name, each in visible_parts(estimate)]
    most = longest[0][1]
    bars = (BarCell(((colour, each / most),)) for colour, each in longest)
    rows = [(*row, bar) for row, bar in zip(parts.rows, bars)]
    drawn = TableChart(replace(parts, columns=[*parts.columns, ""], rows=rows))
    cloud = cloud_of(estimate, estimate.nearest(NEAREST), language)
    measured = ESTIMATE["cloud_title"][language], cloud
    return [("", drawn), *axis_pictures(context), measured]


@of_server(served_summary)
def estimate_summary(context: Context) -> str:
    """The seconds of a step and its parts."""
    language = context.language
    estimate = context.once(step_of)
    head = ESTIMATE["about"][language].format(about=about(estimate, language))
    job = job_text(estimate, context.trained.name(language), language)
    whole = ESTIMATE["whole"][language].format(about=head[:1].upper() + head[1:], job=job)
    used = MACHINE["sentence"][language].format(text=use_short(use_of(estimate), language))
    sentences = used, measured_text(context), fit_text(estimate, language)
    return joined((whole, *filter(None, sentences)), language)


VIEW = View(
    "estimate",
    "step",
    estimate_html,
    estimate_pictures,
    ESTIMATE["title"],
    estimate_summary,
    place=1,
    endpoints=(estimate_endpoint, server_speed),
    commands=("estimate",),
)
