"""The groups of a running job against those of the layout on screen."""

from __future__ import annotations

from descriptions import PAGE, counted
from groups import LayoutError
from groups.layout import Layout
from groups.running import Difference, Running

from ..words import saying

MOST_COMPARED = 16_384
"""The most ranks whose groups are compared with those on screen one by one."""


def compared(running: Running, layout: Layout, language: str) -> tuple[str, list[Difference]]:
    """A sentence, and a list of ranks with other groups than on screen."""
    say = saying(PAGE, language)
    if running.world > MOST_COMPARED:
        return "", []
    try:
        found = [*running.differences(layout)]
    except LayoutError:
        return say("running_other_world", gpus=counted(layout.world_size, "gpu", language)), []
    ranks = len({one.rank for one in found})
    differ = say("running_differs", count=counted(ranks, "gpu", language))
    return (differ if found else say("running_same")), found
