"""One job, said once: every view, link, file and endpoint counts with the same model and batch."""

from __future__ import annotations

import html
import io
import json
import re
from dataclasses import replace
from itertools import takewhile
from pathlib import Path

import pytest
from markup import only, select, text_of, values
from pages import from_sent, preset_states

from cli.command import run
from descriptions import CONTROLS, MEMORY, PAGE
from formats.launch import TARGETS, parse
from formats.launch.emit import emitted
from groups import LayoutError
from groups.presets import PRESETS
from request.answers.groups import process_groups
from request.answers.memory import memory_per_rank
from request.answers.pipeline.api import pipeline_schedule
from request.answers.pipeline.inputs import schedule_of, stage_numbers, stages_by_rank, stages_of
from request.answers.search import better_layouts
from request.answers.traffic import traffic_per_step
from request.context import Context
from request.inputs import CHOSEN, FIELDS, fields_of
from request.link import from_query, to_query
from request.model import model_of, with_model
from request.named.launch import options_of_page, pasted_changes, training_fields
from request.resolve import resolve
from request.state import State, texts_of
from request.trained import batch_of, schedule_name, trained_of, virtual_stages, with_micro_batches
from request.units import ranges_text
from training.models import model_of_preset
from training.parameters import total_parameters
from training.pipeline import SCHEDULES
from training.recompute import OWN
from views.all import VIEWS
from views.column import column_html
from views.page import answer

STATES = preset_states()

COUNTED = ("pipeline", "memory", "traffic", "estimate")
"""Views of a step of the job as it is."""


def opened(**state):
    """The page as it is with these fields set."""
    return from_sent(json.dumps(state))


def printed(command, stdin=""):
    """What a command line writes, and what it is refused with."""
    out, err = io.StringIO(), io.StringIO()
    run(command.split(), io.StringIO(stdin), out, err)
    return out.getvalue(), err.getvalue()


def micro_batches_of(now) -> dict[str, int]:
    """How many micro-batches each view takes, from what it works with."""
    layout = resolve(now)
    memory = trained_of(layout, now)
    question = trained_of(layout, now)
    job = question.job(layout)
    found = {
        "memory": memory.training.micro_batches,
        "traffic": question.training.micro_batches,
        "search": job.global_batch // (memory.split.dp * memory.training.micro_batch),
    }
    if layout.mesh.size("pp") > 1:
        pipeline = schedule_of(memory.training.schedule, layout, now)
        found["pipeline"] = pipeline.m
    return found


def test_micro_batches_agree_in_every_view_of_every_preset():
    wrong = []
    for name, state in STATES.items():
        if model_of_preset(name) is None and name != "playground-16":
            continue
        found = micro_batches_of(opened(**state))
        if len(set(found.values())) != 1:
            wrong.append((name, found))
    assert not wrong


@pytest.mark.parametrize(
    ("state", "count"),
    [
        ({"pp": 4}, 16),
        ({"pp": 4, "micro_batches": "12"}, 12),
        ({"pp": 4, "global_batch": "64", "micro_batch": "2"}, 16),
        ({"pp": 4, "global_batch": "64", "micro_batches": "32"}, 32),
        ({"pp": 4, "schedule": "interleaved", "layers": "32"}, 16),
    ],
)
def test_a_batch_that_is_typed_once_counts_everywhere(state, count):
    assert set(micro_batches_of(opened(**state)).values()) == {count}


def test_a_schedule_that_needs_virtual_stages_has_as_many_in_every_view():
    now = opened(pp=4, schedule="interleaved")
    layout = resolve(now)
    memory = trained_of(layout, now)
    pipeline = schedule_of("interleaved", layout, now)
    assert memory.split.vpp == pipeline.chunks == virtual_stages(now) == 2


@pytest.mark.parametrize("typed", ["abc", "0", "2.5"])
def test_virtual_stages_that_are_none_are_refused_in_every_view(typed):
    now = opened(pp=4, vpp=typed)
    layout = resolve(now)
    for work in (trained_of, lambda *asked: schedule_of(schedule_name(now), *asked)):
        with pytest.raises(LayoutError, match="vpp must be a whole number"):
            work(layout, now)


def test_a_rank_holds_the_same_layers_in_every_view():
    wrong = []
    for name in SCHEDULES:
        now = opened(pp=4, schedule=name, layers="32", rank="0", view="ranks")
        spec = schedule_of(name, resolve(now), now)
        stages = stages_of(spec, now)
        held = [ranges_text(stages[one].layers) for one in stage_numbers(spec)[0]]
        words = "rank_layers_of" if len(held) == 1 else "rank_chunks_layers"
        said = PAGE[words]["en"].format(layers=PAGE["semicolon"]["en"].join(held))
        if said not in answer(now).picture:
            wrong.append((name, said))
        beside = ", ".join(held).replace("-", "–")
        if f'"{beside}"' not in html.unescape(answer(replace(now, view="groups")).picture):
            wrong.append((name, beside))
    assert not wrong


def test_a_pipeline_layout_deals_the_layers_of_every_view():
    """As many layers on each stage as the layout says; where Megatron refuses it, all do."""
    now = opened(pp=2, vpp="2", layers="Et*7|t*7|t*10|t*8L")
    layout, spec = resolve(now), schedule_of("interleaved", resolve(now), now)
    trained, stages = trained_of(layout, now), stages_of(spec, now)
    held = [stage.parameters.layers for stage in trained.stages()]
    assert held == [17, 15]
    assert held == [sum(len(stages[n].layers) for n in row) for row in stage_numbers(spec)]
    assert trained.model.layers == 32
    seconds, even, alike = (
        trained_of(layout, replace(now, layers=layers)).estimate(layout).seconds
        for layers in (now.layers, "32", "Et*8|t*8|t*8|t*8L")
    )
    assert seconds < even == alike  # for the last stage has the output too
    found = answer(replace(now, view="search")).picture
    assert "Et*7|t*7|t*10|t*8L" in found  # of the one on screen
    links = [one.attributes["data-query"] for one in select(found, "[data-query]")]
    links = [link for link in links if link]  # others are for other stages
    assert links
    for link in links:
        assert from_query(link).layers == "32"
    for text, control in (("tt|EL", "layers"), ("Et t|tL", "layers"), ("Et|t|t|tL", "vpp")):
        refused = opened(pp=2, layers=text)
        with pytest.raises(LayoutError) as error:
            trained_of(layout, refused).estimate(layout)
        assert error.value.control == control, text


def test_a_pasted_pipeline_layout_is_what_every_view_of_a_step_counts_with():
    """Its stages are the virtual stages too, which the script does not say."""
    script = (
        "pretrain_gpt.py --pipeline-model-parallel-size 2 --num-layers 32 --hidden-size 4096"
        " --pipeline-model-parallel-layout 'Et*7|t*7|t*10|t*8L' --num-attention-heads 32"
        " --seq-length 4096 --vocab-size 32000 --global-batch-size 64"
    )
    state = State().changed(pasted_changes(State(), parse(script)))
    trained = trained_of(resolve(state), state)
    assert [stage.parameters.layers for stage in trained.stages()] == [17, 15]
    assert trained.estimate(resolve(state)).seconds > 0


def test_batches_that_contradict_one_another_are_refused_with_fixes_that_work():
    controls = State(pp=4, global_batch="64", micro_batches="12")
    layout = resolve(controls)
    with pytest.raises(LayoutError) as refused:
        batch_of(layout, controls)
    assert (refused.value.code, refused.value.control) == ("batches-disagree", "micro_batches")
    fixed = {batch_of(layout, controls.changed(fix)) for fix in refused.value.alternatives}
    assert {(one.micro_batches, one.global_batch) for one in fixed} == {(32, 64), (12, 24)}
    with pytest.raises(LayoutError) as refused:  # dp 2 cannot share them
        batch_of(layout, controls.changed({"global_batch": "65"}))
    assert [*refused.value.alternatives] == [{"global_batch": 24}]


def test_samples_that_do_not_divide_are_refused_with_the_nearest():
    controls = State(micro_batch="2", global_batch="30")  # dp 4
    with pytest.raises(LayoutError) as refused:
        batch_of(resolve(controls), controls)
    assert refused.value.alternatives == ({"global_batch": 24}, {"global_batch": 32})


def test_a_schedule_that_does_not_take_the_micro_batches_is_refused_in_every_view():
    job = {"tp": "2", "pp": "4", "nodes": "4", "micro_batches": "5"}
    for schedule in ("interleaved", "dualpipev"):
        controls = refused_controls(State(**job, schedule=schedule))
        assert set(controls.values()) == {("micro_batches",)}, (schedule, controls)


def refused_controls(state):
    """What each view of a step refuses, by the views' names."""
    said = {name: str(VIEWS[name].html(Context(resolve(state), state))) for name in COUNTED}
    return {
        name: tuple(
            one.attributes["data-control"] for one in select(page, ".refusal[data-control]")
        )
        for name, page in said.items()
    }


OF_MODEL = ("memory", "traffic", "estimate", "search", "collectives")
"""Views that count with the model."""


def test_ep_that_is_set_first_takes_a_model_with_experts_in_every_view_and_endpoint():
    state = opened(ep=8, etp="1")
    for name in OF_MODEL:
        page = answer(replace(state, view=name)).picture
        assert 'class="refusal' not in page, name
        assert "Qwen3 30B-A3B" in page, name
    sizes = {"nodes": 2, "tp": 2, "pp": 2, "ep": 8, "etp": 1}
    for ask in (memory_per_rank, traffic_per_step, better_layouts):
        assert json.loads(ask(**sizes))["model"] == "qwen3-30b-a3b"


SAID = {
    "Attention heads: 32 is not a multiple of tp 3.": "注意力头数 32 不是 tp 3 的倍数。",
    "Hidden size: 1,000 is not a multiple of Attention heads 32.": (
        "隐藏维度 1,000 不是注意力头数 32 的倍数。"
    ),
    "Global batch size: 65 is not a multiple of Micro-batch size 2 × dp 4 = 8.": (
        "全局 batch 大小 65 不是 micro-batch 大小 2 × dp 4 = 8 的倍数。"
    ),
}
NOT_A_MULTIPLE = (
    {"nodes": 3, "tp": 3, "pp": 1, "sequence_parallel": "off"},
    {"hidden": "1000"},
    {"global_batch": "65", "micro_batch": "2"},
)


@pytest.mark.parametrize(("said", "state"), [*zip(SAID.items(), NOT_A_MULTIPLE)])
def test_sizes_are_called_as_on_the_page_in_what_they_are_no_multiple_of(said, state):
    for language, sentence in zip(("en", "zh"), said):
        page = answer(opened(**state, lang=language, view="estimate")).picture
        assert f"<p>{sentence}</p>" in page


def test_ep_of_a_model_without_experts_is_refused_alike_in_every_view():
    state = opened(ep=8, etp="1", model="llama3-8b")
    for name in OF_MODEL:
        page = answer(replace(state, view=name)).picture
        assert page.count("ep 8 spreads experts, and the model has none.") == 1, name


WRONG = {
    "two choices and a batch": {"recompute": "some", "zero": "9", "global_batch": "7"},
    "chunks without a pipeline": {"pp": 1, "vpp": "2"},
    "interleaved without a pipeline": {"pp": 1, "schedule": "interleaved"},
    "layers and a number format": {"pp": 4, "layers": "30", "products": "nvfp4"},
    "two choices, a switch and a batch": {
        **{"recompute": "some", "zero": "9", "flash": "maybe", "global_batch": "7"},
    },
    "heads of no model": {"tp": 4, "heads": "30", "sequence_parallel": "off"},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_each_fix_mends_all_that_is_wrong_in_one_click_in_every_view(wrong):
    """One change, or as many together as are wrong."""
    state = opened(**WRONG[wrong])
    for name in (*OF_MODEL, "pipeline"):
        now = replace(state, view=name)
        page = answer(now).picture
        fixes = offered(page)
        assert bool(fixes) == ('data-control="' in page), name
        for fix in fixes:
            assert 'data-control="' not in answer(now.changed(fix)).picture, (name, fix)


def test_layers_of_a_rank_that_are_typed_stand_for_more_than_can_be_drawn():
    state = opened(pp=1, layers="200", view="collectives")
    (fix,) = offered(answer(state).picture)
    assert fix == {"bucket_layers": "128"}
    assert 'data-control="' not in answer(state.changed(fix)).picture


def offered(page):
    """The fixes of the refusals on a page."""
    return values(page, "data-set", "p.fixes ")


def test_virtual_stages_that_nobody_says_are_those_of_the_schedule_for_programs_too():
    job = {"nodes": 2, "tp": 2, "pp": 4, "memory_schedule": "interleaved"}
    page = opened(pp=4, schedule="interleaved")
    stages = trained_of(resolve(page), page).stages()
    told = json.loads(memory_per_rank(**job))["stages"]
    assert [stage.total for stage in stages] == [stage["total_bytes"] for stage in told]
    with pytest.raises(LayoutError, match="needs two chunks or more on each rank"):
        memory_per_rank(**job, vpp=1)


def test_a_model_s_own_layers_are_dealt_out_for_programs_as_on_the_page():
    state = opened(nodes=3, tp=2, pp=12, model="llama3-8b")
    held = [stage.parameters.layers for stage in trained_of(resolve(state), state).stages()]
    job = {"nodes": 3, "tp": 2, "pp": 12, "model": "llama3-8b"}
    assert [stage["layers"] for stage in json.loads(memory_per_rank(**job))["stages"]] == held
    with pytest.raises(LayoutError, match="32 layers over 12 stages is not a whole number each"):
        memory_per_rank(**job, spread="equal")


@pytest.mark.parametrize(
    "job",
    [
        {"framework": "mindspore", "ep": 2, "instances": 2},
        {"framework": "deepspeed", "tp": 4, "etp": 2},
        {"tp": 3, "etp": 5, "ep": 3},
        {"order": "tp-pp", "tp": 3},
    ],
)
def test_what_is_offered_for_two_wrong_sizes_is_answered_by_programs_and_commands(job):
    with pytest.raises(LayoutError) as error:
        process_groups(**job)
    assert error.value.alternatives
    for fix in error.value.alternatives:
        assert process_groups(**{**job, **fix})
    options = " ".join(f"--{name} {value}" for name, value in job.items())
    _, refused = printed(f"--nodes 2 {options}")
    assert refused.startswith(f"python -m groups: {error.value.what}; try ")


def test_a_batch_that_one_layout_takes_is_taken_by_the_search_of_others():
    for batch in ({"micro_batch": 10**8 + 1}, {"micro_batch": 10**6, "global_batch": 10**9}):
        with pytest.raises(
            LayoutError, match="must be a whole number from 1 to 100,000,000"
        ) as error:
            better_layouts(**batch)
        for fix in error.value.alternatives:
            assert json.loads(better_layouts(**{**batch, **fix}))["best"]


JOB = {"nodes": "4", "tp": "2", "pp": "4", "vpp": "2", "micro_batches": "6"}


def test_groups_of_micro_batches_count_in_every_view():
    for group in ("", "3", "5", "7"):  # Megatron's is pp where nobody says it
        control = "micro_batches" if group in ("", "5") else "group_size"
        controls = refused_controls(State(**JOB, group_size=group))
        assert set(controls.values()) == {(control,)}, (group, controls)
    state = State(**JOB, group_size="6")
    assert set(refused_controls(state).values()) == {()}
    layout = resolve(state)
    trained = trained_of(layout, state)
    assert trained.training.pipeline(trained.split) == schedule_of("interleaved", layout, state)
    # min(2(p - r - 1) + (v - 1)N + 1, mv)/v; with N = p and 8 of them 5.5, 4.5, 3.5 and 2.5
    assert [stage.in_flight for stage in trained.stages()] == [6.0, 5.5, 4.5, 3.5]
    other = state.changed({"schedule": "1f1b", "vpp": "", "group_size": "99"})  # takes no groups
    assert set(refused_controls(other).values()) == {()}


def test_stages_with_layers_of_their_own_have_them_in_every_view():
    job = {**JOB, "vpp": "", "layers": "10"}
    layout = "E" + "|".join(["t" * 4, "t" * 2, "t" * 3, "tL"])
    for said, dealt in (
        ({"first_layers": "1", "last_layers": "3"}, [1, 3, 3, 3]),
        ({"pipe_layout": layout}, [4, 2, 3, 1]),
        ({"pipe_layout": layout, "layers": ""}, [4, 2, 3, 1]),
    ):
        state = State(**{**job, **said})
        assert set(refused_controls(state).values()) == {()}, said
        stages = trained_of(resolve(state), state).stages()
        assert [stage.parameters.layers for stage in stages] == dealt
        ranks = stages_by_rank(4, with_model(state))
        assert [len(chunk.layers) for chunks in ranks for chunk in chunks] == dealt
        options = options_of_page(resolve(state), state)
        command = emitted(resolve(state), options, "megatron")
        again = opened(**pasted_changes(opened(), parse(command)))
        stages = trained_of(resolve(again), again).stages()
        assert [stage.parameters.layers for stage in stages] == dealt
    for control, said in (
        ("first_layers", {"first_layers": "0"}),
        ("first_layers", {"first_layers": "11"}),
        ("layers", {"pipe_layout": "Et|t|t|tL"}),
    ):
        assert set(refused_controls(State(**{**job, **said})).values()) == {(control,)}, said


def test_micro_batches_that_pp_does_not_divide_are_offered_the_groups_that_megatron_takes():
    state = State(**JOB)
    with pytest.raises(LayoutError) as refused:
        schedule_of("interleaved", resolve(state), state)
    assert {"group_size": 6} in refused.value.alternatives
    labels = [f"{CONTROLS['group_size'].label[one]} 6" for one in ("en", "zh")]
    for name in COUNTED:
        pages = (answer(replace(state, view=name, lang=one)).picture for one in ("en", "zh"))
        assert all(label in page for label, page in zip(labels, pages)), name


def test_chunks_that_a_schedule_does_not_have_are_refused_in_every_view():
    for schedule, vpp in (("1f1b", "2"), ("zb-v", "3"), ("interleaved", "1")):
        state = State(**{**JOB, "vpp": vpp, "micro_batches": "8"}, schedule=schedule, layers="32")
        controls = refused_controls(state)
        assert set(controls.values()) == {("vpp",)}, (schedule, controls)
        with pytest.raises(LayoutError) as refused:
            stages_by_rank(4, state)
        assert refused.value.control == "v"
    for vpp in ("", "1", "2"):  # ZB-V has two, whoever says it
        state = State(**{**JOB, "vpp": vpp}, schedule="zb-v")
        assert set(refused_controls(state).values()) == {()}
        assert trained_of(resolve(state), state).split.vpp == 2


@pytest.mark.parametrize(
    "typed", [{}, {"micro_batches": "4"}, {"global_batch": "64"},
              {"micro_batches": "8", "global_batch": "64", "micro_batch": "4"}]
)  # fmt: skip
def test_so_many_micro_batches_are_set_whatever_is_typed(typed):
    now = State(pp=4, **typed)
    layout = resolve(now)
    changed = now.changed(with_micro_batches(layout, now, 12))
    assert batch_of(layout, changed).micro_batches == 12


def test_the_pipeline_endpoint_takes_the_pages_batch_where_none_is_said():
    answer = json.loads(pipeline_schedule(p=4, ops=False))
    assert answer["m"] == batch_of(resolve(State(pp=4)), State(pp=4)).micro_batches


# -- published layouts ---------------------------------------------------------------------------


def test_choosing_a_preset_opens_its_own_model_or_asks_for_it():
    wrong = []
    for name in PRESETS:
        now = opened(**STATES[name])
        own = model_of_preset(name)
        try:
            model = model_of(now).model
        except LayoutError as error:
            model = None if error.code == "model-incomplete" else own
        if name != "playground-16" and model != own:  # it names no model
            wrong.append(name)
    assert not wrong


def test_the_sizes_that_a_preset_asks_for_make_its_model():
    state = STATES["folding-llama3-8x70b-mcore"]
    with pytest.raises(LayoutError) as refused:
        model_of(opened(**state))
    assert refused.value.facts["missing"] == ("top_k",)
    model = model_of(opened(**{**state, "top_k": "2"})).model
    assert (model.layers, model.hidden, model.experts, model.sequence) == (80, 8192, 8, 4096)
    assert (model.gated, model.rms_norm) == (True, True)


# -- links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "now"),
    [
        ("v=1&memory_schedule=zb-v&show=memory", {"schedule": "zb-v"}),
        ("v=1&memory_schedule=zb-v&schedule=gpipe&show=traffic", {"schedule": "zb-v"}),
        ("v=1&memory_schedule=zb-v&schedule=gpipe&show=pipeline", {"schedule": "gpipe"}),
        ("v=1&chunks=3&show=pipeline", {"schedule": "1f1b", "vpp": ""}),
        ("v=1&schedule=zb-h1&vpp=4&show=pipeline", {"schedule": "zb-h1", "vpp": ""}),
        ("v=1&schedule=zb-h1&vpp=4&show=ranks", {"schedule": "", "vpp": "4"}),
        ("v=1&schedule=zb-h1&chunks=4&show=ranks", {"schedule": "zb-h1", "vpp": ""}),
        ("v=1&vpp=2&group_size=8&show=pipeline", {"group_size": "8"}),
        ("v=1&vpp=2&group_size=8&show=memory", {"group_size": ""}),
        ("v=1&chunks=3&vpp=2&show=pipeline", {"vpp": "3"}),
        ("v=1&chunks=3&vpp=2&show=memory", {"vpp": "2"}),
        ("v=1&micro_batches=12", {"micro_batches": "12"}),
        ("v=1&pp=4&layers=30&account=1&show=memory", {"spread": ""}),  # with both ends 32
        ("v=1&pp=4&layers=31&account=1&show=memory", {"spread": "nearly"}),
    ],
)
def test_links_with_names_of_old_open_what_they_opened(old, now):
    found = from_query(old)
    assert {name: getattr(found, name) for name in now} == now
    assert from_query(to_query(found)) == found


OLD_LINKS = Path(__file__).parent / "data" / "links_of_version_1.jsonl"
"""Links that commit 2e09e5f wrote, and what its views counted with when it opened them. Without a
batch its pipeline took another number of micro-batches than all others, which is not kept."""


def test_links_of_version_1_open_what_they_opened():
    wrong = []
    for row in map(json.loads, OLD_LINKS.read_text(encoding="utf-8").splitlines()):
        now = from_query(row["link"])
        layout, found = resolve(now), {}
        if "pipeline" in row:
            one = schedule_of(schedule_name(now), layout, with_model(now))
            found = {"name": one.name, "p": one.p, "m": one.m, "v": one.chunks}
        else:
            trained = trained_of(layout, now)
            batch, split = trained.batch, trained.split
            found = {"m": batch.micro_batches, "mb": batch.micro_batch, "vpp": split.vpp}
            found |= {"spread": split.spread, "schedule": trained.training.schedule}
        opened = row.get("pipeline") or row["trained"]
        if {name: found[name] for name in opened} != opened:
            wrong.append((row["link"], opened, found))
    assert not wrong


# -- the column and launch files -----------------------------------------------------------------


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_column_asks_once_for_what_every_view_counts_with(language):
    page = column_html(language)["folds"]
    names = ("model", "layers", "hidden", "heads", "kv_heads", "ffn", "vocabulary", "sequence")
    names += ("schedule", "micro_batches", "micro_batch", "global_batch", "capacity")
    names += CHOSEN
    assert {name: page.count(f'id="field-{name}"') for name in names} == dict.fromkeys(names, 1)


def test_what_a_script_says_of_the_training_reaches_every_view():
    script = (
        "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
        "--pipeline-model-parallel-size 2 --num-layers 80 --hidden-size 8192 "
        "--num-attention-heads 64 --num-query-groups 8 --ffn-hidden-size 28672 --swiglu "
        "--seq-length 2048 --sequence-parallel "
        "--use-distributed-optimizer --recompute-granularity full --bf16 --micro-batch-size 1 "
        "--global-batch-size 64"
    )
    before = STATES["deepseek-v3"]
    now = opened(**{**before, **pasted_changes(opened(**before), parse(script))})
    problem = trained_of(resolve(now), now)
    model, training = problem.model, problem.training
    assert (problem.chosen.preset, model.sequence) == ("llama3-70b", 2048)
    assert (training.zero, training.recompute, training.sequence_parallel) == (1, "full", True)
    assert (training.precision, training.micro_batches) == ("bf16-fp32", 16)


def test_a_shape_that_nobody_published_is_the_readers_own_and_what_lacks_is_asked_for():
    script = "--num-layers 7 --hidden-size 512 --num-attention-heads 8 --seq-length 128"
    said = {name: value for name, value in training_fields(parse(script)).items() if value}
    assert said == {"model": "own", "hidden": "512", "heads": "8", "sequence": "128"}
    now = opened(layers="7", **said)
    with pytest.raises(LayoutError) as refused:
        model_of(now)
    assert refused.value.facts["missing"] == ("vocabulary",)
    for language in ("en", "zh"):
        asked = replace(now, view="memory", lang=language)
        label, name = CONTROLS["vocabulary"].label[language], MEMORY["own_model"][language]
        alert = text_of(only(answer(asked).picture, ".refusal"))
        assert alert.count(label) == 2  # in the sentence, and on the button that leads there
        whole = replace(asked, vocabulary="32000", layers="8")
        assert name in answer(whole).job
        for view in ("memory", "estimate", "traffic", "search", "collectives"):
            assert name.lower() in answer(replace(whole, view=view)).picture.lower(), view


SAID = ("zero", "recompute", "sequence_parallel")
"""What of the training every view counts with, and a command says only where somebody said it."""


def test_what_megatrons_script_does_not_say_is_off_in_every_view_as_it_is_there():
    """Megatron-LM's examples/gpt3/train_gpt3_175b_distributed.sh (d98e8a6) has none of the three;
    its 8 tensor parallel ranks then hold three times the activations."""
    script = (
        "torchrun --nproc_per_node 8 --nnodes 16 pretrain_gpt.py --num-layers 96 --bf16 "
        "--hidden-size 12288 --num-attention-heads 96 --seq-length 2048 --micro-batch-size 1 "
        "--tensor-model-parallel-size 8 --pipeline-model-parallel-size 16 "
    )
    told = {}
    options = (
        "sequence-parallel",
        "data-parallel-sharding-strategy optim_grads",
        "use-torch-fsdp2",
    )
    options += ("use-distributed-optimizer", "recompute-activations")
    for more in ("", *(f"--{option}" for option in options)):
        now = opened(**pasted_changes(opened(), parse(script + more)))
        training = trained_of(resolve(now), now).training
        told[more.partition(" ")[0]] = tuple(getattr(training, name) for name in SAID)
    assert told == {
        "": (0, "none", False),
        "--sequence-parallel": (0, "none", True),
        "--data-parallel-sharding-strategy": (2, "none", False),
        "--use-torch-fsdp2": (3, "none", False),
        "--use-distributed-optimizer": (1, "none", False),
        "--recompute-activations": (0, "selective", False),
    }
    said = "Sequence parallelism is not given: Megatron trains without it."
    assert said in answer(State(paste=script, view="launch")).picture
    assert training_fields(parse(f"{script} $OPTIONS"))["zero"] == ""  # which may say it
    # Options of a cluster alone say nothing of the training; nor do those of other programs.
    assert training_fields(parse("--tensor-model-parallel-size 8 --num-layers 96")) == {}


CLIP = """torchrun --nproc_per_node 8 examples/multimodal/train.py --num-layers 32 --swiglu
--hidden-size 4096 --num-attention-heads 32 --tensor-model-parallel-size 4 --seq-length 576
--use-distributed-optimizer""".replace("\n", " ")
"""Of Megatron-LM's examples/multimodal/sft_mistral_clip.sh (d98e8a6), which names no format."""


@pytest.mark.parametrize(
    ("more", "precision"),
    [
        ("", "fp32-fp32"),  # its arguments.py begins with params_dtype = torch.float
        ("--bf16", "bf16-fp32"),
        ("--fp16", "fp16-fp16"),
        ("--bf16 --grad-reduce-in-bf16", "bf16-bf16"),
        ("--grad-reduce-in-bf16", "fp32-fp32"),  # read where bf16 is given
        ("$FORMATS", ""),  # which may say it
    ],
)
def test_megatron_trains_in_fp32_where_its_command_names_no_format(more, precision):
    text = f"{CLIP} {more}"
    assert training_fields(parse(text)).get("precision", "") == precision
    said = [note for note in parse(text).missing if note.facts.get("field") == "precision"]
    assert len(said) == (precision == "fp32-fp32")
    page = answer(State(paste=text, view="launch")).picture
    assert ("Precision is not given: fp32 is assumed." in page) == bool(said)


def test_a_page_of_fp32_is_a_command_without_a_format():
    context = Context.of(opened(model="llama3-8b", precision="fp32-fp32"))
    command = emitted(context.layout, options_of_page(context.layout, context.state), "megatron")
    assert training_fields(parse(command))["precision"] == "fp32-fp32"


def test_lists_of_options_leave_open_how_their_command_trains():
    """THUDM/slime's scripts/models/mimo-7B-rl.sh is sourced by a script that has the rest."""
    _, _, options = CLIP.partition(".py ")
    for text in (options, f"MODEL_ARGS=({options})"):
        said = training_fields(parse(text))
        assert (said["hidden"], said["zero"]) == ("4096", "1")
        assert {said[name] for name in ("recompute", "sequence_parallel", "precision")} == {""}
    yaml = "MODEL_ARGS:\n  --hidden-size: 64\n  --tensor-model-parallel-size: 2\n  --bf16: "
    assert training_fields(parse(f"{yaml}true"))["precision"] == "bf16-fp32"
    assert training_fields(parse(f"{yaml}false"))["precision"] == "fp32-fp32"


def test_a_command_names_what_it_cannot_say_of_the_training():
    state = opened(model="llama3-8b", precision="bf16-bf16", products="nvfp4", schedule="zb-v")
    context = Context.of(state)
    options = options_of_page(context.layout, state)
    command = emitted(context.layout, options, "megatron")
    lines = command.split("\n", 1)
    assert lines[0] == "# Megatron-LM has no option for schedule 'zb-v', products 'nvfp4'"
    assert training_fields(parse(lines[1]))["precision"] == "bf16-bf16"
    assert "grad_reduce_in_bf16" in emitted(context.layout, options, "torchtitan").split("\n", 1)[0]
    options = options_of_page(context.layout, opened(precision="fp8-fp32-bf16"))
    assert emitted(context.layout, options, "megatron").startswith(
        "# Megatron-LM has no option for formats 'fp8-fp32-bf16'"
    )


def test_groups_of_micro_batches_are_read_from_launch_files_and_written_to_them():
    for target, word in (
        ("megatron", "--microbatch-group-size-per-virtual-pipeline-stage 6"),
        ("nemo", "model.microbatch_group_size_per_vp_stage=6"),
    ):
        state = opened(**JOB, group_size="6", layers="32")
        layout = resolve(state)
        command = emitted(layout, options_of_page(layout, state), target)
        assert word in command
        assert opened(**pasted_changes(opened(), parse(command))).group_size == "6"
        plain = replace(state, vpp="")  # 1F1B has no chunks
        assert word not in emitted(layout, options_of_page(layout, plain), target)
    told = emitted(layout, options_of_page(layout, state), "torchtitan")
    assert "group_size 6" in told.split("\n", 1)[0]
    assert (
        opened(**pasted_changes(state, parse("torchrun pretrain_gpt.py --tp 2"))).group_size == ""
    )


def test_the_command_of_a_layout_says_what_the_page_counts_with():
    """Read back by an empty page, it trains the same model in the same way."""
    wrong = []
    for name, state in STATES.items():
        now = opened(**state)
        if PRESETS[name].framework not in ("megatron", "megatron-pp-dp"):
            continue
        model = model_of_preset(name)
        if model is None or model.runs:  # of several kinds, of which a comment says what lacks
            continue
        training = Context.of(now).trained.training
        if {*OWN} & training.recomputed:  # of whose software Megatron has not everything
            continue
        now = now.changed(texts_of({field: getattr(training, field) for field in SAID}))
        context = Context.of(now)
        command = emitted(
            context.layout, options_of_page(context.layout, context.state), "megatron"
        )
        again = opened(**pasted_changes(opened(), parse(command)), cluster=now.cluster)
        found = Context.of(again).trained
        asked = context.trained
        same = (
            (total_parameters(found.model), total_parameters(asked.model)),
            (found.batch.micro_batches, asked.batch.micro_batches),
            (found.model.sequence, asked.model.sequence),
            *((getattr(found.training, field), getattr(training, field)) for field in SAID),
            (found.training.products, asked.training.products),
            (found.split.vpp, asked.split.vpp),
        )
        if any(one != other for one, other in same):
            wrong.append((name, same))
    assert not wrong


def test_page_and_command_line_write_the_same_for_every_published_layout():
    """Its shape, batch and training, for every target, or the same refusal."""
    wrong = []
    for name, state in STATES.items():
        now = Context.of(opened(**state))
        options = options_of_page(now.layout, now.state)
        for target in TARGETS:
            command, refused = printed(f"emit {target} --preset {name}")
            try:
                text = emitted(now.layout, options, target) + "\n"
            except LayoutError as error:
                text = error.what
            if text != command and text not in refused:
                wrong.append((name, target, command, text))
    assert not wrong


@pytest.mark.parametrize("target", ["megatron", "nemo", "megatron-deepspeed", "deepspeed"])
def test_the_command_of_a_published_layout_that_is_read_is_written_the_same(target):
    """But for the comment on what it has no words for, which nobody reads."""
    wrong = []
    for name in PRESETS:
        text, _ = printed(f"emit {target} --preset {name}")
        again, _ = printed(f"emit {target} --args -", text)
        commands = [re.sub(r"^#.*\n", "", one, flags=re.MULTILINE) for one in (text, again)]
        if len(set(commands)) > 1:
            wrong.append((name, text, again))
    assert not wrong


def test_what_a_layout_publishes_of_its_training_is_in_its_command():
    command, _ = printed("emit --preset deepseek-v3")
    for option in (
        *("--bf16", "--fp8-format hybrid", "--recompute-granularity selective"),
        *("--use-distributed-optimizer", "--global-batch-size 15360", "--hidden-size 7168"),
    ):
        assert f"  {option}" in command
    assert "--sequence-parallel" in printed("emit --preset korthikanti-1t")[0]


def test_servers_are_told_of_no_batch_and_a_comment_has_the_fields_words():
    context = Context.of(opened(**STATES["bloom-176b"]))
    comment = emitted(
        context.layout, options_of_page(context.layout, context.state), "torchtitan"
    ).splitlines()[0]
    assert "embedding and loss as a layer each" in comment
    assert "True" not in comment
    server = Context.of(opened(framework="vllm", layers="32", account="1", pp=1))
    command = emitted(server.layout, options_of_page(server.layout, server.state), "vllm")
    head, command = command.split("\n", 1)
    assert head == "# on every node but the first add --headless"
    assert command.startswith("vllm serve")


SHAPED = {
    # arXiv:2307.09288: the parameters that the model's weights have.
    "Llama 2 7B": (
        "--num-layers 32 --hidden-size 4096 --num-attention-heads 32 --ffn-hidden-size 11008 "
        "--swiglu --normalization RMSNorm --position-embedding-type rope --disable-bias-linear "
        "--untie-embeddings-and-output-weights --vocab-size 32000 --seq-length 4096",
        6_738_415_616,
    ),
    # arXiv:2104.04473 equation 2, with a table of positions: what Megatron has where nobody asks.
    "GPT": (
        "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --padded-vocab-size 51200 "
        "--seq-length 1024",
        24 * (12 * 2048**2 + 13 * 2048) + (51200 + 1024 + 2) * 2048,
    ),
    "DeepSeek-V3, whose own shape is known": (
        "--num-layers 61 --hidden-size 7168 --num-attention-heads 128 --num-experts 256 "
        "--ffn-hidden-size 18432 --swiglu "
        "--q-lora-rank 1536 --kv-lora-rank 512 --moe-shared-expert-intermediate-size 2048",
        671_026_404_352,  # and 58 x 256 biases of routers, which no gradient trains
    ),
}


@pytest.mark.parametrize("name", SHAPED)
def test_the_shape_that_a_script_asks_for_is_the_model_of_the_page(name):
    options, parameters = SHAPED[name]
    before = STATES["llama3-405b-2"]
    script = f"torchrun pretrain_gpt.py --tensor-model-parallel-size 1 {options}"
    now = opened(**{**before, **pasted_changes(opened(**before), parse(script))})
    assert total_parameters(model_of(now).model) == parameters


def test_a_script_is_not_taken_for_a_published_model_that_it_contradicts():
    """Pythia 6.9B has Llama 3 8B's layers, width and heads, and nothing else of it."""
    shape = "--num-layers 32 --hidden-size 4096 --num-attention-heads 32"
    for options in ("", " --ffn-hidden-size 11008 --swiglu", " --num-query-groups 8"):
        said = training_fields(parse(f"pretrain_gpt.py --use-tp-pp-dp-mapping {shape}{options}"))
        assert said["model"] == "own"
    assert training_fields(parse("--hidden-size 4096"))["model"] == "own"  # the rest is asked for


OPTIONS = {
    "--recompute-activations": {"recompute": "selective"},
    "--checkpoint-activations": {"recompute": "full"},
    "--recompute-granularity selective --recompute-modules mlp moe core_attn": {
        "recompute": "core_attn,mlp,moe"
    },
    "--recompute-granularity selective --recompute-modules gdn_norm_out": {"recompute": "none"},
    "--recompute-granularity selective": {"recompute": "selective"},
    "--moe-layer-recompute": {"recompute": "moe"},
    "--recompute-modules moe": {},  # it takes a granularity
    "--attention-backend unfused": {"flash": "off"},
    "--use-flash-attn": {"flash": "on"},
    "--bf16 --fp8-format hybrid --fp8-recipe mxfp8": {
        "precision": "bf16-fp32",
        "products": "mxfp8",
    },
    "--add-qkv-bias --disable-bias-linear": {"biases": "qkv"},
    "mixed_precision=bf16_with_nvfp4_mixed": {"precision": "bf16-fp32", "products": "nvfp4"},
}


TORCHTITAN = """[model]
name = "llama3"
flavor = "70B"
[training]
local_batch_size = 8
[parallelism]
tensor_parallel_degree = 8
"""

MS_SWIFT = "megatron sft --tensor_model_parallel_size 4 --micro_batch_size 1 --global_batch_size 4"


@pytest.mark.parametrize(
    ("text", "chip"),
    [
        (TORCHTITAN, "Llama 3 70B"),
        (TORCHTITAN.replace("70B", "debugmodel"), "A model not known yet"),
        (f"{MS_SWIFT} --model Qwen/Qwen3-30B-A3B-Base", "Qwen3 30B-A3B"),
        (f"{MS_SWIFT} --model Qwen/Qwen2.5-VL-7B-Instruct", "A model not known yet"),
        (f"{MS_SWIFT} --model Qwen/Qwen3-30B-A3B --num-layers 24", "A model not known yet"),
        ("vllm serve --model meta-llama/Meta-Llama-3.1-405B-Instruct-FP8 -tp 8", "Llama 3 405B"),
        ("/opt/bin/vllm serve openai/gpt-oss-120b -tp 8", "GPT-OSS 120B"),
        ("python -m sglang.launch_server --model-path deepseek-ai/DeepSeek-R1 --tp 16",
         "DeepSeek-V3"),
        ("python -m verl.trainer.main_ppo actor_rollout_ref.model.path=/models/qwen3-30b-a3b/ "
         "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4", "Qwen3 30B-A3B"),
        ("base_model: NousResearch/Meta-Llama-3-70B\nsequence_len: 4096\ntensor_parallel_size: 2",
         "Llama 3 70B"),
        (f"{MS_SWIFT} --model $MODEL", "A model not known yet"),
        ("torchrun -m torchtitan.train --module llama3 --config llama3_70b", "Llama 3 70B"),
        ("run_recipe.py --recipe qwen25_72b_sft_32gpu_h100_bf16_config -tp 4", "Qwen2.5 72B"),
        ("run_recipe.py --recipe qwen3_vl_8b_sft_config -tp 2", "A model not known yet"),
        ("custom_setup_experiment.py --model_family_name llama --model_recipe_name llama31_405b "
         "--compute_dtype fp8_mx -tp 4", "Llama 3 405B"),
        ("torchrun -m torchtitan.train --job.config_file job.toml", "A model not known yet"),
        ("modules:\n  pre_trainer:\n    model: llama3.1_70B.yaml\n    overrides:\n"
         "      tensor_model_parallel_size: 8", "Llama 3 70B"),
        (MS_SWIFT, "Llama 3 8B"),
    ],
)  # fmt: skip
def test_a_model_that_a_script_names_is_the_pages_or_asked_for(text, chip):
    before = opened(model="llama3-8b", layers="32", global_batch="64", hidden="4096", tp=2, pp=1)
    now = opened(**{**texts_of(vars(before)), **pasted_changes(before, parse(text))})
    if text == MS_SWIFT:  # it names none: what the page had stays
        assert now.hidden == "4096"
    else:
        assert (now.hidden, now.layers in ("", "24")) == ("", True)
    assert chip in html.unescape(answer(now).job)


def test_values_that_the_page_has_taken_from_a_script_are_not_offered_again():
    before = opened(view="launch", model="mixtral-8x7b", paste=TORCHTITAN)
    changes = pasted_changes(before, parse(TORCHTITAN))
    after = opened(**{**texts_of(vars(before)), **changes})
    offered = PAGE["use_pasted"]["en"]
    assert offered in answer(before).picture
    assert pasted_changes(after, parse(TORCHTITAN)) == {}
    page = answer(after).picture
    assert offered not in page
    assert "The page shows what the text asks for" in page


def test_a_command_of_a_script_that_names_its_model_has_the_models_shape():
    command, _ = printed("emit megatron --args -", TORCHTITAN)
    assert {"--num-layers 80", "--hidden-size 8192", "--num-query-groups 8"} <= {
        line.strip(" \\") for line in command.splitlines()
    }


def comments_of(text):
    """What stands above the command: which version it is for, what it cannot say."""
    return "\n".join(takewhile(lambda line: line.startswith("#"), text.split("\n")))


@pytest.mark.parametrize("name", [name for name in TARGETS if not TARGETS[name].serves])
def test_a_command_says_the_formats_of_the_page_or_that_it_cannot(name):
    """FP32 of the page was torchtitan's bfloat16 (b5bcd76 torchtitan/config/configs.py)."""
    words = {"fp16-fp16": "fp16", "fp32-fp32": "fp32", "bf16-bf16": "in_bf16", "mxfp8": "fp8"}
    silent = {"", "bf16-fp32", "fp32-fp32" if "bf16" in TARGETS[name].fields.values() else ""}
    for precision in ("bf16-fp32", "bf16-bf16", "fp16-fp16", "fp32-fp32"):
        for products in ("", "fp8", "mxfp8", "nvfp4"):
            state = opened(model="llama3-70b", pp=1, precision=precision, products=products)
            context = Context.of(state)
            text = emitted(context.layout, options_of_page(context.layout, state), name)
            said, comment = training_fields(parse(text)), comments_of(text)
            for field, asked in (("precision", precision), ("products", products)):
                is_told = words.get(asked, asked) in comment
                assert said.get(field) == asked or is_told or asked in silent, (text, asked)


def test_a_command_that_leaves_the_model_to_its_reader_names_none():
    for name in TARGETS:
        assert "model" not in training_fields(parse(printed(f"emit {name} --nodes 2 --tp 2")[0]))


@pytest.mark.parametrize(
    ("options", "vocabulary"),
    [
        ("--tokenizer-type GPT2BPETokenizer", "50257"),
        ("--vocab-file $1 --merge-file $2", "50257"),
        ("--vocab-file $1 --merge-file $2 --tokenizer-type HuggingFaceTokenizer", ""),
        ("--tokenizer-type GPT2BPETokenizer --vocab-size 51200", "51200"),
        ("--tokenizer-type Llama2Tokenizer", ""),
        ("", ""),
    ],
)
def test_the_vocabulary_of_gpt2s_tokenizer_is_taken_and_said(options, vocabulary):
    script = (
        "torchrun --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 "
        f"--num-layers 24 --hidden-size 1024 --num-attention-heads 16 --seq-length 1024 {options}"
    )
    text = parse(script)
    assert training_fields(text).get("vocabulary", "") == vocabulary
    assumed = [
        note.facts["assumed"] for note in text.missing if note.facts["field"] == "vocabulary"
    ]
    assert assumed == ([50257] if vocabulary == "50257" else [])


def test_what_an_option_says_of_the_training_is_a_field_of_the_page():
    wrong = []
    for options, fields in OPTIONS.items():
        said = training_fields(parse(f"torchrun pretrain_gpt.py {options}"))
        if said != fields:
            wrong.append((options, said))
    assert not wrong


def test_a_script_of_another_model_leaves_nothing_of_the_training_before_it():
    before = STATES["deepseek-v3"]  # DualPipe, FP8, ZeRO 1, another sequence
    shape = "--num-layers 80 --hidden-size 8192 --num-attention-heads 64 --bf16"
    now = opened(
        **{**before, **pasted_changes(opened(**before), parse(f"pretrain_gpt.py {shape}"))}
    )
    said = (now.products, now.recompute, now.schedule, now.precision)
    assert said == ("", "none", "", "bf16-fp32")  # which Megatron trains without where none is said


def test_a_preset_says_every_field_of_model_and_training_anew():
    said = {field for state in STATES.values() for field in state}
    assert said & {*fields_of("model", "training")} <= {
        n for n, row in FIELDS.items() if row.is_published
    }
