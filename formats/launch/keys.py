"""What the keys of configuration files and overrides mean, as data; sources as `flags`."""

from __future__ import annotations

from dataclasses import dataclass

from .flags import Row, blocks


@dataclass(frozen=True)
class Key:
    """A key of a file or of an override, and the sections in which it means that."""

    row: Row
    sections: tuple[str, ...]


_KEYS = """
[nemo | - model strategy config megatron_cfg model_parallel language_model]
    tensor_model_parallel_size               tp
    pipeline_model_parallel_size             pp
    context_parallel_size                    cp
    expert_model_parallel_size               ep
    expert_tensor_parallel_size              etp
    hierarchical_context_parallel_sizes      levels     sizes
    hybrid_context_parallel                  hybrid     switch
    virtual_pipeline_model_parallel_size     vpp
    pipeline_model_parallel_layout           layout     layout
    num_layers_in_first_pipeline_stage       first
    num_layers_in_last_pipeline_stage        last
    account_for_embedding_in_pipeline_split  embedding  switch
    account_for_loss_in_pipeline_split       loss       switch
    mtp_num_layers                           mtp        count
    num_moe_experts                          experts
[nemo | trainer strategy -]
    tensor_parallelism            tp
    pipeline_parallelism          pp
    context_parallelism           cp
    expert_parallelism            ep
    virtual_pipeline_parallelism  vpp
    num_gpus_per_node             gpus_per_node
[nemo | dist strategy model -]
    use_tp_pp_dp_mapping  mapping  switch
[nemo | ddp strategy -]
    num_distributed_optimizer_instances  instances
[nemo | trainer]
    num_nodes  nodes
    devices    gpus_per_node  devices
[| - model strategy config megatron_cfg model_parallel language_model]
    num_layers             layers
    hidden_size            hidden
    ffn_hidden_size        ffn
    num_attention_heads    heads
    num_query_groups       kv_heads
    kv_channels            head_dim
    sequence_parallel      sequence_parallel  switch
    recompute_granularity  recompute          word
    recompute_method       recompute_method   word
    recompute_num_layers   recompute_layers
[| model dataset data config -]
    seq_length  seq
[nemo | model]
    encoder_seq_length  seq
[| - train data model training]
    micro_batch_size   micro_batch
    global_batch_size  global_batch  degree
[torchtitan | parallelism]
    tensor_parallel_degree             tp
    pipeline_parallel_degree           pp
    context_parallel_degree            cp
    expert_parallel_degree             ep
    expert_tensor_parallel_degree      etp
    data_parallel_replicate_degree     replicate
    data_parallel_shard_degree         shard        degree
    pipeline_parallel_microbatch_size  micro_batch
[| training]
    seq_len                                seq
    local_batch_size                       local_batch
    max_context_length                     seq
    num_tokens_per_microbatch_per_dp_rank  micro_tokens
    num_tokens_per_train_step              step_tokens    degree
    enable_cpu_offload                     offload_param  switch
[| ddp optim -]
    use_distributed_optimizer  distributed_optimizer  switch
[| optimizer optim ddp -]
    optimizer_cpu_offload       offload           switch
    optimizer_offload_fraction  offload_fraction  word
[| zero_optimization]
    stage        zero               count
    cpu_offload  offload_optimizer  switch
[| offload_optimizer]
    offload_optimizer.device  offload_optimizer  word
[| offload_param]
    offload_param.device  offload_param  word
[deepspeed | tensor_parallel]
    autotp_size  tp  count
[deepspeed | -]
    train_batch_size                    global_batch
    train_micro_batch_size_per_gpu      micro_batch
    use_data_before_expert_parallelism  data_first    switch
"""
KEYS = {
    name: Key(row, sections) for table, sections in blocks(_KEYS) for name, row in table.items()
}
"""Keys by their last part, or their last two."""

SECTIONS_OF = {"zero_optimization": "deepspeed", "tensor_parallel": "deepspeed"}
"""Sections that alone say which framework a file is of."""
