"""Writes the options or the file that make a framework start a layout.

A framework can say a job if it numbers the ranks alike: `emit` makes the job that the framework
would make and compares the meshes. What a target's options and keys set is what the reader takes
them for, so that what is written is read back; tables/targets.toml lists them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import tomlkit
import yaml

from groups.errors import LayoutError, not_a_choice, quoted
from groups.frameworks import framework_of
from groups.layout import Job, Layout
from groups.mesh import Mesh
from groups.stages.layout_strings import is_layout

from ..errors import refusal
from ..values import Document, Facts
from .counts import chunks_of, in_tokens, local_batch
from .flags import BOTH_ENDS, LEADS_TO, MODEL, OPTIONS
from .starts import CHECKS, shared_layers, what_stops
from .targets import TARGETS, File, Target

SILENT = {"levels": None, "dp": None, "hpz": None, "engram": "none"} | dict.fromkeys(
    ("hybrid", "gathers", "expert_parallel"), False
)
"""Values that need no option; for sizes, 1."""


def emit(job: Job, model: Facts | None = None, framework: str = "megatron") -> str:
    """The text that starts a job, one option per line; `parse` reads it back.

    model: fields of `flags.MODEL` and `flags.TRAINING`. Fields that a framework has no option for,
    such as torchtitan's layers, and errors with which the program would stop, become comments.
    Other options that a run needs are left out: data, addresses. A word in capitals is a
    placeholder for an unknown model or recipe; a comment says what to fill in.

    >>> print(emit(Job(nodes=2, tp=4, pp=2), {"layers": 32, "hidden": 64, "heads": 8, "seq": 512}))
    CUDA_DEVICE_MAX_CONNECTIONS=1 torchrun \\
      --nnodes 2 \\
      --nproc-per-node 8 \\
      pretrain_gpt.py \\
      --tensor-model-parallel-size 4 \\
      --pipeline-model-parallel-size 2 \\
      --context-parallel-size 1 \\
      --expert-model-parallel-size 1 \\
      --num-layers 32 \\
      --hidden-size 64 \\
      --num-attention-heads 8 \\
      --micro-batch-size 1 \\
      --seq-length 512 \\
      --max-position-embeddings 512

    Errors: LayoutError if the job cannot be, if the framework is none of TARGETS, or if it cannot
    say the job ("framework-cannot-express").
    """
    if framework not in TARGETS:
        raise not_a_choice("framework", framework, TARGETS)
    return emitted(job.layout(), model, framework)


COMMENTS = {
    "to_fill_in": "to fill in: {names}",
    "of_a_model": ", of a model with {sizes}",
    "on_others": "on every node but the first add {option}",
    "version": "{version}'s words; other versions may differ",
}
"""Comments about what the reader must do; the page has them in its own language."""


def emitted(
    layout: Layout,
    model: Facts | None,
    framework: str,
    comments: Mapping[str, str] = COMMENTS,
) -> str:
    """`emit` for a layout that exists already."""
    target, options = TARGETS[framework], _options_present(model or {})
    job = _job_of_target(layout, target)
    text, written = _text(target, job, options)
    unwritten = [name for name in _unwritten(target, options, written) if not target.serves]
    listed = ", ".join(_in_words(name, options[name]) for name in unwritten)
    known = {**target.of_recipe, **(model or {}), **options}
    program = target.id if target.id in CHECKS else target.makes[0]
    stop = what_stops(program, job, known) if program in CHECKS else ""
    version = target.version_of(text)
    lines = (
        comments["version"].format(version=version) if version else "",
        f"{target.name} does not start so: {stop}" if stop else "",
        f"{target.name} has no option for {listed}" if listed else "",
        to_fill_in(target, job, options, comments),
        *(comments["on_others"].format(option=option) for option in _behind_head(target, job)),
    )
    return "".join(f"# {comment}\n" for comment in lines if comment) + text


def _behind_head(target: Target, job: Job) -> list[str]:
    return [part.behind_head for part in target.parts if part.behind_head and job.nodes > 1]


def _unwritten(target: Target, options: Facts, written: set[str]) -> list[str]:
    """Options of a model and its training that a target cannot express."""
    fields = target.fields.values()
    known = set(written)
    if options.get("zero") in (0, 1) and "distributed_optimizer" in fields:
        known.add("zero")
    known |= _of_engine(target, options, written)
    if "mixed" in known:
        known |= {"fp16"} if "mixed" in target.words else {"fp16", "fp8", "products"}
    if "mixed_param" in known or "bf16" in fields:  # silence is FP32
        known.add("fp32")
    return [name for name in IN_COMMENTS if name in options and name not in known]


def _of_engine(target: Target, options: Facts, written: set[str]) -> set[str]:
    """Options of data parallelism that a target's own expresses, or its words for another one."""
    engine = engine_of(target, options)
    if engine == "ddp" and {"distributed_type", "shard"} & {*target.fields.values()}:
        return {"engine", "zero", "reshard"} if options.get("zero", 0) == 0 else {"engine"}
    known = {"engine"} if engine == target.engine or "torch_fsdp" in written else set()
    if known and engine == "fsdp2" and options.get("zero", 3) >= 2:
        known.add("zero")
    if engine == "zero" == target.engine:
        known.add("grad_reduce_in_bf16")
    return known | ({"reshard"} if "fsdp_reshard" in written else set())


def engine_of(target: Target, options: Facts) -> str:
    """The data parallelism of what is written: as the options say, else the target's."""
    return str(options.get("engine") or target.engine)


IN_COMMENTS = (
    *(*MODEL, "hidden", "ffn", "heads", "kv_heads", "sequence_parallel", "zero", "recompute"),
    *("schedule", "formats", "fp16", "fp32", "grad_reduce_in_bf16", "fp8", "products"),
    *("ep_overlap", "dispatcher_backend", "dispatch", "recompute_modules", "recompute_own"),
    *("engine", "reshard", "sync", "optimizer"),
)
"""Options that a comment names where the target cannot express them."""


def _in_words(name: str, value: object) -> str:
    """An option and its value, as comments write them."""
    if name == "account":
        return "embedding and loss as a layer each"
    value = ",".join(value) if isinstance(value, tuple) else value
    return name if value is True else f"{name} {quoted(value)}"


def _options_present(model: Facts) -> Document:
    """The options of the model that are set: neither None, empty nor False, except an option that
    has a negative form."""
    denied = _denied()
    return {
        name: value
        for name, value in model.items()
        if value or (value == 0 and (value is not False or name in denied))
    }


def _job_of_target(layout: Layout, target: Target) -> Job:
    """The same layout as a job of a framework that the target starts."""
    job = layout.job
    for name in target.unsaid:
        _require_silent(job, name, target)
    if target.serves:
        _require_one_command(job, target)
    last: LayoutError | None = None
    differs = False  # in the experts only
    is_dense = job.ep == 1 and job.etp in (None, job.tp)
    if framework_of(job.framework).engine != target.engine:  # copies of other states
        _require_silent(job, "instances", target)
    for framework in [job.framework] if job.framework in target.makes else target.makes:
        tp, etp = _tp(job, framework), _etp(job, layout, framework)
        other = replace(job, framework=framework, tp=tp, etp=etp)
        try:
            for name, able in target.only.items():
                if framework not in able:
                    _require_silent(job, name, target)
            candidate = layout if other == job else other.layout()
        except LayoutError as error:
            last = error
            continue
        if _above_one(layout.mesh) == _above_one(candidate.mesh):
            if is_dense or _above_one(layout.expert) == _above_one(candidate.expert):
                return other
            differs = True
    if last is not None and last.code == "framework-cannot-express":
        raise last
    if last is not None and last.control in ("cp", "ep", "etp", "pp"):
        control = last.control
        raise cannot_express(target.name, f"{control} {_shown(getattr(job, control))}", control)
    if differs and layout.expert is not None:
        raise cannot_express(target.name, f"etp {job.tp if job.etp is None else job.etp}", "etp")
    order = framework_of(job.framework).explicit_order(job.order)
    raise cannot_express(target.name, f"the order {order}", "order")


def _require_silent(job: Job, name: str, target: Target) -> None:
    """Refuses a field that the target cannot express, unless nothing needs to be said."""
    value = getattr(job, name)
    silent = [None, job.tp] if name == "etp" else [SILENT.get(name, 1)]
    silent += [1] if name == "dp" else []
    if value not in silent and value != ():
        raise cannot_express(target.name, f"{name} {_shown(value)}", name)


def _require_one_command(job: Job, target: Target) -> None:
    """Refuses servers side by side that no option of one command starts."""
    one = {"tp": job.tp, "pp": job.pp, "cp": job.cp, "dp": job.dp or 1}
    servers = job.nodes * job.gpus_per_node // framework_of(target.makes[0]).gpus_of_copy(one)
    is_one = "dp_served" not in target.fields.values()
    if servers > 1 and (is_one or (job.dp is not None and framework_of(job.framework).serves)):
        raise cannot_express(target.name, f"{servers} servers side by side", "nodes")


def _tp(job: Job, framework: str) -> int:
    """The tensor parallel size, which in SGLang includes attention's cp."""
    is_wider = framework == "sglang" and job.framework != "sglang"
    return job.tp * job.cp if is_wider else job.tp


def _etp(job: Job, layout: Layout, framework: str) -> int | None:
    """The expert tensor parallel size, as frameworks have different defaults."""
    if framework == job.framework:
        return job.etp
    was_megatrons = framework_of(job.framework).speaks_megatron
    if not framework_of(framework).speaks_megatron:
        return job.etp if job.ep > 1 and was_megatrons else None
    if was_megatrons or layout.expert is None or job.ep == 1:
        return job.etp
    size = layout.expert.size("etp" if "etp" in layout.expert.names else "tp")
    return None if size == job.tp else size


def _above_one(mesh: Mesh | None) -> list[tuple[str, int]]:
    """The order of ranks: the axes larger than 1, in order."""
    beside = ("server", "external_dp")  # copies of a model
    axes = mesh.axes if mesh else ()
    return [("dp" if a.name in beside else a.name, a.size) for a in axes if a.size > 1]


def _shown(value: object) -> str:
    return "x".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


# -- the text of a target ------------------------------------------------------------------------


def to_fill_in(
    target: Target, job: Job, model: Facts, comments: Mapping[str, str] = COMMENTS
) -> str:
    """Options that the reader must add, as a comment; data and addresses are left out.

    >>> to_fill_in(TARGETS["nemo"], Job(), {"layers": 24, "hidden": 1024})
    'to fill in: RECIPE, of a model with layers 24, hidden 1024'
    """
    is_open = not target.naming(model) and not target.serves
    placeholders = [part.placeholder for part in target.parts if part.placeholder and is_open]
    sizes = [f"{name} {quoted(model[name])}" for name in SHAPE if name in model]
    is_of_model = bool(placeholders and sizes)
    of = comments["of_a_model"].format(sizes=", ".join(sizes)) if is_of_model else ""
    values = _values(target, job, model)
    lacking = [name for name in target.needs if values.get(target.field_of(name)) is None]
    listed = ", ".join((*placeholders, *lacking))
    return comments["to_fill_in"].format(names=listed) + of if listed else ""


def _text(target: Target, job: Job, model: Facts) -> tuple[str, set[str]]:
    """The text, and the options of the model that it expresses."""
    values, names = _values(target, job, model), target.naming(model)
    lines: list[str] = []
    local = values.get("dp_local")
    for part in target.parts:
        if part.several and job.nodes == 1:
            continue
        words = (part.say, names.get(part.say, part.placeholder))
        lines += [" ".join(filter(None, words))] if part.say else []
        options = {**part.always, **dict(_filled(target, part.give, values))}
        lines += [_option(name, value) for name, value in options.items()]
        if job.nodes > 1:
            others = part.of_copies if local else part.across
            lines += [f"{name} {text.format(local=local)}" for name, text in others.items()]
    variables = f"{target.environment} " if target.environment and job.tp * job.cp > 1 else ""
    command = variables + " \\\n  ".join(lines)
    file, keys = target.file, dict(target.file.always if target.file else {})
    if file:
        keys |= _filled(target, file.keys, values)
    if file and (keys or not file.option):
        command += f" \\\n  {file.option} {file.name}" if file.option else ""
        command = f"cat > {file.name} <<'EOF'\n{_file(file, keys)}\nEOF\n{command}"
    written = {name for name in target.fields.values() if _has_word(target, name, values)}
    written |= {*SHAPE} if names else set()
    return command, {LEADS_TO.get(name, name) for name in written}


def _has_word(target: Target, name: str, values: Facts) -> bool:
    words = target.words.get(name)
    return name in values and (words is None or values[name] is None or str(values[name]) in words)


def _denied() -> set[str]:
    """Fields with options that switch them off."""
    return {row.field for row in OPTIONS.values() if row.kind == "off"}


def _filled(target: Target, names: Iterable[str], values: Facts) -> Iterator[tuple[str, Any]]:
    """Options or keys with their values, where they have any."""
    denied = _denied()
    for name in names:
        value = values.get(target.fields[name])
        if target.fields[name] in target.words:
            value = target.words[target.fields[name]].get(str(value))
        if target.fields[name] in denied:
            value = True if value is False else None
        if value is not None and value is not False:
            yield name, value


def _values(target: Target, job: Job, model: Facts) -> Document:
    """The values of a job and its model, by field; None: expressed by leaving the option out."""
    fields = target.fields.values()
    several = job.instances != 1
    sizes = ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep", "etp")
    values = {name: getattr(job, name) for name in sizes}
    values |= {"levels": tuple(job.levels or ()) or None, "hybrid": job.hybrid or None}
    values |= {"instances": job.instances if several else None, "deepspeed": True}
    values |= _sharded(target, job, model)
    values |= {"shards": job.tp * job.gtp if job.gtp > 1 else None}
    values |= {"expert_shards": (job.etp or job.tp) * job.egtp if job.egtp > 1 else None}
    values |= {"gathers": job.gathers or None}
    values |= _served(target, job, model) if target.serves else {}
    values |= {"mapping": job.framework == "megatron-pp-dp" or None, **model}
    values["distributed_optimizer"] = several or model.get("distributed_optimizer")
    values |= _layers(target, job, model)
    if "--moe-expert-parallel-size" in target.fields and job.ep == 1:
        values["ep"] = None
    needs_micro_batch = "micro_batch" in map(target.field_of, target.needs)
    if "micro_batch" not in model and (needs_micro_batch or "global_batch" in model):
        values["micro_batch"] = 1
    if target.asserts and model.get("experts") and job.tp > 1:
        values.setdefault("sequence_parallel", True)
    if "local_batch" in fields:
        values |= local_batch(job, values)
    values["positions_max"] = values.get("seq")
    if target.id == "nemo":  # whose recipe may have chunks
        values["vpp"] = chunks_of(job, values) or "null"
    return values | (in_tokens(job, values) if "micro_tokens" in fields else {})


def _sharded(target: Target, job: Job, model: Facts) -> Document:
    """The values of data parallelism: degrees, sizes of groups, and what is done after forward."""
    fields, engine = target.fields.values(), engine_of(target, model)
    world = job.nodes * job.gpus_per_node
    ranks = world // (job.tp * job.pp * job.cp)
    is_ddp = engine == "ddp" and target.engine == "fsdp2"
    copies = ranks if is_ddp else job.instances
    values: Document = {"world": world, "replicate": copies, "shard": 1 if is_ddp else -1}
    if "dp_shard" in fields:  # of accelerate, whose mesh is one of FSDP2 alone
        for name in ("tp", "cp", "instances") if is_ddp else ():
            _require_silent(job, name, target)
        has_mesh = not is_ddp and (job.tp, job.cp, copies) != (1, 1, 1)
        values |= {"dp_shard": ranks // copies}
        values |= {} if has_mesh else dict.fromkeys(("dp_shard", "replicate", "tp", "cp"))
        values |= {"distributed_type": engine, "fsdp_version": None if is_ddp else 2}
    if engine == "fsdp2":
        values |= {"torch_fsdp": model.get("zero", 3) >= 2 or None}
        values |= {"fsdp_reshard": "never" if model.get("zero") == 2 else model.get("reshard")}
    values |= {"hpz": job.hpz or job.gpus_per_node if framework_of(job.framework).of_node else None}
    if "autoep" in fields:
        values |= {"ep": None if job.ep == 1 else job.ep, "cp": None if job.cp == 1 else job.cp}
    if target.engine == "zero" and model.get("bf16"):  # DeepSpeed's own sums have 16 bits
        values |= {"main_grads": None if model.get("grad_reduce_in_bf16") else "fp32"}
    values |= {"mics": ranks // copies if job.framework == "deepspeed-mics" else None}
    return values | {"autoep": job.framework == "deepspeed-autoep" or None}


def _served(target: Target, job: Job, model: Facts) -> Document:
    """The sizes of a server, by the fields of its options, and its longest request."""
    one = {"tp": job.tp, "pp": job.pp, "cp": job.cp, "dp": 1}
    values: Document = {
        "dp_served": job.nodes
        * job.gpus_per_node
        // framework_of(target.makes[0]).gpus_of_copy(one)
    }
    values |= {"expert_parallel": job.expert_parallel or None, "tasks_per_node": job.gpus_per_node}
    if "dp_local" in target.fields.values() and job.nodes > 1 and values["dp_served"] > 1:
        local, left = divmod(values["dp_served"], job.nodes)
        values |= {"nodes": None, "dp_local": local} if not left else {}
    if "vllm" in target.makes:
        values |= _engram(target, job)
    if "sglang" in target.makes:
        values |= {"served_cp": job.cp, "served_ep": job.ep}
        values |= _attention(target, job) if job.dp is not None else {}
    if target.id == "tensorrt-llm":
        values |= {"dp_attention": (job.dp or 1) > 1 or None}
    values |= {"served_length": model.get("seq")}
    larger = ("attn_dp", "served_ep", "dcp", "moe_dp")
    values |= {name: getattr(job, name) for name in ("dcp", "moe_dp")}
    return {name: None if name in larger and n == 1 else n for name, n in values.items()}


def _engram(target: Target, job: Job) -> Document:
    """How a server's text says where tables of n-gram embeddings lie.

    Errors: LayoutError for Qwen4's: its name, and no option, tells them from DeepSeek-V4.1's.
    """
    if job.engram == "across-plain":
        raise cannot_express(target.name, "engram across-plain", "engram")
    config = {
        "node": {},
        "across": {"embedding_across_dp": True},
        "across-gpu": {"embedding_across_dp": True, "cpu_offload": False},
    }.get(job.engram)
    return {"engram_config": None if config is None else json.dumps(config)}


def _attention(target: Target, job: Job) -> Document:
    """SGLang's data parallel size of attention, as its version spells it."""
    if "attn_dp" in target.fields.values():
        return {"attn_dp": job.dp, "dp_served": None}
    is_several = (job.dp or 1) > 1
    return {"dp_served": job.dp if is_several else None, "dp_attention": is_several or None}


def _layers(target: Target, job: Job, model: Facts) -> Document:
    """The options for the assignment of layers; Megatron refuses an uneven one without them."""
    fields = target.fields.values()
    values: Document = {}
    if model.get("account"):
        values = {"embedding": True, "loss": True, "account": BOTH_ENDS}
    layers = model.get("layers")
    if is_layout(layers) and "layers" in fields and "layout" not in fields:
        raise cannot_express(target.name, f"the layout {quoted(layers)}", "layers")
    if target.asserts:
        with suppress(LayoutError):  # which is said where it does not start
            values |= shared_layers(job, model)
    return values


SHAPE = ("layers", "hidden", "ffn", "heads", "kv_heads", "experts")
"""Sizes that a model's name implies, listed in a comment."""


def _option(name: str, value: Any) -> str:
    """``--name value``, ``--name`` for a switch, ``name=value`` for a key."""
    if name[:2] == "--" and "." not in name:
        several = value if isinstance(value, (tuple, list)) else [] if value is True else [value]
        return " ".join([name, *(shlex.quote(str(item)) for item in several)])
    text = "true" if value is True else str(value)
    if isinstance(value, tuple):
        text = f"[{','.join(map(str, value))}]"
    return shlex.quote(f"{name}={text}")


def _file(file: File, keys: Facts) -> str:
    """Keys in their sections, as JSON, TOML or YAML."""
    sections: dict[str, Document] = {}
    for path, value in keys.items():
        section, _, key = path.rpartition(".")
        sections.setdefault(section, {})[key] = value
    if file.name.endswith(".toml"):
        return tomlkit.dumps(sections).rstrip()
    top = {key: value for key, value in sections.pop("", {}).items() if value}
    if file.name.endswith((".yml", ".yaml")):
        truth: Document = {"true": True, "false": False}
        for name, own in sections.items():
            sections[name] = {key: truth.get(value, value) for key, value in own.items()}
        return str(yaml.safe_dump(top | sections, sort_keys=False)).rstrip()
    return json.dumps(top | sections, indent=2)


def cannot_express(target: str, what: str, control: str) -> LayoutError:
    return refusal("framework-cannot-express", control, framework=target, what=what)
