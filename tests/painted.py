"""Scenes as painted pixels."""

from __future__ import annotations

from typing import Any

import numpy as np

from descriptions import SAVED
from render.files.figure import scene_marks
from render.files.paint import to_figure
from render.marks import LOOKS, Drawing

KEY = {name: text["en"] for name, text in SAVED.items()}
"""The words of a legend."""


def alone(scene: Any, theme: str = "light", scale: float = 2) -> np.ndarray:
    """A scene on a page of its own size, ``scale`` dots a pixel: uint8, shape (h, w, 3)."""
    placed = [(0.0, 0.0, 1.0, scene_marks(scene, theme))]
    made = to_figure(Drawing(scene.width, scene.height, LOOKS[theme].page, placed))
    made.set_dpi(96 * scale)
    made.canvas.draw()
    return np.asarray(made.canvas.buffer_rgba())[:, :, :3]  # type: ignore[attr-defined]
