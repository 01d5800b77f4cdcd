"""What Slurm says of machines: topology.conf, topology.yaml, `scontrol show topology`, a job's
environment.

    SwitchName=s0 Nodes=n[0-5]        a leaf switch: the level "switch" of its machines
    SwitchName=s3 Switches=s[0-2]     a switch above: "switch-1", "switch-2" ... farther off
    BlockName=b1 Nodes=n[1-18]        a block: by custom one NVLink domain

`scontrol show topology` has the same words a line, with the nodes of every level and with blocks
that only join others (AggregatedBlock), which are no domains. Lines may have a log's prefix.
Sources: SchedMD/slurm doc/man/man5/topology.conf.5 and topology.yaml.5, srun(1),
src/common/slurm_step_layout.c, src/plugins/topology/block/topology_block.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from groups.errors import not_a_choice, quoted
from groups.mesh import MAX_RANKS, whole_number

from ..errors import refusal
from ..notes import Note
from .hostlist import expand_hostlist
from .values import Hosts, bad_document, bad_line, hosts_in_places, once, slots_unknown, upwards

_ENTRY = re.compile(r"\b(SwitchName|BlockName|RingName)\s*=", re.IGNORECASE)
_PAIR = re.compile(r"\b([A-Za-z]+)\s*=\s*(?![A-Za-z]+\s*=)(\S*)")
_AGGREGATED = re.compile(r"\bAggregatedBlock\s*=", re.IGNORECASE)
_ALIAS = re.compile(r"^\s*#\s*([\w.-]+)\s*=\s*([\w.-]+)\s*$")
_TASKS = re.compile(r"([0-9]{1,7})(?:\(x([0-9]{1,7})\))?", re.ASCII)
_VARIABLE = re.compile(
    r"^[ \t]*(?:export[ \t]+|\w[\w.-]*:[ \t]*)?(SLURM_[A-Z_]+)[ \t]*=[ \t]*[\"']?([^\"'\n]*)[\"']?",
    re.MULTILINE,
)
_NAMES = {"switchname": "switch", "blockname": "block", "ringname": "switch"}
"""What an entry begins with, and its kind: a ring counts as a switch of its machines."""

# -- topologies ------------------------------------------------------------------------------------


def is_topology(text: str) -> bool:
    return bool(_ENTRY.search(text))


def read_topology(text: str) -> Hosts:
    """topology.conf or the output of `scontrol show topology`, of a tree or of blocks.

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
            said = {key.lower(): value for key, value in _PAIR.findall(line[entry.start() :])}
            key = next((key for key in _NAMES if said.get(key)), "")
            if not key:
                raise bad_line(line, number, "Slurm's topology", "the entry has no name")
            name, kind = said[key], _NAMES[key]
            if said.get("switches"):
                parent |= dict.fromkeys(expand_hostlist(said["switches"]), name)
            else:
                leaves[kind].setdefault(name, []).extend(expand_hostlist(said.get("nodes", "")))
    kind = "block" if leaves["block"] else "switch"
    hosts = _under(kind, leaves[kind], parent, remarks)
    domain = dict(match.groups() for match in map(_ALIAS.match, text.splitlines()) if match)
    blocks = hosts.level("block")
    of = {host: domain[block] for host, block in blocks.items() if block in domain}
    return replace(hosts, levels={**hosts.levels, "domain": of}) if of else hosts


def _under(
    kind: str,
    leaves: Mapping[str, Iterable[str]],
    parent: Mapping[str, str],
    remarks: Iterable[Note],
) -> Hosts:
    """Machines under their leaves and what is above; the first leaf of a machine counts."""
    path = {leaf: _path(leaf, parent) for leaf in leaves}
    first: dict[str, str] = {}
    twice = []
    for leaf, hosts in leaves.items():
        for host in hosts:
            if first.setdefault(host, leaf) != leaf:
                facts = {"host": host, "first": first[host], "second": leaf}
                twice.append(Note("host-in-two", facts))
    rows = ((host, upwards(kind, path[leaf])) for host, leaf in first.items())
    form = "slurm-block" if kind == "block" else "slurm-tree"
    return hosts_in_places(form, rows, *remarks, *twice)


def _path(leaf: str, parent: Mapping[str, str]) -> list[str]:
    """A leaf and the switches above it."""
    path = [leaf]
    while (switch := parent.get(path[-1])) is not None:
        if switch in path:
            raise refusal("switches-in-a-ring", "hosts", switch=quoted(switch))
        path.append(switch)
    return path


def read_yaml_topology(document: Any) -> Hosts | None:
    """The cluster's default topology of a topology.yaml, else its first.

    Errors: LayoutError for a kind that is not read.
    """
    if not isinstance(document, list) or not any(_has(entry, "topology") for entry in document):
        return None
    entries = {str(entry["topology"]): entry for entry in document if _has(entry, "topology")}
    name = next((name for name, entry in entries.items() if entry.get("cluster_default")), "")
    name = name or next(iter(entries))
    others = ", ".join(entry for entry in entries if entry != name)
    remarks = [Note("other-topologies", {"name": name, "others": others})] if others else []
    for key, rows, kind in (("tree", "switches", "switch"), ("block", "blocks", "block")):
        if isinstance(entries[name].get(key), dict):
            parent: dict[str, str] = {}
            leaves: dict[str, list[str]] = {}
            listed = entries[name][key].get(rows)
            if not isinstance(listed, list) or not all(_has(entry, kind) for entry in listed):
                raise bad_document(f"{rows} must be a list whose entries have {kind}")
            for entry in listed:
                if kind == "switch" and entry.get("children"):
                    parent |= dict.fromkeys(hosts_of_lists(entry["children"]), str(entry[kind]))
                else:
                    leaves[str(entry[kind])] = hosts_of_lists(entry.get("nodes") or "")
            return _under(kind, leaves, parent, remarks)
    raise bad_document("of topologies, trees and blocks are read, and this is neither")


def _has(value: Any, key: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(key), (str, int))


def hosts_of_lists(value: Any) -> list[str]:
    """The machines of a host list, or of a list of them."""
    parts = value if isinstance(value, list) else [value]
    return [host for part in parts for host in expand_hostlist(str(part))]


# -- a job's environment ---------------------------------------------------------------------------

_NODELISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")
_ADDRESS = "SLURM_TOPOLOGY_ADDR"


def is_environment(text: str) -> bool:
    return not {*_NODELISTS, _ADDRESS}.isdisjoint(_variables(text))


def _variables(text: str) -> dict[str, str]:
    return {name: value.strip() for name, value in _VARIABLE.findall(text)}


def read_environment(text: str) -> Hosts:
    """SLURM_* variables: the job's machines with their tasks, and where one stands.

    >>> hosts = read_environment("SLURM_JOB_NODELIST=n[1-3]\\nSLURM_TASKS_PER_NODE=8(x2),4")
    >>> dict(hosts.slots)
    {'n1': 8, 'n2': 8, 'n3': 4}
    """
    said = _variables(text)
    listed = next((said[name] for name in _NODELISTS if said.get(name)), "")
    names = once(expand_hostlist(listed))
    tasks = said.get("SLURM_STEP_TASKS_PER_NODE") or said.get("SLURM_TASKS_PER_NODE") or ""
    counts = _tasks(tasks, len(names)) if tasks and names else []
    each = said.get("SLURM_NTASKS_PER_NODE", "")
    if not counts and each.isdigit() and len(each) < 7:
        counts = [int(each)] * len(names)
    levels = _addresses(text, said.get("SLURM_TOPOLOGY_ADDR_PATTERN"))
    if not names:
        names = once(host for of in [*levels.values()][:1] for host in of)
    if not names:
        raise refusal("no-hosts", "hosts")
    hosts = Hosts("slurm-environment", names, dict(zip(names, counts)), levels)
    plane = _plane(said)
    return replace(hosts, ranks=_dealt(hosts, plane)) if plane else hosts


def _plane(said: Mapping[str, str]) -> int:
    """Tasks that a machine gets in turn (1: cyclic), by what stands before the first colon; 0 where
    machines are filled one after the other.

    Errors: LayoutError for "arbitrary", whose order stands in a file, and for a plane of no size.
    """
    name = said.get("SLURM_DISTRIBUTION", "").lower().split(":")[0].split(",")[0]
    size = said.get("SLURM_DIST_PLANESIZE", "")
    if name in ("", "block", "unknown"):
        return 0
    if name == "cyclic":
        return 1
    if name == "plane" and re.fullmatch(r"[0-9]{1,7}", size):
        return whole_number(int(size), "plane")
    name = f"plane={size}" if name == "plane" else name
    raise not_a_choice("SLURM_DISTRIBUTION", name, ("block", "cyclic", "plane with its size"))


def _dealt(hosts: Hosts, plane: int) -> tuple[str, ...]:
    """The machine of each task: so many a machine in turn, full machines are passed."""
    unknown = [name for name, slots in hosts.slots.items() if slots is None]
    if unknown:
        raise slots_unknown(unknown)
    left = [(name, slots or 0) for name, slots in hosts.slots.items()]
    whole_number(sum(slots for _, slots in left), "slots", minimum=0, maximum=MAX_RANKS)
    ranks: list[str] = []
    while left:
        for name, room in left:
            ranks += [name] * min(plane, room)
        left = [(name, room - plane) for name, room in left if room > plane]
    return tuple(ranks)


def _addresses(text: str, pattern: str | None) -> dict[str, dict[str, str]]:
    """The levels of every machine whose address the text has, each in its own line.

    ``s3.s0.dev2`` with ``switch.switch.node``: the last name is the machine, before it the closest.
    """
    levels: dict[str, dict[str, str]] = {}
    addresses = (value.strip() for name, value in _VARIABLE.findall(text) if name == _ADDRESS)
    for address in filter(None, addresses):
        *places, host = address.split(".")
        kinds = pattern.split(".") if pattern else ["switch"] * len(places) + ["node"]
        if len(kinds) == len(places) + 1 and kinds[-1] == "node":
            for height, (kind, place) in enumerate(zip(kinds[-2::-1], reversed(places))):
                levels.setdefault(f"{kind}-{height}" if height else kind, {})[host] = place
    return levels


def _tasks(text: str, hosts: int) -> Sequence[int]:
    """``8(x2),4`` as a number for each machine."""
    counts: list[int] = []
    for part in text.split(","):
        match = _TASKS.fullmatch(part.strip())
        times = int(match[2] or 1) if match else hosts + 1
        if not match or len(counts) + times > hosts:
            break
        counts += [int(match[1])] * times
    else:
        if len(counts) == hosts:
            return counts
    raise refusal("bad-tasks-per-node", "hosts", value=quoted(text), count=hosts)
