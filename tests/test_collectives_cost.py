"""Bytes, steps and bus factors of the collectives: nccl-tests' factors and recorded vectors."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest

from training.collectives.cost import COSTS, bus_factor, bytes_per_rank, least_seconds, steps

FACTS = json.loads(
    (Path(__file__).parent / "data" / "collectives.json").read_text(encoding="utf-8")
)
OF_NCCL = {"sendrecv": "send_recv"}
FORMULAS = {
    "2(n-1)/n": lambda n: Fraction(2 * (n - 1), n),
    "(n-1)/n": lambda n: Fraction(n - 1, n),
    "1": lambda n: Fraction(1),
}
STEPS = {"2(n-1)": lambda n: 2 * (n - 1), "n-1": lambda n: n - 1}


@pytest.mark.parametrize("vector", FACTS["ring_vectors"], ids=lambda v: f"{v['op']}-{v['n']}")
def test_bytes_that_a_rank_sends_round_a_ring(vector):
    sent = bytes_per_rank(vector["op"], vector["n"], vector["S"])
    assert sent == vector["sent_bytes_per_rank"]


@pytest.mark.parametrize(("op", "formula"), FACTS["nccl_bus_factors"]["factors"].items())
def test_bus_factors_are_those_of_nccl_tests(op, formula):
    for n in (2, 3, 8, 72, 1024):
        expected = FORMULAS[formula](n)
        assert bus_factor(OF_NCCL.get(op, op), n) == pytest.approx(float(expected), rel=1e-15)


@pytest.mark.parametrize(("op", "formula"), FACTS["ring_steps"].items())
def test_steps_of_a_ring(op, formula):
    for n in (2, 3, 8, 64):
        assert steps(op.split()[0], n) == STEPS[formula.split()[0]](n)


def test_send_and_receive_is_one_step_for_every_pair_at_once():
    assert [steps("send_recv", n) for n in (1, 2, 8)] == [0, 1, 1]


@pytest.mark.parametrize("op", COSTS)
def test_a_group_of_one_moves_nothing(op):
    assert (bus_factor(op, 1), bytes_per_rank(op, 1, 2**30), steps(op, 1)) == (0, 0, 0)


@pytest.mark.parametrize("op", ["keep", "split"])
def test_what_happens_on_each_rank_alone_moves_nothing(op):
    assert (bus_factor(op, 8), steps(op, 8)) == (0, 0)


def test_the_bandwidth_bound_of_an_all_reduce_in_a_node():
    """8 GPUs, 1 GB, 450 GB/s one way: 1.75 GB through each GPU."""
    assert least_seconds("all_reduce", 8, 1e9, 450e9) == pytest.approx(1.75 / 450)
