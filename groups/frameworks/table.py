"""Every framework by a stable id: the rows of frameworks.toml, each as an object of its rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path

from ..errors import not_a_choice
from ..tables import Rows, read_table
from .axes import AxesRules
from .framework import Framework
from .megatron import MegatronRules, OwnOrder
from .sglang import Sglang
from .trtllm import TensorRT
from .vllm import Vllm

RULES: Mapping[str, type[Framework]] = {
    "axes": AxesRules,
    "megatron": MegatronRules,
    "own": OwnOrder,
    "vllm": Vllm,
    "sglang": Sglang,
    "tensorrt-llm": TensorRT,
}

OWN = "own"
"""The framework of a user-defined order: Megatron Core with its axes reordered."""


def _read() -> dict[str, Framework]:
    rows = read_table(Path(__file__).with_name("frameworks.toml"), dict[str, Framework])
    return {name: _as(RULES[row.rules], row, id=name) for name, row in rows.items()}


def _as(kind: type[Framework], row: Framework, **changes: object) -> Framework:
    made: Callable[..., Framework] = kind
    return made(**{one.name: getattr(row, one.name) for one in fields(Framework)} | changes)


FRAMEWORKS: Mapping[str, Framework] = Rows(_read)
"""Every framework that has a name of its own."""

_OWN: Mapping[str, Framework] = Rows(
    lambda: {OWN: _as(OwnOrder, FRAMEWORKS["megatron"], rules=OWN, id=OWN)}
)


def framework_of(name: str) -> Framework:
    """The framework with this id.

    >>> framework_of("llama3").name, framework_of(OWN).name
    ('Llama 3 trainer', 'Megatron Core')

    Errors: LayoutError for an unknown one, with the nearest.
    """
    found = _OWN[OWN] if name == OWN else FRAMEWORKS.get(name) if isinstance(name, str) else None
    if found is None:
        raise not_a_choice("framework", name, (*FRAMEWORKS, OWN))
    return found


def framework_or_first(name: object) -> Framework:
    """The framework with this id; Megatron's for an unknown one, beside what refuses it.

    >>> [framework_or_first(name).id for name in ("gpipe", "Megatronic", [])]
    ['gpipe', 'megatron', 'megatron']
    """
    is_known = isinstance(name, str) and (name == OWN or name in FRAMEWORKS)
    return framework_of(str(name) if is_known else "megatron")
