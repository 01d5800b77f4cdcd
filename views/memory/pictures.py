"""What of the Memory view goes into files: bars, the GPUs, the moments of ZeRO."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from descriptions import MEMORY, SAVED, counted
from render.palette import PALETTE
from render.scenes.charts import Bar, BarsChart
from training.estimate.memory import CLOSE, USABLE, fit_of
from training.memory.per_stage import StageMemory, largest

from ..base.context import Context, Pictures
from ..base.model import model_name
from ..base.trained import Trained
from .bars import COLOURS, gib, parts_of, visible_stages
from .grid import grid_label, heat_of
from .zero import moments_of, sharing_group, sharing_ranks


def memory_pictures(context: Context) -> Pictures:
    """Bars of the stages, the GPUs by how full they are, and who holds which share of a group."""
    layout, trained = context.layout, context.trained
    rank, ranks = sharing_ranks(context)
    zero = trained.training.zero
    language = context.language
    facts = {
        "zero": zero,
        "kind": sharing_group(layout, trained.training.instances).name,
        "rank": rank,
        "ranks": counted(len(ranks), "rank", language),
    }
    key = re.split(r"\. |。", MEMORY["zero_key"][language].rstrip(".。"))
    pictures = memory_slide(context)
    for moment, shards in moments_of(zero, ranks):
        said = MEMORY[f"moment_{moment}"][language]
        title = SAVED["zero"][language].format(**facts, moment=said)
        pictures.append((title, replace(shards, legend=tuple(("", part) for part in key))))
    return pictures


def memory_slide(context: Context) -> Pictures:
    trained, language = context.trained, context.language
    stages = trained.stages()
    title = f"{MEMORY['bars_label'][language]}: {model_name(trained.chosen, language)}"
    return [
        (title, _bars(trained, stages, language)),
        (grid_label(stages, language), heat_of(trained, stages, context.layout, language)),
    ]


def memory_summary(context: Context) -> str:
    return verdict_text(context, context.trained.stages())


def _bars(trained: Trained, stages: tuple[StageMemory, ...], language: str) -> BarsChart:
    most, colours = largest(stages), {part: PALETTE[COLOURS[part]] for part in parts_of(stages)}
    bars = tuple(
        Bar(
            f"PP {stage.stage}",
            tuple((colours[part], number) for part, number in stage.parts.items()),
            gib(stage.total) + (" !" if stage.total > trained.capacity else ""),
            stage.total > trained.capacity,
        )
        for stage in visible_stages(stages, most)
    )
    line = MEMORY["capacity_line"][language].format(capacity=gib(trained.capacity))
    legend = tuple(
        (PALETTE[COLOURS[part]], MEMORY[f"part_{part}"][language]) for part in parts_of(stages)
    )
    return BarsChart(bars, trained.capacity, line, legend)


def verdict_text(context: Context, stages: Sequence[StageMemory]) -> str:
    trained = context.trained
    most, fit = largest(tuple(stages)), fit_of(trained.request(context.layout))
    over = [stage for stage in stages if stage.total > trained.capacity]
    full = fit.needed / trained.capacity
    code = "verdict_close" if full > CLOSE else "verdict_fits"
    if not fit.fits:
        code = "verdict_over" if over else "verdict_tight" if full > USABLE else "verdict_host"
    return MEMORY[code][context.language].format(
        stage=most.stage,
        total=gib(most.total),
        needed=gib(fit.needed),
        capacity=gib(trained.capacity),
        missing=gib(most.total - trained.capacity),
        share=f"{100 * full:.0f}",
        host=gib(fit.host * context.layout.gpus_per_node),
        count=len(over),
        stages=len(stages),
    )
