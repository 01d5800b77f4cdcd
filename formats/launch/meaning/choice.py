"""Selects one of several runs or roles of a text.

A run is a command or a function that makes a configuration; a role is one of several layouts of one
job, such as its actor and its rollout. Where several differ, one is chosen, or only what they all
say alike counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from groups.errors import not_a_choice, quoted
from groups.layout import SERVED

from ...errors import refusal
from ..flags import AXES, SERVING
from ..flags import SERVED as OF_MEMORY
from ..items import Run, run_named
from ..sayings import Assignment, Reading


@dataclass(frozen=True)
class Choice:
    """The runs of a text, and the selected one; both empty if there is one run."""

    runs: tuple[Run, ...] = ()
    chosen: str = ""
    of_roles: bool = False
    follows: str = ""  # the role whose values are those of the chosen one where it is silent

    @property
    def is_open(self) -> bool:
        """Whether several runs differ and none is selected."""
        return not self.of_roles and len(self.runs) > 1 and not self.chosen

    def counting(self, assignments: Sequence[Assignment]) -> list[Assignment]:
        """The assignments that apply to the selected run; without one, those that all runs
        share."""
        if self.of_roles:
            own = {one.field for one in assignments if one.role == self.chosen}
            return [
                one
                for one in assignments
                if one.role in ("", self.chosen)
                or (one.role == self.follows and one.field not in own)
            ]
        if self.chosen:
            others = {run.name for run in self.runs} - {self.chosen}
            return [one for one in assignments if one.run not in others]
        differ = {
            name
            for name in {one.field for one in assignments}
            if len({str(run.values.get(name)) for run in self.runs}) > 1
        }
        return [one for one in assignments if one.field not in differ]


def choice_of(reading: Reading, wanted: str) -> Choice:
    """The runs to choose from; wanted: the requested name, if any.

    Errors: LayoutError if ``wanted`` is the name of none of them.
    """
    schema, assignments = reading.schema, reading.assignments
    by_role = _by_name((one.role, one) for one in assignments)
    if schema and (any(by_role) or wanted in schema.roles):
        usual = schema.chosen(
            reading.setting_texts, [name for name in schema.roles if name in by_role]
        )
        names = [name for name in schema.roles if name in by_role or name in (usual, wanted)]
        chosen = _checked(wanted, names) or usual
        runs = tuple(Run(name, by_role.get(name, {})) for name in names)
        return Choice(runs, chosen, True, schema.follows.get(chosen, ""))
    is_python = reading.form == "python"  # whose every function may be a run
    by_run = _by_name((one.run, one) for one in assignments)
    engines = {run: own.name for run, own in reading.schema_of_run.items() if own.serves}
    telling = {
        name: (
            engines.get(name),
            sorted(
                (key, value)
                for key, value in values.items()
                if key in _TELLING or (name in engines and key in _OF_SERVERS)
            ),
        )
        for name, values in by_run.items()
        if name and (is_python or name in engines or not values.keys().isdisjoint(_DEGREES))
    }
    alike = len(set(map(str, telling.values()))) < 2
    if len(telling) < 2 or (alike and not is_python):
        _checked("" if wanted in telling else wanted, [])
        return Choice()
    runs = tuple(Run(name, by_run[name]) for name in telling)
    return Choice(runs, _checked(wanted, list(telling)))


def of_run(reading: Reading, run: str) -> Reading:
    """The reading of one run: beside a server no other framework counts, nor a server beside
    another run."""
    schema = reading.schema_of_run.get(run)
    serves = schema is not None and schema.serves
    others = {own.name for own in reading.schema_of_run.values() if own.serves or serves}
    others -= {schema.name} if schema else set()
    return replace(
        reading,
        schemas=tuple(own for own in reading.schemas if own.name not in others),
        frameworks=tuple(shown for shown in reading.frameworks if shown[0] not in others),
    )


def only_run(reading: Reading, run: str) -> Reading:
    """The reading of one of several commands, as if it stood alone."""
    assignments = tuple(one for one in reading.assignments if one.run in ("", run))
    schema = reading.schema_of_run[run]
    own = of_run(reading, run)
    return replace(own, schemas=(schema,), assignments=assignments, schema_of_run={run: schema})


def _by_name(named: Iterable[tuple[str, Assignment]]) -> dict[str, Mapping[str, object]]:
    """The assignments of each run or role, the last of each field."""
    by_name: dict[str, dict[str, object]] = {}
    for name, assignment in named:
        by_name.setdefault(name, {})[assignment.field] = assignment.value
    return {**by_name}


def _checked(wanted: str, names: Sequence[str]) -> str:
    """The requested name, if there is such a run."""
    if not wanted or (name := run_named(wanted, names)):
        return wanted and name
    if names:
        raise not_a_choice("run", wanted, names)
    raise refusal("no-such-run", "run", {"run": ""}, run=quoted(wanted))


_DEGREES = (*AXES, "shard", "dp_shard")
"""A command counts as a run if it sets at least one of these."""

_TELLING = (
    *(*_DEGREES, "etp", "vpp", "nodes", "gpus_per_node", "replicate", "world"),
    *(*SERVED, *SERVING),
)
"""Fields in which runs may differ."""

_OF_SERVERS = ("named", *OF_MEMORY)
"""Further fields in which servers may differ."""
