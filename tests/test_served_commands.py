"""What a server's command says of its memory reaches the page's Memory, and comes back in one."""

from __future__ import annotations

import io

import pytest

from cli.command import run
from formats.launch import parse
from formats.launch.emit import emitted
from formats.launch.flags import SERVED
from groups.presets import SERVERS
from request.context import Context
from request.named.launch import options_of_page, pasted_changes
from request.served import server_facts
from request.state import State
from request.trained import published
from training.serving.server import GIB
from views.page import answer

SGLANG = "python -m sglang.launch_server --model-path"
TRTLLM = """cat >./config.yml <<EOF
cuda_graph_config:
    max_batch_size: 512
enable_attention_dp: true
kv_cache_config:
    dtype: fp8
    free_gpu_memory_fraction: 0.8
EOF
trtllm-serve --tp_size 8 --trust_remote_code deepseek-ai/DeepSeek-R1 --port 8000 \\
  --max_batch_size 64 --max_num_tokens 2048 --ep_size 8 --config config.yml
"""
"""As NVIDIA/TensorRT-LLM's examples/serve have it: the model behind options, the rest in a file."""

# The model, and of SERVED: weights, cache, share, length (that the command says, or that the model
# was made for), requests, batched, a2a, partition.
COMMANDS = {
    "vllm serve Qwen/Qwen3-32B-AWQ --gpu-memory-utilization 0.85 -q awq_marlin --max-num-seqs 64": (
        *("qwen3-32b", "int4", "", "0.85", "40960", "64", "", "", ""),
    ),
    "vllm serve -tp 4 --enable-prefix-caching Qwen/Qwen3-235B-A22B --quantization fp8 "
    "--kv-cache-dtype fp8_e4m3 --max-model-len 32k --max-num-batched-tokens 4K": (
        *("qwen3-235b-a22b", "fp8_plain", "fp8", "", "32000", "", "4096", "", ""),
    ),
    f"{SGLANG} deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --mem-fraction-static 0.8 "
    "--context-length 8192 --max-running-requests 64 --chunked-prefill-size 4096": (
        *("deepseek-v3", "", "", "0.8", "8192", "64", "4096", "", ""),
    ),
    f"{SGLANG} deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --moe-a2a-backend deepep": (
        *("deepseek-v3", "", "", "", "163840", "", "", "deepep", ""),
    ),
    f"{SGLANG} deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --moe-a2a-backend mooncake": (
        *("deepseek-v3", "", "", "", "163840", *[""] * 4),
    ),
    TRTLLM: ("deepseek-v3", "", "fp8", "0.8", "163840", "64", "2048", "", ""),
    "vllm serve openai/gpt-oss-20b": ("gpt-oss-20b", "", "", "", "131072", *[""] * 4),
    "vllm serve RedHatAI/Qwen3-8B-quantized.w4a16 --max-model-len auto": (
        *("qwen3-8b", "int4", *[""] * 7),
    ),
}


def opened(text, run=""):
    """The page after Use these values, whatever it served before."""
    before = State(
        served_weights="nvfp4", served_share="0.5", served_batched="77", cluster="dgx-b200"
    )
    return before.changed(pasted_changes(before, parse(text, run)))


@pytest.mark.parametrize("text", COMMANDS, ids=range(len(COMMANDS)))
def test_what_a_command_says_of_memory_is_the_pages_and_is_written_back(text):
    state = opened(text)
    assert (state.model, *(getattr(state, name) for name in SERVED)) == COMMANDS[text]
    context = Context.of(state)
    facts = server_facts(context)
    _, weights, cache, share, length, *_ = COMMANDS[text]
    assert not weights or facts["weights_format"] == weights
    assert facts["cache_format"] == (cache or "bf16")
    assert not share or facts["share"] == float(share)
    assert not length or facts["max_model_len"] == int(length)
    written = emitted(context.layout, options_of_page(context.layout, state), state.framework)
    again = opened(written.replace("MODEL", "org/any")).changed({"model": state.model})
    again = again.changed({"served_length": state.served_length})  # written as the model's
    assert Context.of(again).layout == context.layout
    assert server_facts(Context.of(again)) == facts


def test_attention_dp_of_a_file_is_eight_attentions_and_the_file_of_a_command_is_asked_for():
    layout = Context.of(opened(TRTLLM)).layout
    assert (layout.mesh.size("tp"), layout.mesh.size("dp"), layout.expert.size("ep")) == (1, 8, 8)
    alone = parse("trtllm-serve m --tp_size 8 --extra_llm_api_options=extra.yml")
    assert alone.asks == ("pp", "cp", "ep", "dp")
    assert [item.code for item in alone.unresolved] == ["configured"]
    etp = parse("moe_tensor_parallel_size: 2\ntensor_parallel_size: 8\nenable_attention_dp: true\n")
    assert etp.framework.job == "tensorrt-llm"
    assert {"tp": 8, "ep": 4, "etp": 2, "dp": 8}.items() <= vars(etp.job()).items()


def test_gpus_that_no_server_takes_are_left_out_and_two_commands_are_two_servers():
    batch = "#SBATCH --gpus-per-node=8\n"
    one = parse(f"{batch}vllm serve Qwen/Qwen3-8B -tp 4")
    assert one.job().layout().world_size == 4
    assert [note.facts for note in one.missing if note.code == "server-leaves-gpus"] == [
        {"taken": 4, "gpus_per_node": 8}
    ]
    two = parse(f"{batch}vllm serve Qwen/Qwen3-8B -tp 4 &\nvllm serve Qwen/Qwen3-8B -tp 4")
    assert two.job().layout().mesh.size("server") == 2
    models = parse("vllm serve Qwen/Qwen3-8B\nvllm serve Qwen/Qwen3-14B")
    assert (len(models.runs), models.run) == (2, "")


REMARKED = {
    "--cpu-offload-gb 10": "--cpu-offload-gb 10 changes what fits in memory, and is not counted",
    "--kv-cache-dtype nvfp4": "--kv-cache-dtype nvfp4 changes what fits",
    "--quantization compressed-tensors": "--quantization compressed-tensors changes what fits",
    "--gpu-memory-utilization 1.5": "a part of the GPU, above 0 and at most 1, not 1.5",
    "--max-num-batched-tokens many": "must be a whole number, not many",
}


def test_what_is_not_modelled_is_said_by_page_and_command(tmp_path):
    file = tmp_path / "serve.sh"
    for words, sentence in REMARKED.items():
        text = f"vllm serve Qwen/Qwen3-8B {words}"
        assert sentence in answer(State(view="launch", paste=text)).picture
        file.write_text(text)
        err = io.StringIO()
        assert run(["memory", "--args", str(file)], io.StringIO(), io.StringIO(), err) == 0
        assert err.getvalue().count(sentence) == 1
    file.write_text("vllm serve Qwen/Qwen3-Next-80B-A3B-Instruct -tp 4")
    assert run(["memory", "--args", str(file)], io.StringIO(), io.StringIO(), err) == 2
    assert "Mamba or linear attention" in err.getvalue()
    assert "Mamba" in answer(State(view="launch", paste=file.read_text())).picture
    assert run(["tp", "--args", str(file)], io.StringIO(), io.StringIO(), io.StringIO()) == 0


def test_layers_with_a_window_keep_all_tokens_but_in_vllm_and_sglang():
    tokens = {}
    for framework in ("vllm", "sglang", "tensorrt-llm", "megatron-inference"):
        state = State(framework=framework, nodes=1, tp=1, pp=1, model="gpt-oss-20b")
        facts = server_facts(Context.of(state.changed({"served_share": "0.9"})))
        (stage,) = facts["stages"]
        tokens[framework] = facts["tokens"] * facts["token_bytes"] / stage["available_bytes"]
    assert tokens["vllm"] > 1.5
    assert tokens["sglang"] == pytest.approx(2 / 1.8, rel=1e-3)
    for framework in ("tensorrt-llm", "megatron-inference"):
        assert tokens[framework] == pytest.approx(1, abs=64 * 2**20 / GIB)


def test_deepep_takes_of_sglangs_default_and_counts_only_where_it_can_run():
    """3 GiB of an H200: 2 of its buffers in decode graphs, 1 of prefill graphs."""
    state = opened(f"{SGLANG} deepseek-ai/DeepSeek-V3 --tp 16 --nnodes 2 --moe-a2a-backend deepep")
    state = state.changed({"cluster": "dgx-h200"})
    shares = [
        server_facts(Context.of(state.changed(changes)))["share"]
        for changes in ({}, {"served_a2a": ""}, {"ep": 4}, {"ep": 4, "served_a2a": ""})
    ]
    assert [round(shares[1] - share, 3) for share in shares] == [0.021, 0, 0, 0]
    shown = [answer(state.changed({"view": "memory", "ep": size})).picture for size in (4, 16)]
    assert ['id="field-served_a2a"' in one for one in shown] == [False, True]


@pytest.mark.parametrize("preset", SERVERS)
def test_the_command_of_a_published_server_serves_as_it_does(preset):
    """To the token, where the name that the command leaves open is the model's."""
    out, err = io.StringIO(), io.StringIO()
    assert run(["emit", "--preset", preset], io.StringIO(), out, err) == 0, err.getvalue()
    state = State().changed(published(preset))
    again = opened(out.getvalue().replace("MODEL", "org/any"))
    again = again.changed({name: getattr(state, name) for name in ("model", "cluster")})
    assert server_facts(Context.of(again)) == server_facts(Context.of(state))
