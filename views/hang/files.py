"""Files of a hang: read in memory, answered with a digest that the browser keeps; the server keeps
nothing.

A digest is a `formats.logs.model.Log` as JSON: a dataclass is the list of its fields, a mapping the
list of its pairs, ranks are runs. It comes back from a browser, so that every value is checked.

>>> log = Log(ranks=(3, 4, 5, 6, 8), hosts={3: "gpu-04"})
>>> log_of(digest_of(log)) == log
True
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache
from itertools import islice
from types import NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

from descriptions import hang_sentence
from formats.logs import read_log
from formats.logs.model import Log
from groups.budget import LIMIT, within
from groups.errors import LayoutError
from groups.grouping import Grouping

from ..base.problems import refusal, sentence
from ..base.resolve import resolve
from ..base.state import OF_GROUPS, State, language_of
from .picture import MOST_CONNECTED

WORK = 8 * LIMIT
"""Units of work of one reading: the server reads the files of one visitor after the other."""

LONGEST = 250_000
"""Characters of a digest: it comes with every question of the page."""

KEPT = (4096, 512, 64)
"""How many groups and lines a digest keeps; fewer where it would be too long."""

MOST_MEMBERS = 4_000_000
"""Ranks of all runs of a digest together."""

ABOVE_RANKS = 10**7
"""Ranks of lines have up to seven digits."""


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


# -- the digest ----------------------------------------------------------------------------------


def digest_of(log: Log) -> str:
    """The text of a log, with what stands first where not all fits.

    Errors: LayoutError ``long-digest`` where nothing fits.
    """
    for count in KEPT:
        text = json.dumps(_plain(_cut(log, count)), separators=(",", ":"))
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
        return [_plain(getattr(value, field.name)) for field in fields(value)]
    if isinstance(value, Mapping):
        return [[_plain(key), _plain(item)] for key, item in value.items()]
    if isinstance(value, tuple):
        if len(value) > 3 and all(type(item) is int and item >= 0 for item in value):
            return {"runs": list(_runs(value))}
        return [_plain(item) for item in value]
    return value


def _runs(numbers: Sequence[int]) -> Iterator[list[int]]:
    """Numbers as [first, how many, step].

    >>> list(_runs((0, 8, 16, 17)))
    [[0, 3, 8], [17, 1, 1]]
    """
    at = 0
    while at < len(numbers):
        step = numbers[at + 1] - numbers[at] if at + 1 < len(numbers) else 1
        end = at + 1
        while end < len(numbers) and numbers[end] - numbers[end - 1] == step:
            end += 1
        yield [numbers[at], end - at, step if end - at > 1 else 1]
        at = end


def log_of(text: object) -> Log:
    """The log of a digest. Errors: LayoutError ``bad-digest`` for any other text."""
    try:
        _require(isinstance(text, str) and len(text) <= LONGEST)
        log: Log = _Back().of(Log, json.loads(str(text)))
        for note in log.notes:
            hang_sentence(note.code, note.facts, "en")
    except (ValueError, KeyError, IndexError, RecursionError):
        what = "what the files said can no longer be read: choose them again"
        raise LayoutError("bad-digest", what, control="digest") from None
    return log


def _require(fits: bool) -> None:
    if not fits:
        raise ValueError


@cache
def _types(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


class _Back:
    """From JSON to what a type says; ``left`` are ranks that runs may still have."""

    def __init__(self) -> None:
        self.left = MOST_MEMBERS

    def of(self, kind: Any, value: Any) -> Any:
        origin, kinds = get_origin(kind), get_args(kind)
        if kind is object:  # a fact of a note: plain values, lists as tuples
            if isinstance(value, list):
                return tuple(self.of(object, item) for item in value)
            return self._runs(value) if isinstance(value, dict) else value
        if origin is UnionType:
            inner = next(kind for kind in kinds if kind is not NoneType)
            return None if value is None else self.of(inner, value)
        if origin is tuple:
            if isinstance(value, dict):
                items = self._runs(value)
            else:
                _require(isinstance(value, list))
                _require(kinds[-1] is ... or len(value) == len(kinds))
                items = tuple(self.of(kinds[0], item) for item in value)
            _require(kinds[0] is not int or all(0 <= item < ABOVE_RANKS for item in items))
            return items
        if is_dataclass(kind):
            types = _types(kind)  # type: ignore[arg-type]
            _require(isinstance(value, list) and len(value) == len(types))
            return kind(*map(self.of, types.values(), value))  # type: ignore[operator]
        if origin is not None:  # a mapping
            _require(isinstance(value, list))
            _require(all(isinstance(pair, list) and len(pair) == 2 for pair in value))
            return {self.of(kinds[0], key): self.of(kinds[1], item) for key, item in value}
        _require(type(value) is kind and (kind is not int or abs(value) < 2**53))
        return value

    def _runs(self, value: dict[str, Any]) -> tuple[int, ...]:
        runs, numbers = value.get("runs"), []
        _require(isinstance(runs, list))
        for run in runs or ():
            _require(isinstance(run, list) and [type(number) for number in run] == [int] * 3)
            first, count, step = run
            self.left -= max(count, 1)
            _require(self.left >= 0 and count >= 1 and abs(step) < ABOVE_RANKS)
            numbers += range(first, first + count * step, step) if step else [first] * count
        return tuple(numbers)
