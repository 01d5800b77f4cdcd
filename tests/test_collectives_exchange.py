"""Exchanges: send/recv, unequal all-to-all, the broadcast of a batch; laws and refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.batch import MOST_DIMS, broadcast_batch

from groups import LayoutError
from training.collectives.operations import apply

law = settings(max_examples=60, deadline=None)


def told(tensors) -> list:
    return [tensor.tolist() for tensor in tensors]


def inner(a, b) -> int:
    return sum(int(np.sum(x * y)) for x, y in zip(a, b))


# send/recv

TENSORS = [[0, 1], [10, 11], [20, 21], [30, 31]]
SENT = {  # who sends to whom, by place: what the ranks then hold
    "round the ring": (None, [[30, 31], [0, 1], [10, 11], [20, 21]]),
    "forward through a pipeline": ([1, 2, 3, None], [[0, 1], [0, 1], [10, 11], [20, 21]]),
    "backward through a pipeline": ([None, 0, 1, 2], [[10, 11], [20, 21], [30, 31], [30, 31]]),
    "two pairs swap": ([1, 0, 3, 2], [[10, 11], [0, 1], [30, 31], [20, 21]]),
}


@pytest.mark.parametrize("to", SENT)
def test_send_and_receive(to):
    receivers, expected = SENT[to]
    options = {} if receivers is None else {"to": receivers}
    assert told(apply("send_recv", TENSORS, [[0, 1, 2, 3]], **options)) == expected


def test_places_of_send_and_receive_are_those_of_the_group():
    assert told(apply("send_recv", TENSORS, [[1, 3]], to=[1, None])) == [
        [0, 1], [10, 11], [20, 21], [10, 11],
    ]  # fmt: skip


@st.composite
def receivers(draw, members):
    """Some members send, each to another, and nobody receives twice."""
    order = draw(st.permutations(range(members)))
    return [
        target if target != place and draw(st.booleans()) else None
        for place, target in enumerate(order)
    ]


@law
@given(st.data(), st.integers(2, 6))
def test_the_backward_of_send_and_receive_is_its_adjoint(data, members):
    to = data.draw(receivers(members))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x, y = (list(random.integers(-9, 10, (members, 3))) for _ in range(2))
    group = [list(range(members))]
    forward = apply("send_recv", x, group, to=to)
    backward = apply("send_recv", y, group, to=to, direction="backward")
    assert inner(forward, y) == inner(x, backward)


@law
@given(st.integers(2, 6))
def test_a_tensor_is_back_after_as_many_passes_as_members(members):
    tensors = [np.array([rank]) for rank in range(members)]
    for _ in range(members):
        tensors = apply("send_recv", tensors, [list(range(members))])
    assert told(tensors) == [[rank] for rank in range(members)]


# unequal all-to-all: tokens to their experts


def test_tokens_go_where_their_splits_say():
    """Rows from (down) to (across): a token is 10 * rank + its number on it."""
    splits = [
        [1, 2, 0],
        [0, 0, 2],
        [3, 0, 1],
    ]
    tokens = [np.array([[0], [1], [2]]), np.array([[10], [11]]), np.array([[20], [21], [22], [23]])]
    found = apply("all_to_all", tokens, [[0, 1, 2]], splits=splits)
    assert told(found) == [
        [[0], [20], [21], [22]],
        [[1], [2]],
        [[10], [11], [23]],
    ]
    back = apply("all_to_all", found, [[0, 1, 2]], splits=splits, direction="backward")
    assert told(back) == told(tokens)


@law
@given(st.data(), st.integers(1, 4))
def test_the_backward_of_an_unequal_all_to_all_is_its_adjoint_and_its_inverse(data, members):
    rows = st.lists(st.integers(0, 3), min_size=members, max_size=members)
    splits = [data.draw(rows) for _ in range(members)]
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x = [random.integers(-9, 10, (sum(row), 2)) for row in splits]
    y = [random.integers(-9, 10, (sum(column), 2)) for column in zip(*splits)]
    group = [list(range(members))]
    forward = apply("all_to_all", x, group, splits=splits)
    backward = apply("all_to_all", y, group, splits=splits, direction="backward")
    assert inner(forward, y) == inner(x, backward)
    again = apply("all_to_all", forward, group, splits=splits, direction="backward")
    assert told(again) == told(x)


@law
@given(st.integers(1, 4), st.integers(1, 3))
def test_equal_splits_are_the_equal_all_to_all(members, rows):
    tensors = list(np.arange(members * members * rows).reshape(members, members * rows))
    group = [list(range(members))]
    splits = [[rows] * members] * members
    assert told(apply("all_to_all", tensors, group, splits=splits)) == told(
        apply("all_to_all", tensors, group)
    )


ONES = [np.ones(2)] * 4
PAIR = [[0, 1], [2, 3]]


@pytest.mark.parametrize(
    ("op", "options", "code", "sentence"),
    [
        ("send_recv", {"to": [0, None]}, "sends-to-itself",
         "the member at place 0 would send to itself"),
        ("send_recv", {"to": [None, 1]}, "sends-to-itself",
         "the member at place 1 would send to itself"),
        ("send_recv", {"to": [1]}, "not-receivers",
         "[1] does not name a receiver for each of 2 members"),
        ("send_recv", {"to": "10"}, "not-receivers",
         "'10' does not name a receiver for each of 2 members"),
        ("send_recv", {"to": [1, 2]}, "out-of-range",
         "to must be a whole number from 0 to 1, not 2; try to 1"),
        ("send_recv", {"to": [1.0, None]}, "not-a-whole-number",
         "to must be a whole number from 0 to 1, not 1.0"),
        ("all_to_all", {"splits": [[1, 1]]}, "not-splits",
         "[[1, 1]] is not 2 times 2 numbers of rows"),
        ("all_to_all", {"splits": 2}, "not-splits", "2 is not 2 times 2 numbers of rows"),
        ("all_to_all", {"splits": [[1, 1], [1, -1]]}, "out-of-range",
         "splits must be a whole number from 0 up, not -1; try splits 0"),
        ("all_to_all", {"splits": [[1, 1], [1, 2]]}, "splits-do-not-add-up",
         "member 1 has 2 rows, and its splits add up to 3"),
        ("all_reduce", {"to": [1, 0]}, "unknown-option", "all_reduce has no option 'to'"),
        ("all_to_all_sp2hp", {"splits": [[1, 1], [1, 1]]}, "unknown-option",
         "all_to_all_sp2hp has no option 'splits'"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_wrong(op, options, code, sentence):
    with pytest.raises(LayoutError) as caught:
        apply(op, ONES, PAIR, **options)
    assert (caught.value.code, str(caught.value)) == (code, sentence)


def test_nobody_receives_twice():
    with pytest.raises(LayoutError, match="the member at place 2 would receive twice"):
        apply("send_recv", ONES, [[0, 1, 2]], to=[2, 2, None])


def test_rows_of_an_unequal_all_to_all_have_one_shape():
    tensors = [np.ones((1, 2)), np.ones((1, 3))]
    with pytest.raises(LayoutError) as caught:
        apply("all_to_all", tensors, [[0, 1]], splits=[[0, 1], [1, 0]])
    assert caught.value.code == "rows-differ"


# The batch of a tensor parallel group.


def test_every_rank_of_a_tensor_parallel_group_gets_the_batch_of_the_first():
    batch = {
        rank: {"tokens": np.arange(6).reshape(2, 3) + rank, "labels": np.array([7 + rank])}
        for rank in (0, 2)
    }
    found = broadcast_batch(
        [batch[0], None, batch[2], None], [[0, 1], [2, 3]], ["tokens", "labels"]
    )
    for rank, got in enumerate(found):
        first = batch[rank // 2 * 2]
        assert list(got) == ["tokens", "labels"]
        assert all(got[key].tolist() == first[key].tolist() for key in got)


@pytest.mark.parametrize(
    ("batch", "keys", "code"),
    [
        (None, ["tokens"], "not-in-batch"),
        ({"tokens": np.ones(2)}, ["labels"], "not-in-batch"),
        ({"tokens": np.ones(2)}, [], "not-in-batch"),
        ({"tokens": np.ones((1,) * MOST_DIMS)}, ["tokens"], "does-not-pack"),
        ({"tokens": np.ones((2, 0))}, ["tokens"], "does-not-pack"),
        ({"tokens": np.ones(2), "mask": np.ones(2, int)}, ["tokens", "mask"], "types-differ"),
        ({"tokens": "text"}, ["tokens"], "not-a-tensor"),
    ],
)
def test_a_batch_that_cannot_be_broadcast_is_refused(batch, keys, code):
    with pytest.raises(LayoutError) as caught:
        broadcast_batch([batch, None], [[0, 1]], keys)
    assert caught.value.code == code
