"""Machines: the published numbers, the traps in them, and what follows from a description."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from groups.errors import LayoutError
from training.clusters import CLUSTERS, machine_id, machine_of
from training.machine import GB, GIB, MESH, TORUS, Machine

HARDWARE = Path(__file__).parent / "data" / "hardware.csv"
"""Accelerators with their sources; data/hardware.md says how they were read."""


def rows() -> list[dict[str, str]]:
    with HARDWARE.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["id"])
def test_a_machine_has_the_published_numbers(row):
    one = CLUSTERS[row["id"]]
    found = {
        "bf16": one.peak / 1e12,
        "fp8": one.fp8 / 1e12,
        "fp4": one.fp4 / 1e12,
        "memory_mib": round(one.memory / 2**20),
        "hbm": one.hbm / GB,
        "link": one.nvlink / GB,
        "pair": one.pair / GB,
        "nic_gbit": one.nic * 8 / 1e9,
        "per_node": one.per_node,
    }
    for name, value in found.items():
        if row[name]:  # empty: no source is sure
            assert value == pytest.approx(float(row[name])), name
        elif name in ("bf16", "hbm", "link", "nic_gbit"):
            assert not value, f"{name} is not known"
    assert one.is_sheet == (row["memory"] == "sheet")


def test_every_machine_stands_in_the_table():
    assert set(CLUSTERS) == {row["id"] for row in rows()}


def test_vendors_print_both_ways_and_a_ring_sends_one_way():
    printed = {"dgx-a100": 600, "dgx-h100": 900, "hgx-h800": 400, "dgx-b200": 1800, "mi300x": 896}
    assert {name: CLUSTERS[name].nvlink * 2 / GB for name in printed} == printed


def test_two_gpus_sold_with_288_gb_differ_by_19_gib():
    seen = {name: CLUSTERS[name].memory / GIB for name in ("dgx-b300", "gb300-nvl72", "mi355x")}
    assert {name: round(value, 2) for name, value in seen.items()} == {
        "dgx-b300": 268.59,
        "gb300-nvl72": 277.55,
        "mi355x": 288.0,
    }


def test_programs_see_a_little_less_than_the_driver_prints():
    seen = {name: round(CLUSTERS[name].seen / GIB, 2) for name in CLUSTERS}
    assert seen["dgx-h100"] == 79.18
    assert seen["gb300-nvl72"] == 276.62  # a log of a GB300; of a B300 there is none
    assert seen["dgx-b300"] == pytest.approx(267.7, abs=1)
    assert all(0.98 < one.seen / one.memory < 1 for one in CLUSTERS.values())


@pytest.mark.parametrize("name", CLUSTERS)
def test_every_machine_has_a_source(name):
    assert CLUSTERS[name].source


def test_a_host_is_behind_pcie_or_c2c_and_grows_with_the_nodes_of_a_rack():
    link = {name: one.link / GB for name, one in CLUSTERS.items()}
    assert {link["dgx-a100"], link["dgx-h100"], link["gb200-nvl72"]} == {31, 63, 225}
    assert CLUSTERS["dgx-h100"].host_of(8) == 2000 * GB
    assert CLUSTERS["gb200-nvl72"].host_of(72) == 18 * 960 * GB


def test_nvlink_joins_a_node_or_a_rack_of_nodes():
    domains = {name: CLUSTERS[name].domain_of(4) for name in ("dgx-h100", "gb200-nvl72", "mi300x")}
    assert domains == {"dgx-h100": 4, "gb200-nvl72": 72, "mi300x": 4}


def test_a_job_of_several_racks_takes_64_gpus_of_each():
    one = CLUSTERS["gb300-nvl72"]
    assert [one.domain_of_job(gpus, 4) for gpus in (64, 72, 128, 256)] == [64, 72, 64, 64]
    assert CLUSTERS["dgx-h100"].domain_of_job(1024, 8) == 8


@pytest.mark.parametrize("name", CLUSTERS)
def test_products_reach_less_than_the_peak(name):
    assert 0.5 < CLUSTERS[name].reached < 1


# -- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "id"),
    [
        *(("mi300x", "mi300x"), ("AMD MI300X", "mi300x"), ("NVIDIA H100", "dgx-h100")),
        *(
            ("h100", "dgx-h100"),
            ("B300", "dgx-b300"),
            ("rtx 4090", "rtx-4090"),
            ("TPU v6e", "tpu-v6e"),
        ),
        *(("910B", "ascend-910b"), ("trn2", "trainium2"), ("dgx_h100", "dgx-h100")),
    ],
)
def test_a_machine_goes_by_any_of_its_names(name, id):
    assert machine_id(name) == id


def test_no_name_is_of_two_machines():
    found = [machine_of(one.name).id for one in CLUSTERS.values()]
    assert found == list(CLUSTERS)


def test_an_unknown_name_is_refused_with_the_nearest():
    with pytest.raises(LayoutError) as refused:
        machine_of("mi300")
    assert {"cluster": "mi300x"} in refused.value.alternatives


# -- links ---------------------------------------------------------------------------------------


def test_a_mesh_gives_a_pair_one_wire_and_a_switch_all():
    mi300x, h100 = CLUSTERS["mi300x"], CLUSTERS["dgx-h100"]
    assert [mi300x.inside(k) / GB for k in (2, 3, 4, 8)] == [64, 128, 192, 448]
    assert {h100.inside(k) / GB for k in (2, 4, 8)} == {450}
    assert (mi300x.one_pair / GB, h100.one_pair / GB) == (64, 450)


def test_a_group_on_a_torus_uses_the_axes_that_it_spans():
    v6e = CLUSTERS["tpu-v6e"]  # 16 x 16, four ports of 100
    row, plane = range(16), range(256)
    assert v6e.inside(16, row, 256) == 200 * GB  # both ways round one axis
    assert v6e.inside(256, plane, 256) == 400 * GB
    assert v6e.inside(8, range(8), 256) == 100 * GB  # half of an axis: a line
    assert v6e.inside(16, range(0, 256, 16), 256) == 200 * GB  # the other axis
    assert v6e.inside(8, range(0, 16, 2), 256) == 100 * GB  # two groups share an axis


def test_the_number_of_members_never_makes_a_mesh_faster_than_all_its_wires():
    one = replace(CLUSTERS["mi300x"], nvlink=100 * GB)
    assert one.inside(8) == 100 * GB
    assert {one.fabric, CLUSTERS["tpu-v6e"].fabric} == {MESH, TORUS}


# -- what is unknown -----------------------------------------------------------------------------


def test_an_unknown_number_is_asked_for_and_never_guessed():
    with pytest.raises(LayoutError) as refused:
        CLUSTERS["ascend-910b"].require("hbm")
    assert refused.value.control == "hbm"
    assert "Ascend 910B" in refused.value.what


def test_only_the_links_that_a_job_uses_must_be_known():
    own = Machine("own", nvlink=0.0, nic=0.0, memory=80.0 * GIB, peak=1e15, hbm=3e12)
    own.require_links(1, 1)
    with pytest.raises(LayoutError) as refused:
        own.require_links(8, 8)
    assert refused.value.control == "nvlink"
    with pytest.raises(LayoutError) as refused:
        replace(own, nvlink=450 * GB).require_links(16, 8)
    assert refused.value.control == "nic"
