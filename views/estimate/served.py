"""The view of a server's speed: a sentence, the curve with the chosen point, what a step takes."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import SPEED
from formats.documents.tables import Table
from groups import LayoutError
from render.draw.server import draw_tile
from render.draw.speed import draw_speed
from render.files.tables import BarCell, TableChart
from render.palette import fill_of
from render.scenes.server import Segment, Tile
from render.svg.marks import scene_svg
from request.answers.served.speed import serving_job, speed_of
from request.answers.served.words import (
    causes,
    head_text,
    job_text,
    moved_bytes,
    near_text,
    requests_text,
    rest_text,
    run_cells,
    verdict_text,
)
from request.context import Context
from request.fixes import fixes_of
from request.units import bytes_text, seconds_text
from request.words import saying
from training.serving.layouts import ServedLayout
from training.serving.runs import ServedRun, runs_alone

from ..base.html import (
    Told,
    explained,
    fine,
    heading,
    heads_of,
    scrolling,
    share_bar,
    table,
    table_html,
    tag,
    together,
)
from ..base.problems import problem_html
from ..base.view import Pictures
from ..parts.load import load_inputs
from ..parts.speed import chart_of

COLOURS = {
    **{"weights": "kept0", "cache": "step0", "compute": "kept4"},
    **{"messages": "#e0a100", "overhead": "kept3"},
}
"""The fill of each part of a step, that of memory where it is memory that is read."""


def served_html(context: Context) -> Markup:
    say = saying(SPEED, context.language)
    how = fine(explained(say("body"), context.language))
    return together(
        heading(say("title")),
        load_inputs(context),
        tag("div", _answered(context), how, class_="estimate speed"),
    )


def _answered(context: Context) -> Markup:
    """The answer; where it is not told, why, and what was measured alone."""
    try:
        return _answer(context)
    except LayoutError as error:
        if not error.code.startswith("speed-"):
            return problem_html(error, context.language, fixes_of(error, context))
        return together(problem_html(error, context.language, error.alternatives), _alone(context))


def _alone(context: Context) -> Markup:
    """Measured runs of the model on these GPUs, of kinds that the law does not tell."""
    language, asked = context.language, serving_job(context)
    title = tag("h3", SPEED["alone_title"][language])
    runs = runs_alone(asked.machine.id, asked.name, asked.load)
    return together(title, runs_table(runs, language) if runs else SPEED["alone_none"][language])


def runs_table(runs: Sequence[ServedRun], language: str) -> Markup:
    heads = heads_of(SPEED, "layout load tpot first source", language)
    return table(heads, (run_cells(run, language) for run in runs), "served-runs")


def _answer(context: Context) -> Markup:
    language, say, found = context.language, saying(SPEED, context.language), speed_of(context)
    chart, head = chart_of(found, language), head_text(found, language)
    most, least = (requests_text(found.curve[at][0], language) for at in (-1, 0))
    label = say("curve_label", least=least, most=most)
    drawn = Markup(scene_svg("cloud speed-chart", chart, draw_speed(chart, "page"), label))
    return together(
        tag(
            "p",
            tag("b", head),
            " ",
            rest_text(context, found),
            class_="about",
        ),
        tag("p", job_text(context, found)),
        tag("h3", say("curve_title")),
        fine(say("curve_body")),
        scrolling("scroll", drawn),
        table_html(parts_table(found, language), "estimate-parts"),
        _gpus(found, language),
        tag("ul", *(tag("li", line) for line in causes(found, language)), class_="fine"),
        tag("p", say("first", seconds=seconds_text(found.speed.first))),
        _near(found, language),
    )


def parts_table(found: ServedLayout, language: str) -> Table:
    """The parts of a step, the longest first, with what each GPU reads and sends for them."""
    say, speed, moved = saying(SPEED, language), found.speed, moved_bytes(found)
    rows = []
    for name, seconds in sorted(speed.parts.items(), key=lambda part: -part[1]):
        if not seconds:
            continue
        share = seconds / speed.seconds
        text = f"{100 * share:.1f}%"
        size = moved.get(name, 0.0)
        words = "sends" if name == "messages" else "reads"
        told = say(words, size=bytes_text(size)) if size else ""
        bar = Told(text, together(text, share_bar(share)))
        rows.append((say(f"part_{name}"), seconds_text(seconds), bar, told))
    heads = [say(name) for name in ("part", "seconds", "share", "moved")]
    return Table("speed", heads, rows)


def _near(found: ServedLayout, language: str) -> Markup:
    """The measured runs that are nearest, with their source."""
    say, runs = saying(SPEED, language), found.speed.runs
    title = tag("h3", say("near_title"))
    if not runs:
        return together(title, tag("p", near_text(found, language)))
    return together(title, tag("p", near_text(found, language)), runs_table(runs, language))


MOST_TILES = 8
"""The most GPUs of a server that are drawn: they all do alike."""


def tiles_of(found: ServedLayout, language: str) -> list[Tile]:
    """The GPUs of one server, each with the parts of its step, what it reads and what it sends."""
    say, speed, moved = saying(SPEED, language), found.speed, moved_bytes(found)
    bar = tuple(Segment(COLOURS[name], speed.parts[name] / speed.seconds) for name in COLOURS)
    read = say("reads", size=bytes_text(moved["weights"] + moved["cache"]))
    sent = say("sends", size=bytes_text(moved["messages"]))
    lines = (read, sent) if moved["messages"] else (read,)
    shown = range(min(found.server.gpus, MOST_TILES))
    return [Tile(say("gpu_tile", rank=rank), bar, lines=lines) for rank in shown]


def _gpus(found: ServedLayout, language: str) -> Markup:
    """The GPUs of one server with what a step does on each."""
    say, tiles = saying(SPEED, language), tiles_of(found, language)
    drawn = (
        tag("span", Markup(scene_svg("speed-gpu", tile, draw_tile(tile, "page"), tile.name)))
        for tile in tiles
    )
    keys = (
        tag("li", say(f"part_{name}"), style=f"--part:{fill_of(colour, 'page')}")
        for name, colour in COLOURS.items()
        if found.speed.parts[name]
    )
    others = found.asked.gpus - len(tiles)
    more = fine(say("gpus_more", count=f"{others:,}")) if others else ""
    return together(
        tag("h3", say("gpus_title")),
        fine(say("gpus_body")),
        tag("div", *drawn, class_="speed-gpus"),
        tag("ul", *keys, class_="memory-legend"),
        more,
    )


# -- files -----------------------------------------------------------------------------------------


def served_pictures(context: Context) -> Pictures:
    """The parts of a step as bars, and the curve."""
    language, found = context.language, speed_of(context)
    parts = parts_table(found, language)
    each = sorted(found.speed.parts.items(), key=lambda part: -part[1])
    most = each[0][1]
    bars = [BarCell(((COLOURS[name], size / most),)) for name, size in each if size]
    rows = [(*row, bar) for row, bar in zip(parts.rows, bars)]
    drawn = TableChart(Table("speed", [*parts.columns, ""], rows))
    return [("", drawn), (SPEED["curve_title"][language], chart_of(found, language))]


def served_summary(context: Context) -> str:
    return verdict_text(context, speed_of(context))
