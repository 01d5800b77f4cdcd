"""From a pasted log to the groups that its ranks share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from groups import LayoutError, fit
from groups.grouping import LONGEST_TEXT, MOST_RANKS, Grouping, parse_ranks, plain, shared_groups
from groups.megatron.parallel_state import groupings

law = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# -- reading ranks -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        ("3", (3,)),
        ("3, 11, 5-7 3", (3, 5, 6, 7, 11)),
        ("[0, 1, 2]", (0, 1, 2)),
        ("(4;5)", (4, 5)),
        (" 7\n3\t1 ", (1, 3, 7)),
        ("0-3", (0, 1, 2, 3)),
        ("0 - 3", (0, 1, 2, 3)),
        ("0–3", (0, 1, 2, 3)),
        ("0..3, 8 .. 9", (0, 1, 2, 3, 8, 9)),
        ("5-5", (5,)),
        ("0-3, 2-4", (0, 1, 2, 3, 4)),
        ("007", (7,)),
    ],
)
def test_a_list_of_numbers_and_ranges_is_read(text, ranks):
    assert parse_ranks(text, world_size=16) == ranks


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("3, x", "x"),
        ("3, 5-", "5-"),
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("3 five 7", "five"),
        ("0-3-5", "0-3-5"),
        ("\uff17", "\uff17"),  # a full-width 7
        ("²", "²"),
        ("0x10", "0x10"),
        ("1e3", "1e3"),
        ("9" * 12, "9" * 12),
        ("7-3", "7-3"),
    ],
)
def test_the_part_that_is_no_rank_is_named(text, part):
    with pytest.raises(LayoutError) as refusal:
        parse_ranks(text, world_size=16)
    assert refusal.value.control == "ranks"
    assert repr(part) in str(refusal.value)
    assert refusal.value.why


@pytest.mark.parametrize("text", ["", "   ", "\n", ",", "[]", "-", None, 3, b"3", ["3"]])
def test_a_text_without_ranks_is_refused(text):
    with pytest.raises(LayoutError) as refusal:
        parse_ranks(text, world_size=16)
    assert refusal.value.control == "ranks"


@pytest.mark.parametrize(("text", "rank"), [("16", 16), ("3, 99", 99), ("14-16", 16)])
def test_a_rank_that_the_world_lacks_is_named_with_those_it_has(text, rank):
    with pytest.raises(LayoutError, match=f"no rank {rank}: ranks go from 0 to 15") as refusal:
        parse_ranks(text, world_size=16)
    assert refusal.value.facts == {"rank": rank, "first": 0, "last": 15}


def test_a_question_names_so_many_ranks_at_most():
    assert len(parse_ranks(f"0-{MOST_RANKS - 1}", world_size=10**6)) == MOST_RANKS
    for text in (f"0-{MOST_RANKS}", "0-999999 " * 1000, "3 " * (MOST_RANKS + 1)):
        with pytest.raises(LayoutError) as refusal:
            parse_ranks(text, world_size=10**6)
        assert refusal.value.code == "too-many-ranks-named"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x" * LONGEST_TEXT, id="one long word"),
        pytest.param("x" * (LONGEST_TEXT + 1), id="too long"),
        pytest.param("rank " * 200_000, id="rank without a number"),
        pytest.param("rank" + " " * 900_000, id="rank and spaces"),
        pytest.param(" " * 900_000 + "x", id="spaces"),
        pytest.param("1" + " " * 900_000 + "x", id="a number and spaces"),
        pytest.param("1-" * 400_000, id="an endless range"),
        pytest.param("1" * 900_000, id="an endless number"),
        pytest.param("rank " + "1" * 900_000, id="an endless rank"),
        pytest.param("- " * 400_000, id="dashes and spaces"),
        pytest.param("." * 900_000, id="dots"),
        pytest.param("[" * 900_000, id="brackets"),
        pytest.param(", " * 400_000 + "x", id="commas"),
        pytest.param("\0" * 900_000, id="zero bytes"),
    ],
)
def test_a_hostile_text_is_refused_and_not_echoed_whole(text):
    with pytest.raises(LayoutError) as refusal:
        parse_ranks(text, world_size=16)
    assert len(str(refusal.value)) < 300


@law
@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=40), st.sampled_from([" ", ",", ", ", "\n"])
)
def test_what_is_written_as_a_list_is_read_back(ranks, between):
    assert parse_ranks(between.join(map(str, ranks)), 256) == tuple(sorted(set(ranks)))


@law
@given(st.text(alphabet="0123456789 ,-–.;[]()rankRANK:=#\nx", max_size=60))
def test_any_text_is_ranks_of_the_world_or_refused(text):
    try:
        ranks = parse_ranks(text, 256)
    except LayoutError:
        return
    assert ranks
    assert list(ranks) == sorted(set(ranks))
    assert 0 <= ranks[0] <= ranks[-1] < 256


# -- sharing groups ------------------------------------------------------------------------------


def lists(grouping: Grouping) -> list[list[int]]:
    groups = grouping.groups()
    return groups.tolist() if isinstance(groups, np.ndarray) else groups


def test_two_ranks_of_a_tp_group_share_it_before_any_larger_one():
    """16 GPUs, tp 2, pp 4: 8 and 9 are one tp group of stage 2."""
    together, apart = shared_groups(groupings(16, tp=2, pp=4).values(), [8, 9])
    assert [(one.names, one.ranks) for one in together] == [
        (("tp", "tp-cp", "etp", "tp-ep"), (8, 9)),
        (("tp-dp", "tp-dp-cp"), (8, 9, 10, 11)),
        (("mp", "tp-ep-pp"), (0, 1, 4, 5, 8, 9, 12, 13)),
        (("intra-dist-opt",), tuple(range(16))),
    ]
    assert together[0].indices == (4, 4, 4, 4)
    assert [(one.name, one.groups, one.alone) for one in apart if one.name in ("pp", "embd")] == [
        ("pp", 2, 0),
        ("embd", 0, 2),  # stage 2 shares no embedding
    ]


def test_a_rank_without_a_group_parts_it_from_the_others():
    embd = groupings(16, tp=2, pp=4)["embd"]
    (together, apart) = shared_groups([embd], [0, 12])
    assert together[0].ranks == (0, 12)
    assert apart == []
    (together, apart) = shared_groups([embd], [0, 4])
    assert together == []
    assert (apart[0].name, apart[0].groups, apart[0].alone) == ("embd", 1, 1)


def test_one_rank_shares_all_its_groups_with_itself():
    mesh = fit(16, tp=2, pp=2)
    together, apart = shared_groups([plain(mesh, kind) for kind in ("dp", "tp", "pp")], [5])
    assert [one.names for one in together] == [("tp",), ("pp",), ("dp",)]
    assert apart == []


@law
@given(
    st.sampled_from(
        [
            {"world": 32, "tp": 2, "cp": 2, "pp": 2, "ep": 4, "etp": 1},
            {"world": 24, "tp": 2, "pp": 3, "num_distributed_optimizer_instances": 2},
            {"world": 20, "hybrid_context_parallel": True},
            {"world": 16, "cp": 8, "hierarchical_context_parallel_sizes": (2, 4)},
            {"world": 16, "tp": 2, "gtp": 2, "egtp": 2},
        ]
    ),
    st.data(),
)
def test_the_shared_groups_are_those_that_a_search_of_all_groups_finds(asked, data):
    found = groupings(**asked)
    some = st.lists(st.integers(0, asked["world"] - 1), min_size=1, max_size=5, unique=True)
    ranks = data.draw(some)
    together, apart = shared_groups(found.values(), ranks)

    searched = {
        (name, index): tuple(sorted(group))
        for name, grouping in found.items()
        for index, group in enumerate(lists(grouping))
        if set(ranks) <= set(group)
    }
    listed = {
        (name, index): one.ranks
        for one in together
        for name, index in zip(one.names, one.indices, strict=True)
    }
    assert listed == searched

    sizes = [len(one.ranks) for one in together]
    assert sizes == sorted(sizes)  # smallest first
    assert len({one.ranks for one in together}) == len(together)  # the same group is named once
    order = list(found)
    assert all(list(one.names) == sorted(one.names, key=order.index) for one in together)

    assert [one.name for one in apart] == [n for n in order if n not in {n for n, _ in searched}]
    for one in apart:
        holding = [group for group in lists(found[one.name]) if set(ranks) & set(group)]
        assert one.groups == len(holding)
        assert one.alone == len(set(ranks) - {rank for group in holding for rank in group})
