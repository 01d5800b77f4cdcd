"""The column of layout controls that all tabs share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import Any

import gradio as gr

from descriptions import CONTROLS, DP_KINDS, LANGUAGES, ORDERS, PAGE, PRESET_NAMES, TYPES
from groups import LayoutError
from groups.presets import PRESETS, Preset

from .messages import refusal_html
from .state import Controls, Layout, has_two_dp_kinds, read, typed
from .widgets import script, size_box, size_update

GPUS_PER_NODE = ("1", "2", "4", "8", "16", "32", "72")
SIZES = ("tp", "pp", "cp")


@dataclass(frozen=True)
class ControlColumn:
    """The widgets of the column; ``inputs`` are in the order of the fields of Controls."""

    inputs: list[Any]
    language: gr.Radio
    presets: dict[str, gr.Button]
    status: gr.HTML
    title: gr.HTML
    preset_label: gr.HTML
    sources: gr.HTML
    fold: gr.Button

    @property
    def worded(self) -> list[Any]:
        """Everything that changes its words with the language; see `reworded`."""
        return [
            *self.inputs,
            *self.presets.values(),
            self.title,
            self.preset_label,
            self.sources,
            self.fold,
        ]


def build(language: str = "en") -> ControlColumn:
    """Make the column in the current Gradio context."""
    start = Controls()
    title = gr.HTML(title_html(language), apply_default_css=False)
    choice = gr.Radio(
        [(name, code) for code, name in LANGUAGES.items()],
        value=language,
        label="Language / 语言",
        elem_id="language",
        container=False,
        show_label=False,
    )
    group_type = gr.Dropdown(
        _choices(TYPES, language),
        value=start.group_type,
        **_words("group_type", language),
        elem_id="group-type",
        filterable=False,
    )
    status = gr.HTML(
        status_html(read(start), start, language),
        js_on_load=script("status.js"),
        apply_default_css=False,
        elem_id="status",
    )
    fold = gr.Button(PAGE["controls"][language], elem_id="fold", size="sm")
    with gr.Column(elem_id="foldable", min_width=240):
        preset_label = gr.HTML(preset_label_html(language), apply_default_css=False)
        with gr.Column(elem_id="presets"):
            presets = {name: gr.Button(PRESET_NAMES[name][language], size="sm") for name in PRESETS}
        sources = gr.HTML(sources_html(language), apply_default_css=False)
        nodes = size_box("nodes", start.nodes, language, up_to="ranks")
        gpus_per_node = gr.Dropdown(
            list(GPUS_PER_NODE),
            value=start.gpus_per_node,
            allow_custom_value=True,
            **_words("gpus_per_node", language),
            elem_id="gpus-per-node",
        )
        sizes = {name: size_box(name, getattr(start, name), language) for name in SIZES}
        order = gr.Dropdown(
            _choices(ORDERS, language),
            value=start.order,
            **_words("order", language),
            elem_id="order",
            filterable=False,
        )
        dp_kind = gr.Radio(
            _choices(DP_KINDS, language),
            value=start.dp_kind,
            **_words("dp_kind", language),
            elem_id="dp-kind",
        )
    # On a phone the column is folded below the status; the style sheet hides the button elsewhere.
    fold.click(None, js=_FOLD)
    inputs = [group_type, nodes, gpus_per_node, *sizes.values(), order, dp_kind]
    return ControlColumn(inputs, choice, presets, status, title, preset_label, sources, fold)


_FOLD = """() => {
  const open = document.querySelector('#controls').classList.toggle('open');
  document.querySelector('#fold').setAttribute('aria-expanded', open);
}"""


def status_html(layout: Layout, controls: Controls, language: str) -> str:
    """The derived sizes, always in sight."""
    mesh = layout.mesh
    world = f"{layout.world_size:,}"
    derived = PAGE["derived"][language].format(
        world=world, **{name: f"{mesh.size(name):,}" for name in SIZES}
    )
    return (
        f'<div class="status" data-world="{layout.world_size}"{_choose_dp(controls)}><dl>'
        f"<div><dt>{PAGE['world'][language]}</dt><dd>{world}</dd></div>"
        f"<div><dt>{PAGE['dp_size'][language]}</dt><dd>{mesh.size('dp'):,}</dd></div></dl>"
        f"<p>{derived} = {mesh.size('dp'):,}</p></div>"
    )


def refused_html(error: LayoutError, controls: Controls, language: str) -> str:
    """The same place for a layout that cannot be: what is known, and the way out."""
    known = world_of(controls)
    world = "–" if known is None else f"{known:,}"
    return (
        f'<div class="status refused" data-world="{known or ""}"{_choose_dp(controls)}><dl>'
        f"<div><dt>{PAGE['world'][language]}</dt><dd>{world}</dd></div>"
        f"<div><dt>{PAGE['dp_size'][language]}</dt><dd>–</dd></div></dl>"
        f"{refusal_html(error, language)}</div>"
    )


def reworded(language: str) -> list[Any]:
    """Updates of ControlColumn.worded: words, no values."""
    by_name = {
        "group_type": gr.update(
            **_words("group_type", language), choices=_choices(TYPES, language)
        ),
        "nodes": size_update("nodes", language, up_to="ranks"),
        "gpus_per_node": gr.update(**_words("gpus_per_node", language)),
        "order": gr.update(**_words("order", language), choices=_choices(ORDERS, language)),
        "dp_kind": gr.update(**_words("dp_kind", language), choices=_choices(DP_KINDS, language)),
        **{name: size_update(name, language) for name in SIZES},
    }
    return [
        *(by_name[field.name] for field in fields(Controls)),
        *(gr.update(value=PRESET_NAMES[name][language]) for name in PRESETS),
        title_html(language),
        preset_label_html(language),
        sources_html(language),
        gr.update(value=PAGE["controls"][language]),
    ]


def with_values(controls: Controls, language: str) -> list[Any]:
    """Updates of ControlColumn.inputs that set every control."""
    updates = []
    for field in fields(Controls):
        value = getattr(controls, field.name)
        if field.name in SIZES:
            updates.append(size_update(field.name, language, value=typed(value)))
        elif field.name == "nodes":
            updates.append(size_update("nodes", language, up_to="ranks", value=typed(value)))
        else:
            updates.append(str(value))
    return updates


def world_of(controls: Controls) -> int | None:
    """The world size that the machines make, whatever the sizes are; None if there is none."""
    try:
        alone = Controls(nodes=controls.nodes, gpus_per_node=controls.gpus_per_node, tp=1, pp=1)
        return read(alone).world_size
    except LayoutError:
        return None


def title_html(language: str) -> str:
    return (
        f'<header class="title"><h1>{PAGE["title"][language]}</h1>'
        f"<p>{PAGE['subtitle'][language]}</p></header>"
    )


def preset_label_html(language: str) -> str:
    preset = CONTROLS["preset"]
    return f'<p class="label" title="{preset.help[language]}">{preset.label[language]}</p>'


def sources_html(language: str) -> str:
    """Where each ready layout comes from."""
    items = "".join(
        f"<li>{PRESET_NAMES[name][language]}: {_source_html(preset)}</li>"
        for name, preset in PRESETS.items()
    )
    return (
        f'<details class="sources"><summary>{PAGE["sources"][language]}</summary>'
        f"<ul>{items}</ul></details>"
    )


def _source_html(preset: Preset) -> str:
    source = escape(preset.source)
    if not preset.url:
        return source
    link = f'<a href="{escape(preset.url)}" target="_blank" rel="noopener noreferrer">'
    return f"{link}{source}</a>"


def _choose_dp(controls: Controls) -> str:
    # The style sheet shows the dp / dp-cp choice only beside a type in which it means something.
    return " data-choose-dp" if has_two_dp_kinds(controls.group_type) else ""


def _words(control: str, language: str) -> dict[str, str]:
    return {"label": CONTROLS[control].label[language], "info": CONTROLS[control].help[language]}


def _choices(texts: Any, language: str) -> list[tuple[str, str]]:
    return [
        ((text.title if hasattr(text, "title") else text)[language], key)
        for key, text in texts.items()
    ]
