"""The page served as it is served to people, and a real Chromium to open it in."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import pytest
import torch_jobs
from background import Background
from browser import ARGS, CHROMIUMS
from endpoints import Endpoints
from hypothesis import settings
from visitors import Visitors

# These have assertions; else pytest would not say what differed in them.
pytest.register_assert_rewrite("launch_answers", "pages")

# How long an example takes says more about the machine than about the code.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")


# Workers and the processes of many tests import the same files: what one has compiled serves all.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Little of what tests make is garbage that only the collector finds: it looks less often.
gc.set_threshold(100_000)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """All tests together use all processors, unless the command says how many workers; a few named
    ones are done before workers would have started."""
    is_whole = config.args == config.getini("testpaths") and not hasattr(config, "workerinput")
    if is_whole and getattr(config.option, "numprocesses", 0) is None:
        config.option.numprocesses = len(os.sched_getaffinity(0)) if SCHEDULED else os.cpu_count()
        if config.option.dist == "no":
            config.option.dist = "worksteal"


SCHEDULED = hasattr(os, "sched_getaffinity")
"""Whether the system says on which processors this process may run."""


def pytest_collection(session: pytest.Session) -> None:
    """Where everything is tested, each worker begins with other files, and finds the rest compiled.

    For what an assertion says when it fails is added to each file before: half of the collecting.
    """
    worker = getattr(session.config, "workerinput", {})
    if worker and session.config.args == session.config.getini("testpaths"):
        files = sorted(Path(__file__).parent.glob("test_*.py"))
        first = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
        for file in files[first:] + files[:first]:
            with contextlib.suppress(Exception):  # collecting it will say so
                importlib.import_module(file.stem)


def pytest_collection_finish() -> None:
    """What has been collected stays: nobody need look through it for garbage, test after test."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of the running page."""
    import app

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # Ids as in a process of its own, whatever other tests have built before.
    importlib.import_module("gradio.context").Context.id = 0
    demo = app.create_app()
    app.launch(demo, quiet=True, server_port=port)
    yield f"http://127.0.0.1:{port}/"
    demo.close(verbose=False)


@pytest.fixture(scope="session")
def client(server: str) -> Endpoints:
    """Calls the endpoints of the running page."""
    return Endpoints(server)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One Chromium for all tests; each opens a context of its own."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        _without("playwright")
    found = (shutil.which(name) for name in CHROMIUMS)
    executable = os.environ.get("CHROMIUM") or next(filter(None, found), None)
    if executable is None:
        _without("Chromium")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=executable, args=ARGS)
        yield chromium
        chromium.close()


def _without(needed: str) -> NoReturn:
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(f"{needed} is missing, and REQUIRE_BROWSER=1")
    pytest.skip(f"{needed} is missing")


@pytest.fixture(scope="session")
def visitors(server: str, browser: Any) -> Iterator[Visitors]:
    """Everybody who opens the page, one test after the other."""
    everybody = Visitors(server, browser)
    yield everybody
    everybody.leave()


@pytest.fixture
def open_page(visitors: Visitors, request: pytest.FixtureRequest) -> Iterator[Callable[..., Any]]:
    """Opens the page as one more user; whatever goes wrong in it fails the test at its end."""
    failed = request.session.testsfailed
    yield visitors.open
    problems = visitors.done(well=request.session.testsfailed == failed)
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="session")
def sharers(server: str, browser: Any) -> Iterator[Visitors]:
    """Who have a page to themselves for all tests of a file, one file after the other."""
    everybody = Visitors(server, browser)
    yield everybody
    everybody.leave()


@pytest.fixture(scope="module")
def shared_page(sharers: Visitors, request: pytest.FixtureRequest) -> Iterator[Any]:
    """One page for all tests of a file; each begins with a state that it opens in place."""
    failed = request.session.testsfailed
    yield sharers.open()
    problems = sharers.done(well=request.session.testsfailed == failed)
    assert not problems, "\n".join(problems)


@pytest.fixture(scope="session")
def bare_page(browser: Any) -> Iterator[Any]:
    """One empty page for all tests that need no server."""
    page = browser.new_page()
    yield page
    page.context.close()


@pytest.fixture
def show_html(browser: Any, bare_page: Any) -> Iterator[Callable[..., Any]]:
    """Shows a text as a page alone; what its scripts do wrong or ask for fails the test.

    With a clock of the test's own (`page.clock`), if asked.
    """
    problems = []
    heard = {
        "pageerror": lambda error: problems.append(str(error)),
        "request": lambda request: problems.append(request.url),
    }
    clocked = []

    def show(html: str, width: int, clock: bool = False) -> Any:
        page = bare_page
        if clock:
            page = browser.new_page()
            page.clock.install(time=0)
            page.clock.pause_at(1)  # no time passes but what the test lets pass
            clocked.append(page)
        page.goto("about:blank")  # the scripts of the one before are gone
        for event, hear in heard.items():
            page.on(event, hear)
        page.set_viewport_size({"width": width, "height": 900})
        page.set_content(html)
        return page

    yield show
    for page in clocked:
        page.context.close()
    if not clocked:
        for event, hear in heard.items():
            bare_page.remove_listener(event, hear)
    assert problems == []


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of what runs in the background come last: then it has ended."""
    items.sort(key=lambda item: item.get_closest_marker("torch_job") is not None)


@pytest.fixture(scope="session", autouse=True)
def background(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Background]]:
    """What runs beside the tests, by the mark of those that wait for it."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    running = {}
    marks = (item.get_closest_marker("torch_job") for item in request.session.items)
    asked = [mark.args[0] for mark in marks if mark]
    if asked and torch_jobs.available():
        running["torch_job"] = Background(shared / "torch_job", partial(torch_jobs.begin, asked))
    yield running
    for process in running.values():
        process.end()


@pytest.fixture
def ran(background: dict[str, Background], request: pytest.FixtureRequest) -> torch_jobs.Ran:
    """How the program of a test ended; skips without torch, unless REQUIRE_TORCH=1."""
    if "torch_job" not in background:
        if os.environ.get("REQUIRE_TORCH") == "1":
            pytest.fail("torch is missing, and REQUIRE_TORCH=1")
        pytest.skip("torch is missing")
    job = request.node.get_closest_marker("torch_job").args[0]
    return torch_jobs.ran(job, background["torch_job"])


@pytest.fixture
def nothing_is_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    """For a test of what only reads: starting a process fails it."""

    def refuse(*args, **kwargs):
        raise AssertionError("something was executed")

    for owner, names in (
        (os, ("system", "popen", "execv", "execve", "fork")),
        (subprocess, ("run", "call", "check_output", "Popen", "check_call")),
    ):
        for name in names:
            monkeypatch.setattr(owner, name, refuse)
