"""The words of the page itself, and nouns that are counted."""

from __future__ import annotations

from .shapes import words

PAGE = {**words("collectives", "PAGE"), **words("page", "PAGE"), **words("pipeline", "PAGE")}

NOUNS = words("page", "NOUNS")
"""One and many, with a slash between where they differ, and with the counter in Chinese."""


def counted(number: int, noun: str, language: str) -> str:
    """A number with its noun.

    >>> counted(1, "group", "en"), counted(1024, "group", "en"), counted(2, "node", "zh")
    ('1 group', '1,024 groups', '2 个节点')
    """
    forms = NOUNS[noun][language].split("/")
    return f"{number:,} {forms[0 if number == 1 else -1]}"
