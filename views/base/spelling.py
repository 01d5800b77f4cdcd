"""Names of choices, which programs and command lines may write in any case."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from groups.errors import in_any_case
from training.models import MODELS
from training.pipeline import SCHEDULES
from training.split import SPREADS

from .state import FIELDS
from .trained import CHOICES

NAMES: Mapping[str, Collection[str]] = {
    **{name: choices for name, (_, choices) in CHOICES.items()},
    **{"model": MODELS, "schedule": SCHEDULES, "against": SCHEDULES, "spread": SPREADS},
}
"""What fields of training may name."""


def as_spelled(field: str, value: Any) -> Any:
    """A name of a field's choices as it is spelled; any other value as it is.

    >>> as_spelled("cluster", "DGX-A100"), as_spelled("recompute", "Layernorm,MoE_act")
    ('dgx-a100', 'layernorm,moe_act')
    >>> as_spelled("model", "Other-7B"), as_spelled("nodes", 2)
    ('Other-7B', 2)
    """
    if field == "recompute" and isinstance(
        value, str
    ):  # a choice, or modules: all in small letters
        return value.lower()
    return in_any_case(value, map(str, NAMES.get(field) or FIELDS[field].choices or ()))
