"""The commands that a file runs in a container or on a cluster.

>>> from .files import read_file
>>> from .words import Source
>>> text = "env: {TP: 2}\\nargs: [--tp, $(TP)]\\ncommand: [torchrun, a.py]"
>>> [word.text for word in next(commands_of(read_file(Source.of(text), "yaml")[0]))]
['torchrun', 'a.py', '--tp', '2', '-e', 'TP=2']

Source: kubernetes.io/docs, Define Dependent Environment Variables; Pod v1 core.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from .files import COMMANDS, Entry
from .words import CommandRun, Word, sliced

ENVIRONMENTS = ("env", "environment", "envs")
"""Keys of the variables of a command, as a mapping, as NAME=value, or as names with values."""


def commands_of(entries: Iterable[Entry]) -> Iterator[list[Word]]:
    """The words of each command in a file; a text of several words is a command of its own. Its
    variables are set before such a text, and are options of other commands, as docker's.

    >>> from .files import read_file
    >>> from .words import Source
    >>> source = Source.of("spec:\\n  args: [--tp, 2]\\n  command: [torchrun, a.py]")
    >>> [[word.text for word in words] for words in commands_of(read_file(source, "yaml")[0])]
    [['torchrun', 'a.py', '--tp', '2']]
    """
    found: dict[tuple[str, ...], dict[str, list[Word]]] = {}
    variables: dict[tuple[str, ...], list[Word]] = {}
    name = None
    for entry in entries:
        if entry.path[-1] in COMMANDS:
            found.setdefault(entry.path[:-1], {})[entry.path[-1]] = entry.values
        at = next((at for at, key in enumerate(entry.path) if key in ENVIRONMENTS), None)
        if at is None or not entry.values:
            continue
        key, own = entry.path[at + 1 :], variables.setdefault(entry.path[:at], [])
        if key[1:] == ("name",):
            name = entry.values[0]
        elif key[1:] == ("value",) and name:
            own.append(_set(name, entry.values[0]))
        elif len(key) == 1:
            own.append(_set(entry.key, entry.values[0]))
        else:
            own += [word for word in entry.values if not key and "=" in word.text]
    for path, parts in found.items():
        words = [word for name in COMMANDS for word in parts.get(name, ())]
        own, scripts = variables.get(path, []), [w for w in words if len(w.text.split(None, 1)) > 1]
        yield from ([_behind(own, word)] for word in scripts)
        if parts.keys() - {"image"} and not scripts:
            options = (Word((CommandRun("-e", *one.place),), one.place) for one in own)
            values = {name: word.after(len(name) + 1) for word in own for name in [_name_of(word)]}
            words = [_referred(word, values) for word in words]
            yield [*words, *itertools.chain.from_iterable(zip(options, own))]


def _name_of(variable: Word) -> str:
    return variable.text.partition("=")[0]


_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")


def _referred(word: Word, values: Mapping[str, Word]) -> Word:
    """A word of a command in which Kubernetes puts variables, ``$(NAME)``; what nothing here sets
    is open."""
    runs, at = list[CommandRun](), 0
    for match in _REFERENCE.finditer(word.text):
        runs += sliced(word.runs, at, match.start())
        at = match.end()
        value = values.get(match[1])
        open_runs = (run._replace(why="variable") for run in sliced(word.runs, match.start(), at))
        runs += value.runs if value else open_runs
    return Word((*runs, *sliced(word.runs, at, len(word.text))), word.at) if at else word


def _set(name: Word, value: Word) -> Word:
    """NAME=value."""
    return Word((*name.runs, CommandRun("=", *value.place), *value.runs), name.place)


def _behind(variables: Iterable[Word], script: Word) -> Word:
    """A script behind lines that set variables."""
    lines = [
        run for one in variables for run in (*one.runs, CommandRun("\n", *one.place)) if run.text
    ]
    return Word((*lines, *script.runs), script.at)
