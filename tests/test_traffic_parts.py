"""The bytes of a part of a job, the part in which something is seen, and the time of bytes."""

from __future__ import annotations

from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from cases import every
from markup import select, text_of, values

from descriptions import LANGUAGES, TRAFFIC
from groups import LayoutError
from groups.layout import Job
from request.answers.traffic import rows_of
from request.context import Context
from request.link import published, to_query
from request.state import State
from request.units import bytes_text, seconds_text
from training.clusters import CLUSTERS
from training.models import MODELS
from training.recipe import Training
from training.split import Split
from training.traffic.matrix import CELLS, matrix
from training.traffic.parts import PARTS, parts_of, ranks_of_part
from training.traffic.per_step import Traffic, seconds_together, traffic
from views.traffic.matrix import matrix_pictures, part_of
from views.traffic.view import traffic_html

H100 = CLUSTERS["dgx-h100"]


def shown(name: str, **changes: str) -> Context:
    return Context.of(State(**published(name)).changed(changes))


def rows_shown(context: Context) -> list[Traffic]:
    return rows_of(context.layout, context.trained)


# -- bytes and their time ------------------------------------------------------------------------


@every("stages", [2, 3, 8])
def test_stages_send_both_ways_at_once(stages):
    """Bytes of a rank over the speed of its link are its time, also of two stages, of which the
    first sends forward only and the second back only."""
    layout = Job(nodes=stages, gpus_per_node=1, pp=stages).layout()
    split, training = Split(pp=stages, spread="nearly"), Training(micro_batches=8)
    rows = traffic(MODELS["llama3-8b"].model, split, training, layout.every, H100, 1)
    pp = [row for row in rows if row.kind == "pp"]
    assert {row.what for row in pp} == {"activations", "gradients"}
    sent = max(map(sum, zip(*(row.by_stage for row in pp))))
    assert seconds_together(pp) == pytest.approx(sent / H100.nic)
    assert sent == (1 if stages == 2 else 2) * pp[0].sent


def test_the_table_shows_the_time_of_the_bytes_that_it_shows():
    context = Context.of(State(nodes=2, gpus_per_node="1", tp=1, pp=2, cluster="dgx-h100"))
    pp = [row for row in rows_shown(context) if row.kind == "pp"]
    lines = [
        [text_of(cell) for cell in select(line, "td, th")]
        for line in select(str(traffic_html(context)), "tr")
    ]
    cells = next(line for line in lines if "pp" in line)
    assert bytes_text(pp[0].sent) in cells
    assert seconds_text(pp[0].sent / H100.nic) in cells


# -- parts ---------------------------------------------------------------------------------------

JOBS = {
    "experts": State(nodes=4, tp=2, pp=2, ep=8, etp="1", model="mixtral-8x7b", sequence="4096"),
    "context": State(nodes=4, tp=2, pp=2, cp=2, layers="32"),
    "replicas last": State(nodes=4, tp=4, pp=4, framework="megatron-pp-dp", layers="32"),
    "sent once": State(nodes=8, tp=1, pp=2, ep=16, etp="1", model="qwen3-30b-a3b",
                       dispatcher="deepep"),
}  # fmt: skip


@every("name, part", [(name, part) for name in JOBS for part in PARTS])
def test_a_part_has_the_bytes_of_its_ranks_in_the_whole_matrix(name, part):
    context = Context.of(replace(JOBS[name], global_batch="256"))
    layout, rows, rank = context.layout, rows_shown(context), 13
    args = (rows, layout.every, layout.mesh, layout.gpus_per_node)
    whole = matrix(*args)
    ranks = ranks_of_part(part, layout.mesh, layout.gpus_per_node, rank)
    found = matrix(*args, ranks)
    assert rank in ranks
    assert found.ranks_per_cell == 1
    inside = whole.sent[:, ranks][:, :, ranks]
    assert np.allclose(found.sent, inside)
    assert found.leaving == pytest.approx(whole.sent[:, ranks].sum() - inside.sum(), abs=1e3)


@every("name", JOBS)
def test_parts_tile_the_job(name):
    layout = Context.of(JOBS[name]).layout
    world = range(layout.world_size)
    for part in parts_of(layout.mesh, layout.gpus_per_node):
        tiles = {
            tuple(ranks_of_part(part, layout.mesh, layout.gpus_per_node, r).tolist()) for r in world
        }
        assert sorted(rank for tile in tiles for rank in tile) == [*world]
        assert (len(tiles) == 1) == (part == "all")


def test_a_large_stage_has_cells_of_whole_nodes():
    context = shown("llama3-405b-1", traffic_part="stage")
    layout = context.layout
    ranks = ranks_of_part("stage", layout.mesh, 8, 0)
    found = matrix(rows_shown(context), layout.every, layout.mesh, 8, ranks)
    assert (len(ranks), found.ranks_per_cell, found.total.shape) == (512, 8, (64, 64))
    assert found.firsts.tolist() == [*range(0, 8192, 128)]


# -- where it begins -----------------------------------------------------------------------------


@every(
    "preset, part",
    [
        ("llama3-405b-1", "replica"),  # tp and pp are in it, of 128 ranks
        ("llama3-405b-3", "block"),  # tp and cp; a replica has 2,048 ranks
        ("deepseek-v3", "stage"),  # two ep groups of 64
        ("megatron2021-1008.0b", "stage"),  # tp and dp; a replica has 512 ranks
        ("bridge-llama3.1_405b-dgx-h100-1024", "replica"),
        ("playground-16", "all"),
    ],
)
def test_a_matrix_begins_where_something_is_seen(preset, part):
    context = shown(preset, rank="9")
    rows = rows_shown(context)
    assert part_of(context, rows) == part
    ((title, chart),) = matrix_pictures(context, rows)
    assert chart.picture.cell >= 4
    assert np.count_nonzero(chart.picture.levels) > 0.015 * chart.picture.levels.size
    assert ("of GPU 9" in title) == (part != "all")


def test_where_no_part_holds_a_group_all_are_shown():
    context = Context.of(State(nodes=64, tp=1, pp=1, model="llama3-8b"))
    assert context.layout.world_size > CELLS
    assert part_of(context, rows_shown(context)) == "all"


@every("language", LANGUAGES)
@every("part", PARTS)
def test_every_part_can_be_chosen_and_says_what_it_leaves_out(part, language):
    context = shown("llama3-405b-3", traffic_part=part, rank="77", lang=language)
    page = traffic_html(context)
    offered = [one.attributes["value"] for one in select(page, "option")]
    assert [one for one in offered if one in PARTS] == [*PARTS]
    assert len(select(page, f'option[value="{part}"][selected]')) == 1
    words = TRAFFIC["matrix_part"][language].rpartition("}")[2]
    assert (words in unescape(page)) == (part != "all")
    (data,) = values(page, "data-traffic")
    ranks = ranks_of_part(part, context.layout.mesh, 8, 77)
    assert (data["firsts"][0], data["lasts"][-1]) == (ranks[0], ranks[-1])
    assert ("traffic_part" in data["sets"]) == (data["per"] > 1)


def test_a_part_that_another_job_had_is_none_of_this():
    context = Context.of(State(tp=2, pp=1, layers="32", traffic_part="stage"))
    assert part_of(context, rows_shown(context)) == "all"
    with pytest.raises(LayoutError, match="not a choice of traffic_part"):
        part_of(Context.of(State(traffic_part="zz")), [])
    assert 'class="refusal"' in traffic_html(Context.of(State(traffic_part="zz")))


def test_a_part_is_in_the_link():
    assert to_query(State(traffic_part="stage", view="traffic")) == "v=2&show=traffic&part=stage"
