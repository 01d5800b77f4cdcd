"""The types of texts: both languages, and the records of choices, kinds and controls; the
catalogues.

A catalogue, NAME.toml here or words.toml of a view, has sections of records by key. A record is a
text, ``{ en = "Copy link", zh = "复制链接" }``, or what `SECTIONS` says.

A third language is its name in LANGUAGES and a file of its own, such as fr.toml: English texts and
their French, ``"Copy link" = "Copier le lien"``. What it lacks, `untranslated`, stays English, and
the page says how much that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeVar, cast, overload

from groups.tables import Rows, checked, parsed, read_table

FOLDER = Path(__file__).parent

LANGUAGES: dict[str, str] = {"en": "English", "zh": "中文"}


def joined(sentences: Iterable[str], language: str) -> str:
    """Sentences in sequence."""
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
"""The separator of two sentences."""


class Link(NamedTuple):
    """A page for further reading, with its label. language: of the page; empty: English, which both
    languages' pages lead to where they have nothing else."""

    url: str
    title: Text
    language: str = ""


class GroupType(NamedTuple):
    """A choice of the group type: the kinds whose panels it shows, in order, and pages for further
    reading, by their names in LINKS."""

    title: Text
    body: Text
    kinds: tuple[str, ...]
    reading: tuple[str, ...]


class Kind(NamedTuple):
    """A kind of process group: what a group carries, when, and over which links; lead: in short."""

    title: Text
    body: Text
    lead: Text | None = None


class Control(NamedTuple):
    """An input of the page: its label, and its effect in one sentence."""

    label: Text
    help: Text


class OperationText(NamedTuple):
    """What an operation does to tensors, and its use in training; of an algorithm title and
    course."""

    does: Text
    used: Text


class Term(NamedTuple):
    """A term of the glossary: a regular expression that finds it in each language, its meaning."""

    written: Text
    tip: Text


class TourStep(NamedTuple):
    """One step of the tour: the link of a state, and a paragraph about it."""

    query: str
    text: Text


class Chinese(NamedTuple):
    """The Chinese text of a key whose English text is elsewhere."""

    zh: str


# -- catalogues ----------------------------------------------------------------------------------

Record = TypeVar("Record")
Catalogue = dict[str, "Mapping[str, object] | tuple[object, ...]"]
"""Sections by name: records by key, or in sequence."""

SECTIONS: dict[str, object] = {
    "CONTROLS": dict[str, Control],
    "KINDS": dict[str, Kind],
    "SERVER_GROUPS": dict[str, Kind],
    "TYPES": dict[str, GroupType],
    "LINKS": dict[str, Link],
    "OPERATION_TEXTS": dict[str, OperationText],
    "ALGORITHM_TEXTS": dict[str, OperationText],
    "REFUSALS": dict[str, Chinese],
    "TOUR": tuple[TourStep, ...],
    "WORDS": dict[str, Term],
}
"""The type of a section, if it is not a text for each key."""


def _model(section: str) -> object:
    return SECTIONS.get(section, dict[str, Text])


@cache
def catalogues() -> Mapping[str, Path]:
    """Every catalogue of English and Chinese by its name: NAME.toml here, and words.toml of the
    view NAME.

    >>> [catalogues()[name].name for name in ("page", "nodes")]
    ['page.toml', 'words.toml']
    """
    here = {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}
    views = {path.parent.name: path for path in sorted(FOLDER.parent.glob("views/*/words.toml"))}
    return {name: path for name, path in (*here.items(), *views.items()) if name not in LANGUAGES}


@cache
def catalogue(name: str) -> Catalogue:
    """The sections of a catalogue: records by key. Errors: `groups.tables.TableError`."""
    file = catalogues()[name]
    return sections(f"{file.parent.name}/{file.name}", parsed(file))


def sections(name: str, values: Mapping[str, object]) -> Catalogue:
    """Checks the parsed sections of a file against their models. Errors: TableError."""
    held: Catalogue = {}
    for section, records in values.items():
        model = dict.__class_getitem__((str, _model(section)))
        held |= checked(name, {section: records}, cast("type[Catalogue]", model))
    return held


@overload
def words(name: str, section: str) -> Mapping[str, Text]: ...
@overload
def words(name: str, section: str, record: type[Record]) -> Mapping[str, Record]: ...
def words(name: str, section: str, record: type[object] = Text) -> Mapping[str, object]:
    """The records of a section by key, read on first access; `SECTIONS` has their type.

    >>> words("page", "NOUNS")["gpu"].zh
    '个 GPU'
    """
    return Rows(partial(_section, name, section), f"{name} [{section}]")


def words_of_all(section: str, record: type[Record]) -> Mapping[str, Record]:
    """The records of a section of every catalogue that has it: page and views add their own.

    >>> "nodes" in words_of_all("VIEWS", Text), words_of_all("PAGE", Text)["close"].en
    (True, 'Close')
    """
    read = partial(_sections, section)
    return cast("Mapping[str, Record]", Rows(read, f"[{section}] of texts/ and of the views"))


def _sections(section: str) -> Mapping[str, object]:
    rooms = (name for name in catalogues() if section in catalogue(name))
    return {key: record for name in rooms for key, record in _section(name, section).items()}


def _section(name: str, section: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", catalogue(name)[section])


def by_english(name: str, section: str) -> dict[str, Text]:
    """The texts of a section by their English text."""
    return {text.en: text for text in words(name, section).values()}


def has_text(text: Text, language: str) -> bool:
    """Whether a language has a translation of a text."""
    return language in ("en", "zh") or text.en in _translations(language)


@cache
def untranslated(language: str) -> tuple[list[str], int]:
    """The records that a language lacks, as "catalogue SECTION key", and the number of all."""
    records = [
        (f"{room} {section} {key}", [*texts_of(record, key)])
        for room in catalogues()
        for section, held in catalogue(room).items()
        for key, record in (held.items() if isinstance(held, Mapping) else enumerate(held))
    ]
    lacking = [name for name, texts in records if not all(has_text(t, language) for t in texts)]
    return lacking, len(records)


def texts_of(record: object, key: object) -> Iterator[Text]:
    """The texts of a record with this key."""
    if isinstance(record, Text):
        yield record
    elif isinstance(record, Chinese):
        yield Text(str(key), record.zh)
    elif isinstance(record, tuple):
        for part in record:
            yield from texts_of(part, key)


@cache
def _translations(language: str) -> dict[str, str]:
    """For each English text, or key of a Chinese one, its translation into a third language."""
    return read_table(FOLDER / f"{language}.toml", dict[str, str])
