"""Keys of files, overrides and recipes, and whole files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from groups.budget import spend

from .. import flags
from ..flags import WORDS, Kind, Row, by_word, is_known, names_a_size, plain_name, row_of
from ..schemas import Schema, beginnings, schema_of
from ..syntax.files import Entry, read_file
from ..syntax.pasted import NOTHING, Pasted
from ..syntax.recipes import Recipe
from ..syntax.words import STEP, CommandRun, Fault, Source, Word, says_nothing, whole_place
from .findings import Findings
from .values import assign

NAMED = Row("named", "word")
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]{0,120})\}")
ADAPTERS = by_word(WORDS.adapters)
"""The fields of options and keys about adapters."""

KINDS: dict[str, Kind] = {
    "tuner": "word",
    "lora_rank": "count",
    "lora_targets": "words",
    "frozen_bits": "count",
    "load_in_4bit": "switch",
    "load_in_8bit": "switch",
}
_ADAPTS = re.compile(r"(?i)lora|^[1-9]")


class Scope(NamedTuple):
    """The context of words: the table that they are read with, and the run or role that they belong
    to."""

    schema: Schema | None = None
    run: str = ""  # the command or function


def read_key(
    found: Findings,
    scope: Scope,
    path: tuple[str, ...],
    values: Sequence[Word],
    place: tuple[int, int],
    name: str = "",
) -> None:
    """Reads a key of a file, or of an override. name: for messages, if that is not its path."""
    found.settings[scope.run, ".".join(path).replace("-", "_")] = values
    name, shown = name or ".".join(path), " ".join(word.text for word in values[:20])
    if len(values) == 1 and not values[0].why:
        found.setting_texts.setdefault(".".join(path), values[0].text.lower())
    if scope.schema:
        meaning = scope.schema.meaning(path)
        row, role = meaning or (NAMED, "")
        is_open = says_nothing(values) or _leaves_open(row, values)
        if meaning and (not is_open or (not values and row.kind == "switch")):
            assign(found, name, row, values, place, scope.run, role)
            return
        if meaning:
            found.add(found.ignored, "not-given", name, shown, place)
            return
        if scope.schema.key_rows:
            ignore(found, scope, name, shown, place, values)
            return
    for section in path[:-1]:
        if section in flags.SECTIONS_OF:
            item = found.item("understood", name, "", place)
            found.frameworks.append((flags.SECTIONS_OF[section], item))
    key = flags.KEYS.get(".".join(path[-2:])) or flags.KEYS.get(path[-1])
    section = path[-2] if len(path) > 1 else ""
    if section in WORDS.wrappers["options"] and (option := row_of(f"--{path[-1]}")):
        key = flags.Key(option, (section,))
    if key is None or section not in key.sections:
        ignore(found, scope, name, shown, place, values)
    elif says_nothing(values):
        found.add(found.ignored, "not-given", name, "null", place)
    else:
        assign(found, name, key.row, values, place, scope.run)


NUMBERS = ("size", "count", "degree")


def _leaves_open(row: Row, values: Sequence[Word]) -> bool:
    """Whether a number is none, or the length of a sequence 0, as NeMo Automodel's recipes switch
    them off."""
    words = [word.text.lower() for word in values]
    return row.kind in NUMBERS and (words == ["none"] or (row.field == "seq" and words == ["0"]))


def ignore(
    found: Findings,
    scope: Scope,
    name: str,
    value: str,
    place: tuple[int, int],
    values: Sequence[Word] = (),
) -> None:
    """Records an option or a key without a field in any table, with what is known about it: it may
    say that adapters are trained, whatever the program."""
    plain = plain_name(name.rsplit(".", 1)[-1])
    names = {plain, ".".join(name.split(".")[-2:])}
    field = next((ADAPTERS[one] for one in names if one in ADAPTERS), "")
    is_switch = not values and KINDS.get(field) == "switch"
    if field and (is_switch or (values and not says_nothing(values))):
        assign(found, name, Row(field, KINDS[field]), values, place, scope.run)
        return
    if not names.isdisjoint(WORDS.peft) and _ADAPTS.search(value):
        if not any(item.code == "part-trained" for item in found.unresolved):
            found.add(found.unresolved, "part-trained", name, value, place)
        return
    if scope.schema and scope.schema.serves and plain in flags.NOT_COUNTED:
        found.add(found.unresolved, "not-counted", name, value, place)
        return
    is_shapeless = any(is_known(one.replace("_", "-")) for one in names)
    is_new = not (plain in flags.NOT_DRAWN or plain in flags.REMOVED or is_shapeless)
    if is_new and names_a_size(plain) and not (scope.schema and scope.schema.roles):
        ignore_size(found, name, value, place)
        return
    if plain in flags.REMOVED and name.startswith("--"):
        facts = {"use": f"--{flags.REMOVED[plain]}"}
        found.add(found.removed, "removed", name, value, place, facts=facts)
        return
    if is_new and flags.names_a_shape(plain) and value.lower() not in UNSHAPING:
        found.add(found.unresolved, "unread", name, value[:80], place)
        return
    code = "no-group" if is_shapeless else "unknown"
    code = "not-drawn" if plain in flags.NOT_DRAWN else code
    found.add(found.ignored, code, name, value, place)


UNSHAPING = (
    *("0", "1", "null", "none", "false", "off", "no", "[]", "{}", "~", "0.0"),
    "transformer_based_wrap",
)
"""Values of an unknown option or key that change nothing; the last is FSDP's usual cut of a model,
at its layers."""


def ignore_size(found: Findings, name: str, value: str, place: tuple[int, int]) -> None:
    """Records an unknown option or key that looks like a size of a layout."""
    if value.lower() in ("1", "null", "none", "", "false"):
        found.add(found.ignored, "unknown", name, value, place)
    else:
        found.add(found.unresolved, "unknown-size", name, value, place)


def add_faults(found: Findings, faults: Iterable[Fault]) -> None:
    """Records what no shell, or no reader of a file's format, would read as it was meant."""
    for code, start, end, facts in faults:
        found.add(found.problems, code, found.text[start:end], "", (start, end), facts=facts)


# -- files ---------------------------------------------------------------------------------------


def read_file_in_script(found: Findings, source: Source, form: str) -> None:
    """Reads a file that a script writes. The faults of a text without any setting are ignored: it
    may be printed help, and no file at all."""
    entries, left, faults = read_file(source, form)
    before = len(found.assignments)
    schema = note_schema(found, entries, source)
    read_entries(found, Scope(schema), entries, left)
    if len(found.assignments) > before:
        add_faults(found, faults)


def note_schema(found: Findings, entries: Sequence[Entry], source: Source) -> Schema | None:
    """Records the texts of a file's settings, by path, and the table that has its keys."""
    for entry in entries:
        path = ".".join(entry.path).replace("-", "_")
        texts = ["" if word.why else word.text for word in entry.values]
        found.setting_texts[path] = texts[0].strip().lower() if len(texts) == 1 else ""
        if entry.path[-1] in ("_component_", "_target_"):
            found.setting_texts |= dict.fromkeys(texts[:1], "")
    schema = schema_of(beginnings(found.setting_texts))
    first = entries[0].key if entries else source.word(0, 0)
    found.add_schema(schema, first.text, first.place)
    return schema


def read_entries(
    found: Findings, scope: Scope, entries: Sequence[Entry], left: Sequence[Word]
) -> None:
    """Reads the keys of a file; records the words that its reader did not take."""
    for entry in entries:
        spend(STEP, "keys")
        values = [_referred(found, word) for word in entry.values]
        _note_inheriting(found, scope.schema, entry._replace(values=values))
        name, place = entry.path[-1], whole_place(entry.key, values)
        if row := row_of(name):  # options kept as keys
            assign(found, name, row, values, place, scope.run)
        else:
            path = (*entry.path[:-1], *name.split("/"))  # nvidia.com/gpu
            read_key(found, scope, path, values, place, ".".join(entry.path))
    for word in left:
        shown = word.text.split("\n", 1)[0][:80]
        found.add(found.ignored, "not-read", shown, "", word.place)


def _referred(found: Findings, word: Word) -> Word:
    """The word that ``${section.key}`` refers to."""
    name = _REFERENCE.fullmatch(word.text) if not word.why else None
    value = found.setting_texts.get(name[1].replace("-", "_"), "") if name else ""
    if not value or "$" in value:
        return word
    return Word((CommandRun(value, word.runs[0].start, word.runs[-1].end),), word.at)


def _note_inheriting(found: Findings, schema: Schema | None, entry: Entry) -> None:
    """Records keys that include another file."""
    inherits = schema.inherits if schema else WORDS.inherits
    at_top = len(entry.path) - (len(schema.within) if schema else 0) <= 1
    name = entry.path[-1] if entry.path[-1] in inherits else entry.path[0]
    values = [word.text for word in entry.values if word.text not in ("_self_", "null", "")]
    named = any(value.endswith((".yaml", ".yml")) or "/" in value for value in values)
    if name in inherits and at_top and values and (name in WORDS.inherits or named):
        found.add(found.unresolved, "inherits", name, values[0], entry.key.place, sets="named")


# -- what a program printed ----------------------------------------------------------------------

_LISTED = re.compile(r"[\w.]+")


def read_printed(found: Findings, part: Pasted) -> None:
    """Reads the arguments that a program printed: all that it has, so that one without a row says
    nothing unless it changes the layout. A line of sizes alone does not print those of experts."""
    scope, names = Scope(), set[str]()
    for name, word in part.printed:
        spend(STEP, "keys")
        names.add(name)
        row = row_of(f"--{flags.PRINTED.get(name, name)}")
        if "." in name:
            read_key(found, scope, tuple(name.replace("-", "_").split(".")), [word], word.place)
        elif row is not None and (row.kind != "text" or word.text not in NOTHING):
            several = row.kind in ("words", "sizes") and word.text[:1] == "["
            listed = [
                Word((CommandRun(one, *word.place),), word.place)
                for one in _LISTED.findall(word.text)
            ]
            assign(found, name, row, listed if several else [word], word.place)
        elif row is None and word.text not in (*NOTHING, "1"):
            ignore(found, scope, name, word.text, word.place)
    if "context-parallel-size" in names and "expert-model-parallel-size" not in names:
        found.add(found.unresolved, "not-printed", "ep", "", part.printed[0][1].place, sets="ep")


# -- recipes -------------------------------------------------------------------------------------


def read_recipe(found: Findings, recipe: Recipe) -> None:
    """Reads a function that makes a configuration, as a run of its own."""
    scope = Scope(run=recipe.name)
    for entry in recipe.entries:
        spend(STEP, "keys")
        read_key(found, scope, entry.path, entry.values, whole_place(entry.key, entry.values))
    for name in recipe.inherits[:8]:
        place, facts = recipe.entries[0].key.place, {"run": recipe.name}
        found.add(found.unresolved, "inherits", name, recipe.name, place, facts=facts)
