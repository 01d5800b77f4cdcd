"""A card of 1200 x 630, as chats and search engines show a link: what the job is in large letters,
the answer of the view, and its picture in the rest.

Thumbnails of it are a fourth as wide: title and answer are to be read there, the picture seen. It
fills the rest, and is cut below where it is taller than that.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ..marks import (
    LOOKS,
    Blocks,
    Drawing,
    Plain,
    Scene,
    Titled,
    Together,
    Words,
    advance,
    wrapped,
)
from ..scenes.geometry import LETTERS
from ..scenes.inset import insets_of
from ..scenes.job import JobPicture
from .figure import scene_marks

WIDTH, HEIGHT, MARGIN = 1200.0, 630.0, 56.0
"""Width, height and margin of a card in pixels: the size that Open Graph's readers ask for."""

TITLE, TEXT, SMALL = 54.0, 30.0, 22.0
"""Font sizes in pixels: of the job, of the answer, and of the line above them."""

LINES = 2
"""The most lines of the answer."""

APART = 32.0
"""Pixels between two pictures."""

LARGEST = 6.0
"""The largest scale of a picture."""

CROPPED = 1.5
"""How much taller than its room a picture may be that is as wide: the card ends before it."""

BESIDE = 0.62
"""The share of the width of a picture beside which a part of it is magnified."""


class CardText(NamedTuple):
    """The job and its model, the answer, the sizes, and the name of the page."""

    title: str
    sentence: str = ""
    sizes: str = ""
    site: str = ""


SENTENCE = re.compile(r".*?(?:[.?!](?=\s|$)\s*|[。？！]|$)")  # noqa: RUF001


def _whole(text: str, room: float) -> list[str]:
    """As many whole sentences as there are lines for, at least the first.

    >>> _whole("It fits. It has 2.5 GiB left. More is said elsewhere.", 12.0)
    ['It fits. It has 2.5 GiB', 'left.']
    """
    lines, said = list[str](), ""
    for sentence in SENTENCE.findall(text):
        said += sentence
        if lines and len(wrapped(said.strip(), room)) > LINES:
            break
        lines = wrapped(said.strip(), room, most=LINES)
    return lines


def card(text: CardText, pictures: Titled | Together, theme: str = "light") -> Drawing:
    """The drawing of a card with the first picture, or with those that belong together, cut where
    the card ends; beside one whose cells have no numbers the selected replica, magnified.

    >>> from groups.layout import Job
    >>> from render.scenes.groups import panel
    >>> picture = panel(Job().layout().every["tp"], 8)
    >>> drawn = card(CardText("16 GPUs"), [("", picture)])
    >>> drawn.width, drawn.height
    (1200.0, 630.0)
    """
    look, across = LOOKS[theme], WIDTH - 2 * MARGIN
    y = MARGIN * 0.75 + SMALL / 2
    words = [
        Words(MARGIN, y, text.site, SMALL, look.quiet),
        Words(WIDTH - MARGIN, y, text.sizes, SMALL, look.quiet, "end"),
    ]
    size = min(TITLE, across / max(1.0, advance(text.title, bold=True)))
    y += TITLE + 12
    words.append(Words(MARGIN, y, text.title, size, look.ink, bold=True))
    y += 12
    for line in _whole(text.sentence, across / TEXT):
        words.append(Words(MARGIN, y + TEXT, line, TEXT, look.ink))
        y += TEXT * 1.35
    shown = pictures.pictures if isinstance(pictures, Together) else pictures[:1]
    scenes: list[Scene] = [scene for _, scene in shown]
    shares = [1.0] * len(scenes)
    if len(scenes) == 1 and (insets := insets_of(scenes)):
        scenes, shares = [*scenes, *insets], [BESIDE, 1 - BESIDE]
    room = across - APART * (len(scenes) - 1)
    top, x, placed = y + 26, MARGIN, []
    for scene, share in zip(scenes, shares):
        wide = room * share / sum(shares)
        placed.append(_placed(scene, x, top, wide, theme))
        x += wide + APART
    # What a picture that was moved up has above its room.
    over = Blocks(np.array([[0.0, 0.0]]), np.array([WIDTH, top - 8]), look.page)
    return Drawing(WIDTH, HEIGHT, look.page, [*placed, (0.0, 0.0, 1.0, [over, *words])])


def _placed(
    scene: Scene, x: float, top: float, wide: float, theme: str
) -> tuple[float, float, float, list[Plain]]:
    """A scene as wide as its room, up to CROPPED times as tall; moved up where the selected GPU
    would be below the card."""
    tall = HEIGHT - top - MARGIN * 0.6
    fitted = getattr(scene, "fitted", None)
    drawn = fitted((wide / LETTERS, tall / LETTERS)) if fitted else scene
    scale = min(LARGEST, wide / drawn.width, CROPPED * tall / drawn.height)
    left, y = x + (wide - scale * drawn.width) / 2, top
    if scale * drawn.height < tall:
        y += (tall - scale * drawn.height) / 2
    elif isinstance(drawn, JobPicture):
        _, ring, _, deep = drawn.ring
        below = scale * (ring + deep) - tall * 0.8
        y -= max(0.0, min(below, scale * drawn.height - tall))
    return left, y, scale, scene_marks(drawn, theme)
