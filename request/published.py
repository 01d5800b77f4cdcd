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
    return preset in PUBLISHED and not changed_sizes(preset, state)


def changed_sizes(preset: str, state: State) -> dict[str, tuple[str, str]]:
    """The sizes of a published layout that a state has not: each as published and as it is.

    >>> changed_sizes("bloom-176b", from_preset("bloom-176b").changed({"tp": 8}))
    {'tp': ('4', '8')}
    """
    shown, published = state_texts(state), state_texts(from_preset(preset))
    names = (*SIZES, "etp", "framework", *SERVED)
    pairs = {name: (published[name], shown[name]) for name in names}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
