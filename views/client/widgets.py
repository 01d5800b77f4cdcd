"""The page as one HTML component of Gradio: its markup, its scripts, the two functions it calls.

Gradio goes through every component around every event, and its own inputs clamp, toast and keep
lists open; so the page has one component, whose script holds the state and asks the server itself
(ask.js: Gradio's own way to ``server_functions`` does not tell a refusal from silence). The same
controls as Gradio's components with one ``gr.on`` (benchmarks/wired.py), measured beside it in the
same minutes by ``python -m benchmarks --only browser`` on a busy machine, two steps each: from the
slider to the picture 1.9, 2.0, 3.1 and 2.0 times as long in the page at 16, 256, 2,048 and 16,384
GPUs, and 1.1, 1.0, 1.1 and 0.8 times on screen, before any script of the page has run on it. What
the one component needs of Gradio's JavaScript is in this table, and a test holds it against the
pinned version:

    element     the component's root
    props       what is given here: ``known``
    window      ``gradio_config``: the server's ``root``, ids of ``components`` by their ``elem_id``

and before.js, that its sign of loading asks for frames by the function that the window has at the
start: a test counts the frames of a page that nobody uses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import gradio as gr

from render.svg import groups as svg
from render.svg import timeline as timeline_svg

from ..all import VIEWS

ROOM = Path(__file__).parent

SCRIPTS = (
    *("shared.js", "paint.js", "ask.js", "state.js", "form.js", "sizes.js"),
    *("sentence.js", "tour.js", "files.js", "roles.js"),
)
"""The page's scripts in the order of their execution; page.js starts it."""

PICTURE_PARTS = "ranks places marks inset card picture film caption lens glide order ways cluster"
PICTURE = tuple(f"picture/{name}.js" for name in PICTURE_PARTS.split())
"""Scripts that highlight the groups of a GPU, play a step, colour the mesh by costs, and move GPUs
to their places in another layout or order."""


def script(*names: str | Path) -> str:
    """The contents of these script files, concatenated."""
    return "\n".join((ROOM / name).read_text(encoding="utf-8") for name in names)


def page_script() -> str:
    """All scripts as one function body, as Gradio takes them; each view's script has its own
    scope."""
    bundles: tuple[tuple[str | Path, ...], ...] = (
        PICTURE,
        *((name,) for name in assets("view.js")),
    )
    views = "".join(f"((watch) => {{\n{script(*names)}}})(whenDrawn);\n" for names in bundles)
    drawn = "const whenDrawn = (_, then) => document.addEventListener('drawn', then);\n"
    return script(*SCRIPTS) + drawn + views + script("page.js")


def first_script() -> str:
    """The script that runs before Gradio's own, as an element of the page's head."""
    return f"<script>{{{script('before.js')}}}</script>"


def assets(name: str) -> list[Path]:
    return [path for view in VIEWS.values() if (path := view.asset(name))]


def style_sheets() -> str:
    """The style sheets of the pictures, the page and its views.

    Gradio writes each rule a second time, under its own classes, and splits ``:is(a, b)`` at the
    comma as it does so. Within one rule the style sheet stays whole, and is as strong as theirs.
    A rule that ends in ``:is(a, b)`` is tried at every mark of a picture, one that ends in ``a`` at
    its own only: what holds for all of the page is written as a list.
    """
    pictures = svg.style() + timeline_svg.style()
    sheets = (ROOM / "page.css", ROOM / "roles.css", *assets("view.css"))
    whole = "".join(sheet.read_text(encoding="utf-8") for sheet in sheets)
    return f"{pictures}\n:root:root:root {{\n{whole}}}\n"


def page(html: str, known: dict[str, object], *functions: Callable[..., Awaitable[str]]) -> gr.HTML:
    """The page's one component: the initial HTML, the data of its scripts, and the server functions
    that they call, each of one text."""
    return gr.HTML(
        html,
        js_on_load=page_script(),
        apply_default_css=False,
        elem_id="playground",
        server_functions=list(functions),
        known=known,
    )
