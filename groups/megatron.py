"""Every process group that Megatron creates, by name: two grids over the same ranks.

Dense layers live on a grid of tp, cp, dp and pp; experts on a grid of etp (the expert tp), ep, edp
(the expert dp) and pp. dp and edp are what remains of the world in each:

    dp = world / (tp * cp * pp)        edp = world / (etp * ep * pp)

Most groups are one request to one grid; the others are cut out of those. Names, grids, orders and
refusals as in NVIDIA/Megatron-LM, megatron/core/parallel_state.py, initialize_model_parallel, and
checked against megatron-core 0.16.1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .alternatives import divisors
from .errors import LayoutError
from .fitting import fit
from .mesh import Axis, Mesh, split_names, whole_number
from .ranks import rank_groups

ORDER = "tp-cp-ep-dp-pp"
"""Megatron's default order, fastest first; --use-tp-pp-dp-mapping makes it tp-cp-ep-pp-dp."""

APPENDED = ("tp", "pp", "dp", "ep", "cp")
"""Axes that an order may leave out if their size is 1, in the order in which they are appended."""

Groups = np.ndarray | list[list[int]]
"""Ranks, shape (num_groups, group_size); lists where the groups differ in size."""


@dataclass(frozen=True)
class Named:
    """A group that is one request to one grid."""

    grid: str  # "dense" or "expert"
    kind: str  # axes of that grid
    parallel_state: str  # its name in parallel_state.py, without the leading underscore


NAMED: dict[str, Named] = {
    "tp": Named("dense", "tp", "TENSOR_MODEL_PARALLEL_GROUP"),
    "cp": Named("dense", "cp", "CONTEXT_PARALLEL_GROUP"),
    "dp": Named("dense", "dp", "DATA_PARALLEL_GROUP"),
    "dp-cp": Named("dense", "dp-cp", "DATA_PARALLEL_GROUP_WITH_CP"),
    "pp": Named("dense", "pp", "PIPELINE_MODEL_PARALLEL_GROUP"),
    "mp": Named("dense", "tp-pp", "MODEL_PARALLEL_GROUP"),
    "tp-cp": Named("dense", "tp-cp", "TENSOR_AND_CONTEXT_PARALLEL_GROUP"),
    "tp-dp": Named("dense", "tp-dp", "TENSOR_AND_DATA_PARALLEL_GROUP"),
    "tp-dp-cp": Named("dense", "tp-dp-cp", "TENSOR_AND_DATA_PARALLEL_GROUP_WITH_CP"),
    "ep": Named("expert", "ep", "EXPERT_MODEL_PARALLEL_GROUP"),
    "etp": Named("expert", "tp", "EXPERT_TENSOR_PARALLEL_GROUP"),
    "tp-ep": Named("expert", "tp-ep", "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP"),
    "tp-ep-pp": Named("expert", "tp-ep-pp", "EXPERT_TENSOR_MODEL_PIPELINE_PARALLEL_GROUP"),
    "edp": Named("expert", "dp", "EXPERT_DATA_PARALLEL_GROUP"),
}


def grids(
    world: int,
    *,
    tp: int = 1,
    cp: int = 1,
    pp: int = 1,
    ep: int = 1,
    etp: int | None = None,
    order: str = ORDER,
) -> tuple[Mesh, Mesh]:
    """The dense and the expert mesh of a world, both with all five axes of the order.

    etp left out is tp. In the dense mesh ep is 1, in the expert mesh cp is 1 and tp is etp.

    >>> dense, expert = grids(16, tp=2, cp=2, pp=2, ep=8, etp=1)
    >>> str(dense), str(expert)
    ('tp2-cp2-ep1-dp2-pp2', 'tp1-cp1-ep8-dp1-pp2')

    Errors: LayoutError where Megatron refuses, and for what it accepts as nonsense (repeated or
    unknown axes, sizes below 1); ``quote`` is Megatron's own message where it has one.
    """
    given = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "etp": tp if etp is None else etp}
    whole = {name: whole_number(size, name) for name, size in given.items()}
    names = _complete(order, whole)
    dense = _grid(world, names, whole, ("tp", "cp", "pp"))
    expert = _grid(world, names, whole, ("etp", "ep", "pp"))
    _refuse_clashing_pipelines(dense, expert)
    return dense, expert


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
    embedding_stages: Sequence[int] = (0, -1),
) -> dict[str, Groups]:
    """All groups that Megatron creates, by name, in Megatron's order of groups and members.

    embedding_stages: the pipeline stages that share the word embedding, counted from the end if
    negative. intra-dist-opt is as Megatron lists it; torch sorts the ranks of a group.

    >>> groups = process_groups(16, tp=2, pp=4)
    >>> groups["embd"].tolist()
    [[0, 12], [1, 13], [2, 14], [3, 15]]
    >>> groups["mp"].tolist()
    [[0, 1, 4, 5, 8, 9, 12, 13], [2, 3, 6, 7, 10, 11, 14, 15]]

    Errors: as `grids`, and for instances or context parallel levels that do not divide.
    """
    dense, expert = grids(world, tp=tp, cp=cp, pp=pp, ep=ep, etp=etp, order=order)
    found: dict[str, Groups] = {
        name: rank_groups(dense if named.grid == "dense" else expert, named.kind)
        for name, named in NAMED.items()
    }
    pipelines = rank_groups(dense, "pp")
    stages = sorted({_stage(stage, pp) for stage in embedding_stages})
    found["embd"] = pipelines[:, stages]
    found["pos-embd"] = pipelines[:, :1]
    found |= _optimizer_instances(found, num_distributed_optimizer_instances)
    if hierarchical_context_parallel_sizes is not None:
        found |= _levels(rank_groups(dense, "cp"), hierarchical_context_parallel_sizes)
    if hybrid_context_parallel:
        found |= _hybrid(rank_groups(dense, "dp-cp"), pp)
    return found


def _complete(order: str, sizes: Mapping[str, int]) -> list[str]:
    """All five axes: those of the order, then the left-out ones, which must have size 1."""
    names = split_names(order, "order")
    for name in names:
        if name not in APPENDED:
            raise LayoutError(
                "unknown-axis",
                f"{name} is not an axis of Megatron's: an order joins {', '.join(APPENDED)}",
                control="order",
                facts={"value": repr(name), "mesh": "-".join(APPENDED)},
                quote=f"KeyError: '{name}'",
            )
    for name in APPENDED:
        size = max(sizes["tp"], sizes["etp"]) if name == "tp" else sizes.get(name, 1)
        if name not in names and size > 1:
            raise LayoutError(
                "axis-not-in-order",
                f"{name} has a size, but the order '{order}' does not name it",
                why="the order says how fast each axis varies, so it must name all of them",
                control="order",
                facts={"axis": name, "order": repr(order)},
                quote=f"The size of ({name}) is ({size}), but you haven'tspecified the order "
                f"({order}).",
            )
    return names + [name for name in APPENDED if name not in names]


def _grid(
    world: int, names: list[str], sizes: Mapping[str, int], used: tuple[str, str, str]
) -> Mesh:
    """One grid: the used sizes under the order's names, dp what remains, 1 for the other axis."""
    product = math.prod(sizes[name] for name in used)
    try:
        mesh = fit(world, order="-".join((*used, "dp")), **{name: sizes[name] for name in used})
    except LayoutError as error:
        if error.code not in ("does-not-divide", "out-of-range"):
            raise
        expert = "expert_tensor_model_pipeline_parallel size " if "etp" in used else ""
        shown = f"({product})" if expert else product
        message = f"world_size ({world}) is not divisible by {expert}{shown}"
        raise error.but(quote=message) from None
    size_of = {"tp" if name == "etp" else name: mesh.size(name) for name in mesh.names}
    return Mesh(tuple(Axis(name, size_of.get(name, 1)) for name in names))


def _refuse_clashing_pipelines(dense: Mesh, expert: Mesh) -> None:
    """With pp not last, both grids must put the same ranks into each pipeline."""
    if dense.size("pp") == 1:
        return
    if dense.names[-1] != "pp" and dense.size("dp") != expert.size("dp"):
        raise LayoutError(
            "dp-and-edp-differ",
            f"dp {dense.size('dp')} and edp {expert.size('dp')} differ, and pp is not last",
            why="only with pp last do both grids cut the stages alike whatever dp and edp are",
            control="order",
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
            facts={"dense": str(dense), "expert": str(expert)},
            quote="Pipeline parallel groups are expected to be the same for Non-Expert and Expert "
            "part",
        )


def _stage(stage: int, pp: int) -> int:
    """A pipeline stage counted from either end."""
    number = whole_number(stage, "embedding_stages", minimum=-pp, maximum=pp - 1)
    return number % pp


def _optimizer_instances(found: Mapping[str, Groups], instances: int) -> dict[str, Groups]:
    """The groups of N instances of the distributed optimizer: runs of dp-cp, levels of edp."""
    instances = whole_number(instances, "num_distributed_optimizer_instances")
    for name, label in (("dp-cp", "Data"), ("edp", "Expert data")):
        size = len(found[name][0])
        if size % instances:
            fitting = [n for n in divisors(size) if n <= instances][-1:]
            raise LayoutError(
                "instances-do-not-divide",
                f"{instances} optimizer instances do not divide the {size} ranks of a {name} group",
                control="num_distributed_optimizer_instances",
                alternatives=[{"num_distributed_optimizer_instances": n} for n in fitting],
                facts={"instances": instances, "size": size, "group": name},
                quote=f"{label} parallel size should be divisible by partial DistOpt shard factor",
            )
    experts = np.asarray(found["tp-ep-pp"])
    made: dict[str, Groups] = {"intra-dist-opt": experts.reshape(instances, -1)}
    if instances > 1:
        data, expert_data = np.asarray(found["dp-cp"]), np.asarray(found["edp"])
        shard = expert_data.shape[1] // instances
        made["intra-dp-cp"] = data.reshape(-1, data.shape[1] // instances)
        made["intra-edp"] = expert_data.reshape(-1, shard)
        made["inter-edp"] = (
            expert_data.reshape(-1, instances, shard).transpose(0, 2, 1).reshape(-1, instances)
        )
    return made


def _levels(context: np.ndarray, sizes: Sequence[int]) -> dict[str, Groups]:
    """Hierarchical context parallelism: each cp group is a small mesh, each level one of its axes.

    Level i has groups of size s_i whose members are s_0 * ... * s_(i-1) places apart.
    """
    cp = context.shape[1]
    whole = [whole_number(size, "hierarchical_context_parallel_sizes") for size in sizes]
    if math.prod(whole) != cp:
        raise LayoutError(
            "levels-do-not-multiply",
            f"the levels {' x '.join(map(str, whole))} = {math.prod(whole)} are not cp {cp}",
            why="the levels of hierarchical context parallelism cut one cp group completely",
            control="hierarchical_context_parallel_sizes",
            facts={"levels": " x ".join(map(str, whole)), "cp": cp},
        )
    names = [f"level_{'abcdefghijklmnopqrstuvwxyz'[i]}" for i in range(len(whole))]
    inside = Mesh(tuple(Axis(name, size) for name, size in zip(names, whole)))
    return {
        f"hcp-l{level}": context[:, rank_groups(inside, name)].reshape(-1, size)
        for level, (name, size) in enumerate(zip(names, whole))
    }


def _hybrid(data: np.ndarray, pp: int) -> dict[str, Groups]:
    """Hybrid context parallelism: each dp-cp group in runs of 2, 4, 8 ... below its half.

    The last run is short where the group's size is not a multiple of the run's.
    """
    size = data.shape[1]
    if pp > 1:
        raise LayoutError(
            "hybrid-with-pipeline",
            f"hybrid context parallelism does not go with pp {pp}",
            control="pp",
            alternatives=[{"pp": 1}],
            facts={"pp": pp},
        )
    if size % 2:
        raise LayoutError(
            "hybrid-needs-even",
            f"hybrid context parallelism needs an even number of ranks, not dp x cp = {size}",
            control="cp",
            facts={"size": size},
            quote="Hybrid context parallelism requires an even number of ranks",
        )
    made: dict[str, Groups] = {}
    for power in range(1, int(math.log2(size))):
        run = 2**power
        cut = [group[at : at + run].tolist() for group in data for at in range(0, size, run)]
        made[f"hybrid-dp-cp-{run}"] = np.array(cut) if size % run == 0 else cut
    return made
