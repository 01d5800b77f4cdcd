"""Entry points that only generate: engines on all GPUs, and nothing that is trained.

    verl       verl.trainer.main_generation     rollout.*, model.path, trainer.*
    NeMo-RL    examples/run_eval.py             generation.*, cluster.*, eval.*

Sources: volcengine/verl b178a3c verl/trainer/main_generation.py, config/generation.yaml;
NVIDIA-NeMo/RL 7ea279a examples/run_eval.py, examples/configs/evals/eval.yaml.
"""

from __future__ import annotations

from collections.abc import Mapping

from groups.notes import Note
from training.roles import Phase

from ..launch.sayings import Reading
from .build import Known, Sketch, plan_read, served
from .model import PlanRead
from .settings import RoleSettings

VERL = {
    "role": "rollout",
    "nodes": "trainer.nnodes",
    "each": "trainer.n_gpus_per_node",
    "engine": "rollout.name",
    "tp": "rollout.tensor_model_parallel_size",
    "pp": "rollout.pipeline_model_parallel_size",
    "model": "model.path",
    "share": "rollout.gpu_memory_utilization",
    "length": "rollout.max_model_len",
    "named": "main_generation",
}
NEMO_RL = {
    "role": "generation",
    "nodes": "cluster.num_nodes",
    "each": "cluster.gpus_per_node",
    "engine": "generation.backend",
    "tp": "generation.vllm_cfg.tensor_parallel_size",
    "pp": "generation.vllm_cfg.pipeline_parallel_size",
    "model": "generation.model_name",
    "share": "generation.vllm_cfg.gpu_memory_utilization",
    "length": "generation.vllm_cfg.max_model_len",
    "named": "eval",
}
ENGINES = {"vllm": "vllm", "sglang": "sglang"}


def generates_only(reading: Reading) -> bool:
    """Whether a text starts an entry point that only generates."""
    return bool(_words(reading))


def _words(reading: Reading) -> Mapping[str, str]:
    if "main_generation" in reading.text:
        return VERL
    names = {name for _, name in reading.settings}
    has_eval = any(name.startswith("eval.") for name in names)
    trains = any(name.startswith(("policy.", "grpo.", "sft.", "dpo.")) for name in names)
    return NEMO_RL if has_eval and not trains and NEMO_RL["tp"] in names else {}


def read_generation(settings: RoleSettings) -> PlanRead:
    """The engines of a job that only generates. Errors: LayoutError for what is left open."""
    words = _words(settings.reading)
    nodes, each = settings.count(words["nodes"], 1), settings.count(words["each"], 8)
    tp, pp = settings.count(words["tp"], 1), settings.count(words["pp"], 1, note="")
    engine = ENGINES.get(settings.word(words["engine"], default="vllm"), "vllm")
    name, gpus = words["role"], nodes * each
    more: dict[str, object] = {"dp": 1} if engine == "vllm" else {}
    job = served(settings, name, gpus, each, engine, tp=tp, pp=pp, **more)
    length = settings.count(words["length"], 1) if settings.text(words["length"]) else None
    known = Known.of_server(settings.named(words["model"]), length)
    known = known.also(served_share=settings.text(words["share"]))
    settings.note(Note("generation-only", {"what": words["named"]}))
    framework = "verl" if words is VERL else "nemo-rl"
    phases = (Phase("rollout", (name,)),)
    sketches = [Sketch(name, job, known=known)]
    return plan_read(framework, nodes, each, sketches, (name,), phases, settings.notes)
