"""The trace of one rank: its groups, collectives, steps, and when its GPU computed.

A kernel counts as communication or as computation by its name, as in Holistic Trace Analysis
(facebookresearch/HolisticTraceAnalysis f4d0062, hta/common/types.py and hta/utils/utils.py): NCCL's
and RCCL's kernels communicate, every other one computes but those that copy, set memory or wait.
Names of the fields: pytorch/pytorch torch/csrc/distributed/c10d/ParamCommsUtils.hpp and
pytorch/kineto libkineto/src/output_json.cpp, of which facts differ by version:

- kernels carry their group since 2024-04, before that only ``record_param_comms`` of the CPU does,
  and both have one ``External id``; a group was a number, ``Process Group ID``, until 2024-02
- Gloo's operations (``gloo:all_reduce``) carry no group in any version
"""

from __future__ import annotations

import re
from typing import BinaryIO

from diagnosis.slow.spans import Spans
from diagnosis.slow.trace import Collective, RankTrace, TraceGroup, TraceStep
from groups.errors import LayoutError, quoted
from groups.group_names import kind_of
from groups.running import Running, read_process_groups

from ..errors import refusal
from ..values import Document
from .bounds import TraceBounds
from .stream import TraceStream

_COMMUNICATES = re.compile(r"nccl|rccl|.{0,200}?nccl(?:Dev)?Kernel", re.DOTALL)
_WAITS_OR_COPIES = re.compile(r"Memcpy|Memset|dma|^.{0,200}Sync", re.DOTALL)
_KERNEL_OF = re.compile(r"[nr]ccl(?:Dev)?Kernel_?(?:Generic_?)?([A-Za-z]{1,40})")
_PARTS = ("enumerate(DataLoader)#", "Optimizer.step#")
"""How annotations of torch begin: of fetching samples, torch/utils/data/dataloader.py, and of
updating weights, torch/optim/optimizer.py."""
_STEP = re.compile(r"ProfilerStep#(\d{1,12})$")

WIDTHS = {
    **dict.fromkeys(("Double", "Long", "ComplexFloat", "UInt64"), 8),
    **dict.fromkeys(("Float", "Int", "ComplexHalf", "UInt32"), 4),
    **dict.fromkeys(("Half", "BFloat16", "Short", "UInt16"), 2),
    **dict.fromkeys(("Byte", "Char", "Bool"), 1),
    **dict.fromkeys(("Float8_e4m3fn", "Float8_e5m2", "Float8_e4m3fnuz", "Float8_e5m2fnuz"), 1),
}
"""Bytes of an element, by the names of c10/core/ScalarType.h."""

LONGEST_NAME = 80
LATEST, LONGEST = 1e18, 1e11
"""Microseconds since 1970, and of one event: a day."""
MOST_MEMBERS = 1_000_000  # of a group that is told by its first rank and a stride


def communicates(kernel: str) -> bool:
    """Whether a kernel is one of NCCL's or RCCL's."""
    return _COMMUNICATES.match(kernel) is not None


def computes(kernel: str) -> bool:
    """Whether a kernel computes instead of communicating."""
    return _WAITS_OR_COPIES.search(kernel) is None


def kernel_kind(kernel: str) -> str:
    """The collective of a kernel, by its name."""
    found = _KERNEL_OF.search(kernel)
    return found[1].lower() if found else "unknown"


def read_trace(file: BinaryIO, name: str, bounds: TraceBounds | None = None) -> RankTrace:
    """A trace, from a file that is open for reading bytes, compressed by gzip or not.

    >>> import io
    >>> event = '{"ph": "X", "cat": "kernel", "name": "gemm", "ts": 5, "dur": 2.5, "args": {}}'
    >>> read_trace(io.BytesIO(f'{{"traceEvents": [{event}]}}'.encode()), "a").computation.tolist()
    [[5.0, 7.5]]

    Errors: LayoutError as `TraceStream`, and ``trace-holds-too-much``.
    """
    reading = _Reading(TraceStream(file, name, bounds))
    for events in reading.stream:
        for event in events:
            if event.get("ph") == "X":
                reading.take(event)
    return reading.trace()


class _Reading:
    """What has been read of a trace so far."""

    def __init__(self, stream: TraceStream) -> None:
        self.stream = stream
        self.computation, self.data, self.optimizer = Spans(), Spans(), Spans()
        self.kernels = 0
        self.steps: list[TraceStep] = []
        self.collectives: list[tuple[Collective, int | None]] = []  # and their External id
        self.gloo: list[Collective] = []
        self.launched: dict[int, Collective] = {}  # what the CPU says of a call, by External id
        self.groups: dict[str, TraceGroup] = {}
        self.members = 0
        self.unreadable = 0

    def take(self, event: Document) -> None:
        category = event.get("cat")
        if category == "kernel":
            self._kernel(event)
        elif category == "cpu_op":
            if event.get("name") == "record_param_comms":
                arguments = _arguments(event)
                key = arguments.get("External id")
                if "Collective name" in arguments and type(key) is int:
                    call = Collective(None, "unknown", 0.0, 0.0)  # the GPU says when
                    self.launched[key] = self._described(call, arguments)
                    self._require("collectives", len(self.launched))
        elif category == "user_annotation":
            self._annotation(event)

    def _kernel(self, event: Document) -> None:
        times = _times(event)
        name = event.get("name")
        if times is None or type(name) is not str:
            self.unreadable += 1
            return
        self.kernels += 1
        arguments = _arguments(event)
        if "Collective name" in arguments or communicates(name):
            call = Collective(None, kernel_kind(name), *times)
            key = arguments.get("External id")
            if "Collective name" in arguments:
                call = self._described(call, arguments)
            self.collectives.append((call, key if type(key) is int else None))
            self._require("collectives", len(self.collectives))
        elif computes(name):
            self.computation.add(*times)
            self._require("busy", len(self.computation))

    def _annotation(self, event: Document) -> None:
        name = event.get("name")
        if type(name) is not str:
            return
        step = _STEP.match(name)
        spans = next((self._spans(of) for of in _PARTS if name.startswith(of)), None)
        if step is None and spans is None and not name.startswith("gloo:"):
            return
        times = _times(event)
        if times is None:
            self.unreadable += 1
        elif spans is not None:
            spans.add(*times)
            self._require("busy", len(spans))
        elif step is not None:
            self.steps.append(TraceStep(int(step[1]), *times))
            self._require("steps", len(self.steps))
        else:
            call = Collective(None, name[5:LONGEST_NAME], *times)
            arguments = _arguments(event)
            if "Process Group Name" in arguments:
                call = self._described(call, arguments)
            self.gloo.append(call)
            self._require("collectives", len(self.gloo))

    def _spans(self, part: str) -> Spans:
        return self.data if part == _PARTS[0] else self.optimizer

    def _described(self, call: Collective, arguments: Document) -> Collective:
        """The call with what its arguments say of it."""
        dtype, kind = arguments.get("dtype"), arguments.get("Collective name")
        sizes = [_count(arguments.get(f"{way} msg nelems")) for way in ("In", "Out")]
        width = WIDTHS.get(dtype) if type(dtype) is str else None
        known = [size for size in sizes if size is not None]
        return call._replace(
            group=self._group(arguments),
            kind=kind[:LONGEST_NAME] if type(kind) is str and kind else call.kind,
            sequence=_count(arguments.get("Seq")),
            bytes=max(known) * width if known and width else None,
            dtype=dtype[:LONGEST_NAME] if type(dtype) is str else None,
            peer=_count(arguments.get("Src Rank" if kind == "recv" else "Dst Rank")),
            size=_count(arguments.get("Group size")),
        )

    def _group(self, arguments: Document) -> str | None:
        """The name of the group of a call, which is remembered."""
        name = arguments.get("Process Group Name", arguments.get("Process Group ID"))
        if type(name) not in (int, str) or name == "":
            return None
        text = str(name)[:LONGEST_NAME]
        if text not in self.groups:
            described = arguments.get("Process Group Description")
            about = described[:LONGEST_NAME] if type(described) is str else ""
            ranks = _members(arguments)
            self.members += len(ranks or ()) + 1
            self._require("members", self.members)
            self.groups[text] = TraceGroup(text, about, kind_of(about, text), ranks)
        return text

    def _require(self, what: str, count: int) -> None:
        limit = getattr(self.stream.bounds, what)
        if count > limit:
            file = quoted(self.stream.name)
            raise refusal("trace-holds-too-much", "trace", file=file, what=what, limit=limit)

    def trace(self) -> RankTrace:
        """What was read."""
        about = self.stream.about.get("distributedInfo")
        info: Document = about if isinstance(about, dict) else {}
        calls = [
            self.launched[key]._replace(start=call.start, duration=call.duration)
            if call.group is None and key in self.launched
            else call
            for call, key in self.collectives
        ]
        running, configured = self._configured(info)
        self.groups |= configured
        calls += self._in_the_only_group(configured)
        notes = {
            "no-groups": running is None,
            "no-kernels": not self.kernels,
            "groups-unknown": any(call.group is None for call in calls),
            "events-unreadable": self.unreadable > 0,
        }
        backend, host = info.get("backend"), self.stream.about.get("host_name")
        world = _count(info.get("world_size"))
        return RankTrace(
            file=self.stream.name,
            rank=_count(info.get("rank")),
            world=world if world is not None or running is None else running.world,
            backend=backend[:LONGEST_NAME] if type(backend) is str else "",
            running=running,
            groups=self.groups,
            steps=tuple(sorted(self.steps)),
            collectives=tuple(sorted(calls, key=lambda call: call.start)),
            computation=self.computation.union(),
            kernels=self.kernels,
            events=self.stream.count,
            notes=tuple(note for note, holds in notes.items() if holds),
            host=host[:LONGEST_NAME] if type(host) is str else "",
            data=self.data.union(),
            optimizer=self.optimizer.union(),
        )

    def _in_the_only_group(self, configured: dict[str, TraceGroup]) -> list[Collective]:
        """Gloo's calls: in the one group that there is, else in one that is not known."""
        name = next(iter(configured)) if len(configured) == 1 else None
        return [
            call if call.group in self.groups else call._replace(group=name) for call in self.gloo
        ]

    def _configured(self, info: Document) -> tuple[Running | None, dict[str, TraceGroup]]:
        """The groups that the trace lists, of all ranks too."""
        groups: dict[str, TraceGroup] = {}
        try:
            running = read_process_groups(info)
        except LayoutError:
            return None, groups
        for one in info["pg_config"]:  # whose entries have just been read
            self.members += len(one["ranks"]) + 1
            self._require("members", self.members)
            name, about = (str(one.get(key, ""))[:LONGEST_NAME] for key in ("pg_name", "pg_desc"))
            ranks = tuple(one["ranks"]) or tuple(range(min(running.world, MOST_MEMBERS)))
            groups[name] = TraceGroup(name, about, kind_of(about, name), ranks)
        return running, groups


def _arguments(event: Document) -> Document:
    arguments = event.get("args")
    return arguments if isinstance(arguments, dict) else {}


def _times(event: Document) -> tuple[float, float] | None:
    """Start and duration in microseconds; None for invalid times."""
    start, duration = event.get("ts"), event.get("dur", 0)
    if type(start) not in (int, float) or type(duration) not in (int, float):
        return None
    if not (abs(start) <= LATEST and 0 <= duration <= LONGEST):  # type: ignore[arg-type]
        return None
    return float(start), float(duration)  # type: ignore[arg-type]


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value < 2**63 else None


def _members(arguments: Document) -> tuple[int, ...] | None:
    """Ranks of a group: those of its list, which a long one ends in dots, or by steps."""
    listed, size = arguments.get("Process Group Ranks"), _count(arguments.get("Group size"))
    if type(listed) is str and re.fullmatch(r"\[\d{1,9}(, ?\d{1,9})*\]", listed):
        ranks = tuple(map(int, listed[1:-1].split(",")))
        if size in (None, len(ranks)):
            return ranks
    start, stride = (_count(arguments.get(f"Global rank {what}")) for what in ("start", "stride"))
    if start is None or not stride or not size or size > MOST_MEMBERS:
        return None
    return tuple(range(start, start + size * stride, stride))
