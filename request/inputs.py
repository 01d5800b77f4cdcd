"""Every input of the page: typed models, and one table of their fields.

What a job is, a model and its training say themselves (groups.layout, training); what is asked
beside them, and by single views, stands here. Each field says by its `Input` what it may be; link,
HTML, endpoints and command line are made of the table.

>>> FIELDS["view"].link, OF_MATHS["v"], FIELDS["recompute"].of
('show', 'vpp', 'training')
>>> FIELDS["flash"].choices, fields_of("traffic")
(('on', 'off'), ('cp_algorithm', 'traffic_part'))
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, NamedTuple

from descriptions import DP_KINDS, LANGUAGES, MOVES_RULES, TYPES, VIEWS
from formats.roles.presets import PLANS
from groups.inputs import Input, InputField, inputs_of
from groups.layout import Job
from groups.presets import PUBLISHED
from groups.stages.holdings import MAX_BATCH
from training.collectives.buckets import SCHEMES
from training.collectives.operations import OPERATIONS
from training.described import MACHINES, MachineNumbers, cluster_name
from training.model import Model
from training.models import MODELS
from training.pipeline import SCHEDULES
from training.pipeline.simulate import check_duration
from training.pipeline.spec import OF_SCHEDULES
from training.recipe import Training
from training.serving.cache import KV_RULES
from training.serving.server import CACHES
from training.serving.sglang import A2A
from training.serving.weights import FORMATS
from training.split import Split
from training.traffic.demands import CP_ALGORITHMS

from .errors import measured_step, positive

UNKNOWN = "own"
"""The model of which every size is typed: what is missing is asked for, not taken from another."""

FIRST_JOB = Job(nodes=2, tp=2, pp=2)
"""The job that the page starts with."""


# -- of the job and its training, beside what they are themselves ----------------------------------


@dataclass(frozen=True)
class ShownInputs:
    """The selection of groups to draw."""

    group_type: Annotated[
        str,
        Input("kinds of groups, such as dp+tp+pp", choices=TYPES, stands=True, closed=True),
    ] = "auto"
    more: Annotated[
        tuple[str, ...], Input("further groups by Megatron's names, such as embd", stays=True)
    ] = ()
    dp_kind: Annotated[
        str,
        Input(
            "which group data parallel means, in a type with cp",
            choices=DP_KINDS,
            stands=True,
            closed=True,
            stays=True,
        ),
    ] = "dp"


@dataclass(frozen=True)
class StepInputs:
    """What a step works on."""

    pipe_layout: Annotated[
        str,
        Input("Megatron's pipeline layout, which the layers may say too", maths=("layout",)),
    ] = ""
    global_batch: Annotated[
        int | None,
        Input("samples of a step", most=MAX_BATCH, otherwise="four micro-batches a pipeline stage"),
    ] = None
    model: Annotated[
        str,
        Input(
            "a published model, such as llama3-70b or deepseek-v3",
            choices=(*MODELS, UNKNOWN),
            otherwise="llama3-8b, with ep qwen3-30b-a3b, with layers or experts one of so many",
        ),
    ] = ""
    config: Annotated[
        str, Input("the text of a config.json, which is the model where none is chosen")
    ] = ""
    cluster: Annotated[str, Input("whose GPUs and links", choices=MACHINES, check=cluster_name)] = (
        "dgx-h100"
    )
    capacity: Annotated[
        float | None,
        Input("memory of one GPU in GiB (2**30 bytes)", otherwise="the cluster's", stays=True),
    ] = None


@dataclass(frozen=True)
class PlanInputs:
    roles: Annotated[
        str, Input("the other roles of the cluster, such as rollout@0-15:vllm,tp=2;reward@16-23")
    ] = ""
    role_edit: Annotated[str, Input("what is done to the roles, such as add", link="")] = ""


@dataclass(frozen=True)
class PageInputs:
    view: Annotated[
        str, Input("which view", choices=VIEWS, stands=True, closed=True, link="show")
    ] = "groups"
    preset: Annotated[
        str,
        Input(
            "the published layout that was chosen last", choices=(*PUBLISHED, *PLANS), closed=True
        ),
    ] = ""
    tour: Annotated[int | None, Input("a step of the tour", link="")] = None
    rank: Annotated[int | None, Input("the chosen GPU", least=0)] = None
    moment: Annotated[
        int | None,
        Input("the moment of a step, in parts of 10,000 of its film", least=0, most=9999, link="t"),
    ] = None
    lang: Annotated[
        str, Input("the language; empty: the browser's", choices=LANGUAGES, closed=True)
    ] = ""


# -- of single views -------------------------------------------------------------------------------

_pasted = partial(Input, link="")


@dataclass(frozen=True)
class NodesInputs:
    lines: Annotated[str, Input("the kind of groups drawn", otherwise="of the chosen GPU")] = ""


@dataclass(frozen=True)
class OrdersInputs:
    versus: Annotated[str, Input("a framework or an order to compare with", stands=True)] = "auto"


@dataclass(frozen=True)
class RanksInputs:
    ranks: Annotated[str, Input("ranks, or lines of a log")] = ""


@dataclass(frozen=True)
class CompareInputs:
    kept: Annotated[str, Input("the link of the layout to compare with")] = ""


@dataclass(frozen=True)
class LaunchInputs:
    paste: Annotated[str, _pasted("a launch command or configuration")] = ""
    run: Annotated[str, _pasted("one of its runs or roles, where it has several")] = ""
    plan_given: Annotated[str, _pasted("what it leaves open of its roles, such as a=1;b=2")] = ""
    target: Annotated[
        str, Input("whose command is written", otherwise="the first that can say it")
    ] = ""


@dataclass(frozen=True)
class HangInputs:
    evidence: Annotated[str, _pasted("lines of a log of a hang")] = ""
    digest: Annotated[str, _pasted("what files of a hang said")] = ""


@dataclass(frozen=True)
class SlowInputs:
    traces: Annotated[str, _pasted("profiler traces or a summary of them")] = ""
    traces_digest: Annotated[str, _pasted("what files of traces said")] = ""
    slow_group: Annotated[str, _pasted("the group whose calls are drawn")] = ""


@dataclass(frozen=True)
class HostsInputs:
    hosts: Annotated[str, _pasted("machines by name")] = ""
    racks: Annotated[str, _pasted("where they stand, if another text says it")] = ""
    objective: Annotated[str, Input("what counts first", stands=True)] = "time"
    measures: Annotated[str, _pasted("a number for each rank")] = ""
    worse: Annotated[str, Input("which numbers are slow", choices=("high", "low"), stands=True)] = (
        "high"
    )


def _positive(name: str, means: str, otherwise: str = "") -> Input:
    return Input(means, check=partial(positive, name=name), otherwise=otherwise)


@dataclass(frozen=True)
class CollectivesInputs:
    collective: Annotated[str, Input("what a group does", choices=OPERATIONS)] = "all_reduce"
    collective_direction: Annotated[
        str, Input("forward or backward", choices=("forward", "backward"))
    ] = "forward"
    collective_group: Annotated[str, Input("the kind of group")] = ""
    collective_index: Annotated[int | None, Input("one of its groups", least=0)] = None
    collective_root: Annotated[int | None, Input("the rank that gives or gets all", least=0)] = None
    collective_shape: Annotated[str, Input("of what each rank holds, such as 2x4")] = ""
    collective_values: Annotated[str, Input("what is in it", choices=("count", "rank", "ones"))] = (
        "count"
    )
    collective_all: Annotated[bool, Input("whether all groups are drawn", ticked=True)] = False
    collective_algorithm: Annotated[str, Input("whose messages are listed")] = ""
    collective_mb: Annotated[
        float, _positive("collective_mb", "the whole buffer, in MB of 1e6 bytes")
    ] = 100.0
    collective_gbs: Annotated[
        float | None,
        _positive("collective_gbs", "GB/s of a GPU's link, one way", "the cluster's"),
    ] = None
    bucket_scheme: Annotated[
        str, Input("how gradients are reduced", choices=SCHEMES, otherwise="the job's")
    ] = "ddp"
    bucket_layers: Annotated[
        int | None, Input("layers that one rank holds", most=128, otherwise="the job's")
    ] = None
    bucket_hidden: Annotated[
        int | None, Input("their hidden size", most=65_536, otherwise="the model's")
    ] = None
    bucket_ms: Annotated[
        float | None,
        _positive("bucket_ms", "milliseconds of a layer's backward", "as estimated"),
    ] = None


def _time(name: str, means: str, most: float | None = None, otherwise: str = "") -> Input:
    check = partial(check_duration, name=name, **({} if most is None else {"most": most}))
    return Input(means, check=check, otherwise=otherwise)


@dataclass(frozen=True)
class TimesInputs:
    """Times of the ops of a whole rank, in the unit that the reader has in mind."""

    t_f: Annotated[float, _time("t_f", "time of a forward through all layers of a rank")] = 1.0
    t_i: Annotated[float, _time("t_i", "the same of a backward for the inputs")] = 1.0
    t_w: Annotated[float, _time("t_w", "the same of a backward for the weights")] = 1.0
    t_b: Annotated[
        float | None, _time("t_b", "the same of a whole backward", otherwise="t_i + t_w")
    ] = None
    t_pair: Annotated[
        float | None,
        _time(
            "t_pair",
            "the same of a forward and a backward that overlap",
            otherwise="one after the other",
        ),
    ] = None
    t_send: Annotated[float, _time("t_send", "time of a message from one rank to another")] = 0.0
    t_optimizer: Annotated[float, _time("t_optimizer", "time of the optimizer's step")] = 0.0
    # Of "zb-2p", whose order is found for the times.
    w_share: Annotated[
        float, _time("w_share", "part of an activation that is held from I to W", most=1.0)
    ] = 1.0


@dataclass(frozen=True)
class PipelineInputs:
    against: Annotated[str, Input("a schedule to compare with", choices=SCHEDULES)] = ""
    pipe_group: Annotated[int | None, Input("the pipeline group that is drawn", least=0)] = None
    message: Annotated[
        float | None, _time("message", "megabytes (1e6 bytes) of a message between ranks")
    ] = None
    by_layers: Annotated[bool, Input("whether durations follow the layers", ticked=True)] = False


@dataclass(frozen=True)
class MemoryInputs:
    of_rank: Annotated[
        int | None,
        Input("the rank whose data parallel group ZeRO is pictured for", least=0),
    ] = None
    served_weights: Annotated[
        str,
        Input(
            "number format of the weights", choices=FORMATS, otherwise="as the model is published"
        ),
    ] = ""
    served_cache: Annotated[str, Input("number format of the KV cache", choices=CACHES)] = "bf16"
    served_share: Annotated[
        float | None, Input("share of the GPU that the engine takes", otherwise="its own default")
    ] = None
    served_length: Annotated[
        int | None, Input("tokens of the longest request", otherwise="the model's sequence")
    ] = None
    served_requests: Annotated[
        int | None, Input("requests at once", otherwise="the engine's default")
    ] = None
    served_batched: Annotated[
        int | None, Input("tokens of one forward pass", otherwise="the engine's default")
    ] = None
    served_a2a: Annotated[
        str,
        Input(
            "how SGLang takes tokens to their experts, which get memory of their own",
            choices=A2A,
            otherwise="none that does",
        ),
    ] = ""
    served_partition: Annotated[
        str, Input("layers of each pipeline stage, with commas", otherwise="as the engine cuts")
    ] = ""
    engine_log: Annotated[str, _pasted("what the server printed as it started")] = ""


@dataclass(frozen=True)
class TrafficInputs:
    cp_algorithm: Annotated[
        str, Input("how keys and values go round in a cp group", choices=CP_ALGORITHMS)
    ] = "p2p"
    traffic_part: Annotated[str, Input("the ranks whose bytes are pictured", link="part")] = ""


@dataclass(frozen=True)
class EstimateInputs:
    own_step: Annotated[
        str,
        Input(
            "a measured step: seconds, tokens/s, TFLOP/s, or lines of Megatron's log",
            check=partial(measured_step, name="own_step"),
        ),
    ] = ""
    step_log: Annotated[str, _pasted("lines of Megatron's log that print that step")] = ""


@dataclass(frozen=True)
class SpeedInputs:
    """The requests of which a server's speed is asked."""

    served_at_once: Annotated[
        int | None,
        Input(
            "requests that all servers answer at once",
            most=2**20,
            otherwise="64, or as many as fit",
            stays=True,
        ),
    ] = None
    served_prompt: Annotated[
        int | None, Input("tokens of a prompt", least=0, most=2**24, otherwise="1,024", stays=True)
    ] = None
    served_answer: Annotated[
        int | None, Input("tokens of an answer", most=2**24, otherwise="1,024", stays=True)
    ] = None
    served_tpot: Annotated[
        float | None,
        Input(
            "milliseconds that a token of an answer may take at most",
            check=partial(positive, name="served_tpot"),
            otherwise="no bound",
            stays=True,
        ),
    ] = None
    served_guesses: Annotated[
        bool,
        Input("whether it decodes by guessing (speculative decoding, MTP)", stays=True),
    ] = False


@dataclass(frozen=True)
class MovesInputs:
    moves_first: Annotated[str, Input("where the target begins", choices=("here", "behind"))] = (
        "here"
    )
    moves_what: Annotated[
        str, Input("what moves: the weights, or one request's cache", choices=("weights", "kv"))
    ] = "weights"
    moves_kv_rule: Annotated[
        str,
        Input(
            "who hands a cache over", choices=KV_RULES, otherwise="that of the engine that decodes"
        ),
    ] = ""
    moves_other: Annotated[
        str,
        Input("the other layout: a published one, a link, a script, or role: and a role's name"),
    ] = ""
    moves_rule: Annotated[str, Input("who sends", choices=MOVES_RULES)] = "nearest"
    moves_tensor: Annotated[str, Input("the tensor that is pictured")] = ""
    moves_cell: Annotated[str, Input("the nodes between whose GPUs bytes are pictured")] = ""


# -- the table -------------------------------------------------------------------------------------


class Field(NamedTuple):
    """A row of the table. of: whose it is: "job", "model", "training" and "machine" are
    everybody's, "page" is nobody's; else a view that alone asks for it."""

    of: str
    row: InputField

    @property
    def link(self) -> str:
        return self.row.link

    @property
    def choices(self) -> tuple[str, ...]:
        return self.row.choices

    @property
    def is_published(self) -> bool:
        """Whether a published layout says it too, be it as empty."""
        is_said = self.of in ("job", "model", "training") or self.row.link.startswith("served_")
        return is_said and not self.row.input.stays


MODELS_OF: tuple[tuple[str, type, str], ...] = (
    ("job", ShownInputs, ""),
    ("job", Job, ""),
    ("job", Model, "layers"),
    ("job", Split, "vpp first_layers last_layers"),
    ("job", StepInputs, "pipe_layout"),
    ("job", Split, "account"),
    ("job", Model, "experts"),
    ("job", Training, "micro_batch"),
    ("job", StepInputs, "global_batch"),
    ("job", Training, "micro_batches schedule group_size"),
    ("page", PlanInputs, ""),
    ("page", PageInputs, "view preset"),
    ("nodes", NodesInputs, ""),
    ("orders", OrdersInputs, ""),
    ("ranks", RanksInputs, ""),
    ("compare", CompareInputs, ""),
    ("page", PageInputs, "tour"),
    ("launch", LaunchInputs, ""),
    ("hang", HangInputs, ""),
    ("slow", SlowInputs, ""),
    ("nodes", HostsInputs, ""),
    ("collectives", CollectivesInputs, ""),
    ("pipeline", PipelineInputs, "against pipe_group"),
    ("pipeline", TimesInputs, ""),
    ("pipeline", PipelineInputs, ""),
    ("model", StepInputs, "model"),
    ("model", Model, ""),
    ("training", Training, ""),
    ("training", StepInputs, "cluster"),
    ("machine", MachineNumbers, ""),
    ("training", Split, ""),
    ("training", StepInputs, ""),
    ("memory", MemoryInputs, ""),
    ("traffic", TrafficInputs, ""),
    ("moves", MovesInputs, ""),
    ("estimate", EstimateInputs, ""),
    ("estimate", SpeedInputs, ""),
    ("page", PageInputs, ""),
)
"""The models, whose each field is, and which of their fields stand there: without names all that
stand nowhere above. Links say the fields in this order."""


def _table() -> Iterator[tuple[str, Field]]:
    known: set[str] = set()
    for of, model, names in MODELS_OF:
        rows = inputs_of(model)
        for name in names.split() or rows:
            if name not in known:
                known.add(name)
                yield name, Field(of, rows[name])


FIELDS: dict[str, Field] = dict(_table())
"""Every input by its name."""

_FIRST = {row.name: row.text(getattr(FIRST_JOB, row.attribute)) for row in inputs_of(Job).values()}

STARTS: dict[str, str] = {**{name: field.row.start for name, field in FIELDS.items()}, **_FIRST}
"""The text of every field as the page starts."""

OF_MATHS = OF_SCHEDULES | {name: one for one, field in FIELDS.items() for name in field.row.maths}
"""The field of an argument of the maths, where they have different names."""


def fields_of(*owners: str) -> tuple[str, ...]:
    """The fields of the job, of the model, of a view."""
    return tuple(name for name, field in FIELDS.items() if field.of in owners)


CHOSEN = tuple(
    name
    for name in fields_of("training")
    if FIELDS[name].choices and not FIELDS[name].row.input.otherwise
)
"""How a model is trained, where that is a choice with a default."""

OF_GROUPS = frozenset(fields_of("job"))
"""Fields that decide which groups there are, or may."""
