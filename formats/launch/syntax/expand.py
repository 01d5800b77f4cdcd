"""Expands ``$NAME``, ``${NAME:-default}`` and ``$((A * B))`` where the script itself sets their
values.

What it does not say stays as it is written, with the reason: "variable", "command", "arithmetic".

>>> shell = Shell()
>>> shell.variables["NODES"] = Variable([[CommandRun("4", 6, 7)]])
>>> expander = Expander(shell, Source.of("$((8 * NODES)) ${GPUS:-8} $TP"))
>>> runs = [*expander.inside(0, 29, 0)]
>>> [(run.text, run.why) for run in runs]
[('32', ''), (' ', ''), ('8', ''), (' ', ''), ('$TP', 'variable')]
>>> runs[2].default
Default(name='GPUS', value='8')

Source of the rules: GNU Bash manual, sections 3.5.3 and 6.5.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from groups.budget import spend

from ..flags import WORDS
from .words import STEP, CommandRun, Default, Fault, Source, Word, calculate

MAX_EXPANDED = 200_000
"""The most characters that variables may insert in total: a few lines can require billions."""

MAX_DEPTH = 4
"""The deepest nesting of scripts (``bash -c "..."``, here-documents), and of defaults."""

_CLOSING = {
    '"': re.compile(r'\\.|"|\$\((?!\()', re.DOTALL),
    "`": re.compile(r"\\.|`", re.DOTALL),
}
HEREDOC = re.compile(r"<<(-?)[ \t]*(['\"\\]?)([A-Za-z_][A-Za-z0-9_]*)['\"]?")
_CAT = re.compile(rf"\$\([ \t]*cat[ \t]*{HEREDOC.pattern}[ \t]*\n")
_CAT_FILE = re.compile(r"(?:\$\(|`)[ \t]*(?:cat[ \t]+|<[ \t]*)([\w./-]+)[ \t]*[)`]")
_ARRAY = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\[[@*]\]\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]")
_DEFAULT = re.compile(r":?[-=?]")
_INSIDE = re.compile(r"[\\$'\"]")
_ARITHMETIC = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)|[0-9]+|\S")
_SIGNS = tuple("-+*/%()")


@dataclass
class Variable:
    """A variable's value: the runs of each word of an array, or of its single value."""

    values: list[list[CommandRun]]
    used: bool = False

    @property
    def runs(self) -> list[CommandRun]:
        """What ``$NAME`` stands for: of an array, its first word."""
        return self.values[0] if self.values else []

    @property
    def every_run(self) -> Iterator[CommandRun]:
        """The runs of all its words, one after the other."""
        return itertools.chain.from_iterable(self.values)

    def refer(self) -> Variable:
        self.used = True
        return self


class Shell:
    """The content of a script: its commands, variables and here-documents, and its faults."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.commands: list[list[Word]] = []
        self.documents: list[Source] = []
        self.pythons: list[Source] = []  # programs in Python that it runs
        self.kept: dict[str, Source] = {}  # what it puts into files, by their names
        self.files: Mapping[str, Source] = {}  # other scripts of the paste, by their names
        self.taken: set[str] = set()  # those of them that it takes in
        self.faults: list[Fault] = []
        self.emptied: list[tuple[str, int, int]] = []  # variables that are nothing by default
        self.spent = 0

    def fault(self, code: str, place: tuple[int, int], **facts: object) -> None:
        self.faults.append(Fault(code, *place, facts))

    def may_spend(self, runs: Iterable[CommandRun], place: tuple[int, int]) -> bool:
        """Whether variables may insert so many more characters."""
        for run in runs:
            if self.spent > MAX_EXPANDED:
                return False
            self.spent += len(run.text) + 1
            spend(1, "words")
            if self.spent > MAX_EXPANDED:
                self.fault("expands-too-much", place, limit=MAX_EXPANDED)
                return False
        return True


def set_by_slurm(shell: Shell, words: Sequence[Word]) -> None:
    """Sets the variables that Slurm derives from a job's options."""
    for word, following in zip(words, [*words[1:], Word((), (0, 0))]):
        option, _, value = word.text.partition("=")
        argument = word.after(len(option) + 1) if value else following
        for slurm in WORDS.slurm:
            for name in slurm.variables if option in slurm.options else ():
                if argument.text.isdigit():
                    shell.variables.setdefault(name, Variable([[*argument.runs]]))


class Expander:
    """The quotes and expansions of one source."""

    def __init__(self, shell: Shell, source: Source) -> None:
        self.shell, self.source, self.text = shell, source, source.text
        self.no_more = ""  # a quote that is never closed again
        self.cats = 0  # here-documents inside here-documents

    def closing(self, quote: str, start: int) -> int:
        """The place where a quote is closed, or -1."""
        if quote in self.no_more:
            return -1
        if quote == "'":
            return self.text.find(quote, start)
        pattern = _CLOSING[quote]
        while match := pattern.search(self.text, start):
            if match[0] == quote:
                return match.start()
            start = match.end()
            close = self.source.closers.get(match.start(), 0)
            if match[0] == "$(" and start < close < start + 2_000:
                start = close + 1  # a command may have quotes of its own
        return -1

    def array_words(self, start: int, end: int) -> list[Word] | None:
        """The words of ``"${NAME[@]}"``, if nothing else is between the quotes."""
        match = _ARRAY.fullmatch(self.text, start, end)
        variable = self.shell.variables.get(match[1]) if match else None
        if not variable:
            return None
        place = self.source.place(start, end)
        if not self.shell.may_spend(variable.refer().every_run, place):
            return None
        return [Word(tuple(runs), place) for runs in variable.values]

    def inside(self, start: int, end: int, depth: int) -> Iterator[CommandRun]:
        """The content between double quotes, or of a default: no words, only expansions."""
        at = start
        while match := _INSIDE.search(self.text, at, end):
            yield from self.source.part(at, match.start())
            at = match.start()
            follows = self.text[at + 1 : at + 2]
            if match[0] == "$":
                runs, at = self.expanded(at, end, depth)
                yield from runs
            elif match[0] == "\\" and follows in ('"', "$", "`", "\\", "\n"):
                yield from self.source.part(at + 1, at + (1 if follows == "\n" else 2))
                at += 2
            else:
                if match[0] == "\\" or not depth:  # in a default, quotes fall away
                    yield from self.source.part(at, at + 1)
                at += 1
        yield from self.source.part(at, end)

    def unknown(self, start: int, end: int, why: str) -> list[CommandRun]:
        """An expression without a known value, as it is written."""
        return [CommandRun(self.text[start:end], *self.source.place(start, end), why)]

    def expanded(self, start: int, limit: int, depth: int) -> tuple[list[CommandRun], int]:
        """The value of the ``$...`` at start, and its end."""
        spend(3 * STEP, "words")
        close = self.source.closers.get(start, limit)
        is_closed = close < limit
        if self.text.startswith("$((", start):
            if not is_closed or self.text[close - 1] != ")":
                return self.source.part(start, start + 1), start + 1
            return self._arithmetic(start, close + 1, depth), close + 1
        if self.text.startswith("$(", start):
            end = close + 1 if is_closed else start + 2
            return self.printed(start, end) or self.unknown(start, end, "command"), end
        if self.text.startswith("${", start):
            if not is_closed:
                return self.source.part(start, start + 2), start + 2
            return self._braced(start, close, depth), close + 1
        name = _NAME.match(self.text, start + 1, limit)
        if not name:
            return self.source.part(start, start + 1), start + 1
        return self._value(name[0], start, name.end()), name.end()

    def printed(self, start: int, end: int) -> list[CommandRun]:
        """The value of ``$(cat <<EOF ...)``, and of ``$(cat FILE)`` where the text holds the file;
        unknown for other commands."""
        if of_file := _CAT_FILE.fullmatch(self.text, start, end):
            name = of_file[1].rsplit("/", 1)[-1]
            source = self.shell.kept.get(name) or self.shell.files.get(name)
            runs = [*source.runs] if source else []
            self.shell.taken |= {name} if runs else set()
            return runs if self.shell.may_spend(runs, self.source.place(start, end)) else []
        match = _CAT.match(self.text, start, end)
        lines = self.source.lines.get(match[3], []) if match else []
        at = bisect.bisect_left(lines, match.end() if match else 0)
        if not match or at == len(lines) or lines[at] >= end or self.cats == MAX_DEPTH:
            return []
        if match[2]:
            return self.source.part(match.end(), lines[at])
        self.cats += 1
        runs = list(self.inside(match.end(), lines[at], 0))
        self.cats -= 1
        return runs if self.shell.may_spend(runs, self.source.place(start, end)) else []

    def _value(self, name: str, start: int, end: int) -> list[CommandRun]:
        variable = self.shell.variables.get(name)
        place = self.source.place(start, end)
        if variable and self.shell.may_spend(variable.refer().runs, place):
            return list(variable.runs)
        return self.unknown(start, end, "variable")

    def _braced(self, start: int, close: int, depth: int) -> list[CommandRun]:
        """``${NAME}``, ``${NAME:-default}``, ``${NAME[0]}``; other forms are unknown."""
        end = close + 1
        name = _NAME.match(self.text, start + 2, close)
        if not name:
            return self.unknown(start, end, "variable")
        variable = self.shell.variables.get(name[0])
        default = _DEFAULT.match(self.text, name.end(), close)
        is_set = variable and any(run.text for run in variable.runs)
        is_open = not is_set and depth < MAX_DEPTH
        if default and is_open and default[0][-1] != "?":
            inside = [*self.inside(default.end(), close, depth + 1)]
            taken = Default(name[0], "".join(run.text for run in inside[:20])[:200])
            inside = inside or [CommandRun("", *self.source.place(start, end))]
            runs = [run._replace(default=run.default or taken) for run in inside]
            if default[0].endswith("="):
                self.shell.variables[name[0]] = Variable([list(runs)])
            return runs
        form = self.text[name.end() : close]
        if default or form in ("", "[0]"):
            return self._value(name[0], start, end)
        place, is_list = self.source.place(start, end), form in ("[@]", "[*]")
        if variable and is_list and self.shell.may_spend(variable.refer().every_run, place):
            space = CommandRun(" ", *self.source.place(start, start))
            return [run for runs in variable.values for run in (*runs, space)][:-1]
        return self.unknown(start, end, "variable")

    def _arithmetic(self, start: int, end: int, depth: int) -> list[CommandRun]:
        """``$((...))`` of whole numbers and of variables that hold them."""
        if depth >= MAX_DEPTH:
            return self.unknown(start, end, "arithmetic")
        runs, tokens = [*self.inside(start + 3, end - 2, depth + 1)], list[str]()
        for match in _ARITHMETIC.finditer("".join(run.text for run in runs)):
            token = match[0]
            if match[1]:
                value = self._value(token, start, end)
                runs += value
                token = "".join(run.text for run in value).strip()
            is_number = token.isdigit() and len(token) <= 15
            if (not is_number and token not in _SIGNS) or len(tokens) > 100:
                return self.unknown(start, end, "arithmetic")
            tokens.append(token)
        result = None if any(run.why for run in runs) else calculate(tokens)
        if result is None:
            return self.unknown(start, end, "arithmetic")
        default = next((run.default for run in runs if run.default), None)
        return [CommandRun(str(result), *self.source.place(start, end), "", default)]
