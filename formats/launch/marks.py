"""What single words tell: the row of an option, the marks of a framework, the values of a word."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence

from groups.budget import spend

from .flags import NO_GROUP, OPTIONS, Row
from .shell import STEP
from .words import Source, Word


def plain_name(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def row_of(name: str) -> Row | None:
    """The row of an option; a name of one dash is none."""
    if name[:2] != "--":
        return None
    return OPTIONS.get(plain_name(name.partition("=")[0]))


def says_nothing(values: Sequence[Word]) -> bool:
    return all(word.text in ("null", "None", "~", "") for word in values)


def marks_of(words: Sequence[Word]) -> set[str]:
    """What a command has that a framework may be known by: options, modules, first words."""
    spend(STEP * len(words), "words")
    texts = [word.text for word in words if not word.why or word.text[:2] == "--"]
    found = {text.partition("=")[0] for text in texts if text[:2] == "--"}
    names = [text.rsplit("/", 1)[-1] for text in texts]
    found.update(f"{one} {other}" for one, other in itertools.pairwise(names) if one in TWO_WORDS)
    found.update(names[:8])
    found.update("vllm-openai" for text in texts if text.startswith("vllm/vllm-openai"))
    for text in texts:
        path = text.partition("=")[0].lstrip("+~")
        if "." in path[:200] and DOTTED.fullmatch(path):
            found |= beginnings([path])
    return found


def beginnings(paths: Iterable[str]) -> set[str]:
    """Every path, and everything that it stands under."""
    found = set()
    for path in paths:
        parts = path.split(".")[:8]
        found.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return found


REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]{0,120})\}")
DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
SHORT_SIZES = ("-tp", "-pp", "-cp", "-ep", "-dp")
TWO_WORDS = ("vllm", "sglang", "tune", "axolotl")
"""Programs that are known together with the word behind them."""


def is_known(plain: str) -> bool:
    return plain in NO_GROUP or plain.removeprefix("no-") in NO_GROUP


def following(words: Sequence[Word], at: int, *, many: bool = False) -> list[Word]:
    """The values that stand after an option."""
    found: list[Word] = []
    for word in words[at + 1 :] if many else words[at + 1 : at + 2]:
        option = word.text[:1] == "-" and not word.text[1:2].isdigit()
        if option or (many and found and not (word.text[:1].isdigit() or word.why)):
            break
        found.append(word)
    return found


def row_words(value: Word) -> list[Word]:
    """The values of an override: several in ``[2,4]``."""
    text = value.text
    if text[:1] != "[" or text[-1:] != "]" or text[:2] == "[[":
        return [value]
    inside = Source(value.runs)
    return [inside.word(*match.span()) for match in re.finditer(r"[^\s,\[\]]+", text)]


def whole_place(word: Word, values: Sequence[Word]) -> tuple[int, int]:
    """An option with its values, where they stand together."""
    start, end = word.place
    for value in values:
        low, high = value.place
        if not 0 <= low - end <= 200:
            break
        end = high
    return start, end
