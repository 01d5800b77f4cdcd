"""What a view of the page is: one row, and all that it brings along."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from descriptions import Text

from .context import Context

Pictures = list[tuple[str, Any]]
"""Titles and scenes, in their order."""

TABLES = ("csv", "txt", "json", "ranks")
"""Forms of files with a layout's groups, which most views offer."""


@dataclass(frozen=True)
class View:
    """A view: the row VIEW of its view.py. Beside that are found, where there are any, its script
    and style sheet, view.js and view.css, and its words, words.txt, or they are in texts/.

    What goes into files (pictures, summary, slide) is refused, by a LayoutError, where the view
    itself refuses.

    Attributes:
        name: its folder, and its name in links.
        section: of the page, where its button stands.
        html: what it shows, under the layout that the page's script has to know.
        pictures: what of it goes into picture files; None: it has none.
        title: of a slide of it; None: a slide shows the picture of the job.
        summary: the sentence below that, in the language of the page.
        slide: what of it goes on a slide, where that is not its pictures.
        details: what stands below what it shows.
        files: forms of other files that it offers.
        pins_locally: whether a pinned rank lights up in the browser alone.
        is_framed: whether ``html`` tells the script of the layout by itself, with its own marks.
    """

    name: str
    section: str
    html: Callable[[Context], str]
    pictures: Callable[[Context], Pictures] | None = None
    title: Text | None = None
    summary: Callable[[Context], str] | None = None
    slide: Callable[[Context], Pictures] | None = None
    details: Callable[[Context], str] | None = None
    files: tuple[str, ...] = TABLES
    pins_locally: bool = False
    is_framed: bool = False

    def asset(self, name: str) -> Path | None:
        """A file beside it, such as view.js; None where there is none."""
        path = Path(__file__).parent.parent / self.name / name
        return path if path.exists() else None
