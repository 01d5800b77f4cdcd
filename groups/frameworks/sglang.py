"""SGLang: its groups by its own names, in its own order, and the sizes that it refuses.

           attention  attn_tp attn_cp attn_dp pp       experts  moe_tp moe_ep moe_dp pp

Its tp is all of a stage, of which both its meshes are parts. It makes no group over the attention's
data parallel ranks; a group as large as tp, or as attn_cp, is that one under another name.

Source: initialize_model_parallel of sgl-project/sglang (0.5.23)
python/sglang/srt/distributed/parallel_state.py, with arg_groups/parallel_hook.py.

>>> made = sglang_groups(tp=8, ep=4)
>>> made["moe_ep"].groups().tolist(), made["moe_tp"].groups().tolist()
([[0, 2, 4, 6], [1, 3, 5, 7]], [[0, 1], [2, 3], [4, 5], [6, 7]])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar

from ..alternatives import divisors_near
from ..errors import refusal
from ..grouping import Grouping
from ..mesh import Axis, Mesh, whole_number
from .engine import Engine, Served, check_sizes, mesh_of, part_of, servers_of
from .sizes import JobSizes


@dataclass(frozen=True)
class Sglang(Engine):
    """SGLang, whose dp, cp and ep are parts of tp."""

    plays: ClassVar[Mapping[str, str]] = {
        "tp": "attention_tp",
        "cp": "attn_cp",
        "dcp": "dcp",
        "dp": "attn_dp",
        "pp": "pp",
    } | {
        "etp": "moe_tp",
        "ep": "moe_ep",
        "edp": "moe_dp",
    }
    of_server: ClassVar[tuple[str, ...]] = ("tp", "pp")

    def serve(self, job: JobSizes, world: int) -> Served:
        sizes = servers_of(world, {"tp": job.tp, "pp": job.pp})
        servers, inside = sizes.pop("server"), {"dp": 1 if job.dp is None else job.dp}
        inside |= {"cp": job.cp, "ep": job.ep, "moe_dp": job.moe_dp, "dcp": job.dcp}
        own = {"dp": "attn_dp", "cp": "attn_cp"}
        sizes |= {own.get(name, name): whole_number(size, name) for name, size in inside.items()}
        require_sglang(**sizes)
        return sglang(**sizes, servers=servers)

    def starts(self, sizes: Mapping[str, int]) -> bool:
        names = ("tp", "pp", "dp", "cp", "ep", "moe_dp", "dcp")
        return not any(is_broken for is_broken, *_ in sglang_checks(*(sizes[n] for n in names)))

    def roles_of(self, served: Served) -> dict[str, Grouping]:
        """
        >>> from groups.frameworks import FRAMEWORKS
        >>> served = sglang(tp=8, attn_dp=4)
        >>> roles = FRAMEWORKS["sglang"].roles_of(served)
        >>> roles["dp"].name, roles["dp"].members(1).tolist(), "attn_dp" in served.groups
        ('attn_dp', [1, 3, 5, 7], False)
        """
        alone = {"dp": ("attn_dp", served.mesh, "dp"), "edp": ("moe_dp", served.expert, "edp")}
        return super().roles_of(served) | {name: Grouping(*one) for name, one in alone.items()}


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
    check_sizes(tp=tp, pp=pp, servers=servers)
    check_sizes(attn_dp=attn_dp, attn_cp=attn_cp, ep=ep, moe_dp=moe_dp, dcp=dcp)
    attn_tp = part_of(tp, dp=attn_dp, attn_cp=attn_cp)
    mesh = mesh_of(servers, tp=attn_tp, cp=attn_cp, dp=attn_dp, pp=pp)
    moe_tp = part_of(tp, ep=ep, moe_dp=moe_dp)
    expert = mesh_of(servers, etp=moe_tp, ep=ep, edp=moe_dp, pp=pp)
    part_of(tp, dcp=dcp)
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
        part_of(attention.size, shared_experts_tp=shared)
        name = "shared_experts_tp"
        groups[name] = Grouping(name, *_where(attention), length=shared)
    alone = Mesh((Axis("self_pp", 1), Axis("gpu", groups["tp"].world_size)))
    return groups | {"self_pp": Grouping("self_pp", alone, "self_pp")}


def _where(grouping: Grouping) -> tuple[Mesh, str]:
    return grouping.mesh, grouping.kind
