"""NCCL's own lines, and the reports of its RAS as text and JSON.

Every rank that NCCL prints is the place in a communicator; a number in brackets before the message
is a CUDA device. Of ranks whose counts differ a report lists the smaller set, which can be the
ranks that are ahead: only the counts tell.

Sources: NVIDIA/nccl, src/debug.cc, src/init.cc, src/ras/client_support.cc; NCCL user guide, RAS.
"""

from __future__ import annotations

import re
from typing import TypeGuard

from .bounds import Allowance
from .reading import LogReading
from .recorder import dicts_in, rank_or_none, text_of
from .shapes import Part

NCCL_LINE = re.compile(r"NCCL (?:INFO|WARN|TRACE|VERSION|ABORT)|\d\[[0-9a-f]{1,16}\] -> \d{1,7}\[")

_LAUNCHER = re.compile(r"^\s{0,4}\[(\d{1,7})\] \S{1,255}:\d{1,10}:\d{1,10} \[\d{1,4}\] NCCL")
_CHANNEL = re.compile(r"\b(\d{1,7})\[[0-9a-f]{1,16}\] -> (\d{1,7})\[[0-9a-f]{1,16}\]")
_RANK = re.compile(r"\b[Rr]ank (\d{1,7})\b|\[Proxy Service (\d{1,7})\]")
_LOCAL = re.compile(r"\blocal_?[Rr]ank \d{1,7}\b")
_RING = re.compile(r"\bRing \d{1,3} : (\d{1,7}) -> (\d{1,7}) -> (\d{1,7})")

_COMMUNICATOR = re.compile(r"^\s{0,8}(#\d{1,7}-\d{1,7} \([0-9a-f]{1,32}\)) ([A-Z]{2,20})")
_MEMBER = re.compile(
    r"^\s{0,8}Rank (\d{1,7})(?: has launched up to operation \d{1,20}| has not launched any "
    r"operations)? -- GPU \S{1,40}(?: \(NVML \d{1,4}\))? managed by process \d{1,12} on node "
    r"\S{1,255}"
)
_LAUNCHED = re.compile(
    r"^\s{0,8}(\d{1,7}) ranks? ha(?:ve|s) (?:launched up to operation (\d{1,20})|not launched)"
)
_JOB = re.compile(
    r"^\s{0,20}\d{1,7}\s{1,20}\d{1,7}\s{1,20}\d{1,7}\s{1,20}\d{1,7}\s{1,20}(\d{1,7})\s{0,20}$"
)
"""The line of the job's summary: nodes, processes, GPUs of a process, and both in all."""
_MISSING = re.compile(r"^\s{0,8}The missing ranks?: ([\d, ]{1,60000})")


def find_nccl(part: Part) -> None:
    """One line of NCCL: places in a communicator, and a launcher's rank before it."""
    part.work += 15
    if part.text.lstrip(" ")[:1] == "[":
        part.add_first(_LAUNCHER, LogReading.add_ranks)
    if "ank" in part.text or "Proxy Service" in part.text:
        part.take(_LOCAL)
        part.add_each(LogReading.add_places, part.matched(_RANK))
    if " -> " in part.text:
        for pattern in (_CHANNEL, _RING):
            for match in pattern.finditer(part.text):
                part.add(LogReading.add_places, *part.spans(match))


_REPORT_LINES = (
    (_COMMUNICATOR, LogReading.begin_report),
    (_LAUNCHED, LogReading.add_launched),
    (_JOB, LogReading.set_job_size),
    (_MEMBER, LogReading.add_member),
    (_MISSING, LogReading.add_unreachable),
)


def find_report_line(part: Part) -> bool:
    """One line of a RAS report; False for any other line."""
    part.work += 10
    return any(part.add_first(pattern, step) for pattern, step in _REPORT_LINES)


def is_report(document: object) -> TypeGuard[dict[str, object]]:
    return isinstance(document, dict) and isinstance(document.get("communicators"), (list, dict))


def read_report(document: dict[str, object], reading: LogReading, allowance: Allowance) -> None:
    """A RAS report as JSON (NCCL 2.28.7 and newer). Errors: ``too-many-ranks-sent``."""
    listed = document["communicators"]
    if isinstance(listed, dict):
        listed = listed.get("communicators", [])
    for place, communicator in enumerate(dicts_in(listed)):
        reading.communicator = f"#{place} ({text_of(communicator.get('hash', '?'))})"
        totals = set()
        members, missing = map(dicts_in, map(communicator.get, ("ranks", "missing_ranks")))
        allowance.take("ranks", len(members) + len(missing))
        for member in members:
            counts = member.get("collective_counts")
            numbers = counts.values() if type(counts) is dict else ()
            allowance.take("ranks", len(numbers))
            totals.add(sum(number for number in numbers if type(number) is int))
            if (rank := rank_or_none(member.get("rank"))) is not None:
                reading.group_ranks.add(rank)
        for member in missing:
            if (rank := rank_or_none(member.get("rank"))) is not None:
                reading.add_unreached(rank)
        if len(totals) > 1:
            reading.note("counts-differ", communicator=reading.communicator)
