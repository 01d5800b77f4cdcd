"""Adapters of a text (LoRA): their rank and targets, where they are trained, not the weights.

    tuner       lora, qlora: adapters, of rank 8 where nothing says another; full: none
    lora_rank   alone says that there are adapters, where a program has no other word for it
    targets     names of linear layers; all, all-linear: every one

What is trained otherwise (DoRA, prefixes, some layers), and targets that are a pattern, are counted
as all weights, with a remark.

Sources: the rank of huggingface/peft's LoraConfig, modelscope/ms-swift 3602360 docs/source_en/
Instruction/Command-line-parameters.md and hiyouga/LLaMA-Factory ff6d4d1
src/llamafactory/hparams/finetuning_args.py.
"""

from __future__ import annotations

import re
from dataclasses import replace

from ...values import Document
from ..items import Item
from .settled import Remarks, Settled

RANK = 8
"""The rank where a text says that there are adapters, and no rank."""

ADAPTED = ("lora", "qlora")
WHOLE = ("full", "none", "null", "false", "no", "")
"""Words of what is trained: adapters, all weights; others are unknown here."""

EVERY = ("all", "all-linear", "all_linear", "true")
"""Words for every linear layer."""

_NAMES = re.compile(r"[A-Za-z_][\w.-]*(?:[\s,]+[A-Za-z_][\w.-]*)*")


def targets_in(text: str) -> str:
    """The targets of a text as training has them; empty for a pattern.

    >>> targets_in("['q_proj', 'v_proj']"), targets_in("all"), targets_in(r".*\\.(q|v)_proj")
    ('q_proj,v_proj', 'all-linear', '')
    """
    plain = re.sub(r"[\[\]'\"]", " ", text).strip()
    if plain.lower() in EVERY:
        return "all-linear"
    return ",".join(re.split(r"[\s,]+", plain)) if _NAMES.fullmatch(plain) else ""


def set_adapters(
    settled: Settled, known: Document, assumed: Document, remarks: Remarks
) -> tuple[Item, ...]:
    """Sets the rank of a text's adapters, 0 where it trains all weights; returns what it does not
    settle."""
    tuner = str(known.get("tuner", assumed.get("tuner", ""))).lower()
    is_said = "tuner" in known or "tuner" in assumed
    rank, targets = known.get("lora_rank"), str(known.get("lora_targets", "all"))
    if is_said and tuner in WHOLE:
        known.pop("lora_rank", None)
        return ()
    unknown = _unknown(settled, tuner, targets) if is_said or rank else ()
    if unknown:
        known.pop("lora_rank", None)
        return unknown
    if "lora_targets" in known:
        known["lora_targets"] = targets_in(targets)
    if tuner in ADAPTED and not rank:
        known.pop("lora_rank", None)
        remarks.assume(assumed, "lora_rank", RANK)
    return ()


def _unknown(settled: Settled, tuner: str, targets: str) -> tuple[Item, ...]:
    names = [
        *(("tuner",) if tuner and tuner not in ADAPTED else ()),
        *(("lora_targets",) if not targets_in(targets) else ()),
    ]
    found = (settled[name] for name in names if name in settled)
    return tuple(replace(one.item, code="part-trained") for one in found)
