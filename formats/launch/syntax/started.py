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
from .words import PYTHONS, STEP, CommandRun, Source, Word, literal, split

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

MOST_MEMBERS = 200
"""The most members that a loop goes through."""

_PERCENT = re.compile(r"(%[ds])")


def commands_in(source: Source, known: Known = lambda word: word[:2] == "--") -> list[list[Word]]:
    """The words of each command, in their order. known: of its options one must be known."""
    tree = tree_of(source.text)
    if tree is None:
        return []
    found = _Started(source, known)
    found.body(tree.body)
    return found.commands


PRINTED = (
    (re.compile(r"non-default args: (\{[^\n]*\})"), ("vllm", "serve")),
    (re.compile(r"\bserver_args=(ServerArgs\([^\n]*\))"), ENGINES["sglang"][1]),
    (re.compile(r"LLM engine \(v[^)\n]*\) with config: ([^\n]*)"), ("vllm", "serve")),
)
"""The options of a server as it prints them when it starts, and its command.

Sources: vllm-project/vllm v0.11 vllm/entrypoints/utils.py (log_non_default_args), vllm/v1/engine/
core.py; sgl-project/sglang 0.5 python/sglang/srt/entrypoints/engine.py.
"""

_PAIR = re.compile(r"""(?:'(\w+)': |\b(\w+)=)('[^'\n]*'|"[^"\n]*"|[\w.+-]+)(?=[,)}\s]|$)""")


CALLED = {"max_seq_len": "max_model_len"}
"""Options by what is printed of them."""


def _appends(node: ast.stmt) -> bool:
    """Whether a statement adds words to a list."""
    match node:
        case ast.Expr(ast.Call(ast.Attribute(ast.Name(), "append" | "extend"))):
            return True
    return False


def printed_in(source: Source) -> list[list[Word]]:
    """The commands of servers that printed their options.

    >>> text = "INFO non-default args: {'model': 'm', 'tensor_parallel_size': 4, 'seed': None}"
    >>> [word.text for word in printed_in(Source.of(text))[0]]
    ['vllm', 'serve', '--model', 'm', '--tensor-parallel-size', '4']
    """
    commands, text = [], source.text
    for pattern, command in PRINTED:
        for match in pattern.finditer(text):
            words = [Word((CommandRun(one, *match.span(1)),), match.span(1)) for one in command]
            for pair in _PAIR.finditer(text, *match.span(1)):
                name, value = next(filter(None, pair.group(1, 2))), source.word(*pair.span(3))
                spend(STEP, "words")
                plain = value.text.strip("'\"")
                if plain in ("None", "False", "", "auto"):
                    continue
                option = f"--{CALLED.get(name, name).replace('_', '-')}"
                words.append(Word((CommandRun(option, *value.place),), value.place))
                if plain != "True":
                    words.append(Word((CommandRun(plain, *value.place),), value.place))
            commands.append(words)
    return commands


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
        if isinstance(value, (ast.List, ast.Tuple)) or self._cut(value):
            self.lists[name] = [*self._words(value)]
        elif (runs := self._runs(value)) is not None:
            self.texts[name] = runs

    def visit_For(self, node: ast.For) -> None:
        """What a body adds to lists, once for each member of a literal list or mapping; what it
        starts would be several jobs."""
        adds = all(isinstance(one, ast.AugAssign) or _appends(one) for one in node.body)
        members = self._members(node.iter) if adds else []
        for value in members[:MOST_MEMBERS]:
            pairs = [(node.target, value)]
            if isinstance(node.target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = [*zip(node.target.elts, value.elts)]
            for target, one in pairs:
                if isinstance(target, ast.Name):
                    self._set(target.id, one)
            self.body(node.body)
        if not members:
            self.generic_visit(node)

    def _members(self, node: ast.expr) -> list[ast.expr]:
        """What a loop over an expression goes through; empty where that is not literal."""
        match node:
            case ast.Name(name) if name in self.names:
                return self._members(self.names[name])
            case ast.List(elements) | ast.Tuple(elements):
                return elements
            case ast.Call(ast.Attribute(of, "items"), []):
                of = self.names.get(of.id, of) if isinstance(of, ast.Name) else of
                if isinstance(of, ast.Dict):
                    keys = [key for key in of.keys if key is not None]
                    pairs = zip(keys, of.values)
                    return [ast.copy_location(ast.Tuple([*pair]), of) for pair in pairs]
        return []

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
        keywords = [pair for one in keywords for pair in self._spread(*one)]
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

    def _spread(self, name: str, value: ast.expr) -> list[tuple[str, ast.expr]]:
        """A keyword of a call; of ``**mapping`` the literal mapping's own."""
        mapping = self.names.get(value.id, value) if isinstance(value, ast.Name) else value
        match mapping:
            case _ if name:
                pass
            case ast.Call(ast.Name("dict"), [], keywords) if all(one.arg for one in keywords):
                return [(one.arg or "", one.value) for one in keywords]
            case ast.Dict(keys, values):
                names = [key.value for key in keys if isinstance(key, ast.Constant)]
                if len(names) == len(keys):
                    return [(str(key), one) for key, one in zip(names, values)]
        return [(name, value)]

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
            case _ if (cut := self._cut(node)) is not None:
                yield from split(cut, self._place(node))
            case _:
                yield Word((*self._runs_or_open(node),), self._place(node))

    def _cut(self, node: ast.expr) -> list[CommandRun] | None:
        """The text that an expression cuts into words: ``text.split()``, ``shlex.split(text)``."""
        match node:
            case ast.Call(ast.Attribute(ast.Name("shlex"), "split"), [text]):
                return self._runs(text)
            case ast.Call(ast.Attribute(text, "split"), []):
                return self._runs(text)
        return None

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
            case ast.Call(ast.Attribute(ast.Constant(str(text)), "format"), values):
                return self._filled(node, re.split(r"(\{\})", text), values)
            case ast.BinOp(ast.Constant(str(text)), ast.Mod(), value):
                values = value.elts if isinstance(value, ast.Tuple) else [value]
                return self._filled(node, _PERCENT.split(text), values)
        for value in literal(node, self.names, PYTHONS, 9):
            return [self._run(node, str(value))]
        return None

    def _filled(
        self, node: ast.expr, parts: list[str], values: list[ast.expr]
    ) -> list[CommandRun] | None:
        """A text whose every second part is a place for the next of some values."""
        if len(parts) // 2 != len(values) or any("{" in part for part in parts[::2]):
            return None
        runs: list[CommandRun] = []
        for part, value in itertools.zip_longest(parts[::2], values):
            runs += [self._run(node, part)] if part else []
            runs += self._runs_or_open(value) if value else []
        return runs

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
