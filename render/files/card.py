"""A card of 1200 x 630, as chats and search engines show a link: what the job is in large letters,
the answer of the view, and its picture in the rest.

Thumbnails of it are a fourth as wide: title and answer are to be read there, the picture seen.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from ..marks import LOOKS, Drawing, Titled, Together, Words, advance, wrapped
from ..scenes.geometry import LETTERS
from .figure import scene_marks

WIDTH, HEIGHT, MARGIN = 1200.0, 630.0, 56.0
"""Width, height and margin of a card in pixels: the size that Open Graph's readers ask for."""

TITLE, TEXT, SMALL = 54.0, 30.0, 22.0
"""Font sizes in pixels: of the job, of the answer, and of the foot."""

LINES = 2
"""The most lines of the answer."""

APART = 32.0
"""Pixels between two pictures."""

LARGEST = 6.0
"""The largest scale of a picture."""


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
    """The drawing of a card with the first picture, or with those that belong together.

    >>> from groups.layout import Job
    >>> from render.scenes.groups import panel
    >>> picture = panel(Job().layout().every["tp"], 8)
    >>> drawn = card(CardText("16 GPUs"), [("", picture)])
    >>> drawn.width, drawn.height
    (1200.0, 630.0)
    """
    look, across = LOOKS[theme], WIDTH - 2 * MARGIN
    size = min(TITLE, across / max(1.0, advance(text.title, bold=True)))
    words = [Words(MARGIN, MARGIN + TITLE * 0.8, text.title, size, look.ink, bold=True)]
    top = MARGIN + TITLE + 10
    for line in _whole(text.sentence, across / TEXT):
        words.append(Words(MARGIN, top + TEXT, line, TEXT, look.ink))
        top += TEXT * 1.35
    foot = HEIGHT - MARGIN * 0.7
    words.append(Words(MARGIN, foot, text.sizes, SMALL, look.quiet))
    words.append(Words(WIDTH - MARGIN, foot, text.site, SMALL, look.quiet, "end"))
    shown = pictures.pictures if isinstance(pictures, Together) else pictures[:1]
    wide = (across - APART * (len(shown) - 1)) / len(shown)
    tall = foot - SMALL * 1.8 - top - 22
    placed = []
    for number, (_, scene) in enumerate(shown):
        fitted = getattr(scene, "fitted", None)
        drawn = fitted((wide / LETTERS, tall / LETTERS)) if fitted else scene
        scale = min(LARGEST, wide / drawn.width, tall / drawn.height)
        x = MARGIN + number * (wide + APART) + (wide - scale * drawn.width) / 2
        y = top + 22 + (tall - scale * drawn.height) / 2
        placed.append((x, y, scale, scene_marks(drawn, theme)))
    return Drawing(WIDTH, HEIGHT, look.page, [*placed, (0.0, 0.0, 1.0, words)])
