"""A server's own output about its memory, beside the calculated numbers."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import MEMORY, joined
from groups import LayoutError
from request.context import Context
from request.served import LogCheck, log_check
from request.words import saying
from training.serving.server import GIB

from ..base import form
from ..base.html import cell, table, tag, together
from ..base.problems import problem_html
from .stages import gib


def log_html(context: Context) -> Markup:
    """A box for the engine's output, and its numbers beside the calculated ones."""
    say, language = saying(MEMORY, context.language), context.language
    box = form.fields(form.area("engine_log", context.state, rows=3))
    answer: Markup | str = ""
    if context.state.engine_log:
        try:
            check = log_check(context)
        except LayoutError as error:
            answer = problem_html(error, language, [])
        else:
            answer = tag("p", say("log_none")) if check is None else _checked(check, language)
    return together(tag("h3", say("log_title")), box, answer)


def _checked(check: LogCheck, language: str) -> Markup:
    say = saying(MEMORY, language)
    sentences = []
    if check.deciding and len(check.log.ranks) > 1:
        name = check.deciding.name or say("log_nameless")
        sentences.append(say("log_decides", rank=name, cache=gib(check.deciding.cache)))
    exact = next((row for row in check.rows if row.what == "tokens_in"), None)
    if exact:
        words = "log_agrees" if exact.agrees else "log_differs"
        sentences.append(
            say(words, printed=f"{exact.printed:,.0f}", reckoned=f"{exact.reckoned:,.0f}")
        )
    rows = [
        (
            say(f"log_{row.what}"),
            _amount(row.what, row.printed),
            _amount(row.what, row.reckoned),
            cell(_difference(row.printed, row.reckoned)),
        )
        for row in check.rows
    ]
    heads = [say(f"log_column_{name}") for name in ("what", "printed", "reckoned", "off")]
    return together(
        tag("p", joined(sentences, language), class_="log-says") if sentences else "",
        table(heads, rows, "memory-zero"),
    )


def _amount(what: str, number: float) -> str:
    if what == "tokens_in":
        return f"{number:,.0f}"
    return f"{number:,.2f}" if what in ("requests", "share") else f"{number / GIB:,.2f} GiB"


def _difference(printed: float, reckoned: float) -> str:
    return "=" if printed == reckoned else f"{100 * (reckoned / printed - 1):+.1f}%"
