# ruff: noqa: RUF001
"""The inputs of the page: what each is called, what it does, what it offers."""

from __future__ import annotations

from .collectives import COLLECTIVES_CONTROLS
from .memory import MEMORY_CONTROLS
from .pipeline import PIPELINE_CONTROLS
from .run import RUN_CONTROLS
from .shapes import Control, Text
from .traffic import TRAFFIC_CONTROLS

CONTROLS: dict[str, Control] = {
    **COLLECTIVES_CONTROLS,
    **RUN_CONTROLS,
    "group_type": Control(
        Text("Parallel group type", "并行组类型"),
        Text("Which kinds of group to draw.", "要画哪几种组。"),
    ),
    "preset": Control(
        Text("Start from", "从现成布局开始"),
        Text(
            "Load a published layout.",
            "载入一个已公开的布局。",
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
    "ep": Control(
        Text("Expert parallel size (EP)", "专家并行大小（EP）"),
        Text("Ranks that share a layer's experts.", "共同存放一层全部专家的 rank 数。"),
    ),
    "etp": Control(
        Text("Expert tensor parallel size (ETP)", "专家张量并行大小（ETP）"),
        Text(
            "Ranks that split one expert's matrices; empty: as TP.",
            "共同切分一个专家的矩阵的 rank 数；留空则与 TP 相同。",
        ),
    ),
    "framework": Control(
        Text("Framework (names and order)", "框架（轴名与顺序）"),
        Text("Whose numbering of the ranks to use.", "采用哪个框架的 rank 编号方式。"),
    ),
    "order": Control(
        Text("Your order, fastest axis first", "自定顺序（变化最快的轴在前）"),
        Text(
            "tp, cp, ep, dp and pp joined by dashes; Megatron's rules apply.",
            "用连字符连接 tp、cp、ep、dp、pp；按 Megatron 的规则检查。",
        ),
    ),
    "more": Control(
        Text("More groups", "更多组"),
        Text(
            "Any group that Megatron makes for this layout.",
            "Megatron 为该布局创建的任意一种组。",
        ),
    ),
    "instances": Control(
        Text("Distributed optimizer instances", "分布式优化器实例数"),
        Text(
            "--num-distributed-optimizer-instances: makes intra-dp-cp, intra-edp and inter-edp.",
            "--num-distributed-optimizer-instances：产生 intra-dp-cp、intra-edp 和 inter-edp。",
        ),
    ),
    "levels": Control(
        Text("Context parallel levels", "上下文并行的层级"),
        Text(
            "--hierarchical-context-parallel-sizes, such as 2x4; makes hcp-l0, hcp-l1.",
            "--hierarchical-context-parallel-sizes，例如 2x4；产生 hcp-l0、hcp-l1。",
        ),
    ),
    "hybrid": Control(
        Text("Hybrid context parallelism", "混合上下文并行"),
        Text(
            "--hybrid-context-parallel: makes hybrid-dp-cp-2, -4 and so on.",
            "--hybrid-context-parallel：产生 hybrid-dp-cp-2、-4 等组。",
        ),
    ),
    "layers": Control(
        Text("Transformer layers", "Transformer 层数"),
        Text(
            "A number, or a pipeline layout such as Et*3|(tt|)*29,m|L.",
            "一个数字，或 Et*3|(tt|)*29,m|L 这样的流水线布局。",
        ),
    ),
    "vpp": Control(
        Text("Virtual stages per rank (VPP)", "每个 rank 的虚拟阶段数（VPP）"),
        Text("Empty: no interleaving.", "留空表示不交错。"),
    ),
    "account": Control(
        Text("Embedding and loss count as layers", "嵌入和损失各算一层"),
        Text(
            "--account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split.",
            "--account-for-embedding-in-pipeline-split 与 --account-for-loss-in-pipeline-split。",
        ),
    ),
    "experts": Control(
        Text("Experts per layer", "每层专家数"),
        Text("Of one MoE layer.", "一个 MoE 层的专家数。"),
    ),
    "micro_batch": Control(
        Text("Micro-batch size", "micro-batch 大小"),
        Text("Samples of one micro-batch.", "一个 micro-batch 的样本数。"),
    ),
    "global_batch": Control(
        Text("Global batch size", "全局 batch 大小"),
        Text("Samples of one training step.", "一个训练步的样本数。"),
    ),
    "view": Control(
        Text("View", "视图"),
        Text("What the right side shows.", "右侧显示的内容。"),
    ),
    "rank": Control(
        Text("Chosen GPU", "所选 GPU"),
        Text("Type a number, or click a GPU.", "输入编号，或单击 GPU。"),
    ),
    "versus": Control(
        Text("Compare with", "与之比较"),
        Text(
            "Another framework, for the same sizes.",
            "换一个框架，各并行大小不变。",
        ),
    ),
    "versus_order": Control(
        Text("or with an order of your own", "或与自定顺序比较"),
        Text("Such as dp-tp-cp-ep-pp.", "例如 dp-tp-cp-ep-pp。"),
    ),
    "kept": Control(
        Text("The layout to compare with", "用来比较的布局"),
        Text(
            "A link of this page, or keep what is shown now and then change it.",
            "粘贴本页的链接，或先保留当前布局再修改。",
        ),
    ),
    "paste": Control(
        Text("Launch command or configuration", "启动命令或配置"),
        Text(
            "A Megatron-LM script, DeepSpeed JSON, torchtitan TOML, NeMo overrides or YAML. It is "
            "read, never run.",
            "Megatron-LM 脚本、DeepSpeed JSON、torchtitan TOML、NeMo 覆盖项或 YAML。"
            "只读取，不执行。",
        ),
    ),
    "run": Control(
        Text("Run or role", "运行或角色"),
        Text(
            "The text holds several: the values below are those of the one chosen here.",
            "文本中有多个：下面的值属于此处选择的那一个。",
        ),
    ),
    "ranks": Control(
        Text("Some ranks", "若干 rank"),
        Text(
            "Numbers and ranges, such as 3, 11, 16-23, or pasted log lines with rank 3.",
            "编号和范围，例如 3, 11, 16-23；也可粘贴含 rank 3 字样的日志行。",
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
    **PIPELINE_CONTROLS,
    **TRAFFIC_CONTROLS,
    **MEMORY_CONTROLS,
}

SHORT_LABELS: dict[str, Text] = {
    "framework": Text("framework", "框架"),
    "order": Text("order", "顺序"),
    "group_type": Text("type", "类型"),
    "more": Text("more groups", "更多组"),
    "instances": Text("instances", "实例数"),
    "levels": Text("levels", "层级"),
    "hybrid": Text("hybrid", "混合上下文并行"),
}
"""What a control is called on the button of a fix, where its label is long."""

DP_KINDS: dict[str, Text] = {
    "dp": Text("dp: different samples", "dp：处理不同的样本"),
    "dp-cp": Text("dp-cp: average gradients together", "dp-cp：一起平均梯度"),
}

VIEWS: dict[str, Text] = {
    "groups": Text("Groups", "组"),
    "nodes": Text("Nodes and links", "节点与链路"),
    "orders": Text("Orders", "顺序"),
    "ranks": Text("Ranks", "rank 查询"),
    "collectives": Text("Collectives", "集合通信"),
    "pipeline": Text("Pipeline", "流水线"),
    "memory": Text("Memory", "显存"),
    "traffic": Text("Traffic", "通信量"),
    "estimate": Text("Step time", "一步用时"),
    "search": Text("Better layouts", "更好的布局"),
    "compare": Text("Compare", "比较"),
    "launch": Text("Launch", "启动命令"),
    "hang": Text("Hang", "挂起"),
    "hosts": Text("Hosts", "主机"),
}
