"""A script whose nodes are a variable's default: it is asked for them, judged anew, given back."""

from __future__ import annotations

import io
import json

import pytest
from launch_answers import check_law
from markup import only, text_of, values, written

from cli.command import run
from formats.launch import parse
from formats.launch.rewrite import SIZES, nodes_that_hold, rewrite
from groups.layout import Job
from request.named.launch import pasted_changes, with_pasted
from request.resolve import resolve
from request.state import State
from views.page import answer

pytestmark = pytest.mark.usefixtures("nothing_is_executed")

# Written after NVIDIA/Megatron-LM examples/mixtral/train_mixtral_8x7b_distributed.sh.
MIXTRAL = """#!/bin/bash
GPUS_PER_NODE=8
MASTER_ADDR=${MASTER_ADDR:-"localhost"}
NNODES=${SLURM_NNODES:-"1"}
WORLD_SIZE=$(($GPUS_PER_NODE*$NNODES))
DISTRIBUTED=( --nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --master_addr $MASTER_ADDR )
PARALLEL=(
    --tensor-model-parallel-size 1
    --pipeline-model-parallel-size 4  # stages
    --expert-model-parallel-size 8
    --use-distributed-optimizer
)
torchrun ${DISTRIBUTED[@]} pretrain_gpt.py ${PARALLEL[@]} --num-layers 32 --num-experts 8 \\
    --micro-batch-size 1 --global-batch-size 256 --some-own-option 7
"""


def shown(state: State) -> str:
    return str(answer(state).picture)


def offers(page: str) -> list[dict[str, str]]:
    """What the buttons of the verdict set."""
    return values(page, "data-set", ".verdict *")


@pytest.mark.parametrize(
    ("language", "question"),
    [
        ("en", "How many nodes? Nothing sets $SLURM_NNODES, whose default is 1. With 2: "),
        ("zh", "有多少个节点？没有设置 $SLURM_NNODES，其默认值为 1。若为 2："),  # noqa: RUF001
    ],
)
def test_the_page_asks_how_many_nodes_and_offers_those_that_hold_the_sizes(language, question):
    page = shown(State(view="launch", paste=MIXTRAL, lang=language))
    assert question in text_of(page)
    found = offers(page)
    assert [offer["nodes"] for offer in found] == ["4", "8", "16"]
    assert all({**offer, "nodes": ""} == {**found[0], "nodes": ""} for offer in found)
    assert "ep 2" not in page.split('class="verdict"')[1].split("</div>")[0]
    assert "8 → " in text_of(page)  # WORLD_SIZE, which is of GPUs
    assert {"en": "8 → GPUs in all", "zh": "8 → GPU 总数"}[language] in text_of(page)


def test_the_text_is_judged_anew_when_the_nodes_of_the_page_change():
    state = State(view="launch", paste=MIXTRAL)
    for nodes, says in (
        (4, "With 4: The text asks for 32 GPUs, 4 × 8"),
        (6, "does not divide 48 GPUs"),
        (8, "With 8: The text asks for 64 GPUs, 8 × 8"),
    ):
        page = text_of(shown(state.changed({"nodes": nodes})))
        assert f"default is 1. With {nodes}: " in page
        assert says in page


def test_a_button_makes_the_job_and_gives_the_script_back_with_its_line_marked():
    state = State(view="launch", paste=MIXTRAL)
    chosen = state.changed(offers(shown(state))[0])
    layout = resolve(chosen)
    assert (layout.nodes, str(layout.mesh)) == (4, "tp1-cp1-dp8-pp4")
    page = shown(chosen)
    assert "With 4: The page shows what the text asks for" in text_of(page)
    whole = only(page, "section.given-back pre")
    assert written(only(whole, "ins")) == 'NNODES=${SLURM_NNODES:-"4"}'
    assert written(whole) == MIXTRAL.replace('-"1"}', '-"4"}')  # and nothing else of it


def test_a_default_that_works_is_offered_too():
    text = "torchrun --nnodes ${N:-1} --nproc-per-node 8 x.py --tensor-model-parallel-size 8"
    page = shown(State(view="launch", paste=text))
    assert "default is 1. With 2: The text asks for 16 GPUs, 2 × 8" in text_of(page)
    assert [offer["nodes"] for offer in offers(page) if "nodes" in offer] == ["1", "4"]
    assert "nodes" not in pasted_changes(State(), parse(text))
    assert with_pasted(State(nodes=3), parse(text)).nodes == "3"


BACK = {
    "a number of its own": (
        "torchrun --nnodes 1 --nproc-per-node=8 x.py --tensor-model-parallel-size 2 --seed 1",
        {"tp": 4, "nodes": 2},
        "torchrun --nnodes 2 --nproc-per-node=8 x.py --tensor-model-parallel-size 4 --seed 1",
        (1,),
    ),
    "a variable, where it is set": (
        "TP=2\\n# TP=2\\ntorchrun x.py --tensor-model-parallel-size $TP",
        {"tp": 8},
        "TP=8\\n# TP=2\\ntorchrun x.py --tensor-model-parallel-size $TP",
        (1,),
    ),
    "Slurm's nodes": (
        "#!/bin/bash\\n#SBATCH --nodes=4 --gpus-per-node=8\\nsrun python pretrain_gpt.py --bf16",
        {"nodes": 16},
        "#!/bin/bash\\n#SBATCH --nodes=16 --gpus-per-node=8\\nsrun python pretrain_gpt.py --bf16",
        (2,),
    ),
    "a key of a file": (
        "model:\\n  tensor_model_parallel_size: 2  # of 8\\ntrainer: {num_nodes: 1, devices: 8}\\n",
        {"tp": 8},
        "model:\\n  tensor_model_parallel_size: 8  # of 8\\ntrainer: {num_nodes: 1, devices: 8}\\n",
        (2,),
    ),
}


@pytest.mark.parametrize("name", BACK)
def test_a_text_is_given_back_with_other_sizes_and_nothing_else(name):
    text, sizes, wanted, lines = (
        one.replace("\\n", "\n") if isinstance(one, str) else one for one in BACK[name]
    )
    back = rewrite(parse(text), sizes)
    assert (back.text, back.lines, back.left) == (wanted, lines, {})
    check_law(parse(back.text))
    assert {axis: parse(back.text).values[axis] for axis in sizes} == sizes


def test_what_no_word_says_or_one_says_for_two_is_left():
    one = parse(
        "P=2\ntorchrun x.py --tensor-model-parallel-size $P --pipeline-model-parallel-size $P"
    )
    back = rewrite(one, {"tp": 4, "cp": 2})
    assert (back.text, back.lines, back.left) == (one.text, (), {"tp": 4, "cp": 2})
    page = shown(State(view="launch", paste=one.text, tp=4, pp=2, nodes=1))
    assert "these options go with it" in text_of(page)
    assert "--tensor-model-parallel-size 4" in text_of(page)


def test_the_fewest_nodes_that_hold_a_job_and_twice_as_many():
    assert nodes_that_hold(Job(pp=4, ep=8)) == [4, 8, 16]
    assert nodes_that_hold(Job(tp=3, gpus_per_node=4)) == [3, 6, 12]
    assert nodes_that_hold(Job(tp=2, order="junk", framework="own")) == []
    assert SIZES[0] == "nodes"


def answered(text: str, *options: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = run([*options, "--args", "-"], io.StringIO(text), out, err)
    return status, out.getvalue(), err.getvalue()


def test_the_command_asks_how_many_nodes_only_where_the_default_cannot_be():
    status, out, err = answered(MIXTRAL, "tp")
    assert (status, out) == (2, "")
    assert err.endswith(
        "standard input: how many nodes? nothing sets $SLURM_NNODES, whose default makes 1, and "
        "pp 4 x etp 1 x ep 8 = 32 does not divide 8 GPUs. "
        "Give --nodes 4 or --nodes 8 or --nodes 16\n"
    )
    status, out, err = answered(MIXTRAL, "tp", "--nodes", "4")
    assert (status, len(out.splitlines()), "SLURM_NNODES" in err) == (0, 32, False)
    works = MIXTRAL.replace("size 8", "size 2")
    status, out, err = answered(works, "tp")
    assert (status, len(out.splitlines()), "$SLURM_NNODES" in err) == (0, 8, True)


@pytest.mark.parametrize(
    ("ranks", "nodes", "copies"), [(4, 1, 2), (4, 2, 4), (8, 2, 2), (16, 2, 1), (16, 4, 2)]
)
def test_a_size_of_a_copy_makes_the_copies_of_as_many_nodes_as_are_given(ranks, nodes, copies):
    """deepspeedai/DeepSpeed deepspeed/runtime/zero/mics.py: consecutive runs of mics_shard_size."""
    text = f'{{"zero_optimization": {{"stage": 3, "mics_shard_size": {ranks}}}}}'
    status, out, _ = answered(text, "--nodes", str(nodes), "--format", "json")
    assert (status, json.loads(out)["job"]["instances"]) == (0, copies)


def test_a_size_of_a_copy_asks_for_the_nodes_that_hold_it():
    text = '{"zero_optimization": {"stage": 3, "mics_shard_size": 16}}'
    assert parse(text).assumed["nodes"] == 2
