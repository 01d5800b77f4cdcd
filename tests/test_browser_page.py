"""The page in a real browser: what it shows, in which words, at which widths, for whom."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from addresses import follow_link
from browser import (
    box,
    cell,
    choose,
    choose_preset,
    contrasts,
    expect,
    expect_layout,
    expect_refusal,
    overflow,
    settle,
    show,
    type_in,
    type_sizes,
    unfold,
    values,
    wait_until,
)
from seen import seen

from descriptions import CONTROLS, DP_KINDS, JOB, LINKS, PAGE, SHELL, TYPES, VIEWS, kind_of
from descriptions import SECTIONS as SECTION_NAMES
from groups.frameworks import FRAMEWORKS
from groups.presets import PRESETS, PUBLISHED
from request.resolve import SIZES
from request.state import State
from request.words import sentence
from views.all import ENDPOINTS
from views.all import SECTIONS as PLACES
from views.column import MENU

pytestmark = pytest.mark.browser

WIDTHS = (400, 760, 1100, 1400, 2000)


def test_first_paint_is_16_gpus_as_dp_tp_and_pp_panels(open_page):
    page = open_page()
    layout = expect_layout(page)
    assert str(layout.mesh) == "tp2-cp1-dp4-pp2"
    assert layout.kinds == ("tp", "dp", "pp")
    for kind in layout.kinds:
        panel = page.locator(f'svg.panel[data-kind="{kind}"]')
        assert len(json.loads(panel.get_attribute("data-known"))["groups"]) == 16
    expect(page.locator(".derived")).to_have_attribute("data-world", "16")
    expect(page.locator(".derived strong").nth(0)).to_have_text("4")
    assert page.title() == "Parallel group playground"
    # Rank and group are printed on the cell where there is room.
    assert cell(page, "tp", 5).texts() == ["5", "tp2"]


SECTIONS = """() => [...document.querySelectorAll('.kind')].map((section) => [
  section.querySelector('.chip').textContent,
  section.querySelector('svg.panel')?.dataset.kind ?? null,
  section.querySelector('h3').textContent,
  [...section.querySelectorAll('p')].map((p) => p.textContent),
])"""


def test_every_type_shows_its_panels_in_order_with_title_and_text(open_page):
    page = open_page()
    assert len(TYPES) == 21
    box(page, "more").fill("tp-ep-pp")
    box(page, "more").press("Enter")
    type_sizes(page, ep=4, etp=1)
    for name, group_type in TYPES.items():
        choose(page, "group_type", group_type.title["en"])
        layout = expect_layout(page, group_type=name, ep=4, etp="1", more=("tp-ep-pp",))
        expect(page.locator(".how h4").first).to_have_text(group_type.title["en"])
        expect(page.locator(".how > p").nth(1)).to_have_text(group_type.body["en"])
        sections = page.evaluate(SECTIONS)
        assert sorted(kind for kind, *_ in sections) == sorted(layout.kinds)
        if name not in ("framework", "auto"):
            assert layout.kinds == (*group_type.kinds, "tp-ep-pp")
        for kind, pictured, title, texts in sections:
            assert pictured in (kind, None)
            assert title.split(maxsplit=1) == [kind, kind_of(kind).title["en"]]
            assert kind_of(kind).body["en"] in " ".join(texts)  # what is behind the fold, too
        links = page.locator(".reading a").evaluate_all("all => all.map(a => a.href)")
        pages = (LINKS[name] for name in group_type.reading)
        assert sorted(links) == sorted(page.url for page in pages if not page.language)


def kind_section(page, kind):
    return page.locator(".kind", has=page.locator("h3 .chip").get_by_text(kind, exact=True))


def test_dp_or_dp_cp_is_a_choice_in_cp_types_only_and_relabels_the_panel(open_page):
    page = open_page()
    type_in(page, "cp", "2")
    choose(page, "group_type", TYPES["dp+tp+pp"].title["en"])
    expect_layout(page, group_type="dp+tp+pp", cp=2)
    expect(page.locator("#field-dp_kind")).to_be_hidden()
    assert "dp-cp" in kind_section(page, "dp").locator(".note").inner_text()
    for name in ("cp", "tp", "cp+tp", "cp+dp", "cp+dp+tp", "cp+dp+pp", "cp+dp+tp+pp"):
        choose(page, "group_type", TYPES[name].title["en"])
        expect_layout(page, group_type=name, cp=2)
        both = {"cp", "dp"} <= set(TYPES[name].kinds)
        expect(page.locator("#field-dp_kind")).to_be_visible(visible=both)
        expect(page.locator(".kind .note")).to_have_count(0)
    reduced = kind_of("dp-cp")
    expect(page.locator(".kind h3", has_text=reduced.title["en"])).to_have_count(0)
    choose(page, "dp_kind", DP_KINDS["dp-cp"]["en"])
    layout = expect_layout(page, group_type=name, cp=2, dp_kind="dp-cp")
    assert "dp-cp" in layout.kinds
    assert "dp" not in layout.kinds
    expect(page.locator(".kind h3", has_text=reduced.title["en"])).to_have_count(1)
    expect(kind_section(page, "dp-cp")).to_contain_text(reduced.body["en"])
    assert cell(page, "dp-cp", 0).texts() == ["0", "dp-cp0"]
    choose(page, "dp_kind", DP_KINDS["dp"]["en"])
    expect_layout(page, group_type=name, cp=2)


def test_a_preset_sets_every_control_and_names_its_source(open_page):
    page = open_page()
    type_in(page, "nodes", "5")
    choose(page, "framework", FRAMEWORKS["megatron-pp-dp"].name)
    expect_layout(page, nodes=5, framework="megatron-pp-dp")
    expect(page.locator("#source .source")).to_have_count(0)
    for preset in ("bloom-176b", "llama3-405b-3", "folding-mixtral-8x22b-folded", "playground-16"):
        published = PRESETS[preset]
        layout = choose_preset(page, preset)
        assert layout.mesh.size("dp") == published.dp
        shown = values(page)
        for name in ("nodes", "gpus_per_node", "tp", "pp", "cp", "ep"):
            assert shown[name] == str(getattr(published, name))
        assert shown["etp"] == ("" if published.etp is None else str(published.etp))
        assert shown["framework"] == published.framework
        assert box(page, "preset").input_value() == preset
        source = page.locator("#source .source")
        expect(source.locator("p").first).to_have_text("; ".join(published.source))
        words = "preset_derived" if published.derived else "preset_stated"
        expect(source).to_contain_text(PAGE[words]["en"].partition("{")[0])
        # By the names that the controls have on the page, none of the data's own.
        assert not re.search("[a-z]_[a-z]", source.locator("p").nth(1).inner_text())
        links = source.locator("a").evaluate_all("all => all.map(a => a.href)")
        assert links == ([published.url] if published.url else [])
    before = box(page, "framework").bounding_box()
    choose(page, "framework", FRAMEWORKS["megatron-pp-dp"].name)
    name = PAGE["preset_menu"]["en"].format(name=PRESETS["playground-16"].name)
    expect(source).to_have_attribute("data-changed", name)
    assert box(page, "framework").bounding_box() == before  # which stood below it once


def test_a_name_that_the_closed_menu_cuts_stands_below_it_whole(open_page):
    page = open_page()
    cut = page.locator("#field-preset").evaluate(
        """(menu) => {
          const style = getComputedStyle(menu);
          const pen = document.createElement('canvas').getContext('2d');
          pen.font = style.font;
          const sides = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight);
          const room = menu.clientWidth - sides;
          const isCut = ({text}) => pen.measureText(text).width > room;
          return [...menu.options].filter(isCut).map(({value}) => value);
        }"""
    )
    assert len(cut) > 20
    assert [name for name in cut if len(PUBLISHED[name].name) <= MENU] == []
    choose_preset(page, cut[0])
    expect(page.locator("#source .source b")).to_have_text(PUBLISHED[cut[0]].name)


# --- Languages ------------------------------------------------------------------------------------


def expect_words(page, language, group_type="auto"):
    """Every word of the page is in this language."""
    expect(page.locator("h1")).to_have_text(PAGE["title"][language])
    column = page.locator("#controls")
    for size in SIZES:
        unfold(page, size)
        label = SHELL[f"size_{size}"][language]
        expect(column.get_by_text(label, exact=True)).to_be_visible()
    for control in ("group_type", "framework", "etp"):
        unfold(page, control)
        expect(column.get_by_text(CONTROLS[control].label[language], exact=True)).to_be_visible()
    for fold in ("job", "experts", "order", "groups", "model"):
        expect(column.get_by_text(SHELL[f"fold_{fold}"][language], exact=True)).to_be_visible()
    for section in PLACES:
        place = page.locator("#nav .sections > *", has_text=SECTION_NAMES[section][language])
        expect(place).to_be_visible()
    views = page.locator("#nav .views .items > button").all_text_contents()
    assert views == [VIEWS[view][language] for view in PLACES["layout"]]
    expect(page.locator("#rank label")).to_have_text(CONTROLS["rank"].label[language])
    assert box(page, "group_type").input_value() == group_type
    chosen = page.locator("#field-group_type option:checked")
    expect(chosen).to_have_text(TYPES[group_type].title[language])
    expect(page.locator(".remains b").first).to_have_text(SHELL["size_dp"][language])
    expect(page.locator(".how h4").first).to_have_text(TYPES[group_type].title[language])
    expect(page.locator(".how > p").nth(1)).to_have_text(TYPES[group_type].body[language])
    for kind in ("tp", "dp", "pp"):
        section = kind_section(page, kind)
        expect(section).to_contain_text(kind_of(kind).title[language])
        expect(section).to_contain_text(kind_of(kind).body[language])
    expect(page.locator("#picture h2").first).to_have_text(JOB["question"][language].format(rank=0))
    heads = page.locator("#details th").all_text_contents()
    columns = ("column_kind", "column_group", "column_ranks", "column_nodes")
    assert heads == [PAGE[name][language] for name in columns]
    expect(page.locator("[data-save=csv]")).to_have_text(PAGE["download_csv"][language])
    rows = page.locator("#tools .items > p > span").all_text_contents()
    assert rows == [SHELL["save_slide"][language], SHELL["save_picture"][language]]
    assert page.locator(".picture").get_attribute("lang") == language


def test_switching_language_changes_every_word_and_no_number(open_page):
    page = open_page()
    type_in(page, "tp", "4")
    layout = expect_layout(page, tp=4)
    expect_words(page, "en")
    page.locator(".languages").select_option("zh")
    expect(page.locator("h1")).to_have_text(PAGE["title"]["zh"])
    expect_layout(page, tp=4)
    settle(page)
    expect_words(page, "zh")
    assert values(page)["tp"] == "4"

    type_in(page, "tp", "3")
    error = expect_refusal(page, State(tp=3), still=layout, language="zh")
    assert sentence(error, "zh") != sentence(error, "en")
    page.locator(".languages").select_option("en")
    expect_refusal(page, State(tp=3), still=layout, language="en")
    assert values(page)["tp"] == "3"
    page.locator(".fix").first.click()
    expect_layout(page, State(tp=3).changed(error.alternatives[0]))
    settle(page)
    expect_words(page, "en")

    # The dropdowns' entries are in the language too.
    page.locator(".languages").select_option("zh")
    settle(page)
    expect(page.locator("h1")).to_have_text(PAGE["title"]["zh"])
    choose(page, "group_type", TYPES["tp"].title["zh"])
    settle(page)
    expect(page.locator(".how h4").first).to_have_text(TYPES["tp"].title["zh"])


def test_a_chinese_browser_opens_in_chinese(open_page):
    page = open_page(locale="zh-CN")
    expect_words(page, "zh")
    expect(page.locator(".languages")).to_have_value("zh")
    expect_layout(page)


def test_what_is_folded_open_or_closed_stays_so_through_drawings(open_page):
    page = open_page()
    folds = "() => [...document.querySelectorAll('#picture details, #details details')]"
    page.evaluate(f"({folds})().forEach((fold, n) => {{ fold.open = n % 2 === 0; }})")
    before = page.evaluate(f"({folds})().map((fold) => fold.open)")
    assert {*before} == {True, False}
    type_in(page, "tp", "4")
    expect_layout(page, tp=4)
    assert page.evaluate(f"({folds})().map((fold) => fold.open)") == before


# --- Looks ----------------------------------------------------------------------------------------

TEXTS = "#head, #nav, #controls, #status, .card, .intro, .kind .text, .how, .source, .strip, "
TEXTS += "#details, .menu, "
TEXTS += ".scroll, .warnings, .fine, dl.rank, .field"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_every_text_is_readable(open_page, dark):
    page = open_page(dark=dark)
    backgrounds = page.evaluate("getComputedStyle(document.body).backgroundColor")
    shade = sum(int(part) for part in backgrounds.strip("rgba()").split(",")[:3]) / 3
    assert (shade < 80) if dark else (shade > 220)
    cell(page, "tp", 5).click()
    expect(page.locator(".told .gpu i, .hero .hint.kept")).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    faint = [found for found in contrasts(page, TEXTS) if found[0] < 4.5]
    assert len(contrasts(page, ".card")) > 10
    for preset, views in (
        ("folding-mixtral-8x22b-folded", ("nodes", "ranks", "orders", "groups")),
        ("playground-16", ("orders", "groups")),
    ):
        choose_preset(page, preset)
        for view in views:
            show(page, view)
            assert len(contrasts(page, "#picture")) > 10
            faint += [found for found in contrasts(page, TEXTS) if found[0] < 4.5]
    type_in(page, "tp", "3")
    expect(page.locator(".refusal")).to_be_visible()
    faint += [found for found in contrasts(page, ".refusal") if found[0] < 4.5]
    assert not faint, f"{len(faint)} texts below 4.5:1"


def test_nothing_is_wider_than_the_window(open_page):
    page = open_page(width=WIDTHS[-1], height=900)
    wide = []
    presets = ("llama3-405b-3", "folding-mixtral-8x22b-folded", "deepseek-v3")
    widths = WIDTHS
    for step in ("2", "32", *presets):
        if step in presets:
            layout = choose_preset(page, step)
        else:
            type_in(page, "nodes", step)
            layout = expect_layout(page, nodes=int(step))
        widths = widths[::-1]  # to the narrowest, and back with the next layout
        for width in widths:
            resize(page, width)
            if (over := overflow(page)) != (0, []):
                wide.append((str(layout.mesh), width, over))
    assert wide == []
    assert page.viewport_size == {"width": 400, "height": 900}
    type_in(page, "tp", "7")
    settle(page)
    expect(page.locator(".refusal")).to_be_visible()
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert overflow(page) == (0, [])


def resize(page, width):
    if page.viewport_size == (size := {"width": width, "height": 900}):
        return
    page.set_viewport_size(size)
    wait_until(page, "(width) => innerWidth === width", width)


def test_on_a_phone_the_picture_comes_before_the_controls(open_page):
    page = open_page(width=400, height=800, touch=True)
    assert overflow(page) == (0, [])
    picture = page.locator("#picture svg").first.bounding_box()
    assert picture
    assert picture["y"] < 800
    expect(page.locator("#controls")).not_to_be_visible()
    for section in page.locator(".kind").all():
        figure = section.locator("figure").bounding_box()
        text = section.locator(".short").bounding_box()
        assert figure
        assert text
        assert figure["y"] >= text["y"] + text["height"] - 1
    page.locator("#foot button").click()
    type_in(page, "tp", "4")
    expect_layout(page, tp=4)
    assert overflow(page) == (0, [])


SMALL = """() => [...document.querySelectorAll('.app :is(button, summary, select, input)')]
  .filter((one) => one.checkVisibility() && !one.closest('p, td, th, li, .j, .c, .memory-name'))
  .filter((one) => one.offsetHeight < 24 || (one.offsetWidth < 24 && !one.closest('.zoom-track')))
  .map((one) => `${one.id || one.className} ${one.textContent} ${one.offsetHeight}`)"""


def test_a_finger_finds_every_control(open_page):
    """Targets of 24 pixels (WCAG 2.2, 2.5.8), but for those in texts and pictures; parts of the
    time axis are as tall, and as wide as they take."""
    page = open_page(width=400, height=800, touch=True)
    small = []
    for view in ("groups", "collectives", "pipeline", "orders"):
        show(page, view)
        page.evaluate("document.querySelectorAll('main details').forEach(d => { d.open = true; })")
        small += page.evaluate(SMALL)
        page.keyboard.press("Escape")  # the menu of files, which is over the page
    assert small == []


DOTS = """() => [...document.querySelectorAll('#picture .dotted .dot')].map((dot) => {
  const line = (at, place) => {
    if (at.nodeType === Node.ELEMENT_NODE) return at.getBoundingClientRect().bottom;
    const range = document.createRange();
    range.setStart(at, place);
    range.setEnd(at, place + 1);
    return range.getBoundingClientRect().bottom;
  };
  const before = dot.parentElement.previousElementSibling.lastChild;
  const lines = [line(before, before.length - 1), line(dot.nextSibling, 0)];
  const box = dot.closest('.gpu') ?? dot.closest('.dotted');
  const isSeen = dot.getBoundingClientRect().right > box.getBoundingClientRect().left + 1;
  return [isSeen, Math.abs(lines[0] - lines[1]) < 8];
})"""


def test_no_line_begins_or_ends_at_a_dot(open_page):
    """One between two parts of a line is seen, and one where a line is broken is not."""
    page = open_page()
    seen = []
    for query in ("v=2", "v=2&show=orders", "v=2&show=search", "v=2&show=search&lang=zh"):
        follow_link(page, query)
        seen += page.evaluate(DOTS)
    assert [False, False] in seen
    assert [True, True] in seen
    assert [True, False] not in seen
    assert [False, True] not in seen


def test_on_a_wide_window_the_kinds_stand_in_a_row_and_two_and_two_in_colour(open_page):
    """In one line, however long the texts above them are, and smaller than the picture of the job;
    in colour there is room for the numbers of all groups."""
    page = open_page()
    panels = page.locator(".kind svg.panel")
    first, second, third = (one.bounding_box() for one in panels.all())
    assert first["y"] == second["y"] == third["y"]
    assert second["x"] >= first["x"] + first["width"] - 1
    assert 2 * first["width"] < page.locator("svg.job").bounding_box()["width"] + 40
    page.locator(".switch input").check()
    first, second, third = (one.bounding_box() for one in panels.all())
    assert first["y"] == second["y"] < third["y"]


def test_a_large_screen_is_used_to_its_right_edge(open_page):
    """Three kinds beside each other, and the job larger, but still within the first screen."""
    page = open_page(width=1920, height=1000)
    kinds = [one.bounding_box() for one in page.locator(".kind").all()]
    assert len({one["y"] for one in kinds}) == 1
    assert kinds[-1]["x"] + kinds[-1]["width"] > 1800
    show(page, "orders")
    panel = page.locator(".pair svg.panel:visible").last.bounding_box()
    assert panel["x"] + panel["width"] > 1800
    for query in ("v=2", "v=2&nodes=2048&tp=8&pp=16", "v=2&ep=4"):
        follow_link(page, query)
        picture = page.locator("#picture svg.job").first.bounding_box()
        assert picture["y"] + picture["height"] <= 1000, query


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (400, 800)])
def test_the_first_screen_holds_the_sentence_and_the_whole_picture_of_the_job(
    open_page, width, height
):
    page = open_page(width=width, height=height)
    picture = page.locator("#picture svg").first.bounding_box()
    sentence = page.locator("#picture .answer").first.bounding_box()
    assert picture
    assert sentence
    assert 0 < sentence["y"] < picture["y"]
    assert picture["y"] + picture["height"] <= height
    assert picture["x"] + picture["width"] <= width


# --- Accessibility --------------------------------------------------------------------------------


NAMELESS = """() => [...document.querySelectorAll('input, select, textarea, button')].filter((e) =>
  e.checkVisibility() && !e.labels?.length && !e.getAttribute('aria-label') &&
  !e.getAttribute('aria-labelledby') && !(e.tagName === 'BUTTON' && e.textContent.trim()))
  .map((e) => e.outerHTML.slice(0, 200))"""


def test_every_picture_and_every_input_has_a_name_and_a_refusal_is_an_alert(open_page):
    page = open_page()
    for preset, number in (("llama3-405b-3", 2), ("deepseek-v3", 4), ("playground-16", 4)):
        layout = choose_preset(page, preset)
        pictures = page.locator("#picture svg:not([aria-hidden])")
        expect(pictures).to_have_count(number)
        for name in pictures.evaluate_all("all => all.map(svg => svg.ariaLabel ?? '')"):
            assert len(name) > 30, "a picture without a text equivalent"
            assert str(layout.nodes) in name.replace(",", "")
    for name in ("ep", "framework", "group_type", "global_batch"):
        unfold(page, name)
    expect(page.locator("#field-global_batch")).to_be_visible()
    for view in ("nodes", "orders", "ranks", "groups"):
        show(page, view)
        assert page.evaluate(NAMELESS) == []
    assert page.locator("h1").count() == 1
    expect(page.get_by_role("alert")).to_have_count(0)
    type_in(page, "tp", "3")
    error = expect_refusal(page, State(tp=3), still=seen(State()))
    expect(page.get_by_role("alert")).to_have_count(1)
    expect(page.get_by_role("alert")).to_contain_text(sentence(error, "en"))


def test_the_page_s_api_is_the_named_endpoints_alone(server):
    with urllib.request.urlopen(f"{server}gradio_api/info") as answer:
        info = json.load(answer)
    assert list(info["named_endpoints"]) == [f"/{name}" for name in ENDPOINTS]
    assert not info["unnamed_endpoints"]


FRAMES = """async () => {
  let frames = 0;
  for (let second = 0; second < 10; second += 1) {
    const first = requestAnimationFrame(() => {});
    await new Promise((go) => setTimeout(go, 1000));
    frames = requestAnimationFrame(() => {}) - first - 1;
    if (!frames) break;
  }
  return frames;
}"""
"""How many frames anything in the page asks for in a second: they are numbered in a row.

Gradio still moves something when the page has just come: one of ten seconds is to be without.
"""


def test_a_page_that_nobody_uses_asks_for_no_frames(open_page):
    page = open_page()
    for view in ("groups", "pipeline"):
        show(page, view)
        settle(page)
        assert page.evaluate(FRAMES) == 0, view
