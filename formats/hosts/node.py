"""What stands inside one machine: GPUs, network cards, and how near they are to each other.

`nvidia-smi topo -m` prints a matrix: NV18 is 18 bonded NVLinks, X the row itself, and for the rest,
from near to far, PIX < PXB < PHB < NODE < SYS. NCCL's topology file (XML) nests devices under the
bridges that they share. A GPU's rail is its nearest card, where each is nearest to the other alone.
Sources: `nvidia-smi topo -h`; NVIDIA/nccl, src/graph/xml.cc, src/graph/topo.h.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple
from xml.etree import ElementTree

from .values import bad_document

NEAR = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""From one bridge to the whole machine."""

_LEGEND = re.compile(r"^[ \t]*(NIC[0-9]+)[ \t]*:[ \t]*(\S+)[ \t\r]*$", re.MULTILINE)
_DEVICE = re.compile(r"GPU[0-9]+|NIC[0-9]+|[a-z]\w*_[0-9]+|ib[0-9]+|eth[0-9]+|ens\w+|rocep\w+")


@dataclass(frozen=True)
class Node:
    """GPUs and cards of a machine. links: (device, device) -> NV18, PIX, SYS ... both ways."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    links: Mapping[tuple[str, str], str] = field(default_factory=dict)

    def nearest(self, device: str) -> tuple[str, ...]:
        """The cards nearest to a GPU, or the GPUs nearest to a card; none across the machine."""
        others = self.nics if device in self.gpus else self.gpus
        how = {other: self.links.get((device, other)) for other in others}
        far = {other: NEAR.index(link) for other, link in how.items() if link in NEAR}
        least = min(far.values(), default=len(NEAR))
        return () if least >= NEAR.index("SYS") else tuple(n for n in far if far[n] == least)

    @property
    def rails(self) -> dict[str, str]:
        """GPU -> its own card, where each is nearest to the other alone."""
        cards = ((gpu, self.nearest(gpu)) for gpu in self.gpus)
        return {gpu: nics[0] for gpu, nics in cards if [self.nearest(n) for n in nics] == [(gpu,)]}

    @property
    def gpu_links(self) -> dict[str, int]:
        """How many pairs of GPUs are joined how: {"NV18": 28}."""
        return dict(
            Counter(self.links[two] for two in combinations(self.gpus, 2) if two in self.links)
        )


def is_matrix(text: str) -> bool:
    return bool(re.search(r"^GPU[0-9]+\s.*\bX\b", text, re.MULTILINE))


def read_matrix(text: str) -> Node:
    """`nvidia-smi topo -m`, with tabs or pasted with blanks.

    >>> node = read_matrix("     GPU0 GPU1 NIC0 CPU Affinity\\nGPU0  X  NV4 PIX 0-7\\n"
    ...     "GPU1 NV4  X  SYS 0-7\\nNIC0 PIX SYS  X\\n\\nNIC Legend:\\n\\n  NIC0: mlx5_0")
    >>> node.gpu_links, node.rails
    ({'NV4': 1}, {'GPU0': 'mlx5_0'})
    """
    legend = dict(_LEGEND.findall(text))
    lines = text.splitlines()
    split = ((n, line.split()) for n, line in enumerate(lines))
    start = next((n for n, row in split if row[:1] == ["GPU0"] and "X" in row), -1)
    rows: dict[str, list[str]] = {}
    for line in lines[max(start, 0) :]:
        name, *cells = line.split() or [""]
        if _DEVICE.fullmatch(name) and cells:
            rows.setdefault(name, cells)
    heading = lines[start - 1].split() if start > 0 else []
    columns = heading[: heading.index("CPU")] if "CPU" in heading else heading
    columns = columns or list(rows)
    devices = [name for name in columns if name in rows]
    if not devices or devices != columns:
        raise bad_document("the matrix has other rows than columns")
    links = {
        (legend.get(row, row), legend.get(column, column)): cell
        for row in devices
        for column, cell in zip(columns, rows[row])
        if cell != "X"
    }
    gpus = tuple(name for name in devices if name.startswith("GPU"))
    return Node(gpus, tuple(legend.get(n, n) for n in devices if n not in gpus), links)


def read_nccl(text: str) -> Node:
    """NCCL's topology file: the bridge that a GPU and a card share says how near they are.

    Errors: LayoutError for what is no such file; a document type is refused unread.
    """
    if "<!DOCTYPE" in text:
        raise bad_document("an XML with a document type is not read")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, RecursionError, ValueError) as error:
        raise bad_document(f"no XML ({str(error)[:80]})") from None
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
        raise bad_document("it has no GPU")
    links = _joined(gpus)
    for gpu, here in gpus.items():
        for nic, there in nics.items():
            links[gpu, nic] = links[nic, gpu] = _near(here.path, there.path)
    return Node(tuple(gpus), tuple(nics), links)


class Device(NamedTuple):
    """A GPU or card."""

    path: tuple[int, ...]  # of bridges
    bus: str
    nvlinks: list[tuple[str, int]]  # where they go, and how many each


def _near(gpu: tuple[int, ...], nic: tuple[int, ...]) -> str:
    """PIX under one bridge, PXB under several, PHB under the CPU, else SYS; the own one aside."""
    shared = sum(1 for before, other in zip(gpu[:-1], nic[:-1]) if before == other)
    if shared < 2:
        return "PHB" if shared else "SYS"
    return "PIX" if shared == min(len(gpu), len(nic)) - 1 else "PXB"


def _joined(gpus: Mapping[str, Device]) -> dict[tuple[str, str], str]:
    """NVLinks of each pair: those to each other, or, through a switch, all that a GPU has."""
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
