"""Models with published shapes, to start from, each with its source and its published size.

>>> MODELS["llama3-8b"].name, MODELS["llama3-8b"].model.kv_heads
('Llama 3 8B', 8)
>>> model_like(layers=126, experts=0), model_like(experts=256)
('llama3-405b', 'deepseek-v3')
>>> model_of_preset("nemotron4-340b-1536") == MODELS["nemotron4-340b"].model
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from groups.presets import PRESETS

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


def variant(start: Model, changes: Mapping[str, object]) -> Model:
    """The model with other values; what follows from them in ``start`` follows here too.

    >>> wide = variant(MODELS["gpt3-175b"].model, {"hidden": 15360, "heads": 128})
    >>> wide.head_dim, wide.kv_heads, wide.ffn
    (120, 128, 61440)

    Errors: LayoutError about the value that cannot be.
    """
    follows: dict[str, int] = {}
    if "hidden" in changes or "heads" in changes:
        if start.head_dim * start.heads == start.hidden:
            follows["head_dim"] = 0
        if start.kv_heads == start.heads:
            follows["kv_heads"] = 0
        if start.ffn == 4 * start.hidden:
            follows["ffn"] = 0
    if changes.get("experts") == 0:
        follows |= dict.fromkeys(("top_k", "expert_ffn", "shared_expert_ffn", "dense_layers"), 0)
    return replace(start, **{**follows, **changes})  # type: ignore[arg-type]


# -- of published layouts ------------------------------------------------------------------------


@dataclass(frozen=True)
class PresetModel:
    """What a published layout says of its model: one of MODELS or none, and what differs from it.

    Without one of MODELS ``changes`` are the sizes that are stated, and do not make a model.
    """

    name: str
    changes: Mapping[str, int]


def model_of_preset(preset: str) -> Model | None:
    """The model that a published layout trains; None where no source gives its whole shape.

    >>> model_of_preset("megatron2021-fig16-91b").hidden, model_of_preset("falcon-180b")
    (15360, None)

    Errors: KeyError for a name that is none of PRESETS.
    """
    said = said_of_preset(preset)
    return variant(MODELS[said.name].model, said.changes) if said.name else None


def said_of_preset(preset: str) -> PresetModel:
    """The model of a published layout as one of MODELS and what its source states otherwise.

    >>> said_of_preset("llama3-405b-3")
    PresetModel(name='llama3-405b', changes={'sequence': 131072})
    >>> said_of_preset("opt-175b")
    PresetModel(name='', changes={'layers': 96, 'hidden': 12288, 'heads': 96})
    """
    stated = {FIELDS.get(name, name): size for name, size in PRESETS[preset].model.items()}
    name = next((one for start, one in _OF_PRESETS.items() if preset.startswith(start)), "")
    if preset.startswith(_FIGURES):  # section 5 of the same paper
        stated = {"vocabulary": 51200, "sequence": 2048, **stated}
    start = MODELS[name].model if name else None
    changes = {
        field: size
        for field, size in stated.items()
        if field in SIZES and (start is None or getattr(start, field) != size)
    }
    return PresetModel(name, changes)


FIELDS = {
    **{"attention_heads": "heads", "ffn_hidden": "ffn", "vocab": "vocabulary", "seq": "sequence"},
    "routed_experts_per_token": "top_k",
}
"""The field of a model that a published layout calls otherwise."""

SIZES = (
    *("layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary", "sequence"),
    *("experts", "top_k"),
)
"""Fields of a model that published layouts state."""

_FIGURES = "megatron2021-fig"
_OF_PRESETS = {
    "megatron2021-fig12": "gpt3-175b",
    _FIGURES: "gpt-145.6b",
    "megatron2021-1008.0b": "gpt-1008b",
    **{f"megatron2021-{size}b": f"gpt-{size}b" for size in (1.7, 3.6, 7.5, 18.4, 39.1, 76.1)},
    **{f"megatron2021-{size}b": f"gpt-{size}b" for size in (145.6, 310.1, 529.6)},
    "korthikanti-22b": "gpt-22b",
    "korthikanti-175b": "gpt3-175b",
    "korthikanti-530b": "gpt-529.6b",
    "korthikanti-1t": "gpt-1008b",
    "mtnlg-530b": "gpt-529.6b",
    "bloom-176b": "bloom-176b",
    "llama3-405b": "llama3-405b",
    "deepseek-v3": "deepseek-v3",
    "kimi-k2": "kimi-k2",
    "nemotron4-340b": "nemotron4-340b",
    "folding-mixtral-8x22b-mcore": "mixtral-8x22b",
    "folding-mixtral-8x22b-folded": "mixtral-8x22b",
    "folding-mixtral-ctx": "mixtral-8x22b",
    "bridge-deepseekv3": "deepseek-v3",
    "bridge-qwen3_235b_a22b": "qwen3-235b-a22b",
    "bridge-qwen3_30b_a3b": "qwen3-30b-a3b",
    "bridge-llama3.1_405b": "llama3-405b",
    "bridge-llama3_70b": "llama3-70b",
    "mcore-guide-llama-3-8b": "llama3-8b",
    "mcore-guide-llama-3-70b": "llama3-70b",
    "mcore-guide-llama-3.1-405b": "llama3-405b",
    "mcore-guide-mixtral-8x7b": "mixtral-8x7b",
    "mcore-guide-mixtral-8x22b": "mixtral-8x22b",
    "mcore-guide-deepseek-v3": "deepseek-v3",
}
"""The model of a published layout, by how its id begins; the first that fits."""


# -- the models ----------------------------------------------------------------------------------

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
_QWEN3_30B = {**_QWEN3_235B, "expert_ffn": 768}
_KIMI_K2 = {**_DEEPSEEK_V3, "experts": 384, "dense_layers": 1}

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
qwen3-30b-a3b       48   2048    32   6144     151936     4096   30532122624
kimi-k2             61   7168    64  18432     163840     4096 1040000000000
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
    "qwen3-30b-a3b": ("Qwen3 30B-A3B", _QWEN3_30B, "Qwen/Qwen3-30B-A3B config.json"),
    "kimi-k2": ("Kimi K2", _KIMI_K2, "arXiv:2507.20534 Table 2, moonshotai/Kimi-K2 config.json"),
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
