"""ROLL: a section for each role, and in it the strategy with its sizes.

Source: alibaba/ROLL 8eb27cc roll/configs/ and examples/.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .schema import MEGATRON_NAMES, Schema, table, under

ROLES = (
    *("actor_train", "sft_train", "dpo_train", "student", "student_train", "critic"),
    *("actor_infer", "reference", "teacher", "reward"),
)


def _chosen(stated: Mapping[str, str], roles: Iterable[str]) -> str:
    """The first role that trains and has a strategy."""
    names = (role for role in roles if f"{role}.strategy_args.strategy_name" in stated)
    return next(names, "actor_train")


def _job(stated: Mapping[str, str], role: str) -> str:
    role = role or _chosen(stated, ROLES)
    strategy = stated.get(f"{role}.strategy_args.strategy_name", "megatron")
    if strategy in ("vllm", "sglang"):
        return "vllm"
    return "megatron" if strategy.startswith("megatron") else "device-mesh"


ROLL = Schema(
    "roll",
    "megatron",
    tuple((f"{role}.strategy_args",) for role in ROLES),
    keys=table(
        """
        num_gpus_per_node  gpus_per_node
        num_nodes          nodes
        sequence_length    seq
        """
    ),
    roles={role: role for role in ROLES},
    role_keys={
        **under("strategy_args.strategy_config", MEGATRON_NAMES),
        **table(
            """
            strategy_args.strategy_config.tensor_parallel_size    tp
            strategy_args.strategy_config.pipeline_parallel_size  pp
            training_args.per_device_train_batch_size             micro_batch
            """
        ),
    },
    chosen=_chosen,
    job_of=_job,
)
