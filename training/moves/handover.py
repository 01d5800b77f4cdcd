"""One request's KV cache from the layout that prefills to the one that decodes: who sends which
layers and heads, and how many bytes.

`kv_moves` says it of shards; here they are the ranks of two layouts. A decoding layout may hold
several copies of the model, and a request goes to one of them: what is said is said of each.

>>> from groups.layout import Job
>>> from training.models import MODELS
>>> prefill = Job(nodes=1, tp=8, framework="vllm").layout()
>>> decode = Job(nodes=1, tp=4, framework="vllm").layout()
>>> found = hand_over(MODELS["llama3-8b"].model, prefill, decode, first_rank=8, tokens=8192)
>>> found.rule, found.cache, [move[:2] for move in found.received(9)]
('vllm', 1073741824, [(2, 9), (3, 9)])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lcm
from typing import NamedTuple

import numpy as np

from groups.layout import Layout
from groups.mesh import whole_number

from ..errors import refusal
from ..machine import Machine
from ..model import MAX_SIZE, Model
from ..serving.cache import KV_RULES, WINDOWED, KVLayer
from ..serving.layers import kv_layers
from ..serving.weights import Cut
from .kv import Shards, kv_moves
from .sharded import beginnings, ordinals


class KVMove(NamedTuple):
    """One message for one request: sender, receiver, layers, KV heads, bytes."""

    source: int
    target: int
    first_layer: int
    after_layer: int
    first_head: int
    after_head: int
    bytes: int


class CacheSide(NamedTuple):
    """One side of a handover: its shards, and the rank of each, in order of the shards."""

    shards: Shards
    ranks: np.ndarray
    layout: Layout

    @property
    def copies(self) -> int:
        return self.shards.copies

    def require(self, rank: int | None) -> None:
        """Raises LayoutError for a rank that the side does not have."""
        first, last = int(self.ranks.min()), int(self.ranks.max())
        if rank is not None and not first <= whole_number(rank, "rank", minimum=0) <= last:
            near = {"rank": min(max(rank, first), last)}
            raise refusal("no-such-rank", "rank", near, rank=rank, first=first, last=last)

    def copy_of(self, rank: int) -> np.ndarray:
        """The ranks that hold the same copy of the model as a rank."""
        shape = self.shards.pp, self.shards.copies, self.shards.tp
        by_copy = self.ranks.reshape(shape)
        copy = int(np.nonzero(by_copy == rank)[1][0])
        return by_copy[:, copy].reshape(-1)

    def place_of(self, rank: int) -> tuple[int, int]:
        """The pipeline stage and the tp part of a rank."""
        at = int(np.flatnonzero(self.ranks == rank)[0])
        return at // (self.shards.tp * self.shards.copies), at % self.shards.tp


@dataclass(frozen=True, eq=False)
class Handover:
    """The transfer of a request's cache, made by `hand_over`.

    cache: bytes of the whole cache. heads: number of KV heads, 1 for a latent. moves: messages to
    every rank that decodes.
    """

    rule: str
    tokens: int
    cache: int
    layers: int
    heads: int
    source: CacheSide
    target: CacheSide
    moves: Sequence[KVMove]

    def received(self, rank: int) -> list[KVMove]:
        """The messages to one rank, including parts that it already holds."""
        return [move for move in self.moves if move.target == rank]

    def of_copy(self, rank: int) -> list[KVMove]:
        """The messages for one request to all ranks of the copy of the model that a rank belongs
        to."""
        own = {*self.target.copy_of(rank).tolist()}
        return [move for move in self.moves if move.target in own]

    @cached_property
    def gpus_per_node(self) -> int:
        return self.source.layout.gpus_per_node


def hand_over(
    model: Model,
    source: Layout,
    target: Layout,
    first_rank: int = 0,
    rule: str = "",
    *,
    source_rank: int = 0,
    tokens: int = 0,
    element_bytes: float = 2,
) -> Handover:
    """One request's cache from ranks that prefilled it to ranks that decode.

    rule: one of KV_RULES; empty: that of the engine that decodes. tokens: length of the request; 0:
    the model's sequence. element_bytes: bytes per element of the cache.

    Errors: LayoutError as in `kv_moves` and `beginnings`.
    """
    engine = target.framework if target.framework in KV_RULES else "megatron"
    length = whole_number(tokens or model.sequence, "tokens", maximum=MAX_SIZE)
    layers = kv_layers(model, Cut(), fp8=model.is_mla and element_bytes == 1)
    heads = 1 if model.is_mla else model.kv_heads
    begin, first = beginnings(source, target, source_rank, first_rank)
    sides = side_of(source, begin), side_of(target, first)
    shards = sides[0].shards, sides[1].shards
    rows = kv_moves(model.layers, heads, *shards, rule or engine, mla=model.is_mla)
    share = lcm(shards[0].dcp, shards[1].dcp) if (rule or engine) != "megatron" else 1
    each = [_head_bytes(layer, length, element_bytes) for layer in layers]
    before = np.concatenate(([0.0], np.cumsum(each)))
    moves = []
    for row in rows:
        of_layers = before[row.after_layer] - before[row.first_layer]
        size = of_layers * (row.after_head - row.first_head) / share
        ends = sides[0].ranks[row.source], sides[1].ranks[row.target]
        moves.append(KVMove(int(ends[0]), int(ends[1]), *row[2:], round(size)))
    total = round(before[-1] * heads)
    return Handover(rule or engine, length, total, model.layers, heads, *sides, moves)


def side_of(layout: Layout, first_rank: int) -> CacheSide:
    """The shards of a layout's KV cache, with its ranks in their order."""
    mesh = layout.mesh
    tp, pp = mesh.size("tp"), mesh.size("pp")
    dcp = layout.every["dcp"].size if "dcp" in layout.every else 1
    tp_at, pp_at = (_along(layout, axis) for axis in ("tp", "pp"))
    copies = layout.world_size // (tp * pp)
    copy = ordinals(pp_at * tp + tp_at)
    ranks = np.empty(layout.world_size, dtype=np.int64)
    ranks[tp_at + tp * (copy + copies * pp_at)] = np.arange(layout.world_size) + first_rank
    return CacheSide(Shards(tp=tp, pp=pp, copies=copies, dcp=dcp), ranks, layout)


def _along(layout: Layout, axis: str) -> np.ndarray:
    mesh = layout.mesh
    if axis not in mesh.names:
        return np.zeros(layout.world_size, dtype=np.int64)
    stride = mesh.strides[mesh.names.index(axis)]
    return np.arange(layout.world_size) // stride % mesh.size(axis)


def _head_bytes(layer: KVLayer, tokens: int, element_bytes: float) -> float:
    """Bytes that a layer keeps of a request for one KV head; a layer with a window keeps its last
    tokens.

    >>> short = KVLayer(1, 4, 4, "sliding", 10)
    >>> _head_bytes(KVLayer(8, 128, 128), 100, 2), _head_bytes(short, 99, 1)
    (51200, 80)
    """
    kept = min(tokens, layer.window) if layer.kind in WINDOWED else tokens
    return (layer.key + layer.value) * kept * element_bytes


def handover_seconds(moves: Sequence[KVMove], gpus_per_node: int, cluster: Machine) -> float:
    """Seconds at link speed of the rank that sends or receives longest."""
    longest = 0.0
    for end in ("source", "target"):
        near: dict[int, int] = {}
        far: dict[int, int] = {}
        for move in moves:
            if move.source != move.target:
                is_far = move.source // gpus_per_node != move.target // gpus_per_node
                counts, rank = far if is_far else near, getattr(move, end)
                counts[rank] = counts.get(rank, 0) + move.bytes
        slowest = max(near.values(), default=0) / cluster.nvlink
        longest = max(longest, slowest, max(far.values(), default=0) / cluster.nic)
    return longest
