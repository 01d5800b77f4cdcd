"""What a model is made of: the strip of its layers by kind, and the page of its facts.

The strip is one chart for every view and for the slide: a bar for each stage, its layers side by
side in the colours of their kinds.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from markupsafe import Markup

from descriptions import JOB, MEMORY
from groups import LayoutError
from render.draw.charts import draw_bars
from render.palette import fill_of
from render.scenes.charts import Bar, BarsChart
from render.svg.marks import scene_svg
from request.model import ChosenModel, model_name
from request.units import bytes_text
from request.words import saying
from training.adapters import adapter_facts
from training.facts import LENGTHS, kind_facts, token_operations
from training.kinds import LayerKind
from training.model import Model
from training.parameters import active_parameters, total_parameters
from training.split import Dealing, layers_of_stages, stages_of_ranks

from ..base.html import fine, fold, table, tag, together

MOST_STAGES = 16
"""The most stages of a strip; of more, the first and the last."""

NARROW, NUMBER = 280.0, 24.0
"""Widths of the strip on the page, which fit a telephone: its bars, and the number of layers."""


LAYERS = tuple(f"{one}{step}" for step in (0, 3, 2, 1, 4) for one in ("kept", "step"))
"""The fills of kinds of layers, the first the most apart."""


def kind_name(kind: LayerKind, language: str) -> str:
    """A kind of layer in words.

    >>> from training.kinds import MLP, Attention
    >>> kind_name(LayerKind((Attention(8, 8, 64),), (MLP(256),)), "en")
    'attention + MLP'
    """
    words = [MEMORY[f"mixer_{mixer.name}"][language] for mixer in kind.mixers]
    words += [MEMORY[f"ffn_{part.name}"][language] for part in kind.feed_forwards]
    return " + ".join(words)


def strip_chart(model: Model, dealing: Dealing, language: str) -> BarsChart | None:
    """The layers of each stage by kind; None for a model of one kind.

    Errors: LayoutError where the layers are not dealt to these stages.
    """
    if len(model.kinds) < 2:
        return None
    stages = layers_of_stages(model.layers, dealing)
    by_rank = [
        [layer for stage in numbers for layer in stages[stage]]
        for numbers in stages_of_ranks(*dealing[:3])
    ]
    shown = [*enumerate(by_rank)]
    if len(shown) > MOST_STAGES:
        shown = shown[: MOST_STAGES // 2] + shown[-MOST_STAGES // 2 :]
    bars = tuple(
        Bar(
            JOB["stage"][language].format(stage=rank),
            _runs(model, layers),
            f"{len(layers)}",
        )
        for rank, layers in shown
    )
    counts = ((place, model.numbers.count(place)) for place in range(len(model.kinds)))
    legend = tuple(
        (LAYERS[place % len(LAYERS)], f"{number} × {kind_name(model.kinds[place], language)}")
        for place, number in counts
    )
    most = max(map(len, by_rank))
    return BarsChart(bars, float(most), "", legend, plot=NARROW, right=NUMBER)


def _runs(model: Model, layers: Sequence[int]) -> tuple[tuple[str, float], ...]:
    """One part for each run of equal layers."""
    runs = groupby(model.numbers[layer] for layer in layers)
    return tuple((LAYERS[place % len(LAYERS)], float(len([*run]))) for place, run in runs)


def strip_html(model: Model, dealing: Dealing, language: str) -> Markup:
    """The strip with its legend; empty for a model of one kind."""
    chart = strip_chart(model, dealing, language)
    if chart is None:
        return Markup()
    say = saying(MEMORY, language)
    names = (
        tag("li", name, style=f"--part:{fill_of(colour, 'page')}") for colour, name in chart.legend
    )
    drawn = scene_svg("layer-kinds", chart, draw_bars(chart, "page"), say("strip_label"))
    return together(
        tag("h3", say("strip_title")),
        Markup(drawn),
        tag("ul", *names, class_="memory-legend"),
        fine(say("strip_note")),
    )


def facts_html(chosen: ChosenModel, language: str, tp: int = 1) -> Markup:
    """The model's own page: what a layer of each kind holds, keeps and computes."""
    model, say = chosen.model, saying(MEMORY, language)
    rows = [
        _row(model, place, kind_facts(model, place), language) for place in range(len(model.kinds))
    ]
    names = ("kind", "layers", "parameters", "token", "request", "short", "long")
    short, long = (f"{length:,}" for length in LENGTHS)
    heads = [say(f"facts_{name}", short=short, long=long) for name in names]
    knows = all(kind.moe.top_k for kind in model.kinds if kind.moe)
    figures = {
        "total": f"{total_parameters(model) / 1e9:,.2f}",
        "active": f"{active_parameters(model) / 1e9:,.2f}" if knows else "?",
        "short": f"{token_operations(model, LENGTHS[0]) / 1e9:,.1f}",
        "long": f"{token_operations(model, LENGTHS[1]) / 1e9:,.1f}",
    }
    towers = ", ".join(f"{tower.name} {tower.parameters / 1e9:,.2f}" for tower in model.towers)
    return fold(
        say("facts_title", name=model_name(chosen, language)),
        tag("p", say("facts_line", **figures)),
        tag("p", say("facts_towers", towers=towers)) if towers else "",
        table(heads, rows, "model-facts"),
        _adapters(model, language),
        fine(say("facts_note")),
    )


RANK = 16
"""The rank of the adapters that are told."""


def _adapters(model: Model, language: str) -> Markup:
    """What LoRA and QLoRA hold and send; empty where that is not known."""
    try:
        facts = adapter_facts(model, RANK)
    except LayoutError:
        return Markup()
    frozen = facts["frozen_bytes"]
    assert isinstance(frozen, dict)
    names = ("state_bytes", "gradient_bytes", "full_gradient_bytes")
    sizes = {name: bytes_text(float(str(facts[name]))) for name in names}
    added = f"{int(str(facts['parameters'])) / 1e6:,.1f}"
    kept = {name: bytes_text(size) for name, size in frozen.items()}
    say = saying(MEMORY, language)
    return tag("p", say("facts_lora", rank=RANK, added=added, **kept, **sizes))


def _row(model: Model, place: int, facts: dict[str, object], language: str) -> tuple[str, ...]:
    kept = [float(str(facts[name])) for name in ("token_bytes", "state_bytes")]
    operations = facts["operations"]
    assert isinstance(operations, dict)
    return (
        kind_name(model.kinds[place], language),
        str(facts["layers"]),
        f"{int(str(facts['parameters'])) / 1e6:,.1f} M",
        *(bytes_text(size) if size else "–" for size in kept),
        *(f"{operations[length] / 1e9:,.2f} G" for length in LENGTHS),
    )
