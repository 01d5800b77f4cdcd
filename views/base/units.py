"""Bytes and seconds as a person reads them: three digits and a unit. 1 GB is 1e9 bytes."""

from __future__ import annotations

BYTES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
SECONDS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


def bytes_text(number: float) -> str:
    """
    >>> bytes_text(6.02e9), bytes_text(123456), bytes_text(7), bytes_text(0)
    ('6.02 GB', '123 kB', '7 B', '0 B')
    """
    for size, unit in BYTES:
        if number >= 0.9995 * size:
            return f"{_three(number / size)} {unit}"
    return f"{number:.0f} B"


def seconds_text(seconds: float) -> str:
    """
    >>> seconds_text(12.345), seconds_text(0.0123), seconds_text(4e-6), seconds_text(0)
    ('12.3 s', '12.3 ms', '4.00 µs', '0 s')
    """
    for size, unit in SECONDS:
        if seconds >= 0.9995 * size:
            return f"{_three(seconds / size)} {unit}"
    return "< 1 µs" if seconds else "0 s"


def _three(number: float) -> str:
    """A number in three digits, more where it has more before the point."""
    return f"{number:,.{0 if number >= 99.95 else 1 if number >= 9.995 else 2}f}"
