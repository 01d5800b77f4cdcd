"""Selects one assignment for each field, and records what becomes of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from groups.notes import Note

from ...values import Document
from ..items import Item
from ..sayings import Assignment

IN_ALL = ("world", "tasks")
"""Fields that count all GPUs of the job."""

Settled = Mapping[str, Assignment]
"""The assignment of each field that applies."""


@dataclass
class Remarks:
    """Remarks made while a layout is computed, beside those about single words."""

    ignored: list[Item] = field(default_factory=list)
    problems: list[Item] = field(default_factory=list)
    missing: list[Note] = field(default_factory=list)  # what is assumed and what is asked for
    asks: list[str] = field(default_factory=list)

    def add_difference(self, assignment: Assignment, code: str, count: int) -> None:
        """Adds a problem: an assignment that another count contradicts."""
        self.problems.append(replace(assignment.item, code=code, facts={"count": count}))

    def ask(self, name: str) -> None:
        """Adds a question about a field that the text leaves open and that has no known default."""
        self.asks.append(name)
        self.missing.append(Note("asked", {"field": name}))

    def assume(self, assumed: dict[str, object], name: str, value: object) -> None:
        """Adds the default of a field that the text does not set."""
        assumed[name] = value
        self.missing.append(Note("default", {"field": name, "assumed": value}))


def settle(
    assignments: Sequence[Assignment], remarks: Remarks
) -> tuple[dict[str, Assignment], tuple[Item, ...]]:
    """The assignments that apply, by field, and the words that agree with them; one that differs is
    a contradiction. Of several options for a field the one of the lowest rank applies, of equals
    the last."""
    by_field: dict[str, list[Assignment]] = {}
    for assignment in assignments:
        by_field.setdefault(assignment.field, []).append(assignment)
    settled: dict[str, Assignment] = {}
    understood: list[Item] = []
    for name, several in by_field.items():
        rank = min(one.row.rank for one in several)
        counts = settled[name] = next(one for one in reversed(several) if one.row.rank == rank)
        shown: set[tuple[object, str]] = set()
        for one in several:
            if name == "tasks_per_node" and one.value == 1:
                # One launcher a node: it says nothing of the GPUs.
                remarks.ignored.append(replace(one.item, code="no-group", sets=""))
            elif one.value == counts.value:
                understood.append(replace(one.item, sets="gpus") if name in IN_ALL else one.item)
            elif (one.value, one.item.name) not in shown:
                shown.add((one.value, one.item.name))
                is_same = one.item.name == counts.item.name
                code = "given-twice" if is_same else "contradiction"
                facts = {"kept": counts.item.value or "on", "by": counts.item.name}
                remarks.problems.append(replace(one.item, code=code, facts=facts))
    return settled, tuple(sorted(understood, key=lambda item: item.start))


def values_of(settled: Settled) -> Document:
    """The value of each field."""
    return {name: assignment.value for name, assignment in settled.items()}


def variable_defaults(settled: Settled) -> dict[str, str]:
    """The shell variables that the text never sets, each with its default."""
    defaults: dict[str, str] = {}
    for default in filter(None, (assignment.default for assignment in settled.values())):
        defaults.setdefault(default.name, default.value)
    return defaults
