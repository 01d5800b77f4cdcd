"""The axes of a chart -> marks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..marks import LABEL, Lines, Look, Mark, Words

Ticks = Sequence[tuple[float, str]]
"""Where an axis has a line, in pixels, and what stands there."""


def draw_axes(
    box: tuple[float, float, float, float],
    ticks: tuple[Ticks, Ticks],
    names: tuple[str, str],
    look: Look,
    gaps: tuple[float, float] = (36, 10),
) -> Iterator[Mark]:
    """A grid within a box (left, top, right, foot), its ticks across and up, and what both are.

    gaps: pixels from the box down to the baseline of one name, and up to that of the other.

    >>> from ..marks import LOOKS
    >>> marks = draw_axes((0, 0, 9, 9), ([(3, "8"), (6, "16")], []), ("GPUs", "s"), LOOKS["light"])
    >>> [mark.text for mark in marks if isinstance(mark, Words)]
    ['8', '16', 'GPUs', 's']
    """
    left, top, right, foot = box
    across, up = ticks
    grid = [[(x, top), (x, foot)] for x, _ in across]
    grid += [[(left, y), (right, y)] for y, _ in up]
    yield Lines(grid, look.edge, opacity=0.5)
    for x, text in across:
        yield Words(x, foot + 15, text, LABEL, look.quiet, "middle")
    for y, text in up:
        yield Words(left - 6, y + 4, text, LABEL, look.quiet, "end")
    yield Words((left + right) / 2, foot + gaps[0], names[0], LABEL, look.quiet, "middle")
    yield Words(left, top - gaps[1], names[1], LABEL, look.quiet)
