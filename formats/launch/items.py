"""What a text says: word by word, run by run where it holds several, and what it comes to.

Words are codes and facts; texts/launch.txt has their sentences. A run is a command or a function
that makes a configuration; a role is one of several layouts of one job, such as its actor and its
rollout. Where several differ, one is chosen, or only what they all say alike counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from groups.errors import LayoutError, not_a_choice, quoted
from groups.grouping import Grouping
from groups.layout import Job
from groups.notes import Note
from groups.serving import sglang_groups, vllm_groups
from training.models import MODELS

from ..errors import refusal
from .flags import AXES, MODEL, TRAINING, Row, Schema, published_model
from .words import Default


@dataclass(frozen=True)
class Item:
    """A word of the text, and what became of it: its code says what."""

    code: str
    name: str
    value: str
    start: int
    end: int
    line: int  # from 1
    column: int  # from 1
    sets: str = ""  # the field that it set, or was to set
    facts: Mapping[str, Any] = field(default_factory=dict)
    error: LayoutError | None = None  # the refusal of a layout's text
    written: tuple[int, int] | None = None  # where its value stands as it is; None: worked out


class Said(NamedTuple):
    """One thing that the text says: this field is this value."""

    field: str
    value: Any
    item: Item
    row: Row
    default: Default | None
    run: str = ""  # the command or the function that says it, where there may be several
    role: str = ""  # whose layout it is, in a job of several


class Guess(NamedTuple):
    """Which framework the text is for."""

    name: str  # megatron, nemo, torchtitan, or the name of a Schema
    job: str  # the framework of a Job that numbers the ranks so


class Run(NamedTuple):
    """One of the runs, or of the roles, that a text holds: its name, and what it alone would be."""

    name: str
    values: Mapping[str, object]


@dataclass(frozen=True)
class Parsed:
    """What a text says of a job."""

    text: str
    values: dict[str, object]  # in the names of Job's fields and of MODEL
    assumed: dict[str, object]  # what is left open, and the program has a default for
    understood: tuple[Item, ...]
    ignored: tuple[Item, ...]
    unresolved: tuple[Item, ...]
    problems: tuple[Item, ...]
    missing: tuple[Note, ...]  # what is assumed and what is asked for, in codes and facts
    framework: Guess | None
    training: dict[str, object]  # of the training and the model's shape, in the names of TRAINING
    asks: tuple[str, ...]  # what it leaves open and nobody knows
    runs: tuple[Run, ...]  # to choose from: of a text that holds several, or a job's roles
    run: str  # that the values are of
    serving: dict[str, object]  # of a server's groups, in the names of SERVING
    defaulted: dict[str, str]  # "nodes": the variable whose default says how many there are

    def job(self) -> Job:
        """The job, with what is assumed where the text is silent; `Job.layout` checks it.

        Errors: LayoutError ``launch-asks`` with everything that has to be given first.
        """
        if self.asks:
            raise refusal("launch-asks", "launch", fields=", ".join(self.asks))
        known = {**self.assumed, **self.values}
        others = (*MODEL, *TRAINING)
        return Job(**{name: value for name, value in known.items() if name not in others})  # type: ignore[arg-type]

    def served_groups(self) -> dict[str, Grouping]:
        """The groups of the server that it starts, in the server's own order; none where it starts
        no server or leaves its sizes open.

        >>> from formats.launch import parse
        >>> groups = parse("vllm serve m -tp 4 -dp 2 --enable-expert-parallel").served_groups()
        >>> groups["ep"].groups().tolist()
        [[0, 1, 2, 3, 4, 5, 6, 7]]

        Errors: LayoutError for sizes that the server would refuse.
        """
        name = self.framework.name if self.framework else ""
        if name not in OF_SERVERS or self.asks:
            return {}
        values: dict[str, Any] = {**self.assumed, **self.values}
        names = OF_SERVERS[name]
        sizes: dict[str, Any] = {names[key]: n for key, n in self.serving.items() if key in names}
        sizes |= {axis: values.get(axis, 1) for axis in ("tp", "pp")}
        if name == "sglang":
            sizes["tp"] *= values.get("cp", 1)
            return sglang_groups(**sizes)
        model = MODELS.get(published_model(str(self.training.get("named", ""))))
        sizes["moe"] = bool(sizes.get("moe") or (model and model.model.experts))
        return vllm_groups(pcp=values.get("cp", 1), **sizes)


OF_SERVERS = {
    "vllm": {"dp_served": "dp", "dcp": "dcp", "expert_parallel": "moe", "eplb": "eplb"},
    "sglang": {"dp_served": "dp", "dp_attention": "dp_attention", "dcp": "dcp"}
    | {"served_cp": "attn_cp", "served_ep": "ep", "moe_dp": "moe_dp", "pdmux": "pdmux"}
    | {"shared_experts_tp": "shared_experts_tp"},
}
"""What the functions of groups.serving call the fields of SERVING."""


# -- runs and roles ------------------------------------------------------------------------------


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

    def counting(self, sayings: Sequence[Said]) -> list[Said]:
        """What counts for the run that is chosen; where none is, what all say alike."""
        if self.of_roles:
            own = {said.field for said in sayings if said.role == self.chosen}
            return [
                said
                for said in sayings
                if said.role in ("", self.chosen)
                or (said.role == self.follows and said.field not in own)
            ]
        if self.chosen:
            others = {run.name for run in self.runs} - {self.chosen}
            return [said for said in sayings if said.run not in others]
        differ = {
            name
            for name in {said.field for said in sayings}
            if len({str(run.values.get(name)) for run in self.runs}) > 1
        }
        return [said for said in sayings if said.field not in differ]


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
    by_role = _by_name((said.role, said) for said in sayings)
    if schema and any(by_role):
        usual = schema.chosen(stated, [name for name in schema.roles if name in by_role])
        names = [name for name in schema.roles if name in by_role or name == usual]
        chosen = _checked(wanted, names) or usual
        runs = tuple(Run(name, by_role.get(name, {})) for name in names)
        return Choice(runs, chosen, True, schema.follows.get(chosen, ""))
    by_run = _by_name((said.run, said) for said in sayings)
    telling = {
        name: sorted((key, value) for key, value in values.items() if key in _TELLING)
        for name, values in by_run.items()
        if name and (recipes or not values.keys().isdisjoint(_DEGREES))
    }
    alike = len(set(map(str, telling.values()))) < 2
    if len(telling) < 2 or (alike and not recipes):
        _checked("" if wanted in telling else wanted, [])
        return Choice()
    runs = tuple(Run(name, by_run[name]) for name in telling)
    return Choice(runs, _checked(wanted, list(telling)))


def _by_name(sayings: Iterable[tuple[str, Said]]) -> dict[str, dict[str, object]]:
    """What each run or role says, the last of each field."""
    by_name: dict[str, dict[str, object]] = {}
    for name, said in sayings:
        by_name.setdefault(name, {})[said.field] = said.value
    return by_name


def _checked(wanted: str, names: Sequence[str]) -> str:
    """The name that was asked for, if there is such a run."""
    if not wanted or wanted in names:
        return wanted
    if names:
        raise not_a_choice("run", wanted, names)
    raise refusal("no-such-run", "run", {"run": ""}, run=quoted(wanted))


_DEGREES = (*AXES, "shard", "dp_shard")
"""What a command that is a run says at least one of."""

_TELLING = (*_DEGREES, "etp", "vpp", "nodes", "gpus_per_node", "replicate", "world")
"""Fields in which runs may differ."""
