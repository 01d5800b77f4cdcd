"""The operations of each kind of group in one step: which, how often, how large, by pipeline stage.

Volumes are buffers S as in `collectives`: the whole, of which a rank holds a piece or all. With
b micro-batch, s sequence, h hidden, t, c, d, p, e for tp, cp, dp, pp, ep, m micro-batches, v chunks
of the model on a rank, X = b s/c h bytes of one activation tensor:

    kind     what one layer and micro-batch costs                                   source
    tp       forward 2 all-reduces of X, backward 2; with sequence parallelism      [1] 3.2, [2]
             2 all-gathers + 2 reduce-scatters, backward the same and 2 all-gathers [3]
             of the saved input again; full recomputation the forward again,
             and that of mlp, moe or shared_experts what is sent inside them
    cp       K V of b s/c tokens, (c-1) times round the ring, twice back; as much   [4]
             with all-gather; or four all-to-alls forward, four backward
    ep       two all-to-alls of T k h bytes forward, two backward, T tokens a rank; [5]
             with DeepEP or HybridEP fewer copies of T h bytes: training.routing
    etp      an all-gather before the experts, a reduce-scatter after, and back     [5]
    pp       X (1/t of it with sequence parallelism) per boundary, both ways, and   [1] 2.2.2
             v times as many boundaries with v chunks

    dp-cp,   of P parameters of a rank, as its program does it: training.sharding   [6], [7]
    edp      .sent; of several instances or replicas the same inside each of them,
             and an all-reduce of what is left between them
    embd     all-reduce of the gradient of the embedding that first and last share  [8]

[1] arXiv:2104.04473; [2] arXiv:2205.05198 section 4.2.2; [3] NVIDIA/Megatron-LM d98e8a6 core/
tensor_parallel/layers.py, executed: 10 (t-1)/t X where [2] counts 8; [4] Transformer Engine's
p2p, all_gather and a2a (arXiv:2309.14509 for a2a); [5] Megatron-LM core/transformer/moe/
token_dispatcher.py; [6] arXiv:1910.02054 section 7; [7] Megatron-LM docs, distributed optimizer;
[8] Megatron-LM core/distributed/finalize_model_grads.py.

Of a layer with experts tp carries only attention and a shared expert: routed tokens stay as
sequence parallelism has cut them. Routing is taken to be even.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import mul

from groups.alternatives import divisors_near, not_a_multiple

from ..adapters import stage_adapted
from ..errors import refusal, require_choice
from ..kinds import LayerKind
from ..model import MAX_SIZE, Model
from ..parameters import StageParameters, stage_parameters
from ..recipe import PRECISIONS, Training
from ..recompute import is_beside_exchange, written
from ..sharding.counted import NOTHING, Counted, counted_by_stage
from ..sharding.held import element_bytes
from ..sharding.sent import SHARD, exchanges
from ..split import Split

RING, PAIRWISE, NEXT, BEFORE, ONCE = "ring", "pairwise", "next", "before", "once"
"""Communication patterns between the members of a group (training.traffic.per_step)."""

CP_ALGORITHMS = ("p2p", "all_gather", "a2a")
"""How the ranks of a cp group exchange keys and values, by Transformer Engine's names."""

FP32 = 4
"""Bytes of the values of the vocabulary-parallel cross entropy, which is computed in fp32."""

REPLICATED = ("norms", "router")
"""Kinds of parameters whose gradients differ over tp if it cuts the sequence instead of them."""


@dataclass(frozen=True)
class Demand:
    """One operation of one kind of group, in one step.

    Attributes:
        kind: the group, by its name in groups.megatron.parallel_state.
        what: the purpose, such as "forward" or "gradients".
        operation: as in training.collectives.cost.
        buffer: bytes of one operation, the largest of several, on the stage that sends most.
        counts: operations of one rank, by pipeline stage.
        volumes: bytes of all these operations, by pipeline stage.
        beside: the computation that usually hides it; empty if the next computation waits for it.
        pattern: how the bytes go between members.
    """

    kind: str
    what: str
    operation: str
    buffer: float
    counts: tuple[float, ...]
    volumes: tuple[float, ...]
    beside: str = ""
    pattern: str = RING

    @property
    def count(self) -> float:
        """Number of operations per step on a rank of the stage with the most of them."""
        return max(self.counts)


def demands(
    model: Model,
    split: Split,
    training: Training,
    cp_algorithm: str = "p2p",
    stages: Sequence[StageParameters] = (),
) -> list[Demand]:
    """Every operation of a step, kind by kind; operations that move nothing are left out.

    stages: the part of the model on a rank of each stage, if already known.

    >>> gpt = Model(layers=1, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> layer = demands(gpt, Split(tp=8), Training(sequence_parallel=False))[0]
    >>> layer.kind, layer.what, layer.operation, layer.count, layer.buffer / 2**20  # MiB
    ('tp', 'forward', 'all_reduce', 2.0, 48.0)

    Errors: LayoutError as `require`, and as `Split.require_fits` where stages are not given.
    """
    split = split.placed(training.rule.placement)
    require(model, split, training, cp_algorithm)
    stages = tuple(stages) or stage_parameters(model, split)
    step = _Step(model, split, training, stages)
    causes = (
        *(_tensor(step), _ends(step), _context(step, cp_algorithm)),
        *(_expert(step), _pipeline(step), _data(step)),
    )
    return [sent for cause in causes for sent in cause if sent.buffer and any(sent.counts)]


class _Step:
    """The inputs of the rows; lists are by pipeline stage."""

    def __init__(
        self, model: Model, split: Split, training: Training, stages: Sequence[StageParameters]
    ) -> None:
        self.model, self.split, self.training, self.stages = model, split, training, stages
        self.precision = PRECISIONS[training.precision]
        self.tokens = training.tokens(model, split)
        self.activation = self.tokens * model.hidden * training.element  # X
        self.is_cut = training.sequence_parallel and split.tp > 1
        # The number of passes of a micro-batch through a layer.
        self.passes = ["forward", "backward"] + ["recompute"] * (training.recompute == "full")
        # The share of micro-batches that run on one stage of a rank: half with DualPipe's two.
        self.share = 0.5 if split.placement == "both ways" else 1.0
        # What one micro-batch runs on a rank: layers, MoE layers, embedding, output.
        self.kinds = [[self.share * number for number in stage.kinds] for stage in stages]
        self.moe_layers = [self.share * stage.moe_layers for stage in stages]
        self.first = [self.share * stage.is_first for stage in stages]
        self.last = [self.share * stage.is_last for stage in stages]

    def counted(self, each: Callable[[LayerKind], float]) -> list[float]:
        """What ``each`` says of a layer, for all layers of every stage."""
        values = [each(kind) for kind in self.model.kinds]
        return [sum(map(mul, numbers, values)) for numbers in self.kinds]

    def goes_again(self, *modules: str) -> bool:
        """Whether one of these modules is recomputed, by itself rather than with whole layers."""
        return not self.training.recomputed.isdisjoint(modules)

    def each(
        self, kind: str, what: str, operation: str, size: float, times: Iterable[float], *how: str
    ) -> Demand:
        """The demand of equal operations in every micro-batch; how: fields beside and pattern."""
        counts = tuple(self.training.micro_batches * time for time in times)
        volumes = tuple(count * size for count in counts)
        return Demand(kind, what, operation, size, counts, volumes, *how)

    def once(
        self,
        kind: str,
        what: str,
        operation: str,
        sizes: Sequence[float],
        beside: str,
        times: float,
    ) -> Demand:
        """The demand of operations that run once (or ``times``) per step, on all that a rank of
        each stage holds."""
        counts, volumes = (float(times),) * len(sizes), tuple(times * size for size in sizes)
        return Demand(kind, what, operation, max(sizes), counts, volumes, beside)

    def several(
        self,
        kind: str,
        what: str,
        operation: str,
        every: Sequence[Counted],
        beside: str,
        times: float,
    ) -> Demand:
        """The demand of collectives of several sizes, of each stage so many every time."""
        counts = tuple(float(times * found.number) for found in every)
        volumes = tuple(times * found.bytes for found in every)
        most = max(found.most for found in every)
        return Demand(kind, what, operation, most, counts, volumes, beside)


def _tensor(step: _Step) -> Iterator[Demand]:
    """Tensor parallelism in the layers, between column- and row-parallel matrices; and, once per
    step, the gradients of replicated weights."""
    if step.split.tp == 1:
        return
    blocks = step.counted(lambda kind: kind.blocks)
    mlp, of_experts = step.goes_again("mlp"), step.goes_again("moe", "shared_experts")

    def recomputed(kind: LayerKind) -> bool:
        dense = any(part.dense_width for part in kind.feed_forwards)
        return dense and (of_experts if kind.has_experts else mlp)

    again = step.counted(recomputed)
    passes = [(what, blocks) for what in step.passes]
    for what, times in (*passes, ("recompute", again)):
        for operation in ("all_gather", "reduce_scatter") if step.is_cut else ("all_reduce",):
            yield step.each("tp", what, operation, step.activation, times)
    if step.is_cut:
        yield step.each("tp", "regather", "all_gather", step.activation, blocks, "weights")
        held = [sum(stage.by_kind.get(kind, 0) for kind in REPLICATED) for stage in step.stages]
        sizes = [step.precision.gradient * part for part in held]
        yield step.once("tp", "replicated", "all_reduce", sizes, "", 1)


def _ends(step: _Step) -> Iterator[Demand]:
    """Tensor parallelism in embedding, output layer and loss, which divides their matrices along
    the vocabulary."""
    if step.split.tp == 1:
        return
    first, last, size = step.first, step.last, step.activation
    whole = ("reduce_scatter", "all_gather") if step.is_cut else ("all_reduce",)
    yield from (step.each("tp", "embedding", operation, size, first) for operation in whole)
    yield from (step.each("tp", "output", operation, size, last) for operation in whole[::-1])
    if step.is_cut:
        yield step.each("tp", "output_regather", "all_gather", size, last, "weights")
    # Largest logit, the target's logit, the sum of exponentials.
    yield step.each("tp", "loss", "all_reduce", step.tokens * FP32, [3 * n for n in last])


def _context(step: _Step, algorithm: str) -> Iterator[Demand]:
    """Context parallelism: keys and values between the ranks that share a sequence."""
    c, t = step.split.cp, step.split.tp
    if c == 1:
        return
    widths: dict[tuple[int, int], list[int]] = {}  # kinds that exchange as much
    for place, kind in enumerate(step.model.kinds):
        widths.setdefault(kind.exchanged(t), []).append(place)
    for exchanged, places in widths.items():
        layers = [sum(numbers[place] for place in places) for numbers in step.kinds]
        if exchanged[1]:
            yield from _keys_values(step, algorithm, exchanged, layers)


def _keys_values(
    step: _Step, algorithm: str, exchanged: tuple[int, int], layers: list[float]
) -> Iterator[Demand]:
    """The exchange of these layers: queries with outputs and keys with values of a token."""
    c = step.split.cp
    per_token = step.tokens * step.training.element / step.split.tp
    queries, keys_values = (per_token * width for width in exchanged)
    for what in step.passes:
        turns = 2 if what == "backward" else 1  # K and V; in the backward pass also their gradients
        if algorithm == "p2p":
            hops = [turns * (c - 1) * n for n in layers]
            yield step.each("cp", what, "send_recv", keys_values, hops, "attention")
        elif algorithm == "all_gather":
            yield step.each("cp", what, "all_gather", c * keys_values, layers)
            if what == "backward":
                yield step.each("cp", what, "reduce_scatter", c * keys_values, layers)
        else:
            twice = [2 * n for n in layers]
            for size in (queries / 2, keys_values / 2):
                yield step.each("cp", what, "all_to_all", size, twice, "", PAIRWISE)


def _expert(step: _Step) -> Iterator[Demand]:
    """Expert parallelism: tokens to their experts and back; expert tensor parallelism: their
    all-gather and reduce-scatter."""
    split, moe = step.split, step.moe_layers
    # Another micro-batch's computation hides it (arXiv:2412.19437 section 3.2.1).
    beside = "compute" if step.training.hides_exchange else ""
    how = (beside, ONCE if step.training.sends_once else PAIRWISE)
    routed = step.activation / (split.tp if step.is_cut else 1) * step.model.top_k
    sent = routed * step.training.dispatched
    passes = [*step.passes, *(["recompute"] if step.goes_again("moe") else [])]
    for what in passes if any(moe) else ():
        if split.ep > 1 and sent == routed:
            yield step.each("ep", what, "all_to_all", routed, [2 * n for n in moe], *how)
        elif split.ep > 1:
            yield step.each("ep", what, "all_to_all", sent, moe, *how)
            yield step.each("ep", what, "all_to_all", routed, moe, *how)
        if split.etp > 1:
            yield step.each("etp", what, "all_gather", split.etp * routed, moe)
            yield step.each("etp", what, "reduce_scatter", split.etp * routed, moe)


def _pipeline(step: _Step) -> Iterator[Demand]:
    """Pipeline parallelism: activations to the rank of the next stage, gradients to the rank of the
    previous stage.

    Stages in a loop send in one direction, v times round; in a V shape a rank's second stage sends
    in the other direction; DualPipe sends half of the micro-batches in each direction.
    """
    p, v, is_loop = step.split.pp, step.split.vpp, step.split.placement == "loop"
    if p == 1:
        return
    sent = step.activation / (step.split.tp if step.is_cut else 1)
    beside = "" if is_loop and v == 1 else "compute"
    times = float(v) if is_loop else step.share
    forth = [times] * (p - 1) + [v - 1.0 if is_loop else 0.0]
    ways = ((forth, NEXT), (forth[::-1], BEFORE))
    for what, turned in (("activations", ways), ("gradients", ways[::-1])):
        for each, pattern in turned[:1] if is_loop else turned:
            yield step.each("pp", what, "send_recv", sent, each, beside, pattern)


def _data(step: _Step) -> Iterator[Demand]:
    """Data parallelism: gradients and parameters between ranks with the same part of the model."""
    split = step.split
    dense, experts = step.training.ranks_sharing(split)
    instances = step.training.instances
    if split.dp * split.cp > 1:
        kinds = ("dp-cp",) if instances == 1 else ("intra-dp-cp", "inter-edp")
        yield from _replicas(step, kinds, 0, dense)
    if split.edp > 1 and step.model.experts:
        kinds = ("edp",) if instances == 1 else ("intra-edp", "inter-edp")
        yield from _replicas(step, kinds, 1, experts)
    is_shared = _shares_embedding(step.model) and not step.training.is_adapted
    if is_shared and split.pp > 1 and split.placement == "loop":
        gradient = step.stages[0].by_kind["embedding"] * step.precision.gradient
        ends = tuple(map(sum, zip(step.first, step.last)))
        volumes = tuple(n * gradient for n in ends)
        yield Demand("embd", "tied", "all_reduce", gradient, ends, volumes)


def _shares_embedding(model: Model) -> bool:
    """Whether the last stage has the word embedding too: for a tied output layer, or for
    multi-token prediction (NVIDIA/Megatron-LM d98e8a6
    megatron/core/distributed/finalize_model_grads.py, _get_shared_word_embedding_weight)."""
    return model.tied or model.mtp_layers > 0


def _replicas(step: _Step, kinds: Sequence[str], which: int, ranks: int) -> Iterator[Demand]:
    """The operations of one data parallel group (training.sharding.sent), and of the replicas
    between groups; kinds: of both; which: 0 what is no expert, 1 experts. ranks: that cut one copy.

    Adapters alone have gradients, and are gathered after an update; where ranks cut weights, the
    frozen ones are gathered too, in their format.
    """
    most, training = max(stage.total for stage in step.stages), step.training
    trained: list[float] = [(stage.dense, stage.experts)[which] for stage in step.stages]
    frozen = [0.0] * len(trained)
    if training.is_adapted:
        adapted = [stage_adapted(step.model, step.split, training, each) for each in step.stages]
        trained = [stage.trained[which] for stage in adapted]
        if element_bytes(training)["weights"][1]:
            frozen = [stage.frozen[which] for stage in adapted]
    by_stage = counted_by_stage(step.model, step.split, training, step.stages)
    for row in exchanges(training, step.split, most):
        if row.among == SHARD and ranks == 1:
            continue
        kind = kinds[0] if row.among == SHARD else kinds[-1]
        if any((row.what, 0) in found for found in by_stage):
            every = [found.get((row.what, which), NOTHING) for found in by_stage]
            yield step.several(kind, row.what, row.operation, every, row.beside, row.times)
            continue
        sizes = [row.element * part / (ranks if row.is_part else 1) for part in trained]
        if row.what.startswith("parameters"):
            sizes = [size + more for size, more in zip(sizes, frozen)]
        yield step.once(kind, row.what, row.operation, sizes, row.beside, row.times)


def require(model: Model, split: Split, training: Training, cp_algorithm: str = "p2p") -> None:
    """Raises LayoutError for a split that the model or its training does not allow.

    >>> gpt = Model(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> require(gpt, Split(dp=8, ep=8), Training())
    Traceback (most recent call last):
    groups.errors.LayoutError: ep 8 spreads experts, and the model has none; try ep 1

    Errors: LayoutError for ep without experts; for heads that all-to-all cannot deal to cp ranks;
    for experts with tp above 1 and no sequence parallelism, which Megatron does not train; and for
    an exchange of experts that cannot hide.
    """
    require_choice("cp_algorithm", cp_algorithm, CP_ALGORITHMS)
    if split.ep > 1 and not model.experts:
        raise refusal("ep-without-experts", "ep", {"ep": 1}, ep=split.ep)
    if cp_algorithm == "a2a" and model.heads // split.tp % split.cp:
        error = not_a_multiple(
            "heads", model.heads, {"tp": split.tp, "cp": split.cp}, maximum=MAX_SIZE
        )
        raise error.replace(
            control="cp_algorithm",
            alternatives=divisors_near("cp", split.cp, model.heads // split.tp),
        )
    if model.experts and split.tp > 1 and not training.sequence_parallel:
        raise refusal(
            "experts-need-sequence-parallel",
            "sequence_parallel",
            {"sequence_parallel": 1},
            tp=split.tp,
        )
    if training.ep_overlap and not training.rule.pairs:
        _require_overlap(split, training)


def _require_overlap(split: Split, training: Training) -> None:
    """Raises LayoutError for an overlapped all-to-all of experts where Megatron has none
    (NVIDIA/Megatron-LM d98e8a6 core/transformer/transformer_config.py:3002-3032)."""
    off = {"ep_overlap": 0}
    if split.ep == 1:
        raise refusal("overlap-without-ep", "ep_overlap", off)
    if split.pp > 1 and split.vpp == 1:
        raise refusal("overlap-needs-chunks", "ep_overlap", {"vpp": 2}, off, pp=split.pp)
    if training.recompute == "full":
        raise refusal("overlap-needs-kept", "ep_overlap", {"recompute": "selective"}, off)
    if not is_beside_exchange(training.recompute):
        fewer = {"recompute": written(training.recomputed - {"moe"})}
        raise refusal("overlap-needs-experts-kept", "ep_overlap", fewer, off)
