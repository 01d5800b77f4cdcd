"""A better order of the machines: its gain, its machines, the groups of each kind, and launcher
files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import cycle, groupby
from typing import TypeVar

from markupsafe import Markup

from descriptions import LAUNCHER_NOTES, PAGE, RUN, close_up, counted, joined
from diagnosis.machines.hosts import Hosts
from diagnosis.machines.order import OBJECTIVES, TIME, BetterOrder, better_order
from formats.documents.tables import Table
from formats.hosts.launchers import launcher_files
from groups import LayoutError
from groups.errors import not_a_choice
from render.files.tables import BarCell, TableChart
from render.marks import shortened
from render.palette import PALETTE
from request.context import Context
from request.hosts import hosts_of
from request.state import is_empty
from request.units import ranks_text, seconds_text
from request.words import fix_label, saying

from ..base import form
from ..base.hosts import ROWS, notes_html, refused_html
from ..base.html import chips, fine, fold, share_bar, table, tag, together
from ..base.view import Pictures
from ..parts.levels import crossing_bar, level_name

MOST_NAMED, ROOM = 16, 80.0
"""The most machines that a file names in an order, and the width of their names in font sizes."""


def better_of(context: Context) -> BetterOrder | None:
    """The best order for the layout, by the seconds of a step if a model is selected; None if the
    machines' racks are unknown.

    Errors: as `diagnosis.machines.order.better_order`; and for an objective that the page has not.
    """
    hosts, objective, known = context.once(hosts_of), context.state.objective, (TIME, *OBJECTIVES)
    if not hosts or not hosts.racks:
        return None
    if objective not in known:
        raise not_a_choice("objective", objective, known)
    seconds = None
    if not is_empty(context.state.model):
        with suppress(LayoutError):  # views of the model say why
            seconds = context.trained.estimate(context.layout).parts
    return better_order(context.layout, hosts, objective, seconds)


def order_html(hosts: Hosts, context: Context) -> Markup:
    """A better order: its gain, its machines, the groups of each kind, and launcher files."""
    state, language = context.state, context.language
    say = saying(RUN, language)
    title = tag("h3", say("order_title"))
    choices = [(say(f"objective_{name[:2]}"), name) for name in (TIME, "dp-first", "pp-first")]
    box = form.fields(form.choice("objective", state, choices))
    try:
        better = context.once(better_of)
    except LayoutError as error:
        return together(title, refused_html(error, state), box)
    if better is None:
        return together(title, fine(say("order_needs_racks")))
    fixes: list[object] = []
    if not better.is_kept:
        racks = state.hosts if is_empty(state.racks) else state.racks
        changes = {"hosts": "\n".join(better.names), "racks": racks}
        fixes.append(form.setter(changes, say("use_order")))
    for fix in better.fixes:  # layouts that mend what no order can
        label = tag("span", say(f"fix_{fix.place}", kind=fix.kind))
        fixes += [label, " ", form.setter(fix.changes, fix_label(fix.changes, language))]
    heads, rows = _crossings(better, language, lambda share, text: together(share_bar(share), text))
    verdict = (tag("p", order_text(better, context)), tag("p", *fixes, class_="fixes"))
    return together(
        title,
        tag("div", *verdict, class_="verdict"),
        _machines(better, hosts.racks, language),
        table(heads, ((chips([kind]), *cells) for kind, cells in rows), "audit"),
        notes_html(better.reasons, "reasons", language),
        box,
        _files(better, language),
    )


def order_text(better: BetterOrder, context: Context) -> str:
    """The gain of the order: groups in several racks, seconds, and what crosses above the racks."""
    language, say = context.language, saying(RUN, context.language)

    def counts(*keys: Iterable[int]) -> str:
        levels = zip(better.objective.split(", "), *keys)
        phrases = (
            f"{level} {before:,}" + (f" → {after:,}" if before != after else "")
            for level, before, after in levels
            if before or after
        )
        return PAGE["and_list"][language].join(phrases) or "0"

    words = [
        say(
            "order_kept" if better.is_kept else "order_better",
            moved=counted(better.moved, "host", language),
            counts=counts(better.key_before, better.key),
        )
    ]
    if better.costs:
        seconds = map(seconds_text, (better.cost_before, better.cost))
        waits, model = " → ".join(dict.fromkeys(seconds)), context.trained.name(language)
        words.append(close_up(say("order_seconds", model=model, waits=waits)))
    for upper in better.upper:
        level = level_name(upper.kind, language)
        words.append(say("order_above", level=level, counts=counts(upper.key_before, upper.key)))
    return joined(words, language)


def _orders(better: BetterOrder, language: str) -> list[tuple[str, tuple[str, ...]]]:
    """The machines in their own order, and in the better one if that differs."""
    orders = {"order_before": better.names_before, "order_after": better.names}
    shown = [*orders.items()][: 1 if better.is_kept else 2]
    return [(RUN[words][language], names) for words, names in shown]


def _machines(better: BetterOrder, racks: Mapping[str, str], language: str) -> Markup:
    """The machines in both orders, each with its rack."""
    first = dict.fromkeys(racks[host] for host in better.names_before)
    colours = {rack: f"--rack:var(--g{at % len(PALETTE)})" for at, rack in enumerate(first)}
    parts = []
    for words, names in _orders(better, language):
        items = [
            tag("li", name, tag("small", racks[name]), class_="rack", style=colours[racks[name]])
            for name in names[:ROWS]
        ]
        if len(names) > ROWS:
            items.append(tag("li", f"+ {len(names) - ROWS:,}"))
        listed = tag("ol", *items, class_="machines")
        parts.append(tag("figure", tag("figcaption", words), listed))
    return tag("div", tag("div", *parts), class_="pair")


Bar = TypeVar("Bar")


def _crossings(
    better: BetterOrder, language: str, bar: Callable[[float, str], Bar]
) -> tuple[list[str], list[tuple[str, list[str | Bar]]]]:
    """A table of the groups of each kind that span several racks, before and after.

    bar: a cell with a share of all groups, and its words.
    """
    say = saying(RUN, language)
    names = ["column_leave", "column_before", "column_after", "column_least"]
    names += ["column_seconds_before", "column_seconds_after"] if better.costs else []
    rows = []
    for kind in better.kinds:
        cells = list[str | Bar]()
        for count in (kind.leave_node, kind.before, kind.after, kind.least):
            text = say("of_groups", count=f"{count:,}", groups=f"{kind.groups:,}")
            cells.append(bar(count / max(1, kind.groups), text))
        if better.costs:
            each = better.costs.get(kind.kind, 0.0)
            cells += [seconds_text(each * count) for count in (kind.before, kind.after)]
        rows.append((kind.kind, cells))
    return [PAGE["column_group"][language], *map(say, names)], rows


def _files(better: BetterOrder, language: str) -> Markup:
    """The file of each launcher, to copy, with a remark."""
    parts = []
    for name, text in launcher_files(better.names, better.gpus_per_node).items():
        lines = text.splitlines(keepends=True)
        text = "".join(lines[:20_000]) + ("...\n" if len(lines) > 20_000 else "")
        note = LAUNCHER_NOTES["openmpi" if name == "rankfile" else name][language]
        copied = form.copyable(text, language)
        parts.append(fold(RUN[f"file_{name}"][language], fine(note), copied))
    return together(tag("h3", RUN["order_files"][language]), *parts)


def order_pictures(better: BetterOrder, racks: Mapping[str, str], language: str) -> Pictures:
    """For files: the racks of the machines in their order, and the groups that span several of
    them."""
    first = dict.fromkeys(racks[host] for host in better.names_before)
    colours = dict(zip(first, cycle(PALETTE)))
    strips = []
    for words, names in _orders(better, language):
        runs = ((rack, len([*of])) for rack, of in groupby(names, racks.__getitem__))
        parts = tuple((colours[rack], count / len(names)) for rack, count in runs)
        strips.append((words, BarCell(parts, shortened(ranks_text(names, MOST_NAMED), ROOM))))
    has_legend = len(first) <= len(PALETTE)
    legend = tuple((colours[rack], shortened(rack, ROOM)) for rack in first if has_legend)
    machines = TableChart(Table("order", ("", RUN["hosts_list"][language]), strips), legend=legend)
    heads, rows = _crossings(better, language, crossing_bar)
    several = (kind for kind in better.kinds if kind.groups < len(names) * better.gpus_per_node)
    named = {kind.kind for kind in several}  # whose groups are of more than one rank
    crossing = [(kind, *cells) for kind, cells in rows if kind in named]
    return [("", machines), ("", TableChart(Table("order", heads, crossing)))]
