"""Trainers: gpt-neox, nanotron, Primus, slime, and those on PyTorch's own meshes.

    gpt-neox       flat keys, with dashes or underscores, in YAML or in its JSON with comments
    nanotron       the degrees under ``parallelism``, batches under ``tokens``
    Primus         overrides of Megatron's arguments or of torchtitan's sections, for each module
    slime          Megatron's options, with the machines of the actor by names of its own

Sources: EleutherAI/gpt-neox ea7aefd megatron/neox_arguments/neox_args.py, deepspeed_args.py;
huggingface/nanotron 2411b02 src/nanotron/config/parallelism_config.py, config.py;
AMD-AIG-AIMA/Primus 2d42400 examples/megatron/configs/, examples/torchtitan/configs/; THUDM/slime
624b824 slime/utils/arguments.py; pytorch/torchtune bd2a0fc recipes/full_finetune_distributed.py;
axolotl-ai-cloud/axolotl 067b021 docs/nd_parallelism.qmd; hiyouga/LLaMA-Factory ff6d4d1 examples/;
huggingface/accelerate 16cb6eb src/accelerate/parallelism_config.py, commands/launch.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..flags import OPTIONS, rows
from .schema import MEGATRON_NAMES, Schema


def both(*names: str) -> list[tuple[str]]:
    """Marks of one key each, with underscores and with dashes."""
    return [(one,) for name in names for one in (name, name.replace("_", "-"))]


NEOX = Schema(
    "gpt-neox",
    "megatron-deepspeed",
    (
        *both("pipe_parallel_size", "model_parallel_size", "attention_config"),
        *both("scaled_upper_triang_masked_softmax_fusion"),
        ("make_vocab_size_divisible_by", "num_layers"),
    ),
    keys="""
        pipe_parallel_size              pp             count
        model_parallel_size             tp
        num_nodes                       nodes          degree
        num_gpus                        gpus_per_node
        global_num_gpus                 world
        num_layers                      layers
        train_micro_batch_size_per_gpu  micro_batch
        train_batch_size                global_batch
        seq_length                      seq
        hidden_size                     hidden
        num_attention_heads             heads
        num_kv_heads                    kv_heads
        intermediate_size               ffn
        sequence_parallel               sequence_parallel  switch
        zero_optimization.stage         zero               count
        """,
)


def _nanotron_job(stated: Mapping[str, str], role: str) -> str:
    experts = stated.get("parallelism.expert_parallel_size", "1")
    return "nanotron" if experts in ("1", "null") else "nanotron-moe"


NANOTRON = Schema(
    "nanotron",
    "nanotron",
    (("parallelism.dp", "parallelism.pp"), ("parallelism.pp_engine",), ("parallelism.tp_mode",)),
    keys="""
        parallelism.dp                          shard
        parallelism.tp                          tp
        parallelism.pp                          pp
        parallelism.context_parallel_size       cp
        parallelism.expert_parallel_size        ep
        tokens.micro_batch_size                 micro_batch
        tokens.batch_accumulation_per_replica   accumulation
        tokens.sequence_length                  seq
        model.model_config.num_hidden_layers    layers
        model.model_config.hidden_size          hidden
        model.model_config.intermediate_size    ffn
        model.model_config.num_attention_heads  heads
        model.model_config.num_key_value_heads  kv_heads
        model.model_config.vocab_size           vocabulary
        optimizer.zero_stage                    zero  count
        """,
    job_of=_nanotron_job,
)


def _primus_job(stated: Mapping[str, str], role: str) -> str:
    titan = any(
        path.endswith(".framework") and value == "torchtitan" for path, value in stated.items()
    )
    return "torchtitan" if titan else "megatron"


PRIMUS = Schema(
    "primus",
    "megatron",
    (("modules.pre_trainer",), ("modules.post_trainer",), ("modules.sft_trainer",)),
    keys={
        **{name.replace("-", "_"): row for name, row in OPTIONS.items()},
        **rows(
            "",
            MEGATRON_NAMES
            + """
            parallelism.tensor_parallel_degree          tp
            parallelism.pipeline_parallel_degree        pp
            parallelism.context_parallel_degree         cp
            parallelism.expert_parallel_degree          ep
            parallelism.data_parallel_replicate_degree  replicate
            parallelism.data_parallel_shard_degree      shard        degree
            training.local_batch_size                   local_batch
            training.global_batch_size                  global_batch  degree
            training.seq_len                            seq
            """,
        ),
    },
    within=("modules", "*", "overrides"),
    inherits=("config", "model", "extends", "bases"),
    job_of=_primus_job,
)


SLIME = Schema(
    "slime",
    "megatron",
    (("--actor-num-nodes",), ("--actor-num-gpus-per-node",)),
    options="""
        actor-num-nodes          nodes
        actor-num-gpus-per-node  gpus_per_node
        """,
)


TORCHTUNE = Schema(
    "torchtune",
    "device-mesh",
    (("torchtune",), ("tune run",)),
    keys="""
        tensor_parallel_dim          tp
        context_parallel_dim         cp
        data_parallel_shard_dim      shard        degree
        data_parallel_replicate_dim  replicate
        batch_size                   micro_batch
        tokenizer.max_seq_len        seq
        """,
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
    keys="""
        tensor_parallel_size       tp
        context_parallel_size      cp
        sequence_parallel_degree   cp
        dp_shard_size              shard
        dp_replicate_size          replicate
        micro_batch_size           micro_batch
        sequence_len               seq
        """,
)


LLAMA_FACTORY = Schema(
    "llama-factory",
    "device-mesh",
    (("finetuning_type",), ("model_name_or_path", "cutoff_len"), ("llamafactory-cli",)),
    keys=MEGATRON_NAMES
    + """
        per_device_train_batch_size  micro_batch
        cutoff_len                   seq
        """,
    job_of=lambda stated, role: (
        "megatron" if "tensor_model_parallel_size" in stated else "device-mesh"
    ),
)


ACCELERATE = Schema(
    "accelerate",
    "device-mesh",
    (
        ("compute_environment",),
        ("distributed_type", "fsdp_config"),
        ("distributed_type", "num_processes"),
        ("num_machines", "num_processes"),
    ),
    keys="""
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
        """,
    job_of=lambda stated, role: (
        "megatron" if stated.get("distributed_type", "") == "MEGATRON_LM" else "device-mesh"
    ),
)
