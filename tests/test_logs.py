"""What real logs, dumps and reports say of who is missing."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import re
from pathlib import Path

import pytest

from diagnosis.hang import matching, model
from diagnosis.hang.account import account_of
from diagnosis.hang.matching import match_layout
from formats.logs import evidence, lines, nccl, read_log, reading, recorder
from groups import LayoutError
from groups.megatron import groupings
from texts.sentences import hang_sentence

try:
    from re import _parser as parser
except ImportError:  # Python 3.10
    import sre_parse as parser

DATA = Path(__file__).parent / "data" / "hang"
ITEMS = [json.loads(line) for line in (DATA / "items.jsonl").read_text().splitlines()]


def agreed(log, name: str):
    """The operation that is stuck or its number, if all lines or dumps name the same one."""
    stuck = (log.diagnosis.waits if log.dumped else ()) or log.stalls
    values = {getattr(work, name) for work in stuck} - {None}
    return values.pop() if len(values) == 1 else None


def test_every_excerpt_of_a_real_thread_is_read_as_it_means():
    wrong = []
    for item in ITEMS:
        if item["kind"] == "fr_dump":
            continue
        log, expected = read_log(item["text"]), item["expected"]
        for name, field in [
            ("global_ranks", log.ranks),
            ("group_ranks", log.group_ranks),
            ("ambiguous_ranks", log.ambiguous_ranks),
            ("groups", tuple(log.groups)),
            ("missing_ranks", log.missing),
        ]:
            if sorted(field) != sorted(expected[name] or []):
                wrong.append((item["id"], name, field, expected[name]))
        work = tuple(agreed(log, name) for name in ("op", "seq"))
        if item["kind"] == "watchdog" and work != (expected["op"], expected["seq"]):
            wrong.append((item["id"], *work))
    assert wrong == []


def dumps(folder: str, ending: str = "") -> dict[str, bytes]:
    files = sorted((DATA / "dumps" / folder).glob("nccl_trace_rank_*"))
    return {file.name: file.read_bytes() for file in files if file.suffix == ending}


@pytest.mark.parametrize("ending", ["", ".json"])
def test_dumps_say_who_is_missing_or_did_otherwise(ending):
    wrong = []
    for folder in sorted((DATA / "dumps").iterdir()):
        truth = json.loads((folder / "truth.json").read_text())
        log = read_log(dumps(folder.name, ending))
        expected = (truth["global_ranks"], truth["group_ranks"], truth["groups"], truth["op"])
        read = (list(log.ranks), list(log.group_ranks), list(log.groups), agreed(log, "op"))
        also = (list(log.missing), agreed(log, "seq"))
        if (read, also) != (expected, (truth["culprits"], truth["seq"])):
            wrong.append((folder.name, read, also))
    assert wrong == []


def test_a_rank_without_a_dump_is_a_suspect_and_not_missing():
    files = dumps("a_missing_rank2")
    del files["nccl_trace_rank_2"]
    log = read_log(files)
    assert (log.ranks, log.missing) == ((0, 1, 2, 3), ())
    assert (log.diagnosis.suspects, log.diagnosis.reason) == ((2,), "no-dump")


def test_the_first_rank_can_be_the_odd_one():
    files = dumps("c_size_mismatch_rank3")
    files["nccl_trace_rank_0"], files["nccl_trace_rank_3"] = (
        files["nccl_trace_rank_3"],
        files["nccl_trace_rank_0"],
    )
    log = read_log(files)
    assert (log.missing, log.diagnosis.reason) == ((0,), "different")
    parties = log.diagnosis.first.parties
    assert (len({one.op for one in parties}), len({one.sizes for one in parties})) == (1, 2)


class _Steals:
    def __reduce__(self):
        return (print, ("stolen",))


def _nested(depth: int) -> bytes:
    return b"\x80\x02" + b"(" * depth + b"t" * depth + b"."


HOSTILE = {
    "a call": pickle.dumps({"version": "2.10", "entries": [_Steals()]}),
    "a class": pickle.dumps({"version": "2.10", "entries": [io.StringIO]}),
    "a call of protocol 0": b"(S'true'\nios\nsystem\n.",
    "an instance": b"\x80\x02(c__builtin__\nset\no.",
    "a persistent id": b"\x80\x02X\x01\x00\x00\x00aQ.",
    "an extension": b"\x80\x02\x82\x01.",
    "keys that collide": pickle.dumps({"version": 1, "entries": [], 2**61 - 1: 0}),
    "a key alone that collides": pickle.dumps({"version": 1, "entries": [{2**61 - 1: 0}]}),
    "keys of protocol 0 that collide": b"(dVversion\nI1\nsVentries\n((I1\nI2\ndls.",
    "deep": _nested(100_000),
    "a text without its end": b"\x80\x02}X\xff\xff\xff\x7fabc",
    "an endless integer": b"\x80\x02\x8b\x00\xff\xff\x00" + b"\x01" * 70_000 + b".",
    "a memo that is not there": b"\x80\x02h\x09.",
    "nothing on the stack": b"\x80\x02a.",
    "no end": b"\x80\x02}",
    "no dump": pickle.dumps([1, 2, 3]),
    "itself": b"\x80\x02]q\x00h\x00a.",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_strange_pickle_is_refused_and_runs_nothing(name, capsys):
    with pytest.raises(LayoutError) as refusal:
        read_log({"nccl_trace_rank_0": HOSTILE[name]})
    assert refusal.value.code == "bad-dump"
    assert capsys.readouterr().out == ""


def test_sizes_that_double_with_each_instruction_are_cut():
    doubled = [1]
    for _ in range(40):
        doubled = [doubled, doubled]
    call = {
        "process_group": ("0", "tp"),
        "profiling_name": "nccl:all_reduce",
        "input_sizes": doubled,
    }
    call |= {"collective_seq_id": 1, "state": "started"}
    log = read_log({"nccl_trace_rank_0": pickle.dumps({"version": "2.10", "entries": [call]})})
    assert (log.ranks, agreed(log, "op")) == ((0,), "all_reduce")


def test_a_compressed_log_is_named_and_not_read_as_a_log_without_evidence():
    told = b"[rank3]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation"
    for packed in (gzip.compress(told), bz2.compress(told), lzma.compress(told)):
        with pytest.raises(LayoutError, match=r"compressed \(\w+\): unpack it first"):
            read_log({"job.log.gz": packed})
        log = read_log({"job.log.gz": packed, "job.log": told})
        assert (log.ranks, [note.code for note in log.notes]) == ((3,), ["file-unreadable"])


def test_a_damaged_dump_does_not_spoil_the_others():
    files = dumps("a_missing_rank2")
    log = read_log({**files, "nccl_trace_rank_9": HOSTILE["a call"]})
    assert log.missing == (2,)
    assert [note.code for note in log.notes] == ["file-unreadable"]


@pytest.mark.parametrize("protocol", range(6))
def test_plain_data_of_every_protocol_is_read(protocol):
    files = {
        name: pickle.dumps(pickle.loads(content), protocol=protocol)
        for name, content in dumps("a_missing_rank2").items()
    }
    assert read_log(files).missing == (2,)


REPORT = """\
#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
"""
"""As NCCL 2.26 prints it (src/ras/client_support.cc)."""


def test_ranks_of_a_report_of_nccl_are_places_in_a_communicator():
    log = read_log(REPORT)
    assert (log.ranks, log.group_ranks, log.missing) == ((), (7,), ())
    assert [note.code for note in log.notes] == ["counts-differ"]


def test_a_report_as_json_says_the_same():
    ranks = [
        {"rank": rank, "host": "n0", "collective_counts": {"AllReduce": 60 + (rank < 3)}}
        for rank in range(4)
    ]
    report = {"communicators": [{"hash": "0xab", "ranks": ranks, "missing_ranks": []}], "ras": {}}
    log = read_log({"ras.json": json.dumps(report)})
    assert (log.ranks, log.group_ranks) == ((), (0, 1, 2, 3))
    assert [note.code for note in log.notes] == ["counts-differ"]


def test_what_a_shape_says_is_said_of_every_line_of_it():
    """Each excerpt beside itself with other digits: the ranks of both, and no others."""
    swapped = str.maketrans("123456789", "987654321")
    wrong = []
    for item in ITEMS:
        if item["kind"] != "fr_dump" and not item["expected"]["ambiguous_ranks"]:
            texts = (item["text"], item["text"].translate(swapped))
            both = {rank for text in texts for rank in read_log(text).ranks}
            log = read_log("\n".join(texts))
            if {*log.ranks, *log.ambiguous_ranks} != both:
                wrong.append(item["id"])
    assert wrong == []


def watchdog(rank: int, seq: int, op: str) -> str:
    return (
        f"[rank{rank}]:[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught "
        f"collective operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=4, NumelOut=4, "
        "Timeout(ms)=600000) ran for 600014 milliseconds before timing out.\n"
    )


def status(rank: int, group: str, place: int, enqueued: int, stuck: int | None = None) -> str:
    at = f"failure detected by watchdog at work sequence id: {stuck} " if stuck else ""
    return (
        f"[rank{rank}]:[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [PG ID 5 PG GUID {group} Rank "
        f"{place}] {at}PG status: last enqueued work: {enqueued}, last completed work: {place}\n"
    )


TP, DP, PP = (
    f"{number}({kind}_PARALLEL_GROUP)"
    for number, kind in ((30, "TENSOR_MODEL"), (50, "DATA"), (40, "PIPELINE_MODEL"))
)
STUCK = "".join(watchdog(rank, 7, "ALLREDUCE") + status(rank, TP, rank, 7, 7) for rank in range(3))
NOBODY = {
    "a rank has enqueued the work in which the others wait": STUCK + status(3, TP, 3, 7),
    "a stage sends what the others receive": "".join(
        watchdog(4 * place, 10, "RECV" if place else "SEND") + status(4 * place, PP, place, 10, 10)
        for place in range(4)
    ),
    "stages count their own pairs": watchdog(4, 10, "RECV")
    + status(4, PP, 1, 10, 10)
    + status(0, PP, 0, 5),
    "a rank is stuck in two groups at the same number": STUCK
    + watchdog(3, 7, "ALLREDUCE") + status(3, TP, 3, 7, 7)
    + watchdog(2, 7, "ALLGATHER") + status(2, DP, 0, 7, 7),
    "a rank is stuck in a group that no line names": STUCK
    + watchdog(3, 99, "ALLREDUCE") + status(3, TP, 3, 6),
    "a barrier of a group, by another number than the rank's": "[rank5]:[E1122 10:00:00.1 Process"
    "GroupGloo.cpp:138] [Rank 0]: Rank 1 failed to pass monitoredBarrier in 600000 ms",
    "a barrier of a group, before each of its operations": "RuntimeError: ProcessGroupWrapper: "
    "Monitored Barrier encountered error running collective: CollectiveFingerPrint(OpType="
    "ALLREDUCE). Error: \n[ProcessGroupGloo.cpp:138] [Rank 0]: Rank 1 failed to pass "
    "monitoredBarrier in 600000 ms",
}  # fmt: skip


def test_nobody_is_named_where_lines_do_not_show_it():
    assert {name: read_log(text).missing for name, text in NOBODY.items()} == dict.fromkeys(
        NOBODY, ()
    )
    assert read_log(STUCK + status(3, TP, 3, 6)).missing == (3,)


def test_an_all_gather_tells_how_many_are_in_its_group():
    gathered = watchdog(1, 7, "_ALLGATHER_BASE").replace("NumelOut=4", "NumelOut=16")
    log = read_log(gathered + status(1, TP, 1, 7, 7))
    assert match_layout(log, 16, tp=4).contradictions == ()
    two = match_layout(log, 16, tp=2)
    assert [row.claim.size for row in two.contradictions] == [4]
    assert two.fits[0]["tp"] == 4
    uneven = read_log(gathered.replace("NumelOut=16", "NumelOut=18") + status(1, TP, 1, 7, 7))
    assert match_layout(uneven, 16, tp=2).contradictions == ()  # not so many times its input


def test_one_of_many_claims_that_no_layout_has_is_compared_first(monkeypatch):
    """1,000 places in tp groups of 8 agree with many layouts, a place that no group has with none:
    all claims beside all layouts would be a million."""
    lines_ = [status(rank, f"{rank // 8}(TENSOR_MODEL_PARALLEL_GROUP)", rank % 8, 6)
              for rank in range(1000)]  # fmt: skip
    log = read_log("".join([*lines_, status(1001, "999(EMBEDDING_GROUP)", 5, 6)]))
    compared = []
    whole = matching._matched
    monkeypatch.setattr(matching, "_matched", lambda *of: compared.append(of) or whole(*of))
    match = match_layout(log, 1024, tp=8, pp=4)
    assert (len(match.contradictions), match.fits) == (1, ())
    assert len(compared) < 10_000
    monkeypatch.setattr(matching, "MOST_COMPARED", 0)
    del compared[:]
    match_layout(log, 1024, tp=8, pp=4)
    assert len(compared) == 2 * 1001  # the layout on screen, and one more


def test_a_rank_that_the_layout_has_not_or_in_no_such_group_contradicts_it():
    log = read_log(status(9, TP, 1, 6))
    assert [row.agrees for row in match_layout(log, 8, tp=2).rows] == [False]
    assert match_layout(log, 8, tp=2).fits == ()
    embedding = read_log(status(2, "60(EMBEDDING_GROUP)", 1, 6))
    for pp, agrees in ((4, False), (2, True)):  # of four stages the first and the last share
        assert [row.agrees for row in match_layout(embedding, 4, pp=pp).rows] == [agrees]


def test_a_barrier_of_all_names_who_did_not_reach_it():
    log = read_log(
        "[rank0]: RuntimeError: [Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 9 ms"
    )
    assert (log.missing, [note.code for note in log.notes]) == ((1, 3), ["barrier-of-all"])


def test_lines_of_one_length_are_not_one_line_that_a_terminal_cut():
    line = "[2024-11-22 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank {}] local_rank: 3 ok\n"
    log = read_log("".join(line.format(rank) for rank in range(4)))
    assert log.ranks == (0, 1, 2, 3)


def test_lines_that_are_filled_with_spaces_are_not_cut_either():
    cut = "[rank18]:[E1013 20:47:44.9 Group.cpp:746] [R"
    filled = "\n".join(
        ("a line of a table".ljust(len(cut)), "a line of a table".ljust(len(cut)), "x")
    )
    assert evidence.unwrapped(filled) == filled


def test_a_log_that_powershell_wrote_says_the_same():
    text = watchdog(3, 7, "ALLREDUCE")
    assert read_log({"log": text.encode("utf-16")}).ranks == read_log(text).ranks == (3,)


HEAD = "[rank{}]:[E515 18:36:47.3 ProcessGroupNCCL.cpp:1937] "
RELAY = (
    HEAD.format(21) + "[PG ID 0 PG GUID 0(default_pg) Rank 21] Received a dump signal due to a "
    "collective timeout from  rank 20. Last enqueued NCCL work: 5, last completed NCCL work: 5.\n"
)


def desync(rank: int, place: int) -> str:
    """As PyTorch 2.6 and newer print it: the group is named by the next line of the rank."""
    return (
        HEAD.format(rank) + f"Rank {place}\n\t - [{place}] Timeout at collective: ALLREDUCE, #315\n"
        "\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync "
        "are:\n"
        "\t   [7] finished collective #182, but didn't join collective #183 (count from 1)\n"
        "\t - Snapshot of ranks' latest states:\n\t   #315 started ranks:\n"
        "\t     [0, 1, 2] started ALLREDUCE\n"
    )


def test_a_report_of_a_desync_is_of_the_group_that_its_process_names_next():
    default = status(0, "0(default_pg)", 0, 315, 241)
    below = desync(0, 0).partition("\n")[2]  # without a head of its own
    for text in (desync(0, 0) + default, default + below):
        of_all = read_log(text)
        assert (of_all.ranks, of_all.missing) == ((0, 1, 2, 7), (7,))
    for text in (RELAY + desync(20, 4), desync(20, 4) + RELAY):
        log = read_log(text + status(20, TP, 4, 315, 241))
        assert (log.ranks, log.missing) == ((20, 21), ())
        assert set(log.group_ranks) == {0, 1, 2, 4, 7}
        assert "missing-in-group" in [note.code for note in log.notes]
    alone = read_log(desync(20, 4))
    assert (alone.missing, alone.ambiguous_ranks) == ((), (0, 1, 2, 4, 7))


def tagged(tag: str, line: str) -> str:
    """As mpirun --tag-output prints it (Open MPI 4 and 5)."""
    return "".join(f"{tag}<stderr>:{part}\n" for part in line.splitlines())


def test_a_tag_of_mpirun_names_the_rank_after_the_comma():
    """Before PyTorch 2.2 nothing else does: what lines call ranks are places in groups."""
    old = watchdog(0, 7, "ALLREDUCE").removeprefix("[rank0]:").replace("[Rank 0]", "[Rank 1]")
    nccl_line = "gpu01:71:83 [3] NCCL INFO comm 0x1 rank 1 nranks 2 cudaDev 3 busId 1 - Init"
    for tag in ("[1,13]", "[prterun-gpu01-71@1,13]", "Tue Mar  5 10:00:00 2024[1,13]"):
        log = read_log(tagged(tag, old))
        assert (log.ranks, log.group_ranks, log.ambiguous_ranks) == ((13,), (1,), ())
        assert [(stall.rank, stall.seq) for stall in log.stalls] == [(13, 7)]
        for line, places in ((nccl_line, (1,)), ("loss 3.2", ()), ("[Rank 13] step 4", ())):
            log = read_log(tagged(tag, line))
            assert (log.ranks, log.group_ranks) == ((13,), places), line
    lines_ = "".join(tagged(f"[1,{rank}]", old.replace("Rank 1", f"Rank {rank % 4}"))
                     for rank in (4, 5, 7))  # fmt: skip
    assert read_log(lines_).ranks == (4, 5, 7)


def test_a_report_of_lines_that_mpirun_tags_is_of_one_process():
    below = desync(0, 0).partition("\n")[2]
    log = read_log(tagged("[1,0]", status(0, "0(default_pg)", 0, 315, 241) + below))
    assert (log.ranks, log.missing) == ((0, 1, 2, 7), (7,))


LAUNCHED = {
    "a line names another rank": "[rank25]: RuntimeError: x",
    "a place that rank 3 cannot have": "[E ProcessGroupNCCL.cpp:475] [Rank 25] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE)",
    "torchrun names a local rank": "[default1]:[rank25]: RuntimeError: x",
}


@pytest.mark.parametrize("name", LAUNCHED)
def test_a_tag_of_mpirun_that_started_launchers_is_no_rank(name):
    log = read_log(tagged("[1,3]", "hello\n" + LAUNCHED[name]))
    assert (log.ranks, [note.code for note in log.notes]) == ((25,), ["tags-of-launchers"])
    assert log.notes[0].facts == {"tag": "[1,3]<stderr>"}


PLACES = {
    "[rank9]: RuntimeError: NCCL communicator was aborted on rank 1. Original reason for failure "
    "was: [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)": (9,),
    "[rank9]: [1] is setting up NCCL communicator and retreiving ncclUniqueId from [0]": (9,),
    "[rank17]: expected rank 1 of tensor model parallel group, pipeline rank 3, data rank: 2": (
        17,
    ),
    "[rank3]: [2024-11-22 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 1] ok": (3,),
    "collective: nccl:all_reduce": (),
    "LoRA rank 16, low rank 8, matrix rank: 32, adapter rank=64": (),
    "[default] Worker group FAILED; group_rank=3 global_ranks=[24, 25] role_ranks=[1]": (24, 25),
}


def test_places_in_groups_and_ranks_of_matrices_are_no_ranks_of_the_job():
    found = {text: read_log(text).ranks for text in PLACES}
    assert found == PLACES


NO_RANKS = [
    "2026-11-22 03:00:01 step 12 loss 1.5 port 29500 pid 4711 cuda:3",
    "local_rank: 3 node_rank=1 group_rank=2 machine rank 4",
    "[default3]: hello", "  restart_count=0\n  local_ranks=[0, 1]", "mp_rank_03_model_states.pt",
    "ranks: 8, world size 8", "nranks 16", "    if rank == 0:", "rank -1", "rank1234567890123",
    '  File "a.py", line 3, in f\n    init_process_group(rank=0, world_size=4)',
    "srun: error: gpu-3: task 12: Exited with exit code 1", "12: 13: 14:", "prank 3",
]  # fmt: skip


def test_numbers_that_are_no_ranks_are_none():
    assert {text: read_log(text).ranks for text in NO_RANKS if read_log(text).ranks} == {}


LONG = 300


def _repeats(parsed, found):
    """Every repeat of a parsed expression: its bound and the characters that it can take."""
    for op, value in parsed:
        if op in (parser.MAX_REPEAT, parser.MIN_REPEAT):
            found.append((value[1], value[2]))
            _repeats(value[2], found)
        elif op is parser.SUBPATTERN:
            _repeats(value[3], found)
        elif op is parser.BRANCH:
            for one in value[1]:
                _repeats(one, found)
    return found


EXPRESSIONS = {
    f"{module.__name__}.{name}": value
    for module in (lines, nccl, model, recorder, evidence, reading)
    for name, value in vars(module).items()
    if isinstance(value, re.Pattern)
}


def test_every_expression_is_linear_by_construction():
    """No repeat is endless, short ones cost a constant, and a long one takes only digits, commas
    and blanks, or is the last of its expression, after letters that it cannot take: so a text is
    looked at once, and once more for each start, which lies outside of what others have taken."""
    bad = []
    for name, pattern in EXPRESSIONS.items():
        product = 1
        for most, inner in _repeats(parser.parse(pattern.pattern), []):
            if most is parser.MAXREPEAT and not name.endswith("evidence._RANK_OF_FILE"):
                bad.append((name, "endless"))
            elif most > LONG:
                taken = re.compile(r"[\d, ]").fullmatch
                (op, value), *rest = inner
                singles = [chr(v) for o, v in value if o is parser.LITERAL]
                if rest or op is not parser.IN or not all(map(taken, singles)):
                    bad.append((name, most))
                if re.match(r"[\d, ]", pattern.pattern):
                    bad.append((name, "starts inside"))
            else:
                product *= max(most, 1) if len(inner) > 1 else 1
        if product > 1000:
            bad.append((name, product))
    assert bad == []


WORST = [
    "[PG " + "x" * 199_996, "[PG " * 50_000, "[PG ID 1 PG GUID " * 12_000, "[PG (((((" * 20_000,
    "[rank" * 40_000, "[rank1]" * 28_000, "rank " * 40_000, "rank=" * 40_000, "ranks [" * 28_000,
    "ranks [" + "1, " * 66_000, "missing ranks: {" + "1, " * 66_000, "Ranks " + "1, " * 60_000,
    "[1, " * 50_000, "SeqNum=1, " * 20_000, "SeqNum=" + "1" * 199_000, "\x1b[" * 100_000,
    "#0-0 (" + "a" * 199_000, "Rank 1 -- GPU " * 14_000, "0[0] -> " * 25_000,
    "rank" + " " * 199_000,
    "[2026-01-01 00:00:00 TP1" + " TP1" * 49_000, "(Worker" + "_TP1" * 49_000, "host  " * 33_000,
    "CollectiveFingerPrint(SequenceNumber=" * 5_000, "TensorShape=[" + "1," * 99_000,
    "[1,1]<std" * 22_000, "[" + "a." * 99_000 + "@", "1 ranks have launched " * 9_000,
    "[1, 2] finished collective #" * 7_000, "group info: " * 16_000, "local_rank" * 20_000,
    "{" * 200_000, '{"a":' * 40_000, "[" * 200_000, "x" * 200_000, "\n" * 200_000, "\0" * 200_000,
]  # fmt: skip


def test_the_worst_texts_are_read_to_their_end():
    assert {rank for text in WORST for rank in read_log(text).ranks} == {1, 2}


@pytest.mark.parametrize("evidence", [None, 3, {}, {"a": 3}, ["a"]])
def test_what_is_no_evidence_is_refused(evidence):
    with pytest.raises(LayoutError) as refusal:
        read_log(evidence)
    assert refusal.value.code == "no-evidence"


def test_too_much_evidence_is_refused():
    with pytest.raises(LayoutError) as refusal:
        read_log({"a": "x" * (32 * 2**20 + 1)})
    assert refusal.value.code == "too-much-evidence"


# -- a group whose four members all arrived ------------------------------------------------------

MINUTE = 60 * 10**9  # nanoseconds


def four(*ranks: list[dict]) -> dict[str, str]:
    """Dumps of a group; of each rank its calls, as what differs from an all-reduce that waits."""
    group = ["7", "TENSOR_MODEL_PARALLEL_GROUP"]
    config = {"0": {"name": group[0], "desc": group[1], "ranks": "[0, 1, 2, 3]"}}
    plain = {
        "process_group": group, "profiling_name": "nccl:all_reduce", "state": "scheduled",
        "time_created_ns": MINUTE, "timeout_ms": 600_000, "input_sizes": [[4]],
        "output_sizes": [[4]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
    }  # fmt: skip
    files = {}
    for rank, calls in enumerate(ranks):
        entries = [
            {**plain, "record_id": at, "collective_seq_id": at + 1, **call}
            for at, call in enumerate(calls)
        ]
        files[f"nccl_trace_rank_{rank}"] = json.dumps(
            {"version": "2.5", "pg_config": config, "entries": entries}
        )
    return files


def test_who_came_after_the_others_time_was_over_is_late_and_before_that_is_not():
    for minutes, missing, reason in ((11, (3,), "late"), (9, (), "all-arrived")):
        came = {"time_created_ns": (1 + minutes) * MINUTE}
        log = read_log(four(*3 * [[{"retired": True}]], [came]))
        assert (log.missing, log.diagnosis.reason) == (missing, reason), minutes


def test_sizes_that_differed_in_a_call_that_ended_may_differ():
    done, other = {"state": "completed"}, {"input_sizes": [[5]]}
    once = read_log(four(*3 * [[done, {}]], [done, other]))
    assert (once.missing, once.diagnosis.reason) == ((3,), "different")
    again = read_log(four(*3 * [[done, {}]], [{**done, **other}, other]))
    assert (again.missing, again.diagnosis.reason) == ((), "all-arrived")


# -- dumps that do not say who is in a group -----------------------------------------------------


def old_dump(*calls: tuple[int, int, int, bool]) -> str:
    """As version 1.1 writes it; calls: place among the rank's groups, name, number, ended."""
    entries = [
        {
            "record_id": at, "pg_id": local, "process_group": [str(name), "undefined"],
            "collective_seq_id": seq, "profiling_name": "nccl:all_reduce", "time_created_ns": at,
            "state": "completed" if ended else "scheduled", "input_sizes": [[4]],
            "output_sizes": [[4]], "input_dtypes": ["Float"], "output_dtypes": ["Float"],
        }
        for at, (local, name, seq, ended) in enumerate(calls)
    ]  # fmt: skip
    return json.dumps({"version": "1.1", "entries": entries})


def old_job() -> dict[str, str]:
    """Tp 4 on 8 ranks: tp groups are 1 and 2, dp groups 3 to 6; rank 5 never called in its tp."""
    files = {}
    for rank in range(8):
        tp, dp = (1, 1 + rank // 4, 1, rank < 4), 3 + rank % 4
        calls = [(2, dp, 1, True), *([tp] if rank != 5 else [])]
        files[f"nccl_trace_rank_{rank}"] = old_dump(*calls, *([(2, dp, 2, False)] * (rank < 4)))
    return files


def test_members_that_dumps_do_not_say_are_those_of_the_layout_if_it_fits():
    """Without rank 5's dump only members tell that it is the one of whom nothing is known."""
    files = old_job()
    assert read_log(files, groupings(8, tp=4)).missing == (5,)
    del files["nccl_trace_rank_5"]
    found = {
        name: (log.missing, log.diagnosis.suspects, [note.code for note in log.notes])
        for name, made in [("none", None), ("tp 4", 4), ("tp 2", 2)]
        for log in [read_log(files, made and groupings(8, tp=made))]
    }
    assert found["tp 4"] == ((), (5,), ["members-assumed"])
    assert found["none"][::2] == found["tp 2"][::2] == ((), ["members-open"])


def test_names_that_are_no_numbers_have_no_order_to_keep():
    files = {
        name: text.replace('"process_group": ["', '"process_group": ["g')
        for name, text in old_job().items()
    }
    assert all('["g' in text for text in files.values())
    del files["nccl_trace_rank_5"]
    log = read_log(files, groupings(8, tp=4))
    assert [note.code for note in log.notes] == ["members-assumed"]


def test_a_layout_of_other_ranks_says_nothing_of_members():
    for world, tp in ((16, 4), (4, 4)):
        log = read_log(old_job(), groupings(world, tp=tp))
        assert "members-assumed" not in [note.code for note in log.notes]


def test_a_group_of_which_no_description_tells_must_once_have_been_called_by_all():
    """Two ranks that call can be all of a group, or a part of tp."""
    files = {f"nccl_trace_rank_{rank}": old_dump((1, 1, 1, False)) for rank in (0, 1)}
    files |= {f"nccl_trace_rank_{rank}": old_dump() for rank in (2, 3)}
    log = read_log(files, groupings(4, tp=4))
    assert "members-assumed" not in [note.code for note in log.notes]


# -- who is to blame where several groups wait ---------------------------------------------------


def dumps_of(groups: dict[str, tuple[int, ...]], *ranks: str, **fields: object) -> dict[str, str]:
    """Dumps of ranks by what each called: ``a`` an all-reduce of group a that waits, ``a!`` one
    that ended, ``a:all_gather`` another operation. Of gloo, dumps do not say the members."""
    backend = str(fields.pop("backend", "nccl"))
    config = {name: {"name": name, "desc": "D", "ranks": [*members]} for name, members in
              groups.items() if backend == "nccl"}  # fmt: skip
    files = {}
    for rank, words in enumerate(ranks):
        entries, called = [], dict.fromkeys(groups, 0)
        for at, word in enumerate(words.split()):
            name, _, op = word.rstrip("!").partition(":")
            called[name] += 1
            entries.append({
                "record_id": at, "process_group": [name, "D"], "collective_seq_id": called[name],
                "profiling_name": f"{backend}:{op or 'all_reduce'}", "time_created_ns": at + 1,
                "state": "completed" if word.endswith("!") else "scheduled",
                "input_sizes": [[4]], "output_sizes": [[4]], **fields,
            })  # fmt: skip
        dump = {"version": "2.5", "pg_config": config, "entries": entries}
        files[f"nccl_trace_rank_{rank}"] = json.dumps(dump)
    return files


QUADS = {"a": (0, 1, 2, 3), "b": (4, 5, 6, 7)}
PAIRS = {"a": (0, 1), "b": (1, 2)}
BLAMED = {
    "each of two idle ranks holds up a group: the job still moved":
        ({"a": (0, 1), "b": (2, 3)}, ("a", "", "b", ""), (), (1, 3), "unclear"),
    "a group that called different things waits for a rank that is not there":
        (PAIRS, ("a", "b a:all_gather", ""), (1, 2), (), "different"),
    "one went alone into what three never did":
        (QUADS, ("a", "", "", ""), (), (0,), "unclear"),
    "two are not there, and elsewhere one went alone":
        (QUADS, ("a", "a", "", "", "b", "", "", ""), (2, 3), (4,), "absent"),
    "an earlier call that ended differed: what is paired after it is wrong":
        ({"a": (0, 1, 2)}, ("a! a", "a! a", "a:all_gather! a"), (2,), (), "different"),
}  # fmt: skip


def test_who_is_to_blame_and_who_may_be():
    found = {}
    for name, (groups, ranks, *_) in BLAMED.items():
        log = read_log(dumps_of(groups, *ranks))
        found[name] = [log.missing, log.diagnosis.suspects, log.diagnosis.reason]
        for note in (*account_of(log), *account_of(log, groupings(8, tp=4))):
            assert hang_sentence(note.code, note.facts, "en")
    assert found == {name: expected for name, (_, _, *expected) in BLAMED.items()}


def test_the_first_sentence_is_true_of_the_group_that_it_names():
    """What is said of several culprits, or of none, where groups wait for different reasons."""
    log = read_log(dumps_of(PAIRS, "a", "b a:all_gather", ""))
    first = account_of(log)[0]
    assert (log.missing, first.code, first.facts["rank"]) == ((1, 2), "other-op", 1)
    groups = {"a": (0, 1, 2, 3), "b": (4, 5)}  # 0 went alone; b differs, and who is right is open
    log = read_log(dumps_of(groups, "a", "", "", "", "b:gather", "b:scatter"))
    first = account_of(log)[0]
    assert (log.missing, first.code, first.facts["group"]) == ((), "parties-differ", "b:D")
    assert [party[:2] for party in first.facts["parties"]] == [((4,), "gather"), ((5,), "scatter")]


def test_the_one_that_waits_nowhere_is_missing_where_dumps_do_not_say_the_members():
    """Rank 2 ended its call beside rank 3, that waits in the next; 0 and 1 wait for somebody."""
    log = read_log(dumps_of(QUADS, "a", "a", "b!", "b! b", backend="gloo"))
    assert (log.missing, log.diagnosis.suspects, log.diagnosis.reason) == ((2,), (), "absent")
    first = account_of(log)[0]
    assert (first.code, first.facts["rank"], first.facts["group"]) == ("never-entered", 2, "b:D")


def test_nobody_is_named_where_it_may_be_one_without_a_dump_or_all_have_arrived():
    files = dumps_of({"a": (0, 1)}, "a! a", "", "", backend="gloo")
    del files["nccl_trace_rank_1"]
    for evidence_, suspects in (
        (files, (2,)),  # 1 may be missing as well
        (dumps_of({"a": (0, 1)}, "a", "a!", backend="gloo"), ()),  # what 0 waits in is done for 1
    ):
        log = read_log(evidence_)
        assert (log.missing, log.diagnosis.suspects, log.diagnosis.reason) == (
            *((), suspects),
            "unclear",
        )


def test_a_send_whose_sizes_are_not_those_of_its_receive():
    def files(place: int, elements: int = 5) -> dict[str, str]:
        ends = (("send 0->1", 4), ("recv 1<-0", elements))
        both = [
            dumps_of({"a": (0, 1)}, "a", profiling_name=f"nccl:{op}".replace("1", str(place)),
                     is_p2p=True, p2p_seq_id=1, input_sizes=[[n]], output_sizes=[[n]])
            for op, n in ends
        ]  # fmt: skip
        return {f"trace_{rank}": one["nccl_trace_rank_0"] for rank, one in enumerate(both)}

    log = read_log(files(1))
    assert (log.missing, log.diagnosis.reason, agreed(log, "op")) == ((), "different", "send/recv")
    assert [party.sizes for party in log.diagnosis.first.parties] == ["[[4]]", "[[5]]"]
    assert read_log(files(1, 4)).diagnosis.reason == "all-arrived"
    assert read_log(files(9)).diagnosis.waits == ()  # a place that the group has not


SIX = {rank: status(rank, TP, rank, 7, 7) for rank in range(6)}


def test_the_one_that_differs_from_three_that_agree_is_the_odd_one():
    def log(op: str, elements: int, agreeing: int = 3):
        lines = [watchdog(rank, 7, op) + SIX[rank] for rank in range(agreeing)]
        other = watchdog(4, 7, op).replace("NumelIn=4", f"NumelIn={elements}") + SIX[4]
        return read_log("".join([*lines, other]))

    assert (log("ALLREDUCE", 5).missing, log("ALLREDUCE", 4).missing) == ((4,), ())
    assert log("ALLREDUCE", 5).diagnosis.reason == "different"
    assert log("ALLREDUCE", 5, agreeing=2).missing == ()
    assert log("ALLTOALL", 5).missing == ()  # ranks may send each other more or less
    also = read_log(  # in another group one is not there: what is said of it is not "different"
        "".join(watchdog(rank, 7, "ALLREDUCE") + SIX[rank] for rank in (0, 1))
        + watchdog(2, 7, "ALLGATHER") + SIX[2]
        + watchdog(8, 3, "ALLREDUCE") + status(8, DP, 0, 3, 3) + status(9, DP, 1, 2)
    )  # fmt: skip
    assert (also.missing, also.diagnosis.reason) == ((9,), "absent")
    first = account_of(also)[0]
    assert (first.code, first.facts["rank"], first.facts["seq"]) == ("never-entered", 9, 3)


# -- what dumps and reports do not say plainly ---------------------------------------------------


def test_a_dump_without_a_rank_in_its_name_is_told_by_its_groups():
    pair, quad = dumps_of(PAIRS, "", "a b")["nccl_trace_rank_1"], dumps_of(QUADS, "a")
    assert read_log({"x": pair}).dumped == (1,)  # the only one in both
    (quad,) = quad.values()
    unknown = read_log({"x": quad})
    assert (unknown.dumped, [note.code for note in unknown.notes]) == ((), ["dump-without-rank"])
    for op, rank in (("send 2->3", 2), ("recv 2<-3", 2), ("send 9->3", None)):
        ends = quad.replace("all_reduce", op).replace('"process_group"', '"is_p2p": 1, "p2p_seq_id"'
                                                      ': 1, "process_group"')  # fmt: skip
        assert read_log({"x": ends}).dumped == (() if rank is None else (rank,)), op


def test_entries_of_another_form_are_counted_and_left_out():
    dump = json.loads(dumps_of(PAIRS, "a! a")["nccl_trace_rank_0"])
    whole, cut = dump["entries"]
    whole["collective_seq_id"], whole["pg_id"] = "1", "0"  # as JSON of older versions has them
    dump["pg_config"]["c"] = {"name": "c", "desc": "D", "ranks": "[]"}  # which says nothing
    dump["pg_config"]["d"] = {"name": 3, "desc": "D", "ranks": "[0]"}
    for broken in ({"profiling_name": 3}, {"process_group": "a"}, {"collective_seq_id": None}):
        dump["entries"] = [whole, {**cut, **broken}]
        log = read_log({"trace_0": json.dumps(dump)})
        assert [(note.code, note.facts["count"]) for note in log.notes] == [
            ("entries-unreadable", 1)
        ]
        assert log.ranks == (0, 1)


def test_ranks_whose_process_does_not_answer_nccl_are_places_in_a_communicator():
    text = REPORT + "  The missing ranks: 3, 5\n"
    missing = [{"rank": 3}, {"rank": None}, {"rank": 5}]
    member = {"hash": "0xab", "ranks": [{"rank": "x"}], "missing_ranks": missing}
    report = {"communicators": {"communicators": [member]}}
    for evidence_, name in ((text, "#0-0 (78db921d1c117b4a)"), (json.dumps(report), "#0 (0xab)")):
        log = read_log(evidence_)
        assert (log.ranks, {3, 5} <= {*log.group_ranks}, log.missing) == ((), True, ())
        said = [note.facts for note in log.notes if note.code == "process-unreachable"]
        assert said == [{"communicator": name, "rank": rank} for rank in (3, 5)]


def test_line_ends_of_windows_and_colours_say_nothing():
    text = (STUCK + status(3, TP, 3, 6)).replace("\n", "\r\n")
    assert read_log(f"\x1b[31m{text}\x1b[0m").missing == (3,)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("HIERARCHICAL_CONTEXT_PARALLEL_GROUPS_L1", "hcp-l1"),
        ("HYBRID_DP_CP_GROUP_8", "hybrid-dp-cp-8"),
        ("undefined", None),
    ],
)
def test_kinds_of_groups_by_what_megatron_calls_them(line, kind):
    log = read_log(f"[rank3]: [PG ID 4 PG GUID 9({line}) Rank 1] PG status: last enqueued work: 6")
    key = "PG GUID 9" if kind is None else line
    assert (log.groups, log.group_ranks) == ({key: kind}, (1,))


def test_the_first_group_of_a_job_is_of_all_ranks_even_without_a_description():
    log = read_log(status(3, "0(undefined)", 3, 6))
    assert (log.groups, log.group_ranks) == ({"PG GUID 0": "world"}, ())


def test_numbers_beside_no_rank_of_the_job():
    of_all = read_log("[PG ID 0 PG GUID 0(default_pg) Rank 5] Timeout at NCCL work: 7")
    assert (of_all.ranks, of_all.stalls[0].rank) == ((5,), 5)
    aborted = "NCCL communicator was aborted on rank {}."
    assert read_log(aborted.format(3)).ranks == (3,)  # before 2.2 that is the rank of the job


def test_as_many_shapes_groups_and_lists_are_read_as_a_text_has(monkeypatch):
    """More than are kept at a time; lines of work have an end."""
    monkeypatch.setattr(lines, "MOST_SHAPES", 4)
    assert read_log("\n".join(f"rank {at}: {'x' * at}" for at in range(7))).ranks == (*range(7),)
    monkeypatch.setattr(reading, "MOST_NAMES", 4)
    printed = (f"[rank1]: [PG ID 1 PG GUID {n}(tp{n}) Rank 0] x" for n in [*range(7), 0])
    assert len(read_log("\n".join(printed)).groups) == 7
    monkeypatch.setattr(reading, "MOST_STALLS", 2)
    log = read_log("".join(watchdog(at, 7, "ALLREDUCE") for at in range(3)))
    assert (len(log.stalls), log.ranks) == (2, (0, 1, 2))
    listed = (f"missing ranks: [{rank}, 1]" for rank in range(300))
    assert len(read_log("\n".join(listed)).missing) == 300


def test_a_text_that_costs_too_much_is_read_up_to_where_that_is_said(monkeypatch):
    monkeypatch.setattr(lines, "MOST_WORK", 200)
    log = read_log("\n".join(f"rank {rank} failed" for rank in range(100)))
    assert 0 < len(log.ranks) < 100
    (note,) = log.notes
    assert (note.code, note.facts["before"]) == ("text-cut", f"'rank {log.ranks[-1]} failed'")


def test_a_second_communicator_for_all_gathers_is_told_from_the_group_that_scatters():
    """Its ranks are those of dp-cp, also beside a layout that does not say that it exists."""
    name = "DATA_PARALLEL_GROUP_WITH_CP"
    text = "".join(
        f"[rank4]:[E] [PG ID {n} PG GUID {n}{n}({name}{twin}) Rank 2] Timeout at NCCL work: 3\n"
        for n, twin in ((1, ""), (2, "_AG"))
    )
    log = read_log(text)
    assert sorted(filter(None, log.groups.values())) == ["dp-cp", "dp-cp-ag"]
    rows = match_layout(log, 8, tp=2).rows
    assert [row.members for row in rows] == [(0, 2, 4, 6)] * 2
    assert all(row.agrees for row in rows)
    twin = match_layout(log, 8, tp=2, create_all_gather_group=True).rows[1]
    assert twin.names[0] == "dp-cp-ag"
