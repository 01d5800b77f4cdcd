# ruff: noqa: RUF001
"""What is to be known of a published layout, in Chinese, by the English note of its data."""

from __future__ import annotations

NOTES_ZH: dict[str, str] = {
    "Two nodes of eight were fixed; the sizes were sliders.": (
        "两个节点、每节点 8 个 GPU 是固定的；各并行大小由滑块设定。"
    ),
    "These runs have no data parallelism by design.": "这些运行有意不使用数据并行。",
    "The model is taken to be the 530B of the same paper's tables.": (
        "模型取自同一论文表格中的 530B。"
    ),
    **{
        f"One of three sizes that were timed; {nodes} of the cluster's 560 nodes. Read from "
        "quotations, not in the paper itself.": (
            f"实测的三种规模之一：集群 560 个节点中的 {nodes} 个。数据引自他人转述，未见原文。"
        )
        for nodes in (280, 350, 420)
    },
    "Moved to 24 nodes on 2022-07-04, with dp 4 then. 70 layers and both embeddings make six for "
    "each of 12 stages.": (
        "2022-07-04 迁移到 24 个节点，此后 dp 为 4。70 层加首尾两个嵌入，12 个阶段每个恰好 6 层。"
    ),
    "The first and the last stage hold one layer less: 9 x 8 - 2 = 70.": (
        "首尾两个阶段各少一层：9 × 8 - 2 = 70。"
    ),
    "No pipeline is named. Weights are fully sharded over the 124 ranks of one tensor parallel "
    "index.": "原文未提流水线。权重在同一张量并行位置的 124 个 rank 上完全分片。",
    "TPU v4 chips, four a host; tp is the paper's model axis. dp is 256 fully sharded times two "
    "pods; there is no pipeline. Inside a pod chips are linked directly, whatever their host.": (
        "TPU v4 芯片，每台主机 4 个；tp 即论文的 model 轴。dp 为 256 路完全分片乘以两个 pod；"
        "没有流水线。pod 内的芯片直接互连，与所在主机无关。"
    ),
    "Version 1 and the HTML copies print dp 4 in this row; only 8 makes 16,384 GPUs.": (
        "第 1 版和 HTML 副本在这一行印的是 dp 4；只有 8 才能得到 16,384 个 GPU。"
    ),
    "No dp is stated: 2048 / 16 for dense weights, 2 for experts. An ep group spans eight nodes.": (
        "原文未给出 dp：稠密权重为 2048 / 16，专家为 2。一个 ep 组跨 8 个节点。"
    ),
    "One model parallel group of 256 GPUs, not the whole job: any multiple of 32 nodes may "
    "train. Activations go to host memory too, which is not counted here.": (
        "这是一个 256 GPU 的模型并行组，而不是整个作业：32 个节点的任意倍数都可以训练。"
        "激活也会放到主机内存，此处未计入。"
    ),
    "Interleaved, but the number of chunks is not stated.": "使用交错调度，但未说明分成几块。",
    "etp is not stated, which is Megatron's etp = tp.": "未给出 etp，按 Megatron 即 etp = tp。",
    "The etp of this row is blank in the copy read; tp 8 would not fit, 1 does.": (
        "所读副本中这一行的 etp 为空；tp 8 放不下，1 可以。"
    ),
    "Four GPUs a tray; NVLink reaches 72 of them, over 18 trays.": (
        "每个托盘 4 个 GPU；NVLink 跨 18 个托盘连接 72 个。"
    ),
    "etp is not stated: tp would not fit, 1 does.": "未给出 etp：取 tp 放不下，取 1 可以。",
    "A recommendation, not a run.": "这是建议配置，而不是实际运行。",
    "A recommendation, not a run. etp is not stated: tp would not fit, 1 does.": (
        "这是建议配置，而不是实际运行。未给出 etp：取 tp 放不下，取 1 可以。"
    ),
}
