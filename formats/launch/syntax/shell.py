"""The words of a launch script, with its own variables expanded. Nothing is executed.

A script is read once, from left to right: comments and continuations fall away, quotes are taken
off, ``NAME=value`` and ``NAME=( ... )`` are kept, and ``$NAME``, ``${NAME:-default}`` and
``$((A * B))`` are put in where the script itself says what they are. Everything else that a shell
would work out (other variables, ``$(commands)``, what an ``if`` decides) stays as it is written
and is marked with the reason. Every word knows where it stands in the text. The standard library's
shlex does not do: it drops the places, knows no variables, arrays and here-documents, and raises
at a quote that is never closed, which people paste.

>>> shell = read_script(Source.of('TP=4\\ntorchrun train.py --tp $TP --pp "$PP"'))
>>> [[(word.text, word.why) for word in command] for command in shell.commands]
[[('torchrun', ''), ('train.py', ''), ('--tp', ''), ('4', ''), ('--pp', ''), ('$PP', 'variable')]]

Source of the rules: GNU Bash manual, sections 3.1-3.5 and 6.7; Slurm, sbatch, output environment
variables.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from groups.budget import spend

from ..flags import WORDS
from .expand import HEREDOC, MAX_DEPTH, Expander, Shell, Variable, set_by_slurm
from .words import STEP, CommandRun, Source, Word, split


def read_script(source: Source, files: Mapping[str, Source] = MappingProxyType({})) -> Shell:
    """Reads a script: its commands, variables and here-documents. files: other scripts, by their
    names, which are read where it takes them in."""
    shell = Shell()
    shell.files = files
    _Reader(shell, source, 0).read()
    return shell


SCRIPTS = (".sh", ".bash", ".sbatch", ".slurm")
"""Suffixes of scripts."""

TAKES_IN = ("source", ".", "bash", "sh", "zsh", "sbatch", "srun")
"""Programs that run another script."""

REMOTE = ("ssh", "pdsh", "clush", "parallel-ssh", "pssh")
"""Programs whose last word is a script for other machines."""

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_ITSELF = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(\"?)(?:\$\{\1\}|\$\1(?![A-Za-z0-9_]))")
_WHITE = re.compile(r"\s")
_PLAIN = re.compile(r"[^\s\\'\"`$;&|()<>]+")
_SPACES = re.compile(r"[ \t\r\f\v]+")
_PLACEHOLDER = re.compile(r"<[A-Za-z_][A-Za-z0-9_ ./-]{0,60}>")
_REDIRECT = re.compile(r"&?[<>]{1,3}\|?(&[0-9-])?[ \t]*")
_SBATCH = re.compile(r"#SBATCH[ \t]+")
_BLANK = re.compile(r"[ \t\r]+\n")


class _Reader(Expander):
    """One pass over one source."""

    def __init__(self, shell: Shell, source: Source, depth: int) -> None:
        super().__init__(shell, source)
        self.depth = depth  # how many scripts it is inside of
        self.i = 0
        self.words: list[Word] = []  # of this command
        self.runs: list[CommandRun] = []  # of this word
        self.begun: int | None = None  # where this word starts; None between words
        self.array: tuple[str, bool, int, list[Word]] | None = None  # name, appends, start, outer
        self.skips = False  # the next word is where output goes
        self.into = ""  # where the output of this command goes
        self.heredocs: list[tuple[str, bool]] = []
        self.branches = 0  # of if and case
        self.pattern = False  # of a case: up to its parenthesis no command stands there
        self.tested = False  # the last command was a test, which && and || go by
        self.guarded = False  # by what stands before && or ||

    def read(self) -> None:
        while self.i < len(self.text):
            spend(STEP, "words")
            plain = _PLAIN.match(self.text, self.i)
            if plain and (self.begun is not None or plain[0][0] != "#"):
                self._take(self.i, plain.end())
            else:
                is_redirect = self.text.startswith("&>", self.i)
                _STEPS.get(">" if is_redirect else self.text[self.i], _Reader._blank)(self)
        self._end_command()
        if self.array:
            start = self.array[2]
            self.shell.fault("unclosed", self.source.place(start, start + 1), sign="(")
            self._end_array()

    # -- words -----------------------------------------------------------------------------------

    def _take(self, start: int, end: int) -> None:
        """Adds characters to the word unchanged. ``NAME="$NAME more"`` is ``NAME+=" more"``: a
        variable that names itself first takes its old value once."""
        self._begin()
        self.runs += self.source.part(start, end)
        self.i = end
        begins = self.text[end - 1] == "=" and len(self.runs) == 1 and not self.array
        itself = _ITSELF.match(self.text, start) if begins else None
        if itself and itself[1] in self.shell.variables and self._assigns(self.runs):
            self.runs[-1] = self.runs[-1]._replace(text=f"{itself[1]}+=")
            self.i = itself.end()
            if itself[2]:
                self._quote_after(itself[2])

    def _begin(self) -> None:
        if self.begun is None:
            self.begun = self.i

    def _end_word(self) -> None:
        if self.begun is None:
            return
        word = Word(tuple(self.runs), self.source.place(self.begun, self.begun))
        self.runs, self.begun = [], None
        if self.skips:
            self.skips, self.into = False, word.text
        elif not self.array and (match := self._assigns(word.runs)):
            left = list(word.after(match.end()).runs)
            nothing = [run for run in word.runs[1:] if run.default]  # that a default makes it
            self._assign(match[1], bool(match[2]), [left or nothing])
        else:
            self.words.append(word)

    def _assigns(self, runs: Sequence[CommandRun]) -> re.Match[str] | None:
        """The NAME= that this word begins with, where a command may begin."""
        if not runs or runs[0].why or len(self.words) > 3:
            return None
        if self.words and self.words[0].text not in WORDS.prefixes:
            return None
        if not all(word.text in WORDS.prefixes or word.text[:1] == "-" for word in self.words):
            return None
        return _ASSIGNMENT.match(runs[0].text)

    # -- between words ---------------------------------------------------------------------------

    def _blank(self) -> None:
        blank = _SPACES.match(self.text, self.i)
        self._end_word()
        self.i = blank.end() if blank else self.i + 1  # a space that is none of the shell's

    def _newline(self) -> None:
        self._end_word()
        self.i += 1
        if self.array:
            return
        into = self.into
        self._end_command()
        for delimiter, quoted in self.heredocs:
            self._heredoc(delimiter, quoted, into)
        self.heredocs = []

    def _backslash(self) -> None:
        rest = self.text[self.i + 1 : self.i + 3]
        if rest[:1] == "\n" or rest == "\r\n":
            self.i += 2 if rest[:1] == "\n" else 3
        elif (match := _BLANK.match(self.text, self.i + 1)) and not self.array:
            self.shell.fault("space-after-backslash", self.source.place(self.i, match.end() - 1))
            self.i = match.end() - 1
        elif rest:
            self._begin()
            self._take(self.i + 1, self.i + 2)
        else:
            self.i += 1

    def _comment(self) -> None:
        end = self.text.find("\n", self.i)
        end = len(self.text) if end < 0 else end
        slurm = _SBATCH.match(self.text, self.i)
        if slurm and not self.words and not self.array:
            rest = Source(self.source.part(slurm.end(), end))
            inner = _Reader(self.shell, rest, MAX_DEPTH)
            sbatch = CommandRun("sbatch", *self.source.place(self.i, self.i + 7))
            inner.words = [Word((sbatch,), (0, 0))]
            inner.read()
        self.i = end

    def _operator(self) -> None:
        self._end_word()
        operator = self.text[self.i : self.i + 2]
        if operator not in ("&&", "||", ";;"):
            operator = operator[0]
        self.i += len(operator)
        if not self.array:
            self._end_command(operator)

    def _open(self) -> None:
        """``(``: of an array after NAME=, else of a subshell."""
        match = self._assigns(self.runs) if len(self.runs) == 1 and not self.array else None
        if match and match.end() == len(self.runs[0].text):
            self.array = (match[1], bool(match[2]), self.i, self.words)
            self.words, self.runs, self.begun = [], [], None
        elif self.array:
            self._take(self.i, self.i + 1)
            return
        else:
            self._end_command()
        self.i += 1

    def _close(self) -> None:
        self._end_word()
        if self.array:
            self._end_array()
        else:
            self._end_command()
            self.pattern = False
        self.i += 1

    def _end_array(self) -> None:
        assert self.array is not None
        name, appends, _, outer = self.array
        words, self.words, self.array = self.words, outer, None
        self._assign(name, appends, [list(word.runs) for word in words], is_array=True)

    def _redirect(self) -> None:
        placeholder = _PLACEHOLDER.match(self.text, self.i)
        heredoc = HEREDOC.match(self.text, self.i)
        if placeholder:
            self._take(placeholder.start(), placeholder.end())
            last = self.runs[-1]
            self.runs[-1] = last._replace(why="placeholder")
        elif heredoc and not self.array:
            self._end_word()
            self.heredocs.append((heredoc[3], bool(heredoc[2])))
            self.i = heredoc.end()
        else:
            if self.begun is not None and "".join(run.text for run in self.runs).isdigit():
                self.runs, self.begun = [], None  # the 2 of 2>&1
            self._end_word()
            match = _REDIRECT.match(self.text, self.i)
            self.i = match.end() if match else self.i + 1
            self.skips = bool(match and not match[1])

    def _heredoc(self, delimiter: str, quoted: bool, into: str) -> None:
        starts = self.source.lines.get(delimiter, [])
        at = bisect.bisect_left(starts, self.i)
        if at == len(starts):
            place = self.source.place(self.i - 1, self.i)
            self.shell.fault("unclosed", place, sign=f"<<{delimiter}")
            return
        end = starts[at]
        runs = self.source.part(self.i, end) if quoted else list(self.inside(self.i, end, 0))
        after = self.text.find("\n", end)
        self.i = after if after >= 0 else len(self.text)
        body = Source(runs)
        if into:
            self.shell.kept[into.rsplit("/", 1)[-1]] = body
        command = self.shell.commands[-1] if self.shell.commands else []
        programs = {word.text.rsplit("/", 1)[-1] for word in command[:3]}
        if programs & {"sbatch", "bash", "sh", "ssh", "srun"} or into.endswith(SCRIPTS):
            self._read_inside(body)
        elif "read" in programs:
            self._assign(command[-1].text, False, [[*body.runs]])
        elif any(program.startswith("python") for program in programs):
            self.shell.pythons.append(body)
        else:
            self.shell.documents.append(body)

    def _end_command(self, operator: str = "") -> None:
        """operator: what is behind it on its line: ``;``, ``;;``, ``&``, ``|``, ``&&``, ``||``."""
        self._end_word()
        if self.array:
            self.array = (*self.array[:3], [])
            return
        is_pattern = self.pattern
        words = self._without_keywords(self.words)
        words, self.words = [] if is_pattern else words, []
        into, self.into = self.into, ""
        self.pattern |= operator == ";;" and self.branches > 0
        self.skips = False
        self.tested = bool(words) and words[0].text in ("[", "[[", "test")
        goes_on = operator == "&&" and (self.tested or self.guarded)
        self.guarded = operator == "||" or goes_on
        if not words or self.tested:
            return
        self.shell.commands.append(words)
        self._read_nested(words, into)
        if words[0].text == "sbatch":
            set_by_slurm(self.shell, words)

    # -- quotes and expansions -------------------------------------------------------------------

    def _quote(self) -> None:
        quote = self.text[self.i]
        self._quote_after(quote, self.i)

    def _quote_after(self, quote: str, start: int = -1) -> None:
        """The rest of a quotation; start: of the quote itself, if that is still to be read."""
        start = self.i - 1 if start < 0 else start
        end = self.closing(quote, start + 1)
        if end < 0:
            if quote not in self.no_more:
                self.no_more += quote
                place = self.source.place(start, start + 1)
                self.shell.fault("unclosed", place, sign=quote)
            self.i += 1
            return
        self._begin()
        if quote == "'":
            self.runs += self.source.part(start + 1, end)
        elif quote == '"':
            words = self.array_words(start + 1, end)
            if words is not None:
                self._splice(words)
            else:
                self.runs += self.inside(start + 1, end, 0)
        else:
            runs = self.printed(start, end + 1)
            self.runs += runs or self.unknown(start, end + 1, "command")
        self.i = end + 1

    def _splice(self, words: Sequence[Word]) -> None:
        """Inserts the words of a variable in place of one word."""
        for at, word in enumerate(words):
            spend(STEP, "words")
            if at:
                self._end_word()
                self.begun = self.i
            self.runs += word.runs
        if not words and not self.runs:
            self.begun = None

    def _dollar(self) -> None:
        start = self.i
        splits = not self._assigns(self.runs) or bool(self.array)
        if self.text[start + 1 : start + 2] in ("'", '"'):
            self.i += 1
            return
        self._begin()
        runs, self.i = self.expanded(start, len(self.text), 0)
        texts = [run.text for run in runs]
        if not splits or (any(texts) and not any(map(_WHITE.search, texts))):
            self.runs += runs
            return
        if self.runs and runs and runs[0].text[:1].isspace():
            self._end_word()
            self.begun = start
        default = runs[0].default if runs and not any(texts) else None
        if default and self.words and self.words[0].text not in _NO_PROGRAMS:
            self.shell.emptied.append((default.name, *self.source.place(start, self.i)))
        self._splice(split(runs, self.source.place(start, self.i)))
        if runs and self.runs and runs[-1].text[-1:].isspace():
            self._end_word()

    # -- variables -------------------------------------------------------------------------------

    def _assign(
        self, name: str, appends: bool, values: list[list[CommandRun]], *, is_array: bool = False
    ) -> None:
        """``NAME=value`` or ``NAME=( ... )``, and ``+=`` of both."""
        variables = self.shell.variables
        old = variables.get(name)
        if self.branches or self.guarded:
            values = _undecided(values, [] if appends or not old else [*old.every_run])
        if not appends or not old:
            variables[name] = Variable(values)
        elif is_array or not old.values:
            old.values += values
        else:
            old.values[0] += values[0]  # in place: appending line by line stays linear

    def _without_keywords(self, words: list[Word]) -> list[Word]:
        """The command after the shell's own words, which tell what is undecided."""
        first = 0
        while first < len(words) and (keyword := words[first].text) in KEYWORDS:
            first += 1
            self.branches = max(0, self.branches + KEYWORDS[keyword])
            if keyword in ("case", "esac"):
                self.pattern = keyword == "case"
            elif keyword in ("for", "select") and first < len(words):
                name = words[first]
                run = CommandRun(f"${name.text}", *name.place, "loop")
                self.shell.variables[name.text] = Variable([[run]])
            if keyword in ("for", "select", "case"):
                first = len(words)
        return words[first:]

    def _read_nested(self, words: list[Word], into: str) -> None:
        """Reads ``bash -c`` and ``eval`` as scripts, and files that are written."""
        runs: Sequence[CommandRun] = ()
        names = [word.text.rsplit("/", 1)[-1] for word in words[:4]]
        if names[0] in TAKES_IN or names[0] in self.shell.files:
            name = next((name for name in names if name in self.shell.files), "")
            if name and name not in self.shell.taken:
                self.shell.taken.add(name)
                self._read_inside(self.shell.files[name])
        if names[0] in REMOTE and _WHITE.search(words[-1].text):
            runs = words[-1].runs
        if words[0].text == "eval" or (words[0].text == "echo" and into.endswith(SCRIPTS)):
            runs = [run for word in words[1:] for run in (*word.runs, CommandRun(" ", *word.at))]
            self.shell.commands.pop()
        for program, option, script in zip(words, words[1:], words[2:]):
            name = program.text.rsplit("/", 1)[-1]
            if option.text[:1] == "-" and option.text.endswith("c"):
                if name in ("bash", "sh", "zsh", "-x"):
                    runs = runs or script.runs
                elif name.startswith("python"):
                    self.shell.pythons.append(Source(script.runs))
        if runs and self.shell.may_spend(runs, words[0].place):
            self._read_inside(Source(runs))

    def _read_inside(self, source: Source) -> None:
        if self.depth < MAX_DEPTH:
            _Reader(self.shell, source, self.depth + 1).read()


def _undecided(values: list[list[CommandRun]], before: list[CommandRun]) -> list[list[CommandRun]]:
    """Values as a condition leaves them: open, except those that were set before.

    So NAME="$NAME more" and NAME=( "${NAME[@]}" more ) leave open what is more.
    """
    every = [*itertools.chain.from_iterable(values)]
    kept = len(before) if every[: len(before)] == before else 0
    more = (run._replace(why=run.why or "condition") for run in every[kept:])
    runs = itertools.chain(before[:kept], more)
    return [[*itertools.islice(runs, len(value))] for value in values]


KEYWORDS = {
    **dict.fromkeys(WORDS.keywords.deeper, 1),
    **dict.fromkeys(WORDS.keywords.shallower, -1),
    **dict.fromkeys(WORDS.keywords.same, 0),
}
"""The shell's own words, with the change of the number of undecided branches."""

_NO_PROGRAMS = {*KEYWORDS, *WORDS.quiet, "[", "[[", "test"}
"""First words of a command that takes no options of a job."""

_STEPS: dict[str, Callable[[_Reader], None]] = {
    **dict.fromkeys("'\"`", _Reader._quote),
    **dict.fromkeys("<>", _Reader._redirect),
    **dict.fromkeys(";&|", _Reader._operator),
    **{"(": _Reader._open, ")": _Reader._close, "$": _Reader._dollar, "#": _Reader._comment},
    **{"\n": _Reader._newline, "\\": _Reader._backslash},
}
"""The action at each sign; other characters belong to words."""
