"""Tables of the ranks that came last and of the chain of waiting back to its origin."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from markupsafe import Markup

from descriptions import SLOW_DOING
from diagnosis.slow import Slowness
from diagnosis.slow.model import SlowGroup
from request.units import ranges_text, seconds_text

from ..base import form
from ..base.html import chips, fold, numbered, rest_text, table, tag, together
from .seen import SeenSlow
from .words import say_of

ROWS = 12
"""The most rows of the table, and links of the chain."""


class LastRow(NamedTuple):
    """A rank in one group, over all steps: how often it came last of so many calls; the seconds
    that all others then waited in a step, and its delay after their median."""

    rank: int
    group: SlowGroup
    times: int
    calls: int
    waited: float
    late: float


def last_rows(slow: Slowness) -> list[LastRow]:
    """The rows, those with most waiting first."""
    calls: dict[int, int] = defaultdict(int)
    sums: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for row in slow.waits:
        calls[row.group] += row.calls
        for last in row.lasts:
            one = sums[last.rank, row.group]
            one[0] += last.times
            one[1] += last.waited_us
            one[2] += last.late_us * last.times
    steps = max(1, len({row.step for row in slow.waits}))
    rows = [
        LastRow(rank, slow.groups[group], int(times), calls[group], waited / steps / 1e6,
                late / max(1.0, times) / 1e6)
        for (rank, group), (times, waited, late) in sums.items()
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -row.waited)


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
