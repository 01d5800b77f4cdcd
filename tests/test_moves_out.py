"""What moves, as programs get it: the command, the endpoint, and the script on real processes."""

from __future__ import annotations

import csv
import io
import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from cases import every
from torch_jobs import TorchJob

from cli.command import run
from formats.moves.script import moves_script
from formats.roles.presets import preset_plan
from groups import LayoutError
from groups.layout import Job
from request.answers.moves.api import moves, moves_check
from request.answers.moves.cache import moves_cache
from request.roles.opened import state_of_plan
from request.state import State
from training.model import Model
from training.models import MODELS
from training.moves import weight_moves
from training.moves.senders import RULES


def command(*words: str, stdin: str = "") -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return run(["moves", *words], io.StringIO(stdin), out, err), out.getvalue(), err.getvalue()


SIDES = ("--from", "?v=2&nodes=2&tp=4&pp=2", "--to", "~tp=2;pp=1", "--model", "llama3-8b")
FEW = ("--changes", '{"layers": 2}')


def test_the_command_says_how_much_moves_where_and_who_is_busiest():
    status, out, err = command(*SIDES, "--rule", "Nearest")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "llama3-8b: tp 4 pp 2 dp 2 on 16 GPUs to tp 2 dp 8 on 16, on the same GPUs; rule nearest",
        "stays on its GPU: 16.1 GB (12.5%)",
        "within the node: 48.2 GB (37.5%)",
        "between nodes: 64.2 GB (50.0%)",
        "rank 10 sends most, 8.03 GB, 1.1 times the mean; rank 2 receives most, 8.03 GB",
        "at link speed: nearest 80.3 ms, megatron 80.3 ms, first 161 ms, verl 40.2 ms, "
        "slime 40.2 ms; "
        "no rule takes less than 20.1 ms",
        "from_node  to_node        bytes",
        "        0        0  32122077184",
        "        0        1  32122077184",
        "        1        0  32122142720",
        "        1        1  32122142720",
    ]


def test_rows_of_one_rank_and_of_all_are_those_of_the_maths():
    source, target = Job(nodes=2, tp=4, pp=2).layout(), Job(nodes=2, tp=2).layout()
    model = replace(MODELS["llama3-8b"].model, layers=2)
    found = weight_moves(model, source, target, rule="nearest", padded=True)
    wanted = [
        {"tensor": row.tensor, "target": row.target, "axis": row.axis,
         "parts": [list(part) for part in row.parts], "bytes": list(row.sizes)}
        for row in found.rows(rank=5)
    ]  # fmt: skip
    status, out, _ = command(*SIDES, *FEW, "--rank", "5", "--format", "json")
    document = json.loads(out)
    assert (status, document["schema"], document["tensors"]) == (0, "parallel-moves", wanted)
    assert document["bytes"] == found.bytes._asdict()
    _, out, _ = command(*SIDES, *FEW, "--rank", "all", "--format", "csv")
    rows = [*csv.DictReader(io.StringIO(out))]
    assert len(rows) == sum(len(row.parts) for row in found.rows())
    assert sum(int(row["bytes"]) for row in rows) == sum(found.bytes)


def test_layouts_are_published_ones_files_of_flags_and_documents(tmp_path):
    flags, document = tmp_path / "run.sh", tmp_path / "groups.json"
    flags.write_text("torchrun --nnodes 2 --nproc-per-node 8 a.py --tensor-model-parallel-size 4")
    out = io.StringIO()
    assert run(["--tp", "2", "--nodes", "2", "--format", "json"], io.StringIO(), out, out) == 0
    document.write_text(out.getvalue())
    status, out, _ = command("--from", str(flags), "--to", str(document), "--format", "json")
    facts = json.loads(out)
    assert (status, facts["source"]["name"], facts["target"]["name"]) == (
        0,
        "tp 4 dp 4",
        "tp 2 dp 8",
    )
    status, out, _ = command("--from", "deepseek-v3", "--to", "deepseek-v3", "--first-rank", "2048")
    assert out.startswith("deepseek-v3: ")
    assert ", on others; rule nearest" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*SIDES, "--script", "--format", "json"), "--script prints text only"),
        (SIDES[:2], "say both layouts: --to is missing"),
        ((*SIDES, "--rule", "best"), "choose nearest, megatron, first, verl, slime"),
        ((*SIDES, "--rank", "16"), "there is no rank 16: ranks go from 0 to 15; try rank 15"),
        ((*SIDES, "--by", "rack"), "'rack' is not a choice of by: choose node, rank"),
        (("--from", "nothing", *SIDES[2:]), "'nothing' is no published layout, link or file"),
        ((*SIDES[:3], "~tp=3"), "tp 3"),
    ],
)
def test_what_cannot_be_moved_is_refused_in_one_line(words, said):
    status, out, err = command(*words)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_the_endpoint_answers_what_the_command_does():
    facts = json.loads(moves(to="~tp=2;pp=1", rank=5, nodes=2, tp=4, pp=2, model="llama3-8b"))
    _, out, _ = command(*SIDES, "--rank", "5", "--format", "json")
    document = json.loads(out)
    for name in ("bytes", "seconds", "least_seconds", "rules", "matrix", "busiest_sender", "rank"):
        assert facts[name] == document[name]
    assert [row["parts"] for row in facts["tensors"]] == [
        row["parts"] for row in document["tensors"]
    ]
    with pytest.raises(LayoutError, match="there is no rank 99"):
        moves(to="~tp=2", rank=99)
    with pytest.raises(LayoutError):
        moves()


# -- on real processes ---------------------------------------------------------------------------

MODEL = Model(layers=4, hidden=24, heads=12, kv_heads=4, ffn=24, vocabulary=100, sequence=8,
              gated=True, tied=True, experts=4, top_k=1, expert_ffn=8, dense_layers=1,
              shared_expert_ffn=8)  # fmt: skip
THERE = Job(nodes=2, gpus_per_node=4, tp=2, pp=2, ep=2, etp=1).layout()
HERE = Job(nodes=2, gpus_per_node=4, tp=4, ep=4, etp=2).layout()

PROCESSES = """
import os, runpy, socket, sys

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
os.environ.update(WORLD_SIZE="8", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
scripts = [os.path.join(sys.argv[0], name) for name in ("right.py", "wrong.py")]

def work(rank, script):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
    sys.argv = [script]
    runpy.run_path(script, run_name="__main__")

for script in scripts:
    children = [forked(work, rank, script) for rank in range(8)]
    print("ended with", [status_of(child) for child in children], flush=True)
"""


def scripts() -> dict[str, str]:
    """A plan, and the same with one slice from another rank."""
    text = moves_script(weight_moves(MODEL, THERE, HERE, rule="nearest", padded=True))
    slices = "[(0, 0, 0, 6)]"
    assert slices in text
    return {"right.py": text, "wrong.py": text.replace(slices, "[(1, 0, 0, 6)]", 1)}


@pytest.mark.torch_job(TorchJob(PROCESSES, files=scripts()))
def test_eight_processes_receive_every_element_and_tell_the_one_that_is_wrong(ran):
    lines = ran.out.splitlines()
    ends = [number for number, line in enumerate(lines) if line.startswith("ended with")]
    assert lines[ends[0]] == f"ended with {[0] * 8}", ran.err
    assert lines[0].endswith(" elements on 8 ranks: all as planned")
    assert lines[ends[1]] == f"ended with {[1] * 8}", ran.err
    assert lines[ends[1] - 1].endswith(" elements on 8 ranks: 1 tensors of ranks differ")
    assert "elements differ, first [0, 0]: " in lines[ends[0] + 1]


def test_the_template_is_itself_a_script_for_its_example(capsys, monkeypatch):
    path = Path(__file__).parent.parent / "formats" / "moves" / "template.py"
    monkeypatch.setattr("sys.argv", ["moves.py", "--list"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(path), run_name="__main__")
    assert end.value.code == 0
    assert capsys.readouterr().out == "mlp.linear_fc1.weight 0 0:0>0+2 1:0>2+2 0:2>4+2 1:2>6+2\n"


def test_the_endpoint_and_the_command_write_the_script():
    model = {"model": "llama3-8b", "changes": '{"layers": 2}'}
    text = moves_check(to="~tp=2", nodes=1, tp=1, **model)
    assert "WORLD_SIZE = 8\n" in text
    sides = ("--from", "?v=2&nodes=1&tp=1&pp=1", "--to", "~tp=2", "--model", "llama3-8b")
    status, out, _ = command(*sides, *FEW, "--script")
    assert (status, out.strip()) == (0, text.strip())


SLIME = (
    "python3 train.py --actor-num-nodes 1 --actor-num-gpus-per-node 8 --rollout-num-gpus 8 "
    "--rollout-num-gpus-per-engine 4 --tensor-model-parallel-size 2"
)


def test_the_command_and_the_endpoint_move_weights_between_roles_of_a_configuration(tmp_path):
    script = tmp_path / "run.sh"
    script.write_text(SLIME)
    asked = ["--from", str(script), "--model", "llama3-8b", "--format", "json", "--to"]
    status, out, _ = command(*asked, "role:rollout")
    facts = json.loads(out)
    assert (status, facts["target"]["name"], facts["target"]["first_rank"]) == (0, "tp 4", 8)
    cost = facts["rules"]["nearest"]
    assert (cost["same_gpu"], cost["in_node"]) == (0, 0)
    assert cost["between_nodes"] > 32e9
    found = json.loads(moves(plan=SLIME, to="role:rollout", model="llama3-8b"))
    assert [found[name] for name in ("bytes", "rules", "matrix")] == [
        facts[name] for name in ("bytes", "rules", "matrix")
    ]
    status, _, error = command(*asked, "role:judge")
    assert (status, "choose actor, rollout" in error) == (2, True)


def test_a_role_begins_where_its_plan_has_it_whatever_the_rule():
    link = "nodes=4&tp=8&model=qwen3-8b&roles=rollout@0-31:vllm,tp=4;*actor@32"
    found = json.loads(moves(plan=link, to="role:rollout", rule="nearest", rank=3))
    assert (found["source"]["first_rank"], found["target"]["first_rank"]) == (32, 0)
    senders = {part[0] for tensor in found["tensors"] for part in tensor["parts"]}
    assert min(senders) >= 32
    assert {rule: cost["same_gpu"] for rule, cost in found["rules"].items()} == dict.fromkeys(
        RULES, 0
    )


@every("asked, code, control", [
    ({"to": "role:rollout"}, "role-without-plan", "plan"),
    ({"to": "role:judge", "plan": SLIME}, "not-a-choice", "to"),
    ({"to": "role:rollout", "plan": SLIME, "tp": 4}, "layout-beside-plan", "tp"),
    ({"to": "role:b", "plan": "roles=b@0-3,8-11:vllm;*a@0"}, "role-is-no-run", "to"),
])  # fmt: skip
def test_a_role_that_is_none_of_the_plan_is_refused(asked, code, control):
    with pytest.raises(LayoutError) as refused:
        moves(**asked)
    assert (refused.value.code, refused.value.control) == (code, control)


@every("endpoint", [moves, moves_check, moves_cache])
@every("asked, fixes", [
    ({"to": "~tp=1", "first_rank": -1}, [{"first_rank": 0}]),
    ({"to": "~nodes=4;gpus_per_node=4"}, [{"first_rank": 16}]),
    ({"to": "llama3-405b-11"}, [{"to": f"llama3-405b-{number}"} for number in (1, 3, 2)]),
    ({"to": " "}, []),
])  # fmt: skip
def test_a_parameter_that_is_the_endpoint_s_own_is_refused_with_its_fixes(endpoint, asked, fixes):
    with pytest.raises(LayoutError) as refused:
        endpoint(**asked)
    assert [*refused.value.alternatives] == fixes
    assert refused.value.control == next(iter(fixes[0] if fixes else {"to"}))


def test_the_command_hands_over_a_cache_by_rows():
    sides = ("--from", "?v=2&nodes=1&tp=8&pp=1&framework=vllm", "--to", "~tp=4")
    status, out, _ = command(
        *sides, "--kv", "--model", "llama3-8b", "--format", "csv", "--rank", "1"
    )
    assert status == 0
    assert [*csv.reader(io.StringIO(out))] == [
        ["source", "target", "first_layer", "after_layer", "first_head", "after_head", "bytes"],
        ["2", "1", "0", "32", "2", "3", "134217728"],
        ["3", "1", "0", "32", "3", "4", "134217728"],
    ]
    refused = {"--rule=first": "megatron, vllm, sglang", "--rank=9": "try rank 7"}
    for wrong, said in refused.items():
        status, _, error = command(*sides, "--kv", "--model", "llama3-8b", wrong)
        assert (status, said in error) == (2, True), error


def test_a_plan_moves_its_weights_by_the_rule_of_its_framework_everywhere(tmp_path):
    """Page, command and endpoints begin alike; a chosen rule stands over it."""
    plans = {"slime-glm4-5": "slime", "dapo-qwen2-5-32b": "verl", "nemo-rl-qwen3-235b": "nearest"}
    for name, rule in plans.items():
        page = State().changed({"moves_rule": "first"})  # of the plan before
        assert state_of_plan(preset_plan(name), page).value("moves_rule") == rule
    plan = {"plan": "slime-qwen3-30b-a3b", "to": "role:rollout"}
    assert [json.loads(moves(**plan, rule=rule))["rule"] for rule in ("", "first")] == [
        "slime",
        "first",
    ]
    file = tmp_path / "run.sh"
    file.write_text(
        "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path=Qwen/Qwen3-8B"
        " algorithm.adv_estimator=grpo actor_rollout_ref.actor.strategy=megatron"
        " actor_rollout_ref.rollout.name=vllm data.train_batch_size=64"
        " actor_rollout_ref.rollout.tensor_model_parallel_size=2 trainer.n_gpus_per_node=8"
        " trainer.nnodes=1 actor_rollout_ref.actor.ppo_mini_batch_size=64"
        " actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4"
    )
    words = ("--from", str(file), "--to", "role:rollout", "--format", "json")
    for own, rule in (((), "verl"), (("--rule", "megatron"), "megatron")):
        status, out, _ = command(*words, *own)
        assert (status, json.loads(out)["rule"]) == (0, rule)
