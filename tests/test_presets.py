"""Presets against the published facts: what a source states is kept, all else is named derived."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every

from descriptions import MEMORY
from groups.frameworks import FRAMEWORKS
from groups.megatron.grids import grids
from groups.presets import LAYOUT, PRESETS, url_of
from groups.stages.layers import stage_layers
from request.context import Context
from request.resolve import from_preset, resolve
from request.trained import fields_of_preset
from training.clusters import CLUSTERS
from training.machine import GIB
from training.model import Model
from training.models import FIELDS, MODELS, SIZES, model_of_preset, shape_of_preset
from training.parameters import total_parameters
from views.page import answer

DATA = json.loads((Path(__file__).parent / "data" / "presets.json").read_text(encoding="utf-8"))
FACTS = {fact["id"]: fact for fact in DATA["presets"]}
SPLIT = {"mtnlg-530b": (280, 350, 420)}  # one fact, timed on several numbers of nodes
OTHERS_NAMES = {"chips": "gpus", "model_parallel": "tp"}
MODEL = (
    *("layers", "hidden", "ffn_hidden", "attention_heads", "kv_heads", "vocab", "seq"),
    *("micro_batch", "global_batch", "batch_per_dp", "vpp", "layers_per_virtual_stage"),
    *("experts", "routed_experts_per_token", "fsdp", "pods"),
)
MEGATRON_ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")


def fact_of(key: str) -> dict:
    return FACTS.get(key) or FACTS[key.rsplit("-", 1)[0]]


def stated_of(key: str) -> dict[str, int]:
    """What the source states of a preset's numbers, under the preset's names."""
    stated = {OTHERS_NAMES.get(n, n): v for n, v in fact_of(key)["stated"].items()}
    found = {n: v for n, v in stated.items() if n in (*LAYOUT, *MODEL) and isinstance(v, int)}
    if key not in FACTS:
        found["nodes"] = int(key.rsplit("-", 1)[1])
    return found


def value(preset, name: str) -> object:
    name = "world_size" if name == "gpus" else name
    return getattr(preset, name) if hasattr(preset, name) else preset.model[name]


LEFT_OUT = ("gpt3-175b-1024a100", "deepseek-v2")
FROM_FACTS = [key for key in PRESETS if key != "playground-16"]
every_preset = pytest.mark.parametrize("key", PRESETS)
every_fact = pytest.mark.parametrize("key", FROM_FACTS)


def test_every_published_layout_is_a_preset_or_left_out_with_a_reason():
    expected = {f"{key}-{part}" if part else key for key in FACTS for part in SPLIT.get(key, ("",))}
    assert set(FROM_FACTS) | set(LEFT_OUT) == expected
    assert not set(FROM_FACTS) & set(LEFT_OUT)
    assert next(iter(PRESETS)) == "playground-16"


@every("key", LEFT_OUT)
def test_what_is_left_out_cannot_be_drawn(key):
    stated = FACTS[key]["stated"]
    assert "gpus" not in stated or not {"tp", "pp"} & set(stated)


@every_fact
def test_every_stated_value_is_kept(key):
    stated = stated_of(key)
    assert stated
    assert {name: value(PRESETS[key], name) for name in stated} == stated


@every_fact
def test_whatever_is_not_stated_is_named_derived(key):
    preset, stated = PRESETS[key], set(stated_of(key))
    if names_its_framework(key):
        stated.add("framework")
    shown = {*LAYOUT, *preset.model}
    if preset.ep == 1:
        shown -= {"etp", "edp"}
    expected = {"world_size" if name == "gpus" else name for name in shown - stated}
    assert set(preset.derived) == expected
    assert len(preset.derived) == len(expected)


def names_its_framework(key: str) -> bool:
    """Whether the fact itself says whose code or order it was."""
    words = {
        "megatron": r"Megatron-LM|Megatron-Bridge|MCore",
        "deepspeed": r"\(DeepSpeed\)",
        "llama3": r"\[TP, CP, PP, DP\]",
    }.get(PRESETS[key].framework)
    fact = fact_of(key)
    return bool(words and re.search(words, json.dumps([fact["stated"], fact["source"]])))


@every_fact
def test_derived_sizes_agree_with_those_worked_out_with_the_facts(key):
    preset, derived = PRESETS[key], fact_of(key).get("derived", {})
    for name, size in {
        "dp": preset.dp,
        "expert_dp": preset.edp,
        "gpus": preset.world_size,
        "vpp": preset.model.get("vpp"),
        "fsdp_degree": preset.dp,
        "data_ranks_total": preset.dp,
        "etp_assumed": preset.etp or preset.tp,
    }.items():
        expected = derived.get(name, size)
        if isinstance(expected, dict):
            expected = expected[f"{preset.nodes} nodes"]
        assert size == expected, name
    assert preset.edp == derived.get(f"expert_dp_if_etp{preset.etp or '_eq_tp'}", preset.edp)


def test_mcore_guide_deepseek_fits_with_etp_1_only():
    preset = PRESETS["mcore-guide-deepseek-v3-671b"]
    assert (preset.etp, "etp" in preset.derived) == (1, True)
    assert preset.tp * preset.ep * preset.pp > preset.world_size
    assert preset.etp * preset.ep * preset.pp == preset.world_size


@every_preset
def test_the_sizes_fill_the_world(key):
    preset = PRESETS[key]
    etp = preset.tp if preset.etp is None else preset.etp
    assert preset.tp * preset.cp * preset.pp * preset.dp == preset.world_size
    assert etp * preset.ep * preset.pp * preset.edp == preset.world_size
    mesh = resolve(from_preset(key)).mesh
    assert mesh.world_size == preset.world_size
    assert [mesh.size(name) for name in ("tp", "cp", "dp", "pp")] == [
        *(preset.tp, preset.cp, preset.dp, preset.pp)
    ]


@every_preset
def test_both_grids_can_be_made_in_megatrons_orders(key):
    preset = PRESETS[key]
    assert preset.framework in FRAMEWORKS
    order = FRAMEWORKS[preset.framework].order
    sizes = {name: getattr(preset, name) for name in ("tp", "cp", "pp", "ep", "etp")}
    order = order if order in MEGATRON_ORDERS else MEGATRON_ORDERS[0]
    dense, expert = grids(preset.world_size, **sizes, order=order)
    assert (dense.size("dp"), expert.size("dp")) == (preset.dp, preset.edp)


@every_preset
def test_a_preset_has_a_source_and_an_address(key):
    preset = PRESETS[key]
    assert preset.source
    assert all(preset.source)
    assert preset.url == url_of(preset.source[0])
    assert re.fullmatch(r"https://\S+", preset.url) or key == "playground-16"
    if key in FROM_FACTS:
        assert list(preset.source) == fact_of(key)["source"]


@every_fact
def test_the_name_is_the_published_one_without_the_number_of_gpus(key):
    assert PRESETS[key].name == re.sub(r", \d+ GPUs$", "", fact_of(key)["name"])


@every_preset
def test_the_layers_go_onto_the_stages(key):
    preset = PRESETS[key]
    model = preset.model
    if "layers" in model:
        account = bool(model.get("account_for_embedding"))
        assert account == bool(model.get("account_for_loss"))
        stages = stage_layers(model["layers"], preset.pp, model.get("vpp", 1), account=account)
        assert sum(map(len, stages)) == model["layers"]


@every_preset
def test_batches_and_experts_divide(key):
    preset = PRESETS[key]
    model = preset.model
    if "global_batch" in model:
        assert model["global_batch"] % (model.get("micro_batch", 1) * preset.dp) == 0
    assert model.get("experts", preset.ep) % preset.ep == 0


def test_a_family_stands_together():
    families = [preset.family for preset in PRESETS.values()]
    changes = [a for a, b in zip(families, [*families[1:], ""]) if a != b]
    assert len(changes) == len(set(changes))


def test_gb200_and_gb300_systems_have_trays_of_four():
    for key, preset in PRESETS.items():
        if "-gb" in key:
            assert preset.gpus_per_node == 4
            assert {"nodes", "gpus_per_node"} <= set(preset.derived)


# -- the model that a preset trains ----------------------------------------------------------------

NO_SHAPE = {"playground-16", "folding-llama3-8x70b-mcore", "folding-llama3-8x70b-folded"}
"""Presets whose sources name no model, or not its whole shape: 8x70B lacks the experts a token
takes (arXiv:2504.14960 section 4.1)."""


def test_the_model_of_a_preset_contradicts_nothing_that_its_source_states():
    wrong = []
    for key in FROM_FACTS:
        model = model_of_preset(key)
        for name, size in stated_of(key).items():
            field = FIELDS.get(name, name)
            if model is not None and field in SIZES and getattr(model, field) != size:
                wrong.append(f"{key}: {field} is {getattr(model, field)}, stated {size}")
    assert not wrong


def test_where_no_source_gives_the_shape_there_is_no_model_but_what_is_stated():
    assert {key for key in PRESETS if model_of_preset(key) is None} == NO_SHAPE
    llama = MODELS["llama3-70b"].model
    for method in ("mcore", "folded"):
        name, stated = shape_of_preset(f"folding-llama3-8x70b-{method}")
        assert (name, stated["experts"], stated["sequence"]) == ("", 8, 4096)
        # arXiv:2504.14960 section 4.1: Llama 3 70B, upcycled to eight experts.
        model = Model(**stated, top_k=2)
        assert replace(model, sequence=8192, experts=0, top_k=0, expert_ffn=0) == llama
        assert model.expert_ffn == llama.ffn


def test_finer_experts_keep_the_size_of_the_model_that_they_were_cut_from():
    """arXiv:2504.14960 section 4.1: 64 experts, 8 a token, an eighth as wide; so eight times the
    router is all that is new, and a token passes through half as much of the experts."""
    coarse = model_of_preset("folding-mixtral-8x22b-mcore")
    for method in ("mcore", "folded"):
        fine = model_of_preset(f"folding-mixtral-8x22b-g8t8-{method}")
        assert (fine.experts, fine.top_k, fine.expert_ffn) == (64, 8, 2048)
        grown = total_parameters(fine) - total_parameters(coarse)
        assert grown == fine.layers * fine.hidden * (64 - 8)


def test_a_model_has_as_many_parameters_as_the_name_of_its_layout_says():
    wrong, counted = [], 0
    for key, preset in PRESETS.items():
        model = model_of_preset(key)
        sizes = re.findall(r"(\d[\d.]*)([BT])\b", preset.name.upper().replace("_", " "))
        if model is None or not sizes or "8X" in preset.name.upper():
            continue
        counted += 1
        (size, unit), *_ = sizes
        ratio = total_parameters(model) / (float(size) * {"B": 1e9, "T": 1e12}[unit])
        if not 0.97 < ratio < 1.03:
            wrong.append((key, ratio))
    assert not wrong
    assert counted >= 40


def test_a_batch_that_is_published_is_the_batch_of_a_step():
    published = {"deepseek-v3": 15_360, "palm-540b": 2048, "falcon-180b": 2048}
    for name, batch in published.items():
        assert trained_as_published(name).trained.batch.global_batch == batch


def test_a_preset_opens_the_model_that_its_name_says():
    names = {key: shape_of_preset(key)[0] for key in PRESETS}
    assert names["nemotron4-340b-1536"] == "nemotron4-340b"
    assert names["kimi-k2"] == "kimi-k2"
    assert names["bridge-qwen3_30b_a3b-dgx-gb300-8"] == "qwen3-30b-a3b"
    # arXiv:2104.04473 section 5: vocabulary 51,200 and sequence 2,048 for every model.
    wide = model_of_preset("megatron2021-fig16-91b")
    assert (wide.layers, wide.hidden, wide.heads, wide.ffn) == (32, 15360, 128, 61440)
    assert (wide.vocabulary, wide.sequence) == (51200, 2048)


# -- how they were trained ------------------------------------------------------------------------


def trained_as_published(name: str) -> Context:
    state = replace(from_preset(name), **fields_of_preset(name))
    return Context(resolve(state), state)


@every("name", PRESETS)
def test_a_preset_trains_as_its_source_states(name):
    stated = {} if name == "playground-16" else fact_of(name)["stated"]
    said = fields_of_preset(name)
    gpu = stated.get("gpu") or stated.get("system", "").removeprefix("DGX-")
    if gpu and (found := re.match(r"(A100|H100|H800|GB200|GB300)(?: (\d+)GB)?", gpu)):
        assert found[1].lower() in CLUSTERS[said["cluster"]].name.lower()
        size = found[2] or {"A100": "80", "H100": "80", "H800": "80"}.get(found[1])
        if size:
            machine = CLUSTERS[said["cluster"]]
            assert round(machine.memory / GIB) == int(size)
    if precision := stated.get("precision"):
        assert said["products"] == precision.lower()
    if stated.get("distributed_optimizer") or stated.get("zero") or "zero_stage" in stated:
        assert said["zero"] == "1"
    if "FSDP" in str(stated.get("data_parallel", "")) or stated.get("fsdp"):
        assert said["zero"] == "3"
    if stated.get("interleaving"):
        assert said["schedule"] == "interleaved"
    if "sequence_parallel" in stated:
        assert said["sequence_parallel"] == "on"
    if stated.get("rematerialization"):
        assert said["recompute"] == "full"
    if {"mfu_percent", "hfu_percent"} <= set(stated):  # a third more where all is computed again
        more = stated["hfu_percent"] / stated["mfu_percent"]
        assert said["recompute"] == ("full" if more > 1.3 else "selective")


NOT_ALONE = {
    "kimi-k2": "activations go to host memory too (arXiv:2507.20534 section 2.4.3)",
    "mcore-guide-mixtral-8x7b": "a recommendation that states no sequence and no recomputation",
}


def test_published_layouts_fit_as_published_or_it_is_known_why_not():
    wrong = set()
    for name in PRESETS:
        if model_of_preset(name):
            context = trained_as_published(name)
            if not context.trained.estimate(context.layout).fits:
                wrong.add(name)
    assert wrong == set(NOT_ALONE)


@every("name", NOT_ALONE)
def test_a_published_layout_that_does_not_fit_here_says_that_its_run_did(name):
    state = replace(trained_as_published(name).state, preset=name, view="memory")
    picture = answer(state).picture
    says = [MEMORY[f"verdict_{one}"]["en"].split("{")[0] for one in ("stated", "unstated")]
    assert any(one in picture for one in says)


STEPS = {
    **{"korthikanti-22b": 1.10, "korthikanti-175b": 13.75, "korthikanti-530b": 37.83},
    **{"korthikanti-1t": 71.49, "nemotron4-340b-1536": 10.3, "nemotron4-340b-3072": 10.3},
    **{"nemotron4-340b-6144": 8.0, "mtnlg-530b-280": 60.1, "mtnlg-530b-350": 50.2},
    **{"mtnlg-530b-420": 44.4},
}
"""Seconds of a step as printed."""


@every("name", STEPS)
def test_a_preset_as_published_takes_about_as_long_as_printed(name):
    context = trained_as_published(name)
    one = context.trained.estimate(context.layout)
    assert one.low < STEPS[name] < one.high
