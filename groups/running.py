"""What a running program knows of its process groups, and the layout that makes them.

The groups of one rank are enough: each axis is a group of ranks in steps of one width.
PyTorch writes them as ``pg_config`` into the ``distributedInfo`` of every profiler trace, and tells
them at run time (``torch.distributed.distributed_c10d._world.pg_config_info``).

>>> config = [{"pg_name": "0", "pg_desc": "default_pg", "group_size": 8, "ranks": []},
...           {"pg_name": "4", "pg_desc": "TENSOR_MODEL_PARALLEL_GROUP", "ranks": [4, 5]},
...           {"pg_name": "9", "pg_desc": "PIPELINE_MODEL_PARALLEL_GROUP", "ranks": [1, 5]}]
>>> running = read_process_groups(config)
>>> running.rank, str(running.layout().mesh)
(5, 'tp2-cp1-dp2-pp2')
>>> meant = Job(tp=2, pp=2, framework="megatron-pp-dp").layout()
>>> next(running.differences(meant))
Difference(rank=0, kind='dp', ran=(0, 2), meant=(0, 4))

DeepSpeed and vLLM name no group: theirs are known by the order in which they make them.
Sources: deepspeedai/DeepSpeed edaa722 deepspeed/runtime/pipe/topology.py (PipelineParallelGrid) and
deepspeed/utils/groups.py; vllm-project/vllm (0.32.0) vllm/distributed/parallel_state.py.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from .device_mesh import Spread, job_of_mesh, layouts_of
from .errors import quoted, refusal
from .group_names import WORLD, kind_of
from .layout import Job, Layout
from .mesh import whole_number

MOST_GROUPS = 20_000
"""The largest number of groups of one rank."""

AXES = ("tp", "cp", "dp", "pp", "ep", "etp", "edp")

_INFO = '"distributedInfo"'
_KEY = re.compile(r"""["']pg_(?:name|config)["']\s*:""")


class RunningGroup(NamedTuple):
    """A process group of a running program. kind: what its name means; None for an unknown name."""

    name: str
    kind: str | None
    ranks: tuple[int, ...]

    @property
    def spread(self) -> Spread | None:
        """(stride, ranks) of each run of steps, fastest first; None if they are not regular.

        >>> RunningGroup("dp-cp", None, (1, 3, 9, 11)).spread
        ((2, 2), (8, 2))
        """
        left, runs = sorted(self.ranks), []
        while len(left) > 1:
            stride = left[1] - left[0]
            count = next((n for n, at in enumerate(left) if at != left[0] + n * stride), len(left))
            firsts = left[::count]
            if stride < 1 or left != [one + n * stride for one in firsts for n in range(count)]:
                return None
            runs.append((stride, count))
            left = firsts
        return tuple(runs)


class Difference(NamedTuple):
    """A group of a rank that is not the intended one; () where one side has no such group."""

    rank: int
    kind: str
    ran: tuple[int, ...]
    meant: tuple[int, ...]


@dataclass(frozen=True)
class Running:
    """The groups of one rank in the order of their creation, without that of all ranks.

    rank: the one rank that all of them hold, or the lowest of several.
    """

    world: int
    rank: int
    groups: tuple[RunningGroup, ...]

    @classmethod
    def of(cls, layout: Layout, rank: int = 0) -> Running:
        """The groups that a rank of a layout would report for its axes.

        >>> Running.of(Job(tp=2).layout(), 3).groups[0]
        RunningGroup(name='tp', kind='tp', ranks=(2, 3))
        """
        named = [(kind, _members(layout, kind, rank)) for kind in AXES]
        groups = (RunningGroup(kind, kind, ranks) for kind, ranks in named if len(ranks) > 1)
        return cls(layout.world_size, rank, tuple(groups))

    def layout(self, gpus_per_node: int = 8) -> Layout:
        """The layout that makes these groups, of a known framework if one does.

        gpus_per_node: the groups do not have it.

        Errors: LayoutError ``groups-no-layout`` if none makes them, ``groups-unnamed`` if their
        kinds are unknown.
        """
        return replace_machines(self._fit[0], gpus_per_node)

    @property
    def named(self) -> tuple[RunningGroup, ...]:
        """The groups; an unnamed one gets the name of its counterpart in the layout. Errors: as
        `layout`."""
        return self._fit[1]

    @cached_property
    def _fit(self) -> tuple[Layout, tuple[RunningGroup, ...]]:
        named = {one.kind: one for one in reversed(self.groups) if one.kind}
        if {*named} & {*AXES, "dp-shard", "dp-replicate", "dp-cp", "dp-shard-cp"}:
            layout = next(_fitting(self, named), None)
            if layout is None:
                kinds = ", ".join(f"{kind} {list(one.ranks)[:8]}" for kind, one in named.items())
                raise refusal("groups-no-layout", "groups", groups=kinds[:300])
            return layout, self.groups
        for framework, names, groups in _ways(self.groups):
            tried = dict(zip(names, groups))
            for layout in _fitting(self, tried, framework):
                known = {one: kind for kind, one in reversed(tried.items())}
                return layout, tuple(
                    one._replace(kind=one.kind or known.get(one)) for one in self.groups
                )
        if not self.groups or all(len(one.ranks) in (1, self.world) for one in self.groups):
            one = Job(nodes=1, gpus_per_node=self.world, framework=DATA_PARALLEL)
            return one.layout(), self.groups
        raise refusal("groups-unnamed", "groups", count=len(self.groups))

    def differences(self, meant: Layout) -> Iterator[Difference]:
        """Where the groups are not those of the intended layout, rank by rank.

        For this rank the reported groups are compared; for the others those of the layout that
        makes them, if there is one.

        Errors: LayoutError ``other-world`` for a layout of more or fewer GPUs.
        """
        if meant.world_size != self.world:
            raise refusal("other-world", "nodes", ran=self.world, meant=meant.world_size)
        layout: Layout | None = None
        with suppress(ValueError):
            layout = self._fit[0]
        experts = meant.has_experts or (layout is not None and layout.has_experts)
        axes = AXES if experts else AXES[:4]
        kinds = [kind for kind in axes if layout is None or _differ(layout, meant, kind)]
        own = {one.kind: tuple(sorted(one.ranks)) for one in self.named_or_not if one.kind}
        for rank in range(self.world) if layout else [self.rank]:
            for kind in dict.fromkeys([*kinds, *(own if rank == self.rank else ())]):
                ran = _members(layout, kind, rank) if layout else ()
                ran = own.get(kind, ran) if rank == self.rank else ran
                other = _members(meant, kind, rank)
                known = layout is not None or kind in own
                if known and kind in (*meant.every, *AXES) and _others(ran) != _others(other):
                    yield Difference(rank, kind, ran, other)

    @property
    def named_or_not(self) -> tuple[RunningGroup, ...]:
        with suppress(ValueError):
            return self.named
        return self.groups


def replace_machines(layout: Layout, gpus_per_node: int) -> Layout:
    """The same layout on nodes of ``gpus_per_node`` GPUs; on a single node if they do not divide
    its world."""
    world = layout.world_size
    count = whole_number(gpus_per_node, "gpus_per_node")
    nodes, each = (world // count, count) if world % count == 0 else (1, world)
    return replace(layout.job, nodes=nodes, gpus_per_node=each).layout()


def _others(ranks: tuple[int, ...]) -> tuple[int, ...]:
    """The other ranks of a group; a rank alone in its group counts as in none."""
    return ranks if len(ranks) > 1 else ()


def _members(layout: Layout, kind: str, rank: int) -> tuple[int, ...]:
    grouping = layout.kind(kind)
    return () if grouping is None else tuple(sorted(map(int, grouping.members(rank))))


def _differ(one: Layout, other: Layout, kind: str) -> bool:
    found = [layout.kind(kind) for layout in (one, other)]
    spreads = [() if grouping is None else grouping.spread for grouping in found]
    return spreads[0] != spreads[1]


# -- which layout --------------------------------------------------------------------------------

DATA_PARALLEL = "pytorch-ddp"
"""The framework of a job whose only group is that of all ranks."""
_MEGATRONS = ("megatron", "megatron-pp-dp")
_MESHES = ("device-mesh", "torchtitan")
_DEEPSPEEDS = ("deepspeed", "deepspeed-data-first")

_PIPE = ("mp", "dp", "pp", "tp")
_STAGE = ("tp", "cp", "dp")
_ORDERS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    (
        "vllm",
        (
            ("tp", "dcp", "cp", "pp", "dp", "ep", "eplb"),
            ("tp", "dcp", "cp", "pp", "dp", "ep"),
            ("tp", "dcp", "cp", "pp", "dp"),
            ("tp", "dcp", "pp", "dp", "ep"),
            ("tp", "pp", "dp", "ep"),
            ("tp", "pp", "dp"),
            ("tp", "pp"),
        ),
    ),
    (
        "deepspeed",
        ((*_PIPE, "ep", "edp"), (*_PIPE, "edp", "ep"), _PIPE, ("edp", "ep"), ("dp", "tp")),
    ),
)
"""The order in which frameworks create their unnamed groups, newer releases first; vLLM creates
each twice, for GPUs and for hosts."""


def _ways(
    groups: Sequence[RunningGroup],
) -> Iterator[tuple[str, tuple[str, ...], Sequence[RunningGroup]]]:
    """The possible meanings of unnamed groups: a framework, names, and the groups that have
    them."""
    unnamed = [one for one in groups if one.kind is None]
    pairs = list(zip(unnamed[::2], unnamed[1::2]))
    twice = len(unnamed) % 2 == 0 and all(one.ranks == other.ranks for one, other in pairs)
    for framework, orders in _ORDERS:
        if framework == "vllm":
            alone = [one for one, _ in pairs] if twice else []
            ways = [(names, alone[-len(names) :]) for names in orders]
            ways = [(names, found) for names, found in ways if len(found) == len(names)]
        else:
            starts = [(names, at) for names in orders for at in range(len(unnamed))]
            ways = [(names, unnamed[at : at + len(names)]) for names, at in starts]
        yield from ((framework, *way) for way in ways if len(way[0]) == len(way[1]))


def _fitting(
    running: Running, named: Mapping[str, RunningGroup], framework: str = ""
) -> Iterator[Layout]:
    """Layouts in which this rank is in these groups."""
    known = {kind: named[kind] for kind in AXES if kind in named}
    spreads = {kind: one.spread for kind, one in known.items()}
    if "dp" not in named and {"dp-shard", "dp-replicate"} <= {*named}:
        parts = [named[kind].spread or () for kind in ("dp-shard", "dp-replicate")]
        spreads["dp"] = _merged([run for part in parts for run in part])
    if len(named["dp-replicate"].ranks if "dp-replicate" in named else ()) > 1:
        spreads.pop("edp", None)  # torchtitan's edp is only one of its parts
    regular = {kind: spread for kind, spread in spreads.items() if spread is not None}
    if len(regular) < len(spreads):
        return
    sizes = {kind: _size(spread) for kind, spread in regular.items()}
    if framework == "vllm":
        engine, stage = (_size_of(sizes, *names) for names in (("tp", "cp", "pp", "dp"), _STAGE))
        if running.world % engine or sizes.pop("ep", stage) != stage:
            return
        regular.pop("ep", None)  # ep follows from the others
        if engine != running.world:
            regular.pop("dp", None)  # the others are engines of their own
    frameworks = {"vllm": ("vllm",), "deepspeed": _DEEPSPEEDS}.get(framework, _named_by(named))
    for layout in layouts_of(running.world, sizes, regular, running.world, frameworks):
        if framework and layout.framework not in frameworks:
            return
        held = [kind for kind in (*regular, "mp") if kind in named]
        if all(
            _members(layout, kind, running.rank) == tuple(sorted(named[kind].ranks))
            for kind in held
        ):
            yield layout


def _named_by(named: Mapping[str, RunningGroup]) -> tuple[str, ...]:
    # A DeviceMesh names its groups after its dims, Megatron by names of its own.
    mesh = any(one.name.startswith("mesh_") or one.name == one.kind for one in named.values())
    return _MESHES if mesh else _MEGATRONS


def _size(spread: Spread) -> int:
    size = 1
    for _, count in spread:
        size *= count
    return size


def _size_of(sizes: Mapping[str, int], *kinds: str) -> int:
    return _size(tuple((1, sizes.get(kind, 1)) for kind in kinds))


def _merged(runs: list[tuple[int, int]]) -> Spread:
    merged: list[tuple[int, int]] = []
    for stride, count in sorted(runs):
        if merged and merged[-1][0] * merged[-1][1] == stride:
            merged[-1] = (merged[-1][0], merged[-1][1] * count)
        else:
            merged.append((stride, count))
    return tuple(merged)


# -- reading -------------------------------------------------------------------------------------


def is_running(text: str) -> bool:
    """Whether a text is a trace, a ``pg_config`` or a DeviceMesh."""
    begins = text[:2_000_000]
    return "DeviceMesh(" in begins or _INFO in begins or _KEY.search(begins) is not None


def read_running(text: str) -> Running:
    """The groups of a text: a trace, a ``pg_config``, or a printed DeviceMesh.

    >>> read_running("DeviceMesh((dp=4, tp=2), 'cuda', stride=(2, 1))").groups[0]
    RunningGroup(name='tp', kind='tp', ranks=(0, 1))

    Errors: LayoutError as `read_process_groups` and `device_mesh.job_of_mesh`.
    """
    if _INFO not in text and "DeviceMesh(" in text and not _KEY.search(text):
        return Running.of(job_of_mesh(text).layout())
    return read_process_groups(text)


def read_process_groups(config: object) -> Running:
    """The groups of one rank, from a `pg_config` or a trace that holds one, as Python values or
    text.

    A text may be a whole trace, or its beginning up to the end of ``distributedInfo``.

    Errors: LayoutError ``no-process-groups`` for anything else.
    """
    found = _parsed(config) if isinstance(config, str) else config
    info: dict[str, object] = {}
    while isinstance(found, dict):
        info, found = found, found.get("distributedInfo", found.get("pg_config"))
    if not isinstance(found, list) or not found or len(found) > MOST_GROUPS:
        raise refusal("no-process-groups", "groups", value=quoted(str(config)[:80]))
    groups = [_group(one) for one in found]
    sizes = [size for _, size in groups] + [max(one.ranks, default=-1) + 1 for one, _ in groups]
    world = whole_number(info.get("world_size", max(sizes)), "world_size")
    inside = [one for one, _ in groups if one.kind != WORLD and one.ranks]
    held = [range(world), *(one.ranks for one in inside)]
    common = set(held[1]).intersection(*held) if inside else range(world)
    rank = info.get("rank", min(common, default=-1) if inside else 0)
    if not common or rank not in common:
        raise refusal("no-process-groups", "groups", value=quoted(str(config)[:80]))
    return Running(world, whole_number(rank, "rank", minimum=0), tuple(inside))


def layout_of_groups(config: object, gpus_per_node: int = 8) -> Layout:
    """The layout that makes the groups of a running rank, from its ``pg_config``.

    >>> ranks = [{"pg_name": "1", "pg_desc": "mesh_tp", "pg_size": 4, "ranks": [0, 1, 2, 3]}]
    >>> str(Layout.from_process_groups(ranks).mesh)
    'tp4-cp1-dp1-pp1'

    Errors: LayoutError as `read_process_groups` and `Running.layout`.
    """
    return read_process_groups(config).layout(gpus_per_node)


Layout.from_process_groups = staticmethod(layout_of_groups)


def _group(one: object) -> tuple[RunningGroup, int]:
    """A group from its entry, and the number of ranks that the entry reports."""
    fields = one if isinstance(one, dict) else {}
    ranks = fields.get("ranks")
    if not isinstance(ranks, list) or not all(type(rank) is int and rank >= 0 for rank in ranks):
        raise refusal("no-process-groups", "groups", value=quoted(str(one)[:80]))
    guid, name = str(fields.get("pg_name", "")), str(fields.get("pg_desc", ""))
    size = whole_number(fields.get("pg_size", fields.get("group_size", len(ranks))), "pg_size")
    kind = kind_of(name, guid) if ranks else WORLD
    return RunningGroup(name if name not in ("", "undefined") else guid, kind, tuple(ranks)), size


def _parsed(text: str) -> object:
    """The value of a text: JSON, JSON followed by more, or a printed Python value."""
    at = text.find(_INFO)
    start = text.find("{", at) if at >= 0 else len(text) - len(text.lstrip("\ufeff \t\r\n"))
    with suppress(ValueError, RecursionError):
        return json.JSONDecoder().raw_decode(text, start)[0]
    with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
        return ast.literal_eval(text.strip())
    return None
