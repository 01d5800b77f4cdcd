"""Texts that went through a terminal or an editor that cuts lines."""

from __future__ import annotations


def unwrapped(text: str) -> str:
    """The text with lines joined that a terminal cut at its width, in the middle of words.

    >>> cut = ["[rank18]:[E1013 20:47:44.9 Group.cpp:746] [R",
    ...        "ank 18] Some NCCL work has failed or timed o", "ut."]
    >>> print(unwrapped("\\n".join(cut)))
    [rank18]:[E1013 20:47:44.9 Group.cpp:746] [Rank 18] Some NCCL work has failed or timed out.
    """
    if text.count("\n") > 200_000:  # no terminal's scrollback
        return text
    lines = text.split("\n")
    width = max(map(len, lines))
    full = sum(len(line) == width for line in lines)
    if not 40 <= width <= 250 or full < 2 or full * 4 < len(lines):
        return text
    joined: list[list[str]] = []
    goes_on = False
    for line in lines:
        if goes_on and not line.startswith(("[rank", "Traceback", "frame #")):
            joined[-1].append(line)
        else:
            joined.append([line])
        goes_on = len(line) == width and not line.endswith("  ")
    return "\n".join("".join(parts) for parts in joined)
