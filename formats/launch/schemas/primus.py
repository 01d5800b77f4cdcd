"""Primus: overrides of Megatron's arguments or of torchtitan's sections, for each module.

Source: AMD-AIG-AIMA/Primus 2d42400 examples/megatron/configs/, examples/torchtitan/configs/.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..flags import OPTIONS
from .schema import MEGATRON_NAMES, Schema, table


def _job(stated: Mapping[str, str], role: str) -> str:
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
        **table(MEGATRON_NAMES),
        **table(
            """
            parallelism.tensor_parallel_degree          tp
            parallelism.pipeline_parallel_degree        pp
            parallelism.context_parallel_degree         cp
            parallelism.expert_parallel_degree          ep
            parallelism.data_parallel_replicate_degree  replicate
            parallelism.data_parallel_shard_degree      shard        degree
            training.local_batch_size                   local_batch
            training.global_batch_size                  global_batch  degree
            training.seq_len                            seq
            """
        ),
    },
    within=("modules", "*", "overrides"),
    inherits=("config", "model", "extends", "bases"),
    job_of=_job,
)
