"""Texts that went through a terminal or an editor that cuts lines."""

from __future__ import annotations

import re

_BEGINS = re.compile(
    r"\[rank|\[default|\[Rank |Traceback|frame #|\[?\d{4}-\d\d-\d\d[T ]|\[?[EWIF]\d{3,4} "
    r"|\[\d{1,5}(?:,\d{1,5})?\]|\S{1,255}:\d{1,10}:\d{1,10} \["
)
"""How a line of a log begins, and the rest of a line that was cut hardly ever."""

MOST_LINES = 50_000
"""More is no terminal's scrollback."""


def unwrapped(text: str) -> str:
    """The text with lines joined that a terminal cut at its width, in the middle of words.

    >>> cut = ["[rank18]:[E1013 20:47:44.9 Group.cpp:746] [R",
    ...        "ank 18] Some NCCL work has failed or timed o", "ut."]
    >>> print(unwrapped("\\n".join(cut)))
    [rank18]:[E1013 20:47:44.9 Group.cpp:746] [Rank 18] Some NCCL work has failed or timed out.
    """
    if text.count("\n") > MOST_LINES:
        return text
    lines = text.split("\n")
    width = max(map(len, lines))
    full = sum(len(line) == width for line in lines)
    if not 40 <= width <= 250 or full < 2 or full * 4 < len(lines):
        return text
    joined: list[list[str]] = []
    goes_on = False
    for line in lines:
        if goes_on and not _BEGINS.match(line):
            joined[-1].append(line)
        else:
            joined.append([line])
        goes_on = len(line) == width and not line.endswith("  ")
    return "\n".join("".join(parts) for parts in joined)
