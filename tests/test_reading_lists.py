"""Reading lists: nothing of the playground's is lost."""

from __future__ import annotations

from collections import Counter

import pytest

from descriptions import LINKS, TYPES
from request.context import Context
from request.state import State
from views.groups.view import groups_html

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
    "dp+tp": [WECHAT + "D-14J482SFQf-zh-EFa-1w", "https://arxiv.org/pdf/2104.04473.pdf"],
    "dp+pp": [
        WECHAT + "D-14J482SFQf-zh-EFa-1w",
        WECHAT + "PXjYm9dN8C9B8svMQ7nOvw",
        ZHIHU + "678724323",
        "https://arxiv.org/pdf/2104.04473.pdf",
    ],
    "dp+tp+pp": [
        "https://juejin.cn/post/7063030243224879140",
        ZHIHU + "629121480",
        ZHIHU + "670374745",
        "https://arxiv.org/pdf/2104.04473.pdf",
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
        "https://arxiv.org/pdf/2104.04473.pdf",
    ],
    "framework": [
        ZHIHU + "485208899",
        ZHIHU + "670374745",
        "https://juejin.cn/post/7063030243224879140",
        "https://arxiv.org/pdf/2104.04473.pdf",
    ],
    "auto": [
        "https://juejin.cn/post/7063030243224879140",
        ZHIHU + "629121480",
        "https://arxiv.org/pdf/2104.04473.pdf",
    ],
    "chosen": [
        "https://juejin.cn/post/7063030243224879140",
        ZHIHU + "629121480",
        "https://arxiv.org/pdf/2104.04473.pdf",
    ],
}


def test_every_type_has_its_reading_list() -> None:
    assert sorted(READING) == sorted(TYPES)


@pytest.mark.parametrize("name", READING)
def test_reading_list_of_a_type(name: str) -> None:
    assert [LINKS[link].url for link in TYPES[name].reading] == READING[name]


def test_further_reading_is_in_the_language_of_the_page() -> None:
    """Chinese pages are for the Chinese page; where none is about it, it leads to English ones."""
    for name, entry in TYPES.items():
        pages = [LINKS[link] for link in entry.reading]
        assert not pages or any(not page.language for page in pages), name
        html = {
            language: str(groups_html(Context.of(State(group_type=name, more="tp", lang=language))))
            for language in ("en", "zh")
        }
        chinese = [page.url for page in pages if page.language == "zh"]
        assert not any(url in html["en"] for url in chinese)
        assert all(url in html["zh"] for url in chinese)
        assert not pages or "reading" in html["zh"]
    hosts = ("zhihu.com", "juejin.cn", "weixin.qq.com", "notion.site")
    for page in LINKS.values():
        assert (page.language == "zh") == any(host in page.url for host in hosts)


def test_one_page_has_one_title_and_one_title_one_page() -> None:
    links = {LINKS[link] for entry in TYPES.values() for link in entry.reading}
    for label in ([x.url for x in links], [x.title.en for x in links], [x.title.zh for x in links]):
        assert [name for name, times in Counter(label).items() if times > 1] == []
