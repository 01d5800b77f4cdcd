"""Recipes in Python, read as syntax and never run: keywords and assignments of literal values.

A function that makes a configuration is a run; what it takes over from another one of the file is
read with it, and what it takes over from elsewhere is said (`Recipe.inherits`).

>>> text = "def big():\\n    cfg = base()\\n    cfg.model.tensor_model_parallel_size = 8"
>>> recipe, = read_recipes(Source.of(text))
>>> recipe.name, recipe.inherits, [(entry.path, entry.values[0].text) for entry in recipe.entries]
('big', ('base',), [(('model', 'tensor_model_parallel_size'), '8')])
"""

from __future__ import annotations

import ast
import itertools
import json
import re
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

from groups.budget import spend

from .files import Entry
from .words import PYTHONS, STEP, CommandRun, Source, Word, literal

MAX_NESTING = 40
"""The deepest nesting of brackets that is read."""


@dataclass
class Recipe:
    """The settings of one function, and the functions outside of the text that it starts from."""

    name: str
    entries: list[Entry] = field(default_factory=list)
    inherits: tuple[str, ...] = ()


def read_recipes(source: Source) -> list[Recipe] | None:
    """The functions of a text that make a configuration; None if it is no Python."""
    tree = tree_of(source.text)
    return None if tree is None else _Module(source, tree).recipes()


def tree_of(text: str) -> ast.Module | None:
    """The syntax tree of a text; None if it is no Python, or nested too deep."""
    spend(2 * len(text), "characters")
    depths = itertools.accumulate(("([{".find(c) >= 0) - (")]}".find(c) >= 0) for c in text)
    if max(depths, default=0) > MAX_NESTING:
        return None
    try:
        return _tree(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _tree(text: str) -> ast.Module:
    """The syntax tree of a text, without Python's warnings.

    Filters of warnings are the process's own: one thread at a time changes them.
    """
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        return ast.parse(text)


_WARNINGS = threading.Lock()


class _Module:
    """The functions of a file, and the values of its names."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        data = source.text.encode()  # of which Python counts the bytes
        self.lines = [0, *(match.end() for match in re.finditer(rb"\r\n?|\n", data))]
        self.letters = [0, *itertools.accumulate(byte & 0xC0 != 0x80 for byte in data)]
        self.functions = {
            node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)
        }
        self.constants: dict[str, ast.expr] = {}
        for node in tree.body:
            match node:
                case ast.Assign([ast.Name(name), *_], value):
                    self.constants[name] = value
        self.done: dict[str, Recipe] = {}

    def recipes(self) -> list[Recipe]:
        recipes = [self.recipe(name) for name in self.functions]
        rest = [node for node in self.tree.body if not isinstance(node, ast.FunctionDef)]
        outside = _Function(self, rest, self.constants)
        filled = [recipe for recipe in [*recipes, Recipe("", outside.entries)] if recipe.entries]
        used = {name for recipe in self.done.values() for name in recipe.inherits}
        public = [recipe for recipe in filled if not recipe.name.startswith("_")]
        return public or [recipe for recipe in filled if recipe.name not in used]

    def recipe(self, name: str) -> Recipe:
        """One function with what it takes over from others of the file."""
        if name not in self.done:
            self.done[name] = Recipe(name)  # one that calls itself takes nothing over
            node = self.functions[name]
            plain = (*node.args.posonlyargs, *node.args.args)
            defaults = zip(reversed(plain), reversed(node.args.defaults))
            defaulted = (*defaults, *zip(node.args.kwonlyargs, node.args.kw_defaults))
            names = {argument.arg: value for argument, value in defaulted if value}
            body = _Function(self, node.body, {**self.constants, **names})
            self.done[name] = Recipe(name, body.entries, tuple(dict.fromkeys(body.inherits)))
        return self.done[name]

    def word(self, node: ast.expr | ast.keyword, text: str, why: str = "") -> Word:
        """The word at a node."""
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        place = self.source.place(start, max(end, start + 1))
        return Word((CommandRun(text, *place, why),), place)

    def _offset(self, line: int, column: int) -> int:
        return self.letters[self.lines[line - 1] + column]


class _Function:
    """The statements of one function, in order."""

    def __init__(
        self, module: _Module, body: list[ast.stmt], names: Mapping[str, ast.expr]
    ) -> None:
        self.module = module
        self.names = dict(names)
        self.entries: list[Entry] = []
        self.inherits: list[str] = []
        for statement in body:
            self._statement(statement, "")

    def _statement(self, node: ast.stmt, why: str) -> None:
        spend(STEP, "statements")
        match node:
            case ast.Assign([target], value) | ast.AnnAssign(target, value=ast.expr() as value):
                self._assign(target, value, why)
            case ast.Return(ast.expr() as value) | ast.Expr(value):
                self._value((), value, why)
                if isinstance(node, ast.Return):
                    self._takes_over(value)
            case ast.If() | ast.For() | ast.While() | ast.Try() | ast.With():
                for inner in (*node.body, *(node.orelse if isinstance(node, ast.If) else ())):
                    self._statement(inner, why if isinstance(node, ast.With) else "condition")

    def _assign(self, target: ast.expr, value: ast.expr, why: str) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = value
            self._takes_over(value)
            self._value((), value, why)
        elif path := _attributes(target):
            self._value(path[1:], value, why, target)

    def _takes_over(self, call: ast.expr) -> None:
        """Takes over the settings that a call begins with: of a recipe here or elsewhere."""
        if not isinstance(call, ast.Call):
            return
        name = next(reversed(_attributes(call.func)), "")
        if name in self.module.functions:
            base = self.module.recipe(name)
            spend(STEP * len(base.entries), "statements")
            self.entries.extend(base.entries)
            self.inherits.extend(base.inherits)
        elif name and name[0] in "_abcdefghijklmnopqrstuvwxyz" and name not in _MAKERS:
            self.inherits.append(name)

    def _value(
        self,
        path: tuple[str, ...],
        node: ast.expr,
        why: str,
        at: ast.expr | ast.keyword | None = None,
    ) -> None:
        """A literal at a path, or the keywords of a call, each at its own path."""
        spend(STEP, "statements")
        match node:
            case ast.Call(keywords=[_, *_] as keywords):
                for keyword in keywords:
                    if keyword.arg:
                        self._value((*path, keyword.arg), keyword.value, why, keyword)
            case ast.Dict(keys, values):
                for key, value in zip(keys, values):
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        self._value((*path, key.value), value, why, key)
            case _ if path:
                values = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
                words = [self._word(element, why) for element in values[:64]]
                entry = Entry(path, words, self.module.word(at or node, path[-1]))
                self.entries.append(entry)

    def _word(self, node: ast.expr, why: str) -> Word:
        """A literal as a word; other expressions are unknown."""
        for value in literal(node, self.names, PYTHONS, 9):
            return self.module.word(node, _text(value), why)
        shown = ast.unparse(node) if isinstance(node, (ast.Name, ast.Attribute)) else "..."
        return self.module.word(node, shown, why or "variable")


_MAKERS = ("dict", "list", "replace", "deepcopy", "len", "int", "str", "getattr", "model_registry")


def _text(value: object) -> str:
    """A literal as a file would write it."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return str(value) if isinstance(value, (int, str, float)) else "..."


def _attributes(node: ast.expr) -> tuple[str, ...]:
    """``cfg.model.size`` as its names; none for other expressions."""
    names: list[str] = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    return (node.id, *reversed(names)) if isinstance(node, ast.Name) else ()
