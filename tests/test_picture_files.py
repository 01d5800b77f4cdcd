"""Pictures as files: from a program, the command line and an endpoint."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest
from markup import select
from test_command import answered, ask

from groups import LayoutError
from groups.layout import Job
from views.all import ENDPOINTS

ROOT = Path(__file__).parent.parent
JOB = Job(nodes=2, tp=2, pp=2, ep=4, etp=1)
STARTS = {"svg": b"<?xml", "png": b"\x89PNG\r\n", "pdf": b"%PDF-"}


def texts_of(svg: str) -> list[str]:
    return [node.text().strip() for node in select(svg, "text")]


@pytest.mark.parametrize("form", STARTS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_layout_is_saved_in_the_form_that_the_name_says(form, theme, tmp_path):
    file = tmp_path / f"groups.{form.upper()}"
    JOB.layout().save(file, "tp", "ep", rank=5, theme=theme)
    assert file.read_bytes().startswith(STARTS[form])


def test_a_program_that_knows_only_groups_draws_in_a_checkout(tmp_path):
    code = f"from groups.layout import Job; Job(tp=2).layout().save({str(tmp_path / 'g.svg')!r})"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    assert "tp0" in texts_of((tmp_path / "g.svg").read_text())


def test_the_picture_has_the_gpu_asked_for_and_every_group_of_its_kinds(tmp_path):
    JOB.layout().save(tmp_path / "g.svg", "tp", "ep", rank=5)
    shown = texts_of((tmp_path / "g.svg").read_text())
    assert {"The groups of GPU 5, dense layers", "The groups of GPU 5, experts"} <= {*shown}
    assert {"tp: 8 groups of 2 GPUs", "ep: 4 groups of 4 GPUs", "tp: 4, 5"} <= {*shown}
    assert {f"tp{index}" for index in range(8)} | {f"ep{index}" for index in range(4)} <= {*shown}
    assert "dp0" not in shown
    assert "tp2-cp1-dp4-pp2, etp1-ep4-edp2-pp2 on 2 nodes of 8 GPUs" in shown


def test_a_large_job_is_one_raster_without_panels(tmp_path):
    Job(nodes=2048, tp=8, pp=8).layout().save(tmp_path / "g.svg", rank=5)
    assert not any(
        text.startswith("tp: ") and "groups" in text
        for text in texts_of((tmp_path / "g.svg").read_text())
    )


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("g.gif",), "try out g.svg, out g.png or out g.pdf"),
        (("g.svg", "banana"), "'banana' is not a choice of kind"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(given, sentence):
    with pytest.raises(LayoutError, match=sentence):
        JOB.layout().save(*given)
    with pytest.raises(LayoutError, match="there is no rank 16"):
        JOB.layout().save("g.svg", rank=16)
    with pytest.raises(LayoutError, match="try theme light or theme dark"):
        JOB.layout().save("g.svg", theme="blue")


def test_the_command_line_writes_the_same_file(tmp_path):
    file = tmp_path / "g.svg"
    command = "picture tp ep --nodes 2 --tp 2 --pp 2 --ep 4 --etp 1 --rank 5"
    said = answered(f"{command} --out {file}").out
    assert (
        said == f"{file}: rank 5 of tp2-cp1-dp4-pp2 and etp1-ep4-edp2-pp2: tp 4, 5; ep 4, 5, 6, 7\n"
    )
    JOB.layout().save(tmp_path / "other.svg", "tp", "ep", rank=5)
    assert file.read_text() == (tmp_path / "other.svg").read_text() == answered(command).out


def test_the_command_line_says_what_it_cannot_write(tmp_path):
    assert "cannot write" in ask(f"picture --out {tmp_path}/none/g.svg").err
    assert "try --out g.svg or --out g.png or --out g.pdf" in ask("picture --out g.jpg").err


@pytest.mark.parametrize("form", STARTS)
def test_the_endpoint_answers_with_the_file(form):
    job = {"nodes": 2, "tp": 2, "pp": 2, "ep": 4, "etp": 1}
    answer = json.loads(ENDPOINTS["picture"](names="tp ep", rank=5, form=form, **job))
    assert answer["name"] == f"groups-tp2-cp1-dp4-pp2.{form}"
    data = answer["data"].encode() if form == "svg" else b64decode(answer["data"])
    assert data.startswith(STARTS[form])
