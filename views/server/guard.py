"""What the page takes in from outside, and what goes with every answer: a middleware of ASGI.

A request is refused here before Gradio reads it: a body that is too large, a file, an event that
there is not, values that are too few. Gradio takes uploads of any page, and answers such mistakes
with a traceback in the log.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from .bodies import LARGEST_BODY, LARGEST_EVIDENCE, Bodies, RefusedError
from .unread import LONGEST_UNREAD

Message = dict[str, Any]
Scope = dict[str, Any]

LOG = logging.getLogger(__name__)

API = "/gradio_api/"
CALL = API + "call/"
EVENTS = tuple(API + path for path in ("run/", "api/", "call/", "queue/join"))
TAKEN = (*EVENTS, *(API + path for path in ("component_server", "cancel", "reset", "mcp")))
"""What may be posted, by the beginning of its path. All else that Gradio would take is refused:
files (upload, process_recording), a log-in."""

EVIDENCE = API + "evidence"
"""Where files of a hang are read, in memory, of one visitor after the other."""

USED = ("data", "fn_index", "session_hash", "trigger_id")
"""What of an event's body is passed on; what else Gradio would read, the page has no use for."""

MOST_OF_ONE = 32
"""Calls of one endpoint that may wait: half of all (app.py), so that the others are answered."""

NOT_SERVED = (API + "deep_link",)
"""What Gradio would write to disk for anybody who asks: the page's own links hold everything."""

SPACES_HOSTS = (
    "https://huggingface.co https://*.huggingface.co https://*.hf.space "
    "https://cdnjs.cloudflare.com https://fonts.googleapis.com https://fonts.gstatic.com"
)
"""What Gradio's page on a Space fetches by itself, and who embeds it."""


class Guard:
    """The middleware around Gradio's own application.

    head: what comes first in the head of a page, where Gradio has no way to put anything.
    """

    def __init__(self, app: Callable[..., Any], head: str = "") -> None:
        self.app = app
        self._head = head.encode()
        self._bodies = Bodies()
        self._turn = asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Callable, send: Callable) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(send, _headers(scope), self._head)
        try:
            await self._serve(scope, receive, answer)
        except RefusedError as refused:
            await answer.say(refused.status, {"detail": refused.why})
        except ClientDisconnect:
            pass  # nobody waits for the answer any more
        except Exception as error:
            # Gradio's routes take what they are sent as they find it. Its events log their own.
            LOG.warning("%s %s: %.200r", scope["method"], scope["path"], error)
            LOG.debug("in full", exc_info=True)
            await answer.say(400, {"detail": "The server cannot read this request."})

    async def _serve(self, scope: Scope, receive: Callable, answer: _Answer) -> None:
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        if path.startswith(NOT_SERVED):
            raise RefusedError(404, "There is nothing here.")
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            if path.startswith(CALL):
                _require_answer(scope["app"].get_blocks(), path)
            await self.app(scope, receive, answer.send)
            return
        limit = LARGEST_EVIDENCE if path == EVIDENCE else LARGEST_BODY
        if path != EVIDENCE and not path.startswith(TAKEN):
            raise RefusedError(403, "Nothing is taken in here: this page has no use for files.")
        async with self._bodies.of(Request(scope, receive), limit) as body:
            await self._take(scope, path, body, receive, answer)

    async def _take(
        self, scope: Scope, path: str, body: bytes, receive: Callable, answer: _Answer
    ) -> None:
        """Answer what was posted."""
        blocks = scope["app"].get_blocks()
        if path == EVIDENCE:
            await answer.say(200, await self._files(blocks, body))
            return
        if path.startswith(API + "component_server"):
            await answer.say(200, await _asked_by_page(blocks, _sent(body)))
            return
        if path.startswith(EVENTS):
            sent = _sent(body)
            _require_event(blocks, path, sent)
            if "/v2/" not in path:
                body = json.dumps({name: sent[name] for name in USED if name in sent}).encode()
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            """The body again, then what comes after it."""
            return messages.pop() if messages else await receive()

        await self.app(scope, again, answer.send)

    async def _files(self, blocks: Any, body: bytes) -> str:
        """What the files of a hang say; those that are there wait for each other."""
        (read,) = filter(None, (_function(block, "evidence") for block in blocks.blocks.values()))
        async with self._turn:
            return await read(body)


class _Answer:
    """An answer on its way out; headers of ours go with it, with a page our part of its head."""

    def __init__(self, send: Callable, headers: Mapping[str, str], head: bytes) -> None:
        self._send, self._headers, self._head = send, headers, head
        self._page: Message | None = None  # its start, until it is known how long it becomes
        self._begun = self._ended = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._begun = True
            headers = MutableHeaders(scope=message)
            headers.update(self._headers)
            if headers.get("content-type", "").startswith("text/html"):
                self._page = message
                return
        else:
            self._ended = not message.get("more_body", False)
            if self._page:
                message = await self._begin(self._page, message)
        await self._send(message)

    async def _begin(self, start: Message, message: Message) -> Message:
        """Send the start of a page; its first part, with ours in its head."""
        page = message.get("body", b"")
        whole = page.replace(b"<head>", b"<head>" + self._head, 1)
        headers = MutableHeaders(scope=start)
        if "content-length" in headers:
            headers["content-length"] = str(int(headers["content-length"]) + len(whole) - len(page))
        self._page = None
        await self._send(start)
        return {**message, "body": whole}

    async def say(self, status: int, content: object) -> None:
        """The whole answer as JSON; another that has begun is ended in its place."""
        if self._begun:
            if not self._ended:
                await self.send({"type": "http.response.body", "body": b""})
            return
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        # What is still to come of a body is not waited for.
        ends = {"connection": "close"} if status in (408, 413, 503) else {}
        answer = Response(body, status, ends, media_type="application/json")
        await answer({"type": "http"}, self._send, self.send)


def _headers(scope: Scope) -> dict[str, str]:
    """Security headers: the page fetches from itself alone, and is not shown inside another's.

    Gradio's page needs scripts in its HTML and makes functions of texts. Who wants to embed the
    page says so in its address, ``?embed=1``; on a Space, Hugging Face does.
    """
    hosts = f" {SPACES_HOSTS}" if os.environ.get("SPACE_ID") else ""
    query = parse_qs(scope["query_string"].decode("latin-1"))
    ancestors = "*" if query.get("embed") == ["1"] else f"'self'{hosts}"
    policy = (
        f"default-src 'self'{hosts}; script-src 'self' 'unsafe-inline' 'unsafe-eval'{hosts}; "
        f"style-src 'self' 'unsafe-inline'{hosts}; img-src 'self' data: blob:{hosts}; "
        f"font-src 'self' data:{hosts}; worker-src 'self' blob:; object-src 'none'; "
        f"base-uri 'self'; form-action 'self'; frame-ancestors {ancestors}"
    )
    return {
        "content-security-policy": policy,
        "referrer-policy": "same-origin",
        "x-content-type-options": "nosniff",
    }


def _sent(body: bytes) -> dict[str, Any]:
    try:
        sent = json.loads(body)
    except (ValueError, RecursionError):
        raise RefusedError(400, "The body is not JSON.") from None
    if not isinstance(sent, dict):
        raise RefusedError(422, "The body is not a JSON object.")
    return sent


def _require_event(blocks: Any, path: str, sent: dict[str, Any]) -> None:
    """Refuse what asks for an event that Gradio has not, or gives it what it does not take; what is
    left out at the end is as its parameters say."""
    is_named = path.startswith(CALL)
    index = sent.get("fn_index")
    if not is_named and index is not None:
        event = blocks.fns.get(index) if isinstance(index, int) else None
    else:
        name = path.rstrip("/").rpartition("/")[2]
        event = next((event for event in blocks.fns.values() if event.api_name == name), None)
    if event is None or event.fn is None:
        raise RefusedError(404, "There is no such endpoint.")
    queue = blocks._queue.event_queue_per_concurrency_id.get(event.concurrency_id)
    if queue and len(queue.queue) >= MOST_OF_ONE:
        raise RefusedError(503, "Too many calls of this endpoint wait: try again in a moment.")
    if path.startswith(CALL + "v2/"):
        _require_no_files(sent)
        return
    data, inputs = sent.get("data"), event.inputs
    if not isinstance(data, list) or len(data) > len(inputs):
        raise RefusedError(422, f'"data" must be a list of at most {len(inputs)} values.')
    _require_no_files(dict(zip(inspect.signature(event.fn).parameters, data)))
    data += [block.value for block in inputs[len(data) :]]  # as Gradio's own clients do


def _require_no_files(given: Mapping[str, Any]) -> None:
    """Refuse what Gradio would take for a file of its own (gradio.FileData)."""
    for name, value in given.items():
        left = [value]
        while left:
            one = left.pop()
            if isinstance(one, dict) and "meta" in one:
                raise RefusedError(422, f"{name} must not be a file: send what the file says.")
            left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _require_answer(blocks: Any, path: str) -> None:
    """Refuse what asks for an answer that there is not."""
    event = path.rstrip("/").rpartition("/")[2]
    if not blocks._queue.pending_messages_per_session.knows(event):
        minutes = LONGEST_UNREAD // 60
        why = f"There is no such answer: it was fetched, or not within {minutes:.0f} minutes."
        raise RefusedError(404, why)


async def _asked_by_page(blocks: Any, sent: dict[str, Any]) -> str:
    """What the page's own script asks (views/gradio/widgets.py)."""
    index, name, text = sent.get("component_id"), sent.get("fn_name"), sent.get("data")
    block = blocks.blocks.get(index) if isinstance(index, int) else None
    function = _function(block, name) if isinstance(name, str) else None
    if function is None:
        raise RefusedError(404, "There is no such function.")
    if not isinstance(text, str):
        raise RefusedError(422, '"data" must be a text.')
    return await function(text)


def _function(block: Any, name: str) -> Callable[..., Any] | None:
    """A server function of a component; None where it has none of this name."""
    function = getattr(block, name, None)
    return function if getattr(function, "_is_server_fn", False) else None
