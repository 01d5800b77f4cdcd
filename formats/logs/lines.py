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

from groups.budget import spend
from groups.errors import quoted

from .nccl import NCCL_LINE, find_nccl, find_report_line
from .reading import LogReading
from .shapes import NOTHING, LineShape, Part

MOST_WORK = 3_000_000
"""The limit of work, in units of about a third of a microsecond; the rest is not read, and a note
says so."""

MOST_TEXTS = 4
"""The most texts that may use as much together."""

LONG = 2_000
"""The length of a line from which on two characters are a unit."""

MOST_MENTIONS = 20_000
"""The most ranks of one line."""

_HEAD = re.compile(r"\[rank(\d{1,7})[\]\[]")
_PRINTED_GROUP = re.compile(r"\[PG ([^\[\]]{1,300}?) ?Rank (\d{1,7})\]")
_BARE = re.compile(r"\[Rank (-?\d{1,7})\](:?)")
_WORK = re.compile(
    r"SeqNum=(\d{1,20})(?:, OpType=(\w{1,40}))?(?:, NumelIn=(\d{1,20}))?(?:, NumelOut=(\d{1,20}))?"
)
_STUCK_AT = re.compile(r"(?:Timeout at NCCL work|watchdog at work(?: sequence id)?): (\d{1,20})")
_ENQUEUED = re.compile(r"ast enqueued (?:NCCL )?work: (-?\d{1,20})")
_COMPLETED = re.compile(r"ast completed (?:NCCL )?work: (-?\d{1,20})")
_NUMBERS = (_STUCK_AT, _ENQUEUED, _COMPLETED)
_CLOCK = re.compile(r"\[[EWIF](\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)")
_RAN = re.compile(r" ran for (\d{1,12}) milli")

_WATCHDOG = ("atchdog", "NCCL operations", "data inconsistency", "ProcessGroup", "SeqNum=")

_ELASTIC = re.compile(r"\brank {0,12}: {0,4}(\d{1,7}) \(local_rank: (\d{1,7})\)")
_HOST = re.compile(r"\bhost {1,12}: {1,4}(\S{1,255})")
_LOCAL = re.compile(r"\blocal_?rank {0,2}[:=]? {0,2}\d{1,7}\b|\[default\d{1,7}\]:", re.IGNORECASE)
_MPI = re.compile(r"\[(?:[\w.@-]{0,80}@)?\d{1,7},(\d{1,7})\]<std(?:out|err|diag)>:?")
_INSIDE_TAG = re.compile(r" {0,4}\[default\d|.{0,120}?\[(?:rank(\d{1,7})[\]\[]|Rank (\d{1,7})\])")
"""A process's own words after a tag of mpirun: that torchrun made it, its rank, or its place in a
group."""
MOST_TAGS = 20_000  # that are held against what stands behind them
_SERVING = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?((?: (?:ATTN_)?[TDPEC]P\d{1,6}){1,6})\]"
    r"|\(Worker((?:_[TDPEC]P\d{1,6}){1,6}) "
)
_LEFT_OUT = re.compile(
    r"\W{0,9}(?:\.{3,9}|\u2026|<?(?:snip|snipped|omitted|truncated|skipped)\b[^\n]{0,60})\W{0,9}$",
    re.IGNORECASE,
)
"""A line in the place of others."""
_DUMP_FILE = re.compile(r"trace_rank_(\d{1,7})\b")

_REPORT = ("launched", " -- GPU ", "missing rank")
_LAUNCHER = (
    *("ocal_rank", "ocalrank", "ocal_Rank", "ocalRank", "LOCAL_RANK", "local rank"),
    *("host  ", "[default", "(Worker", "trace_rank_", "across cluster]"),
)
"""Texts that a launcher's lines contain; searching them is much faster than a pattern."""

_IN_GROUP = re.compile(
    r"NCCL communicator was aborted on rank (\d{1,7})|\.cpp:\d{1,5}\] Rank (\d{1,7})\s{0,8}$"
)
_PRINTS = re.compile(r"\[(?:RANK|rank:|Rank:) ?(\d{1,7})\]")
_MISMATCH = re.compile(
    r"(?:between collectives on ranks\.|but) Rank (\d{1,7}) is running collective: "
    r"CollectiveFingerPrint\(SequenceNumber=(\d{1,20})(,?) ?OpType=(\w{1,40})"
)
_SHAPE = re.compile(r"TensorShape=\[([\d, ]{0,200})\]")
_SETTING_UP = re.compile(
    r"\[(\d{1,7})\] is setting up NCCL communicator and retr(?:ie|ei)ving \w{1,20} from "
    r"\[(\d{1,7})\]"
)
_BARRIER_FAILED = re.compile(r"\bRanks? ([\d, ]{1,60000}?) ?failed to pass monitoredBarrier")
_BARRIER_REACHED = re.compile(r"\bRank (\d{1,7}) successfully reached monitoredBarrier")
_STORE_BARRIER = re.compile(r"world_size=(\d{1,7}), worker_count=(\d{1,7})")
_LAGGING = re.compile(
    r"ranks \[([\d, ]{0,60000})\] are the lagging ranks"
    r"|\[([\d, ]{0,60000})\] finished collective #\d{1,20}, but didn't join"
)
_SNAPSHOT = re.compile(
    r"\[([\d, ]{1,60000})\] (?:joined but didn't finish|started|finished) [cA-Z_]"
    r"|- \[(\d{1,7})\] Timeout at collective: \w{1,40}, #\d{1,20}"
)
_SET = re.compile(
    r"\b(missing|expected|global)[ _]ranks? ?[:=(] ?[\[{(]?([\d, ]{1,60000})", re.IGNORECASE
)
_GROUP_INFO = re.compile(r"group info: (\S{1,200})")
_SEQUENCE = re.compile(r"(?:sequence number: |^Collective )(\d{1,20})")
_COLLECTIVE = re.compile(r"collective: \w{2,8}:(\w{1,60})")
_MENTION = re.compile(r"(?:[Rr]ank|RANK) ?(?:[:=#] ?)?(\d{1,7})\b(?!\.\d)")
_OF_GROUP = re.compile(r" (?:of|in|within) (?:the |its )?(?:[\w-]{1,40} ){0,4}group\b")
_MENTIONS = re.compile(r"(?:[Rr]anks|RANKS) ?[:=]? ?[\[{(]([\d, ]{1,60000})[\]})]")
_QUALIFIED = re.compile(
    r"(?:^|[\W_])(?:(local|node|machine|host|role|device|group_?|gpu|numa|intra.node|inter.node"
    r"|lora|low|adapter|matrix|svd)"
    r"|(?:tp|pp|dp|cp|ep|etp|edp|mp|sp|comm|communicator|ulysses|parallel|stage|shard|sub_?group"
    r"|tensor|pipeline|data|context|expert|model))"
    r"[ _.-]{0,2}$",
    re.IGNORECASE,
)

_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_PIECE = 1 << 20
_EMPTY = re.compile(r"\n{2,200}")
MOST_SHAPES = 20_000
"""The most shapes kept at a time."""


def read_lines(text: str, reading: LogReading) -> None:
    """Adds the lines of a text to a reading.

    Where its numbers stand is found once for each shape of a line, the line with every digit a
    zero: a log of millions of lines has few.
    """
    reading.begin_text()
    tags = _tags_are_ranks(text, reading)
    shapes: dict[tuple[str, bool] | str, LineShape] = {}
    after_source, left = False, min(MOST_WORK, MOST_TEXTS * MOST_WORK - reading.work_of_lines)
    budget = left
    for line, zeros in _lines(text):
        key = (zeros, True) if after_source else zeros
        shape = shapes.get(key)
        if shape is None:
            long = max(0, len(zeros) - LONG) // 2
            left -= long
            if left <= 0:
                reading.note("text-cut", before=quoted(line))
                break
            if len(shapes) == MOST_SHAPES:
                shapes.clear()
            shape = shapes[key] = shape_of(zeros, after_source, tags)
            left -= shape.work
            spend((long + shape.work) // 3, "characters")
        for step, arguments, spans in shape.steps:
            step(reading, *arguments, *map(line.__getitem__, spans))
        left -= shape.cost
        if left <= 0:
            reading.note("text-cut", before=quoted(line))
            break
        after_source = shape.is_source
    reading.end_report()
    reading.work_of_lines += budget - left


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """The non-empty lines, and the same with zeros for digits."""
    at = 0
    while at < len(text):
        end = text.find("\n", at + _PIECE)
        piece = _EMPTY.sub("\n", text[at:] if end < 0 else text[at:end])
        zeros = piece.encode("utf-8", "surrogatepass").translate(_ZEROS)
        same = zeros.decode("utf-8", "surrogatepass").split("\n")
        yield from ((line, zero) for line, zero in zip(piece.split("\n"), same) if line)
        at = len(text) if end < 0 else end + 1


def _tags_are_ranks(text: str, reading: LogReading) -> bool:
    """Whether the second number of mpirun's tags, ``[1,3]<stdout>:``, is a rank of the job.

    It is not if mpirun started one launcher for each node. Such a log contradicts its tags: a line
    names another rank than its tag, or a place in a group that this rank could not have.
    """
    for tag in islice(_MPI.finditer(text), MOST_TAGS) if "]<std" in text else ():
        inside = _INSIDE_TAG.match(text, tag.end())
        if inside and not _agrees(int(tag[1]), *inside.groups()):
            reading.note("tags-of-launchers", tag=tag[0].rstrip(":"))
            return False
    return True


def _agrees(tag: int, rank: str | None, place: str | None) -> bool:
    """Whether a tag can be the rank of a process that prints its rank, its place in a group, or
    that torchrun made it (neither)."""
    return tag == int(rank) if rank else place is not None and int(place) <= tag


def shape_of(zeros: str, after_source: bool, tags: bool = True) -> LineShape:
    """The steps for lines of a shape; after_source: below a line with a Python file; tags: mpirun's
    are ranks."""
    whole = Part(zeros)
    work = 10
    for part in _parts(whole, tags):
        _find(part, after_source)
        work += part.work
    cost = 1 + sum(2 + len(spans) for _, _, spans in whole.steps)
    is_source = 'File "' in zeros and ", line " in zeros
    steps = (
        (step, arguments, tuple(slice(*span) for span in spans))
        for step, arguments, spans in whole.steps
    )
    return LineShape(tuple(steps), work, cost, is_source)


def _parts(line: Part, tags: bool) -> Iterator[Part]:
    """Each process's part of a line; lines of two can be glued."""
    heads = list(islice(_HEAD.finditer(line.text), MOST_MENTIONS)) if "[rank" in line.text else []
    if "]<std" in line.text:
        heads += islice(_MPI.finditer(line.text), MOST_MENTIONS)
        heads.sort(key=re.Match.start)
    if not heads or heads[0].start():
        yield line.part(NOTHING, 0, heads[0].start() if heads else len(line.text))
    ends = [head.start() for head in heads[1:]] + [len(line.text)]
    for place, (head, end) in enumerate(zip(heads, ends)):
        rank = head.span(1)
        if head.re is _MPI:
            rank = rank if tags else NOTHING
            line.add_each(LogReading.add_tag, [rank] if tags else [])
        elif place + 1 < len(heads) and end - head.end() <= 2:
            continue  # torchrun --role rank --tee: a local rank
        else:
            line.add(LogReading.add_head, rank)
        yield line.part(rank, head.end(), end)


def _find(part: Part, after_source: bool) -> None:
    """Finds what one process prints in a line."""
    text = part.text
    has_rank = "ank" in text or "ANK" in text
    if ("NCCL " in text or "] -> " in text) and NCCL_LINE.search(text):
        return find_nccl(part)
    is_summary = not text.strip(" 0")  # numbers alone, as the report's summary of the job
    may_report = text[:9].lstrip()[:1] == "#" or _has(text, _REPORT) or is_summary
    if (has_rank or text[:1] == "#" or is_summary) and may_report and find_report_line(part):
        return
    whole = text
    if "aborted on rank" in text or "] Rank " in text[-20:]:
        _find_in_group(part)
    if _has(text, ("[PG ", "[Rank ", "SeqNum=", "nqueued", "watchdog at work")):
        _find_c10d(part)
    work = text.rpartition("timeout: W")[2] if "timeout: W" in text else ")"
    if _LEFT_OUT.match(text) or (")" not in work and work.startswith("orkNCCL("[: len(work)])):
        part.add(LogReading.leaves_out)
    if _has(text, _LAUNCHER) or text[:6] == "[0000-":
        _find_launcher(part)
    if "Barrier" in text or "worker_count" in text or "etting up NCCL" in text:
        _find_barrier(part, whole)
    if "ollective" in text or "] started" in text or "lagging" in text:
        _find_collectives(part)
    if "anks" in part.text or "group info" in text:
        _find_recorder_text(part)
    if "ank" in part.text or "ANK" in part.text:  # where none of the above has taken it
        _find_mentions(part, after_source)


def _has(text: str, parts: Sequence[str]) -> bool:
    return any(part in text for part in parts)


def _find_c10d(part: Part) -> None:
    """Finds a watchdog's line."""
    part.work += 30
    groups = list(_PRINTED_GROUP.finditer(part.text)) if "[PG " in part.text else []
    for match in groups:
        part.add(LogReading.add_printed, part.rank, *part.spans(match))
    if in_group := bool(groups):
        part.take(_PRINTED_GROUP)
    work = _WORK.search(part.text) if "SeqNum=" in part.text else None
    if "[Rank " in part.text:
        _find_bare(part, in_group, work)
        part.take(_BARE)
    matches = [pattern.search(part.text) for pattern in _NUMBERS]
    if work or any(matches):
        spans = [part.span(work, place) for place in range(1, 5)]
        spans += [part.span(match, 1) for match in matches]
        clock, ran = _CLOCK.search(part.text), _RAN.search(part.text)
        spans += [part.span(clock, place) for place in range(1, 6)] + [part.span(ran, 1)]
        part.add(
            LogReading.add_work, part.rank, *spans, arguments=(in_group, "dump signal" in part.text)
        )


def _find_in_group(part: Part) -> None:
    """Finds numbers that c10d prints without brackets and that are places in a group."""
    for place in part.matched(_IN_GROUP):
        if part.rank == NOTHING:
            part.add(LogReading.add_bare, place)
        else:
            part.add(LogReading.add_places_beside, part.rank, place)
    part.take(_IN_GROUP)


def _find_bare(part: Part, in_group: bool, work: re.Match[str] | None) -> None:
    """``[Rank r]``: in a watchdog's line the place in a group, else the rank of the job."""
    by_watchdog = _has(part.text, _WATCHDOG)
    for match in _BARE.finditer(part.text):
        number = part.span(match, 1)
        if match[1][0] == "-" or (match[2] and "monitoredBarrier" in part.text):
            continue
        if not by_watchdog:  # such as DeepSpeed's log_dist
            if part.rank == NOTHING:
                part.add(LogReading.add_ranks, number)
        elif part.rank != NOTHING:
            part.add(LogReading.add_places_beside, part.rank, number)
        elif in_group:
            part.add(LogReading.add_place_in_printed, number)
        else:
            part.add(
                LogReading.add_bare, number, *(part.span(work, place) for place in range(1, 4))
            )


def _find_launcher(part: Part) -> None:
    """Finds a launcher's prefixes and its report of failures."""
    text = part.text
    part.work += 30
    for match in _ELASTIC.finditer(text):
        part.add(LogReading.add_worker, *part.spans(match))
    part.add_first(_HOST, LogReading.begin_host)
    part.add_each(LogReading.add_ranks, part.matched(_DUMP_FILE))
    for match in _SERVING.finditer(text):
        places = re.compile(r"P(\d{1,6})").finditer(part.text, *match.span())
        part.add(LogReading.add_places, *(part.span(place, 1) for place in places))
    if " across cluster]" in text and "[repeated " in text:
        part.add(LogReading.hides_lines)
    part.take(_LOCAL)


def _find_barrier(part: Part, whole: str) -> None:
    """Monitored barriers and store barriers; ``whole``: the text including what was taken from
    it."""
    part.work += 20
    if "Barrier encountered error" in whole:
        part.add(LogReading.begin_wrapped_barrier)
    if "monitoredBarrier" in whole:
        observer = _BARE.search(whole)
        failed, reached = _BARRIER_FAILED.search(whole), _BARRIER_REACHED.search(whole)
        speaker = part.span(observer, 1) if observer else part.span(reached, 1)
        spans = (speaker, part.span(failed, 1), part.span(reached, 1))
        part.take(_BARRIER_FAILED)
        part.take(_BARRIER_REACHED)
        others = [part.span(match, 1) for match in islice(_MENTION.finditer(part.text), 16)]
        part.add(LogReading.add_barrier, part.rank, *spans, *others)
        part.take(_MENTION)
    part.add_first(_STORE_BARRIER, LogReading.add_store_barrier, part.rank)
    part.add_first(_SETTING_UP, LogReading.add_places_beside, part.rank)


def _find_collectives(part: Part) -> None:
    """Finds PyTorch's own reports: of a desync, of a mismatch, and of the recorder's analyzer."""
    part.work += 20
    if "CollectiveFingerPrint" in part.text and _find_mismatch(part):
        return
    if "lagging ranks" in part.text or "#" in part.text or "] started" in part.text:
        for pattern in (_LAGGING, _SNAPSHOT):
            for listed in part.matched(pattern):
                part.add(LogReading.add_in_current_group, listed, arguments=(pattern is _LAGGING,))
        part.take(_LAGGING)
        part.take(_SNAPSHOT)
    part.add_first(_SEQUENCE, LogReading.set_recorder_number)
    part.add_first(_COLLECTIVE, LogReading.add_recorder_op)


def _find_mismatch(part: Part) -> bool:
    """The report of TORCH_DISTRIBUTED_DEBUG=DETAIL: ranks in the group that was wrapped."""
    sides = list(islice(_MISMATCH.finditer(part.text), 2))
    if not sides or sides[0][0].startswith("but"):
        return False
    spans = [part.span(_PRINTS.search(part.text, 0, sides[0].start()), 1)]
    for side in sides:  # without a comma the number and the operation are not to be trusted
        spans += [
            part.span(side, place) if side[3] or place == 1 else NOTHING for place in (1, 2, 4)
        ]
    spans += [part.span(shape, 1) for shape in islice(_SHAPE.finditer(part.text), 8)]
    part.add(LogReading.add_mismatch, part.rank, *spans, arguments=(len(sides),))
    part.text = ""
    return True


def _find_recorder_text(part: Part) -> None:
    """Finds output of torch.distributed's own analyzer, whose ranks are global."""
    part.work += 20
    for match in _SET.finditer(part.text):
        is_missing = match[1].lower() == "missing"
        part.add(LogReading.add_listed, part.span(match, 2), arguments=(is_missing,))
    part.add_first(_GROUP_INFO, LogReading.set_recorder_group)
    part.take(_SET)


def _find_mentions(part: Part, after_source: bool) -> None:
    """Finds everything else that is called a rank, unless a word before it tells of what."""
    text = part.text
    ranks, places = [], []
    for match in islice(_MENTION.finditer(text), MOST_MENTIONS):
        part.work += 5
        lead = text[max(0, match.start() - 24) : match.start()]
        if lead[-1:].isalnum() or (after_source and "=" in match[0]):
            continue
        qualified = _QUALIFIED.search(lead)
        if lead.endswith("_") and lead.lower().rstrip("_").endswith(("global", "world")):
            ranks.append(part.span(match, 1))
        elif qualified and qualified[1]:
            continue
        elif qualified or _OF_GROUP.match(text, match.end()):
            places.append(part.span(match, 1))
        elif not lead.endswith("_"):
            ranks.append(part.span(match, 1))
    part.add_each(LogReading.add_ranks, ranks)
    part.add_each(LogReading.add_places, places)
    for match in islice(_MENTIONS.finditer(text), MOST_MENTIONS) if "anks" in text else ():
        lead = text[max(0, match.start() - 24) : match.start()]
        if not lead[-1:].isalnum() and not _QUALIFIED.search(lead):
            part.add(LogReading.add_listed, part.span(match, 1), arguments=(False,))
