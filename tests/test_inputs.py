"""Every input in every place that is made of it: a field that is added to a model is on the page,
in links, endpoints, options, documents and launch files with its texts, or a test says where."""

from __future__ import annotations

import json
from functools import cache

from cases import every
from markup import select

from cli.guide import ELSEWHERE, guide, ways_to_train
from descriptions import CONTROLS, LANGUAGES, MEMORY
from formats.launch import parse
from formats.launch.emit import TARGETS, emit
from formats.launch.training import options_of, training_of
from groups import LayoutError
from groups.inputs import inputs_of
from groups.layout import LATER, Job, job_fields
from request.answers.memory import SERVED
from request.answers.slow.files import example
from request.context import Context
from request.endpoint import LAYOUT
from request.inputs import FIELDS, STARTS, fields_of
from request.link import from_query, to_query
from request.named.launch import SAYABLE, UNSAYABLE
from request.state import State
from request.trained_endpoint import OF_MODEL, TRAINING, job_facts
from training.model import Model
from training.models import MODELS
from training.recipe import Training
from views.all import ENDPOINTS, VIEWS
from views.column import column_html
from views.page import answer, first_answer

MACHINES = "\n".join(f"host{at}" for at in range(8))
SHOWN = (
    {"of_rank": 3},
    {"nodes": 8, "pp": 4, "ep": 4, "cp": 2, "hosts": MACHINES, "racks": MACHINES},
    {"paste": "torchrun --nnodes 2 a.py --tensor-model-parallel-size 4", "collective": "broadcast"},
    {"framework": "vllm", "tp": 8, "pp": 1, "traces_digest": example(), "moves_what": "kv"},
    {"framework": "sglang", "tp": 8, "pp": 1, "ep": 8, "model": "mixtral-8x7b"},
    {"paste": "python3 -m verl.trainer.main_ppo trainer.nnodes=$N"},
)
"""States in which some view asks for each input."""

BY_SCRIPT = {
    **{
        "view": "buttons",
        "tour": "buttons",
        "moment": "the film",
        "digest": "files that are read",
    },
    "traces_digest": "files that are read",
    **{"lines": "buttons", "target": "buttons", "run": "buttons"},
    "role_edit": "tabs, and boxes of the role on screen",
    "moves_cell": "cells of a matrix",
}
"""Inputs without a box of their own, and what sets them."""

UNASKED = {
    "group_type": "/layout",
    **{"more": "/layout", "dp_kind": "/layout"},
    "micro_batches": "global_batch says them",
    **dict.fromkeys(("first_layers", "last_layers"), "a link or a launch file says uneven ends"),
    "pipe_layout": "changes: layers may be a pipeline layout",
    **dict.fromkeys(("cluster", "capacity"), "a parameter of the endpoints that need it"),
}
"""Inputs of a job and its training that endpoints do not share, and what says them."""


@cache
def asked(language: str) -> set[str]:
    """The inputs that have a box somewhere on the page."""
    html = [*first_answer()["regions"].values(), *column_html(language).values()]
    for view in VIEWS:
        for changes in SHOWN:
            found = answer(State(view=view, lang=language, **changes))
            html += [found.picture or "", found.details or ""]
    return {
        box.attributes["data-field"] for text in html for box in select(str(text), "[data-field]")
    }


@every("name", FIELDS)
def test_an_input_has_a_box_with_its_words_on_the_page(name):
    if name in BY_SCRIPT:
        assert name not in asked("en")
        return
    assert name in asked("en"), "no view and no part of the column asks for it"
    words = CONTROLS[{"lang": "language"}.get(name, name)]
    for text in words:
        assert all(text[language].strip() for language in LANGUAGES)


@every("name", [name for name in fields_of("training") if FIELDS[name].row.kind == "choice"])
def test_a_choice_of_training_has_words_in_every_language(name):
    if name in ("cluster",):  # which have names
        return
    for choice in FIELDS[name].choices:
        assert all(MEMORY[f"{name}_{choice}"][language] for language in LANGUAGES), choice


def test_each_input_has_a_name_of_its_own_in_links():
    links = [field.link for field in FIELDS.values() if field.link]
    assert len(links) == len({*links})


@every("name", [name for name, field in FIELDS.items() if field.link and name != "lang"])
def test_an_input_comes_back_from_its_link(name):
    row = FIELDS[name].row
    text = next((one for one in row.choices if one != STARTS[name]), "7")
    state = State(**{name: text})
    assert getattr(state, name) == text != STARTS[name]
    assert getattr(from_query(to_query(state)), name) == text


@every("name", fields_of("job", "model", "training", "machine"))
def test_an_input_of_a_job_is_a_parameter_of_endpoints_with_its_words(name):
    parameters = {row.field: row for row in (*LAYOUT.rows.values(), *TRAINING.rows.values())}
    if name in OF_MODEL or name in UNASKED:
        assert name not in parameters
        return
    assert FIELDS[name].row.input.means in parameters[name].means or name == "model"
    called = next(one for one, row in {**LAYOUT.rows, **TRAINING.rows}.items() if row.field == name)
    endpoint = ENDPOINTS["memory_per_rank"]
    assert f"\n    {called}: {parameters[name].means}." in (endpoint.__doc__ or "")
    assert called in endpoint.__annotations__


@every("name", fields_of("job", "model", "training", "machine"))
def test_an_input_of_a_job_is_an_option_of_the_command_line(name):
    guided = {one.name: one.help for section in guide().sections for one in section.options}
    options = {**guided, **{one.name: one.help for one in ways_to_train()}}
    if name in OF_MODEL and name not in options:
        assert "changes" in options
    elif name in ELSEWHERE or name in ("group_type", "more", "dp_kind", "pipe_layout"):
        assert name not in {one.name for one in ways_to_train()}
    else:
        assert options[name]


def test_a_document_has_every_input_of_job_and_training():
    context = Context.of(State(group_size="2", schedule="interleaved"))
    assert {*inputs_of(Training)} <= {*job_facts(context.trained)["training"]}
    assert {*inputs_of(Job)} == {*job_fields(Job(**dict.fromkeys(LATER, 2)))}
    assert {*inputs_of(Model)} <= {*OF_MODEL}
    json.dumps(job_facts(context.trained))


@every("name", [name for name in fields_of("training") if name not in UNSAYABLE])
def test_a_way_to_train_has_words_in_launch_files(name):
    assert name in SAYABLE
    row, bare = FIELDS[name].row, options_of({}, {}, 2)
    written = (options_of({}, {name: row.chosen(row.read(choice))}, 2) for choice in row.choices)
    missing = f"WRITTEN of formats/launch/training.py lacks {name}; a switch: words.toml beside it"
    assert any(options != bare for options in written), missing


@every("name", [name for name in fields_of("training") if name not in UNSAYABLE])
def test_a_command_that_cannot_say_a_way_to_train_names_it_in_a_comment(name):
    row = FIELDS[name].row
    written = [options_of({}, {name: row.chosen(row.read(choice))}, 2) for choice in row.choices]
    for target in (target for target in TARGETS.values() if not target.serves):
        job = Job(nodes=4, **{axis: 2 for axis in ("tp", "pp") if axis not in target.unsaid})
        missing = f"{target.id}: IN_COMMENTS of formats/launch/emit.py lacks {name}"
        assert len({_written(job, options, target.id) for options in written}) > 1, missing


def _written(job, options, target):
    try:
        return emit(job, options, target)
    except LayoutError as error:  # such as DDP beside tensor parallelism
        return f"{error.code}: {error.what}"


UNREAD = {
    "schedule": "virtual stages say which",
    "dispatch": "no command has a word for it",
    "sync": "a training loop's own lines say when",
}
"""Ways to train that no launch file gives back, and why."""


@every("name", [name for name in fields_of("training") if name not in UNSAYABLE])
def test_a_way_to_train_is_read_from_the_commands_that_say_it(name):
    shape = MODELS["deepseek-v3"].model
    row = FIELDS[name].row
    values = (row.chosen(row.read(choice)) for choice in reversed(row.choices))
    said = ((value, options_of(shape, {name: value}, 2)) for value in values)
    read = (
        training_of(parse(emit(Job(nodes=4, tp=2, pp=2), options, target))).get(name) == value
        for value, options in said
        for target in ("megatron", "nemo", "torchtitan")
    )
    missing = f"targets.toml of formats/launch/tables has no option of {name}, or training.toml"
    assert any(read) != (name in UNREAD), missing


def test_an_input_of_a_server_is_a_parameter_of_its_endpoint():
    inputs = [name for name in fields_of("memory") if name.startswith("served_")]
    assert {*inputs} <= {row.field for row in SERVED.rows.values()}, "request/answers/memory.py"
