"""The chosen GPU over a step: what it holds at each time, by cause, above the ops that it runs."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup

from descriptions import MEMORY, PAGE, joined
from render.draw.areas import draw_plot
from render.scenes.areas import AreasChart, OpBox, stacked
from render.svg.marks import marks_svg
from request.answers.memory import chosen_rank, held_over_step
from request.context import Context
from request.trained import GIB
from request.units import gib
from request.words import saying
from training.memory.moments import OpMemory
from training.memory.over_step import MemoryOverStep
from training.memory.per_stage import PARTS, largest

from ..base.form import setter
from ..base.html import fine, tag, together
from .stages import COLOURS

KINDS = ("F", "B", "I", "W")


def over_step_html(context: Context) -> Markup:
    """The picture with a slider over its ops, and what stands at the chosen one.

    Errors: LayoutError as of `held_over_step`.
    """
    language, say = context.language, saying(MEMORY, context.language)
    held, rank = held_over_step(context), chosen_rank(context)
    chart = chart_of(context, held)
    title = say("over_step_title", rank=f"{rank:,}", stage=held.stage)
    return together(
        tag("h3", title),
        tag("p", _summary(held, language), _to_fullest(context, held)),
        tag(
            "div",
            _picture(chart, held.fullest, title, language),
            _slider(held, language),
            class_="over-step",
            data_ops=_data(held, chart),
            data_words=_words(held, language),
            data_parts={name: say(f"part_{name}") for name in PARTS},
            data_join=[say("op_pair"), say("over_step_told"), PAGE["and_list"][language]],
        ),
        fine(_remarks(held, language)),
    )


def chart_of(context: Context, held: MemoryOverStep) -> AreasChart:
    say, capacity = saying(MEMORY, context.language), context.trained.capacity
    points: list[tuple[float, dict[str, float]]] = []
    for op in held.ops:
        if points and points[-1][0] < op.start:
            points.append((op.start, points[-1][1]))  # it waits
        points += [(point.at, point.parts) for point in op.points]
    times, sizes = stacked(points, PARTS)
    parts = tuple((COLOURS[name], each) for name, each in sizes.items())
    most = int(np.argmax(np.sum([*sizes.values()], axis=0)))
    legend = tuple((COLOURS[name], say(f"part_{name}")) for name in sizes)
    words = f"{gib(held.total)}{PAGE['colon'][context.language]}"
    return AreasChart(
        times,
        parts,
        tuple(OpBox(op.start, op.end, _kinds(op)) for op in held.ops if op.end > op.start),
        capacity,
        say("capacity_line", capacity=gib(capacity)),
        most,
        words + op_words(held.fullest, held, context.language),
        GIB,
        legend,
    )


def _kinds(op: OpMemory) -> str:
    return "".join(letter for letter in op.text if letter in KINDS) if op.text[0].isdigit() else ""


def has_stages(held: MemoryOverStep) -> bool:
    """Whether the GPU has several stages of the model."""
    return len({op.text.split("F")[0] for op in held.ops if "F" in op.text}) > 1


def op_words(op: OpMemory, held: MemoryOverStep, language: str) -> str:
    """An op in words: "backward of micro-batch 2", with its stage where a rank has several."""
    say = saying(MEMORY, language)
    if not _kinds(op):
        return say(f"op_{op.text}")
    texts = []
    for text in op.text.split("&"):
        kind = next(letter for letter in text if letter in KINDS)
        stage, micro_batch = text.split(kind)
        words = say(f"op_{kind}", micro_batch=micro_batch)
        texts.append(words + (say("op_stage", stage=stage) if has_stages(held) else ""))
    return say("op_pair").join(texts)


def _summary(held: MemoryOverStep, language: str) -> str:
    between = gib(held.ops[-1].most.total)
    words = op_words(held.fullest, held, language)
    return saying(MEMORY, language)(
        "over_step_summary", op=words, total=gib(held.total), between=between
    )


def _to_fullest(context: Context, held: MemoryOverStep) -> Markup:
    """A button to a GPU of the fullest stage, where the chosen one is of another."""
    most = largest(tuple(context.trained.stages()))
    if most.stage == held.stage:
        return Markup()
    first = context.layout.every["pp"].members(0).tolist()[most.stage]
    words = MEMORY["over_step_fullest"][context.language]
    return together(" ", setter({"rank": first}, words.format(rank=f"{first:,}", stage=most.stage)))


def _picture(chart: AreasChart, op: OpMemory, title: str, language: str) -> Markup:
    """The areas, which stretch with the page, and the words upon them, which do not."""
    box = f'viewBox="0 0 {chart.width:g} {chart.height:g}" height="{chart.height:g}"'
    start = f'<svg class="areas" preserveAspectRatio="none" aria-hidden="true" {box}>'
    svg = Markup(f"{start}{marks_svg(draw_plot(chart, 'page'))}</svg>")
    at = 100 * float(chart.times[chart.most]) / chart.end
    top = chart.y(float(chart.sums[-1][chart.most]))
    side = "right" if at > 50 else "left"
    place = f"{side}:{100 - at if side == 'right' else at:.2f}%"
    style = f"top:{top + (2 if chart.name_below() else -22):.1f}px;{place}"
    size, colon, name = chart.most_name.partition(PAGE["colon"][language])
    words = together(size, tag("span", colon, name))
    most = tag("span", words, class_="over-step-most", style=style)
    line = chart.y(chart.limit)
    limit = tag("span", chart.limit_name, class_="over-step-limit", style=f"top:{line:.1f}px")
    ticks = (
        tag("span", f"{size / GIB:g}", style=f"top:{chart.y(size):.1f}px") for size in chart.ticks()
    )
    sizes = tag("div", *ticks, tag("b", "GiB"), class_="over-step-ticks")
    left, wide = (100 * time / chart.end for time in (op.start, op.end - op.start))
    cursor = tag("span", class_="over-step-cursor", style=f"left:{left:.2f}%;width:{wide:.2f}%")
    label = f"{title}{PAGE['colon'][language]}{chart.most_name}"
    plot = tag(
        "div", svg, limit, most, cursor, class_="over-step-plot", role="img", aria_label=label
    )
    return tag("div", sizes, plot, class_="over-step-picture")


def _slider(held: MemoryOverStep, language: str) -> Markup:
    say, at = saying(MEMORY, language), held.ops.index(held.fullest)
    most = len(held.ops) - 1
    slider = tag("input", type="range", min=0, max=most, value=at, aria_label=say("over_step_at"))
    op = held.fullest
    parts = PAGE["and_list"][language].join(
        f"{say(f'part_{name}')} {gib(op.most.parts[name])}"
        for name in PARTS
        if name in op.most.parts
    )
    told = say(
        "over_step_told", op=op_words(op, held, language), total=gib(op.most.total), parts=parts
    )
    return together(slider, tag("p", told, class_="over-step-told", aria_live="polite"))


def _data(held: MemoryOverStep, chart: AreasChart) -> list[list[object]]:
    """Each op as the script reads it: its text, start and end in thousandths of the step, and its
    parts in GiB at its fullest, in the order of PARTS."""
    return [
        [
            op.text,
            *(round(1000 * at / chart.end, 1) for at in (op.start, op.end)),
            [round(op.most.parts.get(name, 0.0) / GIB, 2) for name in PARTS],
        ]
        for op in held.ops
    ]


def _words(held: MemoryOverStep, language: str) -> dict[str, str]:
    """The words of ops, for the script."""
    say, stage = saying(MEMORY, language), MEMORY["op_stage"][language] * has_stages(held)
    words = {kind: MEMORY[f"op_{kind}"][language] + stage for kind in KINDS}
    return {**words, **{name: say(f"op_{name}") for name in ("reduce", "optimizer")}}


def _remarks(held: MemoryOverStep, language: str) -> str:
    say = saying(MEMORY, language)
    sentences = [say("over_step_body")]
    if held.micro_batches < held.of:
        sentences.append(say("over_step_some", played=held.micro_batches, count=f"{held.of:,}"))
    return joined(sentences, language)
