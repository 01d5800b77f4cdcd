"""What a command takes in that does not stand in it: files of options, scripts, standard input.

The law: what a command does not say is its program's default only where the text holds the whole
command line. A word that names a file of options or a configuration, a script that is run or
sourced, and a program that appends words of its own (xargs) are reasons why it does not, unless
that file stands in the text too: then its words are the command's.

>>> file_of("--yaml-cfg", "a.yaml"), file_of("-c", "a.toml"), file_of("-c", "import")
('configured', 'configured', '')
>>> file_of("--model-args", "a.json"), file_of("--data-args", "a.yaml"), file_of("--opt", "adam")
('may-hold-options', '', '')

Sources: Python 3.12 argparse, fromfile_prefix_chars; GNU findutils, xargs; Bash manual, "source".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from .. import flags
from ..flags import WORDS, Row, plain_name
from ..syntax.shell import SCRIPTS
from ..syntax.words import Word, split
from .findings import Findings
from .values import OFF, ON, assign

HANDS_ON = ("bash", "sh", "zsh", "sbatch", "make", "just", "task")
"""Programs that hand their variables and options to a script."""

ITS_OWN = {"make": "Makefile", "just": "justfile", "task": "Taskfile"}
"""The script of a program that is handed none."""

RECIPE = Row("named", "word", rank=1)

CONFIGURATIONS = (".yaml", ".yml", ".toml", ".json", ".cfg", ".conf", ".ini")
"""Suffixes of configurations, which a program may take without an option."""

OPTION_FILES = (*CONFIGURATIONS, ".txt", ".args", ".opts", ".flags", ".rsp", ".py", ".env")
"""Suffixes of what an option for such files may name."""

MOST_WORDS = 40
"""The words of a command among which it names what it hands its own to."""

_PATH = re.compile(r"<[^<>]*>|[^\s={\[\"'-][^\s=\"']*")
_NUMBER = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?[A-Za-z]?")


def base_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def file_of(name: str, value: str) -> str:
    """Why an option that no table has may say more than it shows; empty: it does not.

    "configured": it names a file of options or a configuration, and nothing else; then any size
    may stand there. "may-hold-options": it names one of something that no table knows.
    """
    is_path = _PATH.fullmatch(value[:400]) and not _NUMBER.fullmatch(value[:400])
    if not is_path or value.lower() in (*ON, *OFF, "none", "null"):
        return ""
    if value[:1] == "@":
        return "configured"
    if name[:2] != "--":
        return "configured" if name in ("-c", "-f") and value.endswith(CONFIGURATIONS) else ""
    words = {*re.split(r"[-.]", plain_name(name[:80]).lower())} - {"path", "file", "name", "dir"}
    if words <= {*WORDS.of_options}:
        return "configured"
    if flags.is_known(plain_name(name)) or words & {*WORDS.beside, *WORDS.of_others}:
        return ""
    is_file = value.endswith(OPTION_FILES) and not words.isdisjoint(WORDS.of_options)
    return "may-hold-options" if is_file or value.endswith((".yaml", ".yml", ".toml")) else ""


def names_configuration(name: str, value: str) -> bool:
    """Whether a variable that a script sets for the program names its configuration.

    >>> names_configuration("CONFIG_FILE", "llama.toml"), names_configuration("LOG", "a.txt")
    (True, False)
    """
    return value.endswith(OPTION_FILES) and bool(file_of(f"--{name}", value))


def with_files(found: Findings, words: Sequence[Word]) -> Iterator[Word]:
    """The words of a command, with those of the files of options that the text holds too."""
    before = ""
    for word in words:
        named = file_of(before, word.text) == "configured" and before[:1] == "-"
        name = base_name(word.text.removeprefix("@"))
        source = found.files.get(name) if named or word.text[:1] == "@" else None
        if source is None or not source.text.lstrip().startswith("-"):
            yield word
        else:
            found.taken.add(name)
            yield from split(source.runs, word.place)
        before = word.text


def note_file(
    found: Findings,
    usual: tuple[str, ...],
    name: str,
    values: Sequence[Word],
    place: tuple[int, int],
    run: str = "",
) -> bool:
    """Records an option of no table if its value is a file that may hold options; whether it is."""
    code = file_of(name, values[0].text) if values else ""
    if code == "configured":
        note_configured(found, usual, name, values[0], place, run)
    elif code and base_name(values[0].text) not in found.files:
        found.add(found.unresolved, code, name, values[0].text[:80], place)
    return bool(code)


def note_configured(
    found: Findings,
    usual: tuple[str, ...],
    name: str,
    value: Word,
    place: tuple[int, int],
    run: str = "",
) -> None:
    """Records a file or a recipe that may set what the command does not, unless the text holds it,
    or it is a schema's own. usual: how the names of those begin."""
    file = base_name(value.text.removeprefix("@"))
    if (usual and file.startswith(usual)) or file in found.files:
        return
    sets = "" if value.text in flags.PLACEHOLDERS else "named"
    found.add(found.configured, "configured", name, value.text[:80], place, sets=sets)
    if re.fullmatch(r"[\w-]+", value.text) and flags.published_model(value.text):
        assign(found, name, RECIPE, [value], place, run)


def note_handed(found: Findings, words: Sequence[Word]) -> None:
    """Records a script that is not in the text and gets what the text says: it has sizes of its
    own; and options that a program appends to the command from its input."""
    names = [base_name(word.text) for word in words[:MOST_WORDS]]
    if "xargs" in names[:-1]:
        place = words[names.index("xargs")].place
        found.add(found.configured, "configured", "xargs", "-", place, sets="named")
    at = next((at for at, name in enumerate(names) if name in HANDS_ON), 0)
    program = names[at]
    scripts = [name for name in names[at:] if name.endswith(SCRIPTS) and name not in found.files]
    if program in ITS_OWN and len(words) > 1:
        scripts = [ITS_OWN[program]]
    elif program not in HANDS_ON and not names[0].endswith(SCRIPTS):
        return
    for name in scripts[:1]:
        if not any(part in name.lower() for part in WORDS.machine_scripts):
            found.handed.append(found.item("handed", program, name, words[0].place))


def note_sourced(found: Findings, words: Sequence[Word]) -> None:
    """Records a sourced script; those that only prepare the machine are ignored."""
    value = words[1].text if len(words) > 1 else "<(...)"
    name = base_name(value.rstrip("\"'"))
    if name in found.files:
        return
    if not any(part in name.lower() for part in WORDS.machine_scripts):
        found.add(found.unresolved, "sourced", "source", value, words[-1].place, sets="named")


def note_sharding_files(found: Findings, before: int) -> None:
    """Records a configuration of DeepSpeed that the text does not hold, if nothing else of its
    command says how data parallelism shards. before: the assignments before that command."""
    own = found.assignments[before:]
    files = [one.item for one in own if one.field == "deepspeed" and one.row.kind == "text"]
    if files and not {"zero", "zero_named"} & {one.field for one in own}:
        name, value, place = files[0].name, files[0].value, (files[0].start, files[0].end)
        if base_name(value) not in found.files:
            found.add(found.problems, "unread", name, value[:80], place, sets="named")
