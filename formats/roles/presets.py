"""Published plans to start from, each with its source: plans.toml, whose first lines say how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from groups.errors import in_any_case, nearest_names, not_a_choice
from groups.tables import Rows, read_table

from .model import PlanRead

Value = bool | int | float | str

PlanFramework = Literal["verl", "slime", "nemo-rl", "openrlhf", "roll", "areal"]
"""Frameworks whose jobs have several roles, by launch's names."""

STARTS = {
    "verl": "python3 -m verl.trainer.main_ppo",
    "slime": "python3 train.py",
    "openrlhf": "python3 -m openrlhf.cli.train_ppo_ray",
}
"""The beginning of a command of each framework; NeMo-RL has files."""


@dataclass(frozen=True)
class PlanPreset:
    """A published plan, by its settings."""

    name: str
    framework: PlanFramework
    url: str
    settings: Mapping[str, Value]
    assumed: Mapping[str, Value] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Its settings as a configuration of its framework."""
        every = {**self.assumed, **self.settings}.items()
        if self.framework not in STARTS:
            return "\n".join(f"{name}: {_setting_text(value)}" for name, value in every)
        dashed = self.framework != "verl"
        words = [
            (f"--{name}" if value is True else f"--{name} {_setting_text(value)}")
            if dashed
            else f"{name}={_setting_text(value)}"
            for name, value in every
        ]
        return " ".join([STARTS[self.framework], *words])


def _setting_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


PLANS = Rows(lambda: read_table(Path(__file__).with_name("plans.toml"), dict[str, PlanPreset]))
"""Published plans by a stable id."""


def preset_plan(name: str) -> PlanRead:
    """A published plan.

    >>> str(preset_plan("slime-glm4-5").plan)
    '8 x 8 GPUs: actor 0-63, rollout 0-63'

    Errors: LayoutError where there is none of this name, with the nearest.
    """
    known = str(in_any_case(name, PLANS))
    if known not in PLANS:
        fixes = [{"preset": near} for near in nearest_names(name, PLANS)]
        raise not_a_choice("preset", name, PLANS, fixes)
    from .read import read_plan  # a large room: names of plans alone need none of it

    return read_plan(PLANS[known].text)
