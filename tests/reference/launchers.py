"""Which rank a launcher puts where: hosts with slots -> rank, local rank, cross rank.

Horovod fills the hosts in the order given, each up to its slots:

    hosts    a:3        b:1    c:2
    rank     0  1  2    3      4  5
    local    0  1  2    0      0  1        place on its host
    cross    0  0  0    1      2  1        place among the hosts that have this local rank

With even hosts this is the mesh local, cross of conventions.py; uneven hosts are no mesh.
Source: horovod/horovod 0.28.1, horovod/runner/common/util/hosts.py, get_host_assignments.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from groups.errors import LayoutError, quoted
from groups.mesh import MAX_RANKS, whole_number

_HOST = re.compile(r"([A-Za-z0-9_.-]+):([0-9]{1,12})")


@dataclass(frozen=True)
class Slot:
    """One process of a Horovod job and the six numbers it is told."""

    host: str
    rank: int
    local_rank: int
    cross_rank: int
    size: int
    local_size: int
    cross_size: int


def horovod_slots(hosts: str, min_np: int, max_np: int | None = None) -> list[Slot]:
    """The slots of a job on ``hosts``, at least ``min_np`` and at most ``max_np`` of them.

    Without max_np every slot is used, even if min_np is smaller.

    >>> [(slot.host, slot.local_rank, slot.cross_rank) for slot in horovod_slots("a:2,b:1", 3)]
    [('a', 0, 0), ('a', 1, 0), ('b', 0, 1)]

    Errors: LayoutError for text that is not hosts with their slots, for a host listed twice (two
    processes would have the same place) and for fewer slots than min_np.
    """
    min_np = whole_number(min_np, "min_np")
    limit = None if max_np is None else whole_number(max_np, "max_np")
    used = _used(parse_hosts(hosts), limit)
    size = sum(used.values())
    if size < min_np:
        raise _too_few(min_np, size, limit)
    if size > MAX_RANKS:
        raise LayoutError(
            "too-many-ranks",
            f"{size:,} ranks are more than {MAX_RANKS:,}",
            control="hosts",
            facts={"ranks": size, "limit": MAX_RANKS},
        )
    sharing = Counter(local for slots in used.values() for local in range(slots))
    seen: Counter[int] = Counter()
    found: list[Slot] = []
    for host, slots in used.items():
        for local in range(slots):
            found.append(Slot(host, len(found), local, seen[local], size, slots, sharing[local]))
            seen[local] += 1
    return found


def parse_hosts(hosts: str) -> dict[str, int]:
    """Slots by host, in the order given.

    >>> parse_hosts("worker-0:4, 10.0.0.2:2")
    {'worker-0': 4, '10.0.0.2': 2}

    Errors: LayoutError for anything that is not ``host:slots`` joined by commas, hosts distinct.
    """
    found: dict[str, int] = {}
    for part in hosts.split(",") if isinstance(hosts, str) else [hosts]:
        match = _HOST.fullmatch(part.strip()) if isinstance(part, str) else None
        if not match or match[1] in found:
            raise _bad_host(part, repeated=match is not None)
        found[match[1]] = int(match[2])
    return found


def _bad_host(part: object, *, repeated: bool) -> LayoutError:
    is_not = "names a host a second time" if repeated else "is not a host with its number of slots"
    own = "Invalid host input, please make sure it has format as : worker-0:2,worker-1:2."
    return LayoutError(
        "bad-hosts",
        f"{quoted(part)} {is_not}",
        why="hosts are written as host:slots joined by commas, such as a:4,b:4, each host once",
        control="hosts",
        facts={"value": quoted(part)},
        quote="" if repeated else own,
    )


def _used(slots: dict[str, int], limit: int | None) -> dict[str, int]:
    """How many slots of each host are used when the hosts are filled in order up to the limit."""
    used: dict[str, int] = {}
    for host, available in slots.items():
        left = available if limit is None else limit - sum(used.values())
        used[host] = min(available, left)
    return used


def _too_few(wanted: int, slots: int, limit: int | None) -> LayoutError:
    return LayoutError(
        "too-few-slots",
        f"{quoted(wanted)} processes are more than the {slots} slots that may be used",
        why="each process needs a slot on one of the hosts, and max_np limits how many are used",
        control="min_np" if limit is None or slots < limit else "max_np",
        alternatives=[{"min_np": slots}] if slots else (),
        facts={"wanted": quoted(wanted), "slots": slots},
        quote=f"Requested more processes ({quoted(wanted)}) than there are available slots "
        f"({slots})",
    )
