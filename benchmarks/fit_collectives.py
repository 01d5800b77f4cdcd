"""Fit the laws of training.traffic.reached: `python -m benchmarks.fit_collectives`.

Of each law (inside a domain, on PCIe, of several domains) it prints the constants, the error on
all, and the errors with each system, and with each source, left out of the fit in turn. An error
counts by its square up to NEAR, by its size beyond.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from training.clusters import CLUSTERS
from training.machine import GB, Machine
from training.traffic.reached import (
    BY_MEMBER,
    FAR_BY_MEMBER,
    FAR_RAMP,
    FAR_SHARE,
    FAR_START,
    PAIRWISE_SHARE,
    PCIE_SHARE,
    RAMP,
    RING_SHARE,
    SLOWEST,
    START,
    SUMMED_SHARE,
    sums,
)

DATA = Path(__file__).parent.parent / "tests" / "data" / "collectives.csv"
OTHERS = {"arc-b60": Machine("Arc Pro B60", nvlink=31.5 * GB, nic=0.0, memory=0.0, peak=0.0)}
"""Machines of the data that no row describes: PCIe 5 x8."""

RING, SUMMED, PAIRWISE = 2, 3, 4
"""Places of the shares among the constants of the law inside a domain."""

NEAR, STEPS = 0.1, 60


@dataclass(frozen=True)
class MeasuredCollective:
    """A row of the data. sent: bytes that a rank sends; near: members in a domain; wire: seconds at
    link speed; on_bus: what so many reach on this very machine's PCIe, 0 if nobody says."""

    system: str
    source: str
    share: int
    members: int
    near: int
    sent: float
    wire: float
    seconds: float
    is_pcie: bool
    on_bus: float


def rows() -> list[MeasuredCollective]:
    with DATA.open(encoding="utf-8", newline="") as file:
        return [_row(row) for row in csv.DictReader(file)]


def _row(row: dict[str, str]) -> MeasuredCollective:
    machine = CLUSTERS.get(row["machine"]) or OTHERS[row["machine"]]
    members, near = int(row["gpus"]), int(row["domain"])
    times, share = (members - 1) / members, PAIRWISE if row["operation"] == "all_to_all" else RING
    if row["operation"] == "all_reduce":
        times, share = 2 * times, SUMMED if sums(machine, members) else RING
    sent = times * float(row["bytes"])
    wire = sent / machine.inside(near)
    if near < members:
        wire = max(wire, sent / near / machine.nic)
    return MeasuredCollective(
        row["system"],
        row["source"].split("@")[0],
        *(share, members, near, sent, wire),
        seconds=sent / (float(row["bus_gb_per_s"]) * 1e9),
        is_pcie=machine.nvlink < SLOWEST,
        on_bus=dict(machine.on_bus).get(members, 0.0),
    )


def _columns(several: Sequence[MeasuredCollective], *names: str) -> list[np.ndarray]:
    return [np.array([getattr(row, name) for row in several], dtype=float) for name in names]


def inside(several: Sequence[MeasuredCollective], constants: np.ndarray) -> np.ndarray:
    """Seconds of collectives inside a domain."""
    wire, members = _columns(several, "wire", "members")
    wire = wire / constants[[row.share for row in several]]
    start = constants[0]
    return start + constants[1] * (members - 1) + wire + constants[5] * np.sqrt(start * wire)


def on_pcie(several: Sequence[MeasuredCollective], constants: np.ndarray) -> np.ndarray:
    """Seconds of collectives on PCIe: of two GPUs at a share that is fitted, of more at what was
    measured of their machine; start and ramp are those of other links."""
    wire, members, of_machine = _columns(several, "wire", "members", "on_bus")
    wire = wire / np.where(members == 2, constants[0], of_machine)
    return START + BY_MEMBER * (members - 1) + wire + RAMP * np.sqrt(START * wire)


def far(several: Sequence[MeasuredCollective], constants: np.ndarray) -> np.ndarray:
    """Seconds of all-reduces over several domains."""
    wire, members = _columns(several, "wire", "members")
    start, wire = constants[0] + constants[1] * (members - 1), wire / constants[2]
    return np.asarray(start + wire + constants[3] * np.sqrt(start * wire))


Seconds = Callable[[Sequence[MeasuredCollective], np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Law:
    """A law: which rows it is of, its seconds, where its fit begins, and its constants today."""

    name: str
    holds: Callable[[MeasuredCollective], bool]
    seconds: Seconds
    first: tuple[float, ...]
    now: tuple[float, ...]

    def rows(self) -> list[MeasuredCollective]:
        return [row for row in rows() if self.holds(row)]

    def errors(
        self, several: Sequence[MeasuredCollective], constants: Sequence[float] | np.ndarray
    ) -> np.ndarray:
        """log(estimated / measured)."""
        (measured,) = _columns(several, "seconds")
        return np.asarray(np.log(self.seconds(several, np.array(constants)) / measured))

    def fit(self, several: Sequence[MeasuredCollective]) -> np.ndarray:
        """The constants, in the order of ``now``."""
        moved = np.log(np.array(self.first))
        for _ in range(STEPS):
            found = self.errors(several, np.exp(moved))
            slope = np.empty((len(found), len(moved)))
            for at in range(len(moved)):
                beside = moved.copy()
                beside[at] += 1e-4
                slope[:, at] = (self.errors(several, np.exp(beside)) - found) / 1e-4
            weights = 1 / np.maximum(abs(found), NEAR)
            square = slope.T @ (weights[:, None] * slope) + 1e-3 * np.eye(len(moved))
            moved = moved - 0.7 * np.linalg.solve(square, slope.T @ (weights * found))
        return np.exp(moved)

    def held_out(
        self, several: Sequence[MeasuredCollective], key: Callable[[MeasuredCollective], str]
    ) -> np.ndarray:
        found = np.zeros(len(several))
        for name in sorted({key(row) for row in several}):
            out = np.array([key(row) == name for row in several])
            rest = [row for row in several if key(row) != name]
            if not rest:
                return np.array([np.nan])
            left = [row for row in several if key(row) == name]
            found[out] = self.errors(left, self.fit(rest))
        return found


LAWS = (
    Law(
        "inside a domain",
        lambda row: not row.is_pcie and row.near == row.members,
        inside,
        (15e-6, 1e-6, 0.78, 1.05, 0.8, 0.5),
        (START, BY_MEMBER, RING_SHARE, SUMMED_SHARE, PAIRWISE_SHARE, RAMP),
    ),
    Law(
        "on PCIe, of two GPUs",
        lambda row: row.is_pcie and row.members == 2,
        on_pcie,
        (0.6,),
        (PCIE_SHARE,),
    ),
    Law(
        "over several domains",
        lambda row: row.near < row.members,
        far,
        (50e-6, 5e-6, 0.9, 0.5),
        (FAR_START, FAR_BY_MEMBER, FAR_SHARE, FAR_RAMP),
    ),
)


def told(found: np.ndarray) -> str:
    if np.isnan(found).any():
        return "there is one only"
    off = abs(np.expm1(found))
    return f"{100 * np.median(off):.0f} % in the median, {100 * np.quantile(off, 0.9):.0f} % at p90"


def main() -> None:
    for law in LAWS:
        several = law.rows()
        systems, sources = ({getattr(row, key) for row in several} for key in ("system", "source"))
        print(f"{law.name}: {len(several)} rows, {len(systems)} systems, {len(sources)} sources")
        print("  constants", *(f"{value:.4g}" for value in law.fit(several)))
        print("  now      ", *(f"{value:.4g}" for value in law.now))
        print("  on all:", told(law.errors(several, law.now)))
        print("  a system left out:", told(law.held_out(several, lambda row: row.system)))
        print("  a source left out:", told(law.held_out(several, lambda row: row.source)))
    crowded = [row for row in rows() if row.is_pcie and row.on_bus]
    found = np.log(on_pcie(crowded, np.array([PCIE_SHARE])) / _columns(crowded, "seconds")[0])
    print(f"of more on PCIe, by their machine's own figure ({len(crowded)} rows):", told(found))


if __name__ == "__main__":
    main()
