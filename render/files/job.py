"""The picture of the job -> matplotlib: the nested mesh as `render.svg.job` paints it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.path import Path

from ..palette import GROUP_INK, KIND_MARKS, KIND_TINTS, PLAIN_CELL, ROWS, kind_colour, rgb
from ..scenes.groups import Mark
from ..scenes.job import JobPicture, Segment
from ..scenes.job_plan import Rectangle
from . import canvas
from .canvas import LABEL, LOOKS, Words, add, draw_words, rounded

FEW = 8
"""Members of a group that the key names."""


@dataclass(frozen=True, eq=False)
class JobScene:
    """One mesh with its key; words: of each name of a label."""

    picture: JobPicture
    words: Mapping[str, str]

    @property
    def width(self) -> float:
        return self.picture.width

    @property
    def height(self) -> float:
        return self.picture.height

    def legend_of(self, theme: str) -> Iterator[tuple[str, str]]:
        """A colour and what it means, for each group of the chosen rank."""
        yield GROUP_INK[theme], f"GPU {self.picture.rank}"
        for mark in reversed(self.picture.marks):
            yield kind_colour(mark.tone, theme), f"{mark.kind}: {_members(mark)}"


def _members(mark: Mark) -> str:
    ranks = sorted(mark.ranks.tolist())
    return ", ".join(map(str, ranks)) if len(ranks) <= FEW else f"{len(ranks):,} GPUs"


def draw_job(ax: Axes, scene: JobScene, theme: str = "light") -> None:
    """One data unit is one scene pixel, y downwards."""
    picture = scene.picture
    if picture.is_numbered:
        canvas.prepare(ax, picture.width, picture.height)
        _draw_numbered(ax, picture, theme)
    else:
        _draw_plain(ax, picture, theme)
    look = LOOKS[theme]
    ends = {"colors": look.edge, "linewidths": 1.1, "linestyles": (0, (3, 2.4))}
    if not picture.is_numbered:
        ends = {"colors": look.page, "linewidths": 1.8}
    _lines(ax, picture.node_ends, **ends)
    labels = []
    for label in picture.labels:
        layers = picture.layers[label.first] if label.name == "layers" else ""
        text = scene.words[label.name].format(first=label.first, last=label.last, layers=layers)
        y = label.y + canvas.BASELINE * LABEL
        labels.append(Words(label.x, y, text, LABEL, look.quiet, label.anchor))
    draw_words(ax, labels)


def _draw_numbered(ax: Axes, picture: JobPicture, theme: str) -> None:
    """Replicas, boxes, cells and what joins them, from the back to the front."""
    look, scale = LOOKS[theme], picture.plan.scale
    x, y = float(picture.x[picture.rank]), float(picture.y[picture.rank])
    tones = {mark.kind: mark.tone for mark in picture.marks}
    _frames(ax, picture.replicas, 14 * scale, facecolors=look.ground, edgecolors=look.edge)
    _frames(ax, picture.boxes, 10 * scale, facecolors=look.page, edgecolors=look.edge)
    if picture.box_kind:
        own = [one for one in picture.boxes if _has(one, x, y)]
        colour = kind_colour(tones[picture.box_kind], theme)
        _frames(ax, own, 10 * scale, facecolors="none", edgecolors=colour, linewidths=1.9)
    fills = [PLAIN_CELL[theme]] * picture.mesh.world_size
    for mark in picture.marks:
        for rank in mark.ranks.tolist():
            fills[rank] = KIND_TINTS[theme][mark.tone]
    fills[picture.rank] = GROUP_INK[theme]
    wide, tall = picture.cell
    corners = np.stack([picture.x, picture.y], axis=-1)
    cells = rounded(wide, tall, 6 * scale) + corners[:, None, :]
    add(ax, PolyCollection(cells, facecolors=fills, edgecolors="none"))
    size = min(15.0, wide * 0.42, tall * 0.62)
    inks = {True: look.page, False: GROUP_INK[theme]}
    draw_words(
        ax,
        [
            Words(
                left + wide / 2,
                top + tall / 2 + size * canvas.BASELINE,
                str(rank),
                size,
                inks[rank == picture.rank],
                "middle",
                bold=True,
            )
            for rank, (left, top) in enumerate(corners.tolist())
        ],
    )
    for line in picture.lines:
        dots = {"linestyles": (0, (1, 2))} if line.is_dotted else {}
        _lines(ax, line.segments, colors=kind_colour(line.tone, theme), linewidths=1.9, **dots)


def _draw_plain(ax: Axes, picture: JobPicture, theme: str) -> None:
    """A pixel a GPU, in two shades of rows, with the groups of the chosen one in their marks."""
    look, cell = LOOKS[theme], picture.cell[0]
    marks = [rgb(KIND_MARKS[theme][mark.tone]) for mark in picture.marks]
    colours = [rgb(look.page), *map(rgb, ROWS[theme]), *marks, rgb(GROUP_INK[theme])]
    base, board = picture.base_pixels(), picture.mark_pixels()
    pixels = np.array(colours, dtype=np.uint8)[
        np.where(board > 0, 2 + board.astype(int), base.astype(int))
    ]
    rows, columns = board.shape
    left, top = picture.plan.left, picture.plan.top
    box = (left, left + columns * cell, top + rows * cell, top)
    ax.imshow(pixels, interpolation="none", extent=box, aspect="auto", clip_on=False)
    canvas.prepare(ax, picture.width, picture.height)  # after imshow, which moves the limits
    middle = float(picture.x[picture.rank]) + cell / 2, float(picture.y[picture.rank]) + cell / 2
    ring = Path.circle(middle, max(8.0, cell * 1.1))
    style = {"facecolors": "none", "edgecolors": look.ink, "linewidths": 1.6}
    add(ax, PathCollection([ring], **style))


def _frames(ax: Axes, frames: Iterable[Rectangle], radius: float, **style: object) -> None:
    outlines = [rounded(w, h, radius) + np.array([x, y]) for x, y, w, h in frames]
    if outlines:
        add(ax, PolyCollection(outlines, **{"linewidths": 0.75, **style}))


def _has(one: Rectangle, x: float, y: float) -> bool:
    left, top, width, height = one
    return left <= x < left + width and top <= y < top + height


def _lines(ax: Axes, segments: Sequence[Segment], **style: object) -> None:
    if segments:
        lines = [((x0, y0), (x1, y1)) for x0, y0, x1, y1 in segments]
        add(ax, LineCollection(lines, **style))
