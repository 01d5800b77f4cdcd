"""What Slurm says of machines: topology.conf, topology.yaml, `scontrol show topology`, a job's
environment.

    SwitchName=s0 Nodes=n[0-5]        a leaf switch: the level "switch" of its machines
    SwitchName=s3 Switches=s[0-2]     a switch above: "switch-1", "switch-2" ... farther off
    BlockName=b1 Nodes=n[1-18]        a block: by custom one NVLink domain
    BlockSizes=18,36                  planning sizes, no counts

`scontrol show topology` has the same words a line, with the nodes of every level and with blocks
that only join others (AggregatedBlock), which are no domains. Lines may have a log's prefix.
Sources: SchedMD/slurm doc/man/man5/topology.conf.5 and topology.yaml.5, srun(1),
src/plugins/topology/block/topology_block.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from groups.errors import LayoutError, not_a_choice, quoted

from .distribution import rank_hosts
from .hostlist import expand_hostlist
from .values import Hosts, Level, Remark, bad_document, bad_line, no_hosts, once

_ENTRY = re.compile(r"\b(SwitchName|BlockName|RingName)\s*=", re.IGNORECASE)
_PAIR = re.compile(r"\b([A-Za-z]+)\s*=\s*(?![A-Za-z]+\s*=)(\S*)")
_AGGREGATED = re.compile(r"\bAggregatedBlock\s*=", re.IGNORECASE)
_SIZES = re.compile(r"\bBlockSizes?\s*=\s*([0-9,]+)\s*$", re.IGNORECASE)
_ALIAS = re.compile(r"^\s*#\s*([\w.-]+)\s*=\s*([\w.-]+)\s*$")
_TASKS = re.compile(r"([0-9]{1,7})(?:\(x([0-9]{1,7})\))?", re.ASCII)
_VARIABLE = re.compile(
    r"^[ \t]*(?:export[ \t]+|\w[\w.-]*:[ \t]*)?(SLURM_[A-Z_]+)[ \t]*=[ \t]*[\"']?([^\"'\n]*)[\"']?",
    re.MULTILINE,
)


def is_topology(text: str) -> bool:
    return bool(_ENTRY.search(text))


def read_topology(text: str) -> Hosts:
    """topology.conf or the output of `scontrol show topology`, of a tree or of blocks.

    >>> hosts = read_topology("SwitchName=s0 Nodes=a,b\\nSwitchName=top Switches=s0")
    >>> [(one.kind, dict(one.of)) for one in hosts.levels]
    [('switch', {'a': 's0', 'b': 's0'}), ('switch-1', {'a': 'top', 'b': 'top'})]

    Errors: LayoutError for lists of hosts that are none, and for switches that hold themselves.
    """
    leaves: dict[str, dict[str, list[str]]] = {"switch": {}, "block": {}}
    parent: dict[str, str] = {}
    sizes: tuple[int, ...] = ()
    remarks = []
    for number, line in enumerate(text.splitlines(), 1):
        line = line.split("#", 1)[0]
        entry = _ENTRY.search(line)
        if entry is None or _AGGREGATED.search(line):
            if _AGGREGATED.search(line):
                remarks.append(Remark("aggregated-left-out", {"line": number}))
            else:
                sizes = _sizes(line) or sizes
            continue
        said = {key.lower(): value for key, value in _PAIR.findall(line[entry.start() :])}
        name, kind = _named(said, line, number)
        if said.get("switches"):
            parent |= dict.fromkeys(expand_hostlist(said["switches"]), name)
        else:
            leaves[kind].setdefault(name, []).extend(expand_hostlist(said.get("nodes", "")))
    kind = "block" if leaves["block"] else "switch"
    found = _levels(kind, leaves[kind], parent)
    twice = _stand_twice(leaves[kind])
    return _hosts(f"slurm-{'block' if kind == 'block' else 'tree'}", found, sizes, remarks + twice)


def _named(said: Mapping[str, str], line: str, number: int) -> tuple[str, str]:
    """The name of an entry and its kind; a ring counts as a switch of its machines."""
    for key, kind in (("switchname", "switch"), ("blockname", "block"), ("ringname", "switch")):
        if said.get(key):
            return said[key], kind
    raise bad_line(line, number, "Slurm's topology", "the entry has no name")


def _sizes(line: str) -> tuple[int, ...]:
    match = _SIZES.search(line.strip())
    return tuple(int(part) for part in match[1].split(",") if part) if match else ()


def _levels(
    kind: str, leaves: Mapping[str, Iterable[str]], parent: Mapping[str, str]
) -> tuple[Level, ...]:
    """The level of the leaves and those above, the closest first; a machine's first leaf counts."""
    path: dict[str, list[str]] = {}
    for leaf in leaves:
        above = [leaf]
        while (switch := parent.get(above[-1])) is not None:
            if switch in above:
                raise LayoutError(
                    "switches-in-a-ring",
                    f"the switch {quoted(switch)} stands above itself",
                    control="hosts",
                    facts={"switch": quoted(switch)},
                )
            above.append(switch)
        path[leaf] = above
    place: dict[str, list[str]] = {}
    for leaf, hosts in leaves.items():
        for host in hosts:
            place.setdefault(host, path[leaf])
    depth = max(map(len, path.values()), default=0)
    return tuple(
        Level(
            f"{kind}-{height}" if height else kind,
            {host: above[height] for host, above in place.items() if len(above) > height},
        )
        for height in range(depth)
    )


def _stand_twice(leaves: Mapping[str, Iterable[str]]) -> list[Remark]:
    """Machines that stand under two leaves, as they do in real files."""
    first: dict[str, str] = {}
    found = []
    for leaf, hosts in leaves.items():
        for host in hosts:
            if first.setdefault(host, leaf) != leaf:
                facts = {"host": host, "first": first[host], "second": leaf}
                found.append(Remark("host-in-two", facts))
    return found


def _hosts(
    form: str, levels: tuple[Level, ...], sizes: tuple[int, ...], remarks: Iterable[Remark]
) -> Hosts:
    names = once(levels[0].of) if levels else ()
    if not names:
        raise no_hosts()
    levels = tuple(one for one in levels if one.of)
    return Hosts(form, names, levels=levels, block_sizes=sizes, remarks=tuple(remarks))


def aliases(text: str) -> dict[str, str]:
    """Block -> the NVLink domain that topograph writes in a comment above it.

    >>> aliases("# rack11=nvl-1-1\\nBlockName=rack11 Nodes=a")
    {'rack11': 'nvl-1-1'}
    """
    return {match[1]: match[2] for match in map(_ALIAS.match, text.splitlines()) if match}


# -- topology.yaml ---------------------------------------------------------------------------------


def is_yaml_topology(document: Any) -> bool:
    return isinstance(document, list) and any(
        isinstance(one, dict) and "topology" in one for one in document
    )


def read_yaml_topology(document: list[Any], chosen: str = "") -> Hosts:
    """One topology of a topology.yaml: the one that is named, else the cluster's default.

    Errors: LayoutError for a name that is none of them, and for a kind that is not read.
    """
    entries = {str(one["topology"]): one for one in document if _has(one, "topology")}
    default = next((name for name, one in entries.items() if one.get("cluster_default")), "")
    name = chosen or default or next(iter(entries))
    if name not in entries:
        raise not_a_choice("topology", name, entries, [{"topology": one} for one in entries])
    others = [one for one in entries if one != name]
    remarks = [Remark("other-topologies", {"name": name, "others": ", ".join(others)})]
    return _yaml_hosts(entries[name], remarks if others else [])


def _yaml_hosts(entry: Mapping[str, Any], remarks: list[Remark]) -> Hosts:
    if isinstance(entry.get("tree"), dict):
        leaves: dict[str, list[str]] = {}
        parent: dict[str, str] = {}
        for one in _rows(entry["tree"], "switches", "switch"):
            if one.get("children"):
                parent |= dict.fromkeys(_list(one["children"]), str(one["switch"]))
            else:
                leaves[str(one["switch"])] = _list(one.get("nodes") or "")
        levels = _levels("switch", leaves, parent)
        return _hosts("slurm-tree", levels, (), remarks + _stand_twice(leaves))
    if isinstance(entry.get("block"), dict):
        blocks = {
            str(one["block"]): _list(one.get("nodes") or "")
            for one in _rows(entry["block"], "blocks", "block")
        }
        said = entry["block"].get("block_sizes") or ()
        sizes = tuple(size for size in said if isinstance(size, int))
        levels = _levels("block", blocks, {})
        return _hosts("slurm-block", levels, sizes, remarks + _stand_twice(blocks))
    raise bad_document("of topologies, trees and blocks are read, and this is neither")


def _rows(value: Mapping[str, Any], key: str, name: str) -> Iterator[dict[str, Any]]:
    rows = value.get(key)
    if not isinstance(rows, list) or not all(_has(one, name) for one in rows):
        raise bad_document(f"{key} must be a list whose entries have {name}")
    yield from rows


def _has(value: Any, key: str) -> bool:
    return isinstance(value, dict) and isinstance(value.get(key), (str, int))


def _list(value: Any) -> list[str]:
    """A host list, or a list of them."""
    parts = value if isinstance(value, list) else [value]
    return [host for part in parts for host in expand_hostlist(str(part))]


# -- a job's environment ---------------------------------------------------------------------------


def is_environment(text: str) -> bool:
    return not {*_NODELISTS, "SLURM_TOPOLOGY_ADDR"}.isdisjoint(_variables(text))


_NODELISTS = ("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_STEP_NODELIST")


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
        names = once(host for one in levels[:1] for host in one.of)
    if not names:
        raise no_hosts()
    hosts = Hosts("slurm-environment", names, dict(zip(names, counts)), levels)
    way = _distribution(said)
    return hosts if way == "block" else replace(hosts, ranks=rank_hosts(hosts, by=way))


def _distribution(said: Mapping[str, str]) -> str:
    """How the tasks were dealt over the machines: what stands before the first colon.

    Errors: LayoutError for "arbitrary", whose order stands in a file, and for a plane of no size.
    """
    way = said.get("SLURM_DISTRIBUTION", "").lower().split(":")[0].split(",")[0]
    if way == "plane":
        way = f"plane={said.get('SLURM_DIST_PLANESIZE', '')}"
    if way in ("", "block", "unknown"):
        return "block"
    if way == "cyclic" or re.fullmatch(r"plane=[0-9]{1,7}", way):
        return way
    raise not_a_choice("SLURM_DISTRIBUTION", way, ("block", "cyclic", "plane with its size"))


def _addresses(text: str, pattern: str | None) -> tuple[Level, ...]:
    """The levels of every machine whose address the text has, each in its own line."""
    found: dict[str, dict[str, str]] = {}
    for name, value in _VARIABLE.findall(text):
        for level in _address(value.strip(), pattern) if name == "SLURM_TOPOLOGY_ADDR" else ():
            found.setdefault(level.kind, {}).update(level.of)
    return tuple(Level(kind, of) for kind, of in found.items())


def _tasks(text: str, hosts: int) -> list[int]:
    """``8(x2),4`` as a number for each machine."""
    counts: list[int] = []
    for part in text.split(","):
        match = _TASKS.fullmatch(part.strip())
        if not match or len(counts) + int(match[2] or 1) > hosts:
            raise _bad_tasks(text, hosts)
        counts += [int(match[1])] * int(match[2] or 1)
    if len(counts) != hosts:
        raise _bad_tasks(text, hosts)
    return counts


def _bad_tasks(text: str, hosts: int) -> LayoutError:
    return LayoutError(
        "bad-tasks-per-node",
        f"{quoted(text)} does not say the tasks of {hosts} machines",
        why="SLURM_TASKS_PER_NODE has a number for each machine, such as 8(x2),4",
        control="hosts",
        facts={"value": quoted(text), "count": hosts},
    )


def _address(address: str, pattern: str | None) -> tuple[Level, ...]:
    """``s3.s0.dev2`` with ``switch.switch.node``: from the root to the machine."""
    parts = address.split(".")
    kinds = (pattern or ".".join(["switch"] * (len(parts) - 1) + ["node"])).split(".")
    if not address or len(kinds) != len(parts) or kinds[-1] != "node":
        return ()
    above = list(zip(kinds, parts))[-2::-1]
    return tuple(
        Level(kind if height == 0 else f"{kind}-{height}", {parts[-1]: place})
        for height, (kind, place) in enumerate(above)
    )
