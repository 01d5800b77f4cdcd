"""The ranks that a pasted text names, from the command line and the endpoint."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from cli.command import run
from diagnosis.hang import account
from diagnosis.hang.account import account_of
from formats import logs
from formats.logs import named_ranks, read_log
from groups import LayoutError
from groups.megatron import groupings
from texts.sentences import HANG_NOTES, hang_sentence
from texts.shapes import LANGUAGES

WATCHDOG = (
    "[rank9]:[E1122 03:00:00.1 ProcessGroupNCCL.cpp:616] [Rank 0] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, "
    "Timeout(ms)=600000) ran for 600014 milliseconds before timing out.\n"
    "[rank9]:[E1122 03:00:00.2 ProcessGroupNCCL.cpp:1785] [PG ID 5 PG GUID 37"
    "(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] Timeout at NCCL work: 7, last enqueued NCCL work: 7, "
    "last completed NCCL work: 6.\n"
)
PARTNER = (
    "[rank8]:[E1122 03:00:00.3 ProcessGroupNCCL.cpp:2268] [PG ID 5 PG GUID 37"
    "(TENSOR_MODEL_PARALLEL_GROUP) Rank 0] PG status: last enqueued work: 6, last completed work: 6"
)


@pytest.mark.parametrize(
    ("text", "ranks"),
    [
        (WATCHDOG, (9,)),
        ("[rank12]: Watchdog caught timeout after 600000 ms; [rank 4]: same", (4, 12)),
        ("Rank 3\nrank=5\nRANK: 7\nrank #9", (3, 5, 7, 9)),
        ("rank 3 of 16 stopped at step 12", (3,)),
        ("rank 1, rank 1, rank 0", (0, 1)),
        ("2026-11-21 node-7 RANK: 4 still waits, global_rank = 9, local_rank=1", (4, 9)),
        ("3, 11, 5-7 3", (3, 5, 6, 7, 11)),
    ],
)
def test_only_ranks_of_the_job_count(text, ranks):
    assert named_ranks(text, 16)[0] == ranks


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[PG ID 6 PG GUID 40(PIPELINE_MODEL_PARALLEL_GROUP) Rank 1] x", "ranks-in-groups"),
        ("rank 16 failed", "no-such-rank"),
        ("ranks [" + ", ".join(map(str, range(4097))) + "] failed", "too-many-ranks-named"),
        ("nothing here", "bad-ranks"),
        ("rank " * 100_000, "bad-ranks"),
        (3, "bad-ranks"),
    ],
)
def test_a_text_without_ranks_of_the_job_is_refused(text, code):
    with pytest.raises(LayoutError) as refusal:
        named_ranks(text, 8192 if code == "too-many-ranks-named" else 16)
    assert refusal.value.code == code
    assert len(str(refusal.value)) < 300


def shared(text: str, *options: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    assert run(["share", "-", *options], io.StringIO(text), out, err) == 0, err.getvalue()
    return out.getvalue()


LAYOUT = ("--nodes", "2", "--tp", "2", "--pp", "2")


def test_the_command_says_who_is_missing_and_what_waits():
    assert shared(WATCHDOG + PARTNER, *LAYOUT).splitlines()[:3] == [
        "GPU 8 (node 1, device 0) never entered ALLREDUCE 7 of its tp group.",
        "One other waits there.",
        "Through them wait 2 pipelines, and in the end 16 of 16 GPUs.",
    ]
    died = "  host      : gpu-4\n  rank      : 8 (local_rank: 5)\n  exitcode  : -6 (pid: 3 )\n"
    first = shared(died + WATCHDOG + PARTNER, *LAYOUT).splitlines()[0]
    assert first == "GPU 8 (host gpu-4, device 5) never entered ALLREDUCE 7 of its tp group."
    answer = json.loads(shared(WATCHDOG + PARTNER, *LAYOUT, "--format", "json"))
    assert (answer["ranks"], answer["missing"], answer["group_ranks"]) == ([8, 9], [8], [0, 1])


def test_the_command_reads_a_folder_of_dumps_and_says_hosts(tmp_path):
    folder = Path(__file__).parent / "data" / "hang" / "dumps" / "a_missing_rank2"
    for file in folder.glob("nccl_trace_rank_?"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "hosts").write_text("gpu-00 slots=2\ngpu-01 slots=2")
    dumps = sorted(map(str, tmp_path.glob("nccl*")))
    job = ("--gpus-per-node", "4", "--tp", "2", "--hosts", str(tmp_path / "hosts"))
    for words in (dumps, [str(folder)]):
        out, err = io.StringIO(), io.StringIO()
        assert run(["share", *words, *job], io.StringIO(), out, err) == 0, err.getvalue()
        assert out.getvalue().startswith("GPU 2 (host gpu-01, device 0) never entered")
    assert run(["share", str(tmp_path / "hosts"), *job], io.StringIO(), out, err) == 2
    assert "'the files' is not a list of ranks" in err.getvalue()


def test_every_note_has_its_sentence_in_both_languages():
    """All codes that the code names, with the facts that it gives them."""
    folders = (Path(account.__file__).parent, Path(logs.__file__).parent)
    source = "".join(file.read_text() for of in folders for file in of.glob("*.py"))
    codes = set(re.findall(r'note\(\s*"([a-z-]+)"', source))
    assert codes >= {"text-cut", "lines-hidden", "missing-in-group"}
    assert codes <= set(HANG_NOTES)
    assert all(text[language] for text in HANG_NOTES.values() for language in LANGUAGES)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_account_of_every_dump_is_told(language):
    told = []
    for folder in sorted((Path(__file__).parent / "data" / "hang" / "dumps").iterdir()):
        log = read_log({file.name: file.read_bytes() for file in folder.glob("nccl*[0-9]")})
        world = groupings(16, tp=4, pp=2) if "pp" in folder.name else None
        told.append([hang_sentence(n.code, n.facts, language) for n in account_of(log, world)])
    assert [len(one) for one in told] == [2, 2, 3]
    assert not any("{" in sentence for one in told for sentence in one)
    if language == "en":
        assert told[2][0] == "GPU 12 never entered send/recv 4 of its pp group."
        assert told[1][0] == (
            "GPU 3 called all_reduce 4 of its world group with [[1024]] -> [[1024]] [BFloat16], "
            "the others with [[2048]] -> [[2048]] [BFloat16]."
        )
