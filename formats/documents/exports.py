"""The groups and the ranks of a job as documents: JSON and CSV, of a schema that has a version.

    groups   name, group, size, nodes_spanned, ranks
    ranks    rank, node, local_rank, <mesh>_<axis> ..., group_<name> ...

Either is written as JSON, which says all of the job, and as CSV, which is the bare table. A mesh is
dense, expert, and of a framework with axes of its own, own and own-expert. Groups go by Megatron's
names; those of a framework's own have the prefix ``own.``, because some mean others (fairscale's mp
is tp, Megatron's is tp x pp).

docs/schema.md describes every field; `check_document` reads a document back. A large job is written
in parts: ``*_parts`` yield text of whole lines, so nothing holds all of it. They take names of
groups, or None for all, and a placement where hosts, devices and racks are said too.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice

import numpy as np

from groups.audit import spans_of
from groups.budget import spend
from groups.errors import LayoutError, in_any_case, quoted
from groups.grouping import Grouping
from groups.layout import OWN_PREFIX, Layout, framework_name, job_fields
from groups.megatron.parallel_state import family
from groups.mesh import Mesh
from groups.placement import Placement

from ..errors import refusal

GROUPS = "parallel-groups"
RANKS = "parallel-ranks"
VERSION = 1

BLOCK = 4096
"""Lines that are written in one part."""

_FORMULA = re.compile(r"[=+@\t\r-].", re.DOTALL)
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-inf", re.ASCII)

LINE, LISTED, CELLS = 1, 4, 8
"""Units of work (groups.budget) per group; ranks of groups, and cells of a table, per unit."""

Names = Iterable[str] | None

# -- what a document says ------------------------------------------------------------------------


def groups_by_name(layout: Layout, names: Names = None) -> dict[str, Grouping]:
    """The groups with these names, in this order; all groups if none are passed.

    A name of the framework's own needs no prefix where Megatron has no such name.

    >>> from groups.layout import Job
    >>> layout = Job(nodes=2, tp=2, framework="deepspeed").layout()
    >>> [*groups_by_name(layout, ["TP", "own.data", "pipe"])]
    ['tp', 'own.data', 'own.pipe']

    Errors: LayoutError for a name that the job has no groups of, with the nearest names.
    """
    every = {**layout.every, **layout.own}
    if names is None:
        return every
    groupings = {}
    for name in map(str, names):
        spelled = (name, f"{OWN_PREFIX}{name}", *_in_any_case(name, every))
        key = next((key for key in spelled if key in every), None)
        if key is None:
            raise _no_such_group(layout, name, list(every))
        groupings[key] = every[key]
    return groupings


def _in_any_case(name: str, names: Iterable[str]) -> tuple[str, str]:
    """The names that this one matches, with and without the prefix, ignoring case."""
    prefixed = f"{OWN_PREFIX}{name}"
    return str(in_any_case(name, names)), str(in_any_case(prefixed, names))


def meshes(layout: Layout) -> dict[str, Mesh]:
    """Every mesh that numbers the ranks, by its name in a document.

    >>> from groups.layout import Job
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
    of_axes = dict.fromkeys(grouping.mesh for grouping in layout.own.values())
    by_name |= dict(zip(("own", "own-expert"), of_axes))
    for name, group in (("gathers", "dp-cp-ag"), ("gathers-expert", "edp-ag")):
        if group in layout.every and layout.every[group].mesh not in by_name.values():
            by_name[name] = layout.every[group].mesh  # of another order than the job's
    return by_name


def heading(layout: Layout, schema: str, placement: Placement | None = None) -> dict[str, object]:
    """The first fields of every document about a job; placement: the machines by rank."""
    placed = {"placement": dict(placement.columns())} if placement else {}
    return {
        "schema": schema,
        "version": VERSION,
        "job": job_fields(layout.explicit_job),
        "meshes": {name: str(mesh) for name, mesh in meshes(layout).items()},
        "world_size": layout.world_size,
        "gpus_per_node": layout.gpus_per_node,
        **placed,
    }


def _no_such_group(layout: Layout, name: str, known: list[str]) -> LayoutError:
    same_axes = [group for group in known if sorted(group.split("-")) == sorted(name.split("-"))]
    near = same_axes or difflib.get_close_matches(name, known, cutoff=0.5)
    facts = {"name": quoted(name).strip("'"), "framework": framework_name(layout.framework)}
    what, why = f"this layout makes no group {quoted(name)}", f"its groups are {', '.join(known)}"
    fixes = ({"group": name} for name in near)
    return refusal("no-such-group", "group", *fixes, sentence=what, why=why, **facts)


# -- groups --------------------------------------------------------------------------------------


def spend_on_groups(chosen: Iterable[Grouping]) -> None:
    """Counts the work of listing groups. Errors: LayoutError if it exceeds the budget."""
    units = sum(grouping.num_groups * (LINE + grouping.size / LISTED) for grouping in chosen)
    spend(int(units), "listed-ranks", control="nodes")


def groups_json_parts(
    layout: Layout, names: Names = None, placement: Placement | None = None
) -> Iterator[str]:
    """All groups of these names: the document ``parallel-groups``.

    >>> from groups.layout import Job
    >>> text = "".join(groups_json_parts(Job(gpus_per_node=4, tp=2).layout(), ["dp"]))
    >>> json.loads(text)["groups"]["dp"]["groups"]
    [[0, 2], [1, 3]]
    """
    chosen = groups_by_name(layout, names)
    spend_on_groups(chosen.values())
    yield opened(heading(layout, GROUPS, placement))
    yield '  "groups": {'
    between = "\n"
    for name, grouping in chosen.items():
        about = opened(_about(layout, name, grouping, placement), indent="    ")
        yield f'{between}    {json.dumps(name)}: {about}      "groups": [\n'
        before = "        "
        for part in _lists(grouping):
            yield before + str(part)[1:-1].replace("], [", "],\n        [")
            before = ",\n        "
        yield "\n      ]\n    }"
        between = ",\n"
    yield "\n  }\n}\n"


def spanned(layout: Layout, grouping: Grouping, placement: Placement | None) -> list[int]:
    """The number of machines that each group spans."""
    return spans_of(grouping, placement.nodes if placement else layout.gpus_per_node).tolist()


def _about(
    layout: Layout, name: str, grouping: Grouping, placement: Placement | None
) -> dict[str, object]:
    """The fields of a document about the groups of one name, except their ranks."""
    is_own = name not in layout.every
    named = sorted(meshes(layout).items(), key=lambda one: one[0].startswith("own") == is_own)
    of_mesh = {mesh: key for key, mesh in named}  # of two names of a mesh, that of its kind
    row = None if is_own or not layout.made_by.has_grids else family(name)
    own_carries = layout.made_by.carries(name.removeprefix(OWN_PREFIX))
    return {
        "grid": of_mesh[grouping.mesh],
        "kind": grouping.kind,
        "parallel_state": row.parallel_state if row else None,
        "carries": row.carries if row else own_carries,
        "nodes_spanned": spanned(layout, grouping, placement),
    }


def groups_csv_parts(
    layout: Layout, names: Names = None, placement: Placement | None = None
) -> Iterator[str]:
    """One line a group; its ranks are joined by spaces, and so is where they stand, as host:device.

    >>> from groups.layout import Job
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
        groups = chain.from_iterable(_lists(grouping))
        lines = (
            f"{name},{index},{len(ranks)},{count},{str(ranks)[1:-1].replace(',', '')}"
            f"{',' + quoted_cell(' '.join(placement.where(ranks))) if placement else ''}\n"
            for index, (ranks, count) in enumerate(zip(groups, nodes))
        )
        yield from _blocks(lines)


def groups_text_parts(
    layout: Layout, names: Names = None, placement: Placement | None = None
) -> Iterator[str]:
    """One line per group, in the form that people paste.

    >>> from groups.layout import Job
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
        for index, ranks in enumerate(chain.from_iterable(_lists(grouping)))
    )


# -- ranks ---------------------------------------------------------------------------------------


def rank_columns(
    layout: Layout, names: Names = None, placement: Placement | None = None
) -> dict[str, np.ndarray]:
    """The table of ranks by column: int arrays, shape (world_size,); -1 means no group.

    placement: the nodes and local ranks are its.

    >>> from groups.layout import Job
    >>> columns = rank_columns(Job(gpus_per_node=4, pp=4).layout(), ["embd"])
    >>> columns["dense_pp"].tolist(), columns["group_embd"].tolist()
    ([0, 1, 2, 3], [0, -1, -1, 0])
    """
    chosen, grids = groups_by_name(layout, names), meshes(layout)
    width = 3 + sum(len(mesh.names) for mesh in grids.values()) + len(chosen)
    spend(layout.world_size * width // CELLS, "table-cells", control="nodes")
    ranks = np.arange(layout.world_size, dtype=np.int32)
    node, local_rank = np.divmod(ranks, layout.gpus_per_node)
    columns = {"rank": ranks, "node": node, "local_rank": local_rank}
    for name, mesh in grids.items():
        for axis, size, stride in zip(mesh.names, mesh.sizes, mesh.strides):
            columns[f"{name}_{axis}"] = ranks // stride % size
    for name, grouping in chosen.items():
        columns[f"group_{name}"] = grouping.index().astype(np.int32)
    if placement is not None:
        columns |= {"node": placement.nodes, "local_rank": placement.local_ranks}
    return columns


def ranks_json_parts(
    layout: Layout,
    names: Names = None,
    placement: Placement | None = None,
    first: int | None = None,
) -> Iterator[str]:
    """Every rank, where it stands, its groups by index: the document ``parallel-ranks``.

    first: list only so many, from rank 0 on; the document says so as ``first``.
    """
    columns = rank_columns(layout, names)
    part = {} if first is None else {"first": first}
    yield opened({**heading(layout, RANKS, placement), **part, "columns": list(columns)})
    columns = {name: column[:first] for name, column in columns.items()}
    yield '  "ranks": [\n'
    rows = (f"    [{', '.join(row)}]" for row in _cells(columns, empty="null"))
    yield from _blocks(rows, ",\n")
    yield "\n  ]\n}\n"


def ranks_csv_parts(
    layout: Layout, names: Names = None, placement: Placement | None = None
) -> Iterator[str]:
    """One line per rank; a group index is empty if the rank is in no such group.

    >>> from groups.layout import Job
    >>> layout = Job(gpus_per_node=2, pp=2).layout()
    >>> print(*ranks_csv_parts(layout, ["pp", "pos-embd"]), sep="", end="")
    ... # doctest: +NORMALIZE_WHITESPACE
    rank,node,local_rank,dense_tp,dense_cp,dense_dp,dense_pp,expert_etp,expert_ep,expert_edp,expert_pp,group_pp,group_pos-embd
    0,0,0,0,0,0,0,0,0,0,0,0,0
    1,0,1,0,0,0,1,0,0,0,1,0,
    """
    columns = rank_columns(layout, names, placement)
    more = dict(placement.columns()) if placement else {}
    yield ",".join([*columns, *more]) + "\n"
    rows = _cells(columns, empty="")
    if more:
        quoted = (map(quoted_cell, column) for column in more.values())
        rows = (row + extra for row, extra in zip(rows, zip(*quoted)))
    yield from _blocks(",".join(row) + "\n" for row in rows)


def plain_cell(text: str) -> str:
    """A text that spreadsheets show unchanged: with an apostrophe in front of what they would
    evaluate.

    >>> plain_cell("=cmd()"), plain_cell("-1.5e3"), plain_cell("node1"), plain_cell("-")
    ("'=cmd()", '-1.5e3', 'node1', '-')

    Source: OWASP, CSV Injection: cells that begin with = + - @, a tab or a carriage return.
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def quoted_cell(text: str) -> str:
    """A cell of a CSV: quoted if it contains a comma, a quote or a line break."""
    text = plain_cell(text)
    doubled = text.replace('"', '""')
    return f'"{doubled}"' if re.search(r'[",\r\n]', text) else text


def _cells(columns: Mapping[str, np.ndarray], empty: str) -> Iterator[tuple[str, ...]]:
    """The rows of a table of ranks as text; ``empty`` is written for -1."""
    world = len(columns["rank"])
    most = max((int(column.max(initial=0)) for column in columns.values()), default=0)
    text = [*map(str, range(most + 1)), empty]  # numbers up to the largest, and -1: a look-up each
    for start in range(0, world, BLOCK):
        block = (column[start : start + BLOCK].tolist() for column in columns.values())
        yield from zip(*(map(text.__getitem__, column) for column in block))


# -- writing -------------------------------------------------------------------------------------


def opened(head: Mapping[str, object], indent: str = "") -> str:
    """The beginning of a JSON object, one field per line, with more fields to come."""
    lines = (f"{indent}  {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
    return "{\n" + "".join(lines)


def _blocks(items: Iterable[str], between: str = "") -> Iterator[str]:
    first, left = True, iter(items)
    while block := list(islice(left, BLOCK)):
        yield between.join(block if first else ["", *block])
        first = False


def _lists(grouping: Grouping) -> Iterator[list[list[int]]]:
    """The groups as lists, in Megatron's order, in blocks."""
    groups = grouping.groups()
    for start in range(0, len(groups), BLOCK):
        block = groups[start : start + BLOCK]
        yield block.tolist() if isinstance(block, np.ndarray) else block
