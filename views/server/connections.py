"""Ends idle connections: those that send their heads byte by byte, and those that read nothing.

uvicorn waits for both without limit. It says in which state each connection is, and asks every
second whether something is to be done.
"""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple, Protocol, cast

import uvicorn

LONGEST_HEAD = 15.0
"""Seconds within which a new connection must send the head of a request."""

LONGEST_UNREAD = 60.0
"""Seconds after which a connection that reads nothing is ended."""

MOST_UNREAD = 50_000_000
"""The most bytes that all connections together may leave unread; past it, the one that has been
idle longest is ended, if for longer than ``PATIENCE``."""

PATIENCE = 5.0
"""Seconds of idleness before a connection may be ended for its unread bytes."""


class Connection(Protocol):
    """The parts of uvicorn's connection in use: its last request, and its transport."""

    cycle: object
    transport: asyncio.Transport


class Still(NamedTuple):
    """The state of an idle connection: its last request, its unread bytes, and since when."""

    request: object
    unread: int
    since: float

    @property
    def waits_for_head(self) -> bool:
        return self.request is None or getattr(self.request, "response_complete", False)


class Watch:
    """A periodic check for uvicorn to call, for one server."""

    def __init__(self, server: uvicorn.Server) -> None:
        self._server = server
        self._seen: dict[Connection, Still] = {}

    async def __call__(self) -> None:
        self.look(time.monotonic())

    def look(self, now: float) -> None:
        """Ends connections that have been idle too long; now: seconds of any clock."""
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
        """The state of the connection, and since when it is unchanged."""
        request, unread = connection.cycle, connection.transport.get_write_buffer_size()
        before = self._seen.get(connection)
        if before and before.request is request and before.unread == unread:
            return before
        return Still(request, unread, now)


def watch(server: uvicorn.Server) -> None:
    """Ends idle connections of this server from now on."""
    server.config.callback_notify = Watch(server)
    server.config.timeout_notify = 0  # once a second
