# ruff: noqa: RUF001
"""Every sentence the page shows, in English and Chinese, as data.

A text holds both languages, and the language picks one:

>>> TYPES["dp"].title["en"]
'Data parallel (DP)'

Texts are plain: no HTML, no Markdown. *Rank* always means the global rank; ranks and groups count
from 0. Products have the multiplication sign: a pair of asterisks would turn into italics.
"""

from __future__ import annotations

from dataclasses import dataclass

# --- Languages and shapes -------------------------------------------------------------------------

LANGUAGES: dict[str, str] = {"en": "English", "zh": "中文"}


@dataclass(frozen=True)
class Text:
    """One text in every language of LANGUAGES; `text["zh"]` picks one."""

    en: str
    zh: str

    def __getitem__(self, language: str) -> str:
        if language not in LANGUAGES:
            raise KeyError(f"no text in language {language!r}: choose one of {list(LANGUAGES)}")
        text: str = getattr(self, language)
        return text


@dataclass(frozen=True)
class Link:
    """A page to read, labelled by what it is."""

    url: str
    title: Text


@dataclass(frozen=True)
class GroupType:
    """A choice of the group type dropdown: the kinds whose panels it shows, in this order."""

    title: Text
    body: Text
    kinds: tuple[str, ...]
    reading: tuple[Link, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of process group: what one such group carries, when, and over which links."""

    title: Text
    short: str
    body: Text


# --- Reading lists --------------------------------------------------------------------------------

PARAMETER_SERVER = Link(
    "https://www.cs.cmu.edu/~muli/file/ps.pdf",
    Text("Parameter server (Li et al., 2013)", "参数服务器论文（Li 等，2013）"),
)
FROM_DP_TO_FSDP = Link(
    "https://zhuanlan.zhihu.com/p/485208899",
    Text("Zhihu: from DP to fully sharded data parallel (FSDP)", "知乎：从 DP 到 FSDP"),
)
DATA_PARALLEL_1 = Link(
    "https://zhuanlan.zhihu.com/p/617133971",
    Text("Zhihu: data parallelism, part 1 (DP and DDP)", "知乎：数据并行上篇（DP 与 DDP）"),
)
DATA_PARALLEL_2 = Link(
    "https://zhuanlan.zhihu.com/p/618865052",
    Text("Zhihu: data parallelism, part 2 (ZeRO)", "知乎：数据并行下篇（ZeRO）"),
)
MEGATRON_2019 = Link(
    "https://arxiv.org/pdf/1909.08053.pdf",
    Text("Megatron-LM (Shoeybi et al., 2019)", "Megatron-LM 论文（2019）"),
)
MEGATRON_SURVEY = Link(
    "https://strint.notion.site/Megatron-LM-86381cfe51184b9c888be10ee82f3812",
    Text("Notion: how Megatron-LM runs distributed", "Notion：Megatron-LM 分布式执行调研"),
)
TENSOR_PARALLEL = Link(
    "https://zhuanlan.zhihu.com/p/622212228",
    Text("Zhihu: tensor parallelism in Megatron-LM", "知乎：Megatron-LM 的张量模型并行"),
)
MEGATRON_2021 = Link(
    "https://arxiv.org/pdf/2104.04473.pdf",
    Text(
        "Megatron-LM on GPU clusters (Narayanan et al., 2021)",
        "Megatron-LM GPU 集群训练论文（2021）",
    ),
)
PIPELINE_SOURCE = Link(
    "https://zhuanlan.zhihu.com/p/678724323",
    Text(
        "Zhihu: pipeline parallelism in Megatron-LM's source code",
        "知乎：Megatron-LM 流水线并行源码解读",
    ),
)
PIPELINE_GPIPE = Link(
    "https://zhuanlan.zhihu.com/p/613196255",
    Text("Zhihu: pipeline parallelism, with GPipe", "知乎：以 GPipe 为例讲流水线并行"),
)
MEGATRON_SETUP = Link(
    "https://juejin.cn/post/7063030243224879140",
    Text(
        "Juejin: how Megatron's source code sets up its parallel groups",
        "掘金：Megatron 源码如何设置各种并行",
    ),
)
ZERO_BUBBLE = Link(
    "https://mp.weixin.qq.com/s/PXjYm9dN8C9B8svMQ7nOvw",
    Text(
        "WeChat: nearly zero pipeline bubbles (notes on ZB-H1)",
        "微信公众号：把流水线气泡几乎降到零（ZB-H1 解读）",
    ),
)
CONTEXT_PARALLEL_DOCS = Link(
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/context_parallel.html",
    Text("Megatron Core documentation: context parallelism", "Megatron Core 文档：上下文并行"),
)
ULYSSES_AND_RING = Link(
    "https://zhuanlan.zhihu.com/p/689067888",
    Text(
        "Zhihu: DeepSpeed Ulysses and Ring Attention",
        "知乎：DeepSpeed Ulysses 与 Ring Attention",
    ),
)
RING_AND_FLASH = Link(
    "https://zhuanlan.zhihu.com/p/683714620",
    Text(
        "Zhihu: ring attention with flash attention",
        "知乎：Ring Attention 与 Flash Attention 的结合",
    ),
)
CONTEXT_PARALLEL_ANSWER = Link(
    "https://www.zhihu.com/question/637961859/answer/3349322621",
    Text(
        "Zhihu: an answer on how CP works in Megatron-LM",
        "知乎：关于 Megatron-LM 中 CP 工作原理的回答",
    ),
)
LIGHTSEQ = Link(
    "https://mp.weixin.qq.com/s/u4gG1WZ73mgH9mEKQQCRww",
    Text(
        "WeChat: notes on LightSeq (long sequences)",
        "微信公众号：LightSeq 论文解读（长文本训练）",
    ),
)
BEST_LAYOUT = Link(
    "https://mp.weixin.qq.com/s/D-14J482SFQf-zh-EFa-1w",
    Text(
        "WeChat: finding the best parallel layout by measuring many",
        "微信公众号：通过打表寻找最佳并行配置",
    ),
)
MEGATRON_INIT = Link(
    "https://zhuanlan.zhihu.com/p/629121480",
    Text(
        "Zhihu: Megatron's source code, distributed initialization",
        "知乎：Megatron 源码解读，分布式环境初始化",
    ),
)
PYTORCH_FSDP = Link(
    "https://zhuanlan.zhihu.com/p/670374745",
    Text("Zhihu: large models with PyTorch FSDP", "知乎：用 PyTorch FSDP 加速大模型训练"),
)

CP_READING: tuple[Link, ...] = (
    CONTEXT_PARALLEL_DOCS,
    ULYSSES_AND_RING,
    RING_AND_FLASH,
    CONTEXT_PARALLEL_ANSWER,
    LIGHTSEQ,
)

# --- Group types: the choices of the dropdown -----------------------------------------------------

DP_TITLE = Text("Data parallel (DP)", "数据并行（DP）")
TP_TITLE = Text("Tensor model parallel (TP)", "张量模型并行（TP）")
PP_TITLE = Text("Pipeline parallel (PP)", "流水线并行（PP）")
CP_TITLE = Text("Context parallel (CP)", "上下文并行（CP）")

TYPES: dict[str, GroupType] = {
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
            "example in pre-training at 34B parameters and above. "
            "TP cuts every layer inside a node and carries activations and their gradients; PP "
            "cuts the model by layers and passes activations and gradients between stages; DP "
            "replicates the whole and averages gradients once per step. "
            "One copy of the model takes tp × pp GPUs when cp is 1; dp is the number of copies.",
            "当节点内的 TP（通常不超过 8）或 PP 单独使用都不够时，就需要三者结合，"
            "例如 34B 及以上参数的预训练。"
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
}

# --- Kinds of process group: the panels -----------------------------------------------------------

KINDS: dict[str, Kind] = {
    "tp": Kind(
        TP_TITLE,
        "TP",
        Text(
            "All-reduces activations in the forward pass and their gradients in the backward pass, "
            "in every layer of every micro-batch (all-gather and reduce-scatter with sequence "
            "parallelism). It should live inside one node, on NVLink.",
            "在每个 micro-batch 的每一层，前向对激活值做 all-reduce，反向对其梯度做 all-reduce"
            "（开启序列并行时为 all-gather 与 reduce-scatter）。应放在同一节点内，走 NVLink。",
        ),
    ),
    "cp": Kind(
        CP_TITLE,
        "CP",
        Text(
            "Carries K and V between the chunks of a sequence in every attention layer, and their "
            "gradients in the backward pass, by ring p2p, all-gather or all-to-all. "
            "It should stay on NVLink beside TP; when tp × cp is larger than the NVLink domain, "
            "the ring leaves it.",
            "在每个注意力层，通过环形 p2p、all-gather 或 all-to-all 在序列的各块之间传递 K 和 V，"
            "反向时还传递它们的梯度。"
            "最好与 TP 一起留在 NVLink 上；当 tp × cp 超出 NVLink 域时，环会跨出该域。",
        ),
    ),
    "dp": Kind(
        DP_TITLE,
        "DP",
        Text(
            "Says who reads which samples: the ranks of one DP group read different samples, and "
            "cp is not counted. When cp is 1 they also reduce their gradients together, once per "
            "step; otherwise the dp-cp group does. "
            "This is rare enough, and overlaps with backward well enough, to cross nodes.",
            "决定谁读取哪些样本：同一个 DP 组的 rank 读取不同的样本，cp 不计入其中。"
            "当 cp 为 1 时，它们还在每个训练步一起归约一次梯度；否则由 dp-cp 组完成。"
            "这种通信次数少，又能与反向计算重叠，可以跨节点。",
        ),
    ),
    "dp-cp": Kind(
        Text("Data and context parallel (DP-CP)", "数据与上下文并行（DP-CP）"),
        "DP-CP",
        Text(
            "Its ranks reduce gradients together, once per step: weights are replicated over "
            "cp as well as dp, so the two are joined here. "
            "Samples are still dealt out over dp alone: ranks with the same dp coordinate share "
            "theirs. The reduction overlaps with backward and can cross nodes.",
            "组内的 rank 每个训练步一起归约一次梯度：权重在 cp 和 dp 上都是复制的，"
            "所以这里把两者合在一起。"
            "样本仍只按 dp 分配：dp 坐标相同的 rank 使用同样的样本。"
            "归约可以与反向计算重叠，可以跨节点。",
        ),
    ),
    "pp": Kind(
        PP_TITLE,
        "PP",
        Text(
            "Passes activations forward and gradients back for every micro-batch, point to point "
            "between neighbouring stages. One process group is one whole pipeline, with one rank "
            "of every stage; a stage is all the ranks with the same pipeline coordinate. "
            "It sends little and can cross nodes over slower links.",
            "对每个 micro-batch，在相邻阶段之间点对点地前向传递激活值、反向传回梯度。"
            "一个进程组就是一条完整的流水线，每个阶段各有一个 rank；"
            "阶段（stage）指流水线坐标相同的所有 rank。"
            "通信量小，可以经较慢的链路跨节点。",
        ),
    ),
}

# --- How to read the pictures ---------------------------------------------------------------------

HOW_TO_READ = Text(
    "One cell is one GPU; its number is the global rank, counted from 0. A frame is a node: N0 at "
    "the left means that its row starts with node 0. "
    "Inside one panel, the same colour and the same small label, such as tp3, mean the same "
    "process group; group indices count from 0 too. "
    "Colours repeat after 11 groups, so the index decides, not the colour; where a cell is too "
    "small to print it, pointing at the cell tells it. "
    "A colour in one panel means nothing in another. "
    "Hover over or focus a GPU to light up its group in every panel; click or tap to pin it, and "
    "press Esc, or click it again, to let go.",
    "一个格子是一个 GPU，上面的数字是从 0 开始的全局 rank。"
    "一个外框是一个节点：左侧的 N0 表示该行从节点 0 开始。"
    "在同一面板内，颜色相同且小标签（如 tp3）相同，表示属于同一个进程组；组的编号也从 0 开始。"
    "超过 11 个组后颜色会重复，因此以编号为准，而不是颜色；格子太小印不下编号时，指向它即可看到。"
    "一个面板中的颜色与另一个面板中的颜色无关。"
    "悬停或聚焦一个 GPU，会在所有面板中点亮它所在的组；单击或轻触可固定，按 Esc 或再次单击取消。",
)

HOW_TO_READ_LARGE = Text(
    "Above 256 GPUs the main picture is the logical mesh: rows are pipeline stages, each in its "
    "own shade of grey, and columns are data parallel replicas. "
    "Inside a block, tp runs across and cp runs down. "
    "Only the groups of one chosen rank are coloured, with one colour per kind. "
    "The physical view below shows in the same colours where those GPUs are, with one tile per "
    "node. Pictures that would be too long go on in the next band, and the labels say where.",
    "超过 256 个 GPU 时，主图是逻辑网格：每行是一个流水线阶段，各用一种深浅的灰色；"
    "每列是一个数据并行副本。"
    "在每一块内，tp 横向排列，cp 纵向排列。"
    "只有所选的那一个 rank 的各个组会着色，每种组一种颜色。"
    "下方的物理视图用同样的颜色标出这些 GPU 的位置，每个节点一块。"
    "太长的图会折到下一段，由标签注明各段的范围。",
)

# --- Controls -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Control:
    """An input of the page: what it is called, and what it does in one sentence."""

    label: Text
    help: Text


CONTROLS: dict[str, Control] = {
    "group_type": Control(
        Text("Parallel group type", "并行组类型"),
        Text("Which kinds of group to draw.", "要画哪几种组。"),
    ),
    "preset": Control(
        Text("Start from", "从现成布局开始"),
        Text(
            "Sets every control to a layout that somebody published.",
            "把所有控件设为一个已公开的布局。",
        ),
    ),
    "nodes": Control(
        Text("Nodes", "节点数"),
        Text("Machines in the job.", "任务中的机器数。"),
    ),
    "gpus_per_node": Control(
        Text("GPUs per node", "每节点 GPU 数"),
        Text(
            "GPUs of one machine or NVLink domain; choose or type.",
            "一台机器或一个 NVLink 域内的 GPU 数；可选择或输入。",
        ),
    ),
    "tp": Control(
        Text("Tensor parallel size (TP)", "张量并行大小（TP）"),
        Text("Ranks that share every layer's matrices.", "共同切分每一层矩阵的 rank 数。"),
    ),
    "pp": Control(
        Text("Pipeline parallel size (PP)", "流水线并行大小（PP）"),
        Text("Stages that the layers are cut into.", "把所有层切成的阶段数。"),
    ),
    "cp": Control(
        Text("Context parallel size (CP)", "上下文并行大小（CP）"),
        Text("Ranks that share one sequence.", "共同处理一条序列的 rank 数。"),
    ),
    "order": Control(
        Text("Rank order, fastest first", "rank 编号顺序（变化最快的在前）"),
        Text(
            "Which axis varies fastest as ranks count up; the second is Megatron's "
            "--use-tp-pp-dp-mapping.",
            "rank 递增时，哪个轴变化得最快；第二项即 Megatron 的 --use-tp-pp-dp-mapping。",
        ),
    ),
    "dp_kind": Control(
        Text("Data parallel panel shows", "数据并行面板显示"),
        Text(
            "With context parallelism two groups answer to the name of data parallel.",
            "有上下文并行时，两种组都可称为数据并行组。",
        ),
    ),
    "language": Control(
        Text("Language", "语言"),
        Text("Language of this page.", "本页面的语言。"),
    ),
}

ORDERS: dict[str, Text] = {
    "tp-cp-dp-pp": Text("tp-cp-dp-pp (Megatron's default)", "tp-cp-dp-pp（Megatron 默认）"),
    "tp-cp-pp-dp": Text(
        "tp-cp-pp-dp (pp before dp, Llama 3)", "tp-cp-pp-dp（pp 先于 dp，Llama 3）"
    ),
}

DP_KINDS: dict[str, Text] = {
    "dp": Text("dp: who reads which samples", "dp：谁读取哪些样本"),
    "dp-cp": Text("dp-cp: who reduces gradients together", "dp-cp：谁一起归约梯度"),
}

PRESET_NAMES: dict[str, Text] = {
    "playground-16": Text("Playground, 16 GPUs", "Playground，16 个 GPU"),
    "bloom-176b": Text("BLOOM 176B, 384 GPUs", "BLOOM 176B，384 个 GPU"),
    "llama3-405b": Text("Llama 3 405B, 16,384 GPUs", "Llama 3 405B，16,384 个 GPU"),
}

# --- Words of the page ----------------------------------------------------------------------------

PAGE: dict[str, Text] = {
    "title": Text("Parallel group playground", "并行组演示"),
    "subtitle": Text(
        "Which GPUs of a training job form which process groups.",
        "训练任务中，哪些 GPU 组成哪些进程组。",
    ),
    "controls": Text("Layout controls", "布局控件"),
    "sources": Text("Sources", "来源"),
    "world": Text("World size", "总 GPU 数"),
    "dp_size": Text("DP size", "DP 大小"),
    "mesh": Text("Mesh", "网格"),
    "derived": Text(
        "{world} / (tp {tp} × pp {pp} × cp {cp})", "{world} /（tp {tp} × pp {pp} × cp {cp}）"
    ),
    "try": Text("Try", "可改为"),
    "still_shown": Text(
        "The picture still shows the last layout that works.", "图中仍是上一个可行的布局。"
    ),
    "reading": Text("Reading (mostly in Chinese)", "延伸阅读"),
    "how_to_read": Text("How to read the picture", "如何看图"),
    "logical": Text("Logical mesh", "逻辑网格"),
    "physical": Text("Physical view: one tile per node", "物理视图：每个节点一块"),
    "cp_hidden": Text(
        "cp is {cp}, so gradients are reduced over dp-cp; a CP type shows that group.",
        "cp 为 {cp}，梯度在 dp-cp 上归约；选择含 CP 的类型可查看该组。",
    ),
    "group_table": Text("Group table", "组列表"),
    "copy": Text("Copy the list", "复制列表"),
    "copied": Text("Copied", "已复制"),
    "list": Text("The groups as text", "文本形式的组列表"),
    "column_kind": Text("Kind", "种类"),
    "column_group": Text("Group", "组"),
    "column_ranks": Text("Ranks", "rank"),
    "column_nodes": Text("Nodes spanned", "跨节点数"),
    "more_rows": Text(
        "Only the first {shown} groups of each kind are listed here, of up to {total}; "
        "the download has them all.",
        "这里每种只列出前 {shown} 个组，最多的一种共有 {total} 个；下载文件包含全部。",
    ),
    "download_picture": Text("Picture as {format}", "图片（{format}）"),
    "download_groups": Text("All groups as {format}", "全部组（{format}）"),
    "stays": Text("None leaves its node.", "没有组跨出节点。"),
    "leaves_all": Text("All leave their node: {nodes} each.", "全部跨出节点：每组跨 {nodes}。"),
    "leaves_some": Text(
        "{leaving} of {total} leave their node, over up to {nodes}.",
        "{total} 个组中有 {leaving} 个跨出节点，最多跨 {nodes}。",
    ),
    "picture_of": Text(
        "{kind}: {groups} of {ranks} on {nodes}. {first}",
        "{kind}：{groups}，每组 {ranks}，分布在 {nodes}。{first}",
    ),
    "groups_of": Text("{groups} of {ranks}.", "{groups}，每组 {ranks}。"),
    "first_group": Text("Group 0: ranks {ranks}.", "组 0：rank {ranks}。"),
    "overview_of": Text(
        "{view}: {gpus} in {nodes}; the groups of rank {rank} are marked. {groups}",
        "{view}：{nodes}，共 {gpus}；标出了 rank {rank} 的各个组。{groups}",
    ),
    "mark_of": Text("{kind} group {index}: {ranks}.", "{kind} 组 {index}：{ranks}。"),
    # Of the card, filled in by the page's own script.
    "idle": Text(
        "Point at a GPU to see its groups; click to pin it.",
        "指向一个 GPU 查看它所在的组；单击固定。",
    ),
    "card_gpu": Text("GPU {rank}", "GPU {rank}"),
    "card_place": Text("node {node}, local GPU {local}", "节点 {node}，节点内 GPU {local}"),
    "card_group": Text("{kind} group {index}", "{kind} 组 {index}"),
    "card_count": Text("of {count} ranks:", "共 {count} 个 rank："),
    "card_alone": Text("of 1 rank:", "共 1 个 rank："),
    "card_pinned": Text("pinned, Esc lets go", "已固定，按 Esc 取消"),
    "card_gone": Text(
        "GPU {rank} is pinned, but this layout has no such GPU.",
        "固定的 GPU {rank} 不在当前布局中。",
    ),
}

NOUNS: dict[str, tuple[str, str, str]] = {
    "gpu": ("GPU", "GPUs", "个 GPU"),
    "group": ("group", "groups", "个组"),
    "rank": ("rank", "ranks", "个 rank"),
    "node": ("node", "nodes", "个节点"),
}
"""A noun in English, one and many, and with its counter in Chinese."""


def counted(number: int, noun: str, language: str) -> str:
    """A number with its noun.

    >>> counted(1, "group", "en"), counted(1024, "group", "en"), counted(2, "node", "zh")
    ('1 group', '1,024 groups', '2 个节点')
    """
    one, many, chinese = NOUNS[noun]
    if language == "zh":
        return f"{number:,} {chinese}"
    return f"{number:,} {one if number == 1 else many}"


# --- Refusals -------------------------------------------------------------------------------------

REFUSALS: dict[str, Text] = {
    "does-not-divide": Text(
        "{sizes} = {product} does not divide {world} GPUs, so no whole DP size remains.",
        "{sizes} = {product} 不能整除 {world} 个 GPU，剩不下整数的 DP 大小。",
    ),
    "not-a-whole-number": Text(
        "{control} must be a whole number {span}, not {value}.",
        "{control} 必须是{span}的整数，而不是 {value}。",
    ),
    "out-of-range": Text(
        "{control} must be a whole number {span}, not {value}.",
        "{control} 必须是{span}的整数，而不是 {value}。",
    ),
    "too-many-ranks": Text(
        "{ranks} GPUs are more than the {limit} that can be drawn.",
        "{ranks} 个 GPU 超过了可绘制的上限 {limit} 个。",
    ),
    "too-many-axes": Text(
        "{axes} axes are more than {limit}.", "{axes} 个轴超过了上限 {limit} 个。"
    ),
    "not-a-choice": Text(
        "{value} is not a choice of {control}: choose {choices}.",
        "{control} 没有 {value} 这一项，可选：{choices}。",
    ),
    "no-such-rank": Text(
        "There is no rank {rank}: ranks go from {first} to {last}.",
        "没有 rank {rank}：rank 从 {first} 到 {last}。",
    ),
    "dp-does-not-fit": Text(
        "dp {dp} is not what remains: {world} / {product} = {remaining}.",
        "dp {dp} 与剩余不符：{world} / {product} = {remaining}。",
    ),
    "axis-not-in-order": Text(
        "{axis} has a size, but the order {order} does not name it.",
        "{axis} 给了大小，但顺序 {order} 中没有它。",
    ),
    "no-dp-in-order": Text(
        "{product} ranks do not fill {world} GPUs, and the order names no dp.",
        "{product} 个 rank 填不满 {world} 个 GPU，而顺序中没有 dp。",
    ),
    "repeated-axis": Text(
        "The axis {axis} is named twice in {value}.", "轴 {axis} 在 {value} 中出现了两次。"
    ),
    "unknown-axis": Text("There is no axis {value} in {mesh}.", "{mesh} 中没有轴 {value}。"),
    "bad-axis-name": Text("{value} is not an axis name.", "{value} 不是轴的名称。"),
    "bad-names": Text(
        "{value} is not axis names joined by dashes.", "{value} 不是用连字符连接的轴名。"
    ),
    "bad-mesh-text": Text("{value} is not an axis with its size.", "{value} 不是带大小的轴。"),
    "dp-and-edp-differ": Text(
        "dp {dp} and edp {edp} differ, and pp is not the last axis of the order.",
        "dp {dp} 与 edp {edp} 不同，而 pp 不是顺序中的最后一个轴。",
    ),
    "pipelines-differ": Text(
        "The order gives dense layers ({dense}) and experts ({expert}) different pipelines.",
        "这一顺序使稠密层（{dense}）与专家层（{expert}）的流水线不同。",
    ),
    "instances-do-not-divide": Text(
        "{instances} optimizer instances do not divide the {size} ranks of a {group} group.",
        "{instances} 个优化器实例不能整除 {group} 组的 {size} 个 rank。",
    ),
    "levels-do-not-multiply": Text(
        "The levels {levels} do not multiply to cp {cp}.", "各级 {levels} 的乘积不等于 cp {cp}。"
    ),
    "hybrid-with-pipeline": Text(
        "Hybrid context parallelism does not go with pp {pp}.",
        "混合上下文并行不能与 pp {pp} 一起使用。",
    ),
    "hybrid-needs-even": Text(
        "Hybrid context parallelism needs an even number of ranks, not dp × cp = {size}.",
        "混合上下文并行需要偶数个 rank，而 dp × cp = {size}。",
    ),
    "no-axes": Text("A mesh needs at least one axis.", "网格至少需要一个轴。"),
}
"""A refusal by the code of its LayoutError; the facts of the error fill in the names."""

SPANS: dict[str, Text] = {
    "up": Text("from {minimum} up", "不小于 {minimum} "),
    "range": Text("from {minimum} to {maximum}", "从 {minimum} 到 {maximum} "),
}
