"""Receives the bodies of requests, with limits for one request and for all together.

A body that comes byte by byte, or stands still, holds up nobody: bytes count while they are held,
and where they become too many, what has stood still longest makes room.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.requests import Request

LARGEST_BODY = 1_000_000
"""The largest request, in bytes: the longest pasted text, several times."""

LARGEST_EVIDENCE = 34_000_000
"""The one exception, in bytes: files of evidence (views/evidence.py), 32 MB and their names."""

MOST_HELD = 3 * LARGEST_EVIDENCE
"""The most bytes of all requests that are arriving or not yet answered."""

LONGEST_WAIT = 60.0
"""Seconds within which a body must arrive; a body sent byte by byte would be held forever."""


@dataclass
class RefusedError(Exception):
    """A refused request, with the reason in words."""

    status: int
    why: str


@dataclass(eq=False)
class Arriving:
    """A request's bytes; ``coming`` until all have arrived, ``moved``: when the last arrived."""

    body: bytearray = field(default_factory=bytearray)
    size: int = 0
    moved: float = 0.0
    coming: asyncio.Task[None] | None = None
    is_let_go: bool = False


class Bodies:
    """The bodies of all requests that one server holds."""

    def __init__(self) -> None:
        self.most = MOST_HELD
        self.size = 0
        self._held: set[Arriving] = set()

    @asynccontextmanager
    async def of(self, request: Request, limit: int) -> AsyncIterator[bytes]:
        """All that is sent; it counts until the block ends.

        Errors: RefusedError if it is too large or slow, or all are too many; ClientDisconnect.
        """
        one = Arriving()
        self._held.add(one)
        try:
            await self._await_body(one, request, limit)
            body = bytes(one.body)
            one.body.clear()
            yield body
        finally:
            self._forget(one)

    def _forget(self, one: Arriving) -> None:
        if one in self._held:
            self._held.remove(one)
            self.size -= one.size

    async def _await_body(self, one: Arriving, request: Request, limit: int) -> None:
        one.coming = asyncio.ensure_future(self._receive(one, request, limit))
        try:
            await asyncio.wait_for(one.coming, LONGEST_WAIT)
        except asyncio.TimeoutError:
            raise RefusedError(408, "The request took too long to arrive.") from None
        except asyncio.CancelledError:
            if not one.is_let_go:
                raise
            raise _too_many() from None
        finally:
            one.coming = None

    async def _receive(self, one: Arriving, request: Request, limit: int) -> None:
        """All that is sent, counted while it arrives."""
        refused = RefusedError(413, f"A request may have {limit:,} bytes at most.")
        length = request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit()) or len(length) > 20 or int(length) > limit:
            raise refused
        clock = asyncio.get_running_loop()
        async for part in request.stream():
            if one.size + len(part) > limit:
                raise refused
            one.moved = clock.time()
            self._make_room(one, len(part))
            one.body += part
            one.size += len(part)
            self.size += len(part)

    def _make_room(self, wanted: Arriving, count: int) -> None:
        """Drops those that have stood still longest. Errors: RefusedError if none is left."""
        while self.size + count > self.most:
            others = (one for one in self._held - {wanted} if one.coming and one.size)
            stillest = min(others, key=lambda one: one.moved, default=None)
            if stillest is None or stillest.coming is None:
                raise _too_many()
            stillest.is_let_go = True
            stillest.coming.cancel()
            stillest.body.clear()
            self._forget(stillest)


def _too_many() -> RefusedError:
    return RefusedError(503, "The server holds too much of other requests: try again in a moment.")
