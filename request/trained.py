"""The model, batch, schedule and cluster that every view computes with.

>>> from .resolve import resolve
>>> trained = trained_of(resolve(State()), State())
>>> trained.name("en"), trained.training.schedule, trained.cluster.name
('Llama 3 8B', '1f1b', 'DGX H100')
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple, TypedDict

from descriptions import MEMORY
from groups import LayoutError
from groups.alternatives import not_a_multiple
from groups.errors import quoted
from groups.frameworks import Framework, framework_of
from groups.grouping import Grouping
from groups.inputs import checked_model
from groups.layout import Layout, framework_name
from groups.megatron.grids import GTP
from groups.mesh import whole_number
from groups.presets import SERVERS
from groups.stages.holdings import MAX_BATCH
from training.described import NUMBER_NAMES, MachineNumbers, described, start_of
from training.errors import is_amount
from training.estimate import Estimate, Request, estimate_of, layer_time
from training.estimate.answer import ROUNDS
from training.estimate.memory import room_of
from training.estimate.request import DENSE, require_numbers
from training.machine import Machine
from training.memory.per_stage import StageMemory, memory_per_stage
from training.model import MAX_SIZE, Model
from training.models import OLDER, shape_of_preset, training_of_preset
from training.pipeline import SCHEDULES
from training.pipeline.schedules import DEFAULT_VIRTUAL
from training.pipeline.spec import MAX_MICRO_BATCHES
from training.recipe import Training, variant_of
from training.recompute import WORDS, and_own, usual
from training.search import SearchJob, software_for
from training.sharding.words import ENGINES, UNSAID
from training.split import Split, held_by_ranks
from training.traffic.demands import require

from .errors import refusal
from .inputs import UNKNOWN, fields_of
from .model import ChosenModel, model_name, model_of, typed_layout
from .resolve import from_preset
from .state import State, is_empty, require_choice, texts_of

MOST_UNASKED = 64 * 1024
"""The largest default of micro-batches times ranks of a pipeline."""

GIB = 2**30


def _fixed(framework: str) -> Iterator[str]:
    """The options that a search must not change, as the framework has no others."""
    known = framework_of(framework)
    if known.one_chunk:
        yield "vpp"
    if not known.speaks_megatron:
        yield "ep_overlap"
    if not (known.replicates and known.engine == "fsdp2"):
        yield "instances"


# -- the batch -----------------------------------------------------------------------------------


class Batch(NamedTuple):
    """The samples of a step: micro_batches on each of dp pipelines, of micro_batch samples each;
    is_explicit: whether the state sets their number, not only the size of a micro-batch."""

    micro_batch: int
    micro_batches: int
    dp: int
    is_explicit: bool

    @property
    def global_batch(self) -> int:
        return self.micro_batch * self.micro_batches * self.dp


def batch_of(layout: Layout, state: State) -> Batch:
    """The batch by the micro-batches, the global batch, or both; by default
    `micro_batches_unasked`.

    >>> from .resolve import resolve
    >>> batch_of(resolve(State()), State())
    Batch(micro_batch=1, micro_batches=8, dp=4, is_explicit=False)
    """
    require_step(layout)
    dp, each = readers_of(layout).size, count_of(state, "micro_batch", 1)
    # 0 where they are not said
    count = count_of(state, "micro_batches", 0, MAX_MICRO_BATCHES)
    samples = count_of(state, "global_batch", 0, MAX_BATCH)
    if not count and not samples:
        count = micro_batches_unasked(layout.mesh.size("pp"))
        whole_number(each, "micro_batch", maximum=MAX_SIZE // (count * dp))
        return Batch(each, count, dp, is_explicit=False)
    if not count:
        whole_number(samples, "global_batch", maximum=min(MAX_SIZE, MAX_MICRO_BATCHES * each * dp))
    if not count and samples % (each * dp):
        by = {"micro_batch": each, "dp": dp}
        raise not_a_multiple("global_batch", samples, by, maximum=MAX_SIZE)
    batch = Batch(each, count or samples // (each * dp), dp, is_explicit=True)
    whole_number(batch.global_batch, "global_batch", maximum=MAX_SIZE)
    if samples not in (0, batch.global_batch):
        raise _disagree(batch, samples)
    return batch


def require_step(layout: Layout) -> None:
    """Errors: LayoutError for a server, which has no training step."""
    if layout.is_server:
        raise refusal("server-has-no-step", "framework", name=framework_name(layout.framework))


def readers_of(layout: Layout) -> Grouping:
    """The ranks that read different samples: those of dp and, with gtp, of gtp."""
    return layout.every.get("gtp-dp") or layout.every["dp"]


def micro_batches_unasked(pp: int) -> int:
    """The default number of micro-batches: four per stage, fewer for very long pipelines."""
    return min(ROUNDS * pp, max(1, MOST_UNASKED // pp))


def count_of(state: State, name: str, empty: int, most: int = MAX_SIZE) -> int:
    return state.number(name, empty, most=most)


def _disagree(batch: Batch, samples: int) -> LayoutError:
    """The refusal of a global batch that contradicts the micro-batches."""
    fixes: list[dict[str, object]] = [{"global_batch": batch.global_batch}]
    share = batch.micro_batch * batch.dp
    if samples % share == 0:
        fixes.insert(0, {"micro_batches": samples // share})
    return refusal(
        "batches-disagree",
        "micro_batches",
        *fixes,
        micro_batches=batch.micro_batches,
        micro_batch=batch.micro_batch,
        dp=batch.dp,
        product=batch.global_batch,
        global_batch=samples,
    )


def with_micro_batches(layout: Layout, state: State, count: int) -> dict[str, object]:
    """The change that sets so many micro-batches: of the global batch if that is set, else of their
    number."""
    if is_empty(state.global_batch):
        return {"micro_batches": count}
    micro_batch = count_of(state, "micro_batch", 1)
    changes: dict[str, object] = {"global_batch": count * micro_batch * readers_of(layout).size}
    return changes if is_empty(state.micro_batches) else {**changes, "micro_batches": ""}


# -- the schedule --------------------------------------------------------------------------------


def schedule_name(state: State) -> str:
    """The schedule of the pipeline: as selected, or as the virtual stages suggest."""
    if not is_empty(state.schedule):
        return state.schedule
    vpp = state.values["vpp"]
    return "interleaved" if isinstance(vpp, int) and vpp > 1 else "1f1b"


def virtual_stages(state: State) -> int:
    """Virtual stages per rank, as typed or else of the schedule; 1 counts as unset where the
    schedule has its own number."""
    name = schedule_name(state)
    rule = SCHEDULES[require_choice("schedule", name, SCHEDULES, ("interleaved", "1f1b"))]
    typed = count_of(state, "vpp", rule.v or DEFAULT_VIRTUAL)
    return rule.v if rule.v and typed == 1 else typed


def variant_of_job(layout: Layout, state: State) -> str:
    """The variant of its schedule that a job runs: in pairs, or as torch's pipelines have it."""
    engine = layout.made_by.engine if is_empty(state.engine) else state.engine
    return variant_of(engine, ep_overlap=bool(state.value("ep_overlap")))


def group_size(state: State, schedule: str) -> int | None:
    """Micro-batches per group, if the schedule takes groups; None: pp."""
    is_set = SCHEDULES[schedule].grouped and not is_empty(state.group_size)
    return count_of(state, "group_size", 0) if is_set else None


def recomputations_of(state: State, model: Model, now: str) -> tuple[str, ...]:
    """The recomputations of the framework, or of the published layout's software, and ``now``, the
    mildest first; modules are Megatron's.

    >>> from training.models import MODELS
    >>> llama = MODELS["llama3-8b"].model
    >>> recomputations_of(State(preset="bloom-176b"), llama, "selective")
    ('none', 'selective', 'full')
    >>> recomputations_of(State(), llama, "full")
    ('none', 'selective', 'core_attn,mlp', 'full')
    """
    framework, known = framework_of(state.framework), usual(model)
    if state.preset.startswith(OLDER):
        known = ("none", "full")
    elif framework.recomputes:
        known = framework.recomputes
    elif not framework.speaks_megatron:
        known = WORDS
    return and_own(known, now)


def fields_of_preset(name: str) -> dict[str, str]:
    """The fields of the model and its training that selecting a published layout sets.

    >>> list(fields_of_preset("nemotron4-340b-1536"))  # what derived.csv has is among them
    ['model', 'vpp', 'micro_batch', 'recompute', 'cluster', 'zero', 'schedule']
    >>> fields_of_preset("mcore-guide-llama-3-8b"), fields_of_preset("playground-16")
    ({'model': 'llama3-8b'}, {})
    """
    if name in SERVERS:
        return {"model": SERVERS[name].model_id, **SERVERS[name].serving}
    known, changes = shape_of_preset(name)
    model = {} if name == "playground-16" else {"model": known or UNKNOWN}
    return texts_of({**model, **changes, **training_of_preset(name)})


def published(preset: str) -> dict[str, str]:
    """All fields that a published layout sets."""
    return {**vars(from_preset(preset)), **fields_of_preset(preset)}


# -- all of it -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trained:
    """A model on a layout: its split, its training, and the bytes of a GPU."""

    chosen: ChosenModel
    split: Split
    training: Training
    cluster: Machine
    capacity: float  # bytes
    batch: Batch
    cp_algorithm: str  # how keys and values go round in a cp group
    recomputations: tuple[str, ...]  # that the framework has

    @property
    def model(self) -> Model:
        return self.chosen.model

    def name(self, language: str) -> str:
        """The name of the model within a sentence."""
        is_own = self.chosen.preset == UNKNOWN and not self.chosen.model_type
        return MEMORY["own_within"][language] if is_own else model_name(self.chosen, language)

    @property
    def cluster_id(self) -> str:
        return self.cluster.id

    def require(self) -> None:
        """Errors: LayoutError for a model or a training that is invalid."""
        require(self.model, self.split, self.training, self.cp_algorithm)

    def stages(self) -> tuple[StageMemory, ...]:
        """The memory of each stage. Errors: LayoutError for an invalid model, batch or schedule."""
        self.require()
        return memory_per_stage(self.model, self.split, self.training, room_of(self.capacity))

    def job(self, layout: Layout) -> SearchJob:
        """The job of a search for other layouts: the same model, batch, training, orders and
        GPUs."""
        return SearchJob(
            model=self.chosen.model,
            training=self.training,
            global_batch=self.batch.global_batch,
            gpus=layout.world_size,
            gpus_per_node=layout.gpus_per_node,
            cluster=self.cluster,
            capacity=self.capacity,
            cp=self.split.cp,
            vpp=self.split.vpp,
            account=self.split.account,
            cp_algorithm=self.cp_algorithm,
            dense=tuple(name for name in layout.mesh.names if name in DENSE),
            expert=() if layout.expert is None else layout.expert.names,
            fixed=frozenset(_fixed(layout.framework)),
            recomputations=self.recomputations,
        )

    def request(self, layout: Layout) -> Request:
        """The request of an estimate for the layout. Errors: as of `stages`."""
        self.require()
        return self.job(layout).request(self.split, self.training)

    def estimate(self, layout: Layout) -> Estimate:
        """The estimate of a step, by the constants with which layouts are compared.

        Errors: LayoutError for what the model, the batch or the schedule does not allow.
        """
        return estimate_of(self.request(layout), software_for(self.training))

    def layer_seconds(self, layout: Layout, kind: int) -> float:
        """The seconds of one layer of one of the model's kinds for one micro-batch, forward and
        backward.

        Errors: LayoutError for what the model does not allow, whatever the schedule takes.
        """
        return layer_time(self.request(layout), software_for(self.training), kind).total


def trained_of(layout: Layout, state: State) -> Trained:
    """The model and training of a state, checked field by field.

    Errors: LayoutError about the invalid field or control.
    """
    require_step(layout)
    if GTP in layout.mesh.names:
        fix = {"gtp": 1, "egtp": 1}
        raise refusal("gtp-is-not-counted", "gtp" if layout.mesh.size(GTP) > 1 else "egtp", fix)
    chosen = model_of(state)
    split = _split(layout, chosen.model, state)
    batch = batch_of(layout, state)
    schedule = schedule_name(state)
    own = {name: state.values[name] for name in (*fields_of("training"), "instances")}
    training = replace(
        sharded(checked_model(Training, own), layout.made_by, state),
        micro_batch=batch.micro_batch,
        micro_batches=batch.micro_batches,
        schedule=schedule,
        group_size=group_size(state, schedule),
    )
    cluster = machine_of_state(state)
    try:
        require_numbers(cluster, training.products)
    except LayoutError as error:
        wide = [{"products": "bf16"}]
        raise error.renamed({"precision": "products"}).replace(alternatives=wide) from None
    capacity = capacity_of(state)
    algorithm = str(state.value("cp_algorithm"))
    again = recomputations_of(state, chosen.model, training.recompute)
    return Trained(chosen, split, training, cluster, capacity, batch, algorithm, again)


def sharded(training: Training, framework: Framework, state: State) -> Training:
    """A training with the framework's own data parallelism, where the state does not say another
    one.

    >>> from groups.frameworks import FRAMEWORKS
    >>> names = ("torchtitan", "pytorch-ddp")
    >>> [sharded(Training(), FRAMEWORKS[name], State()).zero for name in names]
    [3, 0]
    """
    own, units = framework.engine, framework.wraps
    engine = own if is_empty(state.engine) else training.engine
    zero, precision = UNSAID[engine]
    return replace(
        training,
        engine=engine,
        units=units if engine == own else "blocks",
        zero=zero if is_empty(state.zero) else training.zero,
        precision=precision if is_empty(state.precision) else training.precision,
    )


def keeps_parts(layout: Layout, state: State) -> bool:
    """Whether ranks keep parts of the weights between steps (ZeRO-3, FSDP)."""
    engine = require_choice("engine", state.engine or layout.made_by.engine, ENGINES)
    zero = UNSAID[engine][0] if is_empty(state.zero) else state.value("zero")
    return engine != "ddp" and (zero == 3 or (engine == "fsdp2" and zero == 2))


def cluster_of(state: State) -> str:
    """The cluster of a state, an id of CLUSTERS."""
    return str(state.value("cluster"))


def machine_of_state(state: State) -> Machine:
    """The machines of a state: a row of the table, with the numbers that are typed over it.

    Errors: LayoutError about a number that a machine cannot have.
    """
    start, capacity = start_of(cluster_of(state)), state.values["capacity"]
    if capacity is None and all(state.values[name] in (None, "") for name in NUMBER_NAMES):
        return start
    typed = None if capacity is None else _gib(capacity, start)
    return described(start, state.parsed(MachineNumbers), typed)


class DealtOut(TypedDict, total=False):
    """How layers are assigned to stages, by the fields of a `Split`."""

    account: bool
    spread: str
    first: int
    last: int


def dealing_of(state: State) -> DealtOut:
    """The assignment of a pipeline layout, else of the fields, else equal as in Megatron."""
    spread = state.value("spread")
    dealt = DealtOut(account=state.value("account"), spread=typed_layout(state) or spread)
    if state.values["first_layers"] is not None:
        dealt["first"] = state.number("first_layers", 0)
    if state.values["last_layers"] is not None:
        dealt["last"] = state.number("last_layers", 0)
    return dealt


def _split(layout: Layout, model: Model, state: State) -> Split:
    """Typed layers must suit Megatron; those of a preset are assigned nearly equally if the stages
    do not divide them (request.model)."""
    dealing = dealing_of(state)
    split = Split.of(layout.mesh, layout.expert, vpp=virtual_stages(state), **dealing)
    if not (is_empty(state.layers) and is_empty(state.spread)) or dealing["spread"] != "equal":
        return split
    try:
        held_by_ranks(model, split.dealing)
    except LayoutError:
        return replace(split, spread="nearly")
    return split


def capacity_of(state: State) -> float:
    """Bytes of a GPU: from the field in GiB, which may be a fraction, else the cluster's.

    Errors: LayoutError for an unknown cluster, and for a bad number of GiB.
    """
    machine = machine_of_state(state)
    machine.require("memory")
    return machine.memory


def _gib(value: object, start: Machine) -> float:
    """GiB of a GPU. Errors: LayoutError for a value that is no number of GiB."""
    if not is_amount(value, 100_000.0) or not value:
        of_row = [{"capacity": round(start.memory / GIB, 2)}] if start.memory else []
        raise refusal("not-a-capacity", "capacity", *of_row, value=quoted(value))
    return float(value)  # type: ignore[arg-type]
