"""From one layout to another: who sends which slice of which tensor, or of a KV cache, to whom."""

from .kv import KVRow, Shards, kv_moves
from .rows import TensorMove
from .weights import Moves, weight_moves

__all__ = ["KVRow", "Moves", "Shards", "TensorMove", "kv_moves", "weight_moves"]
