# ruff: noqa: RUF001
"""The sentences of the page: complete in both languages, alike in both, and about what there is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping

import pytest
from cases import every
from sentences import BODIES, CHINESE, KINDS_OF_TYPE, TEXTS, texts_in

import descriptions
from descriptions import KINDS, LANGUAGES, TYPES, Text, counted, kind_of
from groups import LayoutError
from groups.frameworks import FRAMEWORKS
from groups.megatron.parallel_state import process_groups
from groups.mesh import whole_number
from groups.presets import PRESETS
from request.words import sentence
from texts import shapes
from views.base.html import explained
from views.column import column_html

FULL_WIDTH = re.compile(r"[\u3000-\u303f\uff00-\uffef]")


def breaking(law: Callable[[Text], object], texts: Mapping[str, Text] = TEXTS) -> dict[str, Text]:
    """The texts, by where they stand, that a law does not hold of."""
    return {where: text for where, text in texts.items() if not law(text)}


# --- The shape of the data ------------------------------------------------------------------------


def test_types_come_in_the_order_of_the_dropdown() -> None:
    assert list(TYPES) == list(KINDS_OF_TYPE)


@every("name", KINDS_OF_TYPE)
def test_a_type_shows_the_kinds_of_its_name_in_order(name: str) -> None:
    assert TYPES[name].kinds == KINDS_OF_TYPE[name]
    assert set(TYPES[name].kinds) <= set(KINDS)


MEGATRON_JOBS = [
    {"tp": 2, "cp": 2, "pp": 2, "ep": 4, "num_distributed_optimizer_instances": 2},
    {"cp": 8, "hierarchical_context_parallel_sizes": [2, 2, 2], "hybrid_context_parallel": True},
    {"tp": 2, "gtp": 2, "egtp": 2},
    {"ep": 4, "create_all_gather_group": True},
]


def test_every_group_that_megatron_creates_has_a_kind_and_every_kind_is_a_group() -> None:
    made = {name for job in MEGATRON_JOBS for name in process_groups(32, **job)}
    assert {"hcp-l2", "hybrid-dp-cp-8", "intra-dist-opt", "embd", "egtp-edp"} <= made
    assert {kind_of(name) for name in made} == {*KINDS.values()}


def test_a_group_finds_its_kind_by_its_whole_name_or_without_its_number() -> None:
    assert all(kind_of(name) is kind for name, kind in KINDS.items())
    assert kind_of("hcp-l0") is kind_of("hcp-l12") is KINDS["hcp"]
    assert kind_of("hybrid-dp-cp-2") is kind_of("hybrid-dp-cp-1024") is KINDS["hybrid-dp-cp"]


@every(
    "name",
    ["", "xp", "TP", "tp-2", "dp-cp-4", "cp-dp", "hcp-2", "hcp-l", "hcp-l1-l2", "hcp-l\u0661"],
)
def test_an_unknown_group_has_no_kind(name: str) -> None:
    with pytest.raises(KeyError):
        kind_of(name)


@every("language", LANGUAGES)
def test_no_two_kinds_have_a_title_or_a_sentence_in_common(language: str) -> None:
    full_stop = "(?<=。)" if language == "zh" else r"(?<=\.) "
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
        "auto": ("Every kind larger than 1", "大小超过 1 的所有组"),
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
    assert list(LANGUAGES.items())[:2] == [("en", "English"), ("zh", "中文")]
    text = Text("stage", "阶段")
    assert (text["en"], text["zh"]) == ("stage", "阶段")
    with pytest.raises(KeyError, match=r"'xx'.*'en', 'zh'"):
        text["xx"]
    with pytest.raises(KeyError):
        text["__class__"]


# --- Two languages --------------------------------------------------------------------------------


def test_both_languages_say_something_with_clean_ends() -> None:
    def is_clean(text: Text) -> bool:
        return all(text[one] and text[one] == " ".join(text[one].split()) for one in LANGUAGES)

    assert breaking(is_clean) == {}


def test_english_has_no_chinese_and_chinese_has_some() -> None:
    def is_of_its_language(text: Text) -> bool:
        only_names = re.fullmatch(r"[A-Z]{2}( \+ [A-Z]{2})+", text.zh) and text.zh == text.en
        is_english = not CHINESE.search(text.en) and not FULL_WIDTH.search(text.en)
        return bool(is_english and (CHINESE.search(text.zh) or only_names))

    assert breaking(is_of_its_language) == {}


@every(
    "fault",
    [
        r"[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]",
        r"[\u4e00-\u9fff] ?[,;:.!?()]",
        r" [，。；：、（）？！]|[，。；：、（）？！] ",
    ],
    ids=[
        "no space between Chinese and Latin",
        "half-width punctuation after Chinese",
        "space beside full-width punctuation",
    ],
)
def test_chinese_is_set_like_chinese(fault: str) -> None:
    assert breaking(lambda text: not re.search(fault, text.zh)) == {}


def test_texts_are_plain() -> None:
    marks = re.compile(r"[<>*_`#\[\]{}]|&\w+;")
    assert breaking(lambda text: not marks.search(text.en) and not marks.search(text.zh)) == {}


def test_neither_language_says_much_more_than_the_other() -> None:
    assert breaking(lambda text: 0.28 <= len(text.zh) / len(text.en) <= 0.75, BODIES) == {}


def test_both_languages_name_the_same_numbers_and_operations() -> None:
    def facts(said: str) -> set[str]:
        names = r"[Aa]ll-reduce|all-gather|reduce-scatter|all-to-all|p2p|dp-cp|NVLink|ZeRO|Megatron"
        names += r"|Transformer Engine|MoE|(?:tp|dp)-[a-z-]+|(?:intra|inter|pos)-[a-z-]+"
        names += r"|\b(?:FP16|BF16|FP8|DP|TP|PP|CP|EP|ETP|EDP|K|V|N)\b|\d+B?"
        names += r"|\b(?:tp|cp|pp|dp|ep|etp|edp|gtp|egtp|mp|embd|torch)\b"
        found = re.findall(names, said, flags=re.ASCII)
        return {name.replace("All-", "all-") for name in found}

    assert breaking(lambda text: facts(text.en) == facts(text.zh), BODIES) == {}


def sentences(text: Text) -> list[int]:
    return [len(re.findall(r"\.(?:\s|$)", text.en)), text.zh.count("。")]


def test_a_type_is_told_in_two_to_five_sentences() -> None:
    bodies = {name: entry.body for name, entry in TYPES.items()}
    assert breaking(lambda text: all(2 <= n <= 5 for n in sentences(text)), bodies) == {}


def test_a_kind_is_told_in_few_sentences() -> None:
    bodies = {name: kind.body for name, kind in KINDS.items()}
    assert breaking(lambda text: all(1 <= n <= 4 for n in sentences(text)), bodies) == {}


def test_every_framework_has_its_note_and_what_its_source_leaves_open():
    assert set(descriptions.FRAMEWORKS) == set(FRAMEWORKS)
    left_open = {name for name, convention in FRAMEWORKS.items() if convention.unsettled}
    assert set(descriptions.UNSETTLED) == left_open


FRENCH = """
"Copy link" = "Copier le lien"
"rank/ranks" = "rang/rangs"
no-picture = "rien"
Gone = "Parti"
"from {minimum} up" = "dès {least}"
"""


@pytest.fixture
def french(monkeypatch, tmp_path):
    """A third language of a few records, two of which are wrong."""
    monkeypatch.setitem(shapes.LANGUAGES, "fr", "Français")
    texts = tmp_path / "texts"
    texts.mkdir()
    for file in shapes.FOLDER.glob("*.toml"):
        (texts / file.name).symlink_to(file)
    (tmp_path / "views").symlink_to(shapes.FOLDER.parent / "views")
    (texts / "fr.toml").write_text(FRENCH, encoding="utf-8")
    monkeypatch.setattr(shapes, "FOLDER", texts)
    kept = (shapes.catalogues, shapes.catalogue, shapes.untranslated, shapes._translations)
    for one in kept:
        one.cache_clear()
    yield
    for one in kept:
        one.cache_clear()


def test_a_third_language_is_one_catalogue_and_what_it_lacks_is_english(french):
    assert Text("Copy link", "复制链接")["fr"] == "Copier le lien"
    assert Text("Nowhere there", "没有")["fr"] == "Nowhere there"
    assert sentence(LayoutError("no-picture", "there is none"), "fr") == "rien"
    assert sentence(LayoutError("busy", "the server is busy"), "fr") == "The server is busy."
    assert [counted(n, "rank", "fr") for n in (1, 2)] == ["1 rang", "2 rangs"]
    assert counted(1, "rank", "zh") == "1 个 rank"
    lacking, total = shapes.untranslated("fr")
    assert "shell SHELL job" in lacking
    assert not {"refusals REFUSALS no-picture", "page NOUNS rank"} & {*lacking}
    assert f"{total - len(lacking)} of {total} texts" in column_html("fr")["preset"]
    assert " of " not in column_html("en")["preset"].partition("preset")[0]
    assert wrong_in("fr") == {"Gone": "Parti", "from {minimum} up": "dès {least}"}


def wrong_in(language: str) -> dict[str, str]:
    """Texts of a third language for what nobody says, or with other blanks to fill than that."""
    said = {text.en: text for text in ALL_TEXTS.values()}
    said |= {code: Text(code, text.zh) for code, text in descriptions.REFUSALS.items()}
    blanks = re.compile(r"\{\w+\}")
    return {
        key: text
        for key, text in shapes._translations(language).items()
        if key not in said
        or {*blanks.findall(text)} - {*blanks.findall(key)} - {*blanks.findall(said[key].zh)}
    }


def test_a_third_language_says_nothing_wrong_and_what_it_lacks_is_named():
    third = [*LANGUAGES][2:]
    assert {language: wrong for language in third if (wrong := wrong_in(language))} == {}
    lacking = {language: names for language in third if (names := shapes.untranslated(language)[0])}
    if lacking:  # the page says so, and whoever goes on with it is told what
        pytest.xfail(f"these texts are English: {lacking}")


def test_every_note_of_a_published_layout_is_there_in_chinese():
    notes = {preset.note for preset in PRESETS.values()} - {""}
    assert set(descriptions.NOTES) == notes


def test_groups_of_frameworks_that_are_none_of_megatrons_are_described():
    named = {
        own.name
        for convention in FRAMEWORKS.values()
        for own in (*convention.axes, *convention.expert_axes, *convention.groups)
    }
    assert set(descriptions.OWN_GROUPS) <= named


ALL_TEXTS = {
    where: text
    for room in shapes.catalogues()
    for where, text in texts_in(shapes.catalogue(room), str(room))
}
WITHOUT_ENGLISH = ("refusals[SPANS]", "refusals[WORK]")
"""What the maths says in English itself."""
EVERY_TEXT = {
    where: text for where, text in ALL_TEXTS.items() if not where.startswith(WITHOUT_ENGLISH)
}


def test_every_text_has_both_languages_and_the_same_blanks_to_fill() -> None:
    def blanks(said: str) -> list[str]:
        return sorted(re.findall(r"\{(\w+)\}", said))

    def is_whole(text: Text) -> bool:
        both = text.en.strip() and text.zh.strip() and blanks(text.en) == blanks(text.zh)
        return bool(both and not CHINESE.search(text.en))

    assert len(EVERY_TEXT) > 1000
    assert breaking(is_whole, EVERY_TEXT) == {}


def test_a_stop_stays_on_the_line_of_the_word_before_it() -> None:
    assert explained("A rank, or two ranks.", "en").count(",</bdi>") == 1  # explained once


def test_a_span_without_an_end_names_none() -> None:
    for language in LANGUAGES:
        with pytest.raises(LayoutError) as refused:
            whole_number(0, "tp")
        said = sentence(refused.value, language)
        assert "1" in said
        assert "None" not in said
