"""How far colours are apart to an eye, by the colour science package: imported when first asked.

Its import takes a second, and makes numpy print as it did in 2017, which is taken back.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from render import palette


@cache
def _colour() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of the optional packages that it does without
        import colour
    np.set_printoptions(legacy=False)
    return colour


def lab(colours: Sequence[str], deficiency: str | None = None) -> np.ndarray:
    """CIE Lab of sRGB colours as seen by normal or colour-blind (severity 1) eyes."""
    colour = _colour()
    space = colour.RGB_COLOURSPACES["sRGB"]
    linear = space.cctf_decoding(np.array([palette.rgb(c) for c in colours]) / 255)
    if deficiency:
        seen = colour.blindness.matrix_cvd_Machado2009(deficiency, 1.0)
        linear = np.clip(linear @ seen.T, 0, 1)
    return colour.XYZ_to_Lab(linear @ space.matrix_RGB_to_XYZ.T, space.whitepoint)


def least_apart(one: np.ndarray, other: np.ndarray) -> float:
    """The smallest CIEDE2000 between colours of both rows, in CIE Lab, place by place."""
    return float(_colour().delta_E(one, other, method="CIE 2000").min())
