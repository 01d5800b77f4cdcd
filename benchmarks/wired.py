"""The page's controls as Gradio's own components, wired by one ``gr.on``: what idiom costs.

A Dropdown each for the group type, the published layout and the language, five Sliders, a Number
for the chosen GPU, a Radio for the section, one place for all that is folded away, ``gr.HTML`` for
what is drawn, from the very function that the page asks (views.page.answer). None of the page's
scripts runs: what hover, arrow keys, links and refusals in their place need comes on top.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from descriptions import LANGUAGES, SECTIONS, TYPES
from groups.presets import PRESETS
from request.state import State
from views.all import SECTIONS as PLACES
from views.page import answer

SIZES = {
    "nodes": (2, 16_384),
    "gpus_per_node": (8, 72),
    "tp": (2, 64),
    "pp": (2, 64),
    "cp": (1, 64),
}
"""The five sliders: where each stands at first, and its end."""


def draw(kind: str, preset: str, lang: str, section: str, rank: float, *rest: Any) -> list[Any]:
    """The regions of a layout, for the components that show them."""
    *sizes, settings = rest
    named = dict(zip(SIZES, (str(size) for size in sizes), strict=True))
    view = PLACES[section][0]
    fields = {"group_type": kind, "preset": preset, "lang": lang, "rank": str(int(rank or 0))}
    found = answer(State(view=view, **fields, **named, **settings))
    shown = (found.job, found.status, found.derived, found.picture, found.details)
    return [gr.skip() if html is None else str(html) for html in shown]


def wired() -> gr.Blocks:
    """Somebody who opens this sees what is wired to what."""
    with gr.Blocks(analytics_enabled=False) as demo, gr.Row():
        with gr.Column(scale=1):
            types = [(row.title["en"], name) for name, row in TYPES.items()]
            kind = gr.Dropdown(types, value="auto", label="Parallel group type")
            named = [("Your own layout", ""), *((row.name, id) for id, row in PRESETS.items())]
            preset = gr.Dropdown(named, value="", label="Start from")
            language = gr.Dropdown(
                [(name, code) for code, name in LANGUAGES.items()], value="en", label="Language"
            )
            sections = [(title["en"], name) for name, title in SECTIONS.items()]
            section = gr.Radio(sections, value="layout", label="Section")
            rank = gr.Number(0, precision=0, label="Chosen GPU")
            sizes = [
                gr.Slider(1, most, value=start, step=1, label=name, elem_id=name)
                for name, (start, most) in SIZES.items()
            ]
            settings = gr.JSON({}, visible=False)
            status, derived = gr.HTML(), gr.HTML()
        with gr.Column(scale=4):
            job = gr.HTML()
            picture = gr.HTML(str(answer(State()).picture), elem_id="picture")
            details = gr.HTML()
        controls = [kind, preset, language, section, rank, *sizes]
        gr.on(
            [control.input for control in controls],  # type: ignore[attr-defined]  # made with them
            draw,
            [*controls, settings],
            [job, status, derived, picture, details],
            show_progress="hidden",
            trigger_mode="always_last",
            queue=False,
        )
    demo.queue(default_concurrency_limit=2, max_size=64, api_open=False)
    return demo
