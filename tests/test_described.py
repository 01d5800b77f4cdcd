"""A machine of one's own: numbers over a row, a file of them, and what looks wrong in them."""

from __future__ import annotations

import io
import json

import pytest

from cli.command import run
from groups.errors import LayoutError
from request.link import from_query, to_query
from request.resolve import resolve
from request.state import State
from request.trained import machine_of_state, trained_of
from training.clusters import CLUSTERS
from training.described import (
    OWN,
    MachineNumbers,
    described,
    doubts,
    read_machine,
    start_of,
)
from training.estimate import estimate
from training.machine import GB, GIB
from training.models import MODELS

H100 = CLUSTERS["dgx-h100"]


def test_single_numbers_stand_over_a_row_and_the_rest_is_the_row_s():
    mine = described(CLUSTERS["mi300x"], MachineNumbers(nic=800.0, hbm=5000.0), capacity=180.0)
    assert (mine.nic / GB, mine.hbm / GB, mine.memory / GIB) == (100, 5000, 180)
    assert (mine.pair, mine.peak) == (CLUSTERS["mi300x"].pair, CLUSTERS["mi300x"].peak)


def test_a_gpu_of_other_speed_has_no_measured_runs_and_one_of_another_network_has():
    assert described(H100, MachineNumbers(nic=200.0)).family == "h100"
    assert described(H100, MachineNumbers(peak=756.0)).family == ""


def test_nothing_given_is_the_row_itself():
    assert described(H100, MachineNumbers()) is H100


def test_a_pair_is_no_faster_than_all_together():
    with pytest.raises(LayoutError) as refused:
        described(H100, MachineNumbers(pair=500.0))
    assert refused.value.control == "pair"


@pytest.mark.parametrize("name", ["dgx-h100", "mi300x", "tpu-v6e"])
def test_its_own_numbers_typed_over_a_row_ask_nothing(name):
    row = CLUSTERS[name]
    numbers = MachineNumbers(
        peak=row.peak / 1e12,
        hbm=row.hbm / GB,
        nvlink=row.nvlink / GB,
        nic=row.nic * 8 / 1e9 or None,
    )
    mine = described(row, numbers, capacity=row.memory / GIB)
    assert list(doubts(mine, row)) == []
    assert mine.family == row.family


OWN_H100 = MachineNumbers(peak=989.4, hbm=3350.0, nvlink=450.0, nic=400.0)


def test_a_machine_of_one_s_own_needs_only_its_five_numbers():
    mine = described(start_of(OWN), OWN_H100, capacity=79.65)
    found = estimate(MODELS["llama3-8b"].model, cluster=mine, gpus=16, tp=8, global_batch=64)
    row = estimate(MODELS["llama3-8b"].model, cluster=H100, gpus=16, tp=8, global_batch=64)
    assert found.lacks == ("gpu",)
    assert found.low < row.seconds < found.high
    assert found.seconds == pytest.approx(row.seconds, rel=0.2)


@pytest.mark.parametrize(
    ("numbers", "capacity", "asked"),
    [
        (MachineNumbers(peak=1978.8, hbm=3350.0), 79.65, ["sparse"]),
        (MachineNumbers(peak=989.4, hbm=3350.0, nvlink=900.0), 79.65, ["both"]),
        (MachineNumbers(peak=989.4, hbm=3350.0, nic=50.0), 79.65, ["bytes"]),
        (MachineNumbers(peak=0.989, hbm=3.35), 79.65, ["tera", "tera"]),
        (MachineNumbers(peak=989.4, hbm=3350.0), 80.0, ["marketed"]),
        (OWN_H100, 79.65, []),
    ],
)
def test_a_number_that_looks_like_another_is_asked_about_and_kept(numbers, capacity, asked):
    mine = described(start_of(OWN), numbers, capacity)
    assert [one.code for one in doubts(mine, start_of(OWN))] == asked
    assert mine.peak == numbers.peak * 1e12


# -- a file --------------------------------------------------------------------------------------


def test_a_file_is_a_row_and_what_differs():
    text = 'gpu = "AMD MI300X"\nnic = 800\nfabric = "switch"\npair = 76.8\n'
    assert read_machine(text) == ("mi300x", {"nic": "800", "fabric": "switch", "pair": "76.8"})
    assert read_machine("peak = 1307.4")[0] == OWN


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpu = ", "not TOML"),
        ("hbmm = 5300", "hbmm"),
        ('nic = "fast"', "nic"),
        ('gpu = "mi30x"', "mi30x"),
        ("gpu = 7", "gpu"),
    ],
)
def test_a_file_that_says_something_else_is_refused(text, said):
    with pytest.raises(LayoutError) as refused:
        read_machine(text)
    assert said in refused.value.what


# -- everywhere ------------------------------------------------------------------------------------


def test_a_machine_of_one_s_own_comes_back_from_its_link():
    state = State(tp=4, cluster="mi300x", nic="800", capacity="180", pair="60")
    again = from_query(to_query(state))
    assert machine_of_state(again) == machine_of_state(state)
    assert machine_of_state(again).pair == 60 * GB


def test_a_link_takes_any_name_of_a_machine():
    assert machine_of_state(from_query("v=2&tp=4&cluster=AMD MI300X")) == CLUSTERS["mi300x"]


def test_what_is_missing_of_one_s_own_is_asked_for_in_turn():
    state = State(tp=4, cluster=OWN)
    for name, text in (("capacity", "80"), ("peak", "989"), ("hbm", "3350"), ("nvlink", "450")):
        with pytest.raises(LayoutError) as refused:
            trained_of(resolve(state), state).estimate(resolve(state))
        assert refused.value.control == name
        state = state.changed({name: text})
    with pytest.raises(LayoutError) as refused:
        trained_of(resolve(state), state).estimate(resolve(state))
    assert refused.value.control == "nic"


def test_the_command_line_takes_a_gpu_a_file_and_single_numbers(tmp_path):
    file = tmp_path / "my.toml"
    file.write_text('gpu = "mi300x"\ncapacity = 150\n')
    layout = ["--nodes", "2", "--tp", "8", "--format", "json"]

    def capacity(*words: str) -> float:
        out, said = io.StringIO(), io.StringIO()
        assert run(["memory", *words, *layout], io.StringIO(), out, said) == 0, said.getvalue()
        return float(json.loads(out.getvalue())["capacity_bytes"]) / GIB

    assert capacity("--gpu", "mi300x") == CLUSTERS["mi300x"].memory / GIB
    assert capacity("--machine", str(file)) == 150
    assert capacity("--machine", str(file), "--capacity", "160") == 160
