"""Words that are explained where they stand: a tip for the pointer, the keyboard and a touch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from html import escape

from markupsafe import Markup

from descriptions import LANGUAGES, WORDS, Text

from .html import button, heading, tag


def saying(words: Mapping[str, Text], language: str) -> Callable[..., str]:
    """The texts of a catalogue in one language, by name, with their facts.

    >>> say = saying({"two": Text("{name} and {more}", "")}, "en")
    >>> say("two", name="tp", more="dp")
    'tp and dp'
    """

    def say(name: str, /, **facts: object) -> str:
        text = words[name][language]
        return text.format(**facts) if facts else text

    return say


def intro(title: str, text: str, language: str) -> Markup:
    """What a view asks and how it answers: a heading and a paragraph."""
    return heading(title, tag("p", explained(text, language)))


def explained(text: str, language: str, known: set[int] | None = None) -> Markup:
    """A text as HTML, each of its words explained once.

    known: numbers of the words that were explained before, to which those of the text are added.

    >>> explained("A rank & its stage, or ranks", "en").count("data-tip")
    2
    """
    known = set() if known is None else known

    def marked(match: re.Match[str]) -> str:
        number = _number(match["word"], language)
        if number in known:
            return match[0]
        known.add(number)
        word = _explained(match["word"], number, language)
        return tag("bdi", word, Markup(match["end"]), class_="word-end") if match["end"] else word

    return Markup(_pattern(language).sub(marked, escape(text, quote=False)))


@cache
def _explained(word: str, number: int, language: str) -> Markup:
    """One of the few ways to write a word, with its tip."""
    return button(Markup(word), class_="word", data_tip=WORDS[number].tip[language])


@cache
def _pattern(language: str) -> re.Pattern[str]:
    """Any of the words; a group for each would take ten times as long."""
    assert language in LANGUAGES
    words = "|".join(word.written[language] for word in WORDS)
    return re.compile(rf"(?P<word>{words})(?P<end>[^\w\s<&(]*)")


@cache
def _number(word: str, language: str) -> int:
    """Which word it is, of the few ways that there are to write one."""
    return next(n for n, known in enumerate(WORDS) if re.fullmatch(known.written[language], word))
