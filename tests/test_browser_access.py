"""The page for those who use a keyboard or a screen reader."""

from __future__ import annotations

import pytest
from browser import box, costs_told, expect, job_cell, next_frame, settle, wait_until

from descriptions import CONTROLS, JOB, MEMORY, PAGE, SECTIONS, SHELL, VIEWS
from request.answers.sentence import sentence_of
from request.answers.slow.files import example
from request.resolve import resolve
from request.state import State
from views.parts.examples import EVIDENCE

pytestmark = pytest.mark.browser

GRAVE = ("serious", "critical")

OPEN = """([query, brings]) => {
  const drawn = new Promise(go => document.addEventListener('drawn', go, {once: true}));
  document.dispatchEvent(new CustomEvent('open', {detail: {query, with: brings}}));
  const frame = () => new Promise(go => requestAnimationFrame(go));
  return drawn.then(frame).then(frame);
}"""

FAULTS = """async (grave) => {
  const judged = window.looks_judged ??= new Set();
  const parts = ['#head', '#nav', '#tools', '#controls', '#details', '#tour']
    .map((part) => [part, document.querySelector(part)?.outerHTML]).filter(([, html]) => html);
  const without = parts.filter(([, html]) => judged.has(html)).map(([part]) => [part]);
  parts.forEach(([, html]) => judged.add(html));
  const looks = new Map();
  const look = (element) => {
    if (!element) return '';
    if (!looks.has(element)) {
      const style = getComputedStyle(element);
      const inFlow = ['static', 'relative', 'sticky'].includes(style.position);
      const off = element.matches(':disabled, [aria-disabled]') || element.control?.disabled;
      looks.set(element, [look(element.parentElement), element.nodeName, element.className,
        element.getAttribute('style'), style.color, style.backgroundColor, style.backgroundImage,
        style.opacity, style.fontSize, style.fontWeight, off, inFlow || Math.random()].join());
    }
    return looks.get(element);
  };
  const says = (one) => one.matches('input, select, textarea')
    || [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  const isNew = (one) => {  // a sign alone is not judged, a word is
    const own = look(one) + /[\\p{L}\\p{N}]{2}/u.test(one.textContent);
    return !judged.has(own) && judged.add(own);
  };
  const texts = [...document.querySelectorAll('body *')].filter(
    (one) => one.checkVisibility() && says(one) && isNew(one));
  texts.forEach((one) => { one.dataset.judge = ''; });
  axe.configure({rules: [{id: 'color-contrast', selector: '[data-judge]'}]});
  const slight = axe._audit.rules.filter(({impact}) => ['minor', 'moderate'].includes(impact));
  const rules = Object.fromEntries(slight.map(({id}) => [id, {enabled: false}]));
  const found = await axe.run({exclude: without}, {resultTypes: ['violations'], rules});
  texts.forEach((one) => { delete one.dataset.judge; });
  return found.violations.filter(({impact}) => grave.includes(impact)).flatMap(({id, nodes}) =>
    nodes.map(({html}) => [id, html.slice(0, 120)]));
}"""
"""What axe-core finds grave in the page, but for parts beside the picture that were judged before.

Nine tenths of its work is the contrast of each text. A text that looks like one that was judged, in
what looks the same, has the same; unless something of it is out of the flow, over or under others.
"""

BRINGS = {
    "hang": {"evidence": EVIDENCE, "tp": "4"},
    "slow": {"traces_digest": example()},
    "compare": {"kept": "v=2&tp=4"},
    "ranks": {"ranks": "3, 11"},
    "launch": {"paste": "torchrun --nnodes 4 train.py --tensor-model-parallel-size eight"},
    "hosts": {"hosts": "n[0-1]", "measures": "0,1\n1,2"},
    "pipeline": {"against": "gpipe", "layers": "32"},
}
"""What a view needs to show all that it can."""


def open_state(page, **state):
    """One state in place, drawn."""
    page.evaluate(OPEN, ["", {"lang": "en", **state}])


@pytest.fixture
def axe(shared_page):
    """Everything that axe-core finds grave in what a page shows, but for what it has judged."""
    module = pytest.importorskip("axe_playwright_python.base")
    if not shared_page.evaluate("'axe' in window"):
        shared_page.evaluate(module.AXE_SCRIPT)

    shared_page.evaluate("delete window.looks_judged")
    return lambda: shared_page.evaluate(FAULTS, GRAVE)


@pytest.mark.parametrize(("language", "dark"), [("en", False), ("zh", True)])
def test_no_view_has_a_grave_fault(shared_page, axe, language, dark):
    """What a theme can spoil is contrast, what a language can are names: two pairs see both.

    A part of the page that is what it was in another view is judged there.
    """
    page = shared_page
    page.evaluate("dark => document.body.classList.toggle('dark', dark)", dark)
    faults = {}
    for view in VIEWS:
        open_state(page, view=view, lang=language, **BRINGS.get(view, {}))
        expect(page.locator(".picture")).to_have_attribute("data-view", view)
        faults[view] = axe()
    page.evaluate("document.body.classList.remove('dark')")
    assert {view: found for view, found in faults.items() if found} == {}


def test_a_grave_fault_would_be_seen(shared_page, axe):
    """Each that differs from the others, however many there are."""
    faults = (
        '<img src="data:,"><p style="color: #aaa">One</p><p>Two <b style="color: #bbb">of</b></p>'
    )
    open_state(shared_page)  # whatever the test before has left
    shared_page.evaluate("html => document.querySelector('#notice').innerHTML = html", faults)
    found = axe()
    shared_page.evaluate("document.querySelector('#notice').innerHTML = ''")
    assert sorted(fault for fault, _ in found) == ["color-contrast", "color-contrast", "image-alt"]


# -- the keyboard ----------------------------------------------------------------------------------


def test_the_picture_is_at_most_six_stops_away(open_page):
    page = open_page(started=False)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    stops = 1
    while not page.evaluate("document.activeElement.matches('svg.job')"):
        page.keyboard.press("Tab")
        stops += 1
        assert stops <= 6, page.evaluate("document.activeElement.outerHTML")[:200]


def test_a_set_of_choices_is_one_stop_whose_arrows_go_round(shared_page):
    page = shared_page
    open_state(page, view="pipeline")
    costs_told(page)
    for area, first, last in (
        ("#nav .sections", "Layout", "Diagnose"),
        ("#subs", "Step time", "Collectives"),
        ("#numbers", "groups", "GB"),
    ):
        found = page.locator(f"{area} button")
        assert page.locator(f'{area} button:not([tabindex="-1"])').count() == 1, area
        found.first.focus()
        page.keyboard.press("ArrowLeft")
        expect(found.last).to_be_focused()
        assert last in found.last.evaluate("b => b.textContent + (b.dataset.leads ?? '')")
        page.keyboard.press("ArrowRight")
        expect(found.first).to_be_focused()
        assert first in found.first.evaluate("b => b.textContent + (b.dataset.leads ?? '')")


def test_nothing_stays_open_behind_who_leaves_it(shared_page):
    page = shared_page
    open_state(page)
    for menu in map(page.locator, ("#toolbar .menu", "#tools .menu", "#nav .menu")):
        summary = menu.locator("summary")
        summary.focus()
        page.keyboard.press("Enter")
        expect(menu).to_have_attribute("open", "")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Escape")
        expect(menu).not_to_have_attribute("open", "")
        expect(summary).to_be_focused()
        page.keyboard.press("Enter")
        expect(menu).to_have_attribute("open", "")
        box(page, "tp").focus()
        expect(menu).not_to_have_attribute("open", "")
        summary.click()
        expect(menu).to_have_attribute("open", "")
        page.locator("#main").dispatch_event("click")
        expect(menu).not_to_have_attribute("open", "")
    box(page, "tp").focus()
    expect(page.locator("#tip")).to_be_visible()  # of the box, which has the focus
    page.keyboard.press("Escape")
    expect(page.locator("#tip")).to_be_hidden()
    box(page, "tp").blur()
    box(page, "tp").focus()
    page.evaluate(OPEN, ["", {"lang": "zh"}])  # as a step back does
    expect(page.locator("#tip")).to_have_text(CONTROLS["tp"].help["zh"])
    # Nor over what is answered below a box.
    open_state(page, view="ranks")
    page.locator("#field-ranks").focus()
    expect(page.locator("#tip")).to_be_visible()
    page.keyboard.type("4")
    expect(page.locator("#tip")).to_be_hidden()


def test_the_focus_is_never_lost(shared_page):
    """What was pressed may be gone with the next answer: the focus is somewhere all the same."""
    page = shared_page
    open_state(page)
    acts = {
        "a view": lambda: page.locator("#nav .views .items button").nth(2),
        "a section": lambda: page.locator("#nav .sections > button").nth(1),
        "a story": lambda: page.locator("#toolbar .items a").nth(4),
        "the tour": lambda: page.locator("#tour-start"),
        "a script": lambda: page.locator("#head .paste"),
        "a fix": lambda: page.locator("#status .fix").first,
        "a group of the card": lambda: page.locator(".told button.chip").nth(1),
        "a number": lambda: page.locator("#numbers button").nth(1),
    }
    lost = []
    for name, find in acts.items():
        open_state(page, **({"tp": "3"} if name == "a fix" else {}))
        menu = {"a view": "#nav", "a story": "#toolbar", "the tour": "#toolbar"}.get(name)
        if menu:
            page.locator(f"{menu} summary").click()
        if name == "a group of the card":
            job_cell(page, 3).click()
        find().focus()
        page.keyboard.press("Enter")
        settle(page)
        next_frame(page)
        if page.evaluate("document.activeElement === document.body"):
            lost.append(name)
    assert lost == []


@pytest.mark.parametrize("nodes", [2, 256])
def test_arrow_keys_move_the_choice_enter_keeps_it_and_escape_lets_go(shared_page, nodes):
    page = shared_page
    open_state(page, nodes=str(nodes))
    layout = resolve(State(nodes=nodes))
    half = layout.world_size // 2  # the second stage
    page.locator("svg.job").focus()
    title, answer = page.locator(".question"), page.locator(".answer")
    for key, rank in (("ArrowRight", 1), ("ArrowDown", half + 1), ("ArrowLeft", half)):
        page.keyboard.press(key)
        expect(title).to_have_text(JOB["question"]["en"].format(rank=rank))
        expect(answer).to_have_text(sentence_of(layout, rank, "en"))
    page.keyboard.press("Enter")
    wait_until(page, f"() => location.search.includes('rank={half}')")
    page.keyboard.press("Escape")
    wait_until(page, "() => !location.search.includes('rank=')")
    expect(page.locator("svg.job")).to_be_focused()


def test_a_word_is_explained_to_the_keyboard_and_to_a_touch(shared_page):
    page = shared_page
    tip = page.locator("#tip")
    for view in ("groups", "pipeline", "memory", "collectives"):
        open_state(page, view=view)
        costs_told(page)  # and with them words
        word = page.locator("button.word:visible").first
        word.focus()
        page.keyboard.press("Shift+Tab")
        expect(tip).to_be_hidden()
        page.keyboard.press("Tab")
        expect(tip).to_have_text(word.get_attribute("data-tip"))
        expect(word).to_have_attribute("aria-describedby", "tip")
        page.keyboard.press("Escape")
        expect(tip).to_be_hidden()
        word.click()
        expect(tip).to_be_visible()


TOPS = """() => ['.hero .card', '.kinds', '#details'].map((name) =>
  document.querySelector(name).getBoundingClientRect()).map(({top, height}) => [top, height])"""


def test_nothing_moves_while_the_choice_goes_over_the_picture(shared_page):
    """Sentence and card grow and shrink with the GPU; what is below stays where it is."""
    page = shared_page
    for state in ({}, {"nodes": "32", "tp": "8", "pp": "4"}, {"preset": "", "nodes": "256"}):
        open_state(page, **state)
        page.evaluate("scrollTo(0, 0)")
        page.locator("svg.job").focus()
        seen = set()
        for key in ("ArrowRight", "ArrowDown", "ArrowRight", "ArrowDown", "Enter", "Escape"):
            page.keyboard.press(key)
            next_frame(page)
            seen.add(str(page.evaluate(TOPS)))
        assert len(seen) == 1, (state, seen)


SEE_TOPS = f"""() => {{
  const tops = {TOPS};
  window.tops_seen = [];
  const look = () => {{
    const now = JSON.stringify(tops());
    if (!window.tops_seen.includes(now)) window.tops_seen.push(now);
    window.tops_look = requestAnimationFrame(look);
  }};
  look();
}}"""


def test_nothing_moves_when_the_numbers_of_a_lens_arrive(shared_page):
    """They come after the picture; the line that explains their colours has its place before."""
    page = shared_page
    open_state(page)
    costs_told(page)
    for lens in ("memory", "pipeline", "traffic"):
        page.locator(f"#numbers [data-lens={lens}]").click()
        expect(page.locator(".lens-key:not(:empty)")).to_be_visible()
        open_state(page, micro_batch="2")
        page.evaluate(SEE_TOPS)
        costs_told(page)
        next_frame(page)
        page.evaluate("cancelAnimationFrame(window.tops_look)")
        seen = page.evaluate("window.tops_seen")
        assert len(seen) == 1, (lens, seen)
        open_state(page)
        costs_told(page)
    page.locator("#numbers [data-lens='']").click()
    expect(page.locator(".lens-key")).to_be_empty()


def test_a_frame_shows_the_picture_and_the_card_alone(open_page, server):
    page = open_page()
    page.goto(f"{server}?v=2&tp=4&rank=5&embed=1")
    expect(page.locator(".hero svg.job")).to_be_visible()
    expect(page.locator(".hero .told .gpu b")).to_have_text("GPU 5")
    for part in ("#head", "#nav", "#controls", ".bar", ".kinds", "#details", "footer"):
        expect(page.locator(part).first).to_be_hidden()
    whole = page.locator("#whole a")
    assert whole.get_attribute("href").endswith("/?v=2&tp=4&rank=5")


FRAMES = """window.frames_seen = [];
const shown = (name) => {
  const one = document.querySelector(name);
  const isSeen = one?.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  return isSeen ? one.textContent : null;
};
const look = () => {
  const parts = ['#head h1', '#nav .sections > [aria-current]', '#picture h2', '.remains span',
    '.size label'];
  window.frames_seen.push(parts.map(shown));
  const isThere = document.querySelector('.app[data-view]:not(.waiting)');
  if (window.frames_seen.length < 2000 && !(isThere && (look.after = (look.after ?? 0) + 1) > 9))
    requestAnimationFrame(look);
  else window.frames_done = true;
};
requestAnimationFrame(look);"""
"""What each frame shows from the very first on, until the page has been there for some."""


def test_no_frame_shows_another_view_another_language_or_what_an_embedded_page_hides(
    open_page, server
):
    page = open_page(locale="zh-CN", started=False)
    page.add_init_script(FRAMES)
    here = [
        PAGE["title"]["zh"],
        SECTIONS["memory"]["zh"],
        MEMORY["title"]["zh"],
        "16 / (4·1·1) = 4",
        SHELL["size_nodes"]["zh"],
    ]
    works = [None, None, SHELL["working"]["zh"], None, None]  # on a slow machine
    for query, last in (
        ("tp=4&pp=1&show=memory", here),
        ("tp=4&pp=1&embed=1", [None, None, JOB["question"]["zh"].format(rank=0), None, None]),
    ):
        page.goto(f"{server}?v=2&{query}")
        wait_until(page, "() => window.frames_done")
        frames = page.evaluate("window.frames_seen")
        wrong = [one for one in frames if one not in (last, [None] * 5, works)]
        assert wrong == []
        assert frames[-1] == last


def test_the_window_scrolls_not_a_box_within_it(open_page):
    """Gradio's classes are not the page's: its own boxes keep their looks."""
    page = open_page()
    around = "e => { const all = []; while ((e = e.parentElement)) all.push(e); return all; }"
    scrolls = page.locator("#main").evaluate(
        f"e => ({around})(e).filter((one) => one !== document.documentElement && "
        "['auto', 'scroll'].includes(getComputedStyle(one).overflowY)).map((one) => one.className)"
    )
    assert scrolls == []
    assert page.evaluate("document.documentElement.scrollHeight > innerHeight")


def test_a_rule_for_several_things_is_not_taken_apart(open_page):
    """Gradio splits selectors at commas: what it makes of `:is(a, b)` must reach nothing."""
    broken = r"""() => [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules])
      .map((rule) => rule.selectorText ?? '')
      .filter((text) => /:is\([^)]*\.gradio-container/.test(text))"""
    assert open_page().evaluate(broken) == []


def test_what_other_views_show_of_a_gpu_leads_to_its_groups_in_the_picture(shared_page):
    page = shared_page
    # A group of the table, a sender of the matrix, a GPU of the memory, a chip of the card.
    open_state(page)
    page.locator("#details summary").first.click()
    page.locator("#details tr:nth-child(3) .opener").first.click()
    expect(page.locator(".question")).to_have_text(JOB["question"]["en"].format(rank=4))
    open_state(page, view="traffic")
    page.locator("svg.traffic-matrix").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    expect(page.locator(".picture")).to_have_attribute("data-view", "groups")
    expect(page.locator(".question")).to_have_text(JOB["question"]["en"].format(rank=2))
    open_state(page, view="memory")
    page.locator(".chain [data-set]").nth(9).click()
    expect(page.locator(".picture")).to_have_attribute("data-view", "ranks")
    expect(box(page, "rank")).to_have_value("9")
    # The bar of a stage, by its name and by Enter.
    for lead in (lambda one: one.locator("button").click(), lambda one: one.press("Enter")):
        open_state(page, view="memory", rank="")
        lead(page.locator(".memory-row").nth(1))
        expect(page.locator(".question")).to_have_text(JOB["question"]["en"].format(rank=8))
    open_state(page, rank="9")
    page.locator(".hero .card button.chip", has_text="pp").click()
    expect(page.locator(".picture")).to_have_attribute("data-view", "pipeline")
    page.go_back()
    page.locator(".hero .card button.chip", has_text="dp").click()
    expect(page.locator(".picture")).to_have_attribute("data-view", "collectives")
    expect(box(page, "collective_group")).to_have_value("dp")
