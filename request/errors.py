"""The refusals of this room: the sentences of refusals.toml, beside those of groups."""

from __future__ import annotations

from pathlib import Path

from groups.errors import quoted, refusals

refusal = refusals(Path(__file__).with_name("refusals.toml"))


def positive(value: object, *, name: str) -> float:
    """A number above 0 of a plausible size. Errors: LayoutError."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
    if not 1e-9 <= number <= 1e9:
        raise refusal("not-positive", name, value=quoted(value), control=name)
    return float(number)
