"""Megatron's timers of all ranks in its log, and the straggler detectors' lines between them.

``--timing-log-level 2 --timing-log-option all`` prints for each timer a line a rank; the smallest
and largest time alone (``minmax``, the default) tell no rank. A rank's own time is that of its
``forward-compute`` and ``backward-compute``, with the tensor parallel collectives inside of them:
all ranks of a tp group look alike. Straggler detectors stand in `detectors`.

Source: NVIDIA/Megatron-LM core 0.16.1, megatron/core/timers.py (_get_all_ranks_time_string) and
utils.py (StragglerDetector.report); names of timers: pipeline_parallel/schedules.py,
p2p_communication.py, megatron/training/training.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from diagnosis.slow.model import KindTime, RankTime, Slowness

from ..errors import refusal
from .detectors import MARKS, DetectorReading

MOST_RANKS = 65_536
MOST_INTERVALS = 32
MOST_VALUES = 8_000_000
LONGEST_LINE = 65_536

_HEAD = "times across ranks (ms):"
_SMALLEST = re.compile(
    r"\((?:min, )?max\) time across ranks \(ms\):|^\s*max time across ranks \(ms\):"
)
_TIMER = re.compile(r"\s{0,8}([a-z][a-z0-9-]{1,60}):\s*$")
_RANK = re.compile(r"\s{0,12}rank\s{1,8}(\d{1,7}): (\d{1,12}\.\d{1,6})\s*$")
COMPUTE = ("forward-compute", "backward-compute")
GRADS = ("all-grads-sync", "params-all-gather")


@dataclass
class TimerReading:
    """A reading of a log's lines as they come."""

    intervals: list[dict[str, dict[int, float]]] = field(default_factory=list)
    detector: DetectorReading = field(default_factory=DetectorReading)
    only_smallest: bool = False
    _timer: str = ""
    _values: int = 0

    def read(self, lines: Iterable[str]) -> None:
        for line in lines:
            if len(line) <= LONGEST_LINE:
                self._line(line.rstrip())

    def _line(self, line: str) -> None:
        if self.detector.read(line):
            return
        if line.endswith(_HEAD) and "max" not in line:
            self.intervals = [*self.intervals[-MOST_INTERVALS + 1 :], {}]
            self._timer = ""
        elif _SMALLEST.search(line):
            self.only_smallest = True
        elif self.intervals and (timer := _TIMER.search(line)):
            self._timer = timer[1]
        elif self._timer and (value := _RANK.search(line)):
            rank = int(value[1])
            if rank >= MOST_RANKS or self._values > MOST_VALUES:
                raise refusal("timers-too-many", "trace", limit=MOST_RANKS)
            self._values += 1
            self.intervals[-1].setdefault(self._timer, {})[rank] = float(value[2]) * 1000
        else:
            self._timer = ""

    def slowness(self) -> Slowness:
        """Errors: LayoutError ``no-timers``, ``timers-of-no-rank``, ``timers-level``."""
        straggler = self.detector.straggler()
        whole = [one for one in self.intervals if "forward-compute" in one]
        if not whole and straggler is None:
            if self.intervals:
                raise refusal("timers-level", "trace")
            if self.only_smallest:
                raise refusal("timers-of-no-rank", "trace")
            raise refusal("no-timers", "trace")
        common = [{*one["forward-compute"]} for one in whole]
        ranks = sorted(set.intersection(*common)) if common else []
        return Slowness(
            world=len(ranks) or None,
            steps=tuple(range(len(whole))),
            groups=(),
            ranks=tuple(_time_of(rank, whole) for rank in ranks),
            waits=(),
            chains=(),
            timelines=(),
            calls=0,
            unmatched=0,
            clocks_us=0.0,
            notes=("timers",) if ranks else ("straggler-only",),
            straggler=straggler,
        )


def _time_of(rank: int, whole: list[dict[str, dict[int, float]]]) -> RankTime:
    count = len(whole)

    def mean(*names: str) -> float:
        return sum(one.get(name, {}).get(rank, 0.0) for one in whole for name in names) / count

    own = [sum(one.get(name, {}).get(rank, 0.0) for name in COMPUTE) for one in whole]
    pipeline = [name for one in whole[:1] for name in one if _is_between_stages(name)]
    waited = mean(*pipeline)
    parts = [KindTime("pp", waited, 0.0, waited)] if waited else []
    if grads := mean(*GRADS):
        parts.append(KindTime("dp", grads, 0.0, 0.0))
    whole_us = mean("forward-backward") or sum(own) / count + waited + grads
    return RankTime(
        rank=rank,
        host="",
        step_us=whole_us + mean("optimizer"),
        own_us=tuple(own),
        lost_us=waited,
        cost_us=0.0,
        computation_us=None,
        data_us=mean("batch-generator"),
        optimizer_us=mean("optimizer"),
        kinds=tuple(parts),
    )


def _is_between_stages(timer: str) -> bool:
    return timer.startswith(("forward-", "backward-")) and timer.endswith(("-recv", "-send"))


def is_timers(start: bytes) -> bool:
    """Whether a log's beginning has such lines.

    >>> is_timers(b"times across ranks (ms):")
    True
    """
    return any(mark in start for mark in (b"across ranks (ms):", *MARKS))
