"""Fit the constants of training.estimate to public runs: `python -m benchmarks.fit_estimate`.

It writes constants.json and errors.csv of training/estimate/data. Every constant has a value that
physics or a source suggests and a width to it (SHARED, NANOTRON; widths in logarithms): the fit
moves it only as far as runs ask, by Gauss-Newton steps on errors of log seconds whose tails count
linearly. A group's runs weigh together as the 0.3th power of their number, so that no source with
many runs rules.

In turn: shared constants and those of GPU families from all but nanotron's runs; nanotron's own,
from those of its runs that did not stall; how often they stall; and how wide an interval must be,
from errors on sources that the fit has not seen.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from training.clusters import machine_of
from training.estimate.constants import DATA, constants_of, fitted_constants
from training.estimate.memory import fit_of
from training.estimate.request import Request, request_of
from training.estimate.runs import MeasuredRun, is_nanotron, runs
from training.estimate.seconds import decided, stall_seconds, stall_signs, step_seconds
from training.estimate.work import Work, work_of
from training.parameters import active_parameters, total_parameters

from . import fit_pairs
from .descent import descend
from .estimate import write
from .estimate_errors import answered

# value, width: how far (in logarithms) it may well be from the value
SHARED = {
    "share": (0.9, 0.07),  # of what the best of all products reaches (clusters: reached)
    "rows": (300.0, 0.5),  # tokens that cost as much as the product itself
    "width": (200.0, 0.5),
    "expert_share": (0.8, 0.3),  # grouped products, of share
    "attention_share": (0.45, 0.3),  # of the 16-bit peak; FlashAttention-2 and later
    "unfused_share": (0.4, 0.4),
    "older_attention": (0.55, 0.3),  # FlashAttention-2 on Hopper and later: arXiv:2407.08608
    "unaligned": (4.0, 0.5),  # times as long: heads whose width is no multiple of 8, unfused
    "length": (500.0, 0.7),  # tokens of a sequence at which attention takes twice as long
    "passes": (5.0, 0.4),  # over what is kept for the backward
    "eager_passes": (1.3, 0.3),  # of kernels that fuse less
    "cast_passes": (1.5, 0.3),  # with casts to 8 and 4 bits
    "route_passes": (1.5, 0.4),  # with tokens sorted by expert
    "score_passes": (3.0, 0.4),  # over scores that no kernel fuses
    "fp8_share": (0.85, 0.1),  # of share, of the 8-bit peak
    "fp4_share": (0.6, 0.25),
    "logit_passes": (4.0, 0.4),
    "nvlink_share": (0.75, 0.15),
    "nic_share": (0.75, 0.2),
    "hop_inside": (8e-6, 0.5),  # seconds
    "hop_outside": (2e-5, 0.5),
    "tp_exposed": (0.9, 0.15),
    "cp_exposed": (0.5, 0.5),
    "ep_exposed": (0.8, 0.3),
    "pp_exposed": (0.7, 0.3),
    "dp_exposed": (0.5, 0.5),  # of gradients and parameters with ZeRO-1 and 2
    "summed_exposed": (0.5, 0.5),  # of all-reduced gradients
    "fsdp_hidden": (0.9, 0.2),
    "launch": (1e-3, 0.5),  # seconds a layer, forward and backward
    "launch_routing": (1e-3, 0.7),  # a layer with experts, beside
    "launch_expert": (2e-4, 0.7),  # each of them on a rank
    "state_bytes": (36.0, 0.3),  # read and written by the optimizer, a parameter
    "clear_bytes": (8.0, 0.3),
    "step": (0.02, 0.5),  # seconds once a step
    "sum_apart": (3.8, 0.1),  # the same where gradients are summed beside nothing: by two batches
}
PER_FAMILY = ("share", "attention_share")
NANOTRON = {
    "share": (None, 0.15),
    "passes": (None, 0.3),
    "hop_outside": (None, 1.0),
    "nic_share": (0.6, 0.5),
    "tp_exposed": (1.0, 0.3),
    "pp_exposed": (1.0, 0.5),
    "dp_exposed": (1.0, 0.5),
    "summed_exposed": (0.5, 0.5),
    "step": (0.05, 0.7),
    "state_bytes": (None, 0.5),
    "clear_bytes": (None, 0.7),
    "launch": (1.5e-3, 0.5),
    "launch_tp": (4.5e-3, 0.5),
    "launch_rank": (5e-4, 0.5),
    "launch_pp": (6e-3, 0.5),
    "launch_pp_rank": (2.4e-3, 0.5),
    "launch_node": (0.25, 0.5),
}
STALL = {
    **{"stall": 0.5, "stall_alone": 1.2, "stall_many": 511.0, "stall_some": 255.0},
    **{"stall_wide": 31.0, "stall_full": 0.72},
}
"""Seconds of a stalled message, and of a micro-batch without stages: medians of what stalled runs
take longer, by stages (0.5 s with two, 0.75 with four, towards 1 with more). Beyond which GPUs it
is usual, and not rare; replicas, and fullness, beyond which it is common."""

UNSURE = {"M-LM table A100": 0.6, "M-LM table H100": 0.6}
"""What a run that does not count weighs: 0.25, and these tables of tuned layouts more."""


@dataclass(frozen=True)
class TimedRun:
    run: MeasuredRun
    asked: Request
    work: Work
    seconds: float

    @property
    def family(self) -> str:
        return self.asked.machine.family


Constants = dict[str, float]


def cases(wanted: Callable[[MeasuredRun], bool] = lambda run: True) -> list[TimedRun]:
    """The runs that ran and have a step time."""
    found = []
    for run in runs():
        if run.status == "ok" and run.seconds and wanted(run):
            asked = request_of(run.shape, run.arguments)
            found.append(TimedRun(run, asked, work_of(asked), run.seconds))
    return found


def log_errors(
    several: Iterable[TimedRun], constants: Callable[[TimedRun], Constants]
) -> np.ndarray:
    """log(estimated / measured) of each, stalls apart."""
    found = (
        sum(step_seconds(case.asked, case.work, constants(case)).values()) / case.seconds
        for case in several
    )
    return np.log(np.fromiter(found, float))


def fit_shared(
    several: Sequence[TimedRun], start: Mapping[str, float] | None = None
) -> tuple[Constants, dict[str, Constants], dict[str, float]]:
    """Constants for all, those of each family of GPUs, and the moves of all; start: the moves of
    another fit."""
    families = sorted({case.family for case in several})
    names = [*SHARED, *(f"{name} {family}" for name in PER_FAMILY for family in families)]
    widths = [SHARED[name.split()[0]][1] / (1 + (" " in name)) for name in names]
    counts = Counter(case.run.group for case in several)
    weights = np.array([_weight(case.run, counts[case.run.group]) for case in several])
    weights *= len(several) / weights.sum()

    def errors(moved: np.ndarray, these: np.ndarray | None) -> np.ndarray:
        constants = _by_family(*_constants(dict(zip(names, moved)), families))
        return log_errors(_some(several, these), constants)

    first = np.array([start.get(name, 0.0) for name in names]) if start else None
    moves = descend(errors, np.array(widths), weights, near=0.06, steps=12, start=first)
    moved = dict(zip(names, moves.tolist()))
    return (*_constants(moved, families), moved)


def _some(several: Sequence[TimedRun], these: np.ndarray | None) -> Iterable[TimedRun]:
    return several if these is None else (several[at] for at in these)


def _weight(run: MeasuredRun, number: int) -> float:
    sure = 1.0 if run.counts else UNSURE.get(run.group, 0.25)
    return sure / number**0.7


def _constants(
    moved: Mapping[str, float], families: Sequence[str]
) -> tuple[Constants, dict[str, Constants]]:
    shared = {name: SHARED[name][0] * math.exp(moved[name]) for name in SHARED}
    own = {
        family: {name: shared[name] * math.exp(moved[f"{name} {family}"]) for name in PER_FAMILY}
        for family in families
    }
    return shared, own


def fit_nanotron(
    several: Sequence[TimedRun], base: Constants, start: Constants | None = None
) -> Constants:
    """What nanotron's runs have of their own; runs far slower than all others do not count. start:
    constants of another fit."""
    starts = {name: base[name] if at is None else at for name, (at, _) in NANOTRON.items()}

    def own(moved: np.ndarray) -> Constants:
        return {name: at * math.exp(by) for (name, at), by in zip(starts.items(), moved)}

    def errors(moved: np.ndarray, these: np.ndarray | None) -> np.ndarray:
        constants = {**base, **own(moved)}
        return log_errors(_some(several, these), lambda case: constants)

    widths = np.array([width for _, width in NANOTRON.values()])
    first = np.log([start[name] / at for name, at in starts.items()]) if start else None
    found = descend(errors, widths, np.ones(len(several)), near=0.1, far=1.0, start=first)
    return own(found)


def fit_stalls(several: Sequence[TimedRun], constants: Constants) -> Constants:
    """How likely a run stalls, by logistic regression: of what `stall_seconds` looks at."""
    every = [stall_signs(case.asked, STALL, fullness(case)) for case in several]
    odds, signs = tuple(every[0]), np.array([list(each.values()) for each in every])
    stalled = np.array([_stalled(case, constants) for case in several], float)
    found = np.zeros(len(odds))
    for _ in range(30):
        share = 1 / (1 + np.exp(-signs @ found))
        square = signs.T @ ((share * (1 - share))[:, None] * signs) + np.eye(len(odds)) / 100
        found += np.linalg.solve(square, signs.T @ (stalled - share) - found / 100)
    return {**STALL, **dict(zip(odds, found.tolist()))}


def fullness(case: TimedRun) -> float:
    return fit_of(case.asked).needed / case.asked.machine.memory


def _stalled(case: TimedRun, constants: Constants) -> bool:
    """Whether a run takes longer by more than half of what stalls would add."""
    split = case.asked.split
    each = STALL["stall"] * 2 * (split.pp - 1) / split.pp or STALL["stall_alone"]
    slots = case.asked.training.micro_batches + split.pp - 1
    plain = sum(step_seconds(case.asked, case.work, constants).values())
    return case.seconds - plain > 0.55 * each * slots


def held_out(
    several: Sequence[TimedRun], key: Callable[[MeasuredRun], str], moved: Mapping[str, float]
) -> np.ndarray:
    """log(estimated / measured) with each key's runs left out of the fit in turn, which goes on
    from the moves of the fit to all."""
    found = np.zeros(len(several))
    for name in sorted({key(case.run) for case in several}):
        out = [key(case.run) == name for case in several]
        shared, own, _ = fit_shared([case for case, x in zip(several, out) if not x], moved)
        left = [case for case, x in zip(several, out) if x]
        found[np.array(out)] = log_errors(left, _by_family(shared, own))
    return found


def held_out_nanotron(
    several: Sequence[TimedRun], base: Constants, nanotron: Constants
) -> np.ndarray:
    """The same of nanotron's runs with each model left out in turn, stalls counted."""
    found = np.zeros(len(several))
    for name in sorted({case.run.model for case in several}):
        out = np.array([case.run.model == name for case in several])
        seen = [case for case, x in zip(several, out) if not x]
        own = fit_nanotron(seen, base, nanotron)
        constants = {**base, **own, **fit_stalls(seen, {**base, **own})}
        left = [case for case, x in zip(several, out) if x]
        found[out] = [math.log(_with_stalls(case, constants) / case.seconds) for case in left]
    return found


def _with_stalls(case: TimedRun, constants: Constants) -> float:
    more, share = stall_seconds(case.asked, constants, fullness(case))
    plain = sum(step_seconds(case.asked, case.work, constants).values())
    return plain + more * decided(share)


def _by_family(shared: Constants, own: Mapping[str, Constants]) -> Callable[[TimedRun], Constants]:
    merged = {family: {**shared, **mine} for family, mine in own.items()}
    return lambda case: merged.get(case.family, shared)


def kind_of(run: MeasuredRun) -> str:
    """The kind of source: Bridge's releases are one, MosaicML's tables are one."""
    return run.group if run.group.startswith(("M-LM", "NeMo")) else run.group.split()[0]


def family_of(run: MeasuredRun) -> str:
    return machine_of(run.arguments.cluster).family


def spreads(
    several: Sequence[TimedRun], by_table: np.ndarray, by_kind: np.ndarray
) -> dict[str, list[float]]:
    """Measured over estimated, where an interval ends, of dense models and of mixtures.

    The 5th and 95th percentile of the errors with each table, and with each kind of source, left
    out: of both the nearer one, for what is near is of a kind that the fit has seen.
    """
    found = {}
    for name, experts in (("dense", False), ("moe", True)):
        here = [case.run.counts and bool(case.asked.model.experts) == experts for case in several]
        lows, highs = zip(
            *(np.quantile(np.exp(-errors[here]), [0.05, 0.95]) for errors in (by_table, by_kind))
        )
        low, high = max(lows), min(highs)
        found[name] = [round(float(low), 3), round(float(high), 3)]
    return found


def spreads_of_unseen(several: Sequence[TimedRun], by_gpu: np.ndarray) -> dict[str, list[float]]:
    """Measured over estimated, where an interval ends on a GPU of which no run was measured: the
    5th and 95th percentile with each family of GPUs left out in turn, by that family's worst."""
    found = {}
    for name, experts in (("dense", False), ("moe", True)):
        ends = []
        for family in sorted({case.family for case in several}):
            here = [
                case.run.counts
                and case.family == family
                and bool(case.asked.model.experts) == experts
                for case in several
            ]
            if sum(here) >= SOME:
                ends.append(np.quantile(np.exp(-by_gpu[here]), [0.05, 0.95]))
        lows, highs = zip(*ends)
        found[f"unseen {name}"] = [round(float(min(lows)), 3), round(float(max(highs)), 3)]
    return found


SOME = 8
"""Runs of a family of GPUs that its own error needs."""


def rounded(constants: Constants) -> Constants:
    return {name: float(f"{value:.4g}") for name, value in constants.items()}


def everything() -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The content of constants.json, and errors on what the fit has not seen, by group of runs."""
    tuned = cases(lambda run: not is_nanotron(run))
    plain = cases(is_nanotron)
    shared, own, moved = fit_shared(tuned)
    base = {**shared, **own["h100"]}
    nanotron = fit_nanotron(plain, base)
    nanotron |= fit_stalls(plain, {**base, **nanotron})
    by_table, by_kind, by_gpu = (
        held_out(tuned, key, moved) for key in (lambda run: run.source, kind_of, family_of)
    )
    spread = spreads(tuned, by_table, by_kind) | spreads_of_unseen(tuned, by_gpu)
    errors = log_errors(plain, lambda case: {**base, **nanotron})
    ratios = np.exp(-errors[abs(errors) < 0.8])
    spread["nanotron"] = [round(float(x), 3) for x in np.quantile(ratios, [0.03, 0.97])]
    unseen = {"Playbook": held_out_nanotron(plain, base, nanotron)}
    for group in {case.run.group for case in tuned}:
        here = [case.run.group == group and case.run.counts for case in tuned]
        unseen[group] = by_kind[here]
    constants = {
        "shared": rounded(shared),
        "families": {family: rounded(mine) for family, mine in own.items()},
        "software": {"nanotron": rounded(nanotron)},
        "spread": spread,
        **told_of_runs(),
    }
    return constants, unseen


def told_of_runs() -> dict[str, Any]:
    """What an estimate asks of the runs themselves (training.estimate.constants.Fitted)."""
    seen: dict[str, dict[str, Any]] = {}
    jobs = set()
    for run in runs():
        of = run.arguments
        gpus = math.log2(of.gpus)
        if run.seconds:
            kinds = seen.setdefault(machine_of(of.cluster).family, {})
            active = math.log2(active_parameters(run.shape))
            kinds.setdefault("moe" if run.shape.experts else "dense", []).append([active, gpus])
        if is_nanotron(run):
            total, batch = math.log2(total_parameters(run.shape)), math.log2(of.global_batch)
            jobs.add((round(total, 4), gpus, batch, of.sequence))
    for kinds in seen.values():
        kinds |= {kind: _range(places) for kind, places in kinds.items()}
    return {"seen": seen, "jobs": [list(job) for job in sorted(jobs)]}


def _range(places: Sequence[Sequence[float]]) -> list[float]:
    """The least and most active parameters, and the most GPUs."""
    active, gpus = zip(*places)
    return [round(min(active), 4), round(max(active), 4), round(max(gpus), 4)]


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.fit_estimate", description=__doc__)
    found, unseen = everything()
    (DATA / "constants.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(found, indent=1))
    fitted_constants.cache_clear()
    constants_of.cache_clear()
    write(answered(run for run in runs() if run.counts), unseen)
    fit_pairs.write()


if __name__ == "__main__":
    main()
