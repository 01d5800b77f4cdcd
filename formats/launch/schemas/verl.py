"""verl: Hydra overrides and files; the actor is what is trained.

Source: volcengine/verl b178a3c verl/trainer/config/ (actor, engine, ref, rollout,
ppo_trainer.yaml), verl/workers/fsdp_workers.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .schema import MEGATRON_NAMES, Schema, table, under

_MEGATRON = "actor_rollout_ref.actor.megatron."


def _actor(stated: Mapping[str, str], roles: Iterable[str]) -> str:
    """The actor, also where it says nothing: FSDP's has no sizes of its own."""
    return "actor"


def _job(stated: Mapping[str, str], role: str) -> str:
    """A server; Megatron where its sizes or its trainer are asked for; else PyTorch's FSDP."""
    if role == "rollout":
        return "vllm"
    section = "critic" if role == "critic" else "actor_rollout_ref.actor"
    strategy = stated.get(f"{section}.strategy", "")
    if strategy.startswith("fsdp"):
        return "device-mesh"
    named = "megatron" in stated.get("--config-name", "") or "megatron" in stated.get(
        "model_engine", ""
    )
    asked = any(path.startswith((_MEGATRON, f"{section}.megatron.")) for path in stated)
    return "megatron" if strategy == "megatron" or named or asked else "device-mesh"


VERL = Schema(
    "verl",
    "megatron",
    (("actor_rollout_ref",), ("verl.trainer",), ("verl.experimental",), ("recipe.dapo",)),
    keys=table(
        """
        trainer.nnodes              nodes
        trainer.n_gpus_per_node     gpus_per_node
        data.train_batch_size       global_batch
        data.micro_batch_size_per_gpu  micro_batch
        engine.tensor_model_parallel_size    tp
        engine.pipeline_model_parallel_size  pp
        engine.context_parallel_size         cp
        engine.expert_model_parallel_size    ep
        engine.expert_tensor_parallel_size   etp
        """
    ),
    roles={
        "actor": "actor_rollout_ref.actor",
        "critic": "critic",
        "reference": "actor_rollout_ref.ref",
        "rollout": "actor_rollout_ref.rollout",
    },
    role_keys={
        **under("megatron", MEGATRON_NAMES),
        **under("megatron.override_transformer_config", MEGATRON_NAMES),
        **table(
            """
            ppo_micro_batch_size_per_gpu  micro_batch
            log_prob_micro_batch_size_per_gpu  micro_batch
            tensor_model_parallel_size    tp
            pipeline_model_parallel_size  pp
            expert_parallel_size          ep
            """
        ),
    },
    follows={"reference": "actor"},
    chosen=_actor,
    defaults=("ppo_trainer", "ppo_megatron_trainer", "sft_trainer", "config"),
    job_of=_job,
)
