"""Which model a view is asked about: a preset, what the column says, what is typed over it.

    typed in the view  >  typed in the column (layers, experts)  >  the preset

Without a preset it is the first one with the column's layers and experts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from descriptions import MEMORY
from groups.errors import LayoutError, not_a_choice
from training.model import BIASES, NEEDED, Model
from training.models import DEFAULT, MODELS, model_like, variant

from .state import Controls, is_empty, typed
from .training import UNKNOWN


@dataclass(frozen=True)
class ModelAsked:
    """The fields of a model, unchecked; empty ones are the preset's."""

    model: Any = ""
    hidden: Any = ""
    heads: Any = ""
    kv_heads: Any = ""
    head_dim: Any = ""
    ffn: Any = ""
    vocabulary: Any = ""
    sequence: Any = ""
    gated: Any = ""
    tied: Any = ""
    rms_norm: Any = ""
    learned_positions: Any = ""
    biases: Any = ""
    top_k: Any = ""
    expert_ffn: Any = ""
    shared_expert_ffn: Any = ""
    dense_layers: Any = ""
    q_lora_rank: Any = ""
    kv_lora_rank: Any = ""
    qk_nope_head_dim: Any = ""
    qk_rope_head_dim: Any = ""
    v_head_dim: Any = ""
    mtp_layers: Any = ""


MODEL_SIZES = ("hidden", "heads", "kv_heads", "ffn", "vocabulary", "sequence", "top_k")
"""Sizes that the column asks for beside those of `OF_COLUMN`; a view asks for the rarer ones."""

OF_COLUMN = ("layers", "experts")
"""Sizes of the model that the layout's own controls have."""

FLAGS = ("gated", "tied", "rms_norm", "learned_positions")
ON_OFF = {"on": True, "off": False}

SIZES = tuple(one.name for one in fields(ModelAsked) if one.name not in ("model", "biases", *FLAGS))
"""The fields that are numbers."""


@dataclass(frozen=True)
class ChosenModel:
    """A model, the preset that it starts from, and what differs from that."""

    model: Model
    preset: str  # one of MODELS, or UNKNOWN
    is_matched: bool  # by the column, not chosen
    changed: tuple[str, ...]  # fields that are not the preset's


def model_name(chosen: ChosenModel, language: str = "en") -> str:
    """What a model is called; marked where something was changed."""
    if chosen.preset == UNKNOWN:
        return MEMORY["own_model"][language]
    return MODELS[chosen.preset].name + ("*" if chosen.changed else "")


def with_model(controls: Controls, asked: Any) -> Controls:
    """The controls with the layers and experts of the model that is chosen, where they are empty.

    >>> with_model(Controls(), ModelAsked(model="llama3-70b")).layers
    '80'
    """
    if not isinstance(asked.model, str) or asked.model not in MODELS:
        return controls
    model = MODELS[asked.model].model
    sizes = {name: str(getattr(model, name)) for name in OF_COLUMN if getattr(model, name)}
    return replace(
        controls, **{n: size for n, size in sizes.items() if is_empty(getattr(controls, n))}
    )


def model_of(asked: Any, controls: Controls) -> ChosenModel:
    """The model that the fields of `ModelAsked` and the column ask for.

    >>> chosen = model_of(ModelAsked(heads="64"), Controls(layers="80"))
    >>> chosen.preset, chosen.model.heads, chosen.changed
    ('llama3-70b', 64, ())

    Errors: LayoutError about the field or the control that cannot be.
    """
    if asked.model == UNKNOWN:
        return _own_model(asked, controls)
    column = {name: _column(controls, name) for name in OF_COLUMN}
    given = {name: size for name, size in column.items() if size is not None}
    is_matched = is_empty(asked.model)
    preset = (
        (model_like(**given) or DEFAULT)
        if is_matched
        else one_of("model", asked.model, tuple(MODELS))
    )
    start = MODELS[preset].model
    changes = {**given, **_typed_fields(asked)}
    changed = {name: value for name, value in changes.items() if value != getattr(start, name)}
    return ChosenModel(variant(start, changed), preset, is_matched, tuple(changed))


def _own_model(asked: Any, controls: Controls) -> ChosenModel:
    """The model of which every size is typed; what may be left open follows from the others.

    Errors: LayoutError that names the sizes that are missing.
    """
    given = {name: size for name in OF_COLUMN if (size := _column(controls, name)) is not None}
    given |= _typed_fields(asked)
    needed = ("layers", *(name for name in NEEDED if name != "layers"))
    needed += ("top_k",) if given.get("experts") else ()
    missing = tuple(name for name in needed if name not in given)
    if missing:
        raise LayoutError(
            "model-incomplete",
            f"the shape of this model is not known: {', '.join(missing)} to give, or another model",
            control="model",
            facts={"missing": missing},
        )
    return ChosenModel(Model(**given), UNKNOWN, False, ())


def _typed_fields(asked: Any) -> dict[str, Any]:
    found = {}
    for name in SIZES:
        if not is_empty(getattr(asked, name)):
            found[name] = typed(getattr(asked, name))
    for name in FLAGS:
        if not is_empty(getattr(asked, name)):
            found[name] = ON_OFF[one_of(name, getattr(asked, name), tuple(ON_OFF))]
    if not is_empty(asked.biases):
        found["biases"] = one_of("biases", asked.biases, BIASES)
    return found


def _column(controls: Controls, name: str) -> Any:
    """A number of the column; None if the box is empty, or holds what the column refuses."""
    value = getattr(controls, name)
    return None if is_empty(value) else typed(value)


def one_of(name: str, value: object, choices: Sequence[str]) -> str:
    """A choice of a field, if it is one."""
    if not isinstance(value, str) or value not in choices:
        raise not_a_choice(name, value, choices)
    return value
