"""The memory of each GPU on the nodes, coloured by how full it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from descriptions import MEMORY, counted
from groups import group_index
from groups.layout import Layout
from render.scenes.groups import PANEL_LIMIT
from render.svg.heat import LEVELS, Heat, level_colours, levels
from training.memory.per_stage import StageMemory

from ..base.html import fine, painted, saying, tag, together
from ..base.trained import GIB, Trained


def stage_of_ranks(layout: Layout) -> np.ndarray:
    """The pipeline stage of each rank: int64, shape (world_size,)."""
    others = [name for name in layout.mesh.names if name != "pp"]
    if "pp" not in layout.mesh.names or not others:
        return np.arange(layout.world_size) % layout.mesh.size("pp")
    return group_index(layout.mesh, "-".join(others))


def grid_html(
    trained: Trained, stages: Sequence[StageMemory], layout: Layout, language: str
) -> Markup:
    """Every GPU with its bytes; all of one stage hold the same."""
    say, heat = saying(MEMORY, language), heat_of(trained, stages, layout, language)
    return together(
        tag("h3", say("grid_title")),
        fine(say("grid_body")),
        painted(heat, grid_label(stages, language)),
    )


def grid_label(stages: Sequence[StageMemory], language: str) -> str:
    totals = [stage.total / GIB for stage in stages]
    words = MEMORY["grid_label"][language]
    return words.format(least=f"{min(totals):.1f}", most=f"{max(totals):.1f}")


def heat_of(trained: Trained, stages: Sequence[StageMemory], layout: Layout, language: str) -> Heat:
    stage = stage_of_ranks(layout)
    totals = np.array([stage.total for stage in stages])
    level = levels(totals / trained.capacity)
    amounts = [f"{total / GIB:.0f}" for total in totals]
    is_small = layout.world_size <= PANEL_LIMIT
    return Heat(
        level[stage],
        [amounts[layer] for layer in stage] if is_small else amounts,
        layout.gpus_per_node,
        _legend(level, layout.world_size // len(stages), trained, language),
    )


def _legend(
    level: np.ndarray, ranks_each: int, trained: Trained, language: str
) -> tuple[tuple[str, str], ...]:
    """The levels that occur: the colour, its range, and how many GPUs are in it."""
    say, colours, items = saying(MEMORY, language), level_colours(), []
    for step_ in sorted(set(level.tolist())):
        low, high = (f"{trained.capacity / GIB * edge / LEVELS:.0f}" for edge in (step_, step_ + 1))
        gpus = counted(ranks_each * int(np.count_nonzero(level == step_)), "gpu", language)
        words = "grid_over" if step_ == LEVELS else "grid_level"
        items.append((colours[step_], say(words, low=low, high=high, gpus=gpus)))
    return tuple(items)
