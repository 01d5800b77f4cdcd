"""Pictures of a mesh, a layout and a timeline: in a notebook, and as files.

Jupyter and VS Code call ``_repr_mimebundle_`` of a value. This room draws nothing: a room beside it
that does has a module `pictures`, which registers its painters here and is imported for the first
picture. Computing alone never needs it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache, singledispatch
from importlib import import_module
from pathlib import Path

from .errors import not_a_choice, refusal

Bundle = dict[str, str]
"""Representations of a value by their MIME types."""

FORMS = ("svg", "png", "pdf")
THEMES = ("light", "dark")


@singledispatch
def pictures(value: object) -> Bundle:
    """The pictures of a value; none of a type for which no painter is registered.

    >>> pictures("a text")
    {}
    """
    return {}


@singledispatch
def picture_file(value: object, form: str, theme: str) -> bytes:
    """A file of FORMS with the picture of a value.

    Errors: LayoutError where nothing draws it.
    """
    raise refusal("nothing-draws", "out", form=form)


@cache
def load_painters() -> None:
    """Imports the module `pictures` of each room that has one. Errors: ImportError without what
    they draw with."""
    above = __package__.rpartition(".")[0]  # "" in a checkout
    for file in sorted(Path(__file__).parents[1].glob("*/pictures.py")):
        import_module(".".join(filter(None, (above, file.parent.name, file.stem))))


def bundle(value: object, text: str) -> Bundle:
    """The pictures of a value, and its text; the text alone where nothing draws.

    >>> bundle(5, "five")
    {'text/plain': 'five'}
    """
    found = {}
    with suppress(ImportError):
        load_painters()
        found = pictures(value)
    return {"text/plain": text, **found}


def drawn(value: object, form: str, theme: str = "light") -> bytes:
    """The picture of a value as the bytes of a file.

    Errors: LayoutError for another form or theme, and where the libraries that draw are missing.
    """
    if form not in FORMS:
        raise not_a_choice("form", form, FORMS, [{"form": each} for each in FORMS])
    if theme not in THEMES:
        raise not_a_choice("theme", theme, THEMES, [{"theme": each} for each in THEMES])
    try:
        load_painters()
        return picture_file(value, form, theme)
    except ImportError:
        raise refusal("nothing-draws", "out", form=form) from None


def save(value: object, file: str | os.PathLike[str], theme: str = "light") -> None:
    """Writes the picture of a value to a file, whose name says the form: .svg, .png or .pdf.

    Errors: LayoutError as `drawn`; OSError for a file that cannot be written.
    """
    form = Path(file).suffix.lower().removeprefix(".")
    if form not in FORMS:
        stem = Path(file).stem or "groups"
        fixes = [{"out": f"{stem}.{each}"} for each in FORMS]
        raise not_a_choice("out", str(file), (f".{each}" for each in FORMS), fixes)
    Path(file).write_bytes(drawn(value, form, theme))
