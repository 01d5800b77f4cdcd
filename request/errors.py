"""The refusals of this room: the sentences of refusals.toml, beside those of groups."""

from __future__ import annotations

from pathlib import Path

from formats.measured_step import MeasuredStep, is_typed, read_step
from groups.errors import quoted, refusals

refusal = refusals(Path(__file__).with_name("refusals.toml"))


def step_in(text: str, *, name: str) -> MeasuredStep:
    """The measured step of a text. Errors: LayoutError."""
    if (found := read_step(text)) is None:
        raise refusal("not-a-step", name, value=quoted(text.strip()), control=name)
    return found


def measured_step(value: object, *, name: str) -> str:
    """A measured step as links say it: what was typed, and of a log, which has more to tell than
    its owner may want, its number alone. Errors: LayoutError.

    >>> log = " iteration 20/ 100 | elapsed time per iteration (ms): 6200.5 | lm loss: 2.1E+00 |"
    >>> measured_step(log, name="own_step"), measured_step(" 12.5 ", name="own_step")
    ('6.2005 s', '12.5')
    """
    text = str(value).strip()
    found = step_in(text, name=name)
    return text if is_typed(text) else found.text


def positive(value: object, *, name: str) -> float:
    """A number above 0 of a plausible size. Errors: LayoutError."""
    number = value if isinstance(value, (int, float)) and not isinstance(value, bool) else 0
    if not 1e-9 <= number <= 1e9:
        raise refusal("not-positive", name, value=quoted(value), control=name)
    return float(number)
