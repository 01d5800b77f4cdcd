"""What the reader of launch commands has to say, by code, and the names of what can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .shapes import words

TARGET_NAMES = words("launch", "TARGET_NAMES")
"""Frameworks that a text may be for, and what the page can write."""

LAUNCH_NOTES = words("launch", "LAUNCH_NOTES")


def note_text(
    note: Any,
    language: str = "en",
    *,
    label: Callable[[str], str] = str,
    refusal: Callable[[Any], str] = lambda error: f"{error.what}.",
) -> str:
    """A note of the reader (its Item or Note) as a sentence.

    label: the name of a field as the reader of the sentence knows it. refusal: how a layout's own
    refusal is said.

    >>> from formats.launch import parse
    >>> note_text(parse("--tensor-model-parallel-size eight").problems[0])
    '--tensor-model-parallel-size must be a whole number, not eight.'
    """
    if getattr(note, "error", None) is not None:
        return f"{note.name}: {refusal(note.error)}"
    facts: Mapping[str, Any] = note.facts
    if hasattr(note, "name"):
        shown = {"name": note.name, "value": _short(note.value)}
        facts = {**shown, "sets": label(note.sets), **facts}
    if "field" in facts:
        facts = {**facts, "field": label(facts["field"])}
    return LAUNCH_NOTES[note.code][language].format(**facts)


def _short(value: str, limit: int = 40) -> str:
    """A value as it stands in a sentence: printable, and not longer than it may be."""
    text = repr(value[: limit + 1])
    return (text if len(text) <= limit else f"{text[: limit - 1]}…").strip("'")
