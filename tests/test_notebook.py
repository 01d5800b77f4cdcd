"""What a notebook shows of a mesh, a layout and a timeline, and the notebook of docs/."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest
from docs_notebook import FILE, ROOT, outputs_of, shown

from groups import parse_mesh
from groups.errors import LayoutError
from groups.layout import Job
from render import notebook as painter  # noqa: F401
from training.pipeline import plan_of, simulate

VALUES = {
    "mesh": parse_mesh("tp2-dp4-pp2"),
    "layout": Job(nodes=2, tp=2, pp=2).layout(),
    "experts": Job(nodes=2, tp=2, pp=2, ep=4, etp=1).layout(),
    "large": Job(nodes=256, tp=8, pp=8).layout(),
    "other": Job(nodes=2, tp=2, pp=2, framework="vllm").layout(),
    "rank": Job(nodes=2, ep=4).layout().show("ep", rank=5),
    "timeline": simulate(plan_of("1f1b", p=4, m=8)),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_notebook_gets_text_an_svg_and_html_that_stands_by_itself(name):
    value = VALUES[name]
    bundle = value._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/plain"] == str(value)
    assert len(str(value)) < 100
    ElementTree.fromstring(bundle["image/svg+xml"].encode())
    html = bundle["text/html"]
    assert html.count("<svg") == html.count("</svg>") == 2  # light and dark
    assert "prefers-color-scheme: dark" in html
    assert not re.search(r"<script|https?://(?!www\.w3\.org)|\burl\(|\bon\w+=|var\(", html)


def test_the_picture_is_the_one_of_the_rank_that_is_named():
    bundle = VALUES["rank"]._repr_mimebundle_()
    assert "■ ep</b> of rank 5: 4, 5, 6, 7" in bundle["text/html"]
    layout = VALUES["layout"]
    assert str(layout.show("tp", rank=3)) == "rank 3 of tp2-cp1-dp4-pp2: tp 2, 3"
    assert layout.show(rank=3) != layout.show(rank=4)
    with pytest.raises(LayoutError):
        layout.show("tpp")
    with pytest.raises(LayoutError):
        layout.show("tp", rank=16)


def test_without_axes_or_from_another_rank_on_a_mesh_is_its_text():
    for text in ("dp1", "tp2-dp2+8"):
        assert parse_mesh(text)._repr_mimebundle_() == {"text/plain": text}


@pytest.mark.parametrize("missing", ["render", "PIL"])
def test_where_nothing_can_draw_the_text_is_left(missing):
    code = f"""
import sys
from package import fit
from groups.layout import Job
layout = Job(nodes=256).layout()
assert not {{"render", "matplotlib", "PIL"}} & {{*sys.modules}}
sys.modules["{missing}"] = None
print(*layout._repr_mimebundle_())
assert "matplotlib" not in sys.modules
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (out.stdout, out.stderr) == ("text/plain\n", "")


def test_the_package_knows_who_draws_without_being_told():
    code = """
from package import fit
from groups.layout import Job
print(*sorted(Job(nodes=256).layout()._repr_mimebundle_()))
"""
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert (out.stdout, out.stderr) == ("image/svg+xml text/html text/plain\n", "")


def test_the_notebook_runs_and_shows_what_it_keeps():
    notebook = json.loads(FILE.read_text("utf-8"))
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    values = shown(notebook["cells"])
    assert len(values) == len(codes) > 5
    for cell, value in zip(codes, values):
        assert cell["outputs"] == outputs_of(value), "python tests/docs_notebook.py writes it anew"
