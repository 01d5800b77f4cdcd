"""Pictures of one or three bytes per pixel as PNG files, written by Pillow."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np

LEVEL = 3
"""The level of zlib: 6 takes up to half longer, for at most a seventh less."""


def png(
    pixels: np.ndarray, palette: Sequence[tuple[int, ...]] | None = None, **options: object
) -> bytes:
    """A picture as a file; options: Pillow's, such as ``dpi``.

    pixels: uint8, red, green and blue, shape (rows, columns, 3), or an opacity too, which is left
    out; or, with a palette, shape (rows, columns): 0 is transparent, i the colour i - 1, of three
    channels or with an opacity.

    >>> png(np.zeros((1, 1), dtype=np.uint8), [])[1:4]
    b'PNG'
    """
    from PIL import Image  # what only says sizes in words needs none

    image = Image.fromarray(pixels)
    if palette is None:
        image = image.convert("RGB")
    else:
        image.putpalette([0, 0, 0, *(channel for colour in palette for channel in colour[:3])])
        opacities = [colour[3] if len(colour) > 3 else 255 for colour in palette]
        is_solid = all(opacity == 255 for opacity in opacities)
        options["transparency"] = 0 if is_solid else bytes([0, *opacities])
    file = io.BytesIO()
    image.save(file, "PNG", compress_level=LEVEL, **options)
    return file.getvalue()


def png_uri(pixels: np.ndarray, palette: Sequence[tuple[int, ...]] | None = None) -> str:
    """`png` as a data URI."""
    return "data:image/png;base64," + base64.b64encode(png(pixels, palette)).decode()
