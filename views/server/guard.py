"""An ASGI middleware that limits requests from outside and adds headers to every answer.

A request is refused here before Gradio reads it: a body that is too large, a file, an event that
there is not, values that are too few. Gradio takes uploads of any page, and answers such mistakes
with a traceback in the log.
"""

from __future__ import annotations

import base64
import inspect
import json
import logging
import os
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from formats.values import Document, Facts
from request.link import whole_json

from .bodies import LARGEST_BODY, LARGEST_EVIDENCE, Bodies, RefusedError
from .lanes import BusyError, Turns
from .unread import LONGEST_UNREAD
from .worker import LONGEST

LOG = logging.getLogger(__name__)

API = "/gradio_api/"
CALL = API + "call/"
EVENTS = tuple(API + path for path in ("run/", "api/", "call/", "queue/join"))
TAKEN = (*EVENTS, *(API + path for path in ("component_server", "cancel", "reset", "mcp")))
"""Paths that accept POST, by their beginning. Everything else of Gradio's is refused: files
(upload, process_recording), a log-in."""

TOOLS = API + "mcp"
"""The path of the endpoints as tools."""

DEEPEST = 64
"""The levels of lists and objects in a body: Gradio and its tools go down them one call by one."""

NAMES_ONLY = (API + "cancel", API + "reset")
LARGEST_NAMES = 10_000
"""Paths whose requests hold names of sessions and events only, and their largest size in bytes:
Gradio answers a mistake by repeating the request, which takes seconds for a megabyte of lists."""

EVIDENCE = API + "evidence"
"""The path that reads files of a hang or a slow step, in memory, one visitor after the other."""

USED = ("data", "fn_index", "session_hash", "trigger_id")
"""The parts of an event's body that are passed on; the page does not use the others that Gradio
reads."""

MOST_OF_ONE = 32
"""The most waiting calls of one endpoint: half of all (app.py), so that others are answered."""

PREVIEW = "/preview.png"
"""The picture of the link in its query, for programs that preview links (views/preview.py)."""

GRADIOS = re.compile(rb'<meta\s+(?:property="og:|name="twitter:)[^>]*>\s*')
"""Gradio's own description of the page for previews of links."""

NOT_SERVED = (API + "deep_link",)
"""Paths with which Gradio would write to disk for anybody: the page's own links hold everything."""

SPACES_HOSTS = (
    "https://huggingface.co https://*.huggingface.co https://*.hf.space "
    "https://cdnjs.cloudflare.com https://fonts.googleapis.com https://fonts.gstatic.com"
)
"""Hosts that Gradio's page on a Space fetches from, and that embed it."""


class Guard:
    """The middleware around Gradio's own application.

    head: what comes first in the head of a page, where Gradio has no way to put anything. What is
        said there of the link that the page is opened by, ``link_head`` of its blocks works out,
        from the query and the address of the page, elsewhere than in the event loop.
    """

    def __init__(self, app: Callable[..., Any], head: str = "") -> None:
        self.app = app
        self._head = head
        self._bodies = Bodies()
        self._turns = Turns(longest=LONGEST)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope = {**scope, "headers": [*filter(_is_needed, scope["headers"])]}
        answer = _Answer(send, _headers(scope), partial(self._head_of, scope))
        try:
            await self._serve(scope, receive, answer)
        except RefusedError as refused:
            await answer.say(refused.status, {"detail": refused.why})
        except ClientDisconnect:
            pass  # nobody waits for the answer any more
        except Exception as error:
            # Gradio's routes take what they are sent as they find it. Its events log their own.
            # What comes from outside is quoted: a path may hold the end of a line.
            LOG.warning("%s %.200r: %.200r", scope["method"], scope["path"], error)
            LOG.debug("in full", exc_info=True)
            await answer.say(400, {"detail": "The server cannot read this request."})

    async def _head_of(self, scope: Scope) -> bytes:
        """The elements in front of a page's head."""
        link_head = ""
        of_link = getattr(scope["app"].get_blocks(), "link_head", None)
        if of_link and _path(scope) == "/":
            link_head = await of_link(_query(scope), _address(scope))
        return f"{self._head}{link_head}".encode("utf-8", "replace")

    async def _serve(self, scope: Scope, receive: Receive, answer: _Answer) -> None:
        path = _path(scope)
        if path.startswith(NOT_SERVED):
            raise RefusedError(404, "There is nothing here.")
        if path == PREVIEW and scope["method"] in ("GET", "HEAD"):
            await self._preview(scope, answer)
            return
        if scope["method"] in ("GET", "HEAD", "OPTIONS"):
            if path.startswith(CALL):
                _require_answer(scope["app"].get_blocks(), path)
            await self.app(scope, receive, answer.send)
            return
        limit = LARGEST_EVIDENCE if path == EVIDENCE else LARGEST_BODY
        limit = LARGEST_NAMES if path.startswith(NAMES_ONLY) else limit
        if path != EVIDENCE and not path.startswith(TAKEN):
            raise RefusedError(403, "Nothing is taken in here: this page has no use for files.")
        async with self._bodies.of(Request(scope, receive), limit) as body:
            await self._take(scope, path, body, receive, answer)

    async def _take(
        self, scope: Scope, path: str, body: bytes, receive: Receive, answer: _Answer
    ) -> None:
        """Answer what was posted."""
        blocks = scope["app"].get_blocks()
        if path == EVIDENCE:
            await answer.say(200, await self._files(blocks, body))
            return
        if path.startswith(API + "component_server"):
            await answer.say(200, await _call_from_page(blocks, _sent(body)))
            return
        if path.startswith(EVENTS):
            sent = _sent(body)
            _require_event(blocks, path, sent)
            if "/v2/" not in path:
                sent = {name: sent[name] for name in USED if name in sent}
            body = json.dumps(sent).encode()
        elif path.startswith(TOOLS) and body:
            body = json.dumps(_sent(body)).encode()
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Message:
            """The body again, then what comes after it."""
            return messages.pop() if messages else await receive()

        await self.app(scope, again, answer.send)

    async def _preview(self, scope: Scope, answer: _Answer) -> None:
        """The picture of the link in the query."""
        blocks = scope["app"].get_blocks().blocks.values()
        (make,) = filter(None, (_function(block, "preview") for block in blocks))
        image = await make(_query(scope))
        if image.startswith("{"):
            raise RefusedError(503, "The server is busy: try again in a moment.")
        kept = {"cache-control": "public, max-age=86400"}
        picture = Response(base64.b64decode(image), headers=kept, media_type="image/png")
        await picture({"type": "http"}, _nothing, answer.send)

    async def _files(self, blocks: Any, body: bytes) -> str:
        """What files say; those that are there wait for each other, none longer than reading them
        may take: what would is told for how long the server is busy."""
        (read,) = filter(None, (_function(block, "evidence") for block in blocks.blocks.values()))
        try:
            async with self._turns.turn():
                return await read(body)
        except BusyError as error:
            return json.dumps({"busy": error.facts["seconds"]})


class _Answer:
    """An answer being sent, with our headers and, for a page, our part of its head."""

    def __init__(
        self, send: Send, headers: Mapping[str, str], head: Callable[[], Awaitable[bytes]]
    ) -> None:
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
        whole = GRADIOS.sub(b"", page).replace(b"<head>", b"<head>" + await self._head(), 1)
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
        await answer({"type": "http"}, self._never, self.send)

    @staticmethod
    async def _never() -> Message:
        """An answer of its own asks for no more of the question."""
        raise AssertionError("nothing is received for it")


def _path(scope: Scope) -> str:
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


def _query(scope: Scope) -> str:
    return bytes(scope["query_string"]).decode("latin-1")


def _address(scope: Scope) -> str:
    """The address of the page for its reader, behind a proxy too."""
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    host = headers.get("host", "")
    scheme = headers.get("x-forwarded-proto", "").split(",")[0].strip() or scope.get(
        "scheme", "http"
    )
    is_plain = re.fullmatch(r"[\w.:\[\]-]{1,255}", host, re.ASCII) and scheme in ("http", "https")
    return f"{scheme}://{host}{scope.get('root_path', '')}/" if is_plain else "/"


def _headers(scope: Scope) -> dict[str, str]:
    """Security headers: the page fetches from itself alone, and is not embedded in another's.

    Gradio's page needs scripts in its HTML and makes functions of texts. Who wants to embed the
    page says so in its address, ``?embed=1``; on a Space, Hugging Face does.
    """
    hosts = f" {SPACES_HOSTS}" if os.environ.get("SPACE_ID") else ""
    query = parse_qs(_query(scope))
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


def _sent(body: bytes) -> Document:
    """The object that a body is, of whole characters. Errors: RefusedError for anything else."""
    try:
        sent = whole_json(body.decode())
    except (ValueError, RecursionError):
        raise RefusedError(400, "The body is not JSON.") from None
    if not isinstance(sent, dict):
        raise RefusedError(422, "The body is not a JSON object.")
    level: list[Any] = [sent]
    depth = 0
    while level:
        depth += 1
        if depth > DEEPEST:
            raise RefusedError(422, f"The body has more than {DEEPEST} levels.")
        inside = (one.values() if isinstance(one, dict) else one for one in level)
        level = [one for values in inside for one in values if isinstance(one, (dict, list))]
    return sent


UNNEEDED = (b"x-gradio-server",)
"""Headers of Gradio's second server (node), which this page does without: it takes from them what
it writes into the page."""


def _is_needed(header: tuple[bytes, bytes]) -> bool:
    """Whether the server needs a header: what is no host is none."""
    name, value = header[0].lower(), header[1].decode("latin-1")
    if name in HOSTS:
        return bool(HOST.fullmatch(value))
    return name not in UNNEEDED


HOSTS = (b"host", b"x-forwarded-host")
HOST = re.compile(r"[\w.:,\[\] -]{0,255}", re.ASCII)


def _require_event(blocks: Any, path: str, sent: Document) -> None:
    """Refuses an unknown event of Gradio's, and values that it does not take; fills in defaults for
    values left out at the end."""
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


def _require_no_files(values: Facts) -> None:
    """Refuses values that Gradio would take for its own files (gradio.FileData)."""
    for name, value in values.items():
        left = [value]
        while left:
            one = left.pop()
            if isinstance(one, dict) and "meta" in one:
                raise RefusedError(422, f"{name} must not be a file: send what the file says.")
            left += one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()


def _require_answer(blocks: Any, path: str) -> None:
    """Refuses to fetch an answer that does not exist."""
    event = path.rstrip("/").rpartition("/")[2]
    if not blocks._queue.pending_messages_per_session.knows(event):
        minutes = LONGEST_UNREAD // 60
        why = f"There is no such answer: it was fetched, or not within {minutes:.0f} minutes."
        raise RefusedError(404, why)


async def _nothing() -> Message:
    """What comes after a request that is read."""
    return {"type": "http.disconnect"}


async def _call_from_page(blocks: Any, sent: Document) -> str:
    """What the page's own script asks (views/client/widgets.py)."""
    index, name, text = sent.get("component_id"), sent.get("fn_name"), sent.get("data")
    block = blocks.blocks.get(index) if isinstance(index, int) else None
    function = _function(block, name) if isinstance(name, str) else None
    if function is None:
        raise RefusedError(404, "There is no such function.")
    if not isinstance(text, str):
        raise RefusedError(422, '"data" must be a text.')
    return await function(text)


def _function(block: Any, name: str) -> Callable[..., Any] | None:
    """A server function of a component; None for an unknown name."""
    function = getattr(block, name, None)
    return function if getattr(function, "_is_server_fn", False) else None
