"""How a function of a model on a layout becomes an endpoint: the parameters of both are added.

They are those of the page's fields, under the names that these had in its first links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from groups import LayoutError
from groups.errors import not_a_choice
from groups.mesh import whole_number
from training.memory.per_stage import Training
from training.model import require_choice
from training.models import DEFAULT
from training.parameters import active_parameters, total_parameters
from training.pipeline.in_flight import SCHEDULES

from .context import Context
from .endpoint import LAYOUT, Shared, layout_of, read_json, require_text, serving
from .fixes import fixes_of
from .model import FLAGS, OF_COLUMN, SIZES
from .state import State
from .trained import Trained, trained_of

TRAINING = Shared(
    "(the training)",
    {
        "model": (str, DEFAULT, 'a published model, such as "llama3-70b" or "deepseek-v3".'),
        "changes": (
            str,
            "",
            'a JSON object of what differs from it, such as {"layers": 40, "sequence": 4096}.',
        ),
        "micro_batch": (int, 1, "samples of a micro-batch."),
        "global_batch": (int, 0, "samples of a step; 0: four micro-batches a pipeline stage."),
        "vpp": (int, 1, "chunks of layers on each pipeline rank."),
        "memory_schedule": (
            str,
            "",
            'the pipeline schedule; empty: "1f1b", with vpp "interleaved".',
        ),
        "precision": (str, "bf16-fp32", "formats of weights and gradients."),
        "zero": (int, 1, "stage of ZeRO, 0 to 3; 1: Megatron's distributed optimizer."),
        "recompute": (str, "selective", '"none", "selective", "partial" or "full".'),
        "flash": (bool, True, "whether attention is one kernel that keeps no scores."),
        "products": (str, "bf16", '"bf16", "fp16", "fp8", "mxfp8" or "nvfp4" in the layers.'),
        "offload": (str, "none", 'in host memory: "none", "optimizer", "parameters" or "chunks".'),
        "sequence_parallel": (bool, True, "whether tp cuts the sequence too."),
        "spread": (str, "equal", 'layers of the stages: "equal", or "nearly" (one more on some).'),
        "account": (bool, False, "whether embedding and loss count as a layer each."),
    },
)


Found = TypeVar("Found")


def context_of(**given: Any) -> Context:
    """What the parameters of `TRAINING` and `LAYOUT` ask for.

    Errors: LayoutError about a layout that cannot be, or a value of another type; the values
    themselves are checked by the views' readers.
    """
    job = {name: given.pop(name) for name in LAYOUT.parameters}
    layout = layout_of(**job)
    for name in ("micro_batch", "vpp"):
        whole_number(given[name], name)
    whole_number(given["global_batch"], "global_batch", minimum=0)
    for name in ("sequence_parallel", "account", "flash"):
        require_choice(name, given[name], (False, True))
    if given["memory_schedule"]:
        require_choice("memory_schedule", given["memory_schedule"], tuple(SCHEDULES))
    changes = _changes(given["changes"])
    column = {name: changes.pop(name) for name in OF_COLUMN if name in changes}
    whose = {"framework": "own"} if job["order"] else {}
    state = State(
        **{**job, "etp": job["etp"] or "", **whose, **column},
        **{name: given[name] for name in ("vpp", "account", "micro_batch")},
        global_batch=given["global_batch"] or "",
        schedule=given["memory_schedule"],
        **{
            name: given[name] for name in ("model", "precision", "recompute", "products", "offload")
        },
        zero=str(whole_number(given["zero"], "zero", minimum=0)),
        **{name: _switch(given[name]) for name in ("sequence_parallel", "flash")},
        spread=given["spread"],
        **changes,
    )
    return Context(layout, state)


def _switch(is_on: bool) -> str:
    return "on" if is_on else "off"


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


def answered(context: Context, work: Callable[[], Found]) -> Found:
    """What the work comes to; a refusal has the changes that were tried and work."""
    try:
        return work()
    except LayoutError as error:
        ways = fixes_of(error, context)
        fixes = [_renamed(changes) for changes in ways]
        raise error.renamed(PARAMETERS).replace(alternatives=fixes) from None


PARAMETERS = {"schedule": "memory_schedule"}
"""The parameter of a field of the page, where they have different names."""


def _renamed(changes: Mapping[str, Any]) -> dict[str, Any]:
    return {PARAMETERS.get(name, name): value for name, value in changes.items()}


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
            **{one.name: getattr(training, one.name) for one in fields(Training)},
        },
    }


def trained_with(context: Context, **changes: Any) -> Trained:
    return trained_of(context.layout, replace(context.state, **changes))
