"""Nodes and GPUs per node: set directly, as the world size, or as what the sizes need."""

from __future__ import annotations

import math
from collections.abc import Collection

from groups.frameworks import framework_of
from groups.notes import Note

from ...values import Document, Facts
from .. import flags
from ..flags import AXES
from ..sayings import Assignment
from .settled import IN_ALL, Remarks, Settled, values_of

GPUS_PER_NODE = 8
"""GPUs of a node if the text does not set them."""


def set_machines(
    settled: Settled, sizes: Document, engine: str, remarks: Remarks, servers: int
) -> Document:
    """Sets nodes and GPUs per node if the text has them by other names, or assumes them if it has
    only their product. engine: the server that it starts, if all its sizes are set; servers: how
    many commands start it."""
    tasks = settled.get("tasks_per_node")
    if "gpus_per_node" not in sizes and tasks and tasks.value > 1:
        sizes["gpus_per_node"] = tasks.value
    if "nodes" not in sizes and "single" in settled and settled["single"].value:
        sizes["nodes"] = 1
    values = values_of(settled)
    filled = _filled(engine, values, sizes) if engine else _degrees(settled, sizes, remarks)
    world = _world(settled, sizes)
    size = world.value if world else filled
    if size is None:
        return {}
    nodes, gpus = sizes.get("nodes"), sizes.get("gpus_per_node")
    taken = 0 if world or not filled or nodes not in (None, 1) else filled * max(1, servers)
    if gpus and 0 < taken < gpus:
        facts = {"taken": taken, "gpus_per_node": gpus}
        remarks.missing.append(Note("server-leaves-gpus", facts))
        sizes |= {"nodes": 1, "gpus_per_node": taken}
        return {}
    known = nodes or gpus or min(size, GPUS_PER_NODE)
    if nodes and gpus:
        counts_nodes = world is not None and world.row.rank == flags.VARIABLE_RANK and size == nodes
        if world and world.field == "world" and size != nodes * gpus and not counts_nodes:
            remarks.add_difference(world, "world-differs", nodes * gpus)
    elif size % known:
        if world:
            remarks.add_difference(world, "world-does-not-divide", known)
    elif nodes or gpus:
        sizes["gpus_per_node" if nodes else "nodes"] = size // known
    else:
        assumed = {"nodes": size // known, "gpus_per_node": known}
        facts = {"world": size, "gpus_per_node": known, "nodes": size // known}
        remarks.missing.append(Note("nodes-of-world", facts))
        return assumed
    return {}


def _world(settled: Settled, sizes: Facts) -> Assignment | None:
    """The number of all GPUs, if the text sets it; tasks may be launchers, one per node."""
    tasks = settled.get("tasks_per_node")
    world = settled.get("world") or (None if "gpus_per_node" in sizes else settled.get("tasks"))
    if world is None and "nodes" not in sizes:
        world = settled.get("tasks") if not (tasks and tasks.value == 1) else None
    is_launchers = world and world.field == "tasks" and world.value == sizes.get("nodes")
    return None if is_launchers else world


def _filled(engine: str, values: Facts, sizes: Facts) -> int:
    """The GPUs that the sizes of a server need, with those of servers beside it."""
    beside = 1 if values.get("dp_attention") else values.get("dp_served", 1)
    return framework_of(engine).gpus_of_copy({**sizes, "dp": 1}) * int(beside)


def _degrees(settled: Settled, sizes: Facts, remarks: Remarks) -> int | None:
    """The product of torchtitan's or Automodel's degrees, unless one is to be what remains."""
    values = values_of(settled)
    name = "shard" if values.get("shard", -1) != -1 else "dp_all"
    if name not in values:
        return None
    size = math.prod(int(sizes.get(axis, 1)) for axis in ("tp", "pp", "cp"))
    size *= values[name] * (values.get("replicate", 1) if name == "shard" else 1)
    nodes, gpus = sizes.get("nodes"), sizes.get("gpus_per_node")
    here = (nodes or 1) * (gpus or 1)
    if size % here or (nodes and gpus and here != size):
        remarks.add_difference(settled[name], "degrees-differ", size)
    return size if size <= flags.limit_of("world") else None


def set_nodes(sizes: Facts, assumed: Document, remarks: Remarks) -> None:
    """Assumes the fewest nodes that hold the sizes, if the text does not set their number."""
    known = {**assumed, **sizes}
    if remarks.asks:
        for name in ("nodes", "gpus_per_node"):
            if name not in known:
                remarks.ask(name)
        return
    if "gpus_per_node" not in known:
        remarks.assume(assumed, "gpus_per_node", GPUS_PER_NODE)
    if "nodes" in known:
        return
    assumed["nodes"] = fewest_nodes({**dict.fromkeys(AXES, 1), **assumed, **sizes})
    facts = {"field": "nodes", "assumed": assumed["nodes"]}
    remarks.missing.append(Note("fewest-nodes", facts))


def defaulted_nodes(settled: Settled, known: Collection[str]) -> dict[str, str]:
    """The variable that nothing sets, and whose default is the number of nodes."""
    sources = ("nodes",) if "nodes" in settled else IN_ALL
    defaults = [settled[name].default for name in sources if name in settled]
    default = next(filter(None, defaults), None)
    return {"nodes": default.name} if default and "nodes" in known else {}


def fewest_nodes(size: Facts) -> int:
    """The fewest nodes that hold these sizes. copy: the data parallel ranks of one copy.

    >>> fewest_nodes({"tp": 1, "cp": 1, "pp": 4, "ep": 8, "etp": 1, "gpus_per_node": 8})
    4
    """
    gtp, egtp = size.get("gtp", 1), size.get("egtp", 1)
    dense = size["tp"] * size["cp"] * size["pp"] * gtp * size.get("copy", 1)
    expert = (size.get("etp") or size["tp"]) * size["ep"] * size["pp"] * egtp
    world = math.lcm(dense, expert if size["ep"] * egtp > 1 else 1, size["gpus_per_node"])
    return int(world // size["gpus_per_node"])
