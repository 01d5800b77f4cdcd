"""Tables of a view."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from descriptions import PAGE


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], language: str, name: str) -> str:
    """Plain text in rows, the first cell of each its head; ``heads`` are words of PAGE.

    A wide one scrolls in its own box.
    """
    head = "".join(f'<th scope="col">{escape(PAGE[text][language])}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>"
        for first, *cells in rows
    )
    return (
        f'<div class="scroll {name}" tabindex="0"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )
