"""Several layouts over the same machines: the laws of a plan, what it refuses, what it warns of."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError, replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descriptions import REFUSALS
from groups.errors import LayoutError
from groups.layout import Job
from groups.plan import MAX_ROLES, Plan, Role
from groups.plan_faults import copies_of, hangs_of, lost_with
from groups.plan_notes import notes_of
from texts.sentences import note_text

FRAMEWORKS = ("megatron", "vllm", "sglang")


@cache
def trained(gpus: int, **sizes):
    return Job(nodes=1, gpus_per_node=gpus, **sizes).layout()


def served(gpus: int, **sizes):
    return trained(gpus, framework="vllm", **sizes)


@st.composite
def roles_on(draw, world: int, number: int):
    """A role of any size on a run of GPUs or on chosen ones, which need not lie in the cluster."""
    size = draw(st.integers(1, world))
    tp = draw(st.sampled_from([tp for tp in (1, 2, 4) if size % tp == 0]))
    layout = trained(size, tp=tp, framework=draw(st.sampled_from(FRAMEWORKS)))
    if draw(st.booleans()):
        seed = draw(st.integers(0, 99))
        where = {"gpus": np.random.default_rng(seed).permutation(world)[:size]}
    else:
        where = {"first_rank": draw(st.integers(0, world - size + draw(st.integers(0, 2))))}
    return Role(f"role {number}", layout, **where)


@st.composite
def roles_of_a_cluster(draw):
    nodes, gpus = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    count = draw(st.integers(1, 4))
    roles = [draw(roles_on(nodes * gpus, number)) for number in range(count)]
    for number, role in enumerate(roles):
        others = [other.name for other in roles if other is not role]
        chosen = (
            st.lists(st.sampled_from(others), max_size=2, unique=True) if others else st.just([])
        )
        shares = draw(st.none() | st.none() | chosen)
        roles[number] = replace(role, shares=shares)
    return nodes, gpus, tuple(roles)


def attempt(*parts) -> Plan | LayoutError:
    try:
        return Plan(*parts)
    except LayoutError as error:
        return error


@settings(max_examples=120, deadline=None)
@given(roles_of_a_cluster())
def test_a_plan_keeps_its_laws_or_says_what_does(cluster):
    nodes, gpus, roles = cluster
    plan = attempt(nodes, gpus, roles)
    if isinstance(plan, LayoutError):
        codes = {"role-beyond-cluster", "roles-without-order", "roles-in-circle", "roles-apart"}
        assert plan.code in codes
        assert REFUSALS[plan.code]["zh"].format(**plan.facts)
        return
    # Every rank of a role is a GPU of the cluster, and each is one of its own.
    for role in roles:
        assert len(set(role.ranks.tolist())) == role.layout.world_size
        assert {*role.ranks.tolist()} <= {*range(nodes * gpus)}
    # A GPU has the roles that say so, each in the turn that its roles give it.
    assert sorted(plan.turns, key=roles.index) == [*roles]
    for gpu in range(plan.world_size):
        expected = {
            role.name: role.ranks.tolist().index(gpu) for role in roles if gpu in role.ranks
        }
        found = plan.roles_of(gpu)
        assert {role.name: rank for role, rank in found} == expected
        assert [role for role, _ in found] == [role for role in plan.turns if role.name in expected]
        assert (gpu in plan.unused) == (not expected)
    turn = {role.name: place for place, role in enumerate(plan.turns)}
    for role in roles:
        assert all(turn[other] < turn[role.name] for other in role.shares or ())
    for first, second in combinations(roles, 2):
        shared = bool({*first.ranks.tolist()} & {*second.ranks.tolist()})
        assert first.meets(second) == second.meets(first) == shared
        if shared and first.shares is None and second.shares is None:
            assert turn[first.name] < turn[second.name]  # as they stand in the plan


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 4), st.sampled_from((1, 2, 4, 8)), st.sampled_from(FRAMEWORKS), st.data())
def test_a_plan_of_one_role_is_the_job(nodes, gpus, framework, data):
    sizes = [size for size in (1, 2, 4) if nodes * gpus % size == 0]
    job = Job(nodes, gpus, tp=data.draw(st.sampled_from(sizes)), framework=framework)
    plan = Plan.of(job.layout())
    assert (plan.nodes, plan.gpus_per_node) == (nodes, gpus)
    (role,) = plan.roles
    assert role.layout == job.layout()
    assert role.ranks.tolist() == [*range(nodes * gpus)]
    assert all(plan.roles_of(rank) == ((role, rank),) for rank in range(plan.world_size))
    codes = {note.code for note in notes_of(plan)}
    assert codes == set()  # nothing crosses because of where it begins, and no GPU is left


def test_roles_share_gpus_in_the_order_of_the_plan_or_in_that_which_they_name():
    actor, rollout = Role("actor", trained(8)), Role("rollout", served(8))

    def names(*roles):
        return [role.name for role, _ in Plan(1, 8, roles).roles_of(3)]

    assert names(actor, rollout) == ["actor", "rollout"]
    assert names(replace(actor, shares="rollout"), rollout) == ["rollout", "actor"]
    assert names(replace(actor, shares=()), replace(rollout, shares=["actor"])) == [
        "actor",
        "rollout",
    ]
    # An order through a third role is an order too.
    reference = Role("reference", trained(8), shares="rollout")
    third = replace(actor, shares="reference")
    assert names(third, reference, replace(rollout, shares=())) == ["rollout", "reference", "actor"]


def test_the_published_example_of_two_roles_on_the_same_gpus():
    actor = Role("actor", Job(nodes=8, tp=4, pp=2).layout())
    server = Job(nodes=8, tp=2, framework="vllm").layout()
    plan = Plan(nodes=8, gpus_per_node=8, roles=(actor, Role("rollout", server, first_rank=0)))
    (first, rank), (second, own) = plan.roles_of(13)
    assert (first.name, rank, second.name, own) == ("actor", 13, "rollout", 13)
    group = second.ranks[second.layout.every["tp"].members(own)]
    assert group.tolist() == [12, 13]


REFUSED = [
    # the roles, the code, the role that its fixes are of
    ((Role("a", trained(8), first_rank=4),), "role-beyond-cluster", 0),
    ((Role("a", trained(16)),), "role-beyond-cluster", 0),
    ((Role("a", trained(2), gpus=(3, 9)),), "role-beyond-cluster", 0),
    ((Role("a", trained(4)), Role("b", served(4), 2, shares=())), "roles-without-order", 1),
    ((Role("a", trained(8)), Role("b", served(8), shares=())), "roles-without-order", 1),
    ((Role("a", trained(8), shares="b"), Role("b", served(8), shares="a")), "roles-in-circle", 1),
    ((Role("a", trained(4)), Role("b", served(4), 4, shares="a")), "roles-apart", 1),
    ((Role("a", trained(4)), Role("b", served(4), shares="c")), "not-a-choice", None),
    ((Role("a", trained(4)), Role("a", served(4), 4)), "role-named-twice", None),
    ((), "number-of-roles", None),
    (tuple(Role(f"r{n}", trained(1)) for n in range(MAX_ROLES + 1)), "number-of-roles", None),
]


@pytest.mark.parametrize(("roles", "code", "number"), REFUSED, ids=[row[1] for row in REFUSED])
def test_what_is_no_plan_is_refused_with_what_works(roles, code, number):
    with pytest.raises(LayoutError) as caught:
        Plan(1, 8, roles)
    error = caught.value
    assert error.code == code
    assert error.why or code in ("roles-apart", "not-a-choice", "number-of-roles")
    assert REFUSALS[code]["zh"].format(**{"control": "", **error.facts})
    assert bool(error.alternatives) == (number is not None)
    for fix in error.alternatives:
        changed = [*roles]
        if "nodes" not in fix:
            changed[number] = replace(roles[number], **fix)
        Plan(fix.get("nodes", 1), 8, tuple(changed))


def test_the_nearest_gpus_that_are_free_are_offered():
    roles = (Role("a", trained(8)), Role("b", trained(4), 20), Role("c", served(4), 6, shares=()))
    with pytest.raises(LayoutError) as caught:
        Plan(3, 8, roles)
    assert str(caught.value) == (
        "c and a share GPUs, and nothing says which has them first; try shares a or first_rank 8"
    )


@pytest.mark.parametrize(
    ("role", "code"),
    [
        ({"name": ""}, "role-without-name"),
        ({"name": 5}, "role-without-name"),
        ({"first_rank": -1}, "out-of-range"),
        ({"first_rank": 2.5}, "not-a-whole-number"),
        ({"first_rank": 10**30}, "out-of-range"),
        ({"gpus": (1, 2)}, "gpus-are-not-ranks"),
        ({"gpus": (1, 2, 3, 3)}, "gpu-twice"),
        ({"gpus": (1, 2, 3, -4)}, "out-of-range"),
        ({"gpus": (1, 2, 3, 10**9)}, "out-of-range"),
        ({"gpus": (1, 2, 3, "4")}, "not-a-whole-number"),
        ({"gpus": (1, 3, 5, 7), "first_rank": 2}, "two-first-ranks"),
    ],
)
def test_what_is_no_role_is_refused(role, code):
    with pytest.raises(LayoutError) as caught:
        Role(**{"name": "actor", "layout": trained(4), **role})
    assert caught.value.code == code
    assert REFUSALS[code]["zh"].format(**{"span": "", **caught.value.facts})


def test_a_gpu_or_a_role_that_there_is_not():
    plan = Plan.of(trained(8))
    assert plan.role("job") is plan.roles[0]
    for call in (lambda: plan.roles_of(8), lambda: plan.roles_of(-1), lambda: plan.role("actor")):
        with pytest.raises(LayoutError):
            call()


def test_a_plan_cannot_be_changed_and_chosen_gpus_in_a_row_are_a_run():
    role = Role("a", trained(4), gpus=[4, 5, 6, 7])
    assert role == Role("a", trained(4), first_rank=4)
    assert hash(role) == hash(Role("a", trained(4), first_rank=np.int64(4)))
    plan = Plan(1, 8, [role])
    assert plan == Plan(1, 8, (role,))
    with pytest.raises(FrozenInstanceError):
        plan.nodes = 2
    with pytest.raises(FrozenInstanceError):
        role.first_rank = 0
    with pytest.raises(ValueError, match="read-only"):
        role.ranks[0] = 1
    assert str(Plan(1, 8, (role, Role("b", trained(2), gpus=(3, 1))))) == (
        "1 x 8 GPUs: a 4-7, b 2 chosen"
    )


# -- warnings --------------------------------------------------------------------------------------


def _crossing(role: Role, gpus_per_node: int, kind: str = "tp") -> int:
    groups = role.ranks[role.layout.every[kind].groups()]
    return sum(len({gpu // gpus_per_node for gpu in group}) > 1 for group in groups.tolist())


@settings(max_examples=100, deadline=None)
@given(st.integers(2, 4), st.sampled_from((2, 4, 6, 8)), st.data())
def test_a_role_is_warned_of_where_it_begins_only_if_another_place_is_better(nodes, gpus, data):
    world = nodes * gpus
    tp = data.draw(st.sampled_from((1, 2, 4, 8)))
    tp = min(tp, world)
    size = tp * data.draw(st.integers(1, world // tp))
    framework = data.draw(st.sampled_from(("megatron", "vllm", "sglang")))
    first = data.draw(st.integers(0, world - size))
    role = Role("role", trained(size, tp=tp, framework=framework), first)
    plan = Plan(nodes, gpus, (role,))
    notes = {note.code: note.facts for note in notes_of(plan)}
    here, least = _crossing(role, gpus), _crossing(replace(role, first_rank=0), gpus)
    assert ("tp-crosses-by-start" in notes) == (here > least)
    if here > least:
        facts = notes["tp-crosses-by-start"]
        assert facts["crossing"] == here - least
        assert _crossing(replace(role, first_rank=facts["nearest"]), gpus) <= least
    engines = role.ranks.reshape(-1, tp) // gpus
    straddling = sum(len({*engine}) > math.ceil(tp / gpus) for engine in engines.tolist())
    serves = framework != "megatron"
    assert notes.get("engines-straddle", {}).get("straddling", 0) == straddling * serves
    assert notes.get("gpus-unused", {}).get("count", 0) == world - size


@pytest.mark.parametrize(
    ("server", "heads", "expected"),
    [
        ({"tp": 4}, 8, None),
        ({"tp": 4}, 4, None),
        ({"tp": 8}, 4, ("kv-heads-copied", 2)),
        ({"tp": 8}, 6, ("kv-heads-do-not-divide", None)),
        ({"tp": 2}, 3, ("kv-heads-do-not-divide", None)),
        ({"tp": 8, "dcp": 2}, 4, None),  # two ranks share the tokens of each head
        ({"tp": 8, "dcp": 2}, 2, ("kv-heads-copied", 2)),
        ({"tp": 4, "cp": 2, "dcp": 8}, 1, None),
        ({"tp": 8, "dp": 8, "framework": "sglang"}, 2, None),  # attention is whole on each rank
        ({"tp": 8, "dp": 2, "framework": "sglang"}, 2, ("kv-heads-copied", 2)),
    ],
)
def test_a_tp_over_which_the_kv_heads_are_not_even(server, heads, expected):
    role = Role("rollout", trained(8, **{"framework": "vllm", **server}))
    notes = notes_of(Plan(1, 8, (role,)), {"rollout": heads})
    assert [(note.code, note.facts.get("copies")) for note in notes] == [*filter(None, [expected])]
    assert notes_of(Plan(1, 8, (role,))) == []  # no model, no word


def test_kv_heads_are_a_matter_of_servers_and_a_whole_number():
    actor = Role("actor", trained(8, tp=8))
    assert notes_of(Plan(1, 8, (actor,)), {"actor": 3}) == []
    with pytest.raises(LayoutError):
        notes_of(Plan.of(served(8)), {"job": 0})


def test_a_role_on_chosen_gpus_is_offered_no_other_first_one():
    role = Role("rollout", served(4, tp=4), gpus=(0, 8, 16, 24))
    crosses, straddles, unused = notes_of(Plan(4, 8, (role,)))
    assert (crosses.code, "nearest" in crosses.facts) == ("tp-crosses-by-start", False)
    assert (straddles.code, straddles.facts["straddling"]) == ("engines-straddle", 1)
    assert unused.facts == {"count": 28, "first": 1, "last": 31}


# -- faults ----------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(roles_of_a_cluster(), st.data())
def test_a_copy_ends_with_a_node_where_a_rank_of_it_is_there(cluster, data):
    plan = attempt(*cluster)
    if isinstance(plan, LayoutError):
        return
    nodes = data.draw(st.sets(st.integers(0, plan.nodes - 1), min_size=1))
    losses = {loss.role.name: loss for loss in lost_with(plan, nodes)}
    for role in plan.roles:
        there = [
            rank
            for rank, gpu in enumerate(role.ranks.tolist())
            if gpu // plan.gpus_per_node in nodes
        ]
        assert (role.name in losses) == bool(there)
        if there:
            loss, copies = losses[role.name], copies_of(role).tolist()
            assert [*loss.ranks] == there
            assert {*loss.copies} == {copies[rank] for rank in there}
            assert loss.left == len({*copies}) - len(loss.copies)


def test_a_hang_names_the_role_whose_groups_it_shows():
    actor = Role("actor", Job(nodes=2, tp=4, pp=2).layout(), shares=("rollout",))
    rollout = Role("rollout", Job(nodes=2, tp=2, framework="vllm").layout())
    reward = Role("reward", Job(tp=8, framework="sglang").layout(), first_rank=16)
    plan = Plan(3, 8, (actor, rollout, reward))

    def named(groups, ranks, world=None):
        return [hang.role.name for hang in hangs_of(plan, groups, ranks, world)]

    assert named([(4, 5)], [5]) == ["rollout"]  # pairs: the rollout's tp
    assert named([(4, 5, 6, 7)], [5]) == ["actor"]  # fours: the actor's tp
    assert named([(0, 8)], [8]) == ["actor"]  # two stages
    assert named([range(8)], [3], world=8) == ["reward"]
    assert named([(0, 1), (0, 1, 2, 3)], [0]) == []  # of no role both
    assert named([], [12]) == ["rollout", "actor"]  # which of the two, nothing tells
    (hang,) = hangs_of(plan, [(4, 5)], [4, 5])
    assert (hang.copies, hang.gpus, hang.waiting) == ((2,), (4, 5), ("actor",))
    assert note_text(hang.note) == (
        "rollout hangs in engine 2, at rank 4, 5 (GPU 4, 5); waiting for these GPUs: actor."
    )
    (judge,) = hangs_of(plan, [range(8)], [3], 8)
    assert (judge.gpus, judge.note.code) == ((19,), "engine-hangs")
