"""A machine of one's own: single numbers over a row of the table, or all of them.

Every number is an input (groups.inputs): of the page, of links and documents, of the command line,
and a line of a TOML file:

    gpu = "mi300x"      # a row to start from; without it, all that is asked about must stand here
    hbm = 5300          # GB/s of memory
    nic = 800           # Gb/s of a GPU's network card

Numbers are used as they are given. What looks like another number than it should be (a peak with
sparsity, a link counted both ways, GB/s where Gb/s are meant) is asked about by `doubts`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Annotated

from groups.errors import nearest_names, not_a_choice, quoted
from groups.inputs import Input
from groups.tables import Rows, TableError, parsed_text

from .clusters import CLUSTERS, machine_of
from .errors import is_amount, refusal
from .machine import FABRICS, GB, GBIT, GIB, TERA, Machine, units

OWN = "own"
"""The machine of which every number is given: what is missing is asked for."""

OWN_NAME = "your own machine"
"""What it is called in sentences."""

_NOTHING = Machine(OWN_NAME, nvlink=0.0, nic=0.0, memory=0.0, peak=0.0)

MACHINES: Mapping[str, Machine] = Rows(lambda: {**CLUSTERS, OWN: _NOTHING})
"""What may be chosen: every row, or a machine of one's own."""

MOST = 1e9
"""The largest number that a machine may have, in the units of inputs."""


def _amount(value: object, name: str) -> float:
    if not is_amount(value, MOST) or not value:
        raise refusal("not-a-size-of-machine", name, value=quoted(value), control=name)
    return float(value)  # type: ignore[arg-type]


def _number(name: str, means: str, otherwise: str = "the row's") -> Input:
    check = partial(_amount, name=name)
    return Input(means, check=check, otherwise=otherwise, stays=True)


@dataclass(frozen=True)
class MachineNumbers:
    """Numbers of a machine, in the units in which they are read; None: the row's."""

    peak: Annotated[
        float | None, _number("peak", "TFLOP/s of a GPU in 16 bits, without sparsity")
    ] = None
    peak_fp8: Annotated[float | None, _number("peak_fp8", "the same in 8 bits")] = None
    peak_fp4: Annotated[float | None, _number("peak_fp4", "the same in 4 bits")] = None
    hbm: Annotated[float | None, _number("hbm", "GB/s of a GPU's memory")] = None
    nvlink: Annotated[
        float | None,
        _number("nvlink", "GB/s of one GPU, one way, to all others of its node or rack"),
    ] = None
    pair: Annotated[
        float | None,
        _number("pair", "GB/s of one GPU, one way, to one other", "as to all, through a switch"),
    ] = None
    fabric: Annotated[
        str,
        Input("what joins GPUs of a node", choices=FABRICS, otherwise="the row's", stays=True),
    ] = ""
    domain: Annotated[
        int | None,
        Input(
            "GPUs that these links join, where that is more than a node",
            most=2**20,
            otherwise="the row's",
            stays=True,
        ),
    ] = None
    nic: Annotated[
        float | None, _number("nic", "Gb/s of the network card that one GPU has for itself")
    ] = None
    pod: Annotated[
        int | None,
        Input(
            "nodes that send to each other at full speed, behind one rail or leaf",
            most=2**20,
            otherwise="all",
            stays=True,
        ),
    ] = None
    spine: Annotated[
        float | None,
        _number("spine", "how many times less passes between such pods, such as 7", "1"),
    ] = None


@cache
def _units() -> dict[str, tuple[str, float]]:
    """The attribute of a machine that each number sets, and its unit there."""
    every = ((name, unit) for name, several in units().items() for unit in several)
    return {unit.input: (name, unit.size) for name, unit in every if unit.input}


NUMBER_NAMES = tuple(one.name for one in fields(MachineNumbers))


def described(start: Machine, numbers: MachineNumbers, capacity: float | None = None) -> Machine:
    """A machine with numbers of one's own over those of ``start``; capacity: GiB of a GPU.

    A GPU with another peak or bandwidth of memory is another GPU: no measured run tells its
    constants.

    >>> mine = described(CLUSTERS["mi300x"], MachineNumbers(nic=800.0), capacity=180.0)
    >>> mine.nic / GB, mine.memory / GIB, mine.hbm / GB, mine.changed
    (100.0, 180.0, 5300.0, ('nic', 'capacity'))

    Errors: LayoutError for a pair of GPUs that is faster than all together.
    """
    changes: dict[str, object] = {}
    given = {name: value for name, value in vars(numbers).items() if value not in (None, "")}
    for name, value in given.items():
        attribute, unit = _units().get(name, (name, None))
        changes[attribute] = value if unit is None else type(unit)(value * unit)
    if "fp4" in changes:
        changes["fp4_most"] = 0.0
    if capacity is not None:
        changes |= {"memory": capacity * GIB, "is_sheet": False}
        changes["known_seen"] = capacity * GIB * start.seen / start.memory if start.memory else 0.0
    if not changes:
        return start
    differs = {
        name
        for name, value in changes.items()
        if name in ("peak", "fp8", "fp4", "hbm") and value != getattr(start, name)
    }
    if differs:
        changes |= {"family": "", "unknown": tuple(set(start.unknown) - differs)}
    names = (*given, *(("capacity",) if capacity is not None else ()))
    build = partial(replace, start)
    machine: Machine = build(**changes, changed=names)
    if machine.pair > machine.nvlink > 0:
        facts = {"pair": _short(machine.pair / GB), "all": _short(machine.nvlink / GB)}
        raise refusal("pair-beyond-all", "pair", {"pair": machine.nvlink / GB}, **facts)
    return machine


def start_of(cluster: str) -> Machine:
    """The row of a name; for "own" a machine of which nothing is known.

    Errors: LayoutError for an unknown name.
    """
    return _NOTHING if cluster == OWN else machine_of(cluster)


def cluster_name(value: object) -> str:
    """The id of a machine, or "own". Errors: LayoutError for a name that there is not."""
    return OWN if value == OWN else machine_of(value).id  # type: ignore[arg-type]


# -- a file --------------------------------------------------------------------------------------


def read_machine(text: str, name: str = "the machine's file") -> tuple[str, dict[str, str]]:
    """The row that a TOML text starts from, and the texts of its numbers by their inputs.

    >>> read_machine('gpu = "mi300x"\\nnic = 800\\ncapacity = 180')
    ('mi300x', {'nic': '800', 'capacity': '180'})

    Errors: LayoutError for a text that is not TOML, for an unknown key, with the nearest ones, and
    for a value of another type.
    """
    try:
        values = parsed_text(name, text)
    except TableError as error:
        raise refusal("not-a-machine-file", "machine", reason=str(error)) from None
    gpu = values.pop("gpu", None) or values.pop("cluster", None) or OWN
    if not isinstance(gpu, str):
        raise refusal("not-a-size-of-machine", "gpu", value=quoted(gpu), control="gpu")
    keys = (*NUMBER_NAMES, "capacity")
    texts = {}
    for key, value in values.items():
        if key not in keys:
            near = [{"machine": one} for one in nearest_names(key, ("gpu", *keys))]
            raise not_a_choice("machine", key, ("gpu", *keys), near)
        is_name = key == "fabric"
        if is_name != isinstance(value, str) or isinstance(value, (bool, list, dict)):
            raise refusal("not-a-size-of-machine", key, value=quoted(value), control=key)
        texts[key] = f"{value}" if is_name else _short(float(value))  # type: ignore[arg-type]
    return (gpu if gpu == OWN else machine_of(gpu, "gpu").id), texts


def _short(number: float) -> str:
    """A number without digits that say nothing.

    >>> _short(800.0), _short(76.8)
    ('800', '76.8')
    """
    return f"{number:.10g}"


# -- what looks wrong ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Doubt:
    """A question about a number: its input, its value, what it may be instead, and why (texts)."""

    code: str
    control: str
    value: str
    instead: str
    of: str = ""


NEAR = 0.03
"""Relative difference up to which a number counts as another one."""


def _is(value: float, other: float) -> bool:
    return bool(other) and abs(value / other - 1) <= NEAR


def doubts(machine: Machine, start: Machine) -> Iterator[Doubt]:
    """What looks like another number than it should be: only numbers that somebody gave are asked
    about, and none is changed.

    >>> h100 = CLUSTERS["dgx-h100"]
    >>> mine = described(h100, MachineNumbers(peak=1979, nvlink=900, nic=50, hbm=3.35), capacity=80)
    >>> for one in doubts(mine, h100):
    ...     print(one.code, one.control, one.value, one.instead)
    sparse peak 1979 989.5
    tera hbm 3.35 3350
    both nvlink 900 450
    bytes nic 50 400
    marketed capacity 80 79.65
    """
    alike = _alike(machine, start)
    given = {name: _given(machine, name) for name in machine.changed}

    def doubt(code: str, name: str, instead: float, of: str = "") -> Doubt:
        return Doubt(code, name, _short(given[name]), _short(instead), of)

    for name in ("peak", "peak_fp8", "peak_fp4"):
        if name in given and (found := _sparse(given[name], name, machine, alike)):
            yield doubt("sparse", name, given[name] / 2, found)
    for name in ("peak", "hbm"):
        if name in given and given[name] < 20:
            yield doubt("tera", name, given[name] * 1000)
    if "nvlink" in given:
        found = next((one.name for one in alike if _is(given["nvlink"], 2 * one.nvlink / GB)), "")
        if found:
            yield doubt("both", "nvlink", given["nvlink"] / 2, found)
    if (
        "nic" in given
        and given["nic"] <= 100
        and not any(_is(given["nic"], one.nic / GBIT) for one in alike)
    ):
        yield doubt("bytes", "nic", given["nic"] * 8)
    if "capacity" in given:
        marketed = [one for one in alike if 1.0 < given["capacity"] * GIB / one.memory < 1.08]
        if marketed and not any(_is_same(given["capacity"], one) for one in alike):
            one = marketed[0]
            yield doubt("marketed", "capacity", round(one.memory / GIB, 2), one.name)


def _is_same(capacity: float, one: Machine) -> bool:
    return abs(capacity * GIB / one.memory - 1) < 0.002


def _sparse(value: float, name: str, machine: Machine, alike: list[Machine]) -> str:
    """The machine of which a peak is twice the dense one; empty: none.

    Where the peak in fewer bits is more than twice that in 16, it is asked about too.
    """
    attribute, _ = _units()[name]
    for one in alike:
        if _is(value * TERA, 2 * getattr(one, attribute)):
            return one.name
    if name == "peak_fp8" and machine.peak and value * TERA > 3.9 * machine.peak:
        return machine.name
    return ""


def _given(machine: Machine, name: str) -> float:
    if name == "capacity":
        return machine.memory / GIB
    if name == "fabric":
        return 0.0
    attribute, unit = _units()[name]
    return float(getattr(machine, attribute) / unit)


def _alike(machine: Machine, start: Machine) -> list[Machine]:
    """The row that a machine starts from; of one's own those with about its bandwidth of memory,
    or, where nobody says that, its memory."""
    if start.id != OWN:
        return [start]
    return [
        one
        for one in CLUSTERS.values()
        if (machine.hbm and _is(machine.hbm, one.hbm))
        or (not machine.hbm and machine.memory and abs(machine.memory / one.memory - 1) < 0.08)
    ]
