"""What each kind of group sends in one step: operation, how often, how large, by pipeline stage.

Volumes are buffers S as in `collectives`: the whole, of which a rank holds a piece or all. With
b micro-batch, s sequence, h hidden, t, c, d, p, e for tp, cp, dp, pp, ep, m micro-batches, v chunks
of the model on a rank, X = b s/c h bytes of one activation tensor:

    kind     what one layer and micro-batch costs                                   source
    tp       forward 2 all-reduces of X, backward 2; with sequence parallelism      [1] 3.2, [2]
             2 all-gathers + 2 reduce-scatters, backward the same and 2 all-gathers [3]
             of the saved input again; full recomputation the forward again
    cp       K V of b s/c tokens, (c-1) times round the ring, twice back; as much   [4]
             with all-gather; or four all-to-alls forward, four backward
    ep       two all-to-alls of T k h bytes forward, two backward, T tokens a rank  [5]
    etp      an all-gather before the experts, a reduce-scatter after, and back     [5]
    pp       X (1/t of it with sequence parallelism) per boundary, both ways, and   [1] 2.2.2
             v times as many boundaries with v chunks

    dp-cp,   once a step, P parameters of a rank: all-reduce of gradients; or       [6], [7]
    edp      reduce-scatter and all-gather (ZeRO-1, the distributed optimizer), the
             first of it after every micro-batch (ZeRO-2, which keeps no whole
             gradient), or three passes a micro-batch (ZeRO-3, FSDP)
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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from groups.alternatives import divisors_near, not_a_multiple

from ..errors import refusal, require_choice
from ..memory.per_stage import PRECISIONS, Precision, Training
from ..model import MAX_SIZE, Model
from ..parameters import StageParameters, stage_parameters
from ..split import Split
from .links import BEFORE, NEXT, PAIRWISE, RING

CP_ALGORITHMS = ("p2p", "all_gather", "a2a")
"""How the ranks of a cp group see each other's keys and values; Transformer Engine's names."""

FP32 = 4
"""Bytes of the values of the vocabulary-parallel cross entropy, which is computed in fp32."""


REPLICATED = ("norms", "router")
"""Kinds of parameters whose gradients differ over tp where it cuts the sequence, not them."""


@dataclass(frozen=True)
class Demand:
    """One operation of one kind of group, in one step.

    Attributes:
        kind: the group, by its name in groups.megatron.parallel_state.
        what: for which purpose, such as "forward" or "gradients".
        operation: as in training.collectives.cost.
        buffer: bytes of one operation, on the stage that sends most.
        counts: operations of one rank, by pipeline stage.
        volumes: bytes of all of them, by pipeline stage.
        beside: the computation that usually hides it; empty if the next one waits for it.
        pattern: how the bytes go between members (training.traffic.links).
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
        """Operations of a rank of the stage that has most."""
        return max(self.counts)


def demands(
    model: Model,
    split: Split,
    training: Training,
    cp_algorithm: str = "p2p",
    stages: Sequence[StageParameters] = (),
) -> list[Demand]:
    """Everything that is sent in a step, kind by kind; what moves nothing is left out.

    stages: what a rank of each stage holds, where that is known already.

    >>> gpt = Model(layers=1, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> layer = demands(gpt, Split(tp=8), Training(sequence_parallel=False))[0]
    >>> layer.kind, layer.what, layer.operation, layer.count, layer.buffer / 2**20  # MiB
    ('tp', 'forward', 'all_reduce', 2.0, 48.0)

    Errors: LayoutError as `require`, and as `Split.require_fits` where stages are not given.
    """
    split = split.placed(training.rule.placement)
    require(model, split, training, cp_algorithm)
    stages = tuple(stages) or stage_parameters(model, split)
    shape = _Shape(model, split, training, stages, cp_algorithm)
    causes = (_tensor, _ends, _context, _expert, _pipeline, _data)
    candidates = (demand for cause in causes for demand in cause(shape))
    return [demand for demand in candidates if demand.buffer and any(demand.counts)]


@dataclass(frozen=True)
class _Shape:
    """What the rows are worked out from."""

    model: Model
    split: Split
    training: Training
    stages: tuple[StageParameters, ...]
    cp_algorithm: str

    @property
    def tokens(self) -> float:
        return self.training.tokens(self.model, self.split)

    @property
    def element(self) -> int:
        """Bytes of one element of activations."""
        return max(2, self.precision.weight)

    @property
    def precision(self) -> Precision:
        return PRECISIONS[self.training.precision]

    @property
    def activation(self) -> float:
        """Bytes of one activation tensor, before tp cuts it: X."""
        return self.tokens * self.model.hidden * self.element

    @property
    def is_cut(self) -> bool:
        """Whether tp cuts the sequence between its blocks."""
        return self.training.sequence_parallel and self.split.tp > 1

    @property
    def passes(self) -> list[str]:
        """How often a micro-batch goes through a layer."""
        return ["forward", "backward"] + ["recompute"] * (self.training.recompute == "full")

    @property
    def layers(self) -> list[float]:
        """Layers of a rank that one micro-batch meets, by stage."""
        return [self.both * stage.layers for stage in self.stages]

    @property
    def moe_layers(self) -> list[float]:
        """Of these, those with experts."""
        return [self.both * stage.moe_layers for stage in self.stages]

    def each(
        self,
        kind: str,
        what: str,
        operation: str,
        buffer: float,
        times: Iterable[float],
        beside: str = "",
        pattern: str = RING,
    ) -> Demand:
        """So many operations of one size in every micro-batch, by stage."""
        counts = tuple(self.training.micro_batches * time for time in times)
        volumes = tuple(count * buffer for count in counts)
        return Demand(kind, what, operation, buffer, counts, volumes, beside, pattern)

    def once(
        self,
        kind: str,
        what: str,
        operation: str,
        held: Sequence[float],
        size: int,
        beside: str = "",
        times: int = 1,
    ) -> Demand:
        """One operation a step, or so many, on all that a rank of each stage holds."""
        volumes = tuple(times * part * size for part in held)
        counts = tuple(float(times) for _ in held)
        return Demand(kind, what, operation, max(held) * size, counts, volumes, beside)

    @property
    def both(self) -> float:
        """The share of micro-batches that meet one of a rank's stages: of DualPipe's two, half."""
        return 0.5 if self.split.placement == "both ways" else 1.0

    @property
    def first(self) -> list[float]:
        """What the ranks with the embedding do in every micro-batch that meets it there."""
        return [self.both * stage.is_first for stage in self.stages]

    @property
    def last(self) -> list[float]:
        """What the ranks with the output do in every micro-batch that meets it there."""
        return [self.both * stage.is_last for stage in self.stages]


def _tensor(shape: _Shape) -> Iterator[Demand]:
    """The layers, between column- and row-parallel matrices; once a step the replicated weights."""
    if shape.split.tp == 1:
        return
    shared = 1 if shape.model.shared_expert_ffn else 0
    blocks = [2 * n + (shared - 1) * moe for n, moe in zip(shape.layers, shape.moe_layers)]
    whole = ("all_gather", "reduce_scatter") if shape.is_cut else ("all_reduce",)
    for what in shape.passes:
        for operation in whole:
            yield shape.each("tp", what, operation, shape.activation, blocks)
    if shape.is_cut:
        yield shape.each("tp", "regather", "all_gather", shape.activation, blocks, "weights")
        held = [sum(stage.by_kind.get(kind, 0) for kind in REPLICATED) for stage in shape.stages]
        yield shape.once("tp", "replicated", "all_reduce", held, shape.precision.gradient)


def _ends(shape: _Shape) -> Iterator[Demand]:
    """Embedding, output layer and loss, whose matrices tp cuts by the vocabulary."""
    if shape.split.tp == 1:
        return
    first, last, size = shape.first, shape.last, shape.activation
    whole = ("reduce_scatter", "all_gather") if shape.is_cut else ("all_reduce",)
    yield from (shape.each("tp", "embedding", operation, size, first) for operation in whole)
    yield from (shape.each("tp", "output", operation, size, last) for operation in whole[::-1])
    if shape.is_cut:
        yield shape.each("tp", "output_regather", "all_gather", size, last, "weights")
    # Largest logit, the target's logit, the sum of exponentials.
    yield shape.each("tp", "loss", "all_reduce", shape.tokens * FP32, [3 * n for n in last])


def _context(shape: _Shape) -> Iterator[Demand]:
    """Keys and values between the ranks that hold a sequence."""
    c, t, model = shape.split.cp, shape.split.tp, shape.model
    if c == 1:
        return
    per_token = shape.tokens * shape.element
    queries = per_token * (model.query_width + model.attention_width) / t
    keys_values = per_token * (model.key_width + model.value_width) / t
    algorithm, layers = shape.cp_algorithm, shape.layers
    for what in shape.passes:
        turns = 2 if what == "backward" else 1  # K and V, and back their gradients too
        if algorithm == "p2p":
            hops = [turns * (c - 1) * n for n in layers]
            yield shape.each("cp", what, "send_recv", keys_values, hops, "attention")
        elif algorithm == "all_gather":
            yield shape.each("cp", what, "all_gather", c * keys_values, layers)
            if what == "backward":
                yield shape.each("cp", what, "reduce_scatter", c * keys_values, layers)
        else:
            twice = [2 * n for n in layers]
            for size in (queries / 2, keys_values / 2):
                yield shape.each("cp", what, "all_to_all", size, twice, pattern=PAIRWISE)


def _expert(shape: _Shape) -> Iterator[Demand]:
    """Tokens to their experts and back; expert tensor parallelism gathers and scatters them."""
    split, model = shape.split, shape.model
    moe = shape.moe_layers
    if not any(moe):
        return
    # Those of one op of a pair hide behind the other (arXiv:2412.19437 section 3.2.1).
    beside = "compute" if shape.training.rule.pairs else ""
    held = shape.activation / (split.tp if shape.is_cut else 1)
    routed = held * model.top_k
    for what in shape.passes:
        if split.ep > 1:
            twice = [2 * n for n in moe]
            yield shape.each("ep", what, "all_to_all", routed, twice, beside, PAIRWISE)
        if split.etp > 1:
            yield shape.each("etp", what, "all_gather", split.etp * routed, moe)
            yield shape.each("etp", what, "reduce_scatter", split.etp * routed, moe)


def _pipeline(shape: _Shape) -> Iterator[Demand]:
    """Activations to the rank of the next stage, gradients to that of the one before.

    Stages in a loop send one way, and v chunks go round again; in V shape a rank's second stage
    sends the other way; DualPipe sends half of the micro-batches each way.
    """
    p, v, placement = shape.split.pp, shape.split.vpp, shape.split.placement
    if p == 1:
        return
    sent = shape.activation / (shape.split.tp if shape.is_cut else 1)
    beside = "" if placement == "loop" and v == 1 else "compute"
    times = float(v) if placement == "loop" else shape.both
    forth = [times] * (p - 1) + [v - 1.0 if placement == "loop" else 0.0]
    back = forth[::-1]
    for what, one_way, other_way in (
        ("activations", (forth, NEXT), (back, BEFORE)),
        ("gradients", (back, BEFORE), (forth, NEXT)),
    ):
        for each, pattern in (one_way,) if placement == "loop" else (one_way, other_way):
            yield shape.each("pp", what, "send_recv", sent, each, beside, pattern)


def _data(shape: _Shape) -> Iterator[Demand]:
    """Gradients and parameters between the ranks that hold the same slice of the model."""
    split = shape.split
    if split.dp * split.cp > 1:
        yield from _replicas(shape, "dp-cp", [stage.dense for stage in shape.stages])
    if split.edp > 1:
        yield from _replicas(shape, "edp", [stage.experts for stage in shape.stages])
    if shape.model.tied and split.pp > 1 and split.placement == "loop":
        gradient = shape.stages[0].by_kind["embedding"] * shape.precision.gradient
        ends = tuple(map(sum, zip(shape.first, shape.last)))
        volumes = tuple(n * gradient for n in ends)
        yield Demand("embd", "tied", "all_reduce", gradient, ends, volumes)


def _replicas(shape: _Shape, kind: str, held: Sequence[float]) -> Iterator[Demand]:
    """One data parallel group, as the stage of ZeRO has it."""
    m, zero = shape.training.micro_batches, shape.training.zero
    weight, gradient = shape.precision.weight, shape.precision.gradient
    if zero == 0:
        yield shape.once(kind, "gradients", "all_reduce", held, gradient, "last_backward")
    elif zero == 3:
        yield shape.once(kind, "parameters", "all_gather", held, weight, "forward", m)
        yield shape.once(kind, "parameters_again", "all_gather", held, weight, "backward", m)
        yield shape.once(kind, "gradients", "reduce_scatter", held, gradient, "backward", m)
    else:
        hidden = ("backward", m) if zero == 2 else ("last_backward", 1)
        yield shape.once(kind, "gradients", "reduce_scatter", held, gradient, *hidden)
        yield shape.once(kind, "parameters", "all_gather", held, weight, "first_forward")


def require(model: Model, split: Split, training: Training, cp_algorithm: str = "p2p") -> None:
    """Refuse a cut that this model, or this way to train it, does not allow.

    >>> gpt = Model(layers=96, hidden=12288, heads=96, vocabulary=51200, sequence=2048)
    >>> require(gpt, Split(ep=8), Training())
    Traceback (most recent call last):
    groups.errors.LayoutError: ep 8 spreads experts, and the model has none; try ep 1

    Errors: LayoutError for ep without experts; for heads that all-to-all cannot deal to cp ranks;
    and for experts with tp above 1 and no sequence parallelism, which Megatron does not train.
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
