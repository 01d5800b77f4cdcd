"""OpenRLHF: groups of GPUs of their own for engines and models, or shared ones.

Source: OpenRLHF/OpenRLHF 3c3be62 openrlhf/cli/train_ppo_ray.py (train and the options' defaults),
openrlhf/trainer/ray/launcher.py, vllm_engine.py. Older options have dashes in the place of dots.
"""

from __future__ import annotations

from groups.notes import Note
from groups.pools import packed
from training.roles import Phase

from ..errors import refusal
from .build import Known, Sketch, answered_sizes, job_on, plan_read, served, trained
from .model import PlanRead
from .settings import NOTHING, RoleSettings

PHASES = (
    *(Phase("rollout", ("rollout",)), Phase("reward", ("reward",))),
    *(Phase("log-probs", ("actor",)), Phase("reference", ("reference",))),
    *(Phase("values", ("critic",)), Phase("update-critic", ("critic",))),
    *(Phase("update", ("actor",)), Phase("weights", ("actor", "rollout"))),
)
TURNS = ("rollout", "reference", "reward", "critic", "actor")
ROLES = {"actor": "actor", "reference": "ref", "critic": "critic", "reward": "reward"}
"""The options' names of the roles that train or score."""


def read_openrlhf(settings: RoleSettings) -> PlanRead:
    """The roles of an OpenRLHF job. Errors: LayoutError for what the text leaves open."""
    there = _roles(settings)
    sizes = {name: _gpus(settings, ROLES[name]) for name in there}
    engines = settings.count("vllm.num_engines", 0, "vllm-num-engines", least=0, note="")
    tp = settings.count("vllm.tensor_parallel_size", 1, "vllm-tensor-parallel-size", note="")
    shared = _shared(settings, sizes, engines * tp)
    each = settings.count("gpus_per_node", max(8, *(own for _, own in sizes.values())), note="")
    if set(sizes.values()) == {sizes["actor"]} and len({*shared.values()}) == 1:
        each = settings.count("gpus_per_node", sizes["actor"][1], note="")
    groups = _groups(sizes, engines * tp, shared)
    placed, nodes = packed({name: [_parts(gpus, each)] for name, gpus in groups.items()}, each)
    if len(groups) > 1:
        settings.note(Note("pools-in-order", {"pools": ", ".join(groups), "each": each}))
    sketches = [_model(settings, name, placed[shared[name]], each) for name in there]
    if engines:
        gpus = placed[shared["rollout"]]
        job = served(settings, "rollout", len(gpus), each, "vllm", tp=tp, dp=1)
        model = settings.named("actor.model_name_or_path", "pretrain")
        share = settings.text("vllm.gpu_memory_utilization", "vllm-gpu-memory-utilization")
        share = share or "0.95"  # OpenRLHF's own default
        known = Known.of_server(model, _longest(settings)).also(served_share=share)
        sleeps = settings.switch("vllm.enable_sleep", "vllm-enable-sleep")
        away = ("weights", "cache") if sleeps else ()
        sketches.insert(1, Sketch("rollout", job, gpus=gpus, known=known, away=away))
    is_async = settings.switch("train.async_enable", "async-train")
    beside = ("rollout",) if is_async else ()
    return plan_read("openrlhf", nodes, each, sketches, TURNS, PHASES, settings.notes, beside)


def _roles(settings: RoleSettings) -> list[str]:
    """The roles besides the engines."""
    estimator = settings.word("algo.advantage.estimator", "advantage-estimator", default="gae")
    coefficient = settings.word("algo.kl.init_coef", "init-kl-coef", default="0.01")
    servers = ("reward.remote_url", "remote-rm-url", "train.agent_func_path", "agent-func-path")
    remote = any(settings.has(name) for name in servers)
    is_there = {
        "reference": coefficient.strip("0.e-+") != "" or coefficient in NOTHING,
        "critic": estimator == "gae",
        "reward": not remote,
    }
    return ["actor", *(name for name, there in is_there.items() if there)]


def _gpus(settings: RoleSettings, name: str) -> tuple[int, int]:
    nodes = settings.count(f"{name}.num_nodes", 1, f"{name}-num-nodes")
    return nodes, settings.count(f"{name}.num_gpus_per_node", 8, f"{name}-num-gpus-per-node")


def _shared(
    settings: RoleSettings, sizes: dict[str, tuple[int, int]], engines: int
) -> dict[str, str]:
    """The group of GPUs of each role: that of the first role that shares it."""
    every = settings.switch("train.colocate_all", "colocate-all-models")
    is_async = settings.switch("train.async_enable", "async-train")
    shared = {name: name for name in (*sizes, "rollout")}
    if every or settings.switch("train.colocate_actor_ref", "colocate-actor-ref"):
        _require_alike(sizes, "actor", "reference")
        shared["reference"] = "actor"
    if every:
        shared |= {name: "actor" for name in ("critic", "reward") if name in sizes}
    together = settings.switch("train.colocate_critic_reward", "colocate-critic-reward")
    if together and "critic" in sizes:
        _require_alike(sizes, "critic", "reward")
        shared |= {"critic": "critic"} | ({"reward": "critic"} if "reward" in sizes else {})
    if every and not is_async and engines:
        actor = sizes["actor"][0] * sizes["actor"][1]
        if actor != engines:
            fix = {"train.async_enable": "true"}
            raise refusal(
                "engines-are-not-actor", "vllm.num_engines", fix, engines=engines, actor=actor
            )
        shared["rollout"] = "actor"
    return shared


def _require_alike(sizes: dict[str, tuple[int, int]], one: str, other: str) -> None:
    if other in sizes and sizes[one] != sizes[other]:
        nodes, each = sizes[one]
        name = ROLES[other]
        fix = {f"{name}.num_nodes": nodes, f"{name}.num_gpus_per_node": each}
        raise refusal("roles-differ", f"{name}.num_nodes", fix, role=one, other=other)


def _groups(
    sizes: dict[str, tuple[int, int]], engines: int, shared: dict[str, str]
) -> dict[str, int]:
    """GPUs of each group, in the order of their creation."""
    has_own = shared.get("reference", "reference") == "actor" or shared["rollout"] == "actor"
    first = ("actor", "rollout") if has_own or _all(shared) else ("rollout", "actor")
    gpus = {name: nodes * each for name, (nodes, each) in sizes.items()} | {"rollout": engines}
    order = (*first, "reference", "critic", "reward")
    return {name: gpus[name] for name in order if gpus.get(name) and shared[name] == name}


def _all(shared: dict[str, str]) -> bool:
    return "actor" in (shared.get("critic"), shared.get("reward"))


def _parts(gpus: int, each: int) -> list[int]:
    """GPUs on each node of a group: full nodes, and the rest on one more."""
    return [each] * (gpus // each) + ([gpus % each] if gpus % each else [])


def _model(settings: RoleSettings, name: str, gpus: tuple[int, ...], each: int) -> Sketch:
    own = answered_sizes(settings, name)
    sizes = {
        "tp": settings.count("ds.tensor_parallel_size", 1, "ds-tensor-parallel-size", note=""),
        "cp": settings.count("ds.ring_attn_size", 1, "ring-attn-size", note=""),
    } | own
    _, parsed = trained(settings, name, len(gpus), each, "actor", **sizes)
    job = job_on("device-mesh", len(gpus), each, **sizes)
    known, updates = Known.of(parsed), 1
    paths = {"actor": ("actor.model_name_or_path", "pretrain"), "reference": ()}
    paths["critic"] = ("critic.model_name_or_path", "critic-pretrain")
    paths["reward"] = ("reward.model_name_or_path", "reward-pretrain")
    model = settings.named(*paths[name]) or settings.named(*paths["actor"])
    known = known.also(
        model=Known.of_server(model).model, sequence=_longest(settings), engine="zero"
    )
    if name == "actor":
        known, updates = _batch(settings, known)
    offloads = settings.switch("ds.enable_sleep", "deepspeed-enable-sleep")
    away: tuple[str, ...] = ("optimizer",) if offloads and name in ("actor", "critic") else ()
    if name in ("reference", "reward") and settings.switch(f"{ROLES[name]}.offload"):
        away = ("weights",)
    return Sketch(name, job, gpus=gpus, known=known, away=away, updates=updates)


def _batch(settings: RoleSettings, known: Known) -> tuple[Known, int]:
    prompts = settings.count("rollout.batch_size", 1024, "rollout-batch-size")
    samples = settings.count("rollout.n_samples_per_prompt", 1, "n-samples-per-prompt", note="")
    one = settings.count("train.batch_size", 128, "train-batch-size")
    batch = prompts * samples
    facts = {"prompts": prompts, "samples": samples, "batch": batch}
    settings.note(Note("batch-of-update", {**facts, "updates": max(1, batch // one)}))
    return Known({**known.values, "global_batch": batch}, known.training), max(1, batch // one)


def _longest(settings: RoleSettings) -> int | None:
    """The most tokens of a prompt and its answer, if they are set."""
    if settings.text("data.max_len") is not None:
        return settings.count("data.max_len", 1)
    lengths = ("prompt-max-len", "generate-max-len")  # of its commands before the sections
    if not all(settings.text(name) for name in lengths):
        return None
    return sum(settings.count(name, 1) for name in lengths)
