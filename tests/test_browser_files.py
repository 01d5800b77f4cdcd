"""The table, the list to copy and the files, as a person gets them from the page."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest
from browser import (
    TOASTS,
    cell,
    expect,
    expect_layout,
    expect_refusal,
    type_in,
)
from PIL import Image

from descriptions import PAGE, PRESET_NAMES
from groups import rank_groups
from groups.placement import nodes_spanned
from views.messages import sentence
from views.state import Controls, from_preset

pytestmark = pytest.mark.browser


def all_groups(layout):
    """(kind, group, nodes spanned, ranks) of every group that the page shows."""
    for kind in layout.kinds:
        groups = rank_groups(layout.mesh, kind)
        spanned = nodes_spanned(groups, layout.gpus_per_node).tolist()
        for index, (ranks, nodes) in enumerate(zip(groups.tolist(), spanned)):
            yield kind, index, nodes, ranks


def save(page, form):
    """The name and the bytes of the file behind a button."""
    with page.expect_download() as download:
        page.locator(f"#save-{form}").click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_the_table_lists_every_group_of_a_small_world(open_page):
    page = open_page()
    layout = expect_layout(page)
    rows = page.locator("#details tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    assert rows == [
        [kind, str(index), ", ".join(map(str, ranks)), str(nodes)]
        for kind, index, nodes, ranks in all_groups(layout)
    ]
    expect(page.locator("#details .more")).to_have_count(0)


def test_the_table_of_a_large_world_shows_the_first_rows_and_says_how_many_there_are(open_page):
    page = open_page()
    page.get_by_role("button", name=PRESET_NAMES["llama3-405b"]["en"]).click()
    layout = expect_layout(page, from_preset("llama3-405b"))
    more = page.locator("#details details.groups .more")
    expect(more).to_have_text(PAGE["more_rows"]["en"].format(shown=32, total="2,048"))
    rows = page.locator("#details tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
    )
    wanted = [
        [kind, str(index), ", ".join(map(str, ranks)), str(nodes)]
        for kind, index, nodes, ranks in all_groups(layout)
        if index < 32
    ]
    assert rows == wanted


def test_copy_puts_the_exact_list_on_the_clipboard(open_page, server):
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
    type_in(page, "tp", "4")
    layout = expect_layout(page, tp=4)
    page.locator("#details details.list summary").click()
    page.locator(".copy").click()
    expect(page.locator(".copy")).to_have_text(PAGE["copied"]["en"])
    wanted = [f"{kind} group {index}: {ranks}" for kind, index, _, ranks in all_groups(layout)]
    assert page.evaluate("navigator.clipboard.readText()").splitlines() == wanted
    expect(page.locator(".copy")).to_have_text(PAGE["copy"]["en"])


@pytest.mark.parametrize("preset", ["playground-16", "llama3-405b"])
def test_files_are_what_their_buttons_say(open_page, preset):
    page = open_page()
    page.get_by_role("button", name=PRESET_NAMES[preset]["en"]).click()
    layout = expect_layout(page, from_preset(preset))
    for form, start in (("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-")):
        name, data = save(page, form)
        assert name == f"{layout.group_type}-{layout.mesh}.{form}"
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
    name, data = save(page, "txt")
    assert name == f"groups-{layout.mesh}.txt"
    lines = data.decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        f"{kind} group {index}: {ranks}" for kind, index, _, ranks in all_groups(layout)
    ]


def test_the_same_file_can_be_saved_twice(open_page):
    page = open_page()
    cell(page, "tp", 3).click()
    assert save(page, "csv") == save(page, "csv")


def test_a_refused_layout_gives_a_message_and_no_file(open_page):
    page = open_page()
    layout = expect_layout(page)
    type_in(page, "tp", "3")
    error = expect_refusal(page, Controls(tp=3), still=layout)
    files = []
    page.on("download", lambda file: files.append(file))
    page.locator("#save-csv").click()
    expect(page.locator(TOASTS).first).to_contain_text(
        re.compile(re.escape(sentence(error, "en")[:20]))
    )
    page.wait_for_timeout(500)
    assert files == []
    expect_refusal(page, Controls(tp=3), still=layout)
