"""An answer as the lines that somebody reads of it: no markup, no picture, no last digits."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser

LINES = 60
"""Lines of an answer that are kept; how many more there are is its last."""

WIDTH = 200
"""Characters of a line that are kept."""

INLINE = frozenset(
    (
        "a",
        "abbr",
        "b",
        "bdi",
        "button",
        "code",
        "em",
        "i",
        "label",
        "kbd",
        "s",
        "small",
        "span",
        "strong",
        "sub",
        "sup",
        "u",
    )
)
CELLS = frozenset(("td", "th", "text", "tspan", "option", "dd"))
VOID = frozenset(
    ("br", "hr", "img", "input", "link", "meta", "use", "rect", "path", "circle", "line")
)
UNREAD = frozenset(("script", "style", "template", "defs"))


class _Reader(HTMLParser):
    """Block elements begin lines; cells of a row and texts of a picture have a bar between."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[str] = []
        self.line: list[str] = []
        self.unread: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if self.unread or tag in UNREAD or (tag == "option" and "selected" not in said):
            if tag not in VOID:
                self.unread.append(tag)
            return
        self._divide(tag)
        if said.get("role") == "img" or tag == "svg":
            self.line.append(f"[picture: {said.get('aria-label') or ''}]")
        if tag == "input" and said.get("type") not in ("hidden", "radio", "checkbox"):
            self.line.append(f"[{said.get('value') or said.get('placeholder') or ''}]")

    def handle_endtag(self, tag: str) -> None:
        if self.unread:
            if tag in self.unread:  # what was left open inside ends with it
                del self.unread[len(self.unread) - 1 - self.unread[::-1].index(tag) :]
            return
        self._divide(tag)

    def handle_data(self, data: str) -> None:
        if not self.unread:
            self.line.append(data)

    def _divide(self, tag: str) -> None:
        if tag in CELLS:
            self.line.append(" | ")
        elif tag == "br":
            self.line.append(" ")
        elif tag not in INLINE and tag not in VOID and tag not in ("g", "title", "desc"):
            self.end_line()

    def end_line(self) -> None:
        text = re.sub(r"(\s*\|\s*)+", " | ", "".join(self.line))
        text = " ".join(text.split()).strip("| ")
        if text:
            self.lines.append(text)
        self.line = []


def lines_of_document(text: str) -> list[str]:
    """
    >>> lines_of_document("<p>tp <b>2</b></p><table><tr><td>1</td><td>2</td></tr></table>")
    ['tp 2', '1 | 2']
    >>> lines_of_document('<select><option>a</option><option selected>b</option></select>')
    ['b']
    """
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end_line()
    return _kept(reader.lines)


def lines_of_json(text: str) -> list[str]:
    """Of what is JSON an entry a line, lists of numbers on one; other text line by line.

    >>> lines_of_json('{"tp": [[0, 1], [2, 3]], "seconds": 0.30000000000000004}')
    ['tp: [[0, 1], [2, 3]]', 'seconds: 0.3']
    """
    try:
        value = json.loads(_rounded(text))  # first: where lines part may not hang on a last digit
    except ValueError:
        return _kept(text.splitlines())
    return _kept(_entries(value, "")) if isinstance(value, (dict, list)) else _kept([text])


def _entries(value: object, path: str) -> list[str]:
    flat = json.dumps(value, ensure_ascii=False)
    inner: list[tuple[str, object]] = []
    if isinstance(value, dict):
        inner = [(f"{path}.{name}" if path else str(name), one) for name, one in value.items()]
    elif isinstance(value, list) and len(flat) > WIDTH // 2 and not _is_numbers(value):
        inner = [(f"{path}[{number}]", one) for number, one in enumerate(value)]
    if not inner or (path and len(flat) <= WIDTH // 2):
        return [f"{path}: {flat}" if path else flat]
    return [line for name, one in inner for line in _entries(one, name)]


def _is_numbers(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_is_numbers, value))
    return isinstance(value, (int, float))


_LONG = re.compile(r"(?<![\w.])\d{1,20}\.\d{7,}(?:e[-+]?\d+)?")
"""Numbers to the last digit, which versions of Python and numpy have otherwise."""


def _kept(lines: list[str]) -> list[str]:
    """What is kept of an answer: long ones are cut."""
    more = [f"... and {len(lines) - LINES} lines more"] if len(lines) > LINES else []
    kept = [_rounded(line) for line in lines[:LINES]]
    return [line if len(line) <= WIDTH else line[: WIDTH - 1] + "…" for line in kept] + more


def _rounded(text: str) -> str:
    return _LONG.sub(lambda number: f"{float(number[0]):.6g}", text)
