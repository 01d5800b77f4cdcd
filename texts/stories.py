# ruff: noqa: RUF001
"""Ways into the page: three entries, six stories and a tour; each is a state of the page."""

from __future__ import annotations

from dataclasses import dataclass

from .shapes import Text


@dataclass(frozen=True)
class Step:
    """One step of the tour: the link of a state, and two sentences about it."""

    query: str
    text: Text


ENTRIES: dict[str, Text] = {
    "tour": Text("Learn with 16 GPUs", "用 16 个 GPU 入门"),
    "hang": Text("A job hangs", "作业挂起了"),
    "launch": Text("I have a launch script", "我有启动脚本"),
    "entries": Text("Ways in", "从哪里开始"),
}

STORIES: dict[str, Text] = {
    "playground-16": Text("16 GPUs, three kinds of groups", "16 个 GPU，三种组"),
    "llama3-405b-2": Text("Llama 3 405B on 16,384 GPUs", "16,384 个 GPU 上的 Llama 3 405B"),
    "deepseek-v3": Text(
        "DeepSeek-V3's experts on 2,048 GPUs", "2,048 个 GPU 上 DeepSeek-V3 的专家"
    ),
    "rack": Text("An EP group that leaves its rack", "跨出机架的 EP 组"),
    "hang": Text("A hang: which GPU did not arrive?", "一次挂起：哪个 GPU 没有到达？"),
    "cost": Text("TP across nodes, and what it costs", "TP 跨节点的代价"),
}

TOUR_WORDS: dict[str, Text] = {
    "label": Text("Tour", "导览"),
    "place": Text("{step} of {steps}", "{step} / {steps}"),
    "back": Text("Back", "上一步"),
    "next": Text("Next", "下一步"),
    "leave": Text("Leave", "结束"),
}

TOUR: tuple[Step, ...] = (
    Step(
        "v=2&rank=5",
        Text(
            "Sixteen GPUs on two nodes train one model, each in three groups at once. "
            "The picture marks the groups of GPU 5; point at any other.",
            "两个节点上的 16 个 GPU 训练同一个模型，每个 GPU 同时在三个组里。"
            "图中标出了 GPU 5 的组，可指向其他 GPU 查看。",
        ),
    ),
    Step(
        "v=2&group_type=tp&rank=5",
        Text(
            "Tensor parallel: GPUs 4 and 5 hold half of every layer each, and add up their results "
            "in every layer. That is so often that the group should stay in one node.",
            "张量并行：GPU 4 和 5 各存每一层的一半，并在每一层把结果相加。"
            "通信如此频繁，这种组应留在一个节点内。",
        ),
    ),
    Step(
        "v=2&group_type=pp&rank=5",
        Text(
            "Pipeline parallel: GPU 5 holds the first half of the layers and GPU 13 the second. "
            "Between them only activations pass, little enough for the network between nodes.",
            "流水线并行：GPU 5 存前一半的层，GPU 13 存后一半。"
            "两者之间只传激活值，量很小，节点间的网络足够。",
        ),
    ),
    Step(
        "v=2&group_type=dp&rank=5",
        Text(
            "Data parallel: GPUs 1, 3, 5 and 7 hold the same weights and read different samples. "
            "Once a step they average their gradients, so that the copies stay the same.",
            "数据并行：GPU 1、3、5 和 7 存相同的权重，读不同的样本。"
            "每个训练步平均一次梯度，各副本因此保持一致。",
        ),
    ),
    Step(
        "v=2&show=pipeline&rank=5",
        Text(
            "One step, by stage: a stage waits until the first micro-batch reaches it, and again "
            "at the end. This waiting is the bubble; more micro-batches make its share smaller.",
            "按阶段看一个训练步：每个阶段要等第一个 micro-batch 到来，结尾还要再等。"
            "这段等待就是气泡，micro-batch 越多，占比越小。",
        ),
    ),
    Step(
        "v=2&show=memory&rank=5",
        Text(
            "What each GPU holds: weights, gradients, optimizer state, activations. "
            "TP and PP divide the weights, ZeRO spreads optimizer state over the data group.",
            "每个 GPU 存放的内容：权重、梯度、优化器状态、激活值。"
            "TP 和 PP 切分权重，ZeRO 把优化器状态分摊到数据并行组。",
        ),
    ),
    Step(
        "v=2&tp=16&pp=1&show=nodes&rank=5",
        Text(
            "Now tp is 16: every layer waits for the network between the two nodes. "
            "Change any size at the side and see what it does; the link keeps what you see.",
            "现在 tp 为 16：每一层都要等两个节点之间的网络。"
            "在侧栏改变任意大小看看结果；链接会记住你看到的一切。",
        ),
    ),
)
