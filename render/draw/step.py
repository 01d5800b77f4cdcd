"""A step of several roles -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Layer, Lines, Mark, Words, fits
from ..palette import GROUP_INK, ROLE_CELLS, STEP_MARKS
from ..scenes.step import APART, LEAST, StepPicture
from .charts import WARNING

OVER = {**WARNING, "page": "var(--too-full)"}


def draw_step(picture: StepPicture, theme: str) -> Iterator[Mark]:
    """A layer for each phase, which the page marks; a bar above the limit ends in a warning
    colour."""
    look = LOOKS[theme]
    wide = picture.step - APART
    for number, bar in enumerate(picture.bars):
        x, y = picture.left(number), picture.foot
        marks: list[Mark] = [Blocks(np.array([[x, y]]), np.array([wide, 1.5]), look.edge)]
        for part in bar.parts:
            tall = part.size * picture.scale
            y -= tall
            fill = (STEP_MARKS if part.is_awake else ROLE_CELLS)[theme][part.tone]
            inner = np.array([wide, max(tall - 1.2, 0.4)])
            marks.append(Blocks(np.array([[x, y]]), inner, fill, radius=min(2.0, tall / 3)))
            room = (wide - 10) / LABEL
            text = next((one for one in (part.text, part.short) if fits(one, room)), "")
            if tall >= LEAST and text:
                ink = GROUP_INK[theme]
                marks.append(Words(x + 6, y + tall / 2, text, LABEL, ink, is_middle=True))
        middle, foot = x + wide / 2, picture.foot + 16
        is_over = bar.total > picture.limit
        ink = OVER[theme] if is_over else look.quiet
        marks.append(Words(middle, foot, bar.name, LABEL + 1.5, look.ink, "middle", bold=True))
        marks.append(Words(middle, foot + 16, bar.note, LABEL, ink, "middle", bold=is_over))
        yield Layer(f"phase phase{number}", marks)
    line = picture.foot - picture.limit * picture.scale
    yield Lines([[(0.0, line), (picture.width, line)]], look.ink, 1.6, (6.0, 4.0))
    yield Words(picture.width, line - 5, picture.limit_name, LABEL, look.quiet, "end")
