"""Ranks of every role against the frameworks' own placement code (tests/data/roles)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formats.roles import read_plan
from groups.pools import node_order

CASES = json.loads((Path(__file__).parent / "data/roles/placements.json").read_text("utf-8"))


def verl(case):
    """A case as an override of each setting."""
    tp, dp, pp = case["rollout"]
    rollout = "actor_rollout_ref.rollout"
    said = {
        "trainer.nnodes": case["nodes"],
        "trainer.n_gpus_per_node": case["each"],
        "algorithm.adv_estimator": "gae" if case.get("critic") else "grpo",
        f"{rollout}.tensor_model_parallel_size": tp,
        f"{rollout}.data_parallel_size": dp,
        f"{rollout}.pipeline_model_parallel_size": pp,
    }
    if "reward" in case:
        pool = "reward.reward_model"
        said |= {f"{pool}.enable": True, f"{pool}.enable_resource_pool": True}
        said |= dict(zip((f"{pool}.nnodes", f"{pool}.n_gpus_per_node"), case["reward"]))
    if "standalone" in case:
        said["trainer.v1.trainer_mode"] = "separate_async"
        said |= dict(zip((f"{rollout}.nnodes", f"{rollout}.n_gpus_per_node"), case["standalone"]))
    said["gpus_per_node"] = case["gpus_of_node"]
    return "python3 -m verl.trainer.main_ppo", said, "text"


def slime(case):
    said = {
        "--actor-num-nodes": case["actor"][0],
        "--actor-num-gpus-per-node": case["actor"][1],
        "--rollout-num-gpus": case["rollout"],
        "--rollout-num-gpus-per-engine": case["engine"],
        "--num-gpus-per-node": case["gpus_of_node"],
        "--prefill-num-servers": case.get("prefill"),
        "--advantage-estimator": "ppo" if case.get("critic") else "grpo",
        "--colocate": case.get("colocate") or None,
    }
    return "python3 train.py", said, "numbers"


def nemo_rl(case):
    nodes, gpus = case.get("generation", (None, None))
    own = "policy.generation"
    said = {
        "cluster.num_nodes": case["nodes"],
        "cluster.gpus_per_node": case["each"],
        f"{own}.colocated.enabled": case["colocated"],
        f"{own}.colocated.resources.num_nodes": nodes,
        f"{own}.colocated.resources.gpus_per_node": gpus,
        f"{own}.vllm_cfg.tensor_parallel_size": case["engine"][0],
        f"{own}.vllm_cfg.pipeline_parallel_size": case["engine"][1],
    }
    if "reward" in case:
        said["data.default.env_name"] = "reward_model"
        resources = "env.reward_model.resources"
        names = (f"{resources}.num_nodes", f"{resources}.gpus_per_node")
        said |= dict(zip(names, case["reward"]))
    return "", said, "domains"


def openrlhf(case):
    names = {"actor": "actor", "ref": "ref", "critic": "critic", "reward": "reward"}
    said = {}
    for name in names:
        if name in case:
            nodes, gpus = case[name]
            said |= {f"--{name}.num_nodes": nodes, f"--{name}.num_gpus_per_node": gpus}
    said |= {f"--train.colocate_{word}": True for word in case["together"]}
    said |= {"--train.async_enable": True} if case.get("async") else {}
    said |= {} if "ref" in case else {"--algo.kl.init_coef": 0}
    said["--algo.advantage.estimator"] = "gae" if "critic" in case else "group_norm"
    said |= {} if "reward" in case else {"--reward.remote_url": "http://host"}
    said |= dict(zip(("--vllm.num_engines", "--vllm.tensor_parallel_size"), case["vllm"]))
    said["gpus_per_node"] = case["cluster"][1]
    return "python3 -m openrlhf.cli.train_ppo_ray", said, "text"


def _word(key, value):
    """A setting as it stands in a command."""
    if key[:2] != "--":
        return f"{key}={value}"
    return key if value is True else f"{key} {value}"


def plan_of(name, case):
    start, said, rule = READERS[name](case)
    given = {key: str(said.pop(key)) for key in ("gpus_per_node",) if key in said}
    said = {key: value for key, value in said.items() if value is not None}
    if not start:
        text = "\n".join(f"{key}: {str(value).lower()}" for key, value in said.items())
    else:
        text = " ".join([start, *(_word(key, value) for key, value in said.items())])
    return read_plan(text, given).plan, rule


READERS = {"verl": verl, "slime": slime, "nemo_rl": nemo_rl, "openrlhf": openrlhf}
NAMES = {"ref": "reference", "reward_pool": "reward"}


@pytest.mark.parametrize("name", READERS)
def test_ranks_of_every_role_are_those_of_the_frameworks_own_code(name):
    cases = CASES[name]["cases"]
    assert len(cases) >= 10
    for case in cases:
        plan, rule = plan_of(name, case)
        each = case.get("gpus_of_node") or case["cluster"][1]
        addresses = case.get("addresses") or [f"10.0.0.{n + 1}" for n in range(case["cluster"][0])]
        places = case.get("domains") or addresses
        order = node_order(places, rule)
        found = {}
        for role in plan.roles:
            nodes, gpus = role.ranks // plan.gpus_per_node, role.ranks % plan.gpus_per_node
            assert plan.gpus_per_node <= each
            found[role.name] = [order[n] * each + g for n, g in zip(nodes.tolist(), gpus.tolist())]
        for role, expected in case["ranks"].items():
            own = NAMES.get(role, role)
            runs = [run.split("-") for run in expected["ranks"].split(",")]
            ranks = [gpu for first, last in runs for gpu in range(int(first), int(last) + 1)]
            assert found[own] == ranks, (name, role, case)
            if "engine" in expected and role != "reward_pool":
                assert plan.role(own).layout.joint_gpus == expected["engine"], (name, case)
