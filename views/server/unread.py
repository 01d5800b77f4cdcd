"""Gradio's messages of each session that nobody has fetched, bounded by bytes and time.

A program posts a call and fetches its answer with a second request, or never does. Gradio keeps
what 2,000 sessions have not fetched, whatever it holds and for ever.
"""

from __future__ import annotations

import asyncio
import sys
import time

from gradio.queueing import Queue
from gradio.utils import LRUCache

MOST_UNREAD = 80_000_000
"""The most bytes of all kept answers: three of the largest. Past it, the oldest are dropped."""

LONGEST_UNREAD = 300.0
"""Seconds for which an unread answer is kept."""

SESSIONS = 2000
MESSAGE = 2000
"""Bytes of a message besides its texts, rounded up."""


class Unread(LRUCache):  # type: ignore[type-arg]
    """The unread messages of each session: a replacement for ``pending_messages_per_session`` of
    Gradio's queue."""

    def __init__(self, events: dict[str, set[str]]) -> None:
        super().__init__(SESSIONS)
        self._events = events
        self._later: asyncio.TimerHandle | None = None

    @property
    def size(self) -> int:
        """Bytes of all kept messages."""
        return sum(messages.size for messages in self.values())

    def __setitem__(self, session: str, _: asyncio.Queue[object]) -> None:
        super().__setitem__(session, Session(self))

    def __missing__(self, session: str) -> Session:
        """A queue that is not kept, for a session that is gone."""
        return Session(self)

    def popitem(self, last: bool = True) -> tuple[str, Session]:
        session, messages = super().popitem(last)
        self._events.pop(session, None)
        return session, messages

    def let_go(self) -> None:
        """Drops the sessions that nobody has read for too long, and those past the limit."""
        now, size = time.monotonic(), self.size
        for since, session in sorted((one.since, name) for name, one in self.items() if one.size):
            if size <= MOST_UNREAD and now - since < LONGEST_UNREAD:
                break
            size -= self[session].size
            self._forget(session)

    def _forget(self, session: str) -> None:
        del self[session]
        self._events.pop(session, None)

    def look_again(self) -> None:
        """Calls `let_go` again once the last message may have waited too long."""
        if self._later:
            self._later.cancel()
        loop = asyncio.get_running_loop()
        self._later = loop.call_later(LONGEST_UNREAD + 1, self.let_go)

    def knows(self, event: str) -> bool:
        """Whether this event is still to be answered, or its answer to be read."""
        return any(event in events for events in self._events.values())


class Session(asyncio.Queue):  # type: ignore[type-arg]
    """The messages of one session; ``since``: the time of the last reading."""

    def __init__(self, everybody: Unread) -> None:
        super().__init__()
        self.size = 0
        self.since = 0.0
        self._everybody = everybody

    def _put(self, message: object) -> None:
        if self.empty():
            self.since = time.monotonic()
        super()._put(message)
        self.size += _size(message)
        if hasattr(message, "output"):
            self._everybody.let_go()
            self._everybody.look_again()

    def _get(self) -> object:
        message = super()._get()
        self.size -= _size(message)
        self.since = time.monotonic()
        return message


def _size(message: object) -> int:
    """Bytes of a message of Gradio's."""
    output = getattr(message, "output", None)
    values = output.get("data") if isinstance(output, dict) else None
    return MESSAGE + sum(map(sys.getsizeof, values or ()))


def bound(queue: Queue) -> None:
    """Bounds the answers that this queue keeps from now on."""
    queue.pending_messages_per_session = Unread(queue.pending_event_ids_session)
