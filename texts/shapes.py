"""What a text is: both languages of it, what a choice, a kind or a control says; the catalogues.

A catalogue, NAME.txt here or words.txt of a view, has sections; each record in them is a key and
its texts. A text is English and Chinese on one line with a bar between, or a line of each; a line
that is indented further goes on with the one above. A text alone is Chinese for its key. Quotes
keep spaces at the ends; a line with # is a remark.

A third language is its name in LANGUAGES and a catalogue of its own, such as fr.txt: the same
records, in any sections and under any keys, with French where the others have Chinese. What it
lacks, `untranslated`, stays English, and the page says how much that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parent

LANGUAGES: dict[str, str] = {"en": "English", "zh": "中文"}


def joined(sentences: Iterable[str], language: str) -> str:
    """Sentences one after the other."""
    return GAP[language].join(sentences)


@dataclass(frozen=True)
class Text:
    """One text in every language of LANGUAGES; `text["zh"]` picks one.

    In a third language it is what that has for the English, or English where it has nothing.
    """

    en: str
    zh: str

    def __getitem__(self, language: str) -> str:
        if language == "en":
            return self.en
        if language == "zh":
            return self.zh
        if language not in LANGUAGES:
            raise KeyError(f"no text in language {language!r}: choose one of {list(LANGUAGES)}")
        return _translations(language).get(self.en, self.en)


GAP = Text(" ", "")
"""What stands between two sentences."""


class Link(NamedTuple):
    """A page to read, labelled by what it is."""

    url: str
    title: Text


class GroupType(NamedTuple):
    """A choice of the group type dropdown: the kinds whose panels it shows, in this order."""

    title: Text
    body: Text
    kinds: tuple[str, ...]
    reading: tuple[Link, ...]


class Kind(NamedTuple):
    """A kind of process group: what one such group carries, when, and over which links; lead: in
    short."""

    title: Text
    body: Text
    lead: Text | None = None


class Control(NamedTuple):
    """An input of the page: what it is called, and what it does in one sentence."""

    label: Text
    help: Text


class OperationText(NamedTuple):
    """What an operation does to tensors, and where training uses it; of an algorithm title and
    course."""

    does: Text
    used: Text


class Term(NamedTuple):
    """A word as it is written (an expression for either language), and what it means."""

    written: Text
    tip: Text


class Step(NamedTuple):
    """One step of the tour: the link of a state, and two sentences about it."""

    query: str
    text: Text


# -- catalogues ----------------------------------------------------------------------------------

_HEAD = re.compile(r"#|\[(?P<section>\w+)\]|(?P<key>[^ ]*?):(?: |$)")


def catalogues() -> list[str | Path]:
    """Every catalogue of English and Chinese: the names of those here, the files of views."""
    here = {path.stem for path in FOLDER.glob("*.txt")} - {*LANGUAGES}
    return [*sorted(here), *sorted(FOLDER.parent.glob("views/*/words.txt"))]


@cache
def catalogue(name: str | Path) -> dict[str, dict[str, tuple[Text, ...]]]:
    """The sections of a catalogue here, or of a file: the texts of each record by its key."""
    sections: dict[str, dict[str, list[list[str]]]] = {}
    records: dict[str, list[list[str]]] = {}
    record: list[list[str]] = []
    path = name if isinstance(name, Path) else FOLDER / f"{name}.txt"
    source = path.read_text(encoding="utf-8")
    for line in filter(None, source.splitlines()):
        head = _HEAD.match(line)
        if head is None:
            if line.startswith(" " * 8):
                record[-1].append(line.strip())
            else:
                record.append([line.strip()])
        elif head["section"]:
            records = sections.setdefault(head["section"], {})
        elif head["key"] is not None:
            rest = line[head.end() :]
            record = records[head["key"]] = [[rest]] if rest else []
    return {
        section: {key: tuple(_texts(key, lines)) for key, lines in records.items()}
        for section, records in sections.items()
    }


def has_text(text: Text, language: str) -> bool:
    """Whether a language says a text itself, and not by the English one."""
    return language in ("en", "zh") or text.en in _translations(language)


@cache
def untranslated(language: str) -> tuple[list[str], int]:
    """The records that a language lacks, as "catalogue SECTION key", and how many there are."""
    records = [
        (f"{room} {section} {key}", texts)
        for room in catalogues()
        for section, by_key in catalogue(room).items()
        for key, texts in by_key.items()
    ]
    lacking = [name for name, texts in records if not all(has_text(t, language) for t in texts)]
    return lacking, len(records)


@cache
def _translations(language: str) -> dict[str, str]:
    """What each English text, or key of a text alone, is in a third language."""
    records = (record for section in catalogue(language).values() for record in section.values())
    return {text.en: text.zh for record in records for text in record}


def _texts(key: str, lines: list[list[str]]) -> Iterable[Text]:
    rest = iter(lines)
    for line in rest:
        en, *other = line[0].split(" | ")
        if not other and len(lines) > 1:
            en, other = " ".join(line), ["".join(next(rest))]
        yield Text(_bare(en), _bare(other[0])) if other else Text(key, _bare("".join(line)))


def _bare(text: str) -> str:
    return text[1:-1] if text[:1] == text[-1:] == '"' else text


def words(name: str | Path, section: str) -> dict[str, Text]:
    """A section whose records are one text each."""
    return {key: text for key, (text,) in catalogue(name)[section].items()}
