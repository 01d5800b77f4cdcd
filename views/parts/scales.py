"""Labels of a colour scale, and numbers as the page's script reads them."""

from __future__ import annotations

import numpy as np

from render.scenes.matrix import MatrixPicture
from request.units import bytes_text


def runs(numbers: np.ndarray) -> str:
    """Numbers as runs of consecutive ones.

    >>> runs(np.array([0, 0, 0, 2, 1, 1]))
    '3*0,2,2*1'
    """
    starts = np.flatnonzero(np.diff(numbers, prepend=-1))
    lengths = np.diff(starts, append=len(numbers))
    return ",".join(
        f"{length}*{number}" if length > 1 else str(number)
        for number, length in zip(numbers[starts].tolist(), lengths.tolist())
    )


NEAR = 0.03
"""The least distance of two labels of a scale, as a share of it."""


def scale_of(picture: MatrixPicture) -> tuple[tuple[float, str], ...]:
    """The labels of a colour scale: its ends, and powers of ten where there is room."""
    low, high = picture.low, picture.high
    if low == high:
        return ((1.0, bytes_text(high)),)
    span = np.log10(high / low)
    powers = 10.0 ** np.arange(np.ceil(np.log10(low)), np.ceil(np.log10(high)))
    within = [(float(np.log10(power / low) / span), power) for power in powers.tolist()]
    kept = [(0.0, low), *(place for place in within if NEAR < place[0] < 1 - NEAR), (1.0, high)]
    return tuple((at, bytes_text(number)) for at, number in kept)
