"""The framework of a text, by options that only it has."""

from __future__ import annotations

from dataclasses import replace

from groups.notes import Note

from ...values import Facts
from ..flags import OPTIONS, plain_name
from ..items import Guess, Item
from ..sayings import Assignment, Reading
from .settled import Remarks


def deepspeeds_tp(reading: Reading) -> list[Assignment]:
    """``--model-parallel-size``, which Megatron removed, is tp in scripts of DeepSpeed."""
    if not any(name == "deepspeed" for name, _ in reading.frameworks):
        return []
    row = OPTIONS["tensor-model-parallel-size"]
    return [
        Assignment(
            "tp",
            int(item.value[:9]),
            replace(item, code="understood", sets="tp", facts={}),
            row,
            None,
        )
        for item in reading.removed
        if plain_name(item.name) == "model-parallel-size" and item.value.isdigit()
    ]


def framework_of(reading: Reading, values: Facts, role: str, remarks: Remarks) -> Guess | None:
    """The framework of a text; signs of several are a contradiction.

    role: the one that is asked for, empty for the usual one.
    """
    shown_by: dict[str, Item] = {}
    for name, item in reading.frameworks:
        shown_by.setdefault(name, item)
    _refuse_removed(reading, {*shown_by}, remarks)
    if schema := reading.schema:
        job = schema.job_of(reading.setting_texts, role)
        return Guess(schema.name, _job_of(job, values) if job == "device-mesh" else job)
    if not shown_by and reading.programs and not reading.leaves("may-hold-options"):
        shown_by["megatron"] = program = reading.programs[0]
        remarks.missing.append(Note("megatron-program", {"name": program.name}))
    if {"deepspeed", "megatron"} <= shown_by.keys():
        both = "deepspeed" if values.get("ep", 1) > 1 else "megatron-deepspeed"
        item = shown_by.pop("deepspeed")
        del shown_by["megatron"]
        shown_by = {both: item, **shown_by}
    if not shown_by:
        return None
    name, *others = shown_by
    for other in others:
        facts = {"other": other, "kept": name}
        item = replace(shown_by[other], code="two-frameworks", sets="", facts=facts)
        remarks.problems.append(item)
    if name in ("megatron", "nemo") and values.get("mapping"):
        return Guess("megatron-pp-dp" if name == "megatron" else name, "megatron-pp-dp")
    return Guess(name, _job_of(name, values))


def _copies(values: Facts) -> bool:
    """Whether a text asks for several copies of what is sharded (HSDP)."""
    return values.get("replicate", 1) > 1 or values.get("fsdp_size", -1) > 0


def _job_of(name: str, values: Facts) -> str:
    """The framework of a Job that numbers ranks as this one does."""
    if name == "nemo":
        return "megatron"
    if name == "device-mesh" and _copies(values):
        return "fsdp"
    if name != "deepspeed":
        return name
    if values.get("autoep"):
        return "deepspeed-autoep"
    if values.get("mics", -1) > 0:
        return "deepspeed-mics"
    if values.get("data_first"):
        return "deepspeed-data-first"
    if values.get("cp", 1) > 1:
        return "deepspeed-ulysses"
    is_data = all(values.get(size, 1) <= 1 for size in ("tp", "pp", "ep"))
    has_groups = values.get("quantized") or values.get("hpz", 1) > 1
    return "deepspeed-zeropp" if is_data and has_groups else "deepspeed"


def _refuse_removed(reading: Reading, frameworks: set[str], remarks: Remarks) -> None:
    """Refuses options that Megatron removed; in other frameworks' scripts they are unknown."""
    megatron = any(name.startswith("megatron") for name in frameworks)
    if frameworks & {"deepspeed", "megatron-deepspeed"}:
        return
    for item in reading.removed:
        if item.code == "switch-with-value":
            if megatron and not reading.schema:
                remarks.problems.append(item)
            continue
        alone = not frameworks and plain_name(item.name) == "model-parallel-size"
        if megatron or alone:
            remarks.problems.append(item)
        else:
            remarks.ignored.append(replace(item, code="unknown", facts={}))
