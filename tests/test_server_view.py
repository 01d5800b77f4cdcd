"""Memory of servers on the page, as files, as an endpoint and as a command."""

from __future__ import annotations

import io
import json
import re
from html import unescape

import numpy as np
import pytest

from cli.command import run
from descriptions import MEMORY
from groups import LayoutError
from render.draw.server import draw_strip, draw_tile, hatched
from render.files.figure import figure, scene_marks
from render.marks import Blocks, Lines, Words
from render.palette import FILLS
from render.scenes.server import MOST_REQUESTS, RequestStrip, Segment, ServerPicture, Tile
from request.answers.memory import server_memory
from request.context import Context
from request.served import log_check, served_of, server_facts
from request.state import State
from training.models import MODELS
from training.serving.placed import cut_of, placed
from training.serving.weights import Cut
from views.memory.server import nodes_of, tiles_of
from views.memory.view import memory_html, memory_pictures, memory_slide, memory_summary
from views.page import answer

GIB = 2**30


def server(**fields):
    """The page where it shows memory of vLLM's servers."""
    start = {"view": "memory", "framework": "vllm", "nodes": 1, "tp": 1, "pp": 1}
    return Context.of(State(**{**start, **fields}))


COPIES = {"tp": 8, "model": "qwen3-235b-a22b", "served_weights": "fp8_plain"}

# -- who has what ----------------------------------------------------------------------------------


def test_neighbours_keep_the_same_head_where_there_are_more_ranks_than_heads():
    context = server(**COPIES)
    held = served_of(context).held
    assert held.head.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert (held.heads, held.copies, held.answering) == (1, 2, 1)
    shown = [tile.heads for tile in tiles_of(context, served_of(context), range(8))]
    assert shown == [(0,), (0,), (1,), (1,), (2,), (2,), (3,), (3,)]


@pytest.mark.parametrize(
    ("tp", "heads"), [(1, [(0, 8)]), (4, [(0, 2), (2, 2), (4, 2), (6, 2)])]
)  # fmt: skip
def test_every_head_is_kept_once_where_there_are_as_many_heads(tp, heads):
    layout = server(tp=tp, model="llama3-8b").layout
    model = MODELS["llama3-8b"].model
    held = placed(layout, model, cut_of(layout, model))
    assert [(first, held.heads) for first in held.head[:tp].tolist()] == heads
    assert held.copies == 1


def test_stages_hold_their_own_layers_and_the_same_heads():
    held = served_of(server(nodes=2, tp=4, pp=2, model="llama3-70b")).held
    assert held.stage.tolist() == [0] * 4 + [1] * 4 + [0] * 4 + [1] * 4
    assert held.head.tolist() == [0, 2, 4, 6] * 4
    assert held.answering == 2


def plain(text):
    """Without what keeps a line together."""
    return re.sub(r"<[^>]*>|[\s\u2060\u200b]", "", text)


DEEPSEEK = {"model": "deepseek-v3", "cluster": "dgx-h200"}


@pytest.mark.parametrize(
    ("fields", "cut", "experts", "answering"),
    [
        ({"framework": "vllm", "tp": 8, "dcp": 8}, Cut(8, 8, 1, 8, dcp=8), [0] * 8, 1),
        ({"framework": "vllm", "nodes": 2, "expert_parallel": True}, Cut(1, 1, 16),
         range(0, 128, 16), 16),
        ({"framework": "vllm", "tp": 8, "expert_parallel": True}, Cut(8, 8, 8),
         range(0, 256, 32), 1),
        ({"framework": "sglang", "nodes": 4, "tp": 32, "dp": 32, "ep": 32}, Cut(1, 32, 32),
         range(0, 64, 8), 32),
        ({"framework": "sglang", "tp": 8, "ep": 4}, Cut(8, 8, 4, 2),
         [0, 0, 64, 64, 128, 128, 192, 192], 1),
        ({"framework": "tensorrt-llm", "tp": 8, "ep": 4, "etp": 2}, Cut(8, 8, 4, 2),
         [0, 64, 128, 192] * 2, 1),
        ({"framework": "tensorrt-llm", "tp": 8, "ep": 8, "dp": 8}, Cut(1, 1, 8),
         range(0, 256, 32), 8),
        ({"framework": "megatron-inference", "nodes": 4, "tp": 4, "ep": 8, "etp": 1},
         Cut(4, 4, 8), range(0, 256, 32), 8),
    ],
)  # fmt: skip
def test_each_engine_deals_experts_and_attention_in_its_own_way(fields, cut, experts, answering):
    """SGLang's experts are the reverse of TensorRT-LLM's."""
    context = server(**DEEPSEEK, **fields)
    held, found = served_of(context).held, cut_of(context.layout, MODELS["deepseek-v3"].model)
    assert found == cut
    assert held.expert[:8].tolist() == list(experts)
    assert held.answering == answering
    assert MEMORY["served_heading"]["en"] in memory_html(context)


# -- in words --------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_one_sentence_says_how_many_requests_fit_and_who_keeps_copies(language):
    context = server(**COPIES, lang=language)
    cache = served_of(context).memory.cache
    html, summary = memory_html(context), memory_summary(context)
    copies = MEMORY["served_copies"][language].format(tp=8, heads=4, copies=2)
    for text in (html, summary):
        assert f"{cache.tokens:,}" in text
        assert f"{cache.requests:,.1f}" in text
        assert plain(copies) in plain(text)
    assert f"{cache.tokens:,} tokens, Maximum concurrency for 4,096 tokens" in html


def test_what_cannot_be_served_is_refused_where_the_inputs_stay():
    html = memory_html(server(model="llama3-405b"))
    assert 'role="alert"' in html
    assert 'data-control="served_share"' in html
    assert 'data-field="served_length"' in html
    ways = memory_html(server(nodes=2, tp=8, model="llama3-405b"))
    assert json.dumps({"served_weights": "fp8"}).replace(" ", "") in unescape(ways)
    assert json.dumps({"tp": "16"}).replace(" ", "") in unescape(ways)
    too_long = memory_html(server(model="llama3-8b", served_length="900000"))
    assert "served_length" in too_long.partition('class="fields')[0]  # a button that sets it


def test_a_training_layout_has_no_cache():
    training = Context.of(State(framework="megatron", view="memory"))
    with pytest.raises(LayoutError) as refused:
        server_facts(training)
    assert refused.value.control == "framework"
    assert MEMORY["served_heading"]["en"] not in memory_html(training)


# -- the picture -----------------------------------------------------------------------------------


def marks_of(marks, kind):
    return [mark for mark in marks if isinstance(mark, kind)]


def test_a_bar_is_as_long_as_its_share_and_hatched_where_another_holds_the_same():
    tile = Tile(
        "GPU 0",
        (Segment("kept0", 0.25), Segment("step0", 0.5, is_copied=True)),
        (5,),
        True,
        "",
        ("x",),
    )
    marks = list(draw_tile(tile, "light"))
    weights, cache = (
        mark for mark in marks_of(marks, Blocks) if mark.fill in FILLS["light"].values()
    )
    assert cache.sizes[0] == pytest.approx(2 * weights.sizes[0])
    assert cache.corners[0][0] == pytest.approx(weights.corners[0][0] + weights.sizes[0])
    hatch = marks_of(marks, Lines)
    assert len(hatch) == 2  # of the cache, and of the square of the head
    xs = [x for line in hatch[0].lines for x, _ in line]
    assert min(xs) >= cache.corners[0][0] - 1e-9
    assert max(xs) <= cache.corners[0][0] + cache.sizes[0] + 1e-9
    assert [mark.text for mark in marks_of(marks, Words)] == ["GPU 0", "5", "x"]
    bottom = max(mark.y for mark in marks_of(marks, Words))
    assert bottom < tile.height


@pytest.mark.parametrize(("wide", "tall"), [(3, 16), (100, 16), (16, 100), (5, 5)])
def test_a_hatch_stays_in_its_box(wide, tall):
    points = np.array(hatched(10, 20, wide, tall)).reshape(-1, 2)
    assert (points >= [10, 20]).all()
    assert (points <= [10 + wide, 20 + tall]).all()


@pytest.mark.parametrize("requests", [1.0, 3.7, MOST_REQUESTS, 5000.0])
def test_a_strip_has_a_box_a_request_and_leaves_the_rest_open(requests):
    strip = RequestStrip(requests, "label")
    marks = list(draw_strip(strip, "light"))
    boxes = marks_of(marks, Blocks)
    if strip.is_band:
        assert len(boxes) == 2
        return
    assert len(boxes[1].corners) == int(requests)
    right = boxes[1].corners[-1][0] + boxes[1].sizes[0]
    assert right == pytest.approx(strip.length * int(requests) / requests)


def test_a_large_layout_shows_the_node_of_the_chosen_gpu_and_all_as_cells():
    context = server(nodes=128, tp=8, pp=2, model="llama3-405b", served_weights="fp8", rank="100")
    assert nodes_of(context.layout, 100) == [(12, range(96, 104))]
    html = memory_html(context)
    assert html.count('served-tile"') == 8
    assert 'class="heat large"' in html
    assert len(html) < 80_000
    assert 'class="heat' not in memory_html(server(nodes=32, tp=8, pp=1, model="llama3-70b"))
    assert nodes_of(server(nodes=8, tp=8, model="llama3-70b").layout, 9)[1] == (1, range(8, 16))


@pytest.mark.parametrize(
    ("sizes", "lines"),
    [
        ({"ep": 8}, ("expert 0", "expert 1")),
        ({"ep": 4}, ("experts 0–1 · 1/2", "experts 0–1 · 1/2", "experts 2–3 · 1/2")),
    ],
)
def test_a_tile_names_its_experts(sizes, lines):
    context = server(framework="sglang", nodes=1, tp=8, pp=1, model="mixtral-8x7b", **sizes)
    ((_, picture),) = memory_pictures(context)
    tiles = picture.nodes[0][1]
    assert [tile.lines for tile in tiles[: len(lines)]] == [(line,) for line in lines]


def test_files_show_the_same_tiles():
    context = server(nodes=2, tp=4, pp=2, model="llama3-70b")
    ((title, picture),) = memory_pictures(context)
    assert isinstance(picture, ServerPicture)
    assert [len(tiles) for _, tiles in picture.nodes] == [8, 8]
    texts = [mark.text for mark in scene_marks(picture, "light") if isinstance(mark, Words)]
    assert {f"GPU {rank} · stage {rank // 4 % 2}" for rank in range(16)} <= set(texts)
    assert picture.line in texts
    ((_, slide),) = memory_slide(server(nodes=8, tp=8, model="llama3-70b"))
    assert len(slide.nodes) == 1
    drawing = figure([(title, picture)], "light")
    assert drawing.width >= picture.width


# -- a log -----------------------------------------------------------------------------------------

PRINTED = "Available KV cache memory: 51.38 GiB\nGPU KV cache size: 420,864 tokens"


def test_a_log_agrees_to_the_token_and_says_which_rank_decides():
    log = PRINTED.replace("Available", "(Worker_TP0 pid=1) Available")
    log += "\n(Worker_TP1 pid=2) Available KV cache memory: 52.00 GiB"
    context = server(model="llama3-8b", engine_log=log)
    check = log_check(context)
    assert check.deciding.name == "TP0"
    exact = check.rows[0]
    assert (exact.what, exact.printed, exact.agrees) == ("tokens_in", 420_864, True)
    html = memory_html(context)
    assert "TP0" in html
    assert MEMORY["log_agrees"]["en"].split("{")[0] in html


def test_a_log_of_another_model_differs():
    check = log_check(server(model="qwen3-8b", engine_log=PRINTED))
    assert check.rows[0].agrees is False
    assert log_check(server(model="qwen3-8b", engine_log="nothing of it")) is None
    html = memory_html(server(model="qwen3-8b", engine_log="nothing of it"))
    assert MEMORY["log_none"]["en"] in html


# -- programs --------------------------------------------------------------------------------------


def test_endpoint_command_and_page_say_the_same(capsys):
    asked = {"nodes": 1, "tp": 8, "framework": "vllm", "model": "qwen3-235b-a22b"}
    facts = json.loads(server_memory(**asked, weights="fp8_plain"))
    assert facts == json.loads(json.dumps(server_facts(server(**COPIES))))
    words = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    out = io.StringIO()
    argv = ["memory", *words, "--served-weights=fp8_plain", "--format=json"]
    assert run(argv, io.StringIO(), out, io.StringIO()) == 0
    said = json.loads(out.getvalue())
    assert {name: said[name] for name in facts} == facts
    page = answer(State(view="memory", framework="vllm", **{"nodes": 1, "pp": 1}, **COPIES))
    assert f"{facts['tokens']:,}" in str(page)


def test_the_endpoint_refuses_by_its_own_names():
    with pytest.raises(Exception, match="max_model_len"):
        server_memory(nodes=1, framework="vllm", max_model_len=10_000_000)
    with pytest.raises(Exception, match="weights"):
        server_memory(nodes=1, framework="vllm", weights="fp3")
