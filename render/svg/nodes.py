"""Nodes with the groups that leave them -> inline SVG for the page."""

from __future__ import annotations

from html import escape
from json import dumps

from ..draw.nodes import draw_nodes
from ..scenes.nodes import NodesPicture
from .marks import marks_svg


def nodes_svg(picture: NodesPicture, description: str, kind: str) -> str:
    """The picture as SVG; clicking a box selects its first GPU."""
    hits = "".join(
        f'<rect class="hit" x="{box.x:g}" y="{box.y:g}" width="{box.wide:g}" '
        f'height="{box.tall:g}" rx="6" data-set="{escape(dumps({"rank": str(box.first)}))}"/>'
        for box in picture.boxes
    )
    size = f"{picture.width:g} {picture.height:g}"
    return (
        f'<svg class="nodes-map {kind}" role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {size}">{marks_svg(draw_nodes(picture, "page"))}{hits}</svg>'
    )
