"""Launch commands and configurations: read into a layout, written from one, and hostile text."""

from __future__ import annotations

import ast
import json
import os
import string
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groups.errors import LayoutError
from groups.job import Job
from groups.launch_args import MAX_TEXT, SENTENCES, TARGETS, Parsed, emit, parse
from groups.launch_configs import form_of
from groups.launch_expand import Memory
from groups.launch_flags import KEYS, MODEL, NO_GROUP, NOT_DRAWN, OPTIONS, REMOVED, Row
from groups.launch_shell import Shell
from groups.launch_words import Source, calculate
from groups.presets import PRESETS

ROOT = Path(__file__).parent.parent
EXAMPLES = json.loads((Path(__file__).parent / "data" / "launch_commands.json").read_text("utf-8"))
EXAMPLES = {one["id"]: one for one in EXAMPLES["examples"]}
LISTS = ("understood", "ignored", "unresolved", "problems")


@pytest.fixture(autouse=True)
def nothing_is_executed(monkeypatch):
    def refuse(*args, **kwargs):
        raise AssertionError("something was executed")

    for owner, names in (
        (os, ("system", "popen", "execv", "execve", "fork")),
        (subprocess, ("run", "call", "check_output", "Popen", "check_call")),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, refuse)


def values(text: str) -> dict[str, object]:
    return parse(text).values


def codes(items) -> list[str]:
    return [item.code for item in items]


def only_problem(text: str):
    problems = parse(text).problems
    assert len(problems) == 1, problems
    return problems[0], text[problems[0].start : problems[0].end]


def check_law(parsed: Parsed) -> None:
    """Every place lies in the text, every code has a sentence, all values are of known fields."""
    breaks = [-1, *(at for at, c in enumerate(parsed.text) if c == "\n")]
    for name in LISTS:
        for item in getattr(parsed, name):
            assert 0 <= item.start <= item.end <= len(parsed.text)
            assert item.sentence
            assert 1 <= item.line <= len(breaks)
            assert breaks[item.line - 1] + item.column == item.start
    for note in parsed.missing:
        assert note.sentence
    fields = {*Job.__dataclass_fields__, *MODEL}
    assert set(parsed.values) <= fields
    assert set(parsed.assumed) <= fields
    assert not set(parsed.values) & set(parsed.assumed)
    assert isinstance(parsed.job(), Job)


# -- as they are written out there ---------------------------------------------------------------


@pytest.mark.parametrize("key", EXAMPLES)
def test_a_script_as_published_is_read(key):
    one = EXAMPLES[key]
    parsed = parse(one["text"])
    check_law(parsed)
    assert parsed.values == one["values"]
    assert list(parsed.problems) == []
    assert codes(parsed.unresolved) == one.get("unresolved", [])
    if "missing" in one:
        assert codes(parsed.missing) == one["missing"]


def test_the_whole_answer_for_one_command():
    text = (
        "torchrun --nnodes 2 --nproc-per-node=8 train.py \\\n"
        "  --tensor-model-parallel-size $TP --lr 1e-4 \\\n"
        "  --fancy-new-thing 3 $EXTRA"
    )
    parsed = parse(text)
    shown = {
        name: [(one.code, one.name, text[one.start : one.end]) for one in getattr(parsed, name)]
        for name in LISTS
    }
    assert shown == {
        "understood": [
            ("understood", "--nnodes", "--nnodes 2"),
            ("understood", "--nproc-per-node", "--nproc-per-node=8"),
        ],
        "ignored": [
            ("no-group", "--lr", "--lr 1e-4"),
            ("unknown", "--fancy-new-thing", "--fancy-new-thing 3"),
        ],
        "unresolved": [
            ("size-unresolved", "--tensor-model-parallel-size", "$TP"),
            ("may-hold-options", "$EXTRA", "$EXTRA"),
        ],
        "problems": [],
    }
    assert parsed.unresolved[0].sets == "tp"
    assert (parsed.framework.name, parsed.framework.because) == (
        "megatron",
        "--tensor-model-parallel-size",
    )
    assert parsed.assumed == {"tp": 1, "pp": 1, "cp": 1, "ep": 1}


# -- every option and key ------------------------------------------------------------------------

SAMPLES = {
    **dict.fromkeys(("size", "count", "nodes", "devices", "degree"), ("4", 4)),
    "sizes": ("2 4", (2, 4)),
    "layout": ("'Ett|ttL'", "Ett|ttL"),
    "gres": ("gpu:4", 4),
}
OTHER_FIELDS = {"tasks_per_node": "gpus_per_node", "layout": "layers"}


@pytest.mark.parametrize("name", [n for n, row in OPTIONS.items() if row.kind in SAMPLES])
@pytest.mark.parametrize("equals", [" ", "="])
def test_an_option_with_its_value(name, equals):
    row = OPTIONS[name]
    written, value = SAMPLES[row.kind]
    if row.kind == "sizes" and equals == "=":
        pytest.skip("several values stand side by side")
    found = parse(f"x.py --{name}{equals}{written}")
    name_of = OTHER_FIELDS.get(row.field, row.field)
    if row.field in Job.__dataclass_fields__ or row.field in MODEL or row.field in OTHER_FIELDS:
        assert found.values[name_of] == value
    assert [item.sets for item in found.understood] == [row.sets] or row.field == "chunk"


@pytest.mark.parametrize("name", KEYS)
def test_a_key_in_each_of_its_sections(name):
    key = KEYS[name]
    for section in key.sections:
        path = f"{section}.{name}" if section else f"x.{name}"
        if not section:
            continue
        text = {"switch": "true", "sizes": "[2,4]", "layout": "Ett|ttL"}.get(key.row.kind, "4")
        assert parse(f"train.py {path}={text}").understood[0].sets == key.row.sets
        assert parse(f"train.py '++{path}={text}'").understood[0].sets == key.row.sets
        assert parse(f"{section}:\n  {name}: {text}").understood[0].sets == key.row.sets


def test_the_tables_hold_together():
    known = {*OPTIONS, *NOT_DRAWN}
    assert not NO_GROUP & known - {"use-distributed-optimizer"}
    assert not set(REMOVED) & set(OPTIONS)
    assert set(REMOVED.values()) <= set(OPTIONS) | NO_GROUP
    kinds = {"switch", "text", "partition", *SAMPLES}
    for row in (*OPTIONS.values(), *(key.row for key in KEYS.values())):
        assert isinstance(row, Row)
        assert row.kind in kinds


SWITCHES = {
    "--use-tp-pp-dp-mapping": {"framework": "megatron-pp-dp"},
    "--hybrid-context-parallel": {"hybrid": True, "framework": "megatron"},
    "--standalone": {"nodes": 1},
    "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split": {
        "framework": "megatron",
        "account": True,
    },
}


@pytest.mark.parametrize("text", SWITCHES)
def test_a_switch_takes_no_value(text):
    assert values(f"train.py {text} --num-layers 4") == {**SWITCHES[text], "layers": 4}


def test_one_of_embedding_and_loss_alone_is_not_drawn():
    parsed = parse("--account-for-loss-in-pipeline-split")
    assert "account" not in parsed.values
    assert codes(parsed.ignored) == ["only-one-accounted"]


def test_chunks_from_the_layers_of_one():
    text = (
        "--num-layers 16 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage"
    )
    assert values(f"{text} 2")["vpp"] == 2
    assert only_problem(f"{text} 3")[0].code == "chunks-do-not-fit"
    assert only_problem("--num-layers-per-virtual-pipeline-stage 2")[0].code == "needs-layers"
    text += " 2 --num-virtual-stages-per-pipeline-rank 4"
    assert only_problem(text)[0].code == "chunks-differ"


def test_accounted_embedding_and_loss_count_as_layers_of_a_chunk():
    accounts = "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split"
    text = f"--num-layers 14 --pipeline-model-parallel-size 4 {accounts} "
    assert values(f"{text} --num-layers-per-virtual-pipeline-stage 2")["vpp"] == 2


def test_a_layout_is_the_layers():
    text = "--pipeline-model-parallel-layout 'Et*2|(tt|)*2,L' --num-layers 6"
    assert values(text)["layers"] == "Et*2|(tt|)*2,L"
    problem, shown = only_problem(text.replace("6", "7"))
    assert (problem.code, shown) == ("layout-has", "--num-layers 7")
    problem, shown = only_problem("--pipeline-model-parallel-layout 'Et|xL'")
    assert (problem.code, shown, problem.error.control) == ("bad-layout", "Et|xL", "layout")


def test_a_layout_that_is_not_quoted_is_cut_by_the_shell():
    problem, shown = only_problem("x.py --pipeline-model-parallel-layout Et|tL")
    assert (problem.code, shown) == ("layout-cut", "--pipeline-model-parallel-layout Et")
    assert "layers" not in values("x.py --pipeline-model-parallel-layout Et|tL")


def test_removed_options_name_what_to_use():
    problem, shown = only_problem("--model-parallel-size 8")
    assert (problem.code, shown) == ("removed", "--model-parallel-size 8")
    assert problem.facts == {"use": "--tensor-model-parallel-size"}
    problem, _ = only_problem("--tensor-model-parallel-size 8 --batch-size 4")
    assert problem.facts == {"use": "--micro-batch-size"}
    assert codes(parse("train.py --batch-size 4").ignored) == ["unknown"]


def test_what_changes_groups_but_is_not_drawn_is_told_apart():
    text = "--tensor-parallel-num-weight-shards 4 --sequence-parallel --no-such-option"
    assert codes(parse(text).ignored) == ["not-drawn", "no-group", "unknown"]


# -- the shell -----------------------------------------------------------------------------------

TP = "--tensor-model-parallel-size"
FORMS = [
    f"{TP} 8",
    f"{TP}=8",
    f"{TP} '8'",
    f'{TP} "8"',
    f"'{TP}' 8",
    f"{TP} \\\n 8",
    f"{TP} \\\r\n 8",
    f"{TP} 8 # of 16",
    f"# {TP} 4\n{TP} 8",
    f"TP=8\nx.py {TP} $TP",
    f"TP=8; x.py {TP} ${{TP}}",
    f'export TP=8\nx.py {TP} "$TP"',
    f"TP=8\nA=$TP\nx.py {TP}=$A",
    f"x.py {TP} ${{TP:-8}}",
    f"x.py {TP} ${{TP:-${{B:-8}}}}",
    f'x.py {TP} "${{TP-8}}"',
    f": ${{TP:=8}}\nx.py {TP} $TP",
    f"A=2\nB=4\nx.py {TP} $((A*B))",
    f"A=2\nx.py {TP} $(( ($A + 2) * 2 ))",
    f"A=16\nx.py {TP} $((${{A}}/2))",
    f"ARGS=({TP} 8)\nx.py ${{ARGS[@]}}",
    f'ARGS=(\n  --a 1 # one\n  {TP} 8\n)\nx.py "${{ARGS[@]}}"',
    f"ARGS=(--a 1)\nARGS+=({TP} 8)\nx.py ${{ARGS[*]}}",
    f"ARGS='{TP} 8'\nx.py $ARGS",
    f'ARGS="\n {TP} 8 \\\n "\nx.py $ARGS',
    f"ARGS='{TP} 8'\nARGS=\"$ARGS --b 2\"\nx.py $ARGS",
    f"ARGS='--b 2'\nARGS+=' {TP} 8'\nx.py $ARGS",
    f"bash -c 'torchrun x.py {TP} 8'",
    f'CMD="x.py {TP} 8"\nsrun bash -lc "$CMD"',
    f'CMD="x.py {TP} 8"\neval $CMD',
    f"sbatch <<EOF\nsrun x.py {TP} 8\nEOF\n",
    f"x.py 2>&1 {TP} 8 > log.txt",
    f"x.py {TP} 8 | tee --append log",
    f"if true; then\n x.py {TP} 8\nfi",
    f"ARGS=({TP} 8)",
    f"ARGS='{TP} 8 --b 2'",
]


@pytest.mark.parametrize("text", FORMS)
def test_every_way_to_write_a_size(text):
    parsed = parse(text)
    check_law(parsed)
    assert parsed.values == {"tp": 8, "framework": "megatron"}
    assert [problem.code for problem in parsed.problems] == []
    item = parsed.understood[-1]
    assert text[item.start : item.end].strip("'\"").startswith(TP)


OPEN = [
    ("x.py {} $TP", "$TP", "size-unresolved"),
    ("x.py {} ${{TP}}", "${TP}", "size-unresolved"),
    ("x.py {} $1", "$1", "size-unresolved"),
    ("x.py {} $(nproc)", "$(nproc)", "size-unresolved"),
    ("x.py {} `nproc`", "`nproc`", "size-unresolved"),
    ("x.py {} $((N*2))", "$((N*2))", "size-unresolved"),
    ("x.py {} $((8/0))", "$((8/0))", "size-unresolved"),
    ("x.py {} <TP>", "<TP>", "size-unresolved"),
    ("TP=$N\nx.py {} $TP", "$N", "size-unresolved"),
    ("if [ -n $A ]; then TP=2; else TP=8; fi\nx.py {} $TP", "8", "decided-by-condition"),
    ("[ -z $A ] && TP=8\nx.py {} $TP", "8", "decided-by-condition"),
    ("[ -z $A ] && N=2 && TP=8\nx.py {} $TP", "8", "decided-by-condition"),
    ("for TP in 1 2; do x.py {} $TP; done", "TP", "decided-by-loop"),
    ("A=(x)\nif true; then A+=({} 8); fi\nx.py ${{A[@]}}", "8", "decided-by-condition"),
]


@pytest.mark.parametrize(("text", "shown", "code"), OPEN)
def test_what_the_text_does_not_work_out_is_never_guessed(text, shown, code):
    text = text.format(TP)
    parsed = parse(text)
    check_law(parsed)
    assert "tp" not in parsed.values
    (item,) = parsed.unresolved
    assert (item.code, text[item.start : item.end], item.sets) == (code, shown, "tp")


def test_an_option_that_a_condition_adds_leaves_the_rest():
    text = f'A="{TP} 8"\nif [ $B ]; then A="$A --num-experts 4"; fi\nx.py $A'
    parsed = parse(text)
    assert parsed.values == {"tp": 8, "framework": "megatron"}
    assert codes(parsed.unresolved) == ["decided-by-condition"]


def test_a_default_that_was_taken_is_said():
    (note,) = [one for one in parse("x.py --nnodes ${N:-4}").missing if one.code != "default"][:1]
    assert (note.code, note.facts) == ("variable-default", {"name": "N", "value": "4"})


def test_options_that_no_command_uses_are_not_counted():
    text = f"OLD=({TP} 4)\ntorchrun --nnodes 2 x.py --num-layers 8"
    parsed = parse(text)
    assert parsed.values == {"nodes": 2, "layers": 8}
    assert [(one.code, one.name) for one in parsed.ignored] == [("unused", "OLD")]


def test_what_is_only_printed_is_not_counted():
    assert values(f"echo {TP} 8\nprintf '%s' {TP} 4") == {}


BROKEN = [
    ("x.py 'abc", "'", "unclosed"),
    ('x.py "abc', '"', "unclosed"),
    ("A=(--x 1\n", "(", "unclosed"),
    ("cat <<EOF\nabc\n", "\n", "unclosed"),
    ("x.py \\  \n --a", "\\  ", "space-after-backslash"),
]


@pytest.mark.parametrize(("text", "shown", "code"), BROKEN)
def test_what_no_shell_reads_as_meant_is_shown_in_its_place(text, shown, code):
    problem, found = only_problem(text)
    assert (problem.code, found) == (code, shown)


def test_variables_that_would_fill_the_memory_are_stopped():
    text = "A=xxxxxxxxxx\n" + "".join(f"A=$A$A$A$A # {i}\n" for i in range(40)) + f"x.py {TP} $A"
    parsed = parse(text)
    assert "expands-too-much" in codes(parsed.problems)
    check_law(parsed)


def test_arithmetic_is_the_shells():
    assert [
        calculate(text.split()) for text in ("7 / 2", "7 % 4", "2 + 3 * 4", "( 1 - 3 ) / 2")
    ] == [
        *(3, 3, 14),
        -1,
    ]
    assert [calculate(text.split()) for text in ("1 %", "( 1", "1 )", "", "* 2", "9 % 0")] == [
        None
    ] * 6


def test_words_know_where_they_stand():
    text = "A='x y'\nrun \"$A\"z $A"
    shell = Shell()
    shell.read(Source.of(text))
    (words,) = shell.commands
    assert [(word.text, text[slice(*word.place)]) for word in words] == [
        ("run", "run"),
        ("x yz", "x y"),
        ("x", "x"),
        ("y", "y"),
    ]
    assert isinstance(shell, Memory)


# -- bad values and contradictions ---------------------------------------------------------------

BAD = [
    (f"{TP} eight", "eight", "bad-value"),
    (f"{TP} 2.5", "2.5", "bad-value"),
    (f"{TP}=", "", "bad-value"),
    (f"{TP} 0", "0", "value-out-of-range"),
    (f"{TP} -2", "-2", "value-out-of-range"),
    (f"{TP} 9999999", "9999999", "value-out-of-range"),
    (f"{TP} " + "9" * 99, "9" * 99, "bad-value"),
    (f"{TP} 8\uff18", "8\uff18", "bad-value"),
    (f"TP=abc\nx.py {TP} $TP", "abc", "bad-value"),
    (f"A=({TP} x8)\nx.py ${{A[@]}}", "x8", "bad-value"),
    (f"{TP}", TP, "no-value"),
    (f"{TP} --lr 3", TP, "no-value"),
    ("--hierarchical-context-parallel-sizes 2 0", "0", "value-out-of-range"),
    ("x.py --nnodes two", "two", "bad-value"),
    ("srun --gres=gpu:many x", "gpu:many", "bad-value"),
    ('{"tensor_parallel": {"autotp_size": "big"}}', "big", "bad-value"),
    ("[parallelism]\ntensor_parallel_degree = 2.5", "2.5", "bad-value"),
    ("model:\n  tensor_model_parallel_size: big # x", "big", "bad-value"),
    ("x.py model.tensor_model_parallel_size=big", "big", "bad-value"),
    ("x.py dist.use_tp_pp_dp_mapping=maybe", "maybe", "bad-switch"),
    ('{"a": 1,}', "}", "bad-json"),
    ('{"a": [1}', "}", "bad-json"),
    ('{"a": 1} x', "x", "bad-json"),
    ('{"a" 1}', "1", "bad-json"),
    ("model:\n\tx: 1", "\t", "yaml-tab"),
]


@pytest.mark.parametrize(("text", "shown", "code"), BAD)
def test_a_bad_value_is_shown_where_it_stands(text, shown, code):
    problem, found = only_problem(text)
    assert (problem.code, found) == (code, shown)
    check_law(parse(text))


def test_a_place_has_a_line_and_a_column():
    problem, _ = only_problem(f"#!/bin/bash\ntorchrun x.py \\\n  {TP} eight")
    assert (problem.line, problem.column) == (3, 3 + len(TP) + 1)


def test_of_two_values_the_last_counts():
    text = f"{TP} 4 --num-layers 8 {TP} 8"
    problem, shown = only_problem(text)
    assert (problem.code, shown) == ("given-twice", f"{TP} 4")
    assert problem.facts == {"kept": "8", "by": TP}
    assert values(text)["tp"] == 8
    assert not parse(f"{TP} 8 {TP} 8").problems


def test_what_starts_the_processes_counts_before_what_allots_the_machines():
    text = "#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\ntorchrun --nnodes 2 --nproc-per-node 8 x.py"
    problem, shown = only_problem(text)
    assert (problem.code, shown, problem.facts["by"]) == ("contradiction", "--nodes=4", "--nnodes")
    assert values(text) == {"nodes": 2, "gpus_per_node": 8}


def test_two_frameworks_in_one_text():
    text = f"x.py {TP} 8 --parallelism.tensor_parallel_degree=8"
    problem, _ = only_problem(text)
    assert (problem.code, problem.facts) == (
        "two-frameworks",
        {"other": "torchtitan", "kept": "megatron"},
    )


# -- machines ------------------------------------------------------------------------------------

MACHINES = {
    "torchrun --nnodes=4 --nproc-per-node=8 x.py": (4, 8),
    "torchrun --nnodes 4:4 --nproc_per_node 8 x.py": (4, 8),
    "torchrun --standalone --nproc-per-node 8 x.py": (1, 8),
    "python -m torch.distributed.launch --nproc_per_node=8 --nnodes=2 x.py": (2, 8),
    "python3 -u -m torch.distributed.run --nproc_per_node 8 --nnodes 2 x.py": (2, 8),
    "srun -N 4 --gpus-per-node=8 python x.py": (4, 8),
    "srun -N4 --gpus-per-node=h100:8 python x.py": (4, 8),
    "srun --nodes=4 --ntasks-per-node=8 python x.py": (4, 8),
    "srun -N 4 --gres=gpu:a100:8,nvme:1 python x.py": (4, 8),
    "srun --gpus=32 -N 4 python x.py": (4, 8),
    "srun -G 32 -N 4 docker run --gpus all x": (4, 8),
    "srun -n 32 --ntasks-per-node=8 python x.py": (4, 8),
    "#SBATCH -N 4\n#SBATCH --gpus-per-node 8\nsrun python x.py": (4, 8),
    "#SBATCH --nodes=4   # nodes\n#SBATCH --ntasks-per-node=1\n#SBATCH --gres=gpu:8\n": (4, 8),
    "#SBATCH --nodes=4\ntorchrun --nnodes $SLURM_JOB_NUM_NODES --nproc-per-node 8 x.py": (4, 8),
    "mpirun -np 32 -npernode 8 python x.py": (4, 8),
    "mpirun -np 32 -N 8 python x.py": (4, 8),
    "mpiexec -n 32 -ppn 8 python x.py": (4, 8),
    "deepspeed --num_nodes 4 --num_gpus 8 x.py": (4, 8),
    "deepspeed --num_nodes=4 --num_gpus=8 x.py": (4, 8),
    "WORLD_SIZE=32 GPUS_PER_NODE=8 python x.py": (4, 8),
    "WORLD_SIZE=4\ntorchrun --nnodes $WORLD_SIZE --nproc-per-node 8 x.py": (4, 8),
    "srun -N 4 -n 4 --gres=gpu:8 ./run.sh": (4, 8),
    "export NNODES=4 NPROC_PER_NODE=8\n./run.sh": (4, 8),
    "NGPU=8 NNODES=4 ./run_train.sh": (4, 8),
    "x.py trainer.num_nodes=4 trainer.devices=8": (4, 8),
}


@pytest.mark.parametrize("text", MACHINES)
def test_nodes_and_gpus_per_node(text):
    parsed = parse(text)
    check_law(parsed)
    assert (parsed.values["nodes"], parsed.values["gpus_per_node"]) == MACHINES[text]
    assert not parsed.problems


def test_a_task_a_node_is_a_launcher_a_node():
    for text in ("srun -N 4 -n 4 ./run.sh", "srun -N 4 --ntasks-per-node=1 ./run.sh"):
        assert values(text) == {"nodes": 4}


@pytest.mark.parametrize(
    ("text", "nodes", "gpus"),
    [("WORLD_SIZE=32 x.py", 4, 8), ("mpirun -np 64 x", 8, 8), ("mpirun -np 4 x", 1, 4)],
)
def test_a_world_alone_is_nodes_of_eight_and_says_so(text, nodes, gpus):
    parsed = parse(text)
    assert parsed.assumed["nodes"] == nodes
    assert parsed.assumed["gpus_per_node"] == gpus
    assert "nodes-of-world" in codes(parsed.missing)


def test_a_world_that_does_not_fit_is_a_problem():
    assert only_problem("mpirun -np 12 x.py")[0].code == "world-does-not-divide"
    text = "WORLD_SIZE=12\ntorchrun --nnodes 2 --nproc-per-node 8 --world-size 12 x.py"
    problem, shown = only_problem(text)
    assert (problem.code, shown, problem.facts) == (
        "world-differs",
        "--world-size 12",
        {"count": 16},
    )


def test_degrees_that_fill_the_world_are_one():
    text = "x.py --parallelism.data_parallel_shard_degree=16 --parallelism.tensor_parallel_degree=2"
    parsed = parse(text)
    assert parsed.assumed["nodes"] * parsed.assumed["gpus_per_node"] == 32
    assert (
        only_problem(f"torchrun --nnodes 1 --nproc-per-node 8 {text}")[0].code == "degrees-differ"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("torchrun --nnodes 1:4 x.py", "range-of-nodes"),
        ("#SBATCH --nodes=2-4", "range-of-nodes"),
        ("torchrun --nproc-per-node gpu x.py", "left-to-machine"),
        ('{"train_micro_batch_size_per_gpu": "auto"}', "left-to-trainer"),
    ],
)
def test_what_is_decided_when_the_job_starts(text, code):
    assert codes(parse(text).unresolved) == [code]


def test_the_fewest_nodes_are_assumed_if_nothing_is_said():
    parsed = parse(f"{TP} 8 --pipeline-model-parallel-size 16")
    assert parsed.assumed == {"cp": 1, "ep": 1, "gpus_per_node": 8, "nodes": 16}
    assert parsed.job().made().world_size == 128
    assert codes(parsed.missing) == ["default"] * 3 + ["fewest-nodes"]


def test_an_empty_text_says_nothing():
    for text in ("", " \n\t", "# a comment", "hello world"):
        parsed = parse(text)
        assert (parsed.values, parsed.problems, parsed.framework) == ({}, (), None)
        check_law(parsed)


# -- files ---------------------------------------------------------------------------------------


def test_a_file_is_told_by_its_form():
    assert form_of('\n {"a": 1}') == "json"
    assert form_of("# x\n\n[parallelism]\na = 1") == "toml"
    assert form_of("---\n# x\nmodel:\n  a: 1") == "yaml"
    assert form_of("{ torchrun x.py; }") == "shell"
    assert form_of("model.tensor_model_parallel_size=8") == "shell"
    assert form_of("if [ -n x ]; then\n") == "shell"


def test_yaml_lists_and_what_is_not_read():
    text = """
model: # of Bridge
  hierarchical_context_parallel_sizes: [2, 4]
  context_parallel_size: "8"
  virtual_pipeline_model_parallel_size: null
  optim: {lr: 1}
  note: |
    tensor_model_parallel_size: 3
  list:
  - a: 1
    tensor_model_parallel_size: 5
dist:
  use_tp_pp_dp_mapping: True
"""
    parsed = parse(text)
    assert parsed.values == {"cp": 8, "framework": "megatron-pp-dp", "levels": (2, 4)}
    assert codes(parsed.ignored) == ["not-given", "not-read", "not-read", "not-read"]
    assert parsed.framework.name == "nemo"


def test_a_yaml_of_megatrons_options():
    text = "MODEL_ARGS:\n  --tensor-model-parallel-size: 4\n  --num-layers: 12\n"
    assert values(text) == {"tp": 4, "framework": "megatron", "layers": 12}


def test_toml_of_several_lines_is_not_read():
    text = '[parallelism]\nfqns = [\n  "a",\n]\ntensor_parallel_degree = 1_0\n'
    text += "[[x]]\ncontext_parallel_degree = 2"
    parsed = parse(text)
    assert parsed.values == {"tp": 10, "framework": "torchtitan"}
    assert codes(parsed.ignored) == ["not-read"] * 3


def test_deepspeed_with_data_before_experts():
    text = '{"train_batch_size": 8, "use_data_before_expert_parallelism": true}'
    assert values(text) == {"framework": "deepspeed-data-first", "global_batch": 8}
    assert values('{"tensor_parallel": {"autotp_size": 0}}') == {"tp": 1, "framework": "deepspeed"}


def test_a_key_in_another_section_is_another_key():
    parsed = parse("x.py vision.tensor_model_parallel_size=8")
    assert parsed.values == {}
    assert codes(parsed.ignored) == ["unknown"]


def test_rows_in_an_override():
    text = "x.py 'model.hierarchical_context_parallel_sizes=[2, x]'"
    problem, shown = only_problem(text)
    assert (problem.code, shown) == ("bad-value", "x")


# -- written and read back -----------------------------------------------------------------------

ALL_FIELDS = (
    "nodes",
    "gpus_per_node",
    "tp",
    "pp",
    "cp",
    "ep",
    "etp",
    "instances",
    "levels",
    "hybrid",
)
SAYS = {
    "megatron": (*ALL_FIELDS, *MODEL),
    "nemo": (*ALL_FIELDS, *MODEL),
    "megatron-deepspeed": (
        *("nodes", "gpus_per_node", "tp", "pp", "ep"),
        *("layers", "experts", "micro_batch", "global_batch", "seq", "account"),
    ),
    "deepspeed": ("nodes", "gpus_per_node", "tp", "micro_batch", "global_batch"),
    "torchtitan": (
        *("nodes", "gpus_per_node", "tp", "pp", "cp", "ep"),
        *("micro_batch", "global_batch", "seq"),
    ),
}
SAYS["torchtitan-toml"] = SAYS["torchtitan"]


def expected(job: Job, model: dict, target: str) -> dict[str, object]:
    """What a text of the target says of a job, without the framework."""
    known = {name: getattr(job, name) for name in ALL_FIELDS}
    silent = {"etp": None, "instances": 1, "levels": None, "hybrid": False}
    known = {name: value for name, value in known.items() if value != silent.get(name, ())}
    if known.get("levels"):
        known["levels"] = tuple(known["levels"])
    if target == "megatron-deepspeed" and job.ep == 1:
        del known["ep"]
    return {name: value for name, value in {**known, **model}.items() if name in SAYS[target]}


def assert_round_trip(job: Job, model: dict, target: str) -> None:
    text = emit(job, model, target)
    parsed = parse(text)
    check_law(parsed)
    assert not parsed.problems
    assert not parsed.unresolved
    found = {name: value for name, value in parsed.values.items() if name != "framework"}
    wanted = expected(job, model, target)
    if job.framework not in ("megatron", "megatron-pp-dp"):
        found.pop("etp", None)  # none means another size there
        wanted.pop("etp", None)
    assert found == wanted
    assert parsed.framework.job in TARGETS[target]
    if job.framework in TARGETS[target]:
        assert parsed.framework.job == job.framework or job.made().mesh == parsed.job().made().mesh
    same = [(axis.name, axis.size) for axis in job.made().mesh.axes if axis.size > 1]
    mesh = parsed.job().made().mesh
    assert [(axis.name, axis.size) for axis in mesh.axes if axis.size > 1] == same


def refused(job: Job, model: dict, target: str) -> LayoutError | None:
    try:
        emit(job, model, target)
    except LayoutError as error:
        return error
    return None


def job_of(key: str) -> tuple[Job, dict]:
    one = PRESETS[key]
    sizes = {name: getattr(one, name) for name in ("tp", "pp", "cp", "ep", "etp", "framework")}
    model = {name: one.model[name] for name in MODEL if name in one.model}
    if one.model.get("account_for_embedding"):
        model["account"] = True
    return Job(nodes=one.nodes, gpus_per_node=one.gpus_per_node, **sizes), model


@pytest.mark.parametrize("key", PRESETS)
@pytest.mark.parametrize("target", TARGETS)
def test_a_preset_is_written_and_read_back(key, target):
    job, model = job_of(key)
    refusal = refused(job, model, target)
    if refusal is None:
        assert_round_trip(job, model, target)
    else:
        assert refusal.code == "framework-cannot-express"
        assert job.framework not in TARGETS[target] or target == "deepspeed"


@pytest.mark.parametrize("key", PRESETS)
def test_megatron_can_say_every_preset_but_one(key):
    job, model = job_of(key)
    if key == "llama3-405b-3":  # tp-pp-dp with cp and without ep is refused by Megatron itself
        with pytest.raises(LayoutError, match="no words for the order tp-cp-pp-dp"):
            emit(job, model)
    else:
        emit(job, model)


POWERS = st.sampled_from((1, 2, 4))


@given(
    **dict.fromkeys(("tp", "pp", "cp", "ep"), POWERS),
    nodes=st.sampled_from((1, 2, 3, 16)),
    etp=st.sampled_from((None, 1, 2)),
    framework=st.sampled_from(("megatron", "megatron-pp-dp", "torchtitan", "deepspeed", "llama3")),
    instances=st.sampled_from((1, 2)),
    hybrid=st.booleans(),
    model=st.fixed_dictionaries(
        {},
        optional={
            "layers": st.integers(1, 500) | st.sampled_from(("Ett|ttL", "E|(t|)*3,L")),
            "experts": st.integers(1, 512),
            "micro_batch": st.integers(1, 64),
            "global_batch": st.integers(1, 10**6),
            "seq": st.integers(1, 10**7),
            "first": st.integers(1, 9),
            "last": st.integers(1, 9),
            "mtp": st.integers(0, 2),
            "account": st.just(True),
        },
    ),
    target=st.sampled_from(sorted(TARGETS)),
)
@settings(max_examples=150, deadline=None)
def test_what_is_written_is_read_back(
    tp, pp, cp, ep, nodes, etp, framework, instances, hybrid, model, target
):
    levels = (2, 2) if cp == 4 and framework.startswith("megatron") else None
    job = Job(nodes, 16, tp, pp, cp, ep, etp, framework, "", instances, levels, hybrid)
    if refused(job, model, target) is None:
        assert_round_trip(job, model, target)


def test_what_a_framework_has_no_words_for_is_named():
    with pytest.raises(LayoutError) as refusal:
        emit(Job(2, framework="own", order="dp-tp-cp-ep-pp", tp=2), framework="megatron")
    assert refusal.value.code == "framework-cannot-express"
    assert refusal.value.facts == {"framework": "Megatron-LM", "what": "the order dp-tp-cp-ep-pp"}
    cases = [
        (Job(2, pp=2), "deepspeed", "pp"),
        (Job(2, cp=2), "megatron-deepspeed", "cp"),
        (Job(2, tp=2, ep=2), "torchtitan", "etp"),
        (Job(2, instances=2), "torchtitan", "instances"),
        (Job(2, cp=4, levels=(2, 2)), "torchtitan", "levels"),
        (Job(2, hybrid=True), "deepspeed", "hybrid"),
        (Job(2, tp=2, ep=2, etp=1), "megatron-deepspeed", "etp"),
    ]
    for job, target, control in cases:
        with pytest.raises(LayoutError) as refusal:
            emit(job, framework=target)
        assert (refusal.value.code, refusal.value.control) == ("framework-cannot-express", control)


def test_a_layout_by_hand_is_not_dropped():
    with pytest.raises(LayoutError, match="no words for the layout"):
        emit(Job(2, pp=2), {"layers": "Ett|ttL"}, "megatron-deepspeed")


def test_how_deepspeed_cuts_the_layers():
    text = "x.py --deepspeed --pp-partition-method 'type:transformer|embedding'"
    assert values(text) == {"framework": "deepspeed", "account": True}
    assert codes(parse("x.py --pp-partition-method uniform").ignored) == ["not-drawn"]


def test_an_order_of_ones_own_that_megatron_reaches_is_written():
    job = Job(2, framework="own", order="tp-cp-ep-pp-dp", tp=2, pp=2)
    assert "--use-tp-pp-dp-mapping" in emit(job)
    assert "mapping" not in emit(Job(2, framework="own", order="dp-tp-cp-ep-pp"))


def test_a_job_that_cannot_be_is_not_written():
    with pytest.raises(LayoutError, match="does not divide"):
        emit(Job(1, tp=3))
    with pytest.raises(LayoutError, match="not a choice of framework"):
        emit(Job(1), framework="horovod")


def test_what_is_written_is_quoted():
    text = emit(Job(2, pp=2), {"layers": "Ett|(tt|)*2,ttL", "seq": "1; rm -rf /"})
    assert "--pipeline-model-parallel-layout 'Ett|(tt|)*2,ttL'" in text
    assert "--seq-length '1; rm -rf /'" in text


def test_the_files_are_of_the_formats_they_claim():
    text = emit(Job(2, tp=4), {"micro_batch": 2, "global_batch": 64}, "deepspeed")
    body = text.split("<<'EOF'\n")[1].split("\nEOF")[0]
    assert json.loads(body) == {
        "train_batch_size": 64,
        "train_micro_batch_size_per_gpu": 2,
        "tensor_parallel": {"autotp_size": 4},
    }
    text = emit(Job(2, tp=4), {"seq": 8192}, "torchtitan-toml")
    body = text.split("<<'EOF'\n")[1].split("\nEOF")[0]
    tomllib = pytest.importorskip("tomllib")
    assert tomllib.loads(body)["parallelism"]["tensor_parallel_degree"] == 4


# -- hostile -------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *(TP, "=", " ", "\n", "\\\n", "\\", "'", '"', "`", "$", "${", "}", "$((", "))", "$(", ")"),
        *("(", "A=(", "A+=(", "A=", "$A", "${A[@]}", "${A:-", "#", "#SBATCH -N ", "<<EOF", "EOF"),
        *("8", "-1", "abc", "--a", "-m", "-c", "bash -c ", "eval ", "if ", "fi", "then ", "for "),
        *("&&", "|", ";", "<", ">", "2>&1", "{", "[", "]", ",", ":", '"a": ', "model:", "  ", "- "),
        *("[parallelism]\n", "tensor_parallel_degree = ", "model.num_layers=", "srun ", "\t", "\r"),
        *(
            "WORLD_SIZE=",
            "torchrun ",
            ".py",
            "null",
            "\0",
            "\u2028",
            "\u00e9",
            "\U0001f600",
            "auto",
        ),
        *("--pipeline-model-parallel-layout ", "Et|tL", "(t|)*9", "--nnodes ", "1:4", "sbatch "),
    ]
)


@given(st.text() | st.lists(PIECES, max_size=60).map("".join) | st.text(string.printable))
@example("A=($A\nA+=(${A[@]}\n)")
@example('{"a": {"b": ["c", {"d": $X}]}')
@settings(max_examples=600, deadline=None)
def test_any_text_is_answered(text):
    check_law(parse(text))


HUGE = {
    "quotes": "'\"",
    "openers": "${A:-",
    "arithmetic": "$((",
    "commands": "$(",
    "arrays": "A=((",
    "documents": "<<A\n",
    "keywords": "then if x;",
    "growing": 'A="$A x"\n',
    "guarded": '[ x ] && A+=" $A"\n',
    "doubling": "B=$A$A\nA=$B$B\n",
    "options": "--tensor-model-parallel-size 4 ",
    "overrides": "a.b=1 ",
    "yaml": "a: 1\n",
    "yaml spaces": "a: b                                                       x",
    "json": '{"a":[',
    "slurm": "#SBATCH -N 2\n",
    "nested": "bash -c \"$A\" 'eval '",
    "redirections": "<a>>&",
    "backslashes": "\\ \n\\",
    "underscores": "--tensor-model-parallel-size 1_1_",
}


@pytest.mark.parametrize("name", HUGE)
def test_a_long_text_of_any_kind_is_answered(name):
    text = (HUGE[name] * (20_000 // len(HUGE[name]) + 1))[:20_000]
    found = parse(text)
    assert found.text == text
    for item in (*found.understood, *found.ignored, *found.unresolved, *found.problems):
        assert 0 <= item.start <= item.end <= len(text)


def test_what_is_no_text_or_too_long_is_refused():
    for value in (None, 3, b"x", ["--a"]):
        with pytest.raises(LayoutError) as refusal:
            parse(value)
        assert refusal.value.code == "not-a-text"
    parse(" " * MAX_TEXT)
    with pytest.raises(LayoutError) as refusal:
        parse(" " * (MAX_TEXT + 1))
    assert (refusal.value.code, refusal.value.facts["limit"]) == ("text-too-long", MAX_TEXT)


def test_the_reader_reaches_for_nothing_outside():
    allowed = {
        *("__future__", "bisect", "json", "math", "re", "shlex"),
        *("collections.abc", "dataclasses", "functools", "typing"),
    }
    for path in (ROOT / "groups").glob("launch_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= allowed, path
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert node.module in allowed, path
            elif isinstance(node, ast.Name):
                assert node.id not in ("eval", "exec", "open", "compile", "__import__"), path


def test_every_code_has_a_sentence_and_is_used():
    source = "".join(
        path.read_text(encoding="utf-8") for path in (ROOT / "groups").glob("launch_*.py")
    )
    for code in SENTENCES:
        assert source.count(f'"{code}"') >= 2, code
