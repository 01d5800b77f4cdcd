"""What GPUs cost, on the picture of the job: the numbers of other views, and ways to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from addresses import follow_link
from browser import costs_told, type_sizes, wait_until
from playwright.sync_api import expect

from formats.logs import read_log
from request.answers.hang.files import digest_of
from request.context import Context
from request.link import from_query, state_texts
from request.trained import GIB
from views.groups.lens import lens, sent_by_stage
from views.memory.view import memory_summary

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


def test_a_layout_that_cannot_be_has_no_costs():
    assert asked("nodes=2&tp=3") == {}


@pytest.mark.browser
def test_a_lens_colours_the_stages_and_leads_to_its_view(open_page):
    page = open_page()
    page.click(".lenses [data-lens=memory]")
    wait_until(page, "() => document.querySelectorAll('.tints .tint').length === 2")
    shares = page.eval_on_selector_all(
        ".tint", "all => all.map(one => Number(one.style.getPropertyValue('--share')))"
    )
    assert 0 < shares[1] < shares[0] < 1
    page.click(".lenses [data-lens='']")
    assert page.query_selector(".tint") is None
    page.click(".lenses [data-lens=memory]")
    page.click(".lens-key .leads")
    expect(page.locator("#nav .subs [aria-current]")).to_have_text("Memory")


@pytest.mark.browser
def test_the_card_says_what_its_gpu_costs_without_a_jump(open_page):
    page = open_page()
    below = page.locator(".kinds").bounding_box()["y"]
    wait_until(page, "() => document.querySelector('.costs').textContent.includes('of 80 GiB')")
    assert page.locator(".kinds").bounding_box()["y"] == below
    before = page.inner_text(".costs")
    type_sizes(page, tp=4)
    wait_until(
        page,
        "(before) => { const now = document.querySelector('.costs').innerText;"
        " return now && now !== before; }",
        before,
    )


@pytest.mark.browser
def test_memory_that_does_not_fit_is_loud_and_a_checked_box_is_seen(open_page):
    page = open_page()
    follow_link(page, "nodes=2&tp=1&pp=1&model=llama3-70b")
    wait_until(page, "() => document.querySelector('.costs .too-full')")
    assert "does not fit" in page.inner_text(".costs .too-full")
    page.check(".switch input")
    fill = page.eval_on_selector(".switch input", "box => getComputedStyle(box).backgroundColor")
    page.uncheck(".switch input")
    assert fill != page.eval_on_selector(
        ".switch input", "box => getComputedStyle(box).backgroundColor"
    )


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
