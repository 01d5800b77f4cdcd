"""The column of layout controls that all views share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from typing import Any

import gradio as gr

from descriptions import (
    DP_KINDS,
    LANGUAGES,
    NOTES_ZH,
    PAGE,
    TYPES,
    counted,
)
from groups import LayoutError
from groups.conventions import CONVENTIONS
from groups.families import FAMILIES
from groups.job import OWN
from groups.presets import PRESETS

from .messages import refusal_html
from .state import MODEL, Controls, Layout, has_two_dp_kinds, read, typed
from .widgets import script, size_box, size_update, text_box, text_update, words

GPUS_PER_NODE = ("1", "2", "4", "8", "16", "32", "72")
SIZES = ("tp", "pp", "cp", "ep")
BOXES = {"nodes": "ranks", **dict.fromkeys(SIZES, "world")}
"""The size boxes, and up to what each goes."""

TEXTS = ("etp", "order", "instances", "levels")
CHECKED = ("hybrid", "account")


@dataclass(frozen=True)
class ControlColumn:
    """The widgets of the column; ``inputs`` are in the order of the fields of Controls."""

    by_name: dict[str, Any]
    language: gr.Radio
    preset: gr.Dropdown
    status: gr.HTML
    source: gr.HTML
    notice: gr.HTML
    others: dict[str, Any]  # title, folds

    @property
    def inputs(self) -> list[Any]:
        return [self.by_name[field.name] for field in fields(Controls)]

    @property
    def worded(self) -> list[Any]:
        """Everything that changes its words with the language; see `reworded`."""
        return [*self.inputs, self.preset, self.source, *self.others.values()]


def build(language: str = "en") -> ControlColumn:
    """Make the column in the current Gradio context."""
    start = Controls()
    found: dict[str, Any] = {}
    others: dict[str, Any] = {"title": gr.HTML(title_html(language), apply_default_css=False)}
    notice = gr.HTML("", apply_default_css=False, elem_id="notice")
    choice = gr.Radio(
        [(name, code) for code, name in LANGUAGES.items()],
        value=language,
        label="Language / 语言",
        elem_id="language",
        container=False,
        show_label=False,
    )
    found["group_type"] = _dropdown("group_type", _choices(TYPES, language), start, language)
    status = gr.HTML(
        status_html(read(start), start, language),
        js_on_load=script("status.js"),
        apply_default_css=False,
        elem_id="status",
    )
    others["fold"] = gr.Button(PAGE["controls"][language], elem_id="fold", size="sm")
    with gr.Column(elem_id="foldable", min_width=240):
        preset = gr.Dropdown(
            preset_choices(language), value=None, **words("preset", language), elem_id="preset"
        )
        source = gr.HTML(source_html(None, language), apply_default_css=False, elem_id="source")
        found["nodes"] = size_box("nodes", start.nodes, language, up_to="ranks")
        found["gpus_per_node"] = gr.Dropdown(
            list(GPUS_PER_NODE),
            value=start.gpus_per_node,
            allow_custom_value=True,
            **words("gpus_per_node", language),
            elem_id="gpus-per-node",
        )
        for name in ("tp", "pp", "cp"):
            found[name] = size_box(name, getattr(start, name), language)
        found["framework"] = _dropdown("framework", framework_choices(language), start, language)
        found["order"] = _textbox("order", start, language)
        found["dp_kind"] = gr.Radio(
            _choices(DP_KINDS, language),
            value=start.dp_kind,
            **words("dp_kind", language),
            elem_id="dp-kind",
        )
        others["experts_fold"] = fold = _fold("experts_fold", language)
        with fold:
            found["ep"] = size_box("ep", start.ep, language)
            found["etp"] = _textbox("etp", start, language)
        others["more_fold"] = fold = _fold("more_fold", language)
        with fold:
            found["more"] = gr.Dropdown(
                list(MORE),
                value=[],
                multiselect=True,
                allow_custom_value=True,
                **words("more", language),
                elem_id="more",
            )
            found["instances"] = _textbox("instances", start, language)
            found["levels"] = _textbox("levels", start, language)
            found["hybrid"] = _checkbox("hybrid", start, language)
        others["model_fold"] = fold = _fold("model_fold", language)
        with fold:
            for name in MODEL:
                found[name] = _textbox(name, start, language)
                if name == "vpp":
                    found["account"] = _checkbox("account", start, language)
    # On a phone the column is folded below the status; the style sheet hides the button elsewhere.
    others["fold"].click(None, js=_FOLD)
    return ControlColumn(found, choice, preset, status, source, notice, others)


MORE = (
    *(name for name, row in FAMILIES.items() if row.kind and "gtp" not in name),
    *("embd", "pos-embd", "intra-dp-cp", "intra-edp", "inter-edp", "intra-dist-opt"),
    *("hcp-l0", "hcp-l1", "hcp-l2", "hybrid-dp-cp-2", "hybrid-dp-cp-4", "hybrid-dp-cp-8"),
)
"""Names that the list of groups offers; any other name of the layout may be typed."""

_FOLD = """() => {
  const open = document.querySelector('#controls').classList.toggle('open');
  document.querySelector('#fold').setAttribute('aria-expanded', open);
}"""


def status_html(layout: Layout, controls: Controls, language: str, link: str = "") -> str:
    """The derived sizes, always in sight."""
    mesh, expert = layout.mesh, layout.expert
    world = f"{layout.world_size:,}"
    sizes = {"world": world, "dp_size": f"{mesh.size('dp'):,}"}
    lines = [_derived("derived", layout, mesh.size("dp"), tp=mesh, pp=mesh, cp=mesh)[language]]
    if expert is not None:
        sizes["edp_size"] = f"{expert.size('edp'):,}"
        edp = expert.size("edp")
        lines.append(
            _derived("derived_experts", layout, edp, etp=expert, ep=expert, pp=expert)[language]
        )
    order = PAGE["framework_order"][language].format(order=layout.order)
    return (
        f'<div class="status" data-world="{layout.world_size}"{_shown_when(controls)} '
        f'data-link="{escape(link)}">'
        f"{_sizes_html(sizes, language)}"
        f"{''.join(f'<p>{line}</p>' for line in lines)}<p>{order}</p></div>"
    )


def _derived(words: str, layout: Layout, result: int, **meshes: Any) -> dict[str, str]:
    """How a size is what remains, in every language."""
    facts = {name: f"{mesh.size(name):,}" for name, mesh in meshes.items()}
    world = f"{layout.world_size:,}"
    return {
        language: f"{PAGE[words][language].format(world=world, **facts)} = {result:,}"
        for language in LANGUAGES
    }


def _sizes_html(sizes: dict[str, str], language: str) -> str:
    rows = "".join(
        f"<div><dt>{PAGE[name][language]}</dt><dd>{value}</dd></div>"
        for name, value in sizes.items()
    )
    return f"<dl>{rows}</dl>"


def refused_html(error: LayoutError, controls: Controls, language: str, link: str = "") -> str:
    """The same place for a layout that cannot be: what is known, and the way out."""
    known = world_of(controls)
    sizes = {"world": "–" if known is None else f"{known:,}", "dp_size": "–", "edp_size": "–"}
    return (
        f'<div class="status refused" data-world="{known or ""}"{_shown_when(controls)} '
        f'data-link="{escape(link)}">'
        f"{_sizes_html(sizes, language)}{refusal_html(error, language)}</div>"
    )


def reworded(language: str, preset: Any = None) -> list[Any]:
    """Updates of ControlColumn.worded: words, no values."""
    by_name: dict[str, Any] = {
        name: size_update(name, language, up_to=up_to) for name, up_to in BOXES.items()
    }
    choices = {
        "group_type": _choices(TYPES, language),
        "framework": framework_choices(language),
        "dp_kind": _choices(DP_KINDS, language),
    }
    by_name |= {name: text_update(name, language) for name in (*TEXTS, *MODEL)}
    for name, offered in choices.items():
        by_name[name] = gr.update(**words(name, language), choices=offered)
    names = [field.name for field in fields(Controls)]
    for name in names:
        by_name.setdefault(name, gr.update(**words(name, language)))
    return [
        *(by_name[name] for name in names),
        gr.update(**words("preset", language), choices=preset_choices(language)),
        source_html(preset, language),
        title_html(language),
        gr.update(value=PAGE["controls"][language]),
        *(
            gr.update(label=PAGE[fold][language])
            for fold in ("experts_fold", "more_fold", "model_fold")
        ),
    ]


def with_values(controls: Controls, language: str) -> list[Any]:
    """Updates of ControlColumn.inputs that set every control."""
    updates = []
    for field in fields(Controls):
        value = getattr(controls, field.name)
        if field.name in BOXES:
            up_to = BOXES[field.name]
            updates.append(size_update(field.name, language, up_to=up_to, value=typed(value)))
        elif field.name in (*TEXTS, *MODEL):
            text = "" if value is None else str(value)
            updates.append(text_update(field.name, language, value=text))
        elif field.name == "more":
            updates.append(gr.update(value=list(value)))
        elif field.name in CHECKED:
            updates.append(value is True)
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


def notice_html(text: str, language: str) -> str:
    """A message that a reader can close."""
    return (
        f'<div class="refusal" role="alert"><p>{escape(text)}</p><button type="button" '
        f"onclick=\"this.closest('.refusal').remove()\">{PAGE['close'][language]}</button></div>"
    )


def preset_choices(language: str) -> list[tuple[str, str]]:
    """All published layouts with their number of GPUs."""
    return [
        (f"{preset.name} · {counted(preset.world_size, 'gpu', language)}", name)
        for name, preset in PRESETS.items()
    ]


def framework_choices(language: str) -> list[tuple[str, str]]:
    named = [(convention.name, name) for name, convention in CONVENTIONS.items()]
    return [*named, (PAGE["own_order"][language], OWN)]


def source_html(name: Any, language: str) -> str:
    """Where a published layout comes from, and what of it is derived; nothing if none is chosen."""
    if not isinstance(name, str) or name not in PRESETS:
        return ""
    preset = PRESETS[name]
    source = escape("; ".join(preset.source))
    if preset.url:
        link = f'<a href="{escape(preset.url)}" target="_blank" rel="noopener noreferrer">'
        source = f"{link}{source}</a>"
    derived = (
        PAGE["preset_derived"][language].format(names=", ".join(preset.derived))
        if preset.derived
        else PAGE["preset_stated"][language]
    )
    words = NOTES_ZH[preset.note] if preset.note and language == "zh" else preset.note
    note = f"<p>{escape(words)}</p>" if words else ""
    return f'<div class="source"><p>{source}</p><p>{escape(derived)}</p>{note}</div>'


def _shown_when(controls: Controls) -> str:
    # The style sheet shows a control only where it means something.
    choose_dp = " data-choose-dp" if has_two_dp_kinds(controls.group_type) else ""
    own_order = " data-own-order" if controls.framework == OWN else ""
    return choose_dp + own_order


def _dropdown(name: str, choices: Any, start: Controls, language: str) -> gr.Dropdown:
    return gr.Dropdown(
        choices,
        value=getattr(start, name),
        **words(name, language),
        elem_id=name.replace("_", "-"),
        filterable=False,
    )


def _textbox(name: str, start: Controls, language: str) -> gr.HTML:
    return text_box(name, str(getattr(start, name)), language)


def _checkbox(name: str, start: Controls, language: str) -> gr.Checkbox:
    return gr.Checkbox(getattr(start, name), **words(name, language), elem_id=name)


def _fold(name: str, language: str) -> gr.Accordion:
    return gr.Accordion(
        PAGE[name][language], open=name == "experts_fold", elem_id=name.replace("_", "-")
    )


def _choices(texts: Any, language: str) -> list[tuple[str, str]]:
    return [
        ((text.title if hasattr(text, "title") else text)[language], key)
        for key, text in texts.items()
    ]
