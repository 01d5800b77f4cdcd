"""TensorRT-LLM: its groups by its own names, in its own order, and the sizes that it refuses.

           attention  tp cp pp                experts  moe_ep moe_tp pp

Its tp is all of a stage; with attention dp each of its ranks has attention to itself.

Source: Mapping of NVIDIA/TensorRT-LLM 05ebebb tensorrt_llm/mapping.py.

>>> made = trtllm_groups(tp=8, ep=4)
>>> made["moe_ep"].groups().tolist(), made["moe_tp"].groups().tolist()
([[0, 1, 2, 3], [4, 5, 6, 7]], [[0, 4], [1, 5], [2, 6], [3, 7]])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..alternatives import divisors_near
from ..errors import refusal
from ..grouping import Grouping
from ..mesh import whole_number
from .engine import Engine, Served, check_sizes, mesh_of, servers_of
from .sizes import JobSizes


@dataclass(frozen=True)
class TensorRT(Engine):
    """TensorRT-LLM, whose dp is none or all of tp."""

    plays: ClassVar[Mapping[str, str]] = {
        "tp": "tp",
        "cp": "cp",
        "pp": "pp",
        "etp": "moe_tp",
        "ep": "moe_ep",
    }
    of_server: ClassVar[tuple[str, ...]] = ("tp", "pp", "cp")

    def serve(self, job: JobSizes, world: int) -> Served:
        sizes = servers_of(world, {"tp": job.tp, "pp": job.pp, "cp": job.cp})
        tp, pp, cp = (sizes[name] for name in ("tp", "pp", "cp"))
        dp = 1 if job.dp is None else whole_number(job.dp, "dp")
        if dp not in (1, tp):
            raise refusal("attention-dp-is-tp", "dp", {"dp": tp}, {"dp": None}, dp=dp, tp=tp)
        ep = whole_number(job.ep, "ep")
        return trtllm(tp, pp, cp, ep, job.etp, dp > 1, servers=sizes["server"])

    def starts(self, sizes: Mapping[str, int]) -> bool:
        tp, cp, dp, ep = (sizes[name] for name in ("tp", "cp", "dp", "ep"))
        etp = sizes.get("etp", 0) or tp // ep
        return dp in (1, tp) and etp * ep == tp and 1 in (cp, ep)

    def roles_of(self, served: Served) -> dict[str, Grouping]:
        own = super().roles_of(served)
        if served.mesh.size("dp") > 1:
            own["dp"] = own.pop("tp")
        return own


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
    check_sizes(tp=tp, pp=pp, cp=cp, ep=ep, clusters=clusters, servers=servers)
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
    mesh = mesh_of(servers, tp=attn_tp, dp=attn_dp, cp=cp, pp=pp)
    expert = mesh_of(servers, ep=ep, moe_cluster=clusters, etp=rest, edp=cp, pp=pp)
    if clusters == 1:
        expert = mesh_of(servers, ep=ep, etp=rest, edp=cp, pp=pp)
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
