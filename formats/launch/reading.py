"""From the words of a text to what each of them says: options, overrides, keys, variables.

A word says that a field is a value (`Said`), or it is ignored, unresolved or a problem, each with
its place. What they come to together is worked out in `meaning`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from groups.budget import spend

from . import flags
from .configs import Entry, commands_of, form_of, read_file
from .expand import Fault, Shell
from .flags import Row, Schema, is_known, names_a_size, plain_name, row_of
from .items import Item
from .recipes import Recipe, read_recipes
from .sayings import VARIABLE, Sayings
from .shell import read_script
from .words import (
    STEP,
    CommandRun,
    Source,
    Word,
    following,
    row_words,
    says_nothing,
    split,
    whole_place,
)

NAMED, RECIPE = Row("named", "word"), Row("named", "word", rank=1)
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_.-]{0,120})\}")
_ADAPTS = re.compile(r"(?i)lora|^[1-9]")
_SHORT_SIZES = ("-tp", "-pp", "-cp", "-ep", "-dp")
_HYPHENS = dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
_STRANGERS = re.compile(rf"[{''.join(_HYPHENS)}\u00ad\u200b-\u200f\u2060\ufeff]")
_WORD_WITH_STRANGERS = re.compile(rf"(?<!\S)(?=\S{{0,80}}{_STRANGERS.pattern})\S{{1,200}}")
"""Hyphens of other lengths and characters without width, and words that have any."""
_OVERRIDE = re.compile(r"[+~]{0,2}([A-Za-z_][A-Za-z0-9_]*(?:[.@/][A-Za-z0-9_]+)*)=")


class Reading(Sayings):
    """What the words of a text say, each by itself: read once, when it is made."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.removed: list[Item] = []
        self.schema: Schema | None = None  # of the words that are read now
        self.schemas: dict[str, Schema] = {}  # that the text has, by name
        self.stated: dict[str, str] = {}  # texts of single values, by path or option
        self.configured: list[Item] = []  # files or recipes that a command begins with
        self.written: set[str] = set()  # files that the text itself makes
        self.programs: list[Item] = []  # scripts of Megatron-LM's own that are run
        self.adapts = False  # whether it trains adapters
        source = Source.of(text)
        self.form = form_of(text)
        self.starts = self.form != "shell"  # whether it is a whole configuration, or a command
        self._disguised()
        if self.form == "python":
            recipes = read_recipes(source)
            if recipes is None:
                self.form = "shell"
            else:
                self._recipes(recipes)
                return
        if self.form == "shell":
            self._shell(source)
        else:
            self._file(source, self.form)

    # -- where things are said -------------------------------------------------------------------

    def _shell(self, source: Source) -> None:
        shell = read_script(source)
        self._faults(shell.faults)
        self.written = shell.written
        for words in shell.commands:
            self._command(words)
        self.run = ""
        self._unused(shell)
        for document in shell.documents:
            form = form_of(document.text)
            if form != "shell":
                self._file(document, form, is_all=False)
        for name, row in flags.VARIABLES.items():
            variable = shell.variables.get(name)
            if variable and not any(said.field == row.field for said in self.said):
                word = Word(tuple(variable.runs), (0, 0))
                worked_out = any(self.text[run.start : run.end] != run.text for run in word.runs)
                # A product is of a whole job's GPUs as likely as of a node's.
                is_total = worked_out and row.field == "gpus_per_node"
                if word.text and not word.why and not is_total:
                    row = row._replace(rank=flags.VARIABLE_RANK)
                    self.read_value(name, row, [word], word.place)

    def _disguised(self) -> None:
        """Options and keys that a word processor or a web page changed: no program takes them."""
        for match in _WORD_WITH_STRANGERS.finditer(self.text):
            spend(STEP, "words")
            plain = _STRANGERS.sub(lambda found: _HYPHENS.get(found[0], ""), match[0])
            name = f"--{plain.lstrip('-').partition('=')[0].rstrip(':')}"
            if row_of(name) or is_known(plain_name(name)):
                facts = {"sign": f"U+{ord(_STRANGERS.findall(match[0])[0]):04X}"}
                self.unresolved.append(self.item("disguised", name, "", match.span(), facts=facts))

    def _unused(self, shell: Shell) -> None:
        """Options kept in a variable that no command takes up."""
        starts = any(
            word.text.endswith(".py") or word.text.rsplit("/", 1)[-1] in flags.LAUNCHERS
            for words in shell.commands
            for word in words[:20]
            if words[0].text != "sbatch"
        )
        for name, variable in shell.variables.items():
            if variable.used:
                continue
            words = [word for runs in variable.values for word in split(runs, (0, 0))]
            options = [word for word in words if word.text.startswith("--") or "." in word.text]
            if not any(row_of(word.text) for word in options):
                continue
            if starts:
                self.ignored.append(self.item("unused", name, "", options[0].place))
            else:
                self._command(words)

    def _command(self, words: Sequence[Word]) -> None:
        """The options and overrides of one command."""
        program = words[0].text.rsplit("/", 1)[-1]
        if program in ("source", ".") and len(words) > 1:
            self._sourced(words[1])
        if program in flags.QUIET:
            return
        self._knows(flags.marks_of(words), words[0])
        self.run = self._run_name(words)
        starts_ray = program == "ray" and "start" in [word.text for word in words[1:3]]
        launcher = "ray" if starts_ray else ""
        at = 0
        while at < len(words):
            spend(STEP, "words")
            word = words[at]
            text = word.text
            named = text.rsplit("/", 1)[-1]
            override = _OVERRIDE.match(text)
            if text[:1] == "-" and not word.runs[0].why.startswith("var"):
                at += self._option(words, at, launcher)
                if text == "-m" and launcher not in ("script", "bridge"):
                    module = words[at - 1].text
                    launcher = "launcher" if module.startswith("torch.distributed") else "script"
                continue
            if override and not word.runs[0].why:
                value = word.after(override.end())
                self._key(tuple(re.split(r"[.@/]", override[1])), row_words(value), word.place)
            elif words[at - 1].text == "serve" and self.schema and self.schema.name == "vllm":
                self.read_value("vllm serve", NAMED, [word], word.place)
            elif text.endswith(".py"):
                launcher = "bridge" if named in flags.BRIDGE_SCRIPTS else "script"
                if named in flags.MEGATRON_SCRIPTS:
                    self.programs.append(self.item("understood", named, "", word.place))
            elif program in flags.CONFIGURED and text.endswith((".yaml", ".yml", ".json")):
                self._configured(program, word, word.place)
            elif launcher not in ("script", "bridge") and named in flags.LAUNCHERS:
                launcher = flags.LAUNCHERS[named].replace("ray", "")
            elif word.why and word.runs[0].why and VARIABLE.match(text):
                self.unresolved.append(self.item("may-hold-options", text, "", word.place))
            at += 1
        self.starts |= launcher in ("script", "bridge")

    def row_of(self, name: str) -> Row | None:
        """The row of an option in the framework that is read now."""
        if self.schema:
            row = self.schema.options.get(name) or self.schema.options.get(plain_name(name))
            if row or self.schema.known:
                return row if name[:2] == "--" or name in self.schema.options else None
        return row_of(name)

    def _option(self, words: Sequence[Word], at: int, launcher: str) -> int:
        """One option with its values; how many words it takes."""
        word, short = words[at], flags.SHORT.get(launcher, {})
        name, equals, _ = word.text.partition("=")
        row = short.get(name) or self.row_of(name)
        given = [word.after(len(name) + 1)] if equals else []
        if name.startswith("--"):
            values = given or words[at + 1 : at + 2]
            self.stated[name] = values[0].text if values else ""
        elif row is None and name[:2] in short:  # -N2
            self.read_value(name[:2], short[name[:2]], [word.after(2)], word.place)
            return 1
        configures = plain_name(name) in flags.CONFIGURING
        names_file = configures or (launcher == "bridge" and name in flags.BRIDGE_RECIPES)
        is_key = name.startswith("--") and "." in name and not names_file
        if row is None and not (names_file or is_key):
            return self._ignored_option(words, at, name, given)
        kind = row.kind if row is not None and not (names_file or is_key) else ""
        if not equals and kind not in ("switch", "off"):
            given = following(words, at, kind)
        place = whole_place(word, given)
        if is_key:
            self._key(tuple(name.lstrip("-").split(".")), given, place, name)
        elif row is not None and given and given[0].text == "None":  # as scripts in Python take it
            self.ignored.append(self.item("not-given", name, "None", place))
        elif row is not None and not names_file:
            self.read_value(name, row, given, place)
        elif given:
            self._configured(name, given[0], place)
        return 1 if equals else 1 + len(given)

    def _ignored_option(self, words: Sequence[Word], at: int, name: str, given: list[Word]) -> int:
        word = words[at]
        if not name.startswith("--"):
            size = words[at + 1].text if name in _SHORT_SIZES and len(words) > at + 1 else ""
            if size.isdigit():
                self._size_unknown(name, size, word.place)
            return min(2, len(words) - at) if name in ("-m", "-c") else 1
        taken = 1
        if not given:
            given = following(words, at)
            if given and (given[0].text.endswith(".py") or _OVERRIDE.match(given[0].text)):
                given = []
            taken += len(given)
        if len(name) > 2:
            self._ignore(name, given[0].text if given else "", whole_place(word, given))
        return taken

    def _ignore(self, name: str, value: str, place: tuple[int, int]) -> None:
        plain = plain_name(name.rsplit(".", 1)[-1])
        names = {plain, ".".join(name.split(".")[-2:])}
        if names & flags.ADAPTERS and _ADAPTS.search(value):
            if not self.adapts:
                self.unresolved.append(self.item("part-trained", name, value, place))
            self.adapts = True
            return
        is_new = not (plain in flags.NOT_DRAWN or plain in flags.REMOVED or is_known(plain))
        if is_new and names_a_size(plain) and not (self.schema and self.schema.roles):
            self._size_unknown(name, value, place)
            return
        if plain in flags.REMOVED and name.startswith("--"):
            facts = {"use": f"--{flags.REMOVED[plain]}"}
            self.removed.append(self.item("removed", name, value, place, facts=facts))
            return
        code = "no-group" if is_known(plain) else "unknown"
        code = "not-drawn" if plain in flags.NOT_DRAWN else code
        self.ignored.append(self.item(code, name, value, place))

    def _file(self, source: Source, form: str, *, is_all: bool = True) -> None:
        """A file; what is none and says nothing may stand in a script, where help is printed."""
        entries, left, faults = read_file(source, form)
        before = len(self.said)
        self._state(entries)
        self._knows(flags.beginnings(self.stated), entries[0].key if entries else source.word(0, 0))
        if is_all and self.schema is None:
            self._commands(entries)
        for entry in entries:
            spend(STEP, "keys")
            entry = self._referred(entry)
            name = entry.path[-1]
            self._inheriting(entry)
            place = whole_place(entry.key, entry.values)
            if row := row_of(name):  # options kept as keys
                self.read_value(name, row, entry.values, place)
            else:
                path = (*entry.path[:-1], *name.split("/"))  # nvidia.com/gpu
                self._key(path, entry.values, place, ".".join(entry.path))
        for word in left:
            shown = word.text.split("\n", 1)[0][:80]
            self.ignored.append(self.item("not-read", shown, "", word.place))
        if is_all or len(self.said) > before:
            self._faults(faults)

    def _commands(self, entries: Sequence[Entry]) -> None:
        """What a file runs."""
        for words in commands_of(entries):
            if len(words) > 1:
                self._command(words)
            elif words:
                self._shell(Source(words[0].runs))
        self.run, self.schema = "", None

    def _faults(self, faults: Iterable[Fault]) -> None:
        for code, start, end, facts in faults:
            item = self.item(code, self.text[start:end], "", (start, end), facts=facts)
            self.problems.append(item)

    def _state(self, entries: Sequence[Entry]) -> None:
        """What single values are, by path: what a table chooses by, and what others refer to."""
        for entry in entries:
            path = ".".join(entry.path).replace("-", "_")
            texts = ["" if word.why else word.text for word in entry.values]
            self.stated[path] = texts[0].strip().lower() if len(texts) == 1 else ""
            if entry.path[-1] in ("_component_", "_target_"):
                self.stated |= dict.fromkeys(texts[:1], "")

    def _referred(self, entry: Entry) -> Entry:
        """``${section.key}`` is what stands there."""
        words = []
        for word in entry.values:
            name = _REFERENCE.fullmatch(word.text) if not word.why else None
            value = self.stated.get(name[1].replace("-", "_"), "") if name else ""
            if value and "$" not in value:
                run = word.runs[0]
                word = Word((CommandRun(value, run.start, word.runs[-1].end),), word.at)
            words.append(word)
        return entry._replace(values=words)

    def _inheriting(self, entry: Entry) -> None:
        """Keys that take over what another file says."""
        inherits = self.schema.inherits if self.schema else flags.INHERITS
        at_top = len(entry.path) - (len(self.schema.within) if self.schema else 0) <= 1
        name = entry.path[-1] if entry.path[-1] in inherits else entry.path[0]
        values = [word.text for word in entry.values if word.text not in ("_self_", "null", "")]
        named = any(value.endswith((".yaml", ".yml")) or "/" in value for value in values)
        if name in inherits and at_top and values and (name in flags.INHERITS or named):
            self.unresolved.append(
                self.item("inherits", name, values[0], entry.key.place, sets="named")
            )

    def _sourced(self, word: Word) -> None:
        """A script that is taken in; those that only prepare the machine say nothing of a job."""
        name = word.text.rstrip("\"'").rsplit("/", 1)[-1].lower()
        if not any(part in name for part in flags.MACHINE_SCRIPTS):
            self.unresolved.append(
                self.item("sourced", "source", word.text, word.place, sets="named")
            )

    def _configured(self, name: str, value: Word, place: tuple[int, int]) -> None:
        """A file or a recipe that says what the command does not; a schema's own says nothing."""
        file_names = self.schema.defaults if self.schema else ()
        is_usual = file_names and value.text.rsplit("/", 1)[-1].startswith(file_names)
        if is_usual or value.text in self.written:
            return
        sets = "" if value.text in flags.PLACEHOLDERS else "named"
        self.configured.append(self.item("configured", name, value.text[:80], place, sets=sets))
        if re.fullmatch(r"[\w-]+", value.text) and flags.published_model(value.text):
            self.read_value(name, RECIPE, [value], place)

    def _size_unknown(self, name: str, value: str, place: tuple[int, int]) -> None:
        """A key that looks like a size of a layout and that no table has."""
        if value in ("1", "null", "None", "", "false", "False"):
            self.ignored.append(self.item("unknown", name, value, place))
        else:
            self.unresolved.append(self.item("unknown-size", name, value, place))

    def _knows(self, words: set[str], word: Word) -> None:
        """Which table the words that follow are read by."""
        self.schema = flags.schema_of(words)
        if self.schema and self.schema.name not in self.schemas:
            self.schemas[self.schema.name] = self.schema
            item = self.item("understood", word.text[:40], "", word.place)
            self.speaking.append((self.schema.name, item))

    def _run_name(self, words: Sequence[Word]) -> str:
        """What a command is called where a text has several."""
        names = [word.text.rsplit("/", 1)[-1] for word in words if not word.why]
        scripts = (name for name in names if name.endswith((".py", ".sh")) and len(name) < 40)
        start = self.item("", "", "", words[0].place)
        return f"{start.line}: {next(scripts, names[0][:40] if names else '')}"

    def _recipes(self, recipes: Sequence[Recipe]) -> None:
        """Functions that make a configuration: each is a run."""
        for recipe in recipes:
            self.run = recipe.name
            for entry in recipe.entries:
                spend(STEP, "keys")
                self._key(entry.path, entry.values, whole_place(entry.key, entry.values))
            for name in recipe.inherits[:8]:
                place, facts = recipe.entries[0].key.place, {"run": recipe.name}
                self.unresolved.append(self.item("inherits", name, recipe.name, place, facts=facts))
        self.run = ""

    def _key(
        self, path: tuple[str, ...], values: list[Word], place: tuple[int, int], name: str = ""
    ) -> None:
        """A key of a file, or of an override."""
        name, shown = name or ".".join(path), " ".join(word.text for word in values[:20])
        if len(values) == 1 and not values[0].why:
            self.stated.setdefault(".".join(path), values[0].text.lower())
        if self.schema:
            meaning = self.schema.meaning(path)
            row, role = meaning or (NAMED, "")
            if meaning and (not says_nothing(values) or (not values and row.kind == "switch")):
                self.read_value(name, row, values, place, role)
                return
            if meaning or self.schema.keys:
                self._ignore(name, shown, place)
                return
        for section in path[:-1]:
            if section in flags.SECTIONS_OF:
                item = self.item("understood", name, "", place)
                self.speaking.append((flags.SECTIONS_OF[section], item))
        key = flags.KEYS.get(".".join(path[-2:])) or flags.KEYS.get(path[-1])
        section = path[-2] if len(path) > 1 else ""
        if key is None or section not in key.sections:
            self._ignore(name, shown, place)
        elif says_nothing(values):
            self.ignored.append(self.item("not-given", name, "null", place))
        else:
            self.read_value(name, key.row, values, place)
