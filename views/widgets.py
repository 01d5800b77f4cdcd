"""The page's own widgets: HTML components of Gradio with a script each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gradio as gr

from descriptions import CONTROLS
from groups.alternatives import divisors

ASSETS = Path(__file__).parent / "assets"

LINEAR = 64
"""World sizes up to which a slider stops at every whole number, also those that do not divide."""


def script(name: str) -> str:
    """One of the page's scripts, as Gradio wants it: the body of a function."""
    return (ASSETS / name).read_text(encoding="utf-8")


def size_box(name: str, value: int, stops: list[int], language: str = "en") -> gr.HTML:
    """A slider with a number box whose value is the number, or the text typed in its place.

    Gradio's own slider clamps what is typed and toasts; and over 16,384 whole numbers it cannot be
    moved to 8 by hand. This one stops at the numbers that can work and refuses nothing itself.
    (A function, not a subclass of gr.HTML: Gradio writes a .pyi file beside every subclass.)
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
        name=name,
        stops=stops,
        help=CONTROLS[name].help[language],
    )


def size_update(name: str, stops: list[int], language: str, **changes: Any) -> dict:
    """An update of a size box: its words and stops, and its value if that is among ``changes``."""
    return gr.update(
        label=CONTROLS[name].label[language],
        name=name,
        stops=stops,
        help=CONTROLS[name].help[language],
        **changes,
    )


def size_stops(world: int) -> list[int]:
    """Where a size slider stops: every size of a small world, else the sizes that divide it.

    >>> size_stops(4), size_stops(384)[-4:]
    ([1, 2, 3, 4], [96, 128, 192, 384])
    """
    return list(range(1, world + 1)) if world <= LINEAR else list(divisors(world))


def node_stops(limit: int) -> list[int]:
    """Where the slider of nodes stops: all up to 8, then four to each doubling up to ``limit``.

    >>> node_stops(40)
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40]
    """
    stops, step = list(range(1, 9)), 2
    while stops[-1] < limit:
        stops += [stops[-1] + step * i for i in range(1, 5)]
        step *= 2
    return [stop for stop in stops if stop <= limit]
