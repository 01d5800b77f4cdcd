"""Damaged traces and logs, a slice of those of `fuzz_slow`; and small ones that ask for much."""

from __future__ import annotations

import time

import orjson

from diagnosis.slow import Slowness, verdict_of
from diagnosis.slow.model import GroupWait, Last, RankTime, SlowGroup
from formats.slow import read_evidence
from groups.layout import Job
from tests.fuzz_slow import PAGE, answered, mutants


def test_damaged_files_are_read_or_refused():
    answers = {answered(files) for files in mutants(90, seed=3)}
    assert {"rank", "unknown", "trace-cut"} <= answers
    assert "said nothing" not in answers


def test_many_ranks_and_calls_that_wait_for_each_other_cost_bounded_time():
    """Sixteen ranks, of whom all share only one group, in which all wait 4,000 times."""
    events = [
        {
            "ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": 10 * at, "dur": 9,
            "args": {"Collective name": "allreduce", "Process Group Name": str(at % 2)},
        }
        for at in range(4000)
    ]  # fmt: skip
    files = {}
    for rank in range(16):
        groups = {"mesh_dp": [*range(16)], "mesh_tp": [rank - rank % 2, rank - rank % 2 + 1]}
        config = [
            {"pg_name": str(at), "pg_desc": name, "pg_size": len(ranks), "ranks": ranks}
            for at, (name, ranks) in enumerate(groups.items())
        ]
        info = {"rank": rank, "world_size": 16, "backend": "nccl", "pg_config": config}
        moved = [{**event, "dur": 9 - (rank * 7 + at) % 5} for at, event in enumerate(events)]
        files[f"rank{rank}.json"] = orjson.dumps({"distributedInfo": info, "traceEvents": moved})
    begun = time.process_time()
    found = read_evidence(files, bounds=PAGE)
    assert len(found.ranks) == 16
    assert found.calls == 16 * 4000
    assert time.process_time() - begun < 5  # 1.5 on a machine of its own


def test_a_summary_of_many_ranks_is_judged_in_bounded_time():
    """16,384 ranks on 2,048 hosts, one slow: sets of ranks are not compared one by one with all."""
    groups = tuple(SlowGroup("mesh_tp", "tp", (at, at + 1)) for at in range(0, 16_384, 2))
    ranks = tuple(
        RankTime(at, f"n{at // 8}", 100.0, (90.0 + at % 3 + 40 * (at == 77),) * 2, 1, 1, None, 0, 0)
        for at in range(16_384)
    )
    waits = tuple(
        GroupWait(at, 0, 5, 1.0, 1.0 + at % 2, (Last(2 * at, 5, 1.0, 1.0),)) for at in range(4096)
    )
    slow = Slowness(16_384, (0, 1), groups, ranks, waits, (), (), 1, 0, 0.0)
    begun = time.process_time()
    verdict = verdict_of(slow, Job(nodes=2048, gpus_per_node=8, tp=2).layout())
    assert (verdict.kind, verdict.ranks) == ("rank", (77,))
    assert time.process_time() - begun < 2
