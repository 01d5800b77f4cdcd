"""Which GPUs frameworks give each role: their own documented cases, and what is refused."""

from __future__ import annotations

import pytest

from descriptions import REFUSALS
from groups.errors import LayoutError
from groups.layout import Job
from groups.plan import Plan, Role
from groups.pools import nemo_rl, slime, slime_offset

# THUDM/slime 624b824 tests/test_placement_group.py: 2 nodes of 8 for the actor, 32 for the rollout.
SLIME = [
    ({}, 32, (48, 16)),
    ({"train_only": True}, 32, (16, 0)),
    ({"rollout_only": True}, 32, (32, 0)),
    ({"colocate": True}, 8, (16, 0)),
    ({"colocate": True}, 16, (16, 0)),
    ({"colocate": True}, 32, (32, 0)),
    ({}, 0, (16, 16)),
    ({"colocate": True}, 0, (16, 0)),
    ({"external": True}, 32, (16, 16)),
    ({"external": True, "rollout_only": True}, 32, (16, 0)),
]


@pytest.mark.parametrize(("options", "rollout", "expected"), SLIME)
def test_slimes_pool_is_that_of_its_own_test(options, rollout, expected):
    assert slime_offset(16, rollout, **options) == expected
    if options.keys() <= {"colocate"}:
        pools = slime(2, 8, rollout, **options)
        assert max(pool.first + pool.gpus for pool in pools) == expected[0]
        assert [pool.first for pool in pools[1:]] == [expected[1]] * bool(rollout)


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
