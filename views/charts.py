"""What of the views of a step goes into picture files: titles and charts, in English."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from descriptions import MEMORY, PAGE, counted
from formats.documents.trace import chrome_trace
from groups import LayoutError
from render.scenes.charts import HELD, Bar, BarsChart, Entry, HeldChart, MatrixChart, TimelineChart
from render.scenes.timeline import PHASES, Strip, shade, strips_of
from render.svg.matrix import MatrixPicture, matrix_picture
from training.memory.per_stage import StageMemory, largest
from training.traffic.matrix import matrix

from .base.context import Context
from .base.model import model_name
from .base.state import is_empty
from .base.trained import Trained
from .base.training import schedule_name
from .base.units import bytes_text
from .collectives.exchange import exchanges
from .collectives.inputs import resolve_inputs
from .collectives.view import op_name
from .memory.bars import COLOURS, gib, parts_of, shown_stages
from .memory.grid import grid_label, heat_of
from .memory.zero import moments_of, sharing_group, sharing_ranks
from .pipeline.chart import Shown, amount, percent, shown_of, timed
from .pipeline.inputs import (
    clock_of,
    follows_layers,
    group_of,
    renamed,
    schedule_of,
    spend_on,
)
from .pipeline.layers import stages_of
from .pipeline.view import MOST_RANKS
from .traffic.view import rows_of

Pictures = list[tuple[str, Any]]
"""Titles and scenes, in their order."""

NEAR = 0.03
"""Parts of a scale that two of its words are apart at least."""


def pipeline_pictures(context: Context) -> Pictures:
    """The timelines on one axis, and under them what each rank holds.

    Nothing where there is no pipeline, or one that is too long to be drawn.

    Errors: LayoutError where the view refuses a schedule, its sizes, its times or its layers.
    """
    if not 1 < context.layout.every["pp"].size <= MOST_RANKS:
        return []
    try:
        shown, ranks = _shown(context)
    except LayoutError as error:
        raise renamed(error) from None
    found = [timed(one) for one in shown]
    strips = strips_of([timeline for timeline, _ in found], ranks)
    most = max(float(strip.held.max()) for strip in strips)
    legend, held = _legends(shown, strips)
    pictures: Pictures = []
    for one, strip, (_, figures) in zip(shown, strips, found):
        title = PAGE["pipeline_picture"]["en"].format(
            schedule=one.title,
            p=one.asked.p,
            m=one.asked.m,
            makespan=amount(figures.makespan),
            idle=percent(figures.bubble_of_total),
        )
        pictures.append((title.rstrip("."), TimelineChart(strip, legend)))
    for one, strip in zip(shown, strips):
        title = PAGE["pipeline_memory"]["en"].format(
            schedule=one.title, most=amount(float(strip.held.max()))
        )
        pictures.append((title, HeldChart(strip, held, most)))
    return pictures


def pipeline_trace(context: Context) -> str:
    """The same timelines as a trace for Perfetto and Chrome.

    Errors: LayoutError where the view refuses, has no pipeline, or one too long to be drawn.
    """
    if not 1 < context.layout.every["pp"].size <= MOST_RANKS:
        raise LayoutError("no-picture", "the view has no picture of this layout")
    try:
        shown, ranks = _shown(context)
    except LayoutError as error:
        raise renamed(error) from None
    return chrome_trace({one.title: timed(one)[0].rows() for one in shown}, ranks)


def _shown(context: Context) -> tuple[list[Shown], tuple[int, ...]]:
    """The schedule, the one to compare with, and the ranks that run them."""
    layout, state = context.layout, context.known
    names = [schedule_name(state)]
    names += [] if is_empty(state.against) else [state.against]
    schedules = dict.fromkeys(schedule_of(name, layout, state) for name in names)
    clock, (_, ranks) = clock_of(state), group_of(layout, state)
    spend_on(list(schedules))
    shown = []
    for one in schedules:
        # Layers that cannot be are no matter where they change nothing.
        stages = stages_of(one, state) if follows_layers(state) else None
        shown.append(shown_of(one, stages, clock, state))
    return shown, ranks


def _legends(
    shown: list[Shown], strips: list[Strip]
) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
    """What the colours of the timelines mean, and those of what is held."""
    drawn = {int(kind) for strip in strips for kind in np.unique(strip.boxes.kind)}
    kinds = [kind for number, kind in enumerate(PHASES) if number in drawn]
    ops = [
        (shade(kind, 0), f"{kind}: {PAGE[f'pipeline_legend_{kind.lower()}']['en']}")
        for kind in kinds
    ]
    ways = {one.asked.rule.way for one in shown}
    others = "-".join(shade("F", chunk) for chunk in (1, 2))
    if "both ways" in ways:
        ops.append((others, PAGE["pipeline_legend_copies"]["en"].rstrip(".")))
    if ways & {"loop", "V"}:
        ops.append((others, PAGE["pipeline_legend_chunks"]["en"].rstrip(".")))
    held = [(HELD["input"], PAGE["pipeline_held_input"]["en"])]
    if "W" in kinds:
        held.append((HELD["weights"], PAGE["pipeline_held_weights"]["en"]))
    return tuple(ops), tuple(held)


def collectives_pictures(context: Context) -> Pictures:
    """The tensors before and after, of the group that is watched and of others if that is asked.

    Errors: LayoutError for the first input that the view refuses.
    """
    watched, counting, problems = resolve_inputs(context.layout, context.state)
    if problems:
        raise problems[0]
    way = "" if watched.direction == "forward" else f", {watched.direction}"
    some = "" if watched.size == len(watched.members) else f"first {len(watched.members)} of "
    ranks = f"{some}{counted(watched.size, 'rank', 'en')}"
    return [
        (
            f"{op_name(watched.op)}{way}: {watched.grouping.name} group {shown.index}, {ranks} on "
            f"{counted(shown.nodes(context.layout), 'node', 'en')}",
            shown.exchange,
        )
        for shown in exchanges(watched, counting)
    ]


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


def traffic_pictures(context: Context) -> Pictures:
    """Who sends how much to whom; nothing where nothing is sent.

    Errors: LayoutError where the view refuses.
    """
    layout, trained = context.layout, context.trained
    rows = rows_of(layout, trained, [one.parameters for one in trained.stages()])
    if not rows:
        return []
    found = matrix(rows, layout.every, layout.mesh, layout.gpus_per_node)
    picture = matrix_picture(found.total, found.ranks_per_cell, layout.gpus_per_node)
    each = "a rank" if found.ranks_per_cell == 1 else f"{found.ranks_per_cell:,} ranks"
    title = f"Bytes sent in a step: {trained.name} on {trained.cluster.name}"
    axes = f"Rows send, columns receive; each is {each}"
    return [(title, MatrixChart(picture, axes, scale_of(picture)))]


def scale_of(picture: MatrixPicture) -> tuple[tuple[float, str], ...]:
    """Words beside a scale of colours: its ends, and powers of ten where there is room."""
    low, high = picture.low, picture.high
    if low == high:
        return ((1.0, bytes_text(high)),)
    span = np.log10(high / low)
    powers = 10.0 ** np.arange(np.ceil(np.log10(low)), np.ceil(np.log10(high)))
    within = [(float(np.log10(power / low) / span), power) for power in powers.tolist()]
    kept = [(0.0, low), *(one for one in within if NEAR < one[0] < 1 - NEAR), (1.0, high)]
    return tuple((at, bytes_text(number)) for at, number in kept)
