"""Memory of each pipeline stage as stacked bars, and the formula of each part with its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from descriptions import MEMORY
from groups.layout import Layout
from training.memory.activations import layer_activations
from training.memory.per_stage import PARTS, PRECISIONS, StageMemory, largest
from training.parameters import layer_parameters, on_one_rank
from training.pipeline.figures import outputs_in_flight
from training.split import padded_vocabulary

from ..base.html import button, cell, fine, saying, tag, together
from ..base.trained import GIB, Trained

MOST_ROWS = 32
"""Bars drawn: of more stages every so many, with the fullest and the last."""

COLOURS = {
    "weights": 3,
    "copies": 6,
    "gradients": 4,
    "optimizer": 8,
    "gathered": 1,
    "activations": 9,
    "embedding": 5,
    "output": 7,
    "recomputed": 0,
    "working": 2,
}
"""The colour of each part, of those of groups, which are told apart by everybody."""

MIDDLE = 50
"""Percent of the width from which on the line's label stands before it and not behind."""


def bars_html(
    trained: Trained, stages: Sequence[StageMemory], layout: Layout, language: str
) -> Markup:
    """One bar a stage under the line of the GPU's memory; the formula of the fullest below.

    The name of a stage leads to its first GPU in the picture of the job, as Enter on its bar does.
    """
    say, most = saying(MEMORY, language), largest(tuple(stages))
    widest = max(most.total, trained.capacity) * 1.02
    visible = visible_stages(stages, most)
    mesh = layout.mesh
    stride = mesh.strides[mesh.names.index("pp")] if "pp" in mesh.names else 0
    told = {stage.stage: _parts(trained, stage, language) for stage in visible}
    rows = (
        _row(stage, told[stage.stage], trained, widest, stage is most, stage.stage * stride, say)
        for stage in visible
    )
    some = fine(say("bars_some", shown=len(visible), stages=len(stages)))
    at = 100 * trained.capacity / widest
    label = tag("span", say("capacity_line", capacity=gib(trained.capacity)))
    side = " before" if at > MIDDLE else ""
    bars = tag(
        "div",
        *(tag("p", label, class_=f"memory-line{side}"), *rows),
        class_="memory-bars",
        style=f"--memory-capacity:{at:.2f}%",
        role="list",
        aria_label=say("bars_label"),
    )
    return together(
        _legend(stages, language),
        bars,
        some if len(visible) < len(stages) else "",
        tag("div", told[most.stage], class_="memory-formula", aria_live="polite"),
    )


def visible_stages(stages: Sequence[StageMemory], most: StageMemory) -> list[StageMemory]:
    """Those that have a bar; ``most`` is the fullest."""
    step = -(-len(stages) // MOST_ROWS)
    return [stage for stage in stages if stage.stage % step == 0 or stage in (most, stages[-1])]


def _legend(stages: Sequence[StageMemory], language: str) -> Markup:
    items = (
        tag("li", MEMORY[f"part_{part}"][language], style=_coloured(part))
        for part in parts_of(stages)
    )
    return tag("ul", *items, class_="memory-legend")


def _coloured(part: str) -> str:
    return f"--part:var(--g{COLOURS[part]})"


def parts_of(stages: Sequence[StageMemory]) -> list[str]:
    """The parts that any stage has, in their order."""
    return [part for part in PARTS if any(part in stage.parts for stage in stages)]


def _row(
    stage: StageMemory,
    told: Markup,
    trained: Trained,
    widest: float,
    is_most: bool,
    rank: int,
    say: Callable[..., str],
) -> Markup:
    segments = (
        tag("span", style=f"width:{100 * number / widest:.2f}%;{_coloured(part)}")
        for part, number in stage.parts.items()
    )
    over, total = stage.total > trained.capacity, gib(stage.total)
    leads = {"view": "groups", "rank": str(rank)}
    name = button(f"PP {stage.stage}", class_="opener", tabindex=-1, data_set=leads)
    return tag(
        "div",
        tag("span", name, class_="memory-name"),
        tag("span", *segments, class_="memory-bar"),
        tag("span", total, " !" if over else "", class_="memory-total"),
        tag("template", told, class_="memory-told"),
        class_=f"memory-row{' over' if over else ''}{' chosen' if is_most else ''}",
        role="listitem",
        tabindex=0,
        aria_label=say("bar_over" if over else "bar_label", stage=stage.stage, total=total),
    )


def _parts(trained: Trained, stage: StageMemory, language: str) -> Markup:
    say, formulas = saying(MEMORY, language), _formulas(trained, stage, language)
    rows = (
        tag(
            "tr",
            tag("th", say(f"part_{part}"), scope="row", style=_coloured(part)),
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
    """Each part's formula with this stage's numbers put in."""
    split, training, model = trained.split, trained.training, trained.model
    precision = PRECISIONS[training.precision]
    tokens = f"{training.micro_batch} × {model.sequence:,}"
    tokens += f" / {split.cp}" if split.cp > 1 else ""
    cut = f" / {split.tp}" if training.sequence_parallel and split.tp > 1 else ""
    held = min(split.pp, training.micro_batches)
    rows = padded_vocabulary(model.vocabulary, split.tp)
    logits = f"4 B × {rows:,}" + (f" / {split.tp}" if split.tp > 1 else "")
    sizes = (split.pp, training.micro_batches, split.vpp)
    kept = outputs_in_flight(training.schedule, *sizes)
    outputs = f"{kept} × " if kept > 1 else ""
    modules = f" × {1 + model.mtp_layers}" if model.mtp_layers else ""
    return {
        "weights": _states(trained, stage, precision.weight, 3),
        "copies": _states(trained, stage, 2, 3),
        "gradients": _states(trained, stage, precision.gradient, 2),
        "optimizer": _states(trained, stage, precision.optimizer, 1),
        "gathered": _gathered(trained, stage, language),
        "activations": _activations(trained, stage, language),
        "embedding": f"{held} × {tokens} × {model.hidden:,} × 1 B{cut}",
        "output": f"{outputs}{tokens} × (4 B × {model.hidden:,}{cut} + {logits}){modules}",
        "recomputed": MEMORY["formula_recomputed"][language],
        "working": MEMORY["formula_working"][language],
    }


def _states(trained: Trained, stage: StageMemory, each: int, from_stage: int) -> str:
    """Bytes of a parameter times parameters, over the ranks that share them from a ZeRO stage."""
    dense, experts = stage.parameters.dense, stage.parameters.experts
    is_cut = trained.training.zero >= from_stage
    shares = trained.training.ranks_sharing(trained.split) if is_cut else (1, 1)
    terms = [
        f"{millions(number)}{f' / {ranks}' if ranks > 1 else ''}"
        for number, ranks in zip((dense, experts), shares)
        if number
    ]
    inside = " + ".join(terms)
    return f"{each} B × ({inside})" if len(terms) > 1 else f"{each} B × {inside}"


def _gathered(trained: Trained, stage: StageMemory, language: str) -> str:
    model, split = trained.model, trained.split
    counts = on_one_rank(layer_parameters(model, moe=stage.parameters.moe_layers > 0), split)
    experts = counts.pop("experts", 0)
    is_away = trained.training.offload == "parameters"
    terms = [
        f"{millions(number)}{'' if is_away else f' × (1 − 1/{ranks})'}"  # noqa: RUF001
        for number, ranks in zip(
            (sum(counts.values()), experts), trained.training.ranks_sharing(split)
        )
        if number
    ]
    weight = PRECISIONS[trained.training.precision].weight
    return MEMORY["formula_gathered"][language].format(terms=f"{weight} B × ({' + '.join(terms)})")


def _activations(trained: Trained, stage: StageMemory, language: str) -> str:
    moe = stage.parameters.moe_layers > 0
    layer = layer_activations(trained.model, trained.split, trained.training, moe=moe)
    parts = " + ".join(
        f"{MEMORY[f'layer_{part}'][language]} {number / 1e6:,.1f}" for part, number in layer.items()
    )
    return MEMORY["formula_activations"][language].format(
        in_flight=f"{stage.in_flight:g}" if stage.in_flight % 1 == 0 else f"{stage.in_flight:.2f}",
        layers=stage.parameters.layers,
        stage=gib(stage.layer_bytes),
        parts=parts,
    )


def gib(number: float) -> str:
    """
    >>> gib(1.5 * 2**30), gib(2**20)
    ('1.5 GiB', '0.001 GiB')
    """
    amount = number / GIB
    return f"{amount:,.1f} GiB" if amount >= 0.05 else f"{amount:.3f} GiB"


def millions(number: float) -> str:
    """
    >>> millions(1_594_000_000), millions(8192)
    ('1,594 M', '0.00819 M')
    """
    amount = number / 1e6
    return f"{amount:,.0f} M" if amount >= 10 else f"{amount:.3g} M"
