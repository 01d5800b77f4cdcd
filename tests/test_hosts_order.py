"""A better order of machines: the optimum where every order can be looked at, never a worse one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from descriptions import LAUNCHER_NOTES, ORDER_REASONS
from diagnosis.machines.crossings import key_of, kind_of
from diagnosis.machines.hosts import Hosts
from diagnosis.machines.order import KINDS as ORDER_KINDS
from diagnosis.machines.order import OBJECTIVES, better_order
from diagnosis.machines.placing import placement_of
from formats.hosts import best_order, read_hosts
from formats.hosts.launchers import launcher_files
from groups import LayoutError
from groups.layout import Job
from groups.megatron import groupings, process_groups

DATA = Path(__file__).parent / "data" / "hosts" / "cases.json"
CASES = {one["id"]: one for one in json.loads(DATA.read_text(encoding="utf-8"))["cases"]}
SIZES = ("gpus_per_node", "tp", "cp", "pp", "ep", "etp", "order")


def asked(case: dict) -> dict:
    return {name: case[name] for name in SIZES}


def plain_key(names, racks, *, gpus_per_node, kinds, **layout) -> tuple[int, ...]:
    """Groups in more than one rack, counted member by member."""
    groups = process_groups(len(names) * gpus_per_node, **layout)
    return tuple(
        sum(
            len({racks[names[rank // gpus_per_node]] for rank in ranks}) > 1
            for kind in level
            for ranks in groups[kind].tolist()
        )
        for level in kinds
    )


KINDS = {
    "dp-first": (("ep",), ("tp", "cp"), ("dp",), ("pp",)),
    "pp-first": (("ep",), ("tp", "cp"), ("pp",), ("dp",)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    ("objective", "field"), [("dp-first", "best"), ("pp-first", "best_pp_first")]
)
def test_the_best_order_of_every_case(name, objective, field):
    case = CASES[name]
    want = case["expected"]
    found = best_order(case["hosts"], case["racks"], objective=objective, **asked(case))
    assert list(found.key) == want[field]["key"]
    assert found.is_least
    assert sorted(found.names) == sorted(case["hosts"])
    assert found.key == plain_key(found.names, case["racks"], kinds=KINDS[objective], **asked(case))
    if objective == "dp-first":
        assert list(found.key_before) == want["before"]["key"]
        kept = found.names == tuple(case["hosts"])
        saves_hops = any(note.code == "fewer-hops" for note in found.reasons)
        assert kept == (want["best"]["already_optimal"] and not saves_hops)
    for one in found.kinds:
        assert one.groups == want["group_total"][one.kind]
        assert one.leave_node == want["span_nodes"][one.kind]
        assert one.before == want["before"]["span_racks"][one.kind]
        assert one.least <= one.after


def patterns(capacities: list[int]) -> Iterator[tuple[int, ...]]:
    """Every rack of every place."""
    places = [rack for rack, room in enumerate(capacities) for _ in range(room)]
    return iter(set(permutations(places)))


@st.composite
def questions(draw):
    nodes, gpus = draw(st.integers(2, 7)), draw(st.sampled_from([1, 2, 4, 8]))
    sizes = st.sampled_from([d for d in range(1, nodes * gpus + 1) if nodes * gpus % d == 0])
    layout = {name: draw(sizes) for name in ("tp", "cp", "pp", "ep")}
    layout |= {"etp": draw(st.sampled_from([1, None]))}
    layout |= {"order": draw(st.sampled_from(["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"]))}
    racks = draw(st.lists(st.sampled_from("ABCD"), min_size=nodes, max_size=nodes))
    return {f"n{at}": rack for at, rack in enumerate(racks)}, gpus, layout


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)  # many sizes by chance make no layout
@given(questions(), st.sampled_from(list(KINDS)))
def test_no_order_at_all_is_better_than_one_that_is_proved(question, objective):
    racks, gpus, layout = question
    try:
        found = best_order([*racks], racks, gpus_per_node=gpus, objective=objective, **layout)
    except LayoutError:
        assume(False)
    world = len(racks) * gpus
    every = groupings(world, **layout)
    levels = [[kind_of(every[kind], gpus) for kind in level] for level in KINDS[objective]]
    named = sorted(set(racks.values()))
    capacities = [[*racks.values()].count(rack) for rack in named]
    best = min(key_of(levels, np.array(one)) for one in patterns(capacities))
    assert found.is_least
    assert found.key == best <= found.key_before
    where = np.array([named.index(racks[host]) for host in found.names])
    assert key_of(levels, where) == found.key
    assert [one.leave_node for one in found.kinds] == [
        int(np.count_nonzero(np.ptp(every[one.kind].groups() // gpus, axis=1)))
        for one in found.kinds
    ]
    for reason in found.reasons:
        assert ORDER_REASONS[reason.code]["zh"].format(**reason.facts)


def test_grouping_by_rack_is_not_always_best():
    """Racks of 3, 4 and 1 nodes, ep over 2 nodes: racks one after the other leave 2 groups parted.

    by rack   A A | A B | B B | B C        best   A A | A C | B B | B B
    """
    case = CASES["c09_uneven_341_grouped"]
    assert not case["expected"]["group_by_rack"]["is_optimal"]
    found = best_order(case["hosts"], case["racks"], **asked(case))
    assert (found.key_before[0], found.key[0]) == (2, 1)


def test_exchanges_of_two_blocks_do_not_always_end_at_the_best():
    """Nine nodes of 2 in racks of 2, 3, 2, 2: only a look at every pattern finds this one."""
    racks = {f"n{at}": rack for at, rack in enumerate("ABDACBCBD")}
    found = best_order([*racks], racks, gpus_per_node=2, cp=3, pp=2, ep=9, etp=1)
    assert (found.key, found.is_least) == ((2, 2, 6, 8), True)


def shuffled(nodes: int, rack: int) -> dict[str, str]:
    places = np.random.default_rng(0).permutation(nodes)
    return {f"n{at}": f"r{place // rack}" for at, place in enumerate(places.tolist())}


@pytest.mark.parametrize(
    ("rack", "layout", "key"),
    [
        (32, {"tp": 4, "pp": 8, "ep": 32, "etp": 1}, (0, 0, 32, 0)),
        (18, {"tp": 8, "pp": 8, "ep": 16, "etp": 1}, (0, 0, 64, 240)),
        (16, {"tp": 8, "pp": 8, "ep": 8, "etp": 1}, (0, 0, 64, 0)),
    ],
)  # fmt: skip
def test_2048_shuffled_nodes_are_put_in_the_order_that_is_proved_best(rack, layout, key):
    racks = shuffled(2048, rack)
    found = best_order([*racks], racks, gpus_per_node=8, **layout)
    assert (found.key, found.is_least) == (key, True)


def test_racks_of_18_trays_keep_as_many_expert_groups_whole_as_they_can():
    """2048 trays of 4 GPUs, ep 64 on 16 trays: 113 racks hold a group each."""
    racks = shuffled(2048, 18)
    found = best_order([*racks], racks, gpus_per_node=4, pp=8, ep=64, etp=1)
    assert found.key[0] == 128 - 113
    assert found.segment == 16


def test_a_segment_is_as_many_machines_as_a_group_of_experts_stands_on():
    racks = {f"n{at}": f"r{at // 4}" for at in range(16)}
    for ep, etp, machines in ((16, 1, 2), (16, 2, 4), (8, 4, 4), (4, 8, 4), (2, 1, 1)):
        found = best_order([*racks], racks, gpus_per_node=8, tp=8, ep=ep, etp=etp)
        (largest,) = (one.largest for one in found.kinds if one.kind == "ep")
        assert (found.segment, largest) == (machines, machines), (ep, etp)


def test_the_order_that_is_given_stays_where_none_is_better():
    racks = {f"n{at}": f"r{at // 4}" for at in range(16)}
    found = best_order([*racks], racks, gpus_per_node=8, tp=8, pp=4)
    assert found.names == tuple(racks)
    assert found.moved == 0
    assert found.reasons[0].code == "order-kept-best"


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much]
)  # many sizes by chance make no layout
@given(questions(), st.tuples(*[st.sampled_from([0.0, 0.1, 1.0, 7.0])] * 5))
def test_no_order_waits_longer_than_the_one_that_was_given(question, waited):
    racks, gpus, sizes = question
    sizes = dict(sizes)
    try:
        job = Job(nodes=len(racks), gpus_per_node=gpus, framework="own", **sizes)
        hosts = Hosts("table", tuple(racks), levels={"rack": racks})
        found = better_order(job.layout(), hosts, seconds=dict(zip(ORDER_KINDS, waited)))
    except LayoutError:
        assume(False)
    assert found.cost <= found.cost_before <= sum(waited) + 1e-9
    if not any(waited):
        assert found.key <= found.key_before


def test_costs_can_weigh_otherwise_than_the_key():
    """One ep group over the border, or many dp groups: the caller's seconds decide."""
    case = CASES["c05_pp2_interleaved"]
    cheap_pp = best_order(case["hosts"], case["racks"], costs={"dp": 1.0, "pp": 0.1}, **asked(case))
    cheap_dp = best_order(case["hosts"], case["racks"], costs={"dp": 0.1, "pp": 1.0}, **asked(case))
    assert cheap_pp.key == (0, 0, 0, 32)
    assert cheap_dp.key == (0, 0, 16, 0)
    assert cheap_pp.cost == pytest.approx(3.2)
    assert cheap_pp.cost_before == pytest.approx(16)


def test_costs_of_nothing_are_no_costs_and_prove_nothing():
    """Two orders of 40 machines in uneven racks: the key of neither is proved to be least."""
    hosts = [f"n{at}" for at in range(40)]
    racks = {host: str(at * 7 % 40 % 3) for at, host in enumerate(hosts)}
    sizes = {"gpus_per_node": 8, "tp": 16, "pp": 5}
    plain = best_order(hosts, racks, **sizes)
    assert not plain.is_least
    for costs in ({}, {"dp": 0.0}, {"ep": 0.0, "tp": 0}):
        assert replace(best_order(hosts, racks, costs=costs, **sizes), costs={}) == plain, costs
    alone = {"objective": "tp+cp, dp, pp"}
    plain = best_order(hosts, racks, **sizes, **alone)
    of_no_kind = best_order(hosts, racks, costs={"ep": 1.0}, **sizes, **alone)
    assert replace(of_no_kind, costs={}) == plain
    for dear, is_least in (("tp", True), ("dp", True), ("tp pp", True), ("tp dp", False)):
        costs = dict.fromkeys(dear.split(), 1.0)  # all that costs must be least
        assert best_order(hosts, racks, costs=costs, **sizes).is_least is is_least, dear


def test_groups_that_leave_a_node_are_told_with_the_layout_that_would_mend_them():
    case = CASES["c07_tp_over_nodes"]
    found = best_order(case["hosts"], case["racks"], **asked(case))
    (tp,) = [one for one in found.fixes if one.kind == "tp"]
    assert (tp.place, dict(tp.changes)) == ("node", {"tp": 8})
    assert "leaves-node" in [one.code for one in found.reasons]


def test_an_expert_group_larger_than_every_rack_is_told_with_one_that_fits():
    racks = {f"n{at}": f"r{at // 2}" for at in range(8)}
    found = best_order([*racks], racks, gpus_per_node=4, ep=16, etp=1)
    assert {(one.place, *one.changes.items()) for one in found.fixes} == {
        ("node", ("ep", 4)),
        ("rack", ("ep", 8)),
    }


def test_experts_that_are_not_cut_come_before_fewer_of_them():
    """Of tp 2 every other rank is an expert's: 4 stand on two nodes of 4, uncut on one."""
    found = best_order(["a", "b"], {"a": "r", "b": "r"}, gpus_per_node=4, tp=2, ep=4)
    (ep,) = [one for one in found.fixes if one.kind == "ep"]
    assert (ep.place, dict(ep.changes)) == ("node", {"etp": 1})


def test_only_layouts_that_megatron_makes_are_offered():
    """With pp before dp, dp and the experts' dp must be equal: of ep 8 and cp 8 neither changes."""
    sizes = {"cp": 8, "pp": 2, "ep": 8, "order": "tp-cp-ep-pp-dp"}
    found = best_order([*"abcd"], dict.fromkeys("abcd", "r"), gpus_per_node=4, **sizes)
    assert found.fixes == ()
    assert {kind.kind for kind in found.kinds if kind.leave_node} >= {"ep", "cp"}


def test_machines_of_a_framework_without_expert_groups_are_ordered_too():
    racks = dict(zip([f"n{at}" for at in range(4)], "ABAB"))
    hosts = Hosts("table", tuple(racks), levels={"rack": racks})
    job = Job(nodes=4, tp=16, framework="deepspeed")
    found = better_order(job.layout(), hosts)
    assert (found.names, found.fixes) == (("n0", "n2", "n1", "n3"), ())


def test_a_group_that_just_fills_a_rack_is_not_larger():
    racks = {f"n{at}": f"r{at // 2}" for at in range(4)}
    for ep, is_larger in ((8, False), (16, True)):
        found = best_order([*racks], racks, gpus_per_node=4, ep=ep, etp=1)
        codes = [one.code for one in found.reasons if one.facts.get("kind") == "ep"]
        assert ("larger-than-racks" in codes) == is_larger


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"names": []}, "no-hosts"),
        ({"names": ["a", "a"]}, "host-twice"),
        ({"racks": {"a": "r"}}, "host-without-rack"),
        ({"gpus_per_node": 0}, "out-of-range"),
        ({"tp": 3}, "does-not-divide"),
        ({"objective": "ep, xx"}, "bad-objective"),
        ({"objective": "ep ep"}, "bad-objective"),
        ({"costs": {"dp": -1}}, "bad-cost"),
        ({"costs": {"xx": 1}}, "bad-cost"),
        ({"names": [f"n{at}" for at in range(9000)]}, "too-many-to-order"),
    ],
)
def test_what_cannot_be_ordered_is_refused(changes, code):
    asked = {"names": ["a", "b"], "racks": {"a": "r", "b": "s"}, "gpus_per_node": 8, **changes}
    names, racks = asked.pop("names"), asked.pop("racks")
    with pytest.raises(LayoutError) as caught:
        best_order(names, racks, **asked)
    assert caught.value.code == code


def test_objectives_may_be_written_out():
    case = CASES["c05_pp2_interleaved"]
    for name, text in OBJECTIVES.items():
        one = best_order(case["hosts"], case["racks"], objective=name, **asked(case))
        two = best_order(case["hosts"], case["racks"], objective=text, **asked(case))
        assert one.key == two.key


def test_an_order_is_written_as_each_launcher_obeys_it():
    """The written files, read back, put every rank on the machine of the order."""
    names = ["gpu-2", "gpu-10", "gpu-1"]
    ranks = [name for name in names for _ in range(4)]
    files = launcher_files(names, 4)
    for name in ("slurm", "openmpi", "rankfile"):
        placement = placement_of(read_hosts(files[name]), 12)
        assert [placement.host(rank) for rank in range(12)] == ranks, name
    assert [line.split(":")[0] for line in files["torchrun"].splitlines()[2:]] == names
    assert "c10d" in files["torchrun"]
    assert "c10d" not in launcher_files(["node66", "node7", "node70", "node8"], 4)["torchrun"]
    assert {"slurm", "openmpi", "torchrun"} <= set(LAUNCHER_NOTES)


def test_of_more_patterns_than_can_be_looked_at_the_best_go_on():
    """16 machines in seven racks: without them 32 pipelines leave their rack."""
    sizes = {"A": 1, "B": 2, "C": 2, "D": 2, "E": 1, "F": 3, "G": 5}
    racks = {f"{rack}{at}": rack for rack, size in sizes.items() for at in range(size)}
    better = best_order([*racks], racks, gpus_per_node=8, tp=2, pp=2, ep=32, etp=1)
    assert (better.key_before, better.key) == ((3, 0, 4, 64), (3, 0, 4, 24))
    assert not better.is_least
