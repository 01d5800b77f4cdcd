"""Reports of straggler detectors: whom each names slowest, and that GPU's clock, heat and power.

    Megatron, Heimdall  | MnRtt/Rnk: 812.10ms/2 | MxRtt/Rnk: 1040.20ms/5 | MxTmp/Rnk: 88.00C/5 | ...
    Composer            Train MaxRoundTripTime/Rank: 1040.20ms/5       a line for each value
    NeMo, NVRx          GPU relative performance: ... Rank=5 Node=n1 Score=0.62   and warnings

A score is the speed beside the fastest GPU's. Power is in milliwatts, whatever its unit says
(torch.cuda.power_draw). A sensor is told where the slowest GPU has its worst value: the lowest
clock, the highest temperature, the lowest power.

Sources: NVIDIA/Megatron-LM d98e8a6 megatron/core/utils.py (StragglerDetector.report);
mosaicml/composer #3342 (GlobalStragglerDetector); NVIDIA/nvidia-resiliency-ext d8686d9
ptl_resiliency/straggler_det_callback.py, attribution/straggler/reporting.py;
NVIDIA-NeMo/Megatron-Bridge 067f987 src/megatron/bridge/training/nvrx_straggler.py.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from diagnosis.slow.model import SLOW_SCORE, Straggler

NAMES = {
    **{"Rtt": "time", "RoundTripTime": "time", "Pwr": "watt", "Power": "watt"},
    **{"Tmp": "celsius", "Temp": "celsius", "Clk": "clock", "Clock": "clock"},
}
"""What detectors call what they measure."""

MILLI = 10_000
"""Above so many watts a power is in milliwatts."""

_VALUE = re.compile(
    rf"M(n|in|x|ax)({'|'.join(NAMES)})/(?:Rnk|Rank): ?"
    r"(\d{1,12}(?:\.\d{1,6})?)[a-zA-Z]{0,3}/(\d{1,7})"
)
_SCORE = re.compile(r"Rank=(\d{1,7}) Node=(\S{1,253}) Score=(\d(?:\.\d{1,9})?)")
_NAMED = re.compile(r"StragglerId\(rank=(\d{1,7}), node='([^']{1,253})'\)")
_RELATIVE, _INDIVIDUAL = "GPU relative performance", "GPU individual performance"
_WARNS, _DROPPED = "Some GPUs have worse relative performance", "Some GPUs performance dropped"
MARKS = (b"Rtt/Rnk", b"RoundTripTime/Rank", b" Score=", b"StragglerId(rank=")

MOST_REPORTS = 100_000

Ends = dict[str, tuple[float, int]]
"""Values with the rank that has them, by "min time", "max clock" ..."""


@dataclass
class DetectorReading:
    """A reading of lines as they come."""

    ends: list[Ends] = field(default_factory=list)
    scores: list[dict[int, float | None]] = field(default_factory=list)
    hosts: dict[int, str] = field(default_factory=dict)
    _is_relative: bool = False

    def read(self, line: str) -> bool:
        """Reads a line; whether it is one of a detector's."""
        found = _VALUE.findall(line)
        for end, name, value, rank in found:
            self._end(
                f"{'min' if end in ('n', 'in') else 'max'} {NAMES[name]}", float(value), int(rank)
            )
        return bool(found) or self._score(line)

    def _end(self, name: str, value: float, rank: int) -> None:
        if not self.ends or name in self.ends[-1]:
            self.ends = [*self.ends[-MOST_REPORTS + 1 :], {}]
        self.ends[-1][name] = (value, rank)

    def _score(self, line: str) -> bool:
        if _RELATIVE in line or _WARNS in line:
            own = {int(rank): None for rank, _ in _NAMED.findall(line)}
            is_warned = bool(
                self.scores and not any(self.scores[-1].values()) and _WARNS not in line
            )
            if not is_warned:  # a warning stands before its report
                self.scores = [*self.scores[-MOST_REPORTS + 1 :], {**own}]
            self._is_relative = True
        elif _INDIVIDUAL in line or _DROPPED in line:
            self._is_relative = False
        elif match := _SCORE.search(line):
            self.hosts[int(match[1])] = match[2]
            if self._is_relative:
                self.scores[-1][int(match[1])] = float(match[3])
        else:
            return False
        self.hosts.update((int(rank), host) for rank, host in _NAMED.findall(line))
        return True

    def straggler(self) -> Straggler | None:
        """Whom the reports name slowest most often."""
        return self._by_time() or self._by_score()

    def _by_time(self) -> Straggler | None:
        slowest = [one["max time"] for one in self.ends if "max time" in one]
        if not slowest:
            return None
        rank, times = Counter(rank for _, rank in slowest).most_common(1)[0]
        slow = float(np.median([ms for ms, one in slowest if one == rank]))
        fastest = [one["min time"][0] for one in self.ends if "min time" in one]
        fast = float(np.median(fastest)) if fastest else slow
        watts = self._sensor(rank, "min watt", "max watt")
        if watts and watts[1] > MILLI:
            watts = (watts[0] / 1000, watts[1] / 1000)
        return Straggler(
            *(rank, times, len(slowest), slow * 1000, fast * 1000),
            clock=self._sensor(rank, "min clock", "max clock"),
            celsius=self._sensor(rank, "max celsius", "min celsius"),
            watts=watts,
        )

    def _sensor(self, rank: int, worst: str, best: str) -> tuple[float, float] | None:
        """The medians of a rank's worst reading and of the best one, where it is the worst of all
        in most of the reports that have it."""
        told = [one for one in self.ends if worst in one and best in one]
        own = [one for one in told if one[worst][1] == rank and one[worst][0] != one[best][0]]
        if 2 * len(own) <= len(told):
            return None
        low, high = (float(np.median([one[end][0] for one in own])) for end in (worst, best))
        return low, high

    def _by_score(self) -> Straggler | None:
        reports = [one for one in self.scores if one]
        if not reports:
            return None
        slow = Counter(rank for one in reports for rank in _below(one))
        many = [rank for rank, times in slow.items() if 2 * times > len(reports)]
        lowest = Counter(min(one, key=lambda rank: one[rank] or 0.0) for one in reports)
        rank = min(many, key=lambda one: (-slow[one], one)) if many else lowest.most_common(1)[0][0]
        times = slow[rank] if many else lowest[rank]
        known = [one[rank] for one in reports if one.get(rank)]
        score = float(np.median([one for one in known if one])) if known else None
        return Straggler(
            *(rank, times, len(reports), 0.0, 0.0),
            score=SLOW_SCORE if score is None else score,
            ranks=tuple(sorted(many)),
            host=self.hosts.get(rank, ""),
        )


def _below(scores: Mapping[int, float | None]) -> list[int]:
    """The ranks of a report that the detector calls stragglers."""
    return [rank for rank, score in scores.items() if score is None or score < SLOW_SCORE]
