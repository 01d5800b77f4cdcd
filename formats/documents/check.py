"""Reading a document of groups or of ranks back, and refusing what docs/schema.md does not say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from groups.errors import LayoutError, quoted
from groups.layout import Job
from groups.mesh import MAX_RANKS, Mesh, parse_mesh

from ..errors import refusal
from .exports import GROUPS, RANKS, VERSION, places


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
        said = f"this document has the schema {quoted(schema)}; {GROUPS} and {RANKS} are read here"
        facts = {"value": quoted(schema), "known": f"{GROUPS}, {RANKS}"}
        raise refusal("other-schema", "document", sentence=said, **facts)
    version = quoted(_field(document, "version", int))
    if document["version"] != VERSION:
        raise refusal("other-version", "document", value=version, version=VERSION)
    grids, nodes = _checked_heading(document), _nodes(document)
    if schema == GROUPS:
        _check_groups(document, grids, nodes)
    else:
        _check_ranks(document, grids)
    return document


def _checked_heading(document: dict[str, Any]) -> dict[str, Mesh]:
    """The meshes of a document whose job, world and meshes agree."""
    world = _field(document, "world_size", int)
    gpus_per_node = _field(document, "gpus_per_node", int)
    if not 1 <= world <= MAX_RANKS:
        raise _bad("world_size", world, f"1 to {MAX_RANKS}")
    if gpus_per_node < 1 or world % gpus_per_node:
        raise _bad("gpus_per_node", gpus_per_node, "a divisor of world_size")
    job = _field(document, "job", dict)
    types = {"levels": (list, type(None)), "etp": (int, type(None))}
    for field in fields(Job):
        _field(job, field.name, *types.get(field.name, (type(field.default),)), place="job.")
    if (job["gpus_per_node"], job["nodes"]) != (gpus_per_node, world // gpus_per_node):
        raise _bad("job.nodes", job["nodes"], "world_size / gpus_per_node")
    grids = {}
    for name, mesh in _field(document, "meshes", dict).items():
        try:
            grids[name] = parse_mesh(mesh)
        except LayoutError:
            raise _bad(f"meshes.{name}", mesh, "a mesh such as tp2-dp4") from None
        if grids[name].world_size != world or grids[name].offset:
            raise _bad(f"meshes.{name}", mesh, f"a mesh of {world} ranks")
    return grids


def _nodes(document: dict[str, Any]) -> list[Any]:
    """The machine of every rank: by name where the document places them, else filled in order."""
    world = document["world_size"]
    if "placement" not in document:
        return [rank // document["gpus_per_node"] for rank in range(world)]
    hosts: list[Any] = _field(_field(document, "placement", dict), "host", list, place="placement.")
    if len(hosts) != world or not all(isinstance(host, str) for host in hosts):
        raise _bad("placement.host", hosts, "one name a rank")
    return hosts


def _check_groups(
    document: dict[str, Any], grids: Mapping[str, Mesh], nodes: Sequence[Any]
) -> None:
    world = document["world_size"]
    for name, entry in _field(document, "groups", dict).items():
        place = f"groups.{name}."
        if not isinstance(entry, dict):
            raise _bad(place[:-1], entry, "an object")
        grid = _field(entry, "grid", str, place=place)
        if grid not in grids:
            raise _bad(f"{place}grid", grid, "a name of meshes")
        kind = _field(entry, "kind", str, place=place)
        try:
            grids[grid].axes_of(kind)
        except LayoutError:
            raise _bad(f"{place}kind", kind, f"axes of {grids[grid]}") from None
        _field(entry, "parallel_state", str, type(None), place=place)
        _field(entry, "carries", str, place=place)
        groups = _field(entry, "groups", list, place=place)
        spanned = _field(entry, "nodes_spanned", list, place=place)
        seen: set[int] = set()
        for index, ranks in enumerate(groups):
            expected = ""
            if not isinstance(ranks, list) or set(map(type, ranks)) != {int}:
                expected = "a list of ranks"
            elif min(ranks) < 0 or max(ranks) >= world:
                expected = f"ranks from 0 to {world - 1}"
            elif len(set(ranks)) < len(ranks) or not seen.isdisjoint(ranks):
                expected = "ranks that are in no other group of this name"
            if expected:
                raise _bad(f"{place}groups[{index}]", ranks, expected)
            seen.update(ranks)
        if spanned != [len({nodes[rank] for rank in ranks}) for ranks in groups]:
            raise _bad(f"{place}nodes_spanned", spanned, "one number of nodes a group")


def _check_ranks(document: dict[str, Any], grids: Mapping[str, Mesh]) -> None:
    world, gpus_per_node = document["world_size"], document["gpus_per_node"]
    columns, rows = _field(document, "columns", list), _field(document, "ranks", list)
    wanted = places(grids, world, gpus_per_node)
    known, groups = columns[: len(wanted)], columns[len(wanted) :]
    are_groups = (isinstance(name, str) and name.startswith("group_") for name in groups)
    if known != list(wanted) or not all(are_groups):
        raise _bad("columns", columns, f"{', '.join(wanted)} and then group_<name>")
    if len(set(columns)) != len(columns):
        raise _bad("columns", columns, "names that differ")
    if len(rows) != world:
        raise _bad("ranks", f"{len(rows)} rows", f"{world} rows")
    expected = zip(*(column.tolist() for column in wanted.values()))
    for rank, (row, place) in enumerate(zip(rows, expected)):
        if not isinstance(row, list) or len(row) != len(columns):
            raise _bad(f"ranks[{rank}]", row, f"{len(columns)} numbers")
        known, indices = row[: len(wanted)], row[len(wanted) :]
        if tuple(known) != place or {*map(type, known)} != {int}:
            raise _bad(f"ranks[{rank}]", row, f"what the meshes say of rank {rank}")
        are_indices = (
            type(index) is int and 0 <= index < world for index in indices if index is not None
        )
        if not all(are_indices):
            raise _bad(f"ranks[{rank}]", row, "group indices or null")


def _field(container: Mapping[str, Any], name: str, *types: type, place: str = "") -> Any:
    """A field of one of these types, strictly: true is no number."""
    if name not in container:
        raise refusal("missing-in-document", "document", place=f"{place}{name}")
    if type(container[name]) not in types:
        raise _bad(f"{place}{name}", container[name], _WORDS[types[0]])
    return container[name]


_WORDS: dict[type, str] = {str: "a text", int: "a whole number", bool: "true or false"}
_WORDS |= {dict: "an object", list: "a list"}


def _bad(place: str, value: object, expected: str) -> LayoutError:
    facts = {"place": quoted(place)[1:-1], "value": quoted(value)}
    said = "this is no document of groups or ranks: {place} is {value}, not {expected}"
    sentence = said.format(**facts, expected=expected)
    return refusal("bad-document", "document", sentence=sentence, **facts)
