"""How groups span nodes, domains and the levels above them, as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from descriptions import HOSTS_WORDS, PAGE, RUN, counted, joined
from formats.documents.tables import Table
from groups.audit import DOMAINS, LATENCY_BOUND, Span, span, spans_by_size
from groups.grouping import Grouping
from groups.layout import Layout
from groups.placement import Placement
from render.files.tables import BarCell, Cell, TableChart
from request.context import Context
from request.model import is_dense
from request.resolve import AUTO, main_groupings
from request.state import State

from ..base.html import (
    button,
    cell,
    chips,
    row,
    share_bar,
    table,
    tag,
)
from ..base.names import folding_names
from ..base.view import Pictures
from .waits import cost_of_waiting

CROSSING, STAYING = "#d97706", "#94a3b8"
"""Colours of bars in files: groups that leave their domain, and those that stay."""

NAMES, COLUMNS = 3, 6
"""The most names in a line, and the most kinds of domains, in a file."""


@dataclass(frozen=True)
class Audit:
    """How groups span domains, a column for each: first domains of a size, then places.

    rows: the names that make the very same groups, the spans of these, and what shows one of them
    in the picture.
    """

    node: int  # GPUs of one
    sizes: tuple[int, ...]
    places: tuple[str, ...]
    rows: list[tuple[list[str], list[Span], dict[str, str]]]
    waited: frozenset[str] = frozenset(LATENCY_BOUND)  # kinds that a layer waits for

    def heads(self, language: str) -> list[str]:
        heads = [PAGE[name][language] for name in ("column_kind", "column_size")]
        for size in self.sizes:
            words = PAGE["audit_node" if size == self.node else "audit_domain"][language]
            heads.append(words.format(gpus=counted(size, "gpu", language)))
        return [*heads, *(level_name(kind, language) for kind in self.places)]

    def table(
        self,
        heads: Iterable[str],
        layout: Layout,
        language: str,
        rare: Collection[str] = frozenset(),
    ) -> Markup:
        """A table of how groups span each kind of domain; their number is a button that shows one.

        rare: names that are folded, but for groups that are waited for beyond their node.
        """
        rows = []
        for names, spans, lead in self.rows:
            count, tip = counted(spans[0].groups, "group", language), PAGE["audit_lead"][language]
            groups = tag("small", button(count, class_="opener", data_set=lead, data_tip=tip))
            size = cell(f"{spans[0].size:,}", Markup("<br>"), groups, class_="extent")
            is_rare = all(name in rare for name in names)
            is_slow = any(self._is_slow(names, reach) for reach in spans)
            fold = {"class_": "folded"} if is_rare and not is_slow else {}
            cells = (self._cell(names, reach, language) for reach in spans)
            rows.append(row(chips(names, () if is_slow else rare), size, *cells, **fold))
        return folding_names(table(heads, rows, "audit"), rare, layout, language)

    def pictures(self, language: str) -> Pictures:
        """The table for files; empty if every rank is alone."""
        rows = list[tuple[Cell, ...]]()
        for names, spans, _ in self.rows:
            lines = (" ".join(names[at : at + NAMES]) for at in range(0, len(names), NAMES))
            groups = counted(spans[0].groups, "group", language)
            crossing = (
                crossing_bar(reach.crossing / reach.groups, _crossing_text(reach, language))
                for reach in spans[:COLUMNS]
            )
            rows.append(("\n".join(lines), f"{spans[0].size:,}\n{groups}", *crossing))
        heads = self.heads(language)[: COLUMNS + 2]
        return [("", TableChart(Table("audit", heads, rows)))] if rows else []

    def warnings(self, context: Context) -> list[str]:
        """For each latency-bound kind that leaves the node: how far, and the cost."""
        warnings, language = [], context.language
        for names, spans, _ in self.rows:
            reach = spans[self.sizes.index(self.node)]
            if self._is_slow(names, reach):
                fits = [span.domain for span in spans if not span.crossing]
                cost = [*cost_of_waiting(names, context), _holds(fits, language)]
                warnings.append(
                    PAGE["audit_warning"][language].format(
                        kind=" = ".join(names),
                        crossing=f"{reach.crossing:,}",
                        groups=f"{reach.groups:,}",
                        nodes=counted(reach.most, "node", language),
                        cost=joined(cost, language),
                    )
                )
        return warnings

    def _cell(self, names: Iterable[str], reach: Span, language: str) -> Markup:
        """A bar of the share that crosses, with its text."""
        state = "cross" if reach.crossing else "stay"
        kind = f"{state} slow" if self._is_slow(names, reach) else state
        bar = share_bar(reach.crossing / reach.groups)
        return cell(bar, _crossing_text(reach, language), class_=kind)

    def _is_slow(self, names: Iterable[str], reach: Span) -> bool:
        """Whether any of the names that share these groups is latency-bound and crosses."""
        return reach.crossing > 0 and not self.waited.isdisjoint(names)


def _holds(fits: Sequence[int], language: str) -> str:
    """The smallest domains that hold all groups, if any do."""
    words = PAGE["audit_holds" if fits else "audit_holds_none"][language]
    return words.format(domain=min(fits, default=0))


def waited_for(state: State) -> frozenset[str]:
    """Latency-bound kinds: cp too, if keys and values are gathered or exchanged before attention; a
    ring hides them. vLLM's ep, which is all of a stage, only for a model with experts.

    >>> sorted(waited_for(State(cp_algorithm="a2a")) - waited_for(State()))
    ['cp']
    """
    waited = {*LATENCY_BOUND, *(("cp",) if state.cp_algorithm in AT_ONCE else ())}
    if state.framework == "vllm" and is_dense(state):
        waited.discard("ep")
    return frozenset(waited)


AT_ONCE = ("all_gather", "a2a")
"""Methods of context parallelism that finish before attention begins (Transformer Engine's
names)."""


def audit_of(
    layout: Layout,
    placement: Placement | None,
    *,
    by_size: bool = True,
    waited: frozenset[str] = frozenset(LATENCY_BOUND),
) -> Audit:
    """Every group of more than one rank on nodes, domains of other sizes, and named places.

    by_size: whether there are columns of sizes; else the nodes are a column among the places.
    """
    node = layout.gpus_per_node
    sizes = sorted({node, *DOMAINS}) if by_size else []
    places = placement.by_level() if placement else {}
    nodes = places.pop("node", None) if by_size else None
    rows = []
    for names, grouping in same_groups(layout.every.values()):
        spans = spans_by_size(grouping, sizes)
        if nodes is not None:
            spans[sizes.index(node)] = replace(span(grouping, nodes), domain=node)
        spans += [span(grouping, of, kind) for kind, of in places.items()]
        on_nodes = spans[sizes.index(node) if by_size else 0]
        rows.append((names, spans, _lead(names, grouping, layout, on_nodes)))
    return Audit(node, tuple(sizes), tuple(places), rows, waited)


def _lead(names: Sequence[str], grouping: Grouping, layout: Layout, nodes: Span) -> dict[str, str]:
    """The change that shows in the picture the group on most nodes; it makes its kind visible."""
    at = nodes.widest
    first = grouping.firsts()[at] if grouping.is_plain else grouping.groups()[at][0]
    drawn = {grouping.name for grouping in main_groupings(layout)}
    more = {} if drawn & set(names) else {"group_type": AUTO, "more": names[0]}
    return {"view": "groups", "rank": str(first), **more}


def same_groups(groupings: Iterable[Grouping]) -> list[tuple[list[str], Grouping]]:
    """Names with their grouping; names of identical groups share a row.

    Groups of one rank, which carry nothing, are left out.
    """
    by_ranks: dict[object, tuple[list[str], Grouping]] = {}
    for grouping in groupings:
        if grouping.size > 1:
            key = grouping.spread or grouping
            by_ranks.setdefault(key, ([], grouping))[0].append(grouping.name)
    return list(by_ranks.values())


def level_name(kind: str, language: str) -> str:
    """The page's name of a level; for other levels the source's word."""
    if kind == "node":
        return RUN["level_node"][language]
    if kind in HOSTS_WORDS:
        return HOSTS_WORDS[kind][language]
    word, _, number = kind.partition("-")
    if word in HOSTS_WORDS and number.isdigit():
        level = HOSTS_WORDS[word][language]
        return RUN["level_number"][language].format(level=level, number=int(number) + 1)
    return kind


def level_head(kind: str, language: str) -> str:
    """The head of a level's column; for other levels the source's word.

    >>> level_head("switch", "en"), level_head("su", "en")
    ('Switch', 'su')
    """
    name = level_name(kind, language)
    return name[0].upper() + name[1:] if kind in HOSTS_WORDS else name


def _crossing_text(reach: Span, language: str) -> str:
    words = "stay" if not reach.crossing else "all" if reach.crossing == reach.groups else "some"
    facts = {name: f"{getattr(reach, name):,}" for name in ("crossing", "groups", "most")}
    return PAGE[f"audit_{words}"][language].format(**facts)


def crossing_bar(share: float, text: str) -> BarCell:
    return BarCell(((CROSSING, share), (STAYING, 1 - share)), text)
