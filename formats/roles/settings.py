"""The settings of a text by name, whatever its form: options, overrides or a file's keys.

A setting that is not there has its framework's default, which is noted; one that the text does
not work out is asked for.

>>> from formats.launch.sayings import read
>>> reading = read("python3 -m verl.trainer.main_ppo trainer.nnodes=2 trainer.x=$N")
>>> settings = RoleSettings(reading, run_of(reading))
>>> settings.count("trainer.nnodes", 1), settings.count("trainer.n_gpus_per_node", 8)
(2, 8)
>>> [dict(note.facts) for note in settings.notes]
[{'setting': 'trainer.n_gpus_per_node', 'value': 8}]
>>> settings.count("trainer.x", 1)
Traceback (most recent call last):
groups.errors.LayoutError: the text does not work out trainer.x, which is $N; try trainer.x 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from groups.errors import LayoutError, not_a_choice, quoted
from groups.mesh import MAX_RANKS
from groups.notes import Note

from ..errors import refusal
from ..launch.items import run_named
from ..launch.sayings import Reading
from ..launch.sayings.values import OFF, ON, VARIABLE
from ..launch.syntax.words import Word

NOTHING = ("", "null", "none", "~")


@dataclass
class RoleSettings:
    """The settings of a text. answers: settings answered beside the text, which take precedence."""

    reading: Reading
    run: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)  # what is assumed

    def words(self, name: str) -> Sequence[Word] | None:
        """The words of a setting; None if the text does not have it."""
        settings = self.reading.settings
        return settings.get((self.run, name), settings.get(("", name)))

    def text(self, *names: str, works: object = None) -> str | None:
        """The value of the first of several settings that exists; None if none does, or if it is
        null.

        Errors: LayoutError if the text leaves the value open, with a value that works.
        """
        for name in names:
            if name in self.answers:
                return self.answers[name]
            words = self.words(name)
            if words is None:
                continue
            for word in words:
                if word.why or VARIABLE.search(word.text):
                    raise _open(name, word, works)
                if word.default:
                    facts = {"name": word.default.name, "value": word.default.value}
                    self.note(Note("variable-default", facts))
            text = ", ".join(word.text for word in words)
            return None if text.lower() in NOTHING else text
        return None

    def named(self, *names: str) -> str | None:
        """The name of a checkpoint: the end of its path; None if it is not set."""
        for name in names:
            if name in self.answers:
                return self.answers[name]
            words = self.words(name)
            if words is None:
                continue
            path = " ".join(word.text for word in words).strip("\"' ").rstrip("/")
            end = path.rsplit("/", 1)[-1]
            is_open = VARIABLE.search(end) or (end == path and any(word.why for word in words))
            return None if is_open or end.lower() in NOTHING else end
        return None

    def has(self, name: str) -> bool:
        """Whether a setting, or anything below it, is set."""
        under = f"{name}."
        return any(
            own == name or own.startswith(under)
            for own in (*(path for _, path in self.reading.settings), *self.answers)
        )

    def word(self, *names: str, default: str = "") -> str:
        """The value of a setting in lower case."""
        text = self.text(*names, works=default or None)
        return default if text is None else text.strip("\"'").lower()

    def switch(self, *names: str, default: bool = False) -> bool:
        """Whether a switch is on; an option without a value is."""
        if any(self._stands_alone(name) for name in names):
            return True
        text = self.text(*names, works=str(default).lower())
        if text is None:
            return default
        lower = text.lower()
        if lower not in (*ON, *OFF):
            raise _not_so(names[0], text, "on or off", {names[0]: True}, {names[0]: False})
        return lower in ON

    def _stands_alone(self, name: str) -> bool:
        """Whether a switch has no value of its own."""
        words = self.words(name)
        if words is None or name in self.answers:
            return False
        return not words or words[0].text.endswith("[@]}")  # a list of other options

    def count(
        self, name: str, default: int, *others: str, least: int = 1, note: str = "setting-default"
    ) -> int:
        """A whole number; if it is not set, its default is noted, except 0."""
        text = self.text(name, *others, works=max(default, least))
        if text is None:
            if note:
                self.note(Note(note, {"setting": name, "value": default}))
            return default
        digits = text.strip().lstrip("+").replace("_", "")
        if not digits.isdigit() or len(digits) > 12 or not least <= int(digits) <= MAX_RANKS:
            fix = {name: max(default, least)}
            raise _not_so(name, text, f"a whole number from {least} up", fix)
        return int(digits)

    def required(self, name: str, *fixes: object) -> int:
        """A whole number without a default. Errors: LayoutError with values that work."""
        if self.text(name) is None:
            raise refusal("setting-missing", name, *({name: fix} for fix in fixes), setting=name)
        return self.count(name, 1)

    def assume(self, name: str, value: object) -> None:
        """Notes the framework's default of a setting."""
        self.note(Note("setting-default", {"setting": name, "value": value}))

    def note(self, note: Note) -> None:
        if note not in self.notes:
            self.notes.append(note)

    def require_known(self, roles: Sequence[str]) -> None:
        """Errors: LayoutError for an answer to no question."""
        for name in self.answers:
            role, _, what = name.partition(".")
            if role not in roles or not what:
                continue
            if what not in SIZES:
                raise not_a_choice("settings", name, [f"{role}.{size}" for size in SIZES])


SIZES = ("tp", "pp", "cp", "ep", "etp", "dp")
"""Sizes of a role that may be answered by its name: actor.tp."""


def run_of(reading: Reading, run: str = "") -> str:
    """The command that is read: the only one, or the requested one."""
    main = next((own for own in reading.schemas if own.roles or not own.serves), reading.schema)
    runs = [name for name, own in reading.schema_of_run.items() if main and own.name == main.name]
    named = run_named(run, runs)
    if len(runs) > 1 and not named:
        fixes = ({"run": name} for name in runs[:3])
        raise refusal("several-commands", "run", *fixes, count=len(runs), names=", ".join(runs))
    return named or run or next(iter(runs), "")


def _open(name: str, word: Word, works: object) -> LayoutError:
    """The refusal of a setting that the text leaves open; for a conditional one, its possible value
    is offered."""
    if word.why == "condition" and not VARIABLE.search(word.text):
        facts = {"setting": name, "value": word.text[:60]}
        return refusal("setting-by-condition", name, {name: word.text[:60]}, **facts)
    fixes = () if works is None else ({name: works},)
    return refusal("setting-open", name, *fixes, setting=name, value=word.text[:60])


def _not_so(name: str, text: str, what: str, *fixes: Mapping[str, object]) -> LayoutError:
    return refusal("setting-wrong", name, *fixes, setting=name, value=quoted(text), expected=what)
