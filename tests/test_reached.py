"""What collectives inside a domain really take, held against measured ones."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit_collectives import NOW, errors, rows
from training.clusters import CLUSTERS
from training.traffic.reached import collective_seconds

MEASURED = rows()


def test_the_law_is_as_near_to_the_measured_ones_as_it_says():
    off = abs(np.expm1(errors(MEASURED, np.array(NOW))))
    assert len(MEASURED) == 609
    assert np.median(off) < 0.12
    assert np.quantile(off, 0.9) < 0.37


def bus(name: str, operation: str, members: int, size: float = 2.0**29) -> float:
    sent = (2 if operation == "all_reduce" else 1) * (members - 1) / members * size
    seconds = collective_seconds(CLUSTERS[name], operation, members, sent)
    assert seconds is not None
    return sent / seconds / 1e9


# all-reduce of 512 MiB among 2, 4 and 8 GPUs, GB/s on the bus (ai-dynamo/aiconfigurator@095f58a51)
@pytest.mark.parametrize(
    ("name", "measured"),
    [
        ("dgx-a100", (193, 217, 222)),
        ("dgx-h100", (318, 350, 445)),
        ("dgx-b200", (534, 634, 704)),
        ("dgx-b300", (544, 638, 704)),
    ],
)
def test_large_all_reduces_reach_about_what_was_measured(name, measured):
    found = [bus(name, "all_reduce", members) for members in (2, 4, 8)]
    assert found == pytest.approx(list(measured), rel=0.16)


def test_switches_sum_for_eight_and_not_for_two_nor_on_a100():
    assert bus("dgx-h100", "all_reduce", 8) > 1.2 * bus("dgx-h100", "all_reduce", 4)
    assert bus("dgx-h100", "all_gather", 8) < 1.1 * bus("dgx-h100", "all_gather", 4)
    assert bus("dgx-a100", "all_reduce", 8) < 1.1 * bus("dgx-a100", "all_reduce", 4)


def test_two_gpus_of_a_mesh_are_six_times_slower_than_eight():
    eight, two = (bus("mi300x", "all_reduce", n, 2.0**32) for n in (8, 2))
    assert (two, eight) == (pytest.approx(47.7, rel=0.06), pytest.approx(312.9, rel=0.1))


def test_small_messages_are_latency():
    one, other = (collective_seconds(CLUSTERS["dgx-h100"], "all_reduce", 8, n) for n in (1e3, 2e3))
    assert one == pytest.approx(other, rel=0.05)


def test_pcie_and_a_single_rank_are_not_told():
    assert collective_seconds(CLUSTERS["l40s"], "all_reduce", 8, 1e9) is None
    assert collective_seconds(CLUSTERS["dgx-h100"], "all_reduce", 1, 1e9) is None
