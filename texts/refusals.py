# ruff: noqa: RUF001
"""Refusals in Chinese, by the code of their LayoutError; in English an error says itself."""

from __future__ import annotations

REFUSALS: dict[str, str] = {
    # Sizes, orders, layers, frameworks, documents.
    "does-not-divide": "{sizes} = {product} 不能整除 {world} 个 GPU，剩不下整数的 {left} 大小。",
    "not-a-whole-number": "{control} 必须是{span}的整数，而不是 {value}。",
    "out-of-range": "{control} 必须是{span}的整数，而不是 {value}。",
    "too-many-ranks": "{ranks} 个 GPU 超过了可绘制的上限 {limit} 个。",
    "no-such-numbers": "{cluster} 不支持 {precision} 计算。",
    "does-not-divide-tp": "{names} = {product} 不能整除 tp {tp}。",
    "no-such-run": "文本中只有一个运行，没有 {run}。",
    "launch-asks": "文本没有给出 {fields}，请补充。",
    "too-many-axes": "{axes} 个轴超过了上限 {limit} 个。",
    "too-much-work": "{what}过多，超出了一次请求允许的工作量。",
    "busy": "服务器正在处理其他大请求，请稍后再试。",
    "no-picture": "这个视图没有可保存的当前布局图。",
    "not-a-choice": "{control} 没有 {value} 这一项，可选：{choices}。",
    "no-such-rank": "没有 rank {rank}：rank 从 {first} 到 {last}。",
    "dp-does-not-fit": "dp {dp} 与剩余不符：{world} / {product} = {remaining}。",
    "axis-not-in-order": "{axis} 给了大小，但顺序 {order} 中没有它。",
    "no-dp-in-order": "{product} 个 rank 填不满 {world} 个 GPU，而顺序中没有 dp。",
    "repeated-axis": "轴 {axis} 在 {value} 中出现了两次。",
    "unknown-axis": "{mesh} 中没有轴 {value}。",
    "bad-axis-name": "{value} 不是轴的名称。",
    "bad-names": "{value} 不是用连字符连接的轴名。",
    "bad-mesh-text": "{value} 不是带大小的轴。",
    "dp-and-edp-differ": "dp {dp} 与 edp {edp} 不同，而 pp 不是顺序中的最后一个轴。",
    "pipelines-differ": "这一顺序使稠密层（{dense}）与专家层（{expert}）的流水线不同。",
    "instances-do-not-divide": "{instances} 个优化器实例不能整除 {group} 组的 {size} 个 rank。",
    "offload-needs-zero": "offload {offload} 至少需要 ZeRO 阶段 {least}，而不是 {zero}。",
    "levels-do-not-multiply": "各级 {levels} 的乘积不等于 cp {cp}。",
    "hybrid-with-pipeline": "混合上下文并行不能与 pp {pp} 一起使用。",
    "hybrid-needs-even": "混合上下文并行需要偶数个 rank，而 dp × cp = {size}。",
    "instances-with-gtp": "gtp 轴不能与 {instances} 个优化器实例一起使用。",
    "virtual-stages-without-pipeline": "{vpp} 个虚拟阶段需要流水线，而 pp 为 1。",
    "sharp-group": "此处 SHARP 不能用于组 {group}。",
    "bad-link": "链接中的 {value} 无法识别；页面从头开始。",
    "bad-ranks": "{value} 不是 rank 列表；写法例如 3, 11, 16-23。",
    "too-many-ranks-named": "文本中的 rank 超过 {limit} 个。",
    "expert-tp-is-fixed": "{framework} 没有独立的专家张量并行大小。",
    "framework-has-no-option": "{framework} 没有 {option}：这是 Megatron 的选项。",
    "name-taken": "此处的 {name} 是 {framework} 自己的组；换一种类型可查看 Megatron 的同名组。",
    "framework-has-no-axis": "{framework} 没有 {axis}。",
    "framework-is-all-pipeline": (
        "{framework} 没有数据并行：流水线要用上全部 {world} 个 GPU，而不是 {pp} 个。"
    ),
    "no-such-group": "在 {framework} 中，该布局没有 {name} 组。",
    "no-groups-chosen": "没有选中任何组：请在“更多组”中选择。",
    "not-names": "{value} 不是组名列表。",
    "layers-do-not-divide": "{count} 层（含为嵌入和损失计入的层）不能平均分到 {stages} 个阶段。",
    "chunks-do-not-divide": "一个阶段的 {count} 层不能分成 {vpp} 个相等的模型块。",
    "interleaving-needs-stages": "vpp {vpp} 需要不止一个流水线阶段，而 pp 为 {pp}。",
    "ends-with-accounted": "指定首尾阶段的层数时，不能再把嵌入或损失计为一层。",
    "one-stage-has-no-ends": "首阶段和末阶段是两个阶段，而 pp 为 {pp}。",
    "ends-leave-wrong": (
        "首尾阶段占用 {layers} 层中的 {taken} 层，给其余 {stages} 个阶段剩下 {left} 层。"
    ),
    "chunks-need-middle-stages": "指定首尾阶段后，vpp {vpp} 要求中间还有阶段，而 pp 为 {pp}。",
    "not-a-multiple": "{control} {value} 不是 {of} 的倍数。",
    "batches-disagree": (
        "{micro_batches} 个 micro-batch × {micro_batch} 个样本 × DP {dp} = 一步 {product} "
        "个样本，而 global batch 为 {global_batch}。"
    ),
    "model-incomplete": "此处不知道该模型的结构：请选择模型，或填写{missing}。",
    "bad-layout": "{value} 不是布局中的层：请用 E、t、m、L 书写，阶段之间用竖线，重复部分后写 *n。",
    "layout-too-long": "布局超过 {limit} 个字符。",
    "layout-does-not-divide": "布局的 {stages} 个阶段不能平均分给 pp {pp}。",
    "layout-has-other-vpp": "布局给 pp {pp} 的每个 rank 分出 {chunks} 个模型块，而 vpp 为 {vpp}。",
    "layout-first-is-not-embedding": "布局的第一层是 {found}，而不是 embedding。",
    "layout-last-is-not-loss": "布局的最后一层是 {found}，而不是 loss。",
    "layout-repeats": "布局中有 {count} 个 {layer} 层，只应有一个。",
    "layout-has-other-layers": "布局有 {count} 个解码层，而模型有 {layers} 个。",
    "layout-has-other-mtp": "布局有 {count} 个多 token 预测层，而模型有 {mtp} 个。",
    "layout-mtp-too-early": "多 token 预测之后还有解码层。",
    "layout-mtp-not-in-last-chunk": "多 token 预测不在其流水线 rank 的最后一个模型块中。",
    "layout-mtp-in-two-stages": "多 token 预测分在不止一个阶段中。",
    "unknown-operation": "没有操作 {value}。",
    "unknown-option": "{operation} 没有选项 {value}。",
    "no-backward": "{operation} 在此没有反向。",
    "no-tensors": "没有张量。",
    "not-a-tensor": "rank {rank} 的张量不是由数值组成的数组。",
    "shapes-differ": "rank {rank} 的张量形状为 {shape}，而同组 rank {other} 的为 {other_shape}。",
    "does-not-split": "张量第 {dim} 维（从 0 数起）的大小为 {size}，不能平均分给 {ranks} 个 rank。",
    "no-dims": "单个数没有可供切分或拼接的维度。",
    "not-groups": "{value} 不是 rank 组的列表；写法例如 [[0, 1], [2, 3]]。",
    "rank-twice": "rank {rank} 在各组中出现了两次。",
    "bad-document": "这不是组或 rank 的文档：{place} 是 {value}。",
    "missing-in-document": "该文档缺少 {place}。",
    "other-schema": "该文档的 schema 是 {value}；此处可读取 {known}。",
    "other-version": "该文档的版本是 {value}；此处读取版本 {version}。",
    "not-a-text": "{value} 不是文本。",
    "text-too-long": "文本有 {count} 个字符，超过上限 {limit}。",
    "framework-cannot-express": "{framework} 无法表达 {what}。",
    "no-axes": "网格至少需要一个轴。",
    # What only endpoints refuse.
    "answer-too-large": "{what}有 {count} 个，超过了一次回答的上限 {limit} 个。",
    "not-tensors": "{value} 不是每个 rank 一个张量的 JSON 列表。",
    "not-an-object": "{value} 不是 JSON 对象。",
    "too-large-a-number": "rank {rank} 的张量含有超过 {limit} 的数。",
    "not-one-per-rank": "{count} 个张量与 {world} 个 rank 不是一一对应。",
    "tensors-and-shape": "张量自带形状：请只给出张量或形状之一。",
    "too-many-members": "步骤只列出不超过 {limit} 个 rank 的组，而不是 {size} 个。",
    # Collectives.
    "not-bytes": "{value} 不是字节数。",
    "not-a-bandwidth": "{value} 不是以字节每秒计的带宽。",
    "not-receivers": "{value} 没有为 {members} 个成员各指定一个接收者。",
    "sends-to-itself": "位置 {place} 的成员会发给自己。",
    "receives-twice": "位置 {place} 的成员会接收两次。",
    "not-splits": "{value} 不是 {members} × {members} 个行数。",
    "splits-do-not-add-up": "成员 {place} 有 {rows} 行，而它的各份加起来是 {sum} 行。",
    "rows-differ": "成员 {place} 的一行形状为 {shape}，而成员 0 的为 {other_shape}。",
    "nothing-to-send": "成员 {place} 在第 {step} 步时槽 {slot} 中没有内容。",
    "not-a-shape": "{value} 不是形状：请写一到三个大小，例如 4 或 2x4。",
    "too-many-numbers": "形状为 {shape} 的张量数字太多，无法阅读：每个 rank 最多 {limit} 个。",
    "not-in-group": "rank {rank} 不在所示的 {kind} 组 {index} 的 rank 中。",
    "not-positive": "{control} 必须是大于 0 的数，而不是 {value}。",
    # Evidence of hangs.
    "no-evidence": "没有可读的日志：请粘贴文本或选择文件。",
    "too-much-evidence": "文件超过 {megabytes} MB 或 {files} 个。",
    "bad-dump": "{file} 不是可读取的转储：{why}。",
    "bad-digest": "文件的摘要已无法读取：请重新选择文件。",
    "ranks-in-groups": "文本只给出了组内序号（{ranks}），没有给出作业中的 GPU。",
    # Hosts, racks, measurements.
    "bad-host-line": "第 {line} 行 {value} 不符合 {form} 的写法。",
    "bad-hostlist": "{value} 不是主机列表；写法是主机名加方括号内的编号和区间，例如 n[1-4,7]。",
    "too-many-hosts": "{value} 表示 {count} 台机器，超过上限 {limit}。",
    "too-many-to-order": "{count} 台主机超过可排序的上限 {limit}：请按 pod 分别排序。",
    "host-twice": "主机 {host} 出现了两次；每台主机只保留一行。",
    "no-hosts": "文本中没有主机名。",
    "bad-host-document": "无法读取该文档：{what}。",
    "host-without-slots": "主机 {host} 没有槽位：不运行进程的主机请去掉。",
    "rank-missing": "文本中有 {count} 个 rank，却没有 rank {rank}。",
    "bad-host-filter": "{value} 不是这些主机的筛选条件；写法例如 worker-0@worker-1:0,2，"
    "并请一起给出主机文件。",
    "host-filter-and-number": "{value}：DeepSpeed 不允许筛选条件与 --num_nodes、--num_gpus "
    "同时使用。",
    "host-filters-both": "{value}：--include 与 --exclude 只能给一个。",
    "host-filter-empty": "{value} 没有留下任何 GPU。",
    "host-filter-unknown": "{value}：主机文件中没有这台主机。",
    "host-filter-gpus": "{value}：{host} 的 GPU 是 0 到 {last}。",
    "bad-tasks-per-node": "{value} 没有说明 {count} 台机器的任务数；三台机器的写法例如 8(x2),4。",
    "switches-in-a-ring": "交换机 {switch} 位于它自己之上。",
    "clique-not-said": "{value} 的 CliqueId 为 N/A，无法确定其 NVLink 域。",
    "fabric-differs": "{host} 的 GPU 位于不同的 NVLink 域：{places}。",
    "slots-unknown": "文本没有说明 {host} 有多少 GPU：请写 slots=N，或给出每节点 GPU 数。",
    "uneven-slots": "主机 {host} 有 {slots} 个槽位，其他主机有 {most} 个：此处要求各节点相同。",
    "host-without-rack": (
        "没有说明主机 {host} 位于哪个机架（{hosts} 台中有 {count} 台）：请补充，或去掉这些主机。"
    ),
    "bad-objective": "{value} 不是目标；请按优先级写出各类组，例如 ep, tp+cp, dp, pp。",
    "bad-cost": "{value} 不是 {kind} 的代价：代价是不小于 0 的数。",
    "too-few-hosts": "布局需要 {world} 个 GPU，而 {hosts} 台主机只有 {slots} 个。",
    "too-many-hosts-for-job": (
        "布局需要 {world} 个 GPU，而 {hosts} 台主机有 {slots} 个：多出 {spare} 台主机。"
    ),
    "bad-measurements": "第 {line} 行的 {value} 不是测量值；请写 rank,value，每个 rank 一个数。",
    "no-measurements": "文本中没有按 rank 排列的数值列。",
    "measurement-twice": "rank {rank} 有两个测量值。",
    "measurement-of-no-host": "测量值中的主机 {host} 不属于该作业。",
    # Models and memory.
    "no-experts": "{control} 为 {value}，但该模型没有专家。",
    "mla-incomplete": "给出了 {given}，但 {missing} 为 0：潜在注意力（MLA）两者都需要。",
    "not-an-amount": "{control} 必须是不小于 0 的数，而不是 {value}。",
    "not-a-capacity": "{value} 不是以 GiB 计的 GPU 显存。",
    # Pipelines.
    "too-many-ops": "该调度有 {count} 个操作，超过了可模拟的上限 {limit}。",
    "pipeline-deadlock": "按此顺序，rank 会永远互相等待。",
    "bad-duration": "{control} 必须是 0 到 {most} 之间的数，而不是 {value}。",
    "not-one-per-stage": "{control} 有 {count} 个数，而阶段有 {stages} 个。",
    "schedule-has-chunks": "{schedule} 在每个 rank 上的模型块数为 {chunks}，而不是 {v}。",
    "interleaved-needs-chunks": "交错 1F1B 需要每个 rank 至少两个模型块；只有一个时就是 1F1B。",
    "schedule-needs-stages": "{schedule} 需要不止一个流水线 rank。",
    "schedule-has-no-groups": "{schedule} 不能指定 micro-batch 的分组大小。",
    "schedule-needs-even": (
        "{schedule} 需要偶数个流水线 rank 和偶数个 micro-batch：{what} 为 {value}。"
    ),
    "schedule-needs-micro-batches": (
        "{schedule} 在 {p} 个 rank 上至少需要 {least} 个 micro-batch，而不是 {m}。"
    ),
    "rounds-do-not-divide": "{m} 个 micro-batch 不能分成 {rounds} 个相等的轮次。",
    "group-too-small": "每组 {n} 个 micro-batch，少于 {p} 个流水线 rank。",
    "group-too-large": "每组 {n} 个 micro-batch，多于总数 {m}。",
    "last-group-too-small": (
        "{m} 个 micro-batch 按每组 {n} 个分组，最后一组只有 {rest} 个，少于 {p} 个流水线 rank。"
    ),
    # Traffic.
    "ep-without-experts": "ep {ep} 用于分散专家，而此模型没有专家。",
    "experts-need-sequence-parallel": (
        "有专家且 tp 为 {tp} 时需要序列并行：Megatron 只支持这样训练。"
    ),
}
"""The facts of the error fill in the names; a control is named as the page labels it."""

SPANS = {"up": "不小于 {minimum} ", "range": "从 {minimum} 到 {maximum} "}
"""What `{span}` of a sentence says."""

WORK = {
    "characters": "字符",
    "drawn-marks": "要绘制的图形",
    "hosts": "主机",
    "keys": "键",
    "layout": "布局",
    "layouts": "要尝试的布局",
    "listed-ranks": "要列出的组内 rank",
    "numbers": "张量中的数",
    "ops": "流水线操作",
    "order": "顺序",
    "pipeline-ranks": "流水线 rank",
    "pipeline-stages": "要计算的流水线阶段",
    "pixels": "要绘制的像素",
    "ranks": "rank",
    "statements": "语句",
    "table-cells": "表格单元",
    "values": "值",
    "words": "词",
}
"""Of what a request may ask for too much: the counts of groups.budget and of answers."""
