"""gpt-neox: flat keys, with dashes or underscores, in YAML or in its JSON with comments.

Source: EleutherAI/gpt-neox ea7aefd megatron/neox_arguments/neox_args.py, deepspeed_args.py.
"""

from __future__ import annotations

from .schema import Schema, table

NEOX = Schema(
    "gpt-neox",
    "megatron-deepspeed",
    (
        ("pipe_parallel_size",),
        ("pipe-parallel-size",),
        ("model_parallel_size",),
        ("model-parallel-size",),
        ("make_vocab_size_divisible_by", "num_layers"),
        ("attention_config",),
        ("attention-config",),
        ("scaled_upper_triang_masked_softmax_fusion",),
        ("scaled-upper-triang-masked-softmax-fusion",),
    ),
    keys=table(
        """
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
        """
    ),
)
