"""What collectives of a group inside a domain really take, by a law fitted to measured ones.

    t = start + by_member (n - 1) + B / v + ramp sqrt(start B / v)
    v = share of what n members reach on the machine's fabric (training.machine)

B: bytes that one rank sends. The last term is of messages of middle size, neither latency nor
bandwidth. share is of rings 0.77, of all-to-alls 0.75; an all-reduce of eight and more members
behind an NVSwitch that sums (NVLS, from NVLink 4 on) reaches 0.99 of the wire: 2 or 4 members use
the ring, and so do all-gather and reduce-scatter.

Fitted to 609 measured collectives of 16 systems inside NVLink domains and xGMI nodes: error 11 % in
the median, 35 % at the 90th percentile; 12 % with each system left out in turn, 17 % with each
source (`python -m benchmarks.fit_collectives`). 532 of them are by one program, of one process for
all GPUs: with a process for each GPU, small messages take less. Not told: PCIe, whose all-reduce of
8 L40S reaches 1.5 of 31 GB/s, and groups of several domains, which the few sources that there are
(SHARP or not, trees or rings) do not agree on.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from ..machine import GB, SWITCH, Machine

if TYPE_CHECKING:
    from .per_step import Traffic

START, BY_MEMBER = 8.31e-6, 0.849e-6
"""Seconds of a collective, and of each member more."""

RING_SHARE, SUMMED_SHARE, PAIRWISE_SHARE = 0.774, 0.992, 0.750
RAMP = 1.594

NVLS_LEAST, NVLS_LINK = 8, 400 * GB
"""Members, and speed of links one way, from which on NVSwitches sum."""

SLOWEST = 100 * GB
"""Below it links are PCIe or one wire, of which the law does not tell."""


def collective_seconds(machine: Machine, operation: str, members: int, sent: float) -> float | None:
    """Seconds of one collective of a group inside a domain; None where the law does not tell.

    sent: bytes that one rank sends.

    >>> from training.clusters import CLUSTERS
    >>> def bus(name, n, size=2**29):  # of an all-reduce, GB/s
    ...     sent = 2 * (n - 1) / n * size
    ...     return round(sent / collective_seconds(CLUSTERS[name], "all_reduce", n, sent) / 1e9)
    >>> bus("dgx-h100", 2), bus("dgx-h100", 8), bus("mi300x", 8)  # measured: 318, 445, 309
    (310, 403, 317)
    >>> bus("mi300x", 2, 2**32)  # measured: 47.7
    49
    """
    if machine.nvlink < SLOWEST or members < 2:
        return None
    share = RING_SHARE
    if operation == "all_to_all":
        share = PAIRWISE_SHARE
    elif operation == "all_reduce" and sums(machine, members):
        share = SUMMED_SHARE
    wire = sent / (share * machine.inside(members, pairwise=operation == "all_to_all"))
    return START + BY_MEMBER * (members - 1) + wire + RAMP * sqrt(START * wire)


def sums(machine: Machine, members: int) -> bool:
    """Whether switches sum an all-reduce of so many members."""
    is_switched = machine.fabric == SWITCH and machine.nvlink >= NVLS_LINK
    return is_switched and members >= NVLS_LEAST


def reached_seconds(row: Traffic, machine: Machine) -> float | None:
    """Seconds that a step's operations of one kind really take, one after the other; None where the
    law does not tell, and of messages to a single rank."""
    is_inside = row.near == row.size and row.pattern in ("ring", "pairwise")
    if not is_inside or not row.count:
        return None
    one = collective_seconds(machine, row.operation, row.size, row.sent / row.count)
    return None if one is None else row.count * one
