"""Weights that are gathered before use (gtp), from a launch command to the picture, and back."""

from __future__ import annotations

import html
import json

import pytest
from cases import every
from markup import panels, written

from descriptions import SHELL, VIEWS
from formats.documents.check import check_document, job_of_document
from formats.documents.exports import groups_json_parts
from formats.launch import emit, parse
from groups import LayoutError
from groups.layout import Job, job_fields
from request.resolve import fields_of_job, resolve
from request.state import State
from request.trained import batch_of, trained_of
from request.words import sentence
from views.page import answer

SIZES = "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2"
SCRIPT = f"torchrun --nnodes 4 --nproc-per-node 8 pretrain_gpt.py {SIZES}"


def test_the_number_of_weight_shards_is_read_as_gtp_and_written_again():
    """NVIDIA/Megatron-LM d98e8a6 model_parallel_config.py: gtp = shards / tp, egtp likewise."""
    text = f"{SCRIPT} --tensor-parallel-num-weight-shards 8 --expert-model-parallel-size 2"
    text += " --expert-tensor-parallel-size 1 --expert-tensor-parallel-num-weight-shards 2"
    job = parse(text).job()
    assert (job.tp, job.gtp, job.etp, job.egtp) == (2, 4, 1, 2)
    layout = job.layout()
    assert str(layout.mesh) == "tp2-gtp_remat4-cp1-dp2-pp2"
    assert str(layout.expert) == "etp1-ep2-gtp_remat2-edp4-pp2"
    written = emit(job)
    assert "--tensor-parallel-num-weight-shards 8" in written
    assert "--expert-tensor-parallel-num-weight-shards 2" in written
    assert parse(written).job() == job
    assert "weight-shards" not in emit(Job(nodes=4, tp=2))


def test_the_option_for_groups_of_all_gathers_is_read_and_written():
    job = parse(f"{SCRIPT} --create-all-gather-group").job()
    assert job.gathers
    assert job.layout().every["dp-cp-ag"].groups().tolist()[0] == list(range(0, 16, 2))
    assert "--create-all-gather-group" in emit(job)
    assert parse(emit(job)).job() == job


@every("shards", [1, 3])
def test_shards_that_tp_does_not_divide_are_a_problem(shards):
    (problem,) = parse(f"{SCRIPT} --tensor-parallel-num-weight-shards {shards}").problems
    assert (problem.code, problem.facts["count"]) == ("shards-do-not-fit", 2)


@every(
    "changes",
    [
        {"gtp": 2},
        {"egtp": 2, "ep": 2},
        {"gathers": True, "ep": 2},
        {"gathers": True, "framework": "megatron-pp-dp"},
    ],
)
def test_a_layout_goes_to_a_document_and_to_the_page_and_back(changes):
    job = Job(nodes=4, tp=2, pp=2, **changes)
    layout = job.layout()
    text = "".join(groups_json_parts(layout))
    assert check_document(text)
    assert job_of_document(text) == layout.explicit_job
    state = State(**fields_of_job(job))
    assert resolve(state).job == job


def test_a_document_says_only_what_is_asked_for():
    assert not {"gtp", "egtp", "gathers"} & job_fields(Job(tp=2)).keys()
    text = "".join(groups_json_parts(Job(tp=2).layout(), ["tp"]))
    assert "gtp" not in json.loads(text)["job"]


@every("language", ["en", "zh"])
def test_the_page_draws_gtp_and_says_who_gathers_weights_together(language):
    state = State(nodes=2, tp=2, pp=2, gtp=2, lang=language)
    shown = answer(state)
    assert not shown.status
    drawn = panels(shown.picture)
    groups = resolve(state).every["gtp"].groups().tolist()
    assert [sorted(map(int, (drawn["gtp"] == n).nonzero()[0])) for n in range(8)] == groups
    words = written(shown.picture)
    assert {"en": "gathers weights with GPU 2", "zh": "收集权重"}[language] in words
    derived = html.unescape(str(shown.derived))
    assert "16 / (2·2·1·2) =" in derived
    assert "gtp 2" in derived


def test_ranks_of_gtp_read_samples_of_their_own():
    """Megatron deals the batch out over gtp x dp (d98e8a6 parallel_state.py, with_gtp_remat)."""
    state = State(nodes=2, tp=2, pp=2, gtp=2, micro_batches=4)
    batch = batch_of(resolve(state), state)
    assert (batch.dp, batch.global_batch) == (4, 16)
    page = answer(State(view="ranks", nodes=2, tp=2, pp=2, gtp=2, ranks="0, 2", global_batch=16))
    assert 'role="alert"' not in page.picture


@every("language", ["en", "zh"])
def test_what_is_not_worked_out_is_said_and_everything_else_drawn(language):
    state = State(nodes=4, gtp=2, lang=language)
    with pytest.raises(LayoutError) as refusal:
        trained_of(resolve(state), state)
    assert refusal.value.code == "gtp-is-not-counted"
    mended = state.changed(refusal.value.alternatives[0])
    assert trained_of(resolve(mended), mended)
    for view in VIEWS:
        shown = answer(State(nodes=4, gtp=2, view=view, lang=language))
        assert not shown.status
        if view in ("memory", "traffic", "estimate", "search"):
            words = written(shown.picture)
            assert sentence(refusal.value, language)[:20] in words


def test_a_grid_of_experts_is_drawn_only_where_experts_are_cut_otherwise():
    assert not Job(nodes=4, tp=2, gtp=2).layout().has_experts
    assert Job(nodes=4, tp=2, egtp=2).layout().has_experts
    words = answer(State(nodes=4, tp=2, pp=2, gtp=2)).job
    assert "tp2 · gtp2 · dp4 · pp2" in html.unescape(str(words))
    assert SHELL["job_gtp"]["en"].format(gtp=2) in words
