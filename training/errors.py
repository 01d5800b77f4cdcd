"""The refusals of this room: the sentences of refusals.toml, beside those of groups."""

from __future__ import annotations

import sys
from numbers import Real
from pathlib import Path

from groups.errors import not_a_choice, refusals

refusal = refusals(Path(__file__).with_name("refusals.toml"))


def is_amount(value: object, most: float = sys.float_info.max) -> bool:
    """Whether a value is a number from 0 to ``most``.

    >>> is_amount(2.5), is_amount(True), is_amount(-1), is_amount(float("nan"))
    (True, False, False, False)
    """
    is_number = isinstance(value, (float, Real)) and not isinstance(value, bool)
    return is_number and 0 <= value <= most  # type: ignore[operator]


def require_choice(name: str, value: object, choices: tuple[object, ...]) -> None:
    """Raises LayoutError for a value that is not a choice; True is not taken for an equal 1.0."""
    if type(value) is not type(choices[0]) or value not in choices:
        raise not_a_choice(name, value, map(str, choices))
