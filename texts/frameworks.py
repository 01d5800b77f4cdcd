# ruff: noqa: RUF001
"""What is special about each framework, and what its source leaves open."""

from __future__ import annotations

from .shapes import Text

FRAMEWORKS: dict[str, Text] = {
    "megatron": Text(
        "tp is the fastest axis and pp the slowest, so a stage is one block of consecutive "
        "ranks; experts have a second mesh over the same ranks.",
        "tp 变化最快，pp 最慢，因此每个流水线阶段是一段连续的 rank；专家层在同样的 rank 上另有一"
        "套网格。",
    ),
    "megatron-pp-dp": Text(
        "With --use-tp-pp-dp-mapping pp varies faster than dp: each model replica is one block "
        "of consecutive ranks.",
        "使用 --use-tp-pp-dp-mapping 时 pp 比 dp 变化快：每个模型副本是一段连续的 rank。",
    ),
    "megatron-deepspeed": Text(
        "BLOOM's fork of Megatron: tensor, then data, then pipeline; it lowers tp and pp to the "
        "world size instead of refusing them.",
        "BLOOM 使用的 Megatron 分支：依次为 tensor、data、pipeline；tp 或 pp 大于 world size 时会"
        "被压到 world size，而不是报错。",
    ),
    "deepspeed": Text(
        "Written [pipe, data, model] with the last axis fastest, which is Megatron's tp-dp-pp; "
        "expert groups lie inside the data groups.",
        "写作 [pipe, data, model]，最后一个轴变化最快，即 Megatron 的 tp-dp-pp；专家组位于数据并"
        "行组之内。",
    ),
    "deepspeed-data-first": Text(
        "The same ranks with use_data_before_expert_parallel: expert data varies faster than "
        "expert, so an expert group takes widely spaced ranks.",
        "rank 排布相同，但启用 use_data_before_expert_parallel：专家数据轴比专家轴变化快，专家组"
        "的 rank 间隔较大。",
    ),
    "device-mesh": Text(
        "Any names in any order; the last dimension is the fastest, so Megatron's order is "
        "written in reverse.",
        "轴名和顺序由用户决定；最后一维变化最快，因此要把 Megatron 的顺序反过来写。",
    ),
    "torchtitan": Text(
        "Numbered as Megatron's default with data split into dp_shard and dp_replicate (1 here); "
        "for experts ep takes the innermost ranks, over tp and cp.",
        "编号与 Megatron 默认顺序相同，数据轴分为 dp_shard 和 dp_replicate（此处为 1）；专家层的 "
        "ep 占用最内层的 rank，跨越 tp 和 cp。",
    ),
    "llama3": Text(
        "TP, CP, PP, DP with TP innermost: the outermost axis is DP (FSDP), so the pipeline lies "
        "inside a replica.",
        "顺序为 TP、CP、PP、DP，TP 在最内层：最外层是 DP（FSDP），流水线位于副本之内。",
    ),
    "nanotron": Text(
        "Without experts it numbers ranks as Megatron's default does: tp, cp, dp, and pp slowest.",
        "不启用专家并行时，编号与 Megatron 默认顺序相同：tp、cp、dp，pp 最慢。",
    ),
    "nanotron-moe": Text(
        "With experts nanotron makes dp the slowest axis, and cuts the same ranks a second time "
        "into ep_tp, ep, pp and ep_dp.",
        "启用专家并行时，nanotron 把 dp 作为最慢的轴，并把同样的 rank 再按 ep_tp、ep、pp、ep_dp "
        "切分一次。",
    ),
    "picotron": Text(
        "A grid DP × PP × CP × TP with TP fastest: the pipeline lies inside a replica, as in "
        "Llama 3.",
        "网格为 DP × PP × CP × TP，TP 变化最快：流水线位于副本之内，与 Llama 3 相同。",
    ),
    "vllm": Text(
        "External DP × DP × PP × PCP × TP with TP fastest; an expert group has no size of its "
        "own, it joins all DP, PCP and TP ranks of a stage.",
        "External DP × DP × PP × PCP × TP，TP 变化最快；专家组没有单独的大小，它合并同一阶段的所"
        "有 DP、PCP 和 TP rank。",
    ),
    "mesh-tensorflow": Text(
        "Mesh dimensions have any names, the last one fastest; layout rules say which tensor "
        "dimension is split over which of them.",
        "网格维度可以任意命名，最后一维变化最快；布局规则规定哪个张量维度切分到哪个网格维度上。",
    ),
    "horovod": Text(
        "Data parallel only: local is the GPUs of one node, cross joins the same place on all "
        "nodes, global is everyone.",
        "只有数据并行：local 是同一节点内的 GPU，cross 连接各节点上相同的位置，"
        "global 是全部 rank。",
    ),
    "tf-replicator": Text(
        "A replica is the devices that one copy of the model runs on. In-graph, one process builds "
        "a graph of several replicas; between graphs, every worker builds its own.",
        "副本是一份模型所用的设备。图内复制：一个进程构建含多个副本的图；图间复制：每个 worker "
        "各自构建图。",
    ),
    "pytorch-ddp": Text(
        "One data group of all ranks; gradients are all-reduced in buckets while the backward "
        "pass runs.",
        "全部 rank 组成一个数据并行组；反向传播进行时梯度按桶做 all-reduce。",
    ),
    "gpipe": Text(
        "Pipeline only: stage s is on device s, and the number of stages must be the number of "
        "devices.",
        "只有流水线并行：第 s 个阶段在第 s 个设备上，阶段数必须等于设备数。",
    ),
    "fairscale": Text(
        "A grid (dp, pp, cp, mp) with mp fastest and dp slowest: Llama 3's order under other "
        "names.",
        "网格为 (dp, pp, cp, mp)，mp 变化最快，dp 最慢：与 Llama 3 的顺序相同，只是名称不同。",
    ),
    "paddle-fleet": Text(
        "dp, pp, sharding (1 here), sep, mp from slowest to fastest: sharding lies inside a "
        "stage, dp outside of the pipeline; users may change the order.",
        "由慢到快为 dp、pp、sharding（此处为 1）、sep、mp：sharding 在流水线阶段之内，dp 在流水线"
        "之外；用户可以更改顺序。",
    ),
    "oneflow": Text(
        "No named axes: a tensor's SBP follows the dimensions of the placement array, the last "
        "one fastest.",
        "没有轴名：张量的 SBP 与 placement 数组的各维对应，最后一维变化最快。",
    ),
    "mindspore": Text(
        "Stages are consecutive blocks of ranks; inside a stage the device matrix is row-major, "
        "its last alias fastest.",
        "各流水线阶段是连续的 rank 块；阶段内的设备矩阵按行优先排列，最后一个别名变化最快。",
    ),
    "whale": Text(
        "Each model replica takes consecutive devices: split innermost, stage next, replica "
        "outermost.",
        "每个模型副本占用连续的设备：split 在最内层，其次是 stage，replica 在最外层。",
    ),
    "palm": Text(
        "Axes replica (1 here), data, mdl with mdl last and fastest; which chip gets which place "
        "in the mesh is chosen separately.",
        "轴为 replica（此处为 1）、data、mdl，mdl 在最后且变化最快；哪块芯片对应网格的哪个位置另"
        "行决定。",
    ),
}
"""What is special about a framework's names and order, by the id of its convention."""

UNSETTLED: dict[str, Text] = {
    "device-mesh": Text(
        "names and their order are the user's; (pp, dp, cp, tp) is one example.",
        "轴名及其顺序由用户决定；(pp, dp, cp, tp) 只是一个例子。",
    ),
    "nanotron-moe": Text(
        "nothing read there checks that both meshes put the same ranks into a pipeline.",
        "所读代码没有检查两套网格的流水线是否由相同的 rank 组成。",
    ),
    "picotron": Text(
        "read in a copy of the repository; its own file was not at hand.",
        "所读的是该仓库的一个副本，未能取得原文件。",
    ),
    "mesh-tensorflow": Text(
        "names and their order are the user's, and which tensor dimension is split over which "
        "axis is a separate rule.",
        "轴名及其顺序由用户决定；哪个张量维度切分到哪个轴是另一条规则。",
    ),
    "tf-replicator": Text(
        "the body of its paper was not at hand and the abstract numbers no ranks: one graph for "
        "each node, and a replica's devices side by side, are taken here.",
        "未能取得论文正文，摘要没有给出 rank 编号：此处假定每个节点一张图、副本的各设备相邻。",
    ),
    "gpipe": Text(
        "GPipe and torchgpipe number the devices of one process, not ranks.",
        "GPipe 和 torchgpipe 编号的是同一进程内的设备，而不是 rank。",
    ),
    "fairscale": Text(
        "its docstring's 16-GPU example lists dp and pp the other way round than its code.",
        "其文档字符串中的 16 GPU 示例把 dp 与 pp 写反了，与代码不一致。",
    ),
    "paddle-fleet": Text(
        "the order is the default one, and an option changes it.",
        "这是默认顺序，可通过选项更改。",
    ),
    "oneflow": Text(
        "it names no axes: model and data stand for the last and the first dimension of a 2-D "
        "placement.",
        "它没有轴名：model 与 data 分别代表二维 placement 的最后一维和第一维。",
    ),
    "mindspore": Text(
        "names and their order inside a stage are the user's; (dp, sp, mp) is the example of its "
        "documentation.",
        "阶段内的轴名及其顺序由用户决定；(dp, sp, mp) 是其文档中的例子。",
    ),
    "whale": Text(
        "with device_place_prefer_intra_node off, devices are taken across workers first; that "
        "order is not drawn.",
        "关闭 device_place_prefer_intra_node 时会优先跨 worker 取设备；那种顺序未画出。",
    ),
    "palm": Text(
        "this is the logical mesh; which chip gets which place is chosen by the runtime.",
        "这是逻辑网格；哪块芯片对应哪个位置由运行时决定。",
    ),
}
"""What a framework's source leaves open."""

OWN_GROUPS: dict[str, Text] = {
    "local": Text(
        "The GPUs of one node: gradients are first reduced inside it.",
        "同一节点的 GPU：梯度先在节点内归约。",
    ),
    "cross": Text(
        "The GPUs with the same place on every node: what was reduced inside the nodes is reduced "
        "between them.",
        "各节点上位置相同的 GPU：节点内归约的结果再在节点之间归约。",
    ),
    "global": Text(
        "All ranks: the gradients of every one are averaged.",
        "全部 rank：对所有 rank 的梯度取平均。",
    ),
    "in_graph": Text(
        "Replicas in one graph, those of a node: one process builds the graph for all of them.",
        "同一张图内的副本，即同一节点的副本：由一个进程为它们构建图。",
    ),
    "between_graph": Text(
        "Replicas with the same place in the graphs of all workers; each worker builds its own.",
        "各 worker 的图中位置相同的副本；每个 worker 构建自己的图。",
    ),
    "replicas": Text(
        "All replicas, in and between graphs: their gradients are averaged.",
        "图内和图间的全部副本：对它们的梯度取平均。",
    ),
    "dp_replicate": Text(
        "Copies of the sharded model (HSDP); the page leaves it at 1.",
        "分片模型的副本（HSDP）；本页取 1。",
    ),
    "replica": Text("Copies across pods; the page leaves it at 1.", "跨 pod 的副本；本页取 1。"),
    "external_dp": Text(
        "Separate engines side by side; the page leaves it at 1.", "并列的独立引擎；本页取 1。"
    ),
    "sharding": Text(
        "Ranks that share the optimizer's state inside a stage; the page leaves it at 1.",
        "在同一阶段内分摊优化器状态的 rank；本页取 1。",
    ),
    "ep": Text(
        "Every rank of a stage holds some experts: {axes} together, with no size of its own.",
        "同一阶段的每个 rank 都存放部分专家：由 {axes} 合并而成，没有单独的大小。",
    ),
}
"""Groups of a framework that are none of Megatron's, by their own names."""
