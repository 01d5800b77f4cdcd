"""The check script at work: what it says of what it saw, and what real processes say.

Its plain functions are run here without torch; the whole script on gloo processes of this machine,
which needs torch (REQUIRE_TORCH=1 fails without it): by torchrun on two, else by processes forked
from one that has imported torch, which is quicker.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from check_jobs import JOBS, PLAIN, lists, loaded
from torch_jobs import TorchJob

from formats.check.script import check_script
from groups.grouping import Grouping
from groups.layout import Job, Layout

# -- started without torch -----------------------------------------------------------------------


@pytest.fixture
def script(tmp_path):
    """Writes a script for a job to a file."""

    def written(layout: Layout, names=None) -> str:
        path = tmp_path / "check_groups.py"
        path.write_text(check_script(layout, names, megabytes=1), encoding="utf-8")
        return str(path)

    return written


def started(path: str, *options: str, **environment: str) -> subprocess.CompletedProcess:
    """The script started alone, where importing torch fails."""
    without = "import runpy, sys; sys.modules['torch'] = None; sys.argv = sys.argv[1:]; "
    run = "runpy.run_path(sys.argv[0], run_name='__main__')"
    kept = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")}
    return subprocess.run(
        [sys.executable, "-c", without + run, path, *options],
        env={**kept, **environment},
        capture_output=True,
        text=True,
    )


def test_list_prints_every_group_without_torch(script):
    layout = JOBS["cut: levels"]
    done = started(script(layout, ["tp", "hcp-l1"]), "--list", "--kinds", "hcp-l1")
    groups = layout.every["hcp-l1"].groups().tolist()
    assert done.stdout.splitlines() == [
        " ".join(["hcp-l1", str(number), *map(str, ranks)]) for number, ranks in enumerate(groups)
    ]
    assert (done.returncode, done.stderr) == (0, "")


def test_without_a_launcher_it_says_so_in_one_sentence(script):
    done = started(script(PLAIN))
    assert done.returncode == 2
    assert done.stderr.startswith("RANK, WORLD_SIZE")
    assert done.stderr.endswith("not set: start this script with torchrun\n")
    assert done.stdout == ""


def test_a_wrong_world_size_is_refused_by_rank_0_in_one_sentence(script):
    path = script(PLAIN)
    place = {"WORLD_SIZE": "8", "LOCAL_RANK": "0"}
    first, other = (started(path, **place, RANK=rank) for rank in ("0", "5"))
    assert first.returncode == 2
    assert first.stderr == (
        "this script is for 16 ranks, and there are 8: "
        "start it with --nnodes 2 --nproc-per-node 8\n"
    )
    # No launcher ends rank 0 before it has spoken because another rank failed.
    assert (other.returncode, other.stderr, first.stdout + other.stdout) == (0, "", "")


@pytest.mark.parametrize(
    "options", [["--kinds", "zz"], ["--repeats", "0"], ["--megabytes", "-1"], ["--timeout", "0"]]
)
def test_options_that_are_none_are_refused(script, options):
    done = started(script(PLAIN), *options)
    assert done.returncode == 2
    assert "error:" in done.stderr


# -- what it says of what it saw -----------------------------------------------------------------

TOOL = loaded(check_script(PLAIN))


def test_a_step_that_fails_says_which_it_was(capsys):
    cluster = object.__new__(TOOL.Cluster)  # without torch
    cluster.rank, cluster.host, cluster.hung = 3, "gpu-1", False
    cluster.options = TOOL.read_options([])
    with pytest.raises(ZeroDivisionError), cluster.step("tp: making 4 groups", tells=False):
        print(1 / 0)
    assert capsys.readouterr().err == "rank 3 on gpu-1: failed at tp: making 4 groups\n"


def seen(*hosts: str) -> list[tuple[str, int]]:
    """One word a host, one letter a rank: local ranks count up in each word."""
    return [(letter, local) for host in hosts for local, letter in enumerate(host)]


def test_a_job_that_fills_node_after_node_stands_where_it_should():
    assert TOOL.placement_differences(seen("aaaa", "bbbb", "cccc"), 4) == []
    assert TOOL.placement_differences(seen("zzzz", "aaaa"), 4) == []


def test_ranks_dealt_out_in_turn_stand_elsewhere():
    """As srun -m cyclic does."""
    cyclic = [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2), ("a", 3), ("b", 3)]
    assert TOOL.placement_differences(cyclic, 4) == [
        "ranks 1, 3 belong on node 0 (a) but stand on b, which is node 1",
        "ranks 4, 6 belong on node 1 (b) but stand on a, which is node 0",
        "ranks 1, 2, 3 have local rank 0, 1, 1 instead of 1, 2, 3",
        "ranks 4, 5, 6 have local rank 2, 2, 3 instead of 0, 1, 2",
    ]


def test_one_rank_on_a_host_of_no_node_stands_elsewhere():
    assert TOOL.placement_differences(seen("aaaa", "bbxb"), 4) == [
        "rank 6 belongs on node 1 (b) but stands on x, which is no node of the layout"
    ]


def test_sums_of_other_ranks_differ_even_where_their_sum_does_not():
    groups = [[0, 3], [1, 2]]
    right = [TOOL.sums([0, 3]), TOOL.sums([1, 2]), TOOL.sums([1, 2]), TOOL.sums([0, 3])]
    assert TOOL.sum_differences("dp", groups, right) == []
    swapped = [TOOL.sums([1, 2]), TOOL.sums([0, 3]), TOOL.sums([0, 3]), TOOL.sums([1, 2])]
    assert TOOL.sum_differences("dp", groups, swapped) == [
        "dp group 0 (ranks 0, 3) must come to [2, 3, 9], but "
        "rank 0 got [2, 3, 5], rank 3 got [2, 3, 5]",
        "dp group 1 (ranks 1, 2) must come to [2, 3, 5], but "
        "rank 1 got [2, 3, 9], rank 2 got [2, 3, 9]",
    ]


def test_a_rank_in_a_group_that_should_be_in_none_is_told():
    found = [TOOL.sums([0, 2]), TOOL.sums([1, 3]), TOOL.sums([0, 2]), TOOL.sums([1, 3])]
    assert TOOL.sum_differences("embd", [[0, 2]], found) == [
        "ranks 1, 3 are in a embd group, and must be in none"
    ]


def test_sums_are_exact_for_the_largest_job():
    """The sum of all squares below n is (n-1) n (2n-1) / 6; 64 bits hold it for 2**20 ranks."""
    n = 1 << 20
    assert (n - 1) * n * (2 * n - 1) // 6 < 1 << 63
    assert TOOL.sums(range(1000)) == [1000, 999 * 1000 // 2, 999 * 1000 * 1999 // 6]


@pytest.mark.parametrize(
    ("operation", "n", "gigabytes_per_second"),
    # 1 GB in 1 s, of NVIDIA/nccl-tests' factors: 2(n-1)/n, (n-1)/n, 1
    [("all-reduce", 2, 1.0), ("all-reduce", 8, 1.75), ("all-to-all", 8, 0.875),
     ("all-gather", 8, 0.875), ("reduce-scatter", 2, 0.5), ("send/recv", 8, 1.0)],
)  # fmt: skip
def test_bus_bandwidth_is_that_of_nccl_tests(operation, n, gigabytes_per_second):
    speeds = TOOL.bus_bandwidths(operation, [list(range(n))], [1.0] * n, 10**9)
    assert speeds == [gigabytes_per_second]


def test_a_row_names_the_slowest_group_and_its_hosts():
    groups = [[0, 2], [1, 3], [4, 6], [5, 7]]
    hosts = ["a"] * 4 + ["b"] * 4
    text = TOOL.row("dp", "all-reduce", groups, 0, [40.0, 30.0, 12.5, 50.0], hosts)
    assert " ".join(text.split()) == "dp all-reduce 2 4 ok 12.5 35 ranks 4, 6 on b"
    text = TOOL.row("dp", "all-reduce", [[0, 1], [2, 3, 4]], 1, [], hosts)
    assert " ".join(text.split()) == "dp all-reduce 2-3 2 1 wrong"


def test_many_differences_are_cut_short():
    told = TOOL.shortened([str(n) for n in range(100)])
    assert len(told) == TOOL.MOST_LINES + 1
    assert told[-1] == "and 80 more like these"


# -- real processes ------------------------------------------------------------------------------

FORK = """
import os, runpy, socket, sys, time
import torch, torch.distributed as dist

script = os.path.join(sys.argv[0], "check_groups.py")
world, change, *options = sys.argv[1:]
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ.update(WORLD_SIZE=world, MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))

def run(rank):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    sys.argv = [script, *options]
    exec(change, {**globals(), "rank": rank})
    runpy.run_path(script, run_name="__main__")

children = [forked(run, rank) for rank in range(int(world))]
print("ended with", [status_of(child) for child in children])
"""


def runs(processes: int, layout: Layout, *options: str, names=None, change: str = "", code=FORK):
    """Marks a test of the check script of a layout that so many processes run."""
    script = check_script(layout, names, megabytes=1)
    words = (str(processes), change, *options)
    return pytest.mark.torch_job(TorchJob(code, words, {"check_groups.py": script}))


@pytest.fixture
def forked(ran):
    """What all processes printed, on both streams, and their statuses."""
    shown, _, statuses = ran.out.rpartition("ended with ")
    assert statuses, ran.err
    return shown, ran.err, json.loads(statuses)


TORCHRUN = """
import os, sys
from torch.distributed.run import main

script = os.path.join(sys.argv[0], "check_groups.py")
main(["--standalone", "--nproc-per-node", sys.argv[1], script])
"""
"""As torchrun does it: each rank a Python of its own."""


def table(shown: str) -> list[list[str]]:
    """The first five columns: kind, operation, ranks, groups, sums."""
    lines = shown.split("slowest group\n")[1].split("\n\n")[0].splitlines()
    return [line.split()[:5] for line in lines]


@runs(2, Job(gpus_per_node=2, tp=2).layout(), names=["tp", "tp-dp-cp"], code=TORCHRUN)
def test_torchrun_finds_2_ranks_as_the_layout_says(ran):
    assert ran.status == 0, ran.err
    assert table(ran.out) == [
        ["tp", "all-reduce", "2", "1", "ok"],
        ["tp-dp-cp", "all-reduce", "2", "1", "ok"],
    ]
    assert ran.out.endswith("\nAll as the layout says: 2 ranks, 2 kinds of groups.\n")


@runs(
    8,
    Job(tp=2, cp=2, pp=2, ep=2, etp=1).layout(),
    names=["tp", "pp", "ep", "tp-dp-cp", "cp", "etp"],
)
def test_8_processes_are_as_the_layout_says(forked):
    shown, problems, statuses = forked
    assert statuses == [0] * 8, problems
    assert table(shown) == [
        ["tp", "all-reduce", "2", "4", "ok"],
        ["pp", "all-reduce", "2", "4", "ok"],
        ["pp", "send/recv", "2", "4", "ok"],
        ["ep", "all-reduce", "2", "4", "ok"],
        ["ep", "all-to-all", "2", "4", "ok"],
        ["tp-dp-cp", "all-reduce", "4", "2", "ok"],
        ["cp", "all-reduce", "2", "4", "ok"],
        ["cp", "send/recv", "2", "4", "ok"],
        ["etp", "groups", "of", "one", "rank:"],
    ]
    assert shown.endswith("\nAll as the layout says: 8 ranks, 6 kinds of groups.\n")
    assert shown.startswith("8 GPUs: 1 node of 8, Megatron Core, tp2-cp2-dp1-pp2, ")
    for line in shown.splitlines():
        if " ok " in line:
            slowest, median = map(float, line.split()[5:7])
            assert 0 < slowest <= median


HSDP = Job(tp=2, framework="torchtitan", instances=2).layout()


@runs(8, HSDP)
def test_8_processes_gather_and_scatter_as_torchtitan_with_copies_does(forked):
    shown, problems, statuses = forked
    assert statuses == [0] * 8, problems
    assert table(shown) == [
        ["tp", "all-reduce", "2", "4", "ok"],
        ["dp_replicate", "all-reduce", "2", "4", "ok"],
        ["efsdp", "all-reduce", "4", "2", "ok"],
        ["efsdp", "all-gather", "4", "2", "ok"],
        ["efsdp", "reduce-scatter", "4", "2", "ok"],
        ["loss", "all-reduce", "4", "2", "ok"],
        ["dp_shard_cp", "all-reduce", "2", "4", "ok"],
        ["dp_shard_cp", "all-gather", "2", "4", "ok"],
        ["dp_shard_cp", "reduce-scatter", "2", "4", "ok"],
    ]
    assert shown.endswith("\nAll as the layout says: 8 ranks, 5 kinds of groups.\n")


CUT = Job(gpus_per_node=16, tp=2, cp=4, pp=2, levels=(2, 2), instances=2).layout()


@runs(16, CUT, "--megabytes", "0")
def test_16_processes_make_cut_thinned_joined_and_uneven_groups(forked):
    shown, problems, statuses = forked
    assert statuses == [0] * 16, problems
    assert "All as the layout says: 16 ranks" in shown
    assert ["embd", "all-reduce", "2", "8", "ok"] in table(shown)
    assert ["intra-dist-opt", "all-reduce", "8", "2", "ok"] in table(shown)
    assert ["hcp-l1", "all-reduce", "2", "8", "ok"] in table(shown)
    assert {row[0] for row in table(shown)} == {
        name for name, grouping in CUT.every.items() if grouping.size > 1
    }


def thinned() -> Layout:
    layout = Job(gpus_per_node=6, pp=6).layout()
    short = Grouping("runs", layout.mesh, "pp", length=4)  # 0-3 and 4, 5
    ends = replace(layout.every["embd"], places=(0, 5))
    return replace(layout, every={"embd": ends, "runs": short})


@runs(6, thinned())
def test_thinned_and_short_groups_leave_some_ranks_out(forked):
    shown, problems, statuses = forked
    assert statuses == [0] * 6, problems
    assert table(shown) == [
        ["embd", "all-reduce", "2", "1", "ok"],
        ["runs", "all-reduce", "2-4", "2", "ok"],
    ]


@runs(4, Job(nodes=2, gpus_per_node=2).layout(), names=["dp"])
def test_two_nodes_on_one_host_are_told(forked):
    shown, problems, statuses = forked
    assert statuses == [1, 0, 0, 0], problems
    assert table(shown) == [["dp", "all-reduce", "4", "1", "ok"]]
    placement, local = shown.split("Differs from the layout:\n")[1].splitlines()
    assert placement.startswith("  ranks 2, 3 belong on node 1 (a host of its own) but stand on ")
    assert placement.endswith(", which is node 0")
    assert local == "  ranks 2, 3 have local rank 2, 3 instead of 0, 1"


SWAPPED = """
make = dist.new_group
def new_group(ranks):
    return make(sorted({1: 2, 2: 1}.get(r, r) for r in ranks) if len(ranks) == 2 else ranks)
dist.new_group = new_group
"""


@runs(4, Job(gpus_per_node=4, tp=2).layout(), names=["tp", "tp-dp", "dp"], change=SWAPPED)
def test_groups_of_other_ranks_are_told_and_not_measured(forked):
    """Ranks 1 and 2 change places in every group of two."""
    shown, problems, statuses = forked
    assert statuses == [1, 0, 0, 0], problems
    rows = table(shown)
    assert [row[0] + " " + row[4] for row in rows] == ["tp 2", "tp-dp ok", "dp 2"]
    assert shown.split("Differs from the layout:\n")[1].splitlines() == [
        "  tp group 0 (ranks 0, 1) must come to [2, 1, 1], but "
        "rank 0 got [2, 2, 4], rank 1 got [2, 4, 10]",
        "  tp group 1 (ranks 2, 3) must come to [2, 5, 13], but "
        "rank 2 got [2, 2, 4], rank 3 got [2, 4, 10]",
        "  dp group 0 (ranks 0, 2) must come to [2, 2, 4], but "
        "rank 0 got [2, 1, 1], rank 2 got [2, 5, 13]",
        "  dp group 1 (ranks 1, 3) must come to [2, 4, 10], but "
        "rank 1 got [2, 1, 1], rank 3 got [2, 5, 13]",
    ]


HANGING = """
reduce = dist.all_reduce
def all_reduce(tensor, **options):
    if rank == 3 and options["group"] is not None:
        time.sleep(600)
    reduce(tensor, **options)
dist.all_reduce = all_reduce
"""


@runs(4, Job(gpus_per_node=4, tp=2).layout(), "--timeout", "3", names=["tp"], change=HANGING)
def test_a_hang_names_the_kind_and_the_group(forked):
    shown, problems, statuses = forked
    assert set(statuses) == {3}
    told = sorted(line.split(": ", 1) for line in problems.splitlines() if "no answer" in line)
    assert [(who.split()[1], what) for who, what in told] == [
        ("0", "no answer within 3 s at tp: comparing all ranks"),
        ("2", "no answer within 3 s at tp group 1 (ranks 2, 3): all-reduce of the ranks"),
        ("3", "no answer within 3 s at tp group 1 (ranks 2, 3): all-reduce of the ranks"),
    ]
    assert "All as" not in shown


@runs(2, PLAIN, code=TORCHRUN)
def test_torchrun_with_a_wrong_number_of_ranks_gets_one_sentence(ran):
    assert ran.status == 1
    sentence = "this script is for 16 ranks, and there are 2: start it with --nnodes 2"
    assert ran.err.count(sentence) == 1
    assert ran.out == ""


def test_the_template_is_itself_a_script_for_its_example():
    text = (Path(__file__).parent.parent / "formats" / "check" / "template.py").read_text()
    example = loaded(text)
    layout = Job(nodes=2, tp=2, pp=2).layout()
    assert [kind.name for kind in example.KINDS] == ["tp", "dp", "pp"]
    for kind in example.KINDS:
        assert example.groups_of(kind) == lists(layout.every[kind.name].groups())
