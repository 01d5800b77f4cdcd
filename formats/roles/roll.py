"""ROLL: a section for each role, with the numbers of its GPUs.

Source: alibaba/ROLL 8eb27cc roll/configs/worker_config.py, roll/configs/base_config.py,
roll/distributed/scheduler/resource_manager.py (allocate_placement_group): GPU g is GPU
g % num_gpus_per_node of node g // num_gpus_per_node; workers take runs of a role's list.
"""

from __future__ import annotations

import re

from groups.mesh import MAX_RANKS
from groups.notes import Note
from training.roles import Phase

from ..errors import refusal
from .build import Known, Sketch, job_on, plan_read, served, trained
from .model import PlanRead
from .settings import RoleSettings

PHASES = (
    *(Phase("rollout", ("actor_infer",)), Phase("reference", ("reference",))),
    *(Phase("values", ("critic",)), Phase("log-probs", ("actor_train",))),
    *(Phase("update-critic", ("critic",)), Phase("update", ("actor_train",))),
    Phase("weights", ("actor_train", "actor_infer")),
)
TURNS = ("actor_infer", "reference", "critic", "actor_train")
SERVERS = {"vllm": "vllm", "sglang": "sglang"}
TRAINS = ("actor_train", "critic", "student_train", "sft_train", "dpo_train")


def read_roll(settings: RoleSettings) -> PlanRead:
    """The roles of a ROLL job. Errors: LayoutError for what the text leaves open."""
    each = settings.count("num_gpus_per_node", 8)
    gpus = {name: _gpus(settings, name) for name in _names(settings)}
    places = {name: numbers for name, numbers in gpus.items() if numbers}
    if not places:
        fix = {"actor_train.device_mapping": f"list(range(0,{each}))"}
        setting = "actor_train.device_mapping"
        raise refusal("setting-missing", setting, fix, setting=setting)
    sketches = [_role(settings, name, places[name], each) for name in places]
    others = [name for name in places if name not in TURNS]
    rewards = tuple(_shown(name) for name in others if name not in TRAINS)
    phases = (PHASES[0], Phase("reward", rewards), *PHASES[1:])
    turns = (TURNS[0], *map(_shown, others), *TURNS[1:])
    last = max(max(numbers) for numbers in places.values())
    read = plan_read("roll", last // each + 1, each, sketches, turns, phases, settings.notes)
    return read


def _names(settings: RoleSettings) -> list[str]:
    """The sections that have GPUs, as they stand in the text."""
    end = ".device_mapping"
    named = [name for _, name in settings.reading.settings if name.endswith(end)]
    named += [name for name in settings.answers if name.endswith(end)]
    return list(dict.fromkeys(name.removesuffix(end) for name in named))


_RANGE = re.compile(r"list\(range\((\d{1,7})(?:,(\d{1,7}))?(?:,(\d{1,7}))?\)\)")
_LIST = re.compile(r"(?:list\()?\[?(\d{1,7}(?:,\d{1,7})*),?\]?\)?")


def _gpus(settings: RoleSettings, name: str) -> tuple[int, ...]:
    """The GPUs of a role: lists and ranges of Python, joined by +.

    Errors: LayoutError for any other text.
    """
    setting = f"{name}.device_mapping"
    text = settings.text(setting, works="list(range(0,8))")
    if text is None:
        return ()
    found: list[int] = []
    for part in re.sub(r"[\s\"']", "", text).split("+"):
        numbers = _range(part) or _listed(part)
        if numbers is None or max(numbers) >= MAX_RANKS or len(found) > MAX_RANKS:
            facts = {"setting": setting, "value": repr(text[:40])}
            fix = {setting: "list(range(0,8))"}
            raise refusal("setting-wrong", setting, fix, **facts, expected="a list of GPUs")
        found += numbers
    return tuple(found)


def _range(part: str) -> range | None:
    match = _RANGE.fullmatch(part)
    if match is None:
        return None
    first, end, step = match[1], match[2], match[3] or "1"
    low, high = (0, int(first)) if end is None else (int(first), int(end))
    numbers = range(low, min(high, MAX_RANKS), max(1, int(step)))
    return numbers if len(numbers) else None


def _listed(part: str) -> list[int] | None:
    match = _LIST.fullmatch(part)
    return [int(number) for number in match[1].split(",") if number] if match else None


def _shown(name: str) -> str:
    return name.removeprefix("rewards.")


def _role(settings: RoleSettings, name: str, gpus: tuple[int, ...], each: int) -> Sketch:
    strategy = settings.word(f"{name}.strategy_args.strategy_name")
    shown = _shown(name)
    model = settings.named(f"{name}.model_args.model_name_or_path", "pretrain")
    if strategy in SERVERS:
        config = f"{name}.strategy_args.strategy_config"
        workers = settings.count(f"{name}.num_gpus_per_worker", 1, note="")
        tp = workers if strategy == "sglang" else 1
        tp = settings.count(f"{config}.tensor_parallel_size", tp, note="")
        pp = settings.count(f"{config}.pipeline_parallel_size", 1, note="")
        more: dict[str, object] = {"dp": 1} if strategy == "vllm" else {}
        job = served(settings, shown, len(gpus), each, SERVERS[strategy], tp=tp, pp=pp, **more)
        share = f"{config}.gpu_memory_utilization", f"{config}.mem_fraction_static"
        known = Known.of_server(model).also(served_share=settings.text(*share))
        return Sketch(shown, job, gpus=gpus, known=known, away=("weights", "cache"))
    section = name if settings.reading.schema and name in settings.reading.schema.roles else ""
    if not section:
        if strategy.startswith("megatron"):
            raise refusal("roles-not-read", "paste", kinds=name)
        known = Known.of_server(model)
        return Sketch(shown, job_on("device-mesh", len(gpus), each), gpus=gpus, known=known)
    job, parsed = trained(settings, shown, len(gpus), each, section)
    known, updates = Known.of(parsed), 1
    known = known.also(model=Known.of_server(model).model)
    if strategy.startswith("fsdp"):
        known = known.also(zero=3)
        size = settings.text(f"{name}.strategy_args.strategy_config.fsdp_size") or "-1"
        if size not in ("-1", str(len(gpus))):
            facts = {"setting": "fsdp_size", "value": size, "world": len(gpus)}
            settings.note(Note("sharded-in-parts", facts))
    if name == "actor_train":
        known, updates = _batch(settings, known, len(gpus) // (job.tp * job.pp * job.cp))
    away = ("weights", "gradients", "optimizer") if name in TRAINS else ("weights",)
    return Sketch(shown, job, gpus=gpus, known=known, away=away, updates=updates)


def _batch(settings: RoleSettings, known: Known, replicas: int) -> tuple[Known, int]:
    if settings.text("rollout_batch_size") is None:
        return known, 1
    prompts = settings.count("rollout_batch_size", 1)
    samples = settings.count("num_return_sequences_in_group", 1, note="")
    training = "actor_train.training_args"
    one = settings.count(f"{training}.per_device_train_batch_size", 1, note="")
    one *= settings.count(f"{training}.gradient_accumulation_steps", 1, note="") * replicas
    batch = prompts * samples
    updates = max(1, batch // max(1, one))
    facts = {"prompts": prompts, "samples": samples, "batch": batch, "updates": updates}
    settings.note(Note("batch-of-update", facts))
    return Known({**known.values, "global_batch": batch}, known.training), updates
