"""Limits of one reading of files: bytes, unpacked memory, entries.

A file of a few megabytes can unpack to gigabytes, or hold a million groups, so what files hold is
counted as it comes. The limits are several times what the dumps of a large job need; the command
line, where everybody uses a machine of their own, has hardly any.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from groups.errors import LayoutError, quoted
from groups.mesh import MAX_RANKS

from ..errors import refusal

MEGABYTE = 2**20


@dataclass(frozen=True)
class Bounds:
    """Limits for all files together."""

    bytes: int = 32 * MEGABYTE
    files: int = 16_384
    memory: int = 448 * MEGABYTE  # of the values that pickles and JSON unpack to, counted high
    entries: int = 131_072  # recorded operations; a recorder keeps 2,000 unless told otherwise
    groups: int = 131_072  # that dumps describe
    work: int = 1_500_000  # units (groups.budget) of finding who waits for whom
    ranks: int = 2 * MAX_RANKS  # in different lists of members
    held: int = 204_800  # values in one list of a pickle, and ready for it
    density: int = 24  # of memory for each byte that is read; recorders' dumps have 10 to 20
    slack: int = 4_000_000  # of memory beyond that in each file, and between two looks at it

    def require(self, files: int, size: int) -> None:
        """Errors: LayoutError ``too-much-evidence``."""
        if files > self.files or size > self.bytes:
            raise self.refused()

    def refused(self) -> LayoutError:
        facts = {"megabytes": self.bytes // MEGABYTE, "files": self.files}
        return refusal("too-much-evidence", "log", **facts)


PAGE = Bounds()
COMMAND_LINE = Bounds(*(512 * limit for limit in vars(PAGE).values()))


@dataclass
class Allowance:
    """What the remaining files may use.

    >>> left = Allowance(Bounds(entries=3))
    >>> left.take("entries", 2)
    >>> left.take("entries", 2)
    Traceback (most recent call last):
    groups.errors.LayoutError: the files hold at least 4 recorded operations, more than 3
    """

    bounds: Bounds = PAGE
    file: str = ""  # that is being read
    number: int = 0  # of files, with this one
    taken: Counter[str] = field(default_factory=Counter)
    in_file: Counter[str] = field(default_factory=Counter)
    lists: dict[str | tuple[int, ...], tuple[int, ...]] = field(default_factory=dict)  # of members

    def begin(self, file: str) -> None:
        """Starts counting for the next file."""
        self.file, self.number = file, self.number + 1
        self.in_file = Counter()

    def unpack(self, memory: int, size: int) -> None:
        """Counts the memory of unpacking so many bytes.

        Errors: LayoutError ``dump-dense`` where this file unpacks to too much for its size, and
        ``unpacks-to-too-much`` where all files together do.
        """
        density, slack = self.bounds.density, self.bounds.slack
        for taken in (self.taken, self.in_file):
            taken["memory"] += memory
            taken["bytes"] += size
        count, read = self.in_file["memory"], self.in_file["bytes"]
        if count > density * read + slack:
            facts = {"byte": read, "times": count // (read + 1), "limit": density}
            raise refusal("dump-dense", "log", **facts)
        count, read = self.taken["memory"], self.taken["bytes"]
        limit = min(self.bounds.memory, density * read + 4 * slack)
        if count > limit:
            where = {"file": quoted(self.file or "the text"), "number": self.number}
            sizes = {"count": count // MEGABYTE, "limit": limit // MEGABYTE}
            raise refusal("unpacks-to-too-much", "log", **where, **sizes)

    def take(self, what: str, count: int) -> None:
        """Counts entries, groups or ranks of a file. Errors: LayoutError ``too-many-...``."""
        self.taken[what] += count
        limit = getattr(self.bounds, what)
        facts = {"count": self.taken[what], "limit": limit}
        if self.taken[what] <= limit:
            return
        if what == "entries":
            raise refusal("too-many-entries-sent", "log", **facts)
        if what == "groups":
            raise refusal("too-many-groups-sent", "log", **facts)
        raise refusal("too-many-ranks-sent", "log", **facts)
