"""What the files and commands of one framework say of a layout: its part of tables/schemas.txt.

Reinforcement learning has jobs of several layouts, one a role; rules say which one is asked for
where the user does not, and which framework of a Job numbers its ranks. A rule is an outcome and
conditions, ``path=value`` of what is stated, both with wildcards; the first that holds counts.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from groups.budget import spend

from .flags import OPTIONS, Row, rows, table
from .shell import STEP
from .words import Word

Stated = Mapping[str, str]
"""Texts of single values, by path or option."""

Rule = Sequence[str]
"""An outcome, and the conditions of it."""


class OptionMeaning(NamedTuple):
    """What a key sets, and for which role; a role is one of several layouts of a job."""

    row: Row
    role: str = ""


@dataclass(frozen=True)
class Schema:
    """One framework's keys and options; what is asked for is the layout of one of its roles.

    Its marks are what only this framework has: any of the sets, all of whose words must be there. A
    word is the path of a key or its beginning, an option with its dashes, or a module.
    """

    name: str
    makes: Sequence[Rule]  # of the framework of a Job that numbers the ranks so
    asks: Sequence[Rule]  # of the role where nobody says it ("*": each in turn); else the first is
    marks: Sequence[frozenset[str]]
    roles: Mapping[str, str]  # names and the sections whose ``role_keys`` are theirs
    follows: Mapping[str, str]  # role -> another one, whose values are its own where it is silent
    keys: Mapping[str, Row]  # by path, dashes as underscores
    options: Mapping[str, Row]
    role_keys: Mapping[str, Row]
    within: Sequence[str]  # a section whose keys are as if they stood at the top, "*" for any name
    inherits: Sequence[str]  # keys that take over what other files say
    defaults: tuple[str, ...]  # how names of its own files begin, which say 1 of every size
    known: bool  # the options are all there are, Megatron's do not count

    @property
    def fields(self) -> frozenset[str]:
        """What the table can say; a file that is named elsewhere can say no more."""
        tables = (self.keys, self.options, self.role_keys)
        return frozenset(row.field for rows in tables for row in rows.values())

    def is_meant(self, words: frozenset[str] | set[str]) -> bool:
        return any(mark <= words for mark in self.marks)

    def chosen(self, stated: Stated, roles: Iterable[str]) -> str:
        """The role that is asked for if nobody says which; the first one is what is trained."""
        roles = list(roles)
        for rule, *conditions in self.asks or [["*"]]:
            for role in roles if rule == "*" else [rule]:
                if _hold(conditions, stated, role):
                    return role
        return ""

    def job_of(self, stated: Stated, role: str) -> str:
        """The framework of a Job, by what is stated and the role that is asked for."""
        role = role or self.chosen(stated, self.roles)
        return next(job for job, *conditions in self.makes if _hold(conditions, stated, role))

    def meaning(self, path: tuple[str, ...]) -> OptionMeaning | None:
        """What a key sets; None if the table does not have it."""
        plain = [part.replace("-", "_") for part in path]
        size = len(self.within)
        if len(plain) > size and all(own in ("*", part) for own, part in zip(self.within, plain)):
            plain = plain[size:]
        dotted = ".".join(plain)
        if dotted in self.keys:
            return OptionMeaning(self.keys[dotted])
        for role, section in self.roles.items():
            row = self.role_keys.get(dotted.removeprefix(f"{section}."))
            if row and dotted.startswith(f"{section}."):
                return OptionMeaning(row, role)
        return None


def _hold(conditions: Iterable[str], stated: Stated, role: str) -> bool:
    """Whether all of a rule's conditions do; ``role`` is stated too, and may stand in a path."""
    for condition in conditions:
        path, _, value = condition.replace("{role}", role).partition("=")
        paths = fnmatch.filter(stated, path) if "*" in path else {path} & stated.keys()
        values = [role] if path == "role" else [stated[path] for path in paths]
        if not fnmatch.filter(values, value):
            return False
    return True


# -- the tables ----------------------------------------------------------------------------------


def _schemas() -> Iterator[Schema]:
    sections = dict(table("schemas"))
    shared = {
        "MEGATRON": rows(sections.pop("MEGATRON")),
        "OPTIONS": {name.replace("-", "_"): row for name, row in OPTIONS.items()},
    }
    for name in (head for head in sections if " " not in head):
        facts: dict[str, list[list[str]]] = {}
        for fact, *words in sections[name]:
            facts.setdefault(fact, []).append(words)
        yield Schema(
            name,
            facts["makes"],
            facts.get("asks", []),
            [frozenset(" ".join(words).split(" + ")) for words in facts["mark"]],
            {words[0]: words[-1] for words in facts.get("role", [])},
            dict(facts.get("follows", [])),
            *(
                _rows(sections.get(f"{name} {kind}", []), shared)
                for kind in ("keys", "options", "role_keys")
            ),
            within=facts.get("within", [[]])[0],
            inherits=facts.get("inherits", [["defaults"]])[0],
            defaults=tuple(facts.get("defaults", [[]])[0]),
            known="known" in facts,
        )


def _rows(lines: list[list[str]], shared: Mapping[str, Mapping[str, Row]]) -> dict[str, Row]:
    """The rows of a table, and of those that stand under a section of it."""
    taken = [(cells[0][:-1], shared[cells[1]]) for cells in lines if cells[0].endswith("*")]
    nested = {under + name: row for under, names in taken for name, row in names.items()}
    return nested | rows(cells for cells in lines if not cells[0].endswith("*"))


SCHEMAS = tuple(_schemas())
"""In the order in which they are tried."""


def schema_of(words: set[str]) -> Schema | None:
    """The framework that some of the words belong to alone."""
    return next((schema for schema in SCHEMAS if schema.is_meant(words)), None)


def marks_of(words: Sequence[Word]) -> set[str]:
    """What a command has that a framework may be known by: options, modules, first words."""
    spend(STEP * len(words), "words")
    texts = [word.text for word in words if not word.why or word.text[:2] == "--"]
    marks = {text.partition("=")[0] for text in texts if text[:2] == "--"}
    names = [text.rsplit("/", 1)[-1] for text in texts]
    marks.update(
        f"{first} {other}" for first, other in itertools.pairwise(names) if first in _TWO_WORDS
    )
    marks.update(names[:8])
    marks.update("vllm-openai" for text in texts if text.startswith("vllm/vllm-openai"))
    for text in texts:
        path = text.partition("=")[0].lstrip("+~")
        if "." in path[:200] and _DOTTED.fullmatch(path):
            marks |= beginnings([path])
    return marks


def beginnings(paths: Iterable[str]) -> set[str]:
    """Every path, and everything that it stands under."""
    prefixes = set()
    for path in paths:
        parts = path.split(".")[:8]
        prefixes.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return prefixes


_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

_TWO_WORDS = ("vllm", "sglang", "tune", "axolotl")
"""Programs that are known together with the word behind them."""
