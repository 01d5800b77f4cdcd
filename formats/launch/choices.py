"""The runs that a text holds, or the roles of its job: what there is to choose from.

A run is a command or a function that makes a configuration; a role is one of several layouts of
one job, such as its actor and its rollout. Where several differ, one of them is chosen, or only
what they all say alike counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from groups.errors import not_a_choice, quoted

from ..errors import refusal
from .flags import AXES
from .items import Run, Said
from .schemas import Schema

_DEGREES = (*AXES, "shard", "dp_shard")
"""What a command that is a run says at least one of."""

_TELLING = (*_DEGREES, "etp", "vpp", "nodes", "gpus_per_node", "replicate", "world")
"""Fields in which runs may differ."""


@dataclass(frozen=True)
class Choice:
    """What there is to choose from, and what is chosen; both empty where there is one run."""

    runs: tuple[Run, ...] = ()
    chosen: str = ""
    of_roles: bool = False
    follows: str = ""  # the role whose values are those of the chosen one where it is silent

    @property
    def is_open(self) -> bool:
        """Whether several runs differ and none is chosen."""
        return not self.of_roles and len(self.runs) > 1 and not self.chosen

    def counting(self, sayings: Iterable[Said]) -> list[Said]:
        """What counts for the run that is chosen; where none is, what all say alike."""
        sayings = list(sayings)
        if self.of_roles:
            fields_of_role = {said.field for said in sayings if said.role == self.chosen}
            return [
                said
                for said in sayings
                if said.role in ("", self.chosen)
                or (said.role == self.follows and said.field not in fields_of_role)
            ]
        if self.chosen:
            others = {run.name for run in self.runs} - {self.chosen}
            return [said for said in sayings if said.run not in others]
        fields = {said.field for said in sayings}
        texts = {field: {str(run.values.get(field)) for run in self.runs} for field in fields}
        return [said for said in sayings if len(texts[said.field]) < 2]


def choice_of(
    sayings: Sequence[Said],
    schema: Schema | None,
    stated: Mapping[str, str],
    wanted: str,
    *,
    recipes: bool,
) -> Choice:
    """The choice that a text leaves.

    schema, stated: of the framework that the text is of. wanted: the name that was asked for.
    recipes: whether the text is Python, whose every function may be a run.

    Errors: LayoutError if ``wanted`` is the name of none of them.
    """
    by_role = _by(sayings, lambda said: said.role)
    if schema and any(by_role):
        usual = schema.chosen(stated, [name for name in schema.roles if name in by_role])
        names = [name for name in schema.roles if name in by_role or name == usual]
        chosen = _checked(wanted, names) or usual
        runs = tuple(Run(name, by_role.get(name, {})) for name in names)
        return Choice(runs, chosen, True, schema.follows.get(chosen, ""))
    by_run = _by(sayings, lambda said: said.run)
    telling = {
        name: {key: value for key, value in values.items() if key in _TELLING}
        for name, values in by_run.items()
        if name and (recipes or any(key in _DEGREES for key in values))
    }
    alike = len({str(sorted(values.items())) for values in telling.values()}) < 2
    if len(telling) < 2 or (alike and not recipes):
        _checked("" if wanted in telling else wanted, [])
        return Choice()
    runs = tuple(Run(name, by_run[name]) for name in telling)
    return Choice(runs, _checked(wanted, list(telling)))


def _by(sayings: Iterable[Said], name_of: Callable[[Said], str]) -> dict[str, dict[str, object]]:
    """What each run or role says, the last of each field."""
    by_name: dict[str, dict[str, object]] = {}
    for said in sayings:
        by_name.setdefault(name_of(said), {})[said.field] = said.value
    return by_name


def _checked(wanted: str, names: Sequence[str]) -> str:
    """The name that was asked for, if there is such a run."""
    if not wanted or wanted in names:
        return wanted
    if names:
        raise not_a_choice("run", wanted, names)
    raise refusal("no-such-run", "run", {"run": ""}, run=quoted(wanted))
