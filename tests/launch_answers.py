"""What the tests of launch commands ask of every answer."""

from __future__ import annotations

import pytest

from formats.launch import Parsed, parse
from formats.launch.flags import MODEL, TRAINING
from groups.errors import LayoutError
from groups.layout import Job
from texts.sentences import note_text

LISTS = ("understood", "ignored", "unresolved", "problems")


def values(text: str) -> dict[str, object]:
    return parse(text).values


def codes(items) -> list[str]:
    return [item.code for item in items]


def only_problem(text: str):
    problems = parse(text).problems
    assert len(problems) == 1, problems
    return problems[0], text[problems[0].start : problems[0].end]


def check_law(parsed: Parsed) -> None:
    """Every place lies in the text, every code has a sentence, all values are of known fields."""
    breaks = [-1, *(at for at, c in enumerate(parsed.text) if c == "\n")]
    for name in LISTS:
        for item in getattr(parsed, name):
            assert 0 <= item.start <= item.end <= len(parsed.text)
            assert note_text(item)
            assert 1 <= item.line <= len(breaks)
            assert breaks[item.line - 1] + item.column == item.start
    for note in parsed.missing:
        assert note_text(note)
    fields = {*Job.__dataclass_fields__, *MODEL}
    assert set(parsed.values) <= fields
    assert set(parsed.assumed) <= fields | set(TRAINING)
    assert not set(parsed.values) & set(parsed.assumed)
    assert not set(parsed.asks) & {*parsed.values, *parsed.assumed}
    assert set(parsed.training) <= set(TRAINING)
    if parsed.asks:
        with pytest.raises(LayoutError, match=parsed.asks[0]):
            parsed.job()
    else:
        assert isinstance(parsed.job(), Job)


TP = "--tensor-model-parallel-size"
