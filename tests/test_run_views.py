"""The views Hang and Hosts: what they say of real evidence and real machines, and of nonsense."""

from __future__ import annotations

import base64
import json
import pickle
import re
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markup import select, text_of, values, written
from test_logs import old_job

from descriptions import REFUSALS, RUN
from diagnosis.hang.case import case_of
from diagnosis.hang.model import Diagnosis, Hop, Log, ProcessGroup, Wait
from formats.errors import refusal
from formats.logs import read_log
from groups import LayoutError
from request.answers.hang.example import watchdog_example
from request.answers.hang.files import digest_of, log_of
from request.context import Context
from request.digests import LONGEST
from request.hosts import hosts_of
from request.resolve import resolve
from request.state import State
from views.base.html import rest_text
from views.evidence import evidence
from views.hang.view import hang_pictures
from views.nodes.machines import example_of
from views.nodes.measures import SHOWN, measures_pictures
from views.page import answer
from views.parts.chain import CULPRIT, END, FIRST, chain_of, heat_of_chain
from views.parts.values import heat_of

DATA = Path(__file__).parent / "data"
DUMPS = sorted((DATA / "hang" / "dumps").iterdir())
ITEMS = [json.loads(line) for line in (DATA / "hang" / "items.jsonl").open(encoding="utf-8")]
CASES = json.loads((DATA / "hosts" / "cases.json").read_text(encoding="utf-8"))["cases"]
SAMPLES = [json.loads(line) for line in (DATA / "hosts" / "samples.jsonl").open(encoding="utf-8")]

TP4 = "PG ID 2 PG GUID 40(TENSOR_MODEL_PARALLEL_GROUP)"
LINES = "\n".join(
    f"[rank{rank}]:[E] [{TP4} Rank {rank % 4}] PG status: last enqueued work: {last}, "
    f"last completed work: 6{' failure detected by watchdog at work sequence id: 7' * (last == 7)}"
    for rank, last in ((4, 7), (5, 6), (6, 7), (7, 7))
)


def shown(view: str, controls: State | None = None, language: str = "en", **asked: object) -> str:
    """The text of a view, as it is read."""
    page = answer(replace(controls or State(), lang=language, view=view, **asked)).picture
    return text_of(page)


def sent(files: dict[str, bytes], language: str = "en") -> bytes:
    head = {"files": [[name, len(content)] for name, content in files.items()], "lang": language}
    return json.dumps(head).encode() + b"\n" + b"".join(files.values())


def dumps_of(folder: Path, suffix: str) -> dict[str, bytes]:
    files = (file for file in sorted(folder.glob("nccl_trace_rank_*")) if file.suffix == suffix)
    return {file.name: file.read_bytes() for file in files}


# -- a hang --------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".json"])
@pytest.mark.parametrize("folder", DUMPS, ids=lambda one: one.name)
def test_dropped_dumps_name_the_culprit(folder, suffix):
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    said = json.loads(evidence(sent(dumps_of(folder, suffix))))
    log = log_of(said["digest"])
    page = shown("hang", digest=said["digest"])
    assert log.diagnosis == read_log(dumps_of(folder, suffix)).diagnosis
    assert log.diagnosis.culprits, truth
    assert all(f"GPU {rank}" in page for rank in log.diagnosis.culprits)


def test_files_that_name_no_members_are_read_with_the_layout_on_screen():
    files = {name: text.encode() for name, text in old_job().items()}
    del files["nccl_trace_rank_5"]
    said = {}
    for tp in (4, 2):
        job = {"nodes": 1, "gpus_per_node": 8, "tp": tp, "pp": 1, "junk": 3}
        head, _, rest = sent(files).partition(b"\n")
        body = json.dumps({**json.loads(head), "job": job}).encode() + b"\n" + rest
        log = log_of(json.loads(evidence(body))["digest"])
        said[tp] = (log.diagnosis.suspects, [note.code for note in log.notes])
    assert said == {4: ((5,), ["members-assumed"]), 2: ((), ["members-open"])}


def test_a_digest_holds_all_that_is_said_of_every_item():
    wrong = []
    for item in ITEMS:
        log = read_log(item["text"])
        kept = log_of(digest_of(log))
        if (kept.diagnosis, kept.groups, kept.notes, kept.ranks) != (
            log.diagnosis,
            dict(log.groups),
            log.notes,
            log.ranks,
        ):
            wrong.append(item["id"])
    assert wrong == []


def test_a_digest_holds_the_largest_numbers_that_lines_name():
    log = read_log("rank 9999999, rank 3, rank 1; global ranks [5, 4000000]")
    assert log_of(digest_of(log)) == log
    page = shown("hang", digest=digest_of(log))
    assert "at least 10,000,000 GPUs" in page


def test_of_too_many_groups_a_digest_keeps_those_where_somebody_waits():
    groups = tuple(ProcessGroup(f"g{number}", None, None, "tp") for number in range(5000))
    wait = Wait(groups[-1], "ALLREDUCE", 7, waiting=(3,))
    kept = log_of(digest_of(Log(process_groups=groups, diagnosis=Diagnosis(waits=(wait,)))))
    assert groups[-1] in kept.process_groups
    assert len(kept.process_groups) < len(groups)


def test_every_item_is_answered_in_both_languages_with_its_ranks_and_no_others():
    wrong = []
    for item, language in ((item, one) for item in ITEMS for one in ("en", "zh")):
        page = answer(State(nodes=64, lang=language, view="hang", evidence=item["text"])).picture
        buttons = [written(button).removeprefix("GPU ") for button in select(page, "button")]
        named = {int(rank) for rank in buttons if rank.isdecimal()}
        if not named <= set(item["expected"]["global_ranks"] or []):
            wrong.append((item["id"], named))
    assert wrong == []


def test_who_is_missing_who_waits_there_and_how_far_it_spreads():
    page = shown("hang", State(tp=4), evidence=LINES)
    assert "GPU 5 (node 0, device 5) never entered operation 7 of its tp group." in page
    assert "Others wait there: 3." in page
    assert "in the end 16 of 16 GPUs" in page


def test_a_layout_that_the_evidence_contradicts_is_said_and_the_one_that_fits_offered():
    page = answer(State(tp=2, view="hang", evidence=LINES)).picture
    assert "The layout contradicts the evidence" in page
    assert "pipelines" not in page.split("evidence")[0]  # nothing that only the layout would say
    offers = values(page, "data-set")
    fitting = next(offer for offer in offers if "tp" in offer)
    fixed = State().changed(fitting)
    assert resolve(fixed).mesh.size("tp") == 4
    again = shown("hang", fixed, evidence=LINES)
    assert "contradict" not in again
    assert "in the end 16 of 16 GPUs" in again


def test_a_layout_of_experts_that_would_fit_is_offered_with_their_size():
    """The evidence is of 32 GPUs; on screen etp is not tp."""
    lines = LINES.replace("[rank7]", "[rank31]")
    page = answer(State(tp=4, pp=1, ep=2, etp="1", view="hang", evidence=lines)).picture
    offers = values(page, "data-set")
    sizes = {"tp": "4", "cp": "1", "pp": "1", "ep": "2", "etp": "1", "nodes": "4"}
    assert sizes in offers


def test_who_waits_for_those_that_wait_has_a_part_of_its_own():
    group = ProcessGroup("g", None, None, "tp")
    hops = tuple(
        Hop((Wait(group, "ALLREDUCE", 7, waiting=ranks),), (), ranks)
        for ranks in ((4, 6, 7), (0, 2), (8,), (9,), (10,))
    )
    log = read_log(LINES)
    log = replace(log, diagnosis=replace(log.diagnosis, hops=hops))
    chain = chain_of(log, resolve(State(tp=4)), {})
    assert chain.tolist() == [4, 0, 4, 0, FIRST, CULPRIT, FIRST, FIRST, 5, 6, 6, 0, 0, 0, 0, 0]


WORLD_LINE = (
    "[rank{rank}]:[E] [PG ID 0 PG GUID 0(default_pg) Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=1, OpType=BROADCAST, NumelIn=4, NumelOut=4, "
    "Timeout(ms)=1800000) ran for 1800087 milliseconds before timing out."
)


@pytest.mark.parametrize(
    ("ranks", "said"),
    [
        ([3], "Only GPU 3 is seen to wait there."),
        ([3, 9], "2 GPUs are seen to wait there."),
    ],
)
def test_where_nobody_is_named_only_those_wait_whom_the_evidence_shows(ranks, said):
    lines = "\n".join(WORLD_LINE.format(rank=rank) for rank in ranks)
    page = shown("hang", evidence=lines)
    assert said in page
    assert "others wait" not in page.lower()
    assert "In the end 16 of 16 GPUs wait." in page
    state = State(view="hang", evidence=lines)
    [(_, chain)] = hang_pictures(Context.of(state))
    parts = chain.level
    assert [rank for rank in range(16) if parts[rank] == FIRST] == ranks


FR_TRACE = """Not all ranks joining collective: sequence number: 31117
group info: 0:default_pg
collective: nccl:all_reduce
missing ranks: {3, 4}
world size: 16
expected ranks: {0, 1, 2, 3, 4, 5}
collective state: scheduled"""
BARRIER = "[rank0]: RuntimeError: [Rank 0]: Rank 3 failed to pass monitoredBarrier in 9 ms"
PLACED = "GPU 3 (node 0, device 3) did not arrive: the text says so."


@pytest.mark.parametrize(
    ("evidence", "missing", "said"),
    [
        (FR_TRACE, [3, 4], "GPUs 3, 4 did not arrive: the text says so."),
        (BARRIER, [3], PLACED),
        (f"{BARRIER}\n{WORLD_LINE.format(rank=9)}", [3], PLACED),
    ],
)
def test_who_the_text_itself_says_is_missing_is_named(evidence, missing, said):
    assert list(read_log(evidence).missing) == missing
    page = shown("hang", evidence=evidence)
    assert said in page
    assert "does not show who is missing" not in page
    assert "文本指出 GPU 3" in shown("hang", language="zh", evidence=evidence)
    [(_, chain)] = hang_pictures(Context.of(State(view="hang", evidence=evidence)))
    assert [rank for rank in range(16) if chain.level[rank] == CULPRIT] == missing


def test_a_hang_without_evidence_has_no_picture():
    assert hang_pictures(Context.of(State(view="hang"))) == []
    other = State(view="hang", nodes=4, evidence=LINES.replace("[rank4]", "[rank40]"))
    assert hang_pictures(Context.of(other)) == []


def test_the_picture_gives_every_gpu_its_part():
    layout = resolve(State(tp=4))
    chain = chain_of(read_log(LINES), layout, layout.every)
    expected = np.full(16, END)
    expected[[4, 6, 7]] = FIRST
    expected[5] = CULPRIT
    assert chain.tolist() == expected.tolist()


def packed(plain: str) -> str:
    return base64.b64encode(zlib.compress(plain.encode())).decode()


@pytest.mark.parametrize(
    "text",
    [
        "", "3", "[]", "{}", "null", '["x"]', "[" * 9000, "x" * (LONGEST + 1), None, 7, ["a"],
        *map(packed, ("[]", "3", "{", '{"ranks":[[0]]}', '{"ranks":[5.5]}', '{"ranks":[-5]}',
                      '{"notes":[{"code":"missing-in-group","facts":{"ranks":[["a","b","c"],5]}}]}',
                      '{"ranks":[9999999,1]}', '{"ranks":["-5"]}', '{"notes":[{"code":"?"}]}',
                      f'{{"ranks":[{"0," * 4_000_000}0]}}', f'{{"ranks":{"[" * 9000}')),
    ],
)  # fmt: skip
def test_what_is_no_digest_is_refused(text):
    with pytest.raises(LayoutError) as refused:
        log_of(text)
    assert refused.value.code == "bad-digest"
    assert shown("hang", digest=text)


def test_files_are_read_without_a_layout_where_the_one_on_screen_cannot_be():
    head, _, rest = sent({"a.log": LINES.encode()}).partition(b"\n")
    body = json.dumps({**json.loads(head), "job": {"tp": 3}}).encode() + b"\n" + rest
    assert log_of(json.loads(evidence(body))["digest"]).ranks == (4, 5, 6, 7)


def test_more_than_a_digest_holds_is_refused():
    """Ranks in no order, more than the digest's characters."""
    numbers = np.random.default_rng(7).permutation(10**7)[:250_000]
    text = "\n".join(f"[rank{rank}]: no progress" for rank in numbers)
    for language, words in (("en", "more ranks and groups than a page can keep"), ("zh", "存不下")):
        said = json.loads(evidence(sent({"a.log": text.encode()}, language)))
        assert words in said["refused"]


UNREADABLE = {
    "dump-cut": b"\x80\x02}",
    "dump-damaged": b"\x80\x02a.",
    "dump-key": pickle.dumps({"version": 1, 2: 0}),
    "dump-instruction": pickle.dumps(print),
    "dump-compressed": b"\x1f\x8b..",
    "dump-of-no-kind": b'{"version": 1}',
}


@pytest.mark.parametrize("reason", UNREADABLE)
def test_why_a_file_is_not_read_is_said_in_the_readers_language(reason):
    """Of a file alone, and of one among others."""
    files = {"a_rank_3": UNREADABLE[reason]}
    names = {"Flight Recorder", "NCCL RAS", "a_rank_3", "pickle", "gzip", "x93"}
    for language in ("en", "zh"):
        lone = json.loads(evidence(sent(files, language)))["refused"]
        said = json.loads(evidence(sent({**files, "b.log": LINES.encode()}, language)))
        among = shown("hang", digest=said["digest"], language=language)
        if language == "en":
            why = refusal(reason, program="gzip", byte=3, value=r"'\x93'").what
        else:
            why = REFUSALS[reason][language].format(program="gzip", byte=3, value=r"'\x93'")
            english = re.findall("[A-Za-z0-9_]+(?: [A-Za-z0-9_]+)*", lone)
            assert {*english} <= {*names, "3"}
        assert why in lone
        assert why in among


def test_files_that_cannot_be_read_are_refused_in_the_readers_language():
    for language, word in (("en", "plain"), ("zh", "转储")):
        body = sent({"nccl_trace_rank_0": b"\x80\x04cos\nsystem\n."}, language)
        assert word in json.loads(evidence(body))["refused"] or language == "en"
    for body in (b"", b"x", b"{}", b'{"files": 3}\n', b'{"files": [[1]]}\n', b"[]\n"):
        assert "refused" in json.loads(evidence(body)), body


# -- machines ------------------------------------------------------------------------------------


def test_the_view_gives_the_order_of_every_case_of_the_facts():
    wrong = []
    for case in CASES:
        count = len(case["hosts"])
        controls = State(
            nodes=count,
            gpus_per_node=str(case["gpus_per_node"]),
            **{name: case[name] for name in ("tp", "cp", "pp", "ep")},
            etp=str(case["etp"]),
            framework="own",
            order=case["order"],
        )
        racks: dict[str, list[str]] = {}
        for host, rack in case["racks"].items():
            racks.setdefault(rack, []).append(host)
        lines = [f"SwitchName={rack} Nodes={','.join(hosts)}" for rack, hosts in racks.items()]
        page = shown("hosts", controls, hosts="\n".join(case["hosts"]), racks="\n".join(lines))
        keys = [case["expected"][one]["key"] for one in ("before", "best")]
        levels = [one for one in zip(("ep", "tp+cp", "dp", "pp"), *keys) if any(one[1:])]
        said = ", ".join(
            f"{level} {was}" + f" → {now}" * (was != now) for level, was, now in levels
        )
        # Of orders with as many crossings one with fewer hops between racks is better.
        is_kept = keys[0] == keys[1] and "hops lead to another rack" not in page
        if f"{said or 0}." not in page or ("Keep the order" in page) != is_kept:
            wrong.append(case["id"])
    assert wrong == []


def test_every_sample_is_answered_in_words():
    for sample in SAMPLES:
        for language in ("en", "zh"):
            assert shown("hosts", None, language, hosts=sample["text"]), sample["id"]


def test_hosts_too_few_are_refused_with_a_layout_that_works():
    page = answer(State(view="hosts", hosts="a\nb\nc")).picture
    fixes = values(page, "data-set")
    fix = next(one for one in fixes if "nodes" in one)
    fixed = State(tp=1, pp=1).changed(fix)
    assert "3 hosts for 24 GPUs" in shown("hosts", fixed, hosts="a\nb\nc")


def test_a_fault_of_the_racks_is_said_of_their_box():
    for control, names, racks in (
        ("racks", "gpu-0\ngpu-1", "gpu-0 r1\ngpu-1 r2"),
        ("hosts", "gpu-0 r1\ngpu-1 r2", ""),
    ):
        with pytest.raises(LayoutError) as refused:
            hosts_of(Context.of(State(hosts=names, racks=racks)))
        assert refused.value.control == control


def test_the_example_has_a_better_order():
    layout = resolve(State(nodes=8, tp=8, pp=2, ep=16, etp="1"))
    names, racks = example_of(layout)
    page = shown("hosts", State(nodes=8, tp=8, pp=2, ep=16, etp="1"), hosts=names, racks=racks)
    assert "ep 4 → 0, dp 16 → 0, pp 0 → 32." in page
    assert "not --rdzv-backend c10d" in page
    assert RUN["order_after"]["en"] in page


@pytest.mark.parametrize("nodes", [512, 513, 2048])
def test_an_example_has_as_many_machines_as_the_job_or_is_not_offered(nodes):
    state = State(nodes=nodes, tp=8, pp=1, view="hosts")
    page = answer(state).picture
    offers = values(page, "data-set")
    examples = [offer for offer in offers if "hosts" in offer]
    assert len(examples) == (2 if nodes <= 512 else 0)  # the machines, and a better order of them
    for example in examples:
        assert f"{nodes} hosts for {8 * nodes:,} GPUs" in shown("hosts", state, **example)


def test_an_order_that_stays_is_drawn_once_and_asked_of_no_model_that_does_not_fit():
    state = State(nodes=4, tp=8, pp=2)
    asked = {"hosts": "a b c d", "racks": "a r\nb r\nc s\nd s"}
    page = shown("hosts", state, **asked)
    assert RUN["order_before"]["en"] in page
    assert RUN["order_after"]["en"] not in page
    refused = replace(state, model="llama3-8b", global_batch="3")  # of dp 2
    assert RUN["order_before"]["en"] in shown("hosts", refused, **asked)


def test_an_objective_that_there_is_not_is_refused_in_its_place():
    asked = {"hosts": "a b c d", "racks": "a r\nb r\nc s\nd s"}
    page = shown("hosts", State(nodes=4), objective="fewest", **asked)
    assert "'fewest' is not a choice" in page
    assert RUN["order_title"]["en"] in page
    assert RUN["order_before"]["en"] not in page


def test_of_many_machines_the_first_are_shown_and_the_rest_counted():
    state = State(nodes=80, tp=8, pp=2)
    names, racks = example_of(resolve(state))
    page = shown("hosts", state, hosts=names, racks=racks)
    assert "+ 16" in page


# -- measurements --------------------------------------------------------------------------------


def test_a_slow_group_is_said_and_painted():
    rows = "\n".join(f"{rank},{14 if rank in (6, 7) else 10 + rank % 3 / 10}" for rank in range(16))
    page = shown("hosts", measures=f"rank,ms\n{rows}")
    assert "tp-cp 3 = etp 3" in page
    heat = heat_of(np.array([1.0, 2.0, np.nan, 3.0]), 4, "en")
    assert heat.level.tolist() == [0, 4, 8, 7]
    assert heat.legend[-1][1] == RUN["measures_none"]["en"]


def test_of_many_slow_groups_the_first_are_said_and_the_rest_counted():
    state = State(nodes=32, tp=1, pp=1)
    slow = range(0, 256, 8)
    measures = "\n".join(
        f"{rank},{20 + rank if rank in slow else 10 + rank % 7 / 10}" for rank in range(256)
    )
    page = shown("hosts", state, measures=measures)
    assert rest_text(len(slow) - SHOWN, "en") in page


def test_without_measurements_there_is_no_picture_of_them():
    assert measures_pictures(Context.of(State(view="hosts"))) == []


def test_measurements_that_are_none_are_refused():
    assert "99" in shown("hosts", measures="rank,ms\n99,1")
    assert shown("hosts", measures="0,1", worse="sideways")


# -- who waits for whom ---------------------------------------------------------------------------


def waiting(**sizes: int) -> list[tuple[str, set[int]]]:
    """Of the example of a hang: what a cell of the picture says, and the GPUs that say it."""
    layout = resolve(State(**sizes))
    case = case_of(read_log(watchdog_example(layout)), layout)
    heat = heat_of_chain(case.log, layout, case.every, "en")
    kinds = dict.fromkeys(heat.amounts)
    marks = np.array(heat.amounts)
    return [(kind, {*np.flatnonzero(marks == kind).tolist()}) for kind in kinds]


def test_a_cell_of_the_picture_of_a_hang_says_in_which_groups_its_gpu_waits():
    """64 GPUs, tp 2, cp 2, pp 4: who waits is told by walking over groups made with numpy alone."""
    grid = np.arange(64).reshape(4, 4, 2, 2)  # pp, dp, cp, tp
    [pp] = [{*grid[:, 0, 1, :].flat}]
    dp_cp = {*grid.flat} - pp
    found = dict(waiting(nodes=8, tp=2, pp=4, cp=2))
    assert found == {"✕": {3}, "0": {2}, "pp": pp - {2, 3}, "dp-cp": dp_cp}


def test_the_legend_of_a_hang_says_who_waits_for_whom_in_both_languages():
    page = shown("hang", nodes=8, tp=2, pp=4)
    assert "0 waits for GPU 3 in its tp group: GPU 2" in page
    assert "pp waits for GPUs 2–3 in 2 pp groups: 6 GPUs (18–19, 34–35, 50–51)" in page
    chinese = shown("hang", language="zh", nodes=8, tp=2, pp=4)
    assert "0 在其 tp 组中等待 GPU 3" in chinese
    assert "pp 在 2 个 pp 组中等待 GPU 2–3" in chinese


@pytest.mark.parametrize("nodes", [1024, 16_384, 131_072])
def test_a_hang_has_an_example_at_every_size(nodes):
    page = shown("hang", nodes=nodes, tp=8, pp=16)
    assert "never entered operation 7 of its tp group" in page


def test_groups_of_a_hang_lead_with_their_names_here_and_bare_numbers_say_what_they_are():
    digest = json.loads(evidence(sent(dumps_of(DUMPS[0], ".json"))))["digest"]
    world = len(log_of(digest).dumped)
    page = answer(State(view="hang", digest=digest, nodes=1, gpus_per_node=world, tp=2)).picture
    rows = [[text_of(one) for one in select(row, "th, td")] for row in select(page, "tbody tr")]
    assert rows == [["world 0", "0, 1, 2, 3", "0:default_pg", "yes"]]
