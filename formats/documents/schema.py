"""The documents of groups and of ranks as JSON Schema (draft 2020-12), for editors and validators.

The job's fields are those that its model declares (groups.layout, groups.inputs): their types, what
they mean, names that they may be. ``python -m formats.documents.schema`` writes docs/schema.json.

>>> field_schema(inputs_of(Job)["etp"])["type"], types_of(inputs_of(Job)["levels"])
(['integer', 'null'], (<class 'list'>, <class 'NoneType'>))
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import NoneType

from groups.inputs import InputField, Kind, inputs_of
from groups.layout import LATER, Job

from .exports import GROUPS, RANKS, VERSION

FILE = Path(__file__).parent.parent.parent / "docs" / "schema.json"

TYPES: Mapping[Kind, type] = {
    **{"count": int, "amount": float, "switch": bool},
    **{"choice": str, "text": str, "names": list, "sizes": list},
}
"""The JSON type of a field of each kind, as a Python type."""

NAMES: Mapping[type, str] = {
    **{int: "integer", float: "number", bool: "boolean"},
    **{str: "string", list: "array", NoneType: "null"},
}
NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
TEXTS = {"type": "array", "items": {"type": "string"}}


def types_of(row: InputField) -> tuple[type, ...]:
    """The types that a document's field may have."""
    return (TYPES[row.kind], NoneType) if row.is_optional else (TYPES[row.kind],)


def field_schema(row: InputField) -> dict[str, object]:
    """The schema of a field: its type, its range, its description."""
    first, *others = (NAMES[one] for one in types_of(row))
    found: dict[str, object] = {"type": [first, *others] if others else first}
    if row.input.choices:
        found["enum"] = list(row.input.choices)
    if row.kind == "count":
        found["minimum"] = row.input.least
    if row.kind == "sizes":
        found["items"] = {"type": "integer", "minimum": 1}
    return {**found, "description": row.input.means}


def job_schema() -> dict[str, object]:
    rows = inputs_of(Job)
    return {
        "type": "object",
        "properties": {name: field_schema(row) for name, row in rows.items()},
        "required": [name for name in rows if name not in LATER],
    }


def _document(schema: str, **more: object) -> dict[str, object]:
    """The schema of a document about a job: its first fields, then its own."""
    properties: dict[str, object] = {
        "schema": {"const": schema},
        "version": {"const": VERSION},
        "job": {"$ref": "#/$defs/job"},
        "meshes": {"type": "object", "additionalProperties": {"type": "string"}},
        "world_size": {"type": "integer", "minimum": 1},
        "gpus_per_node": {"type": "integer", "minimum": 1},
    }
    properties |= more
    placement = {"type": "object", "properties": {"host": TEXTS}, "required": ["host"]}
    return {
        "type": "object",
        "properties": {**properties, "placement": placement},
        "required": list(properties),
    }


def documents_schema() -> dict[str, object]:
    """The schemas of both documents, which may have further fields (docs/schema.md)."""
    named = {
        "grid": {"type": "string"},
        "kind": {"type": "string"},
        "parallel_state": {"type": ["string", "null"]},
        "carries": {"type": "string"},
        "nodes_spanned": NUMBERS,
        "groups": {"type": "array", "items": NUMBERS},
    }
    groups = {"type": "object", "properties": named, "required": list(named)}
    row = {"type": "array", "items": {"type": ["integer", "null"]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Process groups of a training job",
        "oneOf": [
            _document(GROUPS, groups={"type": "object", "additionalProperties": groups}),
            _document(RANKS, columns=TEXTS, ranks={"type": "array", "items": row}),
        ],
        "$defs": {"job": job_schema()},
    }


def text_of_schema() -> str:
    return json.dumps(documents_schema(), indent=2) + "\n"


if __name__ == "__main__":
    FILE.write_text(text_of_schema(), encoding="utf-8")
