"""The ranks that a pasted text names: a list, or what a log says."""

from __future__ import annotations

from groups.grouping import LONGEST_TEXT, MOST_RANKS, bad_ranks, parse_ranks, require_ranks

from ..errors import refusal
from . import read_log
from .model import Log


def named_ranks(
    text: str, world_size: int, longest: int = LONGEST_TEXT
) -> tuple[tuple[int, ...], Log | None]:
    """Ranks of the job, ascending, each once; and the log, if the text is one.

    >>> named_ranks("3, 11, 5-7 3", world_size=16)
    ((3, 5, 6, 7, 11), None)
    >>> named_ranks("[rank9]: [PG ID 5 PG GUID 37(TENSOR_MODEL_PARALLEL_GROUP) Rank 1] x", 16)[0]
    (9,)

    Errors: LayoutError that names the part that is no rank, or the ranks that the world lacks;
    ``ranks-in-groups`` where the text has only places in groups.
    """
    if not isinstance(text, str) or len(text) > longest:
        raise bad_ranks(text)
    log = read_log(text)
    if log.ranks or log.group_ranks or log.ambiguous_ranks:
        return ranks_of(log, world_size), log
    return parse_ranks(text, world_size), None


def ranks_of(log: Log, world_size: int) -> tuple[int, ...]:
    """The ranks of the job that a log names. Errors: as `named_ranks`."""
    if log.ranks:
        if len(log.ranks) > MOST_RANKS:
            parse_ranks(" ".join(map(str, log.ranks)), world_size)  # refuses
        require_ranks(log.ranks[-1], world_size)
        return log.ranks
    numbers = sorted({*log.group_ranks, *log.ambiguous_ranks})
    if numbers:
        listed = ", ".join(map(str, numbers[:16]))
        raise refusal("ranks-in-groups", "ranks", ranks=listed)
    raise bad_ranks("the files")
