"""Emptying what the project remembers, so that a layout is as new as the first time."""

from __future__ import annotations

import sys
from functools import lru_cache
from inspect import signature
from typing import Any

from formats.values import Document
from groups.kept import STORE, kept
from views import page

drawn = page.draw

ROOMS = ("descriptions", "groups", "render", "request", "texts", "training", "views")


def drawn_anew(sent: object) -> Document:
    """What the page answers, as if nobody had asked for it before."""
    clear_caches()
    return drawn(sent)


def clear_caches() -> None:
    """Empty the store of results and every functools cache of the project that holds answers, in
    microseconds.

    Tables that are read once stay: they take no argument, or only a class, whose fields never
    change."""
    STORE.clear()
    for cached in _caches():
        cached.cache_clear()


@lru_cache(maxsize=1)
def _caches() -> tuple[Any, ...]:
    """Every cached function in the project's modules; all are loaded when the first picture is."""
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] in ROOMS]
    found = (value for module in modules for value in vars(module).values())
    made = (value for value in found if not isinstance(value, (type, kept)))
    cached = (value for value in made if callable(getattr(value, "cache_clear", None)))
    return tuple(dict.fromkeys(each for each in cached if _holds_answers(each)))


def _holds_answers(cached: Any) -> bool:
    asked = [one.annotation for one in signature(cached).parameters.values()]
    return any(annotation not in (type, "type") for annotation in asked)
