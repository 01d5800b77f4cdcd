"""Megatron's multimodal models whose modules have their own grids, as Python makes them.

Source: NVIDIA-NeMo/Megatron-Bridge src/megatron/bridge/models/megatron_mimo/megatron_mimo_config.py
(ModuleParallelismConfig: sizes, data_parallel_size, rank_offset; MegatronMIMOParallelismConfig: a
dictionary of them by module). Nothing in the text is executed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from groups.budget import spend
from groups.inputs import number_in
from groups.mesh import MAX_RANKS, whole_number
from groups.notes import Note
from training.roles import Phase

from ..errors import refusal
from ..launch.syntax.recipes import tree_of
from .build import Sketch, job_on, plan_read
from .model import PlanRead
from .settings import RoleSettings

CALL = "ModuleParallelismConfig"
SIZES = {
    **{"tensor_model_parallel_size": "tp", "pipeline_model_parallel_size": "pp"},
    **{"context_parallel_size": "cp", "expert_model_parallel_size": "ep"},
    **{"expert_tensor_parallel_size": "etp"},
}
LANGUAGE = ("language", "llm", "language_module")
"""Names of the module that receives the outputs of the others."""


def is_mimo(text: str) -> bool:
    """Whether a text makes modules with their own grids."""
    return f"{CALL}(" in text


def read_mimo(settings: RoleSettings) -> PlanRead:
    """The modules as roles of a plan. Errors: LayoutError for settings that the text leaves
    open."""
    modules = dict(_modules(settings.reading.text))
    if not modules:
        raise refusal("no-modules", "paste")
    each = settings.count("gpus_per_node", 8)
    sketches, end = [], 0
    for name, call in modules.items():
        sizes = {own: _number(settings, name, call, key, 1) for key, own in SIZES.items()}
        etp = sizes.pop("etp")
        more = {"etp": etp} if etp > 1 else {}
        copies = _number(settings, name, call, "data_parallel_size", None)
        gpus = sizes["tp"] * sizes["pp"] * sizes["cp"] * copies
        first = _number(settings, name, call, "rank_offset", 0, least=0)
        job = job_on("megatron", gpus, each, **sizes, **more)
        sketches.append(Sketch(name, job, first))
        end = max(end, first + gpus)
    encoders = tuple(name for name in modules if name not in LANGUAGE)
    others = tuple(name for name in modules if name in LANGUAGE)
    phases = (Phase("forward", encoders), Phase("update", (*others, *encoders)))
    turns = (*encoders, *others)
    return plan_read("megatron", -(-end // each), each, sketches, turns, phases, settings.notes)


def _modules(text: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls that make the modules' sizes, by their keys or names."""
    tree = tree_of(text)
    for node in ast.walk(tree) if tree else ():
        spend(1, "statements")
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        if isinstance(node, ast.Dict):
            pairs = [*zip(node.keys, node.values)]
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            pairs = [(node.targets[0], node.value)]
        for key, value in pairs:
            name = _name(key)
            if name and isinstance(value, ast.Call) and _name(value.func) == CALL:
                yield name, value


def _name(node: ast.expr | None) -> str:
    match node:
        case ast.Constant(str(text)):
            return text
        case ast.Name(text) | ast.Attribute(attr=text):
            return text
    return ""


def _number(
    settings: RoleSettings,
    module: str,
    call: ast.Call,
    key: str,
    default: int | None,
    least: int = 1,
) -> int:
    """A size of a module: a number, or the default of a variable of the environment."""
    setting = f"{module}.{key}"
    if setting in settings.answers:
        return whole_number(number_in(settings.answers[setting]), setting, minimum=least)
    words = {word.arg: word.value for word in call.keywords}
    if key not in words:
        if default is None:
            raise refusal("setting-missing", setting, {setting: 1}, setting=setting)
        return default
    value = words[key]
    for node in ast.walk(value):
        match node:
            case ast.Constant(int(number)) if not isinstance(number, bool) and node is value:
                return whole_number(number, setting, minimum=least, maximum=MAX_RANKS)
            case ast.Call(args=[ast.Constant(str(name)), ast.Constant(str(text))]) if (
                text.isdigit()
            ):
                settings.note(Note("variable-default", {"name": name, "value": text}))
                return whole_number(int(text), setting, minimum=least, maximum=MAX_RANKS)
    shown = ast.unparse(value)[:60]
    raise refusal("setting-open", setting, {setting: 1}, setting=setting, value=shown)
