"""Options and overrides of one command, each read with the table of its framework."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from groups.budget import spend

from .. import flags
from ..flags import WORDS, Fields, Kind, Row, plain_name, row_of
from ..schemas import Schema, marks_of, schema_of
from ..syntax.shell import SCRIPTS
from ..syntax.words import STEP, Word, following, row_words, sliced, whole_place
from .findings import Findings
from .keys import ADAPTERS, KINDS, NAMED, Scope, ignore, ignore_size, read_key
from .values import OFF, ON, VARIABLE, assign

RECIPE = Row("named", "word", rank=1)
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
    written: Collection[str]  # names of files that its script makes

    @property
    def schema(self) -> Schema | None:
        return self.scope.schema

    @property
    def served(self) -> str:
        """The server that it starts, if any."""
        return self.schema.name if self.schema and self.schema.serves else ""


def base_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def read_command(
    found: Findings, words: Sequence[Word], written: Collection[str] = frozenset()
) -> None:
    """Reads a command. written: files that the text itself writes, which are read on their own."""
    words = _started(words)
    program = base_name(words[0].text)
    if program in ("source", ".") and len(words) > 1:
        _note_sourced(found, words[1])
    if program in flags.QUIET:
        return
    _note_handed(found, words, {*map(base_name, written)})
    schema = schema_of(marks_of(words))
    run = _run_name(found, words)
    found.add_schema(schema, words[0].text, words[0].place, run)
    command = Command(words, program, Scope(schema, run), {*map(base_name, written)})
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
            if text == "-m" and launcher not in ("script", "bridge"):
                module = words[at - 1].text
                launcher = "launcher" if module.startswith("torch.distributed") else "script"
        else:
            launcher = _word(found, command, at, launcher)
            at += 1
    found.starts |= launcher in ("script", "bridge")


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
    word = command.words[at]
    text, name = word.text, base_name(word.text)
    override = _OVERRIDE.match(text)
    if override and not word.runs[0].why and override[1] in WORDS.config_groups:
        value = word.after(override.end())
        if not value.text.isdigit() and value.text.lower() not in (*ON, *OFF, "null"):
            _note_configured(found, command, override[1], value, word.place)
    elif override and not word.runs[0].why:
        path = tuple(re.split(r"[.@/]", override[1]))
        values = row_words(word.after(override.end()))
        read_key(found, command.scope, path, values, word.place)
    elif text.endswith(".py"):
        if name in WORDS.megatron_scripts:
            found.add(found.programs, "understood", name, "", word.place)
        return "bridge" if name in WORDS.bridge_scripts else "script"
    elif command.program in WORDS.configured and text.endswith((".yaml", ".yml", ".json")):
        _note_configured(found, command, command.program, word, word.place)
    elif launcher not in ("script", "bridge") and name in flags.LAUNCHERS:
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
        return _ignored_option(found, command, at, name, values)
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
        _note_configured(found, command, name, values[0], place)
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
    found: Findings, command: Command, at: int, name: str, values: Sequence[Word]
) -> int:
    """Records an option that no table has; returns the number of words that it takes."""
    words, word = command.words, command.words[at]
    if not name.startswith("--"):
        size = words[at + 1].text if name in _SHORT_SIZES and len(words) > at + 1 else ""
        if size.isdigit():
            ignore_size(found, name, size, word.place)
        return min(2, len(words) - at) if name in ("-m", "-c") else 1
    taken = 1
    is_switch = command.schema is not None and plain_name(name) in command.schema.switches
    if not values and not is_switch:
        values = following(words, at, KINDS.get(ADAPTERS.get(plain_name(name), ""), ""))
        if values and (values[0].text.endswith(".py") or _OVERRIDE.match(values[0].text)):
            values = []
        taken += len(values)
    if len(name) > 2:
        value = values[0].text if values else ""
        ignore(found, command.scope, name, value, whole_place(word, values), values)
    return taken


HANDS_ON = ("bash", "sh", "zsh", "sbatch", "make", "just", "task")
"""Programs that hand their variables and options to a script."""

ITS_OWN = {"make": "Makefile", "just": "justfile", "task": "Taskfile"}
"""The script of a program that is handed none."""


MOST_WORDS = 40
"""The words of a command among which it names what it hands its own to."""


def _note_handed(found: Findings, words: Sequence[Word], here: Collection[str]) -> None:
    """Records a script that is not in the text and gets what the text says: it has sizes of its
    own."""
    names = [base_name(word.text) for word in words[:MOST_WORDS]]
    at = next((at for at, name in enumerate(names) if name in HANDS_ON), 0)
    program = names[at]
    scripts = [name for name in names[at:] if name.endswith(SCRIPTS) and name not in here]
    if program in ITS_OWN and len(words) > 1:
        scripts = [ITS_OWN[program]]
    elif program not in HANDS_ON and not names[0].endswith(SCRIPTS):
        return
    for name in scripts[:1]:
        if not any(part in name.lower() for part in WORDS.machine_scripts):
            item = found.item("handed", program, name, words[0].place)
            found.handed.append(item)


def _note_sourced(found: Findings, word: Word) -> None:
    """Records a sourced script; those that only prepare the machine are ignored."""
    name = base_name(word.text.rstrip("\"'")).lower()
    if base_name(word.text) in found.files:
        return
    if not any(part in name for part in WORDS.machine_scripts):
        found.add(found.unresolved, "sourced", "source", word.text, word.place, sets="named")


def _note_configured(
    found: Findings, command: Command, name: str, value: Word, place: tuple[int, int]
) -> None:
    """Records a file or a recipe that may set what the command does not, unless it is a schema's
    own."""
    usual = command.schema.own_files if command.schema else ()
    is_usual = usual and base_name(value.text).startswith(usual)
    if is_usual or base_name(value.text) in command.written:
        return
    sets = "" if value.text in flags.PLACEHOLDERS else "named"
    found.add(found.configured, "configured", name, value.text[:80], place, sets=sets)
    if re.fullmatch(r"[\w-]+", value.text) and flags.published_model(value.text):
        assign(found, name, RECIPE, [value], place, command.scope.run)


def _run_name(found: Findings, words: Sequence[Word]) -> str:
    """The name of a command, if a text has several."""
    names = [base_name(word.text) for word in words if not word.why]
    scripts = (name for name in names if name.endswith((".py", ".sh")) and len(name) < 40)
    line = found.item("", "", "", words[0].place).line
    return f"{line}: {next(scripts, names[0][:40] if names else '')}"
