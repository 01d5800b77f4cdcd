"""The four numbers of a job, which lead through the page: who is grouped, memory, a step, traffic.

On the first screen each paints the picture (client/picture/lens.js); in other views it leads to the
view that explains it. What the model, the batch or the schedule does not allow has no number.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from descriptions import SHELL
from groups import LayoutError
from request.answers.estimate.measured import measured_of, measured_seconds
from request.answers.estimate.words import about
from request.answers.sentence import spoken
from request.answers.served.speed import numbers_of_server
from request.answers.served.words import ms, rate_text
from request.answers.traffic import rows_of
from request.context import Context, of_server
from request.trained import GIB
from request.units import bytes_text, count_text
from request.words import saying
from training.estimate import Use

from ..base.html import button, dotted, tag, together


@dataclass(frozen=True)
class Number:
    """A number: its value, what stands small beside it, what it is; is_over: of too much."""

    value: str
    of: tuple[str, ...]
    aside: str = ""
    is_over: bool = False


def grouped(context: Context) -> Number:
    """How many kinds of groups the selected GPU is in, and with how many others."""
    say, rank = saying(SHELL, context.language), context.rank
    sets = [one.members(rank) for _, one in spoken(context.layout)]
    others = len(np.unique(np.concatenate(sets))) - 1 if sets else 0
    words = ("number_groups", "number_groups_of")
    texts = (
        say(f"{word}{_count(count)}", count=f"{count:,}", rank=f"{rank:,}", others=f"{others:,}")
        for word, count in zip(words, (len(sets), others))
    )
    value, of = texts
    return Number(value, (of,))


def _count(number: int) -> str:
    return {0: "_none", 1: "_one"}.get(number, "")


def held(context: Context) -> Number:
    """The memory of the fullest GPU, of what it has."""
    say, capacity = saying(SHELL, context.language), context.trained.capacity
    needs = context.trained.estimate(context.layout).fit.needed
    value = say("number_memory", held=f"{needs / GIB:.1f}", most=f"{capacity / GIB:,.0f}")
    if needs <= capacity:
        return Number(value, (say("number_fits"),))
    over = say("number_full", over=f"{(needs - capacity) / GIB:,.1f}")
    return Number(value, (over,), is_over=True)


def stepped(context: Context) -> Number:
    """The seconds of a step with nine of ten real ones, its MFU and tokens a second."""
    say, language = saying(SHELL, context.language), context.language
    estimate = context.trained.estimate(context.layout)
    value, _, interval = about(estimate).rstrip(")").partition(" (")
    use = Use(estimate.request, estimate.seconds)
    of = [say("number_step"), f"{use.mfu():.0%} MFU"]
    of.append(say("number_tokens", tokens=count_text(use.tokens_per_second)))
    measured = measured_of(context)
    if measured is not None:
        interval = SHELL["number_beside"][language].format(
            interval=interval, measured=measured_seconds(measured, language)
        )
    return Number(value, tuple(of), interval)


def sent(context: Context) -> Number:
    """The bytes that leave their NVLink domain in a step, of all GPUs."""
    across = sum(row.across for row in rows_of(context.layout, context.trained))
    return Number(bytes_text(across), (SHELL["number_traffic"][context.language],))


def shared(context: Context) -> Number:
    """How many GPUs work on one request together, and how many such parts there are."""
    say, found = saying(SHELL, context.language), numbers_of_server(context)
    value = say(f"number_shared{_one(found.sharing)}", count=f"{found.sharing:,}")
    return Number(value, (say(f"number_shared_of{_one(found.parts)}", parts=f"{found.parts:,}"),))


def _one(number: int) -> str:
    return "_one" if number == 1 else ""


def cached(context: Context) -> Number:
    """The memory of a GPU without its cache, and the tokens for which all caches have room."""
    say, found = saying(SHELL, context.language), numbers_of_server(context)
    value = say(
        "number_memory",
        held=f"{found.held / GIB:.1f}",
        most=f"{found.capacity / GIB:,.0f}",
    )
    return Number(value, (say("number_cache_of", tokens=count_text(found.tokens)),))


def told(context: Context) -> Number:
    """The milliseconds of a token with its interval, and tokens a second of all servers."""
    say, found = saying(SHELL, context.language), numbers_of_server(context)
    if found.speed is None:
        raise found.refused or AssertionError("no speed and no refusal")
    speed = found.speed.speed
    rate, requests = rate_text(found.speed.rate), f"{found.speed.answered:,.0f}"
    of = (say("number_at_once", requests=requests), say("number_tokens", tokens=rate))
    value = say("number_token", ms=ms(speed.seconds))
    return Number(value, of, f"{ms(speed.low)}–{ms(speed.high)}")


def left(context: Context) -> Number:
    """The bytes that a node sends out for one token of every request."""
    found = numbers_of_server(context)
    return Number(bytes_text(found.leaves), (SHELL["number_leaves"][context.language],))


Row = tuple[str, str, Callable[[Context], Number]]

SERVES: tuple[Row, ...] = (
    ("", "groups", shared),
    ("memory", "memory", cached),
    ("token", "estimate", told),
    ("leaves", "nodes", left),
)
TRAINS: tuple[Row, ...] = (
    ("", "groups", grouped),
    ("memory", "memory", held),
    ("pipeline", "estimate", stepped),
    ("traffic", "traffic", sent),
)
"""Each number: what it colours the picture by, the view that explains it, and how it is found."""


@of_server(lambda _: SERVES)
def rows_for(_: Context) -> tuple[Row, ...]:
    return TRAINS


def numbers_html(context: Context, view: str) -> Markup:
    """The numbers as they stand in a view."""
    say = saying(SHELL, context.language)
    rows = rows_for(context)
    paints = view == "groups" and rows is TRAINS
    shown = (_number_html(context, row, view, paints) for row in rows)
    return tag("div", *shown, class_="numbers", role="group", aria_label=say("numbers"))


def _number_html(context: Context, row: Row, view: str, paints: bool) -> Markup:
    lens, leads, find = row
    say = saying(SHELL, context.language)
    unknown = next((one for one in (lens, leads) if f"number_unknown_{one}" in SHELL), "")
    number = Number(say("number_unknown"), (say(f"number_unknown_{unknown}"),) if lens else ())
    with suppress(LayoutError):  # the view itself says why
        number = find(context)
    is_first = not lens
    marks: dict[str, object] = {"tabindex": None if is_first else -1}
    if paints:
        marks |= {"data_lens": lens, "aria_pressed": str(is_first).lower()}
    else:
        marks |= {"data_set": {"view": leads}, "aria_current": "page" if leads == view else None}
    value = tag("b", number.value)
    aside = together(" ", tag("i", number.aside)) if number.aside else ""
    of = tag("small", dotted(*number.of))
    kind = "figure too-full" if number.is_over else "figure"
    return button(together(tag("span", value, aside), of), class_=kind, **marks)
