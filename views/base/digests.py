"""What files said, as a short text that the browser keeps: the server keeps nothing.

It comes with every question of the page, and from a browser: what it unpacks to is bounded.
"""

from __future__ import annotations

import base64
import zlib

from groups.budget import spend
from groups.errors import LayoutError

LONGEST = 250_000
"""Characters of a digest: it comes with every question of the page."""

MOST_PLAIN = 2_000_000
"""Characters of its JSON, which a short digest could be without end: at most a million ranks."""

MOST_PARTS = 100_000
"""Lists and objects of its JSON: millions of empty ones are a short text as well."""


def packed(plain: str) -> str:
    """A JSON as a digest; empty where that would be too long.

    >>> unpacked(packed('{"ranks":[3]}'), "digest")
    '{"ranks":[3]}'
    """
    if len(plain) > MOST_PLAIN or _parts(plain) > MOST_PARTS:
        return ""
    text = base64.b64encode(zlib.compress(plain.encode())).decode()
    return text if len(text) <= LONGEST else ""


def unpacked(text: object, control: str) -> str:
    """The JSON of a digest; control: the field that it comes from.

    Errors: LayoutError ``bad-digest`` for any other text; ``too-much-work`` where it is more than a
    request may cost.
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
    """Lists and objects of a JSON at most: brackets in its texts count as well."""
    return plain.count("[") + plain.count("{")
