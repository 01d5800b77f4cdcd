"""Algorithms step by step: recorded chunks, what they leave, what they cost; ring attention."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from cases import every
from hypothesis import given, settings
from hypothesis import strategies as st

from groups import LayoutError
from groups.stages.holdings import attended
from training.collectives.algorithms import (
    ALGORITHMS,
    MOST_MEMBERS,
    ROOTED,
    algorithm_of,
    pipeline_backward,
    pipeline_forward,
    ring_all_gather,
    ring_attention,
    ring_broadcast,
    ring_reduce_scatter,
    second_tree_parents,
    tree_parents,
)
from training.collectives.cost import bus_factor, steps
from training.collectives.functions import joined
from training.collectives.operations import apply
from training.collectives.transfers import Algorithm, Transfer, loaded, ports, run


def unloaded(algorithm, slots, tensors):
    """What every member has got, as `operations` has it; of a reduce, gather the root only."""
    found = []
    for place, own in enumerate(slots):
        if algorithm.op in ("reduce", "gather") and place != algorithm.root:
            found.append(tensors[place])
        elif algorithm.op in ("reduce_scatter", "scatter"):
            found.append(np.asarray(own[place]))
        else:
            found.append(joined(np.stack([np.asarray(slot) for slot in own[-algorithm.chunks :]])))
    return found


FACTS = json.loads(
    (Path(__file__).parent / "data" / "collectives.json").read_text(encoding="utf-8")
)
BIT_OR = set.__or__


def chunks_sent(steps) -> list[list[int]]:
    """By step and sender."""
    return [[move.chunk for move in sorted(step, key=lambda m: m.sender)] for step in steps]


# The recorded ring.


@every("ring", FACTS["ring_all_reduce_chunks"], ids=lambda ring: f"n{ring['n']}")
def test_a_ring_all_reduce_sends_the_recorded_chunks(ring):
    n = ring["n"]
    half = ring_reduce_scatter(n, owned=1)
    assert chunks_sent(half) == ring["reduce_scatter_send"]
    assert chunks_sent(ring_all_gather(n, owned=1)) == ring["all_gather_send"]
    whole = algorithm_of("ring_all_reduce", n)
    assert len(whole.steps) == ring["steps"]
    assert sum(whole.loads()) == pytest.approx(ring["bytes_sent_per_rank_over_S"])

    everyone = set(range(n))
    after = run(half, [[{rank}] * n for rank in range(n)], BIT_OR)[-1]
    owned = [[chunk for chunk, who in enumerate(own) if who == everyone] for own in after]
    assert owned == [[chunk] for chunk in ring["owned_after_reduce_scatter"]]


@every("ring", FACTS["ring_attention_kv"], ids=lambda ring: f"c{ring['c']}")
def test_blocks_of_ring_attention(ring):
    c = ring["c"]
    steps = ring_attention(c)
    assert len(steps) == ring["sends"]
    slots = [[rank if rank == block else None for block in range(c)] for rank in range(c)]
    held = [
        [[block for block in own if block is not None] for own in state]
        for state in run(steps, slots)
    ]
    assert held == [[[block] for block in row] for row in ring["kv_block_at_step"]]


@every("c", [1, 2, 3, 4, 8])
def test_zig_zag_chunks_give_every_rank_the_same_work_at_every_step(c):
    """A pair on the diagonal is half a pair of work, for its queries see half of its keys."""
    for step in range(c):
        for rank in range(c):
            pairs = attended(c, rank, (rank - step) % c)
            assert sum(0.5 if query == key else 1 for query, key in pairs) == 2


def test_zig_zag_chunks_are_the_recorded_ones():
    for c, chunks in FACTS["cp_zigzag_chunks"].items():
        assert [sorted({q for q, _ in attended(int(c), rank, rank)}) for rank in range(int(c))] == (
            chunks
        )


# The end of every algorithm is the collective.

law = settings(max_examples=30, deadline=None)


def in_a_group(name: str, n: int, root: int = 0) -> Algorithm | None:
    """None of a size that the algorithm is not for, in place of which it says one that it is."""
    try:
        return algorithm_of(name, n, root)
    except LayoutError as error:
        others = [int(fix["n"]) for fix in error.alternatives] or [2]
    for other in others:  # which it must be for
        algorithm_of(name, other)
    return None


@pytest.mark.parametrize("name", ALGORITHMS)
@law
@given(data=st.data(), n=st.integers(1, 9))
def test_the_end_of_an_algorithm_is_its_collective(name, data, n):
    root = data.draw(st.integers(0, n - 1)) if ALGORITHMS[name][0] in ROOTED else 0
    if (algorithm := in_a_group(name, n, root)) is None:
        return
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    length = math.lcm(n, algorithm.chunks)
    tensors = [random.integers(-9, 10, (length, 2)) for _ in range(n)]
    states = run(algorithm.steps, loaded(algorithm, tensors))
    if name == "ring_attention":
        return  # nobody keeps what it saw: above
    group = [list(range(n))]
    if algorithm.op == "send_recv":  # from stage to stage, the first one's to all
        expected = apply("broadcast", tensors, group, root=algorithm.root)
    else:
        options = {"root": root} if algorithm.op in ROOTED else {}
        expected = apply(algorithm.op, tensors, group, **options)
    found = unloaded(algorithm, states[-1], tensors)
    assert [tensor.tolist() for tensor in found] == [tensor.tolist() for tensor in expected]


@every("name", ALGORITHMS)
@every("n", [1, 2, 3, 4, 8, 13])
def test_nobody_sends_to_itself_and_everybody_contributes_once(name, n):
    if (algorithm := in_a_group(name, n)) is None:
        return
    assert all(move.sender != move.receiver for step in algorithm.steps for move in step)
    if algorithm.op in ("all_reduce", "reduce"):
        # Counted, not merely joined: a tensor that arrived twice would be added twice.
        start = [[Counter([rank])] * algorithm.slots for rank in range(n)]
        end = run(algorithm.steps, start)[-1]
        for own in end[:1] if algorithm.op == "reduce" else end:
            assert own == [Counter(range(n))] * algorithm.slots


@every("n", [1, 2, 3, 4, 8, 13])
@every(
    "name",
    ["ring_all_reduce", "ring_reduce_scatter", "ring_all_gather", "pairwise_all_to_all",
     "direct_gather", "direct_scatter", "ring_attention"],
)  # fmt: skip
def test_rings_pairs_and_direct_messages_reach_the_bandwidth_bound_in_the_counted_steps(name, n):
    algorithm = algorithm_of(name, n)
    assert len(algorithm.steps) == steps(algorithm.op, n)
    assert sum(algorithm.loads()) == pytest.approx(bus_factor(algorithm.op, n))


@every("name", ALGORITHMS)
@every("n", [2, 3, 4, 8, 13])
def test_no_algorithm_beats_the_bandwidth_bound(name, n):
    """What passes the busiest port, out or in, over all steps."""
    if (algorithm := in_a_group(name, n)) is None:
        return
    passed = sum((ports(step) for step in algorithm.steps), Counter())
    bound = bus_factor(algorithm.op, n)
    assert max(passed.values()) / algorithm.chunks >= bound - 1e-12
    assert sum(algorithm.loads()) >= bound - 1e-12


def test_two_children_that_send_at_once_share_the_link_of_their_parent():
    """Tree of 4: 1 and 3 send to 2, then 2 to 0; then down again."""
    assert algorithm_of("tree_all_reduce", 4).loads() == [2, 1, 1, 2]


def test_a_pipelined_ring_broadcast_nears_the_bound_with_more_chunks():
    lengths = [len(ring_broadcast(8, chunks=chunks)) for chunks in (1, 4, 16, 1024)]
    assert lengths == [7, 10, 22, 1030]
    assert algorithm_of("ring_broadcast", 8).loads() == [1 / 4] * 10


# Trees: NVIDIA/nccl, src/graph/trees.cc, the drawings in its comments.

FIRST_OF_14 = {
    8: 0, 4: 8, 12: 8, 2: 4, 6: 4, 10: 12, 1: 2, 3: 2, 5: 6, 7: 6, 9: 10, 11: 10, 13: 12,
}  # fmt: skip
MIRRORED_OF_12 = {
    3: 11, 1: 3, 7: 3, 5: 7, 9: 7, 0: 1, 2: 1, 4: 5, 6: 5, 8: 9, 10: 9,
}  # fmt: skip
SHIFTED_OF_13 = {
    9: 1, 5: 9, 0: 9, 3: 5, 7: 5, 11: 0, 2: 3, 4: 3, 6: 7, 8: 7, 10: 11, 12: 11,
}  # fmt: skip


@every(
    "parents, drawn, root",
    [
        (tree_parents(14), FIRST_OF_14, 0),
        (second_tree_parents(12), MIRRORED_OF_12, 11),
        (second_tree_parents(13), SHIFTED_OF_13, 1),
    ],
)
def test_trees_are_those_that_nccl_draws(parents, drawn, root):
    assert parents[root] is None
    assert {place: up for place, up in enumerate(parents) if up is not None} == drawn


@every("n", range(2, 40))
def test_who_has_children_in_one_tree_is_a_leaf_of_the_other(n):
    """With odd n place 0, the root of one tree, has one child in each."""
    one, other = Counter(tree_parents(n)), Counter(second_tree_parents(n))
    in_both = {place: (one[place], other[place]) for place in range(n) if place in one & other}
    assert in_both == ({0: (1, 1)} if n % 2 else {})
    assert max(one[place] + other[place] for place in range(n)) <= 2


@every("n", [2, 3, 8, 33, 64])
def test_a_tree_takes_logarithmically_many_steps(n):
    assert len(algorithm_of("tree_all_reduce", n).steps) <= 2 * math.ceil(math.log2(n))
    assert len(algorithm_of("tree_broadcast", n, root=n - 1).steps) <= math.ceil(math.log2(n))


def test_micro_batches_follow_one_another_through_a_pipeline():
    """Stages across, steps down: the micro-batch that a stage sends."""

    def table(steps):
        return [
            [next((m.chunk for m in step if m.sender == stage), None) for stage in range(3)]
            for step in steps
        ]

    assert table(pipeline_forward(3, chunks=3)) == [
        [0, None, None],
        [1, 0, None],
        [2, 1, None],
        [None, 2, None],
    ]
    assert table(pipeline_backward(3, chunks=3)) == [
        [None, None, 0],
        [None, 0, 1],
        [None, 1, 2],
        [None, 2, None],
    ]


# The player.


def test_messages_of_one_step_travel_at_once():
    swap = [(Transfer(0, 1, 0, 0), Transfer(1, 0, 0, 0))]
    assert run(swap, [["a"], ["b"]]) == [[["a"], ["b"]], [["b"], ["a"]]]


def test_an_algorithm_that_sends_out_of_an_empty_slot_is_none():
    with pytest.raises(AssertionError):
        run([(Transfer(0, 1, 0, 0, gives=True),), (Transfer(0, 1, 0, 0),)], [[1], [2]])


def test_steps_are_not_listed_for_large_groups():
    assert len(algorithm_of("ring_all_reduce", MOST_MEMBERS).steps) == 126
    with pytest.raises(LayoutError) as caught:
        algorithm_of("ring_all_reduce", MOST_MEMBERS + 1)
    assert caught.value.code == "out-of-range"
