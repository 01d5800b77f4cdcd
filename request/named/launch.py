"""The fields of the page that a pasted text sets."""

from __future__ import annotations

from dataclasses import replace

from formats.launch import Parsed, parse
from formats.launch.training import counted_with, options_of, served_of, training_of
from formats.values import Document
from groups import LayoutError
from groups.frameworks import framework_of
from groups.layout import SERVED, Layout
from groups.mesh import whole_number
from groups.stages.holdings import MAX_BATCH
from groups.stages.layout_strings import is_layout, parse_layout
from training.model import Model
from training.recipe import LORA
from training.serving.placed import has_a2a

from ..inputs import FIELDS, STARTS, fields_of
from ..model import FLAGS, SIZES, UNKNOWN, model_of, typed_layout, typed_sizes
from ..resolve import MODEL
from ..state import State, is_empty, texts_of
from ..trained import batch_of

UNASKED = (
    *("cp", "ep", "etp", "instances", "hpz", "levels", "hybrid", "gtp", "egtp", "gathers", *SERVED),
    *("micro_batches", "schedule", "group_size", "first_layers", "last_layers", "pipe_layout"),
)
"""Sizes and options of a job that have their defaults if the text does not set them."""


def read_pasted(state: State) -> Parsed:
    """The pasted text, read; a selected run of an earlier text is ignored.

    Errors: LayoutError if the text is no text, or too long.
    """
    try:
        return parse(state.paste, state.run)
    except LayoutError as error:
        if error.control != "run":
            raise
        return parse(state.paste)


def pasted_changes(state: State, text: Parsed) -> dict[str, str]:
    """The fields of the state that the pasted text changes."""
    pasted = {**vars(with_pasted(state, text)), **training_fields(text)}
    return {name: text for name, text in pasted.items() if text != getattr(state, name)}


def training_fields(text: Parsed) -> dict[str, str]:
    """The fields of the model and its training that the pasted text sets; if it has a model, all
    others are reset, except those of the GPUs. For a server also how the model is served.

    >>> text = parse("--num-layers 80 --hidden-size 8192 --num-attention-heads 64")
    >>> {name: value for name, value in training_fields(text).items() if value}
    {'model': 'llama3-70b', 'hidden': '8192', 'heads': '64'}
    """
    values = training_of(text) | served_of(text)
    if "model" not in values:
        return texts_of(values)
    names = set(fields_of("model", "training", "traffic")) - {"cluster", "capacity"}
    values["model"] = values["model"] or UNKNOWN
    if text.framework is not None and text.framework.job.startswith("megatron"):
        values.setdefault("spread", "equal")  # as Megatron deals what is not said otherwise
    return {**{name: "" for name in FIELDS if name in names}, **texts_of(values)}


def with_pasted(state: State, read: Parsed) -> State:
    """The state with all values of the job that a pasted text sets.

    What it does not state of the job is as where nobody asks for it: its groups are the text's own.
    The nodes are the page's where a default says how many there are: it is asked for.
    """
    silent = [name for name in UNASKED if name not in read.asks]
    if "layers" in read.values or "model" in training_of(read):
        silent += ["layers", "vpp", "account", "experts"]
    values: Document = {name: STARTS[name] for name in silent} | _without_axes(read)
    values |= {**read.assumed, **read.values}
    known = [name for name in fields_of("job") if name in values and name not in read.defaulted]
    return replace(state, **{name: values[name] for name in known})


def _without_axes(read: Parsed) -> Document:
    """The axes that a text's framework does not have are 1, whatever the page has."""
    if read.framework is None:
        return {}
    made_by = framework_of(read.framework.job)
    axes = {own.axis for own in (*made_by.axes, *made_by.expert_axes)}
    return {name: "1" for name in ("tp", "pp") if name not in axes}


# -- what the page says, as a command has it ------------------------------------------------------


def options_of_page(layout: Layout, state: State) -> dict[str, object]:
    """The options of the model, its batch and its training that are set; layers may be a pipeline
    layout.

    Where nobody said how a whole model is trained, it is what the page counts with; all else that
    nobody said is left to the framework.

    Errors: LayoutError about the invalid field.
    """
    fields: dict[str, object] = {
        name: value for name in MODEL if (value := state.values[name]) is not None
    }
    if fields.get("experts") == 0:  # which is said by no option
        del fields["experts"]
    for name, value in fields.items():
        if not (name == "layers" and is_layout(value)):
            whole_number(value, name, maximum=MAX_BATCH)
    for name in ("first", "last"):
        if state.values[f"{name}_layers"] is not None:
            fields[name] = state.number(f"{name}_layers", 0, most=MAX_BATCH)
    if layout_text := typed_layout(state):
        parse_layout(layout_text)
        fields["layers"] = layout_text
    if not is_empty(state.micro_batches):
        fields["global_batch"] = batch_of(layout, state).global_batch
    if state.value("account"):
        fields["account"] = True
    for name in SAYABLE:
        if state.values[name] is not None:
            fields[name] = state.value(name)
    shape = _shape(state)
    if layout.is_server:
        return options_of(shape, fields, layout.mesh.size("pp")) | _served(layout, state)
    if isinstance(shape, Model):
        engine = str(fields.get("engine", layout.made_by.engine))
        fields = {**counted_with(layout.mesh.size("tp"), shape.experts, engine), **fields}
    return options_of(shape, fields, layout.mesh.size("pp"))


def _served(layout: Layout, state: State) -> Document:
    """How the servers on screen serve, as far as it is set.

    Errors: LayoutError about an invalid number.
    """
    fields: Document = {}
    for name in SERVED_NUMBERS:
        if state.values[name] is not None:
            fields[name] = state.value(name)
    names = ["served_weights", "served_cache", *(["served_a2a"] if has_a2a(layout) else [])]
    return fields | {name: getattr(state, name) for name in names}


SERVED_NUMBERS = ("served_share", "served_length", "served_requests", "served_batched")

UNSAYABLE = (
    "cluster",
    "capacity",
    "config",
    "flash",
    "offload",
    "kernels",
    "spread",
    *LORA,
)
"""Fields of the training that no command expresses."""

SAYABLE = ("schedule", *(name for name in fields_of("training") if name not in UNSAYABLE))
"""Fields of the training that a command may express, beside its batch and the groups of its
schedule."""


def _shape(state: State) -> Model | dict[str, object]:
    """The selected or typed model; if sizes are missing, those that are set."""
    if all(is_empty(getattr(state, name)) for name in fields_of("model")):
        return {}
    try:
        return model_of(state).model
    except LayoutError as error:
        if error.code != "model-incomplete":
            raise
        typed = typed_sizes(state)
        sizes = {name: typed[name] for name in SIZES if name in typed}
        flags = {name: typed[name] for name in typed if name in ("biases", *FLAGS)}
        return flags | {name: whole_number(size, name, minimum=0) for name, size in sizes.items()}
