"""What the page says, unchecked: one flat value, and one table of what it is made of.

Every part of the page and every view reads the same `State`; the browser holds it as texts, a link
says what of it differs from the start (link.py), and `resolve` (resolve.py) checks it.

>>> State(tp=4).changed({"order": "dp-tp-cp-ep-pp"}).framework
'own'
>>> FIELDS["view"].link, OF_MATHS["v"]
('show', 'vpp')
"""

# ruff: noqa: RUF009 -- the defaults are rows of the table, made anew for each field

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple, TypeVar

from descriptions import DP_KINDS, LANGUAGES, TYPES, VIEWS
from groups import LayoutError
from groups.conventions import CONVENTIONS, OWN
from groups.errors import not_a_choice, quoted
from groups.grouping import Grouping
from groups.megatron import ORDER
from groups.mesh import whole_number
from groups.presets import PUBLISHED
from training.pipeline.spec import OF_SCHEDULES
from training.recompute import recomputation

_NUMBER = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)


# -- values as they arrive -----------------------------------------------------------------------


def parse_number(value: Any) -> Any:
    """A number as a text box sends it; anything else stays as it is, to be refused in words."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(text := value.strip()):
        return value
    return float(text) if "." in text else int(text)


def parse_switch(value: Any) -> Any:
    """A box to tick, which is sent as "1" or ""."""
    return value in (True, "1")


def parse_names(value: Any) -> Any:
    """Names of groups: a list, or a text with commas or spaces between them."""
    if isinstance(value, str):
        value = value.replace(",", " ").split()
    return tuple(value) if isinstance(value, list) else value


def parse_recompute(value: Any) -> Any:
    """What is computed again, as it is written everywhere; what is no such text is kept as it is.

    >>> parse_recompute("moe_act layernorm"), parse_recompute("selective"), parse_recompute("some")
    ('moe_act,layernorm', 'selective', 'some')
    """
    try:
        return recomputation(value)
    except LayoutError:
        return value


def as_text(value: Any) -> str:
    """Any value that was sent, as a text box or a link writes it."""
    if type(value) is str:
        return value
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    try:
        return "" if value is None else str(value)
    except ValueError:  # a number of more digits than Python writes
        return quoted(value)


Choice = TypeVar("Choice", str, bool)


def require_choice(
    name: str, value: object, choices: Collection[Choice], instead: Iterable[str] = ()
) -> Choice:
    """The value, if it is one of those that there are; a flag is no 1.0, which only equals True.
    The refusal of another one offers those of ``instead``."""
    for choice in choices:
        if type(value) is type(choice) and value == choice:
            return choice
    raise not_a_choice(name, value, map(str, choices), [{name: choice} for choice in instead])


def is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value.strip())


def language_of(value: object) -> str:
    """The language to answer in; English for anything that is not one."""
    return value if isinstance(value, str) and value in LANGUAGES else "en"


# -- the table -----------------------------------------------------------------------------------


class Field(NamedTuple):
    """A row of the table.

    Attributes:
        of: whose it is: "job", "model" and "training" are everybody's, "page" is nobody's; else a
            view that alone asks for it.
        maths: arguments of the maths that it is, under other names.
        link: its name in links; empty: in none, for a text that somebody pasted may be long, or not
            meant for others.
        published: whether a published layout says it too, be it as empty.
        parse: from what is sent, text or not.
        choices: what a link may say; None: anything.
    """

    of: str
    maths: tuple[str, ...]
    link: str
    published: bool
    parse: Callable[[Any], Any] | None = None
    choices: Collection[str] | None = None


def _field(of: str, start: Any = "", *maths: str, **row: Any) -> Any:
    """A field of the state, and what its row says that does not follow from whose it is."""
    return field(default=start, metadata={"of": of, "maths": maths, **row})


def _row(name: str, of: str, maths: tuple[str, ...], **row: Any) -> Field:
    """Its name in links is its own; what a job, a model and its training say a published layout
    says too."""
    usual = {"link": name, "published": of in ("job", "model", "training")}
    return Field(of, maths, **{**usual, **row})


_number = partial(_field, parse=parse_number)
_switch = partial(_field, parse=parse_switch, choices=("0", "1"))
_pasted = partial(_field, link="")  # such as a text that is long


@dataclass(frozen=True, init=False)
class State:
    """What the page says, unchecked: any value that a person or a program may send."""

    # The job: which groups there are.
    group_type: Any = _field("job", "auto", choices=TYPES)
    more: Any = _field("job", (), parse=parse_names, published=False)
    nodes: Any = _number("job", 2)
    gpus_per_node: Any = _field("job", "8")
    tp: Any = _number("job", 2)
    pp: Any = _number("job", 2)
    cp: Any = _number("job", 1)
    ep: Any = _number("job", 1)
    etp: Any = _field("job")  # empty: as tp
    framework: Any = _field("job", "megatron", choices=(*CONVENTIONS, OWN))
    order: Any = _field("job", ORDER)  # counts where the framework is OWN
    dp_kind: Any = _field("job", "dp", choices=DP_KINDS, published=False)
    instances: Any = _number("job", 1)
    # Of hierarchical context parallelism, such as 2x4; empty: none.
    levels: Any = _field("job")
    hybrid: Any = _switch("job", False)
    gtp: Any = _number("job", 1)
    egtp: Any = _number("job", 1)
    gathers: Any = _switch("job", False)
    # Of servers alone; dp: of attention, empty: what remains, or 1 where more servers remain.
    dp: Any = _field("job")
    dcp: Any = _number("job", 1)
    moe_dp: Any = _number("job", 1)
    expert_parallel: Any = _field("job", False, parse=parse_switch)
    # And what is cut, and how often.
    layers: Any = _field("job")
    vpp: Any = _field("job", "", "virtual_pipeline_model_parallel_size")
    first_layers: Any = _field("job", "", "first")  # as many as the other stages
    last_layers: Any = _field("job", "", "last")
    pipe_layout: Any = _field("job", "", "layout")  # that layers may say too
    account: Any = _switch("job", False)  # whether embedding and loss count as a layer each
    experts: Any = _field("job", "", "num_experts")
    micro_batch: Any = _field("job")
    global_batch: Any = _field("job")
    # Of each pipeline in a step; empty: as the global batch says.
    micro_batches: Any = _field("job")
    schedule: Any = _field("job")  # empty: interleaved where vpp is more than 1, else 1f1b
    group_size: Any = _field("job")  # counts where the schedule takes groups; empty: pp

    # The page, and the views' own inputs.
    view: Any = _field("page", "groups", link="show", choices=VIEWS)
    preset: Any = _field("page", choices=("", *PUBLISHED))  # that was chosen last
    lines: Any = _field("nodes")  # the kind of groups drawn; empty: those of the pinned rank
    versus: Any = _field("orders", "auto")
    ranks: Any = _field("ranks")
    kept: Any = _field("compare")  # the link of the layout to compare with
    tour: Any = _pasted("page")  # its step; empty: none
    paste: Any = _pasted("launch")  # a launch command
    run: Any = _pasted("launch")  # one of its runs or roles, where it has several
    target: Any = _field("launch")  # whose command is written; empty: the first that can say it
    evidence: Any = _pasted("hang")
    digest: Any = _pasted("hang")  # what files of a hang said (views/hang/files.py)
    hosts: Any = _pasted("hosts")  # machines by name
    racks: Any = _pasted("hosts")  # where they stand, where another text says it
    objective: Any = _field("hosts", "time")
    measures: Any = _pasted("hosts")  # a number for each rank
    worse: Any = _field("hosts", "high")

    collective: Any = _field("collectives")
    collective_direction: Any = _field("collectives")
    collective_group: Any = _field("collectives")
    collective_index: Any = _field("collectives")
    collective_root: Any = _field("collectives")
    collective_shape: Any = _field("collectives")
    collective_values: Any = _field("collectives")
    collective_all: Any = _field("collectives")
    collective_algorithm: Any = _field("collectives")
    collective_mb: Any = _field("collectives")
    collective_gbs: Any = _field("collectives")
    bucket_scheme: Any = _field("collectives")
    bucket_layers: Any = _field("collectives")
    bucket_hidden: Any = _field("collectives")
    bucket_ms: Any = _field("collectives")

    against: Any = _field("pipeline")  # empty: nothing
    pipe_group: Any = _field("pipeline")  # that of the pinned rank, else 0
    t_f: Any = _field("pipeline")  # 1
    t_i: Any = _field("pipeline")  # 1
    t_w: Any = _field("pipeline")  # 1
    t_b: Any = _field("pipeline")  # I + W
    t_pair: Any = _field("pipeline")  # F + B
    t_send: Any = _field("pipeline")  # 0
    t_optimizer: Any = _field("pipeline")  # 0
    w_share: Any = _field("pipeline")  # 1
    message: Any = _field("pipeline")  # no bytes are shown
    by_layers: Any = _field("pipeline")  # "1": durations follow the layers

    # The model; empty ones are the chosen one's.
    model: Any = _field("model")
    hidden: Any = _field("model")
    heads: Any = _field("model")
    kv_heads: Any = _field("model")
    head_dim: Any = _field("model")
    ffn: Any = _field("model")
    vocabulary: Any = _field("model")
    sequence: Any = _field("model")
    gated: Any = _field("model")
    tied: Any = _field("model")
    rms_norm: Any = _field("model")
    learned_positions: Any = _field("model")
    biases: Any = _field("model")
    top_k: Any = _field("model")
    expert_ffn: Any = _field("model")
    shared_expert_ffn: Any = _field("model")
    dense_layers: Any = _field("model")
    router_groups: Any = _field("model")
    router_group_top_k: Any = _field("model")
    q_lora_rank: Any = _field("model")
    kv_lora_rank: Any = _field("model")
    qk_nope_head_dim: Any = _field("model")
    qk_rope_head_dim: Any = _field("model")
    v_head_dim: Any = _field("model")
    mtp_layers: Any = _field("model")

    # How it is trained; trained.py says what counts where one is empty.
    precision: Any = _field("training")
    zero: Any = _field("training")
    recompute: Any = _field("training", parse=parse_recompute)
    flash: Any = _field("training")
    products: Any = _field("training")
    offload: Any = _field("training")
    kernels: Any = _field("training")
    dispatcher: Any = _field("training")
    dispatch: Any = _field("training")
    ep_overlap: Any = _field("training")
    sequence_parallel: Any = _field("training")
    cluster: Any = _field("training")
    spread: Any = _field("training")
    capacity: Any = _field("training", published=False)  # GiB of a GPU; empty: the cluster's
    # Whose data parallel group ZeRO is pictured for; empty: the pinned rank's, else 0's.
    of_rank: Any = _field("memory")
    # What a server serves with; empty ones are as the model is published, or as the engine starts.
    served_weights: Any = _field("memory")
    served_cache: Any = _field("memory")
    served_share: Any = _field("memory")
    served_length: Any = _field("memory")
    served_requests: Any = _field("memory")
    served_batched: Any = _field("memory")
    engine_log: Any = _pasted("memory")  # what a server printed as it started
    cp_algorithm: Any = _field("traffic")
    # The ranks whose bytes are pictured; empty: those of which something is seen.
    traffic_part: Any = _field("traffic", link="part")
    moves_first: Any = _field("moves")  # empty: on the same GPUs
    moves_rule: Any = _field("moves")  # empty: the nearest sends
    moves_tensor: Any = _field("moves")

    rank: Any = _field("page")  # the pinned one, as it was typed; empty: none
    lang: Any = _field("page", choices=LANGUAGES)  # empty: as the reader's browser asks

    def __init__(self, **said: Any) -> None:
        # A frozen dataclass's own sets its fields one by one, which takes ten times as long.
        vars(self).update(_STARTS | said)
        if len(vars(self)) > len(_STARTS):
            raise TypeError(f"no such fields of a state: {said.keys() - _STARTS.keys()}")

    @property
    def language(self) -> str:
        return language_of(self.lang)

    def changed(self, changes: Mapping[str, Any]) -> State:
        """With one alternative of a refusal merged in."""
        return State(**{**vars(self), **merged(changes)})


_STARTS = {field.name: field.default for field in fields(State)}

FIELDS = {field.name: _row(field.name, **field.metadata) for field in fields(State)}
"""The table: a row for each field of the state, in the order in which links say them."""

OF_MATHS = OF_SCHEDULES | {name: field for field, row in FIELDS.items() for name in row.maths}
"""The field of an argument of the maths, where they have different names."""

OF_GROUPS = frozenset(name for name, row in FIELDS.items() if row.of == "job")
"""Fields that decide which groups there are, or may."""


def fields_of(*owners: str) -> tuple[str, ...]:
    """The fields of the job, of the model, of a view."""
    return tuple(name for name, row in FIELDS.items() if row.of in owners)


def merged(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the state that an alternative of a refusal sets."""
    given = {OF_MATHS.get(name, name): value for name, value in changes.items()}
    if "order" in given:
        given.setdefault("framework", OWN)
    if "levels" in given and not isinstance(given["levels"], str):
        given["levels"] = "x".join(map(str, given["levels"] or ()))
    return {name: "" if value is None else value for name, value in given.items()}


def fixes_or_reset(error: LayoutError) -> list[dict[str, Any]]:
    """The alternatives of a refusal, by fields; of one without any its field as at the start, and
    of a size that a schedule does not take the schedule."""
    field = OF_MATHS.get(str(error.control), str(error.control))
    resets = [{field: _STARTS[field]}] if field in _STARTS else []
    if field in (*OF_SCHEDULES.values(), "group_size"):
        resets.append({"schedule": "1f1b", "vpp": ""})
    return [*map(merged, error.alternatives)] or resets


def texts_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Values of training as the page's fields have them: a truth is "on" or "off" there."""
    return {
        name: ("on" if value else "off") if isinstance(value, bool) else as_text(value)
        for name, value in merged(values).items()
    }


# -- the pinned rank -----------------------------------------------------------------------------


def pinned_rank(world_size: int, rank: Any) -> int:
    """The pinned rank, for a view that must show one; 0 if there is none, or what cannot be one."""
    try:
        return whole_number(parse_number(rank), "rank", minimum=0, maximum=world_size - 1)
    except LayoutError:
        return 0


def pinned_group(grouping: Grouping, rank: Any) -> int:
    """The group of the pinned rank; the first one if it is in none."""
    return grouping.index_of(pinned_rank(grouping.world_size, rank)) or 0
