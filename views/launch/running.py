"""The process groups that a running rank reports, beside the layout on screen."""

from __future__ import annotations

from itertools import islice

from markupsafe import Markup

from descriptions import PAGE
from formats.launch import Parsed
from groups.layout import Layout, framework_name
from groups.running import Running, read_running
from request.answers.running import compared
from request.named.launch import pasted_changes
from request.resolve import sizes_text
from request.state import State
from request.units import ranges_text
from request.words import saying

from ..base import form
from ..base.html import cell, fold, heads_of, numbered, rest_text, row, table, tag, together
from ..parts.differences import SHOWN, differences_html


def running_html(layout: Layout, state: State, text: Parsed, language: str) -> Markup:
    """The running layout with a button that opens it, if it is not the one on screen, and its
    groups."""
    say, running = saying(PAGE, language), read_running(text.text)
    ran = text.job().layout()
    facts = {"rank": running.rank, "world": f"{running.world:,}"}
    facts |= {"sizes": sizes_text(ran), "framework": framework_name(ran.framework)}
    comparison, differing = compared(running, layout, language)
    changes = pasted_changes(state, text)
    use = form.setter(changes, say("use_pasted")) if changes else ""
    return together(
        tag(
            "div",
            tag("p", say("running_layout", **facts), " ", comparison),
            tag("p", use, class_="fixes") if use else "",
            class_="verdict",
            role="status",
        ),
        differences_html(differing, language),
        _groups(running, language),
    )


def _groups(running: Running, language: str) -> Markup:
    """The groups of the rank in the order of their creation, with size and stride."""
    heads = heads_of(
        PAGE, "running_name running_kind running_size running_strides running_members", language
    )
    rows = (
        row(
            cell(tag("code", one.name)),
            one.kind or "–",
            f"{len(one.ranks):,}",
            "–" if not one.spread else ", ".join(f"{stride:,}" for stride, _ in one.spread),
            ranges_text(sorted(one.ranks)),
        )
        for one in islice(running.named, SHOWN)
    )
    title = numbered(
        PAGE["running_groups"][language].format(rank=running.rank), len(running.named), language
    )
    rest = rest_text(len(running.named) - SHOWN, language)
    return fold(title, table(heads, rows), tag("p", rest) if rest else "", is_open=True)
