"""One number for each rank, and the groups and stages that it shows to be slow."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from descriptions import REFUSALS
from diagnosis.slow.outliers import deviations, medians_of, slow
from formats.measurements import read_measurements
from groups import LayoutError
from groups.megatron import groupings
from groups.placement import filled

HOSTS = filled(["a", "b"], [2, 2], world=4)
FOUR = [1.0, 2.0, 3.5, 4.0]


@pytest.mark.parametrize(
    "text",
    [
        "rank,ms\n0,1\n1,2\n2,3.5\n3,4",
        "rank;host;ms\n3;x;4\n0;x;1\n1;x;2\n2;x;3.5",
        "# bandwidth\nrank ms\n0 1\n1 2\n2 3.5\n3 4",
        "0,1\n1,2\n2,3.5\n3,4",
        "[1, 2, 3.5, 4]",
        '{"0": 1, "1": 2, "2": 3.5, "3": 4}',
        '[{"rank": 0, "s": 1}, {"rank": 1, "s": 2}, {"rank": 3, "s": 4}, {"rank": 2, "s": 3.5}]',
        '[{"RANK": 0, "s": 1}, {"s": 2, "Global_Rank": "1"}, {"Rank": 2, "S": 3.5}, {"GPU": 1,'
        '"rank": 3, "s": 4}]',
        '[{"rank": 0, "ms": 1, "gpu": 0, "host": "a"}, {"rank": 1, "ms": 2, "GPU": 1},'
        '{"ms": 3.5, "local_rank": 0, "node": 1, "rank": 2}, {"rank": 3, "ms": 4, "gpu": 1}]',
        "rank,ms,gpu,local_rank,hostname,node\n0,1,0,0,a,0\n1,2,1,1,a,0\n2,3.5,0,0,b,1\n3,4,1,1,b,1",
        "host,local_rank,ms\nb,0,3.5\nb,1,4\na,0,1\na,1,2",
        "host,0,1\nb,3.5,4\na,1,2",
    ],
)
def test_numbers_are_read_however_they_are_written(text):
    assert read_measurements(text, 4, HOSTS).tolist() == FOUR


def test_ranks_without_a_number_have_none():
    found = read_measurements("host,0,1\nb,3.5,\n", 4, HOSTS)
    assert np.isnan(found).tolist() == [True, True, False, True]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "no-measurements"),
        ("rank\n0", "no-measurements"),
        ("a b c\n1 2 3", "no-measurements"),
        ("rank,ms\n0,x", "bad-measurements"),
        ("rank,ms\n0,nan", "bad-measurements"),
        ("rank,ms\n0," + 140_000 * "9", "bad-measurements"),
        ("rank,ms\n0", "bad-measurements"),
        ("rank,ms\n-1,2", "bad-measurements"),
        ("rank,ms\n4,2", "no-such-rank"),
        ("rank,ms\n1,2\n1,2", "measurement-twice"),
        ("host,0,1\nc,1,2", "measurement-of-no-host"),
        ("host,0\na,1", "bad-measurements"),
        ("[1, true]", "bad-measurements"),
        ("[" + 400 * "9" + "]", "bad-measurements"),
        ("[" * 100_000, "bad-measurements"),
        ('{"a": 1}', "bad-measurements"),
        ("[]", "no-measurements"),
        (None, "bad-measurements"),
    ],
)
def test_what_is_no_measurement_is_refused_with_its_code(text, code):
    with pytest.raises(LayoutError) as caught:
        read_measurements(text, 4, HOSTS)
    assert caught.value.code == code
    assert REFUSALS[code]["zh"].format(**caught.value.facts)


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_numbers_or_a_refusal(text):
    try:
        assert len(read_measurements(text, 4, HOSTS)) == 4
    except LayoutError as error:
        REFUSALS[error.code]["zh"].format(**error.facts)


def noise(world: int) -> np.ndarray:
    return 100 + np.random.default_rng(0).normal(0, 0.3, world)


def test_a_slow_stage_is_found_and_named_first_among_the_groups():
    """64 ranks, tp 2, pp 4: a stage is 16 ranks in a row, and stage 2 takes a tenth longer."""
    values = noise(64)
    values[32:48] *= 1.1
    groups = [one for one in slow(values, groupings(64, tp=2, pp=4)) if "rank" not in one.names]
    stages = [one for one in groups if "stage" in one.names]
    assert [(one.ranks[0], len(one.ranks)) for one in stages] == [(32, 16)]
    assert stages[0].indices[stages[0].names.index("stage")] == 2


def test_one_slow_rank_makes_no_larger_group_slow():
    values = noise(64)
    values[21] *= 1.5
    found = slow(values, groupings(64, tp=8))
    assert [one.ranks for one in found] == [(21,)]


def test_low_bandwidth_is_slow_where_low_is_worse():
    values = noise(64)
    values[8:16] *= 0.7
    every = groupings(64, tp=8)
    assert any("tp" in one.names and one.ranks[0] == 8 for one in slow(values, every, worse="low"))
    assert slow(values, every, worse="high") == []
    with pytest.raises(LayoutError):
        slow(values, every, worse="both")


def test_nothing_stands_out_where_all_are_alike_or_differ_by_less_than_a_fiftieth():
    every = groupings(64, tp=8)
    assert slow(np.full(64, 3.0), every) == []
    values = np.full(64, 100.0)
    values[:8] = 101.5
    assert slow(values, every) == []


def test_groups_of_ranks_without_numbers_are_never_slow():
    """The embedding's groups are of the first and the last stage, and neither has a number."""
    values = noise(64)
    values[:16] = values[48:] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # numpy's, of a median of nothing
        assert slow(values, groupings(64, tp=2, pp=4)) == []


def test_the_law_of_iglewicz_and_hoaglin():
    """Median 3, MAD 1: 10 is 0.6745 x 7 deviations away; half equal: the mean takes over."""
    assert deviations(np.array([1.0, 2, 3, 4, 10]))[-1] == pytest.approx(0.6745 * 7)
    assert deviations(np.array([5.0, 5, 5, 5, 10]))[-1] == pytest.approx(5 / (1.2533 * 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-1, 4), st.sampled_from([np.nan, 1, 2, 5.5, 9])), min_size=1))
def test_medians_are_those_of_the_members(rows):
    index, values = zip(*rows)
    medians, order, bounds = medians_of(np.array(values), np.array(index))
    members = np.split(order, bounds[1:-1]) if len(order) else []
    for median, ranks in zip(medians, members, strict=True):
        known = [values[rank] for rank in ranks if values[rank] == values[rank]]
        assert median == np.median(known) if known else np.isnan(median)
        assert len({index[rank] for rank in ranks}) == 1
    assert sorted(rank for one in members for rank in one) == [
        rank for rank, group in enumerate(index) if group >= 0
    ]


@pytest.mark.parametrize("values", [[10, 10, 10, 30], [10] * 6 + [30, 30], [10, 10, 30]])
def test_ranks_far_from_equal_ones_are_slow_however_few_there_are(values):
    """The law alone finds none: 20 / (1.2533 x 5) = 3.2 deviations."""
    late = slow(np.array(values, dtype=float), groupings(len(values)))
    found = {rank for one in late for rank in one.ranks}
    assert found == {rank for rank, value in enumerate(values) if value == 30}


def test_whole_degrees_and_counts_of_few_errors_are_not_far():
    for values in ([40.0] * 5 + [41.0] * 3, [0.0] * 5 + [1.0] * 3):
        assert slow(np.array(values), groupings(8)) == []
