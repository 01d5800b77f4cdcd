"""What is computed again, by modules: bytes, seconds, messages, and the way from text to text."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from cases import every

from formats.launch import emit, parse
from formats.launch.training import options_of, training_of
from groups.errors import LayoutError
from groups.layout import Job
from request.context import Context
from request.link import from_query, to_query
from request.named.launch import options_of_page, pasted_changes
from request.state import State
from training.estimate.answer import layer_time
from training.memory import Training, memory_per_stage
from training.memory.activations import layer_activations
from training.models import MODELS
from training.recompute import MODULES, OWN, modules_in, recomputation, usual, written
from training.split import Split
from training.traffic.demands import demands

DEEPSEEK = MODELS["deepseek-v3"].model
LLAMA = MODELS["llama3-8b"].model

T = DEEPSEEK.sequence  # tokens of a micro-batch of one sample


def freed(model: Any, modules: str, *, moe: bool = False, **how: Any) -> float:
    """Bytes of a layer that a recomputation does not keep."""
    kept = [
        layer_activations(model, Split(), Training(recompute=name, **how), model.kinds[-moe])
        for name in ("none", modules)
    ]
    none, some = (sum(parts.values()) for parts in kept)
    return none - some


H, EXPERT, SHARED, FFN = 7168, 2048, 2048, 18432
UP = 128 * (192 + 192 + 128)  # queries, keys and values of all heads

ROWS: tuple[tuple[str, bool, float], ...] = (
    # module          experts   numbers of 16 bits that a token keeps no more
    ("layernorm", True, H + H),  # what MLA reads, what the experts read
    ("layernorm", False, H),  # the dense MLP's norm is one with its first product
    ("mla_up_proj", True, UP),
    ("mla_up_proj", False, UP),
    ("moe_act", True, 8 * EXPERT),
    ("moe_act", False, 0),
    ("mlp", False, H + 3 * FFN),  # its norm is inside
    ("mlp", True, 0),
    ("shared_experts", True, 3 * SHARED),
    ("moe", True, 3 * SHARED + 8 * (H + 3 * EXPERT)),
    ("moe", False, 0),
    ("core_attn", True, 0),  # FlashAttention keeps no scores
    ("norms", False, H + H),
    ("mlp_act", False, FFN),
    ("mlp_act", True, SHARED + 8 * EXPERT),
    # Sets: a norm whose output only a checkpointed module would keep is not kept.
    ("moe,layernorm", True, H + H + 3 * SHARED + 8 * (H + 3 * EXPERT)),
    ("moe_act,moe", True, 3 * SHARED + 8 * (H + 3 * EXPERT)),
)


@every("modules, moe, numbers", ROWS)
def test_a_module_keeps_its_input_only(modules, moe, numbers):
    assert freed(DEEPSEEK, modules, moe=moe) == 2 * T * numbers


def test_norms_that_are_one_with_a_product_are_not_computed_again():
    """Megatron's layernorm acts on modules; PyTorch's kernels have every norm apart."""
    assert freed(LLAMA, "layernorm") == 0
    assert freed(LLAMA, "layernorm", kernels="eager") == 2 * LLAMA.sequence * 2 * LLAMA.hidden
    assert freed(LLAMA, "layernorm,mlp", kernels="eager") == freed(LLAMA, "mlp,layernorm") + (
        2 * LLAMA.sequence * LLAMA.hidden
    )


def test_a_whole_module_keeps_its_input_in_16_bits_where_products_have_8():
    assert freed(DEEPSEEK, "moe", moe=True, products="fp8") == T * (
        -H + 5 * SHARED + 8 * (H + 5 * EXPERT)
    )


def stage_0(recompute: str) -> float:
    """Gigabytes of activations on the first stage of DeepSeek-V3, as it was published."""
    trained = Context.of(from_query("preset=deepseek-v3")).trained
    how = replace(trained.training, recompute=recompute)
    return memory_per_stage(trained.model, trained.split, how)[0].parts["activations"] / 1e9


def test_stage_0_of_deepseek_v3_holds_what_its_set_of_modules_says():
    sets = {
        "core_attn": 86,
        "core_attn,layernorm": 83,
        "core_attn,layernorm,moe_act": 81,
        "layernorm,mla_up_proj,moe_act": 49,
        "mla_up_proj,norms,mlp_act": 37,
        "mlp,moe": 56,
        "layernorm,mla_up_proj,mlp,moe": 20,
        "full": 3,
    }
    assert {names: round(stage_0(names)) for names in sets} == sets
    published = Context.of(from_query("preset=deepseek-v3")).trained.training
    assert published.recompute == "mla_up_proj,norms,mlp_act"


def test_what_the_backward_computes_again_is_held_for_a_moment():
    split = Split(pp=4, spread="nearly")
    for names, numbers in (
        ("mla_up_proj", UP),
        ("mlp", H + 3 * FFN),  # of the dense layers, which have more than the others
        ("moe_act,mla_up_proj", UP),  # not both halves of a layer at once
        ("selective", 0),
    ):
        first = memory_per_stage(DEEPSEEK, split, Training(recompute=names))[0]
        assert first.parts.get("recomputed", 0.0) == 2 * T * numbers


# -- seconds and messages ------------------------------------------------------------------------


def seconds(modules: str, *, moe: bool = True) -> Any:
    """Of one layer and one micro-batch, by cause."""
    context = Context.of(State(nodes=8, model="deepseek-v3", tp=2, pp=1, ep=8, recompute=modules))
    request = context.trained.request(context.layout)
    return layer_time(request, "megatron", int(moe))


def test_what_is_computed_again_takes_its_time():
    none, full = seconds("none"), seconds("full")
    assert seconds("core_attn") == none  # FlashAttention does that itself
    cheap = ("layernorm", "moe_act", "mla_up_proj")
    for modules in ("shared_experts", "moe", *cheap):
        assert none.compute < seconds(modules).compute < full.compute
    apart = [seconds(name).compute - none.compute for name in cheap]
    assert seconds(",".join(cheap)).compute - none.compute == pytest.approx(sum(apart))
    assert seconds("mlp", moe=True) == none
    dense = [seconds(name, moe=False).compute for name in ("none", "mlp", "full")]
    assert dense == sorted({*dense})


def test_what_is_sent_inside_a_module_is_sent_again():
    none, full = seconds("none"), seconds("full")
    assert (seconds("moe").ep, seconds("shared_experts").ep) == (full.ep, none.ep)
    assert none.tp < seconds("shared_experts").tp <= seconds("moe").tp < full.tp
    assert seconds("layernorm,moe_act,mla_up_proj").tp == none.tp


def sent(modules: str) -> dict[str, float]:
    """How often each kind sends while layers go forward again, in one step."""
    found = demands(DEEPSEEK, Split(tp=2, dp=8, ep=8, etp=1), Training(recompute=modules))
    again = [one for one in found if one.what == "recompute"]
    times = {kind: [one.counts for one in again if one.kind == kind] for kind in ("tp", "ep")}
    return {kind: sum(map(sum, counts)) for kind, counts in times.items()}


def test_messages_of_the_forward_come_once_more_of_the_modules_that_hold_them():
    experts, dense = 58, 3  # layers
    whole = sent("full")
    assert sent("layernorm,mla_up_proj,moe_act,core_attn") == {"tp": 0, "ep": 0}
    assert sent("mlp") == {"tp": 2 * dense, "ep": 0}
    assert sent("shared_experts") == {"tp": 2 * experts, "ep": 0}
    assert sent("moe")["tp"] == 2 * experts
    assert sent("moe")["ep"] == whole["ep"]
    assert sent("mlp,moe")["tp"] == whole["tp"] / 2  # attention goes forward once


def test_a_hidden_exchange_needs_what_the_experts_computed():
    hidden = Training(recompute="layernorm,moe", ep_overlap=True)
    with pytest.raises(LayoutError) as refused:
        demands(DEEPSEEK, Split(dp=8, ep=8), hidden)
    assert refused.value.code == "overlap-needs-experts-kept"
    assert {"recompute": "layernorm"} in refused.value.alternatives
    assert demands(DEEPSEEK, Split(dp=8, ep=8), replace(hidden, recompute="layernorm"))


# -- from text to text ---------------------------------------------------------------------------


def test_a_set_is_written_in_one_way():
    assert recomputation("moe core_attn") == recomputation("core_attn,moe,moe") == "core_attn,moe"
    assert [recomputation(name) for name in ("core_attn", "none", "full")] == [
        *("selective", "none", "full")
    ]
    for wrong in ("", " ", "some", "core_attn,some", "full,moe", 1, None):
        with pytest.raises(LayoutError):
            recomputation(wrong)


SETS = [
    written(names) for count in (1, 2, 3, 7) for names in itertools.combinations(MODULES, count)
]


def test_every_set_of_modules_comes_back_from_the_command_of_it():
    """--recompute-modules of Megatron-LM, and of Megatron-Bridge's recipes."""
    assert len(SETS) == 64
    for target, name in itertools.product(("megatron", "nemo"), SETS):
        command = emit(Job(nodes=2), options_of(DEEPSEEK, {"recompute": name}, 1), target)
        assert "no option" not in command
        assert training_of(parse(command))["recompute"] == name, command
    command = emit(Job(nodes=2), options_of(DEEPSEEK, {"recompute": "moe_act"}, 1))
    assert "--moe-grouped-gemm" in command  # without which Megatron refuses it


def test_modules_that_a_model_has_not_are_not_asked_for():
    """Megatron refuses mla_up_proj without MLA, and moe_act without grouped products."""
    command = emit(Job(nodes=2), options_of(LLAMA, {"recompute": "mla_up_proj,moe_act,mlp"}, 1))
    assert "--recompute-modules mlp" in command
    assert modules_in(LLAMA, (*MODULES, *OWN)) == {"core_attn", "layernorm", "mlp", *OWN}


def test_what_only_deepseek_has_is_told_beside_what_is_most_like_it():
    state = from_query("preset=deepseek-v3")
    layout = Context.of(state).layout
    command = emit(layout.job, options_of_page(layout, state))
    assert "recompute_own 'norms,mlp_act'" in command.splitlines()[0]
    assert "--recompute-modules moe_act layernorm mla_up_proj" in command


@every("version", ["v=1&", "v=2&", ""])
def test_links_that_say_partial_open_as_what_they_meant(version):
    state = from_query(f"{version}recompute=partial&model=deepseek-v3")
    training = Context.of(state).trained.training
    assert training.recomputed == {"core_attn", "mla_up_proj", "norms", "mlp_act"}
    again = from_query(to_query(state))
    assert again.recompute == state.recompute == training.recompute
    assert from_query("v=2&recompute=some").recompute == "some"  # to be refused where it counts


def test_a_pasted_set_is_the_one_on_the_page_and_in_its_command():
    text = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
    text += "--recompute-granularity selective --recompute-modules mlp layernorm "
    text += "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --seq-length 2048 "
    state = State().changed(pasted_changes(State(), parse(text)))
    assert state.recompute == "layernorm,mlp"
    layout = Context.of(state).layout
    assert "--recompute-modules layernorm mlp" in emit(layout.job, options_of_page(layout, state))


def test_a_search_tries_what_megatron_has():
    for published in MODELS.values():
        tried = usual(published.model)
        assert (tried[:2], tried[-1]) == (("none", "selective"), "full")
        assert {*tried[2].split(",")} <= modules_in(published.model, MODULES)
