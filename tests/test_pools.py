"""Which GPUs frameworks give each role: their own documented cases, and what is refused."""

from __future__ import annotations

import pytest

from descriptions import REFUSALS
from formats.roles import read_plan
from groups.errors import LayoutError
from groups.layout import Job
from groups.plan import Plan, Role
from groups.pools import nemo_rl, slime

# THUDM/slime 624b824 tests/test_placement_group.py: 2 nodes of 8 for the actor, the rollout;
# expected are the GPUs of the pool and the rollout's first one, None where it has none here.
SLIME = [
    ("", 32, (48, 16)),
    ("--debug-train-only", 32, (16, None)),
    ("--debug-rollout-only", 32, (32, 0)),
    ("--colocate", 8, (16, 0)),
    ("--colocate", 16, (16, 0)),
    ("--colocate", 32, (32, 0)),
    ("", 0, (16, None)),
    ("--colocate", 0, (16, None)),
    ("--rollout-external", 32, (16, None)),
]


@pytest.mark.parametrize(("options", "rollout", "expected"), SLIME)
def test_slimes_pool_is_that_of_its_own_test(options, rollout, expected):
    nodes = "--actor-num-nodes 2 --actor-num-gpus-per-node 8 --tensor-model-parallel-size 2"
    engines = f"--rollout-num-gpus {rollout} --rollout-num-gpus-per-engine 8"
    plan = read_plan(f"python3 train.py {nodes} {engines} --hf-checkpoint x {options}").plan
    firsts = {role.name: role.first_rank for role in plan.roles}
    assert (max(role.last for role in plan.roles) + 1, firsts.get("rollout")) == expected


def test_pools_are_a_plan():
    policy, generation = nemo_rl(
        4, 8, tp=2, colocated=False, generation_nodes=2, generation_gpus_per_node=8
    )
    trained = Job(nodes=2, ep=8).layout()
    served = Job(nodes=2, tp=2, framework="vllm").layout()
    roles = (Role("policy", trained, policy.first), Role("rollout", served, generation.first))
    plan = Plan(4, 8, roles)
    assert [(role.name, rank) for role, rank in plan.roles_of(17)] == [("rollout", 1)]
    assert plan.unused.tolist() == []


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda **fix: slime(**{"actor_nodes": 2, **fix}), "rollout-without-gpus"),
        (
            lambda **fix: nemo_rl(
                **{"nodes": 1, "gpus_per_node": 8, "colocated": False}
                | {"generation_gpus_per_node": 8}
                | fix
            ),
            "generation-takes-too-much",
        ),
        (
            lambda **fix: nemo_rl(
                **{"nodes": 1, "gpus_per_node": 8, "colocated": False}
                | {"generation_gpus_per_node": 4, "generation_nodes": 2}
                | fix
            ),
            "generation-takes-too-much",
        ),
        (
            lambda **fix: nemo_rl(
                **{"nodes": 2, "gpus_per_node": 8, "colocated": False}
                | {"generation_gpus_per_node": 8, "generation_nodes": 2}
                | fix
            ),
            "generation-takes-too-much",
        ),
        (
            lambda **fix: nemo_rl(
                **{"nodes": 2, "gpus_per_node": 8, "colocated": False}
                | {"generation_gpus_per_node": 4, "generation_nodes": 1}
                | fix
            ),
            "generation-takes-parts",
        ),
        (
            lambda **fix: nemo_rl(
                **{"nodes": 1, "gpus_per_node": 1, "colocated": False}
                | {"generation_gpus_per_node": 1}
                | fix
            ),
            "generation-takes-too-much",
        ),
    ],
)
def test_what_is_no_pool_is_refused_with_what_works(call, code):
    with pytest.raises(LayoutError) as caught:
        call()
    error = caught.value
    assert error.code == code
    assert error.why
    assert error.alternatives
    assert REFUSALS[code]["zh"].format(**error.facts)
    for fix in error.alternatives:
        assert call(**fix)
