"""The table, the list to copy and the files, as a person gets them from the page."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from addresses import follow_link
from browser import (
    PATIENCE,
    choose_preset,
    expect,
    expect_layout,
    expect_refusal,
    pass_time,
    settle,
    type_in,
)
from PIL import Image

from descriptions import PAGE, SHELL
from request.resolve import from_preset
from request.state import State
from request.words import sentence

pytestmark = pytest.mark.browser


def all_groups(layout):
    """(kind, group, nodes spanned, ranks) of every group that the page shows."""
    for one in layout.shown:
        for index, ranks in enumerate(one.groups()):
            found = [int(rank) for rank in ranks]
            yield one.name, index, len({rank // layout.gpus_per_node for rank in found}), found


def press_save(page, form):
    """The button of the Save menu."""
    page.locator("#tools .menu > summary").click()
    page.locator(f"[data-save={form}]").click()


def save(page, form):
    """The name and the bytes of the file behind a button."""
    # The first picture of a server imports matplotlib, which a busy machine takes long for.
    with page.expect_download(timeout=3 * PATIENCE) as download:
        press_save(page, form)
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def rows_shown(page):
    return page.locator("#details tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )


def rows_of(layout, most=None):
    return [
        [kind, str(index), ", ".join(map(str, ranks)), str(nodes)]
        for kind, index, nodes, ranks in all_groups(layout)
        if most is None or index < most
    ]


def test_the_table_lists_every_group_and_copy_gives_the_exact_list(open_page, server):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    assert rows_shown(page) == rows_of(expect_layout(page))
    type_in(page, "tp", "4")
    layout = expect_layout(page, tp=4)
    assert rows_shown(page) == rows_of(layout)
    expect(page.locator("#details .more")).to_have_count(0)
    page.locator("#details details.list summary").click()
    page.locator(".copy").click()
    expect(page.locator(".copy")).to_have_text(PAGE["copied"]["en"])
    wanted = [f"{kind} group {index}: {ranks}" for kind, index, _, ranks in all_groups(layout)]
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == wanted
    pass_time(page, 1500)
    expect(page.locator(".copy")).to_have_text(PAGE["copy"]["en"])


def expect_files(page, layout, group_type):
    """Every button gives the file that it names, with what is on screen, twice if asked twice."""
    for form, start in (("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-")):
        name, data = save(page, form)
        assert name == f"{group_type}-{layout.mesh}.{form}"
        assert data.startswith(start)
        if form == "png":
            assert min(Image.open(io.BytesIO(data)).size) > 600
    name, data = save(page, "csv")
    assert name == f"groups-{layout.mesh}.csv"
    rows = list(csv.reader(io.StringIO(data.decode())))
    assert rows[0] == ["kind", "group", "nodes_spanned", "ranks"]
    assert rows[1:] == [
        [kind, str(index), str(nodes), " ".join(map(str, ranks))]
        for kind, index, nodes, ranks in all_groups(layout)
    ]
    assert save(page, "csv") == (name, data)
    name, data = save(page, "txt")
    assert name == f"groups-{layout.mesh}.txt"
    lines = data.decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        f"{kind} group {index}: {ranks}" for kind, index, _, ranks in all_groups(layout)
    ]


def test_a_large_world_lists_the_first_groups_and_its_files_have_all(open_page):
    page = open_page()
    layout = choose_preset(page, "llama3-405b-3")
    more = page.locator("#details details.groups .more")
    expect(more).to_have_text(PAGE["more_rows"]["en"].format(shown=32, total="2,048"))
    assert rows_shown(page) == rows_of(layout, most=32)
    expect_files(page, layout, from_preset("llama3-405b-3").group_type)


def test_files_of_16_gpus_and_none_of_a_refused_layout(open_page):
    page = open_page()
    layout = expect_layout(page)
    expect_files(page, layout, State().group_type)
    type_in(page, "tp", "3")
    error = expect_refusal(page, State(tp=3), still=layout)
    files = []
    page.on("download", lambda file: files.append(file))
    for form in ("csv", "png"):
        press_save(page, form)
        expect(page.locator("#notice")).to_contain_text(sentence(error, "en"))
        page.locator("[data-close]").click()
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator("#main")).to_be_focused()
    settle(page)
    assert files == []
    expect_refusal(page, State(tp=3), still=layout)


def test_a_frame_for_a_web_page_is_copied_from_the_menu_and_shows_picture_and_card(
    open_page, server
):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    follow_link(page, "v=2&tp=4&rank=5")
    page.locator("#tools summary").click()
    page.get_by_role("button", name=SHELL["copy_frame"]["en"]).click()
    expect(page.locator("#hint")).to_have_text(SHELL["frame_copied"]["en"])
    copied = page.evaluate("navigator.clipboard.readText()")
    found = page.evaluate(
        """(html) => {
          const frame = new DOMParser().parseFromString(html, 'text/html').body.firstChild;
          return [frame.nodeName, frame.src, frame.title];
        }""",
        copied,
    )
    name, address, title = found
    assert (name, title) == ("IFRAME", PAGE["title"]["en"])
    assert address.startswith(server)
    assert {"tp=4", "rank=5", "embed=1"} <= {*urlsplit(address).query.split("&")}
