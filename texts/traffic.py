# ruff: noqa: RUF001
"""The words of the Traffic and the Search view."""

from __future__ import annotations

from .shapes import Control, Text

TRAFFIC_CONTROLS: dict[str, Control] = {
    "cp_algorithm": Control(
        Text("Keys and values over CP", "CP 传递 K 和 V 的方式"),
        Text(
            "How the ranks of a cp group see each other's keys and values.",
            "cp 组内各 rank 如何得到彼此的 K 和 V。",
        ),
    ),
}

TRAFFIC_REFUSALS: dict[str, Text] = {
    "ep-without-experts": Text(
        "ep {ep} spreads experts, and this model has none.",
        "ep {ep} 用于分散专家，而此模型没有专家。",
    ),
    "experts-need-sequence-parallel": Text(
        "Experts with tp {tp} need sequence parallelism: Megatron trains them only so.",
        "有专家且 tp 为 {tp} 时需要序列并行：Megatron 只支持这样训练。",
    ),
}

CP_CHOICES: dict[str, Text] = {
    "p2p": Text("ring (p2p)", "环形（p2p）"),
    "all_gather": Text("all-gather", "all-gather"),
    "a2a": Text("all-to-all (Ulysses)", "all-to-all（Ulysses）"),
}

CLUSTER_NOTES: dict[str, Text] = {
    "hgx-h800": Text(
        "About 160 GB/s of NVLink are reached (arXiv:2412.19437 section 3.2.2). Memory and peak "
        "are taken to be those of the H100.",
        "NVLink 实际约达 160 GB/s（arXiv:2412.19437 第 3.2.2 节）。显存和峰值按 H100 取。",
    ),
    "gb200-nvl72": Text(
        "400 Gb/s a network card and 2,500 TFLOP/s are not confirmed by a primary source.",
        "每块网卡 400 Gb/s 与 2,500 TFLOP/s 未经一手来源证实。",
    ),
}
"""What is not settled about the numbers of a cluster."""

PURPOSES: dict[str, Text] = {
    "forward": Text("layers, forward", "各层，前向"),
    "backward": Text("layers, backward", "各层，反向"),
    "recompute": Text("layers, forward again (recomputation)", "各层，再次前向（重计算）"),
    "regather": Text("inputs, gathered again for weight gradients", "为权重梯度再次收集输入"),
    "replicated": Text("gradients of norms and routers", "归一化与路由器的梯度"),
    "embedding": Text("embedding", "词嵌入"),
    "output": Text("output layer", "输出层"),
    "output_regather": Text("output layer's input, gathered again", "再次收集输出层的输入"),
    "loss": Text("loss over the cut vocabulary", "切分词表上的损失"),
    "activations": Text("activations between stages", "阶段之间的激活"),
    "gradients": Text("gradients", "梯度"),
    "parameters": Text("parameters", "参数"),
    "parameters_again": Text("parameters again, for backward", "为反向再次收集参数"),
    "tied": Text("gradient of the shared embedding", "共享词嵌入的梯度"),
}

BESIDE: dict[str, Text] = {
    "": Text("nothing: it is waited for", "无：需要等待"),
    "attention": Text("attention", "注意力计算"),
    "weights": Text("weight gradients", "权重梯度的计算"),
    "compute": Text("other micro-batches' computation", "其他 micro-batch 的计算"),
    "last_backward": Text("the last backward", "最后一次反向"),
    "first_forward": Text("the first forward", "第一次前向"),
    "forward": Text("forward", "前向"),
    "backward": Text("backward", "反向"),
}

TRAFFIC: dict[str, Text] = {
    "title": Text("What each group sends in one step", "每种组在一步中的通信量"),
    "body": Text(
        "Bytes follow from the model and the sizes; times are lower bounds: bytes over the speed "
        "of the links, with no latency. Exposed is what no computation hides. Kinds with the most "
        "exposed time come first.",
        "字节数由模型和各组大小算出；时间是下界，即字节数除以链路速度，不计延迟。"
        "“未被掩盖”指没有计算与之重叠的部分。未被掩盖时间最长的种类排在最前。",
    ),
    "job": Text(
        "{model}, {tokens} tokens a sequence, {micro_batches} of {micro_batch} on each pipeline. "
        "A rank computes {compute} a step at {reached} % of its GPU's peak.",
        "{model}，每条序列 {tokens} 个 token，每条流水线 {micro_batches}，每个含 {micro_batch}。"
        "按 GPU 峰值的 {reached}% 计，每个 rank 每步计算 {compute}。",
    ),
    "sample": Text("{count} sample", "{count} 个样本"),
    "samples": Text("{count} samples", "{count} 个样本"),
    "links": Text(
        "{cluster}: NVLink {nvlink} GB/s over {domain} GPUs, then {nic} GB/s a GPU, one way.",
        "{cluster}：{domain} 个 GPU 之间 NVLink {nvlink} GB/s，其外每个 GPU {nic} GB/s，均为单向。",
    ),
    "sources": Text("Sources:", "来源："),
    "column_kind": Text("Kind", "种类"),
    "column_size": Text("Ranks", "rank 数"),
    "column_sent": Text("Sent by a rank", "每 rank 发送"),
    "column_total": Text("By all", "全部"),
    "column_across": Text("Out of NVLink domains", "离开 NVLink 域"),
    "column_seconds": Text("Time at least", "时间下界"),
    "column_exposed": Text("Exposed", "未被掩盖"),
    "column_purpose": Text("For", "用途"),
    "column_operation": Text("Operation", "操作"),
    "column_count": Text("Times", "次数"),
    "column_buffer": Text("Bytes each", "每次字节数"),
    "column_beside": Text("Usually hidden by", "通常被什么掩盖"),
    "all_inside": Text("none", "无"),
    "every": Text("Every transfer", "全部传输"),
    "sum": Text("All kinds", "合计"),
    "silent": Text(
        "No group of more than one rank: nothing is sent.",
        "没有多于一个 rank 的组：不发送任何数据。",
    ),
    "matrix_title": Text("Who sends how much to whom", "谁向谁发送多少"),
    "matrix_ranks": Text(
        "Rows send, columns receive: one cell for each pair of ranks. Lines are borders of nodes.",
        "行发送，列接收：每对 rank 一格。线是节点的边界。",
    ),
    "matrix_nodes": Text(
        "Rows send, columns receive. One cell stands for {ranks} on each side: more cells could "
        "not be told apart. The diagonal is what stays among them.",
        "行发送，列接收。每格两侧各代表 {ranks}，更细则无法分辨。对角线是它们内部的通信。",
    ),
    "matrix_ways": Text(
        "Rings go in order of ranks, all-to-all in pairs; libraries may take other ways.",
        "环按 rank 顺序传递，all-to-all 两两传递；通信库可能采用其他路径。",
    ),
    "matrix_hint": Text(
        "Point at a cell, or use the arrow keys; a click or Enter shows its sender's groups.",
        "指向一格，或使用方向键；单击或按回车可在图中查看发送方所在的组。",
    ),
    "matrix_none": Text("nothing", "无"),
    "matrix_cell": Text("{from} → {to}: {bytes}", "{from} → {to}：{bytes}"),
    "matrix_rank": Text("rank {rank} (node {node})", "rank {rank}（节点 {node}）"),
    "matrix_cells": Text("ranks {first}-{last}", "rank {first}-{last}"),
    "matrix_label": Text(
        "{rows} senders by {rows} receivers, from {low} to {high} in a step.",
        "{rows} 个发送方对 {rows} 个接收方，一步中从 {low} 到 {high}。",
    ),
    "left_out": Text("What this leaves out", "未计入的内容"),
    # -- search
    "search_title": Text("Better layouts", "更好的布局"),
    "search_body": Text(
        "Every valid layout of these {world} with this model and batch, the cheapest step first. A "
        "step costs computation, idle time and exposed transfers, lower bounds all; layouts that "
        "do not fit into memory come last.",
        "在这 {world} 上，此模型与 batch 的全部有效布局，一步最快的排在最前。"
        "一步的代价是计算、空闲和未被掩盖的传输之和，都是下界；放不进显存的排在最后。",
    ),
    "search_job": Text(
        "{model}, {tokens} tokens a sequence, global batch {batch}, micro-batch {micro_batch}; "
        "{cluster}, {capacity} a GPU.",
        "{model}，每条序列 {tokens} 个 token，全局 batch {batch}，micro-batch {micro_batch}；"
        "{cluster}，每个 GPU {capacity}。",
    ),
    "search_taken": Text(
        "No global batch is given: {batch} is taken, as for the layout on screen.",
        "未给出全局 batch：取 {batch}，与当前布局相同。",
    ),
    "search_tried": Text(
        "{tried} valid layouts; weights and optimizer state alone are too large in {large}.",
        "共 {tried} 个有效布局；其中 {large} 个仅权重和优化器状态就放不下。",
    ),
    "search_all": Text("{tried} valid layouts.", "共 {tried} 个有效布局。"),
    "search_incomplete": Text(
        "Not all of the others were worked out, so a better one may be missing.",
        "其余布局没有全部算完，可能漏掉更好的。",
    ),
    "search_none_fits": Text(
        "None fits into {capacity}: these lack least.",
        "没有布局能放进 {capacity}：以下差得最少。",
    ),
    "search_none": Text(
        "No layout is valid: the batch, the heads or the layers do not divide.",
        "没有有效布局：batch、注意力头数或层数无法整除。",
    ),
    "search_other_recompute": Text("Full recomputation", "完全重计算"),
    "column_place": Text("Place", "名次"),
    "column_layout": Text("Layout", "布局"),
    "column_step": Text("Step at least", "一步的下界"),
    "column_memory": Text("Fullest rank", "最满的 rank"),
    "column_reasons": Text("Why", "原因"),
    "on_screen": Text("your layout", "当前布局"),
    "behind": Text("lower", "靠后"),
    "part_compute": Text("computation", "计算"),
    "part_idle": Text("idle", "空闲"),
    "part_exposed": Text("exposed", "未被掩盖"),
    "over_memory": Text("{memory}, too much", "{memory}，放不下"),
    "stage": Text("PP {stage}", "PP {stage}"),
}

REASONS: dict[str, Text] = {
    "fits": Text("fits, where the current one needs {other}", "放得下，而当前布局需要 {other}"),
    "lacks": Text("needs {memory}", "需要 {memory}"),
    "tight": Text("leaves only {left} of memory", "显存只剩 {left}"),
    "computes-less": Text(
        "{seconds} less on the fullest stage: layers are dealt more evenly",
        "最满的阶段少算 {seconds}：层分得更均匀",
    ),
    "computes-more": Text(
        "{seconds} more on the fullest stage: layers are dealt less evenly",
        "最满的阶段多算 {seconds}：层分得不够均匀",
    ),
    "idle-less": Text(
        "{seconds} less idle: pp {pp} with {m} micro-batches",
        "空闲减少 {seconds}：pp {pp}，{m} 个 micro-batch",
    ),
    "idle-more": Text(
        "{seconds} more idle: pp {pp} with {m} micro-batches",
        "空闲增加 {seconds}：pp {pp}，{m} 个 micro-batch",
    ),
    "waits-less": Text("waits {seconds} less for {kind}", "{kind} 等待减少 {seconds}"),
    "waits-more": Text("waits {seconds} more for {kind}", "{kind} 等待增加 {seconds}"),
    "idle": Text(
        "idle {seconds}: pp {pp} with {m} micro-batches",
        "空闲 {seconds}：pp {pp}，{m} 个 micro-batch",
    ),
    "waits": Text("waits {seconds} for {kind}", "{kind} 等待 {seconds}"),
    "alike": Text("costs the same within 1 %", "代价相差不到 1%"),
    "nothing": Text("almost all computation", "几乎全是计算"),
}

LEFT_OUT: tuple[Text, ...] = (
    Text("Latency, so many small messages look cheap.", "延迟，因此大量小消息显得便宜。"),
    Text("Trees, and switches that reduce on the way.", "树形算法，以及交换机内的归约。"),
    Text(
        "Groups that want the same link, or hide behind the same computation, at once.",
        "多个组同时争用同一链路，或由同一段计算掩盖。",
    ),
    Text(
        "Uneven routing, and limits on the nodes that one token goes to.",
        "路由不均，以及对一个 token 所到节点数的限制。",
    ),
    Text(
        "Several optimizer instances, MTP layers, and the second copy that DualPipe keeps.",
        "多个优化器实例、MTP 层，以及 DualPipe 保留的第二份模型。",
    ),
)

SEARCH_LEFT_OUT: tuple[Text, ...] = (
    Text(
        "Latency, and kernels that slow down on small pieces: large tp and cp look better than "
        "they are.",
        "延迟，以及小块计算时变慢的核函数：因此大的 tp 和 cp 显得比实际更好。",
    ),
    Text(
        "Links that groups share, uneven routing, the optimizer's own time.",
        "各组共用的链路、路由不均、优化器本身的时间。",
    ),
    Text(
        "Memory for fragments, buffers and the framework: leave a few GiB free.",
        "碎片、缓冲区和框架占用的显存：请留出数 GiB。",
    ),
    Text(
        "Not tried: tp beyond an NVLink domain, cp below {least} tokens a rank, other micro-batch "
        "sizes and schedules.",
        "未尝试：超出 NVLink 域的 tp、使每个 rank 少于 {least} 个 token 的 cp、"
        "其他 micro-batch 大小和调度。",
    ),
    Text(
        "So it sorts out what cannot be good; among the first few, only a run tells.",
        "它能排除不可能好的布局；前几名之间，只有实测才能分出高下。",
    ),
)
