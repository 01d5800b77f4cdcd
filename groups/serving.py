"""The groups of a server of one model: vLLM's and SGLang's, in their own order of ranks.

    vLLM     rank = tp + TP * (pcp + PCP * (pp + PP * dp))    dcp: runs inside tp
    SGLang   rank = tp + TP * (pp + PP * dp)                  inside tp, each its own way:
             tp = attn_tp + ATTN_TP * (attn_cp + ATTN_CP * attn_dp)
             tp = moe_tp + MOE_TP * (moe_ep + MOE_EP * moe_dp)

Sources: vllm-project/vllm 0c175ae vllm/distributed/parallel_state.py and sgl-project/sglang 0005973
python/sglang/srt/distributed/parallel_state.py, initialize_model_parallel of each.

>>> groups = sglang_groups(tp=4, dp=2, dp_attention=True, ep=4)
>>> groups["attn_tp"].groups().tolist(), groups["attn_dp"].groups().tolist()
([[0, 1], [2, 3]], [[0, 2], [1, 3]])
"""

from __future__ import annotations

import math

from .errors import refusal
from .grouping import Grouping
from .mesh import MAX_RANKS, Axis, Mesh, too_many_ranks, whole_number


def vllm_groups(
    tp: int = 1, pp: int = 1, pcp: int = 1, dp: int = 1, dcp: int = 1, experts: bool = False
) -> dict[str, Grouping]:
    """Groups of vLLM by name; those of experts join all GPUs of a pipeline stage.

    >>> [grouping.groups().tolist() for grouping in vllm_groups(tp=4, dcp=2).values()][:2]
    [[[0, 1, 2, 3]], [[0, 1], [2, 3]]]

    Errors: LayoutError for a size that is none, and for a dcp that does not divide tp.
    """
    _check_sizes(tp=tp, pp=pp, pcp=pcp, dp=dp, dcp=dcp)
    mesh = _mesh(dcp=dcp, tp_rest=_part(tp, dcp=dcp), pcp=pcp, pp=pp, dp=dp)
    kinds = {"tp": "dcp-tp_rest", "dcp": "dcp", "pcp": "pcp", "pp": "pp", "dp": "dp"}
    if experts:
        kinds["ep"] = "dcp-tp_rest-pcp-dp"
    return {name: Grouping(name, mesh, kind) for name, kind in kinds.items()}


def sglang_groups(
    tp: int = 1,
    pp: int = 1,
    dp: int = 1,
    dp_attention: bool = False,
    attn_cp: int = 1,
    ep: int = 1,
    moe_dp: int = 1,
    dcp: int = 1,
) -> dict[str, Grouping]:
    """Groups of SGLang by name: attention's dp lies inside tp, any other makes more servers.

    Errors: LayoutError for a size that is none, and for sizes that do not divide tp.
    """
    _check_sizes(tp=tp, pp=pp, dp=dp, attn_cp=attn_cp, ep=ep, moe_dp=moe_dp, dcp=dcp)
    attn_dp, servers = (dp, 1) if dp_attention else (1, dp)
    outside = {"pp": pp, "dp": servers}
    attn_tp = _part(tp, dp=attn_dp, attn_cp=attn_cp)
    attention = _mesh(attn_tp=attn_tp, attn_cp=attn_cp, attn_dp=attn_dp, **outside)
    experts = _mesh(moe_tp=_part(tp, ep=ep, moe_dp=moe_dp), moe_ep=ep, moe_dp=moe_dp, **outside)
    decode = _mesh(dcp=dcp, tp_rest=_part(tp, dcp=dcp), **outside)
    groupings = {"tp": Grouping("tp", attention, "attn_tp-attn_cp-attn_dp")}
    groupings |= {
        name: Grouping(name, attention, name) for name in ("attn_tp", "attn_cp", "attn_dp")
    }
    groupings |= {name: Grouping(name, experts, name) for name in ("moe_tp", "moe_ep", "moe_dp")}
    if attn_cp > moe_dp:  # ranks of context parallelism share their tokens before the experts
        groupings["moe_dp"] = Grouping("moe_dp", attention, "attn_cp")
    groupings["dcp"] = Grouping("dcp", decode, "dcp")
    return groupings | {name: Grouping(name, attention, name) for name in ("pp", "dp")}


def _mesh(**sizes: int) -> Mesh:
    return Mesh(tuple(Axis(name, size) for name, size in sizes.items()))


def _check_sizes(**sizes: int) -> None:
    checked = {name: whole_number(size, name) for name, size in sizes.items()}
    world = math.prod(checked.get(name, 1) for name in ("tp", "pp", "pcp", "dp"))
    if world > MAX_RANKS:
        raise too_many_ranks(world, "tp")


def _part(tp: int, **sizes: int) -> int:
    """What is left of tp inside these sizes."""
    product = math.prod(sizes.values())
    if tp % product:
        names = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        raise refusal("does-not-divide-tp", "tp", names=names, product=product, tp=tp)
    return tp // product
