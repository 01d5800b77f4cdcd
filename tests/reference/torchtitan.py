"""torch's DeviceMesh and the two views that torchtitan takes of one world.

A DeviceMesh is row-major: its last axis is the fastest. torchtitan cuts the world twice, into
dense layers and experts (names outer to inner, as torchtitan writes them):

    dense     pp  dp_replicate  dp_shard  cp  tp        fsdp = dp_shard x cp
    sparse    pp  dp_replicate  efsdp         ep        efsdp = fsdp x tp / ep

so ep takes the innermost ranks, over tp and cp: Megatron's default order with etp 1.
Source: torch 2.13.0 torch/distributed/device_mesh.py; pytorch/torchtitan b5bcd76 (0.3.0)
torchtitan/distributed/parallel_dims.py. Both were run to check this file.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral

from groups.errors import LayoutError
from groups.frameworks import FRAMEWORKS
from groups.mesh import Mesh, whole_number
from tests.reference.meshes import row_major


def device_mesh(world: int, shape: Sequence[int], names: Sequence[str]) -> Mesh:
    """init_device_mesh(shape, mesh_dim_names=names) on ``world`` ranks.

    A flattened slice such as mesh["dp", "cp"] is the kind "dp-cp".

    >>> str(device_mesh(8, (2, 4), ("dp", "tp")))
    'tp4-dp2'

    Errors: LayoutError, also for a mesh smaller than the world, which torch accepts: the other
    ranks would be in no group.
    """
    try:
        mesh = row_major(names, shape)
    except LayoutError as error:
        if error.code != "names-and-sizes-differ":
            raise
        message = (
            "mesh_shape and mesh_dim_names should have same length! Found len(mesh_dim_names): "
            f"{len(names)} and len(mesh_shape):{len(shape)}."
        )
        raise error.replace(quote=message) from None
    if mesh.world_size != whole_number(world, "world"):
        shown = " x ".join(f"{name} {size}" for name, size in zip(names, shape))
        raise LayoutError(
            "does-not-fill",
            f"{shown} = {mesh.world_size} does not fill {world} GPUs",
            why="every rank stands in the mesh once",
            control="mesh",
            alternatives=[{"world": mesh.world_size}],
            facts={"sizes": shown, "product": mesh.world_size, "world": world},
        )
    return mesh


def torchtitan_meshes(
    world: int,
    *,
    dp_replicate: int = 1,
    dp_shard: int = -1,
    cp: int = 1,
    tp: int = 1,
    pp: int = 1,
    ep: int = 1,
) -> tuple[Mesh, Mesh]:
    """The dense and the sparse mesh of torchtitan's degrees; dp_shard -1 is what remains.

    >>> dense, sparse = torchtitan_meshes(16, tp=2, pp=2, ep=4)
    >>> str(dense), str(sparse)
    ('tp2-cp1-dp_shard4-dp_replicate1-pp2', 'ep4-efsdp2-dp_replicate1-pp2')

    Errors: LayoutError where torchtitan refuses; ``quote`` is its own message. It fills dp_shard
    by floor division and then finds that the product is not the world; here the sizes that do not
    divide it are named.
    """
    titan = FRAMEWORKS["torchtitan"]
    degrees = {"dp_replicate": dp_replicate, "dp_shard": dp_shard, "cp": cp, "tp": tp, "pp": pp}
    given = {n: size for n, size in degrees.items() if n != "dp_shard" or size != -1}
    try:
        dense = titan.mesh(world, **given)
    except LayoutError as error:
        raise error.replace(quote=_dense_message(error, world, degrees)) from None
    try:
        return dense, titan.mesh(world, "expert", ep=ep, dp_replicate=dp_replicate, pp=pp)
    except LayoutError as error:
        raise error.replace(quote=_sparse_message(error, dense, ep)) from None


def _dense_message(error: LayoutError, world: int, degrees: Mapping[str, int]) -> str:
    """The words of torchtitan itself; empty where it asserts without any."""
    whole = all(isinstance(size, Integral) for size in degrees.values())
    if not whole or error.code == "not-a-whole-number" or error.control == "world":
        return ""
    if any(size < 1 for name, size in degrees.items() if name != "dp_shard"):
        return "Parallelism degree should be >= 1, except for dp_shard"
    if degrees["dp_shard"] < 1 and degrees["dp_shard"] != -1:
        return "dp_shard must -1 or >=1."
    others = math.prod(size for name, size in degrees.items() if name != "dp_shard")
    filled = world // others if degrees["dp_shard"] == -1 else degrees["dp_shard"]
    product = " * ".join(f"{n}({s})" for n, s in {**degrees, "dp_shard": filled}.items())
    return f"Invalid parallel dims: {product} != WORLD_SIZE({world})" if filled else ""


def _sparse_message(error: LayoutError, dense: Mesh, ep: int) -> str:
    """What torch says when the sparse view is cut out of the world."""
    if error.code == "not-a-whole-number":
        return ""
    if ep < 1:
        return "Parallelism degree should be >= 1, except for dp_shard"
    efsdp = dense.size("dp_shard") * dense.size("cp") * dense.size("tp") // ep
    sizes = (dense.size("pp"), dense.size("dp_replicate"), efsdp, ep)
    return (
        f"The product of mesh_sizes={sizes} is {math.prod(sizes)}, but the original dimension at "
        f"dim=0 has size {dense.world_size}. These must be equal for unflatten to work correctly."
    )
