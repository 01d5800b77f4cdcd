"""The next things to do about a hang, as commands to copy: look at the process, at its host, and
switch the recorder on.

Hosts come from the evidence, so that every word of a command is quoted.

>>> from formats.logs import read_log
>>> from diagnosis.hang.case import case_of
>>> from groups.layout import Job
>>> group = "PG ID 2 PG GUID 41(TENSOR_MODEL_PARALLEL_GROUP)"
>>> log = read_log("\\n".join(f"[rank{rank}]: [{group} Rank {rank - 4}] Timeout at NCCL work: 7"
...                          for rank in (4, 6, 7)))
>>> steps = next_steps(case_of(log, Job(nodes=2, tp=4).layout()))
>>> [step.note.code for step in steps]
['step-stacks', 'step-host', 'step-recorder', 'step-share']
>>> print(steps[-1].command)
python -m groups share dumps --nodes 2 --tp 4
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from groups.frameworks import OWN
from groups.layout import Job
from groups.notes import Note
from groups.program import PROGRAM

from ..next_step import STACKS, NextStep, at
from ..values import Document
from .account import place_of
from .case import Case

MOST_RANKS = 4
"""The most GPUs whose processes are looked at, and the most hosts."""

_HOST = "nvidia-smi{device}; dmesg -T | grep -iE 'NVRM|Xid|nvlink|mlx5|oom' | tail -n 40"

FOLDER = "dumps"

RECORDER = f"""\
mkdir -p {FOLDER}
export TORCH_NCCL_DUMP_ON_TIMEOUT=1
export TORCH_FR_BUFFER_SIZE=20000 TORCH_NCCL_TRACE_BUFFER_SIZE=20000
export TORCH_FR_DUMP_TEMP_FILE="$PWD/{FOLDER}/nccl_trace_rank_"
export TORCH_NCCL_DEBUG_INFO_TEMP_FILE="$TORCH_FR_DUMP_TEMP_FILE\""""
"""NCCL's names are those before PyTorch 2.9 (torch/csrc/distributed/c10d/FlightRecorder.hpp)."""


def next_steps(case: Case) -> tuple[NextStep, ...]:
    """The things to do, in order; empty if the evidence shows no hang."""
    log, diagnosis = case.log, case.log.diagnosis
    if diagnosis.reason == "none" and not log.missing and (log.dumped or not log.spoke):
        return ()
    return (*_looks(case), *_recording(case))


def share_command(job: Job | None, *words: str) -> str:
    """The command that reads folders, with the options of a job; words: what it reads.

    >>> share_command(Job(nodes=2, tp=4, framework="deepspeed"), "my dumps")
    "python -m groups share 'my dumps' --nodes 2 --tp 4 --framework deepspeed"
    """
    start, options = Job(), []
    for name in (*_SIZES, "order" if job and job.framework == OWN else "framework"):
        value = getattr(job or start, name)
        if value is not None and value != getattr(start, name):
            options += [f"--{name.replace('_', '-')}", str(value)]
    return f"{PROGRAM} {shlex.join(['share', *words, *options])}"


_SIZES = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp")


def _looks(case: Case) -> Iterator[NextStep]:
    """Commands for the named processes, and for hosts: theirs, or those of an operation in which
    all have arrived."""
    log, diagnosis = case.log, case.log.diagnosis
    named = diagnosis.culprits or log.missing or diagnosis.suspects
    first = diagnosis.first
    ranks = named or (first.waiting if first and diagnosis.reason == "all-arrived" else ())
    per_node = case.layout.gpus_per_node if case.every else None
    places = {rank: place_of(log, rank, per_node, case.placement) for rank in ranks}
    machines: dict[tuple[object, object], list[int]] = defaultdict(list)
    for rank, place in places.items():
        machines[place["host"], place["node"]].append(rank)
    for rank in named[:MOST_RANKS]:
        place = places[rank]
        note = Note("step-stacks", {"rank": rank, **place})
        yield NextStep(note, at(place["host"], STACKS.format(rank=rank, verb="dump --native")))
    for (host, node), inside in [*machines.items()][:MOST_RANKS]:
        device = places[inside[0]]["device"] if len(inside) == 1 else None
        facts = {"ranks": tuple(inside), "host": host, "node": node, "device": device}
        script = _HOST.format(device="" if device is None else f" -i {device}")
        yield NextStep(Note("step-host", facts), at(host, script))


def _recording(case: Case) -> Iterator[NextStep]:
    """The recorder for the next start; with dumps only how to read more of them."""
    if not case.log.dumped:
        yield NextStep(Note("step-recorder"), RECORDER)
    if not case.log.dumped or case.log.diagnosis.without_dump:
        yield NextStep(Note("step-share"), share_command(_job(case), FOLDER))


def _job(case: Case) -> Job | None:
    """The job of the evidence, None if no layout fits it."""
    if case.contradiction is None:
        return case.layout.job
    if not case.fitting:
        return None
    fit: Document = {**case.fitting[0]}
    if "order" in fit:
        fit["framework"] = OWN
    return replace(case.layout.job, **fit)
