# ruff: noqa: RUF001
"""The words of the pipeline view: its inputs, its sentences, its refusals."""

from __future__ import annotations

from .shapes import Control, Text

PIPELINE_CONTROLS: dict[str, Control] = {
    "schedule": Control(
        Text("Schedule", "调度"),
        Text(
            "Who computes which micro-batch when. Empty: 1F1B, with VPP interleaved.",
            "谁在何时计算哪个 micro-batch。留空：1F1B；有 VPP 时为交错 1F1B。",
        ),
    ),
    "against": Control(
        Text("Compare with", "对比调度"),
        Text("A second schedule on the same time axis.", "在同一时间轴上画第二种调度。"),
    ),
    "micro_batches": Control(
        Text("Micro-batches (m)", "micro-batch 数（m）"),
        Text(
            "Of one step, in each pipeline. Empty: by the global batch, else four a stage.",
            "每条流水线一步的个数。留空：由 global batch 得出，否则每阶段四个。",
        ),
    ),
    "group_size": Control(
        Text("Group size (N)", "分组大小（N）"),
        Text(
            "Interleaved: micro-batches before the next chunk's turn. Empty: PP.",
            "交错调度：轮到下一个模型块之前的 micro-batch 数。留空：PP。",
        ),
    ),
    "pipe_group": Control(
        Text("Pipeline group", "流水线组"),
        Text(
            "Counted from 0; empty: the group of the pinned rank.",
            "从 0 数起；留空则为所固定 rank 的组。",
        ),
    ),
    "t_f": Control(
        Text("F: forward", "F：前向"),
        Text("Time of one micro-batch on a rank.", "一个 micro-batch 在一个 rank 上的时间。"),
    ),
    "t_i": Control(
        Text("I: backward, input", "I：对输入的反向"),
        Text("The half that the stage before waits for.", "前一阶段所等待的那一半。"),
    ),
    "t_w": Control(
        Text("W: backward, weights", "W：对权重的反向"),
        Text("The half that can wait.", "可以推迟的那一半。"),
    ),
    "t_b": Control(
        Text("B: whole backward", "B：完整反向"), Text("Empty: I + W.", "留空：I + W。")
    ),
    "t_pair": Control(
        Text("Overlapped F and B", "重叠的 F 与 B"),
        Text("A pair of DualPipe. Empty: F + B.", "DualPipe 的一对。留空：F + B。"),
    ),
    "t_send": Control(
        Text("Message", "消息"),
        Text("Time from one rank to another.", "从一个 rank 到另一个 rank 的时间。"),
    ),
    "t_optimizer": Control(
        Text("Optimizer", "优化器"),
        Text("Time of its step on a rank.", "它在一个 rank 上一步的时间。"),
    ),
    "w_share": Control(
        Text("Share held for W", "为 W 保留的激活比例"),
        Text(
            "ZB-2p: the part of an activation that I does not free, 0 to 1. With FlashAttention "
            "32/34, else 32h / (34h + 5as).",
            "ZB-2p：I 之后仍保留的激活比例，0 到 1。用 FlashAttention 时为 32/34，"
            "否则为 32h / (34h + 5as)。",
        ),
    ),
    "message": Control(
        Text("Size of a message, MB", "消息大小（MB）"),
        Text(
            "b × s / c × h × bytes of an element; with sequence parallelism / t. 1 MB = 1e6 bytes.",
            "b × s / c × h × 每元素字节数；有序列并行时再 / t。1 MB = 1e6 字节。",
        ),
    ),
    "first_layers": Control(
        Text("Layers of the first stage", "首阶段层数"),
        Text(
            "--decoder-first-pipeline-num-layers. Empty: even.",
            "--decoder-first-pipeline-num-layers。留空：平均分配。",
        ),
    ),
    "last_layers": Control(
        Text("Layers of the last stage", "末阶段层数"),
        Text(
            "--decoder-last-pipeline-num-layers. Empty: even.",
            "--decoder-last-pipeline-num-layers。留空：平均分配。",
        ),
    ),
    "pipe_layout": Control(
        Text("Pipeline layout", "流水线布局"),
        Text(
            "E embedding, t layer, m MTP, L loss, | between stages, such as Et|(tt|)*2,tL.",
            "E 嵌入、t 层、m MTP、L 损失，| 分隔阶段，例如 Et|(tt|)*2,tL。",
        ),
    ),
    "by_layers": Control(
        Text("A stage takes as long as its layers", "阶段时间按层数计"),
        Text("Else all stages take the same time.", "否则各阶段时间相同。"),
    ),
}

PIPELINE_PAGE: dict[str, Text] = {
    "pipeline_title": Text(
        "What does a pipeline do over time?", "流水线在一个训练步中何时做什么？"
    ),
    "pipeline_body": Text(
        "One row is one rank of the chosen pipeline group, and time runs to the right. A box is "
        "one micro-batch in one stage; the number in it is the micro-batch. Where a row is empty, "
        "the rank waits: that is the bubble.",
        "每行是所选流水线组的一个 rank，时间向右。一个方块是一个 micro-batch 在一个阶段上的计算，"
        "其中的数字是 micro-batch 编号。行中空白处 rank 在等待，这就是气泡。",
    ),
    "pipeline_none": Text(
        "pp is 1: there is no pipeline. Each rank holds all layers, and nothing has to wait for "
        "another stage.",
        "pp 为 1：没有流水线。每个 rank 存放全部层，不必等待其他阶段。",
    ),
    "pipeline_long": Text(
        "A pipeline of {p} ranks is longer than the {most} that are drawn.",
        "{p} 个 rank 的流水线超过了可绘制的上限 {most}。",
    ),
    "pipeline_set": Text("Set PP to {pp}", "把 PP 设为 {pp}"),
    "pipeline_no_second": Text("nothing", "不对比"),
    "pipeline_group_of": Text(
        "Group {group} of {groups}: ranks {ranks}.", "第 {group} 组，共 {groups} 组：rank {ranks}。"
    ),
    "pipeline_sizes": Text(
        "p = {p} ranks, m = {m} micro-batches, v = {v} chunks on each rank.",
        "p = {p} 个 rank，m = {m} 个 micro-batch，每个 rank v = {v} 个模型块。",
    ),
    "pipeline_no_batch": Text(
        "No batch is chosen: four micro-batches a stage are taken, {batch} samples a step.",
        "未指定批量：每阶段取四个 micro-batch，一步共 {batch} 个样本。",
    ),
    "pipeline_from_batch": Text(
        "m = {batch} / ({micro} × dp {dp}) = {m}.", "m = {batch} /（{micro} × dp {dp}）= {m}。"
    ),
    "pipeline_times": Text("Durations and message size", "时长与消息大小"),
    "pipeline_legend_f": Text("forward", "前向"),
    "pipeline_legend_b": Text("backward", "反向"),
    "pipeline_legend_i": Text("backward for the input", "对输入的反向"),
    "pipeline_legend_w": Text("backward for the weights", "对权重的反向"),
    "pipeline_legend_chunks": Text(
        "Other shades: further chunks of the rank.", "其他深浅：该 rank 的其他模型块。"
    ),
    "pipeline_legend_copies": Text(
        "Other shade: the stage for the other direction.", "另一种深浅：反方向所用的阶段。"
    ),
    "pipeline_picture": Text(
        "{schedule} on {p} ranks with {m} micro-batches: the step takes {makespan}, idle {idle} of "
        "it on average and {span} of the longest span of a rank.",
        "{schedule}，{p} 个 rank，{m} 个 micro-batch：一步用时 {makespan}，平均空闲 {idle}，"
        "占 rank 最长跨度的 {span}。",
    ),
    "pipeline_memory": Text(
        "Activations held, {schedule}: at most {most} micro-batches of a rank's layers",
        "持有的激活，{schedule}：至多为一个 rank 全部层的 {most} 个 micro-batch",
    ),
    "pipeline_held_input": Text("held until B or I", "持有到 B 或 I"),
    "pipeline_held_weights": Text("part of it held on until W", "其中一部分持有到 W"),
    "pipeline_cursor": Text("Time", "时间"),
    "pipeline_zoom": Text("Zoom", "缩放"),
    "pipeline_back": Text("One op back", "后退一个操作"),
    "pipeline_on": Text("One op on", "前进一个操作"),
    "pipeline_idle": Text(
        "Point at a box, or focus the picture and use the arrow keys: here stands what it is, "
        "what it waits for and which layers it runs.",
        "指向一个方块，或聚焦图片后用方向键：此处显示它是什么、在等什么、运行哪些层。",
    ),
    "pipeline_card": Text(
        "{kind} of micro-batch {micro_batch} through stage {stage} on rank {rank} (pp {place}), "
        "from {start} to {end}.",
        "rank {rank}（pp {place}）上 micro-batch {micro_batch} 在阶段 {stage} 的{kind}，"
        "时间 {start} 到 {end}。",
    ),
    "pipeline_kind": Text("{letter}, {name},", "{name}（{letter}）"),
    "pipeline_card_layers": Text("Layers: {layers}.", "层：{layers}。"),
    "pipeline_card_needs": Text(
        "It waits for {op} on rank {rank}, which ends at {end}.",
        "等待 rank {rank} 上的 {op}，后者在 {end} 结束。",
    ),
    "pipeline_card_feeds": Text(
        "{op} on rank {rank} waits for it.", "rank {rank} 上的 {op} 在等它。"
    ),
    "pipeline_card_pair": Text("Overlapped with {op}.", "与 {op} 重叠。"),
    "pipeline_waits": Text("waits", "等待"),
    "pipeline_figures": Text("Figures", "数字"),
    "pipeline_figure": Text("Figure", "项目"),
    "pipeline_makespan": Text("The step", "一步用时"),
    "pipeline_with_optimizer": Text(
        "With the optimizer after the last op of all", "加上全部结束后的优化器"
    ),
    "pipeline_without_sync": Text(
        "If each rank's optimizer starts after its own last op: first op to end, at most",
        "若各 rank 的优化器紧接自己的最后一个操作：从首个操作到结束，至多",
    ),
    "pipeline_bubble_ideal": Text("Bubble, of ideal time", "气泡占理想时间"),
    "pipeline_bubble_total": Text("Bubble, of total time", "气泡占总时间"),
    "pipeline_bubble_span": Text(
        "Bubble, of the longest span of a rank (as zero bubble papers count)",
        "气泡占 rank 的最长跨度（zero bubble 论文的口径）",
    ),
    "pipeline_idle_rank": Text("Idle time of a rank in the step", "一步中 rank 的空闲时间"),
    "pipeline_idle_span": Text(
        "Idle between a rank's first and last op, at most", "rank 首末操作之间的空闲，至多"
    ),
    "pipeline_closed": Text("Closed form", "闭式解"),
    "pipeline_closed_step": Text("idle of a rank", "rank 的空闲"),
    "pipeline_closed_most": Text("the most idle of a rank", "rank 的最大空闲"),
    "pipeline_closed_span": Text("idle between first and last op", "首末操作之间的空闲"),
    "pipeline_closed_none": Text("none is published", "没有公开的闭式解"),
    "pipeline_closed_agrees": Text("as simulated", "与模拟一致"),
    "pipeline_closed_differs": Text(
        "simulated: {value}. It holds for equal stages and free messages{condition}.",
        "模拟值：{value}。闭式解成立的条件：各阶段相同、消息不费时{condition}。",
    ),
    "pipeline_peak": Text(
        "Peak activations, in micro-batches of a rank's layers",
        "激活峰值（以 rank 全部层的 micro-batch 计）",
    ),
    "pipeline_range": Text("{least} to {most}", "{least} 到 {most}"),
    "pipeline_sends": Text("Messages of a rank in the step", "一步中 rank 发送的消息"),
    "pipeline_per_rank": Text("Rank by rank", "逐个 rank"),
    "pipeline_column_rank": Text("Rank", "rank"),
    "pipeline_column_stages": Text("Stages", "阶段"),
    "pipeline_column_busy": Text("Busy", "计算"),
    "pipeline_column_idle": Text("Idle", "空闲"),
    "pipeline_column_tail": Text("Idle after its last op", "末操作后的空闲"),
    "pipeline_column_input": Text("Peak until B or I", "峰值（到 B 或 I）"),
    "pipeline_column_peak": Text("Peak until B or W", "峰值（到 B 或 W）"),
    "pipeline_column_forward": Text("Activations sent", "发送激活"),
    "pipeline_column_backward": Text("Gradients sent", "发送梯度"),
    "pipeline_column_sent": Text("Sent", "发送量"),
    "pipeline_layers": Text("Layers on stages", "各阶段的层"),
    "pipeline_layers_body": Text(
        "Stages are numbered through the whole model; layers count from 0. E is the embedding, L "
        "the output layer and loss, m multi-token prediction.",
        "阶段在整个模型中连续编号，层从 0 数起。E 为嵌入，L 为输出层和损失，m 为多 token 预测。",
    ),
    "pipeline_chunk": Text("Chunk {chunk}", "模型块 {chunk}"),
    "pipeline_direction": Text("Direction {chunk}", "方向 {chunk}"),
    "pipeline_stage": Text("stage {stage}", "阶段 {stage}"),
    "pipeline_empty": Text("no layers", "没有层"),
    "pipeline_uneven": Text(
        "Stages differ: from {least} to {most} layers, with what counts as one. The largest sets "
        "the pace of all.",
        "各阶段不等：从 {least} 到 {most} 层（含计为一层的部分）。最大的阶段决定整体速度。",
    ),
    "pipeline_empties": Text(
        "Stages without a layer: {stages}. They only pass messages on.",
        "没有层的阶段：{stages}。它们只转发消息。",
    ),
    "pipeline_copies": Text(
        "Each rank holds two stages of two copies of the model: twice the parameters.",
        "每个 rank 存放模型两份副本中的各一个阶段：参数量加倍。",
    ),
}
