"""Stacks of all ranks as evidence of a hang: who stands outside of the collective.

The dumps are those of four real processes (torch 2.13.0, gloo), one of which slept in place of
calling all_reduce: by faulthandler.dump_traceback_later and by py-spy 0.4.1.
"""

from __future__ import annotations

import random

import pytest

from descriptions import hang_sentence
from diagnosis.hang.account import account_of
from formats.logs import read_log
from groups.layout import Job

TORCH = "lib/python3.11/site-packages/torch/distributed"
WAITS = {
    "faulthandler": f"""\
Timeout (0:00:12)!
Thread 0x00007ff1c6257b80 (most recent call first):
  File "/v/{TORCH}/distributed_c10d.py", line 3252 in all_reduce
  File "/v/{TORCH}/c10d_logger.py", line 83 in wrapper
  File "/w/hang.py", line 8 in step
  File "/w/hang.py", line 18 in <module>
""",
    "py-spy": """\
Process 4835: python hang.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4835 (idle): "MainThread"
    all_reduce (torch/distributed/distributed_c10d.py:3252)
    _exception_logger.<locals>.wrapper (torch/distributed/c10d_logger.py:83)
    step (hang.py:8)
    <module> (hang.py:18)
""",
}
SLEEPS = {
    "faulthandler": """\
Timeout (0:00:12)!
Thread 0x00007ff1c6257b80 (most recent call first):
  File "/w/hang.py", line 5 in load_batch
  File "/w/hang.py", line 18 in <module>
""",
    "py-spy": """\
Process 4839: python hang.py
Python v3.11.7 (/usr/bin/python3.11)

Thread 4839 (idle): "MainThread"
    load_batch (hang.py:5)
    <module> (hang.py:18)
Thread 4840 (idle): "Thread-1"
    wait (threading.py:324)
""",
}
LAYOUT = Job(nodes=1, gpus_per_node=4).layout()


def dumps(tool: str, out: set[int]) -> dict[int, str]:
    return {rank: (SLEEPS if rank in out else WAITS)[tool] for rank in range(4)}


def said(log) -> list[str]:
    return [hang_sentence(one.code, one.facts, "en") for one in account_of(log, LAYOUT.every, 8)]


@pytest.mark.parametrize("tool", WAITS)
@pytest.mark.parametrize("form", ["files", "headings", "heads"])
def test_who_stands_outside_of_the_collective_is_missing(tool, form):
    of_rank = dumps(tool, {2})
    evidence = {
        "files": {f"stacks/rank{rank}.txt": text for rank, text in of_rank.items()},
        "headings": "\n".join(f"=== Rank {r}: http://n:1 ===\n{t}" for r, t in of_rank.items()),
        "heads": "\n".join(
            f"[rank{r}]: {line}" for r, t in of_rank.items() for line in t.split("\n")
        ),
    }[form]
    log = read_log(evidence, LAYOUT.every)
    assert (log.missing, [one.op for one in log.stacks]) == (
        (2,),
        ["all_reduce", "all_reduce", "", "all_reduce"],
    )
    assert said(log)[0] == (
        "GPU 2 (node 0, device 2) stands in load_batch (hang.py:5), outside of all_reduce, "
        "in which others wait (3)."
    )


def test_nobody_is_missing_where_all_wait_or_most_do_other_things():
    tool = "faulthandler"
    all_wait = read_log({f"rank{r}": t for r, t in dumps(tool, set()).items()})
    assert all_wait.missing == ()
    assert said(all_wait)[0].startswith("All 4 ranks whose stacks are here stand in a collective")
    mostly_out = read_log({f"rank{r}": t for r, t in dumps(tool, {0, 1, 2}).items()})
    assert mostly_out.missing == ()
    several = read_log({f"rank{r}": t for r, t in dumps(tool, {0, 1}).items()})
    start = "GPUs 0, 1 stand outside of all_reduce, in which others wait (2)"
    assert said(several)[0].startswith(start)


def test_a_file_that_is_called_by_the_process_has_no_rank():
    log = read_log({"dump_4839.txt": SLEEPS["py-spy"]})
    assert [note.code for note in log.notes] == ["stacks-of-no-rank"]
    assert log.stacks == ()


def test_damaged_stacks_are_read_without_a_fault():
    chance = random.Random(5)
    whole = "\n".join(f"=== Rank {r}: http://n:1 ===\n{t}" for r, t in dumps("py-spy", {1}).items())
    for _ in range(300):
        text = [*whole]
        for _ in range(chance.randrange(1, 40)):
            text[chance.randrange(len(text))] = chance.choice('()":=\n 9xé')
        read_log("".join(text), LAYOUT.every)


def test_data_parallel_attention_is_inside_of_tp_and_servers_stand_beside_each_other():
    from formats.logs.stacks import _ranks_of_titles

    inside = "\n".join(f"Process {at}: sglang::scheduler_DP{at}_TP{at}" for at in range(2))
    beside = "\n".join(f"Process {at}: VLLM::Worker_DP{at // 2}_TP{at % 2}" for at in range(4))
    assert [*_ranks_of_titles(inside).values()] == [0, 1]
    assert [*_ranks_of_titles(beside).values()] == [0, 1, 2, 3]
