"""What is not sure of a machine, in words: numbers that nobody publishes, and on which sources
differ."""

from __future__ import annotations

from collections.abc import Iterator

from descriptions import CONTROLS, MACHINE, PAGE
from request.words import saying, within_sentence
from training.machine import NUMBERS, TERA, Machine


def notes_of(machine: Machine, language: str) -> Iterator[str]:
    """Sentences about a machine: which numbers are unknown, that its memory is the data sheet's,
    and the range of its peak in 4 bits.

    >>> from training.clusters import CLUSTERS
    >>> [*notes_of(CLUSTERS["dgx-b300"], "en")]
    ['In 4 bits sources say 12,600 to 15,000 TFLOP/s; the lower one counts.']
    >>> [*notes_of(CLUSTERS["dgx-h100"], "en")]
    []
    """
    say = saying(MACHINE, language)
    missing = [control for name, (_, control) in NUMBERS.items() if not getattr(machine, name)]
    if missing and machine.id != "own":
        labels = (within_sentence(CONTROLS[control].label[language]) for control in missing)
        yield say("unknown", names=PAGE["and_list"][language].join(labels))
    if machine.is_sheet and machine.memory:
        yield say("sheet")
    if four := fp4_range(machine, language):
        yield four


def fp4_range(machine: Machine, language: str) -> str:
    """What sources say of a machine's peak in 4 bits; empty where they agree."""
    if machine.fp4_most <= machine.fp4:
        return ""
    low, high = (f"{peak / TERA:,.0f}" for peak in (machine.fp4, machine.fp4_most))
    return MACHINE["range_fp4"][language].format(low=low, high=high)
