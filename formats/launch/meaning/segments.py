"""Whether groups stay together where a job's own file says how its nodes are placed.

Nodes are taken in their order, ``nodes`` at a time, and each run of them stands in one place:

    Slurm       --segment of topology/block: a block, such as an NVL72's rack; divides the nodes
    Kueue       slices of pods, or all of them, in one domain of a level; "preferred" is a wish
    Volcano     partitions of a task, or all of it, in a tier of its HyperNodes; "soft" is a wish

A group that lies within a run stays in that place; of one that does not nothing is known. A pod is
a node here.

Sources: Slurm's manual of sbatch (--segment); NVIDIA-NeMo/RL cluster.segment_size;
kubernetes-sigs/kueue ff69552 site/content/en/docs/concepts/topology_aware_scheduling.md;
volcano-sh/volcano ed72c7c docs/design/Network Topology Aware Scheduling.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from groups.errors import LayoutError
from groups.layout import Layout
from groups.notes import Note

from ..items import Parsed
from ..sayings import Reading

KINDS = ("ep", "tp", "cp")
"""Kinds whose exchanges every layer waits for: the groups that a placement is made for."""

SETTINGS = ("segment", "segment_size", "cluster.segment_size")
"""Slurm's option and what frameworks that write its jobs call it."""


@dataclass(frozen=True)
class NodeRun:
    """Runs of nodes that stand in one place each; nodes 0: all of the job."""

    nodes: int
    place: str
    is_sure: bool = True
    divides: bool = False  # the nodes of the job, or the job is refused


def segments_of(reading: Reading) -> tuple[NodeRun, ...]:
    """The placement that a text asks for, from the largest runs to the smallest."""
    found = [*_of_slurm(reading), *_of_kueue(reading.text), *_of_volcano(reading.text)]
    return tuple(sorted(found, key=lambda one: -(one.nodes or 10**9)))


def _of_slurm(reading: Reading) -> Iterator[NodeRun]:
    texts = [
        words[0].text
        for (_, name), words in reading.settings.items()
        if name.replace("-", "_") in SETTINGS and len(words) == 1 and not words[0].why
    ]
    if texts and re.fullmatch(r"[1-9][0-9]{0,6}", texts[-1]):
        yield NodeRun(int(texts[-1]), "block", divides=True)


_KUEUE = re.compile(
    r"kueue\.x-k8s\.io/podset-([a-z-]{4,60})[\"']?\s{0,9}:\s{0,9}[\"']?([\w./-]{1,120})"
)
_LAYERS = re.compile(
    r"podset-slice-required-topology-constraints[\"']?\s{0,9}:[\s|>'\"-]{0,60}(\[[^\]]{1,900}\])"
)


def _of_kueue(text: str) -> Iterator[NodeRun]:
    said = dict(_KUEUE.findall(text))
    if layers := _LAYERS.search(text):
        with suppress(ValueError, TypeError, KeyError):
            for layer in json.loads(layers[1].replace('\\"', '"')):
                yield NodeRun(int(layer["size"]), str(layer["topology"]))
    elif "slice-required-topology" in said and said.get("slice-size", "").isdigit():
        yield NodeRun(int(said["slice-size"]), said["slice-required-topology"])
    for name, is_sure in (("required-topology", True), ("preferred-topology", False)):
        if name in said:
            yield NodeRun(0, said[name], is_sure)


_TIER = re.compile(r"highestTier(Allowed|Name):\s{0,9}[\"']?([\w.-]{1,80})")
_PARTITION = re.compile(r"partitionSize:\s{0,9}([1-9][0-9]{0,6})")
_AREA = 400
"""The characters behind networkTopology: in which its own fields stand."""


def _of_volcano(text: str) -> Iterator[NodeRun]:
    for match in re.finditer(r"(?m)^(\s*)networkTopology:", text):
        own = text[match.end() : match.end() + _AREA]
        own = re.split(rf"\n(?!{match[1]}\s)", own, maxsplit=1)[0]
        tier = _TIER.search(own)
        if not tier:
            continue
        place = tier[2] if tier[1] == "Name" else f"tier {tier[2]}"
        before = text[: match.start()].rpartition("partitionPolicy:")
        between = before[2] if before[1] else ""
        inside = len(between) < _AREA and len(match[1]) > _indent(before[0]) if between else False
        size = _PARTITION.search(between + own) if inside else None
        yield NodeRun(int(size[1]) if size else 0, place, "soft" not in own)


def _indent(text: str) -> int:
    """The blanks at the beginning of the last line."""
    return len(text.rpartition("\n")[2])


def segment_notes(parsed: Parsed, reading: Reading) -> list[Note]:
    """What a text's placement of nodes does for its groups; nothing for a text without one."""
    segments = segments_of(reading)
    if not segments or parsed.asks:
        return []
    with suppress(LayoutError):
        layout = parsed.job().layout()
        nodes = layout.world_size // layout.gpus_per_node
        return [note for one in segments for note in _notes(one, layout, nodes)]
    return []


def _notes(segment: NodeRun, layout: Layout, nodes: int) -> Iterator[Note]:
    size = segment.nodes or nodes
    facts = {"segment": size, "place": segment.place, "nodes": nodes}
    if segment.divides and nodes % size:
        yield Note("segment-does-not-divide", facts)
        return
    spans = {name: _spans(layout, name) for name in KINDS if name in layout.every}
    spans = {name: ends for name, ends in spans.items() if (ends[0] != ends[1]).any()}
    if not spans:
        yield Note("segment-decides-nothing", facts)
        return
    for kind, (first, last) in spans.items():
        leave = int((first // size != last // size).sum())
        own = {**facts, "kind": kind, "groups": len(first), "wide": int((last - first).max()) + 1}
        if leave:
            works = least_segment(nodes, first, last)
            code = "segment-cuts" if works < nodes else "segment-cuts-any"
            yield Note(code, {**own, "leave": leave, "works": works})
        else:
            yield Note("segment-keeps" if segment.is_sure else "segment-wishes", own)


def _spans(layout: Layout, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The first and the last node of each group."""
    groups = np.asarray(layout.every[kind].groups()) // layout.gpus_per_node
    return groups.min(axis=1), groups.max(axis=1)


def least_segment(nodes: int, first: ArrayLike, last: ArrayLike) -> int:
    """The smallest part of the nodes that no group leaves; all of them if there is no smaller.

    >>> least_segment(8, [0, 3], [1, 3]), least_segment(8, [1], [2])
    (2, 4)
    """
    starts, ends = np.asarray(first), np.asarray(last)
    parts = (size for size in range(1, nodes) if nodes % size == 0)
    return next((size for size in parts if (starts // size == ends // size).all()), nodes)
