"""The notebook representations of a mesh, a layout and a timeline.

Jupyter and VS Code call ``_repr_mimebundle_`` of a value. This room draws nothing: the room that
does says so here (`render.notebook`), and the installed package loads it before the first picture.
Computing alone never needs it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import singledispatch

Bundle = dict[str, str]
"""Representations of a value by their MIME types."""

LOADERS: list[Callable[[], object]] = []
"""What is called before a picture, so that `pictures` knows its painters; ImportError: there are
none."""


@singledispatch
def pictures(value: object) -> Bundle:
    """The pictures of a value; none of a type for which no painter is registered.

    >>> pictures("a text")
    {}
    """
    return {}


def bundle(value: object, text: str) -> Bundle:
    """The pictures of a value, and its text; the text alone where nothing draws.

    >>> bundle(5, "five")
    {'text/plain': 'five'}
    """
    found = {}
    with suppress(ImportError):
        for load in LOADERS:
            load()
        found = pictures(value)
    return {"text/plain": text, **found}
