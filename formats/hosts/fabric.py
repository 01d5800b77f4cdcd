"""NVLink domains as `nvidia-smi` tells them: of one machine, or of several with names before lines.

    Fabric                                            node-07:   CliqueId    : 4000000005
        State        : Completed                      node-07:   ClusterUUID : 50000000-...
        Status       : Success
        CliqueId     : 7                              --query-gpu=fabric.clusterUuid,fabric.cliqueId
        ClusterUUID  : 9c6f5af3-...                   --format=csv,noheader:  9c6f5af3-..., 7

The domain is the ClusterUUID, the partition that NVLink reaches ClusterUUID.CliqueId; a CliqueId
alone is not unique. An all-zero ClusterUUID is no domain of several machines, nor is a fabric that
is not ready. All GPUs of a machine must agree. Sources: NVIDIA/topograph
pkg/accelerator/nvidia_smi.go; meta-pytorch/torchcomms #936, #1385, #3612; NVIDIA/nccl #1301.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from groups.errors import quoted

from ..errors import refusal
from ..notes import Note
from .values import Hosts, once

NAMELESS = "node-0"
"""What a machine is called whose text does not name it."""

_FIELD = re.compile(
    r"^(?:(?P<host>[A-Za-z0-9][\w.-]*):\s+)?\s*"
    r"(?P<key>State|Status|Clique\s?Id|Cluster\s?UUID)\s*:\s*(?P<value>.*?)\s*$",
    re.IGNORECASE | re.ASCII,
)
_HEADER = re.compile(r"^(?:[A-Za-z0-9][\w.-]*:\s+)?\s*([A-Za-z][\w ]*?)\s*$", re.ASCII)
_ROW = re.compile(
    r"^(?:(?P<host>[A-Za-z0-9][\w.-]*):\s+)?(?P<uuid>[\w-]+|N/A|\[N/A\])\s*,\s*"
    r"(?P<clique>[0-9]+|\[?N/A\]?)\s*$",
    re.ASCII,
)
_HEADING = re.compile(r"^(?:\S+:\s+)?fabric\.", re.IGNORECASE)

Gpus = dict[str, list[dict[str, str]]]
"""What is said of each GPU of each machine."""


def is_fabric(text: str) -> bool:
    said = re.search(r"Clique\s?Id\s*:|Cluster\s?UUID\s*:", text, re.IGNORECASE)
    return bool(said) or _is_table(text)


def _is_table(text: str) -> bool:
    """Whether every line is a ClusterUUID and a CliqueId, or their heading."""
    lines = [line for line in text.splitlines() if line.strip()]
    rows = [line for line in lines if not _HEADING.match(line)]
    return bool(rows) and all(_ROW.match(line) for line in rows)


def read_fabric(text: str) -> Hosts:
    """The NVLink partition and domain of each machine; of a nameless one under NAMELESS.

    >>> read_fabric("a: CliqueId : 7\\na: ClusterUUID : u1\\nb: CliqueId : 7").domains
    {'a': 'u1.7'}

    Errors: LayoutError where the GPUs of one machine stand in different places.
    """
    records = _rows(text) if _is_table(text) else _fields(text)
    partition, domain = {}, {}
    remarks = []
    for host, gpus in records.items():
        places = {_place(gpu) for gpu in gpus}
        if len(places) > 1:
            named = sorted(f"{uuid}.{clique}" if uuid else "none" for uuid, clique, _ in places)
            listed = " and ".join(named)[:200]
            raise refusal("fabric-differs", "hosts", host=quoted(host), places=listed)
        uuid, clique, why = places.pop()
        if why:
            remarks.append(Note(why, {"host": host}))
            continue
        domain[host] = uuid
        if clique:
            partition[host] = f"{uuid}.{clique}"
    if NAMELESS in records:
        remarks.append(Note("host-without-name", {"host": NAMELESS}))
    levels = {"partition": partition, "domain": domain}
    levels = {kind: of for kind, of in levels.items() if of}
    return Hosts("nvidia-fabric", once(records), levels=levels, remarks=tuple(remarks))


def _fields(text: str) -> Gpus:
    """Fields a line each; State and Status count under Fabric alone."""
    hosts: Gpus = {}
    in_fabric = False
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match is None:
            header = _HEADER.match(line)
            in_fabric = header[1].lower() == "fabric" if header else in_fabric
            continue
        key = match["key"].lower().replace(" ", "")
        if key in ("state", "status") and not in_fabric:
            continue
        gpus = hosts.setdefault(match["host"] or NAMELESS, [{}])
        if key in gpus[-1]:
            gpus.append({})
        gpus[-1][key] = match["value"]
    return hosts


def _rows(text: str) -> Gpus:
    """A GPU a line."""
    hosts: Gpus = {}
    for line in text.splitlines():
        match = None if _HEADING.match(line) else _ROW.match(line)
        if match is None:
            continue
        uuid, clique = (match[key].strip("[]") for key in ("uuid", "clique"))
        if clique == "N/A" != uuid:
            raise refusal("clique-not-said", "hosts", value=quoted(uuid))
        gpus = hosts.setdefault(match["host"] or NAMELESS, [])
        gpus.append({"clusteruuid": uuid, "cliqueid": clique})
    return hosts


def _place(gpu: Mapping[str, str]) -> tuple[str, str, str]:
    """ClusterUUID and CliqueId of a GPU; the third is why it stands in no domain, or empty."""
    uuid, clique = gpu.get("clusteruuid", ""), gpu.get("cliqueid", "")
    if gpu.get("state", "Completed") != "Completed" or gpu.get("status", "Success") != "Success":
        return "", "", "fabric-not-ready"
    if not uuid or uuid == "N/A" or not uuid.strip("0-"):
        return "", "", "no-domain"
    return uuid, "" if clique == "N/A" else clique, ""
