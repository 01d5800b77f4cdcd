# ruff: noqa: RUF001
"""Kinds of process group: what one such group carries, when, and over which links."""

from __future__ import annotations

import re

from .shapes import Kind, Text
from .types import CP_TITLE, DP_TITLE, EP_TITLE, PP_TITLE, TP_TITLE

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
        Text(
            "Splits the matrices of every layer. Activations are all-reduced in each layer, so "
            "it should stay on NVLink.",
            "切分每一层的矩阵。每层都要对激活值做 all-reduce，应留在 NVLink 上。",
        ),
    ),
    "cp": Kind(
        CP_TITLE,
        "CP",
        Text(
            "Carries K and V between the chunks of a sequence in every attention layer, and their "
            "gradients in the backward pass, by ring p2p, all-gather or all-to-all (which moves "
            "Q and the output too). "
            "It should stay on NVLink beside TP; when tp × cp is larger than the NVLink domain, "
            "the ring leaves it.",
            "在每个注意力层，通过环形 p2p、all-gather 或 all-to-all（还要移动 Q 和输出）"
            "在序列的各块之间传递 K 和 V，"
            "反向时还传递它们的梯度。"
            "最好与 TP 一起留在 NVLink 上；当 tp × cp 超出 NVLink 域时，环会跨出该域。",
        ),
        Text(
            "Splits every sequence. K and V travel through the group in each attention layer: it "
            "wants NVLink too.",
            "切分每条序列。每个注意力层都要在组内传递 K 和 V，也应走 NVLink。",
        ),
    ),
    "dp": Kind(
        DP_TITLE,
        "DP",
        Text(
            "The ranks of one DP group process different samples; cp is not counted. When cp is 1 "
            "they also average their gradients, once per step; otherwise the dp-cp group does. "
            "This is rare enough, and overlaps with backward well enough, to cross nodes.",
            "同一个 DP 组的 rank 处理不同的样本，cp 不计入其中。"
            "当 cp 为 1 时，它们还在每个训练步一起归约一次梯度；否则由 dp-cp 组完成。"
            "这种通信次数少，又能与反向计算重叠，可以跨节点。",
        ),
        Text(
            "The ranks of a group process different samples and average gradients once per step. "
            "That is rare enough to cross nodes.",
            "组内各 rank 处理不同的样本，每个训练步平均一次梯度。通信次数少，可以跨节点。",
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
        Text(
            "Averages gradients over both axes, data and context, once per step. "
            "It can cross nodes.",
            "在数据和上下文两个轴上平均梯度，每个训练步一次。可以跨节点。",
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
        Text(
            "Cuts the model into stages of layers, which pass activations on. It sends little "
            "and can cross nodes.",
            "把模型按层切成阶段，依次传递激活值。通信量小，可以跨节点。",
        ),
    ),
    "ep": Kind(
        EP_TITLE,
        "EP",
        Text(
            "Sends tokens to the ranks that hold their experts, and the results back, by "
            "all-to-all, in every MoE layer of every micro-batch, forward and backward. It lives "
            "on the expert grid, which gives the ranks of a stage other coordinates: ep is not "
            "bounded by dp, and one group may span the tp, cp and dp of the dense grid. The "
            "traffic is heavy: keep it on NVLink as far as it fits.",
            "在每个 micro-batch 的每个 MoE 层，"
            "前向和反向都用 all-to-all 把 token 送到持有其专家的 rank，再把结果送回。"
            "它位于专家网格，该网格给一个阶段内的 rank 另一套坐标：ep 不受 dp 限制，"
            "一个组可以跨越稠密网格的 tp、cp 和 dp。通信量大，应尽量留在 NVLink 上。",
        ),
        Text(
            "Deals out the experts of each MoE layer. Tokens travel to their experts and back, "
            "twice in every such layer.",
            "把每个 MoE 层的专家分给各 rank。每个 MoE 层中，token 都要送到专家处再送回。",
        ),
    ),
    "etp": Kind(
        Text("Expert tensor parallel (ETP)", "专家张量并行（ETP）"),
        "ETP",
        Text(
            "Cuts the matrices of each expert: in every MoE layer its ranks all-gather the "
            "tokens of the experts that they share, and reduce-scatter the results. It is the tp "
            "of the expert grid. If it is not given, etp is tp, not 1; many MoE runs set it to 1 "
            "and make ep larger instead. Like TP, it belongs on NVLink.",
            "切分每个专家的矩阵：在每个 MoE 层，组内 rank 对共有专家的 token 做 all-gather，"
            "再对结果做 reduce-scatter。它是专家网格的 tp。不指定时 etp 等于 tp，而不是 1；"
            "许多 MoE 训练把它设为 1，改用更大的 ep。与 TP 一样，应走 NVLink。",
        ),
        Text(
            "Splits the matrices of each expert. Tokens are gathered before each MoE layer and "
            "results scattered after it.",
            "切分每个专家的矩阵。每个 MoE 层之前收集 token，之后分散结果。",
        ),
    ),
    "edp": Kind(
        Text("Expert data parallel (EDP)", "专家数据并行（EDP）"),
        "EDP",
        Text(
            "Its ranks hold the same experts, or the same slices of them, and reduce their "
            "gradients once per step; dense gradients go over dp-cp instead. Its size is what "
            "remains on the expert grid, edp = world / (etp × ep × pp), so it may be 1 where dp "
            "is large. This reduction, too, hides behind backward and may cross nodes.",
            "组内的 rank 持有相同的专家（或其相同的切片），每个训练步归约一次它们的梯度；"
            "稠密部分的梯度则在 dp-cp 上归约。它的大小是专家网格上剩下的部分："
            "edp = world /（etp × ep × pp），因此 dp 很大时它也可能为 1。"
            "这一归约同样能被反向计算掩盖，也可以跨节点。",
        ),
        Text(
            "Holds copies of the same experts, which average their gradients once per step. That "
            "may cross nodes.",
            "各 rank 持有相同专家的副本，每个训练步平均一次它们的梯度。可以跨节点。",
        ),
    ),
    "tp-ep": Kind(
        Text("Tensor and expert parallel (TP-EP)", "张量与专家并行（TP-EP）"),
        "TP-EP",
        Text(
            "Joins etp and ep of the expert grid: its ranks together hold every expert of their "
            "layers. Other ways to dispatch than a plain all-to-all work on it, for example an "
            "all-gather of all tokens with a reduce-scatter of the results, and here ranks tell "
            "each other how many tokens each expert gets. It runs in every MoE layer and wants "
            "NVLink.",
            "把专家网格的 etp 和 ep 合在一起：组内 rank 合起来持有所在各层的每个专家。"
            "普通 all-to-all 以外的分发方式在此进行，例如对所有 token 做 all-gather，"
            "再对结果做 reduce-scatter；各 rank 还在此交换每个专家的 token 数。"
            "每个 MoE 层都要通信，宜走 NVLink。",
        ),
    ),
    "tp-ep-pp": Kind(
        Text("Expert model parallel (TP-EP-PP)", "专家模型并行（TP-EP-PP）"),
        "TP-EP-PP",
        Text(
            "Does for experts what mp does for dense layers: without a distributed optimizer, "
            "their share of the gradient norm and the overflow flag are found over it, once per "
            "step. Its ranks together hold one copy of all the experts of the model; its tp is "
            "etp, the tp of the expert grid. Only a few numbers travel, so slow links will do.",
            "对专家所起的作用与 mp 对稠密层相同：不使用分布式优化器时，"
            "每个训练步在组内求一次专家部分的梯度范数和溢出标志。"
            "组内 rank 合起来持有模型的全部专家各一份；其中的 tp 是 etp，即专家网格的 tp。"
            "只传几个数，较慢的链路也可以。",
        ),
    ),
    "mp": Kind(
        Text("Model parallel (MP)", "模型并行（MP）"),
        "MP",
        Text(
            "Joins tp and pp of the dense grid (and gtp, if it is used): its ranks together hold "
            "one copy of the dense layers. cp is not in it, since weights are replicated over "
            "cp. Without a distributed optimizer, the gradient norm and the overflow flag are "
            "found over it once per step. It carries next to nothing and can cross nodes.",
            "把稠密网格的 tp 和 pp（以及使用时的 gtp）合在一起：组内 rank 合起来持有一份稠密层。"
            "cp 不在其中，因为权重在 cp 上是复制的。不使用分布式优化器时，"
            "每个训练步在组内求一次梯度范数和溢出标志。通信量几乎可以忽略，可以跨节点。",
        ),
    ),
    "embd": Kind(
        Text("Word embedding (EMBD)", "词嵌入（EMBD）"),
        "EMBD",
        Text(
            "Holds by default the first and the last stage of a pipeline; ranks of the other "
            "stages are in no such group, and with pp 1 it is a single rank. If the output layer "
            "re-uses the word embedding, both ends all-reduce its gradient, once per step at the "
            "end of backward. It lives on the dense grid and sends a table cut by tp across the "
            "whole pipeline, so it usually crosses nodes.",
            "默认包含一条流水线的首尾两个阶段；其余阶段的 rank 不属于任何这样的组，"
            "pp 为 1 时它只有一个 rank。如果输出层复用词嵌入，"
            "两端在每个训练步的反向结束时对其梯度做一次 all-reduce。它位于稠密网格，"
            "要跨整条流水线传递按 tp 切分的一张表，因此通常跨节点。",
        ),
    ),
    "pos-embd": Kind(
        Text("Position embedding (POS-EMBD)", "位置编码（POS-EMBD）"),
        "POS-EMBD",
        Text(
            "Holds the first stage of a pipeline, where learned position embeddings live: by "
            "default one rank, which sends nothing. A model may add a second stage that has them "
            "too, such as the first of a decoder; then their gradients are summed once per step. "
            "Like embd it is made from pipelines of the dense grid, and leaves all other ranks "
            "out.",
            "包含一条流水线的首个阶段，可学习位置编码就在那里：默认只有一个 rank，没有通信。"
            "模型可以再加入另一个也有可学习位置编码的阶段，例如解码器的首个阶段，"
            "此时每个训练步把两处的梯度相加一次。与 embd 一样由稠密网格的流水线得到，"
            "不包含其他 rank。",
        ),
    ),
    "tp-cp": Kind(
        Text("Tensor and context parallel (TP-CP)", "张量与上下文并行（TP-CP）"),
        "TP-CP",
        Text(
            "The ranks of the dense grid that share a sequence, tp × cp neighbours in Megatron's "
            "default order. In every MoE layer the router's load-balancing loss is summed over "
            "it, because the tokens of a sequence are spread over these ranks; FP8 can take its "
            "scaling maxima from it. The messages are small, but frequent: NVLink is best.",
            "稠密网格中共同处理同一条序列的 rank，在 Megatron 的默认顺序下是相邻的 tp × cp 个。"
            "一条序列的 token 分散在这些 rank 上，因此在每个 MoE 层，"
            "路由器的负载均衡损失在组内求和；FP8 的缩放最大值也可以在组内求得。消息很小，"
            "但很频繁，最好走 NVLink。",
        ),
    ),
    "tp-dp": Kind(
        Text("Tensor and data parallel (TP-DP)", "张量与数据并行（TP-DP）"),
        "TP-DP",
        Text(
            "All ranks of a stage that have the same cp coordinate on the dense grid. It is "
            "there for FP8 training that leaves cp out when it all-reduces the largest absolute "
            "values of its tensors. Megatron's own layers ask for tp-dp-cp, even when cp is 1, "
            "so it is mostly idle; such messages are tiny and may cross nodes.",
            "一个阶段中在稠密网格上 cp 坐标相同的所有 rank。供 FP8 训练在不计 cp 的情况下，"
            "对各张量的最大绝对值做 all-reduce。Megatron 自己的各层即使 cp 为 1 也使用 tp-dp-cp，"
            "因此这种组大多闲置；这类消息极小，可以跨节点。",
        ),
    ),
    "tp-dp-cp": Kind(
        Text("Tensor, data and context parallel (TP-DP-CP)", "张量、数据与上下文并行（TP-DP-CP）"),
        "TP-DP-CP",
        Text(
            "All ranks of a stage in the dense grid, so every token of the batch is somewhere in "
            "it. FP8 maxima are made common here, and MoE routers balance their load over the "
            "whole batch: token counts in every layer that asks for it, the experts' bias once "
            "per step. Short messages, though the group spans every node of the stage.",
            "稠密网格中一个阶段的所有 rank，因此 batch 中的每个 token 都在组内某处。"
            "FP8 的最大值在此统一，MoE 路由器在此按整个 batch 均衡负载："
            "需要时在各层汇总 token 数，并在每个训练步更新一次专家偏置。消息很短，"
            "但该组会跨越这个阶段的所有节点。",
        ),
    ),
    "hcp": Kind(
        Text("Hierarchical context parallel (HCP)", "分层上下文并行（HCP）"),
        "HCP",
        Text(
            "Cuts a cp group of the dense grid into levels, whose sizes multiply to cp. In every "
            "attention layer, neighbours in level 0 exchange heads for parts of the sequence by "
            "all-to-all, and K and V go round the ring p2p of level 1, whose members are further "
            "apart. So level 0 wants NVLink, and level 1 can cross nodes.",
            "把稠密网格的一个 cp 组切成几级，各级大小之积等于 cp。在每个注意力层，"
            "第 0 级内相邻的 rank 用 all-to-all 在注意力头与序列片段之间互换，"
            "K 和 V 则在第 1 级的环形 p2p 中传递，其成员相距更远。因此第 0 级应走 NVLink，"
            "第 1 级可以跨节点。",
        ),
    ),
    "hybrid-dp-cp": Kind(
        Text("Hybrid context parallel (HYBRID-DP-CP)", "混合上下文并行（HYBRID-DP-CP）"),
        "HYBRID-DP-CP",
        Text(
            "Cuts each dp-cp group of the dense grid into runs of one power of two, so that "
            "every sequence gets as many ranks as its length needs. K and V travel inside a run "
            "in every attention layer: short runs stay on NVLink, long ones cross nodes. The "
            "last run may be shorter; the largest size is the dp-cp group itself. It does not go "
            "with pipeline parallelism.",
            "把稠密网格的每个 dp-cp 组按某个二的幂切成若干段，"
            "让每条序列按长度得到所需数量的 rank。在每个注意力层，K 和 V 在段内传递："
            "短的段留在 NVLink 上，长的段会跨节点。最后一段可能较短；"
            "最大的一档就是 dp-cp 组本身。不能与流水线并行同时使用。",
        ),
    ),
    "intra-dp-cp": Kind(
        Text(
            "Data parallel inside an optimizer instance (INTRA-DP-CP)",
            "优化器实例内的数据并行（INTRA-DP-CP）",
        ),
        "INTRA-DP-CP",
        Text(
            "With N instances of the distributed optimizer, each dp-cp group of the dense grid "
            "is cut into N consecutive runs, and the optimizer state is cut over one run only. "
            "Once per step the run does a reduce-scatter of gradients and an all-gather of "
            "updated parameters, overlapped with computation. Shorter runs keep this bulk on "
            "fast links, at the price of memory.",
            "分布式优化器有 N 个实例时，稠密网格的每个 dp-cp 组切成连续的 N 段，"
            "优化器状态只在一段内切分。每个训练步，段内对梯度做 reduce-scatter，"
            "对更新后的参数做 all-gather，都与计算重叠。段越短，这些大量通信越能留在快速链路上，"
            "代价是显存。",
        ),
    ),
    "intra-edp": Kind(
        Text(
            "Expert data parallel inside an optimizer instance (INTRA-EDP)",
            "优化器实例内的专家数据并行（INTRA-EDP）",
        ),
        "INTRA-EDP",
        Text(
            "The run of an edp group that belongs to one of N optimizer instances: edp / N ranks "
            "in a row on the expert grid. They cut the optimizer state of their experts among "
            "them, reduce-scatter its gradients and all-gather its parameters, as intra-dp-cp "
            "does for dense weights. It is the busier of the two levels of edp and wants the "
            "faster links.",
            "一个 edp 组中属于 N 个优化器实例之一的一段：专家网格上连续的 edp / N 个 rank。"
            "它们之间切分所持专家的优化器状态，对其梯度做 reduce-scatter，对其参数做 all-gather，"
            "如同 intra-dp-cp 对稠密权重那样。它是 edp 两级中较忙的一级，需要较快的链路。",
        ),
    ),
    "inter-edp": Kind(
        Text("Between optimizer instances (INTER-EDP)", "优化器实例之间（INTER-EDP）"),
        "INTER-EDP",
        Text(
            "Joins the N optimizer instances: every edp / N places along an edp group, the ranks "
            "that keep the same shard. Once per step, after the reduce-scatter inside the "
            "instances, they all-reduce their gradient shards. Despite its name it also carries "
            "dense gradients, as the dense grid has no such group of its own. A shard is small "
            "enough for slow links.",
            "连接 N 个优化器实例：沿一个 edp 组每隔 edp / N 个位置取一个 rank，"
            "它们保存同一个分片。每个训练步，在各实例内做完 reduce-scatter 之后，"
            "它们对梯度分片做一次 all-reduce。虽然名为专家组，它也传递稠密部分的梯度，"
            "因为稠密网格没有自己的这种组。分片较小，可以走慢速链路。",
        ),
    ),
    "intra-dist-opt": Kind(
        Text("Optimizer instance (INTRA-DIST-OPT)", "优化器实例（INTRA-DIST-OPT）"),
        "INTRA-DIST-OPT",
        Text(
            "All ranks of one instance of the distributed optimizer, across all stages and all "
            "the experts; with one instance, the whole world. The gradient norm is found over it "
            "once per step, so a few numbers cross all nodes. Megatron lists its ranks unsorted, "
            "one tp-ep-pp group after another, but torch sorts them: a rank's place in the group "
            "follows the sorted list.",
            "分布式优化器一个实例的所有 rank，跨所有阶段和所有专家；只有一个实例时即整个 world。"
            "每个训练步在组内求一次梯度范数，因此只有几个数跨越所有节点。"
            "Megatron 给出的 rank 未排序，由若干 tp-ep-pp 组依次相接，但 torch 会排序："
            "rank 在组内的位置以排序后为准。",
        ),
    ),
    "gtp": Kind(
        Text("Weight rematerialization (GTP)", "权重重物化（GTP）"),
        "GTP",
        Text(
            "Experimental in Megatron (2026): dense weights, cut by tp, are cut once more. "
            "Before each use an all-gather over this group restores the slice of tp, and a "
            "reduce-scatter returns its gradient, both overlapped with computation. It is ZeRO 3 "
            "for single weights: its ranks read different samples. This runs for every "
            "micro-batch, so it wants NVLink, next to TP.",
            "Megatron 的实验功能（2026）：稠密权重按 tp 切分后再切一次。每次使用前，"
            "组内的 all-gather 恢复 tp 的切片，再用 reduce-scatter 送回其梯度，都与计算重叠。"
            "它相当于针对单个权重的 ZeRO 3：组内 rank 读取不同的样本。每个 micro-batch 都要进行，"
            "因此应在 TP 旁边，走 NVLink。",
        ),
    ),
    "egtp": Kind(
        Text("Expert weight rematerialization (EGTP)", "专家权重重物化（EGTP）"),
        "EGTP",
        Text(
            "The gtp of the expert grid, with a size of its own: the matrices of each expert, "
            "cut by etp, are cut further. They are restored by an all-gather before each use, "
            "and a reduce-scatter returns their gradients, in every MoE layer. In Megatron's "
            "order it comes after ep, so its ranks are further apart and may reach over the edge "
            "of NVLink. It is as experimental as gtp.",
            "专家网格的 gtp，大小独立设置：每个专家的矩阵按 etp 切分后进一步切分。在每个 MoE 层，"
            "每次使用前用 all-gather 恢复，再用 reduce-scatter 送回其梯度。"
            "在 Megatron 的顺序中它排在 ep 之后，因此组内 rank 相距更远，可能超出 NVLink 的范围。"
            "它与 gtp 一样是实验功能。",
        ),
    ),
    "gtp-dp": Kind(
        Text("Data parallel with GTP (GTP-DP)", "含 GTP 的数据并行（GTP-DP）"),
        "GTP-DP",
        Text(
            "When gtp is above 1, the ranks of a gtp group process different samples on the dense "
            "grid, so the batch is dealt out over gtp × dp. The dp "
            "group then holds only the copies of the same slices. It has little to send in a "
            "step, and no need of fast links.",
            "当 gtp 大于 1 时，在稠密网格上，"
            "同一个 gtp 组的 rank 处理不同的样本，所以 batch 按 gtp × dp 分配。"
            "此时 dp 组只包含相同切片的各份副本。每个训练步几乎没有通信，不需要快速链路。",
        ),
    ),
    "gtp-dp-cp": Kind(
        Text(
            "Data and context parallel with GTP (GTP-DP-CP)",
            "含 GTP 的数据与上下文并行（GTP-DP-CP）",
        ),
        "GTP-DP-CP",
        Text(
            "All ranks of a stage that share a slice of tp on the dense grid and work on "
            "different tokens: averages over the whole batch, such as the reported loss, are "
            "taken here once per step. Gradients of weights that gtp cuts do not cross it in one "
            "go: gtp does a reduce-scatter first, and dp-cp reduces the rest. Any links will do.",
            "一个阶段中在稠密网格上 tp 切片相同、处理不同 token 的所有 rank："
            "整个 batch 的平均值，例如上报的损失，每个训练步在此求一次。由 gtp 切分的权重，"
            "其梯度不在此一次归约：先在 gtp 上做 reduce-scatter，再由 dp-cp 归约其余部分。"
            "任何链路都可以。",
        ),
    ),
    "egtp-edp": Kind(
        Text("Expert data parallel with EGTP (EGTP-EDP)", "含 EGTP 的专家数据并行（EGTP-EDP）"),
        "EGTP-EDP",
        Text(
            "Joins egtp and edp of the expert grid: all ranks that work for the same experts, "
            "whichever slices of them they keep. The gradients of these experts take two steps "
            "inside it, a reduce-scatter over egtp in every MoE layer and a reduction over edp "
            "once per step. The first wants fast links, the second can cross nodes.",
            "把专家网格的 egtp 和 edp 合在一起：为同一批专家工作的所有 rank，"
            "无论它们保存哪些切片。这些专家的梯度在组内分两步归约："
            "在每个 MoE 层沿 egtp 做 reduce-scatter，每个训练步再沿 edp 归约一次。"
            "前者需要快速链路，后者可以跨节点。",
        ),
    ),
    "tp-ep-egtp-pp": Kind(
        Text(
            "Expert model parallel with EGTP (TP-EP-EGTP-PP)",
            "含 EGTP 的专家模型并行（TP-EP-EGTP-PP）",
        ),
        "TP-EP-EGTP-PP",
        Text(
            "The tp-ep-pp group widened by egtp: where egtp cuts the experts once more, only "
            "these ranks together hold one copy of them all. It serves the gradient norm and the "
            "overflow flag of the expert grid, once per step, when the optimizer is not "
            "distributed. The message is a few bytes, over as many nodes as the copy takes.",
            "加上 egtp 的 tp-ep-pp 组：egtp 把专家再切一次时，"
            "这些 rank 合起来才持有全部专家各一份。优化器不是分布式时，"
            "每个训练步用它求一次专家网格的梯度范数和溢出标志。消息只有几个字节，"
            "跨越这一份所占的所有节点。",
        ),
    ),
}
"""By the name of the group; of numbered ones (hcp-l0, hybrid-dp-cp-2) by the family's name."""

NUMBERED = re.compile(r"(hcp)-l\d+|(hybrid-dp-cp)-\d+", re.ASCII)


def kind_of(name: str) -> Kind:
    """The kind of a group by its own name, which may carry a number.

    >>> kind_of("dp-cp").short, kind_of("hcp-l1").short, kind_of("hybrid-dp-cp-4").short
    ('DP-CP', 'HCP', 'HYBRID-DP-CP')

    Errors: KeyError for a name that no kind has.
    """
    numbered = NUMBERED.fullmatch(name)
    return KINDS[numbered[1] or numbered[2] if numbered else name]
