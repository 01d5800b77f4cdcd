"""KV caches against vLLM's own planner, to the block and the token."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groups import LayoutError
from training.serving import KVLayer, kv_cache

RECORDED = Path(__file__).parent / "data" / "serving_kv_planner.jsonl.xz"
CASES = [json.loads(line) for line in lzma.decompress(RECORDED.read_bytes()).splitlines()[1:]]
SPECS = {
    "FullAttentionSpec": "full",
    "MLAAttentionSpec": "mla",
    "SlidingWindowSpec": "sliding",
    "ChunkedLocalAttentionSpec": "chunked",
}


def layers_of(case):
    """The layers that a recorded case was planned for."""
    heads, dim, window = case["kv_heads"], case["head_dim"], case["window"]
    full = KVLayer(heads, dim, dim)
    sliding, chunked = (KVLayer(heads, dim, dim, kind, window) for kind in ("sliding", "chunked"))
    one = {"full": full, "mla": KVLayer(1, 576, 0, "mla"), "all sliding": sliding}
    if case["kind"] in one:
        return [one[case["kind"]]] * case["layers"]
    most = chunked if "chunked" in case["kind"] else sliding
    if "other heads" in case["kind"]:
        full = KVLayer(max(2, heads // 2), dim, dim)
    return [full if (i + 1) % case["period"] == 0 else most for i in range(case["layers"])]


def planned(case):
    return kv_cache(
        layers_of(case),
        available=int(case["available_gib"] * 2**30),
        max_model_len=case["max_model_len"],
        max_batched_tokens=case["max_num_batched_tokens"],
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kind"])
def test_vllm_0_32_plans_this_very_cache(case):
    if "error" in case:
        with pytest.raises(LayoutError, match=str(case["max_model_len"])) as refused:
            planned(case)
        for fix in refused.value.alternatives:
            planned(case | fix)
            with pytest.raises(LayoutError):
                planned(case | {"max_model_len": fix["max_model_len"] + 1})
        return
    cache = planned(case)
    assert (cache.blocks, cache.tokens) == (case["num_blocks"], case["tokens"])
    assert round(cache.requests, 3) == case["concurrency"]
    groups = [[one.layer.kind, one.layers, one.block] for one in cache.groups]
    assert sorted(groups) == sorted([SPECS[name], *sizes] for name, *sizes in case["groups"])


@given(
    st.lists(st.tuples(st.sampled_from(["full", "sliding", "chunked"]), st.integers(1, 9)),
             min_size=1, max_size=24),
    st.integers(1, 20_000),
    st.integers(1, 4),
)  # fmt: skip
def test_what_is_planned_lies_in_the_bytes_that_there_are(kinds, length, times):
    layers = [KVLayer(heads, 64, 64, kind, 512 * (kind != "full")) for kind, heads in kinds]
    smallest = kv_cache(layers, available=2**50, max_model_len=length, max_batched_tokens=2048)
    available = times * smallest.request_bytes + smallest.block_bytes
    cache = kv_cache(layers, available=available, max_model_len=length, max_batched_tokens=2048)
    assert cache.blocks * cache.block_bytes <= available
    assert cache.blocks == times * cache.request_blocks + 1
    assert sum(group.layers for group in cache.groups) == len(layers)
    with pytest.raises(LayoutError):
        kv_cache(layers, smallest.request_bytes, length, max_batched_tokens=2048)


def test_ranks_that_share_a_sequence_hold_as_many_times_its_tokens():
    layers = [KVLayer(1, 576, 0, "mla")] * 61
    alone, shared = (kv_cache(layers, 2**34, 65_536, dcp=dcp) for dcp in (1, 4))
    assert shared.blocks == alone.blocks
    assert shared.tokens == 4 * alone.tokens


def test_a_page_that_does_not_divide_is_padded_and_mla_beside_a_window_keeps_all():
    full, sliding = KVLayer(3, 64, 64), KVLayer(2, 64, 64, "sliding", 512)
    mixed = kv_cache([full, sliding], 2**30, 4096)
    assert {group.block for group in mixed.groups} == {16}
    latent, wide = KVLayer(1, 576, 0, "mla"), KVLayer(8, 64, 64, "sliding", 512)
    beside = kv_cache([latent, wide], 2**30, 8192, max_batched_tokens=2048)
    assert beside.request_blocks == 8192 // 16
    assert beside.block_bytes == 16 * 2 * (latent.elements + wide.elements)
    with pytest.raises(LayoutError, match="chunks"):
        kv_cache([KVLayer(1, 576, 0, "mla"), KVLayer(8, 64, 64, "chunked", 512)], 2**30, 4096)


@pytest.mark.parametrize(
    ("control", "changes"),
    [
        ("layers", {"layers": []}),
        ("available", {"available": float("nan")}),
        ("bytes", {"bytes": -1}),
        ("block", {"block": 0}),
        ("max_model_len", {"max_model_len": 0}),
        ("dcp", {"dcp": 2, "layers": [KVLayer(1, 64, 64, "sliding", 512)]}),
    ],
)
def test_what_cannot_be_planned_is_refused_by_name(control, changes):
    with pytest.raises(LayoutError) as refused:
        kv_cache(
            **{"layers": [KVLayer(1, 64, 64)], "available": 2**30, "max_model_len": 64} | changes
        )
    assert refused.value.control == control


@pytest.mark.parametrize(
    ("control", "layer"),
    [
        ("kind", ("latent", 0)),
        ("kind", ("mamba", 0)),
        ("window", ("full", 512)),
        ("window", ("sliding", 0)),
    ],
)
def test_a_layer_is_checked(control, layer):
    with pytest.raises(LayoutError) as refused:
        KVLayer(1, 64, 64, *layer)
    assert refused.value.control == control
