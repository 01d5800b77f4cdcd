"""The page's own widgets: HTML components of Gradio with a script each.

What the page shows is one value, the state, which one hidden component holds (`state_box`). A
widget tells the state what was changed, and hears from it what to show; so an event of Gradio has
one input, where it would walk every widget otherwise, on both sides.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gradio as gr

from descriptions import CONTROLS
from groups import MAX_RANKS
from render.svg import groups as svg
from render.svg import timeline as timeline_svg

ROOM = Path(__file__).parent
VIEWS = ROOM.parent


def script(*names: str) -> str:
    """Some of the page's scripts, as Gradio wants them: the body of one function."""
    return "\n".join((ROOM / name).read_text(encoding="utf-8") for name in names)


def state_box(sent: str) -> gr.HTML:
    """The hidden component that holds the state, as link.to_sent writes it."""
    return gr.HTML(
        sent,
        html_template="",
        js_on_load=script("form.js", "state.js"),
        apply_default_css=False,
        elem_id="state",
    )


OF_VIEWS = ("collectives", "pipeline", "memory", "traffic")
"""Views with a script and a style sheet of their own."""


def style_sheets() -> str:
    """Everything the page looks like: the pictures, the page itself, single views."""
    pictures = svg.style() + timeline_svg.style()
    sheets = (ROOM / "page.css", *(VIEWS / name / "view.css" for name in OF_VIEWS))
    return pictures + "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)


def painted(html: str, name: str, scripts: Sequence[str] = ()) -> gr.HTML:
    """A place for HTML that is drawn anew again and again, with the script of its name.

    scripts: of single views, each with names of its own.
    """
    own = "".join(f"(() => {{\n{script(f'../{one}/view.js')}}})();\n" for one in scripts)
    return gr.HTML(
        html,
        html_template='<div class="painted"></div>',
        js_on_load=script("paint.js", f"{name}.js") + own,
        apply_default_css=False,
        elem_id=name,
    )


def tells(name: str) -> str:
    """What one of Gradio's own widgets does when it is changed: it tells the state, no server."""
    return (
        "(value) => { document.dispatchEvent("
        f"new CustomEvent('set', {{ detail: {{ {name}: value }} }})); }}"
    )


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


def size_update(name: str, language: str, *, up_to: str = "world") -> dict:
    """An update of a size box's words."""
    return gr.update(label=CONTROLS[name].label[language], **_props(name, language, up_to))


def _props(name: str, language: str, up_to: str) -> dict[str, Any]:
    # Gradio replaces all of a component's props together, so an update must have them all.
    return {"name": name, "help": CONTROLS[name].help[language], "up_to": up_to, "most": MAX_RANKS}


def form_box(html: str, name: str) -> gr.HTML:
    """Inputs of views/form.py outside a view; it asks the state what they say once it is there."""
    return gr.HTML(
        html,
        js_on_load=_ASK,
        apply_default_css=False,
        elem_id=name,
    )


_ASK = """
const ask = () => document.dispatchEvent(new Event('ask'));
watch('value', ask);
ask();
"""


def words(control: str, language: str) -> dict[str, str]:
    """Label and help of a control, as Gradio's own components take them."""
    return {"label": CONTROLS[control].label[language], "info": CONTROLS[control].help[language]}
