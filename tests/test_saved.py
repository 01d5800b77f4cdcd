"""Activations of one layer against what autograd keeps in transformers' own code.

That code fuses less than what trains (tests/data/models/SOURCE.md): norms keep copies of 32 bits,
activation functions are two operators, a scan is many. What both keep is the same to the byte.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from training.configs.reading import read_config
from training.kinds import MLP, Attention, Experts, StateMixer
from training.memory.activations import layer_activations, norms_of
from training.recipe import Training
from training.split import Split

TOKENS = 512
ROWS = {
    row["case"]: row
    for row in map(json.loads, (Path(__file__).parent / "data/models/saved.jsonl").open())
}


def read(case):
    """The row, its model, and its layer's kind."""
    row = ROWS[case]
    model = replace(read_config(row["config"]).model, sequence=TOKENS)
    return row["by_child_512"], model, model.stack[row["layer"]]


def kept(model, kind):
    """Bytes of a token by part."""
    how = Training(recompute="none")
    parts = layer_activations(model, Split(), how, kind, recompute="none")
    return {name: size / TOKENS for name, size in parts.items()}


def cases(kind):
    """The rows whose layer has a mixer or a feed-forward of this class."""
    found = []
    for case in ROWS:
        _, _, layer = read(case)
        parts = (*layer.mixers, *layer.feed_forwards)
        found += [case] * any(isinstance(part, kind) for part in parts)
    assert found
    return found


@pytest.mark.parametrize("case", ROWS)
def test_a_layer_has_as_many_norms_as_in_its_code(case):
    children, model, kind = read(case)
    assert norms_of(model, kind) == sum("norm" in name for name in children)


@pytest.mark.parametrize("case", cases(Attention))
def test_attention_keeps_its_input_and_what_it_multiplies(case):
    """Beside it: a sum of 32 bits for each head, and cosines and sines of positions."""
    children, model, kind = read(case)
    (attention,) = (mixer for mixer in kind.mixers if isinstance(mixer, Attention))
    beside = 4 * attention.heads + 2 * 2 * attention.head_dim
    ours = kept(model, replace(kind, mixers=(attention,)))["attention"]
    assert children["self_attn"] / TOKENS == ours + beside


@pytest.mark.parametrize("case", cases(MLP))
def test_an_mlp_keeps_its_input_unless_attention_had_it_and_what_is_inside(case):
    """Beside it: what SiLU returns, which fused kernels compute again."""
    children, model, kind = read(case)
    (mlp,) = kind.feed_forwards
    name = "mlp" if "mlp" in children else "feed_forward"
    assert children[name] / TOKENS == kept(model, kind)["mlp"] + 2 * mlp.width


@pytest.mark.parametrize("case", cases(Experts))
def test_experts_keep_copies_of_tokens_and_what_is_inside(case):
    """Beside it: what SiLU returns, outputs before they are weighted, and the router's numbers."""
    children, model, kind = read(case)
    (moe,) = kind.feed_forwards
    ours = kept(model, kind)
    inside = 2 * (moe.top_k * moe.width + moe.shared)
    weighted = 2 * model.hidden * (moe.top_k + moe.shared_gate)
    router = children["mlp"] / TOKENS - ours["mlp"] - ours["experts"] - inside - weighted
    assert 4 * moe.experts <= router < 20 * moe.experts


@pytest.mark.parametrize("case", cases(StateMixer))
def test_fused_kernels_of_states_keep_less_than_operators_do(case):
    children, model, kind = read(case)
    mixers = tuple(mixer for mixer in kind.mixers if isinstance(mixer, StateMixer))
    theirs = next(children[name] for name in ("linear_attn", "mamba", "mixer", "self_attn")
                  if name in children) / TOKENS  # fmt: skip
    assert 0 < 2 * kept(model, replace(kind, mixers=mixers))["attention"] < theirs
