"""Options and overrides of one command, each read with the table of its framework."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from groups.budget import spend

from .. import flags
from ..flags import WORDS, Fields, Kind, Row, plain_name, row_of
from ..schemas import Schema, marks_of, schema_of
from ..syntax.words import STEP, Word, following, row_words, sliced, whole_place
from .elsewhere import (
    CONFIGURATIONS,
    base_name,
    file_of,
    note_configured,
    note_file,
    note_handed,
    note_sharding_files,
    note_sourced,
    with_files,
)
from .findings import Findings
from .keys import ADAPTERS, KINDS, NAMED, Scope, ignore, ignore_size, read_key
from .values import OFF, ON, VARIABLE, assign

_AFTER = ("script", "bridge")
"""What stands for a launcher behind a job's script: its own options follow."""

_MODEL = re.compile(r"[A-Za-z./~][\w./~-]{0,200}")
_SHORT_SIZES = ("-tp", "-pp", "-cp", "-ep", "-dp")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][A-Za-z0-9_]*(?:[.@/][A-Za-z0-9_]+)*)=")


@dataclass(frozen=True)
class Command:
    """The words of a command, and facts about it as a whole."""

    words: Sequence[Word]
    program: str
    scope: Scope

    @property
    def schema(self) -> Schema | None:
        return self.scope.schema

    @property
    def usual(self) -> tuple[str, ...]:
        """How the names of its framework's own files begin, which say nothing of a job."""
        return self.schema.own_files if self.schema else ()

    @property
    def launches(self) -> bool:
        """Whether it starts a job: by a launcher, or by a script with a job's options."""
        names = [base_name(word.text) for word in self.words[:200]]
        return any(
            name in flags.LAUNCHERS or name.endswith(".launch") or row_of(name) for name in names
        )

    @property
    def served(self) -> str:
        """The server that it starts, if any."""
        return self.schema.name if self.schema and self.schema.serves else ""


def read_command(found: Findings, words: Sequence[Word]) -> None:
    """Reads a command."""
    words = [*with_files(found, _started(words))]
    program = base_name(words[0].text)
    if program == "source" or (program == "." and len(words) > 1):
        note_sourced(found, words)
    if program in flags.QUIET:
        return
    note_handed(found, words)
    before = len(found.assignments)
    schema = schema_of(marks_of(words))
    run = _run_name(found, words)
    found.add_schema(schema, words[0].text, words[0].place, run)
    command = Command(words, program, Scope(schema, run))
    model_from, is_named = _serves_from(command), False
    starts_ray = program == "ray" and "start" in [word.text for word in words[1:3]]
    launcher = "ray" if starts_ray else ""
    at = 0
    while at < len(words):
        spend(STEP, "words")
        text = words[at].text
        if 0 < model_from <= at and not is_named and _may_be_model(words[at], at == model_from):
            assign(found, f"{command.served} serve", NAMED, [words[at]], words[at].place, run)
            is_named, at = True, at + 1
        elif text[:1] == "-" and not words[at].runs[0].why.startswith("var"):
            at += _option(found, command, at, launcher)
            if text == "-m" and launcher not in _AFTER:
                module = words[at - 1].text
                launcher = "launcher" if module.startswith("torch.distributed") else "script"
        else:
            launcher = _word(found, command, at, launcher)
            at += 1
    found.starts |= launcher in _AFTER
    note_sharding_files(found, before)


def _started(words: Sequence[Word]) -> Sequence[Word]:
    """The command behind words that only start it, with the options and variables of these."""
    at = 0
    while at < len(words) - 1 and (
        base_name(words[at].text) in WORDS.starters
        or (at and (words[at].text[:1] == "-" or _VARIABLE.match(words[at].text)))
    ):
        at += 1
    return words[at:]


def _word(found: Findings, command: Command, at: int, launcher: str) -> str:
    """Reads a word that is no option; returns the launcher whose short options follow it: a
    program's name, "bridge" or "script" after a script, which has its own, or none."""
    word, run = command.words[at], command.scope.run
    text, name = word.text, base_name(word.text)
    override = _OVERRIDE.match(text)
    if override and not word.runs[0].why and override[1] in WORDS.config_groups:
        value = word.after(override.end())
        if not value.text.isdigit() and value.text.lower() not in (*ON, *OFF, "null"):
            note_configured(found, command.usual, override[1], value, word.place, run)
    elif override and not word.runs[0].why:
        path = tuple(re.split(r"[.@/]", override[1]))
        values = row_words(word.after(override.end()))
        read_key(found, command.scope, path, values, word.place)
    elif text.endswith(".py"):
        if name in WORDS.megatron_scripts:
            found.add(found.programs, "understood", name, "", word.place)
        return "bridge" if name in WORDS.bridge_scripts else "script"
    elif text[:1] == "@" or text.endswith(CONFIGURATIONS):
        starts = launcher in _AFTER and (text[:1] == "@" or command.launches)
        if starts or command.program in WORDS.configured:
            note_configured(found, command.usual, command.program, word, word.place, run)
    elif launcher not in _AFTER and name in flags.LAUNCHERS:
        return flags.LAUNCHERS[name].replace("ray", "")
    elif word.why and word.runs[0].why and VARIABLE.match(text):
        found.add(found.unresolved, "may-hold-options", text, "", word.place)
    return launcher


SERVES = {"vllm": "serve", "tensorrt-llm": "trtllm-serve"}
"""The word after which a server takes its model, if that is no option's value."""

NO_MODEL = ("serve", "disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve", "grpc")
"""Words after it that name what is started instead of a model."""


def _serves_from(command: Command) -> int:
    """The index from which a word that is no option is the model of a server; 0: none is."""
    names = [base_name(word.text) for word in command.words]
    start = SERVES.get(command.served)
    at = names.index(start) + 1 if start and start in names else 0
    while 0 < at < len(names) and names[at] in NO_MODEL:
        at += 1
    return at


def _may_be_model(word: Word, is_first: bool) -> bool:
    """Whether a word may be a model: the first after the server's own, later only a name."""
    if word.text[:1] == "-":
        return False
    return is_first or bool(not word.why and _MODEL.fullmatch(word.text))


_UNNAMED = ("variable", "command", "arithmetic")
"""Why the name of an option may be any."""


def _option(found: Findings, command: Command, at: int, launcher: str) -> int:
    """Reads one option with its values; returns the number of words that it takes."""
    words, word, short = command.words, command.words[at], flags.SHORT.get(launcher, {})
    name, equals, _ = word.text.partition("=")
    if word.why in _UNNAMED and Word((*sliced(word.runs, 0, len(name)),), word.at).why:
        found.add(found.unresolved, "may-hold-options", name, "", word.place)
        return 1
    row = flags.row_behind(launcher, name) or _row_in(command.schema, name)
    if name in ("-e", "--env") and words[at + 1 : at + 2] and not equals:
        return _environment(found, command, words[at + 1])
    values = [word.after(len(name) + 1)] if equals else []
    if name.startswith("--"):
        found.settings[command.scope.run, plain_name(name)] = values or following(words, at)
        found.setting_texts[name] = next(
            (value.text for value in values or words[at + 1 : at + 2]), ""
        )
    elif row is None and name[:2] in short:  # -N2
        value = word.after(2)
        assign(found, name[:2], short[name[:2]], [value], word.place, command.scope.run)
        return 1
    configures = plain_name(name) in WORDS.configuring
    names_file = configures or (launcher == "bridge" and name in WORDS.bridge_recipes)
    is_key = name.startswith("--") and "." in name and not names_file
    if row is None and not (names_file or is_key):
        return _ignored_option(found, command, at, name, values, launcher)
    kind = row.kind if row is not None and not (names_file or is_key) else ""
    if not equals and kind not in ("switch", "off"):
        values = following(words, at, kind)
    elif not equals and words[at + 1 : at + 2] and words[at + 1].text.lower() in ON + OFF:
        values = [words[at + 1]]  # as Hugging Face's parser takes a switch
        if not (command.schema and command.schema.switch_values):
            item = found.item("switch-with-value", name, values[0].text, word.place)
            found.valued.append(item)
    place = whole_place(word, values)
    if is_key:
        read_key(found, command.scope, tuple(name.lstrip("-").split(".")), values, place, name)
    elif row is not None and values and values[0].text == "None":  # as scripts in Python take it
        found.add(found.ignored, "not-given", name, "None", place)
    elif row is not None and not names_file:
        assign(found, name, row, values, place, command.scope.run)
    elif values:
        note_configured(found, command.usual, name, values[0], place, command.scope.run)
    return 1 if equals else 1 + len(values)


def _environment(found: Findings, command: Command, word: Word) -> int:
    """Reads a variable that a container gets; returns the number of words with its option."""
    name, equals, _ = word.text.partition("=")
    row = flags.VARIABLES.get(name)
    if row and equals:
        row = replace(row, rank=flags.VARIABLE_RANK)
        assign(found, name, row, [word.after(len(name) + 1)], word.place, command.scope.run)
    return 2


def _row_in(schema: Schema | None, name: str) -> Row | None:
    """The row of an option, in a framework or in none."""
    if schema:
        options = schema.option_rows
        row = options.get(name) or options.get(plain_name(name)) or _refused(options, name)
        if row or schema.has_all_options:
            return row if name[:2] == "--" or name in options else None
    return row_of(name) or _refused(flags.OPTIONS, name)


_OFF_OF: dict[str, Kind] = {"switch": "off", "off": "switch"}


def _refused(options: Fields, name: str) -> Row | None:
    """The row of ``--no-NAME`` for a switch NAME, as argparse's BooleanOptionalAction and Hugging
    Face's parser have it."""
    row = options.get(plain_name(name).removeprefix("no-")) if name[:4] in _NO else None
    return replace(row, kind=_OFF_OF[row.kind]) if row and row.kind in _OFF_OF else None


_NO = ("--no", "--no-", "--no_")


def _ignored_option(
    found: Findings, command: Command, at: int, name: str, values: Sequence[Word], launcher: str
) -> int:
    """Records an option that no table has; returns the number of words that it takes."""
    words, word = command.words, command.words[at]
    if not name.startswith("--"):
        value = words[at + 1] if len(words) > at + 1 else None
        if value and name in _SHORT_SIZES and value.text.isdigit():
            ignore_size(found, name, value.text, word.place)
        elif value and (launcher in _AFTER or command.program in WORDS.configured):
            note_file(found, command.usual, name, [value], whole_place(word, [value]))
        return min(2, len(words) - at) if name in ("-m", "-c") else 1
    taken = 1
    is_switch = command.schema is not None and plain_name(name) in command.schema.switches
    if not values and not is_switch:
        values = following(words, at, KINDS.get(ADAPTERS.get(plain_name(name), ""), ""))
        shown = values[0].text if values else ""
        is_script = shown.endswith(".py") and not file_of(name, shown)
        if is_script or _OVERRIDE.match(shown):
            values = []
        taken += len(values)
    if len(name) > 2:
        place = whole_place(word, values)
        if not note_file(found, command.usual, name, values, place):
            ignore(found, command.scope, name, values[0].text if values else "", place, values)
    return taken


def _run_name(found: Findings, words: Sequence[Word]) -> str:
    """The name of a command, if a text has several."""
    names = [base_name(word.text) for word in words if not word.why]
    scripts = (name for name in names if name.endswith((".py", ".sh")) and len(name) < 40)
    line = found.item("", "", "", words[0].place).line
    return f"{line}: {next(scripts, names[0][:40] if names else '')}"
