"""The Nodes view: the groups that fit into a node, an NVLink domain or what named machines stand
in, and those that cross its border; and the machines by name."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import PAGE, RUN, counted, joined
from request.answers.hosts import better_order, read_hosts, slow_groups
from request.answers.nodes import node_audit
from request.context import Context
from request.hosts import placement_or_none
from request.words import saying

from ..base.html import (
    explained,
    fine,
    heading,
    tag,
    together,
)
from ..base.names import rare_names
from ..base.problems import or_refused
from ..base.view import Pictures, View
from ..parts.levels import audit_of, waited_for
from .machines import hosts_pictures, hosts_slide, hosts_summary, machines_html
from .map import map_html, map_pictures, map_slide


def nodes_html(context: Context) -> Markup:
    """Every group of more than one rank, on nodes and on NVLink domains of other sizes.

    Where the machines are named, what they stand in (racks, switches, domains) is a level too.
    """
    layout, language = context.layout, context.language
    say, placement, note = saying(PAGE, language), placement_or_none(context), Markup()
    if placement is not None:
        hosts = counted(len(placement.hosts), "host", language)
        note = fine(say("nodes_named", hosts=hosts))
    audit = audit_of(layout, placement, waited=waited_for(context.state))
    warnings = audit.warnings(context)
    answer, *others = warnings or [_fine(context)]
    items = (tag("li", warning) for warning in others)
    answers = tag("ul", tag("li", answer), class_="warnings") if warnings else tag("p", answer)
    drawn = or_refused(context, map_html)
    spans = audit.table(audit.heads(language), context.layout, language, rare_names(context))
    rest: tuple[Markup | str, ...] = (
        tag("ul", *items, class_="warnings") if others else "",
        note,
        fine(explained(say("nodes_body"), language)),
    )
    machines = machines_html(context)
    parts: tuple[Markup | str, ...]
    if context.state.view != "hosts":
        parts = (drawn, spans, *rest, machines)
    elif placement is None:
        parts = (machines, drawn, spans, *rest)
    else:
        parts = (spans, machines, drawn, *rest)
    return together(heading(say("nodes_title"), answers), *parts)


def nodes_pictures(context: Context) -> Pictures:
    """The map, then a table of kinds by domains; empty if every rank is alone."""
    table = audit_of(context.layout, placement_or_none(context)).pictures(context.language)
    return [*map_pictures(context), *table] if table else []


def nodes_summary(context: Context) -> str:
    language = context.language
    waited = waited_for(context.state)
    audit = audit_of(context.layout, placement_or_none(context), waited=waited)
    return joined(audit.warnings(context) or [_fine(context)], language)


VIEW = View(
    "nodes",
    "layout",
    nodes_html,
    nodes_pictures,
    PAGE["nodes_title"],
    nodes_summary,
    slide=map_slide,
    place=2,
    endpoints=(node_audit, read_hosts, better_order, slow_groups),
    commands=("audit", "order", "slow"),
)

ALSO = (
    View(
        "hosts",
        "layout",
        nodes_html,
        hosts_pictures,
        RUN["hosts_title"],
        hosts_summary,
        hosts_slide,
        within="nodes",
        place=3,
    ),
)
"""Its machines, which were a view."""


def _fine(context: Context) -> str:
    """The sentence if no latency-bound group leaves its node."""
    waited = waited_for(context.state)
    names = ", ".join(name for name in ("tp", "cp", "ep", "etp") if name in waited)
    if not context.layout.made_by.has_grids:
        names = ", ".join(name for name in context.layout.every if name in waited)
    return PAGE["audit_fine"][context.language].format(names=names)
