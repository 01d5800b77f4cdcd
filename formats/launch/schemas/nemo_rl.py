"""NeMo-RL: the policy runs on Megatron or on DTensor, whichever is enabled.

Source: NVIDIA-NeMo/RL 7ea279a examples/configs/grpo_math_1B.yaml, rm.yaml.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .schema import MEGATRON_NAMES, Schema, table


def _chosen(stated: Mapping[str, str], roles: Iterable[str]) -> str:
    """The back end that is on; none where the file leaves that to the one it inherits from."""
    on = {role: stated.get(f"policy.{role}_cfg.enabled", "") for role in ("megatron", "dtensor")}
    if on["megatron"] == "true":
        return "megatron"
    return "dtensor" if on["megatron"] == "false" or on["dtensor"] == "true" else ""


def _job(stated: Mapping[str, str], role: str) -> str:
    role = role or _chosen(stated, ())
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
    keys=table(
        """
        cluster.num_nodes                 nodes
        cluster.gpus_per_node             gpus_per_node
        policy.train_global_batch_size    global_batch
        policy.train_micro_batch_size     micro_batch
        policy.max_total_sequence_length  seq
        """
    ),
    roles={
        "megatron": "policy.megatron_cfg",
        "dtensor": "policy.dtensor_cfg",
        "generation": "policy.generation.vllm_cfg",
    },
    role_keys={
        **table(MEGATRON_NAMES),
        **table(
            """
            tensor_parallel_size    tp
            pipeline_parallel_size  pp
            expert_parallel_size    ep
            """
        ),
    },
    chosen=_chosen,
    job_of=_job,
)
