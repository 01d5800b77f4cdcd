"""Selects the reader of a text by its framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from groups.budget import within
from groups.errors import quoted, require_length
from groups.plan import Plan
from training.roles import phases_of

from ..errors import refusal
from ..launch import MAX_TEXT, parse
from ..launch.meaning.choice import only_run
from ..launch.sayings import Reading, read
from ..launch.training import served_of
from .areal import is_areal, read_areal
from .build import Known
from .disaggregated import is_disaggregated, read_disaggregated
from .generation import generates_only, read_generation
from .mimo import is_mimo, read_mimo
from .model import PlanRead, RoleRead
from .nemo_rl import read_nemo_rl, takes_over
from .openrlhf import read_openrlhf
from .roll import read_roll
from .settings import RoleSettings, run_of
from .slime import read_slime
from .verl import read_verl

READERS: Mapping[str, Callable[[RoleSettings], PlanRead]] = {
    "verl": read_verl,
    "slime": read_slime,
    "nemo-rl": read_nemo_rl,
    "openrlhf": read_openrlhf,
    "roll": read_roll,
    "areal": read_areal,
}


def read_plan(text: str, answers: Mapping[str, str] | None = None, run: str = "") -> PlanRead:
    """The plan of a configuration; for a single job without roles, a plan of one role.

    answers: settings answered beside the text, by their own names ("trainer.nnodes") or a role's
    size ("actor.tp"); they take precedence. run: which of several commands, by its name.

    Errors: LayoutError for no text, and for a setting that must be answered first: its control is
    the name of the setting, its alternatives are values that work.
    """
    if not isinstance(text, str):
        raise refusal("not-a-text", "launch", value=quoted(text))
    require_length(text, MAX_TEXT, "launch")
    with within():
        reading = read(text.removeprefix("\ufeff"))
        reader = _reader(reading)
        if reader is None:
            return _of_one(text, run)
        is_whole = reader in (read_disaggregated, read_mimo)
        own = "" if is_whole else run_of(reading, run)
        if own and len({schema.name for schema in reading.schema_of_run.values()}) > 1:
            reading = only_run(reading, own)
        return reader(RoleSettings(reading, own, answers or {}))


def has_roles(text: str) -> bool:
    """Whether a text is of a framework whose jobs have several roles."""
    with within():
        reading = read(text)
    return _reader(reading) is not None


def _reader(reading: Reading) -> Callable[[RoleSettings], PlanRead] | None:
    """The reader of a text; None for a job without roles."""
    if is_mimo(reading.text):
        return read_mimo
    if generates_only(reading):
        return read_generation
    if takes_over(reading):
        return read_nemo_rl
    if is_disaggregated(reading):
        return read_disaggregated
    if reading.schema is None and is_areal(reading):
        return read_areal
    return next((READERS[own.name] for own in reading.schemas if own.name in READERS), None)


def _of_one(text: str, run: str) -> PlanRead:
    """The plan of a text with one job."""
    parsed = parse(text, run)
    plan = Plan.of(parsed.job().layout())
    known = Known.of(parsed).also(**served_of(parsed))
    name = parsed.framework.name if parsed.framework else ""
    roles = (RoleRead(plan.roles[0], known.values, known.training),)
    return PlanRead(name, roles, plan, phases_of(plan), (), parsed.missing)
