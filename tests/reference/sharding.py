"""Rows of what data parallelism was executed to do, put to the product.

A row has a framework, what it ``asks`` and settings; `answer` gives the fields that the recording
expects. Nothing is worked out here: models, groups, steps and buckets are the product's, and this
file says only how the recording writes them down. Recorded with torch 2.13.0, torchtitan b5bcd76,
accelerate 1.15.0 and deepspeed 0.19.8 on fake process groups (tests/data/sharding).

    tokens of a micro-batch    16
    above 8 layers             no sequence of collectives, and four units only
    persistent parameters      the first six by name
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any

from groups.errors import LayoutError
from groups.grouping import Grouping
from groups.layout import Job, Layout, own_groupings
from training.model import Model
from training.sharding import ddp, zero, zero_steps
from training.sharding.record import GroupCall, Record, totals
from training.sharding.step import PlayedStep, Seat, play, play_stages
from training.sharding.units import ModuleParameter, parameters_of, places_of
from training.sharding.value import DataParallel

TOKENS, FEW_LAYERS, FEW_OPS, UNITS, NAMES = 16, 8, 24, 4, 6

LONG = {
    **{"bf16": "bfloat16", "fp16": "float16", "fp32": "float32", "fp64": "float64"},
    **{name: name for name in ("int64", "int32", "uint8")},
}
"""torch's names of formats."""

Row = Mapping[str, Any]
Fields = dict[str, Any]


def answer(row: Row) -> Fields:
    """The fields of a row's ``expected``.

    Errors: LayoutError for what the product does not cover.
    """
    settings = row["settings"]
    if row["asks"] == "groups":
        return groups_of(row["framework"], settings)
    if row["framework"] == "pytorch DDP":
        return _ddp(settings)
    if row["framework"] == "deepspeed":
        return _zero(settings)
    return _stages(settings) if settings.get("pp", 1) > 1 else _fsdp(settings)


def model_of(sizes: Mapping[str, Any]) -> Model:
    """The product's model of the recorded sizes."""
    experts: Fields = {}
    if sizes.get("experts"):
        experts = {"experts": sizes["experts"], "expert_ffn": sizes["moe_ffn"], "top_k": 1}
        experts["dense_layers"] = sizes.get("dense_layers", 0)
    names = ("layers", "hidden", "heads", "kv_heads", "ffn")
    return Model(
        **{name: sizes[name] for name in names},
        **experts,
        vocabulary=sizes["vocab"],
        sequence=TOKENS,
        gated=True,
        rms_norm=True,
        tied=sizes.get("tie", False),
        biases="all" if sizes.get("bias") else "none",
    )


def _all_parameters(model: Model) -> list[ModuleParameter]:
    places = places_of(model, tuple(range(model.layers)), True, True)
    return [each for at in places for each in parameters_of(model, at, norms_first=True)]


# -- FSDP2 ---------------------------------------------------------------------------------------

SYNC = {
    "every": ("every", False),
    "gradient": ("last", False),
    "gradient+last_flag": ("last", True),
    "gradient+keep": ("kept", False),
    "gradient+keep+last_flag": ("kept", True),
    "all_reduce": ("replicas", False),
}
"""How the recording says when gradients are synchronised."""


def _how(settings: Row) -> DataParallel:
    stored = settings.get("orig_dtype") or "fp32"
    gathered = settings["param_dtype"] or stored
    sync, last_flag = SYNC[settings.get("sync", "every")]
    reshard = settings["reshard_after_forward"]
    return DataParallel(
        "fsdp2",
        "weights",
        replicate=settings.get("dp_replicate", 1),
        shard=settings.get("dp_shard", 1) * settings.get("cp", 1),
        stored=stored,
        gathered=gathered,
        reduced=settings["reduce_dtype"] or gathered,
        units=settings["wrap"],
        reshard=reshard,
        root_reshard=reshard if settings.get("root_same") else False,
        sync=sync,
        last_flag=last_flag,
    )


def _layout(framework: str, world: int, **sizes: int) -> Layout:
    return Job(nodes=1, gpus_per_node=world, framework=framework, **sizes).layout()


def titan_groups(settings: Row) -> dict[str, Grouping]:
    """The groups of torchtitan by its names."""
    names = ("tp", "cp", "pp", "ep")
    sizes = {name: settings.get(name, 1) for name in names}
    replicate, shard = settings.get("dp_replicate", 1), settings.get("dp_shard", 1)
    world = replicate * shard * sizes["tp"] * sizes["cp"] * sizes["pp"]
    layout = _layout("torchtitan", world, instances=replicate, **sizes)
    return {grouping.name: grouping for grouping in own_groupings(layout)}


def _seat(settings: Row) -> tuple[Seat, dict[str, list[int]]]:
    """The rank's place in its groups, and the groups that it is in."""
    rank = settings.get("rank", 0)
    made = {name: g.members(rank).tolist() for name, g in titan_groups(settings).items()}

    def place(name: str) -> tuple[int, int]:
        return (len(made[name]), made[name].index(rank))

    made["fsdp"] = made["dp_shard_cp"]
    expert = place("efsdp") if settings.get("ep", 1) > 1 else (0, 0)
    return Seat(place("fsdp"), expert, place("tp"), place("ep"), place("pp")), made


def _named_groups(settings: Row, own: Mapping[str, list[int]]) -> dict[str, list[int]]:
    shown = {"fsdp": own["fsdp"]}
    if settings.get("ep", 1) > 1:
        shown["efsdp"] = own["efsdp"]
    for name in ("dp_replicate", "tp", "cp", "pp", "ep"):
        if len(own[name]) > 1:
            shown[name] = own[name]
    reshard = settings["reshard_after_forward"]
    if not isinstance(reshard, (bool, str)):
        at = own["fsdp"].index(settings.get("rank", 0)) // reshard * reshard
        shown["post_forward"] = own["fsdp"][at : at + reshard]
    return shown


def _fsdp(settings: Row) -> Fields:
    model, how = model_of(settings["model"]), _how(settings)
    seat, own = _seat(settings)
    step = play(model, how, seat, settings["micro_batches"], TOKENS)
    units = [unit for m in step.parts[0].modules for unit in m.units]
    is_small = model.layers <= FEW_LAYERS
    shown = [[unit.name, unit.stored, unit.elements] for unit in units]
    elements = sum(each.elements for each in _all_parameters(model))
    return {
        "model_parameters": elements,
        "held_bytes": _held(step, how, moments=True),
        "groups_of_rank": _named_groups(settings, own),
        "after_forward": {
            "unsharded_parameter_bytes": [whole for whole, _ in step.after_forward],
            "post_forward_shard_bytes": [kept for _, kept in step.after_forward],
        },
        "after_backward": {
            "unsharded_parameter_bytes": [whole for whole, _ in step.after_backward],
            "unsharded_gradient_bytes": [gradients for _, gradients in step.after_backward],
        },
        **_peaks(step.record),
        "units": shown if is_small else shown[:UNITS],
        "collectives": _collectives(step.record, is_small),
    }


def _held(step: PlayedStep, how: DataParallel, *, moments: bool) -> Fields:
    units = [unit for part in step.parts.values() for m in part.modules for unit in m.units]
    each = {"bf16": 2, "fp32": 4}[how.stored]
    own, stored = (each * sum(sizes) for sizes in zip(*((u.own, u.stored) for u in units)))
    held = {"parameters": own, "parameters_stored_with_padding": stored, "gradients": own}
    if moments:
        held |= {"gradient_buffers_with_padding": stored, "adam_moments": 2 * own}
    return held


def _peaks(record: Record) -> Fields:
    most = record.fullest
    return {
        "peak_bytes": dict(record.peaks),
        "peak_of_sum": {"bytes": most.bytes, "at": [most.phase, most.unit], "parts": most.parts},
    }


def _collectives(record: Record, is_small: bool, *, staged: bool = False) -> Fields:
    def sort(each: GroupCall) -> tuple[str | None, ...]:
        stage, _, name = (each.unit or "").rpartition("/")
        unit = (
            f"layer{name[name.find('[') :] if '[' in name else ''}"
            if name.startswith("layers.")
            else name
        )
        places = (stage or None,) if staged else ()
        return (
            each.phase.partition(":")[0],
            each.op,
            each.group,
            *places,
            unit or None,
            LONG[each.format],
        )

    columns = ("phase", "op", "group", *(("stage",) if staged else ()), "unit", "dtype")
    found: Fields = {
        "totals": [
            {
                **dict(zip(columns, total.sort)),
                **dict(zip(("count", "bytes_in", "bytes_out"), total[1:])),
            }
            for total in totals((sort(each), each) for each in record.collectives)
        ]
    }
    if is_small:
        found["sequence"] = [list(each[:6]) for each in record.collectives]
    return found


def _stages(settings: Row) -> Fields:
    model, how = model_of(settings["model"]), _how(settings)
    seat, own = _seat(settings)
    stage_layers = settings["stage_layers"]
    step = play_stages(
        model, how, seat, settings["schedule"], settings["micro_batches"], stage_layers, TOKENS
    )
    is_small, whole = model.layers <= FEW_LAYERS, {}
    for stage in step.parts:
        places = places_of(
            model, tuple(stage_layers[stage]), stage == 0, stage == len(stage_layers) - 1
        )
        whole[stage] = sum(p.elements for at in places for p in parameters_of(model, at))
    names = ("op", "unsharded_parameter_bytes", "unsharded_gradient_bytes")
    alive = [dict(zip(names, each)) for each in step.after_op]
    found = {
        "stages": list(step.parts),
        "parameters_of_stages": [whole[stage] for stage in step.parts],
        "held_bytes": _held(step, how, moments=False),
        "groups_of_rank": _named_groups(settings, own),
        **_peaks(step.record),
        "alive_after_each_op": alive if len(alive) <= FEW_OPS else None,
        "most_after_an_op": {name: max(each[name] for each in alive) for name in names[1:]},
        "after_step": dict(zip(names[1:], step.after_step)),
        "collectives": _collectives(step.record, is_small, staged=True),
    }
    return found


# -- DDP -----------------------------------------------------------------------------------------


def _ddp(settings: Row) -> Fields:
    model = model_of(settings["model"])
    parameters = _all_parameters(model)
    cap = settings.get("bucket_cap_mb")
    made = ddp.steps_of(
        parameters,
        ddp.BucketSizes(
            settings["world"],
            settings.get("micro_batches", 1),
            None if cap is None else int(cap * ddp.MIB),
            settings.get("find_unused_parameters", False),
            settings.get("sync", "every") == "last",
        ),
    )
    elements = sum(each.elements for each in parameters)
    steps = {f"step{n}": [_written(each) for each in sent] for n, sent in enumerate(made.steps)}
    # The recording counts a step's buckets by its all-reduces, flags of unused parameters among
    # them: as many from the front are its first step, as many from the end its last.
    calls = [
        [[each.name for each in b], 4 * sum(e.elements for e in b)]
        for step in made.buckets
        for b in step
    ]
    counts = [sum(each.op == "all_reduce" for each in sent) for sent in made.steps]
    return {
        "model_parameters": elements,
        "parameter_bytes": 4 * elements,
        "gradient_bytes": 4 * elements,
        "columns": ["phase", "op", "group", "bytes_in", "bytes_out", "dtype"],
        "buckets_by_step": [calls[: counts[0]], calls[-counts[-1] :]],
        "construct": [_written(each)[1:] for each in made.construction],
        **steps,
    }


def _written(each: GroupCall) -> list[Any]:
    return [each.phase, each.op, each.group, each.bytes_in, each.bytes_out, LONG[each.format]]


# -- DeepSpeed's ZeRO ----------------------------------------------------------------------------


def _zero(settings: Row) -> Fields:
    parameters = _all_parameters(model_of(settings["model"]))
    config = zero_config(settings["stage"], settings.get("zero", {}), settings["config"])
    world, batches = settings["world"], settings.get("micro_batches", 1)
    made = zero_steps.steps_of(parameters, config, world, batches, 3)

    def sort(each: GroupCall) -> tuple[str | None, ...]:
        return each.phase.partition(":")[0], each.op, each.group, LONG[each.format]

    columns = ("phase", "op", "group", "dtype")
    summed = {
        name: [
            {
                **dict(zip(columns, t.sort)),
                "count": t.number,
                "bytes_in": t.bytes_in,
                "bytes_out": t.bytes_out,
            }
            for t in totals((sort(each), each) for each in made[at])
        ]
        for name, at in (("step0", 0), ("step2", 2))
    }
    return {
        "model_parameters": sum(each.elements for each in parameters),
        "held_bytes": _held_by_zero(parameters, config, world, settings.get("rank", 0)),
        "steps": summed,
        "sequence_step2": [_written(each) for each in made[2]],
    }


def zero_config(stage: int, keys: Mapping[str, Any], config: Mapping[str, Any]) -> zero.ZeroConfig:
    """The product's value of a DeepSpeed config."""
    names = {
        "reduce_bucket_size": "reduce_bucket",
        "stage3_prefetch_bucket_size": "prefetch_bucket",
        "stage3_param_persistence_threshold": "persistence",
        "stage3_model_persistence_threshold": "persistence_of_model",
        "stage3_max_live_parameters": "max_live",
        "stage3_max_reuse_distance": "max_reuse",
        "zero_hpz_partition_size": "hpz",
        "reduce_scatter": "reduce_scatter",
        "use_multi_rank_bucket_allreduce": "multi_rank",
    }
    found = {field: keys[key] for key, field in names.items() if key in keys}
    is_bf16 = config.get("bf16", {}).get("enabled", False)
    sums = config.get("data_types", {}).get("grad_accum_dtype", "")
    accumulates = sums if is_bf16 and stage == 1 and sums == "fp32" else ""
    return zero.ZeroConfig(stage, "bf16" if is_bf16 else "fp32", accumulates=accumulates, **found)


def _held_by_zero(
    parameters: Sequence[ModuleParameter], config: zero.ZeroConfig, world: int, rank: int
) -> Fields:
    elements = sum(each.elements for each in parameters)
    each = {"bf16": 2, "fp32": 4}[config.format]
    if config.stage == 0:
        return {
            "optimizer_class": "FP16_UnfusedOptimizer",
            "fp32_master_bytes": 4 * elements,
            "adam_moments_bytes": 8 * elements,
        }
    if config.stage < 3:
        share = zero.padded(elements, world) // world
        kind = "BF16_Optimizer" if config.accumulates else "DeepSpeedZeroOptimizer"
        sums = {"fp32_gradient_bytes": 4 * elements} if config.accumulates else {}
        return {
            "optimizer_class": kind,
            "bit16_full_bytes": each * elements,
            "fp32_master_bytes": 4 * share,
            **sums,
            "adam_moments_bytes": 8 * share,
        }
    part = sum(zero.partition(p, world) for p in parameters)
    kept = zero.persistent(parameters, config)
    # A rank whose parts end in padding took no step in the recording: the padding of its gradients
    # holds what memory held, which counts as an overflow.
    is_padded = any((rank + 1) * zero.partition(p, world) > p.elements for p in parameters)
    return {
        "bit16_shard_bytes": each * part,
        "bit16_persistent_full_bytes": each * sum(p.elements for p in kept),
        "persistent_parameters": [p.name for p in kept][:NAMES],
        "persistent_count": len(kept),
        "fp32_master_bytes": 4 * part,
        "gradient_partition_bytes": each * part,
        "adam_moments_bytes": 0 if is_padded else 8 * part,
    }


# -- groups --------------------------------------------------------------------------------------


Lists = dict[str, list[list[int]]]


def groups_of(framework: str, settings: Row) -> Fields:
    """The groups of a framework by its names, and what the recording says beside them."""
    made = _GROUPS[framework](settings)
    world = sum(map(len, next(iter(made["groups"].values()))))
    return {"world": world, **made}


def _lists(layout: Layout) -> Lists:
    return {g.name: [list(map(int, group)) for group in g.groups()] for g in own_groupings(layout)}


def _of_titan(settings: Row) -> Fields:
    found = {
        name: [list(map(int, group)) for group in g.groups()]
        for name, g in titan_groups(settings).items()
    }
    dense = found.pop("dp_shard_cp")
    is_typed = settings["spmd_backend"] == "spmd_types"
    has_experts, has_copies = settings["ep"] > 1, settings["dp_replicate"] > 1
    if not is_typed:
        found = {name: g for name, g in found.items() if name not in ("dp", "dp_shard")}
        found["fsdp"] = dense
    enabled = {name for name, groups in found.items() if len(groups[0]) > 1}
    if not has_experts:
        enabled.discard("efsdp")
    found["fully_shard dense shard group"] = dense
    if has_copies:
        found["fully_shard dense replicate group"] = found["dp_replicate"]
    if has_experts and is_typed:
        found["fully_shard expert shard group"] = found["efsdp"]
        if has_copies:
            found["fully_shard expert replicate group"] = found["dp_replicate"]
    return {"groups": found, "meshes_enabled": sorted(enabled)}


def _of_accelerate(settings: Row) -> Fields:
    tp, cp = settings.get("tp", 1), settings.get("cp", 1)
    replicate, shard = settings.get("dp_replicate", 1), settings.get("dp_shard", 1)
    if replicate > 1 and shard == 1 and tp * cp > 1:
        message = "accelerate has no dp_replicate beside tp or cp where dp_shard is 1"
        raise LayoutError("accelerate-refuses", message, control="instances")
    layout = _layout("fsdp", replicate * shard * tp * cp, tp=tp, cp=cp, instances=replicate)
    sizes = {"dp_replicate": replicate, "dp_shard": shard, "cp": cp, "tp": tp}
    dims = [name for name, size in sizes.items() if size > 1]
    lists = _lists(layout)
    names = [*dims, "dp", "dp_cp", "dp_shard_cp"]
    found = {name: lists[name] for name in names if len(lists[name][0]) > 1}
    if shard * cp > 1:
        found["fully_shard shard group"] = lists["dp_shard_cp"]
    copies = ["dp_replicate"] if replicate > 1 else []
    if copies and shard * cp > 1:
        found["fully_shard replicate group"] = lists["dp_replicate"]
    return {
        "groups": found,
        "mesh_dim_names": dims,
        "fsdp_dim_names": [*copies, "dp_shard_cp"],
        "batch_dim_names": [],  # which this version does not have
        "model_shard_dim_names": [],
    }


def _of_mesh(settings: Row) -> Fields:
    sizes = dict(zip(settings["names"], settings["shape"]))
    replicate = sizes.get("dp_replicate", 1)
    others = {name: sizes.get(name, 1) for name in ("tp", "cp")}
    layout = _layout("fsdp", prod(sizes.values()), instances=replicate, **others)
    lists = _lists(layout)
    found = {name: lists[name] for name in sizes}
    if "dp_shard" in sizes:
        found["fully_shard shard group"] = lists["dp_shard"]
    if "dp_replicate" in sizes:
        found["fully_shard replicate group"] = lists["dp_replicate"]
    return {"groups": found}


def _of_deepspeed(settings: Row) -> Fields:
    world = settings["world"]
    if hpz := settings.get("zero_hpz_partition_size"):
        lists = _lists(_layout("deepspeed-zeropp", world, hpz=hpz))
        names = {"dp (primary shards)": "data", "zero_param_intra": "zero_param_intra"}
    elif shard := settings.get("mics_shard_size"):
        lists = _lists(_layout("deepspeed-mics", world, instances=world // shard))
        names = {
            "mics shard (param_shard_group)": "param_shard",
            "mics replicate (param_repli_group)": "param_repli",
        }
    else:
        is_first = settings.get("use_data_before_expert_parallelism", False)
        framework = "deepspeed-data-first" if is_first else "deepspeed"
        tp = settings.get("mp_size", 1)
        lists = _lists(_layout(framework, world, tp=tp, ep=settings["ep_size"]))
        names = {"expert_data_parallel": "expert_data", "expert_parallel": "expert"}
        if tp > 1:
            names |= {"dp (mpu)": "data", "tp (mpu)": "model"}
    return {"groups": {name: lists[own] for name, own in names.items()}}


def _of_autoep(settings: Row) -> Fields:
    sizes = {name: settings[name] for name in ("tp", "pp", "ep")}
    lists = _lists(_layout("deepspeed-autoep", settings["world"], **sizes))
    return {"groups": {name: lists[name] for name in ("tp", "dp", "ep", "edp")}}


_GROUPS = {
    "torchtitan": _of_titan,
    "accelerate": _of_accelerate,
    "pytorch HSDP DeviceMesh": _of_mesh,
    "deepspeed": _of_deepspeed,
    "deepspeed AutoEP": _of_autoep,
}


def equal(got: object, expected: object) -> bool:
    """Whether an answer says what is expected: what is expected as numbers is equal as integers,
    groups as sets of groups."""
    if isinstance(expected, Mapping):
        if not isinstance(got, Mapping):
            return False
        return all(
            _same_groups(got.get(k), v) if k == "groups" else equal(got.get(k), v)
            for k, v in expected.items()
        )
    if isinstance(expected, (list, tuple)):
        return (
            isinstance(got, (list, tuple))
            and len(got) == len(expected)
            and all(map(equal, got, expected))
        )
    return got == expected


def _same_groups(got: object, expected: Mapping[str, Iterable[Iterable[int]]]) -> bool:
    if not isinstance(got, Mapping):
        return False
    return got.keys() == expected.keys() and all(
        {tuple(g) for g in got[name]} == {tuple(g) for g in groups}
        for name, groups in expected.items()
    )
