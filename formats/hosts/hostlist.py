"""Slurm's host lists: ``n[1-3,7],gpu-a`` is read as Slurm reads it.

A comma, a blank or a new line parts two items; a bracket holds numbers and ranges, kept in their
order and as often as they are written; the width of a range's first number pads all of it:

    tux[3,1,2]    tux3 tux1 tux2          n[08-11]   n08 n09 n10 n11
    n[8-011]      n8 n9 n10 n11           r[1-2]n[1-2]   r1n1 r1n2 r2n1 r2n2

With several brackets the last varies fastest and, of the others, the first: of three the middle one
is the slowest. Source: SchedMD/slurm, src/common/hostlist.c, _push_range_list; its limits too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import product
from math import prod

from groups.budget import spend
from groups.errors import LayoutError, quoted

from ..errors import refusal
from .values import MAX_HOSTS, too_many_hosts

MAX_RANGE = 65_536
"""Machines that one range may name: hostlist.c, MAX_RANGE."""

_BRACKET = re.compile(r"\[([^\[\]]*)\]")
_ITEM = re.compile(r"(?:\[[^\[\]]*\]|[^,\s])+")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?", re.ASCII)
_BOX = re.compile(r"[0-9A-Z]+x[0-9A-Z]+", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_.:@-]*", re.ASCII)


def expand_hostlist(text: str) -> list[str]:
    """The machines of a host list, in its order and as often as it names them.

    >>> expand_hostlist("tux[3,1-2],gpu-a")
    ['tux3', 'tux1', 'tux2', 'gpu-a']
    >>> expand_hostlist("n[0-999999999]")
    Traceback (most recent call last):
    groups.errors.LayoutError: 'n[0-999999999]' names 1,000,000,000 machines, more than 65,536

    Errors: LayoutError for what is no host list, such as an open bracket, for a range of more than
    MAX_RANGE machines and for more than MAX_HOSTS in all.
    """
    hosts: list[str] = []
    for item in _ITEM.findall(text):
        if not _NAME.fullmatch(_BRACKET.sub("", item)):
            raise _bad(item)
        ranges = [_numbers(body, item) for body in _BRACKET.findall(item)]
        count = prod(sum(last - first + 1 for first, last, _ in range_) for range_ in ranges)
        if len(hosts) + count > MAX_HOSTS:
            raise too_many_hosts(len(hosts) + count, item)
        spend(2 * count, "hosts", control="hosts")
        hosts += _expanded(item, ranges)
    return hosts


def is_hostlist(text: str) -> bool:
    """Whether a text has the brackets of a host list."""
    return bool(_BRACKET.search(text))


def _numbers(body: str, item: str) -> list[tuple[int, int, int]]:
    """First, last and width of each range in a bracket."""
    ranges = []
    for part in re.split(r"[,\s]+", body):
        match = _RANGE.fullmatch(part)
        if not match:
            raise _bad(item, is_box=bool(_BOX.fullmatch(part)))
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise _bad(item)
        if last - first >= MAX_RANGE:
            why = "Slurm takes no longer range: write several of them"
            raise too_many_hosts(last - first + 1, item, MAX_RANGE, why)
        ranges.append((first, last, len(match[1])))
    return ranges


def _expanded(item: str, ranges: Sequence[list[tuple[int, int, int]]]) -> Iterable[str]:
    """The names of one item: loops from the last bracket but one to the first, then the last."""
    if not ranges:
        return [item]
    texts = _BRACKET.split(item)[::2]
    numbers = [
        [str(n).zfill(width) for first, last, width in range_ for n in range(first, last + 1)]
        for range_ in ranges
    ]
    *others, fastest = range(len(numbers))
    loops = [*reversed(others), fastest]
    place = [loops.index(bracket) for bracket in range(len(numbers))]
    return (
        texts[0] + "".join(chosen[at] + text for at, text in zip(place, texts[1:]))
        for chosen in product(*(numbers[bracket] for bracket in loops))
    )


def _bad(item: str, *, is_box: bool = False) -> LayoutError:
    why = "boxes such as [000x133] belong to machines of several dimensions" if is_box else ""
    return refusal("bad-hostlist", "hosts", why=why, value=quoted(item))
