"""How every view looks: drawn once for a job, it is looked at in windows of two widths."""

from __future__ import annotations

import math

import pytest
from browser import next_frame
from test_browser_access import BRINGS, open_state

from descriptions import VIEWS

pytestmark = pytest.mark.browser

JOBS = {
    "16 GPUs": ({}, (1400, 400)),
    "18 GPUs": ({"nodes": "3", "gpus_per_node": "6", "tp": "3"}, (400,)),
    "32 GPUs with cp, which do not fit": (
        {"nodes": "4", "cp": "2", "model": "llama3-405b"},
        (1400,),
    ),
    "2,048 GPUs": (
        {"nodes": "256", "tp": "8", "pp": "16", "ep": "8", "etp": "1", "model": "deepseek-v3"},
        (1400, 400),
    ),
    "two roles": (
        {
            "nodes": "8",
            "tp": "4",
            "model": "qwen3-8b",
            "roles": "*actor@0;rollout@0-63:vllm,tp=2",
        },
        (1400,),
    ),
}
"""Sizes, and in which windows the views are looked at with them."""

FIRST = {
    "groups": "svg.job",
    "roles": ".cluster, svg",
    "nodes": ".nodes-map.wide",
    "orders": "svg.panel, svg.overview",
    "ranks": "svg.job",
    "collectives": "svg.collectives-exchange",
    "pipeline": "svg.pipeline-strip",
    "memory": ".memory-bars",
    "traffic": "svg.traffic-matrix",
    "estimate": ".estimate-parts",
    "search": ".search-table",
    "moves": "svg.moves-job",
    "compare": ".costs",
    "hang": "svg.heat",
    "slow": "svg.lost",
    "hosts": ".audit, svg",
    "launch": ".verdict",
}
"""What each view is about: its first picture; else its bars, its table or its verdict."""

WITHIN = 350
"""Pixels from the top of a window of 1400 by 900 within which it begins."""

TOLD_FIRST = ("hang", "slow")
"""Views whose picture comes after a verdict of several lines: with tabs of roles above, later."""

TOP = """(places) => {
  const one = document.querySelector(`#picture :is(${places})`);
  return one ? one.getBoundingClientRect().top + scrollY : Infinity;
}"""

PARTED = """() => {
  const units = /\\d (?:(?:[kMGTP]i?B|[mµ]?s|T?FLOP)\\b|个|层|次).{0,9}/u;
  const walk = document.createTreeWalker(document.querySelector('#main'), NodeFilter.SHOW_TEXT);
  const parted = [];
  while (walk.nextNode()) {
    const within = walk.currentNode.parentElement;
    if (within.closest('pre, code, svg, option')) continue;
    parted.push(...(units.exec(walk.currentNode.data) ?? []));
  }
  return parted;
}"""
"""Numbers that a line may part from their unit."""


SMALL = """() => [...document.querySelectorAll('#main svg text')].filter((one) =>
  one.textContent.trim() && one.checkVisibility()).flatMap((one) => {
    const {a, b, c, d} = one.getScreenCTM();
    const size = parseFloat(getComputedStyle(one).fontSize) * Math.sqrt(Math.abs(a * d - b * c));
    const kind = one.closest('svg').classList[0];
    return size < 10 ? [`${kind} ${one.textContent} ${size.toFixed(1)}`] : [];
  })"""
"""Texts of pictures whose letters are below 10 pixels."""


@pytest.fixture
def see(shared_page):
    """What a script finds in a window of a width, whatever was seen in another before."""
    before = shared_page.viewport_size

    def seen(width, script, *values):
        if shared_page.viewport_size["width"] != width:
            shared_page.set_viewport_size({"width": width, "height": 860})
            next_frame(shared_page)
        return shared_page.evaluate(script, *values)

    yield seen
    shared_page.set_viewport_size(before)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("job", JOBS)
def test_the_first_picture_begins_within_350_pixels_and_a_phone_shows_letters_and_units_well(
    shared_page, see, job, language
):
    """Letters of pictures are large there, and no line parts a number from its unit."""
    assert {*FIRST} == {*VIEWS}
    late, spoilt = {}, {}
    sizes, widths = JOBS[job]
    own = {
        "compare": {"kept": "?v=2&tp=4&zero=1"},
        "hosts": {"hosts": f"n[1-{sizes.get('nodes', 2)}]"},
    }
    for view, picture in FIRST.items():
        brought = {**BRINGS.get(view, {}), **own.get(view, {})}
        open_state(shared_page, view=view, lang=language, **{**sizes, **brought})
        most = math.inf if "roles" in sizes and view in TOLD_FIRST else WITHIN
        for width in widths:
            if width == 400 and any(found := [see(width, PARTED), see(width, SMALL)[:3]]):
                spoilt[view] = found
            elif width == 1400 and (top := see(width, TOP, picture)) > most:
                late[view] = top
        widths = widths[::-1]  # the next view is drawn where this one was looked at last
    assert (late, spoilt) == ({}, {})


HIDDEN = """() => {
  const found = [];
  for (const one of document.querySelectorAll('#main *:not(svg *)')) {
    if (!one.checkVisibility() || one.closest('.search-table thead')) continue;
    const isCut = ['hidden', 'clip'].includes(getComputedStyle(one).overflowX);
    const isWide = one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 2;
    if (isWide && (isCut || one.matches('td, th'))) found.push(one.textContent);
  }
  const names = [...document.querySelectorAll('.job .rows text, .traffic-matrix .rows text')];
  const boxes = names.filter((one) => one.checkVisibility()).map((one) => {
    const box = one.getBoundingClientRect();
    const picture = one.closest('svg');
    const {left} = picture.getBoundingClientRect();
    const isCut = getComputedStyle(picture).overflow !== 'visible' && box.left < left;
    if (isCut) found.push(one.textContent);
    return [one, box];
  });
  boxes.forEach(([one, box], at) => {
    const next = boxes[at + 1];
    if (!next || next[0].parentNode !== one.parentNode) return;
    const across = Math.min(box.right, next[1].right) - Math.max(box.left, next[1].left);
    const down = Math.min(box.bottom, next[1].bottom) - Math.max(box.top, next[1].top);
    if (across > 1 && down > box.height / 2) found.push(one.textContent);
  });
  return found;
}"""
"""Texts that are cut, or that lie over their neighbours."""

NARROW = {
    "32 GPUs": {"nodes": "4", "tp": "1", "pp": "8", "ep": "2", "etp": "1"},
    "256 GPUs": {"nodes": "32", "pp": "8", "cp": "8", "ep": "8", "etp": "1"},
    "16,384 GPUs": {"nodes": "2048", "tp": "8", "pp": "16"},
}


@pytest.mark.parametrize(("width", "job"), [*zip((768, 1120, 1400), NARROW)])
def test_no_text_is_cut_and_none_lies_over_another(shared_page, see, width, job):
    """In the narrowest window, which has no room, and in one that folds in its own way."""
    hidden = {}
    for number, view in enumerate(VIEWS):
        open_state(shared_page, view=view, **{**BRINGS.get(view, {}), **NARROW[job]})
        for one in (width, 320) if number % 2 else (320, width):
            if found := see(one, HIDDEN):
                hidden[view, one] = found
    assert hidden == {}
