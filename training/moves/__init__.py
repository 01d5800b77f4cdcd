"""From one layout to another: who sends which slice of which tensor, or of a KV cache, to whom."""

from .handover import Handover, KVMove, hand_over
from .kv import KVRow, Shards, kv_moves
from .rows import TensorMove
from .weights import Moves, weight_moves

__all__ = [
    "Handover",
    "KVMove",
    "KVRow",
    "Moves",
    "Shards",
    "TensorMove",
    "hand_over",
    "kv_moves",
    "weight_moves",
]
