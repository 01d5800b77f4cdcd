"""A colour for each GPU, as the page shows it."""

from __future__ import annotations

from markupsafe import Markup

from render.palette import SHADE_INKS, SHADES
from render.scenes.heat import Heat
from render.svg.heat import heat_svg

from .html import tag


def painted(heat: Heat, label: str) -> Markup:
    """The heat map, where each GPU links to its groups, beside the legend of its colours."""
    shades, inks = SHADES["page"], SHADE_INKS["page"]
    items = (
        tag("li", words, style=f"background:{shades[shade]};color:{inks[shade]}")
        for shade, words in heat.legend
    )
    picture = Markup(heat_svg(heat, label))
    keys = tag("ul", *items, class_="parts")
    return tag("div", tag("div", picture, class_="chain"), keys, class_="mapped")
