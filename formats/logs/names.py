"""Which kind of group a printed name is.

Sources: NVIDIA/Megatron-LM, megatron/core/parallel_state.py (descriptions); PyTorch,
torch/distributed/device_mesh.py (``mesh_<dim>``); pytorch/torchtitan,
torchtitan/distributed/parallel_dims.py (names of dims). DeepSpeed passes no description.
"""

from __future__ import annotations

import re

from groups.megatron.parallel_state import FAMILIES

WORLD = "world"

_MEGATRON = {family.parallel_state: name for name, family in FAMILIES.items()}

_DIMS = ("world", "pp", "cp", "tp", "ep", "etp", "dp", "dp_replicate", "dp_shard", "dp_cp")
_DIMS += ("dp_shard_cp", "dp_shard_in_ep")
_TORCHTITAN = {dim: dim.replace("_", "-") for dim in _DIMS}
_TORCHTITAN |= {"batch": "dp", "fsdp": "dp-shard-cp", "loss": "dp-cp", "loss_mesh": "dp-cp"}
_TORCHTITAN |= {"efsdp": "edp", "dp_shard_mod_ep": "edp"}

_TWINS = re.compile(r"(_GLOO|_AG|_WITH_AG)$")
_LEVEL = re.compile(r"(?:HIERARCHICAL_CONTEXT_PARALLEL_GROUPS?|HIERARCHICAL_\w{0,40}?)_L(\d{1,3})$")
_HYBRID = re.compile(r"HYBRID_DP_CP_GROUPS?_(\d{1,7})$")


def kind_of(name: str | None) -> str | None:
    """The kind of group that a description means, or None.

    >>> kind_of("TENSOR_MODEL_PARALLEL_GROUP"), kind_of("DATA_PARALLEL_GROUP_WITH_CP_GLOO")
    ('tp', 'dp-cp')
    >>> kind_of("mesh_dp_shard"), kind_of("default_pg"), kind_of("undefined"), kind_of("my group")
    ('dp-shard', 'world', None, None)
    """
    if not name or name == "undefined":
        return None
    if name == "default_pg":
        return WORLD
    if name.startswith("mesh_"):
        return _TORCHTITAN.get(name.removeprefix("mesh_"))
    stem = _TWINS.sub("", name.upper())
    if stem in _MEGATRON:
        return _MEGATRON[stem]
    if level := _LEVEL.match(stem):
        return f"hcp-l{int(level[1])}"
    if hybrid := _HYBRID.match(stem):
        return f"hybrid-dp-cp-{int(hybrid[1])}"
    return None
