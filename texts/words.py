# ruff: noqa: RUF001
"""Words of the field, each explained in one sentence where it stands on the page."""

from __future__ import annotations

from dataclasses import dataclass

from .shapes import Text


@dataclass(frozen=True)
class Term:
    """A word as it is written (an expression for either language), and what it means."""

    written: Text
    tip: Text


WORDS: tuple[Term, ...] = (
    Term(
        Text(r"\b[Rr]anks?\b", "rank"),
        Text(
            "The number of one GPU in the job, from 0; also the process that drives it.",
            "作业中一个 GPU 的编号，从 0 开始；也指驱动它的进程。",
        ),
    ),
    Term(
        Text(r"\bprocess groups?\b|\bgroups?\b", "进程组|每组|个组"),
        Text(
            "Ranks that communicate with each other for one purpose, such as averaging gradients.",
            "为同一目的（例如平均梯度）相互通信的一组 rank。",
        ),
    ),
    Term(
        Text(r"\b[Rr]eplicas?\b", "副本"),
        Text(
            "One whole copy of the model, spread over its tensor and pipeline ranks.",
            "模型的一份完整拷贝，分布在张量和流水线并行的各 rank 上。",
        ),
    ),
    Term(
        Text(r"\b[Ss]tages?\b", "阶段"),
        Text(
            "A run of consecutive layers that one pipeline rank holds.",
            "一个流水线 rank 存放的一段连续的层。",
        ),
    ),
    Term(
        Text(r"\b[Mm]icro-batch(?:es)?\b", "micro-batch"),
        Text(
            "The samples that go through the pipeline at once; a step has several.",
            "一次通过流水线的样本；一个训练步包含多个。",
        ),
    ),
    Term(
        Text(r"\bbubble\b", "气泡"),
        Text(
            "The time in which a pipeline rank waits for others and computes nothing.",
            "流水线 rank 等待其他 rank、没有计算的时间。",
        ),
    ),
    Term(
        Text(r"\ball-reduced?\b", "all-reduce"),
        Text(
            "A collective after which every rank of the group holds the sum of all their tensors.",
            "一种集合通信：结束后组内每个 rank 都持有所有张量之和。",
        ),
    ),
    Term(
        Text(r"\b[Aa]ctivations?\b", "激活值?"),
        Text(
            "What a layer computes of the samples, kept until its backward pass.",
            "一层对样本算出的结果，保存到该层反向计算时。",
        ),
    ),
    Term(
        Text(r"\boptimizer states?\b", "优化器状态"),
        Text(
            "What the optimizer keeps of every weight: with Adam, two moments and a full-precision "
            "copy.",
            "优化器为每个权重保存的内容：对 Adam 是两个动量和一份全精度拷贝。",
        ),
    ),
    Term(
        Text(r"\bNVLink domains?\b|\bNVLink\b", "NVLink 域|NVLink"),
        Text(
            "Fast links between GPUs of one node or rack; a domain is the GPUs that they join.",
            "同一节点或机架内 GPU 之间的高速链路；由它连接的 GPU 构成一个域。",
        ),
    ),
    Term(
        Text(r"\b[Ee]xposed\b", "未被掩盖"),
        Text(
            "Communication that no computation runs beside, so that the step waits for it.",
            "没有计算与之重叠的通信，训练步必须等待它。",
        ),
    ),
)
