"""How Horovod's launcher fills hosts, against what horovod 0.28.1 printed."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recorded import cases, refusal
from reference.launchers import horovod_slots, parse_hosts

from groups import coordinates
from groups.frameworks import FRAMEWORKS


@pytest.mark.parametrize("case", cases("horovod", "host_assignments"))
def test_horovod_assigns_hosts_as_its_own_launcher(case):
    slots = horovod_slots(case["hosts"], case["min_np"], case["max_np"])
    assert [dataclasses.asdict(slot) for slot in slots] == case["slots"]


def test_uneven_hosts_have_different_cross_sizes():
    slots = horovod_slots("a:3,b:1,c:2,d:4", 10)
    table = [(s.rank, s.host, s.local_rank, s.cross_rank, s.cross_size) for s in slots]
    assert table == [
        (0, "a", 0, 0, 4),
        (1, "a", 1, 0, 3),
        (2, "a", 2, 0, 2),
        (3, "b", 0, 1, 4),
        (4, "c", 0, 2, 4),
        (5, "c", 1, 1, 3),
        (6, "d", 0, 3, 4),
        (7, "d", 1, 2, 3),
        (8, "d", 2, 1, 2),
        (9, "d", 3, 0, 1),
    ]


def test_max_np_leaves_the_last_hosts_partly_or_wholly_unused():
    slots = horovod_slots("a:4,b:4,c:4", 2, 6)
    assert [(slot.host, slot.local_size) for slot in slots] == [("a", 4)] * 4 + [("b", 2)] * 2


@given(st.integers(1, 6), st.integers(1, 6))
def test_even_hosts_are_the_mesh_of_local_and_cross(local, cross):
    slots = horovod_slots(",".join(f"h{i}:{local}" for i in range(cross)), 1)
    mesh = FRAMEWORKS["horovod"].mesh(local * cross, local=local)
    for slot in slots:
        at = {"local": slot.local_rank, "cross": slot.cross_rank}
        assert coordinates(mesh, slot.rank) == at
        assert (slot.local_size, slot.cross_size) == mesh.sizes


@pytest.mark.parametrize(
    "hosts", ["", "a", "a:", ":4", "a:x", "a:-1", "a:4,", "a:4;b:4", "a:4,a:2", "a:\uff14", None, 4]
)
def test_malformed_hosts_are_refused(hosts):
    error = refusal(parse_hosts, hosts)
    assert (error.code, error.control) == ("bad-hosts", "hosts")
    assert bool(error.quote) == ("a:2" not in str(hosts))  # Horovod takes a host listed twice


@pytest.mark.parametrize(("max_np", "control"), [(None, "min_np"), (6, "max_np"), (99, "min_np")])
def test_too_few_slots_are_refused_in_horovods_words(max_np, control):
    error = refusal(horovod_slots, "a:4,b:4", 9, max_np)
    slots = min(8, max_np or 8)
    assert (error.code, error.control) == ("too-few-slots", control)
    message = f"Requested more processes (9) than there are available slots ({slots})"
    assert error.quote == message
    for alternative in error.alternatives:
        assert horovod_slots("a:4,b:4", alternative["min_np"], max_np)


def test_hosts_without_slots_and_jobs_beyond_the_limit_are_refused():
    assert refusal(horovod_slots, "a:0", 1).code == "too-few-slots"
    assert refusal(horovod_slots, "a:999999999999", 1).code == "too-many-ranks"
    assert refusal(horovod_slots, "a:4", 0).code == "out-of-range"
    assert refusal(horovod_slots, "a:4", 1, 2.5).code == "not-a-whole-number"
    assert len(horovod_slots("a:999999999999", 1, 8)) == 8
