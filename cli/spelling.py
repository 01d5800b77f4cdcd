"""Other names of options: Megatron's and launchers' names are translated to ours, and unknown ones
are answered with the likely option."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Collection, Iterator, Sequence

CHUNK = "chunk"
"""Layers of a chunk, where we have the number of chunks."""

OTHER = {"world": "gpus", "seq": "sequence", CHUNK: "vpp"}
"""Fields of launch files whose options have other names here."""

BESIDE = ("recompute_method", "recompute_layers")
"""Fields that refine another one and have no effect here."""

MODELS_OWN = ("--model", "--changes")
"""Options that set a shape here: a published model, and what differs from it."""

AXES = {
    **{"tensor": "tp", "pipeline": "pp", "pipe": "pp", "context": "cp", "expert": "ep"},
    "data": "dp",
}
"""Axes by the words in names of sizes: tensor-parallel-size."""


def known_options(
    argv: Sequence[str], known: Collection[str], switches: Collection[str] = ()
) -> list[str]:
    """The words of a command line with options of launch files under our names; those about
    training stand first, so that our own options override them.

    switches: those that are on or off; on where neither is said, as launch commands have them.

    >>> known_options(["--tensor-model-parallel-size", "2", "dp"], ["--tp"])
    ['--tp', '2', 'dp']
    >>> known_options(["--nproc_per_node=4"], ["--gpus-per-node"])
    ['--gpus-per-node=4']
    >>> known_options(["memory", "--use-distributed-optimizer", "--sequence-parallel"],
    ...               ["--zero", "--sequence-parallel"], ["--sequence-parallel"])
    ['--zero=1', 'memory', '--sequence-parallel=on']
    """
    words, theirs = list[str](), list[list[str]]()
    left = [*argv]
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if not name.startswith("--"):
            words.append(word)
        elif name in known or (ours := _ours(name, known)):
            name = name if name in known else ours
            if name in switches and not equals and (not left or left[0].startswith("--")):
                equals, value = "=", "on"
            words.append(f"{name}{equals}{value}")
        elif count := _words_of(word):
            theirs.append([word, *left[: count - 1]])
            del left[: count - 1]
        else:
            words.append(word)
    return [*_translated(theirs, known), *words]


def nearest(name: str, known: Collection[str]) -> list[str]:
    """The options with names most similar to a misspelt one.

    >>> nearest("--tensor-parallel-size", ["--tp"]), nearest("--pressets", ["--preset", "--pp"])
    (['--tp'], ['--preset'])
    """
    axis = re.fullmatch(r"--([a-z]+)[-_](?:model[-_])?parallel(?:[-_]size|[-_]degree)?", name)
    if axis and f"--{AXES.get(axis[1])}" in known:
        return [f"--{AXES[axis[1]]}"]
    from formats.launch.flags import row_of
    from formats.launch.training import SHAPE

    row = row_of(name.lower())
    if row is not None and (option := _option(row.field)) in known:
        return [option]
    if row is not None and row.field in SHAPE and set(MODELS_OWN) <= {*known}:
        return [*MODELS_OWN]
    return difflib.get_close_matches(name, known, n=2, cutoff=0.7)


def _option(field: str) -> str:
    return f"--{OTHER.get(field, field).replace('_', '-')}"


def _ours(name: str, known: Collection[str]) -> str:
    lower = name.lower().replace("_", "-")
    if lower in known:
        return lower
    from formats.launch.flags import row_of  # tables that other words do without

    row = row_of(lower)
    if row is None:
        return ""
    option = _option(row.field)
    is_size = row.kind in ("size", "count", "nodes", "devices") and row.field != CHUNK
    return option if is_size and option in known else ""


def _words_of(word: str) -> int:
    """The number of words of a launch command's option, with its own; 0 for no option."""
    from formats.launch.flags import row_of

    row = row_of(word.partition("=")[0].lower())
    if row is None:
        return 0
    return 1 if row.kind in ("switch", "off") or "=" in word else 2


def _translated(theirs: Sequence[Sequence[str]], known: Collection[str]) -> Iterator[str]:
    """Options of a launch command as ours; those without an effect unchanged.

    >>> [*_translated([["--recompute-granularity", "full"], ["--bf16"]], ["--recompute"])]
    ['--recompute=full', '--bf16']
    """
    if not theirs:
        return
    from formats.launch.flags import row_of  # with its room, which few commands enter

    taken = []
    for option in theirs:
        row = row_of(option[0].partition("=")[0].lower())
        others = [other for other in theirs if other is not option]
        says_nothing = _options_of(theirs, known) == _options_of(others, known)
        is_beside = row is not None and row.field in BESIDE and bool(_options_of(others, known))
        if is_beside or not says_nothing or _options_of([option], known):
            taken.append(option)
    yield from (f"{name}={value}" for name, value in _options_of(taken, known).items())
    yield from (word for option in theirs if option not in taken for word in option)


def _options_of(theirs: Sequence[Sequence[str]], known: Collection[str]) -> dict[str, str]:
    """Our options for the training that these options of a launch command set."""
    from formats.launch import parse
    from formats.launch.training import training_of

    if not theirs:
        return {}
    fields = training_of(parse(shlex.join(word for option in theirs for word in option)))
    options = {_option(name): _text(name, value) for name, value in fields.items()}
    return {name: value for name, value in options.items() if name in known and value}


def _text(name: str, value: object) -> str:
    from groups.inputs import inputs_of
    from training.recipe import Training

    rows = inputs_of(Training)
    return rows[name].text(value) if name in rows else str(value)
