"""The command line as people and scripts use it: what it prints, where, and its exit status.

Most run in this process; real processes show what only they can: pipes, exit status, streams.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from documents import groups_csv, groups_json, ranks_csv, ranks_json
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import groups
from cli.command import COMMANDS, run
from cli.guide import guide
from cli.inputs import PROGRAM
from cli.messages import FIELDS
from formats.documents.exports import groups_by_name
from formats.launch import TARGETS
from formats.logs.bounds import COMMAND_LINE
from groups.frameworks import FRAMEWORKS, OWN
from groups.layout import Job
from groups.presets import PRESETS, PUBLISHED

ROOT = Path(__file__).parent.parent

RUNNING = f"python -m {groups.__name__}"
"""What a process of the command line calls itself."""


class Answer(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def ask(command: str, stdin: str = "") -> Answer:
    """The answer to a command line, in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = run(command.split(), io.StringIO(stdin), out, err)
    return Answer(status, out.getvalue(), err.getvalue())


def answered(command: str, stdin: str = "") -> Answer:
    answer = ask(command, stdin)
    assert (answer.status, answer.err) == (0, "")
    return answer


def process(command: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-m", groups.__name__, *command.split()]
    return subprocess.run(words, cwd=ROOT, input=stdin, capture_output=True, text=True)


SIXTEEN = "--nodes 2 --tp 2 --pp 2"
JOB = Job(nodes=2, tp=2, pp=2)


# -- groups --------------------------------------------------------------------------------------


def test_the_groups_named_are_printed_one_a_line():
    assert answered(f"{SIXTEEN} dp pp").lines == [
        "dp group 0: [0, 2, 4, 6]",
        "dp group 1: [1, 3, 5, 7]",
        "dp group 2: [8, 10, 12, 14]",
        "dp group 3: [9, 11, 13, 15]",
        *(f"pp group {rank}: [{rank}, {rank + 8}]" for rank in range(8)),
    ]


@pytest.mark.parametrize(
    "command",
    [
        f"dp pp {SIXTEEN}",
        f"groups dp pp {SIXTEEN}",
        f"{SIXTEEN} groups dp,pp",
        "groups --nodes=2 dp --tp=2 pp --pp=2",
        f"--format text {SIXTEEN} dp, pp",
        "--preset playground-16 dp pp",
    ],
)
def test_options_and_names_stand_in_any_order(command):
    assert answered(command) == answered(f"{SIXTEEN} dp pp")


def test_without_names_all_groups_are_printed():
    lines = answered(SIXTEEN).lines
    layout = JOB.layout()
    assert len(lines) == sum(one.num_groups for one in layout.every.values())
    assert list(dict.fromkeys(line.split()[0] for line in lines)) == list(layout.every)


def test_the_documents_are_those_of_the_exports():
    layout = JOB.layout()
    assert answered(f"{SIXTEEN} --format json").out == groups_json(layout)
    assert answered(f"{SIXTEEN} --format csv tp dp").out == groups_csv(layout, ["tp", "dp"])
    assert answered(f"ranks {SIXTEEN} --format csv").out == ranks_csv(layout)
    assert answered(f"ranks {SIXTEEN} --format json pp").out == ranks_json(layout, ["pp"])


def test_a_group_that_is_called_as_a_command_is_one_without_a_file():
    lines = answered("--framework deepspeed --nodes 1 --tp 2 model").lines
    assert lines[0].startswith("own.model group 0:")


def test_no_group_is_called_as_a_command_is_but_model():
    for framework in FRAMEWORKS:
        sizes = {"pp": 8} if framework == "gpipe" else {}
        layout = Job(framework=framework, **sizes).layout()
        names = {name.removeprefix("own.") for name in groups_by_name(layout)}
        assert not names & set(COMMANDS) - {"model"}


# -- which layout --------------------------------------------------------------------------------


def job_of(command: str) -> Job:
    job = json.loads(answered(f"{command} --format json tp").out)["job"]
    return Job(**{**job, "levels": job["levels"] and tuple(job["levels"])})


@pytest.mark.parametrize(
    ("command", "job"),
    [
        ("", Job()),
        ("--gpus-per-node 4 --nodes 4 --tp 8", Job(nodes=4, gpus_per_node=4, tp=8)),
        ("--nodes 2 --cp 2 --pp 2 --ep 4 --etp 1", Job(nodes=2, cp=2, pp=2, ep=4, etp=1)),
        ("--instances 2", Job(instances=2)),
        ("--cp 8 --levels 2x4", Job(cp=8, levels=(2, 4))),
        ("--cp 8 --levels 4,2", Job(cp=8, levels=(4, 2))),
        ("--hybrid", Job(hybrid=True)),
        ("--hybrid --no-hybrid", Job()),
        ("--framework megatron-pp-dp --pp 2", Job(pp=2, framework="megatron-pp-dp")),
        ("--order dp-tp-cp-ep-pp --tp 2", Job(tp=2, framework=OWN, order="dp-tp-cp-ep-pp")),
        ("--preset playground-16", Job(nodes=2, tp=2, pp=2)),
        ("--preset playground-16 --tp 4 --pp 1", Job(nodes=2, tp=4)),
        (
            "--preset playground-16 --order tp-dp-cp-ep-pp",
            Job(nodes=2, tp=2, pp=2, framework=OWN, order="tp-dp-cp-ep-pp"),
        ),
    ],
)
def test_options_are_the_fields_of_a_job(command, job):
    assert job_of(command).layout().every == job.layout().every


def test_every_field_of_a_job_has_its_option():
    page = answered("groups --help").out
    for name in FIELDS:
        assert f"  --{name.replace('_', '-')}" in page


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_has_its_layout(preset):
    found = dict(csv.reader(io.StringIO(answered(f"layout --preset {preset} --format csv").out)))
    assert int(found["world_size"]) == PRESETS[preset].world_size
    assert int(found["dp"]) == PRESETS[preset].dp


def test_llama3_puts_dp_outside_the_pipeline():
    sizes = "--nodes 2 --tp 2 --cp 2 --pp 2"
    assert "pp group 0: [0, 4]" in answered(f"--framework llama3 {sizes} pp").lines
    assert "pp group 0: [0, 8]" in answered(f"{sizes} pp").lines


def test_a_framework_s_own_names_need_no_prefix_where_megatron_has_none():
    lines = answered("--framework deepspeed --nodes 2 --tp 2 data own.pipe").lines
    assert lines[0] == "own.data group 0: [0, 2, 4, 6, 8, 10, 12, 14]"
    assert lines[-1] == "own.pipe group 15: [15]"


def test_a_name_means_the_group_that_the_framework_makes():
    """Fairscale's mp is tp; Megatron's, of tp and pp, it does not make."""
    for name in ("mp", "own.mp"):
        answer = ask(f"--framework fairscale --tp 2 --pp 2 {name}")
        assert (answer.status, answer.lines[0]) == (0, "own.mp group 0: [0, 1]")
    refused = ask("--framework picotron embd")
    assert refused.status == 2
    assert "this layout makes no group 'embd'" in refused.err


def test_an_order_beside_a_framework_counts_and_is_remarked_on_where_it_is_another():
    own = ask("--order TP-CP-PP-DP --framework picotron --tp 2 cp_dp")
    assert (own.status, own.lines) == (0, answered("--framework picotron --tp 2 cp_dp").lines)
    assert own.err == ""
    other = ask("--order tp-dp-pp-cp --framework picotron --tp 2 --pp 2 pp")
    assert (other.status, other.lines) == (
        0,
        answered("--order tp-dp-pp-cp --tp 2 --pp 2 pp").lines,
    )
    remark = (
        "picotron numbers its ranks tp-cp-pp-dp: in the order tp-dp-pp-cp the groups are Megatron's"
    )
    assert remark in other.err


# -- the other commands --------------------------------------------------------------------------


def test_the_table_of_ranks_has_coordinates_and_the_groups_named():
    lines = answered("ranks --gpus-per-node 4 --pp 4 embd").lines
    assert lines[0].split()[:4] == ["rank", "node", "local_rank", "dense_tp"]
    assert lines[0].split()[-1] == "group_embd"
    assert [line.split()[-1] for line in lines[1:]] == ["0", "-", "-", "0"]
    assert len({len(line) for line in lines}) == 1
    assert "group_" not in answered("ranks --gpus-per-node 4").out


def test_a_rank_has_its_card():
    assert answered(f"rank 5 {SIXTEEN}").lines == [
        "rank 5 of 16: node 0, GPU 5",
        "dense: tp 1, cp 0, dp 2, pp 0",
        "expert: etp 1, ep 0, edp 2, pp 0",
        "pipeline: 13 -> 5 -> 13",
        "names               indices  size  nodes_spanned  ranks",
        "cp pos-embd ep      5           1              1  5",
        "tp tp-cp etp tp-ep  2           2              1  4 5",
        "pp embd             5           2              2  5 13",
        "dp dp-cp edp        1           4              1  1 3 5 7",
        "mp tp-ep-pp         2           4              2  4 5 12 13",
        "tp-dp tp-dp-cp      0           8              1  0 1 2 3 4 5 6 7",
        "intra-dist-opt      0          16              2  0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15",
    ]


def test_the_card_says_of_which_groups_a_rank_is_in_none():
    assert answered("rank 3 --pp 4").lines[-1] == "in none of: embd pos-embd"
    card = json.loads(answered("rank 3 --pp 4 --format json").out)
    assert card["schema"] == "parallel-rank"
    assert card["in_none_of"] == ["embd", "pos-embd"]
    assert card["pipeline"] == {"before": 1, "after": 5}
    assert card["coordinates"]["dense"] == {"tp": 1 - 1, "cp": 0, "dp": 1, "pp": 1}
    assert {"names", "indices", "size", "nodes_spanned", "ranks"} == set(card["rows"][0])


def test_a_long_group_is_cut_in_text_only():
    text = answered("rank 0 --nodes 8").lines[-1]
    assert text.endswith("0 1 2 3 4 5 6 7 8 9 10 11 12 13 ... 63")
    rows = list(csv.DictReader(io.StringIO(answered("rank 0 --nodes 8 --format csv").out)))
    assert len(rows[-1]["ranks"].split()) == 64


@pytest.mark.parametrize("ranks", ["3,11", "3 11", "11 3,3"])
def test_the_groups_that_ranks_share_are_listed_smallest_first(ranks):
    answer = answered(f"share {ranks} {SIXTEEN}")
    assert [line.split()[0] for line in answer.lines[1:-1]] == ["pp", "mp", "intra-dist-opt"]
    assert answer.lines[1].endswith("3 11")
    assert "tp (2), dp (2)" in answer.lines[-1]


def test_a_log_is_read_from_standard_input():
    log = "[rank3]: Watchdog caught timeout after 600000 ms\n[rank 11]: the same\n"
    assert answered(f"share 3,11 {SIXTEEN}").out in answered(f"share - {SIXTEEN}", log).out
    found = json.loads(answered(f"share - {SIXTEEN} --format json", log).out)
    assert found["ranks"] == [3, 11]
    assert found["rows"][0]["names"] == ["pp", "embd"]
    assert {"name": "tp", "groups": 2, "alone": 0} in found["apart"]


def test_ranks_that_share_nothing_are_told_so():
    """Of 8 GPUs, rank 7 differs from rank 0 in tp, pp and dp."""
    lines = answered("share 0,7 --tp 2 --pp 2 --framework llama3").lines
    assert lines[0] == "no group has all of these ranks"
    assert lines[1].startswith("not together in (groups they are in): tp (2), ")
    assert len(lines) == 2


def test_the_audit_counts_what_leaves_a_domain():
    lines = answered("audit --nodes 2 --tp 16 --domains 4,16 tp dp").lines
    assert lines[-1].split() == ["tp", "16", "1", "1", "(4)", "!", "-"]  # dp is of one rank
    rows = list(csv.DictReader(io.StringIO(answered(f"audit {SIXTEEN} --format csv").out)))
    assert [row["domain"] for row in rows[:3]] == ["4", "8", "16"]
    assert rows[4] == {
        "name": "dp",
        "size": "4",
        "groups": "4",
        "domain": "8",
        "crossing": "0",
        "most": "1",
        "slow": "false",
    }
    document = json.loads(answered("audit --nodes 2 --tp 16 --format json tp").out)
    assert [row["slow"] for row in document["rows"]] == [True, True, False]


def test_the_layout_says_what_remains():
    found = dict(line.split(None, 1) for line in answered(f"layout {SIXTEEN}").lines)
    assert (found["dp"], found["edp"], found["world_size"]) == ("4", "4", "16")
    assert found["dense"] == "tp2-cp1-dp4-pp2"
    assert found["framework"] == "Megatron Core"


def test_presets_and_frameworks_are_found_by_words():
    assert len(answered("presets").lines) == 1 + len(PUBLISHED)
    assert [line.split()[0] for line in answered("presets serve kimi").lines[1:]] == [
        "serve-kimi-k2-tp",
        "serve-kimi-k2-dp",
    ]
    assert [line.split()[0] for line in answered("presets DeepSeek 671B").lines[1:]] == [
        "deepseek-v3",
        "mcore-guide-deepseek-v3-671b",
    ]
    assert len(answered("frameworks").lines) == 1 + len(FRAMEWORKS)
    assert answered("frameworks titan").lines[1].split()[:2] == ["torchtitan", "tp-cp-ep-dp-pp"]
    rows = list(csv.DictReader(io.StringIO(answered("presets --format csv").out)))
    assert [row["id"] for row in rows] == list(PUBLISHED)
    assert rows[0].keys() >= {"nodes", "tp", "framework", "name"}
    found = json.loads(answered("frameworks --format json deepspeed").out)
    assert found["schema"] == "parallel-frameworks"
    assert found["rows"][0]["axes"] == ["tensor", "data", "pipeline"]
    assert json.loads(answered("presets --format json nonesuch").out)["rows"] == []
    assert answered("presets nonesuch").out == ""


def test_a_document_is_checked(tmp_path):
    text = answered(f"{SIXTEEN} --format json").out
    assert answered("check -", text).out == "parallel-groups version 1: 16 ranks\n"
    path = tmp_path / "ranks.json"
    path.write_text(answered(f"ranks {SIXTEEN} --format json").out)
    assert answered(f"check {path}").out == "parallel-ranks version 1: 16 ranks\n"
    answer = ask("check -", text.replace("[0, 1]", "[0, 99]", 1))
    assert answer.status == 2
    assert "groups.tp.groups[0] is [0, 99], not [0, 1]" in answer.err


def test_files_that_cannot_be_read_are_one_line_too(tmp_path):
    latin, large = tmp_path / "latin", tmp_path / "large"
    latin.write_bytes(b"\xe9")
    large.touch()
    os.truncate(large, COMMAND_LINE.bytes + 1)
    for command, said in (
        (f"check {latin}", "it is not UTF-8 text"),
        (f"share {large}", "more than 16384 MB"),
        ("share /proc/self/mem", "cannot read '/proc/self/mem': Input/output error"),
    ):
        answer = ask(command)
        assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
        assert said in answer.err


def test_a_list_of_ranks_may_be_longer_than_the_name_of_a_file():
    ranks = ",".join(map(str, range(128)))
    assert answered(f"share {ranks} --nodes 16 --tp 8") == answered("share 0-127 --nodes 16 --tp 8")


# -- launch flags --------------------------------------------------------------------------------

LAUNCH = """\
torchrun --nnodes {nodes} --nproc-per-node 8 pretrain_gpt.py \\
    --tensor-model-parallel-size {tp} --pipeline-model-parallel-size 2 --num-layers 32
"""


def test_launch_flags_are_read_from_standard_input_or_a_file(tmp_path):
    text = LAUNCH.format(nodes=2, tp=2)
    path = tmp_path / "launch.sh"
    path.write_text(text)
    assert answered("dp pp --args -", text) == answered(f"dp pp {SIXTEEN}")
    assert answered(f"dp pp --args {path}") == answered(f"dp pp {SIXTEEN}")
    assert answered("dp --args - --tp 4", text) == answered("dp --nodes 2 --tp 4 --pp 2")


def test_a_value_that_is_none_is_shown_where_it_stands():
    answer = ask("dp --args -", LAUNCH.format(nodes=2, tp="eight"))
    assert (answer.status, answer.out) == (2, "")
    assert answer.err == (
        f"{PROGRAM}: standard input:2:34: --tensor-model-parallel-size must be a whole number, "
        "not eight. Give --tp.\n"
    )


def test_a_size_that_the_script_leaves_to_a_variable_is_asked_for_and_never_guessed():
    text = LAUNCH.format(nodes="$NNODES", tp=2)
    answer = ask("dp --args -", text)
    assert answer.status == 2
    assert "standard input:1:19: --nnodes is $NNODES" in answer.err
    assert answer.err.endswith("Give --nodes.\n")
    assert answered("dp --args - --nodes 2", text).out == answered(f"dp {SIXTEEN}").out


def test_what_a_recipe_may_say_is_asked_for_with_its_place():
    text = "torchrun --nnodes 2 run_recipe.py --model_name $M --recipe llama3_70b_config -tp 4"
    answer = ask("tp --args -", text)
    assert "standard input:1:51: --recipe begins with llama3_70b_config" in answer.err
    assert answer.err.endswith("Give --pp and --cp and --ep and --gpus-per-node.\n")


def test_what_a_layout_does_not_need_is_remarked_beside_the_answer():
    answer = ask("dp --args -", LAUNCH.format(nodes=2, tp=2).replace("32", "$LAYERS"))
    assert answer.out == answered(f"dp {SIXTEEN}").out
    assert "standard input:2:82: --num-layers is $LAYERS" in answer.err


def test_of_several_runs_one_is_asked_for():
    text = LAUNCH.format(nodes=2, tp=2) + LAUNCH.format(nodes=4, tp=8)
    asked = ask("dp --args -", text).err
    assert asked.startswith(f"{PROGRAM}: standard input holds 2 runs: give --run, one of ")
    first = asked.rstrip().split("one of ")[1].split(", ")[0]
    out = io.StringIO()
    assert run(["dp", "--args", "-", "--run", first], io.StringIO(text), out, io.StringIO()) == 0
    assert out.getvalue() == answered(f"dp {SIXTEEN}").out


def test_an_order_that_the_text_leaves_open_is_not_guessed():
    text = LAUNCH.format(nodes=2, tp=2).rstrip() + " --use-tp-pp-dp-mapping=$MAPPING\n"
    answer = ask("pp --args -", text)
    assert answer.status == 2
    assert answer.err.endswith("Give --framework.\n")
    answer = ask("pp --args - --framework megatron-pp-dp", text)
    assert answer.out == answered(f"pp {SIXTEEN} --framework megatron-pp-dp").out


def test_what_is_assumed_is_remarked_beside_the_answer():
    answer = ask("dp --args -", "python pretrain_gpt.py --tensor-model-parallel-size 2")
    assert answer.status == 0
    assert answer.out == answered("dp --tp 2").out
    assert "gpus_per_node is not given: 8 is assumed." in answer.err
    assert "nodes is not given" in answer.err or "number of nodes" in answer.err
    assert all(line.startswith(f"{PROGRAM}: ") for line in answer.err.splitlines())


def test_a_bad_layout_in_launch_flags_is_still_one_line():
    text = "python pretrain_gpt.py --tensor-model-parallel-size 4"
    answer = ask("dp --args - --nodes 1 --pp 3", text)
    assert answer.status == 2
    assert answer.err.count("\n") == 1
    assert "tp 4 x pp 3" in answer.err


@pytest.mark.parametrize("text", ["", "hello\n", "\0\x1b[31m", "{", "ls -l $(rm -rf x)"])
def test_a_text_that_says_nothing_of_a_layout_is_refused(text):
    answer = ask("--args -", text)
    assert (answer.status, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert answer.err[:-1].isprintable()


@pytest.mark.parametrize(
    "layout",
    [
        SIXTEEN,
        "--nodes 4 --cp 8 --levels 2x4",
        "--nodes 2 --tp 2 --ep 4 --etp 1 --instances 2",
        "--nodes 1 --hybrid",
        "--nodes 2 --tp 2 --pp 2 --framework megatron-pp-dp",
        "--nodes 2 --tp 2 --pp 2 --ep 2 --framework torchtitan",
        "--preset llama3-405b-1",
        "--preset mcore-guide-mixtral-8x22b",
    ],
)
def test_the_flags_emitted_are_read_back_as_the_same_layout(layout):
    flags = answered(f"emit {layout}").out
    again = ask("--args -", flags)
    assert again.status == 0
    wanted = {line for line in answered(layout).lines if not line.startswith("own.")}
    assert wanted <= set(again.lines)  # Llama 3 makes no groups of experts, Megatron does


def test_the_flags_are_of_the_framework_asked_for():
    assert "--tensor-model-parallel-size 2" in answered(f"emit {SIXTEEN}").out
    assert "tensor_parallel_degree=2" in answered("emit --tp 2 --framework torchtitan").out
    assert "model.tensor_model_parallel_size=2" in answered("emit nemo --tp 2").out
    assert "--num-layers 70" in answered("emit megatron-deepspeed --preset bloom-176b").out
    assert "--num-query-groups 8" in answered("emit --preset bridge-llama3_70b-dgx-h100-64").out
    assert ask("emit deepspeed --pp 2").status == 2


# -- refusals ------------------------------------------------------------------------------------

REFUSED = {
    "--tp 2 --model llama3-8b": "--model says nothing to groups here",
    "presets --nodes 3": "--nodes says nothing to presets here",
    "ranks --racks hosts": "--racks says nothing to ranks here",
    "layout --worse low": "--worse says nothing to layout here",
    "--tp 3": "tp 3 x pp 1 x cp 1 = 3 does not divide 8 GPUs; try --tp 2 or --tp 4 "
    "(Megatron: world_size (8) is not divisible by 3)",
    "--tp two": "tp must be a whole number from 1 up, not 'two'; try --tp 1",
    "--tp 2.0": "tp must be a whole number from 1 up, not '2.0'; try --tp 1",
    "--tp 0": "not 0; try --tp 1",
    "--tp -1": "not -1; try --tp 1",
    "--tp 99999999999999999999999999": "tp must be a whole number",
    "--nodes 0 --tp 0": "nodes must be a whole number from 1 up, not 0; try --nodes 1 --tp 1\n",
    "--nodes 0": "nodes must be a whole number from 1 up, not 0; try --nodes 1",
    "--nodes 999999999": "try --nodes 131072",
    "--gpus-per-node 1048577": "try --gpus-per-node 1048576",
    "--ep 3": "try --ep 2 or --ep 4 (Megatron: world_size (8) is not divisible by expert",
    "--instances 3": "try --instances 2 or --instances 4",
    "--instances 0": "instances must be a whole number from 1 up, not 0; try --instances 1",
    "--hybrid --pp 2": "try --no-hybrid or --pp 1",
    "--cp 4 --levels 3x3": "try --levels 2x2",
    "--cp 4 --levels 2xx2": "levels must be a whole number",
    "--order tp-dp --pp 2": "try --order tp-dp-cp-ep-pp (Megatron: The size of (pp) is (2)",
    "--order tp-tp": "try --order tp-cp-ep-dp-pp",
    "--framework llama3 --ep 2": "Llama 3 trainer has no ep; try --ep 1 or --framework megatron",
    "--framework torchtitan --etp 2": "try without --etp",
    "--framework titan": "'titan' is no framework; `PROGRAM frameworks` lists them; "
    "try --framework torchtitan",
    "--preset deepseek": "try --preset deepseek-v3 or ",
    "--preset x": "'x' is no preset",
    "cp-dp": "this layout makes no group 'cp-dp'; try dp-cp",
    "tp,zz9": "makes no group 'zz9': its groups are tp, cp, dp",
    "rank 8": "there is no rank 8: ranks go from 0 to 7; try rank 7",
    "rank -1": "rank must be a whole number",
    "rank five": "rank must be a whole number from 0 up, not 'five'",
    "rank": "rank takes one rank",
    "rank 1 2": "rank takes one rank",
    "share": "share takes ranks",
    "share 5-2": "'5-2' is not a list of ranks: write ranks as numbers and ranges",
    "share 99": "there is no rank 99: ranks go from 0 to 7",
    "audit --domains 8,x": "domains must be a whole number",
    "audit --domains 0": "try --domains 1",
    "layout dp": "'dp' says nothing to this command",
    "check": "check takes one file",
    "check - --format json": "check prints text only",
    "emit --format json": "emit prints text only",
    "emit nemo deepspeed": "emit takes one framework",
    "emit llama": "'llama' is not a choice of framework: choose megatron, nemo",
    "emit --tp 3": "try --tp 2 or --tp 4",
    "check -": "line 1 column 1 is '', not JSON",
    "check /nonesuch/groups.json": "cannot read '/nonesuch/groups.json': No such file",
    "--args /nonesuch": "cannot read '/nonesuch'",
    "--run trainer": "--run is of --args: give the file that holds the runs",
    "--bogus": "unrecognized arguments: --bogus",
    "--t 2": "unrecognized arguments",
    "--tp": "expected one argument",
    "--format xml": "invalid choice: 'xml'",
    "--framework llama --order tp-dp": "'llama' is no framework",
    "--preset bloom-176b --args -": "not allowed with argument --preset",
}


@pytest.mark.parametrize("command", REFUSED)
def test_a_bad_layout_is_one_line_on_standard_error_and_status_2(command):
    answer = ask(command)
    assert (answer.status, answer.out) == (2, "")
    assert answer.err.startswith(f"{PROGRAM}: ")
    assert answer.err.count("\n") == 1
    assert answer.err.endswith("\n")
    assert REFUSED[command].replace("PROGRAM", PROGRAM) in answer.err


@pytest.mark.parametrize(
    "command",
    [c for c in REFUSED if "; try --" in REFUSED[c] or REFUSED[c].startswith("try --")],
)
def test_the_options_that_a_refusal_offers_work(command):
    said = ask(command).err.split("; try ")[1].split(" (Megatron")[0].strip()
    assert said
    for cure in said.split(" or "):
        given, changed = command.split(), cure.split()
        if changed[0] in given:
            at = given.index(changed[0])
            given[at : at + len(changed)] = changed
        else:
            given += changed
        plain = [] if given[0] in COMMANDS else ["layout"]
        assert ask(" ".join([*plain, *given])).status == 0, cure


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=30), st.sampled_from(["--tp", "--order", "--framework", "--levels", ""]))
def test_any_text_is_answered_or_refused_in_one_printable_line(text, option):
    argv = [f"{option}={text}"] if option else ["--", text]
    out, err = io.StringIO(), io.StringIO()
    status = run(["tp", *argv], io.StringIO(), out, err)
    assert status in (0, 2)
    if status == 2:
        assert err.getvalue().count("\n") == 1
        assert err.getvalue()[:-1].isprintable()
        assert out.getvalue() == ""


# -- real processes ------------------------------------------------------------------------------


def test_a_process_answers_on_standard_output_with_status_0():
    done = process(f"{SIXTEEN} dp")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == answered(f"{SIXTEEN} dp").out


def test_a_process_refuses_on_standard_error_with_status_2():
    done = process("--tp 3")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"{RUNNING}: {REFUSED['--tp 3']}\n"


def test_a_process_reads_standard_input():
    done = process(f"share - {SIXTEEN}", "rank 3\nrank 11\n")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(answered(f"share 3,11 {SIXTEEN}").out)


def test_the_help_names_every_command_on_one_page():
    done = process("--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: {RUNNING} ")
    for command in COMMANDS:
        assert f"\n  {command}" in done.stdout
    assert {*TARGETS} <= set(re.findall(r"[\w-]+", done.stdout))
    assert "\x1b" not in done.stdout
    assert done.stdout == answered("-h").out.replace(PROGRAM, RUNNING)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_a_command_has_what_it_reads_and_nothing_else(command):
    page = answered(f"{command} --help").out
    assert page.startswith(f"usage: {PROGRAM} {command} ")
    assert answered(f"-h {command.upper()}").out == page
    assert max(map(len, page.splitlines())) <= 100
    every = {one.name: one.value for section in guide().sections for one in section.options}
    named = {name for name in every if f"  --{name.replace('_', '-')}" in page}
    words = WORDS.get(command, "")
    if command == "order" or (guide().command(command).least and not words):
        return  # which needs files
    for name in {*every} - named - ONE_OF:
        asked = f"{command} {words} --{name.replace('_', '-')} {'1' if every[name] else ''}"
        assert f"says nothing to {command}" in ask(asked).err, asked


WORDS = {"rank": "0", "share": "0", "compare": "llama3-405b-1 --tp 4"}
WORDS |= {"moves": "--from llama3-405b-1 --to llama3-405b-2", "roles": "--preset dapo-qwen2-5-32b"}
WORDS |= {"serve": "--speed --framework vllm --tp 8 --model llama3-70b"}
ONE_OF = {"worse", "format", "preset", "args", "run", "order"}
"""Options that are refused by themselves where their value, or another option, is wrong."""


@pytest.mark.parametrize("form", ["text", "csv"])
def test_a_reader_that_has_seen_enough_ends_it_quietly(form):
    """As `| head -1` does, with more output than a pipe holds."""
    words = [sys.executable, "-m", groups.__name__, "ranks", "--nodes", "4096", "--format", form]
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout.readline().split(",")[0].split()[0] == "rank"
        running.stdout.close()
        assert running.stderr.read() == ""
    assert running.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_what_cannot_be_written_is_one_line_too():
    words = [sys.executable, "-m", groups.__name__, "dp"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1
    assert done.stderr == f"{RUNNING}: cannot write: No space left on device\n"


def test_the_command_line_needs_numpy_only():
    code = """
from cli.command import run
import sys
loaded = {part for name in sys.modules for part in name.split(".")[:2]}
large = {"gradio", "matplotlib", "training", "torch"}
print((large | {"request", "texts", "views"}) & loaded)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.strip() == "set()", done.stderr
