"""Published layouts beside a state: whether it still is the one that it names."""

from __future__ import annotations

from groups.layout import SERVED
from groups.presets import PUBLISHED

from .link import state_texts
from .resolve import (
    SIZES,
    from_preset,
)
from .state import State


def is_still(preset: str, state: State) -> bool:
    """Whether a state still has the sizes of a published layout, whatever it displays."""
    if preset not in PUBLISHED:
        return False
    shown, published = state_texts(state), state_texts(from_preset(preset))
    return all(shown[name] == published[name] for name in (*SIZES, "etp", "framework", *SERVED))
