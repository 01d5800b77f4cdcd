"""Published measurements of weight updates, from published.csv."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class MeasuredUpdate:
    """A measured weight update: the model, the setup, the way of sending, and the source."""

    system: str
    model: str
    setup: str
    way: str
    seconds: float
    source: str

    @property
    def is_direct(self) -> bool:
        """Whether ranks send directly to ranks, according to the source."""
        return "p2p" in self.way


@cache
def measured_updates() -> tuple[MeasuredUpdate, ...]:
    """All measured updates, in the order of their sources.

    >>> slowest = max(measured_updates(), key=lambda update: update.seconds)
    >>> slowest.model, slowest.way, slowest.seconds
    ('GLM-5', 'NCCL broadcast', 58.3015)
    """
    with Path(__file__).with_name("published.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return tuple(
        MeasuredUpdate(
            system=row["system"],
            model=row["model"],
            setup=row["setup"],
            way=row["way"],
            seconds=float(row["seconds"]),
            source=row["source"],
        )
        for row in rows
    )
