"""No line runs over a word: every stroke of the picture of the job against every text box of it."""

from __future__ import annotations

import pytest
from addresses import follow_link
from browser import settle
from cases import every
from strokes import crossings, outside

from render.draw.job import draw_job
from request.context import Context
from request.link import from_query
from views.parts.job import job_pictures

LAYOUTS = [
    # One GPU, and few.
    "nodes=1&gpus_per_node=1&tp=1&pp=1", "nodes=1&tp=8&pp=1&rank=3", "nodes=1&tp=1&pp=8&rank=7",
    "nodes=1&tp=1&pp=1&rank=4", "nodes=1&gpus_per_node=4&tp=2&pp=2&rank=3",
    # The page's first one, each of its GPUs' places, and up to 64 GPUs.
    "", "rank=5", "rank=15", "nodes=4&tp=4&pp=2&rank=19", "nodes=8&tp=8&pp=8&rank=33",
    "nodes=8&tp=2&pp=4&cp=2&rank=21", "nodes=8&tp=1&pp=1&rank=9", "nodes=8&tp=1&pp=4&cp=16&rank=40",
    "nodes=2&gpus_per_node=72&tp=4&pp=1&rank=70", "nodes=4&gpus_per_node=12&tp=3&pp=2&rank=30",
    # Experts over a part of a replica, a whole one, and several.
    "nodes=8&tp=8&pp=2&ep=2&etp=1&rank=9", "nodes=8&tp=4&pp=2&ep=4&etp=1&rank=17",
    "nodes=8&tp=2&pp=2&ep=8&etp=1&rank=27", "nodes=32&tp=2&pp=4&cp=2&ep=8&rank=5",
    "nodes=32&tp=4&pp=8&ep=8&etp=4&rank=77", "nodes=4&tp=2&pp=2&cp=2&ep=8&etp=1&rank=13",
    # 256 GPUs, one stage and many.
    "nodes=32&tp=8&pp=4&rank=100", "nodes=32&tp=8&pp=1&rank=100", "nodes=32&tp=4&pp=64&rank=200",
    "nodes=32&tp=1&pp=1&rank=255", "nodes=32&tp=2&pp=2&cp=4&rank=131",
    # Rasters: one stage, 64 stages, experts; up to a million GPUs.
    "nodes=64&tp=8&pp=64&rank=30&layers=128", "nodes=64&tp=8&pp=1&rank=5",
    "nodes=64&tp=8&pp=64&rank=511&layers=128", "nodes=256&tp=1&pp=16&ep=64&rank=405",
    "nodes=256&tp=8&pp=16&rank=2047", "nodes=512&tp=8&pp=64&rank=1&layers=128",
    "nodes=2048&tp=8&pp=16&rank=8191", "nodes=2048&tp=4&pp=8&ep=16&etp=1&rank=77",
    "nodes=131072&tp=8&pp=16&rank=524288", "nodes=131072&tp=8&pp=1&rank=9",
    "nodes=131072&tp=8&pp=64&rank=1048575&layers=128",
    "nodes=127&gpus_per_node=8&tp=8&pp=1&rank=500",
    # Servers, and a published layout of many replicas.
    "preset=serve-deepseek-v3-decode", "preset=serve-deepseek-v3-decode&rank=163",
    "preset=llama3-405b-1&rank=4000", "preset=deepseek-v3&rank=1033",
]  # fmt: skip

ROLES = ["preset=slime-glm4-5"]
"""Plans, each role of which has pictures of its own."""


def pictures_of(query: str):
    return [picture for _, picture in job_pictures(Context.of(from_query(query)))]


@every("query", LAYOUTS)
def test_no_stroke_runs_over_a_word_or_a_number_and_no_word_leaves_its_badge(query):
    for picture in pictures_of(query):
        marks = list(draw_job(picture, "light"))
        assert [(one.text, one.stroke) for one in crossings(marks)] == []
        assert [text for text, *_ in outside(marks)] == []


ON_PAGE = """() => [...document.querySelectorAll('svg.job')].flatMap((svg) => {
  const boxes = [...svg.querySelectorAll('.rows text, .n text, .itself text')].flatMap((text) => {
    if (!text.getClientRects().length) return [];
    const words = [];
    const said = text.textContent;
    for (let at = 0; at < said.length; at++) {  // a text has the numbers of a row of cells
      const {x, y, width, height} = text.getExtentOfChar(at);
      const isNext = at && said[at] !== ' ' && said[at - 1] !== ' ';
      if (said[at] === ' ') continue;
      if (!isNext) words.push([said[at], x, y + 0.2 * height, x + width, y + 0.8 * height]);
      else {
        words.at(-1)[0] += said[at];
        words.at(-1)[3] = x + width;
      }
    }
    return words;
  });
  const strokes = svg.querySelectorAll('.joins path, .ends path, rect.on, .chosen');
  return [...strokes].flatMap((stroke) => {
    const half = parseFloat(getComputedStyle(stroke).strokeWidth) / 2 - 0.2;
    const found = [];
    const length = stroke.getAttribute('d') === '' ? -1 : stroke.getTotalLength();
    for (let at = 0; at <= length; at++) {
      const {x, y} = stroke.getPointAtLength(at);
      const hit = boxes.find(([, left, top, right, bottom]) =>
        x + half > left && x - half < right && y + half > top && y - half < bottom);
      if (hit) found.push(`${hit[0]} under ${stroke.getAttribute('class')} at ${at}`);
    }
    return found.slice(0, 2);
  });
})"""
"""Where a stroke of the page's own pictures runs over a word, in its fonts and after its script."""

OF_PAGE = (
    *("rank=5", "nodes=8&tp=2&pp=4&cp=2&rank=21", "nodes=32&tp=2&pp=4&cp=2&ep=8&rank=5"),
    *("nodes=32&tp=8&pp=4&rank=100", "nodes=64&tp=8&pp=64&rank=30&layers=128"),
    *("nodes=256&tp=1&pp=16&ep=64&rank=405", "nodes=131072&tp=8&pp=16&rank=524288"),
)


@pytest.mark.browser
def test_no_stroke_of_the_page_runs_over_a_word_or_a_number(open_page):
    page = open_page()
    for query in OF_PAGE:
        follow_link(page, query)
        settle(page)
        assert (query, page.evaluate(ON_PAGE)) == (query, [])


@pytest.mark.browser
def test_a_stroke_through_a_number_is_found(open_page):
    page = open_page()
    follow_link(page, "rank=5")
    settle(page)
    page.evaluate("document.querySelector('svg.job .ends path').setAttribute('d', 'M90 70H700')")
    assert "0 under null" in " ".join(page.evaluate(ON_PAGE))
