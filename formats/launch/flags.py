"""What the options and keys of launchers and frameworks mean, as data: the files in tables/.

A row says which field an option sets: a field of `Job`, one of the model (`MODEL`), or one that
only leads to those ("world", "chunk", "embedding", "loss", "shard", "mapping" ...).

    options       --name value, --name=value; dashes and underscores are one
    keys          name under its section: model.name=value, "name": value, name = value, name: value
    variables     NAME=value in the script itself, where nothing else says it

A framework whose files have fields of their own is a `Schema`. Reinforcement learning has jobs of
several layouts, one a role; rules say which one is asked for where the user does not, and which
framework of a Job numbers its ranks. A rule is an outcome and conditions, ``path=value`` of what is
stated, both with wildcards; the first that holds counts. The tables name their sources.
"""

from __future__ import annotations

import fnmatch
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from groups.budget import spend
from groups.mesh import MAX_RANKS
from groups.stages.holdings import MAX_BATCH
from groups.stages.layers import MAX_LAYERS

from ..sections import sections
from .syntax.words import STEP, Word

AXES = ("tp", "pp", "cp", "ep")
"""Degrees that a program may have a default of; where it is not known, it is asked for."""

LIMITS = {
    **dict.fromkeys(("layers", "vpp", "first", "last", "mtp", "chunk"), MAX_LAYERS),
    **dict.fromkeys(("micro_batch", "global_batch", "seq", "positions_max"), MAX_BATCH),
    **dict.fromkeys(("micro_tokens", "step_tokens"), MAX_BATCH**2),
}
"""The largest value of a field; of all others it is MAX_RANKS."""

BOTH_ENDS = "type:transformer|embedding"
"""Megatron-DeepSpeed's way to count the embedding and the loss as a layer each (BLOOM's)."""

VARIABLE_RANK = 3


def limit_of(field: str) -> int:
    return LIMITS.get(field, MAX_RANKS)


class Row(NamedTuple):
    """What an option or a key means.

    kind: "size" (a whole number from 1), "count" (from 0), "sizes" (several), "switch", "layout",
    "nodes" (a size or a range), "devices" (a size, or a word that leaves it to the machine), "gres"
    (Slurm's resources), "word", "words" (one or several), "off" (a switch that says no),
    "partition" (how DeepSpeed cuts layers), "degree" (a size, or -1 for what remains), "text" (it
    is there).
    """

    field: str
    kind: str = "size"
    speaks: str = ""  # the framework that alone has this
    rank: int = 0  # of several that say the same, the lowest counts

    @property
    def sets(self) -> str:
        """The field of Job or of the model that it leads to."""
        return LEADS_TO.get(self.field, self.field)


class Key(NamedTuple):
    """A key of a file or of an override, and the sections in which it means that."""

    row: Row
    sections: tuple[str, ...]


# -- the tables ----------------------------------------------------------------------------------

Lines = list[list[str]]


@cache
def table(name: str) -> tuple[tuple[str, Lines], ...]:
    """The sections of a table: the head of each, and the cells of its lines.

    >>> [cells for head, lines in table("words") if head == "LAUNCHERS" for cells in lines][0]
    ['sbatch:', 'sbatch', 'salloc']
    """
    return tuple(
        (head, [line.split() for line in body.splitlines() if line and line[0] != "#"])
        for head, body in sections(__file__, f"tables/{name}.txt")
    )


def rows(lines: Iterable[list[str]], speaks: str = "") -> dict[str, Row]:
    """Rows by name, from the cells of their lines: name, field, kind and rank."""
    filled = ([*cells, *("size", "0")[len(cells) - 2 :]] for cells in lines)
    return {name: Row(field, kind, speaks, int(rank)) for name, field, kind, rank in filled}


def _options() -> dict[str, dict[str, Row]]:
    """The options of each launcher; under no name those that have dashes."""
    by_launcher: dict[str, dict[str, Row]] = {}
    for head, lines in table("options"):
        speaks, _, launcher = map(str.strip, head.partition("|"))
        by_launcher.setdefault(launcher, {}).update(rows(lines, speaks))
    return by_launcher


def _keys() -> dict[str, Key]:
    keys = {}
    for head, lines in table("keys"):
        speaks, _, where = head.partition("|")
        sections = tuple(name.strip("-") for name in where.split())
        keys |= {name: Key(row, sections) for name, row in rows(lines, speaks.strip()).items()}
    return keys


def words_of(name: str) -> dict[str, str]:
    """The words of a list, each with what it stands under."""
    lines = dict(table("words"))[name]
    under = ((line[0][:-1], line[1:]) if line[0][-1] == ":" else ("", line) for line in lines)
    return {word: what for what, words in under for word in words}


SHORT = _options()
"""Options with their dashes, which are a launcher's own: short ones, and others than elsewhere."""

OPTIONS = SHORT.pop("")
"""Options by their name without leading dashes."""

KEYS = _keys()
"""Keys by their last part, or their last two."""

MODEL = tuple(words_of("MODEL"))
"""Fields of the model: no group depends on them. ``layers`` may be a layout's text."""

TRAINING = tuple(words_of("TRAINING"))
"""What is said of the training and of the model's shape beyond MODEL: no group follows from it."""

SERVING = tuple(words_of("SERVING"))
"""What is said of a server's groups beyond a Job's sizes."""

LEADS_TO = words_of("LEADS_TO")
LAUNCHERS = words_of("LAUNCHERS")
VARIABLES = {name: Row(field) for name, field in words_of("VARIABLES").items()}
SECTIONS_OF = words_of("SECTIONS_OF")
REMOVED = words_of("REMOVED")
SLURM = {name: options.split(",") for name, options in words_of("SLURM").items()}
QUIET = frozenset(words_of("QUIET"))
CONFIGURING = frozenset(words_of("CONFIGURING"))
CONFIGURED = frozenset(words_of("CONFIGURED"))
INHERITS = frozenset(words_of("INHERITS"))
BRIDGE_RECIPES = frozenset(words_of("BRIDGE_RECIPES"))
BRIDGE_SCRIPTS = frozenset(words_of("BRIDGE_SCRIPTS"))
MEGATRON_SCRIPTS = frozenset(words_of("MEGATRON_SCRIPTS"))
MACHINE_SCRIPTS = frozenset(words_of("MACHINE_SCRIPTS"))
ADAPTERS = frozenset(words_of("ADAPTERS"))
NOT_DRAWN = frozenset(words_of("NOT_DRAWN"))
NO_GROUP = frozenset(words_of("NO_GROUP"))

_AXIS = r"(?:tensor|pipeline|pipe|model|context|expert|sequence|data|cp|tp|pp|ep|dp)"
_NAMES_SIZE = re.compile(
    rf"(?:.*[_.-])?{_AXIS}[_-](?:model[_-])?(?:parallel(?:ism)?[_-]?)?(?:size|degree|dim|world[_-]size)"
    rf"|(?:.*[_.-])?{_AXIS}[_-](?:model[_-])?parallelism|tp|pp|cp|ep|tp[_-]size|pp[_-]size"
)


def plain_name(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def row_of(name: str) -> Row | None:
    """The row of an option; a name of one dash is none."""
    if name[:2] != "--":
        return None
    return OPTIONS.get(plain_name(name.partition("=")[0]))


def is_known(plain: str) -> bool:
    return plain in NO_GROUP or plain.removeprefix("no-") in NO_GROUP


def names_a_size(name: str) -> bool:
    """Whether a name that no table has still looks like the size of an axis.

    >>> [names_a_size(name) for name in ("tensor_parallel_dim", "pp-size", "batch-size", "tp")]
    [True, True, False, True]
    """
    return len(name) < 80 and bool(_NAMES_SIZE.fullmatch(name.lower()))


NAMES = words_of("NAMES")
"""Published models by what others call them, in small letters and without dashes."""

VARIANTS = frozenset(words_of("VARIANTS"))
"""Last words of a name that leave the shape as it is."""

PLACEHOLDERS = ("MODEL", "RECIPE", "CONFIG")
"""What a written command has where a model is to be named (tables/targets.txt)."""

_RECIPE = re.compile(r"[-_. ](?:pretrain|finetune|sft|peft|config|recipe)(?:[-_. ].*)?$|\.ya?ml$")


def published_model(name: str) -> str:
    """The id in training/models.toml of what a checkpoint or a recipe is called, empty for others.

    >>> published_model("meta-llama/Llama-3.1-70B-Instruct"), published_model("deepseek_v3_16b")
    ('llama3-70b', '')
    >>> published_model("llama31_405b_pretrain_256gpu_gb200_fp8mx_config")
    'llama3-405b'
    """
    plain = _RECIPE.sub("", name.rstrip("/").rsplit("/", 1)[-1].lower()[:200])
    words = re.split(r"[-_ ]+", plain)
    while len(words) > 1 and words[-1] in VARIANTS:
        words.pop()
    return NAMES.get("".join(words), "")


# -- frameworks with tables of their own ---------------------------------------------------------

Stated = Mapping[str, str]
"""Texts of single values, by path or option."""


@dataclass(frozen=True)
class Schema:
    """One framework's keys and options; what is asked for is the layout of one of its roles.

    Its marks are what only this framework has: any of the sets, all of whose words must be there. A
    word is the path of a key or its beginning, an option with its dashes, or a module.
    """

    name: str
    makes: Sequence[Sequence[str]]  # of the framework of a Job that numbers the ranks so
    asks: Sequence[
        Sequence[str]
    ]  # of the role where nobody says it ("*": each in turn); else the first is
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
    unsaid: Mapping[str, object]  # how it trains where its text is silent
    etp: int  # of experts where the text is silent; 0: as tp

    @property
    def fields(self) -> frozenset[str]:
        """What the table can say; a file that is named elsewhere can say no more."""
        tables = (self.keys, self.options, self.role_keys)
        return frozenset(row.field for rows in tables for row in rows.values())

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

    def meaning(self, path: tuple[str, ...]) -> tuple[Row, str] | None:
        """What a key sets, and for which role; None if the table does not have it."""
        plain = [part.replace("-", "_") for part in path]
        size = len(self.within)
        if len(plain) > size and all(own in ("*", part) for own, part in zip(self.within, plain)):
            plain = plain[size:]
        dotted = ".".join(plain)
        if dotted in self.keys:
            return self.keys[dotted], ""
        for role, section in self.roles.items():
            row = self.role_keys.get(dotted.removeprefix(f"{section}."))
            if row and dotted.startswith(f"{section}."):
                return row, role
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


UNSAID_AS: dict[str, object] = {"true": True, "false": False} | {str(n): n for n in range(100)}
"""What a word of a schema's ``unsaid`` is, where it is no text."""


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
            unsaid={field: UNSAID_AS.get(word, word) for field, word in facts.get("unsaid", [])},
            etp=int(facts.get("etp", [["0"]])[0][0]),
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
    return next((s for s in SCHEMAS if any(mark <= words for mark in s.marks)), None)


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

_TWO_WORDS = ("vllm", "sglang", "tune", "axolotl", "swift", "megatron")
"""Programs that are known together with the word behind them."""
