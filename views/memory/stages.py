"""Memory of each pipeline stage: stacked bars with the formula of each part, and GPU by GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import truediv

import numpy as np
from markupsafe import Markup

from descriptions import JOB, MEMORY, counted, joined
from groups.layout import Layout
from render.palette import HEAT_SHADES
from render.scenes.groups import PANEL_LIMIT
from render.scenes.heat import LEVELS, Heat, levels
from render.scenes.over_step import COLOURS
from request.context import Context
from request.trained import GIB, Trained
from request.units import gib
from request.words import saying
from training.kinds import LayerKind
from training.memory.activations import LOGIT, layer_activations
from training.memory.per_stage import PARTS, StageMemory, exchange_buffers, largest
from training.parameters import layer_parameters, on_one_rank
from training.pipeline.figures import outputs_in_flight
from training.recipe import PRECISIONS
from training.sharding.held import element_bytes
from training.split import padded_vocabulary

from ..base.heat import painted
from ..base.html import button, by_pointer, cell, fine, tag, together

MOST_ROWS = 32
"""The most bars drawn; of more stages every n-th, with the fullest and the last."""

MIDDLE = 50
"""Percent of the width from which on the line's label is left of it."""


def bars_html(context: Context, stages: Sequence[StageMemory]) -> Markup:
    """A bar for each stage below the line of the GPU's memory; below them the formulas of the stage
    of the chosen GPU, of the fullest one where none is.

    The name of a stage leads to its first GPU in the picture of the job, as Enter on its bar does.
    """
    trained, say = context.trained, saying(MEMORY, context.language)
    most, opened = largest(tuple(stages)), _opened(context, stages)
    visible = visible_stages(stages, opened)
    widest = max(most.total, trained.capacity) * 1.02
    first_gpus = context.layout.every["pp"].members(0).tolist()
    formulas = {stage.stage: _parts_table(trained, stage, context.language) for stage in visible}

    def bar(stage: StageMemory) -> Markup:
        over, total = stage.total > trained.capacity, gib(stage.total)
        leads = {"view": "groups", "rank": str(first_gpus[stage.stage])}
        title = JOB["stage"][context.language].format(stage=stage.stage)
        name = button(title, class_="opener", tabindex=-1, data_set=leads)
        segments = (
            tag("span", style=f"width:{100 * number / widest:.2f}%;{coloured(part)}")
            for part, number in stage.parts.items()
        )
        return tag(
            "div",
            tag("span", name, class_="memory-name"),
            tag("span", *segments, class_="memory-bar"),
            tag("span", total, " !" if over else "", class_="memory-total"),
            tag("template", formulas[stage.stage], class_="memory-told"),
            class_=f"memory-row{' over' if over else ''}{' chosen' if stage is opened else ''}",
            role="listitem",
            tabindex=0,
            aria_label=say("bar_over" if over else "bar_label", stage=stage.stage, total=total),
        )

    at = 100 * trained.capacity / widest
    label = tag("span", say("capacity_line", capacity=gib(trained.capacity)))
    line = tag("p", label, class_=f"memory-line{' before' if at > MIDDLE else ''}")
    style, title = f"--memory-capacity:{at:.2f}%", say("bars_label")
    bars = (line, *map(bar, visible))
    some = fine(say("bars_some", shown=len(visible), stages=len(stages)))
    parts = (tag("li", say(f"part_{part}"), style=coloured(part)) for part in parts_of(stages))
    return together(
        tag("div", *bars, class_="memory-bars", style=style, role="list", aria_label=title),
        tag("ul", *parts, class_="memory-legend"),
        fine(by_pointer(say("bars_hint"), say("bars_hint_touch"))),
        some if len(visible) < len(stages) else "",
        tag("div", formulas[opened.stage], class_="memory-formula", aria_live="polite"),
    )


def _opened(context: Context, stages: Sequence[StageMemory]) -> StageMemory:
    if context.state.values["rank"] in (None, ""):
        return largest(tuple(stages))
    return stages[int(stage_of_ranks(context.layout)[context.rank])]


def visible_stages(
    stages: Sequence[StageMemory], opened: StageMemory | None = None
) -> list[StageMemory]:
    """The stages drawn as bars."""
    step, always = -(-len(stages) // MOST_ROWS), (largest(tuple(stages)), stages[-1], opened)
    return [stage for stage in stages if stage.stage % step == 0 or stage in always]


def parts_of(stages: Sequence[StageMemory]) -> list[str]:
    """The parts that any stage has, in order."""
    return [part for part in PARTS if any(part in stage.parts for stage in stages)]


def coloured(part: str) -> str:
    """The colour of a part for the style sheet."""
    return f"--part:var(--{COLOURS[part]})"


# -- formulas --------------------------------------------------------------------------------------


def _parts_table(trained: Trained, stage: StageMemory, language: str) -> Markup:
    """The parts of a stage, each with its formula and this stage's numbers."""
    say, formulas = saying(MEMORY, language), _formulas(trained, stage, language)
    rows = (
        tag(
            "tr",
            tag("th", say(f"part_{part}"), scope="row", style=coloured(part)),
            *(cell(gib(number)), cell(formulas[part])),
        )
        for part, number in stage.parts.items()
    )
    facts = {"layers": stage.parameters.layers, "total": gib(stage.total)}
    return together(
        tag("h4", say("told_stage", stage=stage.stage, **facts)),
        tag("div", tag("table", tag("tbody", *rows)), class_="memory-scroll"),
    )


def _formulas(trained: Trained, stage: StageMemory, language: str) -> dict[str, str]:
    split, training, model = trained.split, trained.training, trained.model
    precision, say = PRECISIONS[training.precision], saying(MEMORY, language)
    is_own = training.engine != "megatron"
    own = {
        part: _states(trained, stage, each, is_cut=is_cut)
        for part, (each, is_cut) in element_bytes(training, split.pp).items()
    }
    if frozen := stage.trained[2:]:
        ranks = training.ranks_sharing(split) if element_bytes(training)["weights"][1] else (1, 1)
        size = gib(sum(map(truediv, frozen, ranks)))
        own["weights"] = say("formula_frozen", size=size, adapters=own["weights"])
    tokens = f"{training.micro_batch} × {model.sequence:,}"
    tokens += f" / {split.cp}" if split.cp > 1 else ""
    tensor = f" / {split.tp}" if split.tp > 1 else ""
    cut = tensor if training.sequence_parallel else ""
    inputs = f"{2 * training.element} B × {model.hidden:,}{cut}"
    logits = f"{LOGIT[is_own]} B × {padded_vocabulary(model.vocabulary, split.tp):,}{tensor}"
    kept = outputs_in_flight(training.pipeline(split))
    outputs = f"{kept} × " if kept > 1 else ""
    modules = f" × {1 + model.mtp_layers}" if model.mtp_layers else ""
    held = min(split.pp, training.micro_batches)
    is_own |= training.is_adapted
    has_gathered = "gathered" in stage.parts and not is_own
    gathered = " + ".join(_gathered(trained, stage)) if has_gathered else ""
    layer = layer_activations(model, split, training, _kind(trained, stage))
    return {
        **own,
        "copies": _states(trained, stage, 2, is_cut=training.zero >= 3),
        "gathered": say("formula_whole")
        if is_own
        else say("formula_gathered", terms=f"{precision.weight} B × ({gathered})"),
        "activations": say(
            "formula_activations",
            in_flight=f"{stage.in_flight:,.{0 if stage.in_flight % 1 == 0 else 2}f}",
            layers=stage.parameters.layers,
            stage=gib(stage.layer_bytes),
            parts=" + ".join(f"{say(f'layer_{at}')} {n / 1e6:,.1f}" for at, n in layer.items()),
        ),
        "embedding": f"{held} × {tokens} × {model.hidden:,} × 1 B{cut}",
        "output": f"{outputs}{tokens} × ({inputs} + {logits}){modules}",
        "recomputed": say("formula_recomputed"),
        "working": _working(trained, stage, language),
    }


def _kind(trained: Trained, stage: StageMemory) -> LayerKind:
    """The kind of layer of a stage whose formula is shown: the last in the model's order."""
    held = (kind for kind, number in zip(trained.model.kinds, stage.parameters.kinds) if number)
    return [*held][-1] if any(stage.parameters.kinds) else trained.model.kinds[0]


def _working(trained: Trained, stage: StageMemory, language: str) -> str:
    say, buffers = saying(MEMORY, language), 0.0
    if stage.parameters.moe_layers:
        buffers = exchange_buffers(trained.model, trained.split, trained.training)
    more = [say("formula_buffers", size=gib(buffers))] if buffers else []
    return joined([say("formula_working"), *more], language)


def _states(trained: Trained, stage: StageMemory, each: float, *, is_cut: bool) -> str:
    """The formula of states: bytes per parameter times parameters, divided by the ranks that share
    them, if they are cut."""
    shares = trained.training.ranks_sharing(trained.split) if is_cut else (1, 1)
    terms = [
        f"{millions(number)}{f' / {ranks:,}' if ranks > 1 else ''}"
        for number, ranks in zip(stage.trained[:2], shares)
        if number
    ]
    inside = " + ".join(terms)
    return f"{each} B × ({inside})" if len(terms) > 1 else f"{each} B × {inside}"


def _gathered(trained: Trained, stage: StageMemory) -> Iterator[str]:
    split, is_away = trained.split, trained.training.offload == "parameters"
    counts = on_one_rank(layer_parameters(trained.model, _kind(trained, stage)), split)
    experts = counts.pop("experts", 0)
    shares = trained.training.ranks_sharing(split)
    for number, ranks in zip((sum(counts.values()), experts), shares):
        if number:
            yield f"{millions(number)}{'' if is_away else f' × (1 − 1/{ranks})'}"  # noqa: RUF001


def millions(number: float) -> str:
    """
    >>> millions(1_594_000_000), millions(8192)
    ('1,594 M', '0.00819 M')
    """
    amount = number / 1e6
    return f"{amount:,.0f} M" if amount >= 10 else f"{amount:.3g} M"


# -- GPU by GPU ------------------------------------------------------------------------------------


def stage_of_ranks(layout: Layout) -> np.ndarray:
    """The pipeline stage of each rank: int64, shape (world_size,)."""
    stages = np.empty(layout.world_size, dtype=np.int64)
    stages[layout.every["pp"].groups()] = np.arange(layout.mesh.size("pp"))
    return stages


def grid_html(context: Context, stages: Sequence[StageMemory]) -> Markup:
    """Every GPU with its bytes; all of one stage are equal."""
    say = saying(MEMORY, context.language)
    picture = painted(heat_of(context, stages), grid_label(stages, context.language))
    return together(tag("h3", say("grid_title")), fine(say("grid_body")), picture)


def grid_label(stages: Sequence[StageMemory], language: str) -> str:
    totals = [stage.total / GIB for stage in stages]
    words = MEMORY["grid_label"][language]
    return words.format(least=f"{min(totals):.1f}", most=f"{max(totals):.1f}")


def heat_of(context: Context, stages: Sequence[StageMemory]) -> Heat:
    """The heat map of the GPUs by used memory."""
    layout, capacity = context.layout, context.trained.capacity
    totals = np.array([stage.total for stage in stages])
    level, stage = levels(totals / capacity), stage_of_ranks(layout)
    amounts = [f"{total / GIB:.0f}" for total in totals]
    legend, say = [], saying(MEMORY, context.language)
    for at in sorted(set(level.tolist())):
        low, high = (f"{capacity / GIB * edge / LEVELS:.0f}" for edge in (at, at + 1))
        ranks = layout.world_size // len(stages) * int(np.count_nonzero(level == at))
        gpus = counted(ranks, "gpu", context.language)
        words = "grid_over" if at == LEVELS else "grid_level"
        legend.append((HEAT_SHADES[at], say(words, low=low, high=high, gpus=gpus)))
    is_small = layout.world_size <= PANEL_LIMIT
    texts = [amounts[each] for each in stage] if is_small else amounts
    return Heat(level[stage], texts, layout.gpus_per_node, tuple(legend))
