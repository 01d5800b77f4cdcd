# ruff: noqa: RUF001
"""What the reader of launch commands has to say, by code, and the names of what can be written."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .shapes import Text

TARGET_NAMES: dict[str, Text] = {
    "megatron": Text("Megatron-LM", "Megatron-LM"),
    "megatron-pp-dp": Text("Megatron-LM, pp before dp", "Megatron-LM，pp 先于 dp"),
    "nemo": Text("NeMo, Megatron-Bridge", "NeMo、Megatron-Bridge"),
    "megatron-deepspeed": Text("Megatron-DeepSpeed", "Megatron-DeepSpeed"),
    "megatron-deepspeed-bloom": Text(
        "Megatron-DeepSpeed, BigScience", "Megatron-DeepSpeed，BigScience 分支"
    ),
    "deepspeed": Text("DeepSpeed", "DeepSpeed"),
    "torchtitan": Text("torchtitan 0.3, options", "torchtitan 0.3，命令行选项"),
    "torchtitan-main": Text("torchtitan after 0.3, options", "torchtitan 0.3 之后，命令行选项"),
    "torchtitan-toml": Text("torchtitan 0.2, TOML", "torchtitan 0.2，TOML"),
    "verl": Text("verl", "verl"),
    "nemo-rl": Text("NeMo-RL", "NeMo-RL"),
    "roll": Text("ROLL", "ROLL"),
    "slime": Text("slime", "slime"),
    "primus": Text("Primus", "Primus"),
    "nanotron": Text("nanotron", "nanotron"),
    "vllm": Text("vLLM", "vLLM"),
    "sglang": Text("SGLang", "SGLang"),
    "torchtune": Text("torchtune", "torchtune"),
    "axolotl": Text("axolotl", "axolotl"),
    "llama-factory": Text("LLaMA-Factory", "LLaMA-Factory"),
    "accelerate": Text("Accelerate", "Accelerate"),
    "gpt-neox": Text("gpt-neox", "gpt-neox"),
}
"""Frameworks that a text may be for, and what the page can write."""

LAUNCH_NOTES: dict[str, Text] = {
    "understood": Text(
        "{name} sets {sets}.",
        "{name} 设定 {sets}。",
    ),
    "no-group": Text(
        "{name} is known and shapes no group and no layer.",
        "{name} 是已知选项，不影响任何组或层。",
    ),
    "unknown": Text(
        "{name} is not known here.",
        "{name} 不认识。",
    ),
    "not-drawn": Text(
        "{name} changes groups in a way that is not drawn here.",
        "{name} 会改变分组，但此处不绘制。",
    ),
    "not-given": Text(
        "{name} is null, so it says nothing.",
        "{name} 为 null，等于没有给出。",
    ),
    "not-read": Text(
        "{name} is written in a way that is not read here.",
        "{name} 的写法此处不读取。",
    ),
    "unused": Text(
        "{name} holds options that no command of the text uses.",
        "{name} 中的选项没有被文本中的任何命令使用。",
    ),
    "only-one-accounted": Text(
        "{name} counts one of embedding and loss as a layer: both are drawn, or none.",
        "{name} 只把嵌入或损失之一计为一层；此处只能两者都计或都不计。",
    ),
    "size-unresolved": Text(
        "{name} is {value}, which the text does not work out.",
        "{name} 是 {value}，文本没有给出它的值。",
    ),
    "may-hold-options": Text(
        "{name} may hold more options; the text does not say.",
        "{name} 可能还含有选项，文本没有说明。",
    ),
    "decided-by-condition": Text(
        "{name} depends on a condition of the script.",
        "{name} 取决于脚本中的条件。",
    ),
    "decided-by-loop": Text(
        "{name} changes in a loop of the script.",
        "{name} 在脚本的循环中变化。",
    ),
    "left-to-trainer": Text(
        "{name} is left to the trainer.",
        "{name} 由训练器决定。",
    ),
    "left-to-machine": Text(
        "{name} is left to the machine: {value}.",
        "{name} 由机器决定：{value}。",
    ),
    "range-of-nodes": Text(
        "{name} is a range: {value}.",
        "{name} 是一个范围：{value}。",
    ),
    "bad-value": Text(
        "{name} must be a whole number, not {value}.",
        "{name} 必须是整数，而不是 {value}。",
    ),
    "value-out-of-range": Text(
        "{name} must be from {minimum} to {maximum}, not {value}.",
        "{name} 必须在 {minimum} 到 {maximum} 之间，而不是 {value}。",
    ),
    "bad-switch": Text(
        "{name} must be true or false, not {value}.",
        "{name} 必须是 true 或 false，而不是 {value}。",
    ),
    "no-value": Text(
        "{name} has no value.",
        "{name} 没有值。",
    ),
    "removed": Text(
        "{name} was removed from Megatron-LM: use {use}.",
        "Megatron-LM 已移除 {name}：请用 {use}。",
    ),
    "given-twice": Text(
        "{name} is given more than once: {value} here, and {kept}, which counts.",
        "{name} 给出了多次：此处为 {value}，以 {kept} 为准。",
    ),
    "contradiction": Text(
        "{name} says {value}, and {by} says {kept}, which counts.",
        "{name} 为 {value}，而 {by} 为 {kept}，以后者为准。",
    ),
    "two-frameworks": Text(
        "{name} belongs to {other}, and the rest to {kept}, which counts.",
        "{name} 属于 {other}，其余属于 {kept}，以后者为准。",
    ),
    "world-differs": Text(
        "{name} is {value}, and nodes x GPUs per node is {count}.",
        "{name} 为 {value}，而节点数 × 每节点 GPU 数为 {count}。",
    ),
    "world-does-not-divide": Text(
        "{name} is {value}, which {count} does not divide.",
        "{name} 为 {value}，不能被 {count} 整除。",
    ),
    "degrees-differ": Text(
        "With {name} {value} the degrees make {count} GPUs, unlike the launcher.",
        "{name} 为 {value} 时，各并行度合计 {count} 个 GPU，与启动器不符。",
    ),
    "layout-has": Text(
        "{name} is {value}, and the layout has {count} decoder layers.",
        "{name} 为 {value}，而布局有 {count} 个解码器层。",
    ),
    "layout-cut": Text(
        "{name} {value} does not end with the loss L: unquoted, it is cut at |.",
        "{name} {value} 不以损失 L 结尾：不加引号时会在 | 处被截断。",
    ),
    "needs-layers": Text(
        "{name} means chunks only together with the number of layers.",
        "{name} 需要同时给出层数才有意义。",
    ),
    "chunks-do-not-fit": Text(
        "{name} {value} does not cut {count} layers into equal chunks.",
        "{name} {value} 不能把 {count} 层分成相等的块。",
    ),
    "chunks-differ": Text(
        "{name} {value} makes {count} chunks a stage; the text says another number.",
        "{name} {value} 使每个阶段有 {count} 块，而文本给出的是另一个数。",
    ),
    "bad-yaml": Text(
        "YAML cannot go on with {name}.",
        "YAML 在 {name} 处无法继续。",
    ),
    "unknown-size": Text(
        "{name} is {value}: it looks like the size of an axis, and is not known here.",
        "{name} 为 {value}：看起来是某个并行轴的大小，但此处不认识。",
    ),
    "sourced": Text(
        "{value} is taken in, and may hold more: paste it too.",
        "脚本引入了 {value}，其中可能还有设置：请一并粘贴。",
    ),
    "inherits": Text(
        "{name} takes over what another file says: paste it too, or give what is missing.",
        "{name} 沿用了另一个文件的设置：请一并粘贴，或补上缺少的值。",
    ),
    "configured": Text(
        "{name} begins with {value}, which may say the rest: paste it too, or give what is "
        "missing.",
        "{name} 以 {value} 为起点，其余设置可能在其中：请一并粘贴，或补上缺少的值。",
    ),
    "unknown-framework": Text(
        "Nothing in this {form} text says which framework it is for: paste the command that starts "
        "the job, or its configuration.",
        "这段 {form} 文本没有说明属于哪个框架：请粘贴启动命令或其配置。",
    ),
    "asked": Text(
        "{field} is not given, and nothing says what it is: give it.",
        "没有给出 {field}，也无法得知：请填写。",
    ),
    "several-runs": Text(
        "The text holds {count} runs that differ: choose one of {names}.",
        "文本中有 {count} 个不同的运行：请从 {names} 中选择一个。",
    ),
    "bad-json": Text(
        "JSON cannot go on with {name}.",
        "JSON 在 {name} 处无法继续。",
    ),
    "yaml-tab": Text(
        "YAML does not indent with tabs.",
        "YAML 不能用制表符缩进。",
    ),
    "unclosed": Text(
        "{sign} is not closed.",
        "{sign} 没有闭合。",
    ),
    "space-after-backslash": Text(
        "After the backslash stand spaces: the shell ends the command there.",
        "反斜杠后有空格：shell 会在此处结束命令。",
    ),
    "expands-too-much": Text(
        "The variables put in more than {limit} characters.",
        "变量展开超过 {limit} 个字符。",
    ),
    "default": Text(
        "{field} is not given: {assumed} is assumed.",
        "没有给出 {field}：按 {assumed} 处理。",
    ),
    "framework-assumed": Text(
        "Nothing says which framework it is: {assumed} is assumed.",
        "没有说明框架：按 {assumed} 处理。",
    ),
    "fewest-nodes": Text(
        "The number of nodes is not given: {assumed} is assumed, the fewest that fit.",
        "没有给出节点数：按能容纳的最少节点数 {assumed} 处理。",
    ),
    "nodes-of-world": Text(
        "Only the world size {world} is given: {nodes} nodes of {gpus_per_node} GPUs are assumed.",
        "只给出了总进程数 {world}：按 {nodes} 个节点、每节点 {gpus_per_node} 个 GPU 处理。",
    ),
    "variable-default": Text(
        "${name} is taken to be its default, {value}.",
        "${name} 取其默认值 {value}。",
    ),
}


def note_text(
    note: Any,
    language: str = "en",
    *,
    label: Callable[[str], str] = str,
    refusal: Callable[[Any], str] = lambda error: f"{error.what}.",
) -> str:
    """A note of the reader (its Item or Missing) as a sentence.

    label: the name of a field as the reader of the sentence knows it. refusal: how a layout's own
    refusal is said.

    >>> from formats.launch import parse
    >>> note_text(parse("--tensor-model-parallel-size eight").problems[0])
    '--tensor-model-parallel-size must be a whole number, not eight.'
    """
    if getattr(note, "error", None) is not None:
        return f"{note.name}: {refusal(note.error)}"
    facts: Mapping[str, Any] = note.facts
    if hasattr(note, "name"):
        shown = {"name": note.name, "value": _short(note.value)}
        facts = {**shown, "sets": label(note.sets), **facts}
    if "field" in facts:
        facts = {**facts, "field": label(facts["field"])}
    return LAUNCH_NOTES[note.code][language].format(**facts)


def _short(value: str, limit: int = 40) -> str:
    """A value as it stands in a sentence: printable, and not longer than it may be."""
    text = repr(value[: limit + 1])
    return (text if len(text) <= limit else f"{text[: limit - 1]}…").strip("'")
