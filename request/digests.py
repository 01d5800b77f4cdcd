"""The content of files as a short text that the browser keeps: the server keeps nothing.

It comes with every question of the page, and from a browser: what it unpacks to is bounded.
"""

from __future__ import annotations

import base64
import zlib

from groups.budget import spend
from groups.errors import LayoutError

LONGEST = 250_000
"""The longest digest, in characters: every request of the page carries it."""

MOST_PLAIN = 2_000_000
"""The longest JSON of a digest, in characters: a short digest may expand without limit."""

MOST_PARTS = 100_000
"""The largest number of lists and objects in it: millions of empty ones compress to a short
text."""


def packed(plain: str) -> str:
    """A JSON value as a digest; empty if that would be too long.

    >>> unpacked(packed('{"ranks":[3]}'), "digest")
    '{"ranks":[3]}'
    """
    if len(plain) > MOST_PLAIN or _parts(plain) > MOST_PARTS:
        return ""
    text = base64.b64encode(zlib.compress(plain.encode())).decode()
    return text if len(text) <= LONGEST else ""


def unpacked(text: object, control: str) -> str:
    """The JSON value of a digest. control: the name of the field with the digest.

    Errors: LayoutError ``bad-digest`` for any other text; ``too-much-work`` if reading it exceeds
    the budget of a request.
    """
    try:
        if not isinstance(text, str) or len(text) > LONGEST:
            raise ValueError
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(base64.b64decode(text), MOST_PLAIN).decode()
    except (ValueError, zlib.error):
        raise bad_digest(control) from None
    parts = _parts(plain)
    if unpacking.unconsumed_tail or parts > MOST_PARTS:
        raise bad_digest(control)
    spend(len(plain) // 20 + 2 * parts, "values", control=control)
    return plain


def bad_digest(control: str) -> LayoutError:
    what = "what the files said can no longer be read: choose them again"
    return LayoutError("bad-digest", what, control=control)


def _parts(plain: str) -> int:
    """An upper bound of the lists and objects in a JSON text: brackets in strings count too."""
    return plain.count("[") + plain.count("{")
