"""Reads what is pasted or dropped: texts, dumps and reports, one or many."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from diagnosis.hang.calls import Dump
from groups.errors import LayoutError, quoted

from ..errors import refusal
from .bounds import PAGE, Allowance, Bounds
from .lines import read_lines
from .nccl import is_report, read_report
from .pickles import plain
from .reading import LogReading
from .recorder import as_dump, is_dump
from .stacks import has_stacks, read_stacks, standings

Content = str | bytes
Evidence = Content | Mapping[str, Content]

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_BEGINS = re.compile(
    r"\[rank|\[default|\[Rank |Traceback|frame #|\[?\d{4}-\d\d-\d\d[T ]|\[?[EWIF]\d{3,4} "
    r"|\[\d{1,5}(?:,\d{1,5})?\]|\S{1,255}:\d{1,10}:\d{1,10} \["
)
"""The beginning of a log's line, which the rest of a cut line hardly ever matches."""

MOST_WRAPPED = 50_000
"""The most lines of a text that is unwrapped: no terminal's scrollback is longer."""

_RANK_OF_FILE = re.compile(r"(\d{1,7})(?:\.(?:json|pkl|pickle|pt|bin|trace|dump|fr)){0,2}$")


def read_files(evidence: Evidence, bounds: Bounds = PAGE) -> tuple[LogReading, list[Dump]]:
    """Reads all files: lines and reports into one reading, and the dumps.

    Errors: LayoutError ``no-evidence``, ``too-much-evidence``, those of `Allowance` for files that
    hold too much, and ``bad-dump`` where no file can be read; a bad file among good ones is a note.
    """
    files = evidence if isinstance(evidence, Mapping) else {"": evidence}
    if not all(isinstance(content, (str, bytes)) for content in files.values()):
        raise refusal("no-evidence", "log", sentence="a log is text, or the bytes of a file")
    bounds.require(len(files), sum(map(len, files.values())))
    if not files:
        raise refusal("no-evidence", "log")
    reading, dumps, refused = LogReading(), [], []
    allowance = Allowance(bounds)
    for name, content in files.items():
        allowance.begin(name)
        try:
            dumps += _read(content, name, reading, allowance)
        except LayoutError as error:
            if not error.code.startswith("dump-"):
                raise
            refused.append((name, error))
    for name, refusal_of in refused:
        file, code, what = quoted(name or "the file"), refusal_of.code, refusal_of.what
        facts = {"file": file, "because": code, "reason": what, **refusal_of.facts}
        if len(refused) == len(files):
            raise refusal("bad-dump", "log", **facts)
        reading.note("file-unreadable", **facts)
    return reading, dumps


def _read(content: Content, name: str, reading: LogReading, allowance: Allowance) -> list[Dump]:
    """Adds a file to the reading; returns its dump, if it is one. Errors: ``dump-...`` if it is
    unreadable."""
    document = _document(content, allowance)
    if document is None:
        text = _lines(content)
        read_lines(text, reading)
        if has_stacks(text):
            stacks = read_stacks(text, name)
            reading.add_stacks(standings(stacks))
            if not stacks:
                reading.note("stacks-of-no-rank", file=quoted(name or "the text"))
    elif is_report(document):
        read_report(document, reading, allowance)
    elif is_dump(document):
        return [as_dump(document, name, _rank_of(name), allowance)]
    else:
        raise refusal("dump-of-no-kind", "log")
    return []


_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
}
"""Beginnings of compressed files, which are not unpacked here."""


def _document(content: Content, allowance: Allowance) -> object:
    """The value of a pickle or a JSON file; None for text."""
    if isinstance(content, bytes):
        for magic, program in _COMPRESSED.items():
            if content.startswith(magic):
                raise refusal("dump-compressed", "log", program=program)
        if content[:1] == b"\x80" or (content[:1] in (b"(", b"}") and content[-1:] == b"."):
            return plain(content, allowance)
        if not content[:64].lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
            return None
        content = content.decode("utf-8-sig", "replace")
    content = content.lstrip("\ufeff")
    if not content[:64].lstrip(" \t\r\n").startswith("{") or _is_text(content):
        return None
    allowance.unpack(sum(content.count(sign) * size for sign, size in _JSON.items()), len(content))
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None  # a log may begin with a brace


_JSON = {"[": 96, "{": 176, ",": 64, ":": 128, '"': 28}
"""Bytes of memory per JSON sign: a list, an object, a value, an entry of an object, half of a
string begin with it."""

LONGEST_LINE = 65_536


def _is_text(content: str) -> bool:
    """Whether a file that begins with a brace is a log: without the names of a dump or a report, or
    with an object on each line."""
    if len(content) <= LONGEST_LINE:
        return False
    if '"version"' not in content and '"communicators"' not in content:
        return True
    line, _, rest = content[:LONGEST_LINE].strip().partition("\n")
    try:
        return bool(rest) and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _rank_of(name: str) -> int | None:
    """The global rank at the end of a dump's file name, where Flight Recorder puts it.

    >>> _rank_of("dumps/nccl_trace_rank_12"), _rank_of("nccl_trace_rank_3.json"), _rank_of("dump")
    (12, 3, None)
    """
    match = _RANK_OF_FILE.search(name)
    return int(match[1]) if match else None


# -- texts ---------------------------------------------------------------------------------------


def _lines(content: Content) -> str:
    """The lines of a text without colours, with lines joined that a terminal cut."""
    if isinstance(content, bytes):
        is_wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        content = content.decode("utf-16" if is_wide else "utf-8", "replace")
    text = _COLOUR.sub("", content) if "\x1b" in content else content
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text if text.count("\n") > MOST_WRAPPED else unwrapped(text)


def unwrapped(text: str) -> str:
    """The text with lines joined that a terminal cut at its width, in the middle of words.

    >>> cut = ["[rank18]:[E1013 20:47:44.9 Group.cpp:746] [R",
    ...        "ank 18] Some NCCL work has failed or timed o", "ut."]
    >>> print(unwrapped("\\n".join(cut)))
    [rank18]:[E1013 20:47:44.9 Group.cpp:746] [Rank 18] Some NCCL work has failed or timed out.
    """
    lines = text.split("\n")
    width = max(map(len, lines))
    full = sum(len(line) == width for line in lines)
    if not 40 <= width <= 250 or full < 2 or full * 4 < len(lines):
        return text
    joined, goes_on = [], False
    for line in lines:
        joined.append(line if goes_on and not _BEGINS.match(line) else "\n" + line)
        goes_on = len(line) == width and not line.endswith("  ")
    return "".join(joined)[1:]
