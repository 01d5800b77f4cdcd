"""NCCL's own lines, and the reports of its RAS as text and JSON.

Every rank that NCCL prints is the place in a communicator; a number in brackets before the message
is a CUDA device. Of ranks whose counts differ a report lists the smaller set, which can be the
ranks that are ahead: only the counts tell.

Sources: NVIDIA/nccl, src/debug.cc, src/init.cc, src/ras/client_support.cc; NCCL user guide, RAS.
"""

from __future__ import annotations

import re
from typing import Any

from .model import Counts
from .reading import LogReading

NCCL_LINE = re.compile(r"NCCL (?:INFO|WARN|TRACE|VERSION|ABORT)|\d\[[0-9a-f]{1,16}\] -> \d{1,7}\[")

_LAUNCHER = re.compile(r"^\s{0,4}\[(\d{1,7})\] \S{1,255}:\d{1,10}:\d{1,10} \[\d{1,4}\] NCCL")
_CHANNEL = re.compile(r"\b(\d{1,7})\[[0-9a-f]{1,16}\] -> (\d{1,7})\[[0-9a-f]{1,16}\]")
_RANK = re.compile(r"\b[Rr]ank (\d{1,7})\b|\[Proxy Service (\d{1,7})\]")
_LOCAL = re.compile(r"\blocal_?[Rr]ank (\d{1,7})\b")
_RING = re.compile(r"\bRing \d{1,3} : (\d{1,7}) -> (\d{1,7}) -> (\d{1,7})")

_COMMUNICATOR = re.compile(r"^\s{0,8}(#\d{1,7}-\d{1,7} \([0-9a-f]{1,32}\)) ([A-Z]{2,20})")
_LAUNCHED = re.compile(r"^\s{0,8}(\d{1,7}) ranks? (?:have|has) launched up to operation (\d{1,20})")
_NOT_LAUNCHED = re.compile(r"^\s{0,8}(\d{1,7}) ranks? (?:have|has) not launched any operations")
_MEMBER = re.compile(
    r"^\s{0,8}Rank (\d{1,7})(?: has launched up to operation (\d{1,20})| has (not) launched any "
    r"operations)? -- GPU \S{1,40}(?: \(NVML \d{1,4}\))? managed by process \d{1,12} on node "
    r"(\S{1,255})"
)
_MISSING = re.compile(r"^\s{0,8}The missing ranks?: ([\d, ]{1,60000})")


def read_nccl(text: str, reading: LogReading) -> None:
    """One line of NCCL: places in a communicator, and a launcher's rank before it."""
    if text.lstrip(" ")[:1] == "[" and (match := _LAUNCHER.search(text)):
        reading.ranks.add(int(match[1]))
    if "ank" in text or "Proxy Service" in text:
        for match in _LOCAL.finditer(text):
            reading.local_ranks.add(int(match[1]))
        for match in _RANK.finditer(_LOCAL.sub(" ", text)):
            reading.group_ranks.add(int(match[1] or match[2]))
    if " -> " in text:
        for pattern in (_CHANNEL, _RING):
            for match in pattern.finditer(text):
                reading.group_ranks.update(map(int, match.groups()))


def read_report_line(text: str, reading: LogReading) -> bool:
    """One line of a RAS report; False for any other line."""
    if match := _COMMUNICATOR.search(text):
        reading.communicator, reading.launched = match[1], None
        if match[2] == "MISMATCH":
            reading.note("counts-differ", communicator=match[1])
        return True
    if match := _LAUNCHED.search(text):
        reading.launched = int(match[2])
        return True
    if _NOT_LAUNCHED.search(text):
        reading.launched = 0
        return True
    if match := _MEMBER.search(text):
        number, own = int(match[1]), match[2]
        launched = int(own) if own else 0 if match[3] else reading.launched
        _count(reading, number, launched, match[4])
        return True
    if match := _MISSING.search(text):
        for number in re.findall(r"\d{1,7}", match[1]):
            _count(reading, int(number), None, None, missing=True)
        return True
    return False


def is_report(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("communicators"), (list, dict))


def read_report(document: dict[str, Any], reading: LogReading) -> None:
    """A RAS report as JSON (NCCL 2.28.7 and newer)."""
    listed = document["communicators"]
    if isinstance(listed, dict):
        listed = listed.get("communicators", [])
    for place, communicator in enumerate(_dicts(listed)):
        reading.communicator = f"#{place} ({communicator.get('hash', '?')})"
        totals = set()
        for one in _dicts(communicator.get("ranks")):
            counts = one.get("collective_counts")
            numbers = [n for n in counts.values() if type(n) is int] if type(counts) is dict else []
            totals.add(sum(numbers))
            if type(one.get("rank")) is int:
                _count(reading, one["rank"], sum(numbers) if numbers else None, one.get("host"))
        for one in _dicts(communicator.get("missing_ranks")):
            if type(one.get("rank")) is int:
                _count(reading, one["rank"], None, one.get("host"), missing=True)
        if len(totals) > 1:
            reading.note("counts-differ", communicator=reading.communicator)


def _count(
    reading: LogReading, number: int, launched: int | None, host: Any, missing: bool = False
) -> None:
    reading.group_ranks.add(number)
    name = reading.communicator or "?"
    host = host if isinstance(host, str) and host != "unknown" else None
    reading.counts.append(Counts(name, number, launched, host, missing))
    if missing:
        reading.note("process-unreachable", communicator=name, rank=number)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
