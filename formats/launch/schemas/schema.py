"""What the files and commands of one framework say of a layout, as a table of fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..flags import Row, rows


class OptionMeaning(NamedTuple):
    """What a key sets, and for which role; a role is one of several layouts of a job."""

    row: Row
    role: str = ""


def first_role(stated: Mapping[str, str], roles: Iterable[str]) -> str:
    """The first of the roles: the one that is trained."""
    return next(iter(roles), "")


@dataclass(frozen=True)
class Schema:
    """One framework's keys and options.

    marks: what only this framework has: any of the tuples, all of whose words must be there. A
    word is the path of a key or its beginning, an option with its dashes, or a module. keys: by
    path, dashes as underscores; tables may be texts for `rows`. roles: names and the sections whose
    ``role_keys`` are theirs; what is asked for is the layout of one role. follows: of a role,
    another one whose values are its own where it is silent. within: a section whose keys are as if
    they stood at the top, "*" for any name. defaults: how the names of its own files begin, which
    say 1 of every size. known: the options are all there are, Megatron's do not count. job_of: the
    framework of a Job by what is stated and the role that is asked for.
    """

    name: str
    job: str  # the framework of a Job that numbers the ranks so
    marks: tuple[tuple[str, ...], ...]
    keys: Any = ""
    options: Any = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    role_keys: Any = ""
    chosen: Callable[[Mapping[str, str], Iterable[str]], str] = first_role
    job_of: Callable[[Mapping[str, str], str], str] | None = None
    follows: Mapping[str, str] = field(default_factory=dict)
    within: tuple[str, ...] = ()
    inherits: tuple[str, ...] = ("defaults",)
    defaults: tuple[str, ...] = ()
    known: bool = False

    def __post_init__(self) -> None:
        for name in ("keys", "options", "role_keys"):
            if isinstance(getattr(self, name), str):
                object.__setattr__(self, name, rows("", getattr(self, name)))

    @property
    def fields(self) -> frozenset[str]:
        """What the table can say; a file that is named elsewhere can say no more."""
        tables = (self.keys, self.options, self.role_keys)
        return frozenset(row.field for rows in tables for row in rows.values())

    def is_meant(self, words: frozenset[str] | set[str]) -> bool:
        return any(words.issuperset(mark) for mark in self.marks)

    def meaning(self, path: tuple[str, ...]) -> OptionMeaning | None:
        """What a key sets; None if the table does not have it."""
        plain = tuple(part.replace("-", "_") for part in path)
        size = len(self.within)
        if (
            size
            and len(plain) > size
            and all(own in ("*", part) for own, part in zip(self.within, plain, strict=False))
        ):
            plain = plain[size:]
        dotted = ".".join(plain)
        if dotted in self.keys:
            return OptionMeaning(self.keys[dotted])
        for role, section in self.roles.items():
            if dotted.startswith(f"{section}."):
                row = self.role_keys.get(dotted[len(section) + 1 :])
                if row:
                    return OptionMeaning(row, role)
        return None


MEGATRON_NAMES = """
    tensor_model_parallel_size            tp
    pipeline_model_parallel_size          pp
    context_parallel_size                 cp
    expert_model_parallel_size            ep
    expert_tensor_parallel_size           etp
    virtual_pipeline_model_parallel_size  vpp
    num_layers_in_first_pipeline_stage    first
    num_layers_in_last_pipeline_stage     last
    pipeline_model_parallel_layout        layout              layout
    sequence_parallel                     sequence_parallel   switch
    use_distributed_optimizer             distributed_optimizer  switch
    recompute_granularity                 recompute           word
"""
"""Megatron's names, as many frameworks keep them in a section of their own."""


def under(section: str, names: str) -> str:
    """The same rows for keys inside a section."""
    return "".join(f"{section}.{line.strip()}\n" for line in names.strip().splitlines())
