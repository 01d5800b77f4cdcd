"""The notebook representations of a mesh, a layout and a timeline.

Jupyter and VS Code call ``_repr_mimebundle_`` of a value. The drawing code is imported only then,
so that computing alone does not need it.
"""

from __future__ import annotations

from importlib import import_module

Bundle = dict[str, str]
"""Representations of a value by their MIME types."""


def bundle(drawn: str, what: object, text: str) -> Bundle:
    """The representations of a value that the function ``drawn`` of `render.notebook` makes, and
    its text; the text alone if the drawing libraries are not installed."""
    rooms = __package__.removesuffix("groups")  # "" in a checkout
    try:
        found: Bundle = getattr(import_module(f"{rooms}render.notebook"), drawn)(what)
    except ImportError:
        found = {}
    return {"text/plain": text, **found}
