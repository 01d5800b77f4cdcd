"""The row of a view."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from markupsafe import Markup

from descriptions import VIEWS, Text
from render.marks import Titled, Together
from request.context import Context
from request.inputs import fields_of

Pictures = Titled
"""Titles with their scenes, in order."""


TABLES = ("csv", "txt", "json", "ranks")
"""Formats of files with a layout's groups, which most views offer."""


@dataclass(frozen=True)
class View:
    """A view: the row VIEW of its view.py says all of it. Beside it stand its words (words.toml,
    with its title under VIEWS), and its script and style sheet, if it has any (view.js, view.css).
    Its files raise the LayoutErrors that the view itself raises.

    Attributes:
        name: its folder, and its name in links.
        section: the section of the page that has its button; "": it is opened from the header.
        within: the view that it is a part of: its links open that one, which has the button.
        place: where its button stands there.
        endpoints: the functions that programs call for what it shows.
        commands: the commands of ``python -m groups`` that print it.
        html: its HTML, for the layout that the page's script has to know.
        pictures: its content of picture files; None: it has none.
        title: the title of its slide; None: a slide shows the picture of the job.
        summary: the sentence below the title, in the language of the page.
        slide: its content of a slide, if that is not its pictures.
        details: the content below its HTML.
        files: formats of other files that it offers.
        pins_locally: whether a pinned rank lights up in the browser alone.
        of_gpu: whether it shows something of the chosen GPU; else the page does not ask for one.
        of_step: whether it is about a training step, which servers do not have.
        is_framed: whether ``html`` tells the script of the layout by itself, with its own marks.
    """

    name: str
    section: str
    html: Callable[[Context], Markup]
    pictures: Callable[[Context], Pictures] | None = None
    title: Text | None = None
    summary: Callable[[Context], str] | None = None
    slide: Callable[[Context], Pictures | Together] | None = None
    details: Callable[[Context], Markup] | None = None
    files: tuple[str, ...] = TABLES
    pins_locally: bool = False
    is_framed: bool = False
    within: str = ""
    of_step: bool = False
    of_gpu: bool = True
    place: int = 99
    endpoints: tuple[Callable[..., str], ...] = ()
    commands: tuple[str, ...] = ()

    @property
    def label(self) -> Text:
        """Its name on the page."""
        return VIEWS[self.name]

    @property
    def button(self) -> str:
        """The section that has its button; none has that of a part."""
        return "" if self.within else self.section

    @property
    def inputs(self) -> tuple[str, ...]:
        """The fields that it alone asks for."""
        return fields_of(self.name)

    def asset(self, name: str) -> Path | None:
        """The text of a file beside it, such as view.js; None if there is none."""
        path = Path(__file__).parent.parent / self.name / name
        return path if path.exists() else None
