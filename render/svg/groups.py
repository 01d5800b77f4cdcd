"""Panels and overviews -> inline SVG for the page, with colours of its CSS and texts for screen
readers.

Colours are names of the page's style sheet (`style`). Cells are few elements (`cells`): where each
rank is, and its group, stands in ``data-known``, which is all that the page's script needs to light
up a group.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from ..draw.groups import draw_overview, draw_panel
from ..palette import (
    FILLS,
    GROUP_INK,
    GROUPS,
    KIND_COLOURS,
    KIND_MARKS,
    KIND_TINTS,
    NO_GROUP,
    PALETTE,
    PLAIN_CELL,
    ROLE_CELLS,
    SCALE_ENDS,
    SHADE_INKS,
    SHADES,
    STEP_MARKS,
    TONES,
    WAITING,
    scale_of,
)
from ..scenes.geometry import GAP, Fold, node_columns
from ..scenes.groups import Overview, Panel
from .cells import LETTER
from .marks import known_svg, marks_svg


def style() -> str:
    """The palette as CSS: colours of groups and kinds as variables that each theme sets."""
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
    for name in SCALE_ENDS[theme]:
        steps = enumerate(scale_of(name, theme)[1:], 1)
        colours |= {f"{name}-{step}": colour for step, colour in steps}
    colours |= {f"role-cell{i}": colour for i, colour in enumerate(ROLE_CELLS[theme])}
    colours |= {f"role-held{i}": colour for i, colour in enumerate(STEP_MARKS[theme])}
    colours |= SHADES[theme] | FILLS[theme]
    colours |= {f"on-{name}": colour for name, colour in SHADE_INKS[theme].items()}
    colours |= {"gi": GROUP_INK[theme], "gn": NO_GROUP[theme], "cell": PLAIN_CELL[theme]}
    colours["wait"] = WAITING[theme]
    return "".join(f"--{name}:{colour};" for name, colour in colours.items())


def panel_svg(panel: Panel, description: str, outlined: np.ndarray | None = None) -> str:
    """One panel; ``description`` is the text for screen readers.

    outlined: bool, shape (world_size,): ranks to draw a frame round.
    """
    side, (rank_size, index_size) = panel.side, panel.text_sizes
    room = 1.38 * side / len(str(len(panel.group) - 1))  # how large the rank may be drawn
    longest = max(map(len, map(panel.index_text, (0, panel.grouping.num_groups - 1))))
    most = min(1.3 * index_size, 0.9 * side / (LETTER * longest))
    return (
        f'<svg class="panel" data-kind="{panel.kind}" {_known(panel, outlined)} role="group" '
        f'data-rank-size="{rank_size:.1f}" data-index-size="{index_size:.1f}" '
        f'viewBox="0 0 {panel.width:g} {panel.height:g}" style="--width:{panel.width:g}px;'
        f"--w:{panel.width:g};--size:{index_size:.1f}px;--most:{most:.1f}px;"
        f'--rank:{rank_size:.1f}px;--room:{room:.1f}px" '
        f'aria-label="{escape(description)}">{marks_svg(draw_panel(panel, "page", outlined))}</svg>'
    )


def _known(panel: Panel, outlined: np.ndarray | None) -> str:
    """The place of each rank, its group, and which are outlined."""
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


def overview_svg(overview: Overview, description: str, kinds: Sequence[int] = ()) -> str:
    """The nodes of a large world, its cells as one picture with one pixel per GPU.

    kinds: the numbers under which the page's script knows the kinds that it marks here.
    """
    cell, grid = overview.cell, overview.grid
    known = known_svg(
        folds=[(*fold[:2], *(cell * cells for cells in fold[2:])) for fold in grid.folds],
        left=overview.left,
        top=overview.top,
        sides=overview.sides,
        kinds=kinds,
        swell=[overview.swell(size) for _, size in overview.sizes],
    )
    return (
        f'<svg class="overview" data-view="physical" {known} role="group" '
        f'viewBox="0 0 {overview.width + 2:g} {overview.height + 2:g}" '
        f'style="--width:{1.25 * overview.width:g}px" '
        f'aria-label="{escape(description)}">{marks_svg(draw_overview(overview, "page"))}</svg>'
    )
