"""Memory of servers: against what engines printed, and laws of weights and KV heads."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest

from groups import LayoutError
from training.machine import GIB
from training.models import MODELS
from training.parameters import total_parameters
from training.serving import KVLayer, kv_cache
from training.serving.layers import kv_layers, stage_layers
from training.serving.server import STARTED, Serving, seen_memory, server_memory
from training.serving.sglang import prefill_chunk, sglang_share
from training.serving.weights import FORMATS, Cut, experts_of, layer_bytes, table_bytes

PRINTED = Path(__file__).parent / "data" / "serving_printed.jsonl"
ROWS = [json.loads(line) for line in PRINTED.read_text(encoding="utf-8").splitlines()[1:]]
ROUNDED = 0.005 * GIB
"""GiB are printed with two digits."""


def layers_of(row):
    """The layers on one rank of a row that says its shape."""
    if "mla_bytes" in row:
        return [KVLayer(1, row["mla_bytes"], 0, "mla")] * row["mla_layers"], 1
    arch = row["arch"]
    heads = max(1, arch["kv_heads"] // row.get("tp", 1))
    dim = arch["head_dim"]
    return [KVLayer(heads, dim, dim)] * arch["layers"], arch["bytes"]


def tokens_in(row, available):
    layers, size = layers_of(row)
    block = row["block_size"]
    return kv_cache(layers, available, max_model_len=block, block=block, bytes=size).tokens


# -- tokens in so many bytes ----------------------------------------------------------------------

OF_ANOTHER_RANK = ("one rank's", "smallest rank")
EXACT = [
    row
    for row in ROWS
    if "printed_tokens" in row
    and ("arch" in row or "mla_bytes" in row)
    and any(name in row for name in ("available_kv_gib", "k_gib", "kv_gib"))
    and not any(words in row.get("note", "") for words in OF_ANOTHER_RANK)
]


@pytest.mark.parametrize("row", EXACT, ids=lambda row: f"{row['engine']} {row['model']}")
def test_a_cache_of_so_many_bytes_has_the_tokens_that_were_printed(row):
    """To the token, where bytes are printed with two digits of a GiB, or of each half of them."""
    halves = "k_gib" in row
    size = row["k_gib"] + row["v_gib"] if halves else row.get("available_kv_gib") or row["kv_gib"]
    off = ROUNDED * (2 if halves else 1)
    low, high = (tokens_in(row, size * GIB + sign * off) for sign in (-1, 1))
    assert low <= row["printed_tokens"] <= high
    assert (high - low) / row["printed_tokens"] < 0.005
    if "printed_blocks" in row:
        assert row["printed_blocks"] * row["block_size"] == row["printed_tokens"]


def test_so_many_printed_caches_are_checked():
    assert len(EXACT) >= 15
    assert sum(row["from"] == "own" for row in ROWS) >= 10


def test_where_another_rank_decides_its_tokens_are_fewer():
    others = [row for row in ROWS if any(words in row.get("note", "") for words in OF_ANOTHER_RANK)]
    assert others
    for row in others:
        assert row["printed_tokens"] < tokens_in(row, row["available_kv_gib"] * GIB)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["kind"] == "error"], ids=lambda row: row["model"]
)
def test_a_request_that_did_not_fit_is_refused_with_the_length_that_was_printed(row):
    layers, size = layers_of(row)
    available = row.get("available_gib", row.get("available_kv_gib")) * GIB
    with pytest.raises(LayoutError) as refused:
        kv_cache(layers, available, row["max_model_len"], block=row["block_size"], bytes=size)
    assert refused.value.facts["needed"] == f"{row['needed_gib']:.2f} GiB"
    (fix,) = refused.value.alternatives
    # One block was not yet held back then.
    assert fix["max_model_len"] == pytest.approx(
        row["estimated_max_len"], abs=3 * row["block_size"] + 0.005 * row["estimated_max_len"]
    )


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if {"printed_blocks", "printed_max_concurrency"} <= row.keys()],
    ids=lambda row: row["model"],
)
def test_requests_are_blocks_by_the_length_of_a_request(row):
    requests = row["printed_blocks"] * row["block_size"] / row["max_model_len"]
    assert requests == pytest.approx(row["printed_max_concurrency"], abs=0.0051)


# -- tokens from a GPU, a model and a share -------------------------------------------------------

FROM_SCRATCH = [
    row
    for row in ROWS
    if "id" in row
    and {"total_gpu_gib", "before_load_gib"} & row.keys()
    and {"available_kv_gib", "k_gib"} & row.keys()
]
UNSTATED = "to how many is not stated"


def error_of(row):
    """How far the cache is from what was printed, as a share of it."""
    model, tp, engine = MODELS[row["id"]], row.get("tp", 1), row["engine"]
    total = row.get("total_gpu_gib") or row["before_load_gib"] + STARTED[tp > 1]
    serving = Serving(
        engine="sglang" if engine == "sglang" else "vllm",
        weights=row.get("weights", "bf16"),
        share=row["gpu_memory_utilization"],
        length=2048,
        requests=row.get("max_num_seqs", 0),
        batched=row.get("max_num_batched_tokens", 0),
    )
    cut = Cut(attention=tp, dense=tp, etp=tp)
    memory = server_memory(model.model, cut, serving, total * GIB, is_a100=row.get("a100", False))
    halves = row.get("k_gib", 0) + row.get("v_gib", 0)
    printed = row.get("available_gib_at_first") or row.get("available_kv_gib") or halves
    if any(words in row.get("note", "") for words in OF_ANOTHER_RANK):
        printed = row["printed_tokens"] * memory.deciding.token / GIB
    return memory.deciding.available / GIB / printed - 1


def test_from_scratch_the_cache_is_within_a_few_percent_of_what_was_printed():
    """Measured: 2.4 % in the median of 17, and 19 % at worst; 70 % where the number of requests
    that the sampler was run for is not stated, and 5.4 % if that was 2,048: its activations, 9.37
    GiB, are those of 2,011 requests."""
    errors = {id(row): abs(error_of(row)) for row in FROM_SCRATCH}
    stated = [errors[id(row)] for row in FROM_SCRATCH if UNSTATED not in row.get("note", "")]
    assert len(errors) >= 17
    assert median(errors.values()) < 0.03
    assert max(stated) < 0.20
    assert len(errors) - len(stated) == 1
    (unstated,) = (row for row in FROM_SCRATCH if UNSTATED in row.get("note", ""))
    assert abs(error_of(unstated | {"max_num_seqs": 2048})) < 0.06  # as its activations say


@pytest.mark.parametrize(
    "row",
    [row for row in FROM_SCRATCH if "weights_gib_per_gpu" in row and "Small" not in row["model"]],
    ids=lambda row: f"{row['model']} tp {row.get('tp', 1)}",
)
def test_weights_are_those_that_were_printed(row):
    model, tp = MODELS[row["id"]], row.get("tp", 1)
    serving = Serving(weights=row.get("weights", "bf16"), length=16, requests=1, share=1.0)
    cut = Cut(attention=tp, dense=tp, etp=tp)
    memory = server_memory(model.model, cut, serving, 1000 * GIB)
    assert memory.deciding.weights / GIB == pytest.approx(row["weights_gib_per_gpu"], rel=0.022)


# -- laws ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama3-70b", "qwen3-235b-a22b", "mixtral-8x7b", "gpt-oss-20b"])
@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_the_weights_of_all_ranks_are_those_of_the_model_and_copies_of_heads(name, ranks):
    model, serving = MODELS[name].model, Serving(length=16, requests=1, share=1.0)
    ep = ranks if model.experts and model.experts % ranks == 0 else 1
    cut = Cut(attention=ranks, dense=ranks, ep=ep, etp=ranks // ep)
    memory = server_memory(model, cut, serving, 2000 * GIB)
    copies = max(1, ranks // model.kv_heads) - 1
    more = copies * model.layers * 2 * model.kv_heads * model.head_dim * model.hidden * 2
    whole = 2 * total_parameters(model) + more
    assert ranks * memory.deciding.weights == pytest.approx(whole, rel=0.004)


def test_more_ranks_than_kv_heads_keep_copies_and_a_latent_is_whole_on_each():
    assert Cut(attention=8).kv_heads(4) == (1, 2)
    assert Cut(attention=4).kv_heads(8) == (2, 1)
    assert Cut(attention=8, dcp=2).kv_heads(4) == (1, 1)
    deepseek = MODELS["deepseek-v3"].model
    alone, eight = (kv_layers(deepseek, Cut(attention=ranks)) for ranks in (1, 8))
    assert alone == eight
    assert 2 * sum(layer.elements for layer in eight) == 70_272  # bytes of a token, 16 bits


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("llama3-8b", 131_072), ("llama3-70b", 327_680), ("qwen3-0.6b", 114_688),
        ("qwen3-8b", 147_456), ("qwen3-14b", 163_840), ("qwen3-32b", 262_144),
        ("qwen3-30b-a3b", 98_304), ("qwen3-235b-a22b", 192_512), ("deepseek-v3", 70_272),
        ("mistral-small-24b", 163_840),
    ],
)  # fmt: skip
def test_a_token_of_a_published_model_has_so_many_bytes(name, size):
    layers = kv_layers(MODELS[name].model, Cut())
    assert 2 * sum(layer.elements for layer in layers) == size


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize(("layers", "pp"), [(61, 4), (94, 8), (32, 1), (5, 3), (7, 2)])
def test_every_layer_is_in_one_stage(engine, layers, pp):
    stages = stage_layers(layers, pp, engine)
    assert [layer for stage in stages for layer in stage] == list(range(layers))
    assert max(map(len, stages)) - min(map(len, stages)) <= 1


def test_of_more_ranks_than_experts_each_has_one_and_some_are_there_twice():
    held = [experts_of(256, 320, rank) for rank in range(320)]
    assert {count for _, count in held} == {1}
    assert [first for first, _ in held] == [*range(256), *range(64)]
    memory = server_memory(
        MODELS["deepseek-v3"].model,
        Cut(attention=4, dense=4, ep=320),
        Serving("sglang", weights="fp8", share=0.8),
        seen_memory("hgx-h800"),
        ranks=320,
    )
    assert memory.deciding.experts == 1


def test_every_expert_is_on_one_rank():
    held = [experts_of(10, 4, rank) for rank in range(4)]
    assert [e for first, count in held for e in range(first, first + count)] == list(range(10))


@pytest.mark.parametrize("weights", FORMATS)
def test_a_format_of_fewer_bits_takes_fewer_bytes(weights):
    model = MODELS["qwen3-30b-a3b"].model
    held, whole = (sum(layer_bytes(model, Cut(), one, model.kinds[-1]).values())
                   for one in (weights, "bf16"))  # fmt: skip
    assert held / whole == pytest.approx(FORMATS[weights] / 2, rel=0.09)


def test_the_stage_with_the_fewest_blocks_decides():
    memory = server_memory(
        MODELS["llama3-70b"].model,
        Cut(attention=2, dense=2, pp=3),
        Serving(length=4096, share=0.9),
        seen_memory("dgx-h100"),
    )
    blocks = [stage.available // (16 * stage.token) for stage in memory.stages]
    assert memory.cache.stage == blocks.index(min(blocks))
    assert memory.cache.blocks == min(blocks)
    assert [len(stage.layers) for stage in memory.stages] == [27, 27, 26]


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm", "megatron"])
def test_no_engine_takes_more_than_the_gpu_has(engine):
    serving = Serving(engine, length=4096)
    memory = server_memory(MODELS["llama3-8b"].model, Cut(), serving, seen_memory("dgx-h100"))
    (stage,) = memory.stages
    parts = stage.weights + stage.working + stage.available
    assert parts + stage.free == pytest.approx(memory.total, rel=1e-9)
    assert stage.free >= -1e-6
    assert memory.used(stage) <= stage.available


@pytest.mark.parametrize(
    ("control", "cut", "serving"),
    [
        ("tp", Cut(attention=3), Serving()),
        ("ep", Cut(ep=2), Serving()),
        ("share", Cut(), Serving(share=0.1)),
        ("max_model_len", Cut(), Serving(length=1_000_000)),
    ],
)
def test_a_server_that_cannot_be_is_refused_by_name(control, cut, serving):
    with pytest.raises(LayoutError) as refused:
        server_memory(MODELS["llama3-8b"].model, cut, serving, seen_memory("dgx-h100"))
    assert refused.value.control == control


def test_a_table_is_padded_and_cut():
    model = MODELS["gemma-3-27b"].model
    assert table_bytes(model, Cut(dense=8)) == 262_208 // 8 * model.hidden * 2


# sglang 0.5.23 arg_groups/memory_hook.py, in MiB
@pytest.mark.parametrize(
    ("gib", "sizes", "reserved"),
    [
        # 512 + 1.5 x 8192 of activations, tp x pp / 8 GiB, 2 x batch and 58 prefill graphs x 8 MiB
        (79.18, {"tp": 8}, 512 + 12288 + 1024 + 2 * 512 + 58 * 8),
        (79.18, {"tp": 8, "pp": 2}, 512 + 12288 + 2048 + 2 * 512),
        (79.18, {"tp": 8, "is_mla": True}, 512 + 12288 + 1024 + 2 * 512 + 1536),
        (139.59, {"tp": 8, "attention_dp": 8, "is_mla": True},
         512 + 12288 + 1024 + 2 * 512 + 4.5 * 512 * 8 + 1536),
        (79.18, {"tp": 8, "attention_dp": 8, "requests": 128},
         512 + 12288 + 1024 + 2 * 128 + 3 * 128 * 8 + 58 * 8),
        (39.5, {"tp": 2}, 512 + 1.5 * 4096 + 256 + 2 * 32 + 50 * 8),
        (139.59, {"tp": 16, "is_mla": True, "is_whole": False}, 512 + 12288 + 2048 + 2 * 512),
        # DeepEP: 1 GiB of its prefill graphs inside, 2 GiB on top of 10 GiB at least
        (139.59, {"tp": 16, "is_mla": True, "is_deepep": True},
         512 + 12288 + 2048 + 2 * 512 + 1536 + 1024 + 2048),
        (79.18, {"tp": 1, "pp": 4, "chunk": 2048, "is_deepep": True}, 10240 + 2048),
        (16, {"tp": 1}, 512 + 1.5 * 2048 + 128 + 2 * 8 + 42 * 8),
    ],
)  # fmt: skip
def test_sglang_reserves_what_its_server_args_do(gib, sizes, reserved):
    total = gib * GIB
    sizes = {"chunk": prefill_chunk(total), **sizes}
    share = sglang_share(total, **sizes)
    assert share == round(1 - reserved / (gib * 1024), 3)


def test_attention_dp_of_many_ranks_leaves_sglangs_default_nothing():
    with pytest.raises(LayoutError, match=r"dp 72, SGLang reserves 186\.0 GiB of 79\.2 GiB"):
        server_memory(
            MODELS["deepseek-v3"].model,
            Cut(dense=72, ep=72),
            Serving("sglang", weights="fp8"),
            seen_memory("dgx-h100"),
            ranks=72,
            attention_dp=72,
        )
