"""A measured step, as somebody types it or as a log prints it.

>>> read_step("13.75 s"), read_step("430 TFLOP/s")
(MeasuredStep(kind='seconds', value=13.75), MeasuredStep(kind='tflops', value=430.0))
>>> line = " iteration 20/ 100 | elapsed time per iteration (ms): 6200.5 | "
>>> read_step(line + "throughput per GPU (TFLOP/s/GPU): 401.2 |")
MeasuredStep(kind='seconds', value=6.2005)
>>> read_step("12,500 tokens/s/GPU")
MeasuredStep(kind='tokens_per_gpu', value=12500.0)

>>> read_step(line).text, read_step("1,250 ms").text
('6.2005 s', '1.25 s')

Megatron-LM prints both where it logs throughput (megatron/training/training.py, training_log): of
several lines the median counts, the first of three lines and more is left out, for it warms up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

_ELAPSED = re.compile(r"elapsed time per iteration \(ms\):\s*([0-9.]+)")
_THROUGHPUT = re.compile(r"throughput per GPU \(TFLOP/s/GPU\):\s*([0-9.]+)")
_UNITS = (
    (r"m(?:illi)?s(?:econds?)?", "seconds", 1e-3),
    (r"s(?:ec(?:onds?)?)?", "seconds", 1.0),
    (r"(?:tokens?|tok)\s*/\s*s(?:ec)?\s*/\s*gpu", "tokens_per_gpu", 1.0),
    (r"(?:tokens?|tok)\s*/\s*gpu\s*/\s*s(?:ec)?", "tokens_per_gpu", 1.0),
    (r"(?:tokens?|tok)\s*/\s*s(?:ec)?", "tokens", 1.0),
    (r"tflops?(?:\s*/\s*s)?(?:\s*/\s*gpu)?", "tflops", 1.0),
    (r"pflops?(?:\s*/\s*s)?(?:\s*/\s*gpu)?", "tflops", 1e3),
)
_TYPED = re.compile(r"\s*([0-9][0-9,]*(?:\.[0-9]+)?)\s*([a-z/\s]*)\s*", re.IGNORECASE)


SPELLED = {
    "seconds": "s",
    "tokens": "tokens/s",
    "tokens_per_gpu": "tokens/s/GPU",
    "tflops": "TFLOP/s",
}
"""The unit of each kind, which `read_step` reads."""


@dataclass(frozen=True)
class MeasuredStep:
    """What was measured. kind: seconds, tokens (a second, of all GPUs), tokens_per_gpu, or tflops
    (a second and GPU)."""

    kind: str
    value: float

    @property
    def text(self) -> str:
        """It as it would be typed."""
        number = f"{self.value:.9f}".rstrip("0").rstrip(".")
        return f"{number} {SPELLED[self.kind]}"


def read_step(text: str) -> MeasuredStep | None:
    """The measured step of a text; None if it says none. A plain number is seconds."""
    for pattern, kind, unit in ((_ELAPSED, "seconds", 1e-3), (_THROUGHPUT, "tflops", 1.0)):
        if found := [float(number) for number in pattern.findall(text)]:
            return _positive(kind, median(found[1:] if len(found) > 2 else found) * unit)
    typed = _TYPED.fullmatch(text)
    if typed is None:
        return None
    value, words = float(typed[1].replace(",", "")), typed[2].strip()
    if not words:
        return _positive("seconds", value)
    for spelled, kind, unit in _UNITS:
        if re.fullmatch(spelled, words, re.IGNORECASE):
            return _positive(kind, value * unit)
    return None


def is_typed(text: str) -> bool:
    """Whether a text is a number with its unit, and no log."""
    return _TYPED.fullmatch(text) is not None


def _positive(kind: str, value: float) -> MeasuredStep | None:
    return MeasuredStep(kind, value) if 1e-9 <= value < 1e12 else None
