"""Layouts of servers for a target, requests at once, and what page, endpoint and commands say."""

from __future__ import annotations

import io
import json
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from cli.command import run
from formats.launch import parse
from groups.errors import LayoutError
from groups.layout import Job
from render.draw.speed import draw_speed
from render.marks import Lines, Words
from request.answers.served.api import command_of, served_speed_facts, server_speed
from request.answers.served.speed import leaving_bytes, numbers_of_server, search_of, speed_of
from request.answers.served.words import layout_text, ms, rate_text, requests_text, verdict_text
from request.context import Context
from request.state import State
from training.clusters import CLUSTERS
from training.models import MODELS
from training.serving.layouts import (
    ServedLayout,
    ServingJob,
    asked_server,
    candidates,
    search_servers,
    served_layout,
)
from training.serving.server import Serving
from training.serving.speed import server_speed as speed_at
from training.serving.work import Load
from views.page import answer
from views.parts.speed import chart_of, front_of

H200 = CLUSTERS["dgx-h200"]


def asked(model: str = "llama3-70b", framework: str = "vllm", **more: object) -> ServingJob:
    engine, weights = framework, str(more.pop("weights", "fp8"))
    start = ServingJob(
        *(MODELS[model].model, H200, Serving(engine, weights), framework),
        nodes=1,
        gpus_per_node=8,
        total=H200.seen,
        load=Load(64, 1024, 1024),
        name=model,
    )
    return replace(start, **more)  # type: ignore[arg-type]


def context(**fields: object) -> Context:
    usual = {"framework": "vllm", "nodes": 1, "tp": 8, "pp": 1, "model": "llama3-70b"}
    texts = {name: str(value) for name, value in {**usual, **fields}.items()}
    return Context.of(State(**texts))


def layout(job: ServingJob, **sizes: int | bool) -> ServedLayout:
    start = Job(nodes=job.nodes, gpus_per_node=job.gpus_per_node, framework=job.framework)
    return served_layout(job, replace(start, **sizes).layout())  # type: ignore[arg-type]


@cache
def found(model: str, framework: str) -> object:
    return search_servers(asked(model, framework))


# -- one layout ------------------------------------------------------------------------------------


def test_several_servers_share_the_requests():
    two = layout(asked(), tp=4, dp=1)
    one = layout(replace(asked(), gpus_per_node=4, load=Load(32, 1024, 1024)), tp=4, dp=1)
    assert (two.servers, one.servers) == (2, 1)
    assert two.speed.seconds == pytest.approx(one.speed.seconds)
    assert two.rate == pytest.approx(2 * one.rate)
    assert two.fits == pytest.approx(2 * one.fits)


def test_no_more_requests_are_answered_than_the_caches_hold():
    tight = replace(asked(), load=Load(100_000, 8000, 2000))
    full = layout(tight, tp=8)
    assert full.answered == pytest.approx(full.fits)
    assert full.fits < 100_000
    assert full.limit == "cache"
    few = layout(replace(tight, serving=Serving("vllm", "fp8", requests=7)), tp=8)
    assert (few.answered, few.limit) == (7, "engine")
    with pytest.raises(LayoutError) as raised:
        layout(replace(tight, load=Load(1, 5_000_000, 1)), tp=8)
    assert raised.value.code == "request-does-not-fit"


@pytest.mark.parametrize("bound", [0.012, 0.02, 0.05])
def test_a_bound_is_kept_by_as_many_requests_as_can_be(bound):
    job = replace(asked(), bound=bound)
    kept = layout(job, tp=8)
    assert kept.is_within
    assert kept.speed.seconds <= bound * 1.0001
    more = speed_at(kept.server, replace(job.load, requests=1.02 * kept.answered))
    assert more.seconds > bound
    assert not layout(replace(job, bound=1e-4), tp=8).is_within


def test_the_curve_goes_from_one_request_to_all_that_fit():
    curve = layout(asked(), tp=8).curve
    requests = [each for each, _ in curve]
    assert requests[0] == 1
    assert requests[-1] == pytest.approx(layout(asked(), tp=8).fits)
    rates = [(speed.user_rate, each / speed.seconds) for each, speed in curve]
    assert rates == sorted(rates, key=lambda point: -point[0])
    assert rates == sorted(rates, key=lambda point: point[1])


# -- all layouts -----------------------------------------------------------------------------------


@pytest.mark.parametrize("framework", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("model", ["llama3-70b", "deepseek-v3"])
def test_the_best_are_what_trying_all_by_hand_gives(model, framework):
    result = found(model, framework)
    every, refused = [], []
    for job in candidates(asked(model, framework)):
        try:
            every.append(served_layout(asked(model, framework), job.layout()))
        except LayoutError as error:
            refused.append(error.code)
    assert Counter(refused) == result.refused
    assert len(every) + sum(result.refused.values()) == result.tried
    assert result.best[0].rate == pytest.approx(max(each.rate for each in every))
    rates = [each.rate for each in result.best]
    assert rates == sorted(rates, reverse=True)
    assert len(result.best) <= 10


def test_what_engine_model_and_law_refuse_is_counted_with_a_reason():
    dense = found("llama3-70b", "vllm")
    assert dense.refused["dcp-beyond-copies"] > 0
    assert found("deepseek-v3", "tensorrt-llm").refused["attention-dp-is-tp"] > 0
    assert found("deepseek-v3", "sglang").refused["speed-of-divided-sequences"] > 0
    minimax = search_servers(asked("minimax-m2"))
    assert minimax.refused["width-cuts-blocks"] > 0
    for result in (dense, minimax):
        assert {*result.refused} == {*result.errors}


def test_no_point_of_a_curve_beats_the_front():
    for model, framework in (("llama3-70b", "vllm"), ("deepseek-v3", "sglang")):
        result = found(model, framework)
        for each in result.best:
            for requests, speed in each.curve:
                gpu = requests / speed.seconds / 8
                assert any(
                    point.user_rate >= speed.user_rate * 0.999999
                    and point.gpu_rate >= gpu * 0.999999
                    for point in result.front
                )
        users = [point.user_rate for point in result.front]
        assert users == sorted(users, reverse=True)


def test_a_command_starts_the_layout_of_its_row():
    for framework in ("vllm", "sglang"):
        for each in found("deepseek-v3", framework).best[:4]:
            text = command_of(each, State(framework=framework)).replace("MODEL", "my/model")
            read = parse(text)
            assert read.framework.job == framework
            again = read.served_groups()
            own = each.one_server.layout().every
            assert {*own} & {*again} >= {"tp", "pp"}
            for name in {*own} & {*again}:
                assert again[name].size == own[name].size, (name, text)


# -- the four numbers ------------------------------------------------------------------------------


def test_the_four_numbers_of_a_server():
    numbers = numbers_of_server(context(tp=4))
    assert (numbers.sharing, numbers.parts) == (4, 2)
    assert numbers.speed.answered == 64
    assert numbers.leaves == 0
    assert 0 < numbers.held < numbers.capacity
    assert numbers.tokens > 100_000
    refused = numbers_of_server(context(cluster="mi300x"))
    assert (refused.speed, refused.refused.code) == (None, "speed-of-machine")


def test_what_leaves_a_node_is_what_crosses_it():
    inside, across = (
        context(nodes=nodes, gpus_per_node=16 // nodes, tp=16, model="llama3-405b")
        for nodes in (1, 2)
    )
    assert numbers_of_server(inside).leaves == 0
    left = numbers_of_server(across).leaves
    server = asked_server(asked(), Job(nodes=2, tp=16, framework="vllm").layout())
    load = Load(64, 1024, 1024)
    model = MODELS["llama3-405b"].model
    sums, tensor = 2 * model.layers, 2 * model.hidden * load.tokens
    assert left == pytest.approx(2 * 15 / 16 * sums * tensor)
    layout16 = Job(nodes=2, tp=16, framework="vllm").layout()
    assert leaving_bytes(layout16, server, load, 64) > 0


# -- page, endpoint, commands ----------------------------------------------------------------------


def test_words_of_numbers():
    assert [ms(value) for value in (0.0123, 0.2, 2)] == ["12.3", "200", "2,000"]
    assert [rate_text(value) for value in (3.14159, 4365.4)] == ["3.14", "4,370"]
    assert requests_text(2.5, "en") == "2.5 requests"
    assert layout_text(layout(asked(), tp=4, dp=1)) == "2 × tp4"
    assert layout_text(layout(asked(), tp=4)) == "tp4 dp2"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_sentence_says_how_fast_for_how_many_and_how_many_fit(language):
    shown = context(served_at_once=32, lang=language)
    text = verdict_text(shown, speed_of(shown))
    result = speed_of(shown)
    for number in (ms(result.speed.seconds), rate_text(result.rate), f"{int(result.fits):,}"):
        assert number in text
    waiting = context(served_at_once=100_000, lang=language)
    assert "100,000" in verdict_text(waiting, speed_of(waiting))
    long = context(served_prompt=9000, served_length=8192, lang=language)
    assert "10,024" in verdict_text(long, speed_of(long))


def test_the_page_shows_curve_parts_and_measured_runs():
    state = context(served_weights="fp8", view="estimate").state
    picture = answer(state).picture
    assert "speed-chart" in picture
    assert picture.count('speed-gpu"') == 8
    assert "InferenceX: 2026_04_06_llama" in picture
    alone = answer(state.changed({"cluster": "mi300x", "model": "kimi-linear"})).picture
    assert "speed-chart" not in alone
    assert "is not worked out" in alone
    assert "kimi" in alone.lower()


def test_better_layouts_of_a_server_open_on_the_page():
    state = context(view="search").state
    picture = answer(state).picture
    for each in search_of(Context.of(state)).best[:3]:
        assert layout_text(each) in picture
    assert "vllm serve" in picture


def test_the_chart_has_the_own_curve_its_band_and_the_chosen_point():
    shown = context(served_weights="fp8")
    chart = chart_of(speed_of(shown), "en")
    assert len(chart.band) == len(chart.curves[0].spots)
    for slow, quick in chart.band:
        assert slow[0] < quick[0]
        assert slow[1] < quick[1]
    assert len(chart.rings) >= 3
    marks = [*draw_speed(chart, "light")]
    assert any(mark.fill != "none" for mark in marks if isinstance(mark, Lines))
    texts = [mark for mark in marks if isinstance(mark, Words)]
    assert "64 requests at once" in {mark.text for mark in texts}
    inside = [mark for mark in texts if mark.anchor == "start"]
    assert all(0 <= mark.x < chart.width and 0 < mark.y < chart.height for mark in inside)


def test_the_front_names_every_curve_once():
    shown = context(tp=8)
    chart = front_of(search_of(shown), speed_of(shown), "en")
    names = [curve.name for curve in chart.curves]
    assert len({*names}) == len(names) > 2
    assert chart.edge
    spots = {spot for curve in chart.curves for spot in curve.spots}
    drawn = [spot for spot in chart.edge if any(spot == pytest.approx(one) for one in spots)]
    assert len(drawn) >= len(chart.edge) - 4  # of the fewest curves that are left out


def test_endpoint_command_and_page_say_the_same():
    facts = json.loads(
        server_speed(nodes=1, tp=8, framework="vllm", model="llama3-70b", requests=32, best=True)
    )
    own = served_speed_facts(context(served_at_once=32), best=True)
    assert facts == json.loads(json.dumps(own))
    out, err = io.StringIO(), io.StringIO()
    words = "serve --speed --framework vllm --nodes 1 --tp 8 --model llama3-70b"
    words += " --served-at-once 32 --format json"
    assert run(words.split(), io.StringIO(), out, err) == 0, err.getvalue()
    printed = json.loads(out.getvalue())
    assert printed["tpot_seconds"] == facts["tpot_seconds"]
    out = io.StringIO()
    words = "search --framework vllm --nodes 1 --tp 8 --model llama3-70b --served-at-once 32"
    assert run([*words.split(), "--format", "json"], io.StringIO(), out, err) == 0
    assert json.loads(out.getvalue())["best"] == facts["best"]


def test_serve_takes_a_launch_file_for_its_speed(tmp_path):
    file = tmp_path / "serve.sh"
    file.write_text("vllm serve meta-llama/Llama-3.1-70B-Instruct --tensor-parallel-size 4\n")
    out, err = io.StringIO(), io.StringIO()
    assert run(["serve", str(file), "--speed"], io.StringIO(), out, err) == 0, err.getvalue()
    assert "4 GPUs" in out.getvalue()
    assert run(["serve", str(file)], io.StringIO(), out := io.StringIO(), err) == 0
    assert "tp" in out.getvalue()
    assert run(["serve"], io.StringIO(), out, err) == 2


def test_a_command_that_guesses_is_told_no_speed(tmp_path):
    file = tmp_path / "serve.sh"
    file.write_text(
        "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --speculative-config '{}'\n"
    )
    err = io.StringIO()
    assert run(["serve", str(file), "--speed"], io.StringIO(), io.StringIO(), err) == 2
    assert "guessing" in err.getvalue()


def test_a_job_that_trains_has_no_server_speed():
    with pytest.raises(LayoutError, match="training job"):
        server_speed(nodes=1, tp=8)
