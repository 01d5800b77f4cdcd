"""Time of a step from its work and the constants of a machine, by cause.

    products    operations / (peak * share) * (1 + rows / m + width / w), m tokens and w the
                narrower side of a product: short and narrow ones leave the GPU waiting
    attention   operations / (16-bit peak * its own share), with the same (1 + length / s)
    passing     bytes kept for the backward * passes / bandwidth of the GPU's memory
    messages    bytes / (link * share) + count * latency + hops * latency of a hop
    stage       a micro-batch's computation and waits, or the host's time to launch it if that is
                longer: (a^4 + b^4)^(1/4)
    step        m micro-batches of the slowest stage, and the others once: 1F1B's bubble, of which
                vpp chunks leave a v-th (arXiv:2104.04473 section 2.2); put together by `step_of`,
                of one layout or of many at once

and behind the last micro-batch what of the gradients and parameters nothing hides, and the
optimizer's passes over its state: of states in host memory, the way there and back, and the CPUs'
passes over them (training.memory.host).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import exp, log2
from operator import add, mul
from typing import NamedTuple

import numpy as np

from ..machine import Machine
from ..memory.host import UPDATE, crossing
from ..pipeline.figures import idle_time
from ..recipe import PRECISIONS, Training
from ..recompute import modules_of
from .request import Request, TrainingJob
from .work import Ends, LayerWork, Messages, Number, Products, Replicas, Work

OVERLAPPED = 0.6
"""Share of experts' exchange that Megatron's combined 1F1B hides: of Qwen3 30B-A3B on 16 H100 steps
went from 41.25 to 31.31 s with an all-to-all and from 24.71 to 21.07 s with HybridEP, where 37 % of
the messages' time was beside products (NVIDIA-NeMo/Megatron-Bridge 067f987 skills/
nemo-mbridge-perf-expert-parallel-overlap); of Qwen3 235B-A22B on 256, 77 s with it."""

PARTS = ("compute", "bubble", "tp", "cp", "ep", "pp", "dp", "optimizer", "offload", "host")
"""What a step's seconds are for, in the order in which they are shown."""

SHARP = 4.0
"""Of two things of which the longer one counts, how little the shorter one adds."""

Constants = dict[str, float]
"""By name; shares have no unit, times are seconds, rows and widths elements."""


class Timed(NamedTuple):
    """Seconds of one layer for one micro-batch, forward and backward, by cause."""

    compute: float = 0.0
    tp: float = 0.0
    cp: float = 0.0
    ep: float = 0.0

    @property
    def total(self) -> float:
        return self.compute + self.tp + self.cp + self.ep


class Costs(NamedTuple):
    """The inputs of `step_of`, in seconds unless noted: numbers for one layout, or arrays for many.

    Attributes:
        kinds: one layer of each of the model's kinds, for one micro-batch.
        head: the output layer, for one micro-batch.
        send: messages between stages, for one micro-batch through all chunks of a rank.
        launch: the host's seconds for a layer of each kind.
        exposed, gathered: the results of `replica_seconds`.
        states, held: parameters whose state a rank updates, and parameters that it holds.
        on_host: the shares of the optimizer's state and of the weights in host memory.
    """

    kinds: Sequence[Number]
    head: Number
    send: Number
    launch: Sequence[Number]
    exposed: Number
    gathered: Number
    states: Number
    held: Number
    on_host: tuple[Number, Number]


class Step(NamedTuple):
    """Seconds of a step: of each stage for one micro-batch, of the slowest stage's micro-batches,
    and additional seconds by PARTS."""

    stages: np.ndarray
    busy: Number
    bubble: Number
    dp: Number
    optimizer: Number
    offload: Number

    @property
    def seconds(self) -> Number:
        return self.busy + self.bubble + self.dp + self.optimizer + self.offload


def message_seconds(messages: Messages, machine: Machine, c: Constants) -> Number:
    """Seconds of messages sent one after the other."""
    if not messages.number:
        return 0.0
    inside = messages.inside / (machine.nvlink * c["nvlink_share"]) if machine.nvlink else 0.0
    outside = messages.outside / (machine.nic * c["nic_share"]) if machine.nic else 0.0
    waits = messages.hops_inside * c["hop_inside"] + messages.hops_outside * c["hop_outside"]
    longer = (inside + outside + abs(inside - outside)) / 2.0
    return longer + 0.3 * (inside + outside - longer) + waits


def _products(work: Products, peak: float, share: float, c: Constants) -> float:
    """Seconds of a layer's matrix products, forward."""
    if not work.operations:
        return 0.0
    scaled = work.operations + c["rows"] * work.over_rows + c["width"] * work.over_width
    return scaled / (peak * share)


def layer_seconds(request: Request, work: LayerWork, c: Constants) -> Callable[[str], Timed]:
    """One layer, forward, backward and again as a recomputation says: what is not computed again
    in any of them is worked out once for all."""
    machine, is_flash = request.machine, request.training.flash
    peak, share = _peak(request, c)
    forward = _products(work.products, peak, share, c)
    forward += _products(work.experts, peak, share * c["expert_share"], c)
    adapters = 3.0 * _products(work.adapters, *_wide(request, c), c)
    passes = request.training.product_passes
    each = c["passes"] / machine.hbm
    if request.training.is_eager:
        each *= c["eager_passes"]
    if peak > machine.peak:
        each *= c["cast_passes"]
    if work.experts.operations:
        each *= c["route_passes"]
    passed, scores = each * work.kept, c["score_passes"] * work.core / machine.hbm
    attention, backward = _attention(request, work, c), 2.5 if is_flash else 2.0
    messages = [message_seconds(sent, machine, c) for sent in (work.tp, work.cp, work.ep)]
    exposed = (c["tp_exposed"], c["cp_exposed"], c["ep_exposed"])

    def seconds(recompute: str) -> Timed:
        again = 1.0 if recompute == "full" else 0.0
        modules = modules_of(recompute)
        core_again = 1.0 if again or ("core_attn" in modules and not is_flash) else 0.0
        compute = (passes + again) * forward + (1.0 + again / 3.0) * (passed + adapters)
        compute += (1.0 + backward + core_again) * attention + (1.0 + core_again / 3.0) * scores
        sent = [(2.0 + again) * seconds for seconds in messages]
        if modules - {"core_attn"}:
            compute += each * work.dropped(recompute) / 3.0
            compute += _modules_again(work, modules, (peak, share), c)
            block = message_seconds(work.block, machine, c)
            sent = [*map(add, sent, _sent_again(work, modules, messages, block))]
        tp, cp, ep = (seconds * shown for seconds, shown in zip(sent, exposed))
        if request.training.rule.pairs:  # experts' messages hide behind computation
            ep = beyond(ep, compute)
        elif request.training.ep_overlap:
            ep = (1.0 - OVERLAPPED) * ep + beyond(OVERLAPPED * ep, compute)
        return Timed(compute, tp, cp, ep)

    return seconds


def _modules_again(
    work: LayerWork, modules: frozenset[str], reached: tuple[float, float], c: Constants
) -> float:
    """Seconds of the matrix products of modules, forward."""
    peak, share = reached
    seconds = _products(work.lifted, peak, share, c) if "mla_up_proj" in modules else 0.0
    if not modules.isdisjoint(_around(work)):
        seconds += _products(work.mlp, peak, share, c)
    if "moe" in modules:
        seconds += _products(work.experts, peak, share * c["expert_share"], c)
    return seconds


def _around(work: LayerWork) -> tuple[str, ...]:
    """The names of the modules that contain a layer's MLP, or its shared experts."""
    return ("moe", "shared_experts") if work.experts.operations else ("mlp",)


def _sent_again(
    work: LayerWork, modules: frozenset[str], messages: Sequence[float], block: float
) -> tuple[float, float, float]:
    """Seconds of messages that recomputed modules send again: of tp, cp and ep."""
    tp, _, ep = messages
    if work.experts.operations and "moe" in modules:
        return (tp - block, 0.0, ep)
    return (0.0 if modules.isdisjoint(_around(work)) else min(block, tp - block), 0.0, 0.0)


def beyond(shown: Number, hidden: Number) -> Number:
    """Seconds of ``shown`` that last beyond ``hidden``, which starts at the same time."""
    return (shown**SHARP + hidden**SHARP) ** (1.0 / SHARP) - hidden


def _attention(request: Request, work: LayerWork, c: Constants) -> float:
    share, machine = c["attention_share"], request.machine
    if not request.training.flash:
        share = c["unfused_share"]
    # Only of NVIDIA's GPUs it is known that such software runs kernels of the generation before.
    elif request.training.is_eager and machine.family and machine.fp8:
        share *= c["older_attention"]
    length = float(request.model.sequence)
    if request.cp_algorithm == "p2p":
        length /= request.split.cp  # pieces that go round the ring
    operations = work.attention + (c["unaligned"] - 1.0) * work.unaligned
    return operations / (machine.peak * share) * (1.0 + c["length"] / length)


def _wide(request: Request, c: Constants) -> tuple[float, float]:
    """The same of products in 16 bits."""
    return request.machine.peak, c["share"] * request.machine.reached


def _peak(request: Request, c: Constants) -> tuple[float, float]:
    """Peak operations per second of the layers' matrix products, and the share of it that is
    reached."""
    machine = request.machine
    base = c["share"] * machine.reached
    if request.training.products in ("fp8", "mxfp8"):
        return machine.fp8, base * c["fp8_share"]
    if request.training.products == "nvfp4":
        return machine.fp4, base * c["fp4_share"]
    return machine.peak, base


def head_seconds(request: Request, ends: Ends, c: Constants) -> float:
    """Seconds of output layer and loss for a micro-batch, forward and backward."""
    machine = request.machine
    share = c["share"] * machine.reached
    products = request.training.product_passes * _products(ends.head, machine.peak, share, c)
    return products + c["logit_passes"] * ends.logits / machine.hbm


def send_seconds(request: Request, ends: Ends, c: Constants) -> float:
    """Seconds that a micro-batch waits for messages between stages on a rank, in one chunk."""
    return message_seconds(ends.send, request.machine, c) * c["pp_exposed"]


def idle_share(schedule: str, p: int, v: int) -> float:
    """The ratio of a schedule's idle time to that of 1F1B, by published formulas, or counted.

    >>> idle_share("interleaved", 8, 4), idle_share("zb-h1", 8, 1)
    (0.25, 0.3333333333333333)
    """
    if p == 1:
        return 0.0
    return max(0.0, idle_time(schedule, p, v) / idle_time("1f1b", p, 1))


def step_seconds(
    request: Request, work: Work, c: Constants, on_host: tuple[float, float] = (0.0, 0.0)
) -> dict[str, float]:
    """Seconds by PARTS; they sum to the step. ``on_host``: as in training.estimate.memory."""
    split, training = request.split, request.training
    kinds = [layer_seconds(request, layer, c)(training.recompute) for layer in work.kinds]
    exposed, gathered = replica_seconds(request, work.replicas, c)
    costs = Costs(
        kinds=[kind.total for kind in kinds],
        head=head_seconds(request, work.ends, c),
        send=send_seconds(request, work.ends, c) * split.vpp,
        launch=launch_seconds(request, c),
        exposed=exposed,
        gathered=gathered,
        states=work.replicas.states,
        held=work.replicas.held,
        on_host=on_host,
    )
    layers = np.array(work.layers)
    step = step_of(
        *(request, costs, layers.T),
        *(training.micro_batches, training.weight_passes),
        *(idle_share(training.schedule, split.pp, split.vpp), c),
    )
    numbers = work.layers[at := int(step.stages.argmax())]
    summed = Timed(*(sum(map(mul, numbers, each)) for each in zip(*kinds)))
    causes = {**summed._asdict(), "pp": costs.send}
    causes["compute"] += costs.head * (at == len(work.layers) - 1)
    parts = {name: training.micro_batches * value for name, value in causes.items()}
    parts["host"] = step.busy - sum(parts.values())
    parts |= {name: getattr(step, name) for name in ("bubble", "dp", "optimizer", "offload")}
    return {name: float(parts[name]) for name in PARTS}


def step_of(
    job: TrainingJob,
    costs: Costs,
    layers: Sequence[np.ndarray] | np.ndarray,
    m: Number,
    passes: Number,
    idle: Number,
    c: Constants,
) -> Step:
    """The step that follows from its costs, for one layout or for many at once.

    layers: numbers of layers of each pipeline rank, of each of the model's kinds; ranks are the
    first axis of each, and all other values broadcast against the remaining axes. m: micro-batches;
    passes: `weight_passes` of Training; idle: `idle_share` of the schedule.
    """
    gpu = sum(map(mul, layers, costs.kinds)) + costs.send
    gpu[-1] += costs.head
    host = sum(map(mul, layers, costs.launch))
    stages = (gpu**SHARP + host**SHARP) ** (1.0 / SHARP)
    slowest = stages.max(axis=0)
    busy = m * slowest
    dp, offload = costs.exposed, 0.0
    if np.any(costs.gathered):
        dp = dp + beyond(m * costs.gathered, c["fsdp_hidden"] * busy)
    if job.training.offload != "none":
        how, precision = job.training, PRECISIONS[job.training.precision]
        crosses = crossing(how, precision, costs.states, costs.on_host, (m, passes))
        during, after = crosses.seconds(job.machine.link)
        ranks = min(job.gpus, job.gpus_per_node)
        offload = beyond(during, busy) + after + UPDATE * ranks * crosses.updated
    passed = c["state_bytes"] * costs.states * (1.0 - costs.on_host[0])
    passed = passed + c["clear_bytes"] * costs.held
    is_apart = len(stages) > 1 and sums_apart(job.training)
    alone = costs.exposed > 0.0 if is_apart else False
    optimizer = passed / job.machine.hbm + c["step"] + c["sum_apart"] * alone
    return Step(stages, busy, (stages.sum(axis=0) - slowest) * idle, dp, optimizer, offload)


def sums_apart(training: Training) -> bool:
    """Whether gradients of stages are summed after the last micro-batch, beside nothing, as under
    DeepSpeed with Megatron's layers before those had shares of states of their own (2022).

    Such steps have a part that more micro-batches do not lengthen, beyond their bubble: 3.8 s of 36
    and 107 (BigScience, 32 and 128 of them, 8 replicas), 6 s of 44 to 60 (MT-NLG, 160 to 240, 8 to
    12), 11 s of 89 and 123 (GLM-130B, 176 and 256, 24).
    """
    is_of_its_time = not training.flash and not training.sequence_parallel
    return training.zero == 1 and is_of_its_time


def launch_seconds(request: Request, c: Constants) -> tuple[float, ...]:
    """Seconds of the host to launch a layer's kernels, forward and backward, of each of the model's
    kinds.

    Software that starts tensor parallel collectives from Python pays for each rank of the group,
    more for those of other nodes, and more still beside the messages of a pipeline. Routing adds
    kernels, and so does each expert on the rank, whose products are quantized and started one by
    one.
    """
    tp, pp, model = request.split.tp, request.split.pp, request.model
    if tp == 1 or "launch_tp" not in c:
        plain = c["launch"]
    elif pp == 1:
        plain = max(c["launch_tp"], c["launch_rank"] * tp)
    else:
        nodes = max(1.0, tp / request.domain)
        by_rank = c["launch_pp_rank"] * tp * (1.0 + c["launch_node"] * log2(nodes))
        plain = c["launch_pp"] + by_rank
    routed = []
    for kind in model.kinds:
        local = kind.moe.experts / request.split.ep if kind.moe else 0.0
        more = (c["launch_routing"] + c["launch_expert"] * local) * (local > 0)
        routed.append(plain + more)
    return tuple(routed)


def stall_seconds(request: Request, c: Constants, fullness: float) -> tuple[float, float]:
    """Seconds that stalled messages add to a step, and the share of similar runs that stall.

    fullness: bytes needed over bytes of the GPU. Each of a micro-batch's messages between stages
    waits ``stall``; without stages a micro-batch waits ``stall_alone`` for its collectives.
    """
    if "stall" not in c:
        return 0.0, 0.0
    pp, m = request.split.pp, request.training.micro_batches
    signs = stall_signs(request, c, fullness)
    score = sum(c[name] * sign for name, sign in signs.items())
    each = c["stall_alone"] if pp == 1 else c["stall"] * 2.0 * (pp - 1) / pp
    return each * (m + pp - 1), 1.0 / (1.0 + exp(-score))


def stall_signs(request: Request, c: Constants, fullness: float) -> dict[str, float]:
    """By constant what the odds of a stall depend on: stages at all, on many GPUs, and fewer
    messages of two; gradients that are summed beside the messages of stages (ZeRO-0), and over the
    network where a stage's neighbours are on other nodes; many replicas; and a full memory."""
    split, gpus = request.split, request.gpus
    staged, many, some = split.pp > 1, gpus > c["stall_many"], gpus > c["stall_some"]
    summed = request.training.zero == 0 and split.dp > 1
    is_far = request.stride("pp") >= request.domain
    signs = {
        "stall_odds": staged,
        "stall_odds_many": staged and many,
        "stall_odds_some": staged and some,
        "stall_odds_two": staged and many and split.pp == 2,
        "stall_odds_summed": staged and summed,
        "stall_odds_far": staged and summed and is_far,
        "stall_odds_wide": staged and some and split.dp > c["stall_wide"],
        "stall_odds_alone": not staged,
        "stall_odds_alone_many": not staged and many,
        "stall_odds_alone_summed": not staged and many and summed,
    }
    full = max(0.0, fullness - c["stall_full"])
    return {**{name: float(sign) for name, sign in signs.items()}, "stall_odds_full": full}


def decided(share: float) -> float:
    """The counted part of a stall, from 0 if it is unlikely to 1 if it is likely.

    >>> [round(decided(share), 2) for share in (0.1, 0.5, 0.9)]
    [0.0, 0.5, 1.0]
    """
    does, not_so = share**3, (1.0 - share) ** 3
    return does / (does + not_so)


def replica_seconds(request: Request, work: Replicas, c: Constants) -> tuple[Number, Number]:
    """Seconds of a step's data parallel messages that no computation hides; and, for ZeRO-3,
    seconds of messages for each micro-batch, forward and backward, that overlap its computation."""
    machine = request.machine
    shown = message_seconds(work.gradients, machine, c)
    shown += message_seconds(work.parameters, machine, c)
    exposed = c["dp_exposed" if request.training.zero else "summed_exposed"] * shown
    return exposed, 2.0 * message_seconds(work.gathered, machine, c)
