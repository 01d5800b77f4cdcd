"""The commands that a program in Python starts, read as syntax and never run.

A call that is handed a text of options, or a list of words with options, starts a command: of
names, f-strings, ``+``, ``+=``, ``" ".join(...)``, ``append`` and ``extend`` as far as they are
literal. An engine that is made by a call, ``LLM(model, tensor_parallel_size=2)``, is the command of
its server. What is not literal stays open.

>>> text = 'tp = 2\\nos.system(f"torchrun a.py --tensor-model-parallel-size {tp}")'
>>> [word.text for word in commands_in(Source.of(text))[0]]
['torchrun', 'a.py', '--tensor-model-parallel-size', '2']
>>> text = 'from vllm import LLM\\nLLM("Qwen/Qwen3-8B", tensor_parallel_size=2, enforce_eager=True)'
>>> [word.text for word in commands_in(Source.of(text))[0]]
['vllm', 'serve', 'Qwen/Qwen3-8B', '--tensor-parallel-size', '2', '--enforce-eager']
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Mapping

from groups.budget import spend

from .recipes import tree_of
from .shell import read_script
from .words import PYTHONS, STEP, CommandRun, Source, Word, literal

Known = Callable[[str], bool]
"""Whether a word is an option that some table has."""

ENGINES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "vllm": ("LLM AsyncEngineArgs EngineArgs", ("vllm", "serve")),
    "sglang": ("Engine ServerArgs", ("python3", "-m", "sglang.launch_server")),
    "tensorrt_llm": ("LLM", ("trtllm-serve",)),
    "lightning": ("Trainer", ("lightning", "trainer")),
    "pytorch_lightning": ("Trainer", ("lightning", "trainer")),
}
"""The calls of a package that make an engine, and the command of its server."""

_LINE_OF_OPTIONS = re.compile(r"\n(?=[ \t]{0,80}--[A-Za-z])")
"""The end of a line before one that begins with an option, which continues the command."""

MOST = 20_000
"""The most characters of one command."""


def commands_in(source: Source, known: Known = lambda word: word[:2] == "--") -> list[list[Word]]:
    """The words of each command, in their order. known: of its options one must be known."""
    tree = tree_of(source.text)
    if tree is None:
        return []
    found = _Started(source, known)
    found.body(tree.body)
    return found.commands


class _Started(ast.NodeVisitor):
    """One walk over the statements of a file, in their order."""

    def __init__(self, source: Source, known: Known) -> None:
        self.source, self.known = source, known
        self.texts: dict[str, list[CommandRun]] = {}
        self.lists: dict[str, list[Word]] = {}
        self.names: dict[str, ast.expr] = {}
        self.engines: dict[str, tuple[str, ...]] = {}
        self.commands: list[list[Word]] = []
        self.alone: list[Word] = []  # the words of a list that no call is handed
        starts = itertools.accumulate(map(len, source.text.splitlines(keepends=True)), initial=0)
        self.lines = [*starts]

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            spend(STEP, "statements")
            self.visit(statement)

    # -- what names are --------------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            self._note_engines(alias.name, alias.asname or alias.name, dotted=True)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        for alias in node.names:
            package = (node.module or "").split(".")[0]
            if package in ENGINES and alias.name in ENGINES[package][0].split():
                self.engines[alias.asname or alias.name] = ENGINES[package][1]

    def _note_engines(self, package: str, name: str, *, dotted: bool) -> None:
        calls, command = ENGINES.get(package, ("", ()))
        self.engines |= {f"{name}.{call}": command for call in calls.split()}

    def visit_Assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        pairs = [(target, node.value)]
        if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = [*zip(target.elts, node.value.elts)]
        for one, value in pairs:
            if isinstance(one, ast.Name):
                self._set(one.id, value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if isinstance(node.target, ast.Name) and node.value:
            self._set(node.target.id, node.value)
        self.generic_visit(node)

    def _set(self, name: str, value: ast.expr) -> None:
        self.names[name] = value
        self.texts.pop(name, None)
        self.lists.pop(name, None)
        if isinstance(value, (ast.List, ast.Tuple)):
            self.lists[name] = [*self._words(value)]
        elif (runs := self._runs(value)) is not None:
            self.texts[name] = runs

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if not (isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add)):
            return
        name = node.target.id
        if name in self.lists:
            self.lists[name] += self._words(node.value)
        elif name in self.texts:
            self.texts[name] = [*self.texts[name], *(self._runs(node.value) or self._open(node))]
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Words that stand alone are a list out of a program; line after line they are one."""
        if not isinstance(node.value, (ast.List, ast.Tuple)):
            self.generic_visit(node)
            return
        words = [*self._words(node.value)]
        if self.alone or any(self.known(word.text) for word in words):
            if not self.alone:
                self.commands.append(self.alone)
            self.alone += words

    # -- what calls are handed -------------------------------------------------------------------

    def visit_Call(self, node: ast.Call) -> None:
        spend(STEP, "statements")
        match node.func:
            case ast.Attribute(ast.Name(name), "append") if name in self.lists and node.args:
                self.lists[name] += [Word((*self._runs_or_open(node.args[0]),), (0, 0))]
                return
            case ast.Attribute(ast.Name(name), "extend") if name in self.lists and node.args:
                self.lists[name] += self._words(node.args[0])
                return
        called = ast.unparse(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else ""
        if called in self.engines:
            self.commands.append([*self._engine(self.engines[called], node)])
        elif called.rsplit(".", 1)[-1] not in ("add_argument", "join", "print", "format"):
            for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
                self.commands += self._commands(argument)
        self.generic_visit(node)

    def _commands(self, node: ast.expr) -> Iterator[list[Word]]:
        """The commands of an argument that holds options with their values."""
        if isinstance(node, (ast.List, ast.Tuple)) or (
            isinstance(node, ast.Name) and node.id in self.lists
        ):
            words = [*self._words(node)]
            if len(words) > 1 and any(self.known(word.text) for word in words):
                yield words
            return
        runs = [
            run._replace(text=_LINE_OF_OPTIONS.sub(" ", run.text)) for run in self._runs(node) or ()
        ]
        text = "".join(run.text for run in runs)
        if len(text) < MOST and any(self.known(word) for word in text.split()) and " " in text:
            yield from read_script(Source(runs)).commands

    def _engine(self, command: tuple[str, ...], node: ast.Call) -> Iterator[Word]:
        """The command of an engine's server, with the keywords of the call as its options."""
        place = self._place(node.func)
        yield from (Word((CommandRun(word, *place),), place) for word in command)
        named = [("", node.args[0])] if node.args else []
        keywords = [(one.arg or "", one.value) for one in node.keywords]
        for _, value in [*keywords]:  # of an object, its own keywords count too
            if isinstance(value, ast.Call):
                keywords += [(one.arg or "", one.value) for one in value.keywords]
        for name, value in [*named, *keywords]:
            if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
                value = ast.copy_location(ast.Constant(value.func.id), value)
            runs = self._runs_or_open(value)
            text = "".join(run.text for run in runs)
            if name and text != "False":
                option = f"--{name.replace('_', '-')}"
                yield Word((CommandRun(option, *self._place(value)),), place)
            if text not in ("True", "False", "None") and (name or command[-1] == "serve"):
                yield Word((*runs,), place)

    # -- texts -----------------------------------------------------------------------------------

    def _words(self, node: ast.expr) -> Iterator[Word]:
        """The words of a list."""
        match node:
            case ast.List(elements) | ast.Tuple(elements):
                for element in elements[:400]:
                    spend(STEP, "words")
                    if isinstance(element, ast.Starred):
                        yield from self._words(element.value)
                    else:
                        yield Word((*self._runs_or_open(element),), self._place(element))
            case ast.Name(name) if name in self.lists:
                yield from self.lists[name]
            case ast.BinOp(left, ast.Add(), right):
                yield from (*self._words(left), *self._words(right))
            case _ if (runs := self._runs(node)) is not None:
                yield Word((*runs,), self._place(node))

    def _runs(self, node: ast.expr) -> list[CommandRun] | None:
        """The text that an expression is; None for what is no text, or is not worked out."""
        spend(STEP, "words")
        match node:
            case ast.Constant(bool() | str() | int() | float() as value):
                return [self._run(node, str(value))]
            case ast.Name(name) if name in self.texts:
                return self.texts[name]
            case ast.JoinedStr(values):
                inside = (
                    self._runs_or_open(one.value if isinstance(one, ast.FormattedValue) else one)
                    for one in values
                )
                return [run for runs in inside for run in runs]
            case ast.BinOp(left, ast.Add(), right):
                before, after = self._runs(left), self._runs(right)
                return before + after if before is not None and after is not None else None
            case ast.Call(ast.Attribute(ast.Constant(str(sign)), "join"), [joined]):
                words = [*self._words(joined)]
                space = CommandRun(sign, *self._place(node))
                return [run for word in words for run in (*word.runs, space)][:-1]
            case ast.Call(ast.Name("str"), [inner]):
                return self._runs(inner)
        for value in literal(node, self.names, PYTHONS, 9):
            return [self._run(node, str(value))]
        return None

    def _runs_or_open(self, node: ast.expr) -> list[CommandRun]:
        runs = self._runs(node)
        return self._open(node) if runs is None else runs

    def _open(self, node: ast.AST) -> list[CommandRun]:
        """An expression that is not worked out."""
        shown = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else "..."
        return [CommandRun(f"${{{shown}}}", *self._place(node), "variable")]

    def _run(self, node: ast.expr, text: str) -> CommandRun:
        start, end = self._place(node)
        shown = self.source.text[start:end]
        plain = re.fullmatch(r"[\"']", shown[:1]) and shown[1:-1] == text
        return CommandRun(text, *((start + 1, end - 1) if plain else (start, end)))

    def _place(self, node: ast.AST) -> tuple[int, int]:
        """Where an expression stands, in lines that have letters of one byte."""
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        last, after = getattr(node, "end_lineno", line), getattr(node, "end_col_offset", column)
        start, end = self.lines[line - 1] + column, self.lines[(last or line) - 1] + (after or 0)
        size = len(self.source.text)
        return self.source.place(min(start, size), min(max(end, start + 1), size))
