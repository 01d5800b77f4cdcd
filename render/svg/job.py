"""The picture of the job -> inline SVG for the page.

Only class names are written here, no colours. What the page's script needs to mark another GPU's
groups stands in ``data-`` attributes: where each rank is (folds), and how lines run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from ..palette import GROUP_INK, KIND_MARKS, rgb
from ..png import png_uri
from ..scenes.job import SHADES, JobPicture, Segment
from ..scenes.job_plan import Label, Rectangle
from .parts import folds_text, tags_svg, written

MOST_LAYERS = 9
"""Letters of a stage's layers up to which the word stands beside them."""

GAP_ROOM = 4.0
"""Pixels that a plain cell needs to be parted from the next."""


def job_svg(picture: JobPicture, description: str, kinds: Sequence[int] = ()) -> str:
    """One mesh with the groups of one rank.

    description: its text equivalent for screen readers. kinds: the numbers under which the page's
    script knows the groups that are marked here, in the order of their lines.
    """
    body = _numbered(picture) if picture.is_numbered else _plain(picture)
    labels = "".join(
        f'<text class="of-{label.name}" x="{label.x:.1f}" y="{label.y:.1f}" '
        f'text-anchor="{label.anchor}">{escape(_label_text(label, picture))}</text>'
        for label in picture.labels
    )
    ends = _lines(picture.node_ends)
    width, height = picture.width + 2, picture.height + 2
    look = "numbered" if picture.is_numbered else "plain"
    tags = "" if picture.is_numbered else tags_svg(picture.tags)
    return (
        f'<svg class="job {look}" {_data(picture, kinds)} tabindex="0" role="group" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" style="--width:{width:.0f}px" '
        f'aria-label="{escape(description)}">'
        f'{body}<path class="ends" d="{ends}"/>{tags}<g class="rows">{labels}</g></svg>'
    )


def _data(picture: JobPicture, kinds: Sequence[int]) -> str:
    plan = picture.plan
    wide, tall = picture.cell
    levels = ",".join(map(str, picture.levels.values()))
    boxed = [*picture.levels].index(picture.box_kind) if picture.box_kind else -1
    start = plan.left + plan.origin[0], plan.top + plan.origin[1]
    sizes = {mark.kind: len(mark.ranks) for mark in picture.marks}
    swell = ",".join(str(picture.swell(sizes.get(kind, 1))) for kind in picture.levels)
    return (
        f'data-fold="{folds_text(plan.folds)}" '
        f'data-left="{start[0]:.9g}" data-top="{start[1]:.9g}" '
        f'data-cell="{wide:.9g},{tall:.9g}" data-scale="{plan.scale:.6g}" '
        f'data-pad="{plan.metrics.pad:g}" data-kinds="{",".join(map(str, kinds))}" '
        f'data-levels="{levels}" data-swell="{swell}" data-boxed="{boxed}"'
    )


def _label_text(label: Label, picture: JobPicture) -> str:
    if label.name != "layers":
        return picture.words[label.name].format(first=label.first, last=label.last)
    layers = picture.layers[label.first]
    if len(layers) > MOST_LAYERS:
        return layers if layers.count(",") == 1 else f"{layers.split(',')[0]}, …"
    return picture.words[label.name].format(layers=layers)


# -- numbered cells --------------------------------------------------------------------------------


def _numbered(picture: JobPicture) -> str:
    wide, tall = picture.cell
    scale = picture.plan.scale
    boxed = picture.box_tone
    frames = "".join(
        _rectangle("replica", replica, 14 * scale, picture.holds_rank(replica))
        for replica in picture.replicas
    )
    boxes = "".join(
        _rectangle("box", box, 10 * scale, boxed != "" and picture.holds_rank(box), boxed)
        for box in picture.boxes
    )
    marked = {rank: mark.tone for mark in picture.marks for rank in mark.ranks.tolist()}
    size = min(15.0, wide * 0.42, tall * 0.62)
    inside = (
        f'<rect width="{wide:.2f}" height="{tall:.2f}" rx="{6 * scale:.1f}"/>'
        f'<text x="{wide / 2:.2f}" y="{tall / 2 + size * 0.36:.2f}" font-size="{size:.1f}">'
    )
    places = zip(written(picture.x, ".2f"), written(picture.y, ".2f"))
    cells = "".join(
        f'<g class="j{_class(rank, picture.rank, marked)}" data-r="{rank}" '
        f'transform="translate({left},{top})">{inside}{rank}</text></g>'
        for rank, (left, top) in enumerate(places)
    )
    joins = "".join(
        f'<path class="t-{line.tone}{" dots" if line.is_dotted else ""}" '
        f'd="{_lines(line.segments)}"/>'
        for line in picture.lines
    )
    return f'{frames}{boxes}{cells}<g class="joins">{joins}</g>'


def _rectangle(name: str, box: Rectangle, radius: float, is_on: bool, tone: str = "") -> str:
    x, y, width, height = box
    classes = f"{name}{f' t-{tone}' if tone else ''}{' on' if is_on else ''}"
    return (
        f'<rect class="{classes}" x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" '
        f'height="{height:.2f}" rx="{radius:.1f}"/>'
    )


def _class(rank: int, chosen: int, marked: Mapping[int, str]) -> str:
    if rank == chosen:
        return " me"
    return f" m t-{marked[rank]}" if rank in marked else ""


def _lines(segments: Iterable[Segment]) -> str:
    return "".join(f"M{x0:.2f} {y0:.2f}L{x1:.2f} {y1:.2f}" for x0, y0, x1, y1 in segments)


# -- plain cells -----------------------------------------------------------------------------------


def _plain(picture: JobPicture) -> str:
    cell = picture.cell[0]
    board = picture.mark_pixels()
    colours = [KIND_MARKS["light"][mark.tone] for mark in picture.marks]
    marks = png_uri(board, [rgb(colour) for colour in (*colours, GROUP_INK["light"])])
    rows, columns = board.shape
    plan = picture.plan
    x, y = (corners[0] + cell / 2 for corners in picture.corners_of_marks)
    return (
        f"{_rows(picture)}"
        f'<image class="marks" x="{plan.left:g}" y="{plan.top:g}" width="{columns * cell:.4f}" '
        f'height="{rows * cell:.4f}" preserveAspectRatio="none" href="{marks}"/>'
        f'<path class="gaps" d="{_gaps(picture)}"/>'
        f'<circle class="chosen" cx="{x:.2f}" cy="{y:.2f}" r="{max(8.0, cell * 1.1):.1f}"/>'
    )


def _rows(picture: JobPicture) -> str:
    """The rows of all bands, in as many shades as they take turns."""
    plan, step = picture.plan, picture.plan.label_step
    shades: list[list[str]] = [[] for _ in range(SHADES)]
    wide, tall = plan.sizes.replica_width, plan.sizes.replica_height
    heights = [f"{stages * tall:.2f}" for stages in range(step + 1)]
    for x, y, stages, replicas in plan.corners():
        left, width = f"{x:.2f}", f"{len(replicas) * wide:.2f}"
        for first in range(0, len(stages), step):
            height = heights[min(step, len(stages) - first)]
            row = f"M{left} {y + first * tall:.2f}h{width}v{height}h-{width}z"
            shades[stages[first] // step % SHADES].append(row)
    return "".join(f'<path class="shade s{n}" d="{"".join(d)}"/>' for n, d in enumerate(shades))


def _gaps(picture: JobPicture) -> str:
    """Lines between cells, where there is room for them."""
    cell, plan = picture.cell[0], picture.plan
    if cell < GAP_ROOM:
        return ""
    wide, tall = plan.sizes.band_width, plan.sizes.band_height
    corners = [(x, y) for x, y, _, _ in plan.corners()]
    columns = {x: _steps(x, wide, cell) for x in {x for x, _ in corners}}
    gaps = []
    for x, y in corners:
        down, left, right = f" {y:.2f}v{tall:.2f}", f"M{x:.2f} ", f"h{wide:.2f}"
        gaps += [f"M{at}{down}" for at in columns[x]]
        gaps += [f"{left}{at}{right}" for at in _steps(y, tall, cell)]
    return "".join(gaps)


def _steps(start: float, length: float, cell: float) -> list[str]:
    return [f"{at:.2f}" for at in np.arange(start + cell, start + length - 1, cell).tolist()]
