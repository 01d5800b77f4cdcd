"""Every process group that Megatron creates, by name: two grids over the same ranks.

Most groups are one request to one of the two `grids`; the others are cut out of those (`Grouping`);
families.toml names them all. Names, orders and refusals as in NVIDIA/Megatron-LM,
megatron/core/parallel_state.py, initialize_model_parallel, and checked against megatron-core
0.16.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from inspect import signature
from pathlib import Path
from typing import Literal

from ..alternatives import MOST, divisors, divisors_near, works
from ..errors import LayoutError, quoted, refusal
from ..grouping import Grouping, Groups
from ..mesh import MAX_RANKS, Mesh, whole_number
from ..tables import Rows, read_table
from .grids import GTP, ORDER, dense_grid, expert_grid, grids, mended


@dataclass(frozen=True)
class Family:
    """One row of the table of groups; ``kind`` is empty for a group that is cut out of others."""

    grid: Literal["dense", "expert"]
    parallel_state: str  # its name in parallel_state.py, without the leading underscore
    option: str  # its key in NCCL options and --high-priority-stream-groups
    carries: str
    kind: str = ""  # axes of that grid, which are etp, ep, edp and pp in the expert grid


FAMILIES: Mapping[str, Family] = Rows(
    lambda: read_table(Path(__file__).with_name("families.toml"), dict[str, Family])
)
"""Every family by its name, the dense grid's first."""


def family(name: str) -> Family:
    """The family (a row of families.toml) that a group name belongs to.

    >>> family("hcp-l1").option, family("hybrid-dp-cp-4").option, family("edp").grid
    ('hcp', 'dp_cp', 'expert')

    Errors: KeyError for a name that Megatron does not have.
    """
    stem = name.rpartition("-")[0]
    return FAMILIES[stem if stem in ("hcp", "hybrid-dp-cp") else name]


def groupings(
    world: int,
    *,
    num_distributed_optimizer_instances: int = 1,
    hierarchical_context_parallel_sizes: Sequence[int] | None = None,
    hybrid_context_parallel: bool = False,
    create_all_gather_group: bool = False,
    embedding_stages: Sequence[int] = (0, -1),
    virtual_pipeline_model_parallel_size: int | None = None,
    use_sharp: bool = False,
    sharp_enabled_group: str | None = None,
    **sizes: object,
) -> dict[str, Grouping]:
    """What `process_groups` makes, as requests: the ranks are worked out when they are asked for.

    >>> groupings(16, tp=2, pp=4)["embd"].members(12).tolist()
    [0, 12]
    """
    instances = num_distributed_optimizer_instances
    _refuse_sharp(use_sharp, sharp_enabled_group, instances)
    checked_grids: Callable[..., tuple[Mesh, Mesh]] = grids
    dense, expert = checked_grids(world, **sizes)
    if virtual_pipeline_model_parallel_size is not None:
        _refuse_virtual_stages(virtual_pipeline_model_parallel_size, dense.size("pp"))
    by_name = dense_groupings(dense_grid(dense), embedding_stages)
    by_name |= _families(expert_grid(expert))
    by_name |= _optimizer_instances(by_name, instances)
    if hierarchical_context_parallel_sizes is not None:
        by_name |= _levels(by_name["cp"], hierarchical_context_parallel_sizes)
    if hybrid_context_parallel:
        by_name |= _hybrid(by_name["dp-cp"], by_name["pp"].size)
    if create_all_gather_group:
        by_name |= _all_gather_groups(world, dense, expert, sizes)
    return by_name


def dense_groupings(mesh: Mesh, embedding_stages: Sequence[int] = (0, -1)) -> dict[str, Grouping]:
    """The groups of dense layers alone, for a mesh of any order of tp, cp, dp and pp.

    An axis that the mesh does not have counts as one of size 1 and makes no groups.
    """
    by_name = _families(mesh)
    if GTP in mesh.names:
        for name in ("mp", "tp-dp", "tp-dp-cp"):
            by_name[name] = replace(by_name[name], kind=f"{by_name[name].kind}-{GTP}")
    if "pp" in by_name:
        stages = _stages(embedding_stages, mesh.size("pp"))
        if stages:  # no places would mean all of them
            by_name["embd"] = Grouping("embd", mesh, "pp", places=stages)
        by_name["pos-embd"] = Grouping("pos-embd", mesh, "pp", places=(0,))
    return by_name


def _families(mesh: Mesh) -> dict[str, Grouping]:
    """The groups that are one request to this grid."""
    return {name: Grouping(name, mesh, kind) for name, kind in _kinds(mesh.names)}


@lru_cache(maxsize=64)
def _kinds(axes: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    grid, known = "expert" if "edp" in axes else "dense", {*axes}
    return tuple(
        (name, family.kind)
        for name, family in FAMILIES.items()
        if family.grid == grid and family.kind and known.issuperset(family.kind.split("-"))
    )


def process_groups(
    world: int,
    *,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    order: str = ORDER,
    num_distributed_optimizer_instances: int = 1,
    hierarchical_context_parallel_sizes: Sequence[int] | None = None,
    hybrid_context_parallel: bool = False,
    create_all_gather_group: bool = False,
    embedding_stages: Sequence[int] = (0, -1),
    virtual_pipeline_model_parallel_size: int | None = None,
    use_sharp: bool = False,
    sharp_enabled_group: str | None = None,
    gtp: int = 1,
    egtp: int = 1,
) -> dict[str, Groups]:
    """All groups that Megatron creates, by name, in Megatron's order of groups and members.

    embedding_stages: the pipeline stages that share the word embedding, counted from the end if
    negative. virtual_pipeline_model_parallel_size, use_sharp and sharp_enabled_group are checked,
    they change no group. intra-dist-opt is as Megatron lists it; torch sorts the ranks of a group.

    >>> groups = process_groups(16, tp=2, pp=4)
    >>> groups["embd"].tolist()
    [[0, 12], [1, 13], [2, 14], [3, 15]]
    >>> groups["mp"].tolist()
    [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]

    Errors: as `grids`, and for instances or context parallel levels that do not divide. Merging any
    of a refusal's alternatives over the arguments succeeds.
    """
    options = {name: value for name, value in locals().items() if name != "world"}
    return {name: grouping.groups() for name, grouping in checked_groupings(world, options).items()}


_requested: Callable[..., dict[str, Grouping]] = groupings
"""`groupings` with names that are known only when it runs; a wrong one is its own TypeError."""


def checked_groupings(world: int, sizes: Mapping[str, object]) -> dict[str, Grouping]:
    """`groupings` whose refusals offer only alternatives that work.

    A fix for one rule may break another, so each alternative is tried before it is offered. Where
    none is left, the control or else a size as it is without being asked may be one, or these with
    pp last in the order.
    """
    try:
        return _requested(world=world, **sizes)
    except LayoutError as error:
        names = dict.fromkeys([error.control, "tp", "cp", "pp", "ep", "etp"])
        defaults = [{name: DEFAULTS[name]} for name in names if name in DEFAULTS]
        pp_last = {"order": mended(sizes.get("order"))}
        ordered = [{**fix, **pp_last} for fix in (*error.alternatives, *defaults)]
        for fixes in (error.alternatives, defaults, ordered):
            tried = [(fix, {"world": world, **sizes, **fix}) for fix in fixes]
            working = [fix for fix, options in tried if works(_requested, **options)][:MOST]
            if working:
                break
        raise error.replace(alternatives=working) from None


DEFAULTS = {
    name: parameter.default
    for function in (grids, groupings)
    for name, parameter in signature(function).parameters.items()
    if parameter.default is not parameter.empty
}
"""The arguments of `process_groups` that are left out."""


# -- groups that are cut out of others -----------------------------------------------------------


def _stages(stages: Sequence[int], pp: int) -> tuple[int, ...]:
    """Pipeline stages counted from either end, ascending, each once."""
    numbers = _whole_numbers(stages, "embedding_stages", minimum=-pp, maximum=pp - 1)
    return tuple(sorted({number % pp for number in numbers}))


def _whole_numbers(values: object, control: str, **limits: int) -> list[int]:
    """A list of whole numbers; a single one is a list of one."""
    try:
        listed = values if isinstance(values, Iterable) else [values]
        return [whole_number(value, control, **limits) for value in listed]
    except LayoutError as error:
        raise error.replace(alternatives=()) from None  # one number does not fix a list


def _optimizer_instances(by_name: Mapping[str, Grouping], instances: int) -> dict[str, Grouping]:
    """The groups of N instances of the distributed optimizer: runs of dp-cp, levels of edp."""
    control = "num_distributed_optimizer_instances"
    instances = whole_number(instances, control)
    data, expert_data = by_name["dp-cp"], by_name["edp"]
    has_gtp = GTP in data.mesh.names
    if has_gtp and instances > 1:
        raise refusal(
            "instances-with-gtp", control, {control: 1}, {"gtp": 1, "egtp": 1}, instances=instances
        )
    for grouping, label in ((data, "Data"), (expert_data, "Expert data")):
        if grouping.size % instances:
            fixes = divisors_near(control, instances, math.gcd(data.size, expert_data.size))
            quote = f"{label} parallel size should be divisible by partial DistOpt shard factor"
            facts = {"instances": quoted(instances), "size": grouping.size, "group": grouping.name}
            raise refusal("instances-do-not-divide", control, *fixes, quote=quote, **facts)
    experts = by_name["tp-ep-pp"]
    joined = experts.num_groups // instances
    groups = [Grouping("intra-dist-opt", experts.mesh, experts.kind, joined=joined)]
    if has_gtp:  # there it is the whole world in order
        groups = [Grouping("intra-dist-opt", data.mesh, "-".join(data.mesh.names))]
    if instances > 1:
        shard = expert_data.size // instances
        groups += [
            replace(data, name="intra-dp-cp", length=data.size // instances),
            replace(expert_data, name="intra-edp", length=shard),
            replace(expert_data, name="inter-edp", length=instances, stride=shard),
        ]
    return {group.name: group for group in groups}


def _levels(context: Grouping, sizes: Sequence[int]) -> dict[str, Grouping]:
    """Hierarchical context parallelism: level i has groups of s_i, s_0 * ... * s_(i-1) apart."""
    control = "hierarchical_context_parallel_sizes"
    whole = _whole_numbers(sizes, control, minimum=1, maximum=MAX_RANKS)
    if math.prod(whole) != context.size:
        product = " x ".join(map(str, whole))
        inner = divisors(context.size)[1:-1] or (1,)
        wanted = whole[0] if whole else 1
        first = min(inner, key=lambda size: abs(math.log(size / wanted)))
        fix = {control: (first, context.size // first)}
        facts = {"levels": product, "product": math.prod(whole), "cp": context.size}
        raise refusal("levels-do-not-multiply", control, fix, **facts)
    return {
        f"hcp-l{level}": replace(
            context, name=f"hcp-l{level}", length=size, stride=math.prod(whole[:level])
        )
        for level, size in enumerate(whole)
    }


def _hybrid(data: Grouping, pp: int) -> dict[str, Grouping]:
    """Hybrid context parallelism: each dp-cp group in runs of 2, 4, 8 ... below its half.

    The last run is short where the group's size is not a multiple of the run's.
    """
    off = {"hybrid_context_parallel": False}
    if pp > 1:
        raise refusal("hybrid-with-pipeline", "pp", off, {"pp": 1}, pp=pp)
    if data.size % 2:
        raise refusal("hybrid-needs-even", "cp", off, size=data.size)
    runs = (2**power for power in range(1, int(math.log2(data.size))))
    return {
        f"hybrid-dp-cp-{run}": replace(data, name=f"hybrid-dp-cp-{run}", length=run) for run in runs
    }


def _all_gather_groups(
    world: int, dense: Mesh, expert: Mesh, sizes: Mapping[str, object]
) -> dict[str, Grouping]:
    """Second communicators of dp-cp, and of edp where experts are spread, so that Megatron FSDP
    gathers parameters while it scatters gradients.

    Megatron makes them of the default order, whatever the order of the job is
    (create_all_gather_groups, main at d98e8a64), and counts gtp twice, in dp and beside it.
    """
    control, has_experts = "create_all_gather_group", expert.size("ep") > 1
    counted = {"gtp": dense, **({"egtp": expert} if has_experts else {})}
    twice = [name for name, mesh in counted.items() if GTP in mesh.names and mesh.size(GTP) > 1]
    if twice:
        ones = dict.fromkeys(("gtp", "egtp"), 1)
        raise refusal("gathers-with-gtp", control, {control: False}, ones, gtp=" x ".join(twice))
    checked_grids: Callable[..., tuple[Mesh, Mesh]] = grids
    dense, expert = checked_grids(world, **{**sizes, "order": ORDER})
    made = {"dp-cp-ag": replace(_families(dense_grid(dense))["dp-cp"], name="dp-cp-ag")}
    if has_experts:
        made["edp-ag"] = replace(_families(expert_grid(expert))["edp"], name="edp-ag")
    return made


# -- options that change no group ----------------------------------------------------------------


def _refuse_virtual_stages(vpp: int, pp: int) -> None:
    control = "virtual_pipeline_model_parallel_size"
    whole_number(vpp, control)
    if pp == 1:
        raise refusal("virtual-stages-without-pipeline", control, {control: None}, vpp=vpp)


def _refuse_sharp(use_sharp: bool, group: str | None, instances: int) -> None:
    """SHARP serves one group only, dp or (between optimizer instances) dp_replica."""
    is_broken = {
        "sharp_enabled_group is only valid when use_sharp is True": not use_sharp,
        "Invalid sharp_enabled_group": group not in ("dp", "dp_replica"),
        "dp_replica group requires num_distributed_optimizer_instances > 1": instances == 1
        and group == "dp_replica",
    }
    quote = next((quote for quote, broken in is_broken.items() if broken), "")
    if group is not None and quote:
        control = "sharp_enabled_group"
        raise refusal("sharp-group", control, {control: None}, quote=quote, group=quoted(group))
