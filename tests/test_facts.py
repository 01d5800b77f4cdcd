# ruff: noqa: RUF001
"""What the sentences must say, and the errors of the playground that they must not repeat."""

from __future__ import annotations

import re

from cases import every
from sentences import KINDS_OF_TYPE, TEXTS

import descriptions
from descriptions import KINDS, LANGUAGES, TYPES

# fault -> (pattern, a sentence of that fault that the pattern must catch)
FAULTS = {
    "gathers complete weights": (
        r"(complete|full|whole|entire) (weights?|parameters?)\b",
        "TP all-reduces to get the complete weights.",
    ),
    "gathers complete weights (zh)": (r"(完整|全部|整个)的?(权重|参数)", "以得到完整的权重。"),
    "TP all-reduces weights": (
        r"all-reduces? (of |the )*(weights?|parameters?)",
        "TP does an all-reduce of weights.",
    ),
    "TP all-reduces weights (zh)": (
        r"(权重|参数)(的|做|进行| )*all-?reduce",
        "对权重做 all-reduce。",
    ),
    "groups from 1": (r"\b[Gg]roups? 1\b|\b(from|at) (1|one)\b", "Data Group 1: [0, 2]"),
    "groups from 1 (zh)": (r"从 ?[1一] ?(开始|起)|第 ?[1一] ?组", "组从 1 开始编号。"),
    "a column is a stage": (r"\bcolumns?\b[^,;.]*\bstages?\b", "Each column is a stage."),
    "a column is a stage (zh)": (r"(?<!序)列[^，；。]*(阶段|stage)", "每一列都是一个 stage。"),
    "a pipeline is a stage": (
        r"(PP|process|pipeline) group[^,;.]*\b(is|forms) a stage",
        "One PP group is a stage.",
    ),
    "a pipeline is a stage (zh)": (
        r"组[^，；。]*是一个[^，；。]*(阶段|stage)",
        "每个 PP 组是一个阶段。",
    ),
    "rank that is not global": (
        r"\b(DP|TP|PP|CP|[dtpc]p|e[td]?p|e?gtp|E[TD]?P|local|(data|tensor|pipeline|context|expert)"
        r"[- ]parallel) ranks?\b",
        "its DP rank is 5",
    ),
    "rank that is not global (zh)": (
        r"((?<![A-Za-z])(DP|TP|PP|CP|[dtpc]p|e[td]?p|e?gtp|E[TD]?P) |局部 ?|本地 ?|并行 ?)rank",
        "它的 TP rank 是 5",
    ),
    "CP is for FP8 only": (r"\bonly\b[^.;]*FP8|FP8 only", "CP only works with FP8."),
    "CP is for FP8 only (zh)": (r"(只|仅)[^。；]*FP8", "只有使用 FP8 才能用 CP。"),
}


@every("fault", FAULTS)
def test_no_text_repeats_an_old_error(fault: str) -> None:
    pattern, example = FAULTS[fault]
    assert re.search(pattern, example), "the pattern must catch its own example"
    wrong = [w for w, t in TEXTS.items() for lang in LANGUAGES if re.search(pattern, t[lang])]
    assert wrong == []


def test_tensor_parallel_is_about_activations_never_weights() -> None:
    for body in (TYPES["tp"].body, KINDS["tp"].body):
        assert not re.search(r"weights?|parameters?", body.en)
        assert not re.search("权重|参数", body.zh)


@every("name", [name for name in TYPES if "tp" in KINDS_OF_TYPE[name]])
def test_types_with_tp_say_that_it_carries_activations_and_their_gradients(name: str) -> None:
    body = TYPES[name].body
    assert re.search(r"TP .*activations( and their gradients|.*activation gradients)", body.en)
    assert re.search(r"TP .*激活值(及其梯度|.*激活值梯度)", body.zh)


# fact -> (where it must be said, English pattern, Chinese pattern)
FACTS = {
    "tp kind: activations, forward": (
        KINDS["tp"].body,
        "activations in the forward",
        "前向对激活值",
    ),
    "tp kind: inside a node": (KINDS["tp"].body, "one node, on NVLink", "同一节点内，走 NVLink"),
    "tp: two and two": (
        TYPES["tp"].body,
        "two all-reduces .* two of",
        "两次激活值.*两次激活值梯度",
    ),
    "tp: sequence parallelism": (TYPES["tp"].body, "sequence parallelism", "序列并行"),
    "dp: same weights without ZeRO": (TYPES["dp"].body, "Without ZeRO.*same weights", "ZeRO.*相同"),
    "dp: once per step, overlapped": (
        TYPES["dp"].body,
        "[Oo]nce per step.*overlap",
        "每个训练步.*重叠",
    ),
    "dp: distributed optimizer": (TYPES["dp"].body, "distributed optimizer", "分布式优化器"),
    "dp kind: different samples": (KINDS["dp"].body, "different samples", "不同的样本"),
    "dp kind: cp not counted": (KINDS["dp"].body, "cp is not counted", "cp 不计入"),
    "dp kind: gradients when cp is 1": (KINDS["dp"].body, "cp is 1.*gradients", "cp 为 1.*梯度"),
    "dp-cp kind: gradients": (KINDS["dp-cp"].body, "reduce gradients", "归约一次梯度"),
    "dp-cp kind: replicated over cp": (KINDS["dp-cp"].body, "replicated over cp", "在 cp .*复制"),
    "dp-cp kind: samples over dp": (KINDS["dp-cp"].body, "over dp alone", "只按 dp 分配"),
    "pp: a stage": (
        TYPES["pp"].body,
        r"stage is all the ranks with the same pipeline coordinate: world / pp consecutive ranks "
        r"in Megatron's default order",
        r"流水线坐标相同的所有 rank：在 Megatron 的默认顺序下，是连续的 world / pp 个 rank",
    ),
    "pp: a group is a pipeline": (TYPES["pp"].body, "one whole pipeline", "一条完整的流水线"),
    "pp kind: a group is a pipeline": (KINDS["pp"].body, "one whole pipeline", "一条完整的流水线"),
    "pp: what it passes": (
        TYPES["pp"].body,
        "activations forward and gradients back by point-to-point",
        "点对点的发送和接收，前向传递激活值，反向传回梯度",
    ),
    "pp kind: what it passes": (
        KINDS["pp"].body,
        "activations forward and gradients back .*point to point",
        "点对点地前向传递激活值、反向传回梯度",
    ),
    "cp kind: K and V travel": (
        KINDS["cp"].body,
        "K and V .*ring p2p, all-gather or all-to-all",
        "环形 p2p、all-gather 或 all-to-all.* K 和 V",
    ),
    "pp kind: a stage": (KINDS["pp"].body, "same pipeline coordinate", "流水线坐标相同"),
    "pp: the bubble": (TYPES["pp"].body, "micro-batches.*bubble", "micro-batch.*气泡"),
    "cp: chunks": (
        TYPES["cp"].body,
        r"2 × cp chunks.*i and 2 × cp - 1 - i",
        r"2 × cp 块.*2 × cp - 1 - i",
    ),
    "cp: K and V travel": (
        TYPES["cp"].body,
        "K and V travel.*ring p2p, all-gather or all-to-all",
        "K 和 V 通过环形 p2p、all-gather 或 all-to-all",
    ),
    "cp: precisions": (
        TYPES["cp"].body,
        "FP16, BF16 and FP8 with Transformer Engine",
        "Transformer Engine 支持 FP16、BF16 和 FP8",
    ),
    "cp: NVLink domain": (
        TYPES["cp"].body,
        "tp × cp is larger than the NVLink",
        "tp × cp 超出 NVLink",
    ),
    "dp+tp: as much DP as fits": (TYPES["dp+tp"].body, "as memory allows", "显存允许"),
    "dp+pp: checkpointing": (TYPES["dp+pp"].body, "activation checkpointing", "激活重计算"),
    "dp+pp: less traffic": (
        TYPES["dp+pp"].body,
        "less data than DP [+] TP",
        "通信量小于 DP [+] TP",
    ),
    "dp+pp: schedules": (TYPES["dp+pp"].body, "interleaving and zero-bubble", "交错调度和零气泡"),
    "dp+tp+pp: 175B": (TYPES["dp+tp+pp"].body, "at most 8.*175B", "不超过 8.*175B"),
    "cp+dp: feed-forward": (TYPES["cp+dp"].body, "feed-forward", "前馈"),
    "ep kind: tokens by all-to-all": (
        KINDS["ep"].body,
        "tokens to the ranks that hold their experts, .* all-to-all",
        "all-to-all 把 token 送到持有其专家的 rank",
    ),
    "ep kind: not bounded by dp": (
        KINDS["ep"].body,
        "ep is not bounded by dp, and one group may span the tp, cp and dp",
        "ep 不受 dp 限制，一个组可以跨越稠密网格的 tp、cp 和 dp",
    ),
    "ep: bounded by experts": (
        TYPES["ep"].body,
        "bounded by the number of experts and by the ranks of a stage, not by dp",
        "受专家数和一个阶段的 rank 数限制，而不受 dp 限制",
    ),
    "etp kind: defaults to tp": (
        KINDS["etp"].body,
        "not given, etp is tp, not 1",
        "不指定时 etp 等于 tp，而不是 1",
    ),
    "edp kind: what remains": (
        KINDS["edp"].body,
        r"what remains .*edp = world / \(etp × ep × pp\)",
        "剩下的部分：edp = world /（etp × ep × pp）",
    ),
    "edp kind: dense goes elsewhere": (
        KINDS["edp"].body,
        "dense gradients go over dp-cp",
        "稠密部分的梯度则在 dp-cp 上归约",
    ),
    "ep+edp: what remains": (
        TYPES["ep+edp"].body,
        r"edp = world / \(etp × ep × pp\)",
        "edp = world /（etp × ep × pp）",
    ),
    "moe: two grids, one world": (
        TYPES["moe"].body,
        "tp × cp × dp × pp for dense layers and etp × ep × edp × pp for experts, .* the world",
        "稠密层用 tp × cp × dp × pp，专家用 etp × ep × edp × pp，.*等于 world",
    ),
    "moe: ep exceeds dp": (TYPES["moe"].body, "ep can exceed dp", "ep 可以大于 dp"),
    "moe: where ep and cp meet": (
        TYPES["moe"].body,
        "cp and ep meet, since both are made of neighbouring ranks of a stage",
        "cp 与 ep 会相遇，因为两者都由同一阶段内相邻的 rank 组成",
    ),
    "mp kind: cp is not in it": (KINDS["mp"].body, "cp is not in it", "cp 不在其中"),
    "embd kind: ends only": (
        KINDS["embd"].body,
        "the first and the last stage .*other stages are in no such group",
        "首尾两个阶段；其余阶段的 rank 不属于任何这样的组",
    ),
    "pos-embd kind: first stage": (KINDS["pos-embd"].body, "the first stage", "首个阶段"),
    "tp-ep kind: its tp is etp": (KINDS["tp-ep"].body, "etp and ep", "etp 和 ep"),
    "tp-ep-pp kind: its tp is etp": (KINDS["tp-ep-pp"].body, "tp is etp", "tp 是 etp"),
    "hcp kind: levels": (KINDS["hcp"].body, "sizes multiply to cp", "大小之积等于 cp"),
    "hybrid-dp-cp kind: short run": (
        KINDS["hybrid-dp-cp"].body,
        "last run may be shorter",
        "最后一段可能较短",
    ),
    "inter-edp kind: dense too": (
        KINDS["inter-edp"].body,
        "also carries dense gradients",
        "也传递稠密部分的梯度",
    ),
    "intra-dist-opt kind: unsorted": (
        KINDS["intra-dist-opt"].body,
        "Megatron lists its ranks unsorted.*torch sorts them",
        "Megatron 给出的 rank 未排序.*torch 会排序",
    ),
    "gtp kind: experimental": (KINDS["gtp"].body, "Experimental", "实验功能"),
    "reading: counted from 0": (
        descriptions.HOW_TO_READ["small"],
        "global rank of a GPU, from 0",
        "从 0 开始的全局 rank",
    ),
    "reading: label decides": (
        descriptions.HOW_TO_READ["small"],
        "so the label decides",
        "以标签为准",
    ),
    "reading: 10 colours": (descriptions.HOW_TO_READ["small"], "after 10 groups", "超过 10 个组"),
    "reading: pin": (
        descriptions.HOW_TO_READ["point"],
        "click or press Enter to keep it.*Esc",
        "单击或按回车固定.*Esc",
    ),
    "large: rows": (
        descriptions.HOW_TO_READ["large"],
        "a row of a band a pipeline stage",
        "每段中的一行是一个流水线阶段",
    ),
    "large: block": (
        descriptions.HOW_TO_READ["large"],
        "inside a replica tp and cp come first",
        "副本内先排 tp 和 cp",
    ),
}


@every("fact", FACTS)
def test_the_fact_is_told_in_both_languages(fact: str) -> None:
    text, english, chinese = FACTS[fact]
    assert re.search(english, text.en), text.en
    assert re.search(chinese, text.zh), text.zh


@every("name", [name for name in TYPES if "cp" in KINDS_OF_TYPE[name]])
def test_types_with_cp_say_what_it_carries_and_who_reduces_gradients(name: str) -> None:
    body = TYPES[name].body
    assert re.search(r"\bK and V\b", body.en)
    assert "K 和 V" in body.zh
    assert any("dp-cp" in s and "radients" in s for s in re.split(r"[.;]", body.en))
    assert any("dp-cp" in s and "梯度" in s for s in re.split("[。；]", body.zh))
