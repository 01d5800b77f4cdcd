"""Time lost to others, and time that others lost, on the mesh of the job -> marks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..marks import LOOKS, Blocks, Layer, Mark, Numbers, Pixels
from ..palette import GROUP_INK, PLAIN_CELL, SCALE_ENDS, STEPS, rgb, scale_of
from ..scenes.job import JobPicture
from ..scenes.lost import LostPicture
from .groups import boxes_of
from .job import ROUND, draw_labels, draw_node_ends, draw_replicas, draw_rows

FRAME = 1.5
"""Pixels between a cell and the frame of the selected one."""


def draw_lost(picture: LostPicture, theme: str) -> Iterator[Mark]:
    """Each cell in the colours of both scales, with amounts if there is room; too small cells have
    one scale only."""
    job = picture.job
    if job.is_numbered:
        yield draw_replicas(job, theme)
        yield from _cells(picture, theme)
    else:
        yield from draw_rows(job, theme)
        yield _pixels(picture, theme)
    yield draw_node_ends(job, theme)
    yield draw_labels(job, theme)
    yield _chosen(job, theme)


def _cells(picture: LostPicture, theme: str) -> Iterator[Mark]:
    """Cells in halves, with a number above them if amounts have room, else on them."""
    job, ink, letters = picture.job, GROUP_INK[theme], picture.letters
    (wide, tall), corners = job.sides, np.stack([job.x, job.y], axis=-1)
    sides, radius = np.array(job.sides), 6 * job.plan.scale
    yield Layer("cells", [Blocks(corners, sides, PLAIN_CELL[theme], radius=radius)])
    top, gap = (tall * 0.46 if letters else 0.0), 0.03 * wide
    half = np.array([(wide - 3 * gap) / 2, tall - top - gap * (2 if not letters else 1)])
    first = corners + np.array([gap, top + (gap if not letters else 0.0)])
    places = [first + np.array([number * (half[0] + gap), 0.0]) for number in (0, 1)]
    for scale, place in zip(picture.scales, places):
        is_some = scale.steps > 0
        if fills := [scale_of(scale.name, theme)[step] for step in scale.steps[is_some].tolist()]:
            yield Layer(scale.name, [Blocks(place[is_some], half, fills, radius=radius / 2)])
    size = picture.number_size
    x, y = corners[:, 0] + wide / 2, corners[:, 1] + (top or tall) / 2
    yield Numbers("n", [*map(str, range(len(x)))], x, y, size, ink, bold=True, is_middle=True)
    for scale, place in zip(picture.scales, places) if letters else ():
        x, y = (place + half / 2).T
        yield Numbers("a", scale.amounts, x, y, letters, ink, is_middle=True)


def _chosen(job: JobPicture, theme: str) -> Layer:
    """A frame round the selected rank, away from its cell if that is small."""
    ink = LOOKS[theme].ink
    if not job.is_numbered:
        return Layer("me", [boxes_of([job.ring], ROUND, "none", ink, 2.0)])
    corner = np.array([[job.x[job.rank], job.y[job.rank]]]) - FRAME
    radius = 6 * job.plan.scale + FRAME
    frame = Blocks(corner, np.array(job.sides) + 2 * FRAME, edge=ink, width=2.0, radius=radius)
    return Layer("me", [frame])


def _pixels(picture: LostPicture, theme: str) -> Pixels:
    """A pixel for each GPU on rows in the theme's shades: the colour of the largest step, as opaque
    as the value is large, for a picture has none of the style sheet's names."""
    job, (scale,) = picture.job, picture.scales
    board = job.board_of(np.maximum(scale.steps, 0).astype(np.uint8))
    (rows, columns), (cell, row), left, top = job.board_shape, job.sides, job.left, job.top
    end = rgb(SCALE_ENDS["dark" if theme == "dark" else "light"][scale.name])
    palette = [(*end, round(255 * step / STEPS)) for step in range(1, STEPS + 1)]
    return Pixels(board, (left, top, left + columns * cell, top + rows * row), palette)
