"""The cluster with its roles and the step of a plan: as data, on the page, in files."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from cases import every
from markup import select, text_of

from descriptions import ROLES
from groups import LayoutError
from groups.plan_faults import lost_with
from render.draw.cluster import draw_cluster
from render.marks import Layer, Lines
from request.answers.moves.transfer import weight_transfer
from request.answers.roles.api import roles
from request.answers.roles.moments import moments_of, work_of
from request.answers.roles.said import fullest_text
from request.context import Context
from request.roles.edits import edited
from request.state import State
from training.machine import GIB
from training.roles import PARTS, WORKING, Moment, phases_of
from views.export import download, picture_file
from views.page import answer
from views.roles.hero import cluster_of_plan
from views.roles.places import places_of_gpu
from views.roles.step import way_of

JOB = State(nodes=8, tp=4, pp=2, model="qwen3-8b", rank="12")
TEXT = "rollout@0-63:vllm,tp=2;reference@0-63:tp=4;reward@56-63:tp=1"
PLAN = Context.of(JOB.changed({"roles": TEXT}))
PLAN_PAGE = Context.of(PLAN.state.changed({"view": "roles"}))
APART = Context.of(State(nodes=4, tp=8, model="qwen3-8b", roles="rollout@32-63:vllm,tp=4"))


def test_a_gpu_is_told_by_its_place_in_each_role():
    places = places_of_gpu(PLAN.plan, 12)
    assert [place.text("en") for place in places] == [
        "actor replica 3, stage 0, tp 12–15",
        "rollout engine 6, tp 12–13",
        "reference replica 3, tp 12–15",
    ]
    assert [place.text("en") for place in places_of_gpu(APART.plan, 37)] == [
        "rollout engine 1, tp 36–39"
    ]


def test_a_node_takes_the_replicas_and_engines_on_it():
    lost = [(loss.role.name, len(loss.copies), loss.total) for loss in lost_with(PLAN.plan, 7)]
    assert lost == [("actor", 2, 8), ("rollout", 4, 32), ("reference", 2, 16), ("reward", 8, 8)]
    for loss in lost_with(PLAN.plan, 0):
        copies = [place.copy for gpu in range(8) for place in places_of_gpu(PLAN.plan, gpu)
                  if place.role is loss.role]  # fmt: skip
        assert {*copies} == {*loss.copies}


@every("nodes", [8, 64])
def test_bands_share_out_a_cell_and_pixels_are_the_same_bands(nodes):
    text = f"rollout@0-{nodes * 8 - 1}:vllm,tp=2;reward@8-15:tp=1"
    context = Context.of(JOB.changed({"nodes": nodes, "roles": text}))
    picture = cluster_of_plan(context.plan, 12)
    for gpu, names in {3: 2, 12: 3}.items():
        boxes = [picture.boxes(at, np.array([gpu]), picture.cell) for at, band in
                 enumerate(picture.bands) if gpu in band.gpus]  # fmt: skip
        assert len(boxes) == names
        _, y = picture.corners(gpu)
        tops = [corner[0, 1] for corner, _ in boxes]
        assert [top - y for top in tops] == pytest.approx(
            [picture.cell * at / names for at in range(names)]
        )
        assert sum(size[0, 1] for _, size in boxes) == pytest.approx(picture.cell)
    if not picture.is_numbered:
        boards = [picture.pixels(at) > 0 for at in range(len(picture.bands))]
        assert np.array_equal(np.sum(boards, axis=0), np.ones_like(boards[0]))


@every("nodes, roles, is_hatched", [(8, 3, True), (8, 5, True), (32, 14, False), (64, 3, False)])
def test_where_a_band_is_three_pixels_and_in_rasters_roles_have_fills_alone(
    nodes, roles, is_hatched
):
    text = ";".join(f"r{at}@0-{nodes * 8 - 1}:tp=1" for at in range(1, roles))
    picture = cluster_of_plan(Context.of(JOB.changed({"nodes": nodes, "roles": text})).plan, 12)
    layers = [one for one in draw_cluster(picture, "light") if isinstance(one, Layer)]
    bands = [one for one in layers if one.name.startswith("band")]
    lines = [mark for band in bands for mark in band.marks if isinstance(mark, Lines)]
    assert len(bands) == roles
    assert any(len(mark.lines) for mark in lines) == is_hatched
    _, sizes = picture.boxes(0, np.array([12]), picture.cell - 3.0)
    assert is_hatched == (picture.is_numbered and sizes[0, 1] > 3)


def moments_in(context: Context, gpu: int) -> list[Moment]:
    step = moments_of(context).step
    return [step.moment(phase, gpu) for phase in step.phases]


def test_a_role_that_works_has_what_training_and_serving_say():
    (stages,) = (work_of(one.page, False) for one in PLAN.cast.members[:1])
    totals = [sum(stage.parts.values()) + stage.working for stage in stages]
    assert totals == pytest.approx([stage.total for stage in PLAN.trained.stages()])
    phases = [(phase.name, phase.roles) for phase in phases_of(PLAN.plan)]
    assert phases == [
        ("rollout", ("rollout",)),
        ("reference", ("reference",)),
        ("reward", ("reward",)),
        ("update", ("actor",)),
        ("weights", ("actor", "rollout")),
    ]
    found = moments_in(PLAN, 12)
    update = found[3]
    assert {role for role, *_ in update.held} == {"actor"}  # the others left
    assert update.total == pytest.approx(totals[0])
    assert found[2].total == 0  # reward is on other GPUs


def test_what_is_kept_stays_while_others_work():
    state = edited(PLAN.state.changed({"role_edit": "keep weights+optimizer"}))
    kept, plain = moments_in(Context.of(state), 12), moments_in(PLAN, 12)
    rollout = {part for role, part, _ in kept[0].held if role == "actor"}
    assert rollout == {"weights", "optimizer"} <= {*PARTS}
    more = kept[0].total - plain[0].total
    actor = {part: size for role, part, size in plain[3].held if role == "actor"}
    assert more == pytest.approx(actor["weights"] + actor["optimizer"])
    whole = Context.of(edited(PLAN.state.changed({"zero": "0", "role_edit": "keep stays"})))
    assert moments_of(PLAN).fits
    assert "Does not fit: rollout" in fullest_text(whole)
    alone = moments_in(APART, 37)  # on its own GPUs a rollout stays as it is
    update = next(moment for moment in alone if moment.phase.name == "update")
    assert {part for _, part, _ in update.held} == {"weights", "cache"}
    assert WORKING not in {part for _, part, _ in update.held}
    assert update.total < 80 * GIB


def test_the_weights_lead_to_what_moves_and_an_engine_to_its_memory():
    changes = way_of(phases_of(APART.plan)[-1])
    assert changes["view"] == "moves"
    shown = edited(APART.state.changed(changes))
    picture, moved = answer(shown).picture, weight_transfer(Context.of(shown))
    assert picture is not None
    assert "rollout" in picture
    assert moved.moves.target.first_rank - moved.moves.source.first_rank == 32
    memory = edited(APART.state.changed(way_of(phases_of(APART.plan)[0])))
    assert (memory.framework, memory.view) == ("vllm", "memory")
    assert "KV cache" in str(answer(memory).picture)


@every("language", ["en", "zh"])
def test_page_and_files_show_the_same(language):
    context = Context.of(PLAN.state.changed({"lang": language, "view": "roles"}))
    shown = answer(context.state).picture
    assert shown is not None
    for text in ("actor", "rollout", "reference", "12–15", "72.8"):
        assert text in shown
    drawn = picture_file(context, "svg", "dark", None).decode()
    for text in ("actor", "rollout", "reference", "72.8"):
        assert text in drawn
    apart = Context.of(APART.state.changed({"view": "roles"}))
    assert picture_file(apart, "png", "light", "a.b/?c")[1:4] == b"PNG"


def test_other_views_say_whose_ranks_they_show():
    state = edited(APART.state.changed({"role_edit": "to rollout"}))
    shown = {
        view: answer(state.changed({"view": view})).line
        for view in ("groups", "memory", "nodes", "hosts")
    }
    said = "This is rollout: its ranks 0 to 31 are GPUs 32 to 63"
    assert all(said in one for one in shown.values())
    assert "rollout loses 2 of 8 engines" in shown["nodes"]
    assert "Fullest moment" in shown["memory"]
    hang = {"view": "hang", "evidence": "world size: 32\nmissing ranks: [3]"}
    assert "rollout hangs in engine 0, at rank 3 (GPU 35)" in answer(state.changed(hang)).line
    single = State(nodes=4, view="nodes")
    assert not answer(single).line


def test_programs_get_every_rank_of_every_role():
    found = json.loads(roles(plan=f"v=2&nodes=8&tp=4&pp=2&roles={TEXT}"))
    rows = {(row[2], row[3]): row[0] for row in found["ranks"]}
    for role in PLAN.plan.roles:
        assert [rows[role.name, rank] for rank in range(len(role.ranks))] == role.ranks.tolist()
    one = json.loads(roles(plan="slime-glm4-5", rank=9))
    assert [(row[2], row[3]) for row in one["ranks"]] == [("actor", 9), ("rollout", 9)]
    asked = "python3 -m verl.trainer.main_ppo trainer.nnodes=$N"
    with pytest.raises(LayoutError, match=r"trainer\.nnodes"):
        roles(plan=asked)
    assert json.loads(roles(plan=asked, given="trainer.nnodes=2"))["nodes"] == 2
    text = download(PLAN_PAGE, "roles")["data"]
    lines = base64.b64decode(text).decode().splitlines()
    assert lines[0] == "rank,node,role,role_rank,groups"
    assert len(lines) == 1 + 64 * 3 + 8


@every("nodes, per_node", [(256, 8), (1024, 2), (2048, 8), (16384, 8)])
def test_a_cluster_of_many_gpus_is_no_strip(nodes, per_node):
    """2 GPUs on each of 1,024 nodes were 1,024 rows of two cells."""
    state = State(nodes=nodes, gpus_per_node=per_node, tp=2, pp=1, role_edit="add")
    picture = cluster_of_plan(Context.of(edited(state)).plan, 0)
    assert picture.height <= min(320, picture.width)
    assert 300 <= picture.width <= 500


@every("language", ["en", "zh"])
def test_an_example_of_roles_has_a_question_and_says_why_before_what_is_grey(language):
    page = str(answer(State(view="roles", lang=language)).picture)
    head, _, grey = page.partition('class="grey"')
    asked = ROLES["question"][language].format(gpu=0)
    assert [text_of(one) for one in select(head, "h2")] == [asked]
    assert text_of(ROLES["one_role"][language]) in text_of(head)
    assert not select(grey, "h2")
