"""Launch commands and configurations: what each option, key and file says of a layout."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cases import every
from launch_answers import LISTS, TP, check_law, codes, only_problem, values

from formats.launch import parse
from formats.launch.flags import (
    KEYS,
    MODEL,
    NO_GROUP,
    NOT_DRAWN,
    OPTIONS,
    REMOVED,
    TABLES,
    OptionGroup,
    Row,
)
from formats.launch.schemas import SchemaFile
from formats.launch.syntax.files import form_of
from groups.errors import LayoutError
from groups.layout import Job
from groups.tables import TableError, read_table
from texts.sentences import note_text

pytestmark = pytest.mark.usefixtures("nothing_is_executed")


EXAMPLES = json.loads((Path(__file__).parent / "data" / "launch_commands.json").read_text("utf-8"))
EXAMPLES = {one["id"]: one for one in EXAMPLES["examples"]}


# -- as they are written out there ---------------------------------------------------------------


@every("key", EXAMPLES)
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
    assert parsed.framework.name == "megatron"
    assert (parsed.assumed, parsed.asks) == ({"pp": 1, "cp": 1, "ep": 1}, ("tp",))


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
    sets = "gpus" if row.field in ("world", "tasks") else row.sets
    assert [item.sets for item in found.understood] == [sets] or row.field == "chunk"


@every("name", KEYS)
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
    assert not NO_GROUP & known - {"use-distributed-optimizer", "optimizer"}  # a section, too
    assert not set(REMOVED) & set(OPTIONS)
    assert set(REMOVED.values()) <= set(OPTIONS) | NO_GROUP
    kinds = {"switch", "off", "text", "list", "word", "words", "partition", *SAMPLES}
    for row in (*OPTIONS.values(), *(key.row for key in KEYS.values())):
        assert isinstance(row, Row)
        assert row.kind in kinds


WRONG = {
    "options.toml": (
        'field = "tp" }',
        'field = "tpp" }',
        "field should be one of a job, not 'tpp'",
    ),
    "schemas.toml": ('framework = "vllm"', 'framework = "vlm"', "framework should be one of "),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_row_of_what_there_is_not_is_refused(name, tmp_path):
    before, wrong, message = WRONG[name]
    text = (TABLES / name).read_text("utf-8")
    (tmp_path / name).write_text(text.replace(before, wrong, 1), "utf-8")
    model = dict[str, tuple[OptionGroup, ...]] if name == "options.toml" else SchemaFile
    with pytest.raises(TableError, match=re.escape(message)):
        read_table(tmp_path / name, model)


SWITCHES = {
    "--use-tp-pp-dp-mapping": {"framework": "megatron-pp-dp"},
    "--hybrid-context-parallel": {"hybrid": True, "framework": "megatron"},
    "--standalone": {"nodes": 1},
    "--account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split": {
        "framework": "megatron",
        "account": True,
    },
}


@every("text", SWITCHES)
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
    for pp, vpp in (("4", None), ("2", 2), ("3", None)):  # its four stages, on so many ranks
        assert values(f"{text} --pipeline-model-parallel-size {pp}").get("vpp") == vpp
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
    text = "--mics-shard-size 4 --use-sharp --no-such-option"
    assert codes(parse(text).ignored) == ["not-drawn", "no-group", "unknown"]


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
    ('{"a": [1}', "}", "bad-json"),
    ('{"a": 1} x', "x", "bad-json"),
    ('{"a" 1}', "1", "bad-json"),
    ("model:\n\tx: 1", "\t", "yaml-tab"),
    ("[parallelism]\ntensor_parallel_degree = eight # x", "eight", "bad-value"),
    ("[parallelism]\ntensor_parallel_degree = {a = 1}", "{a = 1}", "bad-value"),
    ("[parallelism]\ntensor_parallel_degree = [\n8, ", "[", "bad-value"),
]


@every("text, shown, code", BAD)
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


@every("text", MACHINES)
def test_nodes_and_gpus_per_node(text):
    parsed = parse(text)
    check_law(parsed)
    assert (parsed.values["nodes"], parsed.values["gpus_per_node"]) == MACHINES[text]
    assert not parsed.problems


def test_a_task_a_node_is_a_launcher_a_node():
    for text in ("srun -N 4 -n 4 ./run.sh", "srun -N 4 --ntasks-per-node=1 ./run.sh"):
        assert values(text) == {"nodes": 4}


@every(
    "text, nodes, gpus",
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
    for other in ("--nnodes 1 --nproc-per-node 8", "--nnodes 3"):
        assert only_problem(f"torchrun {other} {text}")[0].code == "degrees-differ"


@every(
    "text, code",
    [
        ("torchrun --nnodes 1:4 x.py", "range-of-nodes"),
        ("#SBATCH --nodes=2-4", "range-of-nodes"),
        ("torchrun --nproc-per-node gpu x.py", "left-to-machine"),
        ('{"train_micro_batch_size_per_gpu": "auto"}', "left-to-trainer"),
        ('{"bf16": {"enabled": "auto"}}', "left-to-trainer"),
        ("model: {sequence_parallel: '${sp}'}", "size-unresolved"),
    ],
)
def test_what_is_decided_when_the_job_starts(text, code):
    assert codes(parse(text).unresolved) == [code]


def test_the_fewest_nodes_are_assumed_if_nothing_is_said():
    parsed = parse(f"{TP} 8 --pipeline-model-parallel-size 16")
    assert parsed.assumed == {"cp": 1, "ep": 1, "gpus_per_node": 8, "nodes": 16}
    assert parsed.job().layout().world_size == 128
    assert codes(parsed.missing) == ["default"] * 3 + ["fewest-nodes"]


def test_sizes_beyond_every_cluster_are_refused_as_such():
    parsed = parse(f"{TP} 999999 --pipeline-model-parallel-size 7")
    with pytest.raises(LayoutError, match="55,999,944 GPUs are more"):
        parsed.job().layout()


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
    assert codes(parsed.ignored) == ["not-given", "no-group", "unknown", "not-read"]
    assert [(one.code, one.value) for one in parsed.unresolved] == [("unknown-size", "5")]
    assert parsed.framework.name == "nemo"


def test_what_a_file_says_elsewhere_is_put_in():
    text = "trainer: {layers: 4, s: $S}\nmodel: {{num_layers: '${{trainer.{}}}'}}"
    assert values(text.replace("{{", "{").replace("}}", "}").replace("{}", "layers")) == {
        "layers": 4
    }
    for name in ("s", "nothing"):
        parsed = parse(text.replace("{{", "{").replace("}}", "}").replace("{}", name))
        unread, layers = parsed.unresolved  # trainer.layers may be the model's: it is said
        assert (unread.code, layers.sets) == ("unread", "layers")


def test_no_is_a_word_too():
    text = "model: {hybrid_context_parallel: false, context_parallel_size: 2}"
    assert values(text) == {"cp": 2, "framework": "megatron", "hybrid": False}


def test_a_yaml_of_megatrons_options():
    text = "MODEL_ARGS:\n  --tensor-model-parallel-size: 4\n  --num-layers: 12\n"
    assert values(text) == {"tp": 4, "framework": "megatron", "layers": 12}


def test_toml_of_several_lines_and_tables_of_a_list():
    text = '[parallelism]\nfqns = [\n  "a",\n]\ntensor_parallel_degree = 1_0\n'
    text += "= 3\npipeline_parallel_degree = $PP\n[[x]]\na = 1\n[[x]]\ncontext_parallel_degree = 2"
    parsed = parse(text)
    assert parsed.values == {"tp": 10, "framework": "torchtitan"}
    assert [(one.code, one.name) for one in (*parsed.ignored, *parsed.unresolved)] == [
        ("unknown", "parallelism.fqns"),
        ("unknown", "x.0.a"),
        ("not-read", "= 3"),
        ("size-unresolved", "parallelism.pipeline_parallel_degree"),
        ("unknown-size", "x.1.context_parallel_degree"),
    ]


def test_toml_of_windows_is_read():
    assert values("[parallelism]\r\ntensor_parallel_degree = 2 # x\r\n")["tp"] == 2


def test_a_list_of_many_lines_in_toml_is_passed_over():
    lines = '  "tensor_parallel_degree = 4",\n' * 60
    text = f"[parallelism]\nnames = [\n{lines}]\ntensor_parallel_degree = 2"
    assert values(text)["tp"] == 2
    assert not parse(text).problems


YAML_ANCHORS = {
    "a: &a {pipeline_model_parallel_size: 2}\nmodel: *a": {"pp": 2},
    "n: &n 2\nmodel: {hierarchical_context_parallel_sizes: [*n, 4]}": {"levels": (2, 4)},
    "n: &n [2, 4]\nmodel: {hierarchical_context_parallel_sizes: *n}": {"levels": (2, 4)},
    "a: &a {num_layers: 4, hidden_size: 8}\nmodel: {num_layers: 6, <<: *a}": {"layers": 6},
    "a: &a {num_layers: 4}\nb: &b {<<: *a, seq_length: 8}\nmodel: {<<: *b}": {
        **{"layers": 4, "seq": 8},
    },
    "a: &a {num_layers: 4}\nb: &b {num_layers: 2, seq_length: 8}\nmodel: {<<: [*a, *b]}": {
        **{"layers": 4, "seq": 8},
    },
    "a: &a {num_layers: 4}\nmodel:\n  <<: *a\n  'x": {"layers": 4},
    "model: {num_layers: 4, <<: *nothing}\n": {"layers": 4},
    "model: {num_layers: 4}\n<<: [3, [4]]\n": {"layers": 4},
    "model: {num_layers: 4}\n---\n- 1\n- 2\n---\n[3]\n--- 4": {"layers": 4},
}


@every("text", YAML_ANCHORS)
def test_what_an_alias_stands_for_is_read_where_it_stands(text):
    parsed = parse(text)
    check_law(parsed)
    assert {n: value for n, value in parsed.values.items() if n != "framework"} == YAML_ANCHORS[
        text
    ]
    unread = [item.name for item in parsed.ignored if item.code == "not-read"]
    assert unread == (["<<"] if "*nothing" in text else [])


def test_deepspeed_with_data_before_experts():
    text = '{"train_batch_size": 8, "use_data_before_expert_parallelism": true}'
    assert values(text) == {"framework": "deepspeed-data-first", "global_batch": 8}
    assert values('{"tensor_parallel": {"autotp_size": 0}}') == {"tp": 1, "framework": "deepspeed"}


def test_a_key_in_another_section_is_another_key():
    parsed = parse("x.py vision.tensor_model_parallel_size=8")
    assert parsed.values == {}
    assert codes(parsed.unresolved) == ["unknown-size"]
    assert parsed.asks == ("tp", "pp", "cp", "ep", "nodes", "gpus_per_node")


def test_rows_in_an_override():
    text = "x.py 'model.hierarchical_context_parallel_sizes=[2, x]'"
    problem, shown = only_problem(text)
    assert (problem.code, shown) == ("bad-value", "x")


def test_a_value_is_told_whole_as_long_as_its_place_is():
    for letters, told in ((38, "x" * 38), (39, "x" * 38 + "…")):
        (problem,) = parse(f"--tensor-model-parallel-size {'x' * letters}").problems
        assert told in note_text(problem)
        assert ("…" in note_text(problem)) == ("…" in told)


def test_an_option_that_is_turned_off_is_as_known_as_itself():
    name = min(NO_GROUP)
    run = parse(f"torchrun pretrain_gpt.py --tensor-model-parallel-size 2 --no-{name} --no-zzz")
    assert [item.code for item in run.ignored] == ["no-group", "unknown"]
