"""The groups as a table, as text to copy, and as files."""

from __future__ import annotations

import csv
import io
from functools import cache

import numpy as np
from markupsafe import Markup, escape

from descriptions import PAGE
from formats.documents.exports import plain_cell, spanned, spend_on_groups
from groups.audit import spans_of, spans_of_groups
from groups.grouping import Grouping
from groups.kept import kept
from request.answers.groups import lists_of
from request.context import Context
from request.hosts import placement_or_none
from request.units import SHORTENED, ranks_text

from ..base.form import copyable
from ..base.hosts import hosts_cell, hosts_head
from ..base.html import TableCell, button, cell, fold, row, table, tag, together

ROWS = 32
"""The most groups of one kind that the page lists; files have all of them."""

MEMBERS = 256
"""The largest group whose ranks the list to copy writes in full."""


def details_html(context: Context) -> Markup:
    """The table and the list of the first groups of each kind."""
    language, placement = context.language, placement_or_none(context)
    gpus = context.layout.gpus_per_node
    rows, lines, most = [], [], 0
    names, clicks, indices, members, machines, others, end = _row_pattern().split("%s")
    for grouping in context.visible:
        start, shown = f"{names}{escape(grouping.name)}{clicks}", grouping.leading(ROWS)
        most = max(most, grouping.num_groups)
        if placement:
            spans = spans_of_groups(shown, placement.nodes)
        else:
            spans = node_spans(grouping, gpus)[:ROWS]
        if isinstance(shown, np.ndarray) and grouping.size <= MEMBERS:
            shown = shown.tolist()  # all that is written
        for index, (ranks, nodes) in enumerate(zip(shown, spans.tolist())):
            listed = ranks_text(ranks)
            hosts = "".join(hosts_cell(placement, ranks)) if placement else ""
            rows.append(
                f"{start}{ranks[0]}{indices}{index}{members}{listed}"
                f"{machines}{nodes}{others}{hosts}{end}"
            )
            written = listed if len(ranks) <= SHORTENED else ranks_text(ranks, MEMBERS)
            lines.append(f"{grouping.name} group {index}: [{written}]")
    heads = [PAGE[f"column_{name}"][language] for name in ("kind", "group", "ranks", "nodes")]
    heads += hosts_head(placement, language)
    more = PAGE["more_rows"][language].format(shown=ROWS, total=f"{most:,}") if most > ROWS else ""
    note = tag("p", more, class_="more") if more else ""
    listed = table(heads, [Markup("".join(rows))])
    copied = copyable("\n".join(lines), language, "copy")
    return together(
        fold(PAGE["group_table"][language], note, listed, kind="groups"),
        fold(PAGE["list"][language], note, copied, kind="list"),
    )


@kept
def node_spans(grouping: Grouping, gpus_per_node: int) -> np.ndarray:
    """The number of nodes that each group spans, for the facts and the table."""
    return spans_of(grouping, gpus_per_node)


@cache
def _row_pattern() -> str:
    """A row of the table with % placeholders: kind, first rank, index, ranks, nodes, other cells.

    A click on the index shows the group in the picture: arrow keys reach it there.
    """
    lead = button("%s", class_="opener", tabindex=-1, data_set={"rank": "%s"})
    ranks = cell("%s", class_="ranks")
    return str(row(cell("%s"), lead, ranks, cell("%s"), TableCell("%s")))


def groups_text(context: Context) -> str:
    """All visible groups, one per line.

    >>> from request.state import State
    >>> print(groups_text(Context.of(State(group_type="tp", nodes=1, gpus_per_node=4, pp=1))))
    # tp2-cp1-dp2-pp1
    tp group 0: [0, 1]
    tp group 1: [2, 3]
    <BLANKLINE>
    """
    spend_on_groups(context.visible)
    lines = [f"# {context.layout.mesh}"]
    for grouping in context.visible:
        for index, ranks in enumerate(lists_of(grouping)):
            lines.append(f"{grouping.name} group {index}: {ranks}")
    return "\n".join(lines) + "\n"


def groups_csv(context: Context) -> str:
    """All visible groups as CSV: kind, group, nodes_spanned, ranks (joined by spaces), and hosts
    as host:device where machines are named."""
    spend_on_groups(context.visible)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    placement = placement_or_none(context)
    writer.writerow(["kind", "group", "nodes_spanned", "ranks", *(["hosts"] if placement else [])])
    for grouping in context.visible:
        nodes = spanned(context.layout, grouping, placement)
        for index, (ranks, count) in enumerate(zip(lists_of(grouping), nodes)):
            hosts = [plain_cell(" ".join(placement.where(ranks)))] if placement else []
            writer.writerow([grouping.name, index, count, " ".join(map(str, ranks)), *hosts])
    return out.getvalue()
