"""The page's scripts and style sheets, beside the components that app.py wires.

All scripts are one function body, that of `Script` (components.py), which begins once every part
is there. What they need of Gradio's JavaScript is in this table, and a test holds it against
the pinned version:

    element     a component's root
    props       what is given to it in Python; what is set there is its value from then on
    trigger     its event, such as "input"
    watch       what to do once an event of Gradio's has given it something
    window      ``gradio_config``: the server's ``root``, ids of ``components`` by their ``elem_id``

and before.js, that its sign of loading asks for frames by the function that the window has at the
start: a test counts the frames of a page that nobody uses.
"""

from __future__ import annotations

from pathlib import Path

from render.svg import groups as svg
from render.svg import timeline as timeline_svg

from ..all import VIEWS

ROOM = Path(__file__).parent

SCRIPTS = (
    *("shared.js", "paint.js", "parts.js", "ask.js", "state.js", "form.js", "sizes.js"),
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
    whole = script(*SCRIPTS) + drawn + views + script("page.js")
    return f"{script('part.js')}\nconst page = () => {{\n{whole}}};\n{script('start.js')}"


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
