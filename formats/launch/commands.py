"""What the commands of a script say: variables, scripts inside them, and what is left undecided.

Nothing is executed, so nobody decides an ``if`` or what stands behind ``&&``: what is assigned
there is marked "condition".

Source of the rules: GNU Bash manual, sections 3.2 and 3.4; Slurm, sbatch, output environment
variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .expand import MAX_DEPTH, Variable
from .flags import SLURM
from .words import CommandRun, Source, Word


class ControlFlow:
    """The commands of one source one after the other, and which of them nobody decides here."""

    def __init__(self, script: Any, depth: int) -> None:
        self.script, self.depth = script, depth  # a Shell, and how many scripts it is inside of
        self.branches = 0  # of if and case
        self.tested = False  # the last command was a test, which && and || go by
        self.guarded = False  # by what stands before && or ||

    # -- variables -------------------------------------------------------------------------------

    def assign(self, name: str, appends: bool, runs: list[CommandRun]) -> None:
        """``NAME=value`` or ``NAME+=value``."""
        variables = self.script.variables
        old = variables.get(name)
        kept = 0
        if self._undecided:
            if old and not appends and runs[: len(old.runs)] == old.runs:
                kept = len(old.runs)  # NAME="$NAME more": what was there stays decided
            runs = [*runs[:kept], *_open(runs[kept:])]
        if appends and old:
            old.runs += runs  # in place: appending line by line stays linear
            if old.words is not None and runs:
                old.words.append(Word(tuple(runs), (runs[0].start, runs[-1].end)))
        else:
            variables[name] = Variable(runs)

    def assign_words(self, name: str, appends: bool, words: list[Word]) -> None:
        """``NAME=( ... )`` or ``NAME+=( ... )``."""
        variables = self.script.variables
        old = variables.get(name)
        if self._undecided:
            given = words
            words = [Word(tuple(_open(word.runs)), word.at) for word in given]
            before = old.words if old and old.words and not appends else []
            # NAME=( "${NAME[@]}" more ) appends as well: what was there before stays decided.
            if [word.text for word in given[: len(before)]] == [word.text for word in before]:
                words[: len(before)] = before
        if appends and old:
            if old.words is None:
                old.words = [Word(tuple(old.runs), (0, 0))] if old.runs else []
            old.words.extend(words)
        else:
            variables[name] = Variable(list(words[0].runs) if words else [], words)

    @property
    def _undecided(self) -> bool:
        return bool(self.branches or self.guarded)

    # -- commands --------------------------------------------------------------------------------

    def end(self, words: list[Word], operator: str = "") -> None:
        """A command is over; its words, without those that were assignments.

        operator: what stands behind it on its line: ``;``, ``&``, ``|``, ``&&`` or ``||``.
        """
        words = self._without_keywords(words)
        self.tested = bool(words) and words[0].text in ("[", "[[", "test")
        goes_on = operator == "&&" and (self.tested or self.guarded)
        self.guarded = operator == "||" or goes_on
        if not words or self.tested:
            return
        self.script.commands.append(words)
        if self.depth < MAX_DEPTH:
            self._nested(words)
        if words[0].text == "sbatch":
            self._slurm(words)

    def _without_keywords(self, words: list[Word]) -> list[Word]:
        """What a command begins with behind the shell's own words; these say what is undecided."""
        first = 0
        while first < len(words) and (keyword := words[first].text) in KEYWORDS:
            first += 1
            self.branches = max(0, self.branches + KEYWORDS[keyword])
            if keyword in ("for", "select") and first < len(words):
                name = words[first]
                runs = [CommandRun(f"${name.text}", *name.place, "loop")]
                self.script.variables[name.text] = Variable(runs)
                first = len(words)
            elif keyword == "case":
                first = len(words)
        return words[first:]

    def _nested(self, words: list[Word]) -> None:
        """What ``bash -c`` and ``eval`` read once more."""
        runs: Sequence[CommandRun] = ()
        if words[0].text == "eval":
            runs = [run for word in words[1:] for run in (*word.runs, CommandRun(" ", *word.at))]
            self.script.commands.pop()
        for program, option, script in zip(words, words[1:], words[2:]):
            named = program.text.rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
            is_c = option.text[:1] == "-" and option.text.endswith("c")
            if is_c and not runs and (named or program.text == "-x"):
                runs = script.runs
        if runs and self.script.may_spend(runs, words[0].place):
            self.script.read(Source(runs), self.depth + 1)

    def _slurm(self, words: list[Word]) -> None:
        """The variables that Slurm sets for what a job asked for."""
        for word, following in zip(words, [*words[1:], Word((), (0, 0))]):
            option, _, value = word.text.partition("=")
            given = word.after(len(option) + 1) if value else following
            for name, options in SLURM.items():
                if option in options and given.text.isdigit():
                    self.script.variables.setdefault(name, Variable([*given.runs]))


def _open(runs: Iterable[CommandRun]) -> list[CommandRun]:
    """These runs as a condition leaves them: open, unless they were already."""
    return [run._replace(why=run.why or "condition") for run in runs]


KEYWORDS = {
    **{"if": 1, "case": 1, "fi": -1, "esac": -1},
    **dict.fromkeys(("then", "else", "elif", "do", "done", "for", "select", "while", "until"), 0),
    **dict.fromkeys(("{", "}", "!", "time", "function"), 0),
}
"""Words of the shell's own, and by how many undecided branches each goes deeper."""
