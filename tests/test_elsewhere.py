"""A size that a text leaves out is the program's default only where the text holds all that the
program reads: files of options, scripts and standard input are asked about, or told."""

import pytest

from formats.launch import parse

RUN = "torchrun --nnodes 2 --nproc-per-node 8 pretrain_gpt.py"
TP = "--tensor-model-parallel-size 2"

ASKED = {
    "argparse's file": f"{RUN} @args.txt",
    "beside options": f"{RUN} {TP} @args.txt",
    "in a variable": f"A=args.txt\n{RUN} {TP} @$A",
    "of a variable that is not here": f'{RUN} {TP} "@${{ARGS}}"',
    "an option for it": f"{RUN} {TP} --args-file=a.txt",
    "a short one": f"{RUN} {TP} -c conf/gpt.yaml",
    "another word": f"{RUN} {TP} --cfg conf/gpt",
    "a program as a file": f"{RUN} {TP} --config conf.py",
    "no option": f"{RUN} conf/llama.toml {TP}",
    "no launcher": f"python train.py {TP} conf.json",
    "another launcher": "python -m paddle.distributed.launch --gpus 0,1 run_pretrain.py conf.json",
    "xargs": f"cat args.txt | xargs {RUN} {TP}",
    "a program's output": f"source <(grep ARGS conf.sh)\n{RUN} {TP}",
    "a variable for the program": f"CONFIG_FILE=a.toml {RUN} {TP}",
    "a program in Python": f"import os\nos.system('{RUN} {TP} @args.txt')",
    "a container's list": "spec:\n  command: [torchrun, pretrain_gpt.py, '@/conf/args.txt']\n",
    "a file made by another program": f"sed s/a/b/ tmpl > args.txt\n{RUN} {TP} @args.txt",
}

REMARKED = {
    "backquotes": f"{RUN} {TP} `cat args.txt`",
    "a default of nothing": f"{RUN} {TP} ${{EXTRA:-}}",
    "the same in a variable": f"EXTRA=${{EXTRA:-}}\n{RUN} {TP} $EXTRA",
    "options of a part": f"{RUN} {TP} --model-args-file=m.txt",
    "a file of no known kind": f"{RUN} {TP} --accelerator h100.yaml",
    "DeepSpeed's": f"deepspeed --num_nodes 2 train.py {TP} --deepspeed_config ds.json",
    "words of the environment": (
        f"cmd = '{RUN} {TP}'.split()\ncmd += os.environ['A'].split()\nrun(cmd)"
    ),
    "words of a list": f"run(['torchrun', 'pretrain_gpt.py', *'{TP}'.split(), *extra])",
    "a container's variable": (
        "spec:\n  command: [torchrun, pretrain_gpt.py, --tensor-model-parallel-size, '2', $(A)]\n"
    ),
}

HELD = {
    "written above": f"cat > args.txt <<EOF\n{TP}\nEOF\n{RUN} @args.txt",
    "echoed above": f"cat > d/a.txt <<EOF\n{TP}\nEOF\n{RUN} --args-file d/a.txt",
    "shown by a command": f"cat > args.txt <<EOF\n{TP}\nEOF\n{RUN} $(cat args.txt)",
    "pasted below": f"{RUN} @args.txt\n\n# ==== args.txt ====\n{TP}\n",
    "DeepSpeed's is here": (
        f'cat > ds.json <<EOF\n{{"zero_optimization": {{"stage": 1}}}}\nEOF\n'
        f"{RUN} {TP} --deepspeed_config ds.json"
    ),
    "a container's variable": (
        "spec:\n  env: [{name: TP, value: '2'}]\n"
        "  command: [torchrun, --nnodes=2, --nproc-per-node=8, pretrain_gpt.py, "
        "--tensor-model-parallel-size, $(TP)]\n"
    ),
    "an address": f"{RUN} {TP} --wandb-entity me@example.org",
    "an image": f"docker run nvcr.io/x@sha256:abcd {RUN} {TP}",
    "files of data": f"{RUN} {TP} --tokenizer-model t.json --data-args-path data.yaml",
    "NCCL's file": f"{RUN} {TP} --nccl-communicator-config-path n.yaml",
    "the machine's variables": f"set -a; source .env; set +a\n{RUN} {TP}",
    "a program of one's own": f"python -c 'print(1)' x.yaml\n{RUN} {TP}",
}


@pytest.mark.parametrize("name", ASKED)
def test_options_that_stand_elsewhere_are_asked_for(name):
    parsed = parse(ASKED[name])
    assert {"pp", "cp"} <= {*parsed.asks}
    assert not {"tp", "pp", "cp", "ep"} & {*parsed.assumed}
    assert parsed.unresolved


@pytest.mark.parametrize("name", REMARKED)
def test_options_that_may_stand_elsewhere_are_told(name):
    parsed = parse(REMARKED[name])
    assert any(
        item.code in ("may-hold-options", "empty-default", "unread", "configured")
        for item in (*parsed.unresolved, *parsed.problems)
    )


@pytest.mark.parametrize("name", HELD)
def test_files_that_are_here_and_those_of_other_things_ask_nothing(name):
    parsed = parse(HELD[name])
    assert parsed.values["tp"] == 2
    assert (parsed.assumed["pp"], parsed.asks) == (1, ())
    assert (parsed.unresolved, parsed.problems) == ((), ())


@pytest.mark.parametrize("kwargs", ["dict(tensor_parallel_size=4)", "{'tensor_parallel_size': 4}"])
def test_a_literal_mapping_is_the_keywords_of_an_engine(kwargs):
    text = f"from vllm import LLM\nkw = {kwargs}\nLLM('Qwen/Qwen3-8B', **kw)"
    parsed = parse(text)
    assert (parsed.values["tp"], parsed.unresolved) == (4, ())
    opened = parse(text.replace("**kw", "**other"))
    assert [item.code for item in opened.unresolved] == ["may-hold-options"]


def test_the_slots_of_a_host_are_the_gpus_of_a_node():
    """deepspeedai/DeepSpeed deepspeed/launcher/runner.py, parse_resource_filter."""
    run = "deepspeed --include {} train.py --tensor-model-parallel-size 2"
    parsed = parse(run.format("localhost:0,1,2,3"))
    assert parsed.values["gpus_per_node"] == 4
    for several in ("worker-0@worker-1", "worker-0:0,1@worker-1:0,1"):
        unresolved = parse(run.format(several)).unresolved
        assert [(item.name, item.sets) for item in unresolved] == [("--include", "gpus_per_node")]
