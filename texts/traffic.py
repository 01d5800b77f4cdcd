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
    "title": Text("What does each group send in a step?", "每种组在一个训练步中发送多少？"),
    "body": Text(
        "Bytes follow from the model and the sizes; times are bytes over the speed of the links, "
        "with "
        "no latency and nothing hidden. How long a step waits for each kind is in Step time.",
        "字节数由模型和各组大小算出；时间为字节数除以链路速度，不计延迟，也不计重叠。"
        "一步实际等待各类通信多久，见“一步用时”。",
    ),
    "job": Text(
        "{model}, {tokens} tokens a sequence, {micro_batches} of {micro_batch} on each pipeline.",
        "{model}，每条序列 {tokens} 个 token，每条流水线 {micro_batches}，每个含 {micro_batch}。",
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
    "column_seconds": Text("At link speed", "按链路速度"),
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
    "search_title": Text("Which layouts are quicker?", "哪些布局更快？"),
    "search_body": Text(
        "Every valid layout of these {world} with this model and batch, each with the micro-batch, "
        "the virtual stages and the recomputation that suit it best; the quickest step first.",
        "在这 {world} 上，此模型与 batch 的全部有效布局，各自配最合适的 micro-batch、"
        "虚拟阶段和重计算；一步最快的排在最前。",
    ),
    "search_job": Text(
        "{model}, {tokens} tokens a sequence, global batch {batch}; {cluster}, {capacity} a GPU.",
        "{model}，每条序列 {tokens} 个 token，全局 batch {batch}；{cluster}，每个 GPU {capacity}。",
    ),
    "search_taken": Text(
        "No global batch is given: {batch} is taken, as for the layout on screen.",
        "未给出全局 batch：取 {batch}，与当前布局相同。",
    ),
    "search_tried": Text(
        "{tried} valid layouts, timed in {ways} ways; {large} of them fit in none.",
        "共 {tried} 个有效布局，按 {ways} 种方式计时；其中 {large} 个怎样都放不下。",
    ),
    "search_all": Text(
        "{tried} valid layouts, timed in {ways} ways.",
        "共 {tried} 个有效布局，按 {ways} 种方式计时。",
    ),
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
    "column_place": Text("Place", "名次"),
    "column_layout": Text("Layout", "布局"),
    "column_step": Text("Step about", "一步约需"),
    "column_memory": Text("Fullest GPU needs", "最满的 GPU 所需"),
    "column_reasons": Text("Why", "原因"),
    "on_screen": Text("your layout", "当前布局"),
    "with_samples": Text("micro-batch {count}", "micro-batch {count}"),
    "with_selective": Text("attention core recomputed", "重算注意力核心"),
    "with_partial": Text("partial recomputation", "部分重计算"),
    "with_full": Text("whole layers recomputed", "整层重计算"),
    "with_account": Text("embedding and loss take a layer's place", "词嵌入与损失各占一层"),
    "part_compute": Text("computation", "计算"),
    "part_idle": Text("idle", "空闲"),
    "part_exposed": Text("waiting", "等待通信"),
    "part_rest": Text("optimizer, host", "优化器与主机"),
    "over_memory": Text("{memory}, too much", "{memory}，放不下"),
    "stage": Text("PP {stage}", "PP {stage}"),
}

REASONS: dict[str, Text] = {
    "fits": Text("fits, where the current one needs {other}", "放得下，而当前布局需要 {other}"),
    "lacks": Text("needs {memory}", "需要 {memory}"),
    "tight": Text("leaves only {left} of memory", "显存只剩 {left}"),
    "computes-less": Text(
        "{seconds} less computation (recomputed: {recompute})",
        "少算 {seconds}（重计算：{recompute}）",
    ),
    "computes-more": Text(
        "{seconds} more computation (recomputed: {recompute})",
        "多算 {seconds}（重计算：{recompute}）",
    ),
    "idle-less": Text(
        "{seconds} less idle: pp {pp}, vpp {vpp}, {m} micro-batches",
        "空闲少 {seconds}：pp {pp}，vpp {vpp}，{m} 个 micro-batch",
    ),
    "idle-more": Text(
        "{seconds} more idle: pp {pp}, vpp {vpp}, {m} micro-batches",
        "空闲多 {seconds}：pp {pp}，vpp {vpp}，{m} 个 micro-batch",
    ),
    "waits-less": Text("waits {seconds} less for {kind}", "{kind} 等待减少 {seconds}"),
    "waits-more": Text("waits {seconds} more for {kind}", "{kind} 等待增加 {seconds}"),
    "idle": Text(
        "idle {seconds}: pp {pp}, vpp {vpp}, {m} micro-batches",
        "空闲 {seconds}：pp {pp}，vpp {vpp}，{m} 个 micro-batch",
    ),
    "updates": Text("the optimizer takes {seconds}", "优化器用 {seconds}"),
    "updates-less": Text("{seconds} less for the optimizer", "优化器少用 {seconds}"),
    "updates-more": Text("{seconds} more for the optimizer", "优化器多用 {seconds}"),
    "offloads": Text("states in host memory take {seconds}", "主机内存中的状态用 {seconds}"),
    "offloads-less": Text(
        "{seconds} less for states in host memory", "主机内存中的状态少用 {seconds}"
    ),
    "offloads-more": Text(
        "{seconds} more for states in host memory", "主机内存中的状态多用 {seconds}"
    ),
    "launches": Text("kernels are launched for {seconds}", "启动核函数用 {seconds}"),
    "launches-less": Text("{seconds} less to launch kernels", "启动核函数少用 {seconds}"),
    "launches-more": Text("{seconds} more to launch kernels", "启动核函数多用 {seconds}"),
    "waits": Text("waits {seconds} for {kind}", "等待 {kind} {seconds}"),
    "alike": Text("as quick within 1 %", "用时相差不到 1%"),
    "nothing": Text("almost all computation", "几乎全是计算"),
}

LEFT_OUT: tuple[Text, ...] = (
    Text(
        "Latency, and what computation hides: Step time counts them.",
        "延迟以及与计算的重叠：“一步用时”计入。",
    ),
    Text("Trees, and switches that reduce on the way.", "树形算法，以及交换机内的归约。"),
    Text("Groups that want the same link at once.", "多个组同时争用同一链路。"),
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
        "Not tried: tp beyond an NVLink domain, micro-batches above {samples} samples, cp that "
        "leaves "
        "a rank fewer than {least} tokens (unless the layout on screen does), stages uneven by "
        "more "
        "than one layer, other schedules, ZeRO stages and number formats than on screen.",
        "未尝试：超出 NVLink 域的 tp、多于 {samples} 个样本的 micro-batch、使每个 rank 少于 "
        "{least} 个 token 的 cp"
        "（当前布局如此时除外）、相差超过一层的阶段、与当前不同的调度、ZeRO 阶段和数值格式。",
    ),
    Text(
        "A twentieth of each GPU's memory stays free: batches and routing are not alike every "
        "step.",
        "每个 GPU 留出二十分之一的显存：每步的数据与路由并不相同。",
    ),
    Text(
        "The estimate is off by more than neighbours differ: among the first few, only a run "
        "tells.",
        "估算误差大于相邻布局之差：前几名之间，只有实测才能分出高下。",
    ),
)
