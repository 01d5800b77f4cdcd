"""An architecture as a row of data: what its configurations call things, and what it holds.

A row of architectures.toml says where it differs from the row that it is ``like``, or from a
decoder with two RMSNorms a layer and a gated MLP. A value that is a text names the field of the
configuration that says it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import cast

from groups.tables import Rows, checked, parsed, read_table

Default = bool | int | str | float
Value = bool | str
"""Yes or no, or the field that says which."""


@dataclass(frozen=True)
class Architecture:
    """One ``model_type`` of config.json.

    Attributes:
        vectors: of a norm: 1 RMSNorm, 2 LayerNorm, 0 without weights.
        norms: of a layer; ``final`` behind the last one.
        bias, out_bias, mlp_bias: of queries, keys and values, of attention's output, of MLPs.
        qk: norms of queries and keys: "" none, "head" one for a head of each, "heads" one for each
            head, "all" one over all heads; ``qk_if`` the flag that turns them on; ``qk_vectors`` of
            each.
        activation: parameters of an MLP's activation function.
        types: the rule for which layer is of which type (training.configs.stacks); ``mixers`` the
            builder of each type (training.configs.mixers).
        routed: the rule for which layers have experts; "" none has.
        shared: what is there beside experts: "" nothing, "count" so many experts as ``shared_by``
            says, "width" one of its width, "same" one of an expert's width.
        expert_width: the field of an expert's width.
        dense_width: the field of an MLP's width.
        text, tower: of a model with pictures: the type of its language part unless that says its
            own, and what counts the rest (training.configs.towers).
        everywhere: what vLLM makes on every stage of a pipeline; even: whether it has no code of
            its own, and cuts KV heads evenly; shared_whole: whether it cuts no shared experts.
        fused: "qkv" and "gate_up" where these are one linear layer each; split: whether gated
            DeltaNet has four of them.
        called: linear layers that it calls otherwise, by their usual name.
        adapted: whether peft puts adapters on experts and their router.
        tied: whether the output is the embedding's matrix; "either" where the language part may
            say so too, "text" where it alone does.
    """

    like: str = ""
    source: str = ""
    vectors: int = 1
    norms: int = 2
    final: bool = True
    bias: Value = False
    out_bias: Value = False
    mlp_bias: Value = False
    gated: bool = True
    qk: str = ""
    qk_if: str = ""
    qk_vectors: int = 0
    gate: str = ""
    sinks: bool = False
    activation: int = 0
    output_bias: bool = False
    positions: int = -1
    embedding_norm: bool = False
    types: str = "full"
    mixers: dict[str, str] = field(default_factory=dict)
    window: str = "sliding_window"
    routed: str = ""
    expert_width: str = "moe_intermediate_size"
    dense_width: str = "intermediate_size"
    shared: str = ""
    shared_by: str = ""
    shared_gate: bool = False
    expert_bias: bool = False
    router_bias: bool = False
    correction: bool = False
    special: str = ""
    text: str = ""
    tower: str = ""
    everywhere: tuple[str, ...] = ()
    even: bool = False
    adapted: bool = False
    linear_router: bool = False
    fused: tuple[str, ...] = ()
    called: dict[str, str] = field(default_factory=dict)
    split: bool = False
    shared_whole: bool = False
    tied: Value = "tie_word_embeddings"
    fixed: dict[str, bool | int | str] = field(default_factory=dict)


_FOLDER = Path(__file__).parent


@cache
def _rows() -> dict[str, dict[str, object]]:
    return cast("dict[str, dict[str, object]]", parsed(_FOLDER / "architectures.toml"))


def _merged(name: str) -> dict[str, object]:
    """A row with what it takes over from the row that it is like."""
    row = _rows()[name]
    like = row.get("like")
    if not isinstance(like, str):
        return row
    start = {key: value for key, value in _merged(like).items() if key not in ("like", "source")}
    for key in ("mixers", "fixed"):
        both = (start.get(key), row.get(key))
        if isinstance(both[0], dict) and isinstance(both[1], dict):
            row = {**row, key: {**both[0], **both[1]}}
    return {**start, **row}


ARCHITECTURES: Mapping[str, Architecture] = Rows(
    lambda: checked(
        "configs/architectures.toml",
        {name: _merged(name) for name in _rows()},
        dict[str, Architecture],
    )
)
"""Every architecture that is understood, by its model_type."""


@cache
def defaults_of(name: str) -> Mapping[str, object]:
    """What the fields of an architecture are where a configuration does not say them."""
    rows = read_table(_FOLDER / "defaults.toml", dict[str, dict[str, Default]])
    return rows.get(name, {})


@cache
def neutral_fields(name: str) -> frozenset[str]:
    """Fields that change no parameters in this architecture."""
    rows = read_table(_FOLDER / "neutral.toml", dict[str, tuple[str, ...]])
    return frozenset((*rows["every"], *rows.get(name, ())))
