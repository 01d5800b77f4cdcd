"""The groups and the ranks of a job as documents: JSON and CSV, of a schema that has a version.

Two tables answer most scripts: the groups by name, and the ranks with where they stand. Each is
written as JSON, which says all of the job, and as CSV, which is the bare table:

    groups   name, group, size, nodes_spanned, ranks
    ranks    rank, node, local_rank, <mesh>_<axis> ..., group_<name> ...

A mesh is dense, expert, and where a framework has axes of its own, own and own-expert. Groups go by
Megatron's names; those of a framework's own have the prefix ``own.``, because some mean others
(fairscale's mp is tp, Megatron's is tp x pp). docs/schema.md describes every field.

A large job is written in parts: ``*_parts`` yield text of whole lines, so nothing holds all of it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields, replace
from itertools import chain, islice
from typing import Any

import numpy as np

from .audit import spans_of
from .conventions import CONVENTIONS
from .errors import LayoutError, quoted
from .families import family
from .grouping import Grouping
from .job import MEGATRONS, OWN, Job, Made, framework_name, own_groupings
from .mesh import MAX_RANKS, Mesh, parse_mesh

GROUPS = "parallel-groups"
RANKS = "parallel-ranks"
VERSION = 1

OWN_PREFIX = "own."
"""Before the name of a group that the framework itself names so."""

BLOCK = 4096
"""Lines that are written as one part."""


# -- what there is to write ----------------------------------------------------------------------


def groups_by_name(made: Made, names: Iterable[str] | None = None) -> dict[str, Grouping]:
    """The groups of these names, in this order; of all names if none are given.

    A name of the framework's own needs no prefix where Megatron has no such name.

    >>> made = Job(nodes=2, tp=2, framework="deepspeed").made()
    >>> [*groups_by_name(made, ["tp", "own.data", "pipe"])]
    ['tp', 'own.data', 'own.pipe']

    Errors: LayoutError for a name that the job has no groups of, with the nearest names.
    """
    every = dict(made.every)
    if made.framework not in MEGATRONS:
        for one in own_groupings(made):
            every[OWN_PREFIX + one.name] = replace(one, name=OWN_PREFIX + one.name)
    if names is None:
        return every
    found = {}
    for name in names:
        key = name if name in every else f"{OWN_PREFIX}{name}"
        if key not in every:
            raise _no_such_group(made, name, list(every))
        found[key] = every[key]
    return found


def meshes(made: Made) -> dict[str, Mesh]:
    """Every mesh that numbers the ranks, by the name it has in a document.

    >>> for name, mesh in meshes(Job(tp=2, framework="torchtitan").made()).items():
    ...     print(name, mesh)
    dense tp2-cp1-dp4-pp1
    expert etp1-ep1-edp8-pp1
    own tp2-cp1-dp_shard4-dp_replicate1-pp1
    own-expert ep1-efsdp8-dp_replicate1-pp1
    """
    found = {"dense": made.mesh}
    if made.expert is not None:
        found["expert"] = made.expert
    if made.framework not in MEGATRONS:
        own = dict.fromkeys(grouping.mesh for grouping in own_groupings(made))
        found |= dict(zip(("own", "own-expert"), own))
    return found


def job_of(made: Made) -> Job:
    """A job that comes to the same grids and groups.

    >>> job = Job(nodes=2, cp=4, levels=(2, 2), instances=2)
    >>> again = job_of(job.made())
    >>> again.instances, again.levels, again.made().every == job.made().every
    (2, (2, 2), True)
    """
    sizes = {name: made.mesh.size(name) for name in ("tp", "pp", "cp")}
    if made.expert is not None:
        sizes |= {name: made.expert.size(name) for name in ("ep", "etp")}
    every = made.every
    instance = every.get("intra-dp-cp")
    levels = tuple(one.length for name, one in every.items() if name.startswith("hcp-"))
    return Job(
        nodes=made.world_size // made.gpus_per_node,
        gpus_per_node=made.gpus_per_node,
        **sizes,
        framework=made.framework,
        order=_order(made),
        instances=1 if instance is None else instance.whole // instance.length,
        levels=levels or None,
        hybrid=any(name.startswith("hybrid-") for name in every),
    )


def _order(made: Made) -> str:
    """The order of both grids, fastest first; ep where the expert grid has it."""
    if made.framework != OWN:
        return CONVENTIONS[made.framework].order
    assert made.expert is not None
    names = list(made.mesh.names)
    slower = made.expert.names[made.expert.names.index("ep") + 1 :]
    behind = [{"etp": "tp", "edp": "dp"}.get(name, name) for name in slower]
    names.insert(min((names.index(name) for name in behind), default=len(names)), "ep")
    return "-".join(names)


def heading(made: Made, schema: str) -> dict[str, Any]:
    """The fields with which every document about a job begins."""
    return {
        "schema": schema,
        "version": VERSION,
        "job": asdict(job_of(made)),
        "meshes": {name: str(mesh) for name, mesh in meshes(made).items()},
        "world_size": made.world_size,
        "gpus_per_node": made.gpus_per_node,
    }


def _about(made: Made, name: str, grouping: Grouping) -> dict[str, Any]:
    """What a document says about the groups of one name, but for their ranks."""
    is_own = name not in made.every
    of_mesh = {mesh: key for key, mesh in meshes(made).items() if key.startswith("own") == is_own}
    row = None if is_own else family(name)
    return {
        "grid": of_mesh[grouping.mesh],
        "kind": grouping.kind,
        "parallel_state": row.parallel_state if row else None,
        "carries": row.carries if row else _own_carries(made, name),
        "nodes_spanned": spans_of(grouping, made.gpus_per_node).tolist(),
    }


def _own_carries(made: Made, name: str) -> str:
    joined = CONVENTIONS[made.framework].groups
    return next((own.carries for own in joined if OWN_PREFIX + own.name == name), "")


def _no_such_group(made: Made, name: str, known: list[str]) -> LayoutError:
    same_axes = [one for one in known if sorted(one.split("-")) == sorted(name.split("-"))]
    near = same_axes or difflib.get_close_matches(name, known, cutoff=0.5)
    return LayoutError(
        "no-such-group",
        f"this layout makes no group {quoted(name)}",
        why=f"its groups are {', '.join(known)}",
        control="group",
        alternatives=[{"group": one} for one in near],  # type: ignore[dict-item]
        facts={"name": quoted(name).strip("'"), "framework": framework_name(made.framework)},
    )


# -- groups --------------------------------------------------------------------------------------


def groups_json(made: Made, names: Iterable[str] | None = None) -> str:
    """All groups of these names, or of all: the document ``parallel-groups``.

    >>> made = Job(gpus_per_node=4, tp=2).made()
    >>> json.loads(groups_json(made, ["dp"]))["groups"]["dp"]["groups"]
    [[0, 2], [1, 3]]
    """
    return "".join(groups_json_parts(made, names))


def groups_json_parts(made: Made, names: Iterable[str] | None = None) -> Iterator[str]:
    return _groups_json(made, groups_by_name(made, names))


def _groups_json(made: Made, chosen: Mapping[str, Grouping]) -> Iterator[str]:
    yield opened(heading(made, GROUPS))
    yield '  "groups": {'
    between = "\n"
    for name, grouping in chosen.items():
        about = _about(made, name, grouping).items()
        said = "".join(f"      {json.dumps(key)}: {json.dumps(value)},\n" for key, value in about)
        yield f'{between}    {json.dumps(name)}: {{\n{said}      "groups": [\n'
        yield from _listed(f"        {ranks}" for ranks in _lists(grouping))
        yield "\n      ]\n    }"
        between = ",\n"
    yield "\n  }\n}\n"


def groups_csv(made: Made, names: Iterable[str] | None = None) -> str:
    """One line a group: name, group, size, nodes_spanned, ranks (joined by spaces).

    >>> print(groups_csv(Job(gpus_per_node=4, tp=2).made(), ["tp"]), end="")
    name,group,size,nodes_spanned,ranks
    tp,0,2,1,0 1
    tp,1,2,1,2 3
    """
    return "".join(groups_csv_parts(made, names))


def groups_csv_parts(made: Made, names: Iterable[str] | None = None) -> Iterator[str]:
    return _groups_csv(made, groups_by_name(made, names))


def _groups_csv(made: Made, chosen: Mapping[str, Grouping]) -> Iterator[str]:
    yield "name,group,size,nodes_spanned,ranks\n"
    for name, grouping in chosen.items():
        nodes = spans_of(grouping, made.gpus_per_node).tolist()
        lines = (
            f"{name},{index},{len(ranks)},{spanned},{str(ranks)[1:-1].replace(',', '')}\n"
            for index, (ranks, spanned) in enumerate(zip(_lists(grouping), nodes))
        )
        yield from _blocks(lines)


def groups_text_parts(made: Made, names: Iterable[str] | None = None) -> Iterator[str]:
    """One line a group, as people paste it.

    >>> print(*groups_text_parts(Job(gpus_per_node=4, tp=2).made(), ["tp"]), sep="", end="")
    tp group 0: [0, 1]
    tp group 1: [2, 3]
    """
    chosen = groups_by_name(made, names)
    return _blocks(
        f"{name} group {index}: {ranks}\n"
        for name, grouping in chosen.items()
        for index, ranks in enumerate(_lists(grouping))
    )


# -- ranks ---------------------------------------------------------------------------------------


def rank_columns(made: Made, names: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The table of ranks by column: int arrays, shape (world_size,); -1 is no group.

    >>> columns = rank_columns(Job(gpus_per_node=4, pp=4).made(), ["embd"])
    >>> columns["dense_pp"].tolist(), columns["group_embd"].tolist()
    ([0, 1, 2, 3], [0, -1, -1, 0])
    """
    chosen = groups_by_name(made, names)
    groups = {f"group_{name}": one.index().astype(np.int32) for name, one in chosen.items()}
    return _places(meshes(made), made.world_size, made.gpus_per_node) | groups


def _places(found: Mapping[str, Mesh], world: int, gpus_per_node: int) -> dict[str, np.ndarray]:
    """Where each rank stands: in its machine, and along every axis of every mesh."""
    ranks = np.arange(world, dtype=np.int32)
    columns = {"rank": ranks, "node": ranks // gpus_per_node, "local_rank": ranks % gpus_per_node}
    for name, mesh in found.items():
        for axis, size, stride in zip(mesh.names, mesh.sizes, mesh.strides):
            columns[f"{name}_{axis}"] = ranks // stride % size
    return columns


def ranks_json(made: Made, names: Iterable[str] | None = None) -> str:
    """Every rank, where it stands, its groups by index: the document ``parallel-ranks``."""
    return "".join(ranks_json_parts(made, names))


def ranks_json_parts(made: Made, names: Iterable[str] | None = None) -> Iterator[str]:
    return _ranks_json(made, rank_columns(made, names))


def _ranks_json(made: Made, columns: Mapping[str, np.ndarray]) -> Iterator[str]:
    yield opened({**heading(made, RANKS), "columns": list(columns)})
    yield '  "ranks": [\n'
    yield from _listed(f"    [{', '.join(row)}]" for row in _cells(columns, empty="null"))
    yield "\n  ]\n}\n"


def ranks_csv(made: Made, names: Iterable[str] | None = None) -> str:
    """One line a rank; a group index is empty where the rank is in no such group.

    >>> print(ranks_csv(Job(gpus_per_node=2, pp=2).made(), ["pp", "pos-embd"]), end="")
    ... # doctest: +NORMALIZE_WHITESPACE
    rank,node,local_rank,dense_tp,dense_cp,dense_dp,dense_pp,expert_etp,expert_ep,expert_edp,expert_pp,group_pp,group_pos-embd
    0,0,0,0,0,0,0,0,0,0,0,0,0
    1,0,1,0,0,0,1,0,0,0,1,0,
    """
    return "".join(ranks_csv_parts(made, names))


def ranks_csv_parts(made: Made, names: Iterable[str] | None = None) -> Iterator[str]:
    columns = rank_columns(made, names)
    lines = (",".join(row) + "\n" for row in _cells(columns, empty=""))
    return chain([",".join(columns) + "\n"], _blocks(lines))


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


def _listed(items: Iterable[str]) -> Iterator[str]:
    """The items of a JSON list, one a line, without the last line's end."""
    between, left = "", iter(items)
    while block := list(islice(left, BLOCK)):
        yield between + ",\n".join(block)
        between = ",\n"


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    left = iter(lines)
    while block := "".join(islice(left, BLOCK)):
        yield block


def _lists(grouping: Grouping) -> Iterator[list[int]]:
    """The groups as lists, in Megatron's order; an array goes to lists a block at a time."""
    groups = grouping.groups()
    for start in range(0, len(groups), BLOCK):
        block = groups[start : start + BLOCK]
        yield from block.tolist() if isinstance(block, np.ndarray) else block


# -- reading back --------------------------------------------------------------------------------


def check_document(text: str) -> dict[str, Any]:
    """Read a document of groups or of ranks, and refuse one that docs/schema.md does not describe.

    >>> check_document('{"schema": "parallel-groups", "version": 2}')
    Traceback (most recent call last):
    groups.errors.LayoutError: this document has version 2; version 1 is read here

    Checked are the schema and its version, every field and its type, that all meshes number the
    same ranks, that a group's ranks are ranks of the world and in one group of a name only, and
    that nodes and coordinates are those of the meshes. Fields that are not known are let pass.

    Errors: LayoutError that names the place, such as ``groups.dp.groups[3]``.
    """
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise _bad(place, text[error.pos : error.pos + 100], "JSON") from None
    except (TypeError, ValueError, RecursionError):  # no text, endless numbers, endless depth
        raise _bad("the text", text, "JSON that can be read") from None
    if not isinstance(document, dict):
        raise _bad("the text", document, "an object")
    schema = _field(document, "schema", str)
    if schema not in (GROUPS, RANKS):
        raise LayoutError(
            "other-schema",
            f"this document has the schema {quoted(schema)}; {GROUPS} and {RANKS} are read here",
            control="document",
            facts={"value": quoted(schema), "known": f"{GROUPS}, {RANKS}"},
        )
    if _field(document, "version", int) != VERSION:
        raise LayoutError(
            "other-version",
            f"this document has version {quoted(document['version'])}; version {VERSION} is read "
            "here",
            control="document",
            facts={"value": quoted(document["version"]), "version": VERSION},
        )
    found = _checked_heading(document)
    check = _check_groups if schema == GROUPS else _check_ranks
    check(document, found)
    return document


JOB_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "instances"), (int,)),
    "etp": (int, type(None)),
    "framework": (str,),
    "order": (str,),
    "levels": (list, type(None)),
    "hybrid": (bool,),
}


def _checked_heading(document: dict[str, Any]) -> dict[str, Mesh]:
    """The meshes of a document whose job, world and meshes agree."""
    world = _field(document, "world_size", int)
    gpus_per_node = _field(document, "gpus_per_node", int)
    if not 1 <= world <= MAX_RANKS:
        raise _bad("world_size", world, f"1 to {MAX_RANKS}")
    if gpus_per_node < 1 or world % gpus_per_node:
        raise _bad("gpus_per_node", gpus_per_node, "a divisor of world_size")
    job = _field(document, "job", dict)
    for one in fields(Job):
        _field(job, one.name, *JOB_TYPES[one.name], place="job.")
    if (job["gpus_per_node"], job["nodes"]) != (gpus_per_node, world // gpus_per_node):
        raise _bad("job.nodes", job["nodes"], "world_size / gpus_per_node")
    found = {}
    for name, mesh in _field(document, "meshes", dict).items():
        try:
            found[name] = parse_mesh(mesh)
        except LayoutError:
            raise _bad(f"meshes.{name}", mesh, "a mesh such as tp2-dp4") from None
        if found[name].world_size != world or found[name].offset:
            raise _bad(f"meshes.{name}", mesh, f"a mesh of {world} ranks")
    return found


def _check_groups(document: dict[str, Any], found: Mapping[str, Mesh]) -> None:
    for name, entry in _field(document, "groups", dict).items():
        place = f"groups.{name}."
        if not isinstance(entry, dict):
            raise _bad(place[:-1], entry, "an object")
        grid = _field(entry, "grid", str, place=place)
        if grid not in found:
            raise _bad(f"{place}grid", grid, "a name of meshes")
        kind = _field(entry, "kind", str, place=place)
        try:
            found[grid].axes_of(kind)
        except LayoutError:
            raise _bad(f"{place}kind", kind, f"axes of {found[grid]}") from None
        _field(entry, "parallel_state", str, type(None), place=place)
        _field(entry, "carries", str, place=place)
        groups = _field(entry, "groups", list, place=place)
        spanned = _field(entry, "nodes_spanned", list, place=place)
        _check_ranks_of(groups, document["world_size"], f"{place}groups")
        if spanned != _spans(groups, document["gpus_per_node"]):
            raise _bad(f"{place}nodes_spanned", spanned, "one number of nodes a group")


def _check_ranks_of(groups: list[Any], world: int, place: str) -> None:
    """That they are lists of ranks of the world, and no rank is twice in them."""
    seen: set[int] = set()
    for index, ranks in enumerate(groups):
        is_list = isinstance(ranks, list) and bool(ranks)
        if not (is_list and set(map(type, ranks)) == {int}):
            raise _bad(f"{place}[{index}]", ranks, "a list of ranks")
        if min(ranks) < 0 or max(ranks) >= world:
            raise _bad(f"{place}[{index}]", ranks, f"ranks from 0 to {world - 1}")
        before = len(seen)
        seen.update(ranks)
        if len(seen) != before + len(ranks):
            raise _bad(f"{place}[{index}]", ranks, "ranks that are in no other group of this name")


def _spans(groups: list[list[int]], gpus_per_node: int) -> list[int]:
    if not groups:
        return []
    sizes = np.fromiter(map(len, groups), dtype=np.int64)
    index = np.repeat(np.arange(len(groups)), sizes)
    nodes = np.fromiter(chain.from_iterable(groups), dtype=np.int64) // gpus_per_node
    places = np.unique(index * MAX_RANKS + nodes)
    return np.bincount(places // MAX_RANKS, minlength=len(groups)).tolist()


def _check_ranks(document: dict[str, Any], found: Mapping[str, Mesh]) -> None:
    world, gpus_per_node = document["world_size"], document["gpus_per_node"]
    columns, rows = _field(document, "columns", list), _field(document, "ranks", list)
    places = _places(found, world, gpus_per_node)
    groups = columns[len(places) :]
    if columns[: len(places)] != list(places) or not all(
        isinstance(name, str) and name.startswith("group_") for name in groups
    ):
        raise _bad("columns", columns, f"{', '.join(places)} and then group_<name>")
    if len(set(columns)) != len(columns):
        raise _bad("columns", columns, "names that differ")
    if len(rows) != world:
        raise _bad("ranks", f"{len(rows)} rows", f"{world} rows")
    expected = zip(*(column.tolist() for column in places.values()))
    for rank, (row, place) in enumerate(zip(rows, expected)):
        if not isinstance(row, list) or len(row) != len(columns):
            raise _bad(f"ranks[{rank}]", row, f"{len(columns)} numbers")
        if tuple(row[: len(places)]) != place or not set(map(type, row[: len(places)])) == {int}:
            raise _bad(f"ranks[{rank}]", row, f"what the meshes say of rank {rank}")
        for index in row[len(places) :]:
            if index is not None and (type(index) is not int or not 0 <= index < world):
                raise _bad(f"ranks[{rank}]", row, "group indices or null")


def _field(found: Mapping[str, Any], name: str, *types: type, place: str = "") -> Any:
    """A field of one of these types, strictly: true is no number."""
    if name not in found:
        raise LayoutError(
            "missing-in-document",
            f"this document has no {place}{name}",
            control="document",
            facts={"place": f"{place}{name}"},
        )
    if type(found[name]) not in types:
        raise _bad(f"{place}{name}", found[name], _WORDS[types[0]])
    return found[name]


_WORDS = {
    str: "a text",
    int: "a whole number",
    dict: "an object",
    list: "a list",
    bool: "true or false",
}


def _bad(place: str, value: object, expected: str) -> LayoutError:
    shown = quoted(value)
    return LayoutError(
        "bad-document",
        f"this is no document of groups or ranks: {quoted(place)[1:-1]} is {shown}, not {expected}",
        control="document",
        facts={"place": quoted(place)[1:-1], "value": shown},
    )
