"""Layouts of servers for one model on the same GPUs: what each holds, how fast it answers, and all
that the engine accepts, the quickest for a target first.

    target    requests at once, or as many as keep a token within a bound of seconds
    answered  no more than the caches hold at these lengths, nor than the engine takes at once; the
              others wait
    order     tokens a second of all GPUs together; where all answer as many requests, that is TPOT
    front     the points of all layouts' curves that no other point beats for a user and for a GPU

An engine's refusals are counted by their codes: sizes that it does not start with, heads and KV
heads that do not divide, cut blocks of FP8, decode context parallelism without copies, no room.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from groups.alternatives import divisors
from groups.budget import spend
from groups.errors import LayoutError
from groups.frameworks import framework_of
from groups.kept import kept
from groups.layout import Job, Layout

from ..machine import Machine
from ..model import Model
from .asked import AskedServer
from .placed import cut_of
from .server import ServerMemory, Serving, server_memory
from .speed import Speed, server_speed
from .work import Load, requests_within

MOST = 10
"""The most layouts that a search returns."""

MOST_TRIED = 1_500
"""The most layouts that are tried."""

CANDIDATE, POINT = 500, 100
"""Units of work (groups.budget) of a layout that is tried, and of a point of a curve."""

STEPS = 24
"""Halvings after which the most requests within a bound are known well enough."""


@dataclass(frozen=True)
class ServingJob:
    """What is served on which GPUs, and for whom.

    Attributes:
        total: bytes of a GPU that programs see.
        load: the requests of all servers together, and their tokens.
        bound: the most seconds of a token; 0: no bound, but ``load.requests``.
        name, speculative, disaggregated: as of `AskedServer`.
    """

    model: Model
    machine: Machine
    serving: Serving
    framework: str
    nodes: int
    gpus_per_node: int
    total: float
    load: Load
    bound: float = 0.0
    name: str = ""
    speculative: bool = False
    disaggregated: bool = False

    @property
    def gpus(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def is_a100(self) -> bool:
        return self.machine.family == "a100"


@dataclass(frozen=True)
class ServedLayout:
    """A layout of servers and what it answers.

    Attributes:
        servers: how many stand side by side.
        fits: requests of the asked lengths that all of them answer at once.
        answered: requests that they do answer at once.
        speed: of one server with its share of them.
        limit: what bounds ``fits``: "cache", or "engine" (its own limit of requests).
        is_within: whether a token is within the bound that is asked for.
    """

    asked: ServingJob
    job: Job
    server: AskedServer
    memory: ServerMemory
    servers: int
    fits: float
    answered: float
    speed: Speed
    limit: str
    is_within: bool = True

    @property
    def rate(self) -> float:
        """Tokens a second of all servers."""
        return self.answered / self.speed.seconds

    @property
    def gpu_rate(self) -> float:
        return self.rate / self.asked.gpus

    @property
    def one_server(self) -> Job:
        """The job of one of its servers, which a command starts."""
        each = min(self.server.gpus, self.asked.gpus_per_node)
        return replace(self.job, nodes=self.server.gpus // each, gpus_per_node=each)

    @cached_property
    def curve(self) -> tuple[tuple[float, Speed], ...]:
        """Requests at once of all servers, doubling from one a server on, and the speed of one."""
        points, most = [], self.fits / self.servers
        requests = 1.0
        while requests < most * 0.999:
            points.append(requests)
            requests *= 2
        points.append(max(1.0, most))
        spend(POINT * len(points), "layouts")
        return tuple((each * self.servers, self._speed(each)) for each in points)

    def _speed(self, requests: float) -> Speed:
        return server_speed(self.server, replace(self.asked.load, requests=requests))


def asked_server(asked: ServingJob, layout: Layout) -> AskedServer:
    """One server of a layout."""
    return AskedServer(
        asked.model,
        cut_of(layout, asked.model),
        asked.machine,
        asked.serving.engine,
        asked.serving.weights,
        asked.serving.cache,
        parts=layout.mesh.size("dp"),
        prefill=layout.mesh.size("cp") if "cp" in layout.mesh.names else 1,
        domain=asked.machine.domain_of(asked.gpus_per_node),
        name=asked.name,
        speculative=asked.speculative,
        disaggregated=asked.disaggregated,
    )


def served_layout(
    asked: ServingJob, layout: Layout, memory: ServerMemory | None = None
) -> ServedLayout:
    """A layout of servers with what it answers; memory: where it is known already.

    Errors: LayoutError where a server does not start, has no room, or its speed is not told.
    """
    server = asked_server(asked, layout)
    servers = layout.world_size // server.gpus
    if memory is None:
        memory = server_memory(
            *(asked.model, server.cut, asked.serving, asked.total),
            ranks=server.gpus,
            attention_dp=server.parts,
            is_a100=asked.is_a100,
        )
    fits, limit = most_at_once(asked, server, memory)
    own = min(fits, max(1.0, asked.load.requests / servers))
    is_within = True
    if asked.bound:
        own, is_within = _within_bound(asked, server, fits)
    speed = server_speed(server, replace(asked.load, requests=own))
    answered = min(own * servers, asked.load.requests) if not asked.bound else own * servers
    return ServedLayout(
        *(asked, layout.job, server, memory, servers),
        fits=fits * servers,
        answered=answered,
        speed=speed,
        limit=limit,
        is_within=is_within,
    )


def most_at_once(asked: ServingJob, server: AskedServer, memory: ServerMemory) -> tuple[float, str]:
    """The most requests that one server answers at once, and what bounds them.

    Errors: LayoutError if not one of the asked length fits.
    """
    fits = requests_within(memory, asked.load, server.parts)
    own = server.parts * asked.serving.requests_on(asked.total, asked.is_a100)
    return (float(own), "engine") if own and own < fits else (fits, "cache")


def _within_bound(asked: ServingJob, server: AskedServer, fits: float) -> tuple[float, bool]:
    """The most requests of a server within the bound, and whether there are any."""

    def seconds(requests: float) -> float:
        return server_speed(server, replace(asked.load, requests=requests)).seconds

    spend(POINT * STEPS, "layouts")
    low, high = 1.0, max(1.0, fits)
    if seconds(low) > asked.bound:
        return low, False
    if seconds(high) <= asked.bound:
        return high, True
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if seconds(middle) <= asked.bound else (low, middle)
    return low, True


# -- all layouts -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Beside:
    """A point of a front: a layout's place in the list, requests at once, and tokens a second of a
    request and of a GPU."""

    place: int
    requests: float
    user_rate: float
    gpu_rate: float


@dataclass(frozen=True)
class ServedSearch:
    """The best layouts, the quickest first, and what became of the others.

    Attributes:
        refused: how many layouts were refused, by code; errors: one refusal of each.
        front: the points of ``best`` that no other beats.
    """

    best: tuple[ServedLayout, ...]
    tried: int
    refused: Mapping[str, int]
    errors: Mapping[str, LayoutError] = field(repr=False)
    complete: bool = True

    @cached_property
    def front(self) -> tuple[Beside, ...]:
        points = [
            Beside(place, requests, speed.user_rate, requests / speed.seconds / each.asked.gpus)
            for place, each in enumerate(self.best)
            for requests, speed in each.curve
        ]
        points.sort(key=lambda point: (-point.user_rate, -point.gpu_rate))
        found, most = [], 0.0
        for point in points:
            if point.gpu_rate > most:
                found.append(point)
                most = point.gpu_rate
        return tuple(found)


@kept
def search_servers(asked: ServingJob, most: int = MOST) -> ServedSearch:
    """The quickest layouts of servers for a target.

    >>> from training.clusters import CLUSTERS
    >>> from training.models import MODELS
    >>> machine = CLUSTERS["dgx-h100"]
    >>> llama, fp8 = MODELS["llama3-70b"].model, Serving(weights="fp8")
    >>> asked = ServingJob(
    ...     llama, machine, fp8, "vllm", 1, 8, machine.seen, Load(64, 1024, 1024), name="llama3-70b"
    ... )
    >>> found = search_servers(asked)
    >>> best = found.best[0]
    >>> best.job.tp, best.servers, found.tried > 10, best.rate >= found.best[1].rate
    (8, 1, True, True)
    """
    found: list[ServedLayout] = []
    refused: Counter[str] = Counter()
    errors: dict[str, LayoutError] = {}
    tried, complete = 0, True
    for job in candidates(asked):
        if tried == MOST_TRIED:
            complete = False
            break
        tried += 1
        spend(CANDIDATE, "layouts")
        try:
            found.append(served_layout(asked, job.layout()))
        except LayoutError as error:
            refused[error.code] += 1
            errors.setdefault(error.code, error)
    found.sort(key=lambda each: (not each.is_within, -each.rate, each.server.gpus))
    return ServedSearch(_different(found, most), tried, refused, errors, complete)


def _different(found: list[ServedLayout], most: int) -> tuple[ServedLayout, ...]:
    """The first ones; of those that cut attention and layers alike and answer alike, the one that
    holds most: dealing experts otherwise reads and sends the same."""
    kept: dict[tuple[object, ...], ServedLayout] = {}
    for each in found:
        cut = each.server.cut
        key = (cut.attention, cut.pp, each.server.parts, each.servers, round(each.rate, 3))
        if key not in kept or kept[key].fits < each.fits:
            kept[key] = each
    return tuple(kept.values())[:most]


def candidates(asked: ServingJob) -> Iterator[Job]:
    """Every layout of the engine on these GPUs that its sizes may say."""
    framework, world = framework_of(asked.framework), asked.gpus
    names, has_experts = framework.sizes, bool(asked.model.experts)
    start = Job(
        nodes=asked.nodes, gpus_per_node=asked.gpus_per_node, framework=asked.framework, tp=1, pp=1
    )
    for tp in divisors(world):
        for pp in divisors(world // tp):
            if pp > asked.model.layers:
                continue
            for more in _parts(names, world // (tp * pp), tp, has_experts):
                yield replace(start, tp=tp, pp=pp, **more)  # type: ignore[arg-type]


def _parts(
    names: Mapping[str, str], rest: int, tp: int, has_experts: bool
) -> Iterator[dict[str, int | bool]]:
    """Sizes beside tp and pp: attention's data parallel parts, experts, parts of a sequence."""
    is_own = "expert_parallel" in names  # dp multiplies tp; else it divides it
    parts = divisors(rest) if is_own else divisors(tp)
    experts: list[dict[str, int | bool]] = [{}]
    if has_experts and is_own:
        experts = [{"expert_parallel": False}, {"expert_parallel": True}]
    elif has_experts and "ep" in names:
        experts = [{"ep": size} for size in divisors(tp)]
    for dp in parts if has_experts or is_own else [1]:
        if is_own and not has_experts and dp > 1:
            continue  # the same as that many servers
        for expert in experts:
            for dcp in divisors(tp) if "dcp" in names else [1]:
                sizes = {"dp": dp, **expert, "dcp": dcp}
                yield {name: size for name, size in sizes.items() if name == "dp" or size != 1}
