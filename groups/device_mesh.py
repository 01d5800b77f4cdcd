"""The job of a torch DeviceMesh: from the mesh itself, or from the text that it prints.

A DeviceMesh is row-major: its last axis is the fastest. Nothing of torch is imported: a mesh is
whatever has ``mesh_dim_names`` and ``mesh``, the ranks in an array of that shape. torchtitan's and
accelerate's parallel dims end in one.

>>> text = "DeviceMesh((pp=2, dp_shard=2, tp=2), 'cuda', stride=(4, 2, 1))"
>>> [(axis.name, axis.size, axis.stride) for axis in read_device_mesh(text)]
[('pp', 2, 4), ('dp_shard', 2, 2), ('tp', 2, 1)]
>>> str(job_of_mesh(text).layout().mesh)
'tp2-cp1-dp2-pp2'

Texts: torch 2.13 as above; before torch 2.8 ``DeviceMesh('cuda', [[0, 1], [2, 3]],
mesh_dim_names=('dp', 'tp'))`` (torch/distributed/device_mesh.py, __repr__).
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import NamedTuple

import numpy as np

from .errors import LayoutError, quoted, refusal
from .frameworks import OWN
from .group_names import DIMS
from .grouping import Grouping
from .layout import Job, Layout
from .mesh import MAX_RANKS, too_many_ranks, whole_number

LONGEST = 20_000_000
"""The longest text of a mesh, in characters: a million ranks with commas."""

AXES = ("tp", "cp", "ep", "dp", "pp")

_TEXT = re.compile(r"DeviceMesh\((?P<axes>\([^()]*\)), '[^']*', stride=\((?P<strides>[\d, ]*)\)")
_AXIS = re.compile(r"\s*(?:(\w+)\s*=\s*)?(\d{1,9})\s*")
_RANKS = re.compile(r"DeviceMesh(?:\('[^']*', |:\()(?P<ranks>\[[\d\s,\[\]]*\])")
_NAMES = re.compile(r"mesh_dim_names=\((?P<names>[^()]*)\)")


class DeviceAxis(NamedTuple):
    """An axis of a mesh. stride: the distance in ranks between neighbours along it."""

    name: str
    size: int
    stride: int


def read_device_mesh(mesh: object) -> list[DeviceAxis]:
    """The axes of a DeviceMesh or of its text, slowest first.

    Errors: LayoutError ``no-device-mesh`` for anything else; ``mesh-not-regular`` unless every rank
    occurs once and each axis has a single stride.
    """
    if isinstance(mesh, str):
        return _of_text(mesh)
    ranks = getattr(mesh, "mesh", None)
    tolist = getattr(ranks, "tolist", None)
    if tolist is None:
        raise refusal("no-device-mesh", "mesh", value=quoted(type(mesh).__name__))
    return _of_ranks(np.asarray(tolist()), getattr(mesh, "mesh_dim_names", None) or ())


def _of_text(text: str) -> list[DeviceAxis]:
    if len(text) <= LONGEST and (found := _TEXT.search(text)):
        parts = [_AXIS.fullmatch(part) for part in found["axes"].strip("()").rstrip(",").split(",")]
        strides = [int(number[:9]) for number in re.findall(r"\d+", found["strides"])]
        if all(parts) and len(parts) == len(strides):
            named = [(part[1] or "", int(part[2])) for part in parts if part]
            axes = [DeviceAxis(name, size, step) for (name, size), step in zip(named, strides)]
            _require_whole(axes)
            return axes
    if len(text) <= LONGEST and (found := _RANKS.search(text)):
        names = _NAMES.search(text, found.end())
        try:
            ranks = np.array(ast.literal_eval(found["ranks"]))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            ranks = np.array(None)
        return _of_ranks(ranks, re.findall(r"\w+", names["names"]) if names else ())
    raise refusal("no-device-mesh", "mesh", value=quoted(text[:80]))


def _of_ranks(ranks: np.ndarray, names: Sequence[str]) -> list[DeviceAxis]:
    if ranks.dtype.kind not in "iu" or ranks.ndim == 0 or 0 in ranks.shape:
        raise refusal("no-device-mesh", "mesh", value=quoted(str(ranks)[:80]))
    steps = [int(np.take(ranks, 1, at).flat[0] - ranks.flat[0]) if size > 1 else 1
             for at, size in enumerate(ranks.shape)]  # fmt: skip
    named = [str(name) for name in names] or [""] * ranks.ndim
    axes = [DeviceAxis(name, size, step) for name, size, step in zip(named, ranks.shape, steps)]
    _require_whole(axes)
    if (_ranks_of(axes) != ranks.reshape(-1)).any():
        raise refusal("mesh-not-regular", "mesh", axes=_shown(axes))
    return axes


def _require_whole(axes: Sequence[DeviceAxis]) -> None:
    """Refuses strides with which the mesh does not hold every rank from 0 up exactly once."""
    if math.prod(axis.size for axis in axes) > MAX_RANKS:
        raise too_many_ranks(math.prod(axis.size for axis in axes), "mesh")
    step = 1
    for axis in sorted(axes, key=lambda axis: (axis.stride, axis.size)):
        if axis.size > 1 and axis.stride != step:
            raise refusal("mesh-not-regular", "mesh", axes=_shown(axes))
        step *= whole_number(axis.size, axis.name or "mesh")


def _ranks_of(axes: Sequence[DeviceAxis]) -> np.ndarray:
    ranks = np.zeros(1, dtype=np.int64)
    for axis in axes:
        ranks = np.add.outer(ranks, np.arange(axis.size) * axis.stride).reshape(-1)
    return ranks


def _shown(axes: Sequence[DeviceAxis]) -> str:
    return ", ".join(f"{axis.name or '?'} {axis.size} x {axis.stride}" for axis in axes)


# -- the job -------------------------------------------------------------------------------------


def job_of_mesh(mesh: object, gpus_per_node: int = 8, axes: Mapping[str, str] | None = None) -> Job:
    """The job whose layout makes the groups of a mesh.

    gpus_per_node: a mesh does not have it. axes: the role of each axis (tp, cp, ep, etp, dp or pp)
    by its name, for names that `group_names.DIMS` does not know; several axes may be dp.

    >>> text = "DeviceMesh((a=2, b=4), 'cuda', stride=(4, 1))"
    >>> str(job_of_mesh(text, axes={"a": "pp", "b": "tp"}).layout().mesh)
    'tp4-cp1-dp1-pp2'
    >>> Job.from_device_mesh("DeviceMesh((dp=4, tp=2), 'cuda', stride=(2, 1))").framework
    'device-mesh'

    Errors: LayoutError as `read_device_mesh`; ``mesh-axis-unknown`` for an axis of unknown role;
    ``mesh-no-layout`` if no order of a Job's axes makes these groups.
    """
    found = read_device_mesh(mesh)
    seen: dict[str, list[DeviceAxis]] = {}
    for axis in found:
        if axis.size > 1:
            seen.setdefault(_part_of(axis, axes or {}), []).append(axis)
    spreads = {kind: _joined(parts) for kind, parts in seen.items()}
    if "ep" in spreads and "dp" in spreads:  # dense layers are replicated over both
        spreads["edp"] = spreads.pop("dp")
    world = math.prod(axis.size for axis in found)
    sizes = {kind: math.prod(size for _, size in spread) for kind, spread in spreads.items()}
    layouts = layouts_of(world, sizes, spreads, gpus_per_node, ("device-mesh", "torchtitan"))
    layout = next(layouts, None)
    if layout is None:
        raise refusal("mesh-no-layout", "mesh", axes=_shown(found))
    return layout.job


Job.from_device_mesh = staticmethod(job_of_mesh)


def _part_of(axis: DeviceAxis, axes: Mapping[str, str]) -> str:
    kind = axes.get(axis.name) or DIMS.get(axis.name.lower(), "")
    part = "dp" if kind.startswith("dp") and kind != "dp-cp" else kind
    if part not in (*AXES, "etp", "edp"):
        name = axis.name or "?"
        raise refusal("mesh-axis-unknown", "mesh", name=quoted(name), size=axis.size)
    return part


Spread = tuple[tuple[int, int], ...]
"""(stride, ranks) of each run of steps within a group, fastest first; () for a single rank."""


def _joined(axes: Sequence[DeviceAxis]) -> Spread:
    runs: list[tuple[int, int]] = []
    for axis in sorted(axes, key=lambda axis: axis.stride):
        if runs and runs[-1][0] * runs[-1][1] == axis.stride:
            runs[-1] = (runs[-1][0], runs[-1][1] * axis.size)
        else:
            runs.append((axis.stride, axis.size))
    return tuple(runs)


# -- layouts that make such groups ---------------------------------------------------------------


def layouts_of(
    world: int,
    sizes: Mapping[str, int],
    spreads: Mapping[str, Spread],
    gpus_per_node: int,
    frameworks: Sequence[str],
) -> Iterator[Layout]:
    """Layouts of these sizes whose groups have these spreads: of the frameworks first, then of
    user-defined orders. spreads: those known of tp, cp, dp, pp, ep, etp and edp."""
    count = whole_number(gpus_per_node, "gpus_per_node")
    nodes, each = (world // count, count) if world % count == 0 else (1, world)
    tp, cp, pp, ep = (sizes.get(name, 1) for name in ("tp", "cp", "pp", "ep"))
    job = Job(nodes=nodes, gpus_per_node=each, tp=tp, pp=pp, cp=cp, ep=ep, etp=sizes.get("etp"))
    jobs = [replace(job, framework=name) for name in frameworks]
    orders = ["-".join(order) for order in permutations(AXES)]
    orders = [order for order in orders if _may_be(order, world, sizes, spreads)]
    jobs += [replace(job, framework=OWN, order=order) for order in orders]
    for job in jobs:
        try:
            layout = job.layout()
        except LayoutError:
            continue
        if all(_spread(layout.kind(kind)) == spread for kind, spread in spreads.items()):
            yield layout


def _spread(grouping: Grouping | None) -> Spread | None:
    return None if grouping is None else grouping.spread


def _may_be(
    order: str, world: int, sizes: Mapping[str, int], spreads: Mapping[str, Spread]
) -> bool:
    """Whether the dense axes of an order can have these spreads: a cheap test before the layout is
    built."""
    tp, cp, pp = (sizes.get(name, 1) for name in ("tp", "cp", "pp"))
    dp, rest = divmod(world, tp * cp * pp)
    step, of = 1, {"tp": tp, "cp": cp, "pp": pp, "dp": dp}
    for name in order.split("-"):
        if name in of:
            spread = ((step, of[name]),) if of[name] > 1 else ()
            if spreads.get(name, spread) != spread:
                return False
            step *= of[name]
    return not rest
