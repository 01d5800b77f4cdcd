"""What a heading of a golden answer asks, and the answer as text.

Three kinds of headings, each of them a whole question:

    page zh v=2&nodes=4&show=hang evidence=@hang.log     an address, the language of a reader whose
                                                         link names none, boxes that no link holds
    endpoint rank_card {"rank": 5, "nodes": 2}           a call by a program
    command share - --nodes 2 < hang.log                 a line of ``python -m groups``

``@NAME`` and ``< NAME`` are files of tests/golden/inputs.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

from groups import LayoutError
from request.endpoint import words_of
from request.link import as_far_as_known
from tests.golden.reading import lines_of_document, lines_of_json
from views.all import ENDPOINTS
from views.page import answer, link_notice

INPUTS = Path(__file__).parent / "inputs"


def lines_of(heading: str) -> list[str]:
    """The lines that somebody reads of what is asked.

    >>> lines_of("command --nodes 1 --tp 4 tp")
    ['status 0', 'tp group 0: [0, 1, 2, 3]', 'tp group 1: [4, 5, 6, 7]']
    """
    kind, _, question = heading.partition(" ")
    return ASKED[kind](question)


def _file(name: str) -> str:
    return (INPUTS / name).read_text(encoding="utf-8")


def _page(question: str) -> list[str]:
    """The page at an address, with what is said of the link; of a bad one nothing else."""
    language, query, *boxes = question.split(" ")
    typed = dict(box.split("=", 1) for box in boxes)
    typed = {name: _file(text[1:]) if text[:1] == "@" else text for name, text in typed.items()}
    try:
        state, _ = as_far_as_known(query)
    except LayoutError:
        return lines_of_document(link_notice(query, language))
    found = answer(replace(state, lang=state.lang or language, **typed))
    parts = (link_notice(query, language), found.status, found.picture, found.details)
    return lines_of_document("\n".join(part for part in parts if part))


def _endpoint(question: str) -> list[str]:
    name, _, text = question.partition(" ")
    given = json.loads(text or "{}")
    given = {
        one: _file(value[1:]) if str(value)[:1] == "@" else value for one, value in given.items()
    }
    try:
        return lines_of_json(ENDPOINTS[name](**given))
    except LayoutError as error:
        return [f"refused: {words_of(error)}"]


def _command(question: str) -> list[str]:
    """Exit status, output and errors, in this process."""
    line, _, name = question.partition(" < ")
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.object(sys, "argv", ["groups", *shlex.split(line)]),
        mock.patch.object(sys, "stdin", io.StringIO(_file(name) if name else "")),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            runpy.run_module("groups", run_name="__main__", alter_sys=False)
            status: object = 0
        except SystemExit as ended:
            status = ended.code
    return [f"status {status}", *lines_of_json(out.getvalue()), *err.getvalue().splitlines()]


ASKED: dict[str, Callable[[str], list[str]]] = {
    "page": _page,
    "endpoint": _endpoint,
    "command": _command,
}
