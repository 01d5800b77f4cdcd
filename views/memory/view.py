"""The Memory view: what each GPU holds, whether it fits, and who holds which share of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Any

from descriptions import MEMORY, PAGE
from groups import LayoutError
from training.estimate.memory import CLOSE, USABLE, fit_of
from training.memory.per_stage import StageMemory, largest
from training.model import BIASES
from training.models import MODELS
from training.parameters import (
    KINDS,
    active_parameters,
    parameters_by_kind,
    total_parameters,
)
from training.split import SPREADS, padded_vocabulary

from ..base import form
from ..base.context import Context
from ..base.fixes import Changes, fixes_of
from ..base.html import table, tag, together
from ..base.messages import control_label
from ..base.model import (
    FLAGS,
    MODEL_SIZES,
    ON_OFF,
    SIZES,
    ChosenModel,
    model_name,
    model_of,
)
from ..base.problems import problem_html
from ..base.state import State, is_empty
from ..base.trained import Trained
from ..base.words import intro
from ..column import is_still
from ..estimate.words import step_of
from ..groups.view import framed
from .bars import bars_html, gib, millions
from .grid import grid_html
from .host import host_html
from .inputs import fixes_to_fit
from .zero import zero_html


def memory_html(context: Context) -> str:
    """The whole view: inputs, verdict, bars, GPUs, parameters, ZeRO."""
    state, language = context.state, context.language
    try:
        chosen = model_of(state)
    except LayoutError as error:
        chosen = None
        refusal = _refusal(error, context)
    inputs = _inputs(chosen, state, context.rank, language)
    if chosen is None:
        body = refusal
    else:
        body = _header(chosen, language)
        body += _answer(context)
    return framed(
        context,
        f"{intro(MEMORY['title'][language], MEMORY['body'][language], language)}{inputs}"
        f'<div class="memory">{body}</div>',
        "memory",
    )


def _answer(context: Context) -> str:
    layout, language = context.layout, context.language
    try:
        trained = context.trained
        stages = trained.stages()
    except LayoutError as error:
        return _refusal(error, context)
    try:
        zero = zero_html(context, stages)
    except LayoutError as error:
        zero = _refusal(error, context)
    verdict = _verdict(context, stages)
    return (
        f"{verdict}{step_of(context)}{_notes(context)}"
        f"<h3>{escape(MEMORY['bars_title'][language])}</h3>"
        f'<p class="fine">{escape(MEMORY["bars_hint"][language])}</p>'
        f"{bars_html(trained, stages, layout, language)}"
        f"{host_html(trained, stages, layout, language)}"
        f"{grid_html(trained, stages, layout, language)}"
        f'<p class="fine">{escape(MEMORY["left_out"][language])}</p>'
        f"{zero}{_kinds(trained, stages, language)}"
    )


OWN_SIZES = tuple(name for name in SIZES if name not in MODEL_SIZES)
"""Sizes of a model that the column does not ask for."""

# -- the inputs ------------------------------------------------------------------------------------


def _inputs(chosen: ChosenModel | None, state: State, rank: int, language: str) -> str:
    """What this view alone asks: the rarer sizes of a model too."""
    spreads = [(MEMORY[f"spread_{one}"][language], one) for one in SPREADS]
    spreads.insert(0, (MEMORY["by_layers"][language], ""))
    main = form.fields(
        form.choice("spread", state.spread, spreads, language),
        form.number("of_rank", state.of_rank, language, hint=str(rank)),
    )
    shape = [
        form.number(
            name,
            getattr(state, name),
            language,
            hint=str(getattr(chosen.model, name)) if chosen else "",
        )
        for name in OWN_SIZES
    ]
    by_preset = (MEMORY["by_preset"][language], "")
    on_off = [by_preset, *((MEMORY[name][language], name) for name in ON_OFF)]
    shape += [form.choice(name, getattr(state, name), on_off, language) for name in FLAGS]
    biases = [by_preset, *((MEMORY[f"biases_{name}"][language], name) for name in BIASES)]
    shape.append(form.choice("biases", state.biases, biases, language))
    is_typed = any(not is_empty(getattr(state, name)) for name in (*OWN_SIZES, *FLAGS, "biases"))
    return (
        f'<div class="memory-inputs">{main}<details class="memory-shape"'
        f"{' open' if is_typed else ''}><summary>{escape(MEMORY['shape'][language])}</summary>"
        f"{form.fields(*shape)}</details></div>"
    )


# -- refusals and ways out -------------------------------------------------------------------------


def _refusal(error: LayoutError, context: Context) -> str:
    """The sentence, and the changes that were tried and work."""
    language, fixes = context.language, fixes_of(error, context)
    labelled = [(changes, _label(changes, language)) for changes in fixes]
    return problem_html(error, language, labelled)


def _label(changes: Changes, language: str) -> str:
    return ", ".join(_change(name, value, language) for name, value in changes.items())


def _button(changes: Changes, total: float, language: str) -> str:
    """A way to fit, with the bytes of the fullest stage then."""
    change = _label(changes, language)
    label = MEMORY["way_total"][language].format(change=change, total=gib(total))
    return form.setter(changes, label)


def _change(name: str, value: Any, language: str) -> str:
    words = MEMORY.get(f"{name}_{value}") or MEMORY.get(str(value))
    if words is None:
        return f"{control_label(name, language)} {value}"
    return MEMORY["change"][language].format(
        name=control_label(name, language), value=words[language]
    )


def _unstated(state: State, language: str) -> str:
    """What a published layout leaves open, where it does not fit with what is taken for it."""
    names = [name for name in ("recompute", "zero", "cluster") if is_empty(getattr(state, name))]
    if not names or not is_still(state.preset, state):
        return ""
    labels = PAGE["and_list"][language].join(control_label(name, language) for name in names)
    return f"<p>{escape(MEMORY['verdict_unstated'][language].format(names=labels))}</p>"


def _verdict(context: Context, stages: Sequence[StageMemory]) -> str:
    trained, language = context.trained, context.language
    most, fit = largest(tuple(stages)), fit_of(trained.request(context.layout))
    over = [one for one in stages if one.total > trained.capacity]
    full = fit.needed / trained.capacity
    code = "verdict_close" if full > CLOSE else "verdict_fits"
    if not fit.fits:
        code = "verdict_over" if over else "verdict_tight" if full > USABLE else "verdict_host"
    words = MEMORY[code][language].format(
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
    if fit.fits:
        return f'<p class="memory-verdict fits" role="status">{escape(words)}</p>'
    fixes = fixes_to_fit(context)
    buttons = "".join(_button(changes, total, language) for changes, total in fixes)
    then = MEMORY["ways" if fixes else "way_none"][language]
    return (
        f'<div class="memory-verdict over" role="status"><p>{escape(words)}</p>'
        f"{_unstated(context.state, language)}"
        f'<p class="fixes"><span>{escape(then)}</span>{buttons}</p></div>'
    )


# -- what was taken --------------------------------------------------------------------------------


def _header(chosen: ChosenModel, language: str) -> str:
    total, active = total_parameters(chosen.model), active_parameters(chosen.model)
    name = model_name(chosen, language)
    said = MEMORY["parameters_line"][language].format(name=name, total=f"{total / 1e9:,.2f}")
    if active != total:
        said += MEMORY["active"][language].format(active=f"{active / 1e9:,.2f}")
    source = escape(MODELS[chosen.preset].source if chosen.preset in MODELS else "")
    return f'<p class="memory-model"><b>{escape(said)}</b> <small>{source}</small></p>'


def _notes(context: Context) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in _noted(context))
    return f'<ul class="memory-notes fine">{items}</ul>'


def _noted(context: Context) -> list[str]:
    """What was taken without being said, and what replaces what."""
    trained, state, language = context.trained, context.state, context.language
    chosen, split, training = trained.chosen, trained.split, trained.training
    name = model_name(replace(chosen, changed=()), language)
    notes = []
    if chosen.is_matched:
        is_asked = not (is_empty(state.layers) and is_empty(state.experts))
        is_like = not {"layers", "experts"} & set(chosen.changed)
        words = ("note_matched" if is_like else "note_unlike") if is_asked else "note_default"
        notes.append(MEMORY[words][language].format(name=name))
    if chosen.changed:
        changes = ", ".join(
            _change(field, getattr(chosen.model, field), language) for field in chosen.changed
        )
        notes.append(MEMORY["note_changed"][language].format(changes=changes))
    rows = padded_vocabulary(chosen.model.vocabulary, split.tp)
    if rows != chosen.model.vocabulary:
        notes.append(
            MEMORY["note_padded"][language].format(
                vocabulary=f"{chosen.model.vocabulary:,}", rows=f"{rows:,}"
            )
        )
    if split.spread == "nearly" and is_empty(state.spread):
        facts = {"layers": chosen.model.layers, "stages": split.pp * split.vpp}
        notes.append(MEMORY["note_nearly"][language].format(**facts))
    words = "note_batches" if trained.batch.is_given else "note_no_batch"
    notes.append(
        MEMORY[words][language].format(
            global_batch=f"{trained.batch.global_batch:,}",
            micro_batch=training.micro_batch,
            dp=split.dp,
            count=f"{training.micro_batches:,}",
        )
    )
    if split.ep > 1 and not chosen.model.experts:
        notes.append(MEMORY["note_no_experts"][language].format(ep=split.ep))
    if training.schedule == "dualpipe":
        notes.append(MEMORY["note_twice"][language])
    return notes


def _kinds(trained: Trained, stages: Sequence[StageMemory], language: str) -> str:
    """Parameters of the whole model and of a rank of the fullest stage, by kind."""
    whole = parameters_by_kind(trained.model)
    most = largest(tuple(stages))
    own = most.parameters.by_kind
    rows: list[tuple[object, ...]] = [
        (MEMORY[f"kind_{kind}"][language], millions(whole.get(kind, 0)), millions(n) if n else "–")
        for kind in KINDS
        if (n := own.get(kind, 0)) or whole.get(kind, 0)
    ]
    sums = (tag("b", millions(sum(numbers.values()))) for numbers in (whole, own))
    rows.append((MEMORY["kinds_sum"][language], *sums))
    heads = [MEMORY["kinds_column"][language], MEMORY["kinds_model"][language]]
    heads.append(MEMORY["kinds_rank"][language].format(stage=most.stage))
    title = tag("h3", MEMORY["kinds_title"][language])
    return together(title, table(heads, rows, "memory-kinds", "memory-scroll"))
