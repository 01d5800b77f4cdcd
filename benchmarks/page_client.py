"""The servers that are measured, and a page without a browser that talks to them by raw HTTP."""

from __future__ import annotations

import http.client
import json
import math
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE = 60  # seconds without an answer after which something is broken


@dataclass(frozen=True)
class Served:
    """A running server and its event, as benchmarks/serve.py tells about them."""

    address: tuple[str, int]
    pid: int
    index: int  # of its event
    queued: bool
    inputs: int  # of the event; the page's last one takes all fields (views/client/wiring.py)

    @property
    def url(self) -> str:
        return "http://{}:{}/".format(*self.address)


@contextmanager
def serving(kind: str) -> Iterator[Served]:
    """The server of that kind (see serve.py) for as long as the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.serve", kind],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin
    assert process.stdout
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the {kind} server did not start (exit {process.wait()})")
        yield Served(**json.loads(line))
    finally:
        process.stdin.close()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


@dataclass(frozen=True)
class Reply:
    """One answered event: milliseconds from the request to its result, the result's bytes, and the
    milliseconds of the processor that the server took for it, where the system tells."""

    ms: float
    size: int
    cpu_ms: float = math.nan


def cpu_of(pid: int) -> float:
    """Seconds of the processor that a running process has used; nan where the system does not tell.

    >>> 0 < cpu_of(os.getpid()) <= time.process_time() or sys.platform != "linux"
    True
    """
    # Linux numbers the clock of a process so (clock_getcpuclockid(3) returns the same).
    return time.clock_gettime((~pid << 3) | 2) if sys.platform == "linux" else math.nan


class Servers:
    """The servers that parts share, each started when it is first asked for."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: dict[str, Served] = {}

    def __enter__(self) -> Servers:
        return self

    def __exit__(self, *reason: object) -> None:
        self._stack.close()

    def running(self, kind: str) -> Served:
        if kind not in self._running:
            self._running[kind] = self._stack.enter_context(serving(kind))
        return self._running[kind]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class PageClient:
    """One visitor: a session, a connection that stays open, and the values of the controls.

    A step does what the page does. An event without a queue: POST run/predict. One with: POST
    queue/join, then read queue/data until the result is there; the stream's polite end is read too,
    but not counted.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        self._state: dict[str, Any] = {}
        self._session = uuid.uuid4().hex
        self._connection = http.client.HTTPConnection(*served.address, timeout=PATIENCE)

    def close(self) -> None:
        self._connection.close()

    def step(self, **changes: Any) -> Reply:
        """Set controls by their names, in the page's one value, and wait for the answer."""
        begun = cpu_of(self._served.pid)
        reply = self._step(changes)
        return replace(reply, cpu_ms=1e3 * (cpu_of(self._served.pid) - begun))

    def _step(self, changes: dict[str, Any]) -> Reply:
        self._state |= {name: str(value) for name, value in changes.items()}
        asked: dict[str, Any] = {"session_hash": self._session}
        values = [*changes.values()]
        if (others := self._served.inputs - 1) > 0:
            values = [*others * [None], {**self._state, "words": "en", "shown": "groups"}]
        asked |= {"fn_index": self._served.index, "data": values}
        body = json.dumps(asked | {"event_data": None, "trigger_id": None})
        return self._queued(body) if self._served.queued else self._direct("run/predict", body)

    def call(self, name: str, **parameters: Any) -> Reply:
        """Ask an endpoint, and wait for its answer or its refusal."""
        begun = time.perf_counter()
        joined = self._request("POST", f"call/v2/{name}", json.dumps(parameters)).read()
        path = f"call/{name}/{json.loads(joined)['event_id']}"
        answer = self._request("GET", path).read()
        return Reply(1e3 * (time.perf_counter() - begun), len(answer))

    def _direct(self, path: str, body: str) -> Reply:
        begun = time.perf_counter()
        answer = self._request("POST", path, body).read()
        return Reply(1e3 * (time.perf_counter() - begun), len(answer))

    def _queued(self, body: str) -> Reply:
        begun = time.perf_counter()
        self._request("POST", "queue/join", body).read()
        stream = self._request("GET", f"queue/data?session_hash={self._session}")
        done = None
        for line in stream:
            if b'"process_completed"' in line:
                ended = time.perf_counter()
                done, size = json.loads(line.removeprefix(b"data:")), len(line)
        if done is None or not done["success"]:
            raise RuntimeError(f"the event failed: {done}")
        return Reply(1e3 * (ended - begun), size)

    def _request(self, method: str, path: str, body: str | None = None) -> http.client.HTTPResponse:
        headers = {"Content-Type": "application/json"} if body else {}
        self._connection.request(method, "/gradio_api/" + path, body, headers)
        response = self._connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {response.read()!r}")
        return response
