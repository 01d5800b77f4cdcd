"""What can be written of a job, and what each target has no words for."""

from __future__ import annotations

from groups.errors import LayoutError

from .flags import MODEL

TARGETS: dict[str, tuple[str, ...]] = {
    "megatron": ("megatron", "megatron-pp-dp"),
    "nemo": ("megatron", "megatron-pp-dp"),
    "megatron-deepspeed": ("megatron-deepspeed", "deepspeed"),
    "megatron-deepspeed-bloom": ("megatron-deepspeed",),
    "deepspeed": ("deepspeed",),
    "torchtitan": ("torchtitan",),
    "torchtitan-main": ("torchtitan",),
    "torchtitan-toml": ("torchtitan",),
    "vllm": ("vllm",),
    "sglang": ("vllm",),
}
"""What can be written, and the frameworks of a Job that it makes."""

UNSAID: dict[str, tuple[str, ...]] = {
    "megatron": (),
    "nemo": (),
    "megatron-deepspeed": ("cp", "etp", "instances", "levels", "hybrid"),
    "megatron-deepspeed-bloom": ("cp", "ep", "etp", "instances", "levels", "hybrid"),
    "deepspeed": ("cp", "pp", "ep", "etp", "instances", "levels", "hybrid"),
    "torchtitan": ("instances", "levels", "hybrid"),
    "torchtitan-main": ("instances", "levels", "hybrid"),
    "torchtitan-toml": ("instances", "levels", "hybrid"),
    "vllm": ("ep", "etp", "instances", "levels", "hybrid"),
    "sglang": ("cp", "ep", "etp", "instances", "levels", "hybrid"),
}
"""What a target has no words for: DeepSpeed's stages and experts are Python, not configuration."""

_TITAN = ("micro_batch", "global_batch", "seq")
OF_MODEL: dict[str, tuple[str, ...]] = {
    "megatron": MODEL,
    "nemo": MODEL,
    "megatron-deepspeed": ("layers", "experts", "micro_batch", "global_batch", "seq"),
    "megatron-deepspeed-bloom": ("layers", "micro_batch", "global_batch", "seq", "account"),
    "deepspeed": ("micro_batch", "global_batch"),
    "torchtitan": _TITAN,
    "torchtitan-main": _TITAN,
    "torchtitan-toml": _TITAN,
    "vllm": ("seq",),
    "sglang": ("seq",),
}
"""Fields of the model that a target has options for; a comment names the others that are given."""

SILENT = {"levels": None, "hybrid": False}
"""What asks for nothing; of a size that is 1."""

NAMES = {
    "megatron": "Megatron-LM",
    "nemo": "Megatron-Bridge",
    "megatron-deepspeed": "Megatron-DeepSpeed",
    "megatron-deepspeed-bloom": "BigScience's Megatron-DeepSpeed",
    "deepspeed": "DeepSpeed's configuration",
    "torchtitan": "torchtitan",
    "torchtitan-main": "torchtitan",
    "torchtitan-toml": "torchtitan 0.2",
    "vllm": "vLLM",
    "sglang": "SGLang",
}


def cannot_express(target: str, what: str, control: str) -> LayoutError:
    return LayoutError(
        "framework-cannot-express",
        f"{NAMES[target]} has no words for {what}",
        why="its options and files do not reach every layout",
        control=control,
        facts={"framework": NAMES[target], "what": what},
    )
