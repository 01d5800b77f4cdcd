"""verl: one pool of all GPUs for actor, rollout, reference and critic, and pools of their own.

Source: verl-project/verl 1dda039 verl/trainer/ppo/v1/ (trainer_base.py, _init_resource_pool_mgr;
trainer_separate_async.py), verl/trainer/ppo/utils.py (need_critic, need_reference_policy),
verl/workers/rollout/replica.py and llm_server.py, verl/experimental/separation/utils.py; defaults:
verl/trainer/config/ppo_trainer.yaml, rollout/rollout.yaml, reward/reward.yaml and
distillation/distillation.yaml.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from groups.errors import not_a_choice
from groups.layout import Job
from groups.notes import Note
from groups.pools import packed, verl_replicas
from training.roles import Phase

from ..errors import refusal
from ..launch.flags import published_model
from .build import Known, Sketch, plan_read, served, trained
from .model import PlanRead
from .settings import RoleSettings

ROLLOUT = "actor_rollout_ref.rollout"
ACTOR = "actor_rollout_ref.actor"
REFERENCE = "actor_rollout_ref.ref"
REWARD = "reward.reward_model"
TEACHERS = "distillation.teacher_models."

ENGINES = {"vllm": "vllm", "sglang": "sglang", "trtllm": "tensorrt-llm"}
"""The frameworks of engines by verl's names."""

PHASES = (
    *(
        Phase("rollout", ("rollout", "hybrid-rollout", "prefill", "decode")),
        Phase("reward", ("reward",)),
    ),
    *(Phase("log-probs", ("actor",)), Phase("reference", ("reference",))),
    *(Phase("teacher", ("teacher",)), Phase("values", ("critic",))),
    *(Phase("update-critic", ("critic",)), Phase("update", ("actor",))),
    Phase("weights", ("actor", "rollout", "hybrid-rollout", "prefill", "decode")),
)
TURNS = ("prefill", "decode", "rollout", "hybrid-rollout", "reward", "reference", "critic", "actor")
"""The order in which roles use shared GPUs in a step."""

MODES = ("sync", "colocate_async", "separate_async")


def read_verl(settings: RoleSettings) -> PlanRead:
    """The roles of a verl job. Errors: LayoutError for what the text leaves open."""
    wanted = _pools(settings)
    each = _gpus_of_node(settings, wanted)
    placed, nodes = packed(wanted, each)
    world, apart = placed["global"], "rollout" in wanted
    sketches = [_actor(settings, world, each)]
    if apart:
        sketches += _engines(settings, "rollout", ROLLOUT, placed["rollout"], each)
    if not apart or _mode(settings) == "separate_async":
        name = "hybrid-rollout" if apart else "rollout"
        sketches += _engines(settings, name, ROLLOUT, world, each)
    sketches += _scoring(settings, world, each)
    if settings.switch(*_of_reward("enable")):
        place, section = placed.get("reward", world), f"{_reward(settings)}.rollout"
        sketches += _engines(settings, "reward", section, place, each)
    if "teacher" in placed:
        sketches += _teachers(settings, placed["teacher"], each)
    beside = ("rollout",) if apart else ()
    teachers = tuple(own.name for own in sketches if own.name.startswith("teacher"))
    phases = [phase if phase.name != "teacher" else Phase("teacher", teachers) for phase in PHASES]
    return plan_read("verl", nodes, each, sketches, TURNS, phases, settings.notes, beside)


# -- pools -----------------------------------------------------------------------------------------


def _pools(settings: RoleSettings) -> dict[str, list[list[int]]]:
    """GPUs per node of the pools, by role, in the order of their placement."""
    nodes = settings.count("trainer.nnodes", 1)
    wanted = {"global": [[settings.count("trainer.n_gpus_per_node", 8)] * nodes]}
    if settings.switch(*_of_reward("enable_resource_pool")):
        wanted["reward"] = [_pool(settings, _reward(settings))]
    if settings.switch("distillation.enabled"):
        wanted["teacher"] = [_pool(settings, "distillation")]
    section = _standalone(settings)
    if section:
        pool = _pool(settings, section)
        size = _replica(settings, ROLLOUT)
        each, world = pool[0], sum(pool)
        one = [*verl_replicas(world, each, size)]
        wanted["rollout"] = [one] * (world // size)
    return wanted


def _pool(settings: RoleSettings, section: str) -> list[int]:
    nodes = settings.required(f"{section}.nnodes", 1, 2)
    default = settings.count("trainer.n_gpus_per_node", 8) if section == ROLLOUT else 8
    return [settings.count(f"{section}.n_gpus_per_node", default)] * nodes


def _standalone(settings: RoleSettings) -> str:
    """The section of the GPUs that only the rollout has; empty if it has the actor's."""
    if settings.has("rollout.nnodes"):  # verl.experimental's trainers
        return "" if settings.count("rollout.nnodes", 0, least=0) == 0 else "rollout"
    return ROLLOUT if _mode(settings) == "separate_async" else ""


def _mode(settings: RoleSettings) -> str:
    mode = settings.word("trainer.v1.trainer_mode", default="sync")
    if mode not in MODES:
        fixes = tuple({"trainer.v1.trainer_mode": name} for name in MODES)
        raise not_a_choice("trainer.v1.trainer_mode", mode, MODES, fixes)
    return mode


def _gpus_of_node(settings: RoleSettings, wanted: dict[str, list[list[int]]]) -> int:
    """GPUs of a node, of which pools take parts: no setting has it."""
    parts = {part for pools in wanted.values() for pool in pools for part in pool}
    if len(wanted) == 1:
        return max(parts)
    each = settings.count("gpus_per_node", max(8, *parts), note="")
    settings.note(Note("pools-in-order", {"pools": ", ".join(wanted), "each": each}))
    return each


def _of_reward(name: str) -> tuple[str, str]:
    """A setting of the reward model, by its newer or older name."""
    return f"{REWARD}.{name}", f"reward_model.{name}"


def _reward(settings: RoleSettings) -> str:
    return REWARD if settings.has(REWARD) else "reward_model"


# -- roles -----------------------------------------------------------------------------------------


def _actor(settings: RoleSettings, world: Sequence[int], each: int) -> Sketch:
    job, parsed = trained(settings, "actor", len(world), each, "actor")
    known = _worked(settings, ACTOR, job, Known.of(parsed))
    prompts = settings.count("data.train_batch_size", 1024, least=0)
    samples = settings.count(f"{ROLLOUT}.n", 1)
    batch = settings.count(f"{ACTOR}.ppo_mini_batch_size", 256)
    if not prompts:  # fully asynchronous: the trainer takes so many mini-batches as they come
        prompts = batch * settings.count("async_training.require_batches", 1, note="")
    updates = max(1, prompts // batch)
    known = Known({**known.values, "global_batch": prompts * samples}, known.training)
    facts = {"prompts": prompts, "samples": samples, "batch": prompts * samples}
    settings.note(Note("batch-of-update", {**facts, "updates": updates}))
    away = _away(settings, ACTOR, job)
    return Sketch("actor", job, gpus=world, known=known, away=away, updates=updates)


def _teachers(settings: RoleSettings, place: Sequence[int], each: int) -> Iterator[Sketch]:
    """The teachers of a distillation, one behind the other in their pool; one alone has all of it.

    Source: verl/experimental/teacher_loop/teacher_model.py (MultiTeacherModelManager).
    """
    own = [name for _, name in settings.reading.settings if name.startswith(TEACHERS)]
    usual = "teacher_model"  # which gives way to others
    names = dict.fromkeys(name[len(TEACHERS) :].split(".")[0] for name in own)
    several = [name for name in names if name != usual]
    if len(several) < 2:
        only = several[0] if several else usual
        yield from _engines(settings, "teacher", f"{TEACHERS}{only}.inference", place, each)
        return
    at = 0
    for name in several:
        section = f"{TEACHERS}{name}.inference"
        count = settings.required(f"{TEACHERS}{name}.num_replicas", 1) * _replica(settings, section)
        part = place[at : at + count]
        if len(part) < count:
            setting = f"{TEACHERS}{name}.num_replicas"
            facts = {"setting": setting, "value": count, "expected": f"{len(place) - at} GPUs"}
            raise refusal("setting-wrong", setting, {setting: 1}, **facts)
        yield from _engines(settings, f"teacher-{name}", section, part, each)
        at += count


def _scoring(settings: RoleSettings, world: Sequence[int], each: int) -> Iterator[Sketch]:
    """Reference and critic, if there are any."""
    needs = settings.switch("algorithm.use_kl_in_reward") or settings.switch(f"{ACTOR}.use_kl_loss")
    model = "actor_rollout_ref.model"
    ranks = (settings.word(f"{model}.lora.rank"), settings.word(f"{model}.lora_rank"))
    adapts = any(rank not in ("", "0") for rank in ranks)
    if needs and not adapts and not settings.text(f"{model}.lora_adapter_path"):
        job, parsed = trained(settings, "reference", len(world), each, "reference")
        away = _away(settings, REFERENCE, job)
        known = _worked(settings, REFERENCE, job, Known.of(parsed))
        yield Sketch("reference", job, gpus=world, known=known, away=away)
    by_gae = settings.word("algorithm.adv_estimator", default="gae") == "gae"
    if settings.switch("critic.enable", default=by_gae):
        job, parsed = trained(settings, "critic", len(world), each, "critic")
        name = settings.named("critic.model.path", f"{model}.path")
        known = Known.of(parsed).also(model=None if name is None else published_model(name))
        known = _worked(settings, "critic", job, known)
        away = _away(settings, "critic", job)
        yield Sketch("critic", job, gpus=world, known=known, away=away)


def _worked(settings: RoleSettings, section: str, job: Job, known: Known) -> Known:
    """How a role trains: samples as long as a prompt and its answer; by FSDP all is cut over all
    ranks, unless fsdp_size says otherwise, and layers are computed again.

    Source: verl 17aa18c verl/trainer/config/model/hf_model.yaml (enable_gradient_checkpointing) and
    verl/workers/fsdp_workers.py (create_device_mesh: fsdp_size -1 is all ranks).
    """
    known = known.also(sequence=_length(settings))
    if not _is_fsdp(job):
        return known
    owner = "critic.model" if section == "critic" else "actor_rollout_ref.model"
    again = settings.switch(f"{owner}.enable_gradient_checkpointing", default=True)
    names = (f"{section}.fsdp_config.fsdp_size", f"{section}.model.fsdp_config.fsdp_size")
    world = job.nodes * job.gpus_per_node
    size = next(filter(None, (settings.text(name) for name in names)), "-1")
    if size not in ("-1", str(world)):
        facts = {"setting": "fsdp_size", "value": size, "world": world}
        settings.note(Note("sharded-in-parts", facts))
    return known.also(zero=3, recompute="full" if again else "none")


def _is_fsdp(job: Job) -> bool:
    return job.framework == "device-mesh"


def _away(settings: RoleSettings, section: str, job: Job) -> tuple[str, ...]:
    """What the training of a role has not in its GPUs while others have them: what is moved to
    host memory, and with FSDP gradients, which are let go after an update (dp_actor.py).
    """
    parts = {"param_offload": "weights", "grad_offload": "gradients"}
    parts["optimizer_offload"] = "optimizer"
    backends = ("fsdp_config", "megatron", "model.fsdp_config")
    return tuple(
        part
        for name, part in parts.items()
        if (part == "gradients" and _is_fsdp(job))
        or settings.switch(*(f"{section}.{backend}.{name}" for backend in backends))
    )


def _replica(settings: RoleSettings, section: str) -> int:
    """GPUs of one replica, in which prefill and decode may be separate."""
    tp, dp, pp = _sizes(settings, section)
    prefill, decode, decode_tp = _split(settings, section, tp)
    return (tp * prefill + decode_tp * decode) * dp * pp


def _split(settings: RoleSettings, section: str, tp: int) -> tuple[int, int, int]:
    """Servers of a replica that prefill and that decode alone, and the tp of these; one and none
    where a replica does both.

    Source: verl/workers/rollout/vllm_rollout/vllm_pd_replica.py, which has one that prefills.
    """
    split = f"{section}.disaggregation"
    if not settings.switch(f"{split}.enabled"):
        return 1, 0, tp
    prefill = settings.count(f"{split}.prefill_replicas", 1, note="")
    _, dp, pp = _sizes(settings, section)
    sizes = {f"{split}.prefill_replicas": prefill, f"{section}.data_parallel_size": dp}
    sizes[f"{section}.pipeline_model_parallel_size"] = pp
    for name, size in sizes.items():
        if size != 1:
            facts = {"setting": name, "value": size, "expected": "1 where prefill is apart"}
            raise refusal("setting-wrong", name, {name: 1}, **facts)
    decode = settings.count(f"{split}.decode_replicas", 1, note="")
    return 1, decode, settings.count(f"{split}.decode_tensor_model_parallel_size", tp, note="")


def _sizes(settings: RoleSettings, section: str) -> tuple[int, int, int]:
    tp = settings.count(f"{section}.tensor_model_parallel_size", 2)
    dp = settings.count(f"{section}.data_parallel_size", 1, note="")
    return tp, dp, settings.count(f"{section}.pipeline_model_parallel_size", 1, note="")


def _engines(
    settings: RoleSettings, name: str, section: str, place: Sequence[int], each: int
) -> Iterator[Sketch]:
    """A role of replicas, or of their two halves; GPUs beyond the last whole one serve nothing."""
    engine = settings.word(f"{section}.name", default="vllm")
    if engine not in ENGINES:
        fixes = tuple({f"{section}.name": own} for own in ENGINES)
        raise not_a_choice(f"{section}.name", engine, ENGINES, fixes)
    tp, dp, pp = _sizes(settings, section)
    size = _replica(settings, section)
    verl_replicas(len(place), each, size)
    count = len(place) // size * size
    own: dict[str, object] = {"tp": tp, "pp": pp}
    experts = settings.count(f"{section}.expert_parallel_size", 1, note="")
    if ENGINES[engine] == "vllm":
        own |= {"dp": dp, "expert_parallel": experts > 1}
    elif ENGINES[engine] == "sglang":
        own |= {"tp": tp * dp, "dp": dp if dp > 1 else None, "ep": experts}
    paths: dict[str, tuple[str, ...]] = {}
    paths["reward"] = _of_reward("model_path") + _of_reward("model.path")
    if section.startswith(TEACHERS):
        paths[name] = (f"{section.removesuffix('.inference')}.model_path",)
    model = settings.named(*paths.get(name, ("actor_rollout_ref.model.path",)))
    share = settings.text(f"{section}.gpu_memory_utilization") or "0.5"  # verl's own default
    kept = "fp8" if settings.word(f"{section}.quantization") == "fp8" else "bf16"  # rollout.dtype
    known = Known.of_server(model, _longest(settings, section))
    known = known.also(served_share=share, served_weights=kept)
    frees = settings.switch(f"{section}.free_cache_engine", default=True)
    away = ("weights", "cache") if frees else ()
    _, decode, decode_tp = _split(settings, section, tp)
    halves = {name: (place[:count], own)}
    if decode:
        starts = range(0, count, size)
        first = [place[at + rank] for at in starts for rank in range(tp)]
        rest = [place[at + rank] for at in starts for rank in range(tp, size)]
        halves = {"prefill": (first, own), "decode": (rest, {**own, "tp": decode_tp})}
    for half, (gpus, sizes) in halves.items():
        job = served(settings, half, len(gpus), each, ENGINES[engine], **sizes)
        yield Sketch(half, job, gpus=gpus, known=known, away=away)


def _longest(settings: RoleSettings, section: str) -> int | None:
    """Tokens of the longest request, if it is set."""
    if settings.text(f"{section}.max_model_len"):
        return settings.count(f"{section}.max_model_len", 1)
    return _length(settings)


def _length(settings: RoleSettings) -> int | None:
    """The most tokens of a prompt and its answer, if both are set."""
    lengths = ("data.max_prompt_length", "data.max_response_length")
    if not all(settings.text(name) for name in lengths):
        return None
    return sum(settings.count(name, 1) for name in lengths)
