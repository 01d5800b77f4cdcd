"""What every group of Megatron's is: its request, its name in parallel_state, what it carries.

The rows of families.txt. A family is a name of `process_groups` without its number: hcp stands for
hcp-l0, hcp-l1 ..., hybrid-dp-cp for hybrid-dp-cp-2, hybrid-dp-cp-4 ....
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Family:
    """One row of the table of groups; ``kind`` is empty for a group that is cut out of others."""

    grid: str  # "dense" or "expert"
    kind: str  # axes of that grid, which are etp, ep, edp and pp in the expert grid
    parallel_state: str  # its name in parallel_state.py, without the leading underscore
    option: str  # its key in NCCL options and --high-priority-stream-groups
    carries: str


def _rows(table: str) -> Iterator[tuple[str, Family]]:
    lines = table.splitlines()
    for row, carries in zip(lines[::2], lines[1::2]):
        name, grid, kind, option, parallel_state = (cell.strip("-") for cell in row.split())
        yield name, Family(grid, kind, parallel_state, option, carries.strip())


_TEXT = Path(__file__).with_name("families.txt").read_text(encoding="utf-8")
FAMILIES: dict[str, Family] = dict(_rows(_TEXT.partition("\n\n\n")[2]))
"""Every family by its name, the dense grid's first."""


def family(name: str) -> Family:
    """The family of a group by its own name.

    >>> family("hcp-l1").option, family("hybrid-dp-cp-4").option, family("edp").grid
    ('hcp', 'dp_cp', 'expert')

    Errors: KeyError for a name that Megatron does not have.
    """
    if name in FAMILIES:
        return FAMILIES[name]
    stem = name.rpartition("-")[0]
    if stem not in ("hcp", "hybrid-dp-cp"):
        raise KeyError(name)
    return FAMILIES[stem]
