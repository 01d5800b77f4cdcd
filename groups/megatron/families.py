"""What every group of Megatron's is: its request, its name in parallel_state, what it carries.

A family is a name of `process_groups` without its number: hcp stands for hcp-l0,
hcp-l1 ..., hybrid-dp-cp for hybrid-dp-cp-2, hybrid-dp-cp-4 ....

Source: NVIDIA/Megatron-LM, megatron/core/parallel_state.py (names and NCCL option keys of
megatron-core 0.16.1; gtp as in main at d98e8a64).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """One row of the table of groups; ``kind`` is empty for a group that is cut out of others."""

    grid: str  # "dense" or "expert"
    kind: str  # axes of that grid, which are etp, ep, edp and pp in the expert grid
    parallel_state: str  # its name in parallel_state.py, without the leading underscore
    option: str  # its key in NCCL options and --high-priority-stream-groups
    carries: str


_TABLE = """
tp             dense  tp       tp       TENSOR_MODEL_PARALLEL_GROUP
    activations and their gradients of column- and row-parallel layers; batch broadcast
cp             dense  cp       cp       CONTEXT_PARALLEL_GROUP
    keys and values between the chunks of a sequence
dp             dense  dp       dp       DATA_PARALLEL_GROUP
    which samples a rank reads; copies of a checkpoint
dp-cp          dense  dp-cp    dp_cp    DATA_PARALLEL_GROUP_WITH_CP
    gradients of dense weights, gathered parameters, the averaged loss
pp             dense  pp       pp       PIPELINE_MODEL_PARALLEL_GROUP
    activations to the next stage, their gradients back
mp             dense  tp-pp    mp       MODEL_PARALLEL_GROUP
    gradient norm and overflow flag when the optimizer is not distributed
tp-cp          dense  tp-cp    tp_cp    TENSOR_AND_CONTEXT_PARALLEL_GROUP
    the router's load-balancing loss of a sequence
tp-dp          dense  tp-dp    tp_dp    TENSOR_AND_DATA_PARALLEL_GROUP
    FP8 maxima where cp does not count
tp-dp-cp       dense  tp-dp-cp tp_dp_cp TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP
    FP8 maxima; the router's expert bias and global load balancing
embd           dense  -        embd     EMBEDDING_GROUP
    gradient of the word embedding that first and last stage share
pos-embd       dense  -        pos_embd POSITION_EMBEDDING_GROUP
    gradient of the position embedding
ep             expert ep       ep       EXPERT_MODEL_PARALLEL_GROUP
    tokens to the ranks that hold their experts, and back
etp            expert etp      ep_tp    EXPERT_TENSOR_PARALLEL_GROUP
    the tokens of an expert whose matrices are split
tp-ep          expert etp-ep   tp_ep_mp EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP
    tokens of the all-gather dispatcher, token counts
tp-ep-pp       expert etp-ep-pp tp_ep_pp EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP
    what mp carries, for expert weights
edp            expert edp      ep_dp    EXPERT_DATA_PARALLEL_GROUP
    gradients of expert weights
intra-dp-cp    dense  -        intra_dp_cp INTRA_PARTIAL_DATA_PARALLEL_GROUP_WITH_CP
    gradients and parameters inside one instance of the distributed optimizer
intra-edp      expert -        intra_ep_dp INTRA_PARTIAL_EXPERT_DATA_PARALLEL_GROUP
    the same for expert weights
inter-edp      expert -        inter_ep_dp INTER_PARTIAL_EXPERT_DATA_PARALLEL_GROUP
    gradients between optimizer instances, of experts and of dense weights
intra-dist-opt expert -        intra_dist_opt_instance INTRA_DISTRIBUTED_OPTIMIZER_INSTANCE_GROUP
    gradient norm with the distributed optimizer
hcp            dense  -        hcp      HIERARCHICAL_CONTEXT_PARALLEL_GROUPS
    all-to-all inside the first level, keys and values between the others
hybrid-dp-cp   dense  -        dp_cp    HYBRID_DP_CP_GROUPS
    keys and values of sequences that get this many ranks
gtp            dense  gtp_remat -        GTP_WEIGHT_REMAT_GROUP
    slices of a weight, gathered before each use; its gradient, scattered
gtp-dp         dense  gtp_remat-dp -        DATA_PARALLEL_GROUP_WITH_GTP_REMAT
    which samples a rank reads: gtp ranks read different ones
gtp-dp-cp      dense  gtp_remat-dp-cp -        DATA_PARALLEL_GROUP_WITH_CP_WITH_GTP_REMAT
    the averaged loss of all that read or share samples
egtp           expert gtp_remat -        EXPERT_GTP_WEIGHT_REMAT_GROUP
    slices of an expert's weight, gathered before each use
egtp-edp       expert gtp_remat-edp -        EXPERT_DATA_PARALLEL_GROUP_WITH_GTP_REMAT
    what edp carries, with egtp joined
tp-ep-egtp-pp  expert etp-ep-gtp_remat-pp - EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP_WITH_EGTP
    what tp-ep-pp carries, with egtp joined
"""
"""Name, grid, kind, option and name in parallel_state; then what it carries. A dash: none."""


def _rows(table: str) -> Iterator[tuple[str, Family]]:
    lines = table.strip().splitlines()
    for row, carries in zip(lines[::2], lines[1::2]):
        name, grid, kind, option, parallel_state = (cell.strip("-") for cell in row.split())
        yield name, Family(grid, kind, parallel_state, option, carries.strip())


FAMILIES: dict[str, Family] = dict(_rows(_TABLE))
"""Every family by its name, the dense grid's first."""


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
