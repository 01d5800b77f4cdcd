"""What others show of a link to the page: the head of the page that it opens, and its picture."""

from __future__ import annotations

import html
import io
import re

import httpx
import pytest
from cases import every

from descriptions import PAGE
from render.marks import advance
from request.link import from_query
from views.export import card_of
from views.preview import context_of, head_html, preview

LINKS = {
    "": "16 GPUs · 2 × 8: tp2 · dp4 · pp2",
    "?tp=4&pp=1&rank=5&show=memory": "16 GPUs · 2 × 8: tp4 · dp4",
    "?preset=llama3-405b-2&lang=zh": "16,384 个 GPU · 2,048 × 8：tp8 · pp16 · dp128",  # noqa: RUF001
    "?preset=llama3-405b&tp=8": "16 GPUs · 2 × 8: tp8 · pp2",  # as far as it can be read
    "?tp=3": "16 GPUs · 2 × 8: tp2 · dp4 · pp2",  # what cannot be is the start
    "?<b>=%22%3E": "16 GPUs · 2 × 8: tp2 · dp4 · pp2",
}


def said(page: str) -> dict[str, str]:
    """The properties and names of a page's head."""
    head = page.split("</head>")[0]
    marks = re.findall(r'<meta\s+(?:property|name)="([^"]+)"\s+content="([^"]*)"', head)
    assert len(marks) == len(dict(marks)), marks
    return {name: html.unescape(text) for name, text in marks}


@pytest.mark.parametrize("link", LINKS)
def test_the_head_of_a_page_says_what_its_link_is_about(server, link):
    found = said(httpx.get(server.rstrip("/") + "/" + link).text)
    state = from_query(link) if "405b&" not in link and "<" not in link else None
    assert found["og:title"] == LINKS[link]
    language = state.language if state else "en"
    assert found["og:site_name"] == PAGE["title"][language]
    rank = 5 if "rank" in link else 0
    assert found["og:description"] == found["description"]
    if "405b-2" not in link:
        assert found["description"].startswith("It shares each layer with ")
        assert f"with GPU {rank}" not in found["description"]
    assert found["og:url"].startswith(server.rstrip("/") + "/")
    if "memory" in link:
        assert found["og:url"].endswith("/?v=2&tp=4&pp=1&show=memory&rank=5")
        assert found["og:image"].endswith("/preview.png?v=2&tp=4&pp=1&show=memory&rank=5")


def test_gradios_own_preview_is_gone(server):
    head = httpx.get(server).text.split("</head>")[0]
    for own in ("Click to try out", "{url}", "header-image.jpg", "@Gradio", 'content="Gradio"'):
        assert own not in head, own


def test_the_picture_of_a_link_is_a_slide_of_its_view(server):
    image = pytest.importorskip("PIL.Image")
    sizes = []
    for link in ("?tp=4&pp=1", "?v=2&tp=4&pp=1&show=memory", "?preset=llama3-405b-1"):
        told = said(httpx.get(server.rstrip("/") + "/" + link).text)
        answer = httpx.get(told["og:image"], timeout=60)
        assert answer.headers["content-type"] == "image/png"
        drawn = image.open(io.BytesIO(answer.content))
        assert drawn.size == (int(told["og:image:width"]), int(told["og:image:height"]))
        assert len(drawn.convert("L").getcolors(256)) > 20  # not empty
        sizes.append(answer.content)
    assert len({*sizes}) == 3  # a picture of the job says nothing of a link to its memory


def test_the_picture_of_a_view_without_one_is_that_of_the_job():
    assert preview("v=2&show=hang") == preview("")


@pytest.mark.parametrize("text", ['"><script>alert(1)</script>', "' onload='x", "</head>", "\0"])
def test_what_a_link_holds_stays_within_its_attributes(text):
    for query in (f"?order={text}&framework=own", f"?layers={text}", f"?rank={text}", text):
        made = str(head_html(query, "http://a.b/"))
        assert "<script" not in made
        assert "</head" not in made
        assert re.fullmatch(r"(<meta (?:property|name)=\"[\w:]+\" content=\"[^\"<>]*\">)+", made)
        assert "onload='" not in made


@pytest.mark.parametrize("host", ["a.b", '"><b>', "x" * 300])
def test_the_address_is_that_of_the_reader_or_none(server, host):
    asked = {"host": host, "x-forwarded-proto": "https"}
    try:
        page = httpx.get(server, headers=asked).text
    except (httpx.HTTPError, ValueError):
        return  # the server takes no such name
    found = said(page)
    assert found["og:url"] in ("https://a.b/", "/")
    assert (found["og:url"] == "/") == (host != "a.b")


@every("query", ["", "show=memory", "preset=llama3-405b-2", "show=compare&kept=~tp=4", "lang=zh"])
def test_a_card_has_the_size_that_chats_ask_for_with_the_job_large_and_whole_sentences(query):
    drawn = card_of(context_of(f"?v=2&{query}"))
    assert (drawn.width, drawn.height) == (1200, 630)
    *_, (_, _, _, words) = drawn.placed
    title, *said, sizes, site = words
    assert "GPU" in title.text
    assert title.size >= 40
    assert said
    assert all(line.size >= 30 for line in said)
    assert not any(line.text.endswith("…") for line in said)
    for word in words:  # within the card
        wide = advance(word.text, bold=word.bold) * word.size
        left = word.x - (wide if word.anchor == "end" else 0.0)
        assert 40 <= left <= left + wide <= 1160
    assert (sizes.y, site.anchor) == (site.y, "end")
