"""Profiler traces: recorded ones, streams cut anywhere, overlap as HTA has it, refusals."""

from __future__ import annotations

import gzip
import io
import json
import random
import tracemalloc
from pathlib import Path

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cli.command import run
from diagnosis.slow.spans import Spans, length, shared, union
from diagnosis.slow.summary import job_of, summary_of
from formats.traces import TraceBounds, read_file, read_folder, read_trace
from formats.traces.stream import TraceStream
from groups.errors import LayoutError

DATA = Path(__file__).with_name("data") / "traces"
GLOO, NCCL = DATA / "gloo", DATA / "nccl_data.json.gz"

SMALL = TraceBounds(block=64)


def written(events: list, **about) -> bytes:
    return orjson.dumps({**about, "traceEvents": events, "traceName": "x"})


def read(data: bytes, bounds: TraceBounds | None = None):
    return read_trace(io.BytesIO(data), "t.json", bounds)


def kernel(name: str, start: float, duration: float, **args) -> dict:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": duration, "args": args}


def nccl(start: float, duration: float, group: str = "1", **args) -> dict:
    said = {"Collective name": "allreduce", "In msg nelems": 4, "Out msg nelems": 4}
    said |= {"dtype": "BFloat16", "Process Group Name": group, **args}
    return kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", start, duration, **said)


# -- recorded -------------------------------------------------------------------------------------


def test_four_recorded_processes_are_one_job():
    job = job_of(read_folder(GLOO))
    assert str(job.layout.mesh) == "tp2-cp1-dp2-pp1"
    assert [rank.rank for rank in job.ranks] == [0, 1, 2, 3]
    members = {(group.kind, group.ranks) for group in job.groups}
    assert members == {
        *(("tp", pair) for pair in ((0, 1), (2, 3))),
        *(("dp", pair) for pair in ((0, 2), (1, 3))),
        ("world", (0, 1, 2, 3)),
    }
    for rank in job.ranks:
        assert (rank.steps, rank.backend, rank.computation_us) == (2, "gloo", None)
        (unknown,) = rank.groups  # gloo says no group
        assert (unknown.group, unknown.exposed_us) == (None, None)
        assert {calls.kind: calls.count for calls in unknown.calls} == {
            "all_reduce": 4,
            "barrier": 2,
        }
        assert set(rank.notes) == {"no-kernels", "groups-unknown"}


@pytest.mark.parametrize(
    ("name", "overlap", "compute"),
    [
        ("nccl_data", 15.61, 115_655.847),
        ("sampled_rank-0", 14.95, 210_320.0),
        ("sampled_rank-1", 19.93, 271_973.0),
    ],
)
def test_exposed_time_is_that_of_holistic_trace_analysis(name, overlap, compute):
    """Its comp_comm_overlap_pctg and compute_time(us) of whole public traces; SOURCE.md has how."""
    found = summary_of(read_file(DATA / f"{name}.json.gz"))
    whole = found.whole
    assert round(100 * whole.overlapped_us / whole.busy_us, 2) == overlap
    assert found.computation_us == pytest.approx(compute, abs=0.01)


def test_a_public_trace_is_read_whole():
    trace = read_file(NCCL)
    assert (trace.kernels, len(trace.collectives), len(trace.steps)) == (2700, 21, 3)
    assert {call.group for call in trace.collectives} == {"0"}
    assert trace.groups["0"].ranks == (0, 1)
    first = trace.collectives[0]
    assert (first.kind, first.dtype, first.bytes) == ("broadcast", "Float", 4 * 53120)


# -- as a stream ----------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none()
    | st.integers(-9, 9)
    | st.sampled_from(["", "}, {", "]}", '"', "\\", "核", "}  ,\n{"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "traceEvents", "}, {"]), inner, max_size=3)
    ),
    max_leaves=6,
)
EVENTS = st.lists(st.dictionaries(st.sampled_from(["ph", "name", "args"]), VALUES), max_size=12)


@given(
    EVENTS,
    st.dictionaries(st.sampled_from(["b", "}, {"]), VALUES),
    st.integers(2, 90),
    st.booleans(),
)
@settings(max_examples=120, deadline=None)
def test_blocks_of_any_size_hold_the_events_of_the_whole(events, about, block, indented):
    whole = {"head": about, "traceEvents": events, "tail": about}
    data = json.dumps(whole, indent=2 if indented else None, ensure_ascii=False).encode()
    stream = TraceStream(io.BytesIO(data), "t", TraceBounds(block=block))
    assert [event for events in stream for event in events] == events
    assert stream.about == {"head": about, "tail": about}
    assert stream.count == len(events)


def test_the_groups_may_stand_behind_the_events_and_the_file_may_be_packed():
    info = {"rank": 2, "world_size": 4, "pg_config": [
        {"pg_name": "0", "pg_desc": "default_pg", "pg_size": 4, "ranks": [0, 1, 2, 3]},
        {"pg_name": "1", "pg_desc": "mesh_tp", "pg_size": 2, "ranks": [2, 3]},
    ]}  # fmt: skip
    data = orjson.dumps({"traceEvents": [nccl(0, 5)], "distributedInfo": info})
    for content in (data, gzip.compress(data), b"\xef\xbb\xbf" + data):
        trace = read(content)
        assert (trace.rank, trace.world, trace.groups["1"].kind) == (2, 4, "tp")


class Endless(io.RawIOBase):
    """A trace of so many kernels, made as it is read."""

    def __init__(self, count: int) -> None:
        event = orjson.dumps(kernel("gemm", 5, 1, grid=[1, 2, 3], note="x" * 200))
        self.parts = iter([b'{"traceEvents": [', *[event + b",\n"] * count, event, b"]}"])
        self.rest = b"  "

    def read(self, size: int = -1) -> bytes:
        while len(self.rest) < size and (part := next(self.parts, b"")):
            self.rest += part
        taken, self.rest = self.rest[:size], self.rest[size:]
        return taken

    def seek(self, *_: int) -> int:
        return 0


def test_a_long_trace_needs_the_memory_of_a_block():
    peaks = []
    for count in (1_000, 20_000):
        file = Endless(count)
        tracemalloc.start()
        trace = read_trace(file, "t", TraceBounds(block=16_384))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert trace.kernels == count + 1
    assert peaks[1] < peaks[0] + 1_500_000  # of 6 MB that 19,000 more events have


# -- time -----------------------------------------------------------------------------------------

PIECES = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 9)), max_size=12)


@given(PIECES, PIECES)
def test_what_pieces_of_time_share_is_counted_moment_by_moment(one, other):
    sets = [
        {at for start, long in pieces for at in range(start, start + long)}
        for pieces in (one, other)
    ]
    unions = []
    for pieces in (one, other):
        starts = np.array([float(start) for start, _ in pieces])
        unions.append(union(starts, starts + [float(long) for _, long in pieces]))
    assert [length(covered) for covered in unions] == [*map(len, sets)]
    assert shared(*unions) == len(sets[0] & sets[1])


def test_many_pieces_are_put_together_as_they_come():
    class Few(Spans):
        MANY = 64

    spans = Few()
    for at in range(640):
        spans.add(at // 64 + at % 64 / 128, 1 / 128)  # of 64 pieces one begins where another ends
    assert len(spans) <= 2 * 64
    assert len(spans.union()) == 10
    assert length(spans.union()) == pytest.approx(5)


# -- what versions write --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "ranks"),
    [
        ({"Process Group Ranks": "[4, 5]", "Group size": 2}, (4, 5)),
        ({"Process Group Ranks": "[0, 8, ...]", "Group size": 3, "Global rank start": 0,
          "Global rank stride": 8}, (0, 8, 16)),
        ({"Process Group Ranks": "[0, 8, ...]", "Group size": 3}, None),
        ({"Process Group Ranks": "[0, 8]", "Group size": 3}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_members_are_listed_or_told_by_steps(args, ranks):
    assert read(written([nccl(0, 5, **args)])).groups["1"].ranks == ranks


def test_a_kernel_without_metadata_has_that_of_its_launch():
    launch = nccl(0, 1, "7", Seq=3, **{"External id": 12, "Process Group Description": "mesh_tp"})
    launch |= {"cat": "cpu_op", "name": "record_param_comms"}
    ran = kernel("ncclKernel_AllGather_RING", 20, 30, **{"External id": 12})
    other = kernel("ncclKernel_SendRecv(ncclDevComm*)", 60, 1, **{"External id": 13})
    for events in ([launch, ran, other], [ran, other, launch]):
        call, lone = read(written(events)).collectives
        assert call[:7] == ("7", "allreduce", 20.0, 30.0, 3, 8, "BFloat16")
        assert (lone.group, lone.kind) == (None, "sendrecv")


def test_a_group_was_a_number_before_it_had_a_name():
    old = nccl(0, 1)
    old["args"]["Process Group ID"] = old["args"].pop("Process Group Name") and 5
    assert read(written([old])).collectives[0].group == "5"


def test_groups_overlap_each_for_itself():
    events = [nccl(0, 10, "1"), nccl(5, 10, "2"), kernel("gemm", 8, 4), kernel("Memcpy x", 0, 99)]
    summary = summary_of(read(written(events)))
    times = {time.group.name: (time.busy_us, time.overlapped_us) for time in summary.groups}
    assert times == {"1": (10, 2), "2": (10, 4)}
    assert (summary.whole.busy_us, summary.whole.overlapped_us, summary.whole.exposed_us) == (
        15,
        4,
        11,
    )


# -- what is no trace -----------------------------------------------------------------------------

GOOD = written([nccl(0, 1), kernel("gemm", 0, 3)])
ZIPPED = gzip.compress(GOOD, mtime=0)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "not-a-trace"),
        (b"[1, 2]", "not-a-trace"),
        (b'{"a": 1}', "not-a-trace"),
        (b'{"a": "traceEvents: ["}', "not-a-trace"),
        (b"\x80pickle", "not-a-trace"),
        (gzip.compress(b"hello", mtime=0), "not-a-trace"),
        (GOOD[:-30], "trace-cut"),
        (GOOD[:-1], "trace-cut"),
        (ZIPPED[:-9], "trace-cut"),
        (ZIPPED[:40] + b"\xff" * 9 + ZIPPED[49:], "trace-broken"),
        (GOOD.replace(b'"ph"', b"ph", 1), "trace-broken"),
        (written([1, 2]), "trace-broken"),
        (b'{"traceEvents": [' + b"[" * 5_000 + b"]" * 5_000 + b"]}", "trace-broken"),
        (b'{"traceEvents": [{"a": "' + b"x" * (5 << 20) + b'"}]}', "trace-broken"),
        (b'{"x": "' + b"x" * (5 << 20) + b'", "traceEvents": []}', "not-a-trace"),
    ],
)
def test_what_is_no_whole_trace_is_refused(data, code):
    with pytest.raises(LayoutError) as refused:
        read(data)
    assert refused.value.code == code
    assert "t.json" in refused.value.what


def test_a_small_file_that_unpacks_to_much_is_refused_before_it_does():
    bomb = gzip.compress(b'{"traceEvents": [' + b"{},      \n" * 300_000)
    with pytest.raises(LayoutError) as refused:
        read(bomb, TraceBounds(slack=1 << 20))
    assert refused.value.code == "trace-dense"


@pytest.mark.parametrize("limit", ["bytes", "collectives", "members", "busy", "steps"])
def test_every_bound_is_kept(limit):
    step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 5}
    events = [nccl(0, 1), nccl(2, 1, "2"), kernel("a", 0, 1), kernel("b", 5, 1), step, step]
    assert read(written(events), TraceBounds(block=64)).kernels == 4
    with pytest.raises(LayoutError) as refused:
        read(written(events), TraceBounds(**{"block": 64, limit: 1}))
    assert refused.value.code == ("trace-too-large" if limit == "bytes" else "trace-holds-too-much")


def test_mutated_traces_are_read_or_refused():
    chance = random.Random(7)
    info = gzip.decompress((GLOO / "rank1.json.gz").read_bytes())
    tokens = [b"null", b"-1", b"1e999", b'"x"', b"[]", b"{}", b"{", b"]", b"\xff", b",", b"1" * 400]
    refused = 0
    for _ in range(200):
        data = bytearray(chance.choice([GOOD, info]))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 1, 9])] = chance.choice(tokens)
        try:
            job_of([read(bytes(data), SMALL)]).as_json()
        except LayoutError:
            refused += 1
    assert 40 < refused < 200


FIELDS = ["ts", "dur", "name", "cat", "args", "ph", "Seq", "Group size", "dtype", "External id"]
FIELDS += ["Collective name", "Process Group Name", "Process Group Ranks", "In msg nelems"]


@pytest.mark.parametrize("value", [None, [], {}, "x", -1, True, 1e308, "9" * 50, [[]]])
@pytest.mark.parametrize("key", FIELDS)
def test_a_field_of_any_kind_is_read_or_left_out(key, value):
    for category in ("kernel", "cpu_op", "user_annotation"):
        event = nccl(0, 1, **{"Seq": 1, "External id": 1}) | {"cat": category}
        (event if key in event else event["args"])[key] = value
        step = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "ts": 0, "dur": 5}
        summary = job_of([read(written([event, step | {key: value}]))]).as_json()
        assert json.loads(json.dumps(summary, allow_nan=False))


# -- the command ----------------------------------------------------------------------------------


def ask(*argv: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return run(["trace", *argv], io.StringIO(), out, err), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("command", ["trace", "slow", "running"])
@pytest.mark.parametrize("size", ["0", "-1", "eight", "8.5"])
def test_gpus_of_a_node_are_a_number_to_commands_without_a_layout_too(command, size):
    out, err = io.StringIO(), io.StringIO()
    status = run([command, str(NCCL), "--gpus-per-node", size], io.StringIO(), out, err)
    assert (status, out.getvalue()) == (2, "")
    assert "gpus_per_node must be a whole number from 1 up" in err.getvalue()


def test_the_command_says_what_ran_and_what_was_exposed():
    status, out, err = ask(str(GLOO), "--format", "text")
    assert (status, err) == (0, "")
    assert "ran: tp2-cp1-dp2-pp1 (PyTorch DeviceMesh)" in out
    status, out, err = ask(str(NCCL), "--format", "csv")
    name, *_, hidden, exposed = out.splitlines()[1].split(",")
    assert (name, hidden, exposed) == ("default_pg", "7.317", "39.559")


def test_the_summary_is_small_and_whole():
    document = json.loads(ask(str(GLOO))[1])
    assert (document["schema"], document["world_size"]) == ("parallel-trace", 4)
    assert len(document["summary"]["ranks"]) == 4
    assert len(ask(str(GLOO))[1]) < 12_000
    (group,) = document["summary"]["ranks"][0]["groups"]
    assert (group["group"], group["count"], group["exposed_us"]) == (None, 6, None)


def test_a_bad_file_among_good_ones_is_a_remark(tmp_path):
    (tmp_path / "a.json").write_bytes(GOOD)
    (tmp_path / "b.json").write_bytes(GOOD[:-5])
    (tmp_path / "c.txt").write_text("no trace by its name")
    status, out, err = ask(str(tmp_path), "--format", "text")
    assert (status, err.count("\n")) == (0, 1)
    assert "'b.json' ends in the middle" in err
    assert out.startswith("1 trace, of 0 ranks\n")


def test_what_cannot_be_a_job_is_refused(tmp_path):
    assert "there is no .json" in ask(str(tmp_path))[2]
    assert "cannot read" in ask(str(tmp_path / "missing"))[2]
    for world in (2, 4):
        info = {"rank": 0, "world_size": world}
        (tmp_path / f"{world}.json").write_bytes(written([], distributedInfo=info))
    status, out, err = ask(str(tmp_path))
    assert (status, out, "not of one job" in err) == (2, "", True)
    (tmp_path / "4.json").write_text("x")
    (tmp_path / "2.json").write_text("x")
    status, out, err = ask(str(tmp_path))
    assert (status, out, "not a trace" in err) == (2, "", True)
