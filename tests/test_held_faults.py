"""Faults that no other test notices: each was put into the code, and one of these names it."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from cli.command import run
from cli.training import GIB, _fit
from diagnosis.slow.calls import JobCalls
from diagnosis.slow.charges import Charges
from diagnosis.slow.matching import matched, offsets
from formats.moves.script import moves_script
from groups import parse_mesh
from groups.errors import LayoutError
from groups.grouping import Grouping
from groups.layout import Job
from render.palette import STEPS
from render.scenes.lost import Scale
from render.svg.marks import scene_svg
from tests.test_slow import SlowJob
from training.models import MODELS
from training.moves import weight_moves
from training.traffic.per_step import reach
from views.memory.zero import MOMENTS


def test_who_sends_most_out_of_its_domain_has_the_fewest_neighbours_in_it():
    """Six members on domains of four: of the two in the second domain four of five others are
    outside; of the four in the first one two are."""
    found = reach(Grouping("dp", parse_mesh("dp6"), "dp"), 4)
    assert (found.outside, found.inside) == (pytest.approx(4 / 5), pytest.approx(3 / 5))


def test_a_script_checks_no_moves_of_weights_that_data_parallelism_cuts():
    model, cut = MODELS["llama3-8b"].model, Job(nodes=1, framework="torchtitan").layout()
    moves = weight_moves(model, cut, Job(nodes=1, tp=8).layout(), fsdp=(True, False))
    assert moves.is_fsdp
    with pytest.raises(LayoutError, match=r"data parallel|FSDP|ZeRO"):
        moves_script(moves)


def test_a_loss_has_the_nearest_step_of_its_scale():
    most = float(STEPS)
    lost = np.array([0.4, 0.6, 1.4, 1.6, STEPS - 0.4])
    assert Scale("lost", lost, most, ()).steps.tolist() == [0, 1, 1, 2, STEPS]


def test_what_a_picture_says_to_screen_readers_cannot_end_its_attribute():
    scene = SimpleNamespace(width=1.0, height=1.0)
    svg = scene_svg("x", scene, [], 'a "b" <c>')
    assert re.match(r'<svg class="x" role="img" aria-label="a &#?\w+;b&#?\w+; &lt;c&gt;" ', svg)


def test_gradients_of_zero_1_are_local_until_their_reduce_scatter_and_never_owned_alone():
    """arXiv:1910.02054 section 5; Megatron's buffer stays whole, and what is not owned is stale."""
    gradients = {moment: gradient for moment, _, gradient, _ in MOMENTS[1]}
    assert gradients["backward"] == MOMENTS[0][1][2]  # as of plain data parallelism
    assert gradients["reduce_scatter"] == gradients["step_own"] != gradients["backward"]
    owned = {gradient for _, _, gradient, _ in MOMENTS[2][1:3]}
    assert owned.isdisjoint(gradients.values())


def test_the_sentence_of_memory_says_the_low_end_before_the_high_one():
    sizes = {"needed": 70, "memory_low": 68, "memory_high": 79, "capacity": 80}
    facts = {f"{name}_bytes": size * GIB for name, size in sizes.items()}
    said = _fit({**facts, "fit": "fits", "fullest_stage": 0})
    assert said == "fits: stage 0 needs 70.0 (68.0 to 79.0) of 80.0 GiB"


def test_of_the_one_that_waited_only_the_time_before_its_wait_is_set_against_the_last():
    """GPU 3 has 300 us more of its own before each call of tp; its partner waits so long there."""
    job, calls = SlowJob({3: 900}, {}), JobCalls()
    for rank in range(8):
        calls.add(job.trace(rank))
    found = matched(calls)
    charges = Charges(calls, found, offsets(found, range(8)))
    place = next(at for at, one in enumerate(found) if one.ranks == (2, 3))
    late = [charges._late(place, row) for row in range(1, len(found[place].starts))]
    assert {last for last, _, _ in late} == {3}
    assert all(250 < more["own", ""] < 350 for _, more, _ in late)


def test_evidence_that_names_the_first_gpu_behind_a_layout_is_no_mistake_of_the_reader():
    """Ranks are below the world: with 16 GPUs, GPU 16 is outside."""
    out, err = io.StringIO(), io.StringIO()
    log = "[rank16]:[E1] [PG ID 2 PG GUID 17 Rank 0] Timeout at NCCL work: 7"
    argv = ["share", "-", "--nodes", "2", "--tp", "2"]
    assert run(argv, io.StringIO(log), out, err) == 0, err.getvalue()
    assert "a job of at least 17 GPUs" in out.getvalue()
