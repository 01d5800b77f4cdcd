"""The parts of a measured step, each beside the estimated one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from diagnosis.slow import Slowness
from groups.group_names import main_axis
from training.estimate import Estimate

LEAST = 0.001
"""The share of a step below which a part is not shown."""


@dataclass(frozen=True)
class StepPart:
    """One part of a step in seconds, with the time of it spent waiting, and in addition the time
    hidden by computation; measured, estimated: None if that side does not have the part."""

    name: str
    measured: float | None
    waited: float = 0.0
    hidden: float = 0.0
    estimated: float | None = None

    @property
    def apart(self) -> float:
        """Measured minus estimated; 0 if one side is missing."""
        if self.measured is None or self.estimated is None:
            return 0.0
        return self.measured - self.estimated


def measured_parts(slow: Slowness) -> dict[str, StepPart]:
    """Means over the ranks; communication as far as it is exposed, waits of a pipeline's groups as
    its bubble. If only the CPU was recorded, computation is all own work."""
    ranks = slow.ranks
    if not ranks:
        return {}
    steps = max(1, len(slow.steps))

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(ranks) / 1e6

    own = mean(sum(one.own_us) / steps for one in ranks)
    data, optimizer = mean(one.data_us for one in ranks), mean(one.optimizer_us for one in ranks)
    computed = [one.computation_us for one in ranks if one.computation_us is not None]
    is_gpu = len(computed) == len(ranks)
    compute = mean(computed) if is_gpu else max(0.0, own - data - optimizer)
    parts = {"compute": StepPart("compute", compute)}
    sums: dict[str, list[float]] = {}
    for one in ranks:
        for kind in one.kinds:
            times = sums.setdefault(main_axis(kind.kind), [0.0, 0.0, 0.0])
            for place, us in enumerate((kind.exposed_us, kind.waited_us, kind.hidden_us)):
                times[place] += us / len(ranks) / 1e6
    if "pp" in sums:
        exposed, waited, hidden = sums.pop("pp")
        parts["bubble"] = StepPart("bubble", waited, waited)
        parts["pp"] = StepPart("pp", max(0.0, exposed - waited), 0.0, hidden)
    for name, (exposed, waited, hidden) in sums.items():
        parts[name or "unknown"] = StepPart(name or "unknown", exposed, waited, hidden)
    parts["optimizer"] = StepPart("optimizer", optimizer or None)
    parts["data"] = StepPart("data", data or None)
    if is_gpu:
        parts["own"] = StepPart("own", max(0.0, own - compute - data))
    return parts


def parts_of(slow: Slowness, estimate: Estimate | None) -> list[StepPart]:
    """Measured beside estimated parts; those of the estimate in its order, the rest after them."""
    measured = measured_parts(slow)
    planned = estimate.parts if estimate else {}
    names = dict.fromkeys([*planned, *measured])
    rows = []
    for name in names:
        one = measured.get(name, StepPart(name, None))
        rows.append(StepPart(name, one.measured, one.waited, one.hidden, planned.get(name)))
    most = max(slow.step_us / 1e6, estimate.seconds if estimate else 0.0)
    return [
        one
        for one in rows
        if max(one.measured or 0.0, one.estimated or 0.0, one.hidden) >= LEAST * most
    ]


def most_apart(parts: Iterable[StepPart]) -> StepPart | None:
    """The part with the largest difference; None if no part is on both sides."""
    both = [one for one in parts if one.measured is not None and one.estimated is not None]
    return max(both, key=lambda one: abs(one.apart), default=None)


def is_gpu(slow: Slowness) -> bool:
    """Whether the traces hold kernels: without any, nothing shows on what was computed."""
    return all(one.computation_us is not None for one in slow.ranks)
