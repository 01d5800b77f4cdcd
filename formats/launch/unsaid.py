"""What a text leaves open: sizes that are asked for or assumed, and how a framework trains then."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from groups.conventions import CONVENTIONS
from groups.notes import Note

from . import flags
from .flags import AXES, Schema
from .items import Guess
from .reading import Reading

UNSAID: dict[str, object] = {
    **dict.fromkeys(("sequence_parallel", "distributed_optimizer", "recompute"), False),
    "precision": "fp32",
}
"""How Megatron trains where its command is silent (NVIDIA/Megatron-LM d98e8a6,
megatron/training/arguments.py). Asked of a file, or of a command that starts a program, with the
shape of its model: lists of options alone are a part of several."""

ALSO = {
    "distributed_optimizer": ("sharding", "torch_fsdp", "zero"),
    "zero": ("sharding", "torch_fsdp", "distributed_optimizer"),
    "recompute": ("recompute_core", "recompute_whole", "recompute_moe"),
    "precision": ("bf16", "fp16"),
    "attention": ("flash",),
}
"""The other fields that say what one says."""

GPT2_VOCABULARY = 50257
"""Tokens of GPT2BPETokenizer, which counts where a script of Megatron names no tokenizer and gives
the merges of one (NVIDIA/Megatron-LM d98e8a6 pretrain_gpt.py; openai/gpt-2 src/model.py, n_vocab).
"""


class Unsaid(Reading):
    """A text that was read, and what nobody says in it."""

    def __init__(self, text: str) -> None:
        self.missing: list[Note] = []
        self.asks: list[str] = []
        super().__init__(text)

    def _first_schema(self) -> Schema | None:
        return next(iter(self.schemas.values()), None)

    def _axes(
        self, values: Mapping[str, Any], assumed: dict[str, Any], guess: Guess | None
    ) -> None:
        """What is asked for or assumed of the axes that the text does not state."""
        has = CONVENTIONS[guess.job if guess else "megatron"]
        axes = {own.axis for own in (*has.axes, *has.expert_axes)}
        for name in AXES:
            if name not in values and (name in axes or guess is None):
                if guess is None or self._may_be_any(name):
                    self._ask(name)
                else:
                    self._assume(assumed, name, 1)
        schema = self._first_schema()
        if schema and schema.etp and values.get("ep", 1) > 1 and "etp" not in values:
            self._assume(assumed, "etp", schema.etp)
        if self.asks:
            self.unresolved += self.configured
        else:
            self.ignored += (replace(item, code="no-group") for item in self.configured)

    def _batch(self, known: Mapping[str, Any], assumed: dict[str, Any]) -> None:
        """The batch of a device, which is a micro-batch where nothing else is; and the global batch
        of gradients that are accumulated, on the replicas that there are."""
        if "device_batch" in known and not self.asks:
            assumed["micro_batch"] = known["device_batch"]
        if (
            self.asks
            or "global_batch" in known
            or not {"accumulation", "gpus_per_node"} <= {*known}
        ):
            return
        known = {"micro_batch": 1, **assumed, **known}
        shards = math.prod(known.get(name, 1) for name in ("tp", "pp", "cp"))
        replicas = known["nodes"] * known["gpus_per_node"] // shards
        batch = known["micro_batch"] * known["accumulation"] * replicas
        if 0 < batch <= flags.limit_of("global_batch"):
            assumed["global_batch"] = batch
            self.missing.append(Note("batch-of-replicas", {"replicas": replicas, "batch": batch}))

    def _training(
        self, known: Mapping[str, Any], assumed: dict[str, Any], unsaid: Mapping[str, object]
    ) -> None:
        """How a framework trains where nothing in the text says it, nor may say it."""
        if self.asks or self._left("may-hold-options"):
            return
        said = {name for name, value in known.items() if value is not False or name in UNSAID}
        for name, value in unsaid.items():
            fields = {name, *ALSO.get(name, ())}
            if said & fields or name in assumed or any(map(self._may_be_any, fields)):
                continue
            if value is False:
                assumed[name] = value
                self.missing.append(Note("left-off", {"field": name}))
            else:
                self._assume(assumed, name, value)

    def _vocabulary(self, known: Mapping[str, Any], assumed: dict[str, Any], guess: Guess) -> None:
        """What GPT-2's tokenizer makes it, where a shape is given without it."""
        tokenizer = known.get("tokenizer", "GPT2BPETokenizer" if "merges" in known else "")
        is_open = "hidden" in known and "vocabulary" not in known
        if is_open and guess.job.startswith("megatron") and tokenizer == "GPT2BPETokenizer":
            self._assume(assumed, "vocabulary", GPT2_VOCABULARY)

    def _may_be_any(self, name: str) -> bool:
        """Whether a size that is not stated is unknown, rather than the program's default of 1."""
        settled = ("given-twice", "contradiction")
        wrong = (item for item in self.problems if item.code not in settled)
        schema = self._first_schema()
        may_say = schema is None or name in schema.fields or not schema.keys
        of_a_role = any(said.role and said.field == name for said in self.said)
        reasons = (
            any(item.sets == name for item in (*self.unresolved, *wrong)),
            self._left("inherits", "sourced", "unknown-size", "disguised"),
            self.configured and may_say,
            self.choice.is_open,
            self.choice.of_roles and not self.choice.chosen and of_a_role,
        )
        return any(reasons)

    def _left(self, *codes: str) -> bool:
        return any(item.code in codes for item in self.unresolved)

    def _ask(self, name: str) -> None:
        self.asks.append(name)
        self.missing.append(Note("asked", {"field": name}))

    def _assume(self, assumed: dict[str, Any], name: str, value: object) -> None:
        assumed[name] = value
        self.missing.append(Note("default", {"field": name, "assumed": value}))
