"""The memory of each GPU on the nodes, coloured by how full it is."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from descriptions import MEMORY
from groups import group_index
from render.heat import LEVELS, Heat, heat_svg, level_colours, levels
from render.palette import ink
from render.scene import PANEL_LIMIT
from training.memory import StageMemory

from .memory_asked import GIB, Problem
from .state import Layout


def stage_of_ranks(layout: Layout) -> np.ndarray:
    """The pipeline stage of each rank: int64, shape (world_size,)."""
    others = [name for name in layout.mesh.names if name != "pp"]
    if "pp" not in layout.mesh.names or not others:
        return np.arange(layout.world_size) % layout.mesh.size("pp")
    return group_index(layout.mesh, "-".join(others))


def grid_html(
    problem: Problem, stages: Sequence[StageMemory], layout: Layout, language: str
) -> str:
    """Every GPU with its bytes; all of one stage hold the same."""
    stage = stage_of_ranks(layout)
    totals = np.array([one.total for one in stages])
    level = levels(totals / problem.capacity)
    amounts = [f"{total / GIB:.0f}" for total in totals]
    is_small = layout.world_size <= PANEL_LIMIT
    of_ranks = [amounts[one] for one in stage] if is_small else amounts
    words = MEMORY["grid_label"][language].format(
        least=f"{totals.min() / GIB:.1f}", most=f"{totals.max() / GIB:.1f}"
    )
    picture = heat_svg(Heat(level[stage], of_ranks, layout.gpus_per_node), words)
    return (
        f"<h3>{escape(MEMORY['grid_title'][language])}</h3>"
        f'<p class="fine">{escape(MEMORY["grid_body"][language])}</p>'
        f"{_legend(level, layout.world_size // len(stages), problem, language)}"
        f'<div class="memory-grid">{picture}</div>'
    )


def _legend(level: np.ndarray, ranks_each: int, problem: Problem, language: str) -> str:
    """The levels that occur: their range, and how many GPUs are in it."""
    colours = level_colours()
    items = []
    for one in sorted(set(level.tolist())):
        low, high = (problem.capacity / GIB * edge / LEVELS for edge in (one, one + 1))
        words = MEMORY["grid_over" if one == LEVELS else "grid_level"][language]
        gpus = ranks_each * int(np.count_nonzero(level == one))
        text = words.format(low=f"{low:.0f}", high=f"{high:.0f}", gpus=f"{gpus:,}")
        items.append(
            f'<li style="background:{colours[one]};color:{ink(colours[one])}">{escape(text)}</li>'
        )
    return f'<ul class="memory-levels">{"".join(items)}</ul>'
