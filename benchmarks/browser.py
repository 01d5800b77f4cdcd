"""Part "browser": from a slider's input event to the picture on the screen, in Chromium.

The clock runs in the page: from dispatching ``input`` on the TP slider until the mesh's text in the
picture has changed ("in the page"), and two animation frames later ("on screen"). The empty event
is asked the same question in another tab, in turns; so is the page where the job is one of two
roles of a plan, with all roles on screen, and servers of vLLM of the same sizes ("served"). TP
alternates between 2 and 4.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from .page_client import PATIENCE, Servers
from .timing import ResultTable, Timings, shown, times

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WORLDS = {16: 2, 256: 32, 2_048: 256, 16_384: 2_048}  # GPUs: nodes of 8
AIMS = {"empty": "", "page": "60 / 150"}
WARM_UP = 4

STEP = """([stop, tp]) => new Promise((resolve, reject) => {
  const slider = document.querySelector('[data-size=tp] input[type=range], #tp input[type=range]');
  const picture = document.querySelector('#picture');
  // The page's picture says its mesh; the empty event's only place for text repeats the number.
  const isThere = () => picture.querySelector('.picture')?.dataset.mesh.includes(`["tp",${tp}]`)
    ?? picture.querySelector('code').textContent.startsWith(`tp${tp}-`);
  let begun = 0;
  const observer = new MutationObserver(() => {
    if (!isThere()) return;
    const changed = performance.now() - begun;
    observer.disconnect();
    clearTimeout(timer);
    const drawn = () => resolve([changed, performance.now() - begun]);
    requestAnimationFrame(() => requestAnimationFrame(drawn));
  });
  const timer = setTimeout(() => reject(new Error(`no picture of tp ${tp}`)), 30000);
  observer.observe(picture,
    {subtree: true, childList: true, characterData: true, attributes: true});
  begun = performance.now();
  slider.value = stop;
  slider.dispatchEvent(new Event('input', {bubbles: true}));
})"""


def run(quick: bool, servers: Servers) -> Iterator[ResultTable | str]:
    missing = _missing()
    if missing and os.environ.get("REQUIRE_BROWSER") == "1":
        raise RuntimeError(f"REQUIRE_BROWSER=1, but {missing}")
    if missing:
        yield f"browser: skipped, {missing}"
        return
    with ExitStack() as stack:
        pages = _pages(stack, servers)
        steps = 2 if quick else 24  # of two sizes in turns
        taken: dict[tuple[str, int], list[list[float]]] = {}
        for world, nodes in WORLDS.items():
            stops = dict.fromkeys(("page", "roles"), _resize(pages["page"], world, nodes))
            stops["served"] = _open_served(pages["served"], servers.running("page").url, nodes)
            _open_roles(pages["roles"], servers.running("page").url, world, nodes)
            each = _in_turns(pages, stops, steps)
            taken |= {(kind, world): took for kind, took in each.items()}
    yield ResultTable(
        "Slider to picture in Chromium",
        ("event", "GPUs", "in the page ms", "on screen ms", "p95 ms", "x empty", "aim ms"),
        [_row(*key, took, taken["empty", key[1]]) for key, took in taken.items()],
        "Two animation frames (33 ms at 60 Hz) are the difference between the first two.",
    )


def _missing() -> str:
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return "" if _chromium() else "there is no chromium"


def _chromium() -> str | None:
    return next(filter(None, map(shutil.which, CHROMIUM)), None)


def _pages(stack: ExitStack, servers: Servers) -> dict[str, Any]:
    from playwright.sync_api import sync_playwright

    chromium = stack.enter_context(sync_playwright()).chromium
    pages = {}
    for kind in ("empty", "page", "roles", "served"):
        # A browser each: a tab in the background of another would be throttled.
        browser = chromium.launch(executable_path=_chromium(), args=ARGUMENTS)
        stack.callback(browser.close)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1e3 * PATIENCE)
        page.goto(servers.running("empty" if kind == "empty" else "page").url)
        page.wait_for_selector("[data-size=tp] input[type=range], #tp input[type=range]")
        page.wait_for_selector("#picture :is(.picture, code)")
        pages[kind] = page
    return pages


def _resize(page: Any, world: int, nodes: int) -> list[int]:
    """Type the number of nodes, wait for the picture, say where the TP slider stops."""
    box = page.locator("#field-nodes")
    box.fill(str(nodes))
    box.press("Enter")
    page.wait_for_function(
        "gpus => document.querySelector('.derived').dataset.world === gpus", arg=str(world)
    )
    slider = page.locator("#size-tp")
    stops: list[int] = slider.evaluate(
        "(size) => size.parentElement.handle.props.stops.split(' ').map(Number)"
    )
    return stops


def _open_roles(page: Any, url: str, world: int, nodes: int) -> None:
    """The same job beside a rollout on the same GPUs."""
    page.goto(f"{url}?v=2&nodes={nodes}&roles=rollout@0-{world - 1}:vllm,tp=2")
    page.wait_for_selector("#picture .cluster")


def _open_served(page: Any, url: str, nodes: int) -> list[int]:
    """Servers of vLLM of the same sizes; where their TP slider stops."""
    page.goto(f"{url}?v=2&framework=vllm")
    page.wait_for_selector("#picture .picture")
    return _resize(page, 8 * nodes, nodes)


def _in_turns(
    pages: dict[str, Any], stops: dict[str, list[int]], steps: int
) -> dict[str, list[list[float]]]:
    took: dict[str, list[list[float]]] = {kind: [] for kind in pages}
    for number in range(WARM_UP + steps):
        tp = 4 if number % 2 == 0 else 2
        # The slider of the empty event has a stop at each number from 0 up.
        for kind, page in pages.items():
            stop = stops[kind].index(tp) if kind in stops else tp
            took[kind].append(page.evaluate(STEP, [stop, tp]))
    return {kind: ms[WARM_UP:] for kind, ms in took.items()}


def _row(
    kind: str, world: int, took: list[list[float]], empty: list[list[float]]
) -> tuple[str, ...]:
    changed, drawn = (Timings(tuple(ms)) for ms in zip(*took))
    floor, _ = (Timings(tuple(ms)) for ms in zip(*empty))
    return (
        kind,
        f"{world:,}",
        shown(changed.median),
        shown(drawn.median),
        shown(drawn.p95),
        times(changed.median / floor.median),
        AIMS.get(kind, "x 1.2 of page"),
    )
