"""The files of a hang as a digest, which the browser keeps.

A digest is a `diagnosis.hang.model.Log` as compressed JSON, with ranks as steps from one to the
next. It comes back from a browser, so that pydantic checks every value.

>>> log = Log(ranks=(3, 4, 5, 6, 8), hosts={3: "gpu-04"})
>>> log_of(digest_of(log)) == log
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import is_dataclass, replace
from functools import cache
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING

from descriptions import hang_sentence
from diagnosis.hang.case import MOST_CONNECTED
from diagnosis.hang.model import Log
from formats.logs import read_log
from groups.layout import Layout

from ...digests import bad_digest, packed, unpacked
from ...errors import refusal

if TYPE_CHECKING:
    from pydantic import TypeAdapter

KEPT = (4096, 512, 64)
"""How many groups and lines a digest keeps; the next smaller set if it would be too long."""


def read_hang(files: Mapping[str, str | bytes], layout: Layout | None) -> str:
    """The digest of a hang's files. layout: the one on screen, for dumps that name no members.

    Errors: LayoutError for files that are none, and where they are too much.
    """
    is_small = layout is not None and layout.world_size <= MOST_CONNECTED
    return digest_of(read_log(files, layout.every if layout is not None and is_small else None))


# -- the digest ----------------------------------------------------------------------------------


def digest_of(log: Log) -> str:
    """A log as text, without its less important lines if it is too long.

    Errors: LayoutError ``long-digest`` where nothing fits.
    """
    tried = None
    for count in KEPT:
        cut = _cut(log, count)
        if cut == tried:  # there is nothing more to leave out
            break
        text = packed(json.dumps(_plain(cut), separators=(",", ":")))
        if text:
            return text
        tried = cut
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


def _plain(value: object) -> object:
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    if not isinstance(value, tuple):
        return value
    if all(type(item) is int for item in value):
        return [rank - before for before, rank in pairwise((0, *value))]
    return [*map(_plain, value)]


def log_of(text: object) -> Log:
    """The log of a digest. Errors: LayoutError ``bad-digest`` for any other text; ``too-much-work``
    past the budget of a request."""
    plain = unpacked(text, "digest")
    try:
        log: Log = _type_of_log().validate_python(_tuples(json.loads(plain)))
        for note in log.notes:
            hang_sentence(note.code, note.facts, "en")
    except (ValueError, TypeError, LookupError, RecursionError):
        raise bad_digest("digest") from None
    return log


@cache
def _type_of_log() -> TypeAdapter[Log]:
    from pydantic import TypeAdapter  # 50 ms, for pages with files alone

    return TypeAdapter(Log)


def _tuples(value: object) -> object:
    """The inverse of `_plain`, except for classes."""
    if isinstance(value, dict):
        return {name: _tuples(item) for name, item in value.items()}
    if not isinstance(value, list):
        return value
    is_steps = all(type(item) is int for item in value)
    return tuple(accumulate(value) if is_steps else map(_tuples, value))
