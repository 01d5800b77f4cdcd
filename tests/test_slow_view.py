"""The Slow view: the picture of time lost, the aligned timeline, and what the page says of both."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markup import only, select, text_of, values
from painted import alone

from descriptions import PAGE
from formats.slow import as_json
from groups import LayoutError, parse_mesh
from render.palette import SCALE_ENDS, rgb, scale_of
from render.scenes.job import job_picture
from render.scenes.lost import LostPicture, Scale, amounts_of
from render.scenes.together import TogetherCall, TogetherChart
from request.answers.slow.api import slow_document, slow_steps
from request.answers.slow.files import digest_of, example, example_run, slow_of
from request.answers.slow.parts import StepPart, measured_parts, most_apart
from request.answers.slow.seen import SeenSlow
from request.resolve import resolve
from request.state import State
from views.evidence import evidence
from views.page import answer
from views.slow.words import SLOW_VIEW

DATA = Path(__file__).parent / "data"
THEMES = ("light", "dark")
WORDS = dict.fromkeys(("stage", "layers", "band", "replica", "replicas"), "{first}")


def at(picture: np.ndarray, x: float, y: float) -> tuple[int, ...]:
    return tuple(picture[round(2 * y), round(2 * x)].tolist())


def lost_picture(mesh: str, *names: str) -> LostPicture:
    """GPU 1 holds up the others, each of which loses as much as the other."""
    job = job_picture(parse_mesh(mesh), [], 8, rank=1, words=WORDS)
    world = job.mesh.world_size
    lost, caused = np.full(world, 0.5), np.zeros(world)
    lost[1], caused[1] = 0.0, 2.0
    seconds = {"lost": lost, "caused": caused}
    scales = (
        Scale(name, seconds[name], seconds[name].max(), amounts_of(seconds[name], 1.0))
        for name in names or ("lost", "caused")
    )
    return LostPicture(job, tuple(scales))


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("mesh", ["tp2-dp2-pp2", "tp8-dp8-pp4"], ids=["amounts", "numbers"])
def test_a_cell_is_blue_at_the_left_of_whoever_lost_time_and_orange_at_the_right_of_whoever_cost_it(
    mesh, theme
):
    scene = lost_picture(mesh)
    assert bool(scene.letters) == (scene.job.mesh.world_size < 64)
    picture, (wide, tall) = alone(scene, theme), scene.job.sides
    ends = {name: scale_of(name, theme) for name in SCALE_ENDS[theme]}
    for rank in range(scene.job.mesh.world_size):
        x, y = float(scene.job.x[rank]), float(scene.job.y[rank]) + 0.9 * tall
        halves = ("lost", 0 if rank == 1 else -1), ("caused", -1 if rank == 1 else 0)
        for right, (name, step) in zip((0.1, 0.9), halves):
            assert at(picture, x + right * wide, y) == rgb(ends[name][step])


@pytest.mark.parametrize("theme", THEMES)
def test_of_small_cells_a_picture_has_one_scale_as_opaque_as_it_is_much(theme):
    scene = lost_picture("tp8-dp8-pp8", "caused")
    picture, (wide, tall) = alone(scene, theme), scene.job.sides
    x, y = (float(one[1]) + side / 2 for one, side in zip((scene.job.x, scene.job.y), (wide, tall)))
    assert at(picture, x, y) == rgb(SCALE_ENDS[theme]["caused"])
    assert at(picture, x + 2 * wide, y) != at(picture, x, y)


def test_calls_end_at_one_time_for_all_and_who_came_last_is_marked_without_colour_too():
    calls = [
        TogetherCall("all_reduce", 1.0, (0.5, 0.1, None), 1),
        TogetherCall("x", 2.0, (0.2, 0.9, 0.3), 0),
    ]
    chart = TogetherChart(["GPU 0", "GPU 1", "GPU 2"], calls, (1e-3, "ms"))
    by_call = [[bar for bar in chart.bars if bar.end == chart.x(call.end)] for call in calls]
    assert [[bar.row for bar in bars] for bars in by_call] == [[0, 1], [0, 1, 2]]
    for bars, call in zip(by_call, calls):
        assert {bar.began for bar in bars} == {chart.x(call.end - call.moved)}
        (last,) = (bar for bar in bars if bar.is_last)
        assert last.row == call.last
        assert last.came == last.began == max(bar.came for bar in bars)
    picture = alone(chart)
    last = next(bar for bar in chart.bars if bar.is_last)
    middle = 20.0 + chart.row * 1.5
    assert at(picture, last.came - 3, middle) == rgb(SCALE_ENDS["light"]["caused"])
    assert [text for _, text in chart.ticks] == [f"{time}" for time in range(600, 2001, 200)]


# -- the page ------------------------------------------------------------------------------------


def shown(**changes: object) -> str:
    """The view as a reader has it, without what its script knows."""
    picture = answer(State(**{"view": "slow", "nodes": 1, **changes})).picture
    return str(picture).partition('lang="')[2]


def run(**changes: object) -> str:
    """The digest of the recorded run, with other values."""
    return digest_of(replace(example_run(), **changes))


def test_an_empty_view_shows_a_recorded_run_and_its_button_opens_the_run_and_its_layout():
    offered = values(shown(nodes=2), "data-set", ".fix")
    (changes,) = (one for one in offered if "traces_digest" in one)
    assert (changes["tp"], changes["pp"], changes["gpus_per_node"]) == ("2", "2", "4")
    opened = shown(**changes)
    assert "GPU 3 slows the others" in opened
    assert PAGE["running_same"]["en"] in opened
    assert 'class="grey"' not in opened


def test_the_picture_is_of_the_layout_that_ran_and_a_button_opens_that():
    other = shown(tp=4, pp=1, traces_digest=example())
    assert "tp2 · dp2 · pp2" in other
    assert other.count("replica ") == 2  # dp 2, as it ran
    buttons = select(other, "[data-set]")
    (opens,) = (one for one in buttons if text_of(one).startswith("Open the layout that ran"))
    assert json.loads(opens.attributes["data-set"])["tp"] == "2"
    # Rank 0 ran with rank 1 in tp; on screen it stands with 0 to 3.
    assert "<td>tp</td><td>0–1</td><td>0–3</td>" in other


LACKS = {
    "ran_unknown": {"running": None},
    "other_world": {"running": None, "world": 64},
    "no_trace": {"ranks": example_run().ranks[:6]},
    "unmatched": {"unmatched": 7},
}


@pytest.mark.parametrize("words", LACKS)
def test_what_the_traces_lack_is_said(words):
    said, lacking = shown(traces_digest=example()), shown(traces_digest=run(**LACKS[words]))
    start = max(re.split(r"{\w+}|:", SLOW_VIEW[words]["en"]), key=len).strip()
    assert start not in said
    assert start in lacking


def names_of(page: str) -> list[str]:
    """The GPUs whose calls are drawn, from the top."""
    texts = map(text_of, select(only(page, ".together"), "text"))
    return [text for text in texts if text.startswith("GPU ")]


def test_the_list_and_a_click_choose_the_group_whose_calls_are_drawn():
    slow = example_run()
    for line in slow.timelines[:3]:
        drawn = shown(traces_digest=example(), slow_group=line.group)
        ranks = slow.groups[line.group].ranks
        assert names_of(drawn) == [f"GPU {rank}" for rank in ranks]
    assert "GPU 6" in names_of(shown(traces_digest=example(), rank=6))
    clicked = values(shown(traces_digest=example()), "data-set", ".hit")
    assert [one["rank"] for one in clicked] == [str(rank) for rank in range(8)]
    for one in clicked:
        assert int(one["rank"]) in slow.groups[int(one["slow_group"])].ranks


def test_measured_parts_are_the_step_and_the_widest_difference_is_named():
    slow = example_run()
    parts = measured_parts(slow)
    whole = sum(part.measured or 0.0 for part in parts.values())
    assert whole == pytest.approx(slow.step_us / 1e6, rel=0.03)  # waits of two kinds may overlap
    assert parts["bubble"].measured == parts["bubble"].waited
    both = [StepPart("compute", 1.0, estimated=1.2), StepPart("dp", 0.4, estimated=0.1),
            StepPart("data", 9.0)]  # fmt: skip
    assert most_apart(both).name == "dp"


def test_a_digest_of_a_large_job_fits_and_keeps_who_is_slow():
    """512 ranks, 32 steps: what is drawn goes first, the verdict never."""
    one = example_run()
    ranks = tuple(
        replace(row, rank=rank, own_us=tuple(row.own_us * 8))
        for rank in range(512)
        for row in one.ranks[rank % 2 : rank % 2 + 1]
    )
    large = replace(one, ranks=ranks, steps=tuple(range(32)), world=512, running=None)
    kept = slow_of(digest_of(large))
    assert kept.ranks == slow_of(digest_of(kept)).ranks
    assert len(kept.ranks) == 512


def as_text(**changes: object) -> str:
    return json.dumps({"slow": as_json(replace(example_run(), **changes))})


REFUSED = {
    "no JSON": "no-timers",
    "{}": "not-a-trace",
    '{"slow": 1}': "not-a-summary",
    '{"slow": {"version": 1, "world": 3}}': "bad-summary",
    as_text(world=2**40): "absurd-summary",
}


@pytest.mark.parametrize("text", REFUSED, ids=REFUSED.values())
@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_is_no_evidence_is_refused_in_words_beside_its_box(text, language):
    refused = shown(traces=text, lang=language)
    assert 'class="refusal"' in refused
    assert 'data-field="traces"' in refused
    with pytest.raises(LayoutError) as error:
        slow_steps(traces=text)
    assert error.value.code == REFUSED[text]


def test_files_come_back_as_a_digest_and_what_is_too_much_names_the_command():
    files = [path.read_bytes() for path in sorted((DATA / "traces" / "gloo").glob("*.gz"))]
    head = {
        "view": "slow",
        "lang": "en",
        "files": [[f"{at}.json.gz", len(one)] for at, one in enumerate(files)],
    }
    sent = json.dumps(head).encode() + b"\n" + b"".join(files)
    assert len(slow_of(json.loads(evidence(sent))["digest"]).ranks) == 4
    text = b'{"ph": "M", "name": "%s"},' % (b"x" * 200_000)
    bomb = gzip.compress(b'{"traceEvents": [' + text * 100)
    head["files"] = [["bomb.gz", len(bomb)]]
    refused = json.loads(evidence(json.dumps(head).encode() + b"\n" + bomb))["refused"]
    assert "python -m groups trace FOLDER" in refused


# -- what to do next, and what is no comparison ---------------------------------------------------


def test_a_slow_step_ends_with_what_to_do_next_as_commands():
    page = answer(State(view="slow", traces_digest=example())).picture
    commands = [text_of(one) for one in select(page, ".next-steps pre")]
    assert len(commands) == len(set(commands)) >= 3
    assert any("py-spy record" in one and "RANK=3 " in one for one in commands)
    assert any("-d CLOCK,PERFORMANCE" in one for one in commands)
    document = slow_document(SeenSlow(example_run(), resolve(State()), None))
    assert [step["command"] for step in document["next"]] == commands


def test_a_run_of_which_only_the_cpu_was_recorded_has_no_estimate_beside_it():
    """The example slept instead of computing Llama 3 8B: nothing of it can be compared."""
    page = text_of(answer(State(view="slow", traces_digest=example())).picture)
    assert "Llama" not in page.partition("The step as it ran")[2]
    assert "no estimate of GPUs stands beside it" in page
