"""The search: the time of every layout, then the memory of the fastest."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, islice, pairwise

import numpy as np

from groups.budget import spend
from groups.kept import kept

from ..estimate import Estimate, estimate_of
from ..estimate.memory import FITS, Fit, fit_of, room_of
from ..estimate.request import Request, require_numbers, require_times
from ..pipeline.figures import is_taken
from ..pipeline.spec import least_group
from ..split import Split
from .space import (
    ALTERNATING,
    SearchJob,
    copies,
    has_copies,
    recomputations,
    step_for,
    valid_splits,
)
from .timed import TimedLayout, Timer, software_for

MOST = 10
"""The number of layouts that a search returns."""

ROOM_OF_EXCHANGE = 0.88
"""The share of a GPU's memory that a layout may need if its all-to-all is hidden or HybridEP sends
it: their buffers stay allocated, as do those of the CUDA graphs of such runs
(NVIDIA-NeMo/Megatron-Bridge 067f987 perf_recipes, whose DeepSeek-V3 needs 243 of a GB300's 277.5
GiB)."""

MOST_TRIED = 600
"""The most layouts that are timed; of more a sample, spread evenly. With so many that some are left
out from the start, half as many if each is timed twice."""

MOST_ESTIMATES = 200
"""The most ways whose memory is computed."""

LAYOUT, ESTIMATE = 1_000, 900
"""Units of work (groups.budget) per layout timed with one kind of all-to-all (half for models that
are trained), and per estimate with its memory."""


@dataclass(frozen=True)
class SearchResult:
    """The result of a search: the best layouts, best first, and counts of the others.

    Attributes:
        best: layouts that more likely fit than not, close ones too, with the quickest that fits
            for certain; or, if there are none, the layouts that lack least memory.
        tried: layouts that were timed.
        ways: ways to train on them.
        too_large: layouts whose weights, optimizer state and activations do not fit in any way.
        complete: whether all valid layouts were tried, and all that might be among the best fit
            or not for certain.
        seconds: seconds of the quickest way of every layout that may fit, in ascending order.
        quickest: the same by the layout's sizes: tp, cp, pp, ep and etp.
    """

    best: tuple[Estimate, ...]
    tried: int
    ways: int
    too_large: int
    complete: bool
    seconds: tuple[float, ...]
    quickest: Mapping[tuple[int, ...], float]

    def place(self, seconds: float) -> int:
        """The rank of a time among all layouts, from 1."""
        return 1 + bisect_left(self.seconds, seconds * (1 - 1e-9))


@kept
def search(job: SearchJob, most: int = MOST) -> SearchResult:
    """The best layouts of a job.

    >>> from training.memory import Training
    >>> from training.models import MODELS
    >>> job = SearchJob(MODELS["llama3-8b"].model, Training(), global_batch=64, gpus=16,
    ...           gpus_per_node=8, cluster="dgx-h100")
    >>> answer = search(job)
    >>> best = answer.best[0]
    >>> best.request.split.tp, best.fits, best.seconds <= answer.best[1].seconds, answer.complete
    (1, True, True, True)

    Errors: LayoutError for numbers that the cluster does not multiply, and for too many layouts.
    """
    require_numbers(job.machine, job.training.products)
    require_times(job)
    step = step_for(job, 4 * MOST_TRIED)
    jobs = _jobs(job)
    splits = list(islice(valid_splits(jobs[0], step), 4 * MOST_TRIED))
    most_tried = MOST_TRIED if step == 1 else MOST_TRIED // len(jobs)
    chosen = splits[:: -(-len(splits) // most_tried) or 1]
    complete = step == 1 and len(chosen) == len(splits) < 4 * MOST_TRIED
    spend(LAYOUT * len(chosen) * len(jobs), "layouts")
    first = Timer(jobs[0]).timed(chosen)
    others = [layout for each in jobs[1:] for layout in _timed(each, first)]
    ways = _Ways(job, [*first, *others])
    usable = job.usable
    most_bytes = room_of(usable) if job.training.flash else usable
    may_fit = np.isfinite(ways.seconds) & (ways.bytes <= most_bytes)
    best, sure = ways.best(may_fit, most)
    shown = np.where(may_fit, ways.seconds, np.inf)
    starts = [start for start, end in pairwise(ways.starts) if start < end]
    quickest = np.minimum.reduceat(shown, np.array(starts, dtype=int))
    quickest = quickest.reshape(len(jobs), -1).min(axis=0)
    tried = (layout.split for layout in ways.timed[: len(chosen)] if layout.seconds.size)
    within = np.sort(quickest[np.isfinite(quickest)])
    return SearchResult(
        best=tuple(best),
        tried=len(chosen),
        ways=int(np.isfinite(ways.seconds).sum()),
        too_large=len(chosen) - len(within),
        complete=complete and sure,
        seconds=tuple(within.tolist()),
        quickest=dict(zip(map(sizes_of, tried), quickest.tolist())),
    )


def sizes_of(split: Split) -> tuple[int, ...]:
    """The sizes that identify a layout of a search."""
    return split.tp, split.cp, split.pp, split.ep, split.etp


def _timed(job: SearchJob, layouts: Sequence[TimedLayout]) -> Iterator[TimedLayout]:
    """The layouts under a job; those that do not hold its copies take for ever."""
    able = [layout.split for layout in layouts if has_copies(job, layout.split)]
    found = dict(zip(able, Timer(job).timed(able)))
    for layout in layouts:
        never = np.full_like(layout.seconds, np.inf)
        yield found.get(layout.split) or replace(layout, seconds=never)


def _jobs(job: SearchJob) -> tuple[SearchJob, ...]:
    """The job with each number of copies that is tried."""
    every = (replace(job.training, instances=number) for number in copies(job))
    return tuple(each for how in every for each in _overlapped(replace(job, training=how)))


def _overlapped(job: SearchJob) -> tuple[SearchJob, ...]:
    """The job and, where possible, a copy with the overlap of the experts' all-to-all switched."""
    is_free = "ep_overlap" not in job.fixed and job.training.schedule in ALTERNATING
    if not (is_free and job.model.experts and "ep" in job.expert):
        return (job,)
    other = replace(job.training, ep_overlap=not job.training.ep_overlap)
    return job, replace(job, training=other)


class _Ways:
    """All ways of all layouts in sequence; those of layout i start at ``starts[i]``."""

    def __init__(self, job: SearchJob, timed: Sequence[TimedLayout]) -> None:
        self.job, self.timed = job, timed
        self.starts = [*accumulate((layout.seconds.size for layout in timed), initial=0)]
        self.seconds = np.concatenate([np.zeros(0), *(layout.seconds.ravel() for layout in timed)])
        self.bytes = np.concatenate([np.zeros(0), *(layout.bytes.ravel() for layout in timed)])

    def best(self, may_fit: np.ndarray, most: int) -> tuple[list[Estimate], bool]:
        """The fastest layouts that fit, each once, and whether the search for them was complete.

        If none fits, the layouts that lack least memory. The search is cut short after
        MOST_ESTIMATES estimates.
        """
        order = np.flatnonzero(may_fit)
        order = order[np.argsort(self.seconds[order], kind="stable")]
        fitting, tries = self._estimates(order, most, self._may_fit)
        if fitting and all(one.verdict != FITS for one in fitting):
            sure, _ = self._estimates(order, 1, lambda request, fit: fit.verdict == FITS)
            fitting = [*fitting[: most - len(sure)], *sure]
        if not fitting:
            size = np.where(np.isfinite(self.seconds), self.bytes, np.inf)
            order = np.lexsort((self.seconds, size))[:MOST_ESTIMATES]
            order = order[np.isfinite(size[order])]
            every, _ = self._estimates(order, 4 * most, lambda request, fit: True)
            fitting = sorted(every, key=lambda e: (e.fit.needed, e.seconds))[:most]
        return fitting, tries < MOST_ESTIMATES

    def _estimates(
        self, order: np.ndarray, most: int, wanted: Callable[[Request, Fit], bool]
    ) -> tuple[list[Estimate], int]:
        """The first wanted ways in this order, one per layout, and the number tried."""
        estimates: dict[Split, Estimate] = {}
        tries = 0
        for at in order.tolist():
            layout, way = self._place(at)
            split = self.timed[layout].split
            if split in estimates:
                continue
            if len(estimates) == most or tries == MOST_ESTIMATES:
                break
            tries += 1
            spend(ESTIMATE, "layouts")
            request = _request(self.job, self.timed[layout], way)
            spec = request.training.pipeline(request.split)
            if is_taken(spec) and wanted(request, fit := fit_of(request)):
                estimates[split] = estimate_of(request, software_for(self.job.training), fit)
        return list(estimates.values()), tries

    def _may_fit(self, request: Request, fit: Fit) -> bool:
        has_buffers = request.training.ep_overlap or request.training.dispatcher == "hybridep"
        room = ROOM_OF_EXCHANGE * self.job.bytes_of_gpu if has_buffers else self.job.usable
        return fit.fits and fit.needed <= room

    def _place(self, at: int) -> tuple[int, int]:
        """The layout, and the index of the way in its arrays."""
        layout = bisect_right(self.starts, at) - 1
        return layout, at - self.starts[layout]


def _request(job: SearchJob, timed: TimedLayout, way: int) -> Request:
    """One way to train on a layout."""
    dealt, batch, again = np.unravel_index(way, timed.seconds.shape)
    dealing, size = timed.stages.dealings[dealt], timed.micro_batches[batch]
    split = replace(timed.split, vpp=dealing.vpp, account=dealing.account, spread=dealing.spread)
    training = replace(
        timed.training,
        micro_batch=size,
        micro_batches=job.global_batch // (size * split.dp),
        schedule=dealing.schedule,
        recompute=recomputations(job)[again],
    )
    if training.rule.grouped and training.group_size is None:
        group = least_group(split.pp, training.micro_batches)
        training = replace(training, group_size=group)
    return job.request(split, training)
