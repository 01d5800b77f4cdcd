"""Servers of models: vLLM and SGLang. A server has as many GPUs as its sizes make.

vLLM's experts are spread over all of a stage's GPUs or not at all; SGLang's attention may have data
and context parallel groups inside the tensor parallel group (`groups.serving`).

Sources: vllm-project/vllm 0c175ae vllm/config/parallel.py and vllm/engine/arg_utils.py
(EngineArgs.add_cli_args); sgl-project/sglang 469c63e python/sglang/srt/server_args.py.
"""

from __future__ import annotations

from .schema import Schema

VLLM = Schema(
    "vllm",
    "vllm",
    (("vllm serve",), ("vllm.entrypoints",), ("vllm-openai",)),
    options="""
        tensor-parallel-size            tp
        -tp                             tp
        pipeline-parallel-size          pp
        -pp                             pp
        data-parallel-size              dp_served
        -dp                             dp_served
        prefill-context-parallel-size   cp
        -pcp                            cp
        decode-context-parallel-size    dcp
        -dcp                            dcp
        enable-expert-parallel          expert_parallel  switch
        -ep                             expert_parallel  switch
        nnodes                          nodes
        -n                              nodes
        max-model-len                   seq
        """,
    known=True,
)

SGLANG = Schema(
    "sglang",
    "vllm",
    (("sglang.launch_server",), ("sglang serve",)),
    options="""
        tp-size                 tp
        tp                      tp
        tensor-parallel-size    tp
        pp-size                 pp
        pp                      pp
        pipeline-parallel-size  pp
        dp-size                 dp_served
        dp                      dp_served
        data-parallel-size      dp_served
        ep-size                 served_ep
        ep                      served_ep
        expert-parallel-size    served_ep
        enable-dp-attention     dp_attention  switch
        attn-cp-size                     served_cp
        attention-context-parallel-size  served_cp
        moe-dp-size             moe_dp
        moe-data-parallel-size  moe_dp
        dcp-size                dcp
        decode-context-parallel-size     dcp
        nnodes                  nodes
        context-length          seq
        """,
    known=True,
)
