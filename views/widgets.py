"""The page's own widgets: HTML components of Gradio with a script each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from descriptions import CONTROLS
from groups import MAX_RANKS

ASSETS = Path(__file__).parent / "assets"


def script(name: str) -> str:
    """One of the page's scripts, as Gradio wants it: the body of a function."""
    return (ASSETS / name).read_text(encoding="utf-8")


def size_box(name: str, value: int, language: str = "en", *, up_to: str = "world") -> gr.HTML:
    """A slider with a number box whose value is the number, or the text typed in its place.

    Gradio's own slider clamps what is typed and toasts; and over 16,384 whole numbers it cannot be
    moved to 8 by hand. This one stops at the numbers that can work and refuses nothing itself.
    Its script finds the stops by itself from ``up_to``: "world", for the sizes of the world that
    the page shows, or "ranks", for numbers up to the largest world.

    A function, not a subclass of gr.HTML: Gradio writes a .pyi file beside every subclass.
    """
    return gr.HTML(
        value,
        html_template=(
            '<div class="size"><label></label><p class="help"></p><div class="row">'
            '<input type="range" min="0" step="1"><input type="text" inputmode="numeric" '
            'autocomplete="off" spellcheck="false"></div></div>'
        ),
        js_on_load=script("size_box.js"),
        apply_default_css=False,
        elem_id=name,
        elem_classes="size-box",
        label=CONTROLS[name].label[language],
        **_props(name, language, up_to),
    )


def size_update(name: str, language: str, *, up_to: str = "world", **changes: Any) -> dict:
    """An update of a size box: its words, and its value if that is among ``changes``."""
    label = CONTROLS[name].label[language]
    return gr.update(label=label, **_props(name, language, up_to), **changes)


def _props(name: str, language: str, up_to: str) -> dict[str, Any]:
    # Gradio replaces all of a component's props together, so an update must have them all.
    return {"name": name, "help": CONTROLS[name].help[language], "up_to": up_to, "most": MAX_RANKS}


def text_box(name: str, value: str, language: str = "en", *, rows: int = 1) -> gr.HTML:
    """A box for one text, or for several lines of it.

    Gradio's own tells only of keys that were pressed, not of text that was pasted.
    """
    field = (
        '<input type="text" autocomplete="off" spellcheck="false">'
        if rows == 1
        else f'<textarea rows="{rows}" spellcheck="false"></textarea>'
    )
    return gr.HTML(
        value,
        html_template=(
            f'<div class="size text-box"><label></label><p class="help"></p>{field}</div>'
        ),
        js_on_load=script("text_box.js"),
        apply_default_css=False,
        elem_id=name.replace("_", "-"),
        elem_classes="size-box",
        label=CONTROLS[name].label[language],
        **_text_props(name, language),
    )


def text_update(name: str, language: str, **changes: Any) -> dict:
    """An update of a text box: its words, and its value if that is among ``changes``."""
    label = CONTROLS[name].label[language]
    return gr.update(label=label, **_text_props(name, language), **changes)


def _text_props(name: str, language: str) -> dict[str, Any]:
    return {"name": name, "help": CONTROLS[name].help[language]}


def words(control: str, language: str) -> dict[str, str]:
    """Label and help of a control, as Gradio's own components take them."""
    return {"label": CONTROLS[control].label[language], "info": CONTROLS[control].help[language]}
