"""The model of the page: a preset, the sizes in the column, and those typed over it.

    typed in the view  >  typed in the column (layers, experts)  >  the preset

Without a preset it is the first one with the column's layers and experts, which ep spreads.
"""

from __future__ import annotations

from dataclasses import dataclass

from descriptions import MEMORY
from formats.values import Document
from groups.errors import LayoutError
from groups.inputs import inputs_of, values_for
from groups.stages.layout_strings import is_layout, parse_layout
from training.configs.compact import read_text
from training.model import NEEDED, Model
from training.models import MODELS, model_like, variant

from .errors import refusal
from .inputs import UNKNOWN
from .state import State, is_empty, require_choice

MODEL_SIZES = ("hidden", "heads", "kv_heads", "ffn", "vocabulary", "sequence", "top_k")
"""Sizes in the column beside those of `OF_COLUMN`; views ask for the rarer ones."""

OF_COLUMN = ("layers", "experts")
"""Sizes of the model that are controls of the layout."""

_OWN = {name: row for name, row in inputs_of(Model).items() if name not in OF_COLUMN}
FLAGS = tuple(name for name, row in _OWN.items() if row.kind == "switch")
SIZES = tuple(name for name, row in _OWN.items() if row.kind == "count")
"""The fields of a model that are numbers."""


@dataclass(frozen=True)
class ChosenModel:
    """A model, the preset that it starts from, and the fields in which it differs."""

    model: Model
    preset: str  # one of MODELS, or UNKNOWN
    is_matched: bool  # by the column, not chosen
    changed: tuple[str, ...]  # fields that are not the preset's
    model_type: str = ""  # of a config.json
    weights: str = ""  # the format in which that has them


def model_name(chosen: ChosenModel, language: str) -> str:
    """The name of a model, with a mark if it was changed."""
    if chosen.model_type:
        return chosen.model_type + ("*" if chosen.changed else "")
    if chosen.preset == UNKNOWN:
        return MEMORY["own_model"][language]
    return MODELS[chosen.preset].name + ("*" if chosen.changed else "")


def is_dense(state: State) -> bool:
    """Whether the selected model has no experts; not so where it is refused.

    >>> is_dense(State(model="llama3-70b")), is_dense(State(model="mixtral-8x7b"))
    (True, False)
    """
    try:
        return not model_of(state).model.experts
    except LayoutError:
        return False


def with_model(state: State) -> State:
    """The state with the layers and experts of its model filled in.

    A model's own layers are dealt out nearly equally where the stages do not divide them; those
    that somebody typed are held to what Megatron takes.

    >>> with_model(State(model="llama3-70b")).layers, with_model(State()).layers
    ('80', '32')
    """
    if not (is_empty(state.layers) or is_empty(state.experts)):
        return state
    try:
        model = model_of(state).model
    except LayoutError:  # said where the model is asked about
        return state
    sizes = {name: str(getattr(model, name)) for name in OF_COLUMN if getattr(model, name)}
    changes = {name: size for name, size in sizes.items() if is_empty(getattr(state, name))}
    if "layers" in changes and is_empty(state.spread):
        changes["spread"] = "nearly"
    return state.changed(changes)


def model_of(state: State) -> ChosenModel:
    """The model of a state.

    >>> chosen = model_of(State(heads="64", layers="80"))
    >>> chosen.preset, chosen.model.heads, chosen.changed
    ('llama3-70b', 64, ())
    """
    sizes = typed_sizes(state)
    if state.config and state.model in ("", UNKNOWN):
        read = read_text(state.config)
        differs = {name: value for name, value in sizes.items() if name not in OF_COLUMN}
        layers = sizes.get("layers", read.model.layers)
        if layers != read.model.layers:
            differs["layers"] = layers
        changed = {name: n for name, n in differs.items() if n != getattr(read.model, name)}
        model = variant(read.model, changed)
        return ChosenModel(model, UNKNOWN, False, tuple(changed), read.model_type, read.weights)
    if state.model == UNKNOWN:  # what may be left open follows from what is typed
        needed = ["layers", *(name for name in NEEDED if name != "layers")]
        needed += ["top_k"] if sizes.get("experts") else []
        missing = tuple(name for name in needed if name not in sizes)
        if missing:
            to_give = f"the shape of this model is not known: {', '.join(missing)} to give"
            sentence = f"{to_give}, its config.json, or another model"
            raise refusal("model-incomplete", "model", sentence=sentence, missing=missing)
        return ChosenModel(Model(**sizes), UNKNOWN, is_matched=False, changed=())
    is_matched = is_empty(state.model)
    if is_matched:
        column = {name: sizes[name] for name in OF_COLUMN if name in sizes}
        ep = state.values["ep"]
        preset = model_like(**column, ep=ep if type(ep) is int and ep > 1 else 1)
    else:
        preset = require_choice("model", state.model, MODELS)
    start = MODELS[preset].model
    changed = {name: value for name, value in sizes.items() if value != getattr(start, name)}
    return ChosenModel(variant(start, changed), preset, is_matched, tuple(changed))


def typed_layout(state: State) -> str:
    """The pipeline layout in its own box or in that of the layers; empty: none."""
    if is_empty(state.pipe_layout):
        return state.layers if is_layout(state.layers) else ""
    return state.pipe_layout


def typed_layers(state: State) -> int | float | str | None:
    """The number of layers as typed, or that of a pipeline layout; unchecked. None if neither is
    set.

    Errors: LayoutError about the layout, where it is none.
    """
    layers: int | float | str | None = state.values["layers"]
    if layers is not None and not is_layout(state.layers):
        return layers
    if layout := typed_layout(state):
        try:
            return sum(stage.count("decoder") for stage in parse_layout(layout))
        except LayoutError as error:
            box = "layers" if is_empty(state.pipe_layout) else "pipe_layout"
            raise error.renamed({"layout": box}) from None
    return None


def typed_sizes(state: State) -> Document:
    """The sizes of a model that are typed, in the column or a view, by field; unchecked. A pipeline
    layout sets the number of layers.

    Errors: LayoutError about the layers, where they are no such layout.
    """
    sizes = {row.attribute: value for row, value in values_for(Model, state.values)}
    for name in (*FLAGS, "biases"):
        if name in sizes:
            sizes[name] = _OWN[name].chosen(state.values[name])
    if (layers := typed_layers(state)) is not None:
        return {"layers": layers, **sizes} | {"layers": layers}
    return {name: value for name, value in sizes.items() if name != "layers"}
