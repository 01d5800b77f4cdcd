"""Turns a function of a model that trains on a layout into an endpoint: the parameters of both, and
refusals whose fixes were tried with the model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields

from groups import LayoutError
from groups.alternatives import with_working
from groups.errors import in_any_case, not_a_choice
from groups.frameworks import OWN
from groups.inputs import SWITCH, inputs_of
from training.described import NUMBER_NAMES
from training.estimate.memory import Fit
from training.parameters import active_parameters, total_parameters
from training.pipeline import SCHEDULES
from training.recipe import LORA, Training

from .context import Context, of_server
from .endpoint import (
    LAYOUT,
    Parameter,
    Parameters,
    layout_of,
    parameter,
    read_json,
    require_text,
    serving,
    usual,
)
from .fixes import fixes_of
from .inputs import FIELDS
from .model import FLAGS, OF_COLUMN, SIZES
from .state import State, is_empty, merged, require_choice
from .trained import Trained

CHANGES = Parameter(
    str,
    "",
    'a JSON object of what differs from it, such as {"layers": 40, "sequence": 4096}',
)

OF_TRAINING = (
    *("micro_batch", "global_batch", "vpp", "schedule", "group_size"),
    *(name for name in inputs_of(Training) if FIELDS[name].of == "training" and name not in LORA),
    *("spread", "account"),
    *NUMBER_NAMES,
    *LORA,
)
"""Fields of the page about the training of a model."""

OF_ENGINE = ("zero", "precision")
"""Fields whose default is that of the data parallelism that runs (training.sharding.words)."""

RENAMED = {"schedule": "memory_schedule"}
"""Fields that have other names as parameters of endpoints."""

TRAINING = Parameters(
    "(the training)",
    {
        "model": parameter("model", means='a published model, such as "llama3-70b"'),
        "config": parameter("config"),
        "changes": CHANGES,
        **{
            RENAMED.get(name, name): parameter(name, is_open=name in OF_ENGINE)
            for name in OF_TRAINING
        },
    },
    late=(*NUMBER_NAMES, *LORA),
)


OF_MODEL = (*OF_COLUMN, *SIZES, *FLAGS, "biases")
"""Fields of the state that may be among the changes of a model."""


def context_of(arguments: Mapping[str, object], training: Parameters = TRAINING) -> Context:
    """The context of the parameters of `TRAINING` (or similar ones) and `LAYOUT`. Values of the
    model and its training are checked by the views."""
    layout = layout_of(arguments)
    if arguments["memory_schedule"]:
        schedule = in_any_case(arguments["memory_schedule"], SCHEDULES)
        require_choice("memory_schedule", schedule, SCHEDULES)
    fields = {
        **LAYOUT.fields(arguments),
        **training.fields(arguments),
        **changes_of(arguments["changes"]),
    }
    fields |= {"framework": OWN} if arguments["order"] else {}
    return Context(layout, State(**fields))


def changes_of(text: object) -> dict[str, object]:
    """The fields of a model that differ from its preset, from their JSON text."""
    text = require_text("changes", text) or "{}"
    changes = read_json(text, dict, "not-an-object", "changes")
    for name in changes:
        if name not in OF_MODEL:
            raise not_a_choice("changes", name, OF_MODEL)
    return changes


@contextmanager
def fixes_tried(context: Context, **fields: object) -> Iterator[Context]:
    """The context with some fields changed; inside, refusals get the fixes that were tried and
    work, in terms of parameters. Those of the endpoint's own parameters stay as they are."""
    context = Context(context.layout, context.state.changed(fields))
    with TRAINING.named():
        try:
            yield context
        except LayoutError as error:
            own = [fix for fix in error.alternatives if not merged(fix).keys() <= FIELDS.keys()]
            others = [fix for fix in error.alternatives if fix not in own]
            tried = fixes_of(error.replace(alternatives=others), context)
            fixes = (_as_parameters(fix, context.state) for fix in tried)
            alternatives = [*own, *(fix for fix in fixes if "" not in fix.values())]
            raise error.replace(alternatives=alternatives) from None


def _as_parameters(fix: Mapping[str, object], state: State) -> dict[str, object]:
    """A change of fields as a change of parameters: switches are booleans, and what differs from
    the published model is in `changes`."""
    rows = {row.field: row for row in (*TRAINING.rows.values(), *LAYOUT.rows.values())}
    parameters = {
        name: usual(rows[name]) if value == "" and name in rows else _typed(name, value)
        for name, value in fix.items()
        if name not in OF_MODEL
    }
    if parameters.keys() == fix.keys():
        return parameters
    typed = {name: fix.get(name, getattr(state, name)) for name in OF_MODEL}
    changes = {name: size for name, size in typed.items() if not is_empty(str(size))}
    return {**parameters, "changes": json.dumps(changes) if changes else ""}


def _typed(field: str, value: object) -> object:
    """A fix's value as programs write it: a boolean for a switch."""
    is_switch = field in FIELDS and FIELDS[field].row.kind == "switch"
    return SWITCH.get(value, value) if is_switch and isinstance(value, str) else value


def trainable_of(arguments: Mapping[str, object]) -> Context:
    """`context_of`, whose refusals of a layout have only the fixes with which the model trains."""

    def attempt(changes: Mapping[str, object]) -> None:
        _require_works(context_of({**arguments, **changes}))

    try:
        return context_of(arguments)
    except LayoutError as error:
        raise with_working(error, attempt, at_once=2) from None


def _answers(_: Context) -> None:
    """A server works wherever its layout does."""


@of_server(_answers)
def _require_works(context: Context) -> None:
    """Errors: LayoutError for what the model, the batch or the schedule do not allow."""
    with fixes_tried(context):
        context.trained.estimate(context.layout)


training_endpoint = serving(trainable_of, TRAINING, LAYOUT)
"""Turns a function of a model on a layout into one of the parameters of both."""


def fit_facts(fit: Fit) -> dict[str, object]:
    """Whether a layout fits, and the bytes that the fullest GPU needs: expected, low and high."""
    return {
        "fit": fit.verdict,
        "fits": fit.fits,
        "memory_bytes": fit.allocated,
        "needed_bytes": fit.needed,
        "memory_low_bytes": fit.low,
        "memory_high_bytes": fit.high,
        "fullest_stage": fit.stage,
    }


def job_facts(trained: Trained) -> dict[str, object]:
    """The model and its training, with the defaults that apply."""
    chosen, training = trained.chosen, trained.training
    values = {field.name: getattr(training, field.name) for field in fields(Training)}
    return {
        "model": chosen.preset,
        "changed": list(chosen.changed),
        "parameters": total_parameters(chosen.model),
        "active_parameters": active_parameters(chosen.model),
        "training": {
            "global_batch": training.micro_batches * training.micro_batch * trained.split.dp,
            **{name: value for name, value in values.items() if value is not None},
        },
    }
