"""Reads the words of a text: from words to values of fields.

>>> reading = read("torchrun --nnodes 2 train.py --tensor-model-parallel-size 4")
>>> [(one.field, one.value, one.item.start) for one in reading.assignments]
[('nodes', 2, 9), ('tp', 4, 29)]
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from groups.budget import spend

from .. import flags
from ..flags import is_known, plain_name, row_of
from ..syntax.containers import commands_of
from ..syntax.expand import Shell
from ..syntax.files import Entry, form_of, read_file
from ..syntax.pasted import Pasted, parts_of
from ..syntax.recipes import read_recipes
from ..syntax.shell import read_script
from ..syntax.started import commands_in, printed_in
from ..syntax.words import STEP, Source, Word, split
from .commands import read_command
from .elsewhere import base_name, names_configuration, note_configured
from .findings import Assignment, Findings, Reading
from .keys import (
    Scope,
    add_faults,
    note_schema,
    read_entries,
    read_file_in_script,
    read_printed,
    read_recipe,
)
from .values import assign

_HYPHENS = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
_STRANGERS = re.compile(rf"[{''.join(_HYPHENS)}\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD_WITH_STRANGERS = re.compile(rf"(?<!\S)(?=\S{{0,80}}{_STRANGERS.pattern})\S{{1,200}}")
"""Unusual hyphens and zero-width characters, and words with any of them."""


def read(text: str) -> Reading:
    """Reads the words of a text, each by itself."""
    found, parts = Findings(text), parts_of(text)
    found.starts = parts[0].form != "shell"
    _find_disguised(found)
    found.files = {part.name: part.source for part in parts if part.name}
    forms = []
    for part in sorted(parts, key=lambda part: bool(part.name)):
        if part.name not in found.taken:  # else it was read where a script takes it in
            forms.append(_read_part(found, part, len(parts) > 1))
    if len(parts[0].source.text) < len(text) and not found.assignments:  # a command in its prose
        forms = [_read_part(found, Pasted(form_of(text), Source.of(text)), True)]
    return found.reading(forms[0])


def _read_part(found: Findings, part: Pasted, is_one_of_several: bool) -> str:
    """Reads one text of a paste; returns its form. Of several, the faults of a text without any
    setting are ignored: it may be what a program printed."""
    source, form = part.source, part.form
    before = len(found.assignments), len(found.problems)
    recipes = read_recipes(source) if form == "python" else None
    if form == "printed":
        read_printed(found, part)
    elif recipes is not None:
        _read_started(found, source)
        for recipe in recipes if len(found.assignments) == before[0] else ():
            read_recipe(found, recipe)
    elif form in ("shell", "python"):
        form = "shell"
        _read_script(found, source)
        if len(found.assignments) == before[0]:  # a list out of a program, or its log
            _read_started(found, source)
            for words in printed_in(source)[:1]:
                read_command(found, words)
    else:
        _read_whole_file(found, source, form)
    if is_one_of_several and len(found.assignments) == before[0]:
        del found.problems[before[1] :]
    return form


def _read_started(found: Findings, source: Source) -> None:
    """Reads the commands that a program in Python starts."""
    for words in commands_in(source, lambda word: row_of(word) is not None):
        read_command(found, words)


def _find_disguised(found: Findings) -> None:
    """Finds options and keys that a word processor or a web page changed: no program accepts
    them."""
    for match in _WORD_WITH_STRANGERS.finditer(found.text):
        spend(STEP, "words")
        plain = _STRANGERS.sub(lambda stranger: _HYPHENS.get(stranger[0], ""), match[0])
        name = f"--{plain.lstrip('-').partition('=')[0].rstrip(':')}"
        if row_of(name) or is_known(plain_name(name)):
            facts = {"sign": f"U+{ord(_STRANGERS.findall(match[0])[0]):04X}"}
            found.add(found.unresolved, "disguised", name, "", match.span(), facts=facts)


def _read_script(found: Findings, source: Source) -> None:
    """Reads the commands of a script, the files in it, and its variables about machines."""
    shell = read_script(source, found.files)
    found.taken |= shell.taken
    found.files |= shell.kept
    add_faults(found, shell.faults)
    for words in shell.commands:
        read_command(found, words)
    for program in shell.pythons:
        _read_started(found, program)
    _read_unused(found, shell)
    for name, *place in shell.emptied:
        found.add(found.unresolved, "empty-default", f"${name}", "", (place[0], place[1]))
    for document in shell.documents:
        form = form_of(document.text)
        if form != "shell":
            read_file_in_script(found, document, form)
    for name, row in flags.VARIABLES.items():
        variable = shell.variables.get(name)
        is_set = any(one.field == row.field for one in found.assignments)
        if variable and not is_set:
            word = Word(tuple(variable.runs), (0, 0))
            worked_out = any(found.text[run.start : run.end] != run.text for run in word.runs)
            # A product is of a whole job's GPUs as likely as of a node's.
            is_total = worked_out and row.field == "gpus_per_node"
            if word.text and not word.why and not is_total:
                assign(found, name, replace(row, rank=flags.VARIABLE_RANK), [word], word.place)


def _read_unused(found: Findings, shell: Shell) -> None:
    """Reads options in a variable that no command uses: as a program's, if the script starts
    none."""
    starts = any(
        word.text.endswith(".py") or base_name(word.text) in flags.LAUNCHERS
        for words in shell.commands
        for word in words[:20]
        if words[0].text != "sbatch"
    )
    for name, variable in shell.variables.items():
        if variable.used:
            continue
        words = [word for runs in variable.values for word in split(runs, (0, 0))]
        if starts and len(words) == 1 and names_configuration(name, words[0].text):
            note_configured(found, (), name, words[0], words[0].place)
        options = [word for word in words if word.text.startswith("--") or "." in word.text]
        if not any(row_of(word.text) for word in options):
            continue
        if starts:
            found.add(found.ignored, "unused", name, "", options[0].place)
        else:
            read_command(found, words)


def _read_whole_file(found: Findings, source: Source, form: str) -> None:
    """Reads the keys of a file, and the commands that it runs in a container or on a cluster."""
    entries, left, faults = read_file(source, form)
    schema = note_schema(found, entries, source)
    if schema is None:
        _read_commands(found, entries)
    read_entries(found, Scope(schema), entries, left)
    add_faults(found, faults)


def _read_commands(found: Findings, entries: Sequence[Entry]) -> None:
    for words in commands_of(entries):
        if len(words) > 1:
            read_command(found, words)
        elif words:
            _read_script(found, Source(words[0].runs))
