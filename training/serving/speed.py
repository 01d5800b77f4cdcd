"""Seconds of a step of a server, by cause: what a user waits for each token of an answer.

    step      overhead + weights + cache + computation + messages        TPOT of every request
    overhead  LAYER for each layer, EXPERTS for each with experts (TensorRT-LLM: GRAPHS times), SUM
              for each sum between GPUs, and REQUEST for each request of a GPU
    weights   bytes that a GPU reads / (HBM of its memory's bandwidth); so does the cache
    compute   operations / (PEAK of the peak of their format)
    messages  bytes that a GPU sends / (LINK of its links): 2 (n - 1) / n of what is summed
    pipeline  a request is in one of pp stages at a time: a token passes all layers with requests /
              pp others, and is sent on pp times

`step_work` counts bytes and operations; the eight constants are fitted to measured servers
(`python -m benchmarks.fit_serving`, which prints its errors): 1,359 runs of 3 engines on 6 types of
NVIDIA GPUs, of one to eight GPUs in one NVLink domain. What was not measured is refused in words:
other makers' GPUs, speculative decoding, sequences that are divided, experts or tensor parallelism
across domains. Pipelines are counted, not measured.

The interval is that of runs whose source was left out of the fit. It narrows only where the same
engine answered the same model on the same GPU in many measured runs: the law is then times how far
it missed them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from ..machine import Machine
from .asked import AskedServer, require_told
from .runs import Miss, ServedRun, miss_of, runs_like, runs_of_layout
from .work import Load, StepWork, step_work

LAYER, EXPERTS, SUM, REQUEST = 52.6e-6, 43.0e-6, 7.06e-6, 12.0e-6
"""Seconds of a layer, of one with experts, of a sum between GPUs, and of a request of a GPU."""

GRAPHS = 0.695
"""Share of the overhead of layers that TensorRT-LLM has."""

HBM, PEAK, LINK = 0.853, 0.770, 0.466
"""Shares of bandwidth, peak and links that a step reaches."""

LOW, HIGH = 0.66, 1.87
"""Measured over worked out seconds, at 5 and 95 % of the runs, each source left out of the fit."""

PARTS = ("weights", "cache", "compute", "messages", "overhead")
"""What a step waits for, in the order in which it is shown."""


@dataclass(frozen=True)
class Speed:
    """The speed of a server with so many requests at once.

    Attributes:
        seconds, low, high: of a step (TPOT), and its interval.
        parts: seconds by PARTS; their sum is ``seconds``.
        load: the requests at once and their tokens.
        gpus: of the server.
        first: the floor of the time to the first token: a prompt alone at the GPUs' peak.
        miss: how far the law missed the same engine, model and GPU, by which ``seconds`` is
            corrected; None: nothing measured.
        runs: measured runs of the same engine, model and GPU, the nearest first.
        same_layout: all of them with the same layout, format and lengths.
    """

    seconds: float
    low: float
    high: float
    parts: dict[str, float]
    load: Load
    gpus: int
    first: float
    miss: Miss | None
    runs: tuple[ServedRun, ...]
    same_layout: tuple[ServedRun, ...] = ()

    @property
    def user_rate(self) -> float:
        """Tokens a second that one request gets."""
        return 1.0 / self.seconds

    @property
    def rate(self) -> float:
        """Tokens a second of all requests."""
        return self.load.requests / self.seconds

    @property
    def gpu_rate(self) -> float:
        """The same of each GPU."""
        return self.rate / self.gpus


def server_speed(server: AskedServer, load: Load) -> Speed:
    """The speed of a server that answers these requests at once.

    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> from training.serving.weights import Cut
    >>> llama = MODELS["llama3-70b"].model
    >>> def tpot(tp, requests):
    ...     server = AskedServer(llama, Cut(tp, tp), CLUSTERS["dgx-h100"], weights="fp8")
    ...     return round(1e3 * server_speed(server, Load(requests, 1024, 1024)).seconds, 1)
    >>> tpot(4, 4), tpot(4, 64), tpot(8, 64)  # measured: 11.8, 19.5, 15.5
    (12.1, 20.5, 14.9)

    Errors: LayoutError for what the law does not tell (`require_told`), for a cache that is not
    known, and where the machine's bandwidth or peak is not.
    """
    require_told(server)
    parts = seconds_of(server, load)
    miss = miss_of(server.engine, server.machine.id, server.name)
    is_measured = miss is not None and server.cut.pp == 1 and not server.machine.changed
    bounds = (miss.low, miss.high) if miss and is_measured else (LOW, HIGH)
    times = miss.times if miss and is_measured else 1.0
    seconds = times * sum(parts.values())
    return Speed(
        seconds,
        seconds * bounds[0],
        seconds * bounds[1],
        {name: times * part for name, part in parts.items()},
        load,
        server.gpus,
        first_token(server, load),
        miss if is_measured else None,
        runs_like(server, load),
        runs_of_layout(server, load),
    )


class Amounts(NamedTuple):
    """What a step takes, in seconds at the full speed of memory, peak and links, or in numbers."""

    weights: float
    cache: float
    compute: float
    messages: float
    layers: int
    moe_layers: int
    sums: int
    requests: float
    """Of one GPU."""


def amounts_of(server: AskedServer, load: Load) -> Amounts:
    """What a step of a server takes.

    Errors: LayoutError for a cache that is not known, and for unknown numbers of the machine.
    """
    machine, pp = server.machine, server.cut.pp
    machine.require("hbm", "peak")
    if server.sharing > 1:
        machine.require("nvlink")
    own = replace(load, requests=load.requests / pp)
    formats = server.weights, server.cache
    work = step_work(server.model, server.cut, own, *formats, server.parts)
    messages = _wire(server, work)
    if pp > 1:
        machine.require_links(server.gpus, server.domain)
        speed = machine.nic if server.gpus > server.domain else machine.one_pair
        messages += pp * 2.0 * server.model.hidden * own.tokens / server.parts / speed
    return Amounts(
        sum(work.weights.values()) / machine.hbm,
        work.cache / machine.hbm,
        _computing(work, server),
        messages,
        work.layers,
        work.moe_layers,
        work.reduced[1] + work.exchanged[1] + (pp if pp > 1 else 0),
        load.requests / server.parts,
    )


def seconds_of(server: AskedServer, load: Load) -> dict[str, float]:
    """Seconds of a step by PARTS, as the law says them.

    Errors: as of `amounts_of`.
    """
    took = amounts_of(server, load)
    graphs = GRAPHS if server.engine == "tensorrt-llm" else 1.0
    launched = LAYER * took.layers + EXPERTS * took.moe_layers + SUM * took.sums
    return {
        "weights": took.weights / HBM,
        "cache": took.cache / HBM,
        "compute": took.compute / PEAK,
        "messages": took.messages / LINK,
        "overhead": graphs * launched + REQUEST * took.requests,
    }


def _computing(work: StepWork, server: AskedServer) -> float:
    """Seconds of a step's operations, each at the peak of its format."""
    products = work.products / peak_of(server.weights, server.machine)
    return products + (work.table_products + work.context) / server.machine.peak


def peak_of(weights: str, machine: Machine) -> float:
    """Operations per second with weights of a format: of those that a GPU cannot multiply as they
    are, they are made 16 bits first.

    >>> from training.clusters import CLUSTERS
    >>> [peak_of("nvfp4", CLUSTERS[name]) / 1e12 for name in ("dgx-h100", "dgx-b200")]
    [989.4, 9000.0]
    """
    if weights in ("fp8", "fp8_plain", "int8"):
        return machine.fp8 or machine.peak
    if weights in ("nvfp4", "mxfp4"):
        return machine.fp4 or machine.peak
    return machine.peak


def _wire(server: AskedServer, work: StepWork) -> float:
    """Seconds in which the bytes of a step pass a GPU's links."""
    both = ((2.0, *work.reduced, server.cut.attention), (1.0, *work.exchanged, server.sharing))
    return sum(
        times * (n - 1) / n * size * count / server.machine.inside(n)
        for times, size, count, n in both
        if n > 1 and count
    )


def first_token(server: AskedServer, load: Load) -> float:
    """The least seconds to the first token: the operations of one prompt at the peak.

    What is measured lies above it by what waits before and by kernels: with 4 requests or fewer it
    is told within 25 % for a quarter of the runs only, so nothing nearer is said.
    """
    alone = Load(1.0, load.prompt, 1.0)
    formats = server.weights, server.cache
    return _computing(step_work(server.model, server.cut, alone, *formats), server)
