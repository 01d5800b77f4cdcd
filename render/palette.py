"""Colours as data: soft ones for groups, one for each kind with its tints, greys for stages.

The colour of group g is ``GROUPS[theme][g % 10]`` whatever the number of groups: soft colours under
one ink, so that the numbers are what is read. Neighbours in this order differ by CIEDE2000 >= 22
for normal vision and >= 11 for deuteranopic and protanopic vision (Machado, Oliveira and Fernandes
2009, severity 1), any two by half of that; the tests measure it. Ten colours of one lightness that
all differ as neighbours do there are not, so the index is printed too, here as everywhere.

A kind has one hue in both themes: the colour itself for its name and for lines, a mark for the
small cells of large worlds, a tint for cells with a number in them. Kinds are told apart by where
they stand and by their names as well: to a deuteranope the hues of tp and ep are one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np

from groups.group_names import main_axis

PALETTE: tuple[str, ...] = (
    *("#a7ebf8", "#c69449", "#cae9bb", "#67acac", "#d0bafa"),
    *("#e29f81", "#83f6e1", "#81a1ca", "#d2cc74", "#da8188"),
)

GROUPS: dict[str, tuple[str, ...]] = {
    "light": PALETTE,
    "dark": (
        *("#327824", "#505074", "#6a4008", "#20442c", "#502c80"),
        *("#8c2c44", "#207474", "#2c5ca4", "#806850", "#5c2c50"),
    ),
    "page": tuple(f"var(--g{number})" for number in range(len(PALETTE))),
}

GROUP_INK = {"light": "#1f2937", "dark": "#f1f5f9", "page": "var(--gi)"}
"""The text colour on a group's colour, and the fill of the selected GPU."""

_HUES = {
    # light: colour, tint,    mark;     dark: colour, tint
    "tp": ("#2563eb", "#bfdbfe", "#6f9ff5", "#60a5fa", "#1e40af"),
    "cp": ("#b45309", "#fed7aa", "#f0a053", "#fbbf24", "#7c3a0a"),
    "dp": ("#15803d", "#bbf7d0", "#6fcf8f", "#4ade80", "#14532d"),
    "pp": ("#be123c", "#fecdd3", "#fb8a9a", "#fb7185", "#881337"),
    "ep": ("#7c3aed", "#ddd6fe", "#b08cf5", "#c084fc", "#4c1d95"),
}

TONES: tuple[str, ...] = tuple(_HUES)
"""Tones in the order in which one rank's groups use them, each named after its first kind."""


def _of_themes(name: str, light: int, dark: int) -> dict[str, dict[str, str]]:
    """A column of the table for each theme, and its names on the page."""
    columns = {"light": light, "dark": dark}
    tables = {
        theme: {tone: row[at] for tone, row in _HUES.items()} for theme, at in columns.items()
    }
    return {**tables, "page": {tone: f"var(--{name}-{tone})" for tone in _HUES}}


KIND_COLOURS = _of_themes("kind", 0, 3)

KIND_TINTS = _of_themes("tint", 1, 4)
"""Cells with a number in GROUP_INK."""

KIND_MARKS = _of_themes("mark", 2, 3)
"""Cells that are too small for a number."""

WAITING = {"light": "#fde68a", "dark": "#854d0e", "page": "var(--wait)"}
"""Time in which a GPU waits, in every picture of time."""

PLAIN_CELL = {"light": "#eef2f7", "dark": "#1e293b", "page": "var(--cell)"}
"""A GPU in none of the marked groups."""

STEPS = 6
"""Steps of a scale above zero."""

SCALE_ENDS = {
    "light": {"lost": "#fab700", "caused": "#00b2ad"},
    "dark": {"lost": "#996600", "caused": "#006b99"},
}
"""The colours for most time lost to others, and most time that others lose: that of waiting, and
that of the one scale of other pictures; every colour vision distinguishes them, and one ink is
readable on both."""

ROLE_CELLS: dict[str, tuple[str, ...]] = {
    "light": ("#e8edf4", "#d5dde8", "#f3f5f9", "#c5d0de", "#dfe5ee"),
    "dark": ("#26334a", "#33435e", "#1b2638", "#3f5170", "#2c3a53"),
    "page": tuple(f"var(--role-cell{number})" for number in range(5)),
}
"""The cell of a GPU with a role of a plan, by the role's place: greys, as hues are for kinds. Roles
are told by their places in a cell and by hatching (`draw.cluster`)."""

STEP_MARKS: dict[str, tuple[str, ...]] = {
    "light": ("#a9b8cc", "#94a6bf", "#bfcbda", "#8496b2", "#b4c1d3"),
    "dark": ("#52678a", "#627aa0", "#46597a", "#728bb3", "#5a7094"),
    "page": tuple(f"var(--role-held{number})" for number in range(5)),
}
"""What a role holds while it works, by the role's place."""

HEAT = 8
"""Steps of the scale from nothing to the whole."""

_ENDS = {"light": ("#dcefed", "#006a65"), "dark": ("#12302f", "#5fd3c6")}

HEAT_SHADES = (*(f"heat{step}" for step in range(HEAT)), "over")
"""The names of its colours, and of that for what is above the whole."""

CHAIN_SHADES = ("free", "culprit", "suspect", "first", "hop1", "hop2", "later", "end", "far")
"""The names of the colours of ranks in a hang, the most to blame after those that are free."""

_CHAINS = {
    "light": "#e5e7eb #8d1c44 #c2410c #f59e0b #fbbf24 #fcd34d #fde68a #fdeeb0 #fef9e3",
    "dark": "#1e293b #ff8fa3 #f97316 #d98a1f #b97412 #95600f #70490d #4f3710 #33250f",
}


def _shades(theme: str) -> dict[str, str]:
    steps = ramp(*_ENDS[theme], HEAT)
    heat = ["#" + "".join(f"{channel:02x}" for channel in step) for step in steps]
    over, blank = {"light": ("#8d1c44", "#e5e7eb"), "dark": ("#ff8fa3", "#334155")}[theme]
    chain = zip(CHAIN_SHADES, _CHAINS[theme].split())
    return {**dict(zip(HEAT_SHADES, (*heat, over))), **dict(chain), "blank": blank}


FILLS: dict[str, dict[str, str]] = {
    theme: dict(zip((f"{one}{step}" for one in ("kept", "step") for step in range(5)), row.split()))
    for theme, row in {
        "light": "#324457 #56677c #798aa1 #c7d3e2 #9db0c7 #00867e #b6fbf3 #75d4ca #00605a #39aba2",
        "dark": "#d8e4f3 #a5b8cf #8092a9 #394b5f #5d6f84 #46b6ad #00423d #00665f #83dbd2 #008e86",
    }.items()
}
FILLS["page"] = {name: f"var(--{name})" for name in FILLS["light"]}
"""What fills a GPU or a bar, by name: inks for what it keeps from step to step, and shades of the
one scale for what a step makes and frees. No hue of a kind and no colour of a group, and each
lighter or darker than those beside it, so that lightness alone tells them apart."""

ROWS: dict[str, tuple[str, str]] = {
    "light": ("#eef2f7", "#e2e8f0"),
    "dark": ("#1e293b", "#2b384d"),
    "page": ("var(--cell)", "var(--cell)"),  # the second one darkened there
}
"""Plain cells without a number: alternating rows."""

NO_GROUP = {"light": "#f8fafc", "dark": "#0f172a", "page": "var(--gn)"}
"""A GPU that is in no group of the kind."""

INKS: tuple[str, str] = ("#000000", "#ffffff")


def tones(names: Sequence[str]) -> dict[str, str]:
    """The tone of each group of one picture: its own if that is free, else the next one.

    A name wears the tone of what it is mostly made of: dp-cp and edp that of dp, etp that of tp.

    >>> tones(["tp", "dp-cp", "pp"])
    {'tp': 'tp', 'dp-cp': 'dp', 'pp': 'pp'}
    >>> tones(["dp", "dp-cp"])
    {'dp': 'dp', 'dp-cp': 'tp'}
    """
    tone_of = {name: main_axis(name) for name in names}
    free = [tone for tone in TONES if tone not in tone_of.values()]
    taken: set[str] = set()
    for number, name in enumerate(names):
        if tone_of[name] in taken or not tone_of[name]:
            tone_of[name] = free.pop(0) if free else TONES[number % len(TONES)]
        taken.add(tone_of[name])
    return tone_of


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
    """Contrast ratio, 1 to 21 (WCAG 2.1, 1.4.3)."""
    darker, lighter = sorted((luminance(a), luminance(b)))
    return (lighter + 0.05) / (darker + 0.05)


def ink(fill: str) -> str:
    """Black or white, whichever has more contrast on ``fill``; at least 4.5:1 on any colour."""
    return max(INKS, key=lambda colour: contrast(colour, fill))


def colour_indices(group: np.ndarray, touching: np.ndarray) -> np.ndarray:
    """The palette index of each cell: int64, shape (cells,).

    group: the group of each cell, shape (cells,); a cell in none (-1) parts no colours. touching:
    pairs of cells drawn side by side, shape (pairs, 2). ``g % 10``, except where two touching cells
    of different groups would get the same colour: then the colours go on by a fixed step every 10
    groups (and by another every 100), the first steps that part them all; for whole nodes and up to
    256 GPUs there always are such steps. Groups 0 to 9 keep their colours in any case.

    >>> colour_indices(np.array([0, 1, 10, 11]), np.array([[0, 1], [0, 2]])).tolist()
    [0, 1, 1, 2]
    """
    colours = len(PALETTE)
    first, other = touching[:, 0], touching[:, 1]
    differ = (group[first] != group[other]) & (group[first] >= 0) & (group[other] >= 0)
    for far, step in product(range(colours), repeat=2):
        turns = step * (group // colours) + far * (group // colours**2)
        index = (group + turns) % colours
        if not np.any(differ & (index[first] == index[other])):
            return index
    return group % colours


def ramp(first: str, last: str, count: int) -> list[tuple[int, int, int]]:
    """``count`` colours from ``first`` to ``last``, evenly spaced in sRGB.

    >>> ramp("#000000", "#ffffff", 3)
    [(0, 0, 0), (128, 128, 128), (255, 255, 255)]
    """
    at = np.linspace(0, 1, max(count, 1))[:, None]
    steps = np.rint((1 - at) * rgb(first) + at * rgb(last)).astype(int)
    return list(map(tuple, steps.tolist()))


def fill_of(colour: str, theme: str) -> str:
    """The colour of a chart's part: by its name in FILLS, or as it is.

    >>> fill_of("kept0", "light"), fill_of("kept0", "page"), fill_of("#475569", "dark")
    ('#324457', 'var(--kept0)', '#475569')
    """
    return FILLS[theme].get(colour, colour)


@lru_cache(maxsize=8)
def scale_of(name: str, theme: str) -> tuple[str, ...]:
    """The colours of a scale, the first for zero, which is a plain cell's.

    >>> scale_of("lost", "light")[::STEPS], scale_of("lost", "page")[1]
    (('#eef2f7', '#fab700'), 'var(--lost-1)')
    """
    if theme == "page":
        return (PLAIN_CELL[theme], *(f"var(--{name}-{step})" for step in range(1, STEPS + 1)))
    steps = ramp(PLAIN_CELL[theme], SCALE_ENDS[theme][name], STEPS + 1)
    return tuple("#" + "".join(f"{channel:02x}" for channel in step) for step in steps)


SHADES: dict[str, dict[str, str]] = {theme: _shades(theme) for theme in ("light", "dark")}
SHADES["page"] = {name: f"var(--{name})" for name in SHADES["light"]}
"""The colours of maps, by name: each theme has its own, the page those of its style sheet."""

SHADE_INKS: dict[str, dict[str, str]] = {
    theme: {name: ink(colour) for name, colour in SHADES[theme].items()}
    for theme in ("light", "dark")
}
SHADE_INKS["page"] = {name: f"var(--on-{name})" for name in SHADES["light"]}
"""The ink on each of them."""


def shade_of(share: float) -> str:
    """The name of a sender's shade by its bytes, as a share of the largest sender's.

    >>> shade_of(0.01), shade_of(1.0)
    ('heat1', 'heat6')
    """
    return HEAT_SHADES[1 + round(min(max(share, 0.0), 1.0) * (HEAT - 3))]
