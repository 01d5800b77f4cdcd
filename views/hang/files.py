"""Files of a hang: read in memory, answered with what the browser keeps of them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from formats.logs import read_log
from groups import LayoutError
from groups.budget import LIMIT, within
from groups.grouping import Grouping

from ..base.problems import sentence
from ..base.resolve import resolve
from ..base.state import OF_GROUPS, State, language_of
from .digest import digest_of
from .picture import MOST_CONNECTED

WORK = 8 * LIMIT
"""Units of work of one reading: the server reads the files of one visitor after the other."""


def evidence(sent: bytes | str) -> str:
    """What files say, as JSON: {"digest": text} for the browser to keep, or {"refused": sentence}.

    sent: a line of JSON, {"files": [[name, number of bytes], ...], "lang": code, "job": fields of
    the layout on screen}, then the files one after the other. Nothing of them is kept.

    >>> said = json.loads(evidence('{"files": [["a.log", 9]]}\\n[rank3]: x'))
    >>> json.loads(said["digest"])["files"]
    1
    """
    body = sent.encode("utf-8", "replace") if isinstance(sent, str) else sent
    head, _, rest = body.partition(b"\n")
    files: dict[str, str | bytes] = {}
    try:
        said = json.loads(head)
        language, at = language_of(said.get("lang")), 0
        for name, size in said["files"]:
            end = at + max(0, int(size))
            files[str(name)[:500]] = rest[at:end]
            at = end
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        return json.dumps({"refused": "?"})
    try:
        with within(WORK):
            log = digest_of(read_log(files, _groupings(said.get("job"))))
    except LayoutError as error:
        return json.dumps({"refused": sentence(error, language)})
    return json.dumps({"digest": json.dumps({"files": len(files), "log": log})})


def _groupings(job: object) -> Mapping[str, Grouping] | None:
    """The groups of the layout on screen, for dumps that do not name members."""
    fields = job if isinstance(job, dict) else {}
    try:
        layout = resolve(State(**{name: fields[name] for name in OF_GROUPS if name in fields}))
    except LayoutError:
        return None
    return layout.every if layout.world_size <= MOST_CONNECTED else None
