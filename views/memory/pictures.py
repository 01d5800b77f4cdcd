"""What of the Memory view goes into files: bars, the GPUs, the moments of ZeRO."""

from __future__ import annotations

from dataclasses import replace

from descriptions import MEMORY, counted
from render.scenes.charts import Bar, BarsChart
from training.memory.per_stage import StageMemory, largest

from ..base.context import Context
from ..base.model import model_name
from ..base.trained import Trained
from ..base.view import Pictures
from .bars import COLOURS, gib, parts_of, shown_stages
from .grid import grid_label, heat_of
from .zero import moments_of, sharing_group, sharing_ranks


def memory_pictures(context: Context) -> Pictures:
    """Bars of the stages, the GPUs by how full they are, and who holds which share of a group.

    Errors: LayoutError where the view refuses.
    """
    layout, trained = context.layout, context.trained
    stages = trained.stages()
    rank, ranks = sharing_ranks(context)
    zero = trained.training.zero
    model = model_name(trained.chosen)
    kind = sharing_group(layout, trained.training.instances).name
    group = f"{kind} group of rank {rank}, {counted(len(ranks), 'rank', 'en')}"
    key = tuple(("", said) for said in MEMORY["zero_key"]["en"].rstrip(".").split(". "))
    return [
        (f"{MEMORY['bars_label']['en']}, {model}", _bars(trained, stages)),
        (grid_label(stages, "en"), heat_of(trained, stages, layout, "en")),
        *(
            (
                f"ZeRO {zero}, {group}: {MEMORY[f'moment_{moment}']['en']}",
                replace(shards, legend=key),
            )
            for moment, shards in moments_of(zero, ranks)
        ),
    ]


def _bars(trained: Trained, stages: tuple[StageMemory, ...]) -> BarsChart:
    """The parts of each stage under the line of the GPU's memory."""
    most = largest(stages)
    bars = tuple(
        Bar(
            f"PP {one.stage}",
            tuple((COLOURS[part], number) for part, number in one.parts.items()),
            gib(one.total) + (" !" if one.total > trained.capacity else ""),
            one.total > trained.capacity,
        )
        for one in shown_stages(stages, most)
    )
    line = MEMORY["capacity_line"]["en"].format(capacity=gib(trained.capacity))
    legend = tuple((COLOURS[part], MEMORY[f"part_{part}"]["en"]) for part in parts_of(stages))
    return BarsChart(bars, trained.capacity, line, legend)
