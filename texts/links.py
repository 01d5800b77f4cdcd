# ruff: noqa: RUF001
"""Pages to read, each labelled by what it is."""

from __future__ import annotations

from .shapes import Link, Text

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
PARALLEL_FOLDING = Link(
    "https://arxiv.org/abs/2504.14960",
    Text("MoE Parallel Folding (Liu et al., 2025)", "MoE Parallel Folding 论文（2025）"),
)
DEEPSEEK_V3 = Link(
    "https://arxiv.org/abs/2412.19437",
    Text("DeepSeek-V3 technical report (2024)", "DeepSeek-V3 技术报告（2024）"),
)
MOE_DOCS = Link(
    "https://docs.nvidia.com/megatron-core/developer-guide/0.16.0/user-guide/features/moe.html",
    Text("Megatron Core documentation: mixture of experts", "Megatron Core 文档：混合专家（MoE）"),
)

CP_READING: tuple[Link, ...] = (
    CONTEXT_PARALLEL_DOCS,
    ULYSSES_AND_RING,
    RING_AND_FLASH,
    CONTEXT_PARALLEL_ANSWER,
    LIGHTSEQ,
)
