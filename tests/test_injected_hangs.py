"""Hangs injected into real torch processes: the culprit is found in PyTorch's own dumps.

`data/hang/injected.json.xz` holds what benchmarks/hangs.py recorded (torch 2.13, gloo, 8 and 16
processes; members of groups filled in as NCCL writes them): the truth and each rank's dump.
"""

from __future__ import annotations

import json
import lzma
from collections import Counter
from pathlib import Path

import pytest
from torch_jobs import TorchJob

from benchmarks import judge_hangs
from formats.logs import read_log
from groups.megatron import groupings

INJECTED = Path(__file__).parent / "data" / "hang" / "injected.json.xz"


@pytest.fixture(scope="module")
def recorded() -> list[dict]:
    return json.loads(lzma.decompress(INJECTED.read_bytes()))


def files(dumps: dict[str, dict], with_members: bool) -> dict[str, str]:
    kept = (
        {**dump, "pg_config": dump["pg_config"] if with_members else {}} for dump in dumps.values()
    )
    return {f"dump_rank_{rank}": json.dumps(one) for rank, one in zip(dumps, kept)}


@pytest.mark.parametrize("with_members", [True, False], ids=["as NCCL", "as gloo"])
def test_the_culprit_is_found_and_nobody_else_is_named(recorded, with_members):
    """In at least 95 of 100 hangs, and never another rank for certain."""
    named: Counter[str] = Counter()
    wrong = []
    for one in recorded:
        truth = one["truth"]
        log = read_log(files(one["dumps"], with_members))
        named["found" if log.missing == (truth["rank"],) else "open"] += 1
        if set(log.missing) - {truth["rank"]}:
            wrong.append((truth, log.missing))
    assert wrong == []
    assert len(recorded) >= 200
    assert named["found"] >= 0.95 * len(recorded)


def test_a_layout_says_who_is_in_a_group_that_few_have_called(recorded):
    """Members of dumps without them, by kind of group and callers."""
    one = next(
        one
        for one in recorded
        if one["truth"]["kind"] == "stopped"
        and one["truth"]["call"] < 2
        and one["truth"]["described"]
    )
    sizes = one["truth"]["sizes"]
    made = groupings(len(one["dumps"]), etp=1, **sizes)
    log = read_log(files(one["dumps"], with_members=False), made)
    tp = [group for group in log.process_groups if group.kind == "tp"]
    assert tp
    assert {len(group.members) for group in tp if group.complete} == {sizes["tp"]}
    assert log.missing == (one["truth"]["rank"],)


INJECT = """
import sys
from pathlib import Path
from benchmarks import hangs

def main(words):
    sys.argv[1:] = words
    hangs.main()

hangs.inject(4, 6, Path(sys.argv[0], "dumps"), start=lambda *words: status_of(forked(main, words)))
"""


@pytest.mark.torch_job(TorchJob(INJECT))
def test_hangs_of_real_processes_are_found_now(ran):
    """Six hangs, one of each kind, of four gloo processes."""
    assert ran.status == 0, ran.err
    table = judge_hangs.judge(ran.folder / "dumps", with_torch=False)
    assert sum(table["full | all"].values()) >= 4
    for reader in ("full", "gloo"):
        assert set(table[f"{reader} | all"]) == {"right"}
