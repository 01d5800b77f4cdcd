"""Reads a document of groups or of ranks, and refuses one that its job does not make."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from groups.errors import LayoutError, quoted
from groups.inputs import inputs_of
from groups.layout import LATER, Job, Layout
from groups.placement import Placement

from ..errors import refusal
from ..values import Document, Facts
from .exports import GROUPS, RANKS, VERSION, groups_by_name, groups_json_parts, ranks_json_parts
from .schema import types_of


def check_document(text: str) -> Document:
    """Reads a document of groups or of ranks. Refuses one that does not match docs/schema.md.

    >>> check_document('{"schema": "parallel-groups", "version": 2}')
    Traceback (most recent call last):
    groups.errors.LayoutError: this document has version 2; version 1 is read here

    Checked are the schema, its version, the types of the job's fields, and that the job makes all
    the rest again, on the machines that are named. Fields that are not known are let pass, and so
    are other words for what a group carries.

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
        sentence = (
            f"this document has the schema {quoted(schema)}; {GROUPS} and {RANKS} are read here"
        )
        facts = {"value": quoted(schema), "known": f"{GROUPS}, {RANKS}"}
        raise refusal("other-schema", "document", sentence=sentence, **facts)
    version = quoted(_field(document, "version", int))
    if document["version"] != VERSION:
        raise refusal("other-version", "document", value=version, version=VERSION)
    _require_same(document, _made_again(document))
    return document


def job_of_document(text: str) -> Job:
    """The job of a document of this project, read strictly; other fields are ignored.

    >>> said = '{"nodes": 1, "gpus_per_node": 4, "tp": 2, "pp": 1, "cp": 1, "ep": 1, "etp": null,'
    >>> said += '"framework": "megatron", "order": "tp-cp-ep-dp-pp", "instances": 1,'
    >>> job_of_document(f'{{"job": {said} "levels": null, "hybrid": false}}}}').tp
    2

    Errors: LayoutError that names the place, such as ``job.tp``.
    """
    try:
        document = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise _bad("the text", text, "JSON that can be read") from None
    if not isinstance(document, dict):
        raise _bad("the text", document, "an object")
    return _layout(_field(document, "job", dict)).explicit_job


def _made_again(document: Document) -> Document:
    """The document that the job makes, for the groups that the document names."""
    layout = _layout(_field(document, "job", dict))
    known = groups_by_name(layout)
    if document["schema"] == GROUPS:
        write, names = groups_json_parts, [*_field(document, "groups", dict)]
        for name in names:
            if name not in known:
                raise _bad(f"groups.{name}", document["groups"][name], "groups of the job")
        if "first" in document:
            raise _bad("first", document["first"], "no such field in a document of groups")
    else:
        write, columns = ranks_json_parts, map(str, _field(document, "columns", list))
        named = [name.removeprefix("group_") for name in columns if name.startswith("group_")]
        names = [name for name in named if name in known]
    part = {"first": _listed(document, layout)} if "first" in document else {}
    placement = _placement(document, layout.world_size)
    made = json.loads("".join(write(layout, names, placement, **part)))
    sizes = {name: made[name] for name in ("world_size", "gpus_per_node")}  # the rest follows
    return sizes | {name: made[name] for name in made if name not in ("job", "placement")}


def _layout(fields: Facts) -> Layout:
    job = {
        name: _field(fields, name, *types_of(row), at="job.")
        for name, row in inputs_of(Job).items()
        if name in fields or name not in LATER
    }
    try:
        return Job(**job).layout()
    except LayoutError as error:
        name = str(error.control)
        raise _bad(f"job.{name}", job.get(name), f"one that works ({error.what})") from None


def _listed(document: Facts, layout: Layout) -> int:
    """The ranks that a document of the first ones lists."""
    first: int = _field(document, "first", int)
    if not 0 < first <= layout.world_size:
        raise _bad("first", first, f"1 to {layout.world_size} ranks")
    return first


def _placement(document: Facts, world: int) -> Placement | None:
    """The machine of every rank, if the document has them."""
    if "placement" not in document:
        return None
    hosts: list[Any] = _field(_field(document, "placement", dict), "host", list, at="placement.")
    if len(hosts) != world or {*map(type, hosts)} != {str}:
        raise _bad("placement.host", hosts, "one name a rank")
    names, nodes = np.unique(hosts, return_inverse=True)
    return Placement(tuple(names.tolist()), nodes)


def _require_same(found: Any, made: Any, place: str = "") -> None:
    """Refuses values that differ from what the job makes, strictly: true is no number, 3.0 is no
    rank."""
    if isinstance(made, dict):
        for name, value in made.items():
            at, is_worded = f"{place}." if place else "", name in _WORDED
            types = (str, type(None)) if is_worded else (type(value),)
            field = _field(found, name, *types, at=at)
            if not is_worded:
                _require_same(field, value, at + name)
    elif type(made) is list and len(made) == len(found) and type(next(iter(made), 0)) is list:
        for index, (row, wanted) in enumerate(zip(found, made)):
            if repr(row) != repr(wanted):
                raise _bad(f"{place}[{index}]", row, quoted(wanted))
    elif repr(found) != repr(made):
        raise _bad(place, found, quoted(made))


_WORDED = ("parallel_state", "carries")
"""Fields whose wording may differ between versions."""


def _field(container: Facts, name: str, *types: type, at: str = "") -> Any:
    """A field of one of these types, strictly: true is no number."""
    if name not in container:
        raise refusal("missing-in-document", "document", place=f"{at}{name}")
    if type(container[name]) not in types:
        raise _bad(f"{at}{name}", container[name], _WORDS[types[0]])
    return container[name]


_WORDS: dict[type, str] = {str: "a text", int: "a whole number", bool: "true or false"}
_WORDS |= {dict: "an object", list: "a list"}


def _bad(place: str, value: object, expected: str) -> LayoutError:
    facts = {"place": quoted(place)[1:-1], "value": quoted(value)}
    template = "this is no document of groups or ranks: {place} is {value}, not {expected}"
    sentence = template.format(**facts, expected=expected)
    return refusal("bad-document", "document", sentence=sentence, **facts)
