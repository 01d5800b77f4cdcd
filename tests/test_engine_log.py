# ruff: noqa: E501 -- lines as engines print them
"""What servers print of their memory as they start."""

from __future__ import annotations

import pytest

from formats.logs.engine import read_engine
from groups import LayoutError

GIB = 2**30

LOGS = {
    "vLLM 0.31": (
        """(EngineCore pid=326) INFO 10-06 17:00:11 [model_runner.py:407] Model loading took 15.0 GiB memory and 5.4 seconds
(EngineCore pid=326) INFO 10-06 17:00:33 [gpu_worker.py:692] Available KV cache memory: 56.21 GiB
(EngineCore pid=326) INFO [kv_cache_utils.py:2464] GPU KV cache size: 460,496 tokens, Maximum concurrency for 131,072 tokens per request: 3.51x
(EngineCore pid=326) INFO [gpu_worker.py:955] Free memory on device (78.84/79.25 GiB) on startup. Desired GPU memory utilization is (0.92, 72.91 GiB). Actual usage is 15.26 GiB for consumed memory (weights + non-torch), 1.44 GiB for peak activation, and 0.23 GiB for CUDAGraph memory.""",
        {"engine": "vllm", "tokens": 460_496, "length": 131_072, "requests": 3.51, "share": 0.92},
        ("", {"cache": 56.21, "weights": 15.0, "activations": 1.44, "graphs": 0.23, "total": 79.25}),
    ),
    "vLLM 0.6, one rank of two": (
        """(VllmWorkerProcess pid=1786) INFO worker.py:267] the current vLLM instance can use total_gpu_memory (23.08GiB) x gpu_memory_utilization (0.98) = 22.62GiB
(VllmWorkerProcess pid=1786) INFO worker.py:267] model weights take 13.95GiB; non_torch_memory takes 0.25GiB; PyTorch activation peak memory takes 0.19GiB; the rest of the memory reserved for KV Cache is 7.47GiB.
INFO worker.py:267] model weights take 13.95GiB; non_torch_memory takes 0.25GiB; PyTorch activation peak memory takes 0.19GiB; the rest of the memory reserved for KV Cache is 8.69GiB.
INFO # cuda blocks: 5096, # CPU blocks: 2730
ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (81536). Try increasing""",
        {"engine": "vllm", "tokens": 81_536, "blocks": 5096, "length": 131_072, "share": 0.98,
         "tokens_of_block": 16},
        ("1786", {"cache": 7.47, "weights": 13.95, "activations": 0.19, "outside": 0.25}),
    ),
    "vLLM, workers by name": (
        """(Worker_TP2_EP2 pid=2080) INFO [gpu_worker.py:298] Available KV cache memory: 10.65 GiB
(Worker_TP3_EP3 pid=2081) INFO [gpu_worker.py:298] Available KV cache memory: 10.60 GiB
(EngineCore_DP0 pid=1944) INFO [kv_cache_utils.py:864] GPU KV cache size: 238,208 tokens
(EngineCore_DP0 pid=1944) INFO Maximum concurrency for 32,768 tokens per request: 7.27x""",
        {"engine": "vllm", "tokens": 238_208, "length": 32_768, "requests": 7.27},
        ("TP3 EP3", {"cache": 10.60}),
    ),
    "vLLM, not one request": (
        """ValueError: To serve at least one request with the models's max seq len (221000), (10.12 GiB KV cache is needed, which is larger than the available KV cache memory (5.59 GiB). Based on the available memory, the estimated maximum model length is 122080.
Available KV cache memory: 5.59 GiB""",
        {"engine": "vllm", "length": 221_000, "needed": 10.12 * GIB, "longest": 122_080},
        ("", {"cache": 5.59}),
    ),
    "SGLang": (
        """[2026-07-15 13:14:53] Load weight end. elapsed=19.09 s, type=Qwen3MoeForCausalLM, avail mem=230.20 GB, mem usage=56.98 GB.
[2026-07-15 13:14:54] KV Cache is allocated. dtype: torch.bfloat16, #tokens: 1669816, K size: 76.44 GB, V size: 76.44 GB
[2026-07-15 13:14:58] max_total_num_tokens=1669816, chunked_prefill_size=16384, max_running_requests=4096, context_len=262144, available_gpu_mem=17.22 GB""",
        {"engine": "sglang", "tokens": 1_669_816, "length": 262_144},
        ("", {"cache": 152.88, "weights": 56.98}),
    ),
    "SGLang, MLA on dp ranks": (
        """[2025-10-07 23:17:19 DP0 TP0] KV Cache is allocated. #tokens: 975424, KV size: 43.67 GB
[2025-10-07 23:17:19 DP1 TP1] KV Cache is allocated. #tokens: 975424, KV size: 43.70 GB""",
        {"engine": "sglang", "tokens": 975_424},
        ("DP0 TP0", {"cache": 43.67}),
    ),
    "TensorRT-LLM": (
        "[TensorRT-LLM][INFO] [MemUsageChange] Allocated 41.15 GiB for max tokens in paged KV cache (337088).",
        {"engine": "tensorrt-llm", "tokens": 337_088},
        ("", {"cache": 41.15}),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOGS)
def test_what_an_engine_prints_is_read(name):
    text, facts, (rank, amounts) = LOGS[name]
    log = read_engine("noise before\n" + text + "\nand behind: 5 tokens")
    assert {fact: getattr(log, fact) for fact in facts} == facts
    assert log.deciding.name == rank
    for amount, gib in amounts.items():
        assert getattr(log.deciding, amount) / GIB == pytest.approx(gib)


def test_a_text_without_such_lines_is_no_log_of_a_server():
    assert read_engine("loss 2.31, 5 tokens\n[rank3]: Watchdog caught") is None
    assert read_engine("") is None


def test_a_text_without_end_is_refused_by_name():
    with pytest.raises(LayoutError) as refused:
        read_engine("x" * 2_000_001)
    assert refused.value.control == "engine_log"
