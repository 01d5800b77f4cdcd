"""The Step time view: the estimate, its parts, the nearest measured runs, the error by source."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from descriptions import ESTIMATE, TRAFFIC
from render.files.tables import BarCell, TableChart
from render.palette import KIND_MARKS
from training.estimate import Estimate, MeasuredRun, error_table, sources

from ..base.context import Context, Pictures, View
from ..base.fixes import or_refused
from ..base.html import fine, intro, saying, scrolling, table, tag, together
from ..base.units import seconds_text
from ..nodes.view import chips
from .cloud import cloud_of, cloud_svg
from .words import KINDS, about, lacks_text

NEAREST = 5
"""Measured runs that are shown."""


def estimate_html(context: Context) -> str:
    say, language = saying(ESTIMATE, context.language), context.language
    head, body = intro(say("title"), say("body"), language), or_refused(context, _answer)
    return together(head, tag("div", body, _errors(language), class_="estimate"))


def _answer(context: Context) -> Markup:
    language, say = context.language, saying(ESTIMATE, context.language)
    estimate = context.trained.estimate(context.layout)
    near = estimate.nearest(NEAREST)
    cloud = cloud_of(estimate, near, language)
    drawn = Markup(cloud_svg(cloud, say("cloud_label", about=about(estimate))))
    job = job_text(estimate, context.trained.name, language)
    return together(
        tag("p", tag("b", say("about", about=about(estimate))), " ", job, class_="about"),
        tag("p", say("far" if estimate.lacks else "close", lacks=lacks_text(estimate, language))),
        parts_html(estimate, language),
        tag("h3", say("cloud_title")),
        fine(say("cloud_body")),
        scrolling("scroll", drawn),
        _nearest(near, language),
    )


def job_text(estimate: Estimate, model: str, language: str) -> str:
    """What the step is one of: model, GPUs, batch."""
    request = estimate.request
    return ESTIMATE["job"][language].format(
        model=model,
        gpus=f"{request.gpus:,}",
        cluster=request.machine.name,
        batch=f"{request.global_batch:,}",
        tokens=f"{request.model.sequence:,}",
    )


def visible_parts(estimate: Estimate) -> list[tuple[str, float]]:
    """The parts of a step that are told, with their seconds, the longest first."""
    parts = sorted(estimate.parts.items(), key=lambda item: -item[1])
    return [(name, seconds) for name, seconds in parts if seconds >= 0.0005 * estimate.seconds]


def parts_html(estimate: Estimate, language: str) -> Markup:
    """What a step is made of: a row a part."""
    rows = []
    for name, seconds in visible_parts(estimate):
        share = f"{100 * seconds / estimate.seconds:.1f}"
        bar = tag("span", tag("span", style=f"width:{share}%"), class_="part-bar")
        waits = chips([name]) if name in KINDS else ""
        part = together(part_name(name, language), " " if waits else "", waits)
        rows.append((part, seconds_text(seconds), together(f"{share}%", bar)))
    return table(heads_of("part seconds share", language), rows, "estimate-parts")


def part_name(name: str, language: str) -> str:
    """A part of a step; of a wait without its kind."""
    return ESTIMATE[f"part_{'waits' if name in KINDS else name}"][language]


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
    heads = heads_of("model layout gpus numbers measured source", language)
    title = tag("h3", ESTIMATE["nearest_title"][language])
    return together(title, table(heads, rows, "estimate-nearest"))


def _gpu(run: MeasuredRun) -> str:
    """The GPU of a run, which its cluster is named after: H100 of dgx-h100."""
    return re.sub(r"^[dh]gx-|-nvl\d+$", "", run.arguments.cluster).upper()


def _layout(run: MeasuredRun) -> str:
    arguments = run.arguments
    sizes = {name: getattr(arguments, name) for name in ("tp", "cp", "pp", "vpp", "ep")}
    text = " ".join(f"{name}{size}" for name, size in sizes.items() if size > 1) or "dp"
    return f"{text} · {arguments.global_batch:,} × {arguments.sequence:,}"


def _errors(language: str) -> Markup:
    """The error by source: of the fit, and with that kind of source left out of it."""
    shares = ("step", "step90", "cover", "unseen_step", "unseen_step90")
    rows = []
    for row in error_table():
        runs = f"{int(row['runs']):,}"
        rows.append((_group(row["group"], language), runs, *(_percent(row[n]) for n in shares)))
    heads = heads_of("group runs error error90 cover unseen unseen90", language)
    return together(
        tag("h3", ESTIMATE["errors_title"][language]),
        tag("p", ESTIMATE["errors_body"][language]),
        table(heads, rows, "estimate-errors"),
        tag("h3", TRAFFIC["left_out"][language]),
        tag("ul", *(tag("li", part[language]) for part in LIMITS)),
    )


def _group(name: str, language: str) -> str:
    """The name of a source, which is the same in all languages, or of several."""
    several = {"all": "group_all", "all but Playbook": "group_all_but"}.get(name)
    if several:
        return ESTIMATE[several][language]
    return f"arXiv:{name}" if re.fullmatch(r"\d{4}\.\d{5}", name) else name


LIMITS = tuple(ESTIMATE[f"limit_{number}"] for number in range(1, 5))


def _percent(text: str) -> str:
    return f"{100 * float(text):.0f}%" if text else "–"


def heads_of(names: str, language: str) -> list[str]:
    return [ESTIMATE[f"column_{name}"][language] for name in names.split()]


COLOURS = {"compute": "#577de3", "bubble": "#a1a1aa"} | {
    kind: KIND_MARKS["light"][kind] for kind in KINDS
}
"""Of a part of a step; of what has none, OTHERS."""

OTHERS = "#64748b"


def estimate_pictures(context: Context) -> Pictures:
    """The parts as bars, the longest first; the measured runs as a cloud."""
    language = context.language
    estimate = context.trained.estimate(context.layout)
    parts = visible_parts(estimate)
    most = parts[0][1]
    rows = tuple(
        (
            part_name(name, language) + (f" {name}" if name in KINDS else ""),
            seconds_text(seconds),
            f"{100 * seconds / estimate.seconds:.1f}%",
            BarCell(((COLOURS.get(name, OTHERS), seconds / most),)),
        )
        for name, seconds in parts
    )
    heads = (*heads_of("part seconds share", language), "")
    cloud = cloud_of(estimate, estimate.nearest(NEAREST), language)
    return [("", TableChart(heads, rows)), (ESTIMATE["cloud_title"][language], cloud)]


def estimate_summary(context: Context) -> str:
    """How long a step takes, and of what."""
    language = context.language
    estimate = context.trained.estimate(context.layout)
    said = ESTIMATE["about"][language].format(about=about(estimate))
    job = job_text(estimate, context.trained.name, language)
    return ESTIMATE["whole"][language].format(about=said[:1].upper() + said[1:], job=job)


VIEW = View(
    "estimate", "step", estimate_html, estimate_pictures, ESTIMATE["title"], estimate_summary
)
