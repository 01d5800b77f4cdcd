"""How a function of a model on a layout becomes an endpoint: the parameters of both are added.

They are those of the page's fields, under the names that these had in its first links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from groups import LayoutError
from groups.conventions import OWN
from groups.errors import not_a_choice
from training.memory.per_stage import Training
from training.parameters import active_parameters, total_parameters
from training.pipeline import SCHEDULES

from .context import Context
from .endpoint import LAYOUT, Parameters, layout_of, read_json, require_text, serving
from .fixes import fixes_of
from .model import FLAGS, OF_COLUMN, SIZES
from .state import State, require_choice
from .trained import Trained, trained_of

TRAINING = Parameters(
    "(the training)",
    """
    model = "llama3-8b": a published model, such as "llama3-70b" or "deepseek-v3".
    changes = "": a JSON object of what differs from it, such as {"layers": 40, "sequence": 4096}.
    micro_batch = 1: samples of a micro-batch.
    global_batch = 0: samples of a step; 0: four micro-batches a pipeline stage.
    vpp = 1: chunks of layers on each pipeline rank.
    memory_schedule -> schedule = "": the pipeline schedule; empty: "1f1b", with vpp "interleaved".
    precision = "bf16-fp32": formats of weights and gradients.
    zero = 1 from 0: stage of ZeRO, 0 to 3; 1: Megatron's distributed optimizer.
    recompute = "selective": "none", "selective", "partial" or "full".
    flash = True: whether attention is one kernel that keeps no scores.
    products = "bf16": "bf16", "fp16", "fp8", "mxfp8" or "nvfp4" in the layers.
    offload = "none": in host memory: "none", "optimizer", "parameters" or "chunks".
    sequence_parallel = True: whether tp cuts the sequence too.
    spread = "equal": layers of the stages: "equal", or "nearly" (one more on some).
    account = False: whether embedding and loss count as a layer each.
    """,
)


Found = TypeVar("Found")


def context_of(given: Mapping[str, Any]) -> Context:
    """What the parameters of `TRAINING` and `LAYOUT` ask for.

    Errors: LayoutError about a layout that cannot be, or a value of another type; the values
    themselves are checked by the views' readers.
    """
    layout = layout_of(given)
    if given["memory_schedule"]:
        require_choice("memory_schedule", given["memory_schedule"], SCHEDULES)
    fields = {**LAYOUT.fields(given), **TRAINING.fields(given), **_changes(given["changes"])}
    state = State(**{**fields, "zero": str(fields["zero"])})  # a choice, as the page has it
    return Context(layout, replace(state, framework=OWN) if given["order"] else state)


def _changes(text: Any) -> dict[str, Any]:
    """The fields of a model that are typed over its preset, as the page has them."""
    text = require_text("changes", text) or "{}"
    given = read_json(text, dict, "not-an-object", "a JSON object", "changes")
    known = (*OF_COLUMN, *SIZES, *FLAGS, "biases")
    for name in given:
        if name not in known:
            raise not_a_choice("changes", name, known)
    return {
        name: _switch(value) if name in FLAGS and isinstance(value, bool) else value
        for name, value in given.items()
    }


def _switch(is_on: bool) -> str:
    return "on" if is_on else "off"


def answered(context: Context, work: Callable[[], Found]) -> Found:
    """What the work comes to; a refusal has the changes that were tried and work."""
    with TRAINING.named():
        try:
            return work()
        except LayoutError as error:
            raise error.replace(alternatives=fixes_of(error, context)) from None


training_endpoint = serving(context_of, TRAINING, LAYOUT)
"""A function of a model on a layout, as one of the parameters of both."""


def job_facts(trained: Trained) -> dict[str, Any]:
    """The model and its training, with what was taken where nothing is said."""
    chosen, training = trained.chosen, trained.training
    return {
        "model": chosen.preset,
        "changed": list(chosen.changed),
        "parameters": total_parameters(chosen.model),
        "active_parameters": active_parameters(chosen.model),
        "training": {
            "global_batch": training.micro_batches * training.micro_batch * trained.split.dp,
            **{field.name: getattr(training, field.name) for field in fields(Training)},
        },
    }


def trained_with(context: Context, **changes: Any) -> Trained:
    return trained_of(context.layout, replace(context.state, **changes))
