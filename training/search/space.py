"""The search space: the valid layouts, and for each the ways to train on it.

A layout is the sizes of both grids. Of each are tried

    micro-batch    powers of two up to MOST_SAMPLES, and the one on screen
    chunks         one, and where schedules interleave every number of them that deals layers out
                   equally, embedding and loss taking a layer's place each or not; a few that do not
    recomputation  those of training.recompute.usual, and the one on screen
    exchange       of experts, hidden behind another micro-batch's computation, and not
    copies         of what FSDP cuts (HSDP): one, one a node where a node can hold the states, and
                   as many as on screen

unless the job holds one of them fixed. Everything else of the layout on screen (ZeRO, sequence
parallelism, kernels, number formats, schedule) is the same for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import gcd

from groups.alternatives import divisors
from groups.kept import kept

from ..estimate.request import EXPERT, Request, TrainingJob
from ..parameters import total_parameters
from ..pipeline.figures import is_known
from ..recipe import Training
from ..recompute import and_own, usual
from ..sharding.held import element_bytes
from ..sharding.words import WITH_COPIES
from ..split import Split, divided_sizes

LEAST_TOKENS = 4096
"""The fewest tokens of a sequence that cp leaves a rank: no public run has fewer. The layout on
screen may have fewer; then every cp up to its own is tried."""

MOST_SAMPLES = 16
"""The largest micro-batch that is tried unless the layout on screen has a larger one."""

UNEVEN = (1, 2, 3, 4, 8)
"""Numbers of chunks to try if layers do not divide equally."""

VARIED = ("micro_batch", "vpp", "recompute", "ep_overlap", "instances")
"""Options that vary for each layout."""

ALTERNATING = ("1f1b", "interleaved")
"""Megatron's own schedule, without chunks and with them."""

_OF_JOB = tuple(field.name for field in fields(TrainingJob))


@dataclass(frozen=True)
class SearchJob(TrainingJob):
    """The inputs that all layouts of a search have in common.

    Attributes:
        training: of the layout on screen; micro_batches are computed for each layout.
        expert: the order of the experts' grid; empty if there is none.
        cp: that of the layout on screen.
        vpp, account: those of the layout on screen; they count if ``fixed`` contains "vpp".
        fixed: the names of VARIED that keep their values on screen in every layout.
        recomputations: the choices of the framework; empty: those `usual` for the model.
    """

    cp: int = 1
    vpp: int = 1
    account: bool = False
    fixed: frozenset[str] = frozenset()
    recomputations: tuple[str, ...] = ()

    def request(self, split: Split, training: Training) -> Request:
        """The request to estimate one layout under one training."""
        job = {name: getattr(self, name) for name in _OF_JOB}
        job |= {"training": training}
        job["expert"] = self.expert or EXPERT
        split = split.placed(training.rule.placement)
        return Request(**job, split=split, precision_is_explicit=True)


@dataclass(frozen=True)
class Dealt:
    """The assignment of layers to pipeline ranks, and their schedule."""

    vpp: int
    account: bool
    spread: str
    schedule: str


def valid_splits(job: SearchJob, step: int = 1) -> Iterator[Split]:
    """Every layout that divides the world, the model and the batch, without an assignment of
    layers.

    step: only every ``step``-th combination of tp, cp and pp is used.
    """
    for tp, cp, pp in _sizes(job)[::step]:
        yield from _with_experts(job, tp, cp, pp)


def step_for(job: SearchJob, most: int) -> int:
    """The step that samples about ``most`` layouts at most."""
    each = 2 * len(divisors(job.model.experts)) if job.model.experts and job.expert else 1
    step = max(1, -(-len(_sizes(job)) * each // most))
    while step > 1 and gcd(step, len(divisors(job.gpus))) > 1:  # else it samples few values of pp
        step += 1
    return step


@kept
def _sizes(job: SearchJob) -> tuple[tuple[int, int, int], ...]:
    """Sizes of tp, cp and pp that divide the world, the model and the batch."""
    sizes = []
    for tp in _tensor_sizes(job):
        for cp in _context_sizes(job, tp):
            for pp in divisors(job.gpus // (tp * cp)) if "pp" in job.dense else [1]:
                dp = job.gpus // (tp * cp * pp)
                is_whole = job.global_batch % dp == 0 and dp * cp % job.training.instances == 0
                if is_whole and (dp == 1 or "dp" in job.dense) and dealings(job, pp):
                    sizes.append((tp, cp, pp))
    return tuple(sizes)


def _tensor_sizes(job: SearchJob) -> list[int]:
    """Sizes of tp up to an NVLink domain that divide the model."""
    model = job.model

    def cuts(tp: int) -> bool:
        return not any(width % tp for _, width in divided_sizes(model, tp)["tp"])

    is_cut = job.training.sequence_parallel or not model.experts
    sizes = divisors(job.gpus) if "tp" in job.dense and is_cut else [1]
    return [tp for tp in sizes if tp <= job.domain and cuts(tp)]


def _context_sizes(job: SearchJob, tp: int) -> list[int]:
    sequence, cut = job.model.sequence, tp if job.training.sequence_parallel else 1
    heads = job.model.heads // tp if job.cp_algorithm == "a2a" else 0  # that all-to-all deals out

    def cuts(cp: int) -> bool:
        is_long = sequence // cp >= LEAST_TOKENS or cp <= job.cp
        return cp == 1 or (sequence % (2 * cp) == 0 and is_long and heads % cp == 0)

    sizes = divisors(job.gpus // tp if "cp" in job.dense else 1)
    return [cp for cp in sizes if sequence % (cp * cut) == 0 and cuts(cp)]


def _with_experts(job: SearchJob, tp: int, cp: int, pp: int) -> Iterator[Split]:
    """The layouts of these sizes, with every valid ep and etp."""
    dp = job.gpus // (tp * cp * pp)
    for ep, etp in _expert_sizes(job, tp, tp * cp * dp):
        edp = tp * cp * dp // (ep * etp)
        # Megatron cuts both grids into the same pipelines: pp last, or dp and edp alike.
        if job.dense[-1] == "pp" or not job.model.experts or dp == edp:
            yield Split(tp=tp, cp=cp, pp=pp, dp=dp, ep=ep, etp=etp)


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


def copies(job: SearchJob) -> tuple[int, ...]:
    """The numbers of copies to try, the fewest first: of programs that hold copies of what they
    cut (HSDP) one, one a node, and as many as on screen.

    A copy of a node that could not hold its states, cut over all of the node's GPUs, is left out.

    >>> from training.models import MODELS
    >>> how = Training(engine="fsdp2", zero=3)
    >>> for name in ("llama3-8b", "llama3-70b"):
    ...     print(name, copies(SearchJob(MODELS[name].model, how, 64, 64, 8, "dgx-h100")))
    llama3-8b (1, 8)
    llama3-70b (1,)
    """
    how = job.training
    if "instances" in job.fixed or how.engine not in WITH_COPIES:
        return (how.instances,)
    of_node = max(1, job.gpus // job.gpus_per_node)
    each = sum(size for size, _ in element_bytes(how).values())
    states = each * total_parameters(job.model) / job.gpus_per_node
    fitting = {of_node} if states <= job.usable and not how.is_adapted else set()
    return tuple(sorted({1, how.instances, *fitting}))


def has_copies(job: SearchJob, split: Split) -> bool:
    """Whether the data parallel ranks of a layout, and those of its experts, hold a job's
    copies."""
    each = job.training.instances
    return split.dp % each == 0 and (not job.model.experts or split.edp % each == 0)


def micro_batches(job: SearchJob, split: Split) -> list[int]:
    """Sizes of a micro-batch that divide the samples of each pipeline.

    With cp only one sample: half of cp with half of the samples is the same work per rank, and
    sends keys and values fewer hops.
    """
    own, samples = job.training.micro_batch, job.global_batch // split.dp
    if "micro_batch" in job.fixed:
        sizes = {own}
    elif split.cp > 1:
        sizes = {1}
    else:
        sizes = {own, *(2**power for power in range(MOST_SAMPLES.bit_length()))}
    return sorted(size for size in sizes if size <= samples and samples % size == 0)


def recomputations(job: SearchJob) -> tuple[str, ...]:
    """The recomputations to try."""
    if "recompute" in job.fixed:
        return (job.training.recompute,)
    return and_own(job.recomputations or usual(job.model), job.training.recompute)


@kept
def dealings(job: SearchJob, pp: int) -> tuple[Dealt, ...]:
    """The ways to assign the layers to ``pp`` stages, each with its schedule.

    Empty if there are fewer layers than stages, or the schedule is too long to be counted.
    """
    name, rule = job.training.schedule, job.training.rule
    if pp == 1:
        return (Dealt(1, False, "equal", "1f1b"),)
    if rule.even and pp % 2:
        return tuple(_dealt(job, pp, 1, "1f1b"))
    if rule.placement in ("V", "both ways"):
        if 2 * pp > job.model.layers:
            return ()
        chunks = rule.v or 1
        even = job.model.layers % (pp * 2) == 0
        return (Dealt(chunks, False, "equal" if even else "nearly", name),)
    if rule.v is not None and name not in ALTERNATING:
        return tuple(_dealt(job, pp, 1, name)) if is_known(name, pp, 1) else ()
    sizes = [job.vpp] if "vpp" in job.fixed else range(1, job.model.layers // pp + 1)
    counted = (vpp for vpp in sizes if is_known(name, pp, vpp))
    return tuple(dealt for vpp in counted for dealt in _dealt(job, pp, vpp, name))


def _dealt(job: SearchJob, pp: int, vpp: int, schedule: str) -> Iterator[Dealt]:
    if schedule in ALTERNATING:
        schedule = ALTERNATING[vpp > 1]
    stages, layers = pp * vpp, job.model.layers
    if stages > layers:
        return
    if layers % stages == 0:
        yield Dealt(vpp, False, "equal", schedule)
    if (layers + 2) % stages == 0 and layers + 2 > stages:
        yield Dealt(vpp, True, "equal", schedule)
    if layers % stages and (layers + 2) % stages and vpp in UNEVEN:
        yield Dealt(vpp, False, "nearly", schedule)
        if (layers + 2) // stages > 1:
            yield Dealt(vpp, True, "nearly", schedule)
