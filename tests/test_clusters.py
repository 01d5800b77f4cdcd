"""Clusters: the published numbers, and the traps in them."""

from __future__ import annotations

import pytest

from training.clusters import CLUSTERS, GB, GIB

# one way: what a ring sends over; as vendors print it: both ways
PUBLISHED = """
cluster        nvlink  printed   nic  memory  peak   fp8    fp4   hbm
dgx-a100          300      600    25      80   312     0      0  2000
dgx-a100-40gb     300      600    25      40   312     0      0  1555
dgx-h100          450      900    50      80   989  1979      0  3350
dgx-h200          450      900    50     141   989  1979      0  4800
hgx-h800          200      400    50      80   989  1979      0  3350
dgx-b200          900     1800    50     180  2250  4500   9000  8000
dgx-b300          900     1800   100     288  2250  4500  12600  8000
gb200-nvl72       900     1800    50     186  2450  4900   9800  8000
gb300-nvl72       900     1800   100     288  2450  4900  14700  8000
"""
ROWS = {row[0]: tuple(map(int, row[1:])) for row in map(str.split, PUBLISHED.split("\n")[2:-1])}


@pytest.mark.parametrize("name", CLUSTERS)
def test_link_speeds_are_one_way_and_in_bytes_per_second(name):
    nvlink, printed, nic, memory, peak, fp8, fp4, hbm = ROWS[name]
    one = CLUSTERS[name]
    assert one.nvlink == nvlink * GB == printed * GB / 2
    assert (one.nic, one.memory, one.peak) == (nic * GB, memory * GIB, peak * 1e12)
    assert (one.fp8, one.fp4, one.hbm) == (fp8 * 1e12, fp4 * 1e12, hbm * GB)


def test_every_cluster_of_the_table_is_there():
    assert list(CLUSTERS) == list(ROWS)


def test_a_network_card_has_as_many_bytes_as_its_bits_say():
    assert CLUSTERS["dgx-a100"].nic == 200e9 / 8
    assert CLUSTERS["dgx-h100"].nic == 400e9 / 8


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_cluster_has_a_source(name):
    assert CLUSTERS[name].source


def test_a_host_is_behind_pcie_or_c2c_and_grows_with_the_nodes_of_a_rack():
    link = {name: one.link / GB for name, one in CLUSTERS.items()}
    assert set(link.values()) == {31, 63, 225}  # PCIe 4 and 5 x16; half of NVLink-C2C
    assert {name for name, one in link.items() if one == 31} == {"dgx-a100", "dgx-a100-40gb"}
    assert CLUSTERS["dgx-h100"].host_of(8) == 2000 * GB
    assert CLUSTERS["gb200-nvl72"].host_of(72) == 18 * 960 * GB


def test_nvlink_joins_a_node_or_a_rack_of_nodes():
    domains = {name: one.domain_of(4) for name, one in CLUSTERS.items()}
    racks = {"gb200-nvl72", "gb300-nvl72"}
    assert domains == {name: 72 if name in racks else 4 for name in CLUSTERS}


def test_a_job_of_several_racks_takes_64_gpus_of_each():
    one = CLUSTERS["gb300-nvl72"]
    assert [one.domain_of_job(gpus, 4) for gpus in (64, 72, 128, 256)] == [64, 72, 64, 64]
    assert CLUSTERS["dgx-h100"].domain_of_job(1024, 8) == 8


@pytest.mark.parametrize("name", CLUSTERS)
def test_products_reach_less_than_the_peak(name):
    assert 0.7 < CLUSTERS[name].reached < 0.9
