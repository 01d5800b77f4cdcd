"""Host files and rank files of launchers: Open MPI, DeepSpeed, MPICH, Intel MPI, SLURM_HOSTFILE.

    Open MPI, DeepSpeed   node01 slots=8 max_slots=16      (any order of keys)
    MPICH, Intel MPI      node01:8, or names alone
    a list for srun       node01 once for each of its tasks: the machine of rank 0, 1, 2 ...
    a rank file           rank 3=node01 slot=0-1           (slot is a CPU core, never a GPU)
    with racks            node01 rack7                     (two columns, or a CSV with a heading)

Sources: open-mpi/ompi docs/launching-apps/scheduling.rst; openpmix/prrte docs/hosts/hostfiles.rst,
docs/placement/rankfiles.rst, src/util/hostfile/hostfile_lex.l; deepspeedai/DeepSpeed
launcher/runner.py; MPICH's wiki, Using the Hydra Process Manager; srun(1), SLURM_HOSTFILE.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from diagnosis.machines.hosts import Hosts, host_twice, no_name
from groups.notes import Note

from ..errors import refusal
from .filters import bad_filter, is_filter
from .slurm import expand_hostlist, is_hostlist
from .values import bad_line, hosts_in_places

SLOTS = ("slots", "count", "cpu")
MAX_SLOTS = tuple(
    name for word in SLOTS for dash in "-_" for name in (f"{word}{dash}max", f"max{dash}{word}")
)
"""Keys of a host file: hostfile_lex.l of PRRTE."""

_COMMENT = re.compile(r"(?:^|(?<=\s))(?:#|//).*$", re.MULTILINE)
_BLOCK_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@%-]*(?::[A-Fa-f0-9:.]*:[A-Fa-f0-9:.]*)?", re.ASCII)
_COUNTED = re.compile(r"([^\s:=,]+):([0-9]{1,7})(?:\s+\S.*)?", re.ASCII)
_PAIR = re.compile(r"(?<![A-Za-z_-])([A-Za-z_-]+)=(\S*)", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,7}", re.ASCII)
_RANK = re.compile(r"rank\s+([0-9]{1,9})\s*=\s*(\S+)(?:\s+slots?\s*=.*)?", re.ASCII | re.IGNORECASE)

Lines = list[tuple[int, str]]
"""Stripped non-empty lines, with their numbers counted from 1."""


def lines_of(text: str) -> Lines:
    """The lines without comments and blank ones.

    >>> lines_of("# nodes\\n\\n a  # the first\\nb")
    [(3, 'a'), (4, 'b')]
    """
    commented = text.rfind("*/") + 2  # behind the last end, each beginning would look for one
    head = _BLOCK_COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text[:commented])
    text = head + text[commented:]
    lines = enumerate(_COMMENT.sub("", text).splitlines(), 1)
    return [(number, line.strip()) for number, line in lines if line.strip()]


def read_lines(text: str) -> Hosts:
    """The machines of a host file or list in any of these forms, chosen by its lines."""
    lines = [(number, re.sub(r"\s*=\s*", "=", line)) for number, line in lines_of(text)]
    joined = " ".join(line for _, line in lines)
    if "=" in joined:
        return _summed(_slot_lines(lines), "hostfile")
    if is_filter(joined):
        raise bad_filter(joined, "DeepSpeed's filters choose from a host file: give that as well")
    if is_hostlist(joined):
        return _listed(expand_hostlist(joined), "slurm-hostlist")
    if "," in joined:
        items = [(n, item) for n, line in lines for item in re.split(r"[,\s]+", line) if item]
        if any(map(_is_counted, items)):  # mpirun --host: named again, a slot more
            return _summed(_counted(items), "openmpi-host")
        return _listed([_host(item, number) for number, item in items], "host-list")
    if any(map(_is_counted, lines)):
        return _summed(_counted(lines), "mpich-hostfile")
    words = [(number, line.split()) for number, line in lines]
    if words and all(len(row) == 2 and _NUMBER.fullmatch(row[1]) for _, row in words):
        return _summed(((row[0], int(row[1])) for _, row in words), "hostfile")
    if len(words) > 1 and all(len(row) == 2 for _, row in words):
        return _two_columns(words)
    names = [_host(name, number) for number, row in words for name in row]
    return _listed(names, "host-list")


def _host(name: str, number: int) -> str:
    if not _HOST.fullmatch(name) or len(name) > 255 or name.isdecimal():
        raise bad_line(name, number, "host names", no_name())
    return name


# -- names with slots ------------------------------------------------------------------------------


def _slot_lines(lines: Lines) -> Iterator[tuple[str, int | None]]:
    """``host slots=N max_slots=M``, keys in any order; anything after them is ignored."""
    for number, line in lines:
        bad = partial(bad_line, line, number, "hosts with slots=N")
        name, _, rest = line.partition(" ")
        pairs = {key.lower(): value for key, value in _PAIR.findall(rest)}
        if rest and not pairs:
            raise bad(refusal("line-no-slots", "hosts"))
        keys_found = [
            next((key for key in keys if key in pairs), "") for keys in (SLOTS, MAX_SLOTS)
        ]
        for key in filter(None, keys_found):
            if not _NUMBER.fullmatch(pairs[key]):
                raise bad(refusal("line-number", "hosts", key=key))
        slots, limit = (int(pairs[key]) if key else None for key in keys_found)
        if slots is not None and limit is not None and slots > limit:
            raise bad(refusal("line-above-limit", "hosts"))
        yield _host(name, number), limit if slots is None else slots


def _is_counted(line: tuple[int, str]) -> bool:
    match = _COUNTED.fullmatch(line[1])
    return bool(match and _HOST.fullmatch(match[1]))


def _counted(items: Lines) -> Iterator[tuple[str, int]]:
    """``host:N``; one slot without a number."""
    for number, item in items:
        match = _COUNTED.fullmatch(item)
        name, slots = (match[1], int(match[2])) if match else (item.split()[0], 1)
        yield _host(name, number), slots


def _summed(rows: Iterable[tuple[str, int | None]], form: str) -> Hosts:
    """Hosts with slots; repeated ones are refused, or added up if the format says so."""
    slots: dict[str, int | None] = {}
    remarks: tuple[Note, ...] = ()
    for name, count in [*rows]:  # a line of another form is refused first
        if name in slots:
            if form != "openmpi-host":
                why = "DeepSpeed refuses that, Open MPI adds the slots up: keep one line for each"
                raise host_twice(name, why)
            remarks = remarks or (Note("slots-added", {"host": name}),)
            count = (slots[name] or 0) + (count or 0)
        slots[name] = count
    return Hosts(form, tuple(slots), slots, remarks=remarks)


def _listed(names: Sequence[str], form: str) -> Hosts:
    """Names alone; a repeated name is the machine of one rank each time."""
    facts = {"tasks": len(names), "hosts": len(set(names))}
    if facts["tasks"] == facts["hosts"]:
        return Hosts(form, tuple(names))
    return _by_rank(names, "task-list", Note("one-line-a-task", facts))


def _by_rank(ranks: Sequence[str], form: str, *remarks: Note) -> Hosts:
    """The machine of every rank."""
    slots = Counter(ranks)
    return Hosts(form, tuple(slots), slots, ranks=tuple(ranks), remarks=remarks)


# -- names with racks ------------------------------------------------------------------------------


def _two_columns(rows: Sequence[tuple[int, list[str]]]) -> Hosts:
    """``host rack`` on each line: racks repeat and are no hosts, else the columns would be
    ambiguous."""
    hosts = [_host(row[0], number) for number, row in rows]
    racks = [row[1] for _, row in rows]
    is_table = len(set(hosts)) == len(hosts) and not set(hosts) & set(racks)
    if not is_table or len(set(racks)) == len(racks):
        number, row = rows[0]
        form = "host names, or of hosts with their racks"
        raise bad_line(" ".join(row), number, form, refusal("line-two-names", "hosts"))
    return Hosts("host-rack", tuple(hosts), levels={"rack": dict(zip(hosts, racks))})


HEADINGS = {
    "host": ("host", "hostname", "node", "name", "nodename", "instance"),
    "slots": ("slots", "gpus", "gpus_per_node", "nproc"),
    "rack": ("rack",),
    "switch": ("switch", "leaf", "tor", "psw"),
    "block": ("block",),
    "domain": ("domain", "nvlink_domain", "nvlink", "clusteruuid"),
}
"""Accepted names of CSV columns and JSON keys."""

COLUMNS = {word: key for key, words in HEADINGS.items() for word in words}
LEVELS = tuple(HEADINGS)[2:]


def is_table(text: str) -> bool:
    """Whether the first line is a CSV heading with a column of hosts and another."""
    columns = set(_columns(_first(text)))
    return "host" in columns and len(columns & HEADINGS.keys()) > 1


def _first(text: str) -> str:
    return next((line for _, line in lines_of(text)), "")


def _columns(heading: str) -> list[str]:
    """The columns by their names in HEADINGS; unknown ones unchanged."""
    names = [name.strip().strip('"').lower() for name in re.split(r"[,;\t]", heading)]
    return [COLUMNS.get(name, f"({name})") for name in names] if len(names) > 1 else []


def read_table(text: str) -> Hosts:
    """A CSV of hosts with racks, blocks, switches, domains or slots, in the order of its rows.

    >>> read_table("host,rack\\nb,r1\\na,r0").racks
    {'b': 'r1', 'a': 'r0'}
    """
    (_, heading), *lines = lines_of(text)
    columns = _columns(heading)
    between = next(mark for mark in ",;\t" if mark in heading)
    rows: list[tuple[str, dict[str, str]]] = []
    slots = {}
    for number, line in lines:
        (cells,) = csv.reader([line], delimiter=between)
        row = dict(zip(columns, (cell.strip() for cell in cells)))
        host = _host(row.get("host", ""), number)
        if count := row.get("slots"):
            if not _NUMBER.fullmatch(count):
                raise bad_line(line, number, "hosts in columns", refusal("line-slots", "hosts"))
            slots[host] = int(count)
        rows.append((host, {kind: row[kind] for kind in LEVELS if row.get(kind)}))
    return hosts_in_places("table", rows, slots=slots)


# -- rank by rank ----------------------------------------------------------------------------------


def is_rankfile(text: str) -> bool:
    return bool(re.match(r"rank\s+[0-9]+\s*=", _first(text), re.IGNORECASE))


def read_rankfile(text: str) -> Hosts:
    """``rank N=HOST slot=...``: a line per rank, in any order.

    >>> read_rankfile("rank 1=b slot=0\\nrank 0=a slot=0\\nrank 2=b slot=1").ranks
    ('a', 'b', 'b')

    Errors: LayoutError for a line of another form, a rank that stands twice or is missing, a host
    by its number in another list (``+n0``).
    """
    hosts: dict[int, str] = {}
    for number, line in lines_of(text):
        match = _RANK.fullmatch(line)
        if not match:
            raise bad_line(line, number, "a rank file", refusal("line-rank", "hosts"))
        rank = int(match[1])
        if rank in hosts:
            raise bad_line(
                line, number, "a rank file", refusal("line-rank-twice", "hosts", rank=rank)
            )
        if re.fullmatch(r"\+n[0-9]{1,7}", match[2], re.ASCII):
            why = refusal("line-counted-host", "hosts", host=match[2])
            raise bad_line(match[2], number, "a rank file that names its hosts", why)
        hosts[rank] = _host(match[2], number)
    count = len(hosts)
    missing = next((rank for rank in range(count) if rank not in hosts), None)
    if missing is not None:
        wanted = f"its {count} ranks must be those from 0 to {count - 1}"
        raise refusal("rank-missing", "hosts", why=wanted, rank=missing, count=count)
    return _by_rank([hosts[rank] for rank in range(count)], "rankfile")
