"""What GPUs cost, on the picture of the job: the numbers of other views, and ways to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from addresses import follow_link
from browser import costs_told, job_cell, settle, type_sizes, wait_until
from playwright.sync_api import expect

from formats.logs import read_log
from request.answers.hang.files import digest_of
from request.context import Context
from request.link import from_query, state_texts
from request.resolve import main_groupings
from request.state import State
from request.trained import GIB
from request.units import bytes_text
from views.groups.lens import lens, sent_by_stage
from views.memory.view import memory_summary
from views.nodes.measures import measures_summary

LOG = (Path(__file__).parent / "golden/inputs/watchdog.log").read_text(encoding="utf-8")


def asked(query: str, **more: str) -> dict:
    return json.loads(lens(json.dumps({**state_texts(from_query(query)), **more})))


def test_memory_is_that_of_every_view_and_what_is_too_much_is_said_in_words():
    """The need of the fullest GPU is that which Memory, Step time and Better layouts say."""
    query = "nodes=8&tp=2&pp=4&model=llama3-70b"
    context = Context.of(from_query(query))
    fit = context.trained.estimate(context.layout).fit
    found = asked(query)["lenses"]["memory"]
    needs = [float(one.split()[1]) for one in found["said"]]
    assert needs == [round(one / GIB, 1) for one in fit.needs]
    assert max(needs) == round(fit.needed / GIB, 1)
    assert f"{max(needs)} GiB" in memory_summary(context).replace("\u00a0", " ")
    assert found["full"] == [one > 80 * GIB for one in fit.needs]
    assert any(found["full"])
    for said, full in zip(found["said"], found["full"]):
        assert said.endswith(": does not fit") == full


def test_who_sends_nothing_is_not_said_to_send_zero_bytes():
    said = asked("nodes=1&gpus_per_node=1&tp=1&pp=1&model=llama3-8b")["lenses"]["traffic"]["said"]
    assert said == ["sends nothing"]


def test_bytes_by_kind_are_those_of_traffic():
    context = Context.of(from_query("nodes=2&tp=2&pp=2&model=llama3-8b"))
    sent = sent_by_stage(context)
    said = asked("nodes=2&tp=2&pp=2&model=llama3-8b")["lenses"]["traffic"]["said"]
    assert {*sent} == {"tp", "pp", "dp-cp"}
    assert all(all(kind in one for kind in sent) for one in said)


@pytest.mark.parametrize(
    "query",
    ["", "nodes=4&tp=2&cp=2&pp=2", "nodes=32&tp=2&pp=4&cp=2&ep=8&model=qwen3-30b-a3b", "pp=1&tp=8"],
)
def test_badges_say_what_a_gpu_of_each_stage_sends_as_traffic_has_it(query):
    """Together they are all that it sends over the marked kinds; of several axes once."""
    context = Context.of(from_query(query))
    sends = asked(query)["sends"]
    by_kind = sent_by_stage(context)
    assert [kind for kind, _ in sends.values()] == [
        *dict.fromkeys(kind for kind, _ in sends.values())
    ]
    for name, (kind, texts) in sends.items():
        of = next(one for one in (kind, f"{kind}-cp") if one in by_kind)
        assert of.split("-")[0] == name
        assert (kind == of) or context.layout.mesh.size("cp") == 1
        assert texts == [bytes_text(one) if one else "" for one in by_kind[of].tolist()]
    marked = {grouping.name for grouping in main_groupings(context.layout)}
    assert {*sends} == {kind.split("-")[0] for kind in by_kind} & marked
    assert "dp" in sends or "edp" in sends or context.layout.mesh.size("dp") == 1


def test_scales_are_the_same_for_every_layout_and_little_waiting_is_pale():
    """Of 11 % waiting the colour is a third of the scale, of little it is pale."""
    few, many = (
        asked(f"nodes=2&tp=2&pp=2&model=llama3-8b&global_batch={batch}")["lenses"]
        for batch in (32, 4096)
    )
    assert few["pipeline"]["scale"] == many["pipeline"]["scale"] == ["0%", "30%"]
    assert max(few["pipeline"]["shares"]) == pytest.approx(0.1111 / 0.3, abs=0.002)
    assert 0 < max(many["pipeline"]["shares"]) < 0.05
    for lenses in (few, many):
        _, top = lenses["traffic"]["scale"]
        assert float(top.split()[0]) in (1, 10, 100)
        assert 0.1 < max(lenses["traffic"]["shares"]) <= 1
    assert few["memory"]["scale"] == ["0", "80 GiB"]


def test_a_hang_has_its_roles_and_none_without_evidence():
    assert "hang" not in asked("nodes=2&tp=2&pp=2")["lenses"]
    found = asked("nodes=2&tp=2&pp=2", evidence=LOG)["lenses"]["hang"]["ranks"]
    assert found["1"] == "culprit"
    assert found["0"] == "first"


def test_what_files_said_counts_as_what_is_pasted_and_other_gpus_do_not():
    pasted = asked("nodes=2&tp=2&pp=2", evidence=LOG)["lenses"]["hang"]
    assert asked("nodes=2&tp=2&pp=2", digest=digest_of(read_log(LOG)))["lenses"]["hang"] == pasted
    elsewhere = LOG.replace("rank1]", "rank99]").replace("Rank 1]", "Rank 99]")
    assert "hang" not in asked("nodes=2&tp=2&pp=2", evidence=elsewhere)["lenses"]


NUMBERS = {0: 10.0, 1: 10.1, 2: 9.9, 3: 10.0, 4: 10.1, 5: 10.0, 6: 14.0}
"""Of 8 GPUs, the last without one; the seventh is slow."""
CSV = "rank,ms\n" + "\n".join(f"{rank},{number}" for rank, number in NUMBERS.items())


def test_numbers_are_levels_from_the_least_to_the_most_and_none_for_whom_has_none():
    """A level is an eighth of what lies between 9.9 and 14."""
    found = asked("nodes=1&tp=2", measures=CSV)["lenses"]["hosts"]
    assert found["levels"] == "0" * 6 + "7-"
    assert found["steps"] == 8
    assert found["numbers"] == ["10", "10.1", "9.9", "10", "10.1", "10", "14", ""]
    assert found["scale"] == ["9.9", "14"]
    assert found["notes"] == ["median 10", "grey: 1 GPU without a number"]


def test_what_stands_out_is_the_sentence_of_hosts_with_a_way_to_it():
    query = "nodes=1&tp=8&pp=1"
    found = asked(query, measures=CSV)["lenses"]["hosts"]
    context = Context.of(from_query(query).changed({"measures": CSV}))
    assert found["ways"][0] == [measures_summary(context), {"view": "ranks", "rank": "6"}]
    assert found["ways"][0][0].startswith("rank 6: 14, ")
    both = asked("nodes=1&tp=2&pp=1", measures=CSV + "\n7,14")["lenses"]["hosts"]
    assert both["ways"][1] == ["tp 3", {"view": "ranks", "ranks": "6-7"}]
    alike = asked(query, measures="\n".join(f"{rank},7" for rank in range(8)))["lenses"]["hosts"]
    assert (alike["notes"], alike["ways"]) == (["median 7", "No group or stage stands out."], [])


def test_without_numbers_or_with_those_of_another_job_no_lens_of_them():
    for measures in ("", " ", "rank,ms\n99,1", "none"):
        assert "hosts" not in asked("nodes=1&tp=2", measures=measures)["lenses"]


def test_a_layout_that_cannot_be_has_no_costs():
    assert asked("nodes=2&tp=3") == {}


@pytest.mark.browser
def test_a_lens_colours_the_stages_and_leads_to_its_view(open_page):
    page = open_page()
    page.click("#numbers [data-lens=memory]")
    wait_until(page, "() => document.querySelectorAll('.tints .tint').length === 2")
    shares = page.eval_on_selector_all(
        ".tint", "all => all.map(one => Number(one.style.getPropertyValue('--share')))"
    )
    assert 0 < shares[1] < shares[0] < 1
    page.click("#numbers [data-lens='']")
    assert page.query_selector(".tint") is None
    page.click("#numbers [data-lens=memory]")
    page.click(".lens-key .leads")
    expect(page.locator("#nav .sections > [aria-current]")).to_have_text("Memory")


@pytest.mark.browser
@pytest.mark.parametrize("language", ["en", "zh"])
def test_badges_stand_beside_the_row_of_the_chosen_gpu_and_say_what_it_sends(open_page, language):
    page = open_page(width=1400, height=900)
    query = f"nodes=8&pp=8&lang={language}"
    follow_link(page, query)
    costs_told(page)
    sends = asked(query)["sends"]
    row = page.locator(".sends")
    for rank, stage in ((0, 0), (63, 7)):
        job_cell(page, rank).click()
        for kind, texts in sends.values():
            expect(row.locator(f"[data-sends={kind}]")).to_have_text(f"{kind} · {texts[stage]}")
        expect(row.locator(".whose")).to_contain_text(str(rank))
        picture, badges = page.locator("svg.job").bounding_box(), row.bounding_box()
        assert badges["x"] >= picture["x"] + picture["width"]
        assert picture["y"] <= badges["y"]
        assert badges["y"] + badges["height"] <= picture["y"] + picture["height"] + 1
        cell = page.locator("svg.job .itself .me").bounding_box()
        near = (
            badges["y"] <= cell["y"] + cell["height"]
            and cell["y"] <= badges["y"] + badges["height"]
        )
        assert near


@pytest.mark.browser
def test_the_card_says_what_its_gpu_costs_without_a_jump(open_page):
    page = open_page()
    below = page.locator(".kinds").bounding_box()["y"]
    wait_until(page, "() => /of 80\\sGiB/.test(document.querySelector('.costs').textContent)")
    assert page.locator(".kinds").bounding_box()["y"] == below
    before = page.text_content(".costs")
    type_sizes(page, tp=4)
    wait_until(
        page,
        "(before) => { const now = document.querySelector('.costs').textContent;"
        " return now && now !== before; }",
        before,
    )


@pytest.mark.browser
def test_memory_that_does_not_fit_is_loud_and_a_checked_box_is_seen(open_page):
    page = open_page()
    follow_link(page, "nodes=2&tp=1&pp=1&model=llama3-70b")
    wait_until(page, "() => document.querySelector('#numbers .too-full')")
    assert "does not fit" in page.inner_text("#numbers .too-full")
    job_cell(page, 0).hover()
    expect(page.locator(".costs .too-full")).to_contain_text("does not fit")
    fill = "getComputedStyle(document.querySelector('.switch input')).backgroundColor"
    unchecked = page.evaluate(fill)
    page.check(".switch input")
    wait_until(page, f"(unchecked) => {fill} !== unchecked", unchecked)
    page.uncheck(".switch input")
    wait_until(page, f"(unchecked) => {fill} === unchecked", unchecked)


@pytest.mark.browser
def test_a_frame_is_as_tall_as_its_content_and_says_which_job_it_shows(open_page, server):
    page = open_page()
    follow_link(page, "nodes=8&tp=2&pp=4")
    page.evaluate(
        "() => { navigator.clipboard.writeText = async (text) => { window.copied = text; };"
        " document.querySelector('[data-copy-frame]').click(); }"
    )
    wait_until(page, "() => window.copied")
    height = int(page.evaluate("/height=.(\\d+)/.exec(copied)[1]"))
    source = page.evaluate(
        "new DOMParser().parseFromString(copied, 'text/html').querySelector('iframe').src"
    )
    page.set_viewport_size({"width": 800, "height": height})
    page.goto(source)
    wait_until(page, "() => document.querySelector('.embed .job .me')")
    wait_until(page, "() => !document.querySelector('.app.waiting')")
    costs_told(page)
    tall = page.evaluate("document.querySelector('.app').getBoundingClientRect().height")
    assert height - 80 < tall <= height + 24
    assert "64 GPUs" in page.inner_text("#whole")


TINTED = """() => [...document.querySelectorAll('.tints .tint')]
    .map((one) => (one.getAttribute('d').match(/M/g) ?? []).length)"""
"""How many cells, or runs of them, each path of a lens has."""


@pytest.mark.browser
def test_the_lens_of_numbers_leads_to_the_box_and_colours_what_is_pasted(open_page):
    csv = CSV + "".join(f"\n{rank},10" for rank in range(8, 16))
    page = open_page()
    page.focus("#nav .views > summary")
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")  # around to the last
    expect(page.locator(".lenses [data-lens=hosts]")).to_be_focused()
    page.keyboard.press("Enter")
    page.click(".lens-key .leads")
    expect(page.locator("#field-measures")).to_be_focused()
    page.fill("#field-measures", csv)
    page.click("#subs [data-set*='\"groups\"']")
    page.locator(".picture[data-view=groups]").wait_for()
    settle(page)
    page.click("#nav .views > summary")
    page.click(".lenses [data-lens=hosts]")
    wait_until(page, "() => document.querySelector('.tints .bare')")
    assert page.evaluate(TINTED) == [14, 0, 0, 0, 0, 0, 0, 1, 1]
    key = page.locator(".lens-key")
    expect(key).to_contain_text("median 10")
    expect(key).to_contain_text(asked("", measures=csv)["lenses"]["hosts"]["ways"][0][0])
    expect(page.locator(".costs")).to_contain_text("your number 10")
    key.locator(".leads").first.click()
    expect(page.locator("#subs [aria-current]")).to_have_text("Ranks")


@pytest.mark.browser
def test_under_a_lens_each_cell_says_its_value_where_there_is_room(open_page):
    page = open_page()
    page.locator("[data-lens=memory]").click()
    values = page.locator("svg.job .values text")
    expect(values).to_have_count(16)
    found = json.loads(lens(json.dumps(state_texts(State()))))["lenses"]["memory"]["values"]
    assert values.all_text_contents() == [found[0]] * 8 + [found[1]] * 8
    # Of each cell: from the lower edge of its number's letters to the upper edge of the value's.
    between = page.evaluate(
        """() => {
          const svg = document.querySelector('svg.job');
          const letters = [...svg.querySelectorAll('.digits text')].flatMap((text) =>
            [...text.textContent].flatMap((one, at) =>
              (one.trim() ? text.getExtentOfChar(at) : [])));
          return [...svg.querySelectorAll('.values text')].map((text) => {
            const box = text.getBBox();
            const own = letters.filter(({ x, y, width }) =>
              x + width > box.x && x < box.x + box.width
              && y < box.y && y > box.y - 3 * box.height);
            const [low] = own.map(({ y, height }) => y + 0.78 * height).sort((a, b) => b - a);
            return box.y + 0.2 * box.height - low;
          });
        }"""
    )
    assert len(between) == 16
    assert min(between) > 0
