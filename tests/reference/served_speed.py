"""Rows of measured servers, put to the product: `answer` gives the milliseconds of a token.

A row is one of tests/data/serving_speeds.csv.xz, all of whose values are texts. Nothing is worked
out here: this file says only how a row is asked.

    precision      fp4 is NVFP4, of GPT-OSS MXFP4; where it is unknown, that of the checkpoint
    attention dp   tp is a part's, where tp x dp is all GPUs; NVIDIA's own comparisons give requests
                   for each part (source_id "aic:gap")
    cache          16 bits: no row says it
    requests       those that fit at once, where a row asks for more: the others wait
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from groups.errors import LayoutError
from groups.layout import Job
from training.clusters import machine_of
from training.errors import refusal
from training.models import MODELS
from training.serving.asked import AskedServer
from training.serving.placed import cut_of, engine_of
from training.serving.server import Serving, server_memory
from training.serving.speed import server_speed
from training.serving.work import Load, requests_within

Row = Mapping[str, str]

ENGINES = {"trtllm": "tensorrt-llm"}

NAMES = {
    "deepseekv32": "deepseek-v3.2",
    "deepseekr1": "deepseek-v3",
    "deepseekv3": "deepseek-v3",
    **{f"llama{version}8b": "llama3-8b" for version in ("3", "31")},
    **{f"llama{version}70b": "llama3-70b" for version in ("3", "31", "33", "v33")},
    **{f"llama{version}405b": "llama3-405b" for version in ("3", "31")},
    "llama4scout": "llama4-scout",
    "llama4maverick": "llama4-maverick",
    "minimaxm2": "minimax-m2",
    "qwen306b": "qwen3-0.6b",
    "qwen38b": "qwen3-8b",
    "qwen314b": "qwen3-14b",
    "qwen332b": "qwen3-32b",
    "qwen330ba3b": "qwen3-30b-a3b",
    "qwen3235b": "qwen3-235b-a22b",
    "qwen3vl235b": "qwen3-235b-a22b",
    "qwen3codernext": "qwen3-next-80b-a3b",
    "qwen3next80b": "qwen3-next-80b-a3b",
    "qwen35397b": "qwen3.5-397b-a17b",
    "qwen3535b": "qwen3.5-35b-a3b",
    "qwen2572b": "qwen2.5-72b",
    "qwen25vl72b": "qwen2.5-72b",
    "qwen2532b": "qwen2.5-32b",
    "gptoss120b": "gpt-oss-120b",
    "gptoss20b": "gpt-oss-20b",
    "glm45air": "glm-4.5-air",
    "glm45": "glm-4.5",
    "glm46": "glm-4.5",
    "glm5": "glm-5",
    "kimik25": "kimi-k2.5",
    "kimik26": "kimi-k2.5",
    "kimik2": "kimi-k2",
    "kimilinear": "kimi-linear",
    "gemma426b": "gemma-4-26b-a4b",
    "gemma431b": "gemma-4-31b",
    "gemma327b": "gemma-3-27b",
    "ernie4521b": "ernie-4.5-21b-a3b",
    "nvidianemotron3nano30b": "nemotron-3-nano-30b-a3b",
    "nemotron3nano30b": "nemotron-3-nano-30b-a3b",
    "mixtral8x7b": "mixtral-8x7b",
    "mixtral8x22b": "mixtral-8x22b",
    "seedoss36b": "seed-oss-36b",
    "phi4": "phi-4",
}
"""Ids of models by how the names of checkpoints begin, without signs; the longest one counts."""

FORMATS = {"fp8": "fp8", "bf16": "bf16", "int4": "int4", "fp4": "nvfp4"}


def answer(row: Row) -> dict[str, float]:
    """Milliseconds of a token, and the interval.

    Errors: LayoutError for what is not worked out.
    """
    server, load = asked(row)
    speed = server_speed(server, load)
    return {
        "tpot_ms": 1e3 * speed.seconds,
        "low": 1e3 * speed.low,
        "high": 1e3 * speed.high,
    }


def asked(row: Row) -> tuple[AskedServer, Load]:
    """The server of a row, and its requests.

    Errors: LayoutError for a row that does not say what is asked, and for an unknown model, GPU or
    layout.
    """
    if row["mode"].startswith("disaggregated"):
        raise refusal("speed-of-pairs", "roles")
    name = model_id(row["model"])
    model, machine = MODELS[name].model, machine_of(row["gpu"])
    tp, pp, dp = (int(float(_stated(row, size))) for size in ("tp", "pp", "attn_dp"))
    gpus = int(float(row["gpus"] or tp * pp * dp))
    if dp > 1 and tp * pp == gpus:
        tp //= dp
    engine = ENGINES.get(row["engine"], row["engine"])
    sizes = _sizes(engine, tp, dp, bool(model.experts), row)
    layout = Job(nodes=1, gpus_per_node=tp * pp * dp, framework=engine, pp=pp, **sizes).layout()
    weights = _weights(row, name)
    server = AskedServer(
        model,
        cut_of(layout, model),
        machine,
        engine_of(layout.framework),
        weights,
        parts=dp,
        domain=machine.domain_of(8),
        name=name,
        speculative=row["spec_decode"].startswith(("yes", "mtp")),
    )
    requests = float(_stated(row, "concurrency"))
    if row["source_id"].startswith("aic:gap"):
        requests *= dp
    load = Load(requests, float(_stated(row, "isl")), float(_stated(row, "osl")))
    return server, _fitting(server, load)


def _fitting(server: AskedServer, load: Load) -> Load:
    """The requests that are answered at once: no more than fit, where that is known."""
    length = int(load.prompt + load.answer)
    serving = Serving(
        *(server.engine, server.weights, server.cache),
        length=length,
    )
    total = server.machine.seen
    try:
        memory = server_memory(
            server.model, server.cut, serving, total, ranks=server.gpus, attention_dp=server.parts
        )
    except LayoutError:
        return load
    return replace(load, requests=min(load.requests, requests_within(memory, load, server.parts)))


def model_id(name: str) -> str:
    """The id of a checkpoint's model. Errors: LayoutError for one that is not known."""
    plain = re.sub("[^a-z0-9]", "", name.split("/")[-1].lower()).removeprefix("meta")
    known = [start for start in NAMES if plain.startswith(start)]
    if not known:
        raise LayoutError("unknown-model", f"{name} is not a known model", control="model")
    return NAMES[max(known, key=len)]


def _sizes(engine: str, tp: int, dp: int, has_experts: bool, row: Row) -> dict[str, int | bool]:
    ep = int(float(row["ep"] or 1))
    if engine == "vllm":
        sizes: dict[str, int | bool] = {"tp": tp, "dp": dp}
        return sizes | ({"expert_parallel": ep > 1} if has_experts else {})
    sizes = {"tp": tp * dp} | ({"dp": dp} if dp > 1 else {})
    return sizes | ({"ep": ep} if has_experts and tp * dp % ep == 0 else {})


def _weights(row: Row, model: str) -> str:
    own, precision = MODELS[model].weights, row["precision"].lower()
    found = next((form for text, form in FORMATS.items() if precision.startswith(text)), None)
    if own == "mxfp4" and found in (None, "nvfp4", "bf16"):
        return own
    if found is None and precision != "unknown":
        raise LayoutError("unknown-precision", f"{precision} is not a format", control="weights")
    return found or own


def _stated(row: Row, name: str) -> str:
    try:
        float(row[name])
    except ValueError:
        raise LayoutError("not-stated", f"{name} is not stated", control=name) from None
    return row[name]
