"""How a mesh, a layout and a timeline show themselves in a notebook.

Jupyter and VS Code ask a value for ``_repr_mimebundle_``. What draws stands in another room,
which is entered when a notebook asks, so that sums alone need none of it.
"""

from __future__ import annotations

from importlib import import_module

Bundle = dict[str, str]
"""A value in the forms that a notebook may show, by their MIME types."""


def bundle(drawn: str, what: object, text: str) -> Bundle:
    """What the function ``drawn`` of `render.notebook` makes of a value, beside its text; the text
    alone where what draws is not installed."""
    rooms = __package__.removesuffix("groups")  # in a checkout none, installed the package
    try:
        found: Bundle = getattr(import_module(f"{rooms}render.notebook"), drawn)(what)
    except ImportError:
        found = {}
    return {"text/plain": text, **found}
