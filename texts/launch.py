# ruff: noqa: RUF001
"""What the reader of launch commands has to say, by code, and the names of what can be written."""

from __future__ import annotations

from .shapes import Text

TARGET_NAMES: dict[str, Text] = {
    "megatron": Text("Megatron-LM", "Megatron-LM"),
    "megatron-pp-dp": Text("Megatron-LM, pp before dp", "Megatron-LM，pp 先于 dp"),
    "nemo": Text("NeMo, Megatron-Bridge", "NeMo、Megatron-Bridge"),
    "megatron-deepspeed": Text("Megatron-DeepSpeed", "Megatron-DeepSpeed"),
    "deepspeed": Text("DeepSpeed", "DeepSpeed"),
    "torchtitan": Text("torchtitan, options", "torchtitan，命令行选项"),
    "torchtitan-toml": Text("torchtitan, TOML", "torchtitan，TOML"),
}
"""Frameworks that a text may be for, and what the page can write."""

LAUNCH_NOTES: dict[str, Text] = {}
