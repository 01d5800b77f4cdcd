"""The commands about a training step: their numbers are the endpoints', their refusals can be given
back; and the ways in which sizes and names may be said."""

from __future__ import annotations

import csv
import json
import shlex
from typing import Any
from urllib.parse import quote

import pytest
from test_command import answered, ask

from cli.inputs import PROGRAM, help_text, options_parser
from cli.spelling import known_options
from cli.state import OPTIONS
from groups import LayoutError
from groups.presets import PRESETS
from request.answers.compare.sides import comparison_of, moved_by_kind
from request.answers.compare.words import verdict_text
from request.context import Context
from request.link import from_query
from request.resolve import resolve
from request.trained import trained_of
from views.all import ENDPOINTS

SCRIPT = """torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py --tensor-model-parallel-size 2 \\
  --pipeline-model-parallel-size 2 --num-layers 32 --hidden-size 4096 --num-attention-heads 32 \\
  --seq-length 4096 --micro-batch-size 1 --global-batch-size 256 --bf16 --swiglu \\
  --use-distributed-optimizer --recompute-granularity full --recompute-method uniform \\
  --recompute-num-layers 1 --vocab-size 32000
"""

ENDPOINT_OF = {
    "memory": "memory_per_rank",
    "traffic": "traffic_per_step",
    "estimate": "estimate",
    "search": "better_layouts",
}

ASKED = [
    ("--nodes 2 --tp 2 --pp 2", {"nodes": 2, "tp": 2, "pp": 2}),
    (
        "--gpus 16 --tp 4 --model mixtral-8x7b --ep 4 --global-batch 64 --zero 2 --flash off",
        {"nodes": 2, "tp": 4, "model": "mixtral-8x7b", "ep": 4, "global_batch": 64}
        | {"zero": 2, "flash": False},
    ),
    (
        "--nodes 4 --tp 8 --pp 2 --vpp 2 --model llama3-70b --sequence 4096 --layers 40",
        {"nodes": 4, "tp": 8, "pp": 2, "vpp": 2, "model": "llama3-70b"}
        | {"changes": '{"sequence": 4096, "layers": 40}'},
    ),
]


@pytest.mark.parametrize(("options", "arguments"), ASKED)
@pytest.mark.parametrize("command", ENDPOINT_OF)
def test_a_command_s_facts_are_the_endpoint_s(command, options, arguments):
    printed = json.loads(answered(f"{command} {options} --format json").out)
    served = json.loads(ENDPOINTS[ENDPOINT_OF[command]](**{"nodes": 1, **arguments}))
    assert printed["schema"] == f"parallel-{command}"
    assert {name: printed[name] for name in served} == served


def test_every_parameter_of_training_is_an_option():
    known = {
        name for action in options_parser(["--help"])._actions for name in action.option_strings
    }
    assert {f"--{name.replace('_', '-')}" for name in OPTIONS} <= known


@pytest.mark.parametrize("preset", ["llama3-405b-1", "deepseek-v3", "bloom-176b"])
def test_a_published_layout_trains_as_on_the_page(preset):
    state = from_query(f"preset={preset}")
    layout = resolve(state)
    step = trained_of(layout, state).estimate(layout)
    facts = json.loads(answered(f"estimate --preset {preset} --format json").out)
    assert facts["world_size"] == layout.world_size
    assert (facts["step_seconds"], facts["needed_bytes"]) == (step.seconds, step.fit.needed)


def test_a_launch_script_trains_as_it_says():
    answer = ask("memory --args - --format json", SCRIPT)
    training = json.loads(answer.out)["training"]
    assert (training["global_batch"], training["recompute"], training["zero"]) == (256, "full", 1)
    more = ask("memory --args - --format json --recompute none --pp 4", SCRIPT)
    facts = json.loads(more.out)
    assert (facts["training"]["recompute"], len(facts["stages"])) == ("none", 4)


def test_text_says_the_answer_before_its_table():
    lines = answered("memory --preset llama3-405b-1").lines
    assert lines[0] == "llama3-405b, global batch 2,048, micro-batch 1"
    assert "GiB" in lines[1]
    assert lines[2] == (
        "measured: 11.6 to 12.56 s a step, MFU 41.6% to 45.0%, its source says MFU 43.0%, "
        "counted its way here 41.6% to 46.8% (arXiv:2407.21783 Table 4)"
    )
    assert lines[3].split()[0] == "stage"
    assert len(lines) == 4 + PRESETS["llama3-405b-1"].pp


REFUSED = {
    "memory --model llama9": "'llama9' is not a choice of model",
    "memory --zero 5": "try --zero 1",
    "memory --flash maybe": "try --flash on",
    "memory --changes [1]": "'[1]' is not a JSON object",
    "estimate --tp 3": "try --tp 2 or --tp 4",
    "traffic --cluster x": "not a choice of cluster",
    "search dp": "search takes options only",
    "layout --model llama3-8b": "--model says nothing to layout here",
}


@pytest.mark.parametrize("command", REFUSED)
def test_what_cannot_be_trained_is_one_line_with_options_that_work(command):
    answer = ask(command)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"{PROGRAM}: ")
    assert REFUSED[command] in answer.err
    if "; try --" in answer.err:
        option, value = answer.err.split("; try ")[1].split()[:2]
        words = command.split()
        at = words.index(option)
        fixed = " ".join([*words[: at + 1], value, *words[at + 2 :]])
        assert ask(fixed).status == 0


def test_traffic_has_a_column_of_measured_seconds_beside_those_at_link_speed():
    words = "traffic --tp 8 --nodes 4 --pp 2 --model llama3-8b"
    facts = json.loads(answered(f"{words} --format json").out)
    columns, *rows = csv.reader(answered(f"{words} --format csv").out.splitlines())
    at = columns.index("reached_seconds")
    shown = [row[at] for row in rows]
    for text, fact in zip(shown, facts["rows"], strict=True):
        if fact["operation"] == "send_recv":
            assert text == "-"
        elif fact["reached_seconds"] is None:
            assert text == "not measured"
        else:
            assert float(text) == round(fact["reached_seconds"], 6)
    assert {"-", "not measured"} < {*shown}


# -- sizes and names -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("--gpus 16 --tp 2", "--nodes 2 --tp 2"),
        ("--gpus 4", "--gpus-per-node 4"),
        ("--gpus 8 --nodes 2", "--nodes 2 --gpus-per-node 4"),
        ("--dp 4 --tp 2 --pp 2", "--nodes 2 --tp 2 --pp 2"),
        ("--dp 4 --nodes 2 --tp 4", "--nodes 2 --tp 4"),
        ("--gpus 32 --dp 8 --tp 4", "--nodes 4 --tp 4"),
        ("DP TP --nodes 2 --tp 2", "dp tp --nodes 2 --tp 2"),
        ("--framework Torchtitan DP_Shard_CP --tp 2", "--framework torchtitan dp_shard_cp --tp 2"),
        ("layout --preset DeepSeek-V3", "layout --preset deepseek-v3"),
        (
            "--tensor-model-parallel-size 2 --nnodes=2 --nproc_per_node 4",
            "--tp 2 --gpus 8 --nodes 2",
        ),
        ("--world-size 16 --pipeline-model-parallel-size 2", "--nodes 2 --pp 2"),
        ("--TP 2", "--tp 2"),
    ],
)
def test_sizes_and_names_may_be_said_in_several_ways(said, plain):
    assert answered(said).out == answered(plain).out


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("--gpus 12", "12 GPUs are no full nodes of 8; try --gpus 8 or --gpus 16 or "),
        ("--gpus 18 --nodes 4", "4 nodes of 8 have 32 GPUs, not 18; try --gpus 32"),
        ("--nodes 2 --dp 4", "dp 4 is not what remains: 16 / 1 = 16; try --dp 16 or --tp 4"),
        ("--dp x", "dp must be a whole number"),
        ("--gpus 0", "gpus must be a whole number"),
        ("--tensor-parallell 2", "unrecognized arguments: --tensor-parallell"),
        ("--frame-work llama3", "did you mean --framework?"),
    ],
)
def test_a_count_that_cannot_be_is_answered_with_those_that_can(command, says):
    answer = ask(command)
    assert (answer.status, answer.out) == (2, "")
    assert says in answer.err


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("--use-distributed-optimizer --bf16", "--zero 1 --precision bf16-fp32"),
        ("--data-parallel-sharding-strategy optim_grads_params", "--zero 3"),
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1",
         "--recompute full"),
        ("--recompute-granularity=selective --recompute-modules=moe_act",
         "--recompute moe_act"),
        ("--fp8-format hybrid --fp8-recipe mxfp8", "--products mxfp8"),
        ("--sequence-parallel --tp 2", "--sequence-parallel on --tp 2"),
        ("--num-virtual-stages-per-pipeline-rank 2 --pp 2", "--vpp 2 --pp 2"),
        ("--moe-enable-deepep --ep 2", "--dispatcher deepep --ep 2"),
        ("--attention-backend unfused", "--flash off"),
        ("--zero 2 --use-distributed-optimizer", "--zero 2"),  # ours stand over it
    ],
)  # fmt: skip
def test_megatron_s_options_of_training_are_taken_as_ours(said, plain):
    assert answered(f"memory {said}").out == answered(f"memory {plain}").out


@pytest.mark.parametrize(
    ("command", "meant"),
    [
        ("layout --tensor-parallel-size 4", "--tp"),
        ("layout --pipeline-parallel-size 4", "--pp"),
        ("layout --data-parallel-size 4", "--dp"),
        ("memory --num-layers-per-virtual-pipeline-stage 4 --pp 2 --bf16", "--vpp"),
        ("memory --recompute-method uniform", "--recompute"),
        ("memory --hidden-size 4096", "--model or --changes"),
        ("memory --bf16 --swiglu", "--model or --changes"),
    ],
)
def test_what_cannot_be_taken_alone_is_answered_with_the_right_option(command, meant):
    answer = ask(command)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.endswith(f"; did you mean {meant}?\n")


def test_words_that_are_no_options_stay_as_they_are():
    words = ["share", "3,11", "--tp", "2", "-"]
    assert [*known_options(words, ["--tp"])] == words


def test_names_of_a_layout_may_be_in_any_case_for_programs():
    upper = ENDPOINTS["process_groups"](names="DP Tp", nodes=2, tp=2, framework="Megatron")
    assert upper == ENDPOINTS["process_groups"](names="dp tp", nodes=2, tp=2)


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("Memory --model LLaMA3-70B --gpus 64", "memory --model llama3-70b --gpus 64"),
        ("traffic --cluster DGX-A100 --tp 8 --cp-algorithm P2P",
         "traffic --cluster dgx-a100 --tp 8 --cp-algorithm p2p"),
        ("estimate --schedule Interleaved --pp 2 --vpp 2 --recompute Full --precision BF16-FP32",
         "estimate --schedule interleaved --pp 2 --vpp 2 --recompute full --precision bf16-fp32"),
        ("emit TorchTitan --tp 2", "emit torchtitan --tp 2"),
    ],
)  # fmt: skip
def test_models_clusters_and_ways_to_train_are_named_in_any_case(said, plain):
    assert answered(said).out == answered(plain).out


def test_a_model_and_a_cluster_may_be_in_any_case_for_programs():
    ask_of = ENDPOINTS["memory_per_rank"]
    names = {"model": "llama3-8b", "cluster": "dgx-a100", "recompute": "full"}
    names |= {"memory_schedule": "interleaved", "vpp": 2, "pp": 2}
    upper = {
        name: value.upper() if isinstance(value, str) else value for name, value in names.items()
    }
    assert ask_of(**upper) == ask_of(**names)


def test_the_guide_has_examples_of_these_commands(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # one of them writes a picture
    guide = help_text().splitlines()
    examples = [line.strip() for line in guide if line.startswith(f"  {PROGRAM} ")]
    assert len(examples) > 5
    for example in examples:
        words = example.removeprefix(f"{PROGRAM} ").split("<")[0].split(">")[0]
        if "--args" not in words and " - " not in words:
            assert ask(" ".join(shlex.split(words))).status == 0, example


# -- two layouts ---------------------------------------------------------------------------------

GPT = "&model=gpt-18.4b&micro_batch=4&global_batch=128"
IN_NODE, ACROSS = f"?tp=8&pp=1{GPT}", f"?tp=16&pp=1{GPT}"


def compared(words: str) -> dict[str, Any]:
    return json.loads(answered(f"compare {words} --format json").out)


def test_two_layouts_are_judged_as_on_the_page():
    facts = compared(f"{IN_NODE} {ACROSS}")
    assert facts["schema"] == "parallel-compare"
    page = comparison_of(Context.of(from_query(f"{ACROSS[1:]}&kept={quote(IN_NODE)}")))
    assert facts["verdict"] == verdict_text(page, "en")
    assert (facts["better"], facts["decided_by"]) == ("first", "time")
    for at, side in zip(("first", "second"), page.sides):
        assert facts[at]["name"] == side.name
        assert facts[at]["step_seconds"] == side.estimate.seconds
        assert facts[at]["across_bytes"] == side.across
    assert {row["kind"]: row["moved_ranks"] for row in facts["groups"]} == moved_by_kind(
        page.first.layout, page.second.layout
    )


def test_the_command_says_what_the_endpoint_says():
    model = {"model": "gpt-18.4b", "micro_batch": 4, "global_batch": 128}
    served = json.loads(ENDPOINTS["compare"](kept=IN_NODE, nodes=2, tp=16, **model))
    facts = compared(f"{IN_NODE} {ACROSS}")
    differ = {name for name in served if served[name] != facts[name]}
    assert differ == set()


def test_a_layout_is_named_in_every_way(tmp_path):
    """The same one by a script, its JSON, a link, and by what differs from the other."""
    script, document = tmp_path / "run.sh", tmp_path / "step.json"
    script.write_text(SCRIPT, encoding="utf-8")
    document.write_text(ask("estimate --args - --format json", SCRIPT).out, encoding="utf-8")
    wanted = compared(f"{script} --tp 4")
    assert wanted["first"]["job"]["tp"] == 2
    assert wanted["second"]["job"]["tp"] == 4
    again = json.loads(ask("compare - --tp 4 --format json", SCRIPT).out)
    assert again == wanted
    for word in (document, "~tp=2"):
        facts = json.loads(ask(f"compare {word} - --tp 4 --format json", SCRIPT).out)
        assert facts["first"]["step_seconds"] == wanted["first"]["step_seconds"]
        assert facts["verdict"] == wanted["verdict"]
    for named in (
        "LLaMA3-405B-1",
        "?preset=llama3-405b-1",
        "https://a.example/?preset=llama3-405b-1",
    ):
        facts = compared(f"{named} --recompute full")
        assert facts["first"]["name"].startswith(PRESETS["llama3-405b-1"].name)
        assert facts["first"]["measured"]["low_seconds"] == 11.6
        assert facts["settings"] == [
            {"name": "recompute", "first": "Nothing", "second": "Whole layers"}
        ]


def test_a_layout_that_is_none_is_refused_with_what_is_near():
    for words, told in (
        ("llama3-405b", "'llama3-405b' is no published layout, link or file; did you mean llama3"),
        ("?v=2&tp=3", "does not divide 16 GPUs"),
        ("?zz=1", "zz"),
        ("llama3-405b-1 --preset bloom-176b", "--preset says nothing to compare here"),
        ("", "compare takes one layout or two"),
        ("a b c", "compare takes one layout or two"),
        ("deepseek-v3 --pp 15", "15"),
    ):
        refused = ask(f"compare {words}")
        assert refused.status == 2
        assert told in refused.err, words
        assert "Traceback" not in refused.err
    for text, told in (
        ("python train.py", "nothing in standard input says"),
        ('{"schema": "parallel-groups", "job": {}}', "job.nodes"),
    ):
        assert told in ask("compare -", text).err
    for kept in ("nothing", "python train.py --micro-batch-size 2", "{}", "", "{" * 5000, "[1]"):
        with pytest.raises(LayoutError) as error:
            ENDPOINTS["compare"](kept=kept, nodes=2)
        assert error.value.control == "kept"
    with pytest.raises(LayoutError, match="kept must be a text"):
        ENDPOINTS["compare"](kept=5)


def test_a_first_layout_that_cannot_be_trained_is_a_fact_and_a_second_one_is_refused():
    many, few = "?nodes=16&tp=2&pp=64&vpp=2&layers=80", "?nodes=16&tp=8&pp=4&layers=80"
    facts = compared(f"{many} {few}")
    assert facts["first"]["refused"]
    assert (facts["better"], facts["decided_by"]) == ("second", "refused")
    refused = ask(f"compare {few} {many}")
    assert (refused.status, refused.out) == (2, "")


def test_the_rows_are_the_costs_and_say_what_they_count():
    printed = answered(f"compare {IN_NODE} {ACROSS} --format csv").out
    assert printed.isascii()
    head, *rows = list(csv.reader(printed.splitlines()))
    assert head == ["cost", "first", "second", "why"]
    numbers = {row[0]: (float(row[1]), float(row[2])) for row in rows}
    facts = compared(f"{IN_NODE} {ACROSS}")
    steps = (facts["first"]["step_seconds"], facts["second"]["step_seconds"])
    assert numbers["step_seconds"] == pytest.approx(steps)
    parts = [row for row in numbers if row.endswith("seconds") and row != "step_seconds"]
    for at in (0, 1):
        assert sum(numbers[part][at] for part in parts) == pytest.approx(steps[at], abs=1e-5)
    assert {row[0]: row[3] for row in rows}["step_seconds"].startswith("worse, and decides, ")
    text = answered(f"compare {IN_NODE} {ACROSS}").out
    assert facts["verdict"] in text
    assert "groups that differ: tp dp" in text
