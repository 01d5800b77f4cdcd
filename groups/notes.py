"""Notes that a reader returns beside its answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Note:
    """A note for the user: a stable code, and the facts of its sentence."""

    code: str
    facts: Mapping[str, object] = field(default_factory=dict)
