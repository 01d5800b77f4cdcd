"""The frameworks whose files and commands have a table of fields of their own, a file each."""

from __future__ import annotations

from .nanotron import NANOTRON
from .nemo_rl import NEMO_RL
from .neox import NEOX
from .primus import PRIMUS
from .roll import ROLL
from .schema import Schema
from .serving import SGLANG, VLLM
from .slime import SLIME
from .torch_native import ACCELERATE, AXOLOTL, LLAMA_FACTORY, TORCHTUNE
from .verl import VERL

SCHEMAS: tuple[Schema, ...] = (
    *(VERL, NEMO_RL, ROLL, SLIME, PRIMUS, NANOTRON, VLLM, SGLANG),
    *(TORCHTUNE, AXOLOTL, LLAMA_FACTORY, ACCELERATE, NEOX),
)
"""In the order in which they are tried."""


def schema_of(words: set[str]) -> Schema | None:
    """The framework that some of the words belong to alone."""
    return next((schema for schema in SCHEMAS if schema.is_meant(words)), None)
