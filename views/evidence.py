"""Files of a hang or a slow step: read in memory, answered with a digest that the browser keeps;
the server keeps nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple

from descriptions import RUN
from diagnosis.hang.steps import share_command
from formats.logs.bounds import PAGE
from groups.budget import LIMIT, within
from groups.errors import LayoutError
from groups.layout import Layout
from request.answers.hang.files import read_hang
from request.answers.slow.files import COMMAND, read_slow
from request.inputs import OF_GROUPS
from request.resolve import resolve
from request.state import State, language_of
from request.words import sentence

LONGEST_HEAD = 4_000_000
MOST_SIGNS = 200_000
"""The most brackets and separators in the header of files: enough for 16,384 files."""

TOO_MUCH = (
    "too-m",
    "unpacks-",
    "dump-long",
    "dump-dense",
    "trace-too-large",
    "trace-holds",
    "trace-dense",
    "long-digest",
)
"""Prefixes of refusals that the command line does not make."""


class Reader(NamedTuple):
    """The reader of a view's files: a function to a digest, the work that it may spend (the server
    reads one visitor's files at a time), and the command that reads larger files."""

    read: Callable[[Mapping[str, str | bytes], Layout | None], str]
    work: int
    command: str


READERS = {
    "hang": Reader(read_hang, 8 * LIMIT, share_command(None, "FOLDER")),
    "slow": Reader(read_slow, 2 * LIMIT, COMMAND),
}
"""The readers by view."""


def evidence(sent: bytes | str) -> str:
    """The digest of files, as JSON: {"digest": text} for the browser to keep, or {"refused":
    sentence}.

    sent: a line of JSON, {"files": [[name, number of bytes], ...], "lang": code, "view": whose they
    are, "job": fields of the layout on screen}, then the files one after the other. Nothing of them
    is kept.

    >>> from request.answers.hang.files import log_of
    >>> said = json.loads(evidence('{"files": [["a.log", 9]], "view": "hang"}\\n[rank3]: x'))
    >>> log_of(said["digest"]).files
    1
    """
    body = sent.encode("utf-8", "replace") if isinstance(sent, str) else sent
    end = body.find(b"\n")
    head = body[: end if end >= 0 else len(body)]
    reader = READERS["hang"]
    try:
        if len(head) > LONGEST_HEAD or sum(map(head.count, b"[{,:")) > MOST_SIGNS:
            is_chinese = b'"lang":"zh"' in head
            return _refused(PAGE.refused(), "zh" if is_chinese else "en", reader)
        header = json.loads(head)
        language, at = language_of(header.get("lang")), len(head) + 1
        reader = READERS[header.get("view", "hang")]
        files: dict[str, str | bytes] = {}
        for name, size in header["files"]:
            begin, at = at, at + max(0, int(size))
            files[str(name)[:500]] = body[begin:at]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return json.dumps({"refused": "?"})
    try:
        with within(reader.work):
            return json.dumps({"digest": reader.read(files, _layout(header.get("job")))})
    except LayoutError as error:
        return _refused(error, language, reader)


def _layout(job: object) -> Layout | None:
    """The layout on screen; None if the request has no valid one."""
    fields = job if isinstance(job, Mapping) else {}
    try:
        return resolve(State(**{name: fields[name] for name in OF_GROUPS if name in fields}))
    except LayoutError:
        return None


def _refused(error: LayoutError, language: str, reader: Reader) -> str:
    """A refusal as JSON; for files that are too large, with the command that reads them."""
    message = sentence(error, language)
    codes = {error.code, error.facts.get("because")}
    if any(str(code).startswith(TOO_MUCH) for code in codes):
        message = f"{message} {RUN['files_elsewhere'][language].format(command=reader.command)}"
    return json.dumps({"refused": message})
