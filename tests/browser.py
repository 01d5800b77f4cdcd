"""What the browser tests share: reading the page as a person does, and doing what a person does."""

from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from seen import Seen, seen

from descriptions import CARD as CARD_WORDS
from descriptions import JOB, SECTIONS, SHELL, VIEWS
from groups import LayoutError, coordinates
from groups.grouping import Grouping
from render import palette
from render.scenes import groups as scene
from request.answers.sentence import sentence_of
from request.inputs import fields_of
from request.resolve import from_preset, main_groupings
from request.state import State
from request.words import fix_label, sentence
from views.all import SECTIONS as PLACES
from views.base.html import unparted
from views.parts.shown import by_grid

try:
    from playwright.sync_api import Error, Locator, Page, expect
    from playwright.sync_api import TimeoutError as TooLong
except ImportError:  # the `browser` fixture says so, by skipping or failing
    Error = TooLong = Exception  # type: ignore[assignment,misc]
    Locator = Page = expect = None  # type: ignore[assignment,misc]

CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""By what names it is looked for: without windows around its pages it has a third less to do."""

ARGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--in-process-gpu",  # a quarter less to do: every picture goes one process less far
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

PATIENCE = 20_000
"""Milliseconds after which something that should happen counts as missing."""


@dataclass
class Watch:
    """Everything one page asked for, and everything that went wrong in it."""

    requests: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("request", self._started)
        page.on("pageerror", lambda error: self.problems.append(f"page error: {error}"))
        page.on("console", self._said)

    def forget(self) -> None:
        """Begin anew, for the next one who opens the page."""
        self.requests.clear()

    def _started(self, request: Any) -> None:
        url = urlsplit(request.url)
        self.requests.append(request.url)
        if url.scheme not in ("data", "blob") and url.hostname != "127.0.0.1":
            self.problems.append(f"request to another host: {request.url}")

    def _said(self, message: Any) -> None:
        if message.type == "error":
            self.problems.append(f"console error: {message.text} {message.location}")


WATCHES: dict[Page, Watch] = {}
"""The watch of every open page."""


WATCHED = """() => {
  const now = Date.now;
  let later = 0;
  Date.now = () => now() + later;
  const timers = new Map();
  const {setTimeout, clearTimeout} = window;
  window.setTimeout = (then, pause = 0, ...given) => {
    const act = () => { timers.delete(id); then(...given); };
    const id = setTimeout(act, pause);
    timers.set(id, {due: Date.now() + pause, act});
    return id;
  };
  window.clearTimeout = (id) => { timers.delete(id); clearTimeout(id); };
  window.pass = (time) => {
    later += time;
    for (const [id, {due, act}] of timers) {
      if (due > Date.now()) continue;
      clearTimeout(id);
      act();
    }
  };
  const ask = window.fetch;
  window.questions = 0;
  window.fetch = async (what, options) => {
    if (options?.method !== 'POST') return ask(what, options);
    window.questions += 1;
    try {
      const answer = await ask(what, options);
      const {status, headers} = answer;
      return new Response(await answer.arrayBuffer(), {status, headers});
    } finally {
      // Whoever waits for the answer shows it first, and may ask the next one.
      setTimeout(() => { window.questions -= 1; });
    }
  };
}"""
"""Goes into every page: how many of its questions the server has not answered yet, and a clock that
a test can put forward: what is to be done by then is done."""

AT_REST = """(patience) => new Promise((go, fail) => {
  let frames = 0;
  const late = setTimeout(fail, patience, new Error('The page does not come to rest.'));
  const look = () => {
    frames = window.questions ? 0 : frames + 1;
    if (frames < 3) return requestAnimationFrame(look);
    clearTimeout(late);
    go();
  };
  look();
})"""


def view_script(view: str) -> str:
    """The script of a view, after what those of all views share."""
    rooms = Path(__file__).parent.parent / "views"
    files = (rooms / "client" / "shared.js", rooms / view / "view.js")
    return "".join(file.read_text(encoding="utf-8") for file in files)


def settle(page: Page) -> None:
    """Wait until no question of the page is without its answer, and the answer is drawn.

    A number still being typed counts only after a pause: press Enter first.
    """
    page.evaluate(AT_REST, PATIENCE)


HELD = """async ([arg, patience]) => {
  const held = %s;
  const late = performance.now() + patience;
  while (!held(arg)) {
    if (performance.now() > late) return false;
    await new Promise((go) => setTimeout(go, 8));
  }
  return true;
}"""


def wait_until(page: Page, held: str, arg: Any = None) -> None:
    """Wait until a function of the page holds; TooLong if it does not.

    Not looked at frame by frame: when it starts, the page takes frames away that are not its own.
    And in the page itself: Playwright asks for each look, the later the more seldom.
    """
    if not page.evaluate(HELD % held, [arg, PATIENCE]):
        raise TooLong(f"never held: {held}")


def in_address(page: Page, part: str, there: bool = True) -> None:
    """Wait until the address has this part, or has it no more: `page.url` hears of it later."""
    wait_until(page, f"(part) => location.href.includes(part) === {str(there).lower()}", part)


NEXT_FRAME = (
    "() => new Promise(go => requestAnimationFrame(() => requestAnimationFrame(() => go())))"
)


def next_frame(page: Page) -> None:
    """Two frames later: what a script asked to draw is drawn."""
    page.evaluate(NEXT_FRAME)


def costs_told(page: Page) -> None:
    """Wait until the numbers are there, which are asked for once a picture stands."""
    wait_until(page, "() => !document.querySelector('#numbers[aria-busy]')")
    settle(page)


def requests_during(page: Page, act: Callable[[], None]) -> list[str]:
    """What the page fetches while ``act`` runs, and until it is at rest after it."""
    costs_told(page)
    before = len(WATCHES[page].requests)
    act()
    settle(page)
    urls = WATCHES[page].requests[before:]
    return [url for url in urls if not url.startswith(("data:", "blob:"))]


# --- What is shown --------------------------------------------------------------------------------

READ = """() => {
  const mesh = JSON.parse(document.querySelector('.picture').dataset.mesh);
  const grids = mesh.grids.map((axes) => axes.map(([name, size]) => name + size).join('-'));
  const panels = [...document.querySelectorAll('svg.panel')].map((svg) => {
    const groups = [];
    const alone = [];
    JSON.parse(svg.dataset.known).groups.forEach((group, rank) => {
      (group < 0 ? alone : groups[group] ??= []).push(rank);
    });
    return [svg.dataset.kind, groups, alone];
  });
  return [
    [document.querySelector('.derived').dataset.world,
      ...[...document.querySelectorAll('.derived strong')].map((size) => size.textContent)],
    document.querySelector('#status .refusal > p')?.textContent ?? '',
    [...document.querySelectorAll('#status .fix')].map((fix) => fix.textContent),
    grids,
    mesh.gpusPerNode,
    mesh.kinds.slice(0, mesh.told).map(([name, tone, grid]) => [name, grids[grid]]),
    panels,
    [...document.querySelectorAll('svg.overview')].map((svg) => svg.dataset.view),
  ];
}"""


def listed(layout: Seen) -> tuple[Grouping, ...]:
    """What the card tells."""
    divided = (one for one in layout.shown if one.size > 1)
    return tuple(dict.fromkeys((*main_groupings(layout), *divided)))


def drawn(layout: Seen) -> list[Any]:
    """The part of READ that pictures this layout: every group of every panel."""
    small = layout.world_size <= scene.PANEL_LIMIT
    sides = sides_of(layout)
    told = [str(layout.mesh)]
    if any(one.mesh == layout.expert for one in listed(layout)):
        told.append(str(layout.expert))
    # Beside another grid, groups of one rank are told in words alone.
    pictured = [one for one in layout.shown if len(sides) == 1 or one.size > 1]
    return [
        told,
        layout.gpus_per_node,
        [[one.name, str(one.mesh)] for one in listed(layout)],
        [[one.name, groups_of(one), alone(one)] for one in pictured] if small else [],
        [] if small else ["physical"] * len(by_grid(layout, listed(layout))),
    ]


def sides_of(layout: Seen) -> list[list[Grouping]]:
    """What is shown of the dense grid, then of the expert grid, without an empty one."""
    dense = [one for one in layout.shown if one.mesh != layout.expert]
    expert = [one for one in layout.shown if one.mesh == layout.expert]
    return [side for side in (dense, expert) if side]


def groups_of(grouping: Grouping) -> list[list[int]]:
    """All groups in Megatron's order, the ranks of each ascending."""
    return [sorted(int(rank) for rank in ranks) for ranks in grouping.groups()]


def alone(grouping: Grouping) -> list[int]:
    """The ranks that are in no group of the kind."""
    return sorted(
        set(range(grouping.world_size)) - {r for ranks in groups_of(grouping) for r in ranks}
    )


def expect_layout(page: Page, controls: State | None = None, **changes: Any) -> Seen:
    """Wait until the page shows exactly this layout, and refuses nothing."""
    layout = seen(controls or State(**changes))
    sizes = [str(layout.world_size), f"{layout.mesh.size('dp'):,}"]
    expert = layout.expert
    if expert is not None and (
        expert.size("ep") > 1 or expert.size("etp") != layout.mesh.size("tp")
    ):
        sizes.append(f"{expert.size('edp'):,}")
    _expect(page, [sizes, "", [], *drawn(layout)])
    return layout


def expect_refusal(
    page: Page, controls: State, still: Seen | None = None, language: str = "en"
) -> LayoutError:
    """Wait until the page refuses these controls in words, over the last valid picture."""
    error = refusal_of(controls)
    buttons = [fix_label(fix, language) for fix in error.alternatives]
    said = [unparted(sentence(error, language)), buttons]
    if still is None:
        held = f"(said) => !questions && JSON.stringify(({READ})().slice(1, 3)) === said"
        wait_until(page, held, _json(said))
    else:
        _expect(page, [None, *said, *drawn(still)])
    return error


def refusal_of(controls: State) -> LayoutError:
    """The LayoutError of controls that cannot be."""
    try:
        seen(controls)
    except LayoutError as error:
        return error
    raise AssertionError(f"{controls} is valid")


def _expect(page: Page, wanted: list[Any]) -> None:
    """Wait for READ to be ``wanted``; None as its first entry is anything."""
    first = 0 if wanted[0] is not None else 1
    held = f"(wanted) => !questions && JSON.stringify(({READ})().slice({first})) === wanted"
    try:
        wait_until(page, held, _json(wanted[first:]))
    except TooLong:
        shown = page.evaluate(READ)[first:]
        boxes = page.locator(".size input[type=text]").evaluate_all("all => all.map(i => i.value)")
        raise AssertionError(f"shown {shown}, wanted {wanted[first:]}, boxes {boxes}") from None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


LIT = """() => [...document.querySelectorAll('svg.panel')].map((svg) => {
  const ranks = (name) => [...svg.querySelectorAll('.c' + name)].map((c) => Number(c.dataset.r));
  return [svg.dataset.kind, ranks('.on'), ranks('.me'), ranks('.pin')];
})"""


def expect_lit(page: Page, layout: Seen, rank: int | None, pinned: int | None = None) -> None:
    """Wait until exactly the groups of ``rank`` are lit, in every panel; itself, if in none. Where
    none is chosen, those of GPU 0."""
    rank = rank or 0
    wanted = [
        [
            kind,
            members(layout, kind, rank) or [rank],
            [rank],
            [] if pinned is None else [pinned],
        ]
        for kind, *_ in drawn(layout)[3]
    ]
    try:
        wait_until(page, f"(wanted) => JSON.stringify(({LIT})()) === wanted", _json(wanted))
    except TooLong:
        assert page.evaluate(LIT) == wanted
        raise


def members(layout: Seen, kind: str, rank: int) -> list[int]:
    """The group of a rank, found by looking through all groups; empty if it is in none."""
    known = {one.name: one for one in (*layout.shown, *listed(layout))}
    grouping = known[kind]
    found = [ranks for ranks in grouping.groups() if rank in ranks]
    assert len(found) <= 1
    return sorted(int(rank) for ranks in found for rank in ranks)


CARD = """() => {
  const told = document.querySelector('.told');
  const text = (selector, within = told) => within.querySelector(selector)?.textContent ?? null;
  const all = (selector) => [...document.querySelectorAll(selector)].map((one) => one.textContent);
  return {
    gpu: text('.gpu b'),
    // Where a model is set, layers come after it.
    place: text('.gpu span')?.replaceAll('\u00a0', ' ').split(' · layers')[0],
    pinned: text('.gpu i') ?? text('.hero .hint.kept', document),
    groups: [...told.querySelectorAll('p:not(.gpu)')].map((p) => [
      text('.chip', p),
      [...p.querySelectorAll('.peers')].map((one) => one.textContent).join(', '),
      text('.quiet, .crosses', p),
      text('.index', p) ?? '',
    ]),
    said: [...all('.hero .question'), ...all('.hero .answer')],
  };
}"""

CARD_OF = f"""async (gpu) => {{
  const holds = {HELD % "(gpu) => document.querySelector('.told .gpu b')?.textContent === gpu"};
  await holds([gpu, {PATIENCE}]);
  await ({NEXT_FRAME})();
  return ({CARD})();
}}"""
"""The card when it is that of a GPU and drawn."""


def card_of(layout: Seen, rank: int, pinned: bool, touch: bool = False) -> dict[str, Any]:
    """What the card must say about a rank, from the groups themselves."""
    node, local = divmod(rank, layout.gpus_per_node)
    stage = coordinates(layout.mesh, rank)["pp"]
    kept = JOB["pinned_touch"] if touch else CARD_WORDS["pinned"]
    groups = []
    for one in listed(layout):
        ranks = members(layout, one.name, rank)
        if not ranks:
            groups.append([one.name, "", JOB["in_none"]["en"], ""])
            continue
        nodes = len({member // layout.gpus_per_node for member in ranks})
        where = f"crosses {nodes:,} nodes" if nodes > 1 else "stays in its node"
        peers = ", ".join(map(str, ranks)) if len(ranks) <= 8 else f"{len(ranks):,} GPUs"
        is_run = ranks[-1] - ranks[0] == len(ranks) - 1
        if layout.world_size > 256 and is_run and 2 < len(ranks) <= 8:  # numbers are long there
            peers = f"{ranks[0]}–{ranks[-1]}"
        groups.append([one.name, peers, where, f"group {one.index()[rank]}"])
    return {
        "gpu": f"GPU {rank}",
        "place": f"node {node}, local {local} · stage {stage}",
        "pinned": kept["en"] if pinned else None,
        "groups": groups,
        "said": [f"Who is grouped with GPU {rank}?", sentence_of(layout, rank, "en")],
    }


def expect_card(page: Page, layout: Seen, rank: int, pinned: bool = False) -> None:
    """Wait until the card tells about this rank, and everything that it must."""
    touch = page.evaluate("matchMedia('(pointer: coarse)').matches")
    shown, wanted = page.evaluate(CARD_OF, f"GPU {rank}"), card_of(layout, rank, pinned, touch)
    assert shown == wanted, f"shown {shown}, wanted {wanted}"


def overview(layout: Seen, rank: int = 0, grid: int = 0) -> scene.Overview:
    """The scene of one grid's nodes."""
    _, mesh, shown = by_grid(layout, listed(layout))[grid]
    return scene.overview(mesh, shown, layout.gpus_per_node, rank)


def picture_of(page: Page, grid: int = 0) -> Locator:
    """The nodes of a large world; with two grids there are two such pictures."""
    return page.locator("svg.overview").nth(grid)


def expect_marks(page: Page, layout: Seen, rank: int, theme: str = "light", grid: int = 0) -> None:
    """Both pictures of a grid mark exactly the groups of this rank, the smallest on top."""
    for view in [overview(layout, rank, grid)]:
        picture = picture_of(page, grid)
        column = int(view.place[rank]) % view.grid.columns
        middle = int(view.left + (column + 0.5) * view.cell)
        expect(picture.locator(".chosen")).to_have_attribute("cx", re.compile(rf"^{middle}(\.|$)"))
        next_frame(page)
        pixels = view.mark_pixels()
        colours = [(0, 0, 0, 0)] + [
            (*palette.rgb(palette.KIND_MARKS[theme][mark.tone]), 255) for mark in view.marks
        ]
        wanted = np.array(colours, dtype=np.uint8)[pixels]
        uri = picture.locator(".marks").get_attribute("href")
        image = Image.open(io.BytesIO(base64.b64decode(uri.split(",")[1])))
        shown = np.asarray(image.convert("RGBA"))
        assert shown.shape == wanted.shape
        assert (shown[..., 3] == wanted[..., 3]).all(), f"marks of {rank} "
        assert (shown == wanted).all(), f"colours of {rank} "
        tags = picture.locator(".tags text").evaluate_all(
            "all => all.map(one => [one.textContent, one.parentNode.className.baseVal,"
            " Number(one.getAttribute('x'))])"
        )
        assert [told for *told, _ in tags] == [[tag.name, f"t-{tag.tone}"] for tag in view.tags]
        assert [x for *_, x in tags] == pytest.approx([tag.x for tag in view.tags], abs=0.2)


TOASTS = ".toast-wrap > *, [data-testid^=toast], .toast-body"


# --- What a person does ---------------------------------------------------------------------------


UNFOLD = """(at) => {
  const bar = document.querySelector('#foot button');
  const isShut = bar?.checkVisibility() && bar.getAttribute('aria-expanded') === 'false';
  if (isShut && at?.closest('#controls')) bar.click();
  for (; at; at = at.parentElement) if (at.nodeName === 'DETAILS') at.open = true;
}"""


def box(page: Page, name: str) -> Locator:
    """The box of a field, unfolded where it is folded away."""
    unfold(page, name)
    return page.locator(f"#field-{name}")


def unfold(page: Page, name: str) -> None:
    """Open the folds that a field is in, and on a phone the column, as a click on each would."""
    page.evaluate(f"name => ({UNFOLD})(document.getElementById(`field-${{name}}`))", name)


def slider(page: Page, name: str) -> Locator:
    unfold(page, name)
    return page.locator(f'.size[data-size="{name}"] input[type=range]')


def type_in(page: Page, name: str, text: str) -> None:
    """Replace what a box holds, and press Enter."""
    typed = box(page, name)
    typed.fill(text)
    typed.press("Enter")


def write(page: Page, name: str, text: str) -> None:
    """Replace what a box holds, and rest until it counts (TYPING_PAUSE of form.js)."""
    box(page, name).fill(text)
    pass_time(page, 350)


def pass_time(page: Page, time: int) -> None:
    """So many milliseconds are over, and the page is at rest after them."""
    page.evaluate(f"(time) => {{ pass(time); return ({AT_REST})({PATIENCE}); }}", time)


def type_sizes(page: Page, **sizes: object) -> None:
    """Give several number boxes their text at once, as a quick person would one by one."""
    page.evaluate(
        """async (sizes) => {
          for (const [name, text] of Object.entries(sizes)) {
            const box = document.querySelector(`#field-${name}`);
            box.value = text;
            box.dispatchEvent(new Event('change', {bubbles: true}));
            await new Promise((go) => setTimeout(go));
          }
        }""",
        {name: str(size) for name, size in sizes.items()},
    )


def choose(page: Page, control: str, label: str) -> None:
    """Pick an entry of a dropdown."""
    box(page, control).select_option(label=label)


def choose_preset(page: Page, preset: str) -> Seen:
    """Pick a published layout, and wait until it is shown."""
    box(page, "preset").select_option(value=preset)
    return expect_layout(page, from_preset(preset))


def show(page: Page, view: str, language: str = "en") -> None:
    """Choose a view by its name, and wait until it is there."""
    section = next((name for name, views in PLACES.items() if view in views), "")
    if not section:  # it has a button of its own
        page.locator(f".paste >> text={SHELL['paste_script'][language]}").dispatch_event("click")
    elif view not in views_here(page):  # it is in another section
        page.locator("#nav .sections").get_by_text(SECTIONS[section][language], exact=True).click()
        wait_until(page, "() => !questions")
    if section and shown_view(page) != view:
        place = page.locator(f"{VIEW_PLACE} >> text=/^{VIEWS[view][language]}$/").first
        if not place.is_visible():  # of the first screen, in the menu of its section
            page.locator("#nav .views > summary").click()
        place.click()
    # Not `expect`, which describes all of the page each time that it is not there yet.
    page.locator(f".picture[data-view={view}]").wait_for(timeout=PATIENCE)


VIEW_PLACE = ":is(#subs button, #nav .views .items > button)"
"""The button of each view of the section on screen."""


def shown_view(page: Page) -> str:
    return page.locator(".app[data-view]").get_attribute("data-view") or ""


def views_here(page: Page) -> tuple[str, ...]:
    """The views of the section on screen."""
    return next((views for views in PLACES.values() if shown_view(page) in views), ())


def fix(page: Page, number: int = 0, mouse: bool = True) -> None:
    """Click a fix; without the mouse it takes a tenth of the time, for tests that click many."""
    button = page.locator("#status .fix").nth(number)
    if mouse:
        button.click()
    else:
        button.evaluate("button => button.click()")


SPOT = """(svg, rank) => {
  const { folds, left, top, sides } = JSON.parse(svg.dataset.known);
  let [x, y, rest] = [left, top, rank];
  for (const [size, period, dx, dy, jumpX, jumpY] of folds) {
    const at = rest % size;
    rest = Math.floor(rest / size);
    x += (at % period) * dx + Math.floor(at / period) * jumpX;
    y += (at % period) * dy + Math.floor(at / period) * jumpY;
  }
  return [x, y, ...sides];
}"""
"""Where a rank's cell is in a picture, in its own pixels: left, top, width, height."""

WRITTEN = f"""(svg, rank) => {{
  const [left, top, wide, tall] = ({SPOT})(svg, rank);
  const within = (text, at) => {{
    const {{ x, y, width, height }} = text.getExtentOfChar(at);
    const [middle, half] = [x + width / 2, y + height / 2];
    return middle > left && middle < left + wide && half > top && half < top + tall;
  }};
  return [...svg.querySelectorAll('.digits text')].flatMap((text) => {{
    const all = [...text.textContent];
    return all.filter((one, at) => one.trim() && within(text, at)).join('') || [];
  }});
}}"""
"""What is written in a rank's cell, by where each letter is."""


class Cell:
    """A GPU in a picture, which is no element of its own: a place to point at."""

    def __init__(self, svg: Locator, rank: int) -> None:
        self.svg, self.rank = svg, rank

    @property
    def place(self) -> Any:
        x, y, wide, tall = self.svg.evaluate(SPOT, self.rank)
        area = self.svg.bounding_box()
        assert area
        scale = area["width"] / self.svg.evaluate("svg => svg.viewBox.baseVal.width")
        return {"x": scale * (x + wide / 2), "y": scale * (y + tall / 2)}

    def hover(self) -> None:
        self.svg.hover(position=self.place)

    def click(self) -> None:
        self.svg.click(position=self.place)

    def tap(self) -> None:
        self.svg.tap(position=self.place)

    def texts(self) -> list[str]:
        return self.svg.evaluate(WRITTEN, self.rank)


def cell(page: Page, kind: str, rank: int) -> Cell:
    return Cell(page.locator(f'svg.panel[data-kind="{kind}"]'), rank)


def job_cell(page: Page, rank: int, number: int = 0) -> Cell:
    return Cell(page.locator("svg.job").nth(number), rank)


def point_at(page: Page, overview: scene.Overview, rank: int, grid: int = 0) -> None:
    """Move the mouse to the middle of a rank's cell in a large picture."""
    page.mouse.move(*middle_of(page, overview, rank, grid))


def turn_to_nodes(page: Page) -> None:
    """Where a switch turns the mesh to its nodes, the pointer stays where it is."""
    page.evaluate("document.querySelector('[data-turns=nodes]')?.click()")


def middle_of(
    page: Page, overview: scene.Overview, rank: int, grid: int = 0
) -> tuple[float, float]:
    """Where a rank's cell is in the window, by Python's own account of the scene."""
    turn_to_nodes(page)
    svg = picture_of(page, grid)
    svg.scroll_into_view_if_needed()
    area = svg.bounding_box()
    assert area
    scale = area["width"] / svg.evaluate("svg => svg.viewBox.baseVal.width")
    row, column = divmod(int(overview.place[rank]), overview.grid.columns)
    return (
        area["x"] + scale * (overview.left + (column + 0.5) * overview.cell),
        area["y"] + scale * (overview.top + (row + 0.5) * overview.cell),
    )


def values(page: Page) -> dict[str, str]:
    """The text in every box of the column, unfolded where it is folded away, by its field."""
    others = ("dp_kind", "more", "hybrid", "account")
    names = [name for name in fields_of("job") if name not in others]
    return page.evaluate(
        f"""(names) => {{
          const found = names.map((name) => [name, document.getElementById(`field-${{name}}`)]);
          const there = found.filter(([, box]) => box);
          there.forEach(([, box]) => ({UNFOLD})(box));
          return Object.fromEntries(there.map(([name, box]) => [name, box.value]));
        }}""",
        names,
    )


# --- How it looks ---------------------------------------------------------------------------------

CONTRASTS = """(selector) => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const read = (colour) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const known = {};
  const parse = (colour) => [...(known[colour] ??= read(colour))];
  const over = (top, under) => {
    const mix = (i) => top[i] * top[3] + under[i] * (1 - top[3]);
    return [mix(0), mix(1), mix(2), 1];
  };
  const luminance = (c) => {
    const lin = c.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * lin[0] + 0.7152 * lin[1] + 0.0722 * lin[2];
  };
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const grounds = new Map();
  const groundOf = (element) => {  // what is under its text, and how much it lets through
    if (!element) return {under: [255, 255, 255, 1], opacity: 1};
    if (!grounds.has(element)) {
      const {under, opacity} = groundOf(element.parentElement);
      const style = getComputedStyle(element);
      grounds.set(element, {
        under: over(parse(style.backgroundColor), under),
        opacity: opacity * Number(style.opacity),
        colour: parse(style.color),
      });
    }
    return grounds.get(element);
  };
  const found = new Map();
  for (const root of document.querySelectorAll(selector)) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const node = walker.currentNode;
      const text = node.textContent.trim();
      const element = node.parentElement;
      if (!text || found.has(node) || element.closest('svg')) continue;
      if (!element.checkVisibility()) continue;
      const {under, opacity, colour: [r, g, b, a]} = groundOf(element);
      const shown = ratio(over([r, g, b, a * opacity], under), under);
      found.set(node, [Math.round(shown * 100) / 100, text.slice(0, 60)]);
    }
  }
  return [...found.values()];
}"""


def contrasts(page: Page, selector: str) -> list[tuple[float, str]]:
    """Contrast ratio (WCAG 2.1) of every visible text below ``selector`` with what is under it."""
    return [(ratio, text) for ratio, text in page.evaluate(CONTRASTS, selector)]


WIDER = """() => {
  const wide = document.documentElement.scrollWidth;
  const clipped = (e) => {
    for (let up = e.parentElement; up.id !== 'page'; up = up.parentElement) {
      const box = up.getBoundingClientRect();
      if (getComputedStyle(up).overflowX !== 'visible' && box.right <= innerWidth) return true;
    }
    return false;
  };
  const out = [...document.querySelectorAll('#page *')].filter((e) => {
    const box = e.getBoundingClientRect();
    return box.width && e.checkVisibility() && box.right > innerWidth + 1 && !clipped(e);
  });
  return [wide - innerWidth, out.slice(0, 5).map((e) => e.tagName + '.' + e.className)];
}"""


def overflow(page: Page) -> tuple[int, list[str]]:
    """Pixels by which the page is wider than the window, and what sticks out of it."""
    wider, out = page.evaluate(WIDER)
    return max(0, wider), out
