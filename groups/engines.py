"""The servers of a job: how many of them its GPUs hold, and the sizes that each engine refuses.

One server takes tp x pp GPUs in SGLang, x cp in TensorRT-LLM, and x cp x dp in vLLM if dp is set;
the remaining GPUs hold more servers of the same model. `Convention.sizes` has the engine's names of
a job's sizes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from .alternatives import divisors, fitted_sizes
from .conventions import CONVENTIONS, MEGATRONS
from .errors import LayoutError, refusal
from .frameworks.sizes import JobSizes
from .mesh import whole_number
from .serving import (
    Served,
    require_sglang,
    require_vllm,
    sglang,
    sglang_checks,
    trtllm,
    vllm,
)


def is_server(framework: object) -> bool:
    """Whether a framework serves a model: its jobs have no training step and no gradients.

    >>> is_server("vllm"), is_server("megatron"), is_server("own")
    (True, False, False)
    """
    is_known = isinstance(framework, str) and framework in CONVENTIONS
    return is_known and bool(CONVENTIONS[str(framework)].sizes)


def has_own_groups(framework: object) -> bool:
    """Whether a server numbers its ranks by its own rules instead of Megatron's."""
    return is_server(framework) and framework not in MEGATRONS


def gpus_of_server(framework: str, sizes: Mapping[str, int]) -> int:
    """The GPUs of one server; dp counts only in vLLM, if it is set.

    >>> gpus_of_server("sglang", {"tp": 16, "pp": 1, "cp": 2, "dp": 8})
    16
    """
    outside = {"vllm": ("tp", "pp", "cp", "dp"), "sglang": ("tp", "pp")}
    return math.prod(sizes.get(name, 1) for name in outside.get(framework, ("tp", "pp", "cp")))


def engine_gpus(job: JobSizes) -> int:
    """The GPUs of one engine: of one copy of the model or, with dp in vLLM, of all its dp copies.

    >>> from groups.layout import Job
    >>> engine_gpus(Job(tp=2, framework="vllm")), engine_gpus(Job(tp=2, dp=4, framework="vllm"))
    (2, 8)
    """
    sizes = {"tp": job.tp, "pp": job.pp, "cp": job.cp}
    return gpus_of_server(job.framework, sizes | ({} if job.dp is None else {"dp": job.dp}))


def serve(job: JobSizes, world: int) -> Served:
    """The two meshes and the groups of a job's servers on ``world`` GPUs.

    Errors: LayoutError about a size, with the engine's own message where it has one.
    """
    return _ENGINES[job.framework](job, world)


def _vllm(job: JobSizes, world: int) -> Served:
    requested = {"tp": job.tp, "pp": job.pp, "cp": job.cp}
    requested |= {} if job.dp is None else {"dp": job.dp}
    sizes = _fitted(world, requested, "dp" if job.dp is None else "server")
    dcp = whole_number(job.dcp, "dcp")
    require_vllm(sizes["tp"], sizes["cp"], dcp)
    tp, pp, pcp, dp = (sizes[name] for name in ("tp", "pp", "cp", "dp"))
    servers = sizes.get("server", 1)
    return vllm(tp, pp, pcp, dp, dcp, servers, job.expert_parallel is True)


def _sglang(job: JobSizes, world: int) -> Served:
    sizes = _fitted(world, {"tp": job.tp, "pp": job.pp}, "server")
    servers, inside = sizes.pop("server"), {"dp": 1 if job.dp is None else job.dp}
    inside |= {"cp": job.cp, "ep": job.ep, "moe_dp": job.moe_dp, "dcp": job.dcp}
    own = {"dp": "attn_dp", "cp": "attn_cp"}
    sizes |= {own.get(name, name): whole_number(size, name) for name, size in inside.items()}
    require_sglang(**sizes)
    return sglang(**sizes, servers=servers)


def _trtllm(job: JobSizes, world: int) -> Served:
    sizes = _fitted(world, {"tp": job.tp, "pp": job.pp, "cp": job.cp}, "server")
    tp, pp, cp = (sizes[name] for name in ("tp", "pp", "cp"))
    dp = 1 if job.dp is None else whole_number(job.dp, "dp")
    if dp not in (1, tp):
        raise refusal("attention-dp-is-tp", "dp", {"dp": tp}, {"dp": None}, dp=dp, tp=tp)
    ep = whole_number(job.ep, "ep")
    return trtllm(tp, pp, cp, ep, job.etp, dp > 1, servers=sizes["server"])


_ENGINES: Mapping[str, Callable[[JobSizes, int], Served]] = {
    "vllm": _vllm,
    "sglang": _sglang,
    "tensorrt-llm": _trtllm,
}


def stops(framework: str, sizes: Mapping[str, int], world: int) -> dict[str, list[int]]:
    """For each size of a server, the values that work with the other sizes unchanged.

    >>> stops("sglang", {"tp": 8, "pp": 1, "dp": 4}, 16)["tp"]
    [4, 8, 16]
    """
    every = divisors(world)
    return {
        name: [size for size in every if _works(framework, {**sizes, name: size}, world)]
        for name in CONVENTIONS[framework].sizes
        if name != "expert_parallel"
    }


def _works(framework: str, sizes: Mapping[str, int], world: int) -> bool:
    if world % gpus_of_server(framework, sizes):
        return False
    one = dict.fromkeys(("tp", "pp", "cp", "dp", "ep", "dcp", "moe_dp"), 1)
    tp, pp, cp, dp, ep, dcp, moe_dp = ({**one, **sizes}[name] for name in one)
    if framework == "vllm":
        return tp % dcp == 0 if cp == 1 else dcp in (1, cp, tp * cp)
    if framework == "sglang":
        return not any(
            is_broken for is_broken, *_ in sglang_checks(tp, pp, dp, cp, ep, moe_dp, dcp)
        )
    etp = sizes.get("etp", 0) or tp // ep
    return dp in (1, tp) and etp * ep == tp and 1 in (cp, ep)


def _fitted(world: int, sizes: Mapping[str, int], remains: str) -> dict[str, int]:
    """The sizes of a server, and how many servers the GPUs hold."""
    try:
        return fitted_sizes(world, "-".join((*sizes, remains)), sizes, remains)
    except LayoutError as error:
        if error.code == "does-not-divide" and remains == "server":
            one = math.prod(sizes.values())
            why = f"a server has {one} GPUs, and {world} are not a whole number of servers"
            raise error.replace(why=why, facts={**error.facts, "left": "server"}) from None
        raise
