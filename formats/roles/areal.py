"""AReaL: a line for each role with its backend and sizes, "sglang:d4t2".

Source: inclusionAI/AReaL 4aef98d docs/en/reference/alloc_mode.md, areal/trainer/rl_trainer.py (the
order in which roles take GPUs), areal/infra/scheduler/local.py (colocation), areal/api/cli_args.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from groups.errors import quoted
from groups.layout import Job
from groups.notes import Note
from training.roles import Phase

from ..errors import refusal
from ..launch.sayings import Reading
from .build import Known, Sketch, answered_sizes, job_on, plan_read
from .model import PlanRead
from .settings import RoleSettings

ROLES = {"actor": "actor", "critic": "critic", "ref": "reference", "teacher": "teacher"}
"""Roles that train or score, by their sections, in the order in which they take GPUs; the rollout
is last."""

PHASES = (
    *(Phase("rollout", ("rollout",)), Phase("reference", ("reference",))),
    *(Phase("teacher", ("teacher",)), Phase("values", ("critic",))),
    *(Phase("log-probs", ("actor",)), Phase("update-critic", ("critic",))),
    *(Phase("update", ("actor",)), Phase("weights", ("actor", "rollout"))),
)
TURNS = ("rollout", "reference", "teacher", "critic", "actor")
FRAMEWORKS = {
    **{"fsdp": "device-mesh", "archon": "torchtitan", "megatron": "megatron"},
    **{"sglang": "sglang", "vllm": "vllm"},
}
_DIMS = re.compile(r"(?:[dtpce]\d{1,6})+")
_HYBRID = re.compile(r"\(attn:([a-z0-9]+)\|ffn:([a-z0-9]+)\)")


def read_areal(settings: RoleSettings) -> PlanRead:
    """The roles of an AReaL job. Errors: LayoutError for settings that the text leaves open."""
    backends = {name: _backend(settings, name) for name in (*ROLES, "rollout")}
    backends |= _allocated(settings)
    if not backends["actor"]:
        settings.note(Note("generation-only", {"what": "allocation_mode"}))
    sizes = {name: _sizes(name, text) for name, text in backends.items() if text}
    if not sizes:
        fix = {"actor.backend": "fsdp:d8"}
        raise refusal("setting-missing", "actor.backend", fix, setting="actor.backend")
    each = settings.count("cluster.n_gpus_per_node", 8)
    nodes = settings.count("cluster.n_nodes", 1)
    first, taken = dict[str, int](), 0
    for name, (_, own) in sizes.items():
        target = _target(settings, name, [*first])
        if target:
            first[name] = first[target]
        else:
            first[name] = taken
            taken += own["gpus"]
    if len(set(first.values())) > 1:
        names = ", ".join(ROLES.get(name, name) for name in sizes)
        settings.note(Note("pools-in-order", {"pools": names, "each": each}))
    needed = -(-taken // each)
    if needed > nodes and settings.text("cluster.n_nodes") is not None:
        facts = {"setting": "cluster.n_nodes", "value": nodes}
        expected = f"{needed}: the roles take {taken} GPUs, {each} of each node"
        raise refusal(
            "setting-wrong",
            "cluster.n_nodes",
            {"cluster.n_nodes": needed},
            **facts,
            expected=expected,
        )
    nodes = max(nodes, needed)
    sketches = [_role(settings, name, *sizes[name], first[name], each) for name in sizes]
    together = "rollout" in first and first["rollout"] == first.get("actor")
    beside = () if together else ("rollout",)
    return plan_read("areal", nodes, each, sketches, TURNS, PHASES, settings.notes, beside)


def _allocated(settings: RoleSettings) -> Mapping[str, str]:
    """The lines of rollout and actor in one, as allocation_mode has them; bare sizes are Megatron's
    where they cut layers, else FSDP's: older releases took them.

    Source: inclusionAI/AReaL 4aef98d areal/api/alloc_mode.py (AllocationMode, LLM_SERVER_ONLY).
    """
    text = settings.text("allocation_mode")
    if text is None:
        return {}
    found = {"rollout": "", "actor": ""}
    for part in re.split(r"[+|](?![^(]*\))", text.strip("\"' ").lower().replace(" ", "")):
        backend, dims = (
            re.split("[:.]", part, maxsplit=1) if re.search("[:.]", part) else ("", part)
        )
        if not backend:
            backend = "megatron" if re.search(r"[tp](?:[2-9]|1\d)", dims) else "fsdp"
        found["rollout" if backend in ("sglang", "vllm") else "actor"] = f"{backend}:{dims}"
    return {name: line for name, line in found.items() if line}


def is_areal(reading: Reading) -> bool:
    """Whether a file has a line of a backend for its roles, as AReaL's have."""
    names = {name for _, name in reading.settings}
    return not names.isdisjoint(("actor.backend", "rollout.backend", "allocation_mode"))


def _backend(settings: RoleSettings, name: str) -> str:
    """The text of a role's backend, or None without the role; critic and ref default to the
    actor's."""
    if not settings.has(name):
        return ""
    if name == "ref" and settings.word("actor.kl_ctl", default="0.1") in ("0", "0.0"):
        return ""
    text = settings.text(f"{name}.backend", works="fsdp:d8")
    if text is None and name in ("critic", "ref"):
        text = settings.text("actor.backend")
    return (text or "").strip("\"' ").lower()


def _sizes(name: str, text: str) -> tuple[str, dict[str, int]]:
    """The framework and the sizes of a line; gpus: of all of it.

    Errors: LayoutError for an invalid line.
    """
    setting = f"{name}.backend"
    backend, _, dims = text.partition(":")
    hybrid = _HYBRID.fullmatch(dims)
    dense, experts = (hybrid[1], hybrid[2]) if hybrid else (dims, "")
    parts = [dense, *([experts] if hybrid else [])]
    if backend not in FRAMEWORKS or not all(map(_DIMS.fullmatch, parts)):
        facts = {"setting": setting, "value": quoted(text)}
        expected = "a backend and its sizes, such as fsdp:d8 or megatron:d2p2t4e4"
        fix = {setting: "sglang:d4t2" if name == "rollout" else "fsdp:d8"}
        raise refusal("setting-wrong", setting, fix, **facts, expected=expected)
    own, of_experts = _numbers(dense), _numbers(experts)
    sizes = {"tp": own.get("t", 1), "pp": own.get("p", 1), "cp": own.get("c", 1)}
    sizes["ep"] = of_experts.get("e", own.get("e", 1))
    if hybrid:
        sizes["etp"] = of_experts.get("t", 1)
    gpus = own.get("d", 1) * sizes["tp"] * sizes["pp"] * sizes["cp"]
    return FRAMEWORKS[backend], {**sizes, "gpus": gpus}


def _numbers(dims: str) -> Mapping[str, int]:
    return {letter: int(size) for letter, size in re.findall(r"([a-z])(\d+)", dims)}


def _target(settings: RoleSettings, name: str, before: list[str]) -> str:
    """The role that this one is colocated with."""
    section = f"{name}.scheduling_strategy"
    if settings.word(f"{section}.type", default="separation") != "colocation":
        return ""
    target = settings.word(f"{section}.target")
    if target not in before:
        fixes = [{f"{section}.target": one} for one in before[:1]]
        facts = {"setting": f"{section}.target", "value": quoted(target)}
        expected = "a role that takes its GPUs before this one"
        raise refusal("setting-wrong", f"{section}.target", *fixes, **facts, expected=expected)
    return target


def _role(
    settings: RoleSettings, name: str, framework: str, sizes: dict[str, int], first: int, each: int
) -> Sketch:
    shown = ROLES.get(name, name)
    gpus = sizes["gpus"]
    own: dict[str, object] = {key: size for key, size in sizes.items() if key != "gpus"}
    serves = framework in ("sglang", "vllm")
    if serves:
        own = {"tp": sizes["tp"], "pp": sizes["pp"], "dp": 1 if framework == "vllm" else None}
    job: Job = job_on(framework, gpus, each, **{**own, **answered_sizes(settings, shown)})
    if serves:
        model = settings.named(f"{framework}.model_path", f"{framework}.model", "actor.path")
        known = Known.of_server(model)
        return Sketch(shown, job, first, known=known)
    known = Known().also(model=Known.of_server(settings.named(f"{name}.path", "actor.path")).model)
    if framework in ("device-mesh", "torchtitan"):  # cut over all, layers computed again
        again = settings.switch(f"{name}.gradient_checkpointing", default=True)
        known = known.also(zero=3, recompute="full" if again else "none")
    known = _budget(settings, name, known, sizes["cp"])
    if name != "actor":
        return Sketch(shown, job, first, known=known)
    known, updates = _batch(settings, known)
    return Sketch(shown, job, first, known=known, updates=updates)


def _budget(settings: RoleSettings, name: str, known: Known, cp: int) -> Known:
    """The tokens that are packed into a micro-batch of a role, which counts as one sample so long;
    without a bound it is all that a GPU has of a mini-batch.

    Source: inclusionAI/AReaL 4aef98d areal/utils/data.py (split_padded_tensor_dict_into_mb_list),
    areal/engine/megatron_engine.py (a GPU of a cp group has its part of them).
    """
    setting = f"{name}.mb_spec.max_tokens_per_mb"
    if settings.text(setting) is None:
        if name == "actor":
            settings.note(Note("no-token-budget", {"setting": setting}))
        return known
    tokens = settings.count(setting, 1)
    settings.note(Note("token-budget", {"tokens": tokens // cp, "cp": cp, "all": tokens}))
    packed = known.also(sequence=tokens)
    return Known({**packed.values, "micro_batch": 1}, packed.training)


def _batch(settings: RoleSettings, known: Known) -> tuple[Known, int]:
    if settings.text("train_dataset.batch_size") is None:
        return known, 1
    prompts = settings.count("train_dataset.batch_size", 1)
    samples = settings.count("gconfig.n_samples", 1, note="")
    updates = settings.count("actor.ppo_n_minibatches", 4, note="")
    batch = prompts * samples
    facts = {"prompts": prompts, "samples": samples, "batch": batch, "updates": updates}
    settings.note(Note("batch-of-update", facts))
    return Known({**known.values, "global_batch": batch}, known.training), updates
