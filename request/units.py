"""Bytes, seconds and ranks as text. 1 GB is 1e9 bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from descriptions import PAGE
from training.estimate.memory import Fit

BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))

HOUR, LONG = 3600.0, 6000.0
"""Seconds of an hour, and those from which on a time is told in hours."""

SHORTENED = 24
"""The number of ranks from which on a line leaves out its middle."""


def bytes_text(number: float) -> str:
    """
    >>> bytes_text(6.02e9), bytes_text(123456), bytes_text(7), bytes_text(0)
    ('6.02 GB', '123 kB', '7 B', '0 B')
    """
    for size, unit in BYTES:
        if number >= 0.9995 * size:
            return f"{_three(number / size)} {unit}"
    return f"{number:.0f} B"


def count_text(number: float) -> str:
    """A large number in three digits.

    >>> count_text(121_387.2), count_text(12_400_000), count_text(812.4)
    ('121k', '12.4M', '812')
    """
    for size, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= 0.9995 * size:
            return f"{number / size:.3g}{name}"
    return f"{number:.3g}"


def seconds_text(seconds: float) -> str:
    """A time in three digits, above a hundred minutes in hours.

    >>> seconds_text(12.345), seconds_text(0.0123), seconds_text(4e-6), seconds_text(0)
    ('12.3 s', '12.3 ms', '4.00 µs', '0 s')
    >>> seconds_text(5_999), seconds_text(10_689)
    ('5,999 s', '2.97 h')
    """
    if seconds >= LONG:
        return f"{_three(seconds / HOUR)} h"
    for size, unit in SECONDS:
        if seconds >= 0.9995 * size:
            return f"{_three(seconds / size)} {unit}"
    return "< 1 µs" if seconds else "0 s"


def _three(number: float) -> str:
    """A number in three significant digits, or with all its integer digits."""
    return f"{number:,.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"


def bracketed(words: str, language: str) -> str:
    """Words in brackets as the language writes them: after a space, or full width.

    >>> "2.9 s" + bracketed("2.5–3.6", "en")
    '2.9 s (2.5–3.6)'
    """
    return PAGE["in_brackets"][language].format(words=words)


def ranks_text(ranks: np.ndarray | Sequence[object], most: int = SHORTENED) -> str:
    """Ranks in one line, without the middle if there are more than ``most``.

    >>> ranks_text(np.arange(4)), ranks_text(np.arange(100), most=6)
    ('0, 1, 2, 3', '0, 1, 2, … 97, 98, 99')
    """
    if len(ranks) <= most:
        return _joined(ranks)
    half = most // 2
    return f"{_joined(ranks[:half])}, … {_joined(ranks[-half:])}"


def _joined(ranks: np.ndarray | Sequence[object]) -> str:
    return ", ".join(map(str, ranks.tolist() if isinstance(ranks, np.ndarray) else ranks))


def ranges_text(ranks: np.ndarray | Sequence[int], most: int = 24) -> str:
    """Ranks in one line, neighbours as ranges.

    >>> ranges_text([0, 1, 2, 3, 8, 10, 11]), ranges_text(np.arange(0, 99, 2), most=4)
    ('0–3, 8, 10–11', '0, 2, … 96, 98')
    """
    numbers = np.asarray(ranks, dtype=np.int64)
    if not len(numbers):
        return ""
    breaks = np.flatnonzero(np.diff(numbers) != 1) + 1
    ends = np.stack([np.append(0, breaks), np.append(breaks, len(numbers)) - 1])
    is_whole = ends.shape[1] <= most
    half = most // 2
    parts = [ends] if is_whole else [ends[:, :half], ends[:, -half:]]
    return ", … ".join(
        ", ".join(
            str(first) if first == last else f"{first}–{last}"
            for first, last in numbers[part].T.tolist()
        )
        for part in parts
    )


def gib(number: float) -> str:
    """
    >>> gib(1.5 * 2**30), gib(2**20)
    ('1.5 GiB', '0.001 GiB')
    """
    amount = number / 2**30
    return f"{amount:,.1f} GiB" if amount >= 0.05 else f"{amount:.3f} GiB"


def interval_text(fit: Fit, language: str = "en") -> str:
    """The memory that a GPU needs, with the interval of nine of ten real runs.

    >>> interval_text(Fit(60e9, 64.4e9, 60e9, 70.9e9, "fits", 0, {}))
    '60.0 GiB (55.9–66.0)'
    """
    low, high = (f"{number / 2**30:,.1f}" for number in (fit.low, fit.high))
    return gib(fit.needed) + bracketed(f"{low}–{high}", language)
