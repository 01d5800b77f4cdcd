"""LayoutError -> the sentence and the buttons that stand beside the controls."""

from __future__ import annotations

from html import escape
from typing import Any

from descriptions import CONTROLS, PAGE, REFUSALS, SPANS
from groups import LayoutError


def sentence(error: LayoutError, language: str) -> str:
    """The refusal in the language of the page.

    >>> from groups import fit
    >>> try: fit(16, tp=3)
    ... except LayoutError as error: print(sentence(error, "en"))
    tp 3 × pp 1 × cp 1 = 3 does not divide 16 GPUs, so no whole DP size remains.
    """
    facts: dict[str, Any] = {name: _number(value) for name, value in error.facts.items()}
    if "control" in facts:
        facts["control"] = control_label(error.facts["control"], language)
    if "minimum" in facts:
        span = SPANS["up" if error.facts["maximum"] is None else "range"]
        facts["span"] = span[language].format(**facts)
    if "sizes" in facts:
        facts["sizes"] = facts["sizes"].replace(" x ", " × ")
    return REFUSALS[error.code][language].format(**facts)


def control_label(control: str, language: str) -> str:
    """The name of a control as the page writes it; axes keep their short names."""
    if control in ("tp", "pp", "cp", "dp") or control not in CONTROLS:
        return control
    return CONTROLS[control].label[language]


def refusal_html(error: LayoutError, language: str) -> str:
    """An alert: the sentence, one button a fix, and that the picture is the last valid one."""
    buttons = "".join(
        f'<button type="button" class="fix" data-fix="{i}">{escape(fix_label(fix, language))}'
        "</button>"
        for i, fix in enumerate(error.alternatives)
    )
    fixes = f'<p class="fixes"><span>{PAGE["try"][language]}</span>{buttons}</p>' if buttons else ""
    return (
        f'<div class="refusal" role="alert" data-control="{escape(error.control or "")}">'
        f"<p>{escape(sentence(error, language))}</p>{fixes}"
        f'<p class="still">{PAGE["still_shown"][language]}</p></div>'
    )


def fix_label(fix: dict[str, int], language: str) -> str:
    """
    >>> fix_label({"tp": 2, "pp": 4}, "en"), fix_label({"nodes": 3}, "en")
    ('tp 2, pp 4', 'Nodes 3')
    """
    return ", ".join(
        f"{control_label(name, language)} {_number(value)}" for name, value in fix.items()
    )


def _number(value: Any) -> Any:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else value
