"""What one visitor can make the server hold: bytes on their way in, answers nobody fetches, and
connections that stand still; and that others are answered meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import gradio as gr
import httpx
import pytest
from guarded import guard_of, run, told
from starlette.middleware import Middleware

import app
from views.server import bodies, connections, guard, unread
from views.server.connections import Watch
from views.server.guard import MOST_OF_ONE, Guard
from views.server.unread import bound

MEGABYTE = 1_000_000


# --- Bodies ---------------------------------------------------------------------------------------


class Sender:
    """Sends a body piece by piece, each when it is told to."""

    def __init__(self, size: int) -> None:
        self.length = b"%d" % size
        self._pieces: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()

    async def send(self, piece: bytes, *, more: bool = True) -> None:
        self._pieces.put_nowait((piece, more))
        for _ in range(5):
            await asyncio.sleep(0)

    async def receive(self) -> dict:
        piece, more = await self._pieces.get()
        return {"type": "http.request", "body": piece, "more_body": more}

    def begin(self, one: Guard) -> asyncio.Future:
        sent = told(one, guard.EVIDENCE, self.length, self.receive)
        return asyncio.ensure_future(sent)


def statuses(*answers: list[dict]) -> list[int]:
    return [said[0]["status"] for said in answers]


async def size_of(body: bytes) -> str:
    return str(len(body))


def test_an_upload_that_stands_still_holds_up_no_other():
    async def two() -> list[int]:
        one = guard_of(size_of)
        slow = Sender(1000)
        first = slow.begin(one)
        await slow.send(b"x" * 10)
        second = await told(one, guard.EVIDENCE)
        assert not first.done()
        await slow.send(b"x" * 990, more=False)
        return statuses(second, await first)

    assert run(two) == [200, 200]


def test_a_slow_upload_to_the_page_holds_up_no_other(server):
    host = urlsplit(server)
    head = f"POST {guard.EVIDENCE} HTTP/1.1\r\nHost: {host.netloc}\r\nContent-Length: 9000\r\n\r\n"
    log = b"[rank3]: Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7)"
    body = json.dumps({"files": [["a.log", len(log)]]}).encode() + b"\n" + log
    with socket.create_connection((host.hostname, host.port)) as slow:
        slow.sendall(head.encode() + b"{")
        answer = httpx.post(server.rstrip("/") + guard.EVIDENCE, content=body, timeout=60)
    assert (answer.status_code, "digest" in answer.json()) == (200, True)


def test_files_that_are_there_are_read_one_after_the_other():
    async def three() -> tuple[list[int], int]:
        reading, most, begun = 0, 0, []

        async def evidence(body: bytes) -> str:
            nonlocal reading, most
            reading += 1
            most = max(most, reading)
            begun.append(body)
            for _ in range(10):
                await asyncio.sleep(0)
            reading -= 1
            return "read"

        one = guard_of(evidence)
        answers = await asyncio.gather(*(told(one, guard.EVIDENCE) for _ in range(3)))
        assert len(begun) == 3
        return statuses(*answers), most

    assert run(three) == ([200, 200, 200], 1)


def test_bytes_of_all_uploads_are_bounded_and_the_one_that_stood_still_longest_makes_room():
    async def four() -> tuple[list[int], int]:
        one = guard_of(size_of)
        one._bodies.most = 3 * MEGABYTE
        senders = [Sender(MEGABYTE) for _ in range(4)]
        asked = [sender.begin(one) for sender in senders]
        for sender in senders[:3]:
            await sender.send(b"x" * (MEGABYTE - 2))
        await senders[0].send(b"x")  # the second has now stood still longest
        await senders[3].send(b"x" * (MEGABYTE - 1))
        assert one._bodies.size == 3 * MEGABYTE - 4
        assert statuses(await asked[1]) == [503]
        for sender, rest in ((senders[0], 1), (senders[2], 2), (senders[3], 1)):
            await sender.send(b"x" * rest, more=False)
        answers = [await one for one in asked]
        return statuses(*answers), one._bodies.size

    assert run(four) == ([200, 503, 200, 200], 0)


def test_a_body_for_which_no_other_can_make_room_is_refused():
    async def two() -> list[int]:
        let = asyncio.Event()

        async def evidence(body: bytes) -> str:
            await let.wait()
            return "read"

        one = guard_of(evidence)
        one._bodies.most = 10
        first = asyncio.ensure_future(told(one, guard.EVIDENCE))
        for _ in range(10):
            await asyncio.sleep(0)
        second = await told(one, guard.EVIDENCE)
        let.set()
        answers = statuses(await first, second, await told(one, guard.EVIDENCE))
        assert one._bodies.size == 0
        return answers

    assert run(two) == [200, 503, 200]


@pytest.mark.parametrize("path", guard.NAMES_ONLY)
def test_names_of_sessions_and_events_are_short(server, path):
    url = server.rstrip("/") + path
    many = {"session_hash": "a", "fn_index": 0, "event_id": [[]] * 4_000}
    said = httpx.post(url, json=many, timeout=60)
    assert (said.status_code, len(said.content) < 200) == (413, True)
    ended = {"session_hash": "a", "fn_index": 0, "event_id": "b"}
    assert httpx.post(url, json=ended, timeout=60).status_code == 200


def test_what_is_held_leaves_room_for_the_largest_upload_and_others():
    assert 2 * bodies.LARGEST_EVIDENCE < bodies.MOST_HELD <= 150 * MEGABYTE


# --- Connections ----------------------------------------------------------------------------------


class Connection:
    """As uvicorn's: at a request, or between two, with bytes that nobody takes."""

    def __init__(self, request: object = None, unread: int = 0) -> None:
        self.cycle, self.unread, self.is_open = request, unread, True
        self.transport = SimpleNamespace(
            get_write_buffer_size=lambda: self.unread, abort=lambda: self._end()
        )

    def _end(self) -> None:
        self.is_open = False


def request(is_answered: bool = False) -> SimpleNamespace:
    return SimpleNamespace(response_complete=is_answered)


def watched(*connections: Connection) -> Callable[[float], list[bool]]:
    """Looks at the connections at a time, and says which are still open."""
    there = {*connections}
    watch = Watch(SimpleNamespace(server_state=SimpleNamespace(connections=there)))

    def look(now: float) -> list[bool]:
        watch.look(now)
        there.intersection_update(one for one in connections if one.is_open)
        return [one.is_open for one in connections]

    return look


LATE = connections.LONGEST_HEAD + 1


def test_a_head_that_does_not_come_ends_the_connection_and_a_request_under_way_does_not():
    first, idle, asked = Connection(), Connection(request(True)), Connection(request())
    look = watched(first, idle, asked)
    assert look(0) == look(LATE - 2) == [True, True, True]
    assert look(LATE) == [False, False, True]
    assert look(1000 * LATE) == [False, False, True]  # a stream of events may last


def test_a_connection_that_is_used_again_and_again_is_kept():
    used = Connection()
    look = watched(used)
    for now in range(100):
        used.cycle = request(is_answered=True)
        assert look(now * (LATE - 2)) == [True]


def test_what_nobody_reads_ends_with_time():
    reader, sleeper = (Connection(request(), unread=MEGABYTE) for _ in range(2))
    look = watched(reader, sleeper)
    for now in range(0, int(connections.LONGEST_UNREAD) + 2):
        reader.unread -= 1
        open_now = look(now)
    assert open_now == [True, False]


def test_bytes_that_nobody_reads_are_bounded_and_who_reads_is_kept():
    many = [Connection(request(), unread=10 * MEGABYTE) for _ in range(20)]
    reader = Connection(request(), unread=200 * MEGABYTE)
    look = watched(*many, reader)
    look(0)
    assert look(connections.PATIENCE - 1) == [True] * 21
    reader.unread -= 1
    assert look(connections.PATIENCE + 1) == [False] * 20 + [True]
    reader.unread = 0
    few = [Connection(request(), unread=10 * MEGABYTE) for _ in range(7)]
    look = watched(*few)
    look(0)
    kept = look(connections.PATIENCE + 1)
    assert sum(kept) * 10 * MEGABYTE == connections.MOST_UNREAD


def test_a_head_that_trickles_in_is_not_waited_for(server, monkeypatch):
    monkeypatch.setattr(connections, "LONGEST_HEAD", 0.0)
    host = urlsplit(server)
    with socket.create_connection((host.hostname, host.port), timeout=60) as visitor:
        visitor.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        with contextlib.suppress(ConnectionResetError):
            assert visitor.recv(1) == b""
    monkeypatch.undo()
    assert httpx.get(server, timeout=60).status_code == 200


# --- Answers --------------------------------------------------------------------------------------


class Page:
    """A page of one endpoint with large answers, one that waits for ``let``, and one of neither."""

    def __init__(self) -> None:
        with gr.Blocks(analytics_enabled=False) as self.demo:
            for one in (self.large, self.held, self.small):
                gr.api(one, api_name=one.__name__)
        self.demo.queue(default_concurrency_limit=2, max_size=64, api_open=False)
        bound(self.demo._queue)
        self.is_let = False
        self.client = httpx.Client(timeout=60)

    def large(self) -> str:
        return "x" * MEGABYTE

    async def held(self) -> str:
        while not self.is_let:
            await asyncio.sleep(0.01)
        return "held"

    def small(self) -> str:
        return "small"

    def call(self, name: str) -> httpx.Response:
        return self.client.post(f"{self.demo.local_url}gradio_api/call/v2/{name}", json={})

    def answer(self, name: str, event: str) -> httpx.Response:
        return self.client.get(f"{self.demo.local_url}gradio_api/call/v2/{name}/{event}")

    def kept(self) -> int:
        """Bytes of the answers that Gradio's queue holds."""
        sessions = self.demo._queue.pending_messages_per_session.values()
        outputs = [getattr(one, "output", None) for all in sessions for one in [*all._queue]]
        return sum(len(text) for output in outputs if output for text in output["data"])

    def work_done(self) -> bool:
        return not self.demo._queue.event_ids_to_events


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    one = Page()
    options: dict[str, Any] = {**app.LAUNCH, "app_kwargs": {"middleware": [Middleware(Guard)]}}
    one.demo.launch(prevent_thread_lock=True, quiet=True, **options)
    yield one
    one.demo.close(verbose=False)


def until(done: Callable[[], bool]) -> None:
    waiting = threading.Event()
    for _ in range(6000):
        if done():
            return
        waiting.wait(0.01)
    raise AssertionError("it did not happen")


def test_answers_that_nobody_fetches_are_bounded_in_bytes(page, monkeypatch):
    monkeypatch.setattr(unread, "MOST_UNREAD", 10 * MEGABYTE)
    events = []
    for _ in range(25):
        events.append(page.call("large").json()["event_id"])
        until(page.work_done)
        assert page.kept() <= 10 * MEGABYTE
    assert page.kept() >= 8 * MEGABYTE  # nothing is thrown away before its time
    late, first = page.answer("large", events[-1]), page.answer("large", events[0])
    assert late.text.count("x" * MEGABYTE) == 1
    assert first.status_code == 404
    assert "fetched" in first.json()["detail"]
    again = page.answer("large", events[-1])  # and what was read is not there twice
    assert again.status_code == 404
    ids = page.demo._queue.pending_event_ids_session
    assert not {*events[:10]} & {event for kept in ids.values() for event in kept}


def test_one_sessions_answers_that_nobody_fetches_are_bounded_too(page, monkeypatch):
    monkeypatch.setattr(unread, "MOST_UNREAD", 4 * MEGABYTE)
    number = next(id for id, fn in page.demo.fns.items() if fn.api_name == "large")
    body = {"session_hash": "one", "fn_index": number, "data": []}
    for _ in range(8):
        said = page.client.post(f"{page.demo.local_url}gradio_api/queue/join", json=body)
        assert said.status_code == 200
        until(page.work_done)
        assert page.kept() <= 4 * MEGABYTE


def test_answers_that_nobody_fetches_are_bounded_in_minutes(page, monkeypatch):
    now = 0.0
    monkeypatch.setattr(unread, "time", SimpleNamespace(monotonic=lambda: now))
    messages = page.demo._queue.pending_messages_per_session
    messages.clear()
    old = page.call("large").json()["event_id"]
    until(page.work_done)
    now = unread.LONGEST_UNREAD - 1
    new = page.call("large").json()["event_id"]
    until(page.work_done)
    assert page.kept() == 2 * MEGABYTE
    now += 2
    messages.let_go()
    assert page.kept() == MEGABYTE
    assert page.answer("large", old).status_code == 404
    assert page.answer("large", new).status_code == 200


def test_calls_of_one_endpoint_leave_room_for_those_of_others(page):
    page.is_let = False
    said = [page.call("held").status_code for _ in range(MOST_OF_ONE + 4)]
    try:
        assert MOST_OF_ONE <= said.count(200) <= MOST_OF_ONE + 2  # two are worked on
        assert said[-1] == 503
        small = page.call("small")
        assert small.status_code == 200
        assert "small" in page.answer("small", small.json()["event_id"]).text
    finally:
        page.is_let = True
    until(page.work_done)


def test_the_page_keeps_answers_within_bounds():
    kept = app.create_app()._queue.pending_messages_per_session
    assert isinstance(kept, unread.Unread)
    assert unread.MOST_UNREAD <= 100 * MEGABYTE
