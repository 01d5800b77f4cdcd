"""The constants that turn work into seconds, by machine and by the software that ran on it.

They are in data/constants.json, written by `python -m benchmarks.fit_estimate` from public runs,
with what an estimate asks of these: that the two thousand runs are not read for each process.
A constant is the shared one, unless the GPU's family or the software has its own. Software:

    megatron   Megatron-LM, Megatron-Bridge and what is built like them: fused kernels, collectives
               that overlap where they can; what is taken unless the request says otherwise
    fsdp       kernels of PyTorch, as with ZeRO-2 and 3 there, unless the request has fused ones
    nanotron   jobs that the Ultra-Scale Playbook ran with it, in any layout: its host takes longer
               to launch a layer than the GPU to compute it, and its messages between stages stall
               for half a second where many nodes or a full memory get in their way
"""

from __future__ import annotations

import json
from functools import lru_cache
from math import log2
from pathlib import Path
from typing import TypedDict, cast

from groups.kept import kept

from ..model import Model
from ..parameters import total_parameters
from ..recipe import WIDE
from .request import Request

DATA = Path(__file__).parent / "data"

SOFTWARE = ("megatron", "fsdp", "nanotron")

SAME_JOB = 0.3, 1.0, 1.0
"""Doublings of parameters, GPUs and samples of a step up to which a job is one of nanotron's."""


class Fitted(TypedDict):
    """All results of the fit: constants, and the ratios measured / estimated at the ends of
    intervals.

    seen: the range of the runs with a step time, by GPU family, then "dense" or "moe": least and
    most active parameters, and most GPUs. jobs: nanotron's runs: parameters, GPUs, samples per
    step, and tokens of a sequence. Parameters and counts are in doublings (log2). pairs: both
    numbers of training.search.sure, of tuned software and of nanotron. orders: by how sure these
    are of an order (from, to), how many pairs there are and the share of them in that order.
    """

    shared: dict[str, float]
    families: dict[str, dict[str, float]]
    software: dict[str, dict[str, float]]
    spread: dict[str, list[float]]
    seen: dict[str, dict[str, list[float]]]
    jobs: list[list[float]]
    pairs: dict[str, list[float]]
    orders: dict[str, list[list[float]]]


@lru_cache(maxsize=1)
def fitted_constants() -> Fitted:
    """The content of data/constants.json."""
    return cast("Fitted", json.loads((DATA / "constants.json").read_text(encoding="utf-8")))


@lru_cache(maxsize=64)
def constants_of(family: str, software: str) -> dict[str, float]:
    """The constants of one GPU family (`Machine.family`) under one software; of GPUs of which no
    run was measured those that all families share.

    >>> 0.5 < constants_of("h100", "megatron")["share"] < 1.2
    True
    """
    constants = fitted_constants()
    of_software = constants["software"].get(software, {})
    return {**constants["shared"], **constants["families"].get(family, {}), **of_software}


@kept
def _is_job_of_nanotron(model: Model, gpus: int, global_batch: int) -> bool:
    here = (log2(total_parameters(model)), log2(gpus), log2(global_batch))
    return any(
        model.sequence == sequence
        and all(abs(a - b) <= most for a, b, most in zip(here, there, SAME_JOB))
        for *there, sequence in fitted_constants()["jobs"]
    )


def software_of(request: Request) -> str:
    """The software that public runs like this one most likely used."""
    training, model = request.training, request.model
    if training.is_eager:
        return "fsdp"
    is_plain = (
        request.machine.id == "dgx-h100"
        and training.products in WIDE
        and not model.experts
        and request.split.vpp == 1
        and request.split.cp == 1
        and training.recompute == "none"
        and training.flash
        and _is_job_of_nanotron(model, request.gpus, request.global_batch)
    )
    return "nanotron" if is_plain else "megatron"
