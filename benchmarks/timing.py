"""Taking turns with a clock, and writing down what it said as a Markdown table."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Durations of the same work, in milliseconds: by the clock, and of the processor.

    A busy machine makes the clock's longer; the processor's are those of a quiet one.

    >>> times = Timings((1.0, 2.0, 9.0), (1.0, 1.5, 1.25))
    >>> times.median, times.p95, times.cpu
    (2.0, 9.0, 1.25)
    """

    ms: tuple[float, ...]
    cpu_ms: tuple[float, ...] = ()  # where it is counted

    @property
    def median(self) -> float:
        return statistics.median(self.ms)

    @property
    def cpu(self) -> float:
        """The median of the processor's time."""
        return statistics.median(self.cpu_ms)

    @property
    def p95(self) -> float:
        """The smallest duration that 95 % do not exceed (nearest rank)."""
        return sorted(self.ms)[-(-95 * len(self.ms) // 100) - 1]


def interleaved(repeats: int, **works: Callable[[], object]) -> dict[str, Timings]:
    """Each work ``repeats`` times, in turns, after one turn that is not counted.

    Results are dropped, and garbage is collected, between measurements: nobody pays for another.
    """
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
    for turn in range(1 + repeats):
        for name, work in works.items():
            gc.collect()
            begun = time.perf_counter(), time.process_time()
            result = work()
            ended = time.perf_counter(), time.process_time()
            del result
            if turn:
                taken[name].append((1e3 * (ended[0] - begun[0]), 1e3 * (ended[1] - begun[1])))
    return {name: Timings(*zip(*both)) for name, both in taken.items()}


@dataclass(frozen=True)
class ResultTable:
    """A titled table; ``str()`` writes it as aligned Markdown.

    >>> rows = [("16", "1.5"), ("1,024", "20.0")]
    >>> print(ResultTable("Speed", ("GPUs", "ms"), rows, "Aim: 20 ms."))
    ## Speed
    <BLANKLINE>
    |  GPUs |   ms |
    | ----: | ---: |
    |    16 |  1.5 |
    | 1,024 | 20.0 |
    <BLANKLINE>
    Aim: 20 ms.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""

    def __str__(self) -> str:
        lines = [self.heads, *self.rows]
        widths = [max(3, *map(len, column)) for column in zip(*lines)]
        body = [
            "| " + " | ".join(text.rjust(width) for text, width in zip(line, widths)) + " |"
            for line in lines
        ]
        body.insert(1, "| " + " | ".join("-" * (width - 1) + ":" for width in widths) + " |")
        return "\n".join([f"## {self.title}", "", *body, *(["", self.note] if self.note else [])])


def shown(ms: float) -> str:
    """Milliseconds to about three digits.

    >>> shown(0.1234), shown(12.34), shown(1234.5)
    ('0.12', '12.3', '1,234')
    """
    return f"{ms:.2f}" if ms < 10 else f"{ms:.1f}" if ms < 100 else f"{ms:,.0f}"


def times(ratio: float) -> str:
    """A ratio: ``2.1x``, ``150x``."""
    return f"{ratio:.1f}x" if ratio < 10 else f"{ratio:,.0f}x"
