"""The header and the sections: the job in chips, ways in, and the views by what they are for."""

from __future__ import annotations

from functools import cache

from markupsafe import Markup

from descriptions import LANGUAGES, PAGE, SECTIONS, SHELL, VIEWS
from groups import LayoutError

from .all import SECTIONS as PLACES
from .base.context import Context
from .base.html import button, tag, together
from .base.model import model_name, model_of
from .base.resolve import sizes_text
from .base.training import batch_of
from .column import language_choices
from .stories import examples_html


@cache
def head_html(language: str) -> Markup:
    """The header; its chips come with every answer."""
    leads = {
        "data_set": {"view": "launch"},
        "data_leads": "field-paste",
    }  # which has the focus then
    copies = {"data_copy_link": True, "data_done": PAGE["copied"][language]}
    names = dict.fromkeys(SHELL["language"][code] for code in LANGUAGES)
    words = {"role": "group", "aria_label": " / ".join(names)}
    return together(
        tag("h1", PAGE["title"][language]),
        tag("div", id="chips"),
        tag(
            "div",
            examples_html(language),
            button(SHELL["paste_script"][language], tabindex=-1, class_="paste", **leads),
            tag("span", language_choices(language), class_="languages", **words),
            button(SHELL["copy_link"][language], tabindex=-1, class_="primary", **copies),
            class_="right",
            role="toolbar",
            aria_label=SHELL["tools"][language],
        ),
    )


def chips_html(context: Context | None, language: str) -> str:
    """The job in chips; a click leads to the inputs that say it."""
    if context is None:
        return tag("span", SHELL["no_layout"][language], class_="chip-job none")
    layout = context.layout
    machines = SHELL["gpus_chip"][language].format(
        world=f"{layout.world_size:,}", nodes=f"{layout.nodes:,}", gpus=f"{layout.gpus_per_node:,}"
    )
    chips = (
        _chip("nodes", machines),
        _chip("tp", sizes_text(layout), "mono"),
        _chip("model", _model_chip(context, language)),
    )
    return tag("div", *chips, role="group", aria_label=SHELL["job"][language])


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


def _chip(field: str, text: str, kind: str = "") -> Markup:
    tab = None if field == "nodes" else -1
    return button(text, class_=f"chip-job {kind}", tabindex=tab, data_leads=f"field-{field}")


def nav_html(view: str, language: str) -> str:
    """The sections in one row, and the views of the one that is shown."""
    here = next(name for name, views in PLACES.items() if view in views)
    sections = (
        _place({"view": views[0]}, SECTIONS[name][language], name == here)
        for name, views in PLACES.items()
    )
    views = (_place({"view": name}, VIEWS[name][language], name == view) for name in PLACES[here])
    labels = {"sections": SHELL["sections"][language], "subs": SHELL["views"][language]}
    return together(
        *(
            tag("div", *places, class_=kind, role="group", aria_label=labels[kind])
            for kind, places in (("sections", sections), ("subs", views))
        )
    )


def _place(changes: dict[str, str], label: str, is_here: bool) -> str:
    current, tab = ("page", 0) if is_here else (None, -1)
    return button(label, tabindex=tab, data_set=changes, aria_current=current)
