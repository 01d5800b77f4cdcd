"""The options or the file that ask a framework for a layout.

A framework can say a job if it numbers the ranks alike: `emit` makes the job that the framework
would make and compares the meshes.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.conventions import CONVENTIONS
from groups.errors import LayoutError, not_a_choice, quoted
from groups.job import MEGATRONS, Job, Made
from groups.mesh import Mesh

from .flags import BOTH_ENDS, MODEL

TARGETS: dict[str, tuple[str, ...]] = {
    "megatron": ("megatron", "megatron-pp-dp"),
    "nemo": ("megatron", "megatron-pp-dp"),
    "megatron-deepspeed": ("megatron-deepspeed", "deepspeed"),
    "megatron-deepspeed-bloom": ("megatron-deepspeed",),
    "deepspeed": ("deepspeed",),
    "torchtitan": ("torchtitan",),
    "torchtitan-main": ("torchtitan",),
    "torchtitan-toml": ("torchtitan",),
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
}
"""Fields of the model that a target has options for; a comment names the others that are given."""


def emit(job: Job, model: Mapping[str, Any] | None = None, framework: str = "megatron") -> str:
    """The text that asks for a job, one option a line; `parse` reads it back.

    model: fields of `flags.MODEL`; what a framework does not take from its options, such as
    torchtitan its layers, stands in a comment. Options that a run needs besides are left out: data,
    addresses. Where a recipe is needed, one is named; put your own there.

    >>> print(emit(Job(nodes=2, tp=4, pp=2), {"layers": 32}))
    torchrun \\
      --nnodes 2 \\
      --nproc-per-node 8 \\
      pretrain_gpt.py \\
      --tensor-model-parallel-size 4 \\
      --pipeline-model-parallel-size 2 \\
      --context-parallel-size 1 \\
      --expert-model-parallel-size 1 \\
      --num-layers 32

    Errors: LayoutError if the job cannot be, if the framework is none of TARGETS, or if it cannot
    say the job ("framework-cannot-express").
    """
    if framework not in TARGETS:
        raise not_a_choice("framework", framework, TARGETS)
    given = _given(model or {})
    written = _WRITERS[framework](_as_told(job, framework), given)
    unsaid = {
        name: given[name] for name in MODEL if name in given and name not in _said(framework, given)
    }
    if not unsaid:
        return written
    listed = ", ".join(f"{name} {quoted(value)}" for name, value in unsaid.items())
    return f"# {NAMES[framework]} has no option for {listed}\n{written}"


def _said(target: str, model: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of a model that a target says; tokens are counted only with a sequence."""
    return () if target == "torchtitan-main" and "seq" not in model else OF_MODEL[target]


def _given(model: Mapping[str, Any]) -> dict[str, Any]:
    """What the model says: 0 is a number, but None, False and an empty text say nothing."""
    return {
        name: value for name, value in model.items() if value or (value == 0 and value is not False)
    }


def _as_told(job: Job, target: str) -> Job:
    """The same layout as a job of a framework that the target makes."""
    made = job.made()
    for name in UNSAID[target]:
        value = getattr(job, name)
        silent = (None, job.tp) if name == "etp" else (SILENT.get(name, 1),)
        if value not in silent and value != ():
            raise _cannot(target, f"{name} {_shown(value)}", name)
    last: LayoutError | None = None
    differs = False  # in the experts only
    frameworks = sorted(TARGETS[target], key=lambda name: name != job.framework)
    for framework in frameworks:
        other = replace(job, framework=framework, etp=_etp(job, made, framework))
        try:
            found = other.made()
        except LayoutError as error:
            last = error
            continue
        if _above_one(made.mesh) != _above_one(found.mesh):
            continue
        if _experts_alike(made, found, job):
            return other
        differs = True
    if last is not None and last.control in ("cp", "ep", "etp", "pp"):
        control = last.control
        raise _cannot(target, f"{control} {_shown(getattr(job, control))}", control)
    if differs and made.expert is not None:
        raise _cannot(target, f"etp {job.tp if job.etp is None else job.etp}", "etp")
    order = job.order if job.framework not in CONVENTIONS else CONVENTIONS[job.framework].order
    raise _cannot(target, f"the order {order}", "order")


def _etp(job: Job, made: Made, framework: str) -> int | None:
    """The expert tensor parallel size, in a framework that may mean another one by none."""
    if framework not in MEGATRONS:
        return None if job.ep == 1 else job.etp if job.framework in MEGATRONS else None
    if job.framework in MEGATRONS or made.expert is None or job.ep == 1:
        return job.etp
    size = made.expert.size("etp" if "etp" in made.expert.names else "tp")
    return None if size == job.tp else size


def _experts_alike(one: Made, other: Made, job: Job) -> bool:
    """Whether both spread the experts alike, if there are any."""
    if job.ep == 1 and job.etp in (None, job.tp):
        return True
    if one.expert is None or other.expert is None:
        return one.expert is other.expert
    return _above_one(one.expert) == _above_one(other.expert)


def _above_one(mesh: Mesh) -> list[tuple[str, int]]:
    """What numbers the ranks: the axes above 1, in their order."""
    return [(axis.name, axis.size) for axis in mesh.axes if axis.size > 1]


def _shown(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _cannot(target: str, what: str, control: str) -> LayoutError:
    return LayoutError(
        "framework-cannot-express",
        f"{NAMES[target]} has no words for {what}",
        why="its options and files do not reach every layout",
        control=control,
        facts={"framework": NAMES[target], "what": what},
    )


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
}


# -- writers -------------------------------------------------------------------------------------


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
    has_layout = isinstance(model.get("layers"), str) and "t" in model["layers"]
    account = True if model.get("account") else None
    levels = tuple(job.levels) if job.levels else None
    return {
        "tensor-model-parallel-size": job.tp,
        "pipeline-model-parallel-size": job.pp,
        "context-parallel-size": job.cp,
        "expert-model-parallel-size": job.ep,
        "expert-tensor-parallel-size": job.etp,
        "hierarchical-context-parallel-sizes": levels,
        "hybrid-context-parallel": True if job.hybrid else None,
        "use-distributed-optimizer": True if job.instances != 1 else None,
        "num-distributed-optimizer-instances": job.instances if job.instances != 1 else None,
        "use-tp-pp-dp-mapping": True if job.framework == "megatron-pp-dp" else None,
        "pipeline-model-parallel-layout": model["layers"] if has_layout else None,
        "num-layers": None if has_layout else model.get("layers"),
        "num-virtual-stages-per-pipeline-rank": None if has_layout else model.get("vpp"),
        "decoder-first-pipeline-num-layers": model.get("first"),
        "decoder-last-pipeline-num-layers": model.get("last"),
        "account-for-embedding-in-pipeline-split": account,
        "account-for-loss-in-pipeline-split": account,
        "mtp-num-layers": model.get("mtp"),
        "num-experts": model.get("experts"),
        "micro-batch-size": model.get("micro_batch"),
        "global-batch-size": model.get("global_batch"),
        "seq-length": model.get("seq"),
    }


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
        raise _cannot("megatron-deepspeed", what, "layers")
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
    replicas = job.nodes * job.gpus_per_node // (job.tp * job.cp * job.pp)
    count, left = divmod(model.get("global_batch", 0), replicas * (micro or 1))
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

_WRITERS = {
    "megatron": _megatron,
    "nemo": _nemo,
    "megatron-deepspeed": _megatron_deepspeed,
    "megatron-deepspeed-bloom": _megatron_deepspeed_bloom,
    "deepspeed": _deepspeed,
    "torchtitan": _torchtitan,
    "torchtitan-main": _torchtitan_main,
    "torchtitan-toml": _torchtitan_toml,
}
