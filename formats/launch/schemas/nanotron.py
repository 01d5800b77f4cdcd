"""nanotron: the degrees under ``parallelism``, batches under ``tokens``.

Source: huggingface/nanotron 2411b02 src/nanotron/config/parallelism_config.py, config.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from .schema import Schema, table


def _job(stated: Mapping[str, str], role: str) -> str:
    experts = stated.get("parallelism.expert_parallel_size", "1")
    return "nanotron" if experts in ("1", "null") else "nanotron-moe"


NANOTRON = Schema(
    "nanotron",
    "nanotron",
    (("parallelism.dp", "parallelism.pp"), ("parallelism.pp_engine",), ("parallelism.tp_mode",)),
    keys=table(
        """
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
        """
    ),
    job_of=_job,
)
