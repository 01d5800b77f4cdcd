"""The GPUs of a cluster with their roles -> inline SVG for the page."""

from __future__ import annotations

from html import escape

from ..draw.cluster import draw_cluster, number_size
from ..scenes.cluster import LEFT, ClusterPicture
from ..scenes.geometry import node_columns
from .marks import known_svg, marks_svg


def cluster_svg(picture: ClusterPicture, description: str) -> str:
    """All GPUs; ``description`` is the text for screen readers."""
    wide, tall = picture.width + 2, picture.height + 2
    look = "numbered" if picture.is_numbered else "plain"
    return (
        f'<svg class="cluster {look}" {_known(picture)} tabindex="0" role="group" '
        f'viewBox="0 -1 {wide:.1f} {tall:.1f}" style="--width:{wide:.0f}px;{_letters(picture)}" '
        f'aria-label="{escape(description)}">{marks_svg(draw_cluster(picture, "page"))}</svg>'
    )


def _letters(picture: ClusterPicture) -> str:
    """For the style sheet: the picture's width, and the drawn and largest size of a number."""
    digits = len(str(picture.world - 1))
    most = min(picture.cell * 1.4 / digits, picture.cell * 0.6)
    wide = 1.08 * (picture.width + 2)  # beside it there is a margin
    return f"--w:{wide:.0f};--size:{number_size(picture):.1f}px;--most:{most:.1f}px"


def _known(picture: ClusterPicture) -> str:
    """The place of each GPU, for clicks and arrow keys in the page's script."""
    if picture.is_numbered:
        tiles, each = picture.tiles, picture.gpus_per_node
        wide = node_columns(each)
        at = [(float(tiles.x[gpu]), float(tiles.y[gpu])) for gpu in range(0, picture.world, each)]
        known: dict[str, object] = {"nodes": at, "each": each, "wide": wide}
    else:
        columns, rows, folds = picture.grid.grid
        known = {"columns": columns, "rows": rows, "folds": folds, "left": LEFT}
        known["split"] = picture.split
    return known_svg(**known, cell=picture.cell, world=picture.world, chosen=picture.chosen)
