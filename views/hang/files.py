"""Files of a hang: read in memory, answered with a digest that the browser keeps; the server keeps
nothing.

A digest is a `formats.logs.model.Log` as compressed JSON, with ranks as steps from one to the next.
It comes back from a browser, so that pydantic checks every value.

>>> log = Log(ranks=(3, 4, 5, 6, 8), hosts={3: "gpu-04"})
>>> log_of(digest_of(log)) == log
True
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from itertools import accumulate, islice, pairwise
from typing import Any

from descriptions import RUN, hang_sentence
from formats.logs import read_log
from formats.logs.bounds import PAGE
from formats.logs.case import MOST_CONNECTED
from formats.logs.model import Log
from formats.logs.steps import share_command
from groups.budget import LIMIT, spend, within
from groups.errors import LayoutError
from groups.grouping import Grouping

from ..base.inputs import OF_GROUPS
from ..base.problems import refusal, sentence
from ..base.resolve import resolve
from ..base.state import State, language_of

WORK = 8 * LIMIT
"""Units of work of one reading: the server reads the files of one visitor after the other."""

LONGEST_HEAD = 4_000_000
MOST_SIGNS = 200_000
"""Bytes of what is said of the files, and its lists, values and names: for 16,384 files enough."""

TOO_MUCH = ("too-m", "unpacks-", "dump-long", "dump-dense")
"""How the codes of refusals begin that the command line has not."""

LONGEST = 250_000
"""Characters of a digest: it comes with every question of the page."""

KEPT = (4096, 512, 64)
"""How many groups and lines a digest keeps; fewer where it would be too long."""

MOST_PLAIN = 2_000_000
"""Characters of its JSON, which a short digest could be without end: at most a million ranks."""

MOST_PARTS = 100_000
"""Lists and objects of its JSON: millions of empty ones are a short text as well."""


def evidence(sent: bytes | str) -> str:
    """What files say, as JSON: {"digest": text} for the browser to keep, or {"refused": sentence}.

    sent: a line of JSON, {"files": [[name, number of bytes], ...], "lang": code, "job": fields of
    the layout on screen}, then the files one after the other. Nothing of them is kept.

    >>> said = json.loads(evidence('{"files": [["a.log", 9]]}\\n[rank3]: x'))
    >>> log_of(said["digest"]).files
    1
    """
    body = sent.encode("utf-8", "replace") if isinstance(sent, str) else sent
    end = body.find(b"\n")
    head = body[: end if end >= 0 else len(body)]
    try:
        if len(head) > LONGEST_HEAD or sum(map(head.count, b"[{,:")) > MOST_SIGNS:
            return _refused(PAGE.refused(), "zh" if b'"lang":"zh"' in head else "en")
        said = json.loads(head)
        language, at = language_of(said.get("lang")), len(head) + 1
        files: dict[str, str | bytes] = {}
        for name, size in said["files"]:
            begin, at = at, at + max(0, int(size))
            files[str(name)[:500]] = body[begin:at]
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return json.dumps({"refused": "?"})
    try:
        with within(WORK):
            return json.dumps({"digest": digest_of(read_log(files, _groupings(said.get("job"))))})
    except LayoutError as error:
        return _refused(error, language)


def _refused(error: LayoutError, language: str) -> str:
    """A refusal as JSON; where files are too much for a page, with what reads them."""
    said = sentence(error, language)
    codes = {error.code, error.facts.get("because")}
    if any(str(code).startswith(TOO_MUCH) for code in codes):
        command = share_command(None, "FOLDER")
        said = f"{said} {RUN['files_elsewhere'][language].format(command=command)}"
    return json.dumps({"refused": said})


def _groupings(job: object) -> Mapping[str, Grouping] | None:
    """The groups of the layout on screen, for dumps that do not name members."""
    fields = job if isinstance(job, dict) else {}
    try:
        layout = resolve(State(**{name: fields[name] for name in OF_GROUPS if name in fields}))
    except LayoutError:
        return None
    return layout.every if layout.world_size <= MOST_CONNECTED else None


# -- the digest ----------------------------------------------------------------------------------


def digest_of(log: Log) -> str:
    """The text of a log, with what stands first where not all fits.

    Errors: LayoutError ``long-digest`` where nothing fits.
    """
    for count in KEPT:
        plain = json.dumps(_plain(_cut(log, count)), separators=(",", ":"))
        if len(plain) > MOST_PLAIN or _parts(plain) > MOST_PARTS:
            continue
        text = base64.b64encode(zlib.compress(plain.encode())).decode()
        if len(text) <= LONGEST:
            return text
    raise refusal("long-digest", "log")


def _cut(log: Log, count: int) -> Log:
    diagnosis = log.diagnosis
    stuck = {wait.group.key for wait in diagnosis.waits}
    groups = sorted(log.process_groups, key=lambda group: group.key not in stuck)
    hops = tuple(replace(hop, waits=hop.waits[:count]) for hop in diagnosis.hops[:16])
    return replace(
        log,
        stalls=log.stalls[:count],
        devices=dict(islice(log.devices.items(), count)),
        notes=log.notes[:100],
        groups=dict(islice(log.groups.items(), count)),
        process_groups=tuple(groups[:count]),
        diagnosis=replace(diagnosis, waits=diagnosis.waits[:count], hops=hops),
    )


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if not isinstance(value, tuple):
        return value
    if all(type(item) is int for item in value):
        return [rank - before for before, rank in pairwise((0, *value))]
    return [*map(_plain, value)]


def _parts(plain: str) -> int:
    """Lists and objects of a JSON at most: brackets in its texts count as well."""
    return plain.count("[") + plain.count("{")


def log_of(text: object) -> Log:
    """The log of a digest. Errors: LayoutError ``bad-digest`` for any other text; ``too-much-work``
    where it is more than a request may cost."""
    try:
        if not isinstance(text, str) or len(text) > LONGEST:
            raise ValueError
        unpacking = zlib.decompressobj()
        plain = unpacking.decompress(base64.b64decode(text), MOST_PLAIN).decode()
        parts = _parts(plain)
        if unpacking.unconsumed_tail or parts > MOST_PARTS:
            raise ValueError
        spend(len(plain) // 20 + 2 * parts, "values", control="digest")
        log: Log = _type_of_log().validate_python(_tuples(json.loads(plain)))
        for note in log.notes:
            hang_sentence(note.code, note.facts, "en")
    except LayoutError:
        raise
    except (ValueError, TypeError, LookupError, RecursionError, zlib.error):
        what = "what the files said can no longer be read: choose them again"
        raise LayoutError("bad-digest", what, control="digest") from None
    return log


@cache
def _type_of_log() -> Any:
    from pydantic import TypeAdapter  # 50 ms, for pages with files alone

    return TypeAdapter(Log)


def _tuples(value: Any) -> Any:
    """What `_plain` was given, but for its classes."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    is_steps = all(type(item) is int for item in value)
    return tuple(accumulate(value) if is_steps else map(_tuples, value))
