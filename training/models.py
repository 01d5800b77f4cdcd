"""Models with published shapes, to start from, each with its source and its published size.

>>> MODELS["llama3-8b"].name, MODELS["llama3-8b"].model.kv_heads
('Llama 3 8B', 8)
>>> model_like(layers=126, experts=0), model_like(experts=256)
('llama3-405b', 'deepseek-v3')
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from .model import Model


@dataclass(frozen=True)
class PublishedModel:
    """A model somebody published; ``parameters`` is the number that its source gives."""

    name: str
    model: Model
    source: str
    parameters: float


DEFAULT = "llama3-8b"
"""The model that is shown where nothing says another."""


def model_like(*, layers: int | None = None, experts: int | None = None) -> str:
    """The id of the first model with these layers and experts; empty if there is none.

    What is None is not asked for; with nothing asked it is DEFAULT.
    """
    if layers is None and experts is None:
        return DEFAULT
    for name, one in MODELS.items():
        has_layers = layers is None or one.model.layers == layers
        has_experts = experts is None or one.model.experts == experts
        if has_layers and has_experts:
            return name
    return ""


_GPT = {"tied": True, "learned_positions": True, "biases": "all"}
_LLAMA = {"gated": True, "rms_norm": True}
_MIXTRAL = {**_LLAMA, "kv_heads": 8, "head_dim": 128, "experts": 8, "top_k": 2}
_DEEPSEEK_V3 = {
    **_LLAMA,
    "experts": 256,
    "top_k": 8,
    "expert_ffn": 2048,
    "shared_expert_ffn": 2048,
    "dense_layers": 3,
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
}
_QWEN3_235B = {
    **_LLAMA,
    "kv_heads": 4,
    "head_dim": 128,
    "experts": 128,
    "top_k": 8,
    "expert_ffn": 1536,
}

_SIZES = """
id              layers hidden heads    ffn vocabulary sequence    parameters
llama3-8b           32   4096    32  14336     128256     8192    8030261248
llama3-70b          80   8192    64  28672     128256     8192   70553706496
llama3-405b        126  16384   128  53248     128256     8192  405000000000
deepseek-v3         61   7168   128  18432     129280     4096  671000000000
mixtral-8x7b        32   4096    32  14336      32000    32768   46702792704
mixtral-8x22b       56   6144    48  16384      32768     4096  140630000000
qwen2.5-72b         80   8192    64  29568     152064    32768   72706203648
qwen3-235b-a22b     94   4096    64  12288     151936     4096  235093634560
gpt3-175b           96  12288    96  49152      50257     2048  174600000000
bloom-176b          70  14336   112  57344     250880     2048  176247271424
nemotron4-340b      96  18432    96  73728     256000     4096  340000000000
gpt-22b             48   6144    64  24576      51200     2048   22000000000
gpt-1.7b            24   2304    24   9216      51200     2048    1700000000
gpt-3.6b            30   3072    32  12288      51200     2048    3600000000
gpt-7.5b            36   4096    32  16384      51200     2048    7500000000
gpt-18.4b           40   6144    48  24576      51200     2048   18400000000
gpt-39.1b           48   8192    64  32768      51200     2048   39100000000
gpt-76.1b           60  10240    80  40960      51200     2048   76100000000
gpt-145.6b          80  12288    96  49152      51200     2048  145600000000
gpt-310.1b          96  16384   128  65536      51200     2048  310100000000
gpt-529.6b         105  20480   128  81920      51200     2048  529600000000
gpt-1008b          128  25600   160 102400      51200     2048 1008000000000
"""

_MEGATRON_2021 = "arXiv:2104.04473 Table 1"

_NAMED: Mapping[str, tuple[str, Mapping[str, object], str]] = {
    "llama3-8b": ("Llama 3 8B", {**_LLAMA, "kv_heads": 8}, "arXiv:2407.21783 Table 3"),
    "llama3-70b": ("Llama 3 70B", {**_LLAMA, "kv_heads": 8}, "arXiv:2407.21783 Table 3"),
    "llama3-405b": ("Llama 3 405B", {**_LLAMA, "kv_heads": 8}, "arXiv:2407.21783 Table 3"),
    "deepseek-v3": ("DeepSeek-V3", _DEEPSEEK_V3, "arXiv:2412.19437 section 4.2, config.json"),
    "mixtral-8x7b": ("Mixtral 8x7B", _MIXTRAL, "arXiv:2401.04088 Table 1"),
    "mixtral-8x22b": ("Mixtral 8x22B", _MIXTRAL, "mistralai/Mixtral-8x22B-v0.1 config.json"),
    "qwen2.5-72b": (
        "Qwen2.5 72B",
        {**_LLAMA, "kv_heads": 8, "biases": "qkv"},
        "Qwen/Qwen2.5-72B config.json",
    ),
    "qwen3-235b-a22b": ("Qwen3 235B-A22B", _QWEN3_235B, "Qwen/Qwen3-235B-A22B config.json"),
    "gpt3-175b": ("GPT-3 175B", _GPT, "arXiv:2005.14165 Table 2.1, appendix D"),
    "bloom-176b": (
        "BLOOM 176B",
        {"tied": True, "biases": "all"},
        "bigscience/bloom model card",
    ),
    "nemotron4-340b": (
        "Nemotron-4 340B",
        {"kv_heads": 8},
        "arXiv:2406.11704 Table 1: squared ReLU, no biases, untied embeddings",
    ),
    "gpt-22b": ("GPT 22B", _GPT, "arXiv:2205.05198 Table 3"),
}


def _published() -> Iterator[tuple[str, PublishedModel]]:
    header, *rows = (line.split() for line in _SIZES.strip().splitlines())
    model: Callable[..., Model] = Model
    for name, *cells in rows:
        sizes = dict(zip(header[1:], map(int, cells)))
        parameters = sizes.pop("parameters")
        gpt = ("GPT " + name.removeprefix("gpt-").upper(), _GPT, _MEGATRON_2021)
        title, own, source = _NAMED.get(name, gpt)
        yield name, PublishedModel(title, model(**sizes, **own), source, parameters)


MODELS: dict[str, PublishedModel] = dict(_published())
"""Every model by its id, the most asked for first."""
