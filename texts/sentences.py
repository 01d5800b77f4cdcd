# ruff: noqa: RUF001
"""Sentences made of facts: counted nouns, logs of hangs, notes on launch options."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Protocol

from groups.errors import LayoutError
from groups.tables import Rows

from .shapes import Chinese, Text, has_text, words, words_of_all

NOUNS = words("page", "NOUNS")
"""Singular and plural, separated by a slash if they differ; in Chinese with the counter."""

HANG, HANG_NOTES = words("hang", "HANG"), words("hang", "HANG_NOTES")
HANG_STEPS = words("hang", "HANG_STEPS")
"""Sentences by the code of a `Note` of `diagnosis.hang.account`; notices about a log; and next
steps."""

LAUNCH_NOTES = words("launch", "LAUNCH_NOTES")
"""Notes of the reader of launch commands, by code."""

PLAN_NOTES = words("launch", "PLAN_NOTES")
"""Assumptions of the reader of several roles, and warnings about a plan (`groups.plan_notes`)."""

REFUSALS: Mapping[str, Text] = Rows(
    lambda: {
        code: Text(code, one.zh) for code, one in words("refusals", "REFUSALS", Chinese).items()
    },
    "texts/refusals.toml [REFUSALS]",
)
"""Refusals by codes of the maths, which has the English sentences."""

_RUN, _PAGE = words_of_all("RUN", Text), words_of_all("PAGE", Text)


def counted(number: int, noun: str, language: str) -> str:
    """A number with its noun.

    >>> counted(1, "group", "en"), counted(1024, "group", "en"), counted(2, "node", "zh")
    ('1 group', '1,024 groups', '2 个节点')
    """
    forms = NOUNS[noun][language].split("/")
    return f"{number:,} {forms[0 if number == 1 else -1]}"


# -- hangs ---------------------------------------------------------------------------------------


def hang_sentence(code: str, facts: Mapping[str, object], language: str) -> str:
    """The sentence of a note, filled in with its facts.

    >>> hang_sentence("never-entered", {"rank": 37, "op": "", "seq": 4812, "kind": "tp"}, "en")
    'GPU 37 never entered operation 4,812 of its tp group.'
    """
    text = {**HANG, **HANG_NOTES, **HANG_STEPS}[code]
    words = {name: _fact_text(value, language) for name, value in facts.items()}
    shown = with_reason(words, language)
    shown["op"] = shown.get("op") or _RUN["operation"][language]
    if "kind" in shown:
        which = HANG["group-index" if facts.get("index") is not None else "group"][language]
        shown["which"] = which.format(**shown)
    return close_up(text[language].format(**{"place": _place(facts, language), **shown}))


def with_reason(facts: Mapping[str, object], language: str) -> dict[str, object]:
    """Facts with a reason, a refusal inside another sentence, in this language."""
    text = REFUSALS.get(str(facts.get("because", "")))
    if language == "en" or text is None or not has_text(text, language):
        return {**facts}
    return {**facts, "reason": text[language].format(**facts)}


def close_up(text: str) -> str:
    """A Chinese text without the spaces around Chinese words that replaced Latin ones.

    >>> close_up("进入第 7 次 操作 时"), close_up("这是 自定模型 的一步")
    ('进入第 7 次操作时', '这是自定模型的一步')
    """
    return re.sub("(?<=[\u4e00-\u9fff]) (?=[\u4e00-\u9fff])", "", text).replace("） ", "）")


def _place(facts: Mapping[str, object], language: str) -> str:
    known = [name for name in ("host", "node", "device") if facts.get(name) is not None]
    if "host" in known:
        known = [name for name in known if name != "node"]
    code = "place-" + "-".join(known) if known != ["node", "device"] else "place-node"
    return HANG[code][language].format(**facts) if known else ""


def _fact_text(value: object, language: str) -> str:
    """A fact as text: numbers with commas, ranks as a list, parties with their operations."""
    if isinstance(value, int):
        return f"{value:,}"
    if not isinstance(value, tuple):
        return str(value)
    if any(isinstance(item, tuple) for item in value):
        parties = (f"{_fact_text(ranks, language)} {op} {sizes}" for ranks, op, sizes in value)
        return _PAGE["semicolon"][language].join(parties)
    listed = ", ".join(str(item) for item in value[:16])
    return listed + (f" … ({len(value):,})" if len(value) > 16 else "")


# -- launch flags --------------------------------------------------------------------------------


class NoteLike(Protocol):
    """A `Note` of a reader, or an `Item`: a word of a text and how it was read."""

    @property
    def code(self) -> str: ...
    @property
    def facts(self) -> Mapping[str, object]: ...


def note_text(
    note: NoteLike,
    language: str = "en",
    *,
    label: Callable[[str], str] = str,
    refusal: Callable[[LayoutError], str] = lambda error: f"{error.what}.",
) -> str:
    """A reader's note as a sentence. label: the name of a field on the page; refusal: the sentence
    of a LayoutError."""
    word, facts = vars(note), note.facts
    if isinstance(error := word.get("error"), LayoutError):
        return f"{word['name']}: {refusal(error)}"
    if "name" in word:
        shown = {"name": word["name"], "value": _short(word["value"])}
        facts = {**shown, "sets": label(word["sets"]), **facts}
    if "field" in facts:
        facts = {**facts, "field": label(str(facts["field"]))}
    text = PLAN_NOTES[note.code] if note.code in PLAN_NOTES else LAUNCH_NOTES[note.code]
    return text[language].format(**facts)


LONGEST_VALUE = 40
"""The longest value in a sentence, in characters."""


def _short(value: str) -> str:
    """A value for a sentence: printable, and cut to a length."""
    text = repr(value[: LONGEST_VALUE + 1])
    return (text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…").strip("'")
