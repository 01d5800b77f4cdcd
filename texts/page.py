# ruff: noqa: RUF001
"""The words of the page itself, its pictures and its cards."""

from __future__ import annotations

from .collectives import COLLECTIVES_PAGE
from .pipeline import PIPELINE_PAGE
from .shapes import Text

HOW_TO_READ = Text(
    "The first picture is the job: a column is a replica of the model, a row a pipeline stage, a "
    "frame in a replica one tp group, a number the global rank of a GPU, from 0. The chosen GPU "
    "is dark; its groups are filled and joined in the colour of their kind, and a dashed line "
    "marks where a node ends. "
    "Below, each panel shows all groups of one kind on the nodes: the same colour and the same "
    "small label, such as tp3, mean the same process group. Colours repeat after 10 groups, so the "
    "label decides; a colour in one panel means nothing in another. "
    "Point at a GPU, or move with the arrow keys, to see its groups in every picture; click or "
    "press Enter to keep it, and press Esc to let go.",
    "第一幅图是整个作业：每列是模型的一个副本，每行是一个流水线阶段，副本内的一个框是一个 tp 组，"
    "数字是 GPU 从 0 开始的全局 rank。所选 GPU 为深色，它的各组用该种类的颜色填充并连线，"
    "虚线标出节点边界。"
    "下方每个面板在节点上画出一种组的全部：颜色相同且小标签（如 tp3）相同，即同一个进程组。"
    "超过 10 个组后颜色会重复，以标签为准；一个面板中的颜色与另一个面板无关。"
    "指向一个 GPU 或用方向键移动，可在所有图中看到它的组；单击或按回车固定，按 Esc 取消。",
)

HOW_TO_READ_LARGE = Text(
    "The first picture is the job: a cell is one GPU, a row of a band a pipeline stage, with the "
    "replicas from left to right; inside a replica tp and cp come first. What does not fit beside "
    "goes on in the next band, which is labelled again. "
    "The ring is the chosen GPU, and only its groups are coloured, one colour a kind; few cells "
    "among many are drawn larger. Where experts are spread in a way of their own, a second picture "
    "shows their grid over the same GPUs. "
    "The physical view below marks the same GPUs on their nodes, one tile a node.",
    "第一幅图是整个作业：一个格子是一个 GPU，每段中的一行是一个流水线阶段，副本从左到右排列，"
    "副本内先排 tp 和 cp。放不下的部分折到下一段，并重新标注。"
    "圆圈是所选的 GPU，只有它的组着色，每种一色；数量很少的格子会画得大一些。"
    "专家另有分布时，第二幅图在同样的 GPU 上画出专家网格。"
    "下方的物理视图在节点上标出同样的 GPU，每个节点一块。",
)

PAGE: dict[str, Text] = {
    **COLLECTIVES_PAGE,
    "title": Text("Parallel group playground", "并行组演示"),
    "subtitle": Text(
        "Which GPUs of a training job form which process groups.",
        "训练任务中，哪些 GPU 组成哪些进程组。",
    ),
    "controls": Text("Layout controls", "布局控件"),
    "world": Text("World size", "总 GPU 数"),
    "dp_size": Text("DP size", "DP 大小"),
    "mesh": Text("Mesh", "网格"),
    "derived": Text(
        "{world} / (tp {tp} × pp {pp} × cp {cp})", "{world} /（tp {tp} × pp {pp} × cp {cp}）"
    ),
    "try": Text("Try", "可改为"),
    "play": Text("Play", "播放"),
    "stop": Text("Stop", "停止"),
    "megatron_says": Text("Megatron says:", "Megatron 的报错："),
    "own_order": Text("Your own order, typed below", "自定顺序（在下方输入）"),
    "experts_fold": Text("Experts (MoE)", "专家（MoE）"),
    "more_fold": Text("More groups and options", "更多组与选项"),
    "model_fold": Text("Model and batch", "模型与 batch"),
    "preset_derived": Text("Derived, not stated: {names}.", "推算而非原文给出：{names}。"),
    "preset_stated": Text("All sizes are stated.", "各项大小均由原文给出。"),
    "framework_order": Text("Order: {order}", "顺序：{order}"),
    "framework_open": Text("Not settled: {what}", "未定之处：{what}"),
    "basis_executed": Text("checked by running it", "已运行核对"),
    "basis_read": Text("read in its source", "据其源码或文档"),
    "derived_experts": Text(
        "{world} / (etp {etp} × ep {ep} × pp {pp})", "{world} /（etp {etp} × ep {ep} × pp {pp}）"
    ),
    "edp_size": Text("EDP size", "EDP 大小"),
    "dense_grid": Text("Dense grid", "稠密网格"),
    "expert_grid": Text("Expert grid", "专家网格"),
    "own_as": Text(
        "{name} of {framework}: Megatron's {same}", "{framework} 的 {name}：即 Megatron 的 {same}"
    ),
    "own_alone": Text("{name} of {framework}", "{framework} 的 {name}"),
    "own_joins": Text(
        "{framework} joins {axes} under this name; Megatron makes no such group of its own.",
        "{framework} 用这个名称合并 {axes}；Megatron 没有对应的组。",
    ),
    "nccl_option": Text(", NCCL option {option}", "，NCCL 选项 {option}"),
    "groups_of_up_to": Text("{groups} of up to {ranks}.", "{groups}，每组最多 {ranks}。"),
    "in_none": Text("{gpus} in no such group.", "{gpus}不在这种组中。"),
    "on": Text("on", "开启"),
    "off": Text("off", "关闭"),
    "empty": Text("(empty)", "（留空）"),
    "nodes_title": Text("Which groups leave their node?", "哪些组跨出节点？"),
    "nodes_body": Text(
        "Every group of more than one rank, on nodes and on NVLink domains of other sizes. The bar "
        "is the share of groups that cross. Names in one row are the very same groups here.",
        "列出所有多于一个 rank 的组，分别按节点和其他大小的 NVLink 域统计。"
        "条形表示跨域的组所占比例。同一行的多个名称在此布局下是完全相同的组。",
    ),
    "column_size": Text("Ranks", "rank 数"),
    "audit_node": Text("Node: {gpus}", "节点：{gpus}"),
    "audit_domain": Text("Domain: {gpus}", "域：{gpus}"),
    "audit_stay": Text("all stay", "全部留在域内"),
    "audit_all": Text("all cross, up to {most} each", "全部跨域，最多跨 {most} 个"),
    "audit_some": Text(
        "{crossing} of {groups} cross, up to {most} each",
        "{groups} 个中 {crossing} 个跨域，最多跨 {most} 个",
    ),
    "audit_warning": Text(
        "{kind}: {crossing} of {groups} groups leave their node, over up to {nodes}. The next "
        "layer waits for this group, so its messages want NVLink, and no domain of up to 72 GPUs "
        "in "
        "rank order holds it.",
        "{kind}：{groups} 个组中有 {crossing} 个跨出节点，最多跨 {nodes}。"
        "下一层要等待这种组的通信，因此它需要 NVLink；而按 rank 顺序划分、72 个 GPU "
        "以内的域都容纳不下。",
    ),
    "audit_warning_fits": Text(
        "{kind}: {crossing} of {groups} groups leave their node, over up to {nodes}. The next "
        "layer waits for this group, so its messages want NVLink: domains of {domain} GPUs would "
        "hold it.",
        "{kind}：{groups} 个组中有 {crossing} 个跨出节点，最多跨 {nodes}。"
        "下一层要等待这种组的通信，因此它需要 NVLink：{domain} 个 GPU 的域可以容纳它。",
    ),
    "audit_fine": Text(
        "No group that a layer waits for (tp, ep, etp) leaves its node.",
        "每层都要等待的组（tp、ep、etp）没有跨出节点。",
    ),
    "none": Text("none", "无"),
    "own_short": Text("Own order", "自定顺序"),
    "own_order_note": Text(
        "An order typed by you, under Megatron's rules.", "由你输入的顺序，按 Megatron 的规则检查。"
    ),
    "own_names": Text("Its own names", "该框架自己的名称"),
    "own_none": Text("no group of Megatron's", "Megatron 没有对应的组"),
    "column_name": Text("Its name", "它的名称"),
    "column_same": Text("Megatron's name", "Megatron 的名称"),
    "column_axes": Text("Axes", "轴"),
    "column_first": Text("Group of rank 0", "rank 0 所在的组"),
    "versus_auto": Text("Megatron's usual others", "Megatron 的常用顺序"),
    "strip": Text(
        "Against Megatron's default order ({order}), groups with other members: {kinds}.",
        "与 Megatron 的默认顺序（{order}）相比，成员不同的组：{kinds}。",
    ),
    "strip_leaving": Text(
        "{kind} groups that leave their node: {before} there, {after} here.",
        "跨节点的 {kind} 组：默认顺序 {before} 个，此处 {after} 个。",
    ),
    "moved_title": Text("What would another order move?", "换一种顺序会改变什么？"),
    "moved_body": Text(
        "The same sizes under another framework or order: groups with other members, and how many "
        "leave their node.",
        "相同的大小换用另一种框架或顺序：哪些组的成员不同，又有多少组跨节点。",
    ),
    "moved_some": Text(
        "From {before} to {after}, groups with other members: {kinds}; with the same: {same}.",
        "从 {before} 换成 {after}，成员改变的组：{kinds}；不变的组：{same}。",
    ),
    "moved_none": Text(
        "{before} and {after} make the very same groups of the kinds shown.",
        "对所示的种类，{before} 与 {after} 的组完全相同。",
    ),
    "column_moved": Text("Ranks whose group changed", "所在组改变的 rank"),
    "column_leaving": Text("Leaving a node: {order}", "跨节点：{order}"),
    "rank_title": Text("Rank {rank}", "rank {rank}"),
    "rank_place": Text("Place", "位置"),
    "rank_stage": Text("Pipeline stage", "流水线阶段"),
    "rank_stage_of": Text("{stage} of {stages}.", "第 {stage} 阶段，共 {stages} 个。"),
    "rank_give_layers": Text("Give the number of layers", "填写层数"),
    "rank_layers_of": Text("Layers {layers}.", "第 {layers} 层。"),
    "rank_chunks_layers": Text(
        "Layers by model chunk: {layers}.", "各模型块（chunk）的层：{layers}。"
    ),
    "rank_no_layers": Text("none", "无"),
    "rank_embedding": Text("Holds the word embedding.", "存放词嵌入。"),
    "rank_output": Text("Holds the output layer and computes the loss.", "存放输出层并计算损失。"),
    "launch_unused": Text("read, not used here", "已读取，此处未用到"),
    "and_list": Text(", ", "、"),
    "rank_chunks": Text("Sequence chunks", "序列块"),
    "rank_chunks_of": Text(
        "{chunks} of {total}, counted from 0.", "第 {chunks} 块，共 {total} 块，从 0 数起。"
    ),
    "rank_experts": Text("Experts", "专家"),
    "rank_expert_place": Text("Share {place} of {ep}.", "第 {place} 份，共 {ep} 份。"),
    "rank_experts_of": Text(
        "{experts} of {total} in each MoE layer.", "每个 MoE 层 {total} 个专家中的 {experts}。"
    ),
    "rank_expert_slice": Text(
        "Of each, slice {slice} of {etp}.", "每个专家只存第 {slice} 片，共 {etp} 片。"
    ),
    "rank_give_experts": Text("Give the number of experts", "填写专家数"),
    "rank_samples": Text("Samples", "样本"),
    "rank_reads": Text(
        "Data parallel share {place} of {dp}.", "数据并行第 {place} 份，共 {dp} 份。"
    ),
    "rank_samples_of": Text(
        "Of each global batch it reads {samples}: {count}.",
        "每个全局 batch 中读取样本 {samples}：共 {count}。",
    ),
    "rank_neighbours": Text("Pipeline neighbours", "流水线相邻 rank"),
    "rank_ring": Text(
        "Before it rank {before}, after it rank {after}; the ends meet.",
        "前一个是 rank {before}，后一个是 rank {after}；首尾相接。",
    ),
    "rank_no_pipeline": Text("None: pp is 1.", "无：pp 为 1。"),
    "column_peers": Text("Members", "成员"),
    "together_title": Text("Which groups do some ranks share?", "这些 rank 同在哪些组？"),
    "together_empty": Text(
        "Paste the ranks of a hang or of a slow node: the smallest group that has them all is the "
        "first suspect.",
        "粘贴卡住的 rank 或慢节点上的 rank：同时包含它们的最小的组就是首要嫌疑。",
    ),
    "together_ranks": Text("Understood: {count}, {ranks}.", "识别出 {count}：{ranks}。"),
    "together_exact": Text(
        "They are exactly {kind} group {index}.", "它们正好是 {kind} 组 {index}。"
    ),
    "together_first": Text(
        "The smallest group that has them all is {kind} group {index}, of {count}.",
        "同时包含它们的最小的组是 {kind} 组 {index}，共 {count}。",
    ),
    "together_none": Text(
        "No group of this layout has them all: they meet only in the whole world.",
        "该布局中没有任何组同时包含它们：它们只在全体 rank 中相遇。",
    ),
    "together_apart": Text(
        "Not together, with the number of groups they fall into: {kinds}.",
        "不在同一组的种类（括号内为它们分属的组数）：{kinds}。",
    ),
    "close": Text("Close", "关闭"),
    "keep": Text("Keep this layout to compare", "保留当前布局用于比较"),
    "use_pasted": Text("Use these values", "采用这些值"),
    "copy_text": Text("Copy", "复制"),
    "compare_title": Text("Which of two layouts is better?", "两个布局哪个更好？"),
    "compare_empty": Text(
        "Keep this layout, then change any size: the difference stands here. Or begin with a pair.",
        "先保留当前布局，再修改任意大小，此处显示差别。也可以从一对现成的布局开始。",
    ),
    "pair_nodes": Text("TP in a node, or across two", "TP 在节点内，或跨两个节点"),
    "pair_order": Text("Data before pipeline, or after it", "DP 先于 PP，或 PP 先于 DP"),
    "pair_zero": Text("Pipeline, or ZeRO-3 over the data group", "流水线，或数据组上的 ZeRO-3"),
    "compare_same": Text("All settings are the same.", "所有设置都相同。"),
    "cost_title": Text("What they cost", "各自的代价"),
    "cost_of": Text(
        "{model} on {cluster}, {batch} samples a step, as Model and batch says.",
        "{model}，{cluster}，每步 {batch} 个样本，见“模型与批量”。",
    ),
    "column_cost": Text("Cost", "代价"),
    "column_difference": Text("Difference", "差别"),
    "cost_better": Text("▼ {share} % less: better", "▼ 少 {share}%：更好"),
    "cost_worse": Text("▲ {share} % more: worse", "▲ 多 {share}%：更差"),
    "cost_worse_than_none": Text("▲ there was none: worse", "▲ 原先没有：更差"),
    "cost_same": Text("= the same", "= 相同"),
    "cost_memory": Text("Memory that the fullest GPU needs", "最满的 GPU 所需显存"),
    "cost_compute": Text("Computation", "计算"),
    "cost_bubble": Text("Idle in the pipeline", "流水线空闲"),
    "cost_across": Text("Bytes out of NVLink domains, in a step", "一步中离开 NVLink 域的字节"),
    "cost_exposed": Text("Waiting for transfers", "等待通信"),
    "cost_rest": Text("Optimizer, and host launching kernels", "优化器，以及主机启动核函数"),
    "cost_step": Text("A step takes about", "一步约需"),
    "column_setting": Text("Setting", "设置"),
    "column_kept": Text("Kept", "保留的"),
    "column_now": Text("Now", "当前"),
    "column_leaving_kept": Text("Leaving a node, kept", "跨节点（保留的）"),
    "column_leaving_now": Text("Leaving a node, now", "跨节点（当前）"),
    "launch_question": Text("Which layout does a script ask for?", "脚本要求怎样的布局？"),
    "launch_title": Text("What was read", "读到的内容"),
    "launch_asks": Text(
        "The text asks for {gpus}, {machines}: {sizes}.", "文本要求 {gpus}，{machines}：{sizes}。"
    ),
    "launch_shown": Text(
        "The page shows what the text asks for: {gpus}, {machines}, {sizes}.",
        "页面已是文本要求的布局：{gpus}，{machines}，{sizes}。",
    ),
    "launch_open": Text(
        "The text does not say {fields}: the numbers on the left count for it. With these it is "
        "{gpus}, {machines}: {sizes}.",
        "文本没有给出 {fields}：以左侧的数值为准，则为 {gpus}，{machines}：{sizes}。",
    ),
    "nodes_named": Text(
        "With the {hosts} of the Hosts view, and what they stand in.",
        "包含「主机」视图中的 {hosts} 及其所在位置。",
    ),
    "served_title": Text(
        "Groups of this server, in its own order of ranks", "该服务的分组，按其自身的 rank 顺序"
    ),
    "served_group": Text("Group", "组"),
    "served_size": Text("Groups × size", "组数 × 大小"),
    "served_ranks": Text("Ranks of the first groups", "前几个组的 rank"),
    "launch_empty": Text(
        "Paste the command or the configuration of a job: this says what of it was understood, and "
        "one click sets the layout.",
        "粘贴任务的启动命令或配置：此处说明识别出了什么，单击一次即可设置布局。",
    ),
    "launch_summary": Text(
        "Framework: {framework}. Understood: {understood}; ignored: {ignored}; unresolved: "
        "{unresolved}; wrong: {problems}.",
        "框架：{framework}。已识别 {understood} 项，忽略 {ignored} 项，未解出 {unresolved} 项，"
        "有误 {problems} 项。",
    ),
    "launch_understood": Text("Understood", "已识别"),
    "launch_ignored": Text("Ignored", "已忽略"),
    "launch_unresolved": Text("Not resolved", "未解出"),
    "launch_asked": Text("To be given, because nothing says it", "无法得知，请填写"),
    "choose_run": Text("choose one", "请选择"),
    "launch_missing": Text("Assumed, because the text does not say", "文本未说明，按以下假定"),
    "launch_place": Text("line {line}, column {column}", "第 {line} 行，第 {column} 列"),
    "emit_title": Text("This layout as a command", "当前布局的启动命令"),
    "emit_body": Text(
        "The options that make these groups, for every framework that can say them; data, "
        "addresses and the rest are yours to add.",
        "产生这些组的选项，列出所有能表达该布局的框架；数据、地址等其余选项请自行补充。",
    ),
    "check_title": Text("Check it on the cluster", "在集群上检查"),
    "check_body": Text(
        "A script for torchrun on the nodes of the job: it makes the same groups, lets each of "
        "them all-reduce its ranks, measures bandwidth by kind, and prints where reality differs.",
        "在任务的节点上用 torchrun 运行的脚本：创建同样的组，让每个组对其 rank 编号做 all-reduce，"
        "按种类测量带宽，并指出与预期不符之处。",
    ),
    "check_show": Text("The script", "脚本内容"),
    "still_shown": Text(
        "The picture still shows the last layout that works.", "图中仍是上一个可行的布局。"
    ),
    "reading": Text("Further reading", "延伸阅读"),
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
    "download_trace": Text("Trace for Perfetto, Chrome", "Perfetto、Chrome 跟踪文件"),
    "download_csv": Text("These groups as CSV", "这些组（CSV）"),
    "download_txt": Text("These groups as text", "这些组（文本）"),
    "download_json": Text("All groups as JSON", "全部组（JSON）"),
    "download_ranks": Text("All ranks as CSV", "全部 rank（CSV）"),
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
    "card_gpu": Text("GPU {rank}", "GPU {rank}"),
    "card_place": Text("node {node}, local GPU {local}", "节点 {node}，节点内 GPU {local}"),
    "card_group": Text("{kind} group {index}", "{kind} 组 {index}"),
    "card_count": Text("of {count} ranks:", "共 {count} 个 rank："),
    "card_alone": Text("of 1 rank:", "共 1 个 rank："),
    "card_none": Text("in no {kind} group", "不在 {kind} 组中"),
    "card_norank": Text(
        "There is no rank {rank}: ranks go from 0 to {last}.",
        "没有 rank {rank}：rank 从 0 到 {last}。",
    ),
    "card_pinned": Text("pinned, Esc lets go", "已固定，按 Esc 取消"),
    **PIPELINE_PAGE,
}

NOUNS: dict[str, tuple[str, str, str]] = {
    "gpu": ("GPU", "GPUs", "个 GPU"),
    "group": ("group", "groups", "个组"),
    "rank": ("rank", "ranks", "个 rank"),
    "node": ("node", "nodes", "个节点"),
    "host": ("host", "hosts", "台主机"),
    "file": ("file", "files", "个文件"),
    "microbatch": ("micro-batch", "micro-batches", "个 micro-batch"),
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
