"""Sentences about slow steps, made of the records of `diagnosis.slow.account`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .sentences import close_up
from .shapes import words

SLOW, SLOW_CAUSES = words("slow", "SLOW"), words("slow", "SLOW_CAUSES")
SLOW_STEPS = words("slow", "SLOW_STEPS")
SLOW_DOING, SLOW_NOTES = words("slow", "SLOW_DOING"), words("slow", "SLOW_NOTES")
SLOW_WORDS = words("slow", "SLOW_WORDS")


def slow_sentence(code: str, facts: Mapping[str, Any], language: str) -> str:
    """The sentence of a record.

    >>> slow_sentence("waiting", {"us": 31_400.0, "share": 0.13}, "en")
    'A GPU waits 31 ms of a step for others on average (13 %).'
    """
    fact_texts = {name: _fact_text(name, value, language) for name, value in facts.items()}
    if facts.get("of") is not None and "steps" in facts:
        seen = "seen-one" if facts["of"] == 1 else "seen"
        fact_texts["seen"] = SLOW_WORDS[seen][language].format(**fact_texts)
    if "host" in facts:
        host = SLOW_WORDS["host"][language].format(**fact_texts) if facts["host"] else ""
        fact_texts["host"] = host
    if facts.get("cause"):
        fact_texts["cause"] = SLOW_CAUSES[facts["cause"]][language]
    if "doing" in facts:
        fact_texts["doing"] = SLOW_DOING[facts["doing"]][language]
    return close_up({**SLOW, **SLOW_STEPS}[code][language].format(**fact_texts))


def slow_note(code: str, language: str) -> str:
    """What the traces lack, by name."""
    return str(SLOW_NOTES[code][language])


def time_text(microseconds: float) -> str:
    """A time of a step in two digits.

    >>> time_text(840.0), time_text(31_400.0), time_text(2_500_000.0)
    ('840 µs', '31 ms', '2.5 s')
    """
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            value = microseconds / size
            return f"{value:.1f} {unit}" if value < 10 else f"{value:,.0f} {unit}"
    return f"{microseconds:.0f} µs"


def _fact_text(name: str, value: object, language: str) -> str:
    """A fact as text: times with units, shares in percent, tuples as lists."""
    if name in ("us", "fast") and isinstance(value, float):
        return time_text(value)
    if name in ("share", "paid") and isinstance(value, float):
        return f"{100 * value:.0f} %"
    if isinstance(value, tuple):
        return _listed(value, language)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _listed(values: tuple[object, ...], language: str) -> str:
    listed = ("、" if language == "zh" else ", ").join(map(str, values[:16]))
    return listed + (f" … ({len(values):,})" if len(values) > 16 else "")
