"""Emptying what the project remembers, so that a layout is as new as the first time."""

from __future__ import annotations

import sys

ROOMS = ("groups", "render", "training", "views")


def clear_caches() -> None:
    """Empty every functools cache in the project's loaded modules."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ROOMS:
            for value in list(vars(module).values()):
                clear = getattr(value, "cache_clear", None)
                if callable(clear):
                    clear()
