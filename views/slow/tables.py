"""Tables of the ranks that came last and of the chain of waiting back to its origin."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import SLOW_DOING
from request.answers.slow.lasts import last_rows
from request.answers.slow.seen import SeenSlow
from request.units import ranges_text, seconds_text

from ..base import form
from ..base.html import chips, fold, numbered, rest_text, table, tag, together
from .words import say_of

ROWS = 12
"""The most rows of the table, and links of the chain."""


def last_html(seen: SeenSlow, language: str) -> Markup | str:
    say, rows = say_of(language), last_rows(seen.slow)
    if not rows:
        return ""
    body = (
        (
            _gpu(seen, row.rank, language),
            together(chips([row.group.title]), " ", ranges_text(row.group.ranks, 8)),
            say("times_of", times=f"{row.times:,}", calls=f"{row.calls:,}"),
            seconds_text(row.late),
            seconds_text(row.waited),
        )
        for row in rows[:ROWS]
    )
    heads = [say(f"column_{name}") for name in ("gpu", "group", "last", "late", "waited_for")]
    title = numbered(say("last_title"), len(rows), language)
    more = rest_text(len(rows) - ROWS, language)
    return fold(title, table(heads, body, "slow-last"), more, is_open=True)


def _gpu(seen: SeenSlow, rank: int, language: str) -> Markup:
    """A GPU as a button that selects it."""
    line = seen.timeline_of(rank)
    changes = {"rank": rank, "slow_group": "" if line is None else str(line.group)}
    return form.setter(changes, say_of(language)("row_gpu", rank=rank))


def chain_html(seen: SeenSlow, language: str) -> Markup | str:
    """From the most expensive wait, link by link, back to its origin."""
    say, slow = say_of(language), seen.slow
    items = []
    for place, link in enumerate(seen.chain[:ROWS]):
        group = slow.groups[link.group]
        doing = SLOW_DOING[link.doing][language]
        sentence = say(
            "link_of_kind" if link.kind else "link",
            waited=seconds_text(link.waited_us / 1e6),
            kind=group.title,
            ranks=ranges_text(group.ranks, 8),
            op=link.op,
            rank=link.rank,
            doing=doing,
            of=link.kind,
        )
        items.append(tag("li", tag("b", place), " ", sentence))
    if not items:
        return ""
    return fold(say("chain_title"), tag("ol", *items, class_="hops"), is_open=True)
