"""The machines that are known by name, as published: rows of clusters.toml, cards.toml and
accelerators.toml, each with its source. One's own is described the same way (training.described).

>>> machine_of("MI300X").name, machine_of("h100").id, round(machine_of("b300").memory / 2**30, 2)
('MI300X', 'dgx-h100', 268.59)

Left out: what is announced and was not measured yet (Vera Rubin).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from pathlib import Path
from types import GenericAlias
from typing import Protocol, cast, get_type_hints

from groups.errors import nearest_names, not_a_choice
from groups.tables import Rows, read_table

from .machine import Machine, units

FILES = ("clusters.toml", "cards.toml", "accelerators.toml")


class MachineRow(Protocol):
    """A row of FILES; its other columns are those of `row_type`."""

    name: str
    aliases: tuple[str, ...]


UNSAID = {"maker": "nvidia"}
"""What rows mean that leave a column out, where that is not what a machine of one's own has."""

NOT_IN_ROWS = ("id", "has_bf16", "is_sheet", "changed")
"""Attributes of a machine that no column says: they follow from the others."""


@cache
def row_type() -> type:
    """The type of a row of FILES: the attributes of a Machine, those with a unit in their columns,
    and other names of it. What is left out is unknown; of fp8 and fp4: none."""
    hints, of_units = get_type_hints(Machine), units()
    columns: list[tuple[str, object, object]] = []
    for one in fields(Machine):
        default = None if one.default is MISSING else one.default
        if one.name in of_units:
            columns += [(unit.column, hints[one.name], default or 0) for unit in of_units[one.name]]
        elif one.name not in NOT_IN_ROWS:
            columns.append((one.name, hints[one.name], UNSAID.get(one.name, default)))
    columns.append(("aliases", tuple[str, ...], ()))
    ways = [(*column[:2], field(default=column[2])) for column in columns]
    return make_dataclass("MachineRow", ways, frozen=True)


def _machine(id: str, row: MachineRow) -> Machine:
    """The machine of a row, in bytes, operations and seconds."""
    hints, of_units, values = get_type_hints(Machine), units(), dict[str, object]()
    for one in fields(Machine):
        if one.name in of_units:
            found = [(getattr(row, unit.column), unit.size) for unit in of_units[one.name]]
            number, size = next((each for each in found if each[0]), (0, 1))
            values[one.name] = hints[one.name](number * size)
        elif one.name not in NOT_IN_ROWS:
            values[one.name] = getattr(row, one.name)
    build: Callable[..., Machine] = Machine
    return build(
        **values,
        id=id,
        is_sheet=not getattr(row, "memory_mib"),  # noqa: B009  a type made at run time
        has_bf16=not getattr(row, "fp16_tflop_per_s"),  # noqa: B009
    )


@cache
def _rows() -> dict[str, MachineRow]:
    folder, rows = Path(__file__).parent, dict[str, MachineRow]()
    model = cast("type[dict[str, MachineRow]]", GenericAlias(dict, (str, row_type())))
    for file in FILES:
        rows |= read_table(folder / file, model)
    return rows


CLUSTERS: Mapping[str, Machine] = Rows(
    lambda: {name: _machine(name, row) for name, row in _rows().items()}
)
"""Every machine by a stable id. The machines of Llama 3 405B are as DGX H100, with RoCE in place of
InfiniBand, and their top network layer carries 1/7 (arXiv:2407.21783 section 3.3.1)."""


@cache
def _names() -> dict[str, str]:
    """The id of each name, without its spaces and hyphens, in small letters."""
    known = {_plain(name): id for id, row in _rows().items() for name in (row.name, *row.aliases)}
    return known | {_plain(id): id for id in _rows()}


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


MAKERS = ("nvidia", "amd", "intel", "huawei", "google", "aws")


def machine_id(name: str) -> str:
    """The id of a machine by any of its names; a name that is none unchanged.

    >>> machine_id("AMD MI300X"), machine_id("rtx 4090"), machine_id("dgx_h100"), machine_id("xx")
    ('mi300x', 'rtx-4090', 'dgx-h100', 'xx')
    """
    plain = _plain(name)
    short = next((plain.removeprefix(one) for one in MAKERS if plain.startswith(one)), plain)
    return _names().get(plain) or _names().get(short) or name


def machine_of(cluster: str | Machine, control: str = "cluster") -> Machine:
    """The machine of a name, or the machine itself.

    Errors: LayoutError for a name that no machine has, with the nearest ones.
    """
    if isinstance(cluster, Machine):
        return cluster
    if isinstance(cluster, str) and (found := machine_id(cluster)) in CLUSTERS:
        return CLUSTERS[found]
    near = nearest_names(cluster, [*CLUSTERS, *_names()]) if isinstance(cluster, str) else []
    fixes = [{control: one} for one in dict.fromkeys(map(machine_id, near))]
    raise not_a_choice(control, cluster, CLUSTERS, fixes)
