"""The header and the sections: the job in chips, ways in, and the views by what they are for."""

from __future__ import annotations

import json
from html import escape

from descriptions import PAGE, SECTIONS, SHELL, VIEWS
from groups import LayoutError

from .all import SECTIONS as PLACES
from .base.context import Context
from .base.model import model_name, model_of
from .base.resolve import sizes_text
from .base.training import batch_of
from .column import language_choices
from .stories import examples_html


def head_html(language: str) -> str:
    """The header; its chips come with every answer."""
    label = escape(SHELL["tools"][language])
    return (
        f'<h1>{escape(PAGE["title"][language])}</h1><div id="chips"></div>'
        f'<div class="right" role="toolbar" aria-label="{label}">{examples_html(language)}'
        f"{_paste_button(language)}"
        f'<span class="languages" role="group" aria-label="Language / 语言">'
        f"{language_choices(language)}</span>"
        f'<button type="button" tabindex="-1" class="primary" data-copy-link '
        f'data-done="{escape(PAGE["copied"][language])}">{escape(SHELL["copy_link"][language])}'
        "</button></div>"
    )


def _paste_button(language: str) -> str:
    """To the box for a launch script, which has the focus then."""
    changes = escape(json.dumps({"view": "launch"}))
    return (
        f'<button type="button" tabindex="-1" class="paste" data-set="{changes}" '
        f'data-leads="field-paste">{escape(SHELL["paste_script"][language])}</button>'
    )


def chips_html(context: Context | None, language: str) -> str:
    """The job in chips; a click leads to the inputs that say it."""
    if context is None:
        return f'<span class="chip-job none">{escape(SHELL["no_layout"][language])}</span>'
    layout = context.layout
    machines = SHELL["gpus_chip"][language].format(
        world=f"{layout.world_size:,}", nodes=f"{layout.nodes:,}", gpus=f"{layout.gpus_per_node:,}"
    )
    model = _model_chip(context, language)
    return (
        f'<div role="group" aria-label="{escape(SHELL["job"][language])}">'
        f"{_chip('nodes', machines)}{_chip('tp', sizes_text(layout), 'mono')}"
        f"{_chip('model', model)}</div>"
    )


def _model_chip(context: Context, language: str) -> str:
    """The model and the samples of a step; what is refused is told where it counts."""
    try:
        chosen, batch = model_of(context.state), batch_of(context.layout, context.state)
    except LayoutError:
        return SHELL["model_chip"][language]
    return SHELL["batch_chip"][language].format(
        model=model_name(chosen, language),
        batch=f"{batch.global_batch:,}",
        tokens=f"{chosen.model.sequence:,}",
    )


def _chip(field: str, text: str, kind: str = "") -> str:
    tab = "" if field == "nodes" else ' tabindex="-1"'
    return (
        f'<button type="button" class="chip-job {kind}"{tab} data-leads="field-{field}">'
        f"{escape(text)}</button>"
    )


def nav_html(view: str, language: str) -> str:
    """The sections in one row, and the views of the one that is shown."""
    here = next(name for name, views in PLACES.items() if view in views)
    sections = "".join(
        _place({"view": views[0]}, SECTIONS[name][language], name == here)
        for name, views in PLACES.items()
    )
    views = "".join(
        _place({"view": name}, VIEWS[name][language], name == view) for name in PLACES[here]
    )
    return (
        f'<div class="sections" role="group" aria-label="{escape(SHELL["sections"][language])}">'
        f"{sections}</div>"
        f'<div class="subs" role="group" aria-label="{escape(SHELL["views"][language])}">{views}'
        "</div>"
    )


def _place(changes: dict[str, str], label: str, is_here: bool) -> str:
    current = ' aria-current="page"' if is_here else ""
    tab = "0" if is_here else "-1"
    return (
        f'<button type="button" tabindex="{tab}" data-set="{escape(json.dumps(changes))}"'
        f"{current}>{escape(label)}</button>"
    )
