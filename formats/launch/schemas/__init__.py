"""The frameworks whose files and commands have a table of fields of their own."""

from __future__ import annotations

from .reinforcement import NEMO_RL, ROLL, VERL
from .schema import Schema
from .serving import SGLANG, VLLM
from .trainers import ACCELERATE, AXOLOTL, LLAMA_FACTORY, NANOTRON, NEOX, PRIMUS, SLIME, TORCHTUNE

SCHEMAS: tuple[Schema, ...] = (
    *(VERL, NEMO_RL, ROLL, SLIME, PRIMUS, NANOTRON, VLLM, SGLANG),
    *(TORCHTUNE, AXOLOTL, LLAMA_FACTORY, ACCELERATE, NEOX),
)
"""In the order in which they are tried."""


def schema_of(words: set[str]) -> Schema | None:
    """The framework that some of the words belong to alone."""
    return next((schema for schema in SCHEMAS if schema.is_meant(words)), None)
