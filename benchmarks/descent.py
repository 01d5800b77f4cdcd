"""Gauss-Newton steps on errors whose tails count linearly: what the fits share."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np


def descend(
    errors: Callable[[np.ndarray, np.ndarray | None], np.ndarray],
    widths: np.ndarray,
    weights: np.ndarray,
    *,
    near: float,
    far: float = math.inf,
    steps: int = 10,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Moves of the constants' logarithms that make the errors least.

    An error counts by its square up to ``near``, by its size up to ``far``, and no more beyond.
    errors: of moves, all of them or those of some runs; start: moves from which it goes on. A run
    on which a constant has no effect at all is not asked about it again.
    """
    scale = 2 * near

    def loss(found: np.ndarray, moved: np.ndarray) -> float:
        size = np.minimum(abs(found), far)
        each = np.where(size < near, size**2 / 2 / near, size - near / 2)
        return float((weights * each).sum() / scale + ((moved / widths) ** 2).sum() / 2)

    moved = np.zeros(len(widths)) if start is None else start
    found = errors(moved, None)
    slope = np.ones((len(found), len(widths)))
    for _ in range(steps):
        for at in range(len(widths)):
            a_little, these = moved.copy(), np.flatnonzero(slope[:, at])
            a_little[at] += 1e-3
            slope[these, at] = (errors(a_little, these) - found[these]) / 1e-3
        each = weights * (abs(found) < far) / np.maximum(abs(found), near) / scale
        square = slope.T @ (each[:, None] * slope) + np.diag(1 / widths**2)
        step = np.linalg.solve(square, slope.T @ (each * found) + moved / widths**2)
        before = loss(found, moved)
        for part in (1.0, 0.5, 0.25, 0.125):
            if loss(errors(moved - part * step, None), moved - part * step) < before:
                moved = moved - part * step
                break
        else:
            return moved
        found = errors(moved, None)
        if before - loss(found, moved) < 1e-3:
            break
    return moved
