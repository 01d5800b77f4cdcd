"""Colours as data: one palette for groups, one pair a kind, a grey ramp for stages.

The colour of group g is ``PALETTE[g % 11]`` whatever the number of groups. All 11 differ from each
other by CIEDE2000 >= 20 for normal vision and >= 10 for deuteranopic and protanopic vision
(Machado, Oliveira and Fernandes 2009, severity 1), so any two may touch; the tests measure it.
"""

from __future__ import annotations

import numpy as np

PALETTE: tuple[str, ...] = (
    "#d0e062",
    "#006a65",
    "#8581f6",
    "#ffc2c3",
    "#7b8b00",
    "#8d1c44",
    "#78e6ff",
    "#4c3e9e",
    "#00a77a",
    "#604e00",
    "#c55c9b",
)

KIND_COLOURS: dict[str, dict[str, str]] = {
    "light": {"tp": "#577de3", "cp": "#878800", "dp": "#75d342", "pp": "#8e1900"},
    "dark": {"tp": "#a175ff", "cp": "#836d00", "dp": "#80ca22", "pp": "#fd609a"},
}
"""The colour of a kind where one rank's groups are shown together; dp-cp wears dp's."""

STAGE_GREYS: dict[str, tuple[str, str]] = {
    "light": ("#e9e9ec", "#b4b4bc"),
    "dark": ("#1b202c", "#40475a"),
}
"""First and last stage of the grey ramp; the page gets the dark one by inverting the light one."""

INKS: tuple[str, str] = ("#000000", "#ffffff")


def kind_colour(kind: str, theme: str = "light") -> str:
    """The colour of a kind; a join that contains dp is drawn as dp.

    >>> kind_colour("dp-cp") == kind_colour("dp")
    True
    """
    colours = KIND_COLOURS[theme]
    return colours["dp" if "dp" in kind.split("-") else kind]


def rgb(colour: str) -> tuple[int, int, int]:
    """
    >>> rgb("#ff0080")
    (255, 0, 128)
    """
    return (int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16))


def luminance(colour: str) -> float:
    """Relative luminance, 0 to 1 (WCAG 2.1, definition of relative luminance)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (channel / 255 for channel in rgb(colour))
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast ratio, 1 to 21 (WCAG 2.1, 1.4.3).

    >>> contrast("#000000", "#ffffff")
    21.0
    """
    darker, lighter = sorted((luminance(a), luminance(b)))
    return (lighter + 0.05) / (darker + 0.05)


def ink(fill: str) -> str:
    """Black or white, whichever reads better on ``fill``; at least 4.5:1 on any colour."""
    return max(INKS, key=lambda colour: contrast(colour, fill))


def colour_indices(group: np.ndarray, touching: np.ndarray) -> np.ndarray:
    """The palette index of each cell: int64, shape (cells,).

    group: the group of each cell, shape (cells,). touching: pairs of cells drawn side by side,
    shape (pairs, 2). ``g % 11``, except where two touching cells of different groups would get
    the same colour: then the colours go on by a fixed step every 11 groups (and by another every
    121), the first steps that part them all; for whole nodes and up to 256 GPUs there always are
    such steps. Groups 0 to 10 keep their colours in any case.

    >>> colour_indices(np.array([0, 1, 11, 12]), np.array([[0, 1], [0, 2]])).tolist()
    [0, 1, 1, 2]
    """
    colours = len(PALETTE)
    one, other = touching[:, 0], touching[:, 1]
    differ = group[one] != group[other]
    for far in range(colours):
        for step in range(colours):
            turns = step * (group // colours) + far * (group // colours**2)
            index = (group + turns) % colours
            if not np.any(differ & (index[one] == index[other])):
                return index
    return group % colours


def ramp(first: str, last: str, count: int) -> list[tuple[int, int, int]]:
    """``count`` colours from ``first`` to ``last``, evenly spaced in sRGB.

    >>> ramp("#000000", "#ffffff", 3)
    [(0, 0, 0), (128, 128, 128), (255, 255, 255)]
    """
    at = np.linspace(0, 1, max(count, 1))[:, None]
    steps = np.rint((1 - at) * rgb(first) + at * rgb(last)).astype(int)
    return [(int(r), int(g), int(b)) for r, g, b in steps]
