"""The ranks whose groups differ between a running job and the one on screen."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import PAGE
from groups.running import Difference
from request.units import ranges_text

from ..base.html import fold, heads_of, numbered, rest_text, table, tag

SHOWN = 32
"""The most groups, and differences, that the page lists."""


def differences_html(found: list[Difference], language: str, *, is_open: bool = True) -> Markup:
    if not found:
        return Markup()
    heads = heads_of(PAGE, "running_rank running_kind running_ran running_meant", language)
    rows = (
        (str(one.rank), one.kind, ranges_text(one.ran) or "–", ranges_text(one.meant) or "–")
        for one in found[:SHOWN]
    )
    title = numbered(PAGE["running_differences"][language], len(found), language)
    rest = rest_text(len(found) - SHOWN, language)
    return fold(title, table(heads, rows), tag("p", rest) if rest else "", is_open=is_open)
