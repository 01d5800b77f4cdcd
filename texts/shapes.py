"""What a text is: both languages of it, and what a choice, a kind or a control says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LANGUAGES: dict[str, str] = {"en": "English", "zh": "中文"}

GAPS = {"en": " ", "zh": ""}
"""What stands between two sentences."""


def joined(sentences: Iterable[str], language: str) -> str:
    """Sentences one after the other.

    >>> joined(["It is.", "It was."], "en"), joined(["是。", "曾是。"], "zh")
    ('It is. It was.', '是。曾是。')
    """
    return GAPS[language].join(sentences)


@dataclass(frozen=True)
class Text:
    """One text in every language of LANGUAGES; `text["zh"]` picks one."""

    en: str
    zh: str

    def __getitem__(self, language: str) -> str:
        if language not in LANGUAGES:
            raise KeyError(f"no text in language {language!r}: choose one of {list(LANGUAGES)}")
        text: str = getattr(self, language)
        return text


@dataclass(frozen=True)
class Link:
    """A page to read, labelled by what it is."""

    url: str
    title: Text


@dataclass(frozen=True)
class GroupType:
    """A choice of the group type dropdown: the kinds whose panels it shows, in this order."""

    title: Text
    body: Text
    kinds: tuple[str, ...]
    reading: tuple[Link, ...]


@dataclass(frozen=True)
class Kind:
    """A kind of process group: what one such group carries, when, and over which links.

    lead: the same in two short sentences, for the kinds that people see first.
    """

    title: Text
    short: str
    body: Text
    lead: Text | None = None


@dataclass(frozen=True)
class Control:
    """An input of the page: what it is called, and what it does in one sentence."""

    label: Text
    help: Text
