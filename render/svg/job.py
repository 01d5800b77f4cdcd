"""The picture of the job -> inline SVG for the page.

Only class names are written here, no colours, and no group is marked: the page's script marks those
of the chosen GPU before anything is seen (views/gradio/picture/marks.js). What it needs for that
stands in ``data-`` attributes: where each rank is (folds), and how lines run. A picture that is
still, of another layout than the one that the script knows, has its marks from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from ..palette import GROUP_INK, KIND_MARKS, rgb
from ..png import png_uri
from ..scenes.job import SHADES, JobPicture, Segment
from ..scenes.job_plan import Label, Rectangle
from .cells import frames, numbers, outline
from .parts import known_svg, tags_svg

MOST_LAYERS = 9
"""Letters of a stage's layers up to which the word stands beside them."""

GAP_ROOM = 4.0
"""Pixels that a plain cell needs to be parted from the next."""


def job_svg(
    picture: JobPicture,
    description: str,
    kinds: Sequence[int] = (),
    *,
    is_still: bool = False,
    outlined: np.ndarray | None = None,
) -> str:
    """One mesh; ``description`` is its text equivalent for screen readers.

    kinds: the numbers under which the page's script knows the groups that it marks here, in the
    order of their lines. is_still: whether the script marks nothing here. outlined: which ranks of
    numbered cells have a dashed frame.
    """
    body = (_numbered if picture.is_numbered else _plain)(picture, is_still)
    labels = "".join(
        f'<text class="of-{label.name}" x="{label.x:.1f}" y="{label.y:.1f}" '
        f'text-anchor="{label.anchor}">{_label_svg(label, picture)}</text>'
        for label in picture.labels
    )
    ends = _lines(picture.node_ends)
    if outlined is not None and outlined.any():
        around = outline(picture.x[outlined], picture.y[outlined], picture.sides, 0.0)
        body += f'<path class="moved" d="{around}"/>'
    width, height = picture.width + 2, picture.height + 2
    look = "numbered" if picture.is_numbered else "plain"
    tags = "" if picture.is_numbered else tags_svg(picture.tags if is_still else ())
    return (
        f'<svg class="job {look}" {_data(picture, kinds)} tabindex="0" role="group" '
        f'viewBox="0 0 {width:.1f} {height:.1f}" style="--width:{width:.0f}px;{_letters(picture)};'
        f'--ends:{min(3.0, 0.6 * picture.sides[0]):.1f}px" '
        f'aria-label="{escape(description)}">'
        f'{body}<path class="ends" d="{ends}"/>{tags}<g class="rows">{labels}</g></svg>'
    )


def _data(picture: JobPicture, kinds: Sequence[int]) -> str:
    plan, metrics = picture.plan, picture.plan.metrics
    return known_svg(
        folds=plan.folds,
        left=plan.left + plan.origin[0],
        top=plan.top + plan.origin[1],
        sides=picture.sides,
        scale=plan.scale,
        pad=metrics.pad,
        gap=metrics.gap,
        frame=(metrics.frame, metrics.ends),
        outside=[name in (plan.data, "pp") for name in picture.mesh.names],
        boxes=[name not in plan.box for name in picture.mesh.names],
        deep=plan.sizes.replica_height,
        staged=_place(picture.mesh.names, "pp"),
        kinds=kinds,
        levels=[*picture.levels.values()],
        boxed=_place([*picture.levels], picture.box_kind),
    )


def _place(names: Sequence[str], name: str) -> int:
    return [*names].index(name) if name in names else -1


def _label_svg(label: Label, picture: JobPicture) -> str:
    """A label, whose first word goes where there is no room."""
    text = escape(_label_text(label, picture))
    word, space, rest = text.partition(" ") if label.name == "layers" else ("", "", text)
    has_word = word.isalpha() and space
    return f'<tspan class="word">{word} </tspan>{rest}' if has_word else text


def _letters(picture: JobPicture) -> str:
    """For the style sheet: the picture's width, and of a number in a cell how large it is drawn
    and may be, in pixels."""
    wide, tall = picture.sides
    digits = len(str(picture.mesh.world_size - 1))
    most = min(wide * 1.4 / digits, tall * 0.78)
    return f"--w:{picture.width + 2:.0f};--size:{picture.number_size:.1f}px;--most:{most:.1f}px"


def _label_text(label: Label, picture: JobPicture) -> str:
    if label.name != "layers":
        return picture.words[label.name].format(first=label.first, last=label.last)
    layers = picture.layers[label.first]
    if len(layers) > MOST_LAYERS:
        return layers if layers.count(",") == 1 else f"{layers.split(',')[0]}, …"
    return picture.words[label.name].format(layers=layers)


# -- numbered cells --------------------------------------------------------------------------------


def _numbered(picture: JobPicture, is_still: bool) -> str:
    """Frames and cells; in places of their own, what the script marks: the replica and the box of
    the chosen GPU, its groups below the numbers and, above them, itself."""
    plan, (wide, tall) = picture.plan, picture.sides
    scale, radius = plan.scale, 6 * plan.scale
    around = (
        _here("replica", picture.replicas, picture, 14 * scale, is_still),
        _here(f"box t-{picture.box_tone}", picture.boxes, picture, 10 * scale, is_still)
        if picture.box_kind
        else "",
    )
    size, x, y = picture.number_size, picture.x, picture.y
    ranks, cells = list(map(str, range(len(x)))), outline(x, y, (wide, tall), radius)
    joins = "".join(
        f'<path class="t-{line.tone}{" dots" if line.is_dotted else ""}" '
        f'd="{_lines(line.segments)}"/>'
        for line in (picture.lines if is_still else ())
    )
    marks, chosen = _marked(picture, radius) if is_still else ("", "")
    return (
        f"{frames('replica', picture.replicas, 14 * scale)}{around[0]}"
        f"{frames('box', picture.boxes, 10 * scale)}{around[1]}"
        f'<path class="cells" stroke-width="{2 * radius:g}" d="{cells}"/>'
        f'<g class="marked">{marks}</g>'
        f"{numbers(ranks, x + wide / 2, y + tall / 2, 'n', size)}"
        f'<g class="joins">{joins}</g><g class="itself">{chosen}</g>'
    )


def _here(
    name: str, boxes: Sequence[Rectangle], picture: JobPicture, radius: float, is_still: bool
) -> str:
    """The frame of the one that the chosen GPU is in, which the script puts in its place."""
    _, _, wide, tall = boxes[0]
    x, y, *_ = next(filter(picture.holds_rank, boxes))
    place = f'x="{x:.2f}" y="{y:.2f}" ' if is_still else ""
    return (
        f'<rect class="{name} on" {place}width="{wide:.2f}" height="{tall:.2f}" rx="{radius:.1f}"/>'
    )


def _marked(picture: JobPicture, radius: float) -> tuple[str, str]:
    """The cells of the groups, each in the tone of its smallest one, and the chosen one."""
    wide, tall = picture.sides
    size = f'width="{wide:.2f}" height="{tall:.2f}" rx="{radius:.1f}"'
    tones = {rank: mark.tone for mark in picture.marks for rank in mark.ranks.tolist()}
    tones.pop(rank := picture.rank, None)
    cells = "".join(
        f'<rect class="j m t-{tone}" data-r="{one}" x="{picture.x[one]:.2f}" '
        f'y="{picture.y[one]:.2f}" {size}/>'
        for one, tone in tones.items()
    )
    left, top = float(picture.x[rank]), float(picture.y[rank])
    chosen = (
        f'<g class="j me" data-r="{rank}" transform="translate({left:.2f},{top:.2f})">'
        f'<rect {size}/><text x="{wide / 2:.2f}" y="{tall / 2:.2f}" '
        f'font-size="{picture.number_size:.1f}px">{rank}</text></g>'
    )
    return cells, chosen


def _lines(segments: Iterable[Segment]) -> str:
    return "".join(f"M{x0:.2f} {y0:.2f}L{x1:.2f} {y1:.2f}" for x0, y0, x1, y1 in segments)


# -- plain cells -----------------------------------------------------------------------------------


def _plain(picture: JobPicture, is_still: bool) -> str:
    cell, plan = picture.sides[0], picture.plan
    rows, columns = picture.board_shape
    marks, spot, hairs = "", "", ""
    if is_still:
        hairs = "".join(f'<path class="t-{tone}" d="{_lines(of)}"/>' for tone, of in picture.hairs)
        tones = [KIND_MARKS["light"][mark.tone] for mark in picture.marks]
        colours = [rgb(colour) for colour in (*tones, GROUP_INK["light"])]
        x, y = picture.middle
        marks = f'href="{png_uri(picture.mark_pixels(), colours)}" '
        spot = f'cx="{x:.2f}" cy="{y:.2f}" '
    return (
        f"{_rows(picture)}"
        f'<g class="hairs">{hairs}</g>'
        f'<image class="marks" {marks}x="{plan.left:g}" y="{plan.top:g}" '
        f'width="{columns * cell:.4f}" height="{rows * cell:.4f}" preserveAspectRatio="none"/>'
        f'<path class="gaps" stroke-width="{min(1.0, 0.16 * cell):.2f}" d="{_gaps(picture)}"/>'
        f'<circle class="chosen" {spot}r="{max(8.0, cell * 1.1):.1f}"/>'
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
    cell, plan = picture.sides[0], picture.plan
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
