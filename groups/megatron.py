"""Every process group that Megatron creates, by name: two grids over the same ranks.

Dense layers live on a grid of tp, cp, dp and pp; experts on a grid of etp (the expert tp), ep, edp
(the expert dp) and pp. dp and edp are what remains of the world in each:

    dp = world / (tp * cp * pp)        edp = world / (etp * ep * pp)

Most groups are one request to one grid; the others are cut out of those (`Grouping`). Names, grids,
orders and refusals as in NVIDIA/Megatron-LM, megatron/core/parallel_state.py,
initialize_model_parallel, and checked against megatron-core 0.16.1; the weight-rematerialization
axis gtp as in main at d98e8a64 (August 2026), where it is experimental.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .alternatives import MOST, divisors, nearest_fits
from .errors import LayoutError, quoted
from .families import FAMILIES
from .fitting import fit
from .grouping import Grouping, Groups
from .mesh import MAX_RANKS, Axis, Mesh, split_names, whole_number
from .ranks import rank_groups

ORDER = "tp-cp-ep-dp-pp"
"""Megatron's default order, fastest first; --use-tp-pp-dp-mapping makes it tp-cp-ep-pp-dp."""

APPENDED = ("tp", "pp", "dp", "ep", "cp")
"""Axes that an order may leave out if their size is 1, in the order in which they are appended."""

GTP = "gtp_remat"
"""The axis over which weights are gathered before use: after tp in the dense, after ep in the
expert grid, unless the order names it. There only if a size of it is above 1."""


def grids(
    world: int,
    *,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    order: str = ORDER,
    gtp: int = 1,
    egtp: int = 1,
) -> tuple[Mesh, Mesh]:
    """The dense and the expert mesh of a world, both with all five axes of the order.

    etp left out is tp. In the dense mesh ep is 1, in the expert mesh cp is 1 and tp is etp. gtp and
    egtp above 1 add the axis gtp_remat to both.

    >>> dense, expert = grids(16, tp=2, cp=2, pp=2, ep=8, etp=1)
    >>> str(dense), str(expert)
    ('tp2-cp2-ep1-dp2-pp2', 'tp1-cp1-ep8-dp1-pp2')

    Errors: LayoutError where Megatron refuses, and for what it accepts as nonsense (repeated or
    unknown axes, sizes below 1); ``quote`` is Megatron's own message where it has one.
    """
    given = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "gtp": gtp, "egtp": egtp}
    sizes = _whole_sizes(given if etp is None else {**given, "etp": etp})
    sizes.setdefault("etp", sizes["tp"])
    names = _complete(order, sizes)
    dense_names, expert_names = _with_gtp(names, sizes)
    shared = ("pp", "gtp") if GTP in dense_names else ("pp",)
    dense = _grid(world, dense_names, sizes, ("tp", "cp", *shared))
    shared = ("pp", "egtp") if GTP in dense_names else ("pp",)
    expert = _grid(world, expert_names, sizes, ("etp", "ep", *shared))
    remaining = max(dense.size("dp"), expert.size("dp"))
    if remaining > 1 and "dp" not in order.split("-"):
        raise _left_out("dp", remaining, order)
    if not order.endswith("pp"):  # else stage s is ranks s * world / pp and on, in both grids
        _refuse_clashing_pipelines(names, dense, expert, sizes)
    return dense, expert


def groupings(
    world: int,
    *,
    num_distributed_optimizer_instances: int = 1,
    hierarchical_context_parallel_sizes: Sequence[int] | None = None,
    hybrid_context_parallel: bool = False,
    embedding_stages: Sequence[int] = (0, -1),
    virtual_pipeline_model_parallel_size: int | None = None,
    use_sharp: bool = False,
    sharp_enabled_group: str | None = None,
    **sizes: Any,
) -> dict[str, Grouping]:
    """What `process_groups` makes, as requests: the ranks are worked out when they are asked for.

    >>> groupings(16, tp=2, pp=4)["embd"].members(12).tolist()
    [0, 12]
    """
    instances = num_distributed_optimizer_instances
    _refuse_sharp(use_sharp, sharp_enabled_group, instances)
    dense, expert = grids(world, **sizes)
    _refuse_virtual_stages(virtual_pipeline_model_parallel_size, dense.size("pp"))
    found = dense_groupings(dense_grid(dense), embedding_stages)
    found |= {name: Grouping(name, grid, kind) for name, grid, kind in _rows(expert_grid(expert))}
    found |= _optimizer_instances(found, instances)
    if hierarchical_context_parallel_sizes is not None:
        found |= _levels(found["cp"], hierarchical_context_parallel_sizes)
    if hybrid_context_parallel:
        found |= _hybrid(found["dp-cp"], found["pp"].size)
    return found


def dense_groupings(mesh: Mesh, embedding_stages: Sequence[int] = (0, -1)) -> dict[str, Grouping]:
    """The groups of dense layers alone, for a mesh of any order of tp, cp, dp and pp.

    An axis that the mesh does not have counts as one of size 1 and makes no groups.
    """
    found = {name: Grouping(name, grid, kind) for name, grid, kind in _rows(mesh)}
    if GTP in mesh.names:
        for name in ("mp", "tp-dp", "tp-dp-cp"):
            found[name] = replace(found[name], kind=f"{found[name].kind}-{GTP}")
    if "pp" in found:
        pipeline = found["pp"]
        stages = _stages(embedding_stages, pipeline.size)
        if stages:  # no places would mean all of them
            found["embd"] = replace(pipeline, name="embd", places=stages)
        found["pos-embd"] = replace(pipeline, name="pos-embd", places=(0,))
    return found


def dense_grid(mesh: Mesh) -> Mesh:
    """The dense mesh by the axes that dense layers have: without ep, which is 1 there."""
    return Mesh(tuple(axis for axis in mesh.axes if axis.name != "ep"))


def expert_grid(mesh: Mesh) -> Mesh:
    """The expert mesh by the names of experts: etp and edp for tp and dp, without cp.

    >>> str(expert_grid(grids(16, tp=2, cp=2, pp=2, ep=8, etp=1)[1]))
    'etp1-ep8-edp1-pp2'
    """
    own = {"tp": "etp", "dp": "edp"}
    axes = (Axis(own.get(axis.name, axis.name), axis.size) for axis in mesh.axes)
    return Mesh(tuple(axis for axis in axes if axis.name != "cp"))


def _rows(mesh: Mesh) -> Iterator[tuple[str, Mesh, str]]:
    """The families that are one request to this grid."""
    grid = "expert" if "edp" in mesh.names else "dense"
    for name, family in FAMILIES.items():
        names = family.kind.split("-")
        if family.grid == grid and family.kind and set(names) <= set(mesh.names):
            yield name, mesh, family.kind


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
    **options: Any,
) -> dict[str, Groups]:
    """All groups that Megatron creates, by name, in Megatron's order of groups and members.

    Further options: embedding_stages (the pipeline stages that share the word embedding, counted
    from the end if negative), virtual_pipeline_model_parallel_size, use_sharp and
    sharp_enabled_group (checked, they change no group), gtp and egtp. intra-dist-opt is as Megatron
    lists it; torch sorts the ranks of a group.

    >>> groups = process_groups(16, tp=2, pp=4)
    >>> groups["embd"].tolist()
    [[0, 12], [1, 13], [2, 14], [3, 15]]
    >>> groups["mp"].tolist()
    [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]

    Errors: as `grids`, and for instances or context parallel levels that do not divide. Merging any
    of a refusal's alternatives over the arguments succeeds.
    """
    asked = {
        "tp": tp,
        "cp": cp,
        "pp": pp,
        "ep": ep,
        "etp": etp,
        "order": order,
        "num_distributed_optimizer_instances": num_distributed_optimizer_instances,
        "hierarchical_context_parallel_sizes": hierarchical_context_parallel_sizes,
        "hybrid_context_parallel": hybrid_context_parallel,
        **options,
    }
    return {name: grouping.groups() for name, grouping in checked_groupings(world, asked).items()}


def checked_groupings(world: int, asked: Mapping[str, Any]) -> dict[str, Grouping]:
    """`groupings` whose refusals offer only alternatives that work.

    A cure for one rule may break another, so each alternative is tried before it is offered. Where
    none is left, the control or else a size as it is without being asked may be one, or these with
    pp last in the order.
    """
    try:
        return groupings(world, **asked)
    except LayoutError as error:
        names = dict.fromkeys([error.control, "tp", "cp", "pp", "ep", "etp"])
        unasked = [{name: DEFAULTS[name]} for name in names if name in DEFAULTS]
        pp_last = {"order": mended(asked.get("order"))}
        ordered = [{**cure, **pp_last} for cure in (*error.alternatives, *unasked)]
        for cures in (error.alternatives, unasked, ordered):
            working = [cure for cure in cures if _works(world, {**asked, **cure})][:MOST]
            if working:
                break
        raise error.but(alternatives=working) from None


DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(("tp", "cp", "pp", "ep", "gtp", "egtp"), 1),
    "etp": None,
    "order": ORDER,
    "num_distributed_optimizer_instances": 1,
    "hierarchical_context_parallel_sizes": None,
    "hybrid_context_parallel": False,
    "embedding_stages": (0, -1),
    "virtual_pipeline_model_parallel_size": None,
    "sharp_enabled_group": None,
}
"""The arguments of `process_groups` that are left out."""


def _works(world: int, asked: Mapping[str, Any]) -> bool:
    try:
        groupings(**{"world": world, **asked})
    except LayoutError:
        return False
    return True


# -- the two grids -------------------------------------------------------------------------------


def _whole_sizes(given: Mapping[str, Any]) -> dict[str, int]:
    """Each size as an int; a refusal offers 1 for all that are none."""
    sizes, refusals = {}, {}
    for name, size in given.items():
        try:
            sizes[name] = whole_number(size, name)
        except LayoutError as error:
            refusals[name] = error
    if refusals:
        raise next(iter(refusals.values())).but(alternatives=[dict.fromkeys(refusals, 1)])
    return sizes


def _complete(order: str, sizes: Mapping[str, int]) -> list[str]:
    """All axes: those of the order, then the left-out ones, which must have size 1."""
    try:
        names = split_names(order, "order")
    except LayoutError as error:
        quote = _key_error(order) if order else _unnamed(sizes)
        raise error.but(alternatives=[{"order": mended(order)}], quote=quote) from None
    for name in names:
        if name not in (*APPENDED, GTP):
            raise LayoutError(
                "unknown-axis",
                f"{name} is not an axis of Megatron's: an order joins {', '.join(APPENDED)}",
                control="order",
                alternatives=[{"order": mended(order)}],
                facts={"value": quoted(name), "mesh": "-".join(APPENDED)},
                quote=f"KeyError: '{name}'",
            )
    for name in APPENDED:
        size = max(sizes["tp"], sizes["etp"]) if name == "tp" else sizes.get(name, 1)
        if name not in names and size > 1:
            raise _left_out(name, size, order)
    return names + [name for name in APPENDED if name not in names]


def _left_out(name: str, size: int, order: str) -> LayoutError:
    """An axis of more than one coordinate that the order does not name."""
    return LayoutError(
        "axis-not-in-order",
        f"{name} has a size, but the order '{order}' does not name it",
        why="the order says how fast each axis varies, so it must name all of them",
        control="order",
        alternatives=[{"order": mended(order)}],
        facts={"axis": name, "order": quoted(order)},
        quote=_not_specified(name, size, order),
    )


def _not_specified(name: str, size: int, order: str) -> str:
    return (
        f"The size of ({name}) is ({quoted(size)}), but you haven'tspecified the order ({order})."
    )


def _unnamed(sizes: Mapping[str, int]) -> str:
    """What Megatron says of an order that is empty."""
    larger = [name for name in APPENDED if sizes.get(name, 1) > 1]
    return _not_specified(larger[0], sizes[larger[0]], "") if larger else ""


def mended(order: object) -> str:
    """The nearest order that names every axis once: what it says, then what it leaves out.

    pp goes last, where both grids always agree on the pipelines.

    >>> mended("dp-tp"), mended("TP tp-xx-pp-ep"), mended(3)
    ('dp-tp-cp-ep-pp', 'tp-ep-cp-dp-pp', 'tp-cp-ep-dp-pp')
    """
    text = order.lower() if isinstance(order, str) else ""
    said = "".join(c if c.isalpha() else " " for c in text[:200]).split()
    names = [name for name in dict.fromkeys(said) if name in APPENDED]
    names += [name for name in ORDER.split("-") if name not in names]
    return "-".join([*(name for name in names if name != "pp"), "pp"])


def _key_error(order: object) -> str:
    """What Megatron says of an order that is not names joined by dashes."""
    if not isinstance(order, str) or not order:
        return ""
    names = order.lower().split("-")
    strange = [name for name in names if name not in (*APPENDED, GTP)]
    return f"KeyError: '{strange[0]}'" if strange and len(strange[0]) <= 40 else ""


def _with_gtp(names: list[str], sizes: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The order of the dense and of the expert grid: with gtp_remat in its place, if it is used."""
    if sizes["gtp"] == sizes["egtp"] == 1:
        unused = [name for name in names if name != GTP]
        return unused, unused
    if GTP in names:
        return names, names

    def after(axis: str) -> list[str]:
        at = names.index(axis) + 1
        return [*names[:at], GTP, *names[at:]]

    return after("tp"), after("ep")


OWN_NAMES = {"etp": "tp", "gtp": GTP, "egtp": GTP}
"""The axis that a size is of, where it has another name."""


def _grid(world: int, names: list[str], sizes: Mapping[str, int], used: tuple[str, ...]) -> Mesh:
    """One grid: the used sizes under the order's names, dp what remains, 1 for the other axis."""
    try:
        mesh = fit(world, order="-".join((*used, "dp")), **{name: sizes[name] for name in used})
    except LayoutError as error:
        if error.control == "world" and error.alternatives:
            raise error.but(alternatives=_worlds(world, sizes)) from None
        raise _with_quote(error, world, sizes, used) from None
    size_of = {OWN_NAMES.get(name, name): mesh.size(name) for name in mesh.names}
    return Mesh(tuple(Axis(name, size_of.get(name, 1)) for name in names))


def _worlds(world: int, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """The nearest world that both grids fill, for one that is out of range."""
    dense = math.prod(sizes[name] for name in ("tp", "cp", "pp", "gtp"))
    expert = math.prod(sizes[name] for name in ("etp", "ep", "pp", "egtp"))
    unit = math.lcm(dense, expert)
    nearest = unit if world < 1 else MAX_RANKS // unit * unit
    return [{"world": nearest}] if 1 <= nearest <= MAX_RANKS else []


def _with_quote(
    error: LayoutError, world: int, sizes: Mapping[str, int], used: tuple[str, ...]
) -> LayoutError:
    """A refusal of one grid with Megatron's words, and cures that leave the other grid alone."""
    if error.code not in ("does-not-divide", "out-of-range") or error.control == "world":
        return error
    product = math.prod(sizes[name] for name in used)
    if "etp" not in used:
        return error.but(quote=f"world_size ({world}) is not divisible by {quoted(product)}")
    message = (
        f"world_size ({world}) is not divisible by expert_tensor_model_pipeline_parallel size "
        f"({quoted(product)})"
    )
    # pp divides the world already, so only etp and ep change.
    shared = math.prod(sizes[name] for name in used if name not in ("etp", "ep"))
    near = {name: min(sizes[name], world) for name in ("ep", "etp")}
    larger = [name for name in near if sizes[name] > world]
    fits = world % shared == 0
    cures = nearest_fits(world // shared, near, change=larger) if fits else error.alternatives
    return error.but(
        why=error.why.replace("dp is", "edp is"),
        alternatives=cures,
        control=next(iter(cures[0]), "ep"),
        facts={**error.facts, "left": "EDP"},
        quote=message,
    )


def _refuse_clashing_pipelines(
    names: list[str], dense: Mesh, expert: Mesh, sizes: Mapping[str, int]
) -> None:
    """With pp not last, both grids must put the same ranks into each pipeline."""
    if dense.size("pp") == 1:
        return
    pp_last = {"order": "-".join([*(name for name in names if name != "pp"), "pp"])}
    if dense.size("dp") != expert.size("dp"):
        near = {"ep": sizes["ep"], "etp": sizes["etp"]}
        raise LayoutError(
            "dp-and-edp-differ",
            f"dp {dense.size('dp')} and edp {expert.size('dp')} differ, and pp is not last",
            why="only with pp last do both grids cut the stages alike whatever dp and edp are",
            control="order",
            alternatives=[pp_last, *nearest_fits(sizes["tp"] * sizes["cp"], near, exactly=True)],
            facts={"dp": dense.size("dp"), "edp": expert.size("dp")},
            quote="When not using pp-last rank ordering, the data parallel size of the attention "
            "and moe layers must be the same",
        )
    if not np.array_equal(rank_groups(dense, "pp"), rank_groups(expert, "pp")):
        raise LayoutError(
            "pipelines-differ",
            "the order gives dense layers and experts different pipelines",
            why="a rank has one stage, so both grids must make the same pp groups",
            control="order",
            alternatives=[pp_last],
            facts={"dense": str(dense), "expert": str(expert)},
            quote="Pipeline parallel groups are expected to be the same for Non-Expert and Expert "
            "part",
        )


# -- groups that are cut out of others -----------------------------------------------------------


def _stages(stages: Sequence[int], pp: int) -> tuple[int, ...]:
    """Pipeline stages counted from either end, ascending, each once."""
    numbers = _whole_numbers(stages, "embedding_stages", minimum=-pp, maximum=pp - 1)
    return tuple(sorted({number % pp for number in numbers}))


def _whole_numbers(values: object, control: str, *, minimum: int, maximum: int) -> list[int]:
    """A list of whole numbers; a single one is a list of one."""
    listed = values if isinstance(values, Iterable) else [values]
    try:
        return [whole_number(v, control, minimum=minimum, maximum=maximum) for v in listed]
    except LayoutError as error:
        raise error.but(alternatives=()) from None  # one number does not cure a list


def _optimizer_instances(found: Mapping[str, Grouping], instances: int) -> dict[str, Grouping]:
    """The groups of N instances of the distributed optimizer: runs of dp-cp, levels of edp."""
    control = "num_distributed_optimizer_instances"
    instances = whole_number(instances, control)
    data, expert_data = found["dp-cp"], found["edp"]
    has_gtp = GTP in data.mesh.names
    if has_gtp and instances > 1:
        raise LayoutError(
            "instances-with-gtp",
            f"gtp does not go with {instances} optimizer instances",
            control=control,
            alternatives=[{control: 1}, {"gtp": 1, "egtp": 1}],
            facts={"instances": instances},
            quote="GTP_remat with num_distributed_optimizer_instances > 1 is not yet supported.",
        )
    for grouping, label in ((data, "Data"), (expert_data, "Expert data")):
        if grouping.size % instances:
            both = divisors(math.gcd(data.size, expert_data.size))
            asked = quoted(instances)
            below = [n for n in both if n < instances][-1:]
            above = [n for n in both if n > instances][:1]
            raise LayoutError(
                "instances-do-not-divide",
                f"{asked} optimizer instances do not divide the {grouping.size} ranks of a "
                f"{grouping.name} group",
                control=control,
                alternatives=[{control: n} for n in below + above],
                facts={"instances": asked, "size": grouping.size, "group": grouping.name},
                quote=f"{label} parallel size should be divisible by partial DistOpt shard factor",
            )
    experts = found["tp-ep-pp"]
    joined = experts.num_groups // instances
    made = {"intra-dist-opt": replace(experts, name="intra-dist-opt", joined=joined)}
    if has_gtp:  # there it is the whole world in order
        everyone = "-".join(data.mesh.names)
        made["intra-dist-opt"] = Grouping("intra-dist-opt", data.mesh, everyone)
    if instances > 1:
        shard = expert_data.size // instances
        runs = data.size // instances
        made["intra-dp-cp"] = replace(data, name="intra-dp-cp", length=runs)
        made["intra-edp"] = replace(expert_data, name="intra-edp", length=shard)
        made["inter-edp"] = replace(expert_data, name="inter-edp", length=instances, stride=shard)
    return made


def _levels(context: Grouping, sizes: Sequence[int]) -> dict[str, Grouping]:
    """Hierarchical context parallelism: level i has groups of s_i, s_0 * ... * s_(i-1) apart."""
    control = "hierarchical_context_parallel_sizes"
    whole = _whole_numbers(sizes, control, minimum=1, maximum=MAX_RANKS)
    if math.prod(whole) != context.size:
        product = " x ".join(map(str, whole))
        inner = divisors(context.size)[1:-1] or (1,)
        wanted = whole[0] if whole else 1
        first = min(inner, key=lambda size: abs(math.log(size / wanted)))
        raise LayoutError(
            "levels-do-not-multiply",
            f"the levels {product} = {math.prod(whole)} are not cp {context.size}",
            why="the levels of hierarchical context parallelism cut one cp group completely",
            control=control,
            alternatives=[{control: (first, context.size // first)}],
            facts={"levels": product, "cp": context.size},
        )
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
        raise LayoutError(
            "hybrid-with-pipeline",
            f"hybrid context parallelism does not go with pp {pp}",
            control="pp",
            alternatives=[off, {"pp": 1}],
            facts={"pp": pp},
        )
    if data.size % 2:
        raise LayoutError(
            "hybrid-needs-even",
            f"hybrid context parallelism needs an even number of ranks, not dp x cp = {data.size}",
            control="cp",
            alternatives=[off],
            facts={"size": data.size},
            quote="Hybrid context parallelism requires an even number of ranks",
        )
    runs = (2**power for power in range(1, int(math.log2(data.size))))
    return {
        f"hybrid-dp-cp-{run}": replace(data, name=f"hybrid-dp-cp-{run}", length=run) for run in runs
    }


# -- options that change no group ----------------------------------------------------------------


def _refuse_virtual_stages(vpp: int | None, pp: int) -> None:
    if vpp is None:
        return
    control = "virtual_pipeline_model_parallel_size"
    whole_number(vpp, control)
    if pp == 1:
        raise LayoutError(
            "virtual-stages-without-pipeline",
            f"{vpp} virtual stages need a pipeline, and pp is 1",
            control=control,
            alternatives=[{control: None}],
            facts={"vpp": vpp},
            quote="pipeline-model-parallel size should be greater than 1 with interleaved schedule",
        )


SHARP_GROUPS = ("dp", "dp_replica")


def _refuse_sharp(use_sharp: bool, group: str | None, instances: int) -> None:
    """SHARP serves one group only, dp or (between optimizer instances) dp_replica."""
    if group is None:
        return
    quote = ""
    if not use_sharp:
        quote = "sharp_enabled_group is only valid when use_sharp is True"
    elif group not in SHARP_GROUPS:
        quote = "Invalid sharp_enabled_group"
    elif group == "dp_replica" and instances == 1:
        quote = "dp_replica group requires num_distributed_optimizer_instances > 1"
    if quote:
        raise LayoutError(
            "sharp-group",
            f"SHARP cannot serve the group {quoted(group)} here",
            why="it serves dp, or dp_replica with several instances, where it is switched on",
            control="sharp_enabled_group",
            alternatives=[{"sharp_enabled_group": None}],
            facts={"group": quoted(group)},
            quote=quote,
        )
