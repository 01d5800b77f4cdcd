"""Picture files of every view that has pictures: their scenes as data, and files that open."""

from __future__ import annotations

import io
import re
from xml.etree import ElementTree

import pytest
from PIL import Image

from groups import LayoutError
from render import scene
from views.asked import Asked
from views.export import DRAWN, PICTURES, picture_file
from views.link import Linked
from views.memory_asked import MemoryAsked
from views.state import Controls, from_preset, read

SMALL, LARGE = Controls(nodes=4, framework="llama3", cp=2, tp=4), from_preset("deepseek-v3")
NEARLY = MemoryAsked(spread="nearly")  # 61 layers over 16 stages
KEPT = "?v=1&nodes=4&tp=2&cp=2"


def groups_in(panels) -> list[tuple[str, list[int]]]:
    """Each panel's kind, and the group of every rank."""
    return [(panel.kind, panel.group.tolist()) for panel in panels]


def drawn(controls: Controls, **asked):
    now = Linked(controls, Asked(**asked), "en")
    return DRAWN[now.asked.view](read(controls), now)


def test_the_groups_view_saves_a_panel_of_each_kind_that_it_shows():
    layout = read(SMALL)
    pictures = drawn(SMALL, view="groups")
    panels = [scene.panel(one, 8) for one in layout.shown]
    assert groups_in(picture for _, picture in pictures) == groups_in(panels)
    assert [title.split(":")[0] for title, _ in pictures] == list(layout.kinds)


def test_a_large_world_is_saved_with_the_groups_of_the_pinned_rank():
    titles = [title for title, _ in drawn(LARGE, view="groups", rank="700")]
    assert len(titles) == 4  # two grids, the logical mesh and the nodes of each
    assert all("groups of rank 700" in title for title in titles[::2])


def test_the_orders_view_saves_both_orders_of_each_kind_that_moves():
    layout, megatron = read(SMALL), read(Controls(nodes=4, cp=2, tp=4))
    pictures = drawn(SMALL, view="orders")
    names = [title.split(":")[0] for title, _ in pictures]
    assert names == ["dp", "dp", "pp", "pp"]
    sides = [side.every[name] for name in ("dp", "pp") for side in (megatron, layout)]
    panels = [scene.panel(side, 8) for side in sides]
    assert groups_in(picture for _, picture in pictures) == groups_in(panels)


def test_the_compare_view_saves_the_kept_layout_and_the_one_on_screen():
    before, after = read(Controls(nodes=4, tp=2, cp=2)), read(SMALL)
    pictures = drawn(SMALL, view="compare", kept=KEPT)
    names = [name for name in after.kinds if name in before.every]
    sides = [side.every[name] for side in (before, after) for name in names]
    panels = [scene.panel(side, 8) for side in sides]
    assert groups_in(picture for _, picture in pictures) == groups_in(panels)


@pytest.mark.parametrize("view", ["orders", "compare"])
def test_what_the_view_refuses_is_refused_as_a_file_too(view):
    with pytest.raises(LayoutError):
        drawn(SMALL, view=view, versus="tp-tp", kept="no link")


@pytest.mark.parametrize("form", PICTURES)
@pytest.mark.parametrize("view", DRAWN)
@pytest.mark.parametrize("controls", [SMALL, LARGE], ids=["panels", "overviews"])
def test_every_file_opens_as_what_it_is(controls, view, form):
    now = Linked(controls, Asked(view=view, kept=KEPT, memory=NEARLY), "en")
    data = picture_file(read(controls), now, form)
    if form == "png":
        image = Image.open(io.BytesIO(data))
        assert len(image.convert("RGB").getcolors(1 << 24)) > 5
    elif form == "svg":
        assert ElementTree.fromstring(data).tag.endswith("svg")
    else:
        assert data.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type /Page\b", data)) == 1
