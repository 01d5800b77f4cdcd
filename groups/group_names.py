"""The kind of group that a running program's name for it means.

Megatron gives each group a description; a DeviceMesh names the group of an axis ``mesh_`` and the
axis: the axis names of torchtitan, accelerate and DeepSpeed are known, and other usual ones.

Sources of names: NVIDIA/Megatron-LM, megatron/core/parallel_state.py (descriptions); PyTorch,
torch/distributed/device_mesh.py (``mesh_<dim>``); pytorch/torchtitan,
torchtitan/distributed/parallel_dims.py (names of dims). DeepSpeed and vLLM pass no description to
their groups.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .megatron.parallel_state import FAMILIES
from .tables import Rows

WORLD = "world"

_MEGATRON = Rows(lambda: {family.parallel_state: name for name, family in FAMILIES.items()})

_DIMS: tuple[str, ...] = (
    "world",
    "pp",
    "cp",
    "tp",
    "ep",
    "etp",
    "dp",
    "dp_replicate",
    "dp_shard",
    "dp_cp",
)
_DIMS += ("dp_shard_cp", "dp_shard_in_ep")
DIMS = {dim: dim.replace("_", "-") for dim in _DIMS}
DIMS |= {"batch": "dp", "fsdp": "dp-shard-cp", "loss": "dp-cp", "loss_mesh": "dp-cp"}
DIMS |= {"efsdp": "edp", "dp_shard_mod_ep": "edp"}  # torchtitan 0.3.0, parallel_dims.py
# DeepSpeed edaa722 deepspeed/utils/groups.py; Ulysses deals the sequence out.
DIMS |= {"data_parallel": "dp", "tensor_parallel": "tp", "sequence_parallel": "cp"}
# Of torch's own documentation and what follows it.
DIMS |= {"data": "dp", "replicate": "dp-replicate", "shard": "dp-shard"}
DIMS |= {
    "model": "tp",
    "tensor": "tp",
    "pipe": "pp",
    "pipeline": "pp",
    "context": "cp",
    "edp": "edp",
}
"""Names of a mesh's axes, and the kind of group that each is."""

_TWINS = re.compile(r"(_GLOO|_AG|_WITH_AG)$")
_LEVEL = re.compile(r"HIERARCHICAL_\w{0,40}?_L(\d{1,3})$")
_HYBRID = re.compile(r"HYBRID_DP_CP_GROUPS?_(\d{1,7})$")


def kind_of(name: str | None, guid: str | None = None) -> str | None:
    """The kind of group that a description means, or None. guid: torch's name of the group; "0" is
    the group of all ranks.

    >>> kind_of("TENSOR_MODEL_PARALLEL_GROUP"), kind_of("DATA_PARALLEL_GROUP_WITH_CP_GLOO")
    ('tp', 'dp-cp')
    >>> kind_of("DATA_PARALLEL_GROUP_WITH_CP_AG")
    'dp-cp-ag'
    >>> kind_of("mesh_dp_shard"), kind_of("default_pg"), kind_of("undefined"), kind_of("my group")
    ('dp-shard', 'world', None, None)
    """
    if not name or name == "undefined":
        return WORLD if guid == "0" else None
    if name == "default_pg":
        return WORLD
    if name.startswith("mesh_"):
        return DIMS.get(name.removeprefix("mesh_"))
    whole = name.upper()
    stem = _TWINS.sub("", whole)
    if whole in _MEGATRON or stem in _MEGATRON:
        return _MEGATRON.get(whole) or _MEGATRON[stem]
    if level := _LEVEL.match(stem):
        return f"hcp-l{int(level[1])}"
    if hybrid := _HYBRID.match(stem):
        return f"hybrid-dp-cp-{int(hybrid[1])}"
    return None


PARTS_OF_AXES: dict[str, frozenset[str]] = {
    "dp": frozenset({"dp", "edp", "data", "dp_shard", "batch", "global", "attn_dp", "moe_dp"}),
    "ep": frozenset({"ep", "expert", "expt_ep", "moe_ep"}),
    "pp": frozenset({"pp", "mp", "embd", "pipe", "stage"}),
    "cp": frozenset({"cp", "hcp", "sep", "context", "pcp", "attn_cp", "dcp"}),
    "tp": frozenset({"tp", "etp", "gtp", "egtp", "model", "tensor", "mdl", "local"})
    | {"attention_tp", "moe_tp"},
}
"""Parts of a group's name that say of which axis its ranks are, the axis that decides first."""


@lru_cache(maxsize=256)
def main_axis(name: str) -> str:
    """The axis that a group is mostly made of, by its name alone; empty if no part of it says so.

    >>> main_axis("edp"), main_axis("tp-ep"), main_axis("hcp-l0"), main_axis("slice")
    ('dp', 'ep', 'cp', '')
    """
    parts = name.split("-")
    for axis, words in PARTS_OF_AXES.items():
        if any(part in words for part in parts):
            return axis
    return ""
