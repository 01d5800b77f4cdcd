"""How the golden answers are asked for: a link, an endpoint by name, a command line.

The one place here that knows the code's insides. All three give a text: what a person or a program
gets to see, a refusal as its words.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from unittest import mock

from groups import LayoutError
from views.all import ENDPOINTS
from views.base.endpoint import words_of
from views.base.link import from_query
from views.base.problems import sentence
from views.column import notice_html
from views.page import answer

_UNCHOSEN = re.compile(r"<option\b(?![^>]* selected)[^>]*>[^<]*</option>")


def page_of(query: str, language: str, unlinked: Mapping[str, str] | None = None) -> str:
    """The page at an address, as HTML: status, view and details; of a bad link what is said of it.

    What else can be chosen is left out: a row more of a table is no other answer.

    language: of a reader whose link names none. unlinked: what stands in boxes that no link holds.
    """
    try:
        state = from_query(query)
    except LayoutError as error:
        return notice_html(sentence(error, language), language)
    found = answer(replace(state, lang=state.lang or language, **(unlinked or {})))
    parts = (found.status, found.picture, found.details)
    return _UNCHOSEN.sub("", "\n".join(part for part in parts if part))


def endpoint(name: str, arguments: dict[str, Any]) -> str:
    """What an endpoint answers to a program."""
    try:
        return ENDPOINTS[name](**arguments)
    except LayoutError as error:
        return f"refused: {words_of(error)}"


def endpoint_names() -> set[str]:
    return {*ENDPOINTS}


def command(words: Sequence[str], stdin: str = "") -> str:
    """Exit status, output and errors of ``python -m groups``, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["groups", *words]),
        mock.patch.object(sys, "stdin", io.StringIO(stdin)),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            runpy.run_module("groups", run_name="__main__", alter_sys=False)
            status: Any = 0
        except SystemExit as ended:
            status = ended.code
    return f"status {status}\n{out.getvalue()}\n-- errors\n{err.getvalue()}"
