"""What somebody may send in a head or a body, and what becomes of it in log, page and answer."""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import gradio as gr
import pytest
from cases import every
from gradio.context import LocalContext
from guarded import run, told

from request.link import parsed, whole_json
from request.state import State
from views.all import ENDPOINTS
from views.page import save
from views.server import guard, lanes
from views.server.lanes import MOST_OF_TOOL, Lanes, serving

HALF = "\ud800"


def reached() -> tuple[guard.Guard, list[dict], list[bytes]]:
    """A guard, and the scopes and bodies that pass it."""
    scopes, bodies = [], []

    async def app(scope, receive, send):
        scopes.append(scope)
        bodies.append((await receive()).get("body", b""))

    app.get_blocks = lambda: SimpleNamespace(blocks={}, fns={})
    return guard.Guard(app), scopes, bodies


def post(one: guard.Guard, body: bytes, path: str = guard.TOOLS, **more: object) -> list[dict]:
    async def receive() -> dict:
        return {"type": "http.request", "body": body, "more_body": False}

    return run(lambda: told(one, path, b"%d" % len(body), receive, **more))


@every("depth", [guard.DEEPEST + 1, 900, 100_000, 400_000])
@every("path", [guard.TOOLS, guard.API + "queue/join", guard.API + "component_server"])
def test_a_deep_body_is_refused_before_anybody_goes_down_it(path, depth, caplog):
    one, scopes, _ = reached()
    with caplog.at_level(logging.WARNING):
        said = post(one, b'{"data":' + b"[" * depth + b"]" * depth + b"}", path)
    assert said[0]["status"] in (400, 422)
    assert not scopes
    assert not caplog.records


def test_half_a_character_reaches_nobody():
    one, _, bodies = reached()
    post(one, json.dumps({"params": {HALF: f"a{HALF}b"}}).encode())
    assert json.loads(bodies[0]) == {"params": {"\ufffd": "a\ufffdb"}}
    assert parsed(json.dumps({"roles": f"r{HALF}@0"}), whole_json) == {"roles": "r\ufffd@0"}
    for form in ("png", "svg", "roles", "slide-svg"):
        state = {**vars(State()), "view": "roles", "roles": f"r{HALF}{HALF}@0-15", "racks": HALF}
        assert "data" in json.loads(save(json.dumps({"state": state, "form": form}))), form


@every("path", ["/a\r\nERROR forged", "/\x1b[2J", "/a\nb" * 99])
def test_a_path_is_quoted_in_the_log_and_cut(path, caplog):
    async def broken(scope, receive, send):
        raise RuntimeError("no\nmore")

    async def get() -> None:
        scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
        await guard.Guard(broken)({**scope, "app": broken}, receive, send)

    async def receive() -> dict:
        return {"type": "http.request"}

    async def send(message: dict) -> None:
        pass

    caplog.clear()
    with caplog.at_level(logging.WARNING):
        run(get)
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.isprintable()
    assert len(line) < 500


def test_headers_that_the_server_does_not_need_do_not_reach_the_page():
    one, scopes, _ = reached()
    kept = [(b"host", b"a.b:80"), (b"accept", b"*")]
    run(lambda: told(one, "/", method="GET", headers=[*kept, (b"X-Gradio-Server", b"evil")]))
    assert scopes[0]["headers"] == kept


@every("name", [b"host", b"x-forwarded-host"])
@every("host", [b'a"><script>', b"a/b", b"a\\b", b"a'b", b"x" * 256, "ä".encode()])
def test_what_is_no_host_does_not_reach_the_page(name, host):
    one, scopes, _ = reached()
    run(lambda: told(one, "/", method="GET", headers=[(name, host)]))
    assert scopes[0]["headers"] == []


# -- tools ---------------------------------------------------------------------------------------


def answer(count: int = 0, names: str = "") -> str:
    return "x" * count


def run_apart(ask: Callable[[], Coroutine[None, None, str]]) -> str:
    """The answer in a thread: that of the tests may have a loop that a browser left running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(ask())).result()


@every("user", ["mcp", None])
@every("count", [MOST_OF_TOOL, MOST_OF_TOOL + 1])
def test_an_answer_to_a_tool_is_bounded_and_says_how_to_ask_for_less(user, count):
    async def ask() -> str:
        LocalContext.request.set(SimpleNamespace(headers={"x-gradio-user": user}))
        return await serving(answer, Lanes())(count)

    if user is None or count <= MOST_OF_TOOL:
        assert len(run_apart(ask)) == count
        return
    with pytest.raises(gr.Error) as refused:
        run_apart(ask)
    for words in (f"{count:,}", f"{MOST_OF_TOOL:,}", '"names"', "fewer nodes", "call/answer"):
        assert words in str(refused.value.message)


ADVISED = {"rank_card": [], "roles": ["rank"], "process_groups": ["names"]}


@every("endpoint, advised", ADVISED.items())
def test_a_tool_advises_what_holds_less_and_not_what_was_said(endpoint, advised):
    """A card is of one rank in any case: only fewer nodes make it shorter."""
    refusal = str(lanes._too_long(2_000_000, ENDPOINTS[endpoint]))
    assert [name for name in ("names", "rank", "first") if f'"{name}"' in refusal] == advised
    assert "fewer nodes" in refusal


def test_every_parameter_that_is_advised_is_one_of_an_endpoint():
    taken = [inspect.signature(endpoint).parameters for endpoint in ENDPOINTS.values()]
    for name, everything in lanes.OF_LESS.items():
        assert any(name in one and one[name].default == everything for one in taken), name
