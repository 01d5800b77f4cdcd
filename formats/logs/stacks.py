"""Stacks of all ranks: the collective that each is in, and its line of the program.

Of py-spy (``py-spy dump``), faulthandler and torch.distributed.debug, whose ``stacks_*.txt`` has
faulthandler's dump of each rank under a heading, ``=== Rank 2: http://... ===`` (torch 2.13.0,
torch/distributed/debug/_debug_handlers.py). Innermost frames come first in all of them. Whose a
stack is, the heading says, a head ``[rank2]:`` or the file's name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from diagnosis.hang.model import Standing

MOST_RANKS = 65_536
MOST_FRAMES = 256
"""The most frames kept of a thread, the innermost."""
LONGEST = 200

_HEADING = re.compile(r"(?:===|---) Rank (\d{1,7}): .{0,300}(?:===|---)\s*$")
_PREFIX = re.compile(r"\[(?:rank|default)?(\d{1,7})\]:\s?")
_THREAD = re.compile(
    r"(?:Current thread|Thread) (?:0x[0-9a-f]{1,20}|\d{1,20}) (?:\[[^\]]{1,80}\] )?"
    r'\((?:most recent call first|[a-z+]{1,20})\)(?::\s*"([^"]{0,100})"|:)?'
)
_PY_SPY = re.compile(r"\s{2,8}(\S{1,200}) \((.{1,300}?):(\d{1,7})\)\s*$")
_FAULTHANDLER = re.compile(r'\s{2,8}File "(.{1,300}?)", line (\d{1,7}) in (\S{1,200})\s*$')
_PROCESS = re.compile(r"(?:^|\]: )Process (\d{1,10}): ", re.MULTILINE)
_RANK_OF_FILE = re.compile(
    r"(?:^|/|(?:rank|stacks?|trace|py-?spy|gpu|worker|dump)[_.-]?)(\d{1,7})(?:\.[a-z]{1,10}){0,2}$",
    re.IGNORECASE,
)
"""A rank at the end of a file's name, where it stands alone or a word says what it is: the number
of a job or a host is none."""
_TITLE = re.compile(
    r"(?:^|\]: )Process \d{1,10}\b.{0,80}?(?:VLLM::\w{0,20}?Worker|sglang::scheduler)"
    r"((?:_[A-Z]{2}\d{1,6}){1,6})"
)
"""The title of a server's process, which says its place: vllm set_process_title
(vllm/utils/system_utils.py), sglang setproctitle (srt/managers/scheduler.py)."""
_PLACE = re.compile(r"([A-Z]{2})(\d{1,6})")

_COMMUNICATES = (
    *("torch/distributed/distributed_c10d.py", "torch/distributed/_functional_collectives.py"),
    *("torch/distributed/_symmetric_memory/__init__.py", "torch/distributed/nn/functional.py"),
)
_WAITS = ("torch/cuda/__init__.py", "torch/cuda/streams.py")
_CALL = re.compile(
    r"_?(?:all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast|reduce|gather|scatter|barrier"
    r"|monitored_barrier|i?send|i?recv|batch_isend_irecv|wait_tensor|wait)\w{0,40}$"
)


class StackFrame(NamedTuple):
    function: str
    file: str
    line: int


class StackThread(NamedTuple):
    name: str
    frames: list[StackFrame]


def has_stacks(text: str) -> bool:
    """Whether a text has the stack of a process.

    >>> has_stacks('Current thread 0x00007f1 (most recent call first):')
    True
    """
    return "(most recent call first)" in text or _PROCESS.search(text) is not None


def read_stacks(text: str, name: str = "") -> dict[int, list[StackThread]]:
    """The threads of each rank; those of unknown ranks are left out.

    >>> text = '''=== Rank 3: http://a:1 ===
    ... Thread 0x00007f1 (most recent call first):
    ...   File "/w/data.py", line 12 in load
    ...   File "train.py", line 5 in <module>'''
    >>> read_stacks(text)[3][0].frames[0]
    StackFrame(function='load', file='/w/data.py', line=12)
    """
    found: dict[int, list[StackThread]] = {}
    of_file, process = _RANK_OF_FILE.search(name), _PROCESS.search(text)
    default = int(of_file[1]) if of_file else None
    if process and default == int(process[1]):
        default = None  # py-spy's file is called by the process
    under, threads = default, dict[int | None, StackThread]()
    titles = _ranks_of_titles(text)
    for line in text.split("\n"):
        if title := (_TITLE.search(line) if titles else None):
            under, threads = titles[title[1]], {}
            continue
        if heading := _HEADING.search(line):
            under, threads = int(heading[1]), {}
            continue
        head = _PREFIX.match(line)
        rank = int(head[1]) if head else under
        rest = line[head.end() :] if head else line
        if thread := _THREAD.match(rest):
            threads[rank] = StackThread(thread[1] or "", [])
            if rank is not None and (rank in found or len(found) < MOST_RANKS):
                found.setdefault(rank, []).append(threads[rank])
        elif rank in threads and len(threads[rank].frames) < MOST_FRAMES:
            threads[rank].frames.extend(_frames(rest))
    return found


def _ranks_of_titles(text: str) -> dict[str, int]:
    """The rank of each title of a server's processes: TP fastest, then PP, then DP of servers
    beside each other; EP is inside of TP, and so is DP of attention, which TP alone tells apart.

    >>> title = "Process {}: VLLM::Worker_PP{}_TP{}"
    >>> text = "\\n".join(title.format(at, at // 2, at % 2) for at in range(4))
    >>> [*_ranks_of_titles(text).values()]
    [0, 1, 2, 3]
    """
    places = {
        match[1]: {name: int(at) for name, at in _PLACE.findall(match[1])}
        for line in text.split("\n")
        if (match := _TITLE.search(line))
    }
    sizes = {
        name: 1 + max((own.get(name, 0) for own in places.values()), default=0)
        for name in ("TP", "PP")
    }
    inside = {
        title: own.get("TP", 0) + sizes["TP"] * own.get("PP", 0) for title, own in places.items()
    }
    if len({*inside.values()}) == len(inside):
        return inside
    server = sizes["TP"] * sizes["PP"]
    return {title: rank + server * places[title].get("DP", 0) for title, rank in inside.items()}


def _frames(line: str) -> Iterator[StackFrame]:
    """The frame of a line, if it has one."""
    if match := _FAULTHANDLER.match(line):
        yield StackFrame(match[3], match[1], int(match[2]))
    elif match := _PY_SPY.match(line):
        yield StackFrame(match[1], match[2], int(match[3]))


def standings(ranks: dict[int, list[StackThread]]) -> tuple[Standing, ...]:
    """The position of each rank: its collective, and its line of the program."""
    return tuple(
        standing
        for rank, threads in sorted(ranks.items())
        if (standing := _standing(rank, threads)) is not None
    )


def _standing(rank: int, threads: Sequence[StackThread]) -> Standing | None:
    main = _main(threads)
    if main is None:
        return None
    ordered = [main, *(thread for thread in threads if thread is not main)]
    op = next(filter(None, (_op(thread.frames) for thread in ordered)), "")
    own = next(filter(_is_own, main.frames), main.frames[0])
    return Standing(rank, op, own.function[:LONGEST], own.file[-LONGEST:], own.line)


def _main(threads: Iterable[StackThread]) -> StackThread | None:
    """The main thread: by its name, else the last that faulthandler writes."""
    known = [thread for thread in threads if thread.frames]
    named = (thread for thread in known if thread.name == "MainThread")
    module = (thread for thread in known if thread.frames[-1].function == "<module>")
    return next(named, None) or next(module, None) or (known[-1] if known else None)


def _op(frames: Sequence[StackFrame]) -> str:
    """The collective that a thread is in; names of its helpers are ignored."""
    ops = [
        frame.function
        for frame in _library(frames)
        if _ends(frame.file, _COMMUNICATES) and _CALL.match(frame.function)
    ]
    if ops:
        return ops[-1].strip("_")[:LONGEST]
    waits = any(
        _ends(frame.file, _WAITS) and frame.function in ("synchronize", "wait")
        for frame in _library(frames)
    )
    return "synchronize" if waits else ""


def _library(frames: Sequence[StackFrame]) -> Iterator[StackFrame]:
    """The innermost frames, up to the first of the program itself."""
    for frame in frames:
        if _is_own(frame):
            return
        yield frame


def _is_own(frame: StackFrame) -> bool:
    file = frame.file.replace("\\", "/")
    parts = ("torch/", "lib/python3", "site-packages/", "dist-packages/", "threading.py")
    return not file.startswith("<") and not any(part in file for part in parts)


def _ends(file: str, names: tuple[str, ...]) -> bool:
    return file.replace("\\", "/").endswith(names)
