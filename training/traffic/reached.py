"""What collectives of a group really take, by laws fitted to measured ones.

    inside a domain    t = start + by_member (n - 1) + B / v + ramp sqrt(start B / v)
    of several         t = far_start + far_by_member (n - 1) + w / far_share
                           + far_ramp sqrt((far_start + far_by_member (n - 1)) w / far_share)

n: members; B: bytes that one rank sends; v: share of what n members reach on the machine's fabric
(training.machine); w: seconds at link speed (training.traffic.per_step), of a ring that enters and
leaves each domain through as many cards as it has members there. The last term is of messages of
middle size, neither latency nor bandwidth.

Inside, share is of rings 0.77, of all-to-alls 0.75; an all-reduce of eight and more members behind
an NVSwitch that sums (NVLS, from NVLink 4 on) reaches 0.99 of the wire: 2 or 4 members use the
ring, and so do all-gather and reduce-scatter. On PCIe two GPUs reach 0.68 of their link; of more,
what they reach depends on how the host joins them: of 4 GPUs 0.16 of it (L40S) to 0.6, of 8 0.05
(L40S) to 0.4 (RTX PRO 6000). So that is told of machines of which it was measured
(`Machine.on_bus`), and of no others.

Of several domains only all-reduces were measured, of groups with four members and more in each: the
other operations, and rings of one card a node, are not told.

Errors by `python -m benchmarks.fit_collectives`, median and 90th percentile:

                                                 all           a system left out   a source left out
    domains, 609 rows of 16 systems, 6 sources   11 and 35 %   12 and 37 %         17 and 67 %
    several, 29 rows of 7 systems, 3 sources     6 and 22 %    9 and 41 %          16 and 72 %
    two on PCIe, 77 rows of 3, one source        19 and 50 %   20 and 53 %         -
    more on PCIe, 112 rows of 2, one source      9 and 43 %    (their own figure)

Of several domains, 1,440 GPUs of twenty racks reached half of what two racks do, unexplained.
532 rows inside domains are by one program, of one process for all GPUs: with a process for each
GPU, small messages take less.
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

PCIE_SHARE = 0.68
"""Share of a PCIe link that two GPUs reach."""

FAR_START, FAR_BY_MEMBER, FAR_SHARE, FAR_RAMP = 214e-6, 3.79e-6, 1.064, 0.629
"""The same of an all-reduce over several domains; its share is of the time at link speed."""

NVLS_LEAST, NVLS_LINK = 8, 400 * GB
"""Members, and speed of links one way, from which on NVSwitches sum."""

SLOWEST = 100 * GB
"""Below it links are PCIe or one wire, shared with others."""

FAR_LEAST = 4
"""Members in a domain from which on groups of several domains were measured."""


def collective_seconds(machine: Machine, operation: str, members: int, sent: float) -> float | None:
    """Seconds of one collective of a group inside a domain; None where the law does not tell.

    sent: bytes that one rank sends.

    >>> from training.clusters import CLUSTERS
    >>> def bus(name, n, size=2**29):  # of an all-reduce, GB/s
    ...     sent = 2 * (n - 1) / n * size
    ...     return round(sent / collective_seconds(CLUSTERS[name], "all_reduce", n, sent) / 1e9)
    >>> bus("dgx-h100", 2), bus("dgx-h100", 8), bus("mi300x", 8)  # measured: 318, 445, 309
    (310, 403, 317)
    >>> bus("mi300x", 2, 2**32), bus("l40s", 2)  # measured: 47.7, 20.1
    (49, 20)
    """
    share = share_of(machine, operation, members)
    if not share:
        return None
    wire = sent / (share * machine.inside(members, pairwise=operation == "all_to_all"))
    return START + BY_MEMBER * (members - 1) + wire + RAMP * sqrt(START * wire)


def share_of(machine: Machine, operation: str, members: int) -> float:
    """The share of a domain's links that a group reaches; 0 where nobody measured it.

    >>> from training.clusters import CLUSTERS
    >>> [share_of(CLUSTERS["l40s"], "all_gather", n) for n in (1, 2, 4, 8, 16)]
    [0.0, 0.68, 0.165, 0.048, 0.0]
    """
    if members < 2 or not machine.nvlink:
        return 0.0
    if machine.nvlink < SLOWEST:
        return {2: PCIE_SHARE, **dict(machine.on_bus)}.get(members, 0.0)
    if operation == "all_to_all":
        return PAIRWISE_SHARE
    return SUMMED_SHARE if operation == "all_reduce" and sums(machine, members) else RING_SHARE


def sums(machine: Machine, members: int) -> bool:
    """Whether switches sum an all-reduce of so many members."""
    is_switched = machine.fabric == SWITCH and machine.nvlink >= NVLS_LINK
    return is_switched and members >= NVLS_LEAST


def far_seconds(members: int, wire: float) -> float:
    """Seconds of an all-reduce over several domains that takes ``wire`` seconds at link speed.

    >>> sent = 2 * 31 / 32 * 2**32  # 4 GiB of 4 nodes with 8 GPUs and cards of 50 GB/s
    >>> round(sent / far_seconds(32, sent / 8 / 50e9) / 1e9)  # measured: 377 and 365 GB/s
    387
    """
    start, wire = FAR_START + FAR_BY_MEMBER * (members - 1), wire / FAR_SHARE
    return start + wire + FAR_RAMP * sqrt(start * wire)


def reached_seconds(row: Traffic, machine: Machine) -> float | None:
    """Seconds that a step's operations of one kind really take, one after the other; None where
    nobody measured such ones, and of messages to a single rank."""
    if not row.count or row.pattern not in ("ring", "pairwise"):
        return None
    if row.near == row.size:
        one = collective_seconds(machine, row.operation, row.size, row.sent / row.count)
    elif row.operation == "all_reduce" and row.near >= FAR_LEAST and row.seconds is not None:
        one = far_seconds(row.size, row.seconds / row.count)
    else:
        one = None
    return None if one is None else row.count * one
