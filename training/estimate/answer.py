"""`estimate`: the checked request, its work, its seconds, their interval, and the memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from groups.alternatives import with_working
from groups.errors import LayoutError, not_a_choice
from groups.layout import Layout

from ..clusters import machine_of
from ..errors import require_choice
from ..machine import Machine
from ..memory.per_stage import require_counted
from ..model import Model
from ..models import MODELS
from ..pipeline.spec import OF_SCHEDULES
from ..split import Split
from .constants import SOFTWARE, constants_of, fitted_constants, software_of
from .memory import Fit, fit_of
from .request import Arguments, Request, request_of, require_times
from .runs import MeasuredRun, lacks, nearest_runs
from .seconds import Timed, decided, layer_seconds, stall_seconds, step_seconds
from .work import layer_work, work_of

FAR = 1.25
"""How much wider, each way, an interval is for each thing that no public run is near in."""

UNLIKELY = 0.12
"""Share of runs that stall, or do not, below which the interval leaves them out."""

WAITED = ("tp", "cp", "ep", "pp", "dp")
"""Parts of a step that are waiting for a kind of group."""

ROUNDS = 4
"""Micro-batches of a pipeline stage where nobody says how many samples a step has."""


@dataclass(frozen=True)
class Estimate:
    """The estimated time and memory of a training step.

    Attributes:
        seconds: expected seconds of a step.
        low, high: the interval that holds 90 % of real runs.
        parts: seconds by cause (training.estimate.seconds.PARTS); they sum to ``seconds``.
        memory: peak of allocated bytes on the fullest rank.
        memory_low, memory_high: the interval that holds the need of 90 % of real runs.
        verdict: "fits", "close" or "over": whether the cluster's GPU holds it.
        fits: whether it may fit; False where runs that need so much have failed (`Fit.verdict`).
        fit: the memory in detail; computed on first access.
        software: the software whose constants apply (training.estimate.constants).
        named: the software that the request names; empty: none.
        stalls: share of runs like this in which messages stall.
        near: whether public runs are near; if not, ``lacks`` gives the reasons.
    """

    seconds: float
    low: float
    high: float
    parts: dict[str, float]
    software: str
    stalls: float
    lacks: tuple[str, ...]
    request: Request = field(repr=False)
    known_fit: Fit | None = field(default=None, repr=False, compare=False)
    named: str = field(default="", repr=False)

    @cached_property
    def fit(self) -> Fit:
        return self.known_fit or fit_of(self.request, self.named)

    @property
    def memory(self) -> float:
        return self.fit.allocated

    @property
    def memory_low(self) -> float:
        return self.fit.low

    @property
    def memory_high(self) -> float:
        return self.fit.high

    @property
    def verdict(self) -> str:
        return self.fit.verdict

    @property
    def fits(self) -> bool:
        return self.fit.fits

    @property
    def near(self) -> bool:
        return not self.lacks

    def nearest(self, most: int = 5) -> tuple[MeasuredRun, ...]:
        """The public runs nearest to this one, the nearest first."""
        return nearest_runs(self.request, most, self.software)


def estimate(model: Model, *, software: str = "", **arguments: object) -> Estimate:
    """The time of a step and the memory it needs, from constants that public runs were fitted to.

        cluster "dgx-h100", gpus 64, gpus_per_node 8     a name of CLUSTERS, or a Machine
        tp 8, pp 1, cp 1, ep 1, etp None, vpp 1          sizes (vpp counts where pp is above 1);
                                                         layers that pp x vpp does not divide are
                                                         dealt out unevenly; etp None is 1 where ep
                                                         is above 1: Megatron-LM takes tp there
                                                         (validate_args of its arguments.py)
        micro_batch 1, global_batch 256, sequence 4096   the batch
        precision "bf16"                                 of the layers' matrix products
        zero 1, recompute "none", sequence_parallel True
        flash True    attention as one kernel; runs without it are taken to train with dropout, as
                      those of its time did
        dispatcher "alltoall", dispatch "bf16", ep_overlap False    tokens to experts, as Training
        lora_rank 0, lora_targets "all-linear", frozen "bf16"    adapters beside frozen weights
        software ""   whose constants apply; empty: the usual software of similar public runs

    What overlaps: gradients and parameters as with Megatron's flags; the rest by the exposed share
    in the fit.

    >>> from training.models import MODELS
    >>> e = estimate(MODELS["gpt3-175b"].model, cluster="dgx-a100", gpus=64, pp=8, vpp=3,
    ...              global_batch=64, sequence=2048, recompute="selective", flash=False)
    >>> 12 < e.seconds < 17, e.low < 13.75 < e.high  # measured: arXiv:2205.05198 Table 5
    (True, True)

    >>> try: estimate(MODELS["llama3-70b"].model, gpus=100, tp=2, pp=8)
    ... except LayoutError as error: print(error.what, error.alternatives[0])
    tp 2 x pp 8 x cp 1 = 16 does not divide 100 GPUs {'pp': 5, 'global_batch': 250}

    Errors: LayoutError for what does not go together, with changes that were tried and work.
    """
    arguments_of: Callable[..., Arguments] = Arguments
    requested = arguments_of(**arguments)
    if software not in ("", *SOFTWARE):
        raise not_a_choice("software", software, SOFTWARE)
    changed_of: Callable[..., Arguments] = replace

    def attempt(changes: Mapping[str, object]) -> Estimate:
        return _estimated(model, changed_of(requested, **changes), software)

    try:
        return attempt({})
    except LayoutError as error:
        raise with_working(error, attempt) from None


def _estimated(model: Model, arguments: Arguments, software: str) -> Estimate:
    """The estimate. Errors: LayoutError, whose alternatives are changes of the arguments."""
    try:
        request = request_of(model, arguments)
        return estimate_of(request, software or software_of(request), named=software)
    except LayoutError as error:
        refused = error.renamed(OF_SCHEDULES)
        fixes = [_as_arguments(fix, arguments) for fix in refused.alternatives]
        raise refused.replace(alternatives=[fix for fix in fixes if fix]) from None


SWITCHES = ("sequence_parallel", "ep_overlap")
"""Arguments that are on or off, which a refusal changes to 1 or 0."""


def _as_arguments(fix: Mapping[str, object], arguments: Arguments) -> dict[str, object]:
    """A fix in terms of arguments; empty if it changes the model, which is given."""
    change = dict(fix)
    change |= {name: bool(change[name]) for name in SWITCHES if name in change}
    if isinstance(count := change.pop("micro_batches", None), int):
        replicas = arguments.gpus // (arguments.tp * arguments.cp * arguments.pp)
        change["global_batch"] = count * arguments.micro_batch * replicas
    return change if change.keys() <= vars(arguments).keys() else {}


def estimate_of(
    request: Request, software: str, fit: Fit | None = None, named: str = ""
) -> Estimate:
    """The estimate of a checked request, with one software's constants.

    fit: the result of `fit_of`, if known; named: the software if requested, not guessed.
    """
    require_times(request)
    constants = constants_of(request.machine.family, software)
    on_host, fullness = (0.0, 0.0), 0.0
    if request.training.offload != "none" or "stall" in constants:
        fit = fit or fit_of(request, named)
        on_host, fullness = fit.on_host, fit.needed / request.bytes_of_gpu
    elif fit is None:
        require_counted(request.model, request.split, request.training)
    parts = step_seconds(request, work_of(request), constants, on_host)
    plain = sum(parts.values())
    more, share = stall_seconds(request, constants, fullness)
    if share:
        parts["pp" if request.split.pp > 1 else "dp"] += more * decided(share)
    lacking = lacks(request)
    low, high = _spread(request, software, lacking)
    return Estimate(
        seconds=sum(parts.values()),
        low=low * (plain if share < 1 - UNLIKELY else plain + more),
        high=high * (plain + more if share > UNLIKELY else plain),
        parts=parts,
        software=software,
        stalls=share,
        lacks=lacking,
        request=request,
        known_fit=fit,
        named=named,
    )


def _spread(request: Request, software: str, lacking: tuple[str, ...]) -> tuple[float, float]:
    """The ends of the interval, measured over estimated: of a GPU that nobody measured those of the
    worst family of GPUs that the fit was blind to."""
    kind = "moe" if request.model.experts else "dense"
    name = "nanotron" if software == "nanotron" else kind
    others = [one for one in lacking if one != "gpu"]
    if len(others) < len(lacking):
        name = f"unseen {kind}"
    low, high = fitted_constants()["spread"][name]
    return low / FAR ** len(others), high * FAR ** len(others)


def layer_time(request: Request, software: str, kind: int = 0) -> Timed:
    """Seconds of a layer of one of the model's kinds for one micro-batch, forward and backward;
    arguments as `estimate_of`."""
    constants = constants_of(request.machine.family, software)
    layer = layer_work(request, request.model.kinds[kind])
    return layer_seconds(request, layer, constants)(request.training.recompute)


# -- of a layout -----------------------------------------------------------------------------------


def seconds_waited(
    layout: Layout, model: str, cluster: str | Machine = "dgx-h100", global_batch: int = 0
) -> dict[str, float]:
    """Seconds that a step of a published model on a layout waits for each kind of group.

    global_batch: samples of a step; 0: ROUNDS micro-batches of one for each pipeline stage.

    >>> from groups.layout import Job
    >>> seconds = seconds_waited(Job(nodes=2, tp=8, pp=2).layout(), "llama3-8b")
    >>> seconds["tp"] > seconds["pp"] > seconds["ep"] == 0.0
    True

    Errors: LayoutError for no such model or cluster, and for what does not go together.
    """
    require_choice("model", model, tuple(MODELS))
    machine = machine_of(cluster)
    shape = MODELS[model].model
    split = Split.of(layout.mesh, layout.expert if shape.experts else None)
    step = estimate(
        shape,
        cluster=machine,
        gpus=layout.world_size,
        gpus_per_node=layout.gpus_per_node,
        **{name: getattr(split, name) for name in ("tp", "cp", "pp", "ep", "etp")},
        global_batch=global_batch or ROUNDS * split.pp * split.dp,
    )
    return {name: step.parts[name] for name in WAITED}
