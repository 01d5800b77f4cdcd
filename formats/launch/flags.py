"""What the options and keys of launchers and frameworks mean, as data: the files in tables/.

A row says which field an option sets: a field of `Job`, one of the model (`MODEL`), or one that
only leads to those ("world", "chunk", "embedding", "loss", "shard", "mapping" ...).

    options       --name value, --name=value; dashes and underscores are one
    keys          name under its section: model.name=value, "name": value, name = value, name: value
    variables     NAME=value in the script itself, where nothing else says it

The tables name their sources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from groups.mesh import MAX_RANKS
from groups.stages.holdings import MAX_BATCH
from groups.stages.layers import MAX_LAYERS

from ..sections import sections

MODEL = (
    *("layers", "vpp", "experts", "micro_batch", "global_batch", "account", "seq"),
    *("first", "last", "mtp"),
)
"""Fields of the model: no group depends on them. ``layers`` may be a layout's text."""

TRAINING = (
    *("hidden", "ffn", "heads", "kv_heads", "head_dim", "vocabulary", "top_k", "expert_ffn"),
    *("shared_expert_ffn", "q_lora_rank", "kv_lora_rank", "v_head_dim"),
    *("qk_nope_head_dim", "qk_rope_head_dim", "grouped", "latent", "moe_freq"),
    *("gated", "activation", "norm", "positions", "linear_biases", "qkv_biases", "tied"),
    *("sequence_parallel", "distributed_optimizer", "zero", "flash", "attention"),
    *("bf16", "fp16", "precision", "fp8", "fp8_recipe"),
    *("recompute", "recompute_method", "recompute_layers", "recompute_modules"),
    *("recompute_core", "recompute_whole"),
    *("offload", "offload_fraction", "offload_optimizer", "offload_param"),
)
"""What is said of the training and of the model's shape beyond MODEL: no group follows from it."""

SERVING = (
    *("dp_served", "dcp", "expert_parallel"),
    *("dp_attention", "served_cp", "served_ep", "moe_dp"),
)
"""What is said of a server's groups beyond a Job's sizes."""

AXES = ("tp", "pp", "cp", "ep")
"""Degrees that a program may have a default of; where it is not known, it is asked for."""

LIMITS = {
    **dict.fromkeys(("layers", "vpp", "first", "last", "mtp", "chunk"), MAX_LAYERS),
    **dict.fromkeys(("micro_batch", "global_batch", "seq"), MAX_BATCH),
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
    (Slurm's resources), "word" (one word), "off" (a switch that says no), "partition" (how
    DeepSpeed cuts layers), "degree" (a size, or -1 for what remains), "text" (it is there).
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


def _words(name: str) -> dict[str, str]:
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

LEADS_TO = _words("LEADS_TO")
LAUNCHERS = _words("LAUNCHERS")
VARIABLES = {name: Row(field) for name, field in _words("VARIABLES").items()}
SECTIONS_OF = _words("SECTIONS_OF")
REMOVED = _words("REMOVED")
SLURM = {name: options.split(",") for name, options in _words("SLURM").items()}
QUIET = frozenset(_words("QUIET"))
CONFIGURING = frozenset(_words("CONFIGURING"))
CONFIGURED = frozenset(_words("CONFIGURED"))
INHERITS = frozenset(_words("INHERITS"))
BRIDGE_SCRIPTS = frozenset(_words("BRIDGE_SCRIPTS"))
MACHINE_SCRIPTS = frozenset(_words("MACHINE_SCRIPTS"))
NOT_DRAWN = frozenset(_words("NOT_DRAWN"))
NO_GROUP = frozenset(_words("NO_GROUP"))

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
