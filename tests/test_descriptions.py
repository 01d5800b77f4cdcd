# ruff: noqa: RUF001
"""The sentences of the page: complete in both languages, alike in both, and free of old errors."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

import pytest

import descriptions
from descriptions import KINDS, LANGUAGES, TYPES, Text, kind_of
from groups.conventions import CONVENTIONS
from groups.megatron import process_groups
from groups.presets import PRESETS

CHINESE = re.compile(r"[\u4e00-\u9fff]")
FULL_WIDTH = re.compile(r"[\u3000-\u303f\uff00-\uffef]")


def texts_in(value: object, where: str) -> Iterator[tuple[str, Text]]:
    """Every Text reachable from `value`, with a readable path to it."""
    if isinstance(value, Text):
        yield where, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from texts_in(item, f"{where}[{key}]")
    elif isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from texts_in(item, f"{where}[{index}]")
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts_in(getattr(value, field.name), f"{where}.{field.name}")


ROOTS = ("TYPES", "KINDS", "HOW_TO_READ", "HOW_TO_READ_LARGE")
TEXTS = {where: text for r in ROOTS for where, text in texts_in(getattr(descriptions, r), r)}
BODIES = {where: text for where, text in TEXTS.items() if ".title" not in where}
every_text = pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
every_body = pytest.mark.parametrize("text", BODIES.values(), ids=BODIES)


# --- The shape of the data ------------------------------------------------------------------------

KINDS_OF_TYPE = {
    "dp": ("dp",),
    "tp": ("tp",),
    "pp": ("pp",),
    "cp": ("cp",),
    "dp+tp": ("dp", "tp"),
    "dp+pp": ("dp", "pp"),
    "dp+tp+pp": ("dp", "tp", "pp"),
    "cp+dp": ("cp", "dp"),
    "cp+dp+tp": ("cp", "dp", "tp"),
    "cp+dp+pp": ("cp", "dp", "pp"),
    "cp+dp+tp+pp": ("cp", "dp", "tp", "pp"),
    "cp+tp": ("cp", "tp"),
    "cp+pp": ("cp", "pp"),
    "cp+tp+pp": ("cp", "tp", "pp"),
    "ep": ("ep",),
    "ep+edp": ("ep", "etp", "edp"),
    "moe": ("tp", "cp", "dp", "pp", "etp", "ep", "edp"),
    "model": ("mp", "embd", "pos-embd"),
    "framework": (),
    "chosen": (),
}


def test_types_come_in_the_order_of_the_dropdown() -> None:
    assert list(TYPES) == list(KINDS_OF_TYPE)


@pytest.mark.parametrize("name", KINDS_OF_TYPE)
def test_a_type_shows_the_kinds_of_its_name_in_order(name: str) -> None:
    assert TYPES[name].kinds == KINDS_OF_TYPE[name]
    assert set(TYPES[name].kinds) <= set(KINDS)


def test_kinds_have_the_short_names_of_the_field() -> None:
    assert {name: kind.short for name, kind in KINDS.items()} == {n: n.upper() for n in KINDS}


MEGATRON_JOBS = [
    {"tp": 2, "cp": 2, "pp": 2, "ep": 4, "num_distributed_optimizer_instances": 2},
    {"cp": 8, "hierarchical_context_parallel_sizes": [2, 2, 2], "hybrid_context_parallel": True},
    {"tp": 2, "gtp": 2, "egtp": 2},
]


def test_every_group_that_megatron_creates_has_a_kind_and_every_kind_is_a_group() -> None:
    made = {name for job in MEGATRON_JOBS for name in process_groups(32, **job)}
    assert {"hcp-l2", "hybrid-dp-cp-8", "intra-dist-opt", "embd", "egtp-edp"} <= made
    assert {kind_of(name).short for name in made} == {kind.short for kind in KINDS.values()}


def test_a_group_finds_its_kind_by_its_whole_name_or_without_its_number() -> None:
    assert all(kind_of(name) is kind for name, kind in KINDS.items())
    assert kind_of("hcp-l0") is kind_of("hcp-l12") is KINDS["hcp"]
    assert kind_of("hybrid-dp-cp-2") is kind_of("hybrid-dp-cp-1024") is KINDS["hybrid-dp-cp"]


@pytest.mark.parametrize(
    "name",
    ["", "xp", "TP", "tp-2", "dp-cp-4", "cp-dp", "hcp-2", "hcp-l", "hcp-l1-l2", "hcp-l\u0661"],
)
def test_an_unknown_group_has_no_kind(name: str) -> None:
    with pytest.raises(KeyError):
        kind_of(name)


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_two_kinds_have_a_title_or_a_sentence_in_common(language: str) -> None:
    full_stop = {"en": r"(?<=\.) ", "zh": "(?<=。)"}[language]
    titles = [kind.title[language] for kind in KINDS.values()]
    sentences = [
        s for kind in KINDS.values() for s in re.split(full_stop, kind.body[language]) if s
    ]
    for said in (titles, sentences):
        assert [text for text, times in Counter(said).items() if times > 1] == []


def test_a_kind_is_told_briefly() -> None:
    assert {name: n for name, kind in KINDS.items() if (n := len(kind.body.en)) > 420} == {}


def test_titles_of_single_types_and_combinations() -> None:
    titles = {name: (entry.title.en, entry.title.zh) for name, entry in TYPES.items()}
    single = {
        "dp": ("Data parallel (DP)", "数据并行（DP）"),
        "tp": ("Tensor model parallel (TP)", "张量模型并行（TP）"),
        "pp": ("Pipeline parallel (PP)", "流水线并行（PP）"),
        "cp": ("Context parallel (CP)", "上下文并行（CP）"),
        "ep": ("Expert parallel (EP)", "专家并行（EP）"),
        "ep+edp": ("EP + ETP + EDP: the expert grid", "EP + ETP + EDP：专家网格"),
        "moe": ("Dense and expert grids (MoE)", "稠密网格与专家网格（MoE）"),
        "model": ("Model parallel and embeddings", "模型并行与嵌入"),
        "framework": ("The framework's own groups", "所选框架自己的组"),
        "chosen": ("Only the groups chosen below", "只画下面选择的组"),
    }
    for name, title in titles.items():
        combination = name.upper().replace("+", " + ")
        assert title == single.get(name, (combination, combination))


def test_a_text_answers_for_every_language_and_no_other() -> None:
    assert list(LANGUAGES.items()) == [("en", "English"), ("zh", "中文")]
    assert {field.name for field in fields(Text)} == set(LANGUAGES)
    text = Text("stage", "阶段")
    assert (text["en"], text["zh"]) == ("stage", "阶段")
    with pytest.raises(KeyError, match=r"'fr'.*'en', 'zh'"):
        text["fr"]
    with pytest.raises(KeyError):
        text["__class__"]


# --- Reading lists: nothing of the playground's is lost -------------------------------------------

ZHIHU = "https://zhuanlan.zhihu.com/p/"
WECHAT = "https://mp.weixin.qq.com/s/"
CP_LINKS = [
    "https://docs.nvidia.com/megatron-core/developer-guide/latest/api-guide/context_parallel.html",
    ZHIHU + "689067888",
    ZHIHU + "683714620",
    "https://www.zhihu.com/question/637961859/answer/3349322621",
    WECHAT + "u4gG1WZ73mgH9mEKQQCRww",
]
FOLDING = "https://arxiv.org/abs/2504.14960"
DEEPSEEK_V3 = "https://arxiv.org/abs/2412.19437"
MOE_DOCS = (
    "https://docs.nvidia.com/megatron-core/developer-guide/0.16.0/user-guide/features/moe.html"
)
READING = {
    "dp": [
        "https://www.cs.cmu.edu/~muli/file/ps.pdf",
        ZHIHU + "485208899",
        ZHIHU + "617133971",
        ZHIHU + "618865052",
    ],
    "tp": [
        "https://arxiv.org/pdf/1909.08053.pdf",
        "https://strint.notion.site/Megatron-LM-86381cfe51184b9c888be10ee82f3812",
        ZHIHU + "622212228",
    ],
    "pp": [
        "https://arxiv.org/pdf/2104.04473.pdf",
        ZHIHU + "678724323",
        ZHIHU + "613196255",
        "https://juejin.cn/post/7063030243224879140",
        WECHAT + "PXjYm9dN8C9B8svMQ7nOvw",
    ],
    "cp": CP_LINKS,
    "dp+tp": [WECHAT + "D-14J482SFQf-zh-EFa-1w"],
    "dp+pp": [
        WECHAT + "D-14J482SFQf-zh-EFa-1w",
        WECHAT + "PXjYm9dN8C9B8svMQ7nOvw",
        ZHIHU + "678724323",
    ],
    "dp+tp+pp": [
        "https://juejin.cn/post/7063030243224879140",
        ZHIHU + "629121480",
        ZHIHU + "670374745",
    ],
    "cp+dp": CP_LINKS,
    "cp+dp+tp": CP_LINKS,
    "cp+dp+pp": CP_LINKS,
    "cp+dp+tp+pp": CP_LINKS,
    "cp+tp": CP_LINKS,
    "cp+pp": CP_LINKS,
    "cp+tp+pp": CP_LINKS,
    "ep": [FOLDING, DEEPSEEK_V3, MOE_DOCS],
    "ep+edp": [FOLDING, MOE_DOCS],
    "moe": [FOLDING, DEEPSEEK_V3, MOE_DOCS],
    "model": [
        "https://juejin.cn/post/7063030243224879140",
        ZHIHU + "629121480",
        ZHIHU + "678724323",
    ],
    "framework": [
        ZHIHU + "485208899",
        ZHIHU + "670374745",
        "https://juejin.cn/post/7063030243224879140",
    ],
    "chosen": ["https://juejin.cn/post/7063030243224879140", ZHIHU + "629121480"],
}


def test_every_type_has_its_reading_list() -> None:
    assert list(READING) == list(TYPES)


@pytest.mark.parametrize("name", READING)
def test_reading_list_of_a_type(name: str) -> None:
    assert [link.url for link in TYPES[name].reading] == READING[name]


def test_one_page_has_one_title_and_one_title_one_page() -> None:
    links = {link for entry in TYPES.values() for link in entry.reading}
    for label in ([x.url for x in links], [x.title.en for x in links], [x.title.zh for x in links]):
        assert [name for name, times in Counter(label).items() if times > 1] == []


# --- Two languages --------------------------------------------------------------------------------


@every_text
def test_both_languages_say_something_with_clean_ends(text: Text) -> None:
    for language in LANGUAGES:
        assert text[language]
        assert text[language] == " ".join(text[language].split())


@every_text
def test_english_has_no_chinese_and_chinese_has_some(text: Text) -> None:
    assert not CHINESE.search(text.en)
    assert not FULL_WIDTH.search(text.en)
    only_names = re.fullmatch(r"[A-Z]{2}( \+ [A-Z]{2})+", text.zh)
    assert CHINESE.search(text.zh) or (only_names and text.zh == text.en)


@every_text
def test_chinese_is_set_like_chinese(text: Text) -> None:
    faults = {
        "no space between Chinese and Latin": (
            r"[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]"
        ),
        "half-width punctuation after Chinese": r"[\u4e00-\u9fff] ?[,;:.!?()]",
        "space beside full-width punctuation": r" [，。；：、（）？！]|[，。；：、（）？！] ",
    }
    assert [name for name, fault in faults.items() if re.search(fault, text.zh)] == []


@every_text
def test_texts_are_plain(text: Text) -> None:
    for language in LANGUAGES:
        assert not re.search(r"[<>*_`#\[\]{}]|&\w+;", text[language])


@every_body
def test_neither_language_says_much_more_than_the_other(text: Text) -> None:
    assert 0.28 <= len(text.zh) / len(text.en) <= 0.75


@every_body
def test_both_languages_name_the_same_numbers_and_operations(text: Text) -> None:
    def facts(language: str) -> set[str]:
        names = r"[Aa]ll-reduce|all-gather|reduce-scatter|all-to-all|p2p|dp-cp|NVLink|ZeRO|Megatron"
        names += r"|Transformer Engine|MoE|(?:tp|dp)-[a-z-]+|(?:intra|inter|pos)-[a-z-]+"
        names += r"|\b(?:FP16|BF16|FP8|DP|TP|PP|CP|EP|ETP|EDP|K|V|N)\b|\d+B?"
        names += r"|\b(?:tp|cp|pp|dp|ep|etp|edp|gtp|egtp|mp|embd|torch)\b"
        found = re.findall(names, text[language], flags=re.ASCII)
        return {name.replace("All-", "all-") for name in found}

    assert facts("en") == facts("zh")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", TYPES)
def test_a_type_is_told_in_two_to_five_sentences(name: str, language: str) -> None:
    full_stop = {"en": r"\.(?:\s|$)", "zh": "。"}[language]
    assert 2 <= len(re.findall(full_stop, TYPES[name].body[language])) <= 5


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("name", KINDS)
def test_a_kind_is_told_in_few_sentences(name: str, language: str) -> None:
    full_stop = {"en": r"\.(?:\s|$)", "zh": "。"}[language]
    assert 1 <= len(re.findall(full_stop, KINDS[name].body[language])) <= 4


# --- Where the playground misled: never again -----------------------------------------------------

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


@pytest.mark.parametrize("fault", FAULTS)
def test_no_text_repeats_an_old_error(fault: str) -> None:
    pattern, example = FAULTS[fault]
    assert re.search(pattern, example), "the pattern must catch its own example"
    wrong = [w for w, t in TEXTS.items() for lang in LANGUAGES if re.search(pattern, t[lang])]
    assert wrong == []


def test_tensor_parallel_is_about_activations_never_weights() -> None:
    for body in (TYPES["tp"].body, KINDS["tp"].body):
        assert not re.search(r"weights?|parameters?", body.en)
        assert not re.search("权重|参数", body.zh)


@pytest.mark.parametrize("name", [name for name in TYPES if "tp" in KINDS_OF_TYPE[name]])
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
    "dp+tp+pp: 34B": (TYPES["dp+tp+pp"].body, "at most 8.*34B", "不超过 8.*34B"),
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
        descriptions.HOW_TO_READ,
        "rank, counted from 0.*from 0 too",
        "从 0 .*从 0",
    ),
    "reading: index decides": (
        descriptions.HOW_TO_READ,
        "the index decides, not the colour",
        "以编号为准，而不是颜色",
    ),
    "reading: 11 colours": (descriptions.HOW_TO_READ, "after 11 groups", "超过 11 个组"),
    "reading: pin": (
        descriptions.HOW_TO_READ,
        "click or tap to pin it.*Esc",
        "单击或轻触可固定.*Esc",
    ),
    "large: rows": (
        descriptions.HOW_TO_READ_LARGE,
        "rows are pipeline stages",
        "每行是一个流水线阶段",
    ),
    "large: block": (
        descriptions.HOW_TO_READ_LARGE,
        "tp runs across and cp runs down",
        "tp 横向排列，cp 纵向排列",
    ),
}


@pytest.mark.parametrize("fact", FACTS)
def test_the_fact_is_told_in_both_languages(fact: str) -> None:
    text, english, chinese = FACTS[fact]
    assert re.search(english, text.en), text.en
    assert re.search(chinese, text.zh), text.zh


@pytest.mark.parametrize("name", [name for name in TYPES if "cp" in KINDS_OF_TYPE[name]])
def test_types_with_cp_say_what_it_carries_and_who_reduces_gradients(name: str) -> None:
    body = TYPES[name].body
    assert re.search(r"\bK and V\b", body.en)
    assert "K 和 V" in body.zh
    assert any("dp-cp" in s and "radients" in s for s in re.split(r"[.;]", body.en))
    assert any("dp-cp" in s and "梯度" in s for s in re.split("[。；]", body.zh))


def test_every_framework_has_its_note_and_what_its_source_leaves_open():
    assert set(descriptions.FRAMEWORKS) == set(CONVENTIONS)
    left_open = {name for name, convention in CONVENTIONS.items() if convention.unsettled}
    assert set(descriptions.UNSETTLED) == left_open


def test_every_note_of_a_published_layout_is_there_in_chinese():
    notes = {preset.note for preset in PRESETS.values()} - {""}
    assert set(descriptions.NOTES_ZH) == notes


def test_groups_of_frameworks_that_are_none_of_megatrons_are_described():
    named = {
        own.name
        for convention in CONVENTIONS.values()
        for own in (*convention.axes, *convention.expert_axes, *convention.groups)
    }
    assert set(descriptions.OWN_GROUPS) <= named


EVERY_ROOT = [name for name in descriptions.__all__ if name.isupper()]
EVERY_TEXT = {
    where: text
    for root in EVERY_ROOT
    for where, text in texts_in(getattr(descriptions, root), root)
}


@pytest.mark.parametrize("text", EVERY_TEXT.values(), ids=EVERY_TEXT)
def test_every_text_has_both_languages_and_the_same_blanks_to_fill(text: Text) -> None:
    blanks = re.compile(r"\{(\w+)\}")
    assert text.en.strip()
    assert text.zh.strip()
    assert sorted(blanks.findall(text.en)) == sorted(blanks.findall(text.zh))
    assert not CHINESE.search(text.en)
