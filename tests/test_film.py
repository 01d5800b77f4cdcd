"""A step played on the picture of the job: what the server tells of it, and what the page shows."""

from __future__ import annotations

import json
import re

import pytest
from addresses import follow_link
from browser import costs_told, expect, requests_during, settle, type_sizes, wait_until
from hypothesis import given
from hypothesis import strategies as st

from request.link import from_query, state_texts
from request.units import bytes_text
from training.pipeline import Durations, plan_of, simulate
from training.pipeline.plan import KINDS
from views.groups.film import MOST_MOVES, PARTS, WHOLE, busy_texts, film, moves_of


def asked(query: str) -> dict:
    return json.loads(film(json.dumps(state_texts(from_query(query)))))


@given(
    st.sampled_from(("gpipe", "1f1b", "zb-h1", "zb-v", "dualpipe")),
    st.sampled_from((2, 4)),
    st.sampled_from((8, 12)),
)
def test_a_rank_is_busy_as_long_as_its_ops_take(name, p, m):
    timeline = simulate(plan_of(name, p=p, m=m), Durations())
    for text, row in zip(busy_texts(timeline), timeline.rows()):
        ran = sum(end - start for _, start, end in row) / timeline.makespan
        assert abs(len(text.replace(" ", "")) / len(text) - ran) < 3 * len(row) / PARTS


def test_every_forward_goes_down_the_stages_and_every_backward_up():
    timeline = simulate(plan_of("1f1b", p=4, m=6), Durations())
    moves = moves_of(timeline)
    assert len(moves) == 2 * 4 * 6
    for micro, is_backward, before, rank, made, begun, ended in moves:
        assert 0 <= micro < 6
        assert 0 <= made <= begun < ended <= WHOLE
        assert before == (min(rank + 1, 3) if is_backward else rank - 1)


def test_interleaved_micro_batches_come_back_to_the_first_rank():
    timeline = simulate(plan_of("interleaved", p=2, m=2, v=2), Durations())
    assert {(0, 1, 0), (1, 0, 1)} <= {(kind, *way) for _, kind, *way in by_ranks(timeline)}


def by_ranks(timeline):
    return [move[:4] for move in moves_of(timeline)]


def test_the_seconds_are_those_of_step_time():
    found = asked("nodes=8&tp=4&pp=4&model=llama3-8b&global_batch=64")
    assert sum(found["seconds"].values()) == pytest.approx(found_step(found), rel=0.06)
    assert len(found["busy"]) == 4
    assert set("".join(found["busy"])) == {"F", "B", " "}


def found_step(found: dict) -> float:
    number, unit = re.fullmatch(r"([\d.]+) (m?s)", found["step"]).groups()
    return float(number) / (1 if unit == "s" else 1000)


def test_what_cannot_be_played_is_refused_in_words():
    found = asked("nodes=2&tp=2&pp=2&global_batch=7")
    assert list(found) == ["refused"]
    assert "7" in found["refused"]


def test_long_steps_have_no_dots_and_stay_small():
    text = film(json.dumps(state_texts(from_query("nodes=64&pp=64&layers=64&micro_batches=512"))))
    found = json.loads(text)
    assert found["moves"] == []
    assert MOST_MOVES < 2 * 64 * 512
    assert len(text) < 50_000
    assert all(set(one) <= {*KINDS, "P", " "} for one in found["busy"])


# -- data parallelism, beside each program's own law -----------------------------------------------

LAYER = 4096 * (4096 + 1024 + 1024 + 4096) + 3 * 4096 * 14336 + 2 * 4096
"""Parameters of a layer of Llama 3 8B: queries, keys, values, their output, the feed-forward."""

TABLE, NORM = 128256 * 4096, 4096
ALL = 32 * LAYER + 2 * TABLE + NORM


def ring(size: float, ranks: int, shares: int = 1) -> str:
    """Bytes that each of so many ranks sends of a buffer, in words."""
    return bytes_text(shares * (ranks - 1) / ranks * size)


RESHARDS = {"default": ("33", ALL - TABLE - NORM), "always": ("34", ALL), "never": ("", 0)}
"""What torchtitan gathers again in backward: all but the norm with the output, all, nothing."""


def of_titan(reshard: str, shards: int, copies: int = 1) -> dict[str, list[list[object]]]:
    again, elements = RESHARDS[reshard]
    backward = [["parameters_again", "all_gather", 0, [[again, ring(2 * elements, shards)]]]]
    backward = backward if again else []
    backward.append(["gradients", "reduce_scatter", 0, [["34", ring(4 * ALL, shards)]]])
    if copies > 1:
        summed = ring(4 * ALL / shards, copies, 2)
        backward.append(["replicas", "all_reduce", 1, [["34", summed]]])
    forward = [["parameters", "all_gather", 0, [["34", ring(2 * ALL, shards)]]]]
    return {"forward": forward, "first": [], "backward": backward, "dp": [], "update": []}


ONE_STAGE = "nodes=2&tp=1&pp=1&model=llama3-8b"


@pytest.mark.parametrize("reshard", RESHARDS)
@pytest.mark.parametrize("copies", [1, 2])
def test_fsdp_gathers_and_reduces_unit_by_unit_with_every_micro_batch(reshard, copies):
    query = f"{ONE_STAGE}&framework=torchtitan&reshard={reshard}&instances={copies}"
    data = asked(query)["data"]
    assert data["ops"] == of_titan(reshard, 16 // copies, copies)
    assert data["whole"] is False


@pytest.mark.parametrize("sync", ["last", "kept"])
def test_fsdp_that_waits_reduces_behind_the_last_micro_batch(sync):
    ops = asked(f"{ONE_STAGE}&framework=torchtitan&sync={sync}")["data"]["ops"]
    every = of_titan("default", 16)
    assert ops["dp"] == every["backward"][1:]
    assert ops["backward"] == every["backward"][:1]
    # What backward gathers stays whole, where that is kept.
    assert ops["first" if sync == "kept" else "forward"] == every["forward"]


def test_fsdp_through_stages_gathers_with_the_first_forward_alone():
    ops = asked("nodes=2&tp=1&pp=2&model=llama3-8b&framework=torchtitan")["data"]["ops"]
    stages = [16 * LAYER + TABLE, 16 * LAYER + TABLE + NORM]
    for when, operation, bytes_each in (("first", "all_gather", 2), ("dp", "reduce_scatter", 4)):
        told = [["17", ring(bytes_each * elements, 8)] for elements in stages]
        assert [row[1:] for row in ops[when]] == [[operation, 0, told]]
    assert not ops["forward"]
    assert not ops["backward"]


@pytest.mark.parametrize("sync", ["every", "last"])
def test_ddp_reduces_its_rebuilt_buckets(sync):
    """The first bucket has the output's matrix, of more than 1 MiB; of each layer most matrices
    reach 25 MiB: down, up, gate, output with norms, queries; keys and values join the next."""
    data = asked(f"{ONE_STAGE}&framework=pytorch-ddp&sync={sync}")["data"]
    names = ("w2", "w3", "w1", "wo", "wv", "wk", "wq")
    sizes = dict(zip(names, (14336, 14336, 14336, 4096, 1024, 1024, 4096)))
    buckets, filled, cap = 0, 0, 2**20
    order = [TABLE, NORM]
    for _ in range(32):
        order += [4096 * sizes[name] for name in names[:3]] + [NORM]
        order += [4096 * sizes[name] for name in names[3:]] + [NORM]
    for elements in [*order, TABLE]:
        filled += 4 * elements
        if filled >= cap:
            buckets, filled, cap = buckets + 1, 0, 25 * 2**20
    wanted = [["gradients", "all_reduce", 0, [[str(buckets), ring(4 * ALL, 16, 2)]]]]
    assert data["ops"]["backward" if sync == "every" else "dp"] == wanted
    assert sum(map(len, data["ops"].values())) == 1
    assert data["whole"] is True


def test_deepspeed_all_reduces_whole_gradients_and_gathers_once():
    for zero, when in ((0, "dp"), (1, "dp"), (2, "backward")):
        data = asked(f"{ONE_STAGE}&framework=deepspeed&zero={zero}")["data"]
        ((what, operation, _, ((count, sent),)),) = data["ops"][when]
        assert (what, operation) == ("gradients", "all_reduce")
        assert sent == ring(2 * ALL, 16, 2)
        assert 8.03e9 / 6e8 < int(count) < 8.03e9 / 4e8  # of 5e8 elements each or more
        gathered = [["parameters", "all_gather", 0, [["1", ring(2 * ALL, 16)]]]]
        assert data["ops"]["update"] == (gathered if zero else [])
        assert data["whole"] is (zero == 0)


def test_zero_3_and_mics_cut_weights_and_all_reduce_over_copies():
    plain = asked(f"{ONE_STAGE}&framework=deepspeed&zero=3")["data"]["ops"]
    assert [row[:2] for row in plain["backward"]] == [
        ["parameters_again", "all_gather"],
        ["gradients", "reduce_scatter"],
    ]
    mics = asked(f"{ONE_STAGE}&framework=deepspeed-mics&zero=3&instances=2")["data"]
    last = mics["ops"]["backward"][-1]
    assert last[:2] == ["replicas", "all_reduce"]
    assert last[3][0][1] == ring(2 * ALL / 8, 2, 2)
    axes, names, *_ = mics["groups"][last[2]]
    assert sorted(dict(axes)[name] for name in names)[-1] == 2


def test_experts_on_ranks_of_their_own_are_told_apart():
    query = "nodes=2&tp=1&pp=1&ep=8&model=qwen3-30b-a3b"
    titan = asked(f"{query}&framework=torchtitan")["data"]["ops"]
    assert [row[0] for row in titan["forward"]] == ["parameters", "experts_parameters"]
    megatron = asked(query)["data"]["ops"]
    assert [row[0] for row in megatron["dp"]] == ["gradients", "experts_gradients"]
    assert [row[0] for row in megatron["update"]] == ["parameters", "experts_parameters"]


def test_an_op_of_one_chunk_has_its_part_of_what_a_rank_sends():
    one = asked("nodes=2&tp=2&pp=2&model=llama3-8b")["shared"]["tp"]
    two = asked("nodes=2&tp=2&pp=2&vpp=2&model=llama3-8b")["shared"]["tp"]
    number = [float(texts[0][0].split()[0]) for texts in (one, two)]
    assert number[0] == pytest.approx(2 * number[1], rel=0.01)


# -- in a browser ----------------------------------------------------------------------------------


def scrub(page, part: float) -> None:
    page.evaluate(
        """part => { const slider = document.querySelector('.film input');
        slider.value = 1000 * part; slider.dispatchEvent(new Event('input', {bubbles: true})); }""",
        part,
    )
    wait_until(page, "() => document.querySelector('.play .cover[class*=is-]')")


def covers(page) -> list[str]:
    script = "all => all.map(one => one.getAttribute('class').replace('cover is-', ''))"
    return page.eval_on_selector_all(".play .cover", script)


@pytest.fixture
def moving(open_page):
    """The page of somebody who has not asked for less motion, and has seen the film: it would play
    by itself otherwise, or not, as the page was opened more than a moment ago or not."""
    page = open_page()
    page.evaluate("localStorage.setItem('film-seen', '1')")
    page.emulate_media(reduced_motion="no-preference")
    yield page
    page.emulate_media(reduced_motion="reduce")


@pytest.mark.browser
def test_scrubbing_shows_who_computes_and_where_micro_batches_are(open_page):
    page = open_page()
    scrub(page, 0.02)
    assert covers(page) == ["f", "idle"]
    dots = page.eval_on_selector_all(".play .dot text", "all => all.map(one => one.textContent)")
    assert dots == ["0", "1", "2", "3"]  # one in each replica, with samples of its own
    scrub(page, 0.85)
    assert covers(page) == ["dp", "dp"]
    assert page.query_selector(".play .dot") is None
    lines = page.eval_on_selector_all(
        ".flows.on path", "all => all.map(one => Number(one.style.strokeDashoffset))"
    )
    assert lines
    assert all(0 <= left < 1 for left in lines)
    scrub(page, 0.99)
    assert covers(page) == ["optimizer", "optimizer"]


def one_f_one_b(stages: int, micro_batches: int) -> list[list[tuple[str, int, float, float]]]:
    """1F1B by its rule alone: (F or B, micro-batch, begin, end) of each stage."""
    orders = []
    for stage in range(stages):
        early = min(stages - 1 - stage, micro_batches)
        order = [("F", one) for one in range(early)]
        for one in range(micro_batches - early):
            order += [("F", one + early), ("B", one)]
        orders.append(order + [("B", one) for one in range(micro_batches - early, micro_batches)])
    ends: dict[tuple[str, int, int], float] = {}
    done: list[list[tuple[str, int, float, float]]] = [[] for _ in orders]
    while any(len(done[stage]) < len(order) for stage, order in enumerate(orders)):
        for stage, order in enumerate(orders):
            if len(done[stage]) == len(order):
                continue
            kind, one = order[len(done[stage])]
            needs = (kind, one, stage - 1 if kind == "F" else stage + 1)
            is_first = needs[2] < 0 or needs[2] == stages
            if not is_first and needs not in ends:
                continue
            free = done[stage][-1][3] if done[stage] else 0.0
            begin = max(free, 0.0 if is_first else ends[needs])
            ends[kind, one, stage] = begin + (1 if kind == "F" else 2)
            done[stage].append((kind, one, begin, ends[kind, one, stage]))
    return done


MESSAGE = 8192 * 4096 * 2 / 2
"""Bytes of Llama 3 8B's activations of a sample in bf16, of which two tp ranks have half each."""

PIPELINE = 1 - 0.12 - 0.07
"""The share of the film that the pipeline has: what comes after it takes its least shares."""


UPDATE = "updates its share of the weights, then gathers the rest with GPUs 1, 3 and 7"


def expected(part: float) -> str:
    """What GPU 5 of 16 (tp 2, dp 4, pp 2) does: stage 0 of replica 2, eight micro-batches each."""
    done = one_f_one_b(2, 8)
    whole = max(end for stage in done for *_, end in stage)
    time, own = part / PIPELINE * whole, done[0]
    if part >= PIPELINE:
        return "averages gradients with GPUs 1, 3 and 7" if part < 0.93 else UPDATE
    number = lambda one: 4 * one + 2  # noqa: E731 - of all micro-batches of the step, dp 4
    for kind, one, begin, end in own:
        if begin <= time < end:
            way = {"F": "forward", "B": "backward"}[kind]
            text = f"computes micro-batch {number(one)} {way}, exchanging "
            text += f"{16 * 4 * MESSAGE / 1e9:.2f} GB with GPU 4"
            passed = f", and will pass {MESSAGE / 1e6:.1f} MB to GPU 13 over the network."
            return text + (passed if kind == "F" else ".")
    kind, one, *_ = next(op for op in own if op[2] > time)
    assert kind == "B"
    return (
        f"waits for micro-batch {number(one)}: {MESSAGE / 1e6:.1f} MB from GPU 13 over the network."
    )


@pytest.mark.browser
def test_twenty_captions_are_what_is_worked_out_without_the_page(open_page):
    page = open_page()
    follow_link(page, "rank=5")
    parts = [at / 1000 for at in (9, 55, 75, 110, 140, 175, 200, 233, 290, 333, 377, 420, 471)]
    for part in (*parts, 0.55, 0.6, 0.66, 0.7, 0.725, 0.85, 0.97):
        scrub(page, part)
        said = page.inner_text(".film-says").replace("\u00a0", " ")
        seconds, _, sentence = said.partition(" s: GPU 5 ")
        assert sentence.startswith(expected(part)), (part, said)
        assert 0 <= float(seconds) <= 2.2
        outlined = page.eval_on_selector_all(
            ".play .spoken .part", "all => all.filter(one => one.checkVisibility()).length"
        )
        assert outlined == {"c": 2, "w": 2, "a": 4, "u": 4}[sentence[0]]


@pytest.mark.browser
def test_captions_tell_cp_and_experts_halves_of_a_backward_and_steps_of_many_ops(open_page):
    """Cp and ep by the sizes of Llama 3 8B and GPT 16x0.125B alone: see each line."""
    page = open_page()

    def said(query: str, part: float) -> str:
        follow_link(page, query)
        scrub(page, part)
        return page.inner_text(".film-says").replace("\u00a0", " ").partition(": ")[2]

    # Half of a sequence of 8,192, K and V of 8 heads of 128 in bf16 to the one other, in 16 layers.
    passed = 16 * 2 * 8192 / 2 * 8 / 2 * 128 * 2
    first = said("v=2&nodes=2&tp=2&pp=2&cp=2&rank=0", 0.02)
    assert f" and, over cp, {passed / 1e6:.0f} MB with GPU 2" in first
    with_experts = said("v=2&nodes=2&tp=1&pp=2&ep=4&model=qwen3-30b-a3b&rank=0", 0.02)
    assert re.search(r"exchanging [\d.]+ GB with GPUs 1, 2 and 3", with_experts), with_experts
    # Half-backward ops: each stage ends with gradients of weights.
    split = "v=2&nodes=2&tp=2&pp=2&schedule=zb-h1&rank=0"
    assert said(split, 0.8) == "GPU 0 computes gradients of weights, for which nobody waits."
    assert "the inputs' gradients of micro-batch" in said(split, 0.3)
    many = "v=2&nodes=64&tp=8&pp=64&layers=64&micro_batches=512&rank=0"
    assert said(many, 0.02) == "GPU 0 computes a micro-batch forward."


SAID = [
    ("framework=torchtitan&instances=2", 0.01, " forward, gathering weights with GPUs 4, 6 and 7"
     f" (34 all-gathers, {ring(2 * ALL, 4)} over NVLink)."),
    ("framework=torchtitan&instances=2", 0.09, " backward, gathering weights again with GPUs 4, 6"
     f" and 7 (33 all-gathers, {ring(2 * (ALL - TABLE - NORM), 4)} over NVLink), reducing gradients"
     f" with GPUs 4, 6 and 7 (34 reduce-scatters, {ring(4 * ALL, 4)} over NVLink), summing them"
     f" over the copies with GPU 1 (34 all-reduces, {ring(ALL, 2, 2)} over NVLink)."),
    ("framework=torchtitan&instances=2", 0.85, ": GPU 5 waits for the gathers and reductions that"),
    ("framework=pytorch-ddp&sync=last", 0.85, ": GPU 5 averages gradients with 7 other GPUs (194"
     f" all-reduces, {ring(4 * ALL, 8, 2)} over NVLink)."),
    ("framework=pytorch-ddp", 0.97, ": GPU 5 updates all weights that it holds, as every other"),
    ("framework=deepspeed&zero=2", 0.97, ": GPU 5 updates its share of the weights, then gathers"
     f" the rest with 7 other GPUs ({ring(2 * ALL, 8)} over NVLink)."),
]  # fmt: skip


@pytest.mark.browser
def test_captions_tell_each_programs_own_data_parallelism(open_page):
    page = open_page()
    for query, part, words in SAID:
        follow_link(page, f"v=2&nodes=1&tp=1&pp=1&model=llama3-8b&rank=5&{query}")
        scrub(page, part)
        said = page.inner_text(".film-says").replace("\u00a0", " ")
        assert words in said, (query, part, said)
        lines = page.locator(".flows.on path").count()
        assert (lines > 0) is (part < 0.81 or "averages" in words), (query, part)


@pytest.mark.browser
def test_arrow_keys_go_from_op_to_op_and_tints_are_off_meanwhile(open_page):
    page = open_page()
    follow_link(page, "rank=5")
    page.focus(".film input")
    said = []
    for _ in range(4):
        page.keyboard.press("ArrowRight")
        settle(page)
        said.append(page.inner_text(".film-says").partition("micro-batch ")[2].split(" ")[0])
    assert said == [
        "6",
        "2:",
        "2",
        "10",
    ]  # a second forward, a wait, its backward, the next forward
    page.keyboard.press("ArrowLeft")
    assert "micro-batch 2 backward" in page.inner_text(".film-says")
    assert (
        page.locator("svg.job.playing .marked").evaluate("one => getComputedStyle(one).visibility")
        == "hidden"
    )


@pytest.mark.browser
def test_a_link_has_the_moment_and_opens_at_it(open_page):
    page = open_page()
    follow_link(page, "rank=5")
    page.focus(".film input")
    page.keyboard.press("ArrowRight")
    wait_until(page, "() => new URLSearchParams(location.search).get('t')")
    said, address = page.inner_text(".film-says"), page.evaluate("location.href")
    assert "micro-batch 6 forward" in said
    page.goto("about:blank")
    page.goto(address)
    wait_until(page, "() => document.querySelector('.film-says')?.textContent")
    assert page.inner_text(".film-says") == said
    type_sizes(page, tp=4)  # other moments
    wait_until(page, "() => !new URLSearchParams(location.search).get('t')")


@pytest.mark.browser
def test_the_film_plays_by_itself_once_for_who_is_here_for_the_first_time(moving):
    page = moving
    page.evaluate("localStorage.removeItem('film-seen')")
    page.goto(page.url.split("?")[0])
    wait_until(page, "() => Number(document.querySelector('.film input')?.value) > 5")
    assert page.evaluate("localStorage.getItem('film-seen')") == "1"
    # One step, not for as long as the page is open: a quarter of an hour is over.
    page.evaluate(
        "() => { window.ask = requestAnimationFrame;"
        " window.requestAnimationFrame = (then) => ask((now) => then(now + 1e6)); }"
    )
    wait_until(page, "() => Number(document.querySelector('.film input')?.value) === 0")
    page.evaluate("() => { window.requestAnimationFrame = ask; delete window.ask; }")
    expect(page.locator(".film [data-play=play]")).to_have_text("Play")
    expect(page.locator("svg.job.playing")).to_have_count(0)


@pytest.mark.browser
def test_playing_asks_the_server_once(moving):
    page = moving
    costs_told(page)
    sent = []
    # A slow server is asked for how long it will take, too.
    page.on("request", lambda one: "wait" in (one.post_data or "") or sent.append(one.url))
    page.click(".film [data-play=play]")
    wait_until(page, "() => Number(document.querySelector('.film input').value) > 60")
    first = int(page.input_value(".film input"))
    wait_until(page, f"() => Number(document.querySelector('.film input').value) > {first}")
    assert len(sent) == 1
    page.click(".film [data-play=play]")
    assert page.inner_text(".film [data-play=play]") == "Play"


@pytest.mark.browser
def test_another_layout_ends_it(open_page):
    page = open_page()
    scrub(page, 0.3)
    type_sizes(page, tp=4)
    wait_until(page, "() => !document.querySelector('.play')")
    assert page.input_value(".film input") == "0"


@pytest.mark.browser
def test_where_less_motion_is_asked_for_there_is_a_slider_and_no_button(open_page):
    page = open_page()
    assert not page.is_visible(".film [data-play=play]")
    assert page.is_visible(".film input")
    type_sizes(page, tp=4)
    assert page.query_selector(".glide") is None


WATCHED = """() => {
  window.glides = [];
  const look = ([{ addedNodes, removedNodes }]) => {
    for (const one of addedNodes) if (one.className === 'glide') window.glides.push('on');
    for (const one of removedNodes) if (one.className === 'glide') window.glides.push('off');
  };
  new MutationObserver((all) => all.forEach((one) => look([one])))
    .observe(document.body, { childList: true, subtree: true });
}"""


@pytest.mark.browser
def test_gpus_glide_to_another_layout_and_a_key_ends_it(moving):
    page = moving
    page.evaluate(WATCHED)
    type_sizes(page, tp=4)
    wait_until(page, "() => window.glides.join() === 'on,off'")
    assert page.locator("svg.job.gliding").count() == 0
    type_sizes(page, tp=2)
    wait_until(page, "() => window.glides.length >= 3")
    page.keyboard.press("Shift")
    assert page.query_selector(".glide") is None


@pytest.mark.browser
def test_a_page_that_is_opened_shows_its_layout_at_once_and_glides_from_there(moving, server):
    page = moving
    page.goto(f"{server}?v=2&nodes=32&tp=4&pp=2", wait_until="commit")
    page.wait_for_selector(".app.waiting", state="attached")
    page.evaluate(WATCHED)
    wait_until(page, "() => document.querySelector('.app:not(.waiting) svg.job')")
    settle(page)
    assert page.evaluate("window.glides") == []
    type_sizes(page, tp=2)
    wait_until(page, "() => window.glides.join() === 'on,off'")


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "zh"])
def test_gpus_glide_between_two_orders_and_the_card_tells_of_the_one_shown(moving, language):
    page = moving
    follow_link(page, f"v=2&show=orders&rank=5&lang={language}")
    page.evaluate(WATCHED)
    assert shown_orders(page) == ["1"]
    assert "1, 3, 5, 7" in page.inner_text(".told")
    sent = requests_during(page, lambda: page.click("[data-order='0']"))
    assert sent == []
    wait_until(page, "() => window.glides.join() === 'on,off'")
    assert shown_orders(page) == ["0"]
    assert "1, 5, 9, 13" in page.inner_text(".told")
    assert "tp 1, pp 0, dp 1" in page.inner_text(".order-said")
    assert page.locator(".job.gliding").count() == 0
    cells = page.locator(".jobs:visible .job .me").get_attribute("data-r")
    assert cells == "5"


@pytest.mark.browser
def test_orders_are_changed_by_the_keyboard_at_once_and_kept_on_another_size(open_page):
    """Where less motion is asked for nothing glides; another size does not turn it back."""
    page = open_page()
    follow_link(page, "v=2&show=orders")
    page.focus("[data-order='1']")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.query_selector(".glide") is None
    assert shown_orders(page) == ["0"]
    type_sizes(page, tp=4)
    settle(page)
    assert shown_orders(page) == ["0"]
    assert "tp 0, pp 1, dp 0" in page.inner_text(".order-said")


def shown_orders(page) -> list[str]:
    """Which of both is pressed; all that is seen is of it."""
    seen = page.locator("[data-shows]:visible")
    assert seen.count() >= 4
    sides = {*seen.evaluate_all("all => all.map(one => one.dataset.shows)")}
    pressed = page.locator("[data-order][aria-pressed=true]")
    orders = pressed.evaluate_all("all => all.map(one => one.dataset.order)")
    assert sides == {*orders}
    return orders
