"""Hang and Hosts in the browser: files dropped and chosen, machines named, and where they lead."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from addresses import follow_link
from browser import box, expect, requests_during, settle, write

from descriptions import PAGE
from request.answers.slow.files import EXAMPLE

DUMPS = Path(__file__).parent / "data" / "hang" / "dumps"

DROP = """(files) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    carried.items.add(new File([bytes], name));
  }
  const drop = new DragEvent('drop', { dataTransfer: carried, bubbles: true, cancelable: true });
  document.querySelector('#picture').dispatchEvent(drop);
}"""


def files_of(folder: str) -> list[Path]:
    return sorted(one for one in (DUMPS / folder).glob("nccl_trace_rank_*") if not one.suffix)


def test_dropped_dumps_say_who_is_missing_and_lead_to_its_groups(open_page):
    page = open_page()
    follow_link(page, "v=1&show=hang")
    dropped = [
        [one.name, base64.b64encode(one.read_bytes()).decode()]
        for one in files_of("e_p2p_pp_recv_missing")
    ]
    page.evaluate(DROP, dropped)
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("GPU 12 (node 1, device 4) never entered send/recv 4")
    expect(page.locator(".chain [data-set]")).to_have_count(16)
    assert "digest" not in page.url
    page.set_input_files("#hang-files", files_of("a_missing_rank2"))
    expect(page.locator(".refusal")).to_contain_text("a job of 4 GPUs")
    page.locator(".refusal .fix").first.click()
    settle(page)
    expect(verdict).to_contain_text("GPU 2 (node 0, device 2) never entered all_reduce 5")
    verdict.get_by_role("button", name="GPU 2").click()
    title = PAGE["rank_title"]["en"].format(rank=2)
    expect(page.locator(".picture[data-view=ranks] h2", has_text=title)).to_have_count(1)


SILENT = "\n".join(
    f"[rank{rank}]:[E] [PG ID 2 PG GUID 40(TENSOR_MODEL_PARALLEL_GROUP) Rank {rank}] "
    "Timeout at NCCL work: 7"
    for rank in (0, 1, 3)
)


def test_pasted_lines_name_the_silent_gpu_and_a_command_is_copied(open_page):
    """The layout that the places in a group contradict is mended first: its button says both."""
    page = open_page()
    follow_link(page, "v=1&show=hang&nodes=1&tp=2&pp=1")
    box(page, "evidence").fill(SILENT)
    verdict = page.locator(".verdict")
    expect(verdict).to_contain_text("of the tp group waits, and of its members only GPU 2")
    page.locator(".refusal .fix").first.click()
    settle(page)
    expect(page.locator(".refusal")).to_have_count(0)
    expect(verdict).to_contain_text("of tp group 0 waits, and of its members only GPU 2 (node 0")
    steps = page.locator(".next-steps > li")
    expect(steps).to_have_count(4)
    expect(steps.last.locator("pre")).to_have_text("python -m groups share dumps --tp 4")
    page.evaluate("navigator.clipboard.writeText = (text) => { window.copied = text }")
    steps.first.get_by_role("button").click()
    assert page.evaluate("window.copied") == steps.first.locator("pre").inner_text()


PASTE = """text => {
  const clipboardData = new DataTransfer();
  clipboardData.setData('text/plain', text);
  const pasted = new ClipboardEvent('paste', { clipboardData, bubbles: true, cancelable: true });
  document.querySelector('#field-evidence').dispatchEvent(pasted);
}"""


def test_a_long_log_goes_the_way_of_files_and_files_that_are_too_large_go_nowhere(open_page):
    page = open_page()
    follow_link(page, "v=1&show=hang")
    line = "[rank3]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)\n"
    page.evaluate(PASTE, line * 4000)
    expect(page.locator(".example")).to_have_count(0)
    expect(page.locator(".verdict")).to_have_count(1)
    expect(box(page, "evidence")).to_have_value("")
    large = "{ get: () => 2 ** 26, configurable: true }"
    page.evaluate(f"Object.defineProperty(File.prototype, 'size', {large})")
    files = page.locator(".files")
    words = json.loads(files.get_attribute("data-said"))
    sent = requests_during(
        page, lambda: page.set_input_files("#hang-files", files_of("a_missing_rank2"))
    )
    assert sent == []
    expect(files.locator("strong")).to_have_text(words["large"])
    page.evaluate("delete File.prototype.size")  # the next test has the same page


def test_a_summary_of_traces_says_who_is_slow_and_a_click_shows_the_calls_of_a_gpu(open_page):
    """The run had 8 GPUs, the page 16: a button opens its layout; nothing of it is in the link."""
    page = open_page()
    follow_link(page, "v=1&show=slow")
    page.set_input_files("#slow-files", EXAMPLE)
    expect(page.locator(".example")).to_have_count(0, timeout=30_000)  # a worker may begin first
    expect(page.locator(".verdict")).to_contain_text("GPU 3 slows the others")
    page.get_by_role("button", name="Open the layout that ran").click()
    settle(page)
    expect(page.locator(".ran")).to_have_count(0)
    expect(page.locator("#job input[data-field=nodes]")).to_have_value("8")
    assert "trace" not in page.url
    rows = page.locator("svg.together .rows text")
    for rank in (0, 6):
        page.locator("svg.lost .hit").nth(rank).click()
        settle(page)
        expect(rows.filter(has_text=f"GPU {rank}")).to_have_attribute("font-weight", "600")
    box(page, "slow_group").select_option(index=2)
    settle(page)
    drawn = page.locator("svg.together").get_attribute("aria-label")
    assert drawn.endswith(box(page, "slow_group").locator("option:checked").inner_text())


def test_machines_give_a_better_order_that_the_page_can_use(open_page):
    page = open_page()
    follow_link(page, "v=1&show=hosts&nodes=8&tp=8&ep=16&etp=1")
    page.get_by_role("button", name="Use this example").click()
    expect(page.locator(".verdict")).to_contain_text("ep 4 → 0, dp 16 → 0, pp 0 → 32.")
    page.get_by_role("button", name="Use this order").click()
    expect(page.locator(".verdict")).to_contain_text("Keep the order")
    expect(box(page, "hosts")).to_have_value(
        "gpu-00\ngpu-02\ngpu-04\ngpu-06\ngpu-01\ngpu-03\ngpu-05\ngpu-07"
    )


def test_a_text_that_is_too_long_for_a_question_is_said_and_not_sent(open_page):
    page = open_page()
    follow_link(page, "v=1&show=hosts")
    write(page, "hosts", "n" * 1_000_001)
    expect(page.locator("#hint")).to_contain_text("bytes of at most 980,000")
    page.get_by_role("button", name="Use this example").click()
    expect(page.locator(".picture")).to_contain_text("2 hosts for 16 GPUs")
