"""Damaged traces and logs, a slice of those of `fuzz_slow`; and small ones that ask for much."""

from __future__ import annotations

import time

import orjson

from formats.slow import read_evidence
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
