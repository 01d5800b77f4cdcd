"""From what is pasted or dropped to readings: texts, dumps and reports, one or many."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from groups.errors import LayoutError, quoted

from ..errors import refusal
from .lines import read_lines
from .nccl import is_report, read_report
from .reading import LogReading
from .recorder import Dump, as_dump, is_dump
from .unpickle import BadPickleError, plain

MOST_BYTES = 32 * 1024 * 1024
"""Of all files together."""
MOST_FILES = 16_384

Content = str | bytes
Evidence = Content | Mapping[str, Content]

_RANK_OF_FILE = re.compile(r"(\d{1,7})(?:\.(?:json|pkl|pickle|pt|bin|trace|dump|fr)){0,2}$")


def read_files(evidence: Evidence) -> tuple[LogReading, list[Dump]]:
    """What all files say: lines and reports in one reading, and the dumps.

    Errors: LayoutError ``no-evidence``, ``too-much-evidence``, and ``bad-dump`` where no file can
    be read; a bad file among good ones is a note.
    """
    files = evidence if isinstance(evidence, Mapping) else {"": evidence}
    if not all(isinstance(content, (str, bytes)) for content in files.values()):
        raise refusal("no-evidence", "log", sentence="a log is text, or the bytes of a file")
    if len(files) > MOST_FILES or sum(map(len, files.values())) > MOST_BYTES:
        raise too_much_evidence()
    if not files:
        raise refusal("no-evidence", "log")
    reading, dumps, refused = LogReading(), [], []
    for name, content in files.items():
        try:
            document = _document(content)
        except BadPickleError as error:
            refused.append((name, str(error)))
            continue
        if document is None:
            if isinstance(content, bytes):
                is_wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
                content = content.decode("utf-16" if is_wide else "utf-8", "replace")
            read_lines(content, reading)
        elif is_report(document):
            read_report(document, reading)
        elif is_dump(document):
            dumps.append(as_dump(document, name, _rank_of(name)))
        else:
            refused.append((name, "neither a dump of Flight Recorder nor a report of NCCL's RAS"))
    if len(refused) == len(files):
        name, why = quoted(refused[0][0] or "the file"), refused[0][1]
        said = f"{name} is no dump that can be read: {why}"
        rule = "only plain data is read: text, numbers, lists and dicts"
        facts = {"file": name, "why": why}
        raise LayoutError("bad-dump", said, why=rule, control="log", facts=facts)
    for name, why in refused:
        reading.note("file-unreadable", file=quoted(name), why=why)
    return reading, dumps


def too_much_evidence() -> LayoutError:
    return refusal("too-much-evidence", "log", megabytes=MOST_BYTES // 2**20, files=MOST_FILES)


def _document(content: Content) -> Any:
    """What a pickle or a JSON file holds; None for text."""
    if isinstance(content, bytes):
        if content[:1] == b"\x80" or (content[:1] in (b"(", b"}") and content[-1:] == b"."):
            return plain(content)
        if not content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return None
        content = content.decode("utf-8-sig", "replace")
    if not content[:64].lstrip("\ufeff \t\r\n").startswith("{"):
        return None
    try:
        return json.loads(content.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None  # a log may begin with a brace


def _rank_of(name: str) -> int | None:
    """The global rank at the end of a dump's file name, where Flight Recorder puts it.

    >>> _rank_of("dumps/nccl_trace_rank_12"), _rank_of("nccl_trace_rank_3.json"), _rank_of("dump")
    (12, 3, None)
    """
    match = _RANK_OF_FILE.search(name)
    return int(match[1]) if match else None
