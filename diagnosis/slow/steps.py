"""The next things to do about a slow step, as commands to copy: by who is slow and what it does.

Hosts come from the evidence, so that every word of a command is quoted.

>>> slow = Slowness(8, (1, 2), (), (), (), (), (), calls=0, unmatched=0, clocks_us=0.0)
>>> late = Culprit("rank", (3,), 3, DATA, excess_us=2e5, share=0.2, steps=2)
>>> [step.note.code for step in next_steps(slow, late)]
['step-loader', 'step-again']
>>> [step.note.code for step in next_steps(slow, Culprit("nobody", steps=2))]
['step-nobody', 'step-again']
"""

from __future__ import annotations

from collections.abc import Iterator

from groups.layout import Layout
from groups.notes import Note
from groups.program import PROGRAM

from ..next_step import STACKS, NextStep, at
from .model import COMPUTATION, DATA, OWN, TRANSFER, Slowness
from .verdict import Culprit, nodes_of

MOST_HOSTS = 2
"""The most machines and processes to look at: one law holds for the others."""

CLOCKS = (
    "nvidia-smi{device} -q -d CLOCK,PERFORMANCE,TEMPERATURE,POWER; dmesg -T | grep -iE 'NVRM|Xid'"
)
LOADER = STACKS.format(rank="{rank}", verb="dump --subprocesses") + "; iostat -xm 5 2"
WORK = STACKS.format(
    rank="{rank}", verb="record --native -d 30 -f speedscope -o rank{rank}.speedscope.json"
)
LINKS = "nvidia-smi nvlink -e; ibstat; all_reduce_perf -b 1M -e 1G -f 4 -g {gpus}"
"""all_reduce_perf: NVIDIA/nccl-tests; its bandwidth stands beside that of another machine."""

AGAIN = f"{PROGRAM} trace FOLDER --format json > summary.json"
KERNELS = "torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])"


def next_steps(
    slow: Slowness, verdict: Culprit, layout: Layout | None = None
) -> tuple[NextStep, ...]:
    """The things to do, in order; at the end always to record again, so that both can be
    compared."""
    return (*_looks(slow, verdict, layout), *_recording(slow))


def _looks(slow: Slowness, verdict: Culprit, layout: Layout | None) -> Iterator[NextStep]:
    if verdict.kind in ("nobody", "unknown"):
        yield NextStep(Note(f"step-{verdict.kind}"))
        return
    if verdict.kind == "stage":
        yield NextStep(Note("step-stage", {"index": verdict.index}))
    codes: dict[str, list[str]] = {
        DATA: ["step-loader"],
        COMPUTATION: ["step-clocks"],
        TRANSFER: ["step-links"],
    }
    named = codes.get(verdict.cause, ["step-work"])
    if verdict.cause == OWN and "no-kernels" in slow.notes:
        named.insert(0, "step-clocks")  # without kernels a slow GPU is own work too
    for code in named:
        yield from _on_machines(code, slow, verdict, layout)


def _on_machines(
    code: str, slow: Slowness, verdict: Culprit, layout: Layout | None
) -> Iterator[NextStep]:
    """A step for each of the first machines of the slow ranks, by the first such rank on it."""
    scripts = {"step-loader": LOADER, "step-clocks": CLOCKS, "step-links": LINKS}
    nodes = nodes_of(slow, layout)
    per_node = layout.gpus_per_node if layout is not None else max(1, slow.world or 1)
    machines: dict[tuple[int, str], list[int]] = {}
    for rank in verdict.ranks:
        machines.setdefault(nodes.get(rank, (0, "")), []).append(rank)
    for (_, host), ranks in [*machines.items()][:MOST_HOSTS]:
        device = f" -i {ranks[0] % per_node}" if len(ranks) == 1 else ""
        script = scripts.get(code, WORK).format(rank=ranks[0], device=device, gpus=per_node)
        facts = {"ranks": tuple(ranks), "rank": ranks[0], "host": host}
        yield NextStep(Note(code, facts), at(host or None, script))


def _recording(slow: Slowness) -> Iterator[NextStep]:
    if "no-kernels" in slow.notes:
        yield NextStep(Note("step-kernels"), KERNELS)
    yield NextStep(Note("step-again"), AGAIN)
