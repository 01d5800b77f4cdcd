"""The source of the published layout on screen, the fields derived from it, and those left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from markupsafe import Markup

from descriptions import DERIVED, NOTES, PAGE, joined
from formats.roles.presets import PLANS
from groups import LayoutError
from groups.presets import PUBLISHED, SERVERS
from request.answers.estimate.measured import measured_use_text, seconds_line
from request.context import Context
from request.inputs import FIELDS
from request.published import changed_sizes
from request.roles.opened import Change, changed_plan
from request.state import State, is_empty
from request.trained import schedule_name
from request.words import change_label, control_label, saying, within_sentence
from training.models import model_of_preset
from training.published import derived_options, published_steps

from .base.html import button, outside, tag
from .column import MENU

FIELDS_OF = {
    "account_for_embedding": "account",
    "account_for_loss": "account",
    "attention_heads": "heads",
}
"""Names in published layouts that differ from those of controls."""


def source_html(state: State, language: str) -> Markup:
    """The source of a published layout and the derived fields, below its name if the closed menu
    cuts that; of one that was changed what differs, and a way back; empty for another layout."""
    name = state.preset
    if name in PLANS:
        try:
            changes = changed_plan(name, state)
        except LayoutError:  # is said where it is
            return Markup()
        if changes:
            return _changed(name, PLANS[name].name, _plan_text(changes, language), language)
        link = outside(PLANS[name].url, PLANS[name].name)
        return tag("div", tag("p", link), class_="source")
    if name not in PUBLISHED:
        return Markup()
    preset = PUBLISHED[name]
    if changed := changed_sizes(name, state):
        listed = ", ".join(_change(size, *pair, language) for size, pair in changed.items())
        return _changed(name, PUBLISHED[name].name, listed, language)
    source: object = "; ".join(preset.source)
    if preset.url:
        source = outside(preset.url, source)
    words = "preset_derived" if preset.derived else "preset_stated"
    labels = (
        PAGE["world"][language]
        if name == "world_size"
        else control_label(FIELDS_OF.get(name, name), language)
        for name in preset.derived
    )
    names = PAGE["and_list"][language].join(dict.fromkeys(map(within_sentence, labels)))
    derived = PAGE[words][language].format(names=names)
    note = preset.note and NOTES[preset.note][language]
    is_trained = name not in SERVERS
    of_step = (*derived_lines(state), taken_line(state), measured_line(state)) if is_trained else ()
    lines = (tag("p", line) for line in (source, derived, note, *of_step) if line)
    whole = tag("b", preset.name) if len(preset.name) > MENU else ""
    return tag("div", whole, *lines, class_="source")


def _change(size: str, before: str, now: str, language: str) -> str:
    label = "GPU" if size == "gpus" else control_label(size, language)
    return f"{label} {before or '–'} → {now or '–'}"


def _plan_text(changes: Sequence[Change], language: str) -> str:
    """What of each role of a plan is another."""
    say, told = saying(PAGE, language), []
    for role, of_role in groupby(changes, key=lambda change: change[0]):
        (_, what, _, now), *_ = some = [*of_role]
        if what:
            listed = ", ".join(
                _change(name, before, after, language) for _, name, before, after in some
            )
            told.append(say("preset_role", role=role, sizes=listed))
        else:
            told.append(say("preset_role_new" if now else "preset_role_gone", role=role))
    return PAGE["semicolon"][language].join(told)


def _changed(preset: str, name: str, listed: str, language: str) -> Markup:
    """That a published layout has other sizes now: the menu says so too (client/sizes.js)."""
    say = saying(PAGE, language)
    back = button(say("preset_back"), class_="opener", data_preset=preset)
    words = tag("p", say("preset_changed", name=name, sizes=listed), " ", back)
    return tag("div", words, class_="source", data_changed=say("preset_menu", name=name))


def derived_lines(state: State) -> Iterator[str]:
    """Training options that the published layout's source implies without stating them, with the
    reason; only those that the page still has.

    >>> from request.trained import published
    >>> [*derived_lines(State(**{**published("falcon-180b"), "preset": "falcon-180b"}))]
    ['Derived: Schedule 1F1B. No chunks are named.']
    """
    by_reason: dict[str, list[str]] = {}
    for option in derived_options(state.preset):
        if getattr(state, option.field) == option.value:
            change = change_label(option.field, option.value, state.language)
            by_reason.setdefault(option.reason, []).append(change)
    for reason, changes in by_reason.items():
        names = PAGE["and_list"][state.language].join(changes)
        why = DERIVED[reason][state.language]
        yield PAGE["option_derived"][state.language].format(names=names, why=why)


def measured_line(state: State) -> str:
    """The measured step of a published layout, and how well its GPUs were used; empty without one.

    >>> from request.trained import published
    >>> shown = State(**{**published("korthikanti-1t"), "preset": "korthikanti-1t"})
    >>> measured_line(shown).partition(".")[0]
    'Measured: 71'
    """
    step = published_steps().get(state.preset)
    if step is None:
        return ""
    sentences = seconds_line(step, state.language), measured_use_text(step, state.language)
    return joined(sentences, state.language)


TAKEN = ("cluster", "precision", "zero", "recompute", "schedule", "micro_batch", "global_batch")
"""Training options with most influence on the time of a step."""


def taken_line(state: State) -> str:
    """The defaults that the estimate uses where the published layout's source neither states nor
    implies a value; empty if there are none, or if the model is unknown.

    >>> from request.trained import published
    >>> taken_line(State(**{**published("llama3-405b-1"), "preset": "llama3-405b-1"}))
    ''
    >>> taken_line(State(**{**published("kimi-k2"), "preset": "kimi-k2"}))
    'Not stated, taken: Micro-batch size 1; Global batch size 1,024.'
    """
    if model_of_preset(state.preset) is None:
        return ""
    try:
        context = Context.of(state)
        batch = context.trained.batch
        training = context.trained.request(context.layout).training
    except LayoutError:
        return ""
    counts: dict[str, object] = {name: FIELDS[name].row.counts for name in TAKEN}
    counts |= {name: value for name, value in vars(training).items() if name in counts}
    counts |= {"schedule": schedule_name(state)}
    counts |= {"micro_batch": batch.micro_batch, "global_batch": batch.global_batch}
    implied_by = {"schedule": "vpp", "global_batch": "micro_batches"}  # fields that say it too
    alone = {"schedule": "pp", "zero": "dp"}  # of no consequence on an axis of one
    names = [
        change_label(name, str(counts[name]), state.language)
        for name in TAKEN
        if is_empty(getattr(state, name))
        and not (name in implied_by and not is_empty(getattr(state, implied_by[name])))
        and not (name in alone and context.layout.mesh.size(alone[name]) == 1)
    ]
    if not names:
        return ""
    listed = PAGE["semicolon"][state.language].join(names)
    return PAGE["option_taken"][state.language].format(names=listed)
