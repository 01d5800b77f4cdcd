"""The guard without a server: what somebody is told who posts something."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

from views.server import guard


async def told(
    one: guard.Guard,
    path: str,
    length: bytes = b"6",
    receive: Callable[[], Awaitable[dict]] | None = None,
    **more: object,
) -> list[dict]:
    """What somebody is told who posts six bytes, or what is received."""
    said = []

    async def send(message: dict) -> None:
        said.append(message)

    async def a_file() -> dict:
        return {"type": "http.request", "body": b"a file"}

    scope = {"type": "http", "method": "POST", "path": path, "query_string": b"", "app": one.app}
    headers = [(b"content-length", length)]
    await one({**scope, "headers": headers, **more}, receive or a_file, send)
    return said


def run(work: Callable[[], Coroutine]) -> Any:
    """In a thread of its own: the browser tests keep an event loop running in this one."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(work())).result()


def guard_of(evidence: Callable[[bytes], Awaitable[str]]) -> guard.Guard:
    """Before a page that reads files so."""
    evidence._is_server_fn = True
    page = SimpleNamespace(blocks={1: SimpleNamespace(evidence=evidence)})
    return guard.Guard(SimpleNamespace(get_blocks=lambda: page))
