"""A heat map of the GPUs -> inline SVG for the page; a large world is one embedded picture."""

from __future__ import annotations

import json
from html import escape

import numpy as np

from ..draw.charts import draw_heat
from ..scenes.geometry import GAP
from ..scenes.heat import Heat
from .marks import marks_svg

MOST_ON_PHONES = 64
"""The most GPUs whose numbers a phone has room for."""


def heat_svg(heat: Heat, description: str) -> str:
    """The picture as SVG, in which clicking a GPU leads to the view of its groups; ``description``
    is the text for screen readers."""
    many = " many" if len(heat.level) > MOST_ON_PHONES else ""
    return (
        f'<svg class="heat{" large" if heat.is_large else many}" role="img" '
        f'viewBox="0 0 {heat.width:g} {heat.height:g}" style="max-width:{heat.width:g}px" '
        f'aria-label="{escape(description)}">{marks_svg(draw_heat(heat, "page"))}'
        f"{'' if heat.is_large else _hits(heat)}</svg>"
    )


def _hits(heat: Heat) -> str:
    """The change of the state that a click on each GPU makes."""
    tiles, side = heat.tiles, heat.tiles.cell - GAP
    corners = np.stack([tiles.x, tiles.y], axis=-1) + GAP / 2
    return "".join(
        f'<rect class="hit" x="{x:g}" y="{y:g}" width="{side:g}" height="{side:g}" '
        f'data-set="{escape(json.dumps({"view": "ranks", "rank": str(rank)}))}"/>'
        for rank, (x, y) in enumerate(corners.tolist())
    )
