"""NeMo-RL: a policy and its generation, on the same GPUs or on separate ones, and a reward model.

Source: NVIDIA-NeMo/RL 7ea279a nemo_rl/algorithms/grpo.py (setup), nemo_rl/models/generation/vllm/
vllm_generation.py. A recipe takes over what another one says: nemo_rl.csv has what those that
others name say of roles, at that commit (examples/).
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from groups.errors import not_a_choice
from groups.notes import Note
from groups.pools import Pool, nemo_rl
from training.roles import Phase

from ..errors import refusal
from ..launch.sayings import Reading, read
from ..launch.sayings.values import VARIABLE
from ..launch.syntax.words import Word
from ..launch.training import training_of
from .build import Known, Sketch, job_on, plan_read, renamed, served, trained
from .model import PlanRead
from .settings import NOTHING, RoleSettings

FIRST = "grpo_math_1B.yaml"
"""The default configuration of a text that names none."""

PHASES = (
    *(Phase("rollout", ("generation",)), Phase("reward", ("reward",))),
    *(Phase("log-probs", ("policy",)), Phase("reference", ("policy",))),
    *(Phase("update", ("policy",)), Phase("weights", ("policy", "generation"))),
)
COLOCATED = "policy.generation.colocated"
BACKENDS = {"vllm": "vllm", "trtllm": "tensorrt-llm", "sglang": "sglang", "megatron": "megatron"}


def read_nemo_rl(settings: RoleSettings) -> PlanRead:
    """The roles of a NeMo-RL job. Errors: LayoutError for what the text leaves open."""
    settings = _with_bases(settings)
    _refuse_others(settings)
    nodes = settings.count("cluster.num_nodes", 1)
    each = settings.count("cluster.gpus_per_node", 1)
    together = settings.switch(f"{COLOCATED}.enabled", default=True)
    reward = _reward(settings)
    own_nodes, own_each = _left(settings, nodes, each, reward)
    backend = settings.word("policy.generation.backend", default="vllm")
    if backend not in BACKENDS:
        fixes = tuple({"policy.generation.backend": name} for name in BACKENDS)
        raise not_a_choice("policy.generation.backend", backend, BACKENDS, fixes)
    tp, pp, dp = _engine(settings, backend)
    pools = _pools(settings, own_nodes, own_each, together, tp, pp)
    policy, generation = pools
    sketches = [_policy(settings, policy, each)]
    sketches.append(_generation(settings, generation, each, backend, (tp, pp, dp), together))
    if reward:
        count = reward[0] * reward[1]
        last = nodes * each - count
        sizes = {size: _tp_of_reward(settings, size) for size in ("tp", "cp")}
        job = job_on("device-mesh", count, reward[1], **sizes)
        known = Known.of_server(settings.named("env.reward_model.model_name"))
        sketches.append(Sketch("reward", job, last, known=known))
    if len(pools) + bool(reward) > 1 and not (together and not reward):
        names = "policy, generation, reward" if reward else "policy, generation"
        settings.note(Note("pools-in-order", {"pools": names, "each": each}))
    is_async = settings.switch("grpo.async_grpo.enabled")
    beside = ("generation",) if is_async and not together else ()
    turns = ("generation", "reward", "policy")
    return plan_read(*("nemo-rl", nodes, each, sketches, turns, PHASES, settings.notes), beside)


def _refuse_others(settings: RoleSettings) -> None:
    """Refuses roles that take GPUs and that are not placed here."""
    teachers = settings.switch("on_policy_distillation.non_colocated_teachers.enabled")
    gym = settings.count("env.nemo_gym.num_gpu_nodes", 0, least=0, note="")
    others = {"value": settings.has("ppo"), "teacher": settings.has("teacher") or teachers}
    kinds = [kind for kind, is_there in {**others, "NeMo Gym": gym > 0}.items() if is_there]
    if kinds:
        raise refusal("roles-not-read", "paste", kinds=", ".join(kinds))


def _tp_of_reward(settings: RoleSettings, size: str) -> int:
    names = {"tp": "tensor_parallel_size", "cp": "context_parallel_size"}
    return settings.count(f"env.reward_model.dtensor_cfg.{names[size]}", 1, note="")


# -- GPUs ------------------------------------------------------------------------------------------


def _reward(settings: RoleSettings) -> tuple[int, int] | None:
    """Nodes, and GPUs of each, of the reward model alone."""
    names = {name for _, name in settings.reading.settings if name.endswith(".env_name")}
    if not any(settings.word(name) == "reward_model" for name in sorted(names)):
        return None
    resources = "env.reward_model.resources"
    return (
        settings.required(f"{resources}.num_nodes", 1),
        settings.required(f"{resources}.gpus_per_node", 1),
    )


def _left(
    settings: RoleSettings, nodes: int, each: int, reward: tuple[int, int] | None
) -> tuple[int, int]:
    """The GPUs that the reward model leaves: of one node GPUs, else whole nodes."""
    if reward is None:
        return nodes, each
    taken, whole, name = (
        (reward[1], each, "gpus_per_node") if nodes == 1 else (reward[0], nodes, "num_nodes")
    )
    if taken >= whole:
        setting = f"env.reward_model.resources.{name}"
        facts = {"setting": setting, "value": taken, "expected": f"less than {whole}"}
        raise refusal("setting-wrong", setting, {setting: max(1, whole - 1)}, **facts)
    return (1, each - taken) if nodes == 1 else (nodes - taken, each)


def _pools(
    settings: RoleSettings, nodes: int, each: int, together: bool, tp: int, pp: int
) -> tuple[Pool, ...]:
    if together:
        return nemo_rl(nodes, each, tp=tp, pp=pp)
    names = {
        "generation_nodes": f"{COLOCATED}.resources.num_nodes",
        "generation_gpus_per_node": f"{COLOCATED}.resources.gpus_per_node",
        "colocated": f"{COLOCATED}.enabled",
    }
    own = {
        name: None if settings.text(setting) is None else settings.count(setting, 1)
        for name, setting in names.items()
        if name != "colocated"
    }
    needed = "generation_gpus_per_node" if nodes == 1 else "generation_nodes"
    if own[needed] is None:
        setting = names[needed]
        half = max(1, (each if nodes == 1 else nodes) // 2)
        raise refusal("setting-missing", setting, {setting: half}, setting=setting)
    with renamed(names):
        return nemo_rl(nodes, each, tp=tp, pp=pp, colocated=False, **own)


def _engine(settings: RoleSettings, backend: str) -> tuple[int, int, int]:
    """Sizes tp and pp of one engine, and its dp, which only vLLM's experts have."""
    section = f"policy.generation.{backend}_cfg"
    if backend == "sglang":
        names = f"{section}.tp_size", f"{section}.pp_size"
        tp, pp = (settings.count(name, 1, note="") for name in names)
        engine = f"{section}.sglang_server_config.num_gpus_per_engine"
        gpus = settings.count(engine, tp * pp, note="") if settings.text(engine) else tp * pp
        return gpus // pp, pp, 1
    if backend == "megatron":
        names = "tensor_model_parallel_size", "pipeline_model_parallel_size"
        tp, pp = (settings.count(f"policy.megatron_cfg.{name}", 1, note="") for name in names)
        return tp, pp, 1
    tp = settings.count(f"{section}.tensor_parallel_size", 1)
    pp = settings.count(f"{section}.pipeline_parallel_size", 1, note="")
    ep = settings.count(f"{section}.expert_parallel_size", 1, note="")
    if ep > 1 and ep % tp:
        setting = f"{section}.expert_parallel_size"
        facts = {"setting": setting, "value": ep, "expected": f"a multiple of tp {tp}"}
        raise refusal("setting-wrong", setting, {setting: tp}, {setting: 1}, **facts)
    return tp, pp, max(1, ep // tp)


# -- roles -----------------------------------------------------------------------------------------


def _policy(settings: RoleSettings, pool: Pool, each: int) -> Sketch:
    megatron = settings.switch("policy.megatron_cfg.enabled")
    section = "megatron" if megatron else "dtensor"
    job, parsed = trained(settings, "policy", pool.gpus, each, section)
    training = dict(training_of(parsed))
    if settings.switch(f"policy.{section}_cfg.activation_checkpointing"):
        training["recompute"] = "full"
    known = Known.of(parsed)
    prompts = settings.count("grpo.num_prompts_per_step", 32)
    samples = settings.count("grpo.num_generations_per_prompt", 16)
    one = settings.count("policy.train_global_batch_size", 512)
    updates = max(1, prompts * samples // one)
    facts = {"prompts": prompts, "samples": samples, "batch": prompts * samples}
    settings.note(Note("batch-of-update", {**facts, "updates": updates}))
    values = {**known.values, "global_batch": prompts * samples}
    away = ("weights", "optimizer") if pool.first == 0 and _together(settings) else ()
    return Sketch(
        "policy", job, pool.first, known=Known(values, training), away=away, updates=updates
    )


def _together(settings: RoleSettings) -> bool:
    return settings.switch(f"{COLOCATED}.enabled", default=True)


def _generation(
    settings: RoleSettings,
    pool: Pool,
    each: int,
    backend: str,
    sizes: tuple[int, int, int],
    together: bool,
) -> Sketch:
    tp, pp, dp = sizes
    engine, own = tp * pp, min(each, pool.gpus)
    if backend == "megatron":
        job, _ = trained(settings, "generation", pool.gpus, each, "megatron")
        return Sketch("generation", job, pool.first)
    if pool.gpus % engine or (engine <= own and own % engine):
        setting = f"policy.generation.{backend}_cfg.tensor_parallel_size"
        works = [size for size in range(1, own + 1) if own % (size * pp) == 0]
        near = sorted(works, key=lambda size: (abs(size - tp), size))[:2]
        facts = {"setting": setting, "value": tp, "expected": f"a size that divides {own} GPUs"}
        raise refusal("setting-wrong", setting, *({setting: size} for size in near), **facts)
    framework = BACKENDS[backend]
    more: dict[str, object] = {"dp": dp, "expert_parallel": dp > 1} if backend == "vllm" else {}
    job = served(settings, "generation", pool.gpus, each, framework, tp=tp, pp=pp, **more)
    section = f"policy.generation.{backend}_cfg"
    length = settings.count("policy.max_total_sequence_length", 512, note="")
    share = settings.text(f"{section}.gpu_memory_utilization", f"{section}.mem_fraction_static")
    share = share or ("0.6" if backend == "vllm" else None)  # NeMo-RL's own default
    kept = "fp8" if settings.word(f"{section}.precision") == "fp8" else "bf16"
    known = Known.of_server(settings.named("policy.model_name"), length)
    known = known.also(served_share=share, served_weights=kept)
    away = ("weights", "cache") if together else ()
    return Sketch("generation", job, pool.first, known=known, away=away)


# -- recipes that others take over -----------------------------------------------------------------

Recipe = Mapping[str, str]
"""A recipe's settings about roles."""


@cache
def recipes() -> dict[str, tuple[tuple[str, ...], Recipe]]:
    """By the name of a file: the files that it includes, and its own settings."""
    found: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {}
    file = Path(__file__).with_name("nemo_rl.csv")
    with file.open(encoding="utf-8", newline="") as text:
        for row in csv.DictReader(text):
            bases, values = found.setdefault(row["file"], ((), {}))
            if row["setting"] == "defaults":
                found[row["file"]] = (*bases, row["value"]), values
            else:
                values[row["setting"]] = row["value"]
    return {**found}


def merged(name: str) -> dict[str, str]:
    """A recipe's settings, with those inherited from its defaults.

    >>> recipe = merged("grpo-qwen3-235b-16n8g.yaml")
    >>> recipe["cluster.num_nodes"], recipe["policy.generation.vllm_cfg.tensor_parallel_size"]
    ('16', '16')
    """
    bases, values = recipes()[name]
    under = [merged(base) for base in bases]
    return {key: value for recipe in (*under, values) for key, value in recipe.items()}


def _with_bases(settings: RoleSettings) -> RoleSettings:
    """The settings of a text, with those of the recipes that it includes."""
    named = [*_named(settings)]
    unknown = next((name for name in named if name not in recipes()), None)
    if unknown is not None:
        fixes = ({"defaults": FIRST},)
        raise refusal("recipe-unknown", "defaults", *fixes, file=unknown, commit="7ea279a")
    for name in named:
        settings.note(Note("recipe-known", {"file": name, "commit": "7ea279a"}))
    under = {key: value for name in named for key, value in merged(name).items()}
    own, unknown_yet = dict[str, str](), dict[str, Sequence[Word]]()
    for (run, key), words in settings.reading.settings.items():
        if run not in ("", settings.run):
            continue
        if any(word.why or VARIABLE.search(word.text) for word in words):
            unknown_yet[key] = words
        else:
            own[key] = ", ".join(word.text for word in words) or "null"
    recipe = {key: value for key, value in {**under, **own}.items() if key not in unknown_yet}
    return replace(settings, reading=_over(settings.reading, recipe, unknown_yet), run="")


def takes_over(reading: Reading) -> bool:
    """Whether a file includes a recipe of NeMo-RL."""
    words = reading.settings.get(("", "defaults"), ())
    return any(word.text.rsplit("/", 1)[-1] in recipes() for word in words)


def _named(settings: RoleSettings) -> Iterator[str]:
    """The names of the files that a text includes."""
    if "defaults" in settings.answers:
        yield settings.answers["defaults"]
        return
    found = False
    for name in ("defaults", "config"):
        words = settings.words(name)
        for word in words or ():
            found = True
            yield word.text.rsplit("/", 1)[-1]
    if not found:
        yield FIRST


def _over(reading: Reading, recipe: Recipe, unknown: Mapping[str, Sequence[Word]]) -> Reading:
    """The reading of a file that says all of it. unknown: what the text does not work out."""
    lines = [
        f"{key}: {value}"
        for key, value in recipe.items()
        if key not in ("defaults", "config") and "." in key and _is_plain(value)
    ]
    whole = read("\n".join(lines))
    left = tuple(item for item in reading.unresolved if item.name in unknown)
    settings = {**whole.settings, **{("", key): words for key, words in unknown.items()}}
    return replace(whole, settings=settings, unresolved=(*whole.unresolved, *left))


def _is_plain(value: str) -> bool:
    return value.lower() in NOTHING or not set(value) & set("\n:#{}[]&*!|>'\"%@`")
