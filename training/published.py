"""Measured speeds of published layouts, and options that their sources imply without stating them.

published_steps.csv has a row a layout whose source states a speed: seconds of a step (low and high
differ where the source leaves open how it counts), where it stands, and how it was counted:

    stated      seconds of a step, as printed
    tokens      tokens per second and GPU
    formula     TFLOP/s a GPU by equation (3) of arXiv:2104.04473, which counts the recomputation,
                and a hundredth each way, for it is printed without decimals
    recomputed  TFLOP/s a GPU, the recomputation counted; of BLOOM up to what its logs print
    attention   TFLOP/s a GPU; the source does not say how it counts attention: not at all (but of
                131,072 tokens), the causal half, or all of it
    hours       GPU hours for a trillion tokens

and, where the source itself says how well the GPUs were used, its figure as printed and what that
counts: mfu, a share of the 16-bit peak, or TFLOP/s a GPU of the model, or of the hardware, with
what is computed again; attention causal, full, or empty where the source does not say.

derived.csv has a row an option that a source does not state and that its other facts imply: by the
beginning of the ids, the field of `training.models.training_of_preset`, and the reason, a name of
texts/presets.toml. What the source states stands in published.toml and in groups/published.toml.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class PublishedStep:
    """The seconds of a step that a source measured for a layout.

    Attributes:
        source: a paper, or a file of a repository.
        place: a table or a section of the source; empty: all of it.
        counted: how the source's figure becomes seconds, by the module's list; value: the figure.
        figure: what its own figure of use is: "mfu", "model" or "hardware"; empty: it has none.
        attention: how that counts attention: "causal", "full", or empty where nobody knows.
        printed: that figure.
    """

    preset: str
    low: float
    high: float
    source: str
    place: str
    counted: str
    value: str
    figure: str
    attention: str
    printed: str

    @property
    def own(self) -> float:
        """The source's own figure of use: a share, or TFLOP/s a GPU; 0 where it has none.

        >>> published_steps()["korthikanti-175b"].own, published_steps()["bloom-176b"].own
        (0.514, 156.0)
        """
        number = float(self.printed.rstrip("%") or 0)
        return round(number / 100, 6) if self.printed.endswith("%") else number

    def off(self, seconds: float) -> float:
        """The distance of ``seconds`` from the measured range, relative to the nearest end; 0
        inside.

        >>> published_steps()["llama3-405b-1"].off(13.816)
        0.1
        """
        nearest = min(max(seconds, self.low), self.high)
        return round(abs(seconds / nearest - 1), 12)


@dataclass(frozen=True)
class DerivedOption:
    """A training option that a source implies. reason: its name in texts/presets.toml."""

    field: str
    value: str
    reason: str


@cache
def published_steps() -> Mapping[str, PublishedStep]:
    """Measured steps by the ids of `groups.presets.PRESETS`.

    >>> step = published_steps()["llama3-405b-1"]
    >>> step.low, step.high, step.place, step.counted, step.value
    (11.6, 12.56, 'Table 4', 'attention', '430')
    """
    return {
        row["preset"]: PublishedStep(
            **{name: text for name, text in row.items() if name not in ("low", "high")},
            low=float(row["low"]),
            high=float(row["high"]),
        )
        for row in _rows("published_steps.csv")
    }


@cache
def derived_options(preset: str) -> tuple[DerivedOption, ...]:
    """Training options that the source of a published layout implies without stating them.

    >>> [(option.field, option.value) for option in derived_options("nemotron4-340b-1536")][:2]
    [('vpp', '8'), ('micro_batch', '1')]
    """
    return tuple(
        DerivedOption(row["field"], row["value"], row["reason"])
        for row in _rows("derived.csv")
        if preset.startswith(row["preset"])
    )


def _rows(file: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(file).open(encoding="utf-8", newline="") as text:
        return list(csv.DictReader(text))
