"""Real processes in which something was made slow: who is named, of recorded runs.

`slow_runs` recorded them; tests/data/slow/SOURCE.md says how, and what the figures were before and
after the constants of the verdict were chosen by the runs `first` and `second`.
"""

from __future__ import annotations

import pytest

from diagnosis.slow import JobCalls, slowness_of, verdict_of
from diagnosis.slow.unnamed import with_groups
from groups.layout import Job
from tests.slow_runs import Run, runs, traces

PARTS = {"first": 3, "second": 3, "held": 1, "calm": 1}
"""Of the runs by which constants were chosen every third is enough here."""


def verdict(run: Run):
    job = JobCalls()
    for trace in traces(run):
        job.add(trace)
    return verdict_of(slowness_of(job), Job(**run["sizes"]).layout())


def is_named(run: Run) -> bool:
    found = verdict(run)
    right_kind = run["kind"] in (found.kind, *found.also)
    right_cause = found.cause == "data" if run["cause"].startswith("data") else True
    return right_kind and right_cause and [*found.ranks] == run["ranks"]


@pytest.mark.parametrize("part", PARTS)
def test_the_culprit_of_recorded_runs_is_named_and_nobody_else(part):
    some = runs(part)[:: PARTS[part]]
    slowed = [run for run in some if run["kind"] != "nobody"]
    calm = [run for run in some if run["kind"] == "nobody"]
    assert [run["seed"] for run in calm if verdict(run).kind != "nobody"] == []
    named = sum(map(is_named, slowed))
    assert named >= 0.95 * len(slowed)
    assert len(some) * PARTS[part] >= (22 if part == "calm" else 42)


def test_calls_without_a_group_are_never_put_into_a_wrong_one():
    """Of jobs with one kind of groups all are known; sizes alone do not tell tp from dp here."""
    settled = 0
    for run in runs("first")[1::3]:
        known, bare = JobCalls(), JobCalls()
        for one, other in zip(traces(run), traces(run, named=False)):
            known.add(one)
            bare.add(other)
        with_groups(bare)
        for rank, one in bare.ranks.items():
            said = known.ranks[rank].group
            for place, right in zip(one.group.tolist(), said.tolist()):
                settled += place >= 0
                assert place < 0 or bare.groups[place].ranks == known.groups[right].ranks
    assert settled > 0
