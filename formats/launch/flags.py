"""The meaning of options and keys of launchers and frameworks, and other words of launch files, as
data: the files in tables/, which name their sources.

A row says which field an option sets: a field of `Job`, one of the model (`MODEL`), or one that
only leads to those ("world", "chunk", "embedding", "loss", "shard", "mapping" ...).

    options       --name value, --name=value; dashes and underscores are one
    keys          name under its section: model.name=value, "name": value, name = value, name: value
    variables     NAME=value in the script itself, where nothing else says it

A framework whose files have fields of their own is a `schemas.Schema`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import Literal

from groups.layout import Job
from groups.mesh import MAX_RANKS
from groups.stages.holdings import MAX_BATCH
from groups.stages.layers import MAX_LAYERS
from groups.tables import Rows, read_table

AXES = ("tp", "pp", "cp", "ep")
"""Sizes that a program may have a default for; if that is unknown, the user is asked."""

LIMITS = {
    **dict.fromkeys(("layers", "vpp", "first", "last", "mtp", "chunk"), MAX_LAYERS),
    **dict.fromkeys(("micro_batch", "global_batch", "seq", "positions_max"), MAX_BATCH),
    **dict.fromkeys(("micro_tokens", "step_tokens", "budget"), MAX_BATCH**2),
    **dict.fromkeys(("served_length", "served_requests", "served_batched"), 2**30),
}
"""The largest value of a field; MAX_RANKS for all others."""

BOTH_ENDS = "type:transformer|embedding"
"""Megatron-DeepSpeed's option that counts the embedding and the loss as a layer each (BLOOM's)."""

VARIABLE_RANK = 3


def limit_of(field: str) -> int:
    return LIMITS.get(field, MAX_RANKS)


Kind = Literal[
    "size",  # a whole number from 1
    "count",  # from 0
    "degree",  # a size, or -1 for what remains
    "sizes",  # several
    "list",  # several, with commas between
    "listed",  # how many words stand there, with commas between
    "slots",  # how many stand behind a host
    "nodes",  # a size or a range
    "devices",  # a size, or a word that leaves it to the machine
    "gres",  # Slurm's resources
    "switch",
    "off",  # a switch that says no
    "word",
    "words",  # one or several
    "layout",
    "partition",  # how DeepSpeed cuts layers
    "text",  # it is there
    "tokens",  # a size that may end with k, K, m ...
    "share",  # a number above 0, 1 at most
    "weights",  # a server's formats
    "cache",
    "object",  # of JSON
]


@dataclass(frozen=True)
class Row:
    """The meaning of an option or a key."""

    field: str
    kind: Kind = "size"
    rank: int = 0  # of several that say the same, the lowest counts
    framework: str = ""  # that alone has this

    def __post_init__(self) -> None:
        if self.field not in FIELDS:
            raise ValueError(f"field should be one of a job, not {self.field!r}")

    @property
    def sets(self) -> str:
        """The field of Job or of the model that it sets."""
        return LEADS_TO.get(self.field, self.field)


Fields = Mapping[str, Row]
"""The meaning of options or keys, by name."""


@dataclass(frozen=True)
class Key:
    """A key of a file or of an override, and the sections in which it has this meaning."""

    row: Row
    sections: tuple[str, ...]


# -- the tables ----------------------------------------------------------------------------------

TABLES = Path(__file__).parent / "tables"


@dataclass(frozen=True)
class OptionGroup:
    """Options of one framework or launcher in options.toml."""

    options: Fields
    framework: str = ""
    launcher: str = ""


@dataclass(frozen=True)
class KeyGroup:
    """Keys of keys.toml, and the sections in which they have this meaning; "" is the top."""

    sections: tuple[str, ...]
    keys: Fields
    framework: str = ""


def rows_of(options: Fields, framework: str) -> dict[str, Row]:
    """Rows of one framework alone, if it is named."""
    return {name: replace(row, framework=framework) for name, row in options.items()}


@cache
def _options() -> dict[str, dict[str, Row]]:
    """The options of each launcher; under "" those with two dashes."""
    by_launcher: dict[str, dict[str, Row]] = {}
    file = read_table(TABLES / "options.toml", dict[str, tuple[OptionGroup, ...]])
    for group in file["group"]:
        options = by_launcher.setdefault(group.launcher, {})
        options.update(rows_of(group.options, group.framework))
    return by_launcher


def _keys() -> dict[str, Key]:
    file = read_table(TABLES / "keys.toml", dict[str, tuple[KeyGroup, ...]])
    return {
        name: Key(row, group.sections)
        for group in file["group"]
        for name, row in rows_of(group.keys, group.framework).items()
    }


SHORT = Rows(lambda: {name: options for name, options in _options().items() if name})
"""Options with their dashes, by launcher: short ones, and those with another meaning than
elsewhere; of long ones dashes and underscores are one here too."""

OPTIONS = Rows(lambda: _options()[""])
"""Options by their names without leading dashes."""

KEYS = Rows(_keys)
"""Keys by their last part, or their last two."""

ByWhat = Mapping[str, tuple[str, ...]]
"""Words by their meaning."""


@dataclass(frozen=True)
class Keywords:
    """Keywords of a shell, by their change of the number of undecided branches."""

    deeper: tuple[str, ...]
    shallower: tuple[str, ...]
    same: tuple[str, ...]


@dataclass(frozen=True)
class SlurmOption:
    """Options of Slurm, and the variables that it sets to their values."""

    options: tuple[str, ...]
    variables: tuple[str, ...]


@dataclass(frozen=True)
class WordLists:
    """The lists of words.toml, which describes each."""

    model: tuple[str, ...]
    training: tuple[str, ...]
    serving: tuple[str, ...]
    served: tuple[str, ...]
    variants: tuple[str, ...]
    numbers: tuple[str, ...]
    switches: tuple[str, ...]
    prefixes: tuple[str, ...]
    starters: tuple[str, ...]
    quiet: tuple[str, ...]
    configuring: tuple[str, ...]
    of_options: tuple[str, ...]
    of_others: tuple[str, ...]
    config_groups: tuple[str, ...]
    configured: tuple[str, ...]
    inherits: tuple[str, ...]
    megatron_scripts: tuple[str, ...]
    bridge_scripts: tuple[str, ...]
    bridge_recipes: tuple[str, ...]
    machine_scripts: tuple[str, ...]
    adapters: ByWhat
    peft: tuple[str, ...]
    not_drawn: tuple[str, ...]
    not_counted: tuple[str, ...]
    with_states: tuple[str, ...]
    no_group: tuple[str, ...]
    names: ByWhat
    formats: ByWhat
    quantizations: ByWhat
    caches: ByWhat
    plain_fp8: tuple[str, ...]
    lengths: tuple[tuple[str, int], ...]
    renamed: ByWhat
    counts_for: ByWhat
    leads_to: ByWhat
    launchers: ByWhat
    variables: ByWhat
    sections_of: ByWhat
    keywords: Keywords
    slurm: tuple[SlurmOption, ...]
    removed: Mapping[str, str]
    beside: tuple[str, ...]
    shape: tuple[str, ...]
    printed: Mapping[str, str]
    wrappers: ByWhat


def by_word(words: ByWhat) -> dict[str, str]:
    """The table inverted: from each word to the name that lists it.

    >>> by_word({"llama3-8b": ("llama38b", "llama3.18b")})
    {'llama38b': 'llama3-8b', 'llama3.18b': 'llama3-8b'}
    """
    return {word: what for what, several in words.items() for word in several}


WORDS = read_table(TABLES / "words.toml", WordLists)

MODEL = WORDS.model
"""Fields of the model that groups do not depend on. ``layers`` may be a layout string."""

TRAINING = (*WORDS.training, *WORDS.switches)
"""Fields of the training and of the model's shape beyond MODEL; groups do not depend on them."""

SERVING = WORDS.serving
"""Fields of a server's groups beyond a Job's sizes."""

SERVED = WORDS.served
"""Fields of a server's memory, by the page's names."""

LEADS_TO = by_word(WORDS.leads_to)

FIELDS = frozenset(
    (
        *(own.name for own in fields(Job)),
        *MODEL,
        *TRAINING,
        *SERVING,
        *SERVED,
        *LEADS_TO,
        "positions_max",
    )
)
"""Fields that an option or a key may set."""

LAUNCHERS = by_word(WORDS.launchers)
VARIABLES = {
    name: Row(field, "word" if field in WORDS.served else "size")
    for name, field in by_word(WORDS.variables).items()
}
SECTIONS_OF = by_word(WORDS.sections_of)
REMOVED = WORDS.removed
PRINTED = WORDS.printed
QUIET = frozenset(WORDS.quiet)
NOT_DRAWN = frozenset(WORDS.not_drawn)
NOT_COUNTED = frozenset(WORDS.not_counted)
NO_GROUP = frozenset(WORDS.no_group)

_AXIS = (
    r"(?:tensor|pipeline|pipe|model|context|expert|sequence|data|[dp]?cp|e?tp|pp|ep|e?dp|[smv]p)"
)
_NAMES_SIZE = re.compile(
    rf"(?:.*[_.-])?{_AXIS}[_-](?:model[_-])?(?:parallel(?:ism)?[_-]?)?(?:size|degree|dim|world[_-]size)"
    rf"|(?:.*[_.-])?{_AXIS}[_-](?:model[_-])?parallelism|[dp]?cp|e?tp|pp|ep"
)


def plain_name(name: str) -> str:
    return name.lstrip("-").replace("_", "-")


def row_behind(launcher: str, name: str) -> Row | None:
    """The row of an option that a launcher takes.

    >>> row_behind("accelerate", "--num_processes").field, row_behind("slurm", "-N").field
    ('world', 'nodes')
    """
    own = SHORT.get(launcher, {})
    return own.get(f"--{plain_name(name)}" if name[:2] == "--" else name)


def row_of(name: str) -> Row | None:
    """The row of an option; None for a name with one dash."""
    if name[:2] != "--":
        return None
    return OPTIONS.get(plain_name(name.partition("=")[0]))


def is_known(plain: str) -> bool:
    return plain in NO_GROUP or plain.removeprefix("no-") in NO_GROUP


def names_a_size(name: str) -> bool:
    """Whether an unknown name looks like the size of an axis.

    >>> [names_a_size(name) for name in ("tensor_parallel_dim", "pp-size", "batch-size", "tp")]
    [True, True, False, True]
    """
    return len(name) < 80 and bool(_NAMES_SIZE.fullmatch(name.lower()))


def names_a_shape(plain: str) -> bool:
    """Whether an unknown name is about layers, experts, widths, ranks, replicas or sharding, so
    that what depends on these may differ.

    >>> [names_a_shape(name) for name in ("first-k-dense-layers", "tp-extend-ep", "expert.width")]
    [True, True, True]
    >>> [names_a_shape(name) for name in ("log-layers", "node-rank-file", "lr", "dropout")]
    [False, False, False, False]
    """
    words = {*plain[:80].replace(".", "-").split("-")}
    return words.isdisjoint(WORDS.beside) and not words.isdisjoint(WORDS.shape)


NAMES = by_word(WORDS.names)
"""Published models by their other names, in lower case and without dashes."""

PLACEHOLDERS = ("MODEL", "RECIPE", "CONFIG")
"""Placeholders for a model in a written command (tables/targets.toml)."""

_RECIPE = re.compile(r"[-_. ](?:pretrain|finetune|sft|peft|config|recipe)(?:[-_. ].*)?$|\.ya?ml$")


def published_model(name: str) -> str:
    """The id in training/models.toml of a checkpoint's or recipe's name; empty for others.

    >>> published_model("meta-llama/Llama-3.1-70B-Instruct"), published_model("deepseek_v3_16b")
    ('llama3-70b', '')
    >>> published_model("llama31_405b_pretrain_256gpu_gb200_fp8mx_config")
    'llama3-405b'
    """
    words, _ = _of_name(name)
    return NAMES.get("".join(words), "")


def named_format(name: str) -> str:
    """The format of a checkpoint's weights, by the end of its name; empty if that does not tell.

    >>> named_format("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8"), named_format("org/m-GPTQ-Int8")
    ('fp8', 'int8')
    >>> named_format("RedHatAI/Qwen3-32B-FP8-dynamic"), named_format("nvidia/Llama-3.1-8B-FP8")
    ('fp8_plain', 'fp8_plain')
    >>> named_format("deepseek-ai/DeepSeek-V3"), named_format("")
    ('', '')
    """
    _, variants = _of_name(name)
    found = next((_FORMATS[word] for word in variants if word in _FORMATS), "")
    owner = name.lower().rpartition("/")[0].rpartition("/")[2]
    return "fp8_plain" if found == "fp8" and owner in WORDS.plain_fp8 else found


def longest_of(name: str) -> int:
    """The tokens of the longest request that a model was made for, by its name; 0: not known.

    >>> longest_of("meta-llama/Llama-3.1-70B-Instruct"), longest_of("Qwen/Qwen3-32B")
    (131072, 40960)
    >>> longest_of("/data/mine")
    0
    """
    words, variants = _of_name(name)
    plain = "".join((*words, *reversed(variants)))
    return next((size for own, size in WORDS.lengths if fnmatch.fnmatchcase(plain, own)), 0)


def keeps_states(name: str) -> bool:
    """Whether some layers of a model keep a state instead of keys and values, by its name.

    >>> keeps_states("Qwen/Qwen3-Next-80B-A3B-Instruct"), keeps_states("Qwen/Qwen3-8B")
    (True, False)
    """
    words, _ = _of_name(name)
    return "".join(words).startswith(WORDS.with_states)


_FORMATS = by_word(WORDS.formats)

FORMATS_OF = {"weights": by_word(WORDS.quantizations), "cache": by_word(WORDS.caches)}
"""The formats of servers' options, by the kind of a row."""


def _of_name(name: str) -> tuple[list[str], list[str]]:
    """The words of a model in a name, and those of its variant from the last one."""
    plain = _RECIPE.sub("", name.rstrip("/").rsplit("/", 1)[-1].lower()[:200])
    words, variants = re.split(r"[-_ ]+", plain), []
    while len(words) > 1 and words[-1] in WORDS.variants:
        variants.append(words.pop())
    return words, variants
