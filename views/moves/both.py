"""Both layouts of a move as one figure, and the texts shown for the GPU under the pointer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from descriptions import MOVES
from render.draw.moves import draw_moves
from render.scenes.moves import MovesPicture
from render.svg.marks import scene_svg
from request.answers.moves.transfer import LayoutTransfer
from request.words import saying

from ..base.html import tag
from .pictures import job_picture

HoverTexts = Callable[[Sequence[set[int]]], list[dict[str, str]]]
"""From the ranks drawn on each side to a text for each rank of each side."""


def both_html(transfer: LayoutTransfer, needs: str, hover_texts: HoverTexts) -> Markup:
    """A figure of both layouts: side by side and, for narrow screens, stacked."""
    say, label = saying(MOVES, transfer.language), picture_text(transfer)
    wide, narrow = job_picture(transfer), job_picture(transfer, is_stacked=True)
    drawn = (_drawn(picture, label) for picture in (wide, narrow))
    ranks: tuple[set[int], set[int]] = (set(), set())
    for picture in (wide, narrow):
        for side in (0, 1):
            ranks[side].update(rank for rank, *_ in picture.cells(side) if rank >= 0)
    return tag(
        "figure",
        *drawn,
        tag("p", needs),
        tag("p", say("hint"), class_="moves-told", aria_live="polite"),
        class_="moves-figure",
        data_told=hover_texts(ranks),
        data_words={name: say(name) for name in ("hint", "hint_touch")},
        data_first=transfer.firsts[1],
    )


def _drawn(picture: MovesPicture, label: str) -> Markup:
    cells = [
        [side, rank, round(x, 1), round(y, 1)]
        for side in (0, 1)
        for rank, x, y in picture.cells(side)
        if rank >= 0
    ]
    return tag(
        "div",
        Markup(scene_svg("moves-job", picture, draw_moves(picture, "page"), label)),
        class_="moves-scroll " + ("narrow" if picture.is_stacked else "wide"),
        tabindex=0,
        data_cells={"wide": picture.cell, "tall": picture.tall, "at": cells},
    )


def picture_text(transfer: LayoutTransfer) -> str:
    return MOVES["picture"][transfer.language].format(rank=transfer.rank)
