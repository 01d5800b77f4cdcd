"""What others show of a link to the page: the head of the page that it opens, and its picture."""

from __future__ import annotations

import html
import io
import math
import re

import httpx
import pytest
from cases import every

from descriptions import PAGE
from groups import coordinates
from render.files.forms import to_bytes
from render.marks import advance
from render.scenes.inset import insets_of
from request.link import from_query
from views.export import card_of
from views.parts.job import job_pictures
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
    *_, (_, _, _, (ground, *words)) = drawn.placed
    site, sizes, title, *said = words
    assert ground.sizes[1] < 330  # of what is written; the rest is the picture's
    assert "GPU" in title.text
    assert title.size >= 40
    assert said
    assert all(line.size >= 30 for line in said)
    assert not any(line.text.endswith("…") for line in said)
    for word in words:  # within the card
        wide = advance(word.text, bold=word.bold) * word.size
        left = word.x - (wide if word.anchor == "end" else 0.0)
        assert 40 <= left <= left + wide <= 1160
    assert (site.y, sizes.anchor) == (sizes.y, "end")


FILLED = [
    "",
    "nodes=8&tp=4",
    "nodes=256&tp=8&pp=16&rank=405",
    "show=traffic&nodes=4",
    "show=estimate",
]


@every("query", FILLED)
def test_the_picture_of_a_card_is_as_wide_as_it_or_goes_on_below_it(query):
    drawn = card_of(context_of(f"?v=2&{query}"))
    *pictures, (_, _, _, (ground, *_)) = drawn.placed
    image = pytest.importorskip("PIL.Image")
    shown = image.open(io.BytesIO(to_bytes(drawn, "png", scale=1.0))).convert("L")
    below = shown.crop((0, math.ceil(ground.sizes[1]) + 10, 1200, 630))
    left, _, right, bottom = below.point(lambda level: 255 * (level < 250)).getbbox()
    assert right - left > 980 or bottom >= below.height - 24
    assert len(pictures) == (2 if "256" in query else 1)


@every(
    "query, line, stages",
    [
        ("nodes=256&tp=8&pp=16&rank=405", range(400, 408), (2, 3, 4)),
        ("nodes=64&tp=8&pp=1&rank=5", range(8), (0,)),
        ("nodes=64&tp=8&pp=64&rank=511", range(504, 512), (61, 62, 63)),
        ("nodes=256&tp=2&pp=2&rank=9", range(4, 12), (0, 1)),  # four replicas of two
        ("nodes=131072&tp=8&pp=16&cp=4&rank=31", range(8, 32), (0,)),
    ],
)
def test_beside_a_raster_the_selected_replica_is_magnified_with_the_stages_beside_its_own(
    query, line, stages
):
    context = context_of(f"?v=2&{query}")
    (_, picture), *_ = job_pictures(context)
    (inset,) = insets_of([picture])
    assert inset.stages == stages
    own = stages.index(coordinates(context.layout.mesh, context.rank)["pp"])
    each = len(inset.cells) // len(stages)
    ranks = [cell.rank for cell in inset.cells[own * each : (own + 1) * each]]
    assert ranks == [*line]
    tones = {cell.rank: cell.tone for cell in inset.cells}
    marked = {int(rank): mark.tone for mark in picture.marks for rank in mark.ranks}
    assert tones == {rank: marked.get(rank, "") for rank in tones}
    assert not insets_of([job_pictures(context_of("?v=2"))[0][1]])
