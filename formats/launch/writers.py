"""The text of each target: options of a command, or a file with the command that reads it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from groups.errors import LayoutError, quoted
from groups.job import Job

from .flags import BOTH_ENDS, MODEL, OPTIONS


def _command(parts: list[str]) -> str:
    return " \\\n  ".join(parts)


def _torchrun(job: Job) -> list[str]:
    return ["torchrun", f"--nnodes {job.nodes}", f"--nproc-per-node {job.gpus_per_node}"]


def _options(values: Mapping[str, Any]) -> list[str]:
    """``--name value``; True is a switch, several values stand side by side."""
    found = []
    for name, value in values.items():
        if value is True:
            found.append(f"--{name}")
        elif value is not None:
            several = value if isinstance(value, (tuple, list)) else [value]
            found.append(" ".join([f"--{name}", *(shlex.quote(str(one)) for one in several)]))
    return found


def _megatron_options(job: Job, model: Mapping[str, Any]) -> dict[str, Any]:
    """What each option of Megatron-LM is of `BRIDGE`'s; None: it is left out."""
    has_layout = isinstance(model.get("layers"), str) and "t" in model["layers"]
    several = job.instances != 1
    said = {
        **{name: getattr(job, name) for name in ("tp", "pp", "cp", "ep", "etp")},
        **{"levels": tuple(job.levels or ()) or None, "hybrid": job.hybrid or None},
        **{"distributed_optimizer": several or None, "instances": job.instances * several or None},
        **{"mapping": job.framework == "megatron-pp-dp" or None},
        **{**model, **dict.fromkeys(("embedding", "loss"), True if model.get("account") else None)},
        **({"layout": model["layers"], "layers": None, "vpp": None} if has_layout else {}),
    }
    return {option: said.get(OPTIONS[option].field) for option in BRIDGE}


def _megatron(job: Job, model: Mapping[str, Any]) -> str:
    options = _options(_megatron_options(job, model))
    return _command([*_torchrun(job), "pretrain_gpt.py", *options])


def _megatron_deepspeed(job: Job, model: Mapping[str, Any]) -> str:
    """DeepSpeed's fork, which has experts."""
    wanted = _megatron_options(job, model)
    wanted["moe-expert-parallel-size"] = job.ep if job.ep > 1 else None
    return _deepspeed_command(
        job, model, wanted, ("moe-expert-parallel-size", "num-layers", "num-experts")
    )


def _megatron_deepspeed_bloom(job: Job, model: Mapping[str, Any]) -> str:
    """BigScience's fork, which may count embedding and loss as a layer each."""
    wanted = _megatron_options(job, model)
    wanted["pp-partition-method"] = BOTH_ENDS if model.get("account") else None
    return _deepspeed_command(job, model, wanted, ("num-layers", "pp-partition-method"))


def _deepspeed_command(
    job: Job, model: Mapping[str, Any], wanted: Mapping[str, Any], own: tuple[str, ...]
) -> str:
    if wanted["pipeline-model-parallel-layout"]:
        what = f"the layout {quoted(model['layers'])}"
        raise cannot_express("Megatron-DeepSpeed", what, "layers")
    sizes = ("tensor-model-parallel-size", "pipeline-model-parallel-size")
    batches = ("micro-batch-size", "global-batch-size", "seq-length")
    options = _options({name: wanted[name] for name in (*sizes, *own, *batches)})
    launcher = ["deepspeed", f"--num_nodes {job.nodes}", f"--num_gpus {job.gpus_per_node}"]
    return _command([*launcher, "pretrain_gpt.py", "--deepspeed", *options])


def _deepspeed(job: Job, model: Mapping[str, Any]) -> str:
    sizes = {
        "train_batch_size": model.get("global_batch"),
        "train_micro_batch_size_per_gpu": model.get("micro_batch"),
    }
    config: dict[str, Any] = {name: size for name, size in sizes.items() if size}
    config["tensor_parallel"] = {"autotp_size": job.tp}
    launcher = ["deepspeed", f"--num_nodes {job.nodes}", f"--num_gpus {job.gpus_per_node}"]
    command = _command([*launcher, "train.py", "--deepspeed_config ds_config.json"])
    return _file("ds_config.json", json.dumps(config, indent=2)) + command


def _torchtitan_degrees(job: Job, model: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    parallelism = {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": -1,
        "context_parallel_degree": job.cp,
        "tensor_parallel_degree": job.tp,
        "pipeline_parallel_degree": job.pp,
        "expert_parallel_degree": job.ep,
    }
    training = {}
    if "micro_batch" in model and job.pp > 1:
        parallelism["pipeline_parallel_microbatch_size"] = model["micro_batch"]
    elif "micro_batch" in model:
        training["local_batch_size"] = model["micro_batch"]
    for name, key in (("global_batch", "global_batch_size"), ("seq", "seq_len")):
        if name in model:
            training[key] = model[name]
    return {"parallelism": parallelism, "training": training}


RECIPE = ["--module llama3", "--config llama3_8b"]
"""What torchtitan takes the model from since it has no files of its own; put your recipe there."""


def _torchtitan(job: Job, model: Mapping[str, Any]) -> str:
    """The options of 0.3."""
    return _titan_command(job, _torchtitan_degrees(job, model))


def _torchtitan_main(job: Job, model: Mapping[str, Any]) -> str:
    """The options after 0.3 (b5bcd76), which count tokens and pipeline micro-batches."""
    sections = _torchtitan_degrees(job, {})
    sequence, micro = model.get("seq"), model.get("micro_batch")
    if sequence:
        sections["training"]["max_context_length"] = sequence
        if micro:
            sections["training"]["num_tokens_per_microbatch_per_dp_rank"] = micro * sequence
        if "global_batch" in model:
            sections["training"]["num_tokens_per_train_step"] = model["global_batch"] * sequence
    count, left = divmod(model.get("global_batch", 0), _replicas(job) * (micro or 1))
    if job.pp > 1 and micro and count and not left:
        sections["parallelism"]["num_pp_microbatches"] = count
    return _titan_command(job, sections)


def _titan_command(job: Job, sections: Mapping[str, Mapping[str, int]]) -> str:
    options = [
        f"--{section}.{name}={size}"
        for section, sizes in sections.items()
        for name, size in sizes.items()
    ]
    return _command([*_torchrun(job), "-m torchtitan.train", *RECIPE, *options])


def _torchtitan_toml(job: Job, model: Mapping[str, Any]) -> str:
    lines = []
    for section, sizes in _torchtitan_degrees(job, model).items():
        if sizes:
            lines += [f"[{section}]", *(f"{name} = {size}" for name, size in sizes.items()), ""]
    run = [*_torchrun(job), "-m torchtitan.train", "--job.config_file layout.toml"]
    return _file("layout.toml", "\n".join(lines).rstrip()) + _command(run)


def _nemo(job: Job, model: Mapping[str, Any]) -> str:
    wanted = _megatron_options(job, model)
    overrides = []
    for option, key in BRIDGE.items():
        value = wanted[option]
        if value is None:
            continue
        text = str(value).lower() if value is True else str(value)
        if isinstance(value, tuple):
            text = f"[{','.join(map(str, value))}]"
        overrides.append(shlex.quote(f"{key}={text}"))
    return _command([*_torchrun(job), "scripts/training/run_recipe.py", BRIDGE_RECIPE, *overrides])


def _vllm(job: Job, model: Mapping[str, Any]) -> str:
    """A server of all GPUs; its data parallel size is what remains."""
    sizes = {
        "nnodes": job.nodes,
        "tensor-parallel-size": job.tp,
        "pipeline-parallel-size": job.pp,
        "prefill-context-parallel-size": job.cp,
        "data-parallel-size": _replicas(job),
        "max-model-len": model.get("seq"),
    }
    return _command(["vllm serve MODEL", *_options(sizes)])


def _sglang(job: Job, model: Mapping[str, Any]) -> str:
    sizes = {
        "nnodes": job.nodes,
        "tp-size": job.tp,
        "pp-size": job.pp,
        "dp-size": _replicas(job),
        "context-length": model.get("seq"),
    }
    command = "python -m sglang.launch_server --model-path MODEL"
    return _command([command, *_options(sizes)])


def _replicas(job: Job) -> int:
    return job.nodes * job.gpus_per_node // (job.tp * job.cp * job.pp)


def _file(name: str, text: str) -> str:
    return f"cat > {name} <<'EOF'\n{text}\nEOF\n"


BRIDGE_RECIPE = "--recipe llama32_1b_pretrain_1gpu_h100_bf16_config"
"""Bridge starts from a recipe (067f987 scripts/training/run_recipe.py); put yours there."""

BRIDGE = {
    "tensor-model-parallel-size": "model.tensor_model_parallel_size",
    "pipeline-model-parallel-size": "model.pipeline_model_parallel_size",
    "context-parallel-size": "model.context_parallel_size",
    "expert-model-parallel-size": "model.expert_model_parallel_size",
    "expert-tensor-parallel-size": "model.expert_tensor_parallel_size",
    "hierarchical-context-parallel-sizes": "model.hierarchical_context_parallel_sizes",
    "hybrid-context-parallel": "model.hybrid_context_parallel",
    "use-distributed-optimizer": "ddp.use_distributed_optimizer",
    "num-distributed-optimizer-instances": "ddp.num_distributed_optimizer_instances",
    "use-tp-pp-dp-mapping": "dist.use_tp_pp_dp_mapping",
    "pipeline-model-parallel-layout": "model.pipeline_model_parallel_layout",
    "num-layers": "model.num_layers",
    "num-virtual-stages-per-pipeline-rank": "model.virtual_pipeline_model_parallel_size",
    "decoder-first-pipeline-num-layers": "model.num_layers_in_first_pipeline_stage",
    "decoder-last-pipeline-num-layers": "model.num_layers_in_last_pipeline_stage",
    "account-for-embedding-in-pipeline-split": "model.account_for_embedding_in_pipeline_split",
    "account-for-loss-in-pipeline-split": "model.account_for_loss_in_pipeline_split",
    "mtp-num-layers": "model.mtp_num_layers",
    "num-experts": "model.num_moe_experts",
    "micro-batch-size": "train.micro_batch_size",
    "global-batch-size": "train.global_batch_size",
    "seq-length": "dataset.seq_length",
}
"""Megatron-Bridge's key of each option of Megatron-LM."""


def cannot_express(target: str, what: str, control: str) -> LayoutError:
    return LayoutError(
        "framework-cannot-express",
        f"{target} has no words for {what}",
        control=control,
        facts={"framework": target, "what": what},
    )


@dataclass(frozen=True)
class Target:
    """What a job can be written for.

    frameworks: those of a Job that it makes. unsaid: fields of a Job that it has no words for;
    DeepSpeed's stages and experts are Python, not configuration. of_model: fields of `MODEL` that
    it has options for; a comment names the others that are given.
    """

    name: str
    write: Callable[[Job, Mapping[str, Any]], str]
    frameworks: tuple[str, ...]
    unsaid: tuple[str, ...] = ()
    of_model: tuple[str, ...] = MODEL


_PLAIN = ("instances", "levels", "hybrid")
_BATCH = ("micro_batch", "global_batch", "seq")
_TITAN = (("torchtitan",), _PLAIN, _BATCH)
_OF_MEGATRON = ("megatron", "megatron-pp-dp")
TARGETS: dict[str, Target] = {
    "megatron": Target("Megatron-LM", _megatron, _OF_MEGATRON),
    "nemo": Target("Megatron-Bridge", _nemo, _OF_MEGATRON),
    "megatron-deepspeed": Target(
        "Megatron-DeepSpeed",
        _megatron_deepspeed,
        ("megatron-deepspeed", "deepspeed"),
        ("cp", "etp", *_PLAIN),
        ("layers", "experts", *_BATCH),
    ),
    "megatron-deepspeed-bloom": Target(
        "BigScience's Megatron-DeepSpeed",
        _megatron_deepspeed_bloom,
        ("megatron-deepspeed",),
        ("cp", "ep", "etp", *_PLAIN),
        ("layers", *_BATCH, "account"),
    ),
    "deepspeed": Target(
        "DeepSpeed's configuration",
        _deepspeed,
        ("deepspeed",),
        ("cp", "pp", "ep", "etp", *_PLAIN),
        ("micro_batch", "global_batch"),
    ),
    "torchtitan": Target("torchtitan", _torchtitan, *_TITAN),
    "torchtitan-main": Target("torchtitan", _torchtitan_main, *_TITAN),
    "torchtitan-toml": Target("torchtitan 0.2", _torchtitan_toml, *_TITAN),
    "vllm": Target("vLLM", _vllm, ("vllm",), ("ep", "etp", *_PLAIN), ("seq",)),
    "sglang": Target("SGLang", _sglang, ("vllm",), ("cp", "ep", "etp", *_PLAIN), ("seq",)),
}
"""What can be written, by a stable id."""
