"""Panels and overviews -> inline SVG for the page, themed by its CSS, spoken by screen readers.

Only class names are written here, no colours: ``g0`` to ``g9`` are the group palette, and the
page's style sheet (`style`) gives them fill and ink. Cells are few elements (`cells`): where each
rank is, and its group, stands in ``data-known``, which is all that the page's script needs to light
up a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ..palette import (
    GROUP_INK,
    GROUPS,
    KIND_COLOURS,
    KIND_MARKS,
    KIND_TINTS,
    NO_GROUP,
    PALETTE,
    PLAIN_CELL,
    STAGE_GREYS,
    TONES,
    ramp,
    rgb,
)
from ..png import png_uri
from ..scenes.geometry import GAP, Fold, node_columns
from ..scenes.groups import Gap, Overview, Panel
from .cells import LETTER, frames, numbers, outline
from .parts import known_svg, rows_svg, tags_svg


def style() -> str:
    """The palette as CSS: colours of groups and kinds as names that each theme fills."""
    groups = "".join(f".g{i}{{fill:var(--g{i});stroke:var(--g{i})}}" for i in range(len(PALETTE)))
    ink = '[class*=" g"]>text{fill:var(--gi);stroke:none}'
    themes = "".join(
        f"{where}{{{_named(theme)}}}" for where, theme in ((":root", "light"), (".dark", "dark"))
    )
    chips = "".join(
        f".t-{tone}{{--kind:var(--kind-{tone});--tint:var(--tint-{tone})}}" for tone in TONES
    )
    return f"{themes}{groups}.gn{{fill:var(--gn);stroke:var(--gn)}}{ink}{chips}"


def _named(theme: str) -> str:
    kinds = (("kind", KIND_COLOURS), ("tint", KIND_TINTS), ("mark", KIND_MARKS))
    colours = {f"g{i}": colour for i, colour in enumerate(GROUPS[theme])}
    colours |= {
        f"{name}-{tone}": colour for name, table in kinds for tone, colour in table[theme].items()
    }
    colours |= {"gi": GROUP_INK[theme], "gn": NO_GROUP[theme], "cell": PLAIN_CELL[theme]}
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def panel_svg(panel: Panel, description: str, outlined: np.ndarray | None = None) -> str:
    """One panel; ``description`` is its text equivalent for screen readers.

    outlined: bool, shape (world_size,): ranks to draw a frame round.
    """
    side, (rank_size, index_size) = panel.side, panel.text_sizes
    room = 1.38 * side / len(str(len(panel.group) - 1))  # how large the rank may be drawn
    longest = max(map(len, map(panel.index_text, (0, panel.grouping.num_groups - 1))))
    most = min(1.3 * index_size, side / (LETTER * longest))
    radius = min(6.0, side / 6)
    x, y = panel.x + GAP / 2, panel.y + GAP / 2
    moved = ""
    if outlined is not None and outlined.any():
        around = outline(x[outlined], y[outlined], (side, side), 0.0)
        moved = f'<path class="moved" d="{around}"/>'
    return (
        f'<svg class="panel" data-kind="{panel.kind}" {_known(panel, outlined)} role="group" '
        f'data-rank-size="{rank_size:.1f}" data-index-size="{index_size:.1f}" '
        f'viewBox="0 0 {panel.width:g} {panel.height:g}" style="--width:{panel.width:g}px;'
        f"--w:{panel.width:g};--size:{index_size:.1f}px;--most:{most:.1f}px;"
        f'--rank:{rank_size:.1f}px;--room:{room:.1f}px" '
        f'aria-label="{escape(description)}">'
        f"{frames('node', panel.frames, 6.0)}{rows_svg(panel.labels)}"
        f'<g class="cells" stroke-width="{2 * radius:g}">{_fills(panel, x, y, radius)}</g>'
        f'<g class="marked"></g>{moved}{_cell_texts(panel, x + side / 2, y)}</svg>'
    )


def _known(panel: Panel, outlined: np.ndarray | None) -> str:
    """Where each rank is, its group, and which are outlined."""
    gpus, nodes = panel.gpus_per_node, len(panel.frames)
    steps = (
        (float(at[apart] - at[0]) if apart < len(at) else 0.0)
        for at, apart in ((panel.x, gpus), (panel.y, gpus * panel.across))
    )
    right, down = steps
    folds = (
        Fold(gpus, node_columns(gpus), dx=panel.cell, jump_y=panel.cell),
        Fold(nodes, panel.across, dx=right, jump_y=down),
    )
    return known_svg(
        folds=folds,
        left=float(panel.x[0]) + GAP / 2,
        top=float(panel.y[0]) + GAP / 2,
        sides=(panel.side, panel.side),
        groups=panel.group.tolist(),
        moved=[] if outlined is None else np.flatnonzero(outlined).tolist(),
    )


def _fills(panel: Panel, x: np.ndarray, y: np.ndarray, radius: float) -> str:
    """The cells of each colour."""
    colours, size = panel.colour, (panel.side, panel.side)
    return "".join(
        f'<path class="g{"n" if colour < 0 else colour}" '
        f'd="{outline(x[colours == colour], y[colours == colour], size, radius)}"/>'
        for colour in np.unique(colours).tolist()
    )


def overview_svg(overview: Overview, description: str, kinds: Sequence[int] = ()) -> str:
    """The nodes of a large world, its cells as one picture of one pixel a GPU.

    kinds: the numbers under which the page's script knows the kinds that it marks here.
    """
    cell, grid = overview.cell, overview.grid
    box = (
        f'x="{overview.left:g}" y="{overview.top:g}" width="{grid.columns * cell:g}" '
        f'height="{grid.rows * cell:g}" preserveAspectRatio="none"'
    )
    known = known_svg(
        folds=[(*fold[:2], *(cell * cells for cells in fold[2:])) for fold in grid.folds],
        left=overview.left,
        top=overview.top,
        sides=overview.sides,
        kinds=kinds,
        swell=[overview.swell(size) for _, size in overview.sizes],
    )
    x, y = overview.middle
    base = png_uri(overview.base_pixels(), ramp(*STAGE_GREYS["light"], overview.num_shades))
    kinds_of_marks = [rgb(KIND_COLOURS["light"][mark.tone]) for mark in overview.marks]
    marks = png_uri(overview.mark_pixels(), kinds_of_marks)
    return (
        f'<svg class="overview" data-view="physical" {known} role="group" '
        f'viewBox="0 0 {overview.width + 2:g} {overview.height + 2:g}" '
        f'style="--width:{1.25 * overview.width:g}px" '
        f'aria-label="{escape(description)}">'
        f'<image class="base" {box} href="{base}"/>'
        f'<image class="marks" {box} href="{marks}"/>'
        f"{''.join(_gap(overview, gap) for gap in overview.gaps)}"
        f'<circle class="chosen" cx="{x:g}" cy="{y:g}" r="{overview.ring:g}"/>'
        f"{tags_svg(overview.tags)}{rows_svg(overview.labels)}</svg>"
    )


def _gap(overview: Overview, gap: Gap) -> str:
    left, top, (xs, ys) = overview.left, overview.top, overview.lines(gap)
    width, height = overview.width - left, overview.height - top
    down, begin, right = f" {top:g}v{height:g}", f"M{left:g} ", f"h{width:g}"
    lines = [f"M{x:.2f}{down}" for x in xs[1:-1].tolist()]
    lines += [f"{begin}{y:.2f}{right}" for y in ys[1:-1].tolist()]
    return f'<path class="gaps {gap.name}" stroke-width="{gap.width:.2f}" d="{"".join(lines)}"/>'


def _cell_texts(panel: Panel, x: np.ndarray, y: np.ndarray) -> str:
    """The rank in each cell, and under it the group where a cell has room for both; x: of their
    middles."""
    side, (size, small) = panel.side, panel.text_sizes
    if not panel.shows_rank:
        return ""
    down = side * 0.5 if panel.shows_index else side / 2 + size * 0.36
    ranks = numbers(list(map(str, range(len(x)))), x, y + down, "r", size)
    if not panel.shows_index:
        return ranks
    indices = list(map(panel.index_text, panel.group.tolist()))
    return ranks + numbers(indices, x, y + side * 0.85, "i", small)
