"""Layouts for a model on a cluster: all that are valid, the best by a stated, simple cost first.

    cost    seconds of a step = computation + idle + exposed, lower bounds all of them
            computation   what training.traffic says, on the stage with most layers
            idle          computation * idle time of the schedule / its ideal time
            exposed       what of the transfers no computation hides (training.traffic), added up
    fits    the fullest rank's memory is within that of a GPU (training.memory)

A layout that fits comes before any that does not. What is tried: every tp up to an NVLink domain,
every cp that leaves a rank LEAST_TOKENS of a sequence, every pp, ep, and etp 1 or tp, with dp and
edp what remains; each must divide its part of the model, and micro-batch x dp the global batch.

Not counted: latency, so many small messages look cheap; that kernels slow down on small pieces of
work; links shared by several groups at once; the optimizer's own time; uneven routing; memory that
frameworks and fragments take. So it sorts out what cannot be good; which of the first few is best,
only a run tells.

Not all are worked out to the end. A bound from below (computation, idle time, tp and ep at the
speed of NVLink; weights and optimizer state spread evenly) puts them in order, and once the best so
many are cheaper than the next bound, no later one can be among them. A search has its own part of
a request's budget (groups.budget), PATIENCE: past it the best of what was tried is the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from math import gcd

from groups.alternatives import divisors
from groups.budget import spend
from groups.errors import LayoutError
from groups.grouping import Grouping
from groups.mesh import Axis, Mesh

from .clusters import Cluster
from .memory.per_stage import PRECISIONS, Training, largest, memory_per_stage
from .model import Model
from .parameters import parameters_by_kind
from .pipeline.closed import closed_form
from .pipeline.in_flight import way_of
from .split import Split
from .traffic.demands import OVERLAPPING
from .traffic.per_step import Computation, computation, exposed_by_kind, most_layers, traffic

LEAST_TOKENS = 2048
"""Tokens of a sequence that cp leaves a rank: below, kernels are short of work."""

MOST = 10
"""Layouts that a search returns."""

PATIENCE = 500_000
"""Units of work (groups.budget) of one search: enough for all layouts of a thousand GPUs."""

BOUND, WORKED_OUT, STAGE = 60, 800, 40
"""Units that a layout's bounds cost, its numbers, and those of each of its stages."""

MOST_TRIED = 4_000
"""Valid layouts whose bounds are worked out: half of PATIENCE."""

MOST_SIZES = 100_000
"""Sizes that are looked at for valid ones, of all that there are as many, spread evenly."""


@dataclass(frozen=True)
class SearchJob:
    """What stays the same for all layouts of a search.

    dense, expert: the orders of the two grids' axes, fastest first; no expert: no such grid.
    """

    model: Model
    training: Training  # its micro_batches are worked out for each layout
    global_batch: int
    world: int
    gpus_per_node: int
    cluster: Cluster
    capacity: float  # bytes of one GPU
    vpp: int = 1
    cp_algorithm: str = "p2p"
    dense: tuple[str, ...] = ("tp", "cp", "dp", "pp")
    expert: tuple[str, ...] = ("etp", "ep", "edp", "pp")

    @property
    def domain(self) -> int:
        """GPUs that NVLink joins."""
        return self.cluster.domain_of(self.gpus_per_node)


@dataclass(frozen=True)
class Candidate:
    """A layout with its numbers; seconds and bytes."""

    split: Split
    training: Training
    memory: float  # of a rank of the fullest stage
    stage: int  # the fullest
    compute: float
    idle: float
    exposed: float
    by_kind: tuple[tuple[str, float], ...]  # exposed seconds of each kind, the longest first
    across: float  # bytes of all ranks that leave NVLink domains

    @property
    def seconds(self) -> float:
        """The cost: lower bound on a step."""
        return self.compute + self.idle + self.exposed

    @property
    def sizes(self) -> dict[str, int]:
        """Sizes by axis, as a page's controls have them."""
        names = ("tp", "cp", "pp", "ep", "etp", "dp", "edp", "vpp")
        return {name: getattr(self.split, name) for name in names}


@dataclass(frozen=True)
class SearchResult:
    """What a search found: the best, best first, and what became of the others.

    Attributes:
        best: those that fit; or, if none does, those that lack least memory.
        tried: valid layouts.
        too_large: of them, those whose weights and optimizer state alone do not fit, on average.
        worked_out: of the others, those whose numbers were worked out to the end.
        complete: whether no layout that was not worked out can be among the best.
    """

    best: tuple[Candidate, ...]
    tried: int
    too_large: int
    worked_out: int
    complete: bool


@lru_cache(maxsize=32)
def search(job: SearchJob, most: int = MOST) -> SearchResult:
    """The best layouts of a job.

    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> job = SearchJob(MODELS["llama3-8b"].model, Training(), global_batch=64, world=16,
    ...           gpus_per_node=8, cluster=CLUSTERS["dgx-h100"], capacity=80e9)
    >>> found = search(job)
    >>> found.best[0].split.tp, found.best[0].memory < 80e9, found.complete
    (1, True, True)
    """
    splits = list(islice(valid_splits(job, MOST_SIZES), MOST_TRIED + 1))
    complete = len(splits) <= MOST_TRIED and _step(job, MOST_SIZES) == 1
    splits = splits[:MOST_TRIED]
    left = PATIENCE - BOUND * len(splits)
    spend(BOUND * len(splits), "layouts")
    bounds = sorted(
        (
            (least_memory(job, split) > job.capacity, least_seconds(job, split), number)
            for number, split in enumerate(splits)
        )
    )
    too_large = sum(is_large for is_large, _, _ in bounds)
    kept: list[Candidate] = []
    worked_out = 0
    for is_large, bound, number in bounds:
        fitting = [one for one in kept if one.memory <= job.capacity]
        enough = len(fitting) >= most and fitting[most - 1].seconds <= bound
        if enough or (is_large and fitting):
            break
        units = WORKED_OUT + STAGE * splits[number].pp
        if units > left:
            complete = False
            continue  # one with fewer stages may still be worked out
        left -= units
        spend(units, "layouts")
        one = _candidate(job, splits[number], bool(fitting))
        worked_out += 1
        if one is not None:
            kept = sorted([*kept, one], key=lambda c: _place(job, c))[: 4 * most]
    fitting = [one for one in kept if one.memory <= job.capacity]
    return SearchResult(
        tuple((fitting or kept)[:most]), len(splits), too_large, worked_out, complete
    )


def _place(job: SearchJob, one: Candidate) -> tuple[float, float, float]:
    """By what layouts are put in order: what lacks memory last, then seconds, then bytes."""
    return max(0.0, one.memory - job.capacity), one.seconds, one.across


def _candidate(job: SearchJob, split: Split, must_fit: bool) -> Candidate | None:
    """One layout worked out; None if the schedule refuses it, or if it must fit and does not."""
    try:
        return evaluate(job, split, job.capacity if must_fit else None)
    except LayoutError:
        return None


def evaluate(job: SearchJob, split: Split, most: float | None = None) -> Candidate | None:
    """One layout's numbers; None if they are asked for only up to so many bytes.

    Errors: LayoutError for a layout that the model, the batch or the schedule does not allow.
    """
    training = _training(job, split)
    memory = memory_per_stage(job.model, split, training)
    fullest = largest(memory)
    if most is not None and fullest.total > most:
        return None
    split = replace(split, way=way_of(training.schedule))
    stages = [one.parameters for one in memory]
    rows = traffic(
        job.model,
        split,
        training,
        _groups(job, split),
        job.cluster,
        job.gpus_per_node,
        job.cp_algorithm,
        stages,
    )
    layers = most_layers(stages, split)
    time = computation(job.model, split, training, layers, job.cluster.peak)
    by_kind = exposed_by_kind(rows)
    return Candidate(
        split=split,
        training=training,
        memory=fullest.total,
        stage=fullest.stage,
        compute=time.step,
        idle=idle_seconds(split, training, time),
        exposed=sum(by_kind.values()),
        by_kind=tuple(by_kind.items()),
        across=sum(row.across for row in rows),
    )


def idle_seconds(split: Split, training: Training, time: Computation) -> float:
    """Idle time of a step by the schedule's closed form, with a backward of two forwards."""
    p, m = split.pp, training.micro_batches
    form = closed_form(training.schedule, p, m, split.vpp) if p > 1 else None
    return time.step * form.idle / (3 * m) if form else 0.0


# -- what is valid -------------------------------------------------------------------------------


def valid_splits(job: SearchJob, most: int | None = None) -> Iterator[Split]:
    """Every layout that divides the world, the model and the batch.

    most: sizes that are looked at; of more than these some, spread evenly.
    """
    number, step = 0, _step(job, most)
    for tp, contexts, stages in _sizes(job):
        count = len(contexts) * len(stages)
        for at in range(number, count, step):
            cp, pp = contexts[at // len(stages)], stages[at % len(stages)]
            yield from _with_experts(job, tp, cp, pp)
        number = (number - count) % step if number < count else number - count


def _step(job: SearchJob, most: int | None) -> int:
    """Of all sizes of tp, cp and pp, every how many are looked at: one for each of an ep is too."""
    sizes = [(len(contexts), len(stages)) for _, contexts, stages in _sizes(job)]
    total = sum(contexts * stages for contexts, stages in sizes)
    total *= 2 * len(divisors(job.model.experts)) if job.model.experts else 1
    step = 1 if most is None else max(1, -(-total // most))
    # No multiple of a row's length, which would meet the same pp in each row.
    while step > 1 and any(gcd(step, stages) > 1 for _, stages in sizes):
        step += 1
    return step


def _sizes(job: SearchJob) -> Iterator[tuple[int, list[int], list[int]]]:
    """Every tp that divides the model, with the sizes of cp and of pp that it can go with."""
    model, domain = job.model, job.domain
    heads = model.heads if model.is_mla else model.kv_heads
    for tp in divisors(job.world if "tp" in job.dense else 1):
        widths = [heads, model.ffn, model.shared_expert_ffn]
        if tp > domain or any(width % tp for width in widths):
            continue
        stages = divisors(job.world // tp if "pp" in job.dense else 1)
        yield tp, _context_sizes(job, tp), [pp for pp in stages if pp <= model.layers]


def _with_experts(job: SearchJob, tp: int, cp: int, pp: int) -> Iterator[Split]:
    """The layouts of these sizes, if they divide the world and the batch."""
    rest, remainder = divmod(job.world, tp * cp * pp)
    if remainder or job.global_batch % (job.training.micro_batch * rest):
        return
    if rest > 1 and "dp" not in job.dense:
        return
    for ep, etp in _expert_sizes(job, tp, tp * cp * rest):
        if _pipelines_agree(job, rest, tp * cp * rest // (ep * etp)):
            split = Split(tp=tp, cp=cp, pp=pp, dp=rest, ep=ep, etp=etp)
            yield _dealt(job.model, split, job.vpp)


def _context_sizes(job: SearchJob, tp: int) -> list[int]:
    sequence = job.model.sequence
    return [
        cp
        for cp in divisors(job.world // tp if "cp" in job.dense else 1)
        if cp == 1
        or (
            sequence % (2 * cp) == 0
            and sequence % (cp * tp) == 0
            and sequence // cp >= LEAST_TOKENS
            and (job.cp_algorithm != "a2a" or job.model.heads // tp % cp == 0)
        )
    ]


def _expert_sizes(job: SearchJob, tp: int, stage: int) -> list[tuple[int, int]]:
    """Sizes of ep and etp for the ranks of one stage; experts on one rank without experts."""
    model = job.model
    if not model.experts or "ep" not in job.expert:
        return [(1, tp)]
    return [
        (ep, etp)
        for ep in divisors(model.experts)
        for etp in sorted({1, tp})
        if stage % (ep * etp) == 0 and model.expert_ffn % etp == 0
    ]


def _pipelines_agree(job: SearchJob, dp: int, edp: int) -> bool:
    """Megatron cuts both grids into the same pipelines: pp last, or dp and edp alike."""
    return job.dense[-1] == "pp" or not job.model.experts or dp == edp


def _dealt(model: Model, split: Split, vpp: int) -> Split:
    """With vpp chunks where layers divide by them; else one layer more on some stages."""
    if split.pp > 1 and vpp > 1 and model.layers % (split.pp * vpp) == 0:
        return replace(split, vpp=vpp)
    return split if model.layers % split.pp == 0 else replace(split, spread="nearly")


def _training(job: SearchJob, split: Split) -> Training:
    """The training with this layout's micro-batches; without chunks nothing interleaves."""
    loops = ("interleaved", "bfs")
    schedule = job.training.schedule
    if schedule in loops and split.vpp == 1:
        schedule = "1f1b"
    elif schedule == "1f1b" and split.vpp > 1:
        schedule = "interleaved"
    m = job.global_batch // (job.training.micro_batch * split.dp)
    return replace(job.training, micro_batches=m, schedule=schedule)


# -- groups and bounds ---------------------------------------------------------------------------


def _groups(job: SearchJob, split: Split) -> Mapping[str, Grouping]:
    """The groups that carry anything, of a layout in the job's orders."""
    found: dict[str, Grouping] = {}
    for order in filter(None, (job.dense, job.expert)):
        mesh = Mesh(tuple(Axis(name, getattr(split, name)) for name in order))
        kinds = (kind for kind in CARRYING if set(kind.split("-")) <= set(order))
        found = {**{kind: Grouping(kind, mesh, kind) for kind in kinds}, **found}
    if split.pp > 1:
        found["embd"] = replace(found["pp"], name="embd", places=(0, split.pp - 1))
    return found


CARRYING = ("tp", "cp", "pp", "dp", "dp-cp", "ep", "etp", "edp")
"""Kinds of groups that may carry something, if the orders have their axes."""


@lru_cache(maxsize=16)
def _totals(model: Model) -> tuple[int, int]:
    """Parameters outside routed experts, and of these."""
    kinds = parameters_by_kind(model)
    experts = kinds.pop("experts", 0)
    return sum(kinds.values()), experts


def least_memory(job: SearchJob, split: Split) -> float:
    """Model states if all stages had the same: the fullest has no less. Bytes."""
    dense, experts = _totals(job.model)
    one, zero = PRECISIONS[job.training.precision], job.training.zero

    def states(parameters: float, ranks: int) -> float:
        shares = (one.weight, 3), (one.gradient, 2), (one.optimizer, 1)
        each = sum(size / (ranks if zero >= stage else 1) for size, stage in shares)
        return parameters / split.pp * each

    return states(dense / split.tp, split.dp * split.cp) + states(
        experts / (split.ep * split.etp), split.edp
    )


def least_seconds(job: SearchJob, split: Split) -> float:
    """A bound from below on what `evaluate` says of a layout's seconds.

    tp's all-reduces (arXiv:2104.04473 section 3.2); ep's all-to-alls, where no more ep ranks than
    those of a domain are reached by NVLink; sends between stages that stand in different domains.
    """
    training, model, cluster = _training(job, split), job.model, job.cluster
    layers = -(-model.layers // split.pp)
    time = computation(model, split, training, layers, cluster.peak)
    tokens = training.micro_batches * training.micro_batch * model.sequence / split.cp
    whole = tokens * model.hidden * PRECISIONS[training.precision].weight / split.pp
    reduced = 4 * (split.tp - 1) / split.tp * (2 * model.layers - model.moe_layers) * whole
    routed = 4 * model.top_k * model.moe_layers / split.tp * whole / split.ep
    outside = max(0, split.ep - job.domain)
    exchange = max((split.ep - 1) / cluster.nvlink * (not outside), outside / cluster.nic)
    waited = _between_stages(job, split, training, whole)
    waited += 0.0 if training.schedule in OVERLAPPING else routed * exchange
    idle = idle_seconds(split, training, time)
    return time.step + idle + reduced / cluster.nvlink + waited


def _between_stages(job: SearchJob, split: Split, training: Training, whole: float) -> float:
    """Seconds for which a rank waits at least for its two messages a micro-batch."""
    stage = split.tp * split.cp * split.dp
    alone = training.schedule in ("1f1b", "gpipe") and split.pp > 1
    if not alone or stage < job.domain or job.dense[-1] != "pp":
        return 0.0
    cut = split.tp if training.sequence_parallel else 1
    sent = whole * split.pp / cut  # of all micro-batches, one way
    return 2 * sent / job.cluster.nic
