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
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from groups.errors import LayoutError
from groups.layout import Layout
from groups.notes import Note
from groups.placement import node_of

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
    spans = {name: ends for name, ends in spans.items() if any(one != end for one, end in ends)}
    if not spans:
        yield Note("segment-decides-nothing", facts)
        return
    for kind, ends in spans.items():
        leave = sum(count for (first, last), count in ends.items() if first // size != last // size)
        wide = max(last - first for first, last in ends) + 1
        own = {**facts, "kind": kind, "groups": ends.total(), "wide": wide}
        if leave:
            works = least_segment(nodes, ends)
            code = "segment-cuts" if works < nodes else "segment-cuts-any"
            yield Note(code, {**own, "leave": leave, "works": works})
        else:
            yield Note("segment-keeps" if segment.is_sure else "segment-wishes", own)


def _spans(layout: Layout, kind: str) -> Counter[tuple[int, int]]:
    """The first and the last node of each group, and how many groups have these."""
    groups = node_of(layout.every[kind].groups(), layout.gpus_per_node)
    return Counter(zip(groups.min(axis=1).tolist(), groups.max(axis=1).tolist(), strict=True))


def least_segment(nodes: int, ends: Iterable[tuple[int, int]]) -> int:
    """The smallest part of the nodes that no group leaves; all of them if there is no smaller.

    >>> least_segment(8, [(0, 1), (3, 3)]), least_segment(8, [(1, 2)])
    (2, 4)
    """
    parts = (size for size in range(1, nodes) if nodes % size == 0)
    fits = (size for size in parts if all(one // size == end // size for one, end in ends))
    return next(fits, nodes)
