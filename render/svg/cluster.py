"""The GPUs of a cluster with their roles -> inline SVG for the page."""

from __future__ import annotations

from html import escape

from ..draw.cluster import draw_cluster
from ..scenes.cluster import LEFT, ClusterPicture
from ..scenes.geometry import node_columns
from .marks import known_svg, marks_svg


def cluster_svg(picture: ClusterPicture, description: str) -> str:
    """All GPUs; ``description`` is their text equivalent for screen readers."""
    wide, tall = picture.width + 2, picture.height + 2
    look = "numbered" if picture.is_numbered else "plain"
    return (
        f'<svg class="cluster {look}" {_known(picture)} tabindex="0" role="group" '
        f'viewBox="0 -1 {wide:.1f} {tall:.1f}" style="--width:{wide:.0f}px" '
        f'aria-label="{escape(description)}">{marks_svg(draw_cluster(picture, "page"))}</svg>'
    )


def _known(picture: ClusterPicture) -> str:
    """Where each GPU is, which the page's script asks of a click and of the arrow keys."""
    if picture.is_numbered:
        tiles, each = picture.tiles, picture.gpus_per_node
        wide = node_columns(each)
        at = [(float(tiles.x[gpu]), float(tiles.y[gpu])) for gpu in range(0, picture.world, each)]
        return known_svg(nodes=at, each=each, wide=wide, cell=tiles.cell, chosen=picture.chosen)
    columns, rows, folds = picture.grid.grid
    known = {"columns": columns, "rows": rows, "folds": folds, "left": LEFT}
    return known_svg(**known, cell=picture.cell, world=picture.world, chosen=picture.chosen)
