"""Where work is done: quick work in a thread, heavy work in a process of its own.

Python runs one thread at a time, so a heavy request in a thread holds up everybody. Each request
begins in a thread with a small budget (groups.budget); the one that spends it all is begun anew in
the worker, which answers one after the other while the page goes on. Few may wait for the worker:
the next is told that the server is busy.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import math
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import gradio as gr
from anyio import CapacityLimiter, to_thread
from gradio.context import LocalContext

from groups import LayoutError
from groups.budget import Budget, within
from groups.kept import STORE
from request.endpoint import words_of
from request.words import sentence

from .worker import Worker

Result = TypeVar("Result")
Sent = TypeVar("Sent")

LIGHT = 25_000
"""The budget of a light request, in units of work of about a microsecond."""

SLOW = 0.1
"""Seconds of a core after which the same request counts as heavy the next time."""

THREADS = 2
WAITING = 4
"""The most heavy requests that wait for the worker."""

USUAL = 2.0
"""Seconds that a heavy request is expected to take before one has."""

PAUSE = 1.0
"""Seconds before a client is told "busy", so that one that retries at once is no load."""

REMEMBERED = 1000
"""The number of heavy requests that are remembered."""


class TooHeavyError(Exception):
    """A request that exceeds the light budget."""


class BusyError(LayoutError):
    """The refusal if too many requests wait for the worker, with the seconds until it has answered
    them."""

    def __init__(self, seconds: float = 1.0) -> None:
        about = max(1, math.ceil(seconds))
        super().__init__(
            "busy",
            f"the server is busy with other large requests for about {about} seconds: "
            "please try again then",
            facts={"seconds": about},
        )


class Turns:
    """Requests that are answered one after the other, of which one that would wait too long is
    declined at once.

    What a request takes is known of those before it: each moves what is expected a quarter of the
    way to its own seconds.
    """

    def __init__(self, most: int = 10**6, longest: float = math.inf) -> None:
        self._most, self._longest = most, longest
        self._turn = asyncio.Lock()
        self._ahead = 0
        self._usual = USUAL

    @property
    def wait(self) -> float:
        """The seconds that another request is expected to wait."""
        return self._ahead * self._usual

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """The turn of a request. Errors: BusyError if too many wait, or it would for too long."""
        if self._ahead >= self._most or self.wait > self._longest:
            seconds = self.wait
            await asyncio.sleep(PAUSE)
            raise BusyError(seconds)
        self._ahead += 1
        try:
            async with self._turn:
                begun = time.monotonic()
                try:
                    yield
                finally:
                    self._usual += (time.monotonic() - begun - self._usual) / 4
        finally:
            self._ahead -= 1


class Bite(Budget):
    """The budget of a light request; past it the work is moved to the worker, not refused."""

    def spend(self, units: int) -> bool:
        self.spent += units
        if self.spent > self.limit:
            raise TooHeavyError
        return True


class Lanes:
    """Threads for light work and a worker for heavy work, of one server."""

    def __init__(self, worker: Worker | None = None) -> None:
        self.worker = worker or Worker()
        self._threads = CapacityLimiter(THREADS)
        self._turns = Turns(most=WAITING + 1)
        self._heavy: deque[int] = deque(maxlen=REMEMBERED)

    async def run(
        self, work: Callable[..., Result], *values: object, heavy: bool = False, **named: object
    ) -> Result:
        """What the function returns; it and its values must be such as pickle can send.

        heavy: known to be so. Errors: what it raises; BusyError where too many wait.
        """
        if not heavy:
            with suppress(TooHeavyError):
                return await self.run_here(work, *values, **named)
        return await self._by_worker(work, values, named)

    async def run_here(
        self, work: Callable[..., Result], *values: object, **named: object
    ) -> Result:
        """What the function returns, if that is light work.

        Errors: what it raises; TooHeavyError for work that is heavy, or was the last time.
        """
        key = hash(repr((work, values, named)))
        if key in self._heavy:
            raise TooHeavyError
        done = await to_thread.run_sync(_bitten, work, values, named, limiter=self._threads)
        if done.seconds > SLOW or done.is_too_heavy:
            self._heavy.append(key)
        if done.is_too_heavy:
            raise TooHeavyError
        return cast("Result", done.answer())

    @property
    def wait(self) -> float:
        """The seconds until the worker is expected to have answered all that wait for it."""
        return self._turns.wait

    async def _by_worker(
        self, work: Callable[..., Result], values: Iterable[object], named: Mapping[str, object]
    ) -> Result:
        async with self._turns.turn():
            done = await to_thread.run_sync(_asked, self.worker, work, values, named)
        return cast("Result", done.answer())


@dataclass
class Done:
    """What became of work within the light budget, and the seconds of a core that it took."""

    seconds: float
    result: object = None
    error: Exception | None = None
    is_too_heavy: bool = False

    def answer(self) -> object:
        """The result, once. Errors: what the work raised, which is not kept: who asks is a frame of
        its traceback."""
        error, self.error = self.error, None
        if error is None:
            return self.result
        try:
            raise error
        finally:
            del error


def _asked(
    worker: Worker,
    work: Callable[..., object],
    values: Iterable[object],
    named: Mapping[str, object],
) -> Done:
    """What becomes of work in the worker; without the frames of an exception, as `_bitten`."""
    try:
        return Done(0.0, worker.ask(work, values, named))
    except Exception as raised:
        return Done(0.0, error=without_frames(raised))


def _bitten(
    work: Callable[..., object], values: Iterable[object], named: Mapping[str, object]
) -> Done:
    """What becomes of work within the light budget.

    An exception does not leave the thread with its traceback: its frames hold all that was worked
    out until then, and together with those that wait for the thread they are a circle, which stays
    until Python collects its oldest objects.
    """
    begun = time.thread_time()
    result: object = None
    error: Exception | None = None
    is_too_heavy = False
    try:
        with within(LIGHT, Bite):
            result = work(*values, **named)
    except TooHeavyError:
        is_too_heavy = True
    except Exception as raised:
        error = without_frames(raised)
    STORE.weigh()
    return Done(time.thread_time() - begun, result, error, is_too_heavy)


def without_frames(error: BaseException) -> Any:
    """The exception without its tracebacks and without those of its causes."""
    left, seen = [error], set[int]()
    while left:
        one = left.pop()
        if id(one) not in seen:
            seen.add(id(one))
            left += filter(None, (one.__cause__, one.__context__))
            one.__traceback__ = None
    return error


def answering(
    function: Callable[[Sent], str], lanes: Lanes, *, heavy: bool = False
) -> Callable[[Sent], Awaitable[str]]:
    """An asynchronous version of a function for the page's script; returns {"busy": seconds} if the
    server is busy for so long, and {"refused": sentence} if the worker fails."""

    async def answered(sent: Sent) -> str:
        try:
            return await lanes.run(function, sent, heavy=heavy)
        except BusyError as error:
            return json.dumps({"busy": error.facts["seconds"]})
        except LayoutError as error:
            text = sent.decode(errors="replace") if isinstance(sent, bytes) else str(sent)
            language = "zh" if '"lang":"zh"' in text else "en"
            return json.dumps({"refused": sentence(error, language)})

    answered.__name__ = function.__name__
    return answered


def telling(lanes: Lanes) -> Callable[[object], Awaitable[str]]:
    """What a page asks whose answer takes long: {"seconds": until all that wait are answered}."""

    async def wait(_: object) -> str:
        return json.dumps({"seconds": math.ceil(lanes.wait)})

    return wait


def heading(head: Callable[[str, str], str], lanes: Lanes) -> Callable[[str, str], Awaitable[str]]:
    """An asynchronous version of the head of a link: from its query and the address of the page.

    A page is not kept waiting for it: where the link is heavy, the head is that of the first page,
    and what the link shows is drawn when the page asks.
    """

    async def link_head(query: str, address: str) -> str:
        for link in (query, ""):
            with suppress(LayoutError, TooHeavyError):
                return await lanes.run_here(head, link, address)
        return ""

    return link_head


MOST_OF_TOOL = 1_000_000
"""Characters of an answer to a tool call: Gradio and its protocol copy each a dozen times, which
takes eleven seconds for 26 million; who calls a tool reads far fewer."""

OF_LESS = {"names": "", "rank": -1, "first": 0}
"""Parameters of endpoints with which an answer holds less, and what stands there for all: of one
rank `rank_card` tells in any case."""


def _is_tool_call() -> bool:
    """Whether the current event is a call of a tool (MCP), which Gradio's own client passes on."""
    headers = getattr(LocalContext.request.get(None), "headers", {})
    return bool(headers.get("x-gradio-user") == "mcp")


def _too_long(count: int, endpoint: Callable[..., str]) -> LayoutError:
    """The refusal of an answer that is too long for a tool: how to ask for less."""
    known = inspect.signature(endpoint).parameters
    less = [name for name, all_ in OF_LESS.items() if name in known and known[name].default == all_]
    names = " or ".join(f'"{name}"' for name in less)
    how = f"with {names}, or for fewer nodes" if names else "for fewer nodes"
    name = endpoint.__name__
    what = (
        f"the answer has {count:,} characters, and that of a tool may have {MOST_OF_TOOL:,}: ask "
        f"for less {how}; POST /gradio_api/call/{name} answers all of it"
    )
    facts = {"count": count, "limit": MOST_OF_TOOL, "less": how, "name": name}
    return LayoutError("answer-too-long", what, facts=facts)


def serving(endpoint: Callable[..., str], lanes: Lanes) -> Callable[..., object]:
    """An asynchronous version of an endpoint for Gradio's events, with the same name, parameters
    and documentation."""

    async def served(*values: object) -> str:
        try:
            text = await lanes.run(endpoint, *values)
            if len(text) > MOST_OF_TOOL and _is_tool_call():
                raise _too_long(len(text), endpoint)
        except LayoutError as error:
            raise gr.Error(words_of(error), print_exception=False) from None
        return text

    served.__name__ = endpoint.__name__
    served.__doc__ = endpoint.__doc__
    served.__annotations__ = inspect.get_annotations(endpoint, eval_str=True)
    served.__signature__ = inspect.signature(endpoint)  # type: ignore[attr-defined]
    return served
