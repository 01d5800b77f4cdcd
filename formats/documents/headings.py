"""What a document about a job says: its schema, its heading, its meshes, its groups by name.

A mesh is dense, expert, and where a framework has axes of its own, own and own-expert. Groups go by
Megatron's names; those of a framework's own have the prefix ``own.``, because some mean others
(fairscale's mp is tp, Megatron's is tp x pp). `exports` writes documents, `document_check` reads
them back, docs/schema.md describes them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from groups.conventions import MEGATRONS
from groups.errors import LayoutError, quoted
from groups.grouping import Grouping
from groups.layout import Layout, framework_name, own_groupings
from groups.mesh import Mesh

from ..errors import refusal

GROUPS = "parallel-groups"
RANKS = "parallel-ranks"
VERSION = 1

OWN_PREFIX = "own."
"""Before the name of a group that the framework itself names so."""


def groups_by_name(layout: Layout, names: Iterable[str] | None = None) -> dict[str, Grouping]:
    """The groups of these names, in this order; of all names if none are given.

    A name of the framework's own needs no prefix where Megatron has no such name.

    >>> from groups.job import Job
    >>> layout = Job(nodes=2, tp=2, framework="deepspeed").layout()
    >>> [*groups_by_name(layout, ["tp", "own.data", "pipe"])]
    ['tp', 'own.data', 'own.pipe']

    Errors: LayoutError for a name that the job has no groups of, with the nearest names.
    """
    every = dict(layout.every)
    if layout.framework not in MEGATRONS:
        for grouping in own_groupings(layout):
            every[OWN_PREFIX + grouping.name] = replace(grouping, name=OWN_PREFIX + grouping.name)
    if names is None:
        return every
    groupings = {}
    for name in map(str, names):
        key = name if name in every else f"{OWN_PREFIX}{name}"
        if key not in every:
            raise _no_such_group(layout, name, list(every))
        groupings[key] = every[key]
    return groupings


def meshes(layout: Layout) -> dict[str, Mesh]:
    """Every mesh that numbers the ranks, by the name it has in a document.

    >>> from groups.job import Job
    >>> for name, mesh in meshes(Job(tp=2, framework="torchtitan").layout()).items():
    ...     print(name, mesh)
    dense tp2-cp1-dp4-pp1
    expert etp1-ep1-edp8-pp1
    own tp2-cp1-dp_shard4-dp_replicate1-pp1
    own-expert ep1-efsdp8-dp_replicate1-pp1
    """
    by_name = {"dense": layout.mesh}
    if layout.expert is not None:
        by_name["expert"] = layout.expert
    if layout.framework not in MEGATRONS:
        of_axes = dict.fromkeys(grouping.mesh for grouping in own_groupings(layout))
        by_name |= dict(zip(("own", "own-expert"), of_axes))
    return by_name


def heading(layout: Layout, schema: str) -> dict[str, Any]:
    """The fields with which every document about a job begins."""
    return {
        "schema": schema,
        "version": VERSION,
        "job": asdict(layout.stated_job),
        "meshes": {name: str(mesh) for name, mesh in meshes(layout).items()},
        "world_size": layout.world_size,
        "gpus_per_node": layout.gpus_per_node,
    }


def places(grids: Mapping[str, Mesh], world: int, gpus_per_node: int) -> dict[str, np.ndarray]:
    """Where each rank stands: in its machine, and along every axis of every mesh."""
    ranks = np.arange(world, dtype=np.int32)
    columns = {"rank": ranks, "node": ranks // gpus_per_node, "local_rank": ranks % gpus_per_node}
    for name, mesh in grids.items():
        for axis, size, stride in zip(mesh.names, mesh.sizes, mesh.strides):
            columns[f"{name}_{axis}"] = ranks // stride % size
    return columns


def _no_such_group(layout: Layout, name: str, known: list[str]) -> LayoutError:
    same_axes = [group for group in known if sorted(group.split("-")) == sorted(name.split("-"))]
    near = same_axes or difflib.get_close_matches(name, known, cutoff=0.5)
    facts = {"name": quoted(name).strip("'"), "framework": framework_name(layout.framework)}
    said, why = f"this layout makes no group {quoted(name)}", f"its groups are {', '.join(known)}"
    fixes = ({"group": name} for name in near)
    return refusal("no-such-group", "group", *fixes, sentence=said, why=why, **facts)
