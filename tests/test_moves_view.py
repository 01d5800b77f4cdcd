"""The Moves view: its pictures are the slices of the maths, its sentences their sums."""

from __future__ import annotations

from dataclasses import replace

import pytest

from descriptions import LANGUAGES
from render.draw.moves import draw_moves, draw_tensor
from render.scenes.moves import MOST_BANDS, shard_rows
from tests.cases import every
from training.moves.published import measured_updates
from views.base.context import Context
from views.base.state import State
from views.base.units import bytes_text
from views.moves.asked import asked_of, received_of
from views.moves.pictures import (
    CELLS,
    flows_picture,
    job_picture,
    tensor_names,
    tensor_picture,
)
from views.moves.view import answer_text, moves_html, moves_pictures, moves_summary, needs_text

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
    return Context.of(state).once(asked_of)


def test_the_answer_says_what_crosses_and_what_each_gpu_needs():
    found = asked(ACTOR)
    assert answer_text(found) == (
        "Weights go from this layout to tp 2 dp 32. Of the 514 GB that its GPUs need, 257 GB cross "
        "the network: about 80.3 ms at link speed. 193 GB come from the same node. 64.3 GB are on "
        "their GPU already."
    )
    assert needs_text(found) == (
        "GPU 12 needs 8.03 GB: 2.01 GB it has, 2.01 GB come from its node, 4.02 GB from other "
        "nodes. 4 GPUs send to it."
    )
    still = asked(STATES["nothing moves"])
    assert answer_text(still).endswith(" they have already.")
    assert needs_text(still).startswith("GPU 0 has all of the ")


@every("name", STATES)
def test_a_line_leads_from_each_of_those_that_send_most(name):
    found = asked(STATES[name])
    picture, received = job_picture(found), received_of(found)
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


@every("name", [name for name in STATES if name != "ZeRO-3"])
def test_the_parts_of_a_tensor_add_up_to_what_the_gpu_receives(name):
    found = asked(STATES[name])
    for tensor in tensor_names(found):
        picture = tensor_picture(found, tensor)
        row = next(row for row in found.rows if row.tensor == tensor)
        assert len([band for band in picture.bands if band.is_wanted]) == len(row.parts)
        assert [band.is_own for band in picture.bands if band.is_wanted] == [
            part[0] == found.rank for part in row.parts
        ]
        for band, size in zip([band for band in picture.bands if band.is_wanted], row.sizes):
            assert band.is_own or bytes_text(size) in band.told
        assert len(picture.bands) <= MOST_BANDS * len(picture.names)
        assert [*draw_tensor(picture, "dark")]


@every("name", STATES)
def test_the_view_says_the_same_in_files_and_in_both_languages(name):
    for language in LANGUAGES:
        context = Context.of(replace(STATES[name], lang=language))
        html = str(moves_html(context))
        found = context.once(asked_of)
        assert answer_text(found) in html.replace("\xa0", " ").replace("&#39;", "'")
        assert answer_text(found) in moves_summary(context)
        assert len(moves_pictures(context)) == (2 if found.moves.is_fsdp else 3)
        assert flows_picture(found)[0].levels.shape[0] <= CELLS


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
    assert "times as much as the mean of all" in html.replace("\xa0", " ")
    assert "times as much as the mean" not in str(moves_html(Context.of(ACTOR)))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"moves_rule": "best"}, "nearest, megatron, first"),
        ({"moves_first": "beside"}, "here, behind"),
        ({"kept": "~tp=3"}, "tp 3"),
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
