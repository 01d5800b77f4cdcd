"""Tensor parallel layers against the unsplit computation, and against finite differences."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import parallel_layers
from reference.parallel_layers import (
    column_parallel,
    column_parallel_back,
    row_parallel,
    row_parallel_back,
    sequence_column_parallel,
    sequence_column_parallel_back,
    sequence_row_parallel,
    sequence_row_parallel_back,
    shards_of,
    vocabulary_parallel_cross_entropy,
    vocabulary_parallel_cross_entropy_back,
    vocabulary_parallel_embedding,
    vocabulary_parallel_embedding_back,
)

from groups import LayoutError
from training.collectives import operations as collectives

FACTS = json.loads(
    (Path(__file__).parent / "data" / "collectives.json").read_text(encoding="utf-8")
)
law = settings(max_examples=25, deadline=None)
members = st.sampled_from([1, 2, 3, 4])
seeds = st.integers(0, 2**32 - 1)


def whole(shards, dim: int) -> np.ndarray:
    return np.concatenate(shards, axis=dim)


def slope(value: Callable[[np.ndarray], float], at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a number by central differences."""
    found = np.zeros_like(at)
    for place in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[place] += step
        down[place] -= step
        found[place] = (value(up) - value(down)) / (2 * step)
    return found


@law
@given(t=members, seed=seeds)
def test_a_column_parallel_layer_is_the_unsplit_one(t, seed):
    random = np.random.default_rng(seed)
    x, a = random.normal(size=(5, 2, 3)), random.normal(size=(3, 4 * t))
    dy = random.normal(size=(5, 2, 4 * t))
    ys = column_parallel(x, shards_of(a, t, dim=1))
    np.testing.assert_allclose(whole(ys, -1), x @ a)
    dx, das = column_parallel_back(x, shards_of(a, t, dim=1), shards_of(dy, t, dim=-1))
    np.testing.assert_allclose(dx, dy @ a.T, atol=1e-12)
    np.testing.assert_allclose(whole(das, 1), np.einsum("sbi,sbo->io", x, dy), atol=1e-12)


@law
@given(t=members, seed=seeds)
def test_a_row_parallel_layer_is_the_unsplit_one(t, seed):
    random = np.random.default_rng(seed)
    x, a = random.normal(size=(5, 2, 3 * t)), random.normal(size=(3 * t, 4))
    dy = random.normal(size=(5, 2, 4))
    xs, weights = shards_of(x, t, dim=-1), shards_of(a, t, dim=0)
    np.testing.assert_allclose(row_parallel(xs, weights), x @ a, atol=1e-12)
    dxs, das = row_parallel_back(xs, weights, dy)
    np.testing.assert_allclose(whole(dxs, -1), dy @ a.T, atol=1e-12)
    np.testing.assert_allclose(whole(das, 0), np.einsum("sbi,sbo->io", x, dy), atol=1e-12)


@law
@given(t=members, seed=seeds)
def test_an_mlp_of_a_column_and_a_row_parallel_layer_has_the_gradient_of_the_unsplit_one(t, seed):
    """Of sum(tanh(X A) B * C), by central differences of the unsplit loss."""
    random = np.random.default_rng(seed)
    x, a = random.normal(size=(2, 3)), random.normal(size=(3, 2 * t))
    b, c = random.normal(size=(2 * t, 3)), random.normal(size=(2, 3))

    def loss(x, a, b):
        return float(np.sum(np.tanh(x @ a) @ b * c))

    first, second = shards_of(a, t, dim=1), shards_of(b, t, dim=0)
    hidden = [np.tanh(y) for y in column_parallel(x, first)]
    assert np.sum(row_parallel(hidden, second) * c) == pytest.approx(loss(x, a, b))
    dhidden, db = row_parallel_back(hidden, second, c)
    dys = [gradient * (1 - h**2) for gradient, h in zip(dhidden, hidden)]
    dx, da = column_parallel_back(x, first, dys)
    for found, expected in (
        (dx, slope(lambda at: loss(at, a, b), x)),
        (whole(da, 1), slope(lambda at: loss(x, at, b), a)),
        (whole(db, 0), slope(lambda at: loss(x, a, at), b)),
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


@law
@given(t=members, seed=seeds)
def test_with_sequence_parallelism_the_layers_are_the_unsplit_ones(t, seed):
    random = np.random.default_rng(seed)
    x, a, b = random.normal(size=(2 * t, 2, 3)), *random.normal(size=(2, 3, 3))
    a, b = np.tile(a, t), np.tile(b, (t, 1))
    dy = random.normal(size=x.shape)
    first, second = shards_of(a, t, dim=1), shards_of(b, t, dim=0)
    xs, dys = shards_of(x, t, dim=0), shards_of(dy, t, dim=0)
    hidden = sequence_column_parallel(xs, first)
    np.testing.assert_allclose(whole(hidden, -1), x @ a)
    np.testing.assert_allclose(whole(sequence_row_parallel(hidden, second), 0), x @ a @ b)
    dhidden, db = sequence_row_parallel_back(hidden, second, dys)
    np.testing.assert_allclose(whole(dhidden, -1), dy @ b.T, atol=1e-12)
    np.testing.assert_allclose(whole(db, 0), np.einsum("sbi,sbo->io", x @ a, dy), atol=1e-10)
    dxs, da = sequence_column_parallel_back(xs, first, dhidden)
    np.testing.assert_allclose(whole(dxs, 0), dy @ b.T @ a.T, atol=1e-10)
    np.testing.assert_allclose(whole(da, 1), np.einsum("sbi,sbo->io", x, dy @ b.T), atol=1e-10)


@law
@given(t=members, seed=seeds)
def test_a_vocabulary_parallel_embedding_is_the_unsplit_one(t, seed):
    random = np.random.default_rng(seed)
    table, tokens = random.normal(size=(3 * t, 2)), random.integers(0, 3 * t, (4, 2))
    tables = shards_of(table, t, dim=0)
    np.testing.assert_allclose(vocabulary_parallel_embedding(tokens, tables), table[tokens])
    dy = random.normal(size=(4, 2, 2))
    found = whole(vocabulary_parallel_embedding_back(tokens, tables, dy), 0)
    expected = slope(lambda at: float(np.sum(at[tokens] * dy)), table)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def unsplit_loss(logits: np.ndarray, targets: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    at_target = np.take_along_axis(shifted, targets[..., None], -1)[..., 0]
    return np.log(np.exp(shifted).sum(axis=-1)) - at_target


@law
@given(t=members, seed=seeds)
def test_vocabulary_parallel_cross_entropy_is_the_unsplit_one(t, seed):
    random = np.random.default_rng(seed)
    logits, targets = random.normal(size=(3, 2, 2 * t)), random.integers(0, 2 * t, (3, 2))
    found = vocabulary_parallel_cross_entropy(shards_of(logits, t, dim=-1), targets)
    np.testing.assert_allclose(found.loss, unsplit_loss(logits, targets))
    dloss = random.normal(size=(3, 2))
    back = whole(vocabulary_parallel_cross_entropy_back(found, dloss), -1)
    expected = slope(lambda at: float(np.sum(unsplit_loss(at, targets) * dloss)), logits)
    np.testing.assert_allclose(back, expected, rtol=1e-5, atol=1e-7)


def test_large_logits_do_not_overflow():
    logits = [np.array([[1000.0, 0.0]]), np.array([[999.0, 0.0]])]
    found = vocabulary_parallel_cross_entropy(logits, np.array([0]))
    assert found.loss[0] == pytest.approx(np.log(1 + np.exp(-1)))


# What they communicate.


@pytest.fixture
def recorded(monkeypatch):
    """The collectives that the layers ask for, with the elements of each, in order."""
    calls = []

    def apply(op, tensors, groups, **options):
        operation = collectives.operation_of(op)
        name = getattr(operation, options.get("direction", "forward"))
        if name != "keep":
            calls.append((name, tensors[0].size))
        return collectives.apply(op, tensors, groups, **options)

    monkeypatch.setattr(parallel_layers, "apply", apply)
    return calls


def test_two_pairs_of_layers_cost_two_all_reduces_each_way(recorded):
    """As Megatron's: megatron_layer without sequence parallelism, s 8, b 2, h 16, t 4."""
    row = FACTS["megatron_layer"]["rows"][0]
    assert row["sequence_parallel"] is False
    x, a, b = np.ones((8, 2, 16)), np.ones((16, 64)), np.ones((64, 16))
    first, second = shards_of(a, 4, dim=1), shards_of(b, 4, dim=0)
    hidden = [column_parallel(x, first) for _ in range(2)]
    for one in hidden:
        row_parallel(one, second)
    assert recorded == [("all_reduce", size) for size in row["forward"]["all_reduce"]]
    recorded.clear()
    for one in hidden:
        row_parallel_back(one, second, x)
        column_parallel_back(x, first, one)
    assert recorded == [("all_reduce", size) for size in row["backward"]["all_reduce"]]


def test_sequence_parallelism_costs_gathers_and_scatters_and_gathers_again_backward(recorded):
    """The same two pairs; a gather counts the elements of the whole, as a reduce-scatter does."""
    row = FACTS["megatron_layer"]["rows"][1]
    assert row["sequence_parallel"] is True
    xs = [np.ones((2, 2, 16))] * 4
    first, second = shards_of(np.ones((16, 64)), 4, dim=1), shards_of(np.ones((64, 16)), 4, dim=0)
    hidden = [sequence_column_parallel(xs, first) for _ in range(2)]
    for one in hidden:
        sequence_row_parallel(one, second)
    assert by_name(recorded) == row["forward"]
    recorded.clear()
    for one in hidden:
        sequence_row_parallel_back(one, second, xs)
        sequence_column_parallel_back(xs, first, one)
    assert by_name(recorded) == row["backward"]


def by_name(calls) -> dict[str, list[int]]:
    """The elements of the whole buffer, by collective: four members hold pieces of a gather."""
    found = {}
    for name, size in calls:
        found.setdefault(name, []).append(size * 4 if name == "all_gather" else size)
    return found


def test_cross_entropy_costs_three_all_reduces_of_a_number_a_token_and_none_back(recorded):
    found = vocabulary_parallel_cross_entropy([np.ones((8, 2, 5))] * 4, np.zeros((8, 2), int))
    assert recorded == [("all_reduce", 16)] * 3
    recorded.clear()
    vocabulary_parallel_cross_entropy_back(found, np.ones((8, 2)))
    assert recorded == []


# Refusals.


@pytest.mark.parametrize("token", [-1, 4])
def test_a_token_outside_the_vocabulary_is_refused(token):
    tokens, shards = np.array([token]), [np.ones((2, 1))] * 2
    for call in (
        lambda: vocabulary_parallel_embedding(tokens, shards),
        lambda: vocabulary_parallel_cross_entropy([np.ones((1, 2))] * 2, tokens),
    ):
        with pytest.raises(LayoutError, match=f"{token} is no word: words go from 0 to 3"):
            call()


def test_a_layer_that_does_not_split_is_refused():
    with pytest.raises(LayoutError, match="size 6, which does not split over 4 ranks"):
        shards_of(np.ones((3, 6)), 4, dim=1)
