"""The page is wired in Gradio: app.py says which control draws what, and takes another one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from markupsafe import Markup

import app
from groups.kept import STORE
from request.state import State
from views.client.components import Settings, ShownRegion, SizeSlider, StateField
from views.page import draw
from views.regions import REGIONS, Shown
from views.regions import Region as Row

SOURCE = Path(app.__file__).read_text(encoding="utf-8")

AFTER = {
    'picture = region("picture"': """
rings = gr.Slider(1, 64, 8, step=1, label="Hands of a clock")
ring = region("ring", kind=Picture)
clock = Picture("clock", clock_of(8, {}))
""",
    "pictures = [job,": """
pictures.append(ring)
""",
    "words = [": """
gr.on(
    [one.input for one in (*controls, rings)],
    clock_of,
    [rings, settings],
    clock,
)
""",
}
"""Ten lines of app.py at most: a control of Gradio's own with its picture, and a picture of the
layout, each after a line."""


def ring_html(shown: Shown) -> Markup:
    """Of the registry: what is drawn of every layout."""
    return Markup(f"<p>a ring of {shown.layout.mesh.size('tp')}</p>" if shown.layout else "")


def clock_of(hands: float, settings: dict[str, Any]) -> str:
    return f"<p>{hands} hands on {settings.get('nodes')} nodes</p>"


@pytest.fixture
def another(monkeypatch) -> Iterator[ModuleType]:
    """app.py with these lines in it."""
    STORE.clear()  # of answers without it
    monkeypatch.setitem(REGIONS, "ring", Row(ring_html, "layout"))
    lines = []
    for line in SOURCE.splitlines():
        lines.append(line)
        for beginning, more in AFTER.items():
            if line.strip().startswith(beginning):
                indent = line[: len(line) - len(line.lstrip())]
                lines += [indent + one for one in more.splitlines()[1:]]
    assert len(lines) - len(SOURCE.splitlines()) <= 10
    made = ModuleType("another")
    vars(made)["clock_of"] = clock_of
    exec(compile("\n".join(lines), "app.py", "exec"), vars(made))
    yield made
    STORE.clear()


def run(coroutine: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()


def events_of(demo: Any) -> list[Any]:
    return [event for event in demo.fns.values() if event.targets and event.fn]


def test_a_control_and_its_pictures_are_ten_lines_and_a_row_of_the_registry(another):
    demo = another.create_app()
    own, page = events_of(demo)
    fields = [one.field for one in page.inputs]
    values = [None] * len(fields)
    values[fields.index("tp")], values[-1] = "4", {"words": "en", "shown": "groups"}
    told = run(page.fn(*values))
    drawn = {one.region: html for one, html in zip(page.outputs, told)}
    assert drawn["ring"] == "<p>a ring of 4</p>"
    assert [event for _, event in own.targets] == ["input"] * (len(fields) + 1)
    assert own.fn(3, {"nodes": "2"}) == "<p>3 hands on 2 nodes</p>"
    assert own.outputs[0].region == "clock"


def test_every_region_and_every_control_is_an_output_of_the_page():
    page, *others = events_of(app.create_app())
    assert not others
    shown = {one.region for one in page.outputs}
    assert shown == {*REGIONS, "notice", "answer"}
    controls = {one.field: one for one in page.inputs}
    assert set(page.inputs) <= set(page.outputs)
    assert isinstance(page.inputs[-1], Settings)
    first = draw({})
    for name, control in controls.items():
        assert isinstance(control, StateField)
        if name != "settings":
            assert control.value == getattr(State(), name)
        if isinstance(control, SizeSlider):
            assert control.stops == first["stops"][name]


def test_what_did_not_change_is_not_sent_again():
    (page,) = events_of(app.create_app())
    fields = [one.field for one in page.inputs]
    values = [*[None] * (len(fields) - 1), {"words": "en", "shown": "groups", "tp": "3"}]
    told = run(page.fn(*values))
    drawn = {one.region: value for one, value in zip(page.outputs, told)}
    for name in ("title", "nav", "picture", "details", "job"):
        assert drawn[name].model_dump() == {"__type__": "update"}
    assert "does not divide 16" in drawn["status"]
    assert drawn["size-tp"].model_dump()["props"] == {"stops": "1 2 4 8"}
    values[-1] = {"words": "zh", "shown": "groups"}
    relabelled = {one.region: value for one, value in zip(page.outputs, run(page.fn(*values)))}
    assert "html" in relabelled["size-tp"].model_dump()["props"]
    assert isinstance(page.outputs[0], ShownRegion)
