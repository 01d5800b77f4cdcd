"""Machines in the output of `nvidia-smi` and NCCL: their NVLink domains, and the inside of one.

    Fabric                                            node-07:   CliqueId    : 4000000005
        State        : Completed                      node-07:   ClusterUUID : 50000000-...
        Status       : Success
        CliqueId     : 7                              --query-gpu=fabric.clusterUuid,fabric.cliqueId
        ClusterUUID  : 9c6f5af3-...                   --format=csv,noheader:  9c6f5af3-..., 7

The domain is the ClusterUUID, the partition that NVLink reaches ClusterUUID.CliqueId; a CliqueId
alone is not unique. An all-zero ClusterUUID is no domain of several machines, nor is a fabric that
is not ready. All GPUs of a machine must agree. Sources: NVIDIA/topograph
pkg/accelerator/nvidia_smi.go; meta-pytorch/torchcomms #936, #1385, #3612; NVIDIA/nccl #1301.

`nvidia-smi topo -m` prints a matrix: NV18 is 18 bonded NVLinks, X the row itself, and for the rest,
from near to far, PIX < PXB < PHB < NODE < SYS. NCCL's topology file (XML) nests devices under the
bridges that they share. A GPU's rail is its nearest card, where each is nearest to the other alone.
Sources: `nvidia-smi topo -h`; NVIDIA/nccl, src/graph/xml.cc, src/graph/topo.h.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from typing import NamedTuple
from xml.etree import ElementTree

from diagnosis.machines.hosts import NAMELESS, Hosts
from diagnosis.machines.inside import Node
from groups.errors import quoted
from groups.notes import Note

from ..errors import refusal
from .values import bad_document, hosts_in_places

# -- NVLink domains --------------------------------------------------------------------------------

_HOST = r"^(?:(?P<host>[A-Za-z0-9][\w.-]*):\s+)?"
_FIELD = re.compile(
    _HOST + r"\s*(?P<key>State|Status|Clique\s?Id|Cluster\s?UUID)\s*:\s*(?P<value>.*?)\s*$",
    re.IGNORECASE | re.ASCII,
)
_HEADER = re.compile(_HOST + r"\s*(?P<name>[A-Za-z][\w ]*?)\s*$", re.ASCII)
_ROW = re.compile(
    _HOST + r"(?P<uuid>[\w-]+|N/A|\[N/A\])\s*,\s*(?P<clique>[0-9]+|\[?N/A\]?)\s*$", re.ASCII
)
_HEADING = re.compile(r"^(?:\S+:\s+)?fabric\.", re.IGNORECASE)

Gpus = dict[str, list[dict[str, str]]]
"""The fields of each GPU of each machine."""


def is_fabric(text: str) -> bool:
    header = re.search(r"Clique\s?Id\s*:|Cluster\s?UUID\s*:", text, re.IGNORECASE)
    return bool(header) or _is_table(text)


def _is_table(text: str) -> bool:
    """Whether every line is a ClusterUUID and a CliqueId, or their heading."""
    rows = [line for line in text.splitlines() if line.strip() and not _HEADING.match(line)]
    return bool(rows) and all(map(_ROW.match, rows))


def read_fabric(text: str) -> Hosts:
    """The NVLink partition and domain of each machine; of a nameless one under NAMELESS.

    >>> read_fabric("a: CliqueId : 7\\na: ClusterUUID : u1\\nb: CliqueId : 7").domains
    {'a': 'u1.7'}

    Errors: LayoutError where the GPUs of one machine stand in different places.
    """
    records = _rows(text) if _is_table(text) else _fields(text)
    rows, remarks = [], []
    for host, gpus in records.items():
        places = {_place(gpu) for gpu in gpus}
        if len(places) > 1:
            named = sorted(f"{uuid}.{clique}" if uuid else "none" for uuid, clique, _ in places)
            listed = " and ".join(named)[:200]
            raise refusal("fabric-differs", "hosts", host=quoted(host), places=listed)
        uuid, clique, why = places.pop()
        if why:
            remarks.append(Note(why, {"host": host}))
        fabric = {"partition": clique and f"{uuid}.{clique}", "domain": uuid}
        rows.append((host, {kind: place for kind, place in fabric.items() if place}))
    if NAMELESS in records:
        remarks.append(Note("host-without-name", {"host": NAMELESS}))
    return hosts_in_places("nvidia-fabric", rows, *remarks)


def _fields(text: str) -> Gpus:
    """One field per line; State and Status count only under Fabric."""
    hosts: Gpus = {}
    in_fabric = False
    for line in text.splitlines():
        match = _FIELD.match(line)
        if match is None:
            header = _HEADER.match(line)
            in_fabric = header["name"].lower() == "fabric" if header else in_fabric
            continue
        key = match["key"].lower().replace(" ", "")
        if in_fabric or key not in ("state", "status"):
            gpus = hosts.setdefault(match["host"] or NAMELESS, [{}])
            if key in gpus[-1]:
                gpus.append({})
            gpus[-1][key] = match["value"]
    return hosts


def _rows(text: str) -> Gpus:
    """A GPU per line."""
    hosts: Gpus = {}
    for match in filter(None, map(_ROW.match, text.splitlines())):
        uuid, clique = (match[key].strip("[]") for key in ("uuid", "clique"))
        if clique == "N/A" != uuid:
            raise refusal("clique-not-said", "hosts", value=quoted(uuid))
        gpu = {"clusteruuid": uuid, "cliqueid": clique}
        hosts.setdefault(match["host"] or NAMELESS, []).append(gpu)
    return hosts


def _place(gpu: Mapping[str, str]) -> tuple[str, str, str]:
    """ClusterUUID and CliqueId of a GPU; the third item is why it is in no domain, or empty."""
    uuid, clique = gpu.get("clusteruuid", ""), gpu.get("cliqueid", "")
    if gpu.get("state", "Completed") != "Completed" or gpu.get("status", "Success") != "Success":
        return "", "", "fabric-not-ready"
    if not uuid or uuid == "N/A" or not uuid.strip("0-"):
        return "", "", "no-domain"
    return uuid, "" if clique == "N/A" else clique, ""


# -- the inside of a machine -----------------------------------------------------------------------

_LEGEND = re.compile(r"^[ \t]*(NIC[0-9]+)[ \t]*:[ \t]*(\S+)[ \t\r]*$", re.MULTILINE)
_DEVICE = re.compile(r"GPU[0-9]+|NIC[0-9]+|[a-z]\w*_[0-9]+|ib[0-9]+|eth[0-9]+|ens\w+|rocep\w+")


def host_of(node: Node) -> Hosts:
    """A machine known only by its inside, without a name."""
    remarks = (Note("host-without-name", {"host": NAMELESS}),)
    return Hosts("node", (NAMELESS,), {NAMELESS: len(node.gpus)}, remarks=remarks, node=node)


def is_matrix(text: str) -> bool:
    return bool(re.search(r"^GPU[0-9]+\s.*\bX\b", text, re.MULTILINE))


def read_matrix(text: str) -> Hosts:
    """The matrix of `nvidia-smi topo -m`; columns are separated by tabs or by spaces.

    >>> node = read_matrix("     GPU0 GPU1 NIC0 CPU Affinity\\nGPU0  X  NV4 PIX 0-7\\n"
    ...     "GPU1 NV4  X  SYS 0-7\\nNIC0 PIX SYS  X\\n\\nNIC Legend:\\n\\n  NIC0: mlx5_0").node
    >>> node.gpu_links, node.rails
    ({'NV4': 1}, {'GPU0': 'mlx5_0'})
    """
    legend = dict(_LEGEND.findall(text))
    lines = [line.split() for line in text.splitlines()]
    start = next((at for at, row in enumerate(lines) if row[:1] == ["GPU0"] and "X" in row), 0)
    rows: dict[str, list[str]] = {}
    for name, *cells in filter(None, lines[start:]):
        if _DEVICE.fullmatch(name) and cells:
            rows.setdefault(name, cells)
    heading = lines[start - 1] if start else []
    columns = heading[: heading.index("CPU")] if "CPU" in heading else heading
    devices = columns or list(rows)
    if not devices or not rows.keys() >= set(devices):
        raise bad_document(refusal("document-matrix", "hosts"))
    links = {
        (legend.get(row, row), legend.get(column, column)): cell
        for row in devices
        for column, cell in zip(devices, rows[row])
        if cell != "X"
    }
    gpus = tuple(name for name in devices if name.startswith("GPU"))
    return host_of(Node(gpus, tuple(legend.get(n, n) for n in devices if n not in gpus), links))


def read_nccl(text: str) -> Hosts:
    """NCCL's topology file: the bridge that a GPU and a card share determines their distance.

    Errors: LayoutError for any other file; a document type is refused unread.
    """
    if "<!DOCTYPE" in text:
        raise bad_document(refusal("document-type", "hosts"))
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, RecursionError, ValueError) as error:
        raise bad_document(refusal("document-xml", "hosts", detail=str(error)[:80])) from None
    gpus: dict[str, Device] = {}
    nics: dict[str, Device] = {}
    left: list[tuple[ElementTree.Element, tuple[int, ...], str]] = [(root, (), "")]
    while left:
        element, path, bus = left.pop()
        bus = element.get("busid", bus)
        if element.tag == "gpu":
            ends = []
            for link in element.iter("nvlink"):
                count = re.fullmatch("[0-9]{1,5}", link.get("count", ""))
                ends.append((link.get("target", ""), int(count[0]) if count else 1))
            gpus[f"GPU{element.get('dev', len(gpus))}"] = Device(path, bus, ends)
        elif element.tag == "net":
            nics[element.get("name", f"net{len(gpus) + len(nics)}")] = Device(path, bus, [])
        inside = (*path, id(element)) if element.tag in ("cpu", "pci") else path
        left += [(child, inside, bus) for child in reversed(element)]
    if not gpus:
        raise bad_document(refusal("document-gpus", "hosts"))
    links = _joined(gpus)
    for (gpu, here), (nic, there) in product(gpus.items(), nics.items()):
        links[gpu, nic] = links[nic, gpu] = _near(here.path, there.path)
    return host_of(Node(tuple(gpus), tuple(nics), links))


class Device(NamedTuple):
    """A GPU or card."""

    path: tuple[int, ...]  # of bridges
    bus: str
    nvlinks: list[tuple[str, int]]  # where they go, and how many each


def _near(gpu: tuple[int, ...], nic: tuple[int, ...]) -> str:
    """PIX under one bridge, PXB under several, PHB under the CPU, else SYS, not counting the
    device's own."""
    shared = sum(before == other for before, other in zip(gpu[:-1], nic[:-1]))
    if shared < 2:
        return "PHB" if shared else "SYS"
    return "PIX" if shared == min(len(gpu), len(nic)) - 1 else "PXB"


def _joined(gpus: Mapping[str, Device]) -> dict[tuple[str, str], str]:
    """NVLinks of each pair: direct ones or, through a switch, all of a GPU's."""
    bus = {device.bus: gpu for gpu, device in gpus.items()}
    links: dict[tuple[str, str], int] = {}
    for gpu, device in gpus.items():
        switched = 0
        for target, count in device.nvlinks:
            if target in bus:
                pair = (gpu, bus[target])
                links[pair] = links.get(pair, 0) + count
            else:
                switched += count
        if switched:
            links |= {(gpu, other): switched for other in gpus if other != gpu}
    return {pair: f"NV{count}" for pair, count in links.items()}
