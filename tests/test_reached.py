"""What collectives really take, held against measured ones."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fit_collectives import LAWS, on_pcie, rows
from groups.megatron import groupings
from training.clusters import CLUSTERS
from training.models import MODELS
from training.recipe import Training
from training.split import Split
from training.traffic.per_step import traffic
from training.traffic.reached import FAR_LEAST, PCIE_SHARE, collective_seconds, reached_seconds


@pytest.mark.parametrize(
    ("law", "number", "median", "tenth"),
    [(LAWS[0], 609, 0.12, 0.37), (LAWS[1], 77, 0.2, 0.52), (LAWS[2], 29, 0.065, 0.24)],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_law_is_as_near_to_the_measured_ones_as_it_says(law, number, median, tenth):
    several = law.rows()
    off = abs(np.expm1(law.errors(several, law.now)))
    assert len(several) == number
    assert np.median(off) < median
    assert np.quantile(off, 0.9) < tenth


def test_more_than_two_on_pcie_are_told_by_their_own_machine_only():
    crowded = [row for row in rows() if row.is_pcie and row.on_bus]
    seconds = on_pcie(crowded, np.array([PCIE_SHARE]))
    off = abs(seconds / [row.seconds for row in crowded] - 1)
    assert {row.system.split()[0] for row in crowded} == {"L40S", "RTX"}
    assert np.median(off) < 0.1
    for name, members in (("l4", 4), ("l40s", 3), ("l40s", 16)):
        assert collective_seconds(CLUSTERS[name], "all_reduce", members, 1e9) is None


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


def test_a_single_rank_is_not_told():
    assert collective_seconds(CLUSTERS["dgx-h100"], "all_reduce", 1, 1e9) is None


def sent_by(kind: str, split: Split, training: Training, gpus_per_node: int = 8):
    """The rows of a kind of a job on two nodes and more, by operation."""
    every = groupings(64, tp=split.tp, pp=split.pp)
    rows = traffic(
        MODELS["llama3-8b"].model, split, training, every, CLUSTERS["dgx-h100"], gpus_per_node
    )
    return {row.operation: row for row in rows if row.kind == kind}


def test_of_several_domains_all_reduces_are_told_and_nothing_else():
    plain, sharded = Training(zero=0), Training(zero=1)
    summed = sent_by("dp-cp", Split(tp=2, dp=32), plain)["all_reduce"]
    assert (summed.near, summed.size) == (FAR_LEAST, 32)
    assert reached_seconds(summed, CLUSTERS["dgx-h100"]) > 0.9 * summed.seconds
    of_shards = sent_by("dp-cp", Split(tp=2, dp=32), sharded)
    assert of_shards.keys() >= {"reduce_scatter", "all_gather"}
    for row in of_shards.values():
        assert row.operation == "all_reduce" or reached_seconds(row, CLUSTERS["dgx-h100"]) is None


def test_rings_of_one_card_a_node_were_not_measured():
    summed = sent_by("dp-cp", Split(tp=8, dp=8), Training(zero=0))["all_reduce"]
    assert (summed.near, summed.size) == (1, 8)
    assert reached_seconds(summed, CLUSTERS["dgx-h100"]) is None
