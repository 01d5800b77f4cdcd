"""Machines of Slurm: host lists, topology.conf, topology.yaml, `scontrol show topology`, a job's
environment.

    tux[3,1,2]    tux3 tux1 tux2          n[08-11]       n08 n09 n10 n11
    n[8-011]      n8 n9 n10 n11           r[1-2]n[1-2]   r1n1 r1n2 r2n1 r2n2

In a list a comma, a blank or a new line parts two items; a bracket holds numbers and ranges, kept
in their order and as often as they are written; the width of a range's first number pads all of it.
With several brackets the last varies fastest and, of the others, the first.

    SwitchName=s0 Nodes=n[0-5]        a leaf switch: the level "switch" of its machines
    SwitchName=s3 Switches=s[0-2]     a switch above: "switch-1", "switch-2" ... farther off
    BlockName=b1 Nodes=n[1-18]        a block: by custom one NVLink domain

`scontrol show topology` has the same words a line, with the nodes of every level and with blocks
that only join others (AggregatedBlock), which are no domains. Lines may have a log's prefix.
Sources: SchedMD/slurm src/common/hostlist.c (_push_range_list, and its limits),
doc/man/man5/topology.conf.5 and topology.yaml.5, srun(1), src/common/slurm_step_layout.c,
src/plugins/topology/block/topology_block.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import prod

from diagnosis.machines.hosts import Hosts, require_count
from groups.budget import spend
from groups.errors import LayoutError, not_a_choice, quoted
from groups.mesh import whole_number
from groups.notes import Note

from ..errors import refusal
from .values import bad_document, bad_line, hosts_in_places, upwards

MAX_RANGE = 65_536
"""The most machines of one range: hostlist.c, MAX_RANGE."""

_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^,\s])+")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)
_BOX = re.compile(r"[0-9A-Z]+x[0-9A-Z]+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.:@-]*", re.ASCII)
_ENTRY = re.compile(r"\b(SwitchName|BlockName|RingName)\s*=", re.IGNORECASE)
_PAIR = re.compile(r"\b([A-Za-z]+)\s*=\s*(?![A-Za-z]+\s*=)(\S*)")
_AGGREGATED = re.compile(r"\bAggregatedBlock\s*=", re.IGNORECASE)
_ALIAS = re.compile(r"^\s*#\s*([\w.-]+)\s*=\s*([\w.-]+)\s*$")
_TASKS = re.compile(r"([0-9]{1,7})(?:\(x([0-9]{1,7})\))?", re.ASCII)
_VARIABLE = re.compile(
    r"^[ \t]*(?:export[ \t]+|\w[\w.-]*:[ \t]*)?(SLURM_[A-Z_]+)[ \t]*=[ \t]*[\"']?([^\"'\n]*)[\"']?",
    re.MULTILINE,
)

# -- host lists ------------------------------------------------------------------------------------


def expand_hostlist(text: str) -> list[str]:
    """The machines of a host list, in order and with repetitions.

    >>> expand_hostlist("tux[3,1-2],gpu-a")
    ['tux3', 'tux1', 'tux2', 'gpu-a']
    >>> expand_hostlist("n[0-999999999]")
    Traceback (most recent call last):
    groups.errors.LayoutError: 'n[0-999999999]' names 1,000,000,000 machines, more than 65,536

    Errors: LayoutError for text that is no host list, such as an open bracket, for a range of more
    than MAX_RANGE machines and for more than MAX_HOSTS in all.
    """
    hosts: list[str] = []
    for item in _ITEM.findall(text):
        if not _NAME.fullmatch(_BRACKET.sub("", item)):
            raise _bad_list(item)
        ranges = [_ranges(body, item) for body in _BRACKET.findall(item)]
        count = prod(sum(len(of) for of, _ in bracket) for bracket in ranges)
        require_count(len(hosts) + count, item)
        spend(2 * count, "hosts", control="hosts")
        hosts += _names(item, ranges)
    return hosts


def is_hostlist(text: str) -> bool:
    return bool(_BRACKET.search(text))


def _ranges(body: str, item: str) -> list[tuple[range, int]]:
    """The numbers in brackets, and their width."""
    ranges = []
    for part in re.split(r"[,\s]+", body):
        match = _RANGE.fullmatch(part)
        if not match:
            raise _bad_list(item, is_box=bool(_BOX.fullmatch(part)))
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _bad_list(item)
        why = "Slurm takes no longer range: write several of them"
        require_count(last - first + 1, item, MAX_RANGE, why)
        ranges.append((range(first, last + 1), len(match[1])))
    return ranges


def _names(item: str, brackets: Sequence[list[tuple[range, int]]]) -> Iterator[str]:
    """The names of one item: nested loops over its brackets, the last innermost."""
    head, *texts = _BRACKET.split(item)[::2]
    if not brackets:
        yield head
        return
    numbers = [[str(n).zfill(width) for of, width in ranges for n in of] for ranges in brackets]
    *others, fastest = numbers
    for chosen in product(*reversed(others)):
        start = head + "".join(number + text for number, text in zip(chosen[::-1], texts))
        yield from (f"{start}{number}{texts[-1]}" for number in fastest)


def _bad_list(item: str, *, is_box: bool = False) -> LayoutError:
    why = "boxes such as [000x133] belong to machines of several dimensions" if is_box else ""
    return refusal("bad-hostlist", "hosts", why=why, value=quoted(item))


def hosts_of_lists(value: object) -> list[str]:
    """The machines of a host list, or of a list of them."""
    parts = value if isinstance(value, list) else [value]
    return [host for part in parts for host in expand_hostlist(str(part))]


# -- topologies ------------------------------------------------------------------------------------

_KINDS = {"switchname": "switch", "blockname": "block", "ringname": "switch"}
"""The kinds of entries by their first word: a ring counts as a switch of its machines."""


def is_topology(text: str) -> bool:
    return bool(_ENTRY.search(text))


def read_topology(text: str) -> Hosts:
    """A topology.conf or the output of `scontrol show topology`, of a tree or of blocks.

    A comment such as ``# rack11=nvl-1`` above a block is topograph's: its NVLink domain.

    >>> hosts = read_topology("SwitchName=s0 Nodes=a,b\\nSwitchName=top Switches=s0")
    >>> hosts.levels
    {'switch': {'a': 's0', 'b': 's0'}, 'switch-1': {'a': 'top', 'b': 'top'}}

    Errors: LayoutError for lists of hosts that are none, and for switches that hold themselves.
    """
    leaves: dict[str, dict[str, list[str]]] = {"switch": {}, "block": {}}
    parent: dict[str, str] = {}
    remarks = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0]
        entry = _ENTRY.search(line)
        if _AGGREGATED.search(line):
            remarks.append(Note("aggregated-left-out", {"line": number}))
        elif entry:
            fields = {key.lower(): value for key, value in _PAIR.findall(line[entry.start() :])}
            key = next((key for key in _KINDS if fields.get(key)), "")
            if not key:
                raise bad_line(line, number, "Slurm's topology", refusal("line-no-name", "hosts"))
            if fields.get("switches"):
                parent |= dict.fromkeys(expand_hostlist(fields["switches"]), fields[key])
            else:
                of_kind = leaves[_KINDS[key]].setdefault(fields[key], [])
                of_kind += expand_hostlist(fields.get("nodes", ""))
    kind = "block" if leaves["block"] else "switch"
    hosts = _under(kind, leaves[kind], parent, remarks)
    aliases = filter(None, map(_ALIAS.match, text.splitlines()))
    domain = {alias[1]: alias[2] for alias in aliases}
    blocks = hosts.level("block")
    of = {host: domain[block] for host, block in blocks.items() if block in domain}
    return replace(hosts, levels={**hosts.levels, "domain": of}) if of else hosts


def read_yaml_topology(document: object) -> Hosts | None:
    """The default topology of a topology.yaml, else its first.

    Errors: LayoutError for a kind that is not read.
    """
    listed = document if isinstance(document, list) else []
    entries = {str(entry["topology"]): entry for entry in listed if _has(entry, "topology")}
    if not entries:
        return None
    default = (name for name, entry in entries.items() if entry.get("cluster_default"))
    name = next(default, "") or next(iter(entries))
    others = ", ".join(entry for entry in entries if entry != name)
    remarks = [Note("other-topologies", {"name": name, "others": others})] if others else []
    for key, rows, kind in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        if not isinstance(entries[name].get(key), dict):
            continue
        parent: dict[str, str] = {}
        leaves: dict[str, list[str]] = {}
        listed = entries[name][key].get(rows)
        if not isinstance(listed, list) or not all(_has(entry, kind) for entry in listed):
            raise bad_document(refusal("document-topology", "hosts", rows=rows, kind=kind))
        for entry in listed:
            if kind == "switch" and entry.get("children"):
                parent |= dict.fromkeys(hosts_of_lists(entry["children"]), str(entry[kind]))
            else:
                leaves[str(entry[kind])] = hosts_of_lists(entry.get("nodes") or "")
        return _under(kind, leaves, parent, remarks)
    raise bad_document(refusal("document-no-topology", "hosts"))


def _has(value: object, key: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(key), (str, int))


def _under(
    kind: str,
    leaves: Mapping[str, Iterable[str]],
    parent: Mapping[str, str],
    remarks: Sequence[Note],
) -> Hosts:
    """Machines by their leaf switches and the places above; a machine belongs to its first leaf."""
    paths = {}
    for leaf in leaves:
        path = paths[leaf] = [leaf]
        while (switch := parent.get(path[-1])) is not None:
            if switch in path:
                raise refusal("switches-in-a-ring", "hosts", switch=quoted(switch))
            path.append(switch)
    rows: dict[str, list[str]] = {}
    twice = []
    for leaf, hosts in leaves.items():
        for host in hosts:
            if (first := rows.setdefault(host, paths[leaf])[0]) != leaf:
                facts = {"host": host, "first": first, "second": leaf}
                twice.append(Note("host-in-two", facts))
    places = ((host, upwards(kind, path)) for host, path in rows.items())
    return hosts_in_places(f"slurm-{kind}".replace("switch", "tree"), places, *remarks, *twice)


# -- a job's environment ---------------------------------------------------------------------------

_NODELISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")
_ADDRESS = "SLURM_TOPOLOGY_ADDR"


def is_environment(text: str) -> bool:
    return any(name in (*_NODELISTS, _ADDRESS) for name, _ in _VARIABLE.findall(text))


def read_environment(text: str) -> Hosts:
    """SLURM_* variables: the job's machines with their tasks and, if given, their places.

    >>> hosts = read_environment("SLURM_JOB_NODELIST=n[1-3]\\nSLURM_TASKS_PER_NODE=8(x2),4")
    >>> dict(hosts.slots)
    {'n1': 8, 'n2': 8, 'n3': 4}
    """
    variables = [(name, value.strip()) for name, value in _VARIABLE.findall(text)]
    values = dict(variables)
    listed = next((values[name] for name in _NODELISTS if values.get(name)), "")
    names = tuple(dict.fromkeys(expand_hostlist(listed)))
    tasks = values.get("SLURM_STEP_TASKS_PER_NODE") or values.get("SLURM_TASKS_PER_NODE") or ""
    each = values.get("SLURM_NTASKS_PER_NODE", "")
    counts: list[int] = []
    if tasks and names:
        counts = _tasks(tasks, len(names))
    elif each.isdecimal() and len(each) < 7:
        counts = [int(each)] * len(names)
    addresses = [value for name, value in variables if name == _ADDRESS and value]
    levels = _levels(addresses, values.get("SLURM_TOPOLOGY_ADDR_PATTERN"))
    names = names or tuple(next(iter(levels.values()), ()))
    hosts = Hosts("slurm-environment", names, dict(zip(names, counts)), levels)
    plane = _plane(values)
    return replace(hosts, ranks=_dealt(hosts, plane)) if plane else hosts


def _tasks(text: str, hosts: int) -> list[int]:
    """``8(x2),4`` as a number for each machine."""
    parts = [_TASKS.fullmatch(part.strip()) for part in text.split(",")]
    if sum(int(match[2] or 1) if match else hosts + 1 for match in parts) != hosts:
        raise refusal("bad-tasks-per-node", "hosts", value=quoted(text), count=hosts)
    return [int(match[1]) for match in parts if match for _ in range(int(match[2] or 1))]


def _levels(addresses: Iterable[str], pattern: str | None) -> dict[str, dict[str, str]]:
    """The levels of every machine with an address.

    ``s3.s0.dev2`` with ``switch.switch.node``: the last name is the machine, before it the closest.
    """
    levels: dict[str, dict[str, str]] = {}
    for address in addresses:
        *places, host = address.split(".")
        kinds = pattern.split(".") if pattern else ["switch"] * len(places) + ["node"]
        if len(kinds) == len(places) + 1 and kinds[-1] == "node":
            for height, (kind, place) in enumerate(zip(kinds[-2::-1], reversed(places))):
                levels.setdefault(f"{kind}-{height}" if height else kind, {})[host] = place
    return levels


def _plane(variables: Mapping[str, str]) -> int:
    """Tasks that a machine gets in turn (1: cyclic), from the part before the first colon; 0 if
    machines are filled one after the other.

    Errors: LayoutError for "arbitrary", whose order stands in a file, and for a plane of no size.
    """
    name = variables.get("SLURM_DISTRIBUTION", "").lower().split(":")[0].split(",")[0]
    size = variables.get("SLURM_DIST_PLANESIZE", "")
    if name in ("", "block", "unknown"):
        return 0
    if name == "cyclic":
        return 1
    if name == "plane" and re.fullmatch(r"[0-9]{1,7}", size):
        return whole_number(int(size), "plane")
    name = f"plane={size}" if name == "plane" else name
    raise not_a_choice("SLURM_DISTRIBUTION", name, ("block", "cyclic", "plane with its size"))


def _dealt(hosts: Hosts, plane: int) -> tuple[str, ...]:
    """The machine of each task: `plane` tasks per machine in turn, skipping full machines."""
    left = [*zip(hosts.names, hosts.require_slots())]
    ranks: list[str] = []
    while left:
        for name, room in left:
            ranks += [name] * min(plane, room)
        left = [(name, room - plane) for name, room in left if room > plane]
    return tuple(ranks)
