"""Servers of models: vLLM and SGLang. A server has as many GPUs as its degrees make.

Sources: vllm-project/vllm vllm/engine/arg_utils.py (EngineArgs.add_cli_args) and
sgl-project/sglang python/sglang/srt/server_args.py, options as of 2025.
"""

from __future__ import annotations

from .schema import Schema, table

VLLM = Schema(
    "vllm",
    "vllm",
    (("vllm serve",), ("vllm.entrypoints",)),
    options=table(
        """
        tensor-parallel-size            tp
        -tp                             tp
        pipeline-parallel-size          pp
        -pp                             pp
        data-parallel-size              shard
        -dp                             shard
        prefill-context-parallel-size   cp
        -pcp                            cp
        decode-context-parallel-size    dcp
        -dcp                            dcp
        enable-expert-parallel          expert_parallel  switch
        nnodes                          nodes
        max-model-len                   seq
        """
    ),
    known=True,
)

SGLANG = Schema(
    "sglang",
    "vllm",
    (("sglang.launch_server",), ("sglang serve",)),
    options=table(
        """
        tp-size                 tp
        tp                      tp
        tensor-parallel-size    tp
        pp-size                 pp
        pp                      pp
        pipeline-parallel-size  pp
        dp-size                 dp_shard
        dp                      dp_shard
        data-parallel-size      dp_shard
        ep-size                 served_ep
        ep                      served_ep
        expert-parallel-size    served_ep
        enable-dp-attention     dp_attention  switch
        nnodes                  nodes
        context-length          seq
        """
    ),
    known=True,
)
