"""What one rank holds, asked of the product: rows of Megatron's and of engines' own counts.

    megatron(row)   parameters of each of the row's stages, in their order
    vllm(row)       parameters of the row's rank

A row of Megatron has the fields of its TransformerConfig, sizes of the layout and a hybrid pattern;
one of vLLM names a configuration, which stands in the row or in tests/data/models/params.jsonl.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from training.configs.megatron import MegatronConfig
from training.configs.reading import read_config
from training.model import Model
from training.parameters import stage_parameters
from training.serving.layers import stage_layers
from training.serving.weights import Cut, rank_elements
from training.split import Split

PARAMS = Path(__file__).parents[1] / "data" / "models" / "params.jsonl"


def megatron(row: Mapping[str, Any]) -> list[int]:
    """The parameters of each of the row's stages."""
    parallel = row["parallel"]
    config = MegatronConfig(row["config"], parallel.get("pattern", row.get("pattern", "")))
    learned = row.get("positions") == "learned_absolute"
    model = config.model(
        vocabulary=row["vocab"],
        sequence=row.get("seq", 4096),
        tied=bool(row.get("tied")),
        learned_positions=learned,
    )
    stages = stage_parameters(model, split_of(parallel, config.spread))
    return [stages[stage["pp"]].total for stage in row["stages"]]


def split_of(parallel: Mapping[str, Any], spread: str) -> Split:
    """The sizes of a layout by Megatron's names."""
    dense = parallel["tp"] * parallel["pp"] * parallel["cp"]
    accounts = [
        parallel.get(f"account_for_{end}_in_pipeline_split", False) for end in ("embedding", "loss")
    ]
    assert accounts[0] == accounts[1], "the product takes both or none"
    return Split(
        **{name: parallel[name] for name in ("tp", "pp", "cp", "ep", "etp")},
        dp=parallel["world"] // dense,
        vpp=parallel.get("vpp", 1),
        account=accounts[0],
        spread=parallel.get("pipeline_model_parallel_layout", spread),
        first=parallel.get("num_layers_in_first_pipeline_stage"),
        last=parallel.get("num_layers_in_last_pipeline_stage"),
    )


@cache
def configs() -> dict[str, Any]:
    """The public configurations by their id."""
    rows = map(json.loads, PARAMS.open())
    return {row["id"]: row["config"] for row in rows}


def vllm(row: Mapping[str, Any]) -> int:
    """The parameters on the row's rank."""
    model = read_config(row.get("config") or configs()[row["id"]]).model
    return vllm_rank(model, row["tp"], row["pp"], row["rank"], row["expert_parallel"])


def vllm_rank(model: Model, tp: int, pp: int, rank: int, expert_parallel: bool) -> int:
    """The parameters on one rank of a server with tensor and pipeline parallelism."""
    experts = {"ep": tp, "etp": 1} if expert_parallel else {"ep": 1, "etp": tp}
    cut = Cut(attention=tp, dense=tp, pp=pp, **experts)
    stage = rank // tp
    held = stage_layers(model.layers, pp, "vllm")[stage]
    return sum(rank_elements(model, cut, stage, held, rank % tp).values())
