"""From what is pasted or dropped to readings: texts, dumps and reports, one or many.

Flight Recorder dumps are pickles, and a pickle is a program. Of the library's machine this takes
the instructions that build None, bool, int, float, str, list, tuple and dict with str keys, and no
other: it has no way to name a class, call a function or write to an object. The library's faster
Unpickler would let int keys that collide cost quadratic time, and one number take all memory.

Instructions as in CPython's Lib/pickletools.py (protocols 0 to 5). PyTorch writes protocol 2
(torch/csrc/jit/serialization/pickler.cpp).
"""

from __future__ import annotations

import io
import json
import pickle
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any

from groups.errors import LayoutError, quoted

from ..errors import refusal
from .lines import read_lines
from .nccl import is_report, read_report
from .reading import LogReading
from .recorder import Dump, as_dump, is_dump

MOST_BYTES = 32 * 1024 * 1024
"""Of all files together."""
MOST_FILES = 16_384

Content = str | bytes
Evidence = Content | Mapping[str, Content]

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_BEGINS = re.compile(
    r"\[rank|\[default|\[Rank |Traceback|frame #|\[?\d{4}-\d\d-\d\d[T ]|\[?[EWIF]\d{3,4} "
    r"|\[\d{1,5}(?:,\d{1,5})?\]|\S{1,255}:\d{1,10}:\d{1,10} \["
)
"""How a line of a log begins, and the rest of a line that was cut hardly ever."""

MOST_WRAPPED = 50_000
"""Lines of a text that is unwrapped: more is no terminal's scrollback."""

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
        except LayoutError as error:
            refused.append((name, error))
            continue
        if document is None:
            read_lines(_lines(content), reading)
        elif is_report(document):
            read_report(document, reading)
        elif is_dump(document):
            dumps.append(as_dump(document, name, _rank_of(name)))
        else:
            refused.append((name, refusal("dump-of-no-kind", "log")))
    for name, error in refused:
        file = quoted(name or "the file")
        facts = {"file": file, "because": error.code, "reason": error.what, **error.facts}
        if len(refused) == len(files):
            raise refusal("bad-dump", "log", **facts)
        reading.note("file-unreadable", **facts)
    return reading, dumps


def too_much_evidence() -> LayoutError:
    return refusal("too-much-evidence", "log", megabytes=MOST_BYTES // 2**20, files=MOST_FILES)


_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ": "xz",
    b"BZh": "bzip2",
}
"""How files begin that hold others, which are not unpacked here."""


def _document(content: Content) -> Any:
    """What a pickle or a JSON file holds; None for text."""
    if isinstance(content, bytes):
        for magic, program in _COMPRESSED.items():
            if content.startswith(magic):
                raise refusal("dump-compressed", "log", program=program)
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


# -- pickles -------------------------------------------------------------------------------------


def plain(data: bytes) -> Any:
    """What a pickle of plain data holds.

    >>> import pickle
    >>> plain(pickle.dumps({"version": "2.10", "entries": [(1, None), (2.5, True)]}, protocol=2))
    {'version': '2.10', 'entries': [(1, None), (2.5, True)]}
    >>> plain(pickle.dumps(print))
    Traceback (most recent call last):
    groups.errors.LayoutError: its instruction '\\x93' builds no plain data

    Errors: LayoutError for every other instruction, and for what is damaged or cut off.
    """
    file = io.BytesIO(data)
    try:
        return _PlainUnpickler(file).load()
    except LayoutError:
        raise
    except (pickle.UnpicklingError, struct.error, ArithmeticError, AttributeError, EOFError,
            LookupError, TypeError, ValueError) as error:  # fmt: skip
        at = file.tell()
        if at == len(data) and data[-1:] != pickle.STOP:
            raise refusal("dump-cut", "log", byte=at) from error
        raise refusal("dump-damaged", "log", byte=at) from error


class _Instructions(dict[int, Callable[[Any], None]]):
    """What is done at each instruction that is taken."""

    def __missing__(self, code: int) -> Callable[[Any], None]:
        raise refusal("dump-instruction", "log", value=repr(chr(code)))


class _PlainUnpickler(pickle._Unpickler):
    """The library's machine without most of its instructions; keys of a dict are texts."""

    def load_setitem(self) -> None:
        self._require_texts(self.stack[-2:-1])
        super().load_setitem()

    def load_setitems(self) -> None:
        self._require_texts(self.stack[::2])
        super().load_setitems()

    def load_dict(self) -> None:
        self._require_texts(self.stack[::2])
        super().load_dict()

    def _require_texts(self, keys: list[Any]) -> None:
        if any(type(key) is not str for key in keys):
            raise refusal("dump-key", "log")

    dispatch = _Instructions(
        {
            code: pickle._Unpickler.dispatch[code]
            for code in b"N\x88\x89IJKLM\x8aFGVX\x8c\x8d"  # values
            b"]}l)t\x85\x86\x87(ae01."  # what holds them
            b"gpqrhj\x94\x80\x95"  # the memo and the frames
        }
    )
    dispatch |= {ord("s"): load_setitem, ord("u"): load_setitems, ord("d"): load_dict}
