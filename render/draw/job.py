"""The job as a nested mesh -> marks.

On the page no group is marked where its script does that before anything is seen
(views/client/picture/marks.js); a picture that is still, of another layout than the one that the
script knows, has its marks from here, as files have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..marks import LABEL, LOOKS, Blocks, Layer, Lines, Mark, Numbers, Pixels, Slot, Words
from ..palette import GROUP_INK, KIND_COLOURS, KIND_MARKS, KIND_TINTS, PLAIN_CELL, ROWS, rgb
from ..scenes.job import SHADES, JobPicture, Segment
from ..scenes.job_plan import Label, Rectangle
from .groups import boxes_of, tags_of

MOST_LAYERS = 9
"""The longest label of a stage's layers that has the word in front."""

ROUND = 4.0
"""Pixels of the corners of the frame round the selected GPU."""

GAP_ROOM = 4.0
"""The least pixels of a plain cell that is separated from the next."""


def draw_job(
    picture: JobPicture,
    theme: str,
    is_marked: bool = True,
    outlined: np.ndarray | None = None,
) -> Iterator[Mark]:
    """The cells with the groups of the selected GPU, the borders of nodes, and the labels.

    outlined: bool, shape (world_size,): which numbered cells have a dashed frame.
    """
    look = LOOKS[theme]
    if picture.is_numbered:
        yield from _draw_numbered(picture, theme, is_marked)
        if outlined is not None and outlined.any():
            corners = np.stack([picture.x, picture.y], axis=-1)[outlined]
            yield Layer("moved", [Blocks(corners, np.array(picture.sides), edge=look.ink)])
        yield draw_node_ends(picture, theme)
    else:
        yield from _draw_plain(picture, theme, is_marked)
        yield draw_node_ends(picture, theme)
        yield tags_of(picture.tags if is_marked else (), theme)
    yield draw_labels(picture, theme)


def draw_labels(picture: JobPicture, theme: str) -> Layer:
    """The labels of stages and replicas."""
    ink = LOOKS[theme].quiet
    return Layer("rows", [_label(label, picture, ink) for label in picture.labels])


def draw_node_ends(picture: JobPicture, theme: str) -> Layer:
    """Lines at the borders of nodes."""
    look = LOOKS[theme]
    if picture.is_numbered:
        return Layer("ends", [_lines(picture.node_ends, look.edge, 1.5, (4.4, 3.5))])
    width = min(2.4, 0.6 * picture.sides[0])
    return Layer("ends", [_lines(picture.node_ends, look.page, width)])


def _label(label: Label, picture: JobPicture, ink: str) -> Words:
    """A label; of one about layers the first word is left out if there is no room."""
    words, lead = picture.words[label.name], ""
    if label.name != "layers":
        text = words.format(first=label.first, last=label.last)
    elif len(layers := picture.layers[label.first]) > MOST_LAYERS:
        text = layers
    else:
        text = words.format(layers=layers)
        word, space, rest = text.partition(" ")
        lead, text = (word + space, rest) if word.isalpha() and space else ("", text)
    name = f"of-{label.name}"
    place = label.x, label.y, text, LABEL, ink, label.anchor
    return Words(*place, is_middle=True, name=name, lead=lead)


# -- numbered cells --------------------------------------------------------------------------------


def _draw_numbered(picture: JobPicture, theme: str, is_marked: bool) -> Iterator[Mark]:
    """Replicas, boxes, cells and the lines between them, from back to front.

    In groups of their own what the script marks: the replica and the box of the chosen GPU, its
    groups below the numbers and, above them, itself.
    """
    look, scale = LOOKS[theme], picture.plan.scale
    replica, box, radius = 14 * scale, 10 * scale, 6 * scale
    yield draw_replicas(picture, theme)
    yield _here("replica", picture.replicas, picture, replica, is_marked)
    if picture.box_tone and theme == "page":
        yield _here(f"box t-{picture.box_tone}", picture.boxes, picture, box, is_marked)
    elif picture.box_tone:
        around = filter(picture.holds_rank, picture.boxes)
        yield boxes_of(around, box, "none", KIND_COLOURS[theme][picture.box_tone], 2.5)
    corners, sides = np.stack([picture.x, picture.y], axis=-1), np.array(picture.sides)
    yield Layer("cells", [Blocks(corners, sides, PLAIN_CELL[theme], radius=radius)])
    tones = {rank: mark.tone for mark in picture.marks for rank in mark.ranks.tolist()}
    tones.pop(picture.rank, None)
    fills = [KIND_TINTS[theme][tone] for tone in tones.values()]
    is_any = is_marked and bool(fills)
    groups = [Blocks(corners[[*tones]], sides, fills, radius=radius)] if is_any else []
    yield Layer("marked", groups)
    size, ink = picture.number_size, GROUP_INK[theme]
    ranks, (x, y) = list(map(str, range(len(corners)))), (corners + sides / 2).T
    yield Numbers("n", ranks, x, y, size, ink, bold=True, is_middle=True)
    yield Layer("joins", [*_joins(picture, theme)] if is_marked else [])
    here = corners[[picture.rank]]
    at, line = (here[0] + sides / 2).tolist()
    number = Words(at, line, str(picture.rank), size, look.page, "middle", True, is_middle=True)
    itself = Layer("j me", [Blocks(here, sides, ink, radius=radius), number])
    yield Layer("itself", [itself] if is_marked else [])


def draw_replicas(picture: JobPicture, theme: str) -> Layer:
    """The ground on which the cells of each replica stand; distances tell its boxes."""
    ground, scale = LOOKS[theme].ground, picture.plan.scale
    return Layer("replica", [boxes_of(picture.replicas, 14 * scale, ground, "none")])


def _here(
    name: str, boxes: Sequence[Rectangle], picture: JobPicture, radius: float, is_marked: bool
) -> Slot:
    """The frame of the replica or box with the selected GPU, which the script moves."""
    x, y, wide, tall = next(filter(picture.holds_rank, boxes))
    place = f'x="{x:.2f}" y="{y:.2f}" ' if is_marked else ""
    size = f'width="{wide:.2f}" height="{tall:.2f}"'
    return Slot(f'<rect class="{name} on" {place}{size} rx="{radius:.1f}"/>')


def _joins(picture: JobPicture, theme: str) -> Iterator[Mark]:
    for line in picture.lines:
        dots = (2.5, 5.0) if line.is_dotted else ()
        name = f"t-{line.tone}{' dots' if line.is_dotted else ''}"
        yield Layer(name, [_lines(line.segments, KIND_COLOURS[theme][line.tone], 2.5, dots)])


# -- plain cells -----------------------------------------------------------------------------------


def _draw_plain(picture: JobPicture, theme: str, is_marked: bool) -> Iterator[Mark]:
    """A pixel for each GPU on rows of alternating shade, with the groups of the selected one
    marked."""
    look, (cell, tall), plan = LOOKS[theme], picture.sides, picture.plan
    yield from draw_rows(picture, theme)
    rows, columns = picture.board_shape
    box = plan.left, plan.top, plan.left + columns * cell, plan.top + rows * tall
    of = "light" if theme == "page" else theme  # no picture has the names of colours in it
    colours = [*(KIND_MARKS[of][mark.tone] for mark in picture.marks), GROUP_INK[of]]
    board = picture.mark_pixels() if is_marked else np.zeros((1, 1), dtype=np.uint8)
    yield Pixels(board, box, [*map(rgb, colours)], "marks")
    if lines := _gaps(picture):
        yield Layer("gaps", [Lines(lines, look.page, min(1.0, 0.16 * min(cell, tall)))])
    x, y, wide, deep = picture.ring
    if theme == "page":
        place = f'x="{x:.2f}" y="{y:.2f}" ' if is_marked else ""
        yield Slot(
            f'<rect class="chosen" {place}width="{wide:.2f}" height="{deep:.2f}" rx="{ROUND}"/>'
        )
    else:
        yield boxes_of([picture.ring], ROUND, "none", look.page, 4.0)
        yield boxes_of([picture.ring], ROUND, "none", look.ink, 2.0)


def draw_rows(picture: JobPicture, theme: str) -> Iterator[Mark]:
    """The rows of all bands, in alternating shades."""
    plan, step = picture.plan, picture.plan.label_step
    wide, tall = plan.sizes.replica_width, plan.sizes.replica_height
    shades: list[list[Rectangle]] = [[] for _ in range(SHADES)]
    for x, y, stages, replicas in plan.corners():
        for first in range(0, len(stages), step):
            row = x, y + first * tall, len(replicas) * wide, min(step, len(stages) - first) * tall
            shades[stages[first] // step % SHADES].append(row)
    for number, (rows, fill) in enumerate(zip(shades, ROWS[theme])):
        yield Layer(f"shade s{number}", [boxes_of(rows, 0.0, fill, "none")])


def _gaps(picture: JobPicture) -> list[list[tuple[float, float]]]:
    """Lines between cells, if there is room for them: of each band, or they would cross labels; of
    tight bands across all at once, as between those a line in the page's colour is invisible."""
    (cell, row), plan = picture.sides, picture.plan
    if min(cell, row) < GAP_ROOM:
        return []
    wide, tall = plan.sizes.band_width, plan.sizes.band_height
    corners = [(x, y) for x, y, *_ in plan.corners()]
    (left, top), (right, bottom) = corners[0], corners[-1]
    areas = [(left, top, right + wide, bottom + tall)] if plan.is_tight else []
    areas = areas or [(x, y, x + wide, y + tall) for x, y in corners]
    bands = [y for _, y in corners] if plan.is_tight else [top]
    return [
        line
        for x0, y0, x1, y1 in areas
        for line in (
            *([(at, y0), (at, y1)] for at in _steps(x0, x1 - x0, cell)),
            *([(x0, at), (x1, at)] for band in bands for at in _steps(y0 + band - top, tall, row)),
        )
    ]


def _steps(start: float, length: float, cell: float) -> list[float]:
    return np.arange(start + cell, start + length - 1, cell).tolist()


def _lines(
    segments: Sequence[Segment], colour: str, width: float, dashes: tuple[float, ...] = ()
) -> Lines:
    return Lines([((x0, y0), (x1, y1)) for x0, y0, x1, y1 in segments], colour, width, dashes)
