"""How a function of a layout, or of a model on one, becomes an endpoint: shared parameters are
added, refusals are told in words.

A function that works on a layout takes that as its first argument. `serving` puts the parameters
of a layout in its place, so that each endpoint's schema names all that it takes.
"""

from __future__ import annotations

import inspect
import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar

from groups import LayoutError
from groups.alternatives import with_working
from groups.budget import spend, within
from groups.conventions import CONVENTIONS, OWN
from groups.errors import not_a_choice, quoted
from groups.layout import Job, Layout, world_of
from groups.mesh import whole_number
from training.estimate.memory import Fit
from training.parameters import active_parameters, total_parameters
from training.pipeline import SCHEDULES
from training.recipe import Training

from .context import Context
from .fixes import fixes_of
from .model import FLAGS, OF_COLUMN, ON_OFF, SIZES
from .problems import refusal
from .spelling import as_spelled
from .state import FIELDS, OF_MATHS, State, is_empty, parse_names, parse_switch, require_choice
from .trained import Trained

Json = TypeVar("Json")

MOST_SERVED = 131_072
"""GPUs that one answer may be about: its text is some 20 MB then."""


class Parameter(NamedTuple):
    """A row of a table of parameters.

    start: its default; where it is 0 or -1, that stands for "not stated". field: of the state that
    it says; empty: none. least: of a whole number.
    """

    kind: Any
    start: Any
    means: str
    field: str
    least: int


_ROW = re.compile(r"^ *(\w+)(?: -> (\w+))? = (.+?)(?: from (-?\d))?: (.+)", re.MULTILINE)


@dataclass(frozen=True)
class Parameters:
    """Parameters of endpoints, as a table: a name, its default, what it means.

    A row that is indented further goes on with the one above. A name is that of a field of the
    state, if there is such a field; "name -> field" where they differ. Whole numbers are from 1, or
    from 0 where that is the default; "from 0" says so where it is not. None is the default of a
    whole number that need not be. mark: the line of a docstring that their descriptions replace.
    """

    mark: str
    table: str

    @cached_property
    def rows(self) -> dict[str, Parameter]:
        rows = {}
        for name, field, default, least, means in _ROW.findall(re.sub(r"\n {8,}", " ", self.table)):
            start = literal_eval(default)
            kind = int | None if start is None else type(start)
            field = field or (name if name in FIELDS else "")
            rows[name] = Parameter(kind, start, means, field, int(least or start != 0))
        return rows

    def fields(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What they say of the state. Errors: LayoutError about one of another type."""
        rows = self.rows.items()
        return {row.field: _stated(name, given[name], row) for name, row in rows if row.field}

    @contextmanager
    def named(self) -> Iterator[None]:
        """Within, a refusal of a field, or of the maths, is one of the parameter that says it."""
        names = {row.field: name for name, row in self.rows.items() if row.field}
        try:
            yield
        except LayoutError as error:
            refused = error.renamed(OF_MATHS).renamed(names)
            fixes = [
                {
                    name: self.rows[name].start if value is None else value
                    for name, value in fix.items()
                }
                for fix in refused.alternatives
            ]
            raise refused.replace(alternatives=fixes) from None


def _stated(name: str, value: Any, row: Parameter) -> Any:
    """A value as the state has it; its type is checked, for a page's boxes send text, but a program
    that does has a mistake."""
    if value is None and row.start is None:
        return ""
    if row.kind is bool:
        require_choice(name, value, (False, True))
        is_switch = FIELDS[row.field].parse is parse_switch
        return value if is_switch else "on" if value else "off"
    if row.kind is str:
        value = as_spelled(row.field, value)
        return parse_names(value) if FIELDS[row.field].parse is parse_names else value
    if row.kind is not float:
        value = whole_number(value, name, minimum=row.least)
    is_unsaid = row.start == -1 == value
    return stated(value) if row.start == 0 else "" if is_unsaid else value


LAYOUT = Parameters(
    "(the layout)",
    """
    nodes = 2: machines in the job.
    gpus_per_node = 8: GPUs of one machine.
    tp = 1: tensor parallel size.
    pp = 1: pipeline parallel size.
    cp = 1: context parallel size.
    ep = 1: expert parallel size.
    etp = 0: expert tensor parallel size; 0: as tp.
    framework = "megatron": whose order to use, such as "megatron" or "llama3".
    order = "": axes from fastest to slowest, such as "tp-cp-ep-dp-pp"; empty: own.
    instances = 1: instances of the distributed optimizer.
    dp = 0: of a server, data parallel size of its attention; 0: what remains in vLLM, 1 in others.
    dcp = 1: of a server, decode context parallel size.
    moe_dp = 1: of SGLang, copies of the experts inside tp.
    expert_parallel = False: of vLLM, whole experts on each rank.
    """,
)


def serving(
    read: Callable[..., Any] | None = None, *shared: Parameters
) -> Callable[[Callable[..., str]], Callable[..., str]]:
    """A decorator: the function takes the shared parameters in place of what ``read`` makes of
    them, its first argument; without ``read`` it takes its own alone.

    >>> @serving(layout_of, LAYOUT)
    ... def gpus(layout: Layout, unit: str = "GPUs") -> str:
    ...     return f"{layout.world_size} {unit}"
    >>> gpus(nodes=4), list(inspect.signature(gpus).parameters)[:3]
    ('32 GPUs', ['unit', 'nodes', 'gpus_per_node'])
    """
    rows = {name: row for shared_row in shared for name, row in shared_row.rows.items()}

    def served(ask: Callable[..., str]) -> Callable[..., str]:
        parameters = list(inspect.signature(ask).parameters.values())[bool(read) :]
        more = [
            inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=row.start)
            for name, row in rows.items()
        ]
        signature = inspect.Signature([*parameters, *more], return_annotation=str)

        @wraps(ask)
        def answer(*values: Any, **named: Any) -> str:
            bound = signature.bind(*values, **named)
            bound.apply_defaults()
            given = dict(bound.arguments)
            inputs = {name: given.pop(name) for name in rows}
            with within():
                return ask(read(inputs), **given) if read else ask(**given)

        # Gradio tells the type of what it can evaluate only: a class, not the name of one.
        hints = inspect.get_annotations(ask, eval_str=True)
        answer.__annotations__ = {
            **{parameter.name: hints[parameter.name] for parameter in parameters},
            **{name: row.kind for name, row in rows.items()},
            "return": str,
        }
        answer.__doc__ = _described(inspect.cleandoc(ask.__doc__ or ""), shared)
        answer.__signature__ = signature  # type: ignore[attr-defined]
        del answer.__wrapped__  # type: ignore[attr-defined]
        return answer

    return served


def layout_of(given: Mapping[str, Any]) -> Layout:
    """The job that the parameters of `LAYOUT` ask for."""
    try:
        layout = _layout_of(given)
    except LayoutError as error:
        raise with_working(error, lambda changes: _layout_of({**given, **changes})) from None
    spend(layout.world_size, "ranks")
    return layout


def _layout_of(given: Mapping[str, Any]) -> Layout:
    fields = LAYOUT.fields(given)
    require_choice("framework", fields["framework"], CONVENTIONS)
    fields |= {name: fields[name] or None for name in ("etp", "dp")}
    if fields["order"]:
        fields["framework"] = OWN
    with LAYOUT.named():
        world_of(fields["nodes"], fields["gpus_per_node"], MOST_SERVED)
        return Job(**fields).layout()


def require_text(name: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    raise refusal("not-a-text", name, value=quoted(value))


def read_json(text: str, kind: type[Json], code: str, control: str) -> Json:
    """The value of a JSON text, if it is of this kind; code: of the refusal of any other."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, kind):
        return value
    raise refusal(code, control, value=quoted(text))


def names_of(names: Any) -> list[str] | None:
    """Names of groups as a list; None for all."""
    if not isinstance(names, str):
        raise refusal("not-names", "names", value=quoted(names))
    return names.split() or None


def stated(value: Any) -> Any:
    """A number where 0 stands for "not stated", as the page has that: empty."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "" if is_number and value == 0 else value


def too_large(count: int, what: str, limit: int, control: str) -> LayoutError:
    """The refusal of an answer that nobody could read."""
    said = f"{count:,} {what.replace('-', ' ')} are more than the {limit:,} of one answer"
    return refusal("answer-too-large", control, sentence=said, count=count, what=what, limit=limit)


def words_of(error: LayoutError) -> str:
    """A refusal as a program is told it: the sentence, and what Megatron says."""
    return f"{error}. {error.speaker} says: {error.quote}" if error.quote else str(error)


def _described(text: str, shared: Iterable[Parameters]) -> str:
    """The docstring with the shared parameters in place of their marks."""
    for shared_row in shared:
        lines = "".join(f"\n    {name}: {row.means}" for name, row in shared_row.rows.items())
        text = text.replace(f"\n    {shared_row.mark}", lines)
    return text


endpoint = serving(layout_of, LAYOUT)
"""A function of a layout, as one of the parameters of a layout."""


# -- a model on a layout -------------------------------------------------------------------------

TRAINING = Parameters(
    "(the training)",
    """
    model = "": a published model, such as "llama3-70b" or "deepseek-v3"; empty: "llama3-8b",
        with ep "qwen3-30b-a3b", with layers or experts among the changes one that has so many.
    changes = "": a JSON object of what differs from it, such as {"layers": 40, "sequence": 4096}.
    micro_batch = 1: samples of a micro-batch.
    global_batch = 0: samples of a step; 0: four micro-batches a pipeline stage.
    vpp = 0: chunks of layers on each pipeline rank; 0: as the schedule has them, 2 where it can
        choose.
    memory_schedule -> schedule = "": the pipeline schedule; empty: "1f1b", with vpp "interleaved".
    group_size = 0: micro-batches of a group, for "interleaved"; 0: pp.
    precision = "bf16-fp32": formats of weights and gradients.
    zero = 1 from 0: stage of ZeRO, 0 to 3; 1: Megatron's distributed optimizer.
    recompute = "selective": "none", "selective", "full", or modules of Megatron's with commas
        between them, such as "layernorm,moe_act".
    flash = True: whether attention is one kernel that keeps no scores.
    products = "bf16": "bf16", "fp16", "fp8", "mxfp8" or "nvfp4" in the layers.
    offload = "none": in host memory: "none", "optimizer", "parameters" or "chunks".
    kernels = "auto": "fused" as Megatron's, "eager" as PyTorch's; "auto": eager from ZeRO-2 on.
    sequence_parallel = True: whether tp cuts the sequence too.
    dispatcher = "alltoall": of tokens to experts: "alltoall", or one copy a domain: "deepep",
        "hybridep".
    dispatch = "bf16": number format on the way to experts, "bf16" or "fp8".
    ep_overlap = False: whether experts' exchange hides behind another micro-batch.
    spread = "": layers of the stages: "equal", or "nearly" (one more on some); empty: equal, but a
        model's own that do not divide nearly.
    account = False: whether embedding and loss count as a layer each.
    """,
)


OF_MODEL = (*OF_COLUMN, *SIZES, *FLAGS, "biases")
"""Fields of the state that may stand among the changes of a model."""


def context_of(given: Mapping[str, Any], training: Parameters = TRAINING) -> Context:
    """What the parameters of `TRAINING`, or of its like, and of `LAYOUT` ask for; values of the
    model and its training are checked by the views' readers."""
    layout = layout_of(given)
    if given["memory_schedule"]:
        said = as_spelled("schedule", given["memory_schedule"])
        require_choice("memory_schedule", said, SCHEDULES)
    fields = {**LAYOUT.fields(given), **training.fields(given), **changes_of(given["changes"])}
    state = State(**{**fields, "zero": str(fields["zero"])})  # a choice, as the page has it
    return Context(layout, replace(state, framework=OWN) if given["order"] else state)


def changes_of(text: Any) -> dict[str, Any]:
    """The fields of a model that are typed over its preset, as the page has them."""
    text = require_text("changes", text) or "{}"
    given = read_json(text, dict, "not-an-object", "changes")
    for name in given:
        if name not in OF_MODEL:
            raise not_a_choice("changes", name, OF_MODEL)
    flags = {
        name: "on" if given[name] else "off" for name in FLAGS if type(given.get(name)) is bool
    }
    return given | flags


@contextmanager
def fixes_tried(context: Context, **fields: Any) -> Iterator[Context]:
    """The context with these fields too; within, a refusal has the changes that were tried and
    work, as programs say them."""
    spelled = {name: as_spelled(name, value) for name, value in fields.items()}
    context = Context(context.layout, replace(context.state, **spelled))
    with TRAINING.named():
        try:
            yield context
        except LayoutError as error:
            fixes = (_as_parameters(fix, context.state) for fix in fixes_of(error, context))
            said = [fix for fix in fixes if "" not in fix.values()]
            raise error.replace(alternatives=said) from None


def _as_parameters(fix: Mapping[str, Any], state: State) -> dict[str, Any]:
    """A change of the page's fields as programs say it: a truth is one, and what differs from the
    published model stands among its changes."""
    rows = {row.field: row for row in (*TRAINING.rows.values(), *LAYOUT.rows.values())}
    said = {
        name: rows[name].start if value == "" and name in rows else ON_OFF.get(value, value)
        for name, value in fix.items()
        if name not in OF_MODEL
    }
    if said.keys() == fix.keys():
        return said
    typed = {name: fix.get(name, getattr(state, name)) for name in OF_MODEL}
    changes = {name: size for name, size in typed.items() if not is_empty(size)}
    return {**said, "changes": json.dumps(changes) if changes else ""}


def _trainable_of(given: Mapping[str, Any]) -> Context:
    """`context_of`; the fixes of a layout that cannot be are those with which the model trains."""

    def attempt(changes: Mapping[str, Any]) -> None:
        context = context_of({**given, **changes})
        with fixes_tried(context):
            context.trained.estimate(context.layout)

    try:
        return context_of(given)
    except LayoutError as error:
        raise with_working(error, attempt, at_once=2) from None


training_endpoint = serving(_trainable_of, TRAINING, LAYOUT)
"""A function of a model on a layout, as one of the parameters of both."""


def fit_facts(fit: Fit) -> dict[str, Any]:
    """Whether a layout fits, and what the fullest GPU needs, by most likely and by both ends."""
    return {
        "fit": fit.verdict,
        "fits": fit.fits,
        "memory_bytes": fit.allocated,
        "needed_bytes": fit.needed,
        "memory_low_bytes": fit.low,
        "memory_high_bytes": fit.high,
        "fullest_stage": fit.stage,
    }


def job_facts(trained: Trained) -> dict[str, Any]:
    """The model and its training, with what was taken where nothing is said."""
    chosen, training = trained.chosen, trained.training
    said = {field.name: getattr(training, field.name) for field in fields(Training)}
    return {
        "model": chosen.preset,
        "changed": list(chosen.changed),
        "parameters": total_parameters(chosen.model),
        "active_parameters": active_parameters(chosen.model),
        "training": {
            "global_batch": training.micro_batches * training.micro_batch * trained.split.dp,
            **{name: value for name, value in said.items() if value is not None},
        },
    }
