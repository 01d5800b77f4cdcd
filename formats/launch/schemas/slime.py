"""slime: Megatron's options, with the machines of the actor by names of its own.

Source: THUDM/slime 624b824 slime/utils/arguments.py.
"""

from __future__ import annotations

from .schema import Schema, table

SLIME = Schema(
    "slime",
    "megatron",
    (("--actor-num-nodes",), ("--actor-num-gpus-per-node",)),
    options=table(
        """
        actor-num-nodes          nodes
        actor-num-gpus-per-node  gpus_per_node
        """
    ),
)
