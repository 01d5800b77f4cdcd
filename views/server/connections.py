"""Connections that stand still: their heads come byte by byte, or nobody reads what they are sent.

uvicorn waits for both without limit. It says in which state each connection is, and asks every
second whether something is to be done.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple, Protocol, cast

import uvicorn

LONGEST_HEAD = 15.0
"""Seconds in which a connection must have sent the head of a request, from its first moment on."""

LONGEST_UNREAD = 60.0
"""Seconds after which a connection is ended that takes nothing of what it is sent."""

MOST_UNREAD = 50_000_000
"""Bytes that all connections together may leave unread; past it, the one goes that has stood still
longest, if for longer than ``PATIENCE``."""

PATIENCE = 5.0
"""Seconds."""


class Connection(Protocol):
    """What is looked at of uvicorn's: its last request, and where its bytes go."""

    cycle: object
    transport: asyncio.Transport


class Still(NamedTuple):
    """How a connection stands: its last request, the bytes that it has not taken; since when."""

    request: object
    unread: int
    since: float

    @property
    def waits_for_head(self) -> bool:
        return self.request is None or getattr(self.request, "response_complete", False)


class Watch:
    """What uvicorn is to call every now and then, for one server."""

    def __init__(self, server: uvicorn.Server) -> None:
        self._server = server
        self._seen: dict[Connection, Still] = {}

    async def __call__(self) -> None:
        self.look(time.monotonic())

    def look(self, now: float) -> None:
        """End what has stood still for too long; now: seconds of any clock."""
        connections = (
            cast("Connection", one)
            for one in self._server.server_state.connections
            if hasattr(one, "cycle")
        )
        self._seen = {one: self._still(one, now) for one in connections}
        unread = sum(one.unread for one in self._seen.values())
        for connection, still in sorted(self._seen.items(), key=lambda item: item[1].since):
            waited = now - still.since
            if still.unread:
                is_over = waited > LONGEST_UNREAD or (unread > MOST_UNREAD and waited > PATIENCE)
            else:
                is_over = still.waits_for_head and waited > LONGEST_HEAD
            if is_over:
                unread -= still.unread
                connection.transport.abort()

    def _still(self, connection: Connection, now: float) -> Still:
        """How the connection stands, since when."""
        request, unread = connection.cycle, connection.transport.get_write_buffer_size()
        before = self._seen.get(connection)
        if before and before.request is request and before.unread == unread:
            return before
        return Still(request, unread, now)


def watch(server: uvicorn.Server) -> None:
    """From now on, connections of this server that stand still are ended."""
    server.config.callback_notify = Watch(server)
    server.config.timeout_notify = 0  # once a second
