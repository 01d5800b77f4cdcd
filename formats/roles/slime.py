"""slime: the actor first in one pool, and the rollout on the same GPUs or after it.

Source: THUDM/slime 624b824 slime/ray/placement_group.py, slime/ray/rollout.py
(start_rollout_servers, parallel_config), slime/utils/arguments.py; SGLang's options have the
prefix --sglang-.
"""

from __future__ import annotations

from dataclasses import replace

from groups.layout import Job
from groups.notes import Note
from groups.pools import Pool, slime
from training.roles import Phase

from ..errors import refusal
from .build import Known, Sketch, plan_read, served, trained
from .model import PlanRead
from .settings import RoleSettings

PHASES = (
    *(Phase("rollout", ("rollout", "decode")), Phase("values", ("critic",))),
    *(Phase("update-critic", ("critic",)), Phase("log-probs", ("actor",))),
    *(Phase("update", ("actor",)), Phase("weights", ("actor", "rollout", "prefill", "decode"))),
)
TURNS = ("prefill", "decode", "rollout", "critic", "actor")


def read_slime(settings: RoleSettings) -> PlanRead:
    """The roles of a slime job. Errors: LayoutError for what the text leaves open."""
    nodes = settings.count("actor-num-nodes", 1)
    each = settings.count("actor-num-gpus-per-node", 8)
    together = settings.switch("colocate")
    engine = settings.count("rollout-num-gpus-per-engine", 1)
    pools = {"actor": Pool("actor", 0, nodes * each)}
    pools |= {pool.name: pool for pool in _rollout(settings, nodes, each, engine, together)}
    trains = len(pools) == 1 or not settings.switch("debug-rollout-only")
    if not trains:  # its trainers load no model
        del pools["actor"]
    size = max(pool.first + pool.gpus for pool in pools.values())
    per_node = _gpus_of_node(settings, nodes, each, size)
    sketches = [*_training(settings, pools, per_node)] if trains else []
    for name, pool in pools.items():
        if name != "actor":
            sketches.append(_engines(settings, pool, per_node))
    machines = -(-size // per_node)
    beside = () if together else tuple(own for own in pools if own != "actor")
    is_async = settings.reading.text.find("train_async") >= 0
    return plan_read(
        *("slime", machines, per_node, sketches, TURNS, PHASES, settings.notes),
        beside if is_async else (),
    )


def _rollout(
    settings: RoleSettings, nodes: int, each: int, engine: int, together: bool
) -> tuple[Pool, ...]:
    """The GPUs of the engines: of all alike, or of those that prefill and those that decode."""
    if settings.text("sglang-config"):
        raise refusal("roles-elsewhere", "sglang-config", setting="sglang-config")
    train_only, external = settings.switch("debug-train-only"), settings.switch("rollout-external")
    actor = nodes * each
    default = actor if together else None
    count = None if settings.text("rollout-num-gpus") is None else _gpus(settings)
    if train_only or external:
        settings.note(Note("rollout-elsewhere", {"setting": _which(train_only)}))
        return ()
    if count is None and default is None:
        fixes = {"rollout-num-gpus": actor}, {"colocate": "true"}
        raise refusal("setting-missing", "rollout-num-gpus", *fixes, setting="rollout-num-gpus")
    gpus = default if count is None else count
    pools = slime(nodes, each, gpus, engine, together)[1:]
    if settings.switch("debug-rollout-only"):
        pools = tuple(replace(pool, first=0) for pool in pools)
    servers = settings.text("prefill-num-servers")
    if servers is None or not pools:
        return pools
    return _apart(settings, pools[0], engine)


def _gpus(settings: RoleSettings) -> int:
    return settings.count("rollout-num-gpus", 0, least=0)


def _which(train_only: bool) -> str:
    return "debug-train-only" if train_only else "rollout-external"


def _apart(settings: RoleSettings, pool: Pool, engine: int) -> tuple[Pool, ...]:
    """Servers that prefill, followed by those that decode."""
    prefill = settings.count("prefill-num-servers", 1) * engine
    if prefill >= pool.gpus:
        most = max(1, pool.gpus // engine - 1)
        facts = {"setting": "prefill-num-servers", "value": prefill // engine}
        expected = f"a number below {pool.gpus // engine}"
        fix = {"prefill-num-servers": most}
        raise refusal("setting-wrong", "prefill-num-servers", fix, **facts, expected=expected)
    decode = Pool("decode", pool.first + prefill, pool.gpus - prefill, engine)
    return Pool("prefill", pool.first, prefill, engine), decode


def _gpus_of_node(settings: RoleSettings, nodes: int, each: int, size: int) -> int:
    """GPUs of a node, as the engines divide them."""
    if settings.text("num-gpus-per-node"):
        return settings.count("num-gpus-per-node", 8)
    if size <= 8 or (nodes > 1 and each < 8):
        return min(size, each if nodes > 1 else 8)
    return settings.count("num-gpus-per-node", 8)


def _training(settings: RoleSettings, pools: dict[str, Pool], per_node: int) -> list[Sketch]:
    world = pools["actor"].gpus
    job, parsed = trained(settings, "actor", world, per_node)
    known = Known.of(parsed)
    values = {**known.values}
    updates = 1
    prompts = settings.text("rollout-batch-size")
    if prompts is not None:
        count = settings.count("rollout-batch-size", 1)
        samples = settings.count("n-samples-per-prompt", 1)
        batch = count * samples
        if settings.text("num-steps-per-rollout"):
            updates = settings.count("num-steps-per-rollout", 1)
        elif isinstance(values.get("global_batch"), int):
            updates = max(1, batch // int(str(values["global_batch"])))
        values["global_batch"] = batch
        facts = {"prompts": count, "samples": samples, "batch": batch, "updates": updates}
        settings.note(Note("batch-of-update", facts))
    known = Known(values, known.training).also(**_named(settings, known))
    if job.framework == "device-mesh":  # --train-backend fsdp
        known = known.also(zero=3)
    away = ("weights", "gradients", "optimizer") if _offloads(settings, "train") else ()
    found = [Sketch("actor", job, known=known, away=away, updates=updates)]
    if settings.word("advantage-estimator") == "ppo":
        found.append(Sketch("critic", job, known=known, away=("weights", "gradients", "optimizer")))
    return found


def _named(settings: RoleSettings, known: Known) -> dict[str, object]:
    """The published model of the checkpoint's name, if there is no shape."""
    if known.model:
        return {}
    return {"model": Known.of_server(settings.named("hf-checkpoint")).model}


def _offloads(settings: RoleSettings, side: str) -> bool:
    together = settings.switch("colocate") or settings.switch("offload")
    return settings.switch(f"offload-{side}", default=together)


def _engines(settings: RoleSettings, pool: Pool, per_node: int) -> Sketch:
    assert pool.engine
    pp = settings.count("sglang-pp-size", 1, "sglang-pipeline-parallel-size", note="")
    if pool.engine % pp:
        fix = {"sglang-pp-size": 1}
        facts = {"setting": "sglang-pp-size", "value": pp}
        expected = f"a divisor of the {pool.engine} GPUs of an engine"
        raise refusal("setting-wrong", "sglang-pp-size", fix, **facts, expected=expected)
    names = ("sglang-dp-size", "sglang-data-parallel-size")
    dp = settings.count(names[0], 1, *names[1:], note="")
    ep = settings.count("sglang-ep-size", 1, "sglang-expert-parallel-size", note="")
    inside = dp if settings.switch("sglang-enable-dp-attention") else 1
    count = pool.gpus // pool.engine * pool.engine
    sizes = {"tp": pool.engine // pp, "pp": pp, "ep": ep, "dp": inside if inside > 1 else None}
    job: Job = served(settings, pool.name, count, per_node, "sglang", **sizes)
    share = settings.text("sglang-mem-fraction-static")
    longest = None
    if settings.text("sglang-context-length") is not None:
        longest = settings.count("sglang-context-length", 1)
    known = Known.of_server(settings.named("hf-checkpoint"), longest)
    away = ("weights", "cache") if _offloads(settings, "rollout") else ()
    return Sketch(pool.name, job, pool.first, known=known.also(served_share=share), away=away)
