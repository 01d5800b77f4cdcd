"""Dumps of PyTorch's Flight Recorder, pickled or as JSON: what one rank has called, in order.

Fields as FlightRecorderDetail.hpp writes them (versions 1.1 to 2.10). What differs between writers:

    JSON     null times are 0, pg_status values are text, ``entries`` is left out when empty
    NCCL     ``state`` goes scheduled, started, completed; retired without completed is a timeout
    gloo     ``state`` stays scheduled, ``retired`` says that the work ended; pg_config is empty

Ranks in ``profiling_name`` ("nccl:send 0->1") are places in the group.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TypeGuard

from diagnosis.hang.calls import Call, Dump

from .bounds import Allowance

MOST_WRITTEN = 10_000_000
"""Characters of a dump's sizes and types above which they are counted: a pickle can repeat them."""

_NUMBER = re.compile(r"\d{1,7}")
_P2P = re.compile(r"(send|recv) (\d{1,7})(->|<-)(\d{1,7})$")


def is_dump(document: object) -> TypeGuard[dict[str, object]]:
    return (
        isinstance(document, dict)
        and "version" in document
        and ("entries" in document or "pg_config" in document)
    )


def as_dump(
    document: dict[str, object], file: str, rank: int | None, allowance: Allowance | None = None
) -> Dump:
    """The dump of a file; entries of another format are counted and left out.

    Errors: LayoutError ``too-many-entries-sent``, ``too-many-groups-sent``,
    ``too-many-ranks-sent``, and ``unpacks-to-too-much`` for texts that are repeated without end.
    """
    allowance = allowance or Allowance()
    dump = Dump(rank, file)
    configs = dicts_in(document.get("pg_config"))
    allowance.take("groups", len(configs))
    for config in configs:
        name, ranks = config.get("name"), config.get("ranks")
        if isinstance(name, str) and isinstance(ranks, (str, list)):
            members = _members(ranks, allowance)
            if members:
                dump.members[name] = members
            dump.descriptions[name] = text_of(config.get("desc", ""))
    listed = document.get("entries")
    entries = listed if isinstance(listed, list) else []
    allowance.take("entries", len(entries))
    dump.wrapped = any((_whole(first.get("record_id")) or 0) > 0 for first in dicts_in(entries[:1]))
    written = 0
    for entry in dicts_in(entries):
        if call := _call(entry, dump):
            dump.calls.append(call)
            written += len(call.sizes[0]) + len(call.sizes[1]) + len(call.dtypes)
            if written > MOST_WRITTEN:
                allowance.unpack(written, 0)
                written = 0
    dump.dropped = len(entries) - len(dump.calls)
    own = _own_rank(dump)
    if own is not None:  # the number in a file's name is a hint, its own groups are none
        dump.rank = own
    return dump


def _call(entry: dict[str, object], dump: Dump) -> Call | None:
    group, name = entry.get("process_group"), entry.get("profiling_name")
    if not isinstance(name, str) or not isinstance(group, (list, tuple)) or len(group) != 2:
        return None
    backend, _, op = name[:200].partition(":")
    p2p = _P2P.match(op)
    seq = _whole(entry.get("p2p_seq_id" if entry.get("is_p2p") else "collective_seq_id"))
    if seq is None:
        return None
    peers = None
    if p2p:
        sender, other = int(p2p[2]), int(p2p[4])
        peers = (sender, other) if p2p[3] == "->" else (other, sender)
        op = p2p[1]
    dump.backend = dump.backend or backend
    key = text_of(group[0])
    dump.descriptions.setdefault(key, text_of(group[1]))
    local = _whole(entry.get("pg_id"))
    if local is not None:
        dump.local_ids.setdefault(key, local)
    retired = bool(entry.get("retired"))
    ended = entry.get("state") == "completed" or bool(entry.get("time_discovered_completed_ns"))
    ended = ended or (retired and backend == "gloo")
    inputs, outputs = entry.get("input_sizes"), entry.get("output_sizes")
    return Call(
        group=key,
        seq=seq,
        op=op,
        sizes=(_sizes(inputs), _sizes(outputs)),
        dtypes=_sizes(entry.get("input_dtypes")),
        numels=(_numel(inputs), _numel(outputs)),
        ended=ended,
        timed_out=retired and not ended,
        created_ns=_whole(entry.get("time_created_ns")) or 0,
        timeout_ms=_whole(entry.get("timeout_ms")) or 0,
        order=len(dump.calls),
        peers=peers,
    )


def _own_rank(dump: Dump) -> int | None:
    """The rank of a file without one in its name, if its groups leave only one."""
    for call in dump.calls:
        members = dump.members.get(call.group)
        if call.peers and members:
            place = call.peers[0] if call.op == "send" else call.peers[1]
            return members[place] if place < len(members) else None
    called = {call.group for call in dump.calls} & {*dump.members}
    lists = {id(dump.members[name]): dump.members[name] for name in called}  # equal ones are one
    common = set.intersection(*map(set, lists.values())) if lists else set()
    return common.pop() if len(common) == 1 else None


def _members(ranks: str | list[object], allowance: Allowance) -> tuple[int, ...]:
    """The ranks of a list, or of its text; equal lists share one tuple in all dumps."""
    lists = allowance.lists
    members = lists.get(ranks) if isinstance(ranks, str) else None
    if members is None:
        if isinstance(ranks, str):
            most = allowance.bounds.ranks + 1
            listed = tuple(int(rank[0]) for rank in islice(_NUMBER.finditer(ranks), most))
        else:
            listed = tuple(rank for rank in map(rank_or_none, ranks) if rank is not None)
        members = lists.get(listed)
        if members is None:
            allowance.take("ranks", len(listed))
            members = lists[listed] = listed
        if isinstance(ranks, str):
            lists[ranks] = members
    return members


def rank_or_none(value: object) -> int | None:
    """A rank of up to seven digits, as everywhere (`diagnosis.hang.model.Ranks`); else None."""
    return value if type(value) is int and 0 <= value < 10**7 else None


def _whole(value: object) -> int | None:
    if type(value) is int and abs(value) < 2**64:
        return value
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,20}", value):
        return int(value)
    return None


def text_of(value: object) -> str:
    """A plain value as text; values that could be longer than their file are cut."""
    is_short = value is None or isinstance(value, (str, bool, float)) or _whole(value) is not None
    return str(value)[:200] if is_short else "..."


def _sizes(value: object) -> str:
    """Sizes or types as text, cut to a readable length."""
    if not isinstance(value, (list, tuple)):
        return "[]"
    shapes = [
        f"[{', '.join(map(text_of, shape[:16]))}]"
        if isinstance(shape, (list, tuple))
        else text_of(shape)
        for shape in value[:64]
    ]
    return "[" + ", ".join(shapes) + (", ..." if len(value) > 64 else "") + "]"


def _numel(value: object) -> int:
    """Elements of all tensors together."""
    total = 0
    for shape in value[:1024] if isinstance(value, (list, tuple)) else ():
        count = 1
        for size in shape[:16] if isinstance(shape, (list, tuple)) else ():
            count *= size if type(size) is int and 0 <= size < 2**62 else 0
        total += count
    return total


def dicts_in(value: object) -> list[dict[str, object]]:
    """The dicts of a list, or of the values of a dict."""
    rows = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [row for row in rows if isinstance(row, dict)]
