"""Other programs that tell who waits: Inspector's lines, Megatron's timers, Nsight's reports."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from cli.command import run
from diagnosis.slow import JobCalls, account_of, slowness_of, verdict_of
from diagnosis.slow.unnamed import with_groups
from formats.slow import read_evidence
from formats.slow.timers import TimerReading
from groups.errors import LayoutError
from groups.layout import Job
from tests.test_slow import GROUPS, LAYOUT, SlowJob

NAMES = {"tp": "mesh_tp", "dp": "mesh_dp", "pp": "mesh_pp", "world": "default_pg"}


def inspector(job: SlowJob, *, marked: bool, timed: bool, world: bool = True) -> dict[str, bytes]:
    """The lines of each process; marked: as since v4.3, one head for all that follows."""
    files = {}
    for rank in range(8):
        lines = []
        calls = [(GROUPS[call.group or ""](rank), call) for call in job.calls[rank]]
        calls = [one for one in calls if world or len(one[0]) < 8]
        numbers: dict[str, int] = {}
        for members, call in calls:
            name = f"0x{hash(members) & 0xFFFF:x}"
            numbers[name] = numbers.get(name, 0) + 1
            header = {"id": name, "rank": members.index(rank), "n_ranks": len(members), "nnodes": 2}
            if call.group:
                header["comm_name"] = f"{NAMES[call.group]}:{name}"
            about = {"header": header, "metadata": {"hostname": f"n{rank // 2}", "pid": 100 + rank}}
            op = "p2p" if call.peer is not None else "coll"
            perf = {op: call.kind, f"{op}_sn": numbers[name], f"{op}_exec_time_us": call.duration}
            if call.peer is not None:
                perf["p2p_peer"] = members.index(call.peer)
            if timed:
                perf["event_trace_ts"] = {"kernel_events": [{"kernel_start_ts": call.start}]}
            if marked:
                lines.append({**about, "dump_stats": {"coll_records": 1}})
            lines.append({**({} if marked else about), f"{op}_perf": perf})
        files[f"n{rank // 2}-pid{rank}.log"] = "\n".join(map(json.dumps, lines)).encode()
    return files


@pytest.mark.parametrize("marked", [False, True], ids=["v4.0", "v4.3"])
@pytest.mark.parametrize("timed", [False, True], ids=["short", "verbose"])
def test_the_lines_of_inspector_name_the_slow_rank(marked, timed):
    found = read_evidence(inspector(SlowJob({3: 900}, {}), marked=marked, timed=timed))
    assert found.world == 8
    assert {(group.kind, group.ranks) for group in found.groups if group.kind == "tp"} == {
        ("tp", GROUPS["tp"](rank)) for rank in range(8)
    }
    verdict = verdict_of(found, LAYOUT)
    assert (verdict.kind, verdict.ranks) == ("rank", (3,))
    assert bool(found.chains) == timed
    assert ("no-times" in found.notes) == (not timed)


def test_inspector_without_a_communicator_of_all_tells_no_ranks():
    with pytest.raises(LayoutError) as caught:
        read_evidence(inspector(SlowJob({}, {}), marked=True, timed=True, world=False))
    assert caught.value.code == "inspector-without-world"


def timers(slow: int, *, option: str = "all", level: int = 2) -> str:
    """What Megatron prints of eight ranks in four intervals (megatron/core/timers.py)."""
    names = {"forward-backward": 1, "forward-compute": 2, "backward-compute": 2, "forward-recv": 2}
    lines = []
    for interval in range(4):
        lines.append(f" iteration {interval:8d}/ 100 | elapsed time per iteration (ms): 500.0 |")
        if option != "all":
            lines.append("(min, max) time across ranks (ms):")
            lines.append("    forward-backward ...............................: (480.10, 493.20)")
            continue
        lines.append("times across ranks (ms):")
        for name, of_level in names.items():
            if of_level > level:
                continue
            lines.append(f"  {name}:")
            for rank in range(8):
                took = 100.0 + (rank * 7 + interval * 3) % 5 + 40 * (rank == slow)
                lines.append(f"     rank {rank:2d}: {took:.2f}")
    return "\n".join(lines)


def test_megatrons_timers_of_all_ranks_name_the_slow_one():
    found = read_evidence({"train.log": timers(5).encode()})
    verdict = verdict_of(found, LAYOUT)
    assert (verdict.kind, verdict.ranks, verdict.steps) == ("rank", (5,), 4)
    assert verdict.excess_us == pytest.approx(80_000, rel=0.1)
    assert found.ranks[0].kinds[0].kind == "pp"
    assert verdict_of(read_evidence({"a": timers(-1).encode()}), LAYOUT).kind == "nobody"
    for text, code in (
        (timers(5, option="minmax"), "timers-of-no-rank"),
        (timers(5, level=1), "timers-level"),
        ("nothing of it", "no-timers"),
    ):
        with pytest.raises(LayoutError) as caught:
            read_evidence({"a": text.encode()})
        assert caught.value.code == code


def test_megatrons_straggler_detector_names_a_rank_that_is_slow_in_nearly_all_reports():
    def report(slow: int, ms: float) -> str:
        return (
            f"[2026-05-01 10:00:00] | MnRtt/Rnk: 812.10ms/2 | MxRtt/Rnk: {ms:.2f}ms/{slow} | "
            f"MnEtpt/Rnk: 201.11TF/{slow} | MxEtpt/Rnk: 260.02TF/2"
        )

    for ranks, ms, kind in (
        ([5, 5, 5, 1], 1040, "rank"),
        ([5, 1, 6, 2], 1040, "nobody"),
        ([5] * 4, 820, "nobody"),
    ):
        reading = TimerReading()
        reading.read(report(rank, ms) for rank in ranks)
        verdict = verdict_of(reading.slowness())
        assert (verdict.kind, verdict.ranks) == (kind, (5,) if kind == "rank" else ())


def test_the_clock_and_the_heat_in_the_detectors_lines_are_told_where_they_are_the_same_gpus():
    """NVIDIA/Megatron-LM megatron/core/README_STRAGGLER.md: the line and its metrics."""

    def told(clock: int, hot: int) -> list[tuple[str, object, object]]:
        line = (
            "MnRtt/Rnk: 812.10ms/2 | MxRtt/Rnk: 1040.20ms/5 | MnTmp/Rnk: 52C/0 | "
            f"MxTmp/Rnk: 88.00C/{hot} | MnClk/Rnk: 1200MHz/{clock} | MxClk/Rnk: 1980MHz/0"
        )
        reading = TimerReading()
        reading.read([line] * 4)
        slow = reading.slowness()
        notes = account_of(slow)
        return [(note.code, note.facts["value"], note.facts["other"]) for note in notes[2:]]

    assert told(5, 5) == [("detector-clock", 1200, 1980), ("detector-heat", 88, 52)]
    assert told(5, 1) == [("detector-clock", 1200, 1980)]
    assert told(1, 1) == []


def detected(*lines: str):
    reading = TimerReading()
    reading.read("\n".join(lines).splitlines())
    return reading.slowness()


def sentences_of(slow) -> list[str]:
    return [note.code for note in account_of(slow)]


COMPOSER = """Train MinRoundTripTime/Rank: 810.00ms/2
Train MaxRoundTripTime/Rank: 1100.00ms/6
Train MinPower/Rank: 402000.00W/{cold}
Train MaxPower/Rank: 690000.00W/1
Train MinTemp/Rank: 41.00C/3
Train MaxTemp/Rank: 70.00C/{cold}
Train MinClock/Rank: 1980.00MHz/0
Train MaxClock/Rank: 1980.00MHz/0
"""


def test_composers_detector_has_a_line_for_each_value():
    """mosaicml/composer #3342: a GPU that draws least at a full clock waits for its host."""
    slow = detected(*[COMPOSER.format(cold=6)] * 4)
    verdict = verdict_of(slow)
    assert (verdict.kind, verdict.ranks, verdict.steps) == ("rank", (6,), 4)
    assert slow.straggler.watts == (402, 690)
    assert sentences_of(slow) == ["rank", "detector", "detector-heat", "detector-power-idle"]
    assert sentences_of(detected(*[COMPOSER.format(cold=1)] * 4)) == ["rank", "detector"]


def test_one_report_of_who_was_slowest_is_one_report():
    slow = detected(COMPOSER.format(cold=6))
    assert sentences_of(slow)[:2] == ["few-reports", "detector"]
    assert verdict_of(slow).ranks == ()


def test_low_power_with_a_low_clock_is_a_gpu_that_is_held_back():
    line = "MnRtt/Rnk: 812.10ms/2 | MxRtt/Rnk: 1040.20ms/5 | MnPwr/Rnk: 301796W/5 | "
    line += "MxPwr/Rnk: 683801W/18 | MnClk/Rnk: 1200MHz/5 | MxClk/Rnk: 1980MHz/0"
    codes = sentences_of(detected(*[line] * 3))
    assert codes == ["rank", "detector", "detector-clock", "detector-power-held"]


def nvrx(scores: dict[int, float], names: tuple[int, ...] = ()) -> str:
    """NVIDIA/nvidia-resiliency-ext straggler_det_callback.py: a warning, then both tables."""
    ids = ", ".join(f"StragglerId(rank={rank}, node='n{rank // 8}')" for rank in names)
    warning = "STRAGGLER DETECTION WARNING: Some GPUs have worse relative performance. Affected "
    rows = "".join(f"  Rank={r} Node=n{r // 8} Score={s:.2f}\n" for r, s in scores.items())
    own = "".join(f"  Rank={rank} Node=n{rank // 8} Score=0.99\n" for rank in scores)
    head = f"{warning}ranks: {{{ids}}}\n" if names else ""
    if not scores:
        return head
    return f"{head}\nGPU relative performance:\n{rows}\nGPU individual performance:\n{own}"


def test_a_score_below_the_detectors_own_bound_names_a_gpu_in_one_report():
    slow = detected("[NeMo I] " + nvrx({0: 0.98, 3: 0.62, 9: 1.0}, (3,)))
    verdict = verdict_of(slow)
    assert (verdict.kind, verdict.ranks, verdict.steps) == ("rank", (3,), 1)
    assert round(verdict.share, 2) == 0.38
    assert (verdict.host, sentences_of(slow)) == ("n0", ["rank-score", "detector-score"])
    assert slow.straggler.of == 1


def test_several_stragglers_are_all_named_and_a_close_race_names_nobody():
    slow = detected(*[nvrx({0: 1.0, 3: 0.5, 4: 0.6, 5: 0.99}, (3, 4))] * 2)
    assert (verdict_of(slow).kind, verdict_of(slow).ranks) == ("ranks", (3, 4))
    even = [nvrx({0: 0.97, 1: 0.99}), nvrx({0: 0.99, 1: 0.98}), nvrx({0: 0.98, 1: 1.0})]
    assert verdict_of(detected(*even)).kind == "nobody"


def test_a_warning_without_scores_names_its_ranks():
    slow = detected(*[nvrx({}, (77,))] * 3)
    assert (verdict_of(slow).kind, verdict_of(slow).ranks, slow.straggler.of) == ("rank", (77,), 3)


def test_nsights_reports_are_compared_in_the_only_groups_that_there_are(tmp_path):
    job = SlowJob({3: 900}, {})
    heads = (
        "Start (ns),Duration (ns),Name",
        "Name,Projected Start (ns),Projected Duration (ns),PID",
    )
    for rank in range(8):
        calls = [call for call in job.calls[rank] if call.group == "tp"]
        rows = {
            heads[0]: [
                f"{c.start * 1000:.0f},{c.duration * 1000:.0f},ncclDevKernel_AllReduce_RING(x)"
                for c in calls
            ],
            heads[1]: [
                f"NCCL:ncclAllReduce,{c.start * 1000:.0f},{c.duration * 1000:.0f},9" for c in calls
            ],
        }
        head = heads[rank % 2]
        (tmp_path / f"rank{rank}.csv").write_text(
            "\n".join(["Processing report", head, *rows[head]])
        )
    out, err = io.StringIO(), io.StringIO()
    only = ["--nodes", "4", "--gpus-per-node", "2", "--tp", "8"]
    assert run(["slow", str(tmp_path), *only], io.StringIO(), out, err) == 0, err.getvalue()
    assert "matched by size and order" in out.getvalue()
    out = io.StringIO()
    several = ["--nodes", "4", "--gpus-per-node", "2", "--tp", "2", "--pp", "2"]
    assert run(["slow", str(tmp_path), *several], io.StringIO(), out, err) == 0
    assert out.getvalue().startswith("The 8 traces have no collective in common")


@pytest.mark.parametrize(
    ("sizes", "settled"),
    [({"tp": 4, "pp": 1}, True), ({"tp": 2, "pp": 2}, False)],
    ids=["sizes differ", "alike"],
)
def test_the_size_of_a_group_tells_which_it_is_where_one_way_fits(sizes, settled):
    job, layout = JobCalls(), Job(nodes=1, gpus_per_node=8, **sizes).layout()
    for trace in (SlowJob({}, {}).trace(rank) for rank in range(8)):
        calls = tuple(
            c._replace(group=None, size=sizes["tp"] if c.group == "tp" else 2)
            for c in trace.collectives
            if c.group in ("tp", "dp")
        )
        trace.groups.clear()
        job.add(trace.__class__(**{**vars(trace), "collectives": calls}))
    with_groups(job, layout)
    found = {
        job.groups[place].kind for one in job.ranks.values() for place in one.group if place >= 0
    }
    assert found == ({"tp", "dp"} if settled else set())
    assert slowness_of(job).unmatched >= 0


def test_the_command_says_that_another_layout_ran():
    out, err = io.StringIO(), io.StringIO()
    gloo = str(Path(__file__).with_name("data") / "traces" / "gloo")
    asked = ["slow", gloo, "--nodes", "1", "--gpus-per-node", "4", "--tp", "4"]
    assert run(asked, io.StringIO(), out, err) == 0, err.getvalue()
    assert "4 of 4 ranks ran in other groups than those of this layout" in out.getvalue()


def test_the_lines_that_megatron_printed_are_read():
    """Four processes of megatron-core 0.16.1, of which rank 2 slept longer."""
    log = Path(__file__).with_name("data") / "slow" / "megatron_timers.log"
    verdict = verdict_of(read_evidence({"train.log": log.read_bytes()}))
    assert (verdict.kind, verdict.ranks, verdict.steps) == ("rank", (2,), 4)
    assert verdict.excess_us == pytest.approx(100_000, rel=0.01)


def test_a_log_may_begin_with_much_else(tmp_path):
    path = tmp_path / "train.log"
    path.write_text("  fp16 ............... None\n" * 5000 + timers(5))
    out, err = io.StringIO(), io.StringIO()
    assert run(["slow", str(path)], io.StringIO(), out, err) == 0, err.getvalue()
    assert out.getvalue().startswith("GPU 5 slows the others")
