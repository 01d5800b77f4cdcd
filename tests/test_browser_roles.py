"""Roles of a plan in a real browser: tabs, the keyboard, the moment, and the way back."""

from __future__ import annotations

import io
from urllib.parse import urlencode
from urllib.request import urlopen

import numpy as np
import pytest
from addresses import follow_link
from browser import UNFOLD, box, expect, in_address, next_frame, requests_during, settle
from PIL import Image

from render.palette import KIND_MARKS, rgb
from request.context import Context
from request.state import State
from request.units import ranges_text
from views.base.html import unparted
from views.roles.hero import answer_text, cluster_of_plan
from views.roles.places import groups_of

pytestmark = pytest.mark.browser

SMALL = {"nodes": "8", "tp": "4", "model": "qwen3-8b", "rank": "12"}
SMALL["roles"] = "*actor@0;rollout@0-63:vllm,tp=2;reward@56-63:tp=1"
LARGE = {"nodes": "64", "tp": "8", "pp": "4"}
LARGE["roles"] = "*actor@0;rollout@0-255:vllm,tp=8;reward@256-511:tp=4,pp=2"
CHOSEN = {"nodes": "2", "roles": "*actor@0;judge@9,3,12,6:tp=2"}

AT = """(gpu) => {
  const svg = document.querySelector('svg.cluster');
  const {cell, nodes, each, wide, left, columns, folds} = JSON.parse(svg.dataset.known);
  let corner;
  if (nodes) {
    const [x, y] = nodes[Math.floor(gpu / each)];
    corner = [x + gpu % each % wide * cell, y + Math.floor(gpu % each / wide) * cell];
  } else {
    const [[own, broad], [, across]] = folds;
    const [node, local] = [Math.floor(gpu / own), gpu % own];
    const tall = Math.ceil(own / broad);
    corner = [left + (node % across * broad + local % broad) * cell,
      (Math.floor(node / across) * tall + Math.floor(local / broad)) * cell];
  }
  const box = svg.getBoundingClientRect();
  const {x, y, width} = svg.viewBox.baseVal;
  const scale = box.width / width;
  const [across, down] = [corner[0] + cell / 2 - x, corner[1] + cell / 2 - y];
  return [box.left + across * scale, box.top + down * scale];
}"""
"""Where the middle of a GPU's cell is on the screen."""

TOLD = """() => [...document.querySelectorAll('.plan-role')].map((section) => [
  section.querySelector('h3 > span').textContent,
  section.classList.contains('absent'),
  section.querySelector('.plan-told > p').textContent.trim(),
  section.querySelector('.me > text')?.textContent ?? null,
])"""

MARKED = """() => [...document.querySelectorAll('.cluster .band')].map((band) =>
  [...band.querySelectorAll('.marked rect')].map((one) => {
    const [name, ...box] = ['class', 'x', 'y', 'height'].map((side) => one.getAttribute(side));
    return [name, ...box.map(Number)];
  }))"""


def told_of(plan, gpu: int) -> list[list[object]]:
    """What is told of a GPU in each role: whether it has none there, its rank and its groups."""
    told = []
    for role in plan.roles:
        rank = role.rank_on(gpu)
        if rank is None:
            spans = f"{role.ranks.min()}–{role.ranks.max()}"
            text = f"Not on GPU {gpu}; {role.name} has GPUs {spans}."
            told.append([role.name, True, text])
            continue
        parts = [f"rank {rank}"]
        for grouping in groups_of(role.layout):
            gpus = np.sort(role.ranks[grouping.members(rank)])
            if len(gpus) > 1:
                parts.append(f"{grouping.name} {ranges_text(gpus, 4)}")
        told.append([role.name, False, " ".join(parts)])
    return told


@pytest.mark.parametrize(("fields", "gpus"), [(SMALL, (12, 60, 0)), (CHOSEN, (3, 12, 15))])
def test_a_gpu_that_is_pointed_at_is_told_in_every_role_without_the_server(open_page, fields, gpus):
    page = open_page()
    follow_link(page, urlencode({"v": 2, "show": "roles", **fields}))
    context = Context.of(State(**{**fields, "view": "roles"}))

    def point() -> None:
        for gpu in gpus:
            page.mouse.move(*page.evaluate(AT, gpu))
            next_frame(page)
            expect(page.locator(".plan h2")).to_have_text(f"Which roles does GPU {gpu} play?")
            answer = unparted(answer_text(context.plan, gpu, "en"))
            assert page.inner_text(".plan-answer") == answer
            seen = page.evaluate(TOLD)
            assert [one[:3] for one in seen] == told_of(context.plan, gpu)
            for (*_, number), role in zip(seen, context.plan.roles):  # the mesh is marked as well
                if (rank := role.rank_on(gpu)) is not None:
                    assert number == str(rank)
            assert [*map(sorted, page.evaluate(MARKED))] == marks_of(context.plan, gpu)

    assert requests_during(page, point) == []
    page.mouse.move(5, 5)
    expect(page.locator(".plan h2")).to_have_text(
        f"Which roles does GPU {fields.get('rank', 0)} play?"
    )


def marks_of(plan, gpu: int) -> list[list[list[object]]]:
    """The marked bands of each role, sorted: their colour, corner and height."""
    picture = cluster_of_plan(plan, gpu)
    marked = []
    for number, band in enumerate(picture.bands):
        tones = {one: tone for tone, gpus in band.marks for one in gpus.tolist()}
        corners, sizes = picture.boxes(number, np.array([*tones], dtype=int), picture.cell - 3)
        boxes = np.column_stack([corners, sizes[:, 1] - 1]).round(2).tolist()
        marked.append(sorted([f"t-{tone}", *box] for tone, box in zip(tones.values(), boxes)))
    return marked


def test_among_many_gpus_the_same_bands_are_marked_as_pixels(open_page):
    page = open_page()
    follow_link(page, urlencode({"v": 2, "show": "roles", **LARGE}))
    plan = Context.of(State(**{**LARGE, "view": "roles"})).plan
    for gpu in (300, 17):
        page.mouse.move(*page.evaluate(AT, gpu))
        next_frame(page)
        picture = cluster_of_plan(plan, gpu)
        for number, band in enumerate(picture.bands):
            href = page.get_attribute(f".cluster .turn{number} .marked image", "href")
            with urlopen(href) as file:
                pixels = np.asarray(Image.open(io.BytesIO(file.read())).convert("RGBA"))
            cells = picture.pixels(number)
            assert ((pixels[..., 3] > 0) == (cells > 1)).all()
            for place, (tone, _) in enumerate(band.marks):
                found = pixels[cells == 2 + place][:, :3]
                assert (found == rgb(KIND_MARKS["light"][tone])).all()


def test_keys_go_from_gpu_to_gpu_in_the_cluster_and_in_the_mesh_of_another_role(open_page):
    page = open_page()
    follow_link(page, urlencode({"v": 2, "show": "roles", **SMALL}))
    title = page.locator(".plan h2")

    def press() -> None:
        page.locator("svg.cluster").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowDown")
        expect(title).to_have_text("Which roles does GPU 21 play?")
        page.locator(".plan-role svg.job").nth(1).focus()
        expect(title).to_have_text("Which roles does GPU 12 play?")
        page.keyboard.press("ArrowRight")
        expect(title).to_have_text("Which roles does GPU 13 play?")

    assert requests_during(page, press) == []
    page.keyboard.press("Enter")
    expect(page.locator(".plan-step h3")).to_contain_text("GPU 13")
    expect(page.locator("#rank input")).to_have_value("13")


def test_a_role_is_added_changed_put_back_and_nothing_is_lost(open_page):
    page = open_page()
    page.goto(page.url.split("?")[0] + "?v=2&nodes=4&tp=4&pp=2&rank=9")
    settle(page)
    page.locator("#fold-roles .fix").evaluate(UNFOLD)
    page.locator("#fold-roles .fix").click()
    tabs = page.locator("#roles .tabs button")
    expect(tabs).to_have_text(["actor 32 GPUs", "rollout 32 GPUs", "+ role"])
    expect(box(page, "framework")).to_have_value("vllm")
    expect(page.locator(".plan h2")).to_have_text("Which roles does GPU 9 play?")
    page.locator("#roles .menu summary").click()
    page.locator("[data-edit=first]").fill("32")
    page.keyboard.press("Tab")
    expect(page.locator(".plan-answer")).to_contain_text("GPU 41: rollout")
    page.locator("[data-edit=name]").fill("actor")
    page.keyboard.press("Tab")
    expect(page.locator("#status .refusal")).to_contain_text("Two roles are named actor")
    tabs.first.click()
    expect(box(page, "pp")).to_have_value("2")
    expect(page.locator("#status .refusal")).to_have_count(0)
    in_address(page, "roles=*actor@0;rollout@32-63:vllm,tp=4")
    page.locator("svg.cluster").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".plan h2")).to_have_text("Which roles does GPU 1 play?")
    page.locator(".plan-step input[type=range]").press("ArrowRight")
    expect(page.locator(".cluster .band.off")).to_have_count(1)
    expect(page.locator(".plan-step output")).to_contain_text("rollout")
    page.locator(".plan-step .ways button").last.click()
    expect(page.locator("#main h2").first).to_have_text("What moves from actor to rollout?")
    page.go_back()
    expect(page.locator(".plan h2")).to_be_visible()
