"""The chosen GPU over a step: what it holds at each time, by cause, above the ops that it runs."""

from __future__ import annotations

from markupsafe import Markup

from descriptions import MEMORY, PAGE, joined
from groups import LayoutError
from render.draw.areas import draw_plot
from render.scenes.areas import AreasChart
from render.scenes.over_step import over_step_chart
from render.svg.marks import marks_svg
from request.answers.over_step import (
    has_stages,
    held_over_step,
    op_words,
    over_step_words,
)
from request.context import Context
from request.trained import GIB
from request.units import gib
from request.words import saying
from training.memory.moments import OpMemory
from training.memory.over_step import MemoryOverStep
from training.memory.per_stage import PARTS, largest
from training.pipeline.plan import KINDS

from ..base.form import setter
from ..base.html import fine, tag, together
from ..base.view import Pictures

NAME = 22.0
"""Pixels above the fullest point within which its name has no room."""


def over_step_html(context: Context) -> Markup:
    """The picture with a slider over its ops, and what stands at the chosen one.

    Errors: LayoutError as of `held_over_step`.
    """
    language, say = context.language, saying(MEMORY, context.language)
    held = held_over_step(context)
    words = over_step_words(context, held)
    chart, title = over_step_chart(held, context.trained.capacity, words), words["title"]
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
    style = f"top:{top + (2 if chart.name_below() or top < NAME else -22):.1f}px;{place}"
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


def over_step_pictures(context: Context) -> Pictures:
    """The picture for files and slides; none of a step that the page refuses."""
    try:
        held = held_over_step(context)
    except LayoutError:
        return []
    words = over_step_words(context, held)
    chart = over_step_chart(held, context.trained.capacity, words)
    return [(words["title"], chart.with_axis())]
