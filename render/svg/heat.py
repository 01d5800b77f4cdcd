"""How full each GPU is -> inline SVG for the page; a large world is one embedded picture."""

from __future__ import annotations

import json
from html import escape

from ..palette import ink, rgb
from ..png import png_uri
from ..scenes.geometry import GAP
from ..scenes.heat import LEFT, Heat, cell_texts
from .parts import corners, frames_svg, rows_svg


def heat_svg(heat: Heat, description: str) -> str:
    """The picture as SVG, in which a click on a GPU leads to the view of its groups;
    ``description`` is its text equivalent for screen readers."""
    down = 4.0 if heat.is_large else 0.0  # from the middle of a row to a text's baseline
    return (
        f'<svg class="heat{" large" if heat.is_large else ""}" role="img" '
        f'viewBox="0 0 {heat.width:g} {heat.height:g}" style="max-width:{heat.width:g}px" '
        f'aria-label="{escape(description)}">{rows_svg(heat.labels, down)}'
        f"{_pixels(heat) if heat.is_large else _cells(heat)}</svg>"
    )


_RANK = "\0"
"""Where a cell's rank will stand."""

_LEADS = escape(json.dumps({"view": "ranks", "rank": "%(rank)d"}))
"""What a click sets of the page's state."""


def _cells(heat: Heat) -> str:
    tiles, kinds = heat.tiles, list(zip(heat.level.tolist(), heat.amounts))
    side = tiles.cell - GAP
    looks = {kind: _look(heat.palette[kind[0]], kind[1], side) for kind in set(kinds)}
    cells = "".join(
        looks[kind] % {"rank": rank, "corner": corner}
        for rank, (corner, kind) in enumerate(zip(corners(tiles), kinds))
    )
    return frames_svg(tiles.frames) + cells


def _look(colour: str, amount: str, side: float) -> str:
    """A cell of this colour and amount, to be filled by %: its rank and corner."""
    texts = "".join(
        f'<text x="{side / 2:g}" text-anchor="middle" fill="{ink(colour)}" y="{y:.1f}" '
        f'font-size="{size:.1f}">{escape(text)}</text>'
        for y, size, text in cell_texts(_RANK, amount, side)
    )
    texts = texts.replace("%", "%%").replace(_RANK, "%(rank)d")
    return (
        f'<g data-set="{_LEADS}" transform="translate(%(corner)s)">'
        f'<rect width="{side:g}" height="{side:g}" rx="{side / 8:g}" fill="{colour}"/>{texts}</g>'
    )


def _pixels(heat: Heat) -> str:
    """One picture; of a scale with a ground, that in one of its own, which a theme can darken."""
    board, grid = heat.board(), heat.nodes.grid
    boards = {"": board}
    if heat.has_ground:
        boards = {' class="ground"': board * (board == 1), "": board * (board > 1)}
    colours = [rgb(colour) for colour in heat.palette]
    images = "".join(
        f'<image{name} x="{LEFT:g}" width="{grid.columns * heat.cell:g}" '
        f'height="{grid.rows * heat.cell:g}" preserveAspectRatio="none" '
        f'style="image-rendering:pixelated" href="{png_uri(pixels, colours)}"/>'
        for name, pixels in boards.items()
    )
    return images + "".join(
        f'<circle class="ring" cx="{x:g}" cy="{y:g}" r="{radius:g}"/>'
        for x, y, radius in heat.rings
    )
