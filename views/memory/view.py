"""The Memory view: the memory of each GPU, whether it fits, and who holds which share of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from markupsafe import Markup

from descriptions import JOB, MEMORY, PAGE, SAVED, counted
from groups import LayoutError
from render.scenes.charts import Bar, BarsChart
from render.scenes.over_step import COLOURS
from request.answers.memory import memory_over_step, memory_per_rank, server_memory
from request.answers.model import model_facts
from request.context import Context, of_server
from request.fixes import fixes_of, fixes_to_fit
from request.model import FLAGS, MODEL_SIZES, SIZES, ChosenModel, model_name, model_of
from request.published import is_still
from request.state import State, is_empty
from request.trained import Trained
from request.units import bytes_text, gib, interval_text
from request.words import change_label, control_label, fix_label, saying, tried
from training.adapters import adapters
from training.estimate.memory import FITS, OVER, SPREAD, fit_of
from training.memory.moments import between_steps
from training.memory.optimizing import optimizer_step
from training.memory.per_stage import StageMemory, largest
from training.model import BIASES
from training.models import MODELS
from training.parameters import KINDS, active_parameters, parameters_by_kind, total_parameters
from training.sharding.held import element_bytes
from training.split import SPREADS, Dealing, padded_vocabulary

from ..base import form
from ..base.html import explained, fine, fold, heading, table, tag, together
from ..base.problems import or_refused, problem_html
from ..base.view import Pictures, View
from ..parts.host import host_html
from ..parts.model import facts_html, strip_chart, strip_html
from ..parts.step import step_of
from .over_step import over_step_html, over_step_pictures
from .server import server_html, server_pictures, server_slide, server_summary
from .stages import (
    bars_html,
    grid_html,
    grid_label,
    heat_of,
    millions,
    parts_of,
    visible_stages,
)
from .zero import moments_of, sharing_group, sharing_ranks, zero_html


@of_server(server_html)
def memory_html(context: Context) -> Markup:
    language = context.language
    chosen = tried([], lambda: model_of(context.state))
    inputs = _inputs(chosen, context)
    try:
        stages = context.trained.stages()
        parts = (_verdict(context, stages), inputs, _stages(context, stages))
    except LayoutError as error:
        parts = (problem_html(error, language, fixes_of(error, context)), inputs, Markup())
    return together(heading(MEMORY["title"][language]), tag("div", *parts, class_="memory"))


def _stages(context: Context, stages: Sequence[StageMemory]) -> Markup:
    """Bars of the stages, their inputs, the GPUs, and the shares."""
    language, say, trained = context.language, saying(MEMORY, context.language), context.trained
    zero = or_refused(context, partial(zero_html, stages=stages))
    return together(
        tag(
            "div",
            tag(
                "div",
                bars_html(context, stages),
                or_refused(context, over_step_html),
                fine(explained(say("body"), language)),
                _header(trained.chosen, language),
                strip_html(trained.model, _dealing(trained), language),
                facts_html(trained.chosen, language),
                step_of(context),
                tag(
                    "ul", *(tag("li", note) for note in _noted(context)), class_="memory-notes fine"
                ),
                host_html(context, stages),
                grid_html(context, stages),
                fine(say("left_out", **_spread())),
            ),
            tag("div", zero, _kinds(trained, stages, language)),
            class_="memory-halves",
        ),
    )


OWN_SIZES = tuple(name for name in SIZES if name not in MODEL_SIZES)
"""Sizes of a model that the column does not have."""

# -- the inputs ------------------------------------------------------------------------------------


def _inputs(chosen: ChosenModel | None, context: Context) -> Markup:
    """The inputs of this view alone: options, and the rarer sizes of a model."""
    state, say = context.state, saying(MEMORY, context.language)
    spreads, on_off, biases = (
        [(say(f"{prefix}{name}"), name) for name in names]
        for prefix, names in (("spread_", SPREADS), ("", ("on", "off")), ("biases_", BIASES))
    )
    sizes = {name: getattr(chosen.model, name) if chosen else "" for name in OWN_SIZES}
    shape = form.fields(
        *(form.number(name, state, hint=size) for name, size in sizes.items()),
        *(form.choice(name, state, on_off, unsaid=say("by_preset")) for name in FLAGS),
        form.choice("biases", state, biases, unsaid=say("by_preset")),
    )
    own = (*OWN_SIZES, *FLAGS, "biases", "config")
    is_typed = any(not is_empty(getattr(state, name)) for name in own)
    # ZeRO is pictured for the chosen GPU; older links say another one.
    older = () if is_empty(state.of_rank) else (form.number("of_rank", state),)
    return form.line(
        form.choice("spread", state, spreads, unsaid=say("by_layers")),
        *older,
        fold(say("shape"), shape, form.area("config", state, rows=3), is_open=is_typed),
    )


def _spread() -> dict[str, str]:
    """The ends of memory's interval, in percent."""
    low, high = SPREAD["unfused"]
    ends = {"fused": SPREAD["fused"][1], "graphs": SPREAD["fused, graphs"][1]}
    return {name: f"{100 * end:.0f}" for name, end in {**ends, "low": low, "high": high}.items()}


def _unstated(state: State, language: str) -> Markup | str:
    """The fields that a published layout's source leaves open, if it does not fit with their
    defaults."""
    names = [name for name in ("recompute", "zero", "cluster") if is_empty(getattr(state, name))]
    if not is_still(state.preset, state):
        return ""
    labels = PAGE["and_list"][language].join(control_label(name, language) for name in names)
    words = "verdict_unstated" if names else "verdict_stated"
    return tag("p", MEMORY[words][language].format(names=labels))


def _dealing(trained: Trained) -> Dealing:
    return trained.split.placed(trained.training.rule.placement).dealing


def _verdict(context: Context, stages: Sequence[StageMemory]) -> Markup:
    language, say = context.language, saying(MEMORY, context.language)
    words = verdict_text(context, stages)
    fit = fit_of(context.trained.request(context.layout))
    if fit.verdict == FITS:
        return tag("div", tag("p", words), class_="verdict fits", role="status")
    buttons = [
        form.setter(
            changes, say("way_total", change=fix_label(changes, language), total=gib(total))
        )
        for changes, total in fixes_to_fit(context)
    ]
    then = tag("span", say("ways" if buttons else "way_none"))
    unstated = "" if fit.fits else _unstated(context.state, language)
    sentences = (tag("p", words), unstated)
    fixes = tag("p", then, *buttons, class_="fixes")
    return tag("div", *sentences, fixes, class_=f"verdict {fit.verdict}", role="status")


def verdict_text(context: Context, stages: Sequence[StageMemory]) -> str:
    trained = context.trained
    request = trained.request(context.layout)
    most, fit = largest(tuple(stages)), fit_of(request)
    over = [stage for stage in stages if stage.total > trained.capacity]
    code = f"verdict_{fit.verdict}"
    if fit.verdict == OVER and not over:
        code = "verdict_tight" if fit.low > request.usable else "verdict_host"
    return MEMORY[code][context.language].format(
        stage=most.stage,
        total=gib(most.total),
        needed=gib(fit.needed),
        interval=interval_text(fit, context.language),
        capacity=gib(trained.capacity),
        missing=gib(most.total - trained.capacity),
        host=gib(fit.host * context.layout.gpus_per_node),
        count=len(over),
        stages=len(stages),
    )


def _header(chosen: ChosenModel, language: str) -> Markup:
    say, name = saying(MEMORY, language), model_name(chosen, language)
    total, active = total_parameters(chosen.model), active_parameters(chosen.model)
    sentence = say("parameters_line", name=name, total=f"{total / 1e9:,.2f}")
    sentence += say("active", active=f"{active / 1e9:,.2f}") if active != total else ""
    source = MODELS[chosen.preset].source if chosen.preset in MODELS else ""
    return tag("p", tag("b", sentence), " ", tag("small", source), class_="memory-model")


def _noted(context: Context) -> list[str]:
    """Remarks about the defaults that apply, and about fields that replace others."""
    trained, state, language = context.trained, context.state, context.language
    chosen, split, training = trained.chosen, trained.split, trained.training
    say, notes = saying(MEMORY, language), []
    if chosen.is_matched:
        has_shape = not (is_empty(state.layers) and is_empty(state.experts))
        is_like = not {"layers", "experts"} & set(chosen.changed)
        words = ("note_matched" if is_like else "note_unlike") if has_shape else "note_default"
        notes.append(say(words, name=model_name(replace(chosen, changed=()), language)))
    if chosen.changed:
        fields = {name: getattr(chosen.model, name) for name in chosen.changed}
        changes = (change_label(*change, language) for change in fields.items())
        notes.append(say("note_changed", changes=PAGE["and_list"][language].join(changes)))
    vocabulary = chosen.model.vocabulary
    rows = padded_vocabulary(vocabulary, split.tp)
    if rows != vocabulary:
        notes.append(say("note_padded", vocabulary=f"{vocabulary:,}", rows=f"{rows:,}"))
    if split.spread == "nearly" and is_empty(state.spread):
        notes.append(say("note_nearly", layers=chosen.model.layers, stages=split.pp * split.vpp))
    notes.append(
        say(
            "note_batches" if trained.batch.is_explicit else "note_no_batch",
            global_batch=f"{trained.batch.global_batch:,}",
            micro_batch=training.micro_batch,
            dp=split.dp,
            count=f"{training.micro_batches:,}",
        )
    )
    if training.rule.placement == "both ways":
        notes.append(say("note_twice"))
    notes += _own_step(trained, say)
    if training.is_adapted:
        notes.append(_lora(trained, say))
    return notes


def _own_step(trained: Trained, say: Callable[..., str]) -> list[str]:
    """What the optimizer's step allocates on the fullest stage; nothing of a fused one."""
    stage, training = largest(trained.stages()), trained.training
    step = optimizer_step(trained.model, trained.split, training, stage.parts)
    if step.bytes is None:
        return [say("note_step_unknown", optimizer=say(f"optimizer_{training.optimizer}"))]
    if not step.bytes:
        return []
    total = between_steps(stage.parts) + step.bytes
    then = say(f"note_step_{'above' if total > stage.total else 'below'}", total=gib(total))
    return [say(f"note_step_{step.why}", bytes=bytes_text(step.bytes), then=then)]


def _lora(trained: Trained, say: Callable[..., str]) -> str:
    """What adapters add, and what they save of traffic, on the fullest stage."""
    training, stage = trained.training, largest(trained.stages())
    added = adapters(trained.model, training.lora_rank, training.targets).parameters
    gradient, _ = element_bytes(training)["gradients"]
    return say(
        "note_lora",
        rank=training.lora_rank,
        targets=training.lora_targets,
        added=f"{added / 1e6:,.1f}",
        share=f"{100 * added / total_parameters(trained.model):.2g}",
        frozen=say(f"frozen_{training.frozen}"),
        gradients=bytes_text(gradient * sum(stage.trained[:2])),
        full=bytes_text(gradient * stage.parameters.total),
    )


def _kinds(trained: Trained, stages: Sequence[StageMemory], language: str) -> Markup:
    """Parameters of the whole model, and of a rank of the fullest stage, by kind."""
    say, whole = saying(MEMORY, language), parameters_by_kind(trained.model)
    stage = largest(tuple(stages))
    fullest = stage.parameters.by_kind
    rows: list[tuple[object, ...]] = [
        (say(f"kind_{kind}"), millions(whole.get(kind, 0)), millions(n) if n else "–")
        for kind in KINDS
        if (n := fullest.get(kind, 0)) or whole.get(kind, 0)
    ]
    sums = (tag("b", millions(sum(numbers.values()))) for numbers in (whole, fullest))
    rows.append((say("kinds_sum"), *sums))
    heads = (say("kinds_column"), say("kinds_model"), say("kinds_rank", stage=stage.stage))
    title = tag("h3", say("kinds_title"))
    return together(title, table(heads, rows, "memory-kinds"))


# -- files -----------------------------------------------------------------------------------------


@of_server(server_pictures)
def memory_pictures(context: Context) -> Pictures:
    """Bars of the stages, the GPUs by used memory, and the shares of a group."""
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
    pictures = [*memory_slide(context)]
    for moment, shards in moments_of(zero, ranks):
        moment_text = MEMORY[f"moment_{moment}"][language]
        title = SAVED["zero"][language].format(**facts, moment=moment_text)
        pictures.append((title, replace(shards, legend=tuple(("", part) for part in key))))
    return pictures


@of_server(server_slide)
def memory_slide(context: Context) -> Pictures:
    trained, language = context.trained, context.language
    stages = trained.stages()
    label = MEMORY["bars_label"][language] + PAGE["colon"][language]
    title = label + model_name(trained.chosen, language)
    strip = strip_chart(trained.model, _dealing(trained), language)
    kinds: Pictures = [(MEMORY["strip_title"][language], strip)] if strip else []
    return [
        (title, _bars(trained, stages, language)),
        *over_step_pictures(context),
        *kinds,
        (grid_label(stages, language), heat_of(context, stages)),
    ]


@of_server(server_summary)
def memory_summary(context: Context) -> str:
    return verdict_text(context, context.trained.stages())


def _bars(trained: Trained, stages: tuple[StageMemory, ...], language: str) -> BarsChart:
    colours = {part: COLOURS[part] for part in parts_of(stages)}
    bars = tuple(
        Bar(
            JOB["stage"][language].format(stage=stage.stage),
            tuple((colours[part], number) for part, number in stage.parts.items()),
            gib(stage.total) + (" !" if stage.total > trained.capacity else ""),
            stage.total > trained.capacity,
        )
        for stage in visible_stages(stages)
    )
    line = MEMORY["capacity_line"][language].format(capacity=gib(trained.capacity))
    legend = tuple((colour, MEMORY[f"part_{part}"][language]) for part, colour in colours.items())
    return BarsChart(bars, trained.capacity, line, legend)


VIEW = View(
    "memory",
    "memory",
    memory_html,
    memory_pictures,
    MEMORY["title"],
    memory_summary,
    slide=memory_slide,
    place=1,
    endpoints=(memory_per_rank, memory_over_step, server_memory, model_facts),
    commands=("memory",),
)
