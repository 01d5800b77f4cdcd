"""The machines that are known by name, as published: rows of clusters.toml, cards.toml and
accelerators.toml, each with its source. One's own is described the same way (training.described).

>>> machine_of("MI300X").name, machine_of("h100").id, round(machine_of("b300").memory / GIB, 2)
('MI300X', 'dgx-h100', 268.59)

Left out: Jean Zay (4 Omni-Path links a node), for want of a stated speed; what is announced and was
not measured yet (Vera Rubin).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from groups.errors import nearest_names, not_a_choice
from groups.tables import Rows, read_table

from .machine import GB, GIB, SWITCH, TERA, USUAL_REACHED, Machine

MIB, GBIT = 2**20, 1e9 / 8
"""Bytes of a mebibyte, and of a gigabit."""

FILES = ("clusters.toml", "cards.toml", "accelerators.toml")


@dataclass(frozen=True)
class MachineRow:
    """A row of FILES, in the units of vendors; 0: unknown, of fp8 and fp4: none."""

    name: str
    source: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    maker: str = "nvidia"
    family: str = ""
    bf16_tflop_per_s: float = 0.0
    fp16_tflop_per_s: float = 0.0
    fp8_tflop_per_s: float = 0.0
    fp4_tflop_per_s: float = 0.0
    fp4_most_tflop_per_s: float = 0.0
    reached: float = USUAL_REACHED
    memory_mib: int = 0
    sheet_gib: float = 0.0
    seen_gib: float = 0.0
    hbm_gb_per_s: float = 0.0
    fabric: str = SWITCH
    axes: int = 0
    rack: int = 0
    per_node: int = 0
    link_gb_per_s: float = 0.0
    pair_gb_per_s: float = 0.0
    nic_gbit_per_s: float = 0.0
    pod: int = 0
    spine: float = 1.0
    host_link_gb_per_s: float = 0.0
    host_gb: float = 0.0
    unknown: tuple[str, ...] = ()

    def machine(self, id: str) -> Machine:
        return Machine(
            id=id,
            memory=float(self.memory_mib * MIB or self.sheet_gib * GIB),
            is_sheet=not self.memory_mib,
            known_seen=self.seen_gib * GIB,
            peak=(self.bf16_tflop_per_s or self.fp16_tflop_per_s) * TERA,
            has_bf16=not self.fp16_tflop_per_s,
            fp8=self.fp8_tflop_per_s * TERA,
            fp4=self.fp4_tflop_per_s * TERA,
            fp4_most=self.fp4_most_tflop_per_s * TERA,
            hbm=self.hbm_gb_per_s * GB,
            nvlink=self.link_gb_per_s * GB,
            pair=self.pair_gb_per_s * GB,
            nic=self.nic_gbit_per_s * GBIT,
            link=self.host_link_gb_per_s * GB,
            host=self.host_gb * GB,
            **{name: getattr(self, name) for name in _SAME},
        )


_SAME = (
    *("name", "source", "maker", "family", "reached", "fabric", "axes", "rack", "per_node"),
    *("pod", "spine", "unknown"),
)


@cache
def _rows() -> dict[str, MachineRow]:
    folder, rows = Path(__file__).parent, dict[str, MachineRow]()
    for file in FILES:
        rows |= read_table(folder / file, dict[str, MachineRow])
    return rows


CLUSTERS: Mapping[str, Machine] = Rows(
    lambda: {name: row.machine(name) for name, row in _rows().items()}
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
