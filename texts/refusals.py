# ruff: noqa: RUF001
"""Refusals by the code of their LayoutError."""

from __future__ import annotations

from .api import API_REFUSALS
from .collectives import COLLECTIVES_REFUSALS
from .hang import HANG_REFUSALS
from .hosts import HOSTS_REFUSALS
from .memory import MEMORY_REFUSALS
from .pipeline import PIPELINE_REFUSALS
from .shapes import Text
from .traffic import TRAFFIC_REFUSALS

REFUSALS: dict[str, Text] = {
    "does-not-divide": Text(
        "{sizes} = {product} does not divide {world} GPUs, so no whole {left} size remains.",
        "{sizes} = {product} 不能整除 {world} 个 GPU，剩不下整数的 {left} 大小。",
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
    "no-such-numbers": Text(
        "{cluster} does not compute in {precision}.", "{cluster} 不支持 {precision} 计算。"
    ),
    "does-not-divide-tp": Text(
        "{names} = {product} does not divide tp {tp}.", "{names} = {product} 不能整除 tp {tp}。"
    ),
    "no-such-run": Text(
        "The text holds one run only: there is no {run} in it.",
        "文本中只有一个运行，没有 {run}。",
    ),
    "launch-asks": Text(
        "The text does not say {fields}: give them.", "文本没有给出 {fields}，请补充。"
    ),
    "too-many-axes": Text(
        "{axes} axes are more than {limit}.", "{axes} 个轴超过了上限 {limit} 个。"
    ),
    "too-much-work": Text(
        "Too many {what}: this is more work than one request may cost.",
        "{what}过多，超出了一次请求允许的工作量。",
    ),
    "busy": Text(
        "The server is busy with other large requests; please try again in a moment.",
        "服务器正在处理其他大请求，请稍后再试。",
    ),
    "no-picture": Text(
        "This view has no picture of this layout to save.", "这个视图没有可保存的当前布局图。"
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
    "instances-with-gtp": Text(
        "The gtp axis does not go with {instances} optimizer instances.",
        "gtp 轴不能与 {instances} 个优化器实例一起使用。",
    ),
    "virtual-stages-without-pipeline": Text(
        "{vpp} virtual stages need a pipeline, and pp is 1.",
        "{vpp} 个虚拟阶段需要流水线，而 pp 为 1。",
    ),
    "sharp-group": Text(
        "SHARP cannot serve the group {group} here.", "此处 SHARP 不能用于组 {group}。"
    ),
    "bad-link": Text(
        "This link holds {value}, which the page cannot read; it starts anew.",
        "链接中的 {value} 无法识别；页面从头开始。",
    ),
    "bad-ranks": Text(
        "{value} is not a list of ranks, such as 3, 11, 16-23.",
        "{value} 不是 rank 列表；写法例如 3, 11, 16-23。",
    ),
    "too-many-ranks-named": Text(
        "The text names more than {limit} ranks.", "文本中的 rank 超过 {limit} 个。"
    ),
    "expert-tp-is-fixed": Text(
        "{framework} has no expert tensor parallel size of its own.",
        "{framework} 没有独立的专家张量并行大小。",
    ),
    "framework-has-no-option": Text(
        "{framework} has no {option}: they are options of Megatron's.",
        "{framework} 没有 {option}：这是 Megatron 的选项。",
    ),
    "name-taken": Text(
        "{name} is here a group of {framework}'s own; another type shows Megatron's.",
        "此处的 {name} 是 {framework} 自己的组；换一种类型可查看 Megatron 的同名组。",
    ),
    "framework-has-no-axis": Text("{framework} has no {axis}.", "{framework} 没有 {axis}。"),
    "framework-is-all-pipeline": Text(
        "{framework} has no data parallelism: its pipeline takes all {world} GPUs, not {pp}.",
        "{framework} 没有数据并行：流水线要用上全部 {world} 个 GPU，而不是 {pp} 个。",
    ),
    "no-such-group": Text(
        "This layout in {framework} makes no group {name}.",
        "在 {framework} 中，该布局没有 {name} 组。",
    ),
    "no-groups-chosen": Text(
        "No group is chosen: take some under More groups.", "没有选中任何组：请在“更多组”中选择。"
    ),
    "not-names": Text("{value} is not a list of group names.", "{value} 不是组名列表。"),
    "layers-do-not-divide": Text(
        "{count} layers, with those counted for the embedding and the loss, do not spread "
        "evenly over {stages} stages.",
        "{count} 层（含为嵌入和损失计入的层）不能平均分到 {stages} 个阶段。",
    ),
    "chunks-do-not-divide": Text(
        "The {count} layers of a stage do not make {vpp} equal chunks.",
        "一个阶段的 {count} 层不能分成 {vpp} 个相等的模型块。",
    ),
    "interleaving-needs-stages": Text(
        "vpp {vpp} needs more than one pipeline stage, and pp is {pp}.",
        "vpp {vpp} 需要不止一个流水线阶段，而 pp 为 {pp}。",
    ),
    "ends-with-accounted": Text(
        "Layer counts for the first and last stage do not go with counting the embedding or "
        "the loss as a layer.",
        "指定首尾阶段的层数时，不能再把嵌入或损失计为一层。",
    ),
    "one-stage-has-no-ends": Text(
        "The first and the last stage are two stages, and pp is {pp}.",
        "首阶段和末阶段是两个阶段，而 pp 为 {pp}。",
    ),
    "ends-leave-wrong": Text(
        "The first and last stage take {taken} of {layers} layers, which leaves {left} to the "
        "other {stages} stages.",
        "首尾阶段占用 {layers} 层中的 {taken} 层，给其余 {stages} 个阶段剩下 {left} 层。",
    ),
    "chunks-need-middle-stages": Text(
        "With the first and last stage given, vpp {vpp} needs a stage between them, and pp is "
        "{pp}.",
        "指定首尾阶段后，vpp {vpp} 要求中间还有阶段，而 pp 为 {pp}。",
    ),
    "not-a-multiple": Text(
        "{control} {value} is not a multiple of {of}.",
        "{control} {value} 不是 {of} 的倍数。",
    ),
    "batches-disagree": Text(
        "{micro_batches} micro-batches × {micro_batch} samples × DP {dp} = {product} samples a "
        "step, and the global batch says {global_batch}.",
        "{micro_batches} 个 micro-batch × {micro_batch} 个样本 × DP {dp} = 一步 {product} 个样本，"
        "而 global batch 为 {global_batch}。",
    ),
    "model-incomplete": Text(
        "The shape of this model is not known here: choose a model, or give {missing}.",
        "此处不知道该模型的结构：请选择模型，或填写{missing}。",
    ),
    "bad-layout": Text(
        "{value} is no layer of a layout: write E, t, m, L, a bar between stages, and *n after "
        "what is repeated.",
        "{value} 不是布局中的层：请用 E、t、m、L 书写，阶段之间用竖线，重复部分后写 *n。",
    ),
    "layout-too-long": Text(
        "The layout is longer than {limit} characters.",
        "布局超过 {limit} 个字符。",
    ),
    "layout-does-not-divide": Text(
        "The {stages} stages of the layout do not spread evenly over pp {pp}.",
        "布局的 {stages} 个阶段不能平均分给 pp {pp}。",
    ),
    "layout-has-other-vpp": Text(
        "The layout makes {chunks} chunks for each of pp {pp} ranks, and vpp is {vpp}.",
        "布局给 pp {pp} 的每个 rank 分出 {chunks} 个模型块，而 vpp 为 {vpp}。",
    ),
    "layout-first-is-not-embedding": Text(
        "The first layer of the layout is {found}, not the embedding.",
        "布局的第一层是 {found}，而不是 embedding。",
    ),
    "layout-last-is-not-loss": Text(
        "The last layer of the layout is {found}, not the loss.",
        "布局的最后一层是 {found}，而不是 loss。",
    ),
    "layout-repeats": Text(
        "The layout has {count} layers of the kind {layer}; there is one.",
        "布局中有 {count} 个 {layer} 层，只应有一个。",
    ),
    "layout-has-other-layers": Text(
        "The layout has {count} decoder layers, the model {layers}.",
        "布局有 {count} 个解码层，而模型有 {layers} 个。",
    ),
    "layout-has-other-mtp": Text(
        "The layout has {count} multi-token prediction layers, the model {mtp}.",
        "布局有 {count} 个多 token 预测层，而模型有 {mtp} 个。",
    ),
    "layout-mtp-too-early": Text(
        "A decoder layer comes after multi-token prediction.",
        "多 token 预测之后还有解码层。",
    ),
    "layout-mtp-not-in-last-chunk": Text(
        "Multi-token prediction is not in the last chunk of its pipeline rank.",
        "多 token 预测不在其流水线 rank 的最后一个模型块中。",
    ),
    "layout-mtp-in-two-stages": Text(
        "Multi-token prediction is in more than one stage.",
        "多 token 预测分在不止一个阶段中。",
    ),
    "unknown-operation": Text(
        "There is no operation {value}.",
        "没有操作 {value}。",
    ),
    "unknown-option": Text(
        "{operation} has no option {value}.",
        "{operation} 没有选项 {value}。",
    ),
    "no-backward": Text(
        "{operation} has no backward here.",
        "{operation} 在此没有反向。",
    ),
    "no-tensors": Text(
        "There are no tensors.",
        "没有张量。",
    ),
    "not-a-tensor": Text(
        "The tensor of rank {rank} is not an array of numbers.",
        "rank {rank} 的张量不是由数值组成的数组。",
    ),
    "shapes-differ": Text(
        "Rank {rank} has a tensor of shape {shape}, rank {other} of the same group one of "
        "{other_shape}.",
        "rank {rank} 的张量形状为 {shape}，而同组 rank {other} 的为 {other_shape}。",
    ),
    "does-not-split": Text(
        "Dim {dim} of the tensor has size {size}, which does not split over {ranks} ranks.",
        "张量第 {dim} 维（从 0 数起）的大小为 {size}，不能平均分给 {ranks} 个 rank。",
    ),
    "no-dims": Text(
        "A tensor that is a single number has no dim to cut or join along.",
        "单个数没有可供切分或拼接的维度。",
    ),
    "not-groups": Text(
        "{value} is not a list of groups of ranks, such as [[0, 1], [2, 3]].",
        "{value} 不是 rank 组的列表；写法例如 [[0, 1], [2, 3]]。",
    ),
    "rank-twice": Text(
        "Rank {rank} stands twice in the groups.",
        "rank {rank} 在各组中出现了两次。",
    ),
    "bad-document": Text(
        "This is no document of groups or ranks: {place} is {value}.",
        "这不是组或 rank 的文档：{place} 是 {value}。",
    ),
    "missing-in-document": Text(
        "This document has no {place}.",
        "该文档缺少 {place}。",
    ),
    "other-schema": Text(
        "This document has the schema {value}; {known} are read here.",
        "该文档的 schema 是 {value}；此处可读取 {known}。",
    ),
    "other-version": Text(
        "This document has version {value}; version {version} is read here.",
        "该文档的版本是 {value}；此处读取版本 {version}。",
    ),
    "not-a-text": Text("{value} is not a text.", "{value} 不是文本。"),
    "text-too-long": Text(
        "The text has {count} characters, more than {limit}.",
        "文本有 {count} 个字符，超过上限 {limit}。",
    ),
    "framework-cannot-express": Text(
        "{framework} has no words for {what}.", "{framework} 无法表达 {what}。"
    ),
    "no-axes": Text("A mesh needs at least one axis.", "网格至少需要一个轴。"),
    **API_REFUSALS,
    **COLLECTIVES_REFUSALS,
    **HANG_REFUSALS,
    **HOSTS_REFUSALS,
    **MEMORY_REFUSALS,
    **PIPELINE_REFUSALS,
    **TRAFFIC_REFUSALS,
}
"""A refusal by the code of its LayoutError; the facts of the error fill in the names."""

SPANS: dict[str, Text] = {
    "up": Text("from {minimum} up", "不小于 {minimum} "),
    "range": Text("from {minimum} to {maximum}", "从 {minimum} 到 {maximum} "),
}
