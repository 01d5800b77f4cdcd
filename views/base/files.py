"""The inputs of a view that reads evidence: a box for text, and files to choose or drop."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from descriptions import RUN, Text
from request.state import State

from . import form
from .html import button, tag

STATUS_WORDS = ("reading", "large", "slow", "failed", "busy")


def ways_in(
    view: str,
    state: State,
    box: str,
    kept: str,
    command: str,
    words: Mapping[str, Text] = RUN,
) -> Markup:
    """A text box, which sets the field ``box``, and a file chooser, whose digest sets the field
    ``kept``.

    command: the command line that reads larger files; words: labels, if not those of a hang's
    files.
    """
    language = state.language
    status_texts = {}
    for name in STATUS_WORDS:
        text = words[f"files_{name}"] if f"files_{name}" in words else RUN[f"files_{name}"]
        status_texts[name] = text[language].format(command=command)
    files = (
        tag("input", type="file", id=f"{view}-files", multiple=True, hidden=True),
        button(RUN["choose_files"][language], class_="fix", data_files=True),
        Markup(" "),
        tag("span", RUN["files_hint"][language]),
        Markup(" "),
        tag("strong", role="status"),
    )
    marks = {"data_about": view, "data_kept": kept, "data_box": box, "data_said": status_texts}
    text_box = form.fields(form.area(box, state, rows=2))
    return tag("div", text_box, tag("p", *files, class_="files", **marks), class_="ways-in")
