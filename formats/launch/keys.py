"""What the keys of configuration files and overrides mean, as data; sources as `flags`."""

from __future__ import annotations

from dataclasses import dataclass

from .flags import Row, rows


@dataclass(frozen=True)
class Key:
    """A key of a file or of an override, and the sections in which it means that."""

    row: Row
    sections: tuple[str, ...]


_MODEL = ("", "model", "strategy", "config", "megatron_cfg", "model_parallel", "language_model")
_TRAIN = ("", "train", "data", "model", "training")


def _keys(speaks: str, sections: tuple[str, ...], table: str) -> dict[str, Key]:
    return {name: Key(row, sections) for name, row in rows(speaks, table).items()}


KEYS: dict[str, Key] = {
    **_keys(
        "nemo",
        _MODEL,
        """
        tensor_model_parallel_size               tp
        pipeline_model_parallel_size             pp
        context_parallel_size                    cp
        expert_model_parallel_size               ep
        expert_tensor_parallel_size              etp
        hierarchical_context_parallel_sizes      levels      sizes
        hybrid_context_parallel                  hybrid      switch
        virtual_pipeline_model_parallel_size     vpp
        pipeline_model_parallel_layout           layout      layout
        num_layers_in_first_pipeline_stage       first
        num_layers_in_last_pipeline_stage        last
        account_for_embedding_in_pipeline_split  embedding   switch
        account_for_loss_in_pipeline_split       loss        switch
        mtp_num_layers                           mtp         count
        num_moe_experts                          experts
        """,
    ),
    **_keys(
        "nemo",
        ("trainer", "strategy", ""),
        """
        tensor_parallelism               tp
        pipeline_parallelism             pp
        context_parallelism              cp
        expert_parallelism               ep
        virtual_pipeline_parallelism     vpp
        num_gpus_per_node                gpus_per_node
        """,
    ),
    **_keys("nemo", ("dist", "strategy", "model", ""), "use_tp_pp_dp_mapping mapping switch"),
    **_keys("nemo", ("ddp", "strategy", ""), "num_distributed_optimizer_instances instances"),
    **_keys("nemo", ("trainer",), "num_nodes nodes\ndevices gpus_per_node devices"),
    **_keys("", _MODEL, "num_layers layers"),
    **_keys("", ("model", "dataset", "data", "config", ""), "seq_length seq"),
    **_keys("nemo", ("model",), "encoder_seq_length seq"),
    **_keys("", _TRAIN, "micro_batch_size micro_batch\nglobal_batch_size global_batch degree"),
    **_keys(
        "torchtitan",
        ("parallelism",),
        """
        tensor_parallel_degree                   tp
        pipeline_parallel_degree                 pp
        context_parallel_degree                  cp
        expert_parallel_degree                   ep
        expert_tensor_parallel_degree            etp
        data_parallel_replicate_degree           replicate
        data_parallel_shard_degree               shard       degree
        pipeline_parallel_microbatch_size        micro_batch
        """,
    ),
    **_keys(
        "",
        ("training",),
        """
        seq_len                                seq
        local_batch_size                       local_batch
        max_context_length                     seq
        num_tokens_per_microbatch_per_dp_rank  micro_tokens
        num_tokens_per_train_step              step_tokens  degree
        """,
    ),
    **_keys(
        "",
        _MODEL,
        """
        hidden_size             hidden
        ffn_hidden_size         ffn
        num_attention_heads     heads
        num_query_groups        kv_heads
        kv_channels             head_dim
        sequence_parallel       sequence_parallel  switch
        recompute_granularity   recompute          word
        recompute_method        recompute_method   word
        recompute_num_layers    recompute_layers
        """,
    ),
    **_keys("", ("ddp", "optim", ""), "use_distributed_optimizer distributed_optimizer switch"),
    **_keys("", ("optimizer", "optim", "ddp", ""), "optimizer_cpu_offload offload switch"),
    **_keys(
        "", ("optimizer", "optim", "ddp", ""), "optimizer_offload_fraction offload_fraction word"
    ),
    **_keys("", ("training",), "enable_cpu_offload offload_param switch"),
    **_keys("", ("zero_optimization",), "stage zero count\ncpu_offload offload_optimizer switch"),
    **_keys("", ("offload_optimizer",), "offload_optimizer.device offload_optimizer word"),
    **_keys("", ("offload_param",), "offload_param.device offload_param word"),
    **_keys("deepspeed", ("tensor_parallel",), "autotp_size tp count"),
    **_keys(
        "deepspeed",
        ("",),
        """
        train_batch_size                         global_batch  size
        train_micro_batch_size_per_gpu           micro_batch   size
        use_data_before_expert_parallelism       data_first    switch
        """,
    ),
}
"""Keys by their last part, or their last two."""

SECTIONS_OF = {"zero_optimization": "deepspeed", "tensor_parallel": "deepspeed"}
"""Sections that alone say which framework a file is of."""
