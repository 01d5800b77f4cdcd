"""Better layouts of servers: all that the engine accepts on these GPUs, the best for a target."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from descriptions import SPEED, counted, joined
from formats.documents.tables import Table
from formats.values import Document
from groups import LayoutError
from render.draw.speed import draw_speed
from render.files.tables import TableChart
from render.svg.marks import scene_svg
from request.answers.served.api import command_of
from request.answers.served.speed import search_of, serving_job, speed_of
from request.answers.served.words import (
    ENGINES,
    layout_text,
    ms,
    rate_text,
    requests_text,
    tpot_text,
)
from request.context import Context
from request.fixes import fixes_of
from request.link import to_query
from request.resolve import fields_of_job, resolve
from request.state import State
from request.words import saying, sentence
from training.serving.layouts import ServedLayout, ServedSearch

from ..base import form
from ..base.html import (
    cell,
    explained,
    fine,
    fold,
    heading,
    heads_of,
    row,
    scrolling,
    table,
    tag,
    together,
)
from ..base.problems import or_refused, problem_html
from ..base.view import Pictures
from ..parts.load import load_inputs
from ..parts.speed import front_of, is_same

COLUMNS = "place layout step user gpu fits start"


def served_html(context: Context) -> Markup:
    language, say = context.language, saying(SPEED, context.language)
    how = fine(explained(say("body"), language))
    return together(
        heading(say("search_title")),
        load_inputs(context),
        tag("div", or_refused(context, _answer), how, class_="search speed"),
    )


def _answer(context: Context) -> Markup:
    language, say, found = context.language, saying(SPEED, context.language), search_of(context)
    current, why = on_screen(context)
    head = tag("div", tag("p", searched_text(context, found)), class_="traffic-job")
    if not found.best:
        return together(head, tag("p", say("none")), why, _refused(found, language))
    listed = ranked(found, current)
    rows = [_row(context, place, each, is_own) for place, each, is_own in listed]
    chart = front_of(found, current, language)
    label = joined((_point(found, at, language) for at in range(len(found.front))), language)
    drawn = Markup(scene_svg("cloud speed-chart", chart, draw_speed(chart, "page"), label))
    return together(
        head,
        why,
        tag("h3", say("front_title")),
        fine(say("front_body")),
        scrolling("scroll", drawn),
        table(heads_of(SPEED, COLUMNS, language), rows, "search-table served-best"),
        fine(say("alike")),
        _refused(found, language),
    )


def on_screen(context: Context) -> tuple[ServedLayout | None, Markup]:
    """The layout on screen; or why its speed is not told."""
    try:
        return speed_of(context), Markup()
    except LayoutError as error:
        return None, problem_html(error, context.language, fixes_of(error, context))


def searched_text(context: Context, found: ServedSearch) -> str:
    """What was searched, for which target."""
    language, say, asked = context.language, saying(SPEED, context.language), serving_job(context)
    lengths = {"prompt": f"{asked.load.prompt:,.0f}", "answer": f"{asked.load.answer:,.0f}"}
    if asked.bound:
        target = say("target_bound", ms=ms(asked.bound), **lengths)
    else:
        requests = requests_text(asked.load.requests, language)
        target = say("target_requests", requests=requests, **lengths)
    text = say(
        "searched",
        tried=f"{found.tried:,}",
        engine=ENGINES.get(asked.serving.engine, asked.framework),
        gpus=counted(asked.gpus, "gpu", language),
        machine=asked.machine.name,
        target=target,
    )
    return text if found.complete else joined((text, say("incomplete")), language)


def ranked(
    found: ServedSearch, current: ServedLayout | None
) -> list[tuple[str, ServedLayout, bool]]:
    """The best layouts with their places, and the one on screen where it stands among them, or
    last."""
    listed = [
        (str(at), each, current is not None and is_same(each, current))
        for at, each in enumerate(found.best, 1)
    ]
    if current is not None and not any(is_own for *_, is_own in listed):
        listed.append(("–", current, True))
    return listed


def _row(context: Context, place: str, each: ServedLayout, is_own: bool) -> Markup:
    language, say = context.language, saying(SPEED, context.language)
    name = layout_text(each)
    command = command_of(each, context.state)
    engine = ENGINES[each.asked.serving.engine]
    starts = fold(engine, form.copyable(command, language)) if command else "–"
    fits = requests_text(each.fits, language)
    step = tpot_text(each.speed, language, "tpot_range")
    return row(
        together(place, tag("small", say("on_screen")) if is_own else ""),
        cell(name if is_own else _opener(each, name, context), class_="search-name"),
        cell(step, data_label=say("column_step")),
        cell(
            say("rate", rate=rate_text(each.speed.user_rate)),
            tag("small", requests_text(each.answered, language)),
            data_label=say("column_user"),
        ),
        cell(
            say("rate", rate=rate_text(each.gpu_rate)),
            tag("small", say("rate", rate=rate_text(each.rate))),
            data_label=say("column_gpu"),
        ),
        cell(fits, data_label=say("column_fits")),
        cell(starts, data_label=say("column_start")),
        class_="current" if is_own else None,
    )


def _opener(each: ServedLayout, name: str, context: Context) -> str | Markup:
    """A link to the layout; plain text if the page would refuse it."""
    try:
        resolve(state := context.state.changed(changes_to(each, context.state)))
    except LayoutError:
        return name
    return form.opener(to_query(state), name)


def changes_to(each: ServedLayout, state: State) -> Document:
    """The fields of the state that show a layout of the search."""
    fields = fields_of_job(each.job)
    return {name: value for name, value in fields.items() if value != getattr(state, name)}


def _point(found: ServedSearch, at: int, language: str) -> str:
    point = found.front[at]
    return SPEED["front_point"][language].format(
        name=layout_text(found.best[point.place]),
        requests=requests_text(point.requests, language),
        user=rate_text(point.user_rate),
        gpu=rate_text(point.gpu_rate),
    )


def _refused(found: ServedSearch, language: str) -> Markup | str:
    """What the engine, the model or the law refuses, each reason once with how many layouts."""
    if not found.refused:
        return ""
    say = saying(SPEED, language)
    reasons = sorted(found.refused.items(), key=lambda item: -item[1])
    items = (
        say("refused", count=f"{count:,}", why=sentence(found.errors[code], language))
        for code, count in reasons
    )
    return fold(say("refused_title"), tag("ul", *(tag("li", item) for item in items)))


# -- files -----------------------------------------------------------------------------------------


def served_pictures(context: Context) -> Pictures:
    """The best layouts with the one on screen, and the front of their curves."""
    language, found = context.language, search_of(context)
    if not found.best:
        return []
    current, _ = on_screen(context)
    listed = ranked(found, current)
    heads = heads_of(SPEED, "place layout step user gpu fits", language)
    rows: list[Sequence[object]] = []
    for place, each, is_own in listed:
        mark = f"\n{SPEED['on_screen'][language]}" if is_own else ""
        rates = (f"{rate_text(one)}" for one in (each.speed.user_rate, each.gpu_rate))
        fits = requests_text(each.fits, language)
        rows.append(
            (place + mark, layout_text(each), tpot_text(each.speed, language), *rates, fits)
        )
    marked = next((at for at, (*_, is_own) in enumerate(listed) if is_own), -1)
    drawn = TableChart(Table("speed", heads, rows), marked, flexible=(1,))
    return [("", drawn), (SPEED["front_title"][language], front_of(found, current, language))]


def served_summary(context: Context) -> str:
    """The best layout in a sentence."""
    language, found = context.language, search_of(context)
    if not found.best:
        return SPEED["none"][language]
    best = found.best[0]
    return SPEED["summary_search"][language].format(
        name=layout_text(best), tpot=tpot_text(best.speed, language), all=rate_text(best.rate)
    )
