"""Published layouts to start from, each with its source and the fields that the source does not
state.

The data is in published.toml, whose first lines describe its fields.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .tables import Rows, read_table

GPUS_PER_NODE = 8
"""GPUs of a node where a source does not state them."""

LAYOUT = (
    *("nodes", "gpus_per_node", "gpus"),
    *("tp", "cp", "pp", "ep", "etp", "dp", "edp"),
    "framework",
)
"""Fields of a published layout that are not about the model."""

SERVED = ("dp", "dcp", "moe_dp", "expert_parallel")
"""Sizes that only servers have."""


@dataclass(frozen=True)
class Preset:
    """A published layout.

    >>> bloom = PRESETS["bloom-176b"]
    >>> bloom.world_size, bloom.tp, bloom.pp, bloom.dp
    (384, 4, 12, 8)
    >>> bloom.model["layers"], "tp" in bloom.derived, "cp" in bloom.derived
    (70, False, True)
    """

    name: str  # as published, without the number of GPUs
    family: str  # under which a long list groups it
    nodes: int
    gpus_per_node: int
    tp: int
    cp: int
    pp: int
    ep: int
    etp: int | None
    framework: str  # a key of FRAMEWORKS
    model: Mapping[str, int]  # layers, hidden, experts, vpp, seq, micro_batch, global_batch ...
    derived: tuple[str, ...]  # names of what the source does not state, "world_size" among them
    source: tuple[str, ...]
    url: str  # empty where the source has no address
    note: str  # empty if there is nothing to know
    served: Mapping[str, int] = field(default_factory=dict)  # sizes that a server alone has
    model_id: str = ""  # of a server: the published model that it serves
    serving: Mapping[str, str] = field(default_factory=dict)  # fields of its memory, as stated

    @property
    def world_size(self) -> int:
        return self.nodes * self.gpus_per_node

    @property
    def dp(self) -> int:
        """Data parallel size of dense layers: the remaining factor of the world; for a server, its
        dp."""
        if self.model_id:
            return self.served.get("dp", 1)
        return self.world_size // (self.tp * self.cp * self.pp)

    @property
    def edp(self) -> int:
        """Data parallel size of experts, whose tensor parallel size is etp, or tp if that is
        unset."""
        etp = self.tp if self.etp is None else self.etp
        return self.world_size // (etp * self.ep * self.pp)


def url_of(source: str) -> str:
    """The address of a source: an arXiv page, a file on GitHub, or a model card; empty if unknown.

    >>> url_of("arXiv:2407.21783v3 Table 4, Fig. 5")
    'https://arxiv.org/abs/2407.21783v3'
    >>> url_of("THUDM/GLM-130B 212215c logs/main-log-en.md (MP=4, PP=8)")
    'https://github.com/THUDM/GLM-130B/blob/212215c/logs/main-log-en.md'
    >>> url_of("tiiuae/falcon-180B model card, Training Procedure")
    'https://huggingface.co/tiiuae/falcon-180B'
    """
    paper = re.match(r"arXiv:(\d{4}\.\d{5}(?:v\d+)?)", source)
    if paper:
        return f"https://arxiv.org/abs/{paper[1]}"
    file = re.match(r"([\w.-]+/[\w.-]+) ([0-9a-f]{7,40}) ([\w./-]+\w)", source)
    if file:
        return f"https://github.com/{file[1]}/blob/{file[2]}/{file[3]}"
    card = re.match(r"([\w.-]+/[\w.-]+) model card", source)
    return f"https://huggingface.co/{card[1]}" if card else ""


_Axes = Literal["tp", "cp", "pp", "ep", "etp", "dp", "fsdp", "pods"]
_Shape = Literal["layers", "hidden", "attention_heads", "kv_heads", "ffn_hidden", "vocab", "seq"]
_Experts = Literal["experts", "routed_experts_per_token", "expert_ffn", "mtp_layers"]
_Batch = Literal["micro_batch", "global_batch", "batch_per_dp"]
_Stages = Literal["vpp", "layers_per_virtual_stage", "account_for_embedding", "account_for_loss"]
_Served = Literal["dcp", "moe_dp", "expert_parallel"]
Size = Literal["nodes", "gpus_per_node", "gpus", _Axes, _Shape, _Experts, _Batch, _Stages, _Served]
"""The numbers of a layout that a source may state."""


@dataclass(frozen=True)
class Published:
    """One published layout: the fields that it does not share with its publication."""

    id: str
    name: str = ""
    stated: Mapping[Size, int] = field(default_factory=dict)
    assumed: Mapping[Size, int] = field(default_factory=dict)
    source: tuple[str, ...] = ()
    note: str = ""
    model: str = ""  # of a server: an id of training/models.toml
    serving: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Publication:
    """Layouts that were published together, and the fields that they share."""

    family: str
    layouts: tuple[Published, ...]
    name: str = ""
    source: tuple[str, ...] = ()
    note: str = ""
    framework: str = ""
    assumed_framework: str = ""
    stated: Mapping[Size, int] = field(default_factory=dict)
    assumed: Mapping[Size, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.framework) == bool(self.assumed_framework):
            raise ValueError("a family should have a framework or an assumed_framework")

    def preset(self, own: Published) -> Preset:
        """A published layout with everything needed to draw it, and the fields that its source did
        not state."""
        stated = {**own.stated, **self.stated}
        parts = (own.assumed, self.assumed, stated)
        size: dict[str, int] = {name: n for part in parts for name, n in part.items()}
        gpus_per_node = size.get("gpus_per_node", GPUS_PER_NODE)
        others = (*LAYOUT, *SERVED)
        model = {name: value for name, value in size.items() if name not in others}
        if "layers_per_virtual_stage" in size:
            stage = size["layers"] // size["pp"]
            model = {"vpp": stage // size["layers_per_virtual_stage"], **model}
        no_experts = size.get("ep", 1) == 1  # then etp and edp do not matter
        source_names = {*stated, *(["framework"] if self.framework else [])}
        derived = tuple(
            "world_size" if name == "gpus" else name
            for name in (*LAYOUT, *model)
            if name not in source_names and not (no_experts and name in ("etp", "edp"))
        )
        source = own.source or self.source
        return Preset(
            name=own.name or self.name or self.family,
            family=self.family,
            nodes=size["nodes"] if "nodes" in size else size["gpus"] // gpus_per_node,
            gpus_per_node=gpus_per_node,
            **{axis: size.get(axis, 1) for axis in ("tp", "cp", "pp", "ep")},
            etp=size.get("etp"),
            framework=self.framework or self.assumed_framework,
            model=model,
            derived=derived,
            source=source,
            url=url_of(source[0]),
            note=own.note or self.note,
            served={
                name: bool(size[name]) if name == "expert_parallel" else size[name]
                for name in SERVED
                if name in size and own.model
            },
            model_id=own.model,
            serving=own.serving,
        )


def _presets(name: str) -> dict[str, Preset]:
    file = Path(__file__).with_name(name)
    families = read_table(file, dict[str, tuple[Publication, ...]])["families"]
    return {own.id: family.preset(own) for family in families for own in family.layouts}


PRESETS: Mapping[str, Preset] = Rows(lambda: _presets("published.toml"))
"""Every published training layout by a stable id."""

SERVERS: Mapping[str, Preset] = Rows(lambda: _presets("servers.toml"))
"""Every published server by a stable id."""

PUBLISHED: Mapping[str, Preset] = Rows(lambda: {**PRESETS, **SERVERS})
"""PRESETS and SERVERS together."""
