"""The groups and the ranks of a job as documents: JSON and CSV, of a schema that has a version.

Two tables answer most scripts: the groups by name, and the ranks with where they stand. Each is
written as JSON, which says all of the job, and as CSV, which is the bare table:

    groups   name, group, size, nodes_spanned, ranks
    ranks    rank, node, local_rank, <mesh>_<axis> ..., group_<name> ...

docs/schema.md describes every field; `check_document` reads a document back. A large job is written
in parts: ``*_parts`` yield text of whole lines, so nothing holds all of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

import numpy as np

from groups.audit import spans_of
from groups.budget import spend
from groups.conventions import CONVENTIONS
from groups.grouping import Grouping
from groups.layout import Layout
from groups.megatron.families import family
from groups.placement import Placement

from .headings import GROUPS, OWN_PREFIX, RANKS, groups_by_name, heading, meshes, places

BLOCK = 4096
"""Lines that are written as one part."""

LISTED, CELLS = 4, 8
"""Ranks of groups, and cells of a table, that are written for a unit of work (groups.budget)."""

LINE = 1
"""Units of work of one group besides its ranks: small groups are many lines."""


# -- groups --------------------------------------------------------------------------------------


def spend_on_groups(chosen: Iterable[Grouping]) -> None:
    """Count the work of listing groups. Errors: LayoutError if that is too much."""
    units = sum(grouping.num_groups * (LINE + grouping.size / LISTED) for grouping in chosen)
    spend(int(units), "listed-ranks", control="nodes")


def groups_json_parts(
    layout: Layout, names: Iterable[str] | None = None, placement: Placement | None = None
) -> Iterator[str]:
    """All groups of these names, or of all: the document ``parallel-groups``.

    placement: also host and device of each rank ("placement").

    >>> from groups.job import Job
    >>> text = "".join(groups_json_parts(Job(gpus_per_node=4, tp=2).layout(), ["dp"]))
    >>> json.loads(text)["groups"]["dp"]["groups"]
    [[0, 2], [1, 3]]
    """
    chosen = groups_by_name(layout, names)
    spend_on_groups(chosen.values())
    yield opened({**heading(layout, GROUPS), **_placed(placement)})
    yield '  "groups": {'
    between = "\n"
    for name, grouping in chosen.items():
        about = _about(layout, name, grouping, placement).items()
        said = "".join(f"      {json.dumps(key)}: {json.dumps(value)},\n" for key, value in about)
        yield f'{between}    {json.dumps(name)}: {{\n{said}      "groups": [\n'
        yield from _blocks((f"        {ranks}" for ranks in _lists(grouping)), ",\n")
        yield "\n      ]\n    }"
        between = ",\n"
    yield "\n  }\n}\n"


def _placed(placement: Placement | None) -> dict[str, Any]:
    """The machines by rank, as a field of a document."""
    return {"placement": dict(placement.columns())} if placement else {}


def spanned(layout: Layout, grouping: Grouping, placement: Placement | None) -> list[int]:
    """On how many machines each group stands."""
    return spans_of(grouping, placement.nodes if placement else layout.gpus_per_node).tolist()


def _about(
    layout: Layout, name: str, grouping: Grouping, placement: Placement | None
) -> dict[str, Any]:
    """What a document says about the groups of one name, but for their ranks."""
    is_own = name not in layout.every
    of_mesh = {mesh: key for key, mesh in meshes(layout).items() if key.startswith("own") == is_own}
    row = None if is_own else family(name)
    own = CONVENTIONS[layout.framework].groups if is_own else ()
    own_carries = (group.carries for group in own if OWN_PREFIX + group.name == name)
    return {
        "grid": of_mesh[grouping.mesh],
        "kind": grouping.kind,
        "parallel_state": row.parallel_state if row else None,
        "carries": row.carries if row else next(own_carries, ""),
        "nodes_spanned": spanned(layout, grouping, placement),
    }


def groups_csv_parts(
    layout: Layout, names: Iterable[str] | None = None, placement: Placement | None = None
) -> Iterator[str]:
    """One line a group: name, group, size, nodes_spanned, ranks (joined by spaces).

    placement: also where the ranks of each group stand, as host:device.

    >>> from groups.job import Job
    >>> print(*groups_csv_parts(Job(gpus_per_node=4, tp=2).layout(), ["tp"]), sep="", end="")
    name,group,size,nodes_spanned,ranks
    tp,0,2,1,0 1
    tp,1,2,1,2 3
    """
    chosen = groups_by_name(layout, names)
    spend_on_groups(chosen.values())
    yield f"name,group,size,nodes_spanned,ranks{',hosts' if placement else ''}\n"
    for name, grouping in chosen.items():
        nodes = spanned(layout, grouping, placement)
        lines = (
            f"{name},{index},{len(ranks)},{count},{str(ranks)[1:-1].replace(',', '')}"
            f"{',' + quoted_cell(' '.join(placement.where(ranks))) if placement else ''}\n"
            for index, (ranks, count) in enumerate(zip(_lists(grouping), nodes))
        )
        yield from _blocks(lines)


def groups_text_parts(
    layout: Layout, names: Iterable[str] | None = None, placement: Placement | None = None
) -> Iterator[str]:
    """One line a group, as people paste it; placement: and where its ranks stand.

    >>> from groups.job import Job
    >>> print(*groups_text_parts(Job(gpus_per_node=4, tp=2).layout(), ["tp"]), sep="", end="")
    tp group 0: [0, 1]
    tp group 1: [2, 3]
    """
    chosen = groups_by_name(layout, names)
    spend_on_groups(chosen.values())
    return _blocks(
        f"{name} group {index}: {ranks}"
        f"{' on ' + ' '.join(placement.where(ranks)) if placement else ''}\n"
        for name, grouping in chosen.items()
        for index, ranks in enumerate(_lists(grouping))
    )


# -- ranks ---------------------------------------------------------------------------------------


def rank_columns(layout: Layout, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The table of ranks by column: int arrays, shape (world_size,); -1 is no group.

    >>> from groups.job import Job
    >>> columns = rank_columns(Job(gpus_per_node=4, pp=4).layout(), ["embd"])
    >>> columns["dense_pp"].tolist(), columns["group_embd"].tolist()
    ([0, 1, 2, 3], [0, -1, -1, 0])
    """
    chosen, grids = groups_by_name(layout, names), meshes(layout)
    width = 3 + sum(len(mesh.names) for mesh in grids.values()) + len(chosen)
    spend(layout.world_size * width // CELLS, "table-cells", control="nodes")
    groups = {
        f"group_{name}": grouping.index().astype(np.int32) for name, grouping in chosen.items()
    }
    return places(grids, layout.world_size, layout.gpus_per_node) | groups


def ranks_json_parts(
    layout: Layout, names: Iterable[str] | None = None, placement: Placement | None = None
) -> Iterator[str]:
    """Every rank, where it stands, its groups by index: the document ``parallel-ranks``.

    placement: also host and device of each rank ("placement").
    """
    columns, said = rank_columns(layout, names), _placed(placement)
    yield opened({**heading(layout, RANKS), **said, "columns": list(columns)})
    yield '  "ranks": [\n'
    rows = (f"    [{', '.join(row)}]" for row in _cells(columns, empty="null"))
    yield from _blocks(rows, ",\n")
    yield "\n  ]\n}\n"


def ranks_csv_parts(
    layout: Layout, names: Iterable[str] | None = None, placement: Placement | None = None
) -> Iterator[str]:
    """One line a rank; a group index is empty where the rank is in no such group.

    placement: its nodes and local ranks, and columns with host and racks.

    >>> from groups.job import Job
    >>> layout = Job(gpus_per_node=2, pp=2).layout()
    >>> print(*ranks_csv_parts(layout, ["pp", "pos-embd"]), sep="", end="")
    ... # doctest: +NORMALIZE_WHITESPACE
    rank,node,local_rank,dense_tp,dense_cp,dense_dp,dense_pp,expert_etp,expert_ep,expert_edp,expert_pp,group_pp,group_pos-embd
    0,0,0,0,0,0,0,0,0,0,0,0,0
    1,0,1,0,0,0,1,0,0,0,1,0,
    """
    columns = rank_columns(layout, names)
    if placement is None:
        lines = (",".join(row) + "\n" for row in _cells(columns, empty=""))
        return chain([",".join(columns) + "\n"], _blocks(lines))
    columns |= {"node": placement.nodes, "local_rank": placement.local_ranks}
    places = dict(placement.columns())
    rows = zip(_cells(columns, empty=""), *places.values())
    lines = (",".join([*row, *map(quoted_cell, more)]) + "\n" for row, *more in rows)
    return chain([",".join([*columns, *places]) + "\n"], _blocks(lines))


def quoted_cell(text: str) -> str:
    """A cell of a CSV: in quotes where it holds a comma, a quote or the end of a line."""
    quoted = text.replace('"', '""')
    return f'"{quoted}"' if re.search(r'[",\r\n]', text) else text


def _cells(columns: Mapping[str, np.ndarray], empty: str) -> Iterator[tuple[str, ...]]:
    """The rows of a table of ranks as text; ``empty`` stands for -1."""
    world = len(columns["rank"])
    text = [*map(str, range(world)), empty]  # numbers below the world, and -1: a look-up each
    for start in range(0, world, BLOCK):
        block = (column[start : start + BLOCK].tolist() for column in columns.values())
        yield from zip(*(map(text.__getitem__, column) for column in block))


# -- writing -------------------------------------------------------------------------------------


def opened(head: Mapping[str, Any]) -> str:
    """The beginning of a JSON object, one field a line, with more fields to come."""
    return "{\n" + "".join(f"  {json.dumps(k)}: {json.dumps(v)},\n" for k, v in head.items())


def _blocks(items: Iterable[str], between: str = "") -> Iterator[str]:
    first, left = True, iter(items)
    while block := list(islice(left, BLOCK)):
        yield between.join(block if first else ["", *block])
        first = False


def _lists(grouping: Grouping) -> Iterator[list[int]]:
    """The groups as lists, in Megatron's order; an array goes to lists a block at a time."""
    groups = grouping.groups()
    for start in range(0, len(groups), BLOCK):
        block = groups[start : start + BLOCK]
        yield from block.tolist() if isinstance(block, np.ndarray) else block
