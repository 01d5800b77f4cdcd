"""Seconds of a step of a server, against measured rows (tests/data/serving_speeds.md)."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import fit_serving
from descriptions import SPEED
from groups.errors import LayoutError
from tests.reference.served_speed import answer, asked
from training.clusters import CLUSTERS
from training.models import MODELS
from training.serving import speed
from training.serving.asked import AskedServer
from training.serving.runs import miss_of, misses, served_runs
from training.serving.speed import PARTS, seconds_of, server_speed
from training.serving.weights import Cut
from training.serving.work import Load, step_work, touched

LLAMA, DEEPSEEK = MODELS["llama3-70b"].model, MODELS["deepseek-v3"].model
H100 = CLUSTERS["dgx-h100"]


@cache
def runs() -> list[fit_serving.Run]:
    return list(fit_serving.runs())


def server(tp: int = 8, **more: object) -> AskedServer:
    return AskedServer(**{"model": LLAMA, "cut": Cut(tp, tp), "machine": H100, **more})  # type: ignore[arg-type]


# -- measured rows ---------------------------------------------------------------------------------


def test_rows_of_other_sources_are_told_within_the_goals() -> None:
    several = runs()
    law = fit_serving.Law(several)
    found = law.left_out([run.source for run in several])
    assert len(several) > 1300
    assert np.median(abs(np.expm1(found))) < 0.14
    assert np.mean(abs(found) < np.log(2)) > 0.93
    inside = (np.exp(-found) >= speed.LOW) & (np.exp(-found) <= speed.HIGH)
    assert 0.85 <= np.mean(inside) <= 0.97
    pairs, right, of_gpus, lost = fit_serving.order(several, found)
    assert pairs > 1000
    assert right > 0.95
    assert of_gpus > 0.95
    assert lost < 0.03
    assert f"{len(several):,} measured runs" in SPEED["body"].en
    assert f"{len(several):,} 次实测" in SPEED["body"].zh
    off = round(100 * float(np.median(abs(np.expm1(found)))))
    assert f"{off} %" in SPEED["body"].en
    assert f"{off}%" in SPEED["body"].zh


def test_constants_are_those_that_the_script_fits() -> None:
    law = fit_serving.Law(runs())
    fitted = law.fit(np.arange(len(runs())))
    own = [getattr(speed, name) for name in fit_serving.USUAL]
    assert fitted == pytest.approx(own, rel=0.01)


def test_what_the_product_knows_of_runs_is_what_the_script_writes() -> None:
    several = runs()
    assert Counter(run.series for run in several) == {
        key: len(each) for key, each in served_runs().items()
    }
    now = np.array([getattr(speed, name) for name in fit_serving.USUAL])
    errors = fit_serving.Law(several).errors(now, np.arange(len(several)))
    written = {
        (row[0], row[1], row[2]): tuple(map(float, row[3:]))  # type: ignore[arg-type]
        for row in fit_serving._miss_rows(several, errors)
    }
    assert set(written) == set(misses())
    for key, miss in misses().items():
        numbers = (miss.times, miss.low, miss.high, miss.runs, miss.curves)
        assert written[key] == pytest.approx(numbers, abs=0.01)


def test_answers_of_rows_are_within_their_intervals_or_refused() -> None:
    told, refused = 0, Counter[str]()
    inside = 0
    for row in fit_serving.measured_rows():
        try:
            found = answer(row)
        except LayoutError as error:
            refused[error.code] += 1
            continue
        told += 1
        assert found["low"] < found["tpot_ms"] < found["high"]
        if row["tpot_ms"]:
            inside += found["low"] <= float(row["tpot_ms"]) <= found["high"]
    assert told >= 1359
    assert inside / told > 0.85
    reasons = {"speed-of-machine", "speed-of-guesses", "speed-of-pairs", "not-stated"}
    assert reasons <= set(refused)


def test_gpus_that_were_not_measured_are_refused_in_words() -> None:
    rows = [row for row in fit_serving.measured_rows() if row["gpu"].startswith("MI300X")]
    assert rows
    for row in rows:
        with pytest.raises(LayoutError):
            answer(row)
    with pytest.raises(LayoutError, match="MI300X answer is not worked out"):
        server_speed(server(machine=CLUSTERS["mi300x"]), Load(8, 100, 100))


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"engine": "megatron"}, "speed-of-engine"),
        ({"machine": CLUSTERS["tpu-v6e"]}, "speed-of-machine"),
        ({"machine": CLUSTERS["ascend-910b"]}, "speed-of-machine"),
        ({"speculative": True}, "speed-of-guesses"),
        ({"disaggregated": True}, "speed-of-pairs"),
        ({"machine": CLUSTERS["l40s"]}, "speed-over-pcie"),
        ({"tp": 16}, "speed-beyond-domain"),
        ({"model": DEEPSEEK, "cut": Cut(1, 1, 32), "parts": 32}, "speed-beyond-domain"),
    ],
)
def test_what_the_law_does_not_tell_is_refused(more: dict[str, object], code: str) -> None:
    with pytest.raises(LayoutError) as raised:
        server_speed(server(**more), Load(8, 1024, 1024))  # type: ignore[arg-type]
    assert raised.value.code == code


# -- laws ------------------------------------------------------------------------------------------

LOADS = st.builds(Load, st.integers(1, 512), st.integers(0, 16384), st.integers(1, 8192))


@given(LOADS, st.sampled_from([1, 2, 4, 8]), st.sampled_from(["bf16", "fp8", "nvfp4"]))
def test_more_requests_never_make_a_step_quicker(load: Load, tp: int, weights: str) -> None:
    one = server(tp, weights=weights)
    more = replace(load, requests=2 * load.requests)
    first, second = (sum(seconds_of(one, each).values()) for each in (load, more))
    assert first <= second < 2.0 * first + 1e-9


@given(LOADS, st.sampled_from([LLAMA, DEEPSEEK, MODELS["gpt-oss-120b"].model]))
def test_parts_are_the_whole_and_none_is_negative(load: Load, model: object) -> None:
    found = server_speed(server(model=model), load)
    assert tuple(found.parts) == PARTS
    assert min(found.parts.values()) >= 0
    assert sum(found.parts.values()) == pytest.approx(found.seconds)
    assert found.low < found.seconds < found.high
    assert found.gpu_rate * found.gpus == pytest.approx(found.user_rate * load.requests)


def test_more_tp_reads_less_on_each_gpu_and_sends_more() -> None:
    each = [seconds_of(server(tp), Load(64, 1024, 1024)) for tp in (1, 2, 4, 8)]
    for one, more in pairwise(each):
        assert more["weights"] < one["weights"]
        assert more["compute"] < one["compute"]
        assert more["messages"] > one["messages"]
        assert more["overhead"] >= one["overhead"]


def test_experts_that_are_touched_grow_with_tokens_to_all() -> None:
    shares = [touched(256, 8, tokens) for tokens in (0, 1, 8, 64, 512)]
    assert shares[0] == 0
    assert shares[1] == pytest.approx(8 / 256)
    assert all(one < more for one, more in pairwise(shares))
    assert shares[-1] > 0.999
    few, many = (step_work(DEEPSEEK, Cut(8, 8, 1, 8), Load(n, 0, 100)) for n in (1, 512))
    assert few.weights["experts"] < many.weights["experts"] / 20


def test_few_requests_of_long_prompts_read_few_experts():
    """Most of their steps read no prompt: 4 requests of DeepSeek-V3 meet 31 of 256 experts."""
    long = step_work(DEEPSEEK, Cut(8, 8, 1, 8), Load(4, 8192, 1024))
    short = step_work(DEEPSEEK, Cut(8, 8, 1, 8), Load(4, 0, 1024))
    whole = step_work(DEEPSEEK, Cut(8, 8, 1, 8), Load(1e5, 0, 1024)).weights["experts"]
    assert short.weights["experts"] / whole == pytest.approx(0.119, abs=0.001)
    assert 1.0 < long.weights["experts"] / short.weights["experts"] < 1.05


def test_attention_dp_reads_the_latents_of_its_own_requests_only() -> None:
    load = Load(256, 4096, 1024)
    shared = step_work(DEEPSEEK, Cut(8, 8, 8, 1), load)
    apart = step_work(DEEPSEEK, Cut(1, 1, 8, 1), load, parts=8)
    assert apart.cache == pytest.approx(shared.cache / 8)
    assert apart.weights["attention"] > shared.weights["attention"]
    assert apart.weights["experts"] == pytest.approx(shared.weights["experts"])


def test_layers_with_a_window_read_no_more_than_it() -> None:
    model = MODELS["gemma-4-31b"].model
    short, long = (step_work(model, Cut(), Load(8, n, 2)).cache for n in (4096, 32768))
    whole = [step_work(LLAMA, Cut(), Load(8, n, 2)).cache for n in (4096, 32768)]
    assert long / short < whole[1] / whole[0] == pytest.approx(8, rel=0.01)


def test_a_pipeline_answers_each_request_no_quicker_but_more_of_them() -> None:
    one, two = (
        server_speed(server(4, cut=Cut(4, 4, pp=pp)), Load(64 * pp, 1024, 1024)) for pp in (1, 2)
    )
    assert two.gpus == 2 * one.gpus
    assert one.seconds < two.seconds
    assert two.rate > 1.5 * one.rate


def test_the_interval_narrows_only_where_the_same_was_measured() -> None:
    load = Load(64, 1024, 1024)
    known = server_speed(server(weights="fp8", name="llama3-70b"), load)
    other = server_speed(server(weights="fp8", name="qwen2.5-72b"), load)
    assert known.miss is miss_of("vllm", "dgx-h100", "llama3-70b") is not None
    assert known.runs
    assert not other.runs
    assert other.miss is None
    assert known.high / known.low < other.high / other.low == pytest.approx(speed.HIGH / speed.LOW)
    changed = server(weights="fp8", name="llama3-70b", machine=replace(H100, changed=("hbm",)))
    assert server_speed(changed, load).miss is None
    nearest = known.runs[0]
    assert (nearest.cut[0], nearest.weights, nearest.requests) == (8, "fp8", 64)


def test_a_row_is_asked_with_the_requests_that_fit() -> None:
    row = next(
        row
        for row in fit_serving.measured_rows()
        if row["model"].endswith("Qwen3-32B") and row["tp"] == "1" and row["concurrency"] == "16.0"
    )
    _, load = asked(row)
    assert 1 < load.requests < 16


def test_no_prompt_or_answer_is_guessed() -> None:
    for bad in ({"requests": 0}, {"answer": 0}, {"prompt": -1}, {"requests": float("nan")}):
        with pytest.raises(LayoutError):
            Load(**{"requests": 1, "prompt": 1, "answer": 1, **bad})
