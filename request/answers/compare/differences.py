"""By how much one number differs from another, in words."""

from __future__ import annotations

from descriptions import PAGE

SAME = 0.0005
"""Share by which numbers that are said to be the same differ at most."""

FEW = 0.1
"""From which ratio on, or its inverse, a difference is told in times and not as a share."""


def difference(before: float, after: float, language: str) -> str:
    """By how much a number is more or less than the one before.

    >>> difference(2.0, 1.86, "en"), difference(1.0, 22.2, "en"), difference(3, 3, "zh")
    ('▼ 7% less', '▲ 22 times as much', '= 相同')
    """
    if abs(after - before) <= SAME * max(before, after):
        return PAGE["cost_same"][language]
    if not before:
        return PAGE["cost_more_than_none"][language]
    words = "cost_less" if after < before else "cost_more"
    if after and not FEW < after / before < 1 / FEW:
        times = max(before, after) / min(before, after)
        return PAGE[f"{words}_times"][language].format(times=f"{times:,.0f}")
    share = 100 * abs(after / before - 1)
    return PAGE[words][language].format(share=f"{share:,.0f}" if share >= 1 else f"{share:.1f}")


def times_text(ratio: float, language: str) -> str:
    """
    >>> times_text(5.64, "en"), times_text(22.3, "zh"), times_text(1.024, "en"), times_text(2, "en")
    ('5.6 times', '22 倍', '1.02 times', '2 times')
    """
    is_whole = ratio >= 9.95 or ratio == round(ratio)
    number = f"{ratio:,.0f}" if is_whole else f"{ratio:.{1 if ratio >= 1.05 else 2}f}"
    return PAGE["times"][language].format(times=number)
