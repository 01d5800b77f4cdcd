"""Machines by name, a better order of the same, and measurements of their GPUs."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import HOSTS_WORDS, PAGE, RUN, counted
from diagnosis.machines.hosts import Hosts
from groups import LayoutError
from groups.layout import Layout
from groups.placement import Placement
from request.context import Context
from request.hosts import hosts_of, placement_here
from request.state import is_empty
from request.units import ranges_text
from request.words import saying

from ..base import form
from ..base.hosts import ROWS, notes_html, refused_html
from ..base.html import fine, fold, rest_text, table, tag, together
from ..base.view import Pictures
from ..parts.levels import audit_of, level_head, level_name
from .better import better_of, order_html, order_pictures, order_text
from .measures import measures_html, measures_pictures, measures_summary

MOST_OF_EXAMPLE = 512
"""The most machines of an example."""


SAID = ("hosts", "racks", "measures")
"""What is pasted of the machines."""


def machines_html(context: Context) -> Markup:
    """The machines of the text and a better order, or an example of it; then measurements. Open
    where something is said of them, and for links of the view that they were."""
    state, say = context.state, saying(RUN, context.language)
    is_asked = state.view == "hosts"
    is_said = not all(is_empty(getattr(state, name)) for name in SAID)
    try:
        hosts, placement = context.once(hosts_of), context.once(placement_here)
        body = _answer(hosts, placement, context) if hosts and placement else ""
    except LayoutError as error:
        body = refused_html(error, state)
    empty = tag("p", say("hosts_empty")) if is_empty(state.hosts) else ""
    boxes = [form.area(name, state, rows=3) for name in ("hosts", "racks")]
    example = _example(context, is_asked) if is_empty(state.hosts) else ""
    inputs = tag("div", *boxes, class_="fields two")
    parts = (empty, body, inputs, example, measures_html(context))
    title = say("machines")
    return fold(title, *parts, kind="own machines-of", is_open=is_asked or is_said)


def _example(context: Context, is_seen: bool) -> Markup:
    """Example names for the layout's machines, alternating between two racks, with what would be
    seen of them."""
    if context.layout.nodes > MOST_OF_EXAMPLE:
        return Markup()
    changes = dict(zip(("hosts", "racks"), example_of(context.layout), strict=True))
    if not is_seen:
        return tag("p", form.setter(changes, PAGE["example_use"][context.language]))
    shown = Context(context.layout, context.state.changed(changes))
    hosts, placement = shown.once(hosts_of), shown.once(placement_here)
    if hosts is None or placement is None:
        return Markup()
    parts = (fine(_summary(placement, context.language)), order_html(hosts, shown))
    return form.example(context.language, changes, *parts)


def example_of(layout: Layout) -> tuple[str, str]:
    """As many machines as the layout has, in the order of their names, alternating between two
    racks."""
    names = [f"gpu-{node:02}" for node in range(layout.nodes)]
    racks = [names[:1], names[1:]] if len(names) < 4 else [names[::2], names[1::2]]
    lines = (f"SwitchName=rack{at} Nodes={','.join(rack)}" for at, rack in enumerate(racks) if rack)
    return "\n".join(names), "\n".join(lines)


# -- what the text says --------------------------------------------------------------------------


def _answer(hosts: Hosts, placement: Placement, context: Context) -> Markup:
    language = context.language
    return together(
        fine(_summary(placement, language)),
        notes_html(hosts.remarks[:16], "warnings", language),
        order_html(hosts, context),
        _list(hosts, placement, language),
    )


def _summary(placement: Placement, language: str) -> str:
    """The number of machines, and of places of each level."""
    levels = ((len({*of.values()}), kind) for kind, of in placement.levels.items())
    places = PAGE["and_list"][language].join(_counted_level(*level, language) for level in levels)
    return RUN["hosts_said"][language].format(
        hosts=counted(len(placement.hosts), "host", language),
        gpus=counted(placement.world_size, "gpu", language),
        places=places or RUN["hosts_no_places"][language],
    )


def _counted_level(count: int, kind: str, language: str) -> str:
    """
    >>> _counted_level(2, "switch", "en"), _counted_level(1, "rack", "en")
    ('2 switches', '1 rack')
    """
    level = level_name(kind, language)
    if language == "en" and kind in HOSTS_WORDS:
        plural = "" if count == 1 else "es" if level.endswith("ch") else "s"
        return f"{count:,} {level}{plural}"
    return RUN["hosts_places"][language].format(count=f"{count:,}", level=level)


def _list(hosts: Hosts, placement: Placement, language: str) -> Markup:
    say = saying(RUN, language)
    ranks: dict[int, list[int]] = {}
    for rank, node in enumerate(placement.nodes.tolist()):
        ranks.setdefault(node, []).append(rank)
    heads = [say("column_host"), "GPU", say("column_slots")]
    heads += [level_head(kind, language) for kind in placement.levels]
    rows = []
    for node, host in enumerate(placement.hosts[:ROWS]):
        slots = say("slots_unsaid") if hosts.slots[host] is None else hosts.slots[host]
        places = (of.get(host, "–") for of in placement.levels.values())
        rows.append((tag("code", host), ranges_text(ranks.get(node, [])), slots, *places))
    more = rest_text(len(placement.hosts) - ROWS, language)
    return fold(say("hosts_list"), table(heads, rows), more)


# -- what goes into files ------------------------------------------------------------------------


def order_or_audit(context: Context) -> Pictures:
    """The better order of the machines, else the groups that leave one; empty without machines."""
    hosts, placement = context.once(hosts_of), context.once(placement_here)
    if hosts and (better := context.once(better_of)):
        return order_pictures(better, hosts.racks, context.language)
    audit = placement and audit_of(context.layout, placement, by_size=False)
    return audit.pictures(context.language) if audit else []


def hosts_pictures(context: Context) -> Pictures:
    return [*order_or_audit(context), *measures_pictures(context)]


def hosts_slide(context: Context) -> Pictures:
    """The measurements if there are any, else the order: a slide has no room for both."""
    return measures_pictures(context) or order_or_audit(context)


def hosts_summary(context: Context) -> str:
    placement = context.once(placement_here)
    if not is_empty(context.state.measures):
        return measures_summary(context)
    if better := context.once(better_of):
        return order_text(better, context)
    return _summary(placement, context.language) if placement else ""
