"""Time lost on the mesh of the job -> inline SVG for the page, each numbered cell with a tip."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape

from ..draw.lost import draw_lost
from ..scenes.lost import LostPicture
from .marks import marks_svg


def lost_svg(
    picture: LostPicture,
    description: str,
    tips: Sequence[str],
    sets: Sequence[Mapping[str, str]],
) -> str:
    """The picture; tips: texts for numbered cells under the pointer; sets: changes of the state on
    click."""
    size = f"{picture.width:g} {picture.height:g}"
    wide, tall = picture.job.sides
    most = min(wide * 1.4 / len(str(picture.job.num_cells - 1)), tall * 0.78)
    letters = picture.number_size
    most = letters if picture.letters else most  # amounts stand below
    look = "numbered" if picture.job.is_numbered else "plain"
    hits = _hits(picture, tips, sets) if picture.job.is_numbered else ""
    return (
        f'<svg class="lost {look}" role="img" viewBox="0 0 {size}" '
        f'style="--width:{picture.width:g}px;--w:{picture.width:.0f};--size:{letters:.1f}px;'
        f'--most:{most:.1f}px" aria-label="{escape(description)}">'
        f"{marks_svg(draw_lost(picture, 'page'))}{hits}</svg>"
    )


def _hits(picture: LostPicture, tips: Sequence[str], sets: Sequence[Mapping[str, str]]) -> str:
    job = picture.job
    wide, tall = job.sides
    return "".join(
        f'<rect class="hit" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}" '
        f'data-set="{escape(json.dumps(dict(change)))}"><title>{escape(tip)}</title></rect>'
        for x, y, tip, change in zip(job.x.tolist(), job.y.tolist(), tips, sets)
    )
