"""Models and their parameters: published counts, Megatron's own estimator, laws, refusals."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every
from hypothesis import given
from hypothesis import strategies as st

from groups import LayoutError
from training.kinds import LayerRun
from training.model import Model
from training.models import DEFAULTS, MODELS, model_like, variant
from training.parameters import (
    active_parameters,
    layer_parameters,
    parameters_by_kind,
    stage_parameters,
    total_parameters,
)
from training.split import Dealing, Split, held_by_ranks, padded_vocabulary

FACTS = json.loads((Path(__file__).parent / "data" / "memory.json").read_text(encoding="utf-8"))
COUNTS = FACTS["parameters"]
BILLION = 1e9


def named(name: str) -> Model:
    return MODELS[name].model


# -- published counts ----------------------------------------------------------------------------


@every("row", COUNTS["eq2_vectors"], ids=lambda row: str(row["published_billion"]))
def test_megatron_2021_table_1_counts(row):
    model = named(f"gpt-{row['published_billion']:g}b")
    final_norm = 2 * model.hidden  # equation 2 leaves it out
    counted = (total_parameters(model) - final_norm) / BILLION
    assert (model.hidden, model.layers) == (row["h"], row["L"])
    assert counted == pytest.approx(row["formula_billion"], abs=5e-5)
    assert counted == pytest.approx(row["published_billion"], abs=0.05)


EXACT = {  # from the models' cards and the totals of their published weights
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "mixtral-8x7b": 46_702_792_704,
    "qwen2.5-72b": 72_706_203_648,
}


@every("name", EXACT)
def test_dense_and_mixture_counts_are_those_of_the_published_weights(name):
    assert total_parameters(named(name)) == EXACT[name] == MODELS[name].parameters


def test_bloom_lacks_only_the_norm_of_its_embedding():
    bloom = named("bloom-176b")
    assert MODELS["bloom-176b"].parameters - total_parameters(bloom) == 2 * bloom.hidden


def test_qwen3_has_the_parameters_that_it_is_published_with():
    qwen = named("qwen3-235b-a22b")
    assert MODELS["qwen3-235b-a22b"].parameters == total_parameters(qwen)
    without = total_parameters(replace(qwen, qk_norm=False))
    assert total_parameters(qwen) - without == qwen.layers * 2 * qwen.head_dim


def test_gpt_oss_has_its_sinks_and_the_biases_of_its_router():
    """arXiv:2508.10925 Table 1, which counts the output as active but not the embedding."""
    model = named("gpt-oss-120b")
    assert total_parameters(model) == MODELS["gpt-oss-120b"].parameters
    without = [
        replace(
            layer,
            mixers=tuple(replace(mixer, sinks=False) for mixer in layer.mixers),
            feed_forwards=tuple(replace(part, router_bias=False) for part in layer.feed_forwards),
        )
        for layer in model.stack
    ]
    plain = replace(model, runs=tuple(LayerRun(layer) for layer in without))
    more = total_parameters(model) - total_parameters(plain)
    assert more == model.layers * (model.heads + model.experts)
    counts = parameters_by_kind(model)
    assert round((counts["experts"] + counts["router"]) / BILLION, 2) == 114.71
    assert round(counts["attention"] / BILLION, 2) == 0.96
    assert round((counts["embedding"] + counts["output"]) / BILLION, 2) == 1.16
    assert round((active_parameters(model) - counts["embedding"]) / BILLION, 2) == 5.13
    assert round(total_parameters(model) / BILLION, 2) == 116.83


@every(
    "name, total, active",
    [("deepseek-v3", 671.03, 37.55), ("mixtral-8x22b", 140.63, 39.16)],
)
def test_mixtures_have_the_total_and_active_parameters_of_megatrons_estimator(name, total, active):
    assert round(total_parameters(named(name)) / BILLION, 2) == total
    assert round(active_parameters(named(name)) / BILLION, 2) == active


@every("name", MODELS)
def test_every_preset_has_a_source_and_about_its_published_size(name):
    one = MODELS[name]
    assert one.source
    assert one.name
    assert total_parameters(one.model) == pytest.approx(one.parameters, rel=0.03)


def test_a_dense_model_uses_all_its_parameters():
    assert active_parameters(named("llama3-8b")) == total_parameters(named("llama3-8b"))


# -- per rank ------------------------------------------------------------------------------------

RUNS = {run["model"]: run for run in COUNTS["megatron_runs"]}
ESTIMATED = {
    "GPT-3 175B (v=51200)": (
        replace(named("gpt-145.6b"), layers=96, biases="none", learned_positions=False),
        Split(tp=8, pp=8),
    ),
    "Mixtral 8x22B": (named("mixtral-8x22b"), Split(tp=2, pp=8, dp=8, ep=8, etp=1)),
    "DeepSeek-V3 (without MTP)": (
        named("deepseek-v3"),
        Split(pp=16, dp=128, ep=64, etp=1, spread="nearly"),
    ),
}


@every("name", ESTIMATED)
def test_most_loaded_shard_is_that_of_megatrons_estimator(name):
    """The estimator gives each stage 1/p of the layers and adds one embedding."""
    model, split = ESTIMATED[name]
    stages = stage_parameters(model, split)
    embedding = stages[0].by_kind["embedding"]
    tables = sum(stage.by_kind.get(kind, 0) for stage in stages for kind in ("embedding", "output"))
    shard = (sum(stage.total for stage in stages) - tables) / split.pp
    printed = {
        kind: float(re.search(r"[\d.]+$", line)[0])
        for line in RUNS[name]["printed"]
        for kind in ("most loaded", "other shards")
        if kind in line
    }
    assert round((shard + embedding) / BILLION, 4) == printed["most loaded"]
    assert round(shard / BILLION, 4) == printed["other shards"]


def split_of(tp, cp, times, ep, etp, pp):
    """Sizes of both grids, which have the same ranks."""
    dp = times * etp * ep // math.gcd(etp * ep, tp * cp)
    return Split(tp=tp, cp=cp, dp=dp, ep=ep, etp=etp, pp=pp)


sizes = st.sampled_from([1, 2, 4, 8])
splits = st.builds(
    split_of,
    tp=sizes,
    cp=st.sampled_from([1, 2]),
    times=st.sampled_from([1, 8]),
    ep=sizes,
    etp=sizes,
    pp=sizes,
)
SMALL = Model(
    layers=16,
    hidden=256,
    heads=8,
    vocabulary=8192,
    sequence=512,
    biases="all",
    learned_positions=True,
)
MIXTURE = replace(SMALL, biases="none", gated=True, experts=8, top_k=2, expert_ffn=64)
MIXTURE = replace(MIXTURE, shared_expert_ffn=64, dense_layers=3)


def whole_model(model: Model, split: Split) -> int:
    """The stages put together again: what is cut, times the ranks that share it."""
    found = 0
    for stage in stage_parameters(model, replace(split, tp=1, etp=1, ep=1)):
        found += stage.total
    return found


@given(splits, st.sampled_from([SMALL, MIXTURE]))
def test_stages_sum_to_the_model(split, model):
    assert whole_model(model, split) == total_parameters(model)


@given(splits, st.sampled_from([SMALL, MIXTURE]))
def test_what_tp_and_ep_cut_multiplies_back(split, model):
    kinds = parameters_by_kind(model)
    stages = stage_parameters(model, split)
    on_ranks = {kind: sum(stage.by_kind.get(kind, 0) for stage in stages) for kind in kinds}
    assert on_ranks["embedding"] * split.tp == kinds["embedding"]
    assert on_ranks["norms"] == kinds["norms"]
    if model.experts:
        assert on_ranks["experts"] * split.etp * split.ep == kinds["experts"]
        assert on_ranks["router"] == kinds["router"]


def test_tied_embeddings_are_on_both_end_stages():
    model = replace(SMALL, tied=True)
    first, last = stage_parameters(model, Split(pp=2))
    assert first.by_kind["embedding"] == last.by_kind["output"] == 8192 * 256
    (only,) = stage_parameters(model, Split())
    assert "output" not in only.by_kind


def test_dualpipe_holds_every_stage_twice():
    both = stage_parameters(SMALL, Split(pp=4, placement="both ways"))
    assert sum(stage.total for stage in both) == 2 * total_parameters(SMALL)


def test_a_v_shape_puts_embedding_and_output_on_the_first_rank():
    held = held_by_ranks(SMALL, Dealing(pp=4, placement="V"))
    assert [(one.is_first, one.is_last) for one in held] == [(True, True)] + [(False, False)] * 3
    assert [one.layers for one in held] == [4, 4, 4, 4]


def test_layers_dealt_nearly_equally_differ_by_one():
    #         61 layers over 16 stages, and with embedding and loss as a layer each
    plain = [4] * 13 + [3] * 3
    ends = [3] + [4] * 14 + [2]
    deepseek = named("deepseek-v3")
    for account, layers in ((False, plain), (True, ends)):
        dealing = Dealing(pp=16, spread="nearly", account=account)
        assert [one.layers for one in held_by_ranks(deepseek, dealing)] == layers


@pytest.mark.parametrize("account", [False, True])
@pytest.mark.parametrize(("pp", "vpp"), [(4, 1), (8, 1), (4, 2)])
def test_fewer_layers_than_stages_are_too_few_and_every_fix_is_enough(account, pp, vpp):
    model = replace(SMALL, layers=1)
    split = Split(pp=pp, vpp=vpp, spread="nearly", account=account)
    with pytest.raises(LayoutError) as caught:
        held_by_ranks(model, split.dealing)
    error, places = caught.value, 3 if account else 1
    assert (error.code, error.control) == ("too-few-layers", "layers")
    assert error.facts == {"count": places, "stages": pp * vpp}
    assert {"layers": pp * vpp - 2 * account} in error.alternatives
    with pytest.raises(LayoutError) as caught:
        split.require_fits(model)
    assert {"layers": pp * vpp - 2 * account} in caught.value.alternatives
    for fix in caught.value.alternatives:
        of_model, of_split = fix.keys() & {"layers"}, fix.keys() - {"layers"}
        fitted = replace(split, **{name: fix[name] for name in of_split})
        fitted.require_fits(replace(model, **{name: fix[name] for name in of_model}))


def test_an_mtp_module_stands_on_the_last_stage_with_a_copy_of_the_embedding():
    model = replace(MIXTURE, mtp_layers=1)
    without, with_it = (stage_parameters(one, Split(pp=2)) for one in (MIXTURE, model))
    assert with_it[0] == without[0]
    assert with_it[1].by_kind["embedding"] == 8192 * 256
    assert with_it[1].experts == without[1].experts * 9 // 8  # 8 layers and the module's
    h = MIXTURE.hidden
    last_layer = {
        kind: sum(count) for kind, count in layer_parameters(MIXTURE, MIXTURE.kinds[-1]).items()
    }
    module = (
        sum(last_layer.values()) + 2 * h * h + 3 * 2 * h
    )  # a projection of 2h to h, three norms
    assert total_parameters(model) - total_parameters(MIXTURE) == module


@given(st.integers(1, 10**6), sizes)
def test_vocabulary_is_padded_to_the_next_multiple(vocabulary, tp):
    padded = padded_vocabulary(vocabulary, tp)
    assert padded % (128 * tp) == 0
    assert 0 <= padded - vocabulary < 128 * tp


# -- models by their layers and experts ----------------------------------------------------------


def test_a_model_is_found_by_its_layers_and_experts():
    dense, sparse = DEFAULTS
    assert model_like(layers=70, experts=0) == "bloom-176b"
    assert model_like(experts=128) == "qwen3-235b-a22b"
    assert model_like() == model_like(layers=61, experts=0) == dense
    assert model_like(experts=12) == model_like(ep=7) == model_like(layers=33, ep=8) == sparse


def test_without_experts_nothing_of_them_is_left():
    plain = variant(MODELS["deepseek-v3"].model, {"experts": 0})
    assert plain.moe_layers == plain.top_k == plain.shared_expert_ffn == plain.dense_layers == 0
    assert active_parameters(plain) == total_parameters(plain)


# -- refusals ------------------------------------------------------------------------------------

REFUSED = {
    "heads-do-not-divide-hidden": (
        {"hidden": 100, "heads": 3, "kv_heads": 0},
        "not-a-multiple",
        "hidden",
    ),
    "kv-heads-do-not-divide-heads": ({"kv_heads": 3}, "not-a-multiple", "kv_heads"),
    "no-layers": ({"layers": 0}, "out-of-range", "layers"),
    "text": ({"hidden": "256"}, "not-a-whole-number", "hidden"),
    "fraction": ({"heads": 8.0}, "not-a-whole-number", "heads"),
    "nan": ({"ffn": float("nan")}, "not-a-whole-number", "ffn"),
    "nothing": ({"sequence": None}, "not-a-whole-number", "sequence"),
    "flag": ({"vocabulary": True}, "not-a-whole-number", "vocabulary"),
    "huge": ({"hidden": 10**30}, "out-of-range", "hidden"),
    "list": ({"experts": [8]}, "not-a-whole-number", "experts"),
    "not-a-flag": ({"gated": 1.0}, "not-a-choice", "gated"),
    "not-a-bias": ({"biases": "some"}, "not-a-choice", "biases"),
    "biases-in-a-list": ({"biases": ["all"]}, "not-a-choice", "biases"),
    "top-k-without-experts": ({"top_k": 2}, "no-experts", "top_k"),
    "top-k-above-experts": ({"experts": 4, "top_k": 8}, "out-of-range", "top_k"),
    "experts-without-top-k": ({"experts": 4}, "out-of-range", "top_k"),
    "too-many-dense": (
        {"experts": 4, "top_k": 1, "dense_layers": 17},
        "out-of-range",
        "dense_layers",
    ),
    "half-an-mla": ({"kv_lora_rank": 64}, "mla-incomplete", "qk_nope_head_dim"),
}


@every("name", REFUSED)
def test_a_shape_that_cannot_be_is_refused_about_its_field(name):
    changes, code, control = REFUSED[name]
    with pytest.raises(LayoutError) as refused:
        replace(SMALL, **{"head_dim": 0, **changes})
    assert (refused.value.code, refused.value.control) == (code, control)


@every("name", REFUSED)
def test_every_cure_of_a_refused_shape_works(name):
    changes, _, _ = REFUSED[name]
    asked = {"head_dim": 0, **changes}
    with pytest.raises(LayoutError) as refused:
        replace(SMALL, **asked)
    for cure in refused.value.alternatives:
        replace(SMALL, **{**asked, **cure})


CUTS = {
    "heads": Split(tp=16),
    "layers": Split(pp=3),
    "experts": Split(dp=16, ep=16),
    "sequence": Split(cp=3),
    "expert_ffn": Split(dp=128, etp=128),
}


EXPERTS_LEFT_OUT = {"ep": {"ep": 8, "dp": 4}, "etp": {"tp": 2, "dp": 3, "etp": 4}}


@every("control", EXPERTS_LEFT_OUT)
def test_experts_that_the_ranks_of_a_stage_do_not_hold_are_refused_with_cures(control):
    with pytest.raises(LayoutError) as refused:
        Split(**EXPERTS_LEFT_OUT[control])
    assert refused.value.control == control
    assert refused.value.alternatives
    for cure in refused.value.alternatives:
        split = Split(**{**EXPERTS_LEFT_OUT[control], **cure})
        assert split.etp * split.ep * split.edp == split.tp * split.cp * split.dp


@every("name", CUTS)
def test_sizes_that_do_not_cut_a_model_are_refused_with_cures_that_work(name):
    split = CUTS[name]
    with pytest.raises(LayoutError) as refused:
        stage_parameters(MIXTURE, split)
    assert refused.value.control == name
    assert refused.value.alternatives
    for cure in refused.value.alternatives:
        of_model = {key: value for key, value in cure.items() if hasattr(MIXTURE, key)}
        of_split = {key: value for key, value in cure.items() if hasattr(split, key)}
        stage_parameters(replace(MIXTURE, **of_model), replace(split, **of_split))
