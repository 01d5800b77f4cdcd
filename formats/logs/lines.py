"""Lines of logs: PyTorch's watchdog and barriers, launchers, DeepSpeed, NCCL, fr_trace.

Which number is what:

    [rank9]: [PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] ... [Rank 0] Watchdog caught
         9  the global rank (from PyTorch 2.2 on, once the job is initialised)
         1  the place in the group that is named
         0  the place in some group: the first one whose watchdog spoke in this process

so a bare ``[Rank r]`` beside ``[rankG]:`` says nothing new, and alone (before 2.2) it is the global
rank unless the text itself contradicts that. Numbers of NCCL's communicators, launchers' local
ranks, devices, ports, pids and times are no ranks.

Sources: PyTorch, c10/util/Logging.cpp, torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp,
ProcessGroupGloo.cpp, ProcessGroupWrapper.cpp, TraceUtils.h, torch/distributed/distributed_c10d.py,
torch/distributed/elastic/multiprocessing/errors/__init__.py, torch/distributed/flight_recorder;
NVIDIA/nccl, src/debug.cc, src/ras/client_support.cc.

Every expression here is linear in its text: repeats are bounded, or what follows a repeat cannot
start inside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from groups.errors import quoted

from .nccl import NCCL_LINE, read_nccl, read_report_line
from .reading import LogReading, Printed
from .wrapping import unwrapped

MOST_WORK = 3_000_000
"""In units of about a third of a microsecond; what comes after is not read, and that is said."""

MOST_MENTIONS = 20_000
"""Ranks that one line can name."""

_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_HEAD = re.compile(r"\[rank(\d{1,7})[\]\[]")
_PRINTED_GROUP = re.compile(r"\[PG ([^\[\]]{1,300}?) ?Rank (\d{1,7})\]")
_GROUP_BODY = re.compile(
    r"(?:ID (\d{1,7}) ?)?(?:PG GUID )?([^\s()]{1,200})? ?(?:\(([^()]{1,200})\))?"
)
_BARE = re.compile(r"\[Rank (-?\d{1,7})\](:?)")
_WORK = re.compile(
    r"SeqNum=(\d{1,20})(?:, OpType=(\w{1,40}))?(?:, NumelIn=(\d{1,20}))?(?:, NumelOut=(\d{1,20}))?"
    r"(?:, Timeout\(ms\)=(\d{1,15}))?"
)
_STUCK_AT = re.compile(r"(?:Timeout at NCCL work|watchdog at work(?: sequence id)?): (\d{1,20})")
_ENQUEUED = re.compile(r"ast enqueued (?:NCCL )?work: (-?\d{1,20})")
_COMPLETED = re.compile(r"ast completed (?:NCCL )?work: (-?\d{1,20})")
_NUMBERS = ((" work", _STUCK_AT), ("nqueued", _ENQUEUED), ("ompleted", _COMPLETED))
"""What a line must have of each number, and how that is read."""

_WATCHDOG = ("atchdog", "NCCL operations", "data inconsistency", "ProcessGroup", "SeqNum=")
_UNSET = 2**63  # NumelIn=18446744073709551615 stands for "unset"

_ELASTIC = re.compile(r"\brank {0,12}: {0,4}(\d{1,7}) \(local_rank: (\d{1,7})\)")
_EXIT = re.compile(r"\bexitcode {0,12}: {0,4}(-?\d{1,5})")
_HOST = re.compile(r"\bhost {1,12}: {1,4}(\S{1,255})")
_AGENT = re.compile(r"failed \(exitcode: (-?\d{1,5})\) local_rank: (\d{1,7})")
_LOCAL = re.compile(
    r"\blocal_?rank {0,2}[:=]? {0,2}(\d{1,7})\b|\[default(\d{1,7})\]:", re.IGNORECASE
)
_MPI = re.compile(r"\[(?:[\w.@-]{0,80}@)?\d{1,7},(\d{1,7})\]<std(?:out|err|diag)>")
_SERVING = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?((?: (?:ATTN_)?[TDPEC]P\d{1,6}){1,6})\]"
    r"|\(Worker((?:_[TDPEC]P\d{1,6}){1,6}) "
)
_DUMP_FILE = re.compile(r"trace_rank_(\d{1,7})\b")

_REPORT = ("launched", " -- GPU ", "missing rank")
_LAUNCHER = (
    *("ocal_rank", "ocalrank", "ocal_Rank", "ocalRank", "LOCAL_RANK", "local rank", "exitcode"),
    *("host  ", "[default", "]<std", "(Worker", "trace_rank_", "across cluster]"),
)
"""What a line must have that a launcher wrote; plain texts are found far quicker than a pattern."""

_PRINTS = re.compile(r"\[(?:RANK|rank:|Rank:) ?(\d{1,7})\]")
_MISMATCH = re.compile(
    r"between collectives on ranks\. Rank (\d{1,7}) is running collective: "
    r"CollectiveFingerPrint\(SequenceNumber=(\d{1,20})(,?) ?OpType=(\w{1,40})"
)
_MISMATCH_OTHER = re.compile(
    r"but Rank (\d{1,7}) is running collective: "
    r"CollectiveFingerPrint\(SequenceNumber=(\d{1,20})(,?) ?OpType=(\w{1,40})"
)
_SHAPE = re.compile(r"TensorShape=\[([\d, ]{0,200})\]")
_SETTING_UP = re.compile(
    r"\[(\d{1,7})\] is setting up NCCL communicator and retrieving \w{1,20} from \[(\d{1,7})\]"
)
_BARRIER_FAILED = re.compile(r"\bRanks? ([\d, ]{1,60000}?) ?failed to pass monitoredBarrier")
_BARRIER_REACHED = re.compile(r"\bRank (\d{1,7}) successfully reached monitoredBarrier")
_STORE_BARRIER = re.compile(r"world_size=(\d{1,7}), worker_count=(\d{1,7})")
_LAGGING = re.compile(
    r"ranks \[([\d, ]{0,60000})\] are the lagging ranks"
    r"|\[([\d, ]{0,60000})\] finished collective #(\d{1,20}), but didn't join"
)
_SNAPSHOT = re.compile(
    r"\[([\d, ]{1,60000})\] (?:joined but didn't finish|started|finished) [cA-Z_]"
    r"|- \[(\d{1,7})\] Timeout at collective: (\w{1,40}), #(\d{1,20})"
)
_SET = re.compile(
    r"\b(missing|expected|global)[ _]ranks? ?[:=(] ?[\[{(]?([\d, ]{1,60000})", re.IGNORECASE
)
_GROUP_INFO = re.compile(r"group info: (\S{1,200})")
_SEQUENCE = re.compile(r"(?:sequence number: |^Collective )(\d{1,20})")
_COLLECTIVE = re.compile(r"collective: \w{2,8}:(\w{1,60})")


_MENTION = re.compile(r"(?:[Rr]ank|RANK) ?(?:[:=#] ?)?(\d{1,7})\b(?!\.\d)")
_MENTIONS = re.compile(r"(?:[Rr]anks|RANKS) ?[:=]? ?[\[{(]([\d, ]{1,60000})[\]})]")
_QUALIFIED = re.compile(
    r"(?:^|[\W_])(?:(local|node|machine|host|role|device|group_?|gpu|numa|intra.node|inter.node)"
    r"|(?:tp|pp|dp|cp|ep|etp|edp|mp|sp|comm|communicator|ulysses|parallel|stage|shard|sub_?group))"
    r"[ _.-]{0,2}$",
    re.IGNORECASE,
)


def read_lines(text: str, reading: LogReading) -> None:
    """Add what the lines of a text say to a reading."""
    text = _COLOUR.sub("", text) if "\x1b" in text else text
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    reading.begin_text()
    before, left = "", MOST_WORK
    for line in filter(None, unwrapped(text).split("\n")):
        if "[rank" in line:
            for rank, part in _parts(line, reading):
                left -= _read_part(part, rank, before, reading)
        else:
            left -= _read_part(line, None, before, reading)
        if left <= 0:
            reading.note("text-cut", before=quoted(line))
            break
        before = line


def _parts(line: str, reading: LogReading) -> Iterator[tuple[int | None, str]]:
    """What each process says of a line, with its global rank; lines of two can be glued."""
    heads = list(islice(_HEAD.finditer(line), MOST_MENTIONS))
    if not heads or heads[0].start():
        yield None, line[: heads[0].start()] if heads else line
    ends = [head.start() for head in heads[1:]] + [len(line)]
    for place, (head, end) in enumerate(zip(heads, ends)):
        rank = int(head[1])
        if place + 1 < len(heads) and end - head.end() <= 2:
            reading.local_ranks.add(rank)  # torchrun --role rank --tee: the local rank
            continue
        reading.ranks.add(rank)
        reading.ranks_by_head = True
        reading.block = None
        yield rank, line[head.end() : end]


def _read_part(text: str, rank: int | None, before: str, reading: LogReading) -> int:
    """What one process says in a line; how much work that was."""
    has_rank = "ank" in text or "ANK" in text
    if ("NCCL " in text or "] -> " in text) and NCCL_LINE.search(text):
        read_nccl(text, reading)
        return 3
    work = 1
    if has_rank or text[:1] == "#":
        if _has(text, _REPORT, "#") and read_report_line(text, reading):
            return 3
        if "[PG " in text or "[Rank " in text:
            text = _read_c10d(text, rank, reading)
            work = 10
    if "SeqNum=" in text or "nqueued" in text or "watchdog at work" in text:
        if work == 1:
            text = _read_c10d(text, rank, reading)
        work = 20
    if _has(text, _LAUNCHER) or text[:3] == "[20":
        text = _read_launcher(text, reading)
        work += 5
    if "Barrier" in text or "worker_count" in text or "lagging" in text or "etting up NCCL" in text:
        text = _read_barrier(text, rank, reading)
        work += 5
    if "ollective" in text or "] started" in text:
        text = _read_collectives(text, rank, reading)
        work += 5
    if has_rank or "group info" in text:
        text = _read_recorder_text(text, reading) if "anks" in text or "info" in text else text
        if "ank" in text or "ANK" in text:  # where none of the above has taken it
            return work + _read_mentions(text, before, reading)
    return work


def _has(text: str, parts: Sequence[str], start: str = "\0") -> bool:
    """Whether a text begins so, or has any of these parts."""
    for part in parts:
        if part in text:
            return True
    return text[:9].lstrip().startswith(start)


def _read_c10d(text: str, rank: int | None, reading: LogReading) -> str:
    """A watchdog's line; what is left of it."""
    printed = None
    if "[PG " in text:
        for match in _PRINTED_GROUP.finditer(text):
            body = match[1]
            if body not in reading.printed_as:
                if len(reading.printed_as) > MOST_MENTIONS:
                    reading.printed_as.clear()
                reading.printed_as[body] = reading.named(*_group(body))
            printed = reading.printed(reading.printed_as[body], int(match[2]), rank)
        text = _PRINTED_GROUP.sub(" ", text)
    work = _WORK.search(text) if "SeqNum=" in text else None
    if "[Rank " in text:
        _read_bare(text, rank, printed, work, reading)
        text = _BARE.sub(" ", text)
    numbers = [
        int(match[1]) if sign in text and (match := pattern.search(text)) else None
        for sign, pattern in _NUMBERS
    ]
    if work or any(number is not None for number in numbers):
        values = [
            int(value) if value else None for value in (work.group(1, 3, 4, 5) if work else ())
        ]
        seq, numel_in, numel_out, timeout = values or [None] * 4
        reading.stall(
            rank,
            printed,
            seq=numbers[0] if seq is None else seq,
            op=work[2] if work else None,
            numel_in=None if numel_in is None or numel_in > _UNSET else numel_in,
            numel_out=None if numel_out is None or numel_out > _UNSET else numel_out,
            timeout_ms=timeout,
            last_enqueued=numbers[1],
            last_completed=numbers[2],
            relayed="dump signal" in text,
        )
    return text


def _read_bare(
    text: str,
    rank: int | None,
    printed: Printed | None,
    work: re.Match[str] | None,
    reading: LogReading,
) -> None:
    by_watchdog = _has(text, _WATCHDOG)
    for match in _BARE.finditer(text):
        number = int(match[1])
        if number < 0 or (match[2] and "monitoredBarrier" in text):
            continue
        if not by_watchdog:  # such as DeepSpeed's log_dist
            if rank is None:
                reading.ranks.add(number)
        elif rank is not None or (printed and printed.group.is_world):
            if rank is not None and number != rank:
                reading.group_ranks.add(number)
        elif printed:
            reading.group_ranks.add(number)
        else:
            reading.bare(number, work.group(1, 2, 3) if work else None)


def _group(body: str) -> tuple[str | None, str | None, bool]:
    """Of a ``[PG ... Rank r]``: name, description, whether the name is the same on all ranks."""
    match = _GROUP_BODY.fullmatch(body.strip())
    if match and (match[2] or match[3]):
        return match[2], match[3], "GUID" in body
    words = [word for word in re.split(r"[\s().]+", body) if "_" in word]
    return None, (words[-1] if words else None), False


def _read_launcher(text: str, reading: LogReading) -> str:
    """A launcher's prefixes and its report of who failed."""
    for match in _ELASTIC.finditer(text):
        exit_code = _EXIT.search(text, match.end())
        reading.worker(int(match[1]), int(match[2]), exit_code and int(exit_code[1]))
    if agent := _AGENT.search(text):
        reading.worker(None, int(agent[2]), int(agent[1]))
    elif (code := _EXIT.search(text)) and not _ELASTIC.search(text):
        reading.exit_code(int(code[1]))
    if host := _HOST.search(text):
        reading.host = host[1]
        reading.block = None
    for match in _LOCAL.finditer(text):
        reading.local_ranks.add(int(match[1] or match[2]))
    for match in _MPI.finditer(text):
        reading.ranks.add(int(match[1]))
    for match in _DUMP_FILE.finditer(text):
        reading.ranks.add(int(match[1]))
    for match in _SERVING.finditer(text):
        reading.group_ranks.update(map(int, re.findall(r"P(\d{1,6})", match[1] or match[2])))
    if " across cluster]" in text and "[repeated " in text:
        reading.note("lines-hidden")
    return _LOCAL.sub(" ", text)


def _read_barrier(text: str, rank: int | None, reading: LogReading) -> str:
    """Monitored barriers, store barriers and PyTorch's own report of a desync."""
    if "monitoredBarrier" in text:
        observer = _BARE.search(text)
        elsewhere = observer is not None and rank not in (None, int(observer[1]))
        into = reading.group_ranks if elsewhere else reading.ranks
        if observer:
            into.add(int(observer[1]))
        if failed := _BARRIER_FAILED.search(text):
            numbers = _numbers(failed[1])
            into.update(numbers)
            if elsewhere:
                reading.note("missing-in-group", ranks=tuple(numbers))
            else:
                reading.absent(numbers, "monitored_barrier")
        if reached := _BARRIER_REACHED.search(text):
            into.add(int(reached[1]))
            reading.note("barrier-reached", rank=int(reached[1]))
        reading.stall(rank, None, op="monitored_barrier", relayed=False)
        if elsewhere:
            return ""
        text = _BARRIER_FAILED.sub(" ", text)
    if (match := _STORE_BARRIER.search(text)) and int(match[2]) < int(match[1]):
        reading.note("barrier-short", world=int(match[1]), arrived=int(match[2]))
        reading.stall(rank, None, op="store_based_barrier", relayed=False)
    if match := _SETTING_UP.search(text):
        reading.group_ranks.update({int(match[1]), int(match[2])} - {rank})
    return text


def _read_collectives(text: str, rank: int | None, reading: LogReading) -> str:
    """PyTorch's own reports: of a desync, of a mismatch, and of the recorder's analyzer."""
    if "CollectiveFingerPrint" in text:
        return _read_mismatch(text, rank, reading)
    if "lagging ranks" in text or "#" in text or "] started" in text:
        for match in _LAGGING.finditer(text):
            numbers = _numbers(match[1] or match[2] or "")
            reading.in_current_group(numbers, absent=True)
        for match in _SNAPSHOT.finditer(text):
            reading.in_current_group(_numbers(match[1] or match[2]), absent=False)
        text = _SNAPSHOT.sub(" ", _LAGGING.sub(" ", text))
    if number := _SEQUENCE.search(text):
        reading.recorder_seq = int(number[1])
    if op := _COLLECTIVE.search(text):
        reading.recorder_op(op[1])
    return text


def _read_mismatch(text: str, rank: int | None, reading: LogReading) -> str:
    """The report of TORCH_DISTRIBUTED_DEBUG=DETAIL: ranks in the group that was wrapped."""
    first, second = _MISMATCH.search(text), _MISMATCH_OTHER.search(text)
    if not first:
        return text
    prints = _PRINTS.search(text, 0, first.start())
    printer = rank if rank is not None else int(prints[1]) if prints else reading.block
    into = reading.ranks if printer == int(first[1]) else reading.group_ranks
    if prints and rank is None:
        reading.ranks.add(int(prints[1]))
    sides = [one for one in (first, second) if one]
    into.update(int(one[1]) for one in sides)
    shapes = _SHAPE.findall(text)
    for one in sides:  # without a comma the number and the operation are not to be trusted
        seq, op = (int(one[2]), one[4]) if one[3] else (None, None)
        reading.stall(None, None, seq=seq, op=op, relayed=False)
    reading.note(
        "fingerprints-differ",
        ranks=tuple(int(one[1]) for one in sides),
        ops=tuple(one[4] if one[3] else None for one in sides),
        shapes=tuple(shapes),
    )
    return ""


def _read_recorder_text(text: str, reading: LogReading) -> str:
    """What torch.distributed's own analyzer prints: its ranks are global."""
    for match in _SET.finditer(text):
        numbers = _numbers(match[2])
        reading.ranks.update(numbers)
        if match[1].lower() == "missing":
            reading.absent(numbers, reading.collective)
    if info := _GROUP_INFO.search(text):
        name, _, description = info[1].partition(":")
        reading.recorder_group(info[1], name, description or None)
    return _SET.sub(" ", text)


def _read_mentions(text: str, before: str, reading: LogReading) -> int:
    """Everything else that is called a rank, unless a word before it says of what."""
    count = 0
    is_source = 'File "' in before and ", line " in before
    for match in islice(_MENTION.finditer(text), MOST_MENTIONS):
        count += 1
        lead = text[max(0, match.start() - 24) : match.start()]
        if lead[-1:].isalnum():
            continue
        qualified = _QUALIFIED.search(lead)
        number = int(match[1])
        if is_source and "=" in match[0]:
            continue
        if lead.endswith("_") and lead.lower().rstrip("_").endswith(("global", "world")):
            reading.ranks.add(number)
        elif qualified and qualified[1]:
            continue
        elif qualified:
            reading.group_ranks.add(number)
        elif not lead.endswith("_"):
            reading.ranks.add(number)
    for match in islice(_MENTIONS.finditer(text), MOST_MENTIONS) if "anks" in text else ():
        lead = text[max(0, match.start() - 24) : match.start()]
        if not lead[-1:].isalnum() and not _QUALIFIED.search(lead):
            reading.ranks.update(_numbers(match[1]))
    return 2 + 3 * count


def _numbers(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d{1,7}", text)]
