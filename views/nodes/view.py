"""The Nodes view: which groups fit into a node or an NVLink domain, and which cross its border."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from markupsafe import Markup

from descriptions import HOSTS_WORDS, PAGE, RUN, counted, joined
from groups.audit import DOMAINS, LATENCY_BOUND, Span, span, spans_by_size
from groups.grouping import Grouping
from groups.layout import Layout
from groups.placement import Placement
from render.files.tables import BarCell, TableChart
from render.palette import own_tone

from ..base.context import Context, Pictures, View
from ..base.html import (
    TableCell,
    button,
    cell,
    chip,
    fine,
    intro,
    row,
    saying,
    table,
    tag,
    together,
)
from ..base.resolve import AUTO, main_groupings
from ..hosts.inputs import placement_or_none


def nodes_html(context: Context) -> str:
    """Every group of more than one rank, on nodes and on NVLink domains of other sizes.

    Where the machines are named, what they stand in (racks, switches, domains) is a level too.
    """
    layout, language = context.layout, context.language
    placement = placement_or_none(context)
    if placement is None:
        return _plain(layout, language)
    hosts = counted(len(placement.hosts), "host", language)
    note = fine(PAGE["nodes_named"][language].format(hosts=hosts))
    return _table(audit_of(layout, placement), layout, language, note)


@lru_cache(maxsize=64)
def _plain(layout: Layout, language: str) -> Markup:
    return _table(audit_of(layout, None), layout, language)


@dataclass(frozen=True)
class Audit:
    """How groups stand on domains: of each kind its names and its spans, one a column.

    domains: GPUs of each kind of domain, the first columns; places: what named machines stand in;
    leads: of each row what shows one of its groups in the picture.
    """

    domains: tuple[int, ...]
    places: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], tuple[Span, ...]], ...]
    leads: tuple[dict[str, str], ...]

    def heads(self, layout: Layout, language: str) -> list[str]:
        heads = [PAGE[name][language] for name in ("column_kind", "column_size")]
        heads += [_domain_name(domain, layout, language) for domain in self.domains]
        return [*heads, *(level_name(kind, language) for kind in self.places)]


def audit_of(layout: Layout, placement: Placement | None) -> Audit:
    """Every group of more than one rank on every kind of domain."""
    node, domains = layout.gpus_per_node, sorted({layout.gpus_per_node, *DOMAINS})
    places = {} if placement is None else {n: placement.of_ranks(n) for n in placement.levels}
    rows, leads = [], []
    for names, grouping in same_groups(layout.every.values()):
        spans = spans_by_size(grouping, domains)
        if placement is not None:
            spans[domains.index(node)] = replace(span(grouping, placement.nodes), domain=node)
        spans += [span(grouping, of, kind) for kind, of in places.items()]
        rows.append((names, tuple(spans)))
        leads.append(lead_of(names, grouping, layout, spans[domains.index(node)]))
    return Audit(tuple(domains), tuple(places), tuple(rows), tuple(leads))


def lead_of(
    names: Sequence[str], grouping: Grouping, layout: Layout, nodes: Span
) -> dict[str, str]:
    """What shows the group on most nodes in the picture: a kind that is not there comes with it."""
    at = nodes.widest
    first = grouping.firsts()[at] if grouping.is_plain else grouping.groups()[at][0]
    drawn = {grouping.name for grouping in main_groupings(layout)}
    more = {} if drawn & set(names) else {"group_type": AUTO, "more": names[0]}
    return {"view": "groups", "rank": str(first), **more}


def _table(audit: Audit, layout: Layout, language: str, note: object = "") -> Markup:
    """A column for each size of domain, and for each kind of place that is named."""
    say, warned = saying(PAGE, language), warnings_of(audit, layout, language)
    items = (tag("li", warning) for warning in warned)
    return together(
        intro(say("nodes_title"), say("nodes_body"), language),
        note,
        tag("ul", *items, class_="warnings") if warned else fine(say("audit_fine")),
        table(
            audit.heads(layout, language),
            (audit_row(*row, lead, language) for row, lead in zip(audit.rows, audit.leads)),
            "audit",
        ),
    )


def same_groups(groupings: Iterable[Grouping]) -> list[tuple[tuple[str, ...], Grouping]]:
    """Names with their grouping; names that make the very same groups share a row.

    Groups of one rank, which carry nothing, are left out.
    """
    by_ranks: dict[object, tuple[list[str], Grouping]] = {}
    for grouping in groupings:
        if grouping.size > 1:
            key = grouping.spread or grouping
            by_ranks.setdefault(key, ([], grouping))[0].append(grouping.name)
    return [(tuple(names), grouping) for names, grouping in by_ranks.values()]


def level_name(kind: str, language: str) -> str:
    """A level as the page calls it; the source's own word where it has one of its own."""
    if kind == "node":
        return RUN["level_node"][language]
    word, _, number = kind.partition("-")
    if kind not in HOSTS_WORDS and word in HOSTS_WORDS and number.isdigit():
        return RUN["level_number"][language].format(
            level=HOSTS_WORDS[word][language], number=int(number) + 1
        )
    return HOSTS_WORDS[kind][language] if kind in HOSTS_WORDS else kind


def level_head(kind: str, language: str) -> str:
    """A level over a column; a source's own word stays as it is written.

    >>> level_head("switch", "en"), level_head("su", "en")
    ('Switch', 'su')
    """
    name = level_name(kind, language)
    return name[0].upper() + name[1:] if kind in HOSTS_WORDS else name


def chips(names: Iterable[str]) -> Markup:
    """The names of one group, each in its own tone."""
    return Markup(" ").join(chip(name, f"t-{own_tone(name) or 'tp'}") for name in names)


def audit_row(
    names: tuple[str, ...], spans: Sequence[Span], lead: dict[str, str], language: str
) -> Markup:
    """How the groups of some names stand on each kind of domain; their number leads to one."""
    count = counted(spans[0].groups, "group", language)
    groups = button(count, class_="opener", data_set=lead, data_tip=PAGE["audit_lead"][language])
    size = cell(f"{spans[0].size:,}", Markup("<br>"), tag("small", groups), class_="extent")
    return row(chips(names), size, *(_cell(names, span, language) for span in spans))


def share_bar(share: float) -> Markup:
    return tag("span", class_="bar", style=f"--share:{100 * share:.1f}%")


def _cell(names: tuple[str, ...], reach: Span, language: str) -> TableCell:
    """A bar of the share that crosses, and the same in words."""
    text = crossing_text(reach, language)
    slow = " slow" if is_slow(names, reach) else ""
    state = "cross" if reach.crossing else "stay"
    return cell(share_bar(reach.crossing / reach.groups), text, class_=state + slow)


def crossing_text(reach: Span, language: str) -> str:
    words = "stay" if not reach.crossing else "all" if reach.crossing == reach.groups else "some"
    facts = {
        "crossing": f"{reach.crossing:,}",
        "groups": f"{reach.groups:,}",
        "most": f"{reach.most:,}",
    }
    return PAGE[f"audit_{words}"][language].format(**facts)


def is_slow(names: Iterable[str], reach: Span) -> bool:
    """Whether any of the names that share these groups waits for its messages."""
    return reach.crossing > 0 and any(name in LATENCY_BOUND for name in names)


def warnings_of(audit: Audit, layout: Layout, language: str) -> list[str]:
    """A plain sentence for each kind that waits for its messages and leaves the node."""
    say, warnings = saying(PAGE, language), []
    for names, spans in audit.rows:
        node_span = next(span for span in spans if span.domain == layout.gpus_per_node)
        if is_slow(names, node_span):
            fits = [s.domain for s in spans if not s.crossing]
            said = say(
                "audit_warning_fits" if fits else "audit_warning",
                kind=" = ".join(names),
                crossing=f"{node_span.crossing:,}",
                groups=f"{node_span.groups:,}",
                nodes=counted(node_span.most, "node", language),
                domain=min(fits, default=0),
            )
            warnings.append(said)
    return warnings


def _domain_name(domain: int, layout: Layout, language: str) -> str:
    words = "audit_node" if domain == layout.gpus_per_node else "audit_domain"
    return PAGE[words][language].format(gpus=counted(domain, "gpu", language))


CROSSING, STAYING = "#d97706", "#94a3b8"
"""Colours of a bar in a file: groups that leave their domain, and those that stay."""

NAMES, COLUMNS = 3, 6
"""Names of one group, and kinds of domains, that a file has room for."""


def nodes_pictures(context: Context) -> Pictures:
    """A row a kind, a column a domain; nothing where every rank is alone."""
    layout, language = context.layout, context.language
    audit = audit_of(layout, placement_or_none(context))
    heads = audit.heads(layout, language)[: COLUMNS + 2]
    rows = []
    for names, spans in audit.rows:
        named = " ".join(names[:NAMES]) + (" …" if len(names) > NAMES else "")
        groups = counted(spans[0].groups, "group", language)
        crossing = []
        for reach in spans[:COLUMNS]:
            share = reach.crossing / reach.groups
            parts = ((CROSSING, share), (STAYING, 1 - share))
            crossing.append(BarCell(parts, crossing_text(reach, language)))
        rows.append((named, f"{spans[0].size:,}\n{groups}", *crossing))
    return [("", TableChart(tuple(heads), tuple(rows)))] if rows else []


def nodes_summary(context: Context) -> str:
    language = context.language
    audit = audit_of(context.layout, placement_or_none(context))
    warnings = warnings_of(audit, context.layout, language)
    return joined(warnings or [PAGE["audit_fine"][language]], language)


VIEW = View(
    "nodes",
    "see",
    nodes_html,
    nodes_pictures,
    PAGE["nodes_title"],
    nodes_summary,
    pins_locally=True,
)
