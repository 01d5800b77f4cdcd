"""Clusters: the published numbers, and the traps in them."""

from __future__ import annotations

import pytest

from training.clusters import CLUSTERS, GB, GIB

# one way: what a ring sends over; as vendors print it: both ways
PUBLISHED = """
cluster       nvlink  printed   nic  memory  peak
dgx-a100         300      600    25      80   312
dgx-h100         450      900    50      80   989
hgx-h800         200      400    50      80   989
gb200-nvl72      900     1800    50     186  2500
"""
ROWS = {row[0]: tuple(map(int, row[1:])) for row in map(str.split, PUBLISHED.split("\n")[2:-1])}


@pytest.mark.parametrize("name", CLUSTERS)
def test_link_speeds_are_one_way_and_in_bytes_per_second(name):
    nvlink, printed, nic, memory, peak = ROWS[name]
    one = CLUSTERS[name]
    assert one.nvlink == nvlink * GB == printed * GB / 2
    assert (one.nic, one.memory, one.peak) == (nic * GB, memory * GIB, peak * 1e12)


def test_every_cluster_of_the_table_is_there():
    assert list(CLUSTERS) == list(ROWS)


def test_a_network_card_has_as_many_bytes_as_its_bits_say():
    assert CLUSTERS["dgx-a100"].nic == 200e9 / 8
    assert CLUSTERS["dgx-h100"].nic == 400e9 / 8


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_cluster_has_a_source(name):
    assert CLUSTERS[name].source


def test_nvlink_joins_a_node_or_a_rack_of_nodes():
    domains = {name: one.domain_of(4) for name, one in CLUSTERS.items()}
    assert domains == {"dgx-a100": 4, "dgx-h100": 4, "hgx-h800": 4, "gb200-nvl72": 72}
