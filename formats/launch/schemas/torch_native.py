"""Trainers on PyTorch's own meshes: torchtune, axolotl, LLaMA-Factory, Accelerate.

Sources: pytorch/torchtune bd2a0fc recipes/full_finetune_distributed.py; axolotl-ai-cloud/axolotl
067b021 docs/nd_parallelism.qmd; hiyouga/LLaMA-Factory ff6d4d1 examples/; huggingface/accelerate
16cb6eb src/accelerate/parallelism_config.py, commands/launch.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from .schema import MEGATRON_NAMES, Schema, table

TORCHTUNE = Schema(
    "torchtune",
    "device-mesh",
    (("torchtune",), ("tune run",)),
    keys=table(
        """
        tensor_parallel_dim          tp
        context_parallel_dim         cp
        data_parallel_shard_dim      shard        degree
        data_parallel_replicate_dim  replicate
        batch_size                   micro_batch
        tokenizer.max_seq_len        seq
        """
    ),
)

AXOLOTL = Schema(
    "axolotl",
    "device-mesh",
    (
        ("base_model", "datasets"),
        ("base_model", "micro_batch_size"),
        ("base_model", "sequence_len"),
        ("axolotl.cli",),
    ),
    keys=table(
        """
        tensor_parallel_size       tp
        context_parallel_size      cp
        sequence_parallel_degree   cp
        dp_shard_size              shard
        dp_replicate_size          replicate
        micro_batch_size           micro_batch
        sequence_len               seq
        """
    ),
)


def _factory_job(stated: Mapping[str, str], role: str) -> str:
    return "megatron" if "tensor_model_parallel_size" in stated else "device-mesh"


LLAMA_FACTORY = Schema(
    "llama-factory",
    "device-mesh",
    (("finetuning_type",), ("model_name_or_path", "cutoff_len"), ("llamafactory-cli",)),
    keys=table(
        """
        per_device_train_batch_size  micro_batch
        cutoff_len                   seq
        """
    )
    | table(MEGATRON_NAMES),
    job_of=_factory_job,
)


def _accelerate_job(stated: Mapping[str, str], role: str) -> str:
    return "megatron" if stated.get("distributed_type", "") == "MEGATRON_LM" else "device-mesh"


ACCELERATE = Schema(
    "accelerate",
    "device-mesh",
    (
        ("compute_environment",),
        ("distributed_type", "fsdp_config"),
        ("distributed_type", "num_processes"),
        ("num_machines", "num_processes"),
    ),
    keys=table(
        """
        num_machines                                            nodes
        num_processes                                           world
        parallelism_config.parallelism_config_tp_size           tp
        parallelism_config.parallelism_config_cp_size           cp
        parallelism_config.parallelism_config_dp_shard_size     dp_shard
        parallelism_config.parallelism_config_dp_replicate_size replicate
        megatron_lm_config.megatron_lm_tp_degree                tp
        megatron_lm_config.megatron_lm_pp_degree                pp
        megatron_lm_config.megatron_lm_expert_model_parallel_size  ep
        megatron_lm_config.megatron_lm_context_parallel_size    cp
        """
    ),
    job_of=_accelerate_job,
)
