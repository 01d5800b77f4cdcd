# ruff: noqa: RUF001
"""The words of the Memory view: its inputs, its parts, its sentences, its refusals."""

from __future__ import annotations

from .shapes import Control, Text


def _size(en: str, zh: str, en_help: str, zh_help: str) -> Control:
    return Control(Text(en, zh), Text(en_help, zh_help))


MEMORY_CONTROLS: dict[str, Control] = {
    "model": _size(
        "Model",
        "模型",
        "A published shape; sizes that are typed count before its own.",
        "已公开的模型结构；输入的数值优先。",
    ),
    "precision": _size(
        "Precision",
        "精度",
        "Formats of weights and of gradients; the optimizer works in FP32.",
        "权重与梯度的格式；优化器使用 FP32。",
    ),
    "zero": _size(
        "ZeRO stage",
        "ZeRO 阶段",
        "What data parallel ranks share out; 1 is Megatron's distributed optimizer, 3 is FSDP.",
        "数据并行 rank 之间分摊什么；1 即 Megatron 的分布式优化器，3 即 FSDP。",
    ),
    "recompute": _size(
        "Recomputation",
        "重计算",
        "What the backward pass computes again instead of keeping it.",
        "反向传播时重新计算、而不保留的部分。",
    ),
    "flash": _size(
        "FlashAttention",
        "FlashAttention",
        "One kernel for attention, which keeps no scores; off, scores take memory and time.",
        "注意力用一个核函数完成，不保留分数；关闭时分数占显存也耗时。",
    ),
    "products": _size(
        "Matrix products",
        "矩阵乘法格式",
        "Number format of the layers' matrix products; all else stays in 16 bits.",
        "各层矩阵乘法的数值格式；其余仍为 16 位。",
    ),
    "offload": _size(
        "In host memory",
        "放在主机内存",
        "States that leave the GPU: ZeRO-Offload, ZeRO-Infinity or PatrickStar's chunks.",
        "离开 GPU 的状态：ZeRO-Offload、ZeRO-Infinity 或 PatrickStar 的块。",
    ),
    "sequence_parallel": _size(
        "Sequence parallelism",
        "序列并行",
        "Cuts over TP what tensor parallelism alone leaves whole.",
        "把张量并行本身不切分的激活也按 TP 切分。",
    ),
    "spread": _size(
        "Layers per stage",
        "每阶段层数",
        "Equal, as Megatron needs it by default, or differing by one at most.",
        "相等（Megatron 的默认要求），或最多相差一层。",
    ),
    "cluster": Control(
        Text("Cluster", "集群"),
        Text(
            "Link speeds, memory and peak of its GPUs.",
            "GPU 的链路速度、显存和峰值算力。",
        ),
    ),
    "capacity": _size(
        "GPU memory (GiB)",
        "GPU 显存（GiB）",
        "1 GiB = 2^30 bytes; a GPU sold with 80 GB has about 80 GiB.",
        "1 GiB = 2^30 字节；标称 80 GB 的 GPU 约有 80 GiB。",
    ),
    "of_rank": _size(
        "Rank of the ZeRO picture",
        "ZeRO 图的 rank",
        "Whose data parallel group is drawn; empty: the pinned rank, else 0.",
        "画出它所在的数据并行组；留空则为所固定的 rank，否则为 0。",
    ),
    "hidden": _size("Hidden size", "隐藏维度", "Width of a layer's input.", "每层输入的宽度。"),
    "heads": _size("Attention heads", "注意力头数", "Query heads.", "查询头的数量。"),
    "kv_heads": _size(
        "KV heads", "KV 头数", "Heads of keys and values (GQA).", "键和值的头数（GQA）。"
    ),
    "head_dim": _size("Head dim", "每头维度", "Width of one head.", "一个头的宽度。"),
    "ffn": _size("FFN size", "FFN 宽度", "Inner width of the MLP.", "MLP 的中间宽度。"),
    "vocabulary": _size("Vocabulary", "词表大小", "Words, before padding.", "补齐前的词数。"),
    "sequence": _size("Sequence", "序列长度", "Tokens of a sample.", "一个样本的 token 数。"),
    "gated": _size("Gated MLP", "门控 MLP", "SwiGLU: three matrices.", "SwiGLU：三个矩阵。"),
    "tied": _size(
        "Tied embeddings",
        "共享词嵌入",
        "The output uses the embedding's matrix.",
        "输出层与词嵌入共用矩阵。",
    ),
    "rms_norm": _size(
        "RMSNorm", "RMSNorm", "One vector a norm, not two.", "每个归一化只有一个向量。"
    ),
    "learned_positions": _size(
        "Learned positions", "可学习位置", "A vector for each position.", "每个位置一个向量。"
    ),
    "biases": _size("Biases", "偏置", "Of which linear layers.", "哪些线性层带偏置。"),
    "top_k": _size("Top-k", "Top-k", "Experts of each token.", "每个 token 的专家数。"),
    "expert_ffn": _size(
        "Expert FFN size", "专家 FFN 宽度", "Inner width of one expert.", "一个专家的中间宽度。"
    ),
    "shared_expert_ffn": _size(
        "Shared expert size",
        "共享专家宽度",
        "Inner width of the expert of all tokens; 0: none.",
        "所有 token 共用的专家的中间宽度；0 为没有。",
    ),
    "dense_layers": _size(
        "Dense layers first",
        "前置稠密层数",
        "First layers without experts.",
        "最前面不含专家的层数。",
    ),
    "q_lora_rank": _size(
        "MLA query rank", "MLA 查询秩", "Width of compressed queries.", "压缩后查询的宽度。"
    ),
    "kv_lora_rank": _size(
        "MLA KV rank",
        "MLA KV 秩",
        "Width of compressed keys and values; 0: no MLA.",
        "压缩后键值的宽度；0 表示不用 MLA。",
    ),
    "qk_nope_head_dim": _size(
        "MLA QK dim", "MLA QK 维度", "Of a head, without positions.", "每头不带位置的维度。"
    ),
    "qk_rope_head_dim": _size(
        "MLA RoPE dim", "MLA RoPE 维度", "Of a head, with positions.", "每头带位置的维度。"
    ),
    "v_head_dim": _size("MLA V dim", "MLA V 维度", "Of a head's values.", "每头值的维度。"),
    "mtp_layers": _size(
        "MTP layers", "MTP 层数", "Multi-token prediction modules.", "多 token 预测模块数。"
    ),
}

MEMORY: dict[str, Text] = {
    "title": Text("Does it fit in memory?", "显存放得下吗？"),
    "body": Text(
        "Peak memory by pipeline stage: weights, gradients, optimizer states and activations. "
        "All ranks of a stage hold the same.",
        "各流水线阶段的显存峰值：权重、梯度、优化器状态与激活值。同一阶段的所有 rank 相同。",
    ),
    "shape": Text("Shape of the model", "模型结构"),
    "verdict_fits": Text(
        "It fits: the fullest stage, PP {stage}, holds {total} of tensors and needs about {needed} "
        "with what comes beside, of {capacity} ({share} %).",
        "放得下：最满的阶段 PP {stage} 存放 {total} 张量，连同其他约需 {needed}，共有 "
        "{capacity}（{share} %）。",
    ),
    "verdict_tight": Text(
        "It will hardly fit: PP {stage} holds {total} of tensors, and with what comes beside needs "
        "about {needed}, more than the {capacity} of a GPU.",
        "多半放不下：PP {stage} 存放 {total} 张量，连同其他约需 {needed}，超过 GPU 的 {capacity}。",
    ),
    "verdict_unstated": Text(
        "The published layout does not state {names}: what is taken for them here may differ from "
        "the run, which did fit.",
        "公开资料没有给出{names}：此处取默认值，可能与放得下的实际运行不同。",
    ),
    "verdict_over": Text(
        "It does not fit: PP {stage} needs {total}, which is {missing} more than the {capacity} of "
        "a GPU. Stages that are too full: {count} of {stages}.",
        "放不下：PP {stage} 需要 {total}，比 GPU 的 {capacity} 多 {missing}。"
        "{stages} 个阶段中有 {count} 个过满。",
    ),
    "ways": Text("It would fit with", "这样就放得下"),
    "way_none": Text(
        "No single change that was tried makes it fit: use more GPUs for one replica.",
        "试过的单项改动都放不下：需要用更多 GPU 存放一个副本。",
    ),
    "way_total": Text("{change} ({total})", "{change}（{total}）"),
    "change": Text("{name}: {value}", "{name}：{value}"),
    "left_out": Text(
        "Beside tensors: NCCL's buffers, the CUDA context and pieces too small to use, 3 % and 1 "
        "GiB; "
        "5 GiB where kernels fuse less. Routing counts as even.",
        "张量之外：NCCL 缓冲区、CUDA 上下文和无法利用的碎片，按 3% 加 1 GiB 计；"
        "融合较少的核函数按 5 GiB。"
        "路由按均匀计。",
    ),
    "parameters_line": Text("{name}: {total} B parameters", "{name}：{total} B（十亿）个参数"),
    "active": Text(", {active} B of them for each token", "，其中每个 token 用到 {active} B"),
    "note_default": Text(
        "No model is chosen: {name} is shown. Choose one under Model and batch.",
        "未选择模型：此处显示 {name}。可在“模型与批量”中选择。",
    ),
    "note_matched": Text(
        "{name} has these layers and experts. Choose another under Model and batch.",
        "{name} 的层数和专家数与此相同。可在“模型与批量”中另选。",
    ),
    "note_unlike": Text(
        "No published model here has these layers and experts: {name} is taken, with them.",
        "没有层数和专家数与此相同的已公开模型：取 {name}，并改用这些数值。",
    ),
    "note_changed": Text(
        "Changed from the published model: {changes}.",
        "与公开模型不同之处：{changes}。",
    ),
    "note_padded": Text(
        "The vocabulary of {vocabulary} is padded to {rows} rows, a multiple of 128 × TP.",
        "词表 {vocabulary} 补齐为 {rows} 行，即 128 × TP 的倍数。",
    ),
    "note_batches": Text(
        "Micro-batches of a pipeline: {global_batch} / ({micro_batch} × DP {dp}) = {count}.",
        "每条流水线的 micro-batch 数：{global_batch} /（{micro_batch} × DP {dp}）= {count}。",
    ),
    "note_no_batch": Text(
        "No batch is chosen: four micro-batches a stage are taken, {global_batch} samples a step.",
        "未指定批量：每阶段取四个 micro-batch，一步共 {global_batch} 个样本。",
    ),
    "note_nearly": Text(
        "{layers} layers do not divide over {stages} stages, as Megatron needs them to: here "
        "stages differ by one layer.",
        "{layers} 层不能平均分到 {stages} 个阶段（Megatron 要求整除）：此处各阶段最多相差一层。",
    ),
    "note_no_experts": Text(
        "EP {ep} holds nothing here: the model has no experts.",
        "EP {ep} 在此不起作用：该模型没有专家。",
    ),
    "note_twice": Text(
        "DualPipe holds every stage of the model on two ranks, for its two directions.",
        "DualPipe 有两个方向，因此模型的每个阶段都由两个 rank 持有。",
    ),
    "by_sizes": Text("By layers and experts", "按层数与专家数"),
    "own_model": Text("A model of your own", "自定模型"),
    "by_vpp": Text("1F1B, with VPP interleaved", "1F1B；有 VPP 时交错"),
    "by_default": Text("{name} (default)", "{name}（默认）"),
    "by_preset": Text("As the preset", "按预设"),
    "on": Text("On", "开"),
    "off": Text("Off", "关"),
    "zero_0": Text("0: nothing shared", "0：不分摊"),
    "zero_1": Text("1: optimizer", "1：优化器"),
    "zero_2": Text("2: and gradients", "2：加梯度"),
    "zero_3": Text("3: and weights", "3：加权重"),
    "recompute_none": Text("Nothing", "无"),
    "recompute_selective": Text("Attention core", "注意力核心"),
    "recompute_partial": Text(
        "Core, norms, activation function, MLA's projections up",
        "核心、归一化、激活函数、MLA 上投影",
    ),
    "recompute_full": Text("Whole layers", "整层"),
    "products_bf16": Text("BF16", "BF16"),
    "products_fp16": Text("FP16", "FP16"),
    "products_fp8": Text("FP8", "FP8"),
    "products_mxfp8": Text("MXFP8", "MXFP8"),
    "products_nvfp4": Text("NVFP4", "NVFP4"),
    "offload_none": Text("Nothing", "无"),
    "offload_optimizer": Text("Optimizer (ZeRO-Offload)", "优化器（ZeRO-Offload）"),
    "offload_parameters": Text("And weights (ZeRO-Infinity)", "加权重（ZeRO-Infinity）"),
    "offload_chunks": Text(
        "What does not fit, in chunks (PatrickStar)", "放不下的块（PatrickStar）"
    ),
    "host_title": Text("GPU and host memory", "显存与主机内存"),
    "host_stage": Text("A rank of PP {stage}", "PP {stage} 的一个 rank"),
    "host_gpu": Text("On the GPU", "GPU 上"),
    "host_rank": Text("In host memory", "主机内存中"),
    "host_node": Text("Of a node's {count} ranks", "节点的 {count} 个 rank"),
    "host_of": Text(
        "A node has {host}, its buffers and pinned copies apart (DeepSpeed reckons half as much "
        "again).",
        "每个节点有 {host}，缓冲区与锁页副本另计（DeepSpeed 按再加一半估算）。",
    ),
    "host_over": Text(
        "That is more than the {host} of host memory that a node has: it does not fit.",
        "超过节点的 {host} 主机内存：放不下。",
    ),
    "crossing": Text(
        "Between each GPU and its host in a step: {down} down, {up} up. At {link} GB/s one way, "
        "of which copies reach 88 %, {during} while it computes and {after} after; then the "
        "node's CPUs update for about {update}.",
        "每步每个 GPU 与主机内存之间：下行 {down}，上行 {up}。单向 {link} GB/s，实际可达 88%："
        "计算期间 {during}，其后 {after}；节点的 CPU 更新约 {update}。",
    ),
    "by_layers": Text("Equal if they divide", "能整除则相等"),
    "spread_equal": Text("Equal", "相等"),
    "spread_nearly": Text("Nearly equal", "近似相等"),
    "biases_none": Text("None", "无"),
    "biases_qkv": Text("Q, K, V", "Q、K、V"),
    "biases_all": Text("All", "全部"),
    "precision_bf16-fp32": Text("BF16, FP32 gradients", "BF16，FP32 梯度"),
    "precision_bf16-bf16": Text("BF16, BF16 gradients", "BF16，BF16 梯度"),
    "precision_fp16-fp16": Text("FP16, FP16 gradients", "FP16，FP16 梯度"),
    "precision_fp32-fp32": Text("FP32", "FP32"),
    "precision_bf16-fp32-bf16": Text(
        "BF16, FP32 gradients, BF16 moments", "BF16，FP32 梯度，BF16 动量"
    ),
    "precision_fp8-fp32": Text("FP8 weights, FP32 gradients", "FP8 权重，FP32 梯度"),
    "precision_fp8-bf16": Text("FP8 weights, BF16 gradients", "FP8 权重，BF16 梯度"),
    "precision_fp8-fp32-bf16": Text(
        "FP8 weights, FP32 gradients, BF16 moments", "FP8 权重，FP32 梯度，BF16 动量"
    ),
    "part_weights": Text("Weights", "权重"),
    "part_copies": Text("8-bit copies of weights", "权重的 8 位副本"),
    "part_gradients": Text("Gradients", "梯度"),
    "part_optimizer": Text("Optimizer state", "优化器状态"),
    "part_gathered": Text("Gathered layer", "收集的一层"),
    "part_activations": Text("Activations", "激活"),
    "part_embedding": Text("Embedding's activations", "词嵌入的激活"),
    "part_output": Text("Output and logits", "输出与 logits"),
    "part_recomputed": Text("Layer being recomputed", "正在重算的一层"),
    "part_working": Text("Working space", "临时空间"),
    "bars_title": Text("By pipeline stage", "按流水线阶段"),
    "bars_label": Text("Memory of each pipeline stage", "每个流水线阶段的显存"),
    "bars_some": Text(
        "{shown} of {stages} stages are shown, the fullest and the last among them.",
        "显示 {stages} 个阶段中的 {shown} 个，包括最满的和最后的。",
    ),
    "bars_hint": Text(
        "Point at a bar to see its numbers below; its name leads to its GPUs in the picture.",
        "指向一条，下方显示它的数值；单击名称，在图中查看它的 GPU。",
    ),
    "bar_label": Text("PP {stage}: {total}", "PP {stage}：{total}"),
    "bar_over": Text(
        "PP {stage}: {total}, more than the GPU has", "PP {stage}：{total}，超过 GPU 显存"
    ),
    "capacity_line": Text("GPU: {capacity}", "GPU：{capacity}"),
    "told_stage": Text(
        "PP {stage}, layers: {layers}, in all {total}", "PP {stage}，层数：{layers}，共 {total}"
    ),
    "formula_activations": Text(
        "Micro-batches in flight {in_flight} × {stage} (layers: {layers}; one in MB: {parts})",
        "在途 micro-batch {in_flight} 个 × {stage}（层数：{layers}；一层，MB：{parts}）",
    ),
    "formula_gathered": Text("One layer at a time: {terms}", "每次一层：{terms}"),
    "formula_recomputed": Text(
        "One layer's activations while its backward runs, beyond its input",
        "一层反向传播期间的激活，不含其输入",
    ),
    "formula_working": Text(
        "A second copy of the logits, or the gradient of one matrix before it is added up",
        "logits 的第二份副本，或一个矩阵在累加之前的梯度",
    ),
    "layer_norms": Text("norms", "归一化"),
    "layer_attention": Text("attention", "注意力"),
    "layer_core": Text("attention core", "注意力核心"),
    "layer_mlp": Text("MLP", "MLP"),
    "layer_experts": Text("experts", "专家"),
    "layer_input": Text("input", "输入"),
    "grid_title": Text("On the GPUs", "在各个 GPU 上"),
    "grid_body": Text(
        "Each cell is a GPU on its node; the darker, the fuller. Small layouts print the rank and "
        "under it GiB.",
        "每个格子是节点上的一个 GPU，颜色越深越满。小布局会印出 rank，下面是 GiB。",
    ),
    "grid_label": Text(
        "Memory of every GPU, from {least} to {most} GiB",
        "每个 GPU 的显存，从 {least} 到 {most} GiB",
    ),
    "grid_level": Text("{low}–{high} GiB: GPUs {gpus}", "{low}–{high} GiB：GPU {gpus} 个"),
    "grid_over": Text("above {low} GiB: GPUs {gpus}", "超过 {low} GiB：GPU {gpus} 个"),
    "kinds_title": Text("Parameters by kind", "各类参数"),
    "kinds_column": Text("Kind", "种类"),
    "kinds_model": Text("Whole model", "整个模型"),
    "kinds_rank": Text("One rank of PP {stage}", "PP {stage} 的一个 rank"),
    "kinds_sum": Text("In all", "合计"),
    "kind_embedding": Text("Embedding", "词嵌入"),
    "kind_positions": Text("Positions", "位置"),
    "kind_attention": Text("Attention", "注意力"),
    "kind_mlp": Text("MLP", "MLP"),
    "kind_router": Text("Router", "路由"),
    "kind_experts": Text("Experts", "专家"),
    "kind_shared_expert": Text("Shared expert", "共享专家"),
    "kind_norms": Text("Norms", "归一化"),
    "kind_mtp": Text("MTP", "MTP"),
    "kind_output": Text("Output", "输出层"),
    "zero_title": Text("ZeRO: who holds which share", "ZeRO：谁持有哪一份"),
    "zero_group": Text(
        "Rank {rank} (PP {stage}) shares the states of its {parameters} dense parameters with the "
        "{count} ranks of its data parallel group: {ranks}. One share is {share} parameters.",
        "rank {rank}（PP {stage}）的 {parameters} 个稠密参数的状态，"
        "由其数据并行组的 {count} 个 rank 分摊：{ranks}。每份 {share} 个参数。",
    ),
    "zero_alone": Text(
        "Rank {rank} (PP {stage}) is alone in its data parallel group: there is nobody to share "
        "its {parameters} dense parameters with, whatever the stage.",
        "rank {rank}（PP {stage}）的数据并行组只有它自己：无论哪个阶段，"
        "它的 {parameters} 个稠密参数都无人分摊。",
    ),
    "zero_experts": Text(
        "Its {parameters} parameters of experts are shared by the expert data parallel group, "
        "size {count}: {ranks}.",
        "它的 {parameters} 个专家参数由专家数据并行组分摊，大小 {count}：{ranks}。",
    ),
    "zero_column": Text("Stage", "阶段"),
    "zero_sum": Text("Model states", "模型状态"),
    "zero_key": Text(
        "W: weights, G: gradients, O: optimizer state. Each column is a rank; a colour is one "
        "rank's share. Solid: there and up to date. Faint: memory is taken, but the numbers are "
        "old or not yet summed. Empty: not held.",
        "W：权重，G：梯度，O：优化器状态。每列是一个 rank，一种颜色是一个 rank 的份额。"
        "实色：持有且最新。淡色：占着显存，但数值已旧或尚未求和。空白：不持有。",
    ),
    "moment_forward": Text("Forward", "前向"),
    "moment_forward_body": Text(
        "Every rank computes with all weights, on its own samples.",
        "每个 rank 用全部权重计算自己的样本。",
    ),
    "moment_backward": Text("Backward", "反向"),
    "moment_backward_body": Text(
        "Gradients of a rank's own samples fill a whole buffer on every rank.",
        "每个 rank 上，自己样本的梯度填满一整块缓冲区。",
    ),
    "moment_all_reduce": Text("All-reduce", "All-reduce"),
    "moment_all_reduce_body": Text(
        "Gradients are summed; afterwards every rank has the whole sum.",
        "梯度求和，之后每个 rank 都有完整的和。",
    ),
    "moment_step_all": Text("Optimizer step", "优化器更新"),
    "moment_step_all_body": Text(
        "Every rank does the very same update of everything.",
        "每个 rank 都对全部参数做同样的更新。",
    ),
    "moment_reduce_scatter": Text("Reduce-scatter", "Reduce-scatter"),
    "moment_reduce_scatter_body": Text(
        "Gradients are summed; each rank gets the sum of its own share only.",
        "梯度求和，每个 rank 只得到自己那一份的和。",
    ),
    "moment_backward_scatter": Text("Backward with reduce-scatter", "反向，同时 reduce-scatter"),
    "moment_backward_scatter_body": Text(
        "As soon as some gradients are ready they are summed and scattered; only the own share "
        "is kept.",
        "一部分梯度就绪后立即求和并分散，只保留自己的那一份。",
    ),
    "moment_step_own": Text("Optimizer step", "优化器更新"),
    "moment_step_own_body": Text(
        "Each rank updates its own share of the weights; the others are still old.",
        "每个 rank 更新自己那一份权重，其余仍是旧值。",
    ),
    "moment_all_gather": Text("All-gather", "All-gather"),
    "moment_all_gather_body": Text(
        "The updated shares are gathered: every rank has all new weights.",
        "收集更新后的各份：每个 rank 都有全部新权重。",
    ),
    "moment_at_rest": Text("At rest", "静止时"),
    "moment_at_rest_body": Text(
        "Each rank has its own share of everything, and nothing else.",
        "每个 rank 只有各项中自己的那一份。",
    ),
    "moment_gather_forward": Text("Forward, layer by layer", "前向，逐层进行"),
    "moment_gather_forward_body": Text(
        "All-gather brings one layer's weights together; after its forward they are freed.",
        "All-gather 聚集一层的权重，该层前向完成后即释放。",
    ),
    "moment_gather_backward": Text("Backward, layer by layer", "反向，逐层进行"),
    "moment_gather_backward_body": Text(
        "The layer's weights are gathered again, and its gradients appear.",
        "再次聚集该层的权重，并算出该层的梯度。",
    ),
    "moment_scatter_free": Text("Reduce-scatter, then free", "Reduce-scatter，随后释放"),
    "moment_scatter_free_body": Text(
        "The layer's gradients are summed and scattered; its gathered weights are freed.",
        "该层梯度求和并分散，聚集来的权重被释放。",
    ),
    "moment_step_shard": Text("Optimizer step", "优化器更新"),
    "moment_step_shard_body": Text(
        "Each rank updates its share. Nothing is gathered until the next forward.",
        "每个 rank 更新自己的那一份，到下次前向之前不再聚集。",
    ),
}
