"""The column of layout controls that all views share."""

from __future__ import annotations

from dataclasses import dataclass
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
from groups.job import OWN
from groups.megatron.families import FAMILIES
from groups.presets import PRESETS

from ..base import form
from ..base.messages import refusal_html
from ..base.state import Controls, Layout, as_text, from_preset, has_two_dp_kinds, read
from .widgets import form_box, script, size_box, size_update, words

GPUS_PER_NODE = ("1", "2", "4", "8", "16", "32", "72")
SIZES = ("tp", "pp", "cp", "ep")
BOXES = {"nodes": "ranks", **dict.fromkeys(SIZES, "world")}
"""The size boxes, and up to what each goes."""

GRADIOS = ("group_type", "gpus_per_node", "framework", "dp_kind", "more")
"""Controls with a widget of Gradio's."""

FORMS = {
    "order-form": ("order",),
    "etp-form": ("etp",),
    "more-form": ("instances", "levels", "hybrid"),
    "model-form": ("layers", "vpp", "account", "experts", "micro_batch", "global_batch"),
}
"""Controls that are inputs of a form, by the form's id."""

CHECKED = ("hybrid", "account")


@dataclass(frozen=True)
class ControlColumn:
    """The widgets of the column."""

    by_name: dict[str, Any]  # those of one control each; the rest are inputs of the forms
    forms: dict[str, gr.HTML]
    language: gr.Radio
    preset: gr.Dropdown
    status: gr.HTML
    notice: gr.HTML
    others: dict[str, Any]  # title, folds

    @property
    def own(self) -> dict[str, Any]:
        """Widgets that are Gradio's, by their control: the server has to set them."""
        return {name: self.by_name[name] for name in GRADIOS}

    @property
    def worded(self) -> list[Any]:
        """Everything that changes its words with the language; see `reworded`."""
        return [*self.by_name.values(), *self.forms.values(), self.preset, *self.others.values()]


def build(language: str = "en") -> ControlColumn:
    """Make the column in the current Gradio context."""
    start = Controls()
    found: dict[str, Any] = {}
    forms: dict[str, gr.HTML] = {}
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
        forms["order-form"] = _form("order-form", language)
        found["dp_kind"] = gr.Radio(
            _choices(DP_KINDS, language),
            value=start.dp_kind,
            **words("dp_kind", language),
            elem_id="dp-kind",
        )
        others["experts_fold"] = fold = _fold("experts_fold", language)
        with fold:
            found["ep"] = size_box("ep", start.ep, language)
            forms["etp-form"] = _form("etp-form", language)
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
            forms["more-form"] = _form("more-form", language)
        others["model_fold"] = fold = _fold("model_fold", language)
        with fold:
            forms["model-form"] = _form("model-form", language)
    # On a phone the column is folded below the status; the style sheet hides the button elsewhere.
    others["fold"].click(None, js=_FOLD)
    return ControlColumn(found, forms, choice, preset, status, notice, others)


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


def status_html(
    layout: Layout, controls: Controls, language: str, link: str = "", preset: Any = ""
) -> str:
    """The derived sizes, always in sight; and the source of a published layout while it is that."""
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
        f"{''.join(f'<p>{line}</p>' for line in lines)}<p>{order}</p>"
        f"{source_html(preset, controls, language)}</div>"
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


def reworded(column: ControlColumn, language: str) -> list[Any]:
    """Updates of ControlColumn.worded: words, no values."""
    choices = {
        "group_type": _choices(TYPES, language),
        "framework": framework_choices(language),
        "dp_kind": _choices(DP_KINDS, language),
    }
    updates = []
    for name in column.by_name:
        if name in BOXES:
            updates.append(size_update(name, language, up_to=BOXES[name]))
        elif name in choices:
            updates.append(gr.update(**words(name, language), choices=choices[name]))
        else:
            updates.append(gr.update(**words(name, language)))
    return [
        *updates,
        *(form_html(name, language) for name in column.forms),
        gr.update(**words("preset", language), choices=preset_choices(language)),
        title_html(language),
        gr.update(value=PAGE["controls"][language]),
        *(
            gr.update(label=PAGE[fold][language])
            for fold in ("experts_fold", "more_fold", "model_fold")
        ),
    ]


def form_html(name: str, language: str) -> str:
    """The inputs of a form; the page's script puts in what the state says."""
    start = Controls()
    return form.fields(
        *(
            form.check(one, "", language)
            if one in CHECKED
            else form.text(one, getattr(start, one), language)
            for one in FORMS[name]
        )
    )


def with_values(controls: Controls) -> list[Any]:
    """Updates of ControlColumn.own that set every one of them."""
    return [
        gr.update(value=list(controls.more)) if name == "more" else str(getattr(controls, name))
        for name in GRADIOS
    ]


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


def source_html(name: Any, controls: Controls, language: str) -> str:
    """Where a published layout comes from, and what of it is derived; nothing for another one."""
    if not isinstance(name, str) or name not in PRESETS or not _is_still(name, controls):
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


def _is_still(preset: str, controls: Controls) -> bool:
    """Whether the controls still ask for the published layout, whatever is shown of it."""
    published = from_preset(preset)
    of_groups = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp", "framework")
    return all(
        as_text(getattr(controls, name)) == as_text(getattr(published, name)) for name in of_groups
    )


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


def _form(name: str, language: str) -> gr.HTML:
    return form_box(form_html(name, language), name)


def _fold(name: str, language: str) -> gr.Accordion:
    return gr.Accordion(
        PAGE[name][language], open=name == "experts_fold", elem_id=name.replace("_", "-")
    )


def _choices(texts: Any, language: str) -> list[tuple[str, str]]:
    return [
        ((text.title if hasattr(text, "title") else text)[language], key)
        for key, text in texts.items()
    ]
