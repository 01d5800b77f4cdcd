"""Frameworks whose files and commands have their own table of fields: tables/schemas.toml.

Reinforcement learning has jobs of several layouts, one a role; rules say which one is asked for
where the user does not, and which framework of a Job numbers its ranks. The first rule counts whose
conditions hold.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property

from groups.budget import spend
from groups.frameworks import FRAMEWORKS, framework_of
from groups.tables import Rows, read_table

from .flags import OPTIONS, SHORT, TABLES, Fields, Row
from .syntax.words import STEP, Word

SettingTexts = Mapping[str, str]
"""The texts of settings with a single value, by path or option."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """A condition on a file: one of these roles, and every path of `where` has a value that matches
    its pattern. Paths and patterns may have shell wildcards."""

    roles: tuple[str, ...] = ()  # none: any
    where: Mapping[str, str] = field(default_factory=dict)
    of_role: Mapping[str, str] = field(default_factory=dict)  # paths under the role's own section

    def holds(self, texts: SettingTexts, role: str) -> bool:
        """Whether the rule applies to a file with these texts, read for this role."""
        if self.roles and role not in self.roles:
            return False
        own = {f"{role}.{path}": value for path, value in self.of_role.items()}
        return all(
            _matches(texts, path, value) for path, value in (*self.where.items(), *own.items())
        )


def _matches(texts: SettingTexts, path: str, value: str) -> bool:
    paths = fnmatch.filter(texts, path) if "*" in path else {path} & texts.keys()
    return bool(fnmatch.filter([texts[path] for path in paths], value))


@dataclass(frozen=True, kw_only=True)
class Makes(Rule):
    """The framework of a Job that numbers ranks in the same way."""

    framework: str

    def __post_init__(self) -> None:
        if self.framework not in FRAMEWORKS:
            raise ValueError(f"framework should be one of {', '.join(FRAMEWORKS)}")


@dataclass(frozen=True, kw_only=True)
class Asks(Rule):
    """The role to read if none is requested; empty: each in turn."""

    role: str = ""


@dataclass(frozen=True, kw_only=True)
class Under:
    """A table for a section of another table; without a section, for its top level."""

    table: str  # "megatron", "options", or a framework or launcher whose options are keys too
    section: str = ""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """One framework's keys and options; the layout of one of its roles is read.

    Marks identify the framework: sets of words, one of which must be in the text completely. A word
    is the path of a key or its beginning, an option with its dashes, or a module.
    """

    name: str = ""
    marks: tuple[frozenset[str], ...]
    makes: tuple[Makes, ...]
    asks: tuple[Asks, ...] = ()  # none: for the first role
    roles: Mapping[str, str] = field(default_factory=dict)  # the section of each
    follows: Mapping[str, str] = field(default_factory=dict)  # whose values a silent role has
    keys: Fields = field(default_factory=dict)  # by path, dashes as underscores
    keys_of: tuple[Under, ...] = ()
    role_keys: Fields = field(default_factory=dict)  # under the section of any role
    role_keys_of: tuple[Under, ...] = ()
    options: Fields = field(default_factory=dict)
    options_like: tuple[str, ...] = ()  # frameworks whose options it takes too
    has_all_options: bool = False  # Megatron's do not count beside them
    switches: tuple[str, ...] = ()  # options without a value that say nothing here
    switch_values: bool = False  # its switches take a truth value, as Hugging Face's parser has it
    gated_width: int = 1  # of a gated MLP: by how much its width is divided for each matrix
    within: tuple[str, ...] = ()  # a section whose keys are as if at the top, "*" for any name
    inherits: tuple[str, ...] = ("defaults",)  # keys that take over what other files say
    own_files: tuple[str, ...] = ()  # how its own files begin, which say 1 of every size
    unsaid: Mapping[str, int | str | bool] = field(default_factory=dict)  # how it trains by itself
    unsaid_of: Mapping[str, Mapping[str, int | str | bool]] = field(default_factory=dict)
    """How it trains by itself where the Job's framework is this one."""
    etp: int = 0  # of experts where the text is silent; 0: as tp

    @cached_property
    def key_rows(self) -> dict[str, Row]:
        return {**_under(self.keys_of), **self.keys}

    @cached_property
    def option_rows(self) -> Fields:
        """Its options, and those of frameworks that it is like."""
        like = (_file().frameworks[name].options for name in self.options_like)
        return {**dict(itertools.chain.from_iterable(one.items() for one in like)), **self.options}

    @cached_property
    def role_key_rows(self) -> dict[str, Row]:
        return {**_under(self.role_keys_of), **self.role_keys}

    @cached_property
    def serves(self) -> bool:
        """Whether the framework starts an inference server."""
        return any(framework_of(rule.framework).serves for rule in self.makes) and not self.roles

    @cached_property
    def fields(self) -> frozenset[str]:
        """Fields that the table can set; a file named elsewhere can set only these."""
        tables = (self.key_rows, self.option_rows, self.role_key_rows)
        return frozenset(row.field for table in tables for row in table.values())

    def chosen(self, texts: SettingTexts, roles: Iterable[str]) -> str:
        """The role to read when none is requested: the first that a rule of ``asks`` selects."""
        roles = list(roles)
        for rule in self.asks or [Asks()]:
            for role in [rule.role] if rule.role else roles:
                if rule.holds(texts, role):
                    return role
        return ""

    def job_of(self, texts: SettingTexts, role: str) -> str:
        """The framework of the Job, by a file's texts and the role to read."""
        role = role or self.chosen(texts, self.roles)
        return next(rule.framework for rule in self.makes if rule.holds(texts, role))

    def meaning(self, path: tuple[str, ...]) -> tuple[Row, str] | None:
        """The meaning of a key and the role that it is for; None if the table does not have it."""
        plain = [part.replace("-", "_") for part in path]
        size = len(self.within)
        if len(plain) > size and all(own in ("*", part) for own, part in zip(self.within, plain)):
            plain = plain[size:]
        dotted = ".".join(plain)
        if dotted in self.key_rows:
            return self.key_rows[dotted], ""
        for role, section in self.roles.items():
            row = self.role_key_rows.get(dotted.removeprefix(f"{section}."))
            if row and dotted.startswith(f"{section}."):
                return row, role
        return None


@dataclass(frozen=True)
class SchemaFile:
    """The content of schemas.toml: Megatron's names, which many frameworks keep, and the
    frameworks' own."""

    megatron: Fields
    frameworks: Mapping[str, Schema]


@cache
def _file() -> SchemaFile:
    return read_table(TABLES / "schemas.toml", SchemaFile)


def _under(tables: Sequence[Under]) -> dict[str, Row]:
    """The rows of tables for sections of another one."""
    options = {name.replace("-", "_"): row for name, row in OPTIONS.items()}
    shared: dict[str, Fields] = {"megatron": _file().megatron, "options": options}
    return {
        f"{under.section}.{name}".lstrip("."): row
        for under in tables
        for name, row in (shared.get(under.table) or _named_options(under.table)).items()
    }


def _named_options(framework: str) -> Fields:
    """The options of a framework, or of a launcher, by the names of keys."""
    options = SHORT.get(framework) or _file().frameworks[framework].options
    return {name.lstrip("-").replace("-", "_"): row for name, row in options.items()}


SCHEMAS = Rows(lambda: {name: replace(s, name=name) for name, s in _file().frameworks.items()})
"""Schemas by name, in the order in which they are tried."""


def schema_of(words: set[str]) -> Schema | None:
    """The framework that some of the words belong to alone."""
    return next((s for s in SCHEMAS.values() if any(mark <= words for mark in s.marks)), None)


def marks_of(words: Sequence[Word]) -> set[str]:
    """The marks of a command that a framework may be recognised by: options, modules, first
    words."""
    spend(STEP * len(words), "words")
    texts = [word.text for word in words if not word.why or word.text[:2] == "--"]
    marks = {text.partition("=")[0] for text in texts if text[:2] == "--"}
    names = [text.rsplit("/", 1)[-1] for text in texts]
    marks.update(
        f"{first} {other}" for first, other in itertools.pairwise(names) if first in _TWO_WORDS
    )
    marks.update(names[:8])
    marks.update({"trtllm-serve"}.intersection(names))  # behind srun and all its options
    marks.update("vllm-openai" for text in texts if text.startswith("vllm/vllm-openai"))
    for text in texts:
        path = text.partition("=")[0].lstrip("+~")
        if "." in path[:200] and _DOTTED.fullmatch(path):
            marks |= beginnings([path])
    return marks


def beginnings(paths: Iterable[str]) -> set[str]:
    """The dotted paths together with all of their prefixes."""
    prefixes = set[str]()
    for path in paths:
        parts = path.split(".")[:8]
        prefixes.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
    return prefixes


_DOTTED = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")

_TWO_WORDS = ("vllm", "sglang", "tune", "axolotl", "swift", "megatron", "colossalai", "lightning")
"""Programs that are recognised together with the word after them."""
