# ruff: noqa: RUF001
"""Group types: the choices of the dropdown, and the kinds that each shows."""

from __future__ import annotations

from .links import (
    BEST_LAYOUT,
    CP_READING,
    DATA_PARALLEL_1,
    DATA_PARALLEL_2,
    DEEPSEEK_V3,
    FROM_DP_TO_FSDP,
    MEGATRON_2019,
    MEGATRON_2021,
    MEGATRON_INIT,
    MEGATRON_SETUP,
    MEGATRON_SURVEY,
    MOE_DOCS,
    PARALLEL_FOLDING,
    PARAMETER_SERVER,
    PIPELINE_GPIPE,
    PIPELINE_SOURCE,
    PYTORCH_FSDP,
    TENSOR_PARALLEL,
    ZERO_BUBBLE,
)
from .shapes import GroupType, Text

DP_TITLE = Text("Data parallel (DP)", "数据并行（DP）")
TP_TITLE = Text("Tensor model parallel (TP)", "张量模型并行（TP）")
PP_TITLE = Text("Pipeline parallel (PP)", "流水线并行（PP）")
CP_TITLE = Text("Context parallel (CP)", "上下文并行（CP）")
EP_TITLE = Text("Expert parallel (EP)", "专家并行（EP）")

TYPES: dict[str, GroupType] = {
    "auto": GroupType(
        Text("Every kind larger than 1", "大小超过 1 的所有组"),
        Text(
            "What is drawn follows the layout: a panel for each of its axes that is larger than 1. "
            "Where experts have a grid of their own, its axes are drawn too.",
            "所画的内容随布局变化：每个大小超过 1 的轴各有一个面板。"
            "专家有自己的网格时，也画出它的各轴。",
        ),
        (),
        (MEGATRON_SETUP, MEGATRON_INIT),
    ),
    "dp": GroupType(
        DP_TITLE,
        Text(
            "Without ZeRO, every rank of a DP group holds the same weights and reads different "
            "samples. Once per step their gradients are averaged by an all-reduce, done in buckets "
            "that overlap with the backward pass. With a distributed optimizer it becomes a "
            "reduce-scatter of gradients and an all-gather of the updated parameters. "
            "When cp is above 1, gradients are reduced over the larger dp-cp group.",
            "不使用 ZeRO 时，DP 组内每个 rank 的权重都相同，读取的样本各不相同。"
            "每个训练步用一次 all-reduce 对梯度取平均，通常分桶进行，并与反向计算重叠。"
            "使用分布式优化器时，改为先对梯度做 reduce-scatter，再对更新后的参数做 all-gather。"
            "当 cp 大于 1 时，梯度在更大的 dp-cp 组内归约。",
        ),
        ("dp",),
        (PARAMETER_SERVER, FROM_DP_TO_FSDP, DATA_PARALLEL_1, DATA_PARALLEL_2),
    ),
    "tp": GroupType(
        TP_TITLE,
        Text(
            "Each rank of a TP group holds a slice of the matrices of every layer it runs. "
            "Per transformer layer and micro-batch, the group does two all-reduces of activations "
            "in the forward pass and two of activation gradients in the backward pass; with "
            "sequence parallelism, all-gather and reduce-scatter take their place. "
            "This traffic is heavy and hard to hide, so keep a TP group inside a node, on NVLink.",
            "TP 组内的每个 rank 只保存所负责各层矩阵的一个切片。"
            "对每个 micro-batch，每个 Transformer 层在前向做两次激活值的 all-reduce，"
            "在反向做两次激活值梯度的 all-reduce；开启序列并行后，改用 all-gather 与 "
            "reduce-scatter。这些通信量大而频繁，很难被计算掩盖，"
            "因此 TP 组应放在同一节点内，走 NVLink。",
        ),
        ("tp",),
        (MEGATRON_2019, MEGATRON_SURVEY, TENSOR_PARALLEL),
    ),
    "pp": GroupType(
        PP_TITLE,
        Text(
            "Each rank of a PP group holds consecutive layers (several such runs with "
            "interleaving), and one PP group is one whole pipeline. Neighbouring stages pass "
            "activations forward and gradients back by point-to-point send and receive. A batch is "
            "cut into micro-batches, so that little of the bubble, the time ranks wait idle, is "
            "left. "
            "A stage is all the ranks with the same pipeline coordinate: world / pp consecutive "
            "ranks in Megatron's default order.",
            "PP 组内的每个 rank 保存连续的若干层（交错调度时为多段），"
            "一个 PP 组就是一条完整的流水线。"
            "相邻阶段之间用点对点的发送和接收，前向传递激活值，反向传回梯度。"
            "一个 batch 被切成多个 micro-batch，使气泡（即 rank 空等的时间）所剩不多。"
            "流水线阶段（stage）指流水线坐标相同的所有 rank：在 Megatron 的默认顺序下，"
            "是连续的 world / pp 个 rank。",
        ),
        ("pp",),
        (MEGATRON_2021, PIPELINE_SOURCE, PIPELINE_GPIPE, MEGATRON_SETUP, ZERO_BUBBLE),
    ),
    "cp": GroupType(
        CP_TITLE,
        Text(
            "The sequence of every activation is cut into cp parts: 2 × cp chunks, of which the "
            "rank at CP coordinate i holds chunks i and 2 × cp - 1 - i, to balance causal "
            "attention. "
            "Only attention needs the other chunks: K and V travel round the group by ring p2p, "
            "all-gather or all-to-all. Weights are replicated over CP, so gradients are reduced "
            "over dp-cp; for the same GPUs, tp and pp, a larger cp only makes dp smaller. "
            "In Megatron Core, CP works for FP16, BF16 and FP8 with Transformer Engine. "
            "When tp × cp is larger than the NVLink domain, the ring leaves it and slows down.",
            "所有激活值都沿序列维切成 cp 份：先切成 2 × cp 块，CP 坐标为 i 的 rank 持有第 i 块和"
            "第 2 × cp - 1 - i 块，使因果注意力的计算量均衡。"
            "只有注意力需要其他块：K 和 V 通过环形 p2p、all-gather 或 all-to-all 在组内传递。"
            "权重在 CP 上是复制的，因此梯度在 dp-cp 组内归约；GPU 总数、tp 和 pp 不变时，"
            "增大 cp 只会使 dp 变小。"
            "在 Megatron Core 中，CP 配合 Transformer Engine 支持 FP16、BF16 和 FP8。"
            "当 tp × cp 超出 NVLink 域时，环会跨出该域，通信随之变慢。",
        ),
        ("cp",),
        CP_READING,
    ),
    "dp+tp": GroupType(
        Text("DP + TP", "DP + TP"),
        Text(
            "TP communicates in every layer of every micro-batch, DP only once per step: use as "
            "much DP as memory allows, and no more TP than the model needs. "
            "The TP group carries activations and their gradients and belongs inside a node. "
            "The DP group joins the ranks that hold the same slice, and averages its gradients.",
            "TP 在每个 micro-batch 的每一层都要通信，而 DP 每个训练步只通信一次："
            "在显存允许的范围内尽量增大 DP，TP 够用即可。"
            "TP 组传递激活值及其梯度，应放在节点内。"
            "DP 组由持有相同切片的 rank 组成，对该切片的梯度取平均。",
        ),
        ("dp", "tp"),
        (BEST_LAYOUT,),
    ),
    "dp+pp": GroupType(
        Text("DP + PP", "DP + PP"),
        Text(
            "PP sends only the activations at stage boundaries and their gradients, so DP + PP "
            "moves less data than DP + TP and works well over slow links. "
            "The price is the bubble, which interleaving and zero-bubble schedules cut, and uneven "
            "stages. A rank keeps several micro-batches in flight, so PP often goes with "
            "activation checkpointing. Each DP group lies within one stage and averages the "
            "gradients of its layers.",
            "PP 只在阶段边界传递激活值及其梯度，因此 DP + PP 的通信量小于 DP + TP，适合较慢的链路。"
            "代价是气泡（交错调度和零气泡调度可以减少它），以及各阶段负载不均。"
            "每个 rank 会同时保留多个 micro-batch，所以 PP 常与激活重计算一起使用。"
            "每个 DP 组位于同一阶段内，对该阶段各层的梯度取平均。",
        ),
        ("dp", "pp"),
        (BEST_LAYOUT, ZERO_BUBBLE, PIPELINE_SOURCE),
    ),
    "dp+tp+pp": GroupType(
        Text("DP + TP + PP", "DP + TP + PP"),
        Text(
            "Needed when neither TP within a node (usually at most 8) nor PP alone is enough, for "
            "example for GPT-3 175B (tp 8 and pp 8, arXiv:2205.05198). "
            "TP cuts every layer inside a node and carries activations and their gradients; PP "
            "cuts the model by layers and passes activations and gradients between stages; DP "
            "replicates the whole and averages gradients once per step. "
            "One copy of the model takes tp × pp GPUs when cp is 1; dp is the number of copies.",
            "当节点内的 TP（通常不超过 8）或 PP 单独使用都不够时，就需要三者结合，"
            "例如 GPT-3 175B（tp 8、pp 8，arXiv:2205.05198）。"
            "TP 在节点内切分每一层，传递激活值及其梯度；PP 按层切分模型，"
            "在阶段之间传递激活值和梯度；DP 复制整个模型，每个训练步对梯度取一次平均。"
            "当 cp 为 1 时，一份模型占用 tp × pp 个 GPU，dp 就是模型的份数。",
        ),
        ("dp", "tp", "pp"),
        (MEGATRON_SETUP, MEGATRON_INIT, PYTORCH_FSDP),
    ),
    "cp+dp": GroupType(
        Text("CP + DP", "CP + DP"),
        Text(
            "CP cuts the sequence and DP deals out the samples: the ranks of one CP group work on "
            "chunks of the same samples. Weights are replicated over CP as well as DP, and each "
            "rank runs the feed-forward part on its own tokens, without CP communication. "
            "K and V travel through the CP group in every attention layer. "
            "Gradients are reduced over dp-cp once per step; a larger cp makes dp smaller, while "
            "dp-cp keeps its size.",
            "CP 切分序列，DP 分配样本：同一个 CP 组的 rank 处理同一批样本的不同块。"
            "权重在 CP 和 DP 上都是复制的，每个 rank 用自己的 token 计算前馈部分，不需要 CP 通信。"
            "在每个注意力层，K 和 V 在 CP 组内传递。"
            "梯度每个训练步在 dp-cp 组内归约一次；增大 cp 会使 dp 变小，而 dp-cp 的大小不变。",
        ),
        ("cp", "dp"),
        CP_READING,
    ),
    "cp+dp+tp": GroupType(
        Text("CP + DP + TP", "CP + DP + TP"),
        Text(
            "TP cuts the matrices, CP cuts the sequence, and DP deals out the samples. "
            "The TP group carries activations and their gradients, the CP group carries the K and "
            "V of the heads that its ranks hold, and dp-cp reduces the gradients of each slice "
            "once per step. In Megatron's default order TP and CP take neighbouring ranks: keep "
            "tp × cp inside the NVLink domain if you can.",
            "TP 切分矩阵，CP 切分序列，DP 分配样本。"
            "TP 组传递激活值及其梯度，CP 组传递组内 rank 所持注意力头的 K 和 V，"
            "dp-cp 组每个训练步对各切片的梯度归约一次。"
            "在 Megatron 的默认顺序下，TP 和 CP 占用相邻的 rank：尽量让 tp × cp 不超出 NVLink 域。",
        ),
        ("cp", "dp", "tp"),
        CP_READING,
    ),
    "cp+dp+pp": GroupType(
        Text("CP + DP + PP", "CP + DP + PP"),
        Text(
            "PP cuts the model by layers, CP cuts the sequence, and DP deals out the samples. "
            "Each rank passes the activations of its own chunks to the next stage and gets their "
            "gradients back, so what it sends there is 1 / cp of the sequence. "
            "Inside a stage K and V travel through the CP group, and once per step the gradients "
            "of the stage are reduced over dp-cp.",
            "PP 按层切分模型，CP 切分序列，DP 分配样本。"
            "每个 rank 把自己那几块的激活值传给下一阶段，再收回其梯度，"
            "因此传递的只是序列的 1 / cp。"
            "在同一阶段内，K 和 V 在 CP 组内传递；每个训练步，该阶段的梯度在 dp-cp 组内归约一次。",
        ),
        ("cp", "dp", "pp"),
        CP_READING,
    ),
    "cp+dp+tp+pp": GroupType(
        Text("CP + DP + TP + PP", "CP + DP + TP + PP"),
        Text(
            "All four together, for very large models on long sequences. "
            "TP groups carry activations and their gradients in every layer, CP groups carry K and "
            "V in every attention layer, PP groups pass activations and gradients between stages, "
            "and dp-cp reduces gradients once per step. "
            "One copy of the model at work takes tp × cp × pp GPUs, and dp is how many copies "
            "share the batch. In Megatron's default order TP is innermost, then CP, DP and PP, so "
            "the heaviest traffic stays between the nearest ranks.",
            "四种并行一起使用，适合长序列上的超大模型。"
            "TP 组在每一层传递激活值及其梯度，CP 组在每个注意力层传递 K 和 V，"
            "PP 组在阶段之间传递激活值和梯度，dp-cp 组每个训练步对梯度归约一次。"
            "一份正在运行的模型占用 tp × cp × pp 个 GPU，dp 就是分担 batch 的份数。"
            "在 Megatron 的默认顺序下，最内层是 TP，往外依次是 CP、DP 和 PP，"
            "因此最重的通信发生在最近的 rank 之间。",
        ),
        ("cp", "dp", "tp", "pp"),
        CP_READING,
    ),
    "cp+tp": GroupType(
        Text("CP + TP", "CP + TP"),
        Text(
            "TP cuts the matrices and the attention heads, CP cuts the sequence. "
            "The TP group carries activations and their gradients in every layer; the CP group "
            "carries the K and V of the heads that its ranks hold. "
            "In Megatron's default order tp × cp consecutive ranks form one such block; when it is "
            "larger than the NVLink domain, the CP ring leaves it. "
            "Weights are replicated over CP, so gradients are reduced over dp-cp even when dp is "
            "1.",
            "TP 切分矩阵和注意力头，CP 切分序列。"
            "TP 组在每一层传递激活值及其梯度；CP 组传递组内 rank 所持注意力头的 K 和 V。"
            "在 Megatron 的默认顺序下，连续的 tp × cp 个 rank 构成这样的一块；"
            "当它超出 NVLink 域时，CP 的环会跨出该域。"
            "权重在 CP 上是复制的，因此即使 dp 为 1，梯度也要在 dp-cp 组内归约。",
        ),
        ("cp", "tp"),
        CP_READING,
    ),
    "cp+pp": GroupType(
        Text("CP + PP", "CP + PP"),
        Text(
            "PP cuts the model by layers, CP cuts the sequence. "
            "Every stage has its own CP groups, in which K and V travel. "
            "A PP group joins ranks with the same CP coordinate: each passes the activations of "
            "its own chunks, 1 / cp of the sequence, to the next stage and gets their gradients "
            "back. The weights of a stage are replicated over CP, so gradients are reduced over "
            "dp-cp even when dp is 1.",
            "PP 按层切分模型，CP 切分序列。"
            "每个阶段都有自己的 CP 组，K 和 V 在其中传递。"
            "PP 组由 CP 坐标相同的 rank 组成：每个 rank 把自己那几块（序列的 1 / cp）的激活值"
            "传给下一阶段，再收回其梯度。"
            "同一阶段的权重在 CP 上是复制的，因此即使 dp 为 1，梯度也要在 dp-cp 组内归约。",
        ),
        ("cp", "pp"),
        CP_READING,
    ),
    "cp+tp+pp": GroupType(
        Text("CP + TP + PP", "CP + TP + PP"),
        Text(
            "PP cuts the model by layers, TP cuts the matrices of each layer, and CP cuts the "
            "sequence: tp × cp × pp GPUs run one copy of the model. "
            "The TP group carries activations and their gradients in every layer, the CP group "
            "carries K and V in every attention layer, and the PP group passes activations and "
            "gradients between stages. TP needs the fastest links, then CP; PP does with slow "
            "ones. Weights are replicated over CP, so gradients are reduced over dp-cp even when "
            "dp is 1.",
            "PP 按层切分模型，TP 切分每层的矩阵，CP 切分序列：tp × cp × pp 个 GPU 运行一份模型。"
            "TP 组在每一层传递激活值及其梯度，CP 组在每个注意力层传递 K 和 V，"
            "PP 组在阶段之间传递激活值和梯度。"
            "TP 最需要快速链路，其次是 CP；PP 用较慢的链路也可以。"
            "权重在 CP 上是复制的，因此即使 dp 为 1，梯度也要在 dp-cp 组内归约。",
        ),
        ("cp", "tp", "pp"),
        CP_READING,
    ),
    "ep": GroupType(
        EP_TITLE,
        Text(
            "The experts of every MoE layer are dealt out over the ranks of an EP group. A router "
            "picks a few experts for each token; one all-to-all takes tokens to their experts, "
            "another brings the results back, and the backward pass repeats both. "
            "Experts have a grid of their own, so ep is bounded by the number of experts and by "
            "the ranks of a stage, not by dp. "
            "DeepSeek-V3 was trained with ep 64 over 8 nodes, each token going to at most 4 nodes.",
            "每个 MoE 层的专家分配给一个 EP 组的各个 rank。"
            "路由器为每个 token 选出少数几个专家：一次 all-to-all 把 token 送到专家所在处，"
            "另一次把结果送回，反向时两者再各做一次。"
            "专家有自己的网格，因此 ep 受专家数和一个阶段的 rank 数限制，而不受 dp 限制。"
            "DeepSeek-V3 训练时 ep 为 64，跨 8 个节点，每个 token 最多发往 4 个节点。",
        ),
        ("ep",),
        (PARALLEL_FOLDING, DEEPSEEK_V3, MOE_DOCS),
    ),
    "ep+edp": GroupType(
        Text("EP + ETP + EDP: the expert grid", "EP + ETP + EDP：专家网格"),
        Text(
            "Three axes share out the ranks of a stage for the experts: etp cuts the matrices of "
            "each expert, ep deals out the experts, and edp counts the copies of each, which is "
            "what remains: edp = world / (etp × ep × pp). "
            "In every MoE layer EP carries tokens by all-to-all; when etp is above 1, ETP adds an "
            "all-gather before the experts and a reduce-scatter after them. "
            "EDP reduces the gradients of the experts once per step. "
            "In Megatron etp varies fastest, then ep, then edp: with etp 1, neighbouring ranks "
            "form an EP group.",
            "三个轴为专家划分一个阶段的 rank：etp 切分每个专家的矩阵，ep 分配专家，"
            "edp 是每个专家的份数，即剩下的部分：edp = world /（etp × ep × pp）。"
            "在每个 MoE 层，EP 用 all-to-all 传递 token；当 etp 大于 1 时，"
            "ETP 在专家计算前增加一次 all-gather，计算后增加一次 reduce-scatter。"
            "EDP 每个训练步对专家的梯度归约一次。"
            "在 Megatron 中，etp 变化最快，其次是 ep，再次是 edp：当 etp 为 1 时，"
            "相邻的 rank 组成 EP 组。",
        ),
        ("ep", "etp", "edp"),
        (PARALLEL_FOLDING, MOE_DOCS),
    ),
    "moe": GroupType(
        Text("Dense and expert grids (MoE)", "稠密网格与专家网格（MoE）"),
        Text(
            "Two grids number the same ranks: tp × cp × dp × pp for dense layers and "
            "etp × ep × edp × pp for experts, each product being the world. "
            "They share only pp, so inside a stage tp × cp × dp = etp × ep × edp, and ep can "
            "exceed dp. "
            "In Megatron's default order cp and ep meet, since both are made of neighbouring ranks "
            "of a stage: one EP group may hold whole CP groups. "
            "In dense layers TP carries activations and their gradients and CP carries K and V; in "
            "MoE layers EP carries tokens. "
            "Dense gradients are reduced over dp-cp, those of experts over edp.",
            "两个网格为同一批 rank 编号：稠密层用 tp × cp × dp × pp，专家用 etp × ep × edp × pp，"
            "两个乘积都等于 world。"
            "二者只共用 pp，所以在一个阶段内 tp × cp × dp = etp × ep × edp，ep 可以大于 dp。"
            "在 Megatron 的默认顺序下，cp 与 ep 会相遇，因为两者都由同一阶段内相邻的 rank 组成："
            "一个 EP 组可以包含若干个 CP 组。"
            "在稠密层，TP 传递激活值及其梯度，CP 传递 K 和 V；在 MoE 层，EP 传递 token。"
            "稠密部分的梯度在 dp-cp 上归约，专家的梯度在 edp 上归约。",
        ),
        ("tp", "cp", "dp", "pp", "etp", "ep", "edp"),
        (PARALLEL_FOLDING, DEEPSEEK_V3, MOE_DOCS),
    ),
    "model": GroupType(
        Text("Model parallel and embeddings", "模型并行与嵌入"),
        Text(
            "Three groups that follow the pipelines of the dense grid. "
            "An mp group joins tp and pp and holds one copy of the dense model; without a "
            "distributed optimizer, the gradient norm is found over it. "
            "An embd group holds the first and the last stage of a pipeline, which may share the "
            "word embedding and then sum its gradients once per step; a pos-embd group holds the "
            "first stage only. Ranks of the stages between are in an mp group, but in neither of "
            "the other two.",
            "这三种组都沿着稠密网格的流水线。"
            "mp 组把 tp 和 pp 合在一起，持有一份稠密模型；不使用分布式优化器时，在组内求梯度范数。"
            "embd 组包含一条流水线的首尾两个阶段，两者若共用词嵌入，则每个训练步把它的梯度相加；"
            "pos-embd 组只包含首个阶段。"
            "中间各阶段的 rank 属于 mp 组，但不属于另外两种组。",
        ),
        ("mp", "embd", "pos-embd"),
        (MEGATRON_SETUP, MEGATRON_INIT, PIPELINE_SOURCE),
    ),
    "framework": GroupType(
        Text("The framework's own groups", "所选框架自己的组"),
        Text(
            "The panels show the axes of the chosen framework under its own names, and the groups "
            "that it derives from them. "
            "Frameworks differ in which axis varies fastest and in what they call it, so one name "
            "can stand for different ranks: compare the ranks of the groups, not their names.",
            "各面板按所选框架自己的名称显示它的轴，以及由这些轴得到的组。"
            "各框架中变化最快的轴不同，叫法也不同，同一个名称可能代表不同的 rank："
            "应比较组内的 rank，而不是名称。",
        ),
        (),
        (FROM_DP_TO_FSDP, PYTORCH_FSDP, MEGATRON_SETUP),
    ),
    "chosen": GroupType(
        Text("Only the groups chosen below", "只画下面选择的组"),
        Text(
            "Pick any of the process groups that Megatron creates for this layout in the list "
            "'More groups', and only those are drawn. "
            "The list covers the dense and the expert grid, joint groups such as tp-dp-cp, and "
            "what is cut out of others: embeddings, optimizer instances, levels of context "
            "parallelism.",
            "在“更多组”列表中任选 Megatron 为该布局创建的进程组，只画选中的组。"
            "列表包括稠密网格和专家网格的组、tp-dp-cp 这样的联合组，以及从其他组切出的组："
            "嵌入、优化器实例、上下文并行的各级。",
        ),
        (),
        (MEGATRON_SETUP, MEGATRON_INIT),
    ),
}
