"""What people send as evidence of a hang costs no more than a request may: memory and work are
counted, time is not."""

from __future__ import annotations

import base64
import json
import pickle
import tracemalloc
import zlib
from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from dataclasses import replace

import pytest

from diagnosis.hang.model import Diagnosis, Log, ProcessGroup, Wait
from formats.logs import read_log
from formats.logs.bounds import PAGE, Allowance, Bounds
from formats.logs.evidence import _document
from formats.logs.recorder import as_dump
from groups import LayoutError
from groups.budget import LIMIT, within
from request.answers.hang.files import digest_of, log_of
from request.digests import LONGEST, MOST_PARTS, MOST_PLAIN
from request.words import sentence
from views.evidence import evidence
from views.server.lanes import LIGHT, Bite, TooHeavyError

MEGABYTE = 2**20


def peak_of(work: Callable[[], object]) -> int:
    """Bytes of memory that the work has at most beside what there was."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


# -- digests: read where everybody is served -----------------------------------------------------


def packed(plain: str) -> str:
    return base64.b64encode(zlib.compress(plain.encode(), 9)).decode()


MANY = 2_500_000
UNPACKS_TO = {
    "empty lists": '{"ranks":[' + "[]," * MANY + "0]}",
    "empty objects": '{"ranks":[' + "{}," * MANY + "0]}",
    "nested lists": '{"ranks":' + "[" * MANY,
    "nested objects": '{"a":' * (MANY // 4),
    "missing ranks": '{"missing":[' + "1," * 3_900_000 + "0]}",
    "ranks": '{"ranks":[' + "1," * (MOST_PLAIN // 2 - 9) + "0]}",
    "lists of one": '{"ranks":[' + "[0]," * MANY + "0]}",
    "lists in stalls": '{"stalls":[' + "[]," * (MOST_PARTS + 1) + "0]}",
    "as many lists as are read": '{"ranks":[' + "[]," * (MOST_PARTS - 9) + "0]}",
    "notes": '{"notes":[' + '{"code":"?","facts":{}},' * (MOST_PARTS // 2 - 9) + "0]}",
    "one text": '{"ranks":"' + "x" * MANY + '"}',
    "one number": '{"ranks":[' + "9" * MANY + "]}",
    "one text many times": '{"notes":["' + '","'.join(["long" * 99] * 9_000) + '"]}',
    "spaces": '{"ranks":[' + " " * MANY + "]}",
}


@pytest.mark.parametrize("name", UNPACKS_TO)
def test_a_short_digest_that_unpacks_to_much_is_refused_or_begun_anew_in_the_worker(name):
    text = packed(UNPACKS_TO[name])
    assert len(text) < 60_000

    def in_the_server() -> None:
        with pytest.raises((LayoutError, TooHeavyError)) as refused, within(LIGHT, Bite):
            log_of(text)
        assert getattr(refused.value, "code", "bad-digest") == "bad-digest"

    assert peak_of(in_the_server) < 8 * MEGABYTE


@pytest.mark.parametrize("name", ["ranks", "as many lists as are read", "notes"])
def test_the_largest_digests_are_no_light_work_and_cost_less_than_a_request_may(name):
    with within() as budget, suppress(LayoutError):
        log_of(packed(UNPACKS_TO[name]))
    assert LIGHT < budget.spent < LIMIT // 4


def test_the_digest_of_a_large_job_is_read_where_it_is_asked_for():
    """512 GPUs that wait in 512 groups, as dumps of 512 ranks say them."""
    groups = [
        ProcessGroup(f"{name}:TENSOR_MODEL_PARALLEL_GROUP", str(name), "TENSOR", "tp", ranks, True)
        for name in range(512)
        for ranks in [tuple(range(name // 8 * 8, name // 8 * 8 + 8))]
    ]
    waits = tuple(
        Wait(group, "all_reduce", 30, waiting=group.members[1:], absent=group.members[:1])
        for group in groups
    )
    every = tuple(range(512))
    log = Log(every, process_groups=tuple(groups), dumped=every, diagnosis=Diagnosis(waits=waits))
    text = digest_of(log)
    assert len(text) < LONGEST // 10
    with within(LIGHT, Bite):
        assert log_of(text) == log


def test_of_more_lists_than_are_read_a_digest_keeps_fewer_groups():
    waits = tuple(
        Wait(ProcessGroup(f"g{at}", None, None, "tp", (at,)), "op", 1, (at,))
        for at in range(20_000)
    )
    kept = log_of(digest_of(Log(diagnosis=Diagnosis(waits=waits))))
    assert 64 <= len(kept.diagnosis.waits) < len(waits)
    text = zlib.decompress(base64.b64decode(digest_of(Log(diagnosis=Diagnosis(waits=waits)))))
    assert text.count(b"[") + text.count(b"{") <= MOST_PARTS


# -- files: read in the worker, within bounds ----------------------------------------------------

SMALL = Bounds(memory=MEGABYTE, entries=500, groups=1_000, ranks=5_000, held=5_000, slack=50_000)
"""The limits of a page for small files: what grows with a file is seen in these."""

SIZE = 120_000
BEGIN = b"\x80\x02"
AS_DUMP = b"}(X\x07\0\0\0versionX\x01\0\0\x002X\x07\0\0\0entries]("


def filled(before: bytes, unit: bytes, after: bytes = b".") -> bytes:
    return before + unit * (SIZE // len(unit)) + after


def entry(number: int) -> dict[str, object]:
    call = {"process_group": ("0", "d"), "profiling_name": "nccl:a", "collective_seq_id": number}
    return {**call, "state": "started"}


def dump_of(**fields: object) -> bytes:
    return pickle.dumps({"version": "2", **fields}, 2)


def config_of(names: int, ranks: object) -> dict[str, object]:
    return {str(at): {"name": f"g{at}", "desc": "tp", "ranks": ranks} for at in range(names)}


PICKLES = {
    "lists": filled(BEGIN, b"]"),
    "dicts": filled(BEGIN, b"}"),
    "marks": filled(BEGIN, b"("),
    "None": filled(BEGIN, b"N"),
    "empty tuples": filled(BEGIN, b")"),
    "tuples of tuples": filled(BEGIN + b"N", b"\x85"),
    "tuples": filled(BEGIN + b"](", b"N\x85", b"e."),
    "what is remembered": BEGIN + b"N" + b"".join(
        b"r" + place.to_bytes(4, "little") for place in range(SIZE // 5)) + b".",
    "the same remembered again": filled(BEGIN + b"N", b"q\0"),
    "remembered without a number": filled(b"\x80\x04N", b"\x94"),
    "small numbers": filled(BEGIN + b"](", b"K\1", b"e."),
    "numbers": filled(BEGIN + b"](", b"M\1\5", b"e."),
    "floats": filled(BEGIN + b"](", b"G12345678", b"e."),
    "numbers as texts": filled(b"\x80\x00](", b"I1234\n", b"e."),
    "short texts": filled(b"\x80\x04](", b"\x8c\0", b"e."),
    "one after the other": filled(BEGIN + b"]N", b"N0"),
    "appended": filled(BEGIN + b"]", b"Na"),
    "in batches": filled(BEGIN + b"]", b"(" + b"K\1" * 1000 + b"e"),
    "entries of dicts": filled(BEGIN + AS_DUMP, b"}", b"eu."),
    "lists of one": filled(BEGIN + b"](", b"]K\1a", b"e."),
    "dicts of one": filled(BEGIN + b"X\1\0\0\0aq\0](", b"}h\0K\1s", b"e."),
    "calls": dump_of(entries=[entry(at) for at in range(SMALL.entries + 1)]),
    "entries that are none": dump_of(entries=[1] * (SMALL.entries + 1)),
    "groups": dump_of(pg_config=config_of(SMALL.groups + 1, "[0, 1]")),
    "ranks": dump_of(pg_config=config_of(1, "1," * (SMALL.ranks + 1))),
    "ranks as numbers": dump_of(pg_config=config_of(1, [7] * (SMALL.ranks + 1))),
    "ranks without a comma": dump_of(pg_config=config_of(1, "1 " * (SMALL.ranks + 1))),
}  # fmt: skip

JSON = {
    "lists": filled(b'{"version":"2","entries":[', b"[],", b"1]}"),
    "objects": filled(b'{"version":"2","entries":[', b"{},", b"1]}"),
    "objects of one": filled(b'{"version":"2","entries":[', b'{"a":1},', b"1]}"),
    "numbers": filled(b'{"version":"2","entries":[', b"1,", b"1]}"),
    "texts": filled(b'{"version":"2","entries":[', b'"",', b'""]}'),
    "nested": filled(b'{"version":', b"[", b""),
    "nested objects": filled(b'{"version":', b'{"a":', b""),
    "names": b'{"version":"2","entries":{' + b",".join(
        b'"%d":0' % at for at in range(SIZE // 8)) + b"}}",
    "communicators": filled(b'{"communicators":[', b"[],", b"1]}"),
    "entries": json.dumps({"version": "2", "entries": [1] * (SMALL.entries + 1)}).encode(),
    "groups": json.dumps({"version": "2", "pg_config": [{}] * (SMALL.groups + 1)}).encode(),
    "ranks": json.dumps(
        {"version": "2", "pg_config": config_of(1, "1 " * (SMALL.ranks + 1))}).encode(),
    "members of a report": json.dumps(
        {"communicators": [{"ranks": [{"rank": 3}] * (SMALL.ranks + 1)}]}).encode(),
}  # fmt: skip

TOO_MUCH = {"unpacks-to-too-much", "too-many-entries-sent", "too-many-groups-sent",
            "too-many-ranks-sent", "dump-dense", "dump-long"}  # fmt: skip


def refused(files: dict[str, bytes], bounds: Bounds = SMALL) -> LayoutError:
    with pytest.raises(LayoutError) as caught:
        read_log(files, bounds=bounds)
    return caught.value


@pytest.mark.parametrize("content", [*PICKLES.values(), *JSON.values()], ids=[*PICKLES, *JSON])
def test_a_file_that_holds_too_much_is_refused_with_count_and_limit_before_it_is_unpacked(content):
    found: list[LayoutError] = []
    assert peak_of(lambda: found.append(refused({"nccl_trace_rank_0": content}))) < 2 * MEGABYTE
    (error,) = found
    code = error.facts.get("because", error.code)
    assert code in TOO_MUCH
    assert {"count", "times"} & {*error.facts}
    limit = error.facts["limit"]
    assert isinstance(limit, int)
    assert f"{limit:,}" in error.what
    assert sentence(error, "zh") != sentence(error, "en")


def test_many_small_files_have_one_allowance():
    one = dump_of(entries=[entry(at) for at in range(60)])
    files = {f"nccl_trace_rank_{rank}": one for rank in range(SMALL.entries // 60 + 1)}
    assert refused(files).code == "too-many-entries-sent"
    dense = {f"f{at}": BEGIN + b"N" * 900 for at in range(1000)}
    assert refused(dense).code == "unpacks-to-too-much"
    lists = {f"f{at}": dump_of(pg_config=config_of(1, f"[{at}, {at + 1}]")) for at in range(20)}
    assert refused(lists, replace(SMALL, ranks=39)).facts["count"] == 40
    assert read_log(lists, bounds=replace(SMALL, ranks=40)).files == 20


def test_a_text_that_a_pickle_repeats_without_end_is_counted():
    sizes = [["long" * 40] * 16] * 64
    repeated = [{**entry(at), "input_sizes": sizes} for at in range(SMALL.entries)]
    content = dump_of(entries=repeated)
    assert refused({"nccl_trace_rank_0": content}).facts["because"] == "dump-dense"


def test_equal_lists_of_members_are_one_in_all_dumps():
    allowance = Allowance(SMALL)
    ranks = ("[0, 1, 2, 300]", [0, 1, 2, 300], "[0, 1, 2, 300]")
    dumps = [as_dump({"pg_config": config_of(9, one)}, "a", 0, allowance) for one in ranks]
    assert len({id(members) for dump in dumps for members in dump.members.values()}) == 1
    assert allowance.taken["ranks"] == 4


def test_dumps_of_512_ranks_are_far_within_the_bounds_of_a_page():
    """As recorders write them: 120 operations each, of four groups, in all protocols and JSON."""
    frames = [{"name": "forward", "filename": "/opt/megatron/core/mappings.py", "line": 104}]
    groups = [("0", "default_pg"), ("1", "TENSOR"), ("100", "DATA"), ("200", "PIPELINE")]
    tensors = {"input_sizes": [[4096, 1, 8192]], "input_dtypes": ["BFloat16"]}
    tensors |= {"output_sizes": [[4096, 1, 8192]], "output_dtypes": ["BFloat16"]}
    entries = [
        {"frames": frames, "record_id": at, "pg_id": at % 4, "process_group": groups[at % 4],
         "collective_seq_id": at // 4, "p2p_seq_id": 0, "op_id": at, "is_p2p": False,
         "profiling_name": "nccl:all_reduce", "time_created_ns": 1728 * 10**15 + at * 1000,
         "duration_ms": 1.5 + at, "state": "completed", "retired": True, "timeout_ms": 600_000,
         "time_discovered_started_ns": 1728 * 10**15 + at * 1000 + 5,
         "time_discovered_completed_ns": 1728 * 10**15 + at * 1000 + 9, **deepcopy(tensors)}
        for at in range(120)
    ]  # fmt: skip
    config = {
        str(at): {"name": name, "desc": desc, "ranks": str([*range(512)])}
        for at, (name, desc) in enumerate(groups)
    }
    document = {"version": "2.10", "pg_config": config, "entries": entries}
    contents = [pickle.dumps(document, protocol) for protocol in range(1, 6)]
    for content in (*contents, json.dumps(document).encode()):
        allowance = Allowance()
        dump = as_dump(_document(content, allowance), "a", 0, allowance)
        assert (len(dump.calls), len(dump.members["0"])) == (120, 512)
        shares = {
            what: 512 * count / getattr(PAGE, what) for what, count in allowance.taken.items()
        }
        assert shares.pop("bytes") < 2
        assert shares.pop("ranks") < 0.5
        assert max(shares.values()) < 0.5 or content[:1] == b"{"
        assert allowance.taken["memory"] < 20 * len(content)


# -- who waits for whom: no more work than a limit -----------------------------------------------


def call_of(group: object, seq: int, ended: bool = False) -> dict[str, object]:
    state = "completed" if ended else "started"
    return {**entry(seq), "process_group": (str(group), "tp"), "state": state}


def dumps_of(many: dict[int, list[dict[str, object]]], **config: str) -> dict[str, bytes]:
    """Dumps by rank: what each has called, and the members of groups by name."""
    groups = {
        str(at): {"name": name, "ranks": ranks} for at, (name, ranks) in enumerate(config.items())
    }
    return {
        f"nccl_trace_rank_{rank}": dump_of(pg_config=groups, entries=calls)
        for rank, calls in many.items()
    }


def alike(ranks: int, groups: int) -> dict[str, bytes]:
    """Ranks that wait in all groups, each in an order of its own."""
    calls = {
        rank: [call_of((at + rank) % groups, 1) for at in range(groups)] for rank in range(ranks)
    }
    return dumps_of(calls, **{str(at): str([*range(ranks)]) for at in range(groups)})


def apart(ranks: int, _: int) -> dict[str, bytes]:
    """Every rank waits in one group, at a number of its own."""
    return dumps_of(
        {rank: [call_of(0, rank)] for rank in range(ranks)}, **{"0": str([*range(ranks)])}
    )


def of_one_name(ranks: int, _: int) -> dict[str, bytes]:
    """As many groups of one name as there are ranks."""
    return {
        name: content
        for rank in range(ranks)
        for name, content in dumps_of(
            {rank: [call_of("g", at) for at in range(4)]}, g=str([rank, rank + 1])
        ).items()
    }


def in_turn(ranks: int, groups: int) -> dict[str, bytes]:
    """Each rank waits for another in every group: idle ones, without end."""
    calls = {rank: [call_of(at, 1) for at in range(rank % groups)] for rank in range(ranks)}
    return dumps_of(calls, **{str(at): str([*range(ranks)]) for at in range(groups)})


@pytest.mark.parametrize("made", [alike, apart, of_one_name, in_turn])
def test_who_waits_for_whom_is_found_within_a_limit_of_work(made):
    with within() as small:
        read_log(made(16, 8))
    with within() as larger:
        read_log(made(32, 8))
    assert larger.spent <= 9 * max(small.spent, 100)
    with within(20 * PAGE.work) as large, suppress(LayoutError):
        read_log(made(160, 80), bounds=replace(PAGE, work=20_000))
    assert large.spent <= 40_000  # the one step that is refused is counted, and not done


def test_too_many_that_wait_for_each_other_are_refused_in_words():
    with pytest.raises(LayoutError) as error:
        read_log(in_turn(40, 20), bounds=replace(PAGE, work=50))
    assert error.value.facts["what"] == "groups"
    assert sentence(error.value, "zh") != sentence(error.value, "en")


def test_numbers_that_nobody_called_are_not_looked_at():
    calls = [call_of(0, 1, ended=True), call_of(0, 2**60)]
    log = read_log(dumps_of({0: calls, 1: calls[:1]}, **{"0": "[0, 1]"}))
    assert log.missing == (1,)


def test_an_operation_older_by_many_is_reached_over_those_between():
    """Rank 0 waits in three groups in turn; rank 3 alone is missing from the first of them."""
    calls = {
        0: [call_of(at, 1) for at in "abc"],
        1: [call_of("b", 1)],
        2: [call_of("c", 1)],
        3: [call_of("z", 1, ended=True)],
    }
    log = read_log(dumps_of(calls, a="[0, 3]", b="[0, 1]", c="[0, 2]"))
    assert (log.missing, len(log.diagnosis.waits)) == ((3,), 3)


# -- what is said of the files -------------------------------------------------------------------

HEADS = {
    "a long one": b'{"files":[["a",1]],"x":"' + b"y" * 5_000_000 + b'"}',
    "files": b'{"files":[' + b'["a",0],' * 120_000 + b'["a",1]]}',
    "lists": b'{"files":[' + b"[]," * 250_000 + b'["a",1]]}',
    "nested": b'{"files":' + b"[" * 250_000,
    "objects": b'{"files":[],"job":[' + b"{}," * 250_000 + b"0]}",
    "names": b'{"files":[],"job":{' + b'"a":0,' * 250_000 + b'"b":0}}',
    "numbers": b'{"files":[' + b"1," * 250_000 + b"0]}",
    "no end": b'{"files":[["a",1]' + b" " * 5_000_000,
}


@pytest.mark.parametrize("name", HEADS)
def test_more_than_16384_files_are_refused_before_their_names_are_read(name):
    said: list[str] = []
    body = HEADS[name].replace(b"{", b'{"lang":"zh",', 1) + b"\nz"
    assert peak_of(lambda: said.append(evidence(body))) < 6 * MEGABYTE
    assert json.loads(said[0])["refused"].startswith("文件超过 32 MB 或 16,384 个")
    said = [evidence(HEADS[name] + b"\nz")]
    assert "more than 32 MB or 16,384 files" in json.loads(said[0])["refused"].replace(
        "More", "more"
    )
    assert "python -m groups share FOLDER" in json.loads(said[0])["refused"]


def test_16384_files_are_read():
    files = {f"nccl_trace_rank_{rank}.log": b"x" for rank in range(PAGE.files)}
    head = {"lang": "en", "files": [[name, 1] for name in files]}
    body = json.dumps(head).encode() + b"\n" + b"".join(files.values())
    assert log_of(json.loads(evidence(body))["digest"]).files == PAGE.files


def test_one_line_without_end_is_not_looked_through():
    line = '"ranks": [' + "1, " * 3_000_000
    log = read_log({"a.log": line + "\n[rank3]: x"})
    assert [note.code for note in log.notes] == ["text-cut"]
    assert read_log("[rank3]: " + line[:100_000]).ranks[-1] == 3


def test_a_log_of_an_object_in_each_line_is_a_log_however_long():
    line = b'{"version": "2", "entries": [[],[],[],[],[],[],[]], "text": "[rank5]: timed out"}\n'
    assert read_log({"a.jsonl": line * 1_000}, bounds=SMALL).ranks == (5,)
