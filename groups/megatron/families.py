"""What every group of Megatron's is: its request, its name in parallel_state, what it carries.

A family is a name of `process_groups` without its number: hcp stands for hcp-l0,
hcp-l1 ..., hybrid-dp-cp for hybrid-dp-cp-2, hybrid-dp-cp-4 ....

Source: NVIDIA/Megatron-LM, megatron/core/parallel_state.py (names and NCCL option keys of
megatron-core 0.16.1; gtp as in main at d98e8a64).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One row of the table of groups; ``kind`` is empty for a group that is cut out of others."""

    grid: str  # "dense" or "expert"
    kind: str  # axes of that grid, which are etp, ep, edp and pp in the expert grid
    parallel_state: str  # its name in parallel_state.py, without the leading underscore
    option: str  # its key in NCCL options and --high-priority-stream-groups
    carries: str


FAMILIES: dict[str, Family] = {
    "tp": Family(
        "dense",
        "tp",
        "TENSOR_MODEL_PARALLEL_GROUP",
        "tp",
        "activations and their gradients of column- and row-parallel layers; batch broadcast",
    ),
    "cp": Family(
        "dense",
        "cp",
        "CONTEXT_PARALLEL_GROUP",
        "cp",
        "keys and values between the chunks of a sequence",
    ),
    "dp": Family(
        "dense",
        "dp",
        "DATA_PARALLEL_GROUP",
        "dp",
        "which samples a rank reads; copies of a checkpoint",
    ),
    "dp-cp": Family(
        "dense",
        "dp-cp",
        "DATA_PARALLEL_GROUP_WITH_CP",
        "dp_cp",
        "gradients of dense weights, gathered parameters, the averaged loss",
    ),
    "pp": Family(
        "dense",
        "pp",
        "PIPELINE_MODEL_PARALLEL_GROUP",
        "pp",
        "activations to the next stage, their gradients back",
    ),
    "mp": Family(
        "dense",
        "tp-pp",
        "MODEL_PARALLEL_GROUP",
        "mp",
        "gradient norm and overflow flag when the optimizer is not distributed",
    ),
    "tp-cp": Family(
        "dense",
        "tp-cp",
        "TENSOR_AND_CONTEXT_PARALLEL_GROUP",
        "tp_cp",
        "the router's load-balancing loss of a sequence",
    ),
    "tp-dp": Family(
        "dense",
        "tp-dp",
        "TENSOR_AND_DATA_PARALLEL_GROUP",
        "tp_dp",
        "FP8 maxima where cp does not count",
    ),
    "tp-dp-cp": Family(
        "dense",
        "tp-dp-cp",
        "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP",
        "tp_dp_cp",
        "FP8 maxima; the router's expert bias and global load balancing",
    ),
    "embd": Family(
        "dense",
        "",
        "EMBEDDING_GROUP",
        "embd",
        "gradient of the word embedding that first and last stage share",
    ),
    "pos-embd": Family(
        "dense",
        "",
        "POSITION_EMBEDDING_GROUP",
        "pos_embd",
        "gradient of the position embedding",
    ),
    "ep": Family(
        "expert",
        "ep",
        "EXPERT_MODEL_PARALLEL_GROUP",
        "ep",
        "tokens to the ranks that hold their experts, and back",
    ),
    "etp": Family(
        "expert",
        "etp",
        "EXPERT_TENSOR_PARALLEL_GROUP",
        "ep_tp",
        "the tokens of an expert whose matrices are split",
    ),
    "tp-ep": Family(
        "expert",
        "etp-ep",
        "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP",
        "tp_ep_mp",
        "tokens of the all-gather dispatcher, token counts",
    ),
    "tp-ep-pp": Family(
        "expert",
        "etp-ep-pp",
        "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP",
        "tp_ep_pp",
        "what mp carries, for expert weights",
    ),
    "edp": Family(
        "expert",
        "edp",
        "EXPERT_DATA_PARALLEL_GROUP",
        "ep_dp",
        "gradients of expert weights",
    ),
    "intra-dp-cp": Family(
        "dense",
        "",
        "INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP",
        "intra_dp_cp",
        "gradients and parameters inside one instance of the distributed optimizer",
    ),
    "intra-edp": Family(
        "expert",
        "",
        "INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
        "intra_ep_dp",
        "the same for expert weights",
    ),
    "inter-edp": Family(
        "expert",
        "",
        "INTER_PARTIAL_EXPERT_DATA_PARALLEL_GROUP",
        "inter_ep_dp",
        "gradients between optimizer instances, of experts and of dense weights",
    ),
    "intra-dist-opt": Family(
        "expert",
        "",
        "INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP",
        "intra_dist_opt_instance",
        "gradient norm with the distributed optimizer",
    ),
    "hcp": Family(
        "dense",
        "",
        "HIERARCHICAL_CONTEXT_PARALLEL_GROUPS",
        "hcp",
        "all-to-all inside the first level, keys and values between the others",
    ),
    "hybrid-dp-cp": Family(
        "dense",
        "",
        "HYBRID_DP_CP_GROUPS",
        "dp_cp",
        "keys and values of sequences that get this many ranks",
    ),
    "gtp": Family(
        "dense",
        "gtp_remat",
        "GTP_WEIGHT_REMAT_GROUP",
        "",
        "slices of a weight, gathered before each use; its gradient, scattered",
    ),
    "gtp-dp": Family(
        "dense",
        "gtp_remat-dp",
        "DATA_PARALLEL_GROUP_WITH_GTP_REMAT",
        "",
        "which samples a rank reads: gtp ranks read different ones",
    ),
    "gtp-dp-cp": Family(
        "dense",
        "gtp_remat-dp-cp",
        "DATA_PARALLEL_GROUP_WITH_CP_WITH_GTP_REMAT",
        "",
        "the averaged loss of all that read or share samples",
    ),
    "egtp": Family(
        "expert",
        "gtp_remat",
        "EXPERT_GTP_WEIGHT_REMAT_GROUP",
        "",
        "slices of an expert's weight, gathered before each use",
    ),
    "egtp-edp": Family(
        "expert",
        "gtp_remat-edp",
        "EXPERT_DATA_PARALLEL_GROUP_WITH_GTP_REMAT",
        "",
        "what edp carries, with egtp joined",
    ),
    "tp-ep-egtp-pp": Family(
        "expert",
        "etp-ep-gtp_remat-pp",
        "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP_WITH_EGTP",
        "",
        "what tp-ep-pp carries, with egtp joined",
    ),
}


def family(name: str) -> Family:
    """The family of a group by its own name.

    >>> family("hcp-l1").option, family("hybrid-dp-cp-4").option, family("edp").grid
    ('hcp', 'dp_cp', 'expert')

    Errors: KeyError for a name that Megatron does not have.
    """
    if name in FAMILIES:
        return FAMILIES[name]
    stem = name.rpartition("-")[0]
    if stem not in ("hcp", "hybrid-dp-cp"):
        raise KeyError(name)
    return FAMILIES[stem]
