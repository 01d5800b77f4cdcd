# ruff: noqa: RUF001
"""The words of the collectives: refusals, operations, algorithms, and the view that shows them."""

from __future__ import annotations

from .shapes import Control, Text

COLLECTIVES_CONTROLS: dict[str, Control] = {
    "collective": Control(
        Text("Operation", "操作"),
        Text("A collective, or a mapping of Megatron's.", "一种集合通信，或 Megatron 的一个映射。"),
    ),
    "collective_direction": Control(
        Text("Direction", "方向"),
        Text("Forward, or the gradients on their way back.", "前向，或梯度的反向传递。"),
    ),
    "collective_group": Control(
        Text("Kind of group", "组的种类"),
        Text("Whose ranks act together.", "哪些 rank 一起行动。"),
    ),
    "collective_index": Control(
        Text("Group", "组编号"),
        Text(
            "Counted from 0; empty: the group of the pinned rank.",
            "从 0 数起；留空则为所固定 rank 的组。",
        ),
    ),
    "collective_root": Control(
        Text("Root rank", "根 rank"),
        Text("A global rank of the group.", "组内某个 rank 的全局编号。"),
    ),
    "collective_shape": Control(
        Text("Tensor shape", "张量形状"),
        Text("Of each rank, such as 4 or 2x4.", "每个 rank 的张量，例如 4 或 2x4。"),
    ),
    "collective_values": Control(
        Text("Numbers", "数值"),
        Text("What the tensors hold at first.", "张量最初的内容。"),
    ),
    "collective_all": Control(
        Text("More groups at once", "同时显示多个组"),
        Text("Other groups of the kind beside it.", "在旁边画出同种的其他组。"),
    ),
    "collective_algorithm": Control(
        Text("Algorithm", "算法"),
        Text("How the ranks pass it on.", "各 rank 之间如何传递。"),
    ),
    "collective_mb": Control(
        Text("Buffer S, in MB", "缓冲区 S（MB）"),
        Text(
            "The whole buffer, of 1,000,000 bytes each MB.", "整个缓冲区；1 MB 为 1,000,000 字节。"
        ),
    ),
    "collective_gbs": Control(
        Text("Bandwidth, in GB/s", "带宽（GB/s）"),
        Text(
            "Of one GPU, one way; empty: a DGX H100, NVLink inside a node and its network card "
            "outside.",
            "单个 GPU 单向带宽；留空则按 DGX H100：节点内为 NVLink，跨节点为网卡。",
        ),
    ),
    "bucket_scheme": Control(
        Text("Scheme", "方案"),
        Text("Who reduces gradients, and when.", "由谁、在何时归约梯度。"),
    ),
    "bucket_layers": Control(
        Text("Layers on a rank", "每个 rank 的层数"),
        Text("Of one pipeline stage.", "一个流水线阶段的层数。"),
    ),
    "bucket_hidden": Control(
        Text("Hidden size", "隐藏维大小"),
        Text("A layer has 12 h² + 13 h parameters.", "每层有 12 h² + 13 h 个参数。"),
    ),
    "bucket_ms": Control(
        Text("Backward of a layer, in ms", "每层反向时间（ms）"),
        Text("Forward takes half of it.", "前向用时为其一半。"),
    ),
}
"""The inputs of the Collectives view."""

COLLECTIVES_PAGE: dict[str, Text] = {
    "collectives_title": Text("What does a group do together?", "一个组一起做什么？"),
    "collectives_body": Text(
        "Pick a group of this layout and an operation: the numbers that its ranks hold before and "
        "after, what moves between them, what it costs, and how it is done step by step.",
        "选择当前布局中的一个组和一种操作：看它的各 rank 操作前后持有的数值、"
        "其间移动了什么、代价多少，以及一步一步如何完成。",
    ),
    "collectives_index_hint": Text("{index}, of 0 to {last}", "{index}，范围 0 到 {last}"),
    "collectives_forward": Text("Forward", "前向"),
    "collectives_backward": Text("Backward", "反向"),
    "collectives_values_count": Text("10 × place + count", "10 × 位置 + 序号"),
    "collectives_values_rank": Text("The rank", "rank 编号"),
    "collectives_values_ones": Text("Ones", "全 1"),
    "collectives_one": Text(
        "Groups of {kind} have one rank here: there is nobody to send to, and nothing moves.",
        "此处的 {kind} 组只有一个 rank：没有可发送的对象，什么也不移动。",
    ),
    "collectives_window": Text(
        "This {kind} group has {size} ranks. The numbers below are worked out for its first "
        "{shown} as if they were all of it; bytes, steps and times are for all {size}.",
        "该 {kind} 组有 {size} 个 rank。下面的数值把前 {shown} 个当作整个组来计算；"
        "字节数、步数和时间则按全部 {size} 个计算。",
    ),
    "collectives_used": Text("In training:", "训练中的用途："),
    "collectives_numbers": Text("Before and after", "操作前后"),
    "collectives_read_forward": Text(
        "Left: the tensor of each rank before; right: after. The first column is the global rank. "
        "A cell has the colour of the rank that its number comes from; where several were added, "
        "the strip below the number shows which.",
        "左边是各 rank 操作前的张量，右边是操作后的。第一列是全局 rank。"
        "格子的颜色表示数值来自哪个 rank；若由多个相加而得，数字下方的色条标出是哪些。",
    ),
    "collectives_read_backward": Text(
        "Left: the gradient of the output on each rank; right: the gradient of the input. The "
        "first column is the global rank. A cell has the colour of the rank that its number comes "
        "from; where several were added, the strip below the number shows which.",
        "左边是各 rank 上输出的梯度，右边是输入的梯度。第一列是全局 rank。"
        "格子的颜色表示数值来自哪个 rank；若由多个相加而得，数字下方的色条标出是哪些。",
    ),
    "collectives_apart": Text(
        "The groups act independently: no line leads from one to another.",
        "各组互不相干：没有任何连线从一个组通向另一个组。",
    ),
    "collectives_picture": Text(
        "{op} in {group}, ranks {ranks}: numbers before at the left, after at the right.",
        "{group}（rank {ranks}）中的 {op}：左边是操作前的数值，右边是操作后的。",
    ),
    "collectives_still": Text(
        "Nothing moves: every rank works on its own tensor.",
        "没有通信：每个 rank 只处理自己的张量。",
    ),
    "collectives_sum": Text("Everything meets in Σ, the sum.", "所有内容在 Σ 处相加。"),
    "collectives_join": Text(
        "Everything meets in ++, where the tensors are joined.", "所有张量在 ++ 处拼接。"
    ),
    "collectives_direct": Text("Each line is a message.", "每条线是一条消息。"),
    "collectives_wire": Text("On the wire", "实际通信"),
    "collectives_bytes": Text("Sent by each rank", "每个 rank 发送"),
    "collectives_steps_count": Text("Steps", "步数"),
    "collectives_factor": Text("Bus factor", "总线系数"),
    "collectives_least": Text("At least", "至少耗时"),
    "collectives_cost": Text("What it costs", "代价"),
    "collectives_cost_of": Text(
        "A group of n = {n} and a buffer of S = {size}, at {speed} one way. S is the whole buffer: "
        "where ranks hold pieces, all of them together. With a root, the bytes are those that pass "
        "through it.",
        "组内 n = {n}，缓冲区 S = {size}，单向带宽 {speed}。S 指整个缓冲区：若各 rank 只持有一片，"
        "则为所有片之和。有根 rank 时，字节数指经过根 rank 的量。",
    ),
    "collectives_steps": Text("Step by step", "分步演示"),
    "collectives_no_steps": Text(
        "Nothing moves in this direction, so there are no steps.",
        "这个方向上没有通信，因此没有步骤。",
    ),
    "collectives_steps_picture": Text(
        "{name} on ranks {ranks}: rows are ranks, columns are slots of the buffer.",
        "rank {ranks} 上的{name}：每行是一个 rank，每列是缓冲区的一个槽。",
    ),
    "collectives_steps_window": Text(
        "The steps are drawn for a group of the first {shown} ranks; the group has {size}.",
        "步骤按由前 {shown} 个 rank 组成的组绘制；该组实有 {size} 个。",
    ),
    "collectives_steps_root": Text(
        "The root is not among them: rank {rank} stands for it.",
        "根 rank 不在其中：以 rank {rank} 代替。",
    ),
    "collectives_step": Text("Step", "步"),
    "collectives_back": Text("One step back", "后退一步"),
    "collectives_on": Text("One step on", "前进一步"),
    "collectives_start": Text(
        "Before the first of {last} steps. Whatever the algorithm, {bound} must go through the "
        "busiest link, in or out.",
        "第一步之前，共 {last} 步。无论用什么算法，最忙的链路（收或发）至少要通过 {bound}。",
    ),
    "collectives_at": Text(
        "Step {step} of {last}, {messages} at once: {moves}. Through the busiest link, in or out, "
        "{passed} have gone, of {bound} that must; so far {time}.",
        "第 {step} 步，共 {last} 步，同时发送 {messages} 条：{moves}。"
        "最忙的链路（收或发）已通过 {passed}，至少须通过 {bound}；已用时 {time}。",
    ),
    "collectives_balance": Text(
        "What each rank works out at each step, as query chunk · key chunk; a chunk with itself is "
        "half of the work. Every rank always has two whole pairs.",
        "每一步各 rank 计算的内容，写作“查询块 · 键块”；块与自身的一对只有一半的计算量。"
        "每个 rank 在每一步都恰好有两对的计算量。",
    ),
    "collectives_rank_step": Text("Rank, step", "rank 与步"),
    "collectives_walk": Text(
        "Seven functions of Megatron's mpu, with published numbers",
        "Megatron mpu 的七个函数及其已发表的数值",
    ),
    "collectives_walk_body": Text(
        "From a published walk-through of Megatron-DeepSpeed on 8 GPUs with tp 2 and pp 2, worked "
        "out here again: ranks 6 and 7 are one tensor parallel group. [..] is a rank's tensor.",
        "取自一篇已发表的 Megatron-DeepSpeed 讲解（8 个 GPU，tp 2、pp 2），此处重新计算："
        "rank 6 和 7 是一个张量并行组。[..] 是一个 rank 的张量。",
    ),
    "collectives_walk_open": Text("Open these 8 GPUs", "打开这 8 个 GPU 的布局"),
    "collectives_function": Text("Function", "函数"),
    "collectives_forward_of": Text("Forward: input → output", "前向：输入 → 输出"),
    "collectives_backward_of": Text(
        "Backward: gradient of the output → of the input", "反向：输出的梯度 → 输入的梯度"
    ),
    "collectives_watch": Text("Watch it above", "在上方观看"),
    "collectives_loss": Text("Loss", "损失"),
    "collectives_forward_only": Text(
        "Forward only: the mappings below differentiate it.", "仅前向：求导由下面的映射完成。"
    ),
    "buckets_title": Text("Gradients behind backward", "与反向重叠的梯度通信"),
    "buckets_body": Text(
        "Gradients come ready from the last layer to the first. They travel in buckets, each as "
        "soon as its last gradient is ready; with a sharded optimizer a bucket is "
        "reduce-scattered, and the new parameters are all-gathered afterwards.",
        "梯度从最后一层到第一层依次就绪，分桶传送：一个桶的最后一个梯度就绪即可发出。"
        "使用分片优化器时，每个桶做 reduce-scatter，更新后再对新参数做 all-gather。",
    ),
    "buckets_ddp": Text("PyTorch DDP", "PyTorch DDP"),
    "buckets_megatron": Text("Megatron, overlapped", "Megatron，重叠"),
    "buckets_one": Text("Megatron, not overlapped", "Megatron，不重叠"),
    "buckets_sharded": Text("Sharded optimizer", "分片优化器"),
    "buckets_zero3": Text("ZeRO-3", "ZeRO-3"),
    "buckets_about_ddp": Text(
        "A bucket is closed when it reaches 25 MiB; the first one at 1 MiB, so that communication "
        "starts early.",
        "一个桶达到 25 MiB 就关闭；第一个桶只要 1 MiB，以便尽早开始通信。",
    ),
    "buckets_about_megatron": Text(
        "With --overlap-grad-reduce a bucket is closed at max(40M, 1M × d) parameters, d being the "
        "ranks of the group.",
        "开启 --overlap-grad-reduce 时，一个桶达到 max(40M, 1M × d) 个参数就关闭，"
        "d 为组内 rank 数。",
    ),
    "buckets_about_one": Text(
        "Without --overlap-grad-reduce all gradients are one bucket, after the whole backward.",
        "不开启 --overlap-grad-reduce 时，所有梯度是一个桶，在整个反向之后才发出。",
    ),
    "buckets_about_sharded": Text(
        "ZeRO-1, Megatron's distributed optimizer: reduce-scatter, then each rank updates its "
        "shard, then all-gather; a layer's next forward waits for its own parameters only.",
        "即 ZeRO-1、Megatron 的分布式优化器：先 reduce-scatter，各 rank 更新自己的一片，"
        "再 all-gather；下一次前向的每一层只等待自己的参数。",
    ),
    "buckets_about_zero3": Text(
        "Parameters are sharded too: an all-gather before each layer's forward and again before "
        "its backward, one layer ahead, and a reduce-scatter after it.",
        "参数也分片：每层前向之前做一次 all-gather，反向之前再做一次，均提前一层；"
        "反向之后做 reduce-scatter。",
    ),
    "buckets_told": Text(
        "Group {kind}, {ranks}: {messages} collectives, {sent} sent by each rank; {extra} of "
        "communication is not hidden, and the whole takes {total}.",
        "{kind} 组，{ranks}：{messages} 次集合通信，每个 rank 发送 {sent}；"
        "有 {extra} 的通信没有被掩盖，总计 {total}。",
    ),
    "buckets_alone": Text(
        "A group of one has nobody to send to.", "只有一个 rank 的组没有可发送的对象。"
    ),
    "buckets_forward": Text("Forward, by layer", "前向，按层编号"),
    "buckets_backward": Text("Backward, by layer", "反向，按层编号"),
    "buckets_all_reduce": Text("All-reduce, by bucket", "all-reduce，按桶编号"),
    "buckets_reduce_scatter": Text("Reduce-scatter", "reduce-scatter"),
    "buckets_all_gather": Text("All-gather", "all-gather"),
    "buckets_picture": Text(
        "A timeline in milliseconds: computation above, collectives below.",
        "以毫秒为单位的时间线：上方为计算，下方为集合通信。",
    ),
    "buckets_model": Text(
        "Above: computation; below: the network; the axis is in ms. Times are those of bandwidth "
        "alone, without latency. Gradients travel in 4 bytes, parameters in 2. Embeddings are left "
        "out.",
        "上方为计算，下方为网络，横轴单位为 ms。时间只计带宽，不计延迟。"
        "梯度以 4 字节、参数以 2 字节传送。词嵌入等未计入。",
    ),
}
"""The sentences of the Collectives view."""
