"""What of the Nodes view goes into files: which groups leave which domain, as a table."""

from __future__ import annotations

from descriptions import PAGE, counted, joined

from ..base.context import Context
from ..base.view import Pictures
from ..hosts.inputs import placement_or_none
from .view import audit_of, crossing_text, warnings_of

NAMES, COLUMNS = 3, 6
"""Names of one group, and kinds of domains, that a file has room for."""


def nodes_pictures(context: Context) -> Pictures:
    """A row a kind, a column a domain; nothing where every rank is alone."""
    from render.files.tables import TableChart

    layout, language = context.layout, context.language
    audit = audit_of(layout, placement_or_none(context))
    heads = audit.heads(layout, language)[: COLUMNS + 2]
    rows = []
    for names, spans in audit.rows:
        named = " ".join(names[:NAMES]) + (" …" if len(names) > NAMES else "")
        groups = counted(spans[0].groups, "group", language)
        crossing = [crossing_text(one, language).replace(", ", "\n") for one in spans[:COLUMNS]]
        rows.append((named, f"{spans[0].size:,}\n{groups}", *crossing))
    return [("", TableChart(tuple(heads), tuple(rows)))] if rows else []


def nodes_summary(context: Context) -> str:
    """What waits for messages between nodes."""
    language = context.language
    audit = audit_of(context.layout, placement_or_none(context))
    warnings = warnings_of(audit, context.layout, language)
    return joined(warnings or [PAGE["audit_fine"][language]], language)
