"""The Moves view: its pictures are the slices of the maths, its sentences their sums."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from descriptions import LANGUAGES
from groups import LayoutError
from render.draw.kv import draw_kv
from render.draw.moves import draw_moves
from render.draw.tensor import draw_tensor
from render.scenes.moves import shard_rows
from request.answers.moves.cache import kv_transfer, moves_cache
from request.answers.moves.sides import size_text
from request.answers.moves.transfer import usual_name, weight_transfer
from request.context import Context
from request.resolve import from_preset
from request.state import State
from request.units import bytes_text
from tests.cases import every
from training.moves.published import measured_updates
from views.moves.cache import cache_answer, cache_picture, kv_hover_texts
from views.moves.flows import CELLS, flows_of
from views.moves.hover import receiver_text, sender_text
from views.moves.pictures import job_picture
from views.moves.reel import moves_reel, steps_of
from views.moves.tensor import MOST_PIECES, cuts_of, spans_of, tensor_picture
from views.moves.view import (
    answer_text,
    moves_html,
    moves_pictures,
    moves_summary,
    needs_text,
    other_choices,
)

ACTOR = State(nodes=8, tp=4, pp=2, model="llama3-8b", rank="12", view="moves")
STATES = {
    "an actor and its servers": ACTOR,
    "servers elsewhere, one sender": replace(ACTOR, moves_first="behind", moves_rule="first"),
    "experts": State(nodes=8, tp=2, pp=1, ep=8, etp="1", model="qwen3-30b-a3b", kept="~ep=4;tp=4"),
    "ZeRO-3": State(nodes=2, tp=1, pp=1, zero="3", kept="~tp=2;zero=1"),
    "16,384 GPUs": State(nodes=2048, tp=8, pp=16, model="llama3-405b", rank="9000"),
    "nothing moves": State(nodes=1, tp=2, pp=1, kept="~tp=2"),
}


def asked(state):
    return Context.of(state).once(weight_transfer)


def test_the_answer_says_what_crosses_and_what_each_gpu_needs():
    found = asked(ACTOR)
    assert answer_text(found) == (
        "Weights go from this layout to tp 2 dp 32. Of the 514 GB that its GPUs need, 257 GB cross "
        "the network: usually 803 ms to 1.14 s; 80.3 ms at link speed. 193 GB come from the same "
        "node. 64.3 GB are on their GPU already."
    )
    assert needs_text(found) == (
        "GPU 12 needs 8.03 GB: 2.01 GB it has, 2.01 GB come from its node, 4.02 GB from other "
        "nodes. Senders: 4 GPUs."
    )
    still = asked(STATES["nothing moves"])
    assert answer_text(still).endswith(" they have already.")
    assert needs_text(still).startswith("GPU 0 has all of the ")


@every("name", STATES)
def test_a_line_leads_from_each_of_those_that_send_most(name):
    found = asked(STATES[name])
    picture, received = job_picture(found), found.received
    assert [line.rank for line in picture.lines] == [
        rank for rank, _ in received.most_common(len(picture.lines))
    ]
    drawn = {rank for rank, *_ in picture.cells(0)}
    shown = [line.rank for line in picture.lines if line.rank in drawn]
    assert len(shown) >= min(len(picture.lines), 8)  # as many as a row has room for
    assert found.rank in {rank for rank, *_ in picture.cells(1)}
    cells = [(x, y) for side in (0, 1) for _, x, y in picture.cells(side)]
    assert len({*cells}) == len(cells)
    assert max(x for x, _ in cells) + picture.cell <= picture.width
    assert max(y for _, y in cells) + picture.tall <= picture.height
    assert [*draw_moves(picture, "light")]


@every("name", STATES)
def test_the_pieces_of_every_tensor_are_what_the_gpu_receives(name):
    found = asked(STATES[name])
    for row in steps_of(found)[1]:
        cuts = cuts_of(found, row)
        spans = spans_of(row, cuts)
        across = cuts.tensor.elements // cuts.tensor.shape[cuts.axis if row.axis is not None else 0]
        for span in spans:  # what lies between its ends is what is sent
            rows = 1 if span.rows is None else span.rows[1] - span.rows[0]
            each = across if span.rows is None else across // cuts.tensor.shape[0]
            assert (span.end - span.start) * rows * each * found.moves.element_bytes == span.size
        assert sum(span.size for span in spans) == sum(row.sizes)
        picture = tensor_picture(found, row, {})
        wanted = [piece for piece in picture.pieces if piece.is_wanted]
        shown = {(piece.block, piece.origin) for piece in wanted}
        for span in spans if len(spans) <= MOST_PIECES else ():
            origin = "GPU {0} has it" if span.sender == found.rank else "from GPU {0}, {1}"
            assert (span.block, origin.format(span.sender, bytes_text(span.size))) in shown
        assert len(wanted) >= min(len(spans), MOST_PIECES)
        labels = [piece.label for piece in picture.pieces]
        assert len({*labels}) == len(labels)
        assert [*draw_tensor(picture, "dark")]


def test_a_tensor_is_cut_where_either_side_cuts_it():
    found = asked(replace(ACTOR, kept="~tp=8;pp=1"))
    row = next(row for row in found.rows if row.tensor.endswith("linear_fc2.weight"))
    picture = tensor_picture(found, row, {})
    assert picture.is_across
    assert [(piece.source, piece.target) for piece in picture.pieces] == [
        ("tp 0", "tp 0"), ("tp 0", "tp 1"), ("tp 1", "tp 2"), ("tp 1", "tp 3"),
        ("tp 2", "tp 4"), ("tp 2", "tp 5"), ("tp 3", "tp 6"), ("tp 3", "tp 7"),
    ]  # fmt: skip
    assert [piece.is_wanted for piece in picture.pieces] == [False] * 4 + [True] + [False] * 3


@every("name", STATES)
def test_the_view_says_the_same_in_files_and_in_both_languages(name):
    for language in LANGUAGES:
        context = Context.of(replace(STATES[name], lang=language))
        html = str(moves_html(context))
        found = context.once(weight_transfer)
        assert answer_text(found) in html.replace("\xa0", " ").replace("&#39;", "'")
        assert answer_text(found) in moves_summary(context)
        assert len(moves_pictures(context)) == 4
        assert flows_of(found).picture.levels.shape[0] <= CELLS


def test_what_is_left_out_of_a_row_is_marked_and_a_shown_rank_is_kept():
    boxes = [range(first, first + 4) for first in range(0, 400, 4)]
    (row,) = shard_rows([boxes], [""], {301})
    assert (300, 301, 302, 303) in row.boxes
    assert row.boxes.count((-1,)) == 2
    (wide,) = shard_rows([[range(64)]], [""], {40})
    assert wide.boxes == ((0, 1, 2, 3, 4, 5, 40, -1),)


def test_a_hot_sender_is_named():
    hot = State(nodes=32, tp=1, pp=4, ep=32, etp="1", model="deepseek-v3", moves_rule="megatron")
    html = str(moves_html(Context.of(hot)))
    assert "times the best possible." in html.replace("\xa0", " ")
    assert "times the best possible." not in str(moves_html(Context.of(ACTOR)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"moves_rule": "best"}, "nearest, megatron, first"),
        ({"moves_first": "beside"}, "here, behind"),
        ({"kept": "~tp=3"}, "tp 3"),
        ({"moves_cell": "node 3"}, "0-1"),
        ({"moves_other": "hello"}, "no published layout, link or document"),
        ({"moves_other": "role:x", "roles": "rollout@0-63:vllm,tp=2"}, "role:rollout"),
        ({"roles": "rollout@0-3,8-11:tp=2,nodes=1"}, "are no run"),
    ],
)
def test_what_cannot_be_asked_is_refused_on_the_page(changes, said):
    html = str(moves_html(Context.of(replace(ACTOR, **changes))))
    assert 'class="refusal"' in html
    assert said in html


def test_published_updates_name_their_source():
    updates = measured_updates()
    assert len(updates) == 32
    assert all(update.seconds > 0 and update.source and update.model for update in updates)


def test_the_matrix_zooms_from_cells_to_nodes_to_gpus_and_back():
    large = STATES["16,384 GPUs"]
    cells = flows_of(asked(large))
    assert (cells.per, len(cells.sent), cells.names[:2], cells.above) == (
        16,
        128,
        ("0:15", "16:31"),
        None,
    )
    nodes = flows_of(asked(replace(large, moves_cell="0:15-16:31")))
    assert (nodes.per, len(nodes.sent), nodes.names[16], nodes.above) == (1, 32, "16", "")
    assert nodes.sent[:16, 16:].sum() == cells.sent[0, 1]
    gpus = flows_of(asked(replace(large, moves_cell="3-16")))
    assert (gpus.per, gpus.firsts.tolist()) == (0, [*range(24, 32), *range(128, 136)])
    assert gpus.sent[:8, 8:].sum() == nodes.sent[3, 16]
    assert gpus.above == "0:15-16:31"
    assert flows_of(asked(replace(ACTOR, moves_cell="900-901"))).above is None  # of another layout


def test_a_gpu_under_the_pointer_tells_its_slices():
    found = asked(ACTOR)
    assert sender_text(found, 9) == (
        "GPU 9 sends GPU 12 2.01 GB, slices of 65 tensors of layers 0 to 15: "
        "embedding.word_embeddings.weight rows 32,128–64,127; "
        "self_attention.linear_qkv.weight rows 1,536–3,071; "
        "self_attention.linear_proj.weight columns 1,024–2,047; "
        "mlp.linear_fc1.weight rows 3,584–7,167, 17,920–21,503; "
        "mlp.linear_fc2.weight columns 3,584–7,167"
    )
    assert receiver_text(found, 13).startswith("GPU 13 receives ")


def test_the_reel_shows_every_tensor_by_the_way_it_goes():
    reel = json.loads(moves_reel(json.dumps(vars(ACTOR))))
    found = asked(ACTOR)
    assert [name for name, _ in reel["steps"]] == [row.tensor for row in found.rows]
    for (_, way), row in zip(reel["steps"], found.rows):
        assert reel["ways"][way]["senders"] == sorted({part[0] for part in row.parts})
    assert len(reel["ways"]) < 30
    assert "refused" in json.loads(moves_reel(json.dumps({**vars(ACTOR), "kept": "~tp=3"})))


SIDES = {
    "nothing": ({}, (0, 64, 0, "tp 2 dp 32")),
    "what Compare keeps": ({"kept": "~tp=8;pp=1"}, (0, 64, 0, "tp 8 dp 8")),
    "what differs": ({"moves_other": "~tp=1", "kept": "~tp=8"}, (0, 64, 0, "pp 2 dp 32")),
    "a preset": ({"moves_other": "Playground-16"}, (0, 16, 0, "tp 2 pp 2 dp 4")),
    "a link": ({"moves_other": "https://a.b/?v=2&nodes=2&tp=8"}, (0, 16, 0, "tp 8 pp 2")),
    "a script": (
        {"moves_other": "vllm serve a/b --tensor-parallel-size 8 --nnodes 1"}, (0, 8, 0, "tp 8")
    ),
    "the next role": ({"roles": "rollout@64-95:vllm,tp=8"}, (0, 32, 64, "tp 8 dp 4")),
    "a role before": (
        {"roles": "a@0-31:vllm,tp=8;*actor@32;b@96-103:tp=2", "moves_other": "role:a"},
        (32, 32, 0, "tp 8 dp 4"),
    ),
}  # fmt: skip


@every("name", SIDES)
def test_the_other_side_is_any_layout_that_has_a_name(name):
    changes, (begin, ranks, first, sizes) = SIDES[name]
    found = asked(replace(ACTOR, **changes))
    source, target = found.moves.source, found.moves.target
    assert (source.first_rank, target.ranks, target.first_rank) == (begin, ranks, first)
    assert size_text(found.target.layout) == sizes
    html = str(moves_html(found.source))
    assert ("role" in changes.get("moves_other", "") or "roles" in changes) == bool(found.roles)
    assert (f"What moves from actor to {found.roles[1]}?" in html) if found.roles else True


CACHES = {
    "prefill and decode": State(nodes=1, tp=8, pp=1, model="llama3-8b", framework="vllm", rank="1",
                                roles="decode@8-15:vllm,tp=4"),
    "a latent": State(nodes=1, tp=8, pp=1, model="deepseek-v3", framework="sglang", kept="~tp=4"),
    "windows": replace(ACTOR, model="gpt-oss-20b", tp=4, pp=2, moves_first="behind"),
}  # fmt: skip


@every("name", CACHES)
def test_a_requests_cache_is_told_in_words_pictures_and_files(name):
    for language in LANGUAGES:
        context = Context.of(replace(CACHES[name], moves_what="kv", lang=language))
        html, cache = str(moves_html(context)), context.once(kv_transfer)
        assert cache_answer(cache) in html.replace("\xa0", " ").replace("&#39;", "'")
        assert cache_answer(cache) in moves_summary(context)
        picture = cache_picture(cache)
        (first, after), (head, last) = picture.own
        area = sum((s.layers[1] - s.layers[0]) * (s.heads[1] - s.heads[0]) for s in picture.slices)
        assert area == (after - first) * (last - head)
        assert {line.rank for line in job_picture(cache).lines} == {*cache.received}
        assert [*draw_kv(picture, "dark")]
        assert len(moves_pictures(context)) == 2
    assert (
        "GPU 2"
        in kv_hover_texts(context.once(kv_transfer), ({0}, {cache.rank}))[1][str(cache.rank)]
        or name != "prefill and decode"
    )


def test_the_endpoint_of_a_cache_says_what_the_command_says():
    asked = {"model": "llama3-8b", "nodes": 1, "tp": 8, "framework": "vllm"}
    facts = json.loads(moves_cache(to="~tp=4", first_rank=8, rank=9, **asked))
    assert (facts["rule"], facts["cache_bytes"], facts["copies"]) == ("vllm", 2**30, 2)
    assert facts["moves"] == [[2, 9, 0, 32, 2, 3, 2**27], [3, 9, 0, 32, 3, 4, 2**27]]
    assert facts["bytes"] == {"same_gpu": 0, "in_node": 0, "between_nodes": 2**30}
    for wrong in ({"rank": 99}, {"rule": "first"}, {"tokens": -1}, {"to": "~tp=3"}):
        with pytest.raises(LayoutError):
            moves_cache(**{"to": "~tp=4", **wrong}, **asked)


def test_the_other_layout_of_a_server_is_another_one_and_has_a_name_in_the_list():
    for preset in ("serve-deepseek-v3-decode", "serve-deepseek-v3-prefill"):
        context = Context.of(from_preset(preset))
        [chosen] = [
            label for label, value in other_choices(context) if value == usual_name(context)
        ]
        assert chosen.startswith("this one with ")
        assert "have already" not in answer_text(weight_transfer(context))


def test_many_rows_of_senders_reach_the_gpu_in_one_trunk():
    """With 16 stages 16 lines ran side by side."""
    picture = job_picture(weight_transfer(Context.of(State(nodes=2048, tp=8, pp=16))))
    trunks = [mark for mark in draw_moves(picture, "light") if getattr(mark, "name", "") == "trunk"]
    ends = {tuple(map(float, mark.marks[0].lines[0][-1])) for mark in trunks}
    assert (len(trunks), len(ends)) == (16, 1)
