"""Values that a text leaves open: sizes that are asked for or assumed, and a framework's training
defaults."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from groups.frameworks import FRAMEWORKS, framework_of
from groups.notes import Note
from training.models import MODELS

from ...values import Document, Facts
from .. import flags
from ..counts import experts_in
from ..flags import AXES
from ..items import Guess
from ..sayings import Reading
from ..training import SAYS
from .choice import Choice
from .settled import Remarks, Settled

UNSAID: dict[str, object] = {
    **dict.fromkeys(("sequence_parallel", "distributed_optimizer", "recompute"), False),
    "precision": "fp32",
}
"""How Megatron trains where its command is silent (NVIDIA/Megatron-LM d98e8a6,
megatron/training/arguments.py). Asked of a file, or of a command that starts a program, with the
shape of its model: lists of options alone are a part of several."""

ALSO = {
    "distributed_optimizer": ("sharding", "torch_fsdp", "zero"),
    "zero": ("sharding", "torch_fsdp", "distributed_optimizer", "zero_named", "fsdp_strategy"),
    "recompute": ("recompute_core", "recompute_whole", "recompute_moe"),
    "precision": ("bf16", "fp16"),
    "attention": ("flash",),
}
"""Other fields that set the same as one."""

SAY_OFF = {*UNSAID, "recompute_whole"}
"""Fields that say something where they are off: without BF16, say, a format is still not said."""

GPT2_VOCABULARY = 50257
"""Tokens of GPT2BPETokenizer, which counts where a script of Megatron names no tokenizer and gives
the merges of one (NVIDIA/Megatron-LM d98e8a6 pretrain_gpt.py; openai/gpt-2 src/model.py, n_vocab).
"""

MAY_SET_ANY = ("inherits", "sourced", "handed", "unknown-size", "disguised")
"""Why a text does not hold the whole command line: what it does not say is not 1 then."""

MayBeAny = Callable[[str], bool]
"""Whether an unset field is unknown, instead of the program's default."""


def may_be_any(reading: Reading, choice: Choice, remarks: Remarks) -> MayBeAny:
    """Tells whether an unset field is unknown: an unresolved word, or a file that is not here, may
    set it."""
    settled = ("given-twice", "contradiction")
    schema = reading.schema
    is_open = choice.is_open or reading.leaves(*MAY_SET_ANY)

    def may_be(name: str) -> bool:
        problems = (*reading.problems, *remarks.problems)
        wrong = (item for item in problems if item.code not in settled)
        may_say = schema is None or name in schema.fields or not schema.key_rows
        has_role = choice.of_roles and not choice.chosen
        return bool(
            is_open
            or any(item.sets == name for item in (*reading.unresolved, *wrong))
            or (reading.configured and may_say)
            or (has_role and any(one.role and one.field == name for one in reading.assignments))
        )

    return may_be


def assume_axes(
    sizes: Facts,
    assumed: Document,
    framework: Guess | None,
    may_be: MayBeAny,
    remarks: Remarks,
) -> None:
    """Asks for axes that the text does not set, or assumes the program's default of 1."""
    has = framework_of(framework.job if framework else "megatron")
    axes = {own.axis for own in (*has.axes, *has.expert_axes)}
    for name in AXES:
        if name not in sizes and (name in axes or framework is None):
            if framework is None or may_be(name):
                remarks.ask(name)
            else:
                remarks.assume(assumed, name, 1)


def assume_length(name: str, remarks: Remarks) -> Document:
    """Assumes the longest request of a server: what its model was made for, in every engine (vllm
    00193b8 vllm/config/model.py, _get_and_verify_max_len)."""
    length = flags.longest_of(name)
    if not length:
        return {}
    remarks.missing.append(Note("length-of-model", {"length": length, "name": name[:80]}))
    return {"served_length": length}


def etp_of(reading: Reading) -> int:
    """The parallel size of experts that a framework takes where the text is silent; 0: tp.

    Megatron-Bridge has taken 1 since June 2026 (NVIDIA-NeMo/Megatron-Bridge PR 4579,
    src/megatron/bridge/models/transformer_config.py); before, and in Megatron itself, it is tp.
    """
    if reading.schema:
        return reading.schema.etp
    return int(any(name in reading.text for name in ("megatron.bridge", "megatron-bridge")))


def assume_budget(known: Facts, assumed: Document, remarks: Remarks) -> None:
    """Says what a budget of tokens makes of a micro-batch, and assumes so many samples where their
    length divides it: a cp group holds cp times as many.

    Sources: THUDM/slime 624b824 slime/backends/megatron_utils/data.py (get_data_iterator);
    volcengine/verl b178a3c verl/utils/seqlen_balancing.py (prepare_dynamic_batch).
    """
    if "budget" not in known or not known.get("dynamic"):
        return
    cp, tokens = known.get("cp", 1), known["budget"]
    facts: Document = {"tokens": tokens, "cp": cp, "all": tokens * cp}
    remarks.missing.append(Note("token-budget", facts))
    samples = tokens * cp // known["seq"] if known.get("seq") else 0
    if "micro_batch" not in known and samples > 0 and not known.get("global_batch", 0) % samples:
        assumed["micro_batch"] = samples


def assume_batch(known: Facts, assumed: Document, remarks: Remarks) -> None:
    """Assumes that a device's batch is a micro-batch, unless something else is; and the global
    batch from gradient accumulation and the number of replicas."""
    if remarks.asks:
        return
    if "device_batch" in known:
        assumed["micro_batch"] = known["device_batch"]
    if "global_batch" in known or not {"accumulation", "gpus_per_node"} <= {*known}:
        return
    known = {"micro_batch": 1, **assumed, **known}
    shards = math.prod(known.get(name, 1) for name in ("tp", "pp", "cp"))
    replicas = known["nodes"] * known["gpus_per_node"] // shards
    batch = known["micro_batch"] * known["accumulation"] * replicas
    if 0 < batch <= flags.limit_of("global_batch"):
        assumed["global_batch"] = batch
        remarks.missing.append(Note("batch-of-replicas", {"replicas": replicas, "batch": batch}))


def _is_megatron(framework: Guess | None) -> bool:
    """Whether a text is of Megatron's own options, and none of a program that starts it."""
    name = framework.name if framework else ""
    return name in FRAMEWORKS and FRAMEWORKS[name].speaks_megatron


def assume_training(
    reading: Reading,
    framework: Guess | None,
    known: Facts,
    assumed: Document,
    may_be: MayBeAny,
    remarks: Remarks,
) -> None:
    """Assumes a framework's training defaults for options that nothing in the text sets or may
    set."""
    if remarks.asks or reading.leaves("may-hold-options"):
        return
    unsaid: Document = dict(reading.schema.unsaid) if reading.schema else {}
    if reading.schema and framework:
        unsaid |= reading.schema.unsaid_of.get(framework.job, {})
    if framework and framework.name == "deepspeed" and reading.form == "json":
        unsaid |= {"zero": 0}  # of its configuration, which is all that it has
    if _is_megatron(framework) and "hidden" in known and reading.starts:
        unsaid = UNSAID | unsaid
    names = {name for name, value in known.items() if value is not False or name in SAY_OFF}
    for name, value in unsaid.items():
        fields = {name, *ALSO.get(name, ())}
        if names & fields or name in assumed or any(map(may_be, fields)):
            continue
        if value is False:
            assumed[name] = value
            remarks.missing.append(Note("left-off", {"field": name}))
        else:
            remarks.assume(assumed, name, value)


def note_uneven(known: Facts, remarks: Remarks) -> None:
    """Remarks on a model, known by its name alone, whose layers the stages do not divide: Megatron
    stops then (megatron/core/transformer/transformer_config.py), and they are drawn nearly equal.
    """
    model = MODELS.get(flags.published_model(str(known.get("named", ""))))
    told = {"layers", "first", "last", "account", "layout"} & {*known}
    stages = known.get("pp", 1) * (known.get("vpp") or 1)
    if model and not told and model.model.layers % stages:
        facts = {"layers": model.model.layers, "stages": stages}
        remarks.missing.append(Note("layers-uneven", facts))


def note_experts(settled: Settled, known: Facts, remarks: Remarks) -> None:
    """Remarks on layers with experts that do not all follow the dense ones: they are counted as if
    every layer had experts."""
    if "moe_freq" in settled and known.get("experts"):
        setting, layers = settled["moe_freq"], known.get("layers")
        found = experts_in(str(setting.value), layers if isinstance(layers, int) else 0)
        if found is None or not {"hidden", "heads"} <= known.keys():
            remarks.problems.append(replace(setting.item, code="unread", sets="named"))


def note_pattern(known: Facts, remarks: Remarks) -> None:
    """Says how many layers of each kind a hybrid pattern has."""
    letters = str(known.get("pattern", "")).split("/")[0]
    if letters and {"hidden", "heads"} <= known.keys():
        names = {"mamba": "M", "attention": "*+D", "delta": "G", "mlp": "-", "experts": "E"}
        counts = {name: sum(map(letters.count, own)) for name, own in names.items()}
        remarks.missing.append(Note("layers-of-pattern", counts))


def replicated_only(known: Facts, framework: Guess | None) -> Document:
    """How torchtitan trains where data parallelism only replicates: as DDP, which cuts nothing.

    Source: pytorch/torchtitan 0.2 torchtitan/models/llama3/infra/parallelize.py (apply_ddp).
    """
    is_whole = known.get("shard") == 1 and known.get("replicate", 1) > 1
    is_titan = framework is not None and framework.job == "torchtitan"
    return {"fsdp_strategy": "no_shard"} if is_whole and is_titan else {}


def note_sharding(settled: Settled, remarks: Remarks) -> None:
    """Remarks on a file of another program that says how data parallelism shards."""
    named = settled.get("zero_named")
    if named and not any(row.holds({"zero_named": named.value}) for row in SAYS):
        remarks.problems.append(replace(named.item, code="unread", sets="named"))


def assume_vocabulary(known: Facts, assumed: Document, framework: Guess, remarks: Remarks) -> None:
    """Assumes the size of GPT-2's tokenizer, if a shape has no vocabulary."""
    tokenizer = known.get("tokenizer", "GPT2BPETokenizer" if "merges" in known else "")
    is_open = "hidden" in known and "vocabulary" not in known
    if is_open and framework.job.startswith("megatron") and tokenizer == "GPT2BPETokenizer":
        remarks.assume(assumed, "vocabulary", GPT2_VOCABULARY)
