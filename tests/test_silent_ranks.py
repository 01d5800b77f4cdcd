"""Whom a hang waits for where watchdogs' lines give no counters: the members that printed nothing.

The job is of 256 GPUs on 32 nodes, tp 8, pp 4: tp group 25 is GPUs 200 to 207, all in the last
stage; GPU 205 has stopped. Lines are as PyTorch 2.6 prints them (tests/data/hang/items.jsonl).
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest
from markup import select, text_of, values
from recorded import DATA

from cli.command import run
from diagnosis.hang.account import account_of
from diagnosis.hang.case import case_of
from diagnosis.hang.silence import heard
from diagnosis.hang.steps import next_steps, share_command
from formats.logs import read_log
from groups.errors import LayoutError
from groups.layout import Job
from groups.megatron import groupings
from request.answers.hang.files import digest_of, log_of
from request.answers.hang.verdict import verdict_of
from request.state import State
from texts.sentences import hang_sentence
from views.page import answer

JOB = Job(nodes=32, tp=8, pp=4)
EVERY = JOB.layout().every
NAMES = {
    "tp": "TENSOR_MODEL_PARALLEL_GROUP",
    "pp": "PIPELINE_MODEL_PARALLEL_GROUP",
    "dp-cp": "DATA_PARALLEL_GROUP_WITH_CP",
    "world": "default_pg",
}


def waits(rank: int, kind: str, seq: int, op: str, minute: int = 0, begun: int = 0) -> str:
    """A rank's lines about its own group of a kind; begun: seconds after the job stood still."""
    grouping = EVERY.get(kind)
    members = [*range(256)] if grouping is None else [int(m) for m in grouping.members(rank)]
    index = 0 if grouping is None else 100 * [*EVERY].index(kind) + (grouping.index_of(rank) or 0)
    place, head = members.index(rank), f"[rank{rank}]:[E1122 10:{10 + minute}:{begun:02}.1 "
    return (
        f"{head}ProcessGroupNCCL.cpp:632] [Rank {place}] Watchdog caught collective operation "
        f"timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=4, NumelOut=4, Timeout(ms)=600000) "
        f"ran for {600_000 + 60_000 * minute} milliseconds before timing out.\n"
        f"{head}ProcessGroupNCCL.cpp:2268] [PG ID 2 PG GUID {index}({NAMES[kind]}) Rank {place}]  "
        f"failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: "
        f"{seq + 1}, last completed work: {seq - 1}\n"
    )


def relay(rank: int) -> str:
    return (
        f"[rank{rank}]:[E1122 10:10:03.1 ProcessGroupNCCL.cpp:1682] [PG ID 0 PG GUID 0(default_pg)"
        f" Rank {rank}] Received a dump signal due to a collective timeout from  rank 200 and we "
        "will try our best to dump the debug info. Last enqueued NCCL work: 5, last completed "
        "NCCL work: 5.\n"
    )


SILENT = 205
TP = "".join(waits(rank, "tp", 4812, "ALLREDUCE") for rank in range(200, 208) if rank != SILENT)
PP = "".join(
    waits(int(rank), "pp", 33 + stage, "COALESCED", begun=5)
    for last in range(200, 208)
    for stage, rank in enumerate(EVERY["pp"].members(last)[:3])
)
RELAYS = "".join(relay(rank) for rank in range(256) if rank != SILENT)
TEXT = PP + TP + RELAYS


def test_of_a_tp_group_the_one_that_printed_nothing_is_named_and_the_pipelines_join():
    log = read_log(TEXT, EVERY)
    found = log.diagnosis
    assert (log.missing, found.suspects, found.reason) == ((), (SILENT,), "silent")
    first, second = found.hops
    assert [(wait.group.kind, wait.op, wait.seq) for wait in first.waits] == [
        ("tp", "ALLREDUCE", 4812)
    ]
    assert {wait.group.kind for wait in second.waits} == {"pp"}
    assert len(second.waits) == 8
    assert len(second.ranks) == 24
    notes = account_of(log, EVERY, 8)
    assert [hang_sentence(note.code, note.facts, "en") for note in notes] == [
        "ALLREDUCE 4,812 of tp group 25 waits, and of its members only GPU 205 (node 25, device 5) "
        "printed nothing: look there first.",
        "Others wait there: 7.",
        "Through them wait 8 pipelines, and in the end 256 of 256 GPUs.",
    ]
    chinese = hang_sentence(notes[0].code, notes[0].facts, "zh")
    assert "tp 组 25 的第 4,812 次 ALLREDUCE 在等待" in chinese
    assert re.search("只有 GPU 205.节点 25.设备 5.没有任何输出", chinese)


def without(text: str, *ranks: int) -> str:
    """The text without the lines of some ranks."""
    heads = tuple(f"[rank{rank}]" for rank in ranks)
    return "".join(line for line in text.splitlines(True) if not line.startswith(heads))


NODE = "".join(waits(rank, "dp-cp", 12, "_REDUCE_SCATTER_BASE") for rank in range(192, 256))
"""All of stage 3 wait in their dp groups."""

WORLD = "".join(waits(rank, "world", 7, "ALLREDUCE") for rank in range(256))

HEARD = {
    "two of eight": (without(TEXT, 203), (203, 205), "silent"),
    "it printed that it fails, and not that it waits": (
        TEXT + "[rank205]: ValueError: x\n", (205,), "elsewhere"
    ),
    "a whole node": (without(NODE, *range(200, 208)), (*range(200, 208),), "silent"),
    "of all ranks": (without(WORLD, 17), (17,), "silent"),
    "it waits in an earlier operation of its pipeline, for one that printed nothing": (
        without(TEXT, 13, 77, 141)
        + "".join(waits(rank, "pp", 33, "COALESCED", begun=1) for rank in (77, 141, 205)),
        (13,), "silent",
    ),
    "all arrived: a device or a link": (TP + waits(205, "tp", 4812, "ALLREDUCE"), (),
                                        "all-arrived"),
    "an excerpt of few": ("".join(TP.splitlines(True)[:2]), (), "unclear"),
    "half of them": (without(TP, 200, 201, 202), (), "unclear"),
    "lines are hidden": (
        TEXT + "(pid=3) x [repeated 7x across cluster]\n", (), "unclear"
    ),
}  # fmt: skip


def test_whom_it_waits_for_and_where_that_stays_open():
    found = {}
    for name, (text, *_) in HEARD.items():
        log = read_log(text, EVERY)
        found[name] = [log.diagnosis.suspects, log.diagnosis.reason]
        assert log.missing == (), name
        for note in account_of(log, EVERY, 8):
            for language in ("en", "zh"):
                assert "{" not in hang_sentence(note.code, note.facts, language)
    assert found == {name: expected for name, (_, *expected) in HEARD.items()}


def test_several_groups_of_one_kind_wait_for_the_ranks_of_one_node():
    log = read_log(HEARD["a whole node"][0], EVERY)
    (first, *_) = account_of(log, EVERY, 8)
    said = hang_sentence(first.code, first.facts, "en")
    assert said.startswith("8 dp-cp groups wait, and of their members only GPUs 200, 201, 202")


def test_the_earliest_missed_operation_is_the_first():
    """Two collectives of GPU 205's wait: the one that began first leads, in whatever order they are
    printed; the pipeline's receives, which wait for it by right, never do."""
    dp = "".join(
        waits(int(rank), "dp-cp", 9, "ALLREDUCE", begun=8, minute=1)
        for rank in EVERY["dp-cp"].members(SILENT)
        if rank != SILENT
    )
    early = "".join(line.replace("10:10:05", "10:09:55") for line in PP.splitlines(True))
    for text in (dp + TP + early, early + TP + dp):
        found = read_log(text, EVERY).diagnosis
        assert (found.suspects, found.first.group.kind, found.first.seq) == ((SILENT,), "tp", 4812)
    later = TP.replace("10:10:00", "10:10:59")
    assert read_log(dp + later, EVERY).diagnosis.first.group.kind == "dp-cp"


def test_without_a_layout_places_in_a_group_tell_who_is_between_them():
    for every in (None, groupings(256, tp=4, pp=4), groupings(16)):
        found = read_log(TEXT, every).diagnosis
        assert (found.suspects, found.reason) == ((SILENT,), "silent")
    gone = read_log(without(TEXT, 207).replace(waits(207, "tp", 4812, "ALLREDUCE"), ""))
    assert gone.diagnosis.suspects == (SILENT,)  # nothing tells of a member behind the last


def test_lines_of_pytorch_2_4_name_no_group_of_the_whole_job_and_the_layout_does():
    old = "".join(
        line.replace("PG ID 2 PG GUID ", "PG ").replace("(", " (", 1) if "PG status" in line
        else line
        for line in TEXT.splitlines(True)
    )  # fmt: skip
    assert "GUID" not in old.replace("PG GUID 0(default_pg)", "")
    found = read_log(old, EVERY).diagnosis
    assert (found.suspects, found.reason, len(found.hops)) == ((SILENT,), "silent", 2)


def test_a_rank_that_only_passed_a_signal_on_is_no_suspect_where_another_group_waits():
    found = read_log("".join(TP.splitlines(True)[:2]) + RELAYS, EVERY).diagnosis
    assert (found.suspects, found.reason) == ((), "unclear")


def test_counters_say_more_than_silence():
    counted = TEXT + waits(205, "tp", 4812, "ALLREDUCE").splitlines()[1].replace(
        "enqueued work: 4813", "enqueued work: 4811"
    ).replace("failure detected by watchdog at work sequence id: 4812 ", "")
    log = read_log(counted, EVERY)
    assert (log.missing, log.diagnosis.reason) == ((SILENT,), "absent")
    assert [len(hop.waits) for hop in log.diagnosis.hops] == [1, 8]  # the pipelines join here too


# -- beside the layout ----------------------------------------------------------------------------


def test_a_digest_is_heard_again_with_the_layout_on_screen():
    kept = log_of(digest_of(read_log({"a.log": TEXT})))
    for layout, hops in ((JOB.layout(), 2), (Job(nodes=32, tp=4, pp=4).layout(), 1)):
        found = case_of(kept, layout).log.diagnosis
        assert (found.suspects, len(found.hops)) == ((SILENT,), hops)


def test_lines_that_a_digest_left_out_leave_the_verdict_as_it_was():
    log = read_log(TEXT, EVERY)
    assert heard(log_of(digest_of(log)), {}).diagnosis != log.diagnosis
    cut = replace(log, stalls=log.stalls[:4])
    assert heard(cut, {}) is cut


def test_the_job_of_ranks_that_the_layout_has_not_is_found_with_its_sizes():
    """208 GPUs are the fewest that have GPU 207: no sizes of theirs fit the pipelines."""
    case = case_of(read_log(TEXT), Job(nodes=2).layout())
    assert (case.contradiction.code, case.contradiction.facts["evidence"]) == (
        *("contradicts-least",),
        256,  # every rank but one is named
    )
    few = case_of(read_log(PP + TP), Job(nodes=2).layout())
    assert few.contradiction.facts["evidence"] == 208
    assert few.fitting == ({"tp": 8, "cp": 1, "pp": 4, "ep": 1, "nodes": 32},)
    assert case_of(few.log, Job(nodes=32, tp=8, pp=4).layout()).contradiction is None


def test_fits_change_no_more_than_they_must():
    case = case_of(read_log(TEXT), Job(nodes=32, tp=4, pp=4).layout())
    assert case.contradiction.code == "contradicts-place"
    assert [(fit["tp"], fit["pp"], fit["ep"]) for fit in case.fitting] == [(8, 4, 1)]


# -- what to do next ------------------------------------------------------------------------------


def steps(text: str, hosts: dict[int, str] | None = None, layout: Job = JOB):
    named = "".join(
        f"  host      : {host}\n  rank      : {rank} (local_rank: {rank % 8})\n"
        for rank, host in (hosts or {}).items()
    )
    return next_steps(case_of(read_log(named + text), layout.layout()))


def test_what_to_do_next_is_said_as_commands():
    stacks, host, recorder, share = steps(TEXT)
    assert "RANK=205 " in stacks.command
    assert "py-spy dump --native" in stacks.command
    assert host.command.startswith("nvidia-smi -i 5; dmesg")
    for name in (
        "TORCH_FR_BUFFER_SIZE=",
        "TORCH_NCCL_DUMP_ON_TIMEOUT=1",
        "TORCH_FR_DUMP_TEMP_FILE",
    ):
        assert name in recorder.command
    assert share.command == "python -m groups share dumps --nodes 32 --tp 8 --pp 4"
    other = steps(TEXT, layout=Job(nodes=2))  # as the layout that fits
    assert other[-1].command == share.command
    assert [step.note.facts for step in steps(TEXT)[:1]] == [
        {"rank": 205, "host": None, "device": 5, "node": 25}
    ]


def test_a_host_that_is_known_is_asked_over_ssh_and_one_host_once():
    both = without(TEXT, 203)
    first, second, host, *_ = steps(both, {203: "gpu-25", 205: "gpu-25"})
    assert shlex.split(first.command)[:3] == ["ssh", "--", "gpu-25"]
    assert "RANK=203 " in first.command
    assert "RANK=205 " in second.command
    assert host.note.facts["ranks"] == (203, 205)
    assert shlex.split(host.command)[3].startswith("nvidia-smi; ")  # both of its GPUs


HOSTILE = [
    "-oProxyCommand=touch${IFS}stolen",
    "a;touch${IFS}stolen",
    "$(touch${IFS}stolen)",
    "'`id`",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_command_to_copy_runs_nothing_that_the_evidence_says(name, tmp_path):
    """The words that ssh gets, by a real shell: a host is one word behind --."""
    (tmp_path / "ssh").write_text(f"#!{sys.executable}\nimport sys\nprint(sys.argv[1:])")
    (tmp_path / "ssh").chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for step in steps(TEXT, {205: name})[:2]:
        done = subprocess.run(
            ["bash", "-c", step.command], env=path, cwd=tmp_path, capture_output=True, text=True
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(repr(["--", name])[:-1])
    assert [file.name for file in tmp_path.iterdir()] == ["ssh"]
    assert shlex.split(share_command(JOB, name))[4] == name


def test_the_process_of_a_rank_is_found_by_its_variable(tmp_path):
    """The command itself, beside a process that has RANK=205; py-spy only says whom it is shown."""
    (tmp_path / "py-spy").write_text("#!/bin/sh\necho shown $4\n")
    (tmp_path / "py-spy").chmod(0o755)
    held = subprocess.Popen(["sleep", "60"], env={**os.environ, "RANK": "205"})
    try:
        path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
        command = steps(TEXT)[0].command
        done = subprocess.run(["bash", "-c", command], env=path, capture_output=True, text=True)
    finally:
        held.kill()
        held.wait()
    assert f"shown {held.pid}" in done.stdout.splitlines()


def test_what_shows_no_hang_has_no_next_step():
    assert steps("rank 3 said something") == ()
    assert [step.note.code for step in steps(HEARD["all arrived: a device or a link"][0])] == [
        *("step-host", "step-recorder", "step-share")
    ]


# -- the page -------------------------------------------------------------------------------------


def page_of(text: str, language: str = "en", **sizes: int) -> str:
    state = State(view="hang", evidence=text, lang=language, **sizes)
    return text_of(answer(state).picture)


def test_the_page_names_the_silent_gpu_joins_equal_hops_and_ends_with_commands():
    page = page_of(TEXT, nodes=32, tp=8, pp=4)
    assert "of tp group 25 waits, and of its members only GPU 205" in page
    assert "is not seen to wait: look here first: GPU 205" in page
    assert "1 8 × pp: COALESCED 33; waiting: 24 GPUs, through 200–204, 206–207" in page
    drawn = answer(State(view="hang", evidence=TEXT, nodes=32, tp=8, pp=4)).picture
    commands = [text_of(one) for one in select(drawn, "pre")]
    assert commands == [" ".join(step.command.split()) for step in steps(TEXT)]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_files_that_are_too_large_are_for_the_command_line_with_the_layout_on_screen(language):
    shown = str(answer(State(view="hang", lang=language, nodes=32, tp=8, pp=4)).picture)
    (said,) = values(shown, "data-said")
    large = said["large"]
    assert large.endswith("python -m groups share FOLDER --nodes 32 --tp 8 --pp 4")


# -- the command and the endpoint -----------------------------------------------------------------


def shared(text: str, *options: str, of: str = "-") -> str:
    out, err = io.StringIO(), io.StringIO()
    assert run(["share", of, *options], io.StringIO(text), out, err) == 0, err.getvalue()
    return out.getvalue()


def test_the_command_says_the_verdict_the_contradiction_and_the_steps_of_the_page():
    lines = shared(TEXT, "--nodes", "32", "--tp", "8", "--pp", "4").splitlines()
    assert lines[0].startswith("ALLREDUCE 4,812 of tp group 25 waits, and of its members only GPU")
    assert lines[-1] == "    python -m groups share dumps --nodes 32 --tp 8 --pp 4"
    case = case_of(read_log(TEXT), Job(nodes=32, tp=4, pp=4).layout())
    page = hang_sentence(case.contradiction.code, case.contradiction.facts, "en")
    said = shared(TEXT, "--nodes", "32", "--tp", "4", "--pp", "4")
    assert f"{page} Try --tp 8 --cp 1 --pp 4 --ep 1." in said.splitlines()
    small = shared(TEXT, "--nodes", "2")  # which has not these ranks
    assert "of a job of at least 256 GPUs; the layout has 16. Try --tp 8" in small
    assert "not together in" not in small


def test_the_command_reads_the_folders_of_all_nodes_in_a_folder(tmp_path):
    """Each node keeps its ranks' dumps in a folder of its own."""
    dumps = sorted((DATA / "hang" / "dumps" / "a_missing_rank2").glob("nccl_trace_rank_?"))
    flat, by_node = tmp_path / "flat", tmp_path / "nodes"
    for dump in dumps:
        for folder in (flat, by_node / f"node{int(dump.name[-1]) // 2}" / "dumps"):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / dump.name).write_bytes(dump.read_bytes())
    said = [shared("", "--gpus", "4", of=str(folder)) for folder in (flat, by_node)]
    assert "GPU 2" in said[0].splitlines()[0]
    assert said[0] == said[1]


def test_the_verdict_of_the_command_is_that_of_the_page_in_words_and_facts():
    answer = json.loads(shared(TEXT, "--nodes", "32", "--tp", "8", "--pp", "4", "--format", "json"))
    case = case_of(read_log(TEXT, EVERY), JOB.layout())
    verdict = json.loads(json.dumps(verdict_of(case)))
    assert {name: answer[name] for name in verdict} == verdict
    assert (verdict["suspects"], verdict["reason"], verdict["contradicts"]) == (
        [SILENT],
        "silent",
        None,
    )
    first = verdict["facts"][0]
    assert (first["code"], first["rank"], first["index"], first["node"]) == (
        "silent-one", SILENT, 25, 25
    )  # fmt: skip
    assert [step["command"] for step in verdict["next"]] == [
        step.command for step in next_steps(case)
    ]
    assert verdict["chain"][1]["waits"][0]["unseen"] == [200]
    assert verdict_of(case, "zh")["account"][0].startswith("tp 组 25 的第")


@pytest.mark.parametrize("framework", ["deepspeed", "deepspeed-data-first"])
def test_a_layout_that_megatron_does_not_build_is_compared_by_its_own_groups(framework):
    layout = Job(nodes=4, tp=2, pp=2, ep=8, framework=framework).layout()
    with pytest.raises(LayoutError):
        groupings(32, tp=2, pp=2, ep=8, order=layout.order)
    assert case_of(read_log("0"), layout).contradiction is None

    def timed_out(place):
        group = f"PG ID 2 PG GUID 41(TENSOR_MODEL_PARALLEL_GROUP) Rank {place}"
        return case_of(read_log(f"[rank7]: [{group}] Timeout at NCCL work: 7"), layout)

    agreed, wrong = timed_out(1), timed_out(0)
    assert agreed.contradiction is None
    assert [(row.names[0], row.index, row.members) for row in agreed.match.rows] == [
        ("tp", 3, (6, 7))
    ]
    assert (wrong.contradiction.code, wrong.fitting) == ("contradicts-place", ())


def test_of_lines_without_groups_the_only_one_that_printed_nothing_is_suspected():
    """PyTorch up to 2.2 names no group; half of the ranks wait in one call, half in the next."""
    line = "[rank{0}]: [Rank {0}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={1}"
    texts = [
        f"{line.format(rank, 7 + rank % 2)}, OpType=ALLREDUCE, NumelIn=1, NumelOut=1)"
        for rank in range(32)
        if rank != 19
    ]
    log = read_log("\n".join(texts), groupings(32, tp=4))
    assert (log.diagnosis.suspects, log.diagnosis.reason) == ((19,), "silent")
    few = read_log("\n".join(texts[:20]), groupings(32, tp=4))  # an excerpt is silent of many
    assert few.diagnosis.suspects == ()


@pytest.mark.parametrize(
    "gap",
    [
        "...",
        "[...]",
        "<snip>",
        "[rank3]: [Rank 3] Watchdog caught collective operation timeout: WorkN",
    ],
)
def test_where_lines_are_left_out_or_break_off_silence_proves_nothing(gap):
    line = "[rank{0}]: [PG ID 0 PG GUID 0(default_pg) Rank {0}] Timeout at NCCL work: 7"
    texts = [line.format(rank) + "." * rank for rank in range(3)]  # no terminal's width
    whole = read_log("\n".join(texts), groupings(4))
    assert (whole.diagnosis.suspects, whole.diagnosis.reason) == ((3,), "silent")
    cut = read_log("\n".join([*texts, gap]), groupings(4))
    assert (cut.missing, cut.diagnosis.suspects) == ((), ())
    assert [note.code for note in cut.notes] == ["lines-left-out"]


def test_a_group_that_is_not_described_is_the_only_one_of_which_more_than_half_wait():
    line = "[rank{0}]:[E1] [PG ID 2 PG GUID 17 Rank {0}] Timeout at NCCL work: 7"
    texts = [line.format(rank) for rank in (4, 6, 7)]
    log = read_log("\n".join(texts), groupings(8, tp=4))
    assert (log.diagnosis.suspects, log.diagnosis.reason) == ((5,), "silent")
    assert read_log("\n".join(texts[:2]), groupings(8, tp=4)).diagnosis.suspects == ()


def test_places_alone_are_ranks_where_only_the_group_of_all_has_so_many():
    """PyTorch before 2.2: [Rank r] without [rankG]:"""
    line = "[E x.cpp:474] [Rank {}] Watchdog caught collective operation timeout: "
    line += "WorkNCCL(SeqNum=9, OpType=ALLREDUCE, NumelIn=1)"
    log = read_log("\n".join(line.format(rank) for rank in range(8) if rank != 1), groupings(8))
    assert log.diagnosis.suspects == (1,)
    assert [wait.seq for wait in log.diagnosis.waits] == [9]
