"""Bytes and seconds in words: three digits, rounded once, and a unit."""

from __future__ import annotations

import pytest

from request.units import BYTES, SECONDS, bytes_text, seconds_text

ROUNDED = [
    (1.0, "1.00"),
    (9.994, "9.99"),
    (9.996, "10.0"),
    (99.94, "99.9"),
    (99.96, "100"),
    (999.4, "999"),
]
"""Beside each border of a digit; never a fourth one."""


@pytest.mark.parametrize(
    ("text", "units"), [(bytes_text, BYTES), (seconds_text, SECONDS)], ids=["bytes", "seconds"]
)
def test_a_number_has_three_digits_in_every_unit(text, units):
    found = [text(number * size) for size, _ in units for number, _ in ROUNDED]
    assert found == [f"{digits} {unit}" for _, unit in units for _, digits in ROUNDED]


def test_what_rounds_up_to_a_thousand_is_one_of_the_next_unit():
    assert bytes_text(999.6e6) == "1.00 GB"
    assert seconds_text(999.6e-6) == "1.00 ms"
