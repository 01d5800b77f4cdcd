"""Reinforcement learning: NeMo-RL, ROLL and verl, whose jobs have several layouts, one a role.

    NeMo-RL   the policy runs on Megatron or on DTensor, whichever is enabled
    ROLL      a section for each role, and in it the strategy with its sizes
    verl      Hydra overrides and files; the actor is what is trained

Sources: NVIDIA-NeMo/RL 7ea279a examples/configs/grpo_math_1B.yaml, rm.yaml; alibaba/ROLL 8eb27cc
roll/configs/ and examples/; volcengine/verl b178a3c verl/trainer/config/ (actor, engine, ref,
rollout, ppo_trainer.yaml), verl/workers/fsdp_workers.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .schema import MEGATRON_NAMES, Schema, under


def _nemo_chosen(stated: Mapping[str, str], roles: Iterable[str]) -> str:
    """The back end that is on; none where the file leaves that to the one it inherits from."""
    on = {role: stated.get(f"policy.{role}_cfg.enabled", "") for role in ("megatron", "dtensor")}
    if on["megatron"] == "true":
        return "megatron"
    return "dtensor" if on["megatron"] == "false" or on["dtensor"] == "true" else ""


def _nemo_job(stated: Mapping[str, str], role: str) -> str:
    role = role or _nemo_chosen(stated, ())
    return {"dtensor": "device-mesh", "generation": "vllm"}.get(role, "megatron")


NEMO_RL = Schema(
    "nemo-rl",
    "megatron",
    (
        ("policy.megatron_cfg",),
        ("policy.dtensor_cfg",),
        ("policy.train_global_batch_size",),
        ("policy.generation",),
        ("grpo", "cluster"),
        ("cluster.num_nodes", "cluster.gpus_per_node"),
    ),
    keys="""
        cluster.num_nodes                 nodes
        cluster.gpus_per_node             gpus_per_node
        policy.train_global_batch_size    global_batch
        policy.train_micro_batch_size     micro_batch
        policy.max_total_sequence_length  seq
        """,
    roles={
        "megatron": "policy.megatron_cfg",
        "dtensor": "policy.dtensor_cfg",
        "generation": "policy.generation.vllm_cfg",
    },
    role_keys=MEGATRON_NAMES
    + """
        tensor_parallel_size    tp
        pipeline_parallel_size  pp
        expert_parallel_size    ep
        """,
    chosen=_nemo_chosen,
    job_of=_nemo_job,
)


ROLES = (
    *("actor_train", "sft_train", "dpo_train", "student", "student_train", "critic"),
    *("actor_infer", "reference", "teacher", "reward"),
)


def _roll_chosen(stated: Mapping[str, str], roles: Iterable[str]) -> str:
    """The first role that trains and has a strategy."""
    names = (role for role in roles if f"{role}.strategy_args.strategy_name" in stated)
    return next(names, "actor_train")


def _roll_job(stated: Mapping[str, str], role: str) -> str:
    role = role or _roll_chosen(stated, ROLES)
    strategy = stated.get(f"{role}.strategy_args.strategy_name", "megatron")
    if strategy in ("vllm", "sglang"):
        return "vllm"
    return "megatron" if strategy.startswith("megatron") else "device-mesh"


ROLL = Schema(
    "roll",
    "megatron",
    tuple((f"{role}.strategy_args",) for role in ROLES),
    keys="""
        num_gpus_per_node  gpus_per_node
        num_nodes          nodes
        sequence_length    seq
        """,
    roles={role: role for role in ROLES},
    role_keys=under("strategy_args.strategy_config", MEGATRON_NAMES)
    + """
        strategy_args.strategy_config.tensor_parallel_size    tp
        strategy_args.strategy_config.pipeline_parallel_size  pp
        training_args.per_device_train_batch_size             micro_batch
        """,
    chosen=_roll_chosen,
    job_of=_roll_job,
)


_MEGATRON = "actor_rollout_ref.actor.megatron."


def _verl_job(stated: Mapping[str, str], role: str) -> str:
    """A server; Megatron where its sizes or its trainer are asked for; else PyTorch's FSDP."""
    if role == "rollout":
        return "vllm"
    section = "critic" if role == "critic" else "actor_rollout_ref.actor"
    strategy = stated.get(f"{section}.strategy", "")
    if strategy.startswith("fsdp"):
        return "device-mesh"
    named = any("megatron" in stated.get(name, "") for name in ("--config-name", "model_engine"))
    asked = any(path.startswith((_MEGATRON, f"{section}.megatron.")) for path in stated)
    return "megatron" if strategy == "megatron" or named or asked else "device-mesh"


VERL = Schema(
    "verl",
    "megatron",
    (("actor_rollout_ref",), ("verl.trainer",), ("verl.experimental",), ("recipe.dapo",)),
    keys="""
        trainer.nnodes              nodes
        trainer.n_gpus_per_node     gpus_per_node
        data.train_batch_size       global_batch
        data.micro_batch_size_per_gpu  micro_batch
        engine.tensor_model_parallel_size    tp
        engine.pipeline_model_parallel_size  pp
        engine.context_parallel_size         cp
        engine.expert_model_parallel_size    ep
        engine.expert_tensor_parallel_size   etp
        """,
    roles={
        "actor": "actor_rollout_ref.actor",
        "critic": "critic",
        "reference": "actor_rollout_ref.ref",
        "rollout": "actor_rollout_ref.rollout",
    },
    role_keys=under("megatron", MEGATRON_NAMES)
    + under("megatron.override_transformer_config", MEGATRON_NAMES)
    + """
        ppo_micro_batch_size_per_gpu       micro_batch
        log_prob_micro_batch_size_per_gpu  micro_batch
        tensor_model_parallel_size         tp
        pipeline_model_parallel_size       pp
        expert_parallel_size               ep
        """,
    follows={"reference": "actor"},
    chosen=lambda stated, roles: "actor",  # also where it says nothing: FSDP's has no sizes
    defaults=("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "config"),
    job_of=_verl_job,
)
