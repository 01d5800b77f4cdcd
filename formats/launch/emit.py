"""The options or the file that ask a framework for a layout.

A framework can say a job if it numbers the ranks alike: `emit` makes the job that the framework
would make and compares the meshes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.conventions import CONVENTIONS, MEGATRONS
from groups.errors import LayoutError, not_a_choice, quoted
from groups.job import Job
from groups.layout import Layout
from groups.mesh import Mesh

from .flags import MODEL
from .writers import TARGETS, Target, cannot_express

SILENT = {"levels": None, "hybrid": False}
"""What asks for nothing; of a size that is 1."""


def emit(job: Job, model: Mapping[str, Any] | None = None, framework: str = "megatron") -> str:
    """The text that asks for a job, one option a line; `parse` reads it back.

    model: fields of `flags.MODEL`; what a framework does not take from its options, such as
    torchtitan its layers, stands in a comment. Options that a run needs besides are left out: data,
    addresses. Where a recipe is needed, one is named; put your own there.

    >>> print(emit(Job(nodes=2, tp=4, pp=2), {"layers": 32}))
    torchrun \\
      --nnodes 2 \\
      --nproc-per-node 8 \\
      pretrain_gpt.py \\
      --tensor-model-parallel-size 4 \\
      --pipeline-model-parallel-size 2 \\
      --context-parallel-size 1 \\
      --expert-model-parallel-size 1 \\
      --num-layers 32

    Errors: LayoutError if the job cannot be, if the framework is none of TARGETS, or if it cannot
    say the job ("framework-cannot-express").
    """
    if framework not in TARGETS:
        raise not_a_choice("framework", framework, TARGETS)
    target = TARGETS[framework]
    given = _given(model or {})
    written, said = target.written(_as_made(job, target), given)
    unsaid = [name for name in MODEL if name in given and name not in said]
    if not unsaid:
        return written
    listed = ", ".join(f"{name} {quoted(given[name])}" for name in unsaid)
    return f"# {target.name} has no option for {listed}\n{written}"


def _given(model: Mapping[str, Any]) -> dict[str, Any]:
    """What the model says: 0 is a number, but None, False and an empty text say nothing."""
    return {
        name: value for name, value in model.items() if value or (value == 0 and value is not False)
    }


def _as_made(job: Job, target: Target) -> Job:
    """The same layout as a job of a framework that the target makes."""
    layout = job.layout()
    for name in target.unsaid:
        value = getattr(job, name)
        silent = (None, job.tp) if name == "etp" else (SILENT.get(name, 1),)
        if value not in silent and value != ():
            raise cannot_express(target.name, f"{name} {_shown(value)}", name)
    last: LayoutError | None = None
    differs = False  # in the experts only
    for framework in sorted(target.frameworks, key=lambda name: name != job.framework):
        other = replace(job, framework=framework, etp=_etp(job, layout, framework))
        try:
            found = other.layout()
        except LayoutError as error:
            last = error
            continue
        if _above_one(layout.mesh) != _above_one(found.mesh):
            continue
        if _experts_alike(layout, found, job):
            return other
        differs = True
    if last is not None and last.control in ("cp", "ep", "etp", "pp"):
        control = last.control
        raise cannot_express(target.name, f"{control} {_shown(getattr(job, control))}", control)
    if differs and layout.expert is not None:
        raise cannot_express(target.name, f"etp {job.tp if job.etp is None else job.etp}", "etp")
    order = job.order if job.framework not in CONVENTIONS else CONVENTIONS[job.framework].order
    raise cannot_express(target.name, f"the order {order}", "order")


def _etp(job: Job, layout: Layout, framework: str) -> int | None:
    """The expert tensor parallel size, in a framework that may mean another one by none."""
    if framework not in MEGATRONS:
        return None if job.ep == 1 else job.etp if job.framework in MEGATRONS else None
    if job.framework in MEGATRONS or layout.expert is None or job.ep == 1:
        return job.etp
    size = layout.expert.size("etp" if "etp" in layout.expert.names else "tp")
    return None if size == job.tp else size


def _experts_alike(one: Layout, other: Layout, job: Job) -> bool:
    """Whether both spread the experts alike, if there are any."""
    if job.ep == 1 and job.etp in (None, job.tp):
        return True
    if one.expert is None or other.expert is None:
        return one.expert is other.expert
    return _above_one(one.expert) == _above_one(other.expert)


def _above_one(mesh: Mesh) -> list[tuple[str, int]]:
    """What numbers the ranks: the axes above 1, in their order."""
    return [(axis.name, axis.size) for axis in mesh.axes if axis.size > 1]


def _shown(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)
